"""The sizes that a snippet names, and the same snippet with another number in their place.

    N                  a whole number assigned once at top level: `N = 1024`, `B, N = 4, 2 * 512`
    x.shape[0]         a dimension of an argument, where an annotation such as `x: f32[4096, 4096]` says what it is like
    inputs[0].shape[1] a dimension of an input that the request gives
    4096               the number itself, wherever it is written: `nn.Linear(4096, 4096)`

Only the text of the number is replaced, so every line keeps its place.
"""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from compiler.annotations import input_of_annotation
from compiler.options import InputSpec, Options
from compiler.whole_numbers import whole_number
from compiler.wording import line_list

_DIMENSION = re.compile(r"\s*(\w+|inputs\[\d+\])\s*\.\s*shape\s*\[\s*(-?\d+)\s*\]\s*")
#: Sizes that are offered; a reader who needs more of them reads the snippet. Smaller numbers are seldom sizes.
MOST_OFFERED, _LEAST_OFFERED = 12, 16
_SCOPES = (
    *(ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda),
    *(ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp),
)


class UnknownSize(Exception):
    """The snippet names no such size, or names it twice; the message says which sizes it does name."""


#: First byte, byte after the last, and the text that a new value is put into.
Span = tuple[int, int, str]


@dataclass(frozen=True)
class Size:
    """A size with its value as written, and the lines and bytes of the source that hold it. A size of the request has
    none of them, but the position of its input and its dimension."""

    name: str
    value: int
    lines: tuple[int, ...] = ()
    spans: tuple[Span, ...] = ()
    given: tuple[int, int] | None = None

    def __str__(self) -> str:
        known = str(self.value) if self.name != str(self.value) else ""
        return f"{self.name} ({', '.join(part for part in (known, line_list(self.lines)) if part)})"


def with_size(source: str, options: Options, names: str, value: int) -> tuple[str, Options]:
    """The snippet and its options with `value` for each size of `names`, which commas separate.

    Raises `UnknownSize`, and SyntaxError where the source is no Python."""
    parts = [part.strip().replace("_", "") if part.strip()[:1].isdigit() else part.strip() for part in names.split(",")]
    sizes = sizes_of(source, options)
    for name in parts:
        if _normal(name, sizes) not in sizes:
            raise UnknownSize(_why_unknown(name, source, options))
    for name in parts:
        # Positions move as the text changes, and a size may be in the text of another one (`N = M = 4`).
        sizes = sizes_of(source, options)
        size = sizes.get(_normal(name, sizes))
        if size is not None:  # a number that another of the names has replaced is there no longer
            source, options = _put(source, options, size, value)
    return source, options


def sizes_of(source: str, options: Options) -> dict[str, Size]:
    """Every size that a sweep can name, by its name. Raises SyntaxError where the source is no Python."""
    tree = ast.parse(source)
    found = [
        *_assigned(tree, source),
        *_annotated(tree, source),
        *_given(options.inputs or ()),
        *_written(tree, source),
    ]
    return {size.name: size for size in found}


def offered(source: str, options: Options) -> list[Size]:
    """The sizes that are worth a sweep: those that have a name, and numbers of some size that stand elsewhere too. None
    where the source is no Python."""
    try:
        sizes = sizes_of(source, options).values()
    except (SyntaxError, ValueError, RecursionError, MemoryError):  # the last is Python's word for too deep a nesting
        return []
    named = [size for size in sizes if not size.name.isdigit()]
    spans = [span for size in named for span in size.spans]
    numbers = [
        size
        for size in sizes
        if size.name.isdigit()
        and size.value >= _LEAST_OFFERED
        and not all(_is_within(one, spans) for one in size.spans)
    ]
    return [*named, *numbers][:MOST_OFFERED]


def _is_within(one: Span, others: Sequence[Span]) -> bool:
    return any(start <= one[0] and one[1] <= end for start, end, _ in others)


def _put(source: str, options: Options, size: Size, value: int) -> tuple[str, Options]:
    if size.given is not None:
        return source, _with_input(options, *size.given, value)
    raw = source.encode()
    for start, end, text in sorted(size.spans, reverse=True):
        raw = raw[:start] + text.format(value).encode() + raw[end:]
    return raw.decode(), options


def _normal(name: str, sizes: Mapping[str, Size]) -> str:
    """`x.shape[-1]` by the number that the dimension has from the front."""
    matched = _DIMENSION.fullmatch(name)
    if matched is None:
        return name
    owner, dimension = matched[1], int(matched[2])
    rank = sum(other.startswith(f"{owner}.shape[") for other in sizes)
    return f"{owner}.shape[{dimension + rank if dimension < 0 else dimension}]"


def _why_unknown(name: str, source: str, options: Options) -> str:
    lines = sorted({node.lineno for node in _stores(ast.parse(source)) if node.id == name})
    if len(lines) > 1:
        said = f"{name} is assigned more than once, at lines {', '.join(map(str, lines))}, so it is no one size."
    elif lines:
        said = f"{name}, assigned at line {lines[0]}, is not written as a whole number."
    else:
        said = f"The snippet names no size {name!r}."
    listed = ", ".join(map(str, offered(source, options)))
    if not listed:
        return f"{said} It names none at all: write one at top level, as in `N = 1024`, and use it in the shapes."
    return f"{said} Its sizes are {listed}."


