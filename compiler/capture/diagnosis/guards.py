"""Guards in the report's terms: what Dynamo checks before it uses a graph, and which change of a call fails it.

Dynamo's guard objects say what is guarded, by which line, and what the value was; its C++ guards, which only their
printed form tells of, say which sizes of a tensor are compared and which were left open. Both are read here.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import Any

import torch

from compiler.capture.diagnosis.comparisons import fails_comparison
from compiler.capture.diagnosis.sources import words_of
from compiler.capture.torch_internals import NO_VALUE, GuardFacts, guard_facts
from compiler.fx.lines import lines_of_frames
from compiler.report import Guard
from compiler.wording import SNIPPET_FILE

MOST_GUARDS = 200
_LONGEST_VALUE = 80

#: State of torch as a whole, guarded in every graph alike: it says nothing about the snippet.
_GLOBAL_STATE = frozenset(
    "AUTOGRAD_SAVED_TENSORS_HOOKS DEFAULT_DEVICE DETERMINISTIC_ALGORITHMS FSDP_TRAINING_STATE GLOBAL_STATE GRAD_MODE "
    "TORCH_FUNCTION_STATE EMPTY_NN_MODULE_HOOKS_DICT NOT_PRESENT_IN_GENERIC_DICT".split()
)
#: Under an unnamed scope are the globals of code that a library generated, as of a named tuple.
_LIBRARY_NAMES = re.compile(
    r"^(list\(dict\.keys\()*"
    r"(G\['(torch|F|nn|math|np|__builtins_dict__\w*|__import_\w+|___unnamed_scope\w*)'\]|__import__\()"
)
#: What the surroundings of a call are, of guards that name no value: what holds, and the change that fails it.
_SURROUNDINGS = {
    "FUNCTORCH_STACK_MATCH": (
        "the transforms of torch.func around the call",
        "a call within other transforms of `torch.func`, such as `vmap` and `grad`",
    ),
    "DUAL_LEVEL": (
        "the level of forward-mode differentiation around the call",
        "a call within another level of forward-mode differentiation, as `torch.func.jvp` opens it",
    ),
}
#: How nn.Module keeps its parts: guarded by the dozen, and never what changes.
_MODULE_INTERNALS = re.compile(r"\._(modules|parameters|buffers)$")
_TYPE_CHECK = re.compile(r"___check_type_id\((.+?), \d+\), type=<class '([^']+)'>")
_IDENTITY_CHECK = re.compile(r"___check_obj_id\((.+?), \d+\), type=<class '[^']+'>")
#: An address is an argument. A long number that something is compared with is none.
_OBJECT_ID = re.compile(r"(?:, |(?<=\())\d{12,}\b")
_CHECKED_TENSOR = re.compile(r"check_tensor\((.+), \w+, DispatchKeySet\(.*size=\[([^\]]*)\], stride=\[([^\]]*)\]\)")
_LAMBDA = re.compile(rf"LAMBDA_GUARD: (.+?)\s+#.*\b{re.escape(SNIPPET_FILE)}:(\d+)")
_ORDINALS = "first second third fourth fifth sixth seventh eighth".split()


@dataclass(frozen=True)
class GuardedTensor:
    """What a tensor guard compares; None in sizes and strides is a number that was left open."""

    dtype: str
    device: str
    sizes: tuple[int | None, ...]
    strides: tuple[int | None, ...]
    requires_grad: bool

    @staticmethod
    def of(tensor: torch.Tensor) -> GuardedTensor:
        strides = tuple(int(stride) for stride in tensor.stride()) if tensor.layout == torch.strided else ()
        sizes = _sizes_of(tensor)
        dtype = str(tensor.dtype).removeprefix("torch.")
        return GuardedTensor(dtype, str(tensor.device), sizes, strides, tensor.requires_grad)

    def expression(self, name: str) -> str:
        parts = [f"{self.dtype}{_numbers(self.sizes)} on {self.device}"]
        if self.strides:
            parts.append(f"strides {_numbers(self.strides, '()')}")
        parts.append("requires grad" if self.requires_grad else "requires no grad")
        return f"{name} is {', '.join(parts)}"

    def fails_when(self, subject: str) -> str:
        """`x` with another dtype than float32, another device than cpu, a first dimension other than 8, ..."""
        changes = [f"another dtype than {self.dtype}", f"another device than {self.device}"]
        changes += [
            f"a {_ORDINALS[axis] if axis < len(_ORDINALS) else f'{axis + 1}th'} dimension other than {size}"
            for axis, size in enumerate(self.sizes)
            if size is not None
        ]
        if any(stride is not None for stride in self.strides):
            changes.append(f"other strides than {_numbers(self.strides, '()')}")
        changes.append("no gradient required" if self.requires_grad else "a gradient required")
        return f"`{subject}` with {', '.join(changes[:-1])}, or {changes[-1]}"


@dataclass
class CompilationGuards:
    """The guards of one compilation as they were when it was made, and what the guarded values were, as short texts.

    `values` is by Dynamo's name of the value. Nothing of the snippet is kept alive.
    """

    guards: list[Guard] = field(default_factory=list)
    tensors: dict[str, GuardedTensor] = field(default_factory=dict)
    values: dict[str, str] = field(default_factory=dict)

    def finished(self, printed: str) -> list[Guard]:
        """The guards for the report, with what only the printed C++ guards tell: open sizes, lines of size guards."""
        compared = _compared_sizes(printed)
        lines = {found[1].strip(): int(found[2]) for found in _LAMBDA.finditer(printed)}
        result = []
        for guard in self.guards:
            tensor = self.tensors.get(guard.name) if guard.kind == "TENSOR_MATCH" else None
            if tensor is not None:
                sizes, strides = compared.get(guard.name, (tensor.sizes, tensor.strides))
                tensor = replace(tensor, sizes=sizes, strides=strides)
                update = {"expression": tensor.expression(guard.name), "fails_when": tensor.fails_when(guard.subject)}
                guard = guard.model_copy(update=update)
            elif not guard.lines and guard.expression in lines:
                guard = guard.model_copy(update={"lines": [lines[guard.expression]]})
            result.append(guard)
        return result


def read_guards(entries: Iterable[Any]) -> CompilationGuards:
    """The guards that concern the snippet, at most `MOST_GUARDS`: no state of torch, no functions of libraries."""
    read = CompilationGuards()
    seen: set[tuple[str, str]] = set()
    for facts in map(guard_facts, entries):
        if facts.kind in _GLOBAL_STATE or _is_of_library(facts.name):
            continue
        if facts.value is not NO_VALUE:
            read.values.setdefault(facts.name, short_value(facts.value))
        if isinstance(facts.value, torch.Tensor):
            read.tensors[facts.name] = GuardedTensor.of(facts.value)
            sizes = enumerate(_sizes_of(facts.value))
            read.values.update({f"{facts.name}.size()[{axis}]": str(size) for axis, size in sizes if size is not None})
        for guard in _guards_of(facts):
            if (guard.name, guard.expression) not in seen and len(seen) < MOST_GUARDS:
                seen.add((guard.name, guard.expression))
                read.guards.append(guard)
    return read


def short_value(value: Any) -> str:
    """A value as a reader would write it: numbers and texts as they are, tensors by dtype and sizes, others by type."""
    if isinstance(value, torch.Tensor):
        return f"{str(value.dtype).removeprefix('torch.')}{_numbers(_sizes_of(value))}"
    if value is None or isinstance(value, bool | int | float | complex | str):
        return _cut(repr(value))
    if isinstance(value, list | tuple | dict | set):
        return f"{type(value).__name__} of {len(value)}"
    name = getattr(value, "__name__", None)
    return _cut(name) if isinstance(name, str) else type(value).__name__


def _sizes_of(tensor: torch.Tensor) -> tuple[int | None, ...]:
    """None for the lengths of a nested tensor's rows, which count as one size and have no number."""
    return tuple(
        None if isinstance(size, torch.SymInt) and size.node.is_nested_int() else int(size) for size in tensor.shape
    )


