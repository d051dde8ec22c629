"""The network as pure data: causes, mechanisms and signs with their links, ready for a solver or a printer.

Nothing is computed here. Every node is binary and noisy-OR with leak and inhibitors:
P(on | parents) = [1 - (1 - leak) prod(1 - p)] prod(1 - k), over the links p and inhibitors k whose parent is on
(DESIGN.md section 5). For a cause, `leak` is its prior (a hazard) and its links are triggers.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum


class NodeKind(StrEnum):
    CAUSE = "cause"
    MECHANISM = "mechanism"
    SIGN = "sign"


@dataclass(frozen=True, slots=True)
class Node:
    """One binary node.

    `place` names the block it is summed in; None for a sign shared by several blocks.
    """

    id: str
    kind: NodeKind
    place: str | None
    leak: float
    links: tuple[tuple[str, float], ...] = ()
    inhibitors: tuple[tuple[str, float], ...] = ()


@dataclass(frozen=True, slots=True)
class Likelihood:
    """Virtual evidence on a node: P(observation | node off) and P(observation | node on); hard evidence is (1, 0) or
    (0, 1)."""

    off: float
    on: float


@dataclass(frozen=True, slots=True)
class Network:
    """Nodes in topological order (parents first).

    `symptom` is the id of the node a slowdown is read from, None without one.
    """

    nodes: tuple[Node, ...]
    evidence: Mapping[str, Likelihood] = field(default_factory=dict)
    symptom: str | None = None
