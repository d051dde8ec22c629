"""The scoreboard: what counts as right, acquitted and blamed, the figures made of it, and that the truth moves only the
score."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st
from investigation_variants import inc_4127, quiet

from causeline import adapters, knowledge
from causeline.engine.cli import main
from causeline.engine.errors import UnreadableInput, UsageError
from causeline.engine.facts import Provenance, Series
from causeline.engine.results import Hypothesis, Investigation, Place, TieClass
from causeline.engine.scoring.baselines import BaselineScore, baseline, best_graded_causes
from causeline.engine.scoring.scoreboard import (
    TRUTH,
    Calibrated,
    Score,
    TrueCause,
    TruePlace,
    Truth,
    crashed,
    is_right,
    read_truth,
)
from causeline.engine.scoring.scoreboard import score as score_of
from causeline.engine.scoring.totals import SMALLEST_BIN, brier, calibration_bins, total, wilson

DOMAINS = {"path.ecmp_redistribution": "network", "host.gpu_throttle": "host", "phy.optic_degraded": "network"}
ECMP = TrueCause(
    accept=("path.ecmp_redistribution",),
    places=(TruePlace(device="leaf-07", port="Ethernet12"), TruePlace(device="leaf-07")),
)
OPTIC = TrueCause(
    accept=("phy.optic_degraded", "phy.dust_in_the_connector"), places=(TruePlace(device="leaf-07", port="Ethernet12"),)
)
NOTHING = BaselineScore(three_sigma="", three_sigma_place=None, three_sigma_cause=None, right_signs=())


def harmful(*causes: TrueCause) -> Truth:
    return Truth(causes=causes, victim_jobs=("run-0412",))


def score(investigation: Investigation, truth: Truth) -> Score:
    return score_of(investigation, truth, DOMAINS, "bundle", 1.0)


def edited(investigation: Investigation, row: str, **update: object) -> Investigation:
    """The investigation with one hypothesis changed."""
    rows = tuple(one.model_copy(update=update) if one.id == row else one for one in investigation.hypotheses)
    return investigation.model_copy(update={"hypotheses": rows})


def row(cause: str, *places: tuple[str, str | None]) -> Hypothesis:
    named = tuple(Place(device=device, port=port) for device, port in places)
    return inc_4127().hypotheses[0].model_copy(update={"cause": cause, "places": named})


# -- one bundle ------------------------------------------------------------------------------------------------------
def test_true_cause_that_leads_as_root_is_right() -> None:
    found = score(inc_4127(), harmful(ECMP))
    assert (found.verdict, found.top_1, found.top_3, found.leads) == ("right", True, True, True)
    assert (found.acquitted, found.blamed, found.miss) == ((), (), "")
    assert found.true_domains == ("network",) and found.domain == "network"


def test_other_cause_at_the_true_place_is_wrong_and_the_miss_says_what_was_seen() -> None:
    found = score(inc_4127(), harmful(OPTIC))
    assert (found.verdict, found.top_1) == ("wrong", False)
    assert "phy.optic_degraded" in found.miss and "against it" in found.miss


def test_true_cause_at_another_place_is_wrong() -> None:
    elsewhere = TrueCause(accept=ECMP.accept, places=(TruePlace(device="leaf-08"),))
    assert score(inc_4127(), harmful(elsewhere)).top_1 is False


@pytest.mark.parametrize(
    ("places", "right"),
    [
        ([("leaf-07", "Ethernet12")], True),
        ([("leaf-07", "Ethernet12"), ("spine-04", "Ethernet7")], True),
        ([("leaf-07", "Ethernet13")], False),
        ([("leaf-07", None)], False),
        ([("leaf-07", "Ethernet12"), ("a", "1"), ("b", "1")], False),
        ([], False),
    ],
)
def test_place_must_be_named_and_not_buried(places: list[tuple[str, str | None]], right: bool) -> None:
    assert is_right(row("phy.dust_in_the_connector", *places), OPTIC) is right


def test_cause_without_a_place_is_right_anywhere() -> None:
    assert is_right(row("job.software_change"), TrueCause(accept=("job.software_change",)))


def test_true_cause_ruled_out_at_its_place_is_acquitted() -> None:
    assert score(inc_4127(), harmful(OPTIC)).acquitted == ("phy.optic_degraded",)


def test_true_cause_ruled_out_among_its_remaining_places_is_acquitted() -> None:
    receiver = TrueCause(accept=("nic.slow_receiver",), places=(TruePlace(device="gpu-worker-003", port="mlx5_1"),))
    assert score(inc_4127(), harmful(receiver)).acquitted == ("nic.slow_receiver",)


@pytest.mark.parametrize("status", ["supported", "possible", "not_assessable"])
def test_true_cause_that_is_not_ruled_out_is_not_acquitted(status: str) -> None:
    assert score(edited(inc_4127(), "H2", status=status), harmful(OPTIC)).acquitted == ()


def test_rival_at_another_port_of_the_true_device_is_no_acquittal() -> None:
    investigation = edited(inc_4127(), "H2", places=(Place(device="leaf-07", port="Ethernet9"),))
    without_rest = tuple(one for one in investigation.hypotheses if one.cause != "phy.optic_degraded" or one.count == 1)
    truth = TrueCause(accept=OPTIC.accept, places=(*OPTIC.places, TruePlace(device="leaf-07")))
    assert score(investigation.model_copy(update={"hypotheses": without_rest}), harmful(truth)).acquitted == ()


def test_harmless_fault_must_be_reported_and_not_blamed() -> None:
    harmless = Truth(causes=(ECMP,))
    blamed = score(inc_4127(), harmless)
    assert blamed.blamed and blamed.is_reported and blamed.miss
    reported = edited(inc_4127(), "H1", role="co_occurring").model_copy(update={"root_causes": ()})
    found = score(reported, harmless)
    assert found.blamed == () and found.is_reported is True


def test_healthy_fabric_asks_for_no_answer() -> None:
    found = score(quiet(), Truth())
    assert (found.top_1, found.top_3, found.is_reported, found.blamed) == (None, None, None, ())


def test_improbable_leader_leads_but_is_no_answer() -> None:
    investigation = edited(inc_4127(), "H1", probability=0.01, status="possible")
    found = score(investigation.model_copy(update={"root_causes": ()}), harmful(ECMP))
    assert found.leads is True and found.top_1 is False and found.verdict == "none"


def test_any_member_of_a_tie_class_answers_for_it() -> None:
    base = edited(edited(inc_4127(), "H1", tie_class="T1"), "H2", tie_class="T1", status="supported")
    tie = TieClass(id="T1", members=("H1", "H2"), probability=0.97, share=0.9, split_by=())
    found = score(base.model_copy(update={"tie_classes": (tie,)}), harmful(OPTIC))
    assert found.top_1 is True and found.answers[0].startswith("path.ecmp_redistribution / phy.optic_degraded")


def test_both_faults_must_be_found() -> None:
    base = edited(inc_4127(), "H2", status="supported", probability=0.9)
    assert score(base, harmful(ECMP, OPTIC)).both is True
    assert score(inc_4127(), harmful(ECMP, OPTIC)).both is False
    assert score(inc_4127(), harmful(ECMP)).both is None


def test_rivals_leave_out_the_true_cause_and_count_by_status() -> None:
    found = score(inc_4127(), harmful(ECMP))
    rows = [one for one in inc_4127().hypotheses if one.cause != "path.ecmp_redistribution"]
    assert found.rivals == len(rows)
    assert found.rivals_ruled_out == sum(one.status == "ruled_out" for one in rows)


def test_what_the_truth_expects_of_rivals_is_counted() -> None:
    truth = Truth(causes=(ECMP,), victim_jobs=("run-0412",), ruled_out=("nic.pause_storm", "path.routing_flap", "x.y"))
    assert score(inc_4127(), truth).expected_ruled_out == (1, 2)


def test_cause_that_is_true_anywhere_is_calibrated_once() -> None:
    base = edited(inc_4127(), "H5", status="possible", probability=0.3)
    second = base.hypotheses[4].model_copy(update={"id": "H99", "probability": 0.2})
    investigation = base.model_copy(update={"hypotheses": (*base.hypotheses, second)})
    collision = TrueCause(accept=("load.elephant_collision",))
    true = [one.probability for one in score(investigation, harmful(collision)).calibration if one.is_true]
    assert true == [0.3]
    placed = TrueCause(accept=collision.accept, places=(TruePlace(device="leaf-07"),))
    assert len([one for one in score(investigation, harmful(placed)).calibration if one.is_true]) == 2


def test_crashed_bundle_is_missed_and_not_left_out() -> None:
    found = crashed(harmful(ECMP), DOMAINS, "bundle", 2.0, "InferenceError: too wide")
    totals = total((found,), (NOTHING,))
    assert totals.crashes == 1 and (totals.top_1.hits, totals.top_1.of) == (0, 1)


# -- totals ----------------------------------------------------------------------------------------------------------
@given(st.integers(0, 400), st.integers(0, 400))
def test_wilson_interval_holds_the_rate_and_stays_within_0_and_1(one: int, other: int) -> None:
    rate = wilson(min(one, other), max(one, other))
    if rate.of == 0:
        assert rate.rate is None
    else:
        assert rate.low is not None and rate.high is not None and rate.rate is not None
        assert 0 <= rate.low <= rate.rate <= rate.high <= 1


def test_wilson_interval_is_the_published_one() -> None:
    # Brown, Cai, DasGupta, Statistical Science 2001: x = 9 of n = 10 at 95 %.
    assert (wilson(9, 10).low, wilson(9, 10).high) == (0.5958, 0.9821)


@given(st.lists(st.tuples(st.floats(0.05, 1), st.booleans()), max_size=60))
def test_calibration_bins_hold_every_class_once_in_equal_parts(classes: list[tuple[float, bool]]) -> None:
    bins = calibration_bins([Calibrated(cause="phy.optic_degraded", probability=p, is_true=t) for p, t in classes])
    assert sum(one.count for one in bins) == len(classes)
    assert max((one.count for one in bins), default=0) - min((one.count for one in bins), default=0) <= 1
    assert [one.claimed for one in bins] == sorted(one.claimed for one in bins)
    assert len(bins) <= 1 or min(one.count for one in bins) >= SMALLEST_BIN


def test_brier_score_of_oracle_coin_and_liar() -> None:
    def claims(probability: float) -> list[Calibrated]:
        return [Calibrated(cause="phy.optic_degraded", probability=probability, is_true=True)] * 4

    assert [brier(claims(p)) for p in (1.0, 0.5, 0.0)] == [0.0, 0.25, 1.0]
    assert brier([]) is None


def test_totals_count_harmful_and_harmless_bundles_apart() -> None:
    scores = (
        score(inc_4127(), harmful(ECMP)),
        score(inc_4127(), harmful(OPTIC)),
        score(inc_4127(), Truth(causes=(ECMP,))),
        score(quiet(), Truth()),
    )
    totals = total(scores, (NOTHING,) * 4)
    assert (totals.top_1.hits, totals.top_1.of) == (1, 2)
    assert (totals.blamed.hits, totals.blamed.of) == (1, 2)
    assert (totals.acquitted.hits, totals.acquitted.of) == (1, 3)
    assert (totals.harmless_reported.hits, totals.harmless_reported.of) == (1, 1)
    assert [one.cause for one in totals.classes] == ["path.ecmp_redistribution", "phy.optic_degraded"]
    assert sum(one.count for one in totals.families) == sum(len(one.calibration) for one in scores)
    path = next(one for one in totals.families if one.family == "path")
    assert 0.5 <= path.true < path.claimed  # right in all but the bundle whose truth is another cause
    assert totals.domains["none"] == {quiet().domain.verdict: 1}


def test_best_single_sign_is_the_one_that_is_right_most_often() -> None:
    scores = (score(inc_4127(), harmful(ECMP)),) * 3
    signs = ((), ("queue_depth",), ("crc_rx", "queue_depth"))
    baselines = [NOTHING.model_copy(update={"right_signs": found}) for found in signs]
    totals = total(scores, baselines)
    assert (totals.best_rule, totals.best_rule_cause.hits, totals.best_rule_cause.of) == ("queue_depth", 2, 3)


# -- baselines -------------------------------------------------------------------------------------------------------
def test_three_sigma_names_the_series_that_moved_most() -> None:
    def series(port: str, metric: str, values: tuple[float, ...]) -> Series:
        times = tuple(float(60 * n) for n in range(len(values)))
        return Series("leaf-1", port, "", metric, times, values, Provenance("t.csv", f"line {port}", "test", "0"))

    calm, moved = (1.0, 1.1, 0.9, 1.0, 1.1, 1.0, 0.9, 1.0), (1.0, 1.1, 0.9, 1.0, 9.0, 9.1, 9.0, 9.2)
    facts = (series("Ethernet1", "optic_temp_c", calm), series("Ethernet2", "optic_temp_c", moved))
    reading = replace(adapters.try_file(Path(__file__), adapters.Hints()), facts=facts)
    truth = Truth(
        causes=(
            TrueCause(
                accept=("phy.overtemp",),
                places=(TruePlace(device="leaf-1", port="Ethernet2"),),
                onset="1970-01-01T00:03:30Z",
            ),
        ),
        victim_jobs=("job",),
    )
    found = baseline(reading, knowledge.load(), truth)
    assert found.three_sigma.startswith("optic_temp_c at leaf-1 Ethernet2")
    assert found.three_sigma_place is True and found.three_sigma_cause is False


def test_healthy_bundle_has_no_baseline(small_bundle: Path) -> None:
    assert baseline(adapters.read(small_bundle), knowledge.load(), Truth()) == NOTHING


def test_every_sign_of_a_cause_has_a_best_graded_cause() -> None:
    base = knowledge.load()
    raised = {sign for cause in base.causes.values() for sign, link in cause.signs.items() if link.effect == "raises"}
    assert set(best_graded_causes(base)) <= raised
    assert set(best_graded_causes(base).values()) <= set(base.causes)


# -- truth and command -----------------------------------------------------------------------------------------------
@pytest.mark.parametrize("text", ["", "{", '{"causes": [{"places": []}]}', '{"causes": 3}'])
def test_truth_that_is_none_says_where(text: str, tmp_path: Path) -> None:
    path = tmp_path / "truth.json"
    path.write_text(text)
    with pytest.raises(UnreadableInput, match=r"truth\.json"):
        read_truth(path)


def corpus_of(bundle: Path, folder: Path, truth: object) -> Path:
    shutil.copytree(bundle, folder / "small")
    (folder / "small" / "truth.json").write_text(json.dumps(truth))
    return folder


def drilled(corpus: Path) -> dict[str, Any]:
    result = CliRunner().invoke(main, ["drill", "--corpus", str(corpus), "-f", "json"])
    assert result.exit_code == 0, result.output
    return dict(json.loads(result.stdout))


SMALL_TRUTH = {"causes": [{"accept": ["path.ecmp_redistribution"], "places": []}], "victim_jobs": ["small-run"]}


def test_falsified_truth_changes_only_the_score(small_bundle: Path, tmp_path: Path) -> None:
    right = drilled(corpus_of(small_bundle, tmp_path / "true", SMALL_TRUTH))
    falsified = {**SMALL_TRUTH, "causes": [{"accept": ["nic.pause_storm"], "places": []}]}
    wrong = drilled(corpus_of(small_bundle, tmp_path / "false", falsified))
    (good,), (bad,) = right["scores"], wrong["scores"]
    assert (good["verdict"], bad["verdict"]) == ("right", "wrong")
    assert good["answers"] == bad["answers"] and good["domain"] == bad["domain"]


def test_bundle_that_cannot_be_investigated_is_one_line(small_bundle: Path, tmp_path: Path) -> None:
    corpus = corpus_of(small_bundle, tmp_path, SMALL_TRUTH)
    (corpus / "empty").mkdir()
    (corpus / "empty" / "truth.json").write_text(json.dumps(SMALL_TRUTH))
    result = CliRunner().invoke(main, ["drill", "--corpus", str(corpus)])
    assert result.exit_code == 0, result.output
    assert "| empty " in result.stdout and "crash" in result.stdout
    assert "| small " in result.stdout and "top-1" in result.stdout


def test_bundles_of_one_name_in_two_corpora_are_both_scored(small_bundle: Path, tmp_path: Path) -> None:
    right = corpus_of(small_bundle, tmp_path / "one", SMALL_TRUTH)
    falsified = {**SMALL_TRUTH, "causes": [{"accept": ["nic.pause_storm"], "places": []}]}
    wrong = corpus_of(small_bundle, tmp_path / "other", falsified)
    asked = ["drill", "--corpus", str(right), "--corpus", str(wrong), "-f", "json"]
    scores = json.loads(CliRunner().invoke(main, asked).stdout)["scores"]
    assert [(one["bundle"], one["verdict"]) for one in scores] == [("small", "right"), ("small", "wrong")]


def test_a_wrong_truth_is_told_before_any_bundle_is_read(tmp_path: Path) -> None:
    for name, text in (("a", "{}"), ("b", "[]")):
        (tmp_path / name).mkdir()
        (tmp_path / name / TRUTH).write_text(text)
    result = CliRunner().invoke(main, ["drill", "--corpus", str(tmp_path)])
    assert result.exit_code == UnreadableInput.exit_code
    assert "b/truth.json" in result.stderr and "(1 of 2)" not in result.stderr


def test_corpus_without_a_truth_is_a_usage_error(tmp_path: Path) -> None:
    result = CliRunner().invoke(main, ["drill", "--corpus", str(tmp_path)])
    assert result.exit_code == UsageError.exit_code
    assert "truth.json" in result.stderr
