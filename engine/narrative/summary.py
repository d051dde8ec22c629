"""The answer in a sentence or two: who slowed, by how much, since when and why, and what else is odd."""

from __future__ import annotations

from collections.abc import Sequence

from ..completeness import has_enough_steps
from ..facts import Reading
from ..observed import Observed
from ..places import Places
from ..results import Hypothesis
from ..rules import KnowledgeBase
from ..scope import ScopeKind
from ..step_parts import StepPart
from ..steps.symptom import LOG_ENDS, Symptom, SymptomKind
from ..verdicts import Judgement, weight
from ..wording import clock, number, percent, statement

WORTH_SPLITTING = 0.05
"""Share of the excess from which a part of the step is told beside another (judgement: less is jitter of the step)."""

PART_WORDS = {"compute": "computing", "lateness": "waiting for the last rank", "sends": "the sends"}

MOST_ANOMALIES = 2
"""Anomalies without an established cause that a summary tells (judgement)."""


def summary(
    symptom: Symptom | None,
    roots: Sequence[Hypothesis],
    hypotheses: tuple[Hypothesis, ...],
    reading: Reading,
    observed: Observed,
    odd: Sequence[str],
    parts: Sequence[StepPart] = (),
) -> str:
    """The summary of an investigation; `odd` are statements of anomalies that no supported cause explains, `parts`
    those of the step where the ranks were timed."""
    named = reading.incident.job
    others = [h for h in hypotheses if h.status == "supported" and h.role == "co_occurring"]
    if symptom is None:
        return _without_slowdown(named, reading, observed) + _harmless(others) + _unexplained(odd, bool(others))
    rose = described(symptom)
    if named not in (None, symptom.job):
        rose = f"{named} is not seen to have slowed, but {rose[0].lower()}{rose[1:]}"
    if not roots:
        open_ones = [h for h in hypotheses if h.status in ("possible", "not_assessable") and h.share >= 0.01]
        likely = "; ".join(f"{h.title} ({percent(h.share)})" for h in sorted(open_ones, key=lambda h: -h.share)[:3])
        told = f"{rose}; the cause cannot be told from this bundle." + (f" Likeliest: {likely}." if likely else "")
    else:
        causes = " and ".join(
            f"{h.title} (share {percent(h.share)}, probability {percent(h.probability)})" for h in roots
        )
        told = f"{rose} because of {causes}."
    return told + _split(parts) + _harmless(others)


def _split(parts: Sequence[StepPart]) -> str:
    """Where the excess lies, when not all of it lies in one part of the step."""
    shown = sorted((part for part in parts if part.share >= WORTH_SPLITTING), key=lambda part: -part.share)
    if len(shown) < 2:
        return ""
    told = " and ".join(f"{percent(part.share)} in {PART_WORDS[part.name]}" for part in shown)
    return f" As the ranks were timed, the rise lies {told}."


def described(symptom: Symptom) -> str:
    """What happened to the job, without a full stop."""
    at, rise = f"at {clock(symptom.onset)} UTC", f"rose {100 * symptom.change:.0f} %"
    match symptom.kind:
        case SymptomKind.RISE:
            return f"Step time of {symptom.job} {rise} {at}"
        case SymptomKind.INTERMITTENT:
            return f"Mean step time of {symptom.job} {rise} {at} (some steps only)"
    usual, long = number(symptom.before_s), number(symptom.after_s)
    if not symptom.is_open:
        return f"A step of {symptom.job} took {long} s instead of {usual} s {at}"
    if symptom.unexplained >= LOG_ENDS:
        return f"No step of {symptom.job} ended in the {long} s after {clock(symptom.onset)} UTC, or its log ends there"
    return f"{symptom.job} hangs: its step begun {at} had not ended {long} s later, instead of {usual} s"


def _without_slowdown(named: str | None, reading: Reading, observed: Observed) -> str:
    whose = f"the step time of {named}" if named else "any job's step time"
    window = (observed.split.start, observed.split.end)
    if not has_enough_steps(observed.telemetry, named, window):
        return f"Whether there was a slowdown is unknown: too few readings of {whose} lie in the window."
    return f"No slowdown: {whose} did not rise in the window."


def _harmless(found: Sequence[Hypothesis]) -> str:
    if not found:
        return ""
    count = "One anomaly" if len(found) == 1 else f"{len(found)} anomalies"
    said = "; ".join(f"{h.title} (probability {percent(h.probability)})" for h in found)
    return f" {count} without effect on a job: {said}."


def _unexplained(odd: Sequence[str], is_more: bool) -> str:
    return f" {'Also seen' if is_more else 'Seen'}, with no cause established: {'; '.join(odd)}." if odd else ""


def anomalies(judgement: Judgement, knowledge: KnowledgeBase, places: Places) -> tuple[str, ...]:
    """The strongest discriminating findings of causes that are possible and no more, one a place, in words."""
    told: dict[str, str] = {}
    explained = {r.finding.scope for v in judgement.listed if v.status == "supported" for r in v.relevances}
    ranked = sorted(
        (
            (-weight(r), v.id, r.finding)
            for v in judgement.listed
            if v.status == "possible"
            for r in v.relevances
            if r.discriminating
            and r.finding.state == "present"
            and r.finding.scope not in explained
            # What the worst place shows, the fabric repeats.
            and r.finding.scope.kind is not ScopeKind.FABRIC
        ),
        key=lambda item: (*item[:2], item[2].sign),
    )
    for _, _, finding in ranked:
        told.setdefault(str(finding.scope), statement(knowledge.signs[finding.sign], finding, places))
    return tuple(told.values())[:MOST_ANOMALIES]
