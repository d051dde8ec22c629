"""Times as devices and collectors write them, as UTC seconds since the epoch.

Two clocks meet in a bundle: the device's own (log lines, telemetry timestamps), which may be off by a known
`offset_s`, and the collector's (times in file names), which is taken as right. A time without a zone takes the
bundle's and that is said; a time without a year takes the year that brings it nearest to the incident's window, and
without a window is not guessed.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta, tzinfo

_BASIC = re.compile(r"(\d{4})-?(\d\d)-?(\d\d)[T_ -]?(\d\d)[:-]?(\d\d)(?:[:-]?(\d\d))?(Z|[+-]\d\d:?\d\d)?")
_YEARLESS = re.compile(r"([A-Z][a-z]{2}) +(\d{1,2}) (\d\d):(\d\d):(\d\d)(?:\.(\d{1,6}))?")
_MONTHS = {
    name: i
    for i, name in enumerate(
        ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"], start=1
    )
}


@dataclass
class Clock:
    """The clock of one file. `offset_s`: seconds the device's clock is ahead of UTC. `window`: the incident's, None
    if not declared. `assumed_zone` turns true when a time without a zone was read."""

    zone: tzinfo = UTC
    offset_s: float = 0.0
    window: tuple[float, float] | None = None
    assumed_zone: bool = field(default=False, init=False)

    def device_time(self, written: str) -> float | None:
        """An ISO 8601 / RFC 3339 time or a year-less syslog time that the device stamped; None if it is neither or
        its year is unknown."""
        moment = self._iso(written) or self._yearless(written)
        return None if moment is None else moment.timestamp() - self.offset_s

    def device_epoch(self, seconds: float) -> float:
        """Seconds since the epoch by the device's clock."""
        return seconds - self.offset_s

    def collected(self, written: str) -> float | None:
        """A time in a path (`20261117T203000Z`, `2026-11-17T20-30-00Z`), stamped by the collector; None if it is not
        one."""
        match = _BASIC.fullmatch(written)
        if match is None:
            return None
        year, month, day, hour, minute, second, zone = match.groups()
        moment = self._iso(f"{year}-{month}-{day}T{hour}:{minute}:{second or '00'}{zone or ''}")
        return None if moment is None else moment.timestamp()

    def _iso(self, written: str) -> datetime | None:
        try:
            moment = datetime.fromisoformat(written)
        except ValueError:
            return None
        if moment.tzinfo is None:
            self.assumed_zone = True
            return moment.replace(tzinfo=self.zone)
        return moment

    def _yearless(self, written: str) -> datetime | None:
        match = _YEARLESS.fullmatch(written)
        if match is None or match[1] not in _MONTHS or self.window is None:
            return None
        month, day, hour, minute, second = _MONTHS[match[1]], *(int(match[i]) for i in range(2, 6))
        middle = datetime.fromtimestamp(sum(self.window) / 2, self.zone)
        candidates = []
        for year in (middle.year - 1, middle.year, middle.year + 1):
            try:
                moment = datetime(year, month, day, hour, minute, second, tzinfo=self.zone)
            except ValueError:  # 29 February of a common year, or not a time at all
                continue
            candidates.append(moment + timedelta(microseconds=int((match[6] or "").ljust(6, "0"))))
        self.assumed_zone = self.assumed_zone or bool(candidates)
        return min(candidates, key=lambda moment: abs(moment - middle), default=None)
