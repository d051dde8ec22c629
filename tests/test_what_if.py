"""The network in a saved result answers as analysing again would: another reading, a cause taken out, BIF."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from fabrics import JOB, answers, grouped, observe, shipped

from causeline.engine.around import Surroundings
from causeline.engine.cli import main
from causeline.engine.compile import Compiled, compile_network
from causeline.engine.counterfactual import needed
from causeline.engine.findings import Findings, SignFinding
from causeline.engine.frontier.sweep import solve
from causeline.engine.inference import ask
from causeline.engine.observed import Observed
from causeline.engine.places import Places
from causeline.engine.reflection.overlap import Overlap, overlaps, told_overlaps
from causeline.engine.result_network import ExplanationNetwork
from causeline.engine.results import Investigation
from causeline.engine.shown_network import restored, shown_network
from causeline.engine.verdicts import Judgement, judge

LINK = "link:leaf-1/Ethernet1/spine-1/Ethernet1"
GROUP = "ecmp:leaf-1/uplinks"
HOT = "queue:leaf-1/Ethernet2/3"
OTHER = "link:leaf-2/Ethernet1/spine-1/Ethernet2"
SPREAD = {
    "ecmp_event": GROUP,
    "skew_step": GROUP,
    "queue_depth": HOT,
    "ecn_high": HOT,
    "hot_fabric_link": "port:leaf-1/Ethernet2",
}
SEEN = {"link_flap": LINK, "ack_timeout": "rail:mlx5_0", **SPREAD}


@cache
def fabric() -> tuple[Observed, Places]:
    observed = observe(grouped(), job=JOB)
    return observed, Places(observed)


def compiled(findings: tuple[SignFinding, ...]) -> Compiled:
    return compile_network(shipped(), *fabric(), Findings(findings))


@cache
def incident() -> tuple[tuple[SignFinding, ...], Compiled, Judgement, ExplanationNetwork]:
    """A flap with the uneven spread it set off, analysed."""
    findings = tuple(answers(fabric()[1], present=SEEN))
    found = compiled(findings)
    judgement = judge(shipped(), fabric()[1], found, solve(found.network))
    network = shown_network(found, judgement, Surroundings(found.network, judgement.explains))
    assert network is not None
    return findings, found, judgement, network


def test_it_holds_the_leading_causes_and_answers_their_posteriors() -> None:
    _, _, judgement, network = incident()
    assert network.causes == tuple(verdict.id for verdict in judgement.listed[: len(network.causes)])
    answer = ask(restored(network))
    assert answer.symptom == pytest.approx(1.0)
    for cause, p in answer.causes.items():
        assert p == pytest.approx(judgement.posterior.probability[cause], abs=1e-9)


def test_it_answers_the_same_after_its_way_through_json() -> None:
    _, _, judgement, network = incident()
    rounded = ExplanationNetwork.model_validate_json(network.model_dump_json())
    assert rounded == network
    for cause, p in ask(restored(rounded)).causes.items():
        assert p == pytest.approx(judgement.posterior.probability[cause], abs=1e-9)


@pytest.mark.parametrize("state", ["present", "absent", "unknown"])
def test_another_reading_answers_as_compiling_and_solving_again(state: str) -> None:
    findings, _, _, network = incident()
    assert {"queue_depth@" + HOT, "link_flap@" + LINK} <= {*network.changeable}
    for sign in network.changeable[:: 1 if state == "absent" else 2]:
        read = {"present": True, "absent": False, "unknown": None}[state]
        again = compiled(
            tuple(
                replace(f, state=state, levels=None, coverage=1.0) if f"{f.sign}@{f.scope}" == sign else f
                for f in findings
            )
        )
        expected = solve(again.network).probability
        for cause, p in ask(restored(network, {sign: read})).causes.items():
            assert p == pytest.approx(expected[cause], rel=1e-7, abs=1e-9), sign


def test_without_a_cause_what_it_set_off_is_gone_too() -> None:
    _, found, judgement, network = incident()
    flap, spread = f"phy.link_flap@{LINK}", f"path.ecmp_redistribution@{GROUP}"
    for without in ([flap], [spread], [flap, spread]):
        left = 1 - needed(found.network, judgement.posterior, without)
        assert ask(restored(network), without).symptom == pytest.approx(left, abs=1e-9)
    assert (ask(restored(network), [flap]).symptom or 0) < 0.1 < (ask(restored(network), [spread]).symptom or 0)


# -- overlap ------------------------------------------------------------------------------------------------


def overlapping(present: dict[str, str], *pair: str) -> tuple[Overlap, ...]:
    """The overlaps of what was found; of a pair in any case, however sure."""
    found = compiled(tuple(answers(fabric()[1], present=present)))
    judgement = judge(shipped(), fabric()[1], found, solve(found.network))
    if pair:
        listed = tuple(replace(v, role="root" if v.id in pair else None) for v in judgement.listed)
        judgement = replace(judgement, listed=listed)
    return overlaps(judgement, Surroundings(found.network, judgement.explains))


def test_two_causes_that_are_each_enough_overlap() -> None:
    pair = f"phy.optic_degraded@{OTHER}", f"path.ecmp_redistribution@{GROUP}"
    optic = dict.fromkeys(("rx_power_low", "prefec_high", "fec_uncorr", "crc_rx"), OTHER)
    (overlap,) = overlapping({**SPREAD, **optic}, *pair)
    assert {*overlap.nodes} == {*pair}
    assert max(overlap.alone) < 0.5
    assert overlap.together > 0.9 > sum(overlap.alone)
    (row,) = told_overlaps([overlap], {overlap.nodes[0]: "H1", overlap.nodes[1]: "H2"})
    assert row.hypotheses == ("H1", "H2")
    assert "each may have been enough by itself" in row.statement


def test_one_cause_and_one_with_its_consequence_do_not_overlap() -> None:
    assert overlapping(SPREAD) == ()
    assert overlapping(SEEN) == ()


# -- the command ----------------------------------------------------------------------------------------


def run(*arguments: str | Path) -> Result:
    result = CliRunner().invoke(main, [str(argument) for argument in arguments])
    assert "internal error" not in result.output
    return result


@pytest.fixture(scope="module")
def saved(small_bundle: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("out") / "small.json"
    assert run("investigate", small_bundle, "-o", path).exit_code == 0
    return path


def test_command_tells_what_would_be_left_and_how_the_causes_would_stand(saved: Path) -> None:
    investigation = Investigation.from_json(saved.read_text())
    assert investigation.network is not None
    nodes = {f"{f.sign}@{f.scope}": f.id for f in investigation.findings}
    finding = next(nodes[sign] for sign in investigation.network.changeable if sign in nodes)
    root = investigation.root_causes[0]
    told = run("what-if", saved, "--do", f"{root}=off", "--finding", f"{finding}=unknown")
    assert told.exit_code == 0, told.output
    lines = told.output.splitlines()
    assert lines[0] == f"If {finding} were unknown:"
    assert any(line.startswith(f"  {root} ") and " -> " in line for line in lines)
    assert lines[-1].startswith(f"Without {root} the slowdown would have happened all the same: ")


@pytest.mark.parametrize(
    ("question", "remedy"),
    [
        ((), "--do H1=off"),
        (("--do", "H1"), "Write --do H1=off."),
        (("--do", "H1=on"), "Write --do H1=off."),
        (("--do", "H999=off"), "Ask about one of H1"),
        (("--finding", "E999=absent"), "Ask about one of E"),
        (("--finding", "E2=maybe"), "present, absent, unknown"),
    ],
)
def test_question_it_cannot_answer_is_a_usage_error_with_a_remedy(
    question: tuple[str, ...], remedy: str, saved: Path
) -> None:
    result = run("what-if", saved, *question)
    assert (result.exit_code, remedy in result.output) == (2, True), result.output


def test_report_exports_the_network_as_bif(saved: Path, tmp_path: Path) -> None:
    from pgmpy.readwrite import BIFReader

    assert run("report", saved, "-o", tmp_path / "small.bif").exit_code == 0
    model = BIFReader(str(tmp_path / "small.bif")).get_model()
    investigation = Investigation.from_json(saved.read_text())
    assert investigation.network is not None
    assert len(model.nodes) >= len(investigation.network.nodes)
    assert model.check_model()


def test_result_without_a_network_says_so(saved: Path, tmp_path: Path) -> None:
    old = Investigation.from_json(saved.read_text()).model_copy(update={"network": None})
    (tmp_path / "old.json").write_text(old.to_json())
    for question in (
        ("what-if", tmp_path / "old.json", "--do", "H1=off"),
        ("report", tmp_path / "old.json", "-f", "bif"),
    ):
        result = run(*question)
        assert (result.exit_code, "holds no explanation network" in result.output) == (2, True)
