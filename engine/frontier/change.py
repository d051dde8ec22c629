"""The plan of a network that differs from a planned one in a few numbers: other evidence, another prior, another grade.

Questions such as "what if this finding were lost?" leave the places, their bits and their order as they are. So the
plan is kept, and only the blocks that a change reaches are to be summed anew. A sign that was summed stays summed,
with what is seen of it now; a lifted block of which one place differs becomes two steps.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace

from ..levels import steps_of
from ..network import Likelihood, Network, Node, NodeKind
from .input import Absorbed, Said, in_order, said_by
from .parts import Bit, Block, Plan, Step
from .shapes import shape_of

Kept = tuple[int | None, ...]
"""For each step the number of the step of the earlier plan whose sums it shares; None where they are made anew."""

_NOTHING_SEEN = Likelihood(1.0, 1.0)


def changed_plan(plan: Plan, network: Network) -> tuple[Plan, Kept] | None:
    """The plan for a network that has the nodes of the planned one, perhaps with numbers changed and with signs added;
    None where it couples nodes that were not coupled, so that it must be planned anew."""
    change = _change(plan, network)
    if change is None:
        return None
    touched = set(change.hidden)
    steps_with = defaultdict(set)
    for name in touched:
        steps_with[plan.slots[name].step].add(name)
    for sign in change.signs:
        for number in plan.steps_of_sign[sign]:
            steps_with[number].add(sign)
    steps: list[Step] = []
    kept: list[int | None] = []
    for number, step in enumerate(plan.steps):
        parts = [] if number not in steps_with else _parts(step, change, plan.model)
        if not parts:
            steps.append(step)
            kept.append(number)
            continue
        steps.extend(_in_turn(step, parts))
        kept.extend([None] * len(parts))
    return Plan(network, change.model, tuple(steps), plan.width, plan.revised | change.revised), tuple(kept)


@dataclass(frozen=True, slots=True)
class _Change:
    """The changed model, the hidden nodes and summed signs whose numbers changed, and `Plan.revised`."""

    model: Absorbed
    hidden: set[str]
    signs: set[str]
    revised: frozenset[str]


@dataclass(slots=True)
class _Changes:
    """What is collected while one changed node after the other is looked at."""

    nodes: dict[str, Node] = field(default_factory=dict)
    likelihood: dict[str, Likelihood] = field(default_factory=dict)
    own: dict[str, tuple[Likelihood, Likelihood]] = field(default_factory=dict)
    factors: dict[str, float] = field(default_factory=lambda: defaultdict(lambda: 1.0))
    revised: set[str] = field(default_factory=set)
    log: float = 0.0

    def take(self, said: Said, power: int) -> None:
        """Put in (1) or take out (-1) what a sign says of each parent."""
        self.log += power * said.log_factor
        for parent, factor in said.on_factors:
            self.factors[parent] *= factor**power


def _change(plan: Plan, network: Network) -> _Change | None:
    model = plan.model
    before = {node.id: node for node in plan.network.nodes}
    after = {node.id: node for node in network.nodes}
    if not before.keys() <= after.keys() or plan.network.symptom != network.symptom:
        return None
    changes = _Changes()
    for name in _differing(before, after, plan.network.evidence, network.evidence):
        own, seen = after[name], network.evidence.get(name)
        if seen is not None and not (min(seen.by_level) >= 0.0 and 0.0 < max(seen.by_level) < math.inf):
            return None
        if name in plan.revised or (seen is not None and len(seen.by_level) != 1 + own.top):
            return None
        was, seen_before = before.get(name), plan.network.evidence.get(name)
        if own.kind is not NodeKind.SIGN:
            if was is None or (was.links, was.inhibitors) != (own.links, own.inhibitors):
                return None
            changes.nodes[name] = in_order(own)
            changes.own[name] = (_scaled(changes, seen_before, -1), _scaled(changes, seen, 1))
        elif not _sign_changes(changes, model, was, seen_before, own, seen):
            return None
    return _changed(model, changes)


def _differing(
    before: Mapping[str, Node],
    after: Mapping[str, Node],
    seen_before: Mapping[str, Likelihood],
    seen: Mapping[str, Likelihood],
) -> list[str]:
    """Names of the nodes that are others, or of which something else is seen."""
    nodes = {name for name, node in after.items() if node != before.get(name)}
    told = {name for name in {**seen_before, **seen} if seen.get(name) != seen_before.get(name)}
    return sorted(nodes | told)


def _scaled(changes: _Changes, seen: Likelihood | None, power: int) -> Likelihood:
    """A likelihood with a largest value of 1, what it was divided by put in or taken out."""
    if seen is None:
        return _NOTHING_SEEN
    top = max(seen.by_level)
    changes.log += power * math.log(top)
    return Likelihood.of([number / top for number in seen.by_level])


def _sign_changes(
    changes: _Changes,
    model: Absorbed,
    was: Node | None,
    seen_before: Likelihood | None,
    own: Node,
    seen: Likelihood | None,
) -> bool:
    """Note what another sign, or another evidence on it, changes; False where the plan has no room for it."""
    name = own.id
    if was is not None and seen_before is not None:
        scaled = _scaled(changes, seen_before, -1)
        if len(set(scaled.by_level)) > 1:
            said = said_by(in_order(was), scaled)
            if any(factor == 0.0 for _, factor in said.on_factors):
                return False
            changes.take(said, -1)
    scaled = _scaled(changes, seen, 1)
    is_told = len(set(scaled.by_level)) > 1
    if name in model.likelihood:
        planned = model.nodes[name]
        changes.revised.add(name)
        if not is_told:
            changes.likelihood[name] = Likelihood.of((1.0,) * (1 + planned.top))
            return True
        fitted = _fitted(in_order(own), planned)
        if fitted is None:
            said = said_by(in_order(own), scaled)
            fitted = None if said.left is None else _fitted(said.node, planned)
            if fitted is None or said.left is None:
                return False
            changes.take(said, 1)
            scaled = said.left
        changes.nodes[name], changes.likelihood[name] = fitted, scaled
        return True
    if not is_told:
        return True
    # What is surely off says something of each parent by itself, be the sign of one place or shared.
    is_off = seen is not None and seen.is_absence and not own.inhibitors
    if own.place is not None:
        changes.revised.add(name)
    said = said_by(in_order(replace(own, place=None) if is_off else own), scaled)
    changes.take(said, 1)
    return said.left is None


def _fitted(node: Node, planned: Node) -> Node | None:
    """The sign with the parents it has in the plan, those that do not act any more with 0; None where it has others."""
    parents = [parent for parent, _ in planned.links]
    has_same = {parent for parent, _ in node.links} <= set(parents) and node.top == planned.top
    if not has_same or [name for name, _ in node.inhibitors] != [name for name, _ in planned.inhibitors]:
        return None
    levels = [
        replace(level, links=tuple((parent, dict(level.links).get(parent, 0.0)) for parent in parents))
        for level in node.higher
    ]
    own = dict(node.links)
    return replace(node, links=tuple((parent, own.get(parent, 0.0)) for parent in parents), higher=tuple(levels))


def _changed(model: Absorbed, changes: _Changes) -> _Change | None:
    weight: dict[str, Likelihood] = {}
    factors = {name: factor for name, factor in changes.factors.items() if factor != 1.0}
    for name in {*changes.own, *factors}:
        now = model.weight.get(name, _NOTHING_SEEN)
        was, own = changes.own.get(name, (_NOTHING_SEEN, _NOTHING_SEEN))
        if 0.0 in was.by_level:
            return None
        weight[name] = Likelihood(now.off / was.off * own.off, now.on / was.on * own.on * factors.get(name, 1.0))
    if any(name not in model.nodes for name in weight):
        return None
    return _Change(
        Absorbed(
            {**model.nodes, **changes.nodes},
            {**model.weight, **weight},
            {**model.likelihood, **changes.likelihood},
            model.log_constant + changes.log,
        ),
        set(weight),
        set(changes.likelihood),
        frozenset(changes.revised),
    )


def _parts(step: Step, change: _Change, before: Absorbed) -> list[Block]:
    """The blocks of a step whose sums change, those alike as one; none where all stays as it is."""
    same: list[Block] = []
    others: dict[object, list[Block]] = defaultdict(list)
    for copy in step.block.copies:
        now = _with_links(copy, change)
        if now is copy and change.hidden.isdisjoint(copy.hidden) and change.signs.isdisjoint(copy.signs):
            same.append(copy)
        else:
            others[shape_of(now, change.model)].append(now)
    if not others and not any(_end_changes(bit, step, change, before) for bit in step.block.raises):
        return []
    return [
        replace(first, twins=tuple(rest)) for first, *rest in [group for group in (same, *others.values()) if group]
    ]


def _end_changes(bit: Bit, step: Step, change: _Change, before: Absorbed) -> bool:
    """Whether a sign's own numbers, which its first and its last block multiply in, change here."""
    if bit.kind != "sign" or bit.node not in change.signs:
        return False
    was, now = before.nodes[bit.node], change.model.nodes[bit.node]
    leaks = [[own.leak for own in steps_of(node)] for node in (was, now)]
    return bit in step.closes or (bit in step.opens and leaks[0] != leaks[1])


def _with_links(block: Block, change: _Change) -> Block:
    """The block with the links by which it raises changed signs."""
    raised = tuple(_raised_by(bit, links, change) for bit, links in zip(block.raises, block.raised_by, strict=True))
    return block if raised == block.raised_by else replace(block, raised_by=raised)


def _raised_by(
    bit: Bit, links: tuple[tuple[str, tuple[float, ...]], ...], change: _Change
) -> tuple[tuple[str, tuple[float, ...]], ...]:
    if bit.kind != "sign" or bit.node not in change.signs:
        return links
    by_step = [dict(step.links) for step in steps_of(change.model.nodes[bit.node])]
    return tuple((parent, tuple(step[parent] for step in by_step)) for parent, _ in links)


def _in_turn(step: Step, parts: Iterable[Block]) -> Iterator[Step]:
    """One step a part: the first opens what the step opened, the last closes what it closed."""
    waiting = list(parts)
    before, opens = step.before, step.opens
    for number, part in enumerate(waiting, start=1):
        closes = step.closes if number == len(waiting) else frozenset[Bit]()
        after = tuple(bit for bit in (*before, *sorted(opens)) if bit not in closes)
        yield Step(part, before, opens, closes, after)
        before, opens = after, frozenset()
