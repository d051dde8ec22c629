"""How much of the slowdown a page says that hypotheses answer for."""

from __future__ import annotations

from collections.abc import Iterable

from ..engine.results import Impact


def slowdown_share(impacts: Iterable[Impact], members: Iterable[str], share: float) -> float:
    """As the ranks were timed, where they were; else the hypotheses' share."""
    timed = {
        id: part for impact in impacts if impact.share_from == "timing" for id, part in impact.share_explained.items()
    }
    measured = [timed[id] for id in members if id in timed]
    return sum(measured) if measured else share
