"""What worker and zygote say to each other: JSON in packets, with descriptors beside it.

    worker → zygote   `ZygoteConfig` first, then Fork
    zygote → worker   Ready once, or Failed; later Settled once; for each process Forked and Gone

Neither of the two runs a snippet, and no job has the socket. A packet is read whole or not at all, so there is nothing
to put together.
"""

from __future__ import annotations

import os
import socket
from pathlib import Path
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter

from server.sandbox import JobLimits, SandboxConfig
from server.wire.messages import DeviceFacts

MOST_PACKET_BYTES = 128 * 1024
"""Less than the kernel's default for what a socket may hold."""
_MOST_DESCRIPTORS = 8


WARM_SOURCE = """
import torch


def warm(x, y):
    return torch.relu(torch.sin(x) * y + 1.0).softmax(-1).sum(-1) @ y


compiled = torch.compile(warm)
compiled(torch.ones(64, 64), torch.ones(64, 64, requires_grad=True)).sum().backward()
"""
"""A little of all: elementwise, a reduction, a product of the library's, and their gradients."""


class ChannelMessage(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class Program(ChannelMessage):
    """What runs in a job. `explore` names the function that explores, as `module:function`. `imports` are the modules
    that the zygote loads before it is ready, `later` those that it loads when nothing is asked of it then: a job that
    comes before them loads them itself. Of those, `start_cuda` may start CUDA where there is a GPU, which must not
    happen in a process that forks: where a trial finds that they do, a spare loads them. `warm_source` is the snippet
    that a spare tries. Jobs can read the compiler, and what is `readable` besides."""

    explore: str = "compiler.pipeline:explore"
    imports: tuple[str, ...] = (
        "torch",
        "torch._dynamo",
        "torch._functorch.aot_autograd",
        "compiler.pipeline",
    )
    later: tuple[str, ...] = ("compiler.runtime.preload", "compiler.peer.preload")
    start_cuda: frozenset[str] = frozenset({"compiler.peer.preload"})
    warm_source: str | None = WARM_SOURCE
    readable: tuple[Path, ...] = ()


class ZygoteConfig(ChannelMessage):
    """The first packet to a zygote."""

    sandbox: SandboxConfig
    program: Program
    threads: int


class Fork(ChannelMessage):
    """Make a process. Beside it come the ends of its pipes: reports, output, and what it is told; and the opened
    processes of its control group, where it has one."""

    kind: Literal["fork"] = "fork"
    number: int
    limits: JobLimits


class Ready(ChannelMessage):
    """It can fork."""

    kind: Literal["ready"] = "ready"
    devices: tuple[DeviceFacts, ...] = ()


class Settled(ChannelMessage):
    """All is imported: what is forked from now on has nothing to import itself."""

    kind: Literal["settled"] = "settled"


class Failed(ChannelMessage):
    """The zygote, or the process of that number, cannot be; `message` says why."""

    kind: Literal["failed"] = "failed"
    number: int | None = None
    message: str


class Forked(ChannelMessage):
    """A process was made. Beside it comes a pidfd of its guard: readable when nothing of the process is left."""

    kind: Literal["forked"] = "forked"
    number: int
    folder: Path


class Gone(ChannelMessage):
    """Nothing of a process is left. `failure` says why it could not be confined, and so never ran."""

    kind: Literal["gone"] = "gone"
    number: int
    exit_code: int | None
    signal: int | None
    processor_seconds: float
    failure: str | None


FromZygote = TypeAdapter[Ready | Settled | Failed | Forked | Gone](
    Annotated[Ready | Settled | Failed | Forked | Gone, Field(discriminator="kind")]
)


def send_packet(channel: socket.socket, message: ChannelMessage, descriptors: tuple[int, ...] = ()) -> None:
    """Raises `OSError` where the other side is gone."""
    socket.send_fds(channel, [message.model_dump_json().encode()], descriptors)


def receive_packet(channel: socket.socket) -> tuple[bytes, list[int]] | None:
    """The next packet; None where the other side is gone. Raises `BlockingIOError` as the socket does."""
    data, descriptors, flags, _ = socket.recv_fds(
        channel, MOST_PACKET_BYTES, _MOST_DESCRIPTORS, socket.MSG_CMSG_CLOEXEC
    )
    if flags & (socket.MSG_TRUNC | socket.MSG_CTRUNC):
        for descriptor in descriptors:
            os.close(descriptor)
        raise ConnectionError("A packet was larger than any may be.")
    return (data, descriptors) if data else None
