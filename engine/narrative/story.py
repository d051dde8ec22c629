"""The parts of a result that tell the story: the chain from job to queue, the timeline, the lines to chart, and what
was collected."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

from ..citations import Citations
from ..compile import Compiled
from ..facts import Event, EventKind
from ..findings import SignFinding
from ..metrics import METRICS, MetricKind
from ..observed import Observed
from ..places import Places
from ..results import ChainLink, CoverageRow, TelemetrySeries, TimelineEntry
from ..rules import KnowledgeBase, Relation
from ..scope import Scope, ScopeKind, short_port
from ..signals import Signal
from ..steps.onset import Onset
from ..steps.symptom import Symptom
from ..verdicts import Verdict
from ..wording import statement, timestamp

LINES_PER_PANEL = 3
"""Lines drawn in one panel (judgement: more cannot be told apart)."""

PANELS = (
    ("queue", "queue_peak_bytes"),
    ("marks", "ecn_marked_packets"),
    ("CNPs", "cnp_sent"),
    ("pauses", "pfc_rx_pause_frames"),
)
EARLIER_SECONDS = 7 * 86400.0
"""How far before the window firmware loads and reboots are still told (judgement: a week)."""

SAME_MOMENT_SECONDS = 5.0
"""Events of one kind on several devices within this time are told as one (judgement)."""

EVENT_WORDS = {
    EventKind.LINK_DOWN: "link down",
    EventKind.LINK_UP: "link up",
    EventKind.SESSION_DOWN: "routing session down",
    EventKind.SESSION_UP: "routing session up",
    EventKind.CONFIG_CHANGE: "configuration changed",
    EventKind.MAINTENANCE: "maintenance",
    EventKind.FIRMWARE_LOAD: "NIC firmware loaded",
    EventKind.REBOOT: "reboot",
    EventKind.PFC_STORM_DETECTED: "PFC storm detected",
    EventKind.PFC_STORM_RESTORED: "PFC storm over",
    EventKind.ASIC_ERROR: "ASIC error",
    EventKind.GPU_XID: "GPU error",
    EventKind.JOB_CHANGE: "job changed",
    EventKind.ROUTE_CHANGE: "routes changed",
    EventKind.HASH_CHANGE: "load balancing changed",
    EventKind.HOST_CHANGE: "host changed",
    EventKind.LOG_LINE: "logged",
}
ALWAYS_TOLD = frozenset(
    {
        EventKind.LINK_DOWN,
        EventKind.LINK_UP,
        EventKind.SESSION_DOWN,
        EventKind.SESSION_UP,
        EventKind.CONFIG_CHANGE,
        EventKind.MAINTENANCE,
        EventKind.PFC_STORM_DETECTED,
        EventKind.PFC_STORM_RESTORED,
        EventKind.ASIC_ERROR,
        EventKind.GPU_XID,
        EventKind.JOB_CHANGE,
        EventKind.ROUTE_CHANGE,
        EventKind.HASH_CHANGE,
        EventKind.HOST_CHANGE,
    }
)


def chain(
    observed: Observed,
    places: Places,
    compiled: Compiled,
    roots: Sequence[Verdict],
    citations: Citations,
    symptom_id: str | None,
) -> tuple[ChainLink, ...]:
    """Job -> host -> rail -> leaf -> queue of the leading root cause; steps nobody can show are left out."""
    if not roots or observed.job is None:
        return ()
    scope = roots[0].hypothesis.scope
    queues = [queue for queue in _queues(places, scope)]
    ports = [(queue.parts[0], queue.parts[1]) for queue in queues] or list(places.ports(scope))
    links = [_link(Scope.of(ScopeKind.JOB, observed.job), f"{observed.job} takes longer for each step", symptom_id)]
    rails = sorted({rail for port in ports if (rail := observed.topology.rail_of(*port)) is not None})
    for rail in rails[:1]:
        notified = compiled.findings.get("cnp_sent_high", rail)
        if notified is not None and notified.state == "present":
            host = notified.spot.partition(" ")[0]
            links.append(
                _link(
                    Scope.of(ScopeKind.HOST, host), f"{host} tells its senders to slow down", citations.cite(notified)
                )
            )
            links.append(
                _link(
                    rail,
                    f"{places.wording(rail)}: {notified.words.get('count', '')} NICs send CNPs",
                    citations.cite(notified),
                )
            )
        else:
            links.append(_link(rail, places.wording(rail), None))
    leaves = [device for device, _ in ports if device in observed.topology.leaves] or [device for device, _ in ports]
    if leaves:
        events = [
            f for s in ("ecmp_event", "init_host", "rx_power_low") if (f := compiled.findings.get(s, scope)) is not None
        ]
        cited = [citations.cite(finding) for finding in events if finding.state == "present"]
        links.append(
            ChainLink(
                scope=f"device:{leaves[0]}",
                statement=roots[0].hypothesis.cause.title + f" at {leaves[0]}",
                findings=tuple(cited),
            )
        )
    for queue in queues[:1]:
        depth = compiled.findings.get("queue_depth", queue)
        cited_depth = None if depth is None or depth.state != "present" else citations.cite(depth)
        links.append(_link(queue, f"{places.wording(queue)} is where packets wait", cited_depth))
    return tuple(links)


def _queues(places: Places, scope: Scope) -> tuple[Scope, ...]:
    if scope.kind is ScopeKind.ECMP:
        hottest = places.hot_member(scope)
        return tuple(sorted(places.related(scope, Relation.HOT_MEMBER_QUEUE), key=lambda q: q.parts[:2] != hottest))
    if scope.kind is ScopeKind.NIC:
        return places.related(scope, Relation.LEAF_QUEUE)
    return (scope,) if scope.kind is ScopeKind.QUEUE else ()


def _link(scope: Scope, text: str, finding: str | None) -> ChainLink:
    return ChainLink(scope=str(scope), statement=text, findings=(finding,) if finding else ())


def timeline(
    observed: Observed,
    places: Places,
    compiled: Compiled,
    roots: Sequence[Verdict],
    citations: Citations,
    symptom: Symptom | None,
    symptom_id: str | None,
    onset: Onset | None,
) -> tuple[TimelineEntry, ...]:
    """Events of the window, the onset, and when the findings of the root causes first showed."""
    entries = _told_events(observed, citations)
    if symptom is not None:
        entries.append(
            (
                symptom.onset,
                TimelineEntry(
                    ts=timestamp(symptom.onset),
                    scope=str(Scope.of(ScopeKind.JOB, symptom.job)),
                    statement=f"{_onset_words(symptom, onset)} (within {symptom.uncertainty_s:.0f} s)",
                    finding=symptom_id,
                ),
            )
        )
    if onset is not None and onset.source == "telemetry":
        told = (
            f"{onset.shared} metrics of devices change together" if onset.shared > 1 else "a metric of a device changes"
        )
        entries.append(
            (
                onset.at,
                TimelineEntry(
                    ts=timestamp(onset.at),
                    scope="fabric:all",
                    statement=f"onset: {told} (within {onset.uncertainty_s:.0f} s)",
                    finding=None,
                ),
            )
        )
    for verdict in roots:
        for relevance in verdict.relevances:
            finding = relevance.finding
            if finding.state == "present" and finding.at is not None and relevance.if_true > relevance.if_none:
                entries.append((finding.at, _first_seen(finding, places, citations)))
    return tuple(entry for _, entry in sorted(entries, key=lambda item: (item[0], item[1].scope, item[1].statement)))


def _onset_words(symptom: Symptom, onset: Onset | None) -> str:
    begins = f"first slow step of {symptom.job} begins"
    return begins if onset is not None and onset.source == "telemetry" else f"onset: {begins}"


def _first_seen(finding: SignFinding, places: Places, citations: Citations) -> TimelineEntry:
    assert finding.at is not None
    said = statement(citations.knowledge.signs[finding.sign], finding, places)
    return TimelineEntry(
        ts=timestamp(finding.at),
        scope=str(finding.scope),
        statement=f"first seen: {said}",
        finding=citations.cite(finding),
    )


def _told_events(observed: Observed, citations: Citations) -> list[tuple[float, TimelineEntry]]:
    split = observed.split
    told = [
        event
        for event in observed.topology.events
        if (event.kind in ALWAYS_TOLD and split.start <= event.at <= split.end)
        or (
            event.kind in (EventKind.FIRMWARE_LOAD, EventKind.REBOOT)
            and split.start - EARLIER_SECONDS <= event.at <= split.end
        )
    ]
    groups: dict[tuple[str, str], list[list[Event]]] = defaultdict(list)
    for event in told:
        # One drain is one line, not sixteen: the same thing on many devices at the same moment.
        key = (str(event.kind), event.details.get("version", "") if event.kind is EventKind.FIRMWARE_LOAD else "")
        runs = groups[key]
        if runs and event.at - runs[-1][-1].at <= SAME_MOMENT_SECONDS:
            runs[-1].append(event)
        else:
            runs.append([event])
    entries = []
    for runs in groups.values():
        for run in runs:
            first, devices = run[0], sorted({event.device for event in run})
            several = f" (on {len(devices)} devices: {', '.join(devices[:3])} ...)" if len(devices) > 3 else ""
            entries.append(
                (
                    first.at,
                    TimelineEntry(
                        ts=timestamp(first.at),
                        scope=f"device:{first.device}",
                        statement=f"{EVENT_WORDS[first.kind]}{several}: {first.statement}",
                        finding=None,
                        fact=citations.reference(first.provenance),
                    ),
                )
            )
    return entries


def chart_lines(
    observed: Observed,
    places: Places,
    compiled: Compiled,
    roots: Sequence[Verdict],
    citations: Citations,
    symptom_id: str | None,
) -> tuple[TelemetrySeries, ...]:
    """Step time, and in each panel the lines that moved most after the onset: those of the root cause's places
    first."""
    lines: list[TelemetrySeries] = []
    for job in sorted({*observed.topology.jobs, *([observed.job] if observed.job else [])}):
        if points := _points(observed, (job, "", ""), "step_seconds"):
            lines.append(
                TelemetrySeries(
                    panel="step time",
                    label=job,
                    metric="step_seconds",
                    scope=f"job:{job}",
                    unit="s",
                    points=points,
                    finding=symptom_id if job == observed.job else None,
                )
            )
    at_root = {
        port for verdict in roots for queue in _queues(places, verdict.hypothesis.scope) for port in [queue.parts[:2]]
    }
    at_root |= {
        end
        for verdict in roots
        for end in places.ports(verdict.hypothesis.scope)
        if verdict.hypothesis.scope.kind is not ScopeKind.ECMP
    }
    for panel, metric in PANELS:
        ranked = sorted(
            (
                (key[:2] not in at_root, -_movement(signal), key)
                for key, signal in observed.signals(metric).items()
                if key[2] in observed.lossless_classes or not key[2]
            ),
        )
        for _, _, key in ranked[:LINES_PER_PANEL]:
            kind = METRICS[metric].kind
            label = f"{key[0]} {short_port(key[1])}" + (f" TC{key[2]}" if key[2] else "")
            lines.append(
                TelemetrySeries(
                    panel=panel,
                    label=label,
                    metric=metric,
                    scope=str(Scope.of(METRICS[metric].scope, *(part for part in key if part))),
                    unit=METRICS[metric].unit + ("/s" if kind is MetricKind.COUNTER else ""),
                    points=_points(observed, key, metric),
                    finding=_line_finding(observed, compiled, citations, key, metric),
                )
            )
    return tuple(lines)


def _line_finding(
    observed: Observed, compiled: Compiled, citations: Citations, key: tuple[str, str, str], metric: str
) -> str | None:
    """The finding that rests on a line: of a sign that asks for its metric at its queue, or at the rail of its NIC."""
    rail = observed.topology.rail_of(key[0], key[1])
    scopes = [Scope.of(ScopeKind.QUEUE, *key)] if key[2] else [rail] if rail else []
    for sign in sorted(citations.knowledge.signs.values(), key=lambda sign: sign.id):
        for scope in scopes:
            found = compiled.findings.get(sign.id, scope) if sign.signal and sign.signal.metric == metric else None
            if found is not None and found.state == "present":
                return citations.cite(found)
    return None


def _movement(signal: Signal) -> float:
    after = signal["after_mean"]
    return 0.0 if after is None else abs(after - (signal["before_mean"] or 0.0))


def _points(observed: Observed, key: tuple[str, str, str], metric: str) -> tuple[tuple[str, float], ...]:
    line = observed.telemetry.line(*key, metric)
    return tuple(
        (timestamp(at), float(value))
        for at, value in zip(line.times, line.values, strict=True)
        if observed.split.start <= at <= observed.split.end
    )


def coverage(knowledge: KnowledgeBase, observed: Observed) -> tuple[CoverageRow, ...]:
    """What each metric that a sign asks for was read at: how many of the places of its kind."""
    topology = observed.topology
    switch_ports = {(d, p) for d, ports in topology.ports_of.items() if topology.is_switch(d) for p in ports}
    nics = set(topology.nics)
    asked = sorted({sign.signal.metric for sign in knowledge.signs.values() if sign.signal is not None})
    rows = []
    for metric in asked:
        scope = METRICS[metric].scope
        expected = (
            nics if scope is ScopeKind.NIC else switch_ports if scope in (ScopeKind.PORT, ScopeKind.QUEUE) else None
        )
        read = {(key[0], key[1]) for key, signal in observed.signals(metric).items() if signal["after_n"]}
        rows.append(_coverage_row(metric, scope, len(read & expected) if expected is not None else len(read), expected))
    if not any(observed.signals(m) for m in ("pfc_rx_pause_frames", "pfc_tx_pause_frames", "pfc_rx_pause_us")):
        rows.append(
            CoverageRow(
                metric="pfc_rx_pause_frames", scope="fabric:all", state="missing", reason="no PFC counter was read"
            )
        )
    return tuple(rows)


def _coverage_row(metric: str, scope: ScopeKind, read: int, expected: set[tuple[str, str]] | None) -> CoverageRow:
    where = f"{scope}:all"
    if read == 0:
        reason = "no link is known, so no port is" if expected == set() else "no reading after the onset in any file"
        return CoverageRow(metric=metric, scope=where, state="missing", reason=reason)
    if expected is None:
        return CoverageRow(metric=metric, scope=where, state="collected", reason=f"read at {read} places")
    state = "collected" if read >= len(expected) else "partial"
    return CoverageRow(
        metric=metric,
        scope=where,
        state="collected" if state == "collected" else "partial",
        reason=f"read at {read} of {len(expected)} {'NICs' if scope is ScopeKind.NIC else 'switch ports'}",
    )
