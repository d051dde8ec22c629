"""The tidy form as a whole: CSV and Parquet say the same, the order of rows does not matter, sums are sums, and a
bundle of nothing else is investigated."""

from __future__ import annotations

import csv
import io
import json
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from causeline import adapters, knowledge
from causeline.adapters.base import Hints, RawFile
from causeline.adapters.clock import Clock
from causeline.adapters.tidy_telemetry import ADAPTER as TELEMETRY
from causeline.engine.facts import Series
from causeline.engine.investigate import examine

START = datetime(2026, 11, 17, 20, 15, tzinfo=UTC)
COLUMNS = ("ts", "device", "port", "priority", "counter", "value")
Row = tuple[str, str, str, str, str, float]


def at(seconds: float) -> str:
    return (START + timedelta(seconds=seconds)).isoformat().replace("+00:00", "Z")


def as_csv(rows: list[Row]) -> bytes:
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerows([COLUMNS, *rows])
    return text.getvalue().encode()


def as_parquet(rows: list[Row]) -> bytes:
    columns = list(zip(*rows, strict=True))
    arrays: dict[str, list[object]] = {name: list(column) for name, column in zip(COLUMNS, columns, strict=True)}
    arrays["ts"] = [datetime.fromisoformat(str(one)) for one in arrays["ts"]]
    arrays["priority"] = [int(str(one)) if one else None for one in arrays["priority"]]
    sink = io.BytesIO()
    pq.write_table(pa.table(arrays), sink)
    return sink.getvalue()


def samples_of(content: bytes) -> dict[tuple[str, str, str, str], dict[float, float | None]]:
    found = TELEMETRY.read(RawFile("telemetry", content, "0", Hints(), Clock()))
    return {
        (one.device, one.port, one.qualifier, one.metric): dict(zip(one.times, one.values, strict=True))
        for one in found
        if isinstance(one, Series)
    }


ROWS = st.lists(
    st.tuples(
        st.integers(0, 9).map(lambda n: at(5 * n)),
        st.sampled_from(["leaf1", "leaf2"]),
        st.sampled_from(["Ethernet1", "Ethernet1/12"]),
        st.sampled_from(["0", "3"]),
        st.sampled_from(["tx_bytes", "queue_bytes_max", "rx_pkts", "pfc_rx_pause"]),
        st.integers(0, 2**48).map(float),
    ),
    min_size=1,
    max_size=40,
    unique_by=lambda row: row[:5],
)


@settings(deadline=None)  # the first example imports pyarrow
@given(ROWS)
def test_parquet_and_csv_say_the_same(rows: list[Row]) -> None:
    assert samples_of(as_parquet(rows)) == samples_of(as_csv(rows))


@settings(deadline=None)
@given(ROWS, st.randoms(use_true_random=False))
def test_order_of_rows_does_not_matter(rows: list[Row], random: object) -> None:
    shuffled = sorted(rows, key=lambda _: random.random())  # type: ignore[attr-defined]
    assert samples_of(as_csv(shuffled)) == samples_of(as_csv(rows))


def test_bytes_of_a_port_are_the_sum_of_its_priorities_where_all_were_polled() -> None:
    rows: list[Row] = [
        (at(0), "leaf1", "Ethernet1", "3", "tx_bytes", 100.0),
        (at(0), "leaf1", "Ethernet1", "0", "tx_bytes", 7.0),
        (at(5), "leaf1", "Ethernet1", "3", "tx_bytes", 200.0),
    ]
    found = samples_of(as_csv(rows))
    assert list(found[("leaf1", "Ethernet1", "", "tx_bytes")].values()) == [107.0, None]
    assert list(found[("leaf1", "Ethernet1", "3", "queue_tx_bytes")].values()) == [100.0, 200.0]


def test_line_numbers_stay_right_behind_blank_and_broken_lines() -> None:
    rows: list[Row] = [(at(5 * n), "leaf1", "Ethernet1", "3", "queue_bytes", float(n)) for n in range(3)]
    lines = as_csv(rows).decode().split("\n")
    text = "\r\n".join([lines[0], "", lines[1], "broken", lines[2], lines[3], ""])
    facts = TELEMETRY.read(RawFile("telemetry.csv", text.encode(), "0", Hints(), Clock()))
    (series,) = (one for one in facts if isinstance(one, Series))
    assert series.lines == (3, 5, 6) and series.values == (0.0, 1.0, 2.0)


