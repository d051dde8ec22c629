"""Arista EOS `show lldp neighbors [detail] | json`: who is at the other end of each cable, as seen.

Documentation: Arista EOS manual, "LLDP" (show lldp neighbors detail); key names as in aristanetworks/anta unit tests
and NAPALM.

    {"lldpNeighbors": [{"port": "Ethernet17", "neighborDevice": "gpu-worker-001", "neighborPort": "b8ce.f6a1.0103"}]}
    {"lldpNeighbors": {"Ethernet9": {"lldpNeighborInfo": [{"systemName": "spine-01",
      "neighborInterfaceInfo": {"interfaceIdType": "interfaceName", "interfaceId": "\\"Ethernet1\\"",
      "interfaceId_v2": "Ethernet1"}}]}}}

| field                                          | fact                                                        |
|------------------------------------------------|-------------------------------------------------------------|
| port (key), neighborDevice / systemName,       | Cable observed: a = this device and port, b = the neighbour |
| neighborPort / interfaceId_v2 or interfaceId   | (a MAC in any spelling becomes aa:bb:cc:dd:ee:ff)           |

A NIC's firmware may send LLDP of its own beside the host's: two neighbours on one port are two facts.
"""

from __future__ import annotations

from collections.abc import Iterator

from ..engine.facts import Cable, Fact, ReadIssue
from .base import BadFile, JsonValue, RawFile, Tally, mapping, pointer, port_name
from .eos_output import looks_like, section


class EosLldpNeighbors:
    name = "eos-lldp-neighbors"
    reads = "Arista EOS 4.2x `show lldp neighbors [detail] | json`"
    emits = ("Cable",)
    absence = (
        ("Cable", "a port without a neighbour may be down, or the neighbour sends no LLDP: not seen, not disconnected"),
    )

    def matches(self, file: RawFile) -> bool:
        return looks_like(file, "lldpNeighbors")

    def read(self, file: RawFile) -> Iterator[Fact | ReadIssue]:
        neighbors, where = section(file, "lldpNeighbors")
        device = file.device
        tally = Tally(file)
        for record, port, neighbor, neighbor_port in _neighbors(neighbors, where):
            if not (
                isinstance(port, str)
                and isinstance(neighbor, str)
                and isinstance(neighbor_port, str)
                and port
                and neighbor
                and neighbor_port
            ):
                tally.add(
                    "incomplete-neighbor",
                    record,
                    f"neighbour {neighbor!r} port {neighbor_port!r} on {port!r}: expected three names; left out",
                )
                continue
            yield Cable(
                device, port, neighbor, port_name(neighbor_port), "observed", file.provenance(self.name, record)
            )
        yield from tally.issues()


def _neighbors(neighbors: JsonValue, where: str) -> Iterator[tuple[str, JsonValue, JsonValue, JsonValue]]:
    if isinstance(neighbors, list):
        for index, entry in enumerate(neighbors):
            fields = mapping(entry)
            yield where + pointer(index), fields.get("port"), fields.get("neighborDevice"), fields.get("neighborPort")
    elif isinstance(neighbors, dict):
        for port, entry in neighbors.items():
            found = mapping(entry).get("lldpNeighborInfo")
            for index, neighbor in enumerate(found if isinstance(found, list) else []):
                interface = mapping(mapping(neighbor).get("neighborInterfaceInfo"))
                record = where + pointer(port, "lldpNeighborInfo", index)
                yield (
                    record,
                    port,
                    mapping(neighbor).get("systemName"),
                    interface.get("interfaceId_v2") or interface.get("interfaceId"),
                )
    else:
        raise BadFile(
            "unexpected-shape", f"lldpNeighbors is {type(neighbors).__name__}, expected a list or an object", where
        )


ADAPTER = EosLldpNeighbors()
