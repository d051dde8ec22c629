"""Signs of pausing and of queues: who is paused, by whom, in a circle, and marks that are missing."""

from __future__ import annotations

import pytest
from asking import BUSY_US, asked, pauses, states
from fabrics import (
    LEAVES,
    SPINES,
    START,
    cable,
    counter,
    gauge,
    plan,
    series,
)

from causeline.engine.fabric.pause_graph import NO_CYCLE
from causeline.engine.facts import Fact
from causeline.engine.findings import LevelReading, time_coverage

# -- pausing ---------------------------------------------------------------------------------------------


STUCK_US = 9e5
"""Paused 90 % of the time, in us per second."""


def all_pauses(after: float = 0.0, **special: float) -> list[Fact]:
    """Pausing of every switch port, the same everywhere but at `device_port` (`leaf_1_Ethernet11=3e5`)."""
    ports = [(leaf, f"Ethernet{n}") for leaf in LEAVES for n in (1, 2, 11, 12, 13, 14)]
    ports += [(spine, f"Ethernet{n}") for spine in SPINES for n in (1, 2)]
    return [pauses(d, p, special.get(f"{d.replace('-', '_')}_{p}", after)) for d, p in ports]


def test_host_and_switch_pausing_are_two_signs() -> None:
    facts = [*plan(), pauses("leaf-1", "Ethernet11"), pauses("leaf-1", "Ethernet1")]
    assert states(asked("pause_duty_host", facts)) == {"queue:leaf-1/Ethernet11/3": "present"}
    assert states(asked("pause_duty_fabric", facts)) == {"queue:leaf-1/Ethernet1/3": "present"}


@pytest.mark.parametrize(
    ("us_per_second", "least", "most"),
    [
        (500, 0, 0),
        (2_000, 1, 1),
        (60_000, 2, 2),
        (195_000, 2, 3),  # so near to 20 % that either side of it is possible
        (500_000, 3, 3),
        (1_000_000, 4, 4),
    ],
)
def test_pausing_has_a_level_for_each_limit(us_per_second: float, least: int, most: int) -> None:
    (found,) = asked("pause_duty_host", [*plan(), pauses("leaf-1", "Ethernet11", us_per_second)]).values()
    assert found.state == ("present" if least else "absent")
    assert found.levels == LevelReading(least, most)


def test_a_storm_that_comes_and_goes_shows_in_the_busiest_polls() -> None:
    """Stuck in one poll of ten: its mean, 10 %, is that of a mildly slow receiver."""
    value, points = 0.0, list[tuple[float, float | None]]()
    for n in range(121):
        points.append((START + 10 * n, value))
        value += 1e7 if n >= 60 and n % 10 == 0 else 0.0
    (found,) = asked("pause_duty_host", [*plan(), series("leaf-1:Ethernet11:3", "pfc_rx_pause_us", points)]).values()
    assert found.observed == pytest.approx(10, abs=2)
    assert found.levels == LevelReading(4, 4)


def test_a_switch_makes_wait_who_sends_to_it_hosts_among_them() -> None:
    """host-1 is paused by leaf-1 and spine-1 is not; nobody read what waits for spine-1."""
    waits = counter("host-1:mlx5_0:3", "pfc_rx_pause_us", 0, BUSY_US)
    facts = [*plan(), waits, pauses("spine-1", "Ethernet1", 0)]
    found = asked("pauses_sent", facts)
    assert states(found) == {"device:leaf-1": "present"}
    assert found["device:leaf-1"].spot == "host-1 mlx5_0"
    (clean,) = asked("pauses_sent", [*plan(), pauses("spine-1", "Ethernet1", 0)]).values()
    assert clean.state == "absent"
    assert clean.coverage < 0.5
    as_before = counter("spine-1:Ethernet1:3", "pfc_rx_pause_us", BUSY_US, BUSY_US)
    assert asked("pauses_sent", [*plan(), as_before]) == {}


def test_a_pause_walk_ends_at_the_host_others_wait_for() -> None:
    facts = [*plan(), pauses("leaf-1", "Ethernet11"), pauses("leaf-1", "Ethernet12", 0), pauses("spine-1", "Ethernet1")]
    assert states(asked("init_host", facts)) == {"queue:leaf-1/Ethernet11/3": "present"}


def test_a_clean_pause_counter_is_one_finding_and_the_other_end_a_second_witness() -> None:
    clean = [*plan(), pauses("leaf-1", "Ethernet11", 0)]
    assert asked("init_host", clean) == {}
    (alone,) = asked("pause_duty_host", clean).values()
    peer = counter("host-1:mlx5_0:3", "pfc_tx_pause_us", 0, 0)
    (confirmed,) = asked("pause_duty_host", [*clean, peer]).values()
    assert (alone.state, alone.levels) == (confirmed.state, confirmed.levels) == ("absent", LevelReading(0, 0))
    assert alone.coverage == pytest.approx(0.97)
    assert confirmed.coverage == pytest.approx(1 - 0.03**2)


def test_a_queue_paused_as_much_as_before_is_acquitted_of_more_only() -> None:
    """3 % of the time on both sides of the onset: no change, but the onset may be misplaced."""
    (found,) = asked("pause_duty_host", [*plan(), counter("leaf-1:Ethernet11:3", "pfc_rx_pause_us", 3e4, 3e4)]).values()
    assert (found.state, found.levels) == ("absent", LevelReading(0, 1))
    stuck = [*plan(), counter("leaf-1:Ethernet11:3", "pfc_rx_pause_us", 9.9e5, 9.9e5)]
    assert asked("pause_duty_host", stuck) == {}


