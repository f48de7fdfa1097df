"""What a kernel computes as PyTorch's own operators: the ATen nodes between what it reads and what it writes.

Not every kernel has such nodes. A matrix product or a convolution may be taken apart from its bias, a tensor be written
in parts, or a copy be made that no operator of the snippet asked for. Random numbers would be others.
"""

from __future__ import annotations

import ast
import re

from compiler.report import FxNode, Graph, Kernel

#: More operators than this are no help to a reader.
MOST_NODES = 400
#: Operators that draw random numbers.
_DRAWS = re.compile(r"rand|normal|bernoulli|dropout|uniform|exponential|multinomial")
_OPERATOR = re.compile(r"(aten|prims)\.\w+\.\w+")
_CALL = re.compile(r"\w+\((.*)\)", re.DOTALL)
#: How a report writes arguments that are no numbers, names or lists.
_DEVICE = re.compile(r"device\(type='\w+'(?:, index=\d+)?\)")
_TORCH_NAMES = re.compile(
    r"(?<![\w.'])(float16|bfloat16|float32|float64|u?int(?:8|16|32|64)|bool|complex64|complex128|float8_e4m3fn|float8_e5m2|"
    r"strided|inf|nan|contiguous_format|preserve_format|channels_last|channels_last_3d)(?![\w'(=])"
)
#: What may stand in arguments: a report may be anybody's.
_PLAIN = (ast.Constant, ast.List, ast.Tuple, ast.UnaryOp, ast.USub, ast.keyword, ast.Load)


def eager(graph: Graph, kernel: Kernel, given: list[str]) -> str | None:
    """The function `eager(<given>)` in PyTorch's operators, which gives what the kernel writes, or None."""
    nodes = {node.name: node for node in graph.aten}
    shapes = {buffer.name: buffer.shape for buffer in graph.buffers}
    if any(_shape(nodes, name) != shapes.get(name) for name in (*kernel.reads, *kernel.writes)):
        return None
    if kernel.updates:  # begins with what another kernel has written, which is no node
        return None
    if _begins_within_a_node(graph, kernel):
        return None
    order = _needed(nodes, kernel)
    lines = [_line(node) for node in order or ()]
    if order is None or any(line is None for line in lines) or any(_DRAWS.search(node.target) for node in order):
        return None
    body = "\n".join(f"    {line}" for line in lines)
    return (
        f"def eager({', '.join(given)}):\n"
        '    """The operators that the kernel stands for, one after another."""\n'
        f"{body}\n    return [{', '.join(kernel.writes)}]"
    )


def _begins_within_a_node(graph: Graph, kernel: Kernel) -> bool:
    """Whether the kernel does the rest of an operator that a buffer of the same name begins, as of a convolution whose
    product is one buffer and whose bias is added by the kernel: the buffer is not what the operator gives."""
    own = set(kernel.nodes)
    return any(node.name in own and not set(kernel.reads).isdisjoint(node.origins) for node in graph.loops)


def _shape(nodes: dict[str, FxNode], name: str) -> object:
    return nodes[name].shape if name in nodes else "no node"


def _needed(nodes: dict[str, FxNode], kernel: Kernel) -> list[FxNode] | None:
    """The nodes that compute what the kernel writes, of what it reads alone, in order; None where there are none."""
    given, seen = set(kernel.reads), set[str]()
    order: list[FxNode] = []
    waiting = [(name, False) for name in reversed(kernel.writes)]
    while waiting:
        name, is_ready = waiting.pop()
        if is_ready:
            order.append(nodes[name])
            continue
        if name in seen or (name in given and name not in kernel.writes):
            continue
        node = nodes.get(name)
        if node is None or node.op != "call_function" or len(seen) > MOST_NODES:
            return None
        seen.add(name)
        waiting.append((name, True))
        waiting += [(argument, False) for argument in node.args]
    return order


def _line(node: FxNode) -> str | None:
    found = _CALL.fullmatch(node.text)
    if found is None:
        return None
    if node.target.endswith("operator.getitem"):
        source, _, position = found[1].rpartition(", ")
        return f"{node.name} = {source}[{int(position)}]" if source.isidentifier() and position.isdigit() else None
    arguments = _TORCH_NAMES.sub(r"torch.\1", _DEVICE.sub("DEVICE", found[1]))
    if not _OPERATOR.fullmatch(node.target) or not _are_plain(arguments, {*node.args, "DEVICE"}):
        return None
    if node.target == "prims.fma.default":  # torch has it only once TorchInductor is imported
        first, _, rest = arguments.partition(", ")
        second, _, third = rest.partition(", ")
        return f"{node.name} = {first} * {second} + {third}" if third else None
    return f"{node.name} = torch.ops.{node.target}({arguments})"


def _are_plain(arguments: str, names: set[str]) -> bool:
    """Whether these are numbers, lists, names of torch's and of those nodes, and nothing else."""
    try:
        call = ast.parse(f"f({arguments})", mode="eval").body
    except (SyntaxError, ValueError, RecursionError):
        return False
    if not isinstance(call, ast.Call):
        return False
    inner = [part for argument in (*call.args, *call.keywords) for part in ast.walk(argument)]
    held = {id(part.value) for part in inner if isinstance(part, ast.Attribute) and _is_torch(part.value)}
    return all(
        isinstance(part, _PLAIN)
        or id(part) in held
        or (isinstance(part, ast.Attribute) and id(part.value) in held)
        or (isinstance(part, ast.Name) and part.id in names)
        for part in inner
    )


def _is_torch(value: ast.expr) -> bool:
    return isinstance(value, ast.Name) and value.id == "torch"
