"""The meaning of the loop IR, as a slow and readable interpreter.

Each instruction of a body becomes one torch operation over the whole iteration space: a loop variable is an `arange`
along an axis of its own, a load takes elements of the flat storage, a reduction goes over the axes of the reduction
variables. Lowerings are tested by it, and a kernel that disagrees with it is wrong.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from math import pi, prod
from typing import Any

import torch
from torch import Tensor

from compiler.ir.body import Instruction
from compiler.ir.float8 import FLOAT8
from compiler.ir.formulas import Real, value_of
from compiler.ir.functions import traced
from compiler.ir.index import Dim, FloorDiv, Index, Indirect
from compiler.ir.nodes import ExternNode, GraphOutput, Layout, LoopGraph, LoopNode, TensorArgument
from compiler.ir.ops import NAMED, RANDOM, compute_dtype
from compiler.ir.size import Integer, Opaque, Size, SizeAtom, Symbol, known

#: Numbers by the names of symbols.
Symbols = Mapping[str, Any]
#: Of graphs whose sizes are numbers.
NO_SYMBOLS: Symbols = {}


def run(graph: LoopGraph, inputs: Sequence[Any]) -> list[Any]:
    """The outputs of the graph; `inputs` are in the order of its placeholders."""
    symbols = symbols_of_call(graph, inputs)
    storages: dict[str, Tensor] = {}
    for name, value in zip(graph.inputs, inputs, strict=True):
        if name is not None:
            storages[name] = flat_storage(value, graph.buffers[name], symbols)
    for name, tensor in graph.constants.items():
        storages[name] = flat_storage(tensor, graph.buffers[name], symbols)
    for node in graph.nodes:
        if isinstance(node, LoopNode):
            run_loop(node, storages, symbols)
        else:
            run_extern(node, storages, symbols)
    return [given(output, storages, symbols) for output in graph.outputs]


def flat_storage(tensor: Tensor, layout: Layout, symbols: Symbols = NO_SYMBOLS) -> Tensor:
    """The memory of a tensor from its first element on, as one dimension; of a copy, where the tensor does not lie by
    the layout's strides. Raises ValueError where it has not the layout's shape."""
    shape, stride = numbers(layout.shape, symbols), numbers(layout.stride, symbols)
    if tuple(tensor.shape) != shape:
        raise ValueError(f"a tensor of shape {shape} is wanted, not {tuple(tensor.shape)}")
    pairs = zip(shape, stride, tensor.stride(), strict=True)
    if any(wanted != given for size, wanted, given in pairs if size not in (0, 1)):
        tensor = tensor.new_empty_strided(shape, stride, dtype=layout.dtype).copy_(tensor)
    return tensor.as_strided((elements_of_storage(layout, symbols),), (1,), tensor.storage_offset())


def given(output: GraphOutput, storages: Mapping[str, Tensor], symbols: Symbols) -> Any:
    if output.layout is None:
        return number_in_call(output.value, symbols) if isinstance(output.value, Size | Real) else output.value
    if output.buffer is None:
        shape, stride = numbers(output.layout.shape, symbols), numbers(output.layout.stride, symbols)
        return torch.empty_strided(shape, stride, dtype=output.layout.dtype)
    result = view(storages[output.buffer], output.layout, symbols)
    result = result.conj() if output.is_conjugated else result
    return torch.ops.aten._neg_view(result) if output.is_negated else result


def view(storage: Tensor, layout: Layout, symbols: Symbols = NO_SYMBOLS) -> Tensor:
    if storage.dtype != layout.dtype:
        storage = torch.view_as_real(storage) if storage.is_complex() else storage.view(layout.dtype)
    offset = storage.storage_offset() + evaluate(layout.offset, symbols)
    return storage.as_strided(numbers(layout.shape, symbols), numbers(layout.stride, symbols), offset)


def run_extern(node: ExternNode, storages: dict[str, Tensor], symbols: Symbols = NO_SYMBOLS) -> None:
    """Call the library with views of `storages`, and put its results there, by their names."""

    def passed(value: Any) -> Any:
        if isinstance(value, TensorArgument):
            return view(storages[value.buffer], value.layout, symbols)
        if isinstance(value, list | tuple):
            return type(value)(passed(item) for item in value)
        return number_in_call(value, symbols) if isinstance(value, Size | Real) else value

    keywords = {name: passed(value) for name, value in node.keywords.items()}
    result = node.target(*passed(node.arguments), **keywords)
    for value, output in zip(result if node.returns_sequence else [result], node.outputs, strict=True):
        if output is not None:
            storages[output[0]] = flat_storage(value, output[1], symbols)


def run_loop(node: LoopNode, storages: dict[str, Tensor], symbols: Symbols) -> None:
    """Run a loop nest, op by op over all of its points, and put what it fills into `storages`, by its name. Raises
    RuntimeError where it is a check that fails."""
    device = next((storages[name].device for name in node.read_buffers), torch.device("cpu"))
    if node.updates is not None:
        storages[node.name] = storages[node.updates].clone()
    elif node.part_of is not None and node.part_of in storages:
        storages[node.name] = storages[node.part_of]
    else:
        count = elements_of_storage(node.layout, symbols)
        storages[node.name] = torch.zeros(count, dtype=node.layout.dtype, device=device)
        if node.part_of is not None:
            storages[node.part_of] = storages[node.name]
    loop = _Loop(node, storages, symbols, device)
    for number, instruction in enumerate(node.body.instructions):
        loop.values[number] = loop.evaluate(instruction)
    if node.check is not None and not bool(storages[node.name]):
        raise RuntimeError(node.check)


class _Loop:
    """One run over an iteration space. A value is a tensor that broadcasts to the space, one axis a variable."""

    def __init__(self, node: LoopNode, storages: dict[str, Tensor], symbols: Symbols, device: torch.device) -> None:
        self.dims = (*node.x_dims, *node.r_dims)
        self.symbols = symbols
        self.sizes = numbers([dim.size for dim in self.dims], symbols)
        self.r_axes = tuple(range(len(node.x_dims), len(self.dims)))
        self.storages = storages
        self.device = device
        self.values: dict[int, Any] = {}

    def evaluate(self, i: Instruction) -> Any:
        operands = [self.values[number] for number in i.operands]
        if i.op == "load":
            return self.load(i, operands)
        if i.op == "store":
            return self.store(i, operands[0]) if i.value is None else self.scatter(i, operands)
        if i.op == "index_value":
            return self.index(i.index).to(i.dtype)
        if i.op == "reduce":
            return self.reduce(str(i.value), operands)
        if i.op == "scan":
            return self.scan(str(i.value), operands[0])
        if i.op in RANDOM:
            return GENERATORS[i.op](operands[0], self.index(i.index))
        return apply(i, self.values, self.device)

    def index(self, index: Index | None) -> Tensor:
        """The value of an index expression at every point."""
        assert index is not None
        total = torch.tensor(evaluate(index.offset, self.symbols), device=self.device)
        for atom, coefficient in index.terms:
            if isinstance(atom, Dim):
                axis = self.dims.index(atom)
                size = self.sizes[axis]
                shape = [size if position == axis else 1 for position in range(len(self.dims))]
                value = torch.arange(size, device=self.device).reshape(shape)
            elif isinstance(atom, Indirect):
                value = self.values[atom.value]
            else:
                numerator, divisor = self.index(atom.numerator), evaluate(atom.divisor, self.symbols)
                is_quotient = isinstance(atom, FloorDiv)
                value = (torch.floor_divide if is_quotient else torch.remainder)(numerator, divisor)
            total = total + value * evaluate(coefficient, self.symbols)
        return total

    def load(self, i: Instruction, masks: list[Tensor]) -> Tensor:
        assert i.buffer is not None
        storage, offset = self.storages[i.buffer], self.index(i.index)
        if not storage.numel():  # no point of the space is run, or reads it
            return torch.zeros(offset.shape, dtype=compute_dtype(storage.dtype), device=self.device)
        if not masks:
            return storage[offset].to(compute_dtype(storage.dtype))
        mask, offset = torch.broadcast_tensors(masks[0], offset)  # type: ignore[no-untyped-call]
        value = storage[torch.where(mask, offset, 0)] if bool(mask.any()) else torch.zeros_like(offset)
        return torch.where(mask, value, 0).to(compute_dtype(storage.dtype))

    def store(self, i: Instruction, value: Tensor) -> None:
        assert i.buffer is not None
        storage = self.storages[i.buffer]
        # What a scan stores varies along the reduction variables too.
        offset, value = torch.broadcast_tensors(self.index(i.index), value)  # type: ignore[no-untyped-call]
        storage[offset] = value.to(storage.dtype)

    def scatter(self, i: Instruction, operands: list[Tensor]) -> None:
        """Points in the order of the loops, one after the other, so that the last one wins where they meet."""
        assert i.buffer is not None
        storage = self.storages[i.buffer]
        value, *masks = [operand.expand(self.sizes).flatten() for operand in operands]
        offset = self.index(i.index).expand(self.sizes).flatten()
        if masks:
            value, offset = value[masks[0]], offset[masks[0]]
        value = value.to(storage.dtype)
        if i.value == "set":
            bits = torch.uint8 if storage.dtype in FLOAT8 else storage.dtype  # which torch cannot scatter
            storage.view(bits).scatter_(0, offset, value.view(bits))
        else:
            storage.scatter_reduce_(0, offset, value, SCATTER[str(i.value)])

    def reduce(self, kind: str, operands: list[Tensor]) -> Tensor:
        """Over all points of the reduction variables, whose axes keep the size one."""
        value, *positions = [self._reduced_last(operand) for operand in operands]
        result = REDUCE[kind](value, *positions)
        return result.reshape((*result.shape, *(1 for _ in self.r_axes)))

    def scan(self, kind: str, operand: Tensor) -> Tensor:
        """Along all reduction variables, the last one the fastest."""
        return SCAN[kind](self._reduced_last(operand)).reshape(self.sizes)

    def _reduced_last(self, value: Tensor) -> Tensor:
        count = prod(self.sizes[axis] for axis in self.r_axes)
        return value.expand(self.sizes).reshape(*self.sizes[: len(self.sizes) - len(self.r_axes)], count)


def call_function(name: str, arguments: Sequence[Tensor]) -> Tensor:
    """The value of a named function for tensors of one dtype, which broadcast."""
    record = traced(name, arguments[0].dtype)
    values: dict[int, Tensor] = dict(enumerate(arguments))
    for number, instruction in enumerate(record.instructions[len(arguments) :], len(arguments)):
        values[number] = apply(instruction, values, arguments[0].device)
    return values[record.result]


def apply(i: Instruction, values: Mapping[int, Tensor], device: torch.device) -> Tensor:
    """The value of an instruction that touches no memory, from those of its operands."""
    operands = [values[number] for number in i.operands]
    if i.op == "constant":
        return torch.tensor(i.value, dtype=i.dtype, device=device)
    if i.op == "to_dtype":
        return operands[0].to(i.dtype)
    if i.op == "bitcast":
        return operands[0].contiguous().view(i.dtype)
    if i.op == "where":
        return torch.where(operands[0], operands[1], operands[2])
    if i.op in NAMED:
        return call_function(i.op, operands)
    result: Tensor = FUNCTIONS[i.op](*operands)
    return result


def _position_of(extreme: Callable[..., Tensor]) -> Callable[[Tensor, Tensor], Tensor]:
    """The lowest position that holds the extreme value; a NaN is more extreme than any number."""

    def find(value: Tensor, position: Tensor) -> Tensor:
        best = extreme(value, -1).unsqueeze(-1)
        is_best = (value == best) | (value.isnan() & best.isnan())
        return torch.where(is_best, position, torch.iinfo(torch.int64).max).amin(-1)

    return find


REDUCE: dict[str, Callable[..., Tensor]] = {
    "sum": lambda value: value.sum(-1, dtype=value.dtype),
    "prod": lambda value: value.prod(-1, dtype=value.dtype),
    "min": lambda value: value.amin(-1),
    "max": lambda value: value.amax(-1),
    "any": lambda value: value.any(-1),
    "all": lambda value: value.all(-1),
    "argmin": _position_of(torch.amin),
    "argmax": _position_of(torch.amax),
}

SCAN: dict[str, Callable[[Tensor], Tensor]] = {
    "sum": lambda value: value.cumsum(-1, dtype=value.dtype),
    "prod": lambda value: value.cumprod(-1, dtype=value.dtype),
    "min": lambda value: value.cummin(-1).values,
    "max": lambda value: value.cummax(-1).values,
}

#: What torch calls the ways to scatter.
SCATTER = {"add": "sum", "mul": "prod", "min": "amin", "max": "amax"}

FUNCTIONS: dict[str, Callable[..., Any]] = {
    **{name: getattr(torch, name) for name in (
        "neg abs square floor ceil trunc round sign bitwise_not relu sqrt rsqrt reciprocal exp exp2 expm1 log log2"
        " log10 log1p sin cos sigmoid tan asin acos atan sinh cosh tanh asinh acosh atanh erf erfc lgamma isnan isinf"
        " logical_not signbit add sub mul minimum maximum copysign bitwise_and bitwise_or bitwise_xor remainder fmod"
        " pow atan2 hypot eq ne lt le gt ge logical_and logical_or logical_xor"
    ).split()},
    "nearest_float16": lambda a: a.half().to(a.dtype),
    "nearest_bfloat16": lambda a: a.bfloat16().to(a.dtype),
    "left_shift": torch.bitwise_left_shift,
    "right_shift": torch.bitwise_right_shift,
    "truediv": torch.true_divide,
    "floordiv": lambda a, b: torch.div(a, b, rounding_mode="floor"),
    "truncdiv": lambda a, b: torch.div(a, b, rounding_mode="trunc"),
}  # fmt: skip


# --- the values of symbols in one call, and what sizes are then


def symbols_of_call(graph: LoopGraph, inputs: Sequence[Any]) -> Symbols:
    """The value of every symbol in a call with these inputs."""
    return {symbol.name: _part(inputs[position], part) for symbol, (position, part) in graph.symbols.items()}


def _part(value: Any, part: str) -> Any:
    """`.shape[1]` or `.stride(1)` of a tensor; of a plain number, itself."""
    if not part:
        return value if isinstance(value, float) else int(value)
    dim = int("".join(c for c in part if c.isdigit()))
    return int(value.shape[dim] if part.startswith(".shape") else value.stride(dim))


def number_in_call(value: Size | Real, symbols: Symbols) -> int | float:
    """What an argument or a result that is no tensor is in a call."""
    return evaluate(value, symbols) if isinstance(value, Size) else value_of(value.text, symbols)


def numbers(sizes: Iterable[Integer], symbols: Symbols) -> tuple[int, ...]:
    return tuple(evaluate(size, symbols) for size in sizes)


def elements_of_storage(layout: Layout, symbols: Symbols) -> int:
    """How many its storage has in a call."""
    shape, stride = numbers(layout.shape, symbols), numbers(layout.stride, symbols)
    return known(Layout(shape, stride, layout.dtype, evaluate(layout.offset, symbols)).storage_numel)


def evaluate(value: Integer, symbols: Symbols) -> int:
    """Its value where each symbol has the value given by its name."""
    if isinstance(value, int):
        return value

    def of_atom(atom: SizeAtom) -> int:
        if isinstance(atom, Symbol):
            return symbols[atom.name]
        if isinstance(atom, Opaque):
            return int(value_of(atom.text, symbols))
        return evaluate(atom.numerator, symbols) // evaluate(atom.divisor, symbols)

    return sum(coefficient * prod(map(of_atom, monomial)) for monomial, coefficient in value.terms)


# --- random numbers: Philox 4x32 (Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", 2011)

#: Rounds of numbers that are kept as values, and of those that are only compared with bounds, as a dropout's. Table 2
#: of the paper has seven as the fewest that pass all of BigCrush, and ten as what leaves a margin; the dropout of
#: FlashAttention, in PyTorch too, takes seven (philox.cuh). Nobody is promised which elements a dropout keeps: eager's
#: mask and TorchInductor's differ as well.
ROUNDS = {"rand": 10, "randn": 10, "rand_compared": 7}

_LOW = 0xFFFFFFFF


def philox(seed: Tensor, counter: Tensor, rounds: int) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """The four 32-bit words of key `seed` at `counter`, as non-negative int64."""
    seed, counter = torch.broadcast_tensors(seed, counter)  # type: ignore[no-untyped-call]
    c0, c1 = counter & _LOW, (counter >> 32) & _LOW
    c2 = c3 = torch.zeros_like(c0)
    k0, k1 = seed & _LOW, (seed >> 32) & _LOW
    for _ in range(rounds):
        # A product of two 32-bit words wraps around in int64, whose bits are those of the unsigned product.
        a, b = c0 * 0xD2511F53, c2 * 0xCD9E8D57
        c0, c1 = ((b >> 32) & _LOW) ^ c1 ^ k0, b & _LOW
        c2, c3 = ((a >> 32) & _LOW) ^ c3 ^ k1, a & _LOW
        k0, k1 = (k0 + 0x9E3779B9) & _LOW, (k1 + 0xBB67AE85) & _LOW
    return c0, c1, c2, c3


def _to_uniform(word: Tensor) -> Tensor:
    """A 32-bit word as a float32 in [0, 1), as Triton does: its magnitude as a signed number, scaled."""
    signed = torch.where(word >= 2**31, 2**32 - 1 - word, word)
    return signed.to(torch.float32) * 4.6566127342e-10


def uniform(seed: Tensor, position: Tensor) -> Tensor:
    """The four words of a draw are the numbers at four positions in a row."""
    return _to_uniform(_word(seed, position, ROUNDS["rand"]))


def uniform_compared(seed: Tensor, position: Tensor) -> Tensor:
    """The four words of a draw are those of eight positions in a row, rotated by 16 bits at every second one."""
    word = _word(seed, position >> 1, ROUNDS["rand_compared"])
    rotated = ((word << 16) | (word >> 16)) & _LOW
    return _to_uniform(torch.where(position & 1 == 1, rotated, word) >> 1)


def _word(seed: Tensor, position: Tensor, rounds: int) -> Tensor:
    words = torch.stack(philox(seed, position >> 2, rounds), dim=-1)
    return words.gather(-1, (position & 3).expand(words.shape[:-1])[..., None])[..., 0]


def normal(seed: Tensor, counter: Tensor) -> Tensor:
    """Box and Muller's transform of two uniform numbers."""
    first, second = (_to_uniform(word) for word in philox(seed, counter, ROUNDS["randn"])[:2])
    radius = torch.sqrt(-2.0 * torch.log(first.clamp_min(1e-7)))
    return radius * torch.cos(2 * pi * second)


GENERATORS = {"rand": uniform, "randn": normal, "rand_compared": uniform_compared}
