"""The tidy form, telemetry: one long table of counters, as CSV or Parquet, from whatever collects yours.

No standard; this is the project's own form for bringing telemetry that no other adapter reads. The other files of the
form are read by the other `tidy_*` adapters; none is required.

    ts,device,port,priority,counter,value
    2026-10-09T02:42:50.000Z,leaf2,Ethernet4,3,tx_bytes,364227840000
    2026-10-09T02:42:50.000Z,leaf2,Ethernet4,,speed_gbps,100
    2026-10-09T02:42:50.000Z,gpu-l2h03,nic0,3,np_cnp_sent,17
    2026-10-09T02:42:50.000Z,leaf2,to:leaf1,,ecmp_nexthops,4

| column       | meaning                                                                           |
|--------------|-----------------------------------------------------------------------------------|
| ts           | RFC 3339; without a zone the bundle's is taken                                    |
| device, port | port blank: the whole device; for ECMP groups the name of the group, for a GPU    |
|              | its name on the host (`gpu3`), for a probe the NIC that sends it                  |
| priority     | blank: whole port. Class n and priority group n carry priority n; a lane's        |
|              | number; of a probe the far NIC as `host/nic`                                      |
| counter      | a canonical metric (`engine/metrics.py`, with its unit), or a name below          |
| value        | blank: a poll that gave no number                                                 |

| counter                                         | metric                                          |
|-------------------------------------------------|-------------------------------------------------|
| tx_bytes, tx_pkts with a priority               | queue_tx_bytes, queue_tx_packets                |
| tx_bytes, rx_bytes, tx_pkts, rx_pkts            | tx_bytes, rx_bytes, tx_packets, rx_packets      |
| rx_fcs_errors (at the receiving end)            | fcs_errors                                      |
| pfc_tx_pause, pfc_rx_pause (XOFF)               | pfc_tx_pause_frames, pfc_rx_pause_frames        |
| pfc_tx_xon, pfc_rx_xon                          | pfc_tx_xon_frames, pfc_rx_xon_frames            |
| tx_paused_us (I am stopped: PFC I received)     | pfc_rx_pause_us                                 |
| ecn_marked_pkts                                 | ecn_marked_packets                              |
| drop_egress_pkts, drop_ingress_pkts             | queue_drop_packets, pg_drop_packets             |
| drop_link_down_pkts                             | link_down_drop_packets                          |
| queue_bytes, queue_bytes_mean, queue_bytes_max  | queue_bytes, queue_mean_bytes, queue_peak_bytes |
| pg_bytes_max, buffer_used_max (cleared on read) | pg_peak_bytes, buffer_peak_bytes                |
| oper_up, speed_gbps, ecmp_nexthops              | oper_up, speed_bps, ecmp_members                |
| np_ecn_marked_roce_packets                      | ecn_ce_received_packets                         |
| np_cnp_sent, rp_cnp_handled                     | cnp_sent, cnp_handled                           |
| packet_seq_err, nack_sent, duplicate_request    | nak_received, nak_sent, duplicate_requests      |
| out_of_sequence, local_ack_timeout_err          | out_of_sequence, ack_timeouts                   |
| retx_pkts, rx_discards                          | retransmitted_packets, nic_rx_discards          |

A counter that belongs to no class but is given by priority (bytes of a port, CNPs of a NIC) is summed over the
priorities of the port; a blank priority, where given, is taken instead. So give every priority that carries traffic.
"""

from __future__ import annotations

import io
from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq

from ..engine.facts import Fact, ReadIssue, Series
from ..engine.metrics import METRICS, Metric, MetricKind, Qualifier
from .base import BadFile, RawFile, Tally
from .tidy_columns import Codes, Columns, Floats, has_columns, read_csv

_REQUIRED = ("ts", "device", "port", "counter", "value")
_PARQUET_MAGIC = b"PAR1"

