"""What each NIC does for congestion control: whether it still slows down on CNPs, and still sends them for marks.

A NIC is compared with itself before the onset: how many CNPs go with a byte or a mark differs with the generation of
the NIC (causal.md trap 10).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

from ..facts import Provenance
from ..signals import Key, Signal
from ..topology import End, Topology

FEW = 20.0
"""Packets in the window below which CNPs tell nothing: one for a connection that has just closed is ignored rightly
(judgement)."""

FLOOR = 10.0
"""CNPs a second below which their absence tells nothing: single bursts (judgement, as for cnp_sent_high)."""

RISE = 3.0
"""How many times its own baseline a NIC must ignore (judgement: as for marks)."""

REST = 0.05
"""Share of the CNPs that were due which a NIC may still have handled or sent: the poll in which the fault began
(judgement)."""

UNBALANCED = 0.1
"""Share of the CNPs sent that may go unhandled before the onset (invariant cnp_conservation, causal.md section 6)."""

LEAST_SHARE = 0.1
"""Share of all CNPs that nobody handles below which those a NIC misses may have stopped by chance (judgement)."""


@dataclass(frozen=True, slots=True)
class Reaction:
    """What a NIC did after the onset: the CNPs `counted`, handled or sent, and the record that shows it.

    `is_broken`: it stopped. `beside`: packets a second that tell so, and of which kind: CNPs that it counts as ignored,
    CNPs of the whole fabric that nobody handles, or marked packets that reach it; None where `counted` says it all.
    """

    is_broken: bool
    counted: Signal
    record: Provenance
    beside: tuple[Literal["ignored", "unheard", "marked"], float] | None = None


class Reactions:
    """The reactions of all NICs, around one onset.

    `sent` gives the bytes that a NIC sends, None where they were not read.
    """

    def __init__(
        self,
        topology: Topology,
        signals: Callable[[str], Mapping[Key, Signal]],
        sent: Callable[[End], Signal | None],
        lossless_classes: frozenset[str],
    ) -> None:
        self._topology = topology
        self._signals = signals
        self._sent = sent
        self._classes = sorted(lossless_classes)

    @cached_property
    def to_cnps(self) -> Mapping[End, Reaction]:
        """Senders that got CNPs, or should have.

        Broken, deaf, is one that counts CNPs as ignored, and more of them than it handles; or that handles next to none
        of those that its bytes brought before, while receivers of the fabric send about as many more than all senders
        handle. Whole is one that handles them, and one whose CNPs are not sent any more either: its way is clear. Left
        out is a NIC that nobody sent CNPs, and one that cannot be told: where the fabric's CNPs did not balance before
        the onset some ends were not read.
        """
        return {nic: read for nic in self._topology.nics if (read := self._to_cnps(nic)) is not None}

    @cached_property
    def to_marks(self) -> Mapping[End, Reaction]:
        """Receivers that answered marks with CNPs before the onset.

        Broken, mute, is one that sends next to none although marks reach it. Marks are as the NIC counts them; where
        that counter stands still although it answers (causal.md trap 8), those that its leaf puts on packets to it.
        Left out are NICs where marks stop with the CNPs.
        """
        return {nic: read for nic in self._topology.nics if (read := self._to_marks(nic)) is not None}

    def overrun(self, nic: End) -> End | None:
        """The NIC to which the queue leads that a NIC fills: itself if it is mute; if it is deaf, of the NICs that it
        sends to (its rail's, where it has one) the one that sends most CNPs.

        None for a NIC that is neither, and where none sends any. Others fill queues as well, as far as they are let.
        """
        if (mute := self.to_marks.get(nic)) is not None and mute.is_broken:
            return nic
        if (deaf := self.to_cnps.get(nic)) is None or not deaf.is_broken:
            return None
        rail = self._topology.rail_of(*nic)
        peers = self._topology.nics if rail is None else self._topology.rails[rail.parts[0]]
        rates = {
            peer: signal["after_mean"] or 0.0
            for peer in peers
            if peer != nic and (signal := self._signals("cnp_sent").get((*peer, ""))) is not None
        }
        loudest = max(rates, key=lambda peer: rates[peer], default=None)
        return loudest if loudest is not None and rates[loudest] >= FLOOR else None

    def _to_marks(self, nic: End) -> Reaction | None:
        sent = self._signals("cnp_sent").get((*nic, ""))
        if sent is None or sent["after_mean"] is None or not sent["before_mean"]:
            return None
        marked = self._marked(nic)
        if marked is None or (sent["before_delta"] or 0.0) < FEW:
            return None
        before, after, events = marked["before_mean"], marked["after_mean"], marked["after_delta"]
        if not before or after is None or events is None:
            return None
        # A NIC sends at most one CNP per flow and interval: many more marks do not make as many more CNPs.
        due = sent["before_mean"] * min(after / before, 1.0)
        is_mute = events >= FEW and due >= FLOOR and sent["after_mean"] <= REST * due
        if not is_mute and ((sent["after_delta"] or 0.0) < FEW or sent["after_mean"] < due / 2):
            return None
        return Reaction(is_mute, sent, sent.last, ("marked", after))

    def _marked(self, nic: End) -> Signal | None:
        """Marked packets to a NIC, by the counter that moved before the onset."""
        peer = self._topology.peer(*nic)
        counted = [self._signals("ecn_ce_received_packets").get((*nic, ""))]
        if peer is not None:
            counted += [self._signals("ecn_marked_packets").get((*peer, of)) for of in ("", *self._classes)]
        return next((one for one in counted if one is not None and (one["before_delta"] or 0.0) >= FEW), None)

    def _to_cnps(self, nic: End) -> Reaction | None:
        handled = self._signals("cnp_handled").get((*nic, ""))
        if handled is None or handled["after_mean"] is None or handled["after_delta"] is None:
            return None
        ignored = self._signals("cnp_ignored").get((*nic, ""))
        if ignored is not None and (ignored["after_delta"] or 0.0) >= FEW:
            rate = ignored["after_mean"] or 0.0
            if rate <= max(RISE * (ignored["before_mean"] or 0.0), handled["after_mean"]):
                return None
            return Reaction(True, handled, ignored.extreme or ignored.last, ("ignored", rate))
        due = self._due(nic, handled)
        if handled["after_delta"] >= FEW and (
            ignored is not None or (due is not None and handled["after_mean"] >= due / 2)
        ):
            return Reaction(False, handled, handled.extreme or handled.last)
        if due is None or due < FLOOR or handled["after_mean"] > REST * due or self._unheard is None:
            return None
        missing = due - handled["after_mean"]
        if self._unheard < REST * missing:
            return Reaction(False, handled, handled.last, ("unheard", self._unheard))
        if self._unheard < missing / 2 or missing < LEAST_SHARE * self._unheard:
            return None
        return Reaction(True, handled, handled.last, ("unheard", self._unheard))

    def _due(self, nic: End, handled: Signal) -> float | None:
        """CNPs a second that the bytes of the NIC would bring as before; None where it cannot be told."""
        sent = self._sent(nic)
        if sent is None or handled["before_mean"] is None:
            return None
        before, after = sent["before_mean"], sent["after_mean"]
        return handled["before_mean"] / before * after if before and after is not None else None

    @cached_property
    def _unheard(self) -> float | None:
        """CNPs a second that receivers send and no sender counts; None where they did not balance before the onset."""
        before = {metric: self._total(metric, "before_mean") for metric in ("cnp_sent", "cnp_handled", "cnp_ignored")}
        unbalanced = abs(before["cnp_sent"] - before["cnp_handled"] - before["cnp_ignored"])
        if before["cnp_sent"] == 0 or unbalanced > UNBALANCED * before["cnp_sent"]:
            return None
        return sum(
            sign * self._total(metric, "after_mean")
            for metric, sign in (("cnp_sent", 1), ("cnp_handled", -1), ("cnp_ignored", -1))
        )

    def _total(self, metric: str, column: str) -> float:
        """Sum over the NICs that were read on both sides of the onset."""
        nics = set(self._topology.nics)
        return sum(
            signal[column] or 0.0
            for (device, port, _), signal in self._signals(metric).items()
            if (device, port) in nics and signal["before_mean"] is not None and signal["after_mean"] is not None
        )
