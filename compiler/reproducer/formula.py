"""What a kernel computes, as torch operations on whole tensors: each instruction of a loop body is one line.

    v0 = load addmm[768 * x0 + x1]        v0 = load(addmm, 768 * x0 + x1)
    v1 = 0.5: float32                     v1 = constant(0.5, real)
    v2 = mul v0, v1                       v2 = torch.mul(v0, v1)
    store mul[768 * x0 + x1] = v2         store(mul, 768 * x0 + x1, v2)

Floating-point values have the dtype `real` that the function is given: float64 makes it the reference.
"""

from __future__ import annotations

import keyword
import re
from collections.abc import Callable, Iterator, Mapping, Sequence

from compiler.report import Graph, Kernel, LoopNode
from compiler.reproducer.sizes import Layout, numbers
from compiler.reproducer.texts import HELPERS

#: Names of torch's own functions of the same name and meaning.
_OF_TORCH = frozenset(
    "neg abs square floor ceil trunc round sign bitwise_not relu sqrt rsqrt reciprocal exp exp2 expm1 log log2 log10 "
    "log1p sin cos sigmoid tan asin acos atan sinh cosh tanh asinh acosh atanh erf erfc lgamma isnan isinf logical_not "
    "signbit add sub mul minimum maximum copysign bitwise_and bitwise_or bitwise_xor remainder fmod pow atan2 hypot eq "
    "ne lt le gt ge logical_and logical_or logical_xor where".split()
)
#: Other names that torch has for a function.
_OTHER_NAMES = {
    "left_shift": "torch.bitwise_left_shift",
    "right_shift": "torch.bitwise_right_shift",
    "truediv": "torch.true_divide",
    "floordiv": "torch.floor_divide",
    "truncdiv": "truncdiv",
    "nearest_float16": "nearest_float16",
    "nearest_bfloat16": "nearest_bfloat16",
    "psi": "torch.digamma",
    "inverse_erf": "torch.erfinv",
    "inverse_normal": "torch.special.ndtri",
    "scaled_erfc": "torch.special.erfcx",
}
#: Other names that stand in the function.
_TAKEN = frozenset(
    {"torch", "real", "sizes", "reduced", "triton", "tl", "libdevice", "formula", "eager", "extent_of", "DEVICE"}
)
_FLOATS = frozenset({"float16", "bfloat16", "float32", "float64", "float8_e4m3fn", "float8_e5m2"})


#: A report may be anybody's: what it gives as code is looked at before it is written into a file.
_CALL = re.compile(r"torch\.[\w.]+\([\w\s.,()\[\]+*/%=:'-]*\)")


class NotExpressibleError(ValueError):
    """A kernel computes something that these lines cannot say; the message says what."""


def formula(graph: Graph, kernel: Kernel, layouts: Mapping[str, Layout], symbols: Mapping[str, int]) -> str:
    """The function `formula(real, <what the kernel reads and updates>)`, which gives flat tensors, one for each of
    `kernel.writes`. Raises `NotExpressibleError`, and `UnknownSizeError`."""
    nodes = nodes_of(graph, kernel)
    if not {node.name for node in graph.loops}.issuperset(kernel.nodes):
        raise NotExpressibleError("The report does not have all loop nodes of this kernel.")
    given = [variable(name) for name in given_to(kernel)]
    lines = [f"def formula(real, {', '.join(given)}):", '    """The loop nodes of the kernel, one after another."""']
    lines += [f"    {name} = start(real, {name})" for name in given]
    made = set(given_to(kernel))
    bodies = "\n".join(line for node in nodes for line in (*node.body, node.call or ""))
    lines += symbols_in(bodies, symbols)
    for node in nodes:
        lines += (f"    {line}" if line else "" for line in _Node(node, layouts, symbols, made).lines())
        made.add(node.name)
    results = [name if name in made else _part_of(name, nodes) for name in kernel.writes]
    return "\n".join([*lines, f"    return [{', '.join(map(variable, results))}]"])


