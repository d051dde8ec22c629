"""Reading whole bundles: every kind of archive gives the same facts, and bad files cost only themselves."""

from __future__ import annotations

import bz2
import gzip
import io
import json
import lzma
import math
import random
import tarfile
import zipfile
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
import yaml
import zstandard
from hypothesis import given
from hypothesis import strategies as st

from causeline import adapters
from causeline.adapters import Hints
from causeline.adapters.archives import Bundle, Limits
from causeline.adapters.base import RawFile
from causeline.adapters.clock import Clock
from causeline.adapters.manifest import read_manifest
from causeline.engine.errors import UnreadableInput
from causeline.engine.facts import Cable, Event, Fact, JobPlacement, Reading, ReadIssue, Series

CASES = Path(__file__).parents[1] / "fixtures" / "adapters"
MEMBERS = {
    "incident.yaml": "id: INC-1\nfabric: lab\njob: run-0412\nwindow: [2026-11-17T20:15:00Z, 2026-11-17T20:45:00Z]\n",
    "switches/leaf-07/show_priority-flow-control_counters_20261117T203000Z.json": (
        CASES / "eos-pfc-counters/normal/pfc.json"
    ).read_text(),
    "switches/leaf-07/syslog.log": (CASES / "switch-syslog/normal/syslog.log").read_text(),
    "switches/leaf-15/syslog": "Nov 17 20:31:00 leaf-15 Ebra: %LINEPROTO-5-UPDOWN: "
    "Line protocol on Interface Ethernet4, changed state to down\n",
    "jobs/scontrol_show_job.txt": (CASES / "slurm-job/normal/scontrol.txt").read_text(),
}
GNMIC = (CASES / "gnmic-events/normal/gnmic.jsonl").read_bytes()
LLDP = b'{"lldpNeighbors": [{"port": "Ethernet1", "neighborDevice": "s", "neighborPort": "Ethernet2"}]}'
HOST = {
    "gpu-worker-042/ethtool_-S/ens11f0np0_20261117T203000Z.txt": (
        CASES / "mlx5-ethtool-statistics/normal/ethtool_S.txt"
    ).read_text(),
    "gpu-worker-042/ethtool_-i/ens11f0np0.txt": (CASES / "ethtool-driver/normal/ethtool_i.txt").read_text(),
    "gpu-worker-042/rdma/mlx5_3_20261117T203000Z.txt": (CASES / "rdma-hw-counters/normal/hw.txt").read_text(),
    "gpu-worker-042/ibdev2netdev.txt": (CASES / "ibdev2netdev/normal/ibdev2netdev.txt").read_text(),
}


def tar_of(members: dict[str, bytes], prefix: str = "") -> bytes:
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode="w") as tar:
        for name, content in members.items():
            entry = tarfile.TarInfo(prefix + name)
            entry.size = len(content)
            tar.addfile(entry, io.BytesIO(content))
    return stream.getvalue()


def zip_of(members: dict[str, bytes], prefix: str = "", compression: int = zipfile.ZIP_DEFLATED) -> bytes:
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", compression) as archive:
        for name, content in members.items():
            archive.writestr(prefix + name, content)
    return stream.getvalue()


def all_members() -> dict[str, bytes]:
    host = gzip.compress(tar_of({name: text.encode() for name, text in HOST.items()}), mtime=0)
    gnmic = gzip.compress(GNMIC, mtime=0)
    plain = {name: text.encode() for name, text in MEMBERS.items()}
    return {**plain, "hosts/gpu-worker-042.tar.gz": host, "switches/leaf-07/gnmic.jsonl.gz": gnmic}


def write_folder(folder: Path, members: dict[str, bytes]) -> Path:
    for name, content in members.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
    return folder


@pytest.fixture
def bundle(tmp_path: Path) -> Path:
    return write_folder(tmp_path / "inc-1", all_members())


def issues_of(reading: Reading, source: str) -> list[ReadIssue]:
    return [issue for issue in reading.issues if issue.source == source]


def facts_without(reading: Reading, source: str) -> list[Fact]:
    return [fact for fact in reading.facts if fact.provenance.source != source]


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


