"""Our own exact solver: posteriors of every cause and mechanism by a forward and a backward sweep over blocks.

The table that is carried from block to block is indexed by the bits open between them (`plan.py`); each block
multiplies in its own sum (`blocks.py`). The cost is the sum over blocks of their states times 2^open: linear
in hypotheses, exact, without cancellation. Tables are scaled at every step and the logarithm is kept, so neither
priors of 1e-9 nor thousands of blocks underflow. No result depends on the order of nodes, on hash seeds or on threads.
"""

from __future__ import annotations

import math
import string
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from ..errors import InferenceError
from ..network import Likelihood, Network, NodeKind
from .blocks import BlockTables, Members, sum_blocks
from .change import Kept, changed_plan
from .parts import Plan, Step
from .plan import plan_sweep
from .powers import Table
from .shapes import shape_at

_LABELS = string.ascii_letters[:-1]  # einsum labels of bits: at most 16 before a step and 16 fresh
_ROWS = string.ascii_letters[-1]  # the label of one row a group
_LOOP_LABELS = 12  # measured 2026-11: from about 10 bits on matrix products win, below it finding the path costs more
_CERTAIN = Likelihood(1.0, 1.0)


@dataclass(frozen=True, slots=True)
class Posterior:
    """What the evidence says.

    `log_evidence` is log10 of its probability; `probability` is P(on | evidence) of every cause and mechanism; `width`
    is the largest number of bits open at once. `sweep` holds the tables for further questions.
    """

    log_evidence: float
    probability: Mapping[str, float]
    width: int
    sweep: Sweep = field(repr=False, compare=False)


@dataclass(frozen=True, slots=True)
class Explains:
    """P(the symptom would not have occurred without it | evidence), for each cause and for no catalogued cause.

    `by_cause` and `unknown` count what its own link to the symptom did alone: these exclude each other. `through` is
    what a cause did beyond that through the causes it set off; left out where that is nothing.
    """

    by_cause: Mapping[str, float]
    unknown: float
    through: Mapping[str, float] = field(default_factory=dict)

    def needed(self, cause: str) -> float:
        """P(the symptom would not have occurred without this cause), its effects included; 0 for one without
        links."""
        return self.by_cause.get(cause, 0.0) + self.through.get(cause, 0.0)


@dataclass(frozen=True, slots=True)
class Folded:
    """Weight of each pattern of the named bits (axes in that order, index is the level, 1 is on), scaled to a largest
    value of 1; `log_scale` is log10 of what was divided out.

    Everything else is summed.
    """

    bits: tuple[str, ...]
    weights: Table
    log_scale: float


def solve(network: Network, like: Posterior | None = None) -> Posterior:
    """Exact posterior of a network.

    `like` is that of a network which differs in a few numbers: its plan and most of its sums are taken over.

    Raises InferenceError when the evidence is impossible under the model (naming the evidence at the place where it
    became so), when more than `WIDTH_LIMIT` bits are open at once, or when the network is malformed.
    """
    sweep = (like.sweep.changed(network) if like else None) or Sweep(plan_sweep(network))
    return Posterior(sweep.log_evidence, sweep.marginals(), sweep.plan.width, sweep)


def any_of(
    network: Network, groups: Mapping[str, Sequence[str]], posterior: Posterior | None = None
) -> dict[str, float]:
    """P(at least one member is on | evidence) for each group of causes and mechanisms; 0 for an empty group.

    One more forward sweep for all groups together; `posterior` is what `solve` said of this network, to save its
    sweeps.
    """
    return (posterior or solve(network)).sweep.any_of(groups)


def symptom_shares(network: Network, posterior: Posterior | None = None) -> Explains:
    """How much of the symptom each cause with a link of its own explains, in closed form (DESIGN.md section 6).

    explains(H) = on * p / (1 - p) * P(H | e, S off) * Z(S off) / Z, the leak in place of p for the unknown cause. A
    cause that reaches the symptom only through its effects gets 0. A symptom without evidence counts as one not
    looked at. Raises InferenceError without a symptom, for a symptom with inhibitors and for a link or leak of 1.
    """
    symptom = next((node for node in network.nodes if node.id == network.symptom), None)
    if symptom is None or symptom.kind is not NodeKind.SIGN or symptom.inhibitors or symptom.higher:
        raise InferenceError(
            f"The symptom is {network.symptom}, expected a sign without inhibitors or levels.",
            "Name one, or ask without shares.",
        )
    certain = [source for source, p in ((symptom.id, symptom.leak), *symptom.links) if p >= 1.0]
    if certain:
        raise InferenceError(
            f"The symptom {symptom.id} is sure with {certain[0]}.", "Use at most .999 for leak and links."
        )
    seen = network.evidence.get(symptom.id, _CERTAIN)
    posterior = posterior or solve(network)
    off = solve(replace(network, evidence={**network.evidence, symptom.id: Likelihood(1.0, 0.0)}), posterior)
    ratio = seen.on * 10.0 ** (off.log_evidence - posterior.log_evidence)
    by_cause = {node.id: 0.0 for node in network.nodes if node.kind is NodeKind.CAUSE}
    for source, p in symptom.links:
        if source in by_cause:
            by_cause[source] = ratio * p / (1.0 - p) * off.probability[source]
    return Explains(by_cause, ratio * symptom.leak / (1.0 - symptom.leak))


