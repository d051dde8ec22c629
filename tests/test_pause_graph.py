"""Who pauses whom: direction, both ends of a link, baselines, and circles of waiting queues."""

from __future__ import annotations

import pytest
from fabrics import END, JOB, ONSET, START, cable, counter, observe, plan, series

from causeline.engine.fabric.pause_graph import STUCK_DUTY
from causeline.engine.facts import Fact, Series
from causeline.engine.observed import Observed
from causeline.engine.scope import Scope

BUSY_US, CALM_US, STUCK_US = 300_000.0, 100.0, 900_000.0
"""Microseconds paused per second: 30 % and .01 %."""


def queue(device: str, port: str) -> Scope:
    return Scope.of("queue", device, port, 3)


def paused(device: str, port: str, metric: str = "pfc_rx_pause_us", after: float = BUSY_US) -> Series:
    """A port whose class 3 is paused from the onset on."""
    return counter(f"{device}:{port}:3", metric, CALM_US, after)


def test_rx_at_a_port_means_its_peer_pauses_it() -> None:
    observed = observe([*plan(), paused("leaf-1", "Ethernet11")])
    assert observed.pause_graph.paused == {queue("leaf-1", "Ethernet11")}
    assert observed.pause_graph.readings[queue("leaf-1", "Ethernet11")].duty_high == pytest.approx(0.3)


def test_what_a_nic_sends_is_what_its_leaf_port_receives() -> None:
    observed = observe([*plan(), paused("host-1", "mlx5_0", "pfc_tx_pause_us")])
    assert observed.pause_graph.paused == {queue("leaf-1", "Ethernet11")}


def test_what_a_nic_receives_says_nothing_of_its_leaf_port() -> None:
    observed = observe([*plan(), paused("host-1", "mlx5_0", "pfc_rx_pause_us")])
    assert observed.pause_graph.readings == {}


def test_what_a_port_sends_pauses_its_peer() -> None:
    observed = observe([*plan(), paused("leaf-1", "Ethernet1", "pfc_tx_pause_us")])
    assert observed.pause_graph.paused == {queue("spine-1", "Ethernet1")}


def test_durations_win_over_frames_and_the_own_end_over_the_far_one() -> None:
    facts: list[Fact] = [
        *plan(),
        counter("leaf-1:Ethernet11:3", "pfc_rx_pause_frames", 0, 1e6),
        paused("host-1", "mlx5_0", "pfc_tx_pause_us", CALM_US),
    ]
    assert observe(facts).pause_graph.paused == frozenset()
    facts.append(paused("leaf-1", "Ethernet11"))
    assert observe(facts).pause_graph.paused == {queue("leaf-1", "Ethernet11")}


def test_frames_give_bounds_by_the_speed_of_the_port() -> None:
    """One frame pauses between nothing and 65535 quanta of 512 bit times (IEEE 802.1Qbb): .84 ms at 40 Gbit/s."""
    facts = [
        *plan(),
        counter("leaf-1:Ethernet11:3", "pfc_rx_pause_frames", 0, 10),
        series("leaf-1:Ethernet11", "speed_bps", [(START, 40e9), (ONSET, 40e9), (END, 40e9)]),
    ]
    reading = observe(facts).pause_graph.readings[queue("leaf-1", "Ethernet11")]
    assert reading.busy_duty_low == 0
    assert reading.duty_high == pytest.approx(10 * 65535 * 512 / 40e9)


def test_pausing_like_before_is_nothing_new() -> None:
    observed = observe([*plan(), counter("leaf-1:Ethernet11:3", "pfc_rx_pause_us", BUSY_US, 2 * BUSY_US)])
    assert observed.pause_graph.paused == frozenset()


def test_a_queue_that_nobody_read_has_no_reading() -> None:
    observed = observe([*plan(), paused("leaf-1", "Ethernet11", after=CALM_US)])
    assert set(observed.pause_graph.readings) == {queue("leaf-1", "Ethernet11")}


def test_a_counter_read_only_before_the_onset_is_no_reading() -> None:
    points: list[tuple[float, float | None]] = [(START, 0.0), (START + 60, 50.0)]
    observed = observe([*plan(), series("leaf-1:Ethernet11:3", "pfc_rx_pause_us", points)])
    assert observed.pause_graph.readings == {}


def test_upstream_are_the_paused_ports_that_face_the_device() -> None:
    facts = [*plan(), paused("leaf-1", "Ethernet11"), paused("spine-1", "Ethernet1"), paused("spine-2", "Ethernet2")]
    graph = observe(facts).pause_graph
    assert graph.upstream(queue("leaf-1", "Ethernet11")) == (queue("spine-1", "Ethernet1"),)
    assert list(graph.waits_for.edges) == [(queue("spine-1", "Ethernet1"), queue("leaf-1", "Ethernet11"))]
    assert graph.cycles == ()


