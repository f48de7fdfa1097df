"""The head of a Triton module: imports, and the helpers that its kernels call."""

from __future__ import annotations

import re
from collections.abc import Iterable

import torch

from compiler.codegen.triton.reductions.clusters import HELPERS as CLUSTER_HELPERS
from compiler.codegen.triton.reductions.states import HELPERS as STATE_HELPERS
from compiler.codegen.triton.values.float8 import HELPERS as FLOAT8_HELPERS
from compiler.codegen.triton.values.functions import function_texts
from compiler.codegen.triton.values.helpers import FAST_FUNCTIONS
from compiler.codegen.triton.values.helpers import HELPERS as VALUE_HELPERS
from compiler.codegen.triton.values.random import HELPERS as RANDOM_HELPERS

_IMPORTS = """import triton
import triton.language as tl
from triton.language.extra import libdevice
"""
_CAPABILITY = "from triton.language.target_info import cuda_capability_geq\n"


HELPERS = {
    **VALUE_HELPERS, **STATE_HELPERS, **CLUSTER_HELPERS,
    **FLOAT8_HELPERS, **RANDOM_HELPERS, **FAST_FUNCTIONS,
}  # fmt: skip

#: What is no code: comments, and docstrings.
_PROSE = re.compile(r'#.*|^ *"""[^"]*"""$', re.MULTILINE)


def module_head(body: str, functions: Iterable[tuple[str, torch.dtype]]) -> str:
    """Imports, and what the kernels call whose lines are `body`: `functions` of the program, and helpers."""
    texts = function_texts(functions)
    found, open_ = set[str](), [body, *texts]
    while open_:
        words = re.findall(r"(?<![.\w])\w+", _PROSE.sub("", open_.pop()))
        called = (HELPERS.keys() & words) - found
        found |= called
        open_ += (HELPERS[name] for name in called)
    texts = [*(text for name, text in HELPERS.items() if name in found), *texts]
    imports = _IMPORTS + _CAPABILITY if any("cuda_capability_geq" in text for text in texts) else _IMPORTS
    return "\n".join([imports, *(f"\n{text}" for text in texts)]) + "\n"
