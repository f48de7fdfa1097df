"""How a kernel is launched in its file: a C++ function through ctypes, a Triton kernel by Triton, a library call."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from compiler.options import LAUNCH_OPTIONS
from compiler.report import Graph, Kernel, KernelArtifact, KernelStep
from compiler.reproducer.formula import call_on_tensors
from compiler.reproducer.sizes import Layout
from compiler.reproducer.texts import BUILD_CPP
from compiler.runtime.cpp.compiler import portable_flags

_HEADERS = Path(__file__).resolve().parents[1] / "codegen" / "cpp" / "include"
_OWN_HEADER = re.compile(r'^#include "([\w.]+)"[^\n]*\n', re.MULTILINE)
_FLOAT8 = ("float8_e4m3fn", "float8_e5m2")


class NotLaunchableError(ValueError):
    """Plain Triton or a compiler cannot launch the kernel; the message says why."""


@dataclass(frozen=True)
class Launch:
    """The parts of a file that launch its kernel. `function` defines `launcher()`, which gives a function of a dict of
    tensors by name; `ending` is what a reader need not see first."""

    imports: tuple[str, ...]
    kernel: str
    function: str
    ending: tuple[str, ...] = ()
    is_for_gpu: bool = False


def cpp_launch(kernel: Kernel, graph: Graph, layouts: Mapping[str, Layout]) -> Launch:
    """Through ctypes, with our headers in the file."""
    headers = "".join(_headers(kernel.source, set()))
    lines = ["def launcher():", "    built = library()"]
    lines += _steps(kernel, graph, layouts) if kernel.steps else _one_function(kernel)
    return Launch(
        imports=("import ctypes", "import os", "import shutil", "import subprocess", "import tempfile"),
        kernel=f"KERNEL = {quoted(_OWN_HEADER.sub('', kernel.source))}",
        function="\n".join(lines),
        ending=(
            BUILD_CPP.strip(),
            f"FLAGS = {portable_flags()!r}",
            f"#: What the kernel calls: functions of one element, without branches.\nHEADERS = {quoted(headers)}",
        ),
    )


def _headers(text: str, known: set[str]) -> list[str]:
    """The texts of our headers that a text includes, each once, what others need first."""
    found: list[str] = []
    for name in _OWN_HEADER.findall(text):
        if name not in known and (_HEADERS / name).is_file():
            known.add(name)
            header = (_HEADERS / name).read_text()
            found += _headers(header, known)
            found.append(_OWN_HEADER.sub("", header).replace("#pragma once\n", ""))
    return found


def _one_function(kernel: Kernel) -> list[str]:
    arguments = [*(f"values[{name!r}]" for name in (*kernel.reads, *kernel.writes)), *map(str, kernel.sizes.values())]
    call = f"({', '.join(arguments)})"
    return [
        f"    run, do_nothing = function(built, {kernel.name!r}), function(built, 'empty')",
        "",
        "    def launch(values):",
        f"        run{call}",
        "",
        f"    launch.empty = lambda values: do_nothing{call}",
        "    return launch",
    ]


def _steps(kernel: Kernel, graph: Graph, layouts: Mapping[str, Layout]) -> list[str]:
    """The functions and library calls of a product, in order; what only they see is made for each launch."""
    made = {*kernel.reads, *kernel.writes}
    lines = ["", "    def launch(values):", "        values = dict(values)"]
    for step in kernel.steps:
        if step.function is not None:
            for name in step.buffers:
                if name not in made:
                    made.add(name)
                    lines.append(f"        values[{name!r}] = {_empty(layouts[name])}")
            arguments = ", ".join(f"values[{name!r}]" for name in step.buffers)
            lines.append(f"        function(built, {step.function!r})({arguments})")
        else:
            lines += _library_step(step, kernel, graph, layouts)
            made.add(str(step.call))
    return [*lines, "", "    return launch"]


def _library_step(step: KernelStep, kernel: Kernel, graph: Graph, layouts: Mapping[str, Layout]) -> list[str]:
    node = next(node for node in graph.loops if node.name == step.call)
    name, layout = node.name, layouts[node.name]
    call = call_on_tensors(node, layouts, lambda buffer: f"values[{buffer!r}]")
    lines = [f"        result = {_empty(layout)}.copy_({call})"]
    if name in kernel.writes:
        lines.append(f"        values[{name!r}].copy_(result)")
    return [*lines, f"        values[{name!r}] = result"]


def _empty(layout: Layout) -> str:
    return f"torch.empty_strided({layout.shape}, {layout.stride}, dtype=torch.{layout.dtype}, device=DEVICE)"


def _interpreter_lacks(source: str, layouts: Mapping[str, Layout]) -> str | None:
    """What of the kernel Triton's interpreter refuses or, as of Triton 3.7, computes wrongly: it multiplies the bits of
    bfloat16 numbers as if they were integers (`create_dot` of triton/runtime/interpreter.py)."""
    if re.search(r"\blibdevice\.\w+\(", source):
        return "the functions of libdevice"
    has_bfloat16 = "bfloat16" in source or any(layout.dtype == "bfloat16" for layout in layouts.values())
    return "products of bfloat16" if has_bfloat16 and "tl.dot(" in source else None


def triton_launch(kernel: Kernel, layouts: Mapping[str, Layout], twin: KernelArtifact | None = None) -> Launch:
    """By Triton; on a machine without a GPU in Triton's interpreter. Raises `NotLaunchableError`."""
    config = kernel.config if twin is None else twin.config
    source, grid = (kernel.source, kernel.grid) if twin is None else (twin.source, config.get("grid"))
    if int(str(config.get("cluster", 1))) > 1:
        raise NotLaunchableError("Its programs are started as clusters, which Triton's launcher does not do.")
    if not grid:
        raise NotLaunchableError("The report does not say how many programs a launch has.")
    blocks = {name: value for name, value in config.items() if name.endswith("BLOCK") and isinstance(value, int)}
    options: dict[str, object] = {name: config[name] for name in LAUNCH_OPTIONS if name in config}
    options |= {"debug": True} if "checks" in config else {}
    described = {one.buffer: one for one in kernel.descriptors} if twin is None else {}
    arguments = []
    for name in (*kernel.reads, *kernel.writes):
        text = f"values[{name!r}]" + (".view(torch.uint8)" if layouts[name].dtype in _FLOAT8 else "")
        if name in described:
            one = described[name]
            text = f"TensorDescriptor({text}, {list(one.shape)}, {list(one.strides)}, {list(one.tile)})"
        arguments.append(text)
    lines = ["def launcher():"]
    if missing := _interpreter_lacks(source, layouts):
        lines.append(f'    if DEVICE == "cpu":  # Triton\'s interpreter does not compute {missing}')
        lines.append('        raise SystemExit(print("NEEDS A GPU"))')
    elif any(re.search(rf"\brange\(.*\b{name}\b", source) for name in kernel.sizes):
        lines.append('    if DEVICE == "cpu" and triton.__version__.startswith("3.6"):')
        lines.append(
            '        raise SystemExit(print("NEEDS A GPU"))  # its interpreter takes no argument as a loop\'s end'
        )
    if "def approximate_reciprocal(" in source:
        lines.append('    if DEVICE == "cpu":  # Triton\'s interpreter has no PTX')
        lines.append('        globals()["approximate_reciprocal"] = lambda x: 1.0 / x')
    if "workspace_bytes" in config and "counters" in config:
        size, counters = max(int(config["workspace_bytes"]), 16), max(int(config["counters"]), 1)
        lines.append(f"    workspace = torch.zeros({size}, dtype=torch.uint8, device=DEVICE)")
        lines.append(f"    counters = torch.zeros({counters}, dtype=torch.int32, device=DEVICE)")
        arguments += ["workspace", "counters"]
    arguments += map(str, kernel.sizes.values())
    lines.append(f'    options = {options!r} if DEVICE == "cuda" else {{}}')
    lines.append(f"    grid, blocks = {tuple(grid)}, {blocks!r}")
    lines.append(f"    return lambda values: {kernel.name}[grid]({', '.join(arguments)}, **blocks, **options)")
    imports = ["import os"]
    if described:
        imports.append("from triton.tools.tensor_descriptor import TensorDescriptor")
    return Launch(tuple(imports), source.strip(), "\n".join(lines), is_for_gpu=True)


def quoted(text: str) -> str:
    """The text as a literal that one can read, where it is one."""
    is_plain = "'''" not in text and not text.endswith(("'", "\\"))
    return f"r'''\n{text.strip(chr(10))}\n'''" if is_plain else repr(text)
