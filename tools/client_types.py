"""Write the client's view of the contract, as dataclasses, from the pydantic models of the service.

    python tools/client_types.py            # writes client/fusionscope_client/contract.py
    python tools/client_types.py --check    # exit status 1 if it is out of date

The client runs where neither pydantic nor the compiler is installed, on Python 3.9 and later: so the text says
`Optional[int]` and not `int | None`.
"""

from __future__ import annotations

import json
import sys
import textwrap
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
TARGET = ROOT / "client" / "fusionscope_client" / "contract.py"
sys.path.insert(0, str(ROOT))

HEAD = '''\
"""What the service answers with. Written by tools/client_types.py: change the models there, and run it again.

A field that a service of another version does not send has the value that it has here.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal, Optional, Union
'''
SCALARS = {"string": "str", "integer": "int", "number": "float", "boolean": "bool", "null": "None"}
EMPTY = {"str": '""', "int": "0", "float": "0.0", "bool": "False"}


def type_of(schema: dict[str, Any]) -> str:
    if "$ref" in schema:
        return str(schema["$ref"]).rsplit("/", 1)[-1]
    if "enum" in schema:
        return f"Literal[{', '.join(map(json.dumps, schema['enum']))}]"
    if "const" in schema:
        return f"Literal[{json.dumps(schema['const'])}]"
    if "anyOf" in schema:
        choices = [type_of(choice) for choice in schema["anyOf"]]
        named = [choice for choice in choices if choice != "None"]
        inner = named[0] if len(named) == 1 else f"Union[{', '.join(named)}]"
        return f"Optional[{inner}]" if "None" in choices else inner
    if "prefixItems" in schema:
        return f"tuple[{', '.join(map(type_of, schema['prefixItems']))}]"
    if schema.get("type") == "array":
        return f"list[{type_of(schema['items'])}]"
    if schema.get("type") == "object":
        return "dict[str, Any]"
    return SCALARS.get(str(schema.get("type")), "Any")


def default_of(schema: dict[str, Any], type_: str) -> str:
    """What the field is where the service did not send it: the model's own default, or an empty value."""
    value = schema.get("default", ...)
    if type_.startswith("list["):
        return "field(default_factory=list)"
    if type_.startswith("dict["):
        return "field(default_factory=dict)"
    if value is None or type_.startswith("Optional[") or type_ == "Any":
        return "None"
    if type_.isidentifier() and type_ not in EMPTY:
        return f"field(default_factory=lambda: {type_}())"
    if isinstance(value, bool | int | float | str):
        return repr(value) if not isinstance(value, str) else json.dumps(value)
    if type_.startswith("Literal["):
        return type_.removeprefix("Literal[").split(",")[0].rstrip("]")
    if type_.startswith("tuple["):
        return f"({', '.join(EMPTY[one] for one in type_[6:-1].split(', '))})"
    return EMPTY.get(type_, '""')


def dataclass_of(name: str, schema: dict[str, Any]) -> str:
    first = str(schema.get("description") or name).split("\n\n")[0]
    lines = ["@dataclass(frozen=True)", f"class {name}:"]
    lines += wrapped(" ".join(first.split()).replace("\\", "\\\\"), '    """', '"""', "    ")
    for property_name, told in schema["properties"].items():
        type_ = type_of(told)
        if told.get("description"):
            lines += ["", *wrapped(" ".join(str(told["description"]).split()), "    #: ", "", "    #: ")]
        lines += declared(property_name, type_, default_of(told, type_))
    return "\n".join(lines)


def wrapped(text: str, first: str, last: str, rest: str) -> list[str]:
    return textwrap.wrap(
        text + last, 120, initial_indent=first, subsequent_indent=rest, break_long_words=False, break_on_hyphens=False
    )


def declared(name: str, type_: str, default: str) -> list[str]:
    """The field on one line, or its choices on lines of their own where that would be too long."""
    line = f"    {name}: {type_} = {default}"
    if len(line) <= 120:
        return [line]
    head, choices = type_.rstrip("]").split("[", 1)
    return [f"    {name}: {head}[", f"        {choices}", f"    ] = {default}"]


def render() -> str:
    """The text of the client's module."""
    from compiler.comparison import Comparison
    from compiler.report import Report
    from compiler.why import Answer

    models: dict[str, Any] = {}
    for model in (Report, Answer, Comparison):
        whole = model.model_json_schema(mode="serialization")
        models |= {**whole.pop("$defs", {}), model.__name__: whole}
    return HEAD + "".join(f"\n\n{dataclass_of(name, schema)}\n" for name, schema in models.items())


def main() -> int:
    wanted = render()
    if "--check" in sys.argv[1:]:
        return 0 if TARGET.is_file() and TARGET.read_text() == wanted else 1
    TARGET.write_text(wanted)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
