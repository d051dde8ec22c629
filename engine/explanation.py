"""The explanation network: the reported part of a network, small enough for people and for pgmpy.

The reported causes keep their places whole: rivals, mechanisms, signs, and all through which they reach the symptom.
Everything else is folded, exactly, into one residual variable "elsewhere" whose states are the patterns of what the
rest of the fabric does to the kept part. A residual with that many states is no `Node`, so `Explanation` holds both;
`inference.py` makes the pgmpy model of it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from .counterfactual import effects
from .errors import InferenceError
from .frontier.powers import Table
from .frontier.sweep import fold
from .network import Level, Likelihood, Network, Node, NodeKind

_RESIDUAL_BITS_LIMIT = 10  # 1,024 states of the residual; judgement
_NODE_LIMIT = 150  # nodes of the kept part that pgmpy eliminates in about a second; judgement, measured 2026-11
ELSEWHERE = "elsewhere"


@dataclass(frozen=True, slots=True)
class Residual:
    """The folded part. `reads` are kept nodes that drive something elsewhere; `sets` are what elsewhere does to the
    kept part: `elsewhere:<node>` (how far it turns that node on) or the id of a folded node that inhibits a kept sign.
    `weights` has an axis for each, reads first, one index a level (1 is on), and sums to 1; it holds the evidence seen
    elsewhere."""

    reads: tuple[str, ...]
    sets: tuple[str, ...]
    weights: Table


@dataclass(frozen=True, slots=True)
class Explanation:
    """The reported part of a network. `kept` are the causes it answers for; `network` are the nodes at their places
    with their evidence, some of them driven by `residual.sets`, which are not nodes of it. No residual: nothing was
    folded."""

    kept: tuple[str, ...]
    network: Network
    residual: Residual | None


def explanation(network: Network, keep: Sequence[str]) -> Explanation:
    """The network around the leading causes of `keep`, as many of them as fit (at least one), all else folded.

    Posteriors of the kept causes are those of the whole network, and so is what would be left of the symptom without
    them. Raises InferenceError for an id that is no cause or
    mechanism, and when not even the place of the first cause fits: over 150 nodes, or over 10 bits towards the rest.
    """
    hidden = {node.id for node in network.nodes if node.kind is not NodeKind.SIGN}
    unknown = [name for name in keep if name not in hidden]
    if unknown or not keep:
        raise InferenceError(
            f"Cannot explain {', '.join(unknown) or 'nothing'}.", "Name causes or mechanisms of this network."
        )
    parts = _divide(network, keep)
    try:
        residual = _residual(parts)
    except InferenceError:
        if len(keep) == 1:
            raise
        return explanation(network, keep[:-1])
    return Explanation(tuple(keep), parts.kept, residual)


@dataclass(frozen=True, slots=True)
class _Division:
    kept: Network
    folded: Network
    reads: tuple[str, ...]
    sets: tuple[str, ...]

    @property
    def bits(self) -> tuple[str, ...]:
        return self.reads + self.sets


def _divide(network: Network, keep: Sequence[str]) -> _Division:
    """The kept part and the folded part, and the bits between them.

    A sign seen absent falls in two, one of each part: all that drive it are off by themselves. Any other node with
    parents in both parts stays in the kept part and is driven by `elsewhere:<node>`, the OR of its folded parents.
    """
    wanted = {*keep, *(effect for cause, between in effects(network).items() if cause in keep for effect in between)}
    places = {node.place or node.id for node in network.nodes if node.id in wanted}
    is_kept = {
        node.id: (node.place or node.id) in places
        for node in network.nodes
        if node.kind is not NodeKind.SIGN or node.place
    }
    kept: list[Node] = []
    folded: list[Node] = []
    outside: list[Node] = []
    reads: set[str] = set()
    sets: set[str] = set()
    kept_evidence: dict[str, Likelihood] = {}
    folded_evidence: dict[str, Likelihood] = {}
    for node in network.nodes:
        seen = network.evidence.get(node.id)
        if node.kind is NodeKind.SIGN and (seen is None or len(set(seen.by_level)) == 1):
            continue
        kept_links, kept_higher = links_from(node, lambda parent: is_kept[parent])
        folded_links, folded_higher = links_from(node, lambda parent: not is_kept[parent])
        is_shared_sign = node.id not in is_kept
        if not (is_kept[node.id] if not is_shared_sign else kept_links):
            folded.append(node)
            if seen is not None:
                folded_evidence[node.id] = seen
            reads.update(parent for parent, _ in (*node.links, *node.inhibitors) if is_kept[parent])
            continue
        if seen is not None:
            kept_evidence[node.id] = seen
        sets.update(parent for parent, _ in node.inhibitors if not is_kept[parent])
        if is_shared_sign and seen is not None and seen.is_absence:
            if folded_links:
                folded.append(replace(node, leak=0.0, links=folded_links, higher=()))
                folded_evidence[node.id] = Likelihood(1.0, 0.0)
            kept.append(replace(node, links=kept_links, higher=kept_higher))
        elif folded_links:
            pressure = f"{ELSEWHERE}:{node.id}"
            sets.add(pressure)
            silent = tuple(Level(0.0, level.links) for level in folded_higher)
            outside.append(Node(pressure, NodeKind.SIGN, None, 0.0, folded_links, higher=silent))
            felt = tuple(Level(level.leak, (*level.links, (pressure, 1.0))) for level in kept_higher)
            kept.append(replace(node, links=(*kept_links, (pressure, 1.0)), higher=felt))
        else:
            kept.append(node)
    roots = [Node(name, NodeKind.CAUSE, None, 0.5) for name in sorted(reads)]
    return _Division(
        Network(tuple(kept), kept_evidence, network.symptom),
        Network((*roots, *folded, *outside), folded_evidence),
        tuple(sorted(reads)),
        tuple(sorted(sets)),
    )


def links_from(node: Node, is_wanted: Callable[[str], bool]) -> tuple[tuple[tuple[str, float], ...], tuple[Level, ...]]:
    """The links of a node from some of its parents: those of its first level, and the levels above."""
    links = tuple(link for link in node.links if is_wanted(link[0]))
    higher = (Level(level.leak, tuple(link for link in level.links if is_wanted(link[0]))) for level in node.higher)
    return links, tuple(higher)


def _residual(parts: _Division) -> Residual | None:
    if len(parts.bits) > _RESIDUAL_BITS_LIMIT or len(parts.kept.nodes) > _NODE_LIMIT:
        raise InferenceError(
            f"The kept places have {len(parts.kept.nodes)} nodes and {len(parts.bits)} bits towards the rest, "
            f"at most {_NODE_LIMIT} and {_RESIDUAL_BITS_LIMIT} can be shown.",
            "Report the cause without an explanation network.",
        )
    if not parts.bits:
        return None
    weights = fold(parts.folded, parts.bits).weights
    return Residual(parts.reads, parts.sets, weights / weights.sum())
