"""Each kernel of a report becomes one file that runs without Fusionscope, and says whether the kernel is right."""

from __future__ import annotations

import builtins
import dis
import re
import subprocess
import sys
from functools import cache
from pathlib import Path
from types import CodeType, SimpleNamespace
from typing import Any, Literal

import pytest
import torch

from compiler import pipeline
from compiler.options import Options
from compiler.report import Report
from compiler.reproducer import NoReproducerError, reproducer

ROOT = Path(__file__).resolve().parents[2]
SNIPPETS = ROOT / "tests" / "snippets"
EXAMPLES = ROOT / "server" / "examples"

#: A kernel with an index and an update, one with a reduction, a product in steps, a mask, an open size, a library call,
#: and one that computes anew what another kernel made.
SOURCE = """import torch
def f(x, source, target, weight):
    picked = torch.tanh(x[source] * weight[:, None])
    summed = torch.zeros_like(x).index_add(0, target, picked)
    row = torch.softmax(summed, 1)
    return row.max(1).indices, torch.where(row > 0.1, row, 0.5)
def product(x, y):
    return torch.relu(x + y) @ x.t(), x.sort(1)
def again(x, weight):
    shifted = x + 1
    return torch.softmax(torch.softmax(shifted, 1) @ weight + shifted, 1)
def g(x):
    return (x * 2 - x.mean(0)).abs()
generator = torch.Generator().manual_seed(0)
index = torch.randint(0, 50, (300,), generator=generator)
torch.compile(f)(torch.randn(50, 16), index, index.flip(0).contiguous(), torch.randn(300))
torch.compile(product)(torch.randn(200, 16), torch.randn(200, 16))
torch.compile(again)(torch.randn(64, 16), torch.randn(16, 16))
convolution = torch.compile(lambda x, w: torch.nn.functional.conv2d(x, w))
convolution(torch.randn(2, 24, 12, 12), torch.randn(8, 24, 3, 3))
h = torch.compile(g)
for n in (6, 8):
    h(torch.randn(n, 16))
"""

#: Runs each file in a process that has torch and nothing of ours, and prints how it ended.
RUN_ALL = """
import contextlib, io, runpy, sys
for file in sys.argv[1:]:
    said = io.StringIO()
    with contextlib.redirect_stdout(said):
        try:
            runpy.run_path(file, run_name="__main__")
        except SystemExit:
            pass
    print(file.rsplit("/", 1)[-1], said.getvalue().splitlines()[-1])
assert not {"compiler", "server"} & sys.modules.keys()
"""


@cache
def explored(source: str = SOURCE, *stages: str) -> Report:
    options = {"device": "cpu", "timing": {"enabled": False}, "produce": stages or None}
    report = pipeline.explore(source, Options.model_validate(options))
    assert report.status == "ok", report.error
    return Report.model_validate_json(report.model_dump_json())


def names_of(report: Report) -> list[tuple[str, str]]:
    """The graph and name of each kernel; of a library call, that of its loop node."""
    return [(g.name, k.nodes[-1] if k.kind == "extern" else k.name) for g in report.graphs for k in g.kernels]


def endings(files: dict[str, str], folder: Path) -> dict[str, str]:
    """The last line that each of these files says."""
    for name, text in files.items():
        (folder / name).write_text(text)
    command = [sys.executable, "-I", "-c", RUN_ALL, *(str(folder / name) for name in files)]
    done = subprocess.run(command, capture_output=True, text=True, cwd=folder, timeout=600, check=False)
    assert done.returncode == 0, done.stderr
    return dict(line.split(" ", 1) for line in done.stdout.splitlines())


def test_files_of_cpp_kernels_and_library_calls_run_alone_and_are_right(tmp_path: Path) -> None:
    report = explored()
    files = {f"{graph}_{name}.py": reproducer(report, name, graph) for graph, name in names_of(report)}
    kinds = {kernel.kind for graph in report.graphs for kernel in graph.kernels}
    assert kinds == {"cpp", "extern"} and any(kernel.steps for kernel in report.graphs[1].kernels)
    assert any(kernel.sizes for kernel in report.graphs[-1].kernels)
    assert any(kernel.updates for kernel in report.graphs[0].kernels)
    assert endings(files, tmp_path) == dict.fromkeys(files, "RIGHT")


