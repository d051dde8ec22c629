"""A short Markdown text for a ticket: verdict, top causes, what was ruled out and why, next checks."""

from __future__ import annotations

import re
from collections.abc import Iterable

from .references import Reference
from .view import EvidenceLine, HypothesisCard, View
from .wording import one_line

FORMAT = "md"

# Lines a section: a ticket is read beside others (judgement).
_RULED_OUT, _NOT_ASSESSABLE, _CHECKS, _EVIDENCE, _ISSUES = 8, 5, 5, 4, 8
_CODE = re.compile(r"(`[^`]+`)")
# Also what GitHub makes a link of without brackets; an underscore inside a word is not markup.
_SPECIAL = re.compile(r"([\\`*\[\]<>#|~&]|(?<!\w)_|_(?!\w)|:(?=//)|(?<=www)\.)")


def render(view: View) -> str:
    """GitHub-flavoured Markdown. Names and statements cannot add markup; `code` in them stays code."""
    return "\n".join(_lines(view)) + "\n"


def _lines(view: View) -> Iterable[str]:
    verdict = view.verdict
    yield f"## {_escaped(view.incident)}: {_escaped(verdict.kicker.lower())}"
    yield ""
    if verdict.headline:
        yield f"**{_escaped(verdict.headline)}**"
        yield ""
    for cause in verdict.causes:
        slowdown = f"{cause.share} of the slowdown, " if view.impact else ""
        yield f"**{_escaped(cause.title)}** ({cause.ids}: {slowdown}{cause.sure})"
        yield ""
        if cause.card.tie and cause.card.tie.split_by:
            yield f"Told apart by: {'; '.join(_escaped(check) for check in cause.card.tie.split_by)}"
            yield ""
    yield _escaped(verdict.summary)
    yield ""
    for overlap in view.overlaps:
        yield _escaped(overlap.statement)
        yield ""
    onset = f"{view.onset_day}, {view.onset} {view.onset_uncertainty}".rstrip() if view.onset else "not known"
    yield f"- Onset: {onset}"
    for impact in view.impact:
        owner = f" ({_escaped(impact.owner)})" if impact.owner else ""
        yield f"- Job {_escaped(impact.job)}{owner}: {impact.measure} {impact.step_times} ({impact.change})"
    if verdict.kind != "quiet":
        yield f"- Where: {view.domain}; part of the congestion loop: {view.loop.lower()}"
    if view.cards:
        columns = ["Hypothesis", "Share", "Present", "Status"] if view.impact else ["Hypothesis", "Present", "Status"]
        yield from ("", "### Hypotheses", "", _row("", *columns), _row(*["---"] * (len(columns) + 1)))
        for card in view.cards:
            status = f"{card.mark} {card.status_word}" + (f", {card.role}" if card.role else "")
            shares = (card.share,) if view.impact else ()
            yield _row(card.id, _escaped(card.title), *shares, card.probability, status)
        if view.impact:
            yield _row("", view.unknown.name, view.unknown.text, "", "")
    for cause in verdict.causes:
        yield from _evidence(cause.card)
    if view.ruled_out:
        yield from ("", f"### Ruled out ({len(view.ruled_out)})", "")
        for card in view.ruled_out[:_RULED_OUT]:
            findings = _ids(line.finding for line in card.evidence_against)
            yield f"- **{card.id} {_escaped(card.title)}**: {_escaped(card.reason)} ({findings})"
        yield from _rest(len(view.ruled_out) - _RULED_OUT)
    if view.not_assessable:
        yield from ("", f"### Not assessable ({len(view.not_assessable)})", "")
        for card in view.not_assessable[:_NOT_ASSESSABLE]:
            reads = "; ".join(f"{_escaped(missing.read)} ({_escaped(missing.place)})" for missing in card.missing)
            yield f"- **{card.id} {_escaped(card.title)}**: read {reads}"
        yield from _rest(len(view.not_assessable) - _NOT_ASSESSABLE)
    if view.next_checks or view.no_check:
        yield from ("", "### Next checks", "")
    if view.no_check:
        yield _escaped(view.no_check)
    for number, check in enumerate(view.next_checks[:_CHECKS], start=1):
        splits = f", splits {_ids(check.splits)}" if check.splits else ""
        gain = f", expected gain {check.gain}" if check.gain else ""
        yield f"{number}. {_escaped(check.read)} ({_escaped(check.cost)}{gain}{splits})"
    if view.grounds:
        yield from ("", "### What the verdict hangs on", "")
        for ground in view.grounds:
            yield f"- {_escaped(ground.statement)}"
    not_understood = [issue for issue in view.read_issues if issue.level != "note"]
    if not_understood:
        yield from ("", f"### Not understood ({len(not_understood)})", "")
        for issue in not_understood[:_ISSUES]:
            where = " ".join(filter(None, (issue.file, issue.record)))
            yield f"- {issue.level}: {_escaped(where)}: {_escaped(issue.message)}"
        yield from _rest(len(not_understood) - _ISSUES)
    versions = f"Causeline {_escaped(view.versions.engine)}, knowledge {_escaped(view.versions.knowledge_digest)}"
    yield from ("", f"{view.evidence_count}, {view.issue_count}. {versions}.")


def _row(*cells: str) -> str:
    return f"| {' | '.join(cells)} |"


def _evidence(card: HypothesisCard) -> Iterable[str]:
    if card.evidence_for:
        yield from ("", f"### Evidence for {card.id}", "")
        for line in card.evidence_for[:_EVIDENCE]:
            yield f"- {line.finding.id}: {_escaped(line.statement)}{_source(line)}"
        yield from _rest(len(card.evidence_for) - _EVIDENCE)
    for number, step in enumerate(card.first_checks, start=1):
        if number == 1:
            yield from ("", f"### First checks for {card.id}", "")
        yield f"{number}. {_escaped(step)}"


def _source(line: EvidenceLine) -> str:
    if line.source is None:
        return ""
    quoted = one_line(line.source.text).replace("`", "'")
    return f" (`{quoted}`)"


def _rest(count: int) -> Iterable[str]:
    if count > 0:
        yield f"- and {count} more in the full report"


def _ids(references: Iterable[Reference]) -> str:
    return ", ".join(reference.id for reference in references) or "no finding"


def _escaped(text: str) -> str:
    parts = _CODE.split(one_line(text))
    return "".join(part if _CODE.fullmatch(part) else _SPECIAL.sub(r"\\\1", part) for part in parts)
