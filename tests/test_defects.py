"""What real collection spoils of readings."""

from __future__ import annotations

import numpy as np
from simulated import FABRIC, by_place

from causeline.fixtures.defects import as_collected, clock_off, missed_polls, narrow, reset, spoiled, stale, thinned
from causeline.fixtures.model.fabric import Floats
from causeline.fixtures.readings import Reading

# -- what collection spoils


def test_a_removed_share_is_removed(cut_readings: tuple[Reading, ...]) -> None:
    groups = {(one.device, one.metric) for one in cut_readings}
    for share in (0.25, 0.5, 0.75):
        kept = thinned(cut_readings, share, np.random.default_rng(1))
        left = {(one.device, one.metric) for one in kept}
        assert len(left) == len(groups) - round(share * len(groups))
        assert set(map(id, kept)) == {id(one) for one in cut_readings if (one.device, one.metric) in left}
    devices = {one.device for one in thinned(cut_readings, 0.5, np.random.default_rng(1), by="device")}
    assert len(devices) == round(0.5 * len({one.device for one in cut_readings}))


def test_a_reset_device_counts_from_zero(cut_readings: tuple[Reading, ...]) -> None:
    before = by_place(cut_readings)
    table = by_place(reset(cut_readings, "leaf-01", 150.0, silent_seconds=25.0))
    port = FABRIC.uplink_port(0)
    sent = table[("leaf-01", port, "tx_bytes", "")].values
    assert np.isnan(sent[15:18]).all() and np.isfinite(sent[18:]).all()
    assert sent[18] < sent[14] and sent[18] == before[("leaf-01", port, "tx_bytes", "")].values[[14, 18]] @ [-1, 1]
    assert table[("leaf-02", port, "tx_bytes", "")] is before[("leaf-02", port, "tx_bytes", "")]
    assert table[("leaf-01", port, "oper_up", "")].values[20] == 1.0


def test_a_narrow_counter_wraps_or_saturates(cut_readings: tuple[Reading, ...]) -> None:
    key = ("gpu-worker-001", "mlx5_0", "tx_packets", "")
    honest = by_place(cut_readings)[key].values
    for end in ("wraps", "saturates"):
        table = by_place(narrow(cut_readings, key[2], key[0], 32, end, np.random.default_rng(3)))  # type: ignore[arg-type]
        values = table[key].values
        assert (values >= 0).all() and values.max() <= 2**32 - 1
        if end == "wraps":
            assert ((np.diff(values) - np.diff(honest)) % 2**32 == 0).all() and (np.diff(values) < 0).any()
        else:
            assert (np.diff(values) >= 0).all() and (values[-5:] == 2**32 - 1).all()


def test_polls_are_missed_by_a_device_as_a_whole(cut_readings: tuple[Reading, ...]) -> None:
    table = by_place(missed_polls(cut_readings, 0.2, np.random.default_rng(4)))
    gone = np.isnan(table[("leaf-01", FABRIC.uplink_port(0), "tx_bytes", "")].values)
    assert 0.05 < gone.mean() < 0.4
    assert (gone == np.isnan(table[("leaf-01", FABRIC.uplink_port(1), "rx_packets", "")].values)).all()
    assert (gone != np.isnan(table[("leaf-02", FABRIC.uplink_port(0), "tx_bytes", "")].values)).any()


def test_a_clock_that_is_off_and_an_exporter_that_repeats(cut_readings: tuple[Reading, ...]) -> None:
    key, honest = ("spine-01", "Ethernet1", "rx_bytes", ""), by_place(cut_readings)
    off = by_place(clock_off(cut_readings, "spine-01", -3.5))[key]
    assert (honest[key].times - off.times == 3.5).all() and (off.values == honest[key].values).all()
    held = by_place(stale(cut_readings, "spine-01", 30.0))[key].values
    assert (held[:6] == honest[key].values[[0, 0, 0, 3, 3, 3]]).all()


def test_a_site_spoils_few_devices_and_now_and_then_none(cut_readings: tuple[Reading, ...]) -> None:
    hit = []
    for seed in range(60):
        spoiled_once = as_collected(cut_readings, 300.0, np.random.default_rng(seed))
        assert [(one.device, one.metric) for one in spoiled_once] == [(one.device, one.metric) for one in cut_readings]
        hit.append({now.device for now, before in zip(spoiled_once, cut_readings, strict=True) if now is not before})
    assert min(map(len, hit)) == 0 and 2 <= max(map(len, hit)) <= 4
    assert len(set.union(*hit)) > 6


def test_defects_of_faults_hit_their_place_only(cut_readings: tuple[Reading, ...]) -> None:
    class Stuck:
        def hits(self, metric: str, device: str, port: str) -> bool:
            return (metric, device) == ("tx_bytes", "leaf-01")

        def spoil(self, times: Floats, values: Floats) -> Floats:
            return np.full_like(values, values[0])

    before = by_place(cut_readings)
    for key, one in by_place(spoiled(cut_readings, (Stuck(),))).items():
        if (one.metric, one.device) == ("tx_bytes", "leaf-01"):
            assert (one.values == one.values[0]).all()
        else:
            assert one is before[key]
