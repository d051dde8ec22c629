"""Sign of other jobs' bytes in a queue: from flow records, or from which NICs send more since the onset."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping

from ..findings import SignFinding, time_coverage
from ..observed import Observed
from ..scope import Scope, ScopeKind
from ..signals import Signal
from ..steps.step_bytes import StepBytes

MOST_OF_THEM = 0.5
"""Share of the added bytes that must be seen to come from somewhere (judgement: most of them)."""

OWN_HOSTS_CLEAR = 0.75
"""How well others are cleared where the job's own hosts send what was added (judgement: one foreign sender in four
shares a host with the job)."""


def foreign_bytes(observed: Observed, sign: str, limits: Mapping[str, float]) -> Iterator[SignFinding]:
    """Do others send a share of the bytes in the queue that they did not send before?

    Flow records tell. Without them the ports to hosts do, where more is sent since the onset: it comes from NICs that
    send more, and those outside the job are others'. Between switches a re-routed flow adds bytes as well, and nothing
    is said.
    """
    records = {
        key: signal
        for key, signal in observed.signals("foreign_byte_share").items()
        if key[2] in observed.lossless_classes and signal["after_mean"] is not None
    }
    for key, signal in records.items():
        share = signal["after_mean"] or 0.0
        has_begun = share > limits["rise"] * (signal["before_mean"] or 0.0)
        if share < limits["share"] or has_begun:
            covered = time_coverage(signal["after_coverage"])
            yield _finding(sign, key, share >= limits["share"], share, limits["share"], signal, covered)
    volume = observed.step_bytes
    if volume is None or observed.job is None or not observed.topology.job_hosts(observed.job):
        return
    by_host = _added_by_job(observed, volume)
    own, others = sum(by_host.values()), _added_by_others(observed)
    # What the job itself sends, most of its hosts send.
    senders = sum(added >= MOST_OF_THEM * own / len(by_host) for added in by_host.values())
    is_collective = own > 0.0 and senders >= MOST_OF_THEM * len(by_host)
    for (device, port, _), signal in observed.signals("tx_bytes").items():
        added = (signal["after_mean"] or 0.0) - (signal["before_mean"] or 0.0)
        is_foreign, is_own = others >= MOST_OF_THEM * added, own >= MOST_OF_THEM * added
        has_grown = signal["before_mean"] and added >= limits["grown"] * signal["before_mean"]
        if not has_grown or is_foreign == is_own or not observed.topology.is_host_facing(device, port):
            continue
        if is_own and not is_collective:
            continue
        share, covered = (added / (signal["after_mean"] or 1.0), 1.0) if is_foreign else (0.0, OWN_HOSTS_CLEAR)
        for traffic_class in sorted(observed.lossless_classes):
            if (device, port, traffic_class) not in records:
                key = (device, port, traffic_class)
                yield _finding(sign, key, is_foreign, share, limits["share"], signal, covered)


def _added_by_job(observed: Observed, volume: StepBytes) -> Mapping[str, float]:
    """Bytes a second that each host of the job sends beyond those of its usual steps."""
    usual = volume.usual / volume.step
    found: dict[str, float] = defaultdict(float)
    for nic in observed.job_nics:
        sent = observed.sent(nic)
        if sent is not None:
            found[nic[0]] += (sent["after_mean"] or 0.0) - usual * (sent["before_mean"] or 0.0)
    return found


def _added_by_others(observed: Observed) -> float:
    """Bytes a second by which NICs outside the job send more than before, those that send less left out."""
    own = set(observed.job_nics)
    signals = [sent for nic in observed.topology.nics if nic not in own and (sent := observed.sent(nic)) is not None]
    return sum(max(0.0, (signal["after_mean"] or 0.0) - (signal["before_mean"] or 0.0)) for signal in signals)


def _finding(
    sign: str,
    key: tuple[str, str, str],
    is_foreign: bool,
    share: float,
    limit: float,
    signal: Signal,
    coverage: float,
) -> SignFinding:
    return SignFinding(
        sign,
        Scope.of(ScopeKind.QUEUE, *key),
        "present" if is_foreign else "absent",
        observed=share,
        baseline=signal["before_mean"],
        limit=limit,
        unit="of bytes",
        coverage=coverage,
        records=(signal.extreme or signal.last,),
    )
