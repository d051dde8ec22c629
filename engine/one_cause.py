"""One cause alone: the mechanisms and signs it reaches, and the probabilities they would have with no other cause
present.

Grades are stated for this situation, so this is where a grade becomes links: what the mechanisms already induce is
taken off, and only the excess is a direct link from cause to sign.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import product

from .rules import SignLink
from .scope import Scope

LARGEST_LINK = 0.999
"""No link is certain (DESIGN.md section 5)."""


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

    `id` is that of its node.
    """

    id: str
    sign: str
    scope: Scope
    leak: float
    through: tuple[tuple[str, float], ...]
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


def induced_off(reach: SignReach, states: list[tuple[float, frozenset[str]]]) -> float:
    """P(no mechanism of the chain turns the sign on)."""
    total = 0.0
    for weight, on in states:
        for mechanism, link in reach.through:
            if mechanism in on:
                weight *= 1 - link
        total += weight
    return total


def own_leak(reach: SignReach, chain: Iterable[MechanismNode]) -> float:
    """The sign's leak that is left when its mechanisms' own leaks are taken off: `leak` is the total at an innocent
    place."""
    off = induced_off(reach, mechanism_states(chain, cause_on=False))
    return max(0.0, 1 - (1 - reach.leak) / off)


def direct_link(reach: SignReach, chain: Iterable[MechanismNode]) -> float:
    """The direct link from cause to sign: the excess of the grade over what the mechanisms induce; 0 when they induce
    as much or more."""
    if reach.cell is None or reach.cell.effect != "raises":
        return 0.0
    nodes = tuple(chain)
    off = (1 - own_leak(reach, nodes)) * induced_off(reach, mechanism_states(nodes, cause_on=True))
    return min(max(0.0, 1 - (1 - reach.cell.p) / off), LARGEST_LINK)


def induced_probability(reach: SignReach, chain: Iterable[MechanismNode]) -> float:
    """P(sign on | only this cause) in the compiled network: to compare with the graded cell."""
    nodes = tuple(chain)
    off = (1 - own_leak(reach, nodes)) * (1 - direct_link(reach, nodes))
    return 1 - off * induced_off(reach, mechanism_states(nodes, cause_on=True))


def ancestors(reach: SignReach, chain: Chain) -> tuple[MechanismNode, ...]:
    """Mechanisms of the chain that lead to a sign, in topological order."""
    wanted = {mechanism for mechanism, _ in reach.through}
    kept = []
    for node in reversed(chain.mechanisms):
        if node.id in wanted:
            kept.append(node)
            wanted |= {parent for parent, _ in node.parents}
    return tuple(reversed(kept))
