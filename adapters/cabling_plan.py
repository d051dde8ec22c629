"""The cabling plan as CSV: which port is meant to be connected to which.

No standard; two headers are read: this project's plain one, and the cable import of NetBox (side_a_device,
side_a_name, ...).

    a_device,a_port,b_device,b_port,speed_gbps,role
    leaf-01,Ethernet9,spine-01,Ethernet1,400,leaf-spine
    gpu-worker-001,ens11f0np0,leaf-01,Ethernet17,400,leaf-host

| column                          | fact                                                        |
|---------------------------------|-------------------------------------------------------------|
| a_device, a_port, b_device, ... | Cable intended; short EOS names (Et9) are written in full   |
| speed_gbps                      | speed_bps; blank: not said                                  |
| role                            | role; blank: not said                                       |
"""

from __future__ import annotations

import csv
import re
from collections.abc import Iterator

from ..engine.facts import Cable, Fact, ReadIssue
from .base import RawFile, Tally, number, port_name

_PLAIN = ("a_device", "a_port", "b_device", "b_port")
_NETBOX = ("side_a_device", "side_a_name", "side_b_device", "side_b_name")
_SHORT = re.compile(r"Et(\d+(?:/\d+)*)")


class CablingPlan:
    name = "cabling-plan"
    reads = "cabling plan as CSV (plain header, or NetBox cable import)"
    emits = ("Cable",)
    absence = (
        (
            "Cable",
            "a port that is not in the plan is not meant to be connected, or the plan is partial: intent unknown",
        ),
    )

    def matches(self, file: RawFile) -> bool:
        header = {column.strip() for column in file.head.partition("\n")[0].split(",")}
        return header.issuperset(_PLAIN) or header.issuperset(_NETBOX)

    def read(self, file: RawFile) -> Iterator[Fact | ReadIssue]:
        tally = Tally(file)
        rows = csv.DictReader(file.lines, skipinitialspace=True)
        ends = _PLAIN if {*_PLAIN} <= {*(rows.fieldnames or ())} else _NETBOX
        for row in rows:
            record = f"line {rows.line_num}"
            named = [(row.get(column) or "").strip() for column in ends]
            if not any(value.strip() for value in row.values() if isinstance(value, str)):
                continue
            if not all(named):
                message = (
                    f"{', '.join(ends)} are {', '.join(map(repr, named))}; expected four names; the cable is left out"
                )
                tally.add("incomplete-cable", record, message)
                continue
            written = (row.get("speed_gbps") or "").strip()
            speed = number(written)
            if written and speed is None:
                tally.add(
                    "not-a-number",
                    record,
                    f"speed_gbps is {written!r}, expected a number; the cable is kept without a speed",
                )
            a_device, a_port, b_device, b_port = named
            yield Cable(
                a_device,
                _full_name(a_port),
                b_device,
                _full_name(b_port),
                "intended",
                file.provenance(self.name, record),
                None if speed is None else speed * 1e9,
                (row.get("role") or "").strip() or None,
            )
        yield from tally.issues()


def _full_name(port: str) -> str:
    short = _SHORT.fullmatch(port)
    return f"Ethernet{short[1]}" if short else port_name(port)


ADAPTER = CablingPlan()