def test_a_step_of_training_and_a_result_of_more_bits_than_its_terms_are_right(tmp_path: Path) -> None:
    """`addcmul_` of a value calls what plain torch lacks; float32 terms limit what a float64 result can be."""
    source = """import torch
@torch.compile
def step(parameter, gradient, square):
    square.mul_(0.999).addcmul_(gradient, gradient, value=0.001)
    return parameter.addcdiv_(gradient, square.sqrt().add_(1e-8), value=-0.001)
@torch.compile
def spread(x):
    return torch.where(x > 0, x.log1p(), x.expm1()).double().std(1)
step(torch.randn(40, 30), torch.randn(40, 30), torch.rand(40, 30))
spread(torch.randn(77, 1003))
"""
    report = explored(source, "capture", "lower", "schedule", "codegen")
    files = {f"{graph}_{name}.py": reproducer(report, name, graph) for graph, name in names_of(report)}
    assert all("def eager" in text for text in files.values())
    assert endings(files, tmp_path) == dict.fromkeys(files, "RIGHT")


def test_random_numbers_are_drawn_again_by_the_file(tmp_path: Path) -> None:
    source = """import torch
@torch.compile
def f(x, weight):
    dropped = torch.dropout(torch.dropout(x, 0.2, True) @ weight, 0.5, True)
    return dropped, torch.rand_like(x) * x, torch.randn_like(dropped) + dropped
f(torch.randn(30, 48), torch.randn(48, 20))
"""
    report = explored(source, "capture", "lower", "schedule", "codegen")
    kernels = [kernel for kernel in report.graphs[0].kernels if kernel.kind == "cpp"]
    files = {f"{kernel.name}.py": reproducer(report, kernel.name) for kernel in kernels}
    assert sum("rand_compared(v" in text for text in files.values()) == 2
    assert not any("def eager" in text for text in files.values())
    assert endings(files, tmp_path) == dict.fromkeys(files, "RIGHT")


def test_the_rest_of_a_convolution_is_not_called_one(tmp_path: Path) -> None:
    """The kernel adds the bias to the product, which has the name of the whole convolution."""
    source = """import torch
@torch.compile
def f(x, weight, bias):
    return torch.relu(torch.conv2d(x, weight, bias)).mean((2, 3))
f(torch.randn(2, 24, 12, 12), torch.randn(8, 24, 3, 3), torch.randn(8))
"""
    report = explored(source, "capture", "lower", "schedule", "codegen")
    (kernel,) = [kernel for kernel in report.graphs[0].kernels if "bias" in kernel.reads]
    text = reproducer(report, kernel.name)
    assert "def formula" in text and "def eager" not in text
    assert endings({"bias.py": text}, tmp_path) == {"bias.py": "RIGHT"}


def test_what_other_kernels_write_of_a_tensor_is_not_compared(tmp_path: Path) -> None:
    """Two kernels write parts of one concatenation, one of them two parts by a pointer each."""
    source = """import torch
@torch.compile
def f(x, y, weight, filters):
    rows = (x @ weight).reshape(2, 4, 4, 32).permute(0, 3, 1, 2)
    resized = [torch.nn.functional.interpolate(part, size=(16, 16), mode="bilinear") for part in (rows, y, y[..., :2])]
    return torch.conv2d(torch.cat(resized, 1), filters)
f(torch.randn(32, 32), torch.randn(2, 32, 4, 4), torch.randn(32, 32), torch.randn(1, 96, 1, 1))
"""
    report = explored(source, "capture", "lower", "schedule", "codegen")
    kernels = [kernel for kernel in report.graphs[0].kernels if any("cat" in name for name in kernel.writes)]
    assert [len(kernel.writes) for kernel in kernels] == [2, 1]
    files = {f"{kernel.name}.py": reproducer(report, kernel.name) for kernel in kernels}
    assert endings(files, tmp_path) == dict.fromkeys(files, "RIGHT")


