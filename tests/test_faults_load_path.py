"""Faults of load and path in the fabric model: each shows what its mechanism makes, and not what it cannot make."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cache

import numpy as np
import pytest

from causeline.fixtures.faults import DRAWERS, Injection, Scene, Site
from causeline.fixtures.faults.strain import strain_of
from causeline.fixtures.model.conditions import Design, healthy
from causeline.fixtures.model.dcqcn import QueueProfile
from causeline.fixtures.model.fabric import Fabric, Floats
from causeline.fixtures.model.routing import route
from causeline.fixtures.model.run import Setup, run
from causeline.fixtures.model.sharing import link_load
from causeline.fixtures.model.telemetry import Telemetry
from causeline.fixtures.model.traffic import LOSSLESS_CLASS, Collective, Job, Pattern, transfer

SMALL = Fabric("Small", units=2, hosts_per_unit=4, rails=2, spines=2)
TIERS = Fabric("Tiers", units=4, hosts_per_unit=2, rails=2, spines=2, pods=2, cores=2)
ONE_SPINE = replace(SMALL, spines=1)
SECONDS, ONSET, POLL = 240.0, 120.0, 10.0
ROW = round(ONSET / POLL)
CAUSES = sorted(cause for cause in DRAWERS if cause.startswith(("load.", "path.")))
CHRONIC = ("load.collective_burst", "path.hash_polarisation", "path.missing_link", "path.miscabled_rail")


def scene(
    fabric: Fabric = SMALL, seed: int = 1, severity: float = 1.0, is_logged: bool = True, hosts: int | None = None
) -> Scene:
    """A ring over all hosts (or the first ones), neighbours under different leaves, at full load."""
    per_unit = fabric.hosts_per_unit
    order = [unit * per_unit + place for place in range(per_unit) for unit in range(fabric.units)]
    job = Job("run-1", "research", tuple(order[:hosts]), (Collective(Pattern.RING, 30e9, 4, 50.0),), 2.0, entropy=0)
    design = Design(
        np.arange(fabric.leaves) * 7919 + 3,
        np.arange(fabric.all_spines) * 31 + 11,
        QueueProfile.for_speed(fabric.host_gbps),
        QueueProfile.for_speed(fabric.uplink_gbps),
    )
    bare = Scene(fabric, design, (job,), (), SECONDS, ONSET, severity, is_logged, np.random.default_rng(seed))
    return at_full_load(bare)


def at_full_load(scene: Scene) -> Scene:
    """The scene with its aimed job paced up, bytes alike, until the fullest link it crosses has no more room than a
    healthy fabric leaves (80 %): so that what moves its flows is felt."""
    fabric, job = scene.fabric, scene.job
    line = np.where(fabric.from_switch, 0.80, 1.0) * fabric.capacity_bps
    forwarding = healthy(fabric, scene.design).forwarding

    def load(one: Job, number: int) -> Floats:
        sent = transfer(fabric, one, number)
        return link_load(sent.demand, route(fabric, forwarding, sent.flows), fabric.links)

    others = sum(
        (np.max([load(one, number) for number in range(len(one.collectives))], axis=0) for one in scene.jobs[1:]),
        np.zeros(fabric.links),
    )
    room = np.maximum(line - others, 0.0)
    collectives = []
    for number, collective in enumerate(job.collectives):
        own = load(job, number)
        more = float((room[own > 0] / own[own > 0]).min(initial=np.inf))
        pace = collective.queue_pair_gbps
        if pace is not None and 1.0 < more < np.inf:
            collective = replace(collective, queue_pair_gbps=pace * more, bytes_per_nic=collective.bytes_per_nic * more)
        collectives.append(collective)
    return replace(scene, jobs=(replace(job, collectives=tuple(collectives)), *scene.jobs[1:]))


@dataclass(frozen=True)
class Played:
    scene: Scene
    injection: Injection
    telemetry: Telemetry
    twin: Telemetry

    def steps(self, telemetry: Telemetry, start: float, end: float) -> float:
        """Mean seconds of the job's steps within a time."""
        steps = telemetry.steps[self.scene.job.name]
        return float(
            np.mean([one.end - one.start for one in steps if one.end and one.start >= start and one.end <= end])
        )

    @property
    def slowdown(self) -> float:
        """How many times as long steps take after the onset as in the same run without the fault."""
        return self.steps(self.telemetry, ONSET, SECONDS) / self.steps(self.twin, ONSET, SECONDS)

    @property
    def slowdown_before(self) -> float:
        return self.steps(self.telemetry, 0.0, ONSET) / self.steps(self.twin, 0.0, ONSET)

    def since_onset(self, sums: np.ndarray) -> np.ndarray:
        """What was counted after the onset."""
        return np.asarray(sums[-1] - sums[ROW])

    def before_onset(self, sums: np.ndarray) -> np.ndarray:
        return np.asarray(sums[ROW])

    def links_of_sites(self) -> set[int]:
        """Directed links whose sending end is a true place."""
        ports = {(site.device, site.port) for site in self.injection.sites if site.port}
        fabric = self.telemetry.fabric
        return {link for link, port in enumerate(fabric.sending_port) if port in ports}


