"""What a collector reads of a simulated run: counted at the right end, balanced, named as the metrics are."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, replace

import numpy as np
import pytest
from simulated import DESIGN, FABRIC, JOB, ONSET, SECONDS, Lossy, Overflow, by_place, grown, played

from causeline.engine.metrics import METRICS, MetricKind, Qualifier
from causeline.fixtures.model.conditions import Conditions
from causeline.fixtures.model.dcqcn import CNP_BYTES, PACKET_BYTES
from causeline.fixtures.model.fabric import Fabric
from causeline.fixtures.model.run import Setup, run
from causeline.fixtures.model.telemetry import Telemetry
from causeline.fixtures.readings import Collection, Reading, readings


def test_what_comes_into_a_switch_leaves_it_or_is_counted(
    lossy: Telemetry, lossy_readings: tuple[Reading, ...]
) -> None:
    seen = balanced(lossy, lossy_readings)
    assert seen["silent"] > 1e5 and seen["oversize"] > 1e5


@pytest.mark.parametrize("pauses", [False, True])
def test_what_a_full_queue_drops_is_counted(pauses: bool) -> None:
    telemetry = played(Overflow(pauses=pauses))
    seen = balanced(telemetry, readings(telemetry, Collection()))
    assert sum(seen.values()) == seen["pg"] > 1e4


def balanced(telemetry: Telemetry, found: tuple[Reading, ...]) -> dict[str, float]:
    """Packets lost in all switches by what counts them, after each switch's balance was checked."""
    table, silent = by_place(found), telemetry.links["silent_drops"][-1]
    seen: dict[str, float] = defaultdict(float)
    for device, ports in FABRIC.switches.items():
        into = sum(grown(table, device, port.name, "rx_packets") for port in ports)
        out = sum(grown(table, device, port.name, "tx_packets") for port in ports)
        lost = {
            "pg": sum(grown(table, device, port.name, "pg_drop_packets", "3") for port in ports),
            "queue": sum(grown(table, device, port.name, "queue_drop_packets", "3") for port in ports),
            "oversize": sum(grown(table, device, port.name, "port_discards_rx") for port in ports),
            "silent": float(sum(silent[port.ingress] for port in ports)),
        }
        assert into > 1e6
        assert into - out == pytest.approx(sum(lost.values()), abs=8 * len(ports)), device
        for name, packets in lost.items():
            seen[name] += packets
    return seen


def test_both_ends_of_a_link_agree(lossy_readings: tuple[Reading, ...], lossy: Telemetry) -> None:
    table = by_place(lossy_readings)
    bad = 0.0
    for link, sender in enumerate(FABRIC.sending_port):
        receiver = FABRIC.receiving_port[link]
        damaged = grown(table, *receiver, "fcs_errors")
        bad += damaged
        sent, arrived = grown(table, *sender, "tx_packets"), grown(table, *receiver, "rx_packets")
        assert sent - arrived == pytest.approx(damaged, abs=4)
        octets = grown(table, *sender, "tx_bytes") - grown(table, *receiver, "rx_bytes")
        assert octets == pytest.approx(damaged * PACKET_BYTES, abs=PACKET_BYTES * 4)
        for what in ("pause_frames", "xon_frames", "pause_us"):
            paused = grown(table, *sender, f"pfc_rx_{what}", "3")
            assert paused == pytest.approx(grown(table, *receiver, f"pfc_tx_{what}", "3"), abs=2)
    assert bad > 1e4


def test_bytes_of_the_classes_add_up_to_those_of_the_port(lossy_readings: tuple[Reading, ...]) -> None:
    table = by_place(lossy_readings)
    classes: dict[tuple[str, str], float] = defaultdict(float)
    for one in lossy_readings:
        if one.metric == "queue_tx_bytes":
            classes[(one.device, one.port)] += float(one.values[-1] - one.values[0])
    assert len(classes) == FABRIC.links
    for (device, port), octets in classes.items():
        assert octets == pytest.approx(grown(table, device, port, "tx_bytes"), abs=4 + CNP_BYTES)


def test_names_and_qualifiers_are_those_of_the_metrics(lossy_readings: tuple[Reading, ...]) -> None:
    for one in lossy_readings:
        metric = METRICS[one.metric]
        has_qualifier = metric.qualifier not in (Qualifier.NONE, Qualifier.GROUP)
        assert bool(one.qualifier) == has_qualifier, one.metric
        assert one.is_counter == (metric.kind is MetricKind.COUNTER), one.metric
        if one.is_counter:
            assert (np.diff(one.values) >= 0).all() and one.values[0] >= 0, one.metric


