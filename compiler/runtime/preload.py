"""Imported by a process that forks others to compile in: what each of them would otherwise find out or compile anew.

That is the launcher's library, and which compiler and CPU there are. Nothing here starts a thread or touches a GPU.
"""

from __future__ import annotations

from contextlib import suppress

from compiler.runtime.cpp_compiler import CompilerMissing, machine
from compiler.runtime.launcher import launcher_library

with suppress(CompilerMissing):  # each exploration says so itself
    machine()
    launcher_library()
