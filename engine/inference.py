"""The network that people see: the explanation network in pgmpy, which must agree with our own solver.

This is the only module that imports pgmpy, inside functions (3 to 5 s), and no pgmpy object leaves it.
"""

from __future__ import annotations

import itertools
import logging
import re
import warnings
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from .counterfactual import symptom_of, twin
from .errors import InferenceError
from .explanation import ELSEWHERE, Explanation, Residual, explanation, links_from
from .frontier.powers import Table
from .frontier.sweep import Posterior
from .levels import steps_of
from .network import Level, Likelihood, Network, Node, NodeKind

if TYPE_CHECKING:
    from pgmpy.models import DiscreteBayesianNetwork

AGREEMENT = 1e-9  # DESIGN.md section 5: a larger difference of posteriors is an internal error
_PARENT_LIMIT = 10  # parents of one flat noisy-OR table; DESIGN.md section 5 says about 12, judgement


def _states(top: int = 1) -> tuple[str, ...]:
    return ("off", "on") if top == 1 else ("off", *(f"level{level}" for level in range(1, 1 + top)))


@dataclass(frozen=True, slots=True)
class CrossCheck:
    """The causes whose posterior pgmpy confirmed, and the largest absolute difference of probability found."""

    causes: tuple[str, ...]
    largest_difference: float


def check(network: Network, posterior: Posterior, keep: Sequence[str]) -> CrossCheck:
    """Ask pgmpy for the posteriors of the kept causes; raises InferenceError where it differs by more than 1e-9."""
    shown = explanation(network, keep)
    answers = _ask_pgmpy(shown, shown.kept)
    differences = {cause: abs(answers[cause] - posterior.probability[cause]) for cause in shown.kept}
    worst = max(shown.kept, key=lambda cause: differences[cause])
    if not differences[worst] <= AGREEMENT:
        raise InferenceError(
            f"Internal error: pgmpy gives {answers[worst]!r} for {worst}, our solver {posterior.probability[worst]!r}.",
            "Please report this bundle.",
        )
    return CrossCheck(shown.kept, differences[worst])


@dataclass(frozen=True, slots=True)
class Answer:
    """P(present | evidence) of each kept cause, and P(the symptom occurs in the world asked about | evidence), None
    where the network has none that was looked at."""

    causes: Mapping[str, float]
    symptom: float | None


def ask(shown: Explanation, without: Sequence[str] = ()) -> Answer:
    """What the evidence of an explanation network says, and whether the symptom would be there `without` some causes,
    all else as it was (Pearl's do(off), with what was seen kept).

    Raises InferenceError for a name that is no cause of it, and where the evidence is impossible.
    """
    network = shown.network
    if network.symptom not in {node.id for node in network.nodes} or network.symptom is None:
        return Answer(_ask_pgmpy(shown, shown.kept), None)
    asked, world = network.symptom, shown
    if without:
        symptom, both = symptom_of(network), twin(network, without)
        seen = replace(symptom, leak=0.0, links=((both.kept.id, 1.0), (both.lost.id, 1.0)))
        asked = both.kept.id
        world = replace(shown, network=replace(network, nodes=(*both.nodes, both.kept, both.lost, seen)))
    found = _ask_pgmpy(world, (*shown.kept, asked))
    return Answer({cause: found[cause] for cause in shown.kept}, found[asked])


def to_bif(shown: Explanation) -> str:
    """The explanation network as BIF text.

    Ids become BIF identifiers, with the id itself in the property `id`; what was seen of a variable is in the
    properties `evidence_off`, `evidence_on` or `evidence_level1`, … (its likelihoods): BIF has no place for evidence.
    """
    evidence = _all_evidence(shown)
    with _quiet_pgmpy():
        from pgmpy.readwrite import BIFWriter

        model, names = _model(shown)
        for name, identifier in names.items():
            told = {"id": f'"{name}"'}
            if name in evidence:
                seen = evidence[name].by_level
                told |= {f"evidence_{state}": str(p) for state, p in zip(_states(len(seen) - 1), seen, strict=True)}
            model.nodes[identifier].clear()
            model.nodes[identifier].update(told)
        return str(BIFWriter(model))


