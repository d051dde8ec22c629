"""Verdicts: status, role, share and tie classes; nothing is ruled out by what was not read."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import replace
from functools import cache

import pytest
from fabrics import HOSTS, JOB, answers, grouped, observe, shipped
from hypothesis import given, settings
from hypothesis import strategies as st

from causeline.engine.compile import Compiled, compile_network
from causeline.engine.findings import Findings, LevelReading, SignFinding
from causeline.engine.frontier.sweep import solve, symptom_shares
from causeline.engine.observed import Observed
from causeline.engine.places import Places
from causeline.engine.rules import KnowledgeBase
from causeline.engine.scope import Scope
from causeline.engine.verdicts import REFUTED_LOG10, TELLING, Judgement, Verdict, judge, weight
from causeline.engine.weighing import Relevance

LINK = "link:leaf-1/Ethernet1/spine-1/Ethernet1"
GROUP = "ecmp:leaf-1/uplinks"
HOT = "queue:leaf-1/Ethernet2/3"

FLAP = {"link_flap": LINK, "ack_timeout": "rail:mlx5_0"}
REDISTRIBUTION = {
    "ecmp_event": GROUP,
    "skew_step": GROUP,
    "queue_depth": HOT,
    "ecn_high": HOT,
    "hot_fabric_link": "port:leaf-1/Ethernet2",
}
OPTIC = {"rx_power_low": LINK, "prefec_high": LINK, "fec_uncorr": LINK}


@cache
def fabric(job: str | None = JOB) -> tuple[Observed, Places]:
    observed = observe(grouped(), job=job)
    return observed, Places(observed)


def judged(
    findings: Iterable[SignFinding], knowledge: KnowledgeBase | None = None, job: str | None = JOB
) -> tuple[Judgement, Compiled]:
    observed, places = fabric(job)
    rules = knowledge or shipped()
    compiled = compile_network(rules, observed, places, Findings(findings))
    return judge(rules, places, compiled, solve(compiled.network)), compiled


def found(job: str | None = JOB, **present: str) -> list[SignFinding]:
    """Everything read and absent, but for these signs."""
    return answers(fabric(job)[1], present=present)


@cache
def with_only(*present: tuple[str, str]) -> Judgement:
    return judged(found(**dict(present)))[0]


def rows(judgement: Judgement) -> dict[str, Verdict]:
    return {verdict.id: verdict for verdict in judgement.listed}


def changed(cause: str, **update: object) -> KnowledgeBase:
    """The shipped rules with one cause changed."""
    base = shipped()
    causes = {**base.causes, cause: base.causes[cause].model_copy(update=update)}
    return KnowledgeBase(causes, base.mechanisms, base.signs, "test")


# -- status --------------------------------------------------------------------------------------------


def test_a_cause_whose_signs_are_all_seen_is_supported_and_the_root() -> None:
    verdict = rows(with_only(*REDISTRIBUTION.items()))[f"path.ecmp_redistribution@{GROUP}"]
    assert (verdict.status, verdict.role) == ("supported", "root")
    assert verdict.probability > 0.9
    assert verdict.share > 0.8


def test_nothing_read_is_not_assessable_and_never_ruled_out() -> None:
    judgement, _ = judged([])
    assert {verdict.status for verdict in (*judgement.listed, *judgement.rest)} == {"not_assessable"}
    assert all(verdict.missing for verdict in (*judgement.listed, *judgement.rest))
    assert judgement.unknown_share > 0.3


def test_absences_with_no_coverage_rule_nothing_out() -> None:
    judgement, _ = judged(answers(fabric()[1], coverage=0.0))
    statuses = {verdict.status for verdict in (*judgement.listed, *judgement.rest)}
    assert "ruled_out" not in statuses


def test_a_clean_read_rules_out_what_it_refutes() -> None:
    judgement = with_only(*REDISTRIBUTION.items())
    optic = rows(judgement).get(f"phy.optic_degraded@{LINK}")
    rest = {verdict.hypothesis.cause.id: verdict for verdict in judgement.rest}
    for verdict in filter(None, (optic, rest.get("phy.optic_degraded"), rest.get("phy.link_flap"))):
        assert verdict.status == "ruled_out"
        assert verdict.refuted_log10 <= REFUTED_LOG10
        assert any(weight(relevance) <= -TELLING for relevance in verdict.relevances)


def refuting(verdict: Verdict) -> list[SignFinding]:
    return [relevance.finding for relevance in verdict.relevances if weight(relevance) <= -TELLING]


@pytest.mark.parametrize("cause", sorted(shipped().causes))
def test_without_its_refuting_findings_nothing_is_ruled_out(cause: str) -> None:
    findings = found(**FLAP)
    before, _ = judged(findings)
    chosen = next((v for v in (*before.rest, *before.listed) if v.hypothesis.cause.id == cause), None)
    assert chosen is not None
    if chosen.status != "ruled_out":
        assert chosen.status in ("supported", "possible", "not_assessable")
        return
    node = f"{cause}@{chosen.hypothesis.scope}"
    against = {(finding.sign, finding.scope) for finding in refuting(chosen)}
    assert against
    after, _ = judged([finding for finding in findings if (finding.sign, finding.scope) not in against])
    again = next(v for v in (*after.listed, *after.rest) if node in v.members)
    assert again.status != "ruled_out"


@settings(deadline=None, max_examples=12)
@given(st.sets(st.sampled_from(sorted(shipped().signs)), max_size=12))
def test_a_ruled_out_cause_is_refuted_by_what_is_still_read(unread: set[str]) -> None:
    judgement, _ = judged([finding for finding in found(**FLAP) if finding.sign not in unread])
    for verdict in (*judgement.listed, *judgement.rest):
        if verdict.status == "ruled_out":
            assert refuting(verdict)
            assert not {finding.sign for finding in refuting(verdict)} & unread
            assert verdict.refuted_log10 <= REFUTED_LOG10
            assert verdict.probability < 0.05
            assert verdict.share < 0.05
        if verdict.status == "not_assessable":
            assert verdict.missing
            assert {sign for sign, _ in verdict.missing} <= unread | {"pause_cycle"}


# -- shares and roles ------------------------------------------------------------------------------------


def test_shares_of_all_hypotheses_and_the_unknown_make_one() -> None:
    for present in ((), tuple(FLAP.items()), tuple(REDISTRIBUTION.items())):
        judgement = with_only(*present)
        total = judgement.unknown_share + sum(v.share for v in (*judgement.listed, *judgement.rest))
        assert total == pytest.approx(1)
        assert sum(judgement.by_loop.values()) == pytest.approx(1 - judgement.unknown_share)
        assert sum(judgement.by_domain.values()) == pytest.approx(1 - judgement.unknown_share)


def test_without_a_symptom_there_is_no_share_and_no_root() -> None:
    judgement, _ = judged(found(job=None, **REDISTRIBUTION), job=None)
    verdict = rows(judgement)[f"path.ecmp_redistribution@{GROUP}"]
    assert (verdict.status, verdict.role) == ("supported", "co_occurring")
    assert all((v.explains, v.share) == (None, 0.0) for v in (*judgement.listed, *judgement.rest))
    assert judgement.unknown_share == 0


def test_an_effect_is_a_consequence_of_its_trigger() -> None:
    judgement = with_only(*FLAP.items(), *REDISTRIBUTION.items())
    flap = rows(judgement)[f"phy.link_flap@{LINK}"]
    effect = rows(judgement)[f"path.ecmp_redistribution@{GROUP}"]
    assert (flap.status, flap.role) == ("supported", "root")
    assert (effect.status, effect.role, effect.share) == ("supported", "consequence", 0.0)
    assert effect.triggered_by == (flap.id,)
    assert flap.triggered_by == ()
    # What the flap did through the uneven spread is the flap's: without it hardly anything is left of the slowdown.
    assert flap.explains is not None and effect.explains is not None
    assert flap.explains > 0.9 > 0.3 > effect.explains


def test_an_effect_that_outlives_its_trigger_is_the_root() -> None:
    lasting = changed("path.ecmp_redistribution", outlives_trigger=True)
    judgement, _ = judged(found(**FLAP, **REDISTRIBUTION), lasting)
    assert rows(judgement)[f"path.ecmp_redistribution@{GROUP}"].role == "root"
    assert rows(judgement)[f"phy.link_flap@{LINK}"].role == "contributing"


def test_a_possible_trigger_gets_no_share_of_what_outlives_it() -> None:
    lasting = changed("path.ecmp_redistribution", outlives_trigger=True)
    judgement, compiled = judged(found(**REDISTRIBUTION), lasting)
    own = symptom_shares(compiled.network, judgement.posterior).by_cause
    flaps = [v for v in judgement.listed if v.hypothesis.cause.id == "phy.link_flap" and v.explains]
    total = own[f"path.ecmp_redistribution@{GROUP}"] / rows(judgement)[f"path.ecmp_redistribution@{GROUP}"].share
    assert flaps
    assert all(v.share == pytest.approx(own[v.id] / total) for v in flaps)


def test_an_effect_nobody_saw_is_no_consequence() -> None:
    effect = rows(with_only(*FLAP.items())).get(f"path.ecmp_redistribution@{GROUP}")
    assert effect is None or (effect.role, effect.status) == (None, "ruled_out")


def test_a_role_belongs_to_supported_causes_only() -> None:
    for verdict in with_only(*FLAP.items()).listed:
        assert (verdict.role is not None) is (verdict.status == "supported")


# -- tie classes -----------------------------------------------------------------------------------------


def twins() -> KnowledgeBase:
    """Two causes with the same signs: no reading separates them."""
    base = shipped()
    optic = base.causes["phy.optic_degraded"]
    twin = optic.model_copy(update={"id": "phy.twin", "title": "Twin"})
    return KnowledgeBase({**base.causes, "phy.twin": twin}, base.mechanisms, base.signs, "test")


def test_causes_that_no_reading_separates_share_a_class_and_its_status() -> None:
    judgement, _ = judged(found(**OPTIC), twins())
    members = {f"phy.optic_degraded@{LINK}", f"phy.twin@{LINK}"}
    (tie,) = [tie for tie in judgement.ties if set(tie.members) & members]
    assert set(tie.members) == members
    one, other = (rows(judgement)[member] for member in sorted(members))
    assert one.probability == pytest.approx(other.probability)
    assert one.probability < 0.8 <= tie.probability
    assert (one.status, other.status) == ("supported", "supported")
    assert (one.role, other.role) == ("root", "root")
    assert tie.share == pytest.approx(one.share + other.share)
    assert tie.split_by == ()


def test_what_one_member_alone_is_asked_splits_the_class() -> None:
    rules = twins()
    twin = rules.causes["phy.twin"]
    signs = {name: link for name, link in twin.signs.items() if name != "fec_uncorr"}
    causes = {**rules.causes, "phy.twin": twin.model_copy(update={"signs": signs, "drives": {}})}
    findings = [f for f in found(rx_power_low=LINK) if f.sign in ("rx_power_low", "link_flap")]
    judgement, _ = judged(findings, KnowledgeBase(causes, rules.mechanisms, rules.signs, "test"))
    (tie,) = [tie for tie in judgement.ties if f"phy.twin@{LINK}" in tie.members]
    assert ("fec_uncorr", Scope.parse(LINK)) in tie.split_by


ALIKE_QUEUES = ("queue:spine-1/Ethernet1/3", "queue:spine-2/Ethernet1/3")


def hot_queues(*queues: str) -> list[SignFinding]:
    """Only marks and load of inter-switch queues and slow sends of the job were read: these queues are hot."""
    ports = {f"port:{queue.removeprefix('queue:').rpartition('/')[0]}" for queue in queues}
    hot = {*(("ecn_high", queue) for queue in queues), *(("hot_fabric_link", port) for port in ports)}
    hot.add(("slow_flow_done", f"job:{JOB}"))
    signs = {sign for sign, _ in hot}
    return [
        replace(one, state="present" if (one.sign, str(one.scope)) in hot else "absent")
        for one in found()
        if one.sign in signs
    ]


def test_one_cause_at_places_that_look_alike_is_sure_as_a_class() -> None:
    judgement, _ = judged(hot_queues(*ALIKE_QUEUES))
    members = {f"load.elephant_collision@{queue}" for queue in ALIKE_QUEUES}
    (tie,) = [tie for tie in judgement.ties if set(tie.members) & members]
    assert members <= set(tie.members)
    assert {member.partition("@")[2] for member in tie.members} == set(ALIKE_QUEUES)
    verdicts = [rows(judgement)[member] for member in sorted(members)]
    assert max(verdict.probability for verdict in verdicts) < 0.8 <= tie.probability
    assert {(verdict.status, verdict.role) for verdict in verdicts} == {("supported", "root")}


def test_a_place_without_the_anomaly_is_in_no_class_of_places() -> None:
    judgement, _ = judged(hot_queues(ALIKE_QUEUES[0]))
    member = f"load.elephant_collision@{ALIKE_QUEUES[0]}"
    others = {one.partition("@")[2] for tie in judgement.ties if member in tie.members for one in tie.members}
    assert others <= {ALIKE_QUEUES[0]}


def test_causes_of_one_host_that_are_probable_alike_are_sure_as_a_class() -> None:
    """Its rank is late by all of the slowdown, the network idles and no GPU throttles: a stall that a calm processor
    makes less likely, or a fault that is rarer from the start."""
    read = ("late_rank", "cpu_busy", "gpu_throttle", "slow_flow_done", "path_idle")
    present = {"late_rank": f"host:{HOSTS[1]}", "path_idle": f"job:{JOB}"}
    findings = [one for one in found(**present) if one.sign in read]
    judgement, _ = judged(
        replace(one, levels=LevelReading(2, 2)) if (one.sign, one.state) == ("late_rank", "present") else one
        for one in findings
    )
    (tie,) = [tie for tie in judgement.ties if f"host.cpu_stall@host:{HOSTS[1]}" in tie.members]
    assert set(tie.members) == {f"{cause}@host:{HOSTS[1]}" for cause in ("host.cpu_stall", "host.gpu_fault")}
    assert ("gpu_xid", Scope.of("host", HOSTS[1])) in tie.split_by
    verdicts = [rows(judgement)[member] for member in tie.members]
    assert max(verdict.probability for verdict in verdicts) < 0.8 <= tie.probability
    assert {(verdict.status, verdict.role) for verdict in verdicts} == {("supported", "root")}


def test_different_causes_at_different_places_are_no_class() -> None:
    for tie in with_only(*FLAP.items()).ties:
        places = {member.partition("@")[2] for member in tie.members}
        blocks = {fabric()[1].block(Scope.parse(place)) for place in places}
        assert len(blocks) == 1


def test_two_causes_that_one_finding_excludes_alike_are_not_told_apart_by_it() -> None:
    """A sign that both causes always show, absent and fully read, has the weight -infinity for both."""
    rules = twins()
    causes = dict(rules.causes)
    for name in ("phy.optic_degraded", "phy.twin"):
        cell = causes[name].signs["rx_power_low"].model_copy(update={"p": 1.0})
        signs = {"rx_power_low": cell, "prefec_high": causes[name].signs["prefec_high"]}
        causes[name] = causes[name].model_copy(update={"signs": signs, "drives": {}})
    judgement, _ = judged(found(), KnowledgeBase(causes, rules.mechanisms, rules.signs, "test"))
    assert all(math.isfinite(tie.probability) for tie in judgement.ties)
    listed = [v.id for v in judgement.listed if v.hypothesis.cause.id in ("phy.optic_degraded", "phy.twin")]
    tied = {member for tie in judgement.ties for member in tie.members}
    assert set(listed) <= tied


# -- rows of many places ----------------------------------------------------------------------------------


def test_every_hypothesis_is_in_exactly_one_row() -> None:
    judgement, compiled = judged(found(**FLAP))
    members = [member for verdict in (*judgement.listed, *judgement.rest) for member in verdict.members]
    assert sorted(members) == sorted(compiled.hypotheses)
    assert all(len(verdict.members) == 1 for verdict in judgement.listed)
    causes = [verdict.hypothesis.cause.id for verdict in judgement.rest]
    assert len(causes) == len(set(causes))


def test_a_row_of_many_places_has_the_probability_of_any_of_them() -> None:
    judgement = with_only(*FLAP.items())
    probability = judgement.posterior.probability
    many = [verdict for verdict in judgement.rest if len(verdict.members) > 1]
    assert many
    for verdict in many:
        single = [probability[member] for member in verdict.members]
        assert max(single) <= verdict.probability * (1 + 1e-9)
        assert verdict.probability <= sum(single) * (1 + 1e-9)


def test_one_unread_place_keeps_a_row_from_being_ruled_out() -> None:
    findings = found(**FLAP)
    judgement = with_only(*FLAP.items())
    row = next(v for v in judgement.rest if v.hypothesis.cause.id == "load.incast" and v.status == "ruled_out")
    place = row.members[-1].partition("@")[2]
    port = "port:" + place.removeprefix("queue:").rpartition("/")[0]
    kept = [finding for finding in findings if str(finding.scope) not in (place, port)]
    after, _ = judged(kept)
    again = next(v for v in (*after.rest, *after.listed) if row.members[-1] in v.members)
    assert again.status == "not_assessable"
    assert str(again.hypothesis.scope) == place


# -- weights -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("if_true", "if_none", "expected"),
    [(0.97, 0.0097, 2.0), (0.03, 0.3, -1.0), (0.0, 0.5, -math.inf), (0.5, 0.0, math.inf)],
)
def test_a_weight_is_the_log_of_the_bayes_factor(if_true: float, if_none: float, expected: float) -> None:
    finding = SignFinding("queue_depth", Scope.parse(HOT), "present")
    assert weight(Relevance(finding, if_true, if_none, (), True)) == pytest.approx(expected)


def test_a_root_stays_one_however_many_members_its_class_has() -> None:
    base = shipped()
    optic = base.causes["phy.optic_degraded"]
    more = {f"phy.twin_{n}": optic.model_copy(update={"id": f"phy.twin_{n}"}) for n in range(6)}
    judgement, _ = judged(found(**OPTIC), KnowledgeBase({**base.causes, **more}, base.mechanisms, base.signs, "test"))
    verdict = rows(judgement)[f"phy.optic_degraded@{LINK}"]
    assert verdict.share < 0.2
    assert (verdict.status, verdict.role) == ("supported", "root")