@cache
def twin_of(fabric: Fabric, hosts: int | None) -> Telemetry:
    return play(scene(fabric, hosts=hosts), Injection((), "", (), ONSET))


def play(given: Scene, injection: Injection) -> Telemetry:
    return run(
        Setup(
            injection.fabric or given.fabric,
            injection.design or given.design,
            injection.jobs or given.jobs,
            (*given.backgrounds, *injection.backgrounds),
            injection.faults,
            SECONDS,
            POLL,
            seed=1,
        )
    )


@cache
def played(cause: str, fabric: Fabric = SMALL, subtype: str = "", hosts: int | None = None) -> Played:
    """The first drawing of a cause (of a subtype) at full severity, and its run."""
    for seed in range(1, 40):
        given = scene(fabric, seed, hosts=hosts)
        try:
            injection = DRAWERS[cause](given)
        except ValueError:
            continue  # another seed may find a place
        if subtype in injection.subtype:
            return Played(given, injection, play(given, injection), twin_of(fabric, hosts))
    raise AssertionError(f"{cause}: no drawing gives {subtype!r}")


def fabric_of(cause: str) -> Fabric:
    return TIERS if cause == "path.hash_polarisation" else SMALL


# -- all of them
@pytest.mark.parametrize("cause", CAUSES)
def test_a_drawing_is_a_function_of_its_seed(cause: str) -> None:
    first, second = (repr(DRAWERS[cause](scene(fabric_of(cause), seed=3))) for _ in range(2))
    assert first == second


@pytest.mark.parametrize("cause", CAUSES)
def test_the_truth_names_the_cause_real_ports_and_when_it_began(cause: str) -> None:
    given = scene(fabric_of(cause), seed=2)
    injection = DRAWERS[cause](given)
    fabric = injection.fabric or given.fabric
    assert injection.accepts == (cause,)
    assert all(site.device in {device for device, _ in fabric.sending_port} for site in injection.sites)
    assert all((site.device, site.port) in fabric.sending_port for site in injection.sites if site.port)
    if cause != "load.elephant_collision":  # drawn either way
        assert injection.onset == (0.0 if cause in CHRONIC else ONSET)


@pytest.mark.parametrize("cause", CAUSES)
def test_what_nobody_logs_leaves_no_record(cause: str) -> None:
    injection = DRAWERS[cause](scene(fabric_of(cause), seed=2, is_logged=False))
    assert injection.records == ()
    assert all(fault.records(SMALL, SECONDS) == () for fault in injection.faults)


@pytest.mark.parametrize("cause", sorted(set(CAUSES) - set(CHRONIC) - {"load.elephant_collision"}))
def test_operators_see_a_logged_change_about_its_onset(cause: str) -> None:
    records = DRAWERS[cause](scene(seed=2)).records
    assert min(abs(record.at - ONSET) for record in records) <= 1.0
    assert all(ONSET - 1.0 <= record.at < SECONDS for record in records)


