"""Cases: what a rule must say of a given situation, as data beside the rule (`<name>.cases.yaml`).

A file has an optional `base`, the situation all its cases share, and cases that change it. What is measured is written
in the shorthand of Prometheus' rule tests; `null` takes a series away (not collected). `case_run.py` plays them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

from pydantic import AfterValidator, Field, model_validator

from ..engine.facts import EventKind
from ..engine.metrics import METRICS
from ..engine.results import State, Status
from ..engine.rules import Probability
from ..engine.scope import Scope
from .loader import CASES_SUFFIX, SHIPPED, expected_id
from .shorthand import samples
from .small_fabric import Span, Strict
from .yaml_source import UnreadableYaml, YamlSource

MANDATORY_CASES = ("fires", "refuted", "not_collected")


def _shorthand(text: str) -> str:
    samples(text)
    return text


def _series_key(text: str) -> str:
    place, _, metric = text.rpartition(" ")
    if not place or metric not in METRICS:
        raise ValueError(
            "expected `device/port/qualifier metric` with a canonical metric: `leaf-01/Ethernet1/3 queue_peak_bytes`"
        )
    return text


def _finding_key(text: str) -> str:
    _, blank, scope = text.partition(" ")
    if blank:
        Scope.parse(scope)
    return text


def _scope(text: str) -> str:
    Scope.parse(text)
    return text


Shorthand = Annotated[str, AfterValidator(_shorthand)]
SeriesKey = Annotated[str, AfterValidator(_series_key)]


class Happening(Strict):
    """An event. `at` counts from the start of the window; negative is before it."""

    at: Span
    kind: EventKind
    device: str
    port: str = ""
    statement: str | None = None
    details: Mapping[str, str] = {}


class Firmware(Strict):
    """Driver and firmware of all NICs that match `device` and `port`; `at` None: the record has no time."""

    device: str
    port: str
    driver: str
    version: str
    at: Span | None = None


class Capture(Strict):
    """One read of all routes or neighbours at a time, counted from the start of the window.

    `without`: next hops or ports that are gone (`leaf-01/Ethernet3`, patterns allowed).
    """

    at: Span
    without: tuple[str, ...] = ()


class Ranks(Strict):
    """The timing of ranks, one sample a step of `steps`: `enters` in seconds after the step began, `sends` in seconds
    from there until the rank has finished."""

    enters: Shorthand
    sends: Shorthand


class Situation(Strict):
    """What was collected. Everything that is not given was not collected: unknown, never zero.

    `series`: `device/port/qualifier metric` to samples, one each `interval`; device and port may be patterns
    (`leaf-*/Ethernet[1-4]/3`), a key without a pattern wins over one with, and a later pattern over an earlier.
    `steps`: the job's step times in seconds, one after another. `ranks`: host (a pattern; the later wins) to the timing
    of its rank in them. `onset`: when an alert was raised, if one was. `placement` false: the scheduler's record of the
    job was not collected. `job_start` overrides the fabric's.
    """

    topology: str | None = None
    interval: Span | None = None
    steps: Shorthand | None = None
    ranks: Mapping[str, Ranks] | None = None
    series: Mapping[SeriesKey, Shorthand | None] = {}
    events: tuple[Happening, ...] | None = None
    firmware: tuple[Firmware, ...] | None = None
    routes: tuple[Capture, ...] | None = None
    neighbours: tuple[Capture, ...] | None = None
    placement: bool = True
    job_start: Span | None = None
    onset: Span | None = None

    def over(self, base: Situation) -> Situation:
        """This situation laid over `base`: series one by one, everything else as a whole."""
        own = {name: getattr(self, name) for name in self.model_fields_set & set(Situation.model_fields)}
        merged = {name: getattr(base, name) for name in Situation.model_fields} | own
        return Situation.model_construct(**{**merged, "series": {**base.series, **self.series}})


class Expectation(Strict):
    """What must come out.

    `status`, `root`, `leads` (it is the first of all hypotheses) and the bounds are about the rule's own cause, at the
    scope `at` or where it is likeliest. `findings`: `sign` or `sign scope` to state; without a scope, present means
    somewhere, absent somewhere and present nowhere, unknown answered nowhere; a number: present, and surely reaching
    that level and no higher one. `not_supported`: rivals that must not be
    called the cause.
    """

    status: Status | None = None
    at: Annotated[str, AfterValidator(_scope)] | None = None
    root: bool | None = None
    leads: bool | None = None
    probability_min: Probability | None = None
    probability_max: Probability | None = None
    findings: Mapping[Annotated[str, AfterValidator(_finding_key)], State | Annotated[int, Field(ge=1)]] = {}
    not_supported: tuple[str, ...] = ()

    @model_validator(mode="after")
    def _expects_something(self) -> Expectation:
        if not self.model_fields_set - {"at"}:
            raise ValueError("expects nothing; give a status, findings or a bound")
        return self


class Case(Situation):
    """One situation and what must come out of it. `why` says what the case is there to prove."""

    name: Annotated[str, Field(pattern=r"^[a-z][a-z0-9_]*$")]
    why: str | None = None
    expect: Expectation


class CaseFile(Strict):
    """The cases of one rule."""

    format: Literal[1]
    base: Situation = Situation()
    cases: Annotated[tuple[Case, ...], Field(min_length=1)]

    @model_validator(mode="after")
    def _complete(self) -> CaseFile:
        names = [case.name for case in self.cases]
        for name in names:
            if names.count(name) > 1:
                raise ValueError(f"case {name!r} is given twice")
        for case in self.cases:
            whole = case.over(self.base)
            if whole.topology is None:
                raise ValueError(f"case {case.name!r} has no topology, neither has base")
            if whole.series and whole.interval is None:
                raise ValueError(f"case {case.name!r} has series but no interval, neither has base")
        return self


@dataclass(frozen=True, slots=True)
class RuleCases:
    """A case file that was read. `rule` is the id of the rule it stands beside."""

    rule: str
    is_cause: bool
    file: CaseFile
    source: YamlSource

    def situation(self, case: Case) -> Situation:
        return case.over(self.file.base)

    def line_of(self, case: Case, *at: str | int) -> int:
        """Line of a part of a case, in the case itself or else in base."""
        index = self.file.cases.index(case)
        is_own = bool(at) and at[0] in case.model_fields_set and (at[0] != "series" or at[1] in case.series)
        return self.source.line_of(("cases", index, *at) if is_own or not at else ("base", *at))


def read_case_files(*overlays: Path, shipped: Path = SHIPPED) -> tuple[Mapping[str, RuleCases], tuple[str, ...]]:
    """Case files by rule id, in order of the ids, and what is wrong with those that could not be read.

    An overlay's file replaces the shipped one of the same rule; it may also bring cases for a shipped rule.
    """
    directories = {shipped: "knowledge"} | {overlay: overlay.as_posix() for overlay in overlays}
    found: dict[str, RuleCases] = {}
    problems: list[str] = []
    for directory, shown in directories.items():
        for path in sorted(directory.rglob(f"*{CASES_SUFFIX}")):
            relative = path.relative_to(directory)
            rule_path = relative.with_name(relative.name.removesuffix(CASES_SUFFIX) + ".yaml")
            message_path = f"{shown}/{relative.as_posix()}"
            rule = expected_id(rule_path)
            if rule is None or not any((one / rule_path).is_file() for one in directories):
                problems.append(f"{message_path}:1:1: there is no rule {rule_path.as_posix()} for these cases")
                continue
            try:
                source = YamlSource.parse(message_path, path.read_bytes())
            except UnreadableYaml as error:
                problems.extend(error.problems)
                continue
            file, wrong = source.validate(CaseFile)
            problems.extend(wrong)
            if file is not None:
                found[rule] = RuleCases(rule, relative.parts[0] == "causes", file, source)
    return dict(sorted(found.items())), tuple(problems)


def merged_series(series: Mapping[str, str | None]) -> Iterator[tuple[str, str, str | None]]:
    """(place, metric, shorthand) in order of precedence, lowest first."""
    has_pattern = {key: any(mark in key for mark in "*?[") for key in series}
    for key in sorted(series, key=lambda key: not has_pattern[key]):
        place, _, metric = key.rpartition(" ")
        yield place, metric, series[key]
