"""Streaming telemetry recorded by gnmic in its `event` format: one JSON array of events (or one event) a line.

Documentation: gnmic, "Output formats, event"; OpenConfig models openconfig-interfaces, openconfig-if-ethernet,
openconfig-qos.

    [{"name": "fabric", "timestamp": 1795119300000000000, "tags": {"source": "leaf-07", "interface_name": "Ethernet12"},
      "values": {"/interfaces/interface/state/counters/in-octets": "77539401122"}},
     {"name": "fabric", "timestamp": 1795119300000000000,
      "tags": {"source": "leaf-07", "interface_interface-id": "Ethernet12", "queue_name": "3"},
      "values": {"/qos/interfaces/interface/output/queues/queue/state/ecn-marked-pkts": "81230"}}]

| leaf                                                       | metric                            | unit            |
|------------------------------------------------------------|-----------------------------------|-----------------|
| counters/in-octets, out-octets, in-pkts, out-pkts          | rx_bytes, tx_bytes, rx/tx_packets | B, packets, C   |
| counters/in-fcs-errors, in-discards, out-discards          | fcs_errors, port_discards_rx/_tx  | frames, packets |
| counters/carrier-transitions (both edges; halved)          | link_down_events                  | events, C       |
| state/oper-status, admin-status (UP is 1)                  | oper_up, admin_up                 | bool, G         |
| ethernet/state/port-speed, negotiated-port-speed           | speed_bps                         | bit/s, G        |
| ethernet/state/counters/in-mac-pause-frames, out-...       | global_rx/tx_pause_frames         | frames, C       |
| ethernet/state/counters/fec-corrected-blocks, fec-uncorrectable-blocks | fec_(un)corrected_codewords | codewords, C |
| queue/state/transmit-octets, transmit-pkts                 | queue_tx_bytes, queue_tx_packets  | B, packets, C   |
| queue/state/dropped-pkts                                   | queue_drop_packets                | packets, C      |
| queue/state/ecn-marked-pkts                                | ecn_marked_packets                | packets, C      |
| queue/state/max-queue-len (since last sent, or cleared)     | queue_peak_bytes                  | B, W            |
| .../pfc/.../in-pause-frames, out-... (vendor paths)         | pfc_rx/tx_pause_frames            | frames, C       |
| .../in-pfcN-packets, out-pfcN-packets (NVIDIA)             | pfc_rx/tx_pause_frames            | frames, C       |

Under json_ietf 64-bit counters are strings (RFC 7951). A value may be a whole subtree. The device comes from the
path, else from the tag `source` where that is a name. Other leaves are listed in one note.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace

import orjson

from ..engine.facts import Fact, IssueLevel, ReadIssue, Series
from .base import JsonValue, RawFile, Tally, mapping, number

_PORT_LEAVES = {
    "state/counters/in-octets": "rx_bytes",
    "state/counters/out-octets": "tx_bytes",
    "state/counters/in-pkts": "rx_packets",
    "state/counters/out-pkts": "tx_packets",
    "state/counters/in-fcs-errors": "fcs_errors",
    "state/counters/in-discards": "port_discards_rx",
    "state/counters/out-discards": "port_discards_tx",
    "state/counters/carrier-transitions": "link_down_events",
    "state/oper-status": "oper_up",
    "state/admin-status": "admin_up",
    "ethernet/state/port-speed": "speed_bps",
    "ethernet/state/negotiated-port-speed": "speed_bps",
    "ethernet/state/counters/in-mac-pause-frames": "global_rx_pause_frames",
    "ethernet/state/counters/out-mac-pause-frames": "global_tx_pause_frames",
    "ethernet/state/counters/fec-corrected-blocks": "fec_corrected_codewords",
    "ethernet/state/counters/fec-uncorrectable-blocks": "fec_uncorrected_codewords",
}
_QUEUE_LEAVES = {
    "transmit-octets": "queue_tx_bytes",
    "transmit-pkts": "queue_tx_packets",
    "dropped-pkts": "queue_drop_packets",
    "ecn-marked-pkts": "ecn_marked_packets",
    "max-queue-len": "queue_peak_bytes",
}
_PATHS = {f"/interfaces/interface/{leaf}": metric for leaf, metric in _PORT_LEAVES.items()} | {
    f"/qos/interfaces/interface/output/queues/queue/state/{leaf}": metric for leaf, metric in _QUEUE_LEAVES.items()
}
_PFC = re.compile(r"/interfaces?/.*pfc.*/(?:(in|out|rx|tx)-pause(?:-frames|-pkts)?|pause-frames-(rx|tx))")
_PFC_NVIDIA = re.compile(r"/interfaces?/.*/(in|out)-pfc([0-7])-packets")
_ORIGIN_OR_MODULE = re.compile(r"(?<=/)[A-Za-z][\w.-]*:|\[[^\]]*\]|^[A-Za-z][\w-]*:(?=/)")
_Place = tuple[str, str, str, str]  # device, port, qualifier, metric
_SPEED = re.compile(r"SPEED_(\d+)(MB|GB)$")
_TRAILING_DIGITS = re.compile(r"(\d+)$")


@dataclass(frozen=True, slots=True)
class _Meaning:
    """What a leaf measures: `priority` fixed by the leaf's name; `place` says which tag holds the qualifier."""

    metric: str
    place: str = "port"  # port, queue or priority
    priority: str = ""


