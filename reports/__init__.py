"""Reports: an investigation as HTML post-mortem, JSON, ticket Markdown or terminal page.

A format is a module `to_<format>.py` in this folder with `FORMAT` (its name) and `render(view)`. Renderers lay
out a view and decide nothing: order, rounding and wording are made once, in `compose.py`.
"""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import Protocol, cast

from ..engine.errors import UsageError
from ..engine.results import Investigation
from .compose import view_of
from .view import View

__all__ = ["formats", "render"]


class _Renderer(Protocol):
    FORMAT: str

    def render(self, view: View) -> str: ...


def _renderers() -> dict[str, str]:
    stems = sorted(path.stem for path in Path(__file__).parent.glob("to_*.py"))
    return {stem.removeprefix("to_"): stem for stem in stems}


def formats() -> tuple[str, ...]:
    """The names `render` accepts, sorted."""
    return tuple(_renderers())


def render(investigation: Investigation, format: str) -> str:
    """The investigation in one of `formats()`, as text that ends in a newline. Raises UsageError for another name."""
    module = _renderers().get(format)
    if module is None:
        raise UsageError(f"{format!r} is not a report format.", f"Use one of: {', '.join(formats())}.")
    renderer = cast(_Renderer, import_module(f".{module}", __package__))
    return renderer.render(view_of(investigation))
