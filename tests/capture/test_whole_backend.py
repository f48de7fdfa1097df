"""torch.compile(backend="fusionscope") with the compiler behind it: what once ended in an exception instead."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from compiler.backend import fusionscope
from compiler.compile import Built, observed_compilations


def _named_like_the_wrapper(empty: Tensor, view: Tensor, inputs: Tensor) -> Tensor:
    return torch.cat([(empty + view).t().reshape(-1), inputs.reshape(-1)]).cumsum(0) + empty.sum()


def _square(x: Tensor) -> Tensor:
    return x @ x.t() + 5 * torch.eye(5)


CASES: dict[str, Callable[[Tensor], Tensor]] = {
    # The index is a tensor with values that the graph holds.
    "a list as an index": lambda x: x[[1, 2]] + 1,
    # The check of the result is a call for its effect.
    "a factorisation that checks": lambda x: torch.linalg.cholesky(_square(x)) + 1,
    "an inverse": lambda x: torch.linalg.inv(_square(x)),
    # Two fusions of one round, each without a cycle, and with one if both were made.
    "fusions that order each other": lambda x: F.grid_sample(
        x.expand(2, 3, 5, 5), x[:, :2].expand(2, 5, 5, 2) / 3, align_corners=False
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_equals_eager(name: str) -> None:
    torch._dynamo.reset()
    x = torch.randn(5, 5, generator=torch.Generator().manual_seed(0))
    torch.testing.assert_close(torch.compile(CASES[name], backend=fusionscope)(x), CASES[name](x))


def test_inputs_named_like_what_the_wrapper_calls() -> None:
    torch._dynamo.reset()
    tensors = [torch.randn(3, 4) for _ in range(3)]
    compiled = torch.compile(_named_like_the_wrapper, backend=fusionscope)
    torch.testing.assert_close(compiled(*tensors), _named_like_the_wrapper(*tensors))


def test_an_input_that_is_a_slice_goes_to_a_library_call() -> None:
    torch._dynamo.reset()
    x = torch.randn(6, 4)[2:]
    compiled = torch.compile(lambda x: x.t() @ x[:, 1:], backend=fusionscope)
    torch.testing.assert_close(compiled(x), x.t() @ x[:, 1:])


def _raises(backend: Any) -> bool:
    torch._dynamo.reset()
    try:
        torch.compile(torch.linalg.cholesky, backend=backend)(-torch.eye(3))
    except torch.linalg.LinAlgError:
        return True
    return False


def test_a_failed_check_raises_as_in_eager() -> None:
    """AOTAutograd of torch 2.11 and 2.12 takes the check out of the graph, so that no backend ever sees it."""
    is_kept = not torch.__version__.startswith(("2.11.", "2.12."))
    assert _raises(fusionscope) == _raises("aot_eager") == is_kept


def test_memory_that_nobody_wrote_is_filled_where_all_must_be_deterministic() -> None:
    """As in eager: NaN, or the largest integer."""

    def unwritten(x: Tensor) -> tuple[Tensor, ...]:
        made = torch.empty(3), torch.empty_like(x), x.new_empty(2, dtype=torch.int16), torch.empty_strided((2,), (1,))
        resized = torch.ops.aten.resize(x * 2, [6]), (x * 3).resize_(2, 3), (x > 0).resize_(6), x.long().resize_(6)
        return *made, *resized

    torch._dynamo.reset()
    torch.use_deterministic_algorithms(True)
    try:
        given = torch.compile(lambda x: (*unwritten(x), x + 1), backend=fusionscope)(torch.ones(4))
        expected = (*unwritten(torch.ones(4)), torch.full((4,), 2.0))
    finally:
        torch.use_deterministic_algorithms(False)
    torch.testing.assert_close(given, expected, equal_nan=True)


def test_of_two_equal_zeros_the_one_that_eager_keeps_is_kept() -> None:
    """Eager's functions on a CPU give -0.0 of -0.0 here."""

    def signs(x: Tensor) -> list[Tensor]:
        results = (
            x.clamp(0, 6),
            x.clamp_min(0.0),
            x.clamp_max(0.0),
            F.relu6(x),
            F.hardtanh(x, 0.0, 1.0),
            x.sin(),
            x.relu(),
        )
        return [result.signbit() for result in results]

    torch._dynamo.reset()
    for dtype in (torch.float32, torch.float64, torch.bfloat16):
        x = torch.tensor([0.0, -0.0, -1.0, 3.0] * 9, dtype=dtype)
        torch.testing.assert_close(torch.compile(signs, backend=fusionscope)(x), signs(x))


def test_zeros_that_were_whole_numbers_have_no_sign() -> None:
    """GCC 12 makes one rounding of a conversion to a whole number and back, which would keep it."""

    def whole(x: Tensor) -> list[Tensor]:
        bits = (2**33 * x).long()
        results = (
            x.int().to(x.dtype),
            x.long().to(x.dtype),
            x.floor().long().to(x.dtype),
            x.int() + 1,
            bits.int().long(),
        )
        return [*results, *(result.signbit() for result in results)]

    torch._dynamo.reset()
    for dtype in (torch.float32, torch.float64, torch.bfloat16):
        x = torch.tensor([0.0, -0.0, -0.5, 2.75, -3.0] * 9, dtype=dtype)
        torch.testing.assert_close(torch.compile(whole, backend=fusionscope)(x), whole(x), rtol=0, atol=0)


