"""The columnar store: one sample per place, metric and time, whatever order, spelling or source they came in."""

from __future__ import annotations

import math
import random
from collections.abc import Sequence

import pytest
from fabrics import END, START, counter, gauge, series

from causeline.engine.facts import Series
from causeline.engine.telemetry import Telemetry

Points = list[tuple[float, float | None]]


def store(*facts: Series, aliases: dict[str, str] | None = None) -> Telemetry:
    return Telemetry(facts, lambda device, port: (aliases or {}).get(port, port))


def samples(telemetry: Telemetry) -> Sequence[tuple[object, ...]]:
    return telemetry.rows("SELECT device, port, qualifier, metric, ts - ?, value FROM samples ORDER BY ALL", (START,))


def codes(telemetry: Telemetry) -> list[str]:
    return [issue.code for issue in telemetry.issues]


def test_samples_out_of_order_are_read_in_time_order() -> None:
    points: Points = [(START + 20, 40.0), (START, 0.0), (START + 10, 10.0)]
    line = store(series("leaf-1:Ethernet1", "tx_bytes", points)).line("leaf-1", "Ethernet1", "", "tx_bytes")
    assert list(line.times - START) == [10, 20]
    assert list(line.values) == [1.0, 3.0]


def test_a_missed_poll_is_no_sample() -> None:
    telemetry = store(series("leaf-1:Ethernet1", "optic_rx_dbm", [(START, None), (START + 10, -3.0)]))
    assert samples(telemetry) == [("leaf-1", "Ethernet1", "", "optic_rx_dbm", 10.0, -3.0)]
    assert telemetry.issues == ()


def test_of_repeated_samples_the_first_is_used_and_said() -> None:
    telemetry = store(series("leaf-1:Ethernet1", "optic_rx_dbm", [(START, -3.0), (START, -9.0), (START + 1, -4.0)]))
    assert [row[-1] for row in samples(telemetry)] == [-3.0, -4.0]
    (issue,) = telemetry.issues
    assert (issue.code, issue.source) == ("duplicate-samples", "optic_rx_dbm.csv")


def test_the_record_of_a_sample_is_its_own_line() -> None:
    telemetry = store(series("leaf-1:Ethernet1", "optic_rx_dbm", [(START, -3.0), (START, -9.0), (START + 1, -4.0)]))
    assert telemetry.rows("SELECT record FROM samples ORDER BY ts") == [(1,), (3,)]


def test_all_spellings_of_a_port_are_one_series() -> None:
    one = series("host-1:ens1f0", "cnp_sent", [(START, 0.0)], source="a")
    other = series("host-1:mlx5_0", "cnp_sent", [(START + 10, 30.0)], source="a-2")
    line = store(one, other, aliases={"ens1f0": "mlx5_0"}).line("host-1", "mlx5_0", "", "cnp_sent")
    assert list(line.values) == [3.0]


def test_an_unknown_metric_is_a_read_issue_and_no_sample() -> None:
    telemetry = store(series("leaf-1:Ethernet1", "tx_octets", [(START, 1.0)]))
    assert samples(telemetry) == []
    assert codes(telemetry) == ["unknown-metric"]


@pytest.mark.parametrize("facts", [(), (series("leaf-1", "buffer_peak_bytes", [(START, None)]),)])
def test_without_a_number_there_is_no_span(facts: tuple[Series, ...]) -> None:
    assert store(*facts).span() is None


def test_the_span_is_that_of_the_samples_used() -> None:
    facts = (gauge("leaf-1", "buffer_peak_bytes", 1, 2), series("leaf-1", "tx_octets", [(END + 900, 1.0)]))
    assert store(*facts).span() == (START, END)


def test_a_reset_is_left_out_of_the_rates() -> None:
    points: Points = [(START, 100.0), (START + 10, 200.0), (START + 20, 5.0), (START + 30, 15.0)]
    line = store(series("leaf-1:Ethernet1", "tx_bytes", points)).line("leaf-1", "Ethernet1", "", "tx_bytes")
    assert list(line.times - START) == [10, 30]
    assert list(line.values) == [10.0, 1.0]


