"""Faults of configuration, NICs and PFC in the fabric model: each shows its signature and not that of its rivals."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import numpy as np
import pytest

from causeline.fixtures.faults import DRAWERS, Injection, Scene
from causeline.fixtures.model.conditions import Design
from causeline.fixtures.model.dcqcn import QueueProfile
from causeline.fixtures.model.fabric import Fabric
from causeline.fixtures.model.run import Setup, run
from causeline.fixtures.model.telemetry import Telemetry
from causeline.fixtures.model.traffic import LOSSLESS_CLASS, LOSSY_CLASS, Collective, Job, Pattern

ONSET, SECONDS, POLL = 60.0, 150.0, 10.0
HALF = round(ONSET / POLL)

CAUSES = sorted(cause for cause in DRAWERS if cause.startswith(("cfg.", "nic.")))

FABRIC = Fabric("F", units=2, hosts_per_unit=8, rails=2, spines=4, uplink_gbps=800, storage_hosts=2)


def scene(seed: int, severity: float = 1.0, *, is_logged: bool = False) -> Scene:
    """A paced ring all-reduce over all GPU hosts that leaves the fabric half empty, hosts of the units in turn."""
    fabric = FABRIC
    order = sorted(range(fabric.gpu_hosts), key=lambda host: (host % fabric.hosts_per_unit, host))
    job = Job("run-1", "acme", tuple(order), (Collective(Pattern.RING, 30e9, 2, 80.0),), 2.0)
    leaf_seeds, spine_seeds = np.arange(fabric.leaves) * 7919 + 3, np.arange(fabric.all_spines) * 31 + 11
    design = Design(leaf_seeds, spine_seeds, QueueProfile.for_speed(400), QueueProfile.for_speed(800))
    return Scene(fabric, design, (job,), (), SECONDS, ONSET, severity, is_logged, np.random.default_rng(seed))


def play(one: Scene, injection: Injection, *, healthy: bool = False, job_ends: float = 1e9) -> Telemetry:
    jobs = tuple(replace(job, ends=job_ends) for job in one.jobs)
    standing = tuple(replace(load, ends=job_ends) for load in injection.standing)
    faults = () if healthy else injection.faults
    return run(Setup(one.fabric, injection.design or one.design, jobs, standing, faults, one.seconds, POLL, 1))


@cache
def drawn(cause: str, subtype: str = "", severity: float = 1.0) -> tuple[Scene, Injection]:
    """The first drawing of a cause (of a subtype)."""
    for seed in range(40):
        one = scene(seed, severity)
        injection = DRAWERS[cause](one)
        if subtype in injection.subtype:
            return one, injection
    raise AssertionError(f"{cause}: no {subtype}")


@cache
def played(cause: str, subtype: str = "", severity: float = 1.0) -> Telemetry:
    return play(*drawn(cause, subtype, severity))


@cache
def twin(cause: str, subtype: str = "", severity: float = 1.0) -> Telemetry:
    return play(*drawn(cause, subtype, severity), healthy=True)


def step_seconds(telemetry: Telemetry) -> float:
    """Median step after the onset; one that never ends lasts to the end of the window."""
    steps = telemetry.steps["run-1"]
    lasted = [(one.seconds or SECONDS - one.start) for one in steps if (one.end or SECONDS) > ONSET + 10]
    return float(np.median(lasted))


def after(telemetry: Telemetry, name: str) -> np.ndarray:
    """What a counter gained since the onset."""
    sums = telemetry.links[name] if name in telemetry.links else telemetry.nics[name]
    return np.asarray(sums[-1] - sums[HALF])


def device_links(one: Scene, device: str) -> tuple[list[int], list[int]]:
    """Links that leave, and that enter, a switch."""
    ports = one.fabric.switches[device]
    return [port.egress for port in ports], [port.ingress for port in ports]


# -- all of them ----------------------------------------------------------------------------------------------
@pytest.mark.parametrize("cause", CAUSES)
def test_a_drastic_fault_slows_the_job(cause: str) -> None:
    assert step_seconds(played(cause)) > 1.1 * step_seconds(twin(cause))


@pytest.mark.parametrize("cause", CAUSES)
def test_drawing_and_running_again_gives_the_same(cause: str) -> None:
    first, again = (DRAWERS[cause](scene(3, 0.6)) for _ in range(2))
    assert first == replace(again, design=first.design)
    assert DRAWERS[cause](scene(4, 0.6)) != again


@pytest.mark.parametrize("cause", CAUSES)
def test_only_a_logged_fault_leaves_records_and_they_name_its_devices(cause: str) -> None:
    assert DRAWERS[cause](scene(3)).records == ()
    logged = DRAWERS[cause](scene(3, is_logged=True))
    devices = {site.device for site in logged.sites}
    assert {record.device for record in logged.records} <= devices
    assert all(record.at <= ONSET for record in logged.records)


@pytest.mark.parametrize("cause", CAUSES)
def test_nothing_is_wrong_before_the_onset(cause: str) -> None:
    names = ("ingress_drops", "oversize_drops", "watchdog_storms", "silent_drops")
    assert all(not played(cause).links[name][HALF].any() for name in names)


@pytest.mark.parametrize("cause", CAUSES)
def test_sites_are_ports_and_hosts_of_the_fabric(cause: str) -> None:
    one, injection = drawn(cause)
    ends = {*one.fabric.sending_port, *one.fabric.receiving_port}
    devices = {device for device, _ in ends}
    assert injection.sites
    assert all(
        site.device in devices and (site.port is None or (site.device, site.port) in ends) for site in injection.sites
    )


# -- thresholds -----------------------------------------------------------------------------------------------
@pytest.mark.parametrize("subtype", ["off", "too late", "not bound"])
def test_late_marks_leave_the_work_to_pauses(subtype: str) -> None:
    one, injection = drawn("cfg.ecn_late", subtype)
    leaf = injection.sites[0].device
    egress, ingress = device_links(one, leaf)
    sick, well = played("cfg.ecn_late", subtype), twin("cfg.ecn_late", subtype)
    hot = max(egress, key=lambda link: sick.queue_peak[HALF + 1 :, link].max())
    assert after(sick, "marks")[hot] == 0 < after(well, "marks")[hot]
    assert sick.queue_peak[-1, hot] > one.design.host_queue.kmax
    assert after(sick, "pause_us")[ingress].max() > 100 * after(well, "pause_us")[ingress].max()
    # The queue that pauses is not paused itself, and nothing is lost.
    assert after(sick, "pause_us")[hot] < 1e3
    assert not after(sick, "ingress_drops").any()


def test_early_marks_starve_the_link_without_a_queue_or_pauses() -> None:
    one, injection = drawn("cfg.ecn_early")
    egress, _ = device_links(one, injection.sites[0].device)
    sick, well = played("cfg.ecn_early"), twin("cfg.ecn_early")
    assert after(sick, "marks")[egress].sum() > 100 * after(well, "marks")[egress].sum()
    assert sick.queue_peak[HALF + 1 :, egress].max() < one.design.host_queue.kmax
    assert after(sick, "pause_us").max() < 1e3
    busiest = (sick.tx_bytes[LOSSLESS_CLASS][-1] - sick.tx_bytes[LOSSLESS_CLASS][HALF])[egress].max()
    assert busiest * 8 / (SECONDS - ONSET) < 0.7 * one.fabric.capacity_bps[egress].max()


# -- classes, pauses and buffers ------------------------------------------------------------------------------
def test_the_ingress_that_does_not_pause_drops() -> None:
    one, injection = drawn("cfg.pfc_mismatch")
    (link,) = [link for link in range(one.fabric.links) if one.fabric.receiving_port[link] == _site(injection, 0)]
    sick = played("cfg.pfc_mismatch")
    assert np.flatnonzero(after(sick, "ingress_drops")).tolist() == [link]
    assert after(sick, "pause_us")[link] < 1e3 < twin("cfg.pfc_mismatch").links["pause_us"][-1][link]
    assert after(sick, "nak_received").sum() > 100
    assert not after(sick, "frames_corrupt").any()
    assert not sick.conditions_at(SECONDS - 1).sends_pause[link]


def test_a_wrong_map_puts_the_job_into_a_class_that_drops() -> None:
    one, injection = drawn("cfg.dscp_mismap")
    egress, ingress = device_links(one, injection.sites[0].device)
    sick = played("cfg.dscp_mismap")
    lossy, lossless = (
        sick.tx_bytes[number][-1] - sick.tx_bytes[number][HALF + 1] for number in (LOSSY_CLASS, LOSSLESS_CLASS)
    )
    assert not lossless[egress].any()
    assert lossy[egress].sum() > 0
    assert after(sick, "ingress_drops")[ingress].sum() > 100
    assert after(sick, "pause_us").max() < 1e3
    assert not after(sick, "marks")[egress].any()


def test_too_little_headroom_drops_though_it_pauses() -> None:
    _, injection = drawn("cfg.headroom_buffer", "headroom")
    sick, well = played("cfg.headroom_buffer", "headroom"), twin("cfg.headroom_buffer", "headroom")
    dropping = np.flatnonzero(after(sick, "ingress_drops"))
    assert {sick.fabric.receiving_port[link][0] for link in dropping} == {injection.sites[0].device}
    assert (after(sick, "pause_us")[dropping] > 1e4).all()
    assert not after(well, "ingress_drops").any()


def test_a_small_alpha_pauses_before_it_marks() -> None:
    one, injection = drawn("cfg.headroom_buffer", "alpha")
    egress, ingress = device_links(one, injection.sites[0].device)
    sick, well = played("cfg.headroom_buffer", "alpha"), twin("cfg.headroom_buffer", "alpha")
    hot = int(np.argmax(after(well, "marks") * np.isin(np.arange(one.fabric.links), egress)))
    assert after(sick, "pause_us")[ingress].max() > 100 * after(well, "pause_us")[ingress].max()
    assert after(sick, "marks")[hot] < 0.1 * after(well, "marks")[hot]


def test_a_small_mtu_drops_full_packets_on_a_path_that_is_not_busy() -> None:
    one, injection = drawn("cfg.mtu_mismatch")
    sick = played("cfg.mtu_mismatch")
    dropping = np.flatnonzero(after(sick, "oversize_drops"))
    ends = {(site.device, site.port) for site in injection.sites}
    assert len(dropping)
    assert {one.fabric.sending_port[link] for link in dropping} | {
        one.fabric.receiving_port[link] for link in dropping
    } == ends
    assert after(sick, "ack_timeouts").sum() > 100
    assert sick.queue_peak[HALF + 1 :].max() < one.design.fabric_queue.kmax
    assert not after(sick, "pause_us").max() > 1e3
    # The cable was not there before.
    assert not sick.conditions_at(ONSET - 1).is_up[dropping].any()
    assert sick.steps["run-1"][-1].end is None


def test_headers_of_telemetry_make_some_packets_too_long() -> None:
    sick, well = played("cfg.mtu_mismatch", "header", 0.5), twin("cfg.mtu_mismatch", "header", 0.5)
    assert 1.1 * step_seconds(well) < step_seconds(sick) < 10 * step_seconds(well)


def test_a_nervous_watchdog_discards_where_pauses_are_moderate() -> None:
    one, injection = drawn("cfg.pfcwd_misfire")
    egress, _ = device_links(one, injection.sites[0].device)
    sick, well = played("cfg.pfcwd_misfire"), twin("cfg.pfcwd_misfire")
    firing = np.flatnonzero(after(sick, "watchdog_storms"))
    assert len(firing)
    assert set(firing) <= set(egress)
    assert well.links["pause_us"][-1][firing].max() < 0.6e6 * SECONDS
    assert after(sick, "ingress_drops").any()
    assert not after(well, "watchdog_storms").any()


# -- congestion control ---------------------------------------------------------------------------------------
@pytest.mark.parametrize("subtype", ["reaction point", "cut", "lossy class"])
def test_senders_that_do_not_slow_down_see_marks_and_pauses(subtype: str) -> None:
    sick, well = played("cfg.dcqcn_cnp", subtype), twin("cfg.dcqcn_cnp", subtype)
    assert after(sick, "marks").sum() > 2 * after(well, "marks").sum()
    assert after(sick, "pause_us").max() > 100 * after(well, "pause_us").max()
    handled, sent = (after(sick, name).sum() for name in ("cnp_handled", "cnp_sent"))
    if subtype == "lossy class":
        assert handled + after(sick, "cnp_ignored").sum() < 0.5 * sent
    elif subtype == "reaction point":
        assert after(sick, "cnp_ignored").sum() > 0.5 * sent
    else:
        assert handled == pytest.approx(sent)


@pytest.mark.parametrize("subtype", ["ignores", "sends no"])
def test_a_cnp_fault_is_of_one_nic(subtype: str) -> None:
    one, injection = drawn("nic.cnp_fault", subtype)
    (nic,) = [nic for nic in range(one.fabric.nics) if one.fabric.sending_port[nic] == _site(injection, 0)]
    sick = played("nic.cnp_fault", subtype)
    if subtype == "ignores":
        assert np.flatnonzero(after(sick, "cnp_ignored")).tolist() == [nic]
    else:
        assert after(sick, "cnp_sent")[nic] == 0 < after(sick, "ce_received")[nic]
    assert after(sick, "pause_us").max() > 100 * after(twin("nic.cnp_fault", subtype), "pause_us").max()


# -- NICs -----------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("subtype", ["losses", "lower rate", "deaf"])
def test_new_firmware_behaves_badly_on_exactly_its_cohort(subtype: str) -> None:
    one, injection = drawn("nic.fw_regression", subtype)
    cohort = {site.device for site in injection.sites}
    units = {int(name.split("-")[-1]) > one.fabric.hosts_per_unit for name in cohort}
    assert units == {False, True}
    assert 2 <= len(cohort) < len(one.job.hosts)
    sick = played("nic.fw_regression", subtype)
    conditions = sick.conditions_at(SECONDS - 1)
    if subtype == "losses":
        # Where the cohort's senders lose packets; a stray loss elsewhere is rare.
        bad = after(sick, "nak_received") > 100
    elif subtype == "deaf":
        bad = after(sick, "cnp_ignored") > 0
        assert bad.any()
        assert {one.fabric.sending_port[nic][0] for nic in np.flatnonzero(bad)} <= cohort
        return
    else:
        bad = np.isfinite(conditions.send_limit)
    assert {one.fabric.sending_port[nic][0] for nic in np.flatnonzero(bad)} == cohort


def test_a_slow_receiver_pauses_its_leaf_and_still_receives() -> None:
    one, injection = drawn("nic.slow_receiver")
    down = one.fabric.sending_port.index(_site(injection, 1))
    sick = played("nic.slow_receiver")
    pauses = after(sick, "pause_us")
    assert pauses[down] > 1e5
    assert np.delete(pauses, down).max() < pauses[down]
    carried = (sick.tx_bytes[LOSSLESS_CLASS][-1] - sick.tx_bytes[LOSSLESS_CLASS][HALF])[down]
    assert 0 < carried * 8 / (SECONDS - ONSET) < 0.9 * one.fabric.capacity_bps[down]
    assert not after(sick, "storm_errors").any()


def test_a_storm_stops_its_port_and_spreads_from_there() -> None:
    one, injection = drawn("nic.pause_storm")
    down = one.fabric.sending_port.index(_site(injection, 1))
    sick = played("nic.pause_storm")
    pauses = after(sick, "pause_us") / (SECONDS - ONSET) / 1e6
    assert pauses[down] > 0.8
    assert np.argmax(pauses[: 2 * one.fabric.nics]) == down
    assert after(sick, "storm_errors")[down - one.fabric.nics] > 0
    assert not sick.conditions_at(SECONDS - 1).stuck.any()


# -- deadlock -------------------------------------------------------------------------------------------------
@cache
def locked() -> tuple[Scene, Injection]:
    one = scene(1)
    return one, DRAWERS["pfc.deadlock"](one)


def test_a_deadlock_outlives_its_senders() -> None:
    one, injection = locked()
    ended = ONSET + 40
    told = play(one, injection, job_ends=ended)
    stuck = np.flatnonzero(told.conditions_at(SECONDS - 1).stuck)
    assert len(stuck) >= 4
    row = round(ended / POLL) + 1
    paused = (told.links["pause_us"][-1] - told.links["pause_us"][row])[stuck] / (SECONDS - told.times[row]) / 1e6
    assert (paused > 0.99).all()
    assert not (told.tx_bytes[LOSSLESS_CLASS][-1] - told.tx_bytes[LOSSLESS_CLASS][HALF + 1])[stuck].any()
    # It closes at the second failure, not before.
    assert not told.conditions_at(ONSET - 1).stuck.any()
    ends = {end for link in stuck for end in (one.fabric.sending_port[link], one.fabric.receiving_port[link])}
    assert {(site.device, site.port) for site in injection.sites} <= ends
    assert [trigger.onset for trigger in injection.triggers] == [fault.onset for fault in injection.faults]


def test_nothing_locks_without_both_failures_or_without_bounces() -> None:
    one, injection = locked()
    up_down = replace(injection, design=replace(injection.design, bounces=False))
    for other in (replace(injection, faults=()), replace(injection, faults=injection.faults[:1]), up_down):
        told = play(one, other)
        assert not told.conditions_at(SECONDS - 1).stuck.any()


def test_a_job_behind_a_deadlock_never_finishes_its_step() -> None:
    one, injection = locked()
    assert play(one, injection).steps["run-1"][-1].end is None
    assert play(one, injection, healthy=True).steps["run-1"][-1].start > SECONDS - 60


def _site(injection: Injection, number: int) -> tuple[str, str | None]:
    site = injection.sites[number]
    return site.device, site.port
