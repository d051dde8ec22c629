"""The fabric model behind the fixtures: its physics, and that bundles are a function of their scenario."""

from __future__ import annotations

import gzip
import json
import re
import tarfile
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from causeline.fixtures.congestion import (
    LOSSLESS_PROFILE,
    PACKET_BYTES,
    dcqcn_mark_probability,
    link_load,
    mark_probability,
    share_capacity,
)
from causeline.fixtures.ecmp_hash import choose_members, route
from causeline.fixtures.fabric import Fabric, Floats
from causeline.fixtures.incident_faults import EcmpDrain, Fault, OpticDegradation, PauseStorm
from causeline.fixtures.optics import codeword_error_ratios, pre_fec_ber
from causeline.fixtures.scenarios import ConfigCommit, FirmwareUpdate, Scenario, Truth, scenario
from causeline.fixtures.telemetry import Step, Telemetry
from causeline.fixtures.workload import Collision, RingJob, StorageBurst, find_port_seeds, ring_flows
from causeline.fixtures.write_bundle import incident_yaml, truth_json, write_bundle

INCIDENTS = Path(__file__).parent.parent / "fixtures" / "incidents"

FABRIC = Fabric("Small Fabric", units=2, hosts_per_unit=8, rails=2, spines=4)
JOB = RingJob("small-run", job_id=7, first_step=100, tokens_per_step=1000, queue_pair_gbps=170.0)
ONSET = 150.0
BURST = StorageBurst(rail=1, start_seconds=40.0, seconds=30.0, flows_each_way=8, flow_gbps=10.0)
HOT = FABRIC.leaf_up(0, 3)


def small(*faults: Fault, collision: Collision | None = None) -> Scenario:
    return Scenario(
        id="SMALL",
        fabric=FABRIC,
        job=JOB,
        start=datetime(2026, 11, 17, 20, 15, tzinfo=UTC),
        window_seconds=300,
        faults=faults,
        bursts=(BURST,),
        firmware=(FirmwareUpdate(host=3, version="28.43.1014", days_before=3.0),),
        commits=(ConfigCommit("leaf-02", "tidy", "netops", 100.0),),
        truth=Truth((), (), (), (), ""),
        seed=11,
        drained_spine=1,
        most_flows=3,
        collision=collision,
        harm_seconds=ONSET,
    )


DRAIN = small(EcmpDrain(1, ONSET), collision=Collision(leaf=0, spine=3, flows=6))
OPTIC = small(OpticDegradation(leaf=0, spine=2, onset_seconds=100.0, ramp_seconds=50.0, loss_db=4.5))
STORM = small(PauseStorm(host=2, rail=1, onset_seconds=ONSET))


@pytest.fixture(scope="module")
def quiet() -> Telemetry:
    return small().run()


@pytest.fixture(scope="module")
def drained() -> Telemetry:
    return DRAIN.run()


@pytest.fixture(scope="module")
def dimmed() -> Telemetry:
    return OPTIC.run()


@pytest.fixture(scope="module")
def stormy() -> Telemetry:
    return STORM.run()


def rates(telemetry: Telemetry, counter: Floats, start: float, end: float) -> Floats:
    return telemetry.changed(counter, start, end) / (end - start)


def median_step(telemetry: Telemetry, start: float, end: float) -> float:
    return float(
        np.median([step.seconds for step in telemetry.steps if start < step.end - step.seconds and step.end < end])
    )


# -- conservation --------------------------------------------------------------------------------------------
@pytest.mark.parametrize("run", ["quiet", "drained", "dimmed", "stormy"])
def test_bytes_are_conserved_at_every_switch(run: str, request: pytest.FixtureRequest) -> None:
    telemetry: Telemetry = request.getfixturevalue(run)
    links = telemetry.links
    lost = links.frames_lost[-1] * PACKET_BYTES
    for traffic, losses in ((links.tx_bytes_lossless[-1], lost), (links.tx_bytes_storage[-1], 0 * lost)):
        for ports in FABRIC.switches.values():
            arrived = sum(traffic[port.ingress] - losses[port.ingress] for port in ports)
            left = sum(traffic[port.egress] for port in ports)
            assert left == pytest.approx(arrived, rel=1e-9)


