"""A storm at a host the job does not use: real, and blamed for the slowdown only where its pauses reach the job."""

from __future__ import annotations

from functools import cache

from fabrics import HOSTS, JOB, cable, counter, gauge, placement, plan, reading, shipped, slow_job, watched

from causeline.engine.facts import Fact
from causeline.engine.investigate import Case, examine

STORM = "nic.pause_storm@nic:host-9/mlx5_0"


@cache
def stormy(*, reaches_job: bool, slow: bool) -> Case:
    """Leaf-1 Ethernet19 is paused by host-9 all the time; `reaches_job`: its queue is full and the spines wait."""
    idle = cable("host-9:mlx5_0", "leaf-1:Ethernet19", role="leaf-host")
    facts: list[Fact] = [*(fact for fact in plan() if fact != placement()), idle, placement(HOSTS[:3])]
    held = ("spine-1:Ethernet1:3", "spine-2:Ethernet1:3") if reaches_job else ()
    facts += watched(skip=held)
    facts += [counter("leaf-1:Ethernet19:3", "pfc_rx_pause_us", 0, 1e6)]
    facts += [gauge("leaf-1:Ethernet19:3", "queue_peak_bytes", 0, 6e6 if reaches_job else 0)]
    facts += [gauge(queue, "queue_peak_bytes", 1e5, 4e6) for queue in held]
    facts += [counter(queue, "pfc_rx_pause_us", 1, 9e5) for queue in held]
    facts += [counter("host-9:mlx5_0:3", "pfc_tx_pause_us", 0, 1e6)]
    if slow:
        facts += slow_job()
    return examine(reading(facts), shipped())


def test_a_storm_on_an_idle_host_is_told_and_not_blamed() -> None:
    case = stormy(reaches_job=False, slow=True)
    assert case.evidence.observed.job == JOB
    assert not case.compiled.hypotheses[STORM].touches_job
    (verdict,) = (v for v in case.judgement.listed if v.id == STORM)
    assert verdict.share == 0
    assert verdict.role in (None, "co_occurring")
    assert "pause_duty_host" in {r.finding.sign for r in verdict.relevances if r.finding.state == "present"}
    assert case.investigation.root_causes == ()


def test_a_storm_whose_pauses_reach_the_job_is_blamed() -> None:
    case = stormy(reaches_job=True, slow=True)
    assert case.compiled.hypotheses[STORM].touches_job
    (verdict,) = (v for v in case.judgement.listed if v.id == STORM)
    assert (verdict.status, verdict.role) == ("supported", "root")


def test_without_a_slow_job_the_fabric_gives_the_onset_and_nothing_is_a_root() -> None:
    shown = stormy(reaches_job=True, slow=False).investigation
    assert shown.incident.onset_source == "telemetry"
    assert (shown.root_causes, shown.unknown.share, shown.impact) == ((), 0, ())
    assert all(h.explains is None and h.share == 0 for h in shown.hypotheses)
    assert {h.role for h in shown.hypotheses} <= {None, "co_occurring"}
    assert any(entry.statement.startswith("onset: ") for entry in shown.timeline)


def test_places_that_the_job_does_not_cross_and_that_are_calm_have_no_hypothesis() -> None:
    hypotheses = stormy(reaches_job=False, slow=True).compiled.hypotheses.values()
    away = {h.scope.device for h in hypotheses if not h.touches_job}
    assert away <= {"host-9", "leaf-1"}
