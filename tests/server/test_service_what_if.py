"""What if, over the API: the new exploration is linked to the first and stands beside it."""

from __future__ import annotations

import pytest

from tests.server.conftest import Service

pytestmark = pytest.mark.asyncio(loop_scope="module")

API = "/api/v1/explorations"


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
