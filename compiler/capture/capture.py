"""Capture: run a snippet as its author would, and keep every graph of what it compiles."""

from __future__ import annotations

import contextlib
import io
import random
import sys
import threading
import traceback
from collections.abc import Iterator
from unittest import mock

import torch

from compiler.budget import TIME_LIMIT, UNLIMITED, Budget, OutOfTime, in_seconds
from compiler.capture.autograd.aot import JointPass
from compiler.capture.captured import Capture
from compiler.capture.diagnosis.errors import hint_only_compiled, is_raised_by_snippet, report_error
from compiler.capture.program.absent import note_on_absent
from compiler.capture.program.called import Called
from compiler.capture.program.device import is_gpu_wanted, makes_tensors_in_functions
from compiler.capture.program.forms import Explorer, NothingToExploreError
from compiler.capture.program.inputs import NoInputsFitError
from compiler.capture.program.loading import loading_here
from compiler.capture.program.output import OutputRecorder, silenced
from compiler.capture.program.snippet import Snippet, as_main, parse_snippet, run_snippet, snippet_of
from compiler.capture.recording.intercept import Interception
from compiler.capture.recording.recorder import Recorder
from compiler.capture.recording.torch_trace import quiet_logs
from compiler.capture.torch_internals import (
    is_error_of_compiler,
    lazy_backward_off,
    reset_dynamo,
    writes_to_numbers_kept,
)
from compiler.capture.torch_state import restored_state
from compiler.options import Options
from compiler.report import Error, Note
from compiler.snippet_changes import NO_CHANGES, SnippetChanges
from compiler.wording import SNIPPET_FILE, line_list

#: Capturing replaces torch.compile and the standard streams, of which a process has one.
_ONE_AT_A_TIME = threading.Lock()


def capture(
    source: str,
    options: Options,
    device: torch.device,
    budget: Budget = UNLIMITED,
    changes: SnippetChanges = NO_CHANGES,
    called: Called | None = None,
) -> Capture:
    """Run `source` on `device`, or make that call of a function whose file it is, and return what was captured.

    Whatever the snippet does wrong is `error` in the result, beside the graphs that came before it; so it is where it
    runs for longer than the budget. Only what stops the process (KeyboardInterrupt) is raised. torch's cache of
    compiled code is emptied first: the compiled functions of an earlier capture in this process compile again.
    What the snippet changes in the process is set aside by `changes` when it has run.

    With a GPU as `device`, a snippet that names none makes its tensors there. If it ends before anything was captured,
    it may have been written for a CPU, as one with a `DataLoader` that shuffles. It is then run on the CPU.
    """
    with _ONE_AT_A_TIME:
        try:
            snippet = parse_snippet(source, device) if called is None else snippet_of(called)
        except (SyntaxError, ValueError) as error:
            return Capture(device=device, error=report_error(error))
        result = _run(snippet, options, device, budget, changes)
        failed = result.error
        if failed is None or failed.type in _ENDS_ANYWHERE or result.graphs or not _is_for_gpu(snippet, device):
            return result
        cpu = torch.device("cpu")
        again = _run(parse_snippet(source, cpu), options, cpu, budget, changes)
        if again.error is not None:
            return result
        result.forget()
        why = failed.message.partition("\n")[0].rstrip(".")
        said = f"On the GPU the snippet ends with {failed.type}: {why}. It names no device, so it was run on the CPU."
        again.notes.insert(0, Note(message=said, line=failed.line))
        return again


def _run(snippet: Snippet, options: Options, device: torch.device, budget: Budget, changes: SnippetChanges) -> Capture:
    reset_dynamo()
    result = Capture(device=device, names=snippet.names)
    recorder, output = Recorder(result, _joint_pass(options, result.device)), OutputRecorder()
    interception = Interception(recorder, options, makes_tensors_in_functions(snippet.tree))
    _note_cuda(snippet, options, recorder)
    for said, line in snippet.commands.notes:
        recorder.note(said, line)
    for package, line in snippet.absent.items():
        recorder.note(note_on_absent(package), line)
    with (
        output.recording(),
        mock.patch.object(sys, "stdin", io.StringIO()),  # a snippet that reads its standard input finds it empty
        restored_state(),
        quiet_logs(),
        changes.in_force(),
        recorder.listening(),
        interception.installed(),
        loading_here(recorder.note),
        as_main(snippet.module),
        _default_device(snippet, recorder, result.device),
        lazy_backward_off() if options.training else contextlib.nullcontext(),
        writes_to_numbers_kept(),
    ):
        _seed(options.seed)
        limit = budget.left
        try:
            with budget.stopping():
                _run_script(snippet)
                Explorer(snippet, interception, recorder, options).explore()
        except OutOfTime as stop:
            result.error = _explain_stop(stop, limit)
        except SystemExit as stop:
            result.error = report_error(stop)
        except NothingToExploreError as error:
            hint = _NOTHING_HINT if options.entry is None else None
            result.error = Error(type="NothingToExplore", message=str(error), stage="capture", hint=hint)
        except NoInputsFitError as error:
            result.error = report_error(error.__cause__ or error, _NO_INPUTS_HINT)
        except Exception as error:
            result.error = _explain(error, recorder)
    recorder.finish()
    result.output = output.text()
    if not result.graphs and result.error is None:
        _explain_no_graphs(recorder)
    return result


