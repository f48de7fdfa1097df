"""Imported by a process that forks others to compile in: what each of them would otherwise find out or compile anew.

That is the launcher's library, which compiler and CPU there are, the device functions that Triton's kernels are
linked with, and the hash of Triton's own library, by which it names what it keeps. Nothing here starts a
thread or touches a GPU.
"""

from __future__ import annotations

from contextlib import suppress

from compiler.runtime.cpp_compiler import CompilerMissing, machine
from compiler.runtime.device_functions import UnknownLibrary, function_texts
from compiler.runtime.launcher import launcher_library
from compiler.runtime.triton_setup import hash_of_triton

with suppress(CompilerMissing):  # each exploration says so itself
    machine()
    launcher_library()

with suppress(UnknownLibrary):  # kernels are linked with libdevice itself, or there is no Triton
    function_texts()

hash_of_triton()
