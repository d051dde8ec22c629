"""Damaged and incomplete bundles: each fault is named with its file and record, the rest is used, nothing crashes."""

from __future__ import annotations

import gzip
import json
import random
import shutil
from dataclasses import dataclass
from pathlib import Path

import pytest
from bundle_edits import edit_file, edit_members
from click.testing import CliRunner, Result

from causeline import reports
from causeline.engine.cli import main
from causeline.engine.results import Hypothesis, Investigation, ReadIssueRow

LEAF = "switches/leaf-01"
"""The switch whose uplink Ethernet12 overloads; what is damaged elsewhere must not matter."""
DOM_AT_THE_END = "show_interfaces_transceiver_dom_20261117T202000Z.json.gz"
STEPS = "jobs/steps_small-run.jsonl"
MANIFEST = "incident.yaml"


def run(bundle: Path, *arguments: str) -> Result:
    result = CliRunner().invoke(main, ["investigate", str(bundle), *arguments])
    assert result.exception is None or isinstance(result.exception, SystemExit), result.stderr
    assert "Traceback" not in result.output
    return result


def investigated(bundle: Path, *arguments: str) -> Investigation:
    result = run(bundle, "-f", "json", *arguments)
    assert result.exit_code == 0, result.stderr
    return Investigation.from_json(result.stdout)


def issues_of(investigation: Investigation, file: str) -> list[ReadIssueRow]:
    return [issue for issue in investigation.read_issues if issue.file == file]


@dataclass(frozen=True)
class Known:
    """What the undamaged bundle gives."""

    investigation: Investigation

    @property
    def top(self) -> Hypothesis:
        return self.investigation.hypotheses[0]


@pytest.fixture(scope="module")
def undamaged(small_bundle: Path) -> Known:
    return Known(investigated(small_bundle))


def assert_same_verdict(found: Investigation, undamaged: Known) -> None:
    top = found.hypotheses[0]
    assert found.root_causes == undamaged.investigation.root_causes
    assert (top.cause, top.places, top.status) == (undamaged.top.cause, undamaged.top.places, undamaged.top.status)
    assert top.probability == pytest.approx(undamaged.top.probability, rel=0.05)
    assert found.incident.onset == undamaged.investigation.incident.onset


def test_undamaged_bundle_has_a_root_cause(undamaged: Known) -> None:
    assert (undamaged.top.cause, undamaged.top.status) == ("path.ecmp_redistribution", "supported")
    assert ("leaf-01", "Ethernet12", 3) in {(place.device, place.port, place.queue) for place in undamaged.top.places}
    assert {issue.level for issue in undamaged.investigation.read_issues} <= {"note"}


