"""`ethtool -S <netdev>` of mlx5 NICs (ConnectX, BlueField): physical port, PFC per priority, PCIe stalls, the NIC's
own pause storms.

Documentation: Linux kernel, Documentation/networking/device_drivers/ethernet/mellanox/mlx5/counters.rst (KD below).

    NIC statistics:
         rx_packets_phy: 845715962
         rx_discards_phy: 0
         tx_prio3_pause: 41
         rx_prio3_pause_duration: 5211

| name                                      | metric                                    | unit                |
|-------------------------------------------|-------------------------------------------|---------------------|
| rx/tx_bytes_phy, rx/tx_packets_phy        | rx/tx_bytes, rx/tx_packets                | B, packets, C       |
| rx/tx_prioN_pause                         | pfc_rx/tx_pause_frames (N: priority)      | frames, C           |
| rx/tx_prioN_pause_duration                | pfc_rx/tx_pause_us                        | us, C               |
| rx_prioN_pause_transition                 | pfc_rx_pause_transitions                  | edges, C            |
| rx/tx_global_pause                        | global_rx/tx_pause_frames                 | frames, C           |
| rx_discards_phy                           | nic_rx_discards                           | packets, C          |
| rx_crc_errors_phy                         | fcs_errors                                | frames, C           |
| rx_pcs_symbol_err_phy (rx_symbol_err_phy) | symbol_errors (not corrected by FEC)      | symbols, C          |
| link_down_events_phy                      | link_down_events                          | events, C           |
| outbound_pci_stalled_rd/wr                | pcie_stall_read/write                     | % of time, G        |
| tx_pause_storm_warning/error_events       | nic_pause_storm_warnings/errors           | events, C           |

The netdev and the time come from the path. Per-ring lines and the many others are not facts of this project.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from ..engine.facts import Fact, ReadIssue
from .base import RawFile, Tally, whole_number

_METRICS = {
    "rx_bytes_phy": "rx_bytes",
    "tx_bytes_phy": "tx_bytes",
    "rx_packets_phy": "rx_packets",
    "tx_packets_phy": "tx_packets",
    "rx_global_pause": "global_rx_pause_frames",
    "tx_global_pause": "global_tx_pause_frames",
    "rx_discards_phy": "nic_rx_discards",
    "rx_crc_errors_phy": "fcs_errors",
    "rx_pcs_symbol_err_phy": "symbol_errors",
    "link_down_events_phy": "link_down_events",
    "outbound_pci_stalled_rd": "pcie_stall_read",
    "outbound_pci_stalled_wr": "pcie_stall_write",
    "tx_pause_storm_warning_events": "nic_pause_storm_warnings",
    "tx_pause_storm_error_events": "nic_pause_storm_errors",
}
_PER_PRIORITY = {
    "rx_prio{}_pause": "pfc_rx_pause_frames",
    "tx_prio{}_pause": "pfc_tx_pause_frames",
    "rx_prio{}_pause_duration": "pfc_rx_pause_us",
    "tx_prio{}_pause_duration": "pfc_tx_pause_us",
    "rx_prio{}_pause_transition": "pfc_rx_pause_transitions",
}
_PLACES = {name: (metric, "") for name, metric in _METRICS.items()} | {
    name.format(priority): (metric, str(priority)) for name, metric in _PER_PRIORITY.items() for priority in range(8)
}
# All there was before rx_pcs_symbol_err_phy (kernel 4.x); where both are printed that one counts after FEC (KD).
_OLD_SYMBOL_ERRORS = "rx_symbol_err_phy"
_OF_MLX5 = re.compile(
    r"^\s*(?:rx_vport_unicast_packets|[rt]x_packets_phy|ch0_events|[rt]x_prio\d_bytes|link_down_events_phy):",
    re.MULTILINE,
)


class Mlx5EthtoolStatistics:
    name = "mlx5-ethtool-statistics"
    reads = "ethtool 4.x to 6.x `ethtool -S`, driver mlx5_core"
    emits = tuple(sorted({metric for metric, _ in _PLACES.values()}))
    absence = (
        ("pfc_*", "the lines exist only while PFC is on for that priority: unknown, not zero (KD, priority counters)"),
        ("global_*", "the lines exist only while global pause is on: no such frames are counted otherwise (KD)"),
        ("pcie_stall_*, nic_pause_storm_*", "not printed by older cards and firmware: unknown, not zero (KD)"),
    )

    def matches(self, file: RawFile) -> bool:
        return file.head.startswith("NIC statistics:") and _OF_MLX5.search(file.head) is not None

    def read(self, file: RawFile) -> Iterator[Fact | ReadIssue]:
        device, netdev, at = file.device, file.netdev, file.captured_at
        tally = Tally(file)
        seen: set[str] = set()
        old_symbol_errors: tuple[int, str] | None = None
        for number, line in enumerate(file.lines, start=1):
            name, _, written = line.partition(":")
            name = name.strip()
            if name == _OLD_SYMBOL_ERRORS:
                old_symbol_errors = (number, written)
            place = _PLACES.get(name)
            if place is None:
                continue
            if name in seen:
                tally.add("duplicate-counter", f"line {number}", f"{name} is printed twice; the first value is used")
                continue
            seen.add(name)
            yield from self._sample(file, tally, number, (device, netdev, place[1]), place[0], at, written)
        if old_symbol_errors is not None and "rx_pcs_symbol_err_phy" not in seen:
            yield from self._sample(
                file, tally, old_symbol_errors[0], (device, netdev, ""), "symbol_errors", at, old_symbol_errors[1]
            )
        if not seen:
            tally.add(
                "no-known-counter",
                "",
                "none of the counters this project uses is in it; is it cut, or of a virtual function?",
            )
        yield from tally.issues()

    def _sample(
        self,
        file: RawFile,
        tally: Tally,
        number: int,
        place: tuple[str, str, str],
        metric: str,
        at: float,
        written: str,
    ) -> Iterator[Fact]:
        value = whole_number(written)
        if value is None:
            tally.add(
                "not-a-number", f"line {number}", f"{metric} is {written.strip()!r}, expected a whole number; left out"
            )
            return
        yield file.sample(self.name, f"line {number}", place, metric, at, value)


ADAPTER = Mlx5EthtoolStatistics()
