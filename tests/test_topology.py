"""The fabric that facts describe: links, names, roles, rails, groups and cohorts; the order of facts never matters."""

from __future__ import annotations

import random

import pytest
from fabrics import HOSTS, JOB, LEAVES, ONSET, SPINES, START, cable, firmware, origin, placement, plan, route, series

from causeline.engine.facts import Event, EventKind, Fact, InterfaceAlias
from causeline.engine.scope import Scope
from causeline.engine.topology import DeviceRole, Topology, natural_order


def alias(device: str, name: str, port: str) -> InterfaceAlias:
    return InterfaceAlias(device, name, port, origin("ip-link.txt"))


# -- names -----------------------------------------------------------------------------------------------


def test_chains_of_aliases_are_followed() -> None:
    topology = Topology([alias("h", "B8:3F:D2:00:00:01", "ens1f0"), alias("h", "ens1f0", "mlx5_0")])
    assert topology.resolve_port("h", "b8:3f:d2:00:00:01") == "mlx5_0"
    assert topology.resolve_port("h", "ENS1F0") == "mlx5_0"
    assert topology.resolve_port("other", "ens1f0") == "ens1f0"


def test_a_circle_of_aliases_ends_at_one_name() -> None:
    topology = Topology([alias("h", "a", "b"), alias("h", "b", "c"), alias("h", "c", "a"), alias("h", "x", "b")])
    assert {topology.resolve_port("h", name) for name in ("a", "b", "c", "x", "A")} == {"a"}


def test_two_ports_that_claim_one_alias_are_settled_the_same_in_any_order() -> None:
    facts = [alias("h", "eth0", "mlx5_1"), alias("h", "eth0", "mlx5_0")]
    assert Topology(facts).resolve_port("h", "eth0") == Topology(facts[::-1]).resolve_port("h", "eth0")


@pytest.mark.parametrize(
    "names", [["Ethernet2", "Ethernet9", "Ethernet12"], ["Ethernet1/2", "Ethernet1/12", "Ethernet2/1"]]
)
def test_ports_are_ordered_by_number(names: list[str]) -> None:
    assert sorted(reversed(names), key=natural_order) == names


# -- links -----------------------------------------------------------------------------------------------


def test_a_link_seen_from_one_side_is_known_from_both() -> None:
    topology = Topology([cable("leaf-1:Ethernet1", "spine-1:Ethernet7", "observed")])
    assert topology.peer("spine-1", "Ethernet7") == ("leaf-1", "Ethernet1")
    assert topology.link("leaf-1", "Ethernet1") == topology.link("spine-1", "Ethernet7")


def test_what_neighbours_say_wins_over_the_plan() -> None:
    topology = Topology([*plan(), cable("leaf-1:Ethernet1", "spine-2:Ethernet9", "observed")])
    assert topology.peer("leaf-1", "Ethernet1") == ("spine-2", "Ethernet9")
    assert topology.peer("spine-1", "Ethernet1") is None
    assert topology.intended[("leaf-1", "Ethernet1")] == ("spine-1", "Ethernet1")


def test_a_neighbour_that_gives_a_mac_gets_the_name_of_the_plan() -> None:
    topology = Topology([*plan(), cable("leaf-1:Ethernet11", "host-1:b8:3f:d2:00:00:01", "observed")])
    assert topology.peer("leaf-1", "Ethernet11") == ("host-1", "mlx5_0")
    assert ("host-1", "mlx5_0") in topology.rails["mlx5_0"]


def test_a_mac_that_an_alias_names_needs_no_plan() -> None:
    facts: list[Fact] = [
        cable("leaf-1:Ethernet11", "host-1:b8:3f:d2:00:00:01", "observed"),
        alias("host-1", "b8:3f:d2:00:00:01", "mlx5_0"),
        placement(),
    ]
    assert Topology(facts).peer("leaf-1", "Ethernet11") == ("host-1", "mlx5_0")


def test_a_wrong_nic_of_the_planned_host_is_believed() -> None:
    topology = Topology([*plan(), cable("leaf-1:Ethernet11", "host-1:mlx5_7", "observed")])
    assert topology.peer("leaf-1", "Ethernet11") == ("host-1", "mlx5_7")


