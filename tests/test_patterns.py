"""Signs that need the graph: each answers yes and no where it can, and nothing where the reading does not tell."""

from __future__ import annotations

from collections.abc import Mapping
from math import comb

import pytest
from fabrics import (
    END,
    HOSTS,
    JOB,
    LEAVES,
    ONSET,
    SPINES,
    START,
    cable,
    counter,
    firmware,
    gauge,
    observe,
    origin,
    placement,
    plan,
    route,
    series,
    shipped,
)

from causeline.engine.fabric.pause_graph import NO_CYCLE
from causeline.engine.facts import Event, EventKind, Fact
from causeline.engine.findings import LevelReading, SignFinding, time_coverage
from causeline.engine.patterns import PATTERNS
from causeline.engine.patterns.cohort import hypergeometric_tail

BUSY_US = 300_000.0


def asked(sign: str, facts: list[Fact], onset: float | None = ONSET, job: str | None = JOB) -> dict[str, SignFinding]:
    """Findings of a shipped pattern sign, by scope."""
    rule = shipped().signs[sign].pattern
    assert rule is not None
    limits = {name: limit.value for name, limit in rule.limits.items() if limit.value is not None}
    return {str(f.scope): f for f in PATTERNS[rule.pattern](observe(facts, onset, job), sign, limits)}


def states(found: Mapping[str, SignFinding]) -> dict[str, str]:
    return {scope: finding.state for scope, finding in found.items()}


def session(kind: EventKind, device: str, peer: str, at: float, port: str = "") -> Event:
    return Event(kind, device, port, at, "session", origin("syslog"), {"peer": peer})


# -- membership of a group -------------------------------------------------------------------------------

BOTH = ("Ethernet1", "Ethernet2")
GROUP = "ecmp:leaf-1/uplinks"


def test_a_member_that_left_between_the_captures_is_a_change() -> None:
    found = asked("ecmp_event", [*plan(), route("leaf-1", BOTH, START), route("leaf-1", BOTH[1:], END)])
    assert states(found) == {GROUP: "present"}
    assert found[GROUP].words["moves"] == "Et1 left"


def test_captures_on_both_sides_of_the_onset_that_agree_are_no_change() -> None:
    assert states(asked("ecmp_event", [*plan(), route("leaf-1", BOTH, START), route("leaf-1", BOTH, END)])) == {
        GROUP: "absent"
    }


@pytest.mark.parametrize("times", [(START,), (END,), (ONSET + 300, END), (START, START + 60)])
def test_captures_on_one_side_of_the_onset_acquit_nobody(times: tuple[float, ...]) -> None:
    assert asked("ecmp_event", [*plan(), *(route("leaf-1", BOTH, at) for at in times)]) == {}


def test_captures_of_another_group_acquit_nobody() -> None:
    others = [route("leaf-1", ("Ethernet11", "Ethernet12"), at, "10.9.0.0/24") for at in (START, END)]
    assert GROUP not in asked("ecmp_event", [*plan(), route("leaf-1", BOTH, START), *others])


def test_a_session_that_fell_near_the_onset_is_a_change_even_when_it_came_back() -> None:
    facts = [*plan(), route("leaf-1", BOTH, START), route("leaf-1", BOTH, END)]
    near = session(EventKind.SESSION_DOWN, "leaf-1", "10.0.0.2", ONSET - 5)
    assert states(asked("ecmp_event", [*facts, near])) == {GROUP: "present"}
    other = session(EventKind.SESSION_DOWN, "leaf-1", "10.0.0.99", ONSET - 5)
    assert states(asked("ecmp_event", [*facts, other])) == {GROUP: "absent"}


def test_a_session_event_names_its_port_in_any_spelling() -> None:
    from causeline.engine.facts import InterfaceAlias

    facts: list[Fact] = [
        *plan(),
        route("leaf-1", BOTH, START),
        route("leaf-1", BOTH, END),
        InterfaceAlias("leaf-1", "Et2", "Ethernet2", origin()),
        session(EventKind.SESSION_DOWN, "leaf-1", "", ONSET, port="Et2"),
    ]
    assert states(asked("ecmp_event", facts)) == {GROUP: "present"}


