"""The shipped knowledge is clean, lint catches each kind of mistake, and every case comes out as it says."""

from __future__ import annotations

import json
from pathlib import Path

import jsonschema
import pytest
import yaml

from causeline.engine.errors import UsageError
from causeline.engine.rules import KnowledgeBase, Relation
from causeline.knowledge import load
from causeline.knowledge.induced import induced_probability_of
from causeline.knowledge.lint import check
from causeline.knowledge.loader import SHIPPED, read_library
from causeline.knowledge.pages import page, rows, scaffold
from causeline.knowledge.place_relations import RELATIONS
from causeline.knowledge.schema import FOLDER, schemas

BAD = Path(__file__).parent / "knowledge_bad"
SOUND = BAD / "sound_base"
MISTAKES = sorted(path.name for path in BAD.iterdir() if path.is_dir() and path != SOUND)


@pytest.fixture(scope="module")
def shipped() -> KnowledgeBase:
    return load()


# -- lint ------------------------------------------------------------------------------------------


def test_the_shipped_knowledge_is_clean() -> None:
    assert check() == ()


def test_sound_rules_are_clean() -> None:
    assert check(shipped=SOUND) == ()


@pytest.mark.parametrize("mistake", MISTAKES)
def test_lint_tells_each_mistake_with_its_place(mistake: str) -> None:
    overlay = BAD / mistake
    told = [problem.removeprefix(f"{overlay.as_posix()}/") for problem in check(overlay, shipped=SOUND)]
    assert told == (overlay / "expected.txt").read_text().splitlines()
    assert told


def test_every_relation_has_its_kinds_of_places() -> None:
    assert set(RELATIONS) == set(Relation) - {Relation.SELF}


def test_a_grade_above_what_mechanisms_give_is_met_exactly() -> None:
    library = read_library(shipped=SOUND)
    cause = library.causes["path.shrink"].rule
    assert induced_probability_of(library, cause, "queue_deep") == pytest.approx((0.85,))
    assert induced_probability_of(library, cause, "member_left") == pytest.approx((0.97,))


# -- pages and schemas -----------------------------------------------------------------------------


def test_every_rule_has_a_page_with_its_sections(shipped: KnowledgeBase) -> None:
    for row in rows(shipped):
        text = page(shipped, row.id)
        assert text.startswith(f"{row.id}: {row.title}")
        assert "\nReferences\n" in text
        if row.kind == "cause":
            headings = ["Mechanism", "Supports", "First checks", "Remedy", "References"]
            assert [line for line in text.splitlines() if line in headings] == headings


def test_an_unknown_rule_has_no_page(shipped: KnowledgeBase) -> None:
    with pytest.raises(UsageError, match="kb list"):
        page(shipped, "path.nowhere")


def test_a_new_cause_is_valid_yaml_and_lint_names_all_that_is_open(tmp_path: Path) -> None:
    for path, text in scaffold("path.new_one").items():
        target = tmp_path / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text)
    told = check(tmp_path, shipped=SOUND)
    named = {problem.split(": ")[1] for problem in told if "is still open" in problem}
    assert named >= {"title", "hazard.basis", "mechanism", "signs.name_of_a_sign.basis", "remedy", "references.0"}
    assert any("there is no sign 'name_of_a_sign'" in problem for problem in told)
    assert any("new_one.cases.yaml" in problem and "is still open" in problem for problem in told)


@pytest.mark.parametrize("rule", ["nodot", "Path.upper", "path.", ".name", "path.na-me", "../path.x"])
def test_a_scaffold_needs_an_id(rule: str) -> None:
    with pytest.raises(UsageError, match=r"family\.name"):
        scaffold(rule)


@pytest.mark.parametrize("name", sorted(schemas()))
def test_schemas_for_editors_are_fresh(name: str) -> None:
    assert (FOLDER / name).read_text() == schemas()[name], "run python -m causeline.knowledge.schema"


@pytest.mark.parametrize(
    ("folder", "pattern", "schema"),
    [
        ("causes", "*/*.yaml", "cause"),
        ("causes", "*/*.cases.yaml", "cases"),
        ("signs", "*/*.yaml", "sign"),
        ("loops", "*.yaml", "mechanism"),
        ("topologies", "*.yaml", "topology"),
    ],
)
def test_shipped_files_fit_the_schemas_that_editors_use(folder: str, pattern: str, schema: str) -> None:
    validator = jsonschema.Draft202012Validator(json.loads((FOLDER / f"{schema}.schema.json").read_text()))
    for path in sorted((SHIPPED / folder).glob(pattern)):
        if path.name.endswith(".cases.yaml") == (schema == "cases"):
            errors = validator.iter_errors(yaml.safe_load(path.read_text()))
            assert [f"{path.name}: {error.message}" for error in errors] == []
