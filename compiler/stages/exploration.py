"""What the stages of one exploration share, and how one of them is run.

A stage is a function of the exploration and of what an earlier stage made. It fills its part of the report, gives what
the next ones need, and may leave a remark. Whether it fails, is left out or ends, the report so far is published.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, field
from typing import TypeVar, TypeVarTuple

import torch

from compiler import report as rep
from compiler.budget import TIME_LIMIT, Budget, in_seconds
from compiler.capture.captured import Capture, CapturedGraph
from compiler.capture.program.called import Called
from compiler.capture.torch_state import with_default_dtype
from compiler.defects import message_of
from compiler.devices import device_for
from compiler.environment import describe_environment
from compiler.failures import error_of
from compiler.lease import TimingTurns
from compiler.options import Options
from compiler.runtime.checking.wrong_results import Checked, is_wrong
from compiler.schedule.directives import OtherNames
from compiler.snippet_changes import SnippetChanges
from compiler.stages.graphs import Graphs, Timed
from compiler.stages.shares import LEFT_OUT_FIRST, SHARES
from compiler.summary import summarise
from compiler.what_if import outcomes

OnStage = Callable[[rep.Report], None]

Given = TypeVarTuple("Given")
Made = TypeVar("Made")

#: Stages that are asked for with an earlier one: its verdict does not wait for them.
_PART_OF = {"profile": "measure", "emulate": "run"}


@dataclass
class Exploration:
    """One snippet with its options, the device and the time that it has, and the report as it grows. A brief one leaves
    out the Triton twin of what runs on a CPU."""

    source: str
    options: Options
    on_stage: OnStage
    is_brief: bool = False
    turns: TimingTurns = field(default_factory=TimingTurns)
    changes: SnippetChanges = field(default_factory=SnippetChanges)
    called: Called | None = None
    #: Names that its options use besides those of loops and ATen nodes, by the graph that has them.
    other_names: dict[str, OtherNames] = field(default_factory=dict)
    #: What compiles the kernels of each graph beside the stage that is running, and then gives the seconds of that.
    ahead: dict[str, Future[float]] = field(default_factory=dict)
    #: What came of checking each graph and each call with its gradients.
    checked: list[Checked] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.began = self.turns.clock()
        self.budget = Budget(clock=self.turns.clock).within(self.options.max_seconds)
        self._remark: str | None = None
        # pydantic makes a deep copy of a default that is a model, which takes longer than to make the report.
        self.report = rep.Report(
            source=self.source,
            options=self.options.model_dump(mode="json", exclude_none=True),
            summary=rep.Summary(),
            environment=rep.Environment(),
        )
        self.take_device(choose_device(self.options))
        #: As soon as the snippet ran.
        self.capture = Capture(self.device)

    def take_device(self, device: torch.device) -> None:
        """What runs from here on, and is timed, is on this device."""
        self.device = device
        self.model = device_for(device if device.type == "cuda" else self.options.target)

    def stage(self, name: str, step: Callable[[Exploration, *Given], Made], *given: *Given, otherwise: Made) -> Made:
        """Run one stage, time it, record how it ended, and publish the report so far. Gives what the stage made, or
        `otherwise` where it was left out or failed."""
        status: rep.StageStatus = "done"
        started, known = self.turns.clock(), len(self.report.stages)
        made, message = otherwise, self._reason_to_skip(name, given)
        if message is not None:
            status = "skipped"
        else:
            self._remark = None
            try:
                made = step(self, *given)
                message = self._remark
            except Exception as error:  # a defect of ours: say so, keep what is there
                status, message = "failed", message_of(error)
                self.remember(error_of(name, error))
        # What the sizes of a sweep took is told of each: stages never overlap, so that their times add up.
        told = sum(stage.ms for stage in self.report.stages[known:])
        milliseconds = max(0.0, 1e3 * (self.turns.clock() - started) - told)
        self.changes.set_aside()
        if name == "capture":
            # The snippet has chosen by now how many threads it runs with.
            self.report.environment = describe_environment(self.device, self.model, self.options)
            if self.report.error is not None:
                status = "failed"
        self.report.stages.append(rep.Stage(name=name, ms=round(milliseconds, 3), status=status, message=message))
        # Should the next stage be stopped from outside, this is the report.
        self.summarise()
        if not any(stage.name == "measure" for stage in self.report.stages):
            self.report.summary.verdict = ""
        self.on_stage(self.report)
        return made

    def _reason_to_skip(self, name: str, given: tuple[object, ...]) -> str | None:
        if name == "sweep":  # it runs the snippet anew, whatever became of it at the size that is written
            return None
        if not self.wants(name):
            return "this stage was not requested"
        if name in LEFT_OUT_FIRST and self.budget.is_spent:
            return f"the {in_seconds(self.options.max_seconds or 0)} of the exploration were up"
        graphs = next((one.graphs if isinstance(one, Timed) else one for one in given), None)
        if isinstance(graphs, Graphs) and not graphs.work:
            return "there is no graph to work on"
        if name in ("measure", "profile") and not self.options.timing.enabled:
            return "timing was turned off"
        if name == "compare" and not self.asks_others:
            return "the peer was not requested"
        if name == "emulate" and self.device.type == "cuda":
            return "the Triton kernels ran on the GPU"
        return None

    def wants(self, stage: str) -> bool:
        return self.options.produce is None or _PART_OF.get(stage, stage) in self.options.produce

    @property
    def asks_others(self) -> bool:
        return self.options.peer or bool(self.options.contestants)

    def share(self, name: str) -> Budget:
        """That one of `SHARES`, of what is left now."""
        return self.budget.share(SHARES[name])

    @property
    def share_for_times(self) -> Budget:
        return self.share("times before others" if self.asks_others else "times")

    @property
    def is_wrong(self) -> bool:
        """Whether a result of ours is wrong."""
        return is_wrong(self.report.wrong_results, "compiled")

    def turn_on_gpu(self, is_timed: bool = True) -> AbstractContextManager[None]:
        """A turn around what times calls in order to decide by that, which is done on a GPU alone."""
        return self.turns.turn() if is_timed and self.device.type == "cuda" else nullcontext()

    def remark(self, message: str | None) -> None:
        """What is said of the stage that is running."""
        self._remark = message

    def note(self, message: str) -> None:
        self.report.notes.append(rep.Note(message=message))

    def remember(self, error: rep.Error) -> None:
        """The first error is the report's."""
        self.report.error = self.report.error or error

    @contextmanager
    def each(self, stage: str, graph: CapturedGraph) -> Iterator[None]:
        """A defect in one graph does not stop the others; each finds the default dtype that it was captured under."""
        try:
            with with_default_dtype(graph.default_dtype):
                yield
        except Exception as error:
            self.remember(error_of(stage, error))

    def summarise(self) -> None:
        self.report.summary = summarise(self.report, self.checked, self.capture)

    def tell_what_if(self) -> None:
        names = [self.other_names.get(graph.name, {}) for graph in self.report.graphs]
        try:
            self.report.what_if = outcomes(self.report, self.options, names)
        except Exception as error:  # a defect of ours, of which the rest of the report knows nothing
            self.remember(error_of("schedule", error))

    def finish(self) -> rep.Report:
        self.summarise()
        self.tell_what_if()
        error = self.report.error
        if error is not None:
            ends: dict[str, rep.Status] = {"InternalError": "crashed", TIME_LIMIT: "timeout"}
            self.report.status = ends.get(error.type, "user_error")
        else:
            self.report.status = "wrong_result" if self.report.has_wrong_result else "ok"
        self.on_stage(self.report)
        return self.report

    def forget(self) -> None:
        """Let go of the graphs and of what the snippet made: the report is what stays."""
        self.capture.forget()
        self.capture = Capture(self.device)


def choose_device(options: Options) -> torch.device:
    """The device that a snippet runs on: what was asked for, else the GPU where there is one."""
    if options.device is not None and options.device.startswith("cuda") and not torch.cuda.is_available():
        return torch.device("cpu")
    return torch.device(options.device or ("cuda" if torch.cuda.is_available() else "cpu"))
