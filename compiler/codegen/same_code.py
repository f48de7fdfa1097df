"""Find kernels that differ in names alone, as those of equal layers do: they are compiled and checked once.

`code_of` gives the text of a C++ kernel without comments, its variables numbered in the order in which they come:

    addmm_ptr[4 * m] = relu  →  $0[4 * m] = $1

Only variables, parameters and functions that the text itself defines are numbered, so two kernels of one code do the
same with their parameters, one by one. Of a Triton kernel it gives what Python compiles, in which variables are
numbers.
"""

from __future__ import annotations

import marshal
import re
from collections.abc import Mapping
from functools import lru_cache
from types import CodeType

import torch

from compiler.codegen.naming import RESERVED, identifier
from compiler.codegen.rendered import RenderedKernel
from compiler.ir.ops import NAMED

_COMMENT = re.compile(r"//[^\n]*")
_DEFINED = re.compile(r"\bvoid\s+(\w+)\s*\(")
#: Texts in quotes, names, numbers with what belongs to them, and single characters of anything else.
_TOKEN = re.compile(r'"(?:\\.|[^"\\])*"|' + r"'(?:\\.|[^'\\])*'|[A-Za-z_]\w*|[0-9][\w.]*|\n *|\S")
_TYPE = re.compile(r"u?int\d*_t|size_t")


def first_of_each_code(
    *renderings: Mapping[str, RenderedKernel], storage: Mapping[str, torch.dtype] | None = None
) -> dict[str, str]:
    """For each kernel, by its name, the first one of the same code in all renderings, which may be itself. `storage`
    has the dtypes of the parameters, where the text does not say them, as Triton's does not."""
    keys: dict[str, list[object]] = {}
    for rendering in renderings:
        for name, kernel in rendering.items():
            keys.setdefault(name, []).append(_key(kernel, storage or {}))
    seen: dict[object, str] = {}
    return {name: seen.setdefault(tuple(key), name) for name, key in keys.items()}


def _key(kernel: RenderedKernel, storage: Mapping[str, torch.dtype]) -> object:
    positions = {parameter: position for position, parameter in enumerate(kernel.parameters)}
    return (
        kernel.language,
        code_of(kernel),
        tuple(storage.get(parameter) for parameter in kernel.parameters),
        tuple(positions.get(parameter) for parameter in kernel.updates),
        tuple((positions[one.parameter], one.shape, one.strides, one.tile) for one in kernel.descriptors),
        repr(sorted(kernel.config.items())),
        tuple(atom.name for atom in kernel.sizes),
        str(kernel.grid),
        tuple(code_of(step) for step in kernel.steps),
    )


def code_of(kernel: RenderedKernel) -> str | bytes:
    """A kernel without its names; what is equal is equal code, for Triton under one version of Python."""
    if kernel.language == "triton":
        return _without_names(kernel.source, kernel.name)
    text = _without_remarks(kernel.source)
    defined = set(_DEFINED.findall(text))
    named = _names_in(kernel)
    numbers: dict[str, str] = {}
    tokens = _TOKEN.findall(text)
    for position, token in enumerate(tokens):
        before, after = tokens[position - 1] if position else "", tokens[position + 1 : position + 2]
        if before in (".", ":", ">") and _is_member(tokens, position):
            continue
        is_called = after == ["("]
        if token in defined or (_is_of(token, named) and not is_called):
            tokens[position] = numbers.setdefault(token, f"${len(numbers)}")
    return " ".join(tokens)


def _names_in(kernel: RenderedKernel) -> set[str]:
    """Those of the buffers and loop nodes that a kernel and its steps are about, as variables are called after them."""
    found = {identifier(name) for name in (*kernel.parameters, *(n for _, nodes in kernel.lines for n in nodes))}
    return found.union(*map(_names_in, kernel.steps))


def _without_remarks(source: str) -> str:
    """Long names break lines: only directives end with their line, others do not count."""
    lines = (line.strip() for line in _COMMENT.sub("", source).splitlines())
    return "".join(f"\n{line}\n" if line.startswith("#") else f"{line} " for line in lines)


def _is_member(tokens: list[str], position: int) -> bool:
    """Whether the name is looked up in something: `tl.sum`, `fs::sum`, `x->sum`."""
    two = "".join(tokens[max(position - 2, 0) : position])
    return tokens[position - 1] == "." or two.endswith(("::", "->"))


def _is_of(token: str, named: set[str]) -> bool:
    """Whether a variable is called after one of those names, as `addmm_ptr` and `addmm_2` are after `addmm`."""
    if token in RESERVED or token in NAMED or _TYPE.fullmatch(token):
        return False
    parts = token.split("_")
    return any("_".join(parts[:end]) in named for end in range(len(parts), 0, -1))


@lru_cache(maxsize=512)
def _without_names(source: str, name: str) -> bytes:
    """The module as Python's compiler has it, where variables are numbers, without comments and lines; and without the
    kernel's own name, those of its variables, and its docstring."""
    module = compile(source, name, "exec")
    return marshal.dumps(
        _without_locations(module).replace(
            co_names=tuple("kernel" if known == name else known for known in module.co_names),
            co_consts=tuple(
                _without_variables(one, source) if isinstance(one, CodeType) and one.co_name == name
                else _without_locations(one) if isinstance(one, CodeType)
                else one
                for one in module.co_consts
            ),
        ),
        0,  # later versions also tell which strings Python has interned
    )  # fmt: skip


def _without_variables(function: CodeType, source: str) -> CodeType:
    documented = re.search(rf"^def {function.co_name}\([^)]*\):\n\s*\"\"\"", source, re.MULTILINE) is not None
    return _without_locations(function).replace(
        co_name="kernel",
        co_qualname="kernel",
        # Block sizes are given by name.
        co_varnames=tuple(
            variable if variable.endswith("BLOCK") else f"_{position}"
            for position, variable in enumerate(function.co_varnames)
        ),
        co_consts=(None, *function.co_consts[1:]) if documented else function.co_consts,
    )


def _without_locations(code: CodeType) -> CodeType:
    return code.replace(co_filename="", co_firstlineno=1, co_linetable=b"")
