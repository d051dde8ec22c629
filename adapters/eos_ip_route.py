"""Arista EOS `show ip route [vrf all] | json`: installed next hops of each prefix; several are an ECMP group.

Documentation: Arista EOS manual, "IPv4" (show ip route); key names as in NAPALM and suzieq fixtures.

    {"vrfs": {"default": {"routes": {"10.2.7.0/24": {"routeType": "eBGP", "hardwareProgrammed": true,
      "vias": [{"interface": "Ethernet9", "nexthopAddr": "10.255.1.12"},
               {"interface": "Ethernet10", "nexthopAddr": "10.255.2.12"}]}}}}}

| field                          | fact                                                                       |
|--------------------------------|----------------------------------------------------------------------------|
| routes.<prefix>.vias[]         | RouteState.next_hops (interface, nexthopAddr; directly connected: "")      |
| hardwareProgrammed: false      | not in the forwarding chip: no next hop is installed                       |

Prefixes of other VRFs than `default` are written `<vrf>:<prefix>`. The time is the capture time in the path.
"""

from __future__ import annotations

from collections.abc import Iterator

from ..engine.facts import Fact, NextHop, ReadIssue, RouteState
from .base import RawFile, Tally, mapping, pointer
from .eos_output import looks_like, section


class EosIpRoute:
    name = "eos-ip-route"
    reads = "Arista EOS 4.2x `show ip route [vrf all] | json`"
    emits = ("RouteState",)
    absence = (("RouteState", "a prefix that is not listed is not routed, where the whole table was printed"),)

    def matches(self, file: RawFile) -> bool:
        return looks_like(file, "vrfs", "routes")

    def read(self, file: RawFile) -> Iterator[Fact | ReadIssue]:
        vrfs, where = section(file, "vrfs")
        device, at = file.device, file.captured_at
        tally = Tally(file)
        for vrf, table in mapping(vrfs).items():
            for prefix, entry in mapping(mapping(table).get("routes")).items():
                route = mapping(entry)
                record = where + pointer(vrf, "routes", prefix)
                vias = route.get("vias", [] if route.get("routeAction") == "drop" else None)
                if not isinstance(vias, list) or not all(isinstance(via, dict) for via in vias):
                    tally.add(
                        "no-next-hops",
                        record,
                        f"vias of {prefix} is {str(vias)[:40]!r}, expected a list of objects; left out",
                    )
                    continue
                hops = tuple(
                    NextHop(str(via.get("interface") or ""), str(via.get("nexthopAddr") or ""))
                    for via in map(mapping, vias)
                )
                if route.get("hardwareProgrammed") is False:
                    tally.add(
                        "route-not-in-hardware",
                        record,
                        f"{prefix} is not in hardware: its {len(hops)} next hops are not counted as installed",
                    )
                    hops = ()
                name = prefix if vrf == "default" else f"{vrf}:{prefix}"
                yield RouteState(device, name, hops, at, file.provenance(self.name, record))
        yield from tally.issues()


ADAPTER = EosIpRoute()
