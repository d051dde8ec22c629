"""The answer on one terminal page of at most 40 lines: what, where, how sure, then why not the others."""

from __future__ import annotations

import io
import os
import shutil
import sys
from collections.abc import Callable, Iterable
from textwrap import wrap

from rich.cells import cell_len, set_cell_size
from rich.console import Console
from rich.text import Text

from .view import HypothesisCard, View
from .wording import one_line

FORMAT = "terminal"

_NARROWEST, _WIDEST = 80, 120
_BAR_CELLS = 10
_STATUS_STYLE = {"supported": "bold green", "possible": "yellow", "ruled_out": "dim", "not_assessable": "cyan"}
# Lines a section, so that all sections together stay within a screen of 40 lines.
_CAUSES, _IMPACTS, _RANKED, _RULED_OUT, _NOT_ASSESSABLE, _CHECKS, _ISSUES, _OVERLAPS = 3, 2, 4, 6, 2, 1, 3, 1

_GROUND_LINES = 4
# Causes ruled out that give way to the lines on what the verdict hangs on, and to those on an overlap.
_GIVEN_WAY = 3
_GIVEN_WAY_TO_OVERLAP = 2


def render(view: View) -> str:
    """The page; colours only where standard output is a terminal and NO_COLOR is unset."""
    width = min(max(shutil.get_terminal_size().columns, _NARROWEST), _WIDEST)
    page = io.StringIO()
    coloured = sys.stdout.isatty() and not os.environ.get("NO_COLOR")
    console = Console(file=page, width=width, force_terminal=coloured, highlight=False, markup=False, emoji=False)
    ruled_out = _RULED_OUT - _GIVEN_WAY * bool(view.grounds) - _GIVEN_WAY_TO_OVERLAP * bool(view.overlaps)
    sections = (
        _answer(view, width),
        _ranking(view, width),
        _others("RULED OUT", _one_a_cause(view.ruled_out), ruled_out, lambda card: card.reason),
        _others("NOT ASSESSABLE", _one_a_cause(view.not_assessable), _NOT_ASSESSABLE, _unread),
        _next_checks(view),
        _grounds(view, width),
        _reading(view, width),
    )
    for section in sections:
        for line in section:
            # A name with a line break in it stays on its line.
            console.print(Text(" ").join(line.split("\n", allow_blank=True)), no_wrap=True, overflow="ellipsis")
    return page.getvalue()


def _answer(view: View, width: int) -> Iterable[Text]:
    verdict = view.verdict
    if verdict.headline:
        kicker = "" if verdict.kind == "quiet" else f"{verdict.kicker}: "
        yield Text(f"{kicker}{verdict.headline}", "bold")
    for cause in verdict.causes[:_CAUSES]:
        start = "  " if verdict.headline else f"{cause.card.mark} Root cause: "
        sure = f" · {cause.sure}"
        title = _shortened(cause.title, width - cell_len(start) - cell_len(sure))
        yield Text.assemble((start, _STATUS_STYLE[cause.card.status]), (title, "bold"), sure)
        if cause.card.tie and cause.card.tie.split_by:
            yield Text(f"  told apart by: {_plain(cause.card.tie.split_by[0])}")
    onset = f"onset {view.onset} {view.onset_uncertainty}".rstrip() if view.onset else "no onset"
    yield Text("  " + " · ".join(part for part in (view.incident, view.fabric, view.onset_day, onset) if part))
    for overlap in view.overlaps[:_OVERLAPS]:
        for line in wrap(_plain(overlap.statement), width - 2):
            yield Text(f"  {line}")
    for impact in view.impact[:_IMPACTS]:
        explained = ", ".join(f"{share.text} by {share.id}" for share in impact.explained[:2])
        yield Text.assemble(
            f"  {impact.job}: {impact.measure} {impact.step_times} (",
            (impact.change, "bold"),
            f"){', explained ' if explained else ''}{explained}",
        )


