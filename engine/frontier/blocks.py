"""The sum over one block: from its shape and numbers to the tables that the sweeps of `sweep.py` multiply.

Blocks of one shape (a port with the same causes, whatever was seen there) are summed together, as rows of one array,
and blocks of equal numbers once; a block that stands for many is taken to its power.

Every sum is of non-negative terms: P(on) is built up link by link instead of as 1 - P(off), so that a prior of 1e-9
keeps its digits.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import reduce

import numpy as np

from .powers import Table, power, product

Members = tuple[tuple[tuple[int, ...], int], ...]
"""Hidden nodes of the copies of a block: their positions, ascending, and in how many copies just these."""

_Row = tuple[tuple[float, ...], int]  # the numbers of a block, and how many alike it stands for

_BATCH_FLOATS = 2**21  # 16 MB for the joint tables of one batch; judgement


@dataclass(frozen=True, slots=True)
class NodeShape:
    """The axes of a node's parents, and its highest level.

    Its numbers: a likelihood a level from 0 on, then for each
    step (`levels.steps_of`) its leak and a number a link, then one an inhibitor.
    """

    links: tuple[int, ...]
    inhibitors: tuple[int, ...]
    top: int = 1


@dataclass(frozen=True, slots=True)
class RaisedShape:
    """A shared sign or pressure that the block may turn on, and whether the block is the first or last to touch it.

    Its numbers: for each step one a link; later, after those of all nodes and links, the steps' leaks if it opens, a
    likelihood a level if it closes.
    """

    links: tuple[int, ...]
    opens: bool
    closes: bool
    top: int = 1


@dataclass(frozen=True, slots=True)
class BlockShape:
    """Axes: the bits read, then the hidden nodes in topological order, both of length 2, then the raised bits, one
    index a level.

    `written` are the positions of the hidden nodes whose state other blocks read, ascending.
    """

    reads: int
    hidden: tuple[NodeShape, ...]
    signs: tuple[NodeShape, ...]
    raised: tuple[RaisedShape, ...]
    written: tuple[int, ...]

    @property
    def axes(self) -> int:
        return self.reads + len(self.hidden) + len(self.raised)

    @property
    def lengths(self) -> tuple[int, ...]:
        return (2,) * (self.reads + len(self.hidden)) + tuple(1 + bit.top for bit in self.raised)


@dataclass(frozen=True, slots=True)
class BlockTables:
    """Tables of a block.

    `total` has the axes of a step: bits read, states written, then for each raised bit its value before, unless the
    block opens it, and after, unless it closes it. `with_on` is the part with each hidden node on, stacked; in it and
    wherever a table is said to be by pattern, each raised bit has one axis: how far the block turns it on. Two to the
    bits instead of four, and nodes are many.

    Where the block stands for `count` alike, `with_on` is for the nodes of one of them, whichever. Both are divided by
    a common factor, `log_scale` its natural logarithm.
    """

    shape: BlockShape
    numbers: tuple[float, ...]
    count: int
    total: Table
    with_on: Table
    log_scale: float
    transitions: tuple[Table, ...]

    def with_any(self, members: Members) -> Table:
        """The part, by pattern, in which at least one of these hidden nodes is on."""
        if len(members) == 1 and members[0][1] == 1 and len(members[0][0]) == 1:
            on: Table = self.with_on[members[0][0][0]]
            return on
        joint = _joint(self.shape, iter(np.array([self.numbers]).T))
        rest = self.count - sum(copies for _, copies in members)
        lengths = (*self.shape.lengths[self.shape.reads + len(self.shape.hidden) :], 2)
        powers: list[tuple[Table, Table]] = []
        for positions, copies in (*members, ((), rest)):
            none_is_on = np.ones((1,) * joint.ndim)
            for position in positions:
                none_is_on = none_is_on * (1.0 - _where_on(self.shape.reads + position, self.shape.axes))
            # "One of them is on" is a further bit that a block raises.
            parts = [_summed(self.shape, joint * part) for part in (none_is_on, 1.0 - none_is_on)]
            powers.append(power(np.stack(parts, axis=-1), [copies], lengths))
        together = reduce(lambda first, second: product(first, second, lengths), (table for table, _ in powers))
        log = sum(float(own[0]) for _, own in powers)
        any_on: Table = together[0, ..., 1] * math.exp(log - self.log_scale)
        return any_on

    def followed(self, parts: Table) -> Table:
        """Stacked tables by pattern, with the axes of a step."""
        for transition in self.transitions:
            parts = np.tensordot(parts, transition, axes=([1 + self._first_raised], [0]))
        return parts

    def gathered(self, around: Table) -> Table:
        """The weight of the surroundings by pattern, from that by the axes of a step."""
        for transition in self.transitions:
            ends = range(1, transition.ndim)
            axes = [self._first_raised + end - 1 for end in ends]
            around = np.tensordot(around, transition, axes=(axes, list(ends)))
        return around

    @property
    def _first_raised(self) -> int:
        return self.shape.reads + len(self.shape.written)


def sum_blocks(blocks: Iterable[tuple[BlockShape, tuple[float, ...], int]]) -> list[BlockTables]:
    """The tables of blocks, each with how many alike it stands for, in their order."""
    positions: dict[BlockShape, dict[_Row, list[int]]] = defaultdict(lambda: defaultdict(list))
    for position, (shape, numbers, count) in enumerate(blocks):
        positions[shape][numbers, count].append(position)
    summed: dict[int, BlockTables] = {}
    for shape, rows in positions.items():
        batch = max(1, _BATCH_FLOATS // math.prod(shape.lengths))
        every = list(rows)
        for start in range(0, len(every), batch):
            for tables in _sum_batch(shape, every[start : start + batch]):
                summed.update(dict.fromkeys(rows[tables.numbers, tables.count], tables))
    return [summed[position] for position in range(len(summed))]


def _sum_batch(shape: BlockShape, rows: Sequence[_Row]) -> Iterator[BlockTables]:
    numbers = iter(np.array([own for own, _ in rows]).reshape(len(rows), -1).T)
    joint = _joint(shape, numbers)
    parts = [_summed(shape, _only_on(joint, shape, position)) for position in range(len(shape.hidden))]
    total = _summed(shape, joint)
    with_on = np.stack(parts, axis=1) if parts else np.zeros((len(rows), 0, *total.shape[1:]))
    transitions = [_transition(bit, numbers, len(rows)) for bit in shape.raised]
    log_scale = _raise_to_counts(shape, [count for _, count in rows], total, with_on)
    for row, (own_numbers, count) in enumerate(rows):
        own = tuple(transition[row] for transition in transitions)
        tables = BlockTables(shape, own_numbers, count, total[row], with_on[row], float(log_scale[row]), own)
        yield replace(tables, total=tables.followed(total[row : row + 1])[0]) if own else tables


def _raise_to_counts(shape: BlockShape, counts: Sequence[int], total: Table, with_on: Table) -> Table:
    """Change the rows of blocks that stand for several alike, in place; the logarithm of what each was divided by."""
    log_scale = np.zeros(len(counts))
    many = [row for row, count in enumerate(counts) if count > 1]
    if many:
        lengths = shape.lengths[shape.reads + len(shape.hidden) :]
        others, log_scale[many] = power(total[many], [counts[row] - 1 for row in many], lengths)
        with_on[many] = product(with_on[many], others[:, None], lengths)
        total[many] = product(total[many], others, lengths)
    return log_scale


def _joint(shape: BlockShape, numbers: Iterator[Table]) -> Table:
    """Weight of each joint state of the hidden nodes, given the bits read, and of which raised bits it turns on; one
    row a block.

    Takes the numbers of nodes and links.
    """
    joint: Table = np.ones((1,) * (1 + shape.axes))
    for position, node in enumerate(shape.hidden):
        joint = joint * np.concatenate(_weighed_node(node, numbers, shape.axes), axis=1 + shape.reads + position)
    for sign in shape.signs:
        joint = joint * sum(_weighed_node(sign, numbers, shape.axes))
    for position, bit in enumerate(shape.raised):
        steps = [_noisy_or(np.zeros((1,) * (1 + shape.axes)), bit.links, numbers) for _ in range(bit.top)]
        joint = joint * np.concatenate(_by_level(steps), axis=1 + shape.reads + len(shape.hidden) + position)
    return np.broadcast_to(joint, (len(joint), *shape.lengths))


def _weighed_node(node: NodeShape, numbers: Iterator[Table], axes: int) -> list[Table]:
    """P(level) over the states of the parents, from level 0 (off) on, each times the likelihood of what was seen."""

    def column() -> Table:
        return next(numbers).reshape((-1,) + (1,) * axes)

    seen = [column() for _ in range(1 + node.top)]
    off, *on = _by_level([_noisy_or(column(), node.links, numbers) for _ in range(node.top)])
    for axis in node.inhibitors:
        acts = column() * _where_on(axis, axes)
        off = off + sum(on) * acts
        on = [part * (1.0 - acts) for part in on]
    return [part * likelihood for part, likelihood in zip((off, *on), seen, strict=True)]


def _noisy_or(leak: Table, links: tuple[int, ...], numbers: Iterator[Table]) -> tuple[Table, Table]:
    """P(on) and P(off)."""
    axes = leak.ndim - 1
    on, off = leak, 1.0 - leak
    for axis in links:
        acts = next(numbers).reshape((-1,) + (1,) * axes) * _where_on(axis, axes)
        on, off = on + off * acts, off * (1.0 - acts)
    return on, off


def _by_level(steps: Sequence[tuple[Table, Table]]) -> list[Table]:
    """P(level) from level 0 on, given for each level P(at it) and P(below it) when it is at most that."""
    found: list[Table] = []
    at_most: Table | float = 1.0
    for on, off in reversed(steps):
        found.append(at_most * on)
        at_most = at_most * off
    return [np.asarray(at_most), *reversed(found)]


def _where_on(axis: int, axes: int) -> Table:
    """0 and 1 along one axis of a block, to be broadcast along rows and the other axes."""
    return np.array([0.0, 1.0]).reshape((1,) * (1 + axis) + (2,) + (1,) * (axes - axis - 1))


def _only_on(joint: Table, shape: BlockShape, position: int) -> Table:
    """The part of the joint table with a hidden node on; its axis keeps length 2 where the block writes it."""
    axis = 1 + shape.reads + position
    if position in shape.written:
        return joint * _where_on(axis - 1, shape.axes)
    on: Table = joint[(slice(None),) * axis + (slice(1, 2),)]
    return on


def _summed(shape: BlockShape, joint: Table) -> Table:
    """A part of the joint table by pattern: hidden nodes summed, except those whose state is written."""
    hidden = range(len(shape.hidden))
    table: Table = joint.sum(
        axis=tuple(1 + shape.reads + position for position in hidden if position not in shape.written)
    )
    return table


def _transition(bit: RaisedShape, numbers: Iterator[Table], rows: int) -> Table:
    """From "this block turns it on so far" (axis 1, after the rows) to the bit's value before and after, as far as
    those stay open: the higher of the two."""
    level = np.arange(1 + bit.top)
    highest = np.maximum(level[:, None], level)[:, :, None] == level
    table = np.repeat(highest[None].astype(np.float64), rows, axis=0)
    if bit.opens:
        leaks = [next(numbers) for _ in range(bit.top)]
        before = np.stack(_by_level([(leak, 1.0 - leak) for leak in leaks]), axis=1)
        table = sum(before[:, k, None, None] * table[:, :, k] for k in level)
    if bit.closes:
        by_row = (-1,) + (1,) * (table.ndim - 2)
        table = sum(next(numbers).reshape(by_row) * table[..., k] for k in level)
    return table
