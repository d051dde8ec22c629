"""How the read findings bear on one hypothesis: each alone, and those against it together."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

from .compile import Compiled
from .findings import SignFinding
from .levels import seen_probability
from .one_cause import (
    ByLevel,
    Chain,
    MechanismNode,
    SignReach,
    ancestors,
    direct_link,
    induced_off,
    induced_probability,
    mechanism_states,
    off_given,
    own_leak,
)


@dataclass(frozen=True, slots=True)
class Relevance:
    """How one finding bears on one hypothesis: P(what was seen | only this cause) against P(what was seen | no
    catalogued cause).

    `mechanisms` are the hidden steps it shares with other findings: findings that share one are not independent.
    """

    finding: SignFinding
    if_true: float
    if_none: float
    mechanisms: tuple[str, ...]
    discriminating: bool

    @property
    def factor(self) -> float:
        """Bayes factor of the finding for the hypothesis, taken alone; infinite where no innocent place shows it."""
        return self.if_true / self.if_none if self.if_none > 0 else math.inf


def relevance(compiled: Compiled, node: str) -> tuple[Relevance, ...]:
    """How each read finding bears on a hypothesis, taken alone: against it first, for it last."""
    chain = compiled.chains[node]
    key = ("relevance", *_signature(compiled, node))
    if key not in compiled.answers:
        compiled.answers[key] = tuple(_bearing(compiled, reach, chain) for reach in chain.signs)
    found = [
        Relevance(
            compiled.finding(reach),
            *bearing,
            tuple(mechanism for mechanism, _ in reach.through),
            _is_discriminating(reach, compiled.finding(reach)),
        )
        for reach, bearing in zip(chain.signs, compiled.answers[key], strict=True)
    ]
    return tuple(sorted(found, key=lambda r: (r.factor, r.finding.sign, r.finding.scope)))


def _is_discriminating(reach: SignReach, finding: SignFinding) -> bool:
    mark = False if reach.cell is None else reach.cell.discriminating
    return finding.state == "present" if mark == "when_present" else mark


def _bearing(compiled: Compiled, reach: SignReach, chain: Chain) -> tuple[float, float]:
    """P(what was seen of a sign | only this cause) and P(what was seen of it | no catalogued cause)."""
    finding = compiled.finding(reach)
    on_true, on_none = sign_probabilities(reach, ancestors(reach, chain))
    return _seen(finding, on_true), _seen(finding, on_none)


def sign_probabilities(reach: SignReach, chain: tuple[MechanismNode, ...]) -> tuple[ByLevel, ByLevel]:
    """P(sign on | only this cause) and P(sign on | no catalogued cause), by level."""
    if reach.cell is not None and reach.cell.effect != "raises":
        return reach.cell.by_level, reach.leak
    by_itself = induced_off(reach, mechanism_states(chain, cause_on=False))
    nothing = tuple(max(leak, 1 - off) for leak, off in zip(reach.leak, by_itself, strict=True))
    return induced_probability(reach, chain), nothing


def _seen(finding: SignFinding, at_least: ByLevel) -> float:
    seen = finding.likelihood(len(at_least))
    assert seen is not None
    return seen_probability(seen, at_least)


def combined_factor(compiled: Compiled, node: str, findings: Iterable[SignFinding]) -> float:
    """Bayes factor of several findings together: P(all of them | only this cause) / P(all of them | no catalogued
    cause).

    Findings that share a mechanism are summed over its states, so they are not counted as independent.
    """
    chain = compiled.chains[node]
    wanted = {(finding.sign, finding.scope) for finding in findings}
    chosen = tuple((reach.sign, reach.scope) in wanted for reach in chain.signs)
    key = ("factor", chosen, *_signature(compiled, node))
    if key not in compiled.answers:
        reaches = [reach for reach, is_wanted in zip(chain.signs, chosen, strict=True) if is_wanted]
        compiled.answers[key] = ((_joint(compiled, chain, reaches, True), _joint(compiled, chain, reaches, False)),)
    ((if_true, if_none),) = compiled.answers[key]
    return if_true / if_none if if_none > 0 else float("inf")


def _joint(compiled: Compiled, chain: Chain, reaches: Iterable[SignReach], cause_on: bool) -> float:
    """P(what was seen of these signs together), with only this cause present or none."""
    links = [(reach, *_own_links(reach, chain, cause_on)) for reach in reaches]
    total = 0.0
    for weight, on in mechanism_states(chain.mechanisms, cause_on):
        for reach, fixed, off in links:
            by_mechanisms = off_given(reach, on)
            at_least = tuple(1 - own * part for own, part in zip(off, by_mechanisms, strict=True))
            weight *= _seen(compiled.finding(reach), at_least if fixed is None else fixed)
        total += weight
    return total


def _own_links(reach: SignReach, chain: Chain, cause_on: bool) -> tuple[ByLevel | None, ByLevel]:
    """(the probabilities when a cell fixes them, P(off) by leak and direct link alone), by level."""
    if reach.cell is not None and reach.cell.effect != "raises":
        return (reach.cell.by_level if cause_on else reach.leak), (1.0,) * len(reach.leak)
    relevant = ancestors(reach, chain)
    links = direct_link(reach, relevant) if cause_on else (0.0,) * len(reach.leak)
    return None, tuple((1 - leak) * (1 - p) for leak, p in zip(own_leak(reach, relevant), links, strict=True))


def _signature(compiled: Compiled, node: str) -> tuple[object, ...]:
    """What the weights of a hypothesis depend on: its cause, the shape of its chain, and the answers read.

    Thousands of places share one.
    """
    chain = compiled.chains[node]
    index = {mechanism.id: n for n, mechanism in enumerate(chain.mechanisms)}
    return (
        compiled.hypotheses[node].cause.id,
        tuple((m.leak, m.cause_link, tuple((index[p], link) for p, link in m.parents)) for m in chain.mechanisms),
        tuple(
            (
                reach.sign,
                compiled.finding(reach).likelihood(len(reach.leak)),
                reach.cell is None,
                tuple((index[m], link) for m, link in reach.through),
            )
            for reach in chain.signs
        ),
    )
