"""Facts of a small fabric, and what the engine makes of them: two leaves, two spines, four hosts with two NICs each.

NIC `mlx5_0` of every host is on leaf-1, `mlx5_1` on leaf-2 (two rails). Leaves: Ethernet1 and Ethernet2 to spine-1 and
spine-2, Ethernet11 to Ethernet14 to host-1 to host-4. Spines: Ethernet1 to leaf-1, Ethernet2 to leaf-2. The window is
20 minutes with the onset in the middle.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from typing import Literal

from causeline.engine import signals
from causeline.engine.facts import (
    Cable,
    Fact,
    FirmwareState,
    Incident,
    JobPlacement,
    NextHop,
    Provenance,
    Reading,
    RouteState,
    Series,
)
from causeline.engine.findings import SignFinding
from causeline.engine.observed import Observed
from causeline.engine.places import Places
from causeline.engine.results import State
from causeline.engine.rules import KnowledgeBase
from causeline.engine.scope import Scope, ScopeKind
from causeline.engine.telemetry import Telemetry
from causeline.engine.topology import Topology
from causeline.knowledge.loader import read_library

START, ONSET, END = 1_700_000_000.0, 1_700_000_600.0, 1_700_001_200.0
JOB = "run-1"
HOSTS = ("host-1", "host-2", "host-3", "host-4")
LEAVES, SPINES = ("leaf-1", "leaf-2"), ("spine-1", "spine-2")


def origin(source: str = "plan.csv", record: str = "line 1") -> Provenance:
    """A record; files are read by one adapter when their names begin alike (`ethtool-1.txt`, `ethtool-2.txt`)."""
    return Provenance(source, record, re.split(r"[-./]", source)[0], "0" * 64)


def cable(
    a: str,
    b: str,
    kind: Literal["intended", "observed"] = "intended",
    role: str | None = None,
    source: str = "plan.csv",
) -> Cable:
    """A cable between two `device:port` ends."""
    a_device, _, a_port = a.partition(":")
    b_device, _, b_port = b.partition(":")
    return Cable(a_device, a_port, b_device, b_port, kind, origin(source), role=role)


def plan() -> list[Fact]:
    """The cabling plan and the job that runs on all four hosts."""
    facts: list[Fact] = []
    for n, leaf in enumerate(LEAVES, start=1):
        facts += [
            cable(f"{leaf}:Ethernet{m}", f"{spine}:Ethernet{n}", role="leaf-spine")
            for m, spine in enumerate(SPINES, start=1)
        ]
        facts += [
            cable(f"{host}:mlx5_{n - 1}", f"{leaf}:Ethernet{10 + m}", role="leaf-host")
            for m, host in enumerate(HOSTS, start=1)
        ]
    return [*facts, placement()]


def placement(hosts: tuple[str, ...] = HOSTS, start: float | None = START - 86400) -> JobPlacement:
    return JobPlacement(JOB, "17", hosts, start, None, origin("jobs.txt"), tenant="research")


def route(device: str, ports: Iterable[str], at: float, prefix: str = "10.2.0.0/16", source: str = "") -> RouteState:
    hops = tuple(NextHop(port, f"10.0.0.{port.removeprefix('Ethernet')}") for port in ports)
    return RouteState(device, prefix, hops, at, origin(source or f"routes-{at:.0f}.json", f"/{device}/{prefix}"))


def firmware(host: str, nic: str, version: str, at: float | None = None) -> FirmwareState:
    return FirmwareState(host, nic, "mlx5_core", version, at, origin(f"{host}/ethtool-{version}.txt"))


def series(place: str, metric: str, points: Sequence[tuple[float, float | None]], source: str = "") -> Series:
    """Samples at `device`, `device:port` or `device:port:qualifier`, one line each."""
    device, port, qualifier = (*place.split(":"), "", "")[:3]
    times, values = tuple(t for t, _ in points), tuple(v for _, v in points)
    lines = tuple(range(1, len(points) + 1))
    return Series(device, port, qualifier, metric, times, values, origin(source or f"{metric}.csv"), lines)


def counter(place: str, metric: str, before: float, after: float, every: float = 10.0, source: str = "") -> Series:
    """A counter polled over the whole window that rises by `before` a second until the onset, by `after` behind it."""
    points, value, at = [], 0.0, START
    while at <= END:
        points.append((at, value))
        value += every * (before if at < ONSET else after)
        at += every
    return series(place, metric, points, source)


def gauge(place: str, metric: str, before: float, after: float, every: float = 10.0, source: str = "") -> Series:
    """A gauge or watermark polled over the whole window: one value up to the onset, another behind it."""
    count = int((END - START) / every) + 1
    times = [START + n * every for n in range(count)]
    return series(place, metric, [(t, before if t <= ONSET else after) for t in times], source)


def observe(
    facts: Iterable[Fact],
    onset: float | None = ONSET,
    job: str | None = JOB,
    uncertainty_s: float = 0.0,
    every_step: bool = False,
) -> Observed:
    """The facts as the signs see them, split at the onset."""
    facts = list(facts)
    topology = Topology(facts)
    telemetry = Telemetry([fact for fact in facts if isinstance(fact, Series)], topology.resolve_port)
    split = signals.Split(START, END, onset, uncertainty_s)
    signals.reduce(telemetry, split)
    return Observed(topology, telemetry, split, job, is_every_step_slower=every_step)


@cache
def shipped() -> KnowledgeBase:
    """The shipped rules as graded: what the engine makes of a grade is asked here, not how far drills believe it."""
    return read_library().knowledge_base(tempers={})


def grouped() -> list[Fact]:
    """The small fabric with a group at each leaf, one firmware version, and Ethernet2 as the busier member."""
    groups = [route(leaf, ("Ethernet1", "Ethernet2"), at) for leaf in LEAVES for at in (START, END)]
    versions = [firmware(host, f"mlx5_{n}", "28.39") for host in HOSTS for n in (0, 1)]
    loads = [counter(f"{leaf}:Ethernet{n}", "tx_bytes", 1, n) for leaf in LEAVES for n in (1, 2)]
    return [*plan(), *groups, *versions, *loads]


def answers(
    places: Places, state: State = "absent", coverage: float = 1.0, present: Mapping[str, str] | None = None
) -> list[SignFinding]:
    """The same answer to every sign at every place, but present at the scopes named by sign."""
    at: dict[ScopeKind, set[Scope]] = {kind: set(places.instances(kind)) for kind in ScopeKind}
    at[ScopeKind.PORT] = {Scope.of("port", *queue.parts[:2]) for queue in at[ScopeKind.QUEUE]}
    at[ScopeKind.RAIL] = {Scope.of("rail", nic) for nic in ("mlx5_0", "mlx5_1")}
    at[ScopeKind.FABRIC] = {Scope.of("fabric", "all")}
    found = []
    for name, sign in sorted(shipped().signs.items()):
        for scope in sorted(at[sign.scope]):
            seen: State = "present" if (present or {}).get(name) == str(scope) else state
            records = (origin(f"{name}.csv", str(scope)),)
            found.append(SignFinding(name, scope, seen, coverage=coverage, records=records))
    assert {f"{f.sign} {f.scope}" for f in found} >= {f"{name} {scope}" for name, scope in (present or {}).items()}
    return found


def reading(facts: Iterable[Fact], job: str | None = JOB, onset: float | None = None) -> Reading:
    """A bundle with these facts; an excerpt names its record."""
    incident = Incident("INC-1", "test fabric", job, (START, END), onset)
    return Reading(incident, tuple(facts), (), (), lambda source, record: f"{source} at {record}")


def slow_job() -> list[Fact]:
    """Step times of the job: 4 s up to the onset, 6 s behind it."""
    times = [*(START + 4.0 * n for n in range(1, 151)), *(ONSET + 6.0 * n for n in range(1, 101))]
    return [series(JOB, "step_seconds", [(t, 4.0 if t <= ONSET else 6.0) for t in times])]


def watched(skip: Iterable[str] = ()) -> list[Fact]:
    """Calm telemetry of every link and NIC, but for the places to skip (`leaf-1:Ethernet2:3`)."""
    ports = [f"{leaf}:Ethernet{n}" for leaf in LEAVES for n in (1, 2, 11, 12, 13, 14)]
    ports += [f"{spine}:Ethernet{n}" for spine in SPINES for n in (1, 2)]
    nics = [f"{host}:mlx5_{n}" for host in HOSTS for n in (0, 1)]
    facts: list[Fact] = []
    for metric in ("pfc_rx_pause_us", "ecn_marked_packets"):
        facts += [counter(f"{port}:3", metric, 1, 1) for port in ports]
    facts += [gauge(f"{port}:3", "queue_peak_bytes", 1e5, 1e5) for port in ports]
    for metric in ("link_down_events", "fcs_errors", "fec_uncorrected_codewords"):
        facts += [counter(port, metric, 0, 0) for port in (*ports, *nics)]
    for metric in ("cnp_sent", "nak_received", "ack_timeouts", "nic_rx_discards"):
        facts += [counter(nic, metric, 1, 1) for nic in nics]
    skipped = set(skip)
    return [fact for fact in facts if isinstance(fact, Series) and _place(fact) not in skipped]


def _place(one: Series) -> str:
    return ":".join(part for part in (one.device, one.port, one.qualifier) if part)
