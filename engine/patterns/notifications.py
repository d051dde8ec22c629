"""The sign of a NIC that takes no part in congestion control: it does not slow down on CNPs, or sends none."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from ..fabric.reactions import Reaction
from ..findings import SignFinding, time_coverage
from ..observed import Observed
from ..scope import Scope, ScopeKind
from ..topology import End


def open_loops(observed: Observed, sign: str, limits: Mapping[str, float]) -> Iterator[SignFinding]:
    """Did a NIC stop, at the onset, to slow down on CNPs or to answer marks with CNPs?

    As `Reactions` tells. Absent where it does what it was asked to: half covered where it was asked for one of the two
    only. Unknown where it was asked for neither, and where most NICs of its version that get CNPs, on two hosts at
    least, are as deaf: whether that is the version's doing the NIC alone does not tell.
    """
    reactions = observed.reactions
    shared = _deaf_together(observed)
    for nic in observed.topology.nics:
        both = (None if nic in shared else reactions.to_cnps.get(nic), reactions.to_marks.get(nic))
        read = [one for one in both if one is not None]
        broken = [one for one in read if one.is_broken]
        if not read or (nic in shared and not broken):
            continue
        shown = (broken or read)[0]
        covered = sum(time_coverage(one.counted["after_coverage"]) for one in read) / len(both)
        yield SignFinding(
            sign,
            Scope.of(ScopeKind.NIC, *nic),
            "present" if broken else "absent",
            observed=shown.counted["after_mean"],
            baseline=shown.counted["before_mean"],
            unit="packets/s",
            coverage=covered,
            records=(shown.record,),
            words={"does": "slows down on" if shown is both[0] else "sends", "beside": _beside(shown)},
        )


def _deaf_together(observed: Observed) -> frozenset[End]:
    """Deaf NICs of versions of which most NICs that get CNPs are deaf, on two hosts at least."""
    told = observed.reactions.to_cnps
    found: set[End] = set()
    for cohort in observed.topology.cohorts:
        asked = [nic for nic in cohort.members if nic in told]
        deaf = [nic for nic in asked if told[nic].is_broken]
        if len({host for host, _ in deaf}) > 1 and 2 * len(deaf) > len(asked):
            found.update(deaf)
    return frozenset(found)


def _beside(reaction: Reaction) -> str:
    if reaction.beside is None:
        return ""
    kind, rate = reaction.beside
    match kind:
        case "ignored":
            return f", and ignores {rate:.0f} CNPs/s"
        case "marked":
            return f", and {rate:.0f} marked packets/s reach it"
        case "unheard":
            return f", and all NICs send {max(rate, 0.0):.0f} CNPs/s more than are handled"
