"""Find the outputs of a graph whose value alone is read, as where a graph ends in `if x.sum() > 0:`.

Dynamo's code calls a graph, puts away what the rest of the function will want, and goes on with what broke the graph:

    LOAD_FAST graph_out_0; LOAD_CONST 0; BINARY_SUBSCR     the condition
    LOAD_FAST graph_out_0; LOAD_CONST 1; BINARY_SUBSCR     a tensor that is wanted later
    BUILD_LIST ...
    POP_JUMP_IF_FALSE                                      the condition is read, and gone

That stretch has no branches, so it is followed here with a stack of what is known of each value. An output that goes
nowhere but into the branch, into a call of its own `item` or `tolist`, or of `int`, `float` or `bool`, need not be a
tensor on a device. What an instruction of another kind does is not known, and then nothing is said of any output.
"""

from __future__ import annotations

import dis
import types
from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

from torch.fx import GraphModule

from compiler.fx.notes import ENDS_IN_BREAK

if TYPE_CHECKING:
    from compiler.ir.nodes import LoopGraph

#: How the value of an output is read: as the truth that a branch asks for, or by a method or function of one tensor.
Read = Literal["truth", "value"]

_OUTPUTS = "graph_out_"
_METHODS = frozenset({"item", "tolist", "__bool__", "__int__", "__float__", "__index__"})
_FUNCTIONS = frozenset({"bool", "int", "float"})

#: Values that an instruction takes off the stack and puts there; None stands for its argument.
_EFFECTS: dict[str, tuple[int | None, int]] = {
    "NOP": (0, 0), "CACHE": (0, 0), "EXTENDED_ARG": (0, 0), "PRECALL": (0, 0), "RESUME": (0, 0), "NOT_TAKEN": (0, 0),
    "DELETE_FAST": (0, 0), "PUSH_NULL": (0, 1), "LOAD_DEREF": (0, 1), "LOAD_CLOSURE": (0, 1), "POP_TOP": (1, 0),
    "STORE_FAST": (1, 0), "STORE_DEREF": (1, 0), "LIST_EXTEND": (1, 0), "BUILD_LIST": (None, 1),
    "BUILD_TUPLE": (None, 1), "BUILD_SLICE": (None, 1), "BINARY_SUBSCR": (2, 1), "BINARY_OP": (2, 1),
    "STORE_SUBSCR": (3, 0), "DELETE_SUBSCR": (2, 0), "BINARY_SLICE": (3, 1), "STORE_SLICE": (4, 0),
}  # fmt: skip
#: Instructions that put the value of a variable on the stack.
LOADS = frozenset({"LOAD_FAST", "LOAD_FAST_CHECK", "LOAD_FAST_BORROW"})


def note_break(graph: GraphModule) -> None:
    """Leave in an inference graph that the code around it breaks off behind it."""
    graph.meta[ENDS_IN_BREAK] = True


def soon_read(graph: GraphModule, loops: LoopGraph) -> frozenset[str]:
    """The buffers of a lowered graph that the host may wait for once the graph is launched: which of them it does is
    not known before the code around it is made."""
    if not graph.meta.get(ENDS_IN_BREAK, False):
        return frozenset()
    made = {name for node in loops.nodes for name in getattr(node, "write_buffers", (node.name,))}
    given = (output.buffer for output in loops.outputs if output.layout is not None and output.layout.numel == 1)
    return frozenset(name for name in given if name is not None and name in made)


@dataclass(frozen=True)
class _Value:
    """What is known of a value on the stack: a constant, or which output of the graph, or a method of that."""

    kind: Literal["constant", "global", "outputs", "output", "method"]
    what: Any


_Stack = list[_Value | None]


def outputs_only_read(code: types.CodeType) -> dict[int, Read]:
    """The places of outputs whose value Dynamo's `code` reads, and that it uses for nothing else."""
    instructions = list(dis.get_instructions(code))
    loads = Counter(one.argval for one in instructions if one.opname in LOADS and is_outputs(one.argval))
    starts = [n for n, one in enumerate(instructions) if one.opname == "STORE_FAST" and is_outputs(one.argval)]
    if len(starts) != 1 or len(loads) != 1:
        return {}
    walk, rest = _Walk(), instructions[starts[0] + 1 :]
    while rest and not walk.ends_with(rest[0]):
        del rest[0]
    later = _taken_later(rest)
    is_followed = walk.loads + len(later) == loads.total()
    return walk.found if is_followed and walk.found.keys().isdisjoint(later) else {}


