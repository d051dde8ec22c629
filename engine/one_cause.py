"""One cause alone: the mechanisms and signs it reaches, and the probabilities they would have with no other cause
present.

Grades are stated for this situation, so this is where a grade becomes links: what the mechanisms already induce is
taken off, and only the excess is a direct link from cause to sign.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import product

from .rules import SignLink
from .scope import Scope

LARGEST_LINK = 0.999
"""No link is certain (DESIGN.md section 5)."""


ByLevel = tuple[float, ...]
"""A number for each level of a sign, from level 1 on; one for a sign that is present or absent."""


@dataclass(frozen=True, slots=True)
class Chain:
    """What one hypothesis reaches: mechanisms (node id -> P(on | parent) links within the chain) and signs."""

    mechanisms: tuple[MechanismNode, ...]
    signs: tuple[SignReach, ...]


@dataclass(frozen=True, slots=True)
class MechanismNode:
    """A mechanism at a place as one hypothesis reaches it.

    `parents`: earlier mechanisms of the chain with their link; `cause_link`: from the cause.
    """

    id: str
    leak: float
    cause_link: float
    parents: tuple[tuple[str, float], ...]


@dataclass(frozen=True, slots=True)
class SignReach:
    """A sign at a place as one hypothesis reaches it: through mechanisms of the chain, and by the cause's own cell
    (None without one).

    `id` is that of its node. Probabilities are by level, from level 1 on: P(at this level or above).
    """

    id: str
    sign: str
    scope: Scope
    leak: ByLevel
    through: tuple[tuple[str, ByLevel], ...]
    cell: SignLink | None


def mechanism_states(chain: Iterable[MechanismNode], cause_on: bool) -> list[tuple[float, frozenset[str]]]:
    """(probability, mechanisms on) of every joint state of a chain, with the cause on or off and no other cause
    present."""
    nodes = tuple(chain)
    states = []
    for bits in product((False, True), repeat=len(nodes)):
        on = {node.id for node, bit in zip(nodes, bits, strict=True) if bit}
        weight = 1.0
        for node, bit in zip(nodes, bits, strict=True):
            off = (1 - node.leak) * (1 - node.cause_link if cause_on else 1.0)
            for parent, link in node.parents:
                off *= 1 - link if parent in on else 1.0
            weight *= 1 - off if bit else off
        if weight > 0:
            states.append((weight, frozenset(on)))
    return states


def induced_off(reach: SignReach, states: list[tuple[float, frozenset[str]]]) -> ByLevel:
    """P(no mechanism of the chain turns the sign on), for each level of it."""
    total = [0.0] * len(reach.leak)
    for weight, on in states:
        off = off_given(reach, on)
        total = [so_far + weight * part for so_far, part in zip(total, off, strict=True)]
    return tuple(total)


def off_given(reach: SignReach, on: frozenset[str]) -> ByLevel:
    """P(none of these mechanisms turns the sign on), for each level of it."""
    links = [link for mechanism, link in reach.through if mechanism in on]
    return tuple(math.prod(1 - link[level] for link in links) for level in range(len(reach.leak)))


def own_leak(reach: SignReach, chain: Iterable[MechanismNode]) -> ByLevel:
    """The sign's leak that is left when its mechanisms' own leaks are taken off: `leak` is the total at an innocent
    place."""
    off = induced_off(reach, mechanism_states(chain, cause_on=False))
    return _excess(reach.leak, off)


def direct_link(reach: SignReach, chain: Iterable[MechanismNode]) -> ByLevel:
    """The direct link from cause to sign: the excess of the grade over what the mechanisms induce; 0 when they induce
    as much or more."""
    if reach.cell is None or reach.cell.effect != "raises":
        return (0.0,) * len(reach.leak)
    nodes = tuple(chain)
    induced = induced_off(reach, mechanism_states(nodes, cause_on=True))
    off = tuple((1 - leak) * part for leak, part in zip(own_leak(reach, nodes), induced, strict=True))
    return tuple(min(p, LARGEST_LINK) for p in _excess(reach.cell.by_level, off))


def _excess(grades: ByLevel, off: ByLevel) -> ByLevel:
    """What is to be added to reach the grades where the rest leaves the sign off with probability `off`.

    What adds to a level adds to those below it: the levels stay cumulative.
    """
    added = [max(0.0, 1 - (1 - grade) / part) for grade, part in zip(grades, off, strict=True)]
    return tuple(max(added[level:]) for level in range(len(added)))


def induced_probability(reach: SignReach, chain: Iterable[MechanismNode]) -> ByLevel:
    """P(sign on | only this cause) in the compiled network: to compare with the graded cell."""
    nodes = tuple(chain)
    induced = induced_off(reach, mechanism_states(nodes, cause_on=True))
    parts = zip(own_leak(reach, nodes), direct_link(reach, nodes), induced, strict=True)
    return tuple(1 - (1 - leak) * (1 - link) * off for leak, link, off in parts)


def ancestors(reach: SignReach, chain: Chain) -> tuple[MechanismNode, ...]:
    """Mechanisms of the chain that lead to a sign, in topological order."""
    wanted = {mechanism for mechanism, _ in reach.through}
    kept = []
    for node in reversed(chain.mechanisms):
        if node.id in wanted:
            kept.append(node)
            wanted |= {parent for parent, _ in node.parents}
    return tuple(reversed(kept))
