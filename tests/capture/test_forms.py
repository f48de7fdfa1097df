"""The forms that a snippet may have beyond the examples, and the options that change what is explored."""

from __future__ import annotations

import ast

import pytest
import torch
from torch.torch_version import TorchVersion

from compiler.capture import reference_run
from compiler.capture.program.device import makes_tensors_in_functions
from compiler.capture.program.top_level_calls import top_level_calls
from tests.capture.programs import captured_source, targets

MODULE = """
import torch
class Block(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(48, 8)
    def forward(self, x):
        return torch.relu(self.layer(x))
"""


def test_annotations_describe_inputs_and_need_not_be_names() -> None:
    capture = captured_source(
        'import torch\ndef f(x: f32[8, 16], y: "bf16[16]", n: int = 3) -> f32[8, 16]:\n    return x * y + n\n'
    )
    assert capture.error is None and not capture.notes
    assert [(tuple(value.shape), value.dtype) for value in capture.entries[0].args] == [
        ((8, 16), torch.float32), ((16,), torch.bfloat16)
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("setting", "unknown"),
    [
        ("backend='nothing'", "PyTorch knows no backend 'nothing' here"),
        ("mode='fast'", "PyTorch knows no mode 'fast' here"),
        (
            "options={'epilogue_fusion': True, 'fast': True}",
            "PyTorch does not take these options (unexpected optimization option fast)",
        ),
        (
            "options={'epilogue_fusion': 'yes'}",
            "PyTorch does not take these options (unexpected type of attr epilogue_fusion, got str should be bool)",
        ),
        ("mode='default', options={}", "PyTorch takes either a mode or options, and here both are given"),
        *((known, None) for known in ("backend='aot_ts'", "backend='eager', mode=None", "mode='max-autotune'")),
        ("options={'epilogue-fusion': True}", None),
        ("backend='aot_eager', options={'fast': True}", None),
    ],
)
def test_what_torch_compile_would_refuse_is_explored_and_said(setting: str, unknown: str | None) -> None:
    source = f"import torch\n@torch.compile({setting})\ndef f(x):\n    return x.sin()\nf(torch.ones(3))\n"
    capture = captured_source(source)
    assert targets(capture.graphs[0]) == ["aten.sin.default"]
    said = [note.message for note in capture.notes]
    assert said == (
        [f"{unknown}, so torch.compile would fail. The function was explored all the same."] if unknown else []
    )


def test_request_gives_inputs_and_names_the_entry() -> None:
    source = "import torch\ndef g(x):\n    return x.sin()\ndef f(x):\n    return x.cos()\n"
    capture = captured_source(source, entry="g", inputs=[{"shape": [3, 5], "dtype": "float64"}])
    assert targets(capture.graphs[0]) == ["aten.sin.default"]
    assert capture.entries[0].args[0].dtype == torch.float64


@pytest.mark.parametrize("body", ["async def f(x):\n    return x.sin()\n", "def f(x):\n    yield x.sin()\n"])
def test_what_computes_nothing_when_it_is_called_is_no_entry(body: str) -> None:
    error = captured_source("import torch\n" + body, entry="f", inputs=[{"shape": [3]}]).error
    assert error is not None and "A call of f computes nothing" in error.message


def test_coroutines_are_told_to_be_left_out() -> None:
    source = "import asyncio, torch\nasync def main():\n    return torch.ones(3).sin()\nasyncio.run(main())\n"
    error = captured_source(source).error
    assert error is not None and "coroutines alone" in error.message


def test_called_function_is_explored_on_what_it_was_called_with() -> None:
    capture = captured_source(
        "import torch\ndef g(x):\n    return x.sin()\ndef f(x, y):\n    return x.cos() * y\n"
        "def unused(x):\n    return x\nz = f(torch.ones(3), y=torch.ones(2, 3))\n"
    )
    assert capture.graphs[0].function == "f"
    assert capture.entries[0].kwargs["y"].shape == (2, 3) and capture.graphs[0].phase == "inference"


@pytest.mark.parametrize(
    ("arguments", "body"),
    [
        ("{'x': torch.ones(4), 'y': torch.ones(4)}", "a['x'].sin() + a['y']"),
        ("[torch.ones(3), torch.ones(3)]", "a[0].sin() + a[1]"),
        ("5", "torch.arange(a) * 2.0"),
    ],
)
def test_a_call_counts_wherever_its_tensors_are(arguments: str, body: str) -> None:
    capture = captured_source(f"import torch\ndef f(a):\n    return {body}\nf({arguments})\n")
    assert capture.error is None and not capture.notes
    assert repr(capture.entries[0].args) == repr((eval(arguments, {"torch": torch}),))


