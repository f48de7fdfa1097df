"""`fusionscope check`: whether a file still fuses as it should, for the CI of a project (docs/checking.md)."""

from __future__ import annotations

import json
import xml.etree.ElementTree as ElementTree
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from server.commands.given import (
    FAILED_SNIPPET,
    WRONG_RESULT,
    WRONG_USE,
    options_from,
    read_text,
    report_from,
    stages_on_stderr,
    stdout_to_stderr,
)
from server.plain_text import visible

if TYPE_CHECKING:
    from compiler.expectations import Finding
    from compiler.report import Report


_WRITE_AGAIN = " Write it again, by --write-baseline or `fusionscope explore --json`."


class Form(StrEnum):
    """Format of the findings."""

    text = "text"
    json = "json"
    junit = "junit"
    github = "github"


def check(
    file: Annotated[Path, typer.Argument(help="A Python file to explore; - reads from standard input.")],
    max_kernels: Annotated[int | None, typer.Option(min=0, help="Fail if there are more kernels.")] = None,
    max_bytes: Annotated[int | None, typer.Option(min=0, help="Fail if the kernels move more bytes.")] = None,
    no_breaks: Annotated[bool, typer.Option("--no-breaks", help="Fail if the graph breaks.")] = False,
    baseline: Annotated[
        Path | None, typer.Option(help="An earlier report, as JSON: fail if a fusion is lost or a break is new.")
    ] = None,
    write_baseline: Annotated[
        Path | None, typer.Option(help="Write this report there, for --baseline of later runs.")
    ] = None,
    form: Annotated[Form, typer.Option("--format", help="Format of the findings.")] = Form.text,
    device: Annotated[str | None, typer.Option(help='"cpu" or "cuda". The default is the GPU if there is one.')] = None,
    target: Annotated[str | None, typer.Option(help="GPU to generate kernels for, such as sm_90.")] = None,
    max_seconds: Annotated[float, typer.Option(help="Seconds that it may take.")] = 60.0,
) -> None:
    """Check that a file fuses as expected. Nothing is timed.

    The file runs in this process, with your own rights.

    Exits with 0 when every expectation is met, 1 when one is not or the snippet failed, 2 when the command was used
    wrongly, and 3 when a compiled result is wrong.
    """
    source = read_text(file)
    options = options_from(device=device, target=target, max_seconds=max_seconds, timing={"enabled": False})
    before = None if baseline is None else report_from(read_text(baseline), str(baseline), _WRITE_AGAIN)
    with stdout_to_stderr() as output:
        from compiler.expectations import Expected, findings
        from compiler.pipeline import explore

        with stages_on_stderr() as told:
            report = explore(source, options, told)
        found = findings(report, Expected(max_kernels, max_bytes, no_breaks, before))
        output.write(_written(found, form, str(file)))
        if write_baseline is not None:
            _write(write_baseline, report)
        raise typer.Exit(_exit_code(report, found))


def _exit_code(report: Report, found: list[Finding]) -> int:
    if report.status == "wrong_result":
        return WRONG_RESULT
    return 0 if all(one.is_met for one in found) else FAILED_SNIPPET


def _write(path: Path, report: Report) -> None:
    try:
        path.write_text(report.model_dump_json(indent=1) + "\n", encoding="utf-8")
    except OSError as failure:
        typer.echo(f"{path} cannot be written: {failure.strerror}", err=True)
        raise typer.Exit(WRONG_USE) from None


def _written(found: list[Finding], form: Form, file: str) -> str:
    if form is Form.json:
        from compiler.expectations import as_json

        return json.dumps(as_json(found), indent=2) + "\n"
    if form is Form.junit:
        return _as_junit(found, file)
    lines = [_annotation(one, file) for one in found] if form is Form.github else [_line(one) for one in found]
    return "".join(f"{line}\n" for line in lines if line)


def _line(one: Finding) -> str:
    where = f" (line {one.line})" if one.line is not None else ""
    return visible(f"{'ok    ' if one.is_met else 'failed'} {one.check}: {one.message}{where}").replace("\n", " ")


def _as_junit(found: list[Finding], file: str) -> str:
    """One test case a finding, in the form that CI systems read (the schema of Jenkins' xUnit plugin)."""
    failures = sum(not one.is_met for one in found)
    suite = ElementTree.Element("testsuite", name="fusionscope", tests=str(len(found)), failures=str(failures))
    for one in found:
        case = ElementTree.SubElement(suite, "testcase", classname=file, name=one.check)
        if not one.is_met:
            ElementTree.SubElement(case, "failure", message=visible(one.message)).text = _line(one)
    return ElementTree.tostring(suite, encoding="unicode", xml_declaration=True) + "\n"


def _annotation(one: Finding, file: str) -> str:
    """A workflow command of GitHub Actions, which it shows at the line; what is met needs none."""
    if one.is_met:
        return ""
    line = f",line={one.line}" if one.line is not None else ""
    properties = f"file={_escaped(file, ':,')}{line},title={_escaped(f'Fusionscope {one.check}', ':,')}"
    return f"::error {properties}::{_escaped(visible(one.message))}"


def _escaped(text: str, more: str = "") -> str:
    for character in ("%", "\r", "\n", *more):
        text = text.replace(character, f"%{ord(character):02X}")
    return text
