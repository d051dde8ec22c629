"""Did a job get slower, and when: a planted change is found within its uncertainty, noise is not taken for one."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
from fabrics import START, series
from hypothesis import given, settings
from hypothesis import strategies as st

from causeline.engine.steps.rank_tests import rank_test_p
from causeline.engine.steps.symptom import Symptom, SymptomKind, find_rise, find_symptom, find_symptoms
from causeline.engine.telemetry import Telemetry

FOREVER = (0.0, 4e9)


def store(steps: dict[str, Sequence[float]], tokens: Sequence[float] = ()) -> Telemetry:
    """Jobs with their step times, one step after the other from START on."""
    facts = []
    for job, seconds in steps.items():
        times = START + np.cumsum(seconds)
        facts.append(series(job, "step_seconds", list(zip(times, seconds, strict=True))))
        if tokens:
            facts.append(series(job, "step_tokens", list(zip(times, tokens, strict=True))))
    return Telemetry(facts, lambda device, port: port)


def found(seconds: Sequence[float], tokens: Sequence[float] = ()) -> Symptom | None:
    return find_symptom(store({"run-1": list(seconds)}, tokens), "run-1", FOREVER)


def noisy(levels: Sequence[tuple[int, float]], noise: float, seed: int, spikes_every: int = 0) -> list[float]:
    """Steps at one level after another with relative noise; every n-th takes ten times as long (a checkpoint)."""
    random = np.random.default_rng(seed)
    seconds = np.concatenate([np.full(count, level) for count, level in levels])
    seconds *= np.exp(noise * random.standard_normal(len(seconds)))
    if spikes_every:
        seconds[spikes_every - 1 :: spikes_every] *= 10
    return [float(value) for value in seconds]


@settings(deadline=None, max_examples=300)
@given(
    before=st.integers(12, 200),
    after=st.integers(12, 200),
    change=st.floats(0.1, 2.0),
    noise=st.floats(0, 0.015),
    seed=st.integers(0, 10_000),
    spikes_every=st.sampled_from((0, 20, 50)),
)
def test_a_planted_change_is_found_within_its_uncertainty(
    before: int, after: int, change: float, noise: float, seed: int, spikes_every: int
) -> None:
    rise = find_rise(np.array(noisy([(before, 4.0), (after, 4.0 * (1 + change))], noise, seed, spikes_every)))
    assert rise is not None
    # A checkpoint right ahead of the change may count as its first slow step.
    assert rise.earliest <= before <= rise.latest + (1 if spikes_every else 0)
    assert rise.earliest <= rise.first_slow <= rise.latest
    assert rise.change == pytest.approx(change, rel=0.1, abs=0.02)


# The same examples each time: the rank test lets chance pass once in a thousand, so that a search finds it some day.
@settings(deadline=None, max_examples=300, derandomize=True)
@given(st.integers(20, 400), st.floats(0, 0.3), st.integers(0, 10_000), st.sampled_from((0, 20, 50)))
def test_noise_is_no_change(count: int, noise: float, seed: int, spikes_every: int) -> None:
    assert find_rise(np.array(noisy([(count, 4.0)], noise, seed, spikes_every))) is None


def test_the_onset_is_the_begin_of_the_first_slow_step() -> None:
    seconds = noisy([(50, 4.0), (50, 6.0)], 0.01, 0)
    symptom = found(seconds)
    assert symptom is not None
    assert symptom.onset == pytest.approx(START + sum(seconds[:50]))
    assert symptom.uncertainty_s >= symptom.before_s - 1e-3


def test_steps_that_were_a_little_longer_for_a_while_do_not_hide_a_stall_now_and_then() -> None:
    seconds = noisy([(20, 4.0), (12, 4.15), (120, 4.0)], 0.003, 6)
    seconds += noisy([(4, 5.0), (5, 4.0)] * 9, 0.003, 7)
    symptom = found(seconds)
    assert symptom is not None
    assert symptom.kind is SymptomKind.INTERMITTENT
    assert abs(symptom.onset - START - sum(seconds[:152])) <= symptom.uncertainty_s


def test_a_job_that_stood_still_ahead_of_its_slow_steps_was_changed_by_the_time_it_ran_on() -> None:
    """A restart: the log names it when the job runs again, a minute after its last step."""
    ends = START + np.cumsum(noisy([(50, 4.0)], 0.01, 0))
    later = ends[-1] + 60.0 + np.cumsum(noisy([(50, 6.0)], 0.01, 1))
    begin = ends[-1] + 60.0
    first, again = np.diff(ends, prepend=START), np.diff(later, prepend=begin)
    steps = [*zip(ends.tolist(), first.tolist(), strict=True), *zip(later.tolist(), again.tolist(), strict=True)]
    facts = [series("run-1", "step_seconds", steps)]
    symptom = find_symptom(Telemetry(facts, lambda device, port: port), "run-1", FOREVER)
    assert symptom is not None
    assert symptom.onset == pytest.approx(ends[-1])
    assert symptom.onset + symptom.uncertainty_s >= begin


def test_a_job_that_got_faster_has_no_symptom() -> None:
    assert found(noisy([(60, 6.0), (60, 4.0)], 0.01, 1)) is None


@pytest.mark.parametrize("slow", [30, 60, 120])
def test_a_slow_spell_that_ends_within_the_window_is_found(slow: int) -> None:
    seconds = noisy([(60, 4.0), (slow, 6.0), (60, 4.0)], 0.01, 2)
    symptom = found(seconds)
    assert symptom is not None
    assert abs(symptom.onset - START - sum(seconds[:60])) <= symptom.uncertainty_s
    assert symptom.change == pytest.approx(0.5, abs=0.02)


def test_a_warm_start_does_not_hide_a_later_rise() -> None:
    """The first steps of a job are slow (compilation, caches); the rise comes later and is smaller."""
    seconds = noisy([(15, 12.0), (80, 4.0), (60, 5.0)], 0.01, 3)
    symptom = found(seconds)
    assert symptom is not None
    assert abs(symptom.onset - START - sum(seconds[:95])) <= symptom.uncertainty_s


def test_of_two_rises_one_is_the_onset() -> None:
    seconds = noisy([(60, 4.0), (60, 5.0), (60, 8.0)], 0.01, 4)
    symptom = found(seconds)
    assert symptom is not None
    starts = [START + sum(seconds[:60]), START + sum(seconds[:120])]
    assert min(abs(symptom.onset - at) for at in starts) <= symptom.uncertainty_s


@pytest.mark.parametrize(("before", "after"), [(4, 30), (30, 2), (7, 7)])
def test_too_few_steps_on_a_side_tell_nothing(before: int, after: int) -> None:
    assert found(noisy([(before, 4.0), (after, 8.0)], 0.0, 5)) is None


def test_rounded_steps_without_any_spread_can_show_a_change() -> None:
    symptom = found([4.0] * 40 + [4.5] * 40)
    assert symptom is not None
    assert (symptom.before_s, symptom.after_s, symptom.onset) == (4.0, 4.5, START + 160)
    assert symptom.record.record == "line 41"


def test_a_change_below_three_percent_does_not_count() -> None:
    assert found([4.0] * 100 + [4.1] * 100) is None
    assert found([4.0] * 100 + [4.15] * 100) is not None


def test_a_step_time_that_is_no_time_is_ignored() -> None:
    seconds = [4.0] * 40 + [6.0] * 40
    broken = [*seconds[:20], 0.0, *seconds[20:60], -1.0, *seconds[60:]]
    expected, symptom = found(seconds), found(broken)
    assert expected is not None
    assert symptom is not None
    assert (symptom.before_s, symptom.after_s) == (expected.before_s, expected.after_s)


def test_longer_sequences_are_no_slowdown() -> None:
    """Packed sequences: steps with twice the tokens take twice the time."""
    tokens = [1e6] * 50 + [2e6] * 50
    assert found([4.0] * 50 + [8.0] * 50, tokens) is None
    assert found([4.0] * 50 + [8.0] * 50) is not None


def test_a_slowdown_shows_through_varying_tokens() -> None:
    random = np.random.default_rng(6)
    tokens = list(1e6 * random.uniform(0.5, 1.5, 120))
    seconds = [4.0 * count / 1e6 * (1.3 if n >= 60 else 1.0) for n, count in enumerate(tokens)]
    symptom = found(seconds, tokens)
    assert symptom is not None
    assert symptom.change == pytest.approx(0.3, abs=0.01)
    assert abs(symptom.onset - START - sum(seconds[:60])) <= symptom.uncertainty_s


def test_tokens_of_some_steps_only_are_not_used() -> None:
    telemetry = Telemetry(
        [
            series("run-1", "step_seconds", [(START + 4 * n, 4.0 if n < 40 else 6.0) for n in range(80)]),
            series("run-1", "step_tokens", [(START + 4 * n, 1e6) for n in range(3)]),
        ],
        lambda device, port: port,
    )
    symptom = find_symptom(telemetry, "run-1", FOREVER)
    assert symptom is not None
    assert (symptom.before_s, symptom.after_s) == (4.0, 6.0)


def test_the_job_that_slowed_most_comes_first() -> None:
    telemetry = store(
        {
            "a-steady": [4.0] * 80,
            "b-slower": [4.0] * 40 + [5.0] * 40,
            "c-slowest": [4.0] * 40 + [8.0] * 40,
            "d-slower": [4.0] * 40 + [5.0] * 40,
        }
    )
    assert [symptom.job for symptom in find_symptoms(telemetry, FOREVER)] == ["c-slowest", "b-slower", "d-slower"]


def test_only_steps_within_the_window_count() -> None:
    telemetry = store({"run-1": [4.0] * 40 + [8.0] * 40})
    assert find_symptom(telemetry, "run-1", (START, START + 160)) is None
    assert find_symptom(telemetry, "run-1", (START, START + 480)) is not None


@pytest.mark.parametrize(
    ("before", "after", "p"),
    [
        # scipy.stats.mannwhitneyu(after, before, alternative="greater", method="asymptotic", use_continuity=False)
        ([1, 2, 3, 4, 5], [6, 7, 8, 9, 10], 0.004512),
        ([1, 2, 2, 3, 3, 4], [3, 3, 4, 4, 5, 6], 0.016238),
        ([6, 7, 8, 9, 10], [1, 2, 3, 4, 5], 0.995488),
        ([4, 4, 4], [4, 4, 4], 1.0),
    ],
)
def test_the_rank_test_gives_the_p_of_the_textbook(before: list[float], after: list[float], p: float) -> None:
    assert rank_test_p(np.array(before, dtype=float), np.array(after, dtype=float)) == pytest.approx(p, abs=1e-6)
