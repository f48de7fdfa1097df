"""Graph breaks in the report's terms, parsed from torch's own text."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from compiler.capture.diagnosis.break_kinds import BreakKind, kind_of_break
from compiler.fx.lines import SNIPPET_FILE, lines_of_text
from compiler.report import GraphBreak

#: Dynamo's name of a graph that it captured and that could not be traced further.
_OF_A_GRAPH = "Backend compiler exception"
#: Explanations that explain nothing: Dynamo's name of the break says more.
_SAYS_NOTHING = re.compile(
    r"((this is )?(currently )?not supported|dynamo does not support this|"
    r"`torch.compile` currently can't trace this)\.?",
    re.IGNORECASE,
)


def report_break(payload: str) -> GraphBreak:
    """One graph break from the text that torch writes of it.

    Graph break in user code at snippet.py:16
    Graph Break Reason: Data-dependent branching
      Explanation: Detected ...
      Hint: ...
      Developer debug context: ...
     For more details about this graph break, please visit: https://...
    """
    payload = re.sub(r"/\S*/site-packages/| at 0x[0-9a-f]+(?=>)", "", payload)
    start = payload.find("Graph Break Reason:")
    told = payload[start + len("Graph Break Reason:") :] if start >= 0 else payload
    told = re.split(r"\nUser code traceback:|\nUser Stack Trace:|\nStack variable source attribution:", told)[0]
    reason = re.split(r"\n\s*Developer debug context:", told)[0]
    before_explanation = reason.split("Explanation:")[0].strip().splitlines()
    name = before_explanation[-1].strip() if before_explanation else None
    explanation = _first_match(r"Explanation:\s*(?!Hint:)(\S.*?)(?=\n\s*\n|\n\s*Hint:|\Z)", reason)
    if explanation is not None and name and _SAYS_NOTHING.fullmatch(explanation.strip()):
        explanation = name
    hints = [" ".join(hint.split()) for hint in re.findall(r"Hint:\s*(.+?)(?=\n\s*Hint:|\n\s*\n|\Z)", reason, re.S)]
    hints = [hint for hint in hints if "report an issue" not in hint.lower()]
    # Hints name whatever might help with a whole class of breaks; only the rest is about this one.
    kind = kind_of_break(name or "", re.sub(r"\n\s*Hint:.+?(?=\n\s*Hint:|\n\s*\n|\Z)", "", told, flags=re.S))
    if f"at {SNIPPET_FILE}:" not in payload.splitlines()[0] and kind.id in ("explicit", "disabled"):
        hints = []  # to change the code, which is PyTorch's
        explanation = kind.sentence if kind.id == "explicit" else explanation
    if name == _OF_A_GRAPH and kind.id != "other":
        explanation, hints = kind.sentence, []  # Dynamo blames the backend
    return GraphBreak(
        reason=_one_sentence(explanation or name or reason),
        line=_break_line(payload),
        kind=name,
        hint=" ".join(hints) or None,
        category=kind.id,
        title=kind.title,
        remedy=_remedy(kind, hints),
        url=_first_match(r"please visit:\s*(https://\S+\.html)", payload),
    )


def _remedy(kind: BreakKind, hints: Sequence[str]) -> str:
    """That of the kind. Of what is of none, what Dynamo hints at, if it does."""
    if kind.id != "other":
        return kind.remedy
    hint = " ".join(hints).removesuffix(".")
    return f"Dynamo's hint: {hint}." if hint else "Move the line out of the compiled function."


def _break_line(payload: str) -> int | None:
    """The innermost line of the user: torch's header names a frame of a library where that is innermost. Where a graph
    could not be traced by the backend, that of the operation."""
    operation = payload.split("Original traceback:", 1)[-1].split("Use tlparse")[0]
    if operation != payload and lines_of_text(operation):
        return lines_of_text(operation)[-1]
    stack = payload.split("User code traceback:")[-1].split("Traceback (most recent call last)")[0]
    lines = lines_of_text(stack)
    if lines:
        return lines[-1]
    header = re.search(rf"at {re.escape(SNIPPET_FILE)}:(\d+)", payload)
    return int(header.group(1)) if header else None


def distinct_breaks(breaks: Iterable[GraphBreak]) -> list[GraphBreak]:
    """Each break once, by its line and Dynamo's name, with the graphs around every time that it was met."""
    distinct: dict[tuple[int | None, str | None], GraphBreak] = {}
    for found in breaks:
        known = distinct.setdefault((found.line, found.kind), found)
        if known is not found:
            known.count += found.count
            known.before = list(dict.fromkeys([*known.before, *found.before]))
            known.after = list(dict.fromkeys([*known.after, *found.after]))
    return list(distinct.values())


def _first_match(pattern: str, text: str) -> str | None:
    found = re.search(pattern, text, re.S)
    return found.group(1) if found else None


def _one_sentence(text: str) -> str:
    # Addresses of objects differ from run to run: a break would seem new each time.
    flat = re.sub(r" at 0x[0-9a-f]+", "", " ".join(text.split()))
    ended = re.match(r"(.+?[.!?])(?= [A-Z]|$)", flat)
    return ended.group(1) if ended else flat