def test_what_the_job_delivered_is_what_its_steps_needed(quiet: Telemetry) -> None:
    sent = quiet.links.tx_bytes_lossless[-1][: FABRIC.nics].sum()
    per_step = JOB.bytes_per_flow * len(ring_flows(FABRIC, JOB, (0, 0)))
    # The step under way at time 0 and the one at the end are parts; delivery goes on one tick after the last record.
    assert sent == pytest.approx(len(quiet.steps) * per_step, abs=1.1 * per_step)
    assert quiet.delivered_bytes == pytest.approx(sent, rel=2e-3)


def test_lost_frames_are_sent_again(dimmed: Telemetry) -> None:
    sent = dimmed.links.tx_bytes_lossless[-1][: FABRIC.nics].sum()
    lost = dimmed.links.frames_lost[-1].sum() * PACKET_BYTES
    assert lost > 0
    assert sent - dimmed.delivered_bytes > lost


def test_counters_never_fall(drained: Telemetry) -> None:
    for counters in (drained.links, drained.nics):
        for name, values in vars(counters).items():
            assert (np.diff(values, axis=0) >= 0).all(), name


# -- ECMP ----------------------------------------------------------------------------------------------------
@given(st.lists(st.integers(0, 2**64 - 1), min_size=1, max_size=50), st.integers(1, 2**8 - 1))
def test_the_hash_only_chooses_live_members(hashes: list[int], live_bits: int) -> None:
    live = np.array([[bool(live_bits >> member & 1) for member in range(8)]] * len(hashes))
    members = choose_members(np.array(hashes, dtype=np.uint64), live)
    assert live[np.arange(len(hashes)), members].all()


def test_a_drain_moves_flows_of_untouched_members_too() -> None:
    flows = ring_flows(FABRIC, replace(JOB, queue_pairs=16), (0, 0))
    seeds = np.arange(FABRIC.leaves)
    live = np.ones((FABRIC.leaves, FABRIC.spines), dtype=bool)
    remaining = live.copy()
    remaining[:, 1] = False

    def paths(members: np.ndarray) -> np.ndarray:
        return route(FABRIC, seeds, members, flows.source, flows.destination, flows.source_port, flows.destination_port)

    before, after = paths(live)[:, 1], paths(remaining)[:, 1]
    crossing = before < FABRIC.links
    untouched = crossing & ((before - 2 * FABRIC.nics) % FABRIC.spines != 1)
    assert not ((after[crossing] - 2 * FABRIC.nics) % FABRIC.spines == 1).any()
    assert (before[untouched] != after[untouched]).mean() > 0.5


def test_the_hash_spreads_many_flows_evenly() -> None:
    flows = ring_flows(FABRIC, replace(JOB, queue_pairs=256), (5, 6))
    live = np.ones((FABRIC.leaves, FABRIC.spines), dtype=bool)
    paths = route(
        FABRIC, np.arange(4), live, flows.source, flows.destination, flows.source_port, flows.destination_port
    )
    uplinks = np.bincount(paths[:, 1], minlength=FABRIC.links + 1)[2 * FABRIC.nics : FABRIC.links].reshape(2, -1)[0]
    expected = 4 * 2 * 256 / FABRIC.spines / 2
    assert ((uplinks - expected) ** 2 / expected).sum() < 45  # chi-square, 12 degrees of freedom: p = 1e-5


def test_an_impossible_wish_for_the_hash_is_refused() -> None:
    with pytest.raises(ValueError, match="no port seed below 2000 keeps rail 1 at 1 flows"):
        find_port_seeds(FABRIC, JOB, np.arange(4), drained_spine=1, most_flows=1, candidates=2000)


