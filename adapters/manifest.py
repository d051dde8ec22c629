"""`incident.yaml`: what is asked of a bundle, and what its file paths say (device, capture time, netdev, RDMA device,
command, job).

Nothing in it is required. What is wrong in it is a read issue; the rest is used.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields
from datetime import UTC, date, datetime, tzinfo
from typing import Any
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

import yaml
from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator

from ..engine.facts import Incident, IssueLevel, ReadIssue
from .base import Hints
from .clock import Clock

NAME = "incident.yaml"

# The usual layout of a collected bundle. A pattern is matched against the end of a path; fields never cross `/`.
_USUAL_PATTERNS = (
    "{device}/ethtool_-S/{netdev}_{time}.txt",
    "{device}/ethtool_-S/{netdev}.txt",
    "{device}/ethtool_-i/{netdev}_{time}.txt",
    "{device}/ethtool_-i/{netdev}.txt",
    "{device}/ethtool_--json_-m/{netdev}_{time}.json",
    "{device}/ethtool_--json_-m/{netdev}.json",
    "{device}/rdma/{rdma_device}_{time}.txt",
    "switches/{device}/{command}_{time}.json",
    "switches/{device}/{command}_{time}.txt",
    "switches/{device}/*",
    "hosts/{device}/{command}_{time}.*",
    "hosts/*/{device}/{command}_{time}.*",
    "hosts/{device}/*",
    "hosts/*/{device}/*",
    "jobs/steps_{job}.jsonl",
)
_FIELDS = tuple(field.name for field in fields(Hints))
_TIME_FIELD = r"\d{4}-?\d\d-?\d\d[T_ -]\d\d[:-]?\d\d(?:[:-]?\d\d)?(?:Z|[+-]\d\d:?\d\d)?"


class _FileHint(BaseModel):
    """`path` is a pattern with `{device}` and other fields, or a plain path; the other keys fix a field for all files
    it matches."""

    model_config = ConfigDict(extra="forbid", frozen=True, coerce_numbers_to_str=True)

    path: str
    device: str = ""
    time: str = ""
    netdev: str = ""
    rdma_device: str = ""
    command: str = ""
    job: str = ""


class _IncidentFile(BaseModel):
    """The keys of incident.yaml. `clock_offsets`: seconds a device's clock is ahead of UTC. `time_zone`: IANA name
    for times without a zone."""

    model_config = ConfigDict(extra="forbid", frozen=True, coerce_numbers_to_str=True)

    id: str | None = None
    fabric: str | None = None
    job: str | None = None
    window: tuple[datetime, datetime] | None = None
    time_zone: str | None = None
    clock_offsets: Mapping[str, float] = Field(default_factory=dict)
    files: tuple[_FileHint, ...] = ()

    @field_validator("window", mode="before")
    @classmethod
    def _window_is_two_times(cls, value: object) -> object:
        if isinstance(value, (list, tuple)) and any(type(one) is date for one in value):
            raise ValueError("a window is two times with a zone, such as 2026-11-17T20:15:00Z; a date alone is not one")
        return value

    @field_validator("time_zone")
    @classmethod
    def _zone_is_known(cls, value: str | None) -> str | None:
        try:
            _zone(value)
        except (ZoneInfoNotFoundError, ValueError) as error:
            raise ValueError(f"{value!r} is not an IANA time zone such as UTC or Europe/Berlin") from error
        return value


@dataclass(frozen=True)
class Manifest:
    """What a bundle says about itself, ready to use."""

    incident: Incident
    zone: tzinfo
    zone_is_declared: bool
    clock_offsets: Mapping[str, float]
    declared: tuple[tuple[re.Pattern[str], Mapping[str, str]], ...]

    def hints(self, path: str) -> Hints:
        """The hints of a file: declared ones first, then what the usual layout tells; a field once set stays."""
        found: dict[str, str] = {}
        for pattern, fixed in self.declared:
            match = pattern.fullmatch(path)
            if match is not None:
                _add_fields(found, fixed, match.groupdict())
        ends = {depth: "/".join(path.split("/")[-depth:]) for depth in _USUAL}
        for depth, patterns in _USUAL.items():
            for pattern in patterns:
                match = pattern.fullmatch(ends[depth])
                if match is not None:
                    _add_fields(found, {}, match.groupdict())
        return Hints(**found)

    def clock(self, device: str) -> Clock:
        """The clock for a file of `device` ("" where no device is known)."""
        return Clock(self.zone, self.clock_offsets.get(device, 0.0), self.incident.window)


def read_manifest(text: str | None, bundle_name: str) -> tuple[Manifest, tuple[ReadIssue, ...]]:
    """The manifest from the text of incident.yaml; None (no such file) gives the bundle's name as id and nothing
    else."""
    issues: list[ReadIssue] = []
    declared = _IncidentFile() if text is None else _parse(text, issues)
    zone = _zone(declared.time_zone)
    window = None
    if declared.window is not None:
        start, end = (one if one.tzinfo else one.replace(tzinfo=zone) for one in declared.window)
        if start < end:
            window = (start.timestamp(), end.timestamp())
        else:
            issues.append(_issue("window", f"window ends ({end}) before it starts ({start}); not used, swap the two"))
    patterns: list[tuple[re.Pattern[str], Mapping[str, str]]] = []
    for number, hint in enumerate(declared.files):
        try:
            patterns.append((_compiled(hint.path), hint.model_dump(exclude={"path"})))
        except ValueError as error:
            issues.append(_issue(f"files/{number}/path", str(error)))
    incident = Incident(declared.id or bundle_name, declared.fabric, declared.job, window)
    is_declared = declared.time_zone is not None
    return Manifest(incident, zone, is_declared, dict(declared.clock_offsets), tuple(patterns)), tuple(issues)


def _zone(name: str | None) -> tzinfo:
    return UTC if name in (None, "UTC") else ZoneInfo(name)


def _parse(text: str, issues: list[ReadIssue]) -> _IncidentFile:
    try:
        document = yaml.safe_load(text)
    except (yaml.YAMLError, ValueError, RecursionError) as error:  # ValueError: 2026-13-45 is a date to YAML
        message = f"it is not YAML ({' '.join(str(error).split())}); nothing of it is used"
        issues.append(_issue("", message, IssueLevel.ERROR))
        return _IncidentFile()
    if not isinstance(document, dict) or not all(isinstance(key, str) for key in document):
        message = f"it holds {type(document).__name__}, expected keys such as id, job, window; nothing of it is used"
        issues.append(_issue("", message, IssueLevel.ERROR))
        return _IncidentFile()
    while True:
        try:
            return _IncidentFile.model_validate(document)
        except ValidationError as error:
            problems = error.errors()
        for problem in problems:
            where = "/".join(str(part) for part in problem["loc"])
            issues.append(_issue(where, _explained(problem["type"], problem["msg"])))
        for problem in reversed(problems):
            _remove(document, problem["loc"])


def _remove(document: dict[str, Any], place: tuple[int | str, ...]) -> None:
    """Takes the deepest thing that exists at `place` out of the document."""
    holder: Any = document
    for depth, key in enumerate(place):
        if not _holds(holder, key):
            return
        if depth + 1 == len(place) or not _holds(holder[key], place[depth + 1]):
            del holder[key]
            return
        holder = holder[key]


def _holds(holder: Any, key: int | str) -> bool:
    return key in range(len(holder)) if isinstance(holder, list) else isinstance(holder, dict) and key in holder


def _explained(kind: str, message: str) -> str:
    if kind == "extra_forbidden":
        return f"no such key; expected one of {', '.join(_IncidentFile.model_fields)}; it is ignored"
    return f"{message}; it is not used"


def _issue(record: str, message: str, level: IssueLevel = IssueLevel.WARNING) -> ReadIssue:
    return ReadIssue(NAME, f"/{record}" if record else "", level, "incident-yaml", message)


def _compiled(pattern: str) -> re.Pattern[str]:
    """The pattern as a regular expression for whole paths. Raises ValueError naming an unknown field."""
    return re.compile("".join(_pieces(pattern)) + r"(?:\.gz|\.bz2|\.xz|\.zst)?")


def _pieces(pattern: str) -> Iterator[str]:
    seen: set[str] = set()
    for literal, name, star in re.findall(r"([^{}*]+)|\{(\w*)\}|(\*)", pattern):
        if literal:
            yield re.escape(literal)
        elif star:
            yield r"[^/]*"
        elif name not in _FIELDS:
            raise ValueError(f"{{{name}}} in {pattern!r} is no field; expected one of {', '.join(_FIELDS)}")
        elif name in seen:
            yield f"(?P={name})"
        else:
            seen.add(name)
            yield f"(?P<{name}>{_TIME_FIELD if name == 'time' else '[^/]+?'})"


def _add_fields(found: dict[str, str], fixed: Mapping[str, str], matched: Mapping[str, str | None]) -> None:
    for name in _FIELDS:
        value = fixed.get(name) or matched.get(name)
        if value:
            found.setdefault(name, value)


# Patterns by the number of path components they span, longest (most telling) first.
_USUAL = {
    depth: tuple(_compiled(pattern) for pattern in _USUAL_PATTERNS if pattern.count("/") + 1 == depth)
    for depth in sorted({pattern.count("/") + 1 for pattern in _USUAL_PATTERNS}, reverse=True)
}
