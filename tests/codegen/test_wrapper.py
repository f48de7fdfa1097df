"""What a graph gives in another shape than it computes it in: a tensor of its own, or one that shares what it must."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import torch
from torch import Tensor

from compiler.codegen.wrapper import call_text, render_wrapper
from compiler.compile import Target, lower, plan
from compiler.devices import device_for
from compiler.ir.nodes import ExternNode, Layout, LoopGraph, TensorArgument
from compiler.options import Options
from compiler.runtime.executable import aligned, build_executable
from compiler.schedule.memory.plan import MemoryPlan
from compiler.schedule.scheduler import Schedule
from tests.compile_program import capture_graph

CPU = torch.device("cpu")


def planned(function: Callable[..., object], *inputs: Tensor) -> tuple[Schedule, MemoryPlan]:
    """Of library calls alone, which need no kernel to be compiled."""
    compilation = plan(lower(capture_graph(function, *inputs), Target(CPU, device_for(CPU), Options())))
    assert not compilation.groups
    return compilation.schedule, compilation.memory


def outputs_of(function: Callable[..., object], *inputs: Tensor) -> list[Tensor]:
    schedule, memory = planned(function, *inputs)
    return build_executable(schedule, render_wrapper(schedule, memory, {}), {}, CPU).call(list(inputs))


def test_what_nobody_else_has_is_no_view() -> None:
    x = torch.randn(4, 4)
    (flat,) = outputs_of(lambda x: (x @ x).reshape(2, 8), x)
    torch.testing.assert_close(flat, (x @ x).reshape(2, 8))
    assert not flat._is_view()


def test_what_is_given_twice_knows_of_changes() -> None:
    x = torch.randn(4, 4)
    whole, flat = outputs_of(lambda x: ((product := x @ x), product.reshape(2, 8)), x)
    before = whole._version
    flat.zero_()
    assert not whole.any() and whole._version > before


def test_a_view_of_an_input_knows_of_changes() -> None:
    x = torch.randn(4, 4)
    (turned,) = outputs_of(lambda x: x.t(), x)
    before = x._version
    turned.zero_()
    assert not x.any() and x._version > before


def test_what_nobody_reads_may_lie_as_it_likes() -> None:
    """Of a call's results, only those that are read are looked at."""
    x = torch.randn(4, 4)
    (values,) = outputs_of(lambda x: x.topk(2).values, x)
    torch.testing.assert_close(values, x.topk(2).values)


def test_on_a_gpu_a_product_is_launched_into_memory_that_the_wrapper_makes() -> None:
    x, bias = torch.randn(4, 4), torch.randn(4)
    schedule, memory = planned(lambda x, bias: torch.addmm(bias, x @ x, x.t()), x, bias)
    text = render_wrapper(schedule, memory, {}, torch.device("cuda"))
    assert "library_mm(x, x, mm)" in text and "library_addmm(bias, mm, x, addmm)" in text
    assert text.count("empty((4, 4), (4, 1), torch.float32)") == 2 and "torch.mm" not in text


def test_attention_gets_rows_that_begin_with_whole_vectors() -> None:
    """What the caller gives may lie anywhere; of our own buffers that is known."""
    whole = Layout((1, 2, 8, 64), (1024, 64, 128, 1), torch.bfloat16)
    apart = Layout((1, 2, 8, 64), (1072, 67, 134, 1), torch.bfloat16)
    within = Layout((1, 2, 8, 64), (1024, 64, 128, 1), torch.bfloat16, 3)
    given = (("q", whole), ("ours", whole), ("ours", apart), ("ours", within))
    schedule, memory = planned(lambda x: x @ x, torch.randn(4, 4))
    for operator, copies in ((torch.ops.aten._scaled_dot_product_flash_attention.default, 3), (torch.ops.aten.cat, 0)):
        call = ExternNode("made", operator, tuple(TensorArgument(*one) for one in given), {}, (("made", whole),))
        graph = LoopGraph(nodes=[call], inputs=["q"], buffers={"q": whole, "ours": whole, "made": whole})
        text = render_wrapper(replace(schedule, graph=graph, units=(call,)), replace(memory, freed_after={}), {})
        assert text.count("aligned(") == copies and "aligned(" not in call_text(call, graph)


def test_a_copy_is_made_of_what_begins_within_a_vector_alone() -> None:
    x = torch.randn(2, 3, 5, 8)
    assert aligned(x) is x and aligned(one := x.transpose(1, 2)) is one
    for apart in (torch.randn(2, 3, 5, 11)[..., 1:9], torch.randn(241)[1:].view(2, 3, 5, 8)):
        copy = aligned(apart)
        assert copy.data_ptr() % 16 == 0 and copy.is_contiguous() and torch.equal(copy, apart)
