"""What would be left without a cause equals a twin network by enumeration."""

from __future__ import annotations

from dataclasses import replace

import pytest
from brute_force import PRESENT, needed_causes, random_network
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from causeline.engine.counterfactual import effects, explained, needed, twin
from causeline.engine.errors import InferenceError
from causeline.engine.frontier.sweep import solve, symptom_shares
from causeline.engine.network import Network, Node, NodeKind

CAUSE, MECHANISM, SIGN = NodeKind.CAUSE, NodeKind.MECHANISM, NodeKind.SIGN


def causes_of(network: Network) -> list[str]:
    return [node.id for node in network.nodes if node.kind is CAUSE]


@settings(max_examples=100, deadline=None, derandomize=True)
@given(seed=st.integers(0, 10**6), picks=st.integers(1, 63))
def test_needed_equals_a_twin_network_by_enumeration(seed: int, picks: int) -> None:
    network = random_network(seed, hidden_limit=8)
    try:
        posterior = solve(network)
    except InferenceError:
        assume(False)
    without = [cause for n, cause in enumerate(causes_of(network)) if picks >> n & 1][:3] or causes_of(network)[:1]
    assert needed(network, posterior, without) == pytest.approx(needed_causes(network, without), rel=1e-9, abs=1e-12)


def flap(trigger: float, own: float = 0.0) -> Network:
    """A flap that sets off an uneven spread, which alone, but for the flap's own link, slows the job."""
    links = (("spread", 0.9), ("flap", own)) if own else (("spread", 0.9),)
    nodes = (
        Node("flap", CAUSE, "link", 0.01),
        Node("spread", CAUSE, "group", 0.001, (("flap", trigger),)),
        Node("queue", MECHANISM, "group", 0.001, (("spread", 0.95),)),
        Node("down", SIGN, "link", 0.001, (("flap", 0.99),)),
        Node("deep", SIGN, "group", 0.01, (("queue", 0.95),)),
        Node("step", SIGN, None, 0.02, links),
    )
    return Network(nodes, dict.fromkeys(("down", "deep", "step"), PRESENT), "step")


def test_a_cause_that_acts_only_through_its_effect_explains_what_the_effect_did_because_of_it() -> None:
    network = flap(trigger=0.5)
    posterior = solve(network)
    found = explained(network, posterior)
    assert found.by_cause["flap"] == symptom_shares(network).by_cause["flap"] == 0.0
    assert found.needed("flap") == pytest.approx(needed_causes(network, ["flap"]), rel=1e-9)
    assert found.needed("flap") > 0.9
    assert found.needed("spread") == found.by_cause["spread"] == pytest.approx(needed_causes(network, ["spread"]))
    # The rarer it sets the spread off, the likelier the spread came by itself.
    assert explained(flap(0.001), solve(flap(0.001))).needed("flap") < 0.6


def test_what_effects_did_adds_to_the_own_link() -> None:
    network = flap(trigger=0.5, own=0.3)
    found = explained(network, solve(network))
    assert 0 < found.by_cause["flap"] < found.needed("flap")
    assert found.needed("flap") == pytest.approx(needed_causes(network, ["flap"]), rel=1e-9)


def test_a_cause_hardly_present_is_told_by_its_own_link() -> None:
    nodes = tuple(replace(node, leak=1e-9) if node.id == "flap" else node for node in flap(0.5).nodes)
    network = replace(flap(0.5), nodes=nodes)
    assert not explained(network, solve(network)).through


def test_effects_are_what_lies_between_a_cause_and_the_symptom() -> None:
    assert effects(flap(0.5)) == {"flap": frozenset({"spread"})}


def test_only_causes_are_taken_out_and_only_with_a_symptom() -> None:
    with pytest.raises(InferenceError, match="queue is no cause"):
        twin(flap(0.5), ["queue"])
    with pytest.raises(InferenceError, match="The symptom is None"):
        twin(replace(flap(0.5), symptom=None), ["flap"])
