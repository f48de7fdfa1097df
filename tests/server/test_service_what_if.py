"""What if, over the API and on the command line: the new exploration is linked to the first and stands beside it."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio

from server.worker.channel import Program
from tests.server.conftest import Service, running_service

pytestmark = pytest.mark.asyncio(loop_scope="module")

ROOT = Path(__file__).parents[2]
SOURCE = """import torch
@torch.compile
def f(x):
    y = torch.relu(x)
    return y.sum(1) * torch.flip(y.sum(1), (0,))
f(torch.randn(64, 32))
"""
API = "/api/v1/explorations"


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def real_service(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Service]:
    async with running_service(tmp_path_factory.mktemp("data"), Program(), processes=2048, wall_seconds=600) as running:
        yield running


async def test_a_what_if_is_linked_to_its_first_and_compared_with_it(real_service: Service) -> None:
    client = real_service.client
    first = await real_service.explore(SOURCE, timing={"min_runs": 3})
    asked = {"forbid": [["relu", "sum_1"]], "force": [["sum_1", "mul"]], "timing": {"min_runs": 3}}
    second = await real_service.explore(SOURCE, based_on=first["id"], **asked)
    assert second["status"] == "ok", second["error"]
    assert second["based_on"] == first["id"] != second["id"]
    told = {one["option"]: one for one in second["what_if"]}
    assert (told["forbid"]["outcome"], told["force"]["outcome"]) == ("done", "refused")
    assert told["force"]["reason"] == "index.reversed"
    (child,) = (await client.get(f"{API}/{first['id']}/children")).json()
    assert child == {"id": second["id"], "status": "ok", "asked": "force sum_1, mul; forbid relu, sum_1"}
    beside = (await client.get(f"{API}/{second['id']}/comparison")).json()
    assert (beside["before"], beside["after"]) == (first["id"], second["id"])
    figures = {(one["kind"], one["name"]): one for one in beside["figures"]}
    kernels = figures["counted", "generated kernels"]
    assert kernels["after"] == kernels["before"] + 1 == second["summary"]["kernels"]
    measured, predicted = figures["measured", "compiled"], figures["predicted", "generated kernels in a row"]
    assert (
        measured["before"] == first["summary"]["compiled_ms"] and measured["after"] == second["summary"]["compiled_ms"]
    )
    assert predicted["after"] > predicted["before"] and predicted["device"] == "NVIDIA H200"
    text = (await client.get(f"{API}/{second['id']}.md")).text
    assert f"Based on exploration {first['id']}" in text and "- forbid relu and sum_1: done" in text
    assert beside["verdict"] in text and "| generated kernels | counted | " in text


async def test_the_same_what_if_of_two_explorations_is_two(service: Service) -> None:
    first = await service.explore("verdict = 'one'")
    second = await service.explore("verdict = 'one'", seed=1)
    children = [
        await service.explore("verdict = 'one'", largest_group=2, based_on=parent["id"]) for parent in (first, second)
    ]
    assert [child["based_on"] for child in children] == [first["id"], second["id"]]
    assert len({first["id"], second["id"], *(child["id"] for child in children)}) == 4
    assert await service.explore("verdict = 'one'", largest_group=2, based_on=first["id"]) == children[0]


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ({"based_on": "0" * 20}, "There is no exploration"),
        ({"based_on": "OTHER"}, "of another source"),
        ({"rules_off": ["vertcal"]}, "the rules are vertical, inline"),
        ({"device_model": "H900"}, "there are H200"),
        ({"force": [["a", "a"]]}, "a pair is two nodes"),
        ({"force": ["a"]}, "body.force"),
    ],
)
async def test_a_what_if_that_cannot_be_meant_is_refused_in_words(
    service: Service, body: dict[str, object], said: str
) -> None:
    other = await service.explore("verdict = 'another source'")
    asked = {name: other["id"] if value == "OTHER" else value for name, value in body.items()}
    answer = await service.client.post(API, json={"source": "verdict = 'mine'", **asked})
    assert answer.status_code == 422
    assert said in answer.json()["detail"]


async def test_any_two_explorations_are_compared(service: Service) -> None:
    one, two = [await service.explore(f"verdict = '{name}'") for name in ("a", "b")]
    alone = await service.client.get(f"{API}/{one['id']}/comparison")
    assert alone.status_code == 422 and "is based on no other one" in alone.json()["detail"]
    unlike = (await service.client.get(f"{API}/{one['id']}/comparison", params={"with": two["id"]})).json()
    assert (unlike["before"], unlike["after"], unlike["is_same_source"]) == (two["id"], one["id"], False)
    assert any("different snippets" in told for told in unlike["differences"])
    missing = await service.client.get(f"{API}/{one['id']}/comparison", params={"with": "0" * 20})
    assert missing.status_code == 404
    seeded = await service.explore("verdict = 'a'", seed=5)
    beside = await service.client.get(f"{API}/{seeded['id']}/comparison", params={"with": one["id"]})
    assert [change["name"] for change in beside.json()["options"]] == ["seed"]


async def test_the_command_line_prints_both_beside_each_other(tmp_path: Path) -> None:
    file = tmp_path / "snippet.py"
    file.write_text(SOURCE)
    command = [sys.executable, "-m", "server.cli", "explore", str(file), "--device", "cpu"]
    options = ["--forbid", "relu,sum_1", "--force", "sum_1,mul", "--rule-off", "batch", "--largest-group", "8"]
    environment = {**os.environ, "COLUMNS": "200", "NO_COLOR": "1"}
    ended = subprocess.run([*command, *options], cwd=ROOT, capture_output=True, text=True, check=False, env=environment)
    assert ended.returncode == 0, ended.stderr
    assert "what if force sum_1 and mul: refused; " in ended.stdout and "backwards" in ended.stdout
    assert "what if forbid relu and sum_1: done" in ended.stdout
    assert "predicted for NVIDIA H200" in ended.stdout and "generated kernels became" in ended.stdout
