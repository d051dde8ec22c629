"""Arista EOS `show interfaces phy detail | json`: FEC codewords and bit error ratio before correction, at the
receiver facing the cable.

Documentation: Arista EOS manual, "Ethernet Ports" (show interfaces phy detail); key names as in aristanetworks/anta
unit tests.

    {"interfacePhyStatuses": {"Ethernet12": {"phyStatuses": [
      {"description": {"phyChipName": "BCM78900", "location": "line"},
      "fec": {"correctedCodewords": {"value": 81233, "changes": 812, "lastChange": 1796847301.2},
              "uncorrectedCodewords": {"value": 0, "changes": 0, "lastChange": 0.0}},
       "preFecBer": {"value": 2.1e-9}}]}}}

| field                          | metric                      | unit                |
|--------------------------------|-----------------------------|---------------------|
| fec.correctedCodewords.value   | fec_corrected_codewords     | codewords, C 64 bit |
| fec.uncorrectedCodewords.value | fec_uncorrected_codewords   | codewords, C 64 bit |
| preFecBer.value                | pre_fec_ber                 | ratio, G            |

A port has several PHYs where a retimer sits between chip and cage. The last one with location `line` faces the cable;
a single PHY is taken whatever its location. The time is the capture time in the path.
"""

from __future__ import annotations

from collections.abc import Iterator

from ..engine.facts import Fact, ReadIssue
from .base import JsonValue, RawFile, Tally, mapping, number, pointer
from .eos_output import looks_like, section

_METRICS = {
    ("fec", "correctedCodewords"): "fec_corrected_codewords",
    ("fec", "uncorrectedCodewords"): "fec_uncorrected_codewords",
    ("preFecBer",): "pre_fec_ber",
}


class EosPhyDetail:
    name = "eos-phy-detail"
    reads = "Arista EOS 4.2x `show interfaces phy detail | json`"
    emits = ("fec_corrected_codewords", "fec_uncorrected_codewords", "pre_fec_ber")
    absence = (("fec_*, pre_fec_ber", "no fec object: FEC is off or the PHY does not count; unknown, not zero"),)

    def matches(self, file: RawFile) -> bool:
        return looks_like(file, "interfacePhyStatuses")

    def read(self, file: RawFile) -> Iterator[Fact | ReadIssue]:
        ports, where = section(file, "interfacePhyStatuses")
        device, at = file.device, file.captured_at
        tally = Tally(file)
        for port, entry in mapping(ports).items():
            statuses = mapping(entry).get("phyStatuses")
            index = _facing_the_cable(statuses if isinstance(statuses, list) else [])
            record = where + pointer(port, "phyStatuses")
            if not isinstance(statuses, list) or index is None:
                tally.add(
                    "no-line-phy",
                    record,
                    f"{port} names no PHY with location 'line'; its FEC counters cannot be told apart, left out",
                )
                continue
            for keys, metric in _METRICS.items():
                value: JsonValue = statuses[index]
                for key in keys:
                    value = mapping(value).get(key)
                if value is None:
                    continue
                counted = number(mapping(value).get("value"))
                if counted is None:
                    tally.add(
                        "not-a-number",
                        record + pointer(index, *keys),
                        f"{metric} of {port} is {value!r}, expected a number; left out",
                    )
                    continue
                yield file.sample(self.name, record + pointer(index, *keys), (device, port, ""), metric, at, counted)
        yield from tally.issues()


def _facing_the_cable(statuses: list[JsonValue]) -> int | None:
    if len(statuses) == 1:
        return 0
    on_line = [
        i for i, status in enumerate(statuses) if mapping(mapping(status).get("description")).get("location") == "line"
    ]
    return on_line[-1] if on_line else None


ADAPTER = EosPhyDetail()
