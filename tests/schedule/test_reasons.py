"""Every reason has a page, and the example on it is explored and does leave that reason.

A new reason needs `docs/reasons/<id>.md`: its sentence, what it means, an example, and what to do. The example is the
page's one block of Python. It may be followed by "Ask with `fusionscope explore FILE --why a,b`", if only a question
finds the reason, and by "Explore it with the knobs `{...}`" or "with the options `{...}`". The examples of replays are
run by tests/replay/test_reasons.py.
"""

from __future__ import annotations

import json
import re
from typing import Any

import pytest
import torch
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.fx.experimental.proxy_tensor import make_fx

from compiler import report as rep
from compiler.compile import Target, lower, plan
from compiler.decisions import REASONS
from compiler.devices import device_for
from compiler.lowering.decompositions import decompositions
from compiler.options import Options, StageName
from compiler.pages import page_of, rewrite_sections, sentences
from compiler.pipeline import explore
from compiler.present import present_lowered, present_schedule
from compiler.why import why


def test_pages_are_those_of_the_closed_list() -> None:
    assert sentences().keys() == REASONS.keys()


def test_a_page_has_a_sentence_and_every_part() -> None:
    for reason, sentence in sentences().items():
        page = page_of(reason)
        assert page.startswith(f"# {reason}\n\n")
        assert (sentence.endswith(".") and sentence[0].isupper()) or sentence.startswith("`"), reason
        assert re.findall(r"^## (.*)$", page, re.MULTILINE) == ["What it means", "Example", "What to do"]


def test_sentences_are_lines_however_their_pages_are_wrapped() -> None:
    told = [*sentences().values(), *(text for texts in rewrite_sections().values() for text in texts)]
    assert len(told) > 100 and not any("\n" in sentence for sentence in told)


@pytest.mark.parametrize("reason", [reason for reason in REASONS if not reason.startswith("replay.")])
def test_the_example_of_a_page_leaves_its_reason(reason: str) -> None:
    page = page_of(reason)
    (code,) = re.findall(r"```python\n(.*?)```", page, re.DOTALL)
    asked = re.search(r"--why (\w+),(\w+)`", page)
    knobs = re.search(r"knobs `(\{.*?\})`", page)
    chosen = re.search(r"options `(\{.*?\})`", page)
    if "This one needs a GPU" in page:
        report = pretended_on_a_gpu(code)
    else:
        options: dict[str, Any] = {"knobs": json.loads(knobs.group(1))} if knobs else {}
        options |= json.loads(chosen.group(1)) if chosen else {}
        stages: tuple[StageName, ...] = ("capture", "lower", "schedule")
        report = explore(code, Options(device="cpu", target="sm_90", produce=stages, **options))
    assert report.error is None, report.error
    found = {decision.reason for graph in report.graphs for decision in graph.decisions}
    for graph in report.graphs:
        found |= {decision.reason for decision in graph.layouts}
        found |= {decision.reason for decision in graph.foldings}
        found |= {decision.reason for decision in graph.paddings}
    if asked:
        found |= {answer.reason for answer in why(report, asked.group(1), asked.group(2))}
    assert reason in found


def pretended_on_a_gpu(code: str) -> rep.Report:
    """The example on tensors that only say that they are on a GPU."""
    names: dict[str, Any] = {}
    with FakeTensorMode():
        exec(code.replace("@torch.compile\n", ""), names)
        graph = make_fx(names["program"], decompositions())(names["x"])
    compilation = plan(lower(graph, Target(torch.device("cpu"), device_for("sm_90"), Options())))
    report = rep.Report(source=code, graphs=[rep.Graph(name="program")])
    present_lowered(compilation, report.graphs[0])
    present_schedule(compilation, report.graphs[0])
    return report
