"""The investigation as it is shown: what is cited exists, ids are unique, sentences say what is known."""

from __future__ import annotations

import re
from dataclasses import replace
from functools import cache
from typing import Literal

import pytest
from fabrics import (
    JOB,
    ONSET,
    START,
    counter,
    gauge,
    grouped,
    observe,
    origin,
    reading,
    series,
    shipped,
    slow_job,
    watched,
)

from causeline.engine.facts import Event, EventKind, Fact, Series
from causeline.engine.investigate import examine
from causeline.engine.places import Places
from causeline.engine.reflection.to_read import ToRead
from causeline.engine.results import Investigation
from causeline.engine.scope import Scope

Story = Literal["redistribution", "healthy", "alert", "bare"]
HOT = "leaf-1:Ethernet2"
STORIES: tuple[Story, ...] = ("redistribution", "healthy", "alert", "bare")


def drained() -> list[Fact]:
    """A session of the group of leaf-1 falls at the onset; the other member gets its load, and its queue fills."""
    lost = Event(
        EventKind.SESSION_DOWN, "leaf-1", "Ethernet1", ONSET - 5, "BGP session down", origin("syslog", "line 9")
    )
    return [
        *(fact for fact in grouped() if getattr(fact, "metric", "") != "tx_bytes"),
        *watched(skip=(f"{HOT}:3",)),
        lost,
        counter("leaf-1:Ethernet1", "tx_bytes", 1e9, 1e6),
        counter(HOT, "tx_bytes", 1e9, 4e10),
        gauge(f"{HOT}:3", "queue_peak_bytes", 1e5, 6e6),
        counter(f"{HOT}:3", "ecn_marked_packets", 1, 5000),
        counter(f"{HOT}:3", "pfc_rx_pause_us", 1, 1),
    ]


@cache
def told(story: Story) -> Investigation:
    facts = {
        "redistribution": [*drained(), *slow_job()],
        "healthy": [*grouped(), *watched()],
        "alert": drained(),
        "bare": slow_job(),
    }[story]
    return examine(reading(facts, onset=ONSET if story == "alert" else None), shipped()).investigation


@pytest.mark.parametrize("story", STORIES)
def test_ids_are_unique_and_whatever_is_cited_exists(story: Story) -> None:
    shown = told(story)
    findings = [finding.id for finding in shown.findings]
    hypotheses = [hypothesis.id for hypothesis in shown.hypotheses]
    assert len(findings) == len(set(findings))
    assert len(hypotheses) == len(set(hypotheses))
    cited = {weighed.finding for h in shown.hypotheses for weighed in (*h.evidence_for, *h.evidence_against)}
    cited |= {finding for link in shown.chain for finding in link.findings}
    cited |= {entry.finding for entry in shown.timeline if entry.finding}
    cited |= {impact.finding for impact in shown.impact if impact.finding}
    cited |= {finding for one in shown.sensitivity for finding in one.findings}
    assert cited == set(findings)
    named = {*shown.root_causes, *(m for tie in shown.tie_classes for m in tie.members)}
    named |= {trigger for h in shown.hypotheses for trigger in h.triggered_by}
    named |= {h for impact in shown.impact for h in impact.share_explained}
    assert named <= set(hypotheses)
    assert {h.tie_class for h in shown.hypotheses} - {None} == {tie.id for tie in shown.tie_classes}


@pytest.mark.parametrize("story", STORIES)
def test_every_finding_rests_on_a_record_that_can_be_read_again(story: Story) -> None:
    for finding in told(story).findings:
        assert finding.facts, finding.statement
        for fact in finding.facts:
            assert fact.file
            assert fact.record
            assert fact.excerpt == f"{fact.file} at {fact.record}"


@pytest.mark.parametrize("story", STORIES)
def test_evidence_for_and_against_is_weighed_heaviest_first(story: Story) -> None:
    for hypothesis in told(story).hypotheses:
        assert all(weighed.weight > 0 for weighed in hypothesis.evidence_for)
        assert all(weighed.weight < 0 for weighed in hypothesis.evidence_against)
        for side in (hypothesis.evidence_for, hypothesis.evidence_against):
            weights = [abs(weighed.weight) for weighed in side]
            assert weights == sorted(weights, reverse=True)


def test_a_root_cause_names_the_finding_it_hangs_on() -> None:
    shown = told("redistribution")
    (grounds,) = shown.sensitivity
    assert (grounds.hypothesis,) == shown.root_causes
    (lost,) = (finding for finding in shown.findings if finding.id == grounds.finding)
    assert lost.sign == "ecmp_event"
    assert f"Without {lost.id} " in grounds.statement
    assert "Without H1 the slowdown would not have happened" in grounds.statement
    assert grounds.hinges[0].status == "possible"


@pytest.mark.parametrize("story", STORIES)
def test_next_checks_are_told_apart_and_say_what_they_are_expected_to_tell(story: Story) -> None:
    checks = told(story).next_checks
    assert len({check.read for check in checks}) == len(checks)
    for cost in ("scraped", "command", "visit"):
        bits = [round(check.expected_bits or 0.0, 9) for check in checks if check.cost == cost]
        assert all(gain >= 0.0 for gain in bits)
        assert bits == sorted(bits, reverse=True)


