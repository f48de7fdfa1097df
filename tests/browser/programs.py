"""A program in the compiler's place: it answers with the stored report of the page's own tests, stage by stage.

The real service runs it in its real worker, so what the browser sees differs from an exploration only in how the
report was found. A snippet's first line may ask for a variation: `# slow`, `# stuck`, `# fails`, `# hostile`,
`# two graphs`, `# trained`, `# no graph`, `# nothing to explore`, `# nothing measured`, `# wrong result`,
`# more pairs`.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Literal

from compiler.options import KernelToCompile, Options
from compiler.options import Sweep as SweepOptions
from compiler.report import (
    CodeLevel,
    Error,
    Flip,
    GradientCheck,
    Graph,
    GraphBreak,
    MachineCode,
    MemoryAccess,
    NamedSize,
    Occupancy,
    OccupancyLimit,
    Outcome,
    Pass,
    Recompile,
    Report,
    SavedTensor,
    Stage,
    Summary,
    SweepResult,
    SweptPair,
    SweptSize,
    WhatIf,
    WrongResult,
)

# Read at import: a confined child may not read the working tree.
STORED = Report.model_validate_json(
    (Path(__file__).resolve().parents[2] / "web" / "src" / "test" / "report.json").read_text()
)
STORED.graphs[0].predicted_us = sum(kernel.predicted_us or 0 for kernel in STORED.graphs[0].kernels)
STAGES = len(STORED.stages)
#: The stage, counted from 1, with which the kernels arrive.
KERNELS_AT = 4
#: The stage, counted from 1, that waits until it is stopped.
STUCK_AT = {"stuck": 2, "stuck with a verdict": 7}
HOSTILE = '<img src=x onerror="window.wasFooled = true"><script>window.wasFooled = true</script>'


BREAK = GraphBreak(
    reason="Dynamo does not know how to trace builtin operator `print`.",
    line=4,
    kind="Failed to trace builtin operator",
    hint="Avoid calling builtin `print`.",
    category="print",
    title="printing or logging",
    remedy="Print after the compiled function.",
    url="https://meta-pytorch.github.io/compile-graph-break-site/gb/gb0059.html",
    before=["before"],
    after=["after"],
    count=2,
)
CHECKS = [
    GradientCheck(
        entry="attention_scores",
        name=f"the gradient of {name}",
        eager_error=1.5e-7,
        compiled_error=error,
        is_correct=error < 1e-5,
    )
    for name, error in (("q", 1.2e-7), ("k", 2e-3))
]
RECOMPILE = Recompile(
    function="attention_scores",
    reason="`scale` was 0.5, and the existing code needs `scale == 0.125`",
    line=8,
    guard="scale == 0.125",
    subject="scale",
    expected="0.125",
    actual="0.5",
    graph="after",
    symbolic=["scale"],
)


WRONG = WrongResult(
    contestant="compiled",
    graph=STORED.graphs[0].name,
    entry="attention_scores",
    output="div",
    error=4.9e27,
    eager_error=1e-7,
    tolerance=1e-5,
    message="Output 1 (`div`) of graph_0, a part of attention_scores, has an error of 4.9e+27 against float64; eager's "
    "is 1.0e-07, and 1.0e-05 is allowed.",
)


def trained(graph: Graph) -> list[Graph]:
    """A forward graph and a backward graph, which have the same nodes: what matters is what passes between them."""
    forward, backward = graph.model_copy(deep=True), graph.model_copy(deep=True)
    forward.phase, forward.partner = "forward", "backward"
    backward.name, backward.phase, backward.partner = "backward", "backward", forward.name
    made = next(node for node in graph.aten if node.op == "call_function" and node.shape is not None)
    again = next(node for node in graph.aten if node.op == "call_function" and node is not made)
    backward.saved = [
        SavedTensor(node="q", input="q", kind="input", shape=[1024, 1024], dtype="float32", bytes=4 * 1024**2),
        SavedTensor(
            node=made.name, input=made.name, kind="activation", shape=made.shape or [], dtype="float32",
            bytes=made.bytes or 0, lines=made.lines,
        ),
    ]  # fmt: skip
    backward.recomputed = [again.name]
    backward.guards = []
    return [forward, backward]


#: With which stage, counted from 1, the compiler tells a part of a graph; all others come with the first.
STAGE_OF_PART = {
    **dict.fromkeys(("loops", "removed"), 2),
    **dict.fromkeys(("decisions", "rounds", "buffers", "memory", "floor_bytes"), 3),
    **dict.fromkeys(("kernels", "refusals", "predicted_us"), 4),
    **dict.fromkeys(("wrapper", "errors", "replay"), 5),
    "call_us": 7,
}


def part(report: Report, stages: int) -> Report:
    """The report when that many stages are done: each part arrives with its own stage."""
    graphs = []
    for graph in report.graphs if stages >= 1 else []:
        nothing = Graph(name="")
        late = [name for name, stage in STAGE_OF_PART.items() if stages < stage]
        graphs.append(graph.model_copy(update={name: getattr(nothing, name) for name in late}))
    return report.model_copy(
        update={
            "status": "running",
            "stages": report.stages[:stages],
            "graphs": graphs,
            "breaks": report.breaks if stages >= 1 else [],
            "compilations": report.compilations if stages >= 1 else [],
            "timing": report.timing if stages >= 6 else None,
            "peer": report.peer if stages >= 8 else None,
            "summary": report.summary if stages >= 6 else Summary(),
        }
    )


def varied(report: Report, wish: str) -> Report:
    if wish in ("fails", "nothing to explore"):
        line = 3 if wish == "fails" else None
        error = Error(type="ValueError", message="not this one", line=line, stage="capture", hint="Try `f(x)`.")
        return report.model_copy(
            update={"status": "user_error", "graphs": [], "summary": Summary(), "error": error, "timing": None}
        )
    if wish == "hostile":
        graph = report.graphs[0].model_copy(deep=True)
        graph.kernels[1].source = f"// {HOSTILE}\n"
        graph.aten[4].text = graph.decisions[0].message = graph.loops[1].body[0] = graph.guards[0].expression = HOSTILE
        return report.model_copy(update={"graphs": [graph], "output": HOSTILE})
    if wish == "two graphs":
        first, second = (report.graphs[0].model_copy(deep=True) for _ in range(2))
        first.name, second.name = "before", "after"
        first.breaks = [BREAK]
        second.recompiles = [RECOMPILE]
        return report.model_copy(update={"graphs": [first, second], "breaks": [BREAK]})
    if wish == "more pairs":
        graph = report.graphs[0].model_copy(deep=True)
        refusal = graph.refusals[0]
        refusal.decisions.append(len(graph.decisions))
        graph.decisions.append(graph.decisions[refusal.decisions[0]].model_copy(update={"b": "buf3"}))
        return report.model_copy(update={"graphs": [graph]})
    if wish == "no graph":
        alone = BREAK.model_copy(update={"before": [], "after": []})
        return report.model_copy(update={"graphs": [], "breaks": [alone], "summary": Summary(), "timing": None})
    if wish == "trained":
        return report.model_copy(update={"graphs": trained(report.graphs[0]), "gradients": CHECKS})
    if wish == "wrong result":
        return wrong(report)
    if wish == "nothing measured":
        known = {"kernels": 3, "eager_kernels": 9, "verdict": "9 operations became 3 kernels."}
        return report.model_copy(update={"summary": Summary.model_validate(known), "timing": None, "peer": None})
    return report


def wrong(report: Report) -> Report:
    """The report as the compiler leaves it where a kernel is broken: nothing that was measured of it is there."""
    assert report.timing is not None
    graph = report.graphs[0].model_copy(deep=True)
    for kernel in graph.kernels:
        kernel.measured_us = kernel.gb_per_s = kernel.percent_of_peak = None
    contestants = [one for one in report.timing.contestants if one.name != "compiled"]
    summary: dict[str, float | str | None] = {"compiled_ms": None, "speedup": None, "compiled_error": 4.9e27}
    summary["verdict"] = f"Wrong result, so no time is given: {WRONG.message} 9 eager kernels became 3 kernels."
    return report.model_copy(
        update={
            "status": "wrong_result",
            "graphs": [graph],
            "wrong_results": [WRONG],
            "summary": report.summary.model_copy(update=summary),
            "timing": report.timing.model_copy(update={"contestants": contestants}),
        }
    )


def swept(asked: SweepOptions) -> SweepResult:
    """A sweep whose second size has two kernels where the first has one, and whose last one failed."""
    first, second, last = asked.values[0], asked.values[1], asked.values[-1]
    together = Outcome(verdict="fused", reason="fused.horizontal", together=True)
    apart = Outcome(verdict="refused", reason="profit.slower", together=False)
    flips = [
        Flip(kind="kernels", about="launches", before="1", after="2"),
        Flip(kind="verdict", graph="graph", about="mul + sum", before="fused: fused.horizontal", after=HOSTILE),
    ]
    return SweepResult(
        name=asked.name,
        sizes=[
            SweptSize(
                value=first, launches=1, bytes=4096, predicted_us=4.0, measured_us=9.0, eager_ms=0.5, compiled_ms=0.25
            ),
            SweptSize(value=second, launches=2, bytes=65536, predicted_us=8.0, flips=flips, more_flips=3),
            SweptSize(value=last, error="MemoryError (line 2): no room"),
        ],
        pairs=[SweptPair(graph="graph", a="mul", b="sum", outcomes=[together, apart, None], flips=True)],
        verdict=f"The compiler decides otherwise at {asked.name} = {second}.",
    )


ASKED: tuple[tuple[Literal["force", "forbid"], Literal["done", "refused"], str, str], ...] = (
    ("force", "refused", "index.reversed", "buf1 is read backwards"),
    ("forbid", "done", "policy.forbidden", "they stay apart"),
)


def asked(report: Report, options: Options) -> Report:
    """The report as the options of a "what if" make it: what is forbidden takes one kernel out of another, and what is
    forced is refused."""
    told = [
        WhatIf(option=option, asked=list(pair), outcome=outcome, graph="graph", reason=reason, message=message)
        for option, outcome, reason, message in ASKED
        for pair in getattr(options, option)
    ]
    told += [WhatIf(option="rules_off", asked=[rule], outcome="done", message="not used") for rule in options.rules_off]
    report = report.model_copy(update={"what_if": told})
    if not options.forbid:
        return report
    graph = report.graphs[0].model_copy(deep=True)
    whole = graph.kernels[1]
    last = whole.model_copy(update={"name": "taken_out", "nodes": whole.nodes[-1:]})
    graph.kernels[1:2] = [whole.model_copy(update={"nodes": whole.nodes[:-1]}), last]
    more = report.summary.model_copy(update={"kernels": (report.summary.kernels or 0) + 1})
    return report.model_copy(update={"graphs": [graph], "summary": more})


SASS = [
    "softmax_rows:",
    " /*0000*/  LDG.E.128 R4, desc[UR4][R2.64] ;",
    " /*0010*/  FADD R5, R5, -R9 ;",
    " /*0020*/  MUFU.EX2 R6, R5 ;",
    " /*0030*/  STG.E.128 desc[UR4][R2.64], R4 ;",
]


def compiled(wanted: KernelToCompile) -> Report:
    """The softmax's kernel for a GPU of NVIDIA, each instruction from another line of its source; none for AMD's."""
    report = Report(source="", status="ok", stages=[Stage(name="compile", ms=1.0, status="done")])
    if wanted.target == "gfx942":
        error = Error(type="CompilationError", message=f"The kernel was not compiled for gfx942: {HOSTILE}")
        return report.model_copy(update={"status": "user_error", "error": error})
    level = CodeLevel(
        name="sass", text="\n".join([*SASS, ""]), lines=[(2, 5), (3, 6), (4, 7), (5, 8)], all_lines=5, cut="Cut here."
    )
    access = MemoryAccess(line=2, source_line=5, instruction="LDG.E.128", space="global", bits=128)
    limits = [OccupancyLimit(by="warps", programs=16), OccupancyLimit(by="registers", programs=8)]
    occupancy = Occupancy(
        warps=32, most_warps=64, percent=50, programs=8, limits=limits, limited_by=["registers"], source="By the rules"
    )
    code = MachineCode(
        kernel=wanted.name,
        language="triton",
        target=wanted.target,
        levels=[level.model_copy(update={"name": "ptx", "cut": None}), level],
        threads=128,
        registers=64,
        spills=0,
        shared_bytes=1024,
        occupancy=occupancy,
        instructions={"memory": 2, "arithmetic": 2},
        accesses=[access],
        passes=[Pass(level="ttir", name="cse", diff="@@ -1 +1 @@\n-%a = 1\n+%b = 1")],
    )
    return report.model_copy(update={"machine_code": code})


def explore(source: str, options: Options, on_stage: Callable[[Report], None] | None = None, **_: object) -> Report:
    if options.machine_code is not None:
        return compiled(options.machine_code)
    wish = source.splitlines()[0].removeprefix("# ").strip()
    report = asked(varied(STORED.model_copy(update={"source": source, "id": ""}), wish), options)
    if options.sweep is not None:
        report = report.model_copy(update={"sweep": swept(options.sweep)})
    report = report.model_copy(update={"sizes": [NamedSize(name="N", value=64, lines=[2])]})
    for stages in range(1, STAGES + 1):
        if wish == "slow" and stages <= KERNELS_AT:
            time.sleep(1 if stages == 1 else 2)
        if stages == STUCK_AT.get(wish):
            time.sleep(600)
        if on_stage is not None:
            on_stage(part(report, stages))
    return report
