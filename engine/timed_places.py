"""Whether the timing of the ranks names a place for a job's slowdown, or clears it.

What slows a job shows in the timing of the ranks it acts on: a slow host enters late, a slow way makes the sends that
cross it finish late. A place that neither kind of rank touches may be ill, but it did not slow this job. Nor does the
way to a checkpoint store slow every step of a job that saves now and then.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from functools import cached_property

from .fabric.pause_graph import ABOVE_BASELINE
from .observed import Observed
from .places import Places
from .rules import Cause, Relation
from .scope import Scope, ScopeKind
from .steps.flows import ports_crossed, saves_now_and_then
from .topology import End

CROSSED_LINK = 0.80
"""P(symptom | a cause whose place the job's bytes cross) (judgement, DESIGN.md section 5)."""

NAMED_LINK = 0.97
"""P(symptom | a cause whose place the timing of the ranks names) (judgement, DESIGN.md section 5)."""

CLEARED_LINK = 0.05
"""P(symptom | a cause whose place touches none of the ranks that became slow) (judgement: what is left is that the
timing misleads)."""

SELDOM_LINK = 0.0002
"""P(every step is slower | a cause whose place the job's bytes cross in some steps only) (judgement: a hundredth of
what is left for causes nobody knows; it would need a record of the traffic that is wrong)."""


class TimedPlaces:
    """Places of one fabric against the rank timing of the job asked about."""

    def __init__(self, observed: Observed, places: Places) -> None:
        self._observed = observed
        self._places = places

    def symptom_link(self, cause: Cause, scope: Scope) -> float:
        """P(symptom | this cause at this place alone)."""
        # What is wrong with a link alone loses packets: it fills no queue that others wait for.
        is_lossy = scope.kind is ScopeKind.LINK and all(drive.at is Relation.SELF for drive in cause.drives.values())
        is_named = self.names(scope, holds_up=not is_lossy)
        if not is_named and self._is_seldom_crossed(scope, holds_up=not is_lossy):
            return SELDOM_LINK
        if is_named is False:
            return CLEARED_LINK
        if cause.symptom is not None:
            return cause.symptom.p
        return NAMED_LINK if is_named else CROSSED_LINK

    def names(self, scope: Scope, *, holds_up: bool = True) -> bool | None:
        """True: ranks that this place can touch became slow; False: only others did; None: the timing cannot tell.

        `holds_up`: what is wrong there may make others wait.
        """
        timing = self._observed.rank_timing
        ends = self._ends(scope)
        if timing is None or not timing.is_enough or not ends:
            return None
        is_late = self.is_late(scope)
        if is_late is not False:
            return is_late
        if self._slow_ports is None:
            return None
        return not self._slow_ports.isdisjoint(self._acts_on(ends) if holds_up else ends)

    def _ends(self, scope: Scope) -> set[End]:
        """The ports of a place; of a group also those that overload behind its members."""
        return {*self._places.ports(scope), *self._observed.hot_members.get(scope, ())}

    def _is_seldom_crossed(self, scope: Scope, *, holds_up: bool) -> bool:
        """Whether every step is slower, but the job's bytes cross the place, or wait for it, in some steps only."""
        ends = self._ends(scope)
        if not ends or self._usual_ports is None:
            return False
        return self._usual_ports.isdisjoint(self._acts_on(ends) if holds_up else ends)

    @cached_property
    def _usual_ports(self) -> frozenset[End] | None:
        """Ports that bytes of the job may cross in every step; None where that is no narrower than at all, or where
        not every step is slower."""
        topology, job = self._observed.topology, self._observed.job
        if job is None or not self._observed.is_every_step_slower or not saves_now_and_then(topology, job):
            return None
        return ports_crossed(topology, job, topology.jobs[job].hosts, in_every_step=True)

    def is_late(self, scope: Scope) -> bool | None:
        """Whether a place is a host whose rank enters later than before, beyond its peers; None: cannot be told."""
        timing = self._observed.rank_timing
        if timing is None or scope.kind is not ScopeKind.HOST:
            return False
        return timing.is_late(scope.device)

    @cached_property
    def _slow_ports(self) -> frozenset[End] | None:
        """Ports that slow sends may cross; None where the ranks do not tell whose sends are slow."""
        timing, job = self._observed.rank_timing, self._observed.job
        assert timing is not None and job is not None
        are_longer = timing.is_longer(timing.sends)
        if are_longer is False:
            return frozenset()
        if are_longer is None or timing.sends_slow_alike or not timing.slow_senders:
            return None
        in_every_step = self._observed.is_every_step_slower
        return ports_crossed(self._observed.topology, job, timing.slow_senders, in_every_step=in_every_step)

    def _acts_on(self, ends: set[End]) -> Iterator[End]:
        """The ports of a place, for a NIC also the leaf's towards it and the one it overruns, and those that pausing
        there may hold up."""
        topology = self._observed.topology
        nics = [end for end in ends if topology.is_host(end[0])]
        waiting = [*ends, *(peer for nic in nics if (peer := topology.peer(*nic)))]
        for nic in nics:
            overrun = self._places.related(Scope.of(ScopeKind.NIC, *nic), Relation.OVERRUN_QUEUE)
            waiting.extend((queue.parts[0], queue.parts[1]) for queue in overrun)
        seen = set(waiting)
        for end in waiting:
            yield end
            held = {*self._held_queues(end), *self._paused_nics.get(end[0], ())} - seen
            seen |= held
            waiting.extend(sorted(held))

    def _held_queues(self, end: End) -> Iterator[End]:
        for priority in self._observed.lossless_classes:
            queue = Scope.of(ScopeKind.QUEUE, *end, priority)
            for paused in self._places.related(queue, Relation.PAUSED_UPSTREAM):
                yield paused.parts[0], paused.parts[1]

    @cached_property
    def _paused_nics(self) -> Mapping[str, frozenset[End]]:
        """By leaf, the NICs that it pauses more than before: the pause graph has switches only."""
        observed = self._observed
        found: dict[str, set[End]] = defaultdict(set)
        for nic in observed.topology.nics:
            leaf = observed.topology.peer(*nic)
            signals = (
                observed.signals(f"pfc_{direction}_pause_{unit}").get((*end, priority))
                for unit in ("us", "frames")
                for direction, end in (("rx", nic), ("tx", leaf or nic))
                for priority in observed.lossless_classes
            )
            if leaf and any(
                one and (one["after_mean"] or 0.0) > ABOVE_BASELINE * (one["before_mean"] or 0.0) for one in signals
            ):
                found[leaf[0]].add(nic)
        return {device: frozenset(nics) for device, nics in found.items()}
