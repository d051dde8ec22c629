"""Signs over signals and events: present, absent or nothing at all; what was not read acquits nobody."""

from __future__ import annotations

import pytest
from fabrics import END, ONSET, START, cable, counter, firmware, gauge, observe, origin, plan, series

from causeline.engine.facts import Event, EventKind, Fact
from causeline.engine.findings import Findings, LevelReading, SignFinding, time_coverage
from causeline.engine.matching import match
from causeline.engine.rules import EventTest, HigherLevel, KnowledgeBase, Limit, Sign, SignalTest, SignGrade
from causeline.engine.scope import Scope, ScopeKind

JUDGED = "judgement: test"


def limit(value: float | None = None, metric: str | None = None) -> Limit:
    return Limit(value=value, metric=metric, unit="1", basis=JUDGED)


def sign(scope: ScopeKind, test: SignalTest | EventTest) -> Sign:
    levels = ("low", "high") if isinstance(test, SignalTest) and test.higher else ()
    return Sign(
        format=1,
        id="asked",
        question="Is it?",
        scope=scope,
        leak=SignGrade(p=0.05 if len(levels) < 2 else (0.05,) * len(levels), basis=JUDGED),
        levels=levels,
        signal=test if isinstance(test, SignalTest) else None,
        event=test if isinstance(test, EventTest) else None,
        present="yes",
        absent="no",
        read="look",
        references=("test",),
    )


def ask(scope: ScopeKind, test: SignalTest | EventTest, facts: list[Fact], onset: float | None = ONSET) -> Findings:
    return match(KnowledgeBase({}, {}, {"asked": sign(scope, test)}, "test"), observe(facts, onset))


def state(found: Findings, scope: str) -> str:
    finding = found.get("asked", Scope.parse(scope))
    return "unknown" if finding is None else finding.state


def rose(metric: str, present: str = "after_delta > 0", absent: str | None = None) -> SignalTest:
    return SignalTest(
        metric=metric, present=present, absent=absent, observed="after_delta", baseline="before_delta", unit="1"
    )


LINK = "link:leaf-1/Ethernet1/spine-1/Ethernet1"


# -- what was not read -----------------------------------------------------------------------------------


def test_nothing_read_gives_no_finding() -> None:
    assert len(ask(ScopeKind.LINK, rose("fcs_errors"), plan())) == 0


@pytest.mark.parametrize(
    "points",
    [
        [(ONSET + 60, 5.0)],  # one read of a counter
        [(START, 0.0), (START + 60, 5.0)],  # before the onset only
        [(ONSET - 400, 0.0), (ONSET + 10, 5.0)],  # an interval that lies nearly all ahead of it
        [(START, 9.0), (ONSET, 9.0), (END, 0.0)],  # cleared
        [(START, 1.0), (END, None)],  # the poll failed
    ],
)
def test_a_counter_that_tells_nothing_of_the_time_after_the_onset_is_unknown(
    points: list[tuple[float, float | None]],
) -> None:
    found = ask(ScopeKind.LINK, rose("fcs_errors"), [*plan(), series("leaf-1:Ethernet1", "fcs_errors", points)])
    assert state(found, LINK) == "unknown"


def test_a_comparison_with_a_missing_baseline_is_unknown() -> None:
    test = SignalTest(metric="optic_rx_dbm", present="before_p50 - after_p50 > 2", observed="after_p50", unit="dBm")
    late = series("leaf-1:Ethernet1", "optic_rx_dbm", [(ONSET + 10 * n, -9.0) for n in range(1, 60)])
    assert state(ask(ScopeKind.LINK, test, [*plan(), late]), LINK) == "unknown"


def test_between_present_and_absent_lies_unknown() -> None:
    test = rose("fcs_errors", present="after_delta >= 100", absent="after_delta = 0")
    for per_second, expected in ((1.0, "present"), (0.05, "unknown"), (0.0, "absent")):
        found = ask(ScopeKind.LINK, test, [*plan(), counter("leaf-1:Ethernet1", "fcs_errors", 0, per_second)])
        assert state(found, LINK) == expected


def test_a_limit_that_the_device_reports_wins_over_the_general_one() -> None:
    test = SignalTest(
        metric="optic_rx_dbm",
        present="after_min < low",
        limits={"low": limit(-10, "optic_rx_dbm_low_warn")},
        observed="after_min",
        limit="low",
        unit="dBm",
    )
    reading = gauge("leaf-1:Ethernet1", "optic_rx_dbm", -7, -7)
    own = gauge("leaf-1:Ethernet1", "optic_rx_dbm_low_warn", -6, -6)
    assert state(ask(ScopeKind.LINK, test, [*plan(), reading]), LINK) == "absent"
    found = ask(ScopeKind.LINK, test, [*plan(), reading, own]).get("asked", Scope.parse(LINK))
    assert found is not None
    assert (found.state, found.observed, found.limit) == ("present", -7, -6)


