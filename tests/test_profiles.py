"""What a switch was configured to do decides what its counters can tell."""

from __future__ import annotations

import pytest
from fabrics import ONSET, START, counter, origin, plan, reading, shipped

from causeline.engine.facts import QosProfile
from causeline.engine.investigate import gather
from causeline.engine.scope import Scope

QUEUE = "queue:leaf-1/Ethernet1/3"


@pytest.mark.parametrize(
    ("marks", "after", "state"),
    [(True, 0, "absent"), (None, 0, "absent"), (False, 0, "unknown"), (False, 5000, "present")],
    ids=["marks", "not read", "does not mark", "marks nevertheless"],
)
def test_a_port_that_does_not_mark_says_nothing_by_not_marking(marks: bool | None, after: float, state: str) -> None:
    profile = QosProfile("leaf-1", START, origin("configs.json"), ecn_enabled=marks)
    facts = [*plan(), profile, counter("leaf-1:Ethernet1:3", "ecn_marked_packets", 0, after)]
    finding = gather(reading(facts, onset=ONSET), shipped()).findings.get("ecn_high", Scope.parse(QUEUE))
    assert (finding.state if finding else "unknown") == state
