"""Kernels that are compiled at the same time: when each is begun, by whom, and who waits for it; on pretended kernels
and helpers."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from torch import Tensor

from compiler import compile
from compiler.codegen.rendered import RenderedKernel
from compiler.compile import Generated, compile_graph
from compiler.devices import device_for
from compiler.options import Options
from compiler.runtime.triton import graph_launchers, preparing
from compiler.runtime.triton import setup as triton_setup
from compiler.runtime.triton.graph_launchers import GraphLaunchers, work_of_compiling
from compiler.runtime.triton.preparing import Preparation, prepare_all
from tests.compile_program import capture_graph

SECONDS = 300


class PretendedHelper:
    """Is there once it `has_begun`."""

    def __init__(self) -> None:
        self.has_begun = threading.Event()

    @contextmanager
    def asked(self, is_wanted: Callable[[], bool]) -> Iterator[bool]:
        while is_wanted() and not self.has_begun.wait(0.01):
            pass
        yield self.has_begun.is_set()


@pytest.fixture(autouse=True)
def helpers(monkeypatch: pytest.MonkeyPatch) -> list[PretendedHelper]:
    """None, until a test adds one."""
    found: list[PretendedHelper] = []
    monkeypatch.setattr(preparing, "helpers", lambda: found)
    monkeypatch.setattr(triton_setup, "_set_up", lambda: None)
    return found


def begun(helpers: list[PretendedHelper], count: int) -> None:
    for _ in range(count):
        helpers.append(PretendedHelper())
        helpers[-1].has_begun.set()


def test_kernels_are_compiled_together_once_triton_is_set_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(preparing, "usable_cores", lambda: 3)
    is_set_up = threading.Event()
    monkeypatch.setattr(triton_setup, "_thread", None)

    def set_up() -> None:
        is_set_up.wait(0.05)
        is_set_up.set()

    monkeypatch.setattr(triton_setup, "_set_up", set_up)
    together = threading.Barrier(3, timeout=SECONDS)
    done: list[tuple[str, bool]] = []

    def prepare(name: str) -> None:
        done.append((name, is_set_up.is_set()))
        together.wait()

    prepare_all([partial(prepare, name) for name in ("first", "second", "third")])
    assert sorted(done) == [("first", True), ("second", True), ("third", True)]


def test_each_of_more_kernels_than_threads_is_compiled_once(
    helpers: list[PretendedHelper], monkeypatch: pytest.MonkeyPatch
) -> None:
    done: list[int] = []
    for cores in (1, 2, 8):
        monkeypatch.setattr(preparing, "usable_cores", lambda cores=cores: cores)
        for _ in range(2):
            prepare_all([partial(done.append, number) for number in range(20)])
            begun(helpers, 2)
    assert sorted(done) == sorted([*range(20)] * 6)
    prepare_all([])


def test_a_kernel_that_fails_stops_no_other(helpers: list[PretendedHelper]) -> None:
    def fail() -> None:
        raise ValueError("no such instruction")

    done: list[int] = []
    for count in (0, 2):
        begun(helpers, count)
        prepare_all([fail, partial(done.append, 1), fail, partial(done.append, 2)])
    assert sorted(done) == [1, 1, 2, 2]


def test_what_a_helper_compiles_is_begun_as_it_is_added(helpers: list[PretendedHelper]) -> None:
    """Before anybody waits for it, and before there is more."""
    begun(helpers, 1)
    preparation = Preparation()
    done: list[str] = []

    def prepare(name: str, is_done: threading.Event) -> None:
        done.append(name)
        is_done.set()

    for name in ("first", "second"):
        is_done = threading.Event()
        preparation.add(partial(prepare, name, is_done))
        assert is_done.wait(SECONDS)
    assert preparation.is_begun
    preparation.finish()
    assert done == ["first", "second"]


def test_without_helpers_nothing_is_compiled_before_it_is_waited_for() -> None:
    preparation = Preparation()
    done: list[int] = []
    preparation.add(lambda: done.append(1))
    assert not preparation.is_begun and not done
    preparation.finish()
    assert done == [1]


def test_a_helper_that_never_begins_leaves_all_to_this_process(helpers: list[PretendedHelper]) -> None:
    helpers.append(PretendedHelper())
    done: list[int] = []
    prepare_all([partial(done.append, number) for number in range(8)])
    assert sorted(done) == [*range(8)]


def hold(is_held: threading.Event, may_go: threading.Event) -> None:
    """Keeps the thread that prepares."""
    is_held.set()
    may_go.wait(SECONDS)


def test_of_what_waits_the_longest_is_begun_first(helpers: list[PretendedHelper]) -> None:
    begun(helpers, 1)
    preparation = Preparation()
    is_held, may_go = threading.Event(), threading.Event()
    preparation.add(partial(hold, is_held, may_go))
    assert is_held.wait(SECONDS)
    done: list[int] = []
    for work in (3, 1, 7, 5):
        preparation.add(partial(done.append, work), work)
    may_go.set()
    preparation.finish()
    assert done == [7, 5, 3, 1]


def test_what_is_abandoned_is_not_begun_and_keeps_no_thread(helpers: list[PretendedHelper]) -> None:
    begun(helpers, 1)
    before = threading.active_count()
    preparation = Preparation()
    is_held, may_go = threading.Event(), threading.Event()
    preparation.add(partial(hold, is_held, may_go))
    assert is_held.wait(SECONDS)
    done: list[int] = []
    preparation.add(partial(done.append, 1))
    preparation.abandon()
    may_go.set()
    preparation.finish()
    assert not done and threading.active_count() == before


class PretendedLauncher:
    def __init__(self, kernel: RenderedKernel) -> None:
        self.form = (kernel.source,)
        self.kernel = kernel
        self.before_first: Callable[[], None] | None = None
        self.prepared: list[tuple[list[torch.dtype], int]] = []

    def prepare_for(self, dtypes: list[torch.dtype], device: int) -> None:
        if self.kernel.source == "wrong":
            raise ValueError("no such instruction")
        self.prepared.append((dtypes, device))


def launchers_of(texts: Mapping[str, str], monkeypatch: pytest.MonkeyPatch) -> GraphLaunchers:
    monkeypatch.setattr(graph_launchers, "TritonLauncher", PretendedLauncher)
    made = GraphLaunchers({"x": torch.float16}, 1)
    for name, text in texts.items():
        made.add(RenderedKernel(name, "triton", text, ("x",), (), {}, grid=0 if text == "nothing to do" else 8))
    return made


TEXTS = {"a": "some", "b": "other", "equal": "some", "empty": "nothing to do", "fails": "wrong", "fails too": "wrong"}


@pytest.mark.parametrize("count", [0, 1, 3])
def test_every_kernel_of_a_graph_is_there_when_it_is_launched(
    helpers: list[PretendedHelper], count: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun(helpers, count)
    made = launchers_of(TEXTS, monkeypatch)
    launchers: Mapping[str, Any] = made.all(may_be_late=True)
    first = launchers["a"].before_first
    assert (first is None) == (count == 0)
    if first is not None:
        first()
    expected = [([torch.float16], 1)]
    assert {name: launcher.prepared for name, launcher in launchers.items()} == {
        "a": expected, "b": expected, "equal": expected, "empty": [], "fails": [], "fails too": [],
    }  # fmt: skip


def test_equal_kernels_hold_up_no_helper(helpers: list[PretendedHelper], monkeypatch: pytest.MonkeyPatch) -> None:
    """They would wait for the first of them, while others could be compiled."""
    begun(helpers, 2)
    may_go, other = threading.Event(), threading.Event()

    def prepare_for(self: PretendedLauncher, *_: object) -> None:
        if self.kernel.source == "some":
            assert may_go.wait(SECONDS)
        else:
            other.set()

    monkeypatch.setattr(PretendedLauncher, "prepare_for", prepare_for)
    made = launchers_of({"a": "some", "equal": "some", "b": "other"}, monkeypatch)
    assert other.wait(SECONDS)
    may_go.set()
    made.all(may_be_late=False)


class Added:
    """Takes note of what is done with launchers, which are never made."""

    def __init__(self) -> None:
        self.done: list[str] = []
        self._by_name: dict[str, RenderedKernel] = {}

    def add(self, kernel: RenderedKernel) -> None:
        self.done.append("product" if "tl.dot(" in kernel.source else "other")
        self._by_name[kernel.name] = kernel

    def all(self, may_be_late: bool) -> Mapping[str, RenderedKernel]:
        self.done.append("late" if may_be_late else "waited for")
        return self._by_name

    def abandon(self) -> None:
        self.done.append("abandoned")


def gated(x: Tensor, gate: Tensor, up: Tensor) -> Tensor:
    normal = x - x.mean(1, True)
    return torch.softmax(torch.nn.functional.silu(normal @ gate) * (normal @ up), 1)


@pytest.fixture
def added(monkeypatch: pytest.MonkeyPatch) -> Added:
    made = Added()
    monkeypatch.setattr(compile, "_no_launchers", lambda _: made)
    monkeypatch.setattr(compile, "device_for", lambda _: device_for("sm_90"))
    return made


@pytest.fixture
def nothing_but_launchers(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of what is built."""

    def build(generated: Generated, phase: str, launchers: GraphLaunchers) -> Any:
        compile._on_gpu(generated, launchers)
        return SimpleNamespace(implementation=None)

    monkeypatch.setattr(compile, "build", build)


