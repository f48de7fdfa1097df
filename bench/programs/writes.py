"""Statements of random programs that write to a tensor, whole or through a view, and to all that shares its memory."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from bench.programs.pick import Draft, NothingFits, Pick
from bench.programs.shapes import place

IN_PLACE = """
    {x}.add_(1) {x}.mul_(2) {x}.neg_() {x}.abs_() {x}.clamp_(-2,2) {x}.sub_(0.5) {x}.relu_() {x}.mul_(0.5) {x}.zero_()
    {x}.fill_(1.5) {x}.masked_fill_({x}>{x},2) {x}[...]=0.5
""".split()
IN_PLACE_ROUNDING = """
    {x}.sin_() {x}.tanh_() {x}.sigmoid_() {x}.mul_(0.3) {x}.add_(0.7) {x}.div_(3) {x}.exp_().reciprocal_()
    {x}.addcmul_({x},{x},value=0.1) {x}.cos_().mul_(1.1)
""".split()
IN_PLACE_INTEGRAL = (
    "{x}.add_(1) {x}.mul_(3) {x}.neg_() {x}.clamp_(-2,2) {x}.zero_() {x}.bitwise_and_(6) {x}.fill_(2)".split()
)
VIEWS = "{x} {x} {x}.mT {x}[1:] {x}[...,::2] {x}[0] {x}.flatten() {x}.view(-1)[1:] {x}.diagonal() {x}[:,1:]".split()


def is_writable(tensor: Tensor) -> bool:
    """Whether its elements lie apart, so that a write means one thing."""
    reached = 0
    for step, size in sorted((step, size) for step, size in zip(tensor.stride(), tensor.shape) if size > 1):
        if step <= reached:
            return False
        reached += step * (size - 1)
    return tensor.numel() > 0


def _fits_into(shape: tuple[int, ...]) -> Callable[[Tensor], bool]:
    """Whether a tensor can be written to one of `shape`."""
    return lambda t: t.dim() <= len(shape) and all(b in (1, a) for a, b in zip(shape[::-1], tuple(t.shape)[::-1]))


def _target(pick: Pick, rank: int = 0) -> str:
    """A tensor that can be written to; no part of an expanded argument, which torch.compile refuses, and no float64
    argument without dimensions, to which Dynamo loses what is written (2.13, whatever the backend)."""
    inputs = [pick.value(name) for name in pick.worlds.inputs]
    refused = {
        tensor.untyped_storage().data_ptr()
        for tensor in inputs
        if not is_writable(tensor) or (tensor.dtype == torch.float64 and not tensor.dim())
    }
    return pick.tensor(lambda t: is_writable(t) and t.dim() >= rank and t.untyped_storage().data_ptr() not in refused)


def _operand(pick: Pick, target: str, other: str) -> str:
    """`other` as an operand of a write to `target`: a copy of it where both lie in one storage."""
    storages = {pick.value(name).untyped_storage().data_ptr() for name in (target, other)}
    return f"{other}.clone()" if len(storages) == 1 else other


def in_place(pick: Pick) -> Draft:
    x = _target(pick)
    dtype = pick.value(x).dtype
    view = pick.choice(VIEWS).format(x=x)
    if not dtype.is_floating_point:
        if dtype.itemsize == 1:
            raise NothingFits
        return Draft(pick.choice(IN_PLACE_INTEGRAL).format(x=view), "moves", (x,), writes=x)
    if pick.chance(0.4):
        return Draft(pick.choice(IN_PLACE_ROUNDING).format(x=view), "rounds", (x,), writes=x)
    return Draft(pick.choice(IN_PLACE).format(x=view), "moves", (x,), writes=x)


def in_place_binary(pick: Pick) -> Draft:
    x = _target(pick)
    shape = pick.shape(x)
    y = pick.tensor(_fits_into(shape))
    operand = _operand(pick, x, y)
    view, operand = pick.choice([(x, operand), (x, operand), (f"{x}.mT", f"{operand}.mT")])
    form = pick.choice("{x}.add_({y}) {x}.mul_({y}) {x}.sub_({y},alpha=2) {x}.copy_({y}) {x}.copy_({y})".split())
    return Draft(form.format(x=view, y=operand), "moves", (x, y), writes=x)


def assigned(pick: Pick) -> Draft:
    """x[1:, ::2] = something"""
    x = _target(pick)
    subscript = pick.subscript(x)
    if pick.chance(0.4):
        return Draft(f"{x}[{subscript}] = {pick.number()}", "moves", (x,), writes=x)
    shape = tuple(eval(f"x[{subscript}]", {"x": pick.value(x)}).shape)
    y = pick.tensor(_fits_into(shape))
    return Draft(f"{x}[{subscript}] = {_operand(pick, x, y)}", "moves", (x, y), writes=x)


def masked(pick: Pick) -> Draft:
    x = _target(pick)
    shape = pick.shape(x)
    mask = pick.tensor(lambda t: str(t.dtype) == "torch.bool" and tuple(t.shape) == shape, True)
    chosen = _operand(pick, x, mask)
    forms = [f"{x}.masked_fill_({chosen}, {pick.number()})"]
    # A mask of one element is read while the index is made, which captures no graph.
    forms += [f"{x}[{chosen}] = 1"] if shape else []
    form = pick.choice(forms)
    return Draft(form, "moves", (x, mask), writes=x)


def indexed(pick: Pick) -> Draft:
    x = _target(pick, rank=1)
    size = pick.shape(x)[0]
    chosen, index = place(pick, size)
    if pick.value(x).untyped_storage().data_ptr() == pick.value(index).untyped_storage().data_ptr():
        raise NothingFits
    rows = f"{chosen}.flatten()[:6]"
    if pick.chance(0.5):
        return Draft(f"{x}[{rows}] = {pick.number()}", "moves", (x, index), writes=x)
    kind = "rounds" if pick.value(x).dtype.is_floating_point else "moves"
    one = f"torch.ones((), dtype={x}.dtype)"
    return Draft(f"{x}.index_put_(({rows},), {one}, accumulate=True)", kind, (x, index), writes=x)  # type: ignore[arg-type]
