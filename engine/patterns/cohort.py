"""Cohort signs: is the affected set the set of one firmware version, and do its NICs behave unlike their rail
peers?"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from math import comb
from statistics import median

from ..fabric.cohorts import Cohort
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
    "cnp_ignored",
    "pfc_tx_pause_us",
)
"""NIC counters whose rise marks a NIC as affected (causal.md, nic.fw_regression)."""

DEVIATION_METRICS = ("tx_bytes", "rx_bytes", "cnp_sent", *ANOMALY_METRICS)


def cohort_anomalies(observed: Observed, sign: str, limits: Mapping[str, float]) -> Iterator[SignFinding]:
    """Are the hosts with NIC anomalies the hosts of this version? Fisher's exact test over hosts, one-sided.

    Asked of each counter by itself, because what a version does wrong and what that does to others show in different
    ones; the smallest p counts, times the counters tried (Bonferroni). Unknown where the best attainable p is above the
    limit (a cohort of one host among few, no affected host at all), and where the version is affected more than others
    but not clearly so: the victims of one place dilute the test. Hosts whose counters were not read on both sides of
    the onset are neither affected nor healthy.
    """
    tested = [anomaly for metric in ANOMALY_METRICS if (anomaly := _anomaly(observed, metric, limits)).affected]
    for cohort in observed.topology.cohorts:
        tables = [(anomaly, _Table.of(anomaly, cohort)) for anomaly in tested]
        if not tables or len(tables) * min(table.attainable for _, table in tables) > limits["p_value"]:
            continue
        clearest, table = min(tables, key=lambda one: one[1].p)
        p_value = min(len(tables) * table.p, 1.0)
        is_present = p_value < limits["p_value"]
        if not is_present and any(other.leans for _, other in tables):
            continue
        yield SignFinding(
            sign,
            cohort.scope,
            "present" if is_present else "absent",
            observed=p_value,
            limit=limits["p_value"],
            unit="p, Fisher's exact test",
            records=(clearest.record,) if clearest.record else (),
            words={"inside": f"{table.inside} of {table.members}", "affected": str(table.affected)},
        )


@dataclass(frozen=True, slots=True)
class _Anomaly:
    """One counter: the hosts where it was read, those where it rose, and the record of one."""

    read: frozenset[str]
    affected: frozenset[str]
    record: Provenance | None


@dataclass(frozen=True, slots=True)
class _Table:
    """Hosts of one version among those where a counter was read, and how many of them it rose on."""

    read: int
    members: int
    affected: int
    inside: int

    @staticmethod
    def of(anomaly: _Anomaly, cohort: Cohort) -> _Table:
        members = anomaly.read.intersection(cohort.hosts)
        inside = len(members & anomaly.affected)
        return _Table(len(anomaly.read), len(members), len(anomaly.affected), inside)

    @property
    def p(self) -> float:
        return hypergeometric_tail(self.read, self.members, self.affected, self.inside)

    @property
    def attainable(self) -> float:
        return hypergeometric_tail(self.read, self.members, self.affected, min(self.members, self.affected))

    @property
    def leans(self) -> bool:
        """Whether hosts of the version are affected more often than the others."""
        return self.inside * self.read > self.affected * self.members


def hypergeometric_tail(population: int, members: int, drawn: int, hits: int) -> float:
    """P(at least `hits` of `drawn` hosts are among `members` of `population`): the one-sided p of Fisher's exact
    test."""
    total = comb(population, drawn)
    return (
        sum(comb(members, k) * comb(population - members, drawn - k) for k in range(hits, min(members, drawn) + 1))
        / total
    )


def _anomaly(observed: Observed, metric: str, limits: Mapping[str, float]) -> _Anomaly:
    read: set[str] = set()
    affected: set[str] = set()
    record: Provenance | None = None
    nics = set(observed.topology.nics)
    for (host, nic, _), signal in observed.signals(metric).items():
        before, after, events = signal["before_mean"], signal["after_mean"], signal["after_delta"]
        if (host, nic) not in nics or before is None or after is None or events is None:
            continue
        read.add(host)
        if events >= limits["events"] and after > limits["rise"] * before:
            affected.add(host)
            record = record or signal.extreme
    return _Anomaly(frozenset(read), frozenset(affected), record)


def cohort_deviation(observed: Observed, sign: str, limits: Mapping[str, float]) -> Iterator[SignFinding]:
    """Did most NICs of this version change unlike the other NICs of their rails at the onset?

    Each NIC's change of rate is compared with the median of its rail peers outside the version, in units of their
    spread. Unknown without peers outside (a version that everybody runs) or without counters on both sides of the
    onset, and where some NICs deviate but not most: those that carried little may have had no occasion to.
    """
    if observed.split.onset is None:
        return
    for cohort in observed.topology.cohorts:
        scored = _deviations(observed, cohort, limits)
        if not scored:
            continue
        deviating = sum(score > limits["spreads"] for score, _ in scored.values())
        if limits["few"] * len(scored) < deviating <= len(scored) / 2:
            continue
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
