"""The pipeline: facts in, an investigation out.

Reads top to bottom; every step is one module.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace

from . import signals
from .compile import Compiled
from .completeness import completeness_issues
from .errors import UsageError
from .fabric.profiles import profile_series
from .facts import IssueLevel, Reading, ReadIssue, Series
from .findings import Findings
from .matching import match
from .narrative.narrate import narrate
from .narrowing import solve_narrowed
from .observed import Observed
from .places import Places
from .reflection.reflect import reflect
from .results import Investigation
from .rules import KnowledgeBase
from .steps.onset import Onset, find_onset
from .steps.symptom import Symptom, SymptomKind, find_symptoms
from .telemetry import Telemetry
from .topology import Topology
from .verdicts import Judgement, judge

Progress = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Evidence:
    """What the telemetry says, before anything is concluded from it.

    `reading` with the job that is asked about and all issues so far; `symptoms` of every job whose steps changed;
    `onset` None where nothing tells one.
    """

    reading: Reading
    observed: Observed
    findings: Findings
    symptoms: tuple[Symptom, ...]
    onset: Onset | None


@dataclass(frozen=True, slots=True)
class Case:
    """Everything an investigation was made of, for checks and further questions.

    `investigation` is the result.
    """

    evidence: Evidence
    places: Places
    compiled: Compiled
    judgement: Judgement
    investigation: Investigation


def investigate(
    reading: Reading, knowledge: KnowledgeBase, progress: Progress = lambda stage: None, is_quick: bool = False
) -> Investigation:
    """What caused the incident, how sure we are, and what is ruled out by what.

    `is_quick` leaves out what to read next and what the verdict hangs on, which a scoreboard does not ask for.

    Raises UsageError when the job asked about is not in the bundle or there is no telemetry at all, InferenceError
    when the evidence is impossible under the knowledge base.
    """
    return examine(reading, knowledge, progress, is_quick).investigation


def examine(
    reading: Reading, knowledge: KnowledgeBase, progress: Progress = lambda stage: None, is_quick: bool = False
) -> Case:
    """The same, with the evidence, the network and the verdicts it was made of."""
    return conclude(gather(reading, knowledge, progress), knowledge, progress, is_quick)


def gather(reading: Reading, knowledge: KnowledgeBase, progress: Progress = lambda stage: None) -> Evidence:
    """The evidence: fabric, onset, signals and the answers to all signs. Raises UsageError as `investigate` does."""
    progress("building the fabric")
    topology = Topology(reading.facts)
    series = [fact for fact in reading.facts if isinstance(fact, Series)]
    telemetry = Telemetry([*series, *profile_series(reading.facts, topology)], topology.resolve_port)
    window, issues = _window(reading, telemetry)
    _require_job(reading.incident.job, topology, telemetry)

    progress("finding the onset")
    symptoms = find_symptoms(telemetry, window, _job_ends(topology))
    asked = reading.incident.job
    symptom = next((s for s in symptoms if s.job == asked), next(iter(symptoms), None))
    job = asked or (symptom.job if symptom else None)
    onset = find_onset(telemetry, window, symptom, symptoms, reading.incident.onset)
    split = signals.Split(*window, onset.at if onset else None, onset.uncertainty_s if onset else 0.0)

    progress("reducing series to signals")
    signals.reduce(telemetry, split)
    issues = (*issues, *telemetry.issues, *completeness_issues(topology, telemetry, job, window))
    observed = (
        Observed(topology, telemetry, split, symptom.job, symptom.unexplained, symptom.kind is SymptomKind.RISE)
        if symptom
        else Observed(topology, telemetry, split, None)
    )

    progress("asking the signs")
    findings = match(knowledge, observed)
    reading = replace(reading, issues=(*reading.issues, *issues), incident=replace(reading.incident, job=job))
    return Evidence(reading, observed, findings, symptoms, onset)


def conclude(
    evidence: Evidence,
    knowledge: KnowledgeBase,
    progress: Progress = lambda stage: None,
    is_quick: bool = False,
) -> Case:
    """The conclusion: network, posteriors, verdicts and what they rest on. `knowledge` has the signs that were asked.

    Raises InferenceError when the evidence is impossible under the knowledge base.
    """
    progress("solving the network")
    places = Places(evidence.observed)
    compiled, posterior, narrowed = solve_narrowed(knowledge, evidence.observed, places, evidence.findings)
    judgement = judge(knowledge, places, compiled, posterior)

    progress("weighing the findings")
    reflection = reflect(compiled, knowledge, places, judgement, is_quick)

    progress("writing the result")
    reading = replace(evidence.reading, issues=(*evidence.reading.issues, *narrowed))
    investigation = narrate(
        reading,
        knowledge,
        evidence.observed,
        places,
        compiled,
        judgement,
        reflection,
        evidence.symptoms,
        evidence.onset,
    )
    return Case(evidence, places, compiled, judgement, investigation)


def _window(reading: Reading, telemetry: Telemetry) -> tuple[tuple[float, float], tuple[ReadIssue, ...]]:
    """The window asked for, or the span of the data when none was given or the one given lies outside the data."""
    span = telemetry.span()
    if span is None:
        raise UsageError(
            "The bundle holds no telemetry: no file gave a single sample.",
            "See the read issues: `causeline facts BUNDLE`.",
        )
    asked = reading.incident.window
    if asked is None:
        return span, ()
    if asked[0] > span[1] or asked[1] < span[0]:
        message = (
            f"the window {_span_text(asked)} lies outside the data ({_span_text(span)}); "
            "the span of the data was used. Check the window and the time zone."
        )
        return span, (ReadIssue("incident.yaml", "window", IssueLevel.ERROR, "window-outside-data", message),)
    return asked, ()


def _job_ends(topology: Topology) -> dict[str, float]:
    """Until when each job ran, infinite while it does; only jobs whose times a scheduler told."""
    return {
        job: math.inf if placement.end is None else placement.end
        for job, placement in topology.jobs.items()
        if placement.start is not None
    }


def _span_text(span: tuple[float, float]) -> str:
    from datetime import UTC, datetime

    return " to ".join(datetime.fromtimestamp(math.floor(at), UTC).strftime("%Y-%m-%d %H:%M:%SZ") for at in span)


def _require_job(job: str | None, topology: Topology, telemetry: Telemetry) -> None:
    if job is None or job in topology.jobs:
        return
    stepping = [
        row[0]
        for row in telemetry.rows("SELECT DISTINCT device FROM samples WHERE metric = 'step_seconds' ORDER BY device")
    ]
    if job not in stepping:
        known = sorted({*topology.jobs, *stepping})
        raise UsageError(f"Job {job!r} is not in the bundle.", f"Jobs in it: {', '.join(known) or 'none'}.")
