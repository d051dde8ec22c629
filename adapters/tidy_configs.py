"""The tidy form, configurations: marking, PFC and buffer settings of each switch at the start and the end.

No standard; see `tidy_telemetry.py` for the form.

    {"at_start": [{"device": "leaf0", "ecn_kmin_kb_per_100g": 100, "ecn_kmax_kb_per_100g": 400, "ecn_pmax": 0.2,
                   "ecn_enabled": true, "pfc_priorities": [3], "ingress_dynamic_alpha": 0.125, "buffer_mb": 16,
                   "ecmp_hash": "4-tuple"}],
     "at_end": []}

| key                                          | QosProfile                                                        |
|----------------------------------------------|-------------------------------------------------------------------|
| at_start, at_end                             | at: the start and the end of the window of incident.yaml          |
| ecn_kmin_kb_per_100g, ecn_kmax_kb_per_100g   | ecn_kmin_bytes, ecn_kmax_bytes (kB = 1000 B), ecn_speed_bps 100e9 |
| ecn_enabled, ecn_pmax                        | ecn_enabled, ecn_probability_max                                  |
| pfc_priorities                               | pfc_priorities                                                    |
| ingress_dynamic_alpha, buffer_mb             | buffer_alpha, buffer_bytes (MB = 1,000,000 B)                     |
| ecmp_hash                                    | ecmp_hash                                                         |

A key that is missing is not said. An entry may have its own `ts` (RFC 3339); without one and without a window nobody
knows when it held, and it is left out.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from ..engine.facts import Fact, QosProfile, ReadIssue
from .base import JsonValue, RawFile, Tally, mapping, number, pointer

_HEAD = re.compile(r'\{\s*"at_(?:start|end)"\s*:\s*\[')
_REFERENCE_SPEED_BPS = 100e9  # the form's own: its limits are given for a 100G port


class TidyConfigs:
    name = "tidy-configs"
    reads = "tidy form: configs.json"
    emits = ("QosProfile",)
    absence = (("QosProfile", "a setting that is not named is unknown, not the vendor's default"),)

    def matches(self, file: RawFile) -> bool:
        return _HEAD.match(file.head) is not None

    def read(self, file: RawFile) -> Iterator[Fact | ReadIssue]:
        tally = Tally(file)
        document = mapping(file.json)
        for moment, end in (("at_start", 0), ("at_end", 1)):
            rows = document.get(moment)
            for index, row in enumerate(rows if isinstance(rows, list) else []):
                settings, record = mapping(row), pointer(moment, index)
                device = settings.get("device")
                if not isinstance(device, str) or not device:
                    tally.add("incomplete-profile", record, f"device is {device!r}, expected a name; left out")
                    continue
                written = settings.get("ts")
                at = file.clock.device_time(written) if isinstance(written, str) else None
                if at is None and written is None and file.clock.window is not None:
                    at = file.clock.window[end]
                if at is None:
                    message = "nobody knows when it held: ts is no time, or incident.yaml has no window; left out"
                    tally.add("no-time", record, message)
                    continue
                yield _profile(file, self.name, device, at, settings, record)
        yield from tally.issues()


def _profile(
    file: RawFile, adapter: str, device: str, at: float, settings: dict[str, JsonValue], record: str
) -> QosProfile:
    kmin, kmax = number(settings.get("ecn_kmin_kb_per_100g")), number(settings.get("ecn_kmax_kb_per_100g"))
    buffer = number(settings.get("buffer_mb"))
    enabled, hashing, priorities = (
        settings.get("ecn_enabled"),
        settings.get("ecmp_hash"),
        settings.get("pfc_priorities"),
    )
    return QosProfile(
        device=device,
        at=at,
        provenance=file.provenance(adapter, record),
        ecn_enabled=enabled if isinstance(enabled, bool) else None,
        ecn_kmin_bytes=None if kmin is None else kmin * 1e3,
        ecn_kmax_bytes=None if kmax is None else kmax * 1e3,
        ecn_speed_bps=None if kmin is None and kmax is None else _REFERENCE_SPEED_BPS,
        ecn_probability_max=number(settings.get("ecn_pmax")),
        pfc_priorities=tuple(one for one in priorities if isinstance(one, int) and not isinstance(one, bool))
        if isinstance(priorities, list)
        else None,
        buffer_alpha=number(settings.get("ingress_dynamic_alpha")),
        buffer_bytes=None if buffer is None else buffer * 1e6,
        ecmp_hash=hashing if isinstance(hashing, str) else None,
    )


ADAPTER = TidyConfigs()
