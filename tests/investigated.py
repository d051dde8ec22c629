"""Investigations that tests share: a whole bundle costs some ten seconds, so each is made once a session."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from causeline import adapters, knowledge
from causeline.engine import inference
from causeline.engine.facts import Reading
from causeline.engine.investigate import examine
from causeline.engine.results import Hypothesis, Investigation

ROOT = Path(__file__).parents[1]
INCIDENTS = sorted(path for path in (ROOT / "fixtures" / "incidents").iterdir() if (path / "truth.json").exists())
INC_4127 = ROOT / "fixtures" / "incidents" / "inc-4127"
QUIET = sorted(path for path in (ROOT / "fixtures" / "quiet").iterdir() if (path / "truth.json").exists())


@dataclass(frozen=True)
class Examined:
    """An investigation, and what pgmpy said about the leading part of its network."""

    investigation: Investigation
    cross_check: inference.CrossCheck


def examined(reading: Reading, is_quick: bool = False) -> Examined:
    """Investigate, and let pgmpy confirm the leading causes (raises where it does not)."""
    case = examine(reading, knowledge.load(), is_quick=is_quick)
    leading = [verdict.id for verdict in case.judgement.listed[:6]]
    return Examined(case.investigation, inference.check(case.compiled.network, case.judgement.posterior, leading))


@cache
def whole(bundle: Path) -> Examined:
    """A committed bundle, examined once a session; only INC-4127 with what its verdict hangs on."""
    return examined(adapters.read(bundle), is_quick=bundle != INC_4127)


def investigation_of(bundle: Path) -> Investigation:
    """The investigation of a bundle on disk, not kept."""
    return examine(adapters.read(bundle), knowledge.load(), is_quick=True).investigation


def rows_of(investigation: Investigation, cause: str) -> tuple[Hypothesis, ...]:
    """All hypotheses of a cause, the row of its remaining places too."""
    return tuple(one for one in investigation.hypotheses if one.cause == cause)


def without_files(reading: Reading, is_left_out: Callable[[str], bool]) -> Reading:
    """What the reading would be had these files not been collected."""
    return Reading(
        reading.incident,
        tuple(fact for fact in reading.facts if not is_left_out(fact.provenance.source)),
        tuple(issue for issue in reading.issues if not is_left_out(issue.source)),
        tuple(file for file in reading.files if not is_left_out(file.path)),
        reading.excerpt,
    )
