"""The frontier solver is exact: it equals enumeration and a second engine, at any size, order and hash seed."""

from __future__ import annotations

import math
import os
import random
import subprocess
import sys
from dataclasses import replace

import pytest
from brute_force import (
    ABSENT,
    PRESENT,
    any_on,
    chances,
    evidence_and_marginals,
    needed_for_symptom,
    random_network,
    shuffled,
)
from hypothesis import given, settings
from hypothesis import strategies as st

from causeline.engine.errors import InferenceError
from causeline.engine.frontier import parts as frontier_parts
from causeline.engine.frontier.sweep import any_of, solve, symptom_shares
from causeline.engine.network import Level, Likelihood, Network, Node, NodeKind

CAUSE, MECHANISM, SIGN = NodeKind.CAUSE, NodeKind.MECHANISM, NodeKind.SIGN
seeds = st.integers(min_value=0, max_value=10**6)


def assert_equals_enumeration(network: Network) -> None:
    evidence, marginals = evidence_and_marginals(network)
    if evidence == 0.0:
        with pytest.raises(InferenceError, match="impossible"):
            solve(network)
        return
    posterior = solve(network)
    assert posterior.log_evidence == pytest.approx(math.log10(evidence), rel=1e-9, abs=1e-9)
    assert posterior.probability == pytest.approx(marginals, rel=1e-9, abs=0)


@settings(max_examples=80, deadline=None, derandomize=True)
@given(seeds)
def test_solver_equals_enumeration(seed: int) -> None:
    assert_equals_enumeration(random_network(seed))