def test_parquet_that_is_none_is_an_issue(tmp_path: Path) -> None:
    path = tmp_path / "telemetry.parquet"
    pq.write_table(pa.table({"a": [1]}), path)
    assert [issue.code for issue in adapters.try_file(path, Hints()).issues] == ["not-tidy-telemetry"]
    path.write_bytes(b"PAR1 and then nothing")
    assert [issue.code for issue in adapters.try_file(path, Hints()).issues] == ["malformed-parquet"]


@pytest.fixture(scope="module")
def bundle(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two leaves, two spines, four hosts, a job that slows by half when leaf-1 Ethernet3 begins to receive bad frames;
    the link leaf-2 Ethernet4 is planned and not there."""
    folder = tmp_path_factory.mktemp("tidy")
    hosts = {"leaf-1": ("host-1", "host-2"), "leaf-2": ("host-3", "host-4")}
    nodes = [{"name": host, "role": "host"} for ends in hosts.values() for host in ends]
    nodes += [{"name": name, "role": "leaf"} for name in hosts]
    nodes += [{"name": name, "role": "spine"} for name in ("spine-1", "spine-2")]
    links: list[dict[str, object]] = []
    for number, (leaf, ends) in enumerate(hosts.items(), start=1):
        links += [
            {"a": host, "a_port": "nic0", "b": leaf, "b_port": f"Ethernet{n}", "speed_gbps": 100}
            for n, host in enumerate(ends, start=1)
        ]
        links += [
            {"a": leaf, "a_port": f"Ethernet{2 + n}", "b": f"spine-{n}", "b_port": f"Ethernet{number}"} for n in (1, 2)
        ]
    links[-1]["present"] = False
    (folder / "topology.json").write_text(json.dumps({"nodes": nodes, "links": links}))
    all_hosts = [host for ends in hosts.values() for host in ends]
    (folder / "jobs.json").write_text(json.dumps([{"job": "train", "pattern": "ring_allreduce", "hosts": all_hosts}]))
    steps: list[str] = []
    moment = 0.0
    while moment < 1200:
        length = 10.0 + 0.1 * (len(steps) % 3) if moment < 600 else 15.0 + 0.1 * (len(steps) % 3)
        steps.append(f"train,{len(steps)},{at(moment)},{at(moment + length)}")
        moment += length
    (folder / "steps.csv").write_text("\n".join(["job,step,start,end", *steps]) + "\n")
    rows: list[Row] = []
    for poll in range(0, 1201, 10):
        for port in ("Ethernet3", "Ethernet4"):
            bad = max(0.0, poll - 600.0) if port == "Ethernet3" else 0.0
            rows.append((at(poll), "leaf-1", port, "", "rx_fcs_errors", bad))
    (folder / "telemetry.csv").write_bytes(as_csv(rows))
    (folder / "incident.yaml").write_text(f"job: train\nwindow: [{at(0)}, {at(1200)}]\n")
    return folder


def test_bundle_of_the_form_is_investigated(bundle: Path) -> None:
    reading = adapters.read(bundle)
    assert [issue for issue in reading.issues if issue.level != "note"] == []
    case = examine(reading, knowledge.load())
    assert case.evidence.observed.topology.leaves == ("leaf-1", "leaf-2")
    (symptom,) = case.evidence.symptoms
    assert symptom.job == "train" and abs(symptom.onset - (START.timestamp() + 600)) < 20
    bad = [finding for finding in case.evidence.findings if finding.sign == "crc_rx" and finding.state == "present"]
    assert [str(finding.scope) for finding in bad] == ["link:leaf-1/Ethernet3/spine-1/Ethernet1"]
    shown = [fact.excerpt for finding in case.investigation.findings for fact in finding.facts]
    assert any("leaf-1,Ethernet3,,rx_fcs_errors" in excerpt for excerpt in shown)


def test_planned_link_that_is_not_there_is_seen_as_missing(bundle: Path) -> None:
    case = examine(adapters.read(bundle), knowledge.load())
    missing = [
        finding for finding in case.evidence.findings if finding.sign == "link_absent" and finding.state == "present"
    ]
    assert [str(finding.scope) for finding in missing] == ["link:leaf-2/Ethernet4/spine-2/Ethernet2"]
