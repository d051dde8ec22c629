"""The result of an investigation: the JSON contract of DESIGN.md section 7 as frozen models.

Changes are additive only. Probabilities are between 0 and 1, weights are log10 Bayes factors, times are RFC 3339 UTC
strings. Floats are rounded to 6 significant digits when written, so the same bundle and knowledge give the same bytes.
"""

from __future__ import annotations

import json
import math
from typing import Any, Literal

from pydantic import ConfigDict, Field

from .result_base import Result
from .result_network import ExplanationNetwork

State = Literal["present", "absent", "unknown"]
Status = Literal["supported", "possible", "ruled_out", "not_assessable"]
Role = Literal["root", "contributing", "consequence", "co_occurring"]
LoopClass = Literal["load", "thresholds", "nic", "physical", "path", "other"]
Domain = Literal["network", "host", "job", "telemetry"]


class IncidentView(Result):
    """`onset` None: no symptom, no alert and no shared change gave one.

    `onset_uncertainty_s`: half width, in seconds. `onset_source`: what told it.
    """

    id: str
    fabric: str | None
    job: str | None
    onset: str | None
    onset_uncertainty_s: float | None = None
    onset_source: Literal["symptom", "alert", "telemetry"] | None = None
    window: tuple[str, str] | None


class UnknownCause(Result):
    """The share of the symptom that no catalogued cause explains."""

    share: float


class LoopVerdict(Result):
    """Which part of the congestion loop is at fault, from the same posterior."""

    verdict: LoopClass | Literal["undecided"]
    load: float
    thresholds: float
    nic: float
    physical: float
    path: float
    other: float


class DomainVerdict(Result):
    verdict: Domain | Literal["undecided"]
    network: float
    host: float
    job: float
    telemetry: float


class StepPart(Result):
    """A part of the step as the ranks timed it: what all compute (to the median entry), the wait for the last rank,
    and the sends from then on; mean seconds, and its share of all that became longer."""

    name: Literal["compute", "lateness", "sends"]
    before_s: float
    after_s: float
    share: float


class Impact(Result):
    """What the incident did to a job.

    `before_s` and `after_s` are step times, `change` the relative rise: medians of a rise, means where some steps are
    slow (intermittent), the median and the long step of a stall. `at_least`: that step had not ended. `parts`: where
    the ranks were timed. `share_explained` is then measured: that of the part a hypothesis acts on (`share_from`).
    """

    job: str
    tenant: str | None = None
    model: str | None = None
    before_s: float
    after_s: float
    change: float
    kind: Literal["rise", "intermittent", "stall"] = "rise"
    at_least: bool = False
    onset: str | None
    share_explained: dict[str, float]
    share_from: Literal["timing", "posterior"] = "posterior"
    parts: tuple[StepPart, ...] = ()
    finding: str | None = None


class Place(Result):
    """`port` None: the whole device, or any port of it.

    `queue`: egress traffic class, None where no queue is meant.
    """

    device: str
    port: str | None = None
    queue: int | None = None


class WeighedFinding(Result):
    """`weight`: log10 of the hypothesis' odds with all findings over those with all but this one.

    `alone`: log10 Bayes factor of the finding taken by itself, against no catalogued cause; None in results of before.
    The weight is the smaller where other findings say the same, or another cause explains it as well.
    """

    finding: str
    weight: float
    alone: float | None = None


class MissingReading(Result):
    """A discriminating sign that was not read: what to read, where."""

    sign: str
    place: str
    read: str


class Hypothesis(Result):
    """A cause at a place (`count` 1), or all remaining places of a cause in one row (`count` n, any-of probability,
    `id` R1, R2 ...)."""

    id: str
    cause: str
    scope: str
    places: tuple[Place, ...]
    count: int
    title: str
    status: Status
    role: Role | None
    probability: float
    explains: float | None
    share: float
    prior: float
    tie_class: str | None
    triggered_by: tuple[str, ...]
    evidence_for: tuple[WeighedFinding, ...]
    evidence_against: tuple[WeighedFinding, ...]
    missing: tuple[MissingReading, ...]
    first_checks: tuple[str, ...]
    remedy: str
    reason: str = Field(default="", description="One sentence: why this status")


class TieClass(Result):
    id: str
    members: tuple[str, ...]
    probability: float
    share: float
    split_by: tuple[str, ...]


class Numbers(Result):
    """Observed against baseline and limit, in `unit`; None where there is none."""

    observed: float | None = None
    baseline: float | None = None
    limit: float | None = None
    unit: str = ""


class FactReference(Result):
    """The record a finding rests on.

    `excerpt` is redacted.
    """

    file: str
    record: str
    sha256: str
    excerpt: str


class Finding(Result):
    id: str
    sign: str
    scope: str
    state: State
    level: int | None
    statement: str
    numbers: Numbers
    window: tuple[str, str] | None
    facts: tuple[FactReference, ...]


