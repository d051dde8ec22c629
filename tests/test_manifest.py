"""`incident.yaml`: what it says is used, what is wrong in it is told, and clocks follow it."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
import yaml
from bundle_members import MEMBERS, issues_of, write_folder
from hypothesis import given
from hypothesis import strategies as st

from causeline import adapters
from causeline.adapters.clock import Clock
from causeline.adapters.manifest import read_manifest
from causeline.engine.facts import Event, Series

MANIFESTS: dict[str, tuple[str, str, dict[str, str | None]]] = {
    "unknown key": ("id: INC-2\nwindows: []\n", "/windows", {"id": "INC-2"}),
    "window reversed": (
        "id: INC-2\nwindow: [2026-11-17T21:00:00Z, 2026-11-17T20:00:00Z]\n",
        "/window",
        {"window": None},
    ),
    "window a date": ("id: INC-2\nwindow: [2026-11-17, 2026-11-18]\n", "/window", {"id": "INC-2", "window": None}),
    "unknown zone": ("id: INC-2\ntime_zone: Mars/Olympus\n", "/time_zone", {"id": "INC-2"}),
    "bad field": ("id: INC-2\nfiles: [{path: 'a/{hostname}/b'}]\n", "/files/0/path", {"id": "INC-2"}),
    "bad file entry": ("id: INC-2\nfiles: [switches]\n", "/files/0", {"id": "INC-2"}),
    "not YAML": ("id: [INC-2\n", "", {"id": "inc-1"}),
    "a list": ("- INC-2\n", "", {"id": "inc-1"}),
    "empty": ("", "", {"id": "inc-1"}),
    "offsets no numbers": ("id: INC-2\nclock_offsets: {leaf-07: fast}\n", "/clock_offsets/leaf-07", {"id": "INC-2"}),
}


@pytest.mark.parametrize("kind", MANIFESTS)
def test_wrong_incident_yaml_is_reported_and_the_rest_used(bundle: Path, kind: str) -> None:
    text, record, expected = MANIFESTS[kind]
    (bundle / "incident.yaml").write_text(text)
    reading = adapters.read(bundle)
    issues = issues_of(reading, "incident.yaml")
    assert [(issue.code, issue.record) for issue in issues] == [("incident-yaml", record)]
    for key, value in expected.items():
        assert getattr(reading.incident, key) == value
    assert [fact for fact in reading.facts if isinstance(fact, Series)]


def test_one_wrong_hint_does_not_cost_the_others(bundle: Path) -> None:
    write_folder(bundle, {"dump/a.json": b'{"interfaceCounters": {"Ethernet1": {"rxFrames": 1, "txFrames": 2}}}'})
    (bundle / "incident.yaml").write_text(
        "id: INC-2\nclock_offsets: {leaf-07: 1.5, leaf-08: fast}\n"
        "files: [switches, {device: leaf-01}, {path: dump/a.json, device: spine-01, time: 20261117T203100Z, rack: 7}]\n"
    )
    reading = adapters.read(bundle)
    records = {issue.record for issue in issues_of(reading, "incident.yaml")}
    assert records == {"/clock_offsets/leaf-08", "/files/0", "/files/1/path", "/files/2/rack"}
    assert "spine-01" in {fact.device for fact in reading.facts if isinstance(fact, Series)}


@given(st.text(alphabet="idwnofa:[]{},-&*!|>'\" \n0123456789TZ.", max_size=60), st.integers(0, 200))
def test_no_incident_yaml_stops_the_reading(noise: str, at: int) -> None:
    text = MEMBERS["incident.yaml"] + "files: [{path: 'a/{device}', time: x}]\ntime_zone: UTC\nclock_offsets: {a: 1}\n"
    manifest, _ = read_manifest(text[:at] + noise + text[at:], "inc-1")
    assert manifest.hints("switches/leaf-07/syslog.log").time == ""


def test_bundle_without_incident_yaml_takes_the_name_of_the_folder(bundle: Path) -> None:
    (bundle / "incident.yaml").unlink()
    reading = adapters.read(bundle)
    assert reading.incident == replace(reading.incident, id="inc-1", fabric=None, job=None, window=None)
    year_less = issues_of(reading, "switches/leaf-15/syslog")
    assert [issue.code for issue in year_less] == ["no-year"]


def test_hints_of_incident_yaml_name_devices_the_path_does_not(bundle: Path) -> None:
    write_folder(bundle, {"dump/a.json": b'{"interfaceCounters": {"Ethernet1": {"rxFrames": 1, "txFrames": 2}}}'})
    manifest = yaml.safe_load(MEMBERS["incident.yaml"])
    manifest["files"] = [{"path": "dump/{command}.json", "device": "spine-01", "time": "2026-11-17T20-31-00Z"}]
    (bundle / "incident.yaml").write_text(yaml.safe_dump(manifest))
    reading = adapters.read(bundle)
    found = [fact for fact in reading.facts if isinstance(fact, Series) and fact.provenance.source == "dump/a.json"]
    assert [(fact.device, fact.times) for fact in found] == [("spine-01", (1794947460.0,))] * 2


def test_hint_of_incident_yaml_wins_over_the_layout(bundle: Path) -> None:
    manifest = yaml.safe_load(MEMBERS["incident.yaml"])
    manifest["files"] = [{"path": "switches/leaf-07/syslog.log", "device": "leaf-70"}]
    (bundle / "incident.yaml").write_text(yaml.safe_dump(manifest))
    events = [fact for fact in adapters.read(bundle).facts if isinstance(fact, Event)]
    assert {fact.device for fact in events} == {"leaf-70", "leaf-15"}


def test_clock_offset_moves_what_the_device_stamped_and_nothing_else(bundle: Path) -> None:
    before = adapters.read(bundle)
    (bundle / "incident.yaml").write_text(MEMBERS["incident.yaml"] + "clock_offsets: {leaf-07: 30.0}\n")
    after = adapters.read(bundle)
    for old, new in zip(before.facts, after.facts, strict=True):
        moved = (isinstance(old, Event) and old.device == "leaf-07") or old.provenance.adapter == "gnmic-events"
        if isinstance(old, Event) and isinstance(new, Event):
            assert new.at == pytest.approx(old.at - (30.0 if moved else 0.0))
        elif isinstance(old, Series) and isinstance(new, Series):
            assert new.times == pytest.approx([time - (30.0 if moved else 0.0) for time in old.times])
        else:
            assert new == old


@given(
    middle=st.datetimes(datetime(2020, 1, 1), datetime(2030, 1, 1)),
    away=st.timedeltas(timedelta(days=-150), timedelta(days=150)),
)
def test_time_without_a_year_takes_the_one_nearest_to_the_window(middle: datetime, away: timedelta) -> None:
    moment = (middle + away).replace(tzinfo=UTC, microsecond=0)
    at = middle.replace(tzinfo=UTC).timestamp()
    clock = Clock(window=(at - 900, at + 900))
    assert clock.device_time(moment.strftime("%b %e %H:%M:%S")) == moment.timestamp()
    assert Clock().device_time(moment.strftime("%b %e %H:%M:%S")) is None