TIMED = """
import time, torch
def f(x, *more, scale=1.0):
    return torch.softmax(x * scale, -1)
class Block(torch.nn.Module):
    def forward(self, x, scale=1.0):
        return torch.softmax(x * scale, -1)
def bench(called, *args, **kwargs):
    start = time.perf_counter()
    for _ in range(3):
        result = called(*args, **kwargs)
    print(result.mean())
    return time.perf_counter() - start
def applied(called, x):
    return called(x) + 1
x = torch.randn(8, 16)
"""


@pytest.mark.parametrize(
    ("call", "name"),
    [
        ("bench(f, x)", "f"),
        ("bench(f, x, 1, scale=2.0)", "f"),
        ("bench(called=f, x=x)", "f"),
        ("f(x); bench(f, x)", "f"),
        ("print(applied(f, x)); bench(f, x)", "f"),
        ("bench(Block(), x, scale=2.0)", "Block"),
    ],
)
def test_what_a_benchmark_times_is_explored(call: str, name: str) -> None:
    capture = captured_source(f"{TIMED}{call}\n")
    assert capture.error is None and [entry.name for entry in capture.entries] == [name]
    assert capture.entries[0].args[0].shape == (8, 16) and not capture.breaks
    assert "aten.amax.default" in targets(capture.graphs[0])


@pytest.mark.parametrize("call", ["applied(f, x)", "f(x); print(applied(f, x))", "applied(lambda x: f(x), x)"])
def test_what_a_function_makes_of_another_is_explored_with_it(call: str) -> None:
    capture = captured_source(f"{TIMED}{call}\n")
    assert [entry.name for entry in capture.entries] == ["applied"]


def test_calls_that_are_left_out_are_told() -> None:
    source = (
        "import torch\ndef g(x):\n    return x.sin()\ndef f(x, is_wide=False):\n    return x.cos()\ng(torch.ones(3))\n"
    )
    alike = captured_source(source + "for i in range(3):\n    f(torch.ones(3) * i)\n")
    others = captured_source(source + "for i in range(1, 4):\n    f(torch.ones(i))\nf(torch.ones(3), is_wide=True)\n")
    only_f = (
        "The snippet calls g and f. Only f was explored, the last of them: torch.compile in the code chooses others."
    )
    assert [note.message for note in alike.notes] == [only_f]
    assert [note.message for note in others.notes] == [
        only_f,
        "The snippet calls f with 4 kinds of arguments: they differ in shape, dtype or a switch. Only its first call "
        "was explored: with torch.compile(f) in the code, all are.",
    ]
    assert others.entries[0].args[0].shape == (1,)


def test_what_main_calls_is_explored() -> None:
    capture = captured_source(
        "import torch\ndef step(x):\n    return x.sin()\ndef main():\n    print(step(torch.ones(4, 8)).shape)\n"
        "if __name__ == '__main__':\n    main()\n"
    )
    assert capture.error is None and not capture.notes
    assert capture.graphs[0].function == "step" and capture.entries[0].args[0].shape == (4, 8)


@pytest.mark.parametrize("line", ["import re; pattern = re.compile('a')", "torch._dynamo.reset()"])
def test_a_call_counts_beside_words_of_compiling(line: str) -> None:
    capture = captured_source(
        f"import torch\n{line}\ndef f(x):\n    return x.sin()\n"
        "def make(i):\n    return torch.ones((4, 8)[i])\nf(make(1))\n"
    )
    assert capture.error is None and capture.graphs[0].function == "f"
    assert capture.entries[0].args[0].shape == (8,)


_HOOKED = """import torch
w = torch.randn(8, 8, requires_grad=True)
{decorator}def f(x):
    h = (x @ w).sin()
    h.{asks}
    return h * 2
{call}f(torch.randn(4, 8))
"""


@pytest.mark.parametrize("asks", ["register_hook(lambda gradient: gradient * 2)", "retain_grad()"])
def test_a_called_function_that_asks_for_a_gradient_finds_one(asks: str) -> None:
    """Nobody runs backward, so it was explored without gradients, which both methods refuse."""
    capture = captured_source(_HOOKED.format(decorator="", asks=asks, call=""))
    assert capture.error is None and capture.graphs[0].phase == "forward"


@pytest.mark.skipif(TorchVersion(torch.__version__) < "2.12", reason="torch 2.11 compiles such a hook")
def test_what_fails_without_gradients_fails_so_without_compilation() -> None:
    asks = "register_hook(lambda gradient: gradient * 2)"
    source = _HOOKED.format(decorator="@torch.compile\n", asks=asks, call="with torch.no_grad():\n    ")
    error = captured_source(source).error
    assert error is not None and "cannot register a hook" in error.message
    assert "The same call without compilation succeeds" not in (error.hint or "")


def test_a_called_step_of_training_has_its_gradients() -> None:
    capture = captured_source(
        "import torch\nw = torch.ones(3, requires_grad=True)\ndef step(x):\n    loss = (w * x).square().sum()\n"
        "    loss.backward()\n    return loss.detach()\nstep(torch.ones(3))\n"
    )
    assert capture.error is None
    assert [graph.phase for graph in capture.graphs][:2] == ["forward", "backward"]


