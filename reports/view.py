"""What every report shows: an investigation in words, ordered, rounded and anchored; `compose.py` makes it.

Its texts are plain: escaping for HTML or Markdown is the renderers'.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from ..engine.results import CoverageRow, Investigation, MissingReading, ReadIssueRow, Versions
from .panels import Panel, Rule
from .references import Reference


@dataclass(frozen=True, slots=True)
class EvidenceLine:
    """A finding as it counts for one hypothesis.

    `reading` and `source` are "" where there is none. `strength` and `factor` are given all other findings; `alone` is
    what it says by itself, "" where that is much the same.
    """

    finding: Reference
    statement: str
    reading: str
    strength: str
    factor: str
    alone: str
    source: Reference | None


@dataclass(frozen=True, slots=True)
class HypothesisCard:
    """A hypothesis in words.

    `rank` is what the list is ordered by (`View.rank_word`), `rank_ratio` that from 0 to 1; `tie` is the class it
    cannot be told from, or None.
    """

    id: str
    anchor: str
    title: str
    cause: str
    count: int
    places: tuple[str, ...]
    status: str
    status_word: str
    mark: str
    role: str
    rank: str
    rank_ratio: float
    share: str
    probability: str
    prior: str
    reason: str
    evidence_for: tuple[EvidenceLine, ...]
    evidence_against: tuple[EvidenceLine, ...]
    missing: tuple[MissingReading, ...]
    first_checks: tuple[str, ...]
    remedy: str
    triggered_by: tuple[Reference, ...]
    tie: Tie | None


@dataclass(frozen=True, slots=True)
class Tie:
    """Hypotheses that nothing which was read separates, with what would."""

    id: str
    anchor: str
    members: tuple[Reference, ...]
    share: str
    probability: str
    split_by: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class ImpactLine:
    """What a job lost.

    `measure` is the step time that changed; `explained`: the share of each hypothesis, largest first, those under 1 %
    left out.
    """

    job: str
    owner: str
    measure: str
    change: str
    step_times: str
    explained: tuple[Reference, ...]
    finding: Reference | None


@dataclass(frozen=True, slots=True)
class NamedCause:
    """A hypothesis as the verdict names it.

    Share and probability are those of its tie class where it has one; `ids` and `title` then name all members. `sure`
    completes "97% sure that ...".
    """

    card: HypothesisCard
    ids: str
    title: str
    share: str
    share_ratio: float
    sure: str


@dataclass(frozen=True, slots=True)
class Verdict:
    """The answer.

    `kind`: a cause was found; a job is slower but nothing is supported; no job is slower. `headline` is "" where the
    causes themselves are the headline.
    """

    kind: Literal["found", "undecided", "quiet"]
    kicker: str
    headline: str
    causes: tuple[NamedCause, ...]
    summary: str


@dataclass(frozen=True, slots=True)
class Part:
    """One class of the loop or the domain with its probability."""

    name: str
    text: str
    ratio: float


@dataclass(frozen=True, slots=True)
class Record:
    """A record of a file, as quoted.

    `file_anchor` leads to the file's line in the list of files.
    """

    anchor: str
    file: str
    file_anchor: str
    record: str
    sha256: str
    excerpt: str


@dataclass(frozen=True, slots=True)
class Evidence:
    """A finding with its records and the places of the report that rest on it."""

    id: str
    anchor: str
    sign: str
    place: str
    state: str
    statement: str
    reading: str
    level: int | None
    window: str
    records: tuple[Record, ...]
    used_by: tuple[Reference, ...]


@dataclass(frozen=True, slots=True)
class QuotedFile:
    """A file that a finding quotes."""

    anchor: str
    path: str
    sha256: str
    findings: tuple[Reference, ...]


@dataclass(frozen=True, slots=True)
class ChainStep:
    """A step from the job down to the queue; `kind` is the kind of place."""

    kind: str
    place: str
    statement: str
    findings: tuple[Reference, ...]


@dataclass(frozen=True, slots=True)
class TimelineLine:
    """`source` and `excerpt` are "" for what was seen in a series, not logged.

    `after_onset`: at the onset or later.
    """

    anchor: str
    after_onset: bool
    day: str
    clock: str
    place: str
    statement: str
    finding: Reference | None
    source: str
    excerpt: str


@dataclass(frozen=True, slots=True)
class Check:
    """What to read next.

    `gain`: the expected information, "" if it was not computed; `splits`: what it tells apart.
    """

    read: str
    place: str
    cost: str
    splits: tuple[Reference, ...]
    gain: str


@dataclass(frozen=True, slots=True)
class Ground:
    """What the verdict on a hypothesis hangs on, in one or two sentences."""

    hypothesis: Reference
    statement: str


@dataclass(frozen=True, slots=True)
class View:
    """All that a report shows, in order.

    `investigation` is the unchanged input (for JSON); `not_listed` counts the hypotheses that only it holds.
    `next_checks` are those worth a reading; where none is, `no_check` says so. `overlaps`: where causes overlap.
    """

    investigation: Investigation
    incident: str
    fabric: str
    job: str
    window: str
    onset: str
    onset_day: str
    onset_uncertainty: str
    verdict: Verdict
    impact: tuple[ImpactLine, ...]
    loop: str
    loop_parts: tuple[Part, ...]
    domain: str
    domain_parts: tuple[Part, ...]
    rank_word: Literal["share of slowdown", "probability"]
    cards: tuple[HypothesisCard, ...]
    more: tuple[HypothesisCard, ...]
    not_listed: int
    remaining: tuple[HypothesisCard, ...]
    unknown: Part
    ties: tuple[Tie, ...]
    ruled_out: tuple[HypothesisCard, ...]
    not_assessable: tuple[HypothesisCard, ...]
    panels: tuple[Panel, ...]
    rules: tuple[Rule, ...]
    chain: tuple[ChainStep, ...]
    timeline: tuple[TimelineLine, ...]
    next_checks: tuple[Check, ...]
    no_check: str
    overlaps: tuple[Ground, ...]
    grounds: tuple[Ground, ...]
    evidence: tuple[Evidence, ...]
    files: tuple[QuotedFile, ...]
    coverage: tuple[CoverageRow, ...]
    read_issues: tuple[ReadIssueRow, ...]
    evidence_count: str
    issue_count: str
    versions: Versions
