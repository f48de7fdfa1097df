"""The wrapper: the Python function that allocates buffers, launches kernels in order, and calls libraries.

Its text is what runs, not a rendering of it: it is executed with the names of `compiler/runtime/executable.py` in
scope. `empty` allocates on the graph's device, `draw_seeds` fills a tensor from torch's generator, `library_mm` and its
like launch a product of matrices in the library (`library_products.py`), `view` makes a strided view (`alias` one to
return of memory that somebody else has too), `reuse` gives a buffer freed storage for elements of another dtype. For
the same dtype a view of the freed tensor does, or itself. `aligned` copies a tensor whose rows begin where attention's
kernels cannot load from.
"""

from __future__ import annotations

import cmath
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from typing import Any

import torch
from torch.utils._pytree import tree_leaves

from compiler.codegen.library_products import library_products, name_of_product
from compiler.codegen.naming import identifier
from compiler.codegen.rendered import RenderedKernel
from compiler.ir.formulas import FUNCTIONS as FORMULA_FUNCTIONS
from compiler.ir.formulas import Real, as_operand
from compiler.ir.library_calls import LOADED_BYTES, LOADING_VECTORS
from compiler.ir.nodes import ExternNode, GraphOutput, Layout, LoopGraph, TensorArgument
from compiler.ir.size import Quotient, Size, SizeAtom, Symbol, atoms_of, size, symbols_of, text_of
from compiler.lowering.loop_builder import SEEDS
from compiler.lowering.tree_calls import TreeCall
from compiler.schedule.group import Group
from compiler.schedule.memory.plan import MemoryPlan
from compiler.schedule.scheduler import Schedule

CPU = torch.device("cpu")

#: What the text calls; no tensor's variable has such a name, though a model may well have an input called `view`.
FUNCTIONS = (
    frozenset(
        "torch device inf nan complex empty view alias reuse as_planned as_promised aligned readable read_as library "
        "draw_seeds inputs call".split()
    )
    | FORMULA_FUNCTIONS.keys()
)

#: Operators that torch has a function of, with the same arguments; calling it takes the host half as long. One that a
#: torch has not is called as an operator.
_FUNCTIONS_OF_TORCH = frozenset(
    getattr(getattr(torch.ops.aten, name), overload)
    for name, overload in (
        *((name, "default") for name in "mm addmm bmm baddbmm convolution topk sort _addmm_activation".split()),
        *((f"_scaled_dot_product_{way}_attention", "default") for way in ("flash", "efficient", "cudnn")),
        ("randint", "low"),
    )
    if hasattr(torch, name)
)


def variable(buffer: str) -> str:
    """The wrapper's variable of a buffer."""
    name = identifier(buffer)
    return f"{name}_" if name in FUNCTIONS or name.startswith(("kernel_", "fused_", "library_", "given_")) else name


def render_wrapper(
    schedule: Schedule, plan: MemoryPlan, kernels: Mapping[str, RenderedKernel], device: torch.device = CPU
) -> str:
    """The text of `call(inputs)`, which takes and gives flat lists, for tensors on `device`."""
    writer = _Writer(schedule, plan, device)
    writer.inputs()
    writer.sizes(kernels.values())
    for position in range(len(schedule.units)):
        writer.step(schedule, position, kernels)
    writer.outputs()
    return "\n".join(["def call(inputs):", *writer.lines]) + "\n"


