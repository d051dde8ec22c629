"""FRR `show ip route json` (vtysh; SONiC, Cumulus): next hops in the kernel's table; several are an ECMP group.

Documentation: FRR user guide, "Zebra" (show ip route); key names from FRR zebra_vty.c.

    {"10.2.7.0/24": [{"prefix": "10.2.7.0/24", "protocol": "bgp", "selected": true, "installed": true,
      "nexthops": [{"fib": true, "ip": "10.255.1.12", "interfaceName": "Ethernet9", "active": true, "weight": 1}]}]}

| field                                    | fact                                                             |
|------------------------------------------|------------------------------------------------------------------|
| entry with selected: true                | RouteState of the prefix (other protocols' entries are not used) |
| nexthops[] with fib: true, not recursive | RouteState.next_hops (interfaceName, ip; "" where not printed)   |

A recursive next hop is its parent: counting it too would double the group. The time is the capture time in the path.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from ..engine.facts import Fact, NextHop, ReadIssue, RouteState
from .base import JsonValue, RawFile, Tally, mapping, pointer

_FIRST_PREFIX = re.compile(r'\{\s*"[0-9a-fA-F.:]+/\d+"\s*:\s*\[')


class FrrIpRoute:
    name = "frr-ip-route"
    reads = "FRR 7.x to 10.x `show ip route json`"
    emits = ("RouteState",)
    absence = (("RouteState", "a prefix that is not listed is not routed, where the whole table was printed"),)

    def matches(self, file: RawFile) -> bool:
        return _FIRST_PREFIX.match(file.head) is not None and '"nexthops"' in file.head

    def read(self, file: RawFile) -> Iterator[Fact | ReadIssue]:
        device, at = file.device, file.captured_at
        tally = Tally(file)
        for prefix, entries in mapping(file.json).items():
            listed = entries if isinstance(entries, list) else []
            chosen = [index for index, entry in enumerate(listed) if mapping(entry).get("selected") is True]
            if not chosen:
                tally.add(
                    "no-selected-route",
                    pointer(prefix),
                    f"no entry of {prefix} is selected (of {len(listed)}); the prefix is left out",
                )
                continue
            record = pointer(prefix, chosen[0])
            hops = mapping(listed[chosen[0]]).get("nexthops")
            if not isinstance(hops, list) or not all(isinstance(hop, dict) for hop in hops):
                tally.add(
                    "no-next-hops",
                    record,
                    f"nexthops of {prefix} is {str(hops)[:40]!r}, expected a list of objects; left out",
                )
                continue
            installed = tuple(
                NextHop(str(hop.get("interfaceName") or ""), str(hop.get("ip") or ""))
                for hop in map(mapping, hops)
                if _is_installed(hop)
            )
            yield RouteState(device, prefix, installed, at, file.provenance(self.name, record))
        yield from tally.issues()


def _is_installed(hop: dict[str, JsonValue]) -> bool:
    return hop.get("fib") is True and hop.get("recursive") is not True and hop.get("duplicate") is not True


ADAPTER = FrrIpRoute()
