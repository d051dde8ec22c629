"""Numbers, units and places as reports write them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from causeline.engine.results import Numbers
from causeline.reports import wording


@pytest.mark.parametrize(
    ("ratio", "words"),
    [
        (0, "0%"),
        (1e-9, "<0.1%"),
        (0.004, "0.4%"),
        (0.04, "4%"),
        (0.92, "92%"),
        (0.9949, "99%"),
        (0.9951, ">99%"),
        (1, "100%"),
    ],
)
def test_percent(ratio: float, words: str) -> None:
    assert wording.percent(ratio) == words


@given(st.floats(0, 1))
def test_only_certainty_is_written_as_certainty(ratio: float) -> None:
    assert (wording.percent(ratio) == "100%") == (ratio == 1)
    assert (wording.percent(ratio) == "0%") == (ratio == 0)


@pytest.mark.parametrize(
    ("value", "unit", "words"),
    [
        (3104768, "B", "3.1 MB"),
        (212e9, "bit/s", "212 Gbit/s"),
        (0.995, "ratio", "99.5%"),
        (41200, "packets/s", "41,200 packets/s"),
        (1.24e6, "packets/s", "1,240,000 packets/s"),
        (2.84, "s", "2.84 s"),
        (-1.21, "dBm", "-1.21 dBm"),
        (3.1e-9, "1", "3.1e-9"),
        (1500, "us", "1.5 ms"),
        (0, "events", "0 events"),
        (999.9996, "", "1,000"),
        (float("-inf"), "dBm", "-inf dBm"),
    ],
)
def test_quantity(value: float, unit: str, words: str) -> None:
    assert wording.quantity(value, unit) == words


@given(st.floats(-1e300, 1e300))
def test_number_is_within_half_a_percent(value: float) -> None:
    assert float(wording.number(value).replace(",", "")) == pytest.approx(value, rel=0.0051)


def test_reading_leaves_out_what_was_not_read() -> None:
    assert wording.reading(Numbers(observed=2.84, baseline=2.31, unit="s")) == "2.84 s, before 2.31 s"
    assert wording.reading(Numbers()) == ""


@pytest.mark.parametrize(
    ("scope", "words"),
    [
        ("queue:leaf-07/Ethernet12/3", "leaf-07 Et12 TC3"),
        ("port:leaf-07/Ethernet1~12", "leaf-07 Et1/12"),
        ("job:run-0412", "run-0412"),
        ("rail:7", "rail 7"),
        ("link:leaf-07/Ethernet12/spine-04/Ethernet7", "leaf-07 Et12 to spine-04 Et7"),
        ("not a scope", "not a scope"),
    ],
)
def test_place_is_written_as_engineers_say_it(scope: str, words: str) -> None:
    assert wording.place(scope) == words
