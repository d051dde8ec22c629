"""Saved investigations come back as they were; a file that is no store says so."""

from __future__ import annotations

from pathlib import Path

import pytest

from causeline.engine.errors import UnreadableInput, UsageError
from causeline.engine.results import Investigation
from causeline.engine.store import Store

SAVED = Path(__file__).parent / "investigations" / "inc-4127.json"


@pytest.fixture
def investigation() -> Investigation:
    return Investigation.from_json(SAVED.read_text())


def test_an_investigation_comes_back_as_it_was(tmp_path: Path, investigation: Investigation) -> None:
    store = Store(tmp_path / "folder" / "store.sqlite")
    number = store.save(investigation)
    assert store.get(number) == investigation


def test_each_analysis_of_an_incident_is_a_row(tmp_path: Path, investigation: Investigation) -> None:
    store = Store(tmp_path / "store.sqlite")
    numbers = [store.save(investigation), store.save(investigation.model_copy(update={"root_causes": ()}))]
    rows = store.all()
    assert [row.number for row in rows] == numbers
    assert [row.incident for row in rows] == [investigation.incident.id] * 2
    leading = next(h for h in investigation.hypotheses if h.id == investigation.root_causes[0])
    assert [row.cause for row in rows] == [leading.cause, None]


def test_an_unknown_number_is_a_usage_error(tmp_path: Path, investigation: Investigation) -> None:
    store = Store(tmp_path / "store.sqlite")
    store.save(investigation)
    with pytest.raises(UsageError, match="no investigation 7"):
        store.get(7)


@pytest.mark.parametrize("content", [None, b"not a database, but long enough to be read as one" * 40])
def test_what_is_no_store_says_so(tmp_path: Path, content: bytes | None) -> None:
    path = tmp_path / "store.sqlite"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(UnreadableInput, match="is no store"):
        Store(path).all()
