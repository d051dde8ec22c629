"""The timing of ranks parts a slow host from a slow network from a job that changed, and names the places that can
have slowed the job; where it cannot tell, nothing is said."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import pytest
from fabrics import HOSTS, JOB, ONSET, START, cable, counter, gauge, observe, placement, plan, series, shipped

from causeline.engine.compile import compile_network
from causeline.engine.facts import Fact
from causeline.engine.findings import Findings, LevelReading
from causeline.engine.frontier.sweep import solve
from causeline.engine.observed import Observed
from causeline.engine.patterns import PATTERNS
from causeline.engine.places import Places
from causeline.engine.scope import Scope, ScopeKind
from causeline.engine.step_parts import shares_by_timing, step_parts
from causeline.engine.timed_places import CROSSED_LINK, NAMED_LINK, SELDOM_LINK, TimedPlaces
from causeline.engine.verdicts import judge

STEP_S = 25.0
"""Steps begin so far apart: 24 before the onset, 24 after it."""

Levels = tuple[float, ...]
"""Values by turns: one before the onset, or a pair that alternates."""

CALM: tuple[Levels, Levels] = ((8.0,), (8.0,))
SENDS: tuple[Levels, Levels] = ((4.0,), (4.0,))


def ranks(
    enters: Mapping[str, tuple[Levels, Levels]] | None = None,
    sends: Mapping[str, tuple[Levels, Levels]] | None = None,
    *,
    waits: bool = False,
    steps: int = 48,
    without: tuple[str, int] | None = None,
) -> list[Fact]:
    """Entries and ends of every host's rank, before and after the onset.

    `waits`: as in a collective, nobody finishes before all have. `without`: a host whose record of one step is lost.
    """
    found: list[Fact] = []
    timing: dict[str, list[tuple[float, float, float]]] = {host: [] for host in HOSTS}
    for n in range(24 - steps // 2, 24 + steps // 2):
        begin, side = START + n * STEP_S, int(START + n * STEP_S >= ONSET)
        entry = {host: _level((enters or {}).get(host, CALM)[side], n) for host in HOSTS}
        done = {host: entry[host] + _level((sends or {}).get(host, SENDS)[side], n) for host in HOSTS}
        if waits:
            last = max(entry.values())
            done = dict.fromkeys(HOSTS, last + max(done[host] - entry[host] for host in HOSTS))
        for host in HOSTS:
            if (host, n) != without:
                timing[host].append((begin, entry[host], done[host]))
    for host, rows in timing.items():
        for metric, at in (("rank_send_start", 1), ("rank_send_done", 2)):
            found.append(series(f"{JOB}:{host}", metric, [(row[0] + row[at], row[at]) for row in rows]))
    return found


def _level(levels: Levels, step: int) -> float:
    return levels[step % len(levels)]


def states(facts: list[Fact]) -> dict[str, str]:
    """Answers to the signs of rank timing, by sign and place."""
    observed = observe([*plan(), *facts])
    found = {}
    for sign in ("late_rank", "slow_flow_done", "uniform_slow"):
        rule = shipped().signs[sign].pattern
        assert rule is not None
        for finding in PATTERNS[rule.pattern](observed, sign, {}):
            found[f"{sign} {finding.scope.parts[0]}"] = finding.state
    return found


LATE_NOBODY = {f"late_rank {host}": "absent" for host in HOSTS}


def late(*hosts: str) -> dict[str, str]:
    return {f"late_rank {host}": "present" if host in hosts else "absent" for host in HOSTS}


@pytest.mark.parametrize("waits", [False, True], ids=["plain sends", "collective"])
def test_a_host_that_enters_last_is_late_and_its_peers_that_wait_are_not(waits: bool) -> None:
    assert states(ranks({"host-2": ((8.0,), (11.0,))}, waits=waits)) == {
        **late("host-2"),
        f"slow_flow_done {JOB}": "absent",
        f"uniform_slow {JOB}": "absent",
    }


def test_a_host_that_was_late_before_is_not_late_now() -> None:
    found = states(ranks({"host-2": ((11.0,), (11.0,))}, {"host-3": ((4.0,), (9.0,))}))
    assert found == {**LATE_NOBODY, f"slow_flow_done {JOB}": "present", f"uniform_slow {JOB}": "absent"}


@pytest.mark.parametrize("waits", [False, True], ids=["plain sends", "collective"])
def test_ranks_that_all_compute_longer_are_a_uniform_slowdown(waits: bool) -> None:
    assert states(ranks({host: ((8.0,), (11.0,)) for host in HOSTS}, waits=waits)) == {
        **LATE_NOBODY,
        f"slow_flow_done {JOB}": "absent",
        f"uniform_slow {JOB}": "present",
    }


def test_slow_sends_of_one_rank_are_neither_a_late_rank_nor_uniform() -> None:
    assert states(ranks(sends={"host-2": ((4.0,), (7.0,))})) == {
        **LATE_NOBODY,
        f"slow_flow_done {JOB}": "present",
        f"uniform_slow {JOB}": "absent",
    }


def test_sends_that_all_end_later_alike_leave_network_and_job_open() -> None:
    """A slow way in a collective that all wait for looks like more bytes of all."""
    assert states(ranks(sends={"host-2": ((4.0,), (7.0,))}, waits=True)) == LATE_NOBODY
    assert states(ranks(sends={host: ((4.0,), (7.0,)) for host in HOSTS})) == LATE_NOBODY


def sending(grown: float, nics: int = 8) -> list[Fact]:
    """What the job's NICs send while its steps take half as long again: so many times the bytes a step at the first
    NICs, as many as before at the others."""
    ends = [START + 12.0 * n for n in range(1, 51)]
    ends += [ONSET + 18.0 * n for n in range(1, 34)]
    seconds = [12.0] * 50 + [18.0] * 33
    names = [f"{host}:mlx5_{n}" for host in HOSTS for n in (0, 1)]
    rates = [1e9 * (grown if number < nics else 1.0) / 1.5 for number in range(len(names))]
    sent = [counter(name, "tx_bytes", 1e9, rate) for name, rate in zip(names, rates, strict=True)]
    return [series(JOB, "step_seconds", list(zip(ends, seconds, strict=True))), *sent]


def test_all_nics_that_send_more_a_step_are_a_uniform_slowdown_without_any_timing_of_ranks() -> None:
    assert states(sending(1.8)) == {f"uniform_slow {JOB}": "present"}


@pytest.mark.parametrize(("grown", "nics"), [(1.0, 8), (1.8, 4), (1.1, 8)])
def test_bytes_that_do_not_explain_the_step_tell_nothing_of_the_job(grown: float, nics: int) -> None:
    assert states(sending(grown, nics)) == {}


def test_sends_that_all_end_later_alike_with_the_same_bytes_are_the_networks() -> None:
    slow = ranks(sends={"host-2": ((4.0,), (7.0,))}, waits=True)
    assert states([*slow, *sending(1.0)]) == {
        **LATE_NOBODY,
        f"slow_flow_done {JOB}": "present",
        f"uniform_slow {JOB}": "absent",
    }


def test_few_steps_tell_nothing() -> None:
    assert states(ranks({"host-2": ((8.0,), (11.0,))}, steps=8)) == {}
    assert states(ranks({"host-2": ((8.0,), (11.0,))}, steps=10))["late_rank host-2"] == "present"


def test_sends_that_are_slow_now_and_then_are_late_though_their_median_is_as_before() -> None:
    """Loss on one of many ways: it must not clear the network."""
    found = states(ranks(sends={"host-2": ((4.0,), (9.0, 4.0, 4.0, 4.0))}))
    assert found == {**LATE_NOBODY, f"slow_flow_done {JOB}": "present", f"uniform_slow {JOB}": "absent"}


def test_a_host_that_stalls_now_and_then_is_late() -> None:
    found = states(ranks({"host-2": ((8.0,), (12.0, 8.0, 8.0, 8.0))}))
    assert found == {**late("host-2"), f"slow_flow_done {JOB}": "absent", f"uniform_slow {JOB}": "absent"}


@pytest.mark.parametrize(
    ("enters", "sends", "level"),
    [
        ((11.0,), (4.0,), 2),  # all of it
        ((11.0,), (12.0,), 1),  # the sends of another rank make up more
        ((12.0, 8.0, 8.0, 8.0), (4.0,), 2),  # in each of the few steps that are longer
        ((12.0, 8.0, 8.0, 8.0), (4.0, 9.0, 9.0, 9.0), 1),
    ],
)
def test_a_late_rank_says_whether_it_makes_up_the_slowdown(enters: Levels, sends: Levels, level: int) -> None:
    facts = ranks({"host-2": ((8.0,), enters)}, {"host-3": ((4.0,), sends)})
    found = PATTERNS["late_ranks"](observe([*plan(), *facts]), "late_rank", {})
    assert [one.levels for one in found if one.state == "present"] == [LevelReading(level, level)]


WATCHED = gauge("host-1", "host_cpu_ratio", 0.3, 0.3)


def hung(missing: tuple[str, ...], last_s: float = 8.0) -> list[Fact]:
    """Steps up to the onset, and one that all hosts but these enter and none finishes."""
    steps = [START + n * STEP_S for n in range(24)]
    found: list[Fact] = [WATCHED]
    for host in HOSTS:
        entries = [(begin + 8.0, 8.0) for begin in steps]
        entries += [] if host in missing else [(ONSET + last_s, last_s)]
        found += [series(f"{JOB}:{host}", "rank_send_start", entries)]
        found += [series(f"{JOB}:{host}", "rank_send_done", [(begin + 12.0, 12.0) for begin in steps])]
    return found


def test_the_rank_that_never_entered_the_step_that_hangs_is_late() -> None:
    assert states(hung(("host-2",))) == late("host-2")


def test_slow_steps_ahead_of_the_one_that_hangs_do_not_acquit_the_rank_that_stopped_it() -> None:
    facts = ranks(sends={"host-3": ((4.0,), (9.0,))}, steps=36)
    stop = START + 42 * STEP_S
    entered = [series(f"{JOB}:{host}", "rank_send_start", [(stop + 8.0, 8.0)]) for host in HOSTS if host != "host-2"]
    found = states([*facts, *entered, WATCHED])
    assert {key: state for key, state in found.items() if key.startswith("late_rank")} == late("host-2")


def test_sends_that_all_ranks_began_and_none_finished_are_late_and_no_rank_is() -> None:
    assert states(hung(())) == {**LATE_NOBODY, f"slow_flow_done {JOB}": "present"}


def test_a_log_of_ranks_that_ends_while_the_job_goes_on_tells_nothing() -> None:
    later = series(JOB, "step_seconds", [(ONSET + 25.0 * n, 25.0) for n in range(1, 20)])
    assert states([*hung(("host-2",)), later]) == {}


def test_most_ranks_missing_are_a_log_that_ends() -> None:
    assert states(hung(HOSTS[:3])) == {}


def test_one_long_send_may_be_chance() -> None:
    found = states(ranks(sends={"host-2": ((4.0,), (9.0, *(4.0,) * 23))}))
    assert f"slow_flow_done {JOB}" not in found


def test_a_rank_that_always_varied_as_much_is_neither_late_nor_not() -> None:
    found = states(ranks({"host-2": ((8.0, 11.0), (10.5, 11.0))}))
    assert "late_rank host-2" not in found
    assert found["late_rank host-1"] == "absent"


def test_a_lost_record_of_the_late_rank_does_not_make_it_punctual() -> None:
    """Steps that lack a rank are left out, and the rest still tells."""
    found = states(ranks({"host-2": ((8.0,), (11.0,))}, without=("host-2", 30)))
    assert found["late_rank host-2"] == "present"
    assert states(ranks({"host-2": ((8.0,), (11.0,))}, steps=10, without=("host-2", 25))) == {}


def named(facts: list[Fact], traffic: str | None = "ring_allreduce") -> dict[str, bool | None]:
    """What the timing says of each NIC's place and of one link between switches."""
    ring = replace(placement(), traffic=traffic)
    observed: Observed = observe([*plan(), ring, *facts])
    timed = TimedPlaces(observed, Places(observed))
    scopes = [Scope.of("nic", host, "mlx5_0") for host in HOSTS]
    return {
        **{scope.device: timed.names(scope) for scope in scopes},
        "uplink": timed.names(Scope.of("queue", "leaf-1", "Ethernet1", "3")),
        "to host-3": timed.names(Scope.of("queue", "leaf-1", "Ethernet13", "3")),
    }


