"""The Triton kernels of a snippet's own: their text as a module by itself, and with what they are launched.

Dynamo keeps a kernel and its constant arguments in a table, and its call in a graph has their numbers. The text is what
Triton reads: the function and those of the snippet's that it calls, with the modules and constants that they name.
Decorators other than `triton.jit`, which choose how it is launched, are left out.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from types import ModuleType
from typing import Any

from torch.utils._pytree import tree_unflatten

from compiler.ir.nodes import ExternNode, TensorArgument
from compiler.lowering.tree_calls import Given, TreeCall, table_entry
from compiler.options import ELEMENTS
from compiler.wording import SNIPPET_FILE

#: A number is passed in 32 bits where it fits.
_LARGEST = 2**31 - 1


@dataclass
class UserKernel:
    """`lines` are those of `source` with the snippet's line of each. `arguments` are Triton's types, each with whether
    it is a multiple of 16. `problem` says, in a sentence, why it cannot be compiled on its own."""

    name: str
    source: str
    lines: dict[int, int]
    arguments: list[tuple[str, bool]] = field(default_factory=list)
    constants: dict[str, int] = field(default_factory=dict)
    launch: dict[str, int] = field(default_factory=dict)
    grid: list[int] | None = None
    problem: str | None = None


def user_kernel(node: ExternNode) -> UserKernel | None:
    """The Triton kernel that a library call launches, if it does."""
    found = table_entry(node.target) if isinstance(node.target, TreeCall) else None
    if found is None:
        return None
    function, config, named = found
    source, lines = _text(function)
    kernel = UserKernel(function.__name__, source, lines, grid=_grid(named))
    given = {**named["constants"], **named["kwargs"], **(config.kwargs if config is not None else {})}
    if config is not None:
        kernel.launch = {"num_warps": config.num_warps, "num_stages": config.num_stages}
    for parameter in function.params:
        _add(kernel, parameter, given, node)
    return kernel


def launches_alone(call: TreeCall, given: Sequence[Any]) -> Callable[[], None]:
    """Launches the kernel as the call with these arguments does, each time on the same copies of what it writes to."""
    from torch._higher_order_ops.triton_kernel_wrap import triton_kernel_wrapper_mutation
    from torch._prims_common import clone_preserve_strides

    _, immutable = tree_unflatten(call.filled(given), call.structure)
    named, kwargs = dict(immutable), dict(immutable["kwargs"])
    kwargs |= {name: clone_preserve_strides(kwargs[name]) for name in named.pop("tensors_to_clone")}
    return partial(triton_kernel_wrapper_mutation, **{**named, "kwargs": kwargs})


def _grid(named: Mapping[str, Any]) -> list[int] | None:
    grids = named["grid"]
    if len(grids) != 1 or not all(isinstance(size, int) for size in grids[0]):
        return None
    return list(grids[0])


def _add(kernel: UserKernel, parameter: Any, given: Mapping[str, Any], node: ExternNode) -> None:
    name = parameter.name
    if name not in given and parameter.has_default:
        given = {name: parameter.default}
    value = given.get(name)
    if isinstance(value, Given):
        argument = node.arguments[value.position]
        if not isinstance(argument, TensorArgument):
            kernel.arguments.append(("i64", False))
            return
        dtype = str(argument.layout.dtype).removeprefix("torch.")
        element = ELEMENTS.get(dtype, "u8" if dtype.startswith("float8") else "")
        kernel.arguments.append((f"*{element}", True))
        if not element:
            kernel.problem = f"Triton has no elements of {dtype}."
    elif isinstance(value, int) and (parameter.is_constexpr or (value == 1 and not isinstance(value, bool))):
        kernel.constants[name] = int(value)
    elif parameter.is_constexpr or not isinstance(value, int | float):
        kernel.problem = f"Its argument {name} is {value!r:.60}, and only whole numbers can be constants here."
    elif isinstance(value, bool):
        kernel.arguments.append(("i1", False))
    elif isinstance(value, float):
        kernel.arguments.append(("fp32", False))
    else:
        kernel.arguments.append(("i32" if abs(value) <= _LARGEST else "i64", value % 16 == 0))


# --- the text


def _text(function: Any) -> tuple[str, dict[int, int]]:
    needed = _needed(function)
    sources = [found.src for found in needed]
    head = ["import triton", "import triton.language as tl"]
    head += [line for line in _named(needed, "\n".join(sources)) if line not in head]
    written, lines = [*dict.fromkeys(head)], {}
    for found, source in zip(needed, sources, strict=True):
        written += ["", "", "@triton.jit"]
        first = _first_line(found)
        for position, line in enumerate(source.rstrip().splitlines()):
            written.append(line)
            if first is not None:
                lines[len(written)] = first + position
    return "\n".join(written) + "\n", lines


def _needed(function: Any) -> list[Any]:
    """The function and all with `@triton.jit` that it calls, those that are called first."""
    found: dict[int, Any] = {}

    def visit(one: Any) -> None:
        if id(one) in found:
            return
        found[id(one)] = None
        for value in _names(one).values():
            if hasattr(value, "params") and hasattr(value, "src") and not _is_tritons(value.fn):
                visit(value)
        del found[id(one)]
        found[id(one)] = one

    visit(function)
    return list(found.values())


def _names(function: Any) -> dict[str, Any]:
    known = inspect.getclosurevars(function.fn)
    return {**known.globals, **known.nonlocals}


def _named(needed: list[Any], text: str) -> Iterator[str]:
    """What defines the modules and constants that the functions name."""
    for function in needed:
        everything: dict[str, Any] = {**function.fn.__globals__, **_names(function)}
        for name in dict.fromkeys(re.findall(r"[A-Za-z_]\w*", text)):
            value = everything.get(name)
            if isinstance(value, ModuleType):
                yield f"import {value.__name__} as {name}"
            elif isinstance(value, bool | int | float | str):
                yield f"{name} = {value!r}"
            elif value is not None and type(value).__name__ == "constexpr":
                yield f"{name} = tl.constexpr({value.value!r})"
            elif value is not None and _is_tritons(value):
                yield f"from {value.__module__} import {value.__name__} as {name}"


def _is_tritons(value: Any) -> bool:
    return str(getattr(value, "__module__", "")).startswith("triton.") and hasattr(value, "__name__")


def _first_line(function: Any) -> int | None:
    """The snippet's line of its `def`; None for one that is not the snippet's."""
    if function.fn.__code__.co_filename != SNIPPET_FILE:
        return None
    before = next((n for n, line in enumerate(function.raw_src) if line.lstrip().startswith("def ")), 0)
    return int(function.starting_line_number) + before
