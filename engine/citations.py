"""Which findings a result cites: each gets an id the first time, with its statement, numbers and records."""

from __future__ import annotations

from dataclasses import dataclass, field

from .facts import Excerpts, Provenance
from .findings import SignFinding
from .observed import Observed
from .places import Places
from .results import FactReference, Finding, Numbers
from .rules import KnowledgeBase
from .scope import Scope, ScopeKind
from .steps.symptom import Symptom, SymptomKind
from .wording import clock, number, statement, timestamp


@dataclass(slots=True)
class Citations:
    """Gives every cited finding an id, in the order it is first cited."""

    knowledge: KnowledgeBase
    observed: Observed
    places: Places
    excerpt: Excerpts
    findings: list[Finding] = field(default_factory=list)
    _ids: dict[tuple[str, Scope], str] = field(default_factory=dict)

    def cite(self, finding: SignFinding) -> str:
        """The id of a finding in the results."""
        key = (finding.sign, finding.scope)
        if key not in self._ids:
            self._ids[key] = f"E{len(self._ids) + 1}"
            sign = self.knowledge.signs[finding.sign]
            numbers = Numbers(
                observed=finding.observed, baseline=finding.baseline, limit=finding.limit, unit=finding.unit
            )
            level = None if finding.levels is None else finding.levels.least
            self._add(key, finding.state, statement(sign, finding, self.places), numbers, finding.records, level)
        return self._ids[key]

    def cite_symptom(self, symptom: Symptom) -> str:
        """The id of the finding that a job's step time rose."""
        key = ("job_impact", Scope.of(ScopeKind.JOB, symptom.job))
        if key not in self._ids:
            self._ids[key] = f"E{len(self._ids) + 1}"
            text = _symptom_words(symptom)
            numbers = Numbers(observed=symptom.after_s, baseline=symptom.before_s, limit=None, unit="s")
            self._add(key, "present", text, numbers, (symptom.record,))
        return self._ids[key]

    def _add(
        self,
        key: tuple[str, Scope],
        state: str,
        text: str,
        numbers: Numbers,
        records: tuple[Provenance, ...],
        level: int | None = None,
    ) -> None:
        split = self.observed.split
        window = (timestamp(split.start if split.onset is None else split.onset), timestamp(split.end))
        self.findings.append(
            Finding(
                id=self._ids[key],
                sign=key[0],
                scope=str(key[1]),
                state="present" if state == "present" else "absent",
                level=level,
                statement=text,
                numbers=numbers,
                window=window,
                facts=tuple(self.reference(record) for record in dict.fromkeys(records)),
            )
        )

    def reference(self, record: Provenance) -> FactReference:
        """The record itself, read again and redacted."""
        return FactReference(
            file=record.source,
            record=record.record,
            sha256=record.sha256,
            excerpt=self.excerpt(record.source, record.record),
        )


def _symptom_words(symptom: Symptom) -> str:
    before, after = number(symptom.before_s), number(symptom.after_s)
    if symptom.kind is SymptomKind.STALL:
        took = f"had not ended after {after} s" if symptom.is_open else f"took {after} s"
        return (
            f"{symptom.job}: the step begun at {clock(symptom.onset)} {took}, {number(symptom.change + 1)} times the "
            f"median of the {symptom.steps[0]} steps before it, {before} s (a checkpoint or an evaluation may, too)"
        )
    measure = "mean" if symptom.kind is SymptomKind.INTERMITTENT else "median"
    return (
        f"{symptom.job}: {measure} step time {before} s before, {after} s after {clock(symptom.onset)} "
        f"(+{100 * symptom.change:.0f} %; {symptom.steps[0]} steps before, {symptom.steps[1]} after)"
    )
