"""The command line: what goes to which stream, exit codes, and that wrong arguments get a remedy and no traceback."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
import tarfile
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from causeline import adapters, knowledge
from causeline.engine.cli import main
from causeline.engine.results import Investigation

ROOT = Path(__file__).parents[1]
CASES = ROOT / "fixtures" / "adapters"


def run(*arguments: str | Path) -> Result:
    result = CliRunner().invoke(main, [str(argument) for argument in arguments])
    assert "Traceback" not in result.output
    assert "internal error" not in result.output
    return result


def in_a_process(*arguments: str | Path, **more: object) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "causeline.engine", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, check=False, **more)  # type: ignore[call-overload, no-any-return]


@pytest.fixture(scope="module")
def saved(small_bundle: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The investigation of the small incident as JSON."""
    path = tmp_path_factory.mktemp("out") / "deep" / "small.json"
    result = run("investigate", small_bundle, "-o", path)
    assert result.exit_code == 0, result.stderr
    assert result.stdout == ""
    assert f"wrote {path}" in result.stderr
    return path


# -- light -----------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    "arguments", [["--help"], ["investigate", "--help"], ["kb", "--help"], ["--version"]], ids=" ".join
)
def test_help_loads_nothing_heavy(arguments: list[str]) -> None:
    result = subprocess.run(
        [sys.executable, "-X", "importtime", "-m", "causeline.engine", *arguments],
        capture_output=True,
        text=True,
        check=True,
    )
    loaded = {line.rpartition("|")[2].strip().partition(".")[0] for line in result.stderr.splitlines()}
    assert "click" in loaded
    heavy = {"pgmpy", "duckdb", "sqlmodel", "ibis", "torch", "pandas", "networkx", "altair", "pydantic"}
    assert loaded & heavy == set()


def test_help_names_every_command() -> None:
    text = run("--help").stdout
    assert all(command in text for command in ("investigate", "facts", "report", "what-if", "adapters", "kb"))


# -- investigate and report ------------------------------------------------------------------------------------------
def test_same_bundle_gives_the_same_bytes_in_another_process(saved: Path, small_bundle: Path) -> None:
    again = in_a_process("investigate", small_bundle, "-f", "json", env={"PYTHONHASHSEED": "7", "PATH": "/usr/bin"})
    assert again.returncode == 0, again.stderr
    assert again.stdout == saved.read_text()
    assert again.stderr.startswith("causeline: reading")


def test_archive_of_the_bundle_gives_the_same_bytes(saved: Path, small_bundle: Path, tmp_path: Path) -> None:
    archive = tmp_path / "small.tar.gz"
    with tarfile.open(archive, "w:gz") as tar:
        tar.add(small_bundle, "small")
    assert run("investigate", archive, "-f", "json").stdout == saved.read_text()


def test_truth_beside_the_bundle_is_never_read(saved: Path, small_copy: Path) -> None:
    (small_copy / "truth.json").unlink()
    assert run("investigate", small_copy, "-f", "json").stdout == saved.read_text()


def test_supported_root_cause_sets_the_exit_code_only_when_asked(small_bundle: Path) -> None:
    result = run("investigate", small_bundle, "--exit-code", "--check")
    assert result.exit_code == 10
    assert "pgmpy agrees" in result.stderr
    assert "ECMP redistribution" in result.stdout


def test_nothing_found_exits_with_0_even_when_asked(small_copy: Path) -> None:
    shutil.rmtree(small_copy / "switches")
    assert run("investigate", small_copy, "--exit-code").exit_code == 0


@pytest.mark.parametrize(
    ("form", "begins"), [("terminal", "● Root cause"), ("html", "<!doctype html>"), ("md", "## SMALL")]
)
def test_report_renders_a_saved_investigation_like_a_new_one(
    form: str, begins: str, saved: Path, tmp_path: Path
) -> None:
    text = run("report", saved, "-f", form).stdout
    assert text.lower().startswith(begins.lower())
    assert run("report", saved, "-f", form).stdout == text
    if form != "terminal":
        target = tmp_path / f"page.{form}"
        assert run("report", saved, "-o", target).exit_code == 0
        assert target.read_text() == text


def test_json_report_of_a_saved_investigation_is_the_same_file(saved: Path) -> None:
    assert run("report", saved, "-f", "json").stdout == saved.read_text()


def test_option_at_does_not_replace_the_onset_the_steps_show(saved: Path, small_bundle: Path) -> None:
    result = run("investigate", small_bundle, "-f", "json", "--at", "20:16Z")
    assert result.exit_code == 0, result.stderr
    onset = Investigation.from_json(saved.read_text()).incident.onset
    assert Investigation.from_json(result.stdout).incident.onset == onset