SIMULATION = """
import torch
class Meter:
    def update(self, value):
        self.value = value.detach()
class Simulation:
    def __init__(self):
        self.weight = torch.full((4,), 2.0)
        self.state = torch.ones(4)
    def step(self, x):
        return (x * self.weight).sin()
    def advance(self):
        self.state = self.state * 0.5
    def __call__(self, x):
        return x.cos()
    @staticmethod
    def norm(x):
        return x.square().sum()
simulation = Simulation()
"""


@pytest.mark.parametrize(
    ("calls", "name", "operators"),
    [
        ("x = simulation.step(torch.ones(4))", "Simulation.step", "mul sin"),
        ("x = simulation(torch.ones(4))", "Simulation", "cos"),
        ("x = Simulation.norm(torch.ones(4))", "norm", "pow sum"),
        ("simulation.advance()", "Simulation.advance", "mul"),
        ("if __name__ == '__main__':\n    for _ in range(3):\n        simulation.step(torch.ones(4))",
         "Simulation.step", "mul sin"),
    ],
)  # fmt: skip
def test_a_called_method_is_explored(calls: str, name: str, operators: str) -> None:
    capture = captured_source(SIMULATION + calls + "\n")
    assert capture.error is None and not capture.notes
    assert [entry.name for entry in capture.entries] == [name]
    assert [target.split(".")[1] for target in targets(capture.graphs[0])] == operators.split()


def test_the_arguments_of_what_is_compiled_are_not_kept_a_second_time() -> None:
    capture = captured_source("import torch\n@torch.compile\ndef f(x):\n    return x.sin()\nf(torch.ones(4))\n")
    assert [entry.name for entry in capture.entries] == ["f"]
    assert top_level_calls(capture.names).last_call() is None


@pytest.mark.parametrize("call", ["", "f(torch.ones(3, 5))\n"])
def test_a_decorated_function_is_one_of_the_snippets(call: str) -> None:
    capture = captured_source(f"import torch\n@torch.no_grad()\ndef f(x: f32[3, 5]):\n    return x.sin()\n{call}")
    assert capture.error is None and not capture.notes
    assert [entry.name for entry in capture.entries] == ["f"] and capture.entries[0].args[0].shape == (3, 5)


@pytest.mark.parametrize(
    ("call", "operators"),
    [
        ("functools.partial(f, 2.0)(torch.ones(4))", "mul sum"),
        ("torch.func.grad(f, 1)(2.0, torch.ones(4))", "mul sum full_like expand mul"),
        ("torch.vmap(f, (None, 0))(2.0, torch.ones(4, 3))", "mul sum"),
        ("torch.nn.ReLU()(torch.ones(4))", "relu"),
    ],
)
def test_what_a_call_makes_may_be_called(call: str, operators: str) -> None:
    capture = captured_source(f"import functools, torch\ndef f(scale, x):\n    return (x * scale).sum()\n{call}\n")
    assert capture.error is None and not capture.notes
    assert [target.split(".")[1] for target in targets(capture.graphs[0])] == operators.split()


def test_a_called_function_or_module_comes_before_a_method() -> None:
    capture = captured_source(
        SIMULATION + "model = torch.nn.Linear(4, 2)\ny = model(torch.ones(3, 4))\nMeter().update(y)\n"
    )
    assert [entry.name for entry in capture.entries] == ["Linear"]


def test_a_method_of_a_module_is_explored_as_it_was_called() -> None:
    source = MODULE.replace("def forward", "def loss") + "model = Block()\nloss = model.loss(torch.ones(7, 48))\n"
    capture = captured_source(source)
    assert capture.error is None and [entry.name for entry in capture.entries] == ["Block.loss"]
    assert capture.entries[0].args[0].shape == (7, 48)


@pytest.mark.parametrize(
    ("path", "call", "gradients"),
    [
        ("torch", "cond(x.sum() > 0, torch.sin, torch.cos, (x,))", False),
        ("torch._higher_order_ops.scan", "scan(lambda a, b: (a + b, a * b), x[0], x)[1]", True),
        ("torch._higher_order_ops.map", "map(lambda row: row.sin(), x)", True),
        ("torch.nn.attention.flex_attention", "flex_attention(*[x.view(1, 1, 4, 4)] * 3)", False),
    ],
    ids=["cond", "scan", "map", "flex_attention"],
)
@pytest.mark.filterwarnings("ignore:flex_attention called without")
def test_what_torch_compiles_for_itself_is_not_explored(path: str, call: str, gradients: bool) -> None:
    """Each of these calls torch.compile where it is called outside of a compiled function."""
    capture = captured_source(
        f"import torch\nfrom {path} import {call.partition('(')[0]}\n"
        f"def f(x):\n    y = {call}\n    return y.relu()\n"
        f"f(torch.ones(4, 4, requires_grad={gradients}))\n"
    )
    assert capture.error is None and not capture.notes
    assert [entry.name for entry in capture.entries] == ["f"] and "relu" in " ".join(targets(capture.graphs[0]))


