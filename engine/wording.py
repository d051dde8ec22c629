"""How numbers, times, places and findings are said.

Statements come from the knowledge base; only their blanks are filled here.
"""

from __future__ import annotations

import math
from datetime import UTC, datetime

from .findings import SignFinding
from .places import Places
from .rules import Sign
from .scope import Scope, short_port


def timestamp(at: float) -> str:
    """RFC 3339 in UTC, to the millisecond where there is one."""
    moment = datetime.fromtimestamp(round(at, 3), UTC)
    return (
        moment.strftime("%Y-%m-%dT%H:%M:%S")
        + (f".{moment.microsecond // 1000:03d}" if moment.microsecond else "")
        + "Z"
    )


def clock(at: float) -> str:
    """Time of day to the second, UTC."""
    return datetime.fromtimestamp(at, UTC).strftime("%H:%M:%S")


def percent(ratio: float) -> str:
    """A probability or share in whole percent; what only rounds to certainty is not called certain.

    >>> percent(0.9977), percent(0.42), percent(0.001)
    ('over 99 %', '42 %', 'under 1 %')
    """
    if ratio > 0.99:
        return "over 99 %"
    return "under 1 %" if ratio < 0.01 else f"{100 * ratio:.0f} %"


def number(value: float | None) -> str:
    """A number as an engineer writes it: three significant digits, powers of ten only outside a thousandth to ten
    millions.

    >>> number(4.8213), number(14400000.0), number(2.5e-08), number(None)
    ('4.82', '14400000', '2.5e-08', 'unknown')
    """
    if value is None:
        return "unknown"
    if math.isinf(value):
        return "no light" if value < 0 else "unbounded"
    if value == 0:
        return "0"
    if abs(value) < 1e-3 or abs(value) >= 1e8:
        return f"{value:.2g}"
    if abs(value) >= 999.5:
        return f"{value:.0f}"
    return f"{value:.3g}"


class _Blanks(dict[str, str]):
    """Blanks nobody filled say so instead of failing a report."""

    def __missing__(self, key: str) -> str:
        return "unknown"


def statement(sign: Sign, finding: SignFinding, places: Places) -> str:
    """The sign's answer in words."""
    where = places.wording(finding.scope)
    blanks = _Blanks(
        place=where,
        spot=finding.spot or where,
        observed=number(finding.observed),
        baseline=number(finding.baseline),
        limit=number(finding.limit),
        unit=finding.unit,
    )
    if finding.levels is not None and finding.levels.least > 0:
        blanks["level"] = sign.levels[finding.levels.least - 1]
    blanks.update(finding.words)
    return (sign.present if finding.state == "present" else sign.absent).format_map(blanks)


def what_to_read(sign: Sign, scope: Scope, places: Places) -> str:
    """The command or counter that would answer a sign at a place."""
    return sign.read.format_map(
        _Blanks(
            place=places.wording(scope),
            device=scope.parts[0],
            port=short_port(scope.port) if scope.port else "each port",
        )
    )
