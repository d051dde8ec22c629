"""The explanation network answers what the whole network answers, in pgmpy and in BIF."""

from __future__ import annotations

import re
import subprocess
import sys
from dataclasses import replace

import pytest
from brute_force import PRESENT, left_of_symptom, random_network

from causeline.engine.errors import InferenceError
from causeline.engine.explanation import explanation
from causeline.engine.frontier.sweep import solve
from causeline.engine.inference import ask, check, to_bif
from causeline.engine.network import Level, Likelihood, Network, Node, NodeKind

CAUSE, MECHANISM, SIGN = NodeKind.CAUSE, NodeKind.MECHANISM, NodeKind.SIGN


def causes_of(network: Network) -> list[str]:
    return [node.id for node in network.nodes if node.kind is CAUSE]


def fabric(places: int, causes: int) -> Network:
    """Ports with a queue each, a pause chain along them, and a step time under all of them."""
    nodes: list[Node] = []
    for place in range(places):
        here = [Node(f"c{n}@{place}", CAUSE, f"port:leaf/{place}", 0.001 * (n + 1)) for n in range(causes)]
        driven = [(cause.id, 0.8) for cause in here] + ([(f"queue@{place - 1}", 0.4)] if place else [])
        queue = Node(f"queue@{place}", MECHANISM, f"port:leaf/{place}", 1e-3, tuple(driven))
        nodes += [*here, queue, Node(f"marks@{place}", SIGN, f"port:leaf/{place}", 0.02, ((queue.id, 0.9),))]
    links = tuple((node.id, 0.6) for node in nodes if node.kind is CAUSE)
    nodes.append(Node("step", SIGN, None, 0.02, links))
    seen = {f"marks@{place}": Likelihood(1.0, 0.05) for place in range(places)}
    return Network(tuple(nodes), {**seen, "marks@1": Likelihood(0.1, 1.0), "step": PRESENT}, "step")


@pytest.mark.parametrize("seed", range(24))
def test_pgmpy_agrees_about_the_kept_causes(seed: int) -> None:
    network = random_network(seed)
    try:
        posterior = solve(network)
    except InferenceError:
        pytest.skip("impossible evidence")
    keep = causes_of(network)[seed % 2 :: 2]
    found = check(network, posterior, keep)
    assert found.causes == tuple(keep)
    assert found.largest_difference <= 1e-12


@pytest.mark.parametrize("seed", range(24))
def test_pgmpy_answers_what_would_be_left_without_a_cause(seed: int) -> None:
    network = random_network(seed, hidden_limit=8)
    seen = PRESENT if seed % 3 else Likelihood(0.2, 0.9)
    network = replace(network, evidence={**network.evidence, "s0": seen})
    try:
        solve(network)
    except InferenceError:
        pytest.skip("impossible evidence")
    shown = explanation(network, causes_of(network)[seed % 2 :: 2])
    if "s0" not in {node.id for node in shown.network.nodes}:
        pytest.skip("nothing kept bears on the symptom")
    assert ask(shown).symptom == pytest.approx(left_of_symptom(network, ()), abs=1e-9)
    for without in ([shown.kept[0]], list(shown.kept)):
        assert ask(shown, without).symptom == pytest.approx(left_of_symptom(network, without), abs=1e-9)


def test_the_rest_of_a_fabric_is_folded_without_a_trace_in_the_posteriors() -> None:
    network = fabric(places=40, causes=3)
    posterior = solve(network)
    shown = explanation(network, ["c2@1", "c0@20"])
    assert {node.place for node in shown.network.nodes} == {"port:leaf/1", "port:leaf/20", None}
    assert shown.residual is not None
    assert shown.residual.reads == ("queue@1", "queue@20")
    assert shown.residual.sets == ("elsewhere:queue@1", "elsewhere:queue@20", "elsewhere:step")
    assert shown.residual.weights.shape == (2,) * 5
    assert check(network, posterior, ["c2@1", "c0@20"]).largest_difference <= 1e-12


def test_nothing_folded_leaves_no_residual() -> None:
    network = fabric(places=2, causes=2)
    shown = explanation(network, ["c0@0", "c1@1"])
    assert shown.residual is None
    assert shown.network.nodes == network.nodes
    assert check(network, solve(network), ["c0@0", "c1@1"]).largest_difference <= 1e-12


