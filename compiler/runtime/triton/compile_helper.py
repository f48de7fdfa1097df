"""A process that compiles Triton kernels for another one, which starts it (see `compile_helpers`).

It is told of a kernel what Triton's compiler was about to be told, compiles it, and leaves it in the cache on disk; its
answer is only that it is done. One process reads Triton, which takes some half a second, and divides into as many as
are wanted; none of them reads torch.
"""

from __future__ import annotations

import linecache
import os
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from multiprocessing.connection import Connection
from typing import Any

from triton.backends.compiler import GPUTarget
from triton.backends.nvidia import compiler as nvidia
from triton.compiler import ASTSource
from triton.runtime import cache

from compiler.runtime.triton.cache import through_cache
from compiler.runtime.triton.targets import compile_for
from compiler.runtime.triton.text import execute

#: A helper that is asked for nothing for so long ends.
IDLE_SECONDS = 60.0

#: What is compiled once before a process divides, as its parts would otherwise each read and set up the same.
_FIRST = """\
import triton
import triton.language as tl


@triton.jit
def first(x, y, BLOCK: tl.constexpr):
    offsets = tl.arange(0, BLOCK)
    tl.store(y + tl.zeros([1], tl.int32), tl.sum(tl.load(x + offsets), 0))
"""


@dataclass(frozen=True)
class Job:
    """A kernel as Triton's compiler takes it: the text of the module with the function `name`, the name of the file
    that it is said to be in, types of the arguments, values that are compiled in, what is known of the others, the
    compiler's options and the target; the environment that Triton and the cache take their settings from; what stands
    for Triton itself in a kernel's key; what the assembler has said of its version; and whether it `is_launched` and
    nothing else (see `cache`)."""

    text: str
    file: str
    name: str
    signature: Mapping[str, str]
    constants: Mapping[Any, Any]
    attributes: Mapping[Any, Any]
    options: Mapping[str, Any]
    target: tuple[str, int, int]
    environment: Mapping[str, str]
    triton: str
    assembler: str
    is_launched: bool = True


def main(descriptors: Sequence[int]) -> None:
    """Divide into one helper for each of these sockets, and wait until all of them have ended."""
    _compile_first()
    helpers = []
    for own in descriptors:
        helper = os.fork()
        if helper == 0:
            for other in descriptors:
                if other != own:
                    os.close(other)
            with suppress(Exception):
                serve(Connection(own))
            os._exit(0)
        helpers.append(helper)
    for descriptor in descriptors:
        os.close(descriptor)
    for helper in helpers:
        os.waitpid(helper, 0)


def serve(asked: Connection) -> None:
    """Do what is asked for, one job after the other, until nobody asks any more. The first word is that it has begun;
    each answer is whether the kernel was compiled."""
    asked.send(True)
    while asked.poll(IDLE_SECONDS):
        try:
            job = asked.recv()
        except EOFError:
            return
        asked.send(done(job))


def done(job: Job) -> bool:
    """Compile it; False where it does not compile, which the asking process finds out, and tells, by itself."""
    os.environ.clear()
    os.environ.update(job.environment)
    try:
        through_cache(partial(_compile, job), is_launched=job.is_launched)
    except Exception:
        return False
    return True


def _compile(job: Job) -> None:
    # Both are parts of the kernel's key that a process finds out once. To hash Triton's library takes longer than all
    # else before a helper begins; and another assembler that is named meanwhile, as TorchInductor does, is used but not
    # asked for its version.
    vars(cache)["triton_key"] = lambda: job.triton
    vars(nvidia)["get_ptxas_version"] = lambda *_: job.assembler
    function = execute(job.text, job.file, job.name)[job.name]
    source = ASTSource(function, dict(job.signature), dict(job.constants), dict(job.attributes))
    try:
        compile_for(GPUTarget(*job.target), source, job.options)
    finally:
        del linecache.cache[job.file]


def _compile_first() -> None:
    before = dict(os.environ)
    with tempfile.TemporaryDirectory(prefix="fusionscope-") as folder:
        signature = {"x": "*fp32", "y": "*fp32", "BLOCK": "constexpr"}
        target, environment = ("cuda", 90, 32), before | {"FUSIONSCOPE_CACHE_DIR": folder}
        done(Job(_FIRST, "first.py", "first", signature, {(2,): 128}, {}, {}, target, environment, "", ""))
    os.environ.clear()
    os.environ.update(before)
