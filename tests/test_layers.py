"""The shape of the code: one-way imports, files of a readable size, dependencies that are declared and say why."""

from __future__ import annotations

import ast
import os
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from importlib.metadata import packages_distributions
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PACKAGES = ("engine", "knowledge", "adapters", "reports", "fixtures")
MODULES = sorted(path for package in PACKAGES for path in (ROOT / package).rglob("*.py"))
PROJECT = (ROOT / "pyproject.toml").read_text()
LONGEST_MODULE = 420  # lines; the style says near 400


def name_of(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


def imports(path: Path) -> Iterator[tuple[int, str]]:
    """Level and module of every import, those inside functions too."""
    for found in ast.walk(ast.parse(path.read_text())):
        if isinstance(found, ast.Import):
            yield from ((0, alias.name) for alias in found.names)
        elif isinstance(found, ast.ImportFrom):
            yield found.level, found.module or ""


def test_import_contracts_are_kept() -> None:
    command = [str(Path(sys.executable).with_name("lint-imports")), "--no-cache"]
    environment = {**os.environ, "PYTHONPATH": str(ROOT / ".namespace")}
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout
    assert "0 broken" in done.stdout


@pytest.mark.parametrize("path", MODULES, ids=name_of)
def test_module_has_a_readable_size(path: Path) -> None:
    assert len(path.read_text().splitlines()) <= LONGEST_MODULE


@pytest.mark.parametrize("package", PACKAGES)
def test_packages_import_each_other_relatively_and_never_a_test(package: str) -> None:
    tests = {path.stem for path in (ROOT / "tests").glob("*.py")}
    for path in (path for path in MODULES if path.relative_to(ROOT).parts[0] == package):
        absolute = {module.partition(".")[0] for level, module in imports(path) if level == 0}
        assert absolute & {"tests", "causeline", "pytest", "hypothesis", *PACKAGES, *tests} == set(), path


def test_every_import_is_declared_and_every_dependency_imported() -> None:
    declared = {canonical(line) for line in tomllib.loads(PROJECT)["project"]["dependencies"]}
    distributions = packages_distributions()
    used: dict[str, set[str]] = {}
    for path in MODULES:
        for level, module in imports(path):
            top = module.partition(".")[0]
            if level == 0 and top not in sys.stdlib_module_names:
                used.setdefault(top, {canonical(name) for name in distributions.get(top, ())})
    undeclared = sorted(module for module, distribution in used.items() if not distribution & declared)
    # markupsafe is jinja2's own escaping, pydantic_core pydantic's own error type
    assert [module for module in undeclared if module not in ("markupsafe", "pydantic_core")] == []
    # duckdb is reached through ibis, its connection included
    unused = sorted(declared - {name for names in used.values() for name in names} - {"duckdb"})
    assert unused == []


def canonical(requirement: str) -> str:
    return re.sub(r"[-_.]+", "-", re.split(r"[\[<>=!~; ]", requirement)[0]).lower()


def test_every_dependency_says_why_it_is_there() -> None:
    (block,) = re.findall(r"^dependencies = \[\n(.*?)^\]", PROJECT, re.MULTILINE | re.DOTALL)
    lines = [line.strip() for line in block.splitlines() if line.strip()]
    assert len(lines) > 5
    assert [line for line in lines if not re.fullmatch(r'"[^"]+",\s+# .{10,}', line)] == []


def test_only_inference_knows_pgmpy() -> None:
    assert {name_of(path) for path in MODULES for _, module in imports(path) if module.startswith("pgmpy")} == {
        "engine/inference.py"
    }