def test_an_old_session_of_another_member_does_not_date_a_change() -> None:
    facts = [
        *plan(),
        route("leaf-1", BOTH, START),
        route("leaf-1", BOTH[1:], END),
        session(EventKind.SESSION_UP, "leaf-1", "10.0.0.2", START - 86400),
    ]
    assert states(asked("ecmp_event", facts)) == {GROUP: "present"}


# -- load of a group -------------------------------------------------------------------------------------


def loads(first: tuple[float, float], second: tuple[float, float]) -> list[Fact]:
    ports = [counter(f"leaf-1:{port}", "tx_bytes", *rates) for port, rates in zip(BOTH, (first, second), strict=True)]
    return [*plan(), route("leaf-1", BOTH, START), route("leaf-1", BOTH, END), *ports]


def test_a_group_that_became_uneven_is_skewed() -> None:
    found = asked("skew_step", loads((100, 20), (100, 180)))
    assert states(found) == {GROUP: "present"}
    assert found[GROUP].observed == pytest.approx(1.8)
    assert found[GROUP].baseline == pytest.approx(1.0)
    assert found[GROUP].words["member"] == "Et2"


def test_a_group_that_always_was_uneven_is_not() -> None:
    assert states(asked("skew_step", loads((20, 20), (180, 180)))) == {GROUP: "absent"}


def test_a_member_that_left_leaves_its_load_to_the_others() -> None:
    facts = loads((100, 0), (100, 200))
    facts[-3] = route("leaf-1", BOTH[1:], END)
    found = asked("skew_step", facts)
    assert states(found) == {GROUP: "present"}
    assert found[GROUP].observed == pytest.approx(2.0)


def test_a_small_rise_of_the_busiest_member_leaves_the_skew_open() -> None:
    assert states(asked("skew_step", loads((100, 96), (100, 104)))) == {GROUP: "absent"}
    assert asked("skew_step", loads((100, 84), (100, 116))) == {}
    assert states(asked("skew_step", loads((100, 70), (100, 130)))) == {GROUP: "present"}


def test_members_say_nothing_where_the_way_back_overloads() -> None:
    links = [cable(f"leaf-1:Ethernet{n}", f"spine-{n}:Ethernet1", role="leaf-spine") for n in (3, 4)]
    rates = ((50, 130), (50, 130), (50, 130), (250, 0))
    ports = [counter(f"leaf-1:Ethernet{n}", "tx_bytes", *rate) for n, rate in enumerate(rates, start=1)]
    facts = [*plan(), *links, gauge("leaf-1:Ethernet4", "oper_up", 1, 0), *ports]
    assert states(asked("skew_step", facts))[GROUP] == "absent"
    assert GROUP not in asked("skew_step", [*facts, gauge("spine-1:Ethernet1:3", "queue_peak_bytes", 0, 9e6)])


def test_members_nobody_counted_leave_the_load_unknown() -> None:
    assert asked("skew_step", loads((100, 20), (100, 180))[:-1]) == {}
    assert asked("skew_step", loads((0, 0), (0, 0))) == {}


def test_bytes_of_a_class_are_not_compared_with_bytes_of_a_port() -> None:
    one_class = counter("leaf-1:Ethernet1:3", "queue_tx_bytes", 10, 10)
    assert states(asked("skew_step", [*loads((100, 100), (100, 100)), one_class])) == {GROUP: "absent"}


def test_an_absence_is_weaker_where_less_was_counted() -> None:
    early = [series(f"leaf-1:{port}", "tx_bytes", [(START + 10 * n, 1e3 * n) for n in range(67)]) for port in BOTH]
    found = asked("skew_step", [*loads((1, 1), (1, 1))[:-2], *early])
    assert found[GROUP].state == "absent"
    assert found[GROUP].coverage == pytest.approx(time_coverage(0.1), abs=0.01)


# -- pausing ---------------------------------------------------------------------------------------------


STUCK_US = 9e5
"""Paused 90 % of the time, in us per second."""


def pauses(device: str, port: str, after: float = BUSY_US) -> Fact:
    return counter(f"{device}:{port}:3", "pfc_rx_pause_us", 0, after)


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


# -- links -----------------------------------------------------------------------------------------------

