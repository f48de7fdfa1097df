"""What is concluded from the end of a job."""

from __future__ import annotations

import json
import signal
from pathlib import Path

from compiler.report import Report
from server.verdicts import conclude
from server.wire.messages import Ended

EXAMPLE = Path(__file__).parents[2] / "web" / "src" / "test" / "report.json"
#: As Python 3.14 writes it: the stack of native code comes last.
CRASH = """Fatal Python error: Segmentation fault

Current thread 0x00007f58b97e4200 [python] (most recent call first):
  File "/usr/lib/python3.14/ctypes/__init__.py", line 624 in string_at
  File "<snippet>", line 4 in f
  File "<snippet>", line 5 in <module>

Current thread's C stack trace (most recent call first):
  Binary file "/usr/bin/python", at _Py_DumpStack+0x4a [0x49b2f9]
"""


def test_a_crash_names_the_line_also_where_the_stack_of_native_code_follows() -> None:
    latest = Report.model_validate(json.loads(EXAMPLE.read_text()))
    ended = Ended(job="a", ending="exited", signal=signal.SIGSEGV, last_output=CRASH)
    verdict = conclude(latest, ended, 60.0)
    assert verdict.status == "crashed" and verdict.error is not None
    assert (verdict.error.type, verdict.error.line) == ("SIGSEGV", 4)


def test_a_crash_shows_frames_down_to_the_snippets_and_none_of_the_service() -> None:
    latest = Report.model_validate(json.loads(EXAMPLE.read_text()))
    theirs = CRASH.replace(
        '  File "<snippet>", line 4 in f\n', '  File "snippet.py", line 4 in f\n  File "/torch/x.py", line 1 in y\n'
    )
    service = '  File "/app/compiler/capture/capture.py", line 151 in _run\n  File "<string>", line 7 in <module>\n'
    for crash in (theirs, theirs.partition("\nCurrent thread's")[0]):
        told = crash.replace("line 5 in <module>\n", f"line 5 in <module>\n{service}") + "\n\nExtension modules: numpy"
        ended = Ended(job="a", ending="exited", signal=signal.SIGSEGV, last_output=told)
        error = conclude(latest, ended, 60.0).error
        assert error is not None and error.traceback == crash.strip()
    alone = CRASH.replace("<snippet>", "/app/kernel.py")
    error = conclude(latest, Ended(job="a", ending="exited", signal=signal.SIGSEGV, last_output=alone), 60.0).error
    assert error is not None and error.traceback == alone.strip()
