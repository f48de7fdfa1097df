"""Text that leaves the service as Markdown or HTML, made safe for whoever shows it.

A report quotes what the snippet's author wrote, and a job may forge any text of it. Three things must never come of it:
markup (a raw tag, a link), text that reads otherwise than it runs (control characters and marks of direction, as in
"Trojan Source", CVE-2021-42574), and text that leaves the code block that it belongs to.

Rules of Markdown are those of CommonMark 0.31.
"""

from __future__ import annotations

import re
import unicodedata
from collections import defaultdict, deque
from collections.abc import Iterable

from rich.markup import escape

_KEPT = frozenset("\n\t\u200c\u200d")
"""Of the characters that print nothing: line ends, tabs, and the two joiners that scripts and emoji need."""

_BACKTICKS = re.compile(r"`+")
_TAG = re.compile(r"<(?=[A-Za-z/!?])")
_LINK = re.compile(r"\](?=[(\[:])")
_BACKSLASH = re.compile(r"\\(?=[!-/:-@\[-`{}~]|$)")
_FENCE_OF_TILDES = re.compile(r"^(\s*(?:[-*+>]\s*)*)~~~", re.MULTILINE)


class Safe(str):
    """Markdown that needs nothing more done to it."""


def visible(text: str) -> str:
    """`text` with every character that would be invisible, or would turn the text around, written as its escape."""
    if text.isascii() and text.isprintable():
        return text
    text = text.replace("\r\n", "\n").replace("\r", "\n")
    return "".join(_escaped(one) if _is_unseen(one) else one for one in text)


def prose(text: str) -> str:
    """Markdown of our own with quoted text in it: tags, links and fences come to be plain text, code spans stay."""
    if isinstance(text, Safe):
        return text
    lines = (_line(line) for line in visible(text).split("\n"))
    return Safe(_FENCE_OF_TILDES.sub(r"\1\\~~~", "\n".join(lines)))


def code(text: str) -> str:
    """`text` as a code span, which no backtick in it ends."""
    text = one_line(text)
    fence = "`" * (max((len(run) for run in _BACKTICKS.findall(text)), default=0) + 1)
    return f"{fence} {text} {fence}" if "`" in text else f"{fence}{text}{fence}"


def one_line(text: str) -> str:
    """`text` without line ends, for a heading, a list or a quotation, which a line end would end."""
    return " ".join(visible(text).split("\n"))


def row(cells: Iterable[str]) -> str:
    """A row of a table. Cells are parted before code spans are looked for, so no span reaches from one to the next."""
    return Safe(f"| {' | '.join(map(_cell, cells))} |")


def terminal(text: str) -> str:
    """`text` within the markup of `rich`, which takes words in brackets for styles and links."""
    return escape(visible(text))


def fenced(text: str, language: str = "") -> str:
    """A code block whose fence is longer than any run of backticks in it. `language` is one of our own words."""
    text = visible(text).rstrip()
    fence = "`" * max(3, max((len(run) for run in _BACKTICKS.findall(text)), default=0) + 1)
    return Safe(f"{fence}{language}\n{text}\n{fence}")


def joined(parts: Iterable[str]) -> str:
    """The parts that say something, with an empty line between."""
    return Safe("\n\n".join(prose(part) for part in parts if part))


def _cell(text: str) -> str:
    text = one_line(text)
    if "|" not in text:
        return _line(text)
    # Dialects differ on what a backslash before a bar does in a code span: there is none here.
    return _outside(text).replace("`", "\\`").replace("|", "\\|")


def _line(line: str) -> str:
    """One line, in which code spans begin and end as CommonMark says, so that no other line can change where."""
    done, place = [], 0
    runs = list(_BACKTICKS.finditer(line))
    later: dict[int, deque[int]] = defaultdict(deque)
    for number, run in enumerate(runs):
        later[len(run[0])].append(number)
    for opening in runs:
        same = later[len(opening[0])]
        same.popleft()
        if opening.start() < place:
            continue
        done.append(_outside(line[place : opening.start()]))
        if same:
            place = runs[same[0]].end()
            done.append(line[opening.start() : place])
        else:
            done.append("\\`" * len(opening[0]))
            place = opening.end()
    return "".join([*done, _outside(line[place:])])


def _outside(text: str) -> str:
    # A backslash in front of one of ours, or of a code span, would take the effect of that away.
    text = _BACKSLASH.sub(r"\\\\", text)
    return _LINK.sub(r"\\]", _TAG.sub(r"\\<", text))


def _is_unseen(one: str) -> bool:
    # Cc control, Cf format (marks of direction, invisible signs), Cs half a character, Zl and Zp line ends.
    return one not in _KEPT and unicodedata.category(one) in ("Cc", "Cf", "Cs", "Zl", "Zp")


def _escaped(one: str) -> str:
    number = ord(one)
    return f"\\x{number:02x}" if number < 256 else f"\\u{number:04x}" if number < 65536 else f"\\U{number:08x}"
