"""Results that share memory with arguments or with one another, or that must not."""

from __future__ import annotations

import torch
from torch import Tensor

from tests.mutation.cases_inputs import base_and_view, leaf, matrix, two_of_one
from tests.mutation.observe import Case


def views(x: Tensor) -> tuple[Tensor, ...]:
    return x, x.view(-1), x.t(), x[1:], x[:, ::2], x.unsqueeze(1), x.detach(), x.expand(2, *x.shape), x[2]


def views_as_other_dtypes(x: Tensor) -> list[Tensor]:
    whole, bits = torch.view_as_complex(x * 2), x + 1
    whole_views = [whole, whole.imag, whole.real[1:], whole.t(), whole.conj()[1:], whole.conj().conj()]
    return [*whole_views, bits, bits.view(torch.int32), bits.view(torch.int32)[1]]


def copies_of_an_argument(x: Tensor) -> tuple[Tensor, ...]:
    """Each of these owns its memory in eager, also where nothing needs to be computed."""
    row = x[:1]
    return (
        x.clone(), x.repeat(1, 1), x.tile(1), row.flip(0), torch.cat([x]), torch.stack([x])[0], x.roll(0, 0),
        torch.nn.functional.pad(x, (0, 0)), x.index_select(0, torch.arange(x.shape[0])), x[torch.arange(x.shape[0])],
    )  # fmt: skip


def copies_by_name(x: Tensor) -> tuple[Tensor, ...]:
    parts: tuple[Tensor, ...] = torch.unbind_copy(x)  # type: ignore[func-returns-value, assignment]  # wrong in torch
    return (
        torch.view_copy(x, (-1,)), torch.t_copy(x), torch.slice_copy(x, 0, 1), torch.select_copy(x, 0, 1),
        torch.expand_copy(x, x.shape), torch.permute_copy(x, (1, 0)), torch.unsqueeze_copy(x, 0), torch.detach_copy(x),
        torch.squeeze_copy(x), torch.alias_copy(x), torch.alias_copy(x), *parts, torch.diagonal_copy(x),
    )  # fmt: skip


def copies_of_a_result(x: Tensor) -> tuple[Tensor, ...]:
    y = x.sin()
    return y, y.clone(), y.repeat(1, 1), y[:1].flip(0), torch.cat([y])


def views_of_a_result(x: Tensor) -> tuple[Tensor, ...]:
    y = x.sin()
    return y, y.t(), y.view(-1), y[1:], y.detach(), y.reshape(2, -1)


def views_of_what_is_not_returned(x: Tensor) -> tuple[Tensor, ...]:
    y = x.cos()
    return y[1:], y[:-1], y.t()


def views_of_a_copy(x: Tensor) -> tuple[Tensor, ...]:
    y = x.repeat(1, 1)
    return y, y.t(), x


def the_same_twice(x: Tensor) -> tuple[Tensor, Tensor]:
    y = x + 1
    return y, y


def written_and_given_twice(x: Tensor) -> tuple[Tensor, ...]:
    """Dynamo asks the graph for what each operator gives, also where that is the tensor that it wrote to."""
    y, z = x * 2, x.sin().t()
    return y.add_(1), y, z.mul_(2), z, z[1:], z.neg_()


def a_constant_twice(x: Tensor) -> tuple[Tensor, ...]:
    zeros = torch.zeros(3, 3)
    return zeros, zeros, zeros.t(), torch.zeros(3, 3), x + 1


def expanded_constant(x: Tensor) -> tuple[Tensor, ...]:
    ones = torch.ones(1, 3)
    return ones, ones.expand(2, 3), x.sum().expand(4), x.sum(1, keepdim=True).expand(4, 5)


def equal_results(x: Tensor) -> tuple[Tensor, Tensor]:
    return torch.sin(x), torch.cos(x - torch.pi / 2).sin().asin()


def written_after_view(x: Tensor) -> tuple[Tensor, ...]:
    y = x * 2
    v = y.view(-1)
    row = y[1]
    y.add_(1)
    return v, row, y


def argument_written_and_viewed(x: Tensor) -> tuple[Tensor, ...]:
    v = x.t()
    x.mul_(2)
    return v, v[1], x.view(-1)[3:], x


def argument_viewed_then_copied(x: Tensor) -> tuple[Tensor, Tensor]:
    y = x.clone()
    x.mul_(2)
    return y, x[1:]


def nested(x: Tensor) -> dict[str, object]:
    return {"a": [x, {"b": x.t()}], "n": 3, "none": None, "s": (x.sum(), "text")}


def real_chunks(x: Tensor) -> list[Tensor]:
    return [*x.chunk(2), *(x + 1).chunk(2)]


