"""Operators of random programs that view, rearrange and look up."""

from __future__ import annotations

from math import prod

import torch

from bench.programs.pick import Draft, Pick
from bench.programs.program import Kind


def sliced(pick: Pick) -> Draft:
    x = pick.ranked()
    return Draft(f"{x}[{pick.subscript(x)}]", "moves", (x,))


def permuted(pick: Pick) -> Draft:
    x = pick.ranked(2)
    order = list(range(len(pick.shape(x))))
    pick.rng.shuffle(order)
    forms = [f"{x}.permute({order})", f"{x}.transpose({pick.dim(x)}, {pick.dim(x)})", f"{x}.mT", f"{x}.movedim(0, -1)"]
    return Draft(pick.choice(forms), "moves", (x,))


def reshaped(pick: Pick) -> Draft:
    x = pick.ranked()
    shape = pick.shape(x)
    count = prod(shape)
    divisors = [d for d in range(1, min(count, 64) + 1) if count % d == 0]
    first = pick.choice(divisors)
    second = pick.choice([d for d in divisors if (count // first) % d == 0])
    size = pick.choice([(-1,), (first, -1), (-1, first), (first, second, -1), (second, -1, first)])
    if count % abs(prod(size)):
        size = (-1,)
    method = "view" if pick.value(x).is_contiguous() and pick.chance(0.5) else "reshape"
    return Draft(f"{x}.{method}({size})", "moves", (x,))


def widened(pick: Pick) -> Draft:
    """More dimensions or larger ones, without new values."""
    x = pick.tensor(lambda t: t.dim() < 4)
    shape = pick.shape(x)
    if pick.chance(0.4):
        return Draft(f"{x}.unsqueeze({pick.rng.randrange(-len(shape) - 1, len(shape) + 1)})", "moves", (x,))
    if pick.chance(0.6):
        sizes = [size if size != 1 else pick.choice([1, 2, 3, 7]) for size in shape]
        sizes = [pick.choice([2, 3]), *sizes] if pick.chance(0.3) or not sizes else sizes
        # A mask is copied, since torch.compile cannot write to one through an expanded view.
        copied = ".clone()" if pick.value(x).dtype == torch.bool else ""
        return Draft(f"{x}.expand({sizes}){copied}", "moves", (x,))
    return Draft(f"{x}.squeeze()", "moves", (x,))


def repeated(pick: Pick) -> Draft:
    x = pick.tensor(lambda t: 0 < t.dim() < 4 and 0 < t.numel() < 400)
    counts = [pick.choice([1, 1, 2, 3]) for _ in pick.shape(x)]
    forms = [f"{x}.repeat({counts})", f"torch.tile({x}, {tuple(counts)})", f"{x}.repeat_interleave(2, {pick.dim(x)})"]
    return Draft(pick.choice(forms), "moves", (x,))


def turned(pick: Pick) -> Draft:
    x = pick.ranked()
    dim = pick.dim(x)
    forms = [f"torch.flip({x}, {pick.dims(x)})", f"torch.roll({x}, {pick.choice([-2, 1, 3])}, {dim})", f"{x}.fliplr()"]
    if len(pick.shape(x)) >= 2:
        forms += [f"torch.rot90({x})", f"torch.tril({x}, {pick.choice([-1, 0, 1])})", f"torch.triu({x})"]
    return Draft(pick.choice(forms), "moves", (x,))


def part(pick: Pick) -> Draft:
    x = pick.ranked(1)
    dim = pick.dim(x)
    size = pick.shape(x)[dim]
    at = pick.rng.randrange(-size, size)
    forms = [
        f"{x}.select({dim}, {at})",
        f"{x}.narrow({dim}, {pick.rng.randrange(size)}, 1)",
        f"{x}.unbind({dim})[{at}]",
        f"{x}.chunk(2, {dim})[-1]",
        # Copied, since torch.compile forgets what lies between windows when one of them is written to.
        f"{x}.unfold({dim}, {min(size, 2)}, {pick.choice([1, 2])}).clone()",
        f"{x}.split({max(1, size // 2)}, {dim})[-1]",
    ]
    if len(pick.shape(x)) >= 2:
        forms += [f"{x}.diagonal()", f"{x}.diagonal(1, -2, -1)"]
    return Draft(pick.choice(forms), "moves", (x,))


def joined(pick: Pick) -> Draft:
    x = pick.ranked()
    shape, dim = pick.shape(x), pick.dim(x)
    at = dim % len(shape)

    def fits(t: object) -> bool:
        other = tuple(t.shape)  # type: ignore[attr-defined]
        return len(other) == len(shape) and all(a == b for p, (a, b) in enumerate(zip(shape, other)) if p != at)

    y = pick.tensor(fits)
    if pick.shape(y) == shape and pick.chance(0.4):
        return Draft(f"torch.stack([{x}, {y}], {dim})", "moves", (x, y))
    return Draft(f"torch.cat([{x}, {y}], {dim})", "moves", (x, y))


def padded(pick: Pick) -> Draft:
    x = pick.ranked()
    pads = [pick.choice([0, 1, 2, -1 if pick.shape(x)[-1] > 3 else 0]) for _ in range(2)]
    if len(pick.shape(x)) > 1 and pick.chance(0.5):
        pads += [pick.choice([0, 1]) for _ in range(2)]
    value = 1 if pick.chance(0.5) else 0
    return Draft(f"F.pad({x}, {tuple(pads)}, value={value})", "moves", (x,))


def place(pick: Pick, size: int, shape: tuple[int, ...] | None = None) -> tuple[str, str]:
    """Integers below `size`, as text, and the tensor that they are made from."""
    index = pick.tensor(
        lambda t: not t.dtype.is_floating_point and t.dim() > 0 and (shape is None or tuple(t.shape) == shape), True
    )
    return f"torch.remainder({index}.long(), {size})", index


def looked_up(pick: Pick) -> Draft:
    x = pick.ranked()
    shape, dim = pick.shape(x), pick.dim(x)
    chosen, index = place(pick, shape[dim])
    if pick.chance(0.4):
        return Draft(f"torch.index_select({x}, {dim}, {chosen}.flatten())", "moves", (x, index))
    at = dim % len(shape)
    if pick.chance(0.5):
        return Draft(f"{x}[{':, ' * at}{chosen}]", "moves", (x, index))
    if len(shape) == 2 and pick.value(x).dtype.is_floating_point:
        rows, source = place(pick, shape[0])
        return Draft(f"F.embedding({rows}, {x})", "moves", (x, source))
    one = f"{chosen}.flatten()[:1].view({[1] * len(shape)})"
    return Draft(f"torch.take_along_dim({x}, {one}, {dim})", "moves", (x, index))


def gathered(pick: Pick) -> Draft:
    x = pick.ranked()
    shape, dim = pick.shape(x), pick.dim(x)
    chosen, index = place(pick, shape[dim], shape)
    return Draft(f"torch.gather({x}, {dim}, {chosen})", "moves", (x, index))


def scattered(pick: Pick) -> Draft:
    """Added up at places that may be the same; the order of a sum is anyone's, so floats are rounded by it."""
    x = pick.ranked()
    shape, dim = pick.shape(x), pick.dim(x)
    dtype = pick.value(x).dtype
    kind: Kind = "rounds" if dtype.is_floating_point else "moves"
    one = f"torch.ones((), dtype={x}.dtype)"
    if pick.chance(0.4):
        chosen, index = place(pick, shape[0])
        return Draft(f"torch.index_put({x}, ({chosen}.flatten()[:5],), {one}, accumulate=True)", kind, (x, index))
    if pick.chance(0.3):
        chosen, index = place(pick, shape[dim])
        rows = f"{chosen}.flatten()[:3]"
        return Draft(f"torch.index_add({x}, {dim}, {rows}, {x}.index_select({dim}, {rows}))", kind, (x, index))
    chosen, index = place(pick, shape[dim], shape)
    y = pick.tensor(lambda t: tuple(t.shape) == shape and t.dtype == dtype)
    if pick.chance(0.5):
        return Draft(f"torch.scatter_add({x}, {dim}, {chosen}, {y})", kind, (x, y, index))
    if pick.chance(0.5):
        return Draft(f"torch.scatter({x}, {dim}, {chosen}, {pick.number()})", "moves", (x, index))
    how = pick.choice(["amax", "amin", "sum", "mean"])
    reduced: Kind = kind if how in ("sum", "mean") else "moves"
    include = pick.choice([True, False])
    form = f"torch.scatter_reduce({x}, {dim}, {chosen}, {y}, '{how}', include_self={include})"
    return Draft(form, reduced, (x, y, index))
