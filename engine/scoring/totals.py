"""Scores of many bundles -> the figures of DESIGN.md section 9, with intervals, and as text."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from itertools import pairwise
from typing import TypeVar

from ..result_base import Result
from .baselines import BaselineScore
from .scoreboard import Calibrated, Score

WILSON_Z = 1.959964
"""Two-sided 95 % of the normal distribution (Wilson, Probable Inference, JASA 1927)."""

BINS = 5
"""Equal-mass bins of the calibration (judgement: some 20 tie classes a bin on 30 bundles)."""

SMALLEST_BIN = 10
"""Tie classes in a bin at least, fewer bins otherwise (judgement: of ten, one more or less is a tenth)."""


class Rate(Result):
    """`hits` of `of`, with the Wilson interval of 95 %; `rate` and bounds None where there was nothing to count."""

    hits: int
    of: int
    rate: float | None
    low: float | None
    high: float | None


class ClassRates(Result):
    """One class of causes (the first accepted cause of a truth)."""

    cause: str
    top_1: Rate
    top_3: Rate
    right: Rate
    acquitted: Rate


class CalibrationBin(Result):
    """Tie classes of similar probability: the mean of what was claimed, and the share that was true."""

    count: int
    claimed: float
    true: float


class FamilyCalibration(Result):
    """Calibration of the answers led by causes of one family: `claimed` mean probability, `true` share of right ones,
    `brier` mean squared distance of claim and truth, `error` as of the whole."""

    family: str
    count: int
    claimed: float
    true: float
    brier: float
    error: float


class Totals(Result):
    """`top_1`, `top_3`, `leads`, `right` (a supported root cause is right) over bundles with a cause that harms a job;
    `harmless_reported` over harmless ones; `both` over bundles with two causes; `acquitted` over bundles with a cause;
    `blamed` over bundles without a victim; `wrong_root` over all. `ruled_out`: rows of rivals that were ruled out, of
    all and (`ruled_out_assessable`) of those whose signs were read. The baselines are scored where a job was harmed."""

    bundles: int
    crashes: int
    top_1: Rate
    top_3: Rate
    leads: Rate
    right: Rate
    both: Rate
    wrong_root: Rate
    acquitted: Rate
    blamed: Rate
    harmless_reported: Rate
    ruled_out: Rate
    ruled_out_assessable: Rate
    expected_ruled_out: Rate
    expected_not_assessable: Rate
    calibration: tuple[CalibrationBin, ...]
    calibration_error: float | None
    brier: float | None
    families: tuple[FamilyCalibration, ...]
    domains: dict[str, dict[str, int]]
    classes: tuple[ClassRates, ...]
    three_sigma_place: Rate
    three_sigma_cause: Rate
    best_rule: str
    best_rule_cause: Rate
    median_runtime_s: float | None


class RemovalRates(Result):
    """The main figures with this share of the telemetry removed. `undecided`: bundles whose domain was left open."""

    removed: float
    bundles: int
    top_1: Rate
    top_3: Rate
    right: Rate
    both: Rate
    wrong_root: Rate
    acquitted: Rate
    blamed: Rate
    ruled_out: Rate
    ruled_out_assessable: Rate
    undecided: Rate
    calibration_error: float | None


def wilson(hits: int, of: int) -> Rate:
    """A rate with its Wilson interval.

    >>> wilson(9, 10).low, wilson(9, 10).high
    (0.5958, 0.9821)
    """
    if of == 0:
        return Rate(hits=hits, of=of, rate=None, low=None, high=None)
    p, z2 = hits / of, WILSON_Z**2
    middle = (p + z2 / (2 * of)) / (1 + z2 / of)
    half = WILSON_Z * math.sqrt(p * (1 - p) / of + z2 / (4 * of * of)) / (1 + z2 / of)
    return Rate(
        hits=hits,
        of=of,
        rate=round(p, 4),
        low=round(max(0.0, middle - half), 4),
        high=round(min(1.0, middle + half), 4),
    )


def total(scores: Sequence[Score], baselines: Sequence[BaselineScore]) -> Totals:
    """The figures over all bundles; `baselines` has one entry a score, in its order."""
    harmed = [score for score in scores if score.classes and score.has_victims]
    with_cause = [score for score in scores if score.classes]
    harmless = [score for score in scores if not score.has_victims]
    classes = sorted({name for score in with_cause for name in score.classes})
    confusion: dict[str, dict[str, int]] = {}
    for score in scores:
        row = confusion.setdefault(" + ".join(score.true_domains) or "none", {})
        row[score.domain] = row.get(score.domain, 0) + 1
    rivals = sum(score.rivals for score in scores)
    ruled_out = sum(score.rivals_ruled_out for score in scores)
    claims = [one for score in scores for one in score.calibration]
    bins = calibration_bins(claims)
    named = [
        one
        for one, score in zip(baselines, scores, strict=True)
        if score.has_victims and one.three_sigma_place is not None
    ]
    caused = [one for one, score in zip(baselines, scores, strict=True) if score.classes and score.has_victims]
    best_rule, best_hits = _best_rule(caused)
    runtimes = sorted(score.runtime_s for score in scores)
    return Totals(
        bundles=len(scores),
        crashes=sum(bool(score.crash) for score in scores),
        top_1=_rate(harmed, lambda score: bool(score.top_1)),
        top_3=_rate(harmed, lambda score: bool(score.top_3)),
        leads=_rate(harmed, lambda score: bool(score.leads)),
        right=_rate(harmed, lambda score: score.verdict == "right"),
        both=_rate([score for score in scores if score.both is not None], lambda score: bool(score.both)),
        wrong_root=_rate(scores, lambda score: score.verdict == "wrong"),
        acquitted=_rate(with_cause, lambda score: bool(score.acquitted)),
        blamed=_rate(harmless, lambda score: bool(score.blamed)),
        harmless_reported=_rate(
            [score for score in scores if score.is_reported is not None], lambda score: bool(score.is_reported)
        ),
        ruled_out=wilson(ruled_out, rivals),
        ruled_out_assessable=wilson(ruled_out, rivals - sum(score.rivals_not_assessable for score in scores)),
        expected_ruled_out=_pairs(score.expected_ruled_out for score in scores),
        expected_not_assessable=_pairs(score.expected_not_assessable for score in scores),
        calibration=bins,
        calibration_error=calibration_error(bins),
        brier=brier(claims),
        families=family_calibration(claims),
        domains={name: dict(sorted(row.items())) for name, row in sorted(confusion.items())},
        classes=tuple(_class_rates(name, with_cause) for name in classes),
        three_sigma_place=_rate(named, lambda one: bool(one.three_sigma_place)),
        three_sigma_cause=_rate(caused, lambda one: bool(one.three_sigma_cause)),
        best_rule=best_rule,
        best_rule_cause=wilson(best_hits, len(caused)),
        median_runtime_s=round(runtimes[len(runtimes) // 2], 2) if runtimes else None,
    )


def by_removal(scores: Sequence[Score], baselines: Sequence[BaselineScore]) -> tuple[RemovalRates, ...]:
    """The main figures for each share of telemetry removed, the least first; () when nothing was ever removed."""
    shares = sorted({score.removed for score in scores})
    if shares in ([], [0.0]):
        return ()
    rows = []
    for share in shares:
        mine = [(score, one) for score, one in zip(scores, baselines, strict=True) if score.removed == share]
        totals = total([score for score, _ in mine], [one for _, one in mine])
        rows.append(
            RemovalRates(
                removed=share,
                undecided=_rate([score for score, _ in mine], lambda score: score.domain == "undecided"),
                **{name: getattr(totals, name) for name in RemovalRates.model_fields if name in Totals.model_fields},
            )
        )
    return tuple(rows)


Scored = TypeVar("Scored", Score, BaselineScore)


def _rate(scored: Sequence[Scored], is_hit: Callable[[Scored], bool]) -> Rate:
    return wilson(sum(map(is_hit, scored)), len(scored))


def _pairs(pairs: Iterable[tuple[int, int]]) -> Rate:
    found = list(pairs)
    return wilson(sum(hits for hits, _ in found), sum(of for _, of in found))


def _class_rates(name: str, scores: Sequence[Score]) -> ClassRates:
    mine = [score for score in scores if name in score.classes]
    return ClassRates(
        cause=name,
        top_1=_rate(mine, lambda score: bool(score.top_1)),
        top_3=_rate(mine, lambda score: bool(score.top_3)),
        right=_rate(mine, lambda score: score.verdict == "right"),
        acquitted=_rate(mine, lambda score: bool(score.acquitted)),
    )


def _best_rule(baselines: Sequence[BaselineScore]) -> tuple[str, int]:
    """The sign that alone names the most true causes at true places; ties by name."""
    hits: dict[str, int] = {}
    for one in baselines:
        for sign in one.right_signs:
            hits[sign] = hits.get(sign, 0) + 1
    return max(sorted(hits.items()), key=lambda item: item[1], default=("none", 0))


def calibration_bins(classes: Sequence[Calibrated]) -> tuple[CalibrationBin, ...]:
    """Equal-mass bins, least probable first; fewer where there are fewer classes than bins."""
    ordered = sorted(classes, key=lambda one: (one.probability, one.is_true))
    count = min(BINS, max(1, len(ordered) // SMALLEST_BIN)) if ordered else 0
    edges = [round(index * len(ordered) / count) for index in range(count + 1)] if count else []
    groups = [ordered[low:high] for low, high in pairwise(edges)]
    return tuple(
        CalibrationBin(
            count=len(group),
            claimed=round(sum(one.probability for one in group) / len(group), 4),
            true=round(sum(one.is_true for one in group) / len(group), 4),
        )
        for group in groups
    )


def brier(claims: Sequence[Calibrated]) -> float | None:
    """Mean squared distance of claim and truth (Brier 1950): 0 for an oracle, .25 for a coin; None
    without a claim."""
    return round(sum((one.probability - one.is_true) ** 2 for one in claims) / len(claims), 4) if claims else None


def family_calibration(claims: Sequence[Calibrated]) -> tuple[FamilyCalibration, ...]:
    """The calibration of each family that leads an answer, by name."""
    by_family: dict[str, list[Calibrated]] = {}
    for one in claims:
        by_family.setdefault(one.cause.partition(".")[0], []).append(one)
    return tuple(
        FamilyCalibration(
            family=family,
            count=len(mine),
            claimed=round(sum(one.probability for one in mine) / len(mine), 4),
            true=round(sum(one.is_true for one in mine) / len(mine), 4),
            brier=brier(mine) or 0.0,
            error=calibration_error(calibration_bins(mine)) or 0.0,
        )
        for family, mine in sorted(by_family.items())
    )


def calibration_error(bins: Sequence[CalibrationBin]) -> float | None:
    """Mean distance of claim and truth, weighted by the bins' size; None without any tie class."""
    whole = sum(one.count for one in bins)
    return round(sum(one.count * abs(one.claimed - one.true) for one in bins) / whole, 4) if whole else None
