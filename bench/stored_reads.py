"""How fast web answers with a stored exploration: requests a second of one core, and the latency of one request at a time.

    python -m bench.stored_reads [--seconds 5] [--report FILE] [--gzip]

Web runs as a program of its own (uvicorn, one process) with a database in a temporary folder and no worker; this process
asks it over loopback. The report is the page's example unless another file is named. Prints JSON.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from compiler.options import Options
from compiler.report import Report
from server.database.compressed import body_of
from server.database.engine import Database
from server.database.reports import Finished, write
from server.wire.parts import split

ROOT = Path(__file__).resolve().parents[1]
ID = "0123456789abcdef0123"
CONNECTIONS = 8
_SERVE = """
import socket, sys, uvicorn
from pathlib import Path
from server.app import create_app
from server.settings import Settings
settings = Settings.load(data=Path(sys.argv[1]), log_format="json")
config = uvicorn.Config(create_app(settings), log_level="warning", log_config=None, access_log=False)
uvicorn.Server(config).run(sockets=[socket.socket(fileno=int(sys.argv[2]))])
"""


async def store(folder: Path, report: Report) -> int:
    """Stores the report as an exploration; the length of its JSON."""
    database = Database(f"sqlite+aiosqlite:///{folder / 'explorations.sqlite3'}")
    await database.open()
    body = body_of(split(report))
    finished = Finished(ID, 1, "ok", True, "bench", None, "", 9, body)
    async with database.write() as connection:
        await write(connection, finished)
    await database.close()
    return body.length


async def ask(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, request: bytes) -> None:
    """One request and its whole answer, on a connection that stays. Raises `AssertionError` for any but 200."""
    writer.write(request)
    head = await reader.readuntil(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 200"), head[:200]
    length = head.lower().partition(b"content-length: ")[2].partition(b"\r\n")[0]
    await reader.readexactly(int(length))


async def one_at_a_time(port: int, request: bytes, seconds: float) -> list[float]:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    took = []
    end = time.perf_counter() + seconds
    while time.perf_counter() < end:
        began = time.perf_counter()
        await ask(reader, writer, request)
        took.append((time.perf_counter() - began) * 1e3)
    writer.close()
    return took


async def many(port: int, request: bytes, seconds: float) -> float:
    """Requests a second with several connections at a time."""

    async def client() -> int:
        return len(await one_at_a_time(port, request, seconds))

    began = time.perf_counter()
    counts = await asyncio.gather(*(client() for _ in range(CONNECTIONS)))
    return sum(counts) / (time.perf_counter() - began)


async def measure(port: int, process: int, request: bytes, seconds: float) -> dict[str, float]:
    for _ in range(600):
        try:
            await one_at_a_time(port, request, 0.2)
            break
        except (OSError, asyncio.IncompleteReadError):
            await asyncio.sleep(0.1)
    took = sorted(await one_at_a_time(port, request, seconds))
    before = _processor_seconds(process)
    began = time.perf_counter()
    rate = await many(port, request, seconds)
    share = (_processor_seconds(process) - before) / (time.perf_counter() - began)
    return {
        "p50_ms": round(statistics.median(took), 3),
        "p99_ms": round(took[int(len(took) * 0.99)], 3),
        "requests_a_second": round(rate),
        "cores_of_web": round(share, 2),
        "requests_a_second_of_one_core": round(rate / share),
    }


def _processor_seconds(process: int) -> float:
    fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=5.0, help="How long each of the two parts takes.")
    parser.add_argument("--report", type=Path, default=ROOT / "web" / "src" / "test" / "report.json")
    parser.add_argument("--gzip", action="store_true", help="Ask for compressed bodies, as browsers do.")
    given = parser.parse_args()
    report = Report.model_validate_json(given.report.read_bytes()).model_copy(
        update={"id": ID, "options": Options().model_dump(mode="json")}
    )
    with tempfile.TemporaryDirectory() as folder, socket.create_server(("127.0.0.1", 0)) as listener:
        length = asyncio.run(store(Path(folder), report))
        port = listener.getsockname()[1]
        command = [sys.executable, "-c", _SERVE, folder, str(listener.fileno())]
        web = subprocess.Popen(command, cwd=ROOT, pass_fds=[listener.fileno()])
        encoding = b"Accept-Encoding: gzip\r\n" if given.gzip else b""
        request = b"GET /api/v1/explorations/%s HTTP/1.1\r\nHost: 127.0.0.1\r\n%s\r\n" % (ID.encode(), encoding)
        try:
            measured = asyncio.run(measure(port, web.pid, request, given.seconds))
        finally:
            web.terminate()
            web.wait()
    print(json.dumps({"report_bytes": length, **measured}, indent=2))


if __name__ == "__main__":
    main()
