"""README and CONTRIBUTING: the commands they show work, the blocks they quote are what the program prints."""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable
from pathlib import Path

import click
import pytest
from click.testing import CliRunner
from investigated import INC_4127, whole

from causeline import adapters, knowledge, reports
from causeline.engine import cli
from causeline.engine.cli import main

ROOT = Path(__file__).parents[1]
README = ROOT / "README.md"
CONTRIBUTING = ROOT / "CONTRIBUTING.md"
DOCUMENTS = (README, CONTRIBUTING)


def shell_lines(document: Path) -> list[str]:
    blocks = re.findall(r"```sh\n(.*?)```", document.read_text(), re.DOTALL)
    lines = (line.partition("  #")[0].strip() for block in blocks for line in block.splitlines())
    return [line for line in lines if line and not line.startswith("#")]


COMMANDS = [
    pytest.param(line, id=line)
    for document in DOCUMENTS
    for line in shell_lines(document)
    if line.startswith("causeline")
]


@pytest.mark.parametrize("line", COMMANDS)
def test_command_exists_with_these_options_and_files(line: str) -> None:
    """Parses the command as the program would, without running it: the commands themselves have their own tests."""
    words = shlex.split(line)[1:]
    command: click.Command = main
    context = click.Context(main)
    while isinstance(command, click.Group):
        chosen = command.get_command(context, words[0])
        assert chosen is not None, line
        command, words = chosen, words[1:]
    command.make_context(command.name, list(words))
    for word in words:
        if word.startswith(("fixtures/", "tests/", "knowledge/")):
            assert (ROOT / word).exists(), word


def test_commands_of_the_readme_run_in_their_order(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every `causeline` line of the README, in a folder with the bundles, writing what it says it writes.

    The analysis of each bundle is the one other tests share, and the drill over all of them has its own tests.
    """
    for folder in ("fixtures", "knowledge"):
        (tmp_path / folder).symlink_to(ROOT / folder)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(cli, "_examine", lambda bundle, *asked: whole((tmp_path / bundle).resolve()))
    for line in shell_lines(README):
        if line.startswith("causeline ") and not line.startswith("causeline drill"):
            result = CliRunner().invoke(main, shlex.split(line)[1:])
            assert result.exit_code == 0, f"{line}: {result.output}"
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == [
        "causeline.sqlite",
        "inc-4127.json",
        "inc-4128.html",
        "quiet.json",
    ]


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.name)
def test_make_targets_exist(document: Path) -> None:
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    named = {line.split()[1] for line in shell_lines(document) if line.startswith("make ")}
    assert named
    assert sorted(named - targets) == []


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.name)
def test_links_and_pictures_of_the_project_are_there(document: Path) -> None:
    text = document.read_text()
    targets = [target for target in re.findall(r"\]\(([^)#\s]+)", text) if "://" not in target]
    assert [target for target in targets if not (ROOT / target).exists()] == []


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.name)
def test_named_files_of_the_project_are_there(document: Path) -> None:
    named = re.findall(r"`((?:engine|adapters|knowledge|reports|fixtures|tests)/[\w./-]*)`", document.read_text())
    assert [name for name in named if not (ROOT / name).exists()] == []


# -- blocks the program writes ---------------------------------------------------------------------------------------
def terminal_page() -> str:
    return f"```text\n{reports.render(whole(INC_4127).investigation, 'terminal')}```\n"


def adapter_table() -> str:
    rows = "".join(f"| `{adapter.name}` | {_cell(adapter.reads)} |\n" for adapter in adapters.available())
    return f"\n| adapter | reads |\n|---|---|\n{rows}\n"


def cause_table() -> str:
    causes = knowledge.load().causes.values()
    rows = "".join(f"| `{cause.id}` | {_cell(cause.title)} | {cause.scope} |\n" for cause in causes)
    return f"\n| cause | title | at a |\n|---|---|---|\n{rows}\n"


def _cell(text: str) -> str:
    # a bar inside a cell ends it, in code as well
    return text.replace("|", "\\|")


BLOCKS: dict[str, tuple[str, Callable[[], str]]] = {
    "terminal": ("terminal:inc-4127", terminal_page),
    "adapters": ("adapters", adapter_table),
    "causes": ("causes", cause_table),
}


@pytest.mark.parametrize("block", BLOCKS)
def test_block_of_the_readme_is_what_the_program_prints(block: str, request: pytest.FixtureRequest) -> None:
    """`pytest --rewrite-goldens` writes it."""
    name, content = BLOCKS[block]
    pattern = re.compile(rf"(<!-- {re.escape(name)} -->\n)(.*?)(<!-- /{block} -->)", re.DOTALL)
    text = README.read_text()
    (found,) = pattern.finditer(text)
    if request.config.getoption("--rewrite-goldens"):
        README.write_text(text[: found.start(2)] + content() + text[found.end(2) :])
        return
    assert found[2] == content()


def test_every_command_of_the_program_is_in_the_readme_or_its_help() -> None:
    text = README.read_text()
    shown = set(re.findall(r"^causeline ([a-z-]+)", text, re.MULTILINE))
    assert shown == set(main.commands)
    assert CliRunner().invoke(main, ["--help"]).exit_code == 0
