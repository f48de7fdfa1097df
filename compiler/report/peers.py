"""The other compiler and the other contestants: what each made of the same graphs, aligned with ours."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from compiler.report.kernels import Kernel
from compiler.report.model import ReportModel
from compiler.report.timings import ElementErrors

KernelForm = Literal[
    "pointwise", "reduction", "persistent reduction", "scan", "template", "foreach", "library call", "loops"
]
Relation = Literal["same", "split", "merged", "regrouped", "only ours", "only theirs"]


class PeerKernel(Kernel):
    """A launch of the other compiler in our terms: `origins` and the nodes of `lines` are nodes of `graph`'s `aten`,
    `nodes` are the other compiler's own buffers."""

    graph: str | None = Field(default=None, description="Our graph that it belongs to. Null if there is none.")
    form: KernelForm = Field(default="loops", description="The form of the kernel, as its name and its loops show it.")
    is_exact: bool = Field(
        default=True,
        description="Whether its own nodes have counterparts in ours. If not, `origins` are the nearest nodes "
        "that have one, or the nodes of its lines.",
    )
    fuses: list[str] = Field(default=[], description="Operators that it computes, by their names before decomposition.")


class PeerBuffer(ReportModel):
    """A tensor of the other compiler's wrapper."""

    name: str = Field(description="Its name in the wrapper.")
    bytes: int = Field(description="Bytes of all its elements. 0 if the size is symbolic.")
    dtype: str | None = Field(default=None, description="Its dtype by torch's name.")
    takes_over: str | None = Field(default=None, description="The buffer whose memory it gets.")


class PeerLaunch(ReportModel):
    """One line of the other compiler's wrapper that launches."""

    line: int = Field(description="The line in the wrapper, counted from 1.")
    kernel: int = Field(description="Position of the kernel among the other compiler's kernels, counted from 0.")


class PeerGraph(ReportModel):
    """One graph as the other compiler compiled it."""

    graph: str | None = Field(description="Our graph that it corresponds to. Null if there is none.")
    wrapper: str = Field(default="", description="The function that launches its kernels, as Python.")
    launches: list[PeerLaunch] = Field(default=[], description="Where `wrapper` launches which kernel.")
    buffers: list[PeerBuffer] = Field(default=[], description="Tensors that its kernels read and write.")
    pairs: int = Field(default=0, description="Nodes of its graph that have a counterpart in ours.")


class PeerRefusal(ReportModel):
    """Two kernels that the other compiler did not fuse, with the last words that it had for it."""

    graph: str | None = Field(description="The graph of ours that both belong to.")
    kernels: tuple[int, int] = Field(description="Positions of the two among the other compiler's kernels.")
    a: str = Field(description="A node of `aten` that the first computes.")
    b: str = Field(description="A node of `aten` that the second computes.")
    message: str = Field(description="The other compiler's own words.")


class AlignedKernels(ReportModel):
    """Kernels of both compilers that compute the same nodes: the smallest sets that are whole in both."""

    graph: str = Field(description="Our graph.")
    relation: Relation = Field(description="How the other compiler divides the nodes. Merged is fewer kernels.")
    nodes: list[str] = Field(description="Nodes of `aten` that they compute, in the graph's order.")
    ours: list[int] = Field(default=[], description="Positions of our kernels in the graph, counted from 0.")
    theirs: list[int] = Field(default=[], description="Positions of the other compiler's kernels, counted from 0.")
    sentence: str = Field(default="", description="The difference, in a sentence. Empty if there is none.")
    because: str = Field(default="", description="Our decision that explains the difference. Empty if none does.")
    decision: int | None = Field(default=None, description="Position of that decision among the graph's `decisions`.")
    pair: tuple[str, str] | None = Field(default=None, description="The two loop nodes that the decision is about.")
    refusal: str = Field(default="", description="The other compiler's words for not fusing. Empty if it has none.")
    count: int = Field(default=1, description="How often the same is found. 0 if an earlier entry counts this one.")


class ContestantErrors(ReportModel):
    """How far one contestant's output is from float64."""

    contestant: str = Field(description="Its name, as among the contestants that were timed.")
    errors: ElementErrors | None = Field(default=None, description="Errors of its elements. Null if not comparable.")
    problem: str | None = Field(
        default=None,
        description="What is wrong, in a clause, if rounding does not explain it: an error, another dtype or "
        "shape, or NaN or an infinity where neither float64 nor eager has it.",
    )


class CallErrors(ReportModel):
    """One result or gradient of a call, with rounded values, of everybody who gave it, element by element."""

    entry: str = Field(description="The function that was called.")
    output: str = Field(description='Its name: "the result", "result 2", "the gradient of x".')
    seed: int = Field(
        description="The seed of the inputs. With the snippet's own seed they are the snippet's own inputs. With "
        "another seed each floating argument gets values drawn from its own."
    )
    dtype: str = Field(description="Its dtype by torch's name.")
    elements: int = Field(description="How many elements were compared. A complex element counts as two.")
    of: list[ContestantErrors] = Field(default=[], description="The errors of each contestant. Eager is first.")


class ContestantOutcome(ReportModel):
    """One way to run the same calls: its time and its error, or why it has none."""

    name: str = Field(description="Its name, as the options ask for it.")
    median_ms: float | None = Field(default=None, description="Milliseconds of a call: the median of all samples.")
    compile_s: float | None = Field(default=None, description="Seconds of its first call, compiling included.")
    max_error: float | None = Field(default=None, description="Its largest relative error against float64.")
    failure: str | None = Field(default=None, description="Why it has no time, in a sentence.")


class Peer(ReportModel):
    """What TorchInductor made of the same graphs, and how it and all other contestants fared."""

    name: str = Field(default="TorchInductor", description="The other compiler.")
    mode: str = Field(default="default", description="The mode that it was asked for.")
    kernels: list[PeerKernel] = Field(default=[], description="What it launches, in order, library calls included.")
    graphs: list[PeerGraph] = Field(default=[], description="Its graphs, in the order in which it compiled them.")
    alignment: list[AlignedKernels] = Field(default=[], description="Its kernels beside ours. Differences come first.")
    refusals: list[PeerRefusal] = Field(default=[], description="The kernels that it did not fuse, with its own words.")
    contestants: list[ContestantOutcome] = Field(default=[], description="Times and errors of all that were asked for.")
    errors: list[CallErrors] = Field(
        default=[], description="How far everybody's results of whole calls are from float64, for several seeds."
    )
    seeds: str = Field(default="", description="The seeds that there are errors for, and why there are no more.")
    message: str | None = Field(
        default=None, description="What it made of the snippet, or why it was not asked, in sentences."
    )