def test_window_narrows_what_is_looked_at(small_bundle: Path) -> None:
    span = "2026-11-17T20:15:00Z/2026-11-17T20:17:00Z"
    found = json.loads(run("investigate", small_bundle, "-f", "json", "--window", span).stdout)
    assert found["incident"]["window"] == ["2026-11-17T20:15:00Z", "2026-11-17T20:17:00Z"]
    assert found["root_causes"] == []


# -- wrong arguments -------------------------------------------------------------------------------------------------
WRONG_QUESTIONS = {
    "job not in the bundle": (["--job", "no-such-job"], "small-run"),
    "job that is markup": (["--job", "<script>"], "small-run"),
    "empty job": (["--job", ""], "job"),
    "time that is none": (["--at", "yesterday"], "2026-11-17T20:31:00Z"),
    "window without an end": (["--window", "2026-11-17T20:15:00Z"], "START/END"),
    "window reversed": (["--window", "2026-11-17T20:45:00Z/2026-11-17T20:15:00Z"], "START/END"),
    "window of words": (["--window", "then/now"], "RFC 3339|2026-11-17T"),
    "format unknown": (["-f", "pdf"], "html"),
    "option unknown": (["--fast"], "--help"),
}


@pytest.mark.parametrize("question", WRONG_QUESTIONS)
def test_wrong_question_is_a_usage_error_with_a_remedy(question: str, small_bundle: Path) -> None:
    arguments, remedy = WRONG_QUESTIONS[question]
    result = run("investigate", small_bundle, *arguments)
    assert result.exit_code == 2, result.output
    assert result.stdout == ""
    assert re.search(remedy, result.stderr), result.stderr


