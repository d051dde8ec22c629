"""Reading whole bundles: every file is claimed or listed, by its content, and the truth beside it is never read."""

from __future__ import annotations

import gzip
from collections.abc import Iterator
from pathlib import Path

import pytest
from bundle_members import CASES, GNMIC, LLDP, write_folder

from causeline import adapters
from causeline.adapters import Hints
from causeline.adapters.base import RawFile
from causeline.engine.facts import Cable, Event, Fact, ReadIssue, Series


def test_folder_is_read_whole(bundle: Path) -> None:
    reading = adapters.read(bundle)
    assert (reading.incident.id, reading.incident.fabric, reading.incident.job) == ("INC-1", "lab", "run-0412")
    assert reading.incident.window == (1794946500.0, 1794948300.0)
    assert reading.incident.onset is None
    host = "hosts/gpu-worker-042.tar.gz/gpu-worker-042"
    by_path = {file.path: file.adapter for file in reading.files}
    assert by_path == {
        f"{host}/ethtool_-S/ens11f0np0_20261117T203000Z.txt": "mlx5-ethtool-statistics",
        f"{host}/ethtool_-i/ens11f0np0.txt": "ethtool-driver",
        f"{host}/ibdev2netdev.txt": "ibdev2netdev",
        f"{host}/rdma/mlx5_3_20261117T203000Z.txt": "rdma-hw-counters",
        "incident.yaml": "incident",
        "jobs/scontrol_show_job.txt": "slurm-job",
        "switches/leaf-07/gnmic.jsonl.gz": "gnmic-events",
        "switches/leaf-07/show_priority-flow-control_counters_20261117T203000Z.json": "eos-pfc-counters",
        "switches/leaf-07/syslog.log": "switch-syslog",
        "switches/leaf-15/syslog": "switch-syslog",
    }
    assert {issue.code for issue in reading.issues} == {"assumed-time-zone"}
    assert {file.path for file in reading.files if file.facts == 0} == {"incident.yaml"}


@pytest.mark.parametrize(
    "answer", [b"{}", b"not json at all", b"\x00\x01", None], ids=["other", "text", "binary", "deleted"]
)
def test_truth_is_never_read(bundle: Path, answer: bytes | None) -> None:
    (bundle / "truth.json").write_bytes(b'{"causes": [{"accept": ["path.ecmp_redistribution"]}]}')
    before = adapters.read(bundle)
    if answer is None:
        (bundle / "truth.json").unlink()
    else:
        (bundle / "truth.json").write_bytes(answer)
    after = adapters.read(bundle)
    assert (before.facts, before.issues, before.files) == (after.facts, after.issues, after.files)
    assert not [file for file in after.files if "truth" in file.path]
    assert after.excerpt("truth.json", "/causes") == ""


def test_wrong_extension_is_recognised_by_content(bundle: Path) -> None:
    write_folder(
        bundle,
        {"switches/leaf-08/neighbours_20261117T203000Z.txt": LLDP},
    )
    write_folder(bundle, {"switches/leaf-08/gnmic.json": gzip.compress(GNMIC)})
    reading = adapters.read(bundle)
    assert [fact.b_device for fact in reading.facts if isinstance(fact, Cable)] == ["s"]
    assert "leaf-08" in {fact.device for fact in reading.facts if isinstance(fact, Series)}


def test_two_claims_on_a_file_name_both_adapters(tmp_path: Path) -> None:
    path = tmp_path / "lldp.json"
    path.write_text('{"lldpNeighbors": []}')

    class Greedy(Stub):
        name = "greedy"

    reading = adapters.try_file(path, Hints(device="leaf-07"), adapters=(*adapters.available(), Greedy()))
    (issue,) = reading.issues
    assert (issue.code, issue.level.value) == ("two-adapters", "error")
    assert "greedy" in issue.message and "eos-lldp-neighbors" in issue.message
    assert reading.facts == () and reading.files[0].adapter is None


class Stub:
    name = "stub"
    reads = "anything"
    emits: tuple[str, ...] = ("InterfaceAlias",)
    absence = (("InterfaceAlias", "nothing"),)

    def matches(self, file: RawFile) -> bool:
        return True

    def read(self, file: RawFile) -> Iterator[Fact | ReadIssue]:
        return iter(())


