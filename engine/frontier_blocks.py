"""The sum over one block: from its shape and numbers to the tables that the sweeps of `frontier.py` multiply.

Blocks of one shape (a port with the same causes, whatever was seen there) are summed together, as rows of one array,
and blocks of equal numbers once. Every sum is of non-negative terms: P(on) is built up link by link instead of as 1 -
P(off), so that a prior of 1e-9 keeps its digits.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

Table = npt.NDArray[np.float64]

_BATCH_FLOATS = 2**21  # 16 MB for the joint tables of one batch; judgement


@dataclass(frozen=True, slots=True)
class NodeShape:
    """The axes of a node's parents. Its numbers: leak, likelihood off and on, then a number a link and an inhibitor."""

    links: tuple[int, ...]
    inhibitors: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class RaisedShape:
    """A shared sign or pressure that the block may turn on, and whether the block is the first or last to touch it.
    Its numbers: one a link; later, after those of all nodes and links, its leak if it opens, its likelihood if it
    closes."""

    links: tuple[int, ...]
    opens: bool
    closes: bool


@dataclass(frozen=True, slots=True)
class BlockShape:
    """Axes, all of length 2: the bits read, then the hidden nodes in topological order, then the raised bits.
    `written` are the positions of the hidden nodes whose state other blocks read, ascending."""

    reads: int
    hidden: tuple[NodeShape, ...]
    signs: tuple[NodeShape, ...]
    raised: tuple[RaisedShape, ...]
    written: tuple[int, ...]

    @property
    def axes(self) -> int:
        return self.reads + len(self.hidden) + len(self.raised)


@dataclass(frozen=True, slots=True)
class BlockTables:
    """Tables of a block. `total` has the axes of a step: bits read, states written, then for each raised bit its value
    before, unless the block opens it, and after, unless it closes it. `with_on` is the part with each hidden node on,
    stacked; in it and wherever a table is said to be by pattern, each raised bit has one axis: whether the block turns
    it on. Two to the bits instead of four, and nodes are many."""

    shape: BlockShape
    numbers: tuple[float, ...]
    total: Table
    with_on: Table
    transitions: tuple[Table, ...]

    def with_any(self, members: tuple[int, ...]) -> Table:
        """The part, by pattern, in which at least one of these hidden nodes (positions, ascending) is on."""
        if len(members) == 1:
            on: Table = self.with_on[members[0]]
            return on
        joint = _joint(self.shape, iter(np.array([self.numbers]).T))
        one_is_on = np.zeros((1,) * joint.ndim)
        for member in members:
            one_is_on = np.maximum(one_is_on, _where_on(self.shape.reads + member, self.shape.axes))
        any_on: Table = _summed(self.shape, joint * one_is_on)[0]
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


def sum_blocks(blocks: Iterable[tuple[BlockShape, tuple[float, ...]]]) -> list[BlockTables]:
    """The tables of blocks, in their order."""
    positions: dict[BlockShape, dict[tuple[float, ...], list[int]]] = defaultdict(lambda: defaultdict(list))
    for position, (shape, numbers) in enumerate(blocks):
        positions[shape][numbers].append(position)
    summed: dict[int, BlockTables] = {}
    for shape, rows in positions.items():
        batch = max(1, _BATCH_FLOATS >> shape.axes)
        every = list(rows)
        for start in range(0, len(every), batch):
            for tables in _sum_batch(shape, every[start : start + batch]):
                summed.update(dict.fromkeys(rows[tables.numbers], tables))
    return [summed[position] for position in range(len(summed))]


def _sum_batch(shape: BlockShape, rows: Sequence[tuple[float, ...]]) -> Iterator[BlockTables]:
    numbers = iter(np.array(rows).reshape(len(rows), -1).T)
    joint = _joint(shape, numbers)
    parts = [_summed(shape, _only_on(joint, shape, position)) for position in range(len(shape.hidden))]
    total = _summed(shape, joint)
    with_on = np.stack(parts, axis=1) if parts else np.zeros((len(rows), 0, *total.shape[1:]))
    transitions = [_transition(bit, numbers, len(rows)) for bit in shape.raised]
    for row, number in enumerate(rows):
        own = tuple(transition[row] for transition in transitions)
        tables = BlockTables(shape, number, total[row], with_on[row], own)
        yield replace(tables, total=tables.followed(total[row : row + 1])[0]) if own else tables


def _joint(shape: BlockShape, numbers: Iterator[Table]) -> Table:
    """Weight of each joint state of the hidden nodes, given the bits read, and of which raised bits it turns on; one
    row a block. Takes the numbers of nodes and links."""
    joint: Table = np.ones((1,) * (1 + shape.axes))
    for position, node in enumerate(shape.hidden):
        on, off = _weighed_node(node, numbers, shape.axes)
        joint = joint * np.concatenate([off, on], axis=1 + shape.reads + position)
    for sign in shape.signs:
        on, off = _weighed_node(sign, numbers, shape.axes)
        joint = joint * (off + on)
    for position, bit in enumerate(shape.raised):
        never = np.zeros((1,) * (1 + shape.axes))
        on, off = _noisy_or(never, never + 1.0, bit.links, numbers)
        joint = joint * np.concatenate([off, on], axis=1 + shape.reads + len(shape.hidden) + position)
    return np.broadcast_to(joint, (len(joint),) + (2,) * shape.axes)


def _weighed_node(node: NodeShape, numbers: Iterator[Table], axes: int) -> tuple[Table, Table]:
    """P(on) and P(off) over the states of the parents, times the likelihood of what was seen of the node."""
    leak, seen_off, seen_on = (next(numbers).reshape((-1,) + (1,) * axes) for _ in range(3))
    on, off = _noisy_or(leak, 1.0 - leak, node.links, numbers)
    for axis in node.inhibitors:
        acts = next(numbers).reshape((-1,) + (1,) * axes) * _where_on(axis, axes)
        on, off = on * (1.0 - acts), off + on * acts
    return on * seen_on, off * seen_off


def _noisy_or(on: Table, off: Table, links: tuple[int, ...], numbers: Iterator[Table]) -> tuple[Table, Table]:
    axes = on.ndim - 1
    for axis in links:
        acts = next(numbers).reshape((-1,) + (1,) * axes) * _where_on(axis, axes)
        on, off = on + off * acts, off * (1.0 - acts)
    return on, off


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
    """From "this block turns it on" (axis 1, after the rows) to the bit's value before and after, as far as those stay
    open."""
    table = np.zeros((rows, 2, 2, 2))
    table[:, 0, 0, 0] = table[:, 0, 1, 1] = table[:, 1, 0, 1] = table[:, 1, 1, 1] = 1.0
    if bit.opens:
        leak = next(numbers)[:, None, None]
        table = (1.0 - leak) * table[:, :, 0] + leak * table[:, :, 1]
    if bit.closes:
        by_row = (-1,) + (1,) * (table.ndim - 2)
        off, on = next(numbers).reshape(by_row), next(numbers).reshape(by_row)
        table = off * table[..., 0] + on * table[..., 1]
    return table