def _is_of_library(name: str) -> bool:
    return _LIBRARY_NAMES.match(name) is not None or _MODULE_INTERNALS.search(name) is not None


def _guards_of(facts: GuardFacts) -> list[Guard]:
    lines = list(lines_of_frames(facts.frames))
    subject = words_of(facts.name)
    if facts.kind == "TENSOR_MATCH":
        expression = f"{facts.name} has the dtype, device, sizes and strides that it had"
        if isinstance(facts.value, torch.Tensor):
            expression = GuardedTensor.of(facts.value).expression(facts.name)
        fails = f"`{subject}` with another dtype, device, sizes or strides"
        return [_guard(facts, expression, subject, fails, lines)]
    if facts.kind == "SHAPE_ENV":
        # Guards on sizes are of no one name; each has its line in the printed guards.
        return [_guard(facts, code, words_of(code), _size_change(code), []) for code in facts.code]
    if facts.kind in _SURROUNDINGS:
        subject, fails = _SURROUNDINGS[facts.kind]
        return [_guard(facts, f"{subject}: as it was", subject, fails, lines)]
    expression = " and ".join(_readable(code) for code in facts.code)
    return [_guard(facts, expression, subject, _change(facts, subject), lines)] if expression else []


def _guard(facts: GuardFacts, expression: str, subject: str, fails_when: str, lines: list[int]) -> Guard:
    return Guard(
        kind=facts.kind, name=facts.name, expression=expression, lines=lines, subject=subject, fails_when=fails_when
    )


