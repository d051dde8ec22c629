"""Signs that need the graph or several metrics at once: each is a function of an `Observed` fabric, found by name in
`PATTERNS`."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from ..findings import SignFinding
from ..observed import Observed
from .cohort import cohort_anomalies, cohort_deviation
from .ecmp import group_skew, membership_change
from .foreign import foreign_bytes
from .job import job_restarted, paths_idle
from .links import link_losses, missing_links
from .notifications import open_loops
from .pauses import (
    host_initiators,
    pause_cycles,
    paused_by_host,
    paused_by_switch,
    pauses_sent,
    port_initiators,
    stuck_anywhere,
)
from .queues import unmarked_queues
from .ranks import late_ranks, late_sends, uniform_slowdown

Pattern = Callable[[Observed, str, Mapping[str, float]], Iterable[SignFinding]]
"""(observed fabric, sign id, limits by name) -> findings of that sign."""

PATTERNS: dict[str, Pattern] = {
    "cohort_anomalies": cohort_anomalies,
    "cohort_deviation": cohort_deviation,
    "foreign_bytes": foreign_bytes,
    "group_skew": group_skew,
    "host_initiators": host_initiators,
    "job_restarted": job_restarted,
    "late_ranks": late_ranks,
    "late_sends": late_sends,
    "link_losses": link_losses,
    "membership_change": membership_change,
    "missing_links": missing_links,
    "open_loops": open_loops,
    "paths_idle": paths_idle,
    "paused_by_host": paused_by_host,
    "paused_by_switch": paused_by_switch,
    "pauses_sent": pauses_sent,
    "pause_cycles": pause_cycles,
    "port_initiators": port_initiators,
    "stuck_anywhere": stuck_anywhere,
    "uniform_slowdown": uniform_slowdown,
    "unmarked_queues": unmarked_queues,
}
