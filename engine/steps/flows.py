"""Where the bytes that some hosts of a job send may go: the ports they may leave devices by.

Only what a record says narrows that down: a ring sends to the next host of the placement, a job with targets to those
(when it saves a checkpoint, if that is only a part of its traffic), any other host to all of the job. Of several
shortest ways each may be taken.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping

from ..topology import End, Topology

RING = "ring_allreduce"
"""Traffic in which each host sends to the next of the placement, the last to the first."""

CHECKPOINT = "checkpoint"
"""The part of a job's traffic, as in `ring_allreduce+checkpoint`, that goes to its targets, and in some steps only."""

Leaves = frozenset[str]
"""The leaves that a host attaches to."""


def saves_now_and_then(topology: Topology, job: str) -> bool:
    """Whether a job sends to its targets in some steps only, and to its own hosts in every one."""
    placement = topology.jobs.get(job)
    if placement is None or not placement.targets or not placement.traffic:
        return False
    parts = placement.traffic.split("+")
    return CHECKPOINT in parts and len(parts) > 1


def receivers(topology: Topology, job: str, host: str, *, in_every_step: bool = False) -> frozenset[str]:
    """The hosts that a host of a job may send to, or those it sends to in every step; all others of the job where no
    record says more."""
    placement = topology.jobs.get(job)
    if placement is None:
        return frozenset()
    is_mixed = saves_now_and_then(topology, job)
    found: set[str] = set() if is_mixed and in_every_step else set(placement.targets)
    if is_mixed or not placement.targets:
        is_ring = RING in (placement.traffic or "").split("+") and host in placement.hosts
        after = placement.hosts.index(host) + 1 if is_ring else 0
        found.update((placement.hosts[after % len(placement.hosts)],) if is_ring else placement.hosts)
    return frozenset(found) - {host}


def ports_crossed(
    topology: Topology, job: str, senders: Iterable[str], *, in_every_step: bool = False
) -> frozenset[End]:
    """The ports by which bytes of these hosts may leave a NIC or a switch, at all or in every step."""
    found: set[End] = set()
    pairs: set[tuple[Leaves, Leaves]] = set()
    last_hops: dict[Leaves, set[str]] = defaultdict(set)
    for host in senders:
        found.update((host, nic) for nic in topology.ports_of.get(host, ()))
        for receiver in receivers(topology, job, host, in_every_step=in_every_step):
            near, far = _leaves(topology, host), _leaves(topology, receiver)
            pairs.add((near, far))
            last_hops[far].add(receiver)
    distances = {leaves: _distances(topology, leaves) for pair in pairs for leaves in pair}
    for near, far in pairs:
        found.update(_between(topology, distances[near], distances[far], far))
    for far, hosts in last_hops.items():
        for leaf in far:
            ports = topology.ports_of[leaf]
            found.update((leaf, port) for port in ports if (topology.peer(leaf, port) or ("", ""))[0] in hosts)
    return frozenset(found)


def _between(topology: Topology, near: Mapping[str, int], far: Mapping[str, int], far_leaves: Leaves) -> Iterable[End]:
    """Inter-switch ports on the shortest ways between two sets of leaves, towards the second."""
    length = min((near[leaf] for leaf in far_leaves if leaf in near), default=None)
    if length is None:
        return
    for switch, steps in near.items():
        if steps + far.get(switch, length + 1) != length:
            continue
        for port in topology.ports_of[switch]:
            peer = topology.peer(switch, port)
            if peer is not None and steps + 1 + far.get(peer[0], length + 1) == length:
                yield switch, port


def _leaves(topology: Topology, host: str) -> Leaves:
    if host not in topology.graph:
        return frozenset()
    return frozenset(switch for switch in topology.graph.neighbors(host) if topology.is_switch(switch))


def _distances(topology: Topology, leaves: Leaves) -> dict[str, int]:
    """Hops from the nearest of some leaves to every switch, over switches only."""
    found = dict.fromkeys(sorted(leaves), 0)
    waiting = list(found)
    for switch in waiting:
        for neighbour in topology.graph.neighbors(switch):
            if neighbour not in found and topology.is_switch(neighbour):
                found[neighbour] = found[switch] + 1
                waiting.append(neighbour)
    return found