def _taken_later(instructions: list[dis.Instruction]) -> list[int]:
    """The places of the outputs that are taken behind the stretch, one for each time that is understood."""
    taken = []
    for load, place, element in zip(instructions, instructions[1:], instructions[2:], strict=False):
        is_one = load.opname in LOADS and is_outputs(load.argval) and element.opname in ("BINARY_SUBSCR", "BINARY_OP")
        if is_one and place.opname in ("LOAD_CONST", "LOAD_SMALL_INT"):
            taken.append(place.argval)
    return taken


@dataclass
class _Walk:
    #: What is below the values that are known of does not matter: nothing of this graph is there.
    stack: _Stack = field(default_factory=list)
    loads: int = 0
    #: How often each output is on the stack or was used.
    seen: Counter[int] = field(default_factory=Counter)
    found: dict[int, Read] = field(default_factory=dict)

    def ends_with(self, one: dis.Instruction) -> bool:
        """Follow an instruction; whether the stretch ends there. Then `found` is filled in where it is known."""
        name, argument = one.opname, one.arg or 0
        if name in LOADS:
            is_ours = is_outputs(one.argval)
            self.loads += is_ours
            self.stack.append(_Value("outputs", None) if is_ours else None)
        elif name in ("LOAD_CONST", "LOAD_SMALL_INT"):
            self.stack.append(_Value("constant", one.argval))
        elif name == "LOAD_GLOBAL":
            # The lowest bit asks for a null besides, before what is loaded or behind it.
            self.stack += [_Value("global", one.argval)] * (1 + (argument & 1))
        elif name == "SWAP":
            self.at_least(argument)
            self.stack[-1], self.stack[-argument] = self.stack[-argument], self.stack[-1]
        elif name == "COPY":
            self.at_least(argument)
            self.use(self.stack[-argument])
            self.stack.append(self.stack[-argument])
        elif name == "TO_BOOL":
            pass  # what is a truth afterwards is only branched by
        elif name == "LOAD_ATTR":
            self.attribute(one)
        elif name in ("BINARY_SUBSCR", "BINARY_OP"):
            self.element()
        elif name in _EFFECTS:
            taken, put = _EFFECTS[name]
            for value in self.pop(argument if taken is None else taken):
                self.use(value)
            self.stack += [None] * put
        else:
            self.end(name, argument)
            return True
        return False

    def end(self, name: str, argument: int) -> None:
        """The value is read by a conditional branch or by a call, or nothing is known of it."""
        if name.startswith("POP_JUMP") and name.endswith(("IF_FALSE", "IF_TRUE")):
            (read,) = self.pop(1)
            self.read(read, "truth")
        elif name == "CALL":
            called = self.pop(argument + 2)
            arguments, callables = called[2:], [value for value in called[:2] if value is not None]
            for value in callables:
                if value.kind == "method" and not arguments:
                    self.read(_Value("output", value.what), "value")
                elif value.kind == "global" and value.what in _FUNCTIONS and len(arguments) == 1:
                    self.read(arguments[0], "value")

    def read(self, value: _Value | None, how: Read) -> None:
        if value is not None and value.kind == "output" and self.seen[value.what] == 1:
            self.found = {value.what: how}

    def attribute(self, one: dis.Instruction) -> None:
        (of,) = self.pop(1)
        is_method = of is not None and of.kind == "output" and one.argval in _METHODS
        if is_method:
            assert of is not None
            self.stack.append(_Value("method", of.what))
        else:
            self.use(of)
            self.stack.append(None)
        # In later versions the lowest bit asks for a method and what it is of, in two places.
        if "NULL" in one.argrepr:
            self.stack.append(None)

    def element(self) -> None:
        of, place = self.pop(2)
        made = None
        if of is not None and place is not None and place.kind == "constant":
            if of.kind == "outputs" and isinstance(place.what, int):
                made = _Value("output", place.what)
                self.seen[place.what] += 1
            elif of.kind == "global" and str(of.what).startswith("__builtins_dict__"):
                made = _Value("global", place.what)
        if made is None:
            self.use(of)
        self.stack.append(made)

    def use(self, value: _Value | None) -> None:
        """A value goes where it is not followed to."""
        if value is not None and value.kind in ("output", "method"):
            self.seen[value.what] += 1
        elif value is not None and value.kind == "outputs":
            self.loads = -1  # all of them do

    def at_least(self, count: int) -> None:
        self.stack[:0] = [None] * (count - len(self.stack))

    def pop(self, count: int) -> _Stack:
        self.at_least(count)
        taken = self.stack[len(self.stack) - count :]
        del self.stack[len(self.stack) - count :]
        return taken


def is_outputs(name: Any) -> bool:
    """Whether Dynamo's variable of that name is the list that a graph gives."""
    return isinstance(name, str) and name.startswith(_OUTPUTS)
