"""The page and the compiler agree on every name of a report."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest
from pydantic import BaseModel

from compiler import options, report

ROOT = Path(__file__).resolve().parents[2]
TYPES = "\n".join(path.read_text() for path in (ROOT / "web" / "src" / "report").glob("*.ts"))
MODELS = [
    model
    for model in vars(report).values()
    if isinstance(model, type) and issubclass(model, BaseModel) and model is not report.ReportModel
]
OPTIONS = [options.InputSpec, options.Timing, options.Sweep, options.Options]


@pytest.mark.parametrize("model", [*MODELS, *OPTIONS], ids=lambda model: model.__name__)
def test_every_field_has_a_description_and_every_example_is_one(model: type[BaseModel]) -> None:
    assert [name for name, field in model.model_fields.items() if not field.description] == []
    assert model.__doc__
    for example in model.model_json_schema().get("examples", []):
        model.model_validate(example)


def test_examples_of_options_are_options() -> None:
    given = {name: field.examples[0] for name, field in options.Options.model_fields.items() if field.examples}
    assert len(given) > 5
    for name, example in given.items():
        options.Options.model_validate({name: example})


@pytest.mark.parametrize("model", MODELS, ids=lambda model: model.__name__)
def test_every_field_of_a_report_is_known_to_the_page(model: type[BaseModel]) -> None:
    body = re.search(rf"export interface {model.__name__} \{{\n(.*?)\n\}}", TYPES, re.DOTALL)
    assert body, f"web/src/report has no {model.__name__}: run python web/scripts/report_types.py"
    written = set(re.findall(r"^  (\w+): ", body.group(1), re.MULTILINE))
    assert written == set(model.model_fields)


def test_the_types_are_what_the_script_writes() -> None:
    script = ROOT / "web" / "scripts" / "report_types.py"
    outcome = subprocess.run([sys.executable, str(script), "--check"], check=False)
    assert outcome.returncode == 0, "run python web/scripts/report_types.py"


def test_the_example_report_of_the_page_tests_is_a_report() -> None:
    example = ROOT / "web" / "src" / "test" / "report.json"
    parsed = report.Report.model_validate_json(example.read_text())
    assert parsed.graphs[0].kernels
