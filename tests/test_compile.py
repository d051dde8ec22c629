"""From findings to the network: grades come out as given, what was not read is no node, pausing spreads where it was
seen, and the weights of one hypothesis are those of its own small network."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Sequence
from functools import cache
from itertools import product

import pytest
from fabrics import END, HOSTS, JOB, START, answers, counter, firmware, grouped, observe, placement, shipped

from causeline.engine.compile import Compiled, compile_network
from causeline.engine.facts import Fact
from causeline.engine.findings import Findings, LevelReading, SignFinding
from causeline.engine.network import Level, Node, NodeKind
from causeline.engine.one_cause import Chain, MechanismNode, SignReach, mechanism_states
from causeline.engine.places import Places
from causeline.engine.results import State
from causeline.engine.rules import KnowledgeBase, SignLink
from causeline.engine.scope import Scope, ScopeKind
from causeline.engine.weighing import combined_factor, relevance


def compiled(facts: Iterable[Fact], findings: Iterable[SignFinding], job: str | None = JOB) -> tuple[Compiled, Places]:
    observed = observe(facts, job=job)
    places = Places(observed)
    return compile_network(shipped(), observed, places, Findings(findings)), places


@cache
def everything_read(state: State = "absent", coverage: float = 0.5) -> tuple[Compiled, Places]:
    """The small fabric with an answer to every sign at every place."""
    return compiled(grouped(), answers(Places(observe(grouped())), state, coverage))


def probability(network: Sequence[Node], sign: str, cause: str, level: int = 1) -> float:
    """P(sign at this level or above | this cause and no other) by enumeration: mechanisms of different places do not
    touch each other."""
    nodes = {node.id: node for node in network}
    asked = (Level(nodes[sign].leak, nodes[sign].links), *nodes[sign].higher)[level - 1]
    above: set[str] = set()
    waiting = [parent for parent, _ in nodes[sign].links]
    while waiting:
        parent = nodes[waiting.pop()]
        if parent.kind is NodeKind.MECHANISM and parent.id not in above:
            above.add(parent.id)
            waiting.extend(grandparent for grandparent, _ in parent.links)
    places: dict[str | None, list[Node]] = defaultdict(list)
    for node in network:
        if node.id in above:
            places[node.place].append(node)
    off = (1 - asked.leak) * math.prod(1 - p for parent, p in asked.links if parent == cause)
    for members in places.values():
        total = 0.0
        for bits in product((False, True), repeat=len(members)):
            on = {member.id for member, bit in zip(members, bits, strict=True) if bit}
            weight = math.prod(1 - p for parent, p in asked.links if parent in on)
            for member, bit in zip(members, bits, strict=True):
                stays_off = (1 - member.leak) * math.prod(1 - p for parent, p in member.links if parent in {*on, cause})
                weight *= 1 - stays_off if bit else stays_off
            total += weight
        off *= total
    return (1 - off) * math.prod(1 - k for parent, k in nodes[sign].inhibitors if parent == cause)


# -- grades ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("cause", sorted(shipped().causes))
def test_the_network_gives_each_grade_of_a_cause(cause: str) -> None:
    """P(sign | only this cause) is within .05 of the cell (DESIGN.md section 5), at every place of the fabric."""
    found, places = everything_read()
    hypotheses = [(node, h) for node, h in found.hypotheses.items() if h.cause.id == cause]
    assert hypotheses
    compared = 0
    for node, hypothesis in hypotheses[:2]:
        for sign, cell in hypothesis.cause.signs.items():
            for scope in places.related(hypothesis.scope, cell.at):
                if cell.effect == "raises" and cell.induced_ok is None:
                    compared += 1
                    given = [
                        probability(found.network.nodes, f"{sign}@{scope}", node, level)
                        for level in range(1, 1 + len(cell.by_level))
                    ]
                    assert given == pytest.approx(list(cell.by_level), abs=0.05)
    assert compared


def test_without_a_cause_a_sign_has_its_leak() -> None:
    found, _ = everything_read()
    for sign in ("queue_depth", "pause_duty_host", "rx_power_low", "cnp_sent_high", "ecmp_event"):
        node = next(node.id for node in found.network.nodes if node.id.startswith(f"{sign}@"))
        assert probability(found.network.nodes, node, "none") == pytest.approx(
            shipped().signs[sign].leak.by_level[0], abs=0.05
        )


# -- what becomes a node ---------------------------------------------------------------------------------


def test_what_was_not_read_is_no_node() -> None:
    found, _ = compiled(grouped(), [])
    signs = [node.id for node in found.network.nodes if node.kind is NodeKind.SIGN]
    assert signs == [f"symptom@job:{JOB}"]
    assert found.network.evidence == {f"symptom@job:{JOB}": found.network.evidence[signs[0]]}


def test_parents_come_first_whatever_order_facts_came_in() -> None:
    found, _ = everything_read()
    seen: set[str] = set()
    for node in found.network.nodes:
        assert {parent for parent, _ in (*node.links, *node.inhibitors)} <= seen
        seen.add(node.id)
    findings = [
        SignFinding("queue_depth", Scope.of("queue", "leaf-1", f"Ethernet{n}", 3), "present") for n in (1, 2, 11)
    ]
    one, _ = compiled(grouped(), findings)
    other, _ = compiled(reversed(grouped()), reversed(findings))
    assert one.network == other.network


def test_without_a_job_there_is_no_symptom() -> None:
    found, _ = compiled(grouped(), [], job=None)
    assert found.symptom is None
    assert found.network.symptom is None


def test_a_version_that_no_host_of_the_job_runs_is_no_suspect() -> None:
    facts = [fact for fact in grouped() if fact != placement() and fact != firmware("host-4", "mlx5_0", "28.39")]
    facts = [fact for fact in facts if fact != firmware("host-4", "mlx5_1", "28.39")]
    other: list[Fact] = [
        placement(HOSTS[:3]),
        firmware("host-4", "mlx5_0", "16.35"),
        firmware("host-4", "mlx5_1", "16.35"),
    ]
    found, _ = compiled([*facts, *other], [])
    cohorts = {str(h.scope) for h in found.hypotheses.values() if h.scope.kind is ScopeKind.COHORT}
    assert cohorts == {"cohort:mlx5_core 28.39"}


def test_a_hazard_is_a_rate_times_the_window() -> None:
    found, _ = compiled(grouped(), [])
    flap = shipped().causes["phy.link_flap"]
    assert flap.hazard is not None
    hypothesis = next(h for h in found.hypotheses.values() if h.cause is flap)
    assert hypothesis.prior == pytest.approx(flap.hazard.rate * (END - START) / 86400)


# -- signs that a cause rules out ------------------------------------------------------------------------


def with_effect(effect: str, p: float) -> KnowledgeBase:
    """The shipped rules, but incast lowers `init_host` by `effect`."""
    base = shipped()
    cause = base.causes["load.incast"]
    cell = SignLink.model_validate({"p": p, "basis": "judgement: test", "effect": effect})
    changed = cause.model_copy(update={"signs": {**cause.signs, "init_host": cell}})
    return KnowledgeBase({**base.causes, "load.incast": changed}, base.mechanisms, base.signs, "test")


QUEUE = Scope.of("queue", "leaf-1", "Ethernet11", 3)
INCAST = f"load.incast@{QUEUE}"


def lowered(effect: str, finding: SignFinding, p: float = 0.001) -> Compiled:
    observed = observe(grouped())
    return compile_network(with_effect(effect, p), observed, Places(observed), Findings([finding]))


@pytest.mark.parametrize("state", ["present", "absent"])
@pytest.mark.parametrize("coverage", [1.0, 0.3, 0.0])
def test_an_excluded_sign_counts_against_its_cause_as_far_as_it_was_read(state: State, coverage: float) -> None:
    finding = SignFinding("init_host", QUEUE, state, coverage=coverage)
    found = lowered("excludes", finding)
    leak = shipped().signs["init_host"].leak.p
    seen = finding.likelihood()
    assert seen is not None
    expected = (seen.on * 0.001 + seen.off * 0.999) / (seen.on * leak + seen.off * (1 - leak))
    assert found.network.evidence[INCAST].on / found.network.evidence[INCAST].off == pytest.approx(expected)
    (sign,) = [node for node in found.network.nodes if node.id == f"init_host@{QUEUE}"]
    assert sign.inhibitors == ()


def test_a_suppressed_sign_is_held_down_by_its_cause() -> None:
    found = lowered("suppresses", SignFinding("init_host", QUEUE, "absent"))
    (sign,) = [node for node in found.network.nodes if node.id == f"init_host@{QUEUE}"]
    ((inhibitor, k),) = sign.inhibitors
    assert inhibitor == INCAST
    assert k == pytest.approx(1 - 0.001 / shipped().signs["init_host"].leak.p)
    assert INCAST not in found.network.evidence


# -- pausing spreads upstream ----------------------------------------------------------------------------


def paused(device: str, port: str, after: float = 3e5) -> Fact:
    return counter(f"{device}:{port}:3", "pfc_rx_pause_us", 0, after)


def test_back_pressure_runs_from_the_pauser_to_the_paused() -> None:
    facts = [*grouped(), paused("leaf-1", "Ethernet11"), paused("spine-1", "Ethernet1"), paused("leaf-2", "Ethernet1")]
    upstream = Scope.of("queue", "spine-1", "Ethernet1", 3)
    further = Scope.of("queue", "leaf-2", "Ethernet1", 3)
    found, _ = compiled(facts, [SignFinding("pause_duty_fabric", scope, "present") for scope in (upstream, further)])
    nodes = {node.id: dict(node.links) for node in found.network.nodes}
    assert f"backpressure@{QUEUE}" in nodes[f"backpressure@{upstream}"]
    assert f"backpressure@{upstream}" in nodes[f"backpressure@{further}"]
    assert f"backpressure@{further}" in nodes[f"pause_duty_fabric@{further}"]
    assert f"backpressure@{upstream}" not in nodes[f"backpressure@{QUEUE}"]


def test_no_pause_no_edge() -> None:
    found, _ = everything_read()
    for node in found.network.nodes:
        if node.kind is NodeKind.MECHANISM:
            place = node.id.partition("@")[2]
            mechanisms = [parent for parent, _ in node.links if parent.partition("@")[0] in shipped().mechanisms]
            assert all(parent.partition("@")[2] == place for parent in mechanisms)


def test_a_circle_of_pauses_gives_no_circle_of_nodes() -> None:
    ports = [("leaf-1", "Ethernet1"), ("spine-1", "Ethernet2"), ("leaf-2", "Ethernet2"), ("spine-2", "Ethernet1")]
    observed = observe([*grouped(), *(paused(*port, after=9e5) for port in ports)])
    assert len(observed.pause_graph.cycles) == 1
    found = compile_network(shipped(), observed, Places(observed), Findings([]))
    circles = {str(h.scope) for h in found.hypotheses.values() if h.cause.id == "pfc.deadlock"}
    assert len(circles) == 2


# -- one hypothesis --------------------------------------------------------------------------------------


def enumerated(node: str, state: State, coverage: float, signs: set[tuple[str, Scope]], cause_on: bool) -> float:
    """P(these signs as read | only this cause, or none) over all joint states of the hypothesis' chain."""
    found, _ = everything_read(state, coverage)
    chain = found.chains[node]
    nodes = {n.id: n for n in found.network.nodes}
    total = 0.0
    for weight, on in mechanism_states(chain.mechanisms, cause_on):
        active = {*on, node} if cause_on else set(on)
        for reach in chain.signs:
            if (reach.sign, reach.scope) in signs:
                sign = nodes[reach.id]
                links = [p for parent, p in sign.links if parent in active]
                p_on = 1 - (1 - sign.leak) * math.prod(1 - p for p in links)
                if reach.cell is not None and reach.cell.effect != "raises":
                    p_on = (reach.cell.by_level if cause_on else reach.leak)[0]
                seen = found.finding(reach).likelihood()
                assert seen is not None
                weight *= seen.on * p_on + seen.off * (1 - p_on)
        total += weight
    return total


