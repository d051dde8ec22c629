"""Blocks, open bits and their order: what the frontier solver sweeps over, decided from the network before any sum.

A place is a block. What couples blocks is a *bit*, open from the first block that touches it to the last: a shared
sign with evidence; the state of a cause or mechanism that a block elsewhere reads; or the pressure that causes and
mechanisms elsewhere put on a node (the OR of their links), taken instead of their states where that needs fewer bits
(one paused port under 32 congested queues is one bit, not 32). All three are exact: nothing is left out here.
"""

from __future__ import annotations

import heapq
import math
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence

import networkx as nx

from ..errors import TooManyOpenBits
from ..levels import steps_of
from ..network import Likelihood, Network, Node, NodeKind
from .input import absorb_evidence
from .lifting import lifted
from .parts import Bit, Block, Plan, Step

WIDTH_LIMIT = 18  # bits open at once: 262,144 states, 2 MB a step (judgement; DESIGN.md section 5 plans with 16)

_NARROW = 6  # open bits below which no other order is tried: 64 states a step (judgement)
_MANY = (16, 4)  # blocks above which a bit may be one that is open nearly all the time; both are tried (judgement)

BlockKey = tuple[str, str]  # a place, and one of its nodes where the place was taken apart


def plan_sweep(network: Network, open_to_the_end: Sequence[str] = ()) -> Plan:
    """The order of blocks and bits for a network; the bits of `open_to_the_end` (hidden nodes or shared signs) never
    close.

    Raises InferenceError for a network that is not one (unknown parent, parent after its child, number outside 0..1,
    inhibitor on a shared sign) and when more than `WIDTH_LIMIT` bits are open at once.
    """
    endless = frozenset(open_to_the_end)
    model = absorb_evidence(network, endless)
    steps = _narrow_order(lifted(_blocks(model.nodes, model.likelihood, endless), model), endless)
    width = _largest_width(steps)
    if width > WIDTH_LIMIT:
        step = max(steps, key=_width)
        bits = sorted({*step.before, *step.opens})
        raise TooManyOpenBits(
            f"{width} bits are open at {step.block.name}, at most {WIDTH_LIMIT} can be: {', '.join(map(str, bits))}.",
            "Couple the places through one mechanism, or make one place of them.",
            tuple(bit.node for bit in bits if bit.kind == "sign"),
        )
    return Plan(network, model, steps, width)


def _largest_width(steps: Sequence[Step]) -> int:
    return max(map(_width, steps), default=0)


def _width(step: Step) -> int:
    """Bits open while a block is summed; a sign with more levels counts for as many as it needs."""
    return math.ceil(sum(math.log2(1 + bit.top) for bit in (*step.before, *step.opens)))


def _blocks(
    nodes: Mapping[str, Node], likelihood: Mapping[str, Likelihood], open_to_the_end: frozenset[str]
) -> list[Block]:
    """One block a place.

    A place too large to be summed at once is taken apart into one block a node: exact as well,
    since a block is only a way to bracket the sum.
    """
    live = [
        node
        for node in nodes.values()
        if node.kind is not NodeKind.SIGN or node.id in likelihood or node.id in open_to_the_end
    ]
    apart: set[str] = set()
    while True:
        blocks = _group(nodes, live, apart, open_to_the_end)
        oversize = {block.place for block in blocks if block.place and block.oversize} - apart
        if not oversize:
            return blocks
        apart |= oversize


