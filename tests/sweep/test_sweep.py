"""A sweep from end to end: the snippet is compiled at each size, and what the compiler decides otherwise is marked."""

from __future__ import annotations

import gc
import time

import pytest
import torch
from pydantic import ValidationError

from compiler.options import MOST_SWEPT, Options, StageName
from compiler.pipeline import explore
from compiler.report import Report

pytestmark = pytest.mark.usefixtures("others_frozen")

#: What both results read is cheaper to read once, but for sums over the columns of a large matrix.
BOTH_WAYS = """import torch
N = 64
assert N != 100, "one hundred is too many"
def f(x):
    a = torch.fft.fft(x).real
    return torch.relu(a + 1).sum(-1), torch.relu(a - 1).sum(0)
f(torch.randn(N, N))
"""
ROWS = "import torch\ndef f(x: f32[4, 8]):\n    return torch.softmax(x, -1)\n"
#: Up to the kernels' text: nothing is run.
PRODUCE: tuple[StageName, ...] = ("capture", "lower", "schedule", "codegen")


@pytest.fixture(scope="module")
def swept() -> tuple[Report, list[Report]]:
    """The report, and copies of what was published on the way."""
    published: list[Report] = []
    options = Options.model_validate(
        {"device": "cpu", "produce": PRODUCE, "sweep": {"name": "N", "values": [1024, 64, 100, 256]}}
    )
    report = explore(BOTH_WAYS, options, lambda so_far: published.append(so_far.model_copy(deep=True)))
    return report, published


def test_the_sizes_at_which_a_verdict_and_the_number_of_kernels_flip_are_marked(
    swept: tuple[Report, list[Report]],
) -> None:
    report, _ = swept
    assert report.status == "ok" and report.sweep is not None
    sizes = {size.value: size for size in report.sweep.sizes}
    assert list(sizes) == [64, 100, 256, 1024]
    assert sizes[1024].flips and not sizes[64].flips and not sizes[256].flips
    counts, verdict = (next(flip for flip in sizes[1024].flips if flip.kind == kind) for kind in ("kernels", "verdict"))
    assert (counts.before, counts.after) == (str(sizes[256].launches), str(sizes[1024].launches))
    assert verdict.before.startswith("fused: ") and verdict.after.startswith("refused: profit.")
    pair = next(pair for pair in report.sweep.pairs if f"{pair.a} + {pair.b}" == verdict.about)
    assert pair.flips
    assert [outcome and outcome.together for outcome in pair.outcomes] == [True, None, True, False]


def test_each_size_has_the_figures_of_the_snippet_written_with_it(swept: tuple[Report, list[Report]]) -> None:
    report, _ = swept
    assert report.sweep is not None
    alone = explore(BOTH_WAYS.replace("N = 64", "N = 256"), Options(device="cpu", produce=PRODUCE))
    size = next(size for size in report.sweep.sizes if size.value == 256)
    assert (size.launches, size.bytes, size.floor_bytes) == (
        alone.summary.kernels,
        alone.summary.bytes,
        alone.summary.floor_bytes,
    )
    assert size.kernels == sum(kernel.kind != "extern" for kernel in alone.graphs[0].kernels)


def test_a_size_that_fails_is_a_row_with_its_sentence_and_spoils_nothing(swept: tuple[Report, list[Report]]) -> None:
    report, _ = swept
    assert report.sweep is not None and report.error is None
    failed = report.sweep.sizes[1]
    assert failed.error == "AssertionError (line 3): one hundred is too many" and failed.launches is None
    assert report.sweep.verdict.endswith("at N = 1024. 1 of 4 sizes failed.")


def test_what_is_known_is_published_after_each_size(swept: tuple[Report, list[Report]]) -> None:
    report, published = swept
    assert [stage.name for stage in report.stages][-5:] == ["sweep 64", "sweep 100", "sweep 256", "sweep 1024", "sweep"]
    known = [len(one.sweep.sizes) for one in published if one.sweep is not None]
    assert known == [1, 2, 3, 4, 4, 4]


