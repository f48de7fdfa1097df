"""Checking a function that draws a dropout mask, where two right answers differ.

What every right answer has in common: each element is either zero or x / (1 - p), and the share of elements that are
kept is 1 - p within what chance allows.
"""

from __future__ import annotations

import math

import torch
import torch.nn.functional as F

#: Standard deviations that the share of kept elements may be off: chance alone exceeds five once in 1.7 million.
DEVIATIONS = 5.0
#: Error of the kept values that the rounding of bfloat16 explains.
TOLERANCE = 2e-2


def dropout_error(outputs: torch.Tensor, x: torch.Tensor, bias: torch.Tensor, drop: float = 0.1) -> tuple[float, bool]:
    """The error of `dropout(gelu(x + bias), drop)` and whether it is right.

    The error is ‖out - ref‖ / ‖ref‖ over the kept elements, `ref` being gelu(x + bias) / (1 - drop) in float64.
    Elements that are zero without dropout tell nothing and are left out.
    """
    reference = F.gelu(x.double() + bias.double()) / (1 - drop)
    # Below this, the result in the tensor's own dtype may round to zero.
    tells = reference.abs() > 1e-3
    kept = (outputs != 0) & tells
    count = int(tells.sum())
    if count == 0 or not bool(torch.isfinite(outputs).all()):
        return math.inf, False
    share = int(kept.sum()) / count
    spread = math.sqrt(drop * (1 - drop) / count)
    difference = torch.linalg.vector_norm((outputs.double() - reference)[kept])
    error = float(difference / torch.linalg.vector_norm(reference[kept]))
    return error, error <= TOLERANCE and abs(share - (1 - drop)) <= DEVIATIONS * spread