@pytest.mark.parametrize(
    ("depth", "kmax", "expected"),
    [
        (0.5, 2.0, ("absent", LevelReading(0, 0), 1.0)),
        (1.5, 2.0, ("present", LevelReading(1, 1), 1.0)),
        (3.0, 2.0, ("present", LevelReading(2, 2), 2.0)),
        (3.0, None, ("present", LevelReading(1, 2), 1.0)),  # the device's Kmax was not read: above it or not
    ],
)
def test_a_quantity_reaches_the_level_of_the_highest_limit_it_crosses(
    depth: float, kmax: float | None, expected: tuple[str, LevelReading, float]
) -> None:
    test = SignalTest(
        metric="queue_peak_bytes",
        present="after_p50 > kmin",
        higher=(HigherLevel(present="after_p50 > kmax", limit="kmax"),),
        limits={
            "kmin": limit(1.0),
            "kmax": limit(kmax, "ecn_kmax_bytes"),
        },
        observed="after_p50",
        limit="kmin",
        unit="B",
    )
    found = ask(ScopeKind.QUEUE, test, [*plan(), gauge("leaf-1:Ethernet1:3", "queue_peak_bytes", 0.1, depth)])
    finding = found.get("asked", Scope.of("queue", "leaf-1", "Ethernet1", "3"))
    assert finding is not None
    assert (finding.state, finding.levels, finding.limit) == expected


def test_without_the_limit_of_the_device_and_a_general_one_it_is_unknown() -> None:
    test = SignalTest(
        metric="tx_bytes",
        present="after_mean > speed",
        limits={"speed": limit(metric="speed_bps")},
        observed="after_mean",
        unit="B/s",
    )
    found = ask(ScopeKind.PORT, test, [*plan(), counter("leaf-1:Ethernet1", "tx_bytes", 1, 1)])
    assert state(found, "port:leaf-1/Ethernet1") == "unknown"


# -- wider places ----------------------------------------------------------------------------------------


def test_one_end_of_a_link_is_enough_for_yes_and_half_a_no() -> None:
    calm = counter("leaf-1:Ethernet1", "fcs_errors", 0, 0)
    other = counter("spine-1:Ethernet1", "fcs_errors", 0, 0)
    half = ask(ScopeKind.LINK, rose("fcs_errors"), [*plan(), calm]).get("asked", Scope.parse(LINK))
    whole = ask(ScopeKind.LINK, rose("fcs_errors"), [*plan(), calm, other]).get("asked", Scope.parse(LINK))
    assert half is not None
    assert whole is not None
    assert (half.state, half.coverage, whole.state, whole.coverage) == ("absent", 0.5, "absent", 1.0)
    bad = ask(ScopeKind.LINK, rose("fcs_errors"), [*plan(), counter("spine-1:Ethernet1", "fcs_errors", 0, 1)])
    assert state(bad, LINK) == "present"


def test_a_device_is_denied_only_as_far_as_its_ports_were_read() -> None:
    test = SignalTest(
        metric="queue_peak_bytes", present="after_p50 > 1e6", lossless=True, observed="after_p50", unit="B"
    )
    ports = [gauge(f"leaf-1:Ethernet{n}:3", "queue_peak_bytes", 0, 10) for n in (1, 2, 11, 12, 13, 14)]
    whole = ask(ScopeKind.DEVICE, test, [*plan(), *ports]).get("asked", Scope.parse("device:leaf-1"))
    one = ask(ScopeKind.DEVICE, test, [*plan(), ports[0]]).get("asked", Scope.parse("device:leaf-1"))
    assert whole is not None
    assert one is not None
    assert (whole.state, whole.coverage) == ("absent", 1.0)
    assert one.state == "absent"
    assert one.coverage == pytest.approx(1 / 6)


def test_a_rail_counts_its_nics() -> None:
    facts = [counter(f"host-{n}:mlx5_0", "nak_received", 0, 9 if n == 2 else 0) for n in (1, 2)]
    found = ask(ScopeKind.RAIL, rose("nak_received"), [*plan(), *facts]).get("asked", Scope.parse("rail:mlx5_0"))
    assert found is not None
    assert (found.state, found.spot) == ("present", "host-2 mlx5_0")
    assert (found.words["count"], found.words["of"]) == ("1", "2")
    calm = ask(ScopeKind.RAIL, rose("nak_received"), [*plan(), facts[0]]).get("asked", Scope.parse("rail:mlx5_0"))
    assert calm is not None
    assert (calm.state, calm.coverage) == ("absent", 0.25)


def test_polls_that_stopped_early_weaken_an_absence() -> None:
    short = [
        series(f"{d}:Ethernet1", "fcs_errors", [(START + 10 * n, 0.0) for n in range(67)])
        for d in ("leaf-1", "spine-1")
    ]
    found = ask(ScopeKind.LINK, rose("fcs_errors"), [*plan(), *short]).get("asked", Scope.parse(LINK))
    assert found is not None
    assert found.coverage == pytest.approx(time_coverage(0.1), abs=0.01)
    seen = found.likelihood()
    assert seen is not None
    assert seen.on == pytest.approx(1 - time_coverage(0.1), abs=0.01)