def nodes_of(graph: Graph, kernel: Kernel) -> list[LoopNode]:
    """The nodes that make what a kernel writes, each after what it reads. What it computes anew, rather than read what
    another kernel made, the report does not count as its own. Of its own nodes, those on the way to a part of a
    concatenation stand in the part's body already."""
    makers: dict[str, list[LoopNode]] = {}
    for node in graph.loops:
        for name in {node.name, node.part_of or node.name}:
            makers.setdefault(name, []).append(node)
    given, own = set(given_to(kernel)), set(kernel.nodes)
    by_name = {node.name: node for node in graph.loops}
    ordered: dict[str, LoopNode] = {}

    def add(node: LoopNode) -> None:
        for access in node.reads:
            for maker in makers.get(access.buffer, ()) if access.buffer not in given | ordered.keys() else ():
                if maker.name not in own | ordered.keys():
                    add(maker)
        ordered[node.name] = node

    for name in kernel.nodes:
        if name in by_name:
            add(by_name[name])
    needed, waiting = set[str](), list(kernel.writes)
    while waiting:
        for maker in makers.get(waiting.pop(), ()):
            if maker.name in ordered and maker.name not in needed:
                needed.add(maker.name)
                waiting += [access.buffer for access in maker.reads]
                waiting += [maker.updates] if maker.updates is not None else []
    return [node for name, node in ordered.items() if name in needed]


def symbols_in(code: str, symbols: Mapping[str, int]) -> list[str]:
    """Lines that give the open sizes of this code the values of the first call."""
    named = (name for name in symbols if name.isidentifier() and re.search(rf"\b{name}\b", code))
    return [f"    {name} = {symbols[name]}  # in the first call" for name in named]


def variable(name: str) -> str:
    """What a buffer is called in the function: by its name, where nothing else is."""
    if not name.isidentifier():
        raise NotExpressibleError(f"{name!r} is no name of a variable.")
    is_taken = name in HELPERS or name in _TAKEN or keyword.iskeyword(name) or re.fullmatch(r"[xrv]\d+", name)
    return f"{name}_" if is_taken else name


def given_to(kernel: Kernel) -> list[str]:
    """What the kernel gets values in."""
    return [*kernel.reads, *(name for name in kernel.updates if name not in kernel.reads)]


def _part_of(name: str, nodes: Sequence[LoopNode]) -> str:
    if any(node.part_of == name for node in nodes):
        return name
    raise NotExpressibleError(f"No loop node of this kernel makes {name}.")


class _Node:
    def __init__(
        self, node: LoopNode, layouts: Mapping[str, Layout], symbols: Mapping[str, int], made: set[str]
    ) -> None:
        self.node, self.layouts, self.made = node, layouts, made
        self.sizes = numbers(node.sizes, symbols)
        self.reduced = numbers(node.reduction_sizes, symbols)

    def lines(self) -> Iterator[str]:
        node = self.node
        origin = f"  # {', '.join(node.origins)}" if node.origins and node.origins != [node.name] else ""
        yield ""
        if node.call is not None:
            layout = self._layout(node.name)
            call = call_on_tensors(node, self.layouts, variable)
            yield f"{variable(node.name)} = memory({call}, {layout.shape}, {layout.stride}){origin}"
            return
        if node.kind == "extern":
            raise NotExpressibleError(f"{node.name} is a library call, and the report does not have its code.")
        yield self._memory() + origin
        yield from self._axes()
        for line in node.body:
            yield self._instruction(line)

    def _memory(self) -> str:
        """What the node stores to."""
        name, layout = self.node.name, self._layout(self.node.name)
        if self.node.updates is not None:
            start = self.node.updates if self.node.updates in self.made else name
            if start not in self.made:
                raise NotExpressibleError(f"What {name} begins with is not given.")
            return f"{variable(name)} = {variable(start)}.clone()"
        whole = self.node.part_of
        if whole is None:
            return f"{variable(name)} = zeros({layout.extent}, {_dtype(layout.dtype)})"
        if whole in self.made:
            return f"{variable(name)} = {variable(whole)}"
        self.made.add(whole)
        layout = self._layout(whole)
        return f"{variable(name)} = {variable(whole)} = zeros({layout.extent}, {_dtype(layout.dtype)})"

    def _layout(self, name: str) -> Layout:
        if name not in self.layouts:
            raise NotExpressibleError(f"The report has no buffer {name}.")
        return self.layouts[name]

    def _axes(self) -> Iterator[str]:
        names = [f"x{n}" for n in range(len(self.sizes))] + [f"r{n}" for n in range(len(self.reduced))]
        sizes = (*self.sizes, *self.reduced)
        yield f"sizes, reduced = {sizes}, {len(self.reduced)}"
        if names:
            yield f"{', '.join(names)}{',' if len(names) == 1 else ''} = axes(sizes)"

    def _instruction(self, line: str) -> str:
        for pattern, write in _INSTRUCTIONS:
            found = pattern.fullmatch(line)
            if found:
                return write(*found.groups())
        found = re.fullmatch(r"(v\d+) = (\w+) (v\d+(?:, v\d+)*)", line)
        name = found[2] if found else ""
        if found and (name in _OF_TORCH or name in _OTHER_NAMES):
            return f"{found[1]} = {_OTHER_NAMES.get(name, f'torch.{name}')}({found[3]})"
        raise NotExpressibleError(f"Torch has no function for {line.split(' = ')[-1]!r}.")


