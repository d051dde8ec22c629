"""What a collector reads of a simulated run, what collection spoils of it, and the tidy bundle written from it."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
import pytest

from causeline import adapters
from causeline.engine.facts import Cable, Event, EventKind, JobPlacement, QosProfile, Series
from causeline.engine.metrics import METRICS, MetricKind, Qualifier
from causeline.fixtures.defects import as_collected, clock_off, missed_polls, narrow, reset, spoiled, stale, thinned
from causeline.fixtures.faults import DRAWERS, Injection, Scene
from causeline.fixtures.model.conditions import Conditions, Design
from causeline.fixtures.model.dcqcn import CNP_BYTES, PACKET_BYTES, QueueProfile
from causeline.fixtures.model.fabric import Fabric, Floats
from causeline.fixtures.model.fault import Record
from causeline.fixtures.model.run import Setup, run
from causeline.fixtures.model.telemetry import Telemetry
from causeline.fixtures.model.traffic import Background, Collective, Job, Pattern
from causeline.fixtures.readings import Collection, Reading, readings
from causeline.fixtures.truth import Truth
from causeline.fixtures.write_tidy import Bundle, cables, write_tidy

START = datetime(2026, 11, 17, 20, 15, tzinfo=UTC)
ONSET, SECONDS = 300.0, 600.0
FABRIC = Fabric("small", units=2, hosts_per_unit=4, rails=2, spines=2, uplink_gbps=400)
DESIGN = Design(
    np.arange(FABRIC.leaves) * 7919 + 3,
    np.arange(FABRIC.all_spines) * 31 + 11,
    QueueProfile.for_speed(400),
    QueueProfile.for_speed(400),
)
JOB = Job("run-1", "acme", (0, 4, 1, 5, 2, 6), (Collective(Pattern.RING, 40e9, 4),), 3.0, model="llm-7b")
READS = Background((3,), (7,), 0, 40.0, 200.0, SECONDS)

Key = tuple[str, str, str, str]


@dataclass(frozen=True)
class Lossy:
    """One link with bad light, one that loses silently, one that discards, and a clock that is ahead."""

    onset: float = ONSET

    def changes(self, until: float) -> tuple[float, ...]:
        return (self.onset,)

    def apply(self, conditions: Conditions, fabric: Fabric, at: float) -> None:
        conditions.light_lost_db[fabric.leaf_up(0, 0)] = 4.6
        conditions.silent_loss[fabric.leaf_up(1, 1)] = 0.01
        conditions.oversize_loss[fabric.leaf_up(1, 0)] = 0.01
        conditions.drain[fabric.nic(0, 1)] = 0.5
        conditions.clock_offset[1] = 7.0

    def records(self, fabric: Fabric, until: float) -> tuple[Record, ...]:
        return ()


@dataclass(frozen=True)
class Overflow(Lossy):
    """Queues do not mark, and may not pause (`pauses` False) or pause too late."""

    pauses: bool = False

    def apply(self, conditions: Conditions, fabric: Fabric, at: float) -> None:
        conditions.sends_pause[:] = self.pauses
        conditions.profiles[:] = [replace(one, pmax=0.0, headroom=1e4) for one in conditions.profiles]


@dataclass(frozen=True)
class Cut:
    """A cable that goes down."""

    onset: float = ONSET

    def changes(self, until: float) -> tuple[float, ...]:
        return (self.onset,)

    def apply(self, conditions: Conditions, fabric: Fabric, at: float) -> None:
        conditions.take_down(fabric, fabric.leaf_up(0, 0))

    def records(self, fabric: Fabric, until: float) -> tuple[Record, ...]:
        device, port = fabric.sending_port[fabric.leaf_up(0, 0)]
        return (Record(self.onset, "interface", device, port, "link down", (("state", "down"),)),)


def played(*faults: Lossy | Cut, jobs: tuple[Job, ...] = (JOB,)) -> Telemetry:
    return run(Setup(FABRIC, DESIGN, jobs, (READS,), faults, SECONDS, 10.0, 1))


@pytest.fixture(scope="module")
def lossy() -> Telemetry:
    return played(Lossy())


@pytest.fixture(scope="module")
def cut() -> Telemetry:
    return played(Cut())


@pytest.fixture(scope="module")
def lossy_readings(lossy: Telemetry) -> tuple[Reading, ...]:
    return readings(lossy, Collection(seed=5, flow_records_of="run-1", probe_pairs=6))


@pytest.fixture(scope="module")
def cut_readings(cut: Telemetry) -> tuple[Reading, ...]:
    return readings(cut, Collection(seed=5))


def by_place(found: tuple[Reading, ...]) -> dict[Key, Reading]:
    table = {(one.device, one.port, one.metric, one.qualifier): one for one in found}
    assert len(table) == len(found)
    return table


def grown(table: dict[Key, Reading], device: str, port: str, metric: str, qualifier: str = "") -> float:
    values = table[(device, port, metric, qualifier)].values
    return float(values[-1] - values[0])


def test_what_comes_into_a_switch_leaves_it_or_is_counted(
    lossy: Telemetry, lossy_readings: tuple[Reading, ...]
) -> None:
    seen = balanced(lossy, lossy_readings)
    assert seen["silent"] > 1e5 and seen["oversize"] > 1e5


@pytest.mark.parametrize("pauses", [False, True])
def test_what_a_full_queue_drops_is_counted(pauses: bool) -> None:
    telemetry = played(Overflow(pauses=pauses))
    seen = balanced(telemetry, readings(telemetry, Collection()))
    assert sum(seen.values()) == seen["pg"] > 1e4


def balanced(telemetry: Telemetry, found: tuple[Reading, ...]) -> dict[str, float]:
    """Packets lost in all switches by what counts them, after each switch's balance was checked."""
    table, silent = by_place(found), telemetry.links["silent_drops"][-1]
    seen: dict[str, float] = defaultdict(float)
    for device, ports in FABRIC.switches.items():
        into = sum(grown(table, device, port.name, "rx_packets") for port in ports)
        out = sum(grown(table, device, port.name, "tx_packets") for port in ports)
        lost = {
            "pg": sum(grown(table, device, port.name, "pg_drop_packets", "3") for port in ports),
            "queue": sum(grown(table, device, port.name, "queue_drop_packets", "3") for port in ports),
            "oversize": sum(grown(table, device, port.name, "port_discards_rx") for port in ports),
            "silent": float(sum(silent[port.ingress] for port in ports)),
        }
        assert into > 1e6
        assert into - out == pytest.approx(sum(lost.values()), abs=8 * len(ports)), device
        for name, packets in lost.items():
            seen[name] += packets
    return seen