LINK = "link:leaf-1/Ethernet1/spine-1/Ethernet1"


def seen(a: str, b: str) -> Fact:
    return cable(a, b, "observed", source="lldp.json")


def test_a_planned_link_is_missing_where_its_device_sees_others_only() -> None:
    found = states(asked("link_absent", [*plan(), seen("leaf-1:Ethernet2", "spine-2:Ethernet1")]))
    assert found[LINK] == "present"
    assert found["link:leaf-1/Ethernet2/spine-2/Ethernet1"] == "absent"


def test_without_neighbours_of_either_end_a_link_is_unknown() -> None:
    assert asked("link_absent", plan()) == {}
    assert LINK not in asked("link_absent", [*plan(), seen("leaf-2:Ethernet1", "spine-2:Ethernet2")])


def test_one_end_that_sees_the_link_is_enough() -> None:
    assert states(asked("link_absent", [*plan(), seen("spine-1:Ethernet1", "leaf-1:Ethernet1")]))[LINK] == "absent"


def test_another_device_at_the_port_is_not_the_planned_link() -> None:
    assert states(asked("link_absent", [*plan(), seen("leaf-1:Ethernet1", "spine-2:Ethernet9")]))[LINK] == "present"


def test_hosts_that_speak_no_neighbour_protocol_are_not_missing() -> None:
    found = asked("link_absent", [*plan(), seen("leaf-1:Ethernet1", "spine-1:Ethernet1")])
    assert not [scope for scope in found if "host-" in scope]


def test_a_host_seen_by_its_mac_is_there() -> None:
    found = asked("link_absent", [*plan(), seen("leaf-1:Ethernet11", "host-1:b8:3f:d2:00:00:01")])
    assert found["link:host-1/mlx5_0/leaf-1/Ethernet11"].state == "absent"


# -- cohorts ---------------------------------------------------------------------------------------------


def test_the_tail_is_that_of_fishers_exact_test() -> None:
    assert hypergeometric_tail(8, 4, 4, 4) == pytest.approx(1 / comb(8, 4))
    assert hypergeometric_tail(8, 4, 4, 3) == pytest.approx((1 + 4 * 4) / comb(8, 4))
    assert hypergeometric_tail(20, 5, 6, 4) == pytest.approx(
        0.013932, abs=1e-6
    )  # scipy.stats.hypergeom.sf(3, 20, 5, 6)
    assert hypergeometric_tail(9, 3, 2, 0) == pytest.approx(1)
    assert hypergeometric_tail(9, 3, 0, 0) == 1


def cluster(affected: set[int], unread: frozenset[int] = frozenset()) -> list[Fact]:
    """Twelve hosts on one leaf, the first six with the new firmware; `affected` count NAKs after the onset."""
    facts: list[Fact] = []
    for n in range(1, 13):
        facts += [
            cable(f"h-{n}:mlx5_0", f"leaf-1:Ethernet{n}", role="leaf-host"),
            firmware(f"h-{n}", "mlx5_0", "28.39" if n <= 6 else "28.36"),
        ]
        if n not in unread:
            facts.append(counter(f"h-{n}:mlx5_0", "nak_received", 0, 200 if n in affected else 0))
    return facts


NEW, OLD = "cohort:mlx5_core 28.39", "cohort:mlx5_core 28.36"


def test_anomalies_on_one_version_only_name_it() -> None:
    assert states(asked("fw_cohort", cluster({1, 2, 3, 4, 5, 6}), job=None)) == {NEW: "present", OLD: "absent"}


def test_victims_elsewhere_do_not_hide_a_version() -> None:
    """What the version does wrong and what that does to others show in different counters."""
    facts = cluster({1, 2, 3, 4, 5, 6})
    victims = [counter(f"h-{n}:mlx5_0", "pfc_tx_pause_us", 0, 900) for n in (7, 8, 9, 10)]
    assert states(asked("fw_cohort", [*facts, *victims], job=None))[NEW] == "present"


def test_a_version_that_is_affected_more_often_is_neither_named_nor_cleared() -> None:
    assert states(asked("fw_cohort", cluster({1, 2, 3, 4, 7, 8}), job=None)) == {OLD: "absent"}


