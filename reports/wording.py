"""How numbers, times, places and strengths are written in every report."""

from __future__ import annotations

import math
import re
from datetime import UTC, datetime

from ..engine.results import Numbers
from ..engine.scope import Scope, ScopeKind, short_port

_SCALED_UNITS = ("B", "B/s", "bit/s")
_PREFIXES = ((1e15, "P"), (1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k"))
# log10 of two: a smaller difference of weights is not worth a word (judgement).
_TWOFOLD = 0.3
_BARE_UNITS = ("", "1")

# C0 and C1 controls, and the characters that reorder or hide text (Unicode UAX #9, zero-width, tag characters): a name
# must not be able to rewrite the line it stands in.
_INVISIBLE = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\U000e0000-\U000e007f\ud800-\udfff]"
)


def visible(text: str) -> str:
    """The text with every control and invisible character written as its code (`\\u202e`); tabs and newlines stay."""
    return _INVISIBLE.sub(lambda match: f"\\u{ord(match.group()):04x}", text)


def one_line(text: str) -> str:
    """The text with all white space runs as single spaces."""
    return " ".join(text.split())


def sentence(text: str) -> str:
    """A title or summary on one line, its typed arrows as arrows."""
    return one_line(text).replace(" -> ", " → ")


def percent(ratio: float) -> str:
    """A probability or share. Only exact 0 and 1 are written so: between them it is `<0.1%` ... `>99%`."""
    if ratio in (0, 1):
        return f"{ratio:.0%}"
    if ratio < 0.001:
        return "<0.1%"
    if ratio < 0.01:
        return f"{ratio:.1%}"
    return ">99%" if ratio >= 0.995 else f"{ratio:.0%}"


def change(ratio: float) -> str:
    """A relative change with its sign: 0.23 is `+23%`."""
    return f"{ratio:+.1%}" if abs(ratio) < 0.1 else f"{ratio:+,.0%}"


def number(value: float) -> str:
    """Three significant digits; whole numbers below a million in full; very small ones in powers of ten."""
    if not math.isfinite(value):
        return str(value)
    if value == int(value) and abs(value) < 1e6:
        return f"{int(value):,}"
    if abs(value) < 1e-3:
        mantissa, _, exponent = f"{value:.2e}".partition("e")
        return f"{mantissa.rstrip('0').rstrip('.')}e{int(exponent)}"
    digits = max(0, 2 - math.floor(math.log10(abs(value))))
    text = f"{float(f'{value:.3g}'):,.{digits}f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def quantity(value: float, unit: str) -> str:
    """A value with its unit, scaled where engineers scale it (bytes, bit rates, times); `ratio` as percent."""
    if unit == "ratio":
        return f"{number(value * 100)}%"
    if unit in _SCALED_UNITS:
        for factor, prefix in _PREFIXES:
            if abs(value) >= factor:
                return f"{number(value / factor)} {prefix}{unit}"
    if unit == "us":
        for factor, longer in ((1e6, "s"), (1e3, "ms")):
            if abs(value) >= factor:
                return f"{number(value / factor)} {longer}"
        return f"{number(value)} µs"
    if unit in _BARE_UNITS:
        return number(value)
    return f"{number(value)}%" if unit == "%" else f"{number(value)} {unit}"


def reading(numbers: Numbers) -> str:
    """`2.84 s, before 2.31 s, limit 2.5 s`: what was read, its baseline, the limit; None is left out, "" if all are."""
    named = (("", numbers.observed), ("before ", numbers.baseline), ("limit ", numbers.limit))
    return ", ".join(f"{name}{quantity(value, numbers.unit)}" for name, value in named if value is not None)


def strength(weight: float) -> str:
    """A log10 Bayes factor in words, by Jeffreys' half powers of ten (Theory of Probability, 1961, appendix B)."""
    for limit, word in ((2.0, "decisive"), (1.5, "very strong"), (1.0, "strong"), (0.5, "moderate")):
        if abs(weight) >= limit:
            return word
    return "weak"


def factor(weight: float) -> str:
    """A log10 Bayes factor as a factor on the odds, with a multiplication or a division sign: 1.3 is times 20."""
    sign = "\N{DIVISION SIGN}" if weight < 0 else "\N{MULTIPLICATION SIGN}"
    return f"odds {sign}{float(f'{10 ** min(abs(weight), 6):.2g}'):,g}"


def by_itself(alone: float | None, weight: float) -> str:
    """What a finding says by itself; "" where the other findings make that more or less by less than a factor of
    two."""
    if alone is None or abs(alone - weight) < _TWOFOLD:
        return ""
    return f"by itself {factor(alone)}"


def counted(count: int, noun: str) -> str:
    """A number of things, in the plural where there are several or none."""
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"


def issue_count(levels: tuple[str, ...]) -> str:
    """How many read issues there are, by level."""
    if not levels:
        return "no read issues"
    named = [counted(levels.count(level), level) for level in ("error", "warning", "note") if level in levels]
    return f"{counted(len(levels), 'read issue')} ({', '.join(named)})"


def bits(expected: float) -> str:
    """Expected information; what rounds to nothing says so."""
    return "under 0.001 bit" if expected < 0.001 else f"{number(expected)} bit"


def parsed_time(text: str | None) -> datetime | None:
    """The aware UTC time of an RFC 3339 string; None for None and for what is no such time."""
    try:
        moment = datetime.fromisoformat(text) if text else None
    except ValueError:
        return None
    return moment.astimezone(UTC) if moment and moment.tzinfo else None


def clock(text: str) -> str:
    """`20:31:02`; what is no time stays as it is."""
    moment = parsed_time(text)
    return f"{moment:%H:%M:%S}" if moment else text


def day(text: str) -> str:
    """`17 Nov 2026`; "" for what is no time."""
    moment = parsed_time(text)
    return f"{moment.day} {moment:%b %Y}" if moment else ""


def time_span(window: tuple[str, str] | None) -> str:
    """`17 Nov 2026, 20:15:00 to 20:45:00 UTC`; "" for None. The end carries its day when it is another one."""
    if window is None:
        return ""
    start, end = window
    end_day = "" if day(start) == day(end) else f"{day(end)}, "
    return f"{day(start)}, {clock(start)} to {end_day}{clock(end)} UTC"


def uncertainty(seconds: float | None) -> str:
    """`±3 s`; "" for None."""
    return "" if seconds is None else f"±{quantity(float(f'{seconds:.2g}'), 's')}"


_PLAIN_KINDS = (
    ScopeKind.DEVICE,
    ScopeKind.HOST,
    ScopeKind.JOB,
    ScopeKind.NIC,
    ScopeKind.GPU,
    ScopeKind.FABRIC,
    ScopeKind.TENANT,
)


def place(scope: str) -> str:
    """A scope as engineers say it: `queue:leaf-07/Ethernet12/3` is `leaf-07 Et12 TC3`. What is no scope stays as is."""
    try:
        parsed = Scope.parse(scope)
    except ValueError:
        return scope
    parts = [parsed.parts[0], *(short_port(part) for part in parsed.parts[1:])]
    if parsed.kind in (ScopeKind.QUEUE, ScopeKind.PG, ScopeKind.LANE) and len(parts) == 3:
        parts[2] = {ScopeKind.QUEUE: "TC", ScopeKind.PG: "PG", ScopeKind.LANE: "lane "}[parsed.kind] + parts[2]
    if parsed.kind is ScopeKind.LINK and len(parts) == 4:
        parts.insert(2, "to")
    text = " ".join(parts)
    return text if parsed.kind in _PLAIN_KINDS or len(parts) > 1 else f"{parsed.kind} {text}"