@pytest.mark.parametrize("make", ["torch.fx.symbolic_trace(Block())", "torch.export.export(Block(), (x,)).module()"])
def test_a_module_that_torch_has_written_may_be_compiled(make: str) -> None:
    capture = captured_source(f"{MODULE}x = torch.randn(7, 48)\nmodel = {make}\nmodel.compile()\nmodel(x)\n")
    assert capture.error is None and not capture.notes and len(capture.graphs) == 1


SCALED = """
import torch
from torch.utils._pytree import tree_map_only
class Scaled(torch.Tensor):
    @staticmethod
    def __new__(cls, data, scale):
        return torch.Tensor._make_wrapper_subclass(cls, data.shape, dtype=scale.dtype)
    def __init__(self, data, scale):
        self.data_, self.scale = data, scale
    def __tensor_flatten__(self):
        return ["data_", "scale"], None
    @staticmethod
    def __tensor_unflatten__(parts, context, sizes, strides):
        return Scaled(parts["data_"], parts["scale"])
    @classmethod
    def __torch_dispatch__(cls, call, types, args=(), kwargs=None):
        args, kwargs = tree_map_only(Scaled, lambda x: x.data_ * x.scale, (args, kwargs or {}))
        return call(*args, **kwargs)
def f(x, y):
    return (x @ y).relu()
"""


@pytest.mark.skipif(TorchVersion(torch.__version__) < "2.12", reason="torch 2.11 asks its traced form for numbers")
def test_a_tensor_of_a_class_of_the_snippet_remains_one() -> None:
    """It has no memory of its own, what it gives is of another class, and its traced form has no numbers to print."""
    capture = captured_source(
        SCALED + "f(Scaled(torch.ones(4, 4, dtype=torch.int8), torch.full((), 0.5)), torch.ones(4, 4))\n"
    )
    assert capture.error is None and not capture.breaks and len(capture.graphs) == 1
    assert [type(value).__name__ for value in capture.entries[0].args] == ["Scaled", "Tensor"]
    assert [node.meta["val"].dtype for node in capture.graphs[0].aten.graph.find_nodes(op="placeholder")] == [
        torch.int8, torch.float32, torch.float32
    ]  # fmt: skip


def test_an_array_of_numpy_may_be_used() -> None:
    capture = captured_source(
        "import numpy, torch\na = numpy.array([1.0, 2.0, 3.0])\n@torch.compile\ndef f(x):\n"
        "    return x * torch.from_numpy(a).sum()\nf(torch.ones(4))\n"
    )
    assert capture.error is None and capture.entries[0].has_returned


def test_called_module_is_explored() -> None:
    capture = captured_source(MODULE + "model = Block()\nmodel(torch.randn(7, 48))\n")
    assert capture.error is None and capture.graphs[0].function == "Block"
    assert capture.entries[0].args[0].shape == (7, 48)


def test_lone_module_class_gets_what_its_first_layer_takes() -> None:
    capture = captured_source(MODULE)
    assert capture.error is None and capture.entries[0].args[0].shape == (128, 48)
    assert "float32 tensor of 128 x 48" in capture.notes[0].message


def test_module_compile_method_and_no_grad() -> None:
    capture = captured_source(
        MODULE + "model = Block()\nmodel.compile()\nwith torch.no_grad():\n    model(torch.randn(7, 48))\n"
    )
    assert capture.graphs[0].phase == "inference" and capture.graphs[0].function == "Block"
    entry = capture.entries[0]
    calls = capture.graphs[0].runner.calls
    assert not entry.compiled(*entry.args).requires_grad
    assert capture.graphs[0].runner.calls == calls + 1 and len(capture.graphs) == 1


def test_a_compiled_module_may_be_copied() -> None:
    capture = captured_source(
        MODULE + "import copy\nmodel = torch.compile(Block())\naverage = copy.deepcopy(model)\n"
        "x = torch.randn(2, 48)\nassert torch.equal(model(x), average(x))\n"
        "assert torch.equal(copy.deepcopy(model)(x), average(x))\n"
    )
    assert capture.error is None and capture.entries[0].name == "Block" and not capture.notes


def test_training_asks_for_the_backward_graph() -> None:
    capture = captured_source("import torch\ndef f(x: f32[4, 8]):\n    return torch.tanh(x) * 2\n", training=True)
    assert [graph.phase for graph in capture.graphs] == ["forward", "backward"]
    assert capture.graphs[1].inputs is not None


def test_no_training_leaves_the_backward_graph_out() -> None:
    source = MODULE + "model = torch.compile(Block())\nmodel(torch.randn(7, 48))\n"
    assert [graph.phase for graph in captured_source(source, training=False).graphs] == ["inference"]


