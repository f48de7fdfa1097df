"""Shorten Dynamo's bytecode between a branch that breaks a function and its continuation.

Dynamo packs what the rest of the function wants into lists of lists, takes those apart again behind the branch, and
calls the rest with a tuple of it: some seventy instructions, while the GPU waits for the host. All that they do is
known beforehand: they only move values that are in variables, or in the list that the graph gives. So each value is
followed to the call, and the code asks for the values there:

    condition = graph_out_0[0]
    frames = [[b, graph_out_0[1]]] ...          if graph_out_0[0]:
    if condition:                          ->       return __resume_at_102([], [], b, graph_out_0[1])
        ...                                     return __resume_at_112([], [], b, graph_out_0[1])
        return __resume_at_102(*arguments)

Code with any other instruction in it is left as it is. The instructions are put together by Dynamo's own functions,
which know the versions of Python.
"""

from __future__ import annotations

import inspect
import types
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from torch._dynamo.bytecode_transformation import (
    _cached_cleaned_instructions,
    add_push_null,
    clean_and_assemble_instructions,
    create_binary_subscr,
    create_call_function,
    create_instruction,
    create_load_const,
    get_code_keys,
)

from compiler.capture.shortcuts.read_outputs import LOADS, is_outputs

#: Without Dynamo's cache, which would keep code alive that nobody calls any more.
_instructions_of: Any = inspect.unwrap(_cached_cleaned_instructions)
_SUBSCRIPT = create_binary_subscr()
_NOTHING = frozenset({"NOP", "CACHE", "EXTENDED_ARG", "PRECALL", "TO_BOOL", "NOT_TAKEN"})


class _Unknown(Exception):
    """An instruction does what is not followed."""


@dataclass(frozen=True)
class _Variable:
    name: str


@dataclass(frozen=True)
class _Global:
    name: str


@dataclass(frozen=True)
class _Constant:
    value: Any


@dataclass(frozen=True)
class _Output:
    place: int


@dataclass(eq=False)
class _Sequence:
    """A list or tuple that this stretch makes, and that nobody else has."""

    items: list[Any]
    is_tuple: bool = False


_NULL = _Constant("null")


@dataclass
class _State:
    """What is on the stack, from where the graph was called on."""

    outputs: str
    stack: list[Any] = field(default_factory=list)

    def copied(self) -> _State:
        """Lists that are on the stack twice stay one list."""
        known: dict[int, Any] = {}

        def copy(value: Any) -> Any:
            if not isinstance(value, _Sequence):
                return value
            if id(value) not in known:
                known[id(value)] = made = _Sequence([], value.is_tuple)
                made.items = [copy(item) for item in value.items]
            return known[id(value)]

        return _State(self.outputs, [copy(value) for value in self.stack])

    def pop(self) -> Any:
        if not self.stack:
            raise _Unknown
        return self.stack.pop()

    def take(self, count: int) -> list[Any]:
        taken = [self.pop() for _ in range(count)]
        return taken[::-1]

    def at(self, depth: int) -> int:
        if not 0 < depth <= len(self.stack):
            raise _Unknown
        return -depth

    def follow(self, one: Any) -> None:
        name, count = one.opname, one.arg or 0
        if name in _NOTHING:
            return
        if name in LOADS:
            self.stack.append(_Variable(one.argval))
        elif name in ("LOAD_CONST", "LOAD_SMALL_INT"):
            self.stack.append(_Constant(one.argval))
        elif name == "LOAD_GLOBAL" and not count & 1:
            self.stack.append(_Global(one.argval))
        elif name == "PUSH_NULL":
            self.stack.append(_NULL)
        elif name == "POP_TOP":
            self.pop()
        elif name == "COPY":
            self.stack.append(self.stack[self.at(count)])
        elif name == "SWAP":
            other = self.at(count)
            self.stack[-1], self.stack[other] = self.stack[other], self.stack[-1]
        elif name in ("BUILD_LIST", "BUILD_TUPLE"):
            self.stack.append(_Sequence(self.take(count), is_tuple=name == "BUILD_TUPLE"))
        elif name == "BUILD_SLICE":
            self.stack.append(_Constant(slice(*map(_value_of, self.take(count)))))
        elif name == "LIST_EXTEND":
            more = _sequence(self.pop())
            _sequence(self.stack[self.at(count)], is_changed=True).items.extend(more.items)
        elif name == _SUBSCRIPT.opname and one.arg == _SUBSCRIPT.arg:
            self.stack.append(self.element(*self.take(2)))
        elif name == "STORE_SUBSCR":
            value, of, place = self.take(3)
            self.store(value, of, _value_of(place))
        elif name == "DELETE_SUBSCR":
            of, place = self.take(2)
            del _sequence(of, is_changed=True).items[_place(_sequence(of), place)]
        elif name != "DELETE_FAST" or one.argval != self.outputs:
            raise _Unknown

    def element(self, of: Any, place: Any) -> Any:
        if of == _Variable(self.outputs) and isinstance(_value_of(place), int):
            return _Output(_value_of(place))
        items = _sequence(of).items
        if isinstance(_value_of(place), slice):
            return _Sequence(items[_value_of(place)], _sequence(of).is_tuple)
        return items[_place(_sequence(of), place)]

    def store(self, value: Any, of: Any, place: Any) -> None:
        items = _sequence(of, is_changed=True).items
        if isinstance(place, slice):
            items[place] = _sequence(value).items
        else:
            items[_place(_sequence(of), _Constant(place))] = value


