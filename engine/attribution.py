"""Who a slowdown is put down to where one cause set off another (DESIGN.md section 6).

A trigger answers for its effects, so these get no share beside it. What outlives its trigger answers for itself: it has
to be ended, whatever began it, and the trigger keeps what it did directly.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass

from .compile import Compiled
from .frontier.sweep import Explains


@dataclass(frozen=True, slots=True)
class Attribution:
    """`consequences`: supported causes that a supported cause set off; `outlived`: causes whose supported effect
    would outlive them; `direct`: all causes that can set off such an effect, be it through others, counted for their
    own link alone."""

    consequences: frozenset[str]
    outlived: frozenset[str]
    direct: frozenset[str]

    def counted(self, explains: Explains) -> dict[str, float]:
        """What of the symptom each cause is counted for."""
        return {
            cause: 0.0 if cause in self.consequences else own if cause in self.direct else explains.needed(cause)
            for cause, own in explains.by_cause.items()
        }


def attribution(compiled: Compiled, supported: Collection[str]) -> Attribution:
    """From the trigger edges, and which causes are supported."""
    possible = [(trigger, effect) for effect, triggers in compiled.triggers.items() for trigger in triggers]
    lasting = {effect for _, effect in possible if compiled.hypotheses[effect].cause.outlives_trigger}
    edges = [(trigger, effect) for trigger, effect in possible if effect in supported and trigger in supported]
    return Attribution(
        frozenset(effect for _, effect in edges if effect not in lasting),
        frozenset(trigger for trigger, effect in possible if effect in lasting and effect in supported),
        frozenset(_ancestors(lasting, compiled.triggers)),
    )


def _ancestors(effects: Collection[str], triggers: Mapping[str, tuple[str, ...]]) -> set[str]:
    """All that can set off one of these, through others as well."""
    found: set[str] = set()
    waiting = list(effects)
    while waiting:
        new = set(triggers.get(waiting.pop(), ())) - found
        found |= new
        waiting.extend(new)
    return found
