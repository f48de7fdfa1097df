"""Imports of a process that forks compile workers: what each of them would otherwise load or compile anew.

Loaded are the modules that a first use of Dynamo, Triton and our code imports (a tenth of a second), and the launcher's
library. Read are the names of the compiler and the CPU, the device functions that Triton's kernels are linked with, and
the hash of Triton's own library, which names its cache entries. Frozen objects are counted, which takes 40 ms. Nothing
here starts a thread or touches a GPU.
"""

from __future__ import annotations

import importlib
from contextlib import suppress

from compiler.garbage import is_frozen_by_others
from compiler.runtime.cpp.compiler import CompilerMissing, machine
from compiler.runtime.host.launcher import launcher_library
from compiler.runtime.triton.device_functions import UnknownLibrary, function_texts
from compiler.runtime.triton.setup import hash_of_triton

for name in (
    "compiler.lowering.decompositions",
    "compiler.passes.rewrite.rewriting",
    "torch.distributed.tensor.experimental._func_map",
    "triton.compiler.code_generator",
):
    with suppress(ImportError):  # another release has it elsewhere, or there is no Triton
        importlib.import_module(name)

with suppress(CompilerMissing):  # each exploration says so itself
    machine()
    launcher_library()

with suppress(UnknownLibrary):  # kernels are linked with libdevice itself, or there is no Triton
    function_texts()

hash_of_triton()
is_frozen_by_others()