def graph(function: Callable[..., Tensor] = gated) -> torch.fx.GraphModule:
    return capture_graph(function, *(torch.ones(512, 512, dtype=torch.bfloat16) for _ in range(3)))


@pytest.mark.usefixtures("nothing_but_launchers")
def test_a_graphs_kernels_are_added_as_they_are_rendered_products_first(added: Added) -> None:
    compile_graph(graph(), Options(), torch.device("cuda"))
    assert added.done == ["product", "other", "other", "late"]


@torch.library.custom_op("test_preparing::of_a_user", mutates_args=())
def of_a_user(x: Tensor) -> Tensor:
    return x.clone()


@of_a_user.register_fake
def _(x: Tensor) -> Tensor:
    return torch.empty_like(x)


@pytest.mark.usefixtures("nothing_but_launchers")
def test_kernels_around_an_operator_of_the_users_are_waited_for(added: Added) -> None:
    """It may compile kernels of its own, which are not to be compiled as ours are."""
    compile_graph(graph(lambda x, gate, up: gated(of_a_user(x), gate, up)), Options(), torch.device("cuda"))
    assert added.done[-1] == "waited for"


def test_a_graph_that_is_not_compiled_to_its_end_leaves_no_kernels(
    added: Added, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> None:
        raise OSError("no space left on device")

    monkeypatch.setattr(compile, "build", fail)
    with pytest.raises(OSError, match="no space left"):
        compile_graph(graph(), Options(), torch.device("cuda"))
    assert added.done[-1] == "abandoned"


def test_kernels_that_take_longest_are_begun_first() -> None:
    """Those that multiply tiles, and those with much text."""
    texts = {"short": "x", "long": "x" * 100, "product": "tl.dot(x, y)" + "x" * 40}
    kernels = [RenderedKernel(name, "triton", text, (), (), {}) for name, text in texts.items()]
    assert [kernel.name for kernel in sorted(kernels, key=work_of_compiling, reverse=True)] == [
        "product", "long", "short"
    ]  # fmt: skip
