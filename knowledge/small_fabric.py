"""Small named fabrics that cases are played on: `topologies/<name>.yaml`, turned into the facts an adapter would give.

Only the standing structure is here (plan, routes, placement); what was measured is said by each case.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from fnmatch import fnmatchcase
from functools import cache
from pathlib import Path
from typing import Annotated, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, WithJsonSchema, model_validator

from ..engine.facts import Cable, JobPlacement, NextHop, Provenance, RouteState
from .shorthand import seconds
from .yaml_source import UnreadableYaml, YamlSource

End = tuple[str, str]

Span = Annotated[
    float, BeforeValidator(seconds), WithJsonSchema({"type": "string", "examples": ["15s", "1m30s", "-3d"]})
]
"""A time span in seconds, written with its unit; as a time it counts from the start of the case's window."""


class Strict(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class CableGroup(Strict):
    """Cables of one kind. `between`: `leaf-01/Ethernet1 - spine-01/Ethernet1`."""

    role: Literal["leaf-host", "leaf-spine"]
    speed_gbps: Annotated[float, Field(gt=0)]
    between: tuple[Annotated[str, Field(pattern=r"^[^/ ]+/[^ ]+ - [^/ ]+/[^ ]+$")], ...]


class Route(Strict):
    """A prefix and the interfaces its traffic is spread over."""

    device: str
    prefix: str
    next_hops: tuple[str, ...]


class Job(Strict):
    """The job that runs on the fabric. `start` counts from the start of the window."""

    name: str
    hosts: tuple[str, ...]
    start: Span


class SmallFabric(Strict):
    """A fabric. `addresses` are the switches' own, by which their neighbours' routes and sessions name them."""

    format: Literal[1]
    description: str
    cables: tuple[CableGroup, ...]
    addresses: Mapping[str, str]
    routes: tuple[Route, ...]
    job: Job

    @model_validator(mode="after")
    def _ports_exist(self) -> SmallFabric:
        for route in self.routes:
            for port in route.next_hops:
                peer = self.peers().get((route.device, port))
                if peer is None or peer[0] not in self.addresses:
                    raise ValueError(f"route of {route.device}: {port} has no cable to a device with an address")
        return self

    def peers(self) -> dict[End, End]:
        """Every linked port with the other end of its link."""
        found: dict[End, End] = {}
        for group in self.cables:
            for text in group.between:
                a, b = (_end(side) for side in text.split(" - "))
                found[a], found[b] = b, a
        return found

    def ports(self, device: str, port: str) -> tuple[End, ...]:
        """Linked ports whose device and name match the patterns (`leaf-*`, `Ethernet[1-4]`), in order."""
        return tuple(sorted(end for end in self.peers() if fnmatchcase(end[0], device) and fnmatchcase(end[1], port)))

    def devices(self, pattern: str) -> tuple[str, ...]:
        """Devices and hosts whose name matches the pattern, in order."""
        return tuple(sorted({device for device, _ in self.peers() if fnmatchcase(device, pattern)}))

    def plan(self, provenance: Provenance) -> Iterator[Cable]:
        """The cabling plan."""
        for group in self.cables:
            for text in group.between:
                a, b = (_end(side) for side in text.split(" - "))
                yield Cable(*a, *b, "intended", provenance, speed_bps=group.speed_gbps * 1e9, role=group.role)

    def neighbours(self, without: tuple[str, ...], provenance: Provenance) -> Iterator[Cable]:
        """What each switch says of its neighbours; ports that match `without` (`leaf-01/Ethernet3`) have none."""
        peers = self.peers()
        for end, peer in sorted(peers.items()):
            if end[0] in self.addresses and not (matches(end, without) or matches(peer, without)):
                yield Cable(*end, *peer, "observed", provenance)

    def routes_at(self, at: float, without: tuple[str, ...], provenance: Provenance) -> Iterator[RouteState]:
        """All routes as read at a time; next hops that match `without` are withdrawn."""
        peers = self.peers()
        for route in self.routes:
            ports = [port for port in route.next_hops if not matches((route.device, port), without)]
            hops = tuple(NextHop(port, self.addresses[peers[(route.device, port)][0]]) for port in ports)
            yield RouteState(route.device, route.prefix, hops, at, provenance)

    def placement(self, start: float, provenance: Provenance) -> JobPlacement:
        return JobPlacement(self.job.name, "1", self.job.hosts, start, None, provenance)


def matches(end: End, patterns: tuple[str, ...]) -> bool:
    """Whether a port matches one of the `device/port` patterns."""
    return any(fnmatchcase(f"{end[0]}/{end[1]}", pattern) for pattern in patterns)


def _end(text: str) -> End:
    device, _, port = text.partition("/")
    return device, port


@cache
def load_fabric(directories: tuple[Path, ...], name: str) -> tuple[SmallFabric | None, tuple[str, ...]]:
    """The fabric of that name from the first directory that has it, or None and what is wrong."""
    for directory in directories:
        path = directory / "topologies" / f"{name}.yaml"
        if path.is_file():
            try:
                return YamlSource.parse(f"topologies/{path.name}", path.read_bytes()).validate(SmallFabric)
            except UnreadableYaml as error:
                return None, error.problems
    known = sorted(path.stem for directory in directories for path in directory.glob("topologies/*.yaml"))
    return None, (f"there is no topology {name!r}; known: {', '.join(known)}",)
