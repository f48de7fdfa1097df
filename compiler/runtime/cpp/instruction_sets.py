"""Which instructions our C++ kernels are compiled for: those of the machine, or a level that a setting names.

A level says what a compiler may use, so kernels of a lower one run on older machines, and show here what such a machine
would compute. x86-64's are those of its psABI (https://gitlab.com/x86-psABIs/x86-64-ABI): v2 has SSE4.2, v3 has AVX2
and FMA, v4 has AVX-512.
"""

from __future__ import annotations

import functools
import os
import platform
from pathlib import Path

#: The environment variable that names a level.
SETTING = "FUSIONSCOPE_INSTRUCTION_SET"
#: Whatever the machine has.
NATIVE = "native"

#: By architecture and level: what Linux calls the instructions that the level has beyond the one before it.
_LEVELS: dict[str, dict[str, str]] = {
    "x86_64": {
        "x86-64-v2": "cx16 lahf_lm popcnt pni sse4_1 sse4_2 ssse3",
        "x86-64-v3": "avx avx2 bmi1 bmi2 f16c fma abm movbe xsave",
        "x86-64-v4": "avx512f avx512bw avx512cd avx512dq avx512vl",
    },
    "aarch64": {"armv8-a": "fp asimd"},
}


class UnknownInstructionSet(ValueError):
    """The setting names no level that this machine can run; says which it can."""


def instruction_set() -> str:
    """What the setting asks for, in the words of the compiler's `-march`. Raises UnknownInstructionSet."""
    wanted = os.environ.get(SETTING) or NATIVE
    if wanted != NATIVE and wanted not in runnable():
        known = ", ".join((NATIVE, *runnable()))
        raise UnknownInstructionSet(f"{SETTING} is {wanted!r}, which this machine cannot run. It can be: {known}.")
    return wanted


@functools.cache
def runnable() -> tuple[str, ...]:
    """The levels that this machine can run, lowest first."""
    found: list[str] = []
    has = _features()
    for level, features in _LEVELS.get(architecture(), {}).items():
        if not has.issuperset(features.split()):
            break
        found.append(level)
    return tuple(found)


def architecture() -> str:
    """The machine's, in the words of Linux."""
    return {"AMD64": "x86_64", "arm64": "aarch64"}.get(platform.machine(), platform.machine())


def _features() -> set[str]:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return set()
    return {name for line in lines if line.startswith(("flags", "Features")) for name in line.partition(":")[2].split()}