@pytest.mark.parametrize(
    "cause", sorted(set(CAUSES) - {"load.collective_burst", "path.miscabled_rail", "path.routing_flap"})
)
def test_steps_get_longer_as_reckoned(cause: str) -> None:
    one = played(cause, fabric_of(cause))
    reckoned = strain_of(one.scene, one.injection).step_seconds / strain_of(one.scene).step_seconds
    assert one.slowdown > 1.03
    assert one.slowdown == pytest.approx(reckoned, abs=0.25)
    if one.injection.onset == ONSET:
        assert one.slowdown_before == pytest.approx(1.0, abs=0.01)


@pytest.mark.parametrize("cause", ["load.incast", "load.noisy_neighbour", "path.nexthop_imbalance"])
def test_severity_orders_the_harm(cause: str) -> None:
    slow = [strain_of(one, DRAWERS[cause](one)).step_seconds for one in (scene(severity=s) for s in (0.0, 0.5, 1.0))]
    assert slow == sorted(slow)
    assert slow[0] < slow[2]


@pytest.mark.parametrize("cause", CAUSES)
def test_bytes_are_conserved_at_every_switch(cause: str) -> None:
    telemetry = played(cause, fabric_of(cause)).telemetry
    sent = sum(sums[-1] for sums in telemetry.tx_bytes.values())
    arrived = sent - telemetry.lost_bytes[-1]
    for ports in telemetry.fabric.switches.values():
        entered = sum(arrived[port.ingress] for port in ports)
        assert sum(sent[port.egress] for port in ports) == pytest.approx(entered, rel=1e-6)


# -- load
def test_incast_fills_a_host_port_that_is_not_paused() -> None:
    one = played("load.incast")
    (port,) = one.links_of_sites() & set(range(SMALL.nics, 2 * SMALL.nics))
    peaks = np.where(SMALL.from_switch, one.telemetry.queue_peak[ROW + 1 :].max(axis=0), 0.0)
    assert peaks.argmax() == port
    pause = one.since_onset(one.telemetry.links["pause_us"])
    assert pause[port] < 1e-4 * (SECONDS - ONSET) * 1e6
    told = one.since_onset(one.telemetry.nics["cnp_sent"]) - one.since_onset(one.twin.nics["cnp_sent"])
    assert told.argmax() == port - SMALL.nics
    assert told.max() > 0.9 * told.sum()


def test_bursts_of_a_busy_job_mark_packets_and_slow_nothing() -> None:
    one = played("load.collective_burst")
    marks = [telemetry.links["marks"][-1].sum() for telemetry in (one.telemetry, one.twin)]
    assert marks[0] > 3 * marks[1]
    assert one.slowdown <= 1.0
    assert one.telemetry.lost_bytes[-1].sum() == 0.0


def uplink_bytes(one: Played) -> np.ndarray:
    """Bytes of each uplink of each leaf after the onset."""
    fabric = one.telemetry.fabric
    sent = one.since_onset(one.telemetry.tx_bytes[LOSSLESS_CLASS])
    first = fabric.leaf_up(0, 0)
    return sent[first : first + fabric.leaves * fabric.uplinks].reshape(fabric.leaves, fabric.uplinks)


@pytest.mark.parametrize("subtype", ["source ports that collide", "one source port a pair"])
def test_colliding_elephants_fill_one_member_while_its_siblings_idle(subtype: str) -> None:
    one = played("load.elephant_collision", subtype=subtype)
    hot = [link for link in one.links_of_sites() if link >= 2 * SMALL.nics]
    assert hot
    kmin = one.scene.design.fabric_queue.kmin
    assert one.telemetry.queue_peak[ROW + 1 :, hot].max() > kmin > one.twin.queue_peak.max()
    assert uplink_bytes(one).max() / uplink_bytes(one).mean() > 1.3
    last = one.telemetry.periods[-1].conditions
    assert (last.copies == 1).all()
    assert last.is_up.all()


