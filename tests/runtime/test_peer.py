"""What is told of TorchInductor: its launches, what each covers, and the text of it."""

from __future__ import annotations

import contextlib
import math
import os
import shutil
import time
from collections.abc import Callable

import pytest
import torch

from compiler.budget import UNLIMITED
from compiler.capture.captured import Capture, EntryCall
from compiler.options import Options, Timing
from compiler.peer import compare
from compiler.peer.apart import ends_a_process
from compiler.peer.errors import References, errors_of_calls
from compiler.peer.generated import generated_sources, library_calls, nodes_of_lines
from compiler.peer.inductor import ExploredPeer, Module, explore_peer
from compiler.peer.launches import Launch
from compiler.peer.our_terms import Translation
from compiler.pipeline import explore
from compiler.report import Contestant, Peer, TimingResult
from compiler.snippet_changes import NO_CHANGES

SNIPPET = """
def gate(x, w):
    hidden = torch.relu(x @ w)
    return torch.softmax(hidden * 2, -1)
"""


@pytest.mark.skipif(shutil.which("g++") is None, reason="TorchInductor needs a C++ compiler on a CPU")
def test_each_launch_has_its_source_origins_and_bytes(monkeypatch: pytest.MonkeyPatch) -> None:
    # The vector instructions are taken as they are: probing them compiles several programs.
    monkeypatch.setattr("torch._inductor.config.cpp.vec_isa_ok", True)
    scope = {"torch": torch}
    exec(compile(SNIPPET, "snippet.py", "exec"), scope)  # noqa: S102  # under the name that a snippet has
    gate = scope["gate"]
    x, w = torch.randn(32, 16), torch.randn(16, 64)
    compiled, peer = explore_peer(gate, (x, w), {}, torch.device("cpu"))  # type: ignore[arg-type]
    translation = Translation([], [])
    (module,) = peer.modules
    translation.add(module)
    product, softmax = translation.kernels
    assert (product.kind, product.form, product.fuses, product.user_lines) == ("extern", "library call", ["mm"], [3])
    assert "extern_kernels.mm(" in product.source
    assert product.bytes == 4 * (32 * 16 + 16 * 64 + 32 * 64)
    assert (softmax.kind, softmax.form) == ("cpp", "reduction")
    assert {"relu", "_softmax"} <= set(softmax.fuses)
    assert softmax.user_lines == [3, 4]
    assert softmax.bytes == 4 * 2 * 32 * 64
    assert "1 generated kernel and 1 library call in 1 graph" in peer.message
    torch.testing.assert_close(compiled(x, w), torch.softmax(torch.relu(x @ w) * 2, -1))


def test_sources_are_read_from_a_generated_module() -> None:
    text = "add_0 = async_compile.triton('add_0', '''\n@triton.jit\ndef add_0(): pass\n''', device_str='cuda')\n"
    assert generated_sources(text) == {"add_0": "@triton.jit\ndef add_0(): pass"}
    assert generated_sources("this is not Python") == {}


def test_library_calls_are_found_with_and_without_a_result() -> None:
    text = "    extern_kernels.mm(a, b, out=c)\n    buf0 = torch.ops.aten.sort.stable(c)\n    triton_0.run(c)\n"
    calls = library_calls(text)
    assert calls["extern_kernels.mm"] == ["extern_kernels.mm(a, b, out=c)"]
    assert calls["torch.ops.aten.sort.stable"] == ["buf0 = torch.ops.aten.sort.stable(c)"]


OPTIONS = Options(peer=True, peer_seconds=600, timing=Timing(min_runs=3))
WITHOUT_PEER = TimingResult(
    method="earlier",
    device="cpu",
    cold_l2=False,
    contestants=[
        Contestant(name="compiled", samples_ms=[1.0], median_ms=1.0, low_ms=1.0, high_ms=1.0, compile_s=0.5),
    ],
)


def captured(calls: int = 1) -> Capture:
    x = torch.linspace(-1, 1, 8)
    entries = [EntryCall("relu", torch.relu, torch.relu, (x,), {}, has_returned=True) for _ in range(calls)]
    return Capture(torch.device("cpu"), entries=entries)


def test_with_the_peer_all_three_are_timed_against_each_other(monkeypatch: pytest.MonkeyPatch) -> None:
    explored = ExploredPeer([Module([Launch("relu_0")])], message="one kernel", compile_s=1.5)
    monkeypatch.setattr(compare, "explore_peer", lambda function, *_, **__: (function, explored))
    compared = compare.compare_with_peer(captured(calls=2), OPTIONS, WITHOUT_PEER)
    timing = compared.timing
    assert len(compared.peer.kernels) == 2 and not compared.wrong
    assert timing is not None
    assert {one.name: one.compile_s for one in timing.contestants} == {"eager": None, "compiled": 0.5, "peer": 3.0}
    assert {len(one.samples_ms) for one in timing.contestants} == {3}


