"""Signs of the ranks' timing: did one enter late, did all do more, did sends finish late?

They part host, job and network: the part of the step that became longer says whose time it is (causal.md 6,
net_vs_host). Too few steps on a side of the onset, or ranks that wait for each other in a collective, leave them
unanswered.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from ..findings import LevelReading, SignFinding
from ..observed import Observed
from ..scope import Scope, ScopeKind
from ..steps.rank_timing import MOST_OF_IT, Change, RankTiming, StuckStep
from ..steps.step_bytes import GROWN, StepBytes


def late_ranks(observed: Observed, sign: str, limits: Mapping[str, float]) -> Iterator[SignFinding]:
    """Does a host enter the job's collectives later than before, beyond what its peers do, and by how much?

    Level 1: late; level 2: late by most of what the steps became longer, or missing in the step that the job hangs in.
    """
    timing, stuck = _timing(observed), _stuck(observed)
    if stuck is not None and (timing is None or stuck.missing):
        # Slow steps ahead of one that never ended: who is missing there stopped the job.
        yield from _missing_ranks(observed, sign, stuck)
        return
    if timing is None:
        return
    for host, change in timing.lateness.items():
        is_late = timing.is_late(host)
        if is_late is None:
            continue
        level = int(is_late) + int(is_late and timing.makes_up_the_slowdown(host))
        latest = max((step.ranks[host] for step in timing.after if host in step.ranks), key=lambda rank: rank.entry)
        record = observed.record(latest.source, latest.record)
        yield SignFinding(
            sign,
            Scope.of(ScopeKind.HOST, host),
            "present" if is_late else "absent",
            observed=change.after,
            baseline=change.before,
            limit=change.before + timing.least_rise,
            unit="s after the median rank",
            records=(record,) if record else (),
            levels=LevelReading(level, level),
            words={"enters": "enters"},
        )


def _missing_ranks(observed: Observed, sign: str, stuck: StuckStep) -> Iterator[SignFinding]:
    last = max(stuck.entered.values(), key=lambda rank: rank.entry)
    for host in sorted({*stuck.entered, *stuck.missing}):
        own = stuck.entered.get(host)
        entry = stuck.lasted if own is None else own.entry
        record = observed.record((own or last).source, (own or last).record)
        yield SignFinding(
            sign,
            Scope.of(ScopeKind.HOST, host),
            "present" if own is None else "absent",
            observed=entry - stuck.median_entry,
            baseline=0.0,
            unit="s after the median rank",
            records=(record,) if record else (),
            levels=LevelReading(2, 2) if own is None else LevelReading(0, 0),
            words={"enters": "had not entered" if own is None else "enters"},
        )


def uniform_slowdown(observed: Observed, sign: str, limits: Mapping[str, float]) -> Iterator[SignFinding]:
    """Is most of the slowdown work of every rank of the job: that it computes longer, or sends more bytes a step?

    More bytes show in the NICs' counters, computing in the timing of ranks only. Unknown where the steps did not
    become longer, where all ranks compute longer only now and then, and where only the sends did, and alike, unless
    the bytes of a step are those of before: else bytes may have grown for all, or all wait for one way.
    """
    volume, timing = observed.step_bytes, _timing(observed)
    if volume is not None and volume.has_grown:
        yield _more_bytes(observed, sign, volume)
        return
    if timing is None or not timing.is_longer(timing.whole):
        return
    rise = timing.compute.rise
    is_uniform = rise >= max(timing.least_rise, MOST_OF_IT * timing.whole.rise)
    is_now_and_then = not is_uniform and timing.is_longer(timing.compute) is not False
    if is_now_and_then or (not is_uniform and _may_be_more_bytes(observed, timing)):
        return
    yield _of_job(observed, timing, sign, "present" if is_uniform else "absent", timing.compute)


def late_sends(observed: Observed, sign: str, limits: Mapping[str, float]) -> Iterator[SignFinding]:
    """Do sends of some ranks finish later than before, counted from the entry of the last rank?

    Unknown where the sends of all ranks became longer alike, unless the bytes of a step are those of before. Sends that
    all ranks began and none finished in a step that hangs are late.
    """
    timing = _timing(observed)
    if timing is None:
        stuck = _stuck(observed)
        if stuck is not None and not stuck.missing:
            yield _unfinished_sends(observed, sign, stuck)
        return
    are_longer = timing.is_longer(timing.sends)
    if are_longer is None or (are_longer and _may_be_more_bytes(observed, timing)):
        return
    slowest = max(timing.finishing, key=lambda host: (timing.finishing[host].rise, host), default="")
    yield _of_job(observed, timing, sign, "present" if are_longer else "absent", timing.sends, slowest)


def _may_be_more_bytes(observed: Observed, timing: RankTiming) -> bool:
    """Whether the sends of all ranks became longer alike, and the bytes of a step may have grown with them."""
    is_same = observed.step_bytes is not None and observed.step_bytes.is_unchanged
    return not is_same and timing.is_longer(timing.sends) is not False and timing.sends_slow_alike


def _more_bytes(observed: Observed, sign: str, volume: StepBytes) -> SignFinding:
    return SignFinding(
        sign,
        Scope.of(ScopeKind.JOB, observed.job or ""),
        "present",
        observed=volume.usual,
        baseline=1.0,
        limit=1 + GROWN,
        unit="times the bytes a step",
        records=(volume.signal.last,),
        words={"work": f"{volume.usual:.3g} times the bytes a step, in {volume.step:.3g} times the time a step"},
    )


def _unfinished_sends(observed: Observed, sign: str, stuck: StuckStep) -> SignFinding:
    last = max(stuck.entered, key=lambda host: (stuck.entered[host].entry, host))
    entry = stuck.entered[last]
    record = observed.record(entry.source, entry.record)
    return SignFinding(
        sign,
        Scope.of(ScopeKind.JOB, observed.job or ""),
        "present",
        observed=stuck.lasted - entry.entry,
        baseline=None,
        unit="s",
        records=(record,) if record else (),
        words={"finish": "had not finished", "slow": f"{len(stuck.entered)} of {len(stuck.entered)}", "host": last},
    )


def _stuck(observed: Observed) -> StuckStep | None:
    return None if observed.rank_timing is None else observed.rank_timing.stuck


def _timing(observed: Observed) -> RankTiming | None:
    timing = observed.rank_timing
    return timing if timing is not None and timing.is_enough else None


def _of_job(
    observed: Observed, timing: RankTiming, sign: str, state: str, change: Change, host: str = ""
) -> SignFinding:
    last = timing.after[-1].ranks
    step, step_before = f"{timing.whole.after:.3g} s", f"{timing.whole.before:.3g} s"
    rank = last[host if host in last else min(last)]
    record = observed.record(rank.source, rank.record)
    return SignFinding(
        sign,
        Scope.of(ScopeKind.JOB, observed.job or ""),
        "present" if state == "present" else "absent",
        observed=change.after,
        baseline=change.before,
        limit=change.before + timing.least_rise,
        unit="s",
        records=(record,) if record else (),
        words={
            "work": f"the median rank enters after {change.after:.3g} s (before the onset {change.before:.3g} s), "
            f"of steps of {step} (before {step_before})",
            "finish": "finish",
            "host": host,
            "slow": f"{len(timing.slow_senders)} of {len(timing.hosts)}",
        },
    )