def test_a_version_of_which_some_nics_deviate_is_neither_named_nor_cleared() -> None:
    assert NEW not in asked("peer_deviation", cluster({1, 2}), job=None)
    assert states(asked("peer_deviation", cluster({1, 2, 3, 4}), job=None))[NEW] == "present"


def test_anomalies_on_both_versions_name_none() -> None:
    assert states(asked("fw_cohort", cluster({1, 2, 3, 7, 8, 9}), job=None)) == {NEW: "absent", OLD: "absent"}


@pytest.mark.parametrize("affected", [set(), {1}])
def test_too_few_anomalies_prove_nothing(affected: set[int]) -> None:
    assert asked("fw_cohort", cluster(affected), job=None) == {}


def test_hosts_nobody_read_are_no_healthy_hosts() -> None:
    """All hosts of the old version are unread: that the read ones are all affected says nothing of the version."""
    assert asked("fw_cohort", cluster({1, 2, 3, 4, 5, 6}, frozenset(range(7, 13))), job=None) == {}


def test_a_version_that_deviates_from_its_rail_is_told() -> None:
    found = asked("peer_deviation", cluster({1, 2, 3, 4, 5, 6}), job=None)
    assert found[NEW].state == "present"
    calm = asked("peer_deviation", cluster(set()), job=None)
    assert states(calm) == {NEW: "absent", OLD: "absent"}
    assert calm[NEW].coverage == 1.0


def test_a_version_that_everybody_runs_has_no_peers() -> None:
    facts = [firmware(host, "mlx5_0", "28.39") for host in HOSTS]
    counters = [counter(f"{host}:mlx5_0", "nak_received", 0, 50) for host in HOSTS]
    assert asked("peer_deviation", [*plan(), *facts, *counters]) == {}


# -- others' bytes ---------------------------------------------------------------------------------------

HOT = f"queue:{LEAVES[0]}/Ethernet11/3"


def sends_more(added: Mapping[str, float], *, hot: float = 2e9) -> list[Fact]:
    """A job on the first three hosts whose steps take half as long again behind the onset, for the same bytes but at
    some NICs; and the first host's port, which carries 1 GB/s before and `hot` B/s behind it."""
    facts: list[Fact] = [fact for fact in plan() if fact != placement()]
    steps = [(START + 12.0 * n, 12.0) for n in range(1, 51)] + [(ONSET + 18.0 * n, 18.0) for n in range(1, 34)]
    facts += [placement(HOSTS[:3]), series(JOB, "step_seconds", steps)]
    for host in HOSTS:
        for n in (0, 1):
            usual = 1e9 / 1.5 if host in HOSTS[:3] else 1e6
            nic = f"{host}:mlx5_{n}"
            facts.append(counter(nic, "tx_bytes", 1e9 if host in HOSTS[:3] else 1e6, usual + added.get(nic, 0.0)))
    return [*facts, counter(f"{LEAVES[0]}:Ethernet11", "tx_bytes", 1e9, hot)]


def test_bytes_that_a_host_outside_the_job_adds_are_others() -> None:
    assert states(asked("foreign_share", sends_more({f"{HOSTS[3]}:mlx5_0": 1e9}))) == {HOT: "present"}


def test_bytes_that_the_hosts_of_the_job_add_are_its_own_though_not_for_certain() -> None:
    found = asked("foreign_share", sends_more({f"{host}:mlx5_0": 5e8 for host in HOSTS[1:3]}))
    assert states(found) == {HOT: "absent"}
    assert found[HOT].coverage < 1.0


@pytest.mark.parametrize(
    ("added", "hot"),
    [
        ({f"{HOSTS[1]}:mlx5_0": 1e9}, 2e9),  # one host of three: not a collective of the job
        ({f"{HOSTS[3]}:mlx5_0": 1e9, f"{HOSTS[1]}:mlx5_0": 5e8, f"{HOSTS[2]}:mlx5_0": 5e8}, 2e9),  # both
        ({f"{HOSTS[3]}:mlx5_0": 1e9}, 1.1e9),  # the port carries hardly more
        ({}, 2e9),  # from nowhere that was read
    ],
)
def test_bytes_of_doubtful_origin_say_nothing_of_others(added: dict[str, float], hot: float) -> None:
    assert asked("foreign_share", sends_more(added, hot=hot)) == {}


