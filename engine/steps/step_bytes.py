"""How many bytes a job sends in a step, after the onset and before.

What a step sends is the job's doing, how long it takes the network's: more bytes a step are other code, data or
placement, and a longer step with the same bytes is not. A slow network sends the same bytes, only later.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median

from ..signals import Signal, Split
from ..telemetry import Telemetry
from .rank_timing import ENOUGH_RANKS

LEAST_STEPS = 20
"""Fewest steps on each side of the onset: one that is cut at an end of the span then weighs a twentieth (judgement)."""

UNCHANGED = 0.05
"""Largest relative change of the bytes a step that counts as none: a step cut at either end (see `LEAST_STEPS`)."""

GROWN = 0.10
"""Smallest relative growth that counts: twice what the count of steps may be off (judgement)."""

MOST_NICS = 0.1
"""Share of the NICs that may send less than what counts: other traffic shares some of them (judgement)."""


@dataclass(frozen=True, slots=True)
class StepBytes:
    """Bytes a step of a job's NICs after the onset, as multiples of those before it.

    `usual` is the median NIC, `least` what all but a tenth of them reach; `step` is the mean time of a step after the
    onset as a multiple of that before, `signal` one of the counters.
    """

    usual: float
    least: float
    step: float
    signal: Signal

    @property
    def has_grown(self) -> bool:
        """Whether all NICs send more a step, and by enough to make it longer: a step grows by no more than its
        bytes."""
        return self.least - 1 >= max(GROWN, (self.step - 1) * (1 - GROWN))

    @property
    def is_unchanged(self) -> bool:
        return abs(self.usual - 1) <= UNCHANGED


def step_bytes(telemetry: Telemetry, split: Split, job: str, sent: Sequence[Signal | None]) -> StepBytes | None:
    """What each NIC of a job `sent`, a counter of bytes or None where it was not read, against the steps of the job;
    None where too few steps or NICs tell."""
    before, after = _step_times(telemetry, split, job)
    if before is None or after is None:
        return None
    step = after / before
    signals = [signal for signal in sent if signal is not None and signal["before_mean"]]
    grown = sorted((signal["after_mean"] or 0.0) / (signal["before_mean"] or 1.0) * step for signal in signals)
    if not grown or len(grown) < ENOUGH_RANKS * len(sent):
        return None
    return StepBytes(median(grown), grown[int(MOST_NICS * len(grown))], step, signals[0])


def _step_times(telemetry: Telemetry, split: Split, job: str) -> tuple[float | None, float | None]:
    """Mean time from one step to the next before and after the onset; None with too few steps."""
    if split.onset is None:
        return None, None
    rows = telemetry.rows(
        "SELECT ts - value, ts FROM samples WHERE metric = 'step_seconds' AND value > 0 AND device = ? "
        "AND ts BETWEEN ? AND ? ORDER BY ts",
        (job, split.start, split.end),
    )
    earliest, latest = split.onset - split.uncertainty_s, split.onset + split.uncertainty_s
    sides = ([row for row in rows if row[1] <= earliest], [row for row in rows if row[0] >= latest])
    before, after = ((side[-1][1] - side[0][0]) / len(side) if len(side) >= LEAST_STEPS else None for side in sides)
    return before, after
