"""A kernel as text, with what its launch needs: what Triton and C++ printers hand to the runtime."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Literal

from compiler import report as rep
from compiler.ir.nodes import LoopNode
from compiler.ir.size import Integer, SizeAtom, hint


@dataclass(frozen=True)
class TileDescriptor:
    """A parameter that is not an address: it tells where a tensor of two dimensions lies, and which tiles of it are
    asked for. `shape`, `strides` and `tile` are in elements, the last dimension the one without gaps."""

    parameter: str
    shape: tuple[int, int]
    strides: tuple[int, int]
    tile: tuple[int, int]


#: Plain values by their names.
Config = dict[str, int | str | tuple[int, ...]]


def launch_config(
    blocks: Mapping[str, int], warps: int, grid: Integer, plan: str, stages: int = 1, checks: bool = False
) -> Config:
    """What a launch of a Triton kernel needs besides its parameters; a kernel that `checks` may end the program.

    No product is contracted with a sum, but where the text says `tl.fma`: each of them is rounded, as by eager mode,
    which has a kernel for each, and by the kernels of a CPU. Contracted, `a * b - (a * b).amin()` is below zero at the
    smallest one, and a tensor that two kernels compute may have two values."""
    config: Config = {**blocks, "num_warps": warps, "num_stages": stages, "enable_fp_fusion": False}
    config |= {"grid": (hint(grid),), "plan": plan}
    return config | ({"checks": 1} if checks else {})


@dataclass(frozen=True)
class RenderedKernel:
    """A kernel as text.

    `parameters` are buffers in the order in which the launcher passes them (reads, then writes), `sizes` the integers
    that it passes after them; `lines` gives, for each line of `source` that computes something (counted from 1), the
    loop nodes that it computes for; `config` is what the launch needs besides (grid, block sizes, warps), plain values
    only. `grid` is how many programs a launch has. The parameters that `descriptors` name are passed as such.
    """

    name: str
    language: Literal["triton", "cpp"]
    source: str
    parameters: tuple[str, ...]
    lines: tuple[tuple[int, tuple[str, ...]], ...]
    config: Config = field(hash=False)
    #: Parameters that it changes in place: what they hold before matters.
    updates: tuple[str, ...] = ()
    sizes: tuple[SizeAtom, ...] = ()
    grid: Integer = 1
    #: Kernels of C++ that run before and after a library call, where all of them together are this one.
    steps: tuple[RenderedKernel, ...] = ()
    descriptors: tuple[TileDescriptor, ...] = ()
    #: The position among the graph's seeds from which on it is given them.
    first_seed: int = 0


def kernel_lines(rendered: RenderedKernel, nodes: Mapping[str, LoopNode]) -> list[rep.KernelLine]:
    """Each line of the kernel with the nodes that it computes for and the user's lines behind them. `nodes` are those
    of all groups: a kernel may compute again what another one has."""
    lines_of = {name: nodes[name].lines for _, names in rendered.lines for name in names if name in nodes}
    return [
        rep.KernelLine(
            line=line, nodes=list(nodes), user_lines=sorted({n for node in nodes for n in lines_of.get(node, ())})
        )
        for line, nodes in rendered.lines
    ]


def lines_through(steps: Iterable[tuple[int, int]], lines: Iterable[rep.KernelLine]) -> list[rep.KernelLine]:
    """Where lines of a second text come from that was made of a first: `steps` are pairs of lines of the second and of
    the first, `lines` those of the first. A line whose origin is not known is left out."""
    known = {line.line: line for line in lines}
    return [known[first].model_copy(update={"line": second}) for second, first in steps if first in known]
