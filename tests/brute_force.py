"""Oracles for the solver, by enumeration of every joint state, and the small random networks they are asked about."""

from __future__ import annotations

import itertools
import random
from collections.abc import Iterator, Sequence
from dataclasses import replace

from causeline.engine.network import Level, Likelihood, Network, Node, NodeKind

PRESENT, ABSENT, UNKNOWN = Likelihood(0.0, 1.0), Likelihood(1.0, 0.0), Likelihood(1.0, 1.0)


def chances(node: Node, on: dict[str, bool]) -> tuple[float, ...]:
    """P(level) from level 0 (off) on. Of a node that is on or off without subtraction from 1, so that tiny priors keep
    their digits; of a sign with levels as differences of P(at most at a level)."""
    at_least, miss = [node.leak], 1.0 - node.leak
    for parent, p in node.links:
        if on[parent]:
            at_least, miss = [at_least[0] + miss * p], miss * (1.0 - p)
    if node.higher:
        at_least = []
        for level in (Level(node.leak, node.links), *node.higher):
            at_most = 1.0 - level.leak
            for parent, p in level.links:
                at_most *= 1.0 - p if on[parent] else 1.0
            at_least.append(1.0 - at_most)
    levels = [p - above for p, above in zip(at_least, [*at_least[1:], 0.0], strict=True)]
    for parent, k in node.inhibitors:
        if on[parent]:
            miss, levels = miss + sum(levels) * k, [p * (1.0 - k) for p in levels]
    return (miss, *levels)


def weighted_states(network: Network) -> Iterator[tuple[dict[str, bool], float]]:
    """Every state of the hidden nodes with its weight; signs are summed, since nothing depends on them."""
    hidden = [node for node in network.nodes if node.kind is not NodeKind.SIGN]
    signs = [node for node in network.nodes if node.kind is NodeKind.SIGN and node.id in network.evidence]
    for values in itertools.product((False, True), repeat=len(hidden)):
        on = dict(zip((node.id for node in hidden), values, strict=True))
        weight = 1.0
        for node in hidden:
            seen = network.evidence.get(node.id, UNKNOWN)
            weight *= chances(node, on)[on[node.id]] * seen.by_level[on[node.id]]
        for node in signs:
            seen = network.evidence[node.id].by_level
            weight *= sum(p * likelihood for p, likelihood in zip(chances(node, on), seen, strict=True))
        if weight > 0.0:
            yield on, weight


def evidence_and_marginals(network: Network) -> tuple[float, dict[str, float]]:
    """P(evidence) and P(on | evidence) of each hidden node; (0, {}) for impossible evidence."""
    total, present = 0.0, {node.id: 0.0 for node in network.nodes if node.kind is not NodeKind.SIGN}
    for on, weight in weighted_states(network):
        total += weight
        for name, is_on in on.items():
            present[name] += weight * is_on
    return total, {name: part / total for name, part in present.items()} if total else {}


def any_on(network: Network, members: Sequence[str]) -> float:
    states = list(weighted_states(network))
    return sum(weight for on, weight in states if any(on[name] for name in members)) / sum(w for _, w in states)


def needed_for_symptom(network: Network, source: str | None) -> float:
    """P(the symptom is on, and would be off had this cause's own link (None: the leak) not acted | evidence), by
    enumeration of the switches behind the symptom: one for the leak, one for each link."""
    symptom = next(node for node in network.nodes if node.id == network.symptom)
    seen = network.evidence.get(symptom.id, UNKNOWN)
    others = replace(network, evidence={name: e for name, e in network.evidence.items() if name != symptom.id})
    needed = total = 0.0
    for on, weight in weighted_states(others):
        switches = [(None, symptom.leak), *((parent, p) for parent, p in symptom.links if on[parent])]
        for thrown in itertools.product((False, True), repeat=len(switches)):
            part = weight
            for (_, p), is_thrown in zip(switches, thrown, strict=True):
                part *= p if is_thrown else 1.0 - p
            acting = [name for (name, _), is_thrown in zip(switches, thrown, strict=True) if is_thrown]
            part *= seen.on if acting else seen.off
            total += part
            needed += part if acting == [source] else 0.0
    return needed / total