def test_both_ends_of_a_link_agree(lossy_readings: tuple[Reading, ...], lossy: Telemetry) -> None:
    table = by_place(lossy_readings)
    bad = 0.0
    for link, sender in enumerate(FABRIC.sending_port):
        receiver = FABRIC.receiving_port[link]
        damaged = grown(table, *receiver, "fcs_errors")
        bad += damaged
        sent, arrived = grown(table, *sender, "tx_packets"), grown(table, *receiver, "rx_packets")
        assert sent - arrived == pytest.approx(damaged, abs=4)
        octets = grown(table, *sender, "tx_bytes") - grown(table, *receiver, "rx_bytes")
        assert octets == pytest.approx(damaged * PACKET_BYTES, abs=PACKET_BYTES * 4)
        for what in ("pause_frames", "xon_frames", "pause_us"):
            paused = grown(table, *sender, f"pfc_rx_{what}", "3")
            assert paused == pytest.approx(grown(table, *receiver, f"pfc_tx_{what}", "3"), abs=2)
    assert bad > 1e4


def test_bytes_of_the_classes_add_up_to_those_of_the_port(lossy_readings: tuple[Reading, ...]) -> None:
    table = by_place(lossy_readings)
    classes: dict[tuple[str, str], float] = defaultdict(float)
    for one in lossy_readings:
        if one.metric == "queue_tx_bytes":
            classes[(one.device, one.port)] += float(one.values[-1] - one.values[0])
    assert len(classes) == FABRIC.links
    for (device, port), octets in classes.items():
        assert octets == pytest.approx(grown(table, device, port, "tx_bytes"), abs=4 + CNP_BYTES)


def test_names_and_qualifiers_are_those_of_the_metrics(lossy_readings: tuple[Reading, ...]) -> None:
    for one in lossy_readings:
        metric = METRICS[one.metric]
        has_qualifier = metric.qualifier not in (Qualifier.NONE, Qualifier.GROUP)
        assert bool(one.qualifier) == has_qualifier, one.metric
        assert one.is_counter == (metric.kind is MetricKind.COUNTER), one.metric
        if one.is_counter:
            assert (np.diff(one.values) >= 0).all() and one.values[0] >= 0, one.metric


