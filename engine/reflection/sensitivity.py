"""What a verdict hangs on: the one finding whose loss would change it, and the hazards and grades that would."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Literal

from ..around import Nearby, Surroundings
from ..compile import Compiled
from ..counterfactual import needed
from ..findings import SignFinding
from ..frontier.sweep import any_of
from ..network import Level, Network, Node
from ..one_cause import ancestors, direct_link
from ..rules import SignGrade
from ..verdicts import ROOT_SHARE, SUPPORTED, TELLING, WORTH_TYING, Judgement, Verdict
from .leave_out import LeaveOut, Weights

MOST_FINDINGS = 8
"""Findings left out for one verdict, those that weigh most in it first (judgement)."""

MOST_NODES = 16_000
"""Nodes summed for the findings of one verdict, so that fewer are tested in a large part (judgement: some two seconds
of one core); two at least."""

MOST_RIVALS = 3
"""Rivals whose findings and hazards are looked at (judgement)."""

HAZARD_FACTOR = 3.0
"""By how much a hazard is changed (judgement: what fleets report of one cause differs by as much)."""

GRADES = (0.02, 0.10, 0.40, 0.80, 0.97)
"""The steps of a grade, from almost never to almost always (causal.md, grades)."""

MOST_VERDICTS = 3
"""Verdicts whose grounds are looked at (judgement)."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """A verdict under changed grounds; `lead`: the hypothesis that explains most, None without a symptom."""

    probability: float
    share: float
    is_supported: bool
    is_root: bool
    lead: str | None

    def differs(self, other: Outcome) -> bool:
        """Whether it is another verdict."""
        mine, theirs = (self.is_supported, self.is_root, self.lead), (other.is_supported, other.is_root, other.lead)
        return mine != theirs


@dataclass(frozen=True, slots=True)
class Hinge:
    """Something whose change gives another verdict: a finding that is lost, a hazard times `factor`, or the grade of a
    sign for a cause that becomes `grade` (of its first level)."""

    kind: Literal["finding", "hazard", "grade"]
    outcome: Outcome
    finding: SignFinding | None = None
    cause: str = ""
    factor: float | None = None
    grade: float | None = None


@dataclass(frozen=True, slots=True)
class Grounds:
    """What one verdict hangs on.

    `hinges` are those found, findings first, the largest change first; `weakest` is the tested finding without which
    the verdict is least sure, though it may stand; None where none was tested. `tested` counts findings. `needed`:
    P(the symptom would not have occurred without the cause, or those it is tied with); None without a symptom.
    """

    verdict: Verdict
    needed: float | None
    hinges: tuple[Hinge, ...]
    weakest: Hinge | None
    tested: int


class Sensitivity:
    """Tests the grounds of the verdicts of one network.

    Used through `grounds`.
    """

    def __init__(
        self,
        compiled: Compiled,
        judgement: Judgement,
        surroundings: Surroundings,
        leave_out: LeaveOut,
        weights: Weights,
    ) -> None:
        self._compiled = compiled
        self._judgement = judgement
        self._surroundings = surroundings
        self._leave_out = leave_out
        self._weights = weights
        self._tie_of = {member: tie.members for tie in judgement.ties for member in tie.members}

    def grounds(self, verdict: Verdict) -> Grounds:
        members = self._tie_of.get(verdict.id, (verdict.id,))
        rivals = [v for v in self._judgement.listed if v.id not in members][:MOST_RIVALS]
        nearby = self._surroundings.near(members)
        now = self._outcome(members, nearby, nearby.network)
        findings = list(self._lost(verdict, members, rivals))
        hinges = [
            hinge
            for hinge in (
                *findings,
                *self._hazards(verdict, members, rivals, now),
                *self._grades(verdict, members, now),
            )
            if hinge.outcome.differs(now)
        ]

        def shift(hinge: Hinge) -> tuple[bool, float]:
            return hinge.kind != "finding", -abs(hinge.outcome.probability - now.probability)

        weakest = min(findings, key=lambda hinge: hinge.outcome.probability, default=None)
        return Grounds(verdict, self._needed(members, nearby), tuple(sorted(hinges, key=shift)), weakest, len(findings))

    def _needed(self, members: tuple[str, ...], nearby: Nearby) -> float | None:
        if self._judgement.explains is None:
            return None
        together = needed(nearby.network, nearby.posterior, members)
        if together is None:  # what each did alone can still be told
            return min(1.0, sum(self._judgement.explains.needed(node) for node in members))
        return together

    def _lost(self, verdict: Verdict, members: tuple[str, ...], rivals: Iterable[Verdict]) -> Iterator[Hinge]:
        """The verdict without each of the findings that weigh most in it or in a rival."""
        weighed: dict[str, tuple[float, SignFinding]] = {}
        for one in (verdict, *rivals):
            for reach in self._compiled.chains[one.id].signs:
                weight = abs(self._weights[one.id][reach.id])
                if weight >= TELLING and weight > weighed.get(reach.id, (0.0, None))[0]:
                    weighed[reach.id] = (weight, self._compiled.finding(reach))
        own = {reach.id for member in members for reach in self._compiled.chains[member].signs}
        ranked = sorted(weighed, key=lambda sign: (sign not in own, -weighed[sign][0], sign))
        size = len(self._surroundings.near(members).network.nodes)
        for sign in ranked[: max(2, min(MOST_FINDINGS, MOST_NODES // size))]:
            nearby = self._leave_out.near(members, sign)
            changed = nearby.changed(self._leave_out.changes(sign))
            yield Hinge("finding", self._outcome(members, nearby, changed), weighed[sign][1])

    def _hazards(
        self, verdict: Verdict, members: tuple[str, ...], rivals: Iterable[Verdict], now: Outcome
    ) -> Iterator[Hinge]:
        """The verdict with another hazard of its cause, or of a rival's, at the places that are listed."""
        own = verdict.hypothesis.cause.id
        causes = dict.fromkeys((own, *(rival.hypothesis.cause.id for rival in rivals)))
        for cause in causes:
            factor = 1.0 / HAZARD_FACTOR if (cause == own) is now.is_supported else HAZARD_FACTOR
            nodes = [v.id for v in self._judgement.listed if v.hypothesis.cause.id == cause]
            nearby = self._surroundings.near((*members, *nodes))
            changed = nearby.changed(
                nodes=[
                    replace(node, leak=min(node.leak * factor, 0.999))
                    for node in nearby.network.nodes
                    if node.id in nodes
                ]
            )
            yield Hinge("hazard", self._outcome(members, nearby, changed), cause=cause, factor=factor)

    def _grades(self, verdict: Verdict, members: tuple[str, ...], now: Outcome) -> Iterator[Hinge]:
        """The verdict with one grade of its cause a step nearer to what would not have been seen (or, of a verdict that
        is not supported, to what was)."""
        nearby = self._surroundings.near(members)
        nodes = {node.id: node for node in nearby.network.nodes}
        chain = self._compiled.chains[verdict.id]
        for reach in chain.signs:
            if reach.cell is None or reach.cell.effect != "raises" or reach.id not in nodes:
                continue
            if abs(self._weights[verdict.id][reach.id]) < TELLING:
                continue
            finding = self._compiled.finding(reach)
            step = _lower if (finding.state == "present") is now.is_supported else _higher
            cell = reach.cell.model_copy(update={"p": _stepped(reach.cell, step)})
            links = direct_link(replace(reach, cell=cell), ancestors(reach, chain))
            changed = nearby.changed(nodes=[_with_link(nodes[reach.id], verdict.id, links)])
            outcome = self._outcome(members, nearby, changed)
            yield Hinge("grade", outcome, finding, verdict.hypothesis.cause.id, grade=cell.by_level[0])

    def _outcome(self, members: tuple[str, ...], nearby: Nearby, changed: Network) -> Outcome:
        posterior, explains = self._surroundings.explained(nearby, changed, with_effects=True)
        joint = any_of(changed, {"class": members}, posterior)["class"]
        is_supported = joint >= SUPPORTED
        if self._judgement.explains is None:
            return Outcome(joint, 0.0, is_supported, False, None)
        counted = self._judgement.attribution.counted(explains)
        total = explains.unknown + sum(counted.values())
        shares: dict[str, float] = {}
        for verdict in self._judgement.listed:
            lead = self._tie_of.get(verdict.id, (verdict.id,))[0]
            shares[lead] = shares.get(lead, 0.0) + counted.get(verdict.id, 0.0) / total
        own = shares.get(members[0], 0.0)
        first = max(shares, key=lambda lead: shares[lead])
        return Outcome(joint, own, is_supported, is_supported and own >= ROOT_SHARE, first)