def test_queue_pairs_made_anew_collide_from_the_onset_and_old_ones_always() -> None:
    drawn = [DRAWERS["load.elephant_collision"](scene(seed=seed)) for seed in range(12)]
    assert {one.onset for one in drawn} == {0.0, ONSET}
    assert all((one.jobs is None) == (one.onset == ONSET) == bool(one.faults) for one in drawn)


@pytest.mark.parametrize("subtype", ["another tenant", "second job"])
def test_a_neighbour_puts_foreign_bytes_into_the_hot_queue(subtype: str) -> None:
    one = played("load.noisy_neighbour", ONE_SPINE, subtype, hosts=5)
    hot = sorted(one.links_of_sites() & set(np.flatnonzero(ONE_SPINE.from_switch).tolist()))
    owners = {name: one.since_onset(sums)[hot] for name, sums in one.telemetry.owner_bytes.items()}
    foreign = sum(sums for name, sums in owners.items() if name != "run-1")
    assert (foreign / (foreign + owners["run-1"])).max() > 0.2
    before = sum(one.before_onset(sums).sum() for name, sums in one.telemetry.owner_bytes.items() if name != "run-1")
    assert before == 0.0


# -- path
def members(telemetry: Telemetry, at: float) -> np.ndarray:
    """Next hops each leaf uses of its group, by itself."""
    forwarding = telemetry.conditions_at(at).forwarding
    fabric = telemetry.fabric
    first = fabric.leaf_up(0, 0)
    usable = forwarding.is_up[first : first + fabric.leaves * fabric.uplinks].reshape(forwarding.copies.shape)
    return np.asarray((forwarding.copies * usable > 0).sum(axis=1))


@pytest.mark.parametrize("subtype", ["spine drained", "next hop withdrawn", "link lost"])
def test_a_group_that_shrinks_overloads_the_members_that_stay(subtype: str) -> None:
    one = played("path.ecmp_redistribution", subtype=subtype)
    assert (members(one.telemetry, ONSET - 1) == SMALL.uplinks).all()
    assert (members(one.telemetry, ONSET + 1) < SMALL.uplinks).any()
    is_up = one.telemetry.conditions_at(ONSET + 1).is_up
    assert (~is_up).sum() == (2 if subtype == "link lost" else 0)
    interfaces = [record for record in one.injection.records if record.kind == "interface"]
    assert len(interfaces) == (~is_up).sum()
    assert any(record.kind == "route_change" for record in one.injection.records)
    hot = [link for link in one.links_of_sites() if link >= 2 * SMALL.nics]
    peaks = one.telemetry.queue_peak
    assert peaks[ROW + 1 :, hot].max() > one.scene.design.fabric_queue.kmin > peaks[:ROW].max()


def test_a_new_hash_seed_overloads_a_member_of_a_group_that_kept_all() -> None:
    one = played("path.ecmp_redistribution", subtype="hash seed changed")
    assert (members(one.telemetry, SECONDS) == SMALL.uplinks).all()
    seeds = [one.telemetry.conditions_at(at).leaf_seeds for at in (0.0, SECONDS)]
    (leaf,) = np.flatnonzero(seeds[0] != seeds[1])
    assert Site(SMALL.leaf_name(int(leaf))) in one.injection.sites
    assert "hash seed" in one.injection.records[0].text


def test_one_seed_on_both_tiers_leaves_ways_to_the_cores_unused() -> None:
    one = played("path.hash_polarisation", TIERS)

    def least_used(telemetry: Telemetry) -> float:
        """Share of the least used way of a spine, the greatest of all spines."""
        sent = telemetry.tx_bytes[LOSSLESS_CLASS][-1]
        ways = np.array([[sent[TIERS.spine_up(s, c)] for c in range(TIERS.cores)] for s in range(TIERS.all_spines)])
        return float((ways.min(axis=1) / ways.sum(axis=1)).max())

    assert least_used(one.telemetry) == 0.0
    assert least_used(one.twin) > 0.2


