"""Second thoughts on the verdicts: the weight of each finding, what to read next, what a verdict hangs on,
and the part of the network that is shown."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from ..around import Surroundings
from ..citations import Citations
from ..compile import Compiled
from ..places import Places
from ..result_network import ExplanationNetwork
from ..results import Hinge as HingeRow
from ..results import NextCheck
from ..results import Sensitivity as SensitivityRow
from ..rules import KnowledgeBase
from ..shown_network import shown_network
from ..verdicts import Judgement
from ..wording import percent, statement
from .leave_out import LeaveOut, Weights
from .next_checks import Check, next_checks
from .overlap import Overlap, overlaps
from .sensitivity import Grounds, Hinge, grounds
from .to_read import ToRead

MOST_CHECKS = 8
"""Next checks listed (judgement)."""

MOST_ASSUMPTIONS = 2
"""Hazards and grades named in the sentence on a verdict's grounds (judgement); all are in the JSON."""


@dataclass(frozen=True, slots=True)
class Reflection:
    """What one more look at a judged network says; `network`: the part that is shown, None where there is none."""

    weights: Weights
    checks: tuple[Check, ...]
    grounds: tuple[Grounds, ...]
    overlaps: tuple[Overlap, ...]
    network: ExplanationNetwork | None


def reflect(
    compiled: Compiled, knowledge: KnowledgeBase, places: Places, judgement: Judgement, is_quick: bool = False
) -> Reflection:
    """All of it, exact, from small sums around the listed hypotheses; when `is_quick` only weights, and those of each
    finding by itself."""
    surroundings = Surroundings(compiled.network, judgement.explains)
    leave_out = LeaveOut(compiled, judgement.posterior, surroundings)
    rows = (*judgement.listed, *judgement.rest)
    if is_quick:
        return Reflection(leave_out.weights(rows, most_nodes=0), (), (), (), None)
    weights = leave_out.weights(rows)
    return Reflection(
        weights,
        next_checks(compiled, knowledge, places, judgement, surroundings),
        grounds(compiled, judgement, surroundings, leave_out, weights),
        overlaps(judgement, surroundings),
        shown_network(compiled, judgement, surroundings),
    )


def told_checks(
    reflection: Reflection, judgement: Judgement, knowledge: KnowledgeBase, to_read: ToRead
) -> tuple[NextCheck, ...]:
    """The next checks as they are listed, naming command and device."""
    tie_of = {tie.members[0]: f"T{n}" for n, tie in enumerate(judgement.ties, start=1)}
    rows: dict[str, NextCheck] = {}
    for check in reflection.checks:
        sign, place = check.sign_at
        read = to_read(sign, place)
        # One command may answer for several places; it is listed where it tells most.
        if read not in rows:
            splits = tuple(sorted(tie_of[lead] for lead in check.splits))
            cost = knowledge.signs[sign].cost
            rows[read] = NextCheck(read=read, place=str(place), cost=cost, expected_bits=check.bits, splits=splits)
    return tuple(rows.values())[:MOST_CHECKS]


def told_sensitivity(
    reflection: Reflection, citations: Citations, places: Places, ids: Mapping[str, str]
) -> tuple[SensitivityRow, ...]:
    """What each verdict hangs on, cited and in words."""
    rows = []
    for ground in reflection.grounds:
        lost = next((hinge for hinge in ground.hinges if hinge.kind == "finding"), None)
        weakest = ground.weakest
        rows.append(
            SensitivityRow(
                hypothesis=ids[ground.verdict.id],
                needed=ground.needed,
                finding=None if lost is None or lost.finding is None else citations.cite(lost.finding),
                weakest=None if weakest is None or weakest.finding is None else citations.cite(weakest.finding),
                hinges=tuple(_row(hinge, citations, ids) for hinge in ground.hinges),
                tested=ground.tested,
                statement=_sentences(ground, citations, places, ids),
            )
        )
    return tuple(rows)


def _row(hinge: Hinge, citations: Citations, ids: Mapping[str, str]) -> HingeRow:
    outcome = hinge.outcome
    return HingeRow(
        kind=hinge.kind,
        finding=None if hinge.finding is None else citations.cite(hinge.finding),
        cause=hinge.cause or None,
        factor=hinge.factor,
        grade=hinge.grade,
        status="supported" if outcome.is_supported else "possible",
        probability=outcome.probability,
        share=outcome.share,
        lead=None if outcome.lead is None else ids[outcome.lead],
    )


def _sentences(ground: Grounds, citations: Citations, places: Places, ids: Mapping[str, str]) -> str:
    own = ids[ground.verdict.id]
    told = []
    if ground.needed is not None:
        told.append(
            f"Without {own} the slowdown would not have happened: {percent(ground.needed)}, in the rest "
            "others sufficed."
        )
    lost = next((hinge for hinge in ground.hinges if hinge.kind == "finding"), None)
    if lost is not None and lost.finding is not None:
        said = statement(citations.knowledge.signs[lost.finding.sign], lost.finding, places)
        told.append(f"Without {citations.cite(lost.finding)} ({said}) {_becomes(lost, own, ids)}.")
    elif ground.weakest is not None and ground.weakest.finding is not None:
        weakest, outcome = citations.cite(ground.weakest.finding), ground.weakest.outcome
        told.append(
            f"The verdict on {own} hangs on no single finding: of the {ground.tested} heaviest, losing {weakest} would "
            f"change most, to {percent(outcome.probability)} sure."
        )
    else:
        told.append(f"The verdict on {own} hangs on no single finding.")
    assumed = [hinge for hinge in ground.hinges if hinge.kind != "finding"]
    told.extend(_assumption(hinge, own, citations, ids) for hinge in assumed[:MOST_ASSUMPTIONS])
    if not assumed:
        told.append("Nor would a hazard three times off or a grade one step off change it.")
    return " ".join(told)


def _assumption(hinge: Hinge, own: str, citations: Citations, ids: Mapping[str, str]) -> str:
    title = citations.knowledge.causes[hinge.cause].title
    if hinge.factor is not None:
        often = "three times as often" if hinge.factor > 1 else "a third as often"
        return f"Were {title} to happen {often}, {_becomes(hinge, own, ids)}."
    assert hinge.finding is not None
    cited = citations.cite(hinge.finding)
    return f"Were the grade of {cited} for {title} {hinge.grade:g}, {_becomes(hinge, own, ids)}."


def _becomes(hinge: Hinge, own: str, ids: Mapping[str, str]) -> str:
    outcome = hinge.outcome
    state = "supported" if outcome.is_supported else "possible only"
    lead = "" if outcome.lead is None or ids[outcome.lead] == own else f", and {ids[outcome.lead]} would lead"
    return f"{own} would be {state} ({percent(outcome.probability)} sure){lead}"