def grounds(
    compiled: Compiled, judgement: Judgement, surroundings: Surroundings, leave_out: LeaveOut, weights: Weights
) -> tuple[Grounds, ...]:
    """What the root causes hang on; without one the supported causes, without these the leading possibility."""
    leads = {tie.members[0] for tie in judgement.ties}
    members = {member for tie in judgement.ties for member in tie.members}
    leading = [v for v in judgement.listed if v.id in leads or v.id not in members]
    asked = (
        [v for v in leading if v.role == "root"]
        or [v for v in leading if v.status == "supported"]
        or [v for v in leading if v.status == "possible" and max(v.probability, v.share) >= WORTH_TYING][:1]
    )
    tester = Sensitivity(compiled, judgement, surroundings, leave_out, weights)
    return tuple(tester.grounds(verdict) for verdict in asked[:MOST_VERDICTS])


def _lower(p: float) -> float:
    return max((grade for grade in GRADES if grade < p - 0.01), default=p)


def _higher(p: float) -> float:
    return min((grade for grade in GRADES if grade > p + 0.01), default=p)


def _stepped(grade: SignGrade, step: Callable[[float], float]) -> float | tuple[float, ...]:
    """Every level one step down or up; what lies above the scale stays there going up, below it going down."""
    return tuple(step(p) for p in grade.p) if isinstance(grade.p, tuple) else step(grade.p)


def _with_link(node: Node, parent: str, links: tuple[float, ...]) -> Node:
    """The sign with the direct link of one parent replaced, level by level."""
    levels = [(node.leak, node.links), *((level.leak, level.links) for level in node.higher)]
    changed = [
        Level(leak, tuple(sorted({**dict(own), parent: link}.items())))
        for (leak, own), link in zip(levels, links, strict=False)
    ]
    return replace(node, links=changed[0].links, higher=tuple(changed[1:]))
