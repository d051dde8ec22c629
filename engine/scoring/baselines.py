"""What the engine must beat: a ranking by z-score, and single signs taken as if each were a whole diagnosis.

Both are told the true onset, which the engine has to find: the comparison favours them.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime

import numpy as np

from .. import signals
from ..facts import Reading, Series
from ..findings import SignFinding
from ..matching import match
from ..metrics import METRICS, MetricKind
from ..observed import Observed
from ..places import Places
from ..result_base import Result
from ..results import Place
from ..rules import KnowledgeBase, Relation
from ..scope import ScopeKind
from ..telemetry import Telemetry
from ..topology import Topology
from .scoreboard import TrueCause, Truth

FEWEST_SAMPLES = 3
"""Samples on each side of the onset below which a series has no spread to speak of (judgement)."""

GUESSES: Mapping[str, str] = {
    "ack_timeouts": "phy.optic_degraded",
    "cnp_handled": "load.incast",
    "cnp_sent": "load.incast",
    "duplicate_requests": "phy.optic_degraded",
    "ecmp_members": "path.ecmp_redistribution",
    "ecn_ce_received_packets": "load.incast",
    "ecn_marked_packets": "load.incast",
    "fcs_errors": "phy.optic_degraded",
    "link_down_drop_packets": "phy.link_flap",
    "link_down_events": "phy.link_flap",
    "nak_received": "phy.optic_degraded",
    "nak_sent": "phy.optic_degraded",
    "nic_rx_discards": "nic.slow_receiver",
    "oper_up": "phy.link_flap",
    "optic_rx_dbm": "phy.optic_degraded",
    "out_of_sequence": "phy.optic_degraded",
    "pfc_rx_pause_frames": "nic.slow_receiver",
    "pfc_rx_pause_us": "nic.slow_receiver",
    "pfc_tx_pause_frames": "nic.pause_storm",
    "pfc_tx_pause_us": "nic.pause_storm",
    "pre_fec_ber": "phy.optic_degraded",
    "queue_bytes": "load.incast",
    "queue_mean_bytes": "load.incast",
    "queue_peak_bytes": "load.incast",
    "queue_tx_bytes": "path.ecmp_redistribution",
    "rank_send_start": "host.gpu_throttle",
    "retransmitted_packets": "phy.optic_degraded",
    "speed_bps": "phy.lane_speed_down",
    "tx_bytes": "path.ecmp_redistribution",
}
"""The cause an engineer thinks of first when this counter stands out (judgement)."""


class BaselineScore(Result):
    """`three_sigma` is the series that moved most, in words; None in `three_sigma_place` and `_cause` where the truth
    names no place, or no cause. `right_signs`: signs whose strongest finding is at a true place and whose best-graded
    cause is accepted."""

    three_sigma: str
    three_sigma_place: bool | None
    three_sigma_cause: bool | None
    right_signs: tuple[str, ...]


def baseline(reading: Reading, knowledge: KnowledgeBase, truth: Truth) -> BaselineScore:
    """Scores both on one bundle."""
    onsets = [datetime.fromisoformat(cause.onset).timestamp() for cause in truth.causes if cause.onset]
    topology = Topology(reading.facts)
    telemetry = Telemetry([fact for fact in reading.facts if isinstance(fact, Series)], topology.resolve_port)
    window = reading.incident.window or telemetry.span()
    if not truth.causes or not onsets or window is None:
        return BaselineScore(three_sigma="", three_sigma_place=None, three_sigma_cause=None, right_signs=())
    device, port, metric, z = _loudest_series(telemetry, window, min(onsets))
    at = [_is_true(cause, (Place(device=device, port=port or None),)) for cause in truth.causes]
    guess = GUESSES.get(metric)
    return BaselineScore(
        three_sigma=f"{metric} at {device} {port}".strip() + f" (z {z:.0f})",
        three_sigma_place=any(at) if any(cause.places for cause in truth.causes) else None,
        three_sigma_cause=any(hit and guess in cause.accept for hit, cause in zip(at, truth.causes, strict=True)),
        right_signs=_right_signs(topology, telemetry, window, min(onsets), knowledge, truth),
    )


def _is_true(cause: TrueCause, places: tuple[Place, ...]) -> bool:
    return not cause.places or any(
        place.device == one.device and one.port in (None, place.port) for place in places for one in cause.places
    )


def _loudest_series(telemetry: Telemetry, window: tuple[float, float], onset: float) -> tuple[str, str, str, float]:
    """(device, port, metric, z) of the series whose mean moved most at the onset, in standard deviations of what came
    before. A series that stood still before takes the usual spread of its metric elsewhere: zero would make every
    first event infinite. Series of jobs and ranks name no place in the fabric and are left out."""
    rows = telemetry.rows(
        "SELECT device, port, qualifier, metric, list(ts ORDER BY ts), list(value ORDER BY ts) FROM samples "
        "WHERE ts BETWEEN ? AND ? GROUP BY ALL ORDER BY device, port, qualifier, metric",
        window,
    )
    moved: list[tuple[str, str, str, float, float]] = []
    for device, port, _, metric, times, values in rows:
        if METRICS[metric].scope in (ScopeKind.JOB, ScopeKind.RANK):
            continue
        at, level = np.array(times), np.array(values)
        if METRICS[metric].kind is MetricKind.COUNTER:
            rises = np.diff(level)
            at, level = at[1:][rises >= 0], (rises / np.diff(at))[rises >= 0]
        before, after = level[at <= onset], level[at > onset]
        if min(len(before), len(after)) >= FEWEST_SAMPLES and np.isfinite(level).all():
            moved.append((device, port, metric, abs(float(after.mean() - before.mean())), float(before.std())))
    spreads: dict[str, list[float]] = {}
    for _, _, metric, _, spread in moved:
        if spread > 0:
            spreads.setdefault(metric, []).append(spread)
    usual = {metric: float(np.median(found)) for metric, found in spreads.items()}
    scored = [
        (device, port, metric, move / (spread or usual.get(metric, max(move, 1.0))))
        for device, port, metric, move, spread in moved
    ]
    return max(scored, key=lambda one: one[3], default=("", "", "", 0.0))


def _right_signs(
    topology: Topology,
    telemetry: Telemetry,
    window: tuple[float, float],
    onset: float,
    knowledge: KnowledgeBase,
    truth: Truth,
) -> tuple[str, ...]:
    split = signals.Split(*window, onset, 0.0)
    signals.reduce(telemetry, split)
    job = truth.victim_jobs[0] if truth.victim_jobs else None
    observed = Observed(topology, telemetry, split, job)
    places = Places(observed)
    strongest: dict[str, SignFinding] = {}
    for finding in match(knowledge, observed):
        if finding.state == "present":
            other = strongest.get(finding.sign)
            if other is None or _strength(finding) > _strength(other):
                strongest[finding.sign] = finding
    guesses = best_graded_causes(knowledge)
    return tuple(
        sign
        for sign, finding in sorted(strongest.items())
        if any(
            guesses.get(sign) in cause.accept and _is_true(cause, places.named(finding.scope)) for cause in truth.causes
        )
    )


def _strength(finding: SignFinding) -> float:
    observed = abs(finding.observed or 0.0)
    return observed / abs(finding.limit) if finding.limit else observed


def best_graded_causes(knowledge: KnowledgeBase) -> Mapping[str, str]:
    """The cause whose own place shows each sign most surely, by P(sign | cause); ties by id."""
    best: dict[str, tuple[tuple[float, ...], str]] = {}
    for cause in sorted(knowledge.causes.values(), key=lambda cause: cause.id):
        for sign, link in cause.signs.items():
            if (
                link.effect == "raises"
                and link.at is not Relation.FABRIC
                and link.by_level > best.get(sign, ((), ""))[0]
            ):
                best[sign] = (link.by_level, cause.id)
    return {sign: cause for sign, (_, cause) in best.items()}
