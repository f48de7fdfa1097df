"""What only shortens a first call, or the host's part of each call, and how it is turned off.

The compiler is right without each of these. `FUSIONSCOPE_WITHOUT` names those that it must do without, separated by
commas, or `all`: to tell whether one of them is to blame for a fault, as after a new release of torch or Triton, and to
measure what each is worth (`bench/accelerators.py`). A process that is started later reads the same setting.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from unittest import mock

SETTING = "FUSIONSCOPE_WITHOUT"

#: Of the first call on any device.
_OF_CAPTURE = {
    "traced_once": "a graph that changes nothing is traced once",
    "formulas_once": "a formula of open sizes is made once",
    "names_as_asked": "names of functions are found where a log wants them",
    "graphs_as_asked": "graphs are written as text where a log or `torch.export` wants them",
    "wrapped_as_asked": "tensors of many devices are not imported to learn that there are none",
    "inductor_left_out": "TorchInductor is neither imported nor described for a log of its own",
    "no_states": "states of random generators are shared where nobody sets them",
    "guards_timed_warm": "guards are timed without emptying the caches first",
    "garbage_kept": "Python does not look for cycles meanwhile",
}
#: Of the first call on a GPU.
_OF_TRITON = {
    "assembler_early": "the assembler is started before there is anything to assemble",
    "loops_kept": "the assembler does not unroll the loops of products",
    "device_functions": "kernels are linked with files of one function each",
    "compile_helpers": "other processes compile the kernels of a large graph",
}
#: Of every call.
_OF_CALLS = {
    "flat": "the wrapper runs as a list of steps, without Python",
    "straight_calls": "Dynamo's code calls an inference graph without AOTAutograd's functions around it",
    "without_marks": "Dynamo's code does not mark its first part for a profiler",
    "without_hook_guard": "guards do not ask for hooks on saved tensors where none is saved",
    "without_wrapper": "the graph turns Dynamo off itself",
    "library_products": "cuBLASLt is called without torch's dispatch",
}
ACCELERATORS = _OF_CAPTURE | _OF_TRITON | _OF_CALLS


def is_on(name: str) -> bool:
    """Whether the accelerator of that name is used. Raises ValueError for a setting that names none."""
    assert name in ACCELERATORS
    return name not in _turned_off(os.environ.get(SETTING, ""))


@contextmanager
def without(*names: str) -> Iterator[None]:
    """Within, these accelerators are not used; what was compiled before stays as it is."""
    with mock.patch.dict(os.environ, {SETTING: ",".join(names)}):
        yield


@cache
def _turned_off(setting: str) -> frozenset[str]:
    names = frozenset(name.strip() for name in setting.split(",") if name.strip())
    if names == {"all"}:
        return frozenset(ACCELERATORS)
    if unknown := sorted(names - ACCELERATORS.keys()):
        known = ", ".join(ACCELERATORS)
        raise ValueError(f"{SETTING} names {unknown[0]!r}, which is no accelerator. It can be `all`, or of: {known}.")
    return names
