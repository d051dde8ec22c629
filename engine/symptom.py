"""The symptom: did the step time of a job get worse, when, and by how much?

Baseline and limits follow causal.md 4.8: enough steps on both sides, a change of at least 3 % and three spreads, and a
rank test that chance would pass once in a thousand. Packed-sequence jobs need token-normalised time; where tokens per
step vary they are divided out.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from .facts import Provenance
from .telemetry import Floats, Telemetry

LEAST_CHANGE = 0.03
"""Smallest relative change of the median that counts (causal.md 4.8)."""

LEAST_SPREADS = 3.0
"""Smallest change in median absolute deviations of the steps before it (causal.md 4.8)."""

LARGEST_P = 0.001
"""Largest p of the rank test (causal.md 4.8)."""
LEAST_STEPS = 10
"""Fewest steps on each side of a change point (causal.md 4.8: at least 10 after; its 50 before are kept as a note, not
a bar)."""
NEAR_BEST = 4.0
"""Change points whose fit is this close to the best (in log-likelihood units) are inside the uncertainty of the onset
(judgement: about 95 %)."""


@dataclass(frozen=True, slots=True)
class Symptom:
    """A job got slower.

    `onset` is when the first slow step began, `uncertainty_s` how far off that may be on either side: at least that
    step's length. `before_s` and `after_s` are median step times, `change` their relative difference, `record` the
    first slow step's record.
    """

    job: str
    onset: float
    uncertainty_s: float
    before_s: float
    after_s: float
    change: float
    record: Provenance


@dataclass(frozen=True, slots=True)
class Rise:
    """The step from one level of step times to a higher one.

    `first_slow` is the index of the first slow step; `earliest` and `latest` are the first and last index that fit
    nearly as well. `before_s`, `after_s`: medians of the levels.
    """

    first_slow: int
    earliest: int
    latest: int
    before_s: float
    after_s: float

    @property
    def change(self) -> float:
        return self.after_s / self.before_s - 1


def find_symptoms(telemetry: Telemetry, window: tuple[float, float]) -> tuple[Symptom, ...]:
    """Every job whose step time rose within the window, the largest change first."""
    jobs = telemetry.rows("SELECT DISTINCT device FROM samples WHERE metric = 'step_seconds' ORDER BY device")
    found = [symptom for (job,) in jobs if (symptom := find_symptom(telemetry, job, window)) is not None]
    return tuple(sorted(found, key=lambda symptom: (-symptom.change, symptom.job)))


def find_symptom(telemetry: Telemetry, job: str, window: tuple[float, float]) -> Symptom | None:
    """The rise of a job's step time within the window; None when it did not rise or too few steps tell."""
    rows = telemetry.rows(
        "SELECT steps.ts, steps.value, tokens.value, steps.source, steps.record FROM samples AS steps "
        "LEFT JOIN samples AS tokens ON tokens.metric = 'step_tokens' AND tokens.value > 0 "
        "AND tokens.device = steps.device AND tokens.ts = steps.ts "
        "WHERE steps.metric = 'step_seconds' AND steps.value > 0 AND steps.device = ? AND steps.ts BETWEEN ? AND ? "
        "ORDER BY steps.ts",
        (job, *window),
    )
    times = np.array([row[0] for row in rows], dtype=np.float64)
    seconds = np.array([row[1] for row in rows], dtype=np.float64)
    tokens = [row[2] for row in rows]
    if tokens and None not in tokens:
        seconds = seconds * np.median(tokens) / np.array(tokens, dtype=np.float64)
    rise = find_rise(seconds)
    if rise is None:
        return None
    onset = float(times[rise.first_slow - 1])
    _, _, _, source, record = rows[rise.first_slow]
    origin = telemetry.sources[source]
    return Symptom(
        job,
        onset,
        max(float(times[rise.latest] - onset), float(onset - times[rise.earliest - 1])),
        rise.before_s,
        rise.after_s,
        rise.change,
        Provenance(origin.source, f"line {record}", origin.adapter, origin.sha256) if record else origin,
    )


