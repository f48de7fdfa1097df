"""A script that defines nothing to explore: what it computes becomes a function.

    x = torch.randn(64)         x = torch.randn(64)
    y = x.sin()           ->    def script(x):
    print(y.sum())                  y = x.sin()
    z = y + 1                       print(y.sum())
                                    z = y + 1
                                    return z

Statements that only set something up stay outside: imports, and what is assigned without reading a tensor or anything
that was computed before. The function returns what it computes and does not use itself, as its author would write it.
Of a script with a loop, such as one that trains, one pass of the last loop is the function. A function of the snippet
that trains counts as such a script, where its call is not a step or passes it no tensor.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch.utils._pytree import tree_leaves

from compiler.capture.program.device import makers_of_tensors
from compiler.capture.program.output import silenced
from compiler.wording import SNIPPET_FILE

_VALUES = (torch.Tensor, np.ndarray)
_STATE = (*_VALUES, torch.nn.Module, torch.optim.Optimizer)


@dataclass(frozen=True)
class Script:
    """A script in two parts. `define` makes a function of the second one that takes `parameters`."""

    set_up: ast.Module
    function: ast.FunctionDef
    parameters: tuple[str, ...]
    is_pass_of_loop: bool
    #: Whether it is a step of training: it asks for gradients, again and again or for an optimizer.
    trains: bool = False

    @property
    def name(self) -> str:
        """The function's."""
        return self.function.name

    @property
    def lines(self) -> tuple[int, int]:
        """The first and the last of the function's."""
        body = self.function.body
        return body[0].lineno, max(getattr(part, "end_lineno", None) or 0 for part in body)

    def modules(self, names: dict[str, Any]) -> list[str]:
        """Of a function that runs backward several times, the modules that it calls. Results of one compiled graph can
        be differentiated once, all together: as for the losses of two models, each has to be compiled by itself."""
        calls = [node.func for node in ast.walk(self.function) if isinstance(node, ast.Call)]
        passes = [called for called in calls if isinstance(called, ast.Attribute) and called.attr == "backward"]
        called = dict.fromkeys(called.id for called in calls if isinstance(called, ast.Name))
        return [name for name in called if isinstance(names.get(name), torch.nn.Module)] if len(passes) > 1 else []

    @property
    def differentiates(self) -> bool:
        """Whether it asks for gradients itself."""
        return asks_for_gradients(self.function.body)

    def define(self, names: dict[str, Any]) -> tuple[Any, list[Any]]:
        """The function, and its arguments as the script makes them, both in `names`. A tensor that is trained is the
        default of its parameter: arguments are copied, and an optimizer holds the tensor itself."""
        with silenced():
            exec(compile(self.set_up, SNIPPET_FILE, "exec", dont_inherit=True), names)
        trained = {name: names[name] for name in self.parameters if _is_trained(names[name])}
        given = {name: names[name] for name in self.parameters if name not in trained}
        function = _function([*given, *trained], self.function.body, self.name)
        exec(compile(ast.Module([function], []), SNIPPET_FILE, "exec", dont_inherit=True), names)
        made = names[self.name]
        made.__defaults__ = tuple(trained.values())
        return made, list(given.values())


def script_of(body: list[ast.stmt], names: dict[str, Any], of: ast.FunctionDef | None = None) -> Script | None:
    """The two parts of a script that has run and left `names`; None where nothing is computed from a tensor. It may be
    the body `of` a function."""
    set_up, computed = _divided(body, names)
    given: list[ast.AST] = [*set_up, *([] if of is None else [of.args])]
    loop = _loop(computed, names)
    is_pass_of_loop = loop is not None
    while loop is not None:
        before = [statement for statement in computed[: computed.index(loop)] if not _leaves(statement)]
        set_up += before
        given += [*before, loop.target] if isinstance(loop, ast.For) else before
        computed = loop.body
        inner = _loop(computed, names)
        loop = inner if inner is not None and asks_for_gradients([inner]) == asks_for_gradients(computed) else None
    computed = [_LeavesByReturn().visit(statement) for statement in computed]
    if not any(_has(names.get(name), *_VALUES) for name in _loaded(computed)):
        return None if of is not None else _of_one_statement(set_up, list(_statements(body)))
    bound: set[str] = set()
    needed, kept = _read_unbound(computed, bound), _stored(computed)
    found = [*_names_bound(given), *sorted(needed)]
    # Dynamo leaves out what finds all of its tensors among the globals.
    parameters = [
        name
        for name in dict.fromkeys(found)
        if name in needed and name in names and (name in kept or _has(names[name], *_VALUES))
    ]
    has_optimizer = any(_has(names.get(name), torch.optim.Optimizer) for name in _loaded(computed))
    trains = asks_for_gradients(computed) and (is_pass_of_loop or has_optimizer)
    returned = bound if is_pass_of_loop else kept
    function = _function(parameters, _with_return(computed, names, returned), "script" if of is None else of.name)
    return Script(ast.Module(set_up, []), function, tuple(parameters), is_pass_of_loop, trains)


