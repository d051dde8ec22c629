"""Queue signs that need two metrics at once."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from ..findings import SignFinding, time_coverage
from ..observed import Observed
from ..scope import Scope, ScopeKind, short_port


def unmarked_queues(observed: Observed, sign: str, limits: Mapping[str, float]) -> Iterator[SignFinding]:
    """Did a queue of the device pass Kmax while its mark counter stood still?

    One finding per device. Unknown where no queue passed Kmax (nothing could have been marked), where marks were not
    counted, or stood still for the little time they were read.
    """
    by_device: dict[str, list[tuple[bool, SignFinding]]] = {}
    for key, peak in observed.signals("queue_peak_bytes").items():
        device, port, traffic_class = key
        marks = observed.signals("ecn_marked_packets").get(key)
        depth = peak["after_max"]
        if traffic_class not in observed.lossless_classes or depth is None:
            continue
        if marks is None or marks["after_delta"] is None:
            continue
        if depth <= observed.limit("ecn_kmax_bytes", device, port, limits["kmax"]):
            continue
        if Scope.of(ScopeKind.QUEUE, *key) in observed.pause_graph.paused:
            continue
        unmarked = marks["after_delta"] == 0
        if unmarked and time_coverage(marks["after_coverage"]) < 1:
            continue
        finding = SignFinding(
            sign,
            Scope.of(ScopeKind.DEVICE, device),
            "present" if unmarked else "absent",
            observed=marks["after_delta"],
            baseline=marks["before_delta"],
            limit=0.0,
            unit="marked packets after the onset",
            coverage=time_coverage(marks["after_coverage"]),
            records=(marks.extreme or marks.last, peak.extreme or peak.last),
            words={"depth": f"{depth / 1e6:.2f} MB", "port": short_port(port)},
            spot=f"{device} {short_port(port)}",
        )
        by_device.setdefault(device, []).append((unmarked, finding))
    for _, findings in sorted(by_device.items()):
        yield next((finding for unmarked, finding in findings if unmarked), findings[0][1])
