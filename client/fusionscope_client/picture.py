"""The map as SVG: each kernel a box below those that it reads from, edges that go through memory with their bytes, the
costliest refusals dashed. Edges that stay in registers are within a box, where its nodes are named."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from typing import Any

from fusionscope_client.display import bytes_words, visible

#: As on the page: told apart by people who see few colours.
COLOURS = ("#0072b2", "#c65a00", "#00805c", "#a8458a", "#8a7200", "#2f7fa8", "#6a51a3", "#9a3d3d")
MOST_KERNELS = 60
_MOST_REFUSALS = 10
_WIDTH, _HEIGHT, _GAP_X, _GAP_Y, _EDGE = 250, 58, 72, 52, 64
_MARGIN = 8
_FAINT = ' fill-opacity="0.75"'
_LANES = 5
"""Curves of refusals beside each other, before they share one."""
_MOST_CHARACTERS = 30


@dataclass(frozen=True)
class _Box:
    x: float
    y: float

    def bottom(self) -> tuple[float, float]:
        return self.x + _WIDTH / 2, self.y + _HEIGHT

    def side(self) -> tuple[float, float]:
        return self.x, self.y + _HEIGHT / 2

    def top(self) -> tuple[float, float]:
        return self.x + _WIDTH / 2, self.y


class Picture:
    """The SVG of a report; notebooks show it."""

    def __init__(self, contents: Any) -> None:
        self._contents = contents

    def svg(self) -> str:
        parts, width, y = [], 2 * _EDGE + _WIDTH, float(_MARGIN)
        for graph in self._contents.graphs:
            if not graph.kernels:
                continue
            drawn, graph_width, height = _graph(graph, y)
            parts.append(drawn)
            width, y = max(width, int(graph_width)), y + height
        # Left of the boxes there is room for refusals, where there are any.
        left = 0 if any("stroke-dasharray" in part for part in parts) else _EDGE - _MARGIN
        width, height = width - left, int(y - _GAP_Y + _MARGIN)
        size = f'width="{width}" height="{height}" viewBox="{left} 0 {width} {height}"'
        return (
            f'<svg xmlns="http://www.w3.org/2000/svg" {size} role="img" aria-label="Kernels and what goes through '
            f'memory between them" font-family="system-ui, sans-serif" font-size="12">{"".join(parts)}</svg>'
        )

    def _repr_svg_(self) -> str:
        return self.svg()


def _graph(graph: Any, top: float) -> tuple[str, float, float]:
    """The drawing, its width and its height."""
    kernels = graph.kernels[:MOST_KERNELS]
    rows = _rows(kernels)
    boxes = {
        place: _Box(_EDGE + column * (_WIDTH + _GAP_X), top + 24 + row * (_HEIGHT + _GAP_Y))
        for row, places in enumerate(rows)
        for column, place in enumerate(places)
    }
    cut = f"; the first {MOST_KERNELS} of {len(graph.kernels)} kernels" if len(graph.kernels) > len(kernels) else ""
    parts = [_text(_EDGE, top + 12, f"{graph.name}{cut}", _FAINT)]
    parts += _edges(graph, kernels, boxes)
    parts += _refused(graph, kernels, boxes)
    parts += [_kernel(kernel, place, boxes[place]) for place, kernel in enumerate(kernels)]
    columns = max(len(places) for places in rows)
    width = 2 * _EDGE + columns * _WIDTH + (columns - 1) * _GAP_X
    return "".join(parts), width, 24 + len(rows) * (_HEIGHT + _GAP_Y)


def _rows(kernels: Sequence[Any]) -> list[list[int]]:
    """Places of kernels, row by row: each below all that it reads from."""
    writers: dict[str, int] = {}
    row_of: list[int] = []
    for place, kernel in enumerate(kernels):
        above = [row_of[writers[name]] for name in kernel.reads if name in writers]
        row_of.append(max(above, default=-1) + 1)
        writers.update(dict.fromkeys(kernel.writes, place))
    return [[place for place, row in enumerate(row_of) if row == number] for number in range(max(row_of) + 1)]


def _edges(graph: Any, kernels: Sequence[Any], boxes: dict[int, _Box]) -> list[str]:
    sizes = {buffer.name: buffer.bytes for buffer in graph.buffers}
    largest = max(sizes.values(), default=1) or 1
    writers: dict[str, int] = {}
    parts = []
    for place, kernel in enumerate(kernels):
        for name in kernel.reads:
            if name in writers:
                thick = 1 + 5 * sizes.get(name, 0) / largest
                (x1, y1), (x2, y2) = boxes[writers[name]].bottom(), boxes[place].top()
                parts.append(f'<path d="M{x1:g} {y1:g}C{x1:g} {y1 + 24:g} {x2:g} {y2 - 24:g} {x2:g} {y2:g}" '
                             f'fill="none" stroke="#888" stroke-width="{thick:.1f}"/>')  # fmt: skip
                parts.append(_text((x1 + x2) / 2 + 6, (y1 + y2) / 2 + 4, bytes_words(sizes.get(name, 0)), _FAINT))
        writers.update(dict.fromkeys(kernel.writes, place))
    return parts


def _refused(graph: Any, kernels: Sequence[Any], boxes: dict[int, _Box]) -> list[str]:
    parts = []
    for lane, refusal in enumerate(graph.refusals[:_MOST_REFUSALS]):
        decision, (one, two) = graph.decisions[refusal.decisions[0]], refusal.kernels
        if max(one, two) >= len(kernels):
            continue
        (x1, y1), (x2, y2) = boxes[one].side(), boxes[two].side()
        bulge = 24 + 7 * (lane % _LANES)
        told = _safe(f"{decision.a} and {decision.b} were not fused: {decision.message}")
        curve = f"M{x1:g} {y1:g}C{x1 - bulge:g} {y1:g} {x2 - bulge:g} {y2:g} {x2:g} {y2:g}"
        parts.append(
            f'<path d="{curve}" fill="none" stroke="#d03a4a" stroke-width="1.6" stroke-dasharray="5 4">'
            f"<title>{told}</title></path>"
        )
    return parts


def _kernel(kernel: Any, place: int, box: _Box) -> str:
    colour = COLOURS[place % len(COLOURS)]
    nodes = ", ".join(kernel.origins or kernel.nodes)
    title = _safe(f"{kernel.name}: {nodes}")
    return (
        f'<g><title>{title}</title><rect x="{box.x:g}" y="{box.y:g}" width="{_WIDTH}" height="{_HEIGHT}" rx="6" '
        f'fill="{colour}" fill-opacity="0.14" stroke="{colour}"/>'
        + _text(box.x + 10, box.y + 18, _cut(f"K{place + 1} {kernel.name}"), ' font-weight="600"')
        + _text(box.x + 10, box.y + 34, _cut(nodes))
        + _text(box.x + 10, box.y + 50, _figures(kernel), _FAINT)
        + "</g>"
    )


def _figures(kernel: Any) -> str:
    if kernel.measured_us is not None:
        return f"{bytes_words(kernel.bytes)}, {kernel.measured_us:,.1f}\N{NARROW NO-BREAK SPACE}µs"
    predicted = (
        f", {kernel.predicted_us:,.1f}\N{NARROW NO-BREAK SPACE}µs predicted" if kernel.predicted_us is not None else ""
    )
    return f"{bytes_words(kernel.bytes)}{predicted}"


def _text(x: float, y: float, text: str, more: str = "") -> str:
    """In the notebook's own colour, which is a light one where it is dark."""
    return f'<text x="{x:g}" y="{y:g}" fill="currentColor"{more}>{_safe(text)}</text>'


def _cut(text: str) -> str:
    return text if len(text) <= _MOST_CHARACTERS else f"{text[: _MOST_CHARACTERS - 1]}…"


def _safe(text: str) -> str:
    return escape(visible(text), quote=True)
