"""Hypotheses and findings -> the network: causes at places, the mechanisms they drive, and the signs that were read.

Only what was read becomes a sign node: unknown never instantiates one. A grade is P(sign on | this cause alone), leak
included; what the mechanisms already induce is taken off, and only the excess becomes a direct link (DESIGN.md section
5).
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import Enum

from .findings import Findings, SignFinding
from .hypotheses import Hypothesis, all_hypotheses
from .levels import seen_probability
from .network import Level, Likelihood, Network, Node, NodeKind
from .observed import Observed
from .one_cause import ByLevel, Chain, MechanismNode, SignReach, ancestors, direct_link, own_leak
from .places import Places
from .rules import KnowledgeBase, Mechanism, Relation, SignLink
from .scope import Scope, ScopeKind
from .timed_places import TimedPlaces

LEAK_SECONDS = 1800.0
"""The window that P(symptom without any catalogued cause) and the leaks of mechanisms hold for (causal.md 2.1): they
grow with the window, like the hazards they compete with."""


class Coupling(Enum):
    """Which links between places the network has: ALL; TRIGGERS: causes still trigger causes, but pausing does not
    spread upstream, so that each place explains its own; NONE of them."""

    ALL = "all"
    TRIGGERS = "triggers"
    NONE = "none"


@dataclass(slots=True)
class Compiled:
    """The network with what is needed to read its answers: hypotheses by node id, and each one's relevant findings.

    `own_ratios`: for a hypothesis, the likelihood ratios of sign nodes that count against it alone; their product is
    its evidence.
    """

    network: Network
    hypotheses: dict[str, Hypothesis]
    chains: dict[str, Chain]
    findings: Findings
    symptom: str | None
    triggers: dict[str, tuple[str, ...]] = field(default_factory=dict)
    own_ratios: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    answers: dict[tuple[object, ...], tuple[tuple[float, float], ...]] = field(default_factory=dict)

    def finding(self, reach: SignReach) -> SignFinding:
        """The finding of a sign that a hypothesis reaches; only read signs are reached."""
        found = self.findings.get(reach.sign, reach.scope)
        assert found is not None
        return found


def mechanism_id(mechanism: Mechanism, scope: Scope) -> str:
    return f"{mechanism.id}@{scope}"


class Compiler:
    """Builds the network of one fabric around one onset.

    Used through `compile_network`.
    """

    def __init__(
        self, knowledge: KnowledgeBase, observed: Observed, places: Places, findings: Findings, coupling: Coupling
    ) -> None:
        self._coupling = coupling
        self._knowledge = knowledge
        self._observed = observed
        self._places = places
        self._findings = findings
        self._mechanisms: dict[str, tuple[Mechanism, Scope]] = {}
        self._mechanism_links: dict[str, dict[str, float]] = defaultdict(dict)
        self._sign_links: dict[str, dict[str, ByLevel]] = defaultdict(dict)
        self._sign_leaks: dict[str, ByLevel] = {}
        self._sign_found: dict[str, SignFinding] = {}
        self._inhibitors: dict[str, dict[str, float]] = defaultdict(dict)
        self._own_ratios: dict[str, dict[str, float]] = defaultdict(dict)
        self._cache: dict[tuple[object, ...], ByLevel] = {}

    def _in_window(self, leak: float) -> float:
        split = self._observed.split
        return -math.expm1((split.end - split.start) / LEAK_SECONDS * math.log1p(-leak))

    def chain(self, hypothesis: Hypothesis) -> Chain:
        """Mechanisms and read signs that a hypothesis reaches, apart from pausing that spreads upstream (that is other
        places' chain)."""
        found: dict[str, tuple[Mechanism, Scope]] = {}
        cause_links: dict[str, float] = {}
        parents: dict[str, dict[str, float]] = defaultdict(dict)
        queue: list[str] = []

        def visit(name: str, scope: Scope) -> str:
            mechanism = self._knowledge.mechanisms[name]
            node = mechanism_id(mechanism, scope)
            if node not in found:
                found[node] = (mechanism, scope)
                queue.append(node)
            return node

        for name, drive in sorted(hypothesis.cause.drives.items()):
            for scope in self._places.related(hypothesis.scope, drive.at):
                cause_links[visit(name, scope)] = drive.p
        while queue:
            node = queue.pop(0)
            mechanism, scope = found[node]
            for name, drive in sorted(mechanism.drives.items()):
                if drive.at is not Relation.PAUSED_UPSTREAM:
                    for target in self._places.related(scope, drive.at):
                        parents[visit(name, target)][node] = drive.p
        ordered = {node: found[node] for node in _topological(list(found), parents)}
        nodes = tuple(
            MechanismNode(node, mechanism.leak.p, cause_links.get(node, 0.0), tuple(sorted(parents[node].items())))
            for node, (mechanism, _) in ordered.items()
        )
        return Chain(nodes, tuple(self._reaches(hypothesis, ordered)))

    def _reaches(
        self, hypothesis: Hypothesis, mechanisms: Mapping[str, tuple[Mechanism, Scope]]
    ) -> Iterable[SignReach]:
        through: dict[tuple[str, Scope], dict[str, ByLevel]] = defaultdict(dict)
        for node, (mechanism, scope) in mechanisms.items():
            for sign, link in sorted(mechanism.signs.items()):
                for target in self._places.related(scope, link.at):
                    through[(sign, target)][node] = link.by_level
        cells: dict[tuple[str, Scope], SignLink] = {}
        for sign, cell in sorted(hypothesis.cause.signs.items()):
            for target in self._places.related(hypothesis.scope, cell.at):
                cells[(sign, target)] = cell
        for sign, target in sorted({*through, *cells}):
            if self._findings.get(sign, target) is not None and self._knowledge.signs[sign].scope is target.kind:
                leak = self._knowledge.signs[sign].leak.by_level
                yield SignReach(
                    f"{sign}@{target}",
                    sign,
                    target,
                    leak,
                    tuple(sorted(through[(sign, target)].items())),
                    cells.get((sign, target)),
                )

    def build(self) -> Compiled:
        """The whole network, nodes in topological order."""
        hypotheses = {
            hypothesis.id: hypothesis
            for hypothesis in all_hypotheses(self._knowledge, self._observed, self._places, self._findings)
        }
        chains = {node: self.chain(hypothesis) for node, hypothesis in hypotheses.items()}
        for node, hypothesis in hypotheses.items():
            self._add_links(node, hypothesis, chains[node])
        self._spread_upstream()
        symptom = self._add_symptom(hypotheses)
        triggers = self._triggers(hypotheses)
        return Compiled(
            self._network(hypotheses, triggers, symptom),
            hypotheses,
            chains,
            self._findings,
            symptom,
            {node: tuple(sorted(parents)) for node, parents in triggers.items()},
            self._own_ratios,
        )

    def _add_links(self, node: str, hypothesis: Hypothesis, chain: Chain) -> None:
        for mechanism in chain.mechanisms:
            name, _, scope = mechanism.id.partition("@")
            self._mechanisms[mechanism.id] = (self._knowledge.mechanisms[name], Scope.parse(scope))
            if mechanism.cause_link:
                self._mechanism_links[mechanism.id][node] = mechanism.cause_link
            self._mechanism_links[mechanism.id].update(mechanism.parents)
        for reach in chain.signs:
            finding = self._findings.get(reach.sign, reach.scope)
            assert finding is not None
            self._sign_found[reach.id] = finding
            relevant = ancestors(reach, chain)
            index = {mechanism.id: n for n, mechanism in enumerate(relevant)}
            leak_key = (
                reach.sign,
                tuple((index[m], link) for m, link in reach.through),
                tuple((m.leak, tuple((index[p], link) for p, link in m.parents)) for m in relevant),
            )
            key = (hypothesis.cause.id, reach.cell is None, tuple(m.cause_link for m in relevant), *leak_key)
            if leak_key not in self._cache:
                self._cache[leak_key] = own_leak(reach, relevant)
            own = self._cache[leak_key]
            self._sign_leaks[reach.id] = tuple(map(min, self._sign_leaks.get(reach.id, own), own))
            self._sign_links[reach.id].update(reach.through)
            if key not in self._cache:
                self._cache[key] = direct_link(reach, relevant)
            if any(direct := self._cache[key]):
                self._sign_links[reach.id][node] = direct
            if reach.cell is not None and reach.cell.effect != "raises":
                self._lower(node, hypothesis, reach, finding)

    def _lower(self, node: str, hypothesis: Hypothesis, reach: SignReach, finding: SignFinding) -> None:
        """A cell below the leak.

        A local sign that the cause physically prevents gets an inhibitor; otherwise it counts against this hypothesis
        alone.
        """
        assert reach.cell is not None
        p, leak = reach.cell.by_level, reach.leak
        is_local = self._places.block(reach.scope) == self._places.block(hypothesis.scope)
        if reach.cell.effect == "suppresses" and is_local and leak[0] > 0:
            self._inhibitors[reach.id][node] = 1 - p[0] / leak[0]
            return
        seen = finding.likelihood(len(leak))
        if seen is not None and (innocent := seen_probability(seen, leak)) > 0:
            self._own_ratios[node][reach.id] = seen_probability(seen, p) / innocent

    def _spread_upstream(self) -> None:
        """Links from a mechanism to its like upstream, pauser to paused, along observed pause edges only.

        Mechanisms that no hypothesis reaches there are made on the way. Edges inside a cycle are left out: it is one
        place of its own.
        """
        if self._coupling is not Coupling.ALL:
            return
        in_cycle = {queue: n for n, cycle in enumerate(self._observed.pause_graph.knots) for queue in cycle}
        waiting = sorted(self._mechanisms)
        while waiting:
            node = waiting.pop(0)
            mechanism, scope = self._mechanisms[node]
            for name, drive in sorted(mechanism.drives.items()):
                if drive.at is not Relation.PAUSED_UPSTREAM or not self._places.can_hold(scope):
                    continue
                for target in self._places.related(scope, drive.at):
                    if scope in in_cycle and in_cycle[scope] == in_cycle.get(target):
                        continue
                    child, made = self._reach_mechanism(self._knowledge.mechanisms[name], target)
                    self._mechanism_links[child][node] = drive.p
                    waiting.extend(made)

    def _reach_mechanism(self, mechanism: Mechanism, scope: Scope) -> tuple[str, list[str]]:
        """The node of a mechanism at a place, made with its signs and what it drives there if need be; and the nodes
        that were made."""
        node = mechanism_id(mechanism, scope)
        if node in self._mechanisms:
            return node, []
        self._mechanisms[node] = (mechanism, scope)
        made = [node]
        for name, drive in sorted(mechanism.drives.items()):
            if drive.at is not Relation.PAUSED_UPSTREAM:
                for target in self._places.related(scope, drive.at):
                    child, below = self._reach_mechanism(self._knowledge.mechanisms[name], target)
                    self._mechanism_links[child][node] = drive.p
                    made.extend(below)
        for sign, link in sorted(mechanism.signs.items()):
            for target in self._places.related(scope, link.at):
                finding = self._findings.get(sign, target)
                if finding is not None and self._knowledge.signs[sign].scope is target.kind:
                    reach = f"{sign}@{target}"
                    self._sign_found[reach] = finding
                    self._sign_links[reach][node] = link.by_level
                    self._sign_leaks.setdefault(reach, self._knowledge.signs[sign].leak.by_level)
        return node, made

    def _add_symptom(self, hypotheses: Mapping[str, Hypothesis]) -> str | None:
        if self._observed.job is None or self._observed.split.onset is None:
            return None
        leak = self._observed.unexplained
        symptom = f"symptom@{Scope.of(ScopeKind.JOB, self._observed.job)}"
        self._sign_leaks[symptom] = (self._in_window(leak),)
        timed = TimedPlaces(self._observed, self._places)
        for node, hypothesis in hypotheses.items():
            if hypothesis.touches_job:
                self._sign_links[symptom][node] = (timed.symptom_link(hypothesis.cause, hypothesis.scope),)
        return symptom

    def _triggers(self, hypotheses: Mapping[str, Hypothesis]) -> dict[str, dict[str, float]]:
        """Trigger links: effect -> {trigger: p}."""
        found: dict[str, dict[str, float]] = defaultdict(dict)
        if self._coupling is Coupling.NONE:
            return found
        for node, hypothesis in hypotheses.items():
            for effect, drive in sorted(hypothesis.cause.triggers.items()):
                for target in self._places.related(hypothesis.scope, drive.at):
                    child = f"{effect}@{target}"
                    if child in hypotheses:
                        found[child][node] = drive.p
        return found

    def _network(
        self, hypotheses: Mapping[str, Hypothesis], triggers: Mapping[str, Mapping[str, float]], symptom: str | None
    ) -> Network:
        nodes = [
            Node(
                node,
                NodeKind.CAUSE,
                self._places.block(h.scope),
                h.prior,
                tuple(sorted(triggers.get(node, {}).items())),
            )
            for node, h in hypotheses.items()
        ]
        places = {node: self._places.block(h.scope) for node, h in hypotheses.items()}
        for node, (mechanism, scope) in self._mechanisms.items():
            places[node] = self._places.block(scope)
            nodes.append(
                Node(
                    node,
                    NodeKind.MECHANISM,
                    places[node],
                    self._in_window(mechanism.leak.p),
                    tuple(sorted(self._mechanism_links[node].items())),
                )
            )
        evidence = {
            node: Likelihood(1.0, math.prod(ratios.values())) for node, ratios in sorted(self._own_ratios.items())
        }
        for node, leak in self._sign_leaks.items():
            links = sorted(self._sign_links[node].items())
            blocks = {places[parent] for parent, _ in links} | {places[parent] for parent in self._inhibitors[node]}
            if not blocks:
                continue
            place = blocks.pop() if len(blocks) == 1 else None
            first, *higher = (
                Level(at_least, tuple((parent, by_level[level]) for parent, by_level in links))
                for level, at_least in enumerate(leak)
            )
            inhibitors = tuple(sorted(self._inhibitors[node].items()))
            nodes.append(Node(node, NodeKind.SIGN, place, first.leak, first.links, inhibitors, tuple(higher)))
            likelihood = Likelihood(0.0, 1.0) if node == symptom else self._sign_found[node].likelihood(len(leak))
            if likelihood is not None:
                evidence[node] = likelihood
        return Network(_sorted_topologically(nodes), evidence, symptom)


def compile_network(
    knowledge: KnowledgeBase, observed: Observed, places: Places, findings: Findings, coupling: Coupling = Coupling.ALL
) -> Compiled:
    """The network of all hypotheses and all findings that bear on them.

    `coupling` tells which links between places it has.
    """
    return Compiler(knowledge, observed, places, findings, coupling).build()


def _topological(nodes: list[str], parents: Mapping[str, Mapping[str, float]]) -> list[str]:
    """Mechanisms with parents first; order of discovery otherwise."""
    placed: set[str] = set()
    left, ordered = list(nodes), []
    while left:
        ready = [node for node in left if all(parent in placed for parent in parents.get(node, {}))]
        assert ready, f"mechanisms drive each other in a circle: {left}"
        ordered.extend(ready)
        placed.update(ready)
        left = [node for node in left if node not in placed]
    return ordered


def _sorted_topologically(nodes: list[Node]) -> tuple[Node, ...]:
    """Parents first, ids in sorted order otherwise: the same network whatever order facts came in."""
    import networkx as nx

    by_id = {node.id: node for node in nodes}
    graph: nx.DiGraph[str] = nx.DiGraph()
    graph.add_nodes_from(by_id)
    for node in nodes:
        graph.add_edges_from((parent, node.id) for parent, _ in (*node.links, *node.inhibitors))
    return tuple(by_id[node] for node in nx.lexicographical_topological_sort(graph))