def test_one_graph_serves_every_size_where_that_is_asked_for() -> None:
    capture = captured_source(
        "import torch\n@torch.compile(dynamic=True)\ndef f(x):\n    return x + x.shape[0]\n"
        "f(torch.ones(4))\nf(torch.ones(5))\n"
    )
    assert len(capture.graphs) == 1 and capture.recompiles == 0


def test_implementation_can_be_swapped() -> None:
    capture = captured_source("import torch\n@torch.compile\ndef f(x):\n    return x + 1\nf(torch.ones(4))\n")
    entry, graph = capture.entries[0], capture.graphs[0]
    graph.runner.implementation = lambda inputs: [inputs[0] * 10]
    assert entry.compiled(*entry.args).tolist() == [10.0] * 4
    assert entry.eager(*entry.args).tolist() == [2.0] * 4


def test_first_arguments_are_kept_from_change() -> None:
    capture = captured_source(
        "import torch\n@torch.compile\ndef f(x):\n    x.add_(1)\n    return x * 2\nf(torch.zeros(4))\n"
    )
    assert capture.entries[0].args[0].tolist() == [0.0] * 4
    assert capture.graphs[0].inputs is not None and capture.graphs[0].inputs[0].tolist() == [0.0] * 4


def test_strides_of_inputs_are_kept() -> None:
    capture = captured_source(
        "import torch\n@torch.compile\ndef f(x, y):\n    return x + y\n"
        "f(torch.randn(3, 4).t(), torch.randn(4, 1).expand(4, 3))\n"
    )
    assert [value.stride() for value in capture.graphs[0].inputs or []] == [(1, 4), (1, 0)]


def test_compiled_function_called_by_another_is_one_graph() -> None:
    capture = captured_source(
        "import torch\n@torch.compile\ndef g(x):\n    return x.sin()\n@torch.compile\ndef f(x):\n    return g(x) + 1\n"
        "f(torch.ones(4))\n"
    )
    assert targets(capture.graphs[0]) == ["aten.sin.default", "aten.add.Tensor"]
    assert len(capture.graphs) == 1
    assert [note.message for note in capture.notes] == [
        "g was compiled but never called on its own, so nothing of its own is shown."
    ]


def test_graphs_before_an_error_are_kept() -> None:
    capture = captured_source(
        "import torch\n@torch.compile\ndef f(x):\n    return x + 1\nf(torch.ones(4))\nraise ValueError('no more')\n"
    )
    assert len(capture.graphs) == 1
    assert capture.error is not None and (capture.error.message, capture.error.line) == ("no more", 6)


def test_nothing_to_explore_is_an_error_with_a_hint() -> None:
    error = captured_source("x = 1\n").error
    assert error is not None and error.type == "NothingToExplore" and error.hint


def test_output_holds_both_streams_and_descriptors_in_order() -> None:
    capture = captured_source(
        "import os, sys\nprint('one')\nos.write(1, b'two\\n')\nprint('three', file=sys.stderr)\n"
        "def f(x):\n    return x + 1\n"
    )
    assert capture.output == "one\ntwo\nthree\n"


def test_standard_output_takes_bytes_and_a_new_encoding() -> None:
    capture = captured_source(
        "import sys\nsys.stdout.reconfigure(encoding='utf-8')\nsys.stdout.buffer.write(b'one\\n')\nprint('two')\n"
        "def f(x):\n    return x + 1\n"
    )
    assert capture.error is None and capture.output == "one\ntwo\n"


@pytest.mark.parametrize("mark", ["\ufeff", "", "\n"])
@pytest.mark.parametrize("indentation", ["", "    ", "\t"])
def test_a_mark_or_an_indentation_of_all_lines_does_not_matter(mark: str, indentation: str) -> None:
    lines = ("import torch", "def f(x):", "    return x.sin()", "f(torch.ones(4))")
    capture = captured_source(mark + "".join(f"{indentation}{line}\n" for line in lines))
    assert capture.error is None and len(capture.graphs) == 1


def test_long_output_is_cut_with_a_sentence() -> None:
    output = captured_source("for i in range(100000):\n    print('line', i)\ndef f(x):\n    return x + 1\n").output
    assert len(output) < 66 * 1024 and output.endswith("only its first 64 KiB are kept.]\n")


def test_exit_with_zero_is_no_error() -> None:
    capture = captured_source("import sys, torch\ndef f(x):\n    return x + 1\nsys.exit()\n")
    assert capture.error is None and len(capture.graphs) == 1


def test_cuda_timing_runs_on_the_cpu() -> None:
    capture = captured_source(
        "import torch\nstart, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)\n"
        "f = torch.compile(lambda x: x + 1)\nstart.record()\nf(torch.ones(4, device=f'cuda:{0}'))\nend.record()\n"
        "torch.cuda.synchronize()\nprint(start.elapsed_time(end) > 0)\n"
    )
    assert capture.error is None and capture.output == "True\n"


