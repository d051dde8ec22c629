"""A network that differs in a few numbers from one that is solved: its posterior is that of a solution made anew."""

from __future__ import annotations

import random
from collections.abc import Mapping
from dataclasses import replace

import pytest
from brute_force import ABSENT, PRESENT, random_network
from test_lifting import fabric

from causeline.engine.errors import InferenceError
from causeline.engine.frontier.change import changed_plan
from causeline.engine.frontier.sweep import Posterior, any_of, solve, symptom_shares
from causeline.engine.network import Likelihood, Network, Node, NodeKind


def with_evidence(network: Network, changes: Mapping[str, Likelihood | None]) -> Network:
    seen = {**network.evidence, **changes}
    return replace(network, evidence={name: told for name, told in seen.items() if told is not None})


def changed(network: Network, dice: random.Random) -> Network:
    """The network with a finding lost, one turned over, another prior and grade, and a further sign that is absent."""
    seen = sorted(network.evidence)
    lost, other = dice.choice(seen), dice.choice(seen)
    was = network.evidence[other]
    turned = Likelihood.of(tuple(reversed(was.by_level))) if was.off < 1.0 else was
    network = with_evidence(network, {other: turned, lost: None})
    cause = dice.choice([node for node in network.nodes if node.kind is NodeKind.CAUSE])
    sign = dice.choice([node for node in network.nodes if node.kind is NodeKind.SIGN and node.links])
    graded = tuple((parent, p * 0.7) for parent, p in sign.links)
    swapped = {
        cause.id: replace(cause, leak=cause.leak / 3),
        sign.id: sign if sign.higher else replace(sign, links=graded),
    }
    unread = Node("unread", NodeKind.SIGN, None, 0.1, ((cause.id, 0.6),))
    nodes = (*(swapped.get(node.id, node) for node in network.nodes), unread)
    return replace(network, nodes=nodes, evidence={**network.evidence, "unread": ABSENT})


def assert_same(found: Posterior, anew: Posterior) -> None:
    assert found.log_evidence == pytest.approx(anew.log_evidence, rel=1e-12, abs=1e-12)
    assert dict(found.probability) == pytest.approx(dict(anew.probability), rel=1e-9, abs=0)


@pytest.mark.parametrize("seed", range(40))
def test_a_changed_network_is_solved_as_if_anew(seed: int) -> None:
    network = random_network(seed)
    other = changed(network, random.Random(seed))
    try:
        before, anew = solve(network), solve(other)
    except InferenceError:
        pytest.skip("impossible evidence")
    found = solve(other, before)
    assert_same(found, anew)
    assert_same(solve(network, found), before)
    if other.symptom is not None and other.symptom in {node.id for node in other.nodes}:
        shares = symptom_shares(other, found)
        assert dict(shares.by_cause) == pytest.approx(dict(symptom_shares(other, anew).by_cause), rel=1e-9, abs=1e-15)


@pytest.mark.parametrize("seed", range(8))
def test_places_that_were_alike_are_told_apart_where_one_changes(seed: int) -> None:
    network = fabric(seed, (9, 8, 30))
    before = solve(network)
    port = "port:2/007"
    fault = next(node for node in network.nodes if node.id == f"fault@{port}")
    nodes = tuple(replace(node, leak=0.4) if node is fault else node for node in network.nodes)
    other = replace(with_evidence(network, {f"marks@{port}": None, "step": PRESENT}), nodes=nodes)
    plan = changed_plan(before.sweep.plan, other)
    assert plan is not None
    assert len(plan[0].steps) == len(before.sweep.plan.steps) + 1
    assert len([old for old in plan[1] if old is not None]) >= len(before.sweep.plan.steps) - 3
    found, anew = solve(other, before), solve(other)
    assert_same(found, anew)
    groups = {"two": [f"fault@{port}", "fault@port:0/001"], "one": [f"fault@{port}"]}
    assert any_of(other, groups, found) == pytest.approx(any_of(other, groups, anew), rel=1e-9)


def test_what_the_plan_has_no_room_for_is_planned_anew() -> None:
    network = fabric(3, (9, 8))
    before = solve(network)
    joining = Node("both", NodeKind.SIGN, None, 0.1, (("fault@port:0/001", 0.5), ("fault@port:1/001", 0.5)))
    other = replace(network, nodes=(*network.nodes, joining), evidence={**network.evidence, "both": PRESENT})
    assert changed_plan(before.sweep.plan, other) is None
    assert_same(solve(other, before), solve(other))
