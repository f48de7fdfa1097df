"""The wrapper's text as a flat list of steps, which `flat.cpp` executes without Python frames.

    add = empty((16,), (1,), torch.float32)        CALL_WITH add, empty, ((16,), (1,), torch.float32)
    fused_sin_add(x, add)                          CALL nowhere, fused_sin_add, x, add
    return [add]                                   GIVE add

What each step calls, and every argument that is no tensor of the call, is looked up once, when the list is made. Only
what is known here is translated: calls, results that are unpacked, lists, names, `del`. Text with anything else in it
(a size that is open) is left to Python, which runs the very text.
"""

from __future__ import annotations

import ast
import ctypes
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch

from compiler.accelerators import is_on
from compiler.capture.shortcuts.thin_calls import set_frame_evaluation
from compiler.capture.torch_internals import set_gradients
from compiler.runtime.host.launcher import MOST_ARGUMENTS, Flat, flat_calls

#: Kinds of steps, and the most slots that they may be about; as in flat.cpp.
CALL, CALL_WITH, UNPACK, LIST, MOVE, FREE, GIVE = range(7)
MOST_SLOTS = 512
#: What autograd records nothing of, besides kernels: memory is made, filled, or looked at as another tensor.
_WITHOUT_GRADIENTS = frozenset({"empty", "view", "draw_seeds"})
#: Functions that give the same for the same constants, so that calling them once is enough.
_OF_CONSTANTS = frozenset({"torch.device", "float", "complex"})

Call = Callable[[list[Any]], list[Any]]
Slot = tuple[str, int]
NOWHERE: Slot = "nowhere", 0


class _Unknown(Exception):
    """The text has something that no step does."""


@dataclass(frozen=True)
class FlatCall:
    """Called with a list of inputs, as `boxed`; `direct` takes them by position. All give the list of outputs, and run
    with gradients off where autograd would record a part; `direct` also keeps Dynamo out."""

    direct: Callable[..., list[Any]]
    boxed: Callable[[list[Any]], list[Any]]

    def __call__(self, inputs: list[Any]) -> list[Any]:
        return self.boxed(inputs)


def flat_call(
    text: str, scope: Mapping[str, Any], kernels: Collection[str], call: Call, on_device: int | None = None
) -> FlatCall | None:
    """The function `call(inputs)` that `text` defines, whose other names `scope` has, `kernels` among them; None where
    it must be run by Python. With `on_device`, `call` is what is called while another GPU is the current one."""
    if not is_on("flat"):
        return None
    (function,) = ast.parse(text).body
    assert isinstance(function, ast.FunctionDef)
    translation = _Translation(scope)
    try:
        for statement in function.body:
            translation.statement(statement)
        steps = translation.steps_of_positions()
    except _Unknown:
        return None
    constants = translation.constants
    record = Flat(
        steps=(ctypes.c_int64 * len(steps))(*steps),
        inputs=translation.inputs,
        constants=len(constants),
        variables=translation.variables,
        constant=(ctypes.py_object * len(constants))(*constants),
        otherwise=call,
        set_frames=set_frame_evaluation,
    )
    if not translation.called <= {*_WITHOUT_GRADIENTS, *kernels}:
        record.gradients_on, record.set_gradients = torch.is_grad_enabled, set_gradients
    made = flat_calls(record, on_device)
    return None if made is None else FlatCall(*made)


