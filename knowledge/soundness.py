"""What the engine relies on: names that rules mention exist, links lead to the right kind of place, predicates are SQL.

A knowledge base with such a problem is not loaded. What makes a rule good rather than usable is judged in `lint.py`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from difflib import get_close_matches
from typing import Any

import networkx as nx

from ..engine.rules import Cause, Drive, Relation, SignLink
from ..engine.scope import ScopeKind
from .loader import Library, RuleFile
from .place_relations import CAUSE_SCOPES, relation_problem
from .sign_checks import sign_problems

Path = tuple[str | int, ...]


def soundness_problems(library: Library) -> tuple[str, ...]:
    """All problems between readable rules, as `file:line:column: path: what`."""
    found: list[str] = []
    for cause in library.causes.values():
        if cause.rule.scope not in CAUSE_SCOPES:
            what = f"no {cause.rule.scope} is ever suspected; expected one of {', '.join(sorted(CAUSE_SCOPES))}"
            found.append(cause.problem(("scope",), what))
        found.extend(_drive_problems(library, cause, "triggers", cause.rule.triggers, library.causes))
        found.extend(_rival_problems(library, cause))
    for file in library.drivers():
        found.extend(_drive_problems(library, file, "drives", file.rule.drives, library.mechanisms))
        found.extend(_sign_link_problems(library, file, file.rule.signs))
    for mechanism in library.mechanisms.values():
        for name, link in mechanism.rule.signs.items():
            if link.effect != "raises":
                what = f"a mechanism can only raise a sign; {link.effect} belongs to a cause"
                found.append(mechanism.problem(("signs", name, "effect"), what))
    for sign in library.signs.values():
        found.extend(sign_problems(sign))
        if sign.rule.id in library.mechanisms:
            taken_by = library.mechanisms[sign.rule.id].relative
            found.append(sign.problem(("id",), f"{sign.rule.id!r} is already the id of {taken_by}"))
    if library.tempers:
        families = {family: family for family in library.sign_families.values()}
        for family in library.tempers.rule.families:
            if family not in families:
                found.extend(_unknown(library, library.tempers, ("families", family), "sign family", family, families))
    found.extend(
        _cycles(library.mechanisms, {key: file.rule.drives for key, file in library.mechanisms.items()}, "drives")
    )
    found.extend(_cycles(library.causes, {key: file.rule.triggers for key, file in library.causes.items()}, "triggers"))
    return tuple(found)


def _sign_link_problems(library: Library, file: RuleFile[Any], links: Mapping[str, SignLink]) -> Iterator[str]:
    for name, link in links.items():
        at: Path = ("signs", name)
        if name not in library.signs:
            yield from _unknown(library, file, at, "sign", name, library.signs)
            continue
        sign = library.signs[name].rule
        leaks = sign.leak.by_level
        yield from _place_problems(file, at, name, link.at, sign.scope)
        if len(link.by_level) != sign.top:
            yield file.problem((*at, "p"), f"has {len(link.by_level)} numbers, {name} has {sign.top} levels")
            continue
        for p, leak in zip(link.by_level, leaks, strict=True):
            if link.effect == "raises" and p < leak:
                yield file.problem(
                    (*at, "p"), f"{p:g} is below the sign's leak {leak:g}; give effect: suppresses or effect: excludes"
                )
            elif link.effect != "raises" and p >= leak:
                yield file.problem(
                    (*at, "effect"), f"{link.effect} needs a p below the sign's leak {leak:g} (got {p:g})"
                )
        if link.effect == "suppresses" and sign.levels:
            yield file.problem((*at, "effect"), f"{name} has levels, and one share cannot suppress them; say excludes")


def _drive_problems(
    library: Library,
    file: RuleFile[Any],
    key: str,
    drives: Mapping[str, Drive],
    targets: Mapping[str, RuleFile[Any]],
) -> Iterator[str]:
    for name, drive in drives.items():
        if name not in targets:
            yield from _unknown(library, file, (key, name), "mechanism" if key == "drives" else "cause", name, targets)
        else:
            yield from _place_problems(file, (key, name), name, drive.at, targets[name].rule.scope)


def _rival_problems(library: Library, file: RuleFile[Cause]) -> Iterator[str]:
    for index, rival in enumerate(file.rule.looks_like):
        at: Path = ("looks_like", index)
        if rival.cause not in library.causes:
            yield from _unknown(library, file, (*at, "cause"), "cause", rival.cause, library.causes)
        elif rival.tell_apart_by not in {*file.rule.signs, *library.causes[rival.cause].rule.signs}:
            what = f"{rival.tell_apart_by!r} is a sign of neither {file.rule.id} nor {rival.cause}"
            yield file.problem((*at, "tell_apart_by"), what)


def _unknown(
    library: Library, file: RuleFile[Any], at: Path, kind: str, name: str, known: Mapping[str, object]
) -> Iterator[str]:
    if name not in library.broken:
        near = get_close_matches(name, known, n=1)
        yield file.problem(at, f"there is no {kind} {name!r}" + (f"; did you mean {near[0]!r}?" if near else ""))


def _place_problems(file: RuleFile[Any], at: Path, name: str, relation: Relation, target: ScopeKind) -> Iterator[str]:
    what = relation_problem(file.rule.scope, relation, target, name)
    if what is not None:
        yield file.problem((*at, "at"), what)


def _cycles(files: Mapping[str, RuleFile[Any]], drives: Mapping[str, Mapping[str, Drive]], key: str) -> Iterator[str]:
    """A loop at one place could not be ordered; from place to place the order of places decides."""
    graph = nx.DiGraph(
        (name, target)
        for name, links in drives.items()
        for target, link in links.items()
        if link.at is Relation.SELF and target in files
    )
    for loop in sorted(sorted(part) for part in nx.strongly_connected_components(graph)):
        if len(loop) > 1 or graph.has_edge(loop[0], loop[0]):
            what = f"{', '.join(loop)}: a loop at one place; feedback is a sign, never a link (DESIGN.md section 5)"
            yield files[loop[0]].problem((key,), what)
