"""How well an investigation answers, against the truth beside its bundle.

Only the scoreboard reads `truth.json`; the engine never does. A score is a pure function of the two. What a truth does
not tell (a place, a cause) is not scored. Totals are in `totals.py`, the baselines in `baselines.py`.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from pydantic import BaseModel, ConfigDict, ValidationError

from ..errors import UnreadableInput
from ..result_base import Result
from ..results import Finding, Hypothesis, Investigation, Place, WeighedFinding

TRUTH = "truth.json"
"""Name of the answer beside a bundle."""

MOST_PLACES = 0.5
"""Share of the places an answer names that must be true ones: naming the whole fabric hits no place (judgement)."""

CREDIBLE = 0.05
"""Probability of a tie class above which it counts as an answer, and in the calibration (DESIGN.md section 9 for the
calibration; that nobody acts on less is judgement)."""


class _Truth(BaseModel):
    model_config = ConfigDict(frozen=True, extra="ignore")


class TruePlace(_Truth):
    """`port` None: any port of the device, or the device itself."""

    device: str
    port: str | None = None


class TrueCause(_Truth):
    """One injected cause. `accept`: cause ids of which any is right; `places`: where, empty for any place."""

    accept: tuple[str, ...]
    places: tuple[TruePlace, ...] = ()
    onset: str | None = None
    subtype: str | None = None


class Truth(_Truth):
    """The answer of a bundle: no `causes` when healthy, no `victim_jobs` when no job was harmed. `anomalies` are real,
    too, but harmed nobody: to name them is neither asked for nor wrong. `ruled_out` and `not_assessable` are causes
    that must come out so, where the writer of the bundle says it."""

    scenario: str = ""
    causes: tuple[TrueCause, ...] = ()
    anomalies: tuple[TrueCause, ...] = ()
    victim_jobs: tuple[str, ...] = ()
    ruled_out: tuple[str, ...] = ()
    not_assessable: tuple[str, ...] = ()


def read_truth(path: Path) -> Truth:
    """The truth in a file. Raises UnreadableInput naming the first wrong key."""
    try:
        return Truth.model_validate_json(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError) as error:
        raise UnreadableInput(f"{path} cannot be read: {error}.", "Expected the truth of a drill as JSON.") from error
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(map(str, first["loc"])) or "top"
        raise UnreadableInput(
            f"{path}: {where}: {first['msg']}.", "Expected causes with accept and places, and victim_jobs."
        ) from error


class Calibrated(Result):
    """A tie class that was given a probability, and whether it is true; `cause` is its leading one."""

    cause: str
    probability: float
    is_true: bool


class Score(Result):
    """One bundle. None where the truth does not ask: no cause (`top_1`, `top_3`, `leads`), not two causes (`both`), a
    job was harmed (`is_reported`).

    `top_1`, `top_3`: a right answer is the first, or among the first three, with a credible probability. `leads`: it is
    the first of the catalogued causes, however improbable.

    `verdict`: a supported root cause is right, itself or in its tie class; only wrong ones; or none. `acquitted`:
    accepted causes that were ruled out wherever they are true. `blamed`: root causes named although no job was harmed.
    `is_reported`: a harmless cause was found as an anomaly. `rivals` counts rows of causes that are not true there, by
    status.
    `answers` are the leading ones in words, `miss` says in one line what was seen and why it was not enough.
    `removed`: share of the bundle's telemetry that was taken away before. `crash`: what stopped the engine, "" when
    nothing did; a bundle it could not finish is missed, not left out.
    """

    bundle: str
    scenario: str
    classes: tuple[str, ...]
    has_victims: bool
    verdict: Literal["right", "wrong", "none"]
    top_1: bool | None
    top_3: bool | None
    leads: bool | None
    both: bool | None
    acquitted: tuple[str, ...]
    blamed: tuple[str, ...]
    is_reported: bool | None
    rivals: int
    rivals_ruled_out: int
    rivals_not_assessable: int
    expected_ruled_out: tuple[int, int]
    expected_not_assessable: tuple[int, int]
    true_domains: tuple[str, ...]
    domain: str
    calibration: tuple[Calibrated, ...]
    answers: tuple[str, ...]
    miss: str
    runtime_s: float
    crash: str = ""
    removed: float = 0.0


@dataclass(frozen=True, slots=True)
class Answer:
    """A tie class, or a hypothesis that is in none: what an engineer would be told to look at."""

    rows: tuple[Hypothesis, ...]
    probability: float
    share: float
    is_root: bool

    @property
    def words(self) -> str:
        """Cause and place of the leading row, with the others of the class."""
        lead = self.rows[0]
        others = "".join(f" / {row.cause}" for row in self.rows[1:] if row.cause != lead.cause)
        return f"{lead.cause}{others} @ {lead.scope}"


def answers(investigation: Investigation) -> tuple[Answer, ...]:
    """What the investigation holds possible or supported, in its order: root causes first, then by share of the
    slowdown, then by probability. Rows of many places name none of them and are no answer."""
    roots = set(investigation.root_causes)
    found: dict[str, list[Hypothesis]] = {}
    for row in investigation.hypotheses:
        if row.count == 1 and row.status in ("supported", "possible"):
            found.setdefault(row.tie_class or row.id, []).append(row)
    ties = {tie.id: tie for tie in investigation.tie_classes}
    classes = []
    for name, rows in found.items():
        tie = ties.get(name)
        classes.append(
            Answer(
                tuple(sorted(rows, key=lambda row: (row.id not in roots, -row.share, -row.probability))),
                tie.probability if tie else rows[0].probability,
                tie.share if tie else rows[0].share,
                any(row.id in roots for row in rows),
            )
        )
    return tuple(sorted(classes, key=lambda one: (not one.is_root, -one.share, -one.probability)))


def is_right(row: Hypothesis, cause: TrueCause) -> bool:
    """Whether a row names an accepted cause, and mostly accepted places."""
    if row.cause not in cause.accept:
        return False
    if not cause.places:
        return True
    hits = sum(_is_at(place, cause.places) for place in row.places)
    return hits > 0 and hits >= MOST_PLACES * len(row.places)


def _is_at(place: Place, accepted: Iterable[TruePlace]) -> bool:
    return any(place.device == one.device and one.port in (None, place.port) for one in accepted)


def score(
    investigation: Investigation, truth: Truth, domains: Mapping[str, str], bundle: str, runtime_s: float
) -> Score:
    """The score of one investigation. `domains`: domain of each cause the knowledge base has."""
    ranked = answers(investigation)
    named = [[any(is_right(row, cause) for row in one.rows) for one in ranked] for cause in truth.causes]
    hits = [[hit and one.probability > CREDIBLE for hit, one in zip(found, ranked, strict=True)] for found in named]
    rows = {row.id: row for row in investigation.hypotheses}
    roots = [rows[root] for root in investigation.root_causes]
    named_roots = [row for one in ranked if one.is_root for row in one.rows]
    is_right_root = any(is_right(row, cause) for row in named_roots for cause in truth.causes)
    harmless = not truth.victim_jobs
    real = (*truth.causes, *truth.anomalies)
    rivals = [row for row in investigation.hypotheses if not any(_covers(row, cause) for cause in real)]
    top_1 = any(any(found[:1]) for found in hits) if truth.causes else None
    leads = any(any(found[:1]) for found in named) if truth.causes else None
    reported = any(
        row.status == "supported" and is_right(row, cause) for row in investigation.hypotheses for cause in truth.causes
    )
    acquitted = tuple(sorted({cause for one in truth.causes for cause in _acquitted(investigation, one)}))
    blamed = tuple(f"{root.cause} @ {root.scope}" for root in roots) if harmless else ()
    is_miss = top_1 is False or acquitted or blamed
    return Score(
        bundle=bundle,
        scenario=truth.scenario,
        classes=tuple(cause.accept[0] for cause in truth.causes),
        has_victims=not harmless,
        verdict="right" if is_right_root else "wrong" if roots else "none",
        top_1=top_1,
        top_3=any(any(found[:3]) for found in hits) if truth.causes else None,
        leads=leads,
        both=all(any(found[:2]) for found in hits) if len(truth.causes) == 2 else None,
        acquitted=acquitted,
        blamed=blamed,
        is_reported=reported if harmless and truth.causes else None,
        rivals=len(rivals),
        rivals_ruled_out=sum(row.status == "ruled_out" for row in rivals),
        rivals_not_assessable=sum(row.status == "not_assessable" for row in rivals),
        expected_ruled_out=_statuses(investigation, truth.ruled_out, "ruled_out"),
        expected_not_assessable=_statuses(investigation, truth.not_assessable, "not_assessable"),
        true_domains=_true_domains(truth, domains),
        domain=investigation.domain.verdict,
        calibration=calibrated(ranked, truth),
        answers=tuple(f"{one.words} ({one.rows[0].status}, {one.probability:.2g})" for one in ranked[:3]),
        miss=_miss(investigation, truth, domains) if is_miss else "",
        runtime_s=runtime_s,
    )


def calibrated(ranked: tuple[Answer, ...], truth: Truth) -> tuple[Calibrated, ...]:
    """The credible answers and whether each is true. A cause that is true at any place is one truth, not one at each
    place: only its leading answer counts, of the others nobody knows."""
    found: list[Calibrated] = []
    spoken_for: set[int] = set()
    real = (*truth.causes, *truth.anomalies)
    for one in ranked:
        if one.probability <= CREDIBLE:
            continue
        true = [n for n, cause in enumerate(real) if any(is_right(row, cause) for row in one.rows)]
        anywhere = {n for n in true if not real[n].places}
        if true and set(true) <= spoken_for:
            continue
        spoken_for |= anywhere
        found.append(Calibrated(cause=one.rows[0].cause, probability=one.probability, is_true=bool(true)))
    return tuple(found)


def crashed(truth: Truth, domains: Mapping[str, str], bundle: str, runtime_s: float, message: str) -> Score:
    """The score of a bundle the engine could not finish: nothing found, nobody acquitted or blamed."""
    return Score(
        bundle=bundle,
        scenario=truth.scenario,
        classes=tuple(cause.accept[0] for cause in truth.causes),
        has_victims=bool(truth.victim_jobs),
        verdict="none",
        top_1=False if truth.causes else None,
        top_3=False if truth.causes else None,
        leads=False if truth.causes else None,
        both=False if len(truth.causes) == 2 else None,
        acquitted=(),
        blamed=(),
        is_reported=False if truth.causes and not truth.victim_jobs else None,
        rivals=0,
        rivals_ruled_out=0,
        rivals_not_assessable=0,
        expected_ruled_out=(0, 0),
        expected_not_assessable=(0, 0),
        true_domains=_true_domains(truth, domains),
        domain="crashed",
        calibration=(),
        answers=(),
        miss="",
        runtime_s=runtime_s,
        crash=message,
    )


def _true_domains(truth: Truth, domains: Mapping[str, str]) -> tuple[str, ...]:
    return tuple(sorted({_domain(cause, domains) for cause in truth.causes}))


def _covers(row: Hypothesis, cause: TrueCause) -> bool:
    """Whether a row may speak of the true cause at a true place; a row of many places does, whatever it names."""
    if row.cause not in cause.accept:
        return False
    if not cause.places or row.count > 1:
        return True
    # A port that is named is the true one; "any port of the device" beside it only excuses an answer.
    named = [place for place in cause.places if place.port is not None]
    exact = {place.device for place in named}
    true = [*named, *(place for place in cause.places if place.device not in exact)]
    return any(
        place.device == one.device and (place.port == one.port or None in (place.port, one.port))
        for place in row.places
        for one in true
    )


def _acquitted(investigation: Investigation, truth: TrueCause) -> tuple[str, ...]:
    """Accepted causes that are ruled out at every row that covers them, while none accepted is supported there. The
    row of the remaining places speaks for a true place that has no row of its own."""
    covering = [row for row in investigation.hypotheses if _covers(row, truth)]
    own = {row.cause for row in covering if row.count == 1}
    covering = [row for row in covering if row.count == 1 or row.cause not in own]
    if any(row.status == "supported" for row in covering):
        return ()
    return tuple(
        cause
        for cause in truth.accept
        if (statuses := {row.status for row in covering if row.cause == cause}) and statuses == {"ruled_out"}
    )


def _statuses(investigation: Investigation, causes: tuple[str, ...], status: str) -> tuple[int, int]:
    """How many of the causes have this status in all their rows, and how many have a row at all."""
    found = [{row.status for row in investigation.hypotheses if row.cause == cause} for cause in causes]
    return sum(statuses == {status} for statuses in found), sum(bool(statuses) for statuses in found)


def _domain(cause: TrueCause, domains: Mapping[str, str]) -> str:
    """The domain of the first accepted cause the knowledge base has, else that of its family."""
    for accepted in cause.accept:
        if accepted in domains:
            return domains[accepted]
    family = cause.accept[0].partition(".")[0]
    return next((domain for known, domain in sorted(domains.items()) if known.startswith(f"{family}.")), family)


def _miss(investigation: Investigation, truth: Truth, known: Container[str]) -> str:
    """What was seen of each true cause, and why it was not enough, in one line."""
    findings = {finding.id: finding for finding in investigation.findings}
    parts = []
    for cause in truth.causes:
        covering = [row for row in investigation.hypotheses if _covers(row, cause)]
        own = [row for row in covering if row.count == 1] or covering
        if not own:
            is_known = any(accepted in known for accepted in cause.accept)
            where = "without a place to be at in what was read" if is_known else "not in the knowledge base"
            parts.append(f"{' / '.join(cause.accept)} is {where}; {_loudest(investigation, cause, findings)}")
            continue
        best = max(own, key=lambda row: (row.probability, row.id))
        parts.append(
            f"{best.cause} @ {best.scope if best.count == 1 else 'its places'} came out {best.status} "
            f"({best.probability:.2g}); for it {_said(best.evidence_for, findings)}; "
            f"against it {_said(best.evidence_against, findings)}"
            + (f"; not read: {', '.join(sorted({m.sign for m in best.missing}))}" if best.missing else "")
        )
    if not truth.causes or not truth.victim_jobs:
        rows = {row.id: row for row in investigation.hypotheses}
        parts += [
            f"blamed {rows[root].cause} @ {rows[root].scope}: {_said(rows[root].evidence_for, findings)}"
            for root in investigation.root_causes
        ]
    return " | ".join(parts)


def _said(weighed: Iterable[WeighedFinding], findings: Mapping[str, Finding]) -> str:
    """The strongest finding of a row in words."""
    strongest = max(weighed, key=lambda one: abs(one.weight), default=None)
    if strongest is None:
        return "nothing"
    finding = findings.get(strongest.finding)
    return "an unlisted finding" if finding is None else f"{finding.sign} ({finding.statement})"


def _loudest(investigation: Investigation, cause: TrueCause, findings: Mapping[str, Finding]) -> str:
    """A finding that is present at a true place."""
    devices = {place.device for place in cause.places}
    for finding in findings.values():
        if finding.state == "present" and any(device in finding.scope for device in devices):
            return f"seen there: {finding.sign} ({finding.statement})"
    return f"nothing present there was cited; unknown cause {investigation.unknown.share:.0%}"
