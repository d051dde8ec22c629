"""The knowledge base: causes, mechanisms and signs as YAML, read and checked. One verb: `load`."""

from __future__ import annotations

from pathlib import Path

from ..engine.errors import KnowledgeError
from ..engine.rules import KnowledgeBase
from .loader import read_library
from .soundness import soundness_problems

__all__ = ["load"]


def load(*overlays: Path) -> KnowledgeBase:
    """The shipped rules with each overlay directory (same layout) laid over them, in order.

    `overrides` lists what the overlays changed. Raises KnowledgeError with every problem that would keep the engine
    from using the rules; `causeline kb check` finds more.
    """
    library = read_library(*overlays)
    problems = (*library.problems, *soundness_problems(library))
    if problems:
        raise KnowledgeError(problems)
    return library.knowledge_base()
