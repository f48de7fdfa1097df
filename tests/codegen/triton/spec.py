"""What every Triton kernel keeps to, whatever it computes: its text is Python, whose tree is looked at.

named     each name is a parameter, a name of the module, or assigned before, on every way to where it stands
masked    what is loaded, stored or updated at an index that has a mask has one
once      no way through the kernel stores at one address twice
"""

from __future__ import annotations

import ast
import builtins
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from compiler.codegen.rendered import RenderedKernel

_ACCESSES = ("load", "store", "atomic_add", "atomic_max", "atomic_min")


def violations(kernel: RenderedKernel) -> list[str]:
    """What the kernel does not keep to, a sentence for each place."""
    module = ast.parse(kernel.source)
    functions = [one for one in module.body if isinstance(one, ast.FunctionDef)]
    imported = (
        alias.asname or alias.name.partition(".")[0]
        for one in module.body
        if isinstance(one, ast.Import | ast.ImportFrom)
        for alias in one.names
    )
    known = {*dir(builtins), *imported, *(function.name for function in functions)}
    return [found for function in functions for found in _Function(function, known).found]


@dataclass
class _Function:
    tree: ast.FunctionDef
    known: set[str]
    found: list[str] = field(default_factory=list)
    #: By the name of an index, whether lanes may be outside of it; and the names that an assigned one comes from.
    bounded: set[str] = field(default_factory=set)
    made_of: dict[str, set[str]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for one in ast.walk(self.tree):
            if isinstance(one, ast.Assign):
                for target in _names(one.targets):
                    self.made_of.setdefault(target, set()).update(_index_names(one.value))
                    if target.endswith("_mask"):
                        compared = (part.left for part in ast.walk(one.value) if isinstance(part, ast.Compare))
                        self.bounded |= {part.id for part in compared if isinstance(part, ast.Name)}
        parameters = {argument.arg for argument in self.tree.args.args}
        self._block(self.tree.body, self.known | parameters, set())

    def _block(self, body: Sequence[ast.stmt], assigned: set[str], stored: set[str]) -> None:
        """Statements in order; adds to `assigned`, and to the addresses that are `stored`."""
        for one in body:
            head = one.iter if isinstance(one, ast.For) else one.test if isinstance(one, ast.If | ast.While) else one
            for node in ast.walk(head):
                self._node(node, assigned, stored)
            if isinstance(one, ast.If):
                ways = [(assigned.copy(), stored.copy()) for _ in range(2)]
                for block, way in zip((one.body, one.orelse), ways, strict=True):
                    self._block(block, *way)
                assigned |= ways[0][0] & ways[1][0]
            elif isinstance(one, ast.For | ast.While):
                targets = _names([one.target]) if isinstance(one, ast.For) else set()
                self._block(one.body, assigned | targets, set())
            elif isinstance(one, ast.Assign | ast.AnnAssign):
                assigned |= _names(one.targets if isinstance(one, ast.Assign) else [one.target])

    def _node(self, node: ast.AST, assigned: set[str], stored: set[str]) -> None:
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load) and node.id not in assigned:
            self.found.append(f"{self.tree.name}: {node.id} is read in line {node.lineno}, and not assigned before")
        kind = node.func.attr if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) else ""
        if not isinstance(node, ast.Call) or kind not in _ACCESSES:
            return
        address = node.args[0]
        has_mask = len(node.args) > (1 if kind == "load" else 2) or any(one.arg == "mask" for one in node.keywords)
        if not has_mask and not self.bounded.isdisjoint(self._origins(_index_names(address))):
            self.found.append(f"{self.tree.name}: the {kind} in line {node.lineno} has no mask")
        text = ast.unparse(address)
        if kind == "store" and text in stored:
            self.found.append(f"{self.tree.name}: line {node.lineno} stores at {text} once more")
        if kind == "store":
            stored.add(text)

    def _origins(self, names: Iterable[str]) -> set[str]:
        found, open_ = set[str](), list(names)
        while open_:
            name = open_.pop()
            if name not in found:
                found.add(name)
                open_ += self.made_of.get(name, ())
        return found


def _names(nodes: Iterable[ast.AST]) -> set[str]:
    return {one.id for node in nodes for one in ast.walk(node) if isinstance(one, ast.Name)}


def _index_names(node: ast.AST) -> set[str]:
    """The names that an index is computed from, without what is loaded or reduced: that has its own."""
    if isinstance(node, ast.Call):
        is_converted = isinstance(node.func, ast.Attribute) and node.func.attr == "to"
        return _index_names(node.func) if is_converted else set()
    if isinstance(node, ast.Name):
        return {node.id}
    return set().union(*(_index_names(child) for child in ast.iter_child_nodes(node)))
