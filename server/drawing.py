"""The kernels of a graph as a picture that needs no script: for the file that stands alone.

A box for each kernel, from the first launch to the last. At the right what one writes and another reads goes through
memory, thicker with more bytes; at the left the pairs that were refused are dashed. A place for every box is all the
layout that this takes; the page draws the operations as well. Everything in it is told in words below it.
"""

from __future__ import annotations

import html
import math
from collections import defaultdict
from collections.abc import Iterator

from compiler.report import Graph, Kernel
from compiler.wording import byte_count, line_list
from server.plain_text import one_line

MOST_KERNELS = 60
_MOST_LABELS = 12
_ROW, _HEIGHT, _LEFT, _WIDTH, _REACH = 64, 48, 90, 470, 120
_ALL = _LEFT + _WIDTH + _REACH + 90
_CHARACTERS = 60

_STYLE = """
.map { display: block; width: 100%; max-width: 54rem; height: auto }
.map text { font: 12px ui-monospace, monospace; fill: currentColor }
.map .quiet { opacity: .75 }
.map rect { fill-opacity: .12; stroke-width: 1.5 }
.map path { fill: none }
.map .through { stroke: #8a93a0; stroke-opacity: .8 }
.map .refused { stroke: #d33; stroke-width: 1.5; stroke-dasharray: 5 3 }
"""
#: Those of the page, which people without red or green tell apart.
_LIGHT = "#0072b2 #c65a00 #00805c #a8458a #8a7200 #2f7fa8 #6a51a3 #9a3d3d"
_DARK = "#56b4e9 #f0954a #35c79b #e08fc6 #dcc94c #8fc7ff #b3a0ee #ec8f8f"


def style() -> str:
    """The style sheet that drawings need, for light and dark."""
    light, dark = (
        "\n".join(f".map .k{place} {{ fill: {one}; stroke: {one} }}" for place, one in enumerate(colours.split()))
        for colours in (_LIGHT, _DARK)
    )
    return f"{_STYLE}{light}\n@media (prefers-color-scheme: dark) {{\n{dark}\n}}\n"


def drawing(graph: Graph) -> str:
    """The picture as SVG; nothing where there are no kernels, or more than can be told apart in one."""
    if not 0 < len(graph.kernels) <= MOST_KERNELS:
        return ""
    height = len(graph.kernels) * _ROW
    name = _text(graph.function or graph.name)
    label = f"{name}: kernels in launch order, what goes through memory between them, and what was refused"
    inner = [*_through_memory(graph), *_refused(graph)]
    inner += [line for place, kernel in enumerate(graph.kernels) for line in _box(kernel, place)]
    head = f'<svg class="map" viewBox="0 0 {_ALL} {height}" role="img" aria-label="{label}">'
    return "\n".join([head, *inner, "</svg>"])


def _text(text: str, most: int = 200) -> str:
    text = one_line(text)
    return html.escape(text if len(text) <= most else text[: most - 1] + "…")


def _middle(place: int) -> float:
    return place * _ROW + _ROW / 2


def _box(kernel: Kernel, place: int) -> Iterator[str]:
    top = _middle(place) - _HEIGHT / 2
    operations = ", ".join(kernel.origins) or kernel.kind
    lines = line_list(kernel.user_lines)
    yield f'<rect class="k{place % 8}" x="{_LEFT}" y="{top}" width="{_WIDTH}" height="{_HEIGHT}" rx="6">'
    yield f"<title>{_text(kernel.name)}: {_text(operations, 2000)}</title></rect>"
    yield f'<text x="{_LEFT + 10}" y="{top + 19}">K{place + 1} {_text(operations, _CHARACTERS)}</text>'
    told = f"{byte_count(kernel.bytes)} moved" + (f", from {lines}" if lines else "")
    yield f'<text class="quiet" x="{_LEFT + 10}" y="{top + 37}">{_text(told, _CHARACTERS)}</text>'


def _places(graph: Graph) -> dict[str, int]:
    """The last kernel that computes each node, and the place of each kernel by its own name."""
    found = {node: place for place, kernel in enumerate(graph.kernels) for node in kernel.nodes}
    return {kernel.name: place for place, kernel in enumerate(graph.kernels)} | found


def _arc(start: int, end: int, side: int) -> str:
    x = _LEFT + _WIDTH if side > 0 else _LEFT
    reach = x + side * min(_REACH, 36 + 14 * abs(end - start))
    return f"M{x},{_middle(start)} C{reach},{_middle(start)} {reach},{_middle(end)} {x},{_middle(end)}"


def _through_memory(graph: Graph) -> Iterator[str]:
    places = _places(graph)
    moved: dict[tuple[int, int], dict[str, int]] = defaultdict(dict)
    for edge in graph.traffic.edges if graph.traffic is not None else []:
        start, end = places.get(edge.producer or ""), places.get(edge.consumer)
        if edge.fate == "memory" and start is not None and end is not None and start != end:
            moved[start, end][edge.tensor] = edge.read_bytes
    for (start, end), tensors in moved.items():
        total = sum(tensors.values())
        width = min(7.0, 2 + max(0.0, math.log10(max(total, 1)) - 3) * 1.1)
        told = f"K{start + 1} to K{end + 1}, through memory: {byte_count(total)}, {', '.join(tensors)}"
        yield f'<path class="through" stroke-width="{width:.1f}" d="{_arc(start, end, 1)}">'
        yield f"<title>{_text(told)}</title></path>"
        if len(moved) <= _MOST_LABELS:
            x = _LEFT + _WIDTH + 0.75 * min(_REACH, 36 + 14 * abs(end - start)) + 8
            yield f'<text x="{x:.0f}" y="{(_middle(start) + _middle(end)) / 2 + 4}">{byte_count(total)}</text>'


def _refused(graph: Graph) -> Iterator[str]:
    places = _places(graph)
    told: dict[tuple[int, int], str] = {}
    for decision in graph.decisions:
        start, end = places.get(decision.a), places.get(decision.b)
        if decision.verdict == "refused" and start is not None and end is not None and start != end:
            told.setdefault((min(start, end), max(start, end)), f"{decision.a} and {decision.b}: {decision.message}")
    for (start, end), sentence in told.items():
        yield f'<path class="refused" d="{_arc(start, end, -1)}"><title>{_text(sentence)}</title></path>'
