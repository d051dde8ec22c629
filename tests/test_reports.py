"""Reports: every format says what the investigation says, and names from telemetry stay text."""

from __future__ import annotations

import json
import re
from pathlib import Path

import jsonschema
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from investigation_variants import (
    inc_4127,
    named,
)
from rendered_variants import EACH_VARIANT, VARIANTS, Page, rendered
from rich.cells import cell_len

from causeline import reports
from causeline.engine.errors import UsageError
from causeline.engine.results import Investigation, Overlap
from causeline.reports.schema import SCHEMA_FILE, investigation_schema

GOLDENS = Path(__file__).parent / "goldens"


@pytest.fixture(autouse=True)
def eighty_columns(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setenv("NO_COLOR", "1")


@pytest.mark.parametrize("format", ["terminal", "md"])
@pytest.mark.parametrize("name", ["inc-4127", "quiet", "tied"])
def test_report_is_the_golden(format: str, name: str, request: pytest.FixtureRequest) -> None:
    golden = GOLDENS / f"{name}.{format}.txt"
    text = reports.render(VARIANTS[name], format)
    if request.config.getoption("--rewrite-goldens"):
        golden.write_text(text, encoding="utf-8")
    assert text == golden.read_text(encoding="utf-8")


def test_formats_are_those_of_the_folder() -> None:
    assert reports.formats() == ("html", "json", "md", "terminal")


def test_unknown_format_names_the_known_ones() -> None:
    with pytest.raises(UsageError, match=r"'pdf'.*html, json, md, terminal"):
        reports.render(inc_4127(), "pdf")


# JSON


def test_schema_file_is_fresh() -> None:
    assert SCHEMA_FILE.read_text(encoding="utf-8") == investigation_schema(), "run python -m causeline.reports.schema"


@EACH_VARIANT
def test_json_is_valid_and_returns_the_same_investigation(variant: str) -> None:
    text = rendered(variant, "json")
    jsonschema.Draft202012Validator(json.loads(SCHEMA_FILE.read_text(encoding="utf-8"))).validate(json.loads(text))
    assert Investigation.from_json(text).to_json() == text


def test_schema_refuses_an_unknown_status() -> None:
    content = json.loads(inc_4127().to_json())
    content["hypotheses"][0]["status"] = "guilty"
    schema = json.loads(SCHEMA_FILE.read_text(encoding="utf-8"))
    assert not jsonschema.Draft202012Validator(schema).is_valid(content)


# every format


@pytest.mark.parametrize("format", ["terminal", "md", "html"])
def test_checks_that_would_tell_nothing_are_not_proposed(format: str) -> None:
    base = inc_4127()
    check = base.next_checks[0].model_copy(update={"read": "the dullest counter"})
    for bits, told in ((0.0004, False), (0.2, True), (None, True)):
        checks = (check.model_copy(update={"expected_bits": bits}),)
        text = reports.render(base.model_copy(update={"next_checks": checks}), format)
        assert ("the dullest counter" in text) is told
        assert ("Nothing unread is expected to change the answer" in text) is not told


@pytest.mark.parametrize("format", ["terminal", "md", "html"])
def test_an_overlap_is_told(format: str) -> None:
    base = inc_4127()
    first, second = (hypothesis.id for hypothesis in base.hypotheses[:2])
    overlap = Overlap(hypotheses=(first, second), needed=(0.2, 0.3), together=0.9, statement="Both sufficed alone.")
    assert "Both sufficed alone." in reports.render(base.model_copy(update={"overlaps": (overlap,)}), format)


@EACH_VARIANT
@pytest.mark.parametrize("format", ["terminal", "md", "html"])
def test_every_id_a_report_mentions_is_one_of_the_investigation(variant: str, format: str) -> None:
    investigation = VARIANTS[variant]
    text = rendered(variant, format)
    if format == "html":
        text = Page(re.sub(r"<(style|pre|code)\b.*?</\1>", "", text, flags=re.DOTALL)).text
    known = {item.id for item in (*investigation.hypotheses, *investigation.findings, *investigation.tie_classes)}
    mentioned = set(re.findall(r"(?<![\w-])[HERT]\d+\b", text))
    assert mentioned <= known
    assert mentioned or not investigation.hypotheses


@pytest.mark.parametrize("format", reports.formats())
def test_same_investigation_gives_the_same_bytes(format: str) -> None:
    assert reports.render(inc_4127(), format) == rendered("inc-4127", format)


@EACH_VARIANT
@pytest.mark.parametrize("format", ["terminal", "md", "html"])
def test_no_control_or_reordering_character_survives(variant: str, format: str) -> None:
    assert not re.search("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]", rendered(variant, format))


# terminal


@EACH_VARIANT
def test_terminal_page_fits_a_screen(variant: str) -> None:
    lines = rendered(variant, "terminal").splitlines()
    assert len(lines) <= 40
    assert max(map(cell_len, lines)) <= 80


def test_first_terminal_line_says_what_where_and_how_sure() -> None:
    first = reports.render(inc_4127(), "terminal").splitlines()[0]
    assert "ECMP redistribution" in first and "leaf-07 Et12" in first and "97% sure" in first


def test_long_title_never_pushes_out_how_sure() -> None:
    first = reports.render(named("x" * 300), "terminal").splitlines()[0]
    assert first.endswith("97% sure")


def test_first_terminal_line_of_a_healthy_fabric_says_so() -> None:
    assert "No slowdown seen and no fault found" in rendered("quiet", "terminal").splitlines()[0]


def test_bundle_of_which_nothing_was_read_is_not_called_healthy() -> None:
    for format in ("terminal", "md", "html"):
        text = rendered("empty", format)
        assert "Nothing was read that could show a slowdown or a fault" in text
        assert "no fault found" not in text


def test_wider_terminal_shows_more_of_the_titles(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "120")
    lines = reports.render(inc_4127(), "terminal").splitlines()
    assert any("Degraded optic or cabling on leaf-07 Et12" in line and "4%" in line for line in lines)
    assert max(map(cell_len, lines)) <= 120


def test_every_share_above_zero_shows_in_its_bar() -> None:
    row = next(line for line in reports.render(inc_4127(), "terminal").splitlines() if line.startswith("✕ H4"))
    assert "▏" in row


@pytest.mark.parametrize(("no_colour", "escapes"), [("", True), ("1", False)])
def test_terminal_page_is_coloured_only_on_a_terminal_that_wants_it(
    monkeypatch: pytest.MonkeyPatch, no_colour: str, escapes: bool
) -> None:
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.setenv("NO_COLOR", no_colour)
    assert "\x1b[" not in rendered("inc-4127", "terminal")
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    assert ("\x1b[" in rendered("inc-4127", "terminal")) == escapes


# Markdown


def test_names_cannot_add_markup_to_a_ticket() -> None:
    text = reports.render(named("<b>bold</b> [link](http://evil.example) | cell\n# heading"), "md")
    assert "<b>" not in text.replace("\\<b", "")
    assert "[link](" not in text and "http://" not in text
    assert not re.search(r"^# heading", text, flags=re.MULTILINE)
    rows = [line for line in text.splitlines() if line.startswith("| H")]
    assert {len(re.findall(r"(?<!\\)\|", row)) for row in rows} == {6}


def test_commands_stay_code_in_a_ticket() -> None:
    assert "`nvidia-smi -q -d PERFORMANCE,CLOCK`" in reports.render(inc_4127(), "md")


@settings(max_examples=8, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.text(max_size=60))
@example("\n")
def test_any_name_renders_in_every_text_format(name: str) -> None:
    investigation = named(name)
    for format in ("terminal", "md"):
        text = reports.render(investigation, format)
        assert len(text.splitlines()) == len(reports.render(named("leaf-07"), format).splitlines())
