"""The committed bundles, from raw files to the verdict, against their truth; and what INC-4127 must show in detail."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest
from bundle_edits import LATER, rename, renamed_later, rewritten_bundle
from investigated import INC_4127, INCIDENTS, QUIET, investigation_of, rows_of, whole, without_files

from causeline import adapters, knowledge
from causeline.adapters.archives import Bundle
from causeline.engine.facts import Reading
from causeline.engine.investigate import investigate
from causeline.engine.results import Hypothesis, Investigation

BUNDLES = (*INCIDENTS, *QUIET)
TRUTHS = {bundle: json.loads((bundle / "truth.json").read_text()) for bundle in BUNDLES}
HARMFUL = [bundle for bundle in INCIDENTS if TRUTHS[bundle]["causes"]]
HARMLESS = [bundle for bundle in BUNDLES if not TRUTHS[bundle]["causes"]]


def places_of(told: Mapping[str, Any]) -> set[tuple[str, str | None]]:
    return {(place["device"], place["port"]) for place in told["places"]}


def at(investigation: Investigation, cause: str, device: str, port: str | None = None) -> Hypothesis:
    """The one hypothesis of a cause that has this place."""
    (found,) = (
        one for one in rows_of(investigation, cause) if any((p.device, p.port) == (device, port) for p in one.places)
    )
    return found


# -- every bundle against its truth ----------------------------------------------------------------------------------
@pytest.mark.parametrize("bundle", HARMFUL, ids=lambda path: path.name)
def test_root_cause_is_the_true_one_at_its_place(bundle: Path) -> None:
    investigation, (truth,) = whole(bundle).investigation, TRUTHS[bundle]["causes"]
    by_id = {one.id: one for one in investigation.hypotheses}
    roots = [by_id[root] for root in investigation.root_causes]
    assert roots, investigation.summary
    assert roots[0] == investigation.hypotheses[0]
    assert [one.cause for one in roots if one.cause not in truth["accept"]] == []
    assert {one.role for one in roots} == {"root"}
    named = {(place.device, port) for place in roots[0].places for port in (place.port, None)}
    assert places_of(truth) & named  # a true place without a port is the whole device
    assert investigation.unknown.share < 0.2


@pytest.mark.parametrize("bundle", INCIDENTS, ids=lambda path: path.name)
def test_nothing_real_is_ruled_out_where_it_is(bundle: Path) -> None:
    investigation, truth = whole(bundle).investigation, TRUTHS[bundle]
    acquitted = [
        row.title
        for told in truth["causes"] + truth["anomalies"]
        for row in investigation.hypotheses
        if row.cause in told["accept"] and row.status == "ruled_out" and row.count == 1
        if {(place.device, place.port) for place in row.places} & places_of(told)
    ]
    assert acquitted == []


@pytest.mark.parametrize("bundle", HARMLESS, ids=lambda path: path.name)
def test_where_no_job_is_harmed_there_is_no_root_cause(bundle: Path) -> None:
    investigation, real = whole(bundle).investigation, TRUTHS[bundle]["anomalies"]
    assert investigation.root_causes == ()
    assert investigation.impact == ()
    supported = [one for one in investigation.hypotheses if one.status == "supported"]
    assert len(supported) == len(real)
    for told, row in zip(real, supported, strict=True):
        assert row.cause in told["accept"]
        assert places_of(told) & {(place.device, place.port) for place in row.places}
        assert row.role == "co_occurring"


def test_what_set_a_deadlock_off_contributed() -> None:
    investigation = whole(INC_4127.with_name("inc-4131")).investigation
    by_id = {one.id: one for one in investigation.hypotheses}
    (root,) = (by_id[one] for one in investigation.root_causes)
    triggers = [by_id[one] for one in root.triggered_by]
    assert root.cause == "pfc.deadlock"
    assert ("path.ecmp_redistribution", "contributing") in {(one.cause, one.role) for one in triggers}


@pytest.mark.parametrize("status", ["ruled_out", "not_assessable"])
@pytest.mark.parametrize("bundle", BUNDLES, ids=lambda path: path.name)
def test_status_of_the_rivals_is_that_of_the_truth(bundle: Path, status: str) -> None:
    investigation, truth = whole(bundle).investigation, TRUTHS[bundle]
    rules = set(knowledge.load().causes)
    found = {
        row.title: (row.status, row.reason)
        for cause in sorted(rules.intersection(truth[status]))
        for row in rows_of(investigation, cause)
        if row.status != status
    }
    assert found == {}


@pytest.mark.parametrize("bundle", [one for one in HARMFUL if one.name != "inc-4129"], ids=lambda path: path.name)
def test_firmware_decoy_is_ruled_out(bundle: Path) -> None:
    row = at(whole(bundle).investigation, "nic.fw_regression", "gpu-worker-042", "mlx5_0")
    assert row.status == "ruled_out", row.reason


@pytest.mark.parametrize("bundle", BUNDLES, ids=lambda path: path.name)
def test_what_could_not_be_judged_says_what_to_read(bundle: Path) -> None:
    rows = [row for row in whole(bundle).investigation.hypotheses if row.status == "not_assessable"]
    assert rows
    assert [row.title for row in rows if not row.missing] == []


@pytest.mark.parametrize("bundle", BUNDLES, ids=lambda path: path.name)
def test_step_times_are_those_of_the_truth(bundle: Path) -> None:
    investigation, truth = whole(bundle).investigation, TRUTHS[bundle]
    measured = {impact.job: 100 * impact.change for impact in investigation.impact}
    assert sorted(measured) == sorted(truth["victim_jobs"])
    for job, change in measured.items():
        if truth["step_change_pct"][job] is not None:  # the job went on
            assert change == pytest.approx(truth["step_change_pct"][job], rel=0.1)


@pytest.mark.parametrize("bundle", BUNDLES, ids=lambda path: path.name)
def test_pgmpy_agrees(bundle: Path) -> None:
    """The check raises where it does not; here: it looked at something, the leading cause at least."""
    assert whole(bundle).cross_check.causes


# -- INC-4127 in detail ----------------------------------------------------------------------------------------------
@pytest.fixture(scope="module")
def reading() -> Reading:
    return adapters.read(INC_4127)


@pytest.fixture(scope="module")
def inc_4127() -> Investigation:
    return whole(INC_4127).investigation


def test_redistribution_on_leaf_07_is_the_root_cause(inc_4127: Investigation) -> None:
    top = inc_4127.hypotheses[0]
    assert (top.cause, top.status, top.role) == ("path.ecmp_redistribution", "supported", "root")
    assert ("leaf-07", "Ethernet12", 3) in {(place.device, place.port, place.queue) for place in top.places}
    assert top.share >= 0.80
    assert inc_4127.root_causes == (top.id,)
    assert (inc_4127.loop.verdict, inc_4127.domain.verdict) == ("path", "network")


def test_onset_is_found_although_the_bundle_does_not_name_it(inc_4127: Investigation) -> None:
    assert "onset" not in (INC_4127 / "incident.yaml").read_text()
    assert inc_4127.incident.onset is not None
    assert "2026-11-17T20:30:57" < inc_4127.incident.onset < "2026-11-17T20:31:03"


RIVALS = {
    "optic": ("phy.optic_degraded", "leaf-07", "Ethernet12"),
    "firmware": ("nic.fw_regression", "gpu-worker-042", "mlx5_0"),
}


@pytest.mark.parametrize("rival", RIVALS)
def test_rival_is_ruled_out_by_readings_with_a_record(inc_4127: Investigation, rival: str) -> None:
    assert_ruled_out_by_records(inc_4127, at(inc_4127, *RIVALS[rival]))


@pytest.mark.parametrize("cause", ["nic.pause_storm", "pfc.deadlock"])
def test_cause_is_ruled_out_everywhere_by_readings_with_a_record(inc_4127: Investigation, cause: str) -> None:
    for row in rows_of(inc_4127, cause):
        assert_ruled_out_by_records(inc_4127, row)


def assert_ruled_out_by_records(investigation: Investigation, row: Hypothesis) -> None:
    assert row.status == "ruled_out", row.reason
    findings = {finding.id: finding for finding in investigation.findings}
    against = [findings[one.finding] for one in row.evidence_against]
    assert against
    assert {finding.state for finding in against} <= {"present", "absent"}
    assert any(finding.numbers.observed is not None and finding.numbers.limit is not None for finding in against)
    assert all(finding.facts for finding in against), [finding.statement for finding in against if not finding.facts]


def test_firmware_cohort_of_one_host_is_too_small_to_judge(inc_4127: Investigation) -> None:
    row = at(inc_4127, *RIVALS["firmware"])
    read = [one for one in inc_4127.findings if (one.sign, one.scope) == ("fw_cohort", row.scope)]
    assert [one.state for one in read if one.state != "unknown"] == []
    assert "fw_cohort" in {one.sign for one in row.missing}


def test_every_record_a_finding_names_is_in_the_bundle(inc_4127: Investigation, reading: Reading) -> None:
    digests = {file.path: file.sha256 for file in reading.files}
    cited = {fact for finding in inc_4127.findings for fact in finding.facts}
    assert cited
    again = Bundle.open(INC_4127)
    for fact in cited:
        assert digests[fact.file] == fact.sha256
    evidence = {one.finding for row in inc_4127.hypotheses for one in (*row.evidence_for, *row.evidence_against)}
    for finding in inc_4127.findings:
        for fact in finding.facts if finding.id in evidence else ():
            assert again.content(fact.file) is not None, fact.file
            assert fact.record and fact.excerpt, fact
            assert reading.excerpt(fact.file, fact.record) == fact.excerpt


# -- what was not collected rules nothing out ------------------------------------------------------------------------
def is_dom(path: str) -> bool:
    return "_transceiver_dom_" in path or "/ethtool_--json_-m/" in path


def is_fec(path: str) -> bool:
    return "_phy_detail_" in path


def test_optic_is_not_assessable_without_dom_and_fec(reading: Reading) -> None:
    investigation = investigate(
        without_files(reading, lambda path: is_dom(path) or is_fec(path)), knowledge.load(), is_quick=True
    )
    assert investigation.hypotheses[0].cause == "path.ecmp_redistribution"
    rows = rows_of(investigation, "phy.optic_degraded")
    assert {row.status for row in rows} == {"not_assessable"}
    missing = " ".join(one.read for row in rows for one in row.missing)
    assert "transceiver" in missing and "phy" in missing


@pytest.fixture(scope="module")
def small_reading(small_bundle: Path) -> Reading:
    return adapters.read(small_bundle)


@pytest.mark.parametrize("is_left_out", [is_dom, is_fec], ids=["no DOM", "no FEC"])
def test_optic_is_excluded_only_by_what_was_read(small_reading: Reading, is_left_out: Callable[[str], bool]) -> None:
    investigation = investigate(without_files(small_reading, is_left_out), knowledge.load(), is_quick=True)
    findings = {finding.id: finding for finding in investigation.findings}
    row = at(investigation, "phy.optic_degraded", "leaf-01", "Ethernet12")
    assert row.status in ("possible", "ruled_out")
    assert row.missing
    read = [findings[one.finding] for one in row.evidence_against]
    assert read and {finding.state for finding in read} <= {"present", "absent"}
    assert [fact.file for finding in read for fact in finding.facts if is_left_out(fact.file)] == []


def test_degraded_optic_is_never_excluded_for_lack_of_dom() -> None:
    """With frames lost at its receiver, a true cause may become unsure without DOM, never ruled out."""
    reading = adapters.read(INC_4127.with_name("inc-4128"))
    investigation = investigate(without_files(reading, is_dom), knowledge.load(), is_quick=True)
    assert at(investigation, "phy.optic_degraded", "leaf-07", "Ethernet12").status in ("supported", "possible")
    assert investigation.root_causes in ((), (at(investigation, "phy.optic_degraded", "leaf-07", "Ethernet12").id,))


# -- the verdict depends on the telemetry alone ----------------------------------------------------------------------
def test_false_truth_and_another_order_of_facts_change_no_byte(
    inc_4127: Investigation, reading: Reading, tmp_path: Path
) -> None:
    copy = shutil.copytree(INC_4127, tmp_path / "inc-4127")
    lie = (copy / "truth.json").read_text().replace("leaf-07", "leaf-03").replace("path.ecmp_", "host.gpu_")
    (copy / "truth.json").write_text(lie)
    misled = adapters.read(copy)
    assert [fact for fact in misled.facts if fact.provenance.source == "truth.json"] == []
    shuffled = replace(misled, facts=misled.facts[::-1])
    assert investigate(shuffled, knowledge.load()).to_json() == inc_4127.to_json()


def test_verdict_moves_along_with_names_and_hour(inc_4127: Investigation, tmp_path: Path) -> None:
    moved = investigation_of(rewritten_bundle(INC_4127, tmp_path / "moved", renamed_later))
    assert inc_4127.incident.onset is not None and moved.incident.onset is not None
    assert datetime.fromisoformat(moved.incident.onset) - datetime.fromisoformat(inc_4127.incident.onset) == LATER
    assert [one.cause for one in moved.hypotheses[:1]] == ["path.ecmp_redistribution"]
    assert ("pod-a-tor43", "Ethernet52", 3) in {(p.device, p.port, p.queue) for p in moved.hypotheses[0].places}
    before, after = verdicts(inc_4127, rename), verdicts(moved, str)
    assert {key: row.status for key, row in after.items()} == {key: row.status for key, row in before.items()}
    assert {key: row.role for key, row in after.items()} == {key: row.role for key, row in before.items()}
    for key, row in after.items():
        assert row.probability == pytest.approx(before[key].probability, rel=2e-6), key
        assert row.share == pytest.approx(before[key].share, rel=2e-6), key


Key = tuple[str, int, frozenset[tuple[str, str, int | None]]]


def verdicts(investigation: Investigation, other_name: Callable[[str], str]) -> dict[Key, Hypothesis]:
    """Hypotheses by cause, count and places under their other names."""
    return {
        (
            row.cause,
            row.count,
            frozenset((other_name(place.device), other_name(place.port or ""), place.queue) for place in row.places),
        ): row
        for row in investigation.hypotheses
    }
