"""The algebra of signs with ordered levels (noisy-MAX): how their numbers, and what was seen of them, are taken apart.

Each parent that is on reaches a level by itself, and the sign shows the highest: P(level <= k) is a product over
parents, so P(level = k) is a difference of two products. It is never formed as one: given that the sign is at most at
level k, "it is at level k" is a noisy-OR of its own, with the link (p_k - p_k+1) / (1 - p_k+1). A level that was seen
is therefore two binary signs, one absent and one present, and every sum stays one of non-negative terms.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise

from .network import Level, Likelihood, Node


def levels_of(node: Node) -> tuple[Level, ...]:
    """P(at this level or above | parents), from level 1 on."""
    return (Level(node.leak, node.links), *node.higher)


def steps_of(node: Node) -> tuple[Level, ...]:
    """P(at level k | at most at level k, parents), from level 1 on, each over all parents of the node in their order.

    >>> from causeline.engine.network import NodeKind
    >>> steps_of(Node("depth", NodeKind.SIGN, None, 0.2, (("queue", 0.9),), higher=(Level(0.0, (("queue", 0.5),)),)))
    (Level(leak=0.2, links=(('queue', 0.8),)), Level(leak=0.0, links=(('queue', 0.5),)))
    """
    if not node.higher:
        return (Level(node.leak, node.links),)
    levels = [*levels_of(node), Level(0.0)]
    return tuple(_given_not(above, level, node) for level, above in pairwise(levels))


def _given_not(above: Level, level: Level, node: Node) -> Level:
    own, over = dict(level.links), dict(above.links)
    links = tuple((parent, _step(own.get(parent, 0.0), over.get(parent, 0.0))) for parent, _ in node.links)
    return Level(_step(level.leak, above.leak), links)


def _step(p: float, above: float) -> float:
    # Where the level above is certain nothing is left to ask of this one.
    return (p - above) / (1.0 - above) if above < 1.0 else 0.0


def without_top(node: Node) -> Node | None:
    """The sign given that it is not at its top level; None where that was its only one."""
    levels = levels_of(node)
    if len(levels) == 1:
        return None
    top = levels[-1]
    return _with_levels(node, [_given_not(top, level, node) for level in levels[:-1]])


def merged(node: Node, seen: Likelihood) -> tuple[Node, Likelihood]:
    """The sign and what was seen of it, with levels between which the evidence does not tell made one.

    At least two of the likelihoods must differ.
    """
    levels, by_level = levels_of(node), seen.by_level
    kept = [k for k in range(1, len(by_level)) if by_level[k] != by_level[k - 1]]
    if len(kept) == len(levels):
        return node, seen
    return (
        _with_levels(node, [levels[k - 1] for k in kept]),
        Likelihood.of([by_level[0], *(by_level[k] for k in kept)]),
    )


def _with_levels(node: Node, levels: Sequence[Level]) -> Node:
    return replace(node, leak=levels[0].leak, links=levels[0].links, higher=tuple(levels[1:]))


def largest_chance(node: Node, seen: Likelihood) -> float:
    """An upper bound on P(what was seen of a sign), 0 only where it is impossible; exact for a sign without
    parents."""
    chance, left = 0.0, 1.0
    for step, likelihood in zip(reversed(steps_of(node)), reversed(seen.by_level), strict=False):
        can_be_turned_on = any(p > 0.0 for _, p in step.links)
        chance += likelihood * left * (1.0 if can_be_turned_on else step.leak)
        left *= 1.0 - step.leak
    return chance + seen.off * (1.0 if node.inhibitors else left)


def seen_probability(seen: Likelihood, at_least: Sequence[float]) -> float:
    """P(what was seen of a sign), from P(at this level or above) for each level from the first on."""
    bounds = (1.0, *at_least, 0.0)
    return sum(p * (low - high) for p, (low, high) in zip(seen.by_level, pairwise(bounds), strict=True))
