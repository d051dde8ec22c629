"""The fabric as a graph, built from facts: devices and their roles, links, rails, ECMP groups, and what a job touches.

Links are what neighbours say (observed) and, where nobody says anything, what the cabling plan says (intended). Names
are made canonical here: MACs, netdevs and short names resolve to one port name per device. Nothing is guessed: a link
end that cannot be resolved stays unlinked.
"""

from __future__ import annotations

import math
import re
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import cached_property
from typing import Literal

import networkx as nx

from .fabric.cohorts import Cohort, cohorts
from .facts import (
    Cable,
    Event,
    EventKind,
    Fact,
    FirmwareState,
    InterfaceAlias,
    JobPlacement,
    QosProfile,
    RouteState,
    Series,
)
from .metrics import METRICS
from .scope import Scope, ScopeKind, link_scope

End = tuple[str, str]
"""A port: (device, port name)."""

HOST_SCOPES = (ScopeKind.NIC, ScopeKind.GPU, ScopeKind.HOST)
"""Where metrics are counted that only hosts have."""

_MAC = re.compile(r"^([0-9a-f]{2}[:.-]?){5}[0-9a-f]{2}$|^([0-9a-f]{4}\.){2}[0-9a-f]{4}$", re.IGNORECASE)


class DeviceRole(StrEnum):
    """HOST has NICs and runs jobs, LEAF has hosts below it, SPINE only switches around it."""

    HOST = "host"
    LEAF = "leaf"
    SPINE = "spine"


@dataclass(frozen=True, slots=True)
class EcmpGroup:
    """Next hops that share a prefix on a device.

    `members` are all ports seen in it during the window, `before` and `after` those of the first and the last route
    capture, read at `first_at` and `last_at` (the same time when there is one capture only). Known by links: no route
    of the device was read, the members are its links that lead the same way, and the times those of the window.
    """

    device: str
    name: str
    members: tuple[str, ...]
    before: tuple[str, ...]
    after: tuple[str, ...]
    first_at: float
    last_at: float
    known_by: Literal["routes", "links"] = "routes"

    @property
    def scope(self) -> Scope:
        return Scope.of(ScopeKind.ECMP, self.device, self.name)


