"""The small network around a cause answers as the whole: findings left out, signs that might be read."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest
from brute_force import (
    ABSENT,
    PRESENT,
    evidence_and_marginals,
    needed_causes,
    needed_for_symptom,
    random_network,
)

from causeline.engine.around import Surroundings, explained_around
from causeline.engine.counterfactual import WORTH_SUMMING
from causeline.engine.frontier.sweep import solve, symptom_shares
from causeline.engine.network import Likelihood, Network, Node, NodeKind
from causeline.engine.reflection.next_checks import expected_bits
from causeline.engine.reflection.unread import UnreadSign


def with_symptom(seed: int) -> Network | None:
    """A random network whose symptom was seen, with a leak; None where that is impossible."""
    network = random_network(seed)
    nodes = tuple(
        replace(n, leak=max(n.leak, 0.02), links=tuple((p, min(q, 0.95)) for p, q in n.links))
        if n.id == network.symptom
        else n
        for n in network.nodes
    )
    network = replace(network, nodes=nodes, evidence={**network.evidence, "s0": PRESENT})
    return network if evidence_and_marginals(network)[0] > 0.0 else None


def hidden(network: Network) -> list[Node]:
    return [node for node in network.nodes if node.kind is not NodeKind.SIGN]


NETWORKS = [network for seed in range(14) if (network := with_symptom(seed)) is not None]


@pytest.mark.parametrize("network", NETWORKS)
def test_the_part_around_a_cause_answers_as_the_whole(network: Network) -> None:
    surroundings = Surroundings(network, symptom_shares(network))
    _, marginals = evidence_and_marginals(network)
    for node in hidden(network):
        nearby = surroundings.near([node.id])
        assert nearby.posterior.probability[node.id] == pytest.approx(marginals[node.id], rel=1e-9)


@pytest.mark.parametrize("network", NETWORKS)
def test_leaving_a_finding_out_equals_solving_without_it(network: Network) -> None:
    surroundings = Surroundings(network, symptom_shares(network))
    for sign in [node.id for node in network.nodes if node.kind is NodeKind.SIGN and node.id in network.evidence]:
        if sign == network.symptom:
            continue
        without = replace(network, evidence={name: seen for name, seen in network.evidence.items() if name != sign})
        _, marginals = evidence_and_marginals(without)
        for node in hidden(network):
            nearby = surroundings.near([node.id, *surroundings.parents(sign)])
            changed = nearby.changed({sign: None})
            posterior, explains = surroundings.explained(nearby, changed)
            assert posterior.probability[node.id] == pytest.approx(marginals[node.id], rel=1e-9)
            alone = solve(surroundings.without([node.id], {sign: None}))
            assert alone.probability[node.id] == pytest.approx(marginals[node.id], rel=1e-9)
        assert explains.by_cause == pytest.approx(symptom_shares(without).by_cause, rel=1e-8, abs=1e-15)
        assert explains.unknown == pytest.approx(symptom_shares(without).unknown, rel=1e-8)


@pytest.mark.parametrize("network", NETWORKS[:8])
def test_what_causes_did_through_their_effects_is_that_of_a_twin_network(network: Network) -> None:
    posterior = solve(network)
    explains = explained_around(network, posterior)
    surroundings = Surroundings(network, explains)
    sign = next(n.id for n in network.nodes if n.kind is NodeKind.SIGN and n.id in network.evidence)
    without = replace(network, evidence={name: seen for name, seen in network.evidence.items() if name != sign})
    for cause in [node.id for node in network.nodes if node.kind is NodeKind.CAUSE]:
        if posterior.probability[cause] < WORTH_SUMMING:
            continue
        assert explains.needed(cause) == pytest.approx(needed_causes(network, [cause]), rel=1e-8, abs=1e-12)
        nearby = surroundings.near([cause, *surroundings.parents(sign)])
        changed, then = surroundings.explained(nearby, nearby.changed({sign: None}), with_effects=True)
        if changed.probability[cause] >= WORTH_SUMMING:
            assert then.needed(cause) == pytest.approx(needed_causes(without, [cause]), rel=1e-8, abs=1e-12)


def entropy(chances: list[float]) -> float:
    return -sum(p * math.log2(p) for p in chances if p > 0.0)


@pytest.mark.parametrize("network", NETWORKS[:6])
def test_expected_bits_are_those_of_reading_the_sign_and_solving_again(network: Network) -> None:
    causes = [node.id for node in network.nodes if node.kind is NodeKind.CAUSE]
    unread = Node("unread", NodeKind.SIGN, None, 0.05, tuple((cause, 0.6) for cause in causes[:2]))

    def answer(seen: Likelihood | None) -> tuple[float, float]:
        evidence = dict(network.evidence) if seen is None else {**network.evidence, "unread": seen}
        read = replace(network, nodes=(*network.nodes, unread), evidence=evidence)
        told = [needed_for_symptom(read, source) for source in (*causes, None)]
        return evidence_and_marginals(read)[0], entropy([*told, 1.0 - sum(told)])

    total, before = answer(None)
    expected = before - sum(chance / total * left for chance, left in (answer(PRESENT), answer(ABSENT)))
    explains = symptom_shares(network)
    bits = expected_bits(UnreadSign(unread, {}), Surroundings(network, explains), explains, causes)
    assert bits == pytest.approx(expected, rel=1e-6, abs=1e-9)
    assert bits >= 0.0


def test_parts_are_small_where_little_was_seen_present() -> None:
    network = next(
        n
        for n in NETWORKS
        if len({len(Surroundings(n, symptom_shares(n)).near([h.id]).network.nodes) for h in hidden(n)}) > 1
    )
    whole = len(hidden(network))
    parts = Surroundings(network, symptom_shares(network))
    assert min(len(hidden(parts.near([node.id]).network)) for node in hidden(network)) < whole
