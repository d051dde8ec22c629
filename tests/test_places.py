"""Where causes can sit, what lies around a place, which block it is summed in, and how it is named."""

from __future__ import annotations

from functools import cache

import pytest
from fabrics import (
    END,
    HOSTS,
    JOB,
    LEAVES,
    START,
    cable,
    counter,
    firmware,
    gauge,
    grouped,
    observe,
    placement,
    plan,
    route,
)

from causeline.engine.facts import Fact
from causeline.engine.places import Places
from causeline.engine.results import Place
from causeline.engine.rules import Relation
from causeline.engine.scope import Scope, ScopeKind

GROUP = Scope.of("ecmp", "leaf-1", "uplinks")
NIC = Scope.of("nic", "host-1", "mlx5_0")
LINK = Scope.parse("link:leaf-1/Ethernet1/spine-1/Ethernet1")
COHORT = Scope.of("cohort", "mlx5_core 28.39")


@cache
def places() -> Places:
    return Places(observe(grouped()))


def related(scope: Scope, relation: Relation, of: Places | None = None) -> list[str]:
    return [str(found) for found in (of or places()).related(scope, relation)]


# -- where causes can be -------------------------------------------------------------------------------


def test_causes_sit_where_the_bytes_of_the_job_can_go() -> None:
    facts = [fact for fact in plan() if fact != placement()]
    far = cable("host-9:mlx5_0", "leaf-9:Ethernet11", role="leaf-host")
    near = Places(observe([*facts, far, placement(HOSTS[:1])]))
    assert {scope.device for scope in near.instances(ScopeKind.NIC)} == {"host-1"}
    assert {scope.device for scope in near.instances(ScopeKind.DEVICE)} == {*LEAVES, "spine-1", "spine-2"}
    queues = {f"{scope.device} {scope.port}" for scope in near.instances(ScopeKind.QUEUE)}
    assert "leaf-1 Ethernet11" in queues
    assert "leaf-1 Ethernet12" not in queues
    everywhere = Places(observe([*facts, far, placement(HOSTS[:1])], job=None))
    assert "leaf-9" in {scope.device for scope in everywhere.instances(ScopeKind.DEVICE)}
    assert everywhere.instances(ScopeKind.JOB) == ()


def test_a_circle_that_the_job_does_not_cross_is_no_place_of_its_causes() -> None:
    ring = [cable(f"s-{n}:Ethernet1", f"s-{n % 3 + 1}:Ethernet2") for n in (1, 2, 3)]
    paused = [counter(f"s-{n}:Ethernet1:3", "pfc_rx_pause_us", 0, 9e5) for n in (1, 2, 3)]
    asked, anybody = (Places(observe([*plan(), *ring, *paused], job=job)) for job in (JOB, None))
    none_seen = Scope.of("cycle", "none seen")
    assert asked.instances(ScopeKind.CYCLE) == (none_seen,)
    assert len(anybody.instances(ScopeKind.CYCLE)) == 2


def test_places_come_sorted_and_once() -> None:
    for kind in ScopeKind:
        found = places().instances(kind)
        assert list(found) == sorted(set(found))


# -- what lies around a place -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("scope", "relation", "expected"),
    [
        (GROUP, Relation.SELF, ["ecmp:leaf-1/uplinks"]),
        (GROUP, Relation.HOT_MEMBER_PORT, ["port:leaf-1/Ethernet2"]),
        (GROUP, Relation.HOT_MEMBER_QUEUE, ["queue:leaf-1/Ethernet2/3"]),
        (GROUP, Relation.HOT_MEMBER_LINK, ["link:leaf-1/Ethernet2/spine-2/Ethernet1"]),
        (GROUP, Relation.RAIL, ["rail:mlx5_0"]),
        (NIC, Relation.LEAF_PORT, ["port:leaf-1/Ethernet11"]),
        (NIC, Relation.LEAF_QUEUE, ["queue:leaf-1/Ethernet11/3"]),
        (NIC, Relation.LINK, ["link:host-1/mlx5_0/leaf-1/Ethernet11"]),
        (LINK, Relation.GROUPS_OVER_LINK, ["ecmp:leaf-1/uplinks"]),
        (LINK, Relation.PORTS, ["port:leaf-1/Ethernet1", "port:spine-1/Ethernet1"]),
        (LINK, Relation.EGRESS_QUEUES, ["queue:leaf-1/Ethernet1/3", "queue:spine-1/Ethernet1/3"]),
        (Scope.of("host", "host-2"), Relation.NICS, ["nic:host-2/mlx5_0", "nic:host-2/mlx5_1"]),
        (Scope.of("host", "host-2"), Relation.JOBS, [f"job:{JOB}"]),
        (NIC, Relation.FABRIC, ["fabric:all"]),
        (Scope.of("queue", "leaf-1", "Ethernet11", 3), Relation.PAUSED_UPSTREAM, []),
        (Scope.of("queue", "leaf-1", "Ethernet50", 3), Relation.LINK, []),
    ],
)
def test_a_relation_leads_to_its_places(scope: Scope, relation: Relation, expected: list[str]) -> None:
    assert related(scope, relation) == expected