_NAMES = {
    "tx_pkts": "tx_packets",
    "rx_pkts": "rx_packets",
    "rx_fcs_errors": "fcs_errors",
    "pfc_tx_pause": "pfc_tx_pause_frames",
    "pfc_rx_pause": "pfc_rx_pause_frames",
    "pfc_tx_xon": "pfc_tx_xon_frames",
    "pfc_rx_xon": "pfc_rx_xon_frames",
    "tx_paused_us": "pfc_rx_pause_us",
    "ecn_marked_pkts": "ecn_marked_packets",
    "drop_egress_pkts": "queue_drop_packets",
    "drop_ingress_pkts": "pg_drop_packets",
    "drop_link_down_pkts": "link_down_drop_packets",
    "queue_bytes_mean": "queue_mean_bytes",
    "queue_bytes_max": "queue_peak_bytes",
    "pg_bytes_max": "pg_peak_bytes",
    "buffer_used_max": "buffer_peak_bytes",
    "speed_gbps": "speed_bps",
    "ecmp_nexthops": "ecmp_members",
    "np_ecn_marked_roce_packets": "ecn_ce_received_packets",
    "np_cnp_sent": "cnp_sent",
    "rp_cnp_handled": "cnp_handled",
    "packet_seq_err": "nak_received",
    "nack_sent": "nak_sent",
    "duplicate_request": "duplicate_requests",
    "local_ack_timeout_err": "ack_timeouts",
    "retx_pkts": "retransmitted_packets",
    "rx_discards": "nic_rx_discards",
}
_SCALES = {"speed_gbps": 1e9}
_OF_ONE_CLASS = {"tx_bytes": "queue_tx_bytes", "tx_packets": "queue_tx_packets"}


@dataclass(frozen=True)
class _Samples:
    """Samples of one place and counter, in file order; NaN is a poll without a number."""

    times: Floats
    values: Floats
    lines: Codes


@dataclass
class _Parts:
    """The samples of a counter at a port, by priority ("" for the whole port)."""

    by_priority: dict[str, _Samples] = field(default_factory=dict)


