"""Names for formulas of sizes: identifiers by which a kernel and its wrapper know their values."""

from __future__ import annotations

import re
from zlib import crc32

#: Characters of a formula's words in its name.
_LONGEST_NAME = 48

#: Longer signs first.
_WORDS = {
    "//": "over", "+": "plus", "-": "minus", "*": "times", "%": "modulo", ">=": "at_least", "<=": "at_most",
    "==": "equals", "!=": "differs_from", ">": "above", "<": "below",
}  # fmt: skip


#: Formulas whose words can be read in one way only: a division of plain sums.
_PLAIN = re.compile(r"(\([\w +*-]+\)|\w+) // (\([\w +*-]+\)|\w+)")


def name_of(text: str) -> str:
    """A formula as an identifier: `(s0 + 3) // 4` is `s0_plus_3_over_4`. Where other formulas have the same words, a
    number that goes by the text tells them apart: `math_floor_s0_3_5b1ff3c9`."""
    words = text
    for sign, word in _WORDS.items():
        words = words.replace(sign, f" {word} ")
    name = "_".join("".join(c if c.isalnum() or c == "_" else " " for c in words).split())
    if "_" in text or not _PLAIN.fullmatch(text):
        name = f"{name[:_LONGEST_NAME]}_{crc32(text.encode()):08x}"
    return f"size_{name}" if name[:1].isdigit() else name
