"""Series to one Arrow table of samples: canonical names, one source a place and metric, no duplicates, in time order.

One quantity from several sources is not mixed: the adapter with the most samples wins, and where another disagrees
with it a read issue says so. Everything is decided by (file, record), never by the order in which facts arrived.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from .facts import IssueLevel, Provenance, ReadIssue, Series
from .metrics import METRICS, MetricKind

if TYPE_CHECKING:
    import pyarrow as pa

Floats = npt.NDArray[np.float64]
Indices = npt.NDArray[np.int64]
Flags = npt.NDArray[np.bool_]

SAME_VALUE = 0.05
"""Relative difference up to which two sources of a gauge agree: polls are not simultaneous (judgement)."""


class SampleTable:
    """`sources` is the provenance of each series in the table's order, `table` has the columns ts, device, port,
    qualifier, metric, value, source (index into `sources`) and record (1-based line, 0: the series' own record);
    `rows_of` tells where in it the rows of (device, port, qualifier, metric) are, in time order; `issues` tell what was
    left out and why."""

    def __init__(self, series: Sequence[Series], resolve_port: Callable[[str, str], str]) -> None:
        ordered = sorted(
            series, key=lambda one: (one.provenance.source, one.provenance.record, one.metric, one.port, one.qualifier)
        )
        known = [one for one in ordered if one.metric in METRICS]
        self.issues: list[ReadIssue] = [_unknown_metric(one) for one in ordered if one.metric not in METRICS]
        self._series = known
        self._ports = [resolve_port(one.device, one.port) for one in known]
        self.sources: tuple[Provenance, ...] = tuple(one.provenance for one in known)
        self.rows_of: dict[tuple[str, str, str, str], slice] = {}
        self.table = self._build()

    def _build(self) -> pa.Table:
        import pyarrow as pa

        series = self._series
        index = np.repeat(np.arange(len(series), dtype=np.int64), [len(one.times) for one in series])
        times = np.array([time for one in series for time in one.times], dtype=np.float64)
        values = np.array([np.nan if v is None else v for one in series for v in one.values], dtype=np.float64)
        lines = np.array([line for one in series for line in (one.lines or (0,) * len(one.times))], dtype=np.int32)
        places: dict[tuple[str, str, str, str], int] = {}
        place_of = np.array(
            [
                places.setdefault((one.device, port, one.qualifier, one.metric), len(places))
                for one, port in zip(series, self._ports, strict=True)
            ],
            dtype=np.int64,
        )
        kept = ~np.isnan(values) & self._chosen(place_of, index)[index] if len(index) else np.zeros(0, dtype=bool)
        self._compare(place_of, index, times, values, kept)
        rows = np.nonzero(kept)[0]
        # Stable: of several samples of one place and time the first by file and record stays first.
        rows = rows[np.lexsort((times[rows], place_of[index[rows]]))]
        repeats = np.zeros(len(rows), dtype=bool)
        repeats[1:] = (np.diff(times[rows]) == 0) & (np.diff(place_of[index[rows]]) == 0)
        self._note_repeats(index[rows[repeats]])
        rows = rows[~repeats]
        names = list(places)
        starts = np.searchsorted(place_of[index[rows]], np.arange(len(names) + 1)).tolist()
        self.rows_of = {name: slice(first, last) for name, (first, last) in zip(names, pairwise(starts), strict=True)}

        def column(part: int) -> pa.DictionaryArray:
            encoded = pa.array([name[part] for name in names], pa.string()).dictionary_encode()
            codes = np.asarray(encoded.indices, dtype=np.int32)
            return pa.DictionaryArray.from_arrays(pa.array(codes[place_of[index[rows]]]), encoded.dictionary)

        return pa.table(
            {
                "ts": times[rows],
                "device": column(0),
                "port": column(1),
                "qualifier": column(2),
                "metric": column(3),
                "value": values[rows],
                "source": index[rows].astype(np.int32),
                "record": lines[rows],
            }
        )

    def _chosen(self, place_of: Indices, index: Indices) -> Flags:
        """Whether each series comes from the adapter with the most samples of its place and metric (ties: first by
        name)."""
        adapters = sorted({source.adapter for source in self.sources})
        adapter_of = np.array([adapters.index(source.adapter) for source in self.sources], dtype=np.int64)
        cell = place_of * len(adapters) + adapter_of
        samples = np.bincount(cell[index], minlength=(int(place_of.max(initial=0)) + 1) * len(adapters))
        best = samples.reshape(-1, len(adapters)).argmax(axis=1)
        return np.asarray(adapter_of == best[place_of])

    def _compare(
        self, place_of: Indices, index: Indices, times: Floats, values: Floats, kept: npt.NDArray[np.bool_]
    ) -> None:
        """One issue per left-out source and metric whose values the chosen source contradicts: a counter outside its
        neighbours in time, a gauge unlike both."""
        left_out = np.nonzero(~kept & ~np.isnan(values))[0]
        wanted = set(place_of[index[left_out]].tolist())
        chosen = np.nonzero(kept & np.isin(place_of[index], list(wanted)))[0] if wanted else np.zeros(0, dtype=np.int64)
        chosen = chosen[np.lexsort((times[chosen], place_of[index[chosen]]))]
        starts = np.searchsorted(place_of[index[chosen]], np.arange(int(place_of.max(initial=-1)) + 2))
        contradicted: dict[tuple[str, str], tuple[int, int]] = {}
        for row in left_out.tolist():
            place = int(place_of[index[row]])
            mine = chosen[starts[place] : starts[place + 1]]
            after = int(np.searchsorted(times[mine], times[row]))
            near = values[mine[max(after - 1, 0) : after + 1]]
            if len(near) == 2 and not _agrees(self._series[int(index[row])].metric, float(values[row]), near):
                one = self._series[int(index[row])]
                count, first = contradicted.get((one.provenance.source, one.metric), (0, int(index[row])))
                contradicted[(one.provenance.source, one.metric)] = (count + 1, first)
        for (file, metric), (count, first) in sorted(contradicted.items()):
            message = (
                f"{count} values of {metric} contradict the source with more samples, which was used; "
                "one of the two was cleared, or counts something else"
            )
            self.issues.append(
                ReadIssue(file, self.sources[first].record, IssueLevel.WARNING, "sources-disagree", message)
            )

    def _note_repeats(self, series: Indices) -> None:
        for source, count in zip(*(part.tolist() for part in np.unique(series, return_counts=True)), strict=True):
            message = f"{count} samples repeat a time of the same place and metric; the first of each was used"
            origin = self.sources[source]
            self.issues.append(ReadIssue(origin.source, origin.record, IssueLevel.NOTE, "duplicate-samples", message))


def _agrees(metric: str, value: float, near: Floats) -> bool:
    low, high = float(near.min()), float(near.max())
    if METRICS[metric].kind is MetricKind.COUNTER:
        return low <= value <= high or near[0] > near[1]  # a reset in between proves nothing
    if METRICS[metric].kind is MetricKind.WATERMARK:
        return True  # maxima over different intervals differ by nature
    slack = SAME_VALUE * max(abs(low), abs(high))
    return low - slack <= value <= high + slack


def _unknown_metric(one: Series) -> ReadIssue:
    message = f"metric {one.metric!r} is not a canonical one; its samples are left out"
    return ReadIssue(one.provenance.source, one.provenance.record, IssueLevel.WARNING, "unknown-metric", message)