def _group(
    nodes: Mapping[str, Node], live: Sequence[Node], apart: set[str], open_to_the_end: frozenset[str]
) -> list[Block]:
    key_of: dict[str, BlockKey] = {}
    for node in live:
        own = (node.place or "", node.id if node.place is None or node.place in apart else "")
        # A pressure is on or off: a sign with levels whose parents lie in several blocks is a shared sign instead.
        is_shared = node.place is None or (
            node.higher and not node.inhibitors and any(key_of[parent] != own for parent, _ in node.links)
        )
        if not (node.kind is NodeKind.SIGN and is_shared):
            key_of[node.id] = own
    hidden: dict[BlockKey, list[str]] = defaultdict(list)
    signs: dict[BlockKey, list[str]] = defaultdict(list)
    reads: dict[BlockKey, set[Bit]] = defaultdict(set)
    raises: dict[BlockKey, dict[Bit, list[tuple[str, tuple[float, ...]]]]] = defaultdict(lambda: defaultdict(list))
    chosen = _cover(live, key_of, open_to_the_end)
    for node in live:
        key = key_of.get(node.id)
        if key is None:
            by_parent = zip(*(step.links for step in steps_of(node)), strict=True)
            for (parent, _), steps in zip(node.links, by_parent, strict=True):
                raises[key_of[parent]][Bit("sign", node.id, node.top)].append((parent, tuple(p for _, p in steps)))
            continue
        (signs if node.kind is NodeKind.SIGN else hidden)[key].append(node.id)
        for parent, p in (*node.links, *node.inhibitors):
            if key_of[parent] == key:
                continue
            bit = Bit("state", parent)
            if bit not in chosen:
                bit = Bit("pressure", node.id)
                raises[key_of[parent]][bit].append((parent, (p,)))
            reads[key].add(bit)
    shown = {bit.node for bits in reads.values() for bit in bits if bit.kind == "state"} | open_to_the_end
    return [
        Block(
            key[0],
            tuple(hidden[key]),
            tuple(signs[key]),
            tuple(sorted(reads[key])),
            tuple(Bit("state", name) for name in hidden[key] if name in shown),
            tuple(sorted(raises[key])),
            tuple(tuple(raises[key][bit]) for bit in sorted(raises[key])),
        )
        for key in sorted(set(key_of.values()))
    ]


def _cover(live: Iterable[Node], key_of: Mapping[str, BlockKey], open_to_the_end: frozenset[str]) -> set[Bit]:
    """State and pressure bits that carry every link between blocks, few of them: a greedy vertex cover by degree.

    A parent that inhibits elsewhere must show its state, since an inhibitor is not part of the OR; so must one that
    drives a sign with levels there, since a pressure has none. A pressure is complete only after all who press, so
    blocks that press on each other in a circle show states instead: a state may be read before it is set, as a promise
    that the sum keeps.
    """
    crossing = [
        (parent, node.id)
        for node in live
        for parent, _ in (*node.links, *node.inhibitors)
        if node.id in key_of and key_of[parent] != key_of[node.id]
    ]
    chosen = {Bit("state", name) for name in open_to_the_end if name in key_of}
    chosen.update(
        Bit("state", parent) for node in live for parent, _ in node.inhibitors if key_of[parent] != key_of[node.id]
    )
    chosen.update(
        Bit("state", parent)
        for node in live
        if node.higher and node.id in key_of
        for parent, _ in node.links
        if key_of[parent] != key_of[node.id]
    )
    links: dict[Bit, set[Bit]] = defaultdict(set)
    for parent, child in crossing:
        state, pressure = Bit("state", parent), Bit("pressure", child)
        if state not in chosen:
            links[state].add(pressure)
            links[pressure].add(state)
    for bit in sorted(links, key=lambda bit: (-len(links[bit]), bit.kind != "state", bit)):
        if not links[bit] <= chosen:
            chosen.add(bit)
    pressing = [(parent, child) for parent, child in crossing if Bit("state", parent) not in chosen]
    order: nx.DiGraph[BlockKey] = nx.DiGraph((key_of[parent], key_of[child]) for parent, child in pressing)
    circle = {key: number for number, keys in enumerate(nx.strongly_connected_components(order)) for key in keys}
    chosen.update(Bit("state", parent) for parent, child in pressing if circle[key_of[parent]] == circle[key_of[child]])
    return chosen