def test_a_slow_sender_of_a_ring_names_itself_and_the_next_host_and_clears_the_rest() -> None:
    assert named(ranks(sends={"host-2": ((4.0,), (7.0,))})) == {
        "host-1": False,
        "host-2": True,
        "host-3": True,
        "host-4": False,
        "uplink": False,  # both hosts are on one leaf
        "to host-3": True,
    }


def test_without_a_known_pattern_a_slow_sender_may_send_to_anybody() -> None:
    found = named(ranks(sends={"host-2": ((4.0,), (7.0,))}), traffic=None)
    assert found == {**dict.fromkeys((*HOSTS, "to host-3"), True), "uplink": False}


def test_a_send_that_is_slow_only_now_and_then_names_its_places_too() -> None:
    found = named(ranks(sends={"host-1": ((4.0,), (7.0, 4.0, 4.0)), "host-2": ((4.0,), (4.0, 7.0, 7.0))}))
    assert found["host-1"] is True


def test_a_send_that_is_slower_by_less_than_the_slowest_did_not_slow_the_step() -> None:
    assert named(ranks(sends={"host-2": ((4.0,), (9.0,)), "host-4": ((4.0,), (5.0,))}))["host-4"] is False


def test_sends_as_fast_as_before_clear_the_network() -> None:
    assert set(named(ranks({"host-2": ((8.0,), (11.0,))})).values()) == {False}