def test_input_that_cannot_be_read_exits_with_3(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    (tmp_path / "note.txt").write_text("no bundle")
    (tmp_path / "broken.tar.gz").write_bytes(b"\x1f\x8b broken")
    for name in ("missing", "empty", "note.txt", "broken.tar.gz"):
        for command in ("investigate", "facts"):
            result = run(command, tmp_path / name)
            assert result.exit_code == 3, (command, name, result.output)
            assert result.stdout == ""
            assert name in result.stderr


@pytest.mark.parametrize("content", ["", "{", "[]", '{"schema": 2}', "\x00\x01", "null"], ids=repr)
def test_file_that_is_no_investigation_exits_with_3(content: str, tmp_path: Path) -> None:
    path = tmp_path / "saved.json"
    path.write_text(content)
    result = run("report", path)
    assert result.exit_code == 3
    assert str(path) in result.stderr
    assert "investigate -f json" in result.stderr


def test_directory_as_investigation_is_a_usage_error(tmp_path: Path) -> None:
    result = run("report", tmp_path)
    assert result.exit_code in (2, 3)
    assert "directory" in result.stderr


def test_output_that_cannot_be_written_says_so(saved: Path, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    result = run("report", saved, "-o", tmp_path / "file" / "page.html")
    assert result.exit_code == 1
    assert "-o" in result.stderr


def test_bundle_without_a_single_sample_says_so(small_copy: Path) -> None:
    for folder in ("switches", "hosts", "jobs"):
        shutil.rmtree(small_copy / folder)
    result = run("investigate", small_copy)
    assert result.exit_code == 2
    assert "no telemetry" in result.stderr


def test_closed_pipe_is_no_error_of_ours(small_bundle: Path) -> None:
    command = f"'{sys.executable}' -m causeline.engine facts --limit 0 '{small_bundle}' | head -1"
    result = subprocess.run(["bash", "-c", command], capture_output=True, text=True, check=False)
    assert result.stdout
    assert "internal error" not in result.stderr
    assert "Traceback" not in result.stderr
    assert "BrokenPipe" not in result.stderr


# -- facts and adapters ----------------------------------------------------------------------------------------------
def test_facts_are_listed_with_their_record(small_bundle: Path) -> None:
    result = run("facts", small_bundle, "--device", "leaf-01", "--metric", "queue_tx_bytes", "--limit", "3")
    *facts, rest = result.stdout.splitlines()
    assert len(facts) == 3
    assert all("leaf-01" in line and "queue_tx_bytes" in line and "gnmic.jsonl.gz" in line for line in facts)
    assert "--limit 0" in rest


def test_facts_tell_what_was_not_understood_on_stderr(small_copy: Path) -> None:
    (small_copy / "switches/leaf-02/syslog.log").write_bytes(b"")
    result = run("facts", small_copy, "--limit", "1")
    assert result.exit_code == 0
    assert "error: switches/leaf-02/syslog.log" in result.stderr


def test_facts_of_nothing_are_no_lines(small_bundle: Path) -> None:
    result = run("facts", small_bundle, "--device", "no-such-device")
    assert (result.exit_code, result.stdout) == (0, "")


def test_adapters_are_listed_one_a_line() -> None:
    lines = run("adapters", "list").stdout.splitlines()
    assert [line.split()[0] for line in lines] == [adapter.name for adapter in adapters.available()]


def test_one_file_is_tried_with_hints() -> None:
    file = CASES / "ethtool-driver" / "normal" / "ethtool_i.txt"
    result = run("adapters", "try", file, "--hint", "device=gpu-worker-042", "--hint", "netdev=ens11f0np0")
    assert result.exit_code == 0
    assert "ethtool-driver" in result.stdout
    assert "gpu-worker-042/ens11f0np0" in result.stdout


def test_file_nobody_reads_is_said_to_be_one(tmp_path: Path) -> None:
    (tmp_path / "poem.txt").write_text("Shall I compare thee\n")
    result = run("adapters", "try", tmp_path / "poem.txt")
    assert result.exit_code == 0
    assert "no adapter claims it" in result.stdout


@pytest.mark.parametrize("hint", ["colour=blue", "device", "=x"])
def test_wrong_hint_is_a_usage_error(hint: str) -> None:
    result = run("adapters", "try", CASES / "ethtool-driver" / "normal" / "ethtool_i.txt", "--hint", hint)
    assert result.exit_code == 2, result.output
    assert "--hint name=value" in result.stderr


def test_file_to_try_that_is_missing_exits_with_3(tmp_path: Path) -> None:
    result = run("adapters", "try", tmp_path / "missing.json")
    assert result.exit_code == 3
    assert "missing.json" in result.stderr


# -- the knowledge base ----------------------------------------------------------------------------------------------
def test_every_rule_is_listed_and_has_a_page() -> None:
    lines = [line.split() for line in run("kb", "list").stdout.splitlines()]
    rules = knowledge.load()
    assert {line[1] for line in lines} == {*rules.causes, *rules.mechanisms, *rules.signs}
    for rule in ("path.ecmp_redistribution", "queue_saturation", "queue_depth"):
        assert rule in run("kb", "show", rule).stdout


def test_page_of_an_unknown_rule_is_a_usage_error() -> None:
    result = run("kb", "show", "path.wormhole")
    assert result.exit_code == 2
    assert "kb list" in result.stderr


def test_invalid_rules_exit_with_4_and_every_place(tmp_path: Path) -> None:
    broken = tmp_path / "causes" / "path" / "wormhole.yaml"
    broken.parent.mkdir(parents=True)
    broken.write_text("format: 1\nid: path.wormhole\n")
    result = run("kb", "check", "--knowledge", tmp_path)
    assert result.exit_code == 4
    assert "wormhole.yaml:" in result.stderr


def test_invalid_rules_stop_an_investigation_with_4(small_bundle: Path, tmp_path: Path) -> None:
    (tmp_path / "causes" / "path").mkdir(parents=True)
    (tmp_path / "causes" / "path" / "wormhole.yaml").write_text("id: [\n")
    assert run("investigate", small_bundle, "--knowledge", tmp_path).exit_code == 4


def test_cases_of_one_cause_are_played() -> None:
    result = run("kb", "test", "phy.link_flap")
    assert result.exit_code == 0, result.stdout
    assert result.stdout.splitlines()[-1].endswith("0 failed")
    assert " 0 passed" not in f" {result.stdout.splitlines()[-1]}"


def test_cases_of_an_unknown_cause_are_a_usage_error() -> None:
    assert run("kb", "test", "phy.wormhole").exit_code == 2


def test_new_cause_is_started_and_never_overwritten(tmp_path: Path) -> None:
    assert run("kb", "new", "path.wormhole", "--into", tmp_path).exit_code == 0
    written = tmp_path / "causes" / "path" / "wormhole.yaml"
    assert "path.wormhole" in written.read_text()
    written.write_text("mine")
    again = run("kb", "new", "path.wormhole", "--into", tmp_path)
    assert again.exit_code != 0
    assert "exists" in again.stderr
    assert written.read_text() == "mine"


@pytest.mark.parametrize("rule", ["wormhole", "../../etc.passwd", "Path.Wormhole", "path."])
def test_id_that_is_none_starts_nothing(rule: str, tmp_path: Path) -> None:
    assert run("kb", "new", rule, "--into", tmp_path).exit_code == 2
    assert list(tmp_path.iterdir()) == []
