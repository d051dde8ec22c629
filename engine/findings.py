"""Findings inside the engine: the answer to one sign at one place, with its numbers and the records it rests on."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from .facts import Provenance
from .network import Likelihood
from .results import State
from .scope import Scope

ENOUGH_TIME = 0.7
"""Share of the time after the onset from which a place counts as read: signs ask for changes that last, and a slow
poll leaves a gap around the onset (judgement)."""


def time_coverage(share: float | None) -> float:
    """Coverage of one place from the share of time its samples cover; None (no sample after the onset) is 0."""
    return 0.0 if share is None else 1.0 if share >= ENOUGH_TIME else share / ENOUGH_TIME


@dataclass(frozen=True, slots=True)
class LevelReading:
    """The levels of a sign, from 0, that a reading leaves open: from `least` to `most`."""

    least: int
    most: int


@dataclass(frozen=True, slots=True)
class SignFinding:
    """`coverage` is the share of the places and of the time after the onset that was read, 0 to 1; it weakens an
    absence.

    `observed`, `baseline`, `limit` are in `unit`, None where there is none. `words` fill further placeholders of the
    sign's statement. `levels`: what was read of a sign with levels; present is level 1 or above, and None leaves open
    which. `spot` names the place inside the scope that decided (`leaf-07 Et12` of a link), "" when the scope says it
    all.
    """

    sign: str
    scope: Scope
    state: State
    observed: float | None = None
    baseline: float | None = None
    limit: float | None = None
    unit: str = ""
    coverage: float = 1.0
    records: tuple[Provenance, ...] = ()
    words: Mapping[str, str] = field(default_factory=dict)
    spot: str = ""
    at: float | None = None
    levels: LevelReading | None = None

    def likelihood(self, top: int = 1) -> Likelihood | None:
        """Virtual evidence on the node of a sign whose highest level is `top`; None when unknown.

        An absence read at half the places leaves half the chance of a miss, and so do the levels above those seen.
        """
        if self.state == "unknown":
            return None
        seen = self.levels or (LevelReading(1, top) if self.state == "present" else LevelReading(0, 0))
        chances = (0.0 if k < seen.least else 1.0 if k <= seen.most else 1.0 - self.coverage for k in range(1 + top))
        return Likelihood.of(tuple(chances))


class Findings:
    """Findings by sign and scope.

    A second finding of one sign at one scope is an internal error: nothing is counted twice.
    """

    def __init__(self, findings: Iterable[SignFinding]) -> None:
        self._found: dict[tuple[str, Scope], SignFinding] = {}
        for finding in findings:
            key = (finding.sign, finding.scope)
            assert key not in self._found, f"two findings of {finding.sign} at {finding.scope}"
            self._found[key] = finding

    def get(self, sign: str, scope: Scope) -> SignFinding | None:
        return self._found.get((sign, scope))

    def __iter__(self) -> Iterator[SignFinding]:
        return iter(self._found.values())

    def __len__(self) -> int:
        return len(self._found)
