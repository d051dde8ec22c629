"""Faults of the physical layer, switches, hosts, jobs and telemetry: each shows what its mechanism makes of the fabric
(E of causal.md section 1), nothing it must not (X), and moves the step time as it should."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cache
from itertools import pairwise

import numpy as np
import pytest

from causeline.fixtures.faults import DRAWERS, Injection, Scene
from causeline.fixtures.faults.host import pcie_gbps
from causeline.fixtures.model.conditions import Conditions, Design
from causeline.fixtures.model.dcqcn import QueueProfile
from causeline.fixtures.model.fabric import Fabric, Floats
from causeline.fixtures.model.optics import heat_ber
from causeline.fixtures.model.run import Setup, run
from causeline.fixtures.model.telemetry import Telemetry
from causeline.fixtures.model.traffic import Collective, Job, Pattern

FAMILIES = ("phy.", "sw.", "host.", "job.", "tel.")
CAUSES = sorted(cause for cause in DRAWERS if cause.startswith(FAMILIES))
FELT_AT = {"phy.link_flap": "gpu", "sw.buffer_leak": "leaf", "sw.parity_crash": "leaf"}
"""Where a fault must be for this job to feel it: between switches it has other ways."""

HARMLESS = {"tel.counter_artefact", "tel.clock_skew"}

FABRIC = Fabric("Small", units=2, hosts_per_unit=4, rails=2, spines=2, uplink_gbps=400)
DESIGN = Design(
    np.arange(4) * 7919 + 3, np.arange(2) * 31 + 11, QueueProfile.for_speed(400), QueueProfile.for_speed(400)
)
JOB = Job("run-1", "acme", (0, 1, 2, 4, 5, 6), (Collective(Pattern.RING, 80e9, 4),), 3.0)
SECONDS, ONSET, POLL = 240.0, 80.0, 5.0
BEFORE = int(ONSET / POLL)  # the poll at the onset


@dataclass(frozen=True)
class Case:
    injection: Injection
    telemetry: Telemetry

    def rise(self, sums: Floats) -> Floats:
        """By how much sums rose since the onset, place by place."""
        return np.asarray(sums[-1] - sums[BEFORE])

    def steps(self) -> tuple[list[float], list[float]]:
        """Seconds of the steps that ended before the onset, and of those that ended after it."""
        steps = [(step.end, step.seconds) for step in self.telemetry.steps["run-1"] if step.end and step.seconds]
        return [took for end, took in steps if end < ONSET], [took for end, took in steps if end >= ONSET]

    @property
    def last(self) -> Conditions:
        return self.telemetry.periods[-1].conditions

    @property
    def places(self) -> set[tuple[str, str | None]]:
        return {(site.device, site.port) for site in self.injection.sites}

    def links(self) -> set[int]:
        """Directed links both of whose ends are true places."""
        names = zip(FABRIC.sending_port, FABRIC.receiving_port, strict=True)
        return {link for link, both in enumerate(names) if set(both) <= self.places}


def scene(severity: float = 1.0, seed: int = 1, is_logged: bool = False, fabric: Fabric = FABRIC) -> Scene:
    random = np.random.default_rng(seed)
    return Scene(fabric, DESIGN, (JOB,), (), SECONDS, ONSET, severity, is_logged, random)


@cache
def case(cause: str | None, seed: int = 1, severity: float = 1.0) -> Case:
    injection = DRAWERS[cause](scene(severity, seed)) if cause else Injection((), "", (), ONSET)
    return Case(injection, run(Setup(FABRIC, DESIGN, (JOB,), (), injection.faults, SECONDS, POLL, seed=1)))


def drawn(cause: str, subtype: str) -> Case:
    """A case of the cause whose subtype holds this text."""
    seeds = (seed for seed in range(60) if subtype in DRAWERS[cause](scene(seed=seed)).subtype)
    return case(cause, next(seeds))


def at(cause: str, device: str) -> Case:
    """A case of the cause at a device whose name begins so; "spine" for a link: between switches."""
    for seed in range(60):
        if any(site.device.startswith(device) for site in DRAWERS[cause](scene(seed=seed)).sites):
            return case(cause, seed)
    raise AssertionError(f"{cause} is never drawn at {device}")


# -- all of them ---------------------------------------------------------------------------------------------
@pytest.mark.parametrize("cause", CAUSES)
def test_a_seed_draws_the_same_fault(cause: str) -> None:
    first, second = (DRAWERS[cause](scene(0.7, seed=5, is_logged=True)) for _ in range(2))
    assert replace(first, faults=()) == replace(second, faults=())
    assert [fault.changes(SECONDS) for fault in first.faults] == [fault.changes(SECONDS) for fault in second.faults]
    assert first.accepts == (cause,)


@pytest.mark.parametrize("cause", CAUSES)
@pytest.mark.parametrize("severity", [0.0, 0.5, 1.0])
def test_no_operator_logs_a_fault_that_is_not_logged(cause: str, severity: float) -> None:
    injection = DRAWERS[cause](scene(severity, seed=2))
    assert not injection.records
    assert not [record for fault in injection.faults for record in fault.records(FABRIC, SECONDS)]


@pytest.mark.parametrize("cause", sorted(set(CAUSES) - {"sw.silent_drop", "sw.buffer_leak"}))
def test_what_is_logged_lies_in_the_window_at_true_places(cause: str) -> None:
    logged = [DRAWERS[cause](scene(seed=seed, is_logged=True)) for seed in range(8)]
    assert any(one.records for one in logged)
    for one in logged:
        devices = {site.device for site in one.sites} | {JOB.name}
        for record in one.records:
            assert 0 <= record.at < SECONDS
            assert record.device in devices or cause == "sw.parity_crash"


@pytest.mark.parametrize("cause", [cause for cause in CAUSES if cause not in HARMLESS])
def test_a_drastic_fault_makes_steps_longer(cause: str) -> None:
    chosen = at(cause, FELT_AT[cause]) if cause in FELT_AT else case(cause)
    before, after = chosen.steps()
    is_stuck = chosen.telemetry.steps["run-1"][-1].start < SECONDS - 60
    assert is_stuck or np.mean(after) > 1.03 * np.mean(before)


@pytest.mark.parametrize("cause", sorted(HARMLESS))
def test_faults_of_telemetry_change_no_step(cause: str) -> None:
    for spoiled, healthy in zip(case(cause).steps(), case(None).steps(), strict=True):
        assert spoiled == pytest.approx(healthy)


# -- physical ------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("kind", ["laser", "receiver"])
def test_a_degraded_optic_loses_light_and_frames_at_one_end(kind: str) -> None:
    one = drawn("phy.optic_degraded", kind)
    corrupt = one.rise(one.telemetry.links["frames_corrupt"])
    assert np.flatnonzero(corrupt).tolist() == np.flatnonzero(one.last.light_lost_db).tolist()
    (link,) = np.flatnonzero(corrupt)
    assert link in one.links()
    assert (one.last.tx_lost_db[link] > 0, one.last.bias_added_ma[link] > 0) == ((kind == "laser",) * 2)
    lost = [period.conditions.light_lost_db[link] for period in one.telemetry.periods]
    assert lost == sorted(lost)
    assert len(set(lost)) > 5  # a ramp
    assert one.rise(one.telemetry.links["ingress_drops"]).sum() == 0


def test_a_dirty_connector_loses_light_under_normal_lasers() -> None:
    one = drawn("phy.dirty_connector", "both fibres")
    dim = np.flatnonzero(one.last.light_lost_db)
    assert set(dim.tolist()) == one.links()
    assert not one.last.tx_lost_db.any()
    assert not one.last.bias_added_ma.any()
    assert one.rise(one.telemetry.links["codewords_corrected"])[dim].min() > 0


def test_copper_has_no_light_to_lose() -> None:
    copper = replace(FABRIC, has_copper_hosts=True)
    for cause in ("phy.optic_degraded", "phy.dirty_connector"):
        for seed in range(12):
            sites = DRAWERS[cause](scene(seed=seed, fabric=copper)).sites
            assert not any(site.device.startswith("gpu") for site in sites)


def test_a_bad_cable_errs_in_both_directions_with_normal_light() -> None:
    one = case("phy.bad_cable")
    lost = one.rise(one.telemetry.links["codewords_lost"])
    assert set(np.flatnonzero(lost).tolist()) == one.links()
    assert len(one.links()) == 2
    assert not one.last.light_lost_db.any()


@pytest.mark.parametrize("device", ["gpu", "spine"])
def test_a_flapping_link_goes_down_at_both_ends_and_returns(device: str) -> None:
    one = at("phy.link_flap", device)
    links = sorted(one.links())
    up = [period.conditions.is_up[links].all() for period in one.telemetry.periods]
    assert up[-1]
    assert sum(first and not second for first, second in pairwise(up)) == int(one.injection.subtype.split()[0])
    for period in one.telemetry.periods:
        down = set(np.flatnonzero(~period.conditions.is_up).tolist())
        assert down in (set(), set(links))
    assert one.rise(one.telemetry.nics["ack_timeouts"]).sum() > 0
    assert one.rise(one.telemetry.links["frames_corrupt"]).sum() == 0


def test_lost_lanes_lower_the_speed_in_proportion() -> None:
    one = drawn("phy.lane_speed_down", "50 Gbit/s")
    links = sorted(one.links())
    assert (one.last.lanes[links] == 1).all()
    assert one.last.capacity[links] == pytest.approx(FABRIC.capacity_bps[links] / 8)
    halved = case("phy.lane_speed_down", severity=0.3)
    links = sorted(halved.links())
    assert (halved.last.lanes[links] == 2).all()
    assert halved.last.capacity[links] == pytest.approx(FABRIC.capacity_bps[links] / 2)
    assert halved.last.is_up.all()


def test_modules_of_a_card_err_with_their_heat() -> None:
    one = case("phy.overtemp")
    heat = np.array([period.conditions.module_heat_c for period in one.telemetry.periods])
    hot = np.flatnonzero(heat[-1])
    assert len(hot) >= 3
    assert {FABRIC.receiving_port[link][0] for link in hot} == {one.injection.sites[0].device}
    assert set(np.flatnonzero(one.rise(one.telemetry.links["codewords_corrected"]) > 1e7).tolist()) <= set(hot.tolist())
    assert (np.diff(heat[:, hot], axis=0) >= 0).all()


def test_errors_by_heat_begin_beyond_the_range_of_data_sheets() -> None:
    assert heat_ber(np.array([0.0, 15.0, 20.0, 45.0])) == pytest.approx([0.0, 0.0, 1e-8, 1e-3])


# -- switches ------------------------------------------------------------------------------------------------
def test_silent_drops_are_resent_but_counted_nowhere() -> None:
    one = case("sw.silent_drop")
    silent = one.rise(one.telemetry.links["silent_drops"])
    assert {FABRIC.receiving_port[link][0] for link in np.flatnonzero(silent)} == {one.injection.sites[0].device}
    for counted in ("frames_corrupt", "ingress_drops", "oversize_drops", "down_drops", "codewords_lost"):
        assert one.rise(one.telemetry.links[counted]).sum() == 0
    assert one.rise(one.telemetry.nics["nak_received"]).sum() == pytest.approx(silent.sum(), rel=0.05)


def test_a_leaking_buffer_is_never_empty_and_pauses_ever_sooner() -> None:
    one = at("sw.buffer_leak", "leaf")
    device = one.injection.sites[0].device
    links = [port.egress for port in FABRIC.switches[device]]
    conditions = [period.conditions for period in one.telemetry.periods]
    xoff = [each.profiles[each.queue_profile[links[0]]].xoff for each in conditions]
    assert xoff == sorted(xoff, reverse=True)
    assert xoff[-1] < 0.1 * xoff[0]
    floor = one.telemetry.queue_mean[:, links].min(axis=1)
    assert floor[-1] > floor[BEFORE + 8] > floor[BEFORE] + 1e4
    paused = one.rise(one.telemetry.links["pause_us"]) / (SECONDS - ONSET) / 1e6
    feeding = [port.ingress for port in FABRIC.switches[device]]
    assert paused[feeding].max() > 0.01


@pytest.mark.parametrize("kind", ["line card", "switch"])
def test_a_crash_takes_the_links_of_a_card_down_at_once(kind: str) -> None:
    one = drawn("sw.parity_crash", kind)
    device = one.injection.sites[0].device
    ports = FABRIC.switches[device]
    downs = {tuple(np.flatnonzero(~period.conditions.is_up).tolist()) for period in one.telemetry.periods}
    down = max(downs, key=len)
    assert downs == {(), down}
    assert set(down) <= {link for port in ports for link in (port.egress, port.ingress)}
    assert len(down) >= 6
    assert one.rise(one.telemetry.links["codewords_lost"]).sum() == 0


def test_a_logged_crash_names_the_parity_error_before_its_links() -> None:
    records = DRAWERS["sw.parity_crash"](scene(is_logged=True)).records
    assert (records[0].kind, "parity error" in records[0].text) == ("syslog", True)
    assert {record.kind for record in records[1:4]} == {"interface"}


# -- hosts ---------------------------------------------------------------------------------------------------
def latest(one: Case) -> list[str]:
    """The host that entered last, of each step that began well after the onset."""
    by_step: dict[int, list[tuple[float, int]]] = {}
    for rank in one.telemetry.ranks["run-1"]:
        by_step.setdefault(rank.step, []).append((rank.send_start, rank.host))
    began = {step.number for step in one.telemetry.steps["run-1"] if step.start > ONSET and step.end}
    return [FABRIC.host_name(max(ranks)[1]) for step, ranks in by_step.items() if step in began]


@pytest.mark.parametrize("cause", ["host.gpu_throttle", "host.gpu_fault", "host.nvlink_fault"])
def test_a_slow_gpu_makes_its_host_enter_last_over_a_quiet_fabric(cause: str) -> None:
    one = drawn(cause, "slow") if cause == "host.gpu_fault" else case(cause)
    assert set(latest(one)) == {one.injection.sites[0].device}
    quiet = case(None)
    for loop in ("marks", "pause_us"):
        rise, usual = (each.rise(each.telemetry.links[loop]).sum() for each in (one, quiet))
        assert rise <= 1.5 * usual + 1e4


@pytest.mark.parametrize(("kind", "reasons"), [("heat", 0x20), ("power cap", 0x4)])
def test_a_throttled_gpu_says_why_and_computes_by_its_clock(kind: str, reasons: int) -> None:
    one = drawn("host.gpu_throttle", kind)
    (nic,) = np.flatnonzero(one.last.gpu_clock < 1)
    assert one.last.throttle_reasons[nic] & reasons
    assert (one.last.gpu_heat_c[nic] > 10) == (kind == "heat")
    assert one.last.slowness[nic // FABRIC.rails] == pytest.approx(1 / one.last.gpu_clock[nic])
    assert not one.last.nvlink_error_rate.any()


def test_a_gpu_that_stops_stops_its_job() -> None:
    one = drawn("host.gpu_fault", "stopped")
    last = one.telemetry.steps["run-1"][-1]
    assert last.end is None
    assert last.start < ONSET + 10
    entered = {FABRIC.host_name(rank.host) for rank in one.telemetry.ranks["run-1"] if rank.step == last.number}
    assert entered == {FABRIC.host_name(host) for host in JOB.hosts} - {one.injection.sites[0].device}


def test_stalled_processors_come_and_go_with_late_launches() -> None:
    one = drawn("host.cpu_stall", "busy")
    host = [FABRIC.host_name(host) for host in range(FABRIC.hosts)].index(one.injection.sites[0].device)
    factors = np.array([period.conditions.compute[host] for period in one.telemetry.periods])
    busy = np.array([period.conditions.cpu[host] for period in one.telemetry.periods])
    assert ((factors > 1) == (busy > 0.9)).all()
    assert (np.diff((factors > 1).astype(int)) == 1).sum() >= 2
    assert one.last.gpu_clock.min() == 1


def test_a_degraded_pcie_link_makes_its_nic_pause_the_leaf() -> None:
    one = case("host.pcie_degraded")
    (nic,) = np.flatnonzero(one.last.drain < 1)
    gen, width = int(one.last.pcie_gen[nic]), int(one.last.pcie_width[nic])
    assert (gen, width) != (5, 16)
    assert one.last.send_limit[nic] == pcie_gbps(gen, width) * 1e9 < 400e9
    down = FABRIC.nic_down(int(nic))
    paused = one.rise(one.telemetry.links["pause_us"])
    assert paused[down] > 1e6
    assert FABRIC.sending_port[down] in one.places
    use = one.rise(one.telemetry.tx_bytes[3])[down] * 8 / (SECONDS - ONSET)
    assert use < 400e9 * one.last.drain[nic]
    assert one.rise(one.telemetry.nics["aer_errors"])[nic] > 0


def test_a_slower_nic_needs_a_slower_pcie_link_to_suffer() -> None:
    slow = replace(FABRIC, host_gbps=100, uplink_gbps=400)
    subtype = DRAWERS["host.pcie_degraded"](scene(fabric=slow)).subtype
    gen, width = subtype.removeprefix("gen ").split(" x")
    assert pcie_gbps(int(gen), int(width)) < 95


def test_nvlink_errors_are_counted_at_one_gpu() -> None:
    one = case("host.nvlink_fault")
    errors = one.rise(one.telemetry.nics["nvlink_errors"])
    (nic,) = np.flatnonzero(errors)
    assert FABRIC.host_name(nic // FABRIC.rails) == one.injection.sites[0].device


# -- jobs ----------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("cause", ["job.placement_change", "job.software_change"])
def test_a_restart_leaves_a_gap_and_goes_on(cause: str) -> None:
    one = case(cause)
    steps = one.telemetry.steps["run-1"]
    last = max(step.end for step in steps if step.end and step.end <= ONSET)
    first = min(step.start for step in steps if step.start > ONSET)
    assert first - last > 25
    numbers = [step.number for step in steps]
    assert numbers == sorted(set(numbers))
    assert one.injection.sites == ()


def test_another_placement_moves_the_job_only() -> None:
    one = case("job.placement_change")
    hosts = one.last.job("run-1").hosts
    assert hosts is not None
    assert set(hosts) <= set(range(FABRIC.gpu_hosts))
    assert hosts != JOB.hosts
    ranks = {rank.host for rank in one.telemetry.ranks["run-1"] if rank.send_start > ONSET + 80}
    assert ranks == set(hosts)


def test_a_placement_that_costs_nothing_is_no_fault() -> None:
    roomy = replace(FABRIC, units=1, spines=1)
    lonely = replace(scene(fabric=roomy), jobs=(replace(JOB, hosts=(0, 1)),))
    with pytest.raises(ValueError, match="no placement costs it anything"):
        DRAWERS["job.placement_change"](lonely)


@pytest.mark.parametrize("kind", ["bytes", "compute"])
def test_other_software_slows_all_ranks_alike(kind: str) -> None:
    one = drawn("job.software_change", kind)
    condition = one.last.job("run-1")
    assert (condition.size > 1, condition.compute > 1) == (kind == "bytes", kind == "compute")
    by_step: dict[int, list[float]] = {}
    for rank in one.telemetry.ranks["run-1"]:
        by_step.setdefault(rank.step, []).append(rank.send_start)
    assert max(max(starts) - min(starts) for starts in by_step.values()) < 0.1 * JOB.compute_seconds
    assert len(set(latest(one))) > 1


def test_slow_steps_coincide_with_busy_storage() -> None:
    one = drawn("job.checkpoint_io", "checkpoints")
    usual = float(np.median(one.steps()[0]))
    steps = [step for step in one.telemetry.steps["run-1"] if step.start >= ONSET and step.seconds]
    slow = [step for step in steps if step.seconds and step.seconds > 1.5 * usual]
    assert 2 <= len(slow) < len(steps)
    for step in slow:
        assert one.telemetry.conditions_at(step.start + 0.3 * usual).storage_busy[JOB.hosts[0]] > 0.9
    hosts = sorted(set(range(FABRIC.hosts)) - set(JOB.hosts))
    assert max(period.conditions.storage_busy[hosts].max() for period in one.telemetry.periods) < 0.5


# -- telemetry -----------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("kind", "read"), [("jump", [1, 2, 103, 104]), ("begin at 0", [1, 2, 0, 1]), ("stand still", [1, 2, 2, 2])]
)
def test_a_defect_spoils_the_readings_of_one_end(kind: str, read: list[float]) -> None:
    injection = drawn("tel.counter_artefact", kind).injection
    (defect,) = injection.defects
    times, values = ONSET + np.array([-10.0, -5.0, 0.0, 5.0]), np.array([1.0, 2.0, 3.0, 4.0])
    assert replace(defect, amount=100.0).spoil(times, values).tolist() == read
    assert values.tolist() == [1, 2, 3, 4]
    metric, port = defect.metrics[0], defect.port or "Ethernet9"
    assert defect.hits(metric, defect.device, port)
    assert not defect.hits(metric, "leaf-99", port)
    assert not defect.hits("optic_rx_dbm", defect.device, port)
    assert not injection.faults


def test_a_skewed_clock_is_one_host_s_and_all_the_window_long() -> None:
    one = case("tel.clock_skew")
    (host,) = np.flatnonzero(one.telemetry.conditions_at(0.0).clock_offset)
    assert FABRIC.host_name(host) == one.injection.sites[0].device
    assert one.injection.onset == 0


# -- the model under them ------------------------------------------------------------------------------------
def test_a_healthy_fabric_pauses_for_no_bursts() -> None:
    quiet = case(None)
    duty = quiet.rise(quiet.telemetry.links["pause_us"]) / (SECONDS - ONSET) / 1e6
    assert duty.max() < 1e-3


def test_nothing_is_delivered_over_a_link_that_is_down() -> None:
    one = at("phy.link_flap", "gpu")
    links = sorted(one.links())
    carried = one.telemetry.tx_bytes[3][:, links].sum(axis=1)
    for start, end in _downs(one, links):
        polls = (one.telemetry.times >= start) & (one.telemetry.times <= end)
        if polls.sum() > 1:
            assert np.ptp(carried[polls]) == 0


def _downs(one: Case, links: list[int]) -> list[tuple[float, float]]:
    periods = one.telemetry.periods
    ends = [*(period.start for period in periods[1:]), SECONDS]
    return [
        (period.start, end)
        for period, end in zip(periods, ends, strict=True)
        if not period.conditions.is_up[links].any()
    ]
