"""Every case of every rule comes out as it says; and a case that should not pass does not."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

import pytest

from causeline.engine.errors import KnowledgeError, UsageError
from causeline.engine.facts import Cable, Event, FirmwareState, JobPlacement, Reading, RouteState, Series
from causeline.engine.investigate import Case as Examined
from causeline.engine.one_cause import ancestors, induced_probability
from causeline.engine.rules import KnowledgeBase
from causeline.engine.topology import DeviceRole, Topology
from causeline.knowledge import load
from causeline.knowledge.case_reading import START, reading_of
from causeline.knowledge.case_run import PlayableCase, differences, examined, play, playable_cases, run_cases
from causeline.knowledge.casefile import CaseFile, RuleCases
from causeline.knowledge.induced import induced_probability_of
from causeline.knowledge.loader import SHIPPED, read_library
from causeline.knowledge.shorthand import samples, seconds
from causeline.knowledge.small_fabric import load_fabric
from causeline.knowledge.yaml_source import YamlSource

CASES = {case.name: case for case in playable_cases()}


@pytest.fixture(scope="module")
def shipped() -> KnowledgeBase:
    return load()


@pytest.mark.parametrize("name", CASES)
def test_shipped_case(name: str, shipped: KnowledgeBase) -> None:
    assert play(CASES[name], shipped).differences == ()


@pytest.fixture(scope="module")
def missing_link(shipped: KnowledgeBase) -> Examined:
    return examined(_playable(MISSING_LINK, "expect: {root: true}"), shipped)


# -- cases that must fail ----------------------------------------------------------------------------

MISSING_LINK = 'neighbours: [{at: 0s, without: ["leaf-01/Ethernet2"]}]'


@pytest.mark.parametrize(
    ("expect", "said"),
    [
        ("status: ruled_out", "is supported with probability .*, expected ruled_out"),
        ("root: false", "expected no root cause; root causes: path.missing_link at link:leaf-01/Ethernet2"),
        ("leads: false", "expected another to lead"),
        ("probability_max: 0.1", "expected at most 0.1"),
        ("at: 'link:leaf-01/Ethernet1/spine-01/Ethernet1', probability_min: 0.9", "expected at least 0.9"),
        ("findings: {link_absent: absent}", "sign link_absent is present .*, expected absent"),
        (
            "findings: {'link_absent link:leaf-01/Ethernet1/spine-01/Ethernet1': present}",
            "is absent .*, expected present",
        ),
        ("findings: {link_flap: absent}", "sign link_flap is unknown, expected absent"),
        ("findings: {link_absense: absent}", "findings name 'link_absense', which is no sign"),
        ("not_supported: [path.missing_link]", "expected not to be supported"),
        ("not_supported: [path.misplaced]", "not_supported names 'path.misplaced', which is no cause"),
    ],
)
def test_what_comes_out_otherwise_is_told_with_its_place(
    expect: str, said: str, shipped: KnowledgeBase, missing_link: Examined
) -> None:
    playable = _playable(MISSING_LINK, f"expect: {{{expect}}}")
    (difference,) = differences(playable, missing_link, shipped)
    assert re.match(r"x\.cases\.yaml:9: tried: ", difference)
    assert re.search(said, difference)


@pytest.mark.parametrize(
    ("situation", "said"),
    [
        (
            "series: {leaf-09/Ethernet1 tx_bytes: '1x4'}",
            "8: tried: no place of the topology matches leaf-09",
        ),
        ("series: {leaf-01/Ethernet77 tx_bytes: '1x4'}", "matches leaf-01/Ethernet77"),
        (
            "firmware: [{device: gpu-01, port: eth*, driver: a, version: b}]",
            "no linked port of the topology",
        ),
        ("events: [{at: 1m, kind: reboot, device: spine-9}]", "no device of the topology matches 'spine-9'"),
        (
            "routes: [{at: 0s, without: [leaf-01/Ethernet77]}]",
            "no linked port of the topology matches leaf-01/Ethernet77",
        ),
        ("steps: '2x9 _ 2x9'", "a step takes time"),
        ("steps: '2x9'\n    ranks: {gpu-01: {enters: '1x9', sends: '1x8 _'}}", "a step takes time"),
        ("steps: '2x9'\n    ranks: {gpu-01: {enters: '1x9', sends: '1x8'}}", "10 entries and 9 sends of 10 steps"),
        (
            "steps: '2x9'\n    ranks: {gpu-99: {enters: '1x9', sends: '1x9'}}",
            "no device of the topology matches 'gpu-99'",
        ),
        ("ranks: {gpu-01: {enters: '1x9', sends: '1x9'}}", "10 entries and 10 sends of 200 steps"),
        ("topology: two-untied", "there is no topology 'two-untied'; known: two-unit"),
    ],
)
def test_a_case_that_cannot_be_played_has_failed(situation: str, said: str, shipped: KnowledgeBase) -> None:
    result = play(_playable(situation, "expect: {root: false}"), shipped)
    assert not result.has_passed
    assert said in result.differences[0]


def test_an_unknown_rule_has_no_cases() -> None:
    with pytest.raises(UsageError, match=r"no cases for path\.nowhere"):
        playable_cases(["path.nowhere"])


def test_a_broken_case_file_is_told_with_its_place(tmp_path: Path) -> None:
    target = tmp_path / "causes/path/missing_link.cases.yaml"
    target.parent.mkdir(parents=True)
    target.write_text("format: 1\ncases:\n  - {name: Fires, topology: two-unit, expect: {status: supported}}\n")
    with pytest.raises(KnowledgeError, match=r"missing_link\.cases\.yaml:3:6: cases\.0\.name"):
        playable_cases((), tmp_path)


def test_an_overlay_brings_its_own_cases_and_topologies(tmp_path: Path) -> None:
    cases = tmp_path / "causes/path/missing_link.cases.yaml"
    cases.parent.mkdir(parents=True)
    cases.write_text(
        "format: 1\ncases:\n  - name: own\n    topology: own\n    steps: '2x99'\n    neighbours: [{at: 0s}]\n"
        "    expect: {findings: {link_absent: absent}}\n"
    )
    (tmp_path / "topologies").mkdir()
    shipped = (SHIPPED / "topologies/two-unit.yaml").read_text()
    (tmp_path / "topologies/own.yaml").write_text(shipped)
    (result,) = run_cases(["path.missing_link"], tmp_path)
    assert result.name == "path.missing_link.own"
    assert result.has_passed


# -- from a case to facts ----------------------------------------------------------------------------


def test_a_case_makes_the_facts_that_adapters_would_make() -> None:
    reading = _reading(
        """
    interval: 15s
    steps: "2x2"
    series: {"leaf-01/Ethernet1/3 queue_peak_bytes": "1 _ 3"}
    routes: [{at: 0s}, {at: 1m, without: ["leaf-01/Ethernet[12]"]}]
    neighbours: [{at: 0s, without: ["leaf-01/Ethernet1"]}]
    firmware: [{device: gpu-01, port: "mlx5_*", driver: mlx5_core, version: "28.1"}]
    events: [{at: -1h, kind: session_up, device: "leaf-0[12]", details: {peer: 10.0.0.101}}]
