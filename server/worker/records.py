"""What a job's process writes on its pipe, and what it is told on another: small, bounded, and readable by both sides.

    1 byte   kind
    4 bytes  length of the content, big-endian
    content

The job's side is the snippet's own process, which can write anything. So the worker checks kind and length before it
reads on, counts every byte, and never looks into a report.
"""

from __future__ import annotations

import asyncio
import os
import struct
from typing import Final

from pydantic import BaseModel, ConfigDict

from compiler.options import Options
from server.sandbox import JobLimits

WARM: Final = b"w"
"""The process has imported, tried and confined all that it can without a job. The content is `Warm`."""
BEGUN: Final = b"b"
"""The request was read and the snippet runs next. The content is `Begun`; all before it was written by our own code."""
REPORT: Final = b"r"
"""Parts of the report that have changed (`server.wire.parts`)."""
WANTS_LEASE: Final = b"t"
"""It would like to time something on the device; it waits for one byte, `GRANTED`."""
RETURNS_LEASE: Final = b"u"

GRANTED: Final = b"g"

_HEAD = struct.Struct(">cI")
_LENGTH = struct.Struct(">I")
_EMPTY_KINDS = frozenset({WANTS_LEASE, RETURNS_LEASE})
_MOST_BYTES = {WARM: 1024, BEGUN: 256}


class RecordRefused(Exception):
    """What came is no record, or a larger one than may come."""


class Request(BaseModel):
    """What a job's process is told to do."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    source: str
    options: Options
    threads: int
    limits: JobLimits


class Warm(BaseModel):
    """How many seconds each step of a spare's preparation took."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    seconds: dict[str, float] = {}


class Begun(BaseModel):
    """What the process had used before the snippet began: no part of what the job used."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    processor_seconds: float


def write_record(descriptor: int, kind: bytes, content: bytes = b"") -> None:
    """Writes one record, and waits where the pipe is full. Raises `OSError` where nobody reads."""
    _write(descriptor, _HEAD.pack(kind, len(content)) + content)


async def read_record(reader: asyncio.StreamReader, most_bytes: int) -> tuple[bytes, bytes] | None:
    """Kind and content of the next record; None where the stream has ended, also within a record: the process died.

    Raises `RecordRefused` before it reads a content of more than `most_bytes`, and for an unknown kind.
    """
    try:
        kind, length = _HEAD.unpack(await reader.readexactly(_HEAD.size))
        if kind == REPORT:
            allowed = most_bytes
        elif kind in _MOST_BYTES:
            allowed = _MOST_BYTES[kind]
        elif kind in _EMPTY_KINDS:
            allowed = 0
        else:
            raise RecordRefused("There is no record of that kind.")
        if length > allowed:
            raise RecordRefused(f"A record of {length} bytes; at most {allowed} are allowed.")
        return kind, await reader.readexactly(length) if length else b""
    except asyncio.IncompleteReadError:
        return None


def record_bytes(content: bytes) -> int:
    """How long a record with that content is."""
    return _HEAD.size + len(content)


def request_bytes(request: Request) -> bytes:
    """What the worker writes to a job's process, once."""
    content = request.model_dump_json().encode()
    return _LENGTH.pack(len(content)) + content


def read_request(descriptor: int) -> Request:
    """Waits for the request. Raises `EOFError` where the worker has closed the pipe: there will be none."""
    (length,) = _LENGTH.unpack(_read_exactly(descriptor, _LENGTH.size))
    return Request.model_validate_json(_read_exactly(descriptor, length))


def _read_exactly(descriptor: int, count: int) -> bytes:
    found = bytearray()
    while len(found) < count:
        chunk = os.read(descriptor, count - len(found))
        if not chunk:
            raise EOFError("The worker has closed the pipe.")
        found += chunk
    return bytes(found)


def _write(descriptor: int, data: bytes) -> None:
    remaining = memoryview(data)
    while remaining:
        remaining = remaining[os.write(descriptor, remaining) :]
