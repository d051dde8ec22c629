"""Signs x signals, events and patterns -> findings.

Every sign is asked at every place that has the reading, all at once in SQL; what a sign could not read gives no
finding, and no finding is "unknown". A scope wider than the reading (a link with two ends, a rail with many NICs)
combines its readings, and remembers what was missing.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from .facts import Provenance
from .findings import Findings, LevelReading, SignFinding, time_coverage
from .metrics import METRICS
from .observed import Observed
from .patterns import PATTERNS
from .rules import EventTest, KnowledgeBase, Sign, SignalTest
from .scope import Scope, ScopeKind, short_port


def match(knowledge: KnowledgeBase, observed: Observed) -> Findings:
    """All findings of all signs, in the order of sign ids and scopes."""
    found: list[SignFinding] = []
    for sign in sorted(knowledge.signs.values(), key=lambda sign: sign.id):
        if sign.signal is not None:
            answers = _ask_signal(sign, sign.signal, observed)
        elif sign.event is not None:
            answers = _ask_events(sign, sign.event, observed)
        else:
            assert sign.pattern is not None
            limits = {name: limit.value for name, limit in sign.pattern.limits.items() if limit.value is not None}
            answers = iter(PATTERNS[sign.pattern.pattern](observed, sign.id, limits))
        found.extend(sorted(answers, key=lambda finding: finding.scope))
    return Findings(found)


@dataclass(frozen=True, slots=True)
class _Reading:
    """One row's answer before it is combined into the sign's scope."""

    scope: Scope
    place: str
    finding: SignFinding


def _ask_signal(sign: Sign, test: SignalTest, observed: Observed) -> Iterator[SignFinding]:
    scope_of = _scope_makers(observed)[sign.scope]
    expected = _expected_readings(observed, sign.scope, test)
    by_scope: dict[Scope, list[_Reading]] = defaultdict(list)
    for key, answers, values in _rows(test, observed):
        device, port, qualifier = key
        if not _is_asked(test, observed, device, port, qualifier):
            continue
        scope = scope_of(device, port, qualifier)
        read = _levels(answers)
        if scope is None or (read.least == 0 and read.most > 0):
            continue
        by_scope[scope].append(
            _Reading(scope, f"{device}/{port}", _finding(sign, test, observed, scope, key, read, values))
        )
    for scope, readings in sorted(by_scope.items()):
        if (combined := _combined(readings, test, expected(scope))) is not None:
            yield combined


def _levels(answers: Sequence[bool | None]) -> LevelReading:
    """What the answers to "at this level or above?" leave open, from level 1 on: none is None."""
    least = max((level for level, holds in enumerate(answers, start=1) if holds), default=0)
    beyond = (level for level, holds in enumerate(answers, start=1) if level > least and holds is False)
    return LevelReading(least, next(beyond, 1 + len(answers)) - 1)


def _finding(
    sign: Sign,
    test: SignalTest,
    observed: Observed,
    scope: Scope,
    key: tuple[str, str, str],
    read: LevelReading,
    values: Mapping[str, float | None],
) -> SignFinding:
    def scaled(name: str) -> float | None:
        value = values[name]
        return None if value is None else value * test.scale

    record = observed.record(_index(values["record_source"]), _index(values["record_line"]))
    return SignFinding(
        sign.id,
        scope,
        "present" if read.least > 0 else "absent",
        observed=scaled("observed"),
        baseline=scaled("baseline"),
        limit=scaled(f"limit_{max(read.least, 1)}"),
        unit=test.unit,
        coverage=time_coverage(values["coverage"]),
        records=(record,) if record else (),
        spot=f"{key[0]} {short_port(key[1])}".strip(),
        at=values["first_above"] if read.least > 0 else None,
        levels=read if sign.levels else None,
    )


def _index(value: float | None) -> int | None:
    return None if value is None else int(value)


def _rows(
    test: SignalTest, observed: Observed
) -> Iterator[tuple[tuple[str, str, str], list[bool | None], dict[str, float | None]]]:
    """(place, at each level or above? (None: cannot tell), numbers) of each row of the metric; limits that the device
    reports are joined by port, as they were before the onset: a limit that was moved then is no excuse."""
    joins, columns = [], []
    for index, (name, limit) in enumerate(sorted(test.limits.items())):
        if limit.metric is None:
            columns.append(f"{limit.value!r}::DOUBLE AS {name}")
            continue
        joins.append(
            "LEFT JOIN (SELECT device, port, min(coalesce(before_p50, after_p50)) AS value FROM signals "
            f"WHERE metric = '{limit.metric}' GROUP BY device, port) AS limit_{index} "
            f"ON limit_{index}.device = s.device AND limit_{index}.port = s.port"
        )
        fallback = "NULL" if limit.value is None else repr(limit.value)
        columns.append(f"coalesce(limit_{index}.value, {fallback})::DOUBLE AS {name}")
    named = "".join(f", {column}" for column in columns)
    predicates = [(test.present, test.absent), *((level.present, level.absent) for level in test.higher)]
    asked = [
        f"CASE WHEN {present} THEN true WHEN {absent or f'NOT ({present})'} THEN false END"
        for present, absent in predicates
    ]
    shown = [test.limit, *(level.limit for level in test.higher)]
    limits = [f"({limit or 'NULL'})::DOUBLE" for limit in shown]
    falls = _is_fall(test)
    extreme = "min" if falls else "max"
    sql = (
        f"WITH rows AS (SELECT s.*{named} FROM signals AS s {' '.join(joins)} WHERE s.metric = ?) "
        f"SELECT device, port, qualifier, {', '.join(asked)}, {', '.join(limits)}, ({test.observed})::DOUBLE, "
        f"({test.baseline or 'NULL'})::DOUBLE, after_coverage, {'first_below_ts' if falls else 'first_above_ts'}, "
        f"coalesce({extreme}_source, last_source), coalesce({extreme}_record, last_record) "
        "FROM rows ORDER BY device, port, qualifier"
    )
    numbers = ("observed", "baseline", "coverage", "first_above", "record_source", "record_line")
    names = (*(f"limit_{level}" for level in range(1, 1 + len(shown))), *numbers)
    for row in observed.telemetry.rows(sql, (test.metric,)):
        answers, values = row[3 : 3 + len(asked)], row[3 + len(asked) :]
        yield (row[0], row[1], row[2]), list(answers), dict(zip(names, values, strict=True))


def _is_fall(test: SignalTest) -> bool:
    """Whether a sign looks for a low value (it shows the smallest one): its record and its worst reading are the
    lowest."""
    return test.observed.startswith("after_min")


def _is_asked(test: SignalTest, observed: Observed, device: str, port: str, qualifier: str) -> bool:
    if test.lossless and qualifier not in observed.lossless_classes:
        return False
    if test.ports == "host_facing":
        return observed.topology.is_host_facing(device, port)
    if test.ports == "inter_switch":
        return observed.topology.is_inter_switch(device, port)
    return True


ScopeMaker = Callable[[str, str, str], Scope | None]


def _scope_makers(observed: Observed) -> dict[ScopeKind, ScopeMaker]:
    """How a row's (device, port, qualifier) becomes a place of each kind; None: the row lies at no such place."""
    topology = observed.topology
    cohort_of = {end: cohort.scope for cohort in topology.cohorts for end in cohort.members}
    nics = set(topology.nics)
    return {
        ScopeKind.QUEUE: lambda d, p, q: Scope.of(ScopeKind.QUEUE, d, p, q) if p and q else None,
        ScopeKind.PORT: lambda d, p, q: Scope.of(ScopeKind.PORT, d, p) if p else None,
        ScopeKind.LINK: lambda d, p, q: topology.link(d, p),
        ScopeKind.NIC: lambda d, p, q: Scope.of(ScopeKind.NIC, d, p) if (d, p) in nics else None,
        ScopeKind.GPU: lambda d, p, q: Scope.of(ScopeKind.GPU, d, p) if p else None,
        ScopeKind.HOST: lambda d, p, q: Scope.of(ScopeKind.HOST, d) if topology.is_host(d) else None,
        ScopeKind.DEVICE: lambda d, p, q: Scope.of(ScopeKind.DEVICE, d),
        ScopeKind.RAIL: lambda d, p, q: topology.rail_of(d, p) if (d, p) in nics else None,
        ScopeKind.COHORT: lambda d, p, q: cohort_of.get((d, p)),
        ScopeKind.JOB: lambda d, p, q: Scope.of(ScopeKind.JOB, d),
    }


