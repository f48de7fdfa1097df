"""Triton's pass pipelines without the passes that our kernels have no use for.

From a kernel's first form (TTIR) to its second (TTGIR) Triton runs 38 passes. 18 of them look for products of tiles,
for descriptors, for loops to be pipelined, or for the memory of tensor cores. Kernels without products skip them, which
halves the time. The others run in Triton's order, and the result is the same to the last character, as
`tests/runtime/test_triton_stages.py` checks.

Behind them LLVM has passes of its own, before it writes the text for the assembler, which has others again. Kernels of
products go without those: of eleven on an H200, all gave the same results to the last bit in the same time.
"""

from __future__ import annotations

import threading
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

#: Versions of Triton whose passes these are.
KNOWN = ("3.6", "3.7")
#: Generations of GPUs for which Triton has these passes; others it treats in another way.
GENERATIONS = (8, 9)
#: Beginnings of the names of operators that the passes left out are for.
_OF_PRODUCTS = ("tt.dot", "tt.descriptor", "tt.make_tensor_descriptor", "ttng.")
_LOOPS = frozenset({"scf.for", "scf.while"})
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


def without_products(module: Any, operators: Collection[str], options: Any, capability: int) -> bool:
    """Take the kernel `module` from its first form to the second, in place. False where that is Triton's to do, and
    nothing was done."""
    is_plain = options.num_ctas == 1 and capability // 10 in GENERATIONS
    if not is_plain or any(name.startswith(_OF_PRODUCTS) for name in operators):
        return False
    _passes(module, options, capability, has_loops=not _LOOPS.isdisjoint(operators))
    return True


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


def _passes(module: Any, options: Any, capability: int, has_loops: bool) -> None:
    from triton._C.libtriton import ir, passes  # type: ignore[attr-defined]

    if options.maxnreg is not None:
        module.set_attr("ttg.maxnreg", ir.builder(module.context).get_int32_attr(options.maxnreg))
    manager = ir.pass_manager(module.context)
    is_shown = manager.enable_debug()
    gpu, tiles, common = passes.ttgpuir, passes.ttir, passes.common
    tiles.add_convert_to_ttgpuir(manager, f"cuda:{capability}", options.num_warps, 32, options.num_ctas)
    gpu.add_coalesce(manager)
    gpu.add_remove_layout_conversions(manager)
    gpu.add_optimize_thread_locality(manager)
    gpu.add_remove_layout_conversions(manager)
    tiles.add_loop_aware_cse(manager)
    common.add_canonicalizer(manager)
    tiles.add_triton_licm(manager)
    common.add_canonicalizer(manager)
    gpu.add_combine_tensor_select_and_if(manager)
    if has_loops:
        gpu.add_assign_latencies(manager, options.num_stages)
        gpu.add_schedule_loops(manager)
        gpu.add_pipeline(manager, options.num_stages, is_shown)
    common.add_canonicalizer(manager)
    tiles.add_loop_aware_cse(manager)
    if has_loops:
        gpu.add_coalesce_async_copy(manager)
    gpu.add_remove_layout_conversions(manager)
    gpu.add_reduce_data_duplication(manager)
    gpu.add_reorder_instructions(manager)
    tiles.add_loop_aware_cse(manager)
    common.add_symbol_dce(manager)
    common.add_sccp(manager)
    common.add_cse(manager)
    common.add_canonicalizer(manager)
    manager.run(module, "make_ttgir")