def test_flow_records_come_before_the_counters_of_nics() -> None:
    records = gauge(f"{LEAVES[0]}:Ethernet11:3", "foreign_byte_share", 0.0, 0.05)
    assert states(asked("foreign_share", [*sends_more({f"{HOSTS[3]}:mlx5_0": 1e9}), records])) == {HOT: "absent"}


# -- jobs ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("start", "state"), [(ONSET - 60, "present"), (START - 86400, "absent"), (ONSET + 600, "absent"), (None, None)]
)
def test_a_job_changed_when_it_started_near_the_onset(start: float | None, state: str | None) -> None:
    facts = [fact for fact in plan() if fact != placement()]
    found = asked("job_changed", [*facts, placement(start=start)])
    assert states(found) == ({f"job:{JOB}": state} if state else {})


@pytest.mark.parametrize(
    ("still_s", "pauses_s", "state"), [(20.0, 0.0, "present"), (20.0, 15.0, "absent"), (8.0, 0.0, "absent")]
)
def test_a_job_that_stood_still_at_the_onset_was_started_anew(still_s: float, pauses_s: float, state: str) -> None:
    """A log of steps tells a restart that no scheduler told; a pause like those before it (a checkpoint) is none."""
    steps = [(START + 4.0 * n, 4.0) for n in range(1, 76)]
    steps += [(steps[-1][0] + pauses_s + 4.0 * n, 4.0) for n in range(1, 40)]
    steps += [(steps[-1][0] + still_s + 6.0 * n, 6.0) for n in range(1, 60)]
    onset = steps[113][0]
    facts = [*plan(), series(JOB, "step_seconds", steps)]
    rule = shipped().signs["job_changed"].pattern
    assert rule is not None
    limits = {name: limit.value for name, limit in rule.limits.items() if limit.value is not None}
    found = list(PATTERNS[rule.pattern](observe(facts, onset, uncertainty_s=still_s + 4.0), "job_changed", limits))
    assert [finding.state for finding in found] == [state]


def idle(depth: float, ports: int = 16, before: float = 1e3) -> list[Fact]:
    """Watermarks of the first ports of all switches."""
    all_ports = [(leaf, f"Ethernet{n}") for leaf in LEAVES for n in (1, 2, 11, 12, 13, 14)]
    all_ports += [(spine, f"Ethernet{n}") for spine in SPINES for n in (1, 2)]
    return [*plan(), *(gauge(f"{d}:{p}:3", "queue_peak_bytes", before, depth) for d, p in all_ports[:ports])]


def test_shallow_queues_everywhere_are_an_idle_network() -> None:
    assert states(asked("path_idle", idle(1e3))) == {f"job:{JOB}": "present"}


def test_one_deep_queue_is_enough_for_a_busy_one() -> None:
    assert states(asked("path_idle", idle(9e6, ports=1))) == {f"job:{JOB}": "absent"}


def test_queues_as_deep_as_before_are_no_new_load() -> None:
    assert states(asked("path_idle", idle(9e6, before=9e6))) == {f"job:{JOB}": "present"}


@pytest.mark.parametrize("ports", [0, 1, 7])
def test_a_few_shallow_queues_do_not_make_an_idle_network(ports: int) -> None:
    assert asked("path_idle", idle(1e3, ports)) == {}


def test_a_paused_queue_is_no_idle_network() -> None:
    assert states(asked("path_idle", [*idle(1e3), pauses("leaf-1", "Ethernet1")])) == {f"job:{JOB}": "absent"}


def test_pausing_where_no_byte_of_the_job_goes_leaves_its_network_idle() -> None:
    """A storm at a host of nobody, below a leaf of the job."""
    facts = [fact for fact in idle(1e3) if fact != placement()]
    facts += [placement(HOSTS[:3]), pauses("leaf-1", "Ethernet14")]
    assert states(asked("path_idle", facts)) == {f"job:{JOB}": "present"}


def test_losses_are_no_idle_network() -> None:
    assert states(asked("path_idle", [*idle(1e3), counter("host-1:mlx5_0", "nak_received", 0, 50)])) == {
        f"job:{JOB}": "absent"
    }
