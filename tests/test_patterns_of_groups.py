"""Signs of ECMP groups: members that left, load that became uneven."""

from __future__ import annotations

import pytest
from asking import asked, session, states
from fabrics import (
    END,
    ONSET,
    START,
    cable,
    counter,
    gauge,
    origin,
    plan,
    route,
    series,
)

from causeline.engine.facts import EventKind, Fact
from causeline.engine.findings import time_coverage

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