class _Writer:
    def __init__(self, schedule: Schedule, plan: MemoryPlan, device: torch.device) -> None:
        self.graph = graph = schedule.graph
        self.plan = plan
        #: Products that are launched like kernels, by the names of the functions that do so.
        self.products = library_products(schedule.units, graph) if device.type == "cuda" else {}
        self.lines: list[str] = []
        #: Formulas of sizes that are not computed yet: some wait for a size that a library call tells.
        self.waiting: dict[SizeAtom, None] = {}
        self.known = {symbol.name for symbol in graph.symbols}
        self.checks = list(graph.size_checks)
        # Storage that a later buffer takes over is still needed when its own buffer dies; it goes when it is taken.
        self.taken_over = {b.takes_over for b in plan.buffers.values() if b.fate == "reused"}
        #: Tensors whose memory nobody else has.
        self.own: set[str] = set()
        self.seeds_given: set[int] = set()
        self.times_given = Counter(output.buffer for output in graph.outputs if output.repeats is None)

    def line(self, text: str) -> None:
        self.lines.append(f"    {text}")

    def step(self, schedule: Schedule, position: int, kernels: Mapping[str, RenderedKernel]) -> None:
        unit = schedule.units[position]
        freed = self.plan.freed_after.get(position, ())
        if isinstance(unit, ExternNode) and unit.name == SEEDS:
            self.seeds(self.graph.buffers[SEEDS])
        elif isinstance(unit, ExternNode) and name_of_product(unit) in self.products:
            self.product(unit)
        elif isinstance(unit, ExternNode):
            self.library_call(unit, unread=[name for name in freed if name not in self.taken_over])
        else:
            self.launch(unit, kernels[unit.name])
        self.free(freed)

    def inputs(self) -> None:
        names = [variable(name) if name is not None else "_" for name in self.graph.inputs]
        for symbol, (position, part) in self.graph.symbols.items():
            if not part:
                names[position] = symbol.name
        if names:
            self.line(f"{', '.join(names)}{',' if len(names) == 1 else ''} = inputs")
        for symbol, (position, part) in self.graph.symbols.items():
            if part:
                self.line(f"{symbol.name} = {names[position]}{part}")

    def sizes(self, kernels: Iterable[RenderedKernel]) -> None:
        """Every formula that is no symbol gets the name by which layouts and launches know it."""
        layouts = [*self.graph.buffers.values(), *(o.layout for o in self.graph.outputs if o.layout is not None)]
        values = [size for layout in layouts for size in (*layout.shape, *layout.stride, layout.offset)]
        values += [o.value for o in self.graph.outputs if isinstance(o.value, Size)]
        values += [size for node in self.graph.nodes if isinstance(node, ExternNode) for size in _sizes_in(node)]
        values += [condition for condition, _ in self.graph.size_checks if isinstance(condition, Size)]
        atoms = [atom for value in values for atom in atoms_of(value)]
        self.waiting = dict.fromkeys([*atoms, *(atom for kernel in kernels for atom in kernel.sizes)])
        self.compute_sizes()

    def compute_sizes(self) -> None:
        """Compute what of the formulas can be computed now."""
        ready = [atom for atom in self.waiting if {s.name for s in symbols_of(size(atom))} <= self.known]
        defined: set[str] = set()
        for atom in ready:
            self._define(atom, defined)
        for atom in ready:
            del self.waiting[atom]
        for check in [c for c in self.checks if {s.name for s in symbols_of(c[0])} <= self.known]:
            self.checks.remove(check)
            self.line(f"if not {text_of(check[0])}: raise RuntimeError({check[1]!r})")

    def _define(self, atom: SizeAtom, defined: set[str]) -> None:
        if isinstance(atom, Symbol) or atom.name in defined:
            return
        if isinstance(atom, Quotient):
            for inner in (*atoms_of(atom.numerator), *atoms_of(atom.divisor)):
                self._define(inner, defined)
        defined.add(atom.name)
        self.line(f"{atom.name} = {atom.text}")

    def launch(self, group: Group, kernel: RenderedKernel) -> None:
        stored = [name for name in kernel.parameters if name in group.stored and name not in self.plan.slices]
        for name in sorted(stored, key=lambda name: self.plan.buffers[name].takes_over in group.stored):
            self.allocate(name)
        given = [self.seeds_from(kernel.first_seed) if p == SEEDS else self.launched_with(p) for p in kernel.parameters]
        arguments = [*given, *(atom.name for atom in kernel.sizes)]
        self.line(f"{kernel.name}({', '.join(arguments)})")

    def launched_with(self, name: str) -> str:
        """A kernel's argument: of a slice the tensor that it is in. A tensor without elements has no address, and one
        may be read to be dropped."""
        name = self.plan.slices.get(name, name)
        is_late_one = is_late(self.graph.buffers[name])
        return f"readable({variable(name)})" if is_late_one else variable(name)

    def allocate(self, name: str) -> None:
        buffer = self.plan.buffers[name]
        shape, stride, dtype = buffer.layout.shape, buffer.layout.stride, buffer.layout.dtype
        if buffer.takes_over is None:
            self.own.add(name)
            self.line(f"{variable(name)} = empty({shape}, {stride}, {dtype})")
            return
        source, before = variable(buffer.takes_over), self.graph.buffers[buffer.takes_over]
        if before == buffer.layout:
            self.line(f"{variable(name)} = {source}")
        elif before.dtype == dtype and not before.offset:
            self.line(f"{variable(name)} = view({source}, {shape}, {stride}, 0)")
        else:
            self.line(f"{variable(name)} = reuse({source}, {shape}, {stride}, {dtype})")
        if buffer.fate == "reused":
            self.line(f"del {source}")

    def seeds(self, layout: Layout) -> None:
        self.own.add(SEEDS)
        self.line(f"{SEEDS} = empty({layout.shape}, {layout.stride}, {layout.dtype})")
        self.line(f"draw_seeds({SEEDS})")

    def seeds_from(self, first: int) -> str:
        """The seeds as a kernel is given them that counts them from there on."""
        if not first:
            return SEEDS
        name = f"{SEEDS}_from_{first}"
        if first not in self.seeds_given:
            self.seeds_given.add(first)
            (count,) = self.graph.buffers[SEEDS].shape
            self.line(f"{name} = view({SEEDS}, ({count - first},), (1,), {first})")
        return name

    def product(self, node: ExternNode) -> None:
        function = name_of_product(node)
        (result,) = node.write_buffers
        layout = self.products[function].result.layout
        self.own.add(result)
        self.line(f"{variable(result)} = empty({layout.shape}, {layout.stride}, {layout.dtype})")
        self.line(f"{function}({', '.join(map(variable, (*self.products[function].buffers, result)))})")

    def library_call(self, node: ExternNode, unread: Collection[str]) -> None:
        """A call of an operator. What nobody reads of its results may lie as it likes."""
        call = call_text(node, self.graph, _aligned_text if node.target in LOADING_VECTORS else argument_text)
        names = [variable(output[0]) if output else "_" for output in node.outputs]
        for symbol, position, part in node.sizes:
            if not part:
                names[position] = symbol.name
        if not names:
            self.line(call)
        elif node.returns_sequence or len(names) > 1:
            self.line(f"{', '.join(names)}{',' if len(names) == 1 else ''} = {call}")
        else:
            self.line(f"{names[0]} = {call}")
        self.told(node, names)
        if _gives_new_tensors(node.target):
            self.own.update(output[0] for output in node.outputs if output is not None)
        for output in node.outputs:
            if output is not None and not (output[0] in unread and is_of_torch(node.target)):
                self.line(f"{variable(output[0])} = {self.received(node, *output)}")

    def told(self, node: ExternNode, names: list[str]) -> None:
        """Sizes that are known now that the call has run."""
        for symbol, position, part in node.sizes:
            if part:
                self.line(f"{symbol.name} = {names[position]}{part}")
            self.known.add(symbol.name)
        if node.sizes:
            self.compute_sizes()

    def received(self, node: ExternNode, name: str, layout: Layout) -> str:
        """A result of a library call as what follows relies on; what the user's own calls give is looked at first."""
        if is_of_torch(node.target):
            return f"as_planned({variable(name)}, {layout.shape}, {layout.stride})"
        line = node.lines[-1] if node.lines else None
        promised = f"{layout.shape}, {layout.stride}, {layout.dtype}, {name in self.graph.elsewhere}, {line}"
        return f"as_promised({str(node.target)!r}, {variable(name)}, {promised})"

    def free(self, names: tuple[str, ...]) -> None:
        gone = [variable(name) for name in names if name not in self.taken_over]
        if gone:
            self.line(f"del {', '.join(gone)}")

    def outputs(self) -> None:
        given: set[str] = set()
        texts: list[str] = []
        repeated = {output.repeats for output in self.graph.outputs}
        for position, output in enumerate(self.graph.outputs):
            text = self.output(output, given) if output.repeats is None else texts[output.repeats]
            if position in repeated and not text.isidentifier():
                self.line(f"given_{position} = {text}")
                text = f"given_{position}"
            texts.append(text)
        self.line(f"return [{', '.join(texts)}]")

    def output(self, output: GraphOutput, given: set[str]) -> str:
        """One whose buffer is `given` already is viewed, so that it is a tensor object of its own. What nobody else has
        is given in its shape by the quicker of both ways."""
        layout = output.layout
        if layout is None:
            return argument_text(output.value, self.graph)
        if output.buffer is None:
            return f"empty({layout.shape}, {layout.stride}, {layout.dtype})"
        if output.is_conjugated or output.is_negated or layout.dtype != self.graph.buffers[output.buffer].dtype:
            position = f"{layout.shape}, {layout.stride}, {layout.offset}"
            text = f"read_as({variable(output.buffer)}, {layout.dtype}, {position})"
            text = f"{text}.conj()" if output.is_conjugated else text
            return f"torch.ops.aten._neg_view({text})" if output.is_negated else text
        is_alone = output.buffer in self.own and self.times_given[output.buffer] == 1
        text = strided_text(
            self.graph, output.buffer, layout, "view" if is_alone else "alias", is_new=output.buffer in given
        )
        given.add(output.buffer)
        return text


