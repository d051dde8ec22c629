"""Job signs: was the job changed, and was its network idle while it was slow?"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import pairwise
from statistics import median

from ..facts import EventKind
from ..findings import SignFinding
from ..observed import Observed
from ..scope import Scope, ScopeKind, short_port
from ..signals import Signal
from ..topology import End

ENOUGH_QUEUES = 0.5
"""Share of the job's queues that must have been read before their network is called idle (judgement: the leaves of a
two-tier fabric are two thirds)."""

LOSS_METRICS = ("nak_received", "ack_timeouts", "out_of_sequence")
"""NIC counters that rise when packets are lost on the way."""

LEAST_LOSSES = 10
"""Events at one NIC after the onset that count as loss, when they are also three times as frequent as before it
(judgement; facts.csv uses the same factor)."""


def job_restarted(observed: Observed, sign: str, limits: Mapping[str, float]) -> Iterator[SignFinding]:
    """Did the job start, restart or change near the onset?

    A running allocation cannot change its image, placement or world size. Steps without a break do not show that
    nothing changed: data and batches may, while the job runs.
    """
    split = observed.split
    placement = observed.topology.jobs.get(observed.job or "")
    if placement is None or split.onset is None:
        return
    earliest, latest = split.onset - split.uncertainty_s - limits["before_s"], split.onset + split.uncertainty_s
    events = observed.events((EventKind.JOB_CHANGE,), earliest, latest)
    changes = [change for change in events if change.device in (placement.job, *placement.hosts)]
    started_near = placement.start is not None and earliest <= placement.start <= latest
    still = None if started_near or changes else _standstill(observed, placement.job, limits["still_steps"])
    # Without a start only a change can tell: a log that names none may not cover the job.
    since = placement.start if placement.start is not None else max((change.at for change in changes), default=None)
    if still is not None:
        since = still.at
    if since is None:
        return
    record = None if still is None else observed.record(still.source, still.record)
    yield SignFinding(
        sign,
        Scope.of(ScopeKind.JOB, placement.job),
        "present" if started_near or changes or still else "absent",
        observed=(split.onset - since) / 3600,
        limit=limits["before_s"] / 3600,
        unit="h from job start to onset",
        records=(*([record] if record else ()), *(change.provenance for change in changes), placement.provenance),
        words={
            "what": "started or changed" if still is None else f"stood still for {still.seconds:.0f} s from",
            "when": f"{abs(split.onset - since):.0f} s {'before' if since <= split.onset else 'after'}",
        },
    )


@dataclass(frozen=True, slots=True)
class _Standstill:
    """A job without a step under way, from `at` on; `source` and `record` are those of the step behind it."""

    at: float
    seconds: float
    source: int
    record: int


def _standstill(observed: Observed, job: str, steps: float) -> _Standstill | None:
    """The time around the onset in which the job ran no step, when it is that many usual steps long and twice as long
    as any before: longer than a pause for a checkpoint, so the job was started anew."""
    split = observed.split
    assert split.onset is not None
    rows = observed.telemetry.rows(
        "SELECT ts - value, ts, value, source, record FROM samples "
        "WHERE metric = 'step_seconds' AND value > 0 AND device = ? AND ts - value <= ? ORDER BY ts",
        (job, split.onset + split.uncertainty_s),
    )
    breaks = [
        _Standstill(ended, begin - ended, source, record)
        for (_, ended, *_), (begin, _, _, source, record) in pairwise(rows)
    ]
    near = [one for one in breaks if one.at >= split.onset - split.uncertainty_s]
    usual = median([row[2] for row in rows]) if rows else 0.0
    longest = max((one.seconds for one in breaks if one.at < split.onset - split.uncertainty_s), default=0.0)
    found = max(near, key=lambda one: one.seconds, default=None)
    return found if found and found.seconds >= max(steps * usual, 2 * longest) else None


def paths_idle(observed: Observed, sign: str, limits: Mapping[str, float]) -> Iterator[SignFinding]:
    """Was the job's network no busier than before, without a new queue, pause or loss, while the job was slow?

    A queue that stood as high before the onset says nothing about this slowdown; a new one is enough for no. Yes needs
    queue watermarks, because an average hides bursts, and of at least half the queues the job may cross: without them
    the answer is unknown.
    """
    if observed.job is None or observed.split.onset is None:
        return
    scope = Scope.of(ScopeKind.JOB, observed.job)
    busiest: Signal | None = None
    read: set[End] = set()
    for key, signal in observed.signals("queue_peak_bytes").items():
        if key[2] in observed.lossless_classes and signal["after_p50"] is not None:
            if not observed.topology.crosses(observed.job, key[0]):
                continue
            read.add((key[0], key[1]))
            if busiest is None or _load_of(signal, observed, limits) > _load_of(busiest, observed, limits):
                busiest = signal
    if busiest is None:
        return
    kmin = observed.limit("ecn_kmin_bytes", busiest.key[0], busiest.key[1], limits["kmin"])
    has_risen, depth = _load_of(busiest, observed, limits)
    crossed = _crossed_ports(observed, observed.job)
    is_paused = any((queue.parts[0], queue.parts[1]) in crossed for queue in observed.pause_graph.paused)
    is_busy = has_risen or is_paused or _lost_packets(observed)
    if not is_busy and len(read & crossed) < ENOUGH_QUEUES * len(crossed):
        return
    yield SignFinding(
        sign,
        scope,
        "absent" if is_busy else "present",
        observed=depth,
        baseline=busiest["before_p50"],
        limit=kmin,
        unit="B",
        records=(busiest.extreme or busiest.last,),
        words={"port": f"{busiest.key[0]} {short_port(busiest.key[1])}"},
    )


def _load_of(signal: Signal, observed: Observed, limits: Mapping[str, float]) -> tuple[bool, float]:
    """Whether a queue rose above Kmin at the onset, and its median peak after it."""
    depth = signal["after_p50"] or 0.0
    kmin = observed.limit("ecn_kmin_bytes", signal.key[0], signal.key[1], limits["kmin"])
    return depth > kmin and depth > limits["rise"] * (signal["before_p50"] or 0.0), depth


def _crossed_ports(observed: Observed, job: str) -> frozenset[End]:
    """Switch ports on links that bytes of the job may cross."""
    topology = observed.topology
    return frozenset(
        (device, port)
        for device, ports in topology.ports_of.items()
        if topology.is_switch(device) and topology.crosses(job, device)
        for port in ports
        if (peer := topology.peer(device, port)) is not None and topology.crosses(job, peer[0])
    )


def _lost_packets(observed: Observed) -> bool:
    """Whether packets of a NIC of the job were lost more often after the onset than before."""
    nics = set(observed.job_nics)
    return any(
        key[:2] in nics
        and (signal["after_delta"] or 0.0) >= LEAST_LOSSES
        and (signal["after_mean"] or 0.0) > 3 * (signal["before_mean"] or 0.0)
        for metric in LOSS_METRICS
        for key, signal in observed.signals(metric).items()
    )
