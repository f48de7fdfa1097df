"""The Triton twin of each kernel where there is no GPU: generated for the target, assembled, and checked by emulation.

It comes from the same schedule as the C++ that runs. Registers and spills are the assembler's; nothing here is a time.
"""

from __future__ import annotations

import math
from typing import Any

import torch

from compiler import report as rep
from compiler.budget import UNLIMITED, Budget
from compiler.capture.captured import clone_with_strides, copy_values
from compiler.codegen.rendered import RenderedKernel, kernel_lines, lines_through
from compiler.compile import Built, Generated
from compiler.runtime.checking.verify import relative_error
from compiler.runtime.interpreter.interpreter import interpret, interpreting
from compiler.runtime.interpreter.work import TooMuchWork
from compiler.runtime.trial import Launch, record_launches
from compiler.runtime.triton.offline import compile_offline
from compiler.runtime.triton.source import grid_of

#: Why a kernel of a large graph is not looked at.
NO_TIME = "the time for it was up"
#: Emulating one program instance takes half a millisecond at least; a kernel with more of them is not emulated.
MOST_PROGRAMS = 1500
#: Nor is one that takes more than this, which is between one second and three; `interpreted_work.py` has the unit.
MOST_WORK = 400_000_000
#: Points of the block that several programs of a kernel become there: Triton allows a tensor sixteen times as many, and
#: these are few enough that a core's cache keeps what is made of them.
POINTS_AT_ONCE = 1 << 16


def attach_triton(compilation: Generated, report: rep.Graph, target: str, budget: Budget) -> None:
    """Add the Triton source of every kernel to `kernels[].also`, with its assembly for `target` while there is time."""
    storage = compilation.schedule.graph.dtypes
    kernels = {kernel.name: kernel for kernel in report.kernels}
    first = compilation.first_of_code
    nodes = compilation.nodes
    for group in compilation.groups:
        rendered = compilation.triton[group.name]
        artifact = rep.KernelArtifact(
            language="triton",
            target=target,
            source=rendered.source,
            lines=kernel_lines(rendered, nodes),
            config={key: list(v) if isinstance(v, tuple) else v for key, v in rendered.config.items()},
        )
        kernels[group.name].also.append(artifact)
        if first[group.name] != group.name:
            _take_over(kernels[first[group.name]].also[0], artifact, first[group.name])
            continue
        if budget.is_spent:
            artifact.check = f"not assembled for {target}: {NO_TIME}"
            continue
        result = compile_offline(rendered, storage, target)
        if result.error is not None:  # the assembler's word is part of the result
            artifact.check = f"not assembled for {target}: {result.error[:500]}"
            continue
        artifact.registers, artifact.spills = result.registers, result.spills
        artifact.shared_bytes = result.shared_bytes
        kernels[group.name].also.append(
            rep.KernelArtifact(
                language="ptx", target=target, source=result.ptx, lines=lines_through(result.ptx_lines, artifact.lines)
            )
        )


def _take_over(known: rep.KernelArtifact, artifact: rep.KernelArtifact, name: str) -> None:
    """What the assembler said of the kernel `name` holds for another one of the same code."""
    artifact.registers, artifact.spills, artifact.shared_bytes = known.registers, known.spills, known.shared_bytes
    artifact.check = f"the same code as {name} except for names: its result holds here"


def check_by_emulation(compilation: Built, report: rep.Graph, inputs: list[Any], budget: Budget = UNLIMITED) -> None:
    """Run each Triton kernel in Triton's interpreter on the tensors that the C++ one got; compare what they wrote. What
    the budget has no time for is not run."""
    kernels = {kernel.name: kernel for kernel in report.kernels}
    emulated: dict[str, rep.KernelArtifact] = {}
    for name, rendered in compilation.triton.items():
        artifact = next((a for a in kernels[name].also if a.language == "triton"), None)
        if artifact is None or artifact.check is not None:
            continue
        count = grid_of(rendered)(*(atom.hint for atom in rendered.sizes))
        if count > MOST_PROGRAMS:
            artifact.check = f"not run: {count} program instances are too many for Triton's interpreter"
            continue
        emulated[name] = artifact
    launches = record_launches(compilation, inputs, set(emulated))
    in_parts = [member.node for group in compilation.groups for member in group.members if member.node.part_of]
    parts = {name for node in in_parts for name in (node.name, node.part_of or "")}
    with interpreting():
        for name, launch in launches.items():
            if budget.is_spent:
                emulated[name].check = f"not run: {NO_TIME}"
                continue
            _check(compilation.triton[name], launch, set(kernels[name].writes), parts, emulated[name])


def _check(
    rendered: RenderedKernel, launch: Launch, written: set[str], parts: set[str], artifact: rep.KernelArtifact
) -> None:
    """Run one kernel on the tensors of a launch of its twin, and say in `artifact.check` what came of it. Of tensors
    that are written in `parts`, what both left alone is another part."""
    results = _to_be_written(rendered, launch, written - set(rendered.updates), parts)
    sizes = [launch.sizes[atom.name] for atom in rendered.sizes]
    try:
        interpret(rendered, list(results.values()), sizes, MOST_WORK, POINTS_AT_ONCE)
    except TooMuchWork as error:
        artifact.check = f"not run: {error}"
        return
    except Exception as error:
        artifact.check = f"failed in Triton's interpreter: {type(error).__name__}: {str(error)[:500]}"
        return
    if not written:
        artifact.check = "run in Triton's interpreter on the same tensors; it checks values and writes nothing"
        return
    for name in parts & results.keys():
        mine, theirs, before = results[name], launch.after[name], launch.before[name]
        is_kept = (theirs == before) | ((theirs != theirs) & (before != before))
        results[name] = torch.where((mine == 1) & is_kept, theirs, mine)
    largest = max(relative_error(results[name], launch.after[name]) for name in results if name in written)
    artifact.max_error = largest if math.isfinite(largest) else None  # JSON has no infinity
    against = "max_error is against the C++ kernel" if math.isfinite(largest) else "NaN or infinite on one side only"
    artifact.check = f"run in Triton's interpreter on the same tensors; {against}"


def _to_be_written(
    rendered: RenderedKernel, launch: Launch, overwritten: set[str], parts: set[str]
) -> dict[str, torch.Tensor]:
    """The kernel's tensors as they were, and ones where it writes over what was there. It writes by the strides that
    were there."""
    tensors = {name: launch.before[name] for name in rendered.parameters}
    together = copy_values({name: tensor for name, tensor in tensors.items() if name in overwritten & parts})
    apart = {name: clone_with_strides(tensor) for name, tensor in tensors.items() if name in overwritten - parts}
    for tensor in (*together.values(), *apart.values()):
        tensor.fill_(1)
    return tensors | together | apart
