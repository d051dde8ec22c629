"""When the ranks of a job enter a step's communication and when they finish: which part of the step became longer, and
at which hosts.

A step of a synchronous job has three parts: what every rank computes (up to the median entry), how late the last rank
is beyond that, and what it takes from the last entry until all have finished. In the third part nobody waits for
anything but bytes, so it is the network's or a receiver's (causal.md 6, net_vs_host). Whether the ranks wait for each
other at the end (a collective) or not (plain sends) makes no difference to the parts.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from statistics import median

from ..signals import Split
from ..telemetry import Telemetry
from .symptom import LEAST_CHANGE, LEAST_SPREADS

SAME_STEP_S = 0.001
"""Ranks whose step began within this of each other are in one step: records have milliseconds (judgement)."""

ENOUGH_RANKS = 0.9
"""Share of the ranks that must have a record of a step (causal.md 6, clean_loop: coverage of 90 %)."""

LEAST_STEPS = 5
"""Fewest steps on each side of the onset (judgement: their median survives two odd ones)."""

LEAST_LONG = 2
"""Steps in which a duration is longer than in any before the onset from which it is longer at all (judgement: one may
be chance, and loss on one of many ways hits a rank only now and then)."""

PEER_SPREADS = 6.0
"""How far a rank's lateness must rise beyond that of its peers, in median absolute deviations of theirs (judgement:
about four standard deviations of a normal spread, as for peer_deviation)."""

LEAST_PEERS = 4
"""Fewest ranks that give a spread (judgement, as for peer_deviation)."""

MOST_OF_IT = 0.5
"""Share of a rise from which a part of it explains it (judgement: most of it)."""

HANGS = 3.0
"""Times the usual step that an unfinished one must have lasted to hang (judgement, between a slow step and a stall)."""

ALIKE = 0.5
"""Share of the largest rise that the smallest must have where all ranks slow down alike (judgement)."""


@dataclass(frozen=True, slots=True)
class RankStep:
    """One rank in one step: when it entered and when it finished, in seconds since the step began.

    `source` and `record` are those of the sample of the entry.
    """

    entry: float
    done: float
    source: int
    record: int


@dataclass(frozen=True, slots=True)
class Step:
    """The ranks of one step by host; `median_entry`, `last_entry` and `end` in seconds since it began."""

    begin: float
    ranks: Mapping[str, RankStep]
    median_entry: float
    last_entry: float
    end: float


@dataclass(frozen=True, slots=True)
class StuckStep:
    """The step that a job hangs in: who `entered` its communication and whose rank is `missing`.

    `median_entry` and `lasted`, until the window's end, in seconds since it began.
    """

    entered: Mapping[str, RankStep]
    missing: frozenset[str]
    median_entry: float
    lasted: float


@dataclass(frozen=True, slots=True)
class Change:
    """A duration on both sides of the onset, in seconds.

    `before` and `after` are medians, `spread` is the median absolute deviation before, `longest` the largest value
    before, `later` all values after.
    """

    before: float
    after: float
    spread: float
    longest: float
    later: tuple[float, ...]

    @property
    def rise(self) -> float:
        """Of the median."""
        return self.after - self.before

    def long(self, by: float) -> int:
        """Steps after the onset that took longer than any before it, by so many seconds."""
        return sum(value > self.longest + by for value in self.later)


class RankTiming:
    """The complete steps of one job that lie on one side of the onset: `before` and `after`, in order of time."""

    def __init__(self, telemetry: Telemetry, split: Split, job: str) -> None:
        steps, unfinished = _read_steps(telemetry, job)
        self.hosts = tuple(sorted({host for step in steps for host in step.ranks}))
        complete = [step for step in steps if len(step.ranks) >= ENOUGH_RANKS * len(self.hosts)]
        onset = split.start if split.onset is None else split.onset
        earliest, latest = onset - split.uncertainty_s, onset + split.uncertainty_s
        self.before = tuple(step for step in complete if step.begin + step.end <= earliest)
        self.after = tuple(step for step in complete if step.begin >= latest)
        last = unfinished[-1:] if unfinished and unfinished[-1][0] >= earliest - SAME_STEP_S else []
        # Where the job went on, the log of its ranks ended, not the job.
        self._unfinished = [step for step in last if not _ends_after(telemetry, job, step[0])]
        span = telemetry.span()
        self._end = min(split.end, span[1]) if span else split.end

    @property
    def is_enough(self) -> bool:
        """Whether there are enough steps on both sides of the onset to tell a change."""
        return min(len(self.before), len(self.after)) >= LEAST_STEPS

    @cached_property
    def stuck(self) -> StuckStep | None:
        """The last step, where no rank has finished it for long and most have entered; None for a job that goes on."""
        if not self._unfinished or len(self.before) < LEAST_STEPS:
            return None
        begin, entered = self._unfinished[0]
        lasted = self._end - begin
        missing = frozenset(self.hosts) - entered.keys()
        if lasted < HANGS * median(step.end for step in self.before) or len(missing) > MOST_OF_IT * len(self.hosts):
            return None
        return StuckStep(entered, missing, median(rank.entry for rank in entered.values()), lasted)

    @cached_property
    def whole(self) -> Change:
        """The step from its beginning until the last rank has finished."""
        return self._change(lambda step: step.end)

    @cached_property
    def compute(self) -> Change:
        """Until the median rank enters."""
        return self._change(lambda step: step.median_entry)

    @cached_property
    def sends(self) -> Change:
        """From the entry of the last rank until all have finished."""
        return self._change(lambda step: step.end - step.last_entry)

    @cached_property
    def lateness(self) -> Mapping[str, Change]:
        """By host: how long after the median rank it enters; without hosts that are in too few of the steps."""
        return self._by_host(lambda step, host: step.ranks[host].entry - step.median_entry)

    @cached_property
    def finishing(self) -> Mapping[str, Change]:
        """By host: how long after the last entry it finishes; without hosts that are in too few of the steps."""
        return self._by_host(lambda step, host: step.ranks[host].done - step.last_entry)

    @property
    def least_rise(self) -> float:
        """The smallest rise that counts, in seconds (causal.md 4.8: a share of the step)."""
        return LEAST_CHANGE * self.whole.before

    def is_longer(self, change: Change) -> bool | None:
        """Whether a duration rose by as much as counts for a step time (causal.md 4.8): its median did, or some steps
        took longer than any before, as with loss or stalls now and then.

        None where that may be chance: the median rose no more than it varied before, or it was one step.
        """
        long = change.long(self.least_rise)
        if long >= LEAST_LONG:
            return True
        if change.rise < self.least_rise:
            return None if long else False
        return True if change.rise >= LEAST_SPREADS * change.spread else None

    def is_late(self, host: str) -> bool | None:
        """Whether a host enters later than before, by more than its peers do; None where that cannot be told."""
        change = self.lateness.get(host)
        if change is None or len(self.lateness) < LEAST_PEERS:
            return None
        is_longer = self.is_longer(change)
        return is_longer if not is_longer or self._stands_out(change) else None

    def makes_up_the_slowdown(self, host: str) -> bool:
        """Whether a late host is late by most of what the step became longer: by its median, or where only some steps
        are longer than any before the onset, in most of those."""
        change = self.lateness[host]
        if self.whole.rise >= max(self.least_rise, LEAST_SPREADS * self.whole.spread):
            return change.rise >= MOST_OF_IT * self.whole.rise
        return change.long(self.least_rise) >= MOST_OF_IT * max(self.whole.long(self.least_rise), 1)

    def _stands_out(self, change: Change) -> bool:
        """Whether a lateness rose beyond the spread of all ranks', or comes now and then where most never have it."""
        middle, spread, usually_long = self._usual_lateness
        return change.rise >= max(self.least_rise, middle + PEER_SPREADS * spread) or not usually_long

    @cached_property
    def _usual_lateness(self) -> tuple[float, float, float]:
        """Median over the hosts of the rise of their lateness, its median absolute deviation, and the median number of
        steps in which they are late as never before."""
        rises = [change.rise for change in self.lateness.values()]
        middle = median(rises)
        long = median(change.long(self.least_rise) for change in self.lateness.values())
        return middle, median(abs(rise - middle) for rise in rises), long

    @cached_property
    def slow_senders(self) -> frozenset[str]:
        """Hosts some of whose sends finished so much later than any of theirs before the onset that they explain the
        step: it ends with its slowest send, so a host that is slower by less costs nothing."""
        least = max(self.least_rise, MOST_OF_IT * self.sends.rise)
        return frozenset(host for host, change in self.finishing.items() if change.long(least) >= LEAST_LONG)

    @property
    def sends_slow_alike(self) -> bool:
        """Whether the sends of all ranks became longer by much the same: ranks that wait for each other at the end of
        a collective, or bytes that grew for all."""
        rises = [change.rise for change in self.finishing.values()]
        return min(rises, default=0.0) >= ALIKE * max(rises, default=0.0) >= ALIKE * self.least_rise

    def _change(self, of: Callable[[Step], float]) -> Change:
        return _changed(tuple(of(step) for step in self.before), tuple(of(step) for step in self.after))

    def _by_host(self, of: Callable[[Step, str], float]) -> Mapping[str, Change]:
        found = {}
        for host in self.hosts:
            before, after = (
                tuple(of(step, host) for step in steps if host in step.ranks) for steps in (self.before, self.after)
            )
            if min(len(before), len(after)) >= LEAST_STEPS:
                found[host] = _changed(before, after)
        return found


