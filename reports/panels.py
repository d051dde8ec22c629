"""Which telemetry is charted together, in which order, and which moments are marked on the shared time axis."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime

from ..engine.results import Investigation, TelemetrySeries, TimelineEntry
from . import wording
from .references import Reference

# From the symptom down to the mechanism, as the chain is told; other panels follow in the order of the investigation.
_ORDER = ("step time", "queue", "marks", "cnps", "pauses")
# More lines than this in one panel cannot be told apart by dash and colour (judgement).
LINES = 4
# Rules nearest to the onset: more make the labels unreadable (judgement).
_RULES = 6


@dataclass(frozen=True, slots=True)
class Line:
    """One line of a panel: `style` 0 to 3 picks dash and colour; `finding` is what it supports, None if nothing."""

    label: str
    style: int
    points: tuple[tuple[datetime, float], ...]
    finding: Reference | None


@dataclass(frozen=True, slots=True)
class Panel:
    """Lines of one kind and unit over time. `from_zero`: rates and bytes start at 0, times of a step show their change.
    `not_drawn` counts the lines left out."""

    title: str
    unit: str
    from_zero: bool
    lines: tuple[Line, ...]
    not_drawn: int


@dataclass(frozen=True, slots=True)
class Rule:
    """A moment marked across all panels. `key` is its sign in the list below the chart."""

    key: str
    at: datetime
    clock: str
    text: str
    is_onset: bool
    anchor: str | None


def panels_of(telemetry: Sequence[TelemetrySeries], reference: Callable[[str], Reference]) -> tuple[Panel, ...]:
    """The panels, ordered; a series without a readable point makes none."""
    by_panel: dict[tuple[str, str], list[TelemetrySeries]] = {}
    for series in telemetry:
        by_panel.setdefault((series.panel, series.unit), []).append(series)

    def rank(panel: tuple[str, str]) -> int:
        name = panel[0].lower()
        return _ORDER.index(name) if name in _ORDER else len(_ORDER)

    panels = []
    for title, unit in sorted(by_panel, key=rank):
        lines: list[Line] = []
        for series in by_panel[title, unit]:
            timed = ((wording.parsed_time(time), value) for time, value in series.points)
            points = tuple(sorted((time, value) for time, value in timed if time is not None))
            if points:
                finding = reference(series.finding) if series.finding else None
                lines.append(Line(series.label, len(lines) % LINES, points, finding))
        if lines:
            title = title[:1].upper() + title[1:]
            panels.append(Panel(title, unit, unit != "s", tuple(lines[:LINES]), max(0, len(lines) - LINES)))
    return tuple(panels)


def time_range(panels: Sequence[Panel], window: tuple[str, str] | None) -> tuple[datetime, datetime] | None:
    """The time axis: the window, or the span of the points where there is none. None: nothing to draw."""
    times = [time for panel in panels for line in panel.lines for time, _ in line.points]
    if not times:
        return None
    start, end = (wording.parsed_time(text) for text in window) if window else (None, None)
    return start or min(times), end or max(times)


def rules_of(investigation: Investigation, panels: Sequence[Panel], anchors: Sequence[str]) -> tuple[Rule, ...]:
    """The onset and the recorded changes nearest to it. `anchors` are those of the timeline, entry by entry."""
    span = time_range(panels, investigation.incident.window)
    if span is None:
        return ()
    onset = wording.parsed_time(investigation.incident.onset)

    def inside(entry: TimelineEntry) -> datetime | None:
        time = wording.parsed_time(entry.ts)
        return time if time is not None and span[0] <= time <= span[1] else None

    # an entry with a record of its own is something that was logged, not a change that the engine saw in a series
    logged = [
        (time, entry, name)
        for entry, name in zip(investigation.timeline, anchors, strict=True)
        if entry.fact and (time := inside(entry))
    ]
    centre = onset or span[0]
    at_once: dict[str, list[tuple[datetime, TimelineEntry, str]]] = {}
    for row in logged:
        at_once.setdefault(f"{row[0]:%F %T}", []).append(row)
    nearest = sorted(at_once.values(), key=lambda rows: abs(rows[0][0] - centre))[:_RULES]
    rules = [
        Rule(
            str(number),
            rows[0][0],
            wording.clock(rows[0][1].ts),
            _named([entry for _, entry, _ in rows]),
            False,
            rows[0][2],
        )
        for number, rows in enumerate(sorted(nearest, key=lambda rows: rows[0][0]), start=1)
    ]
    if onset is not None and span[0] <= onset <= span[1]:
        rules.append(Rule("onset", onset, f"{onset:%H:%M:%S}", "onset", True, None))
    return tuple(rules)


def _named(entries: Sequence[TimelineEntry]) -> str:
    """What happened in one second: the first entry, and how many more (a drain is logged by every leaf)."""
    others = f" and {len(entries) - 1} more" if len(entries) > 1 else ""
    return f"{wording.place(entries[0].scope)}: {entries[0].statement}{others}"
