"""Running an operator through decomposition, lowering and a backend, and judging its error against eager's own."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch._subclasses.functional_tensor import dispatch_functionalize
from torch.fx.experimental.proxy_tensor import make_fx
from torch.utils._pytree import tree_flatten, tree_map

from compiler.ir.nodes import ExternNode, LoopGraph
from compiler.lowering.decompositions import decompositions
from compiler.lowering.lower import lower


def aten_graph(function: Callable[..., Any], inputs: Sequence[Tensor]) -> torch.fx.GraphModule:
    """The functional, decomposed graph of a function, as AOTAutograd would hand it over."""

    def flat(*tensors: Tensor) -> tuple[Any, ...]:
        return tuple(tree_flatten(function(*tensors))[0])

    graph = make_fx(torch.func.functionalize(flat, remove="mutations"), decompositions(), tracing_mode="fake")(*inputs)
    if any(getattr(getattr(node.target, "_schema", None), "is_mutable", False) for node in graph.graph.nodes):
        # A decomposition wrote in place. This way sees into those, but takes three times as long.
        graph = make_fx(dispatch_functionalize(flat), decompositions(), tracing_mode="fake")(*inputs)
    return graph


def lowered(function: Callable[..., Any], *inputs: Tensor) -> LoopGraph:
    return lower(aten_graph(function, inputs))


def fallbacks(graph: LoopGraph) -> list[str]:
    return [
        f"{node.target}: {node.reason}" for node in graph.nodes if isinstance(node, ExternNode) and node.is_fallback
    ]


def eager(function: Callable[..., Any], inputs: Sequence[Tensor]) -> list[Tensor] | None:
    """What PyTorch gives, or None where it takes no such inputs."""
    try:
        return list(tree_flatten(function(*inputs))[0])
    except (RuntimeError, NotImplementedError, TypeError, IndexError):
        return None


def in_float64(function: Callable[..., Any], inputs: Sequence[Tensor]) -> list[Tensor]:
    """The same in float64, the judge of both; integers that become floats become float64."""
    exact = tree_map(lambda x: x.double() if x.is_floating_point() else x, tuple(inputs))
    usual = torch.get_default_dtype()
    torch.set_default_dtype(torch.float64)
    try:
        return list(tree_flatten(function(*exact))[0])
    finally:
        torch.set_default_dtype(usual)


def strides(tensor: Tensor) -> list[int]:
    """Those that matter: a dimension of size one may have any."""
    return [step for step, size in zip(tensor.stride(), tensor.shape, strict=True) if size > 1 and tensor.numel()]


def assert_close(ours: Tensor, expected: Tensor, exact: Tensor, where: str) -> None:
    """Equal dtype and shape; equal values, or for floats an error of at most twice eager's own and 4 ulp of the
    largest element, 16 in float64."""
    assert ours.dtype == expected.dtype and ours.shape == expected.shape, f"{where}: {ours.dtype}{tuple(ours.shape)}"
    if not ours.is_floating_point():
        assert torch.equal(ours, expected), f"{where}: {ours} is not {expected}"
        return
    if ours.dtype.itemsize == 1:  # a float8 has too few digits for a tolerance
        assert torch.equal(ours.float().nan_to_num(1e9), expected.float().nan_to_num(1e9)), f"{where}: {ours}"
        return
    assert torch.equal(ours.isnan(), expected.isnan()), f"{where}: NaN in {ours}, eager gives {expected}"
    known = expected.isfinite() & exact.isfinite() & ours.isfinite()
    assert torch.equal(ours[~known].nan_to_num(), expected[~known].nan_to_num()), f"{where}: {ours}, not {expected}"
    reference = exact[known].double()
    error = (ours[known].double() - reference).abs()
    of_eager = (expected[known].double() - reference).abs()
    limits = torch.finfo(ours.dtype)
    largest = reference.abs().max() if reference.numel() else 0.0
    # float64 has no finer judge than eager, whose own error is not known then.
    units = 16 if ours.dtype == torch.float64 else 4
    # What cancels in a sum is lost in proportion to the summands, not to the sum.
    allowed = 2 * (of_eager.max() if of_eager.numel() else 0) + units * limits.eps * largest + limits.tiny
    assert bool((error <= allowed).all()), f"{where}: error {error.max()}, eager's {of_eager.max()}"


def fake_of(node: Any) -> Any:
    return node.meta["val"] if isinstance(node, torch.fx.Node) else node


@dataclass(frozen=True)
class Samples:
    """The calls of a row that PyTorch takes: what it gives for each, and the loops that all are lowered to. They are
    traced as one function, as most of what it takes to trace a call is spent before and after it."""

    name: str
    function: Callable[..., Any]
    calls: Sequence[Sequence[Tensor]]
    expected: Sequence[list[Any]]
    aten: torch.fx.GraphModule
    graph: LoopGraph

    @classmethod
    def of(cls, name: str, function: Callable[..., Any], calls: Iterable[Sequence[Tensor]]) -> Samples:
        """Those of the calls that eager takes, lowered."""
        known = [(inputs, expected) for inputs in calls if (expected := eager(function, inputs)) is not None]
        taken = [inputs for inputs, _ in known]

        def every_call(*tensors: Tensor) -> list[Any]:
            left = iter(tensors)
            return [call([next(left) for _ in inputs]) for inputs in taken]

        def call(inputs: Sequence[Tensor]) -> Any:
            try:
                return function(*inputs)
            except Exception as error:
                error.add_note(f"in {described(name, inputs)}")
                raise

        aten = aten_graph(every_call, [tensor for inputs in taken for tensor in inputs])
        return cls(name, function, taken, [expected for _, expected in known], aten, lower(aten))

    @property
    def inputs(self) -> list[Tensor]:
        """Of all calls, one after the other, as the graph takes them."""
        return [tensor for inputs in self.calls for tensor in inputs]

    def judge(self, results: Sequence[Any]) -> None:
        """Raise AssertionError where a result is not as near to float64's as eager's is, or is laid out otherwise."""
        traced = [fake_of(node) for node in next(iter(reversed(self.aten.graph.nodes))).args[0]]
        pairs = iter(zip(results, traced, strict=True))
        for inputs, expected in zip(self.calls, self.expected, strict=True):
            where = described(self.name, inputs)
            exact = in_float64(self.function, inputs)
            for wanted, judge in zip(expected, exact, strict=True):
                ours, fake = next(pairs)
                if isinstance(wanted, Tensor):
                    assert_close(ours, wanted, judge, where)
                    # Some of PyTorch's decompositions give other strides than its kernels do.
                    assert strides(ours) in (strides(wanted), strides(fake)), f"{where}: strides {ours.stride()}"
                else:
                    assert ours == wanted, where
        assert next(pairs, None) is None, self.name


def described(name: str, inputs: Sequence[Tensor]) -> str:
    sizes = (f"{str(x.dtype).removeprefix('torch.')}{list(x.shape)}{list(x.stride())}" for x in inputs)
    return f"{name}({', '.join(sizes)})"
