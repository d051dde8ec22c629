"""Signs that nobody read, as nodes that could join the network: what an absence there would say."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterator
from dataclasses import dataclass

from ..compile import Compiled
from ..network import Node, NodeKind
from ..one_cause import ByLevel, Chain, SignReach, ancestors, direct_link, own_leak
from ..places import Places
from ..rules import KnowledgeBase
from ..scope import Scope

SignAt = tuple[str, Scope]
"""A sign and the place to read it at."""


@dataclass(frozen=True, slots=True)
class UnreadSign:
    """A sign as it would stand in the network, on from its first level.

    `if_absent`: how an absence would change the odds of causes that count against themselves alone (cells below the
    leak).
    """

    node: Node
    if_absent: dict[str, float]


def unread_signs(
    compiled: Compiled, knowledge: KnowledgeBase, places: Places, wanted: Collection[SignAt]
) -> dict[SignAt, UnreadSign]:
    """The wanted signs, each with every cause and mechanism of the network that bears on it; one that none bears on is
    left out."""
    through = _mechanism_links(compiled, knowledge, places, wanted)
    by_mechanism: dict[str, set[SignAt]] = defaultdict(set)
    for sign_at, links in through.items():
        for mechanism in links:
            by_mechanism[mechanism].add(sign_at)
    leak: dict[SignAt, float] = {}
    direct: dict[SignAt, dict[str, float]] = defaultdict(dict)
    if_absent: dict[SignAt, dict[str, float]] = defaultdict(dict)
    cache: dict[tuple[object, ...], tuple[ByLevel, ByLevel]] = {}
    for node, chain in compiled.chains.items():
        for reach in _reaches(compiled, knowledge, places, wanted, node, through, by_mechanism):
            sign_at = (reach.sign, reach.scope)
            own, link = _numbers(compiled, node, reach, chain, cache)
            leak[sign_at] = min(leak.get(sign_at, own[0]), own[0])
            if link[0] > 0:
                direct[sign_at][node] = link[0]
            if reach.cell is not None and reach.cell.effect != "raises" and reach.leak[0] < 1:
                if_absent[sign_at][node] = (1 - reach.cell.by_level[0]) / (1 - reach.leak[0])
    return {
        sign_at: UnreadSign(
            Node(
                f"{sign_at[0]}@{sign_at[1]}",
                NodeKind.SIGN,
                None,
                leak.get(sign_at, knowledge.signs[sign_at[0]].leak.by_level[0]),
                tuple(sorted({**{m: by[0] for m, by in through[sign_at].items()}, **direct[sign_at]}.items())),
            ),
            if_absent[sign_at],
        )
        for sign_at in sorted(wanted)
        if through[sign_at] or direct[sign_at] or if_absent[sign_at]
    }


def _mechanism_links(
    compiled: Compiled, knowledge: KnowledgeBase, places: Places, wanted: Collection[SignAt]
) -> dict[SignAt, dict[str, ByLevel]]:
    """For each wanted sign, the mechanisms of the network that turn it on."""
    asked = {sign for sign, _ in wanted}
    found: dict[SignAt, dict[str, ByLevel]] = defaultdict(dict)
    for node in compiled.network.nodes:
        if node.kind is not NodeKind.MECHANISM:
            continue
        name, _, at = node.id.partition("@")
        for sign, link in knowledge.mechanisms[name].signs.items():
            if sign in asked:
                for target in places.related(Scope.parse(at), link.at):
                    if (sign, target) in wanted:
                        found[(sign, target)][node.id] = link.by_level
    return found


def _reaches(
    compiled: Compiled,
    knowledge: KnowledgeBase,
    places: Places,
    wanted: Collection[SignAt],
    node: str,
    through: dict[SignAt, dict[str, ByLevel]],
    by_mechanism: dict[str, set[SignAt]],
) -> Iterator[SignReach]:
    """The wanted signs that one hypothesis reaches, by its own cells or by mechanisms of its chain."""
    hypothesis = compiled.hypotheses[node]
    mechanisms = {mechanism.id for mechanism in compiled.chains[node].mechanisms}
    cells = {
        (sign, target): cell
        for sign, cell in hypothesis.cause.signs.items()
        if any(sign == name for name, _ in wanted)
        for target in places.related(hypothesis.scope, cell.at)
        if (sign, target) in wanted
    }
    reached = {sign_at for mechanism in mechanisms for sign_at in by_mechanism.get(mechanism, ())}
    for sign, target in sorted({*cells, *reached}):
        links = tuple(sorted((m, link) for m, link in through[(sign, target)].items() if m in mechanisms))
        leak = knowledge.signs[sign].leak.by_level
        yield SignReach(f"{sign}@{target}", sign, target, leak, links, cells.get((sign, target)))


def _numbers(
    compiled: Compiled,
    node: str,
    reach: SignReach,
    chain: Chain,
    cache: dict[tuple[object, ...], tuple[ByLevel, ByLevel]],
) -> tuple[ByLevel, ByLevel]:
    """The sign's own leak and its direct link from a cause; thousands of places share one answer."""
    relevant = ancestors(reach, chain)
    index = {mechanism.id: n for n, mechanism in enumerate(relevant)}
    key = (
        compiled.hypotheses[node].cause.id,
        reach.sign,
        reach.cell is None,
        tuple((index[m], link) for m, link in reach.through),
        tuple((m.leak, m.cause_link, tuple((index[p], link) for p, link in m.parents)) for m in relevant),
    )
    if key not in cache:
        cache[key] = (own_leak(reach, relevant), direct_link(reach, relevant))
    return cache[key]
