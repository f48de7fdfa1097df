"""Inputs that overlap otherwise than when a function was compiled, one of which is written to."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from compiler.backend import fusionscope
from compiler.capture.autograd.shared_memory import where_written_apart
from compiler.compile import observed_compilations

SIZE = 16


def _storage() -> Tensor:
    return torch.arange(4.0 * SIZE)


def _twice(x: Tensor) -> list[Tensor]:
    return [x, x]


def _parts(first: slice, second: slice) -> list[Tensor]:
    storage = _storage()
    return [storage[first][:SIZE], storage[second][:SIZE]]


#: Where two tensors of one shape lie, by name; each call makes them anew.
PLACES: dict[str, Callable[[], list[Tensor]]] = {
    "apart": lambda: [_storage()[:SIZE].clone(), _storage()[SIZE : 2 * SIZE].clone()],
    "one tensor": lambda: _twice(_storage()[:SIZE].clone()),
    "the same memory": lambda: _parts(slice(0, None), slice(0, None)),
    "one further": lambda: _parts(slice(1, None), slice(0, None)),
    "three before": lambda: _parts(slice(0, None), slice(3, None)),
    "side by side": lambda: _parts(slice(0, SIZE), slice(SIZE, None)),
    "by turns": lambda: _parts(slice(0, None, 2), slice(1, None, 2)),
}


def added(x: Tensor, y: Tensor) -> Tensor:
    x.add_(y)
    return y * 2


def both_written(x: Tensor, y: Tensor) -> Tensor:
    x.add_(1)
    y.mul_(3)
    return x + y


def viewed(x: Tensor, y: Tensor) -> Tensor:
    y.mul_(2)
    return x.view(-1)


def shifted(x: Tensor, y: Tensor) -> Tensor:
    x[1:].add_(y[:-1])
    return x + y


def _told(function: Callable[..., Any], inputs: list[Tensor]) -> Any:
    """The result and what became of the inputs, or the error's kind."""
    try:
        result = function(*inputs)
    except RuntimeError as error:
        return type(error)
    return result, inputs


def _check(function: Callable[..., Any], places: list[str], dynamic: bool | None = None) -> None:
    torch._dynamo.reset()
    compiled = torch.compile(function, backend=fusionscope, dynamic=dynamic)
    with torch.no_grad():
        for name in places:
            wanted, given = _told(function, PLACES[name]()), _told(compiled, PLACES[name]())
            if isinstance(wanted, type):
                assert given is wanted, name
            else:
                torch.testing.assert_close(given, wanted, msg=lambda text, name=name: f"{name}: {text}")  # type: ignore[misc]


@pytest.mark.parametrize("later", [name for name in PLACES if name != "apart"])
@pytest.mark.parametrize("function", [added, both_written, viewed, shifted])
def test_inputs_that_overlap_later_are_seen(function: Callable[..., Any], later: str) -> None:
    _check(function, ["apart", later, "apart", later])


@pytest.mark.parametrize("first", [name for name in PLACES if name != "apart"])
@pytest.mark.parametrize("function", [added, viewed])
def test_inputs_that_overlap_at_first_may_overlap_otherwise_later(function: Callable[..., Any], first: str) -> None:
    _check(function, [first, "one further", "apart", "the same memory", first])


def _writing(write: Callable[[Tensor], None]) -> Callable[[Tensor], Tensor]:
    """A function that writes to a tensor of its own."""

    def function(x: Tensor) -> Tensor:
        x = x * 2
        write(x)
        return x

    return function


def one_column(x: Tensor) -> None:
    x[:, 0] += 1


def some_columns(x: Tensor) -> None:
    x[..., 1:5] *= x[..., :1]


def row_to_row(x: Tensor) -> None:
    x[1] = x[0]


def halves(x: Tensor) -> None:
    x[:, ::2], x[:, 1::2] = -x[:, 1::2], x[:, ::2]


def channels(x: Tensor) -> None:
    first, second = x.view(2, 2, 4, -1).unbind(1)
    second.sub_(first)


def looked_up(x: Tensor) -> None:
    x[x.argmax(0)] += 1


def masked(x: Tensor) -> None:
    x[x > 3] = 0


def listed_columns(x: Tensor) -> None:
    x[1:, [0, 5]] *= 2


def listed_rows(x: Tensor) -> None:
    x[[0, 2]] = x[[2, 0]]


def row_of_expanded(x: Tensor) -> None:
    wide = x[0].expand(4, -1)
    wide[1] = 7


@pytest.mark.parametrize(
    "write",
    [one_column, some_columns, row_to_row, halves, channels, looked_up, masked, listed_columns, listed_rows],
    ids=lambda f: f.__name__,
)
def test_elements_that_are_written_apart_from_what_is_read_are_compiled(write: Callable[[Tensor], None]) -> None:
    function = _writing(write)
    torch._dynamo.reset()
    x, seen = _storage().view(4, -1), list[Any]()
    with observed_compilations(seen.append):
        given = torch.compile(function, backend=fusionscope, fullgraph=True)(x)
    assert len(seen) == 1
    torch.testing.assert_close(given, function(x))


