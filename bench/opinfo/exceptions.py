"""Operators that are not judged by their values alone, by name, each group with its reason.

Nothing else is left out of a sweep: an operator that is in none of these tables and is not right counts as wrong.
"""

from __future__ import annotations

#: Two right results differ: judged by their distribution (`judge.judge_random`).
RANDOM = frozenset(
    """bernoulli cauchy exponential geometric log_normal multinomial normal normal.in_place normal.number_mean
    rand_like randint randint_like randn randn_like uniform
    nn.functional.alpha_dropout nn.functional.dropout nn.functional.dropout2d nn.functional.dropout3d
    nn.functional.feature_alpha_dropout.with_train nn.functional.feature_alpha_dropout.without_train
    nn.functional.fractional_max_pool2d nn.functional.fractional_max_pool3d nn.functional.rrelu
    nn.functional.scaled_dot_product_attention nn.functional.multi_head_attention_forward
    pca_lowrank svd_lowrank""".split()
)

#: Their values are whatever the memory held: judged by shape and dtype.
UNINITIALISED = frozenset("empty empty_like empty_permuted empty_strided new_empty new_empty_strided".split())

#: Results that have no right value, by operator and by place among its results, with the reason: judged by shape and
#: dtype. Without dropout the two attention kernels draw no random number, and leave where they would write the state of
#: the generator whatever the memory held. (The padding of `_efficient_attention_forward`'s log-sum-exp is uninitialised
#: too, but torch's samples of it ask for none.)
WITHOUT_VALUE = {
    "torch.ops.aten._flash_attention_forward": {
        2: "The seed and the offset of its dropout, uninitialised without one.",
        3: "Nothing: PyTorch keeps the place of what was the offset once, and never writes to it.",
    },
    "torch.ops.aten._efficient_attention_forward": {
        2: "The seed of its dropout, uninitialised without one.",
        3: "The offset of its dropout, uninitialised without one.",
    },
}

#: The divisor among a sample's tensors. Integers divided by zero raise on a CPU; a GPU gives what its instructions
#: happen to leave, which differs between 32 and 64 bits: such a sample is judged by shape and dtype there.
DIVISORS = {"__rmod__": 0}

#: Not run, with the reason.
NOT_RUN = {
    "jiterator": "Compiles CUDA code of its own; there is nothing to run on a CPU.",
}
