"""The small SQL of signs: what is allowed binds in DuckDB, everything else is refused with a reason."""

from __future__ import annotations

from functools import cache

import duckdb
import pytest
from hypothesis import given
from hypothesis import strategies as st

from causeline.engine.signals import COLUMNS
from causeline.knowledge.predicates import expression_problems, names_used, predicate_problems


@pytest.mark.parametrize(
    "text",
    [
        "after_p95 > kmin",
        "after_min < kmin OR before_p50 - after_p50 > 2",
        "NOT (after_delta >= 1e3 AND after_mean <= 3 * before_mean)",
        "abs(slope) > kmin AND ln(greatest(after_max, 1)) <> log10(coalesce(before_p95, least(kmin, 2)))",
        "shape = 'step' OR shape <> 'none'",
        "before_n IS NULL OR after_p50 IS NOT NULL",
        "after_max > -kmin / 2",
    ],
)
def test_a_predicate_over_columns_and_limits_is_allowed(text: str) -> None:
    assert list(predicate_problems(text, {"kmin"})) == []


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("after_p95", "is a value, expected a comparison"),
        ("after_p95 + 1", "is a value"),
        ("after_p95 > kmaxx", "neither a signal column nor a limit"),
        ("after_p95 > kmin; DROP TABLE signals", "2 statements"),
        ("DROP TABLE signals", "is not allowed"),
        ("after_p95 > (SELECT 1)", "is not allowed"),
        ("EXISTS (SELECT 1)", "is not allowed"),
        ("SELECT after_p95 > 1", "is not allowed"),
        ("after_p95 > 1 -- all of it", "SQL comment"),
        ("after_p95 > 1 /* all of it */", "SQL comment"),
        ("CASE WHEN after_p95 > 1 THEN TRUE END", "is not allowed"),
        ("read_text('/etc/passwd') = 'x'", "is not allowed"),
        ("device = 'leaf-01'", "neither a signal column nor a limit"),
        ("max_source > 1", "neither a signal column nor a limit"),
        ("signals.after_p95 > 1", "neither a signal column nor a limit"),
        ("shape = 'stairs'", "is not a shape"),
        ("after_p95 = 'high'", "only shape is compared with text"),
        ("after_p95::VARCHAR = 'high'", "is not allowed"),
        ("after_p95 > NULL", "NULL may only follow IS"),
        ("(after_p95 > 1) IS TRUE", "only NULL or NOT NULL may follow IS"),
        ("log(after_p95) > 1", "write log10(x) or ln(x)"),
        ("log2(after_p95) > 1", "write log10(x) or ln(x)"),
        ("exp(after_p95) > 1", "is not allowed"),
        ("sum(after_p95) OVER () > 1", "is not allowed"),
        ("after_p95 BETWEEN 1 AND 2", "is not allowed"),
        ("after_p95 IN (1, 2)", "is not allowed"),
        ("after_p95 > ?", "is not allowed"),
        ("after_p95 >", "is not a SQL expression"),
        ("'unterminated", "is not a SQL expression"),
        ("", "expected one expression"),
        ("(" * 5000, ""),
    ],
)
def test_anything_else_is_not(text: str, said: str) -> None:
    problems = list(predicate_problems(text, {"kmin"}))
    assert problems
    assert said in problems[0]


def test_a_comparison_is_no_number() -> None:
    assert list(expression_problems("after_p95 - before_p95", ())) == []
    assert "expected a value" in next(expression_problems("(after_p95 > 1)", ()))


NUMBERS = st.recursive(
    st.sampled_from(sorted(set(COLUMNS) - {"shape"})) | st.sampled_from(["kmin", "1", "2.5", "1e-5"]),
    lambda inner: st.one_of(
        st.tuples(inner, st.sampled_from("+-*/"), inner).map(lambda parts: f"({' '.join(parts)})"),
        st.tuples(st.sampled_from(["abs", "ln", "log10", "-"]), inner).map(lambda parts: f"{parts[0]}({parts[1]})"),
        st.tuples(st.sampled_from(["least", "greatest", "coalesce"]), inner, inner).map(
            lambda parts: f"{parts[0]}({parts[1]}, {parts[2]})"
        ),
    ),
    max_leaves=6,
)
COMPARISONS = st.tuples(NUMBERS, st.sampled_from(["<", "<=", ">", ">=", "=", "<>"]), NUMBERS).map(" ".join)
PREDICATES = st.recursive(
    COMPARISONS,
    lambda inner: st.one_of(
        st.tuples(inner, st.sampled_from(["AND", "OR"]), inner).map(lambda parts: f"({' '.join(parts)})"),
        inner.map(lambda text: f"NOT ({text})"),
    ),
    max_leaves=4,
)


@given(PREDICATES)
def test_every_predicate_of_the_grammar_is_allowed_and_binds_in_duckdb(text: str) -> None:
    assert list(predicate_problems(text, {"kmin"})) == []
    assert names_used(text) <= {*COLUMNS, "kmin"}
    (described,) = _signals_table().execute(f"DESCRIBE SELECT {text} AS fired FROM signals").fetchall()
    assert described[1] == "BOOLEAN"


@cache
def _signals_table() -> duckdb.DuckDBPyConnection:
    connection = duckdb.connect()
    typed = ", ".join(f"{name} {'VARCHAR' if name == 'shape' else 'DOUBLE'}" for name in (*COLUMNS, "kmin"))
    connection.execute(f"CREATE TABLE signals ({typed})")
    return connection


@given(st.text(max_size=80))
def test_no_text_breaks_the_check(text: str) -> None:
    for problem in (*predicate_problems(text, {"kmin"}), *expression_problems(text, {"kmin"})):
        assert problem
