"""What would be left of the symptom had some causes been off, everything else as it was.

A counterfactual keeps the noise of the world that was seen (Pearl, Causality, 2009, section 7.1): each leak and link
that acted still acts. In a network of ORs all that can change when causes are taken out is that some of what was on
turns off. So each effect between the causes and the symptom is taken apart: what keeps it on in both worlds, and what
only the causes taken out did. Both are ORs again, so the twin of a network is a network, without subtraction.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace

from .errors import InferenceError, TooManyOpenBits
from .frontier.sweep import Explains, Posterior, solve, symptom_shares
from .network import Likelihood, Network, Node, NodeKind

WORTH_SUMMING = 0.001
"""Probability from which what a cause did through its effects is summed (judgement: the smallest that is listed,
DESIGN.md section 7); below it the cause's own link is all that is told, which is short by less than this."""


@dataclass(frozen=True, slots=True)
class Twin:
    """A network with its symptom taken apart, without evidence on it.

    `kept` is what the symptom shows in the world without the causes, `lost` what it shows because of them. Both are
    mechanisms that drive nothing yet.
    """

    nodes: tuple[Node, ...]
    kept: Node
    lost: Node


def symptom_of(network: Network) -> Node:
    """The symptom; raises InferenceError where there is none, or one that is no plain OR."""
    symptom = next((node for node in network.nodes if node.id == network.symptom), None)
    if symptom is None or symptom.kind is not NodeKind.SIGN or symptom.inhibitors or symptom.higher:
        raise InferenceError(
            f"The symptom is {network.symptom}, expected a sign without inhibitors or levels.",
            "Ask without it, or name one.",
        )
    return symptom


def effects(network: Network) -> Mapping[str, frozenset[str]]:
    """For each cause, the causes and mechanisms through which it reaches the symptom, itself left out; causes without
    any are left out, and without a symptom all are."""
    causes = {node.id for node in network.nodes if node.kind is NodeKind.CAUSE}
    acting = {parent for node in network.nodes if node.id == network.symptom for parent, _ in node.links}
    reached: dict[str, set[str]] = {}
    for node in reversed(network.nodes):
        if node.id in acting:
            below = {node.id, *reached.get(node.id, ())}
            for parent, _ in (*node.links, *node.inhibitors):
                reached.setdefault(parent, set()).update(below)
                acting.add(parent)
    return {name: frozenset(names) for name, names in reached.items() if name in causes}


def twin(network: Network, without: Collection[str]) -> Twin:
    """The world that was seen beside the one without some causes.

    Raises InferenceError for a name that is no cause, without a symptom, and where an inhibitor acts on an effect.
    """
    kinds = {node.id: node.kind for node in network.nodes}
    if wrong := sorted(name for name in without if kinds.get(name) is not NodeKind.CAUSE):
        raise InferenceError(f"{', '.join(wrong)} is no cause here.", "Take causes of this network out.")
    symptom, between = symptom_of(network), effects(network)
    touched = {effect for cause in without for effect in between.get(cause, ())} - set(without)
    # Of each node that may turn off: who stands for it in the world without the causes, and who where it is lost.
    lost = {name: name for name in without} | {name: f"{name} lost" for name in touched}
    nodes: list[Node] = []
    for node in network.nodes:
        if node.id not in touched:
            if node.id != symptom.id:
                nodes.append(node)
            continue
        if node.inhibitors:
            raise InferenceError(
                f"{node.id} has inhibitors, so the world without a cause is not less of it.", "Ask for another cause."
            )
        kept = replace(node, id=f"{node.id} kept", links=_kept(node, without, touched))
        gone = Node(lost[node.id], node.kind, node.place, 0.0, _lost(node, lost), ((kept.id, 1.0),))
        nodes += [kept, gone, replace(node, leak=0.0, links=((kept.id, 1.0), (gone.id, 1.0)))]
    shown = replace(symptom, kind=NodeKind.MECHANISM)
    return Twin(
        tuple(nodes),
        replace(shown, id=f"{symptom.id} kept", links=_kept(symptom, without, touched)),
        replace(shown, id=f"{symptom.id} lost", leak=0.0, links=_lost(symptom, lost)),
    )


def _kept(node: Node, without: Collection[str], touched: Collection[str]) -> tuple[tuple[str, float], ...]:
    return tuple((f"{name} kept" if name in touched else name, p) for name, p in node.links if name not in without)


def _lost(node: Node, lost: Mapping[str, str]) -> tuple[tuple[str, float], ...]:
    return tuple((lost[name], p) for name, p in node.links if name in lost)


def explained(network: Network, posterior: Posterior) -> Explains:
    """How the symptom is explained by each cause, what it did through its effects included where that can be summed.

    Raises InferenceError as `symptom_shares` does.
    """
    own = symptom_shares(network, posterior)
    through: dict[str, float] = {}
    for cause in effects(network):
        if posterior.probability[cause] >= WORTH_SUMMING:
            whole = needed(network, posterior, (cause,))
            if whole is not None and whole > own.by_cause[cause]:
                through[cause] = whole - own.by_cause[cause]
    return replace(own, through=through)


def needed(network: Network, posterior: Posterior, without: Collection[str]) -> float | None:
    """P(the symptom would not have occurred without any of these causes | evidence): one more sum, over the twin. None
    where the twin couples too many places to be summed: it has each effect twice.

    A symptom without evidence counts as one not looked at. Raises InferenceError as `twin` does.
    """
    seen = network.evidence.get(network.symptom or "", Likelihood(1.0, 1.0))
    both = twin(network, without)
    if not both.lost.links or not seen.on:
        return 0.0
    others = {name: likelihood for name, likelihood in network.evidence.items() if name != network.symptom}
    kept = replace(both.kept, kind=NodeKind.SIGN)
    try:
        world = solve(Network((*both.nodes, kept, both.lost), {**others, kept.id: Likelihood(1.0, 0.0)}))
    except TooManyOpenBits:
        return None
    ratio: float = seen.on * 10.0 ** (world.log_evidence - posterior.log_evidence)
    return min(1.0, ratio * world.probability[both.lost.id])
