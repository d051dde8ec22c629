"""The correlated-telemetry chart: panels above one shared time axis, drawn to SVG without a browser.

Colours are CSS variables of the page (`--line-0`, `--ink` ...): one drawing serves light ground, dark and print.
"""

from __future__ import annotations

import re
import statistics
from collections.abc import Sequence
from datetime import datetime
from itertools import pairwise
from xml.etree import ElementTree

import vl_convert

from .panels import LINES, Line, Panel, Rule

_FONT = "system-ui, -apple-system, 'Segoe UI', Roboto, sans-serif"
_PANEL_HEIGHT, _LANE_HEIGHT, _SPACING = 74, 17, 26
_AXIS, _MARGIN = 34, 12
# Solid, long, short, dotted: lines are told apart without colour.
_DASHES = ([1, 0], [6, 3], [3, 2], [1, 2])
# More points than pixels only make the page heavy: above it a line is drawn by the extremes of each slice of time.
_MOST_POINTS = 700
# A pause in the samples this many times longer than usual is a gap and is drawn as one (judgement).
_GAP = 3.0
_CHARACTER_PX = 5.9
# Vega gives all labels of an axis the prefix of the largest: "0M"
_TICK_LABEL = "datum.value == 0 ? '0' : datum.label"

_ID_REFERENCE = re.compile(r"url\(#([^)]+)\)")
ElementTree.register_namespace("", "http://www.w3.org/2000/svg")

Span = tuple[datetime, datetime]
# A part of a Vega-Lite specification (https://vega.github.io/vega-lite/docs/spec.html), in its own JSON form.
Spec = dict[str, object]


def draw(panels: Sequence[Panel], rules: Sequence[Rule], span: Span, width: int, name: str) -> str:
    """An SVG of the given width in pixels; `name` keeps its ids apart from those of other drawings on the page.

    A narrow drawing labels the moments by their key alone.
    """
    narrow = width < 600
    charts = [_labels(rules, span, width, narrow)] if rules else []
    for index, panel in enumerate(panels):
        charts.append(_panel(panel, rules, span, width, narrow, is_last=index == len(panels) - 1))
    specification: Spec = {
        "vconcat": charts,
        "spacing": _SPACING,
        "bounds": "flush",
        "background": "transparent",
        "padding": {"left": 0, "right": 8, "top": 2, "bottom": 2},
        "config": {
            "font": _FONT,
            "view": {"stroke": None},
            "axis": {
                "labelColor": "var(--muted)",
                "labelFontSize": 11,
                "gridColor": "var(--grid)",
                "domainColor": "var(--axis)",
                "tickColor": "var(--axis)",
                "minExtent": _AXIS,
                "maxExtent": _AXIS,
            },
        },
    }
    return _for_page(vl_convert.vegalite_to_svg(specification), name)


def _panel(panel: Panel, rules: Sequence[Rule], span: Span, width: int, narrow: bool, is_last: bool) -> Spec:
    styles = [str(style) for style in range(LINES)]
    low, high = _value_range(panel)
    lines: Spec = {
        "data": {
            "values": [
                {"at": at, "value": value, "style": str(line.style)}
                for line in panel.lines
                for at, value in _drawn(line)
            ]
        },
        "mark": {"type": "line", "strokeWidth": 1.6, "strokeJoin": "round", "clip": True},
        "encoding": {
            "x": _time_axis(span, narrow, is_last),
            "y": {
                "field": "value",
                "type": "quantitative",
                "title": None,
                "scale": {"domain": [low, high], "nice": False, "zero": False},
                "axis": {
                    "tickCount": 3,
                    # small values read as numbers, not as "200m"
                    "format": "~s" if max(-low, high) >= 1000 else ".3~g",
                    "labelExpr": _TICK_LABEL,
                    "domain": False,
                    "ticks": False,
                },
            },
            "stroke": _by_style({"domain": styles, "range": [f"var(--line-{style})" for style in styles]}),
            "strokeDash": _by_style({"domain": styles, "range": _DASHES}),
        },
    }
    unit = f" ({panel.unit})" if panel.unit not in ("", "1") else ""
    title = _text(
        {"text": f"{panel.title}{unit}"},
        {"align": "left", "baseline": "bottom", "fontSize": 12, "fontWeight": 600, "fill": "var(--ink)"},
        {"x": {"value": 0}, "y": {"value": -5}},
    )
    return {
        "width": width - _AXIS - _MARGIN,
        "height": _PANEL_HEIGHT,
        # drawn past the panel's edge, so that a rule runs on through the space between panels
        "layer": [
            *(
                _rule(rule, _time_axis(span, narrow, is_last), 0, _PANEL_HEIGHT + (0 if is_last else _SPACING))
                for rule in rules
            ),
            lines,
            title,
        ],
    }


