"""Reading rule files: every problem at once with its place, overlays, the digest."""

from __future__ import annotations

import hashlib
import shutil
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from causeline.engine.errors import KnowledgeError
from causeline.knowledge import load
from causeline.knowledge.loader import SHIPPED, read_library, rule_paths
from causeline.knowledge.yaml_source import UnreadableYaml, YamlSource

BAD = Path(__file__).parent / "knowledge_bad"
SOUND = BAD / "sound_base"


def test_every_shipped_rule_file_is_read() -> None:
    knowledge = load()
    rules = len(knowledge.causes) + len(knowledge.mechanisms) + len(knowledge.signs)
    assert rules + (read_library().tempers is not None) == len(list(rule_paths(SHIPPED)))
    assert knowledge.overrides == ()
    assert list(knowledge.causes) == sorted(knowledge.causes)


def test_all_problems_of_all_files_come_at_once() -> None:
    with pytest.raises(KnowledgeError) as raised:
        load(BAD / "schema", BAD / "yaml_syntax", BAD / "repeated_key")
    told = "\n".join(raised.value.problems)
    for place in (
        "schema/causes/path/shrink.yaml:4:1: status",
        "schema/causes/path/shrink.yaml:13:17: signs.member_left.p",
        "schema/signs/queue/queue_deep.yaml:7:3: signal.metric",
        "yaml_syntax/loops/queue_saturation.yaml:8:53: not YAML",
        "repeated_key/causes/phy/dim.yaml:16:1: key 'title' is already given in line 3",
    ):
        assert place in told
    assert raised.value.exit_code == 4


def test_an_overlay_replaces_by_id_and_adds_and_both_are_listed(tmp_path: Path) -> None:
    overlay = tmp_path / "site"
    _copy(SOUND / "causes/phy/dim.yaml", overlay / "causes/phy/dim.yaml", ("Optic is dim", "Optic is dim here"))
    _copy(SOUND / "signs/optic/rx_low.yaml", overlay / "signs/site/rx_lower.yaml", ("id: rx_low", "id: rx_lower"))
    library = read_library(overlay, shipped=SOUND)
    assert library.problems == ()
    knowledge = library.knowledge_base()
    assert knowledge.causes["phy.dim"].title == "Optic is dim here"
    assert "rx_lower" in knowledge.signs
    assert knowledge.overrides == ("added signs/site/rx_lower.yaml", "replaced causes/phy/dim.yaml")


def test_the_last_overlay_wins(tmp_path: Path) -> None:
    for name in ("first", "second"):
        _copy(SOUND / "causes/phy/dim.yaml", tmp_path / name / "causes/phy/dim.yaml", ("Optic is dim", name))
    library = read_library(tmp_path / "first", tmp_path / "second", shipped=SOUND)
    assert library.causes["phy.dim"].rule.title == "second"


def test_an_overlay_that_is_not_there_is_a_problem(tmp_path: Path) -> None:
    with pytest.raises(KnowledgeError, match="no such directory"):
        load(tmp_path / "nowhere")


def test_two_files_of_one_id_are_a_problem(tmp_path: Path) -> None:
    for family in ("a", "b"):
        _copy(SOUND / "signs/optic/rx_low.yaml", tmp_path / f"signs/{family}/rx_low.yaml")
    (problem,) = read_library(tmp_path, shipped=SOUND).problems
    assert "b/rx_low.yaml:1:1: id 'rx_low' is already taken by" in problem


def test_the_digest_follows_content_and_path_and_nothing_else(tmp_path: Path) -> None:
    same, edited, moved = (tmp_path / name for name in ("same", "edited", "moved"))
    for target in (same, edited, moved):
        shutil.copytree(SOUND, target)
    (same / "causes/path/shrink.cases.yaml").write_text("format: 1\ncases: []\n")
    with (edited / "loops/queue_saturation.yaml").open("a") as file:
        file.write("# a comment\n")
    (moved / "signs/light").mkdir()
    (moved / "signs/optic/rx_low.yaml").rename(moved / "signs/light/rx_low.yaml")
    digests = [read_library(shipped=path).digest() for path in (SOUND, same, edited, moved)]
    assert digests[0] == digests[1]
    assert len(set(digests)) == 3
    assert len(digests[0]) == len(hashlib.sha256().hexdigest())


def test_case_files_and_other_folders_are_no_rules(tmp_path: Path) -> None:
    shutil.copytree(SOUND, tmp_path, dirs_exist_ok=True)
    (tmp_path / "platforms").mkdir()
    (tmp_path / "platforms/arista.yaml").write_text("limits: {}\n")
    assert read_library(shipped=tmp_path).problems == ()


@pytest.mark.parametrize(
    ("raw", "problem"),
    [
        (b"", "x.yaml:1:1: the file is empty"),
        (b"# only a comment\n", "x.yaml:1:1: the file is empty"),
        (b"title: \xff\n", "x.yaml:1:1: byte 7 is not UTF-8"),
        (b"a: 1\nb: [1\n", "x.yaml:3:1: not YAML"),
        (b"a: 1\n---\nb: 2\n", "x.yaml:2:1: not YAML"),
        (b"a: \x07\n", "x.yaml:1:1: not YAML"),
        (b"a: !!python/object:os.system {}\n", "x.yaml:1:4: not YAML"),
        (b"a: 2026-02-31\n", "x.yaml:1:1: not YAML"),
        (b"a: {b: 1, b: 2}\n", "x.yaml:1:11: key 'b' is already given in line 1"),
        (b"- 1\n- a: 1\n  a: 2\n", "x.yaml:3:3: key 'a' is already given in line 2"),
    ],
)
def test_what_is_not_one_plain_yaml_document_is_told_with_its_place(raw: bytes, problem: str) -> None:
    with pytest.raises(UnreadableYaml) as raised:
        YamlSource.parse("x.yaml", raw)
    assert raised.value.problems[0].startswith(problem)


@given(st.binary(max_size=60) | st.text(alphabet="a:-[]{}\n '\"#&*!|>%@?,1", max_size=60).map(str.encode))
def test_no_bytes_break_the_reader(raw: bytes) -> None:
    try:
        source = YamlSource.parse("x.yaml", raw)
    except UnreadableYaml as error:
        assert error.problems and all(problem.startswith("x.yaml:") for problem in error.problems)
    else:
        assert source.problem(("a", 0, "b"), "what").startswith("x.yaml:")


def test_a_problem_of_a_missing_part_points_at_what_holds_it() -> None:
    source = YamlSource.parse("x.yaml", b"signs:\n  deep:\n    p: 0.1\n  other: [1, 2]\n")
    assert source.problem(("signs", "deep", "basis"), "is missing") == "x.yaml:2:3: signs.deep.basis: is missing"
    assert source.problem(("signs", "other", 1), "is wrong") == "x.yaml:4:14: signs.other.1: is wrong"


def _copy(source: Path, target: Path, *changes: tuple[str, str]) -> None:
    text = source.read_text()
    for old, new in changes:
        assert old in text
        text = text.replace(old, new, 1)
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_text(text)
