"""Which links went down or came up within the window, by any source of either end: state, log, drops of a dead
link."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

from ..facts import EventKind, Provenance
from ..scope import Scope
from ..signals import Signal, Split
from ..topology import End, Topology
from .pause_graph import LineOf, SignalsOf


@dataclass(frozen=True, slots=True)
class LinkChange:
    """From `at` on the link is up or down."""

    at: float
    is_up: bool
    record: Provenance


class LinkStates:
    """Changes of the links of a fabric.

    A link of which nothing was read is taken to be up: that it is planned or seen
    by a neighbour is all that is known.
    """

    def __init__(self, topology: Topology, signals: SignalsOf, line: LineOf, split: Split) -> None:
        self._split = split
        self._topology = topology
        self._signals = signals
        self._line = line

    def changes(self, end: End) -> tuple[LinkChange, ...]:
        """Changes of the link at a port, in time order; each to the other state than before it."""
        link = self._topology.link(*end)
        return () if link is None else self._changes.get(link, ((), False))[0]

    @property
    def changed(self) -> tuple[Scope, ...]:
        """Links with a change, in sorted order."""
        return tuple(sorted(link for link, (changes, _) in self._changes.items() if changes))

    def is_up(self, end: End, when: Literal["start", "end"]) -> bool:
        """Whether the link at a port is up at the start or the end of the window."""
        link = self._topology.link(*end)
        changes, is_down_first = self._changes.get(link, ((), False)) if link else ((), False)
        return changes[-1].is_up if when == "end" and changes else not is_down_first

    @cached_property
    def _changes(self) -> Mapping[Scope, tuple[tuple[LinkChange, ...], bool]]:
        """(changes, whether it is down at the start) of the links with either."""
        told: dict[Scope, list[LinkChange]] = defaultdict(list)
        down_first: set[Scope] = set()
        for (device, port, _), signal in self._signals("oper_up").items():
            link = self._topology.link(device, port)
            if link is None or 0 not in (signal["before_min"], signal["after_min"]):
                continue
            line = self._line(device, port, "", "oper_up")
            states = [
                (at, bool(value))
                for at, value in zip(line.times.tolist(), line.values.tolist(), strict=True)
                if self._split.start <= at <= self._split.end
            ]
            if not states[0][1]:
                down_first.add(link)
            told[link] += [LinkChange(at, is_up, signal.last) for at, is_up in states]
        for event in self._topology.events:
            is_inside = self._split.start <= event.at <= self._split.end
            if event.kind in (EventKind.LINK_DOWN, EventKind.LINK_UP) and event.port and is_inside:
                link = self._topology.link(event.device, self._topology.resolve_port(event.device, event.port))
                if link is not None:
                    told[link].append(LinkChange(event.at, event.kind is EventKind.LINK_UP, event.provenance))
        for (device, port, _), signal in self._signals("link_down_drop_packets").items():
            link, since = self._topology.link(device, port), signal["first_above_ts"]
            if link is not None and link not in told and since is not None and not signal["before_delta"]:
                told[link].append(LinkChange(since, False, signal.extreme or signal.last))
        return {link: (_alternating(changes, link in down_first), link in down_first) for link, changes in told.items()}

    def is_watched(self, end: End, split: Split) -> bool:
        """Whether the state of the link at a port was read on both sides of the onset, at either end."""
        return any(was_read_on_both_sides(signal, split) for signal in self._states(end))

    def records(self, end: End) -> tuple[Provenance, ...]:
        """The last reading of the state of the link at a port."""
        return tuple(signal.last for signal in self._states(end))[:1]

    def _states(self, end: End) -> tuple[Signal, ...]:
        ends = (end, self._topology.peer(*end) or end)
        return tuple(signal for one in ends if (signal := self._signals("oper_up").get((*one, ""))) is not None)


def was_read_on_both_sides(signal: Signal, split: Split) -> bool:
    """Whether a series has samples before and after the onset; without an onset, two samples."""
    before, after = signal["before_n"] or 0, signal["after_n"] or 0
    return after > 1 if split.onset is None else before > 0 and after > 0


def _alternating(told: list[LinkChange], is_down_first: bool) -> tuple[LinkChange, ...]:
    """What the readings of one link tell, each change once: readings of the state it is in already change nothing."""
    found: list[LinkChange] = []
    is_up = not is_down_first
    for change in sorted(told, key=lambda change: (change.at, change.is_up)):
        if change.is_up is not is_up:
            found.append(change)
            is_up = change.is_up
    return tuple(found)
