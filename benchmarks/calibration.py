"""Fits the tempers of `knowledge/tempers.yaml` on one folder of drills and shows the calibration on others:
`python benchmarks/calibration.py FIT REPORT...`, for example out/fit out/report ../shared/sim.

A folder is what `causeline drill --keep` leaves, or any with bundles and their truth; to be fair, FIT has other seeds
than REPORT. Each bundle is read once and concluded once for each setting. Only families whose temper lowers the Brier
sum of the fit by more than twice its standard error are tempered. Writes calibration.json and calibration.md beside
itself; what is fitted is put into the YAML by hand.
"""

from __future__ import annotations

import gc
import json
import math
import statistics
import sys
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

from causeline.adapters import read
from causeline.engine.investigate import conclude, gather
from causeline.engine.scoring.drill import bundles_with_truth
from causeline.engine.scoring.scoreboard import TRUTH, Calibrated, answers, calibrated, is_right, read_truth
from causeline.engine.scoring.totals import brier, calibration_bins, calibration_error, family_calibration
from causeline.knowledge.loader import read_library

HERE = Path(__file__).parent
TRIED = (0.8, 0.6)
"""Exponents that are tried for each family of signs, all others at 1 (judgement)."""
PROCESSES = 2

Setting = Mapping[str, float]
Result = dict[str, Any]


@dataclass(frozen=True)
class Outcome:
    """What one setting made of one bundle: its credible claims, and the Brier sum over all its answers, where a true
    cause without an answer counts 1."""

    claims: tuple[Calibrated, ...]
    brier_sum: float


def outcomes(settings: Sequence[Setting], bundle: Path) -> list[Outcome]:
    """One for each setting."""
    library, truth = read_library(), read_truth(bundle / TRUTH)
    gc.disable()  # as the command line does
    evidence = gather(read(bundle), library.knowledge_base(tempers={}))
    found = []
    for setting in settings:
        investigation = conclude(evidence, library.knowledge_base(tempers=setting), is_quick=True).investigation
        ranked = answers(investigation)
        real = (*truth.causes, *truth.anomalies)
        right = [any(is_right(row, cause) for row in one.rows for cause in real) for one in ranked]
        unanswered = sum(not any(is_right(row, cause) for one in ranked for row in one.rows) for cause in truth.causes)
        missed = sum((one.probability - hit) ** 2 for one, hit in zip(ranked, right, strict=True))
        found.append(Outcome(calibrated(ranked, truth), missed + unanswered))
    gc.collect()
    return found


def concluded(corpus: Path, settings: Sequence[Setting]) -> list[list[Outcome]]:
    """A list for each bundle, an outcome for each setting."""
    bundles = bundles_with_truth((corpus,))
    found = []
    with ProcessPoolExecutor(PROCESSES) as pool:
        for number, one in enumerate(pool.map(partial(outcomes, settings), bundles), start=1):
            print(f"{corpus.name}: {number} of {len(bundles)}", file=sys.stderr, flush=True)
            found.append(one)
    return found


@dataclass(frozen=True)
class Trial:
    """A family at an exponent: by how much the Brier sum of a bundle falls in the mean, and its standard error."""

    family: str
    t: float
    gain: float
    error: float


def trials(families: Sequence[str], fit: Path) -> list[Trial]:
    tried = [(family, t) for family in families for t in TRIED]
    found = concluded(fit, [{}, *({family: t} for family, t in tried)])
    rows = []
    for number, (family, t) in enumerate(tried, start=1):
        gains = [bundle[0].brier_sum - bundle[number].brier_sum for bundle in found]
        rows.append(Trial(family, t, statistics.fmean(gains), statistics.stdev(gains) / math.sqrt(len(gains))))
    return rows


def chosen(tried: Iterable[Trial]) -> dict[str, float]:
    """For each family the exponent that gains most, where it gains more than twice its standard error."""
    best: dict[str, Trial] = {}
    for one in tried:
        if one.gain > 2 * one.error and (one.family not in best or one.gain > best[one.family].gain):
            best[one.family] = one
    return {family: one.t for family, one in sorted(best.items())}


def reliability(claims: Sequence[Calibrated]) -> Result:
    bins = calibration_bins(claims)
    return {
        "claims": len(claims),
        "error": calibration_error(bins),
        "brier": brier(claims),
        "bins": [one.model_dump() for one in bins],
        "families": [one.model_dump() for one in family_calibration(claims)],
    }


def reported(corpus: Path, tempers: Setting) -> Result:
    found = concluded(corpus, [{}, tempers])
    as_graded, with_tempers = ([claim for one in found for claim in one[n].claims] for n in (0, 1))
    return {
        "corpus": corpus.resolve().name,
        "bundles": len(found),
        "as graded": reliability(as_graded),
        "tempered": reliability(with_tempers),
    }


def page(result: Result) -> str:
    tempers: Setting = result["tempers"]
    told = (
        ", ".join(f"{family} {t}" for family, t in tempers.items()) or "none: no family gained twice its standard error"
    )
    lines = [
        "# Calibration",
        "",
        f"{result['date']}, knowledge {result['knowledge']}. Fitted on {result['fit']}; tempers: {told}.",
        "",
        "| family of signs | t | gain of the Brier sum a bundle | standard error |",
        "|-|-|-|-|",
        *(f"| {one['family']} | {one['t']} | {one['gain']:+.4f} | {one['error']:.4f} |" for one in result["trials"]),
    ]
    for corpus in result["reports"]:
        lines += ["", f"## {corpus['corpus']}, {corpus['bundles']} bundles", ""]
        lines += [
            "| | claims over .05 | calibration error | Brier | claimed -> true, by equal-mass bins |",
            "|-|-|-|-|-|",
        ]
        for name in ("as graded", "tempered"):
            one = corpus[name]
            bins = ", ".join(f"{part['claimed']:.2f} -> {part['true']:.2f}" for part in one["bins"])
            lines.append(f"| {name} | {one['claims']} | {one['error']} | {one['brier']} | {bins} |")
        lines += ["", "| family of the leading cause | | claims | claimed | true | Brier | error |", "|-|-|-|-|-|-|-|"]
        for name in ("as graded", "tempered"):
            for row in corpus[name]["families"]:
                numbers = (f"{row[key]:.2f}" for key in ("claimed", "true", "brier", "error"))
                lines.append(f"| {row['family']} | {name} | {row['count']} | {' | '.join(numbers)} |")
    return "\n".join(lines) + "\n"


def main(fit: Path, *reports: Path) -> None:
    library = read_library()
    families = sorted(set(library.sign_families.values()))
    tried = trials(families, fit)
    tempers = chosen(tried)
    result: Result = {
        "date": datetime.now(UTC).date().isoformat(),
        "knowledge": library.digest()[:12],
        "fit": f"{len(bundles_with_truth((fit,)))} bundles of {fit.resolve().name}",
        "tempers": tempers,
        "trials": [vars(one) for one in tried],
        "reports": [reported(corpus, tempers) for corpus in reports],
    }
    (HERE / "calibration.json").write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")
    (HERE / "calibration.md").write_text(page(result), encoding="utf-8")


if __name__ == "__main__":
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    main(*map(Path, sys.argv[1:]))