@dataclass(frozen=True, slots=True)
class _Column:
    """Which series the values of a leaf belong to, and the words that find a value in its line."""

    place: _Place
    words: str


@dataclass(slots=True)
class _Shape:
    """Events of one set of tags and one set of leaves: a row of raw values each. A column without a metric is None."""

    leaves: tuple[str, ...]
    columns: tuple[_Column | None, ...]
    times: list[float] = field(default_factory=list)
    lines: list[int] = field(default_factory=list)
    rows: list[tuple[JsonValue, ...]] = field(default_factory=list)


class GnmicEvents:
    name = "gnmic-events"
    reads = "gnmic 0.2x to 0.4x, format event, OpenConfig paths (EOS, SONiC, NX-OS, Cumulus)"
    emits = tuple(
        sorted({*_PORT_LEAVES.values(), *_QUEUE_LEAVES.values(), "pfc_rx_pause_frames", "pfc_tx_pause_frames"})
    )
    absence = (
        ("ecn_marked_packets", "many platforms omit the leaf: not counted, not zero (openconfig/public#960)"),
        ("pfc_*", "OpenConfig has no leaf for it: only where a vendor path was subscribed; unknown, not zero"),
        (
            "*",
            "a leaf that is not subscribed is not collected; on-change leaves (oper-status) hold until the next",
        ),
    )

    def matches(self, file: RawFile) -> bool:
        return file.head[:1] in "[{" and all(f'"{key}"' in file.head for key in ("tags", "values", "timestamp"))

    def read(self, file: RawFile) -> Iterator[Fact | ReadIssue]:
        tally = Tally(file)
        recording = _Recording(file, tally)
        for record, line, events in _lines(file, tally):
            for event in events if isinstance(events, list) else [events]:
                recording.add(mapping(event), line, record)
        yield from recording.series(self.name)
        if recording.unmapped:
            shown = ", ".join(sorted(recording.unmapped)[:5])
            tally.add(
                "unmapped-paths",
                "",
                f"{len(recording.unmapped)} leaves have no metric here, among them {shown}",
                IssueLevel.NOTE,
            )
        yield from tally.issues()