def _change(facts: GuardFacts, subject: str) -> str:
    """The change of the guarded value that fails a guard, by the check that Dynamo's code makes of it."""
    code = facts.code[-1]
    checked_type = _TYPE_CHECK.match(code)
    if checked_type:
        return f"`{subject}` of another type than {checked_type[2].rsplit('.', 1)[-1]}"
    if _IDENTITY_CHECK.match(code):
        is_constant = facts.value is None or isinstance(facts.value, bool)
        return f"`{subject}` other than {facts.value}" if is_constant else f"another object as `{subject}`"
    if code.startswith("list(dict.keys("):
        return f"`{subject}` with other keys"
    if code.startswith("len("):
        return f"`{subject}` of another length than {code.rsplit(' ', 1)[-1]}"
    if code.startswith(("hasattr(", "not hasattr(")):
        return f"`{subject}` with another set of attributes"
    return _size_change(_readable(code))


def _size_change(code: str) -> str:
    return fails_comparison(words_of(code)) or f"a call for which `{words_of(code)}` does not hold"


def _readable(code: str) -> str:
    """Dynamo's code without the addresses of objects, which differ from run to run.

    ___check_type_id(L['self'], 9395), type=<class '__main__.MLP'>  ->  type(L['self']) is MLP
    """
    code = _TYPE_CHECK.sub(lambda found: f"type({found[1]}) is {found[2].removeprefix('__main__.')}", code)
    code = _IDENTITY_CHECK.sub(r"\1 is the same object", code)
    return _OBJECT_ID.sub("", code)


def _compared_sizes(printed: str) -> dict[str, tuple[tuple[int | None, ...], tuple[int | None, ...]]]:
    """Sizes and strides that each tensor guard compares, by Dynamo's name of the tensor."""
    checks = _CHECKED_TENSOR.finditer(printed)
    return {found[1]: (_checked_numbers(found[2]), _checked_numbers(found[3])) for found in checks}


def _checked_numbers(text: str) -> tuple[int | None, ...]:
    return tuple(None if part.strip() == "None" else int(part) for part in text.split(",") if part.strip())


def _numbers(numbers: tuple[int | None, ...], brackets: str = "[]") -> str:
    inner = ", ".join("any" if number is None else str(number) for number in numbers)
    return f"{brackets[0]}{inner}{',' if brackets == '()' and len(numbers) == 1 else ''}{brackets[1]}"


def _cut(text: str) -> str:
    return text if len(text) <= _LONGEST_VALUE else text[:_LONGEST_VALUE] + "…"
