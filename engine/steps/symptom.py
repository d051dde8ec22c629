"""The symptom: did the step time of a job get worse, when, and by how much?

Baseline and limits follow causal.md 4.8: a change of at least 3 % and three spreads, and a rank test that chance would
pass once in a thousand; where few steps follow the change, the exact test. Steps may all be slower, or some of them,
or one may stall. Packed-sequence jobs need token-normalised time; where tokens per step vary they are divided out.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from enum import StrEnum

import numpy as np
import numpy.typing as npt

from ..facts import Provenance
from ..telemetry import Floats, Telemetry
from .rank_tests import exact_rank_test_p, rank_test_p, ranks
from .stalls import find_stall

LEAST_CHANGE = 0.03
"""Smallest relative change of the median that counts (causal.md 4.8)."""

LEAST_SPREADS = 3.0
"""Smallest change in median absolute deviations of the steps before it (causal.md 4.8)."""

SLOW_SPREADS = 6.0
"""Median absolute deviations above the median from which a single step is slow (judgement: four standard deviations of
a normal distribution)."""

SLOW_FACTORS = (1.0, 2.0, 4.0)
"""Multiples of the least excess of a slow step that are tried (judgement: the longest is 12 % slower)."""

LARGEST_P = 0.001
"""Largest p of the rank test (causal.md 4.8)."""

ENOUGH_STEPS = 10
"""Steps on each side from which the normal approximation of the rank test holds; below it the exact test decides."""

LEAST_BEFORE, LEAST_AFTER = 5, 4
"""Fewest steps before and after a change point (judgement: fewer behind it cannot pass the exact test, fewer ahead of
it are no baseline)."""

FEWEST_STEPS = 16
"""Steps below which no division passes: the best of n - 8 divisions of n steps has p = (n - 8) / C(n, n / 2), which
first is below LARGEST_P at 16."""
LONGEST_EXACT = 60
"""Most steps ahead of a change that the exact test takes, those next to it (causal.md 4.8: a baseline of 50)."""
NEAR_BEST = 4.0
"""Change points whose fit is this close to the best (in log-likelihood units) are inside the uncertainty of the onset
(judgement: about 95 %)."""
UNEXPLAINED = 0.02
"""P(a rise this size without any catalogued cause) (judgement, DESIGN.md section 5)."""
LOG_ENDS = 0.5
"""P(a log that stops was no longer written or collected, though the job went on) (judgement)."""


class SymptomKind(StrEnum):
    """How a job got slower: every step, some steps, or one step that took (or takes) far too long."""

    RISE = "rise"
    INTERMITTENT = "intermittent"
    STALL = "stall"


@dataclass(frozen=True, slots=True)
class Symptom:
    """A job got slower.

    `onset` is when the first slow step began, or the job stopped ahead of it; `uncertainty_s` is how far off that may
    be on either side: at least the usual length of a step, and the time for which the job stood still. `before_s` and
    `after_s` are step times: medians of a rise, means of an intermittent one, the median and the long step of a stall
    (`is_open`: it has not ended, so at least). `change` is their relative difference, `record` the first slow step's
    record, `steps` how many were compared on each side. `unexplained` is the probability of such a change without any
    catalogued cause. `until` is when a stall was over or last seen to last; a rise is taken to last.
    """

    job: str
    onset: float
    uncertainty_s: float
    before_s: float
    after_s: float
    change: float
    record: Provenance
    kind: SymptomKind = SymptomKind.RISE
    is_open: bool = False
    steps: tuple[int, int] = (0, 0)
    unexplained: float = UNEXPLAINED
    until: float = math.inf


@dataclass(frozen=True, slots=True)
class Rise:
    """The step from one level of step times to a higher one.

    `first_slow` is the index of the first slow step, `end` that of the first step behind the slow ones; `earliest` and
    `latest` are the first and last index that fit nearly as well. `before_s`, `after_s`: medians of the levels, means
    where only some steps are slow.
    """

    first_slow: int
    earliest: int
    latest: int
    before_s: float
    after_s: float
    end: int = 0
    is_intermittent: bool = False

    @property
    def change(self) -> float:
        return self.after_s / self.before_s - 1


@dataclass(frozen=True, slots=True)
class _Steps:
    """Steps of a job within the window: when each began and ended and how long it took (per token, where those vary).

    `is_open`: the last has not ended; its values are when and how long it was watched. `open_began`: its begin was
    recorded, not guessed.
    """

    begins: Floats
    times: Floats
    seconds: Floats
    records: tuple[Provenance, ...]
    is_open: bool
    open_began: bool


def find_symptoms(
    telemetry: Telemetry, window: tuple[float, float], ends: Mapping[str, float] | None = None
) -> tuple[Symptom, ...]:
    """Every job whose step time rose within the window, the largest change first.

    `ends` tells until when a job was scheduled to run, where that is known: only then a log that stops is a stall.
    """
    jobs = telemetry.rows(
        "SELECT DISTINCT device FROM samples WHERE metric IN ('step_seconds', 'step_open') ORDER BY device"
    )
    found = [
        symptom
        for (job,) in jobs
        if (symptom := find_symptom(telemetry, job, window, (ends or {}).get(job))) is not None
    ]
    return tuple(sorted((_confirmed(one, found) for one in found), key=lambda one: (-one.change, one.job)))


def _confirmed(symptom: Symptom, found: list[Symptom]) -> Symptom:
    """A stall, less likely innocent where other jobs were slow at the same time: their checkpoints do not coincide."""
    unexplained = symptom.unexplained
    for other in found:
        if other is not symptom and overlaps(symptom, other):
            unexplained *= other.unexplained
    return replace(symptom, unexplained=max(unexplained, min(UNEXPLAINED, symptom.unexplained)))


def overlaps(one: Symptom, other: Symptom) -> bool:
    """Whether two jobs were slow at the same time."""
    return max(one.onset, other.onset) <= min(one.until, other.until)


def find_symptom(
    telemetry: Telemetry, job: str, window: tuple[float, float], end: float | None = None
) -> Symptom | None:
    """The rise of a job's step time within the window, else a step that stalled; None when neither shows or too few
    steps tell."""
    steps = _steps(telemetry, job, window, end)
    rise = find_rise(steps.seconds) or find_intermittent(steps.seconds)
    if rise is not None:
        onset = float(steps.times[rise.first_slow - 1])
        # Without a fault the last step in question would have ended after its usual time. A job that stood still before
        # it (a restart) was changed by then.
        began = float(steps.begins[min(rise.latest, len(steps.begins) - 1)])
        latest = max(float(steps.times[rise.latest - 1]), began) + rise.before_s
        return Symptom(
            job,
            onset,
            max(latest - onset, float(onset - steps.times[rise.earliest - 1])),
            rise.before_s,
            rise.after_s,
            rise.change,
            steps.records[rise.first_slow],
            SymptomKind.INTERMITTENT if rise.is_intermittent else SymptomKind.RISE,
            steps=(rise.first_slow, rise.end - rise.first_slow),
        )
    stall = find_stall(steps.seconds)
    if stall is None:
        return None
    is_open = steps.is_open and stall.index == len(steps.seconds) - 1
    length = float(steps.seconds[stall.index])
    return Symptom(
        job,
        float(steps.times[stall.index]) - length,
        # What stopped the step did so before it would have ended.
        stall.usual_s,
        stall.usual_s,
        length,
        stall.times - 1,
        steps.records[stall.index],
        SymptomKind.STALL,
        is_open,
        (stall.index, 1),
        max(stall.innocent, UNEXPLAINED) if steps.open_began or not is_open else LOG_ENDS,
        float(steps.times[stall.last]),
    )


def _steps(telemetry: Telemetry, job: str, window: tuple[float, float], end: float | None) -> _Steps:
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
    begins = times - seconds
    records = tuple(_record(telemetry, row[3], row[4]) for row in rows)
    tokens = [row[2] for row in rows]
    if tokens and None not in tokens:
        seconds = seconds * np.median(tokens) / np.array(tokens, dtype=np.float64)
    last = _open_step(telemetry, job, window, rows[-1] if rows else None, end)
    # A step under way says something only once it has outlasted the usual one.
    if last is None or len(seconds) == 0 or last[1] <= np.median(seconds):
        return _Steps(begins, times, seconds, records, False, False)
    watched, lasted, record, began = last
    if not began and lasted < np.max(seconds):
        return _Steps(begins, times, seconds, records, False, False)
    return _Steps(
        np.append(begins, watched - lasted),
        np.append(times, watched),
        np.append(seconds, lasted),
        (*records, record),
        True,
        began,
    )


def _open_step(
    telemetry: Telemetry, job: str, window: tuple[float, float], last: tuple[object, ...] | None, end: float | None
) -> tuple[float, float, Provenance, bool] | None:
    """(until when it was watched, how long it lasted by then, record, was its begin recorded?) of the step that had
    not ended by the end of the window.

    Where only ends are logged, the last end is the begin of the next step, if the scheduler says that the job ran on.
    """
    span = telemetry.span()
    watched = min(window[1], span[1] if span else window[1])
    opened = telemetry.rows(
        "SELECT ts, source, record FROM samples WHERE metric = 'step_open' AND device = ? AND ts BETWEEN ? AND ? "
        "ORDER BY ts DESC LIMIT 1",
        (job, *window),
    )
    if opened:
        at, source, record = opened[0]
        return watched, watched - at, _record(telemetry, source, record), True
    later = telemetry.rows(
        "SELECT 1 FROM samples WHERE metric = 'step_seconds' AND device = ? AND ts > ? LIMIT 1", (job, window[1])
    )
    if last is None or later or end is None or end <= watched:
        return None
    at, source, record = float(str(last[0])), int(str(last[3])), int(str(last[4]))
    return watched, watched - at, _record(telemetry, source, record), False


def _record(telemetry: Telemetry, source: int, record: int) -> Provenance:
    origin = telemetry.sources[source]
    return Provenance(origin.source, f"line {record}", origin.adapter, origin.sha256) if record else origin


def find_rise(seconds: Floats) -> Rise | None:
    """The rise from one level to a higher one; of several the one that divides the steps best.

    A slow start or a recovery within the steps does not hide it: where the best division is a fall, the larger rise on
    either side of it counts, and what follows a later fall is not counted as slow. None where nothing rose.
    """
    if len(seconds) < FEWEST_STEPS:
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
            end=right.end + split,
        )
        return max(filter(None, (left, right)), key=lambda rise: rise.change, default=None)
    before, after = seconds[:split], seconds[split:]
    if len(after) >= FEWEST_STEPS:
        recovery = change_point(after).first_slow
        if _has_risen(after[recovery:], after[:recovery]):
            after = after[:recovery]
    if not _has_risen(before, after):
        return None
    end = split + len(after)
    fast, slow = float(np.median(before)), float(np.median(after))
    # A checkpoint just ahead of the change pulls the best fit to itself: where as few steps lie on the wrong side of
    # the middle between the levels, the change may be as well.
    is_slow = np.concatenate((before, after)) > (fast + slow) / 2
    misplaced = np.cumsum(np.concatenate(([0], is_slow))) - np.cumsum(np.concatenate(([0], ~is_slow)))
    likely = np.nonzero(misplaced == misplaced.min())[0]
    return Rise(split, min(point.earliest, max(int(likely[0]), 1)), max(point.latest, int(likely[-1])), fast, slow, end)


def _has_risen(before: Floats, after: Floats) -> bool:
    level = float(np.median(before))
    rise = float(np.median(after)) - level
    if rise < LEAST_CHANGE * level or rise < LEAST_SPREADS * _spread(before):
        return False
    # The division was chosen as the best of many: chance had that many tries (Bonferroni), of which those with enough
    # steps on both sides are counted apart.
    count = len(before) + len(after)
    tries, well_placed = count - LEAST_BEFORE - LEAST_AFTER + 1, max(0, count - 2 * ENOUGH_STEPS + 1)
    if min(len(before), len(after)) >= ENOUGH_STEPS:
        return well_placed * rank_test_p(before, after) <= LARGEST_P
    p = exact_rank_test_p(before[-LONGEST_EXACT:], after[:LONGEST_EXACT])
    return (tries - well_placed) * p <= LARGEST_P


def _spread(seconds: Floats) -> float:
    return float(np.median(np.abs(seconds - np.median(seconds))))


def find_intermittent(seconds: Floats) -> Rise | None:
    """Some steps slow from a time on, none before; None where the slow ones lie as chance would deal them.

    Each step is slow or not, and the first slow one divides them: of k slow steps in n, none is among the first w with
    probability C(n - w, k) / C(n, k). One division for each of a few limits of slow, of which the most telling counts:
    steps that were a little longer for a while do not hide much longer ones.
    """
    if len(seconds) < FEWEST_STEPS:
        return None
    usual = float(np.median(seconds))
    least = max(LEAST_CHANGE * usual, SLOW_SPREADS * _spread(seconds))
    divisions = [_slow_from(seconds > usual + factor * least) for factor in SLOW_FACTORS]
    p, slow, first = min(divisions)
    if p * len(SLOW_FACTORS) > LARGEST_P:
        return None
    behind = len(seconds) - first
    # What slows every n-th step goes unseen for a while: as long as with 95 % no step would escape it.
    unseen = math.ceil(math.log(0.05) / math.log(1 - slow / behind)) if slow < behind else 0
    before, after = float(np.mean(seconds[:first])), float(np.mean(seconds[first:]))
    return Rise(first, max(1, first - unseen), first, before, after, len(seconds), is_intermittent=True)


def _slow_from(is_slow: npt.NDArray[np.bool_]) -> tuple[float, int, int]:
    """(P(chance deals the slow steps so far from the first step), how many are slow, the first of them); 1.0 where
    there are too few of them, or of those ahead."""
    slow, first = int(is_slow.sum()), int(np.argmax(is_slow))
    if slow < 2 or first < LEAST_BEFORE:
        return 1.0, slow, first
    return math.comb(len(is_slow) - first, slow) / math.comb(len(is_slow), slow), slow, first


def change_point(values: Floats) -> Rise:
    """The division into two levels that fits best, by least squares of ranks: a checkpoint that takes ten times as
    long weighs no more than any slow step. `before_s` and `after_s` are mean ranks here.

    Needs at least LEAST_BEFORE + LEAST_AFTER values.
    """
    ranked = ranks(values)
    count = len(ranked)
    ranked -= ranked.mean()
    splits = np.arange(LEAST_BEFORE, count - LEAST_AFTER + 1)
    sums = np.cumsum(ranked)[splits - 1]
    left, right = sums / splits, -sums / (count - splits)
    residual = float(np.sum(ranked**2)) - splits * left**2 - (count - splits) * right**2
    best = int(np.argmin(residual))
    floor = max(float(residual[best]), 1e-12)
    near = np.nonzero(count / 2 * np.log(np.maximum(residual, floor) / floor) <= NEAR_BEST / 2)[0]
    return Rise(int(splits[best]), int(splits[near[0]]), int(splits[near[-1]]), float(left[best]), float(right[best]))
