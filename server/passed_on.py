"""What a program that we start sees of our environment: where compilers and the GPU are, and no secret."""

from __future__ import annotations

import os

_NAMES = (
    "PATH",
    "LD_LIBRARY_PATH",
    "CUDA_HOME",
    "CUDA_PATH",
    "CUDA_VISIBLE_DEVICES",
    "NVIDIA_VISIBLE_DEVICES",
    "CC",
    "CXX",
)


def passed_on(*more: str) -> dict[str, str]:
    """Those variables, and `more`, as far as they are set."""
    return {name: os.environ[name] for name in (*_NAMES, *more) if name in os.environ}
