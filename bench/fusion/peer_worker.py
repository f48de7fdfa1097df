"""The process that asks TorchInductor: `python -m bench.fusion.peer_worker`, started by `bench/fusion/suite.py`.

It reads its orders, one JSON object, from standard input: the names of programs, and a folder for what it builds where
the GPU must be pretended (null where there is one). It writes one JSON object a program to the file descriptor
`channel`.
"""

from __future__ import annotations

import json
import os
import sys
import warnings
from pathlib import Path
from typing import Any


def main() -> None:
    orders = json.loads(sys.stdin.readline())
    from bench.fusion import pretended_gpu

    if orders["folder"] is not None:
        pretended_gpu.prepare(Path(orders["folder"]))
        pretended_gpu.install()
    warnings.simplefilter("ignore")
    from bench.fusion.peer import count_peer
    from bench.fusion.table import PROGRAMS

    with os.fdopen(orders["channel"], "w", buffering=1) as channel:
        for name in orders["programs"]:
            try:
                answer: dict[str, Any] = count_peer(PROGRAMS[name]).as_dict()
            except Exception as error:  # what the peer cannot do is a finding
                answer = {"error": f"{type(error).__name__}: {str(error).splitlines()[0]}"}
            channel.write(json.dumps({"program": name, **answer}) + "\n")
    # Threads of autograd that were started for the pretended device cannot be ended.
    os._exit(0)


if __name__ == "__main__":
    main()
