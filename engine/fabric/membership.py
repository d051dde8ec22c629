"""Which members an ECMP group has before and after the onset, and what changed that: from routes where they were
captured, from the links, their states, next-hop gauges and change records where not."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

from ..facts import Event, EventKind, Provenance
from ..scope import short_port
from ..signals import Signal, Split
from ..topology import SESSION_EVENTS, EcmpGroup, End, Topology
from .link_groups import UPLINKS, Tiers
from .link_states import LinkStates, was_read_on_both_sides
from .pause_graph import LineOf, SignalsOf

GAUGE_SHOWS = 0.95
"""Share of the changes of a group that a gauge of its next hops shows: all but those of the hash, which are rare
(judgement)."""

LOAD_SHOWS = 0.8
"""Share of the changes of a group that would have emptied a member: lost links and drains, not what changes for one
place behind the group, nor the hash (judgement)."""

LINK_STATE_SHOWS = 0.5
"""Share of the changes of a group that the states of its links show: a drain is about as frequent as a lost link
(judgement, as for the hazard of path.ecmp_redistribution)."""

STILL_CARRIES = 0.05
"""Share of its load before the onset from which a member still carries flows (judgement: control traffic of a drained
link is far below)."""


@dataclass(frozen=True, slots=True)
class Move:
    """A member left or joined a group, or what chooses among the members changed.

    `at` None: between two readings. `left` is how many members remain for what it concerns, None when unsaid. `port`
    is the member, None where the record names none.
    """

    at: float | None
    words: str
    records: tuple[Provenance, ...]
    left: int | None = None
    port: str | None = None


class Membership:
    """The ECMP groups of a fabric around one onset."""

    def __init__(self, topology: Topology, signals: SignalsOf, line: LineOf, split: Split) -> None:
        self._topology = topology
        self._signals = signals
        self._line = line
        self._split = split
        self._tiers = Tiers(topology)
        self._links = LinkStates(topology, signals, line, split)

    @cached_property
    def groups(self) -> tuple[EcmpGroup, ...]:
        """Groups of captured routes, and those of the links of every device of which no route was captured."""
        captured = {route.device for route in self._topology.routes}
        found = list(self._topology.ecmp_groups)
        for (device, name), ports in sorted(self._tiers.groups.items()):
            if device not in captured:
                before = tuple(port for port in ports if self._links.is_up((device, port), "start"))
                after = tuple(port for port in ports if self._links.is_up((device, port), "end"))
                counts = [signal["after_min"] for signal in self._gauges.get((device, name), ())]
                if counts and None not in counts:
                    after = self._busiest(device, after, int(max(count for count in counts if count is not None)))
                span = (self._split.start, self._split.end)
                found.append(EcmpGroup(device, name, ports, before, after, *span, known_by="links"))
        return tuple(found)

    def _busiest(self, device: str, ports: tuple[str, ...], count: int) -> tuple[str, ...]:
        """The ports that carry the most after the onset, as many as there are next hops: a drained link is up."""
        load = {
            port: (signal and signal["after_mean"]) or 0.0
            for port in ports
            for signal in (self._signals("tx_bytes").get((device, port, "")),)
        }
        kept = sorted(ports, key=lambda port: -load[port])[: max(count, 1)]
        return tuple(port for port in ports if port in kept)

    @cached_property
    def _gauges(self) -> Mapping[tuple[str, str], tuple[Signal, ...]]:
        """Next-hop gauges by the group of the device's links that they speak of: the one they name, or the uplinks."""
        groups = self._tiers.groups
        found: dict[tuple[str, str], list[Signal]] = defaultdict(list)
        for (device, _, name), signal in self._signals("ecmp_members").items():
            key = (device, name if (device, name) in groups else UPLINKS)
            found[key].append(signal)
        return {key: tuple(signals) for key, signals in found.items()}

    # -- what changed -------------------------------------------------------------------------------------------------

    def moves(self, group: EcmpGroup) -> tuple[Move, ...]:
        """All changes of a group that any record shows, in time order, those without a time last."""
        found = [*self._recorded(group)]
        if group.known_by == "routes":
            found.extend(self._captured(group, dated={move.port for move in found}))
        else:
            found.extend(self._lost_links(group))
            found.extend(self._counted(group))
        return tuple(sorted(found, key=lambda move: (move.at is None, move.at or 0.0, move.words)))

    def _captured(self, group: EcmpGroup, dated: set[str | None]) -> Iterator[Move]:
        """Members that are in one capture only; dated by the captures alone where no record tells when."""
        records = self._captures(group)
        for ports, others, verb in ((group.before, group.after, "left"), (group.after, group.before, "joined")):
            for port in ports:
                if port not in others and port not in dated:
                    yield Move(None, f"{short_port(port)} {verb}", records, len(group.after), port)

    def _captures(self, group: EcmpGroup) -> tuple[Provenance, ...]:
        """The first and last route record that show the group."""
        routes = sorted(
            (
                route
                for route in self._topology.routes
                if route.device == group.device
                and {self._topology.resolve_port(route.device, hop.interface) for hop in route.next_hops}
                & set(group.members)
                and len(route.next_hops) > 1
            ),
            key=lambda route: (route.at, route.prefix),
        )
        return () if not routes else tuple(dict.fromkeys((routes[0].provenance, routes[-1].provenance)))

    def _recorded(self, group: EcmpGroup) -> Iterator[Move]:
        """Session events of members, route and hash changes of the device."""
        for event in self._events.get(group.device, ()):
            if event.kind in SESSION_EVENTS:
                port = self._session_port(event)
                if port in group.members:
                    verb = "left" if event.kind is EventKind.SESSION_DOWN else "joined"
                    yield Move(event.at, f"{short_port(port)} {verb}", (event.provenance,), port=port)
            else:
                yield Move(event.at, event.statement, (event.provenance,))
        hashes = [one for one in self._topology.profiles if one.device == group.device and one.ecmp_hash is not None]
        for before, after in pairwise(hashes):
            if before.ecmp_hash != after.ecmp_hash:
                words = f"hash {before.ecmp_hash} became {after.ecmp_hash}"
                yield Move(None, words, (before.provenance, after.provenance))

    @cached_property
    def _events(self) -> Mapping[str, tuple[Event, ...]]:
        """Events that may change a group, by device."""
        found: dict[str, list[Event]] = defaultdict(list)
        for event in self._topology.events:
            if event.kind in (*SESSION_EVENTS, EventKind.ROUTE_CHANGE, EventKind.HASH_CHANGE):
                found[event.device].append(event)
        return {device: tuple(events) for device, events in found.items()}

    def _session_port(self, event: Event) -> str:
        named = self._topology.resolve_port(event.device, event.port) if event.port else None
        return named or self._topology.session_port(event.device, event.details.get("peer", "")) or ""

    def _lost_links(self, group: EcmpGroup) -> Iterator[Move]:
        """Members whose own link changed its state, and members whose neighbour lost or regained its link to a place:

        they change for that place only.
        """
        for port in group.members:
            for change in self._links.changes((group.device, port)):
                words = f"{short_port(port)} {'joined' if change.is_up else 'left'}"
                yield Move(change.at, words, (change.record,), len(group.after), port)
        if group.name == UPLINKS:
            for port, below in self._detours.get(group.device, ()):
                for change in self._links.changes(below):
                    words = f"{short_port(port)} {'joined' if change.is_up else 'left'} towards {below[0]}"
                    left = len(group.before) - (not change.is_up)
                    yield Move(change.at, words, (change.record,), left, port)

    @cached_property
    def _detours(self) -> Mapping[str, tuple[tuple[str, End], ...]]:
        """By device: its ports to a neighbour above that changed its last link to a device below, and the lower end of
        that link."""
        topology = self._topology
        found: dict[str, list[tuple[str, End]]] = defaultdict(list)
        for link in self._links.changed:
            below, above = sorted(topology.ends(link), key=lambda end: self._tiers.tier.get(end[0], 0))
            if not self._tiers.climbs(below) or self._has_another(below[0], above):
                continue
            for port in topology.ports_of[above[0]]:
                peer = topology.peer(above[0], port)
                if peer is not None and peer[0] != below[0] and self._tiers.climbs(peer):
                    found[peer[0]].append((peer[1], below))
        return {device: tuple(ends) for device, ends in found.items()}

    def _has_another(self, below: str, above: End) -> bool:
        """Whether a parallel link stays up."""
        ports = self._topology.ports_of[above[0]]
        others = [port for port in ports if port != above[1] and self._leads_to(above[0], port, below)]
        return any(self._links.is_up((above[0], port), "end") for port in others)

    def _leads_to(self, device: str, port: str, neighbour: str) -> bool:
        peer = self._topology.peer(device, port)
        return peer is not None and peer[0] == neighbour

    def _counted(self, group: EcmpGroup) -> Iterator[Move]:
        """Changes of the gauges of the group's next hops."""
        for signal in self._gauges.get((group.device, group.name), ()):
            device, port, name = signal.key
            if len({signal[column] for column in ("before_min", "before_max", "after_min", "after_max")} - {None}) < 2:
                continue
            line = self._line(device, port, name, "ecmp_members")
            for at, (before, after) in zip(line.times[1:].tolist(), pairwise(line.values.tolist()), strict=True):
                if before != after:
                    yield Move(at, f"{name}: {before:g} to {after:g} next hops", (signal.last,), int(after))

    # -- what would have shown a change -------------------------------------------------------------------------------

    def watched(self, group: EcmpGroup) -> float:
        """Share of the changes of a group near the onset that its readings would have shown, 0 to 1; 0: nothing was
        read on both sides of the onset."""
        if group.known_by == "routes":
            return float(self._spans_onset(group))
        gauges = self._gauges.get((group.device, group.name), ())
        if any(was_read_on_both_sides(signal, self._split) for signal in gauges):
            return GAUGE_SHOWS
        if all(self._still_carries(group.device, port) for port in group.before):
            return LOAD_SHOWS
        read = sum(self._links.is_watched((group.device, port), self._split) for port in group.members)
        return LINK_STATE_SHOWS * read / len(group.members)

    def _still_carries(self, device: str, port: str) -> bool:
        """Whether a member that carried flows before the onset does so behind it: it has not left the group."""
        signal = self._signals("tx_bytes").get((device, port, ""))
        before, after = (None, None) if signal is None else (signal["before_mean"], signal["after_mean"])
        return bool(before) and after is not None and after >= STILL_CARRIES * (before or 0.0)

    def _spans_onset(self, group: EcmpGroup) -> bool:
        """Whether routes were captured on both sides of the onset; without an onset, whether they were captured
        twice."""
        split = self._split
        if split.onset is None:
            return group.first_at < group.last_at
        return group.first_at <= split.onset - split.uncertainty_s and split.onset <= group.last_at

    def records(self, group: EcmpGroup) -> tuple[Provenance, ...]:
        """The records that show the group's members."""
        if group.known_by == "routes":
            return self._captures(group)
        gauges = self._gauges.get((group.device, group.name), ())
        if gauges:
            return (gauges[0].last,)
        return tuple(record for port in group.members for record in self._links.records((group.device, port)))[:2]
