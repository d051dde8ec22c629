"""The post-mortem page: one file without script, network or font of its own. The layout is in `templates/`."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup, escape

from .charts import draw
from .panels import time_range
from .view import View

FORMAT = "html"

_CODE = re.compile(r"`([^`]+)`")
# The page shows one of the two, by its width.
_DRAWINGS = (("wide", 1010), ("narrow", 350))


def render(view: View) -> str:
    """The page as HTML 5. Every name and statement enters it as text, never as markup."""
    page = _templates().get_template("post_mortem.html.j2").render(view=view, drawings=_drawings(view))
    return page.rstrip() + "\n"


@cache
def _templates() -> Environment:
    environment = Environment(
        loader=FileSystemLoader(Path(__file__).with_name("templates")),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["code"] = _with_code
    return environment


def _with_code(text: str) -> Markup:
    """The text escaped, with `backticked` parts as code."""
    return Markup(_CODE.sub(r"<code>\1</code>", str(escape(text))))


def _drawings(view: View) -> dict[str, Markup]:
    span = time_range(view.panels, view.investigation.incident.window)
    if span is None:
        return {}
    return {name: Markup(draw(view.panels, view.rules, span, width, name)) for name, width in _DRAWINGS}