def test_a_graph_of_the_cpu_stays_there_beside_a_gpu() -> None:
    report = explored()
    beside = report.environment.model_copy(update={"device": "cuda"})
    told = report.model_copy(update={"environment": beside})
    for graph, name in names_of(report):
        assert 'DEVICE = "cpu"' in reproducer(told, name, graph)


def test_a_file_of_a_wrong_kernel_says_so(tmp_path: Path) -> None:
    report = explored()
    kernel = report.graphs[-1].kernels[0]
    text = reproducer(report, kernel.name, report.graphs[-1].name)
    wrong = re.sub(r"(\w+_ptr\[[^\]]+\] = )(\w+;)", r"\1 1.001f * \2", text)
    assert wrong != text
    assert endings({"wrong.py": wrong}, tmp_path) == {"wrong.py": "WRONG"}


def test_a_convolution_on_a_gpu_may_round_as_torch_lets_it() -> None:
    """TF32 has 10 bits after the first: its rounding is made here, on both factors."""
    report = explored()
    graph = next(one for one in report.graphs if "convolution" in one.kernels[0].nodes[-1])
    text = reproducer(report, graph.kernels[0].nodes[-1], graph.name)
    file: dict[str, Any] = {"__name__": "file"}
    exec(text, file)
    given = list(file["inputs"]().values())[: len(file["GIVEN"])]
    exact = file["library"](*(one.double() for one in given))
    found = file["library"](*(((one.view(torch.int32) + 0x1000) & ~0x1FFF).view(torch.float32) for one in given))
    wrong, tolerance = file["library"](*given) * 1.01, file["TOLERANCE"]
    file["allow_for_tf32"]("cpu")
    assert tolerance[torch.float32] == 1e-5 and not file["is_right"]("result", found, exact, {})
    file["allow_for_tf32"]("cuda")
    assert tolerance[torch.float32] == 2**-10 and file["is_right"]("result", found, exact, {})
    assert not file["is_right"]("result", wrong, exact, {})
    sort = next((one, kernel) for one in report.graphs for kernel in one.kernels if "sort" in kernel.nodes[-1])
    assert "ROUNDED_BY = None" in reproducer(report, sort[1].nodes[-1], sort[0].name)


class SimulatedGpu:
    """torch.cuda and a host's clock, in microseconds: work is queued in order, and runs when what is before it has."""

    def __init__(self) -> None:
        self.host = self.free_at = 0.0

    def queue(self, on_host: float, on_device: float) -> float:
        """When the work ends."""
        self.host += on_host
        self.free_at = max(self.free_at, self.host) + on_device
        return self.free_at

    def synchronize(self) -> None:
        self.host = max(self.host, self.free_at)

    def perf_counter(self) -> float:
        return 1e-6 * self.host

    def as_torch(self) -> SimpleNamespace:
        gpu = self

        class Event:
            def __init__(self, enable_timing: bool) -> None:
                assert enable_timing

            def record(self) -> None:
                self.at = gpu.queue(2.0, 0.5)

            def elapsed_time(self, later: Any) -> float:
                return 1e-3 * float(later.at - self.at)

        memory = SimpleNamespace(zero_=lambda: gpu.queue(5.0, 40.0))
        cuda = SimpleNamespace(Event=Event, synchronize=self.synchronize, get_device_properties=lambda _: object())
        return SimpleNamespace(cuda=cuda, empty=lambda *_, **__: memory, uint8=torch.uint8)


@pytest.mark.parametrize(("on_host", "on_device"), [(30.0, 4.0), (3.0, 4.0), (900.0, 4.0), (30.0, 5000.0)])
def test_the_time_on_a_gpu_has_no_wait_for_the_host_in_it(on_host: float, on_device: float) -> None:
    report = explored()
    file: dict[str, Any] = {"__name__": "file"}
    exec(reproducer(report, report.graphs[-1].kernels[0].name, report.graphs[-1].name), file)
    gpu = SimulatedGpu()
    file |= {"torch": gpu.as_torch(), "time": gpu, "DEVICE": "cuda"}
    assert file["gpu_microseconds"](lambda: gpu.queue(on_host, on_device)) == pytest.approx(on_device)
    told = file["time_of"](lambda: gpu.queue(on_host, on_device))
    assert told == f"{on_device:,.0f} us on the GPU, from a cold L2 cache, without the host's launch"


