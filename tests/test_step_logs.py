"""Few steps, some slow steps, one endless step: each log of the table shows what it shows, and checkpoints are
none."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml
from fabrics import START, series
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import mannwhitneyu

from causeline.engine.steps.rank_tests import exact_rank_test_p
from causeline.engine.steps.symptom import Symptom, SymptomKind, find_symptom, find_symptoms
from causeline.engine.telemetry import Telemetry

LOGS: list[Mapping[str, Any]] = yaml.safe_load(Path(__file__).with_name("step_logs.yaml").read_text())


def seconds_of(text: str) -> list[float]:
    random = np.random.default_rng(0)
    found = []
    for part in text.split():
        count, _, level = part.rpartition("*")
        found += [float(level) * (1 + 0.01 * float(random.standard_normal())) for _ in range(int(count or 1))]
    return found


def telemetry_of(logs: Mapping[str, tuple[list[float], float | None]], until: float | None = None) -> Telemetry:
    """Jobs with their steps and how long the open one was watched; a poll of something else ends the window."""
    facts = []
    for job, (seconds, watched) in logs.items():
        ends = START + np.cumsum(seconds)
        facts.append(series(job, "step_seconds", list(zip(ends.tolist(), seconds, strict=True))))
        if watched is not None:
            facts.append(series(job, "step_open", [(float(ends[-1]), 1.0)]))
        until = max(until or 0.0, float(ends[-1]) + (watched or 0.0))
    facts.append(series("leaf-1:Ethernet1", "oper_up", [(START, 1.0), (until or START, 1.0)]))
    return Telemetry(facts, lambda device, port: port)


def found(seconds: list[float], watched: float | None = None) -> Symptom | None:
    return find_symptom(telemetry_of({"run": (seconds, watched)}), "run", (START, 4e9))


@pytest.mark.parametrize("log", LOGS, ids=[log["name"] for log in LOGS])
def test_each_log_shows_what_it_shows(log: Mapping[str, Any]) -> None:
    seconds = seconds_of(log["steps"])
    symptom = found(seconds, log.get("open"))
    if "kind" not in log:
        assert symptom is None
        return
    assert symptom is not None
    assert symptom.kind == log["kind"]
    assert symptom.onset == pytest.approx(START + sum(seconds[: log["first"]]), abs=symptom.uncertainty_s + 1e-3)
    assert symptom.is_open is log.get("is_open", False)
    if "change" in log:
        assert symptom.change == pytest.approx(log["change"], abs=0.05)


def test_a_duration_of_a_step_under_way_is_at_least_what_was_watched() -> None:
    symptom = found([5.2] * 21, 158)
    assert symptom is not None
    assert symptom.is_open
    assert symptom.after_s == pytest.approx(158)
    assert symptom.record.record == "line 1"


def test_a_lone_long_step_may_be_innocent_and_two_jobs_that_hang_at_once_are_not() -> None:
    alone = found([5.0] * 20 + [50.0] + [5.0] * 5)
    assert alone is not None
    assert alone.unexplained == pytest.approx(0.1)
    together = find_symptoms(telemetry_of({"a": ([5.0] * 20, 60.0), "b": ([8.0] * 12, 64.0)}), (START, 4e9))
    assert [symptom.job for symptom in together] == ["a", "b"]
    assert all(symptom.unexplained == 0.02 for symptom in together)


def test_a_log_that_stops_is_a_stall_only_where_the_scheduler_says_that_the_job_ran_on() -> None:
    telemetry = telemetry_of({"run": ([5.0] * 20, None)}, until=START + 400)
    assert find_symptom(telemetry, "run", (START, 4e9)) is None
    assert find_symptom(telemetry, "run", (START, 4e9), end=START + 100) is None
    stopped = find_symptom(telemetry, "run", (START, 4e9), end=4e9)
    assert stopped is not None
    assert (stopped.kind, stopped.is_open, stopped.unexplained) == (SymptomKind.STALL, True, 0.5)


@settings(deadline=None, max_examples=50)
@given(st.integers(2, 12), st.integers(3, 40), st.floats(2.0, 30.0), st.integers(0, 10_000))
def test_a_rhythm_of_long_steps_is_no_slowdown(every: int, cycles: int, long: float, seed: int) -> None:
    """Checkpoints, evaluations: every n-th step is longer, from the begin."""
    kinds = np.tile([*np.ones(every - 1), long], cycles)
    noise = np.exp(0.01 * np.random.default_rng(seed).standard_normal(len(kinds)))
    assert found([float(value) for value in 4.0 * kinds * noise]) is None


@settings(deadline=None, max_examples=30)
@given(
    st.lists(st.integers(0, 9), min_size=3, max_size=12),
    st.lists(st.integers(0, 9), min_size=2, max_size=6),
)
def test_the_exact_rank_test_agrees_with_counting_every_deal(before: list[int], after: list[int]) -> None:
    from itertools import combinations

    joined = np.array([*before, *after], dtype=float)
    ranked = (joined[:, None] > joined).sum(1) + ((joined[:, None] == joined).sum(1) + 1) / 2
    observed = ranked[len(before) :].sum()
    deals = [ranked[list(chosen)].sum() for chosen in combinations(range(len(joined)), len(after))]
    expected = np.mean([deal >= observed - 1e-9 for deal in deals])
    assert exact_rank_test_p(np.array(before, float), np.array(after, float)) == pytest.approx(expected)


def test_without_ties_the_exact_rank_test_is_the_one_of_scipy() -> None:
    before, after = np.arange(8.0), np.array([3.5, 7.5, 9.0, 10.0])
    expected = mannwhitneyu(after, before, alternative="greater", method="exact").pvalue
    assert exact_rank_test_p(before, after) == pytest.approx(expected)
