"""What was captured of a snippet: FX nodes, guards, graph breaks, recompiles, training, rewrites."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from compiler.report.model import ReportModel, SizeText, example


class FxNode(ReportModel):
    """A node of an FX graph. `users` and `args` name nodes of the same graph; `lines` are lines of the snippet."""

    model_config = example(
        name="mul_1", op="call_function", target="aten.mul.Tensor", args=["sin"], text="mul(sin, 2)",
        shape=[64, 128], stride=[128, 1], dtype="float32", bytes=32768, lines=[4],
    )  # fmt: skip

    name: str = Field(description="Its name in the graph, such as mul_1.")
    op: str = Field(
        description="FX's kind of node: placeholder, call_function, call_method, call_module, get_attr or output."
    )
    target: str = Field(description="What it calls or stands for, such as aten.mul.Tensor.")
    args: list[str] = Field(default=[], description="Names of the nodes that it takes, in order.")
    text: str = Field(default="", description="The node as one line of code. A long line is cut.")
    shape: list[SizeText] | None = Field(
        default=None, description="Sizes of its result, outermost first. Null if it is not a single tensor."
    )
    stride: list[SizeText] | None = Field(
        default=None, description="Strides of its result, in elements. Null if it has none."
    )
    dtype: str | None = Field(default=None, description="The dtype of its result by torch's name, such as float32.")
    bytes: int | None = Field(
        default=None, description="Bytes of all elements of its result. Null if a size is known only when it runs."
    )
    lines: list[int] = Field(default=[], description="Lines of the snippet that it came from, the innermost call last.")
    module: str | None = Field(default=None, description="Path of the innermost nn.Module that it ran in.")
    dead: bool = Field(default=False, description="Whether no result of the graph depends on it.")


class Guard(ReportModel):
    """A condition on a call under which a graph may be used. `kind`, `name` and `expression` are Dynamo's own terms."""

    kind: str = Field(description="Dynamo's kind of guard, such as TENSOR_MATCH.")
    name: str = Field(description="What is guarded, as Dynamo writes it, such as L['x'].")
    expression: str = Field(description="The condition, as code or in words.")
    lines: list[int] = Field(default=[], description="Lines of the snippet that it is about.")
    subject: str = Field(default="", description="What it is about, as the snippet writes it: `n`, `x.size(0)`.")
    fails_when: str = Field(default="", description="The change of the input that fails it, such as `n` other than 6.")


class GraphBreak(ReportModel):
    """Where Dynamo stopped tracing, ran the line in Python, and began another graph. Each is listed once, by line."""

    model_config = example(
        reason="Data-dependent branching", line=7, category="data_dependent_branch",
        title="control flow that depends on data",
        remedy="Write the choice as torch.where.", before=["graph_0"], after=["graph_1"],
    )  # fmt: skip

    reason: str = Field(description="Dynamo's explanation, its first sentence.")
    line: int | None = Field(default=None, description="The line of the snippet at which tracing stopped.")
    kind: str | None = Field(default=None, description="Dynamo's own name of it.")
    hint: str | None = Field(default=None, description="Dynamo's own hints.")
    category: str = Field(default="other", description="Id of the kind of break, as in docs/graph_breaks.md.")
    title: str = Field(default="", description="The kind of break in words.")
    remedy: str = Field(default="", description="What would keep the graph whole, in one sentence.")
    url: str | None = Field(default=None, description="The page of PyTorch's documentation on it.")
    before: list[str] = Field(default=[], description="The graphs that it ended.")
    after: list[str] = Field(default=[], description="The graphs that ran next, if tracing started again.")
    count: int = Field(default=1, description="How often tracing met it.")


class Symbol(ReportModel):
    """A size or a number that a graph leaves open, so that one graph serves every value in `range`."""

    model_config = example(name="s77", source="x.size(0)", value="16", range="at least 2", line=6)

    name: str = Field(description="The symbol, such as s0.")
    source: str = Field(description="What it is, as the snippet writes it: `n`, `x.size(0)`.")
    value: str | None = Field(default=None, description="Its value in the call that was traced.")
    range: str = Field(default="", description="The values that the graph serves, such as at least 2.")
    line: int | None = Field(default=None, description="The line of the snippet that brings it in.")


