"""The judgement as results: which hypotheses and findings are shown, under which ids, in which words (DESIGN.md
section 7)."""

from __future__ import annotations

import importlib.metadata
from collections.abc import Mapping
from dataclasses import dataclass, field

from ..citations import Citations
from ..compile import Compiled
from ..facts import Reading
from ..observed import Observed
from ..places import Places
from ..reflection.leave_out import LARGEST_WEIGHT, Weights
from ..reflection.overlap import told_overlaps
from ..reflection.reflect import Reflection, told_checks, told_sensitivity
from ..reflection.to_read import AGAIN, ToRead
from ..results import (
    DomainVerdict,
    Hypothesis,
    Impact,
    IncidentView,
    Investigation,
    LoopVerdict,
    MissingReading,
    ReadIssueRow,
    TieClass,
    UnknownCause,
    Versions,
    WeighedFinding,
)
from ..results import StepPart as StepPartRow
from ..rules import Cause, KnowledgeBase
from ..scope import Scope, ScopeKind
from ..step_parts import StepPart, shares_by_timing, step_parts
from ..steps.onset import Onset
from ..steps.symptom import Symptom
from ..timed_places import TimedPlaces
from ..verdicts import SUPPORTED, TELLING, Judgement, Verdict, weight
from ..weighing import Relevance
from ..wording import statement, timestamp
from .story import chain, chart_lines, coverage, timeline
from .summary import anomalies, summary

MOST_EVIDENCE = 12
"""Findings listed for and against one hypothesis, heaviest first (judgement: more is not read)."""

MOST_MISSING = 6
"""Unread signs listed for one hypothesis (judgement)."""


def narrate(
    reading: Reading,
    knowledge: KnowledgeBase,
    observed: Observed,
    places: Places,
    compiled: Compiled,
    judgement: Judgement,
    reflection: Reflection,
    symptoms: tuple[Symptom, ...],
    onset: Onset | None,
) -> Investigation:
    """The investigation as it is written and shown."""
    citations = Citations(knowledge, observed, places, reading.excerpt)
    asked = next((s for s in symptoms if s.job == observed.job), None)
    symptom_id = citations.cite_symptom(asked) if asked else None
    ids = {verdict.id: f"H{n}" for n, verdict in enumerate(judgement.listed, start=1)}
    ids |= {f"rest {verdict.id}": f"R{n}" for n, verdict in enumerate(judgement.rest, start=1)}
    to_read = ToRead(knowledge, observed, places)
    writer = _HypothesisWriter(knowledge, places, judgement, reflection.weights, citations, ids, to_read)
    hypotheses = tuple(writer.write(verdict) for verdict in (*judgement.listed, *judgement.rest))
    roots = tuple(verdict for verdict in judgement.listed if verdict.role == "root" and writer.leads(verdict))
    split = observed.split
    measured = _excess(observed, places, judgement, ids)
    return Investigation(
        schema=1,
        incident=IncidentView(
            id=reading.incident.id,
            fabric=reading.incident.fabric,
            job=reading.incident.job,
            onset=None if split.onset is None else timestamp(split.onset),
            onset_uncertainty_s=None if split.onset is None else split.uncertainty_s,
            onset_source=None if onset is None else onset.source,
            window=(timestamp(split.start), timestamp(split.end)),
        ),
        summary=summary(
            asked,
            [h for h in hypotheses if h.id in {ids[r.id] for r in roots}],
            hypotheses,
            reading,
            observed,
            () if asked or onset is None else anomalies(judgement, knowledge, places),
            measured.parts,
        ),
        root_causes=tuple(ids[verdict.id] for verdict in roots),
        unknown=UnknownCause(share=judgement.unknown_share),
        loop=_loop(judgement),
        domain=_domain(judgement),
        impact=tuple(
            _impact(symptom, observed, citations, measured if symptom is asked else _Excess()) for symptom in symptoms
        ),
        hypotheses=hypotheses,
        tie_classes=tuple(writer.tie_classes()),
        chain=chain(observed, places, compiled, roots, citations, symptom_id),
        timeline=timeline(observed, places, compiled, roots, citations, asked, symptom_id, onset),
        next_checks=told_checks(reflection, judgement, knowledge, to_read),
        sensitivity=told_sensitivity(reflection, citations, places, ids),
        overlaps=told_overlaps(reflection.overlaps, ids),
        network=reflection.network,
        telemetry=chart_lines(observed, places, compiled, roots, citations, symptom_id),
        coverage=coverage(knowledge, observed),
        read_issues=tuple(
            ReadIssueRow(file=i.source, record=i.record, level=i.level.value, code=i.code, message=i.message)
            for i in sorted(set(reading.issues))
        ),
        findings=tuple(citations.findings),
        versions=Versions(
            engine=importlib.metadata.version("causeline"),
            knowledge_digest=knowledge.digest,
            overrides=knowledge.overrides,
        ),
    )