def fold(network: Network, bits: Sequence[str]) -> Folded:
    """The joint weight of some hidden nodes and shared signs, with everything else summed out.

    Evidence on the named shared signs themselves is left to the caller. A shared sign must have a parent.
    """
    sweep = Sweep(plan_sweep(network, tuple(bits)))
    last_open = sweep.plan.steps[-1].after if sweep.plan.steps else ()
    names = [bit.node for bit in last_open]
    weights = sweep.final.transpose([names.index(bit) for bit in bits])
    return Folded(tuple(bits), weights, sweep.log_evidence)


class Sweep:
    """The tables of one plan: forward before each block, the last of them after all (`final`), and backward after
    each.

    `earlier` is the sweep of a plan of which `kept` steps are shared: their sums are not made anew.
    """

    def __init__(self, plan: Plan, earlier: Sweep | None = None, kept: Kept = ()) -> None:
        self.plan = plan
        kept = kept or (None,) * len(plan.steps)
        anew = [step for step, old in zip(plan.steps, kept, strict=True) if old is None]
        sums = iter(sum_blocks((*shape_at(step, plan.model), step.block.count) for step in anew))
        axes = iter([_Axes.of(step) for step in anew])
        old_tables, old_axes = ([], []) if earlier is None else (earlier._tables, earlier._axes)
        self._tables: list[BlockTables] = [next(sums) if old is None else old_tables[old] for old in kept]
        self._axes: list[_Axes] = [next(axes) if old is None else old_axes[old] for old in kept]
        start = next((number for number, old in enumerate(kept) if old != number), len(kept))
        self._before: list[Table] = [np.ones(())] if earlier is None else earlier._before[: start + 1]
        self._logs: list[float] = [0.0] if earlier is None else earlier._logs[: start + 1]
        self._after: list[Table] = []
        self._sum_forward(start)
        self.log_evidence = (plan.model.log_constant + self._logs[-1]) / math.log(10.0)

    def _sum_forward(self, start: int) -> None:
        table, log = self._before[start], self._logs[start]
        for step, tables, axes in zip(self.plan.steps[start:], self._tables[start:], self._axes[start:], strict=True):
            table = _contracted(f"{axes.before},{axes.block}->{axes.after}", table, tables.total)
            top = float(table.max())
            if top == 0.0:
                raise _impossible(self.plan, step)
            table = table / top
            log += math.log(top) + tables.log_scale
            self._before.append(table)
            self._logs.append(log)

    @property
    def final(self) -> Table:
        return self._before[-1]

    def changed(self, network: Network) -> Sweep | None:
        """The sweep over a network that differs in a few numbers; None where it must be planned anew."""
        found = changed_plan(self.plan, network)
        return None if found is None else Sweep(found[0], self, found[1])

    def marginals(self) -> dict[str, float]:
        """P(on | evidence) of every hidden node, by place."""
        probability: dict[str, float] = {}
        for position, step in enumerate(self.plan.steps):
            tables = self._tables[position]
            around = self._around(position)
            total = float((tables.total * around).sum())
            by_pattern = tables.gathered(around).ravel()
            parts = (tables.with_on.reshape(-1, by_pattern.size) * by_pattern).sum(axis=1) / total
            found = np.minimum(parts, 1.0).tolist()
            for block in (step.block, *step.block.twins):
                probability.update(zip(block.hidden, found, strict=True))
        return {name: probability[name] for name in self.plan.model.nodes if name in probability}

    def any_of(self, groups: Mapping[str, Sequence[str]]) -> dict[str, float]:
        """See the function of this name.

        Carries, for each group, the weight with and without a member on so far.
        """
        members = self._members_by_block(groups)
        result = dict.fromkeys(groups, 0.0)
        spread: list[str] = []
        for group in sorted(members):
            if len(members[group]) == 1:
                [(position, inside)] = members[group].items()
                tables = self._tables[position]
                around = self._around(position)
                part = float((tables.with_any(inside) * tables.gathered(around)).sum())
                result[group] = min(1.0, part / float((tables.total * around).sum()))
            elif members[group]:
                spread.append(group)
        result.update(self._any_of_spread({group: members[group] for group in spread}))
        return result

    def _any_of_spread(self, members: Mapping[str, Mapping[int, Members]]) -> dict[str, float]:
        if not members:
            return {}
        touched: dict[int, list[tuple[int, Members]]] = defaultdict(list)
        for row, group in enumerate(members):
            for position, inside in members[group].items():
                touched[position].append((row, inside))
        some, none = np.zeros(len(members)), np.ones(len(members))
        for position, axes in enumerate(self._axes):
            tables = self._tables[position]
            same = f"{_ROWS}{axes.before},{axes.block}->{_ROWS}{axes.after}"
            by_row = f"{_ROWS}{axes.before},{_ROWS}{axes.block}->{_ROWS}{axes.after}"
            next_some = _contracted(same, some, tables.total)
            next_none = _contracted(same, none, tables.total)
            if touched[position]:
                rows = [row for row, _ in touched[position]]
                stacked = tables.followed(np.stack([tables.with_any(inside) for _, inside in touched[position]]))
                next_some[rows] += _contracted(by_row, none[rows], stacked)
                next_none[rows] = _contracted(by_row, none[rows], np.maximum(tables.total - stacked, 0.0))
            top = (next_some + next_none).reshape(len(members), -1).max(axis=1)
            scale = top.reshape((-1,) + (1,) * (next_some.ndim - 1))
            some, none = next_some / scale, next_none / scale
        return {group: float(some[row] / (some[row] + none[row])) for row, group in enumerate(members)}

    def _members_by_block(self, groups: Mapping[str, Sequence[str]]) -> dict[str, dict[int, Members]]:
        result: dict[str, dict[int, Members]] = {}
        for group, names in groups.items():
            inside: dict[int, dict[int, set[int]]] = defaultdict(lambda: defaultdict(set))
            for name in names:
                if name not in self.plan.slots:
                    raise InferenceError(
                        f"{name} of group {group} is no cause or mechanism here.", "Name hidden nodes only."
                    )
                step, copy, position = self.plan.slots[name]
                inside[step][copy].add(position)
            result[group] = {
                step: tuple(sorted(Counter(tuple(sorted(own)) for own in inside[step].values()).items()))
                for step in sorted(inside)
            }
        return result

    def _around(self, position: int) -> Table:
        """Weight, up to a factor, of everything outside a block for each index of the block's table."""
        axes = self._axes[position]
        around: Table = _contracted(
            f"{axes.before},{axes.after}->{axes.block}", self._before[position], self._backward()[position]
        )
        return around

    def _backward(self) -> list[Table]:
        if len(self._after) < len(self._axes):
            table = np.ones(self.final.shape)
            after: list[Table] = []
            for axes, tables in zip(reversed(self._axes), reversed(self._tables), strict=True):
                after.append(table)
                table = _contracted(f"{axes.after},{axes.block}->{axes.before}", table, tables.total)
                table = table / table.max()
            self._after = after[::-1]
        return self._after


