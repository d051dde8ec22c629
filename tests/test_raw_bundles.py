"""Bundles in the raw forms of devices: a function of their scenario, and true to the run they were written from."""

from __future__ import annotations

import gzip
import json
import re
import tarfile
from dataclasses import replace
from datetime import datetime
from functools import cache
from pathlib import Path

import numpy as np
import pytest
import yaml
from bundle_edits import CROWD, DRAIN, FABRIC, ONSET, SMALL, small

from causeline.fixtures.faults.nic import PauseStorm
from causeline.fixtures.faults.path import CablesDown
from causeline.fixtures.faults.timing import Mechanism, Ramp
from causeline.fixtures.model.conditions import Conditions
from causeline.fixtures.model.telemetry import Step, Telemetry
from causeline.fixtures.raw.scenario import FirmwareUpdate, Scenario
from causeline.fixtures.raw.write import incident_yaml, truth_json, write_bundle
from causeline.fixtures.scenarios import BUILDERS, scenario

FIXTURES = Path(__file__).parent.parent / "fixtures"
HOT = FABRIC.leaf_up(0, 3)
UPDATED = FirmwareUpdate(host=5, version="28.44.1000", at=120.0)


def _dim(conditions: Conditions, strength: float) -> None:
    conditions.light_lost_db[FABRIC.spine_down(0, 2)] += 4.5 * strength


SCENARIOS = {
    "drain": SMALL,
    "optic": small(Mechanism(Ramp(100.0, 50.0), _dim)),
    "storm": small(PauseStorm(FABRIC.nic(2, 1), ONSET, 0.9)),
    "cut": replace(small(CablesDown(ONSET, ((0, 0),))), firmware=(UPDATED,)),
}


@cache
def told(name: str) -> Telemetry:
    return SCENARIOS[name].run()


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    root = tmp_path_factory.mktemp("raw")
    for name, one in SCENARIOS.items():
        write_bundle(one, told(name), root / name)
    return {name: root / name for name in SCENARIOS}


