"""Which part of a step became longer, and how much of that each cause answers for.

A synchronous step is what every rank computes, then the wait for the last one, then the sends (`steps/rank_timing.py`).
The three add up, so where the ranks were timed the excess of the step time is split by measurement, not by probability.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from statistics import mean
from typing import Literal

from .steps.rank_timing import RankTiming, Step
from .timed_places import TimedPlaces
from .verdicts import Verdict

PartName = Literal["compute", "lateness", "sends"]


@dataclass(frozen=True, slots=True)
class StepPart:
    """A part of the step: mean seconds before and after the onset, and its share of all that became longer."""

    name: PartName
    before_s: float
    after_s: float
    share: float


def step_parts(timing: RankTiming | None) -> tuple[StepPart, ...]:
    """The parts of a job's step; none where the ranks were not timed well enough, or the step as they saw it did not
    become longer.

    Means, which add up, and see steps that are slow only now and then.
    """
    if timing is None or not timing.is_enough:
        return ()

    def means(name: PartName) -> tuple[float, float]:
        before, after = ([_length(name, step) for step in steps] for steps in (timing.before, timing.after))
        return mean(before), mean(after)

    names: tuple[PartName, ...] = ("compute", "lateness", "sends")
    lengths = {name: means(name) for name in names}
    rises = {name: max(0.0, after - before) for name, (before, after) in lengths.items()}
    total = sum(rises.values())
    if sum(after - before for before, after in lengths.values()) < timing.least_rise:
        return ()
    return tuple(StepPart(name, *lengths[name], rises[name] / total) for name in names)


def _length(name: PartName, step: Step) -> float:
    match name:
        case "compute":
            return step.median_entry
        case "lateness":
            return step.last_entry - step.median_entry
        case "sends":
            return step.end - step.last_entry


def shares_by_timing(
    verdicts: Iterable[Verdict], parts: Iterable[StepPart], timed: TimedPlaces
) -> Mapping[str, float] | None:
    """The share of the excess that each of some verdicts answers for: that of the part it acts on, several in one part
    by their share there. None where the timing does not name the part of each."""
    measured = {part.name: part.share for part in parts}
    acting: dict[PartName, list[Verdict]] = defaultdict(list)
    for verdict in verdicts:
        scope = verdict.hypothesis.scope
        if not measured or timed.names(scope) is not True:
            return None
        acting["lateness" if timed.is_late(scope) else "sends"].append(verdict)
    return {
        verdict.id: measured[name] * verdict.share / sum(other.share for other in there)
        for name, there in acting.items()
        for verdict in there
    }
