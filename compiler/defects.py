"""A defect of ours as a report may show it: where it lies in the compiler, and nothing of the machine or the snippet.

Frames of the snippet keep its name and the line's number. Files are named from the folder that they are imported from.
"""

from __future__ import annotations

import linecache
import os
import re
import sys
import sysconfig
import tempfile
import traceback
from pathlib import Path

from compiler.wording import SNIPPET_FILE

#: Characters of a traceback that are kept: its end, which says what was raised.
LONGEST_TRACEBACK = 8000
#: A line of the snippet that is shorter is no telling text: `x`, `)`, `else:`.
_SHORTEST_LINE = 6

_SNIPPET_FRAME = re.compile(rf'^\s*File "{re.escape(SNIPPET_FILE)}", line \d+')


def traceback_of(error: BaseException) -> str:
    """The traceback of `error` and of what caused it, without the snippet's text and without folders of the machine."""
    told = traceback.TracebackException.from_exception(error, lookup_lines=False)
    link: traceback.TracebackException | None = told
    while link is not None:
        link.stack = traceback.StackSummary.from_list(map(_without_text, link.stack))
        link = link.__cause__ or link.__context__
    return without_folders(_without_snippet("".join(told.format())))[-LONGEST_TRACEBACK:]


def message_of(error: BaseException) -> str:
    """What `error` says, with its type."""
    return without_folders(_without_snippet(f"{type(error).__name__}: {error}"))


def without_folders(text: str) -> str:
    """`text` with files named from the folder that Python imports them from, and home and temporary folders by name."""
    for folder, name in _folders():
        text = text.replace(f"{folder}/", f"{name}/" if name else "")
    return text


def _folders() -> list[tuple[str, str]]:
    """Folders and what stands for each, those within others first."""
    imported = {path for path in (*sys.path, *sysconfig.get_paths().values()) if os.path.isabs(path) and path != "/"}
    own = str(Path(__file__).resolve().parents[1])
    named = {tempfile.gettempdir(): "<tmp>", str(Path.home()): "<home>", os.getcwd(): "<folder>"}
    folders = {
        **{folder: name for folder, name in named.items() if folder != "/"},
        **dict.fromkeys((*imported, own), ""),
    }
    return sorted(folders.items(), key=lambda pair: -len(pair[0]))


def _without_text(frame: traceback.FrameSummary) -> traceback.FrameSummary:
    if frame.filename != SNIPPET_FILE:
        return frame
    return traceback.FrameSummary(frame.filename, frame.lineno, frame.name, lookup_line=False, line="")


def _without_snippet(text: str) -> str:
    """Without lines that are lines of the snippet: messages of torch quote those that it was compiling."""
    lines = linecache.getlines(SNIPPET_FILE)
    quoted = {line.strip() for line in lines if len(line.strip()) >= _SHORTEST_LINE}
    kept: list[str] = []
    is_quoting = False
    for line in text.split("\n"):
        is_frame = _SNIPPET_FRAME.match(line) is not None
        is_quoting = is_frame or (is_quoting and line.startswith("    ") and not line.lstrip().startswith("File "))
        if (not is_quoting or is_frame) and line.strip() not in quoted:
            kept.append(line)
    return "\n".join(kept)
