"""Lifting is exact: places that differ in names only are summed as one, and nothing of the answers changes."""

from __future__ import annotations

import itertools
import math
import random
from collections.abc import Sequence

import numpy as np
import pytest
from brute_force import ABSENT, PRESENT, any_on, evidence_and_marginals, needed_for_symptom

from causeline.engine.frontier import lifting
from causeline.engine.frontier.powers import power, product
from causeline.engine.frontier.sweep import Posterior, any_of, fold, solve, symptom_shares
from causeline.engine.network import Level, Likelihood, Network, Node, NodeKind

CAUSE, MECHANISM, SIGN = NodeKind.CAUSE, NodeKind.MECHANISM, NodeKind.SIGN


def fabric(seed: int, alike: Sequence[int]) -> Network:
    """Classes of so many ports alike, under one profile, all pressing on one queue upstream and all behind a step time
    and a sign with levels; hard, soft and no evidence, tiny priors every other time."""
    dice = random.Random(seed)
    nodes = [Node("profile", CAUSE, "profile", dice.uniform(0.01, 0.3))]
    signs: list[Node] = []
    evidence: dict[str, Likelihood] = {}
    by_port: list[tuple[str, str, int]] = []
    for kind, count in enumerate(alike):
        prior = 10 ** dice.uniform(-9, -4) if dice.random() < 0.5 else dice.uniform(0.02, 0.3)
        own, through, seen_at, inhibits = (dice.uniform(0.2, 0.9) for _ in range(4))
        seen = dice.choice([PRESENT, ABSENT, Likelihood(dice.uniform(0.2, 1), dice.uniform(0.2, 1))])
        for port in range(count):
            place = f"port:{kind}/{port:03d}"
            nodes.append(Node(f"fault@{place}", CAUSE, place, prior))
            links = ((f"fault@{place}", own), ("profile", through))
            nodes.append(Node(f"queue@{place}", MECHANISM, place, 0.01, links))
            marks = Node(f"marks@{place}", SIGN, place, 0.05, ((f"queue@{place}", seen_at),))
            signs.append(Node(marks.id, SIGN, place, marks.leak, marks.links, ((f"fault@{place}", inhibits),)))
            evidence[marks.id] = seen
            by_port.append((f"fault@{place}", f"queue@{place}", kind))
    pressing = tuple((queue, 0.2 + 0.1 * kind) for _, queue, kind in by_port)
    nodes.append(Node("upstream", MECHANISM, "upstream", 0.01, pressing))
    signs.append(Node("paused", SIGN, "upstream", 0.02, (("upstream", 0.9),)))
    links = tuple((fault, 0.3 + 0.2 * kind) for fault, _, kind in by_port)
    signs.append(Node("step", SIGN, None, 0.02, links))
    deeper = Level(0.02, tuple((queue, 0.2 + 0.05 * kind) for _, queue, kind in by_port))
    depth = Node(
        "depth", SIGN, None, 0.1, tuple((queue, 0.4 + 0.1 * kind) for _, queue, kind in by_port), (), (deeper,)
    )
    evidence |= {"paused": PRESENT, "step": dice.choice([PRESENT, Likelihood(0.1, 0.8)])}
    evidence["depth"] = Likelihood(dice.uniform(0.1, 1), dice.uniform(0.1, 1), (dice.uniform(0.1, 1),))
    return Network((*nodes, *signs, depth), evidence, "step")


def solved(network: Network, fewest: int, monkeypatch: pytest.MonkeyPatch) -> Posterior:
    monkeypatch.setattr(lifting, "FEWEST", fewest)
    return solve(network)


def steps(posterior: Posterior) -> int:
    return len(posterior.sweep.plan.steps)