def call_text(node: ExternNode, graph: LoopGraph, text: Callable[[Any, LoopGraph], str] | None = None) -> str:
    """The call of an operator on buffers, and on views of them; `text` gives that of each."""
    text = text or argument_text
    arguments = [text(value, graph) for value in node.arguments]
    arguments += [f"{key}={text(value, graph)}" for key, value in node.keywords.items()]
    return f"{_operator_text(node.target)}({', '.join(arguments)})"


def _aligned_text(value: Any, graph: LoopGraph) -> str:
    text = argument_text(value, graph)
    may_be_apart = isinstance(value, TensorArgument) and not _begins_vectors(value, graph)
    return f"aligned({text})" if may_be_apart else text


def _begins_vectors(argument: TensorArgument, graph: LoopGraph) -> bool:
    """Whether every row begins where a vector may: not known of what the caller gives, which lies where it likes."""
    layout = argument.layout
    steps = [layout.offset, *(step for step in layout.stride if step != 1)]
    is_ours = argument.buffer not in graph.inputs and argument.buffer not in graph.constants
    return is_ours and all(isinstance(step, int) and step * layout.dtype.itemsize % LOADED_BYTES == 0 for step in steps)


def argument_text(value: Any, graph: LoopGraph) -> str:
    if isinstance(value, TensorArgument):
        return strided_text(graph, value.buffer, value.layout)
    if isinstance(value, list | tuple):
        items = ", ".join(argument_text(item, graph) for item in value)
        return f"[{items}]"
    if isinstance(value, torch.device):
        return f"torch.device({str(value)!r})"
    if isinstance(value, Size):
        return value.text
    if isinstance(value, Real):
        return as_operand(value.text)
    if isinstance(value, complex) and not cmath.isfinite(value):
        return f"complex({argument_text(value.real, graph)}, {argument_text(value.imag, graph)})"
    if (isinstance(value, float) and value in (float("inf"), float("-inf"))) or value != value:
        return f"float({str(value)!r})"
    return repr(value)


