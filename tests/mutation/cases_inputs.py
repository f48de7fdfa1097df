"""Functions that write to what they are given, in every way that PyTorch has."""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from tests.mutation.observe import Case


def matrix(*sizes: int) -> Tensor:
    return torch.randn(sizes or (4, 6))


def two_of_one() -> list[Tensor]:
    """The same tensor twice."""
    x = matrix()
    return [x, x]


def two_views() -> list[Tensor]:
    """Two tensors in one storage, of which neither overlaps the other."""
    base = torch.randn(48)
    return [base[:24].view(4, 6), base[24:].view(4, 6)]


def overlapping() -> list[Tensor]:
    base = torch.randn(30)
    return [base[:24].view(4, 6), base[6:].view(4, 6)]


def base_and_view() -> list[Tensor]:
    base = torch.randn(4, 6)
    return [base, base[1:3]]


def base_and_transposed() -> list[Tensor]:
    base = torch.randn(5, 5)
    return [base, base.t()]


def leaf(*sizes: int) -> Tensor:
    return matrix(*sizes).requires_grad_()


def add_in_place(x: Tensor) -> Tensor:
    return x.add_(1)


def chain(x: Tensor) -> None:
    x.mul_(2).sub_(0.5).clamp_(-1, 1).sin_()


def dropped_in_evaluation(x: Tensor) -> tuple[Tensor, Tensor]:
    """A dropout that drops nothing gives the very tensor that it is given."""
    hidden = x * 2
    kept = F.dropout(hidden, 0.5, training=False)
    kept += 1
    F.dropout(hidden, 0.0).mul_(3)
    return hidden * 2, kept


def number_then_read(count: Tensor) -> Tensor:
    count.mul_(0.5).add_(1)
    return torch.arange(3) - count


def two_results(x: Tensor) -> tuple[Tensor, Tensor]:
    x.add_(1)
    return x, x + 1


def read_before_write(x: Tensor) -> Tensor:
    before = x * 2
    x.add_(1)
    return before


