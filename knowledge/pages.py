"""What `causeline kb list`, `show` and `new` print. Plain text; the command line only passes it on."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from textwrap import fill, indent

from ..engine.errors import UsageError
from ..engine.rules import Cause, Drive, KnowledgeBase, Mechanism, Relation, Sign, SignGrade, SignLink
from .casefile import MANDATORY_CASES
from .loader import CASES_SUFFIX

_WIDTH = 100  # characters, judgement: fits a terminal beside an editor


@dataclass(frozen=True, slots=True)
class RuleRow:
    """One line of `kb list`. `status` is "" for mechanisms and signs."""

    kind: str
    id: str
    scope: str
    status: str
    title: str


def rows(knowledge: KnowledgeBase) -> tuple[RuleRow, ...]:
    """All rules: causes, then mechanisms, then signs, each in order of the ids."""
    return (
        *(RuleRow("cause", one.id, one.scope, one.status, one.title) for one in knowledge.causes.values()),
        *(RuleRow("mechanism", one.id, one.scope, "", one.title) for one in knowledge.mechanisms.values()),
        *(RuleRow("sign", one.id, one.scope, "", one.question) for one in knowledge.signs.values()),
    )


def page(knowledge: KnowledgeBase, rule: str) -> str:
    """The page of a cause, mechanism or sign. Raises UsageError for an unknown id."""
    if rule in knowledge.causes:
        return _cause_page(knowledge, knowledge.causes[rule])
    if rule in knowledge.mechanisms:
        return _mechanism_page(knowledge, knowledge.mechanisms[rule])
    if rule in knowledge.signs:
        return _sign_page(knowledge, knowledge.signs[rule])
    raise UsageError(f"There is no cause, mechanism or sign {rule!r}.", "`causeline kb list` shows all ids.")


def _cause_page(knowledge: KnowledgeBase, cause: Cause) -> str:
    raised = {name: link for name, link in cause.signs.items() if link.effect == "raises"}
    lowered = {name: link for name, link in cause.signs.items() if link.effect != "raises"}
    return _text(
        f"{cause.id}: {cause.title}",
        f"status {cause.status}, scope {cause.scope}, domain {cause.domain}, loop class {cause.loop}; {_prior(cause)}",
        ("Mechanism", (cause.mechanism, *_drives("drives", cause.drives), *_drives("triggers", cause.triggers))),
        ("Supports", tuple(_sign_lines(knowledge, raised))),
        ("Rules out", tuple(_refuting_lines(knowledge, raised, lowered))),
        ("Looks like", tuple(f"{rival.cause}: told apart by {rival.tell_apart_by}" for rival in cause.looks_like)),
        ("First checks", cause.first_checks),
        ("Remedy", (cause.remedy,)),
        ("References", cause.references),
    )


def _prior(cause: Cause) -> str:
    if cause.hazard is not None:
        return f"starts {cause.hazard.rate:g} times a day and {cause.hazard.per} ({cause.hazard.basis})"
    assert cause.prevalence is not None
    return f"present at {cause.prevalence.p:g} of each {cause.prevalence.per} ({cause.prevalence.basis})"


def _mechanism_page(knowledge: KnowledgeBase, mechanism: Mechanism) -> str:
    by = [one.id for one in _drivers(knowledge) if mechanism.id in one.drives]
    return _text(
        f"{mechanism.id}: {mechanism.title}",
        f"mechanism, scope {mechanism.scope}, on by itself {mechanism.leak.p:g} ({mechanism.leak.basis})",
        ("Mechanism", (mechanism.description, *_drives("drives", mechanism.drives))),
        ("Driven by", tuple(by)),
        ("Supports", tuple(_sign_lines(knowledge, mechanism.signs))),
        ("References", mechanism.references),
    )


def _sign_page(knowledge: KnowledgeBase, sign: Sign) -> str:
    mentions = [f"{one.id}: {_strength(one.signs[sign.id])}" for one in _drivers(knowledge) if sign.id in one.signs]
    return _text(
        f"{sign.id}: {sign.question}",
        f"sign, scope {sign.scope}, present at an innocent place {_grades(sign.leak)} ({sign.leak.basis})",
        ("Levels", tuple(f"{level}: {meaning}" for level, meaning in enumerate(sign.levels, start=1))),
        ("Asked of", tuple(_test_lines(sign))),
        ("Read by", (f"{sign.read} ({sign.cost})",)),
        ("Mentioned by", tuple(mentions)),
        ("References", sign.references),
    )


def _drivers(knowledge: KnowledgeBase) -> tuple[Cause | Mechanism, ...]:
    return (*knowledge.causes.values(), *knowledge.mechanisms.values())


def _test_lines(sign: Sign) -> Iterator[str]:
    if sign.signal is not None:
        yield f"{sign.signal.metric}: present when {sign.signal.present}"
        for level, higher in enumerate(sign.signal.higher, start=2):
            yield f"{sign.signal.metric}: level {level} when {higher.present}"
        if sign.signal.absent is not None:
            yield f"{sign.signal.metric}: absent when {sign.signal.absent}"
        limits = sign.signal.limits
    elif sign.event is not None:
        yield f"events: {', '.join(sign.event.kinds)}"
        limits = {"before_s": sign.event.before_s, "after_s": sign.event.after_s}
    else:
        assert sign.pattern is not None
        yield f"pattern {sign.pattern.pattern}"
        limits = sign.pattern.limits
    for name, limit in limits.items():
        number = None if limit.value is None else f"{limit.value:.12g}"
        value = " or ".join(one for one in (limit.metric, number) if one is not None)
        yield f"{name} = {value} {limit.unit} ({limit.basis})"


def _sign_lines(knowledge: KnowledgeBase, links: Mapping[str, SignLink]) -> Iterator[str]:
    for name, link in sorted(links.items(), key=lambda item: (-_support(knowledge, *item), item[0])):
        where = "" if link.at is Relation.SELF else f" at {link.at}"
        mark = ", discriminating" if link.discriminating else ""
        yield f"{name}{where}: {_strength(link)}, {_grades(knowledge.signs[name].leak)} without{mark} ({link.basis})"


def _support(knowledge: KnowledgeBase, sign: str, link: SignLink) -> float:
    """How many times likelier a sign is with the cause, at the level that says most."""
    return max(p / leak for p, leak in zip(link.by_level, knowledge.signs[sign].leak.by_level, strict=True))


def _grades(grade: SignGrade) -> str:
    """Its number, or those of the levels, lowest first."""
    return " / ".join(f"{p:g}" for p in grade.by_level)


def _refuting_lines(
    knowledge: KnowledgeBase, raised: Mapping[str, SignLink], lowered: Mapping[str, SignLink]
) -> Iterator[str]:
    for name, link in sorted(lowered.items()):
        yield f"{name} present: {_strength(link)}, {_grades(knowledge.signs[name].leak)} without ({link.basis})"
    factors = {
        name: (1 - link.by_level[0]) / (1 - knowledge.signs[name].leak.by_level[0]) for name, link in raised.items()
    }
    for name, factor in sorted(factors.items(), key=lambda item: (item[1], item[0])):
        if factor <= _REFUTING:
            yield f"{name} read and absent: takes the odds times {factor:.2g}"


_REFUTING = 0.3  # judgement: an absence that takes less than a factor of three off is not worth a line


def _strength(link: SignLink) -> str:
    return f"excludes it ({_grades(link)})" if link.effect == "excludes" else f"{link.effect} it to {_grades(link)}"


def _drives(verb: str, links: Mapping[str, Drive]) -> Iterator[str]:
    for name, link in links.items():
        where = "" if link.at is Relation.SELF else f" at {link.at}"
        yield f"{verb} {name}{where} ({link.p:g})"


def _text(title: str, subtitle: str, *sections: tuple[str, tuple[str, ...]]) -> str:
    parts = [title, fill(subtitle, _WIDTH)]
    for heading, lines in sections:
        if lines:
            parts.append("")
            parts.append(heading)
            parts.extend(
                indent(fill(" ".join(line.split()), _WIDTH - 2, subsequent_indent="  "), "  ") for line in lines
            )
    return "\n".join(parts) + "\n"


def scaffold(rule: str) -> dict[str, str]:
    """Path to text of the two files a new cause starts from: `kb check` names everything that is to be filled in.

    Raises UsageError when `rule` is not of the form family.name.
    """
    family, dot, name = rule.partition(".")
    if not dot or not family.isalpha() or not name.replace("_", "").isalnum() or rule != rule.lower():
        raise UsageError(
            f"{rule!r} is not an id of a cause.", "Expected family.name in lower case, such as path.missing_link."
        )
    return {
        f"causes/{family}/{name}.yaml": _CAUSE.format(rule=rule),
        f"causes/{family}/{name}{CASES_SUFFIX}": _CASES + "".join(_CASE.format(name=one) for one in MANDATORY_CASES),
    }


_CAUSE = """\
format: 1
id: {rule}
title: TBD
status: draft
scope: link
transport: [roce]
domain: network
loop: other
hazard: {{rate: 1.0e-4, per: link, basis: TBD}}
mechanism: TBD
signs:
  # P(sign on | this cause alone), leak included; discriminating: unread, the cause is not assessable
  name_of_a_sign: {{p: 0.8, discriminating: true, basis: TBD}}
looks_like: []
first_checks:
  - TBD
remedy: TBD
references:
  - TBD
"""

_CASES = """\
format: 1
base:
  topology: two-unit
  interval: 15s
  steps: '2.0x600 2.5x400'
  series: {}
cases:
"""

_CASE = """\
  - name: {name}
    why: TBD
    expect: {{status: possible}}
"""