def _expected_readings(observed: Observed, kind: ScopeKind, test: SignalTest) -> Callable[[Scope], int]:
    """How many ports or NICs a scope of this kind should have been read at."""
    topology = observed.topology
    if kind is ScopeKind.LINK:
        return lambda scope: sum(_is_asked(_any_class(test), observed, *end, "") for end in topology.ends(scope)) or 1
    if kind is ScopeKind.RAIL:
        return lambda scope: len(topology.rails.get(scope.parts[0], ())) or 1
    if kind is ScopeKind.COHORT:
        sizes = {cohort.scope: len(cohort.members) for cohort in topology.cohorts}
        return lambda scope: sizes.get(scope, 1)
    if kind is ScopeKind.DEVICE and METRICS[test.metric].scope is not ScopeKind.DEVICE:
        asked = _any_class(test)
        return lambda scope: (
            sum(_is_asked(asked, observed, scope.device, port, "") for port in topology.ports_of.get(scope.device, ()))
            or 1
        )
    return lambda scope: 1


def _any_class(test: SignalTest) -> SignalTest:
    """The same test without its class filter: counting ports, not classes."""
    return test.model_copy(update={"lossless": False})


def _combined(readings: list[_Reading], test: SignalTest, expected: int) -> SignFinding | None:
    """One finding from the readings of a scope, shown by the reading nearest to (or furthest past) its limit.

    Coverage of an absence: the places read, times the time they cover. None where most places must agree and too few
    were read to tell.
    """
    present = [reading.finding for reading in readings if reading.finding.state == "present"]
    places = {reading.place for reading in readings}
    present_places = {reading.place for reading in readings if reading.finding.state == "present"}
    is_present = bool(present)
    if test.combine == "most":
        majority = _most(len(present_places), len(places), max(expected, len(places)))
        if majority is None:
            return None
        is_present = majority
    chosen = (
        present
        if is_present
        else [reading.finding for reading in readings if reading.finding.state == "absent"] or present
    )
    sign = -1.0 if _is_fall(test) else 1.0
    reached = {finding.spot: finding.levels.least for finding in chosen if finding.levels}
    furthest = max(chosen, key=lambda f: (reached.get(f.spot, 0), sign * (f.observed or 0.0), f.spot))
    covered = sum(reading.finding.coverage for reading in readings) / len(readings) * min(1.0, len(places) / expected)
    return replace(
        furthest,
        state="present" if is_present else "absent",
        coverage=covered,
        levels=_highest(furthest, readings),
        words={"count": str(len(present_places)), "of": str(len(places))},
    )