@pytest.mark.parametrize(
    "facts",
    [
        ranks(sends={"host-2": ((4.0,), (7.0,))}, waits=True),
        ranks(sends={"host-2": ((4.0,), (7.0,))}, steps=8),
        [],
    ],
    ids=["collective", "few steps", "no timing"],
)
def test_timing_that_cannot_tell_names_and_clears_no_place(facts: list[Fact]) -> None:
    assert set(named(facts).values()) == {None}


def test_a_place_whose_pausing_holds_up_a_slow_send_is_named() -> None:
    """Host-4 pauses leaf-1, which pauses host-2: the queue to host-4 is on no way of host-2's bytes."""
    paused = [counter(f"{end}:3", "pfc_rx_pause_us", 0, 200_000.0) for end in ("leaf-1:Ethernet14", "host-2:mlx5_0")]
    facts = [*ranks(sends={"host-2": ((4.0,), (7.0,))}), *paused]
    assert named(facts)["host-4"] is True


@pytest.mark.parametrize(("depth", "is_named"), [(9e6, True), (1e6, False)], ids=["overloads", "stays calm"])
def test_a_group_is_named_by_what_overloads_behind_its_members(depth: float, is_named: bool) -> None:
    """Leaf-4 lost its way to spine-2: more of its bytes meet those of host-2 on the way from spine-1 to leaf-3."""
    far = [
        cable("spine-1:Ethernet3", "leaf-3:Ethernet1"),
        cable("host-9:mlx5_0", "leaf-3:Ethernet11", role="leaf-host"),
    ]
    other = [cable(f"leaf-4:Ethernet{n}", f"spine-{n}:Ethernet4", role="leaf-spine") for n in (1, 2)]
    other.append(cable("host-8:mlx5_0", "leaf-4:Ethernet11", role="leaf-host"))
    lost = [gauge("leaf-4:Ethernet2", "oper_up", 1, 0), counter("leaf-4:Ethernet1", "tx_bytes", 1, 5)]
    behind = gauge("spine-1:Ethernet3:3", "queue_peak_bytes", 1e6, depth)
    sends = replace(placement(), targets=("host-9",), traffic="many_to_one")
    slow = ranks(sends={"host-2": ((4.0,), (7.0,))})
    kept = [fact for fact in plan() if fact != placement()]
    observed = observe([*kept, *far, *other, *lost, behind, sends, *slow])
    assert TimedPlaces(observed, Places(observed)).names(Scope.of("ecmp", "leaf-4", "uplinks")) is is_named


