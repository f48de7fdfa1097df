"""What was captured of a snippet: FX nodes, guards, graph breaks, recompiles, training, rewrites."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from compiler.report.model import ReportModel, SizeText


class FxNode(ReportModel):
    """A node of an FX graph. `users` and `args` name nodes of the same graph; `lines` are lines of the snippet."""

    name: str
    op: str
    target: str
    args: list[str] = []
    text: str = ""
    shape: list[SizeText] | None = None
    stride: list[SizeText] | None = None
    dtype: str | None = None
    bytes: int | None = None
    lines: list[int] = []
    module: str | None = None
    dead: bool = False


class Guard(ReportModel):
    """A condition on a call under which a graph may be used. `kind`, `name` and `expression` are Dynamo's own terms."""

    kind: str
    name: str
    expression: str
    lines: list[int] = []
    subject: str = Field(default="", description="What it is about, as the snippet writes it: `n`, `x.size(0)`.")
    fails_when: str = Field(default="", description="The change of the input that fails it, such as `n` other than 6.")


class GraphBreak(ReportModel):
    """Where Dynamo stopped tracing, ran the line in Python, and began another graph. Each is listed once, by line."""

    reason: str = Field(description="Dynamo's explanation, its first sentence.")
    line: int | None = None
    kind: str | None = Field(default=None, description="Dynamo's own name of it.")
    hint: str | None = Field(default=None, description="Dynamo's own hints.")
    category: str = Field(default="other", description="Id of the kind of break, as in docs/graph_breaks.md.")
    title: str = Field(default="", description="The kind of break in words.")
    remedy: str = Field(default="", description="What would keep the graph whole, in one sentence.")
    url: str | None = Field(default=None, description="The page of PyTorch's documentation on it.")
    before: list[str] = Field(default=[], description="The graphs that it ended.")
    after: list[str] = Field(default=[], description="The graphs that ran next, where tracing was taken up again.")
    count: int = Field(default=1, description="How often tracing met it.")


class Symbol(ReportModel):
    """A size or a number that a graph leaves open, so that one graph serves every value in `range`."""

    name: str
    source: str = Field(description="What it is, as the snippet writes it: `n`, `x.size(0)`.")
    value: str | None = Field(default=None, description="Its value in the call that was traced.")
    range: str = ""
    line: int | None = None


class Recompile(ReportModel):
    """A compilation made because no earlier code of the function fitted the call: the guard that failed, and how."""

    function: str
    reason: str
    line: int | None = None
    guard: str | None = Field(default=None, description="The condition that failed, of the newest code there was.")
    subject: str | None = Field(default=None, description="What it was about, as the snippet writes it.")
    expected: str | None = None
    actual: str | None = None
    graph: str | None = Field(default=None, description="The graph that was made for the new value.")
    symbolic: list[str] = Field(default=[], description="What the new graph leaves open and the earlier one did not.")


class Artefact(ReportModel):
    """One text of torch's own trace, as its log prints it; `chars` is its length before it was cut."""

    name: str
    title: str
    text: str
    chars: int


class Compilation(ReportModel):
    """One run of Dynamo over one function: its id in torch's logs, the graphs made, the bytecode before and after."""

    id: str
    function: str | None = None
    line: int | None = None
    graphs: list[str] = []
    bytecode_before: str = ""
    bytecode_after: str = ""
    artefacts: list[Artefact] = []


class SavedTensor(ReportModel):
    """A tensor that the forward graph keeps for the backward graph."""

    node: str = Field(description="The node of the forward graph that made it.")
    input: str = Field(description="The input of the backward graph that it is.")
    kind: Literal["input", "output", "activation"] = Field(
        description="An input or an output of the forward graph lives anyway; an activation is kept for this alone."
    )
    shape: list[SizeText] = []
    dtype: str = ""
    bytes: int = 0
    lines: list[int] = []


class GradientCheck(ReportModel):
    """One result or gradient of a whole trained function: errors of eager and compiled against it in float64. An error
    is null where the two cannot be compared."""

    entry: str
    name: str = Field(description='"the result", or "the gradient of x".')
    eager_error: float | None
    compiled_error: float | None
    is_correct: bool = Field(description="Whether rounding explains the error: see docs/measuring.md.")


Subject = Literal["attention", "mask", "heads", "one-hot sum", "picked numbers", "pooling places"]


class Rewrite(ReportModel):
    """Something that is computed better in another way: replaced, or kept and why."""

    what: Subject = Field(
        default="attention",
        description="Attention written by hand, or the mask or repeated heads of a call of torch's own; in a training "
        "step a sum of rows that hold one number, or where maxima over windows lie.",
    )
    verdict: Literal["replaced", "kept"]
    reason: str = Field(description="Id of the reason, as in docs/rewrites.md.")
    message: str = Field(description="The reason in a sentence.")
    detail: str = Field(default="", description="What exactly it was found in, in this graph.")
    remedy: str = Field(default="", description="What the author can do, where there is something.")
    nodes: list[str] = Field(default=[], description="The nodes of `fx` that were replaced.")
    lines: list[int] = []
