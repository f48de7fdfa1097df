"""Guards, graph breaks and recompilations in the report's terms, from what torch tells of them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Any

import torch

from compiler.capture.lines import SNIPPET_FILE, lines_of_frames, lines_of_text
from compiler.capture.torch_internals import GuardFacts, guard_facts, payload_texts
from compiler.report import GraphBreak, Guard, Recompile

MOST_GUARDS = 200

#: State of torch as a whole, guarded in every graph alike: it says nothing about the snippet.
_GLOBAL_STATE = frozenset(
    "AUTOGRAD_SAVED_TENSORS_HOOKS DEFAULT_DEVICE DETERMINISTIC_ALGORITHMS FSDP_TRAINING_STATE GLOBAL_STATE GRAD_MODE "
    "SHAPE_ENV TORCH_FUNCTION_STATE EMPTY_NN_MODULE_HOOKS_DICT NOT_PRESENT_IN_GENERIC_DICT".split()
)
_LIBRARY_NAMES = re.compile(r"^G\['(torch|F|nn|math|np|__builtins_dict__\w*|__import_\w+)'\]")
#: How nn.Module keeps its parts: guarded by the dozen, and never what changes.
_MODULE_INTERNALS = re.compile(r"\._(modules|parameters|buffers)$")
_TYPE_CHECK = re.compile(r"___check_type_id\((.+?), \d+\), type=<class '([^']+)'>")
_IDENTITY_CHECK = re.compile(r"___check_obj_id\((.+?), \d+\), type=<class '[^']+'>")
_OBJECT_ID = re.compile(r"(, )?\b\d{12,}\b")


def report_guards(guards: Iterable[Any]) -> list[Guard]:
    """The guards that concern the snippet, at most `MOST_GUARDS`: no state of torch, no functions of libraries."""
    facts = [guard_facts(guard) for guard in sorted(guards)]
    wanted = [fact for fact in facts if fact.kind not in _GLOBAL_STATE and not _is_of_library(fact.name)]
    reported: dict[tuple[str, str], Guard] = {}
    for fact in wanted:
        expression = _expression(fact)
        if expression:
            lines = list(lines_of_frames(fact.frames))
            reported[fact.name, expression] = Guard(kind=fact.kind, name=fact.name, expression=expression, lines=lines)
    return list(reported.values())[:MOST_GUARDS]


def _is_of_library(name: str) -> bool:
    return _LIBRARY_NAMES.match(name) is not None or _MODULE_INTERNALS.search(name) is not None


def _expression(fact: GuardFacts) -> str:
    if fact.kind == "TENSOR_MATCH":
        return _tensor_expression(fact)
    return " and ".join(_readable(code) for code in fact.code)


def _readable(code: str) -> str:
    """Dynamo's code without the addresses of objects, which differ from run to run.

    ___check_type_id(L['self'], 9395), type=<class '__main__.MLP'>  ->  type(L['self']) is MLP
    """
    code = _TYPE_CHECK.sub(lambda found: f"type({found[1]}) is {found[2].removeprefix('__main__.')}", code)
    code = _IDENTITY_CHECK.sub(r"\1 is the same object", code)
    return _OBJECT_ID.sub("", code)


def _tensor_expression(fact: GuardFacts) -> str:
    """What a tensor guard compares. Its own code lists only what it does besides: the comparison itself is in C++."""
    tensor = fact.subject
    if not isinstance(tensor, torch.Tensor):
        return f"{fact.name} has the dtype, device, sizes and strides that it had"
    sizes = ", ".join(str(size) for size in tensor.shape)
    parts = [f"{str(tensor.dtype).removeprefix('torch.')}[{sizes}] on {tensor.device}"]
    if tensor.layout == torch.strided:
        parts.append(f"strides {tuple(tensor.stride())}")
    parts.append("requires grad" if tensor.requires_grad else "requires no grad")
    return f"{fact.name} is {', '.join(parts)}"


def report_break(payload: str) -> GraphBreak:
    """One graph break from the text that torch writes of it.

    Graph break in user code at snippet.py:16
    Graph Break Reason: Data-dependent branching
      Explanation: Detected ...
      Hint: ...
    """
    start = payload.find("Graph Break Reason:")
    reason = payload[start + len("Graph Break Reason:") :] if start >= 0 else payload
    reason = re.split(r"\n\s*Developer debug context:|\nUser code traceback:|\nUser Stack Trace:", reason)[0]
    before_explanation = reason.split("Explanation:")[0].strip().splitlines()
    kind = before_explanation[-1].strip() if before_explanation else None
    explanation = _first_match(r"Explanation:\s*(.+?)(?=\n\s*\n|\n\s*Hint:|\Z)", reason)
    hints = [" ".join(hint.split()) for hint in re.findall(r"Hint:\s*(.+?)(?=\n\s*Hint:|\n\s*\n|\Z)", reason, re.S)]
    hints = [hint for hint in hints if "report an issue" not in hint]
    return GraphBreak(
        reason=_one_sentence(explanation or kind or reason),
        line=_break_line(payload),
        kind=kind,
        hint=" ".join(hints) or None,
    )


def _break_line(payload: str) -> int | None:
    """The innermost line of the user: torch's header names a frame of a library where that is innermost."""
    stack = payload.split("User code traceback:")[-1].split("Traceback (most recent call last)")[0]
    lines = lines_of_text(stack)
    if lines:
        return lines[-1]
    header = re.search(rf"at {re.escape(SNIPPET_FILE)}:(\d+)", payload)
    return int(header.group(1)) if header else None


def distinct_breaks(breaks: Iterable[GraphBreak]) -> list[GraphBreak]:
    """Each break once, by its line and kind: a loop meets the same one again and again."""
    return list({(item.line, item.kind): item for item in reversed(list(breaks))}.values())[::-1]


def report_recompile(payload: str, function: str, earlier_guards: Sequence[Guard]) -> Recompile:
    """One recompilation, by the guard of the newest compiled code that did not hold."""
    first = payload_texts(payload)[0]
    text, _, stack = re.sub(r"^\d+/\d+:\s*", "", first).partition("\n")
    condition, _, origin = text.partition("  #")
    condition = condition.strip()
    lines = lines_of_text(stack)
    named = re.search(rf"{re.escape(SNIPPET_FILE)}:(\d+)", origin)
    line = lines[-1] if lines else int(named.group(1)) if named else _line_of_guard(condition, earlier_guards)
    is_expression = bool(origin) or re.search(r"==|!=|<|>|\bis\b|^not ", condition) is not None
    reason = f"the guard `{condition}` no longer holds" if is_expression else condition
    return Recompile(function=function, reason=reason, line=line)


def _line_of_guard(condition: str, guards: Sequence[Guard]) -> int | None:
    """Where the snippet used what the failed guard was about: `tensor 'x' size mismatch` is about `L['x']`."""
    subject = _first_match(r"'([^']+)'", condition)
    for guard in guards:
        about = guard.expression == condition or (subject is not None and guard.name in (subject, f"L['{subject}']"))
        if about and guard.lines:
            return guard.lines[-1]
    return None


def _first_match(pattern: str, text: str) -> str | None:
    found = re.search(pattern, text, re.S)
    return found.group(1) if found else None


def _one_sentence(text: str) -> str:
    flat = " ".join(text.split())
    ended = re.match(r"(.+?[.!?])(?= [A-Z]|$)", flat)
    return ended.group(1) if ended else flat