def test_a_cable_that_goes_down_shows_at_both_ends(cut_readings: tuple[Reading, ...]) -> None:
    table = by_place(cut_readings)
    link = FABRIC.leaf_up(0, 0)
    for device, port in (FABRIC.sending_port[link], FABRIC.receiving_port[link]):
        up = table[(device, port, "oper_up", "")]
        assert up.values[up.times < ONSET].all() and not up.values[up.times >= ONSET].any()
        speed = table[(device, port, "speed_bps", "")].values
        assert speed[0] == 400e9 and np.isnan(speed[-1])
        assert grown(table, device, port, "link_down_events") == 1
    members = table[("leaf-01", "to:leaf-03", "ecmp_members", "")]
    assert members.values[0] == 2 and members.values[-1] == 1
    assert table[("leaf-02", "to:leaf-04", "ecmp_members", "")].values[-1] == 2


def test_bad_light_shows_at_the_receiver_only(lossy_readings: tuple[Reading, ...]) -> None:
    table, link = by_place(lossy_readings), FABRIC.leaf_up(0, 0)
    near, far = FABRIC.sending_port[link], FABRIC.receiving_port[link]
    rx = table[(*far, "optic_rx_dbm", "2")].values
    assert rx[0] - rx[-1] == pytest.approx(4.6, abs=0.5)
    for place, metric in ((near, "optic_rx_dbm"), (near, "optic_tx_dbm"), (far, "optic_tx_dbm")):
        values = table[(*place, metric, "2")].values
        assert values[0] == pytest.approx(values[-1], abs=0.5)
    assert table[(*far, "pre_fec_ber", "")].values[-1] > 1e-4
    assert table[(*near, "pre_fec_ber", "")].values[-1] < 1e-6


@dataclass(frozen=True)
class Worn(Lossy):
    """A laser that ages, and a link that flaps between two polls."""

    def changes(self, until: float) -> tuple[float, ...]:
        return (self.onset, self.onset + 2.0, self.onset + 5.0)

    def apply(self, conditions: Conditions, fabric: Fabric, at: float) -> None:
        laser = fabric.leaf_up(0, 0)
        conditions.light_lost_db[laser] = conditions.tx_lost_db[laser] = 2.0
        conditions.bias_added_ma[laser] = 30.0
        if self.onset + 2.0 <= at < self.onset + 5.0:
            conditions.take_down(fabric, fabric.leaf_up(3, 1))


def test_what_a_module_and_a_flap_show() -> None:
    fabric = replace(FABRIC, has_copper_hosts=True)
    table = by_place(readings(run(Setup(fabric, DESIGN, (JOB,), (), (Worn(),), SECONDS, 10.0, 1)), Collection()))
    sender, receiver = fabric.sending_port[fabric.leaf_up(0, 0)], fabric.receiving_port[fabric.leaf_up(0, 0)]
    changes = {
        (place, metric): table[(*place, metric, "1")].values[-1] - table[(*place, metric, "1")].values[0]
        for place in (sender, receiver)
        for metric in ("optic_tx_dbm", "optic_rx_dbm", "optic_bias_ma")
    }
    expected = {(sender, "optic_tx_dbm"): -2.0, (sender, "optic_bias_ma"): 30.0, (receiver, "optic_rx_dbm"): -2.0}
    for key, change in changes.items():
        assert change == pytest.approx(expected.get(key, 0.0), abs=1.5 if key[1] == "optic_bias_ma" else 0.3), key
    flapping = fabric.sending_port[fabric.leaf_up(3, 1)]
    assert table[(*flapping, "oper_up", "")].values.all()
    assert grown(table, *flapping, "link_down_events") == 1
    assert ("gpu-worker-001", "mlx5_0", "optic_rx_dbm", "1") not in table


def test_flow_records_tell_foreign_bytes(lossy_readings: tuple[Reading, ...]) -> None:
    table = by_place(lossy_readings)
    leaf, port = FABRIC.sending_port[FABRIC.nic_down(FABRIC.nic(7, 0))]
    share = table[(leaf, port, "foreign_byte_share", "3")].values
    assert np.nanmin(share[25:]) == 1.0  # only storage reads go to this host


