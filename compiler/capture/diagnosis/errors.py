"""An exception of the snippet as the report's error: its own message, the user's own line, and what can be done."""

from __future__ import annotations

import errno
import linecache
import re
import socket
import traceback
import urllib.error
from collections.abc import Sequence

from compiler.capture.diagnosis.breaks import report_break
from compiler.capture.torch_internals import user_frames
from compiler.fx.lines import lines_of_frames, lines_of_text
from compiler.report import Error
from compiler.wording import SNIPPET_FILE

_NO_NETWORK = "There is no network here: put all that the snippet needs into its text, with random weights."
_NO_PACKAGE = "Only the standard library, torch and what torch itself needs are installed here."
_NO_FILE = "The snippet runs in an empty folder: it can only read files that it writes itself."
_NO_ARGUMENTS = "A snippet gets no arguments and no input: write the values into its text."
_NO_DISK = "The service bounds files and the disk of an exploration (settings `file_mib`, `disk_mib`): write less."
_NO_THREAD = "The service bounds processes and threads of an exploration (setting `processes`): start fewer."
_NO_MEMORY = "Try smaller inputs."
_NO_GPU = "This worker has no GPU for that: remove it, or choose a device with a GPU."
_NO_TRITON = "Triton needs a GPU for that, and this worker has none: torch's operators would run here."
STOPPED_GPU = (
    "A check on the GPU failed: as a rule, an index or a label is out of its range. Run the snippet on the CPU, where "
    "the error names the line."
)
_NO_FAKE = (
    "Describe the operator's result to torch by a function under @operator.register_fake that returns "
    "an empty tensor of that shape and dtype."
)
_NO_PURE_FUNCTION = (
    "Let each function of torch.cond or a similar operator only compute tensors from its arguments: take prints, "
    "writes to its inputs and changes of other objects out of it, and have all give results of the same kind."
)
_NO_INFERENCE_MODE = (
    "PyTorch does not trace torch.inference_mode() inside a compiled function: put it around the call, or use "
    "torch.no_grad() inside."
)
_NO_VALUE_IN_TRACING = (
    "PyTorch needs a number while it traces that only a run gives, as for the gradient of a while_loop: "
    "keep that part in eager mode by torch.compiler.disable, or compile it without gradients."
)
_NO_SECOND_GRADIENT = (
    "PyTorch does not differentiate the gradient of a compiled function: compute the first gradient inside of one "
    "compiled function (torch.func.grad), or leave the function uncompiled."
)
WRONG_SETTING = "Correct this variable of the environment: neither the snippet nor Fusionscope is at fault."
_ONLY_COMPILED = "The same call without compilation succeeds: it is compiling it that fails."
_KEPT_IN_EAGER = "Keep that part in eager mode by torch.compiler.disable."
_LONGEST_MESSAGE = 4000
#: What argparse ends a script with.
_WRONG_ARGUMENTS = 2
#: Errors of torch's tracing whose text is the name of an operator alone, and what this operator gives.
_ONLY_VALUES_TELL = {"DataDependentOutputException": "a number", "DynamicOutputShapeException": "a shape"}


def report_error(error: BaseException, hint: str | None = None) -> Error:
    """`line` is the innermost line of the snippet that the exception passed through, or that was being compiled."""
    if is_of_setting(error):
        return Error(type="WrongSetting", message=str(error), stage="capture", hint=WRONG_SETTING)
    return Error(
        type=type(error).__name__,
        message=message_of_error(error),
        line=line_of_error(error),
        stage="capture",
        hint=hint or hint_for(error),
        traceback=_snippet_traceback(error),
    )


def is_of_setting(error: BaseException) -> bool:
    """Whether it says that a variable of the environment has a value that cannot be used."""
    return isinstance(error, ValueError | OSError) and str(error).startswith("FUSIONSCOPE_")


def line_of_error(error: BaseException) -> int | None:
    if isinstance(error, SyntaxError) and error.filename == SNIPPET_FILE:
        return error.lineno
    # Dynamo raises where it traces: the user's line is in what it traced, not in the traceback.
    traced = lines_of_frames(user_frames(error)) or lines_of_text(text_of(error))
    passed = lines_of_frames(traceback.extract_tb(error.__traceback__))
    lines = traced or passed
    return lines[-1] if lines else None


def name_lines(error: BaseException, lines: Sequence[int]) -> None:
    """Note the snippet's lines behind an error that passed through none of them."""
    frames = [traceback.FrameSummary(SNIPPET_FILE, line, "<snippet>") for line in lines]
    if frames:
        error.real_stack = traceback.StackSummary.from_list(frames)  # type: ignore[attr-defined]


_PASTED_CHARACTER = (
    "A web page or a word processor has put that character there. Replace it with the plain one: a space, a straight "
    "quotation mark, a minus sign; if nothing is to be seen there, delete it."
)
_FENCE = "The text has fences of Markdown. Paste what stands between the fences."
_PASTED_LINES = {
    r"(>>>|\.\.\.|(In|Out) ?\[\d+\]:)": "The line begins with the prompt of an interactive session. "
    "Take out all prompts, such as `>>> ` and `... `, and what the session printed.",
    r"(```|~~~)": _FENCE,
    r"[%!]": "The line is a command of a notebook. Take it out; no package can be installed here.",
}


def _hint_for_syntax(error: SyntaxError) -> str | None:
    """What to do about what is no Python, since it was pasted with what stood around the program."""
    if re.match(r"invalid (non-printable )?character", error.msg):
        return _PASTED_CHARACTER
    # One that is indented may be of a docstring.
    if any(line.startswith(("```", "~~~")) for line in linecache.getlines(SNIPPET_FILE)):
        return _FENCE
    line = error.text or ""
    return next((hint for beginning, hint in _PASTED_LINES.items() if re.match(rf"\s*{beginning}", line)), None)


