"""Recompilations in the report's terms: which guard failed, on which value, and what followed."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from compiler.capture.diagnosis.comparisons import compared_value
from compiler.capture.diagnosis.sources import words_of
from compiler.capture.recording.torch_trace import payload_texts
from compiler.fx.lines import SNIPPET_FILE, lines_of_text
from compiler.report import Guard, Recompile
from compiler.wording import listed

#: `tensor 'x' size mismatch at index 0. expected 8, actual 16`, which is how a tensor guard says that it failed.
_TENSOR = re.compile(
    r"tensor '(?P<name>.+?)' (?P<property>size|stride|rank|dtype|requires_grad|dispatch key set) mismatch"
    r"(?: at index (?P<index>\d+))?\. expected (?P<expected>.+?)(?:, actual (?P<actual>.+))?$"
)
#: `GLOBAL_STATE changed: grad_mode autocast(cpu)_enabled`, which is how the guard on torch as a whole says so.
_STATE = re.compile(r"GLOBAL_STATE changed: (?P<names>\S.*)$")
_PROPERTIES = {
    "size": "dimension {index} of `{name}`",
    "stride": "the stride of dimension {index} of `{name}`",
    "rank": "the number of dimensions of `{name}`",
    "dtype": "the dtype of `{name}`",
    "requires_grad": "whether `{name}` requires a gradient",
    "dispatch key set": "the device or kind of `{name}`",
}
#: Names of C++ that a guard has for dtypes. Others differ from torch's in capitals alone.
_DTYPES = {
    "Byte": "uint8",
    "Char": "int8",
    "Short": "int16",
    "Int": "int32",
    "Long": "int64",
    "Half": "float16",
    "Float": "float32",
    "Double": "float64",
    "ComplexHalf": "complex32",
    "ComplexFloat": "complex64",
    "ComplexDouble": "complex128",
}


class _Change(NamedTuple):
    """What a guard was about, what it needed and what it met."""

    reason: str
    subject: str | None
    expected: str | None
    actual: str | None


def report_recompile(
    payload: str, function: str, earlier_guards: Sequence[Guard], values: Mapping[str, str]
) -> Recompile:
    """One recompilation, by the guard of the newest compiled code that did not hold.

    `earlier_guards` are those of all code that there was; `values` the guarded values of the call that was compiled
    anew, by Dynamo's name of them.
    """
    first, *others = payload_texts(payload)
    code = "the newest code" if others else "the existing code"
    text, _, stack = re.sub(r"^\d+/\d+:\s*", "", first).partition("\n")
    condition, _, origin = text.partition("  #")
    condition = condition.strip()
    lines = lines_of_text(stack)
    named = re.search(rf"{re.escape(SNIPPET_FILE)}:(\d+)", origin)
    line = lines[-1] if lines else int(named.group(1)) if named else _line_of_guard(condition, earlier_guards)
    found = _tensor_change(condition, code) or _state_change(condition, code) or _value_change(condition, code, values)
    return Recompile(function=function, line=line, guard=condition, **found._asdict())


def _tensor_change(condition: str, code: str) -> _Change | None:
    found = _TENSOR.match(condition)
    if found is None:
        return None
    name = words_of(found["name"])
    what = _PROPERTIES[found["property"]].format(name=name, index=found["index"])
    expected, actual = found["expected"], found["actual"]
    if found["property"] == "requires_grad":
        expected = {"requires_grad=1": "True", "requires_grad=0": "False"}.get(expected, expected)
        actual = {"True": "False", "False": "True"}.get(expected, actual)
    if found["property"] == "dtype":
        expected, actual = (_DTYPES.get(one, one.lower()) for one in (expected, actual or ""))
    subject = f"{name}.{found['property']}({found['index']})" if found["index"] else name
    was = f"was {actual}, and {code} is for {expected} only" if actual else f"was not {expected}"
    return _Change(f"{what} {was}", subject, expected, actual)


def _state_change(condition: str, code: str) -> _Change | None:
    found = _STATE.match(condition)
    if found is None:
        return None
    names = [f"`{name}`" for name in found["names"].split()]
    what, was = ("settings", "were others") if len(names) > 1 else ("setting", "was another")
    return _Change(f"the {what} {listed(names)} of torch {was} than {code} is for", None, None, None)


#: Dynamo tells an error in place of a guard that asks for what a call does not have, such as the base of no view.
_NOT_ASKED = re.compile(r"'\w+' object ")


def _value_change(condition: str, code: str, values: Mapping[str, str]) -> _Change:
    """What a guard on a Python value compared it with, and what it was instead."""
    plain = words_of(condition)
    if _NOT_ASKED.match(plain):
        return _Change(f"a guard of {code} cannot be asked of this call: `{plain}`", None, None, None)
    by_words = {words_of(name): value for name, value in values.items()}
    subject, expected = compared_value(plain) or (_guarded_name(plain), None)
    actual = by_words.get(subject) if subject else None
    what = subject
    if subject and plain.startswith("len(") and actual:
        what, actual = f"len({subject})", actual.rsplit(" ", 1)[-1]
    if actual is None:
        return _Change(f"`{plain}` no longer holds", subject, expected, None)
    return _Change(f"`{what}` was {actual}, and {code} needs `{plain}`", subject, expected, actual)


def _guarded_name(condition: str) -> str | None:
    """The name that a check of type or identity is about: `___check_type_id(k, 9395), type=<class 'int'>`."""
    found = re.match(r"___check_(?:type|obj)_id\((.+?), \d+\)", condition)
    return found[1] if found else None


def _line_of_guard(condition: str, guards: Sequence[Guard]) -> int | None:
    """Where the snippet used what the failed guard was about: `tensor 'x' size mismatch` is about `L['x']`."""
    quoted = re.search(r"'([^']+)'", condition)
    subject = words_of(quoted.group(1)) if quoted else None
    for guard in guards:
        about = words_of(guard.expression) == words_of(condition) or (subject is not None and guard.subject == subject)
        if about and guard.lines:
            return guard.lines[-1]
    return None
