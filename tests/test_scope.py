"""Places are written and read back the same, whatever a device calls its ports."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from causeline.engine.scope import Scope, ScopeKind, link_scope, short_port

NAMES = st.text(st.characters(codec="utf-8"), min_size=1, max_size=12) | st.sampled_from(
    ("Ethernet1/12", "et-0/0/24", "a~b", "a~/b", "100%", "%7E", "gpu-01.dc:2", "22.35 @ 1")
)


@given(st.sampled_from(ScopeKind), st.lists(NAMES, min_size=1, max_size=4))
def test_a_written_scope_is_read_back_the_same(kind: ScopeKind, parts: list[str]) -> None:
    scope = Scope.of(kind, *parts)
    assert Scope.parse(str(scope)) == scope


@given(st.lists(NAMES, min_size=2, max_size=3), st.lists(NAMES, min_size=2, max_size=3))
def test_different_places_are_written_differently(one: list[str], other: list[str]) -> None:
    same = str(Scope.of("queue", *one)) == str(Scope.of("queue", *other))
    assert same is (one == other)


def test_a_slash_in_a_port_name_is_part_of_the_name() -> None:
    scope = Scope.of("queue", "leaf-07", "Ethernet1/12", 3)
    assert str(scope) == "queue:leaf-07/Ethernet1~12/3"
    assert (scope.device, scope.port, scope.qualifier) == ("leaf-07", "Ethernet1/12", "3")


@pytest.mark.parametrize("text", ["", "queue", "leaf-07/Ethernet12", "qeue:leaf-07/Ethernet12/3", "port:", "port:a//b"])
def test_what_is_no_scope_is_refused_with_the_text(text: str) -> None:
    with pytest.raises(ValueError, match="is not a scope") as refusal:
        Scope.parse(text)
    assert repr(text) in str(refusal.value)


def test_a_link_is_the_same_from_both_ends() -> None:
    ends = (("spine-1", "Ethernet9"), ("leaf-1", "Ethernet12"))
    assert link_scope(*ends) == link_scope(*reversed(ends))
    assert str(link_scope(*ends)) == "link:leaf-1/Ethernet12/spine-1/Ethernet9"


def test_whole_places_have_no_port_and_no_class() -> None:
    for scope in (Scope.of("ecmp", "leaf-1", "uplinks"), Scope.of("host", "host-1"), Scope.of("job", "run-1")):
        assert scope.port is None
        assert scope.qualifier is None
    assert Scope.of("nic", "host-1", "mlx5_3").port == "mlx5_3"
    assert Scope.of("nic", "host-1", "mlx5_3").qualifier is None


@pytest.mark.parametrize(
    ("port", "short"),
    [
        ("Ethernet12", "Et12"),
        ("Ethernet1/12", "Et1/12"),
        ("HundredGigE1/0/4", "Hu1/0/4"),
        ("swp1s0", "swp1s0"),
        ("Ethernet", "Ethernet"),
        ("Ethernet12.100", "Ethernet12.100"),
    ],
)
def test_short_port_is_what_engineers_type(port: str, short: str) -> None:
    assert short_port(port) == short