COMPRESSED: dict[str, Callable[[bytes], bytes]] = {
    "tar": lambda content: content,
    "tar.gz": lambda content: gzip.compress(content, mtime=0),
    "tar.bz2": bz2.compress,
    "tar.xz": lzma.compress,
    "tar.zst": lambda content: zstandard.ZstdCompressor().compress(content),
}


@pytest.mark.parametrize("kind", [*COMPRESSED, "zip"])
@pytest.mark.parametrize("prefix", ["", "./", "inc-1/"], ids=["bare", "dotted", "wrapped"])
def test_archive_gives_what_the_folder_gives(bundle: Path, tmp_path: Path, kind: str, prefix: str) -> None:
    members = all_members()
    content = zip_of(members, prefix) if kind == "zip" else COMPRESSED[kind](tar_of(members, prefix))
    path = tmp_path / f"inc-1.{kind}"
    path.write_bytes(content)
    expected, found = adapters.read(bundle), adapters.read(path)
    assert found.facts == expected.facts
    assert found.issues == expected.issues
    assert found.files == expected.files
    assert found.incident == expected.incident


def test_order_of_members_in_an_archive_does_not_matter(bundle: Path, tmp_path: Path) -> None:
    members = list(all_members().items())
    random.Random(7).shuffle(members)
    path = tmp_path / "inc-1.tar"
    path.write_bytes(tar_of(dict(members)))
    assert adapters.read(path).facts == adapters.read(bundle).facts


def test_digest_is_that_of_the_stored_file(bundle: Path) -> None:
    import hashlib

    stored = (bundle / "switches/leaf-07/gnmic.jsonl.gz").read_bytes()
    reading = adapters.read(bundle)
    digests = {fact.provenance.sha256 for fact in reading.facts if fact.provenance.source.endswith("gnmic.jsonl.gz")}
    assert digests == {hashlib.sha256(stored).hexdigest()}


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


def test_damaged_member_of_a_zip_is_named_and_the_others_read(bundle: Path, tmp_path: Path) -> None:
    members = all_members()
    content = zip_of(members, compression=zipfile.ZIP_STORED)
    inside = MEMBERS["switches/leaf-07/syslog.log"].encode()[:40]
    assert content.count(inside) == 1
    path = tmp_path / "inc-1.zip"
    path.write_bytes(content.replace(inside, bytes(reversed(inside))))
    reading = adapters.read(path)
    source = "switches/leaf-07/syslog.log"
    assert [issue.code for issue in issues_of(reading, source)] == ["unreadable-file"]
    assert list(reading.facts) == facts_without(adapters.read(bundle), source)


BAD_FILES = {
    "empty": ("switches/leaf-08/show_lldp_neighbors_20261117T203000Z.json", b"", "empty-file", "error"),
    "blank": ("switches/leaf-08/show_lldp_neighbors_20261117T203000Z.json", b"\n \n", "empty-file", "error"),
    "binary": ("switches/leaf-08/core.bin", bytes(range(256)) * 20, "binary-file", "warning"),
    "unknown": ("notes/handover.md", b"# Handover\nAll quiet.\n", "unclaimed-file", "note"),
    "truncated JSON": (
        "switches/leaf-08/show_lldp_neighbors_20261117T203000Z.json",
        b'{"lldpNeighbors": [{"port": "Ethernet1", "neighborDev',
        "truncated-json",
        "error",
    ),
    "malformed JSON": (
        "switches/leaf-08/show_lldp_neighbors_20261117T203000Z.json",
        b'{"lldpNeighbors": [{"port": Ethernet1}]}\n',
        "malformed-json",
        "error",
    ),
    "wrong type": (
        "switches/leaf-08/show_lldp_neighbors_20261117T203000Z.json",
        b'{"lldpNeighbors": "none"}',
        "unexpected-shape",
        "error",
    ),
    "no time": (
        "switches/leaf-08/pfc.json",
        b'{"interfaceCounters": {"Ethernet1": {"rxFrames": 1}}}',
        "missing-hint",
        "error",
    ),
    "no netdev": (
        "hosts/gpu-worker-001/stats.txt",
        HOST["gpu-worker-042/ethtool_-S/ens11f0np0_20261117T203000Z.txt"].encode(),
        "missing-hint",
        "error",
    ),
}