def contiguous_or_not(x: Tensor) -> tuple[Tensor, ...]:
    return x.contiguous(), x.t().contiguous(), x.reshape(-1), x.t().reshape(-1), x.float(), x.to(torch.float32)


def in_inference_mode(x: Tensor) -> Tensor:
    with torch.inference_mode():
        return x + 1


def regrouped(x: Tensor) -> tuple[Tensor, ...]:
    y = x > 0
    z = torch.relu(x.transpose(0, 1))
    return y, y.view(16, 1, -1), y.view(2, -1, 5), y.view(8, 10), z, z.view(5, 2, 2, -1), z.view(5, 1, 2, 2, 4)


def made_symmetric(x: Tensor) -> tuple[Tensor, ...]:
    y = x.flip(0, 1)
    return y, y.t(), y[1]


def inference_argument() -> list[Tensor]:
    with torch.inference_mode():
        return [matrix()]


def saved_and_returned(x: Tensor, y: Tensor) -> tuple[Tensor, ...]:
    product = x @ y
    hidden = product.view(2, -1).tanh()
    return hidden, hidden.t(), product


RESULTS: list[Case] = [
    Case("views of an argument", views, lambda: [matrix(5, 5)]),
    Case("views of a result as another dtype", views_as_other_dtypes, lambda: [matrix(4, 2)]),
    Case(
        "views of a conjugated argument",
        lambda x: (x.conj(), x.conj().real, x.imag, torch.view_as_real(x.conj())[1:]),
        lambda: [torch.complex(matrix(), matrix()).conj()],
    ),
    Case("views of a transposed argument", lambda x: (x.t(), x[1], x), lambda: [matrix().t()]),
    Case("copies of an argument", copies_of_an_argument, lambda: [matrix()]),
    Case("copies of a row", copies_of_an_argument, lambda: [matrix(1, 6)]),
    Case("view operators that copy", copies_by_name, lambda: [matrix(3, 3)]),
    Case("copies of a result", copies_of_a_result, lambda: [matrix()]),
    Case("views of a result", views_of_a_result, lambda: [matrix()]),
    Case("views of what is not returned", views_of_what_is_not_returned, lambda: [matrix()]),
    Case("views of a copy", views_of_a_copy, lambda: [matrix()]),
    Case("the same twice", the_same_twice, lambda: [matrix()]),
    Case("written and given twice", written_and_given_twice, lambda: [matrix()]),
    Case(
        "written, given twice and differentiated",
        written_and_given_twice,
        lambda: [leaf()],
        backward=True,
        like="aot_eager",
    ),
    Case("views that regroup", regrouped, lambda: [matrix(4, 5, 4)]),
    Case("views that regroup a part with gaps", regrouped, lambda: [matrix(9, 5, 4)[::2][:4]]),
    Case("views of what no strides describe", made_symmetric, lambda: [matrix()]),
    Case("constants", a_constant_twice, lambda: [matrix()]),
    Case("expanded results", expanded_constant, lambda: [matrix()]),
    Case("equal results", equal_results, lambda: [matrix()]),
    Case("views of what is written later", written_after_view, lambda: [matrix()]),
    Case("views of an argument that is written", argument_written_and_viewed, lambda: [matrix()]),
    Case("a copy of an argument that is written", argument_viewed_then_copied, lambda: [matrix()]),
    Case("nested", nested, lambda: [matrix()]),
    Case("chunks", real_chunks, lambda: [matrix()]),
    Case("contiguous or not", contiguous_or_not, lambda: [matrix()]),
    Case("a part of a storage, viewed for a product", lambda x: x @ x.mT, lambda: [matrix(7, 4, 3)[1:-1]]),
    Case(
        "a part of a storage, viewed for a saved product",
        lambda x: x[1:] @ x[0].t() * x[:, :1].sum(),
        lambda: [matrix(9, 4)[2:].view(-1, 2, 2).requires_grad_()],
        backward=True,
    ),
    Case("the same argument twice", lambda x, y: (x, y, x + y), two_of_one),
    Case("an argument and a view of it", lambda x, y: (x, y, x.sum() + y), base_and_view),
    Case("inference mode", in_inference_mode, lambda: [matrix()], like="aot_eager"),
    Case("an inference tensor", lambda x: (x + 1, x.t()), inference_argument),
    Case("an argument that wants a gradient", lambda x: (x, x.t(), x + 1, x.detach()), lambda: [leaf()], backward=True),
    Case("saved for backward and returned", saved_and_returned, lambda: [leaf(4, 3), leaf(3, 4)], backward=True),
    Case("saved result and its copy", lambda x: (x.exp(), x.exp().repeat(1, 1)), lambda: [leaf()], backward=True),
    Case("a view of the argument is saved", lambda x: x.t() @ x, lambda: [leaf()], backward=True),
]
