"""The tidy form, changes: what operators would have seen, one JSON object a line.

No standard; see `tidy_telemetry.py` for the form.

    {"ts": "2026-10-08T02:19Z", "kind": "interface", "device": "leaf3", "port": "Et18", "state": "down", "summary": ""}
    {"ts": "2026-10-08T02:18:41Z", "kind": "config_commit", "device": "leaf0", "summary": "snmp community rotated"}
    {"ts": "2026-10-08T02:18:45Z", "kind": "job_event", "job": "train-a", "summary": "data loader config reloaded"}

| kind          | event                                                                                        |
|---------------|----------------------------------------------------------------------------------------------|
| interface     | link_down or link_up by `state`, at device and port                                          |
| route_change  | route_change                                                                                 |
| config_commit | hash_change where the summary speaks of ECMP, hashing or load balancing, else config_change  |
| host_change   | firmware_load where the summary speaks of firmware or a NIC driver, else host_change         |
| job_event     | job_change; `job` is the device of the event                                                 |
| syslog        | log_line: kept to be read by people, nothing is concluded from it                            |

`device` may be a list with commas: one event a device.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

import orjson

from ..engine.facts import Event, EventKind, Fact, IssueLevel, ReadIssue
from .base import JsonValue, RawFile, Tally, mapping

_KINDS = {
    "route_change": EventKind.ROUTE_CHANGE,
    "config_commit": EventKind.CONFIG_CHANGE,
    "host_change": EventKind.HOST_CHANGE,
    "job_event": EventKind.JOB_CHANGE,
    "syslog": EventKind.LOG_LINE,
}
_LINK_STATES = {"down": EventKind.LINK_DOWN, "up": EventKind.LINK_UP}
_FIRMWARE = re.compile(r"\bfirmware\b|\bnic driver\b", re.IGNORECASE)
_HASHING = re.compile(r"\becmp\b|\bhash|\bload[ -]?balanc", re.IGNORECASE)
_HEAD = re.compile(r'\{(?=[^\n]*"ts"\s*:)(?=[^\n]*"kind"\s*:)(?=[^\n]*"summary"\s*:)')


class TidyChanges:
    name = "tidy-changes"
    reads = "tidy form: changes.jsonl"
    emits = ("Event",)
    absence = (("Event", "a change that is not listed may have happened: change logs rarely cover everything"),)

    def matches(self, file: RawFile) -> bool:
        return _HEAD.match(file.head) is not None

    def read(self, file: RawFile) -> Iterator[Fact | ReadIssue]:
        tally = Tally(file)
        for number, line in enumerate(file.lines, start=1):
            if not line.strip():
                continue
            record = f"line {number}"
            try:
                change = mapping(orjson.loads(line))
            except orjson.JSONDecodeError:
                tally.add("malformed-line", record, f"{line[:60]!r} is not one JSON object; left out")
                continue
            written, kind = change.get("ts"), _kind(change)
            at = file.clock.device_time(written) if isinstance(written, str) else None
            devices = _devices(change, kind)
            if kind is None:
                expected = ", ".join((*_KINDS, "interface (with state down or up)"))
                message = f"kind {change.get('kind')!r} is not one of {expected}; left out"
                tally.add("unknown-change", record, message, IssueLevel.NOTE)
            elif at is None or not devices:
                lacking = "time in ts" if at is None else "job" if kind is EventKind.JOB_CHANGE else "device"
                tally.add("incomplete-change", record, f"the change has no {lacking}; left out")
            else:
                for device in devices:
                    yield Event(
                        kind,
                        device,
                        str(change.get("port") or ""),
                        at,
                        str(change.get("summary") or change["kind"]),
                        file.provenance(self.name, record),
                    )
        yield from tally.issues()


def _kind(change: dict[str, JsonValue]) -> EventKind | None:
    written = change.get("kind")
    if written == "interface":
        return _LINK_STATES.get(str(change.get("state")).lower())
    if written == "host_change" and _FIRMWARE.search(str(change.get("summary"))):
        return EventKind.FIRMWARE_LOAD
    if written == "config_commit" and _HASHING.search(str(change.get("summary"))):
        return EventKind.HASH_CHANGE
    return _KINDS.get(str(written))


def _devices(change: dict[str, JsonValue], kind: EventKind | None) -> tuple[str, ...]:
    named = change.get("job" if kind is EventKind.JOB_CHANGE else "device")
    return tuple(one.strip() for one in named.split(",") if one.strip()) if isinstance(named, str) else ()


ADAPTER = TidyChanges()
