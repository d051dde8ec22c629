"""What to read for an answer that is missing: the command or counter, and whether it was read already and left the
answer open."""

from __future__ import annotations

from ..observed import Observed
from ..places import Places
from ..rules import KnowledgeBase
from ..scope import Scope, ScopeKind
from ..wording import what_to_read

AGAIN = "again, finer or longer: "
"""Before a reading that lies between present and absent, or is too coarse or too short to tell."""

_OWN_PLACES = frozenset(
    {
        ScopeKind.QUEUE,
        ScopeKind.PORT,
        ScopeKind.LINK,
        ScopeKind.NIC,
        ScopeKind.GPU,
        ScopeKind.HOST,
        ScopeKind.DEVICE,
        ScopeKind.JOB,
    }
)
"""Places that a series is of; what a set of places was read at is told by its members."""


class ToRead:
    """Says what would answer a sign at a place of one fabric."""

    def __init__(self, knowledge: KnowledgeBase, observed: Observed, places: Places) -> None:
        self._knowledge = knowledge
        self._observed = observed
        self._places = places
        self._read_at: dict[str, frozenset[tuple[str, ...]]] = {}

    def __call__(self, sign: str, scope: Scope) -> str:
        again = AGAIN if self._was_read(sign, scope) else ""
        return again + what_to_read(self._knowledge.signs[sign], scope, self._places)

    def _was_read(self, sign: str, scope: Scope) -> bool:
        """Whether the metric that a sign asks for has readings after the onset at its place."""
        test = self._knowledge.signs[sign].signal
        if test is None or scope.kind not in _OWN_PLACES:
            return False
        if test.metric not in self._read_at:
            self._read_at[test.metric] = frozenset(
                key[:parts]
                for key, signal in self._observed.signals(test.metric).items()
                if signal["after_n"]
                for parts in (1, 2, 3)
            )
        ends = self._places.ports(scope) if scope.kind is ScopeKind.LINK else (scope.parts,)
        return any(end in self._read_at[test.metric] for end in ends)
