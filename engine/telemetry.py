"""The columnar store of series: one table of samples in DuckDB, in memory, reached through Ibis.

Facts go in as Arrow columns, never row by row, and only what is asked for comes back as Python values. Interface names
are made canonical here (aliases such as netdevs and MACs end at this table). Nothing is judged here.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from .facts import ReadIssue, Series
from .metrics import METRICS, MetricKind
from .sample_table import SampleTable

if TYPE_CHECKING:
    import ibis

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Line:
    """One series read back: times (seconds since the epoch, ascending), values (a counter as its rate per second, at
    the end of each interval)."""

    times: Floats
    values: Floats


class Telemetry:
    """Samples of all series in the table `samples`: ts, device, port, qualifier, metric, value, source, record.

    `source` indexes `sources` (a provenance per series), `record` is the 1-based line of the sample, 0 when the series'
    own record covers it. `issues` tell which samples were left out (see `sample_table.py`).
    """

    def __init__(self, series: Sequence[Series], resolve_port: Callable[[str, str], str]) -> None:
        import ibis
        import pyarrow as pa

        built = SampleTable(series, resolve_port)
        self.sources = built.sources
        self.issues: tuple[ReadIssue, ...] = tuple(built.issues)
        # One thread, one fixed reduction order: the same floats every time.
        self.connection: ibis.BaseBackend = ibis.duckdb.connect(threads=1)
        resting = {name: metric.kind for name, metric in METRICS.items() if metric.kind is not MetricKind.GAUGE}
        self.connection.create_table("samples", built.table)
        cumulative = [kind is MetricKind.COUNTER for kind in resting.values()]
        self.connection.create_table("kinds", pa.table({"metric": list(resting), "cumulative": cumulative}))
        self.samples: Any = self.connection.table("samples")

    def rows(self, sql: str, parameters: Sequence[object] = ()) -> list[tuple[Any, ...]]:
        """Rows of a query over the tables `samples`, `kinds` and `signals`, as Python values."""
        found: list[tuple[Any, ...]] = self.connection.con.execute(sql, list(parameters)).fetchall()
        return found

    def columns(self, sql: str, parameters: Sequence[object] = ()) -> dict[str, npt.NDArray[Any]]:
        """The same as one array per column, for numbers by the million."""
        found: dict[str, npt.NDArray[Any]] = self.connection.con.execute(sql, list(parameters)).fetchnumpy()
        return found

    def span(self) -> tuple[float, float] | None:
        """Time of the first and the last sample; None when there is none."""
        ((first, last),) = self.rows("SELECT min(ts), max(ts) FROM samples")
        return None if first is None else (first, last)

    def line(self, device: str, port: str, qualifier: str, metric: str) -> Line:
        """One series in time order; a counter comes as rates, with resets left out.

        Empty when nothing was read.
        """
        found = self.rows(
            "SELECT ts, value FROM samples WHERE device = ? AND port = ? AND qualifier = ? AND metric = ? ORDER BY ts",
            (device, port, qualifier, metric),
        )
        times = np.array([row[0] for row in found], dtype=np.float64)
        values = np.array([row[1] for row in found], dtype=np.float64)
        if METRICS[metric].kind is not MetricKind.COUNTER:
            return Line(times, values)
        deltas, spans = np.diff(values), np.diff(times)
        kept = deltas >= 0
        return Line(times[1:][kept], deltas[kept] / spans[kept])