@pytest.mark.parametrize("story", STORIES)
def test_each_status_says_why(story: Story) -> None:
    for hypothesis in told(story).hypotheses:
        assert hypothesis.reason
        if hypothesis.status == "ruled_out":
            assert hypothesis.evidence_against
        if hypothesis.status == "not_assessable":
            assert hypothesis.reason.startswith(("not read: ", "left open: read again")) or not hypothesis.missing


@pytest.mark.parametrize(
    ("sign", "place", "bursts"),
    [
        ("queue_depth", "queue:leaf-2/Ethernet1/3", "leaf-2:Ethernet1:3"),
        ("lane_down", "link:leaf-2/Ethernet1/spine-1/Ethernet2", "spine-1:Ethernet2"),
    ],
)
def test_a_reading_that_leaves_the_answer_open_is_asked_for_again(sign: str, place: str, bursts: str) -> None:
    test = shipped().signs[sign].signal
    assert test is not None
    at = [(START + 10.0 * n, 1e5 if n % 5 else 6e6) for n in range(120)]
    for facts, again in (([], False), ([series(bursts, test.metric, at)], True)):
        observed = observe([*grouped(), *facts])
        said = ToRead(shipped(), observed, Places(observed))(sign, Scope.parse(place))
        assert said.startswith("again, finer or longer: ") is again


@pytest.mark.parametrize("story", STORIES)
def test_the_json_reads_back_and_is_stable(story: Story) -> None:
    text = told(story).to_json()
    assert Investigation.from_json(text).to_json() == text
    assert not re.search(r"\b(NaN|Infinity)\b", text)


def test_the_cause_is_named_with_its_place_and_what_it_did() -> None:
    shown = told("redistribution")
    (root,) = [h for h in shown.hypotheses if h.id in shown.root_causes]
    assert (root.cause, root.scope, root.role) == ("path.ecmp_redistribution", "ecmp:leaf-1/uplinks", "root")
    assert root.title == "ECMP redistribution -> TC3 congestion on leaf-1 Et2"
    assert root.title in shown.summary
    assert "rose 50 % at" in shown.summary
    assert shown.impact[0].share_explained[root.id] == root.share
    assert (shown.impact[0].job, shown.impact[0].tenant) == (JOB, "research")


def test_the_chain_leads_from_the_job_to_the_queue() -> None:
    scopes = [link.scope for link in told("redistribution").chain]
    assert scopes == [f"job:{JOB}", "rail:mlx5_0", "device:leaf-1", "queue:leaf-1/Ethernet2/3"]


def test_the_timeline_is_in_order_and_holds_the_event_and_the_onset() -> None:
    shown = told("redistribution")
    times = [entry.ts for entry in shown.timeline]
    assert times == sorted(times)
    said = [entry.statement for entry in shown.timeline]
    assert any("BGP session down" in text for text in said)
    assert any(text.startswith("onset:") for text in said)


def test_a_healthy_fabric_has_no_cause() -> None:
    shown = told("healthy")
    assert shown.root_causes == ()
    assert shown.impact == ()
    assert all(h.explains is None and h.share == 0 for h in shown.hypotheses)
    assert not [h.title for h in shown.hypotheses if h.status == "supported"]


def test_an_alert_without_a_slow_job_tells_anomalies_only() -> None:
    shown = told("alert")
    assert shown.root_causes == ()
    supported = [h for h in shown.hypotheses if h.status == "supported"]
    assert {h.role for h in supported} <= {"co_occurring"}
    assert shown.hypotheses[0].cause == "path.ecmp_redistribution"
    assert shown.hypotheses[0].probability > 0.5


def test_with_step_times_alone_nothing_in_the_network_is_ruled_out() -> None:
    shown = told("bare")
    assert shown.root_causes == ()
    assert {h.status for h in shown.hypotheses} <= {"not_assessable", "possible"}
    assert any(issue.code == "no-topology" for issue in shown.read_issues)


def test_facts_in_any_order_give_the_same_bytes() -> None:
    facts = [*drained(), *slow_job()]
    assert examine(reading(facts[::-1]), shipped()).investigation.to_json() == told("redistribution").to_json()


def test_facts_of_elsewhere_do_not_move_the_verdict() -> None:
    """Another fabric's device that no link of this one leads to."""
    more = counter("storage-1:Ethernet1", "fcs_errors", 0, 500)
    shown = examine(reading([*drained(), *slow_job(), more]), shipped()).investigation
    expected = told("redistribution")
    assert [(h.id, h.status, h.probability) for h in shown.hypotheses] == [
        (h.id, h.status, h.probability) for h in expected.hypotheses
    ]


@pytest.mark.parametrize("onset", [None, ONSET])
def test_a_single_sample_is_enough_to_say_that_nothing_is_known(onset: float | None) -> None:
    """A window without length: no rate, no hazard, no verdict, and no failure either."""
    one = series("leaf-1:Ethernet1", "optic_rx_dbm", [(ONSET, -3.0)])
    asked = reading([*grouped(), one], onset=onset)
    facts = [fact for fact in asked.facts if not isinstance(fact, Series) or fact is one]
    lone = replace(asked, facts=tuple(facts), incident=replace(asked.incident, window=None))
    shown = examine(lone, shipped()).investigation
    assert shown.root_causes == ()
    assert not [h.title for h in shown.hypotheses if h.status == "supported"]