class Recompile(ReportModel):
    """A compilation made because no earlier code of the function fitted the call: the guard that failed, and how."""

    function: str = Field(description="The user's function that was compiled again.")
    reason: str = Field(description="What the call had and the code did not allow, in a sentence.")
    line: int | None = Field(default=None, description="The line of the snippet that uses what the condition is about.")
    guard: str | None = Field(default=None, description="The condition that failed, in the newest code.")
    subject: str | None = Field(default=None, description="What the condition is about, as the snippet writes it.")
    expected: str | None = Field(default=None, description="What the guard asks for.")
    actual: str | None = Field(default=None, description="What the call had instead.")
    graph: str | None = Field(default=None, description="The graph that was made for the new value.")
    symbolic: list[str] = Field(default=[], description="What the new graph leaves open. The earlier graph did not.")


class Artefact(ReportModel):
    """One text of torch's own trace, as its log prints it; `chars` is its length before it was cut."""

    name: str = Field(description="The artefact as torch's logs name it.")
    title: str = Field(description="What it is, in words.")
    text: str = Field(description="Its text, cut at a stated length.")
    chars: int = Field(description="Characters before it was cut.")


class Compilation(ReportModel):
    """One run of Dynamo over one function: its id in torch's logs, the graphs made, the bytecode before and after."""

    id: str = Field(description="Its id in torch's logs, such as 0/1: the frame, and how often it was compiled before.")
    function: str | None = Field(
        default=None, description="The user's function that was compiled. Null if the function has no name."
    )
    line: int | None = Field(default=None, description="The first line of that function in the snippet.")
    graphs: list[str] = Field(default=[], description="Names of the graphs that it gave.")
    bytecode_before: str = Field(default="", description="The function's bytecode, one instruction a line.")
    bytecode_after: str = Field(default="", description="The bytecode that Dynamo made of it, one instruction a line.")
    artefacts: list[Artefact] = Field(default=[], description="What torch logged of this compilation.")


class SavedTensor(ReportModel):
    """A tensor that the forward graph keeps for the backward graph."""

    node: str = Field(description="The node of the forward graph that made it.")
    input: str = Field(description="The input of the backward graph that it is.")
    kind: Literal["input", "output", "activation"] = Field(
        description="Inputs and outputs are alive anyway. An activation is kept for the backward graph alone."
    )
    shape: list[SizeText] = Field(default=[], description="Its sizes, outermost first.")
    dtype: str = Field(default="", description="Its dtype by torch's name.")
    bytes: int = Field(default=0, description="Bytes of all its elements.")
    lines: list[int] = Field(default=[], description="Lines of the snippet that made it.")


class GradientCheck(ReportModel):
    """One result or gradient of a whole trained function: errors of eager and compiled against it in float64. An error
    is null if the two cannot be compared."""

    entry: str = Field(description="The function that was called.")
    name: str = Field(description='"the result", or "the gradient of x".')
    eager_error: float | None = Field(
        description="Relative error of eager against float64. Null if the two cannot be compared."
    )
    compiled_error: float | None = Field(
        description="Relative error of compiled against float64. Null if the two cannot be compared."
    )
    allowed_error: float | None = Field(
        default=None, description="The largest error that rounding explains. Null in older reports."
    )
    is_correct: bool = Field(description="Whether rounding explains the error. See docs/measuring.md.")


Subject = Literal["attention", "mask", "heads", "one-hot sum", "picked numbers", "pooling places"]


class Rewrite(ReportModel):
    """Something that is computed better in another way: replaced, or kept and why."""

    what: Subject = Field(
        default="attention",
        description="What was found: attention written by hand, a mask or repeated heads of torch's attention, or "
        "in a training step a sum of rows that hold one number, or the places of maxima.",
    )
    verdict: Literal["replaced", "kept"] = Field(description="Whether it was replaced.")
    reason: str = Field(description="Id of the reason, as in docs/rewrites.md.")
    message: str = Field(description="The reason in a sentence.")
    detail: str = Field(default="", description="The calls of this graph in which it was found.")
    remedy: str = Field(default="", description="What the author can do. Empty if there is nothing.")
    nodes: list[str] = Field(default=[], description="The nodes of `fx` that were replaced.")
    lines: list[int] = Field(default=[], description="Lines of the snippet that it is about.")
