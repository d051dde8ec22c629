"""When did the fabric change? The change point that several series share, for when no job's step time tells.

Each series (a counter as its rate) is averaged in bins of the window, divided at its best place by ranks, and kept
when that division is beyond chance and no mere drift. One series alone says little: the time counts at which several
places or several metrics change together.
"""

from __future__ import annotations

import math
from collections import defaultdict
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ..metrics import METRICS
from ..scope import ScopeKind
from ..telemetry import Floats, Telemetry
from .symptom import NEAR_BEST

Indices = npt.NDArray[np.int64]

MOST_BINS = 64
"""Bins of the window (judgement: finer than any poll of half a minute, and 64 floats a series fit in memory)."""

FEWEST_BINS = 12
"""Filled bins below which a series is not asked (judgement)."""

LEAST_SIDE = 5
"""Fewest bins on each side of a change (judgement: 5 of 54 come last by chance once in three million)."""

LEAST_SCORE = 5.0
"""Standard scores of the rank test that a change has at least: one-sided p = 3e-7, so that of 1,400 series with 45
divisions each 2 in a hundred bundles show one by chance (judgement)."""

LEAST_SHARED = 2
"""Fewest (device, metric) pairs that change together (DESIGN.md section 4: several series share it)."""


@dataclass(frozen=True, slots=True)
class Change:
    """The fabric changed at `at`, give or take `uncertainty_s`; `shared` (device, metric) pairs say so."""

    at: float
    uncertainty_s: float
    shared: int


@dataclass(frozen=True, slots=True)
class _Moved:
    """One series' change: its place and metric, the first bin behind it and its squared score; `earliest` and `latest`
    bins divide the series nearly as well."""

    device: str
    metric: str
    bin: int
    weight: float
    earliest: int
    latest: int


def shared_change(
    telemetry: Telemetry, window: tuple[float, float], until: float = math.inf, least: int = LEAST_SHARED
) -> Change | None:
    """The strongest change that at least so many pairs share, of those that begin by `until`; None when there is
    none."""
    start, end = window
    asked = [
        name
        for name, metric in METRICS.items()
        if metric.scope not in (ScopeKind.JOB, ScopeKind.RANK) and not name.startswith("ecn_k")
    ]
    ((interval,),) = telemetry.rows(
        "SELECT median(gap) FROM (SELECT ts - lag(ts) OVER (PARTITION BY device, port, qualifier, metric ORDER BY ts) "
        "AS gap FROM samples WHERE ts BETWEEN ? AND ? AND metric IN (SELECT unnest(?)))",
        (start, end, asked),
    )
    if interval is None:
        return None
    width = max((end - start) / MOST_BINS, interval)
    moved = [one for one in _moved(telemetry, window, asked, width) if start + one.bin * width <= until]
    weights: dict[int, dict[tuple[str, str], float]] = defaultdict(dict)
    for one in moved:
        # Polls are not simultaneous: what changed one bin earlier or later changed together.
        for near in (one.bin - 1, one.bin, one.bin + 1):
            key = (one.device, one.metric)
            weights[near][key] = max(weights[near].get(key, 0.0), one.weight)
    best = max(weights, key=lambda bin_: (sum(weights[bin_].values()), -bin_), default=None)
    if best is None or len(weights[best]) < least:
        return None
    members = [one for one in moved if abs(one.bin - best) <= 1]
    clearest = max(members, key=lambda one: one.weight)
    first = min(clearest.earliest, *(one.bin for one in members))
    last = max(clearest.latest, *(one.bin for one in members))
    # The first bin behind a change may hold it as well as the last one before it.
    at, uncertainty = start + (first + last) / 2 * width, ((last - first) / 2 + 1) * width
    return Change(at, uncertainty, len(weights[best]))


