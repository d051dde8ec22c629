"""The investigation as JSON, unchanged: the contract of `investigation.schema.json`."""

from __future__ import annotations

from .view import View

FORMAT = "json"


def render(view: View) -> str:
    """Canonical JSON of the investigation itself; no wording of the view enters it."""
    return view.investigation.to_json()