def random_network(seed: int, *, places: int = 3, hidden_limit: int = 11) -> Network:
    """A small network with all that couples places: triggers, pressure between mechanisms, inhibitors (their own
    place's or another's), shared signs, signs with levels, soft, hard and no evidence; in four of ten the priors are
    tiny."""
    dice = random.Random(seed)
    tiny = dice.random() < 0.4
    nodes: list[Node] = []
    evidence: dict[str, Likelihood] = {}
    causes: list[str] = []
    mechanisms: list[str] = []

    def some(names: Sequence[str], most: int, low: float, high: float) -> tuple[tuple[str, float], ...]:
        count = dice.randint(0, min(most, len(names)))
        return tuple((name, dice.uniform(low, high)) for name in dice.sample(list(names), count))

    def higher(node: Node) -> Node:
        """The sign, every other time with levels above its first: rarer, as likely, or out of reach for a parent."""
        levels: list[Level] = []
        below = Level(node.leak, node.links)
        for _ in range(dice.choice([0, 0, 0, 1, 2, 3])):
            shrunk = [(parent, p * dice.choice([0.0, 1.0, dice.random(), dice.random()])) for parent, p in below.links]
            below = Level(below.leak * dice.choice([0.0, 1.0, dice.random()]), tuple(shrunk))
            levels.append(below)
        return replace(node, higher=tuple(levels))

    def read(levels: int) -> Likelihood:
        """What was seen: one level, a range of them, at least or at most one, anything soft, or nothing."""
        draw, most = dice.random(), dice.randrange(levels)
        least = dice.randint(0, most)
        miss = 0.0 if draw < 0.5 else dice.uniform(0.05, 1)
        if draw < 0.65:
            return Likelihood.of([float(k == most) if k <= most else miss for k in range(levels)])
        if draw < 0.8:
            return Likelihood.of([float(least <= k <= most) for k in range(levels)])
        return Likelihood.of([dice.uniform(0.05, 1) if draw < 0.95 else 1.0 for _ in range(levels)])

    for place in [f"p{number}" for number in range(places)]:
        here: list[str] = []
        for number in range(dice.choice([1, 1, 2])):
            prior = 10 ** dice.uniform(-9, -4) if tiny else dice.uniform(0.02, 0.5)
            triggers = some(here, 1, 0.1, 0.9) + (some(causes, 2, 0.1, 0.9) if dice.random() < 0.5 else ())
            nodes.append(Node(f"c{number}@{place}", NodeKind.CAUSE, place, prior, triggers))
            here.append(nodes[-1].id)
        for number in range(dice.choice([1, 1, 2])):
            driven = tuple((cause, dice.uniform(0.3, 0.97)) for cause in here) + some(mechanisms, 3, 0.3, 0.9)
            home = place if dice.random() < 0.9 else None
            if sum(node.kind is not NodeKind.SIGN for node in nodes) < hidden_limit:
                nodes.append(Node(f"m{number}@{place}", NodeKind.MECHANISM, home, dice.choice([1e-4, 0.05]), driven))
                mechanisms.append(nodes[-1].id)
        inhibitors = some(here + causes[:1], 2, 0.3, 0.99) if dice.random() < 0.6 else ()
        watched = some(mechanisms, 2, 0.3, 0.97) + some(here, 2, 0.2, 0.9)
        nodes.append(higher(Node(f"l@{place}", NodeKind.SIGN, place, dice.choice([0.02, 0.2]), watched, inhibitors)))
        causes += here
    for number in range(dice.choice([1, 2, 3])):
        links = some(causes + mechanisms, 6, 0.2, 0.97)
        sign = Node(f"s{number}", NodeKind.SIGN, None, dice.choice([0.0, 0.01, 0.2]), links)
        nodes.append(sign if number == 0 else higher(sign))  # s0 is the symptom, on or off
    for node in nodes:
        draw = dice.random()
        soft = Likelihood(dice.uniform(0.05, 1), dice.uniform(0.05, 1))
        if node.kind is NodeKind.SIGN:
            choice = ABSENT if draw < 0.25 else PRESENT if draw < 0.55 else soft if draw < 0.85 else UNKNOWN
            if draw < 0.95:
                evidence[node.id] = choice if node.top == 1 else read(1 + node.top)
        elif draw < 0.1:
            evidence[node.id] = ABSENT if draw < 0.05 else soft
    return Network(tuple(nodes), evidence, symptom="s0")


