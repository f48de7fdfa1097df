"""Ours over TorchInductor's time as an SVG: a bar a case from the line of equal times, on a logarithmic axis."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from html import escape
from typing import Any

WIDTH, ROW, LEFT, TOP, RIGHT = 520, 18, 210, 56, 70
FASTER, SLOWER, WRONG = "#0072b2", "#d55e00", "#999999"
#: What the axis is marked at.
MARKS = (0.25, 0.33, 0.5, 0.67, 0.8, 1.0, 1.25, 1.5, 2.0, 3.0, 4.0)


def draw(results: Mapping[str, Mapping[str, Any]], title: str) -> str:
    """The text of the SVG. A hollow mark is the ratio to the best of the peer's modes that ran."""
    shown = [(name, result) for name, result in results.items() if result.get("ours_to_inductor")]
    ratios = [result[key] for _, result in shown for key in ("ours_to_inductor", "ours_to_best")]
    reach = max([abs(math.log(ratio)) for ratio in ratios] + [math.log(1.3)]) * 1.08

    def place(ratio: float) -> float:
        return LEFT + WIDTH * (0.5 + 0.5 * math.log(ratio) / reach)

    width, height = LEFT + WIDTH + RIGHT, TOP + ROW * len(shown) + 16
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" font-family="sans-serif" '
        'font-size="12">',
        f'<rect width="{width}" height="{height}" fill="white"/>',
        f'<text x="12" y="20" font-size="15">{escape(title)}</text>',
        *_axis(place, [mark for mark in MARKS if abs(math.log(mark)) <= reach], height),
    ]
    for row, (name, result) in enumerate(shown):
        parts += _bar(name, result, TOP + ROW * row, place)
    return "\n".join([*parts, "</svg>"]) + "\n"


def _axis(place: Any, marks: Sequence[float], height: int) -> list[str]:
    parts = []
    for mark in marks:
        x, colour = place(mark), "#000000" if mark == 1.0 else "#dddddd"
        parts.append(f'<line x1="{x:.1f}" y1="{TOP - 6}" x2="{x:.1f}" y2="{height - 10}" stroke="{colour}"/>')
        parts.append(f'<text x="{x:.1f}" y="{TOP - 12}" text-anchor="middle">{mark:g}</text>')
    return parts


def _bar(name: str, result: Mapping[str, Any], top: float, place: Any) -> list[str]:
    ratio, best = result["ours_to_inductor"], result["ours_to_best"]
    is_right = result.get("correct", {}).get("ours", True)
    colour = WRONG if not is_right else SLOWER if ratio > 1 else FASTER
    left, right = sorted((place(1.0), place(ratio)))
    told = f"{name}: ours {result['ours']:.4g} ms, Inductor {result['inductor_default']:.4g} ms"
    return [
        f'<text x="{LEFT - 8}" y="{top + 12}" text-anchor="end">{escape(name)}</text>',
        f'<rect x="{left:.1f}" y="{top + 3}" width="{max(right - left, 1):.1f}" height="{ROW - 6}" fill="{colour}">'
        f"<title>{escape(told)}</title></rect>",
        f'<circle cx="{place(best):.1f}" cy="{top + ROW / 2}" r="3.5" fill="none" stroke="#000000"/>',
        f'<text x="{LEFT + WIDTH + 8}" y="{top + 12}">{ratio:.2f}</text>',
    ]
