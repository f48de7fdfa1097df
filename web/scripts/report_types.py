"""Write `src/report.ts`, the page's view of the contract, from the pydantic models of `compiler/report/`.

    python web/scripts/report_types.py            # writes web/src/report.ts
    python web/scripts/report_types.py --check    # exit status 1 if that file is out of date

A field with a default is never absent from a report that the server wrote, so no property is optional.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
TARGET = ROOT / "web" / "src" / "report.ts"
sys.path.insert(0, str(ROOT))

SCALARS = {"string": "string", "integer": "number", "number": "number", "boolean": "boolean", "null": "null"}


def type_of(schema: dict[str, Any]) -> str:
    if "$ref" in schema:
        return str(schema["$ref"]).rsplit("/", 1)[-1]
    if "enum" in schema:
        return " | ".join(json.dumps(value) for value in schema["enum"])
    if "const" in schema:
        return json.dumps(schema["const"])
    if "anyOf" in schema:
        return " | ".join(type_of(choice) for choice in schema["anyOf"])
    if "prefixItems" in schema:
        return f"[{', '.join(map(type_of, schema['prefixItems']))}]"
    if schema.get("type") == "array":
        item = type_of(schema["items"])
        return f"({item})[]" if "|" in item else f"{item}[]"
    if schema.get("type") == "object":
        return "Record<string, unknown>"
    return SCALARS.get(str(schema.get("type")), "unknown")


def comment(text: str | None, indent: str) -> list[str]:
    """Only the first paragraph: the rest is told in `compiler/report/`."""
    if not text:
        return []
    return [f"{indent}/** {' '.join(text.split(chr(10) + chr(10))[0].split())} */"]


def interface(name: str, schema: dict[str, Any]) -> str:
    lines = [*comment(schema.get("description"), ""), f"export interface {name} {{"]
    for field, field_schema in schema["properties"].items():
        lines += comment(field_schema.get("description"), "  ")
        lines.append(f"  {field}: {type_of(field_schema)};")
    return "\n".join([*lines, "}"])


def render() -> str:
    from compiler.report import Report

    schema = Report.model_json_schema(mode="serialization")
    parts = [
        "// Written by scripts/report_types.py from compiler/report/: change it there, and run the script again.",
        *(interface(name, model) for name, model in schema["$defs"].items()),
        interface("Report", schema),
    ]
    return "\n\n".join(parts) + "\n"


def main() -> int:
    wanted = render()
    if "--check" in sys.argv[1:]:
        return 0 if TARGET.exists() and TARGET.read_text() == wanted else 1
    TARGET.write_text(wanted)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
