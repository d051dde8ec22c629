"""Signs that are asked of a small fabric, by their scopes."""

from __future__ import annotations

from collections.abc import Mapping

from fabrics import (
    JOB,
    ONSET,
    counter,
    observe,
    origin,
    shipped,
)

from causeline.engine.facts import Event, EventKind, Fact
from causeline.engine.findings import SignFinding
from causeline.engine.patterns import PATTERNS

BUSY_US = 300_000.0


def asked(sign: str, facts: list[Fact], onset: float | None = ONSET, job: str | None = JOB) -> dict[str, SignFinding]:
    """Findings of a shipped pattern sign, by scope."""
    rule = shipped().signs[sign].pattern
    assert rule is not None
    limits = {name: limit.value for name, limit in rule.limits.items() if limit.value is not None}
    return {str(f.scope): f for f in PATTERNS[rule.pattern](observe(facts, onset, job), sign, limits)}


def states(found: Mapping[str, SignFinding]) -> dict[str, str]:
    return {scope: finding.state for scope, finding in found.items()}


def session(kind: EventKind, device: str, peer: str, at: float, port: str = "") -> Event:
    return Event(kind, device, port, at, "session", origin("syslog"), {"peer": peer})


def pauses(device: str, port: str, after: float = BUSY_US) -> Fact:
    return counter(f"{device}:{port}:3", "pfc_rx_pause_us", 0, after)