@pytest.mark.parametrize("kind", BAD_FILES)
def test_bad_file_is_reported_and_costs_only_itself(bundle: Path, kind: str) -> None:
    source, content, code, level = BAD_FILES[kind]
    before = adapters.read(bundle)
    write_folder(bundle, {source: content})
    after = adapters.read(bundle)
    found = issues_of(after, source)
    assert [(issue.code, issue.level.value) for issue in found] == [(code, level)]
    assert len(found[0].message) > 20
    assert facts_without(after, source) == list(before.facts)
    assert [issue for issue in after.issues if issue.source != source] == list(before.issues)
    assert source in {file.path for file in after.files}


def test_wrong_extension_is_recognised_by_content(bundle: Path) -> None:
    write_folder(
        bundle,
        {"switches/leaf-08/neighbours_20261117T203000Z.txt": LLDP},
    )
    write_folder(bundle, {"switches/leaf-08/gnmic.json": gzip.compress(GNMIC)})
    reading = adapters.read(bundle)
    assert [fact.b_device for fact in reading.facts if isinstance(fact, Cable)] == ["s"]
    assert "leaf-08" in {fact.device for fact in reading.facts if isinstance(fact, Series)}


def test_cut_gzip_gives_what_it_holds(bundle: Path) -> None:
    source = "switches/leaf-07/gnmic.jsonl.gz"
    whole = adapters.read(bundle)
    many = b"".join(GNMIC.splitlines(keepends=True)[1:] * 200)
    stored = gzip.compress(many, mtime=0)
    (bundle / source).write_bytes(stored[: len(stored) // 2])
    reading = adapters.read(bundle)
    codes = {issue.code: issue.level.value for issue in issues_of(reading, source)}
    assert codes["truncated-archive"] == "warning"
    assert codes.get("malformed-line", "warning") == "warning"
    samples = sum(
        len(fact.times) for fact in reading.facts if fact.provenance.source == source and isinstance(fact, Series)
    )
    assert samples > 1000
    assert facts_without(reading, source) == facts_without(whole, source)


@pytest.mark.parametrize("cut", [0.3, 0.9])
def test_cut_host_archive_gives_what_it_holds(bundle: Path, cut: float) -> None:
    source = "hosts/gpu-worker-042.tar.gz"
    stored = (bundle / source).read_bytes()
    (bundle / source).write_bytes(stored[: int(len(stored) * cut)])
    reading = adapters.read(bundle)
    assert "truncated-archive" in {issue.code for issue in reading.issues if issue.source.startswith(source)}
    assert [fact for fact in reading.facts if isinstance(fact, JobPlacement)]


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


@pytest.mark.parametrize("what", ["missing", "plain file", "empty folder", "empty tar", "text named .tar.gz"])
def test_input_that_cannot_be_opened_is_an_error(tmp_path: Path, what: str) -> None:
    path = tmp_path / "bundle.tar.gz"
    if what == "plain file":
        path = tmp_path / "gnmic.jsonl"
        path.write_bytes(GNMIC)
    elif what == "empty folder":
        path = tmp_path / "folder"
        path.mkdir()
    elif what == "empty tar":
        path.write_bytes(gzip.compress(tar_of({})))
    elif what == "text named .tar.gz":
        path.write_text("hello")
    with pytest.raises(UnreadableInput) as caught:
        adapters.read(path)
    assert str(path) in caught.value.message and caught.value.remedy


def test_members_that_leave_the_bundle_are_refused(tmp_path: Path) -> None:
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode="w") as tar:
        for name in ("../outside.txt", "/etc/passwd", "a/../../b.txt"):
            entry = tarfile.TarInfo(name)
            entry.size = 2
            tar.addfile(entry, io.BytesIO(b"hi"))
        link = tarfile.TarInfo("switches/leaf-07/shadow.log")
        link.type, link.linkname = tarfile.SYMTYPE, "/etc/shadow"
        tar.addfile(link)
        entry = tarfile.TarInfo("notes.txt")
        entry.size = 5
        tar.addfile(entry, io.BytesIO(b"notes"))
    path = tmp_path / "b.tar"
    path.write_bytes(stream.getvalue())
    reading = adapters.read(path)
    assert [file.path for file in reading.files] == ["notes.txt"]
    assert sorted(issue.code for issue in reading.issues) == ["not-a-file", "unclaimed-file", *["unsafe-path"] * 3]


def test_links_in_a_folder_are_not_followed(bundle: Path, tmp_path: Path) -> None:
    secret = tmp_path / "secret.log"
    secret.write_text(MEMBERS["switches/leaf-07/syslog.log"])
    (bundle / "switches" / "leaf-09").mkdir()
    (bundle / "switches" / "leaf-09" / "syslog.log").symlink_to(secret)
    (bundle / "loop").symlink_to(bundle)
    reading = adapters.read(bundle)
    assert {issue.source for issue in reading.issues if issue.code == "not-a-file"} == {
        "loop",
        "switches/leaf-09/syslog.log",
    }
    assert not [file for file in reading.files if "leaf-09" in file.path or file.path.startswith("loop")]


def test_archive_bombs_are_refused(tmp_path: Path) -> None:
    zeros = b"0" * 3_000_000
    bombs = {
        "a.log.gz": gzip.compress(zeros),
        "c.log.xz": lzma.compress(zeros),
        "d.log.zst": zstandard.ZstdCompressor().compress(zeros),
        "e.tar.gz": gzip.compress(tar_of({"x.log": zeros})),
    }
    in_zip = zip_of({"x.log": zeros, "y.log": b"fine"})
    folder = write_folder(tmp_path / "b", {**bombs, "b.txt": b"fine", "f.zip": in_zip})
    opened = Bundle.open(folder, Limits(file_bytes=1_000_000, bundle_bytes=10_000_000))
    files = {file.path: file for file in opened.files()}
    assert files["b.txt"].content == files["f.zip/y.log"].content == b"fine"
    for name in (*bombs, "f.zip/x.log"):
        problem = files[name].problem
        assert files[name].content == b"" and problem is not None and problem.code == "too-large"
        assert opened.content(name) is None


def test_bundle_stops_at_its_own_limit(tmp_path: Path) -> None:
    folder = write_folder(tmp_path / "b", {f"{number}.log": b"0" * 400 for number in range(4)})
    by_size = [file.problem for file in Bundle.open(folder, Limits(bundle_bytes=1_000)).files()]
    assert [problem is None for problem in by_size] == [True, True, False, False]
    by_count = [file.problem for file in Bundle.open(folder, Limits(files=3)).files()]
    assert [problem is None for problem in by_count] == [True, True, True, False]


def test_archives_nested_too_deep_are_not_opened(tmp_path: Path) -> None:
    content = b"end"
    for _ in range(6):
        content = tar_of({"x.tar": content})
    folder = write_folder(tmp_path / "b", {"x.tar": content})
    paths = [file.path for file in Bundle.open(folder).files()]
    assert paths == ["x.tar/x.tar/x.tar/x.tar"]


MANIFESTS: dict[str, tuple[str, str, dict[str, str | None]]] = {
    "unknown key": ("id: INC-2\nwindows: []\n", "/windows", {"id": "INC-2"}),
    "window reversed": (
        "id: INC-2\nwindow: [2026-11-17T21:00:00Z, 2026-11-17T20:00:00Z]\n",
        "/window",
        {"window": None},
    ),
    "window a date": ("id: INC-2\nwindow: [2026-11-17, 2026-11-18]\n", "/window", {"id": "INC-2", "window": None}),
    "unknown zone": ("id: INC-2\ntime_zone: Mars/Olympus\n", "/time_zone", {"id": "INC-2"}),
    "bad field": ("id: INC-2\nfiles: [{path: 'a/{hostname}/b'}]\n", "/files/0/path", {"id": "INC-2"}),
    "bad file entry": ("id: INC-2\nfiles: [switches]\n", "/files/0", {"id": "INC-2"}),
    "not YAML": ("id: [INC-2\n", "", {"id": "inc-1"}),
    "a list": ("- INC-2\n", "", {"id": "inc-1"}),
    "empty": ("", "", {"id": "inc-1"}),
    "offsets no numbers": ("id: INC-2\nclock_offsets: {leaf-07: fast}\n", "/clock_offsets/leaf-07", {"id": "INC-2"}),
}


@pytest.mark.parametrize("kind", MANIFESTS)
def test_wrong_incident_yaml_is_reported_and_the_rest_used(bundle: Path, kind: str) -> None:
    text, record, expected = MANIFESTS[kind]
    (bundle / "incident.yaml").write_text(text)
    reading = adapters.read(bundle)
    issues = issues_of(reading, "incident.yaml")
    assert [(issue.code, issue.record) for issue in issues] == [("incident-yaml", record)]
    for key, value in expected.items():
        assert getattr(reading.incident, key) == value
    assert [fact for fact in reading.facts if isinstance(fact, Series)]


def test_one_wrong_hint_does_not_cost_the_others(bundle: Path) -> None:
    write_folder(bundle, {"dump/a.json": b'{"interfaceCounters": {"Ethernet1": {"rxFrames": 1, "txFrames": 2}}}'})
    (bundle / "incident.yaml").write_text(
        "id: INC-2\nclock_offsets: {leaf-07: 1.5, leaf-08: fast}\n"
        "files: [switches, {device: leaf-01}, {path: dump/a.json, device: spine-01, time: 20261117T203100Z, rack: 7}]\n"
    )
    reading = adapters.read(bundle)
    records = {issue.record for issue in issues_of(reading, "incident.yaml")}
    assert records == {"/clock_offsets/leaf-08", "/files/0", "/files/1/path", "/files/2/rack"}
    assert "spine-01" in {fact.device for fact in reading.facts if isinstance(fact, Series)}


@given(st.text(alphabet="idwnofa:[]{},-&*!|>'\" \n0123456789TZ.", max_size=60), st.integers(0, 200))
def test_no_incident_yaml_stops_the_reading(noise: str, at: int) -> None:
    text = MEMBERS["incident.yaml"] + "files: [{path: 'a/{device}', time: x}]\ntime_zone: UTC\nclock_offsets: {a: 1}\n"
    manifest, _ = read_manifest(text[:at] + noise + text[at:], "inc-1")
    assert manifest.hints("switches/leaf-07/syslog.log").time == ""


def test_bundle_without_incident_yaml_takes_the_name_of_the_folder(bundle: Path) -> None:
    (bundle / "incident.yaml").unlink()
    reading = adapters.read(bundle)
    assert reading.incident == replace(reading.incident, id="inc-1", fabric=None, job=None, window=None)
    year_less = issues_of(reading, "switches/leaf-15/syslog")
    assert [issue.code for issue in year_less] == ["no-year"]


def test_hints_of_incident_yaml_name_devices_the_path_does_not(bundle: Path) -> None:
    write_folder(bundle, {"dump/a.json": b'{"interfaceCounters": {"Ethernet1": {"rxFrames": 1, "txFrames": 2}}}'})
    manifest = yaml.safe_load(MEMBERS["incident.yaml"])
    manifest["files"] = [{"path": "dump/{command}.json", "device": "spine-01", "time": "2026-11-17T20-31-00Z"}]
    (bundle / "incident.yaml").write_text(yaml.safe_dump(manifest))
    reading = adapters.read(bundle)
    found = [fact for fact in reading.facts if isinstance(fact, Series) and fact.provenance.source == "dump/a.json"]
    assert [(fact.device, fact.times) for fact in found] == [("spine-01", (1794947460.0,))] * 2


def test_hint_of_incident_yaml_wins_over_the_layout(bundle: Path) -> None:
    manifest = yaml.safe_load(MEMBERS["incident.yaml"])
    manifest["files"] = [{"path": "switches/leaf-07/syslog.log", "device": "leaf-70"}]
    (bundle / "incident.yaml").write_text(yaml.safe_dump(manifest))
    events = [fact for fact in adapters.read(bundle).facts if isinstance(fact, Event)]
    assert {fact.device for fact in events} == {"leaf-70", "leaf-15"}


def test_clock_offset_moves_what_the_device_stamped_and_nothing_else(bundle: Path) -> None:
    before = adapters.read(bundle)
    (bundle / "incident.yaml").write_text(MEMBERS["incident.yaml"] + "clock_offsets: {leaf-07: 30.0}\n")
    after = adapters.read(bundle)
    for old, new in zip(before.facts, after.facts, strict=True):
        moved = (isinstance(old, Event) and old.device == "leaf-07") or old.provenance.adapter == "gnmic-events"
        if isinstance(old, Event) and isinstance(new, Event):
            assert new.at == pytest.approx(old.at - (30.0 if moved else 0.0))
        elif isinstance(old, Series) and isinstance(new, Series):
            assert new.times == pytest.approx([time - (30.0 if moved else 0.0) for time in old.times])
        else:
            assert new == old


@given(
    middle=st.datetimes(datetime(2020, 1, 1), datetime(2030, 1, 1)),
    away=st.timedeltas(timedelta(days=-150), timedelta(days=150)),
)
def test_time_without_a_year_takes_the_one_nearest_to_the_window(middle: datetime, away: timedelta) -> None:
    moment = (middle + away).replace(tzinfo=UTC, microsecond=0)
    at = middle.replace(tzinfo=UTC).timestamp()
    clock = Clock(window=(at - 900, at + 900))
    assert clock.device_time(moment.strftime("%b %e %H:%M:%S")) == moment.timestamp()
    assert Clock().device_time(moment.strftime("%b %e %H:%M:%S")) is None


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


def test_file_names_that_are_no_utf8_are_read(tmp_path: Path) -> None:
    path = tmp_path / "b.tar"
    path.write_bytes(tar_of({"notes-\udcff\udcfe.txt": b"x", "._notes.txt": b"\x00"}))
    (file,) = adapters.read(path).files
    assert file.path == "notes-\ufffd\ufffd.txt" and file.path.encode()


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


def mutations(content: bytes, seed: int) -> Iterator[bytes]:
    """Cuts, flipped bytes, doubled and swapped lines of a file."""
    chance = random.Random(seed)
    for _ in range(6):
        yield content[: chance.randrange(1, len(content))]
    for _ in range(6):
        damaged = bytearray(content)
        for _ in range(chance.randrange(1, 12)):
            damaged[chance.randrange(len(damaged))] = chance.randrange(256)
        yield bytes(damaged)
    lines = content.splitlines(keepends=True)
    for _ in range(3):
        yield b"".join(chance.choices(lines, k=len(lines)))


def structural_mutations(content: bytes, seed: int) -> Iterator[bytes]:
    """The JSON document with one value after the other replaced by something of another type."""
    try:
        document = json.loads(content)
    except ValueError:
        return
    chance = random.Random(seed)
    places: list[tuple[dict[str, object] | list[object], str | int]] = []

    def walk(value: object) -> None:
        if isinstance(value, (dict, list)):
            for key in list(value) if isinstance(value, dict) else range(len(value)):
                places.append((value, key))
                walk(value[key])

    walk(document)
    for holder, key in chance.sample(places, min(len(places), 25)):
        kept = holder[key]  # type: ignore[index]
        others: tuple[object, ...] = (None, "x", [], {}, True, -1e400, 10**400)
        for other in others:
            holder[key] = other  # type: ignore[index]
            yield json.dumps(document).encode()
        holder[key] = kept  # type: ignore[index]


@pytest.mark.parametrize("adapter", [adapter.name for adapter in adapters.available()])
def test_no_damage_makes_an_adapter_crash(adapter: str, tmp_path: Path) -> None:
    hints = Hints("device-1", "20261117T203000Z", "ens11f0np0", "mlx5_3", "", "job-1")
    path = tmp_path / "raw"
    for seed, case in enumerate(sorted((CASES / adapter).iterdir())):
        for raw in sorted(case.iterdir()):
            if raw.name in ("about.yaml", "expected.json"):
                continue
            content = raw.read_bytes()
            for damaged in (*mutations(content, seed), *structural_mutations(content, seed)):
                path.write_bytes(damaged)
                reading = adapters.try_file(path, hints)
                crashes = [issue.message for issue in reading.issues if issue.code == "adapter-crash"]
                assert not crashes, f"{crashes} on {damaged[:2000]!r}"
                for fact in reading.facts:
                    if isinstance(fact, Series):
                        assert all(value is None or (value == value and value < math.inf) for value in fact.values)
