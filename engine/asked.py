"""What the command line asks of a bundle, laid over what its `incident.yaml` says."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, time

from .errors import UsageError
from .facts import Incident


def asked_incident(incident: Incident, job: str | None, at: str | None, window: str | None) -> Incident:
    """The incident with the job, onset and window of the command line; None leaves what the bundle says.

    `at` is RFC 3339, or a time of day (UTC) on the first day of the window; `window` is START/END. Raises UsageError
    for an empty job name and a time that is none.
    """
    if job == "":
        raise UsageError("The job has no name.", "Write --job NAME, or leave it out.")
    if window is not None:
        start, slash, end = window.partition("/")
        if not slash:
            raise UsageError(f"{window!r} is no window.", "Write --window START/END, both RFC 3339.")
        span = (instant(start, None), instant(end, None))
        if span[0] >= span[1]:
            raise UsageError(f"The window {window!r} ends before it starts.", "Write --window START/END.")
        incident = replace(incident, window=span)
    day = None if incident.window is None else datetime.fromtimestamp(incident.window[0], UTC)
    return replace(
        incident,
        job=job or incident.job,
        onset=incident.onset if at is None else instant(at, day),
    )


def instant(text: str, day: datetime | None) -> float:
    """Seconds since the epoch of an RFC 3339 time or, with a `day`, a time of day; without a zone both are UTC."""
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        try:
            of_day = time.fromisoformat(text)
        except ValueError:
            raise UsageError(
                f"{text!r} is no time.", "Write 2026-11-17T20:31:00Z, or 20:31Z within the window."
            ) from None
        if day is None:
            raise UsageError(
                f"{text!r} has no date and the bundle has no window.", "Write 2026-11-17T20:31:00Z."
            ) from None
        moment = datetime.combine(day.date(), of_day)
    return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()