@dataclass(frozen=True, slots=True)
class _Excess:
    """How the excess of a job's step time is split: over hypotheses, and over the parts of the step."""

    shares: Mapping[str, float] = field(default_factory=dict)
    parts: tuple[StepPart, ...] = ()
    is_timed: bool = False


def _excess(observed: Observed, places: Places, judgement: Judgement, ids: Mapping[str, str]) -> _Excess:
    supported = [v for v in judgement.listed if v.status == "supported" and v.share > 0]
    parts = step_parts(observed.rank_timing)
    timed = shares_by_timing(supported, parts, TimedPlaces(observed, places))
    shares = {v.id: v.share for v in supported} if timed is None else timed
    return _Excess({ids[v.id]: shares[v.id] for v in supported}, parts, timed is not None and bool(timed))


def _impact(symptom: Symptom, observed: Observed, citations: Citations, excess: _Excess) -> Impact:
    return Impact(
        job=symptom.job,
        tenant=observed.topology.tenant(symptom.job),
        model=observed.topology.model(symptom.job),
        before_s=symptom.before_s,
        after_s=symptom.after_s,
        change=symptom.change,
        kind=symptom.kind.value,
        at_least=symptom.is_open,
        onset=timestamp(symptom.onset),
        share_explained=dict(excess.shares),
        share_from="timing" if excess.is_timed else "posterior",
        parts=tuple(
            StepPartRow(name=part.name, before_s=part.before_s, after_s=part.after_s, share=part.share)
            for part in excess.parts
        ),
        finding=citations.cite_symptom(symptom),
    )


