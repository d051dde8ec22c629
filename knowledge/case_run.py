"""Plays cases against the knowledge base: `causeline kb test`, and one test each under pytest."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from ..engine.errors import CauselineError, KnowledgeError, UsageError
from ..engine.findings import SignFinding
from ..engine.results import Hypothesis, Investigation
from ..engine.rules import KnowledgeBase
from . import load
from .case_reading import WrongCase, reading_of
from .casefile import Case, Expectation, RuleCases, read_case_files
from .loader import SHIPPED
from .small_fabric import load_fabric

if TYPE_CHECKING:
    from ..engine.investigate import Case as Examined


@dataclass(frozen=True, slots=True)
class PlayableCase:
    """One case, ready to be played. `name` is `<rule id>.<case>`."""

    cases: RuleCases
    case: Case
    directories: tuple[Path, ...]

    @property
    def name(self) -> str:
        return f"{self.cases.rule}.{self.case.name}"


@dataclass(frozen=True, slots=True)
class CaseResult:
    """`differences` between what was expected and what came out, as `file:line: case: what`; empty when it passed."""

    name: str
    differences: tuple[str, ...]

    @property
    def has_passed(self) -> bool:
        return not self.differences


def playable_cases(ids: Collection[str] = (), *overlays: Path) -> tuple[PlayableCase, ...]:
    """All cases, or those of the rules in `ids`, in order of the rules' ids.

    Raises KnowledgeError for case files that cannot be read, UsageError for a rule without cases.
    """
    files, problems = read_case_files(*overlays)
    if problems:
        raise KnowledgeError(problems)
    if unknown := sorted(set(ids) - set(files)):
        raise UsageError(f"There are no cases for {', '.join(unknown)}.", "`causeline kb list` shows the rules.")
    directories = (*reversed(overlays), SHIPPED)
    return tuple(
        PlayableCase(cases, case, directories)
        for rule, cases in files.items()
        if not ids or rule in ids
        for case in cases.file.cases
    )


def run_cases(ids: Collection[str] = (), *overlays: Path) -> Iterator[CaseResult]:
    """Plays the cases of the rules in `ids` (all when empty), one result after another."""
    cases = playable_cases(ids, *overlays)
    knowledge = load(*overlays)
    return (play(case, knowledge) for case in cases)


def play(playable: PlayableCase, knowledge: KnowledgeBase) -> CaseResult:
    """Examines the situation of a case and compares. A case that cannot be played has failed, and says why."""
    cases, name = playable.cases, playable.case.name
    try:
        return CaseResult(playable.name, differences(playable, examined(playable, knowledge), knowledge))
    except WrongCase as error:
        return CaseResult(playable.name, (f"{cases.source.path}:{error.line}: {name}: {error}",))
    except CauselineError as error:
        line = cases.line_of(playable.case)
        return CaseResult(playable.name, (f"{cases.source.path}:{line}: {name}: the investigation failed: {error}",))


def examined(playable: PlayableCase, knowledge: KnowledgeBase) -> Examined:
    """What the engine makes of the situation of a case.

    Raises WrongCase where the case names a fabric that cannot be read or a place its fabric does not have.
    """
    # Imported here: the pipeline brings DuckDB with it, which no one who only lists cases needs.
    from ..engine.investigate import examine

    cases, case = playable.cases, playable.case
    fabric, problems = load_fabric(playable.directories, cases.situation(case).topology or "")
    if fabric is None:
        raise WrongCase(cases.line_of(case, "topology"), "; ".join(problems))
    return examine(reading_of(cases, case, fabric), knowledge)


def differences(playable: PlayableCase, result: Examined, knowledge: KnowledgeBase) -> tuple[str, ...]:
    """Where a result is not what the case expects, as `file:line: case: what`."""
    cases, case = playable.cases, playable.case
    found: list[str] = []
    if cases.is_cause:
        found.extend(_cause_differences(case.expect, cases.rule, result.investigation))
    elif case.expect.model_fields_set - {"findings"}:
        found.append("cases of a sign can only expect findings")
    found.extend(_finding_differences(case.expect, result.evidence.findings, knowledge))
    found.extend(_rival_differences(case.expect, result.investigation, knowledge))
    line = cases.line_of(case, "expect")
    return tuple(f"{cases.source.path}:{line}: {case.name}: {what}" for what in found)


def _cause_differences(expect: Expectation, cause: str, investigation: Investigation) -> Iterator[str]:
    if not expect.model_fields_set & {"status", "root", "leads", "probability_min", "probability_max"}:
        return
    row = _row(investigation, cause, expect.at)
    if row is None:
        rows = ", ".join(_told(row) for row in investigation.hypotheses if row.cause == cause)
        yield f"no hypothesis {cause}{f' at {expect.at}' if expect.at else ''}; there are: {rows or 'none'}"
        return
    if expect.status is not None and row.status != expect.status:
        yield f"{_told(row)}, expected {expect.status}"
    if expect.probability_min is not None and row.probability < expect.probability_min:
        yield f"{_told(row)}, expected at least {expect.probability_min:g}"
    if expect.probability_max is not None and row.probability > expect.probability_max:
        yield f"{_told(row)}, expected at most {expect.probability_max:g}"
    if expect.root is not None and (row.id in investigation.root_causes) != expect.root:
        roots = [_told(other) for other in investigation.hypotheses if other.id in investigation.root_causes]
        expected = "a root cause" if expect.root else "no root cause"
        yield f"{_told(row)}, expected {expected}; root causes: {', '.join(roots) or 'none'}"
    first = investigation.hypotheses[0]
    if expect.leads is not None and (row.id == first.id) != expect.leads:
        yield f"{_told(row)}, expected {'it to lead' if expect.leads else 'another to lead'}; first is {_told(first)}"


def _row(investigation: Investigation, cause: str, at: str | None) -> Hypothesis | None:
    """The likeliest row of a cause, or that of a scope: a scope without one is among the cause's remaining places."""
    rows = [row for row in investigation.hypotheses if row.cause == cause]
    there = [row for row in rows if at in (None, row.scope)] or [row for row in rows if row.count > 1]
    return max(there, key=lambda row: row.probability, default=None)


