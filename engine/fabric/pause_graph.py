"""Who pauses whom: PFC readings of every switch egress, and the wait-for graph over them.

An edge goes from the paused egress queue to what it waits for. Direction is normalised here once: `pfc_rx_*` at X's
port towards Y means Y pauses X; `pfc_tx_*` at Y's port towards X says the same from the other end and stands in where
X was not read.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property

import networkx as nx
import numpy as np

from ..facts import Provenance
from ..findings import time_coverage
from ..scope import Scope, ScopeKind
from ..signals import Key, Signal
from ..telemetry import Line
from ..topology import DeviceRole, Topology, natural_order

SignalsOf = Callable[[str], Mapping[Key, Signal]]
"""Signals of a metric by place."""

LineOf = Callable[[str, str, str, str], Line]
"""The series of (device, port, qualifier, metric)."""

QUANTUM_BITS = 512
"""One pause quantum in bit times (IEEE 802.1Qbb)."""

MAX_QUANTA = 65535
"""Longest pause one frame can ask for, in quanta (IEEE 802.1Qbb)."""

NOTABLE_DUTY = 0.001
"""Share of time paused above which pausing is notable: below .1 % is normal (causal.md 4.3)."""

STUCK_DUTY = 0.5
"""Share of time paused from which a queue may be part of a deadlock whatever its course (judgement)."""

HELD_DUTY = 0.95
"""Share of a poll's interval from which a queue counts as paused all through it; less than 1 because a poll and the
counter it reads are not of the same moment (judgement)."""

HELD_SECONDS = 10.0
"""How long a queue must have been paused without a break, up to its last reading, to count as one that never releases,
however late in the window that began (facts.csv, pause_extreme: over 10 s; a watchdog waits for .2 to .4 s)."""
ABOVE_BASELINE = 3.0
"""How many times its own baseline pausing must reach to count as a change (judgement; marks use the same factor in
facts.csv)."""

MISSED_PAUSING = 0.03
"""Chance that the counter of one end stands still although its link is paused (causal.md 2.1: the strongest grade
leaves so much; 5.8: counters of some firmware are inert)."""

DEFAULT_SPEED_BPS = 400e9
"""Speed used for the longest pause of a frame where the port's speed was not read (judgement: the slowest common AI
fabric port)."""


@dataclass(frozen=True, slots=True)
class PauseReading:
    """Pausing of one egress queue.

    Duty is the share of time paused after the onset: measured where a duration counter exists, otherwise the bounds
    that the frame count allows (one frame pauses between nothing and the longest pause). A mean hides pausing that
    comes and goes: `busy_duty_low` is that of the busiest twentieth of the polls, `peak_duty_high` of the busiest.
    `held_s` is for how long up to its last reading the queue was paused without a break, 0 where no durations were
    counted. `far` is what the other end counted of the same pausing, None where only one end was read.
    """

    queue: Scope
    duty_high: float
    busy_duty_low: float
    peak_duty_high: float
    baseline_high: float
    coverage: float
    record: Provenance
    held_s: float = 0.0
    far: PauseReading | None = None

    @property
    def is_notable(self) -> bool:
        """Whether the queue is paused for longer than is normal, before the onset or after."""
        return max(self.duty_high, self.baseline_high) >= NOTABLE_DUTY

    @property
    def seen_clean(self) -> float:
        """How much the absence of pausing is worth, 0 to 1: the time it covers, and the chance that not every counter
        stood still. Two ends are two counters, of two devices."""
        own = self.coverage * (1 - MISSED_PAUSING)
        return own if self.far is None else 1 - (1 - own) * (1 - self.far.seen_clean)

    @property
    def is_stuck(self) -> bool:
        """Whether the queue hardly ever moves, or stopped moving and has not moved since: a deadlock's members do."""
        return self.duty_high >= STUCK_DUTY or self.held_s >= HELD_SECONDS

    @property
    def is_above_baseline(self) -> bool:
        return self.duty_high >= NOTABLE_DUTY and self.duty_high > ABOVE_BASELINE * self.baseline_high


