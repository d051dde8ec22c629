"""Signs of links that are missing and of cohorts of NICs."""

from __future__ import annotations

from math import comb

import pytest
from asking import asked, states
from fabrics import (
    HOSTS,
    cable,
    counter,
    firmware,
    plan,
)

from causeline.engine.facts import Fact
from causeline.engine.patterns.cohort import hypergeometric_tail

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