def _ask_pgmpy(shown: Explanation, asked: Sequence[str]) -> dict[str, float]:
    with _quiet_pgmpy():
        from pgmpy.factors.discrete import TabularCPD
        from pgmpy.inference import VariableElimination

        model, names = _model(shown)
        evidence = _all_evidence(shown)
        hard: dict[str, str] = {}
        soft: list[TabularCPD] = []
        for name, variable in names.items():
            if name not in evidence:
                continue
            seen = evidence[name].by_level
            states = _states(len(seen) - 1)
            possible = [state for state, p in zip(states, seen, strict=True) if p > 0.0]
            if len(possible) == 1:
                hard[variable] = possible[0]
            else:
                shares = [[p / sum(seen)] for p in seen]
                soft.append(TabularCPD(variable, len(seen), shares, state_names={variable: list(states)}))
        answers: dict[str, float] = {}
        for name in asked:
            variable = names[name]
            if variable in hard:
                answers[name] = float(hard[variable] == "on")
                continue
            # a fresh one for each question: pgmpy adds the virtual evidence to the elimination it was asked of
            found = VariableElimination(model).query(
                [variable], evidence=hard, virtual_evidence=soft, show_progress=False
            )
            answers[name] = float(found.get_value(**{variable: "on"}))
        return answers


def _all_evidence(shown: Explanation) -> dict[str, Likelihood]:
    """The evidence of the kept part, and the statement that the residual's pattern is that of the nodes it reads."""
    reads = shown.residual.reads if shown.residual else ()
    return {**shown.network.evidence, **{_agreement(name): Likelihood(0.0, 1.0) for name in reads}}


def _agreement(name: str) -> str:
    return f"{ELSEWHERE} agrees on {name}"


@dataclass(frozen=True, slots=True)
class _Table:
    """A conditional table: axis 0 the variable's states, then an axis for each parent."""

    variable: str
    states: tuple[str, ...]
    parents: tuple[str, ...]
    values: Table


def _model(shown: Explanation) -> tuple[DiscreteBayesianNetwork, dict[str, str]]:
    """The pgmpy model, and its identifier for each id."""
    from pgmpy.factors.discrete import TabularCPD
    from pgmpy.models import DiscreteBayesianNetwork

    residual = [] if shown.residual is None else list(_residual_tables(shown.residual))
    tops = {table.variable: len(table.states) - 1 for table in residual}
    tables = [*_node_tables(shown.network, tops), *residual]
    names = _identifiers([table.variable for table in tables])
    states = {table.variable: table.states for table in tables}
    model = DiscreteBayesianNetwork()
    model.add_nodes_from(names.values())
    model.add_edges_from((names[parent], names[table.variable]) for table in tables for parent in table.parents)
    for table in tables:
        model.add_cpds(
            TabularCPD(
                names[table.variable],
                len(table.states),
                table.values.reshape(len(table.states), -1),
                evidence=[names[parent] for parent in table.parents],
                evidence_card=[len(states[parent]) for parent in table.parents],
                state_names={names[name]: list(states[name]) for name in (table.variable, *table.parents)},
            )
        )
    return model, names