class TidyTelemetry:
    name = "tidy-telemetry"
    reads = "tidy form: long table of counters, telemetry.csv or .parquet"
    emits = (
        "ack_timeouts",
        "aer_errors",
        "buffer_peak_bytes",
        "cnp_handled",
        "cnp_ignored",
        "cnp_sent",
        "duplicate_requests",
        "ecmp_members",
        "ecn_ce_received_packets",
        "ecn_marked_packets",
        "fcs_errors",
        "fec_corrected_codewords",
        "fec_uncorrected_codewords",
        "foreign_byte_share",
        "gpu_sm_clock_mhz",
        "gpu_temp_c",
        "gpu_throttle_active",
        "gpu_throttle_reasons",
        "host_cpu_ratio",
        "host_io_wait_ratio",
        "lanes",
        "latency_us",
        "link_down_drop_packets",
        "link_down_events",
        "loss_ratio",
        "nak_received",
        "nak_sent",
        "nic_pause_storm_errors",
        "nic_pause_storm_warnings",
        "nic_rx_discards",
        "nvlink_errors",
        "oper_up",
        "optic_bias_ma",
        "optic_rx_dbm",
        "optic_rx_dbm_high_alarm",
        "optic_rx_dbm_high_warn",
        "optic_rx_dbm_low_alarm",
        "optic_rx_dbm_low_warn",
        "optic_temp_c",
        "optic_temp_c_high_alarm",
        "optic_temp_c_high_warn",
        "optic_tx_dbm",
        "optic_tx_dbm_low_alarm",
        "optic_tx_dbm_low_warn",
        "out_of_sequence",
        "pcie_gen",
        "pcie_stall_read",
        "pcie_stall_write",
        "pcie_width",
        "pfc_rx_pause_frames",
        "pfc_rx_pause_us",
        "pfc_rx_xon_frames",
        "pfc_tx_pause_frames",
        "pfc_tx_pause_us",
        "pfc_tx_xon_frames",
        "pfcwd_restores",
        "pfcwd_storms",
        "pg_drop_packets",
        "pg_peak_bytes",
        "port_discards_rx",
        "pre_fec_ber",
        "queue_bytes",
        "queue_drop_packets",
        "queue_mean_bytes",
        "queue_peak_bytes",
        "queue_tx_bytes",
        "queue_tx_packets",
        "retransmitted_packets",
        "rx_bytes",
        "rx_packets",
        "speed_bps",
        "storage_busy_ratio",
        "tx_bytes",
        "tx_packets",
    )
    absence = (("all", "a counter that has no row was not collected; zero is written as 0 (rule of the form)"),)

    def matches(self, file: RawFile) -> bool:
        if file.content[:4] == _PARQUET_MAGIC:
            return True
        return has_columns(file, *_REQUIRED)

    def read(self, file: RawFile) -> Iterator[Fact | ReadIssue]:
        tally = Tally(file)
        is_parquet = file.content[:4] == _PARQUET_MAGIC
        columns = _read_parquet(file) if is_parquet else read_csv(file, tally)
        word = "row" if is_parquet else "line"
        parts = _grouped(file, columns, word, tally)
        for (device, port, metric_name), part in parts.items():
            metric = METRICS[metric_name]
            for qualifier, samples in _by_qualifier(metric, port, part, tally, word):
                first, last = int(samples.lines.min()), int(samples.lines.max())
                record = f"{word} {first}" if first == last else f"{word}s {first}-{last}"
                yield Series(
                    device,
                    "" if metric.qualifier is Qualifier.GROUP else port,
                    qualifier,
                    metric_name,
                    tuple(samples.times.tolist()),
                    tuple(None if value != value else value for value in samples.values.tolist()),
                    file.provenance(self.name, record),
                    # A Parquet row is no line of text that could be shown again.
                    () if is_parquet else tuple(samples.lines.tolist()),
                )
        yield from tally.issues()


def _read_parquet(file: RawFile) -> Columns:
    try:
        table = pq.read_table(io.BytesIO(file.content))
    except (pa.ArrowException, OSError) as error:
        message = f"it is not read as Parquet: {str(error).splitlines()[0]}; copy or write it again"
        raise BadFile("malformed-parquet", message) from error
    if lacking := [column for column in _REQUIRED if column not in table.column_names]:
        message = f"it has no column {', '.join(lacking)}; expected {', '.join(_REQUIRED)} and, where counted, priority"
        raise BadFile("not-tidy-telemetry", message)
    return Columns(table, np.arange(1, len(table) + 1, dtype=np.int64))


