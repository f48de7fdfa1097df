"""From what a worker sent, and how its job ended, to the report that people see.

The snippet's process wrote the report, so it is checked like any input from outside: strict JSON of the agreed
shape, no infinities. What the service knows better (id, source, options, versions) is put in place of what the report
claims, and how the job ended was seen from outside of it.
"""

from __future__ import annotations

import json
import re
import signal
from typing import Any, NoReturn, get_args

from pydantic import ValidationError

from compiler.budget import TIME_LIMIT
from compiler.options import Options, StageName
from compiler.report import Environment, Error, Report
from server.identity import WorkerIdentity, compiler_version
from server.worker.messages import Ended

_SNIPPET_LINE = re.compile(r'File "(?:snippet\.py|<snippet>)", line (\d+)')
_OUTPUT_SHOWN = 16 * 1024


class ReportRejected(Exception):
    """What came through the report pipe is not a report."""


def parse_report(raw: bytes) -> Report:
    """The report in `raw`, or `ReportRejected` with the reason."""
    try:
        text = raw.decode("utf-8")
        json.loads(text, parse_constant=_refuse_number, parse_float=_finite)
        return Report.model_validate_json(raw)
    except (ValidationError, ValueError, RecursionError) as failure:
        raise ReportRejected(f"{type(failure).__name__}: {str(failure)[:500]}") from None


def _refuse_number(name: str) -> NoReturn:
    raise ValueError(f"{name} is no JSON number")


def _finite(text: str) -> float:
    value = float(text)
    if value in (float("inf"), float("-inf")):
        raise ValueError(f"the number {text[:40]} is too large")
    return value


def empty_report(id: str, source: str, options: Options, worker: WorkerIdentity, based_on: str | None = None) -> Report:
    """The report of an exploration that has not begun."""
    report = Report(source=source)
    return stamp(report, id, source, options, worker, based_on)


def stamp(
    report: Report, id: str, source: str, options: Options, worker: WorkerIdentity, based_on: str | None = None
) -> Report:
    """Puts what the service knows itself in place of what the report says of it."""
    known: dict[str, Any] = {"python": worker.python, "torch": worker.torch, "triton": worker.triton}
    if not report.environment.device:
        known |= {"device": options.device or worker.device, "device_name": worker.device_name}
        known |= {"target": options.target, "seed": options.seed}
    if not report.environment.compiler:
        known["compiler"] = compiler_version()
    return report.model_copy(
        update={
            "id": id,
            "source": source,
            "based_on": based_on,
            "options": options.model_dump(mode="json"),
            "environment": Environment.model_validate(report.environment.model_dump() | known),
        }
    )


def conclude(latest: Report, ended: Ended, wall_limit: float, rejected: str | None = None) -> Report:
    """The final report: `latest` as it is when the job ended well, otherwise with the status and error that say how."""
    if ended.ending == "exited" and ended.exit_code == 0 and latest.status != "running" and rejected is None:
        return _tell_lack_of_memory(latest)
    status, error = _explain(ended, wall_limit, rejected)
    if status == "timeout":
        error = error.model_copy(update={"message": f"{error.message} {_what_there_is(latest)}"})
    return latest.model_copy(update={"status": status, "error": error})


def _what_there_is(latest: Report) -> str:
    """Which stages the report has, and which it lacks."""
    ended = [stage.name for stage in latest.stages]
    if not ended:
        return "No stage had ended: the snippet itself was still running."
    missing = [name for name in get_args(StageName) if name not in ended]
    told = f"What follows is of the stages that had ended: {', '.join(ended)}."
    return f"{told} Missing: {', '.join(missing)}." if missing else told


def _tell_lack_of_memory(report: Report) -> Report:
    """To the compiler, running out of memory is an error of the snippet like any other; but it depends on the limit
    that the service sets, so it has a status of its own, with which it is not kept as the snippet's result."""
    error = report.error
    if error is None or report.status not in ("user_error", "crashed"):
        return report
    if error.type not in ("MemoryError", "OutOfMemoryError") and "can't allocate memory" not in error.message:
        return report
    hint = error.hint or "Use smaller shapes, or raise the setting `memory_gib` of the service."
    return report.model_copy(update={"status": "out_of_memory", "error": error.model_copy(update={"hint": hint})})


