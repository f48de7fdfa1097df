"""Sizes that only a run tells, in graphs of a GPU: the results are eager's in every call."""

from __future__ import annotations

import pytest

from tests.pipeline.late_sizes import CASES, check_gradients, check_results

pytestmark = pytest.mark.gpu


@pytest.mark.parametrize("name", CASES)
def test_gives_what_eager_gives(name: str) -> None:
    check_results(name, "cuda")


def test_gradients_are_eagers() -> None:
    check_gradients("cuda")
