"""The worker with a small program in the compiler's place: `python -m tests.server.run_worker PROGRAM --socket ...`,
where PROGRAM is a `Program` as JSON. For tests."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from server.settings import WorkerSettings
from server.worker.channel import Program
from server.worker.program import run

PLAIN = Program(explore="tests.server.programs:explore", imports=(), later=(), warm_source="verdict = 'warm'")


def command(program: Program = PLAIN) -> tuple[str, ...]:
    """What starts it."""
    return (sys.executable, "-P", "-m", "tests.server.run_worker", program.model_dump_json())


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("program")
    parser.add_argument("--socket", type=Path)
    parser.add_argument("--end-with-stdin", action="store_true")
    given = parser.parse_args()
    chosen = Program.model_validate_json(given.program)
    raise SystemExit(run(WorkerSettings.load(socket=given.socket), chosen, ends_with_stdin=given.end_with_stdin))
