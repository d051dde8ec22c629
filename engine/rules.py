"""Schema of the knowledge base: causes, mechanisms and signs as declarative, frozen models (DESIGN.md sections 4 and
5).

A sign says once how something is measured, a mechanism which signs move together, a cause what would be seen if it
were true. Grades are P(sign on | this cause alone), leak included; every number carries its basis. Reading YAML is
`causeline.knowledge`'s job.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from itertools import pairwise
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Discriminator, Field, Tag, model_validator

from .facts import EventKind
from .results import Domain, LoopClass
from .scope import ScopeKind

Probability = Annotated[float, Field(ge=0, le=1)]
Text = Annotated[str, Field(min_length=1)]


class Rule(BaseModel):
    """Base of all knowledge models."""

    model_config = ConfigDict(frozen=True, extra="forbid")


class Relation(StrEnum):
    """From the place of a cause or mechanism to the place of what it drives.

    `Topology.related` resolves each.
    """

    SELF = "self"
    LINK = "link"
    PORTS = "ports"
    EGRESS_QUEUES = "egress_queues"
    DEEPEST_QUEUE = "deepest_queue"
    HOT_MEMBER_QUEUE = "hot_member_queue"
    HOT_MEMBER_PORT = "hot_member_port"
    HOT_MEMBER_LINK = "hot_member_link"
    GROUPS_OVER_LINK = "groups_over_link"
    LEAF_PORT = "leaf_port"
    LEAF_QUEUE = "leaf_queue"
    OVERRUN_QUEUE = "overrun_queue"
    NICS = "nics"
    RAIL = "rail"
    JOBS = "jobs"
    PAUSED_UPSTREAM = "paused_upstream"
    PAUSE_CYCLES = "pause_cycles"
    FABRIC = "fabric"


class Graded(Rule):
    """A probability with its basis: a source, or the word "judgement" and why."""

    p: Probability
    basis: Text


class SignGrade(Rule):
    """A probability of a sign with its basis: one number, or for a sign with levels P(at this level or above) for each
    level from the first on."""

    p: Annotated[
        Annotated[Probability, Tag("(one)")]
        | Annotated[tuple[Probability, ...], Field(min_length=2), Tag("(by level)")],
        Discriminator(lambda p: "(by level)" if isinstance(p, list | tuple) else "(one)"),
    ]
    basis: Text

    @property
    def by_level(self) -> tuple[float, ...]:
        """P(at this level or above), from level 1 on; a sign without levels has one."""
        return self.p if isinstance(self.p, tuple) else (self.p,)

    @model_validator(mode="after")
    def _is_cumulative(self) -> SignGrade:
        if any(higher > lower for lower, higher in pairwise(self.by_level)):
            raise ValueError("levels are cumulative: each at most as probable as the one below")
        return self


class SignLink(SignGrade):
    """P(sign on | this cause alone), leak included.

    `effect`: raises; suppresses (the cause physically prevents the sign); excludes (absent by definition of the cause:
    counts against the hypothesis but never lowers the sign when another cause is present). `discriminating`: unread,
    the cause is not assessable; `when_present` where only a presence tells (FEC hides bit errors: frames arrive
    whole). `induced_ok`: why the network may induce a probability more than .05 away from `p`.
    """

    at: Relation = Relation.SELF
    effect: Literal["raises", "suppresses", "excludes"] = "raises"
    discriminating: bool | Literal["when_present"] = False
    induced_ok: str | None = None


class Drive(Graded):
    """P(mechanism on | this parent alone), mechanism's leak not included.

    A trigger from cause to cause has the same shape.
    """

    at: Relation = Relation.SELF


class Hazard(Rule):
    """Rate of onset per entity and day.

    `per` may be a wider kind than the cause's scope: the rate is then spread over its places.
    """

    rate: Annotated[float, Field(gt=0)]
    per: ScopeKind
    basis: Text


class Prevalence(Rule):
    """P(present at one entity at any time), for causes that are states of design or configuration rather than
    events."""

    p: Annotated[float, Field(gt=0, lt=1)]
    per: ScopeKind
    basis: Text


class LooksLike(Rule):
    """A rival cause and the sign that tells the two apart."""

    cause: Text
    tell_apart_by: Text


class Cause(Rule):
    """A root-cause template.

    `id` is `family.name`, never reused. `symptom` overrides the general P(symptom on | cause, job crosses it). `ports`
    narrows a cause at queues or links to host-facing or inter-switch ones. `outlives_trigger`: once there it stays
    when its trigger is gone, so it is the root and the trigger contributes.
    """

    format: Literal[1]
    id: Annotated[str, Field(pattern=r"^[a-z]+\.[a-z0-9_]+$")]
    title: Text
    status: Literal["draft", "tested", "proven", "retired"]
    scope: ScopeKind
    ports: Literal["any", "host_facing", "inter_switch"] = "any"
    transport: tuple[Literal["roce", "infiniband"], ...]
    domain: Domain
    loop: LoopClass
    hazard: Hazard | None = None
    prevalence: Prevalence | None = None
    mechanism: Text
    drives: Mapping[str, Drive] = {}
    triggers: Mapping[str, Drive] = {}
    signs: Mapping[str, SignLink]
    symptom: Graded | None = None
    outlives_trigger: bool = False
    looks_like: tuple[LooksLike, ...] = ()
    first_checks: tuple[Text, ...]
    remedy: Text
    references: tuple[Text, ...]

    @model_validator(mode="after")
    def _one_prior(self) -> Cause:
        if (self.hazard is None) == (self.prevalence is None):
            raise ValueError("exactly one of hazard (an event) and prevalence (a state) is needed")
        if not any(link.discriminating is True for link in self.signs.values()):
            raise ValueError("no sign is marked discriminating: the cause could never be called not assessable")
        return self

    @property
    def family(self) -> str:
        return self.id.partition(".")[0]


class Mechanism(Rule):
    """A hidden step of the loop that several signs observe: they are correlated through it, not multiplied.

    `short` is how titles say it after the traffic class or on a link ("congestion").
    """

    format: Literal[1]
    id: Annotated[str, Field(pattern=r"^[a-z][a-z0-9_]+$")]
    title: Text
    short: Text
    scope: ScopeKind
    leak: Graded
    drives: Mapping[str, Drive] = {}
    signs: Mapping[str, SignLink] = {}
    description: Text
    references: tuple[Text, ...]


class Limit(Rule):
    """A limit a sign compares with: a number, or a metric read from the device (the module's own alarm level) with the
    number as fallback."""

    value: float | None = None
    metric: str | None = None
    unit: Text
    basis: Text

    @model_validator(mode="after")
    def _has_source(self) -> Limit:
        if self.value is None and self.metric is None:
            raise ValueError("a limit needs a value, a metric, or both (the metric wins where it was read)")
        return self


class HigherLevel(Rule):
    """The predicate of a level above the first, when the answer is no (`absent`, without it whenever `present` is
    false), and the name in `limits` shown with it."""

    present: Text
    absent: Text | None = None
    limit: Text | None = None


class SignalTest(Rule):
    """A predicate over the signal columns of one metric, asked at every place that has the metric.

    `present` is a SQL expression over the columns of `signals.COLUMNS` and the names in `limits`. `absent` says when
    the answer is no; without it, whenever `present` is false; where neither holds the finding is unknown. `ports`:
    only host-facing or only inter-switch ports. `lossless`: only the lossless traffic classes. `combine`: how readings
    inside one place of the sign's scope (lanes of a port, both ends of a link) become one: any of them, or most of
    them. `observed`, `baseline`: the columns shown as numbers; `limit`: the name in `limits` shown with them.
    `higher`: the levels above the first of a sign with levels; one whose limit is not known stays open.
    """

    metric: Text
    present: Text
    absent: Text | None = None
    limits: Mapping[str, Limit] = {}
    ports: Literal["any", "host_facing", "inter_switch"] = "any"
    lossless: bool = False
    combine: Literal["any", "most"] = "any"
    observed: Text
    baseline: Text | None = None
    limit: Text | None = None
    higher: tuple[HigherLevel, ...] = ()
    scale: float = 1.0
    unit: Text


class EventTest(Rule):
    """Present when one of `kinds` happened between `before_s` ahead of the onset and `after_s` behind it.

    Absent only where a log of the place covers that time, unknown otherwise.
    """

    kinds: tuple[EventKind, ...]
    before_s: Limit
    after_s: Limit
    combine: Literal["any", "most"] = "any"


class PatternTest(Rule):
    """Asked by a function of `causeline.engine.patterns` of that name, with these limits."""

    pattern: Text
    limits: Mapping[str, Limit] = {}


class Sign(Rule):
    """A question asked of facts at a scope.

    `leak` is P(on at an innocent place of a busy healthy fabric in the window). `levels`: where one quantity crosses
    several limits, what each of them means, lowest first; empty for a sign that is present or absent. `present` and
    `absent` word the answer (`{observed}`, `{baseline}`, `{limit}`, `{unit}`, `{place}`, `{level}`, and what a pattern
    adds); `read` is the command or counter that would answer it where nothing was read (`{place}`, `{device}`,
    `{port}`).
    """

    format: Literal[1]
    id: Annotated[str, Field(pattern=r"^[a-z][a-z0-9_]+$")]
    question: Text
    scope: ScopeKind
    leak: SignGrade
    levels: Annotated[tuple[Text, ...], Field(max_length=5)] = ()
    signal: SignalTest | None = None
    event: EventTest | None = None
    pattern: PatternTest | None = None
    present: Text
    absent: Text
    read: Text
    cost: Literal["scraped", "command", "visit"] = "command"
    references: tuple[Text, ...]

    @model_validator(mode="after")
    def _one_test(self) -> Sign:
        if sum(test is not None for test in (self.signal, self.event, self.pattern)) != 1:
            raise ValueError("exactly one of signal, event and pattern is needed")
        return self

    @model_validator(mode="after")
    def _levels_agree(self) -> Sign:
        if len(self.levels) == 1:
            raise ValueError("one level is no scale; leave levels out for a sign that is present or absent")
        if len(self.leak.by_level) != self.top:
            raise ValueError(f"leak.p has {len(self.leak.by_level)} numbers, the sign has {self.top} levels")
        asked = 1 if self.event else 1 + len(self.signal.higher) if self.signal else self.top
        if asked != self.top:
            raise ValueError(f"{asked} levels are asked for, {self.top} are named in levels")
        if self.signal is not None and self.signal.higher and self.signal.combine == "most":
            raise ValueError("most places cannot agree on a level; a sign with levels combines any")
        return self

    @property
    def top(self) -> int:
        """The highest level; 1 for a sign that is present or absent."""
        return len(self.levels) or 1


@dataclass(frozen=True, slots=True)
class KnowledgeBase:
    """All rules, by id.

    `digest` identifies the content (sha256 of every file, in order), `overrides` lists what a site's overlay changed.
    """

    causes: Mapping[str, Cause]
    mechanisms: Mapping[str, Mechanism]
    signs: Mapping[str, Sign]
    digest: str
    overrides: tuple[str, ...] = ()
