"""The small SQL that signs may use: predicates and expressions over the signal columns of one metric.

Allowed: columns of `signals.COLUMNS`, the sign's own limits, numbers, AND/OR/NOT, comparisons, + - * /, IS [NOT] NULL,
the functions below, and `shape = 'step'` with a name of a shape. Nothing else gets through, so no rule file can make
the engine run a statement.
"""

from __future__ import annotations

from collections.abc import Collection, Generator, Iterator
from difflib import get_close_matches

import sqlglot
from sqlglot import exp
from sqlglot.errors import SqlglotError

from ..engine.signals import COLUMNS

SHAPES = ("none", "step", "ramp", "burst")
FUNCTIONS = ("abs", "least", "greatest", "coalesce", "ln", "log10")

_COMPARISONS = (exp.EQ, exp.NEQ, exp.LT, exp.LTE, exp.GT, exp.GTE)
_TRUTHS = (exp.And, exp.Or, exp.Not, exp.Is, *_COMPARISONS)
_ARITHMETIC = (exp.Add, exp.Sub, exp.Mul, exp.Div, exp.Neg)
_CALLS = (exp.Abs, exp.Least, exp.Greatest, exp.Coalesce, exp.Ln)
_ALLOWED = (*_TRUTHS, *_ARITHMETIC, *_CALLS, exp.Log, exp.Column, exp.Identifier, exp.Literal, exp.Null, exp.Paren)


def predicate_problems(text: str, limits: Collection[str]) -> Iterator[str]:
    """What keeps `text` from being a yes-or-no question over the signal columns and `limits`."""
    parsed = yield from _parsed(text, limits)
    if parsed is not None and not isinstance(_bare(parsed), _TRUTHS):
        yield f"is a value, expected a comparison (got {text!r})"


def expression_problems(text: str, limits: Collection[str]) -> Iterator[str]:
    """What keeps `text` from being a number made of the signal columns and `limits`."""
    parsed = yield from _parsed(text, limits)
    if parsed is not None and isinstance(_bare(parsed), _TRUTHS):
        yield f"is a comparison, expected a value (got {text!r})"


def _bare(expression: exp.Expression) -> exp.Expression:
    return _bare(expression.this) if isinstance(expression, exp.Paren) else expression


def names_used(text: str) -> frozenset[str]:
    """Columns and limits that a valid expression reads."""
    return frozenset(column.name for column in sqlglot.parse_one(text, read="duckdb").find_all(exp.Column))


def _parsed(text: str, limits: Collection[str]) -> Generator[str, None, exp.Expression | None]:
    try:
        statements = sqlglot.parse(text, read="duckdb")
    except RecursionError:
        yield "is nested too deeply"
        return None
    except SqlglotError as error:
        yield f"is not a SQL expression: {_first_message(error)}"
        return None
    if len(statements) != 1 or statements[0] is None:
        yield f"is {len(statements)} statements, expected one expression"
        return None
    found = list(dict.fromkeys(_node_problems(statements[0], limits)))
    yield from found
    return None if found else statements[0]


def _node_problems(root: exp.Expression, limits: Collection[str]) -> Iterator[str]:
    for node in root.walk(prune=lambda node: not isinstance(node, _ALLOWED)):
        if node.comments:
            yield "holds a SQL comment; write it as a YAML comment"
        if isinstance(node, exp.Column):
            if node.table or (node.name not in COLUMNS and node.name not in limits):
                near = get_close_matches(node.name, [*COLUMNS, *limits], n=1)
                hint = f"did you mean {near[0]!r}?" if near else f"its limits are: {', '.join(limits) or 'none'}"
                yield f"{node.sql()!r} is neither a signal column nor a limit of this sign; {hint}"
        elif isinstance(node, exp.Literal):
            yield from _literal_problems(node)
        elif isinstance(node, exp.Null):
            if not isinstance(node.parent, exp.Is):
                yield "NULL may only follow IS or IS NOT: any comparison with it is unknown"
        elif isinstance(node, exp.Is):
            if not isinstance(node.expression, exp.Null):
                yield f"{node.sql()!r}: only NULL or NOT NULL may follow IS"
        elif isinstance(node, exp.Log):
            if not (isinstance(node.this, exp.Literal) and node.this.name == "10"):
                yield f"{node.sql()!r} is not allowed; write log10(x) or ln(x)"
        elif not isinstance(node, _ALLOWED):
            yield (
                f"{node.sql(dialect='duckdb')!r} is not allowed; expected columns, limits, numbers, AND, OR, NOT, "
                f"comparisons, + - * / and {', '.join(FUNCTIONS)}"
            )


def _literal_problems(node: exp.Literal) -> Iterator[str]:
    if not node.is_string:
        return
    other = node.parent.this if isinstance(node.parent, exp.EQ | exp.NEQ) else None
    if not (isinstance(other, exp.Column) and other.name == "shape"):
        yield f"text {node.name!r} is not allowed; only shape is compared with text"
    elif node.name not in SHAPES:
        yield f"{node.name!r} is not a shape; expected one of {', '.join(SHAPES)}"


def _first_message(error: SqlglotError) -> str:
    errors = getattr(error, "errors", None)
    if not errors:
        return str(error).splitlines()[0]
    return f"{errors[0]['description']} near {errors[0]['highlight']!r}, character {errors[0]['col']}"