def call_on_tensors(node: LoopNode, layouts: Mapping[str, Layout], name_of: Callable[[str], str]) -> str:
    """The code of a library call, where each buffer is called as `name_of` says, and is a tensor or one's memory.

    Raises `NotExpressibleError` for the call of what is not torch's own."""
    if not _CALL.fullmatch(node.call or ""):
        raise NotExpressibleError(f"{node.name} is no plain call of torch.")
    names = {access.buffer for access in node.reads}

    def written(found: re.Match[str]) -> str:
        name = found[2]
        if name not in names:
            return found[0]
        if found[1]:
            return f"view({name_of(name)}"
        layout = layouts[name]
        return f"view({name_of(name)}, {layout.shape}, {layout.stride}, 0)"

    return re.sub(r"(?<![\w.'])(view\()?([A-Za-z_]\w*)(?![\w(=])", written, node.call or "")


def _dtype(name: str) -> str:
    return "real" if name in _FLOATS else f"torch.{name}"


def _constant(value: str, text: str, dtype: str) -> str:
    text = f"float({text!r})" if text in ("nan", "inf", "-inf") else text
    return f"{value} = constant({text}, {_dtype(dtype)})"


def _converted(value: str, dtype: str, operand: str) -> str:
    return f"{value} = {operand}.to({_dtype(dtype)})"


def _indexed(value: str, index: str, dtype: str) -> str:
    return f"{value} = position({index}).to({_dtype(dtype)})"


def _load(value: str, buffer: str, index: str, mask: str | None) -> str:
    return f"{value} = load({variable(buffer)}, {index}{f', {mask}' if mask else ''})"


def _store(buffer: str, index: str, value: str) -> str:
    return f"store({variable(buffer)}, {index}, {value})"


def _scatter(kind: str, buffer: str, index: str, value: str, mask: str | None) -> str:
    return f"scatter({kind!r}, {variable(buffer)}, sizes, {index}, {value}{f', {mask}' if mask else ''})"


def _drawn(value: str, kind: str, seed: str, index: str) -> str:
    return f"{value} = {kind}({seed}, position({index})).to(real)"


def _patterns() -> Iterator[tuple[re.Pattern[str], Callable[..., str]]]:
    index, values = r"([\w +*/%()-]+)", r"(v\d+(?:, v\d+)*)"
    yield re.compile(rf"(v\d+) = load (\w+)\[{index}\](?: where (v\d+))?"), _load
    yield re.compile(rf"store (\w+)\[{index}\] = (v\d+)"), _store
    yield re.compile(rf"scatter (\w+) (\w+)\[{index}\] = (v\d+)(?: where (v\d+))?"), _scatter
    yield re.compile(r"(v\d+) = (-?[\w.+-]+): (\w+)"), _constant
    yield re.compile(r"(v\d+) = index variable (v\d+) < .+"), lambda value, operand: f"{value} = {operand}"
    yield re.compile(rf"(v\d+) = index {index}: (\w+)"), _indexed
    yield re.compile(rf"(v\d+) = (rand|randn|rand_compared)\(seed (v\d+), {index}\)"), _drawn
    yield re.compile(r"(v\d+) = bits of (v\d+) as (\w+)"), "{} = bits({}, torch.{})".format
    yield re.compile(rf"(v\d+) = reduce (\w+) {values}"), "{} = reduce({!r}, sizes, reduced, {})".format
    yield re.compile(rf"(v\d+) = scan (\w+) {values}"), "{} = scan({!r}, sizes, reduced, {})".format
    yield re.compile(r"(v\d+) = (float\w+|bfloat16|u?int\d+|bool)\((v\d+)\)"), _converted


_INSTRUCTIONS = tuple(_patterns())
