"""Write `src/report/`, the page's view of the contract, from the pydantic models of `compiler/report/`, file by file.

    python web/scripts/report_types.py            # writes web/src/report/
    python web/scripts/report_types.py --check    # exit status 1 if a file there is out of date

A field with a default is never absent from a report that the server wrote, so no property is optional.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
TARGET = ROOT / "web" / "src" / "report"
sys.path.insert(0, str(ROOT))

NOTICE = "// Written by scripts/report_types.py from {}: change it there, and run the script again."
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


def named_in(schema: Any) -> set[str]:
    """The models that a schema refers to."""
    if isinstance(schema, dict):
        own = {str(schema["$ref"]).rsplit("/", 1)[-1]} if "$ref" in schema else set()
        return own.union(*map(named_in, schema.values()))
    return set().union(*map(named_in, schema)) if isinstance(schema, list) else set()


def render() -> dict[str, str]:
    """The text of each file by its name."""
    from compiler import report

    whole = report.Report.model_json_schema(mode="serialization")
    models = {**whole.pop("$defs"), "Report": whole}
    home = {name: getattr(report, name).__module__.rsplit(".", 1)[-1] for name in models}
    files = {}
    for module in sorted(set(home.values())):
        own = [name for name in models if home[name] == module]
        others = sorted(set().union(*(named_in(models[name]) for name in own)) - set(own))
        imports = [
            f'import type {{ {", ".join(name for name in others if home[name] == other)} }} from "./{other}";'
            for other in sorted({home[name] for name in others})
        ]
        parts = [NOTICE.format(f"compiler/report/{module}.py"), *(["\n".join(imports)] if imports else [])]
        files[f"{module}.ts"] = "\n\n".join([*parts, *(interface(name, models[name]) for name in own)]) + "\n"
    exports = "\n".join(f'export type * from "./{module}";' for module in sorted(set(home.values())))
    version = f"/** Of the reports that these types are of. */\nexport const REPORT_VERSION = {report.REPORT_VERSION};"
    files["index.ts"] = f"{NOTICE.format('compiler/report/')}\n\n{exports}\n\n{version}\n"
    return files


def main() -> int:
    wanted = render()
    if "--check" in sys.argv[1:]:
        there = {path.name: path.read_text() for path in TARGET.glob("*")} if TARGET.is_dir() else {}
        return 0 if there == wanted else 1
    TARGET.mkdir(exist_ok=True)
    for path in TARGET.glob("*.ts"):
        path.unlink()
    for name, text in wanted.items():
        (TARGET / name).write_text(text)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
