"""Pause signs: where a pause tree starts (a host, a congested port) and whether it closes on itself."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace

from ..fabric.pause_graph import NO_CYCLE, PauseReading, cycle_scope
from ..findings import LevelReading, SignFinding, time_coverage
from ..observed import Observed
from ..scope import Scope, ScopeKind, short_port


def _finding(
    sign: str, reading: PauseReading, state: str, limit: float, words: Mapping[str, str] | None = None
) -> SignFinding:
    return SignFinding(
        sign,
        reading.queue,
        "present" if state == "present" else "absent",
        observed=100 * reading.duty_high,
        baseline=100 * reading.baseline_high,
        limit=100 * limit,
        unit="% of time paused",
        coverage=reading.coverage,
        records=(reading.record,),
        words=words or {},
    )


def paused_by_host(observed: Observed, sign: str, limits: Mapping[str, float]) -> Iterator[SignFinding]:
    """How long is a leaf's egress towards a host paused by the host's NIC, above its baseline?"""
    yield from _paused(observed, sign, limits, host_facing=True)


def paused_by_switch(observed: Observed, sign: str, limits: Mapping[str, float]) -> Iterator[SignFinding]:
    """How long is an inter-switch egress paused by the next switch, above its baseline?"""
    yield from _paused(observed, sign, limits, host_facing=False)


DUTY_LIMITS = ("notable_duty", "significant_duty", "extreme_duty", "stuck_duty")
"""Limits of the levels of pausing, lowest first."""


def _paused(observed: Observed, sign: str, limits: Mapping[str, float], *, host_facing: bool) -> Iterator[SignFinding]:
    """Paused as much as before is absent only from the level that neither end reaches: the onset may be misplaced.

    Unknown where that leaves every level open.
    """
    for queue, reading in observed.pause_graph.readings.items():
        if observed.topology.is_host_facing(queue.parts[0], queue.parts[1]) is not host_facing:
            continue
        if queue in observed.pause_graph.paused:
            levels, state, coverage = _levels(reading, limits), "present", reading.coverage
            limit = limits[DUTY_LIMITS[levels.least - 1]]
        else:
            # Levels are of the pausing itself, not of one counter of it: what a clean reading may miss is its coverage.
            levels, state, coverage = LevelReading(0, _most(reading, limits)), "absent", reading.seen_clean
            if levels.most == len(DUTY_LIMITS):
                continue
            limit = limits[DUTY_LIMITS[levels.most]]
        peak = {"peak": f"{100 * reading.peak_duty_high:.3g}"}
        yield replace(_finding(sign, reading, state, limit, peak), levels=levels, coverage=coverage)


def _levels(reading: PauseReading, limits: Mapping[str, float]) -> LevelReading:
    """How long a queue is paused that is paused above its baseline.

    At least as the busiest twentieth of its polls shows, at most as the busiest one does: the mean hides what comes and
    goes. Within the margin of a limit either side of it is possible.
    """
    margin = 1 + limits["margin"]
    least = sum(reading.busy_duty_low >= limits[name] * margin for name in DUTY_LIMITS)
    return LevelReading(max(1, least), max(1, _level_of(reading.peak_duty_high, limits)))


def _most(reading: PauseReading, limits: Mapping[str, float]) -> int:
    """The highest level that either end of a queue's link leaves open, 0 where both hardly counted any pausing."""
    own = _level_of(reading.peak_duty_high, limits) if reading.is_notable else 0
    return own if reading.far is None else max(own, _most(reading.far, limits))


def _level_of(duty: float, limits: Mapping[str, float]) -> int:
    return sum(min(1.0, duty * (1 + limits["margin"])) >= limits[name] for name in DUTY_LIMITS)


def stuck_anywhere(observed: Observed, sign: str, limits: Mapping[str, float]) -> Iterator[SignFinding]:
    """Does any egress of the fabric hardly ever move? Its coverage is the share of switch egress queues that were read.

    Unknown where only frames were counted and their bounds lie on both sides of the limit.
    """
    readings = observed.pause_graph.readings.values()
    if not readings:
        return
    worst = max(readings, key=lambda reading: (reading.busy_duty_low, reading.peak_duty_high, reading.queue))
    limit = limits["stuck_duty"]
    if worst.busy_duty_low >= limit or all(reading.peak_duty_high < limit for reading in readings):
        found = _finding(sign, worst, "present" if worst.busy_duty_low >= limit else "absent", limit)
        yield replace(
            found,
            scope=Scope.of(ScopeKind.FABRIC, "all"),
            coverage=_read_share(observed),
            spot=f"{worst.queue.parts[0]} {short_port(worst.queue.parts[1])}",
        )


