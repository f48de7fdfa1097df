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

#: Not run, with the reason.
NOT_RUN = {
    "jiterator": "Compiles CUDA code of its own; there is nothing to run on a CPU.",
}
