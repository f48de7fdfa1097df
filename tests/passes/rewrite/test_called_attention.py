"""torch's attention, called with a mask that is the same in every call: it does without where eager's result stays."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.nn.functional import scaled_dot_product_attention

from compiler.backend import fusionscope
from compiler.passes.rewrite.reasons import REASONS
from compiler.passes.rewrite.rewriting import Rewriting, rewrite

BATCH, HEADS, QUERIES, DEPTH = 2, 2, 7, 8
Mask = Callable[[Any, Any], Any]


@pytest.fixture(autouse=True)
def _fresh() -> Iterator[None]:
    torch._dynamo.reset()
    yield
    torch._dynamo.reset()


def tensors(keys: int = QUERIES, dtype: torch.dtype = torch.float32) -> list[torch.Tensor]:
    """Queries, keys and values of (batch, heads, length, depth), of which a projection gave the heads side by side."""
    generator = torch.Generator().manual_seed(3)
    return [
        torch.randn(BATCH, length, HEADS, DEPTH, generator=generator, dtype=torch.float64).to(dtype).transpose(1, 2)
        for length in (QUERIES, keys, keys)
    ]


def positions(q: Any, k: Any) -> tuple[torch.Tensor, torch.Tensor]:
    """As transformers makes them: of the queries (1, 1, q, 1), and of the keys (1, 1, 1, k)."""
    rows = torch.arange(q.shape[2], device=q.device) + 0
    columns = torch.arange(k.shape[2], device=k.device) + 0
    return rows[None, None, :, None], columns[None, None, None, :]


def of_rows(q: Tensor, k: Tensor) -> Tensor:
    return (positions(q, k)[0] >= 0).expand(q.shape[0], -1, q.shape[2], k.shape[2])


def of_past(q: Tensor, k: Tensor) -> Tensor:
    rows, columns = positions(q, k)
    return (rows.new_ones((), dtype=torch.bool) & (columns <= rows)).expand(q.shape[0], -1, -1, -1)


def of_packed(q: Tensor, k: Tensor) -> Tensor:
    """Sequences that are packed into one, of which there is one."""
    places = torch.arange(q.shape[2], device=q.device).unsqueeze(0).expand(q.shape[0], -1)
    numbers = (torch.diff(places, prepend=places[:, :1] - 1, dim=-1) != 1).cumsum(-1)
    batch = torch.arange(q.shape[0], device=q.device)[:, None, None, None]
    rows, columns = positions(q, k)
    return (numbers[batch, rows] == numbers[batch, columns]) & (columns <= rows)


def of_pixels(q: Tensor, k: Tensor) -> Tensor:
    seen = torch.ones((q.shape[0], 16, 16), device=q.device)
    small = torch.nn.functional.interpolate(seen[None].float(), size=(1, k.shape[2]))[0].to(torch.bool)
    return small.flatten(1)[:, None, None, :].expand(-1, -1, q.shape[2], -1)


def filled(number: float) -> Mask:
    return lambda q, k: torch.full((q.shape[2], k.shape[2]), number, dtype=q.dtype, device=q.device).triu(1)


def written_in_place(q: Tensor, k: Tensor) -> Tensor:
    mask = torch.ones(q.shape[2], k.shape[2], dtype=torch.bool, device=q.device)
    mask[:, 3:] = False
    return mask


def with_an_empty_row(q: Tensor, k: Tensor) -> Tensor:
    return torch.ones(q.shape[2], k.shape[2], dtype=torch.bool, device=q.device).tril(-1)


def of_values(q: Tensor, k: Tensor) -> Tensor:
    return positions(q, k)[0].ge(0) & (k.sum((1, 3)) > 0)[:, None, None, :]


#: By what it is: the mask, how many keys there are, and what becomes of it.
MASKS: dict[str, tuple[Mask, int, str]] = {
    "rows of ones": (of_rows, QUERIES, "call.mask_of_ones"),
    "pixels": (of_pixels, 5, "call.mask_of_ones"),
    "zeros": (lambda q, k: torch.zeros(q.shape[2], k.shape[2], dtype=q.dtype), 5, "call.mask_of_ones"),
    "past": (of_past, QUERIES, "call.mask_is_causal"),
    "packed": (of_packed, QUERIES, "call.mask_is_causal"),
    "minus infinity": (filled(-math.inf), QUERIES, "call.mask_is_causal"),
    "lowest number": (filled(torch.finfo(torch.float32).min), QUERIES, "call.mask_is_causal"),
    "like the scores": (
        lambda q, k: torch.ones_like(q @ k.mT, dtype=torch.bool).tril(), QUERIES, "call.mask_is_causal"
    ),
    "like the queries, in place": (
        lambda q, k: q.new_full((q.shape[2], k.shape[2]), -math.inf).triu_(1), QUERIES, "call.mask_is_causal"
    ),
    "past, more keys": (of_past, 9, "call.mask_is_causal"),
    "past, fewer keys": (of_past, 5, "call.mask_is_causal"),
    "past from the end": (
        lambda q, k: torch.ones(q.shape[2], k.shape[2], dtype=torch.bool).tril(2), 9, "call.mask_of_other_form"
    ),
    "a number that is not low": (filled(-3.0), QUERIES, "call.mask_of_other_form"),
    "written in place": (written_in_place, QUERIES, "call.mask_of_other_form"),
    "an empty row": (with_an_empty_row, QUERIES, "call.mask_of_other_form"),
    "values": (of_values, QUERIES, "call.mask_varies"),
}  # fmt: skip


def rewritten(function: Callable[..., Any], arguments: list[torch.Tensor], **settings: Any) -> tuple[Rewriting, Any]:
    """What is made of the one graph of a call, and what it computes."""
    found: list[Rewriting] = []

    def backend(graph: torch.fx.GraphModule, _inputs: Any) -> Any:
        found.append(rewrite(graph))
        return found[-1].graph

    result = torch.compile(function, backend=backend, **settings)(*arguments)
    (rewriting,) = found
    return rewriting, result


def masked(mask: Mask) -> Callable[..., Any]:
    return lambda q, k, v: scaled_dot_product_attention(q, k, v, attn_mask=mask(q, k))


def training(arguments: list[torch.Tensor]) -> list[torch.Tensor]:
    return [value.detach().requires_grad_() for value in arguments]


def with_gradients(result: torch.Tensor, arguments: list[torch.Tensor]) -> list[torch.Tensor]:
    return [result, *torch.autograd.grad(result, arguments, torch.ones_like(result).cumsum(-1))]


@pytest.mark.parametrize("name", MASKS)
def test_what_becomes_of_a_mask(name: str) -> None:
    mask, keys, reason = MASKS[name]
    arguments = training(tensors(keys))
    rewriting, result = rewritten(masked(mask), arguments)
    (record,) = rewriting.records
    assert (record.what, record.reason, record.message) == ("mask", reason, REASONS[reason][0])
    is_gone = reason in ("call.mask_of_ones", "call.mask_is_causal")
    assert record.verdict == ("replaced" if is_gone else "kept")
    call = next(node for node in rewriting.graph.graph.nodes if node.name.startswith("scaled_dot_product"))
    assert (call.kwargs["attn_mask"] is None) == is_gone
    eager = with_gradients(masked(mask)(*arguments), arguments)
    torch.testing.assert_close(with_gradients(result, arguments), eager, rtol=1e-5, atol=1e-5)


def test_no_mask_is_made() -> None:
    from compiler.compile import observed_compilations
    from compiler.ir.nodes import ExternNode

    seen: list[Any] = []
    with observed_compilations(seen.append), torch.no_grad():
        torch.compile(masked(of_packed), backend=fusionscope)(*tensors())
    assert [type(unit) for unit in seen[0].schedule.units] == [ExternNode]


def test_a_mask_that_is_repeated_is_known_however_often() -> None:
    q = torch.zeros(1, 1, 2048, 1)
    reasons: list[str] = []

    def backend(graph: torch.fx.GraphModule, _inputs: Any) -> Any:
        reasons.extend(record.reason for record in rewrite(graph).records)
        return lambda *values: [q]

    def attend(x: torch.Tensor) -> torch.Tensor:
        wide = x.expand(256, 1, 2048, 1)
        return scaled_dot_product_attention(wide, wide, wide, of_packed(wide, wide))

    torch.compile(attend, backend=backend)(q)
    assert reasons == ["call.mask_is_causal"]


def test_a_mask_of_sizes_that_differ_from_call_to_call_stays() -> None:
    rewriting, result = rewritten(masked(of_past), tensors(), dynamic=True)
    assert [record.reason for record in rewriting.records] == ["call.mask_varies"]
    torch.testing.assert_close(result, masked(of_past)(*tensors()))


@pytest.mark.parametrize("reads", ["view", "returns", "product"])
def test_readers_see_the_strides_of_before(reads: str) -> None:
    """A mask of three dimensions has torch compute the scores in memory, and gives another layout than the kernel."""
    readers: dict[str, Callable[[torch.Tensor], Any]] = {
        "view": lambda x: x.view(BATCH * HEADS * QUERIES, DEPTH),
        "returns": lambda x: x,
        "product": lambda x: x.transpose(1, 2).flatten(2) @ torch.eye(HEADS * DEPTH),
    }

    def attend(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        mask = torch.ones(1, QUERIES, QUERIES, dtype=torch.bool)
        return readers[reads](scaled_dot_product_attention(q, k, v, mask))

    rewriting, result = rewritten(attend, tensors())
    eager = attend(*tensors())
    assert [record.reason for record in rewriting.records] == ["call.mask_of_ones"]
    assert result.stride() == eager.stride()
    torch.testing.assert_close(result, eager)
    copies = [node for node in rewriting.graph.graph.nodes if node.target == "contiguous"]
    assert len(copies) == (0 if reads == "product" else 1)


def test_a_mask_beside_is_causal_stays() -> None:
    def attend(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        return scaled_dot_product_attention(q, k, v, of_rows(q, k), is_causal=True)

    rewriting, result = rewritten(attend, tensors())
    assert [record.reason for record in rewriting.records] == ["call.mask_beside_causal"]
    torch.testing.assert_close(result, attend(*tensors()))


def by_hand(mask: Mask) -> Callable[..., Any]:
    return lambda q, k, v: (q @ k.mT * 0.3 + mask(q, k)).softmax(-1) @ v


@pytest.mark.parametrize(
    ("mask", "told"),
    [
        (filled(torch.finfo(torch.float32).min), "lower triangle"),
        (filled(-math.inf), "lower triangle"),
        (lambda q, k: torch.zeros(q.shape[2], k.shape[2], device=q.device), "No score is masked"),
    ],
    ids=["lowest number", "minus infinity", "zeros"],
)
def test_by_hand_too(mask: Mask, told: str) -> None:
    rewriting, result = rewritten(by_hand(mask), tensors())
    assert [(record.verdict, told in record.detail) for record in rewriting.records] == [("replaced", True)]
    torch.testing.assert_close(result, by_hand(mask)(*tensors()))


@pytest.mark.parametrize(
    ("mask", "told"), [(of_rows, "No score is masked"), (of_past, "lower triangle")], ids=["ones", "past"]
)
def test_by_hand_with_a_boolean_mask(mask: Mask, told: str) -> None:
    def attend(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        return torch.where(mask(q, k), q @ k.mT * 0.3, -math.inf).softmax(-1) @ v

    rewriting, result = rewritten(attend, tensors())
    assert [(record.verdict, told in record.detail) for record in rewriting.records] == [("replaced", True)]
    torch.testing.assert_close(result, attend(*tensors()))