def through_an_expansion(x: Tensor) -> None:
    x.expand(-1, 6)[1:, 0] = 7


def through_the_shape_of_another(x: Tensor) -> None:
    x.view(-1).expand_as(x.view(-1)).masked_fill_(torch.arange(24) > 3, 0)


def through_new_dimensions(x: Tensor) -> None:
    torch.broadcast_to(x, (1, 1, 4, 6))[..., 2:4].exp_()


def through_broadcast_tensors(x: Tensor) -> None:
    one, _ = torch.broadcast_tensors(x, x[0])
    one.clamp_(min=0)


def _on_infinite_and_small(
    write: Callable[[Tensor], None], is_dynamic: bool | None = None
) -> tuple[int, Tensor, Tensor]:
    """How many graphs were compiled, and what came of it compiled and eagerly, of elements beside which small numbers
    vanish."""
    function = _writing(write)
    torch._dynamo.reset()
    x, seen = torch.full((4, 6), float("-inf")), list[Any]()
    x[1:] = -1e8
    with observed_compilations(seen.append):
        given = torch.compile(function, backend=fusionscope, dynamic=is_dynamic)(x)
    return len(seen), given, function(x)


@pytest.mark.parametrize("is_dynamic", [None, True])
@pytest.mark.parametrize(
    "write",
    [through_an_expansion, through_the_shape_of_another, through_new_dimensions, through_broadcast_tensors],
    ids=lambda f: f.__name__,
)
def test_writes_through_expansions_that_repeat_nothing_are_exact(
    write: Callable[[Tensor], None], is_dynamic: bool | None
) -> None:
    graphs, given, expected = _on_infinite_and_small(write, is_dynamic)
    assert graphs == 1 and torch.equal(given, expected)


def windows_with_gaps(x: Tensor) -> None:
    x.unfold(1, 2, 4).mul_(0.5)


def one_of_windows_that_overlap(x: Tensor) -> None:
    x.unfold(1, 3, 1)[:, 1] = 7


def one_of_strided_windows_that_overlap(x: Tensor) -> None:
    x.as_strided((2, 3), (2, 1), 1)[0] = 7


@pytest.mark.parametrize("is_dynamic", [None, True])
@pytest.mark.parametrize(
    "write",
    [row_of_expanded, windows_with_gaps, one_of_windows_that_overlap, one_of_strided_windows_that_overlap],
    ids=lambda f: f.__name__,
)
def test_what_torch_would_write_with_other_values_is_left_to_eager_mode(
    write: Callable[[Tensor], None], is_dynamic: bool | None
) -> None:
    graphs, given, expected = _on_infinite_and_small(write, is_dynamic)
    assert graphs == 0 and torch.equal(given, expected)


def transposed_then_looked_at_by_strides(x: Tensor) -> Tensor:
    x.mT.scatter_(0, torch.zeros(1, 1, dtype=torch.long), 5.0)
    return x.as_strided((2, 3), (3, 1)) * 1


def looked_at_by_strides_then_transposed(x: Tensor) -> Tensor:
    view = x.clone().mT.as_strided((2, 2), (1, 1))
    x.mT.index_add_(0, torch.tensor([0, 0]), torch.ones(2, 4))
    return view + x.as_strided((2, 2), (1, 1))


def through_a_strided_view_of_a_view(x: Tensor) -> Tensor:
    x[None].as_strided((3,), (2,), 1).mul_(2)
    return x * 1


@pytest.mark.parametrize(
    "function",
    [transposed_then_looked_at_by_strides, looked_at_by_strides_then_transposed, through_a_strided_view_of_a_view],
    ids=lambda f: f.__name__,
)
def test_memory_that_as_strided_looks_at_is_written_as_eager_mode_does(function: Callable[[Tensor], Tensor]) -> None:
    torch._dynamo.reset()
    given, same = torch.arange(24.0).view(4, 6), torch.arange(24.0).view(4, 6)
    result = torch.compile(function, backend=fusionscope)(given)
    assert torch.equal(result, function(same)) and torch.equal(given, same)


@pytest.mark.parametrize("is_dynamic", [None, True])
def test_a_whole_tensor_may_be_written_before_as_strided_looks_at_it(is_dynamic: bool | None) -> None:
    """As Longformer divides its queries and makes windows of them."""

    def windows(x: Tensor) -> Tensor:
        x = x * 2
        x /= 3
        return x.view(2, -1, 6).as_strided((2, 3, 6), (6, 3, 1)) + 1

    torch._dynamo.reset()
    seen = list[Any]()
    with observed_compilations(seen.append):
        result = torch.compile(windows, backend=fusionscope, dynamic=is_dynamic)(torch.arange(24.0).view(4, 6))
    assert len(seen) == 1
    torch.testing.assert_close(result, windows(torch.arange(24.0).view(4, 6)))