def test_a_port_does_not_wait_for_the_device_behind_its_own_link() -> None:
    facts = [*plan(), paused("leaf-1", "Ethernet1"), paused("spine-1", "Ethernet1")]
    assert observe(facts).pause_graph.cycles == ()


def ring() -> list[Fact]:
    """Three switches in a ring, each paused towards the next, a host at each."""
    links = [
        cable("s-1:Ethernet1", "s-2:Ethernet2"),
        cable("s-2:Ethernet1", "s-3:Ethernet2"),
        cable("s-3:Ethernet1", "s-1:Ethernet2"),
    ]
    hosts = [cable(f"h-{n}:mlx5_0", f"s-{n}:Ethernet9", role="leaf-host") for n in (1, 2, 3)]
    nics = [counter(f"h-{n}:mlx5_0", "cnp_sent", 0, 0) for n in (1, 2, 3)]
    return [*links, *hosts, *nics]


def test_three_switches_that_wait_for_each_other_are_one_cycle() -> None:
    facts = [*ring(), *(paused(f"s-{n}", "Ethernet1", after=STUCK_US) for n in (1, 2, 3))]
    (cycle,) = observe(facts, job=None).pause_graph.cycles
    assert cycle == tuple(queue(f"s-{n}", "Ethernet1") for n in (1, 2, 3))


def test_queues_that_still_move_are_no_cycle() -> None:
    """Mild pausing both ways round a ring is a busy fabric, not a deadlock."""
    graph = observe([*ring(), *(paused(f"s-{n}", "Ethernet1") for n in (1, 2, 3))], job=None).pause_graph
    assert graph.cycles == ()
    assert len(graph.paused) == 3


def test_a_ring_with_one_calm_port_is_no_cycle() -> None:
    facts = [*ring(), *(paused(f"s-{n}", "Ethernet1") for n in (1, 2)), paused("s-3", "Ethernet1", after=CALM_US)]
    graph = observe(facts, job=None).pause_graph
    assert graph.cycles == ()
    assert len(graph.paused) == 2


def held(device: str, since: float, until: float = END) -> Series:
    """A port that is paused without a break from `since` to `until`, and hardly before and after that."""
    points: list[tuple[float, float | None]] = []
    value, at = 0.0, START
    while at <= END:
        points.append((at, value))
        value += 10 * (1_000_000.0 if since <= at < until else CALM_US)
        at += 10
    return series(f"{device}:Ethernet1:3", "pfc_rx_pause_us", points)


def test_a_circle_that_closes_late_and_never_opens_again_is_a_cycle() -> None:
    """Paused for the last minute of ten only: little of the time, but nothing has moved since."""
    graph = observe([*ring(), *(held(f"s-{n}", END - 60 - n) for n in (1, 2, 3))], job=None).pause_graph
    (cycle,) = graph.cycles
    assert [graph.readings[one].held_s for one in cycle] == [60, 60, 60]
    assert all(graph.readings[one].duty_high < STUCK_DUTY for one in cycle)


def test_a_circle_that_opened_again_is_none() -> None:
    facts = [*ring(), *(held(f"s-{n}", END - 120, until=END - 60) for n in (1, 2, 3))]
    graph = observe(facts, job=None).pause_graph
    assert graph.cycles == ()
    assert len(graph.paused) == 3


def classes(*readings: tuple[int, float]) -> Observed:
    """A port that counts PFC frames in several priorities, at these rates after the onset."""
    return observe(
        [*plan(), *(counter(f"leaf-1:Ethernet11:{n}", "pfc_rx_pause_frames", 0, rate) for n, rate in readings)]
    )


def test_lossless_are_the_priorities_that_pause() -> None:
    """Switches print all eight priorities; those that never paused anybody are not lossless."""
    assert classes(*((n, 5.0 if n in (3, 4) else 0.0) for n in range(8))).lossless_classes == {"3", "4"}


def test_where_nothing_pauses_the_counted_priority_is_lossless() -> None:
    assert classes((4, 0.0)).lossless_classes == {"4"}


def test_of_eight_silent_priorities_the_usual_one_is_lossless() -> None:
    assert classes(*((n, 0.0) for n in range(8))).lossless_classes == {"3"}


def test_without_pfc_counters_the_usual_class_is_lossless() -> None:
    assert observe(plan(), job=JOB).lossless_classes == {"3"}