def _narrow_order(blocks: Sequence[Block], open_to_the_end: frozenset[str]) -> tuple[Step, ...]:
    """An order that opens few bits at once.

    Counting every bit finishes one rail before the next begins. Where it puts off signs that all places share for so
    long that it begins every pause tree meanwhile, those signs are opened at no cost: they stay open anyhow.
    """
    steps = _order(blocks, open_to_the_end, math.inf)
    if _largest_width(steps) <= _NARROW:
        return steps
    return min(steps, *(_order(blocks, open_to_the_end, many) for many in _MANY), key=_largest_width)


def _order(blocks: Sequence[Block], open_to_the_end: frozenset[str], most: float) -> tuple[Step, ...]:
    """Always the block after which the fewest bits stay open, pressures before who feels them; ties by a depth-first
    walk. A bit that more than `most` blocks touch opens at no cost.

    The walk follows the bits with the fewest blocks first, so that one pause tree, one device, one rail is finished
    before the next begins.
    """
    touching: dict[Bit, list[int]] = defaultdict(list)
    pressers: dict[Bit, list[int]] = defaultdict(list)
    for index, block in enumerate(blocks):
        for bit in block.bits:
            touching[bit].append(index)
        for bit in block.raises:
            pressers[bit].append(index)
    waits_for = [
        {presser for bit in block.reads if bit.kind == "pressure" for presser in pressers[bit]} for block in blocks
    ]
    followers: dict[int, list[int]] = defaultdict(list)
    for index, needed in enumerate(waits_for):
        for earlier in sorted(needed):
            followers[earlier].append(index)
    rank = _depth_first_rank(blocks, touching)
    # an endless bit counts one toucher more than there are, so it never closes
    left = {
        bit: len(touched) + (bit.node in open_to_the_end and bit.kind != "pressure")
        for bit, touched in touching.items()
    }
    is_open: set[Bit] = set()
    done: set[int] = set()

    def cost(index: int) -> tuple[int, int, int]:
        opens = [bit for bit in blocks[index].bits if bit not in is_open]
        closing = sum(left[bit] == 1 for bit in blocks[index].bits)
        return sum(len(touching[bit]) <= most for bit in opens) - closing, len(opens), rank[index]

    unmet = [len(needed) for needed in waits_for]
    ready = [(cost(index), index) for index in range(len(blocks)) if unmet[index] == 0]
    heapq.heapify(ready)
    steps: list[Step] = []
    before: tuple[Bit, ...] = ()
    while ready:
        noted, index = heapq.heappop(ready)
        if index in done or noted != cost(index):
            continue  # a stale entry: the block was queued again when its cost changed
        done.add(index)
        block = blocks[index]
        opens = frozenset(bit for bit in block.bits if bit not in is_open)
        closes = frozenset(bit for bit in block.bits if left[bit] == 1)
        after = tuple(bit for bit in (*before, *sorted(opens)) if bit not in closes)
        steps.append(Step(block, before, opens, closes, after))
        before = after
        is_open |= opens
        changed = {other for bit in opens for other in touching[bit]}
        for bit in block.bits:
            left[bit] -= 1
            if left[bit] == 1:
                changed.update(touching[bit])
        for follower in followers[index]:
            unmet[follower] -= 1
            changed.add(follower)
        for other in sorted(changed - done):
            if unmet[other] == 0:
                heapq.heappush(ready, (cost(other), other))
    assert len(steps) == len(blocks), "pressures in a circle were replaced by states, so every block becomes ready"
    return tuple(steps)


def _depth_first_rank(blocks: Sequence[Block], touching: Mapping[Bit, Sequence[int]]) -> list[int]:
    rank = [-1] * len(blocks)
    followed: set[Bit] = set()
    count = 0

    def broadest_first(bit: Bit) -> tuple[int, Bit]:
        return -len(touching[bit]), bit

    for start in range(len(blocks)):
        stack: list[int | Bit] = [start]
        while stack:
            top = stack.pop()
            if isinstance(top, Bit):
                if top not in followed:
                    followed.add(top)
                    stack.extend(reversed(touching[top]))
            elif rank[top] < 0:
                rank[top] = count
                count += 1
                unfollowed: list[Bit] = sorted(set(blocks[top].bits) - followed, key=broadest_first)
                stack.extend(unfollowed)
    return rank
