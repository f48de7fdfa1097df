"""Texts of kernels as modules: what Triton is told of them is what it would find itself, or as good."""

from __future__ import annotations

import inspect
import os
import threading
from pathlib import Path
from types import FunctionType
from typing import Any

import pytest
import triton
from triton.runtime import jit

from compiler.codegen.triton.render import render_triton
from compiler.devices import device_for
from compiler.runtime.triton.source import file_name
from compiler.runtime.triton.text import block_of, execute
from tests.codegen.triton import groups
from tests.codegen.triton.groups import Case

MODULE = """\
import triton
import triton.language as tl


@triton.jit
def doubled(x):
    return x * 2.0


# A comment between two.
@triton.jit
def kernel(
    x,
    y,
    BLOCK: tl.constexpr,
):
    \"\"\"Of x,

    and y.\"\"\"
    place = tl.arange(0, BLOCK)
    tl.store(y + place, doubled(tl.load(x + place)))
    # The end.

"""
CASES = [
    groups.softmax(4096, 40000),
    groups.layer_norm(16, 100000),
    groups.reduction("argmax", 4096, 32000, 1),
    groups.random(1 << 20, "randn"),
]


def functions_of(namespace: dict[str, Any]) -> list[FunctionType]:
    return [value.fn for value in namespace.values() if isinstance(value, jit.JITFunction)]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_blocks_are_those_that_python_finds(case: Case) -> None:
    kernel = render_triton(case.group, case.storage, device_for("sm_90"))
    functions = functions_of(execute(kernel.source, file_name(kernel), kernel.name))
    assert functions
    for function in functions:
        assert block_of(function) == inspect.getsourcelines(function)


def test_blocks_end_with_what_is_indented() -> None:
    namespace = execute(MODULE, "module.py", "kernel")
    assert [function.__name__ for function in functions_of(namespace)] == ["doubled", "kernel"]
    for function in functions_of(namespace):
        assert block_of(function) == inspect.getsourcelines(function)
    assert namespace["kernel"].raw_src[-1] == "    # The end.\n"


def test_kernels_are_told_apart_by_their_whole_text() -> None:
    """That of the functions that they call is part of it; and Triton does not look for them, nor is it asked again."""
    texts = [MODULE, MODULE.replace("2.0", "3.0"), MODULE]
    kernels = [execute(text, f"module{place}.py", "kernel")["kernel"] for place, text in enumerate(texts)]
    keys = [kernel.cache_key for kernel in kernels]
    assert keys[0] != keys[1] and keys[0] == keys[2]
    named = execute(MODULE, "module.py", "doubled")["doubled"].cache_key
    assert named != keys[0]


def test_functions_of_others_are_found_as_ever(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also by a thread that loads its own while one of ours is loaded."""
    text = "    text = '''\nnot indented:\n'''\n    return x\n"
    (tmp_path / "of_a_user.py").write_text(f"import triton\n\n\n@triton.jit\ndef kernel(x,\n           y):\n{text}")
    monkeypatch.syspath_prepend(tmp_path)
    found: list[Any] = []

    def load_another() -> None:
        import of_a_user  # type: ignore[import-not-found]

        found.append(of_a_user.kernel)

    def jitted(function: Any) -> Any:
        thread = threading.Thread(target=load_another)
        thread.start()
        thread.join()
        return triton.jit(function)

    monkeypatch.setattr(triton, "jit_of_this_test", jitted, raising=False)
    execute(MODULE.replace("@triton.jit\ndef kernel", "@triton.jit_of_this_test\ndef kernel"), "module.py", "kernel")
    assert found[0].raw_src[-1] == "    return x\n" and found[0].hash is None
    assert vars(jit)["inspect"] is inspect


def test_a_copy_of_a_process_that_loads_a_kernel_loads_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever loads one in the process that is copied goes on there, and never in the copy."""
    found: list[int] = []

    def copied(function: Any) -> Any:
        copy = os.fork()
        if copy == 0:
            thread = threading.Thread(target=execute, args=(MODULE, "module.py", "kernel"), daemon=True)
            thread.start()
            thread.join(300)
            os._exit(thread.is_alive())
        found.append(os.waitstatus_to_exitcode(os.waitpid(copy, 0)[1]))
        return triton.jit(function)

    monkeypatch.setattr(triton, "jit_of_this_test", copied, raising=False)
    execute(MODULE.replace("@triton.jit\ndef kernel", "@triton.jit_of_this_test\ndef kernel"), "module.py", "kernel")
    assert found == [0]
