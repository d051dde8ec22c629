"""Opens a bundle: a folder, a tar (plain or compressed) or a zip, with archives and compressed files inside, without
unpacking to disk.

A file's path names every container on the way: `hosts/gpu-worker-042.tar.gz/gpu-worker-042/ethtool_-i/ens1.txt`.
Limits guard against archive bombs; links and paths that leave the bundle are refused; a cut archive gives what it
still holds. `truth.json` (the answer, for scoring) is never opened, hashed or listed.
"""

from __future__ import annotations

import hashlib
import io
import tarfile
import zipfile
import zlib
from collections import OrderedDict
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from ..engine.errors import UnreadableInput
from ..engine.facts import IssueLevel, ReadIssue
from .compression import TooLarge, decompressed, read_up_to

Members = dict[str, Callable[[], bytes]]

_ZIP_MAGIC = b"PK\x03\x04"
_TAR_MAGIC = slice(257, 262)  # "ustar", POSIX.1-1988 header
_IGNORED = ("truth.json", ".DS_Store")
_READ_ERRORS = (OSError, EOFError, RuntimeError, NotImplementedError, zipfile.BadZipFile, zlib.error, TooLarge)
_OPEN_CONTAINERS = 8  # judgement: the excerpt of one host's file is followed by others of the same host


@dataclass(frozen=True, slots=True)
class Limits:
    """Sizes in bytes after decompression (judgement: a 4,096-GPU half hour is some 2 GiB of text, its largest file
    some 300 MB)."""

    file_bytes: int = 1 << 30
    bundle_bytes: int = 16 << 30
    files: int = 1_000_000
    depth: int = 4


@dataclass(frozen=True, slots=True)
class StoredFile:
    """One file: decompressed `content`, and the digest of the file as it lies in the bundle. `problem`: why it is cut
    or empty-handed."""

    path: str
    content: bytes
    sha256: str
    problem: ReadIssue | None = None


