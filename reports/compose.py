"""From an investigation to its view: order, rounding, wording and anchors of every report are made here, nowhere else.

Nothing about the incident is decided here: status, share and reasons are the engine's. Control and reordering
characters in names from telemetry are written as codes before anything else sees them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Literal, cast

from ..engine.results import (
    Finding,
    Hypothesis,
    Impact,
    Investigation,
    Place,
    Role,
    Status,
    TieClass,
    WeighedFinding,
)
from ..engine.scope import Scope, short_port
from . import wording
from .checks import checks_of, no_check
from .panels import panels_of, rules_of
from .references import Reference, anchor
from .slowdown import slowdown_share
from .view import (
    ChainStep,
    Evidence,
    EvidenceLine,
    Ground,
    HypothesisCard,
    ImpactLine,
    NamedCause,
    Part,
    QuotedFile,
    Record,
    Tie,
    TimelineLine,
    Verdict,
    View,
)

# One sign a status: readable without colour. Their order is the order of the list where shares are equal.
_STATUS: dict[Status, tuple[str, str]] = {
    "supported": ("●", "supported"),
    "possible": ("◐", "possible"),
    "ruled_out": ("✕", "ruled out"),
    "not_assessable": ("?", "not assessable"),
}
_STRONG = 2.0
"""Log10 Bayes factor of a finding that makes an anomaly of it (judgement: decisive, as for ruling out in DESIGN.md
section 6)."""
_MEASURE = {"rise": "step time", "intermittent": "mean step time", "stall": "longest step"}
_ROLE: dict[Role, str] = {
    "root": "root cause",
    "contributing": "contributing cause",
    "consequence": "consequence of another cause",
    "co_occurring": "present, but not the cause of this",
}
_DOMAIN = {"network": "Network", "host": "Hosts", "job": "Job", "telemetry": "Telemetry"}
_LOOP = {
    "load": "Load",
    "thresholds": "Thresholds",
    "nic": "Misbehaving NIC",
    "physical": "Physical fault",
    "path": "Path",
    "other": "Other",
}
# So many hypotheses are shown as cards, the others as one line each (judgement: a screen).
_CARDS = 6
# The likeliest hypotheses that reports list; all are in the JSON. 500 keep the page under 1 MB.
_LISTED = 500


def view_of(investigation: Investigation) -> View:
    """The view of an investigation. Never fails on a valid one: an id that nothing defines is text, not a link."""
    shown = Investigation.model_validate(_visible(investigation.model_dump(by_alias=True)))
    return _Composer(investigation, shown).view()


def _visible(value: object) -> object:
    if isinstance(value, str):
        return wording.visible(value)
    if isinstance(value, dict):
        return {key: _visible(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return tuple(_visible(inner) for inner in value)
    return value


class _Composer:
    """Holds the look-up tables of one investigation while its view is made."""

    def __init__(self, investigation: Investigation, shown: Investigation) -> None:
        self.investigation = investigation
        self.shown = shown
        self.findings = {finding.id: finding for finding in shown.findings}
        self.hypotheses = {hypothesis.id: hypothesis for hypothesis in shown.hypotheses}
        self.listed = {hypothesis.id: hypothesis for hypothesis in shown.hypotheses[:_LISTED]}
        self.ties = {tie.id: tie for tie in shown.tie_classes}
        self.files: dict[str, tuple[str, list[str]]] = {}
        for finding in shown.findings:
            for fact in finding.facts:
                quoted_by = self.files.setdefault(fact.file, (fact.sha256, []))[1]
                if finding.id not in quoted_by:
                    quoted_by.append(finding.id)
        self.file_anchors = {path: f"file-{number}" for number, path in enumerate(self.files, start=1)}

    def view(self) -> View:
        shown = self.shown
        incident = shown.incident
        ordered = tuple(self.card(hypothesis) for hypothesis in self.listed.values())
        named = tuple(card for card in ordered if card.count == 1)
        remaining = tuple(card for card in ordered if card.count != 1)
        panels = panels_of(shown.telemetry, self.reference)
        timeline = self.timeline()
        loop, domain = shown.loop, shown.domain
        return View(
            investigation=self.investigation,
            incident=incident.id,
            fabric=incident.fabric or "",
            job=incident.job or "",
            window=wording.time_span(incident.window),
            onset=f"{wording.clock(incident.onset)} UTC" if incident.onset else "",
            onset_day=wording.day(incident.onset) if incident.onset else "",
            onset_uncertainty=wording.uncertainty(incident.onset_uncertainty_s),
            verdict=self.verdict(ordered),
            impact=tuple(self.impact(impact) for impact in shown.impact),
            loop=_LOOP.get(loop.verdict, "Undecided"),
            loop_parts=_parts(_LOOP, lambda name: cast(float, getattr(loop, name))),
            domain=f"in the {_DOMAIN[domain.verdict].lower()}"
            if domain.verdict != "undecided"
            else "network or hosts is undecided",
            domain_parts=_parts(_DOMAIN, lambda name: cast(float, getattr(domain, name))),
            rank_word="share of slowdown" if shown.impact else "probability",
            cards=named[:_CARDS],
            more=named[_CARDS:],
            not_listed=len(self.hypotheses) - len(self.listed),
            remaining=remaining,
            unknown=Part("Unknown cause", wording.percent(shown.unknown.share), shown.unknown.share),
            ties=tuple(self.tie(tie) for tie in shown.tie_classes),
            # single places first: they are the ones somebody suspects
            ruled_out=tuple(card for card in (*named, *remaining) if card.status == "ruled_out"),
            not_assessable=tuple(card for card in ordered if card.status == "not_assessable"),
            panels=panels,
            rules=rules_of(shown, panels, tuple(line.anchor for line in timeline)),
            chain=tuple(
                ChainStep(_kind(step.scope), wording.place(step.scope), step.statement, self.references(step.findings))
                for step in shown.chain
            ),
            timeline=timeline,
            next_checks=checks_of(shown.next_checks, self.references),
            no_check=no_check(shown.next_checks),
            overlaps=tuple(
                Ground(self.reference(one.hypotheses[0]), wording.one_line(one.statement)) for one in shown.overlaps
            ),
            grounds=tuple(
                Ground(self.reference(one.hypothesis), wording.one_line(one.statement)) for one in shown.sensitivity
            ),
            evidence=tuple(self.evidence(finding) for finding in shown.findings),
            files=tuple(
                QuotedFile(self.file_anchors[path], path, digest, self.references(quoted_by))
                for path, (digest, quoted_by) in self.files.items()
            ),
            coverage=tuple(
                row.model_copy(update={"scope": wording.place(row.scope)})
                for row in sorted(shown.coverage, key=lambda row: ("missing", "partial", "collected").index(row.state))
            ),
            read_issues=tuple(sorted(shown.read_issues, key=lambda row: ("error", "warning", "note").index(row.level))),
            evidence_count=f"{wording.counted(len(shown.findings), 'finding')} from "
            f"{wording.counted(len(self.files), 'file')}",
            issue_count=wording.issue_count(tuple(issue.level for issue in shown.read_issues)),
            versions=shown.versions,
        )

    # references

    def reference(self, id: str, text: str = "") -> Reference:
        known = id in self.findings or id in self.listed or id in self.ties
        return Reference(id, anchor(id) if known else None, text)

    def references(self, ids: Iterable[str]) -> tuple[Reference, ...]:
        return tuple(self.reference(id) for id in ids)

    # hypotheses

    def card(self, hypothesis: Hypothesis) -> HypothesisCard:
        mark, word = _STATUS[hypothesis.status]
        tie = self.ties.get(hypothesis.tie_class or "")
        rank = hypothesis.share if self.shown.impact else hypothesis.probability
        return HypothesisCard(
            id=hypothesis.id,
            anchor=anchor(hypothesis.id),
            title=wording.sentence(hypothesis.title),
            cause=hypothesis.cause,
            count=hypothesis.count,
            places=tuple(_place(place) for place in hypothesis.places) or (wording.place(hypothesis.scope),),
            status=hypothesis.status,
            status_word=word,
            mark=mark,
            role=_ROLE[hypothesis.role] if hypothesis.role else "",
            rank=wording.percent(rank),
            rank_ratio=rank,
            share=wording.percent(hypothesis.share),
            probability=wording.percent(hypothesis.probability),
            prior=wording.number(hypothesis.prior),
            reason=wording.one_line(hypothesis.reason),
            evidence_for=self.weighed(hypothesis.evidence_for),
            evidence_against=self.weighed(hypothesis.evidence_against),
            missing=tuple(
                missing.model_copy(update={"place": wording.place(missing.place)}) for missing in hypothesis.missing
            ),
            first_checks=hypothesis.first_checks,
            remedy=hypothesis.remedy,
            triggered_by=tuple(
                self.reference(id, wording.sentence(self.hypotheses[id].title) if id in self.hypotheses else "")
                for id in hypothesis.triggered_by
            ),
            tie=self.tie(tie) if tie else None,
        )

    def tie(self, tie: TieClass) -> Tie:
        members = tuple(
            self.reference(id, wording.sentence(self.hypotheses[id].title) if id in self.hypotheses else "")
            for id in tie.members
        )
        return Tie(
            tie.id, anchor(tie.id), members, wording.percent(tie.share), wording.percent(tie.probability), tie.split_by
        )

    def weighed(self, weighed: Iterable[WeighedFinding]) -> tuple[EvidenceLine, ...]:
        return tuple(
            self.evidence_line(one) for one in sorted(weighed, key=lambda one: (-abs(one.weight), one.finding))
        )

    def evidence_line(self, weighed: WeighedFinding) -> EvidenceLine:
        finding = self.findings.get(weighed.finding)
        source = None
        if finding and finding.facts:
            fact = finding.facts[0]
            source = Reference(fact.file, anchor(finding.id, "1"), f"{fact.file}, {fact.record}")
        return EvidenceLine(
            finding=self.reference(weighed.finding),
            statement=finding.statement if finding else "",
            reading=wording.reading(finding.numbers) if finding else "",
            strength=wording.strength(weighed.weight),
            factor=wording.factor(weighed.weight),
            alone=wording.by_itself(weighed.alone, weighed.weight),
            source=source,
        )

    # the answer

    def verdict(self, ordered: tuple[HypothesisCard, ...]) -> Verdict:
        roots = tuple(card for id in self.shown.root_causes for card in ordered if card.id == id)
        if roots:
            kicker = "Root cause" if len(roots) == 1 else f"{len(roots)} root causes"
            return self.worded("found", kicker, "", roots)
        if self.shown.impact:
            possible = tuple(card for card in ordered if card.status == "possible" and card.count == 1)
            if possible:
                headline = "Not decided; the leading possibility is"
            elif any(card.status == "not_assessable" for card in ordered):
                headline = "Nothing that could decide was read"
            else:
                headline = "Everything in the catalogue is ruled out"
            return self.worded("undecided", "No root cause established", headline, possible[:1])
        supported = tuple(card for card in ordered if card.status == "supported")
        if supported:
            anomalies = "one anomaly" if len(supported) == 1 else f"{len(supported)} anomalies"
            headline = f"No slowdown seen, and {anomalies} without effect on a job"
        elif odd := tuple(card for card in ordered if self.is_anomaly(card)):
            headline = "No slowdown seen; something else changed, and its cause is not established"
            return self.worded("quiet", "No root cause", headline, odd[:1])
        elif any(finding.state != "unknown" for finding in self.shown.findings):
            headline = "No slowdown seen and no fault found"
        else:
            headline = "Nothing was read that could show a slowdown or a fault"
        return self.worded("quiet", "No root cause", headline, supported)

    def is_anomaly(self, card: HypothesisCard) -> bool:
        """Whether a possible cause rests on a strong finding, new at a known onset."""
        return (
            card.status == "possible"
            and card.count == 1
            and self.shown.incident.onset is not None
            and any(one.weight >= _STRONG for one in self.hypotheses[card.id].evidence_for)
        )

    def worded(
        self,
        kind: Literal["found", "undecided", "quiet"],
        kicker: str,
        headline: str,
        named: tuple[HypothesisCard, ...],
    ) -> Verdict:
        causes = tuple(self.named_cause(card) for card in named)
        return Verdict(kind, kicker, headline, causes, wording.sentence(self.shown.summary))

    def named_cause(self, card: HypothesisCard) -> NamedCause:
        if card.tie is None:
            share = slowdown_share(self.shown.impact, (card.id,), self.hypotheses[card.id].share)
            return NamedCause(card, card.id, card.title, wording.percent(share), share, f"{card.probability} sure")
        others = tuple(member for member in card.tie.members if member.id != card.id)
        ids = " or ".join([card.id, *(other.id for other in others)])
        titles = " or ".join([card.title, *(other.text for other in others)])
        tie = self.ties[card.tie.id]
        share = slowdown_share(self.shown.impact, tie.members, tie.share)
        return NamedCause(card, ids, titles, wording.percent(share), share, f"{card.tie.probability} sure")

    def impact(self, impact: Impact) -> ImpactLine:
        shares = sorted(impact.share_explained.items(), key=lambda item: (-item[1], item[0]))
        return ImpactLine(
            job=impact.job,
            owner=", ".join(text for text in (impact.tenant, impact.model) if text),
            measure=_MEASURE[impact.kind],
            change=("≥ " if impact.at_least else "") + wording.change(impact.change),
            step_times=f"{wording.quantity(impact.before_s, 's')} → {'at least ' if impact.at_least else ''}"
            f"{wording.quantity(impact.after_s, 's')}",
            explained=tuple(self.reference(id, wording.percent(share)) for id, share in shares if share >= 0.01),
            finding=self.reference(impact.finding) if impact.finding else None,
        )

    # evidence

    def evidence(self, finding: Finding) -> Evidence:
        return Evidence(
            id=finding.id,
            anchor=anchor(finding.id),
            sign=finding.sign,
            place=wording.place(finding.scope),
            state=finding.state,
            statement=wording.one_line(finding.statement),
            reading=wording.reading(finding.numbers),
            level=finding.level,
            window=wording.time_span(finding.window),
            records=tuple(
                Record(
                    anchor(finding.id, str(number)),
                    fact.file,
                    self.file_anchors[fact.file],
                    fact.record,
                    fact.sha256,
                    fact.excerpt,
                )
                for number, fact in enumerate(finding.facts, start=1)
            ),
            used_by=self.used_by(finding.id),
        )

    def used_by(self, finding: str) -> tuple[Reference, ...]:
        shown = self.shown
        weighing = [
            self.reference(hypothesis.id)
            for hypothesis in self.listed.values()
            if any(one.finding == finding for one in (*hypothesis.evidence_for, *hypothesis.evidence_against))
        ]
        sections = [
            Reference(name, name.lower().replace(" ", "-"))
            for name, mentions in (
                ("Impact", any(impact.finding == finding for impact in shown.impact)),
                ("Chain", any(finding in step.findings for step in shown.chain)),
                ("Next checks", any(finding in one.findings for one in shown.sensitivity)),
                ("Timeline", any(entry.finding == finding for entry in shown.timeline)),
                ("Telemetry", any(series.finding == finding for series in shown.telemetry)),
            )
            if mentions
        ]
        return (*weighing, *sections)

    def timeline(self) -> tuple[TimelineLine, ...]:
        onset = wording.parsed_time(self.shown.incident.onset)
        return tuple(
            TimelineLine(
                anchor=f"moment-{number}",
                after_onset=onset is not None and (wording.parsed_time(entry.ts) or onset) >= onset,
                day=wording.day(entry.ts),
                clock=wording.clock(entry.ts),
                place=wording.place(entry.scope),
                statement=wording.one_line(entry.statement),
                finding=self.reference(entry.finding) if entry.finding else None,
                source=f"{entry.fact.file}, {entry.fact.record}" if entry.fact else "",
                excerpt=entry.fact.excerpt if entry.fact else "",
            )
            for number, entry in enumerate(self.shown.timeline, start=1)
        )


def _parts(names: dict[str, str], probability: Callable[[str], float]) -> tuple[Part, ...]:
    ratios = {name: probability(name) for name in names}
    return tuple(
        Part(names[name], wording.percent(ratio), ratio)
        for name, ratio in sorted(ratios.items(), key=lambda item: -item[1])
    )


def _place(place: Place) -> str:
    parts = [place.device]
    if place.port is not None:
        parts.append(short_port(place.port))
    if place.queue is not None:
        parts.append(f"TC{place.queue}")
    return " ".join(parts)


def _kind(scope: str) -> str:
    try:
        return str(Scope.parse(scope).kind)
    except ValueError:
        return ""
