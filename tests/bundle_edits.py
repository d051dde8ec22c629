"""Bundles made from bundles: every file and path rewritten as text, inside gzip and tar too; and one small incident."""

from __future__ import annotations

import gzip
import io
import re
import tarfile
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

from causeline.fixtures.fabric import Fabric
from causeline.fixtures.incident_faults import EcmpDrain
from causeline.fixtures.scenarios import ConfigCommit, FirmwareUpdate, Scenario, Truth
from causeline.fixtures.workload import Collision, RingJob, StorageBurst
from causeline.fixtures.write_bundle import write_bundle

Edit = Callable[[str], str]

SMALL = Scenario(
    id="SMALL",
    fabric=Fabric("Small Fabric", units=2, hosts_per_unit=8, rails=2, spines=4),
    job=RingJob("small-run", job_id=7, first_step=100, tokens_per_step=1000, queue_pair_gbps=170.0),
    start=datetime(2026, 11, 17, 20, 15, tzinfo=UTC),
    window_seconds=300,
    faults=(EcmpDrain(1, 150.0),),
    bursts=(StorageBurst(rail=1, start_seconds=40.0, seconds=30.0, flows_each_way=8, flow_gbps=10.0),),
    firmware=(FirmwareUpdate(host=3, version="28.43.1014", days_before=3.0),),
    commits=(ConfigCommit("leaf-02", "tidy", "netops", 100.0),),
    truth=Truth((), (), (), (), "spine-02 drained; leaf-01 Ethernet12 overloads"),
    seed=11,
    drained_spine=1,
    most_flows=3,
    collision=Collision(leaf=0, spine=3, flows=6),
    harm_seconds=150.0,
)
"""INC-4127 in small: 16 hosts of two rails, 4 leaves, 4 spines, five minutes; leaf-01 Ethernet12 (queue 3) overloads
when spine-02 is drained in the middle. A run of the model takes about three seconds, an investigation as long."""


def write_small_bundle(folder: Path) -> Path:
    """The bundle of `SMALL`."""
    write_bundle(SMALL, SMALL.run(), folder)
    return folder


def edit_file(path: Path, edit: Edit) -> None:
    """Rewrite a plain or gzipped text file in place."""
    path.write_bytes(_edited(path.name, path.read_bytes(), edit))


def edit_members(path: Path, edit: Callable[[str, str], str]) -> None:
    """Rewrite each member of a .tar.gz in place; `edit` gets its name and its text."""
    path.write_bytes(gzip.compress(_tar((name, edit(name, text)) for name, text in _members(path.read_bytes()))))


def rewritten_bundle(source: Path, target: Path, edit: Edit) -> Path:
    """A copy of a bundle in which every path and every text went through `edit`, members of archives too.

    truth.json is left out: it is no telemetry.
    """
    for path in sorted(source.rglob("*")):
        relative = path.relative_to(source).as_posix()
        if path.is_dir() or relative == "truth.json":
            continue
        copy = target / edit(relative)
        copy.parent.mkdir(parents=True, exist_ok=True)
        copy.write_bytes(_edited(path.name, path.read_bytes(), edit))
    return target


def _edited(name: str, content: bytes, edit: Edit) -> bytes:
    if name.endswith(".tar.gz"):
        members = ((edit(member), edit(text)) for member, text in _members(content))
        return gzip.compress(_tar(members), compresslevel=1, mtime=0)
    if name.endswith(".gz"):
        return gzip.compress(edit(gzip.decompress(content).decode()).encode(), compresslevel=1, mtime=0)
    return edit(content.decode()).encode()


def _members(content: bytes) -> Iterator[tuple[str, str]]:
    with tarfile.open(fileobj=io.BytesIO(content), mode="r:gz") as archive:
        for entry in archive:
            stream = archive.extractfile(entry)
            if stream is not None:
                yield entry.name, stream.read().decode()


def _tar(members: Iterator[tuple[str, str]]) -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w", format=tarfile.USTAR_FORMAT) as archive:
        for name, text in members:
            entry = tarfile.TarInfo(name)
            content = text.encode()
            entry.size = len(content)
            archive.addfile(entry, io.BytesIO(content))
    return buffer.getvalue()


# -- other names, another hour ---------------------------------------------------------------------------------------

LATER = timedelta(hours=9)
"""Into the next day: 05:15 to 05:45."""

_PORTS_FURTHER = 40


def rename(text: str) -> str:
    """Every host, switch and port under its other name, ports in their short spelling (Et12) as well."""
    for pattern, other_name in _OTHER_NAMES:
        text = pattern.sub(other_name, text)
    return text


def move_in_time(text: str) -> str:
    """Every time of a bundle's text `LATER`: calendar times in their spellings, epoch nanoseconds and seconds."""
    text = _CALENDAR_TIME.sub(_later_on_the_calendar, text)
    text = _EPOCH_NANOSECONDS.sub(lambda found: f"{found[1]}{int(found[2]) + round(LATER.total_seconds() * 1e9)}", text)
    return _EPOCH_SECONDS.sub(lambda found: f"{float(found[0]) + LATER.total_seconds()}", text)


def renamed_later(text: str) -> str:
    """Both at once."""
    return move_in_time(rename(text))


# Numbers count down, so that the order of the names turns round as well. Patterns begin with plain letters and are
# tried one by one: a search for alternatives takes ten times as long.
_OTHER_NAMES: tuple[tuple[re.Pattern[str], Callable[[re.Match[str]], str]], ...] = (
    (re.compile(r"gpu-worker-\[001-064\]"), lambda found: "trainer[101-164]"),
    (re.compile(r"gpu-worker-(\d{3})"), lambda found: f"trainer{165 - int(found[1])}"),
    (re.compile(r"leaf-(\d\d)"), lambda found: f"pod-a-tor{50 - int(found[1])}"),
    (re.compile(r"spine-(\d\d)"), lambda found: f"agg{20 - int(found[1])}"),
    (re.compile(r"Et(hernet)?(\d+)\b"), lambda found: f"Et{found[1] or ''}{int(found[2]) + _PORTS_FURTHER}"),
)
_CALENDAR_TIME = re.compile(r"(20\d\d)(-?)(\d\d)\2(\d\d)T(\d\d)(?=:?[0-5]\d)")
_EPOCH_NANOSECONDS = re.compile(r'("timestamp":)(17\d{17})\b')
_EPOCH_SECONDS = re.compile(r"17\d{8}\.\d+")  # as EOS writes them; counters have no decimal point


def _later_on_the_calendar(found: re.Match[str]) -> str:
    year, dash, month, day, hour = found.groups()
    later = datetime(int(year), int(month), int(day), int(hour)) + LATER
    return later.strftime(f"%Y{dash}%m{dash}%dT%H")