def test_each_size_is_measured_while_time_lasts_and_predicted_in_any_case() -> None:
    sweep = {"name": "x.shape[-1]", "values": [8, 40], "max_seconds": 600}
    timing = {"min_runs": 3, "max_seconds": 0.1}
    began = time.perf_counter()
    report = explore(ROWS, Options.model_validate({"device": "cpu", "sweep": sweep, "timing": timing}))
    took_ms = 1e3 * (time.perf_counter() - began)
    # The service takes a report whose stages took longer than the process for a forged one.
    assert sum(stage.ms for stage in report.stages) <= took_ms
    assert report.status == "ok" and report.sweep is not None
    for size in report.sweep.sizes:
        assert size.predicted_us and size.measured_us and size.eager_ms and size.compiled_ms
        assert size.plans == {"fused_amax_sub_exp_sum_div": "persistent"}
    assert report.sweep.verdict == "The compiler decides the same at all 2 sizes of x.shape[-1]."
    assert report.sweep.message is None
    hurried = {
        "sweep": sweep | {"max_seconds": 1e-3},
        "timing": timing,
        "device": "cpu",
        "produce": (*PRODUCE, "measure"),
    }
    report = explore(ROWS, Options.model_validate(hurried))
    assert report.sweep is not None
    assert report.sweep.message == "Not measured, as it would take longer than 0.001 seconds: 8, 40."
    assert all(size.predicted_us and size.compiled_ms is None for size in report.sweep.sizes)


def test_no_tensor_of_one_size_is_left_when_the_next_but_one_begins() -> None:
    """torch's guards keep the globals of a snippet for as long as the process lives."""
    source = "import torch\nN = 300\nx = torch.randn(N, 77)\ndef f(x):\n    return x.sin()\nf(x)\n"
    sweep = {"name": "N", "values": [301, 302, 303, 304]}
    report = explore(source, Options.model_validate({"device": "cpu", "produce": ["capture"], "sweep": sweep}))
    assert report.status == "ok" and report.sweep is not None and len(report.sweep.sizes) == 4
    gc.collect()
    shapes = [tuple(one.shape) for one in gc.get_objects() if type(one) is torch.Tensor]
    # What other tests have traced may be left: its sizes are symbols, which no set takes.
    numbers = {shape for shape in shapes if all(isinstance(size, int) for size in shape)}
    assert not numbers & {(301, 77), (302, 77), (303, 77)}


def test_a_size_that_the_snippet_does_not_name_is_an_error_beside_what_was_found() -> None:
    options = Options.model_validate({"device": "cpu", "produce": PRODUCE, "sweep": {"name": "M", "values": [8, 16]}})
    report = explore(ROWS, options)
    assert report.status == "user_error" and report.error is not None and report.sweep is None
    assert (report.error.type, report.error.stage) == ("UnknownSize", "sweep")
    assert report.error.message == (
        "The snippet names no size 'M'. Its sizes are x.shape[0] (4, line 2), x.shape[1] (8, line 2)."
    )
    assert report.graphs[0].kernels
    assert [(size.name, size.value, size.lines) for size in report.sizes] == [
        ("x.shape[0]", 4, [2]),
        ("x.shape[1]", 8, [2]),
    ]


def test_a_snippet_that_is_no_python_fails_with_its_own_error() -> None:
    options = Options.model_validate({"device": "cpu", "sweep": {"name": "N", "values": [8, 16]}})
    report = explore("N = = 4\n", options)
    assert report.error is not None and report.error.type == "SyntaxError"
    assert report.stages[-1].message == "the snippet is no Python program, so no size was found in it"


@pytest.mark.parametrize(
    "sweep",
    [
        {"name": "N", "values": [8]},
        {"name": "N", "values": [8, 8]},
        {"name": "N", "values": [8, -1]},
        {"name": "N", "values": [8, 2**60]},
        {"name": "N", "values": [8, 9.5]},
        {"name": "N", "values": list(range(MOST_SWEPT + 1))},
        {"name": "", "values": [8, 16]},
        {"name": "N", "values": [8, 16], "max_seconds": 0},
        {"name": "N", "sizes": [8, 16]},
    ],
)
def test_what_is_no_sweep_is_refused(sweep: dict[str, object]) -> None:
    with pytest.raises(ValidationError):
        Options.model_validate({"sweep": sweep})