def test_the_time_of_a_cpp_kernel_says_what_is_in_it() -> None:
    report = explored()
    file: dict[str, Any] = {"__name__": "file"}
    exec(reproducer(report, report.graphs[-1].kernels[0].name, report.graphs[-1].name), file)
    values = file["inputs"]()
    launch = file["launcher"]()
    before = {name: value.clone() for name, value in values.items()}
    launch.empty(values)
    assert all(torch.equal(value, before[name]) for name, value in values.items())
    took = {"launch": 3.0, "empty": 2.75}
    file["microseconds"] = lambda call: took[call]
    assert file["time_of"]("launch", "empty") == (
        "0.25 us, from warm caches, without the 2.75 us that Python takes to call it"
    )
    assert file["time_of"]("launch") == "3 us, from warm caches, with Python's share"
    took["launch"] = 11_700.0
    assert file["time_of"]("launch") == "11,700 us, from warm caches, with Python's share"


@pytest.mark.gpu
def test_a_file_of_a_convolution_that_rounds_to_tf32_is_right(tmp_path: Path) -> None:
    source = SOURCE[: SOURCE.index("def f")] + SOURCE[SOURCE.index("convolution =") : SOURCE.index("h =")]
    source = source.replace("24, 12, 12)", "24, 12, 12, device='cuda')").replace(
        "24, 3, 3)", "24, 3, 3, device='cuda')"
    )
    report = pipeline.explore(source, Options.model_validate({"device": "cuda", "timing": {"enabled": False}}))
    assert report.status == "ok", report.error
    calls = [name for name in names_of(report) if "convolution" in name[1]]
    files = {f"{graph}_{name}.py": reproducer(report, name, graph) for graph, name in calls}
    assert files and endings(files, tmp_path) == dict.fromkeys(files, "RIGHT")


ATTENTION_SOURCE = """
import torch
import torch.nn.functional as F

@torch.compile
def f(q, k, v, mask):
    return F.scaled_dot_product_attention(q, k, v, is_causal=True), F.scaled_dot_product_attention(q, k, v, mask)

q, k, v = (torch.randn(2, 4, 16, 8, device=DEVICE, dtype=DTYPE) for _ in range(3))
f(q, k, v, torch.randn(16, 16, device=DEVICE, dtype=DTYPE))
"""


def test_attention_is_held_against_its_formula() -> None:
    source = f"DEVICE, DTYPE = 'cpu', None\n{ATTENTION_SOURCE}"
    report = explored(source, "capture", "lower", "schedule", "codegen")
    calls = [name for name in names_of(report) if "attention" in name[1]]
    assert len(calls) == 2
    for graph, name in calls:
        file: dict[str, Any] = {"__name__": "file"}
        exec(reproducer(report, name, graph), file)
        given = [file["inputs"]()[name].double() for name in file["GIVEN"]]
        torch.testing.assert_close(file["exactly"](*given), file["library"](*given)[0])


@pytest.mark.gpu
@pytest.mark.parametrize("dtype", ["torch.float32", "torch.bfloat16"])
def test_files_of_attention_that_refuses_float64_are_compared(tmp_path: Path, dtype: str) -> None:
    source = f"import torch\nDEVICE, DTYPE = 'cuda', {dtype}\n{ATTENTION_SOURCE}"
    report = pipeline.explore(source, Options.model_validate({"device": "cuda", "timing": {"enabled": False}}))
    assert report.status == "ok", report.error
    calls = [name for name in names_of(report) if "attention" in name[1]]
    files = {f"{graph}_{name}.py": reproducer(report, name, graph) for graph, name in calls}
    assert files and endings(files, tmp_path) == dict.fromkeys(files, "RIGHT")