class ChainLink(Result):
    """One step of job -> host -> rail -> leaf -> queue."""

    scope: str
    statement: str
    findings: tuple[str, ...]


class TimelineEntry(Result):
    ts: str
    scope: str
    statement: str
    finding: str | None
    fact: FactReference | None = None


class NextCheck(Result):
    """`expected_bits`: expected drop of the entropy of the answer when this is read; None in results of before."""

    read: str
    place: str
    cost: str
    expected_bits: float | None
    splits: tuple[str, ...]


class Hinge(Result):
    """Something whose change gives another verdict: `finding` if it were not read, the hazard of `cause` times
    `factor`, or the grade of a finding for a cause that becomes `grade`.

    `probability` and `share` are then those of the hypothesis' tie class, `status` its status, `lead` the hypothesis
    that explains most (None without a symptom).
    """

    kind: Literal["finding", "hazard", "grade"]
    finding: str | None = None
    cause: str | None = None
    factor: float | None = None
    grade: float | None = None
    status: Literal["supported", "possible"]
    probability: float
    share: float
    lead: str | None = None


class Sensitivity(Result):
    """What the verdict on a hypothesis hangs on, in one or two sentences.

    `finding`: the one whose loss changes the verdict most; None: no single one of the `tested` does. `weakest`: the one
    without which it is least sure, though it may stand; None where none was tested. `hinges`: all that
    was found, each changed by itself. `needed`: P(the slowdown would not have happened without this cause, or those it
    is tied with); None without a slowdown.
    """

    hypothesis: str
    needed: float | None
    finding: str | None
    weakest: str | None
    hinges: tuple[Hinge, ...]
    tested: int
    statement: str

    @property
    def findings(self) -> frozenset[str]:
        """Every finding that is named."""
        named = {self.finding, self.weakest, *(hinge.finding for hinge in self.hinges)}
        return frozenset(finding for finding in named if finding is not None)


class Overlap(Result):
    """Two supported hypotheses that overlap in what they explain. `needed`: P(the slowdown would not have happened
    without it) of each, `together`: without both."""

    hypotheses: tuple[str, str]
    needed: tuple[float, float]
    together: float
    statement: str


class CoverageRow(Result):
    metric: str
    scope: str
    state: Literal["collected", "partial", "missing"]
    reason: str


class ReadIssueRow(Result):
    file: str
    record: str
    level: Literal["note", "warning", "error"]
    code: str
    message: str


class TelemetrySeries(Result):
    """A line of the correlated-telemetry chart.

    `points` are (RFC 3339 time, value); a counter is given as its rate per second. `panel` is the row it is drawn in
    (queue, marks, cnps, pauses, step time).
    """

    panel: str
    label: str
    metric: str
    scope: str
    unit: str
    points: tuple[tuple[str, float], ...]
    finding: str | None = None


class Versions(Result):
    engine: str
    knowledge_digest: str
    overrides: tuple[str, ...]


class Investigation(Result):
    """The whole, frozen, serialisable result."""

    schema_version: Literal[1] = Field(default=1, alias="schema")
    incident: IncidentView
    summary: str
    root_causes: tuple[str, ...]
    unknown: UnknownCause
    loop: LoopVerdict
    domain: DomainVerdict
    impact: tuple[Impact, ...]
    hypotheses: tuple[Hypothesis, ...]
    tie_classes: tuple[TieClass, ...]
    findings: tuple[Finding, ...]
    chain: tuple[ChainLink, ...]
    timeline: tuple[TimelineEntry, ...]
    next_checks: tuple[NextCheck, ...]
    sensitivity: tuple[Sensitivity, ...] = ()
    overlaps: tuple[Overlap, ...] = ()
    network: ExplanationNetwork | None = Field(
        default=None, description="None where it was not asked for or fits no page"
    )
    telemetry: tuple[TelemetrySeries, ...] = ()
    coverage: tuple[CoverageRow, ...]
    read_issues: tuple[ReadIssueRow, ...]
    versions: Versions

    model_config = ConfigDict(frozen=True, extra="forbid", populate_by_name=True)

    def to_json(self) -> str:
        """Canonical JSON: fixed key order, floats to 6 significant digits, one trailing newline."""
        return json.dumps(_rounded(self.model_dump(mode="json", by_alias=True)), indent=1, ensure_ascii=False) + "\n"

    @classmethod
    def from_json(cls, text: str) -> Investigation:
        """The investigation that `to_json` wrote.

        Raises pydantic's ValidationError naming each wrong key.
        """
        return cls.model_validate_json(text)


def _rounded(value: Any) -> Any:
    if isinstance(value, float):
        # -inf (no light) is not a JSON number: the statement says it, the number is null
        return (0.0 if value == 0 else float(f"{value:.6g}")) if math.isfinite(value) else None
    if isinstance(value, dict):
        return {key: _rounded(inner) for key, inner in value.items()}
    if isinstance(value, list):
        return [_rounded(inner) for inner in value]
    return value
