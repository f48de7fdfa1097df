"""Writes docs/api.md from the description of the API: `python -m tools.api_reference`."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

DOCUMENT = Path(__file__).parents[1] / "docs" / "api.md"
_UNTOLD = "Successful Response"
"""What FastAPI says where a route says nothing."""

_HEAD = """# The API

{description}
The whole description, with the schema of every answer, is OpenAPI: `GET /api/v1/openapi.json`. The command
`python -m tools.api_reference` writes this page from it. From Python, use [the client](client.md).
"""


def page(description: dict[str, Any]) -> str:
    """The API as Markdown: a section for each tag, in it each operation with its parameters and answers."""
    parts = [_HEAD.format(description=description["info"]["description"])]
    for tag in description["tags"]:
        parts.append(f"## {tag['name'].capitalize()}\n\n{tag['description']}\n")
        parts += [
            _operation(f"{method.upper()} {path}", operation)
            for path, methods in sorted(description["paths"].items())
            for method, operation in methods.items()
            if tag["name"] in operation["tags"]
        ]
    return "\n".join(parts)


def _operation(title: str, operation: dict[str, Any]) -> str:
    told = operation["description"].strip()
    return "\n".join([f"### `{title}`\n", told + "\n", *_parameters(operation), *_answers(operation)])


def _parameters(operation: dict[str, Any]) -> Iterator[str]:
    parameters = operation.get("parameters", [])
    if parameters:
        yield "| parameter | in | what it is |\n|---|---|---|"
        for one in parameters:
            told = one.get("description") or one["schema"].get("description", "")
            yield f"| `{one['name']}`{', required' if one.get('required') else ''} | {one['in']} | {_in_a_cell(told)} |"
        yield ""
    body = operation.get("requestBody", {}).get("content", {})
    for media, content in body.items():
        yield f"The body is `{media}`: {_schema(content['schema'])}.\n"


def _answers(operation: dict[str, Any]) -> Iterator[str]:
    good = {code: answer for code, answer in operation["responses"].items() if code < "300"}
    yield "| answer | what it is |\n|---|---|"
    for code, answer in good.items():
        media = ", ".join(f"`{name}`" for name in answer.get("content", {}))
        told = answer["description"]
        if told == _UNTOLD:
            told = ", ".join(_schema(content.get("schema", {})) for content in answer.get("content", {}).values())
        yield f"| {code}{', ' + media if media else ''} | {_in_a_cell(told)} |"
    others = ", ".join(sorted(code for code in operation["responses"] if code not in good))
    yield f"\nOther answers: {others}.\n"


def _schema(schema: dict[str, Any]) -> str:
    named = re.findall(r"#/components/schemas/(\w+)", str(schema))
    many = "list of " if schema.get("type") == "array" else ""
    return f"{many}`{named[0]}`" if named else schema.get("type", "text")


def _in_a_cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|")


if __name__ == "__main__":
    from server.app import create_app

    DOCUMENT.write_text(page(create_app().openapi()), encoding="utf-8")
    print(DOCUMENT)
