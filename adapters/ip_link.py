"""`ip -j link` / `ip -j addr` (iproute2): the MAC addresses and alternative names of a host's network interfaces.

Documentation: ip-link(8), option -j.

    [{"ifindex": 4, "ifname": "ens11f0np0", "operstate": "UP", "address": "b8:ce:f6:a1:01:03",
      "altnames": ["enp92s0f0np0"]}]

| field                | fact                           |
|----------------------|--------------------------------|
| address, altnames[]  | InterfaceAlias: each -> ifname |

Interfaces without an Ethernet address (lo, tunnels) give no fact. Ports stacked on another (bond, VLAN, bridge) share
its MAC and are left out.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from ..engine.facts import Fact, InterfaceAlias, ReadIssue
from .base import BadFile, RawFile, Tally, mapping, pointer, port_name

_HEAD = re.compile(r'\[\s*\{[^{}]*"ifindex"\s*:')
_MAC = re.compile(r"(?:[0-9a-f]{2}:){5}[0-9a-f]{2}")


class IpLink:
    name = "ip-link"
    reads = "iproute2 4.x to 6.x `ip -j link`, `ip -j addr`"
    emits = ("InterfaceAlias",)
    absence = (("InterfaceAlias", "an interface without a MAC has no such alias"),)

    def matches(self, file: RawFile) -> bool:
        return _HEAD.match(file.head) is not None and '"ifname"' in file.head

    def read(self, file: RawFile) -> Iterator[Fact | ReadIssue]:
        listed = file.json
        if not isinstance(listed, list):
            raise BadFile("unexpected-shape", f"the document is {type(listed).__name__}, expected a list of interfaces")
        tally = Tally(file)
        for index, entry in enumerate(listed):
            interface = mapping(entry)
            name = interface.get("ifname")
            if not isinstance(name, str):
                tally.add("unnamed-interface", pointer(index), "an interface without ifname; left out")
                continue
            if "linkinfo" in interface or "link" in interface:
                continue
            address = port_name(str(interface.get("address") or ""))
            others = interface.get("altnames")
            aliases = [other for other in (others if isinstance(others, list) else []) if isinstance(other, str)]
            if _MAC.fullmatch(address) and address != "00:00:00:00:00:00":
                aliases.insert(0, address)
            for alias in aliases:
                yield InterfaceAlias(file.device, alias, name, file.provenance(self.name, pointer(index)))
        yield from tally.issues()


ADAPTER = IpLink()
