"""Whether the network can give the grades that a cause asks for: P(sign on | only this cause), by `engine.one_cause`.

A grade is met by a direct link that adds what the mechanisms leave open. What they already give beyond the grade cannot
be taken back: then the mechanism is to be split, the grade corrected, or the reason given in `induced_ok`
(DESIGN.md section 5). Places are symbolic here: the relations that lead to them from the cause.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator

import networkx as nx

from ..engine.one_cause import (
    ByLevel,
    Chain,
    MechanismNode,
    SignReach,
    ancestors,
    induced_off,
    induced_probability,
    mechanism_states,
    own_leak,
)
from ..engine.rules import Cause, Relation
from ..engine.scope import Scope
from .loader import Library, RuleFile
from .place_relations import HERE, Route, moved

TOLERANCE = 0.05  # DESIGN.md section 5
_FARTHEST = 3  # relations from the cause; no cause names a sign more than one relation away, detours come back sooner

Step = tuple[str, Route]
"""A mechanism and the place it is reached at."""


def induced_problems(library: Library, file: RuleFile[Cause]) -> Iterator[str]:
    """Every sign of a cause whose induced probability misses its grade by more than the tolerance.

    The library must be sound: what is named exists, and nothing drives itself at one place.
    """
    chain = _chain(library, file.rule)
    for name, link in file.rule.signs.items():
        given = induced_probability_of(library, file.rule, name, chain)
        misses = [abs(induced - p) for induced, p in zip(given, link.by_level, strict=True)]
        if max(misses) > TOLERANCE and link.induced_ok is None:
            worst = misses.index(max(misses))
            level = f" at level {worst + 1}" if len(misses) > 1 else ""
            yield file.problem(
                ("signs", name, "p"),
                f"{file.rule.id}: {name} is graded {link.by_level[worst]:.3g}{level}, but the network gives "
                f"{given[worst]:.3g} through the mechanisms; split a mechanism, correct the grade, or say why in "
                "induced_ok",
            )


def induced_probability_of(
    library: Library, cause: Cause, sign: str, chain: tuple[tuple[Step, MechanismNode], ...] | None = None
) -> ByLevel:
    """P(sign on | this cause and no other) in the compiled network, for each level of the sign."""
    steps = _chain(library, cause) if chain is None else chain
    cell = cause.signs[sign]
    rule = library.signs[sign].rule
    place = moved(cause.scope, HERE, cell.at)
    through = tuple(
        (node.id, link.by_level)
        for (name, route), node in steps
        if (link := library.mechanisms[name].rule.signs.get(sign)) is not None
        and moved(cause.scope, route, link.at) == place
    )
    reach = SignReach(sign, sign, Scope.of(rule.scope, sign), rule.leak.by_level, through, cell)
    nodes = ancestors(reach, Chain(tuple(node for _, node in steps), (reach,)))
    if cell.effect == "raises":
        return induced_probability(reach, nodes)
    # What lowers a sign takes the share 1 - p/leak off whatever turns it on, mechanisms of the same cause included.
    off = induced_off(reach, mechanism_states(nodes, cause_on=True))
    parts = zip(cell.by_level, rule.leak.by_level, own_leak(reach, nodes), off, strict=True)
    return tuple((1 - (1 - own) * by_mechanisms) * p / leak for p, leak, own, by_mechanisms in parts)


def _chain(library: Library, cause: Cause) -> tuple[tuple[Step, MechanismNode], ...]:
    """Mechanisms that a cause reaches, parents first, without what spreads upstream: that is other places' own."""
    by_cause = {(name, moved(cause.scope, HERE, drive.at)): drive.p for name, drive in cause.drives.items()}
    parents: dict[Step, dict[Step, float]] = defaultdict(dict)
    graph: nx.DiGraph[Step] = nx.DiGraph()
    graph.add_nodes_from(by_cause)
    waiting = list(by_cause)
    while waiting:
        step = waiting.pop()
        for target, drive in library.mechanisms[step[0]].rule.drives.items():
            there = (target, moved(cause.scope, step[1], drive.at))
            if drive.at is Relation.PAUSED_UPSTREAM or len(there[1]) > _FARTHEST:
                continue
            if there not in graph:
                waiting.append(there)
            graph.add_edge(step, there)
            parents[there][step] = drive.p
    order = nx.lexicographical_topological_sort(graph, key=_id)
    return tuple(
        (
            step,
            MechanismNode(
                _id(step),
                library.mechanisms[step[0]].rule.leak.p,
                by_cause.get(step, 0.0),
                tuple(sorted((_id(parent), p) for parent, p in parents[step].items())),
            ),
        )
        for step in order
    )


def _id(step: Step) -> str:
    return f"{step[0]}@{'/'.join(step[1])}"
