"""Programs of the table: views, concatenations, transposes, gathers, scans, pooling, what is around products."""

from __future__ import annotations

import torch
import torch.nn.functional as F

from bench.fusion.program import Program, index, tensor, weight

Tensor = torch.Tensor


def cat_pointwise(x: Tensor, y: Tensor) -> Tensor:
    return torch.cat((x.sin(), y.cos()), 1) * 2


def cat_and_parts(x: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
    """A concatenation, and something else of one of its parts, which has fewer elements."""
    return torch.cat((x, y), 0).relu(), x.exp()


def dense_block(x: Tensor, y: Tensor, mean: Tensor, var: Tensor, w: Tensor, b: Tensor) -> Tensor:
    return torch.relu(F.batch_norm(torch.cat((x, y), 1), mean, var, w, b))


def split_pointwise(x: Tensor) -> tuple[Tensor, ...]:
    one, two, three = x.tensor_split(3, -1)
    return one.sin(), two.cos(), three.exp()


def split_halves(x: Tensor) -> tuple[Tensor, Tensor]:
    one, two = x.chunk(2, 0)
    return one.sin(), two.cos()


def producer_transposed(x: Tensor) -> Tensor:
    return x.sin().t().contiguous()


def producer_and_transposed(x: Tensor) -> tuple[Tensor, Tensor]:
    y = x.sin()
    return y, y.t().contiguous()


def both_ways(x: Tensor) -> tuple[Tensor, Tensor]:
    """Two results, one read along rows and one along columns."""
    return x * 2, x.t() + 1


def quantise_both_ways(x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """What training in few bits needs: the tensor, its transpose, and the largest magnitude."""
    scaled = (x * 8).clamp(-448, 448).to(torch.float16)
    return scaled, scaled.t().contiguous(), x.abs().max()


def heads_in_front(x: Tensor) -> Tensor:
    return (x * 0.125).unflatten(-1, (16, -1)).transpose(1, 2).contiguous()


def split_heads(qkv: Tensor) -> tuple[Tensor, ...]:
    q, k, v = qkv.chunk(3, -1)
    return tuple(one.unflatten(-1, (8, -1)).transpose(1, 2).contiguous() for one in (q * 0.125, k, v))


def embed(words: Tensor, table: Tensor, positions: Tensor) -> Tensor:
    return F.embedding(words, table) + positions


def embed_norm(words: Tensor, table: Tensor, w: Tensor, b: Tensor) -> Tensor:
    return F.layer_norm(F.embedding(words, table), (table.shape[-1],), w, b)


def best_value(x: Tensor, y: Tensor) -> Tensor:
    return y.gather(1, x.argmax(1, keepdim=True)).squeeze(1)


def padded_pointwise(x: Tensor) -> Tensor:
    return F.pad(x.sin(), (1, 1)) * 2


def neighbours(x: Tensor) -> Tensor:
    """Differences of what is computed to the left and to the right, with nothing beyond the ends."""
    y = F.pad(x.exp(), (1, 1))
    return y[:, 2:] - 2 * y[:, 1:-1] + y[:, :-2]


def chances_so_far(x: Tensor) -> Tensor:
    return torch.softmax(x, -1).cumsum(-1).clamp(max=1)


def product_between(x: Tensor, w: Tensor, b: Tensor) -> Tensor:
    return F.gelu(F.linear(x.sin(), w, b))


def linear_residual(x: Tensor, w: Tensor, b: Tensor, r: Tensor) -> Tensor:
    return F.silu(F.linear(x, w, b)) + r


def two_layers(x: Tensor, w1: Tensor, b1: Tensor, w2: Tensor, b2: Tensor) -> Tensor:
    return F.linear(F.gelu(F.linear(x, w1, b1)), w2, b2)


def gated(x: Tensor, gate: Tensor, up: Tensor, down: Tensor) -> Tensor:
    return (F.silu(x @ gate) * (x @ up)) @ down


def scores(q: Tensor, k: Tensor) -> Tensor:
    return torch.softmax(q @ k.transpose(-1, -2) * 0.125, -1)


def tiny_outputs(x: Tensor) -> tuple[Tensor, ...]:
    """Small results that have no loop in common."""
    return x[:7].exp(), x[10:20].cos(), x[:100].sum(), torch.arange(33, device=x.device) * 2


def small_states(a: Tensor, b: Tensor, c: Tensor) -> tuple[Tensor, ...]:
    """Independent updates of small tensors of different shapes."""
    return a * 0.9, b.sigmoid(), c.sum(1), torch.softmax(a, 0)


def shifted_windows(x: Tensor) -> Tensor:
    return torch.roll(x, (-3, -3), (1, 2)) * 2


def interleaved(x: Tensor, y: Tensor) -> Tensor:
    return torch.stack((x.sin(), y.cos()), -1).flatten(-2)


HALF = torch.bfloat16
ROWS = tensor("n m")
SQUARE = tensor("4096 4096")
IMAGES = tensor("32 c w w")
CHANNEL = tensor("c")

PROGRAMS = (
    Program("cat and pointwise", cat_pointwise, (ROWS, tensor("n k"))),
    Program("cat and what reads a part", cat_and_parts, (ROWS, tensor("k m"))),
    Program("cat, batch norm, ReLU", dense_block, (tensor("32 c w w"), tensor("32 k w w"),
            *[tensor("1256")] * 4)),
    Program("stack interleaved", interleaved, (ROWS, ROWS)),
    Program("split in three uneven parts", split_pointwise, (tensor("n k"),)),
    Program("split in halves", split_halves, (ROWS,)),
    Program("pad and pointwise", padded_pointwise, (ROWS,)),
    Program("differences of neighbours", neighbours, (ROWS,)),
    Program("slices added", lambda x: x[:, 1:] + x[:, :-1], (ROWS,)),
    Program("reversed and added", lambda x: x.exp() + x.exp().flip(1), (ROWS,)),
    Program("rolled windows", shifted_windows, (tensor("32 w w c"),)),
    Program("a tensor plus its transpose", lambda x: x + x.t(), (SQUARE,)),
    Program("a transpose added", lambda x, y: x.t() + y, (SQUARE, SQUARE)),
    Program("a tensor and its transpose", both_ways, (SQUARE,)),
    Program("producer, transpose, contiguous", producer_transposed, (ROWS,)),
    Program("producer and its transpose", producer_and_transposed, (ROWS,)),
    Program("scaled, both ways, with the largest", quantise_both_ways, (SQUARE,)),
    Program("heads brought in front", heads_in_front, (tensor("b l 1024"),)),
    Program("q, k and v split into heads", split_heads, (tensor("b l 1536"),)),
    Program("channels last and pointwise", lambda x: x.permute(0, 2, 3, 1).contiguous() * 2, (IMAGES,)),
    Program("embedding and positions", embed, (index("b l", "v"), tensor("v 512"), tensor("l 512"))),
    Program("embedding and norm", embed_norm, (index("b l", "v"), tensor("v 512"), tensor("512"), tensor("512"))),
    Program("embedding, backward", lambda i, t: F.embedding(i, t).sin(), (index("b l", "v"), weight("v 512"))),
    Program("rows added where an index says", lambda x, i, y: x.index_put((i,), y.exp(), accumulate=True),
            (ROWS, index("k", "n"), tensor("k m"))),
    Program("argmax and gather", best_value, (ROWS, ROWS)),
    Program("picked rows", lambda x, i: x[i] * 2, (ROWS, index("k", "n"))),
    Program("running sum and pointwise", lambda x: x.sin().cumsum(-1) * 2, (ROWS,)),
    Program("running sum of a softmax", chances_so_far, (ROWS,)),
    Program("running product, backward", lambda x: x.cumprod(-1), (weight("n m"),)),
    Program("running sums of two kinds", lambda x: (x.cumsum(-1), (x * x).cumsum(-1)), (ROWS,)),
    Program("max pooling and pointwise", lambda x: F.max_pool2d(x.relu(), 2) * 2, (IMAGES,)),
    Program("max pooling, backward", lambda x: F.max_pool2d(x, 2), (weight("32 c w w"),)),
    Program("average pooling and sigmoid", lambda x: F.avg_pool2d(x, 2).sigmoid(), (IMAGES,)),
    Program("squeeze and excite", lambda x, w: x * torch.sigmoid(x.mean((2, 3), keepdim=True) * w),
            (IMAGES, tensor("c 1 1"))),
    Program("product with bias and GELU", product_between, (tensor("n 512"), tensor("1024 512"), tensor("1024"))),
    Program("linear and ReLU", lambda x, w, b: torch.relu(F.linear(x, w, b)),
            (tensor("n 512"), tensor("1024 512"), tensor("1024"))),
    Program("small linear with SiLU and residual", linear_residual,
            (tensor("v 64", HALF), tensor("128 64", HALF), tensor("128", HALF), tensor("v 128", HALF))),
    Program("scaled operand of a small product", lambda x, s, w: (x * s) @ w,
            (tensor("256 256", HALF), tensor("256", HALF), tensor("256 256", HALF))),
    Program("two layers", two_layers,
            (tensor("n 512"), tensor("1024 512"), tensor("1024"), tensor("512 1024"), tensor("512"))),
    Program("two layers, backward", two_layers,
            (weight("n 512"), weight("1024 512"), weight("1024"), weight("512 1024"), weight("512"))),
    Program("gated layers", gated, (tensor("n 512"), tensor("512 1024"), tensor("512 1024"), tensor("1024 512"))),
    Program("scores of attention", scores, (tensor("b h 256 d"), tensor("b h 256 d"))),
    Program("tiny results", tiny_outputs, (tensor("128"),)),
    Program("small states", small_states, (tensor("64"), tensor("100"), tensor("32 48"))),
)  # fmt: skip
