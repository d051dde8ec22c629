"""Tempers: how much of what the grades of a family of signs say is believed (DESIGN.md section 6: likelihood ratios are
tempered where calibration asks for it, never posteriors).

A temper t turns the Bayes factor of a sign for a cause, read alone, into its t-th power: 1 leaves it, 0 would make the
sign say nothing. It is folded into leak and grades, so that the network stays a network.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Annotated, Literal

from pydantic import Field

from ..engine.rules import KnowledgeBase, Rule, Sign, SignLink, Text

ByLevel = tuple[float, ...]


class Temper(Rule):
    """Exponent of the Bayes factors of one family of signs, with its basis."""

    t: Annotated[float, Field(gt=0, le=1)]
    basis: Text


class Tempers(Rule):
    """`families`: by folder below `signs/`; a family that is not named is believed as graded."""

    format: Literal[1]
    families: Mapping[str, Temper]


def tempered(knowledge: KnowledgeBase, families: Mapping[str, str], tempers: Mapping[str, float]) -> KnowledgeBase:
    """The rules with every sign's leak and grades tempered. `families`: family of each sign; `tempers`: exponent of a
    family, 1 where none is given."""
    if all(t == 1.0 for t in tempers.values()):
        return knowledge
    new_leaks = {
        name: _leak(sign.leak.by_level, _steepest(knowledge, name), tempers.get(families[name], 1.0))
        for name, sign in knowledge.signs.items()
    }

    def link(name: str, cell: SignLink) -> SignLink:
        leak, t = knowledge.signs[name].leak.by_level, tempers.get(families[name], 1.0)
        return cell if t == 1.0 else _regraded(cell, leak, new_leaks[name], t)

    def links(signs: Mapping[str, SignLink]) -> dict[str, SignLink]:
        return {name: link(name, cell) for name, cell in signs.items()}

    return replace(
        knowledge,
        causes={key: one.model_copy(update={"signs": links(one.signs)}) for key, one in knowledge.causes.items()},
        mechanisms={
            key: one.model_copy(update={"signs": links(one.signs)}) for key, one in knowledge.mechanisms.items()
        },
        signs={name: _releaked(sign, new_leaks[name]) for name, sign in knowledge.signs.items()},
    )


def _steepest(knowledge: KnowledgeBase, sign: str) -> ByLevel:
    """The largest grade of a sign at each level: the one whose factors are tempered exactly, present and absent."""
    grades = list(_grades(knowledge, sign))
    return tuple(map(max, zip(*grades, strict=True))) if grades else knowledge.signs[sign].leak.by_level


def _grades(knowledge: KnowledgeBase, sign: str) -> Iterator[ByLevel]:
    of_causes = (one.signs for one in knowledge.causes.values())
    of_mechanisms = (one.signs for one in knowledge.mechanisms.values())
    for signs in (*of_causes, *of_mechanisms):
        if sign in signs:
            yield signs[sign].by_level


def _leak(leak: ByLevel, steepest: ByLevel, t: float) -> ByLevel:
    """Leaks for which the steepest grade g keeps both (g / leak)^t when present and ((1 - g) / (1 - leak))^t when
    absent; the leak itself where nothing raises the sign."""
    new = []
    for innocent, grade in zip(leak, steepest, strict=True):
        if innocent == 0.0 or grade <= innocent or t == 1.0:
            new.append(innocent)
            continue
        present, absent = (grade / innocent) ** t, ((1 - grade) / (1 - innocent)) ** t
        new.append((1 - absent) / (present - absent))
    return _falling(new)


def _regraded(cell: SignLink, leak: ByLevel, new_leak: ByLevel, t: float) -> SignLink:
    """The grade that is as much more probable than the new leak as the old was than the old, to the power of t."""
    new = _falling(
        [
            min(1.0, innocent * (grade / before) ** t) if before > 0 else grade
            for grade, before, innocent in zip(cell.by_level, leak, new_leak, strict=True)
        ]
    )
    return cell.model_copy(update={"p": new if isinstance(cell.p, tuple) else new[0]})


def _releaked(sign: Sign, leak: ByLevel) -> Sign:
    p = leak if isinstance(sign.leak.p, tuple) else leak[0]
    return sign.model_copy(update={"leak": sign.leak.model_copy(update={"p": p})})


def _falling(levels: list[float]) -> ByLevel:
    """Levels are cumulative: none more probable than the one below."""
    return tuple(min(levels[: level + 1]) for level in range(len(levels)))