class _HypothesisWriter:
    """Writes verdicts as hypotheses, tie classes and next checks."""

    def __init__(
        self,
        knowledge: KnowledgeBase,
        places: Places,
        judgement: Judgement,
        weights: Weights,
        citations: Citations,
        ids: dict[str, str],
        to_read: ToRead,
    ) -> None:
        self._knowledge = knowledge
        self._places = places
        self._judgement = judgement
        self._weights = weights
        self._citations = citations
        self._ids = ids
        self._to_read = to_read
        self._tie_of = {member: f"T{n}" for n, tie in enumerate(judgement.ties, start=1) for member in tie.members}
        self._leading = {tie.members[0] for tie in judgement.ties}

    def leads(self, verdict: Verdict) -> bool:
        """Whether a verdict stands for its tie class: its leading member, or a class of its own."""
        return verdict.id not in self._tie_of or verdict.id in self._leading

    def write(self, verdict: Verdict) -> Hypothesis:
        cause, scope = verdict.hypothesis.cause, verdict.hypothesis.scope
        weighed = sorted(
            ((weight(r), r) for r in verdict.relevances), key=lambda item: (-abs(item[0]), item[1].finding.sign)
        )
        one_place = len(verdict.members) == 1
        return Hypothesis(
            id=self._ids[f"rest {verdict.id}" if verdict.is_rest else verdict.id],
            cause=cause.id,
            scope=str(scope) if one_place else f"{cause.scope}:{len(verdict.members)} remaining",
            places=self._places.named(scope) if one_place else (),
            count=len(verdict.members),
            title=self._title(verdict, cause, scope),
            status=verdict.status,
            role=verdict.role,
            probability=verdict.probability,
            explains=verdict.explains,
            share=verdict.share,
            prior=verdict.prior,
            tie_class=self._tie_of.get(verdict.id) if not verdict.is_rest else None,
            triggered_by=tuple(self._ids[node] for node in verdict.triggered_by if node in self._ids),
            evidence_for=self._evidence(verdict, is_for=True),
            evidence_against=self._evidence(verdict, is_for=False),
            missing=tuple(
                MissingReading(sign=sign, place=str(place), read=self._to_read(sign, place))
                for sign, place in verdict.missing[:MOST_MISSING]
            ),
            first_checks=cause.first_checks,
            remedy=cause.remedy,
            reason=self._reason(verdict, weighed),
        )

    def _evidence(self, verdict: Verdict, *, is_for: bool) -> tuple[WeighedFinding, ...]:
        """Findings of one side, heaviest first: those that tell given all others, and those that would by themselves
        and still lean to the same side."""
        exact = self._weights[verdict.hypothesis.id]
        found = []
        for r in verdict.relevances:
            weighed, alone = exact[f"{r.finding.sign}@{r.finding.scope}"], weight(r)
            if (weighed > 0) is is_for and weighed and _tells(weighed, alone):
                found.append((-abs(weighed), -abs(alone), r.finding.sign, weighed, alone, r.finding))
        found.sort(key=lambda item: item[:3])
        return tuple(
            WeighedFinding(
                finding=self._citations.cite(finding),
                weight=weighed,
                alone=max(-LARGEST_WEIGHT, min(LARGEST_WEIGHT, alone)),
            )
            for _, _, _, weighed, alone, finding in found[:MOST_EVIDENCE]
        )

    def _title(self, verdict: Verdict, cause: Cause, scope: Scope) -> str:
        if len(verdict.members) > 1:
            return f"{cause.title}, {len(verdict.members)} {'other ' if self._has_listed(cause) else ''}places"
        where = self._places.wording(scope)
        if verdict.status != "supported":
            return f"{cause.title} on {where}"
        probability = self._judgement.posterior.probability
        driven = [
            (probability[node], name, target)
            for name, drive in cause.drives.items()
            for target in self._places.related(scope, drive.at)
            if (node := f"{name}@{target}") in probability
        ]
        if not driven or max(driven)[0] < SUPPORTED:
            return f"{cause.title} on {where}"
        _, name, target = max(driven)
        short = self._knowledge.mechanisms[name].short
        if target.kind is ScopeKind.QUEUE:
            device_port = self._places.wording(Scope.of(ScopeKind.PORT, *target.parts[:2]))
            said = f"{cause.title} -> TC{target.parts[2]} {short} on {device_port}"
            return said if scope.device == target.device else f"{said} (from {where})"
        return f"{cause.title} -> {short} on {where}"

    def _has_listed(self, cause: Cause) -> bool:
        return any(v.hypothesis.cause.id == cause.id for v in self._judgement.listed)

    def _reason(self, verdict: Verdict, weighed: list[tuple[float, Relevance]]) -> str:
        """One sentence: why this status."""
        strongest = next(
            (r for w, r in weighed if (w <= -TELLING if verdict.status != "supported" else w >= TELLING)), None
        )
        said = None
        if strongest is not None:
            said = statement(self._knowledge.signs[strongest.finding.sign], strongest.finding, self._places)
        match verdict.status:
            case "supported":
                return said or "no rival explains the findings"
            case "ruled_out":
                return said or ""
            case "not_assessable":
                if not verdict.missing:
                    return "its signs have no place in this fabric as far as it is known"
                sign, place = verdict.missing[0]
                said = self._to_read(sign, place)
                return f"left open: read {said}" if said.startswith(AGAIN) else f"not read: {said}"
            case _:
                against = f"; against it: {said}" if said else ""
                return f"not refuted strongly enough (10^{verdict.refuted_log10:.1f}, needed 10^-2){against}"

    def tie_classes(self) -> list[TieClass]:
        return [
            TieClass(
                id=self._tie_of[tie.members[0]],
                members=tuple(self._ids[member] for member in tie.members),
                probability=tie.probability,
                share=tie.share,
                split_by=tuple(self._to_read(sign, place) for sign, place in tie.split_by),
            )
            for tie in self._judgement.ties
        ]


def _tells(weighed: float, alone: float) -> bool:
    return abs(weighed) >= TELLING or (abs(alone) >= TELLING and weighed * alone > 0)


def _loop(judgement: Judgement) -> LoopVerdict:
    weights = {
        name: judgement.by_loop.get(name, 0.0) for name in ("load", "thresholds", "nic", "physical", "path", "other")
    }
    name = max(weights, key=lambda key: weights[key])
    return LoopVerdict.model_validate({"verdict": name if weights[name] >= SUPPORTED else "undecided", **weights})


def _domain(judgement: Judgement) -> DomainVerdict:
    weights = {name: judgement.by_domain.get(name, 0.0) for name in ("network", "host", "job", "telemetry")}
    name = max(weights, key=lambda key: weights[key])
    return DomainVerdict.model_validate({"verdict": name if weights[name] >= SUPPORTED else "undecided", **weights})