def find_rise(seconds: Floats) -> Rise | None:
    """The rise from one level to a higher one; of several the one that divides the steps best.

    A slow start or a recovery within the steps does not hide it: where the best division is a fall, the larger rise on
    either side of it counts, and what follows a later fall is not counted as slow. None where nothing rose.
    """
    if len(seconds) < 2 * LEAST_STEPS:
        return None
    point = change_point(seconds)
    split = point.first_slow
    if point.before_s > point.after_s:
        left, right = find_rise(seconds[:split]), find_rise(seconds[split:])
        right = right and replace(
            right,
            first_slow=right.first_slow + split,
            earliest=right.earliest + split,
            latest=right.latest + split,
        )
        return max(filter(None, (left, right)), key=lambda rise: rise.change, default=None)
    before, after = seconds[:split], seconds[split:]
    if len(after) >= 2 * LEAST_STEPS:
        recovery = change_point(after).first_slow
        if _has_risen(after[recovery:], after[:recovery]):
            after = after[:recovery]
    if not _has_risen(before, after):
        return None
    fast, slow = float(np.median(before)), float(np.median(after))
    # A checkpoint just ahead of the change pulls the best fit to itself: where as few steps lie on the wrong side of
    # the middle between the levels, the change may be as well.
    is_slow = np.concatenate((before, after)) > (fast + slow) / 2
    misplaced = np.cumsum(np.concatenate(([0], is_slow))) - np.cumsum(np.concatenate(([0], ~is_slow)))
    likely = np.nonzero(misplaced == misplaced.min())[0]
    return Rise(split, min(point.earliest, max(int(likely[0]), 1)), max(point.latest, int(likely[-1])), fast, slow)


def _has_risen(before: Floats, after: Floats) -> bool:
    middle = float(np.median(before))
    rise = float(np.median(after)) - middle
    spread = float(np.median(np.abs(before - middle)))
    is_large = rise >= LEAST_CHANGE * middle and rise >= LEAST_SPREADS * spread
    # The division was chosen as the best of many: chance had that many tries (Bonferroni).
    tries = max(1, len(before) + len(after) - 2 * LEAST_STEPS + 1)
    return is_large and tries * rank_test_p(before, after) <= LARGEST_P


def change_point(values: Floats) -> Rise:
    """The division into two levels that fits best, by least squares of ranks: a checkpoint that takes ten times as long
    weighs no more than any slow step. `before_s` and `after_s` are mean ranks here.

    Needs at least 2 x LEAST_STEPS values.
    """
    ranks = _ranks(values)
    count = len(ranks)
    ranks -= ranks.mean()
    splits = np.arange(LEAST_STEPS, count - LEAST_STEPS + 1)
    sums = np.cumsum(ranks)[splits - 1]
    left, right = sums / splits, -sums / (count - splits)
    residual = float(np.sum(ranks**2)) - splits * left**2 - (count - splits) * right**2
    best = int(np.argmin(residual))
    floor = max(float(residual[best]), 1e-12)
    near = np.nonzero(count / 2 * np.log(np.maximum(residual, floor) / floor) <= NEAR_BEST / 2)[0]
    return Rise(int(splits[best]), int(splits[near[0]]), int(splits[near[-1]]), float(left[best]), float(right[best]))


def _ranks(values: Floats) -> Floats:
    """Ranks from 1, ties at their mean rank."""
    _, inverse, counts = np.unique(values, return_inverse=True, return_counts=True)
    ranks: Floats = (np.cumsum(counts) - (counts - 1) / 2)[inverse]
    return ranks


def rank_test_p(before: Floats, after: Floats) -> float:
    """One-sided p of the Mann-Whitney test that `after` is larger (normal approximation, fine from 10 values a
    side)."""
    m, n = len(before), len(after)
    joined = np.concatenate((before, after))
    ranks = _ranks(joined)
    _, counts = np.unique(joined, return_counts=True)
    statistic = float(np.sum(ranks[m:])) - n * (n + 1) / 2
    ties = float(np.sum(counts**3 - counts)) / ((m + n) * (m + n - 1))
    deviation = math.sqrt(m * n / 12 * (m + n + 1 - ties))
    return 0.5 * math.erfc((statistic - m * n / 2) / (deviation * math.sqrt(2))) if deviation > 0 else 1.0