def test_a_drained_spine_carries_nothing(drained: Telemetry) -> None:
    sent = rates(drained, drained.links.tx_bytes_lossless, ONSET, 300)
    for leaf in range(FABRIC.leaves):
        assert sent[FABRIC.leaf_up(leaf, 1)] == 0
        assert sent[FABRIC.spine_down(leaf, 1)] == 0


# -- the congestion loop -------------------------------------------------------------------------------------
@given(
    st.lists(st.tuples(st.floats(1e6, 1e12), st.integers(0, 4), st.integers(0, 4)), min_size=1, max_size=30),
    st.lists(st.floats(1e8, 1e12), min_size=5, max_size=5),
)
def test_shared_capacity_is_fair_and_never_exceeded(flows: list[tuple[float, int, int]], capacity: list[float]) -> None:
    demand = np.array([flow[0] for flow in flows])
    paths = np.array([[flow[1], flow[2] if flow[2] != flow[1] else 5] for flow in flows])
    given_rates, saturated = share_capacity(demand, paths, np.array(capacity))
    assert (given_rates <= demand * (1 + 1e-12)).all()
    assert (link_load(given_rates, paths, 5) <= np.array(capacity) * (1 + 1e-9)).all()
    limited = given_rates < demand * (1 - 1e-9)
    # Who gets less than it asked for crosses a saturated link on which nobody gets more than it does.
    for flow in np.flatnonzero(limited):
        bottlenecks = [link for link in paths[flow] if link < 5 and saturated[link]]
        most = [given_rates[(paths == link).any(axis=1)].max() for link in bottlenecks]
        assert bottlenecks and min(most) <= given_rates[flow] * (1 + 1e-9)


@given(st.lists(st.floats(0, 1e8), min_size=2, max_size=20))
def test_marking_rises_with_the_queue(lengths: list[float]) -> None:
    marks = mark_probability(np.sort(lengths), LOSSLESS_PROFILE)
    assert (np.diff(marks) >= 0).all()
    assert ((marks >= 0) & (marks <= 1)).all()
    assert mark_probability(np.array([LOSSLESS_PROFILE.kmin]), LOSSLESS_PROFILE)[0] == 0


def test_more_dcqcn_flows_need_more_marks() -> None:
    probabilities = dcqcn_mark_probability(np.array([2.0, 4.0, 10.0, 30.0]), np.full(4, 800e9))
    assert (np.diff(probabilities) > 0).all()
    # The fixed point of Zhu et al. 2016 (CoNEXT) by hand for ten flows at 800G with this model's constants.
    assert probabilities[2] == pytest.approx(1.8e-3, rel=0.05)


def test_a_collision_after_the_drain_saturates_one_uplink_and_slows_the_job(drained: Telemetry) -> None:
    use = rates(drained, drained.links.tx_bytes_lossless, ONSET + 15, 300) * 8 / FABRIC.capacity_bps
    assert use[HOT] > 0.85
    others = np.delete(use, [HOT, FABRIC.spine_down(2, 3)])
    assert others.max() < 0.8
    # Six flows of 170 Gbit/s on 800: the collective stretches by 1020 / 800 and the loop's loss.
    change = median_step(drained, ONSET + 5, 300) / median_step(drained, 5, ONSET) - 1
    assert 0.22 < change < 0.30
    assert median_step(drained, 5, ONSET) == pytest.approx(JOB.compute_seconds + JOB.communication_seconds, rel=0.01)


def test_marks_rise_at_the_saturated_uplink_and_cnps_answer_them(drained: Telemetry) -> None:
    marks = rates(drained, drained.links.marks_lossless, ONSET + 15, 300)
    assert marks[HOT] > 100 * np.delete(marks, HOT).max()
    received = rates(drained, drained.nics.ce_received, ONSET + 15, 300).sum()
    assert received == pytest.approx(marks.sum(), rel=0.01)
    sent = rates(drained, drained.nics.cnp_sent, ONSET + 15, 300).sum()
    assert 0 < sent <= received
    assert rates(drained, drained.nics.cnp_handled, ONSET + 15, 300).sum() == pytest.approx(sent, rel=1e-9)
    assert drained.peak_lossless[drained.at(200) :, HOT].max() > LOSSLESS_PROFILE.kmin


