"""A wrapper as a flat list of steps does what Python makes of its text, and holds nothing longer."""

from __future__ import annotations

import ctypes
import gc
import textwrap
import weakref
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from torch import Tensor

import compiler.runtime.host.launcher as launcher
from compiler.runtime.host.flat import FlatCall, flat_call
from compiler.runtime.host.quick_torch import allocator, view

CPU = torch.device("cpu")
X, Y = torch.arange(6.0).reshape(2, 3), torch.ones(2, 3)


def add(x: Tensor, y: Tensor, out: Tensor) -> None:
    torch.add(x, y, out=out)


SCOPE: dict[str, Any] = {
    "torch": torch, "empty": allocator(CPU), "view": view, "add": add, "weight": torch.full((2, 3), 2.0),
    "library": {"both": lambda x: (x + 1, x - 1)}, "inf": float("inf"), "device": torch.device,
}  # fmt: skip


def python_of(text: str, scope: dict[str, Any]) -> Callable[[list[Any]], list[Any]]:
    known = dict(scope)
    exec(text, known)
    call: Callable[[list[Any]], list[Any]] = known["call"]
    return call


def flat_of(body: str, scope: dict[str, Any] = SCOPE, number: int | None = None) -> FlatCall | None:
    text = f"def call(inputs):\n{textwrap.indent(textwrap.dedent(body).strip(), '    ')}\n"
    return flat_call(text, scope, {"add"}, python_of(text, scope), number)


def run(body: str, scope: dict[str, Any] = SCOPE) -> FlatCall:
    flat = flat_of(body, scope)
    assert flat is not None
    return flat


SUM = """
    x, y = inputs
    out = empty((2, 3), (3, 1), torch.float32)
    add(x, y, out)
    return [out]
"""

BODIES = {
    "kernel": SUM,
    "one input": "x, = inputs\nreturn [x, None, 3, 2.5, inf]",
    "results in a tuple": "x, y = inputs\n_, less = library['both'](x)\nmore, _ = library['both'](y)\n"
    "return [less, more]",
    "names set anew": "x, y = inputs\nx = torch.neg(x)\nx = torch.mul(x, y)\ny = x\ndel x\nreturn [y, y]",
    "lists and what stands in arguments": (
        "x, y = inputs\nout = torch.cat([view(x, (3,), (1,), 3), torch.flatten(y), torch.ones([2])], 0)\nreturn [out]"
    ),
    "keywords": "x, y = inputs\nout = torch.add(x, y, alpha=3)\nat = torch.zeros([1], device=torch.device('cpu'))\n"
    "return [out, at]",
    "constants": "x, y = inputs\nout = torch.add(x, weight)\nreturn [out, weight]",
}


@pytest.mark.parametrize("body", BODIES.values(), ids=BODIES)
def test_it_does_what_the_text_does(body: str) -> None:
    flat = run(body)
    inputs = [X, Y] if "x, y" in body else [X]
    text = "def call(inputs):\n" + textwrap.indent(textwrap.dedent(body).strip(), "    ")
    expected = python_of(text, SCOPE)(list(inputs))
    torch.testing.assert_close(flat.direct(*inputs), expected)
    torch.testing.assert_close(flat(list(inputs)), expected)


def test_each_call_has_memory_of_its_own() -> None:
    flat = run(SUM)
    first, second = flat.direct(X, Y), flat.direct(X, X)
    torch.testing.assert_close(first + second, [X + Y, X + X])


def test_what_the_text_lets_go_of_is_freed_there_and_then() -> None:
    """A name that is deleted or set anew, and a value without a name once its statement is done."""
    made: list[weakref.ref[Tensor]] = []
    alive: list[int] = []

    def make(x: Tensor) -> Tensor:
        result = x + 1
        made.append(weakref.ref(result))
        return result

    def look() -> None:
        alive.append(sum(reference() is not None for reference in made))

    flat = run(
        """
        x, = inputs
        a = make(x)
        look()
        a = make(a)
        look()
        b = torch.add(make(a), torch.sum(torch.stack([make(a), a])))
        look()
        del a
        look()
        return [b]
        """,
        {**SCOPE, "make": make, "look": look},
    )
    (result,) = flat.direct(X)
    assert alive == [1, 1, 1, 0]
    torch.testing.assert_close(result, X + 3 + (2 * X + 5).sum())


