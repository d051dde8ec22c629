"""Where causes overlap: what a slowdown needed of two of them is not the sum of what it needed of each."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

from ..around import Surroundings
from ..counterfactual import needed
from ..results import Overlap as OverlapRow
from ..verdicts import Judgement
from ..wording import percent

WORTH_TELLING = 0.05
"""Difference of probability from which an overlap is told (judgement: as for what is not ruled out)."""

MOST_CAUSES = 3
"""Supported causes compared with each other (judgement: those a page has room for)."""


@dataclass(frozen=True, slots=True)
class Overlap:
    """Two causes, by the leading member of their tie class. `alone`: P(the symptom would not have occurred without
    it | evidence) of each, `together` that without both."""

    nodes: tuple[str, str]
    alone: tuple[float, float]
    together: float


def overlaps(judgement: Judgement, surroundings: Surroundings) -> tuple[Overlap, ...]:
    """Pairs of supported causes, consequences aside, that overlap in what they explain; none without a symptom."""
    if judgement.explains is None:
        return ()
    classes = {member: tie.members for tie in judgement.ties for member in tie.members}
    leading = [
        v.id for v in judgement.listed if v.role in ("root", "contributing") and classes.get(v.id, (v.id,))[0] == v.id
    ][:MOST_CAUSES]
    found = []
    for one, other in combinations(leading, 2):
        members = classes.get(one, (one,)), classes.get(other, (other,))
        nearby = surroundings.near((*members[0], *members[1]))
        first, second, both = (
            needed(nearby.network, nearby.posterior, asked) for asked in (*members, (*members[0], *members[1]))
        )
        if first is None or second is None or both is None:
            continue
        if abs(both - first - second) >= WORTH_TELLING:
            found.append(Overlap((one, other), (first, second), both))
    return tuple(found)


def told_overlaps(found: Sequence[Overlap], ids: Mapping[str, str]) -> tuple[OverlapRow, ...]:
    """The overlaps in words."""
    rows = []
    for overlap in found:
        one, other = (ids[node] for node in overlap.nodes)
        is_enough = overlap.together > sum(overlap.alone)
        how = "each may have been enough by itself" if is_enough else "one acted in part through the other"
        rows.append(
            OverlapRow(
                hypotheses=(one, other),
                needed=overlap.alone,
                together=overlap.together,
                statement=f"{one} and {other} overlap: {how}. The slowdown would not have happened without {one}: "
                f"{percent(overlap.alone[0])}, without {other}: {percent(overlap.alone[1])}, without both: "
                f"{percent(overlap.together)}.",
            )
        )
    return tuple(rows)
