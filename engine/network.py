"""The network as pure data: causes, mechanisms and signs with their links, ready for a solver or a printer.

Nothing is computed here. A node is binary and noisy-OR with leak and inhibitors:
P(on | parents) = [1 - (1 - leak) prod(1 - p)] prod(1 - k), over the links p and inhibitors k whose parent is on
(DESIGN.md section 5). For a cause, `leak` is its prior (a hazard) and its links are triggers. A sign may have ordered
levels, noisy-MAX: the same formula with the leak and links of each level gives P(at this level or above | parents), and
an inhibitor that acts takes the sign to level 0 (`levels.py` has the algebra).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum


class NodeKind(StrEnum):
    CAUSE = "cause"
    MECHANISM = "mechanism"
    SIGN = "sign"


@dataclass(frozen=True, slots=True)
class Level:
    """P(a sign is at one level or above | parents): leak and links, as those of a node."""

    leak: float
    links: tuple[tuple[str, float], ...] = ()


@dataclass(frozen=True, slots=True)
class Node:
    """One node.

    `place` names the block it is summed in; None for a sign shared by several blocks. `higher`: the levels above the
    first of a sign with ordered levels, each at most as probable as the one below; `leak` and `links` are its first.
    """

    id: str
    kind: NodeKind
    place: str | None
    leak: float
    links: tuple[tuple[str, float], ...] = ()
    inhibitors: tuple[tuple[str, float], ...] = ()
    higher: tuple[Level, ...] = ()

    @property
    def top(self) -> int:
        """The highest level; 1 for a node that is on or off."""
        return 1 + len(self.higher)


@dataclass(frozen=True, slots=True)
class Likelihood:
    """Virtual evidence on a node: P(observation | node off) and P(observation | node on); hard evidence is (1, 0) or
    (0, 1).

    For a sign with levels `off` is level 0, `on` level 1, and `higher` are those above.
    """

    off: float
    on: float
    higher: tuple[float, ...] = ()

    @property
    def by_level(self) -> tuple[float, ...]:
        """P(observation | level), from level 0 on."""
        return (self.off, self.on, *self.higher)

    @property
    def is_absence(self) -> bool:
        """Whether the node is surely off."""
        return not any(self.by_level[1:])

    @classmethod
    def of(cls, by_level: Sequence[float]) -> Likelihood:
        return cls(by_level[0], by_level[1], tuple(by_level[2:]))


@dataclass(frozen=True, slots=True)
class Network:
    """Nodes in topological order (parents first).

    `symptom` is the id of the node a slowdown is read from, None without one.
    """

    nodes: tuple[Node, ...]
    evidence: Mapping[str, Likelihood] = field(default_factory=dict)
    symptom: str | None = None