# -- checkpoints -----------------------------------------------------------------------------------------


def weighed(scope: str, traffic: str = "ring_allreduce+checkpoint", *facts: Fact, every_step: bool = True) -> float:
    """P(symptom | an optic, or for a NIC a slow receiver, at a place alone); host-4 is the checkpoint store."""
    saves = replace(placement(HOSTS[:3]), traffic=traffic, targets=("host-4",))
    observed = observe([*(fact for fact in plan() if fact != placement()), saves, *facts], every_step=every_step)
    place = Scope.parse(scope)
    cause = "phy.optic_degraded" if place.kind is ScopeKind.LINK else "nic.slow_receiver"
    return TimedPlaces(observed, Places(observed)).symptom_link(shipped().causes[cause], place)


TO_STORE, TO_HOST_1 = "link:host-4/mlx5_0/leaf-1/Ethernet14", "link:host-1/mlx5_0/leaf-1/Ethernet11"


def test_the_way_to_a_checkpoint_store_does_not_slow_every_step() -> None:
    assert weighed(TO_STORE) == SELDOM_LINK
    assert weighed(TO_HOST_1) == CROSSED_LINK
    assert weighed(TO_STORE, every_step=False) == CROSSED_LINK


def test_a_job_that_only_saves_sends_to_its_store_in_every_step() -> None:
    assert weighed(TO_STORE, "checkpoint") == CROSSED_LINK


