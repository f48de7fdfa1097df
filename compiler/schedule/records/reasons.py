"""Why two nodes were fused or not, and what was decided of library calls and of CUDA graphs: the one closed list.

`can_fuse` answers with `Fuse` or with `Refuse(reason, numbers)`; there is no bare no. `sentence` is for a learner;
`template` makes the message of one decision out of its numbers.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from compiler.schedule.records.fused_reasons import FUSIONS
from compiler.schedule.records.library_reasons import LIBRARY_CALLS
from compiler.schedule.records.reason import Reason, listed
from compiler.schedule.records.replay_reasons import REPLAYS

REFUSALS: dict[str, Reason] = listed(
    Reason(
        "dependency.intermediate",
        "dependency",
        "A third node must run after the one and before the other; a single kernel cannot wait for it in the middle.",
        "{between} must run after {a} and before {b}",
    ),
    Reason(
        "dependency.scatter",
        "dependency",
        "A scatter may hit one element many times, at places that are known only when it runs: what it makes may be "
        "read only when its last update is done.",
        "{scatter} updates {shared} at computed places: its result may be read only when every update is done",
    ),
    Reason(
        "dependency.mutation",
        "dependency",
        "A node changes in place what the other one fills: every element must be there before the first change.",
        "{scatter} changes {shared} in place: it must be complete before",
    ),
    Reason(
        "index.reversed",
        "index",
        "The consumer reads backwards what the producer makes forwards: the element that is needed first is made last.",
        "{a} writes {shared} at {written}, {b} reads it backwards, at {read}",
    ),
    Reason(
        "index.transposed",
        "index",
        "The consumer reads rows where the producer makes columns: the same elements, with the loops exchanged.",
        "{a} writes {shared} at {written}, {b} reads it with the loops exchanged, at {read}",
    ),
    Reason(
        "index.shifted",
        "index",
        "The consumer reads a neighbour of the element that this point of the loop makes, and it may not be there yet.",
        "{a} writes {shared} at {written}, {b} reads it some elements away, at {read}",
    ),
    Reason(
        "index.indirect",
        "index",
        "The place that is read or written comes out of memory, so which element it is is known only when it runs.",
        "{shared} is touched at computed places: no loops of {a} and {b} are known to meet at one element",
    ),
    Reason(
        "dependency.across",
        "dependency",
        "A result that is gathered from all rows is known only when every row is done: nothing that belongs to a row "
        "can use it in the same kernel.",
        "{reader} would need {writer} before every row is done",
    ),
    Reason(
        "index.different_positions",
        "index",
        "The consumer reads an element at another point of the loop than the one that makes it, and by then it may not "
        "have been made.",
        "{a} writes {shared} at {written}, {b} reads it at {read}",
    ),
    Reason(
        "index.no_common_loops",
        "index",
        "No one-to-one change of loop variables makes the two loop nests visit the same elements together.",
        "the loops {space_a} of {a} and {space_b} of {b} cannot be brought together over {shared}",
    ),
    Reason(
        "shape.numel",
        "shape",
        "The two loop nests have different numbers of iterations.",
        "{a} runs {iterations_a} iterations, {b} runs {iterations_b}",
    ),
    Reason(
        "shape.reduction_axes",
        "shape",
        "One node reduces along an axis that is an independent loop of the other.",
        "{a} reduces over {space_a}, {b} over {space_b}: the reduced axes differ",
    ),
    Reason(
        "kind.extern",
        "kind",
        "A library call is a finished kernel: nothing can be put inside it.",
        "{extern} is a library call",
    ),
    Reason(
        "kind.not_pointwise",
        "kind",
        "A program of a matrix product's kernel holds one tile of the result: what needs more than one element at "
        "a time, such as a reduction, cannot be computed there.",
        "{call} is a matrix product: only what needs one element at a time could join its kernel",
    ),
    Reason(
        "kind.fallback",
        "kind",
        "We have no loops for this operator, or not for this case of it, so it runs as PyTorch's own call.",
        "{extern} runs as PyTorch's own call: there are no loops to put anything into",
    ),
    Reason(
        "kind.other_device",
        "kind",
        "The two run on different devices, or one carries a tensor from one to the other: no kernel spans both.",
        "{extern} has a tensor on another device",
    ),
    Reason(
        "kind.other_stream",
        "kind",
        "The program puts the two on different streams, whose work a GPU may run at the same time and in any order: a "
        "kernel is in one stream.",
        "{a} is put on {stream_a} and {b} on {stream_b}",
    ),
    Reason(
        "kind.own_launch",
        "kind",
        "Two nodes that share nothing can only run side by side in one launch, and one of these cannot: it works in "
        "place or at computed places, its sizes differ from call to call, its rows are shared among programs, or it "
        "waits for what runs in the launch of the other.",
        "{a} and {b} share nothing, and {alone} needs a launch of its own",
    ),
    Reason(
        "profit.slower",
        "profit",
        "The device model expects the fused kernel to take longer than the two separate ones.",
        "predicted {fused_us:.1f} us fused against {unfused_us:.1f} us apart",
    ),
    Reason(
        "profit.library",
        "profit",
        "The library's kernel for this matrix product is faster than ours, by more than the bytes and the launch that "
        "fusion would save, or too nearly so for a prediction to decide.",
        "predicted {fused_us:.1f} us as one kernel of our own, {unfused_us:.1f} us with the library's for {call}; "
        "it would have to be {least_gain:.0%} less",
    ),
    Reason(
        "profit.operand_needed",
        "profit",
        "The operand of a matrix product is read by others too, or is too expensive to compute again for each tile "
        "that is loaded: it is written once.",
        "{shared} is needed in memory, or too expensive to compute for each tile of {b} that reads it",
    ),
    Reason(
        "profit.parts",
        "profit",
        "The kernels that make the parts of the concatenation could write them where the result has them, but the "
        "device model expects that to take longer.",
        "written part by part, {b} would take {fused_us:.1f} us with the kernels of its parts, instead of "
        "{unfused_us:.1f} us",
    ),
    Reason(
        "profit.recompute",
        "profit",
        "The value could be computed again in its readers instead of being written for them, but the device model "
        "expects that to take longer.",
        "predicted {fused_us:.1f} us with {shared} computed again in its readers, {unfused_us:.1f} us with it written",
    ),
    Reason(
        "profit.single_pass",
        "profit",
        "The sum could be made in the pass of the result that it is relative to, but the device model expects nothing "
        "from it: the row is in registers anyway, or the arithmetic costs more than to read the row again.",
        "predicted {fused_us:.1f} us with {reader} added up in the pass that makes {writer}, {unfused_us:.1f} us after "
        "it",
    ),
    Reason(
        "profit.team",
        "profit",
        "Several programs could hold a row together, but the device model expects that to take longer: they wait for "
        "each other, and what is read again comes from the cache.",
        "predicted {fused_us:.1f} us with a team of programs for each row of {row} elements, {unfused_us:.1f} us with "
        "one program",
    ),
    Reason(
        "profit.registers",
        "profit",
        "The fused kernel would hold a whole row and a sum for each column in registers, and they do not fit.",
        "a row of {row} elements with {sums} sums for each column does not fit into {registers} registers",
    ),
    Reason(
        "profit.long_reduction",
        "profit",
        "The two share nothing, so one launch of both saves a launch and no bytes; and one is a reduction that takes "
        "longer than that, whose kernel is planned to fill the device by itself.",
        "{slow} takes {rest_us:.1f} us besides its launch, and sharing one would spare {spared_us:.1f} us",
    ),
    Reason(
        "profit.kept_longer",
        "profit",
        "The two could share a launch, but then the result of the later one would be made long before it is needed, "
        "and its memory be kept the longer: the most that is alive at a time would grow.",
        "{early} would be made early for the sake of a launch: {bytes} bytes more at a time, and at most {limit} are "
        "worth that",
    ),
    Reason(
        "profit.too_many_buffers",
        "profit",
        "The fused kernel would touch so many tensors that their addresses and values no longer fit into registers.",
        "{buffers} buffers in one kernel, at most {limit}",
    ),
    Reason(
        "policy.disabled",
        "policy",
        "This rule of fusion was turned off by an option of the exploration.",
        "the rule {knob} is turned off",
    ),
    Reason(
        "policy.forbidden",
        "policy",
        "The reader asked for these two nodes to stay in different kernels: the fusion is legal, and the device model "
        "expects it to pay.",
        "{forbidden_a} and {forbidden_b} are to stay apart",
    ),
    Reason(
        "policy.batch_size",
        "policy",
        "One launch would hold more kernels, or take more tensors, than the most allowed.",
        "{parts} kernels with {buffers} buffers in one launch",
    ),
    Reason(
        "policy.group_size",
        "policy",
        "The group would have more nodes than the largest allowed.",
        "{nodes} nodes in one group, at most {limit}",
    ),
    Reason(
        "policy.nothing_shared",
        "policy",
        "The two touch no buffer in common, so one kernel of both would move as many bytes as two; such pairs are not "
        "asked about.",
        "{a} and {b} share nothing: the pair was never considered",
    ),
    Reason(
        "policy.only_loops_shared",
        "policy",
        "The two run over as many iterations, but touch no buffer in common: one kernel of both would save a launch "
        "and no bytes, and each kernel is asked about with the nearest of that kind only.",
        "{a} and {b} both run over {space_a} but share no buffer, and are not near each other: the pair was never "
        "considered",
    ),
    Reason(
        "policy.outscored",
        "policy",
        "The two could have been one kernel, but one of them went with a third that brings more, and the kernel that "
        "it is in now does not fuse with the other.",
        "{a} and {b} alone would take {fused_us:.1f} us instead of {unfused_us:.1f} us, but one of them went with what "
        "brings more",
    ),
    Reason(
        "policy.far_apart",
        "policy",
        "Many nodes read this buffer, and each is asked about with the nearest of them only: all pairs would be as "
        "many as the square of the graph.",
        "{shared} has {readers} readers, and {b} is not among those nearest to {a}: the pair was never considered",
    ),
    Reason(
        "policy.removed",
        "policy",
        "One of the two was removed before there was anything to schedule, since no result needs it.",
        "{removed} was removed before scheduling: {because}",
    ),
    Reason(
        "policy.no_loop",
        "policy",
        "One of the two is no loop: an input, a constant, or a view that its readers look through.",
        "{name} became no loop of its own: there is nothing to fuse",
    ),
    Reason(
        "policy.other_graph",
        "policy",
        "The two belong to different graphs, which are compiled one by one: a graph break, a second compilation or the "
        "step from forward to backward lies between them.",
        "{a} belongs to {graph_a} and {b} to {graph_b}: graphs are compiled one by one",
    ),
)

#: All that a record may name.
REASONS: dict[str, Reason] = FUSIONS | REFUSALS | LIBRARY_CALLS | REPLAYS


#: The numbers of a refusal of two groups of loops that are names of buffers or nodes.
_NAMES = ("shared", "writer", "reader")


@dataclass(frozen=True)
class Refuse:
    """A refusal to fuse: the id of its reason, and the numbers that it rests on."""

    reason: str
    numbers: dict[str, Any] = field(default_factory=dict, hash=False)

    def __post_init__(self) -> None:
        if self.reason not in REASONS:
            raise KeyError(f"{self.reason!r} is not in the closed list of reasons")

    def renamed(self, names: Mapping[str, str]) -> Refuse:
        """The refusal of a pair that differs from its own in the names of buffers and nodes alone."""
        named = {key: names[self.numbers[key]] for key in _NAMES if key in self.numbers}
        return Refuse(self.reason, self.numbers | named) if named else self


def message_of(reason: str, names: dict[str, Any]) -> str:
    """The sentence of one decision; `names` holds a, b and the numbers."""
    return REASONS[reason].template.format_map(names)
