"""The store keeps what it is given, byte for byte, and knows what may be given again."""

from __future__ import annotations

from pathlib import Path

import pytest

from compiler.report import Report
from server.store import Store

pytestmark = pytest.mark.asyncio


async def test_a_report_comes_back_as_it_went_in(tmp_path: Path) -> None:
    store = Store(f"sqlite+aiosqlite:///{tmp_path / 'store.sqlite3'}")
    await store.open()
    report = Report(id="a" * 20, source="x = 'ä'", status="ok", output="line\n" * 1000)
    put = await store.put(report)
    got = await store.get(report.id)
    assert got == put
    assert got is not None
    assert got.report() == report
    assert await store.get("b" * 20) is None
    await store.put(report.model_copy(update={"status": "timeout"}))
    assert await store.count() == 1
    await store.remove(report.id)
    assert await store.count() == 0
    await store.close()


@pytest.mark.parametrize(
    ("status", "is_reusable"),
    [("ok", True), ("user_error", True), ("timeout", False), ("crashed", False), ("out_of_memory", False)],
)
async def test_only_what_would_come_out_again_is_reusable(tmp_path: Path, status: str, is_reusable: bool) -> None:
    store = Store(f"sqlite+aiosqlite:///{tmp_path / 'store.sqlite3'}")
    await store.open()
    report = Report.model_validate({"id": "a" * 20, "source": "x", "status": status})
    assert (await store.put(report)).is_reusable is is_reusable
    await store.close()