def test_no_light_stays_minus_infinity() -> None:
    line = store(series("leaf-1:Ethernet1", "optic_rx_dbm", [(START, -math.inf)])).line(
        "leaf-1", "Ethernet1", "", "optic_rx_dbm"
    )
    assert list(line.values) == [-math.inf]


# -- one quantity from several sources -------------------------------------------------------------------


def test_the_source_with_more_samples_wins() -> None:
    fine = counter("leaf-1:Ethernet1", "tx_bytes", 100, 100, every=10, source="gnmi.json")
    # A slower poller whose clock lags: mixed in, every one of its samples would look like a reset.
    coarse = series(
        "leaf-1:Ethernet1", "tx_bytes", [(START + t, 100.0 * (t - 3)) for t in range(5, 1200, 60)], "snmp.csv"
    )
    for facts in ((fine, coarse), (coarse, fine)):
        telemetry = store(*facts)
        line = telemetry.line("leaf-1", "Ethernet1", "", "tx_bytes")
        assert set(line.values) == {100.0}
        assert len(line.values) == 120


def test_a_snapshot_inside_a_stream_is_not_mixed_in() -> None:
    stream = counter("leaf-1:Ethernet1", "fcs_errors", 1, 1)
    snapshot = series("leaf-1:Ethernet1", "fcs_errors", [(START + 101, 7.0)], source="show-interfaces.txt")
    assert set(store(stream, snapshot).line("leaf-1", "Ethernet1", "", "fcs_errors").values) == {1.0}


def test_snapshots_of_different_files_make_one_counter() -> None:
    facts = [
        series("host-1:mlx5_0", "out_of_sequence", [(START + t, v)], source=f"ethtool-{t}.txt")
        for t, v in ((0, 0.0), (600, 60.0), (1200, 660.0))
    ]
    assert list(store(*facts).line("host-1", "mlx5_0", "", "out_of_sequence").values) == [0.1, 1.0]


def test_files_that_follow_each_other_make_one_series() -> None:
    first = series("leaf-1:Ethernet1", "tx_bytes", [(START + t, t * 1.0) for t in range(0, 60, 10)], "poll-a.csv")
    second = series("leaf-1:Ethernet1", "tx_bytes", [(START + t, t * 1.0) for t in range(60, 120, 1)], "poll-b.csv")
    line = store(second, first).line("leaf-1", "Ethernet1", "", "tx_bytes")
    assert set(line.values) == {1.0}
    assert line.times[-1] - START == 119


def test_sources_that_disagree_are_a_read_issue() -> None:
    fine = gauge("leaf-1:Ethernet1", "optic_rx_dbm", -3.0, -3.0, source="gnmi.json")
    same = gauge("leaf-1:Ethernet1", "optic_rx_dbm", -3.002, -3.002, every=60, source="cli.txt")
    other = gauge("leaf-1:Ethernet1", "optic_rx_dbm", -9.0, -9.0, every=60, source="cli.txt")
    assert codes(store(fine, same)) == []
    (issue,) = store(fine, other).issues
    assert (issue.code, issue.source) == ("sources-disagree", "cli.txt")


def test_the_order_of_series_does_not_matter() -> None:
    facts = [
        gauge("leaf-1:Ethernet1", "optic_rx_dbm", -3.0, -5.0, source="a"),
        gauge("leaf-1:Ethernet1", "optic_rx_dbm", -4.0, -6.0, source="b"),
        counter("leaf-1:Ethernet1", "tx_bytes", 1, 2, source="c"),
    ]
    expected = samples(store(*facts))
    for seed in range(5):
        shuffled = list(facts)
        random.Random(seed).shuffle(shuffled)
        assert samples(store(*shuffled)) == expected