# --- whole numbers at top level


def _assigned(tree: ast.Module, source: str) -> Iterator[Size]:
    starts = _line_starts(source)
    times = Counter(node.id for node in _stores(tree))
    known: dict[str, int] = {}
    for target, value in _assignments(tree.body):
        number = whole_number(value, known)
        if number is None or times[target.id] > 1:
            continue
        known[target.id] = number
        if number >= 0:
            yield Size(target.id, number, (target.lineno,), ((*_span(value, starts), "{}"),))


def _assignments(body: Sequence[ast.stmt]) -> Iterator[tuple[ast.Name, ast.expr]]:
    """Names with what is assigned to them, also below an `if` at top level (`if __name__ == "__main__":`)."""
    for statement in body:
        match statement:
            case ast.Assign(targets=targets, value=value):
                for target in targets:
                    yield from _paired(target, value)
            case ast.AnnAssign(target=ast.Name() as target, value=ast.expr() as value):
                yield target, value
            case ast.If(body=then, orelse=otherwise):
                yield from _assignments([*then, *otherwise])


def _paired(target: ast.expr, value: ast.expr) -> Iterator[tuple[ast.Name, ast.expr]]:
    match target, value:
        case ast.Name(), _:
            yield target, value
        case (ast.Tuple(elts=targets), ast.Tuple(elts=values)):
            if len(targets) == len(values):
                for one, other in zip(targets, values, strict=True):
                    yield from _paired(one, other)


def _stores(tree: ast.Module) -> Iterator[ast.Name]:
    """Where the module itself, and no function, class or comprehension in it, gives a value to a name."""
    waiting: list[ast.AST] = list(tree.body)
    while waiting:
        node = waiting.pop()
        if isinstance(node, _SCOPES):
            continue
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node
        waiting += ast.iter_child_nodes(node)


# --- dimensions of arguments


def _annotated(tree: ast.Module, source: str) -> Iterator[Size]:
    """Dimensions of annotated parameters; parameters of one name in several functions are one size."""
    starts = _line_starts(source)
    found: dict[str, Size] = {}
    for parameter in (node for node in ast.walk(tree) if isinstance(node, ast.arg)):
        spec = input_of_annotation(parameter.annotation)
        if spec is None or parameter.annotation is None:
            continue
        start, end = _span(parameter.annotation, starts)
        for dimension, value in enumerate(spec.shape):
            name = f"{parameter.arg}.shape[{dimension}]"
            before = found.get(name, Size(name, value))
            replaced = (start, end, _annotation(spec, dimension, source.encode()[start:end].count(b"\n")))
            lines = dict.fromkeys((*before.lines, parameter.lineno))
            found[name] = Size(name, value, tuple(lines), (*before.spans, replaced))
    yield from found.values()


def _annotation(spec: InputSpec, dimension: int, line_ends: int) -> str:
    """The annotation anew with a place for one of its sizes, on as many lines."""
    sizes = ["{}" if position == dimension else str(size) for position, size in enumerate(spec.shape)]
    return f'"{spec.dtype}[{", ".join(sizes)}]"' + "\n" * line_ends


def _written(tree: ast.Module, source: str) -> Iterator[Size]:
    """Every whole number that stands in the source, with all its nodes; those in texts are left as they are."""
    starts = _line_starts(source)
    found: dict[int, list[ast.Constant]] = {}
    waiting: list[ast.AST] = [tree]
    while waiting:
        node = waiting.pop()
        # Before Python 3.12 what is in an f-string has no position of its own.
        if isinstance(node, ast.JoinedStr):
            continue
        if isinstance(node, ast.Constant) and type(node.value) is int:
            found.setdefault(node.value, []).append(node)
        waiting += ast.iter_child_nodes(node)
    for number, nodes in sorted(found.items()):
        lines = tuple(sorted({node.lineno for node in nodes}))
        yield Size(str(number), number, lines, tuple((*_span(node, starts), "{}") for node in nodes))


def _given(inputs: Sequence[InputSpec]) -> Iterator[Size]:
    for position, spec in enumerate(inputs):
        for dimension, value in enumerate(spec.shape):
            yield Size(f"inputs[{position}].shape[{dimension}]", value, given=(position, dimension))


def _with_input(options: Options, position: int, dimension: int, value: int) -> Options:
    inputs = list(options.inputs or ())
    shape = list(inputs[position].shape)
    shape[dimension] = value
    inputs[position] = inputs[position].model_copy(update={"shape": tuple(shape)})
    return options.model_copy(update={"inputs": tuple(inputs)})


# --- spans in the source, in bytes, as the syntax tree counts columns


def _line_starts(source: str) -> list[int]:
    starts = [0]
    for line in source.encode().splitlines(keepends=True):
        starts.append(starts[-1] + len(line))
    return starts


def _span(node: ast.expr, starts: Sequence[int]) -> tuple[int, int]:
    assert node.end_lineno is not None and node.end_col_offset is not None
    return starts[node.lineno - 1] + node.col_offset, starts[node.end_lineno - 1] + node.end_col_offset
