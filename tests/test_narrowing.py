"""Where places are coupled too closely to be summed at once, a narrower network answers and says what it lacks."""

from __future__ import annotations

import pytest
from fabrics import reading, shipped, slow_job
from test_narrative import drained

from causeline.engine.counterfactual import needed
from causeline.engine.errors import InferenceError
from causeline.engine.frontier import plan as frontier_plan
from causeline.engine.frontier.sweep import solve
from causeline.engine.investigate import Case, conclude, gather
from causeline.engine.network import Likelihood, Network, Node, NodeKind


def concluded(width: int, monkeypatch: pytest.MonkeyPatch) -> Case:
    evidence = gather(reading([*drained(), *slow_job()]), shipped())
    monkeypatch.setattr(frontier_plan, "WIDTH_LIMIT", width)
    return conclude(evidence, shipped(), is_quick=True)


def codes(case: Case) -> set[str]:
    return {issue.code for issue in case.investigation.read_issues}


def test_what_can_be_summed_at_once_is(monkeypatch: pytest.MonkeyPatch) -> None:
    assert not codes(concluded(18, monkeypatch)) & {"pauses-weighed-alone", "findings-left-out"}


def test_findings_that_couple_too_many_places_are_left_out_and_named(monkeypatch: pytest.MonkeyPatch) -> None:
    whole, narrow = concluded(18, monkeypatch), concluded(3, monkeypatch)
    (issue,) = [one for one in narrow.investigation.read_issues if one.code == "findings-left-out"]
    gone = set(whole.compiled.network.evidence) - set(narrow.compiled.network.evidence)
    assert gone and all(sign in issue.message for sign in gone)
    rows = [row for row in narrow.investigation.hypotheses if row.scope == "ecmp:leaf-1/uplinks"]
    assert rows and all(row.status in ("supported", "possible") for row in rows)


def test_where_nothing_is_left_to_leave_out_it_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(InferenceError, match="no finding couples them"):
        concluded(-1, monkeypatch)


def test_a_twin_that_couples_too_many_places_is_not_told(monkeypatch: pytest.MonkeyPatch) -> None:
    links = tuple((f"effect {n}", 0.5) for n in range(6))
    nodes = (
        Node("cause", NodeKind.CAUSE, "here", 0.1),
        *(Node(f"effect {n}", NodeKind.CAUSE, f"there {n}", 0.1, (("cause", 0.5),)) for n in range(6)),
        Node("slow", NodeKind.SIGN, None, 0.02, links),
    )
    network = Network(nodes, {"slow": Likelihood(0.0, 1.0)}, "slow")
    posterior = solve(network)
    told = needed(network, posterior, ("cause",))
    assert told is not None and 0 < told < 1
    monkeypatch.setattr(frontier_plan, "WIDTH_LIMIT", 1)
    assert needed(network, posterior, ("cause",)) is None
