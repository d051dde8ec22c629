"""Solves the network of an incident; where its places are coupled too closely to be summed at once, a narrower one, and
says what was left out.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from .compile import Compiled, Coupling, compile_network
from .completeness import WHOLE_BUNDLE
from .errors import TooManyOpenBits
from .facts import IssueLevel, ReadIssue
from .findings import Findings
from .frontier.sweep import Posterior, solve
from .observed import Observed
from .places import Places
from .rules import KnowledgeBase


def solve_narrowed(
    knowledge: KnowledgeBase, observed: Observed, places: Places, findings: Findings
) -> tuple[Compiled, Posterior, tuple[ReadIssue, ...]]:
    """The network, its posterior, and what it lacks: first pausing that spreads, then triggers, then findings that many
    places share. Raises InferenceError when the evidence is impossible, or when nothing that is left can be left out.
    """
    problem = ""
    for coupling in Coupling:
        compiled = compile_network(knowledge, observed, places, findings, coupling)
        try:
            return compiled, solve(compiled.network), _uncoupled(coupling, observed, problem)
        except TooManyOpenBits as error:
            problem = problem or error.message.partition(" are")[0]
            open_signs = error.signs
    compiled, posterior, left_out = _with_fewer_findings(compiled, open_signs)
    return compiled, posterior, (*_uncoupled(Coupling.NONE, observed, problem), _unheard(left_out))


def _with_fewer_findings(compiled: Compiled, open_signs: Iterable[str]) -> tuple[Compiled, Posterior, tuple[str, ...]]:
    """Without the findings that tell least which place it was: of those open together, again and again the one that
    most causes and mechanisms raise."""
    raised_by = {node.id: len(node.links) for node in compiled.network.nodes}
    left_out: list[str] = []
    while True:
        candidates = sorted(set(open_signs) - {compiled.network.symptom, *left_out})
        if not candidates:
            raise TooManyOpenBits("More places are coupled than can be summed at once, and no finding couples them.")
        left_out.append(max(candidates, key=lambda sign: raised_by[sign]))
        evidence = {sign: seen for sign, seen in compiled.network.evidence.items() if sign not in left_out}
        narrower = replace(compiled, network=replace(compiled.network, evidence=evidence))
        try:
            return narrower, solve(narrower.network), tuple(left_out)
        except TooManyOpenBits as error:
            open_signs = error.signs


def _uncoupled(coupling: Coupling, observed: Observed, problem: str) -> tuple[ReadIssue, ...]:
    """Which links between places were left out because `problem` bits were open at once."""
    if coupling is Coupling.ALL:
        return ()
    message = (
        f"{len(observed.pause_graph.paused)} paused queues couple too many places to be weighed together "
        f"({problem} open at once); each was weighed alone, so a pause may be blamed where it only passed through"
    )
    if coupling is Coupling.NONE:
        message += ", and an effect may stand beside its trigger as if both had come by themselves"
    return (ReadIssue(WHOLE_BUNDLE, "", IssueLevel.WARNING, "pauses-weighed-alone", message),)


def _unheard(signs: tuple[str, ...]) -> ReadIssue:
    message = (
        f"too many places share findings to be weighed together; {', '.join(signs)} "
        f"{'was' if len(signs) == 1 else 'were'} left out of the probabilities"
    )
    return ReadIssue(WHOLE_BUNDLE, "", IssueLevel.WARNING, "findings-left-out", message)