def strided_text(graph: LoopGraph, buffer: str, layout: Layout, view: str = "view", is_new: bool = False) -> str:
    """A buffer, or a view of it where the layout is another one than its own."""
    whole = graph.buffers[buffer]
    name = variable(buffer)
    if not is_new and (layout.shape, layout.stride, layout.offset) == (whole.shape, whole.stride, whole.offset):
        return name
    return f"{view}({name}, {layout.shape}, {layout.stride}, {layout.offset})"


def _sizes_in(node: ExternNode) -> Iterator[Size]:
    """The sizes among the arguments of a library call, those of views included."""
    for tensor in node.tensor_arguments:
        layout = tensor.layout
        yield from (n for n in (*layout.shape, *layout.stride, layout.offset) if isinstance(n, Size))
    yield from (n for n in tree_leaves([node.arguments, node.keywords]) if isinstance(n, Size))


def is_late(layout: Layout) -> bool:
    """Whether only a run tells how large a tensor is: it may have no elements then."""
    return any(symbol.is_late for number in (*layout.shape, *layout.stride) for symbol in symbols_of(number))


def is_of_torch(target: Any) -> bool:
    """Whether a call is of PyTorch's own, whose results are as its rules for tensors without data say."""
    if isinstance(target, torch._ops.OpOverload):
        return target.namespace in ("aten", "prims", "prim")
    return not (isinstance(target, TreeCall) and target.is_of_user)


def _gives_new_tensors(target: Any) -> bool:
    """Whether the results of a call of PyTorch's own share no memory with what it gets."""
    if not isinstance(target, torch._ops.OpOverload) or target.namespace != "aten":
        return False
    return all(result.alias_info is None for result in target._schema.returns)


def _operator_text(target: Any) -> str:
    """`torch.ops.aten.topk.default` for an operator, or the name under which the executable offers another callable."""
    if target in _FUNCTIONS_OF_TORCH:
        return f"torch.{target._opname}"
    if isinstance(target, torch._ops.OpOverload):
        return f"torch.ops.{target.namespace}.{target._opname}.{target._overloadname}"
    return f"library[{getattr(target, '__name__', str(target))!r}]"
