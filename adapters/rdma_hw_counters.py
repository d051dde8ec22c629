"""RDMA counters of a NIC from sysfs: `grep -r . /sys/class/infiniband/<dev>/ports/<n>/hw_counters`.

Documentation: NVIDIA "Understanding mlx5 Linux Counters and Status Parameters"; Linux
Documentation/ABI/stable/sysfs-class-infiniband.

    /sys/class/infiniband/mlx5_3/ports/1/hw_counters/np_cnp_sent:88123
    /sys/class/infiniband/mlx5_3/ports/1/hw_counters/out_of_sequence:12

| file                         | metric                  | unit                                                  |
|------------------------------|-------------------------|-------------------------------------------------------|
| np_ecn_marked_roce_packets   | ecn_ce_received_packets | packets, C 64 bit (receiver: CE seen)                 |
| np_cnp_sent                  | cnp_sent                | packets, C 64 bit (receiver)                          |
| rp_cnp_handled, rp_cnp_ignored | cnp_handled, cnp_ignored | packets, C 64 bit (sender)                          |
| out_of_sequence              | out_of_sequence         | events, C 32 bit (receiver saw a gap)                 |
| packet_seq_err               | nak_received            | events, C 32 bit (sender got a NAK)                   |
| local_ack_timeout_err        | ack_timeouts            | events, C 32 bit (sender)                             |
| roce_adp_retrans             | adaptive_retransmits    | events, C 32 bit (sender; not part of ack_timeouts)   |
| rnr_nak_retry_err            | rnr_naks                | events, C 32 bit (sender; the remote had no receive)  |
| out_of_buffer, duplicate_request | the same            | events, C 32 bit (receiver)                           |
| rx_icrc_encapsulated         | icrc_errors             | packets, C 64 bit                                     |

The device and port are in each path; host and time come from the file's path. `counters/*` and the files not listed
are no facts here.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from ..engine.facts import Fact, ReadIssue
from .base import RawFile, Tally, rdma_port, whole_number

_METRICS = {
    "np_ecn_marked_roce_packets": "ecn_ce_received_packets",
    "np_cnp_sent": "cnp_sent",
    "rp_cnp_handled": "cnp_handled",
    "rp_cnp_ignored": "cnp_ignored",
    "out_of_sequence": "out_of_sequence",
    "packet_seq_err": "nak_received",
    "local_ack_timeout_err": "ack_timeouts",
    "roce_adp_retrans": "adaptive_retransmits",
    "rnr_nak_retry_err": "rnr_naks",
    "out_of_buffer": "out_of_buffer",
    "duplicate_request": "duplicate_requests",
    "rx_icrc_encapsulated": "icrc_errors",
}
_LINE = re.compile(r"(?:.*/)?infiniband/([^/]+)/ports/(\d+)/hw_counters/(\w+):\s*(.*)")
_HEAD = re.compile(r"(?:\S*/)?infiniband/[^/\s]+/(?:ports/\d+/)?\w")


class RdmaHwCounters:
    name = "rdma-hw-counters"
    reads = "sysfs hw_counters of mlx5 (kernel 4.x to 6.x) as `grep -r .` or `path: value` lines"
    emits = tuple(sorted(_METRICS.values()))
    absence = (
        (
            "cnp_*, ecn_ce_received_packets",
            "the file exists only on RoCE ports and depends on model and firmware: unknown, not zero",
        ),
    )

    def matches(self, file: RawFile) -> bool:
        return _HEAD.match(file.head) is not None and ":" in file.head.partition("\n")[0]

    def read(self, file: RawFile) -> Iterator[Fact | ReadIssue]:
        device, at = file.device, file.captured_at
        tally = Tally(file)
        known = False
        for number, line in enumerate(file.lines, start=1):
            match = _LINE.fullmatch(line)
            if match is None or match[3] not in _METRICS:
                if line.strip() and "/" not in line:
                    tally.add("unknown-line", f"line {number}", f"{line[:60]!r} is not 'path:value'; left out")
                continue
            known = True
            value = whole_number(match[4])
            if value is None:
                tally.add(
                    "not-a-number",
                    f"line {number}",
                    f"{match[3]} is {match[4]!r}, expected a whole number; a poll without a value",
                )
            place = (device, rdma_port(match[1], match[2]), "")
            yield file.sample(self.name, f"line {number}", place, _METRICS[match[3]], at, value)
        if not known:
            tally.add(
                "no-known-counter",
                "",
                "no hw_counters of an RDMA device in it; collect /sys/class/infiniband/*/ports/*/hw_counters",
            )
        yield from tally.issues()


ADAPTER = RdmaHwCounters()
