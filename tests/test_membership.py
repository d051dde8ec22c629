"""ECMP groups where no route was read: their ports come from the links, what changed them from states, gauges,
logs."""

from __future__ import annotations

from dataclasses import replace

from asking import asked as asked_of
from asking import states
from fabrics import END, ONSET, START, cable, counter, gauge, observe, origin, plan, route, series

from causeline.engine.fabric.link_groups import Tiers
from causeline.engine.fabric.link_states import LinkStates
from causeline.engine.facts import Event, EventKind, Fact, QosProfile
from causeline.engine.findings import SignFinding
from causeline.engine.topology import Topology

LEAF_1, LEAF_2 = "ecmp:leaf-1/uplinks", "ecmp:leaf-2/uplinks"


def asked(sign: str, *facts: Fact, onset: float | None = ONSET) -> dict[str, SignFinding]:
    return asked_of(sign, [*plan(), counter("leaf-1:Ethernet1", "rx_bytes", 1, 1), *facts], onset)


def members(*facts: Fact) -> dict[str, tuple[tuple[str, ...], tuple[str, ...]]]:
    observed = observe([*plan(), counter("leaf-1:Ethernet1", "rx_bytes", 1, 1), *facts])
    return {str(group.scope): (group.before, group.after) for group in observed.membership.groups}


def state_of(place: str, before: float = 1, after: float = 1) -> Fact:
    return gauge(place, "oper_up", before, after)


def event(kind: EventKind, device: str, at: float, words: str = "", port: str = "") -> Event:
    return Event(kind, device, port, at, words, origin("changes.jsonl"))


def next_hops(device: str, towards: str, before: float, after: float) -> Fact:
    return replace(gauge(device, "ecmp_members", before, after), qualifier=f"to:{towards}")


# -- which ports share their destinations ----------------------------------------------------------------


def test_the_links_of_a_leaf_to_the_next_tier_are_a_group() -> None:
    both = ("Ethernet1", "Ethernet2")
    assert Tiers(Topology(plan())).groups == {("leaf-1", "uplinks"): both, ("leaf-2", "uplinks"): both}


def test_parallel_links_to_a_leaf_are_a_group_of_the_spine() -> None:
    second = cable("leaf-1:Ethernet3", "spine-1:Ethernet3", role="leaf-spine")
    groups = Tiers(Topology([*plan(), second])).groups
    assert groups[("spine-1", "to:leaf-1")] == ("Ethernet1", "Ethernet3")
    assert groups[("leaf-1", "uplinks")] == ("Ethernet1", "Ethernet2", "Ethernet3")


def test_a_core_spreads_over_all_switches_with_the_same_leaves_below_them() -> None:
    cores = [cable(f"spine-{n}:Ethernet9", f"core-1:Ethernet{n}", role="leaf-spine") for n in (1, 2)]
    groups = Tiers(Topology([*plan(), *cores])).groups
    assert groups[("core-1", "to:leaf-1..leaf-2")] == ("Ethernet1", "Ethernet2")
    assert ("spine-1", "uplinks") not in groups


def test_a_device_whose_routes_were_read_is_known_by_them_alone() -> None:
    both = ("Ethernet1", "Ethernet2")
    found = observe([*plan(), route("leaf-1", both, START), counter("leaf-1:Ethernet1", "rx_bytes", 1, 1)]).membership
    assert {str(group.scope): group.known_by for group in found.groups} == {LEAF_1: "routes", LEAF_2: "links"}


# -- what changed them -----------------------------------------------------------------------------------


def test_a_link_that_goes_down_and_stays_leaves_its_group() -> None:
    found = asked("ecmp_event", state_of("spine-1:Ethernet1", 1, 0))
    assert found[LEAF_1].state == "present"
    assert (found[LEAF_1].baseline, found[LEAF_1].observed) == (2, 1)
    assert found[LEAF_1].words["moves"] == "Et1 left"
    assert members(state_of("spine-1:Ethernet1", 1, 0))[LEAF_1] == (("Ethernet1", "Ethernet2"), ("Ethernet2",))


def test_other_leaves_lose_the_neighbour_for_the_place_behind_the_lost_link_only() -> None:
    lost = state_of("spine-1:Ethernet1", 1, 0)
    found = asked("ecmp_event", lost)
    assert found[LEAF_2].state == "present"
    assert found[LEAF_2].words["moves"] == "Et1 left towards leaf-1"
    assert members(lost)[LEAF_2] == (("Ethernet1", "Ethernet2"), ("Ethernet1", "Ethernet2"))


def test_a_parallel_link_that_stays_up_keeps_the_neighbour() -> None:
    second = cable("leaf-1:Ethernet3", "spine-1:Ethernet3", role="leaf-spine")
    found = asked("ecmp_event", second, state_of("spine-1:Ethernet1", 1, 0))
    assert LEAF_2 not in found
    assert found["ecmp:spine-1/to:leaf-1"].state == "present"


def test_a_logged_link_down_and_drops_of_a_dead_link_tell_as_well() -> None:
    down = event(EventKind.LINK_DOWN, "leaf-1", ONSET + 5, port="Ethernet1")
    assert asked("ecmp_event", down)[LEAF_1].words["moves"] == "Et1 left"
    dropping = counter("leaf-1:Ethernet1", "link_down_drop_packets", 0, 100)
    assert asked("ecmp_event", dropping)[LEAF_1].words["moves"] == "Et1 left"