class PauseGraph:
    """PFC readings of all switch egress queues of the lossless classes."""

    def __init__(self, topology: Topology, signals: SignalsOf, line: LineOf, lossless_classes: frozenset[str]) -> None:
        self._topology = topology
        self._signals = signals
        self._line = line
        self._classes = lossless_classes

    @cached_property
    def readings(self) -> dict[Scope, PauseReading]:
        """Readings by egress queue, in sorted order.

        A queue without a reading was not read from either end.
        """
        return {
            reading.queue: reading
            for priority in sorted(self._classes)
            for device, ports in sorted(self._topology.ports_of.items())
            if self._topology.role(device) is not DeviceRole.HOST
            for port in ports
            if (reading := self._read(device, port, priority)) is not None
        }

    def facing(self, device: str) -> tuple[PauseReading, ...]:
        """Readings of all that send to a device, hosts among them: who waits for it."""
        peers = [self._topology.peer(device, port) for port in self._topology.ports_of.get(device, ())]
        found = (self._read(*peer, priority) for peer in peers if peer for priority in sorted(self._classes))
        return tuple(reading for reading in found if reading is not None)

    def _read(self, device: str, port: str, priority: str) -> PauseReading | None:
        """The reading of the paused end, of the pauser's where that one was not read; times before mere frames."""
        own, far = (device, port, priority), (*(self._topology.peer(device, port) or ("", "")), priority)
        at_own = (self._timed(own, own, "pfc_rx_pause_us"), self._counted(own, own, "pfc_rx_pause_frames"))
        at_far = (self._timed(own, far, "pfc_tx_pause_us"), self._counted(own, far, "pfc_tx_pause_frames"))
        found = [reading for pair in zip(at_own, at_far, strict=True) for reading in pair if reading is not None]
        if not found:
            return None
        other = at_far if found[0] in at_own else at_own
        return replace(found[0], far=next((reading for reading in other if reading is not None), None))

    def _timed(self, queue: Key, key: Key, metric: str) -> PauseReading | None:
        """The reading of a counter of pause time."""
        signal = self._signals(metric).get(key)
        if signal is None or signal["after_mean"] is None:
            return None
        reading = self._reading(queue, signal, 1e-6, measured=True)
        return replace(reading, held_s=self._held(metric, key)) if reading.peak_duty_high >= HELD_DUTY else reading

    def _counted(self, queue: Key, key: Key, metric: str) -> PauseReading | None:
        """The reading of a counter of pause frames."""
        signal = self._signals(metric).get(key)
        if signal is None or signal["after_mean"] is None:
            return None
        longest = QUANTUM_BITS * MAX_QUANTA / self._speed(queue[0], queue[1])
        return self._reading(queue, signal, longest, measured=False)

    def _held(self, metric: str, key: Key) -> float:
        line = self._line(*key, metric)
        moving = np.nonzero(line.values * 1e-6 < HELD_DUTY)[0]
        since = line.times[moving[-1]] if len(moving) else line.times[0]
        return float(line.times[-1] - since)

    def _speed(self, device: str, port: str) -> float:
        signal = self._signals("speed_bps").get((device, port, ""))
        return (signal and (signal["after_p50"] or signal["before_p50"])) or DEFAULT_SPEED_BPS

    def _reading(
        self, own: tuple[str, str, str], signal: Signal, seconds_each: float, *, measured: bool
    ) -> PauseReading:
        def duty(column: str) -> float:
            return min((signal[column] or 0.0) * seconds_each, 1.0)

        return PauseReading(
            Scope.of(ScopeKind.QUEUE, *own),
            duty("after_mean"),
            duty("after_p95") if measured else 0.0,
            duty("after_max"),
            duty("before_mean"),
            time_coverage(signal["after_coverage"]),
            signal.extreme or signal.last,
        )

    @cached_property
    def paused(self) -> frozenset[Scope]:
        """Egress queues paused above their baseline."""
        return frozenset(queue for queue, reading in self.readings.items() if reading.is_above_baseline)

    def upstream(self, queue: Scope) -> tuple[Scope, ...]:
        """Paused egress queues that face the device of `queue`: its back-pressure can hold them."""
        device, port, priority = queue.parts
        return tuple(waiting for near, waiting in self._facing.get((device, priority), ()) if near != port)

    @cached_property
    def _facing(self) -> dict[tuple[str, str], list[tuple[str, Scope]]]:
        """Paused egress queues by the device that pauses them and the priority, each with that device's port."""
        found: dict[tuple[str, str], list[tuple[str, Scope]]] = defaultdict(list)
        for queue in self.paused:
            if peer := self._topology.peer(queue.parts[0], queue.parts[1]):
                found[(peer[0], queue.parts[2])].append((peer[1], queue))
        return {key: sorted(facing, key=lambda one: natural_order(one[0])) for key, facing in found.items()}

    @cached_property
    def waits_for(self) -> nx.DiGraph[Scope]:
        """Edges from a paused egress queue to the paused egress queues of the device that pauses it."""
        graph: nx.DiGraph[Scope] = nx.DiGraph()
        for queue in sorted(self.paused):
            graph.add_node(queue)
            for waiting in self.upstream(queue):
                graph.add_edge(waiting, queue)
        return graph

    @cached_property
    def knots(self) -> tuple[tuple[Scope, ...], ...]:
        """Strongly connected sets of the wait-for graph, stuck or not: inside one nobody can say who paused first."""
        return _closed_sets(self.waits_for)

    @cached_property
    def cycles(self) -> tuple[tuple[Scope, ...], ...]:
        """Strongly connected sets of queues that hardly ever move: each is one `cycle` place.

        Mild pausing both ways through a busy leaf is no deadlock.
        """
        stuck = [queue for queue in self.waits_for if self.readings[queue].is_stuck]
        return _closed_sets(self.waits_for.subgraph(stuck))


def _closed_sets(graph: nx.DiGraph[Scope]) -> tuple[tuple[Scope, ...], ...]:
    """Strongly connected sets of more than one queue, in sorted order."""
    components = nx.strongly_connected_components(graph)
    return tuple(sorted(tuple(sorted(component)) for component in components if len(component) > 1))


NO_CYCLE = Scope.of(ScopeKind.CYCLE, "none seen")
"""The residual place of a deadlock of which no cycle was seen."""


def cycle_scope(cycle: tuple[Scope, ...], index: int) -> Scope:
    """The place of the n-th pause cycle."""
    return Scope.of(ScopeKind.CYCLE, f"{index}: " + " > ".join(f"{queue.parts[0]} {queue.parts[1]}" for queue in cycle))