def test_torch_is_left_as_it_was() -> None:
    before = torch.compile, torch._dynamo.optimize
    captured_source("import torch\ntorch.compile(lambda x: x + 1)(torch.ones(2))\n")
    assert (torch.compile, torch._dynamo.optimize) == before


def test_seed_is_set() -> None:
    source = "import torch\n@torch.compile\ndef f(x):\n    return x + 1\nf(torch.randn(4))\n"
    first, second, other = (captured_source(source, seed=seed).entries[0].args[0] for seed in (1, 1, 2))
    assert torch.equal(first, second) and not torch.equal(first, other)


def test_reference_keeps_casts_to_integers() -> None:
    capture = captured_source(
        "import torch\n@torch.compile\ndef f(x):\n    return (x * 3).to(torch.int32), x.to(torch.bfloat16), "
        "torch.ones(4)\nf(torch.randn(4))\n"
    )
    graph = capture.graphs[0]
    assert [value.dtype for value in reference_run(graph, graph.inputs or [])] == [
        torch.int32, torch.float64, torch.float64
    ]  # fmt: skip


def test_recompile_limit_is_noted() -> None:
    capture = captured_source(
        "import torch\n@torch.compile(dynamic=False)\ndef f(x, n):\n    return x * n\n"
        "for n in range(12):\n    f(torch.ones(4), n)\n"
    )
    assert len(capture.graphs) == 8
    assert any(note.message.startswith("f was compiled 8 times") for note in capture.notes)


def test_scalar_parameters_get_values_and_notes() -> None:
    capture = captured_source("import torch\ndef f(x, dim, n: int):\n    return x.softmax(dim) * n\n")
    assert capture.error is None and capture.entries[0].args[1:] == (-1, 4)
    assert [note.message.split(" was ")[0] for note in capture.notes] == ["x", "dim", "n"]


def test_no_default_fits_is_an_error_with_a_hint() -> None:
    error = captured_source("import torch\ndef f(x):\n    return x.reshape(7, 13)\n").error
    assert error is not None and (error.type, error.line) == ("RuntimeError", 3)
    assert error.hint and "annotate them" in error.hint


def test_only_the_compiler_failing_is_said() -> None:
    capture = captured_source(
        "import torch\n@torch.compile(fullgraph=True)\ndef f(x):\n    if x.sum() > 0:\n        return x\n"
        "    return -x\nf(torch.ones(4))\n"
    )
    assert capture.error is not None and capture.error.line == 4
    assert capture.error.hint and "without compilation succeeds" in capture.error.hint


def test_autocast_of_the_call_is_kept_for_replay() -> None:
    capture = captured_source(
        "import torch\nlayer = torch.nn.Linear(8, 8)\nf = torch.compile(layer)\n"
        "with torch.no_grad(), torch.autocast('cpu', dtype=torch.bfloat16):\n    f(torch.randn(4, 8))\n"
    )
    entry = capture.entries[0]
    assert entry.compiled(*entry.args).dtype == entry.eager(*entry.args).dtype == torch.bfloat16
    assert len(capture.graphs) == 1


@pytest.mark.parametrize("compile", ["", "@torch.compile\n"])
def test_the_kernels_that_attention_may_use_are_those_of_the_call(compile: str) -> None:
    """The flags are torch's own, and of the process: they choose kernels on a GPU, and can be read without one."""
    capture = captured_source(
        "import torch\nfrom torch.nn.attention import SDPBackend, sdpa_kernel\nallowed = torch.backends.cuda\n"
        f"{compile}def f(q):\n    if allowed.flash_sdp_enabled() or not allowed.math_sdp_enabled():\n"
        "        return q + 1\n    return torch.nn.functional.scaled_dot_product_attention(q, q, q)\n"
        "with sdpa_kernel(SDPBackend.MATH):\n    f(torch.zeros(1, 1, 2, 4))\nx = torch.ones(1)\n"
    )
    assert capture.error is None
    entry = capture.entries[0]
    assert entry.eager(*entry.args).abs().max() == 0
    assert torch.backends.cuda.flash_sdp_enabled()


def test_method_decorator_and_user_logs() -> None:
    capture = captured_source(
        "import torch\nclass Thing:\n    def __init__(self):\n        self.scale = 3\n    @torch.compile\n"
        "    def run(self, x):\n        return x * self.scale\nprint(Thing().run(torch.ones(2)))\n"
    )
    assert capture.error is None and capture.graphs[0].function == "run"
    assert capture.output == "tensor([3., 3.])\n"


