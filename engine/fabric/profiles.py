"""Device profiles as series: what a switch was configured to becomes a limit that signs compare with, port by port."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from ..facts import Fact, QosProfile, Series
from ..topology import Topology


def profile_series(facts: Iterable[Fact], topology: Topology) -> Iterator[Series]:
    """Whether every linked port of every profiled switch marks, and its thresholds at the speed of the port.

    A threshold given for one speed needs the port's own to scale: without it the port has no series of it.
    """
    facts = tuple(facts)
    speeds = {
        (one.device, topology.resolve_port(one.device, one.port)): one.values[-1]
        for one in facts
        if isinstance(one, Series) and one.metric == "speed_bps" and one.values
    }
    for profile in facts:
        if not isinstance(profile, QosProfile):
            continue
        for port in topology.ports_of.get(profile.device, ()):
            if profile.ecn_enabled is not None:
                marks = (float(profile.ecn_enabled),)
                yield Series(profile.device, port, "", "ecn_enabled", (profile.at,), marks, profile.provenance)
            scale = 1.0
            if profile.ecn_speed_bps is not None:
                speed = speeds.get((profile.device, port))
                if speed is None:
                    continue
                scale = speed / profile.ecn_speed_bps
            for metric, threshold in (
                ("ecn_kmin_bytes", profile.ecn_kmin_bytes),
                ("ecn_kmax_bytes", profile.ecn_kmax_bytes),
            ):
                if threshold is not None:
                    yield Series(
                        profile.device, port, "", metric, (profile.at,), (threshold * scale,), profile.provenance
                    )