def test_a_peer_that_fails_says_so_and_earlier_times_stay(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object, **__: object) -> object:
        raise RuntimeError("no C++ compiler")

    monkeypatch.setattr(compare, "explore_peer", fail)
    compared = compare.compare_with_peer(captured(), OPTIONS, WITHOUT_PEER)
    assert compared.peer.message == "TorchInductor failed on relu: RuntimeError: no C++ compiler"
    assert compared.timing is WITHOUT_PEER


SPOILED: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {
    "scaled": lambda x: 1.01 * torch.relu(x),
    "NaN": lambda x: torch.relu(x).where(x != x[0], math.nan),
    "another dtype": lambda x: torch.relu(x).double(),
    "another shape": lambda x: torch.relu(x)[:4],
}


@pytest.mark.parametrize("how", SPOILED)
def test_a_peer_whose_result_is_wrong_has_no_time(monkeypatch: pytest.MonkeyPatch, how: str) -> None:
    explored = ExploredPeer([Module([Launch("relu_0")])], message="one kernel")
    monkeypatch.setattr(compare, "explore_peer", lambda *_, **__: (SPOILED[how], explored))
    compared = compare.compare_with_peer(captured(), OPTIONS, WITHOUT_PEER)
    (wrong,) = compared.wrong
    assert (wrong.contestant, wrong.entry, wrong.output) == ("peer", "relu", "the result")
    assert wrong.message.startswith("The result of relu, compiled by TorchInductor, ")
    assert (wrong.error is not None) == (how == "scaled")
    assert compared.timing is WITHOUT_PEER and len(compared.peer.kernels) == 1


def test_a_wrong_compiled_result_is_not_raced_against_the_peer(monkeypatch: pytest.MonkeyPatch) -> None:
    explored = ExploredPeer(message="no kernel")
    monkeypatch.setattr(compare, "explore_peer", lambda function, *_, **__: (function, explored))
    timing = compare.compare_with_peer(captured(), OPTIONS, WITHOUT_PEER, is_compiled_wrong=True).timing
    assert timing is not None and [one.name for one in timing.contestants] == ["eager", "peer"]


LOOPED = """
def triton_red_fused_exp_sum_0(in_ptr0, out_ptr0, out_ptr1, xnumel):
    for offset in range(0, rnumel, RBLOCK):
        tmp0 = tl.load(in_ptr0 + (r0))
        tmp1 = tl_math.exp(tmp0)
        tmp2 = tmp1 * 2.0
        _tmp3 = tl.where(mask, _tmp3 + tmp1, _tmp3)
        tl.store(out_ptr0 + (r0), tmp2, mask)
    tmp3 = tl.sum(_tmp3, 1)[:, None]
    tl.store(out_ptr1 + (x0), tmp3, mask)
"""


def test_a_line_belongs_to_the_nodes_of_what_is_stored_in_the_end() -> None:
    pointers = {"in_ptr0": ["arg0_1"], "out_ptr0": ["buf0"], "out_ptr1": ["buf1"]}
    lines = nodes_of_lines(LOOPED.lstrip(), pointers, {"buf0": ["exp", "mul"], "buf1": ["exp", "sum_1"]})
    assert set(lines[3]) == {"exp", "mul", "sum_1"}
    assert lines[4] == ["exp"], "a line that calls exp is that node's"
    assert set(lines[5]) == {"exp", "mul"}
    assert set(lines[6]) == {"exp", "sum_1"}
    assert lines[8] == ["sum_1"]
    assert 1 not in lines and 2 not in lines


def test_others_are_timed_by_name_and_who_fails_says_why() -> None:
    options = OPTIONS.model_copy(update={"peer": False, "contestants": ("aot_eager", "nobody", "eager", "tvm")})
    compared = compare.compare_with_peer(captured(), options, WITHOUT_PEER)
    assert compared.timing is not None and not compared.wrong
    assert [one.name for one in compared.timing.contestants] == ["eager", "compiled", "aot_eager"]
    rows = {row.name: row for row in compared.peer.contestants}
    assert rows["aot_eager"].median_ms and rows["aot_eager"].max_error is not None and not rows["aot_eager"].failure
    assert compared.peer.message == "It was not asked."
    assert (rows["nobody"].failure or "").startswith("There is no contestant nobody; there are aot_eager, cudagraphs")
    assert (rows["tvm"].failure or "").startswith("tvm failed on relu: ") and rows["tvm"].median_ms is None


