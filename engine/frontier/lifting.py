"""Lifting: blocks that differ in names only are summed as one block with a count.

A job crosses thousands of ports of which most were seen alike: the same causes and signs, the same findings, the same
links to the same shared signs and interface bits. Such blocks are exchangeable, so their posteriors are equal, and
what n of them together do to the bits is the n-th power of what one does (`powers.py`). A block whose own
state others read is never lifted: who reads it tells it from the rest.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import replace

from .input import Absorbed
from .parts import Block
from .shapes import shape_of

FEWEST = 8
"""Blocks alike from which on they are lifted: a power costs about as much as eight steps (measured 2026-12)."""


def lifted(blocks: Sequence[Block], model: Absorbed) -> list[Block]:
    """The blocks, in their order, those that are alike as twins of the first."""
    stands_for: dict[str, tuple[Block, ...]] = {}
    dropped: set[str] = set()
    coupled = ((_coupling(block), block) for block in blocks if block.hidden and not block.writes)
    for candidates in _many(coupled):
        for first, *others in _many((shape_of(block, model), block) for block in candidates):
            stands_for[first.hidden[0]] = tuple(others)
            dropped.update(other.hidden[0] for other in others)
    return [
        replace(block, twins=stands_for[block.hidden[0]]) if block.hidden and block.hidden[0] in stands_for else block
        for block in blocks
        if not (block.hidden and block.hidden[0] in dropped)
    ]


def _coupling(block: Block) -> Hashable:
    """What blocks that are alike have in common at the least: the bits they touch, and how many nodes they have."""
    return block.reads, block.raises, len(block.hidden), len(block.signs)


def _many(keyed: Iterable[tuple[Hashable, Block]]) -> list[list[Block]]:
    """Groups of at least `FEWEST` blocks with equal keys."""
    groups: dict[Hashable, list[Block]] = defaultdict(list)
    for key, block in keyed:
        groups[key].append(block)
    return [group for group in groups.values() if len(group) >= FEWEST]