def test_a_cable_that_goes_down_shows_at_both_ends(cut_readings: tuple[Reading, ...]) -> None:
    table = by_place(cut_readings)
    link = FABRIC.leaf_up(0, 0)
    for device, port in (FABRIC.sending_port[link], FABRIC.receiving_port[link]):
        up = table[(device, port, "oper_up", "")]
        assert up.values[up.times < ONSET].all() and not up.values[up.times >= ONSET].any()
        speed = table[(device, port, "speed_bps", "")].values
        assert speed[0] == 400e9 and np.isnan(speed[-1])
        assert grown(table, device, port, "link_down_events") == 1
    members = table[("leaf-01", "to:leaf-03", "ecmp_members", "")]
    assert members.values[0] == 2 and members.values[-1] == 1
    assert table[("leaf-02", "to:leaf-04", "ecmp_members", "")].values[-1] == 2


def test_bad_light_shows_at_the_receiver_only(lossy_readings: tuple[Reading, ...]) -> None:
    table, link = by_place(lossy_readings), FABRIC.leaf_up(0, 0)
    near, far = FABRIC.sending_port[link], FABRIC.receiving_port[link]
    rx = table[(*far, "optic_rx_dbm", "2")].values
    assert rx[0] - rx[-1] == pytest.approx(4.6, abs=0.5)
    for place, metric in ((near, "optic_rx_dbm"), (near, "optic_tx_dbm"), (far, "optic_tx_dbm")):
        values = table[(*place, metric, "2")].values
        assert values[0] == pytest.approx(values[-1], abs=0.5)
    assert table[(*far, "pre_fec_ber", "")].values[-1] > 1e-4
    assert table[(*near, "pre_fec_ber", "")].values[-1] < 1e-6


@dataclass(frozen=True)
class Worn(Lossy):
    """A laser that ages, and a link that flaps between two polls."""

    def changes(self, until: float) -> tuple[float, ...]:
        return (self.onset, self.onset + 2.0, self.onset + 5.0)

    def apply(self, conditions: Conditions, fabric: Fabric, at: float) -> None:
        laser = fabric.leaf_up(0, 0)
        conditions.light_lost_db[laser] = conditions.tx_lost_db[laser] = 2.0
        conditions.bias_added_ma[laser] = 30.0
        if self.onset + 2.0 <= at < self.onset + 5.0:
            conditions.take_down(fabric, fabric.leaf_up(3, 1))


def test_what_a_module_and_a_flap_show() -> None:
    fabric = replace(FABRIC, has_copper_hosts=True)
    table = by_place(readings(run(Setup(fabric, DESIGN, (JOB,), (), (Worn(),), SECONDS, 10.0, 1)), Collection()))
    sender, receiver = fabric.sending_port[fabric.leaf_up(0, 0)], fabric.receiving_port[fabric.leaf_up(0, 0)]
    changes = {
        (place, metric): table[(*place, metric, "1")].values[-1] - table[(*place, metric, "1")].values[0]
        for place in (sender, receiver)
        for metric in ("optic_tx_dbm", "optic_rx_dbm", "optic_bias_ma")
    }
    expected = {(sender, "optic_tx_dbm"): -2.0, (sender, "optic_bias_ma"): 30.0, (receiver, "optic_rx_dbm"): -2.0}
    for key, change in changes.items():
        assert change == pytest.approx(expected.get(key, 0.0), abs=1.5 if key[1] == "optic_bias_ma" else 0.3), key
    flapping = fabric.sending_port[fabric.leaf_up(3, 1)]
    assert table[(*flapping, "oper_up", "")].values.all()
    assert grown(table, *flapping, "link_down_events") == 1
    assert ("gpu-worker-001", "mlx5_0", "optic_rx_dbm", "1") not in table


def test_flow_records_tell_foreign_bytes(lossy_readings: tuple[Reading, ...]) -> None:
    table = by_place(lossy_readings)
    leaf, port = FABRIC.sending_port[FABRIC.nic_down(FABRIC.nic(7, 0))]
    share = table[(leaf, port, "foreign_byte_share", "3")].values
    assert np.nanmin(share[25:]) == 1.0  # only storage reads go to this host


def test_probes_see_the_loss_that_nobody_counts(lossy_readings: tuple[Reading, ...]) -> None:
    found = [one for one in lossy_readings if one.metric == "loss_ratio"]
    assert len(found) == 6
    before = max(float(one.values[one.times < ONSET].max()) for one in found)
    after = max(float(one.values[one.times >= ONSET].mean()) for one in found)
    assert before <= 0.01 < after
    round_trip = next(one for one in lossy_readings if one.metric == "latency_us")
    assert 3.0 < np.nanmin(round_trip.values) < 20.0


def test_a_host_whose_clock_is_ahead_stamps_so(lossy_readings: tuple[Reading, ...]) -> None:
    table = by_place(lossy_readings)
    late = table[("gpu-worker-002", "mlx5_0", "tx_bytes", "")].times
    assert (late - table[("gpu-worker-001", "mlx5_0", "tx_bytes", "")].times == 7.0).all()