def test_a_failure_is_the_callers_and_frees_what_was_made() -> None:
    made: list[weakref.ref[Tensor]] = []
    is_to_fail = [True]

    def make(x: Tensor) -> Tensor:
        result = x + 1
        made.append(weakref.ref(result))
        return result

    def may_fail() -> None:
        if is_to_fail[0]:
            raise ValueError("not this time")

    flat = run("x, = inputs\na = make(x)\nmay_fail()\nreturn [a]", {**SCOPE, "make": make, "may_fail": may_fail})
    for call in (lambda: flat.direct(X), lambda: flat([X])):
        with pytest.raises(ValueError, match="not this time"):
            call()
        assert torch.is_grad_enabled()
    gc.collect()
    assert [reference() for reference in made] == [None, None]
    is_to_fail[0] = False
    torch.testing.assert_close(flat.direct(X), [X + 1])


def test_a_result_of_another_length_is_refused() -> None:
    flat = run("x, = inputs\na, b, c = library['both'](x)\nreturn [a]")
    with pytest.raises(ValueError, match="3 results"):
        flat.direct(X)


def test_inputs_are_counted() -> None:
    flat = run(SUM)
    for call in (lambda: flat.direct(X), lambda: flat([X, Y, Y]), lambda: flat([]), lambda: flat([X] * 1000)):
        with pytest.raises(TypeError, match="takes 2 inputs"):
            call()
    with pytest.raises((TypeError, SystemError)):
        flat.boxed((X, Y))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "body",
    [
        "x, = inputs\ns0 = x.shape[0]\nreturn [x, s0]",
        "x, s0 = inputs\na = empty((s0,), (1,), torch.float32)\nreturn [a]",
        "x, = inputs\nreturn [torch.conj(x).real]",
        "x, = inputs\nif not x: raise RuntimeError('no')\nreturn [x]",
    ],
)
def test_other_text_is_left_to_python(body: str) -> None:
    assert flat_of(body) is None


def test_calls_of_several_threads_do_not_meet() -> None:
    flat = run(SUM)
    numbers = [torch.full((2, 3), float(n)) for n in range(40)]
    with ThreadPoolExecutor(4) as pool:
        results = list(pool.map(lambda x: [flat.direct(x, Y)[0] for _ in range(20)][-1], numbers))
    torch.testing.assert_close(results, [x + 1 for x in numbers])


def test_on_another_device_it_is_called_as_python_calls_it(monkeypatch: pytest.MonkeyPatch) -> None:
    current = [1]

    @ctypes.CFUNCTYPE(ctypes.c_int, ctypes.POINTER(ctypes.c_int))
    def get_device(device: Any) -> int:
        device[0] = current[0]
        return 0

    monkeypatch.setattr(launcher, "cuda_driver", lambda: SimpleNamespace(cuCtxGetDevice=get_device))
    text = "def call(inputs):\n    x, = inputs\n    x = torch.abs(x)\n    return [x, 1]\n"
    elsewhere: list[Any] = []

    def call_there(inputs: list[Any]) -> list[Any]:
        elsewhere.append((*inputs, torch.is_grad_enabled()))
        return ["elsewhere"]

    flat = flat_call(text, SCOPE, (), call_there, 1)
    assert flat is not None
    assert flat.direct(X)[1] == 1 and not elsewhere
    current[0] = 0
    assert flat.direct(X) == ["elsewhere"] == flat([X])
    assert [(x is X, with_gradients) for x, with_gradients in elsewhere] == [(True, False), (True, False)]