@pytest.mark.parametrize("seed", range(25))
def test_how_the_sum_is_bracketed_does_not_matter(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(frontier_parts, "HIDDEN_LIMIT", 0)  # every place is taken apart into one block a node
    assert_equals_enumeration(random_network(seed))


def test_a_place_with_more_hidden_nodes_than_a_block_may_have() -> None:
    causes = [Node(f"c{n}", CAUSE, "p", 0.01 * (n + 1)) for n in range(frontier_parts.HIDDEN_LIMIT)]
    queue = Node("q", MECHANISM, "p", 0.01, tuple((cause.id, 0.3 + 0.05 * n) for n, cause in enumerate(causes[:8])))
    marks = Node("marks", SIGN, "p", 0.02, (("q", 0.9), ("c9", 0.5)), (("c11", 0.7),))
    pauses = Node("pauses", SIGN, "p", 0.02, (("q", 0.6), ("c10", 0.5)))
    assert_equals_enumeration(
        Network((*causes, queue, marks, pauses), {"marks": PRESENT, "pauses": Likelihood(0.2, 0.9)})
    )


@settings(max_examples=40, deadline=None, derandomize=True)
@given(seeds)
def test_any_of_equals_enumeration(seed: int) -> None:
    network = random_network(seed)
    evidence, marginals = evidence_and_marginals(network)
    if evidence == 0.0:
        return
    dice = random.Random(seed)
    groups = {str(size): dice.sample(sorted(marginals), size) for size in (1, 2, 3, 4)}
    found = any_of(network, groups, solve(network))
    assert found == pytest.approx(
        {group: any_on(network, members) for group, members in groups.items()}, rel=1e-9, abs=0
    )


@settings(max_examples=40, deadline=None, derandomize=True)
@given(seeds)
def test_explains_equals_enumeration_of_the_switches_behind_the_symptom(seed: int) -> None:
    network = random_network(seed)
    if evidence_and_marginals(network)[0] == 0.0:
        return
    explains = symptom_shares(network, solve(network))
    assert explains.unknown == pytest.approx(needed_for_symptom(network, None), rel=1e-9, abs=0)
    for cause, share in explains.by_cause.items():
        assert share == pytest.approx(needed_for_symptom(network, cause), rel=1e-9, abs=0), cause


@settings(max_examples=30, deadline=None, derandomize=True)
@given(seeds)
def test_solver_equals_pyagrum(seed: int) -> None:
    gum = pytest.importorskip("pyagrum")
    network = random_network(seed, places=4, hidden_limit=16)
    try:
        posterior = solve(network)
    except InferenceError:
        return  # impossible evidence: `test_solver_equals_enumeration` holds the solver to it
    model = gum.BayesNet()
    for node in network.nodes:
        model.add(gum.RangeVariable(node.id, node.id, 0, node.top))
    for node in network.nodes:
        parents = sorted({parent for parent, _ in (*node.links, *node.inhibitors)})
        for parent in parents:
            model.addArc(parent, node.id)
        for state in range(2 ** len(parents)):
            on = {parent: bool(state >> position & 1) for position, parent in enumerate(parents)}
            model.cpt(node.id)[{name: int(value) for name, value in on.items()}] = list(chances(node, on))
    engine = gum.LazyPropagation(model)
    for name, seen in network.evidence.items():
        engine.addEvidence(name, list(seen.by_level))
    engine.makeInference()
    assert posterior.log_evidence == pytest.approx(math.log10(engine.evidenceProbability()), abs=1e-9)
    for name, probability in posterior.probability.items():
        assert probability == pytest.approx(engine.posterior(name)[1], abs=1e-9), name


@settings(max_examples=40, deadline=None, derandomize=True)
@given(seeds)
def test_order_of_nodes_and_evidence_changes_nothing(seed: int) -> None:
    network = random_network(seed)
    if evidence_and_marginals(network)[0] > 0.0:
        first, second = solve(network), solve(shuffled(network, seed))
        assert second.log_evidence == pytest.approx(first.log_evidence, rel=1e-12, abs=1e-12)
        assert second.probability == pytest.approx(first.probability, rel=1e-12, abs=0)


def test_hash_seed_changes_no_bit() -> None:
    program = (
        "from brute_force import random_network\n"
        "from causeline.engine.frontier.sweep import solve, symptom_shares, any_of\n"
        "for seed in (1, 5, 13, 21):\n"
        "    network = random_network(seed)\n"
        "    posterior = solve(network)\n"
        "    groups = {'all': list(posterior.probability)}\n"
        "    print(posterior, symptom_shares(network), any_of(network, groups))\n"
    )
    told = {
        subprocess.run(
            [sys.executable, "-c", program],
            env={**os.environ, "PYTHONHASHSEED": hash_seed, "PYTHONPATH": os.pathsep.join(sys.path)},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for hash_seed in ("1", "2", "3")
    }
    assert len(told) == 1
    assert told != {""}


def ecmp_fabric(ports: int) -> Network:
    """Every port's link loss triggers the redistribution, which fills every queue: places that drive each other."""
    nodes = [Node(f"loss@{n}", CAUSE, f"port:{n:03d}", 0.01 + 0.001 * n) for n in range(ports)]
    nodes.append(Node("redistribution", CAUSE, "ecmp", 1e-4, tuple((node.id, 0.8) for node in nodes)))
    for n in range(ports):
        nodes.append(
            Node(f"queue@{n}", MECHANISM, f"port:{n:03d}", 0.01, ((f"loss@{n}", 0.3), ("redistribution", 0.4)))
        )
    nodes += [Node(f"marks@{n}", SIGN, f"port:{n:03d}", 0.02, ((f"queue@{n}", 0.9),)) for n in range(ports)]
    nodes.append(Node("step", SIGN, None, 0.02, tuple((f"queue@{n}", 0.5) for n in range(ports))))
    marks = {f"marks@{n}": PRESENT if n % 3 == 0 else ABSENT for n in range(ports)}
    return Network(tuple(nodes), {**marks, "step": PRESENT}, "step")


def test_places_that_drive_each_other_stay_exact_and_narrow() -> None:
    assert_equals_enumeration(ecmp_fabric(5))
    assert solve(ecmp_fabric(60)).width <= 4


def test_one_node_under_pressure_from_forty_places_is_one_open_bit() -> None:
    queues = [Node(f"queue@{n:02d}", MECHANISM, f"port:{n:02d}", 0.05) for n in range(40)]
    paused = [Node(f"paused@{n}", MECHANISM, f"up:{n}", 1e-4, tuple((q.id, 0.6) for q in queues)) for n in range(2)]
    signs = [Node(f"pause@{n}", SIGN, f"up:{n}", 0.01, ((f"paused@{n}", 0.9),)) for n in range(2)]
    network = Network((*queues, *paused, *signs), {"pause@0": PRESENT, "pause@1": PRESENT})
    assert solve(network).width <= 3


def test_trees_that_share_only_the_symptom_are_finished_one_by_one() -> None:
    nodes: list[Node] = []
    for tree in range(30):
        for branch in range(3):
            leaves = [f"leaf@{leaf}/{branch}/{tree}" for leaf in range(3)]
            nodes += [Node(leaf, CAUSE, leaf, 0.01) for leaf in leaves]
            name = f"branch@{branch}/{tree}"
            nodes.append(Node(name, MECHANISM, name, 0.001, tuple((leaf, 0.7) for leaf in leaves)))
        branches = tuple((f"branch@{branch}/{tree}", 0.7) for branch in range(3))
        nodes.append(Node(f"root@{tree}", MECHANISM, f"root@{tree}", 0.001, branches))
    hidden = tuple((node.id, 0.5) for node in nodes)
    network = Network((*nodes, Node("step", SIGN, None, 0.02, hidden)), {"step": PRESENT}, "step")
    assert solve(network).width <= 5


@pytest.mark.parametrize(
    ("seen", "width"),
    [
        (Likelihood(1.0, 0.0, (0.0, 0.0)), 0),  # level 0: each parent by itself
        (Likelihood(0.0, 0.0, (1.0, 0.0)), 1),  # level 2: one sign absent, one present
        (Likelihood(0.0, 1.0, (1.0, 0.0)), 1),  # level 1 or 2
        (Likelihood(1.0, 0.5, (0.5, 0.5)), 1),  # absent, as far as it was read
        (Likelihood(0.0, 0.2, (1.0, 0.4)), 2),  # anything else needs its levels
    ],
)
def test_a_shared_sign_opens_no_more_than_its_evidence_tells_apart(seen: Likelihood, width: int) -> None:
    links = {level: tuple((f"c{n}", 0.8 / level) for n in range(6)) for level in (1, 2, 4)}
    causes = tuple(Node(f"c{n}", CAUSE, f"p{n}", 0.1) for n in range(6))
    sign = Node("depth", SIGN, None, 0.05, links[1], higher=(Level(0.04, links[2]), Level(0.01, links[4])))
    network = Network((*causes, sign), {"depth": seen})
    assert_equals_enumeration(network)
    assert solve(network).width == width


@pytest.mark.parametrize(
    ("sign", "seen", "told"),
    [
        (Node("depth", SIGN, None, 0.1, higher=(Level(0.2),)), Likelihood(0.0, 1.0, (1.0,)), "Level 2 of depth"),
        (Node("depth", SIGN, None, 0.1, higher=(Level(0.0),)), Likelihood(0.0, 0.0, (1.0,)), "nothing can turn it on"),
        (Node("depth", SIGN, None, 0.1, higher=(Level(0.05),)), PRESENT, "for 2 levels, it has 3"),
        (Node("depth", CAUSE, None, 0.1, higher=(Level(0.05),)), PRESENT, "is no sign"),
    ],
)
def test_what_is_no_scale_of_levels_is_refused(sign: Node, seen: Likelihood, told: str) -> None:
    with pytest.raises(InferenceError, match=told):
        solve(Network((sign,), {"depth": seen}))


def test_priors_of_1e_9_keep_their_digits() -> None:
    prior, leak, p = 1e-9, 1e-3, 0.9
    network = Network(
        (
            Node("fault", CAUSE, "a", prior),
            Node("other", CAUSE, "b", prior),
            Node("sign", SIGN, None, leak, (("fault", p), ("other", p))),
        ),
        {"sign": PRESENT},
    )
    one, both = leak + (1 - leak) * p, leak + (1 - leak) * (p + (1 - p) * p)
    any_fault = 2 * prior * (1 - prior) * one + prior**2 * both
    evidence = any_fault + (1 - prior) ** 2 * leak
    posterior = solve(network)
    alone = (prior * (1 - prior) * one + prior**2 * both) / evidence
    assert posterior.probability["fault"] == pytest.approx(alone, rel=1e-13, abs=0)
    assert any_of(network, {"any": ["fault", "other"]})["any"] == pytest.approx(any_fault / evidence, rel=1e-13, abs=0)


def test_evidence_of_five_thousand_places_does_not_underflow() -> None:
    places = range(5000)
    nodes = [Node(f"c{n}", CAUSE, f"p{n}", 1e-7) for n in places]
    nodes += [Node(f"s{n}", SIGN, f"p{n}", 1e-4, ((f"c{n}", 0.9),)) for n in places]
    posterior = solve(Network(tuple(nodes), {f"s{n}": PRESENT for n in places}))
    one = 1e-7 * (1e-4 + (1 - 1e-4) * 0.9) + (1 - 1e-7) * 1e-4
    assert posterior.log_evidence == pytest.approx(5000 * math.log10(one), rel=1e-12)
    assert posterior.probability["c4999"] == pytest.approx(1e-7 * (1e-4 + (1 - 1e-4) * 0.9) / one, rel=1e-12)


def test_two_thousand_places_of_a_fabric_sum_up() -> None:
    dice = random.Random(7)
    nodes: list[Node] = []
    evidence: dict[str, Likelihood] = {}
    for place in range(2000):
        causes = [
            Node(f"c{n}@{place}", CAUSE, f"p{place}", 10 ** dice.uniform(-7, -4)) for n in range(dice.randint(1, 6))
        ]
        driven = [(cause.id, dice.uniform(0.3, 0.9)) for cause in causes]
        if place % 8:
            driven.append((f"m@{place - 1}", 0.5))  # a pause chain of eight
        nodes += [*causes, Node(f"m@{place}", MECHANISM, f"p{place}", 1e-4, tuple(driven))]
        nodes.append(Node(f"s@{place}", SIGN, f"p{place}", 0.02, ((f"m@{place}", 0.9),)))
        evidence[f"s@{place}"] = PRESENT if place == 1000 else Likelihood(1.0, dice.uniform(0.01, 0.2))
    mechanisms = tuple((node.id, 0.8) for node in nodes if node.kind is MECHANISM)
    network = Network((*nodes, Node("step", SIGN, None, 0.02, mechanisms)), {**evidence, "step": PRESENT}, "step")
    posterior = solve(network)
    assert posterior.probability["m@1000"] == max(posterior.probability.values())
    whole = any_of(network, {"every": list(posterior.probability)}, posterior)["every"]
    assert posterior.probability["m@1000"] < whole <= 1.0


def test_a_node_known_to_be_off_is_off() -> None:
    nodes = (
        Node("a", CAUSE, "p", 0.1),
        Node("b", CAUSE, "q", 0.1),
        Node("s", SIGN, None, 0.0, (("a", 0.9), ("b", 0.9))),
    )
    posterior = solve(Network(nodes, {"s": PRESENT, "a": ABSENT}))
    assert posterior.probability == {"a": 0.0, "b": 1.0}


def test_without_evidence_the_posterior_is_the_prior() -> None:
    posterior = solve(Network((Node("a", CAUSE, "p", 0.125), Node("b", CAUSE, "p", 0.0, (("a", 0.5),)))))
    assert posterior.log_evidence == 0.0
    assert posterior.probability == {"a": 0.125, "b": 0.0625}
    assert solve(Network(())).probability == {}


def test_impossible_evidence_names_the_sign_that_nothing_turns_on() -> None:
    nodes = (Node("a", CAUSE, "p", 0.1), Node("lonely", SIGN, "p", 0.0))
    with pytest.raises(InferenceError, match="lonely is present though nothing can turn it on"):
        solve(Network(nodes, {"lonely": PRESENT}))


def test_impossible_evidence_names_what_contradicts_at_the_place() -> None:
    nodes = (Node("a", CAUSE, "leaf-07", 0.1), Node("s", SIGN, "leaf-07", 0.0, (("a", 0.9),)))
    with pytest.raises(InferenceError, match=r"leaf-07: a is absent, s is present"):
        solve(Network(nodes, {"s": PRESENT, "a": ABSENT}))


def test_too_many_open_bits_are_named() -> None:
    causes = [Node(f"c@{place}", CAUSE, place, 0.1) for place in ("p", "q", "r")]
    signs = [Node(f"s{n:02d}", SIGN, None, 0.02, tuple((cause.id, 0.5) for cause in causes)) for n in range(19)]
    with pytest.raises(InferenceError, match=r"19 bits are open .* sign of s00.* sign of s18"):
        solve(Network((*causes, *signs), {sign.id: PRESENT for sign in signs}))


@pytest.mark.parametrize(
    ("nodes", "evidence", "problem"),
    [
        ((Node("s", SIGN, "p", 0.1, (("a", 0.5),)),), {}, "a, a parent of s, is unknown"),
        ((Node("a", CAUSE, "p", 0.1), Node("a", CAUSE, "p", 0.1)), {}, "a is there twice"),
        ((Node("a", CAUSE, "p", 1.5),), {}, "a holds 1.5"),
        ((Node("a", CAUSE, "p", math.nan),), {}, "a holds nan"),
        ((Node("s", SIGN, "p", 0.1), Node("a", CAUSE, "p", 0.1, (("s", 0.5),))), {}, "signs drive nothing"),
        (
            (Node("a", CAUSE, "p", 0.1), Node("s", SIGN, None, 0.1, (), (("a", 0.5),))),
            {},
            "Shared sign s has inhibitors",
        ),
        ((Node("a", CAUSE, "p", 0.1),), {"b": PRESENT}, "evidence on b, which is no node"),
        ((Node("a", CAUSE, "p", 0.1),), {"a": Likelihood(0.0, 0.0)}, "Evidence on a is"),
    ],
)
def test_what_is_no_network_is_refused(nodes: tuple[Node, ...], evidence: dict[str, Likelihood], problem: str) -> None:
    with pytest.raises(InferenceError, match=problem):
        solve(Network(nodes, evidence))


def test_any_of_an_empty_group_is_zero_and_of_an_unknown_name_an_error() -> None:
    network = Network((Node("a", CAUSE, "p", 0.1),))
    assert any_of(network, {"none": [], "a": ["a", "a"]}) == {"none": 0.0, "a": pytest.approx(0.1)}
    with pytest.raises(InferenceError, match="z of group g"):
        any_of(network, {"g": ["z"]})


def test_explains_needs_a_symptom_that_can_be_missing_without_its_cause() -> None:
    network = Network((Node("a", CAUSE, "p", 0.1), Node("s", SIGN, None, 0.02, (("a", 1.0),))), {"s": PRESENT}, "s")
    with pytest.raises(InferenceError, match="symptom s is sure with a"):
        symptom_shares(network)
    with pytest.raises(InferenceError, match="The symptom is None"):
        symptom_shares(replace(network, symptom=None))


def test_pause_chains_under_signs_that_all_share_are_finished_one_by_one() -> None:
    nodes: list[Node] = []
    drivers: dict[str, list[tuple[str, float]]] = {f"shared{n}": [] for n in range(8)}
    for place in range(60):
        links = ((f"queue@{place - 1}", 0.5),) if place % 8 else ()  # a pause chain of eight
        nodes.append(Node(f"queue@{place}", CAUSE, f"p{place:02d}", 0.01, links))
        for number in {0, 1 + place % 7, 1 + (place * 5 + 2) % 7}:
            drivers[f"shared{number}"].append((f"queue@{place}", 0.5))
    signs = [Node(name, SIGN, None, 0.02, tuple(links)) for name, links in drivers.items()]
    assert solve(Network((*nodes, *signs), {sign.id: PRESENT for sign in signs})).width <= 10
