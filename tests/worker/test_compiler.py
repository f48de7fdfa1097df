"""The worker with the real compiler: its report is what the compiler gives, and a spare's past shows nowhere in it."""

from __future__ import annotations

import json
import re
from collections.abc import AsyncIterator, Iterator
from typing import Any

import pytest
import pytest_asyncio

from compiler.options import Options, Timing
from server.worker.channel import Program
from tests.worker.harness import Done, Web, WorkerProcess, children, eventually, worker_process

pytestmark = pytest.mark.asyncio

QUICK = Options(timing=Timing(max_seconds=0.05))

TRAINING = """
import random
import numpy
import torch

torch._dynamo.config.suppress_errors = False
model = torch.nn.Sequential(torch.nn.Linear(32, 16), torch.nn.GELU(), torch.nn.Linear(16, 4))
step = torch.compile(model)
loss = step(torch.randn(8, 32)).softmax(-1).square().sum()
loss.backward()
print(loss.item(), random.random(), numpy.random.rand(), torch.rand(1).item())
"""


@pytest.fixture(scope="module")
def with_compiler() -> Iterator[WorkerProcess]:
    # A machine that is busy must not make an exploration leave out what it has no time for.
    with worker_process(Program(), slots=2, spares=1, threads=2, wall_seconds=600) as worker:
        yield worker


@pytest_asyncio.fixture
async def compiling(with_compiler: WorkerProcess) -> AsyncIterator[Web]:
    async with with_compiler.web() as web:
        yield web


async def test_devices_are_told_once_the_compiler_is_there(compiling: Web) -> None:
    await compiling.ready()
    devices = compiling.hellos[-1].devices
    assert {"cpu", "cuda"} <= {device.kind for device in devices}


async def test_an_exploration_is_told_stage_by_stage(compiling: Web) -> None:
    done = await compiling.run(TRAINING, QUICK, wall_seconds=600)
    report = done.report()
    assert report["/status"] == "ok", report["/error"]
    assert report["/graphs"] == 2 and report["/graphs/1/kernels"]
    assert report["/environment"]["torch"] and report["/environment"]["threads"] == 2
    stages = [stage["name"] for payload in done.payloads for stage in json.loads(payload).get("/stages", [])[-1:]]
    assert stages == ["capture", "lower", "schedule", "codegen", "run", "measure", "profile", "compare", "emulate"]
    assert done.ended is not None and done.ended.peak_memory_bytes is not None
    assert done.ended.last_output == ""


async def test_a_job_uses_every_thread_and_captures_gradients(compiling: Web) -> None:
    source = (
        "import torch\nx = torch.randn(1500, 1500)\n"
        "print(torch.get_num_threads(), bool((x @ x).sin().isfinite().all()))\n"
        "f = torch.compile(lambda x: x.sin().sum(), backend='aot_eager')\n"
        "x = torch.randn(8, requires_grad=True)\nf(x).backward()\nprint(torch.allclose(x.grad, x.cos()))"
    )
    report = (await compiling.run(source, QUICK, wall_seconds=600)).report()
    assert report["/output"].split() == ["2", "True", "True"], report["/error"]


async def test_too_much_memory_is_told_from_a_crash(compiling: Web) -> None:
    done = await compiling.run("import torch\ntorch.ones(100 << 30)", QUICK)
    assert done.report()["/error"]["type"] == "RuntimeError" or done.report()["/status"] == "out_of_memory"
    assert done.ended is not None and done.ended.ending == "exited"
    await compiling.ready()


async def test_what_a_spare_did_before_shows_nowhere(with_compiler: WorkerProcess, compiling: Web) -> None:
    """The same snippet in a process that warmed up, and in one that was forked for it since no spare was left."""
    await compiling.ready()
    assert await eventually(lambda: children(with_compiler.zygote))
    job = await compiling.begin(TRAINING, QUICK, wall_seconds=600)
    fresh = await compiling.run(TRAINING, QUICK, wall_seconds=600)
    warm = await compiling.done(job)
    assert warm.report()["/status"] == "ok", warm.report()["/error"]
    assert _without_times(warm) == _without_times(fresh)


def _without_times(done: Done) -> dict[str, Any]:
    return {name: None if name.endswith(_MEASURED) else _masked(value) for name, value in done.report().items()}


_OF_ITS_PROCESS = re.compile(r"\b\d{9,}\b|[0-9a-f]{8}(_[0-9a-f]{4}){3}_[0-9a-f]{12}|latency = [\d.]+")
"""Addresses, Dynamo's unique names, and what it measures of its guards."""
_MEASURED = (
    *("ms", "us", "seconds", "speedup", "per_s", "of_peak", "iqr", "samples", "disturbed", "verdict", "compile_s"),
    *("method", "chars", "differs_from_eager", "ratio_factor", "waited_share"),
)


def _masked(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: None if key.endswith(_MEASURED) else _masked(inner) for key, inner in value.items()}
    if isinstance(value, str):
        return _OF_ITS_PROCESS.sub("#", value)
    return [_masked(inner) for inner in value] if isinstance(value, list) else value
