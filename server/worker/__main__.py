"""`python -m server.worker`: what `fusionscope worker` starts."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from server.worker import zygote_start

WRONG_USE = 2


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m server.worker", description="Runs snippets for web.")
    parser.add_argument("--socket", type=Path, help="Unix socket to listen at.")
    parser.add_argument(
        "--end-with-stdin", action="store_true", help="End when standard input ends: when whoever started it has died."
    )
    arguments = parser.parse_args()
    zygote = zygote_start.start("torch")
    from server.settings import WorkerSettings, WrongSettings
    from server.worker.program import run

    try:
        settings = WorkerSettings.load(socket=arguments.socket)
    except WrongSettings as wrong:
        print(wrong, file=sys.stderr)
        return WRONG_USE
    return run(settings, ends_with_stdin=arguments.end_with_stdin, zygote=zygote)


if __name__ == "__main__":
    raise SystemExit(main())
