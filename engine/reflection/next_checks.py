"""What to read next: the unread signs by how much they are expected to tell for the effort of reading them."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from ..around import ABSENT, Nearby, Surroundings
from ..compile import Compiled
from ..frontier.sweep import Explains
from ..network import Likelihood
from ..places import Places
from ..rules import KnowledgeBase
from ..verdicts import Judgement
from .unread import SignAt, UnreadSign, unread_signs

MOST_CANDIDATES = 20
"""Unread signs weighed (judgement: each costs two small sums); those of tie classes and of likely causes first."""

MINUTES = {"scraped": 1.0, "command": 3.0, "visit": 60.0}
"""Effort of one reading: a query of what is scraped already, one command on one device, a visit to the cage
(judgement)."""


@dataclass(frozen=True, slots=True)
class Check:
    """An unread sign worth reading.

    `bits`: by how much reading it is expected to lessen the entropy of the answer. `splits`: leading members of the tie
    classes it tells apart.
    """

    sign_at: SignAt
    bits: float
    splits: tuple[str, ...]


def next_checks(
    compiled: Compiled, knowledge: KnowledgeBase, places: Places, judgement: Judgement, surroundings: Surroundings
) -> tuple[Check, ...]:
    """Unread signs of the causes that are not ruled out, most bits a minute first.

    The answer is which cause the symptom needed: each listed one, an unknown one, any other or several at once; these
    exclude each other. Without a symptom it is whether the one cause is there of which the sign tells most. A sign with
    levels counts as present or absent, so more may be told than is said here, never less.
    """
    candidates = _candidates(judgement)
    unread = unread_signs(compiled, knowledge, places, frozenset(candidates))
    shown = tuple(verdict.id for verdict in judgement.listed)
    bits = {sign_at: expected_bits(one, surroundings, judgement.explains, shown) for sign_at, one in unread.items()}
    checks = [Check(sign_at, bits.get(sign_at, 0.0), splits) for sign_at, splits in candidates.items()]

    def gain(check: Check) -> float:
        return check.bits / MINUTES[knowledge.signs[check.sign_at[0]].cost]

    return tuple(sorted(checks, key=lambda check: -float(f"{gain(check):.6g}")))


def _candidates(judgement: Judgement) -> dict[SignAt, tuple[str, ...]]:
    """Unread signs with the tie classes they split: of the classes first, then the first of each cause in reading
    order, then the second of each."""
    splits: dict[SignAt, list[str]] = {}
    for tie in judgement.ties:
        for sign_at in tie.split_by:
            splits.setdefault(sign_at, []).append(tie.members[0])
    verdicts = [v for v in (*judgement.listed, *judgement.rest) if v.status != "ruled_out"]
    verdicts.sort(key=lambda v: (-v.share, -v.probability))
    for depth in range(max((len(v.missing) for v in verdicts), default=0)):
        for verdict in verdicts:
            if depth < len(verdict.missing):
                splits.setdefault(verdict.missing[depth], [])
    return {sign_at: tuple(splits[sign_at]) for sign_at in list(splits)[:MOST_CANDIDATES]}


def expected_bits(
    one: UnreadSign, surroundings: Surroundings, explains: Explains | None, shown: Sequence[str]
) -> float:
    """Expected drop of the entropy of the answer, told by `shown` causes, when a sign is read: P(answer, sign absent)
    by one more sum, the rest is presence.

    `explains` as the network says now; None without a symptom.
    """
    parents = (*(name for name, _ in one.node.links), *one.if_absent)
    nearby = surroundings.near((*parents, *(shown if explains is None else ())))
    changed = nearby.changed(_absence(one, nearby), [one.node])
    posterior, if_absent = surroundings.explained(nearby, changed)
    absent = min(1.0, 10.0 ** (posterior.log_evidence - nearby.posterior.log_evidence))
    if explains is not None:
        return _information(_answers(explains, shown), _answers(if_absent, shown), absent)
    now, then = nearby.posterior.probability, posterior.probability
    return max((_information(_either(now[name]), _either(then[name]), absent) for name in shown), default=0.0)


def _either(p: float) -> tuple[float, float]:
    return p, 1.0 - p


def _absence(one: UnreadSign, nearby: Nearby) -> dict[str, Likelihood | None]:
    seen: dict[str, Likelihood | None] = {one.node.id: ABSENT}
    for name, ratio in one.if_absent.items():
        own = nearby.network.evidence.get(name, Likelihood(1.0, 1.0))
        seen[name] = Likelihood(own.off, own.on * ratio)
    return seen


def _answers(explains: Explains, shown: Iterable[str]) -> tuple[float, ...]:
    """P(the symptom needed it) for each shown cause and the unknown one, and what is left: another, or several."""
    told = (*(explains.by_cause.get(name, 0.0) for name in shown), explains.unknown)
    return (*told, max(0.0, 1.0 - sum(told)))


def _information(now: tuple[float, ...], if_absent: tuple[float, ...], absent: float) -> float:
    """Mutual information in bits of the answer and the reading, from P(answer), P(answer | absent), P(absent)."""
    with_absent = [absent * p for p in if_absent]
    with_present = [max(0.0, p - part) for p, part in zip(now, with_absent, strict=True)]
    rest = _plogp([absent, 1.0 - absent])
    return max(0.0, round(_plogp([*with_absent, *with_present]) - rest - _plogp(now), 9))  # less is rounding


def _plogp(chances: Iterable[float]) -> float:
    """Sum of p log2 p; minus the entropy."""
    return math.fsum(p * math.log2(p) for p in chances if p > 0.0)
