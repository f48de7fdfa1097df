"""Frames: how one message stands on a stream of bytes.

    4 bytes  length of the header, big-endian
    4 bytes  length of the payload, big-endian
    header   JSON, at most `MOST_HEADER_BYTES`
    payload  bytes that are passed on without being read, at most what the reader allows

Both lengths are checked before anything is read, so no peer can make the other one hold more than it agreed to.
"""

from __future__ import annotations

import asyncio
import struct

MOST_HEADER_BYTES = 1024 * 1024
"""Far more than any message needs: a snippet of 64 KiB with every character escaped takes 384 KiB."""

_LENGTHS = struct.Struct(">II")


class FrameError(Exception):
    """What came is no frame, or a larger one than is allowed: the stream cannot be read any further."""


def frame(header: bytes, payload: bytes = b"") -> bytes:
    """The first three fields of a frame; the payload follows. Raises `FrameError` for a header that is too large."""
    if len(header) > MOST_HEADER_BYTES:
        raise FrameError(f"A header of {len(header)} bytes; at most {MOST_HEADER_BYTES} are allowed.")
    return _LENGTHS.pack(len(header), len(payload)) + header


async def read_frame(reader: asyncio.StreamReader, most_payload_bytes: int) -> tuple[bytes, bytes] | None:
    """Header and payload of the next frame; None where the stream ended before one began.

    Raises `FrameError` for a frame that is too large, before it is read, and for one that the stream's end cuts off.
    """
    try:
        lengths = await reader.readexactly(_LENGTHS.size)
    except asyncio.IncompleteReadError as end:
        if not end.partial:
            return None
        raise FrameError("The stream ended within the lengths of a frame.") from None
    header_bytes, payload_bytes = _LENGTHS.unpack(lengths)
    if header_bytes > MOST_HEADER_BYTES:
        raise FrameError(f"A header of {header_bytes} bytes; at most {MOST_HEADER_BYTES} are allowed.")
    if payload_bytes > most_payload_bytes:
        raise FrameError(f"A payload of {payload_bytes} bytes; at most {most_payload_bytes} are allowed.")
    try:
        header = await reader.readexactly(header_bytes)
        return header, await reader.readexactly(payload_bytes)
    except asyncio.IncompleteReadError:
        raise FrameError("The stream ended within a frame.") from None


async def write_frame(writer: asyncio.StreamWriter, header: bytes, payload: bytes = b"") -> None:
    """Writes one frame, and waits while the peer is slower than we are.

    Several tasks may write at the same time: a frame is handed over whole. Raises `ConnectionError` where the peer
    is gone.
    """
    # Not `writelines`: in Python 3.12.0 to 3.12.8, 3.13.0 and 3.13.1 it knows no slow peer (CVE-2024-12254).
    writer.write(frame(header, payload))
    if payload:
        writer.write(payload)
    await writer.drain()
