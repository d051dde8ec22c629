"""`ethtool -i <netdev>`: driver and firmware of a NIC, and the PCI address the kernel log calls it by.

Documentation: ethtool(8), option -i.

    driver: mlx5_core
    version: 24.10-1.1.4
    firmware-version: 28.43.2026 (MT_0000000838)
    bus-info: 0000:5c:00.0

| field                           | fact                                                       |
|---------------------------------|------------------------------------------------------------|
| driver, firmware-version        | FirmwareState (version without the board id in parentheses) |
| bus-info                        | InterfaceAlias: PCI address -> netdev                      |

The netdev is not printed: it comes from the path (or the `# ethtool -i eth0` line some collectors add). The time is
that of the path, if any.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from ..engine.facts import Fact, FirmwareState, InterfaceAlias, ReadIssue
from .base import BadFile, RawFile

_COMMAND = re.compile(r"# ethtool -i (\S+)")


class EthtoolDriver:
    name = "ethtool-driver"
    reads = "ethtool 5.x and 6.x `ethtool -i`"
    emits = ("FirmwareState", "InterfaceAlias")
    absence = (("FirmwareState", "an empty firmware-version is not reported by the driver: unknown"),)

    def matches(self, file: RawFile) -> bool:
        return re.match(r"(?:# ethtool -i \S+\s+)?driver: ", file.head) is not None and "firmware-version:" in file.head

    def read(self, file: RawFile) -> Iterator[Fact | ReadIssue]:
        fields: dict[str, tuple[int, str]] = {}
        for number, printed in enumerate(file.lines, start=1):
            key, colon, value = printed.partition(":")
            if colon:
                fields.setdefault(key.strip(), (number, value.strip()))
        command = _COMMAND.match(file.head)
        netdev = command[1] if command else file.netdev
        line, version = fields["firmware-version"]
        if not version or version == "N/A":
            raise BadFile(
                "no-firmware-version",
                f"firmware-version of {netdev} is empty; the driver does not report one",
                f"line {line}",
            )
        at = file.captured_at if file.hints.time else None
        yield FirmwareState(
            file.device,
            netdev,
            fields["driver"][1],
            version.split(" (")[0],
            at,
            file.provenance(self.name, f"line {line}"),
        )
        line, address = fields.get("bus-info", (0, ""))
        if address:
            yield InterfaceAlias(file.device, address, netdev, file.provenance(self.name, f"line {line}"))


ADAPTER = EthtoolDriver()
