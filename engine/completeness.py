"""What is missing or odd in a bundle as a whole, told as read issues: no links, a job without step times, counters that
fell.

A single bad file is the adapters' to tell. Nothing is decided by these issues; they say what the verdict rests on.
"""

from __future__ import annotations

from .facts import IssueLevel, ReadIssue
from .steps.symptom import FEWEST_STEPS
from .telemetry import Telemetry
from .topology import Topology
from .wording import timestamp

WHOLE_BUNDLE = "bundle"
"""Stands where a read issue names its file, when the fault is that there is none."""


def completeness_issues(
    topology: Topology, telemetry: Telemetry, job: str | None, window: tuple[float, float]
) -> tuple[ReadIssue, ...]:
    """Needs the table `signals` (see `signals.reduce`)."""
    return (*_without_links(topology), *_without_steps(telemetry, job, window), *_fallen_counters(telemetry, window))


def steps_in(telemetry: Telemetry, job: str | None, window: tuple[float, float]) -> int:
    """Step times of the job (None: of the job that has most) within the window."""
    rows = telemetry.rows(
        "SELECT count(*) FROM samples WHERE metric = 'step_seconds' AND ts BETWEEN ? AND ? "
        "AND device = coalesce(?, device) GROUP BY device ORDER BY 1 DESC",
        (*window, job),
    )
    return int(rows[0][0]) if rows else 0


def has_enough_steps(telemetry: Telemetry, job: str | None, window: tuple[float, float]) -> bool:
    """Whether a change of step time could have been seen at all."""
    return steps_in(telemetry, job, window) >= FEWEST_STEPS


def _without_links(topology: Topology) -> tuple[ReadIssue, ...]:
    if topology.links:
        return ()
    message = (
        "no file says which ports are connected, so no cause in the network can be placed; "
        "add a cabling plan or the LLDP neighbours of the switches (`show lldp neighbors | json`)"
    )
    return (ReadIssue(WHOLE_BUNDLE, "", IssueLevel.ERROR, "no-topology", message),)


def _without_steps(telemetry: Telemetry, job: str | None, window: tuple[float, float]) -> tuple[ReadIssue, ...]:
    if has_enough_steps(telemetry, job, window):
        return ()
    whose = job or "any job"
    ((total, first, last, source),) = telemetry.rows(
        "SELECT count(*), min(ts), max(ts), min(source) FROM samples "
        "WHERE metric = 'step_seconds' AND device = coalesce(?, device)",
        (job,),
    )
    if total == 0:
        message = f"no step time of {whose} was read, so whether it slowed is unknown; add its step log as JSON lines"
        return (ReadIssue(WHOLE_BUNDLE, "", IssueLevel.WARNING, "no-steps", message),)
    message = (
        f"{steps_in(telemetry, job, window)} of {total} step times of {whose} lie in the window, {FEWEST_STEPS} are "
        f"needed to see a change (they run from {timestamp(first)} to {timestamp(last)}); check window and time zone"
    )
    return (ReadIssue(telemetry.sources[source].source, "", IssueLevel.WARNING, "too-few-steps", message),)


def _fallen_counters(telemetry: Telemetry, window: tuple[float, float]) -> tuple[ReadIssue, ...]:
    """One issue per file, port and time at which counters fell: a restart resets them all at once."""
    rows = telemetry.rows(
        "WITH steps AS (SELECT samples.*, value < lag(value) OVER (PARTITION BY device, port, qualifier, metric "
        "ORDER BY ts) AS fell FROM samples SEMI JOIN (SELECT * FROM signals WHERE resets > 0) AS reset "
        "USING (device, port, qualifier, metric) WHERE ts BETWEEN ? AND ?) "
        "SELECT device, port, ts, min(metric), count(*), min(source), min(record) FROM steps WHERE fell "
        "GROUP BY device, port, ts ORDER BY device, port, ts",
        window,
    )
    issues = []
    for device, port, at, metric, count, source, record in rows:
        origin = telemetry.sources[source]
        counters = metric if count == 1 else f"{metric} and {count - 1} more counters"
        message = (
            f"{counters} of {' '.join(filter(None, (device, port)))} fell at {timestamp(at)}: cleared or restarted; "
            "the interval before is not used, find out who did it"
        )
        place = f"line {record}" if record else origin.record
        issues.append(ReadIssue(origin.source, place, IssueLevel.WARNING, "counter-reset", message))
    return tuple(issues)
