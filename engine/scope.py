"""Places: the closed list of scope kinds and how a scope is written (METRICS.md, end).

A scope is a kind and its parts: `queue:leaf-07/Ethernet12/3`, `nic:gpu-worker-042/mlx5_3`, `job:run-0412`. Interface
names are the device's own full names; the short alias that engineers type is made by `short_port`.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import StrEnum


class ScopeKind(StrEnum):
    FABRIC = "fabric"
    POD = "pod"
    PLANE = "plane"
    RAIL = "rail"
    DEVICE = "device"
    MODULE = "module"
    PORT = "port"
    LANE = "lane"
    LINK = "link"
    QUEUE = "queue"
    PG = "pg"
    ECMP = "ecmp"
    SESSION = "session"
    CYCLE = "cycle"
    NIC = "nic"
    HOST = "host"
    GPU = "gpu"
    PAIR = "pair"
    COHORT = "cohort"
    TIER = "tier"
    JOB = "job"
    RANK = "rank"
    TENANT = "tenant"
    MODEL = "model"
    SOURCE = "source"


@dataclass(frozen=True, slots=True, order=True)
class Scope:
    """A place.

    Parts, by kind: port `device/port`, queue `device/port/class`, lane `device/port/lane`, nic `host/nic`, ecmp
    `device/group`, link `device/port/device/port` (ends in sorted order), cycle and cohort a name, others one name.
    """

    kind: ScopeKind
    parts: tuple[str, ...]

    def __str__(self) -> str:
        text = "/".join(self.parts)
        if "%" in text or "~" in text or text.count("/") >= len(self.parts):  # seldom; a fabric has a million scopes
            text = "/".join(map(_written, self.parts))
        return f"{self.kind.value}:{text}"

    @classmethod
    def of(cls, kind: ScopeKind | str, *parts: str | int) -> Scope:
        """A scope from its parts; a `/` inside a part (`Ethernet1/12`) is written as `~`."""
        return cls(ScopeKind(kind), tuple(map(str, parts)))

    @classmethod
    def parse(cls, text: str) -> Scope:
        """The scope that `str` wrote.

        Raises ValueError with the text when the kind is unknown or a part is empty.

        >>> Scope.parse("queue:leaf-07/Ethernet12/3").parts
        ('leaf-07', 'Ethernet12', '3')
        """
        kind, colon, rest = text.partition(":")
        parts = tuple(_read(part) for part in rest.split("/"))
        if not colon or kind not in ScopeKind.__members__.values() or not all(parts):
            raise ValueError(f"{text!r} is not a scope: expected kind:part/part, kind one of {', '.join(ScopeKind)}")
        return cls(ScopeKind(kind), parts)

    @property
    def device(self) -> str:
        """The first part: the device or host of a place that lies on one."""
        return self.parts[0]

    @property
    def port(self) -> str | None:
        """The port or NIC name of a place that lies on one; None for whole devices, groups and jobs."""
        on_port = {ScopeKind.PORT, ScopeKind.QUEUE, ScopeKind.PG, ScopeKind.LANE, ScopeKind.NIC}
        return self.parts[1] if self.kind in on_port else None

    @property
    def qualifier(self) -> str | None:
        """Traffic class, priority group or lane of a place inside a port; None for the whole port."""
        inside_port = {ScopeKind.QUEUE, ScopeKind.PG, ScopeKind.LANE}
        return self.parts[2] if self.kind in inside_port else None


def _written(part: str) -> str:
    """A part without `/`; a `~` or `%` that a name really has is percent-encoded, so that it is read back the same."""
    return part.replace("%", "%25").replace("~", "%7E").replace("/", "~")


def _read(part: str) -> str:
    return part.replace("~", "/").replace("%7E", "~").replace("%25", "%")


def link_scope(end_a: tuple[str, str], end_b: tuple[str, str]) -> Scope:
    """The scope of a link from its two (device, port) ends, the same whichever end is named first."""
    first, second = sorted((end_a, end_b))
    return Scope.of(ScopeKind.LINK, *first, *second)


_SHORT = (
    (re.compile(r"^Ethernet(\d+(?:/\d+)*)$"), r"Et\1"),
    (re.compile(r"^HundredGigE(\d+(?:/\d+)*)$"), r"Hu\1"),
)


def short_port(port: str) -> str:
    """The alias engineers type for a port (`Ethernet12` -> `Et12`); names without a usual alias stay as they are.

    >>> short_port("Ethernet12"), short_port("swp1s0")
    ('Et12', 'swp1s0')
    """
    for pattern, replacement in _SHORT:
        if pattern.match(port):
            return pattern.sub(replacement, port)
    return port
