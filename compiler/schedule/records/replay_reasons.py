"""Why the launches of a graph are replayed as a CUDA graph or go out one by one: the part of the closed list that is
about replays. Figures are named as measured or as predicted wherever a sentence has one."""

from __future__ import annotations

from compiler.schedule.records.reason import Reason, listed

REPLAYS: dict[str, Reason] = listed(
    Reason(
        "replay.replayed",
        "replay",
        "The host needs longer to launch the kernels than the device to run them. They are recorded once as a CUDA "
        "graph, and each call replays them with one launch.",
        "{recorded} of {launches} launches are recorded; a replay takes the host about {replay_us:.0f} us, "
        "predicted, in place of {host_us:.0f} us, measured; {copied_bytes} bytes are copied in each call",
    ),
    Reason(
        "replay.gaps",
        "replay",
        "The device is busy all the time, but goes from launch to launch faster within a CUDA graph, and that is "
        "more than the copies of a replay take.",
        "{recorded} of {launches} launches are recorded; they keep the device busy for {elapsed_us:.0f} us, "
        "measured, of which about {saved_us:.0f} us between launches are spared; {copied_bytes} bytes are copied "
        "in each call",
    ),
    Reason(
        "replay.idle_between",
        "replay",
        "The device takes longer than the host to go through this graph, but it was done with everything when the "
        "graph was called: what the host does between the graphs of a training step keeps it waiting. Each "
        "microsecond that a replay spares the host comes off the step.",
        "{recorded} of {launches} launches are recorded; a replay takes the host about {replay_us:.0f} us, "
        "predicted, in place of {host_us:.0f} us, measured; the device takes {elapsed_us:.0f} us, but was idle "
        "before; {copied_bytes} bytes are copied in each call",
    ),
    Reason(
        "replay.asked_for",
        "replay",
        'The option `cuda_graphs` is "on": launches are recorded wherever that is legal, whether or not it pays.',
        "{recorded} of {launches} launches are recorded, as the option asks; {copied_bytes} bytes are copied in "
        "each call",
    ),
    Reason(
        "replay.watching",
        "replay",
        "The first calls go out launch by launch and are watched: where inputs lie, how long the host takes, and "
        "how long the device. Nothing is decided before that.",
        "the first calls are watched before anything is recorded",
    ),
    Reason(
        "replay.cpu",
        "replay",
        "A CUDA graph is a recording of what a GPU has to do. On a CPU a launch is a call of a function, and there "
        "is nothing to record.",
        "the graph runs on the CPU, where a launch is a call of a function",
    ),
    Reason(
        "replay.off",
        "replay",
        'The option `cuda_graphs` is "off".',
        "the option turns CUDA graphs off",
    ),
    Reason(
        "replay.few_launches",
        "replay",
        "A replay takes the host about as long as a few launches.",
        "with {launches} launches a CUDA graph would save the host no time",
    ),
    Reason(
        "replay.open_sizes",
        "replay",
        "A recording has fixed sizes, and one of this graph is no input of it but is known by the shape of a "
        "tensor alone, so that it cannot be told which recording a call needs.",
        "a CUDA graph has fixed sizes, and one is known by a tensor's shape only",
    ),
    Reason(
        "replay.other_device",
        "replay",
        "A recording holds work of one GPU. A call with a tensor on another device may have to wait for that.",
        "{what} needs another device than the GPU",
    ),
    Reason(
        "replay.unknown_call",
        "replay",
        "A library call may wait for the device, or decide by values what to launch; neither can be recorded. Only "
        "calls that were seen to do neither are.",
        "it is not known whether {what} may be recorded",
    ),
    Reason(
        "replay.random_call",
        "replay",
        "A library's attention draws the numbers of its dropout by its own way, and a replay would draw the same "
        "ones each time.",
        "{what} draws random numbers by its own way",
    ),
    Reason(
        "replay.memory",
        "replay",
        "A recording keeps its memory between calls, and that of this graph would be more than a sixteenth of the "
        "device's, or half of what is free; or what all recordings hold for backward graphs would be more than a "
        "quarter.",
        "a recording would keep {peak_bytes} bytes of the device's memory",
    ),
    Reason(
        "replay.device_bound",
        "replay",
        "The device takes longer than the host, so the host is never waited for, and the time between launches is "
        "next to nothing of what the device takes.",
        "the device takes {elapsed_us:.0f} us and the host only {host_us:.0f} us to launch, both measured",
    ),
    Reason(
        "replay.behind",
        "replay",
        "The device was never done with a call when the next one came, so that the host is not waited for.",
        "the device was behind the host in every call that was watched",
    ),
    Reason(
        "replay.slower",
        "replay",
        "A replay copies what its caller may not share with the recording, and that takes the host about as long "
        "as the launches, or the device noticeably longer.",
        "the host needs {host_us:.0f} us to launch, measured; a replay would take it about {replay_us:.0f} us, and "
        "the device {copied_us:.0f} us for copies, both predicted",
    ),
    Reason(
        "replay.no_faster",
        "replay",
        "The launches were recorded, and the first replays were timed: they took as long as the calls before them.",
        "a call took {replayed_us:.0f} us replayed and {pace_us:.0f} us one by one, both measured",
    ),
    Reason(
        "replay.inputs_move",
        "replay",
        "A recording holds the addresses of parameters and buffers. One of them came at another address after each "
        "of several recordings, so that the next would last no longer.",
        "inputs came at other addresses after each of {recordings} recordings, lastly {what}",
    ),
    Reason(
        "replay.overlapping",
        "replay",
        "An input comes at another address in each call and its elements share memory, as those of an expanded "
        "tensor do, so that it cannot be copied to one place.",
        "an input comes at other addresses, and its elements share memory",
    ),
    Reason(
        "replay.failed",
        "replay",
        "CUDA, or what was called, refused to be recorded.",
        "CUDA could not record the launches: {what}",
    ),
)

#: The reasons with which launches are replayed.
REPLAYED = frozenset({"replay.replayed", "replay.gaps", "replay.idle_between", "replay.asked_for"})