def test_graph_that_cannot_be_captured_does_not_stop_the_snippet(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> None:
        raise NotImplementedError("no such operator")

    monkeypatch.setattr("compiler.capture.recording.recorder.compile_through_aot", fail)
    capture = captured_source("import torch\nprint(torch.compile(lambda x: x + 1)(torch.ones(2)))\n")
    assert capture.output == "tensor([2., 2.])\n"
    assert capture.error is not None and capture.error.message == "no such operator"


def test_nothing_captured_is_said() -> None:
    capture = captured_source("import torch\ntorch.compile(lambda x: x)(torch.ones(2))\n")
    assert capture.error is None and "computes nothing from a tensor" in capture.notes[-1].message


def test_the_break_that_left_nothing_to_capture_is_named() -> None:
    capture = captured_source("""import torch

@torch.library.custom_op("snippet::by_sum", mutates_args=())
def by_sum(x: torch.Tensor) -> torch.Tensor:
    return x * 2

@by_sum.register_fake
def _(x):
    return torch.empty_like(x) * float(x.sum())

@torch.compile
def f(x):
    return by_sum(x)

f(torch.ones(3))
""")
    assert capture.error is None and not capture.graphs and capture.breaks[0].line == 13
    told = capture.notes[-1]
    assert told.message == "Nothing was captured: tracing stopped in line 13. The graph break says why."
    assert told.line == 13


def test_standard_input_is_empty() -> None:
    error = captured_source("input()\n").error
    assert error is not None and (error.type, error.line) == ("EOFError", 1)


def test_which_functions_need_a_default_device() -> None:
    inside = "def f(x):\n    return x + torch.ones(3)\n"
    said = "def f(x):\n    return x + torch.ones(3, device=x.device)\n"
    before = "def get_inputs():\n    return [torch.ones(3)]\nf(torch.ones(3))\n"
    assert [makes_tensors_in_functions(ast.parse(source)) for source in (inside, said, before)] == [True, False, False]


@pytest.mark.parametrize(
    ("state", "dtype", "device"),
    [
        ("torch.autocast('cpu', torch.bfloat16)", torch.bfloat16, "cpu"),
        ("torch.autocast('cuda', torch.bfloat16)", torch.bfloat16, "cpu"),
        ("torch.device('meta')", torch.float32, "meta"),
        ("torch.inference_mode()", torch.float32, "cpu"),
    ],
)
def test_a_call_is_explored_in_the_state_that_it_was_made_in(state: str, dtype: torch.dtype, device: str) -> None:
    capture = captured_source(
        "import torch\ndef f(x):\n    return x @ torch.ones(2, 2)\n"
        f"with {state}:\n    f(torch.ones(2, 2))\nx = torch.ones(1)\n"
    )
    entry = capture.entries[0]
    result = entry.eager(*entry.args)
    assert capture.error is None and (result.dtype, result.device.type) == (dtype, device)


@pytest.mark.parametrize(
    "call",
    [
        "torch.jit.script(f)(torch.ones(3))",
        "torch.jit.trace(f, (torch.ones(2),))(torch.ones(3))",
        "torch.fx.experimental.proxy_tensor.make_fx(f)(torch.ones(3))",
        "torch._dynamo.explain(f)(torch.ones(3))",
    ],
)
def test_what_a_tracer_was_given_is_explored_as_it_is(call: str) -> None:
    source = "import torch\nimport torch.fx.experimental.proxy_tensor\ndef f(x):\n    return x.sin() + 1\n"
    capture = captured_source(f"{source}{call}\n")
    assert capture.error is None and capture.graphs[0].function == "f"
    assert [tuple(value.shape) for value in capture.entries[-1].args] == [(3,)]


def test_an_explainer_of_the_snippets_own_is_a_function_like_others() -> None:
    capture = captured_source(
        "import torch\ndef explain(f):\n    def inner(x):\n        return f(x) + 1\n    return inner\n"
        "explain(torch.sin)(torch.ones(3))\n"
    )
    assert [targets(graph) for graph in capture.graphs] == [["aten.sin.default", "aten.add.Tensor"]]


def test_a_call_within_a_device_is_made_again_there() -> None:
    capture = captured_source(
        "import torch\nwith torch.device('meta'):\n    x = torch.ones(2)\n"
        "    torch.compile(lambda x: x + torch.linspace(0, 1, 2))(x)\n"
    )
    entry = capture.entries[0]
    assert capture.error is None and entry.eager(*entry.args).device.type == "meta"
    assert torch.ones(1).device.type == "cpu"


def test_state_of_the_process_is_restored_and_kept_for_replay() -> None:
    capture = captured_source(
        "import torch\ntorch.set_default_dtype(torch.float64)\ntorch.set_grad_enabled(False)\n"
        "@torch.compile\ndef f(x):\n    return x + torch.ones(2)\nf(torch.zeros(2))\n"
    )
    assert torch.get_default_dtype() == torch.float32 and torch.is_grad_enabled()
    calls = capture.graphs[0].runner.calls
    assert capture.entries[0].compiled(*capture.entries[0].args).dtype == torch.float64
    assert capture.graphs[0].runner.calls == calls + 1


TRANSFORMED = {
    "vmap": "torch.vmap(f)(torch.ones(3, 4)).shape",
    "gradient": "torch.func.grad(f)(torch.ones(3)).shape",
    "of a tensor from outside": "torch.vmap(lambda row: torch.compile(lambda: row.sin())())(torch.ones(3, 4)).shape",
}


@pytest.mark.parametrize("call", TRANSFORMED.values(), ids=TRANSFORMED)
def test_a_call_within_a_transformation_is_passed_on_with_a_note(call: str) -> None:
    capture = captured_source(f"import torch\nf = torch.compile(lambda x: x.sin().sum())\nprint({call})\n")
    assert capture.error is None and capture.output.startswith("torch.Size([3")
    assert not capture.entries and len(capture.notes) == 1
    assert "torch.compile(torch.vmap(f))" in capture.notes[0].message


def test_calls_outside_of_a_transformation_are_entries_all_the_same() -> None:
    capture = captured_source(
        "import torch\nf = torch.compile(lambda x: x.sin().sum())\n"
        "f(torch.ones(3))\ntorch.func.grad(f)(torch.ones(3))\n"
        "@torch.compile\ndef g(x):\n    return torch.vmap(f)(x)\ng(torch.ones(3, 4))\n"
    )
    # torch 2.11 does not trace what is compiled within a transformation that is compiled: the graph breaks there.
    assert capture.error is None and len(capture.graphs) + capture.graph_breaks == 2
    assert [entry.name for entry in capture.entries] == ["<lambda>", "g"]


def test_asking_for_a_gpu_is_met_by_the_cpu() -> None:
    capture = captured_source(
        "import torch\nassert torch.cuda.is_available(), 'needs a GPU'\n"
        "f = torch.compile(lambda x: x + 1)\nf(torch.ones(4, pin_memory=True).cuda(0, non_blocking=True))\n"
    )
    assert capture.error is None
    assert "lines 2, 4" in capture.notes[0].message


def test_own_backend_through_aot_is_called_and_its_graphs_are_not_used() -> None:
    capture = captured_source(
        "import torch\nfrom torch._dynamo.backends.common import aot_autograd\n"
        "def show(graph, inputs):\n    print('own', len(graph.graph.nodes))\n    return graph.forward\n"
        "f = torch.compile(lambda x: (x.sin() * 2).sum(), backend=aot_autograd(fw_compiler=show))\n"
        "x = torch.ones(3, requires_grad=True)\nf(x).backward()\nprint(x.grad.shape)\n"
    )
    assert capture.error is None and [graph.phase for graph in capture.graphs] == ["forward", "backward"]
    assert capture.output.startswith("own ") and capture.output.endswith("torch.Size([3])\n")


def test_calls_after_capture_change_nothing_in_it() -> None:
    capture = captured_source("import torch\n@torch.compile\ndef f(x):\n    return x + 1\nf(torch.ones(4))\n")
    assert capture.entries[0].compiled(torch.zeros(7)).tolist() == [1.0] * 7
    assert len(capture.graphs) == 1 and capture.recompiles == 0


@pytest.mark.parametrize("module", ["torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.ReLU())", "torch.nn.ReLU()"])
def test_a_module_of_torch_that_is_compiled_in_place_is_explored(module: str) -> None:
    capture = captured_source(f"import torch\nm = {module}\nm.compile()\nm(torch.ones(2, 4))\n")
    (entry,), (note,) = capture.entries, capture.notes
    assert "aten.relu.default" in targets(capture.graphs[0]) and "PyTorch itself compiles nothing here" in note.message
    assert torch.equal(entry.eager(*entry.args), entry.compiled(*entry.args))


def test_a_module_of_the_snippets_that_is_compiled_in_place_needs_no_note() -> None:
    capture = captured_source(
        "import torch\nclass M(torch.nn.Module):\n    def forward(self, x):\n        return x.sin()\n"
        "m = M()\nm.compile()\nm(torch.ones(2, 4))\n"
    )
    assert [targets(graph) for graph in capture.graphs] == [["aten.sin.default"]] and not capture.notes


def test_a_loader_loads_without_processes_of_its_own() -> None:
    """In the sandbox they have no way to hand over their tensors."""
    before = torch.utils.data.DataLoader.__init__
    capture = captured_source(
        "import torch\nfrom torch.utils.data import DataLoader, TensorDataset\n"
        "data = TensorDataset(torch.ones(8, 4))\n"
        "loader = DataLoader(data, 4, True, num_workers=2, prefetch_factor=3, persistent_workers=True, timeout=9)\n"
        "def f(x):\n    return x.sin()\nfor x, in loader:\n    f(x)\nprint(loader.num_workers, loader.batch_size)\n"
    )
    assert capture.error is None and capture.output == "0 4\n" and capture.entries[0].args[0].shape == (4, 4)
    assert [note.message for note in capture.notes] == [
        "A DataLoader has no worker processes here: it loaded its data in the snippet's own process."
    ]
    assert torch.utils.data.DataLoader.__init__ is before
