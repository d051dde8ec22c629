"""Whether the engine can ask a sign: its metric, predicates, limits, pattern and the wording of its answers."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping
from difflib import get_close_matches
from string import Formatter

from ..engine.metrics import METRICS, Qualifier
from ..engine.patterns import PATTERNS
from ..engine.rules import Limit, Sign, SignalTest
from ..engine.scope import ScopeKind
from ..engine.signals import COLUMNS, EVIDENCE_COLUMNS, KEYS
from .loader import RuleFile
from .predicates import expression_problems, predicate_problems

# Kinds of places a reading, or the log of a device, can be put to (`engine.matching`); patterns name their own.
SIGNAL_SCOPES = frozenset(
    {
        ScopeKind.QUEUE,
        ScopeKind.PORT,
        ScopeKind.LINK,
        ScopeKind.NIC,
        ScopeKind.GPU,
        ScopeKind.HOST,
        ScopeKind.DEVICE,
        ScopeKind.RAIL,
        ScopeKind.COHORT,
        ScopeKind.JOB,
    }
)
EVENT_SCOPES = frozenset({ScopeKind.COHORT, ScopeKind.HOST, ScopeKind.DEVICE})

STATEMENT_PLACEHOLDERS = ("observed", "baseline", "limit", "unit", "place", "level", "spot", "count", "of")
READ_PLACEHOLDERS = ("place", "device", "port")

_PER_CLASS = (Qualifier.TRAFFIC_CLASS, Qualifier.PRIORITY, Qualifier.PRIORITY_GROUP)
_LIMIT_NAME = re.compile(r"[a-z][a-z0-9_]*")  # it becomes a column name in SQL
_TAKEN_NAMES = frozenset({*COLUMNS, *KEYS, *EVIDENCE_COLUMNS})

Path = tuple[str, ...]


def sign_problems(file: RuleFile[Sign]) -> Iterator[str]:
    """What keeps the engine from asking a sign, as `file:line:column: path: what`."""
    sign = file.rule
    scopes = SIGNAL_SCOPES if sign.signal is not None else EVENT_SCOPES if sign.event is not None else None
    if scopes is not None and sign.scope not in scopes:
        shown = ", ".join(sorted(scopes))
        yield file.problem(("scope",), f"such a sign cannot be asked at a {sign.scope}; expected one of {shown}")
    if sign.signal is not None:
        yield from _signal_problems(file, sign.signal)
    elif sign.event is not None:
        yield from _limit_problems(file, ("event",), {"before_s": sign.event.before_s, "after_s": sign.event.after_s})
    elif sign.pattern is not None:
        if sign.pattern.pattern not in PATTERNS:
            yield file.problem(("pattern", "pattern"), _no_such("pattern", sign.pattern.pattern, PATTERNS))
        yield from _limit_problems(file, ("pattern", "limits"), sign.pattern.limits)
    # A pattern adds words of its own: there only the form of the text can be checked.
    known = None if sign.pattern is not None else STATEMENT_PLACEHOLDERS
    yield from _text_problems(file, "present", sign.present, known)
    yield from _text_problems(file, "absent", sign.absent, known)
    yield from _text_problems(file, "read", sign.read, READ_PLACEHOLDERS)


def _signal_problems(file: RuleFile[Sign], test: SignalTest) -> Iterator[str]:
    if test.metric not in METRICS:
        yield file.problem(("signal", "metric"), _no_such("metric", test.metric, METRICS))
    elif test.lossless and METRICS[test.metric].qualifier not in _PER_CLASS:
        yield file.problem(
            ("signal", "lossless"), f"{test.metric} is not counted per class: no class of it is lossless"
        )
    for key, predicate in (("present", test.present), ("absent", test.absent)):
        if predicate is not None:
            yield from (file.problem(("signal", key), what) for what in predicate_problems(predicate, test.limits))
    for index, level in enumerate(test.higher):
        at: tuple[str | int, ...] = ("signal", "higher", index)
        yield from (file.problem((*at, "present"), what) for what in predicate_problems(level.present, test.limits))
        if level.limit is not None:
            yield from (file.problem((*at, "limit"), what) for what in expression_problems(level.limit, test.limits))
    for key, expression in (("observed", test.observed), ("baseline", test.baseline), ("limit", test.limit)):
        if expression is not None:
            yield from (file.problem(("signal", key), what) for what in expression_problems(expression, test.limits))
    yield from _limit_problems(file, ("signal", "limits"), test.limits)


def _limit_problems(file: RuleFile[Sign], at: Path, limits: Mapping[str, Limit]) -> Iterator[str]:
    for name, limit in limits.items():
        if not _LIMIT_NAME.fullmatch(name):
            yield file.problem((*at, name), "is not a name of a limit; expected lower case letters, digits and _")
        elif name in _TAKEN_NAMES:
            yield file.problem((*at, name), "is the name of a signal column; give the limit another one")
        if limit.metric is not None and at != ("signal", "limits"):
            yield file.problem(
                (*at, name, "metric"), "only limits of a signal can be read from the device; give a value"
            )
        elif limit.metric is not None and limit.metric not in METRICS:
            yield file.problem((*at, name, "metric"), _no_such("metric", limit.metric, METRICS))


def _text_problems(file: RuleFile[Sign], key: str, text: str, known: Collection[str] | None) -> Iterator[str]:
    try:
        blanks = [(name, spec, change) for _, name, spec, change in Formatter().parse(text) if name is not None]
    except ValueError as error:
        yield file.problem((key,), f"is not a text with {{placeholders}}: {error}")
        return
    for name, spec, change in blanks:
        if not name.isidentifier() or spec or change:
            yield file.problem((key,), "a placeholder is a bare name such as {place}; the wording of numbers is fixed")
        elif known is not None and name not in known:
            yield file.problem((key,), f"unknown placeholder {name!r}; known: {', '.join(known)}")


def _no_such(kind: str, name: str, known: Collection[str]) -> str:
    near = get_close_matches(name, known, n=1)
    return f"there is no {kind} {name!r}; " + (
        f"did you mean {near[0]!r}?" if near else f"known: {', '.join(sorted(known))}"
    )