class Bundle:
    """The files of a bundle in path order, and any one of them again by its path. `issues` receives what was refused
    on the way."""

    def __init__(self, members: Members, limits: Limits, issues: list[ReadIssue]) -> None:
        self._members = members
        self._limits = limits
        self._containers: OrderedDict[str, Members] = OrderedDict()
        self.issues = issues

    @classmethod
    def open(cls, path: Path, limits: Limits | None = None) -> Bundle:
        """The bundle at `path`. Raises UnreadableInput if it does not exist, is no folder or archive, or holds no
        file."""
        limits = limits or Limits()
        issues: list[ReadIssue] = []
        if path.is_dir():
            members = _folder(path, issues)
        elif path.is_file():
            try:
                content, problem = decompressed(path.read_bytes(), limits.bundle_bytes)
            except TooLarge as error:
                raise UnreadableInput(
                    f"{path} unpacks to more than {limits.bundle_bytes:,} bytes.", "Unpack it and give the folder."
                ) from error
            opened = _opened(content, "", limits, issues)
            if opened is None:
                raise UnreadableInput(
                    f"{path} is neither a folder nor a tar or zip archive{f' ({problem})' if problem else ''}.",
                    "Give the bundle's folder or archive; to read one file use `causeline adapters try FILE`.",
                )
            members = opened
            if problem:
                issues.append(_cut(path.name, problem))
        else:
            raise UnreadableInput(
                f"{path} does not exist.", "Give the path of a bundle: a folder, .tar(.gz, .xz, .zst) or .zip."
            )
        if not members:
            raise UnreadableInput(f"{path} holds no file.", "Check that the collection finished and was copied whole.")
        return cls(_unwrapped(members, path), limits, issues)

    @classmethod
    def of_file(cls, path: Path) -> Bundle:
        """A bundle of one file. Raises UnreadableInput if there is no such file."""
        if not path.is_file():
            raise UnreadableInput(f"{path} is not a file.", "Give the path of one file of telemetry.")
        return cls({path.name: path.read_bytes}, Limits(), [])

    def files(self) -> Iterator[StoredFile]:
        """Every file once, in path order, the members of an inner archive in its place."""
        budget = _Budget(self._limits.bundle_bytes, self._limits.files)
        for name in _in_path_order(self._members):
            yield from self._expanded(name, self._members[name], budget, depth=1)

    def content(self, path: str) -> bytes | None:
        """One file's decompressed content by its path in the bundle; None if there is none, or it cannot be read."""
        members, inside, walked = self._members, path, ""
        try:
            while (outer := next((name for name in _leading_paths(inside) if name in members), None)) != inside:
                if outer is None:
                    return None
                walked, inside = f"{walked}/{outer}", inside[len(outer) + 1 :]
                members = self._container(walked, members[outer])
            return decompressed(members[inside](), self._limits.file_bytes)[0]
        except _READ_ERRORS:
            return None

    def _container(self, key: str, read: Callable[[], bytes]) -> Members:
        if key not in self._containers:
            content, _ = decompressed(read(), self._limits.file_bytes)
            self._containers[key] = _opened(content, key, self._limits, []) or {}
            if len(self._containers) > _OPEN_CONTAINERS:
                self._containers.popitem(last=False)
        self._containers.move_to_end(key)
        return self._containers[key]

    def _expanded(self, path: str, read: Callable[[], bytes], budget: _Budget, depth: int) -> Iterator[StoredFile]:
        allowed = min(self._limits.file_bytes, budget.bytes_left)
        try:
            stored = read()
            content, problem = decompressed(stored, allowed)
            budget.spend(len(content))
        except TooLarge:
            message = f"unpacked it exceeds {allowed:,} bytes, or the bundle its limit; split it or cut the window"
            yield _lost(path, "too-large", message)
            return
        except _READ_ERRORS as error:
            yield _lost(path, "unreadable-file", f"it cannot be read ({error}); check it and collect it again")
            return
        inner = _opened(content, path, self._limits, self.issues) if depth < self._limits.depth else None
        if inner is None:
            yield StoredFile(
                path, content, hashlib.sha256(stored).hexdigest(), _cut(path, problem) if problem else None
            )
            return
        if problem:
            self.issues.append(_cut(path, problem))
        for name in _in_path_order(inner):
            yield from self._expanded(f"{path}/{name}", inner[name], budget, depth + 1)


@dataclass
class _Budget:
    """What a bundle may still unpack to."""

    bytes_left: int
    files_left: int

    def spend(self, size: int) -> None:
        """Raises TooLarge where nothing is left."""
        if size > self.bytes_left or self.files_left < 1:
            raise TooLarge
        self.bytes_left -= size
        self.files_left -= 1


def _folder(root: Path, issues: list[ReadIssue]) -> Members:
    members: Members = {}
    for path in root.rglob("*"):
        name = _printable(path.relative_to(root).as_posix())
        if path.is_symlink():
            issues.append(_link(name))
        elif path.is_file() and not _is_ignored(name):
            members[name] = path.read_bytes
        elif path.exists() and not path.is_dir() and not path.is_file():
            issues.append(_link(name))
    return members


def _opened(content: bytes, path: str, limits: Limits, issues: list[ReadIssue]) -> Members | None:
    """The members of an archive; None if the content is none."""
    if content[_TAR_MAGIC] == b"ustar":
        return _tar(content, path, issues)
    if content.startswith(_ZIP_MAGIC):
        try:
            return _zip(content, path, limits, issues)
        except (zipfile.BadZipFile, NotImplementedError):
            return None
    return None


def _tar(content: bytes, path: str, issues: list[ReadIssue]) -> Members:
    members: Members = {}
    try:
        with tarfile.open(fileobj=io.BytesIO(content), mode="r:") as tar:
            for entry in tar:
                if entry.isdir():
                    continue
                name = _accepted(entry.name, not entry.isreg() or entry.issparse(), path, issues)
                if name is not None:
                    members[name] = partial(_tar_member, content, entry.offset_data, entry.size)
    except (tarfile.TarError, EOFError) as error:
        issues.append(_cut(path, str(error)))
    return members


