"""Arista EOS `show qos interfaces ecn counters queue | json`: ECN-marked packets per egress queue.

Documentation: Arista EOS manual, "Quality of Service" (random-detect ecn count); key names as in aristanetworks/anta
unit tests.

    {"intfQueueCounters": {"Ethernet12": {"queueCounters": {"0": "-", "3": "81230"}}}}

| field           | metric             | unit              |
|-----------------|--------------------|-------------------|
| queueCounters.N | ecn_marked_packets | packets, C 64 bit |

Counts are strings. `-` means that counting is off on that queue (`random-detect ecn count` is missing): packets may
be marked uncounted. The time is the capture time in the path; the content has none.
"""

from __future__ import annotations

from collections.abc import Iterator

from ..engine.facts import Fact, IssueLevel, ReadIssue
from .base import RawFile, Tally, mapping, number, pointer
from .eos_output import looks_like, section


class EosEcnCounters:
    name = "eos-ecn-counters"
    reads = "Arista EOS 4.2x `show qos interfaces ecn counters queue | json`"
    emits = ("ecn_marked_packets",)
    absence = (
        (
            "ecn_marked_packets",
            "`-` and queues not listed are not counted: unknown, not zero (EOS manual, random-detect ecn count)",
        ),
    )

    def matches(self, file: RawFile) -> bool:
        return looks_like(file, "intfQueueCounters")

    def read(self, file: RawFile) -> Iterator[Fact | ReadIssue]:
        ports, where = section(file, "intfQueueCounters")
        device, at = file.device, file.captured_at
        tally = Tally(file)
        for port, queues in mapping(ports).items():
            for queue, written in mapping(mapping(queues).get("queueCounters")).items():
                record = where + pointer(port, "queueCounters", queue)
                value = number(written)
                if value is not None:
                    yield file.sample(self.name, record, (device, port, queue), "ecn_marked_packets", at, value)
                elif written == "-":
                    tally.add(
                        "not-counted",
                        record,
                        f"marks of {port} queue {queue} are not counted ('-'): unknown, not zero; "
                        "`random-detect ecn count` turns counting on",
                        IssueLevel.NOTE,
                    )
                else:
                    tally.add(
                        "not-a-number",
                        record,
                        f"marks of {port} queue {queue} are {written!r}, expected a count; left out",
                    )
        yield from tally.issues()


ADAPTER = EosEcnCounters()
