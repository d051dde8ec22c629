"""The change that several series share: a planted one is found within its uncertainty, and busy quiet shows none."""

from __future__ import annotations

import numpy as np
import pytest
from fabrics import END, ONSET, START, series
from hypothesis import given, settings
from hypothesis import strategies as st

from causeline.engine.facts import Series
from causeline.engine.steps.changes import shared_change
from causeline.engine.steps.onset import find_onset
from causeline.engine.steps.symptom import find_symptoms
from causeline.engine.telemetry import Telemetry

WINDOW = (START, END)
POLLS = np.arange(START, END + 1, 15.0)


def store(facts: list[Series]) -> Telemetry:
    return Telemetry(facts, lambda device, port: port)


def noisy(count: int, seed: int, at: float = END + 1, shifted: int = 0, sigmas: float = 0.0) -> list[Series]:
    """Queues and byte counters of busy ports; the first `shifted` of them rise at a time by so many deviations."""
    random = np.random.default_rng(seed)
    facts = []
    for n in range(count):
        levels = 100 + random.standard_normal(len(POLLS)) + (sigmas * (at <= POLLS) if n < shifted else 0)
        facts.append(series(f"leaf-{n}:Ethernet1:3", "queue_peak_bytes", list(zip(POLLS, levels, strict=True))))
        total = np.cumsum(15 * (100 + random.standard_normal(len(POLLS))))
        facts.append(series(f"leaf-{n}:Ethernet1", "tx_bytes", list(zip(POLLS, total, strict=True))))
    return facts


@settings(deadline=None, max_examples=15)
@given(st.floats(START + 200, END - 200), st.integers(2, 6), st.floats(4, 50), st.integers(0, 1000))
def test_a_planted_change_is_found_within_its_uncertainty(at: float, shifted: int, sigmas: float, seed: int) -> None:
    found = shared_change(store(noisy(8, seed, at, shifted, sigmas)), WINDOW)
    assert found is not None
    assert abs(found.at - at) <= found.uncertainty_s
    assert found.uncertainty_s <= 120
    assert found.shared >= 2


@settings(deadline=None, max_examples=10)
@given(st.integers(1, 40), st.integers(0, 1000))
def test_a_busy_fabric_without_a_change_shows_none(count: int, seed: int) -> None:
    assert shared_change(store(noisy(count, seed)), WINDOW) is None


def test_one_series_alone_gives_no_onset() -> None:
    assert shared_change(store(noisy(8, 1, ONSET, 1, 50)), WINDOW) is None
    assert shared_change(store(noisy(8, 1, ONSET, 1, 50)), WINDOW, least=1) is not None


def test_of_two_changes_the_one_that_more_series_share_counts() -> None:
    facts = noisy(6, 2, ONSET - 200, 2, 9)
    later = noisy(6, 3, ONSET + 200, 5, 9)
    facts += [Series(f"spine-{one.device}", *_rest(one)) for one in later]
    found = shared_change(store(facts), WINDOW)
    assert found is not None
    assert abs(found.at - ONSET - 200) <= found.uncertainty_s


def _rest(one: Series) -> tuple[object, ...]:
    return (one.port, one.qualifier, one.metric, one.times, one.values, one.provenance, one.lines)


@pytest.mark.parametrize("shape", ["drift", "period"])
def test_what_has_no_moment_gives_no_onset(shape: str) -> None:
    """Temperatures drift and jobs breathe, all at once."""
    span = (POLLS - START) / (END - START)
    curve = 40 + 5 * span if shape == "drift" else 40 + 5 * np.sin(2 * np.pi * 12 * span)
    facts = [series(f"leaf-{n}:Ethernet1", "optic_temp_c", list(zip(POLLS, curve, strict=True))) for n in range(9)]
    assert shared_change(store(facts), WINDOW) is None


def test_resets_and_no_light_do_not_count() -> None:
    count = np.where(POLLS < ONSET, POLLS - START, POLLS - ONSET)
    dark = np.where(POLLS < ONSET, -2.0, -np.inf)
    facts = [series(f"leaf-{n}:Ethernet1", "tx_bytes", list(zip(POLLS, count, strict=True))) for n in range(4)]
    facts += [series(f"leaf-{n}:Ethernet1:0", "optic_rx_dbm", list(zip(POLLS, dark, strict=True))) for n in range(4)]
    assert shared_change(store(facts), WINDOW) is None


def test_the_symptom_comes_before_the_alert_and_the_alert_before_the_telemetry() -> None:
    changed = noisy(8, 4, ONSET - 100, 4, 9)
    ends = START + 4.0 * np.arange(1, 151)
    slow = ONSET + 6.0 * np.arange(1, 101)
    steps = [*((t, 4.0) for t in ends), *((t, 6.0) for t in slow)]
    told = store([*changed, series("run", "step_seconds", steps)])
    symptoms = find_symptoms(told, WINDOW)
    sources = [
        onset.source
        for symptom, alert in ((symptoms[0], ONSET), (None, ONSET), (None, None))
        if (onset := find_onset(told, WINDOW, symptom, symptoms if symptom else (), alert)) is not None
    ]
    assert sources == ["symptom", "alert", "telemetry"]
    assert find_onset(store(noisy(8, 5)), WINDOW, None, (), None) is None


def test_a_lone_stall_takes_the_earlier_change_of_the_telemetry() -> None:
    """A link loses frames from a time on; one step, later, waits for a retransmission to time out."""
    lost = np.where(POLLS < ONSET - 100, 0.0, POLLS - ONSET + 100)
    errors = series("leaf-1:Ethernet1", "fcs_errors", list(zip(POLLS, lost, strict=True)))
    lengths = [5.0] * 120 + [60.0] + [5.0] * 100
    steps = series("run", "step_seconds", list(zip(START + np.cumsum(lengths), lengths, strict=True)))
    told = store([errors, steps])
    (symptom,) = find_symptoms(told, WINDOW)
    onset = find_onset(told, WINDOW, symptom, (symptom,), None)
    assert onset is not None
    assert onset.source == "telemetry"
    assert abs(onset.at - ONSET + 100) <= onset.uncertainty_s + 15
    alone = find_onset(store([steps]), WINDOW, symptom, (symptom,), None)
    assert alone is not None
    assert abs(alone.at - START - 600) <= alone.uncertainty_s
