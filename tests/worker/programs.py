"""Small programs that stand in the compiler's place while the worker is tested."""

from __future__ import annotations

import contextlib
import io
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any

from compiler.options import Options
from compiler.report import Report, Stage, Summary


def explore(
    source: str,
    options: Options | None = None,
    on_stage: Callable[[Report], None] | None = None,
    *,
    lease: Callable[[], AbstractContextManager[None]] | None = None,
) -> Report:
    """Runs the snippet itself, as the compiler does, and makes a report of what it leaves in `verdict`. The snippet
    finds its options as `options` and the timing lease as `lease`."""
    report = Report(source=source, stages=[Stage(name="capture", ms=1.0, status="done")])
    if on_stage is not None:
        on_stage(report)
    namespace: dict[str, Any] = {"__name__": "__main__", "options": options, "lease": lease or contextlib.nullcontext}
    output = io.StringIO()
    with contextlib.redirect_stdout(output):
        exec(compile(source, "<snippet>", "exec"), namespace)  # noqa: S102 - running it is the point
    stages = [*report.stages, Stage(name="run", ms=1.0, status="done")]
    summary = Summary(verdict=str(namespace.get("verdict", "")), kernels=1)
    return report.model_copy(update={"status": "ok", "stages": stages, "output": output.getvalue(), "summary": summary})


def fail(source: str, *arguments: object, **named: object) -> Report:
    raise RuntimeError("a defect of the compiler")
