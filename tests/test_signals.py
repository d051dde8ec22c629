"""The window statistics: what lies before and after the onset, what was not read, resets, and which record is shown."""

from __future__ import annotations

import math
from itertools import permutations

import pytest
from fabrics import END, ONSET, START, counter, gauge, observe, series
from hypothesis import given, settings
from hypothesis import strategies as st

from causeline.engine.facts import Series
from causeline.engine.observed import Observed
from causeline.engine.signals import Signal

PLACE = "leaf-1:Ethernet1"
KEY = ("leaf-1", "Ethernet1", "")


def signal_of(*facts: Series, onset: float | None = ONSET, uncertainty_s: float = 0.0) -> Signal:
    """The one row of signals that the facts give."""
    observed: Observed = observe(facts, onset, uncertainty_s=uncertainty_s)
    (found,) = observed.signals(facts[0].metric).values()
    return found


def test_a_counter_is_a_rate_on_both_sides_of_the_onset() -> None:
    signal = signal_of(counter(PLACE, "tx_bytes", before=100, after=300))
    assert (signal["before_n"], signal["after_n"]) == (60, 60)
    assert (signal["before_p50"], signal["before_mean"], signal["before_delta"]) == (100, 100, 60_000)
    assert (signal["after_p50"], signal["after_mean"], signal["after_delta"]) == (300, 300, 180_000)
    assert (signal["after_coverage"], signal["interval_s"], signal["resets"]) == (1.0, 10.0, 0)
    assert signal.shape == "step"
    assert signal["first_above_ts"] == ONSET + 10
    assert signal["first_below_ts"] is None


def test_a_gauge_has_no_increase() -> None:
    signal = signal_of(gauge(PLACE, "optic_rx_dbm", before=-3, after=-9))
    assert signal["before_delta"] is None
    assert signal["after_delta"] is None
    assert (signal["before_p50"], signal["after_p50"], signal["after_max"]) == (-3, -9, -9)
    assert signal["first_below_ts"] == ONSET + 10


def test_without_an_onset_everything_is_after_silence() -> None:
    signal = signal_of(counter(PLACE, "tx_bytes", 100, 300), onset=None)
    assert signal["before_n"] == 0
    assert signal["before_mean"] == 0
    assert signal["after_n"] == 120
    assert signal.shape is None


def test_a_counter_read_once_says_nothing() -> None:
    signal = signal_of(series(PLACE, "fcs_errors", [(ONSET + 30, 7.0)]))
    assert (signal["before_n"], signal["after_n"]) == (0, 0)
    assert signal["after_delta"] is None
    assert signal["after_mean"] is None
    assert signal["after_coverage"] == 0


def test_two_reads_around_the_onset_are_neither_before_nor_after_alone() -> None:
    # Most of the interval lies behind the onset: it is after, and there is no before.
    late = signal_of(series(PLACE, "fcs_errors", [(ONSET - 10, 0.0), (ONSET + 100, 50.0)]))
    assert (late["before_n"], late["after_n"], late["after_delta"]) == (0, 1, 50.0)
    # Most of it lies ahead of the onset: it is no reading of what followed.
    early = signal_of(series(PLACE, "fcs_errors", [(ONSET - 100, 0.0), (ONSET + 10, 50.0)]))
    assert (early["after_n"], early["after_delta"]) == (0, None)


def test_a_reset_is_counted_and_its_interval_is_not_covered() -> None:
    points: list[tuple[float, float | None]] = [(START, 500.0), (ONSET, 500.0)]
    points += [(ONSET + 300, 2.0), (ONSET + 600, 2.0)]
    signal = signal_of(series(PLACE, "link_down_events", points))
    assert signal["resets"] == 1
    assert (signal["after_n"], signal["after_delta"]) == (1, 0.0)
    assert signal["after_coverage"] == pytest.approx(0.5)


def test_a_counter_that_only_reset_after_the_onset_is_unread_there() -> None:
    signal = signal_of(series(PLACE, "fcs_errors", [(START, 5.0), (ONSET, 9.0), (ONSET + 300, 0.0)]))
    assert signal["after_delta"] is None
    assert signal["after_coverage"] == 0


def test_slow_polls_cover_the_time_of_their_intervals() -> None:
    points: list[tuple[float, float | None]] = [(START + t, float(t)) for t in range(0, 901, 300)]
    assert signal_of(series(PLACE, "tx_bytes", points))["after_coverage"] == pytest.approx(0.5)


