"""What a pattern may look at: the fabric, the signals of the window, the events, and the split at the onset.

Signals are read once per metric and kept; nothing here judges.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property

from .fabric.hot_members import HotMembers
from .fabric.membership import Membership
from .fabric.pause_graph import PauseGraph
from .fabric.reactions import Reactions
from .facts import Event, EventKind, Provenance
from .scope import Scope
from .signals import COLUMNS, EVIDENCE_COLUMNS, Key, Signal, Split
from .steps.rank_timing import RankTiming
from .steps.step_bytes import StepBytes, step_bytes
from .steps.symptom import UNEXPLAINED
from .telemetry import Telemetry
from .topology import End, Topology

ALL_PRIORITIES = 8
"""Priorities of Ethernet (IEEE 802.1Q)."""

USUAL_PRIORITY = "3"
"""The RoCE priority of SONiC's and Cumulus' defaults."""


class Observed:
    """A fabric with its telemetry around one onset.

    `job` is the job that slowed, None for anomalies only; `unexplained` is the probability that it did so without any
    catalogued cause, in half an hour; `is_every_step_slower`: not only some steps, or one.
    """

    def __init__(
        self,
        topology: Topology,
        telemetry: Telemetry,
        split: Split,
        job: str | None,
        unexplained: float = UNEXPLAINED,
        is_every_step_slower: bool = False,
    ) -> None:
        self.topology = topology
        self.telemetry = telemetry
        self.split = split
        self.job = job
        self.unexplained = unexplained
        self.is_every_step_slower = is_every_step_slower
        self._signals: dict[str, dict[Key, Signal]] = {}

    def signals(self, metric: str) -> Mapping[Key, Signal]:
        """Signals of one metric by (device, port, qualifier), in sorted order."""
        if metric not in self._signals:
            self._signals[metric] = dict(self._read(metric))
        return self._signals[metric]

    def _read(self, metric: str) -> list[tuple[Key, Signal]]:
        numbers = [name for name in COLUMNS if name != "shape"]
        columns = ", ".join((*numbers, "shape", *EVIDENCE_COLUMNS))
        rows = self.telemetry.rows(
            f"SELECT device, port, qualifier, {columns} FROM signals WHERE metric = ? ORDER BY device, port, qualifier",
            (metric,),
        )
        found = []
        for row in rows:
            key, values = (
                (row[0], row[1], row[2]),
                dict(zip((*numbers, "shape", *EVIDENCE_COLUMNS), row[3:], strict=True)),
            )
            found.append(
                (
                    key,
                    Signal(
                        key,
                        {name: values[name] for name in numbers},
                        values["shape"],
                        self.record(values["max_source"], values["max_record"]),
                        self.record(values["last_source"], values["last_record"]) or self.telemetry.sources[0],
                    ),
                )
            )
        return found

    def record(self, source: int | None, line: int | None) -> Provenance | None:
        """The record of one sample: the series' own, or its line, with the words that say which value of the line."""
        if source is None:
            return None
        origin = self.telemetry.sources[int(source)]
        if not line:
            return origin
        words = origin.record.split(" ", 2)[2:]
        return Provenance(origin.source, " ".join(("line", str(int(line)), *words)), origin.adapter, origin.sha256)

    def limit(self, metric: str, device: str, port: str, otherwise: float) -> float:
        """A limit that the device's own profile sets for a port, as it was before the onset where that was read;
        `otherwise` where no profile was."""
        signal = self.signals(metric).get((device, port, ""))
        level = (
            None if signal is None else signal["after_p50"] if signal["before_p50"] is None else signal["before_p50"]
        )
        return otherwise if level is None else level

    @cached_property
    def lossless_classes(self) -> frozenset[str]:
        """Priorities with PFC counters; where a device prints all eight, those that ever paused and the usual one.

        Traffic class n is taken to carry priority n where no map of the device was read.
        Class 3 where no PFC counter was read at all: the usual RoCE class (SONiC and Cumulus defaults).
        """
        counted = [
            (key[2], signal)
            for metric in ("pfc_rx_pause_frames", "pfc_tx_pause_frames", "pfc_rx_pause_us", "pfc_tx_pause_us")
            for key, signal in self.signals(metric).items()
        ]
        found = frozenset(priority for priority, _ in counted)
        if len(found) == ALL_PRIORITIES:
            found = frozenset(p for p, signal in counted if signal["before_max"] or signal["after_max"])
            return found | {USUAL_PRIORITY}
        return found or frozenset({USUAL_PRIORITY})

    @cached_property
    def pause_graph(self) -> PauseGraph:
        """PFC readings and who waits for whom."""
        return PauseGraph(self.topology, self.signals, self.telemetry.line, self.lossless_classes)

    @cached_property
    def membership(self) -> Membership:
        """The ECMP groups, their members before and after, and what changed them."""
        return Membership(self.topology, self.signals, self.telemetry.line, self.split)

    @cached_property
    def hot_members(self) -> Mapping[Scope, tuple[End, ...]]:
        """The overloaded egresses of each ECMP group, the hottest first."""
        return HotMembers(self.topology, self.signals, self.lossless_classes, self.membership.groups).found()

    @cached_property
    def reactions(self) -> Reactions:
        """What each NIC does for congestion control."""
        return Reactions(self.topology, self.signals, self.sent, self.lossless_classes)

    @cached_property
    def rank_timing(self) -> RankTiming | None:
        """When the ranks of the job asked about enter and finish; None without a job or an onset."""
        if self.job is None or self.split.onset is None:
            return None
        return RankTiming(self.telemetry, self.split, self.job)

    @cached_property
    def step_bytes(self) -> StepBytes | None:
        """What a step of the job asked about sends, against before; None without a job or where too little tells."""
        if self.job is None:
            return None
        return step_bytes(self.telemetry, self.split, self.job, [self.sent(nic) for nic in self.job_nics])

    def sent(self, nic: End) -> Signal | None:
        """The bytes that a NIC sends, counted by itself or by its leaf; None where neither was read."""
        peer = self.topology.peer(*nic)
        taken_in = None if peer is None else self.signals("rx_bytes").get((*peer, ""))
        return self.signals("tx_bytes").get((*nic, ""), taken_in)

    @cached_property
    def job_nics(self) -> tuple[End, ...]:
        """NICs of the job's hosts; all NICs when its placement was not read."""
        hosts = set(self.topology.job_hosts(self.job)) if self.job else set()
        return tuple(nic for nic in self.topology.nics if not hosts or nic[0] in hosts)

    def events(self, kinds: tuple[EventKind, ...], start: float, end: float) -> tuple[Event, ...]:
        """Events of these kinds in [start, end], in time order."""
        return tuple(e for e in self.topology.events if e.kind in kinds and start <= e.at <= end)
