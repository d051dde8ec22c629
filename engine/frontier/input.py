"""A network made ready for the sweep: checked, its nodes in one order, and all of its evidence absorbed that says
something of each node by itself.

What is left couples nodes, and is summed.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from itertools import pairwise

from ..errors import InferenceError
from ..levels import largest_chance, levels_of, merged, without_top
from ..network import Likelihood, Network, Node, NodeKind


@dataclass(frozen=True, slots=True)
class Absorbed:
    """A network with its evidence.

    `weight` is each hidden node's likelihood, hard-absent shared signs included; `likelihood` that of each sign still
    to be summed; `log_constant` the natural logarithm of the factor taken out of the evidence. `nodes` are left with
    the levels that the evidence still tells apart.
    """

    nodes: Mapping[str, Node]
    weight: Mapping[str, Likelihood]
    likelihood: Mapping[str, Likelihood]
    log_constant: float


def canonical(network: Network) -> dict[str, Node]:
    """The nodes by depth and id, so that the order in which facts arrived cannot reach a sum."""
    depth: dict[str, int] = {}
    kinds: dict[str, NodeKind] = {}
    for node in network.nodes:
        parents = [parent for parent, _ in (*node.links, *node.inhibitors)]
        if node.id in depth:
            raise InferenceError(
                f"Node {node.id} is there twice.", "Give each hypothesis, mechanism and sign its own id."
            )
        for parent in parents:
            if parent not in depth:
                raise InferenceError(
                    f"{parent}, a parent of {node.id}, is unknown or comes after it.", "List parents first."
                )
            if kinds[parent] is NodeKind.SIGN:
                raise InferenceError(f"Sign {parent} drives {node.id}; signs drive nothing.", "Make it a mechanism.")
        for number in (node.leak, *(p for _, p in node.links), *(k for _, k in node.inhibitors)):
            if not 0.0 <= number <= 1.0:
                raise InferenceError(
                    f"{node.id} holds {number}, expected a probability.", "Correct the leak or the link."
                )
        _require_ordered(node)
        if node.place is None and node.kind is NodeKind.SIGN and node.inhibitors:
            raise InferenceError(
                f"Shared sign {node.id} has inhibitors ({', '.join(cause for cause, _ in node.inhibitors)}).",
                "Inhibit a mechanism at the cause's place and let that drive the sign.",
            )
        depth[node.id] = 1 + max((depth[parent] for parent in parents), default=0)
        kinds[node.id] = node.kind
    ordered = sorted(network.nodes, key=lambda node: (depth[node.id], node.id))
    return {node.id: in_order(node) for node in ordered}


def _require_ordered(node: Node) -> None:
    """A level holds only where the one below holds, and only signs have more than one."""
    if not node.higher:
        return
    if node.kind is not NodeKind.SIGN:
        raise InferenceError(f"{node.id} has levels and is no sign.", "Give levels to signs only.")
    levels = levels_of(node)
    for number, (below, level) in enumerate(pairwise(levels), start=2):
        known = dict(below.links)
        if level.leak > below.leak or any(p > known.get(parent, 0.0) for parent, p in level.links):
            raise InferenceError(
                f"Level {number} of {node.id} is likelier than level {number - 1}.",
                "Levels are cumulative: each at most as probable as the one below.",
            )


def in_order(node: Node) -> Node:
    """The node with its parents by id, without those that never act."""
    links = tuple(sorted(link for link in node.links if link[1] > 0.0))
    inhibitors = tuple(sorted(inhibitor for inhibitor in node.inhibitors if inhibitor[1] > 0.0))
    if links == node.links and inhibitors == node.inhibitors:
        return node
    return replace(node, links=links, inhibitors=inhibitors)


def absorb_evidence(network: Network, open_to_the_end: frozenset[str] = frozenset()) -> Absorbed:
    """The network with what its evidence says of each node by itself taken out; signs of `open_to_the_end` keep
    theirs.

    Likelihoods are scaled to a largest value of 1 so that many small ones cannot underflow a block. A sign without
    information is dropped; a shared sign that is surely off, or surely below its top level, multiplies each parent's
    weight by 1 - p.
    """
    nodes, evidence = canonical(network), network.evidence
    weight: dict[str, Likelihood] = {}
    likelihood: dict[str, Likelihood] = {}
    log_constant = 0.0
    for name in sorted(evidence):
        seen = evidence[name]
        if name not in nodes:
            raise InferenceError(
                f"There is evidence on {name}, which is no node.", "Add the node or drop the evidence."
            )
        top = max(seen.by_level)
        if len(seen.by_level) != 1 + nodes[name].top:
            raise InferenceError(
                f"Evidence on {name} is for {len(seen.by_level)} levels, it has {1 + nodes[name].top}.",
                "Give one likelihood a level, level 0 included.",
            )
        if not (min(seen.by_level) >= 0.0 and 0.0 < top < math.inf):
            raise InferenceError(f"Evidence on {name} is {seen.by_level}.", "Expected numbers >= 0, not all of them 0.")
        log_constant += math.log(top)
        scaled = Likelihood.of([number / top for number in seen.by_level])
        if nodes[name].kind is not NodeKind.SIGN:
            weight[name] = scaled
        elif len(set(scaled.by_level)) > 1:
            likelihood[name] = scaled
    for name in [name for name in likelihood if name not in open_to_the_end]:
        said = said_by(nodes[name], likelihood.pop(name))
        log_constant += said.log_factor
        for parent, factor in said.on_factors:
            own = weight.get(parent, Likelihood(1.0, 1.0))
            weight[parent] = Likelihood(own.off, own.on * factor)
        nodes[name] = said.node
        if said.left is not None:
            likelihood[name] = said.left
    return Absorbed(nodes, weight, likelihood, log_constant)


@dataclass(frozen=True, slots=True)
class Said:
    """What the evidence on a sign says: a factor (its natural logarithm), one on the weight of each parent that is on,
    and what is `left` to be summed of `node`; None where nothing is."""

    node: Node
    left: Likelihood | None
    log_factor: float = 0.0
    on_factors: tuple[tuple[str, float], ...] = ()


def said_by(node: Node, seen: Likelihood) -> Said:
    """What the evidence on a sign says of each parent by itself taken apart from the rest; at least two of the
    likelihoods must differ.

    Raises InferenceError when the evidence is impossible.
    """
    node, seen = merged(node, seen)
    chance = largest_chance(node, seen)
    if chance == 0.0:
        how = "absent though it is always on" if seen.is_absence else "present though nothing can turn it on"
        raise InferenceError(f"The evidence is impossible: {node.id} is {how}.", "Give it a leak, or correct the sign.")
    if node.place is not None:
        return Said(node, seen)
    if not node.links:
        return Said(node, None, math.log(chance))
    if seen.by_level[-1] > 0.0:
        return Said(node, seen)
    highest, rest = levels_of(node)[-1], without_top(node)
    return Said(
        node if rest is None else in_order(rest),
        None if rest is None else Likelihood.of(seen.by_level[:-1]),
        math.log1p(-highest.leak),
        tuple((parent, 1.0 - p) for parent, p in highest.links),
    )
