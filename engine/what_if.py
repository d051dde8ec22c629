"""Questions to a saved investigation: what if a cause had been off, what if a finding had been another.

Both are asked of its explanation network, through pgmpy.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from .errors import UsageError
from .inference import ask, to_bif
from .result_network import ExplanationNetwork
from .results import Hypothesis, Investigation
from .shown_network import restored
from .wording import percent

READINGS: Mapping[str, bool | None] = {"present": True, "absent": False, "unknown": None}
"""What a finding may be asked to be; unknown: nobody looked."""


@dataclass(frozen=True, slots=True)
class Changed:
    """A hypothesis with its probability in the investigation and as asked."""

    hypothesis: Hypothesis
    before: float
    after: float


@dataclass(frozen=True, slots=True)
class WhatIf:
    """`causes` in the order of the investigation; `still_slow`: P(the job would have slowed down all the same), None
    without a slowdown."""

    causes: tuple[Changed, ...]
    still_slow: float | None


def what_if(investigation: Investigation, without: Sequence[str], findings: Mapping[str, str]) -> WhatIf:
    """The leading hypotheses and the slowdown `without` some of these (ids, or cause@place), where `findings` (ids or
    sign@place) are present, absent or unknown instead of what was read.

    Without a cause everything else is as it was: what was seen stays seen, and what would have happened anyway
    happens. Raises UsageError for a name that the explanation network does not hold.
    """
    if not without and not findings:
        raise UsageError(
            "Nothing was asked.", "Take a hypothesis out (--do H1=off), or change a finding (--finding E3=absent)."
        )
    network = _network(investigation)
    causes = {f"{h.cause}@{h.scope}": h for h in investigation.hypotheses if h.count == 1}
    ids = {h.id: name for name, h in causes.items()} | {name: name for name in causes}
    taken = [ids.get(name, name) for name in without]
    if wrong := [name for name, node in zip(without, taken, strict=True) if node not in network.causes]:
        known = ", ".join(causes[name].id if name in causes else name for name in network.causes)
        raise UsageError(f"{', '.join(wrong)} is not part of the explanation network.", f"Ask about one of {known}.")
    answer = ask(restored(network, _read(investigation, network, findings)), taken)
    changed = [
        Changed(causes[name], causes[name].probability, p) for name, p in answer.causes.items() if name in causes
    ]
    return WhatIf(tuple(changed), answer.symptom)


def what_if_lines(found: WhatIf, without: Sequence[str], findings: Mapping[str, str]) -> Iterator[str]:
    """The answer in words, a line each."""
    asked = " and ".join(f"{name} were {state}" for name, state in findings.items())
    if findings:
        yield f"If {asked}:"
        for one in found.causes:
            change = f"{percent(one.before)} -> {percent(one.after)}"
            yield f"  {one.hypothesis.id:<4} {change:<24} {one.hypothesis.title}"
    if without and found.still_slow is not None:
        names = " and ".join(without)
        yield f"Without {names} the slowdown would have happened all the same: {percent(found.still_slow)}."
    elif without:
        yield "There is no slowdown that could be left."


def bif(investigation: Investigation) -> str:
    """The explanation network of an investigation as BIF; raises UsageError where it has none."""
    return to_bif(restored(_network(investigation)))


def _network(investigation: Investigation) -> ExplanationNetwork:
    if investigation.network is None:
        raise UsageError(
            "This investigation holds no explanation network.",
            "Investigate the bundle again: older results and very entangled ones have none.",
        )
    return investigation.network


def _read(
    investigation: Investigation, network: ExplanationNetwork, findings: Mapping[str, str]
) -> dict[str, bool | None]:
    nodes = {f.id: f"{f.sign}@{f.scope}" for f in investigation.findings}
    asked = {name: nodes.get(name, name) for name in findings}
    if wrong := sorted(f"{name}={state}" for name, state in findings.items() if state not in READINGS):
        raise UsageError(f"{', '.join(wrong)} is no reading.", f"A finding is one of {', '.join(READINGS)}.")
    if wrong := sorted(name for name, node in asked.items() if node not in network.changeable):
        known = ", ".join(sorted((id for id, node in nodes.items() if node in network.changeable), key=_by_number))
        raise UsageError(
            f"{', '.join(wrong)} bears on more than the explanation network holds, or is not part of it.",
            f"Ask about one of {known or 'none here'}; for others, leave the file out of the bundle and investigate.",
        )
    return {asked[name]: READINGS[state] for name, state in findings.items()}


def _by_number(id: str) -> tuple[int, str]:
    return len(id), id
