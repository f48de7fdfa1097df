"""Count what eager execution launches and moves.

PyTorch's eager mode launches one kernel for each ATen call that computes something, and each call reads its arguments
from memory and writes its results there. Views, allocations and metadata move nothing. The graph that Dynamo captured
is run on fake tensors, node by node, under a dispatch mode that sees every such call.

A tensor is called after the input that it is, or after the node that made it (`mul`, a second one `mul.2`, in the
backward `gradient_mul`); a view after the tensor that it views. What autograd is given for the results is `gradient`.

A program's `add_` with a factor is a product and a sum in a graph of torch 2.11's Dynamo, as two calls would be, and
counts as two.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from math import prod
from typing import Any, TypeGuard

import torch
from torch._ops import HigherOrderOperator
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from compiler.capture.torch_internals import is_made_of_tensors, transforms_closed
from compiler.fx.fake_values import fake_mode_of, fake_mode_of_its_own, in_this_call
from compiler.ir.overlap import Part, bytes_together, part

#: Calls that launch nothing: they allocate, or pass their argument on.
_FREE = frozenset(
    """aten.empty aten.empty_like aten.empty_strided aten.new_empty aten.new_empty_strided aten.detach aten.alias
    aten.lift_fresh aten._unsafe_view aten.sym_size aten.sym_stride aten.sym_numel aten.is_same_size
    aten._local_scalar_dense aten._has_same_storage_numel aten._efficientzerotensor prim.device""".split()
)

#: Calls that read only as much of their first argument as they give.
_PICKS = frozenset("aten.embedding aten.index aten.index_select aten.gather aten.take".split())
#: Calls that write over their first argument without reading it. Those named `*_like` and `new_*` read nothing either.
_OVERWRITES = frozenset("aten.copy_ aten.fill_ aten.zero_ aten.normal_ aten.uniform_ aten.bernoulli_".split())


@dataclass(frozen=True)
class MovedTensor:
    """Bytes that one call reads and writes of one tensor."""

    name: str
    read: int
    written: int


@dataclass(frozen=True)
class EagerCall:
    """One ATen call that computes: the node of Dynamo's graph that it was made for, and what it moves, each tensor of
    its arguments read once, each of its results written once."""

    operator: str
    node: str | None
    tensors: tuple[MovedTensor, ...]


class _Names:
    """What tensors are called, by the storage that they lie in, which is kept so that no other one takes its place."""

    def __init__(self) -> None:
        self._known: dict[int, tuple[torch.UntypedStorage, str]] = {}
        self._count: dict[str, int] = {}

    def of(self, tensor: torch.Tensor, maker: str) -> str:
        storage = tensor.untyped_storage()
        if id(storage) not in self._known:
            self._count[maker] = count = self._count.get(maker, 0) + 1
            self._known[id(storage)] = storage, maker if count == 1 else f"{maker}.{count}"
        return self._known[id(storage)][1]


class _Counter(TorchDispatchMode):
    """Keeps the calls; `node` is the node of the graph that is running, or whose gradient is."""

    def __init__(self, names: _Names, made_by: str) -> None:
        super().__init__()
        self.calls: list[EagerCall] = []
        self.node: str | None = None
        self.is_counting = True
        self._names, self._made_by = names, made_by

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        given = _distinct(tree_leaves((args, kwargs)))
        result = func(*args, **(kwargs or {}))
        if self.is_counting and not func.is_view and str(func.overloadpacket) not in _FREE:
            self._keep(func, given, _distinct(tree_leaves(result)))
        return result

    def _keep(self, func: Any, given: list[torch.Tensor], made: list[torch.Tensor]) -> None:
        moved: dict[str, list[int]] = {}
        written = [_bytes(tensor) for tensor in made]
        read = _read_bytes(str(func.overloadpacket), given, sum(written))
        for direction, (tensors, sizes) in enumerate(((given, read), (made, written))):
            views: dict[str, list[tuple[torch.Tensor, int]]] = {}
            for tensor, size in zip(tensors, sizes, strict=True):
                name = self._names.of(tensor, self._made_by.format(self.node or "sum"))
                views.setdefault(name, []).append((tensor, size))
            for name, of_one in views.items():
                moved.setdefault(name, [0, 0])[direction] = _of_one_memory(of_one)
        moved = {name: sizes for name, sizes in moved.items() if any(sizes)}
        if moved:
            tensors_moved = tuple(MovedTensor(name, *sizes) for name, sizes in moved.items())
            self.calls.append(EagerCall(str(func).removesuffix(".default"), self.node, tensors_moved))


class _NodeByNode(torch.fx.Interpreter):
    """Runs a graph and tells the counters which node is running: of its forward, and later of its backward."""

    def __init__(
        self,
        graph: torch.fx.GraphModule,
        names: _Names,
        forward: _Counter,
        backward: _Counter,
        given: Callable[[Any], Any],
    ) -> None:
        # A fake value holds no memory, and one call may stand where several were.
        super().__init__(graph, garbage_collect_values=False)
        self._names, self._forward, self._backward, self._given = names, forward, backward, given
        self._followed: set[Any] = set()
        #: Inputs that another graph, or code between graphs, has made.
        self._made_before: list[torch.Tensor] = []
        #: Calls that Dynamo has written as several, by the last of these, and the others.
        self._written = {node: call for node in graph.graph.nodes if (call := _written_as(node)) is not None}
        self._of_others = {other for call in self._written.values() for other in call.others}

    def run_node(self, n: torch.fx.Node) -> Any:
        self._forward.node = n.name
        result = self._result_of(n)
        for value in tree_leaves(result):
            if isinstance(value, torch.Tensor):
                if n.op in ("placeholder", "get_attr"):
                    self._names.of(value, n.name)
                    given = n.meta.get("example_value")
                    if isinstance(given, torch.Tensor) and not given.is_leaf:
                        self._made_before.append(value)
                self._follow(value.grad_fn, n.name)
        return result

    def _result_of(self, n: torch.fx.Node) -> Any:
        if n in self._of_others:
            return None
        if n in self._written:
            call = self._written[n]
            tensors: Any = self.map_nodes_to_values(call.tensors, n)
            return getattr(torch.Tensor, call.method)(*tensors, value=call.factor)
        example = n.meta.get("example_value") if n.op == "get_attr" else None
        # A parameter that the graph holds itself, as the step of an optimiser does, is an input as well.
        return self._given(example) if isinstance(example, torch.Tensor) else super().run_node(n)

    def _follow(self, made: Any, node: str) -> None:
        """One call may leave several nodes of autograd, one behind the other; sums of gradients come between nodes."""
        open_ = [made]
        while open_:
            gradient = open_.pop()
            if gradient is not None and gradient not in self._followed:
                self._followed.add(gradient)
                leaf = getattr(gradient, "variable", None)
                if any(leaf is value for value in self._made_before):
                    # Its gradient goes on to what made it. Only that of a leaf is kept, and copied if others have it.
                    gradient.register_prehook(lambda _: setattr(self._backward, "is_counting", False))
                    gradient.register_hook(lambda _gradients, _of_results: setattr(self._backward, "is_counting", True))
                gradient.register_prehook(lambda _: setattr(self._backward, "node", node))
                gradient.register_hook(lambda _gradients, _of_results: setattr(self._backward, "node", None))
                open_ += [following for following, _ in gradient.next_functions]


@dataclass(frozen=True)
class _WrittenCall:
    """A call that changes the first of its tensors by a factor of the others, and the nodes that Dynamo writes it as
    before the last one."""

    method: str
    tensors: tuple[Any, ...]
    factor: Any
    others: tuple[torch.fx.Node, ...]


def _written_as(copy: torch.fx.Node) -> _WrittenCall | None:
    """`p.addcdiv_(m, v, value=2)`, of which Dynamo makes `p.copy_(fma(m / v, 2, p))`, so `p.addcmul_` of a product: the
    call that the program has. None for any other node."""
    changed, total = copy.args[:2] if copy.target == "copy_" else (None, None)
    if not _is_only_for(total, copy) or str(total.target) != "prims.fma.default" or total.args[2] is not changed:
        return None
    product, factor, _ = total.args
    methods: dict[Any, str] = {torch.mul: "addcmul_", torch.div: "addcdiv_"}
    method = methods.get(getattr(product, "target", None))
    if method is None or not _is_only_for(product, total) or isinstance(factor, torch.fx.Node):
        return None
    return _WrittenCall(method, (changed, *product.args), factor, (product, total))


def _is_only_for(node: Any, reader: torch.fx.Node) -> TypeGuard[torch.fx.Node]:
    return isinstance(node, torch.fx.Node) and list(node.users) == [reader]


def _distinct(values: Iterable[Any]) -> list[torch.Tensor]:
    return list({id(value): value for value in values if isinstance(value, torch.Tensor)}.values())


def _read_bytes(operator: str, given: list[torch.Tensor], written: int) -> list[int]:
    """What a call reads of each of its arguments."""
    name = operator.removeprefix("aten.")
    if name.endswith("_like") or name.startswith("new_"):
        return [0] * len(given)
    sizes = [_bytes(tensor) for tensor in given]
    if operator in _OVERWRITES:
        sizes[0] = 0
    if operator in _PICKS:
        sizes[0] = min(sizes[0], written)
    return sizes


def _of_one_memory(views: list[tuple[torch.Tensor, int]]) -> int:
    """Bytes of several views together: where they overlap, or one of them itself, no more than they span."""
    return bytes_together(_part(tensor, size) for tensor, size in views if size)


def _part(tensor: torch.Tensor, read: int) -> Part:
    """The part of its memory that it holds, of which `read` bytes are read."""
    begin, size = in_this_call(tensor.storage_offset()), tensor.dtype.itemsize
    loops = [(in_this_call(stride), in_this_call(length)) for length, stride in zip(tensor.shape, tensor.stride())]
    end = begin + sum((length - 1) * stride for stride, length in loops) + 1
    return part(begin * size, end * size, read, loops, size)


def _bytes(tensor: torch.Tensor) -> int:
    elements = prod(in_this_call(size) for size, stride in zip(tensor.shape, tensor.stride(), strict=True) if stride)
    return elements * tensor.dtype.itemsize if tensor.numel() else 0


def eager_traffic(
    graph: torch.fx.GraphModule, wants_gradients: bool, with_backward: bool
) -> tuple[list[EagerCall], list[EagerCall] | None] | str:
    """The calls of the captured graph run eagerly, of inputs that want gradients or not, and of its backward; or why
    they are not known."""
    placeholders = [node for node in graph.graph.nodes if node.op == "placeholder"]
    examples = [node.meta.get("example_value") for node in placeholders]
    fakes = [value for value in examples if isinstance(value, torch.Tensor)]
    if any(map(is_made_of_tensors, fakes)):
        return "tensors that are made of others, such as nested ones, are not followed"
    mode = fake_mode_of(fakes)
    is_open = any(
        isinstance(size, torch.SymInt) for size in (*examples, *(size for fake in fakes for size in fake.shape))
    )
    if is_open:
        # A decomposition of torch may ask for the number that a size is, which would fix it for the graph.
        mode = fake_mode_of_its_own()
    names = _Names()
    forward, backward = _Counter(names, "{}"), _Counter(names, "gradient_{}")
    try:
        with mode, transforms_closed():

            def given(example: Any) -> Any:
                value = _of_this_call(example) if is_open else _leaf(example)
                return value if wants_gradients or not isinstance(value, torch.Tensor) else value.detach()

            # Gradients that the graph itself takes, as `torch.func.grad` does, are counted with or without a backward.
            with torch.enable_grad(), forward:
                results = _NodeByNode(graph, names, forward, backward, given).run(*map(given, examples))
            outputs = [o for o in tree_leaves(results) if isinstance(o, torch.Tensor) and o.requires_grad]
            if not (with_backward and outputs):
                return forward.calls, None
            seeds = [torch.ones_like(o) for o in outputs]
            for seed in seeds:
                names.of(seed, "gradient")
            with backward:
                torch.autograd.backward(outputs, seeds)
        return forward.calls, backward.calls
    except Exception:  # a data-dependent operator, or one without a fake kernel: no figure is better than a guess
        stopped = next((node for node in graph.graph.nodes if node.name == forward.node), None)
        if stopped is not None and isinstance(stopped.target, HigherOrderOperator):
            return f"what `{stopped.name}` runs, and how often, is known only when it runs"
        return f"without data, `{forward.node}` cannot be run as eager mode runs it"


def _leaf(value: Any) -> Any:
    if not isinstance(value, torch.Tensor):
        return value
    return value.detach().requires_grad_(value.requires_grad)


def _of_this_call(value: Any) -> Any:
    """The same in the mode in force, with the sizes of the call in which the graph was captured."""
    if isinstance(value, torch.SymInt):
        return in_this_call(value)
    if not isinstance(value, torch.Tensor):
        return value
    shape, stride = ([in_this_call(size) for size in sizes] for sizes in (value.shape, value.stride()))
    made = torch.empty_strided(shape, stride, dtype=value.dtype, device=value.device)
    return made.requires_grad_(value.requires_grad)
