"""The HTML page: every link leads somewhere, names from telemetry stay text, charts show what was read."""

from __future__ import annotations

import re
from collections import Counter
from datetime import UTC, datetime, timedelta

import pytest
from investigation_variants import (
    CLOCK,
    HOSTILE_NAMES,
    inc_4127,
    many_hypotheses,
    named,
    tied,
    two_root_causes,
)
from rendered_variants import EACH_VARIANT, Page, page_of, rendered

from causeline import reports
from causeline.engine.results import FactReference
from causeline.reports import wording

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


def test_excerpt_that_spans_lines_stays_readable() -> None:
    excerpt = "first line\n\tsecond line"
    fact = FactReference(file="a", record="lines 1-2", sha256="0" * 64, excerpt=excerpt)
    finding = inc_4127().findings[0].model_copy(update={"facts": (fact,)})
    investigation = inc_4127().model_copy(update={"findings": (finding, *inc_4127().findings[1:])})
    assert excerpt in reports.render(investigation, "html")
