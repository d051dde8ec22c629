"""ECMP signs: did the group's membership change near the onset, and did its load become uneven then?"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from statistics import fmean

from ..facts import Event, Provenance
from ..findings import SignFinding, time_coverage
from ..observed import Observed
from ..scope import short_port
from ..signals import Signal, Split
from ..topology import SESSION_EVENTS, EcmpGroup


def membership_change(observed: Observed, sign: str, limits: Mapping[str, float]) -> Iterator[SignFinding]:
    """Did next hops join or leave the group near the onset?

    Absent needs route captures from before and after the onset that agree; captures of one side are unknown.
    """
    split = observed.split
    start = split.start if split.onset is None else split.onset - split.uncertainty_s - limits["before_s"]
    end = split.end if split.onset is None else split.onset + split.uncertainty_s + limits["after_s"]
    for group in observed.topology.ecmp_groups:
        sessions = _sessions(observed, group)
        near = [event for event, _ in sessions if start <= event.at <= end]
        left = sorted(set(group.before) - set(group.after))
        joined = sorted(set(group.after) - set(group.before))
        # A change of routes without a session event of its members is dated by the captures alone: near enough.
        undated = group.before != group.after and not any(port in (*left, *joined) for _, port in sessions)
        if near or undated:
            state = "present"
        elif _spans_onset(group, split):
            state = "absent"
        else:
            continue
        moves = [f"{short_port(port)} left" for port in left] + [f"{short_port(port)} joined" for port in joined]
        yield SignFinding(
            sign,
            group.scope,
            "present" if state == "present" else "absent",
            observed=float(len(group.after)),
            baseline=float(len(group.before)),
            limit=float(len(group.before)),
            unit="members",
            records=tuple(event.provenance for event in near[:2]) + _captures(observed, group),
            words={"moves": ", ".join(moves) or "no member left or joined"},
            at=near[0].at if near else None,
        )


def _spans_onset(group: EcmpGroup, split: Split) -> bool:
    """Whether routes were captured on both sides of the onset; without an onset, whether they were captured twice."""
    if split.onset is None:
        return group.first_at < group.last_at
    return group.first_at <= split.onset - split.uncertainty_s and split.onset <= group.last_at


def _sessions(observed: Observed, group: EcmpGroup) -> list[tuple[Event, str]]:
    """Session events of the group's members, with the member."""
    topology = observed.topology
    found = []
    for event in topology.events:
        if event.kind in SESSION_EVENTS and event.device == group.device:
            named = topology.resolve_port(event.device, event.port) if event.port else None
            port = named or topology.session_port(event.device, event.details.get("peer", ""))
            if port in group.members:
                found.append((event, port))
    return found


def _captures(observed: Observed, group: EcmpGroup) -> tuple[Provenance, ...]:
    """The first and last route record that show the group."""
    routes = sorted(
        (
            route
            for route in observed.topology.routes
            if route.device == group.device
            and {observed.topology.resolve_port(route.device, hop.interface) for hop in route.next_hops}
            & set(group.members)
            and len(route.next_hops) > 1
        ),
        key=lambda route: (route.at, route.prefix),
    )
    return () if not routes else tuple(dict.fromkeys((routes[0].provenance, routes[-1].provenance)))


def group_skew(observed: Observed, sign: str, limits: Mapping[str, float]) -> Iterator[SignFinding]:
    """Did the load of the group's members become uneven at the onset?

    Compares the largest member with the mean of the members, before and after (bytes of the lossless class where
    counted, of the port otherwise), each over the members installed then. With few flows some unevenness is normal
    (causal.md 4.6): only a rise counts.
    """
    if observed.split.onset is None:
        return
    for group in observed.topology.ecmp_groups:
        before = _loads(observed, group, group.before, "before_mean")
        after = _loads(observed, group, group.after, "after_mean")
        if min(len(before), len(after)) < 2 or len(before) < len(group.before) or len(after) < len(group.after):
            continue
        ratio_before, ratio_after = (max(loads.values()) / fmean(loads.values()) for loads in (before, after))
        hottest = max(sorted(after), key=lambda port: after[port])
        records = tuple(
            record
            for port in (hottest, min(sorted(after), key=lambda port: after[port]))
            if (record := _record(observed, group.device, port)) is not None
        )
        yield SignFinding(
            sign,
            group.scope,
            "present" if ratio_after >= limits["rise"] * ratio_before else "absent",
            observed=ratio_after,
            baseline=ratio_before,
            limit=limits["rise"] * ratio_before,
            unit="x the mean member",
            coverage=min(_coverage(observed, group.device, port) for port in after),
            records=records,
            words={"member": short_port(hottest)},
            spot=f"{group.device} {short_port(hottest)}",
        )


def _loads(observed: Observed, group: EcmpGroup, members: tuple[str, ...], column: str) -> dict[str, float]:
    """Bytes per second of each member: of the lossless classes where every member counts them, of the port otherwise.

    Members nobody counted are left out.
    """
    ports = {port: _rates(observed, group.device, port) for port in members}
    by_class = all(classes for classes, _ in ports.values())
    found: dict[str, float] = {}
    for port, (classes, whole) in ports.items():
        rates = [rate for signal in (classes if by_class else whole) if (rate := signal[column]) is not None]
        if rates:
            found[port] = sum(rates)
    return found if any(found.values()) else {}


def _rates(observed: Observed, device: str, port: str) -> tuple[list[Signal], list[Signal]]:
    """What was counted at a port: (its lossless classes, the whole port)."""
    classes = [
        signal
        for priority in sorted(observed.lossless_classes)
        if (signal := observed.signals("queue_tx_bytes").get((device, port, priority))) is not None
    ]
    whole = observed.signals("tx_bytes").get((device, port, ""))
    return classes, [] if whole is None else [whole]


def _coverage(observed: Observed, device: str, port: str) -> float:
    classes, whole = _rates(observed, device, port)
    return max(time_coverage(signal["after_coverage"]) for signal in (*classes, *whole))


def _record(observed: Observed, device: str, port: str) -> Provenance | None:
    classes, whole = _rates(observed, device, port)
    return next((signal.extreme or signal.last for signal in (*classes, *whole)), None)