@pytest.mark.parametrize("cause", ["load.incast", "path.ecmp_redistribution", "phy.optic_degraded", "nic.pause_storm"])
@pytest.mark.parametrize(("state", "coverage"), [("present", 1.0), ("absent", 0.5)])
def test_weights_are_those_of_the_network_of_the_cause_alone(cause: str, state: State, coverage: float) -> None:
    found, _ = everything_read(state, coverage)
    node = next(node for node, h in found.hypotheses.items() if h.cause.id == cause)
    bearings = relevance(found, node)
    assert bearings
    for one in bearings:
        key = {(one.finding.sign, one.finding.scope)}
        assert one.if_true == pytest.approx(enumerated(node, state, coverage, key, True), abs=0.02)
    signs = {(one.finding.sign, one.finding.scope) for one in bearings}
    together = combined_factor(found, node, [one.finding for one in bearings])
    expected = enumerated(node, state, coverage, signs, True) / enumerated(node, state, coverage, signs, False)
    assert math.log10(together) == pytest.approx(math.log10(expected), abs=0.2)


def test_findings_of_one_mechanism_are_not_multiplied() -> None:
    """Depth, marks and notifications of one queue are one observation: together they weigh less than one by one."""
    found, _ = everything_read("present", 1.0)
    bearings = [b for b in relevance(found, INCAST) if b.finding.sign in ("queue_depth", "ecn_high", "cnp_sent_high")]
    alone = math.prod(b.if_true / b.if_none for b in bearings)
    assert combined_factor(found, INCAST, [b.finding for b in bearings]) < alone / 5