def members(*facts: Fact) -> Places:
    return Places(observe([*plan(), *(route("leaf-1", ("Ethernet1", "Ethernet2"), at) for at in (START, END)), *facts]))


def test_the_hot_member_has_the_deepest_queue_before_the_most_bytes() -> None:
    loads = [counter(f"leaf-1:Ethernet{n}", "tx_bytes", 1, n) for n in (1, 2)]
    assert members(*loads).hot_member(GROUP) == ("leaf-1", "Ethernet2")
    depths = [gauge(f"leaf-1:Ethernet{n}:3", "queue_peak_bytes", 0, 9e6 / n) for n in (1, 2)]
    assert members(*loads, *depths).hot_member(GROUP) == ("leaf-1", "Ethernet1")


def test_members_nobody_read_are_not_hot() -> None:
    unread = members()
    assert unread.hot_member(GROUP) is None
    assert related(GROUP, Relation.HOT_MEMBER_QUEUE, unread) == []
    assert unread.block(GROUP) == str(GROUP)
    assert unread.wording(GROUP) == "leaf-1 uplinks"


def test_of_equally_hot_members_the_first_by_number_is_taken() -> None:
    loads = [counter(f"leaf-1:Ethernet{n}", "tx_bytes", 1, 5) for n in (2, 1)]
    assert members(*loads).hot_member(GROUP) == ("leaf-1", "Ethernet1")


def test_a_member_that_left_is_not_hot() -> None:
    gone = [route("leaf-1", ("Ethernet1", "Ethernet2"), START), route("leaf-1", ("Ethernet1", "Ethernet3"), END)]
    loads = [counter("leaf-1:Ethernet2", "tx_bytes", 900, 900), counter("leaf-1:Ethernet1", "tx_bytes", 1, 1)]
    group = Places(observe([*plan(), *gone, *loads]))
    (scope,) = (scope for scope in group.instances(ScopeKind.ECMP) if scope.device == "leaf-1")
    assert group.hot_member(scope) == ("leaf-1", "Ethernet1")


def test_the_deepest_queue_of_a_device_is_one_that_nobody_pauses() -> None:
    depths = [gauge(f"leaf-1:Ethernet{n}:3", "queue_peak_bytes", 0, 9e6 / n) for n in (1, 2)]
    paused = counter("leaf-1:Ethernet1:3", "pfc_rx_pause_us", 0, 9e5)
    leaf = Scope.of("device", "leaf-1")
    assert related(leaf, Relation.DEEPEST_QUEUE, members(*depths)) == ["queue:leaf-1/Ethernet1/3"]
    assert related(leaf, Relation.DEEPEST_QUEUE, members(*depths, paused)) == ["queue:leaf-1/Ethernet2/3"]
    assert related(leaf, Relation.DEEPEST_QUEUE, members()) == []


def test_where_members_left_the_way_back_may_overload_instead() -> None:
    deep = gauge("spine-1:Ethernet1:3", "queue_peak_bytes", 0, 9e6)
    assert members(deep, counter("leaf-1:Ethernet1", "tx_bytes", 1, 5)).hot_member(GROUP) == ("leaf-1", "Ethernet1")
    lost = [gauge("leaf-1:Ethernet2", "oper_up", 1, 0), counter("leaf-1:Ethernet1", "tx_bytes", 1, 5)]
    found = Places(observe([*plan(), *lost, deep]))
    assert found.hot_member(GROUP) == ("spine-1", "Ethernet1")
    assert found.wording(GROUP) == "leaf-1 uplinks (spine-1 Et1)"
    assert related(GROUP, Relation.HOT_MEMBER_QUEUE, found) == ["queue:spine-1/Ethernet1/3"]


def test_where_members_left_what_lies_behind_the_others_may_overload_too() -> None:
    lost = [gauge("leaf-1:Ethernet2", "oper_up", 1, 0), counter("leaf-1:Ethernet1", "tx_bytes", 1, 5)]
    behind = gauge("spine-1:Ethernet2:3", "queue_peak_bytes", 1e6, 9e6)
    found = Places(observe([*plan(), *lost, behind]))
    assert found.hot_member(GROUP) == ("spine-1", "Ethernet2")
    assert found.block(GROUP) == "port:spine-1/Ethernet2"
    assert Place(device="spine-1", port="Ethernet2", queue=3) in found.named(GROUP)
    both = Places(observe([*plan(), *lost, behind, gauge("spine-1:Ethernet1:3", "queue_peak_bytes", 0, 8e6)]))
    assert related(GROUP, Relation.HOT_MEMBER_QUEUE, both) == ["queue:spine-1/Ethernet1/3", "queue:spine-1/Ethernet2/3"]


