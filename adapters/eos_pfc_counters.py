"""Arista EOS `show priority-flow-control counters | json`: PFC frames per port, all priorities summed (rxFrames: the
neighbour pauses me).

Documentation: Arista EOS manual, "Priority Flow Control" (show priority-flow-control counters); key names as in
aristanetworks/anta unit tests.

    {"interfaceCounters": {"Ethernet12": {"rxFrames": 4711, "txFrames": 12}}}

| field    | metric                  | unit             |
|----------|-------------------------|------------------|
| rxFrames | pfc_rx_pause_frames_all | frames, C 64 bit |
| txFrames | pfc_tx_pause_frames_all | frames, C 64 bit |

Values may be numbers or strings. The time is the capture time in the path; the content has none.
"""

from __future__ import annotations

from collections.abc import Iterator

from ..engine.facts import Fact, ReadIssue
from .base import RawFile, Tally, mapping, number, pointer
from .eos_output import looks_like, section

_METRICS = {"rxFrames": "pfc_rx_pause_frames_all", "txFrames": "pfc_tx_pause_frames_all"}


class EosPfcCounters:
    name = "eos-pfc-counters"
    reads = "Arista EOS 4.2x `show priority-flow-control counters | json`"
    emits = ("pfc_rx_pause_frames_all", "pfc_tx_pause_frames_all")
    absence = (
        ("pfc_*", "a port that is not listed has PFC off: unknown, not zero (EOS lists every port with PFC on)"),
    )

    def matches(self, file: RawFile) -> bool:
        return looks_like(file, "interfaceCounters", "rxFrames")

    def read(self, file: RawFile) -> Iterator[Fact | ReadIssue]:
        ports, where = section(file, "interfaceCounters")
        device, at = file.device, file.captured_at
        tally = Tally(file)
        for port, counters in mapping(ports).items():
            record = where + pointer(port)
            for key, metric in _METRICS.items():
                written = mapping(counters).get(key)
                value = number(written)
                if value is None:
                    tally.add(
                        "not-a-number", record, f"{key} of {port} is {written!r}, expected a count of frames; left out"
                    )
                    continue
                yield file.sample(self.name, record, (device, port, ""), metric, at, value)
        yield from tally.issues()


ADAPTER = EosPfcCounters()
