"""From which kind of place a relation leads, and to which: the shape of what `engine.places` resolves on a fabric."""

from __future__ import annotations

from ..engine.rules import Relation
from ..engine.scope import ScopeKind

_ON_PORT = frozenset({ScopeKind.PORT, ScopeKind.QUEUE, ScopeKind.NIC, ScopeKind.LANE, ScopeKind.PG})
_WITH_PORTS = _ON_PORT | {ScopeKind.LINK, ScopeKind.ECMP, ScopeKind.DEVICE, ScopeKind.HOST, ScopeKind.COHORT}
_ANYWHERE = frozenset(ScopeKind)
_GROUP = frozenset({ScopeKind.ECMP})

# Kinds of places where a cause may sit: those that `Places.instances` lists.
CAUSE_SCOPES = frozenset(
    {
        ScopeKind.ECMP,
        ScopeKind.LINK,
        ScopeKind.QUEUE,
        ScopeKind.NIC,
        ScopeKind.HOST,
        ScopeKind.DEVICE,
        ScopeKind.COHORT,
        ScopeKind.CYCLE,
        ScopeKind.JOB,
    }
)

# relation -> (kinds it starts at, kind it leads to)
RELATIONS: dict[Relation, tuple[frozenset[ScopeKind], ScopeKind]] = {
    Relation.LINK: (_ON_PORT, ScopeKind.LINK),
    Relation.PORTS: (_WITH_PORTS, ScopeKind.PORT),
    Relation.EGRESS_QUEUES: (_WITH_PORTS, ScopeKind.QUEUE),
    Relation.DEEPEST_QUEUE: (_WITH_PORTS, ScopeKind.QUEUE),
    Relation.HOT_MEMBER_QUEUE: (_GROUP, ScopeKind.QUEUE),
    Relation.HOT_MEMBER_PORT: (_GROUP, ScopeKind.PORT),
    Relation.HOT_MEMBER_LINK: (_GROUP, ScopeKind.LINK),
    Relation.GROUPS_OVER_LINK: (_ON_PORT | {ScopeKind.LINK}, ScopeKind.ECMP),
    Relation.LEAF_PORT: (frozenset({ScopeKind.NIC}), ScopeKind.PORT),
    Relation.LEAF_QUEUE: (frozenset({ScopeKind.NIC}), ScopeKind.QUEUE),
    Relation.OVERRUN_QUEUE: (frozenset({ScopeKind.NIC}), ScopeKind.QUEUE),
    Relation.NICS: (_WITH_PORTS, ScopeKind.NIC),
    Relation.RAIL: (_WITH_PORTS, ScopeKind.RAIL),
    Relation.JOBS: (_ANYWHERE, ScopeKind.JOB),
    Relation.PAUSED_UPSTREAM: (frozenset({ScopeKind.QUEUE}), ScopeKind.QUEUE),
    Relation.PAUSE_CYCLES: (_GROUP, ScopeKind.CYCLE),
    Relation.FABRIC: (_ANYWHERE, ScopeKind.FABRIC),
}

Route = tuple[Relation, ...]
"""A place as the relations that lead to it from a rule's own place."""
HERE: Route = ()

# Two steps that end where one step leads (on the links and groups that both can start from).
_SHORT_CUTS: dict[tuple[Relation, Relation], Route] = {
    (Relation.HOT_MEMBER_QUEUE, Relation.LINK): (Relation.HOT_MEMBER_LINK,),
    (Relation.HOT_MEMBER_QUEUE, Relation.PORTS): (Relation.HOT_MEMBER_PORT,),
    (Relation.HOT_MEMBER_PORT, Relation.LINK): (Relation.HOT_MEMBER_LINK,),
    (Relation.HOT_MEMBER_PORT, Relation.EGRESS_QUEUES): (Relation.HOT_MEMBER_QUEUE,),
    (Relation.LEAF_QUEUE, Relation.PORTS): (Relation.LEAF_PORT,),
    (Relation.LEAF_QUEUE, Relation.LINK): (Relation.LINK,),
    (Relation.LEAF_PORT, Relation.EGRESS_QUEUES): (Relation.LEAF_QUEUE,),
    (Relation.LEAF_PORT, Relation.LINK): (Relation.LINK,),
}


def moved(start: ScopeKind, route: Route, relation: Relation) -> Route:
    """Where `relation` leads from the end of a route that began at a `start`, by the shortest name of that place."""
    if relation is Relation.SELF:
        return route
    if relation in (Relation.JOBS, Relation.FABRIC, Relation.RAIL):  # one each, whichever way one takes
        return (relation,)
    if route and (route[-1], relation) in _SHORT_CUTS:
        return (*route[:-1], *_SHORT_CUTS[(route[-1], relation)])
    if (
        start is ScopeKind.LINK
        and relation is Relation.LINK
        and route in ((Relation.PORTS,), (Relation.EGRESS_QUEUES,))
    ):
        return HERE
    if start is ScopeKind.QUEUE and relation is Relation.EGRESS_QUEUES and route == (Relation.PORTS,):
        return HERE
    return (*route, relation)


def relation_problem(start: ScopeKind, relation: Relation, target: ScopeKind, name: str) -> str | None:
    """Why a rule at a `start` cannot reach `name`, which lies at a `target`, by this relation; None when it can."""
    if relation is Relation.SELF:
        return (
            None if start is target else f"{name} has scope {target}, this rule {start}; say by `at` how to get there"
        )
    starts, reached = RELATIONS[relation]
    if start not in starts:
        return f"{relation} starts at scope {' or '.join(sorted(starts))}, but this rule has scope {start}"
    return None if reached is target else f"{relation} leads to scope {reached}, but {name} has scope {target}"