def _explain(ended: Ended, wall_limit: float, rejected: str | None) -> tuple[str, Error]:
    line = _last_snippet_line(ended.last_output)
    if ended.ending == "cancelled":
        return "cancelled", Error(type="Cancelled", message="The exploration was cancelled.", hint="Run it again.")
    if ended.ending == "time_limit" or ended.signal == signal.SIGXCPU:
        return "timeout", Error(
            type=TIME_LIMIT,
            message=f"The exploration ran for longer than {wall_limit:g} seconds and was stopped.",
            hint="Use smaller shapes, fewer calls, or switch timing off; look for a loop that never ends; or raise the "
            "setting `wall_seconds` of the service.",
            line=line,
        )
    if ended.ending == "output_limit":
        return "crashed", Error(
            type="OutputLimit",
            message="The snippet's process wrote more output than is allowed and was stopped.",
            hint="Print less, or print only once instead of in a loop.",
        )
    if ended.ending == "report_limit":
        return "crashed", Error(
            type="ReportLimit",
            message="The report grew larger than is allowed, and the exploration was stopped.",
            hint="Explore a smaller part of the program.",
        )
    if ended.ending == "worker_lost":
        return "crashed", Error(
            type="WorkerLost",
            message="The worker that ran the exploration ended unexpectedly; a new one has been started.",
            hint="Run it again; if it happens again, the snippet itself may be what ends the worker.",
        )
    return _explain_exit(ended, line, rejected)


def _explain_exit(ended: Ended, line: int | None, rejected: str | None) -> tuple[str, Error]:
    # The list of loaded extension modules, with which a crash ends, says nothing about the snippet.
    last_words = _printable(ended.last_output).partition("\nExtension modules:")[0][-_OUTPUT_SHOWN:].strip() or None
    ran_out = "bad_alloc" in ended.last_output or "Cannot allocate memory" in ended.last_output
    if ended.signal == signal.SIGKILL or (ran_out and ended.signal is not None):
        return "out_of_memory", Error(
            type="OutOfMemory",
            message="The exploration used more memory than it may and was ended by the system.",
            hint="Use smaller shapes.",
            line=line,
            traceback=last_words,
        )
    if ended.signal is not None:
        return "crashed", Error(
            type=_signal_name(ended.signal),
            message=f"The snippet's process crashed: {signal.strsignal(ended.signal) or 'unknown signal'}.",
            hint="Native code failed: look at the line named here, and at custom operators and extensions.",
            line=line,
            traceback=last_words,
        )
    if rejected is not None:
        return "crashed", Error(
            type="ReportRejected",
            message="What the snippet's process sent as its report is not a valid report.",
            hint="The snippet wrote to a descriptor that is not its own, or the compiler has a defect.",
            traceback=rejected,
        )
    return "crashed", Error(
        type="EarlyExit",
        message=f"The snippet's process ended itself with exit code {ended.exit_code} before the report was complete.",
        hint="Look for os._exit, or for native code that leaves the program.",
        line=line,
        traceback=last_words,
    )


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


def _last_snippet_line(output: str) -> int | None:
    """The innermost line of the snippet in the last stack of `output`, of a traceback or of a crash."""
    # A crash prints the innermost frame first, a traceback prints it last.
    _, crash, stack = output.rpartition("most recent call first")
    found = _SNIPPET_LINE.findall(stack)
    if not found:
        return None
    return int(found[0] if crash else found[-1])


_TEXT_REVERSING = frozenset("\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")


def _printable(text: str) -> str:
    """Without control characters, which could rewrite a terminal, and without marks that reverse text."""
    return "".join(
        character
        for character in text
        if character in "\n\t" or (character.isprintable() and character not in _TEXT_REVERSING)
    )
