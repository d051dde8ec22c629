"""Reads a record of a bundle again to show it beside a finding: short, on one line, secrets taken out.

A record is `line 12`, `lines 3-9` or a JSON pointer. Words after the line number say what in it is meant (`line 12
Ethernet9 TC3 ecn-marked-pkts`): a line of telemetry is longer than what fits, so the excerpt shows the places where
they occur one after the other.
"""

from __future__ import annotations

import re
from functools import lru_cache

import orjson

from .archives import Bundle
from .base import BadFile, JsonValue, lines_of, parse_json
from .redaction import MARK, redacted

LONGEST = 300  # characters (judgement: two lines of a report)
_KEPT_FILES = 8  # judgement: a report goes back and forth between a few files
_LONGEST_KEY_LINES = 200  # lines of a PEM block: RSA-16384 has 193 of 64 characters
_LINES = re.compile(r"lines? (\d+)(?:-(\d+))?(?: (.*))?")


class BundleExcerpts:
    """Excerpts of one bundle (see `engine.facts.Excerpts`)."""

    def __init__(self, bundle: Bundle) -> None:
        self._bundle = bundle
        self._lines_of = lru_cache(maxsize=_KEPT_FILES)(self._read_lines)

    def __call__(self, source: str, record: str) -> str:
        """At most 300 characters of the record; "" if the file or the record is not there (any more)."""
        lines = self._lines_of(source)
        match = _LINES.fullmatch(record)
        if match is not None:
            return _of_lines(lines, int(match[1]), int(match[2] or match[1]), match[3] or "")
        if not record.startswith("/"):
            return _of_lines(lines, 1, len(lines), "")
        try:
            found = _resolved(parse_json("\n".join(lines)), record)
        except BadFile:
            return ""
        if found is None:
            return ""
        shown = found if isinstance(found, str) else orjson.dumps(found).decode()
        return _shortened(redacted(f"{record.rpartition('/')[2].replace('~1', '/').replace('~0', '~')}: {shown}"), "")

    def _read_lines(self, source: str) -> list[str]:
        content = self._bundle.content(source)
        if content is None or b"\x00" in content[:4096]:  # a binary file (Parquet) has no lines to show
            return []
        return lines_of(content.decode("utf-8-sig", errors="replace"))


def _of_lines(lines: list[str], first: int, last: int, needle: str) -> str:
    shown: list[str] = []
    in_key = False
    # A line from the middle of a key does not look like one: the lines before it tell whether a key block is open.
    for number, line in enumerate(
        lines[max(0, first - 1 - _LONGEST_KEY_LINES) : last], start=max(1, first - _LONGEST_KEY_LINES)
    ):
        in_key = (in_key or "-----BEGIN " in line) and "-----END " not in line
        if number >= first:
            shown.append(MARK if in_key else line)
    return _shortened(redacted("\n".join(shown)), needle)


def _resolved(document: JsonValue, record: str) -> JsonValue:
    for key in record.split("/")[1:]:
        key = key.replace("~1", "/").replace("~0", "~")
        if isinstance(document, dict):
            document = document.get(key)
        elif isinstance(document, list) and key.isdigit() and int(key) < len(document):
            document = document[int(key)]
        elif key:
            return None
    return document


def _shortened(text: str, words: str) -> str:
    """The text on one line and at most `LONGEST` long: around the words where they occur one after the other, else its
    beginning. What is left out shows as an ellipsis."""
    text = " ".join(text.split())
    if len(text) <= LONGEST:
        return text
    starts: list[int] = []
    after = 0
    for word in words.split():
        found = re.compile(rf"(?<![\w-]){re.escape(word)}(?![\w-])").search(text, after)
        if found is not None:
            starts.append(found.start())
            after = found.end()
    room = (LONGEST - len(starts) - 2) // max(len(starts), 1)
    shown, end = "", 0
    for start in starts or [0]:
        begin = max(end, min(start - room // 4, len(text) - room))
        shown += ("…" if begin > end else "") + text[begin : begin + room]
        end = begin + room
    return shown + ("…" if end < len(text) else "")
