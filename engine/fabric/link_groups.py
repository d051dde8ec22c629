"""ECMP groups where no route was read: what the links themselves say about which ports share the same destinations.

In an up-down fabric a device spreads what goes up over all its links to the next tier, and what goes down over all its
links to devices with the same leaves below them (parallel links, or a pod's aggregation switches).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from functools import cached_property

from ..topology import End, Topology, natural_order

UPLINKS = "uplinks"
"""Name of the group of a device's links to the next tier."""

PortsByGroup = dict[tuple[str, str], tuple[str, ...]]
"""(device, name of the group) -> its ports, in natural order; groups of one port are left out."""


class Tiers:
    """How far each device is from the hosts: hosts 0, leaves 1, and so on; devices with no way to a host have none."""

    def __init__(self, topology: Topology) -> None:
        self._topology = topology
        self.tier: dict[str, int] = {}
        reached: Iterable[str] = topology.hosts
        tier = 0
        while reached := sorted({device for device in reached if device in topology.graph} - set(self.tier)):
            self.tier |= dict.fromkeys(reached, tier)
            reached = {neighbour for device in reached for neighbour in topology.graph.neighbors(device)}
            tier += 1

    def climbs(self, end: End) -> bool | None:
        """Whether the link at a switch port leads a tier up (True) or down to another switch (False); None for links
        to hosts, links within a tier and links of devices without a tier."""
        peer = self._topology.peer(*end)
        own, far = self.tier.get(end[0]), None if peer is None else self.tier.get(peer[0])
        if own is None or not far or own == 0 or own == far:
            return None
        return far > own

    @cached_property
    def groups(self) -> PortsByGroup:
        """All groups of two or more ports."""
        leaves: dict[str, frozenset[str]] = {}
        found: dict[tuple[str, str], list[str]] = defaultdict(list)
        for device in sorted(self.tier, key=lambda device: (self.tier[device], device)):
            down: dict[frozenset[str], list[str]] = defaultdict(list)
            for port in self._topology.ports_of.get(device, ()):
                climbs = self.climbs((device, port))
                if climbs:
                    found[(device, UPLINKS)].append(port)
                elif climbs is not None:
                    peer = self._topology.peer(device, port)
                    assert peer is not None
                    down[leaves[peer[0]]].append(port)
            leaves[device] = frozenset({device}) if self.tier[device] == 1 else frozenset().union(*down)
            for below, ports in down.items():
                found[(device, f"to:{_said(below)}")] += ports
        return {key: tuple(ports) for key, ports in found.items() if len(ports) > 1}


def _said(leaves: frozenset[str]) -> str:
    names = sorted(leaves, key=natural_order)
    return names[0] if len(names) == 1 else f"{names[0]}..{names[-1]}"
