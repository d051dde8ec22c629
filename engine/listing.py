"""Facts and read issues as lines of text, for `causeline facts` and `causeline adapters try`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from .facts import (
    Cable,
    Event,
    Fact,
    FirmwareState,
    InterfaceAlias,
    JobPlacement,
    QosProfile,
    ReadIssue,
    RouteState,
    Series,
)
from .wording import number, timestamp


def fact_lines(facts: Iterable[Fact], device: str | None, metric: str | None, limit: int) -> Iterator[str]:
    """One line a fact, at most `limit` (0: all), then how many were left out.

    `device` and `metric` None: any.
    """
    kept = [fact for fact in facts if _is_asked(fact, device, metric)]
    for fact in kept[: limit or None]:
        yield f"{_text(fact)}  [{fact.provenance.source} {fact.provenance.record}]"
    if limit and len(kept) > limit:
        yield f"... {len(kept) - limit} more (--limit 0 shows all)"


def issue_lines(issues: Iterable[ReadIssue]) -> Iterator[str]:
    """One line an issue, worst first."""
    rank = {"error": 0, "warning": 1, "note": 2}
    for issue in sorted(issues, key=lambda issue: (rank[issue.level.value], issue)):
        where = f"{issue.source} {issue.record}".strip()
        yield f"{issue.level.value}: {where}: {issue.message} ({issue.code})"


def _is_asked(fact: Fact, device: str | None, metric: str | None) -> bool:
    if metric is not None and not (isinstance(fact, Series) and fact.metric == metric):
        return False
    return device is None or device in _devices(fact)


def _devices(fact: Fact) -> tuple[str, ...]:
    match fact:
        case Cable():
            return (fact.a_device, fact.b_device)
        case JobPlacement():
            return (fact.job, *fact.hosts)
        case _:
            return (fact.device,)


def _text(fact: Fact) -> str:
    match fact:
        case Series():
            place = "/".join(part for part in (fact.device, fact.port, fact.qualifier) if part)
            values = [value for value in fact.values if value is not None]
            ends = f"{number(values[0])} .. {number(values[-1])}" if values else "no value"
            when = f"{timestamp(fact.times[0])} .. {timestamp(fact.times[-1])}" if fact.times else ""
            return f"series   {place} {fact.metric}: {len(values)} samples {when}, {ends}"
        case RouteState():
            ports = ", ".join(hop.interface for hop in fact.next_hops)
            return f"route    {fact.device} {fact.prefix} at {timestamp(fact.at)}: {ports}"
        case FirmwareState():
            return f"firmware {fact.device}/{fact.port}: {fact.driver} {fact.version}"
        case QosProfile():
            limits = (fact.ecn_kmin_bytes, fact.ecn_kmax_bytes)
            marks = " to ".join("?" if limit is None else f"{number(limit)} B" for limit in limits)
            return f"profile  {fact.device} at {timestamp(fact.at)}: marks from {marks}"
        case Event():
            return f"event    {timestamp(fact.at)} {fact.device} {fact.kind}: {fact.statement}"
        case Cable():
            return f"cable    {fact.a_device} {fact.a_port} - {fact.b_device} {fact.b_port} ({fact.kind})"
        case InterfaceAlias():
            return f"alias    {fact.device}: {fact.alias} is {fact.port}"
        case JobPlacement():
            return f"job      {fact.job} ({fact.job_id}) on {len(fact.hosts)} hosts"