def _explain_stop(stop: OutOfTime, limit: float) -> Error:
    message = f"The snippet ran for longer than the {in_seconds(limit)} that it was given, and was stopped."
    error = report_error(stop, "Use smaller sizes or fewer calls, allow more time, or look for a loop that never ends.")
    return error.model_copy(update={"type": TIME_LIMIT, "message": message, "line": _running_line(stop) or error.line})


def _running_line(stop: OutOfTime) -> int | None:
    """The snippet's line that was running. What Dynamo compiled stands at its function's first line all the time."""
    passed = ((frame.f_code, line) for frame, line in traceback.walk_tb(stop.__traceback__))
    lines = [line for code, line in passed if code.co_filename == SNIPPET_FILE and line != code.co_firstlineno]
    return lines[-1] if lines else None


def _joint_pass(options: Options, device: torch.device) -> JointPass:
    """Imported here: what chooses reads captured graphs, so capture must not need it to be imported."""
    from compiler.passes.padding.decide import pad_joint

    target = options.target if device.type == "cpu" else None
    return lambda joint: pad_joint(joint, options, target)


def _run_script(snippet: Snippet) -> None:
    """A script may end by sys.exit(): with 0 it has ended well, and what it defined can be explored."""
    try:
        run_snippet(snippet)
    except SystemExit as stop:
        if stop.code not in (None, 0):
            raise


#: Types of errors that say nothing about the device.
_ENDS_ANYWHERE = frozenset({TIME_LIMIT, "NothingToExplore", "SystemExit", "OutOfMemoryError"})
_NO_INPUTS_HINT = (
    "The cause is inputs that were chosen by default, and no other default fits: call the function in the "
    "snippet, give its inputs in the request, or annotate them, as in `x: f32[4096, 4096]`."
)
_NOTHING_HINT = (
    "Put the computation into a function or an nn.Module and call it, as in `def f(x): return x.relu() * 2` and then "
    "`f(torch.randn(64, 64))`."
)


def _explain(error: Exception, recorder: Recorder) -> Error:
    """The error as the author would see it without compilation, if the same call fails so; else as the compiler's."""
    failed, is_compilers = recorder.failed, is_error_of_compiler(error)
    if failed is None or not (is_compilers or failed.error is error):
        return report_error(error)
    try:
        with silenced():
            failed.eager(*failed.args, **failed.kwargs)
    except Exception as own_error:
        # What runs in a graph has no frame of the snippet: uncompiled, the same error names its line.
        return report_error(own_error if is_compilers or type(own_error) is type(error) else error)
    # What the snippet raises itself may depend on what its earlier calls have left.
    is_of_torch = is_compilers or not is_raised_by_snippet(error)
    return report_error(error, hint_only_compiled(error) if is_of_torch else None)


def _explain_no_graphs(recorder: Recorder) -> None:
    if recorder.failures:
        recorder.capture.error = report_error(recorder.failures[0], hint_only_compiled(recorder.failures[0]))
        return
    breaks = recorder.capture.breaks
    if breaks:
        one = breaks[0]
        stopped = "tracing stopped" if one.line is None else f"tracing stopped in line {one.line}"
        recorder.note(f"Nothing was captured: {stopped}. The graph break says why.", one.line)
    elif not recorder.passed_on and not recorder.has_left_to_eager:
        recorder.note(
            "Nothing was captured: the called code computes nothing from a tensor, or could not be traced at all."
        )


def _note_cuda(snippet: Snippet, options: Options, recorder: Recorder) -> None:
    has_gpu = torch.cuda.is_available()
    why = "The device cpu was asked for" if has_gpu else "This worker has no GPU"
    if snippet.cuda_lines:
        where = line_list(snippet.cuda_lines)
        said = f"{why}: `cuda` in {where} became the CPU, and everything was run there."
        recorder.note(said, snippet.cuda_lines[0])
    elif options.device not in (None, "cpu") and not has_gpu:
        recorder.note(f"{why}: the device {options.device} became the CPU, and everything was run there.")


def _is_for_gpu(snippet: Snippet, device: torch.device) -> bool:
    """Whether the snippet runs on a GPU and leaves it to us where its tensors are made."""
    return snippet.called is None and is_gpu_wanted(snippet.tree, device)


@contextlib.contextmanager
def _default_device(snippet: Snippet, recorder: Recorder, device: torch.device) -> Iterator[None]:
    if not _is_for_gpu(snippet, device):
        yield
        return
    recorder.note("The snippet names no device: its tensors were made on the GPU.")
    torch.set_default_device(device)
    try:
        yield
    finally:
        torch.set_default_device(None)


def _seed(seed: int) -> None:
    random.seed(seed)
    # For each kind of device that there is none of, `torch.manual_seed` writes down the stack of its caller.
    seed_torch = torch.manual_seed if torch.cuda.is_available() else torch.default_generator.manual_seed
    seed_torch(seed)
    with contextlib.suppress(ImportError):
        import numpy

        numpy.random.seed(seed % 2**32)