@dataclass(frozen=True, slots=True)
class _Axes:
    """Einsum labels of a step: of the table before, of the block's table, and of the table after."""

    before: str
    block: str
    after: str

    @classmethod
    def of(cls, step: Step) -> _Axes:
        labels = iter(_LABELS)
        before = dict(zip(step.before, labels, strict=False))
        after = {bit: label for bit, label in before.items() if bit not in step.closes}
        block: list[str] = []
        for bit in (*step.block.reads, *step.block.writes):
            if bit not in before:
                after[bit] = next(labels)
            block.append(before[bit] if bit in before else after[bit])
        for bit in step.block.raises:
            if bit not in step.opens:
                block.append(before[bit])
            if bit not in step.closes:
                after[bit] = next(labels)
                block.append(after[bit])
        return cls("".join(before.values()), "".join(block), "".join(after[bit] for bit in step.after))


def _contracted(subscripts: str, first: Table, second: Table) -> Table:
    """Einsum, through matrix products where there are so many bits that its loops over axes of two take longest."""
    table: Table = np.einsum(subscripts, first, second, optimize=len(set(subscripts)) > _LOOP_LABELS)
    return table


def _impossible(plan: Plan, step: Step) -> InferenceError:
    """The error for evidence of probability 0, naming the hard evidence of the block at which no state was left."""
    here = {*step.block.hidden, *step.block.signs, *(bit.node for bit in step.closes if bit.kind == "sign")}
    seen = {**plan.model.weight, **plan.model.likelihood}
    told = [
        f"{name} is {'present' if seen[name].off == 0.0 else 'absent'}"
        for name in sorted(here)
        if name in seen and 0.0 in seen[name].by_level
    ]
    what = ", ".join(told) or "see the signs there"
    return InferenceError(
        f"The evidence is impossible under the model; no state is left at {step.block.name}: {what}.",
        "Give one of these signs a leak, or a cause that can turn it on.",
    )