def _value_of(value: Any) -> Any:
    if not isinstance(value, _Constant):
        raise _Unknown
    return value.value


def _sequence(value: Any, is_changed: bool = False) -> _Sequence:
    if not isinstance(value, _Sequence) or (is_changed and value.is_tuple):
        raise _Unknown
    return value


def _place(of: _Sequence, place: Any) -> int:
    number = _value_of(place)
    if not isinstance(number, int) or not -len(of.items) <= number < len(of.items):
        raise _Unknown
    return number


def shortened(code: types.CodeType) -> types.CodeType:
    """The code without the lists, where it calls one graph and then branches; else the very code."""
    try:
        instructions = _shortened(_instructions_of(code, False))
        keys = get_code_keys()
        made: types.CodeType = clean_and_assemble_instructions(
            instructions, keys, {key: getattr(code, key) for key in keys}
        )[1]
    except Exception:  # of Dynamo's own functions too: the code does without
        return code
    return made


def _shortened(instructions: list[Any]) -> list[Any]:
    starts = [n for n, one in enumerate(instructions) if one.opname == "STORE_FAST" and is_outputs(one.argval)]
    if len(starts) != 1:
        raise _Unknown
    begun, state = starts[0] + 1, _State(instructions[starts[0]].argval)
    branch = begun
    while not (instructions[branch].opname.startswith("POP_JUMP") and instructions[branch].target is not None):
        state.follow(instructions[branch])
        branch += 1
        if branch == len(instructions):
            raise _Unknown
    jump = instructions[branch]
    if any(one.target is not None and one is not jump for one in instructions):
        raise _Unknown
    condition = state.pop()
    other = instructions.index(jump.target)
    if not isinstance(condition, _Output) or other <= branch:
        raise _Unknown
    ways = [_way(state.copied(), instructions[start:]) for start in (branch + 1, other)]
    before = [one for one in instructions[branch - 1 : branch] if one.opname == "TO_BOOL"]
    jump.target = ways[1][0]
    made = [*_loaded(condition, state.outputs), *before, jump, *ways[0], *ways[1]]
    for one in made:
        one.copy_positions(jump)
    return [*instructions[:begun], *made]


def _way(state: _State, instructions: list[Any]) -> list[Any]:
    """From the branch to the call of what goes on, whose result is returned."""
    end = next((n for n, one in enumerate(instructions) if one.opname == "CALL_FUNCTION_EX"), None)
    if end is None:
        raise _Unknown
    for one in instructions[:end]:
        state.follow(one)
    behind = [other.opname for other in instructions[end + 1 :] if other.opname not in _NOTHING]
    values = [value for value in state.stack if value != _NULL]
    if behind[:1] != ["RETURN_VALUE"] or len(values) != 2 or not isinstance(values[0], _Global):
        raise _Unknown
    function, arguments = values[0], _sequence(values[1]).items
    lists = [id(value) for argument in arguments for value in _sequences_in(argument) if not value.is_tuple]
    if (instructions[end].arg or 0) & 1 or len(lists) != len(set(lists)):
        raise _Unknown
    called = add_push_null(list(_loaded(function, state.outputs)))
    given = [part for value in arguments for part in _loaded(value, state.outputs)]
    freed = create_instruction("DELETE_FAST", argval=state.outputs)
    call = create_call_function(len(arguments), False)
    return [*called, *given, freed, *call, create_instruction("RETURN_VALUE")]


def _loaded(value: Any, outputs: str) -> Iterator[Any]:
    """Instructions that put a value on the stack."""
    if isinstance(value, _Sequence):
        for item in value.items:
            yield from _loaded(item, outputs)
        yield create_instruction("BUILD_TUPLE" if value.is_tuple else "BUILD_LIST", arg=len(value.items))
    elif isinstance(value, _Output):
        yield from (create_instruction("LOAD_FAST", argval=outputs), create_load_const(value.place))
        yield create_binary_subscr()
    elif isinstance(value, _Variable) and value.name != outputs:
        yield create_instruction("LOAD_FAST", argval=value.name)
    elif isinstance(value, _Global):
        yield create_instruction("LOAD_GLOBAL", argval=value.name)
    elif isinstance(value, _Constant) and value is not _NULL and not isinstance(value.value, slice):
        yield create_load_const(value.value)
    else:
        raise _Unknown


def _sequences_in(value: Any) -> Iterator[_Sequence]:
    if isinstance(value, _Sequence):
        yield value
        for item in value.items:
            yield from _sequences_in(item)