@dataclass
class _Translation:
    scope: Mapping[str, Any]
    inputs: int = 0
    #: Where names of the text are now.
    known: dict[str, Slot] = field(default_factory=dict)
    constants: list[Any] = field(default_factory=list)
    variables: int = 0
    steps: list[int | Slot] = field(default_factory=list)
    called: set[str] = field(default_factory=set)
    #: Slots of values that have no name, to be freed after the statement that they are made for.
    nameless: list[Slot] = field(default_factory=list)

    def steps_of_positions(self) -> list[int]:
        first = self.inputs + len(self.constants)
        if first + self.variables > MOST_SLOTS:
            raise _Unknown
        starts = {"input": 0, "constant": self.inputs, "variable": first, "nowhere": -1}
        return [part if isinstance(part, int) else starts[part[0]] + part[1] for part in self.steps]

    def statement(self, statement: ast.stmt) -> None:
        self.translate(statement)
        if not isinstance(statement, ast.Return):
            for slot in self.nameless:
                self.steps += [FREE, slot]
            self.nameless.clear()

    def translate(self, statement: ast.stmt) -> None:
        match statement:
            case ast.Assign([ast.Tuple(targets)], ast.Name("inputs")):
                self.take_inputs(targets)
            case ast.Assign([ast.Tuple(targets)], value):
                source = self.value(value)
                slots = [self.variable(_name(target)) for target in targets]
                self.steps += [UNPACK, source, len(slots), *slots]
            case ast.Assign([ast.Name(name)], ast.Name(source)):
                moved = self.value(ast.Name(source))
                self.steps += [MOVE, self.variable(name), moved]
            case ast.Assign([ast.Name(name)], ast.Call() as call):
                self.call(call, name)
            case ast.Expr(ast.Call() as call):
                self.call(call, None)
            case ast.Delete(targets):
                for target in targets:
                    self.steps += [FREE, self.known.pop(_name(target))]
            case ast.Return(ast.List(items)):
                slots = [self.value(item) for item in items]
                self.steps += [GIVE, len(slots), *slots]
            case _:
                raise _Unknown

    def take_inputs(self, targets: Sequence[ast.expr]) -> None:
        self.inputs = len(targets)
        self.known = {_name(target): ("input", n) for n, target in enumerate(targets)}

    def call(self, call: ast.Call, to: Slot | str | None) -> Slot:
        """Steps of a call whose result goes to a slot, to a name, or nowhere."""
        given = [*call.args, *(keyword.value for keyword in call.keywords)]
        if len(given) > MOST_ARGUMENTS or any(keyword.arg is None for keyword in call.keywords):
            raise _Unknown
        self.called.add(ast.unparse(call.func))
        function = self.constant(self.looked_up(call.func))
        names = self.constant(tuple(keyword.arg for keyword in call.keywords)) if call.keywords else NOWHERE
        if not call.keywords and all(self.is_constant(argument) and not _is_new(argument) for argument in given):
            together = self.constant(tuple(self.looked_up(argument) for argument in call.args))
            result = self.variable(to) if isinstance(to, str) else to or NOWHERE
            self.steps += [CALL_WITH, result, function, together]
        else:
            arguments = [self.value(argument) for argument in given]
            result = self.variable(to) if isinstance(to, str) else to or NOWHERE
            self.steps += [CALL, result, function, names, len(arguments), *arguments]
        return result

    def value(self, value: ast.expr) -> Slot:
        """Where a value is, after steps that make it."""
        match value:
            case ast.Name(name) if name in self.known:
                return self.known[name]
            case ast.List(items):
                slots = [self.value(item) for item in items]
                made = self.temporary()
                self.steps += [LIST, made, len(slots), *slots]
                return made
            case _ if self.is_constant(value):
                return self.constant(self.looked_up(value))
            case ast.Call():
                return self.call(value, self.temporary())
            case _:
                raise _Unknown

    def is_constant(self, value: ast.expr) -> bool:
        """Whether a value is the same in every call."""
        for node in ast.walk(value):
            if isinstance(node, ast.Call) and ast.unparse(node.func) not in _OF_CONSTANTS:
                return False
            if isinstance(node, ast.Name) and (node.id in self.known or node.id == "inputs"):
                return False
        return True

    def looked_up(self, value: ast.expr) -> Any:
        if not self.is_constant(value):
            raise _Unknown
        return eval(compile(ast.Expression(value), "<fusionscope wrapper>", "eval"), dict(self.scope))

    def constant(self, value: Any) -> Slot:
        self.constants.append(value)
        return "constant", len(self.constants) - 1

    def variable(self, name: str) -> Slot:
        """The slot of a name that is set now."""
        slot = self.known.get(name)
        if slot is None or slot[0] != "variable":
            slot = self.known[name] = self.slot()
        return slot

    def temporary(self) -> Slot:
        slot = self.slot()
        self.nameless.append(slot)
        return slot

    def slot(self) -> Slot:
        self.variables += 1
        return "variable", self.variables - 1


def _name(target: ast.expr) -> str:
    if not isinstance(target, ast.Name):
        raise _Unknown
    return target.id


def _is_new(value: ast.expr) -> bool:
    """Whether a value is new in every call, as the one that is called may change it."""
    return any(isinstance(node, ast.List | ast.Dict | ast.Set) for node in ast.walk(value))