class _Recording:
    """The events of a file as columns: a million numbers are converted a column at a time, not one by one."""

    def __init__(self, file: RawFile, tally: Tally) -> None:
        self._file, self._tally = file, tally
        self._shapes: dict[tuple[JsonValue, ...], _Shape] = {}
        self.unmapped: set[str] = set()

    def add(self, event: dict[str, JsonValue], line: int, record: str) -> None:
        values, timestamp = event.get("values"), number(event.get("timestamp"))
        if not isinstance(values, dict) or timestamp is None:
            if "values" in event or not ("deletes" in event or "sync-response" in event):
                message = "an entry without values or timestamp; expected a gnmic event; left out"
                self._tally.add("not-an-event", record, message)
            return
        if dict in map(type, values.values()):
            values = dict(_leaves(values))
        tags = mapping(event.get("tags"))
        names = (*tags, *tags.values(), None, *values)
        try:
            shape = self._shapes.get(names)
        except TypeError:  # a tag that is itself a list or an object
            self._tally.add("not-an-event", record, f"tags are {tags!r}, expected names and texts; left out")
            return
        if shape is None:
            shape = self._shapes[names] = self._shape({key: str(tags[key]) for key in tags}, tuple(values), record)
        shape.times.append(self._file.clock.device_epoch(timestamp / 1e9))
        shape.lines.append(line)
        shape.rows.append(tuple(values.values()))

    def series(self, adapter: str) -> Iterator[Series]:
        """A series for each place and metric, in the order they first occurred, its samples in file order."""
        found: dict[_Place, list[Series]] = {}
        for shape in self._shapes.values():
            times, lines = tuple(shape.times), tuple(shape.lines)  # shared by all series of the shape
            for leaf, column, raw in zip(shape.leaves, shape.columns, zip(*shape.rows, strict=True), strict=True):
                if column is not None:
                    values = self._numbers(column.place[3], leaf, raw, lines)
                    provenance = self._file.provenance(adapter, f"lines {lines[0]}-{lines[-1]} {column.words}")
                    found.setdefault(column.place, []).append(Series(*column.place, times, values, provenance, lines))
        for same in found.values():
            yield same[0] if len(same) == 1 else _merged(same)

    def _shape(self, tags: dict[str, str], leaves: tuple[str, ...], record: str) -> _Shape:
        device = self._file.hints.device or _source(tags.get("source", ""))
        port = next((value for key, value in tags.items() if key.startswith("interface_")), "")
        return _Shape(leaves, tuple(self._column(device, port, tags, leaf, record) for leaf in leaves))

    def _column(self, device: str, port: str, tags: dict[str, str], leaf: str, record: str) -> _Column | None:
        meaning = _meaning(_ORIGIN_OR_MODULE.sub("", leaf))
        if meaning is None:
            self.unmapped.add(leaf)
            return None
        named = _qualifying_tag(tags, meaning.place)
        qualifier = meaning.priority or _trailing_number(named)
        if not device:
            message = "neither the tag source nor the path names a device; give incident.yaml a {device}; left out"
            self._tally.add("missing-hint", record, message)
            return None
        if not port or (meaning.place != "port" and not qualifier):
            lacking = meaning.place if port else "interface"
            self._tally.add("no-place", record, f"no tag names the {lacking} that {leaf} is of; left out")
            return None
        words = " ".join(word for word in (port, named, leaf.rpartition("/")[2]) if word)
        return _Column((device, port, qualifier, meaning.metric), words)

    def _numbers(
        self, metric: str, leaf: str, raw: tuple[JsonValue, ...], lines: tuple[int, ...]
    ) -> tuple[float | None, ...]:
        convert = _SPECIAL.get(metric, number)
        if convert is number and _are_decimal(raw):
            return tuple(map(float, raw))  # type: ignore[arg-type]  # texts of decimal digits only
        values = tuple(map(convert, raw))
        for value, converted, line in zip(raw, values, lines, strict=True):
            if converted is None:
                self._tally.add("not-a-number", f"line {line}", f"{leaf} is {value!r}; kept as a poll without a value")
        return values


def _are_decimal(raw: tuple[JsonValue, ...]) -> bool:
    try:
        return "" not in raw and "".join(raw).isdecimal()  # type: ignore[arg-type]
    except TypeError:
        return False