def test_sends_that_are_all_slow_in_every_step_do_not_name_the_way_to_the_store() -> None:
    slow = ranks(sends={"host-2": ((4.0,), (7.0,))})
    assert weighed(TO_STORE, "ring_allreduce+checkpoint", *slow) == SELDOM_LINK
    assert weighed("link:host-3/mlx5_0/leaf-1/Ethernet13", "ring_allreduce+checkpoint", *slow) == NAMED_LINK


def test_a_store_that_pauses_may_hold_up_what_is_sent_in_every_step() -> None:
    """Host-4 pauses leaf-1, which pauses host-2; an optic fills no queue."""
    paused = [counter(f"{end}:3", "pfc_rx_pause_us", 0, 200_000.0) for end in ("leaf-1:Ethernet14", "host-2:mlx5_0")]
    assert weighed("nic:host-4/mlx5_0", "ring_allreduce+checkpoint", *paused) == CROSSED_LINK
    assert weighed(TO_STORE, "ring_allreduce+checkpoint", *paused) == SELDOM_LINK


# -- how the excess is split ----------------------------------------------------------------------------------------


def test_the_parts_of_the_step_add_up_to_the_excess() -> None:
    first, second, *_ = HOSTS
    facts = ranks(enters={first: ((8.0,), (11.0,))}, sends={second: ((4.0,), (14.0,))})
    parts = {part.name: part for part in step_parts(observe([*plan(), *facts]).rank_timing)}
    # The late host holds all up by 3 s; the slow sends, begun 3 s before its, end 7 s after all others do.
    assert (parts["compute"].share, parts["lateness"].share, parts["sends"].share) == pytest.approx((0, 0.3, 0.7))
    assert (parts["lateness"].before_s, parts["lateness"].after_s) == pytest.approx((0.0, 3.0))
    assert (parts["sends"].before_s, parts["sends"].after_s) == pytest.approx((4.0, 11.0))


def test_steps_that_did_not_become_longer_or_were_hardly_timed_have_no_parts() -> None:
    assert step_parts(observe([*plan(), *ranks()]).rank_timing) == ()
    assert step_parts(observe([*plan(), *ranks(steps=6)]).rank_timing) == ()
    assert step_parts(None) == ()


def test_each_cause_answers_for_the_part_it_acts_on() -> None:
    first, second, *_ = HOSTS
    facts = ranks(enters={first: ((8.0,), (11.0,))}, sends={second: ((4.0,), (14.0,))})
    observed = observe([*plan(), *facts])
    places = Places(observed)
    judgement = judge(
        shipped(),
        places,
        (compiled := compile_network(shipped(), observed, places, Findings([]))),
        solve(compiled.network),
    )
    rows = {(v.hypothesis.cause.id, v.hypothesis.scope): v for v in (*judgement.listed, *judgement.rest)}
    stall = replace(
        next(v for (cause, _), v in rows.items() if cause == "host.cpu_stall"), members=("stall",), share=0.9
    )
    nic = replace(
        next(v for (cause, _), v in rows.items() if cause == "nic.slow_receiver"), members=("nic",), share=0.1
    )
    stall = replace(stall, hypothesis=replace(stall.hypothesis, scope=Scope.of(ScopeKind.HOST, first)))
    nic = replace(nic, hypothesis=replace(nic.hypothesis, scope=Scope.of(ScopeKind.NIC, second, "mlx5_0")))
    parts, timed = step_parts(observed.rank_timing), TimedPlaces(observed, places)
    assert shares_by_timing([stall, nic], parts, timed) == pytest.approx({"stall": 0.3, "nic": 0.7})
    elsewhere = replace(nic, hypothesis=replace(nic.hypothesis, scope=Scope.of(ScopeKind.FABRIC, "all")))
    assert shares_by_timing([stall, elsewhere], parts, timed) is None
    assert shares_by_timing([stall], (), timed) is None
