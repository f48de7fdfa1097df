"""Choosing how a matrix product runs by measurement: the mode `max-autotune`.

    product alone               the library's call
    product and what follows    a kernel of ours, by each of a few tiles; the library's call with its own epilogue

The scheduler asks what a product takes as one unit, or as the library's call, and gets the median of a few runs on the
GPU at hand, of tensors with random values and an overwritten L2 cache; what its model expects it gets where nothing
could be run. Figures are kept on disk by what decides them: kernel text without names, layouts, device and versions.
"""

from __future__ import annotations

import hashlib
import json
import statistics
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import torch

from compiler.codegen.rendered import RenderedKernel
from compiler.codegen.same_code import code_of
from compiler.codegen.triton.product import render_tiles
from compiler.devices import Device
from compiler.environment import compiler_version, triton_version
from compiler.ir.nodes import ExternNode, Layout, TensorArgument
from compiler.runtime.disk_cache import cache_directory, is_whole, write_whole
from compiler.runtime.timing.stopwatch import Call, Stopwatch, stopwatch
from compiler.runtime.triton.launch import TritonLauncher
from compiler.runtime.triton.preparing import prepare_all
from compiler.schedule.products.best_tile import tile_of, tiles_within
from compiler.schedule.products.loops import Product
from compiler.schedule.products.tiles import Tile
from compiler.schedule.units import Unit

#: Tiles that are expected to take more than so many times what the best one takes are not tried, nor more than these.
MOST_SLOWER, MOST_TILES = 1.7, 6
RUNS, WARMUP_RUNS = 9, 2

Buffers = Mapping[str, Layout]


@dataclass(frozen=True)
class Found:
    """The fastest way that was measured: its microseconds, and its tile where it is a kernel of ours."""

    us: float
    tile: Tile | None = None


@dataclass
class Tuning:
    """What was measured of the products of one graph, whose `buffers` lie as these layouts say."""

    device: torch.device
    model: Device
    buffers: Buffers
    clock: Callable[[list[Call]], list[float | None]] | None = None
    _tensors: dict[tuple[Layout, int], torch.Tensor] = field(default_factory=dict)

    def microseconds(self, unit: Product | ExternNode) -> float | None:
        """What the unit takes in its fastest way, None where it does not run or nothing could be measured."""
        found = self._of_call(unit) if isinstance(unit, ExternNode) else self._of(unit)
        return None if found is None else found.us

    def tuned(self, unit: Unit) -> Unit:
        """A product with the tile that was measured to be the fastest, where one was."""
        if not isinstance(unit, Product) or (found := self._of(unit)) is None:
            return unit
        return replace(unit, tile=found.tile)

    def _of(self, product: Product) -> Found | None:
        """The fastest way to run a product with what was fused into it."""
        if product.library is not None:
            return self._of_call(product.library)
        tiles = self._tiles(product)
        storage = {name: layout.dtype for name, layout in self.buffers.items()}
        kernels = [render_tiles(product, storage, tile, self.model.multiprocessors) for tile in tiles]
        key = _key("kernel", [_identity(kernel, self.buffers) for kernel in kernels], self.device)
        figure = self._figure(key, lambda: [self._launch(kernel) for kernel in kernels])
        return None if figure is None else Found(float(figure[0]), tiles[int(figure[1])])

    def _tiles(self, product: Product) -> list[Tile]:
        """The tile that the model would take, and those that it expects to be nearly as fast."""
        first = tile_of(product, self.model)
        others = [tile for tile in tiles_within(product, MOST_SLOWER, self.model) if tile != first]
        return [first, *others][:MOST_TILES]

    def _of_call(self, call: ExternNode) -> Found | None:
        key = _key("call", [str(call.target), _arguments_text(call)], self.device)
        figure = self._figure(key, lambda: [self._call(call)])
        return None if figure is None else Found(float(figure[0]))

    def _figure(self, key: str, calls: Callable[[], list[Call]]) -> list[float] | None:
        """What is kept by that key: the microseconds of the fastest of the calls, and its position. They are made and
        measured where it is not known; None where none of them runs."""
        known = _known(key)
        if known is not None:
            return known
        times = {position: time for position, time in enumerate(self._clock(calls())) if time is not None}
        if not times:
            return None
        best = min(times, key=times.__getitem__)
        return _keep(key, [times[best], best])

    def _clock(self, calls: list[Call]) -> list[float | None]:
        return self.clock(calls) if self.clock is not None else _times(calls, stopwatch(self.device))

    def _launch(self, kernel: RenderedKernel) -> Call:
        launcher = TritonLauncher(kernel)
        taken = Counter[Layout]()
        tensors = [self._tensor(self.buffers[name], taken) for name in kernel.parameters]
        return _Prepared(launcher, tensors)

    def _call(self, call: ExternNode) -> Call:
        taken = Counter[Layout]()

        def given(value: Any) -> Any:
            if isinstance(value, TensorArgument):
                return self._tensor(value.layout, taken)
            return type(value)(map(given, value)) if isinstance(value, list | tuple) else value

        arguments = [given(value) for value in call.arguments]
        keywords = {name: given(value) for name, value in call.keywords.items()}
        return lambda: call.target(*arguments, **keywords)

    def _tensor(self, layout: Layout, taken: Counter[Layout]) -> torch.Tensor:
        """Random values that lie so. Kernels share them, since only times are asked for; the tensors of one kernel that
        lie alike do not, or the cache would give what memory must: `taken` counts those that it has."""
        key = layout, taken[layout]
        taken[layout] += 1
        known = self._tensors.get(key)
        if known is None:
            flat = torch.empty(int(layout.storage_numel), dtype=layout.dtype, device=self.device)  # type: ignore[arg-type]
            _ = flat.normal_() if layout.dtype.is_floating_point else flat.zero_()
            known = self._tensors[key] = flat.as_strided(layout.shape, layout.stride)  # type: ignore[arg-type]
        return known