def _merged(same: list[Series]) -> Series:
    """One leaf that came in events of several shapes, in file order."""
    samples = [sample for one in same for sample in zip(one.lines, one.times, one.values, strict=True)]
    lines, times, values = zip(*sorted(samples, key=lambda sample: sample[0]), strict=True)
    provenance = replace(
        same[0].provenance, record=re.sub(r"\d+-\d+", f"{lines[0]}-{lines[-1]}", same[0].provenance.record, count=1)
    )
    return replace(same[0], lines=lines, times=times, values=values, provenance=provenance)


def _lines(file: RawFile, tally: Tally) -> Iterator[tuple[str, int, JsonValue]]:
    """(record, line, events) of each line; of a pretty-printed document its line 1, all at once."""
    lines = file.content.split(b"\n")
    for number_, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        try:
            events: JsonValue = orjson.loads(line)
        except orjson.JSONDecodeError:
            if number_ == 1 and not line.rstrip().endswith((b"]", b"}")):
                yield "line 1", 1, file.json
                return
            is_last = not any(rest.strip() for rest in lines[number_ : number_ + 2])
            what = "the file was cut; " if is_last else ""
            tally.add(
                "malformed-line",
                f"line {number_}",
                f"{what}not one JSON value: {line[:60].decode(errors='replace')!r}; left out",
            )
            continue
        yield f"line {number_}", number_, events


def _leaves(values: dict[str, JsonValue], prefix: str = "") -> Iterator[tuple[str, JsonValue]]:
    for path, value in values.items():
        full = f"{prefix}/{path}" if prefix else path
        if isinstance(value, dict):
            yield from _leaves(value, full)
        else:
            yield full, value


def _meaning(path: str) -> _Meaning | None:
    if path in _PATHS:
        return _Meaning(_PATHS[path], "queue" if path.startswith("/qos/") else "port")
    pfc = _PFC_NVIDIA.fullmatch(path)
    if pfc is not None:
        return _Meaning("pfc_rx_pause_frames" if pfc[1] == "in" else "pfc_tx_pause_frames", "priority", pfc[2])
    pfc = _PFC.fullmatch(path)
    if pfc is not None:
        return _Meaning(
            "pfc_rx_pause_frames" if (pfc[1] or pfc[2]) in ("in", "rx") else "pfc_tx_pause_frames", "priority"
        )
    return None


def _qualifying_tag(tags: dict[str, str], place: str) -> str:
    """The queue or priority as the platform names it (`3`, `TC3`, `Ethernet12-3`); "" for whole ports, or if none."""
    if place == "queue":
        return next((value for key, value in tags.items() if key.startswith("queue_")), "")
    if place == "priority":
        return next((value for key, value in tags.items() if "priority" in key or "dot1p" in key), "")
    return ""


def _trailing_number(name: str) -> str:
    found = _TRAILING_DIGITS.search(name)
    return found[1] if found else ""


def _source(written: str) -> str:
    """The device named by the tag `source` (`leaf-07:6030`); "" for an address, which names none."""
    host, _, port = written.rpartition(":")
    name = host if host and port.isdigit() else written
    try:
        ipaddress.ip_address(name.strip("[]"))
    except ValueError:
        return name
    return ""


def _up(value: JsonValue) -> float | None:
    return _STATES.get(str(value).rpartition(":")[2])


def _bits_per_second(value: JsonValue) -> float | None:
    speed = _SPEED.search(str(value))
    return float(speed[1]) * (1e9 if speed[2] == "GB" else 1e6) if speed else None


def _losses(value: JsonValue) -> float | None:
    # Both edges are counted since boot, where the port starts down: every second one is a loss (openconfig-interfaces).
    transitions = number(value)
    return None if transitions is None else float(transitions // 2)


_STATES = {
    "UP": 1.0,
    "DOWN": 0.0,
    "LOWER_LAYER_DOWN": 0.0,
    "NOT_PRESENT": 0.0,
    "DORMANT": 0.0,
}  # UNKNOWN, TESTING: no number
_SPECIAL: dict[str, Callable[[JsonValue], float | None]] = {
    "oper_up": _up,
    "admin_up": _up,
    "speed_bps": _bits_per_second,
    "link_down_events": _losses,
}

ADAPTER = GnmicEvents()