def test_probes_see_the_loss_that_nobody_counts(lossy_readings: tuple[Reading, ...]) -> None:
    found = [one for one in lossy_readings if one.metric == "loss_ratio"]
    assert len(found) == 6
    before = max(float(one.values[one.times < ONSET].max()) for one in found)
    after = max(float(one.values[one.times >= ONSET].mean()) for one in found)
    assert before <= 0.01 < after
    round_trip = next(one for one in lossy_readings if one.metric == "latency_us")
    assert 3.0 < np.nanmin(round_trip.values) < 20.0


def test_a_host_whose_clock_is_ahead_stamps_so(lossy_readings: tuple[Reading, ...]) -> None:
    table = by_place(lossy_readings)
    late = table[("gpu-worker-002", "mlx5_0", "tx_bytes", "")].times
    assert (late - table[("gpu-worker-001", "mlx5_0", "tx_bytes", "")].times == 7.0).all()


# -- what collection spoils


def test_a_removed_share_is_removed(cut_readings: tuple[Reading, ...]) -> None:
    groups = {(one.device, one.metric) for one in cut_readings}
    for share in (0.25, 0.5, 0.75):
        kept = thinned(cut_readings, share, np.random.default_rng(1))
        left = {(one.device, one.metric) for one in kept}
        assert len(left) == len(groups) - round(share * len(groups))
        assert set(map(id, kept)) == {id(one) for one in cut_readings if (one.device, one.metric) in left}
    devices = {one.device for one in thinned(cut_readings, 0.5, np.random.default_rng(1), by="device")}
    assert len(devices) == round(0.5 * len({one.device for one in cut_readings}))


def test_a_reset_device_counts_from_zero(cut_readings: tuple[Reading, ...]) -> None:
    before = by_place(cut_readings)
    table = by_place(reset(cut_readings, "leaf-01", 150.0, silent_seconds=25.0))
    port = FABRIC.uplink_port(0)
    sent = table[("leaf-01", port, "tx_bytes", "")].values
    assert np.isnan(sent[15:18]).all() and np.isfinite(sent[18:]).all()
    assert sent[18] < sent[14] and sent[18] == before[("leaf-01", port, "tx_bytes", "")].values[[14, 18]] @ [-1, 1]
    assert table[("leaf-02", port, "tx_bytes", "")] is before[("leaf-02", port, "tx_bytes", "")]
    assert table[("leaf-01", port, "oper_up", "")].values[20] == 1.0


def test_a_narrow_counter_wraps_or_saturates(cut_readings: tuple[Reading, ...]) -> None:
    key = ("gpu-worker-001", "mlx5_0", "tx_packets", "")
    honest = by_place(cut_readings)[key].values
    for end in ("wraps", "saturates"):
        table = by_place(narrow(cut_readings, key[2], key[0], 32, end, np.random.default_rng(3)))  # type: ignore[arg-type]
        values = table[key].values
        assert (values >= 0).all() and values.max() <= 2**32 - 1
        if end == "wraps":
            assert ((np.diff(values) - np.diff(honest)) % 2**32 == 0).all() and (np.diff(values) < 0).any()
        else:
            assert (np.diff(values) >= 0).all() and (values[-5:] == 2**32 - 1).all()


def test_polls_are_missed_by_a_device_as_a_whole(cut_readings: tuple[Reading, ...]) -> None:
    table = by_place(missed_polls(cut_readings, 0.2, np.random.default_rng(4)))
    gone = np.isnan(table[("leaf-01", FABRIC.uplink_port(0), "tx_bytes", "")].values)
    assert 0.05 < gone.mean() < 0.4
    assert (gone == np.isnan(table[("leaf-01", FABRIC.uplink_port(1), "rx_packets", "")].values)).all()
    assert (gone != np.isnan(table[("leaf-02", FABRIC.uplink_port(0), "tx_bytes", "")].values)).any()


def test_a_clock_that_is_off_and_an_exporter_that_repeats(cut_readings: tuple[Reading, ...]) -> None:
    key, honest = ("spine-01", "Ethernet1", "rx_bytes", ""), by_place(cut_readings)
    off = by_place(clock_off(cut_readings, "spine-01", -3.5))[key]
    assert (honest[key].times - off.times == 3.5).all() and (off.values == honest[key].values).all()
    held = by_place(stale(cut_readings, "spine-01", 30.0))[key].values
    assert (held[:6] == honest[key].values[[0, 0, 0, 3, 3, 3]]).all()