def read_before_and_after(x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    before = x.clone()
    x.mul_(3)
    after = x.clone()
    x.sub_(before)
    return before, after, x.sum(0)


def swap(x: Tensor, y: Tensor) -> None:
    kept = x.clone()
    x.copy_(y)
    y.copy_(kept)


def rotate_rows(x: Tensor) -> None:
    x[1:] = x[:-1].clone()


def reverse_in_place(x: Tensor) -> None:
    x.copy_(x.flip(0, 1))


def transpose_in_place(x: Tensor) -> None:
    x.copy_(x.t().clone())


def symmetric(x: Tensor) -> Tensor:
    x.add_(x.t().clone())
    return x


def softmax_of_own_sum(x: Tensor) -> Tensor:
    """Every element reads a sum over elements that are overwritten."""
    x.sub_(x.amax(1, keepdim=True)).exp_()
    x.div_(x.sum(1, keepdim=True))
    return x.sum()


def matmul_into_itself(x: Tensor) -> None:
    x.copy_(x @ x)


def slices(x: Tensor, y: Tensor) -> None:
    x[1:, ::2] = y
    x[:, 1] += 2
    x[0] = 7


def write_transposed(x: Tensor, y: Tensor) -> Tensor:
    x.t().add_(y.t())
    return x.t()


def write_view_of_view(x: Tensor) -> Tensor:
    x.view(-1)[3:9].view(2, 3).t()[1].mul_(10)
    return x + 0


def write_diagonal(x: Tensor) -> None:
    x.diagonal().fill_(0)


def write_unbound(x: Tensor) -> None:
    first, *_, last = x.unbind(0)
    first.add_(last)
    last.zero_()


def write_chunks(x: Tensor) -> None:
    a, b = x.chunk(2, 1)
    a.mul_(b)
    b.add_(a)


def write_strided(x: Tensor) -> Tensor:
    x.as_strided((2, 3), (12, 2), 1).add_(1)
    return x * 1


def write_selected(x: Tensor) -> None:
    x.select(1, -1).copy_(x.select(1, 0))


def write_narrow(x: Tensor) -> None:
    x.narrow(0, 1, 2).neg_()


def write_expanded(x: Tensor) -> None:
    x[:1].expand(4, 6)[2].add_(5)


def fills(x: Tensor, y: Tensor, z: Tensor) -> None:
    x.fill_(3)
    y.zero_()
    z.fill_(x.sum())


def masks(x: Tensor, mask: Tensor) -> None:
    x.masked_fill_(mask, -1)
    x[x > 1] = 1


def index_assign(x: Tensor, index: Tensor) -> None:
    x[index] = 4
    x[:, index] = torch.tensor([0.5, -0.5])


def put_unique(x: Tensor, index: Tensor, y: Tensor) -> None:
    x.index_put_((index,), y)


def put_accumulate(x: Tensor, index: Tensor, y: Tensor) -> None:
    x.index_put_((index,), y, accumulate=True)


def put_two_indices(x: Tensor, rows: Tensor, columns: Tensor) -> None:
    x.index_put_((rows, columns), torch.ones(5), accumulate=True)


def index_family(x: Tensor, index: Tensor, y: Tensor) -> None:
    x.index_add_(0, index, y, alpha=0.5)
    x.index_copy_(0, index, y * 2)
    x.index_fill_(0, index[:1], 9)


def scatter_family(x: Tensor, index: Tensor, y: Tensor) -> None:
    x.scatter_add_(1, index, y)
    x.scatter_(1, index[:, :1], -1.0)
    x.scatter_reduce_(1, index, y, "amax")


def copy_converting(x: Tensor, y: Tensor) -> None:
    x.copy_(y)


def out_argument(x: Tensor, y: Tensor) -> Tensor:
    return torch.add(x, 1, out=y)


def out_of_matmul(x: Tensor, y: Tensor) -> Tensor:
    torch.mm(x, x.t(), out=y)
    return y.sum()


def out_is_an_input(x: Tensor) -> Tensor:
    return torch.mul(x, x, out=x)


def both(x: Tensor, y: Tensor) -> Tensor:
    x.add_(1)
    return x * y


def both_written(x: Tensor, y: Tensor) -> Tensor:
    x.add_(1)
    y.mul_(2)
    return x + y


def metadata(x: Tensor) -> Tensor:
    x.t_()
    return x + 1


def unsqueeze_in_place(x: Tensor) -> Tensor:
    x.unsqueeze_(0)
    return x.mul_(2)


def foreach(x: Tensor, y: Tensor, z: Tensor) -> None:
    torch._foreach_mul_([x, y, z], 2.0)
    torch._foreach_add_([x, y], [z, z], alpha=0.5)
    torch._foreach_addcdiv_([z], [x], [torch.exp(y)], value=-0.1)


def random_state_free(x: Tensor) -> Tensor:
    x[:, 0], x[:, 1] = x[:, 1].clone(), x[:, 0].clone()
    return x


def many_writes(x: Tensor) -> Tensor:
    for step in range(6):
        x[step % 4 :: 2, step % 3 :].mul_(1.5).add_(x[:1, step % 3 :].clone())
    return x.mean(1)


def under_no_grad(x: Tensor) -> Tensor:
    with torch.no_grad():
        x.mul_(0.5)
    return (x * x).sum()


def step_of_sgd(weight: Tensor, gradient: Tensor, momentum: Tensor) -> None:
    with torch.no_grad():
        momentum.mul_(0.9).add_(gradient)
        weight.sub_(momentum, alpha=0.1)


def detached_write(x: Tensor) -> Tensor:
    y = x * 1
    y.detach().mul_(2)
    return y.sum()


def detached_input_write(x: Tensor) -> Tensor:
    x.detach().mul_(2)
    return x * 3


def detach_in_place(x: Tensor) -> Tensor:
    y = x.sin()
    y.detach_()
    return y * x


def wants_gradient_inside(x: Tensor) -> Tensor:
    y = x.detach() * 2
    y.requires_grad_()
    return (y * y).sum()


def data_attribute(x: Tensor) -> Tensor:
    x.data.mul_(2)
    return x + 1


def zero_rank(x: Tensor) -> Tensor:
    x.add_(1).mul_(x)
    return x


def counted(step: Tensor, x: Tensor) -> Tensor:
    step += 1
    return x / step


def in_place_of_integers(x: Tensor) -> None:
    x.floor_divide_(2)
    x.bitwise_and_(3)
    x <<= 2


def half_in_place(x: Tensor) -> Tensor:
    x.mul_(2).neg_()
    return x.float()


def noncontiguous() -> Tensor:
    return torch.randn(8, 12)[::2, ::2]


def channels_last() -> Tensor:
    return torch.randn(2, 3, 4, 5).to(memory_format=torch.channels_last)


def batch_of_channels(x: Tensor) -> Tensor:
    x[:, 1].mul_(2)
    x.relu_()
    return x.permute(0, 2, 3, 1)


def _rows(*values: int) -> Tensor:
    return torch.tensor(values)


INPUTS: list[Case] = [
    Case("in place and returned", add_in_place, lambda: [matrix()]),
    Case("a chain of writes", chain, lambda: [matrix()]),
    Case("x and x + 1", two_results, lambda: [matrix()]),
    Case("through dropouts that drop nothing", dropped_in_evaluation, lambda: [matrix()]),
    Case("a number of float64 that nobody reads", chain, lambda: [torch.ones((), dtype=torch.float64)]),
    Case("a number of float64 that is read later", number_then_read, lambda: [torch.ones((), dtype=torch.float64)]),
    Case("read before it is written", read_before_write, lambda: [matrix()]),
    Case("read before and after", read_before_and_after, lambda: [matrix()]),
    Case("swapped", swap, lambda: [matrix(), matrix()]),
    Case("rows move down", rotate_rows, lambda: [matrix()]),
    Case("reversed in place", reverse_in_place, lambda: [matrix()]),
    Case("transposed in place", transpose_in_place, lambda: [matrix(5, 5)]),
    Case("made symmetric", symmetric, lambda: [matrix(5, 5)]),
    Case("softmax in place", softmax_of_own_sum, lambda: [matrix()]),
    Case("softmax in place, many rows", softmax_of_own_sum, lambda: [matrix(70, 130)]),
    Case("a product with itself", matmul_into_itself, lambda: [matrix(5, 5)]),
    Case("slices assigned", slices, lambda: [matrix(), matrix(3, 3)]),
    Case("through a transposed view", write_transposed, lambda: [matrix(), matrix()]),
    Case("through a view of a view", write_view_of_view, lambda: [matrix()]),
    Case("the diagonal", write_diagonal, lambda: [matrix(5, 5)]),
    Case("unbound rows", write_unbound, lambda: [matrix()]),
    Case("chunks that read each other", write_chunks, lambda: [matrix()]),
    Case("through as_strided", write_strided, lambda: [matrix()]),
    Case("a column from another", write_selected, lambda: [matrix()]),
    Case("a narrow part", write_narrow, lambda: [matrix()]),
    Case("one row of an expanded row", write_expanded, lambda: [matrix()], left_to_eager=True),
    Case("fill and zero", fills, lambda: [matrix(), matrix(), matrix()]),
    Case("masked", masks, lambda: [matrix(), matrix() > 0]),
    Case("assigned by a list of rows", index_assign, lambda: [matrix(), _rows(0, 2)]),
    Case("index_put, unique rows", put_unique, lambda: [matrix(), _rows(3, 0), matrix(2, 6)]),
    Case("index_put, the same row", put_accumulate, lambda: [matrix(), _rows(1, 3, 1, 1), matrix(4, 6)]),
    Case("index_put, equal values to one row", put_unique, lambda: [matrix(), _rows(2, 2), torch.ones(6)]),
    Case("index_put of points", put_two_indices, lambda: [matrix(), _rows(0, 1, 0, 3, -1), _rows(5, 2, 5, -1, 5)]),
    Case("index_add, index_copy, index_fill", index_family, lambda: [matrix(), _rows(3, 1), matrix(2, 6)]),
    Case(
        "scatter in place",
        scatter_family,
        lambda: [matrix(), torch.tensor([[0, 2, 2], [1, 1, 5], [3, 3, 3], [4, 0, 1]]), matrix(4, 3)],
    ),
    Case("copied from integers", copy_converting, lambda: [matrix(), torch.arange(6)]),
    Case("copied into half precision", copy_converting, lambda: [matrix().bfloat16(), matrix()]),
    Case("copied into integers", copy_converting, lambda: [torch.zeros(4, 6, dtype=torch.int32), matrix() * 5]),
    Case("an argument for the result", out_argument, lambda: [matrix(), torch.empty(4, 6)]),
    Case(
        "an argument for the result with gaps",
        out_argument,
        lambda: [matrix(), torch.zeros(4, 12)[:, ::2]],
        left_to_eager=True,
    ),
    Case("an argument for a product", out_of_matmul, lambda: [matrix(), torch.empty(4, 4)]),
    Case("an argument for the result is read too", out_is_an_input, lambda: [matrix()]),
    Case("the same tensor twice", both, two_of_one),
    Case("the same tensor twice, both written", both_written, two_of_one),
    Case("two tensors of one storage", both_written, two_views),
    Case("overlapping tensors", both, overlapping, left_to_eager=True),
    Case("overlapping tensors, both written", both_written, overlapping, left_to_eager=True),
    Case("a tensor and a view of it", lambda x, y: (x.add_(1), y * 2)[1], base_and_view, left_to_eager=True),
    Case("a view is written, its base read", lambda x, y: (y.add_(1), x * 2)[1], base_and_view, left_to_eager=True),
    Case("a tensor and its transpose", both_written, base_and_transposed, left_to_eager=True),
    Case("the shape in place", metadata, lambda: [matrix()]),
    Case("a dimension added in place", unsqueeze_in_place, lambda: [matrix()]),
    Case("foreach", foreach, lambda: [matrix(), matrix(), matrix()]),
    Case("columns swapped", random_state_free, lambda: [matrix()]),
    Case("many writes to slices", many_writes, lambda: [matrix()]),
    Case("with gaps", chain, lambda: [noncontiguous()]),
    Case("with gaps, x and x + 1", two_results, lambda: [noncontiguous()]),
    Case("channels last", batch_of_channels, lambda: [channels_last()]),
    Case("transposed argument", softmax_of_own_sum, lambda: [matrix().t()]),
    Case("expanded argument is read", lambda x, y: y.add_(x), lambda: [matrix(1, 6).expand(4, 6), matrix()]),
    Case("of rank zero", zero_rank, lambda: [torch.tensor(2.0)]),
    Case("empty", chain, lambda: [torch.empty(0, 3)]),
    Case("empty, x and x + 1", two_results, lambda: [torch.empty(3, 0)]),
    Case("a counter", counted, lambda: [torch.tensor(3), matrix()], calls=3),
    Case("integers", in_place_of_integers, lambda: [torch.arange(-6, 18).view(4, 6)]),
    Case("half precision", half_in_place, lambda: [matrix().bfloat16()]),
    Case("an offset into a storage", chain, lambda: [torch.randn(50)[7:31].view(4, 6)]),
]

GRADIENTS: list[Case] = [
    Case("a leaf under no_grad", under_no_grad, lambda: [leaf()], backward=True),
    Case("a step of SGD", step_of_sgd, lambda: [leaf(), matrix(), matrix()]),
    Case("a result through its detached view", detached_write, lambda: [leaf()], backward=True),
    Case("an argument through its detached view", detached_input_write, lambda: [leaf()], backward=True),
    Case("detached in place", detach_in_place, lambda: [leaf()], backward=True),
    Case("a gradient is wanted inside", wants_gradient_inside, lambda: [matrix()]),
    Case("through .data", data_attribute, lambda: [matrix()]),
    Case(
        "an argument wants a gradient, another is written",
        lambda x, y: y.mul_(2) * x,
        lambda: [leaf(), matrix()],
        backward=True,
    ),
    Case("not a leaf, written", lambda x: (x * 2).sub_(3).mul_(4), lambda: [leaf()], backward=True),
    Case("slices of what is no leaf", lambda x: _assign((x * 2), x.sum(1)), lambda: [leaf()], backward=True),
    Case("in place before and after use", lambda x: _twice(x.clone()), lambda: [leaf()], backward=True),
    Case(
        "the gradient through a view that was written", lambda x: _through_view(x * 1), lambda: [leaf()], backward=True
    ),
]


def _assign(x: Tensor, y: Tensor) -> Tensor:
    x[:, 1] = y
    x[::2, 3:] *= 2
    return x


def _twice(x: Tensor) -> Any:
    y = x.exp()
    x.add_(1)
    return y * x


def _through_view(x: Tensor) -> Tensor:
    v = x.t()[1:3]
    v.mul_(3).sub_(1)
    return x * 2