def test_files_of_triton_kernels_run_in_its_interpreter(tmp_path: Path) -> None:
    triton = pytest.importorskip("triton")
    report = explored()
    graphs = {"fixed.py": report.graphs[0], "open.py": report.graphs[-1]}
    files = {file: reproducer(report, graph.kernels[0].name, graph.name, "triton") for file, graph in graphs.items()}
    takes_sizes = not triton.__version__.startswith("3.6.")
    assert endings(files, tmp_path) == {"fixed.py": "RIGHT", "open.py": "RIGHT" if takes_sizes else "NEEDS A GPU"}


def test_what_the_interpreter_computes_wrongly_is_left_to_a_gpu(tmp_path: Path) -> None:
    pytest.importorskip("triton")
    report = explored((SNIPPETS / "02_dead_matmul.py").read_text(), "capture", "lower", "schedule", "codegen")
    kernel = next(kernel for kernel in report.graphs[0].kernels if kernel.kind == "cpp")
    files = {"product.py": reproducer(report, kernel.name, language="triton")}
    assert "tl.dot(" in files["product.py"] and "torch.bfloat16" in files["product.py"]
    text = files["product.py"].replace("torch.cuda.is_available()", "False")
    assert endings({"product.py": text}, tmp_path) == {"product.py": "NEEDS A GPU"}


def undefined_names(text: str) -> set[str]:
    """What the functions of a file ask for and the file has not, such as an open size."""
    module = compile(text, "file.py", "exec")
    codes, asked = [module], set()
    while codes:
        code = codes.pop()
        codes += [constant for constant in code.co_consts if isinstance(constant, CodeType)]
        asked |= {one.argval for one in dis.get_instructions(code) if one.opname == "LOAD_GLOBAL"}
    defined = {one.argval for one in dis.get_instructions(module) if one.opname == "STORE_NAME"}
    return asked - defined - set(dir(builtins))


@pytest.mark.parametrize("snippet", ["04", "07", "08", "13", "17", "20"])
@pytest.mark.parametrize("language", [None, "triton"])
def test_every_kernel_of_a_snippet_has_a_file(snippet: str, language: Literal["triton"] | None) -> None:
    (path,) = SNIPPETS.glob(f"{snippet}_*.py")
    report = explored(path.read_text(), "capture", "lower", "schedule", "codegen")
    for graph in report.graphs:
        for kernel in graph.kernels:
            if kernel.kind != "extern":
                text = reproducer(report, kernel.name, graph.name, language)
                assert not undefined_names(text)
                assert "fusionscope" not in text.split('"""')[2].split("HEADERS = ")[0]
            elif language is None:
                assert not undefined_names(reproducer(report, kernel.nodes[-1], graph.name))


def test_what_is_not_there_is_a_key_error_and_what_cannot_be_run_is_said() -> None:
    report = explored()
    with pytest.raises(KeyError):
        reproducer(report, "no such kernel")
    with pytest.raises(KeyError):
        reproducer(report, report.graphs[0].kernels[0].name, "graph_77")
    changed = report.model_copy(deep=True)
    kernel = next(kernel for kernel in changed.graphs[0].kernels if kernel.kind == "cpp")
    next(one for one in changed.graphs[0].buffers if one.name == kernel.writes[0]).dtype = "complex64"
    with pytest.raises(NoReproducerError, match="complex64"):
        reproducer(changed, kernel.name)


@pytest.mark.parametrize("told", ["v0 = load x[__import__('os').system('id')]", "store x[f(1)] = v0", "v1 = eval v0"])
def test_code_that_a_report_claims_to_be_a_loop_is_not_written(told: str) -> None:
    report = explored().model_copy(deep=True)
    graph = report.graphs[-1]
    for node in graph.loops:
        node.body = [told]
    for fx in graph.aten:
        fx.text = f"{fx.name}({told})"
    text = reproducer(report, graph.kernels[0].name, graph.name)
    code = "\n".join(line for line in text.splitlines() if 'print("Not compared' not in line)
    assert told.split("[")[-1] not in code and "__import__" not in code and "eval v0" not in code


def test_files_are_written_without_torch() -> None:
    code = "import sys, compiler.reproducer; print('torch' in sys.modules, 'triton' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=ROOT, check=True)
    assert done.stdout.split() == ["False", "False"]
