"""What the frontier sweep is made of: bits, blocks, the steps over them, and where each hidden node is summed."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Literal, NamedTuple

from ..network import Network
from .input import Absorbed

HIDDEN_LIMIT = 12  # hidden nodes summed as one block; judgement: beyond it one block a node is cheaper than 2^13 states
BLOCK_AXES_LIMIT = 20  # axes of one block's tables: 2^20 floats are 8 MB; judgement


class Bit(NamedTuple):
    """What several blocks touch: a shared sign, the state of a hidden node, or the pressure on a node from elsewhere.
    A tuple because sweeps over 100,000 ports hash millions of them.

    `top` is its highest level; only a sign has more than off and on.
    """

    kind: Literal["pressure", "sign", "state"]
    node: str
    top: int = 1

    def __str__(self) -> str:
        return f"{self.kind} of {self.node}"


@dataclass(frozen=True, slots=True)
class Block:
    """Nodes summed together.

    Bits: `reads` are set by other blocks, `writes` are states of its own hidden nodes, in their order, `raises` are
    signs and pressures that its hidden nodes turn on by the links of `raised_by`: a parent with one step
    (`levels.steps_of`) a level. `twins` are further blocks that differ from this one in names only, their nodes in the
    same order: all are summed as one (`lifting.py`).
    """

    place: str
    hidden: tuple[str, ...]
    signs: tuple[str, ...]
    reads: tuple[Bit, ...]
    writes: tuple[Bit, ...]
    raises: tuple[Bit, ...]
    raised_by: tuple[tuple[tuple[str, tuple[float, ...]], ...], ...]
    twins: tuple[Block, ...] = ()

    @property
    def count(self) -> int:
        """How many places it stands for."""
        return 1 + len(self.twins)

    @property
    def copies(self) -> tuple[Block, ...]:
        """The places it stands for, one by one."""
        return (replace(self, twins=()), *self.twins) if self.twins else (self,)

    @property
    def name(self) -> str:
        """The place, or the node that has none."""
        return self.place or self.hidden[0]

    @property
    def bits(self) -> tuple[Bit, ...]:
        return self.reads + self.writes + self.raises

    @property
    def oversize(self) -> bool:
        raised = math.ceil(sum(math.log2(1 + bit.top) for bit in self.raises))
        axes = len(self.hidden) + len(self.reads) + 2 * raised  # a raised bit has a before and an after
        return len(self.hidden) > HIDDEN_LIMIT or (len(self.hidden) + len(self.signs) > 1 and axes > BLOCK_AXES_LIMIT)


@dataclass(frozen=True, slots=True)
class Step:
    """One block of the sweep: the bits open before it, those it opens and closes, and the bits open after it."""

    block: Block
    before: tuple[Bit, ...]
    opens: frozenset[Bit]
    closes: frozenset[Bit]
    after: tuple[Bit, ...]


class Slot(NamedTuple):
    """Where a hidden node is summed: in the block of which step, as which of its copies (0: itself, then the twins),
    and at which position of `hidden`."""

    step: int
    copy: int
    position: int


@dataclass(frozen=True)
class Plan:
    """The sweep over a network.

    `width` is the largest number of bits open at once. `revised` are the signs whose evidence is not where
    `absorb_evidence` would put it, because the plan is that of a network which differed in it (`change.py`).
    """

    network: Network
    model: Absorbed
    steps: tuple[Step, ...]
    width: int
    revised: frozenset[str] = field(default=frozenset())

    @cached_property
    def slots(self) -> Mapping[str, Slot]:
        """Of every hidden node."""
        return {
            node: Slot(number, copy, position)
            for number, step in enumerate(self.steps)
            for copy, block in enumerate((step.block, *step.block.twins))
            for position, node in enumerate(block.hidden)
        }

    @cached_property
    def steps_of_sign(self) -> Mapping[str, tuple[int, ...]]:
        """The steps that sum a sign or touch its bit, ascending."""
        found: dict[str, list[int]] = defaultdict(list)
        for number, step in enumerate(self.steps):
            for block in (step.block, *step.block.twins):
                for name in block.signs:
                    found[name].append(number)
            for bit in step.block.raises:
                if bit.kind == "sign":
                    found[bit.node].append(number)
        return {name: tuple(numbers) for name, numbers in found.items()}