def test_the_order_of_facts_does_not_matter() -> None:
    facts: list[Fact] = [
        *plan(),
        cable("leaf-1:Ethernet1", "spine-1:Ethernet1", "observed", source="leaf-1.json"),
        cable("leaf-2:Ethernet9", "spine-1:Ethernet1", "observed", source="leaf-2.json"),
        alias("host-1", "eth0", "mlx5_0"),
        alias("host-1", "eth0", "mlx5_1"),
        route("leaf-1", ("Ethernet1", "Ethernet2"), START, source="a"),
        route("leaf-1", ("Ethernet1",), START, source="b"),
        route("leaf-1", ("Ethernet2",), ONSET),
        firmware("host-1", "mlx5_0", "28.36"),
        firmware("host-1", "mlx5_0", "28.39"),
        placement(HOSTS[:2], START - 7200),
    ]

    def picture(order: list[Fact]) -> tuple[object, ...]:
        topology = Topology(order)
        roles = {device: topology.role(device) for device in (*LEAVES, *SPINES, *HOSTS)}
        names = (topology.resolve_port("host-1", "eth0"), topology.session_port("leaf-1", "10.0.0.2"))
        return topology.links, topology.ecmp_groups, topology.cohorts, roles, topology.job_hosts(JOB), names

    expected = picture(facts)
    for seed in range(10):
        shuffled = list(facts)
        random.Random(seed).shuffle(shuffled)
        assert picture(shuffled) == expected


# -- roles, rails, what a job crosses --------------------------------------------------------------------


def test_roles_follow_the_neighbours() -> None:
    topology = Topology(plan())
    assert topology.leaves == LEAVES
    assert {topology.role(spine) for spine in SPINES} == {DeviceRole.SPINE}
    assert {topology.role(host) for host in HOSTS} == {DeviceRole.HOST}
    assert topology.role("nowhere") is None


def test_a_plan_of_one_switch_knows_which_end_is_the_host() -> None:
    topology = Topology([cable(f"host-{n}:mlx5_0", f"leaf-1:Ethernet{n}", role="leaf-host") for n in (1, 2, 3)])
    assert topology.hosts == ("host-1", "host-2", "host-3")
    assert topology.role("leaf-1") is DeviceRole.LEAF


def test_a_device_with_nic_counters_is_a_host_without_plan_or_job() -> None:
    facts: list[Fact] = [
        cable("leaf-1:Ethernet11", "storage-1:mlx5_0", "observed"),
        series("storage-1:mlx5_0", "cnp_sent", [(START, 0.0)]),
    ]
    topology = Topology(facts)
    assert topology.is_host("storage-1")
    assert topology.is_host_facing("leaf-1", "Ethernet11")


def test_rails_are_nics_of_one_name_and_reach_up_to_the_spines() -> None:
    topology = Topology(plan())
    assert topology.rails == {nic: tuple((host, nic) for host in HOSTS) for nic in ("mlx5_0", "mlx5_1")}
    rail = Scope.of("rail", "mlx5_0")
    assert topology.rail_of("host-1", "mlx5_0") == rail
    assert topology.rail_of("leaf-1", "Ethernet1") == rail
    assert topology.rail_of("spine-2", "Ethernet1") == rail


def test_a_leaf_that_serves_several_rails_has_none() -> None:
    topology = Topology([*plan(), cable("host-1:mlx5_2", "leaf-1:Ethernet15", role="leaf-host")])
    assert topology.rail_of("leaf-1", "Ethernet1") is None


def test_a_job_crosses_its_hosts_their_leaves_and_the_spines_between() -> None:
    facts = [fact for fact in plan() if fact != placement()]
    far = [
        cable("leaf-9:Ethernet1", "spine-9:Ethernet1", role="leaf-spine"),
        cable("host-9:mlx5_0", "leaf-9:Ethernet11", role="leaf-host"),
    ]
    topology = Topology([*facts, *far, placement(HOSTS[:1])])
    crossed = {d for d in (*HOSTS, *LEAVES, *SPINES, "leaf-9", "spine-9", "host-9") if topology.crosses(JOB, d)}
    assert crossed == {"host-1", *LEAVES, *SPINES}


def test_a_core_above_the_spines_may_be_crossed() -> None:
    topology = Topology([*plan(), cable("spine-1:Ethernet9", "core-1:Ethernet1", role="spine-core")])
    assert topology.crosses(JOB, "core-1")


@pytest.mark.parametrize("hosts", [(), ("host-1.example.net",)])
def test_a_placement_that_names_no_known_host_acquits_nobody(hosts: tuple[str, ...]) -> None:
    facts = [fact for fact in plan() if fact != placement()]
    topology = Topology([*facts, placement(hosts)])
    assert all(topology.crosses(JOB, device) for device in (*LEAVES, *SPINES, *HOSTS))


