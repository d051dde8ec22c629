"""Which egress of an ECMP group overloads when its flows are spread anew: a member, the way back, or what lies behind a
member."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

from ..scope import Scope
from ..signals import Key, Signal
from ..topology import EcmpGroup, End, Topology
from .link_groups import UPLINKS

ALSO_HOT = 0.5
"""Share of the depth of a group's deepest queue from which another overloads as well (judgement)."""

DEEPENED = 2.0
"""How many times its own depth before the onset the queue behind a member must reach (judgement: as queue_depth)."""

MOST_ENDS = 3
"""Most overloaded egresses of one group (judgement: each couples one more place to the group's)."""

Heat = tuple[float, float]
"""Depth of the deepest lossless queue in bytes, load in bytes per second, both after the onset."""


class HotMembers:
    """The overloaded egresses of every group, around one onset."""

    def __init__(
        self,
        topology: Topology,
        signals: Callable[[str], Mapping[Key, Signal]],
        lossless_classes: frozenset[str],
        groups: Sequence[EcmpGroup],
    ) -> None:
        self._topology = topology
        self._signals = signals
        self._classes = sorted(lossless_classes)
        self._groups = groups

    def found(self) -> dict[Scope, tuple[End, ...]]:
        """The overloaded egresses of each group, the hottest first; a group of which nothing was read is left out.

        Of the installed members the one with the deepest lossless queue, by load where no queue was read. Where members
        left, what comes back over the links that remain is spread anew as well: the far ends count as members then. So
        do the other ways out of the devices behind them, where a queue deepened; each is the group's that sends most
        more there.
        """
        behind = self._behind()
        found = {}
        for group in self._groups:
            ends = [*_own(group), *(self._far(group) if _has_lost(group) else ())]
            heat = self._heats(ends)
            hot = self._heats(behind.get(group.scope, ()))
            if heat:
                hottest = max(heat, key=lambda end: heat[end])
                hot = {hottest: heat[hottest], **hot}
            ranked = sorted(hot, key=lambda end: hot[end], reverse=True)
            kept = [end for end in ranked if hot[end][0] >= ALSO_HOT * hot[ranked[0]][0] or not self._queues(end)]
            if kept:
                found[group.scope] = tuple(kept[:MOST_ENDS])
        return found

    def _behind(self) -> dict[Scope, list[End]]:
        """Ways out of the devices behind the members of groups that lost some, whose queues deepened."""
        changed = [group for group in self._groups if group.name == UPLINKS and _has_lost(group)]
        ways_back = {end for group in changed for end in self._far(group)}
        more: dict[str, dict[Scope, float]] = defaultdict(lambda: defaultdict(float))
        for group in changed:
            for port in group.after:
                peer = self._topology.peer(group.device, port)
                if peer is not None and self._topology.is_switch(peer[0]):
                    more[peer[0]][group.scope] += self._gained((group.device, port))
        found: dict[Scope, list[End]] = defaultdict(list)
        for device, gained in sorted(more.items()):
            sender = max(sorted(gained), key=lambda scope: gained[scope])
            for port in self._topology.ports_of.get(device, ()):
                end = (device, port)
                if self._topology.is_inter_switch(*end) and end not in ways_back and self._has_deepened(end):
                    found[sender].append(end)
        return found

    def _far(self, group: EcmpGroup) -> Iterator[End]:
        for end in _own(group):
            peer = self._topology.peer(*end)
            if peer is not None and self._topology.is_switch(peer[0]):
                yield peer

    def _queues(self, end: End) -> list[Signal]:
        peaks = self._signals("queue_peak_bytes")
        return [signal for one in self._classes if (signal := peaks.get((*end, one))) is not None]

    def _has_deepened(self, end: End) -> bool:
        return any(
            (after := queue["after_p95"]) is not None
            and (before := queue["before_p95"]) is not None
            and after > DEEPENED * before
            for queue in self._queues(end)
        )

    def _gained(self, end: End) -> float:
        """Bytes per second that a port carries more than before; 0 where it was not read on both sides."""
        load = self._signals("tx_bytes").get((*end, ""))
        before, after = (None, None) if load is None else (load["before_mean"], load["after_mean"])
        return 0.0 if before is None or after is None else after - before

    def _heats(self, ends: Iterable[End]) -> dict[End, Heat]:
        """Heat of the ends of which a queue or the load was read."""
        found = {}
        for end in ends:
            depth = max((queue["after_p95"] or 0.0 for queue in self._queues(end)), default=0.0)
            load = self._signals("tx_bytes").get((*end, ""))
            if load is not None or depth:
                found[end] = depth, 0.0 if load is None else load["after_mean"] or 0.0
        return found


def _own(group: EcmpGroup) -> list[End]:
    return [(group.device, port) for port in group.after]


def _has_lost(group: EcmpGroup) -> bool:
    return bool(set(group.before) - set(group.after))