def _is_trained(value: Any) -> bool:
    return isinstance(value, torch.Tensor) and value.requires_grad and value.is_leaf


def _of_one_statement(set_up: list[ast.stmt], statements: list[ast.stmt]) -> Script | None:
    """The last statement that makes a tensor and computes from it, as in `print(torch.rand(3).sin())`."""
    definitions = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef
    walks = (ast.walk(one) for one in statements if not isinstance(one, definitions))
    parts = [part for walk in walks for part in walk if isinstance(part, ast.stmt)]
    for statement in reversed(parts):
        value = getattr(statement, "value", None) or getattr(statement, "test", None)
        if _prints_or_exits(statement) and isinstance(value, ast.Call):
            value = next(iter(value.args), None)
        if not isinstance(value, ast.expr) or isinstance(value, ast.Lambda):
            continue
        if any(maker is not value for maker in makers_of_tensors(value)):
            returned = ast.copy_location(ast.Return(value), statement)
            return Script(ast.Module(set_up, []), _function([], [returned]), (), is_pass_of_loop=False)
    return None


def _function(parameters: Sequence[str], body: list[ast.stmt], name: str = "script") -> ast.FunctionDef:
    function = ast.parse(f"def {name}({', '.join(parameters)}): pass").body[0]
    assert isinstance(function, ast.FunctionDef)
    for node in ast.walk(function):
        ast.copy_location(node, body[0])
    function.body = body
    return function


def _divided(body: list[ast.stmt], names: dict[str, Any]) -> tuple[list[ast.stmt], list[ast.stmt]]:
    """What sets something up, and what is computed from that."""
    set_up: list[ast.stmt] = []
    computed: list[ast.stmt] = []
    for statement in _statements(body):
        if isinstance(statement, ast.Delete) or _only_prints(statement):
            continue
        needs = _loaded([statement]) & _stored(computed) or _stored([statement]) & (
            _loaded(computed) | _stored(computed)
        )
        if needs or not _only_sets_up(statement, names):
            computed.append(statement)
        elif not _prints_or_exits(statement):
            set_up.append(statement)
    return set_up, computed


def _loop(statements: list[ast.stmt], names: dict[str, Any]) -> ast.For | ast.While | None:
    """The last one that trains, or else that computes a tensor, and does not only print some."""
    loops = [statement for statement in reversed(statements) if isinstance(statement, ast.For | ast.While)]
    loops = [loop for loop in loops if any(_has(names.get(name), *_VALUES) for name in _stored(loop.body))]
    return next((loop for loop in loops if asks_for_gradients(loop.body)), loops[0] if loops else None)


def asks_for_gradients(statements: Iterable[ast.AST]) -> bool:
    """Whether they call `loss.backward()`, `torch.autograd.grad` or the like."""
    nodes = (node for statement in statements for node in ast.walk(statement))
    return any(isinstance(node, ast.Attribute) and node.attr in ("backward", "grad") for node in nodes)


def _leaves(statement: ast.stmt) -> bool:
    """Whether it may leave the pass of a loop, or the function, that it is in."""
    return any(isinstance(node, ast.Break | ast.Continue | ast.Return) for node in ast.walk(statement))


class _LeavesByReturn(ast.NodeTransformer):
    """What leaves a pass of the loop leaves the function."""

    def _returns(self, node: ast.stmt) -> ast.AST:
        return ast.copy_location(ast.Return(None), node)

    def _is_left(self, node: ast.stmt) -> ast.AST:
        return node

    visit_Break = visit_Continue = _returns
    visit_For = visit_While = visit_FunctionDef = _is_left


def _statements(body: list[ast.stmt]) -> Iterator[ast.stmt]:
    """Those of the top level, and those within `if __name__ == "__main__":` in its place."""
    for statement in body:
        if isinstance(statement, ast.If) and not statement.orelse and "__name__" in _loaded([statement.test]):
            yield from statement.body
        else:
            yield statement