def test_a_link_that_was_down_all_along_changes_nothing() -> None:
    dead = state_of("leaf-1:Ethernet1", 0, 0)
    assert states(asked("ecmp_event", dead)) == {LEAF_1: "absent"}
    assert members(dead)[LEAF_1] == (("Ethernet2",), ("Ethernet2",))


def test_a_gauge_of_next_hops_tells_a_drain_that_no_link_shows() -> None:
    loads = [counter(f"leaf-1:Ethernet{n}", "tx_bytes", 100, after) for n, after in ((1, 0), (2, 200))]
    found = asked("ecmp_event", next_hops("leaf-1", "leaf-2", 2, 1))
    assert found[LEAF_1].words["moves"] == "to:leaf-2: 2 to 1 next hops"
    assert (found[LEAF_1].baseline, found[LEAF_1].observed) == (2, 1)
    assert members(next_hops("leaf-1", "leaf-2", 2, 1), *loads)[LEAF_1][1] == ("Ethernet2",)


def test_a_change_of_what_chooses_the_next_hop_is_a_change_of_the_group() -> None:
    pushed = event(EventKind.HASH_CHANGE, "leaf-1", ONSET - 20, "load-balance profile push")
    found = asked("ecmp_event", next_hops("leaf-1", "leaf-2", 2, 2), next_hops("leaf-2", "leaf-1", 2, 2), pushed)
    assert states(found) == {LEAF_1: "present", LEAF_2: "absent"}
    assert found[LEAF_1].words["moves"] == "load-balance profile push"


def test_profiles_with_another_hash_are_a_change_without_a_time() -> None:
    profiles = [QosProfile("leaf-1", at, origin(), ecmp_hash=how) for at, how in ((START, "seed 1"), (END, "seed 2"))]
    found = asked("ecmp_event", *profiles)
    assert found[LEAF_1].words["moves"] == "hash seed 1 became seed 2"
    assert found[LEAF_1].at is None


def test_a_change_long_before_or_after_the_onset_is_not_near_it() -> None:
    early = event(EventKind.HASH_CHANGE, "leaf-1", ONSET - 500)
    late = event(EventKind.ROUTE_CHANGE, "leaf-1", ONSET + 100)
    assert states(asked("ecmp_event", next_hops("leaf-1", "leaf-2", 2, 2), early, late)) == {LEAF_1: "absent"}


# -- what may say that nothing changed -------------------------------------------------------------------


def test_links_alone_acquit_nobody() -> None:
    assert asked("ecmp_event") == {}


def test_a_gauge_says_more_than_the_states_of_the_links() -> None:
    by_gauge = asked("ecmp_event", next_hops("leaf-1", "leaf-2", 2, 2))[LEAF_1]
    by_states = asked("ecmp_event", state_of("leaf-1:Ethernet1"), state_of("leaf-1:Ethernet2"))[LEAF_1]
    by_half = asked("ecmp_event", state_of("leaf-1:Ethernet1"))[LEAF_1]
    assert {one.state for one in (by_gauge, by_states, by_half)} == {"absent"}
    assert 1 > by_gauge.coverage > by_states.coverage > by_half.coverage > 0


def test_a_gauge_read_on_one_side_of_the_onset_acquits_nobody() -> None:
    late = series("leaf-1", "ecmp_members", [(ONSET + 10 * n, 2.0) for n in range(1, 50)])
    assert asked("ecmp_event", replace(late, qualifier="to:leaf-2")) == {}


# -- states of links -------------------------------------------------------------------------------------


def test_both_ends_and_the_log_tell_one_change_once() -> None:
    observed = observe(
        [
            *plan(),
            state_of("leaf-1:Ethernet1", 1, 0),
            state_of("spine-1:Ethernet1", 1, 0),
            event(EventKind.LINK_DOWN, "leaf-1", ONSET + 2, port="Ethernet1"),
        ]
    )
    links = LinkStates(observed.topology, observed.signals, observed.telemetry.line, observed.split)
    (change,) = links.changes(("spine-1", "Ethernet1"))
    assert (change.at, change.is_up) == (ONSET + 2, False)
    assert links.is_up(("leaf-1", "Ethernet1"), "start")
    assert not links.is_up(("leaf-1", "Ethernet1"), "end")


def test_a_flap_is_two_changes_and_leaves_the_link_up() -> None:
    times = [START + 10 * n for n in range(121)]
    flapping = series("leaf-1:Ethernet1", "oper_up", [(t, 0.0 if ONSET < t < ONSET + 40 else 1.0) for t in times])
    observed = observe([*plan(), flapping])
    links = LinkStates(observed.topology, observed.signals, observed.telemetry.line, observed.split)
    assert [change.is_up for change in links.changes(("leaf-1", "Ethernet1"))] == [False, True]
    assert links.is_up(("leaf-1", "Ethernet1"), "end")


def test_an_event_outside_the_window_tells_nothing_of_it() -> None:
    found = asked("ecmp_event", event(EventKind.LINK_DOWN, "leaf-1", START - 3600, port="Ethernet1"), onset=None)
    assert found == {}


# -- load ------------------------------------------------------------------------------------------------


def test_the_load_of_a_group_known_by_links_is_compared_like_any_other() -> None:
    loads = [counter(f"leaf-1:Ethernet{n}", "tx_bytes", 100, after) for n, after in ((1, 20), (2, 180))]
    found = asked("skew_step", *loads)
    assert states(found) == {LEAF_1: "present"}
    assert found[LEAF_1].words["member"] == "Et2"