"""
    )
    queue, steps = _series(reading)["queue_peak_bytes"], _series(reading)["step_seconds"]
    assert (queue.device, queue.port, queue.qualifier) == ("leaf-01", "Ethernet1", "3")
    assert queue.times == (START, START + 15, START + 30)
    assert queue.values == (1.0, None, 3.0)
    assert steps.times == (START + 2, START + 4, START + 6)
    assert reading.incident.window == (START, START + 30)
    routes = [fact for fact in reading.facts if isinstance(fact, RouteState) and fact.device == "leaf-01"]
    assert [[hop.interface for hop in route.next_hops] for route in routes] == [
        ["Ethernet1", "Ethernet2", "Ethernet3", "Ethernet4"],
        ["Ethernet3", "Ethernet4"],
    ]
    assert routes[1].next_hops[0].address == "10.0.0.103"
    observed = [fact for fact in reading.facts if isinstance(fact, Cable) and fact.kind == "observed"]
    ends = {end for fact in observed for end in ((fact.a_device, fact.a_port), (fact.b_device, fact.b_port))}
    assert ("leaf-01", "Ethernet1") not in ends
    assert ("leaf-01", "Ethernet2") in ends
    assert [fact.port for fact in reading.facts if isinstance(fact, FirmwareState)] == ["mlx5_0", "mlx5_1"]
    assert [fact.device for fact in reading.facts if isinstance(fact, Event)] == ["leaf-01", "leaf-02"]
    assert all(fact.at == START - 3600 for fact in reading.facts if isinstance(fact, Event))


def test_what_a_case_does_not_give_was_not_collected() -> None:
    reading = _reading("\n    steps: '2x9'\n    placement: false\n")
    kinds = {type(fact) for fact in reading.facts}
    assert kinds == {Cable, Series}
    assert JobPlacement in {type(fact) for fact in _reading("\n    steps: '2x9'\n").facts}


def test_a_named_place_wins_over_a_pattern_and_null_takes_away() -> None:
    reading = _reading(
        """
    interval: 15s
    series:
      leaf-01/Ethernet2 tx_bytes: "5x1"
      leaf-01/Ethernet3 tx_bytes: null
      "leaf-*/Ethernet[1-4] tx_bytes": "1x1"
      "leaf-02/Ethernet* tx_bytes": "2x1"