@pytest.mark.parametrize("seed", range(8))
def test_lifted_equals_enumeration(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    network = fabric(seed, (3, 1))
    evidence, marginals = evidence_and_marginals(network)
    posterior = solved(network, 2, monkeypatch)
    assert steps(posterior) == 4  # the class of three, the single port, the profile, the queue upstream
    assert posterior.log_evidence == pytest.approx(math.log10(evidence), rel=1e-9, abs=1e-9)
    assert posterior.probability == pytest.approx(marginals, rel=1e-9, abs=0)
    dice = random.Random(seed)
    groups = {str(size): dice.sample(sorted(marginals), size) for size in (2, 4)}
    groups["one port"] = ["fault@port:0/000", "queue@port:0/000"]
    groups["two ports"] = ["fault@port:0/001", "fault@port:0/002"]
    expected = {group: any_on(network, members) for group, members in groups.items()}
    assert any_of(network, groups, posterior) == pytest.approx(expected, rel=1e-9, abs=0)
    explains = symptom_shares(network, posterior)
    for cause in (None, "fault@port:0/002"):
        share = explains.unknown if cause is None else explains.by_cause[cause]
        assert share == pytest.approx(needed_for_symptom(network, cause), rel=1e-9, abs=0)


@pytest.mark.parametrize(("seed", "alike"), [(1, (9, 8, 30)), (2, (200, 3)), (3, (64,)), (4, (17, 40))])
def test_lifted_equals_summed_one_by_one(seed: int, alike: tuple[int, ...], monkeypatch: pytest.MonkeyPatch) -> None:
    network = fabric(seed, alike)
    apart, together = solved(network, 10**9, monkeypatch), solved(network, 8, monkeypatch)
    assert steps(together) <= 6 < sum(alike) < steps(apart)
    assert together.log_evidence == pytest.approx(apart.log_evidence, rel=1e-11)
    assert together.probability == pytest.approx(apart.probability, rel=1e-9, abs=0)
    assert list(together.probability) == list(apart.probability)
    causes = [node.id for node in network.nodes if node.kind is CAUSE]
    groups = {"half": causes[::2], "all": causes, "every hidden": list(apart.probability)}
    expected = apart.sweep.any_of(groups)
    assert together.sweep.any_of(groups) == pytest.approx(expected, rel=1e-9, abs=0)
    lifted = fold(network, ["profile", "step", "depth"])
    monkeypatch.setattr(lifting, "FEWEST", 10**9)
    assert lifted.weights == pytest.approx(fold(network, ["profile", "step", "depth"]).weights, rel=1e-9, abs=0)


def test_a_few_places_alike_are_left_as_they_are(monkeypatch: pytest.MonkeyPatch) -> None:
    network = fabric(5, (lifting.FEWEST - 1,))
    assert steps(solve(network)) == lifting.FEWEST - 1 + 2


def test_a_place_whose_own_state_is_read_elsewhere_stays_itself() -> None:
    nodes = [Node(f"c{n}", CAUSE, f"p{n}", 0.1) for n in range(20)]
    nodes += [Node(f"q{n}", CAUSE, f"q{n}", 0.1, ((f"c{n}", 0.5), ("c0", 0.5))[: 1 + (n > 0)]) for n in range(20)]
    nodes += [Node("s", SIGN, None, 0.1, tuple((f"q{n}", 0.5) for n in range(20)))]
    posterior = solve(Network(tuple(nodes), {"s": PRESENT}))
    assert posterior.probability["q1"] == pytest.approx(posterior.probability["q19"], rel=1e-12)
    assert posterior.probability["q1"] > 1.001 * posterior.probability["q0"]
    assert posterior.probability["c0"] > posterior.probability["c1"]


def test_twenty_thousand_ports_alike_underflow_nothing() -> None:
    prior, leak, link, count = 1e-7, 1e-4, 0.9, 20_000
    nodes = [Node(f"c{n}", CAUSE, f"p{n}", prior) for n in range(count)]
    nodes += [Node(f"s{n}", SIGN, f"p{n}", leak, ((f"c{n}", link),)) for n in range(count)]
    step = Node("step", SIGN, None, 0.02, tuple((f"c{n}", 0.5) for n in range(count)))
    evidence = {f"s{n}": PRESENT for n in range(count)}
    posterior = solve(Network((*nodes, step), {**evidence, "step": PRESENT}, "step"))
    on, off = prior * (leak + (1 - leak) * link), (1 - prior) * leak
    none_acts = math.log((off + 0.5 * on) / (off + on)) * count  # of all states, those in which no cause acts
    at_step = 1 - 0.98 * math.exp(none_acts)
    log_evidence = count * math.log10(on + off) + math.log10(at_step)
    assert posterior.log_evidence == pytest.approx(log_evidence, rel=1e-9)
    given = on / (on + off) * (1 - 0.5 * 0.98 * math.exp(none_acts) * (on + off) / (off + 0.5 * on)) / at_step
    assert posterior.probability["c19999"] == pytest.approx(given, rel=1e-8)
    assert steps(posterior) == 1


def test_a_product_is_the_sum_over_pairs_of_patterns() -> None:
    dice = np.random.default_rng(3)
    lengths = (2, 3, 2, 2, 4, 2)  # more than one matrix takes
    first, second = dice.random((2, *lengths)), dice.random((2, *lengths))
    expected = np.zeros((2, *lengths))
    patterns = list(itertools.product(*(range(length) for length in lengths)))
    for one, other in itertools.product(patterns, repeat=2):
        expected[(slice(None), *map(max, one, other))] += first[(slice(None), *one)] * second[(slice(None), *other)]
    assert product(first, second, lengths) == pytest.approx(expected, rel=1e-12)
    assert product(first, second, (4, 2)).shape == first.shape


def test_a_power_is_so_many_products() -> None:
    table = np.random.default_rng(4).random((5, 2, 3, 2))
    raised, log = power(table, [0, 1, 2, 5, 11], (3, 2))
    for row, count in enumerate([0, 1, 2, 5, 11]):
        expected = np.zeros((2, 3, 2))
        expected[:, 0, 0] = 1.0
        for _ in range(count):
            expected = product(expected, table[row], (3, 2))
        assert raised[row] * math.exp(log[row]) == pytest.approx(expected, rel=1e-12)
    impossible, log = power(np.zeros((1, 2)), [7], (2,))
    assert not impossible.any()
    assert log[0] == 0.0
