"""What is counted agrees with its number, and one function makes it so."""

from __future__ import annotations

import re

import pytest

from compiler import pipeline
from compiler.decisions import REASONS, message_of
from compiler.options import Options, Timing
from compiler.wording import counted
from server.clients import Client, Counts
from server.problems import Problem
from server.summary import markdown
from server.tokens import Quota

#: A number of one, and a word that looks like a plural and is no verb.
_ONE_OF_MANY = re.compile(r"(?<![\d.,/×x*-])\b1 (?!(?:is|has|was|us|ms|as|its|GB/s)\b)(?:more |new |other )?[a-z]+s\b")

SOURCE = """import torch
@torch.compile
def f(x, y):
    s = (x - x.amax(0)).exp().sum()
    return s / 2, torch.nn.functional.conv2d(y, y[:1]).relu(), x.sort(0), y.cumsum(0)
f(torch.randn(8), torch.randn(2, 3, 3, 3))
"""


@pytest.mark.parametrize(
    ("number", "noun", "told"),
    [
        (1, "kernel", "1 kernel"),
        (0, "kernel", "0 kernels"),
        (1, "launch", "1 launch"),
        (1024, "launch", "1,024 launches"),
        (2, "pass", "2 passes"),
    ],
)
def test_a_noun_agrees_with_its_number(number: int, noun: str, told: str) -> None:
    assert counted(number, noun) == told


def test_reasons_count_in_words() -> None:
    told = {"a": "sum", "b": "add", "iterations_a": 1, "iterations_b": "s0"}
    assert message_of("shape.numel", told) == "sum runs 1 iteration, add runs s0 iterations"
    assert message_of("replay.few_launches", {"launches": 1}).startswith("with 1 launch a CUDA graph")
    for template in REASONS.values():
        assert not re.search(r"\{(?:launches|iterations_\w|conversions|sums|recordings|\w*bytes)\} \w+s\b", template)


def test_the_texts_of_a_report_have_no_plural_of_one() -> None:
    options = Options(device="cpu", timing=Timing(min_runs=3, max_seconds=0.1))
    report = pipeline.explore(SOURCE, options)
    assert report.status == "ok", report.error
    for text in (
        markdown(report),
        *(one.message for one in report.notes),
        report.timing.method if report.timing else "",
    ):
        assert not _ONE_OF_MANY.findall(text)


def test_a_limit_of_one_is_told_in_the_singular() -> None:
    counts, client = Counts(), Client("token:ci", Quota(requests_per_minute=1, explorations_per_hour=1))
    counts.take_exploration(client)
    with pytest.raises(Problem, match="Your limit of 1 new exploration an hour is reached"):
        counts.take_exploration(client)
    counts.take_request(client)
    with pytest.raises(Problem, match="Your limit of 1 request a minute is reached"):
        counts.take_request(client)


@pytest.mark.parametrize(
    ("fused", "unfused", "said"),
    [
        (12.44, 15.0, "predicted 12.4 us fused against 15.0 us apart"),
        (12.441, 12.443, "predicted 12.441 us fused against 12.443 us apart"),
        (12.44, 12.44, "predicted 12.4 us fused against 12.4 us apart"),
    ],
)
def test_times_that_decide_are_told_apart(fused: float, unfused: float, said: str) -> None:
    assert message_of("profit.slower", {"fused_us": fused, "unfused_us": unfused}) == said


def test_any_times_that_a_sentence_compares_are_told_apart() -> None:
    kept = message_of("folding.slower", {"saved_us": 0.0, "filter_us": 0.00124})
    assert kept == "predicted to save 0.000 us, for 0.001 us to compute the filter"
    moved = {"kept_us": 31.04, "moved_us": 31.01, "conversions_us": 2.0, "conversions": 1}
    assert message_of("layout.channels_last", moved).endswith(
        "2.00 us of it in 1 conversion; 31.04 us in eager's layout"
    )
