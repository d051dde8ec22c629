"""A block without names: its shape and its numbers, in the order in which `blocks.py` takes them."""

from __future__ import annotations

from dataclasses import replace

from ..levels import steps_of
from ..network import Likelihood
from .blocks import BlockShape, NodeShape, RaisedShape
from .input import Absorbed
from .parts import Block, Step

_CERTAIN = Likelihood(1.0, 1.0)

Shaped = tuple[BlockShape, tuple[float, ...]]


def shape_of(block: Block, model: Absorbed) -> Shaped:
    """The block by itself, as if it neither opened nor closed a bit."""
    pressure = {bit.node: position for position, bit in enumerate(block.reads) if bit.kind == "pressure"}
    axis = {bit.node: position for position, bit in enumerate(block.reads) if bit.kind == "state"}
    axis.update((name, len(block.reads) + position) for position, name in enumerate(block.hidden))
    numbers: list[float] = []

    def shaped(name: str, seen: Likelihood) -> NodeShape:
        node = model.nodes[name]
        felt = (1.0,) if name in pressure else ()  # the links of all other parents
        numbers.extend(seen.by_level)
        for own in steps_of(node):
            numbers.extend((own.leak, *(p for parent, p in own.links if parent in axis), *felt))
        links = [axis[parent] for parent, _ in node.links if parent in axis]
        numbers.extend(k for _, k in node.inhibitors)
        inhibitors = tuple(axis[parent] for parent, _ in node.inhibitors)
        return NodeShape((*links, *(pressure[name] for _ in felt)), inhibitors, node.top)

    hidden = tuple(shaped(name, model.weight.get(name, _CERTAIN)) for name in block.hidden)
    signs = tuple(shaped(name, model.likelihood[name]) for name in block.signs)
    raised: list[RaisedShape] = []
    for bit, links in zip(block.raises, block.raised_by, strict=True):
        numbers.extend(steps[level] for level in range(bit.top) for _, steps in links)
        raised.append(RaisedShape(tuple(axis[parent] for parent, _ in links), False, False, bit.top))
    written = tuple(axis[bit.node] - len(block.reads) for bit in block.writes)
    return BlockShape(len(block.reads), hidden, signs, tuple(raised), written), tuple(numbers)


def shape_at(step: Step, model: Absorbed) -> Shaped:
    """The block of a step, with the bits that it opens and closes."""
    shape, numbers = shape_of(step.block, model)
    raised: list[RaisedShape] = []
    ends: list[float] = []
    for bit, alone in zip(step.block.raises, shape.raised, strict=True):
        closing = model.likelihood[bit.node] if bit.kind == "sign" and bit in step.closes else None
        if bit in step.opens:
            ends.extend([own.leak for own in steps_of(model.nodes[bit.node])] if bit.kind == "sign" else [0.0])
        if closing is not None:
            ends.extend(closing.by_level)
        raised.append(replace(alone, opens=bit in step.opens, closes=closing is not None))
    return replace(shape, raised=tuple(raised)), (*numbers, *ends)
