"""Frames: what is written is read, and whatever is too large, cut off or no frame ends the stream, not the program."""

from __future__ import annotations

import asyncio
import struct
from pathlib import Path

import pytest

from server.wire.frames import MOST_HEADER_BYTES, FrameError, frame, read_frame, write_frame

pytestmark = pytest.mark.asyncio


def reader_of(data: bytes, is_over: bool = True) -> asyncio.StreamReader:
    reader = asyncio.StreamReader()
    reader.feed_data(data)
    if is_over:
        reader.feed_eof()
    return reader


async def test_what_is_written_is_read() -> None:
    frames = [(b"{}", b""), (b'{"a":1}', b"x" * 100_000), (b"", b"")]
    reader = reader_of(b"".join(frame(header, payload) + payload for header, payload in frames))
    for expected in frames:
        assert await read_frame(reader, 100_000) == expected
    assert await read_frame(reader, 100_000) is None


@pytest.mark.parametrize("kept", [1, 7, 8, 12, 20])
async def test_a_frame_that_the_end_cuts_off_is_an_error(kept: int) -> None:
    data = frame(b"header!", b"payload!!") + b"payload!!"
    with pytest.raises(FrameError, match="ended within"):
        await read_frame(reader_of(data[:kept]), 100)


@pytest.mark.parametrize("lengths", [(MOST_HEADER_BYTES + 1, 0), (0, 101), (2**32 - 1, 2**32 - 1)])
async def test_what_is_too_large_is_refused_before_it_is_read(lengths: tuple[int, int]) -> None:
    # The stream goes on: a reader that wanted the bytes would wait for ever.
    reader = reader_of(struct.pack(">II", *lengths), is_over=False)
    with pytest.raises(FrameError, match="at most"):
        await asyncio.wait_for(read_frame(reader, 100), 60)


async def test_a_header_that_is_too_large_is_not_written() -> None:
    with pytest.raises(FrameError, match="at most"):
        frame(b"x" * (MOST_HEADER_BYTES + 1))


async def test_a_writer_waits_for_a_slow_reader(tmp_path: Path) -> None:
    path = str(tmp_path / "socket")
    size = 8 * 1024 * 1024
    may_read, taken = asyncio.Event(), asyncio.Event()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await may_read.wait()
        for _ in range(2):
            found = await read_frame(reader, size)
            assert found is not None and len(found[1]) == size
        taken.set()
        writer.close()

    server = await asyncio.start_unix_server(serve, path)
    _, writer = await asyncio.open_unix_connection(path)
    writing = asyncio.gather(*(write_frame(writer, b"{}", bytes(size)) for _ in range(2)))
    done, _ = await asyncio.wait([writing], timeout=0.2)
    assert not done
    may_read.set()
    await asyncio.wait_for(asyncio.gather(writing, taken.wait()), 60)
    writer.close()
    server.close()