"""
    )
    found = {(one.device, one.port): one.values[0] for one in reading.facts if isinstance(one, Series)}
    assert found[("leaf-01", "Ethernet1")] == 1
    assert found[("leaf-01", "Ethernet2")] == 5
    assert ("leaf-01", "Ethernet3") not in found
    assert found[("leaf-02", "Ethernet1")] == found[("leaf-02", "Ethernet9")] == 2


def test_facts_of_a_case_cite_its_lines() -> None:
    reading = _reading('\n    interval: 15s\n    series:\n      leaf-01/Ethernet2 tx_bytes: "5x1"\n')
    provenance = _series(reading)["tx_bytes"].provenance
    assert reading.excerpt(provenance.source, provenance.record) == 'leaf-01/Ethernet2 tx_bytes: "5x1"'


def test_the_small_fabric_has_the_roles_rails_and_groups_it_describes() -> None:
    topology = Topology(_reading("\n    routes: [{at: 0s}]\n").facts)
    assert [device for device in topology.ports_of if topology.role(device) is DeviceRole.SPINE] != []
    assert topology.leaves == ("leaf-01", "leaf-02", "leaf-03", "leaf-04")
    assert set(topology.rails) == {"mlx5_0", "mlx5_1"}
    assert [(group.device, group.name, len(group.members)) for group in topology.ecmp_groups] == [
        (leaf, "uplinks", 4) for leaf in topology.leaves
    ]


# -- grades ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("rule", ["path.ecmp_redistribution", "nic.pause_storm", "phy.optic_degraded"])
def test_lint_judges_the_probability_that_the_compiled_network_gives(rule: str, shipped: KnowledgeBase) -> None:
    library, compiled = read_library(), examined(CASES[f"{rule}.fires"], shipped).compiled
    compared = 0
    for node, hypothesis in compiled.hypotheses.items():
        chain = compiled.chains[node]
        for reach in chain.signs:
            if hypothesis.cause.id == rule and reach.cell is not None and reach.cell.effect == "raises":
                judged = induced_probability_of(library, hypothesis.cause, reach.sign)
                assert judged == pytest.approx(induced_probability(reach, ancestors(reach, chain)), abs=1e-9), reach.id
                compared += 1
    assert compared >= len(shipped.causes[rule].signs)


# -- shorthand ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("1 2.5 -3e-2", (1, 2.5, -0.03)),
        ("-2+4x3", (-2, 2, 6, 10)),
        ("1-2x4", (1, -1, -3, -5, -7)),
        ("1x4", (1, 1, 1, 1, 1)),
        ("1 _x3 5", (1, None, None, None, 5)),
        ("_", (None,)),
        ("0+1e3x1", (0, 1000)),
        ("-inf", (float("-inf"),)),
    ],
)
def test_the_shorthand_is_that_of_prometheus(text: str, values: tuple[float | None, ...]) -> None:
    assert samples(text) == values


@pytest.mark.parametrize("text", ["", "a", "1+2", "1x", "x3", "_3", "1+x3", "stale", "1x999999999", "0x5f"])
def test_other_shorthand_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"samples|is not a number"):
        samples(text)


@pytest.mark.parametrize("text", ["15", "", "s", "1m 30s", "--1m", 15, None, "1w"])
def test_a_span_without_a_unit_is_refused(text: object) -> None:
    with pytest.raises(ValueError, match="time span"):
        seconds(text)


def _playable(situation: str, expect: str) -> PlayableCase:
    """A case of path.missing_link on a job that slows down; `situation` stands in line 8, `expect` in line 9."""
    source = YamlSource.parse(
        "x.cases.yaml",
        "\n".join(
            (
                "format: 1",
                "base:",
                "  topology: two-unit",
                "  interval: 15s",
                "  steps: '2x99 3x99'",
                "cases:",
                "  - name: tried",
                f"    {situation}",
                f"    {expect}",
            )
        ).encode(),
    )
    file, problems = source.validate(CaseFile)
    assert file is not None, problems
    return PlayableCase(RuleCases("path.missing_link", True, file, source), file.cases[0], (SHIPPED,))


def _reading(situation: str) -> Reading:
    text = f"format: 1\ncases:\n  - name: tried\n    topology: two-unit\n    expect: {{root: false}}{situation}"
    source = YamlSource.parse("x.cases.yaml", text.encode())
    file, problems = source.validate(CaseFile)
    assert file is not None, problems
    fabric, problems = load_fabric((SHIPPED,), "two-unit")
    assert fabric is not None, problems
    return reading_of(RuleCases("path.missing_link", True, file, source), file.cases[0], fabric)


def _series(reading: Reading) -> Mapping[str, Series]:
    return {fact.metric: fact for fact in reading.facts if isinstance(fact, Series)}
