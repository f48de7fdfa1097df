"""The file of one kernel, from what a report says of it.

It makes the inputs of the kernel from a seed, launches the kernel as it was generated, compares what that gives with
the same computation in float64, and prints one line for each result and one for the time.
"""

from __future__ import annotations

import re
from typing import Literal

from compiler.report import Graph, Kernel, KernelArtifact, Report
from compiler.reproducer.eager import eager
from compiler.reproducer.formula import (
    NotExpressibleError,
    call_on_tensors,
    formula,
    given_to,
    nodes_of,
    symbols_in,
    variable,
)
from compiler.reproducer.launches import Launch, NotLaunchableError, cpp_launch, triton_launch
from compiler.reproducer.sizes import UnknownSizeError, layout_of, symbols_of
from compiler.reproducer.texts import ATTENTION, CHECKS, HELPERS, LIBRARY, MAIN, TENSORS
from compiler.wording import line_list

_ROUNDED = frozenset({"float16", "bfloat16", "float32", "float64"})
#: Calls whose float32 factors torch may round to TF32, and who is asked whether it does.
_TF32 = {
    r"conv|cudnn|miopen": "torch.backends.cudnn",
    r"mm\b|mv\b|dot|linear|attention": "torch.backends.cuda.matmul",
}
#: Those on a GPU refuse float64; cuDNN's raises nothing and gives other numbers (torch 2.11).
_ATTENTION = re.compile(r"torch\.(?:ops\.aten\.)?(_scaled_dot_product_\w+)(?<!_backward)(?:\.default)?\(")
_WHOLE = frozenset({"int8", "int16", "int32", "int64", "uint8", "bool"})


class NoReproducerError(ValueError):
    """A kernel cannot be run alone by such a file; the message says why, in a sentence."""


def reproducer(
    report: Report, kernel: str, graph: str | None = None, language: Literal["cpp", "triton"] | None = None
) -> str:
    """The text of the file for the kernel of that name, of the first graph that has one, or of `graph`. Several library
    calls may have one name: the name of a loop node tells them apart.

    `language` "triton" asks for the Triton kernel beside a C++ one. Raises `KeyError` where there is no such
    kernel, and `NoReproducerError` where it cannot be run alone."""
    found, one = _find(report, kernel, graph)
    twin = None
    if language not in (None, one.kind):
        twin = next((other for other in one.also if other.language == language), None)
        if twin is None or one.kind == "extern":
            raise KeyError(kernel)
    try:
        return _File(report, found, one, twin).text()
    except (UnknownSizeError, NotLaunchableError, NotExpressibleError) as reason:
        raise NoReproducerError(str(reason)) from None


def _find(report: Report, kernel: str, graph: str | None) -> tuple[Graph, Kernel]:
    known = [(one, candidate) for one in report.graphs if graph in (None, one.name) for candidate in one.kernels]
    for found in known:
        if found[1].name == kernel:
            return found
    for found in known:
        if found[1].kind == "extern" and kernel in found[1].nodes:
            return found
    raise KeyError(kernel)


