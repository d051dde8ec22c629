"""What a NIC does about CNPs and marks is told by its own counters and by what the whole fabric sends and handles."""

from __future__ import annotations

import pytest
from asking import asked as asked_of
from fabrics import HOSTS, counter, firmware, observe, plan

from causeline.engine.facts import Fact
from causeline.engine.findings import SignFinding
from causeline.engine.observed import Observed
from causeline.engine.places import Places
from causeline.engine.rules import Relation
from causeline.engine.scope import Scope

# host-2 and host-3 send to host-1 over rail mlx5_0: each brings it 100 CNPs/s to send.
SINK, SENDER, OTHER = "host-1:mlx5_0", "host-2:mlx5_0", "host-3:mlx5_0"


def nic(place: str) -> str:
    return "nic:" + place.replace(":", "/")


def asked(facts: list[Fact]) -> dict[str, SignFinding]:
    return asked_of("cnp_loop_open", [*plan(), *facts])


def observed(facts: list[Fact]) -> Observed:
    return observe([*plan(), *facts])


def rates(sent: float = 200, handled: float = 100, after: float = 100, load: float = 1e9) -> list[Fact]:
    """The sender handles `handled` CNPs a second before the onset and `after` behind it, for `load` bytes a second
    behind it; the sink sends 200 and then `sent`."""
    return [
        counter(SINK, "cnp_sent", 200, sent),
        counter(SENDER, "cnp_handled", handled, after),
        counter(OTHER, "cnp_handled", 100, 100),
        counter(SENDER, "tx_bytes", 1e9, load),
        counter(OTHER, "tx_bytes", 1e9, 1e9),
    ]


def test_a_sender_that_handles_none_of_the_cnps_it_is_sent_is_deaf() -> None:
    found = asked(rates(after=0))
    assert found[nic(SENDER)].state == "present"
    assert found[nic(OTHER)].state == "absent"
    assert found[nic(OTHER)].coverage == pytest.approx(0.5)  # nobody asked it to send any


def test_a_sender_whose_cnps_are_not_sent_any_more_is_not_deaf() -> None:
    assert asked(rates(sent=100, after=0))[nic(SENDER)].state == "absent"


def test_a_sender_that_sends_hardly_anything_has_none_to_handle() -> None:
    assert nic(SENDER) not in asked(rates(after=0, load=1e6))


def test_cnps_that_did_not_balance_before_the_onset_accuse_nobody() -> None:
    unread = [fact for fact in rates(after=0) if fact != counter(OTHER, "cnp_handled", 100, 100)]
    assert nic(SENDER) not in asked(unread)


def test_cnps_that_are_ignored_need_no_other_counter() -> None:
    ignored = [counter(SENDER, "cnp_handled", 100, 0), counter(SENDER, "cnp_ignored", 0, 100)]
    assert asked(ignored)[nic(SENDER)].state == "present"


def test_a_few_ignored_cnps_are_those_of_closed_connections() -> None:
    few = [counter(SENDER, "cnp_handled", 100, 100), counter(SENDER, "cnp_ignored", 0, 0.01)]
    assert asked(few)[nic(SENDER)].state == "absent"


@pytest.mark.parametrize("metric", [f"{SINK} ecn_ce_received_packets", "leaf-1:Ethernet11:3 ecn_marked_packets"])
def test_a_receiver_that_answers_no_marks_is_mute_whoever_counts_them(metric: str) -> None:
    place, name = metric.split()
    answered = [counter(place, name, 1000, 9000), counter(SINK, "cnp_sent", 200, 300)]
    unanswered = [counter(place, name, 1000, 9000), counter(SINK, "cnp_sent", 200, 0)]
    assert asked(answered)[nic(SINK)].state == "absent"
    assert asked(unanswered)[nic(SINK)].state == "present"


def test_a_receiver_that_no_marks_reach_any_more_is_not_mute() -> None:
    calm = [counter(SINK, "ecn_ce_received_packets", 1000, 0), counter(SINK, "cnp_sent", 200, 0)]
    assert nic(SINK) not in asked(calm)


def test_a_version_that_is_deaf_together_accuses_none_of_its_nics() -> None:
    deaf: list[Fact] = [
        *(counter(place, "cnp_handled", 100, 0) for place in (SENDER, OTHER)),
        *(counter(place, "cnp_ignored", 0, 100) for place in (SENDER, OTHER)),
    ]
    versions = [firmware(host, "mlx5_0", "28.42" if host in ("host-2", "host-3") else "28.39") for host in HOSTS]
    assert {state.state for state in asked(deaf).values()} == {"present"}
    assert asked([*deaf, *versions]) == {}


def overrun(facts: list[Fact], place: str) -> list[str]:
    device, _, port = place.partition(":")
    places = Places(observed(facts))
    return [str(scope) for scope in places.related(Scope.of("nic", device, port), Relation.OVERRUN_QUEUE)]


def test_a_deaf_sender_overruns_the_queue_to_who_sends_most_cnps_and_a_mute_receiver_its_own() -> None:
    mute = [counter(SINK, "ecn_ce_received_packets", 1000, 9000), counter(SINK, "cnp_sent", 200, 0)]
    assert overrun(rates(after=0), SENDER) == ["queue:leaf-1/Ethernet11/3"]
    assert overrun(mute, SINK) == ["queue:leaf-1/Ethernet11/3"]
    assert overrun(rates(after=0), OTHER) == []