def _node_tables(network: Network, tops: Mapping[str, int]) -> Iterator[_Table]:
    """The tables of the nodes; `tops` are the highest levels of what else drives them."""
    place_of = {node.id: node.place or node.id for node in network.nodes}
    tops = dict(tops)
    for whole in network.nodes:
        for node in _with_few_parents(whole, place_of):
            tops[node.id] = node.top
            parents = tuple(dict.fromkeys(parent for parent, _ in (*node.links, *node.inhibitors)))
            state = dict(zip(parents, np.indices([1 + tops[parent] for parent in parents]), strict=True))
            at_most = np.ones([1 + tops[parent] for parent in parents])
            found: list[Table] = []
            for level, step in reversed(list(enumerate(steps_of(node), start=1))):
                on = np.full(at_most.shape, step.leak)
                off = 1.0 - on
                for parent, p in step.links:
                    # A parent with levels is an OR of others, or what elsewhere does: it passes on the level it has.
                    acts = p * (state[parent] >= 1) if tops[parent] == 1 else 1.0 * (state[parent] >= level)
                    on, off = on + off * acts, off * (1.0 - acts)
                found.append(at_most * on)
                at_most = at_most * off
            for parent, k in node.inhibitors:
                acts = k * state[parent]
                at_most = at_most + acts * sum(found)
                found = [part * (1.0 - acts) for part in found]
            yield _Table(node.id, _states(node.top), parents, np.stack([at_most, *reversed(found)]))


def _with_few_parents(node: Node, place_of: Mapping[str, str]) -> Iterator[Node]:
    """The node, behind one OR a place where it has too many parents for a flat table."""
    if len(node.links) <= _PARENT_LIMIT:
        yield node
        return
    by_place: dict[str, list[str]] = defaultdict(list)
    for parent, _ in node.links:
        by_place[place_of.get(parent, ELSEWHERE)].append(parent)
    ors: list[Node] = []
    for place, parents in by_place.items():
        for start in range(0, len(parents), _PARENT_LIMIT):
            links, higher = links_from(node, set(parents[start : start + _PARENT_LIMIT]).__contains__)
            silent = tuple(Level(0.0, level.links) for level in higher)
            name = f"{node.id} from {place}/{start}"
            ors.append(Node(name, NodeKind.MECHANISM, place, 0.0, links, higher=silent))
    place_of = {**place_of, **dict.fromkeys((one.id for one in ors), ELSEWHERE)}
    yield from ors
    passed_on = tuple((one.id, 1.0) for one in ors)
    higher = tuple(Level(level.leak, passed_on) for level in node.higher)
    yield from _with_few_parents(replace(node, links=passed_on, higher=higher), place_of)


def _residual_tables(residual: Residual) -> Iterator[_Table]:
    """The residual as a root: its patterns, the bits it sets, and one agreement a node it reads.

    A root that must agree with what it reads, instead of a child of it: a child could be its own ancestor, since the
    folded part both follows from the kept part and drives it.
    """
    patterns = np.argwhere(residual.weights > 0.0)
    states = tuple("p" + "".join(map(str, pattern)) for pattern in patterns.tolist())
    yield _Table(ELSEWHERE, states, (), residual.weights[tuple(patterns.T)])
    for position, name in enumerate((*residual.reads, *residual.sets)):
        levels = np.arange(residual.weights.shape[position])
        is_state = (levels[:, None] == patterns[:, position]).astype(np.float64)
        if position < len(residual.reads):
            yield _Table(_agreement(name), _states(), (name, ELSEWHERE), np.stack([1.0 - is_state, is_state]))
        else:
            yield _Table(name, _states(len(levels) - 1), (ELSEWHERE,), is_state)


def _identifiers(ids: Sequence[str]) -> dict[str, str]:
    """BIF identifiers, readable and distinct, also to readers that ignore case (pgmpy's own does)."""
    names: dict[str, str] = {}
    taken: set[str] = set()
    for name in ids:
        stem = re.sub(r"\W+", "_", name, flags=re.ASCII).strip("_")
        stem = stem if stem[:1].isalpha() else f"n_{stem}"
        unique = stem
        for number in itertools.count(2):
            if unique.lower() not in taken:
                break
            unique = f"{stem}_{number}"
        taken.add(unique.lower())
        names[name] = unique
    return names


@contextmanager
def _quiet_pgmpy() -> Iterator[None]:
    """pgmpy warns of its own deprecations on import and logs its bookkeeping; neither is for our reader."""
    logger = logging.getLogger("pgmpy")
    level = logger.level
    logger.setLevel(logging.ERROR)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        logger.setLevel(level)
