"""One decision, with its reason: why nodes were fused or not, and what was decided of library calls and of CUDA graphs.

`REASONS` is the one closed list. Each reason is an id, whose first part is its family, and a template that makes the
message of one decision out of its numbers. What it means is told once and for learners, on its page; see
`compiler/pages.py`. There is no bare no: `can_fuse` answers with `Fuse` or with `Refuse(reason, numbers)`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from string import Formatter
from typing import Any

from compiler.wording import counted, digits_apart

#: All that a record may name. Of replays, figures are named as measured or as predicted wherever a sentence has one.
REASONS: dict[str, str] = {
    # --- fused
    "fused.vertical": "{b} reads {shared} at the point where {a} makes it: the value stays in a register",
    "fused.inline": "{a} is computed inside {b} at each point that reads it; {shared} never reaches memory",
    "fused.horizontal": "{a} and {b} read {shared} in the same loops: it is read once for both",
    "fused.recompute": "{b} computes {shared} again instead of reading it",
    "fused.single_pass": ("{reader} is summed in the pass that makes {writer}, so one pass over the row serves both"),
    "fused.team": (
        "a team of programs holds each row of {row} elements, so {shared} is read once for {writer} and {reader}"
    ),
    "fused.one_node": "both are the loop {a}",
    "fused.parts": "it was made to write several parts of {whole}, each at its place",
    "fused.across": (
        "{b} is gathered across the rows of {a} while they are in registers: {shared} is read once for both"
    ),
    "fused.epilogue": "{b} is computed on the tiles of {call} before they are stored, in a kernel of our own: "
    "predicted {fused_us:.1f} us instead of {unfused_us:.1f} us",
    "fused.library_epilogue": "the library computes {b} at the end of {call}, in one call: predicted {fused_us:.1f} us "
    "instead of {unfused_us:.1f} us",
    "fused.prologue": "{a} is computed on the tiles that {call} loads, in a generated kernel: predicted "
    "{fused_us:.1f} us instead of {unfused_us:.1f} us",
    "fused.shared_operand": "{call} are {products} products of {shared} in one generated kernel: predicted "
    "{fused_us:.1f} us instead of {unfused_us:.1f} us",
    "fused.batch": "{a} and {b} run side by side in one launch",
    # --- refused
    "dependency.intermediate": "{between} must run after {a} and before {b}",
    "dependency.scatter": (
        "{scatter} updates elements at computed indices: its result may be read only when every update is done"
    ),
    "dependency.mutation": "{scatter} changes {shared} in place: {shared} must be complete before that",
    "index.reversed": "{a} writes {shared} at {written}, {b} reads it backwards, at {read}",
    "index.transposed": "{a} writes {shared} at {written}, {b} reads it with the loops exchanged, at {read}",
    "index.shifted": "{a} writes {shared} at {written}, {b} reads it shifted by some elements, at {read}",
    "index.indirect": (
        "{shared} is accessed at computed indices: no loops of {a} and {b} are known to meet at one element"
    ),
    "dependency.across": "{reader} would need {writer} before every row is done",
    "index.different_positions": "{a} writes {shared} at {written}, {b} reads it at {read}",
    "index.no_common_loops": "the loops {space_a} of {a} and {space_b} of {b} cannot be matched over {shared}",
    "shape.numel": "{a} runs {iterations_a:iteration}, {b} runs {iterations_b:iteration}",
    "shape.reduction_axes": (
        "the loops of {a} reduce over {space_a}, those of {b} over {space_b}: the reduced axes differ"
    ),
    "kind.extern": "{extern} is a library call",
    "kind.not_pointwise": (
        "{call} is a matrix product: only operations on one element at a time could join its kernel, unlike {unlike}"
    ),
    "kind.fallback": "{extern} runs as a call of its own: it has no loops to fuse with",
    "kind.other_device": "{extern} has a tensor on another device",
    "kind.other_stream": "{a} is put on {stream_a} and {b} on {stream_b}",
    "kind.own_launch": "{a} and {b} share nothing, and {alone} needs a launch of its own",
    "profit.slower": "predicted {fused_us:.1f} us fused against {unfused_us:.1f} us apart",
    "profit.library": "predicted {fused_us:.1f} us as one generated kernel, {unfused_us:.1f} us with the library's "
    "kernel for {call}; one kernel is chosen if it takes at least {least_gain:.0%} less",
    "profit.operand_needed": (
        "{shared} is needed in memory, or too expensive to compute for each tile of {b} that reads it"
    ),
    "profit.parts": "written part by part, {b} would take {fused_us:.1f} us with the kernels of its parts, instead of "
    "{unfused_us:.1f} us",
    "profit.recompute": (
        "predicted {fused_us:.1f} us with {shared} computed again in its readers, {unfused_us:.1f} us with it written"
    ),
    "profit.single_pass": "no faster with {reader} summed in the pass that makes {writer}: predicted {fused_us:.1f} "
    "us, and {unfused_us:.1f} us after it",
    "profit.team": "predicted {fused_us:.1f} us with a team of programs for each row of {row} elements, "
    "{unfused_us:.1f} us with one program",
    "profit.registers": (
        "a row of {row} elements with {sums:sum} for each column does not fit into {registers:register}"
    ),
    "profit.long_reduction": (
        "{slow} takes {rest_us:.1f} us besides its launch, and sharing one would save {spared_us:.1f} us"
    ),
    "profit.kept_longer": "{early} would be made early only to share a launch: {bytes:byte} more at a time, where "
    "the limit is {limit:,}",
    "profit.too_many_buffers": "{buffers} buffers in one kernel, at most {limit}",
    "policy.disabled": "the rule {knob} is turned off",
    "policy.forbidden": "{forbidden_a} and {forbidden_b} are to stay apart",
    "policy.batch_size": "{parts} kernels with {buffers} buffers in one launch",
    "policy.group_size": "{nodes} nodes in one group, at most {limit}",
    "policy.nothing_shared": "{a} and {b} share nothing: the pair was never considered",
    "policy.only_loops_shared": "{a} and {b} both run over {space_a} but share no buffer, and are not near each other: "
    "the pair was never considered",
    "policy.outscored": "{a} and {b} alone would take {fused_us:.1f} us instead of {unfused_us:.1f} us, but one of "
    "them took a fusion that saves more",
    "policy.far_apart": (
        "{shared} has {readers} readers, and {b} is not among those nearest to {a}: the pair was never considered"
    ),
    "policy.removed": "{removed} was removed before scheduling: {because}",
    "policy.no_loop": "{name} became no loop of its own: there is nothing to fuse",
    "policy.other_graph": "{a} belongs to {graph_a} and {b} to {graph_b}: graphs are compiled one by one",
    # --- library calls
    "layout.channels_last": "predicted {moved_us:.1f} us channels-last, {conversions_us:.1f} us of it in "
    "{conversions:conversion}; {kept_us:.1f} us in eager's layout",
    "layout.slower": "predicted {moved_us:.1f} us channels-last, {conversions_us:.1f} us of it in "
    "{conversions:conversion}; {kept_us:.1f} us in eager's layout",
    "layout.library": "channels-last has no advantage in this dtype on {device}",
    "layout.precision": "{kept_us:.1f} us predicted at an error of {kept_error:.0e} in eager's layout; "
    "{moved_us:.1f} us at {moved_error:.0e} channels-last, where the library rounds to TF32, which the knob {knob} "
    "allows; errors are {errors}",
    "layout.rounded": "{moved_us:.1f} us predicted at an error of {moved_error:.0e} channels-last, where the library "
    "rounds to TF32, as the knob {knob} allows; {kept_us:.1f} us at {kept_error:.0e} in eager's layout; errors "
    "are {errors}",
    "layout.gradients": (
        "in float32 on {device} the library rounds gradients to TF32 in one layout where it may not in the other"
    ),
    "layout.eager": "eager has them channels-last already",
    "layout.patches": "predicted {product_us:.1f} us as a product, {copy_us:.1f} us of it for patches; {kept_us:.1f} "
    "us as a convolution",
    "layout.depthwise": "a loop, not a call of the library",
    "layout.open_sizes": "their sizes differ from call to call",
    "folding.filter": (
        "predicted to save {saved_us:.1f} us, a pass over the result, for {filter_us:.1f} us to compute the filter"
    ),
    "folding.slower": "predicted to save {saved_us:.1f} us, for {filter_us:.1f} us to compute the filter",
    "folding.layout": "the convolution stays contiguous",
    "padding.padded": "{sizes} is computed as {padded}: predicted {kept_us:.1f} us as written, and "
    "{padded_us:.1f} us padded, with {copies_us:.1f} us for copies",
    "padding.apart": "{sizes} is computed with padded rows: predicted {kept_us:.1f} us as written, and "
    "{padded_us:.1f} us so, with {copies_us:.1f} us for copies",
    "padding.slower": "{sizes} is predicted to take {kept_us:.1f} us as written, and as {padded} {padded_us:.1f} "
    "us, with {copies_us:.1f} us for copies",
    "padding.open_sizes": "the sizes {sizes} differ from call to call",
    # --- replays
    "replay.replayed": "the {launches:launch} are recorded; a replay takes the host about {replay_us:.0f} "
    "us, predicted, in place of {host_us:.0f} us, measured; {copied_bytes:byte} are copied in each call",
    "replay.gaps": "the {launches:launch} are recorded; they keep the device busy for {elapsed_us:.0f} us, "
    "measured, of which about {saved_us:.0f} us between launches are saved; {copied_bytes:byte} are copied in each "
    "call",
    "replay.idle_between": "the {launches:launch} are recorded; a replay takes the host about "
    "{replay_us:.0f} us, predicted, in place of {host_us:.0f} us, measured; the device takes {elapsed_us:.0f} us, but "
    "was idle before; {copied_bytes:byte} are copied in each call",
    "replay.asked_for": "the {launches:launch} are recorded, as the option asks; {copied_bytes:byte} are "
    "copied in each call",
    "replay.watching": "the first calls are watched before anything is recorded",
    "replay.cpu": "the graph runs on the CPU, where a launch is a call of a function",
    "replay.off": "the option turns CUDA graphs off",
    "replay.few_launches": "with {launches:launch} a CUDA graph would save the host no time",
    "replay.open_sizes": "a CUDA graph has fixed sizes and numbers, and this graph takes others in each call",
    "replay.other_device": "{what} needs another device than the GPU",
    "replay.unknown_call": "it is not known whether {what} may be recorded",
    "replay.random_call": "{what} draws random numbers in its own way",
    "replay.memory": "a recording would keep {peak_bytes:byte} of the device's memory",
    "replay.device_bound": (
        "the device takes {elapsed_us:.0f} us and the host only {host_us:.0f} us to launch, both measured"
    ),
    "replay.behind": "the device was behind the host in every watched call",
    "replay.slower": "the host needs {host_us:.0f} us to launch, measured; a replay would take it about "
    "{replay_us:.0f} us, and the device {copied_us:.0f} us for copies, both predicted",
    "replay.no_faster": "a call took {replayed_us:.0f} us replayed and {pace_us:.0f} us one by one, both measured",
    "replay.inputs_move": "inputs came at other addresses after each of {recordings:recording}, lastly {what}",
    "replay.overlapping": "an input comes at other addresses, and its elements share memory",
    "replay.failed": "CUDA could not record the launches: {what}",
}

#: What was done, in the report's word, by the reason for which it was. For any other reason all was left as it is.
VERDICTS = {
    "layout.channels_last": "channels_last",
    "layout.rounded": "channels_last",
    "layout.patches": "product",
    "layout.depthwise": "loop",
    "folding.filter": "folded",
    "padding.padded": "padded",
    "padding.apart": "apart",
    **dict.fromkeys(("replay.replayed", "replay.gaps", "replay.idle_between", "replay.asked_for"), "replayed"),
}

#: The numbers of a refusal of two groups of loops that are names of buffers or nodes.
_NAMES = ("shared", "writer", "reader")


@dataclass(frozen=True)
class Decision:
    """What was decided of some nodes: the id of the reason, and the numbers that it rests on, which its sentence names;
    times are in microseconds. `lines` are the nodes' lines in the user's source."""

    reason: str
    numbers: dict[str, Any] = field(default_factory=dict, hash=False)
    nodes: tuple[str, ...] = ()
    lines: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        if self.reason not in REASONS:
            raise KeyError(f"{self.reason!r} is not in the closed list of reasons")

    @property
    def verdict(self) -> Any:
        return VERDICTS.get(self.reason, "one_by_one" if family_of(self.reason) == "replay" else "kept")

    @property
    def message(self) -> str:
        return message_of(self.reason, self.numbers)

    def told(self) -> dict[str, Any]:
        """What a report says of any decision."""
        return {"verdict": self.verdict, "reason": self.reason, "message": self.message, "lines": list(self.lines)}


class Refuse(Decision):
    """A refusal to fuse two units."""

    def renamed(self, names: Mapping[str, str]) -> Refuse:
        """The refusal of a pair that differs from its own in the names of buffers and nodes alone."""
        named = {key: names[self.numbers[key]] for key in _NAMES if key in self.numbers}
        return Refuse(self.reason, self.numbers | named) if named else self


def family_of(reason: str) -> str:
    """The group of reasons that are about the same thing."""
    return reason.partition(".")[0]


def message_of(reason: str, names: Mapping[str, Any]) -> str:
    """The sentence of one decision; `names` holds a, b and the numbers. Times that it compares have as many digits as
    tell them apart."""
    sentence = REASONS[reason]
    digits = digits_apart([names.get(key, 0) for key in _COMPARED.findall(sentence)])
    return _Sentences().vformat(sentence.replace("_us:.1f}", f"_us:.{digits}f}}"), (), names)


#: The times that a sentence compares.
_COMPARED = re.compile(r"{(\w+_us):\.1f}")


class _Sentences(Formatter):
    """Also counts: `{launches:launch}` is "1 launch" or "2 launches", and of an open size "s0 launches"."""

    def format_field(self, value: Any, spec: str) -> str:
        if not spec.isalpha():
            return str(super().format_field(value, spec))
        return counted(value, spec) if isinstance(value, int) else f"{value} {counted(0, spec).partition(' ')[2]}"
