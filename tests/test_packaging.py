"""The wheel: one top-level name, everything the program reads at run time, and it works from another folder."""

from __future__ import annotations

import os
import subprocess
import sys
import venv
import zipfile
from pathlib import Path

import pytest

pytestmark = pytest.mark.wheel

ROOT = Path(__file__).parents[1]
PACKAGES = ("engine", "knowledge", "adapters", "reports", "fixtures")


def succeed(*command: str | Path, cwd: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run a command that must end well, without this session's own import path."""
    cleaned = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    done = subprocess.run(
        [str(part) for part in command],
        cwd=cwd,
        env={**cleaned, **environment},
        capture_output=True,
        text=True,
        check=False,
        stdin=subprocess.DEVNULL,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel, built from a copy of what git would ship: a build leaves traces in its folder."""
    source = tmp_path_factory.mktemp("source") / "causeline"
    source.mkdir()
    for name in (*PACKAGES, "pyproject.toml", "README.md", "LICENSE"):
        succeed("cp", "-r", ROOT / name, source / name, cwd=ROOT)
    target = tmp_path_factory.mktemp("wheel")
    succeed(
        *(sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", target, source),
        cwd=target,
    )
    (built,) = target.glob("*.whl")
    return built


@pytest.fixture(scope="module")
def names(wheel: Path) -> frozenset[str]:
    with zipfile.ZipFile(wheel) as archive:
        return frozenset(archive.namelist())


@pytest.fixture(scope="module")
def installed(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """`bin` of a fresh environment with the wheel and nothing else of ours; the dependencies are this session's."""
    folder = tmp_path_factory.mktemp("installed")
    venv.create(folder, with_pip=False)
    fresh = folder / "bin" / "python"
    succeed(sys.executable, "-m", "pip", "--python", fresh, "install", "--quiet", "--no-deps", wheel, cwd=folder)
    (site,) = folder.glob("lib/python3*/site-packages")
    # A plain path, not a site directory: its .pth files, our own editable install among them, are not run.
    (site / "dependencies.pth").write_text("\n".join(path for path in sys.path if path.endswith("site-packages")))
    return folder / "bin"


def test_one_top_level_name(names: frozenset[str]) -> None:
    tops = {name.partition("/")[0] for name in names}
    assert {top for top in tops if not top.endswith(".dist-info")} == {"causeline"}


@pytest.mark.parametrize("package", PACKAGES)
def test_every_file_the_program_reads_is_in_the_wheel(package: str, names: frozenset[str]) -> None:
    wanted = {
        f"causeline/{path.relative_to(ROOT).as_posix()}"
        for ending in ("py", "yaml", "json", "j2", "css", "js", "svg", "typed")
        for path in (ROOT / package).rglob(f"*.{ending}")
        if not {"incidents", "quiet", "__pycache__"} & set(path.parts)
        and path.relative_to(ROOT).parts[:2] != ("fixtures", "adapters")
    }
    assert wanted
    assert sorted(wanted - names) == []


def test_no_bundle_and_no_test_is_in_the_wheel(names: frozenset[str]) -> None:
    strays = ("fixtures/incidents", "fixtures/quiet", "fixtures/adapters", "tests/", "goldens", "__pycache__")
    assert [name for name in sorted(names) if any(stray in name for stray in strays)] == []


def test_licence_is_in_the_wheel(names: frozenset[str]) -> None:
    assert any(name.endswith("licenses/LICENSE") for name in names)


def test_installed_program_works_from_another_folder(installed: Path, small_bundle: Path, tmp_path: Path) -> None:
    where = succeed(
        *(installed / "python", "-c", "import causeline.engine as e; print(e.__file__)"), cwd=tmp_path
    ).stdout
    assert where.startswith(str(installed.parent))
    assert "no problem found" in succeed(installed / "causeline", "kb", "check", cwd=tmp_path).stdout
    page = tmp_path / "page.html"
    succeed(installed / "causeline", "investigate", small_bundle, "-o", page, cwd=tmp_path)
    assert "ECMP redistribution" in page.read_text()
    assert "causeline, version" in succeed(installed / "causeline", "--version", cwd=tmp_path).stdout
