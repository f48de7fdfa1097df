"""A report as text is safe to show: no markup, no hidden characters, no way out of a code block.

markdown-it-py, an implementation of CommonMark that is not ours, says what the text means.
"""

from __future__ import annotations

import io
import re
import unicodedata
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from markdown_it import MarkdownIt
from rich.console import Console

from compiler.report import (
    Contestant,
    ContestantOutcome,
    Decision,
    Environment,
    Error,
    Graph,
    GraphBreak,
    Kernel,
    Note,
    Peer,
    Report,
    Summary,
    TimingResult,
)
from server.answer import print_answer
from server.plain_text import code, fenced, prose, row, visible
from server.printer import print_report
from server.summary import markdown

ATTACKS = (
    "<img src=x onerror=alert(1)>",
    "</code><script>alert(1)</script>",
    "` <img src=x onerror=alert(1)> `",
    "``` \n<script>alert(1)</script>\n```",
    "~~~\n<b>\n~~~",
    "[click](javascript:alert(1))",
    "![x](http://tracker.example/x.png)",
    "<http://evil.example>",
    "[a]: http://evil.example\n[a]",
    "\\`<img src=x onerror=alert(1)>\\`",
    "x\\\n<!-- comment",
    "one\n\n# two\n\n<details open ontoggle=alert(1)>",
    "    <b>indented</b>",
    "- ```\n<b>",
    "a | b <b> | `c`",
    "`` ` <b onclick=alert(1)>",
    "\\| `a\\` | <b> `",
)
IN_TERMINALS = (
    "[link=http://evil.example]x[/link]",
    "[/]",
    "[red]",
    "x\\",
    "\x1b]8;;http://evil.example\x07x",
    "\x9b2J",
)
#: The sequences that say in which style a terminal writes.
STYLES = re.compile(r"\x1b\[[0-9;]*m")
HIDDEN = "\u202e\u2066\u200f\u061c\u200b\ufeff\u2028\u2029\x00\x07\x1b[31m\x7f\x9b\U000e0041\ud800"

MARKUP = {"html_block", "html_inline", "link_open", "image"}


def tokens_of(text: str) -> list[Any]:
    parsed = MarkdownIt("commonmark", {"html": True}).enable("table").parse(text)
    return [token for block in parsed for token in (block, *(block.children or ()))]


def report_of(text: str) -> Report:
    decision = Decision.model_validate(
        {
            "a": text,
            "b": text,
            "round": 1,
            "kind": "vertical",
            "verdict": "refused",
            "reason": "shape.numel",
            "message": text,
            "would_fuse_if": text,
        }
    )
    kernel = Kernel(name=text, kind="cpp", nodes=[], source=text, same_as=text, predicted_us=1.0)
    timed = Contestant(name=text, samples_ms=[1.0], median_ms=1.0, low_ms=1.0, high_ms=1.0)
    return Report(
        environment=Environment(device_name=text, decides_for=text, target=text),
        timing=TimingResult(method=text, device=text, cold_l2=False, contestants=[timed, timed]),
        peer=Peer(name=text, message=text, contestants=[ContestantOutcome(name=text, failure=text)] * 2),
        output=text,
        id="a" * 20,
        source=text,
        status="user_error",
        error=Error(type=text, message=text, line=3, hint=text),
        notes=[Note(message=text)],
        summary=Summary(verdict=text),
        breaks=[GraphBreak(reason=text, line=4, title=text, remedy=text, before=[], after=[])],
        graphs=[Graph(name=text, function=text, kernels=[kernel], decisions=[decision])],
    )


@pytest.mark.parametrize("attack", ATTACKS)
def test_no_text_of_a_report_becomes_markup(attack: str) -> None:
    for wrapped in (attack, f"before {attack} after", f"`{attack}", f"{attack}`"):
        found = tokens_of(markdown(report_of(wrapped)))
        assert not MARKUP & {token.type for token in found}
        fences = [token for token in found if token.type == "fence"]
        assert {token.info for token in fences} <= {"python", "cpp", "text", "triton"}
        assert fences[-1].info == "python" and fences[-1].content.rstrip("\n") == wrapped.rstrip()


@settings(max_examples=300, deadline=None)
@given(st.text(alphabet=st.sampled_from("`<>\\~[]():!#|*_-= \t\n\rab/?&\u202e"), max_size=60))
def test_no_mixture_of_marks_becomes_markup(text: str) -> None:
    for token in tokens_of(f"{prose(text)}\n\n- {code(text)} and {prose(text)}"):
        assert token.type not in MARKUP
        assert token.type != "fence"
    (fence,) = tokens_of(fenced(text, "python"))
    assert fence.type == "fence" and fence.content.rstrip("\n") == visible(text).rstrip()


@settings(max_examples=300, deadline=None)
@given(st.lists(st.text(alphabet=st.sampled_from("`<>\\|b/! "), max_size=20), min_size=3, max_size=3))
def test_no_cell_of_a_table_reaches_into_the_next(cells: list[str]) -> None:
    found = tokens_of(f"{row('abc')}\n|---|---|---|\n{row(cells)}")
    assert not MARKUP & {token.type for token in found}
    assert len([token for token in found if token.type == "td_open"]) == 3


@pytest.mark.parametrize("print_it", [print_answer, print_report], ids=["answer", "all"])
@pytest.mark.parametrize("attack", [*IN_TERMINALS, HIDDEN], ids=repr)
def test_a_terminal_is_told_nothing_but_styles(print_it: Callable[[Report, Console], None], attack: str) -> None:
    written = io.StringIO()
    print_it(report_of(attack), Console(file=written, force_terminal=True, color_system="truecolor", width=100))
    text = STYLES.sub("", written.getvalue())
    assert {character for character in text if unicodedata.category(character) in ("Cc", "Cf", "Zl", "Zp")} <= {"\n"}
    assert visible(attack)[:4] in text


@settings(max_examples=200, deadline=None)
@given(st.text(alphabet=st.sampled_from("`<>\\ a|b"), min_size=1, max_size=30))
def test_a_code_span_holds_all_of_its_text(text: str) -> None:
    found = [token for token in tokens_of(str(prose(f"x {code(text)} y"))) if token.type == "code_inline"]
    if text.strip():
        assert [token.content.strip() for token in found] == [text.strip()]


def test_a_line_of_many_marks_takes_no_longer_than_others_of_its_length() -> None:
    """Where each mark is compared with all others, this takes an hour."""
    many = 400_000
    assert prose("` " * many) == "` " * many


def test_what_cannot_be_seen_is_written_out() -> None:
    text = markdown(report_of(f"a{HIDDEN}b"))
    seen = {character for character in text if unicodedata.category(character) in ("Cc", "Cf", "Cs", "Zl", "Zp")}
    assert seen <= {"\n"}
    assert "\\u202e" in text and "\\x1b" in text and "\\ud800" in text
    text.encode("utf-8")
    assert (
        visible("na\u00efve \u5b57 \U0001f468\u200d\U0001f469 \t\n")
        == "na\u00efve \u5b57 \U0001f468\u200d\U0001f469 \t\n"
    )


def test_ordinary_text_is_left_as_it_is() -> None:
    for text in ("x.shape[0] < 4 and a <= b", "`buf0` and `buf1`: fused.", "C:\\new\\table", "2 ** 3, a_b, x[1]"):
        assert prose(text) == text
