"""Find kernels that differ in names alone, as those of equal layers do: they are compiled and checked once.

`code_of` gives the text of a kernel without comments, its variables numbered in the order in which they come:

    addmm_ptr[4 * m] = relu  →  $0[4 * m] = $1

Only variables, parameters and functions that the text itself defines are numbered, so two kernels of one code do the
same with their parameters, place by place.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Mapping

import torch

from compiler.codegen.naming import RESERVED, identifier
from compiler.codegen.rendered import RenderedKernel
from compiler.ir.ops import NAMED

_COMMENT = re.compile(r"//[^\n]*")
_DEFINED = re.compile(r"\b(?:def|void)\s+(\w+)\s*\(")
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
    places = {parameter: place for place, parameter in enumerate(kernel.parameters)}
    return (
        kernel.language,
        code_of(kernel),
        tuple(storage.get(parameter) for parameter in kernel.parameters),
        tuple(places.get(parameter) for parameter in kernel.updates),
        tuple((places[one.parameter], one.shape, one.strides, one.tile) for one in kernel.descriptors),
        repr(sorted(kernel.config.items())),
        tuple(atom.name for atom in kernel.sizes),
        str(kernel.grid),
        tuple(code_of(step) for step in kernel.steps),
    )


def code_of(kernel: RenderedKernel) -> str:
    """The text of a kernel with its names numbered; equal texts are equal code."""
    text = _without_remarks(kernel)
    defined = set(_DEFINED.findall(text))
    named = _names_in(kernel)
    numbers: dict[str, str] = {}
    tokens = _TOKEN.findall(text)
    for place, token in enumerate(tokens):
        before, after = tokens[place - 1] if place else "", tokens[place + 1 : place + 3]
        if before in (".", ":", ">") and _is_member(tokens, place):
            continue
        is_called = after[:1] == ["("]
        is_keyword = kernel.language == "triton" and after[:1] == ["="] and after[1:] != ["="] and before in ("(", ",")
        if token in defined or (_is_of(token, named) and not is_called and not is_keyword):
            tokens[place] = numbers.setdefault(token, f"${len(numbers)}")
    return " ".join(tokens)


def _names_in(kernel: RenderedKernel) -> set[str]:
    """Those of the buffers and loop nodes that a kernel and its steps are about, as variables are called after them."""
    found = {identifier(name) for name in (*kernel.parameters, *(n for _, nodes in kernel.lines for n in nodes))}
    return found.union(*map(_names_in, kernel.steps))


def _without_remarks(kernel: RenderedKernel) -> str:
    """Long names break lines, so those of Triton are joined by printing the program anew; in C++, where only
    directives end with their line, others do not count."""
    if kernel.language == "triton":
        tree = ast.parse(kernel.source)
        for function in ast.walk(tree):
            if isinstance(function, ast.FunctionDef) and ast.get_docstring(function) is not None:
                del function.body[0]
        return ast.unparse(tree)
    lines = (line.strip() for line in _COMMENT.sub("", kernel.source).splitlines())
    return "".join(f"\n{line}\n" if line.startswith("#") else f"{line} " for line in lines)


def _is_member(tokens: list[str], place: int) -> bool:
    """Whether the name is looked up in something: `tl.sum`, `fs::sum`, `x->sum`."""
    two = "".join(tokens[max(place - 2, 0) : place])
    return tokens[place - 1] == "." or two.endswith(("::", "->"))


def _is_of(token: str, named: set[str]) -> bool:
    """Whether a variable is called after one of those names, as `addmm_ptr` and `addmm_2` are after `addmm`."""
    if token in RESERVED or token in NAMED or _TYPE.fullmatch(token):
        return False
    parts = token.split("_")
    return any("_".join(parts[:end]) in named for end in range(len(parts), 0, -1))