def test_of_two_placements_of_a_job_the_later_start_counts() -> None:
    early, late = placement(HOSTS[:2], START - 7200), placement(HOSTS[2:], START - 60)
    for facts in ([early, late], [late, early]):
        assert Topology(facts).job_hosts(JOB) == HOSTS[2:]


# -- groups and cohorts ----------------------------------------------------------------------------------


def test_prefixes_with_the_same_next_hops_are_one_group() -> None:
    ports = ("Ethernet1", "Ethernet2")
    facts = [route("leaf-1", ports, at, prefix) for at in (START, ONSET) for prefix in ("10.2.0.0/16", "10.3.0.0/16")]
    (group,) = Topology([*plan(), *facts]).ecmp_groups
    assert group.scope == Scope.of("ecmp", "leaf-1", "uplinks")
    assert (group.members, group.before, group.after) == (ports, ports, ports)


def test_a_group_that_lost_a_member_keeps_it_among_its_members() -> None:
    facts = [route("leaf-1", ("Ethernet1", "Ethernet2"), START), route("leaf-1", ("Ethernet2",), ONSET)]
    (group,) = Topology([*plan(), *facts]).ecmp_groups
    assert group.members == ("Ethernet1", "Ethernet2")
    assert group.before == ("Ethernet1", "Ethernet2")
    assert group.after == ("Ethernet2",)


def test_each_group_is_covered_by_its_own_captures_only() -> None:
    facts = [
        route("leaf-1", ("Ethernet1", "Ethernet2"), START, "10.2.0.0/16"),
        route("leaf-1", ("Ethernet11", "Ethernet12"), START, "10.9.0.0/24"),
        route("leaf-1", ("Ethernet11", "Ethernet12"), ONSET, "10.9.0.0/24"),
    ]
    spans = {group.name: (group.first_at, group.last_at) for group in Topology([*plan(), *facts]).ecmp_groups}
    assert spans == {"uplinks": (START, START), "10.9.0.0/24": (START, ONSET)}


def test_two_sources_of_one_moment_are_one_capture() -> None:
    ports = ("Ethernet1", "Ethernet2")
    facts = [route("leaf-1", ports, START, source=source) for source in ("frr.json", "eos.json")]
    (group,) = Topology([*plan(), *facts]).ecmp_groups
    assert group.first_at == group.last_at


def test_a_single_next_hop_is_no_group() -> None:
    assert Topology([*plan(), route("leaf-1", ("Ethernet1",), START)]).ecmp_groups == ()


def test_a_nic_belongs_to_the_version_it_runs_last() -> None:
    facts = [
        firmware("host-1", "mlx5_0", "28.36", START - 900),
        firmware("host-1", "mlx5_0", "28.39", START - 60),
        firmware("host-2", "mlx5_0", "28.36"),
    ]
    cohorts = {cohort.name: cohort.hosts for cohort in Topology([*plan(), *facts]).cohorts}
    assert cohorts == {"mlx5_core 28.36": ("host-2",), "mlx5_core 28.39": ("host-1",)}


def test_nics_that_one_change_loaded_are_a_cohort_where_nobody_read_their_version() -> None:
    def loaded(host: str, at: float, text: str = "nic firmware updated") -> Event:
        return Event(EventKind.FIRMWARE_LOAD, host, "", at, text, origin("changes"))

    facts = [
        loaded("host-1", 5.0),
        loaded("host-2", 5.0),
        loaded("host-3", 1.0),
        loaded("host-3", 5.0, "driver rolled back"),
    ]
    cohorts = {cohort.name: cohort.hosts for cohort in Topology([*plan(), *facts]).cohorts}
    assert cohorts == {
        "loaded: nic firmware updated": ("host-1", "host-2"),
        "loaded: driver rolled back": ("host-3",),
    }
    read = Topology([*plan(), *facts, firmware("host-1", "mlx5_0", "28.39")]).cohorts
    assert next(cohort.hosts for cohort in read if cohort.name == "mlx5_core 28.39") == ("host-1",)


def test_the_port_of_a_session_is_found_by_its_next_hop() -> None:
    topology = Topology([route("leaf-1", ("Ethernet1", "Ethernet2"), START)])
    assert topology.session_port("leaf-1", "10.0.0.2") == "Ethernet2"
    assert topology.session_port("leaf-1", "10.0.0.99") is None
    assert topology.session_port("leaf-2", "10.0.0.2") is None