def test_ends_that_disagree_acquit_of_what_neither_counted() -> None:
    """The leaf's counter stands still while the NIC counts 30 % of the time."""
    facts = [*plan(), pauses("leaf-1", "Ethernet11", 0), counter("host-1:mlx5_0:3", "pfc_tx_pause_us", 0, 3e5)]
    (found,) = asked("pause_duty_host", facts).values()
    assert (found.state, found.levels) == ("absent", LevelReading(0, 3))


def test_a_host_that_pauses_nobody_upstream_is_neither() -> None:
    assert asked("init_host", [*plan(), pauses("leaf-1", "Ethernet11")]) == {}


def test_frames_bound_how_long_a_queue_is_paused() -> None:
    """A frame pauses between nothing and the longest pause: frames alone show that a host pauses, not for how long."""

    def levels(frames: float) -> LevelReading | None:
        counted = counter("leaf-1:Ethernet11:3", "pfc_rx_pause_frames", 0, frames)
        return asked("pause_duty_host", [*plan(), counted])["queue:leaf-1/Ethernet11/3"].levels

    assert levels(1) == LevelReading(0, 0)
    assert levels(1000) == LevelReading(1, 2)
    assert levels(1e6) == LevelReading(1, 4)


def test_no_stuck_queue_anywhere_counts_by_what_was_read() -> None:
    whole = asked("pauses_anywhere_stuck", [*plan(), *all_pauses()])["fabric:all"]
    assert (whole.state, whole.coverage) == ("absent", 1.0)
    one = asked("pauses_anywhere_stuck", [*plan(), pauses("leaf-1", "Ethernet11", 0)])["fabric:all"]
    assert one.state == "absent"
    assert one.coverage == pytest.approx(1 / 16)
    worst = asked("pauses_anywhere_stuck", [*plan(), *all_pauses(leaf_1_Ethernet11=990_000.0)])["fabric:all"]
    assert (worst.state, worst.spot) == ("present", "leaf-1 Et11")


def short_reading(device: str, port: str) -> Fact:
    """A calm port whose polls stop a minute behind the onset."""
    points: list[tuple[float, float | None]] = [(START + 10 * n, 0.0) for n in range(67)]
    return series(f"{device}:{port}:3", "pfc_rx_pause_us", points)


@pytest.mark.parametrize("sign", ["pauses_anywhere_stuck", "pause_cycle"])
def test_polls_that_stopped_early_do_not_deny_pausing(sign: str) -> None:
    facts = [short_reading(d, p) for d in (*LEAVES, *SPINES) for p in ("Ethernet1", "Ethernet2")]
    facts += [short_reading(leaf, f"Ethernet{n}") for leaf in LEAVES for n in (11, 12, 13, 14)]
    (finding,) = asked(sign, [*plan(), *facts]).values()
    assert finding.state == "absent"
    assert finding.coverage == pytest.approx(time_coverage(0.1), abs=0.01)


def test_a_circle_of_paused_queues_is_one_finding_beside_the_residual() -> None:
    links = [
        cable("s-1:Ethernet1", "s-2:Ethernet2"),
        cable("s-2:Ethernet1", "s-3:Ethernet2"),
        cable("s-3:Ethernet1", "s-1:Ethernet2"),
    ]
    found = asked("pause_cycle", [*links, *(pauses(f"s-{n}", "Ethernet1", STUCK_US) for n in (1, 2, 3))], job=None)
    circle = "cycle:1: s-1 Ethernet1 > s-2 Ethernet1 > s-3 Ethernet1"
    assert states(found) == {circle: "present", str(NO_CYCLE): "absent"}


def test_without_pfc_counters_no_circle_is_denied() -> None:
    assert asked("pause_cycle", plan()) == {}


def test_contention_is_a_deep_queue_that_nobody_pauses() -> None:
    deep = gauge("leaf-1:Ethernet11:3", "queue_peak_bytes", 0, 9e6)
    facts = [*plan(), pauses("leaf-1", "Ethernet11", 0), pauses("spine-1", "Ethernet1"), deep]
    assert states(asked("init_port", facts)) == {"queue:leaf-1/Ethernet11/3": "present"}
    assert asked("init_port", facts[:-1]) == {}
    paused_itself = [*plan(), pauses("leaf-1", "Ethernet11"), pauses("spine-1", "Ethernet1"), deep]
    assert states(asked("init_port", paused_itself)) == {"queue:leaf-1/Ethernet11/3": "absent"}


# -- queues without marks --------------------------------------------------------------------------------


def marks(after: float) -> Fact:
    return counter("leaf-1:Ethernet11:3", "ecn_marked_packets", 0, after)


def test_a_deep_queue_without_a_mark_and_one_with() -> None:
    deep = [*plan(), gauge("leaf-1:Ethernet11:3", "queue_peak_bytes", 0, 9e6)]
    assert states(asked("queue_no_mark", [*deep, marks(0)])) == {"device:leaf-1": "present"}
    assert states(asked("queue_no_mark", [*deep, marks(7)])) == {"device:leaf-1": "absent"}
    assert asked("queue_no_mark", deep) == {}
    shallow = [*plan(), gauge("leaf-1:Ethernet11:3", "queue_peak_bytes", 0, 9e3), marks(0)]
    assert asked("queue_no_mark", shallow) == {}


def test_marks_that_were_hardly_read_are_not_missing_marks() -> None:
    short = series("leaf-1:Ethernet11:3", "ecn_marked_packets", [(START + 10 * n, 0.0) for n in range(67)])
    assert asked("queue_no_mark", [*plan(), gauge("leaf-1:Ethernet11:3", "queue_peak_bytes", 0, 9e6), short]) == {}
