"""NICs of one firmware version: by what was read of them, else by the change record that loaded it."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from ..facts import Event, EventKind, FirmwareState
from ..scope import Scope, ScopeKind

Nic = tuple[str, str]
"""(host, name of the NIC)."""


@dataclass(frozen=True, slots=True)
class Cohort:
    """NICs that run one driver and firmware version, on how many hosts."""

    name: str
    members: tuple[Nic, ...]

    @property
    def hosts(self) -> tuple[str, ...]:
        return tuple(sorted({host for host, _ in self.members}))

    @property
    def scope(self) -> Scope:
        return Scope.of(ScopeKind.COHORT, self.name)


def cohorts(
    firmware: Iterable[FirmwareState],
    events: Iterable[Event],
    nics: Iterable[Nic],
    resolve: Callable[[str, str], str],
) -> tuple[Cohort, ...]:
    """NICs by the driver and firmware version they were last seen with.

    NICs whose version nobody read belong together where one change loaded theirs (the same version, else the same words
    of the change record); the others, of which nothing is known, are in no cohort.
    """
    named = _loaded(events, nics, resolve) | _read(firmware, resolve)
    found: dict[str, set[Nic]] = defaultdict(set)
    for end, name in named.items():
        found[name].add(end)
    return tuple(Cohort(name, tuple(sorted(members))) for name, members in sorted(found.items()))


def _read(firmware: Iterable[FirmwareState], resolve: Callable[[str, str], str]) -> dict[Nic, str]:
    """The version that each NIC was last seen with."""
    in_time = sorted(firmware, key=lambda s: (-math.inf if s.at is None else s.at, s.driver, s.version))
    return {(state.device, resolve(state.device, state.port)): f"{state.driver} {state.version}" for state in in_time}


def _loaded(events: Iterable[Event], nics: Iterable[Nic], resolve: Callable[[str, str], str]) -> dict[Nic, str]:
    """What was last loaded on each NIC; a record that names no port speaks of all NICs of its host."""
    of_host: dict[str, list[Nic]] = defaultdict(list)
    for end in nics:
        of_host[end[0]].append(end)
    found: dict[Nic, str] = {}
    for event in sorted(events, key=lambda event: (event.at, event.device, event.port, event.statement)):
        if event.kind is EventKind.FIRMWARE_LOAD:
            port = resolve(event.device, event.port) if event.port else ""
            name = event.details.get("version") or event.statement
            found |= {end: f"loaded: {name}" for end in of_host[event.device] if port in ("", end[1])}
    return found
