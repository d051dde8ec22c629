"""Signs of a NIC that takes no part in congestion control: it does not slow down on CNPs, or sends none.

Both compare a NIC with itself before the onset: how many CNPs go with a byte or a mark differs with the generation of
the NIC (causal.md trap 10).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from ..findings import SignFinding, time_coverage
from ..observed import Observed
from ..reactions import Reaction
from ..scope import Scope, ScopeKind
from ..signals import Signal
from ..topology import End
from ..wording import number

_UNIT = "packets/s"


def cnps_unheeded(observed: Observed, sign: str, limits: Mapping[str, float]) -> Iterator[SignFinding]:
    """Did this NIC, unlike the others of its version, stop reacting to CNPs at the onset?

    As `Reactions` tells. Absent also where most NICs of its version that get CNPs, on two hosts at least, are as deaf:
    that is the version's doing.
    """
    told = observed.reactions.by_nic
    versions = {nic: cohort for cohort in observed.topology.cohorts for nic in cohort.members}
    for nic, reaction in told.items():
        mates = [mate for mate in versions[nic].members if mate in told] if nic in versions else []
        deaf = [mate for mate in mates if told[mate].is_deaf]
        is_alone = nic not in deaf or len({host for host, _ in deaf}) < 2 or 2 * len(deaf) <= len(mates)
        yield SignFinding(
            sign,
            Scope.of(ScopeKind.NIC, *nic),
            "present" if reaction.is_deaf and is_alone else "absent",
            observed=reaction.handled["after_mean"],
            baseline=reaction.handled["before_mean"],
            unit=_UNIT,
            coverage=time_coverage(reaction.handled["after_coverage"]),
            records=(reaction.record,),
            words={"why": _why(reaction) if is_alone else f"as do {len(deaf)} of {len(mates)} NICs of its version"},
        )


def _why(reaction: Reaction) -> str:
    if reaction.ignored is not None:
        return f"and ignores {number(reaction.ignored)} packets/s"
    if reaction.unheard is None:
        return "and slows down on them"
    if reaction.is_deaf:
        return f"while receivers send {number(reaction.unheard)} packets/s that nobody handles"
    return "and no more are sent than are handled"


def cnps_not_sent(observed: Observed, sign: str, limits: Mapping[str, float]) -> Iterator[SignFinding]:
    """Do marks reach the NIC that it no longer answers with CNPs?

    Marks as the NIC counts them; where that counter stands still although it answers (causal.md trap 8), those that its
    leaf puts on packets to it. Unknown for a NIC that answered none before the onset, and where marks stop with the
    CNPs.
    """
    for nic in observed.topology.nics:
        sent = observed.signals("cnp_sent").get((*nic, ""))
        if sent is None or sent["after_mean"] is None or sent["before_mean"] is None:
            continue
        marked = _marks(observed, nic, limits["few"])
        if marked is None or (sent["before_delta"] or 0.0) < limits["few"]:
            continue
        before, after, events = marked["before_mean"], marked["after_mean"], marked["after_delta"]
        if not before or after is None or events is None:
            continue
        # A NIC sends at most one CNP per flow and interval: many more marks do not make as many more CNPs.
        due = sent["before_mean"] * min(after / before, 1.0)
        is_silent = events >= limits["few"] and sent["after_mean"] <= limits["rest"] * due
        if not is_silent and ((sent["after_delta"] or 0.0) < limits["few"] or sent["after_mean"] < due / 2):
            continue
        yield SignFinding(
            sign,
            Scope.of(ScopeKind.NIC, *nic),
            "present" if is_silent else "absent",
            observed=sent["after_mean"],
            baseline=sent["before_mean"],
            unit=_UNIT,
            coverage=min(time_coverage(one["after_coverage"]) for one in (sent, marked)),
            records=(sent.last, marked.extreme or marked.last),
            words={"marks": number(after)},
        )


def _marks(observed: Observed, nic: End, few: float) -> Signal | None:
    """Marked packets to a NIC, by the counter that moved before the onset."""
    peer = observed.topology.peer(*nic)
    counted = [observed.signals("ecn_ce_received_packets").get((*nic, ""))]
    if peer is not None:
        marks = observed.signals("ecn_marked_packets")
        counted += [marks.get((*peer, qualifier)) for qualifier in ("", *sorted(observed.lossless_classes))]
    return next((one for one in counted if one is not None and (one["before_delta"] or 0.0) >= few), None)