@pytest.mark.parametrize("fabric", [SMALL, replace(TIERS, spines=3, cores=2)])
def test_one_seed_does_no_harm_without_cores_or_with_coprime_groups(fabric: Fabric) -> None:
    with pytest.raises(ValueError, match="no harm"):
        DRAWERS["path.hash_polarisation"](scene(fabric))


def test_a_missing_link_never_carried_a_byte_and_is_news_to_nobody() -> None:
    one = played("path.missing_link")
    down = np.flatnonzero(~one.telemetry.conditions_at(0.0).is_up)
    assert len(down) in (2, 4)
    assert one.telemetry.tx_bytes[LOSSLESS_CLASS][-1, down].sum() == 0.0
    assert {Site(*SMALL.sending_port[int(link)]) for link in down} <= set(one.injection.sites)
    assert one.injection.records == ()


def test_copies_of_a_next_hop_draw_their_share_of_the_flows() -> None:
    one = played("path.nexthop_imbalance")
    before, after = (one.telemetry.conditions_at(at).copies for at in (0.0, SECONDS))
    assert (before == 1).all()
    (leaf,) = np.flatnonzero((after != 1).any(axis=1))
    sent = uplink_bytes(one)[leaf]
    assert sent.argmax() == after[leaf].argmax()
    assert all(record.kind == "route_change" for record in one.injection.records)
    assert one.telemetry.conditions_at(SECONDS).is_up.all()


def test_traffic_of_exchanged_rails_leaves_its_leaf() -> None:
    fabric = replace(SMALL, units=1, hosts_per_unit=4)
    given = scene(fabric)
    built = DRAWERS["path.miscabled_rail"](given).fabric
    assert built is not None
    uplinks = slice(2 * fabric.nics, None)
    planned, actual = (
        play(given, Injection((), "", (), 0.0, fabric=one)).tx_bytes[LOSSLESS_CLASS][-1] for one in (fabric, built)
    )
    assert planned[uplinks].sum() == 0.0
    crossing = np.flatnonzero(actual[: fabric.nics] > 0)
    assert actual[uplinks].sum() > 0.0
    assert len(crossing) == fabric.nics


def test_exchanged_cables_show_at_the_leaf_ports() -> None:
    injection = DRAWERS["path.miscabled_rail"](scene())
    assert injection.fabric is not None
    swapped = dict(injection.fabric.swapped)
    for one, other in swapped.items():
        planned, actual = SMALL.sending_port, injection.fabric.sending_port
        assert actual[SMALL.nic_down(one)] == planned[SMALL.nic_down(other)]
        assert actual[SMALL.nic_down(other)] == planned[SMALL.nic_down(one)]
        assert Site(*actual[SMALL.nic_down(one)]) in injection.sites


def test_no_rails_to_exchange_where_they_share_a_leaf() -> None:
    with pytest.raises(ValueError, match="one leaf"):
        DRAWERS["path.miscabled_rail"](scene(replace(SMALL, is_rail_optimised=False, spines=4)))


def test_a_flapping_session_times_out_queue_pairs_while_its_link_stays_up() -> None:
    one = played("path.routing_flap")
    timeouts = one.telemetry.nics["ack_timeouts"]
    assert one.before_onset(timeouts).sum() == 0.0
    assert one.since_onset(timeouts).sum() > 0.0
    later = [period.conditions for period in one.telemetry.periods if period.start >= ONSET]
    assert all(conditions.is_up.all() for conditions in later)
    assert sum((~conditions.is_routed).any() for conditions in later) >= 5
    assert one.slowdown > 1.03
    assert {record.kind for record in one.injection.records} == {"syslog", "route_change"}


def test_a_gentle_flap_is_rarer_than_a_drastic_one() -> None:
    gentle, drastic = (DRAWERS["path.routing_flap"](scene(severity=severity)).records for severity in (0.0, 1.0))
    assert len(gentle) < len(drastic)


def test_a_job_of_two_hosts_has_no_fan_in() -> None:
    with pytest.raises(ValueError, match="fan-in"):
        DRAWERS["load.incast"](scene(hosts=2))
