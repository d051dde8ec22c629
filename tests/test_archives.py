"""Every kind of archive gives the same facts, and none does harm: bombs, members that leave the bundle, cut ends."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import random
import tarfile
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest
import zstandard
from bundle_members import GNMIC, MEMBERS, all_members, facts_without, issues_of, tar_of, write_folder, zip_of

from causeline import adapters
from causeline.adapters.archives import Bundle, Limits
from causeline.engine.errors import UnreadableInput
from causeline.engine.facts import JobPlacement, Series

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


def test_file_names_that_are_no_utf8_are_read(tmp_path: Path) -> None:
    path = tmp_path / "b.tar"
    path.write_bytes(tar_of({"notes-\udcff\udcfe.txt": b"x", "._notes.txt": b"\x00"}))
    (file,) = adapters.read(path).files
    assert file.path == "notes-\ufffd\ufffd.txt" and file.path.encode()
