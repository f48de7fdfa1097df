"""Map torch's stack traces to lines of the snippet."""

from __future__ import annotations

import re
import traceback
from collections.abc import Iterable
from typing import Any

from compiler.fx.notes import LINES
from compiler.wording import SNIPPET_FILE

_FRAME = re.compile(r'File "([^"]+)", line (\d+)(?:, in (\S+))?')
_RESUMED = re.compile(r"^torch_dynamo_resume_in_(.+)_at_\d+$")


def lines_of_text(stack: str | None) -> tuple[int, ...]:
    """Snippet lines in a formatted stack, outermost first and each once.

    Only the `File` lines are read: the code below them gained a line of carets in torch 2.13.
    """
    return _distinct(int(line) for file, line, _ in _FRAME.findall(stack or "") if file == SNIPPET_FILE)


def lines_of_frames(frames: Iterable[traceback.FrameSummary] | None) -> tuple[int, ...]:
    """Snippet lines of a stack summary, outermost first and each once."""
    return _distinct(frame.lineno or 0 for frame in frames or () if frame.filename == SNIPPET_FILE)


def lines_of_node(node: Any) -> tuple[int, ...]:
    """Snippet lines that an FX node came from, the innermost last."""
    known = node.meta.get(LINES)
    return known if known is not None else lines_of_text(node.meta.get("stack_trace"))


def function_of_text(stack: str | None) -> str | None:
    """The outermost function of the snippet in a formatted stack."""
    for file, _, name in _FRAME.findall(stack or ""):
        if file == SNIPPET_FILE and name and name != "<module>":
            return plain_function_name(name)
    return None


def plain_function_name(name: str) -> str:
    """`f` for `torch_dynamo_resume_in_f_at_7`, which is how Dynamo names what follows a graph break in `f`."""
    resumed = _RESUMED.match(name)
    return plain_function_name(resumed.group(1)) if resumed else name


def _distinct(lines: Iterable[int]) -> tuple[int, ...]:
    """Each line once, at its last (innermost) location."""
    return tuple(reversed(dict.fromkeys(reversed(list(lines)))))
