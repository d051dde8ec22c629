"""`causeline drill`: how often the engine is right, on bundles with a known answer or on incidents drawn from seeds.

Beside `cli.py` the only module of the engine that imports the other packages.
"""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import ExitStack, nullcontext
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

import click

from .console import KNOWLEDGE, Progress, chosen_form, progress_on_stderr, write_text
from .errors import UsageError

if TYPE_CHECKING:
    from .rules import KnowledgeBase
    from .scoring.drill import Scores
    from .scoring.scoreboard import Truth

Work = Callable[[], "list[Scores]"]
"""Scores a bundle, or a drawn incident and what is left of it when telemetry is taken away."""


@dataclass(frozen=True)
class Draws:
    """What to draw: `count` drills from seed `first` on.

    `causes`: which to inject. Every `healthy`-th drill (0: none) has no fault, every `pairs`-th two. `removed`: shares
    of telemetry to take away; `keep`: folder for the bundles, None for none.
    """

    first: int
    count: int
    fabric: str | None
    causes: tuple[str, ...]
    healthy: int
    pairs: int
    removed: tuple[float, ...]
    keep: Path | None
    overlays: tuple[Path, ...]

    def faults(self, seed: int) -> int:
        """How many faults the drill of a seed has."""
        if self.healthy and seed % self.healthy == 0:
            return 0
        return 2 if self.pairs and seed % self.pairs == 1 % self.pairs else 1


def _shares(_: click.Context, __: click.Parameter, text: str) -> tuple[float, ...]:
    """Percentages of --removed as shares."""
    try:
        shares = sorted({float(part) / 100 for part in text.split(",")})
    except ValueError:
        raise click.BadParameter(f"{text!r} is no list of percentages; expected for example 0,25,50,75") from None
    if not all(0.0 <= share < 1.0 for share in shares):
        raise click.BadParameter(f"{text!r}: expected percentages from 0 to below 100")
    return tuple(shares)


@click.command()
@click.option(
    "--corpus",
    "corpora",
    multiple=True,
    type=click.Path(path_type=Path, file_okay=False, exists=True),
    help="A folder of bundles, each with its truth.json. May be repeated. Instead of --seed.",
)
@click.option("--seed", type=int, help="Seed of the first drawn incident; the next ones follow.")
@click.option("--count", type=click.IntRange(min=1), default=10, show_default=True, help="How many to draw.")
@click.option("--fabric", help="Draw on this fabric only, for example rail-64.")
@click.option("--cause", "causes", multiple=True, help="Inject only this. May be repeated. Default: all known rules.")
@click.option("--healthy", type=click.IntRange(min=0), default=8, show_default=True, help="Every n-th without a fault.")
@click.option("--pairs", type=click.IntRange(min=0), default=0, show_default=True, help="Every n-th with two faults.")
@click.option("--removed", default="0", callback=_shares, help="Percent of telemetry to remove, e.g. 0,25,50,75.")
@click.option("--keep", type=click.Path(path_type=Path, file_okay=False), help="Keep the drawn bundles in this folder.")
@click.option("--jobs", type=click.IntRange(min=1), default=1, show_default=True, help="Processes at work.")
@click.option("-f", "--format", "form", type=click.Choice(["terminal", "json"]), help="Default: by the ending of -o.")
@click.option("-o", "--output", type=click.Path(path_type=Path, dir_okay=False), help="Write to this file.")
@KNOWLEDGE
def drill(
    corpora: tuple[Path, ...],
    seed: int | None,
    count: int,
    fabric: str | None,
    causes: tuple[str, ...],
    healthy: int,
    pairs: int,
    removed: tuple[float, ...],
    keep: Path | None,
    jobs: int,
    form: str | None,
    output: Path | None,
    overlays: tuple[Path, ...],
) -> None:
    """Score the engine where the answer is known: right, honest, calibrated, and against baselines.

    On bundles with a truth beside them (--corpus), or on incidents drawn from seeds (--seed).
    """
    from datetime import UTC, datetime
    from importlib.metadata import version

    from .scoring.drill import bundles_with_truth, scoreboard
    from .scoring.scoreboard import TRUTH, read_truth
    from .scoring.text import as_text

    if bool(corpora) == (seed is not None):
        raise UsageError("Name either a --corpus or a --seed.", "For example: causeline drill --seed 1 --count 20")
    knowledge = _loaded(overlays)
    stamp = version("causeline"), datetime.now(UTC).date().isoformat()
    with progress_on_stderr() as progress:
        if seed is None:
            # All truths first: a wrong one is told before hours of work, not after.
            truths = [(bundle, read_truth(bundle / TRUTH)) for bundle in bundles_with_truth(corpora)]
            work = [(bundle.name, partial(score_folder, bundle, truth, overlays)) for bundle, truth in truths]
            what = ", ".join(corpus.resolve().name for corpus in corpora)
        else:
            known = causes or _injectable(knowledge)
            draws = Draws(seed, count, fabric, known, healthy, pairs, removed, keep, overlays)
            work = [(f"drill {one}", partial(score_seed, draws, one)) for one in range(seed, seed + count)]
            what = f"{count} drawn incidents, seeds {seed} to {seed + count - 1}" + (f" on {fabric}" if fabric else "")
        scores = [one for some in _done(work, jobs, progress) for one in some]
    found = scoreboard(scores, knowledge.digest, what, *stamp)
    is_json = (form or chosen_form(None, output)) == "json"
    write_text(found.to_json() if is_json else as_text(found), output)


