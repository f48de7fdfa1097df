"""The text of a function, and of all that it needs, as one program that the service can run.

A service has no access to the caller's memory, so a function is sent as text: its own, that of the functions and
classes of its module that it uses, and of theirs; imports, made from what the names stand for; and numbers, texts and
dtypes that it reads from its module. Arguments become the call at the end: a tensor is sent as its shape, dtype and
strides, an integer tensor with the range of its values, and never with the values themselves.
"""

from __future__ import annotations

import ast
import builtins
import inspect
import linecache
import os
import symtable
import textwrap
from pathlib import Path
from types import FunctionType, ModuleType
from typing import Any, Optional

from fusionscope_client.errors import NotASource

_PLAIN = (bool, int, float, complex, str, bytes, type(None))


def source_of(program: Any, *args: Any) -> str:
    """The program as text. `program` is a text, a path of a file, or a function; `args` are those of one call of a
    function. Raises `NotASource`, in a sentence that says what cannot be sent and what can."""
    if isinstance(program, os.PathLike):
        return _without_args(Path(program).read_text(encoding="utf-8"), args)
    if isinstance(program, str):
        is_path = program.endswith(".py") and "\n" not in program
        return _without_args(Path(program).read_text(encoding="utf-8") if is_path else program, args)
    function = inspect.unwrap(program) if callable(program) else program
    if not isinstance(function, FunctionType):
        raise NotASource(
            f"This {type(program).__name__} cannot be sent: its state is here and not at the service. Give the text of "
            "a program that makes it and calls it, or a function that does."
        )
    if function.__name__ == "<lambda>":
        raise NotASource("A lambda has no text of its own that can be sent: give it a name with def.")
    if function.__closure__:
        names = ", ".join(function.__code__.co_freevars)
        raise NotASource(f"{function.__name__} uses {names} of the function around it: make them arguments.")
    needed = _Needed(function.__globals__)
    needed.take(function.__name__, function)
    call = f"{function.__name__}({', '.join(_argument(value) for value in args)})\n" if args else ""
    return needed.text() + (f"\n\n{call}" if call else "")


def _without_args(text: str, args: tuple[Any, ...]) -> str:
    if args:
        raise NotASource("Arguments go with a function: the text of a program says itself what it calls.")
    return text


class _Needed:
    """The definitions that a function needs, each before its first use."""

    def __init__(self, namespace: dict[str, Any]) -> None:
        self._namespace = namespace
        self._imports: dict[str, str] = {"torch": "import torch"}
        self._values: dict[str, str] = {}
        self._definitions: dict[str, str] = {}
        self._begun: set[str] = set()

    def text(self) -> str:
        blocks = ["\n".join(self._imports.values())]
        if self._values:
            blocks.append("\n".join(self._values.values()))
        return "\n\n\n".join([*blocks, *self._definitions.values()]) + "\n"

    def take(self, name: str, value: Any) -> None:
        """Takes what `name` stands for, and first all that its text needs."""
        if name in self._begun:
            return
        self._begun.add(name)
        if isinstance(value, ModuleType):
            own = value.__name__
            self._imports[name] = f"import {own}" if name == own else _import_as(own, name)
        elif isinstance(value, (FunctionType, type)) and self._is_of_here(value):
            text = _definition(value)
            for used in _names_read(text):
                if used in self._namespace and used != name:
                    self.take(used, self._namespace[used])
            self._definitions[name] = text
        elif hasattr(value, "__module__") and hasattr(value, "__qualname__"):
            alias = "" if value.__qualname__ == name else f" as {name}"
            self._imports[name] = f"from {value.__module__} import {value.__qualname__}{alias}"
        else:
            self._values[name] = f"{name} = {_plain(value, name)}"

    def _is_of_here(self, value: Any) -> bool:
        return bool(value.__module__ == self._namespace.get("__name__"))


def _import_as(module: str, name: str) -> str:
    above, _, last = module.rpartition(".")
    if above and last == name:
        return f"from {above} import {name}"
    # `import torch.nn.functional` binds `torch`; the name that is used is that of its first part.
    return f"import {module} as {name}"


def _definition(value: Any) -> str:
    try:
        return textwrap.dedent(inspect.getsource(value)).strip()
    except (OSError, TypeError):
        text = _class_text(value) if isinstance(value, type) else None
    if text is None:
        raise NotASource(f"The text of {value.__name__} is not known: define it in a file or in a notebook's cell.")
    return text


def _class_text(of: type) -> Optional[str]:
    """The text of a class that a notebook defined: Python before 3.13 looks for its module's file, which there is
    none of, but its methods know the cell."""
    for member in vars(of).values():
        code = getattr(inspect.unwrap(member) if callable(member) else member, "__code__", None)
        lines = linecache.getlines(code.co_filename) if code is not None else []
        for node in ast.walk(ast.parse("".join(lines))) if lines else ():
            if isinstance(node, ast.ClassDef) and node.name == of.__name__:
                first = min([node.lineno, *(decorator.lineno for decorator in node.decorator_list)])
                return textwrap.dedent("".join(lines[first - 1 : node.end_lineno])).strip()
    return None


