"""A link that went down and came back is told by its counter, its state or the log; a silent log proves nothing."""

from __future__ import annotations

from dataclasses import replace

import pytest
from fabrics import END, ONSET, START, counter, observe, origin, plan, series, shipped

from causeline.engine.facts import Event, EventKind, Fact, Series
from causeline.engine.findings import SignFinding
from causeline.engine.patterns import PATTERNS

LINK = "link:leaf-1/Ethernet1/spine-1/Ethernet1"
ENDS = ("leaf-1:Ethernet1", "spine-1:Ethernet1")


def asked(*facts: Fact, link: str = LINK) -> SignFinding | None:
    rule = shipped().signs["link_flap"].pattern
    assert rule is not None
    found = PATTERNS[rule.pattern](observe([*plan(), *facts]), "link_flap", {})
    return next((finding for finding in found if str(finding.scope) == link), None)


def oper_up(place: str, down_from: float, down_to: float, every: float = 10.0) -> Series:
    times = [START + every * n for n in range(int((END - START) / every) + 1)]
    return series(place, "oper_up", [(at, 0.0 if down_from <= at < down_to else 1.0) for at in times])


def logged_down(device: str = "leaf-1", at: float = ONSET + 30) -> Event:
    return Event(EventKind.LINK_DOWN, device, "Ethernet1", at, "Ethernet1 went down", origin("syslog.log"))


def losing(place: str) -> Series:
    """A carrier counter that grows after the onset."""
    return counter(place, "link_down_events", 0, 0.01)


@pytest.mark.parametrize(
    "telling",
    [losing(ENDS[0]), losing(ENDS[1]), oper_up(ENDS[1], ONSET + 60, ONSET + 90), logged_down()],
    ids=["counter", "counter of the far end", "state", "log"],
)
def test_any_source_at_either_end_tells(telling: Fact) -> None:
    finding = asked(counter(ENDS[0], "tx_bytes", 1, 1), telling)
    assert finding is not None
    assert finding.state == "present"
    assert finding.records


def test_calm_carriers_of_both_ends_are_an_absence() -> None:
    finding = asked(*(counter(end, "link_down_events", 0, 0) for end in ENDS))
    assert finding is not None
    assert (finding.state, finding.coverage) == ("absent", pytest.approx(1.0))


def test_polls_of_the_state_that_are_far_apart_may_have_stepped_over_a_flap() -> None:
    finding = asked(*(oper_up(end, END + 1, END + 2, every=60) for end in ENDS))
    assert finding is not None
    assert (finding.state, finding.coverage) == ("absent", pytest.approx(1 / 6))


def test_one_end_read_leaves_half_the_chance_of_a_miss() -> None:
    finding = asked(oper_up(ENDS[0], END + 1, END + 2))
    assert finding is not None
    assert (finding.state, finding.coverage) == ("absent", pytest.approx(0.5))


def test_a_silent_log_is_no_absence() -> None:
    assert asked(logged_down("spine-2"), counter(ENDS[0], "tx_bytes", 1, 1)) is None


def test_a_loss_before_the_onset_is_not_this_flap() -> None:
    finding = asked(
        oper_up(ENDS[0], START + 100, START + 130),
        logged_down(at=START + 100),
        counter(ENDS[1], "link_down_events", 0, 0),
    )
    assert finding is not None
    assert finding.state == "absent"


def test_a_link_still_down_is_unknown() -> None:
    assert asked(oper_up(ENDS[0], ONSET + 60, END + 60), logged_down()) is None


NIC_ENDS = ("host-1:mlx5_0", "leaf-1:Ethernet11")


def loaded(at: float = ONSET + 25, port: str = "mlx5_0") -> Event:
    return Event(EventKind.FIRMWARE_LOAD, "host-1", port, at, "firmware version: 28.43", origin("journal.log"))


def carrier(losses: int, at: float = ONSET + 30) -> Series:
    times = [START + 10.0 * n for n in range(121)]
    return series(NIC_ENDS[1], "link_down_events", [(t, float(losses) if t > at else 0.0) for t in times])


def asked_of_nic(*facts: Fact) -> str | None:
    found = asked(*facts, link="link:host-1/mlx5_0/leaf-1/Ethernet11")
    return None if found is None else found.state


@pytest.mark.parametrize(
    "telling",
    [carrier(2), oper_up(NIC_ENDS[1], ONSET + 30, ONSET + 50), replace(logged_down(), port="Ethernet11")],
    ids=["counter", "state", "log"],
)
@pytest.mark.parametrize("port", ["mlx5_0", ""], ids=["of the NIC", "of the host"])
def test_a_link_that_is_down_while_its_nic_loads_firmware_does_not_flap(telling: Fact, port: str) -> None:
    calm = counter(NIC_ENDS[0], "link_down_events", 0, 0)
    assert asked_of_nic(calm, telling) == "present"
    assert asked_of_nic(calm, telling, loaded(port=port)) in (None, "absent")
    assert asked_of_nic(calm, telling, loaded(port="mlx5_1")) == "present"
    assert asked_of_nic(calm, telling, loaded(at=ONSET + 400)) == "present"


def test_a_firmware_load_explains_few_losses_only() -> None:
    assert asked_of_nic(carrier(3), loaded()) is None
    assert asked_of_nic(carrier(8), loaded()) == "present"