def hint_for(error: BaseException) -> str | None:
    """What the reader can do, for the failures that come of running here and not at the author's desk."""
    for link in chain_of(error):
        if isinstance(link, SyntaxError) and link.filename == SNIPPET_FILE:
            return _hint_for_syntax(link)
        if isinstance(link, urllib.error.URLError | socket.gaierror | ConnectionError | TimeoutError):
            return _NO_NETWORK
        if isinstance(link, OSError) and link.errno in (errno.ENETUNREACH, errno.EHOSTUNREACH, errno.ENETDOWN):
            return _NO_NETWORK
        if type(link).__module__.startswith(("requests", "urllib3", "httpx", "huggingface_hub")):
            return _NO_NETWORK
        if isinstance(link, ModuleNotFoundError):
            return _NO_PACKAGE
        if isinstance(link, FileNotFoundError):
            return _NO_FILE
        if isinstance(link, OSError) and link.errno in (errno.EFBIG, errno.ENOSPC):
            return _NO_DISK
        if isinstance(link, EOFError) or (isinstance(link, SystemExit) and link.code == _WRONG_ARGUMENTS):
            return _NO_ARGUMENTS
        if "can't start new thread" in text_of(link):
            return _NO_THREAD
        if isinstance(link, MemoryError) or type(link).__name__ == "OutOfMemoryError":
            return _NO_MEMORY
        if has_stopped_gpu(link):
            return STOPPED_GPU
        if re.search(r"\b0 active drivers\b", text_of(link)):
            return _NO_TRITON
        if re.search(r"no fake impl registered|has no fake impl|no meta kernel", text_of(link)):
            return _NO_FAKE
        if _differentiates_twice(link):
            return _NO_SECOND_GRADIENT
        if type(link).__name__ == "DataDependentOutputException":
            return _NO_VALUE_IN_TRACING
        if "inference tensor" in text_of(link) and "INTERNAL ASSERT" not in text_of(link):
            return _NO_INFERENCE_MODE
        if type(link).__name__ == "UncapturedHigherOrderOpError":
            return _NO_PURE_FUNCTION
        if re.search(r"not compiled with CUDA|NVIDIA driver|No CUDA GPUs", text_of(link)):
            return _NO_GPU
    return None


def _differentiates_twice(error: BaseException) -> bool:
    """Whether AOTAutograd met the gradient of a gradient. Some it refuses, and others fail where it copies what it is
    given, which wants gradients then."""
    if "leaf Variable that requires grad" in text_of(error):
        return any("_aot_autograd" in frame.filename for frame in traceback.extract_tb(error.__traceback__))
    return "support double backward" in text_of(error)


def has_stopped_gpu(error: BaseException) -> bool:
    """Whether a check of a kernel on the GPU failed. Whatever asks the GPU for anything later in the process raises the
    same, wherever it is."""
    return "device-side assert triggered" in text_of(error)


def hint_only_compiled(error: BaseException) -> str:
    """For an exception of the compiler: the user's code is right, and the hint says so."""
    if type(error).__name__ == "Unsupported":
        return f"{_ONLY_COMPILED} {report_break(text_of(error)).remedy}"
    return hint_for(error) or f"{_ONLY_COMPILED} {_KEPT_IN_EAGER}"


def is_raised_by_snippet(error: BaseException) -> bool:
    """Whether the snippet's own code raises it, and not what it calls."""
    frames = traceback.extract_tb(error.__traceback__)
    return bool(frames) and frames[-1].filename == SNIPPET_FILE


def text_of(error: BaseException) -> str:
    """Its own words; none where the class of the snippet that should say them fails."""
    try:
        return str(error)
    except Exception:
        return ""


def chain_of(error: BaseException) -> list[BaseException]:
    """The exception and what caused it."""
    chain: list[BaseException] = []
    link: BaseException | None = error
    while link is not None and link not in chain:
        chain.append(link)
        link = link.__cause__ or link.__context__
    return chain


def message_of_error(error: BaseException) -> str:
    if isinstance(error, SyntaxError):
        return error.msg or "invalid syntax"
    if isinstance(error, SystemExit):
        return f"The script ended itself by sys.exit({error.code!r})."
    untold = _ONLY_VALUES_TELL.get(type(error).__name__)
    if untold is not None:
        return f"`{error}` gives {untold} that only the values of its inputs tell, so the graph could not be traced."
    text = text_of(error).split("\n\nfrom user code:")[0].split("\n\nSet TORCHDYNAMO_VERBOSE")[0].strip()
    text = text.removesuffix(":")  # Dynamo tells an error by its type and its text, which may be none
    return (text or type(error).__name__)[:_LONGEST_MESSAGE]


def in_short(error: BaseException) -> str:
    """Its type and the first sentence of what it says: torch adds graphs, stacks and advice below."""
    said = " ".join(message_of_error(error).strip().split("\n\n")[0].split()).partition(". ")[0].rstrip(".")
    return f"{type(error).__name__}: {said}"


def _snippet_traceback(error: BaseException) -> str | None:
    """The frames of the snippet alone: what lies between them is ours or torch's, and long."""
    frames = [frame for frame in traceback.extract_tb(error.__traceback__) if frame.filename == SNIPPET_FILE] or [
        frame for frame in user_frames(error) if frame.filename == SNIPPET_FILE
    ]
    lines = traceback.format_list(frames) if frames else []
    return "".join(["Traceback (most recent call last):\n", *lines]) if lines else None
