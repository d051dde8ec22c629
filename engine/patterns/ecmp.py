"""ECMP signs: did the group's membership change near the onset, and did its load become uneven then?"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from statistics import fmean

from ..facts import Provenance
from ..findings import SignFinding, time_coverage
from ..observed import Observed
from ..scope import short_port
from ..signals import Signal
from ..topology import EcmpGroup

MOST_MOVES = 4
"""Most changes of a group that one statement tells (judgement: one line)."""
MOST_RECORDS = 4
"""Most records that a change of a group cites (judgement: two changes, and what shows the members)."""


def membership_change(observed: Observed, sign: str, limits: Mapping[str, float]) -> Iterator[SignFinding]:
    """Did next hops join or leave the group near the onset, or did what chooses among them change?

    Absent needs a reading from both sides of the onset that would have shown it: route captures that agree, a gauge of
    the next hops, or the states of the links. Its coverage is the share of changes that the reading shows.
    """
    split, membership = observed.split, observed.membership
    start = split.start if split.onset is None else split.onset - split.uncertainty_s - limits["before_s"]
    end = split.end if split.onset is None else split.onset + split.uncertainty_s + limits["after_s"]
    for group in membership.groups:
        moves = [move for move in membership.moves(group) if move.at is None or start <= move.at <= end]
        watched = membership.watched(group)
        if not moves and not watched:
            continue
        records = (*(record for move in moves for record in move.records), *membership.records(group))
        words = tuple(dict.fromkeys(move.words for move in moves))
        yield SignFinding(
            sign,
            group.scope,
            "present" if moves else "absent",
            observed=float(min([len(group.after), *(move.left for move in moves if move.left is not None)])),
            baseline=float(len(group.before)),
            limit=float(len(group.before)),
            unit="members",
            coverage=1.0 if moves else watched,
            records=tuple(dict.fromkeys(records))[:MOST_RECORDS],
            words={"moves": _told(words) or "no member left or joined"},
            at=next((move.at for move in moves), None),
        )


def _told(words: tuple[str, ...]) -> str:
    more = len(words) - MOST_MOVES
    return ", ".join(words[:MOST_MOVES]) + (f" and {more} more" if more > 0 else "")


def group_skew(observed: Observed, sign: str, limits: Mapping[str, float]) -> Iterator[SignFinding]:
    """Did the load of the group's members become uneven at the onset?

    Compares the largest member with the mean of the members, before and after (bytes of the lossless class where
    counted, of the port otherwise). A member that left carries nothing and stays in the mean: what it carried is on the
    others now, all of it on a last one. With few flows some unevenness is normal (causal.md 4.6): only a rise counts.
    Unknown where a smaller rise than that leaves it open, and where what overloads is no member but the way back or
    behind one: the members say nothing about that.
    """
    if observed.split.onset is None:
        return
    for group in observed.membership.groups:
        before = _loads(observed, group, group.before, "before_mean")
        after = _loads(observed, group, group.after, "after_mean")
        if len(before) < 2 or not after or len(before) < len(group.before) or len(after) < len(group.after):
            continue
        ratio_before = max(before.values()) / fmean(before.values())
        ratio_after = max(after.values()) * len({*before, *after}) / sum(after.values())
        hottest = max(sorted(after), key=lambda port: after[port])
        rise = ratio_after / ratio_before
        overloaded = observed.hot_members.get(group.scope, ())
        if rise < limits["rise"] and (rise > limits["calm"] or any(end[0] != group.device for end in overloaded)):
            continue
        records = tuple(
            record
            for port in dict.fromkeys((hottest, min(sorted(after), key=lambda port: after[port])))
            if (record := _record(observed, group.device, port)) is not None
        )
        yield SignFinding(
            sign,
            group.scope,
            "present" if rise >= limits["rise"] else "absent",
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