def test_a_saturated_uplink_pauses_only_who_feeds_it_and_only_for_moments(drained: Telemetry) -> None:
    duty = rates(drained, drained.links.pause_us, ONSET + 15, 300) / 1e6
    assert 1e-6 < duty.max() < 0.01
    feeders = np.flatnonzero(duty > 1e-6)
    assert (feeders < FABRIC.nics).all()
    assert (FABRIC.nic_leaf[feeders] == 0).all()


def test_a_quiet_fabric_keeps_its_pace(quiet: Telemetry) -> None:
    seconds = np.array([step.seconds for step in quiet.steps])
    assert 0.002 < seconds.std() / seconds.mean() < 0.01
    assert abs(median_step(quiet, ONSET, 300) / median_step(quiet, 0, ONSET) - 1) < 0.01
    assert not quiet.links.frames_lost.any()
    assert rates(quiet, quiet.links.pause_us, 0, 300).max() / 1e6 < 1e-4


def test_storage_shows_in_its_own_class_and_leaves_the_job_alone(quiet: Telemetry) -> None:
    sent = quiet.links.tx_bytes_storage
    end = BURST.start_seconds + BURST.seconds
    assert not rates(quiet, sent, 0, 40).any()
    assert not rates(quiet, sent, end, 300).any()
    busy = np.flatnonzero(rates(quiet, sent, 40, end))
    leaves = {FABRIC.leaf_name(leaf) for leaf in range(FABRIC.leaves) if leaf % FABRIC.rails == BURST.rail}
    names = {port.device for ports in FABRIC.switches.values() for port in ports if port.egress in busy}
    assert names - leaves <= set(map(FABRIC.spine_name, range(FABRIC.spines)))
    assert median_step(quiet, 40, end) == pytest.approx(median_step(quiet, end, 300), rel=0.01)


# -- faults --------------------------------------------------------------------------------------------------
@given(st.lists(st.floats(0, 20), min_size=2, max_size=20))
def test_less_light_means_more_errors(lost: list[float]) -> None:
    ber = pre_fec_ber(np.full(len(lost), 1e-9), np.sort(lost))
    assert (np.diff(ber) >= 0).all()
    corrected, uncorrectable = codeword_error_ratios(ber)
    assert (np.diff(uncorrectable) >= 0).all()
    assert (corrected + uncorrectable <= 1 + 1e-12).all()


def test_a_dim_optic_loses_frames_at_its_end_and_only_its_flows_retry(dimmed: Telemetry) -> None:
    link = FABRIC.spine_down(0, 2)
    lost = dimmed.links.frames_lost[-1]
    assert lost[link] > 1000
    assert np.delete(lost, link).max() == 0
    assert dimmed.links.fec_uncorrected[dimmed.at(100), link] == 0
    naks = rates(dimmed, dimmed.nics.nak_received, 160, 300)
    gaps = rates(dimmed, dimmed.nics.out_of_sequence, 160, 300)
    assert (FABRIC.nic_leaf[np.flatnonzero(naks > 1)] == 2).all()
    assert (FABRIC.nic_leaf[np.flatnonzero(gaps > 1)] == 0).all()
    assert naks.sum() == pytest.approx(rates(dimmed, dimmed.links.frames_lost, 160, 300).sum(), rel=0.01)
    assert median_step(dimmed, 160, 300) > 1.1 * median_step(dimmed, 0, 100)
    # No congestion: nothing but the bursts of a healthy fabric.
    assert rates(dimmed, dimmed.links.marks_lossless, 160, 300).max() < 10