def _tar_member(content: bytes, offset: int, size: int) -> bytes:
    if offset + size > len(content):
        raise EOFError("the archive ends inside it")
    return content[offset : offset + size]


def _zip(content: bytes, path: str, limits: Limits, issues: list[ReadIssue]) -> Members:
    members: Members = {}
    archive = zipfile.ZipFile(io.BytesIO(content))
    for entry in archive.infolist():
        if entry.is_dir():
            continue
        is_link = (entry.external_attr >> 16) & 0o170000 == 0o120000  # S_IFLNK, as Info-ZIP keeps the Unix mode
        name = _accepted(entry.filename, is_link, path, issues)
        if name is not None:
            members[name] = partial(_zip_member, archive, entry, limits.file_bytes)
    return members


def _zip_member(archive: zipfile.ZipFile, entry: zipfile.ZipInfo, limit: int) -> bytes:
    with archive.open(entry) as stream:
        content, problem = read_up_to(stream, limit)
    if problem:
        raise OSError(problem)
    return content


def _accepted(name: str, is_special: bool, archive: str, issues: list[ReadIssue]) -> str | None:
    """The member's path without `./`, or None with an issue (no issue for files that are ignored everywhere)."""
    parts = [part for part in name.replace("\\", "/").split("/") if part not in ("", ".")]
    if name.startswith(("/", "\\")) or ".." in parts or not parts or "\x00" in name:
        issues.append(_issue(archive, "unsafe-path", f"the member {name!r} points out of the bundle and was not read"))
        return None
    path = _printable("/".join(parts))
    if is_special:
        issues.append(_link(f"{archive}/{path}".lstrip("/")))
        return None
    return None if _is_ignored(path) else path


def _unwrapped(members: Members, path: Path) -> Members:
    """The members without the one folder that wraps them all (`inc-4127/` in inc-4127.tar.gz), if there is one."""
    firsts = {name.partition("/")[0] for name in members}
    if len(firsts) != 1 or any("/" not in name for name in members):
        return members
    first = firsts.pop()
    if f"{first}/incident.yaml" not in members and first != path.name.partition(".")[0]:
        return members
    return {name[len(first) + 1 :]: read for name, read in members.items()}


def _in_path_order(members: Members) -> list[str]:
    return sorted(members, key=lambda name: name.split("/"))


def _leading_paths(path: str) -> Iterator[str]:
    """`a`, `a/b`, `a/b/c` of `a/b/c`."""
    parts = path.split("/")
    for end in range(1, len(parts) + 1):
        yield "/".join(parts[:end])


def _is_ignored(path: str) -> bool:
    name = path.rpartition("/")[2]
    return name in _IGNORED or name.startswith("._")  # ._: resource forks that macOS puts into archives


def _printable(name: str) -> str:
    """A name whose bytes are no UTF-8 with U+FFFD in their place: others could not be written to a report."""
    return name.encode("utf-8", "surrogateescape").decode("utf-8", "replace")


def _issue(path: str, code: str, message: str, level: IssueLevel = IssueLevel.WARNING) -> ReadIssue:
    return ReadIssue(path, "", level, code, message)


def _link(path: str) -> ReadIssue:
    return _issue(
        path, "not-a-file", "it is a link or a special file and was not followed; put the file itself in the bundle"
    )


def _cut(path: str, problem: str) -> ReadIssue:
    return _issue(
        path,
        "truncated-archive",
        f"it is cut or damaged ({problem}); what could be unpacked was read, collect it again for the rest",
    )


def _lost(path: str, code: str, message: str) -> StoredFile:
    return StoredFile(path, b"", "", _issue(path, code, message, IssueLevel.ERROR))