def test_a_site_spoils_few_devices_and_now_and_then_none(cut_readings: tuple[Reading, ...]) -> None:
    hit = []
    for seed in range(60):
        spoiled_once = as_collected(cut_readings, 300.0, np.random.default_rng(seed))
        assert [(one.device, one.metric) for one in spoiled_once] == [(one.device, one.metric) for one in cut_readings]
        hit.append({now.device for now, before in zip(spoiled_once, cut_readings, strict=True) if now is not before})
    assert min(map(len, hit)) == 0 and 2 <= max(map(len, hit)) <= 4
    assert len(set.union(*hit)) > 6


def test_defects_of_faults_hit_their_place_only(cut_readings: tuple[Reading, ...]) -> None:
    class Stuck:
        def hits(self, metric: str, device: str, port: str) -> bool:
            return (metric, device) == ("tx_bytes", "leaf-01")

        def spoil(self, times: Floats, values: Floats) -> Floats:
            return np.full_like(values, values[0])

    before = by_place(cut_readings)
    for key, one in by_place(spoiled(cut_readings, (Stuck(),))).items():
        if (one.metric, one.device) == ("tx_bytes", "leaf-01"):
            assert (one.values == one.values[0]).all()
        else:
            assert one is before[key]


# -- the bundle


def bundle(telemetry: Telemetry, found: tuple[Reading, ...], **more: object) -> Bundle:
    records = (
        *Cut().records(FABRIC, SECONDS),
        Record(100.0, "config_commit", "leaf-02", "", "snmp community rotated"),
        Record(120.0, "job_event", "run-1", "", "data loader config reloaded"),
        Record(130.0, "syslog", "leaf-02", "", "LLDP neighbour aged out"),
    )
    one = Bundle("drill-7", telemetry, (JOB,), START, found, records, job="run-1")
    return replace(one, **more)  # type: ignore[arg-type]