def files_of(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


def test_a_scenario_gives_the_same_bytes_each_time(folders: dict[str, Path], tmp_path: Path) -> None:
    again = small(DRAIN, crowds=(CROWD,))
    write_bundle(again, again.run(), tmp_path / "again")
    assert files_of(tmp_path / "again") == files_of(folders["drain"])


def test_a_folder_that_is_no_bundle_is_not_emptied(tmp_path: Path) -> None:
    (tmp_path / "thesis.txt").write_text("precious")
    with pytest.raises(FileExistsError, match=r"no incident\.yaml"):
        write_bundle(SMALL, told("drain"), tmp_path)
    assert (tmp_path / "thesis.txt").exists()


# -- switches --------------------------------------------------------------------------------------------------------
def test_gnmic_samples_are_ordered_and_count_what_the_model_sent(folders: dict[str, Path]) -> None:
    path = "/interfaces/interface/state/counters/out-octets"
    samples: list[tuple[int, int]] = []
    stamps: list[int] = []
    with gzip.open(folders["drain"] / "switches/leaf-01/gnmic.jsonl.gz", "rt") as lines:
        for line in lines:
            first = json.loads(line)[0]
            stamps.append(first["timestamp"])
            if first["tags"]["interface_name"] == "Ethernet12":
                samples.append((first["timestamp"], int(first["values"][path])))
    assert stamps == sorted(stamps)
    start, telemetry = int(SMALL.start.timestamp() * 1e9), told("drain")
    rows = np.searchsorted(telemetry.times, [round((stamp - start) / 1e9) for stamp, _ in (samples[0], samples[-1])])
    sent = sum(load[:, HOT] for load in telemetry.tx_bytes.values())
    assert samples[-1][1] - samples[0][1] == pytest.approx(sent[rows[1]] - sent[rows[0]], rel=1e-6)


def widths(folder: Path) -> list[set[int]]:
    """Next hops of the routes of leaf-01 at both ends of the window."""
    found = []
    for minute in ("15", "20"):
        packed = (folder / f"switches/leaf-01/show_ip_route_20261117T20{minute}00Z.json.gz").read_bytes()
        routes = json.loads(gzip.decompress(packed))["vrfs"]["default"]["routes"]
        found.append({len(entry["vias"]) for entry in routes.values()})
    return found


def test_routes_and_syslog_tell_the_drain_and_no_link_goes_down(folders: dict[str, Path]) -> None:
    assert widths(folders["drain"]) == [{4}, {3}]
    log = (folders["drain"] / "switches/leaf-01/syslog.log").read_text()
    assert log.count(f"%BGP-5-ADJCHANGE: peer {FABRIC.link_address(0, 1, True)} ") == 1
    assert "LINEPROTO" not in log


def test_a_cut_cable_is_down_at_both_ends_and_withdrawn(folders: dict[str, Path]) -> None:
    assert widths(folders["cut"]) == [{4}, {3}]
    for device, port in (("leaf-01", "Ethernet9"), ("spine-01", "Ethernet1")):
        log = (folders["cut"] / f"switches/{device}/syslog.log").read_text()
        assert log.count(f"Interface {port}, changed state to down") == 1
        assert log.count("event Stop new state Idle") == 1
        assert growth(folders["cut"] / f"switches/{device}/gnmic.jsonl.gz", port, "carrier-transitions") == 1
    other = (folders["cut"] / "switches/leaf-02/syslog.log").read_text()
    assert "changed state" not in other and "ADJCHANGE" not in other


def test_only_the_dim_end_reads_low_light_and_counts_bad_frames(folders: dict[str, Path]) -> None:
    low = set()
    for path in (folders["optic"] / "switches").glob("*/show_interfaces_transceiver_dom_20261117T202000Z.json.gz"):
        for port, module in json.loads(gzip.decompress(path.read_bytes()))["interfaces"].items():
            power = module["parameters"]["rxPower"]
            if min(power["channels"].values()) < power["threshold"]["lowWarn"]:
                low.add((path.parent.name, port))
    assert low == {("leaf-01", "Ethernet11")}
    errors = growth(folders["optic"] / "switches/leaf-01/gnmic.jsonl.gz", "Ethernet11", "in-fcs-errors")
    lost = told("optic").links["frames_corrupt"][60].max()  # at 300 s
    assert errors == pytest.approx(lost, rel=0.15)  # the last sample is some seconds before the window's end
    assert growth(folders["optic"] / "switches/spine-03/gnmic.jsonl.gz", "Ethernet1", "in-fcs-errors") == 0


def growth(path: Path, port: str, leaf: str) -> int:
    """Increase of an interface counter over a device's gnmic file."""
    with gzip.open(path, "rt") as lines:
        events = [event for line in lines for event in json.loads(line) if event["tags"].get("interface_name") == port]
    key = f"/interfaces/interface/state/counters/{leaf}"
    values = [int(event["values"][key]) for event in events if key in event["values"]]
    return values[-1] - values[0]


# -- hosts -----------------------------------------------------------------------------------------------------------
def members(folder: Path, host: str) -> dict[str, str]:
    with tarfile.open(folder / f"hosts/{host}.tar.gz") as archive:
        return {name: archive.extractfile(name).read().decode() for name in archive.getnames()}  # type: ignore[union-attr]


def statistics(folder: Path, host: str, netdev: str) -> list[dict[str, int]]:
    """`ethtool -S` at both ends of the window."""
    texts = sorted((name, text) for name, text in members(folder, host).items() if f"ethtool_-S/{netdev}_" in name)
    return [{key: int(value) for key, value in re.findall(r"(\w+): (\d+)", text)} for _, text in texts]


def test_both_ends_of_a_host_link_count_the_same_pauses(folders: dict[str, Path]) -> None:
    first, last = statistics(folders["storm"], FABRIC.host_name(2), FABRIC.netdev(1))
    on_switch = [
        json.loads(path.read_text())["interfaceCounters"][FABRIC.host_port(2, 1)]
        for path in sorted((folders["storm"] / "switches/leaf-02").glob("show_priority-flow-control_counters_*.json"))
    ]
    sent = last["tx_prio3_pause"] - first["tx_prio3_pause"]
    assert sent == pytest.approx(on_switch[-1]["rxFrames"] - on_switch[0]["rxFrames"], rel=0.2)  # read seconds apart
    assert last["tx_prio3_pause_duration"] - first["tx_prio3_pause_duration"] > 0.3 * 300e6
    assert last["tx_pause_storm_error_events"] >= 16
    assert last["rx_prio3_bytes"] <= last["rx_bytes_phy"]


def test_an_updated_host_loads_its_driver_again_and_counts_from_zero(folders: dict[str, Path]) -> None:
    updated, other = FABRIC.host_name(UPDATED.host), FABRIC.host_name(6)
    first, last = statistics(folders["cut"], updated, FABRIC.netdev(0))
    assert last["tx_bytes_phy"] < first["tx_bytes_phy"]
    first, last = statistics(folders["cut"], other, FABRIC.netdev(0))
    assert last["tx_bytes_phy"] > first["tx_bytes_phy"]
    journal = members(folders["cut"], updated)[f"{updated}/journal_kernel.log"]
    loads = re.findall(r"^(\S+) \S+ kernel: mlx5_core 0000:1a:00.0: firmware version: (\S+)$", journal, re.MULTILINE)
    assert loads[-1] == ("2026-11-17T20:17:00+0000", UPDATED.version)
    assert len({version for _, version in loads}) == 2
    assert UPDATED.version not in members(folders["cut"], other)[f"{other}/journal_kernel.log"]


# -- the bundles that are kept ---------------------------------------------------------------------------------------
def kept(name: str) -> Path:
    return next(folder for kind in ("incidents", "quiet") if (folder := FIXTURES / kind / name).exists())


@pytest.mark.parametrize("name", BUILDERS)
def test_kept_bundles_agree_with_their_scenarios(name: str) -> None:
    chosen, folder = scenario(name), kept(name)
    assert yaml.safe_load((folder / "incident.yaml").read_text()) == yaml.safe_load(incident_yaml(chosen))
    assert json.loads((folder / "truth.json").read_text()) == json.loads(truth_json(chosen, logged(chosen, folder)))


def logged(chosen: Scenario, folder: Path) -> list[Step]:
    steps = []
    for line in (folder / "jobs/steps_run-0412.jsonl").read_text().splitlines():
        entry = json.loads(line)
        end = (datetime.fromisoformat(entry["ts"]) - chosen.start).total_seconds()
        steps.append(Step(entry["step"], end - entry["step_time_s"], end))
    return steps


@pytest.mark.parametrize("name", BUILDERS)
def test_kept_bundles_are_small(name: str) -> None:
    assert sum(path.stat().st_size for path in kept(name).rglob("*") if path.is_file()) < 5e6


def test_inc_4127_slows_by_about_23_percent() -> None:
    truth = json.loads((kept("inc-4127") / "truth.json").read_text())
    assert 21 <= truth["step_change_pct"]["run-0412"] <= 25
