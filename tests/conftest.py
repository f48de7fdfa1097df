"""The order of the tests, how often Python looks for cycles meanwhile, and what TorchInductor need not find out."""

from __future__ import annotations

import gc
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

# A search goes through all that torch, Dynamo and sympy hold, and finds next to nothing; while tests are collected,
# nothing.
gc.set_threshold(20_000, 20, 20)
gc.disable()

# TorchInductor asks by a compilation with torch's headers whether the machine runs its vectors: 5 s of work in each
# process that has its caches to itself, as those do which tests start.
os.environ.setdefault("TORCHINDUCTOR_VEC_ISA_OK", "1")

TESTS = Path(__file__).parent
#: What takes a processor longest, so that no worker is left alone with it at the end.
LONGEST = """
lowering/test_operators_of_places.py
lowering/test_operators.py
opinfo/test_operators.py
codegen/cpp/test_operators.py
runtime/test_bench.py
codegen/cpp/test_headers.py
pipeline/test_wrong_results.py
pipeline/test_dynamic_sizes.py
random/test_random_programs.py
models/test_models.py
setup/test_package.py
fusion/test_look_back.py
fusion/test_cooperative.py
fusion/test_single_pass.py
fusion/test_across.py
fusion/test_kernels_and_bytes.py
passes/rewrite/test_attention.py
schedule/test_reasons.py
schedule/test_what_if.py
schedule/test_form.py
sweep/test_sweep.py
""".split()
#: Folders whose tests are of the compiler alone, a few seconds in each file: with them the workers end at one time.
SHORT = ("fusion", "passes", "schedule", "sweep")


@pytest.fixture(scope="module")
def others_frozen() -> Iterator[None]:
    """For tests in which Python is told to search for cycles: it does not go through what the tests of other modules
    have left, which takes a second each time."""
    import compiler.garbage

    gc.freeze()
    yield
    gc.unfreeze()
    compiler.garbage._is_frozen = False


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """The longest files first, and the short ones last, behind those of the browser: Playwright leaves its event loop
    running in the process, where no other loop then starts."""
    items.sort(key=lambda item: _turn(item.path.relative_to(TESTS)))


@pytest.hookimpl(tryfirst=True)
def pytest_runtestloop() -> None:
    gc.enable()


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish() -> None:
    """pytest and Python each search once more before the process ends."""
    gc.freeze()


def _turn(path: Path) -> int:
    if path.as_posix() in LONGEST:
        return LONGEST.index(path.as_posix())
    return len(LONGEST) + (2 if path.parts[0] in SHORT else path.parts[0] == "browser")