def test_only_lossless_classes_and_ports_of_the_right_kind_are_asked() -> None:
    test = SignalTest(
        metric="queue_peak_bytes",
        present="after_p50 > 1e6",
        lossless=True,
        ports="host_facing",
        observed="after_p50",
        unit="B",
    )
    facts = [
        gauge(f"leaf-1:{place}", "queue_peak_bytes", 0, 9e6)
        for place in ("Ethernet1:3", "Ethernet11:0", "Ethernet11:3")
    ]
    found = ask(ScopeKind.QUEUE, test, [*plan(), *facts])
    assert [str(finding.scope) for finding in found] == ["queue:leaf-1/Ethernet11/3"]


def test_the_reading_furthest_past_the_limit_is_shown() -> None:
    test = SignalTest(metric="optic_rx_dbm", present="after_min < -8", observed="after_min", unit="dBm")
    lanes = [
        gauge(f"leaf-1:Ethernet1:{lane}", "optic_rx_dbm", -3, level) for lane, level in ((1, -9), (2, -14), (3, -3))
    ]
    found = ask(ScopeKind.LINK, test, [*plan(), *lanes]).get("asked", Scope.parse(LINK))
    assert found is not None
    assert (found.observed, found.spot, found.words["count"]) == (-14, "leaf-1 Et1", "1")


# -- events ----------------------------------------------------------------------------------------------

LOADED = EventTest(kinds=(EventKind.FIRMWARE_LOAD,), before_s=limit(300), after_s=limit(0))


def event(host: str, at: float, kind: EventKind = EventKind.FIRMWARE_LOAD) -> Event:
    return Event(kind, host, "", at, "it happened", origin("journal.log"))


@pytest.mark.parametrize(
    ("at", "expected"),
    [
        (ONSET - 299, "present"),
        (ONSET - 300, "present"),
        (ONSET, "present"),
        (ONSET - 301, "absent"),  # the log reaches further back than the time asked about
        (ONSET + 1, "unknown"),  # the log begins behind it
    ],
)
def test_an_event_counts_within_its_time_and_a_log_from_before_it_denies(at: float, expected: str) -> None:
    assert state(ask(ScopeKind.HOST, LOADED, [*plan(), event("host-1", at)]), "host:host-1") == expected


def test_without_a_log_nothing_is_denied() -> None:
    found = ask(ScopeKind.HOST, LOADED, [*plan(), event("host-1", START - 60, EventKind.REBOOT)])
    assert state(found, "host:host-1") == "absent"
    assert state(found, "host:host-2") == "unknown"


def test_most_hosts_of_a_version_must_have_loaded_it() -> None:
    test = LOADED.model_copy(update={"combine": "most"})
    hosts = [firmware(f"host-{n}", "mlx5_0", "28.39") for n in (1, 2, 3, 4)]
    cohort = "cohort:mlx5_core 28.39"
    old = [event(f"host-{n}", START - 60, EventKind.REBOOT) for n in (1, 2, 3, 4)]
    for loaded, expected in ((2, "absent"), (3, "present")):
        events = [event(f"host-{n}", ONSET - 60) for n in range(1, loaded + 1)]
        assert state(ask(ScopeKind.COHORT, test, [*plan(), *hosts, *old, *events]), cohort) == expected


def test_one_log_of_many_does_not_speak_for_most_hosts() -> None:
    test = LOADED.model_copy(update={"combine": "most"})
    hosts = [firmware(f"host-{n}", "mlx5_0", "28.39") for n in (1, 2, 3, 4)]
    found = ask(ScopeKind.COHORT, test, [*plan(), *hosts, event("host-1", ONSET - 60)])
    assert state(found, "cohort:mlx5_core 28.39") == "unknown"


# -- all findings ----------------------------------------------------------------------------------------


def test_findings_come_in_the_order_of_places() -> None:
    facts = [counter(f"{d}:Ethernet{n}", "fcs_errors", 0, 1) for d in ("spine-2", "leaf-2", "leaf-1") for n in (2, 1)]
    scopes = [finding.scope for finding in ask(ScopeKind.LINK, rose("fcs_errors"), [*plan(), *facts])]
    assert scopes == sorted(scopes)
    assert len(scopes) == len(set(scopes)) == 4


def test_two_findings_of_one_sign_at_one_place_are_a_mistake_of_ours() -> None:
    finding = SignFinding("asked", Scope.of("host", "h"), "absent")
    with pytest.raises(AssertionError, match="two findings of asked"):
        Findings([finding, finding])


def test_an_unlinked_port_belongs_to_no_link() -> None:
    facts: list[Fact] = [
        cable("leaf-1:Ethernet1", "spine-1:Ethernet1"),
        counter("leaf-1:Ethernet50", "fcs_errors", 0, 9),
    ]
    assert len(ask(ScopeKind.LINK, rose("fcs_errors"), facts)) == 0
