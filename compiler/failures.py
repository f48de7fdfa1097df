"""What went wrong in a stage, as an error of the report: the snippet's fault, a limit of ours, or a defect of ours."""

from __future__ import annotations

from compiler.capture.diagnosis.errors import STOPPED_GPU, WRONG_SETTING, has_stopped_gpu, is_of_setting
from compiler.defects import message_of, traceback_of
from compiler.ir.size import Undecided
from compiler.lowering.unsupported import FIXED_INSTEAD, UnsupportedGraph
from compiler.report import Error
from compiler.runtime.cpp.compiler import CompilerMissing
from compiler.runtime.executable import BrokenPromiseError
from compiler.sweep.sizes import UnknownSize


def error_of(stage: str, error: Exception) -> Error:
    """The error as a sentence with its stage and, where there is one, what to do about it."""
    if isinstance(error, UnsupportedGraph):
        return Error(type="Unsupported", message=error.message, line=error.line, stage=stage, hint=error.hint)
    if isinstance(error, BrokenPromiseError):
        hint = "Let the function under register_fake give a tensor of the same shape, dtype and device of the result."
        return Error(type="WrongFake", message=str(error), line=error.line, stage=stage, hint=hint)
    if isinstance(error, Undecided):
        message = f"Kernels for every size of a call cannot be made here: {error}"
        return Error(type="Unsupported", message=message, stage=stage, hint=FIXED_INSTEAD)
    if isinstance(error, UnknownSize):
        return Error(type="UnknownSize", message=str(error), stage=stage)
    if is_of_setting(error):
        return Error(type="WrongSetting", message=str(error), stage=stage, hint=WRONG_SETTING)
    if isinstance(error, CompilerMissing):
        hint = "Neither the snippet nor Fusionscope is at fault: `fusionscope doctor` lists what this machine lacks."
        return Error(type="CompilerMissing", message=str(error), stage=stage, hint=hint)
    if has_stopped_gpu(error):
        message = "The GPU stopped while the snippet ran, and what came later could not be done."
        return Error(type=type(error).__name__, message=message, stage=stage, hint=STOPPED_GPU)
    return Error(
        type="InternalError",
        message=f"Fusionscope failed in the stage {stage!r}: {message_of(error)}",
        stage=stage,
        hint="This is a defect of Fusionscope, not of the snippet; the stages before it are shown.",
        traceback=traceback_of(error),
    )
