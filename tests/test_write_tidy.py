"""The tidy bundle of a simulated run: adapters read it whole, and it says what was run."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from simulated import DESIGN, FABRIC, JOB, ONSET, SECONDS, START, Cut, by_place, grown, played

from causeline import adapters
from causeline.engine.facts import Cable, Event, EventKind, JobPlacement, QosProfile, Series
from causeline.fixtures.faults import DRAWERS, Injection, Scene
from causeline.fixtures.model.conditions import Conditions
from causeline.fixtures.model.fabric import Fabric
from causeline.fixtures.model.fault import Record
from causeline.fixtures.model.run import Setup, run
from causeline.fixtures.model.telemetry import Telemetry
from causeline.fixtures.readings import Collection, Reading, readings
from causeline.fixtures.truth import Truth
from causeline.fixtures.write_tidy import Bundle, cables, write_tidy

# -- the bundle


def bundle_of(telemetry: Telemetry, found: tuple[Reading, ...], **more: object) -> Bundle:
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
    write_tidy(
        bundle_of(cut, cut_readings, truth=Truth((site,), victims=("run-1",), step_change={"run-1": 0.5})), folder
    )
    return folder


def test_adapters_read_the_bundle_without_an_issue(
    written: Path, lossy: Telemetry, lossy_readings: tuple[Reading, ...], tmp_path: Path
) -> None:
    write_tidy(bundle_of(lossy, lossy_readings), tmp_path / "lossy")
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
    write_tidy(bundle_of(cut, (), planned=planned), tmp_path / "one")
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

    write_tidy(bundle_of(played(Moved()), ()), tmp_path / "moved")
    jobs = [fact for fact in adapters.read(tmp_path / "moved").facts if isinstance(fact, JobPlacement)]
    assert [(job.start, job.end) for job in jobs] == [
        (None, START.timestamp() + ONSET),
        (START.timestamp() + ONSET, None),
    ]
    assert "gpu-worker-008" in jobs[1].hosts and "gpu-worker-008" not in jobs[0].hosts


def test_the_same_run_is_the_same_bundle_byte_for_byte(written: Path, tmp_path: Path) -> None:
    telemetry = played(Cut())
    again = readings(telemetry, Collection(seed=5))
    write_tidy(bundle_of(telemetry, again), tmp_path / "again")
    names = sorted(path.name for path in written.iterdir() if path.name != "truth.json")
    assert names == sorted(path.name for path in (tmp_path / "again").iterdir())
    assert len(names) == 8
    for name in names:
        assert (tmp_path / "again" / name).read_bytes() == (written / name).read_bytes(), name


def test_a_storm_is_written_with_its_truth(tmp_path: Path) -> None:
    from causeline.engine.scoring.scoreboard import read_truth

    scene = Scene(FABRIC, DESIGN, (JOB,), (), SECONDS, ONSET, 1.0, True, np.random.default_rng(2))
    storm = DRAWERS["nic.pause_storm"](scene)
    telemetry = run(Setup(FABRIC, DESIGN, (JOB,), (), storm.faults, SECONDS, 10.0, 1))
    found = readings(telemetry, Collection())
    truth = Truth((storm,), victims=("run-1",), step_change={"run-1": float("inf")})
    write_tidy(bundle_of(telemetry, found, truth=truth), tmp_path / "storm")
    read = read_truth(tmp_path / "storm" / "truth.json")
    assert read.causes[0].accept == ("nic.pause_storm",) and read.victim_jobs == ("run-1",)
    (nic, leaf) = storm.sites
    assert nic.port is not None and leaf.port is not None
    table = by_place(found)
    assert grown(table, leaf.device, leaf.port, "pfc_rx_pause_us", "3") > 0.8e6 * (SECONDS - ONSET)
    assert grown(table, nic.device, nic.port, "nic_pause_storm_errors") > 10
