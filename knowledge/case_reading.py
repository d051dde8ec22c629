"""Turns the situation of a case into the `Reading` that adapters would have made of it.

Each fact names the line of the case file it stands in, so a finding of a case can be followed like one of a bundle.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from hashlib import sha256
from itertools import accumulate

from ..engine.facts import Event, Fact, FileRead, FirmwareState, Incident, Provenance, Reading, Series
from ..engine.metrics import METRICS
from ..engine.scope import ScopeKind
from .casefile import Capture, Case, Ranks, RuleCases, Situation, merged_series
from .shorthand import samples
from .small_fabric import SmallFabric

START = 1_767_225_600.0  # 2026-01-01T00:00:00Z; any fixed time would do
_ADAPTER = "case"
# Quantities of whole devices, hosts and jobs, or of parts that no cable names.
_UNCABLED = (ScopeKind.GPU, ScopeKind.HOST, ScopeKind.JOB, ScopeKind.DEVICE, ScopeKind.ECMP)


class WrongCase(Exception):
    """The case speaks of something its fabric does not have. `line` is where."""

    def __init__(self, line: int, what: str) -> None:
        super().__init__(what)
        self.line = line


def reading_of(cases: RuleCases, case: Case, fabric: SmallFabric) -> Reading:
    """All facts of a case. Raises WrongCase where it names a place its fabric does not have."""
    builder = _Builder(cases, case, cases.situation(case), fabric, sha256(cases.source.raw).hexdigest())
    facts = tuple(builder.facts())
    ends = [time for fact in facts if isinstance(fact, Series) for time in fact.times]
    window = (START, max(ends, default=START))
    onset = None if builder.situation.onset is None else START + builder.situation.onset
    text = cases.source.raw.decode("utf-8").splitlines()
    return Reading(
        incident=Incident(f"{cases.rule}.{case.name}", "case", fabric.job.name, window, onset),
        facts=facts,
        issues=(),
        files=(FileRead(cases.source.path, builder.digest, _ADAPTER, len(facts)),),
        excerpt=lambda source, record: text[int(record.removeprefix("line ")) - 1].strip(),
    )


@dataclass(frozen=True, slots=True)
class _Builder:
    cases: RuleCases
    case: Case
    situation: Situation
    fabric: SmallFabric
    digest: str

    def facts(self) -> Iterator[Fact]:
        situation, fabric = self.situation, self.fabric
        structure = self.provenance("topology")
        yield from fabric.plan(structure)
        if situation.placement:
            is_own = situation.job_start is not None
            start = fabric.job.start if situation.job_start is None else situation.job_start
            yield fabric.placement(START + start, self.provenance("job_start") if is_own else structure)
        for index, capture in enumerate(situation.routes or ()):
            self.check_without("routes", index, capture)
            yield from fabric.routes_at(START + capture.at, capture.without, self.provenance("routes", index))
        for index, capture in enumerate(situation.neighbours or ()):
            self.check_without("neighbours", index, capture)
            yield from fabric.neighbours(capture.without, self.provenance("neighbours", index))
        for index, one in enumerate(situation.firmware or ()):
            at = None if one.at is None else START + one.at
            for host, nic in self.ports("firmware", index, one.device, one.port):
                yield FirmwareState(host, nic, one.driver, one.version, at, self.provenance("firmware", index))
        for index, event in enumerate(situation.events or ()):
            origin = self.provenance("events", index)
            for device in self.devices("events", index, event.device):
                statement = event.statement or f"{event.kind.replace('_', ' ')} on {device} {event.port}".strip()
                yield Event(event.kind, device, event.port, START + event.at, statement, origin, dict(event.details))
        if situation.steps is not None:
            yield self.steps(situation.steps)
        if situation.ranks is not None:
            yield from self.ranks(situation.steps, situation.ranks)
        yield from self.series().values()

    def provenance(self, *at: str | int) -> Provenance:
        return Provenance(self.cases.source.path, f"line {self.cases.line_of(self.case, *at)}", _ADAPTER, self.digest)

    def wrong(self, what: str, *at: str | int) -> WrongCase:
        return WrongCase(self.cases.line_of(self.case, *at), what)

    def check_without(self, key: str, index: int, capture: Capture) -> None:
        for pattern in capture.without:
            self.ports(key, index, *pattern.partition("/")[::2])

    def devices(self, key: str, index: int | str, pattern: str) -> tuple[str, ...]:
        found = self.fabric.devices(pattern)
        if not found:
            raise self.wrong(f"no device of the topology matches {pattern!r}", key, index)
        return found

    def ports(self, key: str, index: int, device: str, port: str) -> tuple[tuple[str, str], ...]:
        found = self.fabric.ports(device, port)
        if not found:
            raise self.wrong(f"no linked port of the topology matches {device}/{port}", key, index)
        return found

    def durations(self, text: str, *at: str) -> list[float]:
        found = samples(text)
        if any(duration is None or duration <= 0 for duration in found):
            raise self.wrong("a step takes time, and so do its parts: every sample must be a number above 0", *at)
        return [duration or 0.0 for duration in found]

    def steps(self, text: str) -> Series:
        durations = self.durations(text, "steps")
        ends = tuple(START + end for end in accumulate(durations))
        return Series(self.fabric.job.name, "", "", "step_seconds", ends, tuple(durations), self.provenance("steps"))

    def ranks(self, steps: str | None, ranks: Mapping[str, Ranks]) -> Iterator[Series]:
        if steps is None:
            raise self.wrong("ranks are timed within steps: give steps as well", "ranks")
        begins = [START, *(START + end for end in accumulate(self.durations(steps, "steps")))][:-1]
        timing = {host: (key, one) for key, one in ranks.items() for host in self.devices("ranks", key, key)}
        for host, (key, one) in sorted(timing.items()):
            enters, sends = (self.durations(text, "ranks", key) for text in (one.enters, one.sends))
            if not len(enters) == len(sends) == len(begins):
                raise self.wrong(f"{len(enters)} entries and {len(sends)} sends of {len(begins)} steps", "ranks", key)
            dones = [entry + send for entry, send in zip(enters, sends, strict=True)]
            for metric, values in (("rank_send_start", enters), ("rank_send_done", dones)):
                times = tuple(begin + value for begin, value in zip(begins, values, strict=True))
                origin = self.provenance("ranks", key)
                yield Series(self.fabric.job.name, host, "", metric, times, tuple(values), origin)

    def series(self) -> dict[tuple[str, str, str, str], Series]:
        found: dict[tuple[str, str, str, str], Series] = {}
        for place, metric, text in merged_series(self.situation.series):
            key = f"{place} {metric}"
            device, port, qualifier = (*place.split("/", 2), "", "")[:3]
            for end in self.places(key, metric, device, port):
                target = (*end, qualifier, metric)
                found.pop(target, None)
                if text is not None:
                    values = samples(text)
                    times = tuple(START + index * (self.situation.interval or 0.0) for index in range(len(values)))
                    found[target] = Series(*target, times, values, self.provenance("series", key))
        return found

    def places(self, key: str, metric: str, device: str, port: str) -> tuple[tuple[str, str], ...]:
        found: tuple[tuple[str, str], ...]
        if not port or METRICS[metric].scope in _UNCABLED:
            devices = (device,) if device == self.fabric.job.name else self.fabric.devices(device)
            found = tuple((one, port) for one in devices)
        else:
            found = self.fabric.ports(device, port)
        if not found:
            raise self.wrong(f"no place of the topology matches {device}/{port}", "series", key)
        return found