@pytest.mark.parametrize(
    ("read", "likelier"),
    [
        (LevelReading(2, 2), "nic.slow_receiver"),
        (LevelReading(3, 3), "nic.slow_receiver"),
        (LevelReading(4, 4), "nic.pause_storm"),
    ],
)
def test_how_long_a_host_pauses_tells_a_slow_receiver_from_a_storm(read: LevelReading, likelier: str) -> None:
    """Both pause the leaf; only a storm does so nearly all the time. Neither is acquitted by the other's level."""
    found, _ = compiled(grouped(), [SignFinding("pause_duty_host", QUEUE, "present", levels=read)])
    factors = {
        cause: relevance(found, f"{cause}@nic:host-1/mlx5_0")[0].factor
        for cause in ("nic.slow_receiver", "nic.pause_storm")
    }
    assert max(factors, key=lambda cause: factors[cause]) == likelier
    assert max(factors.values()) > 2 * min(factors.values())
    assert min(factors.values()) > 1


def test_levels_above_what_was_read_stay_open_as_far_as_time_was_not_covered() -> None:
    short = SignFinding("pause_duty_host", QUEUE, "present", coverage=0.25, levels=LevelReading(2, 3))
    whole = SignFinding("pause_duty_host", QUEUE, "present", levels=LevelReading(2, 3))
    unsaid = SignFinding("pause_duty_host", QUEUE, "present")
    likelihoods = [finding.likelihood(4) for finding in (short, whole, unsaid)]
    assert [seen.by_level for seen in likelihoods if seen is not None] == [
        (0.0, 0.0, 1.0, 1.0, 0.75),
        (0.0, 0.0, 1.0, 1.0, 0.0),
        (0.0, 1.0, 1.0, 1.0, 1.0),
    ]


