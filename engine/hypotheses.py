"""Hypotheses: every cause at every place where it may sit, with its prior for the window.

Where the job does not go, a cause is asked about only at places that show a discriminating sign of it: a storm on an
idle host is real, and slowed nobody.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from .findings import Findings
from .observed import Observed
from .places import Places
from .rules import Cause, KnowledgeBase
from .scope import Scope, ScopeKind

SECONDS_PER_DAY = 86400.0


@dataclass(frozen=True, slots=True)
class Hypothesis:
    """A cause at a place.

    `prior` is P(present) before any finding, for the window. `touches_job`: bytes of the job cross the place, or wait
    for it.
    """

    cause: Cause
    scope: Scope
    prior: float
    touches_job: bool = True

    @property
    def id(self) -> str:
        return f"{self.cause.id}@{self.scope}"


def all_hypotheses(
    knowledge: KnowledgeBase, observed: Observed, places: Places, findings: Findings
) -> Iterator[Hypothesis]:
    """Hypotheses of every cause that is not retired, in the order of cause ids and places."""
    days = (observed.split.end - observed.split.start) / SECONDS_PER_DAY
    for cause in sorted(knowledge.causes.values(), key=lambda cause: cause.id):
        if cause.status == "retired":
            continue
        scopes = [scope for scope in places.instances(cause.scope) if _fits(cause, scope, observed, places)]
        prior = _prior(cause, len(scopes) or 1, days, observed, places)
        for scope in scopes:
            yield Hypothesis(cause, scope, prior)
        for scope in places.elsewhere(cause.scope):
            if _fits(cause, scope, observed, places) and _is_suspect(cause, scope, places, findings):
                yield Hypothesis(cause, scope, prior, places.holds_up_job(scope))


def _fits(cause: Cause, scope: Scope, observed: Observed, places: Places) -> bool:
    if cause.ports == "any":
        return True
    facing = [observed.topology.is_host_facing(*end) for end in places.ports(scope)]
    return any(facing) is (cause.ports == "host_facing")


def _prior(cause: Cause, count: int, days: float, observed: Observed, places: Places) -> float:
    """P(present) at one of `count` places."""
    if cause.prevalence is not None:
        return cause.prevalence.p
    assert cause.hazard is not None
    entities = count if cause.hazard.per is cause.scope else len(places.instances(cause.hazard.per))
    if cause.hazard.per is ScopeKind.JOB and observed.job is None:
        # Nobody's job is asked about: any may be at fault.
        entities = len(observed.topology.jobs)
    return min(cause.hazard.rate * days * (entities or 1) / count, 0.5)


def _is_suspect(cause: Cause, scope: Scope, places: Places, findings: Findings) -> bool:
    return any(
        (finding := findings.get(sign, target)) is not None and finding.state == "present"
        for sign, cell in cause.signs.items()
        if cell.discriminating and cell.effect == "raises"
        for target in places.related(scope, cell.at)
    )
