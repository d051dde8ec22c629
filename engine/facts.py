"""Facts: what the raw telemetry says, typed, each with the record it was read from.

Four shapes: `Series` (numbers over time), states (`RouteState`, `FirmwareState`, `QosProfile`), `Event` (something
happened at a time) and relations (`Cable`, `InterfaceAlias`, `JobPlacement`). A value is never invented: zero, a missed
poll (None in a series) and not collected (no fact) stay three things. Times are UTC, in seconds since the epoch.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Literal, Protocol


@dataclass(frozen=True, slots=True)
class Provenance:
    """Where a fact was read: `source` is the file's path in the bundle, `record` the place in it (`line 12`, `lines
    3-9`, or a JSON pointer such as `/interfaces/Ethernet12`), `sha256` the file's digest. Words after the lines, as in
    `line 12 Ethernet9 TC3 ecn-marked-pkts`, say what in a long line is meant."""

    source: str
    record: str
    adapter: str
    sha256: str


@dataclass(frozen=True, slots=True)
class Series:
    """Samples of one metric at one place, in file order (not necessarily in time order; duplicates may occur).

    `device`, `port` and `qualifier` are the place: a switch and its port, a host and its NIC (`mlx5_3`) or GPU
    (`gpu3`), a job alone. `port` is "" for a whole device or a job, `qualifier` "" where the metric has none (see
    `Metric.qualifier`). `values` hold None for a poll that gave no number. `lines` are the 1-based line of each
    sample, empty when `provenance.record` covers them all (a snapshot).
    """

    device: str
    port: str
    qualifier: str
    metric: str
    times: tuple[float, ...]
    values: tuple[float | None, ...]
    provenance: Provenance
    lines: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class NextHop:
    """One installed next hop: the outgoing interface and the neighbour's address ("" when the source does not print
    it)."""

    interface: str
    address: str


@dataclass(frozen=True, slots=True)
class RouteState:
    """Installed next hops of one prefix at a time; several make an ECMP group."""

    device: str
    prefix: str
    next_hops: tuple[NextHop, ...]
    at: float
    provenance: Provenance


@dataclass(frozen=True, slots=True)
class FirmwareState:
    """Driver and firmware of a NIC.

    `port` is the name the source uses (netdev or RDMA device); aliases resolve it. `at` None: no time known.
    """

    device: str
    port: str
    driver: str
    version: str
    at: float | None
    provenance: Provenance


@dataclass(frozen=True, slots=True)
class QosProfile:
    """Marking, PFC and buffer settings of a switch at a time; each None where the source does not say.

    `ecn_kmin_bytes` and `ecn_kmax_bytes` hold for a port of `ecn_speed_bps` and scale with the speed of the port;
    `ecn_speed_bps` None: they hold at every speed. `ecn_probability_max` is the share of packets marked at Kmax.
    `buffer_alpha` is the dynamic threshold of the ingress pool (a priority group may fill alpha times the free part),
    `buffer_bytes` the whole pool. `ecmp_hash` names the fields or the seed that choose a next hop.
    """

    device: str
    at: float
    provenance: Provenance
    ecn_enabled: bool | None = None
    ecn_kmin_bytes: float | None = None
    ecn_kmax_bytes: float | None = None
    ecn_speed_bps: float | None = None
    ecn_probability_max: float | None = None
    pfc_priorities: tuple[int, ...] | None = None
    buffer_alpha: float | None = None
    buffer_bytes: float | None = None
    ecmp_hash: str | None = None


class EventKind(StrEnum):
    LINK_DOWN = "link_down"
    LINK_UP = "link_up"
    SESSION_DOWN = "session_down"
    SESSION_UP = "session_up"
    CONFIG_CHANGE = "config_change"
    MAINTENANCE = "maintenance"
    FIRMWARE_LOAD = "firmware_load"
    REBOOT = "reboot"
    PFC_STORM_DETECTED = "pfc_storm_detected"
    PFC_STORM_RESTORED = "pfc_storm_restored"
    ASIC_ERROR = "asic_error"
    GPU_XID = "gpu_xid"
    JOB_CHANGE = "job_change"
    ROUTE_CHANGE = "route_change"
    HASH_CHANGE = "hash_change"
    HOST_CHANGE = "host_change"
    LOG_LINE = "log_line"


@dataclass(frozen=True, slots=True)
class Event:
    """Something that happened at `at` on `device` (and `port`, "" if none).

    `statement` is one readable line; `details` keep what rules need (`peer` address, `version`, `user` ...), names in
    lower case.
    """

    kind: EventKind
    device: str
    port: str
    at: float
    statement: str
    provenance: Provenance
    details: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Cable:
    """A link between two ports.

    `kind` intended: the cabling plan; observed: a neighbour protocol said so, from side a. `b_port` may be the
    neighbour's own spelling (a MAC): aliases resolve it. `speed_bps` and `role` None when the source does not say.
    """

    a_device: str
    a_port: str
    b_device: str
    b_port: str
    kind: Literal["intended", "observed"]
    provenance: Provenance
    speed_bps: float | None = None
    role: str | None = None


@dataclass(frozen=True, slots=True)
class InterfaceAlias:
    """`alias` (a MAC, a netdev, a short name) is another name of `port` on `device`.

    Chains (MAC -> netdev -> RDMA device) are followed.
    """

    device: str
    alias: str
    port: str
    provenance: Provenance


@dataclass(frozen=True, slots=True)
class JobPlacement:
    """Where a job runs.

    `job` is its name, `job_id` the scheduler's; `start` and `end` None when unknown or still running. `targets` are
    hosts that only receive its bytes (a checkpoint store). `traffic` is its pattern (`ring_allreduce`),
    `bytes_per_step` what a host sends in a step, `qps_per_pair` its connections between two NICs: None when unknown.
    """

    job: str
    job_id: str
    hosts: tuple[str, ...]
    start: float | None
    end: float | None
    provenance: Provenance
    tenant: str | None = None
    model: str | None = None
    targets: tuple[str, ...] = ()
    traffic: str | None = None
    bytes_per_step: float | None = None
    qps_per_pair: int | None = None


Fact = Series | RouteState | FirmwareState | QosProfile | Event | Cable | InterfaceAlias | JobPlacement


class IssueLevel(StrEnum):
    """NOTE: normal but worth saying (a file nobody reads).

    WARNING: part of a record was not understood. ERROR: a whole file was lost.
    """

    NOTE = "note"
    WARNING = "warning"
    ERROR = "error"


@dataclass(frozen=True, slots=True, order=True)
class ReadIssue:
    """What was not understood.

    `record` "" when the whole file is meant; `code` is stable and short (`truncated-json`); `message` says what was
    found, what was expected and what to do.
    """

    source: str
    record: str
    level: IssueLevel
    code: str
    message: str


@dataclass(frozen=True, slots=True)
class FileRead:
    """One file of the bundle.

    `adapter` None: no adapter claimed it.
    """

    path: str
    sha256: str
    adapter: str | None
    facts: int


@dataclass(frozen=True, slots=True)
class Incident:
    """What is asked of a bundle (from `incident.yaml` and the command line).

    `window` is (start, end), None when neither names one; `job` None: every job whose step time changed; `onset` only
    when an alert gave one (the engine finds it otherwise).
    """

    id: str
    fabric: str | None
    job: str | None
    window: tuple[float, float] | None
    onset: float | None = None


class Excerpts(Protocol):
    """Reads a record again to show it.

    Redaction (passwords, communities, keys, tokens) has been applied to what it returns.
    """

    def __call__(self, source: str, record: str) -> str: ...


@dataclass(frozen=True, slots=True)
class Reading:
    """All that the adapters made of a bundle."""

    incident: Incident
    facts: tuple[Fact, ...]
    issues: tuple[ReadIssue, ...]
    files: tuple[FileRead, ...]
    excerpt: Excerpts
