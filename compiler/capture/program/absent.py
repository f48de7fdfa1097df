"""Packages that a snippet imports and that are not installed here.

Most of what is pasted needs them for a plot at its end, or names them and never uses them. So their imports succeed:

    import matplotlib.pyplot as plt     ->    plt = Absent("matplotlib")
    from einops import rearrange        ->    rearrange = Absent("einops")

What shows or records results does nothing. All else raises what its import would have raised, where it is used. An
import within `try` fails at once: the snippet can do without.
"""

from __future__ import annotations

import ast
import dis
import importlib.util
import sys
from collections.abc import Iterator
from types import ModuleType
from typing import Any

#: The name under which a rewritten snippet finds the class below.
ABSENT = "__fusionscope_absent__"

#: Packages that show or record what a program computes, and give nothing to compute with.
_ONLY_SHOW = frozenset(
    "IPython comet_ml loguru matplotlib mlflow neptune plotly rich seaborn tabulate tensorboardX torchinfo "
    "torchsummary torchviz wandb".split()
)
_UNPACK = dis.opmap["UNPACK_SEQUENCE"]


class Absent(ModuleType):
    """What is taken from a package that is not there. It is a module, since Dynamo reads the attributes of one and
    breaks the graph at the call. Of another object it would trace `__getattr__`, and break before."""

    def _use(self, *_: Any, **__: Any) -> Any:
        if self.__name__ not in _ONLY_SHOW:
            raise ModuleNotFoundError(f"No module named {self.__name__!r}", name=self.__name__)
        return self

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return self._use()

    def __setattr__(self, name: str, value: Any) -> None:
        self._use()

    __call__ = __getitem__ = __enter__ = _use

    def __exit__(self, *_: Any) -> None:
        pass

    def __bool__(self) -> bool:
        self._use()
        return False

    def __iter__(self) -> Iterator[Any]:
        """`figure, (left, right) = plt.subplots(1, 2)` takes as many as it names; a loop finds none."""
        self._use()
        caller = sys._getframe(1)
        code, position = caller.f_code.co_code, caller.f_lasti
        return iter([self] * code[position + 1] if code[position] == _UNPACK else [])

    def __mro_entries__(self, bases: tuple[Any, ...]) -> tuple[type, ...]:
        raise ModuleNotFoundError(f"No module named {self.__name__!r}", name=self.__name__)


class _StandIns(ast.NodeTransformer):
    def __init__(self) -> None:
        self.lines: dict[str, int] = {}

    def visit(self, node: ast.AST) -> Any:
        return node if isinstance(node, ast.expr) else super().visit(node)  # no expression imports

    def visit_Try(self, node: ast.Try) -> ast.AST:
        return node

    def visit_With(self, node: ast.With) -> ast.AST:
        """`with contextlib.suppress(ImportError)` is another way to write `try`."""
        entered = (ast.unparse(item.context_expr) for item in node.items)
        is_suppressed = any(text.partition("(")[0] in ("suppress", "contextlib.suppress") for text in entered)
        return node if is_suppressed else self.generic_visit(node)

    def visit_Import(self, node: ast.Import) -> list[ast.stmt]:
        kept = [alias for alias in node.names if not _is_absent(_package_of(alias.name))]
        others = [alias for alias in node.names if alias not in kept]
        statements: list[ast.stmt] = [ast.copy_location(ast.Import(kept), node)] if kept else []
        return statements + [self._stand_in(node, _package_of(alias.name), alias) for alias in others]

    def visit_ImportFrom(self, node: ast.ImportFrom) -> Any:
        package = _package_of(node.module or "")
        if node.level or node.names[0].name == "*" or not _is_absent(package):
            return node
        return [self._stand_in(node, package, alias) for alias in node.names]

    def _stand_in(self, node: ast.stmt, package: str, alias: ast.alias) -> ast.stmt:
        self.lines.setdefault(package, node.lineno)
        target = ast.Name(alias.asname or _package_of(alias.name), ast.Store())
        value = ast.Call(ast.Name(ABSENT, ast.Load()), [ast.Constant(package)], [])
        return ast.fix_missing_locations(ast.copy_location(ast.Assign([target], value), node))


def _package_of(module: str) -> str:
    return module.partition(".")[0]


def _is_absent(package: str) -> bool:
    return package not in sys.modules and importlib.util.find_spec(package) is None


def stand_in_for_absent(tree: ast.Module) -> dict[str, int]:
    """Rewrite a snippet in place; the packages that are not there, with the line of the first import of each."""
    rewriter = _StandIns()
    rewriter.visit(tree)
    return rewriter.lines


def note_on_absent(package: str) -> str:
    what = "What is asked of it does nothing." if package in _ONLY_SHOW else "The snippet ends where it uses it."
    return f"{package} is not installed here. {what}"