def _grouped(file: RawFile, columns: Columns, word: str, tally: Tally) -> Mapping[tuple[str, str, str], _Parts]:
    """Samples by device, port and metric; rows that say nothing usable go to the tally."""
    (device, devices), (port, ports) = columns.names("device"), columns.names("port")
    (priority, priorities), (counter, counters) = columns.names("priority"), columns.names("counter")
    times = columns.times("ts", file)
    values, wrong_value = columns.numbers("value")
    has_device = np.array([bool(name) for name in devices])[device]
    is_known = np.array([_NAMES.get(name, name) in METRICS for name in counters])[counter]
    is_named = has_device & np.array([bool(name) for name in counters])[counter]
    is_blank = ~is_named & np.isnan(times) & np.isnan(values) & ~wrong_value
    lines = columns.lines

    def leave_out(wrong: npt.NDArray[np.bool_], code: str, message: str) -> None:
        for line in lines[wrong].tolist():
            tally.add(code, f"{word} {line}", message)

    leave_out(~is_named & ~is_blank, "incomplete-row", "device or counter is blank; the row is left out")
    leave_out(is_named & np.isnan(times), "bad-time", "ts is no RFC 3339 time; the row is left out")
    leave_out(is_named & wrong_value, "not-a-number", "value is no finite number; the row is left out")
    unknown = np.nonzero(is_named & ~is_known)[0]
    if len(unknown):
        names = sorted({counters[code] for code in counter[unknown].tolist()})
        message = f"{', '.join(names)}: no canonical metric and no name of the form; {len(unknown)} rows left out"
        tally.add("unknown-counter", f"{word} {lines[unknown[0]]}", message)
    kept = np.nonzero(is_named & is_known & ~np.isnan(times) & ~wrong_value)[0]
    place = ((device * len(ports) + port) * len(priorities) + priority) * len(counters) + counter
    kept = kept[np.argsort(place[kept], kind="stable")]
    starts = np.nonzero(np.diff(place[kept], prepend=-1))[0]
    scales = np.array([_SCALES.get(name, 1.0) for name in counters])
    found: dict[tuple[str, str, str], _Parts] = defaultdict(_Parts)
    for rows in np.split(kept, starts[1:]) if len(kept) else ():
        first = int(rows[0])
        name = counters[int(counter[first])]
        key = (devices[int(device[first])], ports[int(port[first])], _NAMES.get(name, name))
        samples = _Samples(times[rows], values[rows] * scales[int(counter[first])], lines[rows])
        found[key].by_priority[priorities[int(priority[first])]] = samples
    for device_name, port_name, metric in list(found):
        if metric in _OF_ONE_CLASS:
            classes = {p: s for p, s in found[(device_name, port_name, metric)].by_priority.items() if p}
            if classes:
                found[(device_name, port_name, _OF_ONE_CLASS[metric])].by_priority |= classes
    return dict(sorted(found.items()))


def _by_qualifier(metric: Metric, port: str, parts: _Parts, tally: Tally, word: str) -> Iterator[tuple[str, _Samples]]:
    """The samples of a metric with the qualifier it needs."""
    by_priority = dict(sorted(parts.by_priority.items()))
    if metric.qualifier is Qualifier.GROUP:
        if port and "" in by_priority:
            yield port, by_priority[""]
        else:
            _refuse(parts, tally, word, "no-group", f"{metric.name} needs the group's name in port, priority blank")
    elif metric.qualifier is not Qualifier.NONE:
        yield from ((priority, samples) for priority, samples in by_priority.items() if priority)
        if "" in by_priority:
            blank = _Parts({"": by_priority[""]})
            _refuse(blank, tally, word, "no-priority", f"{metric.name} is counted by {metric.qualifier}: name it")
    elif "" in by_priority:
        yield "", by_priority[""]
    elif metric.kind is MetricKind.COUNTER:
        yield "", _summed(list(by_priority.values()))
    else:
        _refuse(parts, tally, word, "unexpected-priority", f"{metric.name} belongs to the whole port: leave it blank")


def _refuse(parts: _Parts, tally: Tally, word: str, code: str, message: str) -> None:
    for samples in parts.by_priority.values():
        for line in samples.lines.tolist():
            tally.add(code, f"{word} {line}", f"{message}; the row is left out")


def _summed(parts: list[_Samples]) -> _Samples:
    """The sum at each time at which every part was polled, with the lines of the part that counts most."""
    leading = max(parts, key=lambda part: float(np.nanmax(part.values)) if not np.isnan(part.values).all() else -1.0)
    total = leading.values
    for part in parts:
        if part is leading:
            continue
        if np.array_equal(part.times, leading.times):
            total = total + part.values
            continue
        order = np.argsort(part.times, kind="stable")
        at = np.clip(np.searchsorted(part.times[order], leading.times), 0, len(order) - 1)
        polled = part.times[order][at] == leading.times
        total = total + np.where(polled, part.values[order][at], np.nan)
    return _Samples(leading.times, total, leading.lines)


ADAPTER = TidyTelemetry()