def _by_style(scale: Spec) -> Spec:
    return {"field": "style", "type": "nominal", "legend": None, "scale": scale}


def _time_axis(span: Span, narrow: bool, labelled: bool | None) -> Spec:
    """The shared axis: with its labels, with its grid alone (False), or unseen (None)."""
    days_apart = (span[1] - span[0]).total_seconds() > 86_400
    axis: Spec = {
        "format": "%d %b" if days_apart else "%H:%M",
        "tickCount": 4 if narrow else 8,
        "labels": bool(labelled),
        "ticks": bool(labelled),
        "domain": bool(labelled),
        "labelOverlap": True,
        "labelFlush": True,
    }
    return {
        "field": "at",
        "type": "temporal",
        "title": None,
        "axis": None if labelled is None else axis,
        "scale": {"type": "utc", "domain": [_milliseconds(span[0]), _milliseconds(span[1])]},
    }


def _rule(rule: Rule, time_axis: Spec, top: int, bottom: int) -> Spec:
    changed = {"stroke": "var(--muted)", "strokeWidth": 1, "strokeDash": [2, 3]}
    onset = {"stroke": "var(--onset)", "strokeWidth": 1.5}
    return {
        "data": {"values": [{"at": _milliseconds(rule.at)}]},
        "mark": {"type": "rule", **(onset if rule.is_onset else changed)},
        "encoding": {"x": time_axis, "y": {"value": top}, "y2": {"value": bottom}},
    }


def _text(row: Spec, style: Spec, position: Spec) -> Spec:
    return {
        "data": {"values": [row]},
        "mark": {"type": "text", **style},
        "encoding": {**position, "text": {"field": "text", "type": "nominal"}},
    }


def _labels(rules: Sequence[Rule], span: Span, width: int, narrow: bool) -> Spec:
    """The strip above the panels that names the moments; labels that would collide stand in separate lanes."""
    lanes = _lanes(rules, span, width, narrow)
    height = (max(lanes) + 1) * _LANE_HEIGHT
    time_axis = _time_axis(span, narrow, None)
    strokes, texts = [], []
    for rule, lane in zip(rules, lanes, strict=True):
        top = lane * _LANE_HEIGHT
        strokes.append(_rule(rule, time_axis, top + 2, height + _SPACING))
        leftwards = _points_left(rule, span, narrow)
        font: Spec = {
            "align": "right" if leftwards else "left",
            "baseline": "middle",
            "dx": -5 if leftwards else 5,
            "fontSize": 11,
            "fontWeight": 700 if rule.is_onset else 400,
        }
        ink: Spec = {"fill": "var(--onset)" if rule.is_onset else "var(--ink)"}
        # in the colour of the ground, since rules of earlier lanes run behind the text
        halo: Spec = {"fill": "var(--card)", "stroke": "var(--card)", "strokeWidth": 5}
        row: Spec = {"at": _milliseconds(rule.at), "text": _label(rule, narrow)}
        texts += [_text(row, {**font, **paint}, {"x": time_axis, "y": {"value": top + 8}}) for paint in (halo, ink)]
    return {"width": width - _AXIS - _MARGIN, "height": height, "layer": [*strokes, *texts]}


def _label(rule: Rule, narrow: bool) -> str:
    if rule.is_onset:
        return f"onset {rule.clock}"
    return rule.key if narrow else f"{rule.key}  {_clipped(rule.text, 60)}"