def _injectable(knowledge: KnowledgeBase) -> tuple[str, ...]:
    """Causes of the knowledge base that the fabric model can make true."""
    from ..fixtures.faults import DRAWERS

    return tuple(sorted(set(knowledge.causes) & set(DRAWERS)))


def _done(work: Sequence[tuple[str, Work]], jobs: int, progress: Progress) -> Iterator[list[Scores]]:
    """What each named piece of work gives, in their order whatever the number of processes."""
    names, calls = zip(*work, strict=True)
    with ProcessPoolExecutor(max_workers=jobs) if jobs > 1 else nullcontext() as pool:
        done = iter(pool.map(_call, calls) if pool else map(_call, calls))
        for number, name in enumerate(names, start=1):
            progress(f"{name} ({number} of {len(names)})")
            yield next(done)


def _call(work: Work) -> list[Scores]:
    gc.disable()  # as in `investigate`; scoring collects once a bundle
    return work()


@cache
def _loaded(overlays: tuple[Path, ...]) -> KnowledgeBase:
    """The rules, once a process however many seeds it scores."""
    from ..knowledge import load

    return load(*overlays)


def score_seed(draws: Draws, seed: int) -> list[Scores]:
    """Draws the incident of a seed, writes its bundle once for each share of telemetry removed, and scores them."""
    from ..adapters import read
    from ..fixtures.drills import bundle, draw, play
    from ..fixtures.write_tidy import write_tidy
    from .scoring.drill import score_bundle
    from .scoring.scoreboard import TRUTH, read_truth

    try:
        played = play(draw(seed, draws.causes, draws.fabric, draws.faults(seed)))
    except ValueError as error:
        raise UsageError(f"{error}.", "Choose other causes or another fabric.") from error
    found = []
    with ExitStack() as stack:
        root = draws.keep or Path(stack.enter_context(TemporaryDirectory(prefix="causeline-drill-")))
        for share in draws.removed:
            name = f"drill-{seed}" + (f"-without-{share * 100:.0f}-percent" if share else "")
            write_tidy(bundle(played, share), root / name)
            truth = read_truth(root / name / TRUTH)
            found.append(score_bundle(root / name, truth, read, _loaded(draws.overlays), share))
    return found


def score_folder(bundle: Path, truth: Truth, overlays: tuple[Path, ...]) -> list[Scores]:
    """Scores one bundle against its truth."""
    from ..adapters import read
    from .scoring.drill import score_bundle

    return [score_bundle(bundle, truth, read, _loaded(overlays))]
