"""A single step that lasts far too long: a stall, or a step that has not ended yet.

A rank test is blind to one value, however large; a step that lasts many times as long as any before it is a symptom
all the same. Checkpoints and evaluations are such steps too: a rhythm of long steps is no stall, and a lone one keeps
a chance of being innocent that falls with its length.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..telemetry import Floats

STALL_TIMES = 5.0
"""Times the usual step that a stall lasts at least (judgement: below it a slow step is weighed with its neighbours, as
a rise; RoCE retransmission timeouts and link repairs take seconds to minutes, causal.md 4.8)."""

LONGEST_TIMES = 2.0
"""Times the longest step before it that a stall lasts at least (judgement: a job that had one long step may have
another)."""

LEAST_BEFORE = 5
"""Steps before it that say what is usual (judgement: the median of five stands two checkpoints)."""


@dataclass(frozen=True, slots=True)
class Stall:
    """Step `index` lasted `times` the median `usual_s` of those before it; `last` is the last such step in a row with
    it."""

    index: int
    last: int
    usual_s: float
    times: float

    @property
    def innocent(self) -> float:
        """P(a step lasts this many times the usual one without any fault), a checkpoint or an evaluation: 1 in `times`
        (judgement: a heavy tail, Pareto of index 1)."""
        return 1 / self.times


def find_stall(seconds: Floats) -> Stall | None:
    """The first step that lasts far longer than every one before it, unless long steps come in a rhythm; None without
    one.

    The last value may be a step that has not ended: it lasted at least so long.
    """
    longest = np.maximum.accumulate(seconds)
    for index in (np.nonzero(seconds[1:] >= LONGEST_TIMES * longest[:-1])[0] + 1).tolist():
        if index < LEAST_BEFORE:
            continue
        usual = float(np.median(seconds[:index]))
        if seconds[index] >= STALL_TIMES * usual and not _is_rhythm(seconds, index):
            shorter = np.nonzero(seconds[index:] < STALL_TIMES * usual)[0]
            last = index + int(shorter[0]) - 1 if len(shorter) else len(seconds) - 1
            return Stall(index, last, usual, float(seconds[index]) / usual)
    return None


def _is_rhythm(seconds: Floats, first: int) -> bool:
    """Whether steps at least half as long as step `first` follow it evenly spaced, and none is missing before or
    behind them."""
    long_ones = first + np.nonzero(seconds[first:] >= seconds[first] / LONGEST_TIMES)[0]
    gaps = np.diff(long_ones)
    if len(gaps) == 0:
        return False
    # One step of play: the log may count the checkpoint itself as a step.
    is_even = int(gaps.max() - gaps.min()) <= 1
    return is_even and first <= gaps.max() and len(seconds) - 1 - int(long_ones[-1]) <= gaps.max()
