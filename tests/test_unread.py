"""A sign that nobody read would stand in the network as one that was."""

from __future__ import annotations

import pytest
from fabrics import grouped, reading, shipped, slow_job, watched

from causeline.engine.investigate import examine
from causeline.engine.network import NodeKind
from causeline.engine.reflection.unread import unread_signs


def test_an_unread_sign_has_the_links_it_has_once_it_is_read() -> None:
    case = examine(reading([*grouped(), *watched(), *slow_job()]), shipped())
    read = {
        node.id: node
        for node in case.compiled.network.nodes
        if node.kind is NodeKind.SIGN and not node.inhibitors and node.id != case.compiled.network.symptom
    }
    wanted = {
        (finding.sign, finding.scope) for finding in case.evidence.findings if f"{finding.sign}@{finding.scope}" in read
    }
    unread = unread_signs(case.compiled, shipped(), case.places, wanted)
    assert {one.node.id for one in unread.values()} == set(read)
    for one in unread.values():
        node = read[one.node.id]
        assert one.node.leak == pytest.approx(node.leak)
        acting = {parent: p for parent, p in node.links if p > 0}
        assert dict(one.node.links) == pytest.approx(acting)
