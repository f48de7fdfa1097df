"""The kernel of a report as an exploration of its own: its text, and what it is compiled with.

A report is the word of the snippet's own process, so a kernel's text may be anything. Nothing here looks into it; where
it is compiled, it is confined as a snippet is.
"""

from __future__ import annotations

import re
from typing import Literal

from pydantic import ValidationError

from compiler.options import CODE_TARGETS, ELEMENTS, LAUNCH_OPTIONS, KernelArgument, KernelToCompile
from compiler.report import Kernel, KernelArtifact, Report, UserKernel

Language = Literal["triton", "cpp"]


class NotCompilable(ValueError):
    """There is no text of this kernel that a compiler takes for the target; the message says why."""


def kernel_to_compile(
    report: Report,
    name: str,
    graph: str | None = None,
    language: Language | None = None,
    target: str | None = None,
    is_of_peer: bool = False,
) -> tuple[str, KernelToCompile]:
    """The text of the kernel of that name, of the first graph that has one, or of `graph`, or of the peer; and what to
    compile. `language` is by default the one that the target takes, and the target that of the report.

    Raises `KeyError` where there is no such kernel, and `NotCompilable`."""
    if target is not None and target not in CODE_TARGETS:
        raise NotCompilable(f"There is no target {target!r}; there are {', '.join(CODE_TARGETS)}.")
    kernels = (report.peer.kernels if report.peer else []) if is_of_peer else None
    known = [("", kernels)] if kernels is not None else [(one.name, one.kernels) for one in report.graphs]
    found = next(
        ((where, one) for where, some in known if graph in (None, where) for one in some if one.name == name), None
    )
    if found is None:
        raise KeyError(name)
    kernel = found[1]
    if kernel.own is not None:
        return kernel.source, _of_the_users(kernel.own, target or report.environment.target or "sm_90")
    if kernel.kind == "extern":
        raise NotCompilable("It is a library call: its code is the library's, and no compiler made it here.")
    if language is None:
        language = "cpp" if target == "host" or (target is None and kernel.kind == "cpp") else "triton"
    text = _text(kernel, language)
    target = target or ("host" if language == "cpp" else report.environment.target or "sm_90")
    if (language == "cpp") != (target == "host"):
        raise NotCompilable(f"A kernel in {'C++' if language == 'cpp' else 'Triton'} is not compiled for {target}.")
    try:
        if is_of_peer or language == "cpp":
            # The name of one that is launched again has a number behind it, which is not in its text.
            function = name if re.search(rf"\b{re.escape(name)}\b", text.source) else re.sub(r"_\d+$", "", name)
            wanted = KernelToCompile(name=function, language="inductor" if is_of_peer else "cpp", target=target)
        else:
            wanted = _of_ours(report, found[0], kernel, text, target)
    except ValidationError as invalid:
        first = invalid.errors(include_url=False, include_input=False, include_context=False)[0]
        raise NotCompilable(f"The report does not say how it is compiled: {first['msg']}.") from None
    return text.source, wanted


def _of_the_users(own: UserKernel, target: str) -> KernelToCompile:
    if own.problem is not None:
        raise NotCompilable(f"It cannot be compiled by itself. {own.problem}")
    if target == "host":
        raise NotCompilable("A kernel in Triton is not compiled for the host.")
    arguments = tuple(KernelArgument(type=one.type, is_divisible=one.is_divisible) for one in own.arguments)
    return KernelToCompile(
        name=own.function, target=target, arguments=arguments, constants=own.constants, launch=own.launch
    )


def _text(kernel: Kernel, language: Language) -> Kernel | KernelArtifact:
    if kernel.kind == language:
        return kernel
    twin = next((one for one in kernel.also if one.language == language), None)
    if twin is None:
        raise NotCompilable(f"The report has no text of it in {'C++' if language == 'cpp' else 'Triton'}.")
    return twin


def _of_ours(report: Report, graph: str, kernel: Kernel, text: Kernel | KernelArtifact, target: str) -> KernelToCompile:
    """As the launcher has it: buffers, workspace, open sizes; every address a multiple of 16."""
    dtypes = {buffer.name: buffer.dtype for one in report.graphs if one.name == graph for buffer in one.buffers}
    tiles = {one.buffer: one.tile for one in kernel.descriptors} if text is kernel else {}
    arguments = []
    for name in (*kernel.reads, *kernel.writes):
        if name not in dtypes:
            raise NotCompilable(f"The report has no buffer {name[:100]}.")
        element = ELEMENTS.get(dtypes[name], "u8" if dtypes[name].startswith("float8") else "")
        if not element:
            raise NotCompilable(f"Triton has no elements of {dtypes[name][:100]}.")
        if name in tiles:
            arguments.append(KernelArgument(type=f"tensordesc<{element}{list(tiles[name])}>"))
        else:
            arguments.append(KernelArgument(type=f"*{element}", is_divisible=True))
    if "workspace_bytes" in text.config and "counters" in text.config:
        arguments += [KernelArgument(type="*u8", is_divisible=True), KernelArgument(type="*i32", is_divisible=True)]
    arguments += [KernelArgument(type="i64")] * len(kernel.sizes)
    numbers = {name: value for name, value in text.config.items() if isinstance(value, int)}
    return KernelToCompile(
        name=kernel.name,
        target=target,
        arguments=tuple(arguments),
        constants={name: value for name, value in numbers.items() if name.endswith("BLOCK")},
        launch={name: numbers[name] for name in LAUNCH_OPTIONS if name in numbers}
        | ({"debug": 1} if "checks" in text.config else {}),
    )