@pytest.fixture(scope="module")
def written(cut: Telemetry, cut_readings: tuple[Reading, ...], tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("tidy") / "drill-7"
    site = Injection(("phy.link_flap",), "cut", (), ONSET)
    write_tidy(bundle(cut, cut_readings, truth=Truth((site,), victims=("run-1",), step_change={"run-1": 0.5})), folder)
    return folder


def test_adapters_read_the_bundle_without_an_issue(
    written: Path, lossy: Telemetry, lossy_readings: tuple[Reading, ...], tmp_path: Path
) -> None:
    write_tidy(bundle(lossy, lossy_readings), tmp_path / "lossy")
    for folder, found in ((tmp_path / "lossy", lossy_readings), (written, None)):
        reading = adapters.read(folder)
        assert reading.issues == ()
        assert {file.adapter for file in reading.files} >= {"tidy-telemetry", "tidy-topology", "tidy-jobs"}
        if found is not None:
            series = [fact for fact in reading.facts if isinstance(fact, Series)]
            counted = [
                one
                for one in series
                if one.metric not in ("step_seconds", "step_open", "rank_send_start", "rank_send_done")
            ]
            assert len(counted) == len(found)
            assert {one.metric for one in counted} == {one.metric for one in found}


def test_the_bundle_says_what_was_run(written: Path, cut: Telemetry, cut_readings: tuple[Reading, ...]) -> None:
    reading = adapters.read(written)
    assert reading.incident.onset is None and reading.incident.job == "run-1"
    assert reading.incident.window == (START.timestamp(), START.timestamp() + SECONDS)
    series = {
        (fact.device, fact.port, fact.metric, fact.qualifier): fact
        for fact in reading.facts
        if isinstance(fact, Series)
    }
    key = ("leaf-01", FABRIC.uplink_port(1), "tx_bytes", "")
    one = by_place(cut_readings)[key]
    assert series[key].values == tuple(one.values.tolist())
    assert series[key].times == tuple((START.timestamp() + one.times).tolist())
    steps = series[("run-1", "", "step_seconds", "")].values
    assert steps == pytest.approx([step.seconds for step in cut.steps["run-1"] if step.end is not None], abs=0.002)
    (job,) = (fact for fact in reading.facts if isinstance(fact, JobPlacement))
    assert (job.tenant, job.model, job.traffic, len(job.hosts)) == ("acme", "llm-7b", "ring_allreduce", 6)
    assert job.bytes_per_step == 80e9
    observed = {(c.a_device, c.a_port, c.b_device, c.b_port) for c in _cables(reading.facts, "observed")}
    assert observed == set(cables(FABRIC)) and len(observed) == FABRIC.links // 2
    profiles = [fact for fact in reading.facts if isinstance(fact, QosProfile)]
    assert len(profiles) == 2 * len(FABRIC.switches)
    assert {profile.ecn_kmin_bytes for profile in profiles} == {150e3}
    events = {fact.kind: fact for fact in reading.facts if isinstance(fact, Event)}
    assert events[EventKind.LINK_DOWN].at == START.timestamp() + ONSET
    assert {EventKind.CONFIG_CHANGE, EventKind.JOB_CHANGE, EventKind.LOG_LINE} < set(events)


def _cables(facts: tuple[object, ...], kind: str) -> list[Cable]:
    return [fact for fact in facts if isinstance(fact, Cable) and fact.kind == kind]


def test_a_plan_that_was_not_followed(cut: Telemetry, tmp_path: Path) -> None:
    built = cables(FABRIC)
    (a, a_port, b, b_port), (c, c_port, d, d_port) = built[-1], built[0]
    planned = ((a, a_port, d, d_port), (c, c_port, b, b_port), *built[1:-1])
    write_tidy(bundle(cut, (), planned=planned), tmp_path / "one")
    facts = adapters.read(tmp_path / "one").facts
    ends = [
        {(x.a_device, x.a_port, x.b_device, x.b_port) for x in _cables(facts, kind)}
        for kind in ("observed", "intended")
    ]
    assert ends == [set(built), set(planned)]


def test_a_job_that_moved_has_both_placements(tmp_path: Path) -> None:
    class Moved(Cut):
        def apply(self, conditions: Conditions, fabric: Fabric, at: float) -> None:
            conditions.job("run-1").hosts = (0, 1, 2, 3, 4, 7)

    write_tidy(bundle(played(Moved()), ()), tmp_path / "moved")
    jobs = [fact for fact in adapters.read(tmp_path / "moved").facts if isinstance(fact, JobPlacement)]
    assert [(job.start, job.end) for job in jobs] == [
        (None, START.timestamp() + ONSET),
        (START.timestamp() + ONSET, None),
    ]
    assert "gpu-worker-008" in jobs[1].hosts and "gpu-worker-008" not in jobs[0].hosts


def test_the_same_run_is_the_same_bundle_byte_for_byte(written: Path, tmp_path: Path) -> None:
    telemetry = played(Cut())
    again = readings(telemetry, Collection(seed=5))
    write_tidy(bundle(telemetry, again), tmp_path / "again")
    names = sorted(path.name for path in written.iterdir() if path.name != "truth.json")
    assert names == sorted(path.name for path in (tmp_path / "again").iterdir())
    assert len(names) == 8
    for name in names:
        assert (tmp_path / "again" / name).read_bytes() == (written / name).read_bytes(), name


def test_a_storm_is_written_with_its_truth(tmp_path: Path) -> None:
    from causeline.engine.scoreboard import read_truth

    scene = Scene(FABRIC, DESIGN, (JOB,), (), SECONDS, ONSET, 1.0, True, np.random.default_rng(2))
    storm = DRAWERS["nic.pause_storm"](scene)
    telemetry = run(Setup(FABRIC, DESIGN, (JOB,), (), storm.faults, SECONDS, 10.0, 1))
    found = readings(telemetry, Collection())
    truth = Truth((storm,), victims=("run-1",), step_change={"run-1": float("inf")})
    write_tidy(bundle(telemetry, found, truth=truth), tmp_path / "storm")
    read = read_truth(tmp_path / "storm" / "truth.json")
    assert read.causes[0].accept == ("nic.pause_storm",) and read.victim_jobs == ("run-1",)
    (nic, leaf) = storm.sites
    assert nic.port is not None and leaf.port is not None
    table = by_place(found)
    assert grown(table, leaf.device, leaf.port, "pfc_rx_pause_us", "3") > 0.8e6 * (SECONDS - ONSET)
    assert grown(table, nic.device, nic.port, "nic_pause_storm_errors") > 10
