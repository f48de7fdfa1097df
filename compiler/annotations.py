"""Annotations that say what a tensor is like, such as `x: f32[4096, 4096]`."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from compiler.options import InputSpec

_SHORT_DTYPES = {
    "f16": "float16",
    "f32": "float32",
    "f64": "float64",
    "bf16": "bfloat16",
    "i8": "int8",
    "i16": "int16",
    "i32": "int32",
    "i64": "int64",
    "u8": "uint8",
    "b8": "bool",
}
_DTYPES = {**_SHORT_DTYPES, **{name: name for name in _SHORT_DTYPES.values()}}

Function = ast.FunctionDef | ast.AsyncFunctionDef


def annotated_inputs(tree: ast.Module, function: str, class_name: str | None = None) -> dict[str, InputSpec]:
    """Inputs that the annotations of a function (or of a method of a class) describe, by parameter."""
    for node in _functions(tree, class_name):
        if node.name == function:
            parameters = [*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs]
            specs = ((parameter.arg, input_of_annotation(parameter.annotation)) for parameter in parameters)
            return {name: spec for name, spec in specs if spec is not None}
    return {}


def has_shape_annotations(tree: ast.Module) -> bool:
    """Whether any annotation of the snippet describes a tensor."""
    for node in ast.walk(tree):
        if isinstance(node, ast.arg | ast.AnnAssign) and input_of_annotation(node.annotation) is not None:
            return True
        if isinstance(node, Function) and input_of_annotation(node.returns) is not None:
            return True
    return False


def input_of_annotation(annotation: ast.expr | None) -> InputSpec | None:
    """`f32[8, 16]`, `"bf16[8]"`, `i64[()]` or bare `f32[]` in quotes; None for any other annotation."""
    if isinstance(annotation, ast.Constant) and isinstance(annotation.value, str):
        return _input_of_text(annotation.value)
    if not isinstance(annotation, ast.Subscript) or not isinstance(annotation.value, ast.Name | ast.Attribute):
        return None
    owner = annotation.value
    dtype = _DTYPES.get(owner.id if isinstance(owner, ast.Name) else owner.attr)
    sizes = annotation.slice.elts if isinstance(annotation.slice, ast.Tuple) else [annotation.slice]
    numbers = [size.value for size in sizes if isinstance(size, ast.Constant) and type(size.value) is int]
    if dtype is None or len(numbers) != len(sizes) or any(number < 0 for number in numbers):
        return None
    return InputSpec(shape=tuple(numbers), dtype=dtype)


def _input_of_text(text: str) -> InputSpec | None:
    name, _, rest = text.strip().partition("[")
    if rest.strip() == "]" and name in _DTYPES:
        return InputSpec(shape=(), dtype=_DTYPES[name])
    try:
        parsed = ast.parse(text.strip(), mode="eval").body
    except SyntaxError:
        return None
    return None if isinstance(parsed, ast.Constant) else input_of_annotation(parsed)


def _functions(tree: ast.Module, class_name: str | None) -> Iterator[Function]:
    for statement in tree.body:
        if class_name is None and isinstance(statement, Function):
            yield statement
        elif isinstance(statement, ast.ClassDef) and statement.name == class_name:
            yield from (node for node in statement.body if isinstance(node, Function))