@pytest.mark.parametrize("reduction", ["none", "mean", "sum"])
@pytest.mark.parametrize("is_open", [False, True], ids=["fixed", "open"])
def test_labels_of_a_row_end_at_the_first_that_is_none(reduction: str, is_open: bool) -> None:
    """PyTorch's decomposition goes on with the first class."""

    def loss(x: Tensor, labels: Tensor) -> Tensor:
        return F.multilabel_margin_loss(x * 2, labels, reduction=reduction)

    torch._dynamo.reset()
    compiled = torch.compile(loss, backend=fusionscope, dynamic=is_open, fullgraph=True)
    labels = torch.tensor([[1, 3, -1, 0, -1], [0, -1, -1, -1, -1], [-1, 2, 2, 2, 2], [4, 3, 2, 1, 0]])
    x = torch.linspace(-1, 1, 20).sin().reshape(4, 5)
    for rows in ((x, labels), (x[1:], labels[1:]), (x[0], labels[0])):
        given, wanted = (rows[0].clone().requires_grad_() for _ in range(2))
        result, expected = compiled(given, rows[1]), loss(wanted, rows[1])
        torch.testing.assert_close(result, expected)
        torch.testing.assert_close(compiled(rows[0], rows[1]), expected.detach())
        result.sum().backward()
        expected.sum().backward()
        torch.testing.assert_close(given.grad, wanted.grad)


def test_a_detached_input_is_written_to_beside_the_one_that_learns() -> None:
    """AOTAutograd refuses it: neither is a view of the other."""

    def halved(x: Tensor) -> tuple[Tensor, Tensor]:
        y = x * 3
        kept = y.detach()
        torch._dynamo.graph_break()
        kept.mul_(0.5)
        return (y + kept).sin(), kept

    torch._dynamo.reset()
    given, wanted = (torch.linspace(-1, 1, 8).requires_grad_() for _ in range(2))
    result, expected = torch.compile(halved, backend=fusionscope)(given), halved(wanted)
    torch.testing.assert_close(result, expected)
    (gradient,), (right,) = (torch.autograd.grad(y[0].sum(), x) for y, x in ((result, given), (expected, wanted)))
    torch.testing.assert_close(gradient, right)


@pytest.mark.parametrize("dims", [2, 3])
@pytest.mark.parametrize("align_corners", [False, True])
@pytest.mark.parametrize("is_open", [False, True], ids=["fixed", "open"])
def test_a_grid_of_affine_maps_has_a_gradient_at_every_size(dims: int, align_corners: bool, is_open: bool) -> None:
    """ATen's takes no open sizes."""

    def grid(x: Tensor) -> Tensor:
        maps = x.mean(-1).flatten(2)[..., : dims + 1]
        return F.affine_grid(maps, list(x.shape), align_corners=align_corners)

    torch._dynamo.reset()
    compiled = torch.compile(grid, backend=fusionscope, dynamic=is_open, fullgraph=True)
    for batch, size in ((2, 4), (3, 5)):
        x = torch.linspace(-1, 1, batch * dims * size**dims, dtype=torch.float64).sin()
        given, wanted = (x.reshape(batch, dims, *(size,) * dims).clone().requires_grad_() for _ in range(2))
        result, expected = compiled(given), grid(wanted)
        torch.testing.assert_close(result, expected)
        result.square().sum().backward()
        expected.square().sum().backward()
        torch.testing.assert_close(given.grad, wanted.grad)


@pytest.mark.parametrize("dtype", [torch.complex64, torch.complex128])
@pytest.mark.parametrize("name", ["pinv", "lstsq"])
def test_complex_solutions_and_their_gradients_are_right_from_the_first_call_on(name: str, dtype: torch.dtype) -> None:
    """AOTAutograd has a mode on in the first call, under which torch gives wrong ones."""
    torch._dynamo.reset()
    generator = torch.Generator().manual_seed(0)
    given, right = (torch.randn(4, 3, dtype=torch.complex128, generator=generator) for _ in range(2))

    def size(x: Tensor) -> Tensor:
        found = torch.linalg.pinv(x) if name == "pinv" else torch.linalg.lstsq(x, right.to(x.dtype)).solution
        return found.abs().square().sum()

    compiled = torch.compile(size, backend=fusionscope)
    exact = given.clone().requires_grad_()
    wanted = size(exact)
    wanted.backward()
    assert exact.grad is not None
    for _ in range(2):
        x = given.to(dtype, copy=True).requires_grad_()
        result = compiled(x)
        result.backward()
        # Errors grow by the square of the matrix's condition.
        tolerance = 40 * torch.finfo(dtype).eps * float(torch.linalg.cond(given)) ** 2
        torch.testing.assert_close(result.double(), wanted, rtol=tolerance, atol=0)
        assert x.grad is not None
        assert (x.grad.to(exact.dtype) - exact.grad).norm() <= tolerance * exact.grad.norm()


def test_bits_of_a_tensor_whose_elements_share_memory_are_a_kernel() -> None:
    """`operator.and_` ends as calls in place do, and writes nothing."""

    def masked(x: Tensor, mask: Tensor) -> Tensor:
        return (x.expand(4, 6) & mask) | 1

    torch._dynamo.reset()
    seen: list[Built] = []
    x, mask = (torch.arange(rows * 6).reshape(rows, 6) for rows in (1, 4))
    with observed_compilations(seen.append):
        found = torch.compile(masked, backend=fusionscope)(x, mask)
    assert torch.equal(found, masked(x, mask)) and [len(one.groups) for one in seen] == [1]
