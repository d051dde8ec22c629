"""Switch syslog of Arista EOS and FRR (SONiC, Cumulus): BGP sessions, links, configuration, maintenance, restarts.

Documentation: Arista EOS "System messages"; FRR bgpd log messages; examples in napalm-logs.

    Nov 17 20:31:00 leaf-07 Bgp: %BGP-5-ADJCHANGE: peer 10.255.3.7 (VRF default AS 65103) old
      state Established event RecvNotify new state Idle
    2026-11-17T20:33:00.4+00:00 leaf-07 Ebra: %LINEPROTO-5-UPDOWN: Line protocol on Interface Ethernet1,
      changed state to down
    2026-11-17T20:31:00.5Z leaf-15 bgpd[83]: %ADJCHANGE: neighbor 10.255.3.15(spine-03) in vrf default Down Peer closed

| message                                             | event                                                         |
|-----------------------------------------------------|---------------------------------------------------------------|
| BGP ADJCHANGE from / to Established, Down / Up      | SESSION_DOWN / SESSION_UP; details peer, reason, and where    |
|                                                     | printed peer_name, notification (code of the one before it)   |
| LINEPROTO UPDOWN                                    | LINK_DOWN / LINK_UP of the port                               |
| SYS CONFIG_I, CONFIG_SESSION_COMMIT, CONFIG_REPLACE | CONFIG_CHANGE; details user                                   |
| MMODE (maintenance mode)                            | MAINTENANCE                                                   |
| SYS SYSTEM_INITIALIZED, SYSTEM_RESTARTED            | REBOOT                                                        |

`message repeated N times: [...]` is one event with details `repeated`. A time without a year takes the window's.
Other messages are no events.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from ..engine.facts import Event, EventKind, Fact, ReadIssue
from .base import RawFile, Tally
from .redaction import redacted

_HEADER = re.compile(
    r"(?:<\d+>)?(?:\d )?"  # priority and version of RFC 5424, kept by relays
    r"(?P<time>\d{4}-\d\d-\d\dT\S+|[A-Z][a-z]{2} [ \d]\d \d\d:\d\d:\d\d(?:\.\d{1,6})?) (?P<host>\S+) (?P<rest>.*)"
)
_MNEMONIC = re.compile(r"%(?:[A-Z][A-Z0-9_]*-[0-7]-[A-Z0-9_]+|ADJCHANGE|NOTIFICATION): ")
_KERNEL = re.compile(r"\S+ \S+ kernel: ")
_REPEATED = re.compile(r"message repeated (\d+) times: \[ ?(.*?)\]?$")
_NOTIFICATION = re.compile(
    r"%(?:BGP-\d-)?NOTIFICATION: (?:sent to|received from) neighbor (?P<peer>[^\s(]+).*? (?P<code>\d+/\d+ \([^)]*\))"
)

_BGP = (
    re.compile(
        r"%BGP-\d-ADJCHANGE: peer (?P<peer>\S+) .*?old state (?P<old>\w+) event (?P<reason>\w+) new state (?P<new>\w+)"
    ),
    re.compile(
        r"%(?:BGP-\d-)?ADJCHANGE: (?:neighbor|peer) (?P<peer>[^\s(]+)(?:\((?P<peer_name>[^)]*)\))?"
        r"(?: in vrf \S+| \([^)]*\))?"
        r" (?P<new>Up|Down)(?:[ -]+(?P<reason>.*))?"
    ),
)
_OTHERS: tuple[tuple[EventKind, re.Pattern[str]], ...] = (
    (
        EventKind.LINK_DOWN,
        re.compile(r"%LINEPROTO-\d-UPDOWN: Line protocol on Interface (?P<port>\S+), changed state to down"),
    ),
    (
        EventKind.LINK_UP,
        re.compile(r"%LINEPROTO-\d-UPDOWN: Line protocol on Interface (?P<port>\S+), changed state to up"),
    ),
    (
        EventKind.CONFIG_CHANGE,
        re.compile(r"%SYS-\d-CONFIG_(?:I|SESSION_COMMIT\w*|REPLACE\w*): (?:.*?\b(?:by|[Uu]ser) (?P<user>[\w.@-]+))?"),
    ),
    (EventKind.MAINTENANCE, re.compile(r"%MMODE-\d-\w+: ")),
    (EventKind.REBOOT, re.compile(r"%SYS-\d-SYSTEM_(?:INITIALIZED|RESTARTED): ")),
)


class SwitchSyslog:
    name = "switch-syslog"
    reads = "syslog of Arista EOS 4.2x and FRR 7.x to 10.x, RFC 3339 or traditional timestamps"
    emits = ("Event",)
    absence = (
        (
            "Event",
            "no line is no event only within the time the log covers and at its logging level; rate limits drop lines",
        ),
    )

    def matches(self, file: RawFile) -> bool:
        first = file.head.partition("\n")[0]
        if _HEADER.match(first) is None and _MNEMONIC.search(first) is None:
            return False
        return _MNEMONIC.search(file.head) is not None or ("syslog" in file.name and _KERNEL.match(first) is None)

    def read(self, file: RawFile) -> Iterator[Fact | ReadIssue]:
        tally = Tally(file)
        notifications: dict[str, str] = {}
        for number, line in enumerate(file.lines, start=1):
            header = _HEADER.match(line)
            if header is None:
                if _MNEMONIC.search(line) is not None:
                    tally.add(
                        "no-time", f"line {number}", f"{line[:60]!r} does not begin with a time and a host; left out"
                    )
                continue
            rest = header["rest"]
            repeated = _REPEATED.search(rest)
            message_at = _MNEMONIC.search(repeated[2] if repeated else rest)
            if message_at is None:
                continue
            message = (repeated[2] if repeated else rest)[message_at.start() :]
            notification = _NOTIFICATION.match(message)
            if notification is not None:
                notifications[notification["peer"]] = notification["code"]
                continue
            event = _event(message)
            if event is None:
                continue
            kind, details = event
            at = file.clock.device_time(header["time"])
            if at is None and header["time"][0].isalpha():
                message = (
                    "has no year and the bundle no window to take it from; add `window` to incident.yaml; left out"
                )
                tally.add("no-year", f"line {number}", f"the time {header['time']!r} {message}")
                continue
            if at is None:
                tally.add("bad-time", f"line {number}", f"{header['time']!r} is no time; the event is left out")
                continue
            if repeated:
                details["repeated"] = repeated[1]
            if kind is EventKind.SESSION_DOWN and details["peer"] in notifications:
                details["notification"] = notifications.pop(details["peer"])
            port = details.pop("port", "")
            device = file.hints.device or header["host"]
            yield Event(
                kind, device, port, at, redacted(message), file.provenance(self.name, f"line {number}"), details
            )
        yield from tally.issues()


def _event(message: str) -> tuple[EventKind, dict[str, str]] | None:
    for pattern in _BGP:
        match = pattern.match(message)
        if match is not None:
            details = {
                key: value
                for key, value in match.groupdict().items()
                if value and key in ("peer", "peer_name", "reason")
            }
            if match["new"] in ("Established", "Up"):
                return EventKind.SESSION_UP, details
            if match["new"] == "Down" or match.groupdict().get("old") == "Established":
                return EventKind.SESSION_DOWN, details
            return None  # a session that was not up and does not come up
    for kind, pattern in _OTHERS:
        match = pattern.match(message)
        if match is not None:
            return kind, {key: value for key, value in match.groupdict().items() if value}
    return None


ADAPTER = SwitchSyslog()