class Topology:
    """Built once from the facts of a bundle, whatever order they come in; every lookup is by canonical name and answers
    in sorted order."""

    def __init__(self, facts: Iterable[Fact]) -> None:
        self._aliases: dict[End, str] = {}
        self.cables: list[Cable] = []
        self.routes: list[RouteState] = []
        self.firmware: list[FirmwareState] = []
        self.profiles: list[QosProfile] = []
        self.events: list[Event] = []
        self.jobs: dict[str, JobPlacement] = {}
        self._counting_hosts: set[str] = set()
        for fact in facts:
            match fact:
                case InterfaceAlias(device=device, alias=alias, port=port) if alias != port:
                    key = (device, alias.lower())
                    self._aliases[key] = min(port, self._aliases.get(key, port))
                case Cable():
                    self.cables.append(fact)
                case RouteState():
                    self.routes.append(fact)
                case FirmwareState():
                    self.firmware.append(fact)
                case QosProfile():
                    self.profiles.append(fact)
                case Event():
                    self.events.append(fact)
                case JobPlacement(job=job):
                    self.jobs[job] = max(fact, self.jobs.get(job, fact), key=_latest_start)
                case Series(device=device, metric=metric):
                    if metric in METRICS and METRICS[metric].scope in HOST_SCOPES:
                        self._counting_hosts.add(device)
                case InterfaceAlias():
                    pass
        self.cables.sort(key=lambda c: (c.a_device, c.a_port, c.b_device, c.b_port, c.provenance.source))
        self.routes.sort(key=lambda r: (r.device, r.prefix, r.at, r.provenance.source, r.provenance.record))
        self.profiles.sort(key=lambda p: (p.device, p.at, p.provenance.source, p.provenance.record))
        self.events.sort(key=lambda event: (event.at, event.device, event.port, event.kind, event.statement))
        self.graph: nx.Graph[str] = nx.Graph()
        self._peers: dict[End, End] = {}
        self.intended: dict[End, End] = {}
        self._crossed: dict[tuple[str, ...], frozenset[str]] = {}
        self._build_links()

    def resolve_port(self, device: str, port: str) -> str:
        """The canonical name of a port; aliases are followed (MAC -> netdev -> RDMA device), an unknown name is its
        own."""
        names = [port]
        while (target := self._aliases.get((device, names[-1].lower()))) is not None:
            if target in names:
                # Names that stand for each other in a circle are one port: any of them leads to the same name.
                return min(names[names.index(target) :])
            names.append(target)
        return names[-1]

    def _build_links(self) -> None:
        planned = [self.cable_ends(cable) for cable in self.cables if cable.kind == "intended"]
        for end_a, end_b in planned:
            self.intended[end_a], self.intended[end_b] = end_b, end_a
        observed = [self.cable_ends(cable) for cable in self.cables if cable.kind == "observed"]
        # What a neighbour says wins; the plan only fills ends that nobody spoke for.
        for ends in (observed, planned):
            for end_a, end_b in ends:
                if end_a not in self._peers and end_b not in self._peers:
                    self._peers[end_a], self._peers[end_b] = end_b, end_a
        for end, peer in self._peers.items():
            self.graph.add_edge(end[0], peer[0])

    def cable_ends(self, cable: Cable) -> tuple[End, End]:
        """Both ends of a cable by canonical name; a neighbour that gave a MAC nobody names gets the port that the plan
        has for it, where the plan has a link to that device."""
        end_a = (cable.a_device, self.resolve_port(cable.a_device, cable.a_port))
        end_b = (cable.b_device, self.resolve_port(cable.b_device, cable.b_port))
        planned = self.intended.get(end_a)
        if cable.kind == "observed" and planned and planned[0] == end_b[0] and _MAC.match(end_b[1]):
            return end_a, planned
        return end_a, end_b

    @cached_property
    def hosts(self) -> tuple[str, ...]:
        """Devices that run jobs, have NIC, GPU or host counters or NIC firmware, or are the host end in the plan."""
        named = {host for job in self.jobs.values() for host in (*job.hosts, *job.targets)}
        named |= {state.device for state in self.firmware}
        named |= self._counting_hosts
        return tuple(sorted(named | self._planned_hosts(named)))

    def _planned_hosts(self, named: set[str]) -> set[str]:
        """The host side of the plan's leaf-host cables: not the side that the plan also links to other switches or, of
        a lone switch, the side with more devices."""
        switches = {
            device for cable in self.cables if cable.role == "leaf-spine" for device in (cable.a_device, cable.b_device)
        }
        access: nx.Graph[str] = nx.Graph(
            (cable.a_device, cable.b_device) for cable in self.cables if cable.role == "leaf-host"
        )
        found: set[str] = set()
        for component in nx.connected_components(access):
            part = access.subgraph(component)
            if not nx.is_bipartite(part):
                found |= component - switches
                continue
            first, second = nx.bipartite.sets(part)
            found |= min(
                (first, second), key=lambda side: (len(side & switches) - len(side & named), -len(side), min(side))
            )
        return {device for device in found if device in self.graph}

    def role(self, device: str) -> DeviceRole | None:
        """Role of a device by its neighbours; None for a device without links."""
        if device in self._host_set:
            return DeviceRole.HOST
        if device not in self.graph:
            return None
        return DeviceRole.LEAF if any(n in self._host_set for n in self.graph.neighbors(device)) else DeviceRole.SPINE

    @cached_property
    def _host_set(self) -> frozenset[str]:
        return frozenset(self.hosts)

    @cached_property
    def leaves(self) -> tuple[str, ...]:
        return tuple(sorted(d for d in self.graph.nodes if self.role(d) is DeviceRole.LEAF))

    @cached_property
    def ports_of(self) -> dict[str, tuple[str, ...]]:
        """Linked ports of each device, in natural order of their numbers."""
        found: dict[str, list[str]] = defaultdict(list)
        for device, port in self._peers:
            found[device].append(port)
        return {device: tuple(sorted(ports, key=natural_order)) for device, ports in found.items()}

    def peer(self, device: str, port: str) -> End | None:
        """The other end of the link at a port; None where no link is known."""
        return self._peers.get((device, port))

    def link(self, device: str, port: str) -> Scope | None:
        """The link at a port; None where no link is known."""
        peer = self.peer(device, port)
        return None if peer is None else link_scope((device, port), peer)

    @cached_property
    def links(self) -> tuple[Scope, ...]:
        return tuple(sorted({link_scope(end, peer) for end, peer in self._peers.items()}))

    @staticmethod
    def ends(link: Scope) -> tuple[End, End]:
        """Both ports of a link scope."""
        return (link.parts[0], link.parts[1]), (link.parts[2], link.parts[3])

    def is_host(self, device: str) -> bool:
        """Whether a device runs jobs or carries NICs."""
        return device in self._host_set

    def is_switch(self, device: str) -> bool:
        """Whether a device has links and is no host."""
        return device in self.graph and device not in self._host_set

    def is_host_facing(self, device: str, port: str) -> bool:
        """Whether a switch port faces a host."""
        peer = self.peer(device, port)
        return peer is not None and device not in self._host_set and peer[0] in self._host_set

    def is_inter_switch(self, device: str, port: str) -> bool:
        peer = self.peer(device, port)
        return peer is not None and device not in self._host_set and peer[0] not in self._host_set

    @cached_property
    def nics(self) -> tuple[End, ...]:
        """All linked NICs of hosts."""
        return tuple((host, nic) for host in self.hosts for nic in self.ports_of.get(host, ()))

    @cached_property
    def rails(self) -> dict[str, tuple[End, ...]]:
        """NICs of each rail: the NICs with the same name (index) on every host, when at least two hosts have it.

        Key: the NIC's name.
        """
        found: dict[str, list[End]] = defaultdict(list)
        for host, nic in self.nics:
            found[nic].append((host, nic))
        return {
            name: tuple(ends)
            for name, ends in sorted(found.items(), key=lambda item: natural_order(item[0]))
            if len(ends) > 1
        }

    def rail_of(self, device: str, port: str) -> Scope | None:
        """The rail a port carries: a NIC's own, a leaf's when all its hosts attach with the same NIC, a spine port's
        from the leaf it faces."""
        if device in self._host_set:
            return Scope.of(ScopeKind.RAIL, port) if port in self.rails else None
        if self.role(device) is DeviceRole.SPINE:
            peer = self.peer(device, port)
            return None if peer is None else self._leaf_rails.get(peer[0])
        return self._leaf_rails.get(device)

    @cached_property
    def _leaf_rails(self) -> dict[str, Scope]:
        """The rail of each leaf whose hosts all attach with the same NIC."""
        names: dict[str, set[str]] = defaultdict(set)
        for host, nic in self.nics:
            if (peer := self.peer(host, nic)) and peer[0] not in self._host_set:
                names[peer[0]].add(nic)
        return {leaf: Scope.of(ScopeKind.RAIL, *found) for leaf, found in names.items() if len(found) == 1}

    @cached_property
    def ecmp_groups(self) -> tuple[EcmpGroup, ...]:
        """Groups of two or more next hops, one per distinct set of ports on a device.

        The widest group that faces only switches is `uplinks`.
        """
        history: dict[tuple[str, str], list[RouteState]] = defaultdict(list)
        for route in self.routes:
            history[(route.device, route.prefix)].append(route)
        found: dict[tuple[str, tuple[str, ...], tuple[str, ...]], list[str]] = defaultdict(list)
        times: dict[tuple[str, tuple[str, ...], tuple[str, ...]], list[float]] = defaultdict(list)
        for (device, prefix), states in history.items():
            before, after = (self._members(device, state) for state in (states[0], states[-1]))
            if max(len(before), len(after)) > 1:
                found[(device, before, after)].append(prefix)
                times[(device, before, after)] += [states[0].at, states[-1].at]
        by_device: dict[str, list[EcmpGroup]] = defaultdict(list)
        for (device, before, after), prefixes in sorted(found.items()):
            members = tuple(sorted({*before, *after}, key=natural_order))
            read = times[(device, before, after)]
            by_device[device].append(EcmpGroup(device, min(prefixes), members, before, after, min(read), max(read)))
        return tuple(group for groups in by_device.values() for group in _named(groups, self))

    def _members(self, device: str, route: RouteState) -> tuple[str, ...]:
        ports = {self.resolve_port(device, hop.interface) for hop in route.next_hops}
        return tuple(sorted(ports, key=natural_order))

    @cached_property
    def cohorts(self) -> tuple[Cohort, ...]:
        """NICs by the driver and firmware version they were last seen with, or that was last loaded."""
        return cohorts(self.firmware, self.events, self.nics, self.resolve_port)

    def session_port(self, device: str, peer_address: str) -> str | None:
        """The port behind a neighbour's address, from the next hops of the device's routes; None when no route names
        it."""
        for route in self.routes:
            if route.device == device:
                for hop in route.next_hops:
                    if hop.address == peer_address:
                        return self.resolve_port(device, hop.interface)
        return None

    def job_hosts(self, job: str) -> tuple[str, ...]:
        """Hosts of a job and those that receive its bytes; empty when its placement was not read."""
        placement = self.jobs.get(job)
        return () if placement is None else tuple(dict.fromkeys((*placement.hosts, *placement.targets)))

    def tenant(self, job: str) -> str | None:
        """Who a job belongs to; None when no record says."""
        placement = self.jobs.get(job)
        return None if placement is None else placement.tenant

    def model(self, job: str) -> str | None:
        """What a job trains; None when no record says."""
        placement = self.jobs.get(job)
        return None if placement is None else placement.model

    def crosses(self, job: str, device: str) -> bool:
        """Whether bytes of a job can cross a device: it is one of its hosts, a leaf above one, a switch next to such a
        leaf, or one above that.

        Without a placement, or with one that names no host of the fabric, every device may be crossed: nothing is
        acquitted for lack of a job record.
        """
        hosts = self.job_hosts(job)
        if hosts not in self._crossed:
            self._crossed[hosts] = self._devices_between(hosts)
        crossed = self._crossed[hosts]
        return not crossed or device in crossed

    def _devices_between(self, hosts: tuple[str, ...]) -> frozenset[str]:
        linked = [host for host in hosts if host in self.graph]
        if not linked:
            return frozenset()
        leaves = {switch for host in linked for switch in self.graph.neighbors(host) if not self.is_host(switch)}
        crossed = {*hosts, *leaves}
        waiting = sorted(leaves)
        while waiting:
            for above in self.graph.neighbors(waiting.pop()):
                if above not in crossed and not self.is_host(above):
                    crossed.add(above)
                    if self.role(above) is DeviceRole.SPINE:
                        waiting.append(above)
        return frozenset(crossed)


def natural_order(name: str) -> tuple[tuple[int, int | str], ...]:
    """Sort key under which Ethernet9 comes before Ethernet12."""
    parts: list[tuple[int, int | str]] = []
    digits = ""
    for character in name + "\0":
        if character.isdigit():
            digits += character
            continue
        if digits:
            parts.append((0, int(digits)))
            digits = ""
        parts.append((1, character))
    return tuple(parts)


def _named(groups: Sequence[EcmpGroup], topology: Topology) -> list[EcmpGroup]:
    upward = [group for group in groups if all(topology.is_inter_switch(group.device, port) for port in group.members)]
    widest = max(upward, key=lambda group: len(group.members), default=None)
    return [replace(group, name="uplinks") if group is widest else group for group in groups]


def _latest_start(placement: JobPlacement) -> tuple[float, str, tuple[str, ...]]:
    """A job that was placed again runs where it was placed last."""
    return -math.inf if placement.start is None else placement.start, placement.job_id, placement.hosts


SESSION_EVENTS = (EventKind.SESSION_DOWN, EventKind.SESSION_UP)
