"""Reads a bundle: every file is claimed by one adapter, or listed as unread with the reason. A bad file costs only
itself.
"""

from __future__ import annotations

import gc
import logging
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path

from ..engine.facts import Fact, FileRead, Incident, IssueLevel, Reading, ReadIssue
from .archives import Bundle, StoredFile
from .base import Adapter, BadFile, Hints, RawFile
from .excerpts import BundleExcerpts
from .manifest import NAME, Manifest, read_manifest
from .redaction import redacted
from .registry import available

_LOG = logging.getLogger(__name__)
_PROGRESS_EVERY = 500  # files (judgement: a few lines a second)


def read(path: Path, *, progress: Callable[[str], None] | None = None) -> Reading:
    """All facts of the bundle at `path` (a folder, .tar(.gz, .bz2, .xz, .zst) or .zip), in path order.

    `progress` receives a line now and then. Raises UnreadableInput if the bundle itself cannot be opened."""
    bundle = Bundle.open(path)
    content = bundle.content(NAME)
    text = None if content is None else content.decode("utf-8-sig", errors="replace")
    manifest, issues = read_manifest(text, _bundle_name(path))
    reader = _Reader(manifest, available())
    with _collector_paused():
        for count, stored in enumerate(bundle.files(), start=1):
            reader.take(stored, manifest.hints(stored.path))
            if progress and count % _PROGRESS_EVERY == 0:
                progress(f"{count:,} files read, {len(reader.facts):,} facts")
    reader.issues += [*issues, *bundle.issues]
    return reader.reading(manifest.incident, bundle)


def try_file(path: Path, hints: Hints, *, adapters: tuple[Adapter, ...] | None = None) -> Reading:
    """What the adapters make of one file (`causeline adapters try FILE`), with hints for what the content does not say.

    `adapters` None: all that are available. Raises UnreadableInput if there is no such file."""
    bundle = Bundle.of_file(path)
    manifest, _ = read_manifest(None, path.stem)
    reader = _Reader(manifest, available() if adapters is None else adapters)
    for stored in bundle.files():
        reader.take(stored, hints)
    reader.issues += bundle.issues
    return reader.reading(manifest.incident, bundle)


def _bundle_name(path: Path) -> str:
    return re.sub(r"(\.tar)?\.(gz|bz2|xz|zst|tar|tgz|zip)$", "", path.resolve().name) or path.resolve().name


@dataclass
class _Reader:
    """Collects facts, issues and the list of files, file by file."""

    manifest: Manifest
    adapters: tuple[Adapter, ...]
    facts: list[Fact] = field(default_factory=list)
    issues: list[ReadIssue] = field(default_factory=list)
    files: list[FileRead] = field(default_factory=list)

    def take(self, stored: StoredFile, hints: Hints) -> None:
        if stored.problem is not None:
            self.issues.append(stored.problem)
        if stored.path == NAME:
            self.files.append(FileRead(NAME, stored.sha256, "incident", 0))
            return
        adapter: Adapter | None = None
        before = len(self.facts)
        if stored.problem is None or stored.problem.level is not IssueLevel.ERROR:
            file = RawFile(stored.path, stored.content, stored.sha256, hints, self.manifest.clock(hints.device))
            adapter = self._claim(file)
            if adapter is not None:
                self._read(file, adapter)
        name = None if adapter is None else adapter.name
        self.files.append(FileRead(stored.path, stored.sha256, name, len(self.facts) - before))

    def _claim(self, file: RawFile) -> Adapter | None:
        if not file.content.strip():
            message = "it is empty: the command printed nothing or the copy failed; collect it again"
            self.issues.append(file.issue("empty-file", message, level=IssueLevel.ERROR))
            return None
        claims = [adapter for adapter in self.adapters if self._is_in(file, adapter)]
        if len(claims) == 1:
            return claims[0]
        if claims:
            names = " and ".join(adapter.name for adapter in claims)
            message = f"claimed by {names}, so not read; one of them recognises too much, please report it"
            self.issues.append(file.issue("two-adapters", message, level=IssueLevel.ERROR))
        elif b"\x00" in file.content[:4096]:
            message = f"{len(file.content):,} bytes that are no text; expected the text or JSON that a command prints"
            self.issues.append(file.issue("binary-file", message))
        else:
            message = f"no adapter reads this; it begins {file.head[:40]!r}"
            self.issues.append(file.issue("unclaimed-file", message, level=IssueLevel.NOTE))
        return None

    def _is_in(self, file: RawFile, adapter: Adapter) -> bool:
        try:
            return adapter.matches(file)
        except Exception as error:  # the seam around one adapter, as below
            self._crashed(file, adapter, error)
            return False

    def _read(self, file: RawFile, adapter: Adapter) -> None:
        try:
            for found in adapter.read(file):
                if isinstance(found, ReadIssue):
                    self.issues.append(found)
                else:
                    self.facts.append(found)
        except BadFile as error:
            self.issues.append(file.issue(error.code, str(error), error.record, IssueLevel.ERROR))
        except Exception as error:  # whatever an adapter trips over costs the rest of this file only
            self._crashed(file, adapter, error)
        if file.clock.assumed_zone:
            declared = self.manifest.zone_is_declared
            why = "as incident.yaml says" if declared else "set time_zone in incident.yaml if that is wrong"
            message = f"its times name no zone and were read as {file.clock.zone} ({why})"
            self.issues.append(file.issue("assumed-time-zone", message, level=IssueLevel.NOTE))

    def _crashed(self, file: RawFile, adapter: Adapter, error: Exception) -> None:
        _LOG.debug("adapter %s on %s", adapter.name, file.path, exc_info=error)
        what = f"adapter {adapter.name} failed with {type(error).__name__}: {error}"
        message = f"{what}; what it had read is kept, please report the file"
        self.issues.append(file.issue("adapter-crash", message, level=IssueLevel.ERROR))

    def reading(self, incident: Incident, bundle: Bundle) -> Reading:
        """What was read. Issues in order of file and record, secrets taken out of what they quote."""
        issues = tuple(sorted(replace(issue, message=redacted(issue.message)) for issue in self.issues))
        return Reading(incident, tuple(self.facts), issues, tuple(self.files), BundleExcerpts(bundle))


@contextmanager
def _collector_paused() -> Iterator[None]:
    """Facts hold no reference cycles: looking for some while a million are made takes a third of the time
    (measured)."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()
