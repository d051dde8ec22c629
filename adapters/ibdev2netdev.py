"""`ibdev2netdev` (MLNX_OFED / DOCA-OFED): which RDMA device is which network interface.

Documentation: NVIDIA MLNX_OFED user manual, "ibdev2netdev".

    mlx5_0 port 1 ==> ens11f0np0 (Up)
    mlx5_1 port 1 ==> ens12f0np0 (Down)

| field                      | fact                                             |
|----------------------------|--------------------------------------------------|
| RDMA device and netdev     | InterfaceAlias: netdev -> RDMA device            |

The canonical name of a NIC port is the RDMA device (`mlx5_0`; second port of one device: `mlx5_0/2`).
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from ..engine.facts import Fact, InterfaceAlias, ReadIssue
from .base import RawFile, Tally, rdma_port

# with -v the PCI address comes first and the card's description between device and port
_LINE = re.compile(
    r"(?:[0-9a-fA-F]{4}:[0-9a-fA-F:.]+ )?(\S+) (?:\(.*\) .*)?port (\d+) (?:\(\w+\) +)?==> (\S+) \((\w+)\)"
)


class Ibdev2netdev:
    name = "ibdev2netdev"
    reads = "`ibdev2netdev` of MLNX_OFED 4.x, 5.x, DOCA-OFED"
    emits = ("InterfaceAlias",)
    absence = (("InterfaceAlias", "a netdev that is not listed has no RDMA device"),)

    def matches(self, file: RawFile) -> bool:
        return " ==> " in file.head and re.search(r"^\S.* port \d+ .*==> \S+ \(", file.head, re.MULTILINE) is not None

    def read(self, file: RawFile) -> Iterator[Fact | ReadIssue]:
        tally = Tally(file)
        for number, line in enumerate(file.lines, start=1):
            match = _LINE.match(line)
            if match is not None:
                yield InterfaceAlias(
                    file.device, match[3], rdma_port(match[1], match[2]), file.provenance(self.name, f"line {number}")
                )
            elif line.strip():
                tally.add(
                    "unknown-line", f"line {number}", f"{line[:60]!r} is not 'mlx5_0 port 1 ==> netdev (Up)'; left out"
                )
        yield from tally.issues()


ADAPTER = Ibdev2netdev()