def test_no_findings_say_nothing() -> None:
    found, _ = everything_read()
    assert combined_factor(found, INCAST, []) == pytest.approx(1.0)


def test_the_states_of_a_chain_add_up_to_one() -> None:
    chain = (MechanismNode("a", 0.1, 0.9, ()), MechanismNode("b", 0.2, 0.0, (("a", 0.7),)))
    for cause_on in (True, False):
        assert sum(weight for weight, _ in mechanism_states(chain, cause_on)) == pytest.approx(1)
    on = sum(weight for weight, states in mechanism_states(chain, True) if "b" in states)
    p_a = 1 - 0.9 * 0.1
    assert on == pytest.approx(p_a * (1 - 0.8 * 0.3) + (1 - p_a) * 0.2)


def test_a_sign_without_a_leak_can_be_weighed() -> None:
    """A sign that never shows at an innocent place: seeing it is proof, not a division by zero."""
    base = shipped()
    sign = base.signs["link_flap"]
    signs = {**base.signs, "link_flap": sign.model_copy(update={"leak": sign.leak.model_copy(update={"p": 0.0})})}
    observed = observe(grouped())
    link = Scope.of("link", "leaf-1", "Ethernet1", "spine-1", "Ethernet1")
    knowledge = KnowledgeBase(base.causes, base.mechanisms, signs, "test")
    found = compile_network(
        knowledge, observed, Places(observed), Findings([SignFinding("link_flap", link, "present")])
    )
    assert relevance(found, f"phy.link_flap@{link}")[-1].if_none == 0


def test_a_chain_holds_only_what_was_read() -> None:
    found, _ = compiled(grouped(), [SignFinding("queue_depth", QUEUE, "present")])
    chain: Chain = found.chains[INCAST]
    reached: list[SignReach] = list(chain.signs)
    assert [reach.sign for reach in reached] == ["queue_depth"]
