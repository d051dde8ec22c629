"""Undoes one layer of compression (gzip, bzip2, xz, zstd), told by magic bytes, never by the name. A cut stream gives
what it still holds.
"""

from __future__ import annotations

import bz2
import io
import lzma
import zlib
from typing import IO

import zstandard

_GZIP, _BZIP2, _XZ, _ZSTD = b"\x1f\x8b", b"BZh", b"\xfd7zXZ\x00", b"\x28\xb5\x2f\xfd"
_CHUNK_BYTES = 1 << 20
_ZSTD_WINDOW_BYTES = 1 << 27  # what `zstd --long` writes at most without being asked for more (zstd manual)


class TooLarge(Exception):
    """Unpacked, the content exceeds the limit: an archive bomb, or more than one file should hold."""


def decompressed(stored: bytes, limit: int) -> tuple[bytes, str]:
    """The content, and what went wrong ("" if nothing). Raises TooLarge where the content exceeds `limit` bytes."""
    if stored.startswith(_GZIP):
        return _inflated(stored, limit)
    if stored.startswith(_BZIP2):
        return read_up_to(bz2.BZ2File(io.BytesIO(stored)), limit)
    if stored.startswith(_XZ):
        return read_up_to(lzma.LZMAFile(io.BytesIO(stored)), limit)
    if stored.startswith(_ZSTD):
        decoder = zstandard.ZstdDecompressor(max_window_size=_ZSTD_WINDOW_BYTES)
        return read_up_to(decoder.stream_reader(io.BytesIO(stored), read_across_frames=True), limit)
    if len(stored) > limit:
        raise TooLarge
    return stored, ""


def read_up_to(stream: IO[bytes], limit: int) -> tuple[bytes, str]:
    """All of a decoding stream, with the meaning of `decompressed`."""
    chunks: list[bytes] = []
    size = 0
    problem = ""
    try:
        while chunk := stream.read(min(_CHUNK_BYTES, limit - size + 1)):
            size += len(chunk)
            if size > limit:
                raise TooLarge
            chunks.append(chunk)
    except (EOFError, OSError, lzma.LZMAError, zlib.error, zstandard.ZstdError) as error:
        problem = str(error) or type(error).__name__
    return b"".join(chunks), problem


def _inflated(stored: bytes, limit: int) -> tuple[bytes, str]:
    # gzip.GzipFile withholds the tail of a cut stream; zlib hands out all that can still be decoded.
    chunks: list[bytes] = []
    size = 0
    while stored.startswith(_GZIP):
        decoder = zlib.decompressobj(wbits=31)
        try:
            chunk = decoder.decompress(stored, limit - size + 1)
        except zlib.error as error:
            return b"".join(chunks), str(error)
        chunks.append(chunk)
        size += len(chunk)
        if size > limit:
            raise TooLarge
        if not decoder.eof:
            return b"".join(chunks), "the gzip stream ends early"
        stored = decoder.unused_data
    return b"".join(chunks), ""
