"""The head of a Triton module: imports, and the helpers that its kernels call."""

from __future__ import annotations

from collections.abc import Sequence

from compiler.codegen.triton.reductions.clusters import HELPERS as CLUSTER_HELPERS
from compiler.codegen.triton.reductions.look_back import HELPERS as LOOK_BACK
from compiler.codegen.triton.reductions.scans import HELPERS as SCAN_HELPERS
from compiler.codegen.triton.reductions.shared_rows import HELPERS as SHARED_ROW_HELPERS
from compiler.codegen.triton.reductions.states import HELPERS as STATE_HELPERS
from compiler.codegen.triton.values.fast_functions import HELPERS as FAST_FUNCTIONS
from compiler.codegen.triton.values.float8 import CAPABILITY, FLOAT8_HELPERS
from compiler.codegen.triton.values.functions import function_texts
from compiler.codegen.triton.values.helpers import HELPERS
from compiler.codegen.triton.values.random import HELPERS as RANDOM_HELPERS
from compiler.codegen.triton.values.statements import StatementPrinter
from compiler.ir.float8 import FLOAT8

_IMPORTS = """import triton
import triton.language as tl
from triton.language.extra import libdevice
"""


def module_head(printers: Sequence[StatementPrinter]) -> str:
    """Imports, and what the kernels that were printed call."""
    helpers = set().union(*(printer.helpers for printer in printers))
    functions = {function: None for printer in printers for function in printer.functions}
    texts = function_texts(functions, helpers)
    known_helpers = {
        **HELPERS, **STATE_HELPERS, **SHARED_ROW_HELPERS, **LOOK_BACK, **CLUSTER_HELPERS, **SCAN_HELPERS,
        **FLOAT8_HELPERS, **RANDOM_HELPERS, **FAST_FUNCTIONS,
    }  # fmt: skip
    texts = [*(known_helpers[name] for name in known_helpers if name in helpers), *texts]
    imports = _IMPORTS if helpers.isdisjoint(form.name for form in FLOAT8.values()) else _IMPORTS + CAPABILITY
    return "\n".join([imports, *(f"\n{text}" for text in texts)]) + "\n"
