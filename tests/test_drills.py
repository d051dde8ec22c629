"""Drills: drawn from a seed, written as bundles, scored; the truth changes the score and nothing else."""

from __future__ import annotations

import csv
import json
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

from causeline import adapters, knowledge
from causeline.engine.cli import main
from causeline.engine.investigate import investigate
from causeline.engine.scoring.drill import Scores, score_bundle
from causeline.engine.scoring.scoreboard import TRUTH, read_truth, score
from causeline.fixtures.drills import Played, bundle, draw, play
from causeline.fixtures.faults import DRAWERS
from causeline.fixtures.scenery import FABRICS, draw_scenery
from causeline.fixtures.write_tidy import write_tidy

SMALL = "rail-16"
HYPOTHESES = Path(__file__).parents[2] / "shared" / "knowledge" / "hypotheses.csv"

FIXED = (
    (11, ("phy.optic_degraded",)),
    (12, ("nic.pause_storm",)),
    (13, ("host.gpu_throttle",)),
    (14, ("job.software_change",)),
    (16, ()),
)
"""Seeds and causes of a few drills that are investigated here; the last is healthy."""


@cache
def played(seed: int, causes: tuple[str, ...]) -> Played:
    return play(draw(seed, causes or ("nic.pause_storm",), SMALL, faults=len(causes)))


@cache
def scored(seed: int, causes: tuple[str, ...], root: Path) -> Scores:
    folder = root / f"drill-{seed}"
    write_tidy(bundle(played(seed, causes)), folder)
    return score_bundle(folder, read_truth(folder / TRUTH), adapters.read, knowledge.load())


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("drills")


def test_a_drill_is_a_function_of_its_seed(tmp_path: Path) -> None:
    for name in ("once", "again"):
        write_tidy(bundle(play(draw(11, ["phy.optic_degraded"], SMALL))), tmp_path / name)
    once, again = (sorted((tmp_path / name).iterdir()) for name in ("once", "again"))
    assert [path.name for path in once] == [path.name for path in again]
    assert [path.read_bytes() for path in once] == [path.read_bytes() for path in again]


def test_another_seed_gives_another_drill() -> None:
    one, other = draw(21, ["phy.optic_degraded"], SMALL), draw(22, ["phy.optic_degraded"], SMALL)
    assert one.injections[0].onset != other.injections[0].onset
    assert one.setup.jobs != other.setup.jobs


@pytest.mark.skipif(not HYPOTHESES.exists(), reason="the list of causes (../shared/knowledge) is not on this machine")
def test_every_ethernet_host_and_job_cause_can_be_injected() -> None:
    with HYPOTHESES.open(encoding="utf-8", newline="") as rows:
        catalogued = {row["hypothesis"] for row in csv.DictReader(rows) if row["transport"] != "ib"}
    assert catalogued == set(DRAWERS)


@pytest.mark.parametrize(("seed", "causes"), FIXED, ids=lambda value: str(value))
def test_the_engine_neither_crashes_nor_acquits_nor_blames(seed: int, causes: tuple[str, ...], root: Path) -> None:
    found, _ = scored(seed, causes, root)
    assert found.crash == ""
    assert found.acquitted == (), found.miss
    assert found.blamed == (), found.miss


def test_a_strong_fault_is_found_at_its_place(root: Path) -> None:
    found, _ = scored(12, ("nic.pause_storm",), root)
    assert played(12, ("nic.pause_storm",)).victims
    assert found.verdict == "right", found.miss


def test_a_falsified_truth_changes_the_score_and_no_byte_of_the_answer(root: Path, tmp_path: Path) -> None:
    folder = tmp_path / "drill"
    write_tidy(bundle(played(12, ("nic.pause_storm",))), folder)
    rules = knowledge.load()
    honest = investigate(adapters.read(folder), rules)
    truth = json.loads((folder / TRUTH).read_text())
    truth["causes"][0]["accept"] = ["load.incast"]
    (folder / TRUTH).write_text(json.dumps(truth))
    falsified = investigate(adapters.read(folder), rules)
    assert falsified.model_dump_json() == honest.model_dump_json()
    wrong = score(falsified, read_truth(folder / TRUTH), {}, folder.name, 0.0)
    assert scored(12, ("nic.pause_storm",), root)[0].verdict == "right"
    assert wrong.verdict == "wrong"


def test_a_healthy_drill_harms_no_job() -> None:
    healthy = played(16, ())
    assert healthy.drill.injections == ()
    assert healthy.victims == ()