def _read_share(observed: Observed) -> float:
    """Share of the lossless egress queues of all switches whose pausing was read, each by the time it was read."""
    topology = observed.topology
    ports = sum(len(ports) for device, ports in topology.ports_of.items() if topology.is_switch(device))
    read = sum(reading.coverage for reading in observed.pause_graph.readings.values())
    return min(1.0, read / max(1, ports * len(observed.lossless_classes)))


def host_initiators(observed: Observed, sign: str, limits: Mapping[str, float]) -> Iterable[SignFinding]:
    """Does a pause walk end at a host-facing port that is itself paused?

    Unknown where a host pauses but nothing upstream waits, and where none pauses: that is `paused_by_host`'s to say,
    and one counter is not two findings.
    """
    graph = observed.pause_graph
    for queue, reading in graph.readings.items():
        if not observed.topology.is_host_facing(queue.parts[0], queue.parts[1]):
            continue
        upstream = graph.upstream(queue)
        if queue in graph.paused and upstream:
            yield _finding(sign, reading, "present", limits["notable_duty"], {"upstream": str(len(upstream))})


def port_initiators(observed: Observed, sign: str, limits: Mapping[str, float]) -> Iterator[SignFinding]:
    """Does a pause walk end at a congested egress that nobody pauses (contention)?

    Unknown where nothing upstream waits.
    """
    graph = observed.pause_graph
    peaks = observed.signals("queue_peak_bytes")
    for queue, reading in graph.readings.items():
        peak = peaks.get((queue.parts[0], queue.parts[1], queue.parts[2]))
        if peak is None or peak["after_max"] is None or not graph.upstream(queue):
            continue
        kmin = observed.limit("ecn_kmin_bytes", queue.parts[0], queue.parts[1], limits["kmin"])
        congested = peak["after_max"] > kmin
        yield SignFinding(
            sign,
            queue,
            "present" if congested and queue not in graph.paused else "absent",
            observed=peak["after_max"],
            baseline=peak["before_max"],
            limit=kmin,
            unit="B",
            coverage=time_coverage(peak["after_coverage"]),
            records=(peak.extreme or peak.last, reading.record),
        )


def pauses_sent(observed: Observed, sign: str, limits: Mapping[str, float]) -> Iterator[SignFinding]:
    """Does a switch make any that send to it wait, switches or hosts, for longer than before?

    Unknown where some wait as long as before. Coverage is the share of its lossless ingresses that were read.
    """
    for device, ports in sorted(observed.topology.ports_of.items()):
        readings = observed.pause_graph.facing(device) if observed.topology.is_switch(device) else ()
        paused = [reading for reading in readings if reading.is_above_baseline]
        if not readings or (not paused and any(reading.is_notable for reading in readings)):
            continue
        worst = max(paused or readings, key=lambda reading: (reading.duty_high, reading.queue))
        read = sum(reading.seen_clean for reading in readings) / (len(ports) * len(observed.lossless_classes))
        yield replace(
            _finding(sign, worst, "present" if paused else "absent", limits["notable_duty"]),
            scope=Scope.of(ScopeKind.DEVICE, device),
            coverage=min(1.0, read),
            spot=f"{worst.queue.parts[0]} {short_port(worst.queue.parts[1])}",
        )


def pause_cycles(observed: Observed, sign: str, limits: Mapping[str, float]) -> Iterator[SignFinding]:
    """Is there a cycle of paused egress queues?

    One finding per cycle; without any, one absence for the fabric.
    """
    graph = observed.pause_graph
    for index, cycle in enumerate(graph.cycles, start=1):
        readings = [graph.readings[queue] for queue in cycle]
        yield SignFinding(
            sign,
            cycle_scope(cycle, index),
            "present",
            observed=100 * min(reading.duty_high for reading in readings),
            limit=100 * limits["notable_duty"],
            unit="% of time paused",
            records=tuple(reading.record for reading in readings),
            words={"ports": ", ".join(f"{queue.parts[0]} {queue.parts[1]}" for queue in cycle)},
        )
    if graph.readings:
        worst = max(graph.readings.values(), key=lambda reading: (reading.duty_high, reading.queue))
        yield SignFinding(
            sign,
            NO_CYCLE,
            "absent",
            observed=100 * worst.duty_high,
            baseline=100 * worst.baseline_high,
            limit=100 * limits["notable_duty"],
            unit="% of time paused at the most paused queue",
            coverage=_read_share(observed),
            records=(worst.record,),
            words={"ports": f"{len(graph.paused)} of {len(graph.readings)} queues paused above baseline"},
        )
