"""The physics of the fabric model: nothing is lost uncounted, hashes spread, loops settle, pauses travel upstream."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import numpy as np
import pytest
from bundle_edits import CROWD, DRAIN, FABRIC, ONSET, small
from hypothesis import given
from hypothesis import strategies as st

from causeline.fixtures.faults.nic import PauseStorm, SlowDrain
from causeline.fixtures.faults.path import CablesDown, SpineDrained
from causeline.fixtures.faults.timing import Mechanism, Ramp
from causeline.fixtures.luck import Crowd, rail_entropy
from causeline.fixtures.model.conditions import Conditions, Design, healthy
from causeline.fixtures.model.dcqcn import PACKET_BYTES, Bottleneck, QueueProfile, SenderProfile, settle
from causeline.fixtures.model.fabric import Fabric, Floats, Ints
from causeline.fixtures.model.fault import Fault
from causeline.fixtures.model.optics import codeword_error_ratios, pre_fec_ber
from causeline.fixtures.model.routing import choose_members, route
from causeline.fixtures.model.run import Setup, run
from causeline.fixtures.model.sharing import link_load, share_capacity
from causeline.fixtures.model.telemetry import Telemetry
from causeline.fixtures.model.traffic import LOSSLESS_CLASS, STORAGE_CLASS, Collective, Job, Pattern, transfer

TIERS = Fabric("Tiers", units=4, hosts_per_unit=4, rails=2, spines=4, pods=2, cores=4)
HOT = FABRIC.leaf_up(0, 3)
DIM = FABRIC.spine_down(0, 2)
STORMY_NIC = FABRIC.nic(2, 1)


def _dim(conditions: Conditions, strength: float) -> None:
    conditions.light_lost_db[DIM] += 4.5 * strength


RUNS: dict[str, tuple[tuple[Fault, ...], tuple[Crowd, ...]]] = {
    "quiet": ((), ()),
    "drained": ((DRAIN,), (CROWD,)),
    "dimmed": ((Mechanism(Ramp(100.0, 50.0), _dim),), ()),
    "stormy": ((PauseStorm(STORMY_NIC, ONSET, 0.9),), ()),
    "slow": ((SlowDrain(STORMY_NIC, ONSET, 0.4),), ()),
    "cut": ((CablesDown(ONSET, ((0, 0),)),), ()),
}


@cache
def told(name: str) -> Telemetry:
    faults, crowds = RUNS[name]
    return small(*faults, crowds=crowds).run()


@cache
def over_three_tiers(spray: bool = False, equal_seeds: bool = False) -> Telemetry:
    random = np.random.default_rng(5)
    seeds = random.integers(1, 2**31, TIERS.leaves + TIERS.all_spines)
    if equal_seeds:
        seeds[:] = 7
    queue = QueueProfile.for_speed(800)
    design = Design(seeds[: TIERS.leaves], seeds[TIERS.leaves :], queue, queue, sprays=spray)
    hosts = tuple(range(TIERS.hosts))
    job = Job("wide", "t", hosts, (Collective(Pattern.ALL_TO_ALL, 5e9, 4, 4.0),), compute_seconds=1.0)
    return run(Setup(TIERS, design, (job,), (), (), seconds=30.0, poll_seconds=5.0, seed=1, warm_up=0.0))


def rates(telemetry: Telemetry, sums: Floats, start: float, end: float) -> Floats:
    rows = np.searchsorted(telemetry.times, [start, end])
    return np.asarray((sums[rows[1]] - sums[rows[0]]) / (end - start))


def median_step(telemetry: Telemetry, start: float, end: float) -> float:
    steps = [one for one in telemetry.steps["small-run"] if one.end is not None]
    return float(np.median([one.end - one.start for one in steps if start < one.start and one.end < end]))


# -- conservation ----------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("name", RUNS)
def test_bytes_are_conserved_at_every_switch(name: str) -> None:
    assert_conserved(told(name))


def test_bytes_are_conserved_over_three_tiers() -> None:
    telemetry = over_three_tiers()
    assert_conserved(telemetry)
    assert all(sum(sent(telemetry)[port.egress] for port in TIERS.core_ports(core)) > 0 for core in range(16))


def sent(telemetry: Telemetry) -> Floats:
    return np.asarray(sum(load[-1] for load in telemetry.tx_bytes.values()))


def assert_conserved(telemetry: Telemetry) -> None:
    for device, ports in telemetry.fabric.switches.items():
        arrived = sum(sent(telemetry)[port.ingress] - telemetry.lost_bytes[-1][port.ingress] for port in ports)
        left = sum(sent(telemetry)[port.egress] for port in ports)
        assert left == pytest.approx(arrived, rel=1e-9), device


def test_what_the_job_delivered_is_what_its_steps_needed() -> None:
    telemetry, job = told("quiet"), small().job
    per_step = transfer(FABRIC, job, 0).size.sum()
    on_the_wire = telemetry.tx_bytes[LOSSLESS_CLASS][-1][: FABRIC.nics].sum()
    # The step under way at time 0 and the one at the end are parts.
    assert on_the_wire == pytest.approx(len(telemetry.steps["small-run"]) * per_step, abs=1.1 * per_step)
    assert telemetry.delivered["small-run"] == pytest.approx(on_the_wire, rel=2e-3)


def test_lost_frames_are_sent_again() -> None:
    telemetry = told("dimmed")
    lost = telemetry.links["frames_corrupt"][-1].sum() * PACKET_BYTES
    assert lost > 0
    assert telemetry.lost_bytes[-1].sum() == pytest.approx(lost, rel=1e-9)
    assert telemetry.tx_bytes[LOSSLESS_CLASS][-1][: FABRIC.nics].sum() - telemetry.delivered["small-run"] > lost


@pytest.mark.parametrize("name", RUNS)
def test_counters_never_fall(name: str) -> None:
    telemetry = told(name)
    for key, sums in (telemetry.links | telemetry.nics).items():
        assert (np.diff(sums, axis=0) >= 0).all(), key


# -- ECMP ------------------------------------------------------------------------------------------------------------
@given(
    st.lists(st.integers(0, 2**64 - 1), min_size=1, max_size=50), st.lists(st.integers(0, 3), min_size=8, max_size=8)
)
def test_the_hash_only_chooses_installed_members(hashes: list[int], copies: list[int]) -> None:
    groups = np.array([copies] * len(hashes))
    members = choose_members(np.array(hashes, dtype=np.uint64), groups)
    if any(copies):
        assert groups[np.arange(len(hashes)), members].all()
    else:
        assert (members == -1).all()


def uplinks_of(drained: bool, queue_pairs: int) -> Ints:
    """First uplink of each flow of the small job with so many QPs; `fabric.links` for flows that stay in their leaf."""
    conditions = healthy(FABRIC, small().setup.design)
    if drained:
        SpineDrained(0.0, 1).apply(conditions, FABRIC, 0.0)
    job = small().job
    many = replace(job, collectives=(replace(job.collectives[0], queue_pairs=queue_pairs),))
    first: Ints = route(FABRIC, conditions.forwarding, transfer(FABRIC, many, 0).flows)[:, 1]
    return np.where(first >= 2 * FABRIC.nics, first, FABRIC.links)


def test_a_drain_moves_flows_of_untouched_members_too() -> None:
    before, after = uplinks_of(False, 16), uplinks_of(True, 16)
    crossing = before < FABRIC.links
    untouched = crossing & ((before - 2 * FABRIC.nics) % FABRIC.spines != 1)
    assert not ((after[crossing] - 2 * FABRIC.nics) % FABRIC.spines == 1).any()
    assert (before[untouched] != after[untouched]).mean() > 0.5


def test_the_hash_spreads_many_flows_evenly() -> None:
    uplinks = np.bincount(uplinks_of(False, 256), minlength=FABRIC.links + 1)
    counts = uplinks[2 * FABRIC.nics : 2 * FABRIC.nics + FABRIC.leaves * FABRIC.uplinks].reshape(FABRIC.leaves, -1)
    expected = counts.sum(axis=1, keepdims=True) / FABRIC.uplinks
    assert ((counts - expected) ** 2 / expected).sum() < 45  # chi-square, 12 degrees of freedom: p = 1e-5


def test_an_impossible_wish_for_the_hash_is_refused() -> None:
    scenario = small()
    everything = np.ones((FABRIC.leaves, FABRIC.uplinks), dtype=np.int64)
    with pytest.raises(ValueError, match="no entropy below 2000 keeps rail 1 at 1 flows"):
        rail_entropy(FABRIC, scenario.job, scenario.setup.design.leaf_seeds, everything, 1, candidates=2000)


def test_a_drained_spine_carries_nothing() -> None:
    carried = rates(told("drained"), told("drained").tx_bytes[LOSSLESS_CLASS], ONSET, 300)
    for leaf in range(FABRIC.leaves):
        assert carried[FABRIC.leaf_up(leaf, 1)] == carried[FABRIC.spine_down(leaf, 1)] == 0


def test_equal_seeds_on_both_tiers_polarise_and_spraying_balances() -> None:
    """Spine s of four gets the flows with hash s modulo 4, and with the same hash sends all of them to one core."""
    cores = slice(TIERS.spine_up(0, 0), TIERS.core_down(0, 0))

    def idle(telemetry: Telemetry) -> float:
        return float((sent(telemetry)[cores] == 0).mean())

    assert idle(over_three_tiers(equal_seeds=True)) == pytest.approx(0.75)
    assert idle(over_three_tiers()) == 0
    sprayed = sent(over_three_tiers(spray=True))[cores]
    hashed = sent(over_three_tiers())[cores]
    assert sprayed.std() / sprayed.mean() < 0.5 * hashed.std() / hashed.mean()


# -- the congestion loop ---------------------------------------------------------------------------------------------
@given(
    st.lists(st.tuples(st.floats(1e6, 1e12), st.integers(0, 4), st.integers(0, 4)), min_size=1, max_size=30),
    st.lists(st.floats(1e8, 1e12), min_size=5, max_size=5),
)
def test_shared_capacity_is_never_exceeded(flows: list[tuple[float, int, int]], capacity: list[float]) -> None:
    demand = np.array([flow[0] for flow in flows])
    paths = np.array([[flow[1], flow[2] if flow[2] != flow[1] else 5] for flow in flows])
    given_rates, saturated = share_capacity(demand, paths, np.array(capacity))
    load = link_load(given_rates, paths, 5)
    assert (given_rates <= demand * (1 + 1e-12)).all()
    assert (load <= np.array(capacity) * (1 + 1e-9)).all()
    # Who gets less than it asked for crosses a saturated link, or a full one that others shaped.
    for flow in np.flatnonzero(given_rates < demand * (1 - 1e-9)):
        assert any(saturated[link] for link in paths[flow] if link < 5)
    assert not (saturated & (link_load(demand, paths, 5) <= np.array(capacity))).any()


def test_only_the_first_of_two_full_links_queues() -> None:
    """What a full uplink sends fits the next link of its speed, even one that short pauses hold a little."""
    demand, paths = np.full(10, 100e9), np.tile([0, 1], (10, 1))
    rates_given, saturated = share_capacity(demand, paths, np.array([800e9, 0.99 * 800e9]))
    assert saturated.tolist() == [True, False]
    assert rates_given.sum() == pytest.approx(0.99 * 800e9)


def test_marks_cut_senders_and_silence_lets_them_recover() -> None:
    """Ten senders of 100 Gbit/s at a link of 800: cut to their share, and the link stays full."""
    queue = QueueProfile(kmin=2e6, kmax=6e6, pmax=0.1, xoff=2e6, xon=1.8e6)
    crowded = Bottleneck(10, 100e9, 800e9, 9, queue, SenderProfile())
    loop = settle(crowded)
    assert 70e9 < loop.obedient_rate < 85e9
    assert loop.use > 0.97  # without recovery the rate would fall on and the link run empty
    assert loop.cnps > 0 and loop.pause == 0
    assert queue.kmin * 0.5 < loop.mean_queue < queue.kmax
    assert settle(replace(crowded, flows=8)).marked < 0.1 * loop.marked  # they fit
    more = settle(replace(crowded, flows=30, feeding=29))
    assert more.marked > loop.marked


def test_deaf_senders_are_stopped_by_pauses_alone() -> None:
    queue = QueueProfile(kmin=2e6, kmax=6e6, pmax=0.1, xoff=0.45e6, xon=0.4e6)
    deaf = settle(Bottleneck(10, 100e9, 800e9, 9, queue, SenderProfile(), obeying=0.0))
    assert deaf.deaf_rate == pytest.approx(100e9, rel=0.01)
    assert 0.1 < deaf.pause < 0.4  # at least the fifth that is too much
    assert deaf.use > 0.97


def test_a_crowded_uplink_slows_the_job_and_no_other_link_is_full() -> None:
    telemetry = told("drained")
    use = rates(telemetry, telemetry.tx_bytes[LOSSLESS_CLASS], ONSET + 15, 300) * 8 / FABRIC.capacity_bps
    assert use[HOT] > 0.85
    assert np.delete(use, [HOT, FABRIC.spine_down(2, 3)]).max() < 0.8
    # Six flows of 170 Gbit/s on 800: the collective stretches by 1020 / 800 and the loop's loss.
    change = median_step(telemetry, ONSET + 5, 300) / median_step(telemetry, 5, ONSET) - 1
    assert 0.22 < change < 0.30
    assert median_step(telemetry, 5, ONSET) == pytest.approx(0.3 + 2.1, rel=0.01)


def test_marks_rise_at_the_crowded_uplink_and_cnps_answer_them() -> None:
    telemetry = told("drained")
    marks = rates(telemetry, telemetry.links["marks"], ONSET + 15, 300)
    assert marks[HOT] > 100 * np.delete(marks, HOT).max()
    received = rates(telemetry, telemetry.nics["ce_received"], ONSET + 15, 300).sum()
    assert received == pytest.approx(marks.sum(), rel=0.05)
    answered = rates(telemetry, telemetry.nics["cnp_sent"], ONSET + 15, 300).sum()
    assert 0 < answered <= received
    assert rates(telemetry, telemetry.nics["cnp_handled"], ONSET + 15, 300).sum() == pytest.approx(answered, rel=1e-9)
    late = telemetry.times > ONSET + 15
    assert telemetry.queue_peak[late, HOT].max() > small().setup.design.fabric_queue.kmin


def test_a_crowded_uplink_pauses_only_who_feeds_it_and_only_for_moments() -> None:
    duty = rates(told("drained"), told("drained").links["pause_us"], ONSET + 15, 300) / 1e6
    assert 1e-6 < duty.max() < 0.01
    feeders = np.flatnonzero(duty > 1e-4)
    assert len(feeders) and (feeders < FABRIC.nics).all()
    assert (FABRIC.nic_leaf[feeders] == 0).all()


def test_a_quiet_fabric_keeps_its_pace() -> None:
    telemetry = told("quiet")
    seconds = np.array([one.end - one.start for one in telemetry.steps["small-run"] if one.end is not None])
    assert 0.002 < seconds.std() / seconds.mean() < 0.01
    assert abs(median_step(telemetry, ONSET, 300) / median_step(telemetry, 0, ONSET) - 1) < 0.01
    assert not telemetry.links["frames_corrupt"].any()
    assert rates(telemetry, telemetry.links["pause_us"], 0, 300).max() / 1e6 < 1e-4


def test_storage_has_its_own_class_and_leaves_the_job_alone() -> None:
    telemetry = told("quiet")
    storage = telemetry.tx_bytes[STORAGE_CLASS]
    assert not rates(telemetry, storage, 0, 40).any()
    assert rates(telemetry, storage, 40, 70).any()
    assert not rates(telemetry, storage, 70, 300).any()
    busy = set(np.flatnonzero(storage[-1]).tolist())
    names = {port.device for ports in FABRIC.switches.values() for port in ports if port.egress in busy}
    assert {name for name in names if name.startswith("leaf")} == {"leaf-02", "leaf-04"}
    assert median_step(telemetry, 40, 70) == pytest.approx(median_step(telemetry, 70, 300), rel=0.01)


# -- faults ----------------------------------------------------------------------------------------------------------
@given(st.lists(st.floats(0, 20), min_size=2, max_size=20))
def test_less_light_means_more_errors(lost: list[float]) -> None:
    ber = pre_fec_ber(np.full(len(lost), 1e-9), np.sort(lost))
    assert (np.diff(ber) >= 0).all()
    corrected, uncorrectable = codeword_error_ratios(ber)
    assert (np.diff(uncorrectable) >= 0).all()
    assert (corrected + uncorrectable <= 1 + 1e-12).all()


def test_a_dim_optic_loses_frames_at_its_end_and_only_its_flows_retry() -> None:
    telemetry = told("dimmed")
    lost = telemetry.links["frames_corrupt"][-1]
    assert lost[DIM] > 1000
    assert np.delete(lost, DIM).max() == 0
    assert not telemetry.links["frames_corrupt"][telemetry.times <= 100].any()
    naks = rates(telemetry, telemetry.nics["nak_received"], 160, 300)
    gaps = rates(telemetry, telemetry.nics["out_of_sequence"], 160, 300)
    assert (FABRIC.nic_leaf[np.flatnonzero(naks > 1)] == 2).all()
    assert (FABRIC.nic_leaf[np.flatnonzero(gaps > 1)] == 0).all()
    assert naks.sum() == pytest.approx(rates(telemetry, telemetry.links["frames_corrupt"], 160, 300).sum(), rel=0.01)
    assert median_step(telemetry, 160, 300) > 1.1 * median_step(telemetry, 0, 100)
    # No congestion: nothing but the bursts of a healthy fabric.
    assert rates(telemetry, telemetry.links["marks"], 160, 300).max() < 50


def test_a_pause_storm_spreads_hop_by_hop_on_its_rail_and_nowhere_else() -> None:
    telemetry = told("stormy")
    duty = rates(telemetry, telemetry.links["pause_us"], ONSET + 10, 300) / 1e6
    root = FABRIC.nic_down(STORMY_NIC)
    assert duty[root] == pytest.approx(0.9, abs=0.02)
    paused = np.flatnonzero(duty > 0.5)
    assert duty[paused].max() == pytest.approx(duty[root], abs=0.03)  # nobody much longer than the NIC hangs
    spines = [link for link in paused if link >= FABRIC.spine_down(0, 0)]
    leaves = [link for link in paused if 2 * FABRIC.nics <= link < FABRIC.spine_down(0, 0)]
    hosts = [link for link in paused if link < FABRIC.nics]
    assert spines and leaves and hosts
    assert {FABRIC.receiving_port[link][0] for link in hosts} <= {"leaf-02", "leaf-04"}
    assert {FABRIC.receiving_port[link][0] for link in spines} == {"leaf-02"}
    assert {FABRIC.sending_port[link][0] for link in leaves} == {"leaf-04"}
    assert telemetry.nics["storm_errors"][-1].nonzero()[0].tolist() == [STORMY_NIC]
    assert median_step(telemetry, ONSET, 300) > 3 * median_step(telemetry, 0, ONSET)


def test_a_slow_receiver_is_no_storm() -> None:
    telemetry = told("slow")
    duty = rates(telemetry, telemetry.links["pause_us"], ONSET + 10, 300) / 1e6
    assert 0.05 < duty[FABRIC.nic_down(STORMY_NIC)] < 0.9
    assert rates(telemetry, sum_of(telemetry), ONSET + 10, 300)[FABRIC.nic_down(STORMY_NIC)] > 0
    assert not telemetry.nics["storm_errors"].any()


def sum_of(telemetry: Telemetry) -> Floats:
    return np.asarray(sum(telemetry.tx_bytes.values()))


def test_a_cut_cable_carries_nothing_either_way_and_the_job_goes_on() -> None:
    telemetry = told("cut")
    carried = rates(telemetry, sum_of(telemetry), ONSET + 5, 300)
    assert carried[FABRIC.leaf_up(0, 0)] == carried[FABRIC.spine_down(0, 0)] == 0
    assert any(one.end is not None and one.end > 290 for one in telemetry.steps["small-run"])
