"""The warm parent with the real libraries: what it must not have done for its children to work."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from tests.server.conftest import Service, running_service
from tests.server.run_worker import PLAIN

pytestmark = pytest.mark.asyncio(loop_scope="module")

LIBRARIES = ("torch", "torch._dynamo", "torch._functorch.aot_autograd", "torch._inductor.compile_fx")


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def torch_service(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Service]:
    data = tmp_path_factory.mktemp("data")
    program = PLAIN.model_copy(update={"imports": LIBRARIES})
    async with running_service(data, program, wall_seconds=600, threads=2) as running:
        yield running


async def test_a_child_runs_parallel_operations_on_every_thread(torch_service: Service) -> None:
    source = (
        "import torch\nx = torch.randn(1500, 1500)\n"
        "verdict = torch.get_num_threads(), bool((x @ x).sin().isfinite().all())"
    )
    report = await torch_service.explore(source)
    assert report["summary"]["verdict"] == "(2, True)", report["error"]
    assert report["environment"]["torch"]


async def test_a_child_captures_forward_and_backward(torch_service: Service) -> None:
    source = (
        "import torch\nf = torch.compile(lambda x: x.sin().sum(), backend='aot_eager')\n"
        "x = torch.randn(8, requires_grad=True)\nf(x).backward()\nverdict = torch.allclose(x.grad, x.cos())"
    )
    report = await torch_service.explore(source)
    assert report["summary"]["verdict"] == "True", report["error"]


async def test_too_much_memory_is_told_from_a_crash(torch_service: Service) -> None:
    report = await torch_service.explore("import torch\ntorch.ones(100 << 30)")
    assert report["status"] == "out_of_memory"
    await torch_service.next_job_is_fine()