class _File:
    def __init__(self, report: Report, graph: Graph, kernel: Kernel, twin: KernelArtifact | None) -> None:
        self.report, self.graph, self.kernel, self.twin = report, graph, kernel, twin
        self.symbols = symbols_of(graph, kernel)
        self.ranges = {buffer.name: (buffer.smallest, buffer.largest) for buffer in graph.buffers}
        known = {buffer.name: buffer for buffer in graph.buffers}
        self.layouts = {name: layout_of(known[name], self.symbols) for name in self._names() if name in known}

    def _names(self) -> list[str]:
        """The buffers that the file speaks of."""
        nodes = nodes_of(self.graph, self.kernel)
        touched = [access.buffer for node in nodes for access in (*node.reads, *node.writes)]
        parts = [node.part_of for node in nodes if node.part_of is not None]
        return list(dict.fromkeys([*self.kernel.reads, *self.kernel.writes, *touched, *parts]))

    def text(self) -> str:
        self._refuse_what_cannot_be_made()
        if not re.fullmatch(r"[\w.:]+", self.kernel.name):
            raise NoReproducerError("The kernel's name is none.")
        if self.kernel.kind == "extern":
            return self._together(self._library_call(), LIBRARY)
        launch = self._launch()
        compared, functions = self._compared()
        parts = [launch.kernel, self._inputs(), *functions, compared, launch.function]
        return self._together([*parts, *_helpers("\n".join(functions))], MAIN, launch)

    def _together(self, parts: list[str], main: str, launch: Launch | None = None) -> str:
        settings = [
            f"SEED = {self.report.environment.seed}",
            f"DEVICE = {self._device(launch)}",
            f"GIVEN = {given_to(self.kernel)!r}",
            f"WRITES = {self.kernel.writes!r}",
        ]
        ending = launch.ending if launch is not None else ()
        whole = [
            self._head(launch),
            "\n".join(settings),
            *parts,
            TENSORS.strip(),
            CHECKS.strip(),
            *ending,
            main.strip(),
        ]
        return "\n\n\n".join(whole) + "\n"

    def _device(self, launch: Launch | None) -> str:
        """A library call is run where its graph was; of a kernel its language says where it can be."""
        is_for_gpu = self.graph.device == "cuda" if launch is None else launch.is_for_gpu
        return '"cuda" if torch.cuda.is_available() else "cpu"' if is_for_gpu else '"cpu"'

    def _head(self, launch: Launch | None) -> str:
        kernel, environment = self.kernel, self.report.environment
        lines = line_list(kernel.user_lines)
        needs = "torch and Triton" if launch is not None and launch.is_for_gpu else "torch and a C++ compiler"
        about = [
            f'"""The kernel {kernel.name} of {self.graph.name}, alone'
            + (f": {lines} of the snippet." if lines else "."),
            "",
            f"Run it with Python. It needs {'torch' if launch is None else needs}, and was made by Fusionscope",
            _plain(f"{environment.compiler} with torch {environment.torch}. Its inputs are random numbers."),
            '"""',
        ]
        imports = sorted({"import statistics", "import time", *(launch.imports if launch is not None else ())})
        settings: list[str] = []
        if launch is not None and launch.is_for_gpu:
            interpreted = '    os.environ["TRITON_INTERPRET"] = "1"  # before Triton is imported'
            settings += ["", "if not torch.cuda.is_available():", interpreted]
            if '"tf32"' in launch.kernel:  # what it is compared with then rounds alike
                settings += ["", "torch.backends.cuda.matmul.allow_tf32 = True  # as the kernel does"]
        return "\n".join([*about, "", *imports, "", "import torch", *settings])

    def _refuse_what_cannot_be_made(self) -> None:
        for name in (*self.kernel.reads, *self.kernel.writes):
            if name not in self.layouts:
                raise NoReproducerError(f"The report does not say how {name} lies in memory.")
            if self.layouts[name].dtype not in _ROUNDED | _WHOLE:
                raise NoReproducerError(f"{name} is {self.layouts[name].dtype}: such a file makes no values of that.")

    def _launch(self) -> Launch:
        if self.twin is not None or self.kernel.kind == "triton":
            return triton_launch(self.kernel, self.layouts, self.twin)
        return cpp_launch(self.kernel, self.graph, self.layouts)

    def _inputs(self) -> str:
        names = list(dict.fromkeys([*self.kernel.reads, *self.kernel.writes]))
        wholes = self._wholes_of_parts()
        begin = {whole: f"    {whole} = {self._tensor(name, is_empty=True)}" for name, whole in wholes.items()}
        lines = [f"        {name!r}: {wholes[name] if name in wholes else self._tensor(name)}," for name in names]
        head = ["def inputs(spread=torch.randn):", '    """What the kernel reads and writes, by name."""']
        return "\n".join([*head, *begin.values(), "    return {", *lines, "    }"])

    def _wholes_of_parts(self) -> dict[str, str]:
        """The variable that is one tensor by the names of its parts that the kernel writes. It begins with zeros, as
        does the memory that the formula stores to: other kernels write the rest."""
        nodes = nodes_of(self.graph, self.kernel)
        whole_of = {node.name: node.part_of for node in nodes if node.part_of is not None}
        whole_of |= {whole: whole for whole in whole_of.values()}
        given = given_to(self.kernel)
        return {
            name: f"whole_{variable(whole_of[name])}"
            for name in self.kernel.writes
            if name in whole_of and not {name, whole_of[name]}.intersection(given)
        }

    def _tensor(self, name: str, is_empty: bool = False) -> str:
        layout = self.layouts[name]
        if is_empty:
            numbers = f"zero(torch.{layout.dtype})"
        elif layout.dtype in _ROUNDED:
            numbers = f"rounded(torch.{layout.dtype}, spread)"
        else:
            smallest, largest = self._range(name)
            numbers = f"whole(torch.{layout.dtype}, {smallest}, {largest})"
        return f"tensor({numbers}, {layout.shape}, {layout.stride})"

    def _range(self, name: str) -> tuple[int, int]:
        """Of integers that the snippet gave; for others, such as indices that another kernel found, 0 and 1."""
        smallest, largest = self.ranges[name]
        return (smallest, largest) if smallest is not None and largest is not None else (0, 1)

    def _compared(self) -> tuple[str, list[str]]:
        """The function that compares, and those that it calls."""
        operators = eager(self.graph, self.kernel, given_to(self.kernel))
        try:
            exact = formula(self.graph, self.kernel, self.layouts, self.symbols)
        except NotExpressibleError as reason:
            why = str(reason)
            exact = None
        lines = ["def compared(given, values):", '    """Whether each result is right."""']
        if exact is not None:
            # A kernel that rounds anything to fewer bits is no more precise than that, whatever it writes.
            rounded = {node.dtype for node in nodes_of(self.graph, self.kernel)} & _ROUNDED
            single = "float64" if rounded == {"float64"} else "float32"
            lines.append(f"    exact, single = formula(torch.float64, *given), formula(torch.{single}, *given)")
            lines += [f"    others = {{'by the same lines in {single}': single}}"]
        elif operators is not None:
            lines.append("    exact = eager(*(one.double() if one.is_floating_point() else one for one in given))")
            lines += ["    others = {}"]
        else:
            return "\n".join([*lines, f'    print("Not compared: {_plain(why)}")', "    return []"]), []
        if operators is not None:
            lines.append('    print(f"eager: {time_of(lambda: eager(*given))}")')
            lines.append("    others['by eager'] = eager(*given)")
        lines.append("    return all_right(values, exact, others)")
        return "\n".join(lines), [text for text in (exact, operators) if text is not None]

    def _library_call(self) -> list[str]:
        last = self.kernel.nodes[-1:]
        node = next((node for node in self.graph.loops if node.name in last), None)
        if node is None or node.call is None:
            raise NoReproducerError("The report does not have the code of this library call.")
        call = call_on_tensors(node, self.layouts, variable)
        unknown = set(re.findall(r"\b[su]\d+\b", call)) - self.symbols.keys() - set(self.kernel.reads)
        if unknown:
            raise NoReproducerError(f"The size {min(unknown)} of this library call is not known without a call.")
        names = ", ".join(variable(name) for name in self.kernel.reads)
        sizes = symbols_in(call, self.symbols)
        rounded_by = next((switch for calls, switch in _TF32.items() if re.search(calls, call)), None)
        lines = [
            f"ROUNDED_BY = {rounded_by}",
            "",
            "",
            f"def library({names}):",
            '    """The call, on what the kernel reads."""',
            *sizes,
            f"    return {call}",
        ]
        exactly = "exactly = library"
        if _ATTENTION.search(call):
            formula_of = _ATTENTION.sub(r"attention_formula(torch.ops.aten.\1.default, ", call)
            header = [f"def exactly({names}):", '    """What the call computes, in float64, by a formula."""']
            exactly = "\n".join([ATTENTION.strip(), "", "", *header, *sizes, f"    return {formula_of}"])
        return [self._inputs(), "\n".join(lines), exactly, HELPERS["view"]]


def _plain(text: str) -> str:
    return re.sub(r"[^\w .,:;()\[\]+*/=-]", " ", text)[:200]


def _helpers(code: str) -> list[str]:
    """The helpers that the code calls, and what these call."""
    wanted: list[str] = []
    for name, text in reversed(HELPERS.items()):
        if any(re.search(rf"(?<![\w.]){name}\(", calling) for calling in (code, *wanted)):
            wanted.insert(0, text)
    return wanted
