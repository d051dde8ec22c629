"""Incidents of an independent packet-level simulator, where they are on this machine: what must hold on each of them.

How often the engine is right there is measured, not asserted: `benchmarks/sim_scores.md`.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path

import pytest

from causeline import adapters, knowledge
from causeline.engine.investigate import investigate
from causeline.engine.results import Investigation
from causeline.engine.scoring.scoreboard import TRUTH, Truth, read_truth, score
from causeline.engine.topology import DeviceRole, Topology

SIM = Path(__file__).parents[2] / "shared" / "sim"
FOLDERS = sorted(path.parent for path in SIM.glob(f"*/{TRUTH}"))

pytestmark = pytest.mark.skipif(not FOLDERS, reason="the simulated incidents (../shared/sim) are not on this machine")


@cache
def investigated(folder: Path) -> Investigation:
    return investigate(adapters.read(folder), knowledge.load(), is_quick=True)


def truth_of(folder: Path) -> Truth:
    return read_truth(folder / TRUTH)


def name(folder: Path) -> str:
    return folder.name


@pytest.mark.parametrize("folder", FOLDERS, ids=name)
def test_every_file_is_read_and_the_engine_comes_to_an_end(folder: Path) -> None:
    reading = adapters.read(folder)
    assert [file.path for file in reading.files if file.adapter is None] == []
    assert [issue for issue in reading.issues if issue.level != "note"] == []
    assert investigated(folder).hypotheses


@pytest.mark.parametrize("folder", [f for f in FOLDERS if truth_of(f).causes], ids=name)
def test_no_true_cause_is_acquitted(folder: Path) -> None:
    found = score(investigated(folder), truth_of(folder), {}, folder.name, 0.0)
    assert found.acquitted == (), found.miss


@pytest.mark.parametrize("folder", [f for f in FOLDERS if not truth_of(f).victim_jobs], ids=name)
def test_no_slowdown_is_blamed_where_no_job_slowed(folder: Path) -> None:
    assert score(investigated(folder), truth_of(folder), {}, folder.name, 0.0).blamed == ()


def test_topology_of_the_form_gives_roles_and_rails() -> None:
    folder = FOLDERS[0]

    topology = Topology(adapters.read(folder).facts)
    assert {topology.role(leaf) for leaf in topology.leaves} == {DeviceRole.LEAF}
    assert len(topology.leaves) == 4 and len(topology.hosts) == 64 and len(topology.links) == 80
    assert {topology.role(device) for device in topology.graph if device.startswith("spine")} == {DeviceRole.SPINE}
