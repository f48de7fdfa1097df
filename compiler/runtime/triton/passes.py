"""LLVM's passes, left out of products of tiles.

Behind Triton's own passes LLVM has some, before it writes the text for the assembler, which has others again. Kernels
of products go without LLVM's: of eleven on an H200, all gave the same results to the last bit in the same time.
"""

from __future__ import annotations

import threading
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

#: Versions of Triton whose passes these are.
KNOWN = ("3.6", "3.7")
#: Device functions that have as many instructions without LLVM's passes, in our files of them (see `device_functions`);
#: others, logarithms for one, branch then where they need not.
SIMPLE_FUNCTIONS = frozenset(
    f"__nv_{name}f"
    for name in "acos ceil copysign cos cosh erf erfc exp exp2 expm1 fast_fdivide floor hypot log1p rint rsqrt "
    "sin sinh sqrt tan tanh trunc".split()
)


_in_this_thread = threading.local()


def operators_of(module: Any) -> frozenset[str]:
    """The names of all operators in a kernel."""
    names: set[str] = set()
    module.walk(lambda operator: names.add(operator.get_name()))
    return frozenset(names)


def gains_nothing_from_llvm(operators: Collection[str], options: Any) -> bool:
    """Whether a kernel is as fast without LLVM's passes: a product, if what follows it calls no function that would
    branch. With them it may need fewer registers than it may have."""
    if "tt.dot" not in operators or options.maxnreg is not None:
        return False
    files = (Path(path) for _, path in options.extern_libs or ()) if "tt.extern_elementwise" in operators else ()
    return all(file.suffix == ".ll" and file.stem in SIMPLE_FUNCTIONS for file in files)


@contextmanager
def without_llvms_passes() -> Iterator[None]:
    """Within, this thread's kernels go without them, where `levels_for_threads` lets it choose."""
    _in_this_thread.has_level_zero = True
    try:
        yield
    finally:
        _in_this_thread.has_level_zero = False


@contextmanager
def levels_for_threads() -> Iterator[None]:
    """Within, threads may ask for it."""
    from triton._C.libtriton import llvm  # type: ignore[attr-defined]

    by_triton = llvm.optimize_module

    def optimize(module: Any, level: Any, *more: Any, **settings: Any) -> Any:
        is_zero = getattr(_in_this_thread, "has_level_zero", False)
        return by_triton(module, llvm.OPTIMIZE_O0 if is_zero else level, *more, **settings)

    llvm.optimize_module = optimize
    try:
        yield
    finally:
        llvm.optimize_module = by_triton
