"""When it began: the change point of the symptom; without one the alert's time, else the strongest change that several
series share (DESIGN.md section 4)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from ..telemetry import Telemetry
from .changes import shared_change
from .symptom import UNEXPLAINED, Symptom, SymptomKind, overlaps

OnsetSource = Literal["symptom", "alert", "telemetry"]


@dataclass(frozen=True, slots=True)
class Onset:
    """The onset lies within `uncertainty_s` of `at`; `source` is what told it, `shared` how many (device, metric)
    pairs when the telemetry did."""

    at: float
    uncertainty_s: float
    source: OnsetSource
    shared: int = 0


def find_onset(
    telemetry: Telemetry,
    window: tuple[float, float],
    symptom: Symptom | None,
    symptoms: tuple[Symptom, ...],
    alert: float | None,
) -> Onset | None:
    """The onset of `symptom`, one of `symptoms`; None where nothing tells one.

    A rise has its own. Jobs that stall at once were stopped at once, or the first one tells. A lone stall is one event
    of what may have gone on for a while (a lossy link, until a retransmission times out): the strongest change of a
    series up to its end comes first, for the stall is the second to say so.
    """
    if symptom is None:
        if alert is not None:
            return Onset(alert, 0.0, "alert")
        change = shared_change(telemetry, window)
        return None if change is None else Onset(change.at, change.uncertainty_s, "telemetry", change.shared)
    if symptom.kind is not SymptomKind.STALL:
        return Onset(symptom.onset, symptom.uncertainty_s, "symptom")
    together = [one for one in symptoms if one.kind is SymptomKind.STALL and overlaps(symptom, one)]
    if symptom.unexplained > UNEXPLAINED and together == [symptom]:
        change = shared_change(telemetry, window, until=symptom.until, least=1)
        if change is not None:
            return Onset(change.at, change.uncertainty_s, "telemetry", change.shared)
    # Each was stopped between the begin of its step and when that should have ended; one fault stops all at once.
    since, by = max(one.onset for one in together), min(one.onset + one.uncertainty_s for one in together)
    if since > by:
        first = min(together, key=lambda one: (one.onset, one.job))
        since, by = first.onset, first.onset + first.uncertainty_s
    return Onset((since + by) / 2, (by - since) / 2, "symptom")
