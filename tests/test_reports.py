"""Reports: every format says what the investigation says, links lead somewhere, and names from telemetry stay text."""

from __future__ import annotations

import json
import re
from collections import Counter
from datetime import UTC, datetime, timedelta
from functools import cache
from html.parser import HTMLParser
from pathlib import Path

import jsonschema
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from investigation_variants import (
    CLOCK,
    HOSTILE_NAMES,
    all_variants,
    inc_4127,
    many_hypotheses,
    named,
    tied,
    two_root_causes,
)
from rich.cells import cell_len

from causeline import reports
from causeline.engine.errors import UsageError
from causeline.engine.results import FactReference, Investigation, Numbers, Overlap
from causeline.reports import wording
from causeline.reports.schema import SCHEMA_FILE, investigation_schema

GOLDENS = Path(__file__).parent / "goldens"
VARIANTS = all_variants()
EACH_VARIANT = pytest.mark.parametrize("variant", VARIANTS)


@pytest.fixture(autouse=True)
def eighty_columns(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setenv("NO_COLOR", "1")


@cache
def page_of(variant: str) -> str:
    """The HTML page of a variant, rendered once for all tests that only read it."""
    return reports.render(VARIANTS[variant], "html")


def rendered(variant: str, format: str) -> str:
    return page_of(variant) if format == "html" else reports.render(VARIANTS[variant], format)


class Page(HTMLParser):
    """What a browser would find: tags, ids, link targets, attributes and text."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.tags: Counter[str] = Counter()
        self.ids: list[str] = []
        self.targets: list[str] = []
        self.attributes: list[tuple[str, str, str]] = []
        self.text = ""
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags[tag] += 1
        for name, value in attrs:
            self.attributes.append((tag, name, value or ""))
            if name == "id":
                self.ids.append(value or "")
            if name == "href" and (value or "").startswith("#"):
                self.targets.append((value or "")[1:])

    def handle_data(self, data: str) -> None:
        self.text += data


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


# HTML


@EACH_VARIANT
def test_every_link_of_the_page_leads_to_one_place(variant: str) -> None:
    page = Page(page_of(variant))
    assert [id for id, count in Counter(page.ids).items() if count > 1] == []
    assert set(page.targets) - set(page.ids) == set()


@EACH_VARIANT
def test_page_is_one_small_self_contained_file(variant: str) -> None:
    html = page_of(variant)
    page = Page(html)
    loading = {"script", "iframe", "object", "embed", "img", "audio", "video", "base", "form"}
    assert loading & set(page.tags) == set()
    sources = [value for tag, name, value in page.attributes if name in ("src", "href", "xlink:href", "srcset", "data")]
    assert [value for value in sources if not value.startswith(("#", "data:,"))] == []
    assert not re.search(r"@import|url\((?!#)", html.split("</style>")[0])
    assert [name for _, name, _ in page.attributes if name.startswith("on")] == []
    assert ("meta", "content", CSP) in page.attributes
    assert len(html.encode()) < 1_000_000


CSP = "default-src 'none'; style-src 'unsafe-inline'; img-src data:; base-uri 'none'; form-action 'none'"


def test_every_finding_hypothesis_and_file_of_a_page_has_its_anchor() -> None:
    investigation = inc_4127()
    page = Page(reports.render(investigation, "html"))
    assert {item.id for item in (*investigation.findings, *investigation.hypotheses)} <= set(page.ids)
    files = {fact.file for finding in investigation.findings for fact in finding.facts}
    assert sum(id.startswith("file-") for id in page.ids) == len(files)


def test_every_finding_that_counts_links_back_to_the_hypotheses_it_counts_for() -> None:
    html = page_of("inc-4127")
    for hypothesis in inc_4127().hypotheses:
        for weighed in (*hypothesis.evidence_for, *hypothesis.evidence_against):
            article = re.search(rf'<article class="evidence \w+" id="{weighed.finding}">.*?</article>', html, re.DOTALL)
            assert article and f'href="#{hypothesis.id}"' in article[0]


def test_every_record_is_quoted_with_file_place_and_digest() -> None:
    text = " ".join(Page(page_of("inc-4127")).text.split())
    for finding in inc_4127().findings:
        for fact in finding.facts:
            assert f"{fact.file} · {fact.record} · sha256 {fact.sha256[:12]}" in text
            assert " ".join(fact.excerpt.split()) in text


def test_dangling_id_is_text_and_not_a_link() -> None:
    investigation = inc_4127()
    chain = (investigation.chain[0].model_copy(update={"findings": ("E999",)}),)
    html = reports.render(investigation.model_copy(update={"chain": chain, "telemetry": ()}), "html")
    assert "E999" in html and "#E999" not in html


@pytest.mark.parametrize("name", HOSTILE_NAMES, ids=range(len(HOSTILE_NAMES)))
def test_hostile_name_is_text_on_the_page(name: str) -> None:
    honest, hostile = Page(page_of("ordinary-name")), Page(reports.render(named(name), "html"))
    assert hostile.tags - honest.tags <= Counter(code=6)
    assert wording.one_line(wording.visible(name)) in wording.one_line(hostile.text)


def test_sections_stand_in_reading_order() -> None:
    html = page_of("inc-4127")
    sections = re.findall(r'<section id="([\w-]+)">', html)
    assert sections == [
        "hypotheses",
        "telemetry",
        "chain",
        "ruled-out",
        "not-assessable",
        "next-checks",
        "timeline",
        "evidence",
        "coverage",
        "read-issues",
    ]


def test_two_root_causes_are_both_in_the_headline() -> None:
    investigation = two_root_causes()
    headline = re.findall(r"<h1.*?</h1>", page_of("two-root-causes"), re.DOTALL)
    titles = [hypothesis.title for hypothesis in investigation.hypotheses if hypothesis.role == "root"]
    assert len(headline) == len(titles) == 2
    assert all(any(title in line for line in headline) for title in titles)


def test_tie_class_names_all_its_members_and_what_splits_them() -> None:
    investigation = tied()
    titles = [h.title for h in investigation.hypotheses if h.id in investigation.tie_classes[0].members]
    for format in ("html", "md"):
        text = rendered("tied", format)
        verdict = text.split('class="lede"')[0] if format == "html" else text.split("- Onset")[0]
        assert all(title in verdict for title in titles)
        assert investigation.tie_classes[0].split_by[0] in text


def test_investigation_where_nothing_was_read_claims_nothing() -> None:
    for format in ("terminal", "md", "html"):
        text = rendered("nothing-assessable", format)
        assert "Nothing that could decide was read" in text
        assert "Root cause:" not in text


def test_five_hundred_hypotheses_are_folded_away() -> None:
    page = Page(page_of("many-hypotheses"))
    assert sum(("hypothesis" in value.split()) for _, name, value in page.attributes if name == "class") == 7
    assert {f"H{number}" for number in range(1, 501)} <= set(page.ids)


def test_hypotheses_beyond_five_hundred_are_counted_and_links_to_them_are_not_made() -> None:
    investigation = many_hypotheses(520).model_copy(update={"telemetry": ()})
    html = reports.render(investigation, "html")
    page = Page(html)
    assert "20 less likely hypotheses are in the JSON report only." in page.text
    assert set(page.targets) - set(page.ids) == set()
    assert len(html.encode()) < 1_000_000


# charts


def test_entries_of_one_second_are_one_rule() -> None:
    entry = next(entry for entry in inc_4127().timeline if entry.fact)
    timeline = tuple(entry.model_copy(update={"ts": f"2026-11-17T20:31:00.{number}Z"}) for number in range(1, 9))
    html = reports.render(inc_4127().model_copy(update={"timeline": timeline}), "html")
    rules = re.findall(r'<ol class="rules">.*?</ol>', html, re.DOTALL)[0]
    assert rules.count("<li") == 2 and "and 7 more" in rules


def test_page_without_telemetry_says_so() -> None:
    html = page_of("without-telemetry")
    assert "No telemetry series came with this investigation." in html and "<figure" not in html


def test_every_panel_and_rule_is_drawn_wide_and_narrow() -> None:
    html = page_of("inc-4127")
    drawings = re.findall(r"<figure.*?</figure>", html, re.DOTALL)
    assert len(drawings) == 2
    for drawing in drawings:
        labels = re.findall(r"<text[^>]*>([^<]*)</text>", drawing)
        for panel in ("Step time (s)", "Queue (B)", "Marks (packets/s)", "CNPs (packets/s)", "Pauses (frames/s)"):
            assert panel in labels
        assert "onset 20:31:02" in labels


def test_drawing_has_no_colour_that_dark_ground_would_hide() -> None:
    html = page_of("inc-4127")
    for drawing in re.findall(r"<figure.*?</figure>", html, re.DOTALL):
        paints = set(re.findall(r'\b(?:fill|stroke)="([^"]+)"', drawing))
        assert {paint for paint in paints if not paint.startswith("var(--")} <= {"none", "transparent"}


def test_gap_in_the_samples_is_not_drawn_over() -> None:
    start = datetime(2026, 11, 17, 20, 15, tzinfo=UTC)
    seconds = [*range(0, 300, 15), *range(900, 1200, 15)]
    points = tuple((f"{start + timedelta(seconds=second):{CLOCK}}", 1.0) for second in seconds)
    series = inc_4127().telemetry[1].model_copy(update={"points": points})
    html = reports.render(inc_4127().model_copy(update={"telemetry": (series,)}), "html")
    path = next(path for path in re.findall(r'd="([^"]+)"', html) if path.count("L") > 20)
    assert path.count("M") == 2


def test_very_long_series_keep_their_peak_and_the_page_small() -> None:
    start = datetime(2026, 11, 17, 20, 15, tzinfo=UTC)
    times = [f"{start + timedelta(milliseconds=18 * number):{CLOCK}}" for number in range(100_000)]
    points = tuple((time, 9000.0 if number == 61_234 else 1.0) for number, time in enumerate(times))
    series = inc_4127().telemetry[1].model_copy(update={"points": points})
    html = reports.render(inc_4127().model_copy(update={"telemetry": (series,)}), "html")
    assert len(html.encode()) < 1_000_000
    path = next(path for path in re.findall(r'd="([^"]+)"', html) if path.count("L") > 200)
    heights = [float(y) for y in re.findall(r",(-?[\d.]+)", path)]
    assert min(heights) < 10


# wording


@pytest.mark.parametrize(
    ("ratio", "words"),
    [
        (0, "0%"),
        (1e-9, "<0.1%"),
        (0.004, "0.4%"),
        (0.04, "4%"),
        (0.92, "92%"),
        (0.9949, "99%"),
        (0.9951, ">99%"),
        (1, "100%"),
    ],
)
def test_percent(ratio: float, words: str) -> None:
    assert wording.percent(ratio) == words


@given(st.floats(0, 1))
def test_only_certainty_is_written_as_certainty(ratio: float) -> None:
    assert (wording.percent(ratio) == "100%") == (ratio == 1)
    assert (wording.percent(ratio) == "0%") == (ratio == 0)


@pytest.mark.parametrize(
    ("value", "unit", "words"),
    [
        (3104768, "B", "3.1 MB"),
        (212e9, "bit/s", "212 Gbit/s"),
        (0.995, "ratio", "99.5%"),
        (41200, "packets/s", "41,200 packets/s"),
        (1.24e6, "packets/s", "1,240,000 packets/s"),
        (2.84, "s", "2.84 s"),
        (-1.21, "dBm", "-1.21 dBm"),
        (3.1e-9, "1", "3.1e-9"),
        (1500, "us", "1.5 ms"),
        (0, "events", "0 events"),
        (999.9996, "", "1,000"),
        (float("-inf"), "dBm", "-inf dBm"),
    ],
)
def test_quantity(value: float, unit: str, words: str) -> None:
    assert wording.quantity(value, unit) == words


@given(st.floats(-1e300, 1e300))
def test_number_is_within_half_a_percent(value: float) -> None:
    assert float(wording.number(value).replace(",", "")) == pytest.approx(value, rel=0.0051)


def test_reading_leaves_out_what_was_not_read() -> None:
    assert wording.reading(Numbers(observed=2.84, baseline=2.31, unit="s")) == "2.84 s, before 2.31 s"
    assert wording.reading(Numbers()) == ""


@pytest.mark.parametrize(
    ("scope", "words"),
    [
        ("queue:leaf-07/Ethernet12/3", "leaf-07 Et12 TC3"),
        ("port:leaf-07/Ethernet1~12", "leaf-07 Et1/12"),
        ("job:run-0412", "run-0412"),
        ("rail:7", "rail 7"),
        ("link:leaf-07/Ethernet12/spine-04/Ethernet7", "leaf-07 Et12 to spine-04 Et7"),
        ("not a scope", "not a scope"),
    ],
)
def test_place_is_written_as_engineers_say_it(scope: str, words: str) -> None:
    assert wording.place(scope) == words


@settings(max_examples=8, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.text(max_size=60))
@example("\n")
def test_any_name_renders_in_every_text_format(name: str) -> None:
    investigation = named(name)
    for format in ("terminal", "md"):
        text = reports.render(investigation, format)
        assert len(text.splitlines()) == len(reports.render(named("leaf-07"), format).splitlines())


def test_excerpt_that_spans_lines_stays_readable() -> None:
    excerpt = "first line\n\tsecond line"
    fact = FactReference(file="a", record="lines 1-2", sha256="0" * 64, excerpt=excerpt)
    finding = inc_4127().findings[0].model_copy(update={"facts": (fact,)})
    investigation = inc_4127().model_copy(update={"findings": (finding, *inc_4127().findings[1:])})
    assert excerpt in reports.render(investigation, "html")