def _highest(furthest: SignFinding, readings: list[_Reading]) -> LevelReading | None:
    """The levels that the readings together leave open: the highest of them counts."""
    if furthest.levels is None:
        return None
    return replace(furthest.levels, most=max(r.finding.levels.most for r in readings if r.finding.levels))


def _most(hits: int, read: int, expected: int) -> bool | None:
    """Whether most of the expected places are hits; None when those that were not read could turn it."""
    if 2 * hits > expected:
        return True
    return False if 2 * (read - hits) >= expected else None


def _ask_events(sign: Sign, test: EventTest, observed: Observed) -> Iterator[SignFinding]:
    split = observed.split
    if split.onset is None:
        start, end = split.start, split.end
    else:
        start = split.onset - split.uncertainty_s - (test.before_s.value or 0.0)
        end = split.onset + split.uncertainty_s + (test.after_s.value or 0.0)
    logged: dict[str, Provenance] = {}
    latest: dict[str, tuple[float, Provenance]] = {}
    hits: dict[str, tuple[float, Provenance]] = {}
    for event in observed.topology.events:
        # A log with any line from before the asked time is taken to cover it: logs are collected up to the end.
        if event.at <= start or event.device in logged:
            logged.setdefault(event.device, event.provenance)
        if event.kind in test.kinds:
            latest[event.device] = (event.at, event.provenance)
            if start <= event.at <= end:
                hits.setdefault(event.device, (event.at, event.provenance))
    for scope, devices in _event_scopes(sign.scope, observed):
        hit = [device for device in devices if device in hits]
        read = [device for device in devices if device in logged or device in hits]
        if not read:
            continue
        present = bool(hit) if test.combine == "any" else _most(len(hit), len(read), len(devices))
        if present is None:
            continue
        shown = [hits[d] for d in hit] if present else [latest[d] for d in read if d in latest]
        newest = max(shown, default=None, key=lambda item: item[0])
        reference = split.onset if split.onset is not None else split.end
        yield SignFinding(
            sign.id,
            scope,
            "present" if present else "absent",
            observed=None if newest is None else (reference - newest[0]) / 3600,
            limit=None if test.before_s.value is None else test.before_s.value / 3600,
            unit="h before the onset",
            coverage=len(read) / len(devices),
            records=(newest[1],) if newest else tuple(logged[d] for d in read[:1] if d in logged),
            words={"count": str(len(hit)), "of": str(len(read))},
            at=newest[0] if present and newest else None,
        )


def _event_scopes(kind: ScopeKind, observed: Observed) -> Iterator[tuple[Scope, tuple[str, ...]]]:
    """Places of a kind with the devices whose logs speak for them."""
    topology = observed.topology
    if kind is ScopeKind.COHORT:
        for cohort in topology.cohorts:
            yield cohort.scope, cohort.hosts
    elif kind is ScopeKind.HOST:
        for host in topology.hosts:
            yield Scope.of(ScopeKind.HOST, host), (host,)
    elif kind is ScopeKind.DEVICE:
        for device in sorted(topology.ports_of):
            if topology.is_switch(device):
                yield Scope.of(ScopeKind.DEVICE, device), (device,)
