"""The same snippets on a GPU: their graphs are on it, whether or not the snippet names a device."""

from __future__ import annotations

import multiprocessing
from concurrent.futures import ProcessPoolExecutor

import pytest
import torch

from compiler.capture import capture
from compiler.fx.fake_values import device_of
from compiler.options import Options
from compiler.pipeline import explore
from compiler.report import Error
from tests.capture.programs import source_of
from tests.capture.test_snippets import RUNNING

pytestmark = pytest.mark.gpu


@pytest.mark.parametrize("prefix", RUNNING)
def test_snippet_is_captured_on_the_gpu_and_replays(prefix: str) -> None:
    result = capture(source_of(prefix), Options(), torch.device("cuda"))
    assert result.error is None
    assert result.graphs and all(device_of(graph.aten).type == "cuda" for graph in result.graphs)
    assert not any("no GPU" in note.message for note in result.notes)
    calls = sum(graph.runner.calls for graph in result.graphs)
    if prefix not in ("04", "10"):
        for entry in result.entries:
            args, kwargs = entry.copy_arguments()
            entry.compiled(*args, **kwargs)
            entry.eager(*args, **kwargs)
        assert sum(graph.runner.calls for graph in result.graphs) >= calls + len(result.entries)


@pytest.mark.parametrize(
    "made", ["arange(4)", "rand(4)", "eye(4)", "linspace(0, 1, 4)", "tensor([1.0, 2.0, 3.0, 4.0])", "ones(4, 4).tril()"]
)
def test_what_compiled_functions_make_is_on_the_gpu(made: str) -> None:
    source = f"import torch\ndef f(x):\n    return x @ x + torch.{made}\nf(torch.ones(4, 4))\n"
    result = capture(source, Options(), torch.device("cuda"))
    assert result.error is None and device_of(result.graphs[0].aten).type == "cuda"


def test_a_shuffling_loader_is_run_on_the_cpu() -> None:
    source = (
        "import torch\nfrom torch.utils.data import DataLoader, TensorDataset\nmodel = torch.nn.Linear(4, 2)\n"
        "data = TensorDataset(torch.randn(8, 4))\n"
        "for (x,) in DataLoader(data, batch_size=4, shuffle=True):\n    y = model(x).relu()\n"
    )
    result = capture(source, Options(), torch.device("cuda"))
    assert result.error is None and {device_of(graph.aten).type for graph in result.graphs} == {"cpu"}
    assert "It names no device" in result.notes[0].message


def test_what_was_captured_before_a_snippet_ends_there_stays_on_the_gpu() -> None:
    source = "import torch\ndef f(x):\n    return x * 2\ny = torch.compile(f)(torch.ones(4))\nprint(y.numpy())\n"
    result = capture(source, Options(), torch.device("cuda"))
    assert result.error is not None and result.error.line == 5
    assert [device_of(graph.aten).type for graph in result.graphs] == ["cuda"]


@pytest.mark.parametrize("device", ["", ", device='cuda'"])
def test_an_index_out_of_bounds_is_no_defect_of_ours(device: str) -> None:
    source = (
        f"import torch\ntable = torch.ones(4, 3{device})\ndef f(i):\n    return table[i] * 2\n"
        f"print(torch.compile(f)(torch.tensor([5]{device})))\n"
    )
    # A failed check ends the GPU for the process that it happens in.
    with ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn")) as process:
        error = process.submit(error_on_gpu, source).result()
    assert error is not None and error.type != "InternalError" and "out of its range" in (error.hint or "")


def error_on_gpu(source: str) -> Error | None:
    return explore(source, Options(device="cuda")).error


def test_gpu_snippet_can_be_run_on_the_cpu_of_the_same_machine() -> None:
    result = capture(source_of("02"), Options(), torch.device("cpu"))
    assert result.error is None and device_of(result.graphs[0].aten).type == "cpu"