@pytest.mark.parametrize("before", [5e6, 9e6], ids=["half as deep before", "as deep before"])
def test_a_queue_behind_a_member_that_did_not_deepen_is_no_place_of_it(before: float) -> None:
    lost = [gauge("leaf-1:Ethernet2", "oper_up", 1, 0), counter("leaf-1:Ethernet1", "tx_bytes", 1, 5)]
    deep = Places(observe([*plan(), *lost, gauge("spine-1:Ethernet2:3", "queue_peak_bytes", before, 9e6)]))
    assert deep.hot_member(GROUP) == ("leaf-1", "Ethernet1")


def test_a_queue_behind_many_groups_is_a_place_of_the_one_that_sends_most_more() -> None:
    lost = [gauge(f"leaf-{n}:Ethernet2", "oper_up", 1, 0) for n in (1, 2)]
    more = [counter(f"leaf-{n}:Ethernet1", "tx_bytes", 1, 5 * n) for n in (1, 2)]
    above = [cable(f"spine-1:Ethernet{n}", f"core-{n}:Ethernet1", role="leaf-spine") for n in (8, 9)]
    behind = gauge("spine-1:Ethernet9:3", "queue_peak_bytes", 1e6, 9e6)
    found = Places(observe([*plan(), *above, *lost, *more, behind]))
    assert found.hot_member(Scope.of("ecmp", "leaf-2", "uplinks")) == ("spine-1", "Ethernet9")
    assert found.hot_member(GROUP) == ("leaf-1", "Ethernet1")


# -- blocks and names ---------------------------------------------------------------------------------------


def test_what_can_be_wrong_at_one_port_is_one_block() -> None:
    port = "port:leaf-1/Ethernet11"
    assert places().block(Scope.of("queue", "leaf-1", "Ethernet11", 3)) == port
    assert places().block(NIC) == port
    assert places().block(GROUP) == "port:leaf-1/Ethernet2"
    assert places().block(LINK) == str(LINK)


def test_names_in_results_hold_both_ends_and_the_queue() -> None:
    assert places().named(LINK) == (
        Place(device="leaf-1", port="Ethernet1"),
        Place(device="spine-1", port="Ethernet1"),
    )
    assert places().named(GROUP) == (Place(device="leaf-1"), Place(device="leaf-1", port="Ethernet2", queue=3))
    assert places().named(NIC) == (
        Place(device="host-1", port="mlx5_0"),
        Place(device="leaf-1", port="Ethernet11"),
    )
    assert places().named(Scope.of("host", "host-1")) == (Place(device="host-1"),)
    assert places().named(Scope.of("job", JOB)) == ()
    assert len(places().named(COHORT)) == 2 * 2 * len(HOSTS)


@pytest.mark.parametrize(
    ("scope", "words"),
    [
        (LINK, "leaf-1 Et1 - spine-1 Et1"),
        (GROUP, "leaf-1 Et2"),
        (NIC, "host-1 mlx5_0"),
        (Scope.of("queue", "leaf-1", "Ethernet1/12", 3), "leaf-1 Et1/12 TC3"),
        (COHORT, "4 hosts (mlx5_core 28.39)"),
        (Scope.of("rail", "mlx5_0"), "rail mlx5_0"),
        (Scope.of("host", "host-1"), "host-1"),
        (Scope.of("cycle", "none seen"), "the fabric"),
    ],
)
def test_places_are_said_as_engineers_say_them(scope: Scope, words: str) -> None:
    assert places().wording(scope) == words


def test_a_version_of_one_host_is_said_by_its_name() -> None:
    one = Places(observe([*plan(), firmware("host-3", "mlx5_0", "28.40")]))
    assert one.wording(Scope.of("cohort", "mlx5_core 28.40")) == "host-3 (mlx5_core 28.40)"


def test_around_a_place_are_its_rivals() -> None:
    around = {str(scope) for scope in places().around(NIC)}
    assert around == {str(NIC), "link:host-1/mlx5_0/leaf-1/Ethernet11", "queue:leaf-1/Ethernet11/3"}
    hot = {"link:leaf-1/Ethernet2/spine-2/Ethernet1", "queue:leaf-1/Ethernet2/3"}
    assert {str(scope) for scope in places().around(GROUP)} == {str(GROUP), *hot}