def _changed(before: tuple[float, ...], after: tuple[float, ...]) -> Change:
    middle = median(before)
    return Change(middle, median(after), median(abs(value - middle) for value in before), max(before), after)


def _ends_after(telemetry: Telemetry, job: str, begin: float) -> bool:
    """Whether a step of the job ended later than this."""
    return bool(
        telemetry.rows(
            "SELECT 1 FROM samples WHERE metric = 'step_seconds' AND value > 0 AND device = ? AND ts > ? LIMIT 1",
            (job, begin + SAME_STEP_S),
        )
    )


Unfinished = tuple[float, Mapping[str, RankStep]]
"""When a step began, and the ranks that entered it: none of them has finished, so their ends are infinite."""


def _read_steps(telemetry: Telemetry, job: str) -> tuple[list[Step], list[Unfinished]]:
    """Every step of a job with the ranks that entered and finished, and those that no rank finished, in order of
    time."""
    rows = telemetry.rows(
        "SELECT ts - value AS begin, metric, port, value, source, record FROM samples "
        "WHERE metric IN ('rank_send_start', 'rank_send_done') AND device = ? ORDER BY begin, port",
        (job,),
    )
    steps: list[tuple[float, dict[str, tuple[float, int, int]], dict[str, float]]] = []
    for begin, metric, host, value, source, record in rows:
        if not steps or begin > steps[-1][0] + SAME_STEP_S:
            steps.append((begin, {}, {}))
        _, entries, ends = steps[-1]
        if metric == "rank_send_start":
            entries[host] = (value, source, record)
        else:
            ends[host] = value
    found: list[Step] = []
    unfinished: list[Unfinished] = []
    for begin, entries, ends in steps:
        entered = {host: RankStep(entry, ends.get(host, math.inf), *at) for host, (entry, *at) in entries.items()}
        ranks = {host: rank for host, rank in entered.items() if host in ends}
        if ranks:
            times = [rank.entry for rank in ranks.values()]
            found.append(Step(begin, ranks, median(times), max(times), max(rank.done for rank in ranks.values())))
        elif entered:
            unfinished.append((begin, entered))
    return found, unfinished
