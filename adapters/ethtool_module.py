"""`ethtool --json -m <netdev>`: optical power, bias and temperature of the NIC's module, with the module's own limits.

Documentation: ethtool(8), option -m with --json (6.14 and later); CMIS 5.x and SFF-8636 for the quantities.

    [{"identifier": 24, "module_temperature": 41.2, "laser_tx_bias_current": [7.1, 7.2],
      "transmit_avg_optical_power": [0.94, 0.97],
      "rx_power": {"values": [0.71, 0.69], "type": "Rcvr signal avg optical power"},
      "module_temperature": {"high_alarm_threshold": 75, "high_warning_threshold": 70},
      "laser_rx_power": {"low_alarm_threshold": 0.0398}}]

| field                                                 | metric                            | unit           |
|-------------------------------------------------------|-----------------------------------|----------------|
| rx_power.values[] / .value                            | optic_rx_dbm (lane 1..n)          | mW -> dBm      |
| transmit_avg_optical_power, laser_output_power number | optic_tx_dbm (lane 1..n)          | mW -> dBm      |
| laser_tx_bias_current, laser_bias_current number      | optic_bias_ma (lane 1..n)         | mA             |
| module_temperature (_measurement from 6.17)           | optic_temp_c                      | C              |
| laser_rx_power.low_alarm_threshold ...                | optic_rx_dbm_low_alarm ...        | mW -> dBm      |
| laser_output_power.low_..._threshold                  | optic_tx_dbm_low_alarm, _low_warn | mW -> dBm      |
| module_temperature.high_..._threshold                 | optic_temp_c_high_alarm, _high_warn | C            |

ethtool 6.14 to 6.16 print `module_temperature` twice, the reading and the limits: a plain JSON parser keeps the
limits only. 0.0001 mW (-40 dBm) is the smallest value a module reports and means no light: -inf.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator

from ..engine.facts import Fact, ReadIssue
from ..engine.metrics import METRICS
from .base import BadFile, JsonValue, RawFile, Tally, mapping, number, parse_json

_NO_LIGHT_MW = 0.0001  # SFF-8636 and CMIS: steps of 0.1 uW
_LEVELS = {
    "optic_rx_dbm": ("rx_power", "rcvr_signal_avg_optical_power"),
    "optic_tx_dbm": ("transmit_avg_optical_power", "laser_output_power"),
    "optic_bias_ma": ("laser_tx_bias_current", "laser_bias_current"),
    "optic_temp_c": ("module_temperature_measurement", "module_temperature"),
}
_LIMIT_KEYS = {
    "optic_rx_dbm": "laser_rx_power",
    "optic_tx_dbm": "laser_output_power",
    "optic_temp_c": "module_temperature",
}
_LIMITS = {
    "low_alarm": "low_alarm_threshold",
    "low_warn": "low_warning_threshold",
    "high_alarm": "high_alarm_threshold",
    "high_warn": "high_warning_threshold",
}


class EthtoolModule:
    name = "ethtool-module"
    reads = "ethtool 6.14 and later `ethtool --json -m`"
    emits = tuple(
        sorted(
            {*_LEVELS}
            | {f"{metric}_{limit}" for metric in _LIMIT_KEYS for limit in _LIMITS if f"{metric}_{limit}" in METRICS}
        )
    )
    absence = (
        ("optic_*", "copper and modules without DOM print no levels: unknown, not zero (SFF-8636, DOM is optional)"),
    )

    def matches(self, file: RawFile) -> bool:
        return file.head.startswith("[") and '"identifier"' in file.head and '"identifier_description"' in file.head

    def read(self, file: RawFile) -> Iterator[Fact | ReadIssue]:
        place, at = (file.device, file.netdev), file.captured_at
        readings, limits = _module(file)
        tally = Tally(file)
        for metric, keys in _LEVELS.items():
            key = next((key for key in keys if key in readings), None)
            if key is None:
                continue
            record = _line_of(file, key) if key in limits else f"/0/{key}"
            for lane, written in enumerate(_lanes(readings[key]), start=1):
                level = _converted(metric, written)
                if level is None:
                    tally.add("not-a-number", record, f"{metric} of lane {lane} is {written!r}, not a number; left out")
                    continue
                qualifier = str(lane) if METRICS[metric].qualifier == "lane" else ""
                yield file.sample(self.name, record, (*place, qualifier), metric, at, level)
        for metric, key in _LIMIT_KEYS.items():
            for limit, written_key in _LIMITS.items():
                level = _converted(metric, limits.get(key, {}).get(written_key))
                if level is not None and f"{metric}_{limit}" in METRICS:
                    yield file.sample(self.name, f"/0/{key}", (*place, ""), f"{metric}_{limit}", at, level)
        yield from tally.issues()


def _module(file: RawFile) -> tuple[dict[str, JsonValue], dict[str, dict[str, JsonValue]]]:
    """Readings and limits of the first module, apart even where they share a key. Raises BadFile if there is no
    module."""
    parse_json(file.text)  # says where broken JSON breaks
    pairs = json.loads(file.text, object_pairs_hook=lambda pairs: pairs)
    if not (isinstance(pairs, list) and pairs and isinstance(pairs[0], list)):
        raise BadFile("unexpected-shape", "no module in it; expected a list with one object")
    readings: dict[str, JsonValue] = {}
    limits: dict[str, dict[str, JsonValue]] = {}
    for key, value in pairs[0]:
        fields = dict(value) if isinstance(value, list) and value and isinstance(value[0], tuple) else None
        if fields is not None and any(name.endswith("_threshold") for name in fields):
            limits[key] = fields
        else:
            readings.setdefault(key, fields if fields is not None else value)
    return readings, limits


def _line_of(file: RawFile, key: str) -> str:
    """The line of the first of two equal keys: a JSON pointer would lead to the last."""
    quoted = f'"{key}"'
    return f"line {next((number for number, line in enumerate(file.lines, start=1) if quoted in line), 1)}"


def _lanes(value: JsonValue) -> list[JsonValue]:
    if isinstance(value, dict):
        value = mapping(value).get("values", mapping(value).get("value"))
    return value if isinstance(value, list) else [value]


def _converted(metric: str, written: JsonValue) -> float | None:
    value = number(written)
    if value is None or METRICS[metric].unit != "dBm":
        return value
    return -math.inf if value <= _NO_LIGHT_MW else round(10 * math.log10(value), 4)


ADAPTER = EthtoolModule()
