"""`causeline kb check`: everything that is wrong or doubtful in the knowledge base, all at once, each with its place.

Builds on `soundness.py`; adds what a reviewer of rules asks for: sources, rivals told apart, cases, and grades that the
network can give.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from .casefile import MANDATORY_CASES, RuleCases, read_case_files
from .induced import induced_problems
from .loader import CASES_SUFFIX, SHIPPED, Library, RuleFile, read_library
from .predicates import names_used
from .soundness import soundness_problems
from .yaml_source import YamlSource

_UNDECIDED = ("tbd", "todo", "fixme", "?")


def check(*overlays: Path, shipped: Path = SHIPPED) -> tuple[str, ...]:
    """All problems of the knowledge base as `file:line:column: path: what`; empty when it is clean.

    Grades are judged only where the rules fit each other.
    """
    library = read_library(*overlays, shipped=shipped)
    cases, unreadable_cases = read_case_files(*overlays, shipped=shipped)
    unsound = (*library.problems, *soundness_problems(library))
    found = [*unsound, *unreadable_cases]
    for judge in (_undecided, _unsourced, _unsupportable, _neutral_links, _one_sided_rivals, _unused):
        found.extend(judge(library))
    if not unreadable_cases:
        found.extend(_missing_cases(library, cases))
    if not unsound:
        for sign in library.signs.values():
            found.extend(_unused_limits(sign))
        for cause in library.causes.values():
            found.extend(induced_problems(library, cause))
    return tuple(found)


def _undecided(library: Library) -> Iterator[str]:
    """A number or a source somebody meant to fill in later."""
    for file in library.files():
        yield from _undecided_in(file.source, file.source.content, ())


def _undecided_in(source: YamlSource, content: object, at: tuple[str | int, ...]) -> Iterator[str]:
    if isinstance(content, dict):
        for key, value in content.items():
            yield from _undecided_in(source, value, (*at, str(key)))
    elif isinstance(content, list):
        for index, value in enumerate(content):
            yield from _undecided_in(source, value, (*at, index))
    elif isinstance(content, str) and content.strip().lower().rstrip(".:!") in _UNDECIDED:
        yield source.problem(at, f"is still open (got {content!r}); a basis names its source or says judgement and why")


def _unsourced(library: Library) -> Iterator[str]:
    for file in library.files():
        if not file.rule.references:
            yield file.problem(("references",), "is empty, expected at least one source")


def _unsupportable(library: Library) -> Iterator[str]:
    """A cause that no sign raises could only ever be argued against."""
    for file in library.causes.values():
        signs = [(link, library.signs.get(name)) for name, link in file.rule.signs.items()]
        if all(sign is not None for _, sign in signs) and not any(
            link.by_level > sign.rule.leak.by_level for link, sign in signs if sign is not None
        ):
            yield file.problem(("signs",), "no sign has a p above its leak, so nothing could ever support this cause")


def _neutral_links(library: Library) -> Iterator[str]:
    for file in library.drivers():
        for name, link in file.rule.signs.items():
            if name in library.signs and link.by_level == library.signs[name].rule.leak.by_level:
                yield file.problem(
                    ("signs", name, "p"), f"equals the sign's leak ({link.p}), so it says nothing; leave the sign out"
                )


def _one_sided_rivals(library: Library) -> Iterator[str]:
    for file in library.causes.values():
        for index, rival in enumerate(file.rule.looks_like):
            other = library.causes.get(rival.cause)
            if other is not None and file.rule.id not in {back.cause for back in other.rule.looks_like}:
                yield file.problem(
                    ("looks_like", index, "cause"),
                    f"{rival.cause} does not list {file.rule.id} among its own looks_like",
                )


def _unused(library: Library) -> Iterator[str]:
    """A sign that nobody mentions is asked for nothing; a mechanism that nothing drives explains nothing."""
    asked = {name for file in library.drivers() for name in file.rule.signs}
    driven = {name for file in library.drivers() for name in file.rule.drives}
    for name, sign in library.signs.items():
        if name not in asked and not library.broken:
            yield sign.problem(("id",), "no cause and no mechanism mentions this sign")
    for name, mechanism in library.mechanisms.items():
        if name not in driven and not library.broken:
            yield mechanism.problem(("id",), "no cause and no mechanism drives this mechanism")


def _missing_cases(library: Library, cases: Mapping[str, RuleCases]) -> Iterator[str]:
    needed = ", ".join(MANDATORY_CASES)
    for name, file in library.causes.items():
        if name not in cases:
            yield file.problem(("id",), f"there is no {name.partition('.')[2]}{CASES_SUFFIX} with the cases {needed}")
            continue
        named = {case.name for case in cases[name].file.cases}
        for missing in sorted(set(MANDATORY_CASES) - named):
            yield cases[name].source.problem(("cases",), f"there is no case {missing!r}; {needed} are needed")
    for one in cases.values():
        yield from _undecided_in(one.source, one.source.content, ())


def _unused_limits(file: RuleFile[Any]) -> Iterator[str]:
    test = file.rule.signal
    if test is not None:
        higher = (text for level in test.higher for text in (level.present, level.limit))
        texts = (test.present, test.absent, test.observed, test.baseline, test.limit, *higher)
        used = frozenset[str]().union(*(names_used(text) for text in texts if text is not None))
        for name in test.limits:
            if name not in used:
                yield file.problem(("signal", "limits", name), "is neither in present nor shown as limit")
