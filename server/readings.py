"""What is read from a report, and computed from it: each a function of the report as it is stored, for `derived`.

They run in a process apart. What they give is what is sent: bytes and short texts, which cost web nothing to take.
"""

from __future__ import annotations

import difflib
import hashlib
import json
from dataclasses import dataclass
from typing import Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError
from pydantic_core import to_json

from compiler import comparison, why
from compiler.machine_code import of_report
from compiler.options import KernelToCompile
from compiler.report import REPORT_VERSION, Report
from compiler.reproducer import NoReproducerError, reproducer
from server.beside import comparison_as_markdown
from server.chrome_trace import NOT_RECORDED, chrome_trace
from server.colouring import coloured
from server.database.compressed import inflated
from server.document import document
from server.events import Event, EventId, replay
from server.plain_text import visible
from server.report_paths import PathProblem, Scalar, value_at
from server.summary import markdown


class NotInReport(LookupError):
    """The report has nothing of this name; the message is a sentence."""


class NotPossible(ValueError):
    """This cannot be made of the report; the message is a sentence."""


@dataclass(frozen=True)
class Unread:
    """A report as JSON of so many bytes, which was checked when it came."""

    id: str
    version: int
    length: int
    body: bytes
    is_gzipped: bool

    def text(self) -> bytes:
        return inflated(self.body) if self.is_gzipped else self.body

    def report(self) -> Report:
        """Raises `NotPossible` where another version has written it."""
        try:
            return Report.model_validate_json(self.text())
        except ValidationError:
            raise NotPossible(
                f"Exploration {self.id} was made by another version (its report has version {self.version}, this "
                f"service reads version {REPORT_VERSION}). Its JSON is at /api/v1/explorations/{self.id} as it was; "
                "explore its source again for all else."
            ) from None


@dataclass(frozen=True)
class Rendered:
    """A text, and the hash of it."""

    body: bytes
    tag: str


class ReportValue(BaseModel):
    """The value of a path in a report."""

    model_config = ConfigDict(
        json_schema_extra={"example": {"path": "graphs[0].kernels | count", "value": 1, "problem": None}}
    )

    path: str = Field(description="The requested path.")
    value: Scalar | list[Scalar] = Field(
        default=None, description="A number, a word, or a list of them; null if there is none."
    )
    problem: str | None = Field(
        default=None, description="A sentence that says why the path has no value in this report; null if it has one."
    )


def source(of: Unread) -> str:
    return of.report().source


def answers(of: Unread, a: str, b: str) -> tuple[bytes, bool]:
    """Why the nodes `a` and `b` are, or are not, in one kernel; whether there are more pairs of them than are told."""
    try:
        found = why.why(of.report(), a, b, why.MOST_PAIRS + 1)
    except why.UnknownNode as unknown:
        raise NotInReport(f"{unknown} See graphs[].loops and graphs[].aten of exploration {of.id}.") from None
    return _as_json(found[: why.MOST_PAIRS]), len(found) > why.MOST_PAIRS


def compared(before: Unread, after: Unread) -> bytes:
    return _as_json(comparison.compare(before.report(), after.report()))


def compared_as_markdown(before: Unread, after: Unread) -> str:
    return comparison_as_markdown(comparison.compare(before.report(), after.report()))


def trace(of: Unread) -> bytes:
    try:
        return _as_json(chrome_trace(of.report()))
    except LookupError:
        raise NotPossible(f"Of exploration {of.id} {NOT_RECORDED}.") from None


def values(of: Unread, paths: list[str]) -> bytes:
    report = of.report()
    return _as_json([_value(report, path) for path in paths])


def _value(report: Report, path: str) -> ReportValue:
    try:
        return ReportValue(path=path, value=value_at(report, path))
    except PathProblem as problem:
        return ReportValue(path=path, problem=str(problem))


def kernel_file(of: Unread, name: str, graph: str | None, language: Any) -> Rendered:
    report = of.report()
    try:
        return _rendered(visible(reproducer(report, name, graph, language)))
    except KeyError:
        raise NotInReport(no_kernel(report, name, graph)) from None
    except NoReproducerError as reason:
        raise NotPossible(f"The kernel {name[:200]} cannot be run alone: {reason}") from None


def kernel_to_compile(of: Unread, name: str, graph: str | None, **wanted: Any) -> tuple[str, KernelToCompile]:
    report = of.report()
    try:
        return of_report.kernel_to_compile(report, name, graph, **wanted)
    except KeyError:
        raise NotInReport(no_kernel(report, name, graph, wanted.get("is_of_peer", False))) from None
    except of_report.NotCompilable as reason:
        raise NotPossible(f"The kernel {name[:200]} cannot be compiled this way: {reason}") from None


def text(of: Unread, beside: str) -> Rendered:
    """The report as Markdown, and `beside` below it."""
    return _rendered(markdown(of.report()) + beside)


def page(of: Unread, beside: str) -> Rendered:
    """The same as HTML."""
    report = of.report()
    return _rendered(document(report, markdown(report) + beside, of.text(), coloured))


def events(of: Unread, attempt: int, last_event: int, after: EventId | None) -> list[Event]:
    return replay(json.loads(of.text()), attempt, last_event, after)


def no_kernel(report: Report, name: str, graph: str | None, is_of_peer: bool = False) -> str:
    """The sentence of who asks for a kernel that is not there, with names that come near."""
    graphs = [one for one in report.graphs if graph in (None, one.name)]
    ours = [kernel for one in graphs for kernel in one.kernels]
    kernels = (report.peer.kernels if report.peer else []) if is_of_peer else ours
    names = [kernel.name for kernel in kernels if len(kernel.name) <= 200]
    near = difflib.get_close_matches(name, names, 3, 0.4) or names[:3]
    where = "TorchInductor's part" if is_of_peer else f"graph {graph[:200]}" if graph else "any graph"
    hint = f" There is {' or '.join(near)}." if near else ""
    return f"There is no kernel {name[:200]} in {where} of exploration {report.id}.{hint}"


def _as_json(value: Any) -> bytes:
    return to_json(value, inf_nan_mode="null")


def _rendered(text: str) -> Rendered:
    body = text.encode()
    return Rendered(body, hashlib.sha256(body).hexdigest()[:32])