# -- one bad file costs itself alone ---------------------------------------------------------------------------------
def cut_json(path: Path) -> None:
    text = gzip.decompress(path.read_bytes())
    path.write_bytes(gzip.compress(text[: len(text) // 2], mtime=0))


def cut_gzip(path: Path) -> None:
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


def make_empty(path: Path) -> None:
    path.write_bytes(b"")


def make_junk(path: Path) -> None:
    path.write_bytes(random.Random(1).randbytes(4096))


DAMAGES = {
    "truncated JSON": (cut_json, f"switches/leaf-03/{DOM_AT_THE_END}", "truncated-json", "error"),
    "truncated gzip": (cut_gzip, f"switches/leaf-03/{DOM_AT_THE_END}", "truncated-json", "error"),
    "empty file": (make_empty, "switches/leaf-02/syslog.log", "empty-file", "error"),
    "binary junk": (make_junk, "switches/leaf-04/syslog.log", "binary-file", "warning"),
    "not gzip": (make_junk, "switches/leaf-04/show_ip_route_20261117T202000Z.json.gz", "binary-file", "warning"),
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_damaged_file_is_named_and_the_rest_used(damage: str, small_copy: Path, undamaged: Known) -> None:
    spoil, file, code, level = DAMAGES[damage]
    spoil(small_copy / file)
    found = investigated(small_copy)
    assert_same_verdict(found, undamaged)
    issues = issues_of(found, file)
    assert (level, code) in {(issue.level, issue.code) for issue in issues}
    assert min(len(issue.message) for issue in issues) > 30


def test_every_report_lists_what_was_not_understood(small_copy: Path) -> None:
    make_empty(small_copy / "switches/leaf-02/syslog.log")
    (small_copy / "handover.docx").write_bytes(b"PK\x03\x04 not a zip")
    found = investigated(small_copy)
    for form in ("terminal", "md", "html"):
        text = reports.render(found, form)
        assert "switches/leaf-02/syslog.log" in text, form
        assert "it is empty" in text, form
    assert "handover.docx" in reports.render(found, "html")


def test_unknown_file_is_listed_and_nothing_else_changes(small_copy: Path, undamaged: Known) -> None:
    (small_copy / LEAF / "show_clock.txt").write_text("Tue Nov 17 20:15:00 2026\nClock source: NTP server\n")
    found = investigated(small_copy)
    (issue,) = issues_of(found, f"{LEAF}/show_clock.txt")
    assert (issue.code, issue.level) == ("unclaimed-file", "note")
    assert "Tue Nov 17" in issue.message
    assert found.hypotheses == undamaged.investigation.hypotheses


def test_wrong_extension_is_read_all_the_same(small_copy: Path, undamaged: Known) -> None:
    folder = small_copy / LEAF
    (folder / "gnmic.jsonl.gz").rename(folder / "gnmic.txt.gz")
    (folder / "syslog.log").rename(folder / "messages.json")
    found = investigated(small_copy)
    assert [row.probability for row in found.hypotheses] == [
        row.probability for row in undamaged.investigation.hypotheses
    ]


# -- what is missing -------------------------------------------------------------------------------------------------
def test_missing_topology_is_said_and_blames_nobody_wrongly(small_copy: Path, undamaged: Known) -> None:
    shutil.rmtree(small_copy / "intended")
    for path in small_copy.glob("switches/*/show_lldp_neighbors_*"):
        path.unlink()
    found = investigated(small_copy)
    assert found.incident.onset == undamaged.investigation.incident.onset
    (issue,) = (one for one in found.read_issues if one.code == "no-topology")
    assert "LLDP" in issue.message
    (queues,) = (row for row in found.coverage if row.metric == "queue_tx_bytes")
    assert "no link is known" in queues.reason
    assert {row.cause for row in found.hypotheses if row.status == "supported"} <= {undamaged.top.cause}


def test_telemetry_of_the_switch_missing_rules_nothing_out_there(small_copy: Path) -> None:
    shutil.rmtree(small_copy / LEAF)
    found = investigated(small_copy)
    for row in found.hypotheses:
        if row.status == "ruled_out":
            findings = {finding.id: finding for finding in found.findings}
            files = [fact.file for one in row.evidence_against for fact in findings[one.finding].facts]
            assert files and not [file for file in files if file.startswith(LEAF)]
    assert "path.ecmp_redistribution" not in {
        row.cause
        for row in found.hypotheses
        if row.status == "ruled_out" and any(place.device == "leaf-01" for place in row.places)
    }


def test_job_that_is_not_in_the_bundle_is_a_usage_error(small_bundle: Path) -> None:
    result = run(small_bundle, "--job", "run-9999")
    assert result.exit_code == 2
    assert "run-9999" in result.stderr
    assert "small-run" in result.stderr
    assert result.stdout == ""


@pytest.mark.parametrize("told_by", ["option", "incident.yaml"])
def test_window_outside_the_data_is_said_and_the_data_used(told_by: str, small_copy: Path, undamaged: Known) -> None:
    if told_by == "option":
        found = investigated(small_copy, "--window", "2026-11-18T20:15:00Z/2026-11-18T20:20:00Z")
    else:
        edit_file(small_copy / MANIFEST, lambda text: text.replace("2026-11-17T", "2026-11-18T"))
        found = investigated(small_copy)
    (issue,) = (one for one in found.read_issues if one.code == "window-outside-data")
    assert "2026-11-18" in issue.message and "2026-11-17" in issue.message
    assert found.hypotheses[0].cause == undamaged.top.cause


# -- samples that are not as they should be --------------------------------------------------------------------------
def gnmic_lines(bundle: Path) -> list[str]:
    return gzip.decompress((bundle / LEAF / "gnmic.jsonl.gz").read_bytes()).decode().splitlines()


def write_gnmic(bundle: Path, lines: list[str]) -> None:
    text = "".join(f"{line}\n" for line in lines)
    (bundle / LEAF / "gnmic.jsonl.gz").write_bytes(gzip.compress(text.encode(), mtime=0))


def restarted(lines: list[str], port: str, at_nanoseconds: int) -> list[str]:
    """The counters of a port begin again at 0 from the first sample after a time on."""
    base: dict[str, int] = {}
    changed = []
    for line in lines:
        events = json.loads(line)
        for event in events:
            tags = event["tags"]
            if event["timestamp"] < at_nanoseconds or port not in tags.values():
                continue
            for name, value in event["values"].items():
                if isinstance(value, str) and value.isdigit() and "max-queue-len" not in name:
                    key = f"{name} {sorted(tags.items())}"
                    base.setdefault(key, int(value))
                    event["values"][name] = str(int(value) - base[key])
        changed.append(json.dumps(events, separators=(",", ":")))
    return changed


@pytest.mark.parametrize("second", [60, 210], ids=["before the onset", "after the onset"])
def test_counter_reset_in_the_window_is_no_traffic(second: int, small_copy: Path, undamaged: Known) -> None:
    lines = gnmic_lines(small_copy)
    start = json.loads(lines[0])[0]["timestamp"]
    write_gnmic(small_copy, restarted(lines, "Ethernet12", start + second * 10**9))
    found = investigated(small_copy)
    assert_same_verdict(found, undamaged)
    for finding in found.findings:
        assert finding.numbers.observed is None or finding.numbers.observed >= 0 or finding.numbers.unit == "dBm"
    resets = [issue for issue in found.read_issues if issue.code == "counter-reset"]
    assert [issue.file for issue in resets if issue.file != f"{LEAF}/gnmic.jsonl.gz"] == []
    assert resets and all(issue.record for issue in resets)


def test_duplicate_and_unordered_samples_change_nothing(small_copy: Path, undamaged: Known) -> None:
    lines = gnmic_lines(small_copy)
    lines += lines[::5]
    random.Random(2).shuffle(lines)
    write_gnmic(small_copy, lines)
    steps = (small_copy / STEPS).read_text().splitlines()
    (small_copy / STEPS).write_text("\n".join([*steps[::-1], *steps[:9]]) + "\n")
    found = investigated(small_copy)
    assert_same_verdict(found, undamaged)
    assert [row.probability for row in found.hypotheses] == pytest.approx(
        [row.probability for row in undamaged.investigation.hypotheses], rel=1e-5
    )


# -- clocks ----------------------------------------------------------------------------------------------------------
def test_times_with_different_zones_are_the_same_moments(small_copy: Path, undamaged: Known) -> None:
    for path in small_copy.glob("switches/leaf-*/syslog.log"):
        edit_file(path, lambda text: text.replace("T20:", "T15:").replace("+00:00", "-05:00"))
    edit_file(small_copy / STEPS, lambda text: text.replace("T20:", "T21:").replace('Z"', '+01:00"'))
    found = investigated(small_copy)
    assert_same_verdict(found, undamaged)
    assert [row.probability for row in found.hypotheses] == [
        row.probability for row in undamaged.investigation.hypotheses
    ]


def test_times_without_a_zone_take_the_declared_one_and_are_flagged(small_copy: Path, undamaged: Known) -> None:
    edit_file(small_copy / MANIFEST, lambda text: text.replace("time_zone: UTC", "time_zone: Europe/Berlin"))
    edit_file(small_copy / STEPS, lambda text: text.replace("T20:", "T21:").replace('Z"', '"'))
    found = investigated(small_copy)
    assert_same_verdict(found, undamaged)
    (issue,) = issues_of(found, STEPS)
    assert issue.code == "assumed-time-zone"
    assert "Europe/Berlin" in issue.message


def test_zone_of_one_source_that_is_wrong_is_noticed_and_not_believed(small_copy: Path) -> None:
    edit_file(small_copy / STEPS, lambda text: text.replace("T20:", "T14:"))
    found = investigated(small_copy)
    assert found.root_causes == ()
    (issue,) = issues_of(found, STEPS)
    assert issue.code == "too-few-steps"
    assert "unknown" in found.summary and "No slowdown" not in found.summary


def test_damaged_members_of_a_host_archive_are_named(small_copy: Path, undamaged: Known) -> None:
    archive = small_copy / "hosts/gpu-worker-002.tar.gz"
    edit_members(archive, lambda name, text: text[: len(text) // 3] if "/ethtool_-i/" in name else text)
    edit_members(archive, lambda name, text: "" if name.endswith("ip_-j_link.json") else text)
    found = investigated(small_copy)
    assert_same_verdict(found, undamaged)
    assert [issue.code for issue in issues_of(found, "hosts/gpu-worker-002.tar.gz/gpu-worker-002/ip_-j_link.json")] == [
        "empty-file"
    ]
