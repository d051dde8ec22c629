"""Mentions inside a report, and the fragment names they lead to."""

from __future__ import annotations

import re
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Reference:
    """A mention of something in the report. `anchor` None: the report does not hold it, so it must not be a link."""

    id: str
    anchor: str | None
    text: str = ""


def anchor(*parts: str) -> str:
    """The fragment name of an id: letters, digits, `-` and `_` only."""
    return re.sub(r"[^A-Za-z0-9_-]", "-", "-".join(parts))
