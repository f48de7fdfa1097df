"""Recording and replaying with CUDA, through torch's own graphs.

Launches are recorded on a stream beside the one that is to replay them, with memory from a pool that all recordings for
that stream share: what they give is copied out before the next replay, so that nothing in the pool is anybody's between
two replays. A recording whose outputs are held beyond that (`held.py`) has a pool of its own.

Whatever is made once for each stream is made before. The workspaces of our split sums and of our products are ordinary
memory that is never freed. Those that torch gives cuBLAS and cuBLASLt are freed by others: TorchInductor has torch free
the workspaces of all streams whenever it records a graph. A recording would still write to such memory, which is
another tensor's by then, or nobody's. So these workspaces lie in the shared pool, whose memory stays with the
recordings, and the stream on which they are made is launched on by nobody else.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager, suppress
from dataclasses import dataclass, field
from time import perf_counter
from typing import Any

import torch

from compiler.devices import free_bytes
from compiler.garbage import garbage_kept
from compiler.replay.held import HeldAddresses
from compiler.replay.inputs import Call, CannotRecord, addresses_of
from compiler.replay.price import Times
from compiler.runtime.host import library_products
from compiler.runtime.host.launcher import address_test, new_stream
from compiler.runtime.triton.launch import TritonLauncher


@dataclass
class Pool:
    """What the recordings share that are replayed on one stream. They are recorded on the stream `side`. `anchor` is a
    recording that is never replayed: torch gives a pool up for good with the last recording that uses it."""

    side: Any
    handle: Any = field(default_factory=torch.cuda.graph_pool_handle)
    anchor: Any = None


#: How long the host waits for a device to tell that it has nothing to do: an event alone takes it some microseconds.
IDLE_US = 30.0

_pools: dict[tuple[int, int], Pool] = {}
_locks: dict[int, threading.RLock] = {}
#: Devices on which CUDA has failed to end a recording: torch's allocator and generator may still be in its state.
_broken: set[int] = set()
_held: dict[int, HeldAddresses] = {}


class CudaRecording:
    """Launches that can be replayed: `graph` is a torch.cuda.CUDAGraph. `outputs` are what the call gave while it was
    recorded, in memory that each replay writes anew."""

    def __init__(self, graph: Any, outputs: list[Any]) -> None:
        self.outputs = outputs
        self.replay: Callable[[], None] = graph.replay


class CudaRecorder:
    """Records and times launches on one GPU, by its number; `launchers` are those of the kernels. Tests have another
    one, which pretends."""

    def __init__(self, device: int, launchers: Iterable[TritonLauncher]) -> None:
        self.device = device
        #: Held while the memory that replays share is in use.
        self.lock: AbstractContextManager[Any] = _locks.setdefault(device, threading.RLock())
        #: Where recordings of the device give their memory as it is.
        self.held = _held.setdefault(device, HeldAddresses())
        #: Whether the caller records what is launched on the current stream.
        self.is_capturing: Callable[[], bool] = torch.cuda.is_current_stream_capturing
        self._launchers = tuple(launchers)
        self._is_alone = torch.cuda.device_count() == 1

    def stream(self) -> int:
        """The current stream; less than 0 where another device than the recorder's is the current one."""
        if not self._is_alone and torch.cuda.current_device() != self.device:
            return -1
        return int(torch._C._cuda_getCurrentRawStream(self.device))

    def timed(self, call: Call, inputs: list[Any]) -> tuple[list[Any], Callable[[], Times | None]]:
        """What the call gives, and a function that gives its times, or None as long as the device is not done."""
        event: Any = torch.cuda.Event  # torch gives its events no types in some versions
        start, end = event(enable_timing=True), event(enable_timing=True)
        is_idle = self._is_idle()
        start.record()
        began = perf_counter()
        outputs = call(inputs)
        host_us = 1e6 * (perf_counter() - began)
        end.record()

        def times() -> Times | None:
            return Times(host_us, 1e3 * start.elapsed_time(end), is_idle) if end.query() else None

        return outputs, times

    @staticmethod
    def _is_idle() -> bool:
        """Whether the current stream has nothing to do but to tell so."""
        told: Any = torch.cuda.Event()
        told.record()
        until = perf_counter() + 1e-6 * IDLE_US
        while not told.query():
            if perf_counter() > until:
                return False
        return True

    def record(self, call: Call, inputs: list[Any], is_held: bool) -> CudaRecording:
        """Record what the call launches, for replays on the current stream; where it `is_held`, in memory that no other
        recording writes to. Raises `CannotRecord`."""
        if self.device in _broken:
            raise CannotRecord("an earlier recording on this device did not end as it should")
        if any(isinstance(value, torch.Tensor) and value.get_device() != self.device for value in inputs):
            raise CannotRecord("an input lies on another device")
        try:
            pool = self._pool()
            if is_held:  # a recording made earlier may write to what is free in the shared pool now
                pool = Pool(pool.side)
            graph, outputs = self._captured(pool, lambda: call(inputs))
        except Exception as error:  # whatever it is, the launches go out one by one
            said = str(error).strip().splitlines()
            raise CannotRecord(f"{type(error).__name__}: {said[0] if said else 'no message'}") from error
        return CudaRecording(graph, outputs)

    def _captured(self, pool: Pool, call: Callable[[], list[Any]]) -> tuple[Any, list[Any]]:
        graph: Any = torch.cuda.CUDAGraph()
        with torch.cuda.stream(pool.side), garbage_kept():
            # Other threads may allocate meanwhile, which the mode "global" would forbid them.
            graph.capture_begin(pool=pool.handle, capture_error_mode="thread_local")
            try:
                outputs = call()
            except BaseException:
                with suppress(RuntimeError):
                    self._end(graph)
                raise
            self._end(graph)
        return graph, outputs

    def _end(self, graph: Any) -> None:
        try:
            graph.capture_end()
        except RuntimeError:
            _broken.add(self.device)
            raise

    def _pool(self) -> Pool:
        """The pool of the current stream, and all that kernels need on the stream beside it."""
        key = self.device, self.stream()
        if key not in _pools:
            _pools[key] = self._new_pool()
        pool = _pools[key]
        self._make_workspaces(pool)  # for each recording: they may have been freed since the last one
        for launcher in self._launchers:
            launcher.prepare_stream(self.device, pool.side.cuda_stream)
        library_products.prepare_stream(self.device, pool.side.cuda_stream, like=key[1])
        return pool

    def _new_pool(self) -> Pool:
        pool = Pool(_own_stream(self.device))
        pool.anchor, _ = self._captured(pool, lambda: [torch.zeros(1, device=f"cuda:{self.device}")])
        return pool

    def _make_workspaces(self, pool: Pool) -> None:
        """Have torch make the workspaces of products that it has not on the side stream, in the memory of the pool."""
        square = torch.zeros(16, 16, device=f"cuda:{self.device}")

        def products() -> list[Any]:
            return [torch.mm(square, square), torch.addmm(square[0], square, square)]  # by cuBLAS, and by cuBLASLt

        products()  # the libraries load their kernels, which they cannot while launches are recorded
        self._captured(pool, products)

    def free_bytes(self) -> int:
        """Free bytes of the device's memory, including what torch caches."""
        return free_bytes(self.device)

    def pool_bytes(self) -> int:
        """What the memory takes from which all recordings for one stream are served."""
        pools = [tuple(pool.handle) for (device, _), pool in _pools.items() if device == self.device]
        segments = torch.cuda.memory_snapshot()
        return sum(segment["total_size"] for segment in segments if tuple(segment["segment_pool_id"]) in pools)

    def unmoved(self, addresses: Sequence[int]) -> Callable[[list[Any]], bool]:
        """A quick test of whether a call's inputs are at these addresses; at any, where one is 0."""

        def are_there(inputs: list[Any]) -> bool:
            found = addresses_of(inputs)
            return all(old in (0, new) for old, new in zip(addresses, found, strict=True))

        return address_test(addresses) or are_there


def _own_stream(device: int) -> Any:
    """A stream that nobody else has: of its own streams torch gives the same ones again and again."""
    made = new_stream()
    return torch.cuda.Stream(device) if made is None else torch.cuda.ExternalStream(made, device)
