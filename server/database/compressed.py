"""A report's body, compressed once and put together many times.

A piece is raw deflate (RFC 1951) that ends on a full flush: it ends on a byte, and nothing after it refers to anything
in it. Pieces in a row, an empty last block behind them, and gzip's header and trailer (RFC 1952) around make a valid
gzip file. So a part that many reports share is stored once, and reading a report compresses nothing.
"""

from __future__ import annotations

import hashlib
import struct
import zlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from server.wire.parts import in_order

SHARED_BYTES = 2048
"""Parts from this length on are stored under their hash; what is shorter stays with its report."""

LEVEL = 6
_HEADER = b"\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\xff"
_LAST_BLOCK = b"\x03\x00"
GZIP_WINDOW = 31


@dataclass(frozen=True)
class Piece:
    """`content` is the SHA-256 of what it holds where it may be shared, otherwise None."""

    data: bytes
    content: bytes | None


@dataclass(frozen=True)
class Body:
    """A report's JSON in pieces, with what gzip and HTTP want to know of the whole."""

    pieces: tuple[Piece, ...]
    tag: str
    length: int
    checksum: int


def compressed(data: bytes) -> bytes:
    compressor = zlib.compressobj(LEVEL, zlib.DEFLATED, -zlib.MAX_WBITS)
    return compressor.compress(data) + compressor.flush(zlib.Z_FULL_FLUSH)


def body_of(parts: Mapping[str, bytes]) -> Body:
    """The body that `server.wire.parts.join` makes of `parts`, in pieces. Slow for a large report: use a thread."""
    return _body(in_order(parts))


def body_of_text(body: bytes) -> Body:
    """The same of a body whose parts are not known: it is one piece."""
    return _body([(b"", body)])


def _body(texts: Iterable[tuple[bytes, bytes]]) -> Body:
    digest, length, checksum = hashlib.sha256(), 0, 0
    pieces: list[Piece] = []
    run = bytearray()
    for before, value in texts:
        for text in (before, value):
            digest.update(text)
            length += len(text)
            checksum = zlib.crc32(text, checksum)
        run += before
        if len(value) < SHARED_BYTES:
            run += value
            continue
        if run:
            pieces.append(Piece(compressed(bytes(run)), None))
            run.clear()
        pieces.append(Piece(compressed(value), hashlib.sha256(value).digest()))
    if run:
        pieces.append(Piece(compressed(bytes(run)), None))
    return Body(tuple(pieces), digest.hexdigest()[:32], length, checksum)


def as_gzip(pieces: Iterable[bytes], checksum: int, length: int) -> bytes:
    """The gzip file that `pieces` are the content of."""
    return b"".join((_HEADER, *pieces, _LAST_BLOCK, struct.pack("<II", checksum, length & 0xFFFFFFFF)))


def inflated(gzipped: bytes) -> bytes:
    """The body itself. Raises `zlib.error` where the file is damaged."""
    return zlib.decompress(gzipped, GZIP_WINDOW)
