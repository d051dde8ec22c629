"""Scores the engine on bundles with their truth; a crash costs its bundle only."""

from __future__ import annotations

import gc
import json
import logging
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from ..errors import CauselineError, UsageError
from ..facts import Reading
from ..investigate import investigate
from ..result_base import Result
from ..rules import KnowledgeBase
from .baselines import BaselineScore, baseline
from .scoreboard import TRUTH, Score, Truth, crashed, score
from .totals import RemovalRates, Totals, by_removal, total

_LOG = logging.getLogger(__name__)

LONGEST_CRASH = 160
"""Characters of a crash that a scoreboard shows (judgement: one line; `causeline -v` logs the rest)."""


class Drill(Result):
    """What a corpus of bundles scored, with which engine and knowledge; `date` is a day in UTC.

    `totals` and the classes are of the bundles as they are; `by_removal` compares them with some of their telemetry
    taken away, () when none was.
    """

    corpus: str
    date: str
    engine: str
    knowledge_digest: str
    totals: Totals
    by_removal: tuple[RemovalRates, ...]
    scores: tuple[Score, ...]
    baselines: tuple[BaselineScore, ...]

    def to_json(self) -> str:
        """JSON with one trailing newline, times of runs to a tenth of a second."""
        return json.dumps(self.model_dump(mode="json"), indent=1, ensure_ascii=False) + "\n"


def bundles_with_truth(corpora: tuple[Path, ...]) -> tuple[Path, ...]:
    """Every bundle folder in the corpora (or a corpus that is one itself) with a truth beside it, in order of name.
    Raises UsageError when there is none."""
    found = [
        path.parent for corpus in corpora for pattern in (TRUTH, f"*/{TRUTH}") for path in sorted(corpus.glob(pattern))
    ]
    if not found:
        raise UsageError(
            f"No bundle with a {TRUTH} in {', '.join(map(str, corpora))}.",
            f"Name a folder whose folders are bundles that hold a {TRUTH}.",
        )
    return tuple(found)


Scores = tuple[Score, BaselineScore]
"""How a bundle was answered, and how the baselines answer it."""


def scoreboard(found: Sequence[Scores], knowledge_digest: str, corpus: str, engine: str, date: str) -> Drill:
    """The scoreboard of scored bundles."""
    whole = [(one, other) for one, other in found if one.removed == 0.0]
    scores, baselines = [one for one, _ in found], [other for _, other in found]
    return Drill(
        corpus=corpus,
        date=date,
        engine=engine,
        knowledge_digest=knowledge_digest,
        totals=total([one for one, _ in whole], [other for _, other in whole]),
        by_removal=by_removal(scores, baselines),
        scores=tuple(scores),
        baselines=tuple(baselines),
    )


def score_bundle(
    bundle: Path, truth: Truth, read: Callable[[Path], Reading], knowledge: KnowledgeBase, removed: float = 0.0
) -> Scores:
    """Investigates one bundle and scores it, `removed` being the share of its telemetry that was taken away."""
    domains = {cause.id: cause.domain for cause in knowledge.causes.values()}
    scored, compared = _one(bundle, truth, read, knowledge, domains)
    gc.collect()  # the command line keeps the collector off: one bundle's facts must not outlive it
    return scored.model_copy(update={"removed": removed}), compared


def _one(
    bundle: Path, truth: Truth, read: Callable[[Path], Reading], knowledge: KnowledgeBase, domains: Mapping[str, str]
) -> tuple[Score, BaselineScore]:
    nothing = BaselineScore(three_sigma="", three_sigma_place=None, three_sigma_cause=None, right_signs=())
    begun = time.perf_counter()

    def elapsed() -> float:
        return round(time.perf_counter() - begun, 1)

    try:
        reading = read(bundle)
    except CauselineError as error:
        return crashed(truth, domains, bundle.name, elapsed(), error.message), nothing
    try:
        scored = score(investigate(reading, knowledge, is_quick=True), truth, domains, bundle.name, 0.0)
        scored = scored.model_copy(update={"runtime_s": elapsed()})
    except Exception as error:  # the seam of a drill: one bundle's crash is one line, told as such
        _LOG.debug("crash on %s", bundle, exc_info=True)
        what = f"{type(error).__name__}: {error}"[:LONGEST_CRASH]
        scored = crashed(truth, domains, bundle.name, elapsed(), what)
    try:
        return scored, baseline(reading, knowledge, truth)
    except Exception:
        _LOG.debug("crash of a baseline on %s", bundle, exc_info=True)
        return scored, nothing