def test_a_pause_storm_spreads_upstream_on_its_rail_and_nowhere_else(stormy: Telemetry) -> None:
    nic = FABRIC.nic(2, 1)
    duty = rates(stormy, stormy.links.pause_us, ONSET + 10, 300) / 1e6
    assert duty.max() <= 1 + 1e-9
    root = FABRIC.nic_down(nic)
    assert duty[root] == pytest.approx(8 / 8.8, abs=0.02)
    paused = np.flatnonzero(duty > 0.5)
    assert duty[paused].max() == pytest.approx(duty[root], abs=1e-6)  # nobody is paused longer than the NIC hangs
    by_kind = {
        "spine": [link for link in paused if link >= FABRIC.spine_down(0, 0)],
        "leaf": [link for link in paused if 2 * FABRIC.nics <= link < FABRIC.spine_down(0, 0)],
        "host": [link for link in paused if link < FABRIC.nics],
    }
    assert all(by_kind.values()), by_kind
    assert all(FABRIC.nic_leaf[link] % FABRIC.rails == 1 for link in by_kind["host"])
    assert all((link - 2 * FABRIC.nics) // FABRIC.spines % FABRIC.rails == 1 for link in by_kind["leaf"])
    assert stormy.nics.storm_errors[-1].nonzero()[0].tolist() == [nic]
    assert median_step(stormy, ONSET, 300) > 3 * median_step(stormy, 0, ONSET)


# -- bundles -------------------------------------------------------------------------------------------------
def files_of(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


@pytest.fixture(scope="module")
def bundle(drained: Telemetry, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("fixtures") / "small"
    write_bundle(DRAIN, drained, folder)
    return folder


def test_a_scenario_gives_the_same_bytes_each_time(bundle: Path, tmp_path: Path) -> None:
    write_bundle(DRAIN, DRAIN.run(), tmp_path / "again")
    assert files_of(tmp_path / "again") == files_of(bundle)


def test_a_folder_that_is_no_bundle_is_not_emptied(drained: Telemetry, tmp_path: Path) -> None:
    (tmp_path / "thesis.txt").write_text("precious")
    with pytest.raises(FileExistsError, match=r"no incident\.yaml"):
        write_bundle(DRAIN, drained, tmp_path)
    assert (tmp_path / "thesis.txt").exists()


def test_gnmic_samples_are_ordered_and_count_what_the_model_sent(bundle: Path, drained: Telemetry) -> None:
    path = "/interfaces/interface/state/counters/out-octets"
    samples: list[tuple[int, int]] = []
    stamps: list[int] = []
    with gzip.open(bundle / "switches/leaf-01/gnmic.jsonl.gz", "rt") as lines:
        for line in lines:
            first = json.loads(line)[0]
            stamps.append(first["timestamp"])
            if first["tags"]["interface_name"] == "Ethernet12":
                samples.append((first["timestamp"], int(first["values"][path])))
    assert stamps == sorted(stamps)
    start = int(DRAIN.start.timestamp() * 1e9)
    first_row, last_row = (drained.at(round((stamp - start) / 1e9)) for stamp in (samples[0][0], samples[-1][0]))
    sent = drained.links.tx_bytes_lossless[:, HOT] + drained.links.tx_bytes_storage[:, HOT]
    assert samples[-1][1] - samples[0][1] == pytest.approx(sent[last_row] - sent[first_row], rel=1e-6)


def test_routes_and_syslog_tell_the_drain(bundle: Path) -> None:
    before, after = (
        json.loads(
            gzip.decompress((bundle / f"switches/leaf-01/show_ip_route_20261117T20{minute}00Z.json.gz").read_bytes())
        )
        for minute in ("15", "20")
    )
    widths = [
        {len(entry["vias"]) for entry in table["vrfs"]["default"]["routes"].values()} for table in (before, after)
    ]
    assert widths == [{4}, {3}]
    log = (bundle / "switches/leaf-01/syslog.log").read_text()
    peer = FABRIC.link_address(0, 1, True)
    assert log.count(f"%BGP-5-ADJCHANGE: peer {peer} ") == 1
    assert "LINEPROTO" not in log


def test_both_ends_of_a_host_link_count_the_same_pauses(stormy: Telemetry, tmp_path: Path) -> None:
    write_bundle(STORM, stormy, tmp_path / "storm")
    host, netdev = FABRIC.host_name(2), FABRIC.netdev(1)
    with tarfile.open(tmp_path / f"storm/hosts/{host}.tar.gz") as archive:
        readings = [
            dict(re.findall(r"(\w+): (\d+)", archive.extractfile(name).read().decode()))  # type: ignore[union-attr]
            for name in archive.getnames()
            if f"ethtool_-S/{netdev}_" in name
        ]
    first, last = ({key: int(value) for key, value in reading.items()} for reading in readings)
    on_switch = [
        json.loads(path.read_text())["interfaceCounters"][FABRIC.host_port(2)]
        for path in sorted((tmp_path / "storm/switches/leaf-02").glob("show_priority-flow-control_counters_*.json"))
    ]
    sent = last["tx_prio3_pause"] - first["tx_prio3_pause"]
    assert sent == pytest.approx(on_switch[-1]["rxFrames"] - on_switch[0]["rxFrames"], rel=0.2)  # read seconds apart
    assert last["tx_prio3_pause_duration"] - first["tx_prio3_pause_duration"] > 0.3 * 300e6
    assert last["tx_pause_storm_error_events"] >= 16
    assert last["rx_prio3_bytes"] <= last["rx_bytes_phy"]


def test_only_the_dim_end_reads_low_light(dimmed: Telemetry, tmp_path: Path) -> None:
    write_bundle(OPTIC, dimmed, tmp_path / "optic")
    low = set()
    for path in (tmp_path / "optic/switches").glob("*/show_interfaces_transceiver_dom_20261117T202000Z.json.gz"):
        for port, module in json.loads(gzip.decompress(path.read_bytes()))["interfaces"].items():
            power = module["parameters"]["rxPower"]
            if min(power["channels"].values()) < power["threshold"]["lowWarn"]:
                low.add((path.parent.name, port))
    assert low == {("leaf-01", "Ethernet11")}

    errors = growth(tmp_path / "optic/switches/leaf-01/gnmic.jsonl.gz", "Ethernet11", "in-fcs-errors")
    lost = dimmed.links.frames_lost[dimmed.at(300)].max()
    assert errors == pytest.approx(lost, rel=0.15)  # the last sample is some seconds before the window's end
    assert growth(tmp_path / "optic/switches/spine-03/gnmic.jsonl.gz", "Ethernet1", "in-fcs-errors") == 0


def growth(path: Path, port: str, leaf: str) -> int:
    """Increase of an interface counter over a device's gnmic file."""
    with gzip.open(path, "rt") as lines:
        events = [event for line in lines for event in json.loads(line) if event["tags"].get("interface_name") == port]
    key = f"/interfaces/interface/state/counters/{leaf}"
    values = [int(event["values"][key]) for event in events if key in event["values"]]
    return values[-1] - values[0]


@pytest.mark.parametrize("name", ["inc-4127", "inc-4128", "inc-4130"])
def test_committed_incidents_agree_with_their_scenarios(name: str) -> None:
    chosen, folder = scenario(name), INCIDENTS / name
    assert yaml.safe_load((folder / "incident.yaml").read_text()) == yaml.safe_load(incident_yaml(chosen))
    lines = [json.loads(line) for line in (folder / "jobs/steps_run-0412.jsonl").read_text().splitlines()]
    ended = [(datetime.fromisoformat(line["ts"]) - chosen.start).total_seconds() for line in lines]
    steps = [Step(line["step"], end, line["step_time_s"]) for line, end in zip(lines, ended, strict=True)]
    assert json.loads((folder / "truth.json").read_text()) == json.loads(truth_json(chosen, steps))


def test_inc_4127_slows_by_about_23_percent() -> None:
    truth = json.loads((INCIDENTS / "inc-4127" / "truth.json").read_text())
    assert 21 <= truth["step_change_pct"]["run-0412"] <= 25
