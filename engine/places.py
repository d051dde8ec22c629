"""Where causes can be, what lies around a place, which block a place is summed in, and how places are named in
results."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator
from functools import cached_property

from .fabric.pause_graph import NO_CYCLE, cycle_scope
from .observed import Observed
from .results import Place
from .rules import Relation
from .scope import Scope, ScopeKind, short_port
from .topology import End

HOLDING_DEPTH = 0.1
"""Share of the deepest queue of a device from which another of its queues may also fill the buffer (judgement)."""


class Places:
    """Places of one fabric around one onset.

    Every answer is in sorted order.
    """

    def __init__(self, observed: Observed) -> None:
        self._observed = observed
        self._topology = observed.topology
        self._groups = {group.scope: group for group in observed.membership.groups}
        self._cohorts = {cohort.scope: cohort for cohort in self._topology.cohorts}
        self._known: dict[tuple[Scope, Relation], tuple[Scope, ...]] = {}

    # -- where causes can be ------------------------------------------------------------------------------------------

    def instances(self, kind: ScopeKind) -> tuple[Scope, ...]:
        """Places of a kind where a cause may sit: those the job's bytes can cross, all of them without a job."""
        return self._instances.get(kind, ())

    def elsewhere(self, kind: ScopeKind) -> tuple[Scope, ...]:
        """Places of a kind that no byte of the job crosses: what is wrong there did not slow it."""
        near = set(self.instances(kind))
        return tuple(scope for scope in self._everywhere.get(kind, ()) if scope not in near)

    @cached_property
    def _instances(self) -> dict[ScopeKind, tuple[Scope, ...]]:
        job = self._observed.job
        return (
            self._everywhere if job is None else self._places_where(lambda device: self._topology.crosses(job, device))
        )

    @cached_property
    def _everywhere(self) -> dict[ScopeKind, tuple[Scope, ...]]:
        return self._places_where(lambda device: True)

    def _places_where(self, crossed: Callable[[str], bool]) -> dict[ScopeKind, tuple[Scope, ...]]:
        topology, job = self._topology, self._observed.job
        hosts = [host for host in topology.hosts if crossed(host)]
        switches = [device for device in sorted(topology.ports_of) if topology.is_switch(device) and crossed(device)]
        queues = [
            Scope.of(ScopeKind.QUEUE, device, port, traffic_class)
            for device in switches
            for port in topology.ports_of[device]
            for traffic_class in sorted(self._observed.lossless_classes)
            if crossed((topology.peer(device, port) or ("", ""))[0])
        ]
        nics = [Scope.of(ScopeKind.NIC, *end) for end in topology.nics if crossed(end[0])]
        cycles = [
            cycle_scope(cycle, n)
            for n, cycle in enumerate(self._observed.pause_graph.cycles, start=1)
            if any(crossed(queue.device) for queue in cycle)
        ]
        return {
            ScopeKind.ECMP: tuple(sorted(scope for scope in self._groups if crossed(scope.device))),
            ScopeKind.LINK: tuple(link for link in topology.links if crossed(link.parts[0]) and crossed(link.parts[2])),
            ScopeKind.QUEUE: tuple(sorted(queues)),
            ScopeKind.NIC: tuple(sorted(nics)),
            ScopeKind.HOST: tuple(Scope.of(ScopeKind.HOST, host) for host in hosts),
            ScopeKind.DEVICE: tuple(Scope.of(ScopeKind.DEVICE, device) for device in switches),
            ScopeKind.COHORT: tuple(
                sorted(scope for scope, cohort in self._cohorts.items() if any(crossed(host) for host in cohort.hosts))
            ),
            ScopeKind.CYCLE: tuple(sorted((*cycles, NO_CYCLE))) if switches else (),
            ScopeKind.JOB: (Scope.of(ScopeKind.JOB, job),) if job else (),
        }

    def is_host_facing(self, queue: Scope) -> bool:
        return self._topology.is_host_facing(queue.parts[0], queue.parts[1])

    # -- what lies around a place -------------------------------------------------------------------------------------

    def related(self, scope: Scope, relation: Relation) -> tuple[Scope, ...]:
        """The places a relation leads to from a place; empty where there is none."""
        if relation is Relation.SELF:
            return (scope,)
        key = (scope, relation)
        if key not in self._known:
            self._known[key] = tuple(sorted(set(self._related(scope, relation))))
        return self._known[key]

    def _related(self, scope: Scope, relation: Relation) -> Iterator[Scope]:
        topology = self._topology
        match relation:
            case Relation.LINK:
                if link := topology.link(scope.parts[0], scope.parts[1]):
                    yield link
            case Relation.PORTS:
                for device, port in self.ports(scope):
                    yield Scope.of(ScopeKind.PORT, device, port)
            case Relation.EGRESS_QUEUES:
                for device, port in self.ports(scope):
                    if topology.is_switch(device):
                        yield from self._queues(device, port)
            case Relation.DEEPEST_QUEUE:
                yield from self._deepest_queue(scope)
            case Relation.HOT_MEMBER_QUEUE | Relation.HOT_MEMBER_PORT | Relation.HOT_MEMBER_LINK:
                yield from self._hot_members(scope, relation)
            case Relation.GROUPS_OVER_LINK:
                yield from self._groups_over(scope)
            case Relation.LEAF_PORT | Relation.LEAF_QUEUE:
                peer = topology.peer(scope.parts[0], scope.parts[1])
                if peer is not None and relation is Relation.LEAF_PORT:
                    yield Scope.of(ScopeKind.PORT, *peer)
                elif peer is not None:
                    yield from self._queues(*peer)
            case Relation.OVERRUN_QUEUE:
                overrun = self._observed.reactions.overrun((scope.parts[0], scope.parts[1]))
                if overrun is not None and (peer := topology.peer(*overrun)) is not None:
                    yield from self._queues(*peer)
            case Relation.NICS:
                yield from self._nics(scope)
            case Relation.RAIL:
                for device, port in self.ports(scope):
                    if rail := topology.rail_of(device, port):
                        yield rail
            case Relation.JOBS:
                if self._observed.job:
                    yield Scope.of(ScopeKind.JOB, self._observed.job)
            case Relation.PAUSED_UPSTREAM:
                yield from self._observed.pause_graph.upstream(scope)
            case Relation.PAUSE_CYCLES:
                for cycle in self.instances(ScopeKind.CYCLE):
                    if any(device == scope.device for device, _ in self.ports(cycle)):
                        yield cycle
            case Relation.FABRIC:
                yield Scope.of(ScopeKind.FABRIC, "all")

    def _queues(self, device: str, port: str) -> Iterator[Scope]:
        for traffic_class in sorted(self._observed.lossless_classes):
            yield Scope.of(ScopeKind.QUEUE, device, port, traffic_class)

    def _deepest_queue(self, scope: Scope) -> Iterator[Scope]:
        """The lossless queue that peaked highest after the onset, of those nobody pauses; none where none was read."""
        peaks = self._observed.signals("queue_peak_bytes")
        depth = {
            queue: signal["after_p50"] or 0.0
            for queue in self.related(scope, Relation.EGRESS_QUEUES)
            if queue not in self._observed.pause_graph.paused
            and (signal := peaks.get((queue.parts[0], queue.parts[1], queue.parts[2]))) is not None
        }
        if depth:
            yield max(depth, key=lambda queue: depth[queue])

    def _nics(self, scope: Scope) -> Iterator[Scope]:
        if scope.kind is ScopeKind.COHORT:
            ends = self._cohorts[scope].members
        elif scope.kind is ScopeKind.HOST:
            ends = tuple(end for end in self._topology.nics if end[0] == scope.device)
        else:
            ends = tuple(end for end in self.ports(scope) if self._topology.is_host(end[0]))
        for end in ends:
            yield Scope.of(ScopeKind.NIC, *end)

    def _groups_over(self, scope: Scope) -> Iterator[Scope]:
        for end in self.ports(scope):
            yield from self._groups_of.get(end, ())

    @cached_property
    def _groups_of(self) -> dict[End, list[Scope]]:
        """Groups by their member ports."""
        found: dict[End, list[Scope]] = defaultdict(list)
        for scope, group in self._groups.items():
            for member in group.members:
                found[(group.device, member)].append(scope)
        return found

    def hot_member(self, group: Scope) -> End | None:
        """The overloaded egress of a group, the hottest of several (`HotMembers`); None when none was read.

        One hypothesis a group stands for "the change overloads its hottest member": members that stay calm are no
        places of it.
        """
        return next(iter(self._observed.hot_members.get(group, ())), None)

    def _hot_members(self, group: Scope, relation: Relation) -> Iterator[Scope]:
        for end in self._observed.hot_members.get(group, ()):
            if relation is Relation.HOT_MEMBER_PORT:
                yield Scope.of(ScopeKind.PORT, *end)
            elif relation is Relation.HOT_MEMBER_QUEUE:
                yield from self._queues(*end)
            elif link := self._topology.link(*end):
                yield link

    def ports(self, scope: Scope) -> tuple[End, ...]:
        """Ports (and NICs) that make up a place."""
        match scope.kind:
            case ScopeKind.LINK:
                return self._topology.ends(scope)
            case ScopeKind.PORT | ScopeKind.QUEUE | ScopeKind.NIC | ScopeKind.LANE | ScopeKind.PG:
                return ((scope.parts[0], scope.parts[1]),)
            case ScopeKind.ECMP:
                return tuple((scope.device, port) for port in self._groups[scope].members)
            case ScopeKind.DEVICE | ScopeKind.HOST:
                return tuple((scope.device, port) for port in self._topology.ports_of.get(scope.device, ()))
            case ScopeKind.COHORT:
                return self._cohorts[scope].members
            case ScopeKind.CYCLE:
                return tuple((queue.parts[0], queue.parts[1]) for queue in self._cycle(scope))
            case _:
                return ()

    def _cycle(self, scope: Scope) -> tuple[Scope, ...]:
        cycles = enumerate(self._observed.pause_graph.cycles, start=1)
        return next((cycle for n, cycle in cycles if cycle_scope(cycle, n) == scope), ())

    def around(self, scope: Scope) -> tuple[Scope, ...]:
        """The place itself, and the ports, queues, links and NICs that it shares with its rivals: a group has its hot
        member's."""
        if scope.kind is ScopeKind.ECMP:
            ends = tuple((port.parts[0], port.parts[1]) for port in self.related(scope, Relation.HOT_MEMBER_PORT))
        else:
            ends = (
                self.ports(scope)
                if scope.kind in (ScopeKind.PORT, ScopeKind.QUEUE, ScopeKind.LINK, ScopeKind.NIC)
                else ()
            )
        found = {scope}
        for device, port in ends:
            peer = self._topology.peer(device, port)
            for end in ((device, port), peer):
                if end is not None and self._topology.is_host(end[0]):
                    found.add(Scope.of(ScopeKind.NIC, *end))
            if link := self._topology.link(device, port):
                found.add(link)
            # A NIC has no queues of its own: its rivals are at the leaf's.
            egress = peer if self._topology.is_host(device) else (device, port)
            if egress is not None:
                found.update(self._queues(*egress))
        return tuple(sorted(found))

    # -- what holds up what -------------------------------------------------------------------------------------------

    def can_hold(self, queue: Scope) -> bool:
        """Whether a queue may be why its device pauses others: it holds packets and is paused itself, or it is among
        the deepest of the device.

        A queue nobody measured may; an empty one fills no buffer, however long it is paused.
        """
        own = self._observed.signals("queue_peak_bytes").get((queue.parts[0], queue.parts[1], queue.parts[2]))
        if own is None or own["after_max"] is None:
            return True
        if queue in self._observed.pause_graph.paused:
            return own["after_max"] > 0
        return own["after_max"] >= HOLDING_DEPTH * self._deepest[queue.device]

    @cached_property
    def _deepest(self) -> dict[str, float]:
        """Peak of the deepest queue of each device after the onset, in bytes."""
        found: dict[str, float] = {}
        for (device, _, _), signal in self._observed.signals("queue_peak_bytes").items():
            found[device] = max(found.get(device, 0.0), signal["after_max"] or 0.0)
        return found

    def holds_up_job(self, scope: Scope) -> bool:
        """Whether a place overruns a queue that the job's bytes cross, or pausing that begins there or at the place
        holds up queues that they cross, however far upstream."""
        overrun = self.related(scope, Relation.OVERRUN_QUEUE) if scope.kind is ScopeKind.NIC else ()
        if any(self._is_crossed(queue) for queue in overrun):
            return True
        begins = {*self.around(scope), *self.related(scope, Relation.EGRESS_QUEUES), *overrun}
        waiting = [queue for queue in begins if queue.kind is ScopeKind.QUEUE and self.can_hold(queue)]
        seen = set(waiting)
        while waiting:
            for queue in self._observed.pause_graph.upstream(waiting.pop()):
                if self._is_crossed(queue):
                    return True
                if queue not in seen and self.can_hold(queue):
                    seen.add(queue)
                    waiting.append(queue)
        return False

    def _is_crossed(self, queue: Scope) -> bool:
        """Whether bytes of the job can cross a queue."""
        job = self._observed.job
        peer = self._topology.peer(queue.parts[0], queue.parts[1])
        return job is not None and all(
            self._topology.crosses(job, device) for device in (queue.device, *(peer or ("", ""))[:1])
        )

    # -- blocks and names ---------------------------------------------------------------------------------------------

    def block(self, scope: Scope) -> str:
        """The block a place is summed in: a switch port with its queues, the NIC behind it and the group whose hot
        member it is; a link (what is wrong with it is wrong in both directions); every other place is a block of its
        own."""
        if scope.kind is ScopeKind.ECMP:
            hottest = self.hot_member(scope)
            return str(scope if hottest is None else Scope.of(ScopeKind.PORT, *hottest))
        if scope.kind is ScopeKind.NIC:
            ports = self.related(scope, Relation.LEAF_PORT)
            return str(ports[0] if ports else scope)
        if scope.kind in (ScopeKind.PORT, ScopeKind.QUEUE, ScopeKind.LANE, ScopeKind.PG):
            return str(Scope.of(ScopeKind.PORT, *scope.parts[:2]))
        return str(scope)

    def named(self, scope: Scope) -> tuple[Place, ...]:
        """The place in results (DESIGN.md section 7): a link is both ends, a group the device and its most overloaded
        egress, a NIC also its leaf port."""
        match scope.kind:
            case ScopeKind.ECMP:
                hottest = self.hot_member(scope)
                overloaded = () if hottest is None else self._queues(*hottest)
                return (Place(device=scope.device), *(_queue_place(queue) for queue in overloaded))
            case ScopeKind.QUEUE:
                return (_queue_place(scope),)
            case ScopeKind.NIC | ScopeKind.COHORT:
                return tuple(place for end in self.ports(scope) for place in self._nic_places(end))
            case ScopeKind.LINK | ScopeKind.PORT:
                return tuple(Place(device=device, port=port) for device, port in self.ports(scope))
            case ScopeKind.HOST | ScopeKind.DEVICE | ScopeKind.GPU:
                return (Place(device=scope.device),)
            case ScopeKind.CYCLE:
                return tuple(_queue_place(queue) for queue in self._cycle(scope))
            case _:
                return ()

    def _nic_places(self, end: End) -> tuple[Place, ...]:
        peer = self._topology.peer(*end)
        own = Place(device=end[0], port=end[1])
        return (own,) if peer is None else (own, Place(device=peer[0], port=peer[1]))

    def wording(self, scope: Scope) -> str:
        """A place as an engineer says it: `leaf-07 Et12`, `gpu-worker-042`, `leaf-07 uplinks`."""
        match scope.kind:
            case ScopeKind.ECMP:
                member = self.hot_member(scope)
                if member is None:
                    return f"{scope.device} {scope.parts[1]}"
                hot = f"{member[0]} {short_port(member[1])}"
                return hot if member[0] == scope.device else f"{scope.device} {scope.parts[1]} ({hot})"
            case ScopeKind.LINK:
                (device_a, port_a), (device_b, port_b) = self._topology.ends(scope)
                return f"{device_a} {short_port(port_a)} - {device_b} {short_port(port_b)}"
            case ScopeKind.QUEUE:
                return f"{scope.parts[0]} {short_port(scope.parts[1])} TC{scope.parts[2]}"
            case ScopeKind.PORT | ScopeKind.NIC:
                return f"{scope.parts[0]} {short_port(scope.parts[1])}"
            case ScopeKind.COHORT:
                hosts = self._cohorts[scope].hosts
                where = hosts[0] if len(hosts) == 1 else f"{len(hosts)} hosts"
                return f"{where} ({scope.parts[0]})"
            case ScopeKind.RAIL:
                return f"rail {scope.parts[0]}"
            case ScopeKind.CYCLE:
                return scope.parts[0].partition(": ")[2] or "the fabric"
            case _:
                return " ".join(scope.parts)


def _queue_place(queue: Scope) -> Place:
    return Place(
        device=queue.parts[0], port=queue.parts[1], queue=int(queue.parts[2]) if queue.parts[2].isdigit() else None
    )
