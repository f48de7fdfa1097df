"""Texts of kernels as modules: what Triton is told of them is what it would find itself, or as good."""

from __future__ import annotations

from compiler.runtime.triton.text import execute

MODULE = """\
import triton
import triton.language as tl


@triton.jit
def doubled(x):
    return x * 2.0


# A comment between two.
@triton.jit
def kernel(
    x,
    y,
    BLOCK: tl.constexpr,
):
    \"\"\"Of x,

    and y.\"\"\"
    place = tl.arange(0, BLOCK)
    tl.store(y + place, doubled(tl.load(x + place)))
    # The end.

"""


def test_kernels_are_told_apart_by_their_whole_text() -> None:
    """That of the functions that they call is part of it; and Triton does not look for them, nor is it asked again."""
    texts = [MODULE, MODULE.replace("2.0", "3.0"), MODULE]
    kernels = [execute(text, f"module{place}.py", "kernel")["kernel"] for place, text in enumerate(texts)]
    keys = [kernel.cache_key for kernel in kernels]
    assert keys[0] != keys[1] and keys[0] == keys[2]
    named = execute(MODULE, "module.py", "doubled")["doubled"].cache_key
    assert named != keys[0]
