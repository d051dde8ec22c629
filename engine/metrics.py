"""Canonical metrics: the one name of each measured quantity, with unit, kind, place and direction.

Vendor names end at the adapter. Direction is always said from the device that counts: `pfc_rx_*` means the neighbour
pauses me (I am the paused one), `pfc_tx_*` that I pause the neighbour (I am the pauser). Ethernet NICs and switch
ports share names. Names are added, never renamed.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from .scope import ScopeKind


class MetricKind(StrEnum):
    """COUNTER is cumulative, GAUGE is a level, WATERMARK is a maximum since it was last cleared or reported."""

    COUNTER = "counter"
    GAUGE = "gauge"
    WATERMARK = "watermark"


class Qualifier(StrEnum):
    """What the third column of a sample names.

    They are four different things; a device's own maps relate them.
    """

    NONE = "none"
    TRAFFIC_CLASS = "traffic_class"
    PRIORITY = "priority"
    PRIORITY_GROUP = "priority_group"
    LANE = "lane"
    GROUP = "group"
    PEER = "peer"
    """The far NIC of a pair, `host/nic`."""


@dataclass(frozen=True, slots=True)
class Metric:
    """A quantity.

    `scope` is where it is counted, `bits` the width a counter wraps at (None: 64, a decrease is a reset).
    """

    name: str
    unit: str
    kind: MetricKind
    scope: ScopeKind
    qualifier: Qualifier = Qualifier.NONE
    bits: int | None = None
    note: str = ""


def _metrics(
    names: str,
    unit: str,
    kind: MetricKind,
    scope: ScopeKind,
    qualifier: Qualifier = Qualifier.NONE,
    bits: int | None = None,
    note: str = "",
) -> tuple[Metric, ...]:
    return tuple(Metric(name, unit, kind, scope, qualifier, bits, note) for name in names.split())


_C, _G, _W = MetricKind.COUNTER, MetricKind.GAUGE, MetricKind.WATERMARK
_PORT, _QUEUE, _NIC, _GPU, _HOST, _JOB = (
    ScopeKind.PORT,
    ScopeKind.QUEUE,
    ScopeKind.NIC,
    ScopeKind.GPU,
    ScopeKind.HOST,
    ScopeKind.JOB,
)
_CLASS, _PRIORITY, _LANE = Qualifier.TRAFFIC_CLASS, Qualifier.PRIORITY, Qualifier.LANE

METRICS: dict[str, Metric] = {
    metric.name: metric
    for metrics in (
        _metrics("tx_bytes rx_bytes", "B", _C, _PORT),
        _metrics("tx_packets rx_packets", "packets", _C, _PORT),
        _metrics("queue_tx_bytes", "B", _C, _QUEUE, _CLASS, note="tx_bytes of one egress traffic class"),
        _metrics("queue_tx_packets", "packets", _C, _QUEUE, _CLASS, note="tx_packets of one egress traffic class"),
        _metrics("speed_bps", "bit/s", _G, _PORT, note="negotiated, not nominal"),
        _metrics("lanes", "1", _G, _PORT),
        _metrics("oper_up admin_up", "bool", _G, _PORT),
        _metrics(
            "pfc_rx_pause_frames pfc_tx_pause_frames",
            "frames",
            _C,
            _PORT,
            _PRIORITY,
            note="XON frames included unless the platform separates them",
        ),
        _metrics("pfc_rx_xon_frames pfc_tx_xon_frames", "frames", _C, _PORT, _PRIORITY),
        _metrics("pfc_rx_pause_us pfc_tx_pause_us", "us", _C, _PORT, _PRIORITY, note="time paused / time pausing"),
        _metrics("pfc_rx_pause_transitions", "edges", _C, _PORT, _PRIORITY),
        _metrics(
            "pfc_rx_pause_frames_all pfc_tx_pause_frames_all",
            "frames",
            _C,
            _PORT,
            note="all priorities summed (EOS CLI)",
        ),
        _metrics(
            "global_rx_pause_frames global_tx_pause_frames", "frames", _C, _PORT, note="802.3x, another mechanism"
        ),
        _metrics("pfcwd_storms pfcwd_restores", "events", _C, _QUEUE, _CLASS),
        _metrics("pfcwd_state", "state", _G, _QUEUE, _CLASS),
        _metrics("nic_pause_storm_warnings nic_pause_storm_errors", "events", _C, _NIC, note="the NIC is the source"),
        _metrics("queue_bytes", "B", _G, _QUEUE, _CLASS),
        _metrics("queue_mean_bytes", "B", _G, _QUEUE, _CLASS, note="time-weighted mean since the last poll"),
        _metrics("queue_peak_bytes", "B", _W, _QUEUE, _CLASS),
        _metrics("pg_peak_bytes headroom_peak_bytes", "B", _W, ScopeKind.PG, Qualifier.PRIORITY_GROUP),
        _metrics("buffer_peak_bytes", "B", _W, ScopeKind.DEVICE),
        _metrics("queue_delay_us", "us", _G, _QUEUE, _CLASS),
        _metrics(
            "ecn_kmin_bytes ecn_kmax_bytes",
            "B",
            _G,
            _PORT,
            note="marking thresholds of the lossless classes, from the device's profile",
        ),
        _metrics("ecn_enabled", "bool", _G, _PORT, note="whether the port marks at all, from the device's profile"),
        _metrics("ecn_marked_packets", "packets", _C, _QUEUE, _CLASS, note="absent means not counted"),
        _metrics("queue_drop_packets wred_drop_packets", "packets", _C, _QUEUE, _CLASS),
        _metrics("pg_drop_packets", "packets", _C, ScopeKind.PG, Qualifier.PRIORITY_GROUP),
        _metrics("port_discards_tx port_discards_rx", "packets", _C, _PORT),
        _metrics("link_down_drop_packets", "packets", _C, _PORT, note="lost with the link: in flight, or sent to it"),
        _metrics("ecn_ce_received_packets cnp_sent cnp_handled cnp_ignored", "packets", _C, _NIC),
        _metrics(
            "out_of_sequence nak_received ack_timeouts duplicate_requests rnr_naks out_of_buffer adaptive_retransmits",
            "events",
            _C,
            _NIC,
            bits=32,
            note="mlx5 Q counters wrap at 32 bits",
        ),
        _metrics("nak_sent", "events", _C, _NIC, note="the receiver's side of nak_received"),
        _metrics("retransmitted_packets", "packets", _C, _NIC),
        _metrics("nic_rx_discards icrc_errors", "packets", _C, _NIC),
        _metrics("pcie_stall_read pcie_stall_write", "%", _G, _NIC),
        _metrics("fcs_errors", "frames", _C, _PORT, note="counted at the receiving end"),
        _metrics("symbol_errors", "symbols", _C, _PORT, note="counted at the receiving end"),
        _metrics("fec_corrected_codewords fec_uncorrected_codewords", "codewords", _C, _PORT),
        _metrics("pre_fec_ber effective_ber", "1", _G, _PORT),
        _metrics("link_down_events local_faults remote_faults", "events", _C, _PORT),
        _metrics("optic_rx_dbm optic_tx_dbm", "dBm", _G, _PORT, _LANE, note="-inf is no light, not low light"),
        _metrics("optic_bias_ma", "mA", _G, _PORT, _LANE),
        _metrics("optic_temp_c", "C", _G, _PORT),
        _metrics("optic_snr_db", "dB", _G, _PORT, _LANE),
        _metrics(
            "optic_rx_dbm_low_alarm optic_rx_dbm_low_warn optic_rx_dbm_high_alarm optic_rx_dbm_high_warn "
            "optic_tx_dbm_low_alarm optic_tx_dbm_low_warn",
            "dBm",
            _G,
            _PORT,
            note="the module's own limits",
        ),
        _metrics("optic_temp_c_high_alarm optic_temp_c_high_warn", "C", _G, _PORT, note="the module's own limits"),
        _metrics("ecmp_members", "1", _G, ScopeKind.ECMP, Qualifier.GROUP, note="installed next hops only"),
        _metrics("ecmp_member_share", "1", _G, ScopeKind.ECMP, Qualifier.GROUP),
        _metrics("gpu_sm_clock_mhz", "MHz", _G, _GPU),
        _metrics("gpu_temp_c", "C", _G, _GPU),
        _metrics("gpu_throttle_reasons", "bitmask", _G, _GPU, note="NVML clock event reasons"),
        _metrics("gpu_throttle_active", "1", _G, _GPU, note="1 while a thermal or power reason is set, else 0"),
        _metrics("nvlink_errors", "events", _C, _GPU, note="replays, recoveries and CRC errors of its links"),
        _metrics("pcie_width pcie_gen", "1", _G, _NIC),
        _metrics("aer_errors", "events", _C, _NIC, note="PCIe advanced error reporting, of every severity"),
        _metrics("host_cpu_ratio host_io_wait_ratio storage_busy_ratio mem_pressure", "1", _G, _HOST),
        _metrics(
            "foreign_byte_share",
            "1",
            _G,
            _QUEUE,
            _CLASS,
            note="bytes of other jobs, tenants or storage, from flow records",
        ),
        _metrics("latency_us", "us", _G, ScopeKind.PAIR, Qualifier.PEER, note="round trip of a prober's packets"),
        _metrics("loss_ratio", "1", _G, ScopeKind.PAIR, Qualifier.PEER, note="of a prober's packets, both ways"),
        _metrics("step_seconds", "s", _G, _JOB, note="stamped at the end of the step"),
        _metrics("step_open", "bool", _G, _JOB, note="1: a step began at this time, and no end of it was written"),
        _metrics("step_tokens", "1", _G, _JOB),
        _metrics(
            "rank_send_start rank_send_done",
            "s",
            _G,
            ScopeKind.RANK,
            note="since the step began, stamped when it happened; device is the job, port the host of the rank",
        ),
    )
    for metric in metrics
}
