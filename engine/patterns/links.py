"""Link signs: is a planned link there, and did it lose its carrier?"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from ..facts import Event, EventKind, Provenance
from ..findings import SignFinding, time_coverage
from ..observed import Observed
from ..scope import Scope, link_scope, short_port
from ..topology import End

SHORTEST_DOWN_S = 10.0
"""How long a link that flaps is down, in seconds: polls of its state further apart may step over it (judgement: the
signal is debounced and trained anew; Qian et al., SIGCOMM 2024, section 9.3 saw jobs halt for more than 9 s)."""

LOAD_S = 60.0
"""How long before and after the record of a firmware load the driver may take the NIC's links down (judgement: NICs of
a host load one after the other, and a record is written when its NIC is back)."""

LOAD_LOSSES = 3.0
"""Most carrier losses of one firmware load (judgement: reset, training, and training again)."""


def missing_links(observed: Observed, sign: str, limits: Mapping[str, float]) -> Iterator[SignFinding]:
    """Is a planned link absent?

    Absence of the sign needs a neighbour record of the link; unknown where neither end's neighbours were read. A device
    speaks for its links to hosts only where it sees a host: many hosts run no neighbour protocol.
    """
    seen: dict[End, tuple[str, Provenance]] = {}
    asked: set[tuple[str, bool]] = set()
    topology = observed.topology
    for cable in topology.cables:
        if cable.kind == "observed":
            end_a, end_b = topology.cable_ends(cable)
            asked.add((end_a[0], topology.is_host(end_b[0])))
            seen[end_a], seen[end_b] = (end_b[0], cable.provenance), (end_a[0], cable.provenance)
    done = set()
    for cable in topology.cables:
        if cable.kind != "intended":
            continue
        end_a, end_b = topology.cable_ends(cable)
        link = link_scope(end_a, end_b)
        speakers = {(end[0], topology.is_host(other[0])) for end, other in ((end_a, end_b), (end_b, end_a))}
        if link in done or not speakers & asked:
            continue
        done.add(link)
        neighbours = ((seen.get(end), other[0]) for end, other in ((end_a, end_b), (end_b, end_a)))
        found = next((record for record, planned in neighbours if record and record[0] == planned), None)
        yield SignFinding(
            sign,
            link,
            "present" if found is None else "absent",
            observed=0.0 if found is None else 1.0,
            limit=1.0,
            unit="neighbour records",
            records=(cable.provenance,) if found is None else (found[1],),
        )


def link_losses(observed: Observed, sign: str, limits: Mapping[str, float]) -> Iterator[SignFinding]:
    """Did a link go down after the onset and come back?

    Told by carrier counters, by the operational state, or by the log, of either end. Absent needs a counter or the
    state: a silent log proves nothing. Unknown for a link that is still down: a lost member, or a flap not yet over;
    and for a link that went down only while its NIC loaded firmware, as every link does then.
    """
    split = observed.split
    since = split.start if split.onset is None else split.onset - split.uncertainty_s
    topology = observed.topology
    logged: dict[Scope, list[Event]] = defaultdict(list)
    for event in observed.events((EventKind.LINK_DOWN,), since, split.end):
        link = topology.link(event.device, topology.resolve_port(event.device, event.port)) if event.port else None
        if link is not None:
            logged[link].append(event)
    loads = _loads(observed)
    for link in topology.links:
        loaded = sorted(at for end in topology.ends(link) for at in loads.get(end, ()))
        ends = [carrier for end in topology.ends(link) if (carrier := _carrier(observed, end, loaded)) is not None]
        downs = [event for event in logged.get(link, ()) if not any(abs(event.at - at) <= LOAD_S for at in loaded)]
        losses = max([float(len(downs)), *(carrier.losses for carrier in ends)])
        if not (ends or downs) or any(carrier.is_down for carrier in ends):
            continue
        if not losses and any(carrier.by_load for carrier in ends):
            continue
        yield SignFinding(
            sign,
            link,
            "present" if losses else "absent",
            observed=losses,
            limit=0.0,
            unit="times",
            coverage=1.0 if losses else sum(carrier.coverage for carrier in ends) / 2,
            records=(*(event.provenance for event in downs[:2]), *(carrier.record for carrier in ends)),
            spot=f"{link.parts[0]} {short_port(link.parts[1])}",
            at=downs[0].at if downs else None,
        )


def _loads(observed: Observed) -> Mapping[End, list[float]]:
    """When each NIC loaded firmware; a record that names no port speaks of all NICs of its host."""
    topology = observed.topology
    found: dict[End, list[float]] = defaultdict(list)
    for event in topology.events:
        if event.kind is EventKind.FIRMWARE_LOAD:
            named = topology.resolve_port(event.device, event.port) if event.port else None
            for port in topology.ports_of.get(event.device, ()):
                if named in (None, port):
                    found[(event.device, port)].append(event.at)
    return found


@dataclass(frozen=True, slots=True)
class _Carrier:
    """What one end of a link counted after the onset: how often it lost the carrier, apart from losses while firmware
    was loaded (`by_load`: there were some), and whether it is down now."""

    losses: float
    is_down: bool
    coverage: float
    record: Provenance
    by_load: bool


def _carrier(observed: Observed, end: End, loaded: Sequence[float]) -> _Carrier | None:
    counter = observed.signals("link_down_events").get((*end, ""))
    state = observed.signals("oper_up").get((*end, ""))
    found: list[_Carrier] = []
    if counter is not None and (losses := counter["after_delta"]) is not None:
        by_load = round(min(losses, _losses_by_load(observed, end, loaded))) if losses and loaded else 0
        record = counter.extreme or counter.last
        seen = time_coverage(counter["after_coverage"])
        found.append(_Carrier(losses - by_load, False, seen, record, by_load > 0))
    if state is not None and state["after_n"]:
        line = observed.telemetry.line(*end, "", "oper_up")
        fell = state["after_min"] == 0 and state["before_min"] != 0
        down = [at for at, value in zip(line.times.tolist(), line.values.tolist(), strict=True) if value == 0]
        by_itself = fell and any(all(abs(at - load) > LOAD_S for load in loaded) for at in down)
        seen = time_coverage(state["after_coverage"]) * min(1.0, SHORTEST_DOWN_S / (state["interval_s"] or math.inf))
        found.append(_Carrier(float(by_itself), line.values[-1] == 0, seen, state.last, fell and not by_itself))
    if not found:
        return None
    shown = max(found, key=lambda carrier: (carrier.losses, carrier.coverage))
    return replace(
        shown,
        is_down=any(carrier.is_down for carrier in found),
        by_load=any(carrier.by_load for carrier in found),
    )


def _losses_by_load(observed: Observed, end: End, loaded: Sequence[float]) -> float:
    """Carrier losses counted between polls within which firmware was loaded."""
    line = observed.telemetry.line(*end, "", "link_down_events")
    polls = [observed.split.start, *line.times.tolist()]
    found = 0.0
    for since, until, rate in zip(polls, polls[1:], line.values.tolist(), strict=False):
        loads = sum(since - LOAD_S <= at <= until + LOAD_S for at in loaded)
        found += min(rate * (until - since), LOAD_LOSSES * loads)
    return found
