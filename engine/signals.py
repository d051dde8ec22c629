"""The signals pass: one Ibis expression from samples to a row of window statistics per (place, metric).

The expression names no backend: DuckDB runs it by default, over memory or Parquet; where telemetry outgrew one machine
the same expression runs there and only its rows come back. Signs are predicates over the columns made here
(`COLUMNS`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from .facts import Provenance
from .telemetry import Telemetry

KEYS = ("device", "port", "qualifier", "metric")

COLUMNS: dict[str, str] = {
    "before_n": "samples (counter: intervals) that end before the onset",
    "before_p50": "median before the onset; a counter as rate per second here and below",
    "before_p95": "95th percentile before the onset",
    "before_min": "smallest value before the onset",
    "before_max": "largest value before the onset",
    "before_mean": "time-weighted mean before the onset",
    "before_delta": "total increase of a counter before the onset; NULL for gauges",
    "after_n": "samples (counter: intervals) behind the onset",
    "after_p50": "median after the onset",
    "after_p95": "95th percentile after the onset",
    "after_min": "smallest value after the onset",
    "after_max": "largest value after the onset",
    "after_mean": "time-weighted mean after the onset",
    "after_delta": "total increase of a counter after the onset; NULL for gauges",
    "after_coverage": "share of the time after the onset that samples cover, at most 1",
    "slope": "least-squares slope over the whole window, per second",
    "resets": "decreases of a counter in the window: reset, reboot or clear",
    "interval_s": "median time between samples, in seconds; NULL with one sample",
    "first_above_ts": "first time after the onset above everything before it; NULL if never",
    "first_below_ts": "first time after the onset below everything before it; NULL if never",
    "shape": "none, step, ramp or burst: how the values after the onset leave the range before it",
}

EVIDENCE_COLUMNS = ("max_source", "max_record", "min_source", "min_record", "last_source", "last_record")


@dataclass(frozen=True, slots=True)
class Split:
    """The window and the onset that divides it.

    `onset` None: everything counts as after, nothing as before.
    """

    start: float
    end: float
    onset: float | None
    uncertainty_s: float


Key = tuple[str, str, str]
"""(device, port, qualifier) of a row of signals."""


@dataclass(frozen=True, slots=True)
class Signal:
    """One row of the signals table: its columns by name; None where SQL had NULL."""

    key: Key
    columns: Mapping[str, float | None]
    shape: str | None
    extreme: Provenance | None
    last: Provenance

    def __getitem__(self, column: str) -> float | None:
        return self.columns[column]


def expression(samples: Any, kinds: Any, split: Split) -> Any:
    """The signals of `samples` (ts, device, port, qualifier, metric, value, source, record) as an Ibis table
    expression.

    `kinds` names the counters (`cumulative`) and the watermarks among the metrics. A counter's interval belongs to the
    side of the onset its middle lies on, so a slow poll that straddles the onset is after only when most of it is; one
    that ends later than the uncertainty of the onset is no longer before. Negative differences are resets: counted,
    never used. Without an onset, counters and watermarks are compared with silence (0 before), so that anomalies show
    at all; levels are compared with nothing.
    """
    import ibis

    onset = split.start - 1.0 if split.onset is None else split.onset
    inside = samples.filter(samples.ts >= split.start, samples.ts <= split.end)
    typed = inside.left_join(kinds, "metric").mutate(
        rests_at_zero=lambda t: t.cumulative.notnull(), cumulative=lambda t: t.cumulative.fill_null(False)
    )
    typed = typed.drop("metric_right") if "metric_right" in typed.columns else typed
    series = ibis.window(group_by=list(KEYS), order_by="ts")
    spaced = typed.mutate(
        span=lambda t: t.ts - t.ts.lag().over(series),
        increase=lambda t: t.value - t.value.lag().over(series),
    )
    levels = spaced.mutate(
        is_reset=lambda t: t.cumulative & (t.increase < 0),
        level=lambda t: ibis.ifelse(t.cumulative, ibis.ifelse(t.increase >= 0, t.increase / t.span, None), t.value),
        increase=lambda t: ibis.ifelse(t.cumulative & (t.increase >= 0), t.increase, None),
        middle=lambda t: ibis.ifelse(t.cumulative, t.ts - t.span / 2, t.ts),
    ).mutate(
        is_before=lambda t: ibis.ifelse(
            t.cumulative,
            (t.middle < onset) & (t.ts <= onset + split.uncertainty_s),
            t.ts <= onset - split.uncertainty_s,
        ),
        is_after=lambda t: (t.middle >= onset) & (t.ts > onset + split.uncertainty_s),
    )
    whole = ibis.window(group_by=list(KEYS))
    ranged = levels.mutate(
        range_max=lambda t: t.level.max(where=t.is_before).over(whole),
        range_min=lambda t: t.level.min(where=t.is_before).over(whole),
    )
    span_after = max(split.end - max(onset, split.start), 1.0)
    rows = ranged.group_by(list(KEYS)).agg(
        rests_at_zero=lambda t: t.rests_at_zero.any(),
        before_n=lambda t: t.level.count(where=t.is_before),
        before_quantiles=lambda t: t.level.quantile([0.5, 0.95], where=t.is_before),
        before_min=lambda t: t.level.min(where=t.is_before),
        before_max=lambda t: t.level.max(where=t.is_before),
        before_mean=lambda t: ibis.coalesce(
            t.increase.sum(where=t.is_before) / t.span.sum(where=t.is_before & t.increase.notnull()),
            t.level.mean(where=t.is_before),
        ),
        before_delta=lambda t: t.increase.sum(where=t.is_before),
        after_n=lambda t: t.level.count(where=t.is_after),
        after_quantiles=lambda t: t.level.quantile([0.5, 0.95], where=t.is_after),
        after_min=lambda t: t.level.min(where=t.is_after),
        after_max=lambda t: t.level.max(where=t.is_after),
        after_mean=lambda t: ibis.coalesce(
            t.increase.sum(where=t.is_after) / t.span.sum(where=t.is_after & t.increase.notnull()),
            t.level.mean(where=t.is_after),
        ),
        after_delta=lambda t: t.increase.sum(where=t.is_after),
        covered_s=lambda t: t.span.sum(where=t.is_after & t.level.notnull() & t.cumulative),
        slope=lambda t: t.level.cov(t.ts, how="pop") / t.ts.var(how="pop", where=t.level.notnull()).nullif(0),
        resets=lambda t: t.is_reset.sum().fill_null(0),
        interval_s=lambda t: t.span.quantile(0.5),
        first_above_ts=lambda t: t.ts.min(where=t.is_after & (t.level > t.range_max)),
        first_below_ts=lambda t: t.ts.min(where=t.is_after & (t.level < t.range_min)),
        max_source=lambda t: t.source.argmax(t.level, where=t.is_after),
        max_record=lambda t: t.record.argmax(t.level, where=t.is_after),
        min_source=lambda t: t.source.argmin(t.level, where=t.is_after),
        min_record=lambda t: t.record.argmin(t.level, where=t.is_after),
        last_source=lambda t: t.source.argmax(t.ts),
        last_record=lambda t: t.record.argmax(t.ts),
    )
    # Both quantiles of a side from one sort.
    rows = rows.mutate(
        before_p50=rows.before_quantiles[0],
        before_p95=rows.before_quantiles[1],
        after_p50=rows.after_quantiles[0],
        after_p95=rows.after_quantiles[1],
    )
    if split.onset is None:
        silent = [name for name in COLUMNS if name.startswith("before_") and name != "before_n"]
        rows = rows.mutate(**{name: ibis.ifelse(rows.rests_at_zero, 0.0, rows[name]) for name in silent})
    shape = ibis.cases(
        ((rows.before_n == 0) | (rows.after_n == 0), None),
        ((rows.after_p50 > rows.before_max) | (rows.after_p50 < rows.before_min), "moved"),
        ((rows.after_max > rows.before_max) | (rows.after_min < rows.before_min), "burst"),
        else_="none",
    )
    moved_at = ibis.least(
        ibis.coalesce(rows.first_above_ts, rows.first_below_ts), ibis.coalesce(rows.first_below_ts, rows.first_above_ts)
    )
    # A step leaves the old range within two samples of the onset and stays out; a ramp takes longer.
    prompt = moved_at <= onset + split.uncertainty_s + 2 * rows.interval_s
    covered = ibis.coalesce(rows.covered_s, rows.after_n * rows.interval_s.fill_null(span_after))
    return rows.mutate(
        shape=ibis.cases((shape == "moved", ibis.ifelse(prompt, "step", "ramp")), else_=shape),
        after_coverage=ibis.least(covered / span_after, 1.0),
    ).select(*KEYS, *COLUMNS, *EVIDENCE_COLUMNS)


def reduce(telemetry: Telemetry, split: Split) -> None:
    """Runs the signals pass and keeps its rows as table `signals` beside the samples (see `Telemetry.rows`)."""
    connection = telemetry.connection
    found = expression(telemetry.samples, connection.table("kinds"), split)
    connection.create_table("signals", found, overwrite=True)
