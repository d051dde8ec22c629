"""How numbers, times and findings are said: what is missing is said to be unknown."""

from __future__ import annotations

import math
import re
from functools import cache

import pytest
from fabrics import grouped, observe, shipped
from hypothesis import given
from hypothesis import strategies as st

from causeline.engine.findings import LevelReading, SignFinding
from causeline.engine.places import Places
from causeline.engine.scope import Scope, ScopeKind
from causeline.engine.wording import clock, number, statement, timestamp, what_to_read


@cache
def fabric() -> Places:
    return Places(observe(grouped()))


@pytest.mark.parametrize(
    ("value", "said"),
    [
        (None, "unknown"),
        (0.0, "0"),
        (4.8213, "4.82"),
        (999.4, "999"),
        (999.7, "1000"),
        (1000.4, "1000"),
        (14_400_000.0, "14400000"),
        (2.5e-8, "2.5e-08"),
        (-7.0, "-7"),
        (-math.inf, "no light"),
        (math.inf, "unbounded"),
    ],
)
def test_a_number_is_said_as_engineers_write_it(value: float | None, said: str) -> None:
    assert number(value) == said


@given(st.floats(1e-3, 9.9e7))
def test_a_number_keeps_three_digits_and_needs_no_power_of_ten(value: float) -> None:
    said = number(value)
    assert "e" not in said
    assert float(said) == pytest.approx(value, rel=0.005)


@pytest.mark.parametrize(
    ("at", "said"),
    [
        (0.0, "1970-01-01T00:00:00Z"),
        (1_700_000_000.0, "2023-11-14T22:13:20Z"),
        (1_700_000_000.123, "2023-11-14T22:13:20.123Z"),
        (1_699_999_999.9996, "2023-11-14T22:13:20Z"),
    ],
)
def test_times_are_utc_to_the_millisecond(at: float, said: str) -> None:
    assert timestamp(at) == said


def test_a_clock_time_has_no_date() -> None:
    assert clock(1_700_000_000.9) == "22:13:20"


@pytest.mark.parametrize("sign", sorted(shipped().signs))
@pytest.mark.parametrize("state", ["present", "absent"])
def test_a_finding_without_numbers_says_unknown_and_never_fails(sign: str, state: str) -> None:
    places = fabric()
    rule = shipped().signs[sign]
    scope = {
        ScopeKind.PORT: Scope.of("port", "leaf-1", "Ethernet1"),
        ScopeKind.RAIL: Scope.of("rail", "mlx5_0"),
        ScopeKind.FABRIC: Scope.of("fabric", "all"),
    }.get(rule.scope) or places.instances(rule.scope)[0]
    said = statement(rule, SignFinding(sign, scope, "present" if state == "present" else "absent"), places)
    assert "None" not in said
    assert "{" not in said
    template = rule.present if state == "present" else rule.absent
    if re.search(r"{(observed|baseline|limit)}", template):
        assert "unknown" in said
    assert "{" not in what_to_read(rule, scope, places)


def test_a_statement_fills_its_numbers_and_place() -> None:
    places = fabric()
    queue = Scope.of("queue", "leaf-1", "Ethernet2", 3)
    finding = SignFinding(
        "queue_depth",
        queue,
        "present",
        observed=4.8213,
        baseline=0.3,
        limit=1.05,
        unit="MB",
        levels=LevelReading(1, 1),
    )
    said = statement(shipped().signs["queue_depth"], finding, places)
    assert said.startswith("leaf-1 Et2 TC3")
    assert "4.82 MB per poll, above Kmin" in said
    assert "0.3 MB" in said


def test_braces_in_telemetry_are_only_text() -> None:
    places = fabric()
    scope = Scope.of("host", "host-1")
    finding = SignFinding("gpu_throttle", scope, "present", observed=1.0, spot="{observed.__class__} %s")
    assert "{observed.__class__} %s" in statement(shipped().signs["gpu_throttle"], finding, places)
