"""Reading the text that TorchInductor generates: kernels, the wrapper that launches them, and which line computes what.

A kernel's lines name no node. But a line is there for what it stores in the end: from each store, values are followed
back to their loads, and every line on the way belongs to the nodes that the stored buffer is made of. Where a line
calls a function that is named as one of these nodes is, as `exp` is, it belongs to that node alone.
"""

from __future__ import annotations

import ast
import re
import textwrap
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

_CALLED = re.compile(r"\s*(?:\w+ = )?((?:extern_kernels|torch\.ops|aten|inductor_ops)[\w.]*)\(")
_REUSE = re.compile(r"^\s*(\w+) = (?:reinterpret_tensor\()?(\w+)\b.*# reuse$")
_SAME_POINTER = re.compile(r"^\s*auto (\w+) = (\w+);", re.M)
_VALUE = re.compile(r"\b_?tmp\w*\b")
_DEFINED = re.compile(r"^\s*(auto |[\w:<>]+ )?(_?tmp\w*) =[^=]")
_FUNCTION = re.compile(r"(\w+)\(")


def generated_sources(text: str) -> dict[str, str]:
    """Kernel name → source, from the definitions `name = async_compile.triton('name', '''...''')` of a module."""
    try:
        tree = ast.parse(text)
    except SyntaxError:
        return {}
    sources: dict[str, str] = {}
    for statement in tree.body:
        if not (isinstance(statement, ast.Assign) and isinstance(statement.value, ast.Call)):
            continue
        function, target = statement.value.func, statement.targets[0]
        is_compile = isinstance(function, ast.Attribute) and ast.unparse(function.value) == "async_compile"
        strings = [a.value for a in statement.value.args if isinstance(a, ast.Constant) and isinstance(a.value, str)]
        if is_compile and isinstance(target, ast.Name) and strings:
            sources[target.id] = max(strings, key=len).strip("\n")
    return sources


def library_calls(text: str) -> dict[str, list[str]]:
    """Called name → its statements in the wrapper, such as `extern_kernels.mm(arg0_1, arg1_1, out=buf3)`."""
    calls: dict[str, list[str]] = {}
    for line in text.splitlines():
        if found := _CALLED.match(line):
            name, statement = found.group(1), line.strip()
            calls.setdefault(name, []).append(statement)
            # The hook names an operator's overload that the wrapper may leave out.
            calls.setdefault(f"{name}.default", []).append(statement)
    return calls


@dataclass
class Wrapper:
    """The function that launches: its text; for each launch its line, counted from 1, and its arguments; and which
    buffer gets the memory of which."""

    text: str = ""
    launches: dict[str, list[tuple[int, list[str]]]] = field(default_factory=dict)
    reuses: dict[str, str] = field(default_factory=dict)


def wrapper_of(module: str) -> Wrapper:
    """The `call` of a generated module; an empty one where there is none."""
    try:
        tree = ast.parse(module)
    except SyntaxError:
        return Wrapper()
    found = [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef) and node.name == "call"]
    if not found:
        return Wrapper()
    first, last = found[0].lineno, found[0].end_lineno
    wrapper = Wrapper(textwrap.dedent("\n".join(module.splitlines()[first - 1 : last])))
    calls = [node for node in ast.walk(found[0]) if isinstance(node, ast.Call)]
    for call in sorted(calls, key=lambda call: call.lineno):
        name = ast.unparse(call.func).removesuffix(".run").removesuffix(".default")
        wrapper.launches.setdefault(name, []).append((call.lineno - first + 1, [_root(one) for one in call.args]))
    wrapper.reuses = {found[1]: found[2] for found in map(_REUSE.match, wrapper.text.splitlines()) if found}
    return wrapper


def _root(argument: ast.expr) -> str:
    """`buf4` of `reinterpret_tensor(buf4, ...)`."""
    while isinstance(argument, ast.Call) and argument.args:
        argument = argument.args[0]
    return ast.unparse(argument)


def buffers_of_pointers(source: str, arguments: Sequence[str], reuses: Mapping[str, str]) -> dict[str, list[str]]:
    """Each pointer of a kernel, and the buffers that it stands for: that of the call, and those whose memory it got."""
    head = re.search(r"\bkernel\s*\(([^)]*)\)|^def \w+\(([^)]*)\)", source, re.M)
    if head is None:
        return {}
    names = [part.split()[-1].lstrip("*&") for part in (head[1] or "").split(",") if part.strip()]
    names = names or [part.split(":")[0].strip() for part in (head[2] or "").split(",")]
    found: dict[str, list[str]] = {}
    for name, argument in zip(names, arguments, strict=False):
        buffers = [argument]
        while buffers[-1] in reuses and len(buffers) < len(reuses) + 1:
            buffers.append(reuses[buffers[-1]])
        found[name] = buffers
    for other, name in _SAME_POINTER.findall(source):
        if name in found:
            found[other] = found[name]
    return found


def nodes_of_lines(
    source: str, pointers: Mapping[str, Sequence[str]], made_of: Mapping[str, Sequence[str]]
) -> dict[int, list[str]]:
    """Line, counted from 1 → the nodes that it computes for. `made_of` are the nodes of each buffer that the kernel
    writes."""
    stored = {
        name: nodes
        for name, buffers in pointers.items()
        if (nodes := unique(node for buffer in buffers for node in made_of.get(buffer, ())))
    }
    feeds: dict[str, list[str]] = {}
    found: dict[int, list[str]] = {}
    lines = source.splitlines()
    for number in range(len(lines), 0, -1):
        line = lines[number - 1]
        values = _VALUE.findall(line)
        defined = _DEFINED.match(line)
        own = [node for name in stored if _stores(line, name) for node in stored[name]]
        if defined:
            own += feeds.get(defined[2], [])
            # What is declared, or made of other values alone, is another one further up.
            if defined[1] or values.count(defined[2]) == 1:
                feeds.pop(defined[2], None)
        own = unique(own)
        if own and values:
            for value in values[1 if defined else 0 :]:
                feeds[value] = unique([*feeds.get(value, ()), *own])
            found[number] = _called_in(line, own) or own
    return dict(sorted(found.items()))


def _stores(line: str, pointer: str) -> bool:
    return bool(
        re.search(rf"(?:store|atomic_add)\w*\(\s*&?{pointer}\b", line) or re.match(rf"\s*{pointer}\[.*\] [+]?= ", line)
    )


def _called_in(line: str, nodes: Iterable[str]) -> list[str]:
    called = set(_FUNCTION.findall(line))
    return [node for node in nodes if re.sub(r"_\d+$", "", node) in called]


def unique(items: Iterable[str]) -> list[str]:
    """Each once, in the order of their first."""
    return list(dict.fromkeys(items))
