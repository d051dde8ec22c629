"""What an adapter is and what it is given: one raw file with its hints, its clock and its digest.

An adapter reads one format and says, by content, which files are in it. Everything around it (opening archives,
hints, redaction, empty or binary files, two claims on one file, a crash) is done once, in `reading.py`. To add a
format: one module with an `ADAPTER` at its end, one folder `fixtures/adapters/<name>/` with the cases `normal` and
`damaged`.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from typing import Protocol

import orjson

from ..engine.facts import Fact, IssueLevel, Provenance, ReadIssue, Series
from .clock import Clock

JsonValue = None | bool | int | float | str | list["JsonValue"] | dict[str, "JsonValue"]

_LONGEST_COUNT = 20  # digits of 2^64 - 1
HEAD_BYTES = 16_384  # enough to see `_phy:` names in ethtool -S and the first event of a merged gnmic line (judgement)


class BadFile(Exception):
    """The whole file cannot be read, for a reason an operator can mend. Becomes an ERROR issue; facts already yielded
    are kept."""

    def __init__(self, code: str, message: str, record: str = "") -> None:
        super().__init__(message)
        self.code = code
        self.record = record


@dataclass(frozen=True, slots=True)
class Hints:
    """What the content of a file does not say, taken from its path or from `incident.yaml`. "" means: no hint.

    `time` is the capture time as written in the path; `command` the command that printed the file."""

    device: str = ""
    time: str = ""
    netdev: str = ""
    rdma_device: str = ""
    command: str = ""
    job: str = ""


@dataclass(frozen=True)
class RawFile:
    """One file of a bundle, decompressed. `sha256` is the digest of the file as stored, so `sha256sum` finds the
    same."""

    path: str
    content: bytes
    sha256: str
    hints: Hints
    clock: Clock

    @property
    def name(self) -> str:
        """The last component of the path."""
        return self.path.rpartition("/")[2]

    @cached_property
    def head(self) -> str:
        """The first characters, enough to recognise a format by its content."""
        return self.content[:HEAD_BYTES].decode("utf-8", errors="replace").lstrip("\ufeff \t\r\n")

    @cached_property
    def text(self) -> str:
        """The file as text; bytes that are not UTF-8 become U+FFFD, never an error."""
        return self.content.decode("utf-8-sig", errors="replace")

    @cached_property
    def lines(self) -> list[str]:
        """Line n of a record is `lines[n - 1]` (see `lines_of`)."""
        return lines_of(self.text)

    @cached_property
    def json(self) -> JsonValue:
        """The file as one JSON document. Raises BadFile saying where it breaks and whether it was cut."""
        return parse_json(self.text)

    @property
    def device(self) -> str:
        """The device of the file. Raises BadFile where the path names none: the content of these formats never does."""
        return self._required("device", self.hints.device)

    @property
    def netdev(self) -> str:
        """The network interface the file is about. Raises BadFile where the path names none."""
        return self._required("netdev", self.hints.netdev)

    @property
    def captured_at(self) -> float:
        """When the file was captured, in epoch seconds, from its path. Raises BadFile where the path names no time or
        a wrong one."""
        written = self._required("time", self.hints.time)
        moment = self.clock.collected(written)
        if moment is None:
            raise BadFile(
                "bad-time",
                f"the path gives the time {written!r}, expected UTC such as 20261117T203000Z; rename the file",
            )
        return moment

    def _required(self, hint: str, value: str) -> str:
        if not value:
            raise BadFile(
                "missing-hint",
                f"nothing names the {hint} of this file and its content does not either; name it in incident.yaml: "
                f'files: [{{path: "{self.path}", {hint}: ...}}], or a pattern with {{{hint}}} in the path',
            )
        return value

    def provenance(self, adapter: str, record: str) -> Provenance:
        """Where in this file a fact was read (see `Provenance.record`)."""
        return Provenance(self.path, record, adapter, self.sha256)

    def issue(self, code: str, message: str, record: str = "", level: IssueLevel = IssueLevel.WARNING) -> ReadIssue:
        """Something in this file that was not understood; `message` says what was found, what was expected and what
        to do."""
        return ReadIssue(self.path, record, level, code, message)

    def sample(
        self, adapter: str, record: str, place: tuple[str, str, str], metric: str, at: float, value: float | None
    ) -> Series:
        """One value of a snapshot; `place` is device, port and qualifier."""
        device, port, qualifier = place
        return Series(device, port, qualifier, metric, (at,), (value,), self.provenance(adapter, record))


class Adapter(Protocol):
    """One raw format. `reads`: the command or file and the versions; `emits`: fact types and metrics, sorted;
    `absence`: pairs of a metric or family and what it means when the source does not print it, with the source of
    that claim."""

    @property
    def name(self) -> str: ...
    @property
    def reads(self) -> str: ...
    @property
    def emits(self) -> tuple[str, ...]: ...
    @property
    def absence(self) -> tuple[tuple[str, str], ...]: ...

    def matches(self, file: RawFile) -> bool:
        """Whether the file is in this format, told by its first characters (and its path only where the content
        cannot tell)."""

    def read(self, file: RawFile) -> Iterator[Fact | ReadIssue]:
        """The facts of the file in file order. Depends on nothing but the file. May raise BadFile."""


@dataclass
class Tally:
    """Counts records of a file that were not understood, so a thousand bad lines become one issue that names the
    first."""

    file: RawFile
    first: dict[str, tuple[str, str, IssueLevel]] = field(default_factory=dict)
    more: dict[str, int] = field(default_factory=dict)

    def add(self, code: str, record: str, message: str, level: IssueLevel = IssueLevel.WARNING) -> None:
        if code in self.first:
            self.more[code] += 1
        else:
            self.first[code] = (record, message, level)
            self.more[code] = 0

    def issues(self) -> Iterator[ReadIssue]:
        """One issue a code, in the order they first occurred."""
        for code, (record, message, level) in self.first.items():
            others = f" ({self.more[code]} more like it in this file)" if self.more[code] else ""
            yield self.file.issue(code, message + others, record, level)


def parse_json(text: str) -> JsonValue:
    """One JSON document. Raises BadFile with line and column; the code tells a cut document from a malformed one."""
    try:
        document: JsonValue = orjson.loads(text)
    except orjson.JSONDecodeError as error:
        was_cut = error.pos >= len(text.rstrip())
        place = f"line {error.lineno} column {error.colno}"
        message = f"JSON breaks at {place} ({error.msg}); expected one JSON document"
        if was_cut:
            message = f"JSON ends early, at {place}; collect the file again"
        raise BadFile("truncated-json" if was_cut else "malformed-json", message, f"line {error.lineno}") from error
    return document


def lines_of(text: str) -> list[str]:
    """Lines without their ends; only LF, CR LF and CR end one, so that line n is what an editor shows as line n."""
    lines = text.replace("\r\n", "\n").replace("\r", "\n").split("\n")
    return lines[:-1] if lines[-1] == "" else lines


def number(value: JsonValue) -> float | None:
    """A number, also one written as a string with thousands commas; None for anything else (`N/A`, `-`, "", null,
    true, infinity).

    >>> number("20,000"), number(" 7 "), number("-"), number(True)
    (20000.0, 7.0, None, None)
    """
    if isinstance(value, bool) or not isinstance(value, (int, float, str)):
        return None
    try:
        found = float(value.replace(",", "").replace("_", "?") if isinstance(value, str) else value)
    except ValueError:
        return None
    return found if math.isfinite(found) else None


def whole_number(written: str) -> float | None:
    """A count printed as decimal digits; None for anything else.

    >>> whole_number(" 88123"), whole_number("88x"), whole_number("-1")
    (88123.0, None, None)
    """
    digits = written.strip()
    return float(digits) if digits.isdecimal() and digits.isascii() and len(digits) <= _LONGEST_COUNT else None


def mapping(value: JsonValue) -> dict[str, JsonValue]:
    """The value as a JSON object; empty where it is anything else (a key that a device left out)."""
    return value if isinstance(value, dict) else {}


def pointer(*keys: str | int) -> str:
    """The JSON pointer (RFC 6901) of a key path.

    >>> pointer("interfaces", "Ethernet1/1", "channels")
    '/interfaces/Ethernet1~11/channels'
    """
    return "".join("/" + str(key).replace("~", "~0").replace("/", "~1") for key in keys)


_MAC = re.compile(r"[0-9a-fA-F]{4}\.[0-9a-fA-F]{4}\.[0-9a-fA-F]{4}|(?:[0-9a-fA-F]{2}[:-]){5}[0-9a-fA-F]{2}")


def port_name(written: str) -> str:
    """A port as its owner names it: quotes stripped, a MAC in any spelling as lower-case `aa:bb:cc:dd:ee:ff`, else
    unchanged.

    >>> port_name("0800.274F.332d"), port_name('"Ethernet1"')
    ('08:00:27:4f:33:2d', 'Ethernet1')
    """
    written = written.strip().strip('"')
    if not _MAC.fullmatch(written):
        return written
    digits = re.sub(r"[.:-]", "", written).lower()
    return ":".join(digits[i : i + 2] for i in range(0, 12, 2))


def rdma_port(rdma_device: str, port: str) -> str:
    """The canonical name of a port of an RDMA device.

    >>> rdma_port("mlx5_0", "1"), rdma_port("mlx5_0", "2")
    ('mlx5_0', 'mlx5_0/2')
    """
    return rdma_device if port == "1" else f"{rdma_device}/{port}"