def test_removed_telemetry_is_gone_and_the_rest_is_as_it_was() -> None:
    whole, half = (bundle(played(12, ("nic.pause_storm",)), share).readings for share in (0.0, 0.5))
    series = {(one.device, one.port, one.metric, one.qualifier): one for one in whole}
    metrics = {(one.device, one.metric) for one in whole}
    assert len({(one.device, one.metric) for one in half}) == pytest.approx(0.5 * len(metrics), abs=1)
    for one in half:
        np.testing.assert_array_equal(one.values, series[(one.device, one.port, one.metric, one.qualifier)].values)


@pytest.mark.parametrize("name", sorted(name for name, fabric in FABRICS.items() if fabric.nics <= 128))
def test_sceneries_leave_room_on_every_fabric_link(name: str) -> None:
    fabric = FABRICS[name]
    scenery = draw_scenery(fabric, 1800.0, np.random.default_rng(3))
    hosts = [host for job in scenery.jobs for host in job.hosts]
    assert len(hosts) == len(set(hosts))
    assert not set(hosts) & set(scenery.idle_hosts)


def test_two_faults_of_a_pair_are_both_in_the_truth() -> None:
    pair = draw(31, ["phy.optic_degraded", "host.gpu_throttle"], SMALL, faults=2)
    assert {one.accepts[0] for one in pair.injections} == {"phy.optic_degraded", "host.gpu_throttle"}
    assert len(pair.setup.faults) >= 2


@pytest.mark.parametrize(
    ("seed", "pair"),
    [(51, ("phy.optic_degraded", "nic.pause_storm")), (55, ("nic.pause_storm", "phy.lane_speed_down"))],
)
def test_two_faults_in_one_bundle_are_both_found_and_said_to_overlap(
    seed: int, pair: tuple[str, ...], tmp_path: Path
) -> None:
    folder = tmp_path / "pair"
    write_tidy(bundle(played(seed, pair)), folder)
    found = investigate(adapters.read(folder), knowledge.load())
    assert score(found, read_truth(folder / TRUTH), {}, folder.name, 0.0).both
    roots = {h.id: h for h in found.hypotheses if h.id in found.root_causes}
    assert {h.cause for h in roots.values()} == {*pair}
    # Each would have slowed the job by itself: without one alone it would still be slow, without both it would not.
    (overlap,) = found.overlaps
    assert {*overlap.hypotheses} == {*roots}
    assert max(overlap.needed) < 0.2 < 0.9 < overlap.together
    (impact,) = (impact for impact in found.impact if impact.share_explained)
    assert sum(impact.share_explained.values()) == pytest.approx(1, abs=0.1)


@pytest.mark.parametrize(
    ("seed", "pair"),
    [(42, ("phy.optic_degraded", "nic.slow_receiver")), (47, ("host.cpu_stall", "phy.optic_degraded"))],
)
def test_the_weaker_of_two_faults_stands_second_and_is_not_acquitted(
    seed: int, pair: tuple[str, ...], root: Path
) -> None:
    found, _ = scored(seed, pair, root)
    assert found.both
    assert found.acquitted == found.blamed == ()


def test_unknown_causes_and_fabrics_are_refused_with_the_known_names() -> None:
    with pytest.raises(ValueError, match=r"cannot inject nic\.gremlin; known are .*nic\.pause_storm"):
        draw(1, ["nic.gremlin"])
    with pytest.raises(ValueError, match="no fabric 'rail-7'; known are rail-16"):
        draw(1, fabric="rail-7")


def test_the_command_draws_scores_and_compares_shares_of_telemetry(tmp_path: Path) -> None:
    kept, board = tmp_path / "kept", tmp_path / "board.json"
    asked = ["drill", "--seed", "12", "--count", "1", "--fabric", SMALL, "--cause", "nic.pause_storm"]
    ran = CliRunner().invoke(main, [*asked, "--removed", "0,50", "--keep", str(kept), "-o", str(board)])
    assert ran.exit_code == 0, ran.output
    found = json.loads(board.read_text())
    assert [row["removed"] for row in found["by_removal"]] == [0.0, 0.5]
    assert [one["bundle"] for one in found["scores"]] == ["drill-12", "drill-12-without-50-percent"]
    assert found["totals"]["bundles"] == 1
    assert (kept / "drill-12" / TRUTH).exists()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ([], "Name either a --corpus or a --seed"),
        (["--seed", "1", "--cause", "nic.gremlin"], "cannot inject nic.gremlin"),
        (["--seed", "1", "--removed", "half"], "no list of percentages"),
    ],
)
def test_wrong_use_of_the_command_says_what_to_do(options: list[str], message: str) -> None:
    ran = CliRunner().invoke(main, ["drill", *options])
    assert ran.exit_code == 2
    assert message in ran.output