def _names_read(text: str) -> list[str]:
    """Names of the module that a definition reads, in order, those of annotations and decorators among them. A
    parameter or a variable of its own may have the name of something else in the module."""
    found: dict[str, None] = {}
    outside = _names_from_outside(symtable.symtable(text, "definition", "exec"))
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Name) and node.id in outside and not hasattr(builtins, node.id):
            found[node.id] = None
    return list(found)


def _names_from_outside(scope: symtable.SymbolTable) -> set[str]:
    """Names that a scope, or one within it, reads and does not bind."""
    is_module = scope.get_type() == "module"
    read = (one for one in scope.get_symbols() if one.is_referenced())
    names = {one.get_name() for one in read if is_module or one.is_global()}
    return names.union(*map(_names_from_outside, scope.get_children()))


def _plain(value: Any, name: str) -> str:
    """A value as text that gives it again."""
    if type(value).__name__ in ("dtype", "device") and type(value).__module__ == "torch":
        return str(value) if type(value).__name__ == "dtype" else f"torch.device({str(value)!r})"
    if isinstance(value, _PLAIN) and repr(value) not in ("nan", "inf", "-inf"):
        return repr(value)
    if isinstance(value, float):
        return f"float({str(value)!r})"
    if isinstance(value, (list, tuple)) and type(value) in (list, tuple):
        items = ", ".join(_plain(one, name) for one in value)
        return f"[{items}]" if isinstance(value, list) else f"({items}{',' if len(value) == 1 else ''})"
    if type(value) is dict:
        return "{" + ", ".join(f"{_plain(key, name)}: {_plain(one, name)}" for key, one in value.items()) + "}"
    raise NotASource(
        f"{name} is a {type(value).__name__}, which cannot be sent: "
        + ("pass it as an argument, or make it" if hasattr(value, "dtype") else "make it")
        + " within the function."
    )


def _argument(value: Any) -> str:
    if not (hasattr(value, "shape") and hasattr(value, "dtype")):
        if isinstance(value, (list, tuple)) and any(hasattr(one, "dtype") for one in value):
            items = ", ".join(map(_argument, value))
            return f"[{items}]" if isinstance(value, list) else f"({items}{',' if len(value) == 1 else ''})"
        if type(value) is dict:
            return "{" + ", ".join(f"{_plain(key, 'A key')}: {_argument(one)}" for key, one in value.items()) + "}"
        return _plain(value, "An argument")
    layout = str(getattr(value, "layout", "torch.strided"))
    if layout != "torch.strided":
        raise NotASource(f"An argument is a tensor of the layout {layout}: make it within the function.")
    return _tensor(value)


def _tensor(value: Any) -> str:
    """An expression that makes such a tensor, with other values, in as much memory."""
    size = tuple(int(length) for length in value.shape)
    keywords = f"dtype=torch.{_dtype(value)}"
    device = getattr(getattr(value, "device", None), "type", "cpu")
    keywords += f', device="{device}"' if device not in ("cpu", "meta") else ""
    strides = _strides(value)
    if strides is None:
        made = _random(value, size, keywords)
    elif _meets_itself(size, strides):
        extent = 1 + sum((length - 1) * stride for length, stride in zip(size, strides))
        made = f"{_random(value, (extent,), keywords)}.as_strided({size}, {strides})"
    else:
        made = f"torch.empty_strided({size}, {strides}, {keywords}).copy_({_random(value, size, keywords)})"
    return f"{made}.requires_grad_()" if getattr(value, "requires_grad", False) else made


def _dtype(value: Any) -> str:
    return str(value.dtype).rpartition(".")[2]


def _random(value: Any, size: tuple[int, ...], keywords: str) -> str:
    """Random numbers as `value` could have them, as a contiguous tensor."""
    dtype = _dtype(value)
    if dtype == "bool":
        return f"torch.randint(0, 2, {size}, {keywords})"
    if dtype.startswith(("int", "uint")):
        low, high = _range(value)
        return f"torch.randint({low}, {high + 1}, {size}, {keywords})"
    if dtype.startswith("float8"):
        return f"torch.randn({size}).to({keywords})"
    return f"torch.randn({size}, {keywords})"


def _range(value: Any) -> tuple[int, int]:
    """The least and the largest value: a program may use them as indices. What is repeated is looked at once."""
    strides = _strides(value) or ()
    try:
        for place in reversed([place for place, stride in enumerate(strides) if stride == 0]):
            value = value.select(place, 0)
        return int(value.min()), int(value.max())
    except (RuntimeError, ValueError, NotImplementedError):  # empty, or without values
        return 0, 9


def _strides(value: Any) -> Optional[tuple[int, ...]]:
    """In elements, of a tensor that is not contiguous."""
    if not callable(getattr(value, "is_contiguous", None)) or value.is_contiguous():
        return None
    return tuple(int(stride) for stride in value.stride())


def _meets_itself(size: tuple[int, ...], strides: tuple[int, ...]) -> bool:
    """Whether elements may share memory, as those of an expanded tensor and of sliding windows do."""
    extent = 1
    for stride, length in sorted((stride, length) for length, stride in zip(size, strides) if length > 1):
        if stride < extent:
            return True
        extent += (length - 1) * stride
    return False
