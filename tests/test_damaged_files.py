"""Bad files cost only themselves, and no damage makes an adapter crash."""

from __future__ import annotations

import json
import math
import random
from collections.abc import Iterator
from pathlib import Path

import pytest
from bundle_members import CASES, HOST, facts_without, issues_of, write_folder

from causeline import adapters
from causeline.adapters import Hints
from causeline.engine.facts import Series

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
