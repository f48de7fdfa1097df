"""Which conditions of the choice of tiles pay: `python -m bench.conditions SECONDS PROCESSES OUT [NAME ...]`.

As `bench.ablation`, with every `if` of the modules below in the place of a rule: one after the other never holds, so
that what it guards does not happen, or its `else` does. A condition is named by its module and line; one of a choice
within an expression has its column too. What a plan cannot do without fails without it, and the row says how.
"""

from __future__ import annotations

import ast
import builtins
import importlib.util
import sys
from collections.abc import Sequence
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec, SourceFileLoader
from pathlib import Path
from types import CodeType, ModuleType
from typing import Any

from bench import ablation

TILES = Path(__file__).resolve().parents[1] / "compiler" / "schedule" / "tiles"
MODULES = ("across", "columns", "lane_parts", "pointwise", "programs", "reductions", "registers", "rows", "shared")
#: Without what this asks, kernels are compiled that do not fit into registers, for minutes.
LEFT_OUT = ("fits_registers",)


class Conditions(ast.NodeTransformer):
    """Every condition of a module asks `Switch.holds` as well, by its name."""

    def __init__(self, module: str) -> None:
        self._module = module

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:
        return node if node.name in LEFT_OUT else self.generic_visit(node)

    def visit_If(self, node: ast.If) -> ast.AST:
        return self._asking(node, f"{self._module}:{node.lineno}")

    def visit_IfExp(self, node: ast.IfExp) -> ast.AST:
        return self._asking(node, f"{self._module}:{node.lineno}:{node.col_offset}")

    def _asking(self, node: ast.If | ast.IfExp, name: str) -> ast.AST:
        self.generic_visit(node)
        call = ast.Call(ast.Name("_ablation_holds", ast.Load()), [ast.Constant(name), node.test], [])
        node.test = ast.copy_location(call, node.test)
        return node


class Loader(SourceFileLoader):
    def get_code(self, fullname: str) -> CodeType:
        tree = Conditions(fullname.rpartition(".")[2]).visit(ast.parse(Path(self.path).read_text()))
        code: CodeType = compile(ast.fix_missing_locations(tree), self.path, "exec")
        return code


class Finder(MetaPathFinder):
    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        package, _, name = fullname.rpartition(".")
        if package != "compiler.schedule.tiles" or name not in MODULES:
            return None
        file = str(TILES / f"{name}.py")
        return importlib.util.spec_from_file_location(fullname, file, loader=Loader(fullname, file))


class Switch(ablation.Switch):
    """The one of this process, which conditions ask."""

    def __init__(self) -> None:
        super().__init__([])
        vars(builtins)["_ablation_holds"] = self.holds

    def holds(self, name: str, value: Any) -> Any:
        if value and self.off is None:
            self.fired.add(name)
        return value and self.off != name


if any(f"compiler.schedule.tiles.{module}" in sys.modules for module in MODULES):
    raise ImportError("The compiler was imported before its conditions could be found.")
sys.meta_path.insert(0, Finder())
vars(builtins)["_ablation_holds"] = lambda _, value: value

if __name__ == "__main__":
    rows = ablation.measure(float(sys.argv[1]), int(sys.argv[2]), Path(sys.argv[3]), sys.argv[4:], Switch)
    print(ablation.table(rows))
