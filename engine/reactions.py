"""How each NIC reacts to CNPs: which of them do not slow down any more, and who asks them to.

A NIC is compared with itself before the onset: how many CNPs go with a byte differs with the generation of the NIC
(causal.md trap 10).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property

from .facts import Provenance
from .signals import Key, Signal
from .topology import End, Topology

FEW = 20.0
"""Packets in the window below which CNPs tell nothing: one for a connection that has just closed is ignored rightly
(judgement)."""

FLOOR = 10.0
"""CNPs a second below which their absence tells nothing: single bursts (judgement, as for cnp_sent_high)."""

RISE = 3.0
"""How many times its own baseline a NIC must ignore (judgement: as for marks)."""

REST = 0.05
"""Share of its due CNPs that a deaf NIC may still have handled: the poll in which the fault began (judgement)."""

UNBALANCED = 0.1
"""Share of the CNPs sent that may go unhandled before the onset (invariant cnp_conservation, causal.md section 6)."""

LEAST_SHARE = 0.1
"""Share of all CNPs that nobody handles below which those a NIC misses may have stopped by chance (judgement)."""


@dataclass(frozen=True, slots=True)
class Reaction:
    """What a NIC does about CNPs: those it `handled`, and the record that shows it.

    `ignored`: CNPs a second that it counts as ignored, None where that is not what tells. `unheard`: CNPs a second that
    receivers send and no NIC handles, None where that is not what tells.
    """

    is_deaf: bool
    handled: Signal
    record: Provenance
    ignored: float | None = None
    unheard: float | None = None


class Reactions:
    """The reactions of all NICs, around one onset.

    `sent` gives the bytes that a NIC sends, None where they were not read.
    """

    def __init__(
        self,
        topology: Topology,
        signals: Callable[[str], Mapping[Key, Signal]],
        sent: Callable[[End], Signal | None],
    ) -> None:
        self._topology = topology
        self._signals = signals
        self._sent = sent

    @cached_property
    def by_nic(self) -> Mapping[End, Reaction]:
        """NICs that got CNPs, or should have.

        A NIC is deaf that counts CNPs as ignored, and more of them than it handles; or that handles next to none of
        those that its bytes brought before, while receivers of the fabric send about as many more than all senders
        handle. It is not where it handles them, and where those that it no longer handles are not sent either: its way
        is clear. Left out is a NIC that nobody sent CNPs, and one that cannot be told: where the fabric's CNPs did not
        balance before the onset some ends were not read.
        """
        return {nic: read for nic in self._topology.nics if (read := self._reaction(nic)) is not None}

    def notifier(self, nic: End) -> End | None:
        """The NIC that sends most CNPs of those that a NIC sends to: of its rail, where it has one.

        None where none sends any.
        """
        rail = self._topology.rail_of(*nic)
        peers = self._topology.nics if rail is None else self._topology.rails[rail.parts[0]]
        rates = {
            peer: signal["after_mean"] or 0.0
            for peer in peers
            if peer != nic and (signal := self._signals("cnp_sent").get((*peer, ""))) is not None
        }
        loudest = max(rates, key=lambda peer: rates[peer], default=None)
        return loudest if loudest is not None and rates[loudest] >= FLOOR else None

    def _reaction(self, nic: End) -> Reaction | None:
        handled = self._signals("cnp_handled").get((*nic, ""))
        if handled is None or handled["after_mean"] is None or handled["after_delta"] is None:
            return None
        ignored = self._signals("cnp_ignored").get((*nic, ""))
        if ignored is not None and (ignored["after_delta"] or 0.0) >= FEW:
            rate = ignored["after_mean"] or 0.0
            if rate <= max(RISE * (ignored["before_mean"] or 0.0), handled["after_mean"]):
                return None
            return Reaction(True, handled, ignored.extreme or ignored.last, ignored=rate)
        due = self._due(nic, handled)
        if handled["after_delta"] >= FEW and (
            ignored is not None or (due is not None and handled["after_mean"] >= due / 2)
        ):
            return Reaction(False, handled, handled.extreme or handled.last)
        if due is None or due < FLOOR or handled["after_mean"] > REST * due or self._unheard is None:
            return None
        missing = due - handled["after_mean"]
        if self._unheard < REST * missing:
            return Reaction(False, handled, handled.last, unheard=self._unheard)
        if self._unheard < missing / 2 or missing < LEAST_SHARE * self._unheard:
            return None
        return Reaction(True, handled, handled.last, unheard=self._unheard)

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
