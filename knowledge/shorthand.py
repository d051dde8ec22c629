"""Samples in the shorthand of Prometheus' rule tests (prometheus.io, "Unit testing for rules"), and time spans.

`a+bxn` is a, a+b ... a+n*b and `axn` is a and n times a again: n + 1 samples each. `_` is one poll without a number,
`_xn` n of them.
"""

from __future__ import annotations

import re

_UNSIGNED = r"(?:\d+(?:\.\d+)?(?:[eE][-+]?\d+)?|inf)"
_PART = re.compile(
    r"(?:(?P<missing>_)(?:x(?P<missed>\d+))?"
    rf"|(?P<start>[-+]?{_UNSIGNED})(?P<step>[-+]{_UNSIGNED})?(?:x(?P<more>\d+))?)"
)

_MOST_SAMPLES = 100_000  # judgement: a case with more is a benchmark, not a test


def samples(text: str) -> tuple[float | None, ...]:
    """All samples of `text`; None is a poll without a number. Raises ValueError naming the part that is not shorthand.

    >>> samples("0+10x2 _ 5"), samples("1x1 _x2")
    ((0.0, 10.0, 20.0, None, 5.0), (1.0, 1.0, None, None))
    """
    found: list[float | None] = []
    for part in text.split():
        read = _PART.fullmatch(part)
        if read is None or (read["step"] and not read["more"]):
            raise ValueError(f"{part!r} is not a number, a+bxn, axn, _ or _xn")
        count = int(read["missed"] or 1) if read["missing"] else int(read["more"] or 0) + 1
        if len(found) + count > _MOST_SAMPLES:
            raise ValueError(f"{part!r} makes more than {_MOST_SAMPLES} samples")
        if read["missing"]:
            found.extend([None] * count)
        else:
            start, step = float(read["start"]), float(read["step"] or 0)
            found.extend(start + index * step if step else start for index in range(count))
    if not found:
        raise ValueError("no samples; expected for example '0+10x6'")
    return tuple(found)


_SPAN = re.compile(r"(\d+(?:\.\d+)?)(ms|s|m|h|d)")
_SECONDS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}


def seconds(text: object) -> float:
    """A span such as `15s`, `1m30s` or `-3d` in seconds. Raises ValueError for anything else: a number has no unit.

    >>> seconds("1m30s"), seconds("-3d")
    (90.0, -259200.0)
    """
    unsigned = text.removeprefix("-") if isinstance(text, str) else ""
    parts = _SPAN.findall(unsigned)
    if not parts or "".join(number + unit for number, unit in parts) != unsigned:
        raise ValueError("expected a time span such as 15s, 1m30s or -3d")
    total = sum(float(number) * _SECONDS[unit] for number, unit in parts)
    return -total if unsigned != text else total