def _fraction(rule: Rule, span: Span) -> float:
    return (rule.at - span[0]) / (span[1] - span[0])


def _points_left(rule: Rule, span: Span, narrow: bool) -> bool:
    """Whether its label stands left of a rule: where there is room for it."""
    return _fraction(rule, span) > (0.1 if narrow else 0.5)


def _lanes(rules: Sequence[Rule], span: Span, width: int, narrow: bool) -> tuple[int, ...]:
    """The lane of each label: the first one where it overlaps no other."""
    taken: list[list[tuple[float, float]]] = []
    lanes = []
    for rule in rules:
        x = _fraction(rule, span) * (width - _AXIS - _MARGIN)
        length = len(_label(rule, narrow)) * _CHARACTER_PX + 10
        extent = (x - length, x) if _points_left(rule, span, narrow) else (x, x + length)
        lane = next(
            (
                number
                for number, others in enumerate(taken)
                if all(extent[1] < start or end < extent[0] for start, end in others)
            ),
            len(taken),
        )
        if lane == len(taken):
            taken.append([])
        taken[lane].append(extent)
        lanes.append(lane)
    return tuple(lanes)


def _drawn(line: Line) -> list[tuple[int, float | None]]:
    """The points to draw, in milliseconds since the epoch; None breaks the line at a gap."""
    points = line.points
    steps = [(after[0] - before[0]).total_seconds() for before, after in pairwise(points)]
    longest = _GAP * statistics.median(steps) if steps else 0.0
    starts = [0, *(index for index, step in enumerate(steps, start=1) if step > longest), len(points)]
    drawn: list[tuple[int, float | None]] = []
    for start, end in pairwise(starts):
        if drawn:
            drawn.append((drawn[-1][0] + 1, None))
        drawn += [(_milliseconds(at), value) for at, value in _extremes(points[start:end], len(points))]
    return drawn


def _extremes(points: Sequence[tuple[datetime, float]], of: int) -> Sequence[tuple[datetime, float]]:
    """The points; of a line with more than can be seen (`of` in all), the lowest and highest of each slice of time."""
    if of <= _MOST_POINTS:
        return points
    size = -(-of * 2 // _MOST_POINTS)
    kept: set[tuple[datetime, float]] = set()
    for start in range(0, len(points), size):
        part = points[start : start + size]
        kept.update((min(part, key=lambda point: point[1]), max(part, key=lambda point: point[1])))
    return sorted(kept)


def _value_range(panel: Panel) -> tuple[float, float]:
    """The vertical axis with some air, so that no line touches the panel above."""
    values = [value for line in panel.lines for _, value in line.points]
    low, high = min(values), max(values)
    if panel.from_zero:
        low, high = min(low, 0.0), max(high, 0.0)
    air = (high - low) * 0.08 or max(abs(high), 1.0) * 0.08
    return (low if panel.from_zero and low == 0 else low - air), high + air


def _milliseconds(at: datetime) -> int:
    return round(at.timestamp() * 1000)


def _clipped(text: str, characters: int) -> str:
    return text if len(text) <= characters else text[: characters - 1].rstrip() + "…"


def _for_page(svg: str, name: str) -> str:
    """The SVG as part of a page: its ids are its own, and screen readers take it as one picture, not mark by mark."""
    root = ElementTree.fromstring(svg)
    # numbered anew: the converter counts on from one drawing to the next
    ids = {element.get("id"): f"{name}-{number}" for number, element in enumerate(root.iterfind(".//*[@id]"))}
    for element in root.iter():
        for attribute in ("role", "aria-roledescription", "aria-label", "aria-hidden"):
            element.attrib.pop(attribute, None)
        for attribute, value in element.attrib.items():
            referenced = _ID_REFERENCE.fullmatch(value)
            if referenced:
                element.set(attribute, f"url(#{ids[referenced[1]]})")
            elif attribute == "id":
                element.set(attribute, ids[value])
    return ElementTree.tostring(root, encoding="unicode")
