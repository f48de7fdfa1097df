"""A view has strides where PyTorch finds some, and those."""

from __future__ import annotations

import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from compiler.lowering.views import strides_of_view

SHAPES = [(4, 5, 4), (2, 3, 1, 4), (6, 4), (24,), (1, 24), (2, 2, 6), (3, 8), (16, 1, 5), (8, 10), (2, 40), (80,), (1,)]


def tensors() -> st.SearchStrategy[torch.Tensor]:
    def build(shape: tuple[int, ...], order: list[int], steps: list[int], is_expanded: bool) -> torch.Tensor:
        x = torch.zeros([size * step for size, step in zip(shape, steps)])[
            tuple(slice(0, None, s) for s, _ in zip(steps, shape))
        ]
        x = x[:1].expand(shape) if is_expanded else x
        return x.permute([place for place in order if place < len(shape)])

    steps = st.lists(st.sampled_from([1, 1, 1, 2]), min_size=4, max_size=4)
    return st.builds(build, st.sampled_from(SHAPES), st.permutations(range(4)), steps, st.booleans())


@settings(max_examples=400, deadline=None)
@given(tensors(), st.sampled_from(SHAPES))
def test_strides_are_pytorchs(x: torch.Tensor, shape: tuple[int, ...]) -> None:
    if x.numel() != torch.Size(shape).numel():
        return
    found = strides_of_view(tuple(x.shape), x.stride(), shape)
    try:
        expected = x.view(shape)
    except RuntimeError:
        assert found is None
        return
    assert found is not None
    pairs = zip(found, expected.stride(), shape)
    assert all(ours == theirs for ours, theirs, size in pairs if size > 1)
