"""The explanation network in the result, so that a saved investigation answers further questions; and back again."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterator, Mapping

import numpy as np

from .around import Surroundings
from .compile import Compiled
from .errors import InferenceError
from .explanation import ELSEWHERE, Explanation, Residual, explanation
from .network import Level, Likelihood, Network, Node, NodeKind
from .result_network import ExplanationNetwork, NetworkLevel, NetworkNode, NetworkRatio, NetworkResidual
from .verdicts import Judgement

MOST_CAUSES = 6
"""Leading hypotheses whose network is kept (judgement: those that a report shows as cards)."""


def shown_network(compiled: Compiled, judgement: Judgement, surroundings: Surroundings) -> ExplanationNetwork | None:
    """The network around the leading hypotheses, as many as fit; None where there is no hypothesis, or the first does
    not fit."""
    keep = [verdict.id for verdict in judgement.listed[:MOST_CAUSES]]
    if not keep:
        return None
    try:
        shown = explanation(surroundings.near(keep).network, keep)
    except InferenceError:
        return None
    originals = {node.id: node for node in compiled.network.nodes}
    here = {node.id for node in shown.network.nodes}
    # What bears on these is all here, or acts on them through what was folded: they may be read otherwise.
    whole = {
        name
        for name in here & originals.keys()
        if {parent for parent, _ in (*originals[name].links, *originals[name].inhibitors)} <= here
    }
    driven = {
        node.id for node in shown.network.nodes if any(parent == f"{ELSEWHERE}:{node.id}" for parent, _ in node.links)
    }
    ratios = tuple(_ratios(compiled, here))
    bears_on = defaultdict(set)
    for cause, by_sign in compiled.own_ratios.items():
        for sign in by_sign:
            bears_on[sign].add(cause)
    signs = {node.id for node in shown.network.nodes if node.kind is NodeKind.SIGN}
    changeable = [
        sign
        for sign in sorted({*signs, *(ratio.sign for ratio in ratios)} - {shown.network.symptom})
        if bears_on[sign] <= here and (sign in whole | driven or sign not in originals)
    ]
    # Of an absent sign only the links were left; here what is constant then is told again.
    again = whole & set(changeable)
    told = [originals[node.id] if node.id in again else node for node in shown.network.nodes]
    seen = {**shown.network.evidence, **{name: e for name, e in compiled.network.evidence.items() if name in again}}
    return ExplanationNetwork(
        causes=shown.kept,
        symptom=shown.network.symptom if shown.network.symptom in here else None,
        nodes=tuple(_row(node, seen.get(node.id)) for node in told),
        ratios=ratios,
        changeable=tuple(changeable),
        residual=None if shown.residual is None else _folded(shown.residual),
    )


def _ratios(compiled: Compiled, here: set[str]) -> Iterator[NetworkRatio]:
    for cause, by_sign in sorted(compiled.own_ratios.items()):
        if cause not in here:
            continue
        reaches = {reach.id: reach for reach in compiled.chains[cause].signs}
        for sign, read in sorted(by_sign.items()):
            reach = reaches[sign]
            assert reach.cell is not None
            p, leak = reach.cell.by_level[0], reach.leak[0]
            yield NetworkRatio(
                sign=sign,
                cause=cause,
                read=read,
                present=p / leak if leak > 0 else 1.0,
                absent=(1 - p) / (1 - leak) if leak < 1 else 1.0,
            )


def _row(node: Node, seen: Likelihood | None) -> NetworkNode:
    return NetworkNode(
        id=node.id,
        kind=node.kind.value,
        place=node.place,
        leak=node.leak,
        links=node.links,
        inhibitors=node.inhibitors,
        higher=tuple(NetworkLevel(leak=level.leak, links=level.links) for level in node.higher),
        # What was seen of causes is told by the ratios.
        likelihood=None if seen is None or node.kind is NodeKind.CAUSE else seen.by_level,
    )


def _folded(residual: Residual) -> NetworkResidual:
    return NetworkResidual(
        reads=residual.reads,
        sets=residual.sets,
        levels=tuple(residual.weights.shape),
        weights=tuple(residual.weights.ravel().tolist()),
    )


def restored(stored: ExplanationNetwork, read: Mapping[str, bool | None] | None = None) -> Explanation:
    """The explanation network of a result, with some of its changeable signs `read` otherwise: present, absent, or not
    at all (None).

    Numbers are those of the result, to six digits.
    """
    read = read or {}
    evidence = {
        node.id: Likelihood.of(node.likelihood)
        for node in stored.nodes
        if node.likelihood is not None and node.id not in read
    }
    tops = {node.id: 1 + len(node.higher) for node in stored.nodes}
    for sign, is_present in read.items():
        if is_present is not None and sign in tops:
            evidence[sign] = Likelihood.of((float(not is_present), *[float(is_present)] * tops[sign]))
    odds: dict[str, list[float]] = defaultdict(list)
    for ratio in stored.ratios:
        as_asked = {True: ratio.present, False: ratio.absent, None: 1.0}
        odds[ratio.cause].append(as_asked[read[ratio.sign]] if ratio.sign in read else ratio.read)
    evidence |= {cause: Likelihood(1.0, math.prod(factors)) for cause, factors in odds.items()}
    network = Network(tuple(_node(row) for row in stored.nodes), evidence, stored.symptom)
    folded = stored.residual
    if folded is None:
        return Explanation(stored.causes, network, None)
    weights = np.array(folded.weights).reshape(folded.levels)
    return Explanation(stored.causes, network, Residual(folded.reads, folded.sets, weights / weights.sum()))


def _node(row: NetworkNode) -> Node:
    higher = tuple(Level(level.leak, level.links) for level in row.higher)
    return Node(row.id, NodeKind(row.kind), row.place, row.leak, row.links, row.inhibitors, higher)
