"""The scoreboard as text: Markdown whose tables are aligned, so that a terminal shows them as well."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from .drill import Drill
from .scoreboard import Score
from .totals import Rate, Totals


def as_text(drill: Drill) -> str:
    """The whole scoreboard: a row a bundle, the totals, classes, calibration, domains, and one line a miss."""
    totals = drill.totals
    parts = [
        f"# Scores of {drill.corpus}",
        f"{drill.date}, engine {drill.engine}, knowledge {drill.knowledge_digest[:12]}; {totals.bundles} bundles, "
        f"{totals.crashes} crashes, median {totals.median_runtime_s} s a bundle.",
        _table(
            ("bundle", "truth", "verdict", "top-1", "top-3", "leads", "acquitted", "leading answer"),
            (_row(score) for score in drill.scores if score.removed == 0.0),
        ),
        "## Totals",
        _table(("what", "hits", "rate", "95 %"), _total_rows(totals)),
        *_removal(drill),
        "## By class",
        _table(
            ("true cause", "top-1", "top-3", "named as root", "acquitted", "top-1, 95 %"),
            (
                (
                    one.cause,
                    *(f"{rate.hits} of {rate.of}" for rate in (one.top_1, one.top_3, one.right, one.acquitted)),
                    _interval(one.top_1),
                )
                for one in totals.classes
            ),
        ),
        "## Calibration",
        f"Calibration error {totals.calibration_error}, Brier score {totals.brier} over tie classes with probability "
        "> .05, equal-mass bins.",
        _table(
            ("tie classes", "claimed", "true"),
            ((str(one.count), f"{one.claimed:.2f}", f"{one.true:.2f}") for one in totals.calibration),
        ),
        _table(
            ("family of the leading cause", "tie classes", "claimed", "true", "Brier", "error"),
            (
                (one.family, str(one.count), *(f"{n:.2f}" for n in (one.claimed, one.true, one.brier, one.error)))
                for one in totals.families
            ),
        ),
        "## Domain (true -> said)",
        _table(
            ("true", "said"),
            ((true, ", ".join(f"{said} {n}" for said, n in row.items())) for true, row in totals.domains.items()),
        ),
    ]
    if misses := [
        f"- {score.bundle} ({score.scenario}): {score.miss or score.crash}"
        for score in drill.scores
        if score.removed == 0.0 and (score.miss or score.crash)
    ]:
        parts += ["## Misses: what was seen, and why it was not enough", "\n".join(misses)]
    return "\n\n".join(parts) + "\n"


def _removal(drill: Drill) -> list[str]:
    """The table against the share of telemetry removed, where some was."""
    if not drill.by_removal:
        return []
    header = ("removed", "top-1", "top-3", "named", "both", "wrong", "acquitted", "blamed", "ruled out", "of read")
    rows = []
    for one in drill.by_removal:
        right = (one.top_1, one.top_3, one.right, one.both, one.wrong_root)
        rates = (*right, one.acquitted, one.blamed, one.ruled_out, one.ruled_out_assessable, one.undecided)
        error = "-" if one.calibration_error is None else f"{one.calibration_error:.3f}"
        cells = ("-" if rate.rate is None else f"{rate.rate:.2f} ({rate.hits}/{rate.of})" for rate in rates)
        rows.append((f"{one.removed:.0%}", *cells, error))
    return ["## Against the share of telemetry removed", _table((*header, "undecided", "calibration"), rows)]


def _row(score: Score) -> tuple[str, ...]:
    truth = " + ".join(score.classes) or "healthy"
    if score.classes and not score.has_victims:
        truth += " (harmless)"
    leading = f"crash: {score.crash[:80]}" if score.crash else score.answers[0] if score.answers else "none"
    verdict = "blamed" if score.blamed else "reported" if score.is_reported else score.verdict
    return (
        score.bundle,
        truth,
        "crash" if score.crash else verdict,
        _yes(score.top_1),
        _yes(score.top_3),
        _yes(score.leads),
        ", ".join(score.acquitted) or "-",
        leading,
    )


def _yes(answer: bool | None) -> str:
    return "-" if answer is None else "yes" if answer else "no"


def _total_rows(totals: Totals) -> Iterable[tuple[str, ...]]:
    rows = (
        ("cause and place first (top-1)", totals.top_1),
        ("cause and place among three (top-3)", totals.top_3),
        ("leads the causes, however improbable", totals.leads),
        ("named as supported root cause", totals.right),
        ("both of two faults", totals.both),
        ("only wrong root causes named", totals.wrong_root),
        ("a true cause ruled out", totals.acquitted),
        ("slowdown blamed though no job slowed", totals.blamed),
        ("harmless fault reported as anomaly", totals.harmless_reported),
        ("rows of rivals ruled out", totals.ruled_out),
        ("... of those with signs read", totals.ruled_out_assessable),
        ("causes the truth says are ruled out", totals.expected_ruled_out),
        ("causes the truth says nobody can assess", totals.expected_not_assessable),
        ("3-sigma ranking, place only", totals.three_sigma_place),
        ("3-sigma ranking, place and usual cause", totals.three_sigma_cause),
        (f"best single sign ({totals.best_rule})", totals.best_rule_cause),
    )
    for name, rate in rows:
        shown = "-" if rate.rate is None else f"{rate.rate:.2f}"
        yield name, f"{rate.hits} of {rate.of}", shown, _interval(rate).strip() or "-"


def _interval(rate: Rate) -> str:
    return "" if rate.low is None or rate.high is None else f" {rate.low:.2f}-{rate.high:.2f}"


def _table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [tuple(header), *(tuple(cell.replace("|", "/") for cell in row) for row in rows)]
    widths = [max(len(line[column]) for line in lines) for column in range(len(header))]
    written = [
        "| " + " | ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)) + " |" for line in lines
    ]
    written.insert(1, "|" + "|".join("-" * (width + 2) for width in widths) + "|")
    return "\n".join(written)