def test_missed_polls_of_a_gauge_are_not_covered() -> None:
    points: list[tuple[float, float | None]] = [
        (START + 10 * n, 1.0 if START + 10 * n <= ONSET + 60 else None) for n in range(121)
    ]
    assert signal_of(series(PLACE, "optic_temp_c", points))["after_coverage"] == pytest.approx(0.1)


def test_samples_outside_the_window_do_not_count() -> None:
    points: list[tuple[float, float | None]] = [(START - 10, 0.0), (START, 1000.0), (END, 1000.0), (END + 10, 9e9)]
    signal = signal_of(series(PLACE, "tx_bytes", points), onset=None)
    assert signal["after_delta"] == 0


# -- the onset and its uncertainty -----------------------------------------------------------------------


@pytest.mark.parametrize("metric", ["tx_bytes", "optic_temp_c"])
def test_nothing_of_the_time_in_doubt_is_taken_for_before(metric: str) -> None:
    """Polls within the uncertainty may already show the change: they must not raise the baseline."""
    make = counter if metric == "tx_bytes" else gauge
    signal = signal_of(make(PLACE, metric, 1.0, 900.0, 10.0), uncertainty_s=60)
    assert signal["before_max"] == 1.0
    assert signal["after_min"] == 900.0


def test_a_slow_poll_that_ends_just_behind_the_onset_is_still_before() -> None:
    points: list[tuple[float, float | None]] = [(ONSET - 290, 0.0), (ONSET + 10, 300.0), (ONSET + 310, 900.0)]
    signal = signal_of(series(PLACE, "tx_bytes", points), uncertainty_s=20)
    assert (signal["before_n"], signal["after_n"]) == (1, 1)
    assert signal["before_mean"] == 1.0
    assert signal["after_mean"] == 2.0


@settings(deadline=None, max_examples=12)
@given(
    st.lists(st.integers(1, 120), min_size=2, max_size=30),
    st.floats(0, 1200),
    st.sampled_from((0.0, 15.0, 90.0)),
)
def test_no_interval_is_on_both_sides(gaps: list[int], onset: float, uncertainty_s: float) -> None:
    at, points = START, [(START, 0.0)]
    for gap in gaps:
        at += gap
        points.append((at, at - START))
    signal = signal_of(series(PLACE, "tx_bytes", points), onset=START + onset, uncertainty_s=uncertainty_s)
    inside = sum(1 for at, _ in points[1:] if at <= END)
    assert (signal["before_n"] or 0) + (signal["after_n"] or 0) <= inside


# -- shapes, extremes ------------------------------------------------------------------------------------


def test_a_burst_leaves_the_old_range_only_for_a_while() -> None:
    points = [(START + 10 * n, 9.0 if n == 90 else 1.0) for n in range(121)]
    assert signal_of(series(PLACE, "optic_temp_c", points)).shape == "burst"


def test_a_ramp_leaves_the_old_range_late() -> None:
    points = [(START + 10 * n, 1.0 if n < 80 else float(n)) for n in range(121)]
    signal = signal_of(series(PLACE, "optic_temp_c", points))
    assert signal.shape == "ramp"
    assert signal["first_above_ts"] == START + 800


def test_a_steady_gauge_has_no_shape() -> None:
    assert signal_of(gauge(PLACE, "optic_temp_c", 40, 40)).shape == "none"


def test_no_light_is_a_reading_like_any_other() -> None:
    signal = signal_of(gauge(PLACE, "optic_rx_dbm", before=-3, after=-math.inf))
    assert (signal["before_p50"], signal["after_min"], signal["after_p50"]) == (-3, -math.inf, -math.inf)


def test_light_that_comes_and_goes_is_reduced_too() -> None:
    points = [(START + 10 * n, -math.inf if n > 60 and n % 2 else -3.0) for n in range(121)]
    signal = signal_of(series(PLACE, "optic_rx_dbm", points))
    assert (signal["after_min"], signal["after_max"]) == (-math.inf, -3.0)


def test_of_equal_extremes_the_first_record_is_shown() -> None:
    points = [(START + 10 * n, 5.0 if n in (70, 90, 110) else 1.0) for n in range(121)]
    facts = [series(PLACE, "optic_temp_c", points[n::3], source=f"poll-{n}.csv") for n in range(3)]
    lines = set()
    for order in permutations(facts):
        extreme = signal_of(*order).extreme
        assert extreme is not None
        lines.add((extreme.source, extreme.record))
    # Sample 70 is the 24th line of the second file.
    assert lines == {("poll-1.csv", "line 24")}