def _told(row: Hypothesis) -> str:
    role = f", {row.role}" if row.role else ""
    return f"{row.cause} at {row.scope} is {row.status} with probability {row.probability:.3g}{role} ({row.reason})"


def _finding_differences(
    expect: Expectation, findings: Iterable[SignFinding], knowledge: KnowledgeBase
) -> Iterator[str]:
    by_sign: dict[str, list[SignFinding]] = defaultdict(list)
    for finding in findings:
        by_sign[finding.sign].append(finding)
    for key, state in expect.findings.items():
        sign, _, scope = key.partition(" ")
        if sign not in knowledge.signs:
            yield f"findings name {sign!r}, which is no sign"
            continue
        there = [finding for finding in by_sign[sign] if scope in ("", str(finding.scope))]
        states = {finding.state for finding in there}
        found = "present" if "present" in states else "absent" if "absent" in states else "unknown"
        reached = max((finding.levels.least for finding in there if finding.levels is not None), default=0)
        if isinstance(state, int) and reached != state:
            yield f"sign {key} reaches level {reached}, expected {state}"
        elif not isinstance(state, int) and found != state:
            numbers = [
                f"{one.scope}: observed {one.observed}, limit {one.limit}" for one in there if one.state == found
            ]
            yield f"sign {key} is {found}{f' ({numbers[0]})' if numbers else ''}, expected {state}"


def _rival_differences(expect: Expectation, investigation: Investigation, knowledge: KnowledgeBase) -> Iterator[str]:
    for rival in expect.not_supported:
        if rival not in knowledge.causes:
            yield f"not_supported names {rival!r}, which is no cause"
        for row in investigation.hypotheses:
            if row.cause == rival and row.status == "supported":
                yield f"{_told(row)}, expected not to be supported"
