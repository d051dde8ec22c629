"""Signs of jobs: others' bytes, changes of the job, a network that is idle."""

from __future__ import annotations

from collections.abc import Mapping

import pytest
from asking import asked, pauses, states
from fabrics import (
    HOSTS,
    JOB,
    LEAVES,
    ONSET,
    SPINES,
    START,
    counter,
    gauge,
    observe,
    placement,
    plan,
    series,
    shipped,
)

from causeline.engine.facts import Fact
from causeline.engine.patterns import PATTERNS

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