def _ranking(view: View, width: int) -> Iterable[Text]:
    if not view.cards:
        return
    title_cells = width - 48
    yield Text()
    head = f"{view.rank_word:<18}" + ("present" if view.impact else "")
    yield Text("HYPOTHESES".ljust(title_cells + 9) + head, "bold")
    for card in view.cards[:_RANKED]:
        style = _STATUS_STYLE[card.status]
        present = card.probability if view.impact else ""
        yield Text.assemble(
            (f"{card.mark} {card.id:<5} {_fitted(card.title, title_cells)} ", style),
            f"{_bar(card.rank_ratio)} {card.rank:>6} {present:>6} ",
            (card.status_word, style),
        )
    if view.impact:
        unknown = _fitted(view.unknown.name, title_cells)
        yield Text(f"  {'':<5} {unknown} {_bar(view.unknown.ratio)} {view.unknown.text:>6}")


def _one_a_cause(cards: tuple[HypothesisCard, ...]) -> tuple[HypothesisCard, ...]:
    """The first card of each cause: fifteen leaves with the same answer are one line here."""
    return tuple(
        {card.cause: card for card in reversed(cards)}[cause] for cause in dict.fromkeys(c.cause for c in cards)
    )


def _others(
    title: str, cards: tuple[HypothesisCard, ...], shown: int, reason: Callable[[HypothesisCard], str]
) -> Iterable[Text]:
    if not cards:
        return
    yield Text()
    yield Text(f"{title} ({len(cards)} causes)" if len(cards) > 1 else title, "bold")
    for card in cards[:shown]:
        yield Text(f"{card.mark} {card.id:<5} {card.title}")
        yield Text(f"{'':<8}{reason(card)}", "dim")
    if len(cards) > shown:
        yield Text(f"  and {len(cards) - shown} more in the HTML and JSON reports", "dim")


def _unread(card: HypothesisCard) -> str:
    return "read " + "; ".join(f"{_plain(missing.read)} ({missing.place})" for missing in card.missing)


def _next_checks(view: View) -> Iterable[Text]:
    if not view.next_checks and not view.no_check:
        return
    yield Text()
    yield Text("NEXT CHECK", "bold")
    if view.no_check:
        yield Text(f"  {view.no_check}")
    for check in view.next_checks[:_CHECKS]:
        gain = f", {check.gain}" if check.gain else ""
        yield Text(f"→ {_plain(check.read)} ({check.cost}{gain})")


def _grounds(view: View, width: int) -> Iterable[Text]:
    if not view.grounds:
        return
    yield Text()
    yield Text("WHAT IT HANGS ON", "bold")
    for line in wrap(_plain(view.grounds[0].statement), width - 2)[:_GROUND_LINES]:
        yield Text(f"  {line}")


def _reading(view: View, width: int) -> Iterable[Text]:
    yield Text()
    yield Text(f"{view.evidence_count}, {view.issue_count}")
    for issue in [issue for issue in view.read_issues if issue.level != "note"][:_ISSUES]:
        where = " ".join(filter(None, (issue.file, issue.record)))
        yield Text(_shortened(f"  {issue.level}: {_plain(f'{where}: {issue.message}')}", width), "yellow")


def _plain(text: str) -> str:
    """One line without the backticks that mark code."""
    return one_line(text).replace("`", "")


def _bar(ratio: float) -> str:
    """Filled and empty cells; anything above zero shows at least a sliver."""
    eighths = max(1, round(ratio * _BAR_CELLS * 8)) if ratio > 0 else 0
    full, rest = divmod(min(eighths, _BAR_CELLS * 8), 8)
    return ("█" * full + (" ▏▎▍▌▋▊▉"[rest] if rest else "")).ljust(_BAR_CELLS, "·")


def _shortened(text: str, cells: int) -> str:
    return text if cell_len(text) <= cells else set_cell_size(text, cells - 1).rstrip() + "…"


def _fitted(text: str, cells: int) -> str:
    return set_cell_size(_shortened(text, cells), cells)