def shuffled(network: Network, seed: int) -> Network:
    """The same network with its nodes in another order, parents still first."""
    dice = random.Random(seed)
    left, placed, order = list(network.nodes), set[str](), list[Node]()
    while left:
        ready = [n for n in left if all(parent in placed for parent, _ in (*n.links, *n.inhibitors))]
        node = dice.choice(ready)
        left.remove(node)
        placed.add(node.id)
        order.append(node)
    items = list(network.evidence.items())
    dice.shuffle(items)
    return replace(network, nodes=tuple(order), evidence=dict(items))


def needed_causes(network: Network, without: Sequence[str]) -> float:
    """P(the symptom is on, and off in the world without these causes | evidence)."""
    return sum(weight for (real, other), weight in symptom_in_both_worlds(network, without).items() if real > other)


def left_of_symptom(network: Network, without: Sequence[str]) -> float:
    """P(the symptom is on in the world without these causes | evidence)."""
    return sum(weight for (_, other), weight in symptom_in_both_worlds(network, without).items() if other)


def symptom_in_both_worlds(network: Network, without: Sequence[str]) -> dict[tuple[bool, bool], float]:
    """P(the symptom in the world that was seen and in the one without these causes | evidence), by enumeration of a
    twin network: both worlds share the switch of each leak and link."""
    symptom = next(node for node in network.nodes if node.id == network.symptom)
    worlds: dict[tuple[frozenset[str], frozenset[str]], float] = {(frozenset(), frozenset()): 1.0}
    hidden = [node for node in network.nodes if node.kind is not NodeKind.SIGN]
    for node in (*hidden, symptom):
        following: dict[tuple[frozenset[str], frozenset[str]], float] = {}
        for (real, other), weight in worlds.items():
            near = [link for link in node.links if link[0] in real | other]
            for thrown in itertools.product((False, True), repeat=1 + len(near)):
                part = weight * (node.leak if thrown[0] else 1.0 - node.leak)
                for (_, p), is_thrown in zip(near, thrown[1:], strict=True):
                    part *= p if is_thrown else 1.0 - p
                acting = [parent for (parent, _), is_thrown in zip(near, thrown[1:], strict=True) if is_thrown]
                is_on = thrown[0] or any(parent in real for parent in acting)
                stays = node.id not in without and (thrown[0] or any(parent in other for parent in acting))
                key = (real | {node.id} if is_on else real, other | {node.id} if stays else other)
                following[key] = following.get(key, 0.0) + part
        worlds = {key: weight for key, weight in following.items() if weight > 0.0}
    found: dict[tuple[bool, bool], float] = {}
    for (real, other), weight in worlds.items():
        on = {node.id: node.id in real for node in hidden}
        for node in hidden:
            weight *= network.evidence.get(node.id, UNKNOWN).by_level[on[node.id]]
        for node in network.nodes:
            if node.kind is NodeKind.SIGN and node is not symptom and node.id in network.evidence:
                seen = network.evidence[node.id].by_level
                weight *= sum(p * likelihood for p, likelihood in zip(chances(node, on), seen, strict=True))
        weight *= network.evidence.get(symptom.id, UNKNOWN).by_level[symptom.id in real]
        states = (symptom.id in real, symptom.id in other)
        found[states] = found.get(states, 0.0) + weight
    return {states: weight / sum(found.values()) for states, weight in found.items()}
