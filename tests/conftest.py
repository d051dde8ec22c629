"""Shared by all tests: golden files, rewritten only with `--rewrite-goldens` and reviewed as text; a small incident."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from bundle_edits import write_small_bundle
from bundle_members import all_members, write_folder

pytest_plugins = ("simulated",)


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--rewrite-goldens",
        action="store_true",
        help="write what the code gives into the golden files; review the diff",
    )


@pytest.fixture
def matches_golden(request: pytest.FixtureRequest) -> Callable[[Path, str], None]:
    """Fails where `text` differs from the golden file, or writes it there under `--rewrite-goldens`."""

    def compare(golden: Path, text: str) -> None:
        if request.config.getoption("--rewrite-goldens"):
            golden.parent.mkdir(parents=True, exist_ok=True)
            golden.write_text(text, encoding="utf-8")
        assert golden.exists(), f"{golden} is missing; pytest --rewrite-goldens writes it"
        assert text == golden.read_text(encoding="utf-8")

    return compare


@pytest.fixture(scope="session")
def small_bundle(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The small incident of `bundle_edits`, written once a session: copy it before changing it."""
    return write_small_bundle(tmp_path_factory.mktemp("bundles") / "small")


@pytest.fixture
def small_copy(small_bundle: Path, tmp_path: Path) -> Path:
    """A copy of the small incident to damage."""
    return shutil.copytree(small_bundle, tmp_path / "small")


@pytest.fixture
def bundle(tmp_path: Path) -> Path:
    """The folder of `bundle_members`, to read or to damage."""
    return write_folder(tmp_path / "inc-1", all_members())
