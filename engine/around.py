"""The exact small network around some causes: for questions that change a piece of evidence, a prior or a grade.

What was seen absent couples nothing (each parent is off by itself), so a network falls into many parts that only the
symptom joins. The parts asked about are kept whole; all others act on them through the symptom alone, and that is one
number, which joins the symptom's leak. Answers for the kept part are those of the whole network, at a cost that grows
with the part.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property

from .counterfactual import WORTH_SUMMING, effects, explained
from .errors import InferenceError
from .frontier.sweep import Explains, Posterior, solve, symptom_shares
from .network import Likelihood, Network, Node, NodeKind

PRESENT, ABSENT = Likelihood(0.0, 1.0), Likelihood(1.0, 0.0)


@dataclass(frozen=True)
class Nearby:
    """The part of a network around some nodes, and what it says before anything is changed.

    `unknown`: P(the symptom needed what is outside, or no catalogued cause); 0 without a symptom.
    """

    network: Network
    unknown: float

    @cached_property
    def posterior(self) -> Posterior:
        return solve(self.network)

    def changed(
        self,
        evidence: Mapping[str, Likelihood | None] | None = None,
        nodes: Iterable[Node] = (),
    ) -> Network:
        """The network with other evidence (None: nobody looked; what is not about its nodes is passed over) and with
        nodes replaced, or added at the end."""
        seen = {**self.network.evidence, **(evidence or {})}
        swapped = {node.id: node for node in nodes}
        kept = tuple(swapped.pop(node.id, node) for node in self.network.nodes)
        nodes = (*kept, *swapped.values())
        told = {node.id: likelihood for node in nodes if (likelihood := seen.get(node.id)) is not None}
        return replace(self.network, nodes=nodes, evidence=told)


class Surroundings:
    """The parts of one solved network.

    `explains`: what its symptom is explained by; None without a symptom.
    """

    def __init__(self, network: Network, explains: Explains | None) -> None:
        self._network = network
        self._order = {node.id: number for number, node in enumerate(network.nodes)}
        self._symptom: Node | None = None
        self._symptom_off = 0.0
        self._explains = explains
        if explains is not None and network.symptom is not None:
            symptom = network.nodes[self._order[network.symptom]]
            if network.evidence.get(symptom.id) == PRESENT and symptom.leak > 0.0:
                odds = explains.unknown * (1.0 - symptom.leak) / symptom.leak
                self._symptom, self._symptom_off = symptom, odds / (1.0 + odds)
        self._part: dict[str, str] = {}
        self._members: dict[str, list[Node]] = defaultdict(list)
        self._absent: dict[str, list[Node]] = defaultdict(list)
        self._divide()
        self._links = {} if self._symptom is None else dict(self._symptom.links)
        self._off_by_part: dict[str, float] = {}
        self._off_by_shape: dict[tuple[object, ...], float] = {}
        self._nearby: dict[frozenset[str], Nearby] = {}

    def near(self, names: Iterable[str]) -> Nearby:
        """The exact network of the parts that hold some causes and mechanisms, with the symptom.

        Raises InferenceError for a name that is no cause or mechanism of the network.
        """
        wanted = frozenset(self._root(name) for name in names)
        if wanted not in self._nearby:
            self._nearby[wanted] = self._folded(wanted, {})
        return self._nearby[wanted]

    def without(self, names: Iterable[str], changes: Mapping[str, Likelihood | None]) -> Network:
        """The exact network of the parts that hold some nodes after a change of evidence anywhere (None: nobody
        looked)."""
        wanted = frozenset(self._root(name) for name in names)
        return self._folded(wanted, changes).changed(changes)

    def _folded(self, wanted: frozenset[str], changes: Mapping[str, Likelihood | None]) -> Nearby:
        """Some parts kept, with the evidence of before; all others summed into the symptom's leak, changes included."""
        nodes, evidence = self._kept(wanted)
        if self._symptom is None:
            return Nearby(Network(tuple(nodes), evidence), 0.0)
        off = self._symptom_off
        for part in sorted(wanted):
            off /= self._off(part)
        for part in sorted(self._touched(changes) - wanted):
            off *= self._off(part, changes) / self._off(part)
        leak = 1.0 - min(off, 1.0)
        links = tuple((p, link) for p, link in self._symptom.links if self._root(p) in wanted)
        nodes.append(replace(self._symptom, place=None, leak=leak, links=links))
        evidence[self._symptom.id] = PRESENT
        unknown = leak / (1.0 - leak) * self._symptom_off / (1.0 - self._symptom_off)
        return Nearby(Network(tuple(nodes), evidence, self._symptom.id), unknown)

    def _touched(self, changes: Iterable[str]) -> set[str]:
        """The parts that some evidence bears on."""
        nodes = (name for change in changes for name in (change, *self.parents(change)))
        return {self._part[name] for name in nodes if name in self._part}

    def parents(self, sign: str) -> tuple[str, ...]:
        """Causes and mechanisms that a sign of the network bears on."""
        node = self._network.nodes[self._order[sign]] if sign in self._order else None
        return () if node is None else tuple(name for name, _ in (*node.links, *node.inhibitors))

    def explained(self, nearby: Nearby, changed: Network, with_effects: bool = False) -> tuple[Posterior, Explains]:
        """What a changed part says, and how the symptom is then explained by every cause of the whole network: outside
        the part all keep their proportions. Only `with_effects` sums what causes did through their effects."""
        posterior = solve(changed, nearby.posterior)
        if self._symptom is None or self._explains is None:
            return posterior, Explains({}, 0.0)
        within = explained(changed, posterior) if with_effects else symptom_shares(changed, posterior)
        outside = within.unknown / nearby.unknown
        by_cause = {name: value * outside for name, value in self._explains.by_cause.items()}
        through = {
            name: value * outside for name, value in self._explains.through.items() if name not in within.by_cause
        }
        return posterior, Explains(
            {**by_cause, **within.by_cause}, self._explains.unknown * outside, {**through, **within.through}
        )

    def _divide(self) -> None:
        """Union of every node with its parents, and of the parents of what does not fall apart by itself."""
        parent = {node.id: node.id for node in self._network.nodes}

        def root(name: str) -> str:
            while parent[name] != name:
                parent[name] = parent[parent[name]]
                name = parent[name]
            return name

        joined: list[Node] = []
        for node in self._network.nodes:
            seen = self._network.evidence.get(node.id)
            is_sign = node.kind is NodeKind.SIGN
            if self._symptom is not None and node.id == self._symptom.id:
                continue
            if is_sign and (seen is None or len(set(seen.by_level)) == 1):
                continue
            if is_sign and seen is not None and seen.is_absence and not node.inhibitors:
                for name, _ in node.links:
                    self._absent[name].append(node)
                continue
            joined.append(node)
            for name, _ in (*node.links, *node.inhibitors):
                parent[root(name)] = root(node.id)
        for node in joined:
            self._part[node.id] = root(node.id)
            self._members[root(node.id)].append(node)

    def _root(self, name: str) -> str:
        if name not in self._part:
            raise InferenceError(f"{name} is no cause or mechanism here.", "Name hidden nodes only.")
        return self._part[name]

    def _kept(self, parts: Iterable[str]) -> tuple[list[Node], dict[str, Likelihood]]:
        """Nodes of some parts, parents first, with their evidence: of an absent sign what bears on these parts."""
        members = {node.id: node for part in parts for node in self._members[part]}
        absent = {sign.id: sign for name in members for sign in self._absent.get(name, ())}
        signs = [
            replace(sign, leak=0.0, links=tuple(link for link in sign.links if link[0] in members), higher=())
            for sign in absent.values()
        ]
        nodes = sorted([*members.values(), *signs], key=lambda node: self._order[node.id])
        evidence = {name: self._network.evidence[name] for name in members if name in self._network.evidence}
        return nodes, {**evidence, **dict.fromkeys(sorted(absent), ABSENT)}

    def _off(self, part: str, changes: Mapping[str, Likelihood | None] | None = None) -> float:
        """P(nothing of a part turns the symptom on | what was seen there)."""
        if not changes and part in self._off_by_part:
            return self._off_by_part[part]
        assert self._symptom is not None
        links = tuple((node.id, self._links[node.id]) for node in self._members[part] if node.id in self._links)
        off = 1.0
        if links:
            nodes, evidence = self._kept((part,))
            before = Nearby(Network(tuple(nodes), evidence), 0.0).changed(changes)
            silent = replace(self._symptom, place=None, leak=0.0, links=links)
            # Thousands of places are alike, and so is what they do to the symptom.
            shape = _shape((*before.nodes, silent), before.evidence)
            if shape not in self._off_by_shape:
                seen = {**before.evidence, silent.id: ABSENT}
                after = solve(Network((*before.nodes, silent), seen))
                self._off_by_shape[shape] = 10.0 ** (after.log_evidence - solve(before).log_evidence)
            off = self._off_by_shape[shape]
        if not changes:
            self._off_by_part[part] = off
        return off


def explained_around(network: Network, posterior: Posterior) -> Explains:
    """How the symptom of a whole network is explained, what causes did through their effects included: that by small
    sums around the causes that are present."""
    own = symptom_shares(network, posterior)
    acting = [cause for cause in effects(network) if posterior.probability[cause] >= WORTH_SUMMING]
    if not acting:
        return own
    nearby = Surroundings(network, own).near(acting)
    if nearby.network.symptom is None:
        return explained(network, posterior)
    return replace(own, through=explained(nearby.network, nearby.posterior).through)


def _shape(nodes: Iterable[Node], evidence: Mapping[str, Likelihood]) -> tuple[object, ...]:
    """A small network without its names."""
    index: dict[str, int] = {}
    places: dict[str | None, int] = {}
    shape = []
    for node in nodes:
        index[node.id] = len(index)
        levels = tuple((level.leak, tuple((index[parent], p) for parent, p in level.links)) for level in node.higher)
        shape.append(
            (
                node.kind,
                None if node.place is None else places.setdefault(node.place, len(places)),
                node.leak,
                tuple((index[parent], p) for parent, p in node.links),
                tuple((index[parent], k) for parent, k in node.inhibitors),
                levels,
                evidence.get(node.id),
            )
        )
    return tuple(shape)
