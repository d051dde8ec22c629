"""Which of the next checks a page proposes, in words."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from ..engine.results import NextCheck
from . import wording
from .references import Reference
from .view import Check

WORTH_READING = 0.01
"""Expected information in bits from which a check is proposed (judgement: an answer that is 99.9 % sure holds as much);
all are in the JSON."""


def checks_of(
    checks: Iterable[NextCheck], references: Callable[[Iterable[str]], tuple[Reference, ...]]
) -> tuple[Check, ...]:
    """The checks worth a reading."""
    return tuple(
        Check(
            check.read,
            wording.place(check.place),
            check.cost,
            references(check.splits),
            "" if check.expected_bits is None else wording.bits(check.expected_bits),
        )
        for check in checks
        if _is_worth_reading(check)
    )


def no_check(checks: tuple[NextCheck, ...]) -> str:
    """That none of the checks is worth a reading; "" where one is, or where there are none."""
    if not checks or any(map(_is_worth_reading, checks)):
        return ""
    best = max(check.expected_bits or 0.0 for check in checks)
    return f"Nothing unread is expected to change the answer (at best {wording.bits(best)})."


def _is_worth_reading(check: NextCheck) -> bool:
    return check.expected_bits is None or check.expected_bits >= WORTH_READING
