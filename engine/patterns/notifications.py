"""Signs of a NIC that takes no part in congestion control: it does not slow down on CNPs, or sends none.

Both compare a NIC with itself before the onset: how many CNPs go with a byte, or a mark, differs with the generation of
the NIC (causal.md trap 10).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Literal

from ..facts import Provenance
from ..findings import SignFinding, time_coverage
from ..observed import Observed
from ..scope import Scope, ScopeKind
from ..signals import Signal
from ..topology import End
from ..wording import number

_UNIT = "packets/s"


def cnps_unheeded(observed: Observed, sign: str, limits: Mapping[str, float]) -> Iterator[SignFinding]:
    """Did this NIC, unlike the others of its version, stop reacting to CNPs at the onset?

    Present where it counts CNPs as ignored, and more of them than it handles; or where it handles next to none of those
    that its bytes brought before, while receivers of the fabric send about as many more than all senders handle. Absent
    where it reacts, where the CNPs that it no longer handles are not sent either (its way is clear), and where most NICs
    of its version that get CNPs do the same: that is the version's doing. Unknown for a NIC that nobody sent CNPs, and
    where the fabric's CNPs did not balance before the onset: some ends were not read.
    """
    balance = _Balance.of(observed, limits)
    told = {nic: read for nic in observed.topology.nics if (read := _reaction(observed, nic, balance, limits))}
    deaf = {nic for nic, reaction in told.items() if reaction.state == "present"}
    versions = {nic: cohort for cohort in observed.topology.cohorts for nic in cohort.members}
    for nic, reaction in told.items():
        mates = [mate for mate in versions[nic].members if mate in told] if nic in versions else []
        alike = [mate for mate in mates if mate in deaf]
        is_of_version = nic in deaf and len({host for host, _ in alike}) > 1 and 2 * len(alike) > len(mates)
        yield SignFinding(
            sign,
            Scope.of(ScopeKind.NIC, *nic),
            "absent" if is_of_version else reaction.state,
            observed=reaction.handled["after_mean"],
            baseline=reaction.handled["before_mean"],
            unit=_UNIT,
            coverage=time_coverage(reaction.handled["after_coverage"]),
            records=(reaction.record,),
            words={
                "why": f"as {len(alike)} of {len(mates)} NICs of its version that get CNPs do"
                if is_of_version
                else reaction.why
            },
        )


@dataclass(frozen=True, slots=True)
class _Reaction:
    """What a NIC does about CNPs: `handled` as counted, `why` it is taken to react or not."""

    state: Literal["present", "absent"]
    handled: Signal
    why: str
    record: Provenance


@dataclass(frozen=True, slots=True)
class _Balance:
    """CNPs a second that the fabric's receivers send and no sender counts; None where they did not balance before the
    onset."""

    unheard: float | None

    @staticmethod
    def of(observed: Observed, limits: Mapping[str, float]) -> _Balance:
        total: dict[str, float] = defaultdict(float)
        nics = set(observed.topology.nics)
        for metric, weight in (("cnp_sent", 1.0), ("cnp_handled", -1.0), ("cnp_ignored", -1.0)):
            for (device, port, _), signal in observed.signals(metric).items():
                before, after = signal["before_mean"], signal["after_mean"]
                if (device, port) not in nics or before is None or after is None:
                    continue
                total["before"] += weight * before
                total["after"] += weight * after
                total["sent"] += before if metric == "cnp_sent" else 0.0
        is_balanced = total["sent"] > 0 and abs(total["before"]) <= limits["balance"] * total["sent"]
        return _Balance(total["after"] if is_balanced else None)


def _reaction(observed: Observed, nic: End, balance: _Balance, limits: Mapping[str, float]) -> _Reaction | None:
    """None where the NIC had no occasion, or its counters leave it open."""
    handled = observed.signals("cnp_handled").get((*nic, ""))
    if handled is None or handled["after_mean"] is None or handled["after_delta"] is None:
        return None
    ignored = observed.signals("cnp_ignored").get((*nic, ""))
    if ignored is not None and (ignored["after_delta"] or 0.0) >= limits["few"]:
        rate = ignored["after_mean"] or 0.0
        if rate <= max(limits["rise"] * (ignored["before_mean"] or 0.0), handled["after_mean"]):
            return None
        return _Reaction("present", handled, f"and ignores {number(rate)} packets/s", ignored.extreme or ignored.last)
    due = _due(observed, nic, handled)
    reacts = handled["after_delta"] >= limits["few"]
    if reacts and (ignored is not None or (due is not None and handled["after_mean"] >= due / 2)):
        return _Reaction("absent", handled, "and slows down on them", handled.extreme or handled.last)
    if due is None or balance.unheard is None or (handled["before_delta"] or 0.0) < limits["few"]:
        return None
    missing = due - handled["after_mean"]
    if missing < (1 - limits["rest"]) * due:
        return None
    if balance.unheard < limits["rest"] * missing:
        return _Reaction("absent", handled, "and none are sent that nobody handles", handled.last)
    if balance.unheard < missing / 2 or missing < limits["share"] * balance.unheard:
        return None
    why = f"while receivers send {number(balance.unheard)} packets/s that nobody handles"
    return _Reaction("present", handled, why, handled.last)


def _due(observed: Observed, nic: End, handled: Signal) -> float | None:
    """CNPs a second that the bytes of the NIC would bring as before; None where it cannot be told."""
    sent = observed.sent(nic)
    if sent is None or handled["before_mean"] is None:
        return None
    before, after = sent["before_mean"], sent["after_mean"]
    return handled["before_mean"] / before * after if before and after is not None else None


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
