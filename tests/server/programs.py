"""Small programs that stand in the compiler's place while the service is tested.

`explore` runs the snippet itself, as the compiler does, and makes a report of three stages out of what it leaves. A
stage that the snippet names as `stall` does not end.
"""

from __future__ import annotations

import contextlib
import io
import time
import traceback
from collections.abc import Callable
from typing import Any

from compiler.options import Options
from compiler.report import Error, Report, Stage, Summary


def explore(source: str, options: Options, on_stage: Callable[[Report], None] | None = None, **_: object) -> Report:
    report = Report(source=source)
    namespace: dict[str, Any] = {"__name__": "__main__", "options": options}
    output = io.StringIO()
    for name in ("capture", "run", "compare"):
        started = time.perf_counter()
        if namespace.get("stall") == name:
            time.sleep(600)
        if name == "run":
            try:
                with contextlib.redirect_stdout(output):
                    exec(compile(source, "<snippet>", "exec"), namespace)  # noqa: S102 - running it is the point
            except ZeroDivisionError as failure:
                line = traceback.extract_tb(failure.__traceback__)[-1].lineno
                error = Error(type="ZeroDivisionError", message=str(failure), line=line, stage=name)
                return report.model_copy(update={"status": "user_error", "error": error, "output": output.getvalue()})
        stage = Stage(name=name, ms=(time.perf_counter() - started) * 1000, status="done")
        report = report.model_copy(update={"stages": [*report.stages, stage], "output": output.getvalue()})
        if on_stage is not None:
            on_stage(report)
    verdict = str(namespace.get("verdict", ""))
    return report.model_copy(update={"status": "ok", "summary": Summary(verdict=verdict, kernels=1)})


def fail(source: str, *_: object, **__: object) -> Report:
    raise RuntimeError("a defect of the compiler")
