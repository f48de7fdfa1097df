"""Predicted against measured microseconds as an SVG: a point a kernel, both axes logarithmic, the diagonal is truth."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from html import escape
from typing import Any

from bench.predictions.classes import CLASSES

SIDE, MARGIN, LEGEND = 520, 64, 150
#: One colour a class, told apart by people who see red and green alike (Okabe and Ito's palette, and two greys).
COLOURS = ("#882255", "#000000", "#e69f00", "#999999", "#56b4e9", "#009e73", "#f0e442", "#0072b2", "#d55e00", "#cc79a7")


def draw(kernels: Sequence[Mapping[str, Any]], title: str) -> str:
    """The text of the SVG."""
    shown = [kernel for kernel in kernels if kernel["measured_us"] and kernel["predicted_us"]]
    low, high = _decades(shown)

    def place(microseconds: float) -> float:
        return SIDE * (math.log10(microseconds) - low) / (high - low)

    width, height = SIDE + 2 * MARGIN + LEGEND, SIDE + 2 * MARGIN
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" font-family="sans-serif" '
        'font-size="12">',
        f'<rect width="{width}" height="{height}" fill="white"/>',
        f'<text x="{MARGIN}" y="28" font-size="15">{escape(title)}</text>',
        f'<g transform="translate({MARGIN},{MARGIN + SIDE}) scale(1,-1)">',
        *_grid(range(low, high + 1), place),
        *(_point(kernel, place) for kernel in shown),
        "</g>",
        *_labels(range(low, high + 1), place),
        *_legend(shown),
        "</svg>",
    ]
    return "\n".join(parts) + "\n"


def _decades(kernels: Iterable[Mapping[str, Any]]) -> tuple[int, int]:
    """Powers of ten that hold every point."""
    logs = [math.log10(kernel[key]) for kernel in kernels for key in ("measured_us", "predicted_us")] or [0.0, 1.0]
    low, high = math.floor(min(logs)), math.ceil(max(logs))
    return low, max(high, low + 1)


def _line(x1: float, y1: float, x2: float, y2: float, colour: str, more: str = "") -> str:
    return f'<line x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}" stroke="{colour}"{more}/>'


def _grid(decades: range, place: Any) -> list[str]:
    lines: list[str] = []
    for decade in decades:
        at = place(10.0**decade)
        lines += [_line(at, 0, at, SIDE, "#dddddd"), _line(0, at, SIDE, at, "#dddddd")]
    lines.append(_line(0, 0, SIDE, SIDE, "#000000"))
    # The band within which a prediction is off by less than 15 %.
    for factor in (0.85, 1.15):
        shift = place(10.0 ** decades[0] * factor)
        x1, y1, x2, y2 = (0, shift, SIDE - shift, SIDE) if shift > 0 else (-shift, 0, SIDE, SIDE + shift)
        lines.append(_line(x1, y1, x2, y2, "#888888", ' stroke-dasharray="4 3"'))
    return lines


def _point(kernel: Mapping[str, Any], place: Any) -> str:
    x, y = place(kernel["measured_us"]), place(kernel["predicted_us"])
    text = f"{kernel['program']} {kernel['name']}: measured {kernel['measured_us']:.2f}, "
    text += f"predicted {kernel['predicted_us']:.2f} µs"
    colour = COLOURS[CLASSES.index(kernel["class"])]
    circle = f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3" fill="{colour}" fill-opacity="0.7">'
    return f"{circle}<title>{escape(text)}</title></circle>"


def _labels(decades: range, place: Any) -> list[str]:
    texts: list[str] = []
    for decade in decades:
        at, label = place(10.0**decade), f"{10.0**decade:g}"
        texts.append(f'<text x="{MARGIN + at:.1f}" y="{MARGIN + SIDE + 18}" text-anchor="middle">{label}</text>')
        texts.append(f'<text x="{MARGIN - 8}" y="{MARGIN + SIDE - at + 4:.1f}" text-anchor="end">{label}</text>')
    middle = MARGIN + SIDE / 2
    texts.append(f'<text x="{middle}" y="{MARGIN + SIDE + 42}" text-anchor="middle">measured µs</text>')
    turned = f'transform="rotate(-90 18 {middle})"'
    texts.append(f'<text x="18" y="{middle}" text-anchor="middle" {turned}>predicted µs</text>')
    return texts


def _legend(kernels: Sequence[Mapping[str, Any]]) -> list[str]:
    lines: list[str] = []
    present = [name for name in CLASSES if any(kernel["class"] == name for kernel in kernels)]
    for row, name in enumerate(present):
        y = MARGIN + 12 + 20 * row
        colour = COLOURS[CLASSES.index(name)]
        lines.append(f'<circle cx="{MARGIN + SIDE + 20}" cy="{y}" r="4" fill="{colour}"/>')
        lines.append(f'<text x="{MARGIN + SIDE + 30}" y="{y + 4}">{escape(name)}</text>')
    return lines
