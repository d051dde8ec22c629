"""`journalctl -k -o short-iso` of a host: NIC firmware at driver load, links, GPU Xid errors, reboots.

Documentation: journalctl(1), output short-iso; message texts from Linux drivers/net/ethernet/mellanox/mlx5 and the
NVIDIA Xid catalogue.

    2026-11-14T02:11:05+0000 gpu-worker-042 kernel: mlx5_core 0000:5c:00.0: firmware version: 28.43.2026
    2026-11-17T20:31:07+0000 gpu-worker-042 kernel: mlx5_core 0000:5c:00.0 ens11f0np0: Link down
    2026-11-17T20:33:10+0000 gpu-worker-042 kernel: NVRM: Xid (PCI:0000:17:00): 79, pid=2211, fallen off the bus.

| message                                  | event                                                       |
|------------------------------------------|-------------------------------------------------------------|
| mlx5_core <pci>: firmware version: <v>   | FIRMWARE_LOAD (details version, pci); port is the PCI address, an alias |
| mlx5_core <pci> <netdev>: Link up / down | LINK_UP / LINK_DOWN (details pci)                           |
| NVRM: Xid (PCI:<pci>): <n>, ...          | GPU_XID (details xid, pci)                                  |
| Linux version ...                        | REBOOT (details version)                                    |

Lines with seconds since boot only (plain dmesg) cannot be placed in time and are refused. Other kernel messages are
no events here.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from ..engine.facts import Event, EventKind, Fact, ReadIssue
from .base import BadFile, RawFile, Tally

_LINE = re.compile(r"(\d{4}-\d\d-\d\dT\S+) (\S+) kernel: (.*)")
_BOOT_LINES = re.compile(r"\A(?:-- .*\n)+")  # "-- Boot 3f2a... --" and "-- Logs begin at ... --"
_SWITCH_MESSAGE = re.compile(r"%[A-Z][A-Z0-9_]*-[0-7]-[A-Z0-9_]+: ")  # a switch's syslog holds kernel lines too
_UPTIME = re.compile(r"(?:kernel: )?\[ *\d+\.\d{6}\] ")
_MESSAGES: tuple[tuple[EventKind, re.Pattern[str]], ...] = (
    (
        EventKind.FIRMWARE_LOAD,
        re.compile(r"mlx5_core (?P<port>(?P<pci>[0-9a-f:.]+)): firmware version: (?P<version>\S+)"),
    ),
    (EventKind.LINK_DOWN, re.compile(r"mlx5_core (?P<pci>[0-9a-f:.]+) (?P<port>\S+): Link down")),
    (EventKind.LINK_UP, re.compile(r"mlx5_core (?P<pci>[0-9a-f:.]+) (?P<port>\S+): Link up")),
    (EventKind.GPU_XID, re.compile(r"NVRM: Xid \(PCI:(?P<pci>[0-9a-f:.]+)\): (?P<xid>\d+),")),
    (EventKind.REBOOT, re.compile(r"Linux version (?P<version>\S+)")),
)


class KernelJournal:
    name = "kernel-journal"
    reads = "systemd `journalctl -k -o short-iso` (also short-iso-precise)"
    emits = ("Event",)
    absence = (("Event", "no line is no event only within the time the journal covers"),)

    def matches(self, file: RawFile) -> bool:
        first = _BOOT_LINES.sub("", file.head).partition("\n")[0]
        if _LINE.match(first) is None and _UPTIME.match(first) is None:
            return False
        return "syslog" not in file.name and _SWITCH_MESSAGE.search(file.head) is None

    def read(self, file: RawFile) -> Iterator[Fact | ReadIssue]:
        if _UPTIME.match(file.head):
            raise BadFile(
                "no-absolute-time",
                "its times are seconds since boot; collect `journalctl -k -o short-iso` instead",
                "line 1",
            )
        tally = Tally(file)
        for number, line in enumerate(file.lines, start=1):
            match = _LINE.fullmatch(line)
            if match is None:
                if line.strip() and not line.startswith(("-- ", " ", "\t")):
                    tally.add(
                        "unknown-line", f"line {number}", f"{line[:60]!r} is not 'time host kernel: message'; left out"
                    )
                continue
            message = match[3]
            kind, found = next(
                ((kind, found) for kind, pattern in _MESSAGES if (found := pattern.match(message))), (None, None)
            )
            if kind is None or found is None:
                continue
            at = file.clock.device_time(match[1])
            if at is None:
                tally.add("bad-time", f"line {number}", f"the time {match[1]!r} is not ISO 8601; the event is left out")
                continue
            details = {key: value for key, value in found.groupdict().items() if key != "port"}
            port = found.groupdict().get("port", "")
            device = file.hints.device or match[2]
            yield Event(kind, device, port, at, message, file.provenance(self.name, f"line {number}"), details)
        yield from tally.issues()


ADAPTER = KernelJournal()