@pytest.mark.parametrize("name", ["peer", "counting"])
def test_a_module_of_torch_is_compiled_by_whoever_is_timed(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Dynamo passes over torch's own files: of a call of `nn.Sequential` it would compile nothing."""
    graphs: list[torch.fx.GraphModule] = []

    def counting(graph: torch.fx.GraphModule, inputs: list[torch.Tensor]) -> Callable[..., object]:
        graphs.append(graph)
        return graph.forward

    def make(function: Callable[..., object], *_: object) -> Callable[..., object]:
        return torch.compile(function, backend=counting)

    monkeypatch.setattr("compiler.peer.inductor.compile_with_inductor", make)
    monkeypatch.setattr(compare, "maker_of", lambda _: make)
    source = (
        "import torch\nnet = torch.compile(torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.ReLU()))\n"
        "with torch.no_grad():\n    net(torch.ones(2, 4))\n"
    )
    chosen = {"peer": True} if name == "peer" else {"peer": False, "contestants": (name,)}
    report = explore(source, Options(device="cpu", timing=Timing(min_runs=3), peer_seconds=600, **chosen))
    assert report.error is None and len(graphs) == 1
    assert report.timing is not None and name in {one.name for one in report.timing.contestants}


@pytest.mark.parametrize(
    ("does", "told"),
    [(lambda _: os.abort(), "ends the process: Aborted"), (lambda _: os._exit(7), "with exit code 7")],
)
def test_who_would_end_the_process_costs_only_itself(
    monkeypatch: pytest.MonkeyPatch, does: Callable[[torch.Tensor], object], told: str
) -> None:
    monkeypatch.setattr(compare, "maker_of", lambda name: lambda function: does if name == "tvm" else function)
    options = OPTIONS.model_copy(update={"peer": False, "contestants": ("tvm", "aot_eager")})
    published: list[Peer] = []
    compared = compare.compare_with_peer(
        captured(), options, WITHOUT_PEER, publish=lambda peer, _: published.append(peer)
    )
    rows = {row.name: row for row in compared.peer.contestants}
    assert told in (rows["tvm"].failure or "")
    assert rows["aot_eager"].median_ms and not rows["aot_eager"].failure
    assert published[0].contestants[-1].failure == "tvm was started, and has not returned."


class Ended(BaseException):
    """Of the process."""


def test_on_a_gpu_who_may_end_the_process_is_asked_when_all_others_are_timed(monkeypatch: pytest.MonkeyPatch) -> None:
    def ends(_: torch.Tensor) -> object:
        raise Ended

    monkeypatch.setattr(compare, "_is_unguarded", lambda name, _: name == "tvm")
    monkeypatch.setattr(compare, "ends_a_process", lambda *_: None)
    monkeypatch.setattr(compare, "maker_of", lambda name: lambda function: ends if name == "tvm" else function)
    options = OPTIONS.model_copy(update={"peer": False, "contestants": ("tvm", "inductor-default")})
    published: list[tuple[Peer, TimingResult | None]] = []
    with pytest.raises(Ended):
        compare.compare_with_peer(captured(), options, WITHOUT_PEER, publish=lambda *so_far: published.append(so_far))
    peer, timing = published[-1]
    assert timing is not None and [one.name for one in timing.contestants] == ["eager", "compiled", "inductor-default"]
    assert peer.contestants[-1].failure == "tvm was started, and has not returned."
    assert {row.name: row.median_ms is not None for row in peer.contestants}["inductor-default"]


def test_who_never_returns_is_left() -> None:
    def never() -> None:
        while True:
            with contextlib.suppress(BaseException):  # as native code, which nothing of Python's interrupts
                time.sleep(1)

    assert (ends_a_process(never, 0.2) or "").startswith("did not return within 0.2 s")


def test_errors_are_of_several_seeds_and_what_strays_for_one_is_told() -> None:
    x = torch.linspace(-1, 1, 8)

    def strays(given: torch.Tensor) -> torch.Tensor:
        return 1.0000001 * torch.relu(given) if torch.equal(given, x) else torch.relu(given) + math.inf

    references = References(captured(), NO_CHANGES)
    functions: dict[str, list[Callable[..., object]]] = {"peer": [torch.relu], "other": [strays]}
    rows, told = errors_of_calls(references, functions, seed=5, budget=UNLIMITED)
    assert [row.seed for row in rows] == [5, 6, 7] and "3 seeds: 5, the snippet's own inputs, and 6 and 7" in told
    own, drawn, _ = ({one.contestant: one for one in row.of} for row in rows)
    assert list(own) == list(drawn) == ["eager", "compiled", "peer", "other"]
    ulps = [one.errors.largest_ulp for one in own.values() if one.errors and not one.problem]
    assert ulps[:3] == [0, 0, 0] and 0 < ulps[3] <= 2
    assert drawn["other"].errors is None
    assert "infinite where eager's and float64's are not" in (drawn["other"].problem or "")
