"""Cohort signs: is the affected set the set of one firmware version, and do its NICs behave unlike their rail
peers?"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from math import comb
from statistics import median

from ..cohorts import Cohort
from ..facts import Provenance
from ..findings import SignFinding
from ..observed import Observed
from ..signals import Signal
from ..topology import End

ANOMALY_METRICS = (
    "nak_received",
    "out_of_sequence",
    "ack_timeouts",
    "nic_rx_discards",
    "adaptive_retransmits",
    "pfc_tx_pause_us",
)
"""NIC counters whose rise marks a NIC as affected (causal.md, nic.fw_regression)."""

DEVIATION_METRICS = ("tx_bytes", "rx_bytes", "cnp_sent", *ANOMALY_METRICS)


def cohort_anomalies(observed: Observed, sign: str, limits: Mapping[str, float]) -> Iterator[SignFinding]:
    """Are the hosts with NIC anomalies the hosts of this version? Fisher's exact test over hosts, one-sided.

    Unknown where the best attainable p is above the limit: a cohort of one host among few, or no affected host at all,
    can prove nothing. Hosts whose counters were not read on both sides of the onset are neither affected nor healthy.
    """
    hosts, affected, record = _affected_hosts(observed, limits)
    for cohort in observed.topology.cohorts:
        members = [host for host in hosts if host in cohort.hosts]
        inside = sum(host in affected for host in members)
        attainable = hypergeometric_tail(len(hosts), len(members), len(affected), min(len(members), len(affected)))
        if attainable > limits["p_value"]:
            continue
        p_value = hypergeometric_tail(len(hosts), len(members), len(affected), inside)
        yield SignFinding(
            sign,
            cohort.scope,
            "present" if p_value < limits["p_value"] else "absent",
            observed=p_value,
            limit=limits["p_value"],
            unit="p, Fisher's exact test",
            records=(record,) if record else (),
            words={"inside": f"{inside} of {len(members)}", "affected": str(len(affected))},
        )


def hypergeometric_tail(population: int, members: int, drawn: int, hits: int) -> float:
    """P(at least `hits` of `drawn` hosts are among `members` of `population`): the one-sided p of Fisher's exact
    test."""
    total = comb(population, drawn)
    return (
        sum(comb(members, k) * comb(population - members, drawn - k) for k in range(hits, min(members, drawn) + 1))
        / total
    )


def _affected_hosts(
    observed: Observed, limits: Mapping[str, float]
) -> tuple[frozenset[str], frozenset[str], Provenance | None]:
    """(hosts that were read, those with anomalies, the record of one)."""
    read: set[str] = set()
    affected: set[str] = set()
    record: Provenance | None = None
    nics = set(observed.topology.nics)
    for metric in ANOMALY_METRICS:
        for (host, nic, _), signal in observed.signals(metric).items():
            before, after, events = signal["before_mean"], signal["after_mean"], signal["after_delta"]
            if (host, nic) not in nics or before is None or after is None or events is None:
                continue
            read.add(host)
            if events >= limits["events"] and after > limits["rise"] * before:
                affected.add(host)
                record = record or signal.extreme
    return frozenset(read), frozenset(affected), record


def cohort_deviation(observed: Observed, sign: str, limits: Mapping[str, float]) -> Iterator[SignFinding]:
    """Did most NICs of this version change unlike the other NICs of their rails at the onset?

    Each NIC's change of rate is compared with the median of its rail peers outside the version, in units of their
    spread. Unknown without peers outside (a version that everybody runs) or without counters on both sides of the
    onset.
    """
    if observed.split.onset is None:
        return
    for cohort in observed.topology.cohorts:
        scored = _deviations(observed, cohort, limits)
        if not scored:
            continue
        deviating = sum(score > limits["spreads"] for score, _ in scored.values())
        # The reading shown is the NIC in the middle: most NICs must deviate.
        middle = sorted(scored.values(), key=lambda item: item[0])[len(scored) // 2]
        yield SignFinding(
            sign,
            cohort.scope,
            "present" if 2 * deviating > len(scored) else "absent",
            observed=middle[0],
            limit=limits["spreads"],
            unit="spreads of the rail peers (middle NIC)",
            coverage=len(scored) / len(cohort.members),
            records=(middle[1].last,),
            words={"deviating": f"{deviating} of {len(scored)}"},
        )


def _deviations(observed: Observed, cohort: Cohort, limits: Mapping[str, float]) -> dict[End, tuple[float, Signal]]:
    """Largest deviation of each NIC over the metrics, with the signal that showed it."""
    worst: dict[End, tuple[float, Signal]] = {}
    members = set(cohort.members)
    for metric in DEVIATION_METRICS:
        changes: dict[End, tuple[float, Signal]] = {}
        for (host, nic, qualifier), signal in observed.signals(metric).items():
            before, after = signal["before_mean"], signal["after_mean"]
            if before is None or after is None or qualifier not in ("", *observed.lossless_classes):
                continue
            changes[(host, nic)] = (after - before, signal)
        for rail in observed.topology.rails.values():
            peers = [changes[end][0] for end in rail if end in changes and end not in members]
            if len(peers) < limits["peers"]:
                continue
            centre = median(peers)
            spread = max(
                median(abs(change - centre) for change in peers), limits["floor"] * abs(centre), limits["floor_rate"]
            )
            for end in rail:
                if end in members and end in changes:
                    score = abs(changes[end][0] - centre) / spread
                    if end not in worst or score > worst[end][0]:
                        worst[end] = (score, changes[end][1])
    return worst