def _only_sets_up(statement: ast.stmt, names: dict[str, Any]) -> bool:
    if isinstance(statement, ast.Import | ast.ImportFrom | ast.FunctionDef | ast.ClassDef | ast.Pass):
        return True
    if isinstance(statement, ast.Try | ast.With | ast.If) and not _leaves(statement):
        # Such as an import that may fail.
        within = [part for part in ast.iter_child_nodes(statement) if isinstance(part, ast.stmt)]
        within += [part for handler in getattr(statement, "handlers", ()) for part in handler.body]
        around = [item.context_expr for item in getattr(statement, "items", ())]
        around += [statement.test] if isinstance(statement, ast.If) else []
        is_read = any(_has(names.get(name), *_STATE) for name in _loaded(around))
        return not is_read and all(_only_sets_up(part, names) for part in within)
    if not isinstance(statement, ast.Assign | ast.AnnAssign | ast.Expr):
        return False
    made = [names.get(name) for name in _stored([statement])]
    if made and all(isinstance(value, torch.nn.Module | torch.optim.Optimizer) for value in made):
        return True
    return not any(_has(names.get(name), *_STATE) for name in _loaded([statement]))


def _only_prints(statement: ast.stmt) -> bool:
    """Whether it is a loop that prints, at which tracing would stop, and does nothing else."""
    return isinstance(statement, ast.For) and all(map(_prints_or_exits, statement.body))


def _prints_or_exits(statement: ast.stmt) -> bool:
    call = statement.value if isinstance(statement, ast.Expr) else None
    return isinstance(call, ast.Call) and ast.unparse(call.func) in ("print", "exit", "quit", "sys.exit")


def _read_unbound(statements: Sequence[ast.AST], bound: set[str]) -> set[str]:
    """The names that may be read before they are bound; those that are bound for certain are added to `bound`."""
    read: set[str] = set()
    for statement in statements:
        if not isinstance(statement, ast.With | ast.If | ast.For | ast.While | ast.Try | ast.ExceptHandler):
            read |= _loaded([statement]) - bound
            bound |= _stored([statement])
            continue
        parts = list(ast.iter_child_nodes(statement))
        heads = [part for part in parts if not isinstance(part, ast.stmt | ast.ExceptHandler)]
        read |= _loaded(heads) - bound
        within = bound | _stored(heads)
        for block in ("body", "handlers", "orelse", "finalbody"):
            known = set(within)
            read |= _read_unbound(getattr(statement, block, []), known)
            if isinstance(statement, ast.With) and block == "body":
                bound |= known
    return read


def _with_return(computed: list[ast.stmt], names: dict[str, Any], kept: set[str]) -> list[ast.stmt]:
    """It returns the tensors that it assigns and does not read afterwards, or else the value of its last line."""
    last = computed[-1]
    results: list[ast.expr] = [
        ast.Name(name, ast.Load())
        for name in sorted(kept)
        if _has(names.get(name), *_VALUES) and not _is_read_later(name, computed)
    ]
    if isinstance(last, ast.Expr) and not results:
        computed, results = computed[:-1], [last.value]
    if not results:
        return computed
    returned = ast.Return(results[0] if len(results) == 1 else ast.Tuple(results, ast.Load()))
    return [*computed, ast.fix_missing_locations(ast.copy_location(returned, last))]


def _is_read_later(name: str, computed: list[ast.stmt]) -> bool:
    """Whether a statement after the last one that binds it reads it."""
    last = max(position for position, statement in enumerate(computed) if name in _stored([statement]))
    return name in _loaded(computed[last + 1 :])


def _loaded(parts: Sequence[ast.AST]) -> set[str]:
    nodes = [node for part in parts for node in ast.walk(part)]
    names = [node for node in nodes if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load)]
    added = [node.target for node in nodes if isinstance(node, ast.AugAssign) and isinstance(node.target, ast.Name)]
    return {name.id for name in [*names, *added]}


def _stored(parts: Sequence[ast.AST]) -> set[str]:
    return set(_names_bound(parts))


def _names_bound(parts: Iterable[ast.AST]) -> Iterator[str]:
    """Names that these parts bind, apart from those within functions and classes."""
    for node in parts:
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.id
        elif isinstance(node, ast.arg):
            yield node.arg
        elif isinstance(node, ast.alias):
            yield (node.asname or node.name).partition(".")[0]
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            yield node.name
        elif not isinstance(node, ast.Lambda | ast.ListComp | ast.SetComp | ast.DictComp | ast.GeneratorExp):
            yield from _names_bound(ast.iter_child_nodes(node))


def _has(value: Any, *kinds: type) -> bool:
    return any(isinstance(leaf, kinds) for leaf in tree_leaves(value))
