"""Arista EOS `show interfaces transceiver [dom [thresholds]] | json`: optical power, bias and temperature, with the
module's own limits.

Documentation: Arista EOS manual, "Ethernet Ports" (show interfaces transceiver dom thresholds); key names as in
aristanetworks/anta unit tests.

    {"interfaces": {"Ethernet12": {"displayName": "Ethernet12", "parameters": {"rxPower": {"unit": "dBm",
      "channels": {"1": -1.42, "2": -1.61}, "threshold": {"lowAlarm": -10.4, "lowWarn": -8.4}},
      "temperature": {"unit": "C", "channels": {"-": 47.3}}}}, "Ethernet13": {"displayName": "Ethernet13"}}}

| field                                    | metric                              | unit |
|------------------------------------------|-------------------------------------|------|
| rxPower, txPower (channels: lanes 1..8)  | optic_rx_dbm, optic_tx_dbm          | dBm  |
| txBias (channels)                        | optic_bias_ma                       | mA   |
| temperature (channel "-": the module)    | optic_temp_c                        | C    |
| ...threshold.lowAlarm, lowWarn, high...  | optic_rx_dbm_low_alarm ... (a port) | dBm, C |

The form without `dom` has the values directly under the interface (one lane each) and an `updateTime`, which is used;
otherwise the time is the capture time in the path. -30 dBm and below is how EOS writes no light: it becomes -inf.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

from ..engine.facts import Fact, ReadIssue
from ..engine.metrics import METRICS
from .base import JsonValue, RawFile, Tally, mapping, number, pointer
from .eos_output import looks_like, section

_METRICS = {
    "rxPower": "optic_rx_dbm",
    "txPower": "optic_tx_dbm",
    "txBias": "optic_bias_ma",
    "temperature": "optic_temp_c",
}
_LIMITS = {"lowAlarm": "low_alarm", "lowWarn": "low_warn", "highAlarm": "high_alarm", "highWarn": "high_warn"}
_NO_LIGHT_DBM = -30.0  # EOS prints -30.00 where the receiver sees nothing; SFF-8636 ends at 0.1 uW = -40 dBm


class EosTransceiverDom:
    name = "eos-transceiver-dom"
    reads = "Arista EOS 4.2x `show interfaces transceiver [dom [thresholds]] | json`"
    emits = tuple(
        sorted(
            {*_METRICS.values()}
            | {
                f"{metric}_{limit}"
                for metric in _METRICS.values()
                for limit in _LIMITS.values()
                if f"{metric}_{limit}" in METRICS
            }
        )
    )
    absence = (
        (
            "optic_*",
            "no parameters: copper, an empty cage or no DOM (optional in SFF-8636); unknown, not zero",
        ),
    )

    def matches(self, file: RawFile) -> bool:
        return looks_like(file, "interfaces") and (
            looks_like(file, "parameters", "channels")
            or looks_like(file, "rxPower", "txBias")
            or looks_like(file, "vendorSn", "mediaType")
        )

    def read(self, file: RawFile) -> Iterator[Fact | ReadIssue]:
        ports, where = section(file, "interfaces")
        tally = Tally(file)
        for port, entry in mapping(ports).items():
            fields = mapping(entry)
            updated = number(fields.get("updateTime"))
            parameters = mapping(fields.get("parameters")) or {
                key: {"channels": {"1": fields[key]}} for key in _METRICS if key in fields
            }
            if not parameters:
                continue
            at = file.captured_at if updated is None else file.clock.device_epoch(updated)
            for key, metric in _METRICS.items():
                record = where + (pointer(port, "parameters", key) if "parameters" in fields else pointer(port))
                yield from self._parameter(file, tally, record, port, metric, mapping(parameters.get(key)), at)
        yield from tally.issues()

    def _parameter(
        self,
        file: RawFile,
        tally: Tally,
        record: str,
        port: str,
        metric: str,
        parameter: dict[str, JsonValue],
        at: float,
    ) -> Iterator[Fact]:
        for lane, written in mapping(parameter.get("channels")).items():
            value = _level(written, metric)
            if value is None:
                tally.add(
                    "not-a-number",
                    record,
                    f"{metric} of {port} lane {lane} is {written!r}, expected a number; left out",
                )
                continue
            qualifier = "" if METRICS[metric].qualifier == "none" else "1" if lane == "-" else lane
            yield file.sample(self.name, record, (file.device, port, qualifier), metric, at, value)
        for key, limit in _LIMITS.items():
            value = number(mapping(parameter.get("threshold")).get(key))
            if value is not None and f"{metric}_{limit}" in METRICS:
                yield file.sample(
                    self.name, record + "/threshold", (file.device, port, ""), f"{metric}_{limit}", at, value
                )


def _level(written: JsonValue, metric: str) -> float | None:
    if METRICS[metric].unit == "dBm" and isinstance(written, str) and written.strip().lower() == "-inf":
        return -math.inf
    value = number(written)
    if value is None:
        return None
    return -math.inf if METRICS[metric].unit == "dBm" and value <= _NO_LIGHT_DBM else value


ADAPTER = EosTransceiverDom()