def test_a_sign_with_many_parents_is_split_by_place_and_stays_exact() -> None:
    network = fabric(places=4, causes=8)
    keep = [f"c0@{place}" for place in range(4)]
    assert check(network, solve(network), keep).largest_difference <= 1e-12
    parents = [
        line.count(",") + 1
        for line in re.findall(r"^probability \( \w+ \| (.*) \)", to_bif(explanation(network, keep)), re.M)
    ]
    assert 1 < max(parents) <= 12


def with_levels(network: Network) -> Network:
    """The same fabric, its step time with two more levels and read as level 1 or 2."""
    *others, step = network.nodes
    higher = tuple(Level(step.leak / n, tuple((parent, p / n) for parent, p in step.links)) for n in (2, 6))
    evidence = {**network.evidence, "step": Likelihood(0.0, 1.0, (1.0, 0.1))}
    return replace(network, nodes=(*others, replace(step, higher=higher)), evidence=evidence)


def test_a_sign_with_levels_is_one_variable_whoever_drives_it() -> None:
    split = with_levels(fabric(places=4, causes=8))  # too many parents for one table
    assert check(split, solve(split), [f"c0@{place}" for place in range(4)]).largest_difference <= 1e-12
    folded = with_levels(fabric(places=40, causes=3))  # most of its parents are elsewhere
    shown = explanation(folded, ["c2@1", "c0@20"])
    assert shown.residual is not None
    assert shown.residual.weights.shape == (2, 2, 2, 2, 4)
    assert check(folded, solve(folded), ["c2@1", "c0@20"]).largest_difference <= 1e-12
    told = to_bif(explanation(folded, ["c2@1", "c0@20"]))
    assert re.search(r"variable step \{\s+type discrete \[ 4 \] \{ off, level1, level2, level3 \};", told)
    assert "evidence_level3 = 0.1" in told


def test_a_difference_is_an_internal_error() -> None:
    network = fabric(places=3, causes=2)
    posterior = solve(network)
    wrong = replace(posterior, probability={**posterior.probability, "c1@1": posterior.probability["c1@1"] + 2e-9})
    with pytest.raises(InferenceError, match=r"Internal error: .* for c1@1"):
        check(network, wrong, ["c0@1", "c1@1"])


def test_as_many_leading_causes_are_kept_as_can_be_shown() -> None:
    network = fabric(places=60, causes=2)
    keep = [f"c0@{place}" for place in range(1, 60, 2)]
    shown = explanation(network, keep)
    assert 0 < len(shown.kept) < len(keep)
    assert list(shown.kept) == keep[: len(shown.kept)]
    assert check(network, solve(network), keep).causes == shown.kept


def test_what_is_no_cause_cannot_be_explained() -> None:
    with pytest.raises(InferenceError, match="Cannot explain step"):
        explanation(fabric(places=2, causes=1), ["c0@0", "step"])


def test_bif_text_gives_the_same_posterior_to_whoever_reads_it() -> None:
    from pgmpy.factors.discrete import TabularCPD
    from pgmpy.inference import VariableElimination
    from pgmpy.readwrite import BIFReader

    network = fabric(places=6, causes=2)
    network = replace(network, evidence={**network.evidence, "marks@1": PRESENT})
    keep = ["c1@1"]
    reader = BIFReader(string=to_bif(explanation(network, keep)), include_properties=True)
    told = {
        variable: dict(line.split(" = ", 1) for line in lines) for variable, lines in reader.variable_properties.items()
    }
    [asked] = [variable for variable, lines in told.items() if lines["id"].strip() == "c1@1"]
    model = reader.get_model()
    hard, soft = {}, []
    for variable, lines in told.items():
        if "evidence_off" in lines:
            off, on = float(lines["evidence_off"]), float(lines["evidence_on"])
            if off == 0.0:
                hard[variable] = "on"
            else:
                states = model.get_cpds(variable).state_names[variable]
                by_state = {"off": off / (off + on), "on": on / (off + on)}
                values = [[by_state[state]] for state in states]
                soft.append(TabularCPD(variable, 2, values, state_names={variable: states}))
    answer = VariableElimination(model).query([asked], evidence=hard, virtual_evidence=soft, show_progress=False)
    assert answer.get_value(**{asked: "on"}) == pytest.approx(solve(network).probability["c1@1"], abs=1e-9)


def test_pgmpy_is_imported_late_and_stays_silent(capfd: pytest.CaptureFixture[str]) -> None:
    program = "import causeline.engine.inference, sys; sys.exit('pgmpy' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0
    network = fabric(places=3, causes=2)
    check(network, solve(network), ["c0@1"])
    to_bif(explanation(network, ["c0@1"]))
    assert capfd.readouterr() == ("", "")