def test_crash_keeps_what_was_read_before(tmp_path: Path) -> None:
    path = tmp_path / "names.txt"
    path.write_text("x\n")

    class Crashing(Stub):
        def read(self, file: RawFile) -> Iterator[Fact | ReadIssue]:
            yield Cable("a", "1", "b", "2", "observed", file.provenance(self.name, "line 1"))
            raise ZeroDivisionError("division by zero")

    reading = adapters.try_file(path, Hints(), adapters=(Crashing(),))
    (issue,) = reading.issues
    assert (issue.code, issue.level.value) == ("adapter-crash", "error")
    assert "stub" in issue.message and "ZeroDivisionError: division by zero" in issue.message
    assert len(reading.facts) == 1 and reading.files[0].facts == 1 and reading.files[0].adapter == "stub"


def test_crash_while_recognising_does_not_keep_others_from_reading(tmp_path: Path) -> None:
    path = tmp_path / "lldp.json"
    path.write_text('{"lldpNeighbors": []}')

    class Confused(Stub):
        def matches(self, file: RawFile) -> bool:
            raise KeyError("header")

    reading = adapters.try_file(path, Hints(device="leaf-07"), adapters=(*adapters.available(), Confused()))
    assert [issue.code for issue in reading.issues] == ["adapter-crash"]
    assert reading.files[0].adapter == "eos-lldp-neighbors"


def test_excerpts_read_the_record_again(bundle: Path) -> None:
    reading = adapters.read(bundle)
    for fact in reading.facts:
        text = reading.excerpt(fact.provenance.source, fact.provenance.record)
        assert 0 < len(text) <= 300 and "\n" not in text
    bgp = next(fact for fact in reading.facts if isinstance(fact, Event) and fact.kind == "session_down")
    assert bgp.statement in reading.excerpt(bgp.provenance.source, bgp.provenance.record)
    pfc = "switches/leaf-07/show_priority-flow-control_counters_20261117T203000Z.json"
    assert reading.excerpt(pfc, "/interfaceCounters/Ethernet12") == 'Ethernet12: {"rxFrames":4711,"txFrames":12}'
    assert reading.excerpt(pfc, "/interfaceCounters/Ethernet99") == ""
    assert reading.excerpt("nowhere.txt", "line 1") == ""
    telemetry = "switches/leaf-07/gnmic.jsonl.gz"
    shown = reading.excerpt(telemetry, "line 3 Ethernet12 TC3 ecn-marked-pkts")
    assert all(one in shown for one in ('"Ethernet12"', '"TC3"', '/ecn-marked-pkts": "81330"')) and len(shown) <= 300
    assert reading.excerpt(telemetry, "line 3").startswith('[{"name": "fabric"')
    assert reading.excerpt(telemetry, "line 3 nothing") == reading.excerpt(telemetry, "line 3")
    marks = next(fact for fact in reading.facts if isinstance(fact, Series) and fact.metric == "ecn_marked_packets")
    assert marks.provenance.record == "lines 2-4 Ethernet12 TC3 ecn-marked-pkts"


BUNDLES = sorted(path.parent for path in CASES.parent.glob("*/*/incident.yaml"))


@pytest.mark.parametrize("whole", BUNDLES, ids=lambda path: path.name)
def test_every_file_of_the_incident_bundles_is_read_without_a_complaint(whole: Path, tmp_path: Path) -> None:
    """A leaf, a spine, an FRR leaf, a host and the rest of each bundle: the others are of the same kind."""
    kept = [path for path in whole.rglob("*") if path.is_file()]
    for path in kept:
        name = path.relative_to(whole).as_posix()
        if not name.startswith(("switches/", "hosts/")) or any(
            one in name for one in ("leaf-07", "leaf-16", "spine-03", "042")
        ):
            write_folder(tmp_path / "b", {name: path.read_bytes()})
    reading = adapters.read(tmp_path / "b")
    assert {(issue.level.value, issue.code) for issue in reading.issues} <= {
        ("note", "not-counted"),
        ("note", "assumed-time-zone"),
    }
    assert all(file.adapter for file in reading.files)
    found = {fact.metric if isinstance(fact, Series) else type(fact).__name__ for fact in reading.facts}
    assert {"step_seconds", "queue_peak_bytes", "pfc_tx_pause_us", "cnp_sent", "optic_rx_dbm", "pre_fec_ber"} <= found
    assert {"RouteState", "Event", "Cable", "InterfaceAlias", "FirmwareState", "JobPlacement"} <= found


def test_progress_is_reported(tmp_path: Path) -> None:
    folder = write_folder(tmp_path / "b", {f"notes/{number:04}.txt": b"x" for number in range(600)})
    said: list[str] = []
    adapters.read(folder, progress=said.append)
    assert said == ["500 files read, 0 facts"]
