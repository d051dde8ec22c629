"""Posteriors and findings -> verdicts: status, role, share, tie classes, loop class and domain.

All limits of DESIGN.md section 6 live here.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from .around import explained_around
from .attribution import Attribution, attribution
from .compile import Compiled
from .frontier.sweep import Explains, Posterior, any_of
from .hypotheses import Hypothesis
from .places import Places
from .results import Role, Status
from .rules import KnowledgeBase
from .scope import Scope
from .weighing import Relevance, combined_factor, relevance

SUPPORTED = 0.80
"""Joint probability from which a tie class is supported (DESIGN.md section 6)."""

REFUTED_LOG10 = -2.0
"""Combined log10 Bayes factor of refuting findings from which a cause may be ruled out (DESIGN.md section 6)."""

RULED_OUT_BELOW = 0.05
"""Largest probability and share of a cause that is ruled out (DESIGN.md section 6)."""

WORTH_LISTING = 0.001
"""Probability from which a hypothesis is listed on its own (DESIGN.md section 7)."""

FEW_PLACES = 3
"""A cause with at most so many places has each of them listed (judgement)."""

TELLING = 0.05
"""Smallest |log10 Bayes factor| of a finding that counts for or against a hypothesis; less is noise of the grades
(judgement)."""

SAME_EVIDENCE = 0.3
"""Largest difference in log10 Bayes factors, over all read findings, of hypotheses that the evidence cannot tell
apart: a factor of two (judgement)."""

WORTH_TYING = 0.05
"""Probability from which one cause at two places may be a tie class: what is less likely at each is no candidate
(judgement; the calibration of tie classes begins there too, DESIGN.md section 9)."""

ROOT_SHARE = 0.20
"""Share from which a supported cause is a root of the symptom; below it contributes or merely co-occurs
(judgement)."""

CONTRIBUTES = 0.02
"""Share from which a supported cause contributes (judgement: the size of the symptom's leak)."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """The judgement on one hypothesis, or on all remaining places of a cause (`members` more than one)."""

    members: tuple[str, ...]
    hypothesis: Hypothesis
    status: Status
    role: Role | None
    probability: float
    explains: float | None
    share: float
    prior: float
    relevances: tuple[Relevance, ...]
    missing: tuple[tuple[str, Scope], ...]
    refuted_log10: float
    triggered_by: tuple[str, ...]
    is_rest: bool = False

    @property
    def id(self) -> str:
        return self.members[0]


@dataclass(frozen=True, slots=True)
class TieClassVerdict:
    """Hypotheses that no read sign separates; `probability` is that of at least one of them."""

    members: tuple[str, ...]
    probability: float
    share: float
    split_by: tuple[tuple[str, Scope], ...]


@dataclass(frozen=True, slots=True)
class Judgement:
    """All verdicts, listed ones first by share and probability, then one rest row per cause.

    `explains`: how the symptom is explained, None without one; `attribution`: who answers for it where one cause
    set off another.
    """

    listed: tuple[Verdict, ...]
    rest: tuple[Verdict, ...]
    ties: tuple[TieClassVerdict, ...]
    unknown_share: float
    posterior: Posterior
    by_loop: Mapping[str, float]
    by_domain: Mapping[str, float]
    explains: Explains | None
    attribution: Attribution


class Judge:
    """Weighs every hypothesis of one compiled network.

    Used through `judge`.
    """

    def __init__(self, knowledge: KnowledgeBase, places: Places, compiled: Compiled, posterior: Posterior) -> None:
        self._knowledge = knowledge
        self._places = places
        self._compiled = compiled
        self._posterior = posterior
        self._explains = self._explained()
        supported = frozenset(node for node in compiled.hypotheses if posterior.probability[node] >= SUPPORTED)
        self._attribution = attribution(compiled, supported)
        self._counted = self._attribution.counted(self._explains)
        self._total = self._explains.unknown + sum(self._counted.values())
        self._relevances: dict[str, tuple[Relevance, ...]] = {}

    def _explained(self) -> Explains:
        if self._compiled.symptom is None:
            return Explains({}, 0.0)
        return explained_around(self._compiled.network, self._posterior)

    def share(self, node: str) -> float:
        """The part of the symptom this cause explains; 0 for consequences and without a symptom."""
        return self._counted.get(node, 0.0) / self._total if self._total > 0 else 0.0

    def relevances(self, node: str) -> tuple[Relevance, ...]:
        if node not in self._relevances:
            self._relevances[node] = relevance(self._compiled, node)
        return self._relevances[node]

    def judge(self) -> Judgement:
        hypotheses = self._compiled.hypotheses
        by_cause = _grouped(hypotheses, lambda hypothesis: hypothesis.cause.id)
        listed = self._listed(by_cause)
        rest = {cause: tuple(node for node in nodes if node not in listed) for cause, nodes in by_cause.items()}
        ties = self._ties(tuple(node for node in hypotheses if node in listed))
        class_of = {member: members for members in ties for member in members}
        loops = _grouped(hypotheses, lambda hypothesis: hypothesis.cause.loop)
        domains = _grouped(hypotheses, lambda hypothesis: hypothesis.cause.domain)
        groups = {f"tie {members[0]}": members for members in ties}
        groups |= {f"rest {cause}": nodes for cause, nodes in rest.items() if nodes}
        joint = any_of(self._compiled.network, groups, self._posterior)
        verdicts = [
            self._verdict((node,), joint[f"tie {class_of[node][0]}"], class_of[node])
            for node in hypotheses
            if node in listed
        ]
        rests = [
            self._verdict(nodes, joint[f"rest {cause}"], nodes, is_rest=True)
            for cause, nodes in sorted(rest.items())
            if nodes
        ]
        unknown = self._explains.unknown / self._total if self._total > 0 else 0.0
        return Judgement(
            _in_reading_order(verdicts),
            _in_reading_order(rests),
            tuple(
                TieClassVerdict(
                    members, joint[f"tie {members[0]}"], sum(self.share(m) for m in members), self._split(members)
                )
                for members in ties
                if len(members) > 1
            ),
            unknown,
            self._posterior,
            self._weights(loops),
            self._weights(domains),
            self._explains if self._compiled.symptom is not None else None,
            self._attribution,
        )

    def _listed(self, by_cause: Mapping[str, tuple[str, ...]]) -> frozenset[str]:
        """Hypotheses shown one by one: probable ones, those with an anomaly of their own, all of a cause with few
        places, and every rival at the place of a supported one."""
        hypotheses, probability = self._compiled.hypotheses, self._posterior.probability
        listed = {node for nodes in by_cause.values() if len(nodes) <= FEW_PLACES for node in nodes}
        listed |= {n for n in hypotheses if probability[n] >= WORTH_LISTING or self._has_own_finding(n)}
        supported = [hypotheses[node].scope for node in hypotheses if probability[node] >= SUPPORTED]
        suspect = {place for scope in supported for place in self._places.around(scope)}
        listed |= {node for node, hypothesis in hypotheses.items() if hypothesis.scope in suspect}
        return frozenset(listed)

    def _has_own_finding(self, node: str) -> bool:
        """Whether a discriminating sign of the hypothesis is present: an anomaly of its own, however improbable the
        cause."""
        return any(
            r.discriminating and r.finding.state == "present" and r.if_true > r.if_none for r in self.relevances(node)
        )

    def _verdict(
        self, nodes: tuple[str, ...], joint: float, tied: tuple[str, ...], *, is_rest: bool = False
    ) -> Verdict:
        lead = max(nodes, key=lambda node: (self._posterior.probability[node], node))
        hypothesis = self._compiled.hypotheses[lead]
        share = sum(self.share(node) for node in nodes)
        # A row of many places is refuted only as well as its least refuted place, and assessable only where all are.
        weakest = max(nodes, key=self._refuted) if is_rest else lead
        unread = next((node for node in nodes if not self._was_assessed(node)), None)
        refuted = self._refuted(weakest)
        shown = unread or weakest
        own_probability = joint if is_rest else self._posterior.probability[lead]
        status = _status(joint, unread is None, refuted, own_probability, share)
        explained = None if self._compiled.symptom is None else sum(self._explains.needed(n) for n in nodes)
        return Verdict(
            (lead, *(node for node in nodes if node != lead)) if is_rest else nodes,
            hypothesis if not is_rest else self._compiled.hypotheses[shown],
            status,
            # Members of a class share one role: split among many, even the root's share is small.
            self._role(lead, sum(self.share(node) for node in tied)) if status == "supported" else None,
            own_probability,
            explained,
            share,
            1 - math.prod(1 - self._compiled.hypotheses[node].prior for node in nodes),
            self.relevances(shown),
            self._missing(shown),
            refuted,
            self._ancestors(lead),
            is_rest,
        )

    def _was_assessed(self, node: str) -> bool:
        """Whether at least one discriminating sign of the hypothesis was read."""
        return any(r.discriminating for r in self.relevances(node))

    def _refuted(self, node: str) -> float:
        """Combined log10 Bayes factor of the read findings that count against a hypothesis; 0 when none does."""
        against = [r.finding for r in self.relevances(node) if weight(r) <= -TELLING]
        if not against:
            return 0.0
        factor = combined_factor(self._compiled, node, against)
        return math.log10(factor) if factor > 0 else -math.inf

    def _missing(self, node: str) -> tuple[tuple[str, Scope], ...]:
        """Discriminating signs of a hypothesis that were not read, with the place to read them at."""
        hypothesis = self._compiled.hypotheses[node]
        found = []
        for sign, link in sorted(hypothesis.cause.signs.items()):
            if link.discriminating:
                for scope in self._places.related(hypothesis.scope, link.at):
                    if self._compiled.findings.get(sign, scope) is None:
                        found.append((sign, scope))
        return tuple(found)

    def _role(self, node: str, share: float) -> Role:
        if node in self._attribution.consequences:
            return "consequence"
        if self._compiled.symptom is None:
            return "co_occurring"
        if node in self._attribution.outlived:
            return "contributing"
        return "root" if share >= ROOT_SHARE else "contributing" if share >= CONTRIBUTES else "co_occurring"

    def _ancestors(self, node: str) -> tuple[str, ...]:
        """Supported causes that triggered this one, directly or not."""
        found: list[str] = []
        waiting = list(self._compiled.triggers.get(node, ()))
        while waiting:
            trigger = waiting.pop(0)
            if trigger not in found and self._posterior.probability[trigger] >= SUPPORTED:
                found.append(trigger)
                waiting.extend(self._compiled.triggers.get(trigger, ()))
        return tuple(found)

    def _ties(self, listed: Sequence[str]) -> list[tuple[str, ...]]:
        """Listed hypotheses that the read findings do not tell apart: causes of one block; and one cause at several
        places (uplink and downlink of a way), or several of a kind at one place; singletons stay singletons."""
        blocks: dict[str, list[str]] = defaultdict(list)
        for node in listed:
            blocks[self._places.block(self._compiled.hypotheses[node].scope)].append(node)
        classes: list[list[str]] = []
        for nodes in blocks.values():
            for node in sorted(nodes, key=lambda n: (-self._posterior.probability[n], n)):
                home = next(
                    (c for c in classes if c[0] in nodes and self._difference(c[0], node) <= SAME_EVIDENCE), None
                )
                if home is None:
                    classes.append([node])
                else:
                    home.append(node)
        return [tuple(members) for members in self._tied_leads(classes)]

    def _tied_leads(self, classes: list[list[str]]) -> list[list[str]]:
        """Classes led by one cause at several places, or by causes of one domain and loop class at one place, that are
        probable alike, none of them sure by itself, as one: that it happened may be sure where the place is not, and
        that this host or queue is to blame where the way is not."""
        probability, hypotheses = self._posterior.probability, self._compiled.hypotheses
        tied: list[list[str]] = []
        for members in sorted(classes, key=lambda members: (-probability[members[0]], members[0])):
            lead = members[0]
            home = next(
                (
                    c
                    for c in tied
                    if _are_akin(hypotheses[c[0]], hypotheses[lead])
                    and WORTH_TYING <= probability[lead] <= probability[c[0]] < SUPPORTED
                    and self._has_own_finding(lead)
                    and self._has_own_finding(c[0])
                    and probability[c[0]] / probability[lead] <= 10**SAME_EVIDENCE
                ),
                None,
            )
            if home is None:
                tied.append(list(members))
            else:
                home.extend(members)
        return tied

    def _difference(self, one: str, other: str) -> float:
        weights = [
            {(r.finding.sign, r.finding.scope): weight(r) for r in self.relevances(node)} for node in (one, other)
        ]
        pairs = [(weights[0].get(key, 0.0), weights[1].get(key, 0.0)) for key in sorted({*weights[0], *weights[1]})]
        # Two that one finding excludes alike do not differ in it.
        return sum(abs(mine - theirs) for mine, theirs in pairs if mine != theirs)

    def _split(self, members: tuple[str, ...]) -> tuple[tuple[str, Scope], ...]:
        """Unread signs that some members have and others lack: reading one splits the class."""
        missing = [set(self._missing(member)) for member in members]
        some, all_of_them = missing[0], missing[0]
        for one in missing[1:]:
            some, all_of_them = some | one, all_of_them & one
        return tuple(sorted(some - all_of_them))

    def _weights(self, groups: Mapping[str, tuple[str, ...]]) -> dict[str, float]:
        """Share of the symptom by group; without a symptom P(at least one cause of the group)."""
        if self._compiled.symptom is not None:
            return {name: sum(self.share(node) for node in nodes) for name, nodes in groups.items()}
        return any_of(self._compiled.network, groups, self._posterior)


def _are_akin(one: Hypothesis, other: Hypothesis) -> bool:
    """The same cause, or the same place with causes of one kind."""
    is_one_kind = one.cause.domain == other.cause.domain and one.cause.loop == other.cause.loop
    return one.cause is other.cause or (one.scope == other.scope and is_one_kind)


def _in_reading_order(verdicts: list[Verdict]) -> tuple[Verdict, ...]:
    """By share and probability as far as a page shows them; below that each cause once before any cause twice, because
    a rival that is ruled out says more than the same change at the fifteenth leaf."""
    # Places alike differ in their last digits only, by the order of the sums.
    ranked = sorted(verdicts, key=lambda v: (-float(f"{v.share:.9g}"), -float(f"{v.probability:.9g}"), v.id))
    seen: dict[str, int] = defaultdict(int)
    repeat = {}
    for verdict in ranked:
        repeat[verdict.id] = seen[verdict.hypothesis.cause.id]
        seen[verdict.hypothesis.cause.id] += 1
    shown = {v.id: (round(v.share, 3), round(v.probability, 3)) for v in ranked}
    return tuple(sorted(ranked, key=lambda v: (-shown[v.id][0], -shown[v.id][1], repeat[v.id])))


def judge(knowledge: KnowledgeBase, places: Places, compiled: Compiled, posterior: Posterior) -> Judgement:
    """Verdicts on all hypotheses of a solved network."""
    return Judge(knowledge, places, compiled, posterior).judge()


def weight(relevance: Relevance) -> float:
    """Log10 Bayes factor of one finding for a hypothesis, taken alone: positive speaks for it."""
    return math.log10(relevance.factor) if relevance.factor > 0 else -math.inf


def _status(joint: float, is_assessed: bool, refuted: float, probability: float, share: float) -> Status:
    if joint >= SUPPORTED:
        return "supported"
    if not is_assessed:
        return "not_assessable"
    if refuted <= REFUTED_LOG10 and probability < RULED_OUT_BELOW and share < RULED_OUT_BELOW:
        return "ruled_out"
    return "possible"


def _grouped(hypotheses: Mapping[str, Hypothesis], group: Callable[[Hypothesis], str]) -> dict[str, tuple[str, ...]]:
    groups: dict[str, list[str]] = defaultdict(list)
    for node, hypothesis in hypotheses.items():
        groups[group(hypothesis)].append(node)
    return {name: tuple(nodes) for name, nodes in sorted(groups.items())}
