"""Bundles made from bundles: every file and path rewritten as text, inside gzip and tar too; and one small incident."""

from __future__ import annotations

import gzip
import io
import re
import tarfile
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import numpy as np

from causeline.fixtures.faults.path import SpineDrained
from causeline.fixtures.luck import Crowd, rail_entropy
from causeline.fixtures.model.conditions import Design
from causeline.fixtures.model.dcqcn import QueueProfile
from causeline.fixtures.model.fabric import Fabric
from causeline.fixtures.model.fault import Fault
from causeline.fixtures.model.run import Setup
from causeline.fixtures.model.traffic import Background, Collective, Job, Pattern
from causeline.fixtures.raw.scenario import READ_LATE_SECONDS, FirmwareUpdate, Scenario, Session, SlurmJob
from causeline.fixtures.raw.write import write_bundle
from causeline.fixtures.scenarios import QUEUE, alternating_ring

Edit = Callable[[str], str]

FABRIC = Fabric("Small Fabric", units=2, hosts_per_unit=8, rails=2, spines=4)
ONSET = 150.0
DRAIN = SpineDrained(ONSET, 1)
CROWD = Crowd(leaf=0, uplink=3, least=6, most=6)


def small(*faults: Fault, crowds: tuple[Crowd, ...] = ()) -> Scenario:
    """Sixteen hosts of two rails, 4 leaves, 4 spines, five minutes; one job of 170 Gbit/s a QP, whose uplinks carry
    three at most; a storage burst on rail 2 from second 40 to 70."""
    random = np.random.default_rng(11)
    seeds = random.integers(0, 2**31, FABRIC.leaves), random.integers(0, 2**31, FABRIC.spines)
    collective = Collective(Pattern.RING, 2 * 170e9 / 8 * 2.1, queue_pairs=2, queue_pair_gbps=170.0)
    hosts = alternating_ring(FABRIC, range(16))
    job = Job("small-run", "foundation", hosts, (collective,), compute_seconds=0.3, first_step=100, jitter=0.06)
    without_spine_02 = np.ones((FABRIC.leaves, FABRIC.uplinks), dtype=np.int64)
    without_spine_02[:, 1] = 0
    entropy = rail_entropy(FABRIC, job, seeds[0], without_spine_02, 3, crowds)
    # What one spine or four NICs feed marks before it pauses.
    host_queue, queue = replace(QUEUE, xoff=3.0e6, xon=2.8e6), QueueProfile(1.0e6, 3.0e6, 0.1, 0.5e6, 0.45e6)
    storage = Background(tuple(range(4)), tuple(range(8, 12)), rail=1, gbps=80.0, starts=40.0, ends=70.0)
    return Scenario(
        "SMALL",
        Setup(
            FABRIC,
            Design(*seeds, host_queue, queue),
            (replace(job, rail_entropy=entropy),),
            (storage,),
            faults,
            300.0 + READ_LATE_SECONDS,
            poll_seconds=5.0,
            seed=11,
        ),
        datetime(2026, 11, 17, 20, 15, tzinfo=UTC),
        SlurmJob(7),
        tokens_per_step=1000,
        harm_seconds=ONSET,
        firmware=(FirmwareUpdate(host=3, version="28.43.1014", at=-3 * 86400.0),),
        sessions=(Session("leaf-02", "tidy", "netops", 100.0),),
        note="spine-02 drained; leaf-01 Ethernet12 overloads",
    )


SMALL = small(DRAIN, crowds=(CROWD,))
"""INC-4127 in small: leaf-01 Ethernet12 (queue 3) overloads when spine-02 is drained in the middle.

A run of the model takes less than a second, an investigation about three.
"""


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
