"""One kernel of an exploration down to machine code, asked for over HTTP and compiled in the confined worker."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import pytest
import pytest_asyncio

from compiler.report import Report
from server.worker.channel import Program
from tests.server.conftest import Service, running_service

pytestmark = pytest.mark.asyncio(loop_scope="module")

SNIPPET = """import torch
def f(x):
    return torch.softmax(x * 2, -1)
f(torch.randn(64, 128))
"""
WANTED = {"timing": {"enabled": False}, "produce": ["capture", "lower", "schedule", "codegen"], "device": "cpu"}


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def confined(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Service]:
    data = tmp_path_factory.mktemp("data")
    async with running_service(
        data, Program(), tier=None, trust_snippets=None, processes=2048, wall_seconds=600
    ) as running:
        yield running


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def explored(confined: Service) -> Report:
    return Report.model_validate(await confined.explore(SNIPPET, **WANTED))


async def machine_code(service: Service, id: str, kernel: str, **query: Any) -> tuple[int, dict[str, Any]]:
    address = f"/api/v1/explorations/{id}/kernels/{kernel}/machine-code"
    while True:
        answer = await service.client.post(address, params={"wait": 60, **query})
        if answer.status_code != 202:  # a busy machine may take longer than one request waits
            return answer.status_code, answer.json()


async def test_it_is_an_exploration_of_its_own_and_the_snippets_report_stays_as_it_was(
    confined: Service, explored: Report
) -> None:
    kernel = explored.graphs[0].kernels[0]
    status, raw = await machine_code(confined, explored.id, kernel.name, target="sm_90")
    found = Report.model_validate(raw)
    assert (status, found.status) == (200, "ok"), found.error
    assert found.machine_code is not None and found.graphs == []
    assert [level.name for level in found.machine_code.levels] == ["ttir", "ttgir", "llvm", "ptx", "sass"]
    assert found.source == next(twin.source for twin in kernel.also if twin.language == "triton")
    assert found.observed is not None and found.observed.tier in ("A", "B") and found.observed.contradictions == []
    again = await machine_code(confined, explored.id, kernel.name, target="sm_90")
    assert again[1]["id"] == found.id and again[1]["observed"] == raw["observed"]
    whole = (await confined.client.get(f"/api/v1/explorations/{explored.id}")).json()
    assert Report.model_validate(whole) == explored


async def test_by_default_it_is_the_kernel_that_ran(confined: Service, explored: Report) -> None:
    status, raw = await machine_code(confined, explored.id, explored.graphs[0].kernels[0].name)
    assert (status, raw["status"]) == (200, "ok"), raw["error"]
    assert [level["name"] for level in raw["machine_code"]["levels"]] == ["assembly"]


@pytest.mark.parametrize(
    ("kernel", "query", "status", "sentence"),
    [
        ("no_such", {}, 404, "There is no kernel no_such"),
        (None, {"language": "cpp", "target": "sm_90"}, 409, "not compiled for sm_90"),
        (None, {"target": "sm_9000"}, 422, "target"),
        (None, {"target": "sm_99"}, 422, "there are sm_70, sm_75, sm_80"),
        (None, {"compiler": "peer"}, 404, "in TorchInductor's part of exploration"),
    ],
)
async def test_what_cannot_be_is_refused_in_a_sentence(
    confined: Service, explored: Report, kernel: str | None, query: dict[str, str], status: int, sentence: str
) -> None:
    found, raw = await machine_code(confined, explored.id, kernel or explored.graphs[0].kernels[0].name, **query)
    assert found == status and sentence in raw["detail"]
    assert query.get("compiler") is None or "There is fused" not in raw["detail"], (
        "kernels of ours are none of the peer's"
    )


HOSTILE = """import os
import triton
import triton.language as tl
import triton.compiler

triton.compile = triton.compiler.compile = None
for name in os.listdir(os.environ["TRITON_CACHE_DIR"] if os.path.isdir(os.environ["TRITON_CACHE_DIR"]) else "/tmp"):
    pass
try:
    open("/proc/self/mem", "r+b").close()
    os.kill(os.getppid(), 9)
except OSError:
    pass

@triton.jit
def kernel(x):
    tl.store(x, 1.0)
"""


async def test_a_hostile_kernel_is_confined_and_changes_nothing_for_the_next(
    confined: Service, explored: Report
) -> None:
    wanted = {"name": "kernel", "target": "sm_90", "arguments": [{"type": "*fp32"}]}
    hostile = await confined.explore(HOSTILE, machine_code=wanted)
    assert hostile["status"] in ("user_error", "crashed") and hostile["machine_code"] is None
    name = explored.graphs[0].kernels[0].name
    status, raw = await machine_code(confined, explored.id, name, target="sm_80")
    assert (status, raw["status"]) == (200, "ok"), raw["error"]
    assert [level["name"] for level in raw["machine_code"]["levels"]][-1] == "sass"
