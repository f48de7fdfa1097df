"""The description of the API: whole, told in words and examples, and true."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from compiler.options import CODE_TARGETS
from server import tokens
from server.app import create_app
from server.settings import Settings
from tools import api_reference

DESCRIPTION: dict[str, Any] = create_app(Settings(log_format="json")).openapi()
SCHEMAS: dict[str, Any] = DESCRIPTION["components"]["schemas"]
OPERATIONS = [
    pytest.param(operation, id=f"{method} {path}")
    for path, methods in DESCRIPTION["paths"].items()
    for method, operation in methods.items()
]


def references(part: Any) -> Iterator[str]:
    if isinstance(part, dict):
        if isinstance(part.get("$ref"), str):
            yield part["$ref"]
        for value in part.values():
            yield from references(value)
    elif isinstance(part, list):
        for value in part:
            yield from references(value)


def has_example(schema: dict[str, Any]) -> bool:
    """Whether a schema, or what it refers to, shows what a value looks like."""
    if schema.keys() & {"example", "examples", "const", "enum"}:
        return True
    if "$ref" in schema:
        return has_example(SCHEMAS[schema["$ref"].rpartition("/")[2]])
    if schema.get("type") == "array":
        return has_example(schema.get("items", {}))
    return False


def is_described(schema: dict[str, Any]) -> bool:
    """Whether a schema says what it is; one that only refers to another is what that one is."""
    if schema.get("description", "").strip():
        return True
    return "$ref" in schema and is_described(SCHEMAS[schema["$ref"].rpartition("/")[2]])


def test_the_page_about_it_is_written_from_it() -> None:
    assert api_reference.DOCUMENT.read_text() == api_reference.page(DESCRIPTION), "run: python -m tools.api_reference"


def test_it_lists_what_a_kernel_can_be_compiled_for() -> None:
    (asked,) = (
        parameter["schema"]["anyOf"][0]
        for path, methods in DESCRIPTION["paths"].items()
        if path.endswith("/machine-code")
        for parameter in methods["post"]["parameters"]
        if parameter["name"] == "target"
    )
    for target in (asked, SCHEMAS["KernelToCompile"]["properties"]["target"]):
        assert target["enum"] == list(CODE_TARGETS)


def test_whatever_it_refers_to_is_defined() -> None:
    found = set(references(DESCRIPTION))
    assert "#/components/schemas/ProblemBody" in found
    assert {reference.rpartition("/")[2] for reference in found} <= set(SCHEMAS)
    assert "HTTPValidationError" not in SCHEMAS, "every invalid request is answered with a problem document"


def test_every_field_is_described() -> None:
    undescribed = [
        f"{name}.{field}"
        for name, schema in SCHEMAS.items()
        for field, described in schema.get("properties", {}).items()
        if not is_described(described)
    ]
    assert undescribed == []
    assert sum(len(schema.get("properties", {})) for schema in SCHEMAS.values()) > 400


@pytest.mark.parametrize("operation", OPERATIONS)
def test_every_operation_is_described_and_shown(operation: dict[str, Any]) -> None:
    assert operation["summary"] and operation["description"].strip()
    for parameter in operation.get("parameters", ()):
        assert parameter.get("description", "").strip(), parameter["name"]
        assert "example" in parameter or has_example(parameter["schema"]), parameter["name"]
    if "requestBody" in operation:
        assert has_example(operation["requestBody"]["content"]["application/json"]["schema"])
    succeeded = [answer for status, answer in operation["responses"].items() if status in ("200", "202")]
    assert succeeded
    for answer in succeeded:
        json_answer = answer.get("content", {}).get("application/json")
        if json_answer is not None:
            assert "example" in json_answer or has_example(json_answer["schema"])


@pytest.mark.parametrize("name", [name for name, schema in SCHEMAS.items() if "example" in schema])
def test_every_example_is_what_its_schema_says(name: str) -> None:
    schema = {"$ref": f"#/components/schemas/{name}", "components": DESCRIPTION["components"]}
    Draft202012Validator(schema).validate(SCHEMAS[name]["example"])


@pytest.mark.parametrize("operation", OPERATIONS)
def test_every_error_is_a_problem_document(operation: dict[str, Any]) -> None:
    errors = {status: answer for status, answer in operation["responses"].items() if status >= "400"}
    assert {"401", "421", "429", "500"} <= set(errors)
    ready = errors.pop("503", None)
    for answer in [*errors.values(), *([ready] if ready else [])]:
        assert list(answer["content"]) == ["application/problem+json"]


def test_a_token_is_described_where_one_is_asked_for(tmp_path: Path) -> None:
    assert "securitySchemes" not in DESCRIPTION["components"]
    file = tmp_path / "tokens.json"
    tokens.make(file, "ci", tokens.Quota())
    described = create_app(Settings(log_format="json", tokens=file)).openapi()
    assert described["components"]["securitySchemes"]["token"]["scheme"] == "bearer"
    asks = {
        path: all(operation.get("security") == [{"token": []}] for operation in methods.values())
        for path, methods in described["paths"].items()
    }
    assert [path for path, asked in asks.items() if not asked] == ["/healthz", "/readyz"]
