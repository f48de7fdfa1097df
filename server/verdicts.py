"""How an exploration ended, in words: from what the snippet's process said last, and from how it was seen to end."""

from __future__ import annotations

import re
import signal
from dataclasses import dataclass
from typing import Literal, get_args

from compiler.budget import TIME_LIMIT
from compiler.options import StageName
from compiler.report import Error, Report, Status
from server.wire.messages import Ended

_SNIPPET_LINE = re.compile(r'File "(?:snippet\.py|<snippet>)", line (\d+)')
# Python 3.14 writes the stack of native code behind it.
_STACK_OF_CRASH = re.compile(r"(?<!C stack trace \()most recent call first")
#: Below the outermost frame of the snippet in such a stack, where frames of this program run it.
_BELOW_SNIPPET = re.compile(
    r'(File "(?:snippet\.py|<snippet>)", line \d+ in .*\n)(?:  File "(?!snippet\.py|<snippet>).*\n)+(?!  File)'
)
_OUTPUT_SHOWN = 16 * 1024


@dataclass(frozen=True)
class Verdict:
    """How an exploration ended, as people see it."""

    status: Status
    error: Error | None


NOT_BELIEVED = "This report is not to be believed:"
"""What the verdict of a report begins with that says what cannot be."""


def conclude(latest: Report, ended: Ended, wall_limit: float, rejected: str | None = None) -> Verdict:
    """What became of `latest`: its own word where the job ended well, otherwise what was seen from outside."""
    has_ended_well = ended.ending == "exited" and ended.exit_code == 0 and rejected is None
    if has_ended_well and latest.status not in ("running", "cancelled", "dropped"):
        return _tell_lack_of_memory(latest)
    status, error = _explain(ended, wall_limit, rejected)
    if status == "timeout":
        error = error.model_copy(update={"message": f"{error.message} {_what_there_is(latest)}"})
    return Verdict(status, error)


Unrun = Literal["cancelled", "dropped", "outdated", "lost"]


def never_ran(why: Unrun, tries: int) -> Verdict:
    """Of a job without an end of its own: it was cancelled or dropped while it waited, its build has gone, or all its
    workers were lost."""
    if why == "cancelled":
        return Verdict("cancelled", _CANCELLED)
    if why == "dropped":
        message = "Nobody waited for this exploration any longer, so it was removed from the queue before it ran."
        return Verdict("dropped", Error(type="Dropped", message=message, hint="Run it again, and wait for its end."))
    if why == "outdated":
        message = "This exploration waited for another version of the service, which no longer runs."
        return Verdict("dropped", Error(type="Outdated", message=message, hint="Run it again, by this version."))
    return Verdict("crashed", _lost(tries))


def believed_verdict(verdict: str, contradictions: list[str]) -> str:
    """The sentence on top of a report, with what cannot be first."""
    return f"{NOT_BELIEVED} {contradictions[0]} {verdict}".strip() if contradictions else verdict


_CANCELLED = Error(type="Cancelled", message="The exploration was cancelled.", hint="Run it again.")


def _lost(tries: int) -> Error:
    often = f" This happened {tries} times in a row." if tries > 1 else ""
    return Error(
        type="WorkerLost",
        message=f"The worker that ran the exploration ended unexpectedly.{often}",
        hint="Run it again; if it happens again, the snippet itself may be what ends the worker.",
    )


def _what_there_is(latest: Report) -> str:
    """Which stages the report has, and which it lacks."""
    ended = [stage.name for stage in latest.stages]
    if not ended:
        return "No stage had ended: the snippet itself was still running."
    missing = [name for name in get_args(StageName) if name not in ended]
    told = f"What follows is of the stages that had ended: {', '.join(ended)}."
    return f"{told} Missing: {', '.join(missing)}." if missing else told


def _tell_lack_of_memory(report: Report) -> Verdict:
    """To the compiler, running out of memory is an error of the snippet like any other; but it depends on the limit
    that the service sets, so it has a status of its own, with which it is not kept as the snippet's result."""
    error = report.error
    if error is None or report.status not in ("user_error", "crashed"):
        return Verdict(report.status, error)
    if error.type not in ("MemoryError", "OutOfMemoryError") and "can't allocate memory" not in error.message:
        return Verdict(report.status, error)
    hint = error.hint or "Use smaller shapes, or raise the setting `memory_gib` of the service."
    return Verdict("out_of_memory", error.model_copy(update={"hint": hint}))


def _explain(ended: Ended, wall_limit: float, rejected: str | None) -> tuple[Status, Error]:
    line = _last_snippet_line(ended.last_output)
    if ended.ending == "cancelled":
        return "cancelled", _CANCELLED
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
    if ended.ending == "memory_limit":
        return "out_of_memory", Error(
            type="OutOfMemory",
            message="The exploration used more memory than it may, in all of its processes together, and was stopped.",
            hint="Use smaller shapes, or raise the setting `memory_gib` of the service.",
            line=line,
        )
    if ended.ending == "disk_limit":
        return "crashed", Error(
            type="DiskLimit",
            message="The exploration wrote more into its folder and /dev/shm than it may, and was stopped.",
            hint="Write less, or remove files that are no longer needed.",
            line=line,
        )
    if ended.ending == "worker_lost":
        return "crashed", _lost(1)
    return _explain_exit(ended, line, rejected)


def _explain_exit(ended: Ended, line: int | None, rejected: str | None) -> tuple[Status, Error]:
    # The list of loaded extension modules, with which a crash ends, says nothing about the snippet.
    words = _printable(ended.last_output).partition("\nExtension modules:")[0] + "\n"
    last_words = _BELOW_SNIPPET.sub(r"\1", words)[-_OUTPUT_SHOWN:].strip() or None
    ran_out = "bad_alloc" in ended.last_output or "Cannot allocate memory" in ended.last_output
    if ended.signal == signal.SIGKILL or (ran_out and ended.signal is not None):
        return "out_of_memory", Error(
            type="OutOfMemory",
            message="The exploration was ended from outside. As a rule, the machine had no memory left for it.",
            hint="Use smaller shapes, and look for code that kills processes.",
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
            message="The snippet's process sent data that is not a valid report.",
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
    *crash, stack = _STACK_OF_CRASH.split(output)
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