@dataclass(eq=False)
class _Prepared:
    """A launch on tensors, whose kernel can be compiled beforehand."""

    launcher: TritonLauncher
    tensors: list[torch.Tensor]

    def prepare(self) -> None:
        self.launcher.prepare(*self.tensors)

    def __call__(self) -> None:
        self.launcher(*self.tensors)


def _times(calls: list[Call], watch: Stopwatch) -> list[float | None]:
    """Median microseconds of each, interleaved; None of those that raise."""
    prepare_all([call.prepare for call in calls if isinstance(call, _Prepared)])
    samples: dict[int, list[float]] = {position: [] for position in range(len(calls))}
    with torch.no_grad():
        for position, call in enumerate(calls):
            try:
                for _ in range(WARMUP_RUNS):
                    call()
                watch.prepare(call)
            except Exception:  # noqa: BLE001 - a way that does not run is not the fastest one
                del samples[position]
        for _ in range(RUNS):
            for position, taken in samples.items():
                taken.append(1e3 * watch.sample(calls[position]))
    return [statistics.median(samples[position]) if position in samples else None for position in range(len(calls))]


def _identity(kernel: RenderedKernel, buffers: Buffers) -> str:
    """What decides the time of a kernel: what it is without names, its blocks, and how its tensors lie."""
    layouts = [str(buffers[name]) for name in kernel.parameters]
    return repr((code_of(kernel), sorted(kernel.config.items(), key=str), layouts))


def _arguments_text(call: ExternNode) -> str:
    def text(value: Any) -> str:
        if isinstance(value, list | tuple):
            return f"[{', '.join(map(text, value))}]"
        return str(value.layout) if isinstance(value, TensorArgument) else repr(value)

    return f"{text(call.arguments)} {sorted((k, text(v)) for k, v in call.keywords.items())} {call.allows_tf32}"


def _key(kind: str, parts: Iterable[str], device: torch.device) -> str:
    where = (torch.cuda.get_device_name(device) if device.type == "cuda" else device.type, torch.__version__)
    text = repr((kind, list(parts), where, torch.version.cuda, triton_version(), compiler_version()))
    return hashlib.sha256(text.encode()).hexdigest()


#: What was read and measured, by the file that it is kept in.
_figures: dict[Path, list[float]] = {}


def _known(key: str) -> list[float] | None:
    """Microseconds and a position; of a file that is damaged, none."""
    path = cache_directory("tuned") / key
    if path not in _figures and is_whole(path):
        _figures[path] = json.loads(path.read_text())
    return _figures.get(path)


def _keep(key: str, figure: list[float]) -> list[float]:
    """Remember a figure, on disk too."""
    path = cache_directory("tuned") / key
    _figures[path] = figure
    with suppress(OSError):  # a disk that is full or read-only costs another measurement next time
        write_whole(path, json.dumps(figure).encode())
    return figure