def multiplied_by_one_number(x: Tensor) -> None:
    x.mul_(torch.arange(1.0, 3.0)[:1].expand(4, 6))


def filled_by_a_sum(x: Tensor) -> None:
    torch.add(torch.arange(6.0).expand(4, 6), 1, out=x)


@pytest.mark.parametrize("write", [multiplied_by_one_number, filled_by_a_sum], ids=lambda f: f.__name__)
def test_what_is_only_read_may_repeat_elements(write: Callable[[Tensor], None]) -> None:
    graphs, given, expected = _on_infinite_and_small(write)
    assert graphs == 1 and torch.equal(given, expected)


def rows_one_further(x: Tensor) -> None:
    x[1:] = x[:-1]


def whole_of_expanded(x: Tensor) -> None:
    x[0].expand(4, -1)[:] = 7


@pytest.mark.parametrize("write", [rows_one_further, whole_of_expanded], ids=lambda f: f.__name__)
def test_what_eager_mode_refuses_to_write_is_refused(write: Callable[[Tensor], None]) -> None:
    function = _writing(write)
    torch._dynamo.reset()
    with pytest.raises(RuntimeError, match="single memory location"):
        function(_storage().view(4, -1))
    with pytest.raises(RuntimeError, match="single memory location"):
        torch.compile(function, backend=fusionscope)(_storage().view(4, -1))


def test_sizes_may_be_open() -> None:
    _check(both_written, list(PLACES), dynamic=True)


def test_a_parameter_given_twice_is_one() -> None:
    """Dynamo does not look whether two parameters are one."""
    torch._dynamo.reset()

    def step(x: Tensor, y: Tensor) -> Tensor:
        with torch.no_grad():
            x.add_(y)
            return y * 2

    compiled = torch.compile(step, backend=fusionscope)
    for same in (False, True, False):
        ours, eager = ([nn.Parameter(torch.ones(3)), nn.Parameter(torch.full((3,), 2.0))] for _ in range(2))
        if same:
            ours[1], eager[1] = ours[0], eager[0]
        assert torch.equal(compiled(*ours), step(*eager)) and torch.equal(ours[0], eager[0])


def test_gradients_are_of_what_was_written() -> None:
    torch._dynamo.reset()

    def loss(weight: Tensor, x: Tensor, y: Tensor) -> Tensor:
        x.mul_(2)
        return (weight * y).sum()

    compiled = torch.compile(loss, backend=fusionscope)
    for name in ("apart", "three before", "apart", "the same memory"):
        ours, eager = (torch.ones(SIZE, requires_grad=True) for _ in range(2))
        compiled(ours, *PLACES[name]()).backward()
        loss(eager, *PLACES[name]()).backward()
        torch.testing.assert_close(ours.grad, eager.grad)


def _matrix(first: Any, second: Any) -> list[Tensor]:
    matrix = torch.zeros(6, 8)
    return [matrix[first], matrix[second]]


def _as_two_types() -> list[Tensor]:
    """The second half of one storage, at another place when counted in elements."""
    storage = torch.zeros(16)
    return [storage[8:16], storage.view(torch.float64)[4:8]]


@pytest.mark.parametrize(
    ("tensors", "is_apart"),
    [
        (_matrix((slice(None), 0), (slice(None), 1)), True),
        (_matrix((slice(None), slice(0, 4)), (slice(None), slice(4, 8))), True),
        (_matrix((slice(None), slice(0, 5)), (slice(None), slice(4, 8))), False),
        (_matrix(slice(0, 3), slice(3, 6)), True),
        (_matrix(slice(0, 4), slice(3, 6)), False),
        (_matrix(slice(0, 0), slice(0, 6)), True),
        ([torch.zeros(4), torch.zeros(4)], True),
        ([torch.zeros(4), torch.zeros(0)], True),
        (_as_two_types(), False),
    ],
)
def test_calls_are_left_to_eager_mode_where_elements_are_shared(tensors: list[Tensor], is_apart: bool) -> None:
    call = where_written_apart(lambda *_: "compiled", lambda *_: "eager", [0], tensors)
    assert [call(*tensors) for _ in range(2)] == 2 * ["compiled" if is_apart else "eager"]


def test_what_is_only_read_may_overlap() -> None:
    x, y, z = torch.zeros(4), torch.zeros(9)[:5], torch.zeros(9)[4:]
    call = where_written_apart(lambda *_: "compiled", lambda *_: "eager", [0], [x, y, z])
    assert call(x, y, y[:3]) == "compiled" and call(y, x, y[:3]) == "eager"


def test_tensors_that_vmap_wraps_do_not_tell_their_memory() -> None:
    def of_a_row(row: Tensor) -> Tensor:
        copy = row.clone()
        copy.add_(row)
        return copy.mul_(2)

    def of_all(x: Tensor) -> Tensor:
        return torch.vmap(of_a_row)(x)

    x = torch.randn(4, 8)
    assert torch.equal(torch.compile(of_all, backend=fusionscope)(x), of_all(x))