def _moved(telemetry: Telemetry, window: tuple[float, float], asked: list[str], width: float) -> list[_Moved]:
    telemetry.rows(
        "CREATE OR REPLACE TEMP TABLE binned AS WITH levels AS (SELECT device, port, qualifier, metric, "
        "CASE WHEN cumulative THEN (value - lag(value) OVER series) / (ts - lag(ts) OVER series) ELSE value END "
        "AS level, CASE WHEN cumulative THEN (ts + lag(ts) OVER series) / 2 ELSE ts END AS middle, "
        "cumulative FROM samples LEFT JOIN kinds USING (metric) "
        "WHERE ts BETWEEN ? AND ? AND metric IN (SELECT unnest(?)) "
        "WINDOW series AS (PARTITION BY device, port, qualifier, metric ORDER BY ts)) "
        "SELECT device, port, qualifier, metric, floor((middle - ?) / ?)::INTEGER AS bin, avg(level) AS level "
        # A counter that fell was reset; a level of no light (-inf) has no mean.
        "FROM levels WHERE isfinite(level) AND NOT (coalesce(cumulative, FALSE) AND level < 0) GROUP BY ALL",
        (*window, asked, window[0], width),
    )
    telemetry.rows(
        "CREATE OR REPLACE TEMP TABLE varied AS "
        "SELECT row_number() OVER (ORDER BY device, port, qualifier, metric) - 1 AS row, "
        "device, port, qualifier, metric FROM binned GROUP BY device, port, qualifier, metric "
        "HAVING min(level) < max(level) AND count(*) >= ?",
        (FEWEST_BINS,),
    )
    names = telemetry.rows("SELECT device, metric FROM varied ORDER BY row")
    cells = telemetry.columns(
        "SELECT row, bin, level FROM binned JOIN varied USING (device, port, qualifier, metric) ORDER BY row, bin"
    )
    if not names:
        return []
    levels = np.full((len(names), int(cells["bin"].max()) + 1), np.nan)
    levels[cells["row"], cells["bin"]] = cells["level"]
    filled = ~np.isnan(levels)
    found: list[_Moved] = []
    # Series that are filled alike are weighed at once; most are.
    patterns, of_row = np.unique(filled, axis=0, return_inverse=True)
    for number, pattern in enumerate(patterns):
        rows, bins = np.nonzero(of_row.ravel() == number)[0], np.nonzero(pattern)[0]
        division = best_division(levels[np.ix_(rows, bins)])
        for n in np.nonzero(division.score >= LEAST_SCORE)[0].tolist():
            at, earliest, latest = (int(bins[side[n]]) for side in (division.best, division.earliest, division.latest))
            device, metric = names[rows[n]]
            found.append(_Moved(device, metric, at, float(division.score[n] ** 2), earliest, latest))
    return found


@dataclass(frozen=True, slots=True)
class Division:
    """The best division of each row: the first column behind it, the first and last that divide nearly as well, and
    the standard score of the rank test there."""

    best: Indices
    earliest: Indices
    latest: Indices
    score: Floats


def best_division(levels: Floats) -> Division:
    """The best division of each row; score 0 where a straight line fits as well as a step: a drift has no moment.

    Rows vary; those with fewer than 2 x LEAST_SIDE columns have no division, and score 0.
    """
    rows, count = levels.shape
    ranked = _row_ranks(levels)
    ranked -= ranked.mean(axis=1, keepdims=True)
    total = np.sum(ranked**2, axis=1)
    splits = np.arange(LEAST_SIDE, count - LEAST_SIDE + 1)
    if len(splits) == 0:
        none = np.zeros(rows, dtype=np.int64)
        return Division(none, none, none, np.zeros(rows))
    sums = np.cumsum(ranked, axis=1)[:, splits - 1]
    explained = sums**2 * (1 / splits + 1 / (count - splits)) / total[:, None]
    best = np.argmax(explained, axis=1)
    step = explained[np.arange(rows), best]
    left = np.maximum(1 - explained, 1e-12)
    is_near = count / 2 * np.log(left / left.min(axis=1, keepdims=True)) <= NEAR_BEST / 2
    time = np.arange(count) - (count - 1) / 2
    line = (ranked @ time) ** 2 / (time @ time) / total
    return Division(
        splits[best],
        splits[np.argmax(is_near, axis=1)],
        splits[len(splits) - 1 - np.argmax(is_near[:, ::-1], axis=1)],
        np.where(step > line, np.sqrt((count - 1) * step), 0.0),
    )


def _row_ranks(levels: Floats) -> Floats:
    """Ranks within each row, ties at their mean rank."""
    count = levels.shape[1]
    order = np.argsort(levels, axis=1, kind="stable")
    ordered = np.take_along_axis(levels, order, axis=1)
    position = np.broadcast_to(np.arange(count), levels.shape)
    is_first = np.ones(levels.shape, dtype=np.bool_)
    is_first[:, 1:] = ordered[:, 1:] != ordered[:, :-1]
    is_last = np.ones(levels.shape, dtype=np.bool_)
    is_last[:, :-1] = is_first[:, 1:]
    first = np.maximum.accumulate(np.where(is_first, position, 0), axis=1)
    last = np.minimum.accumulate(np.where(is_last, position, count)[:, ::-1], axis=1)[:, ::-1]
    found = np.empty(levels.shape)
    np.put_along_axis(found, order, (first + last) / 2, axis=1)
    return found
