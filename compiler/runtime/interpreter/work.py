"""How much work a launch is for Triton's interpreter: counted, so that the same launch is let pass on every machine.

What the interpreter spends is the Python around each operation on a block and NumPy's way through the block's elements,
so both are counted in elements. A program instance may be one line or a sum over thousands of steps: the number of
instances says little.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from triton.runtime.interpreter import TensorHandle

#: What one operation costs whatever the size of its block, in elements: about ten microseconds against two nanoseconds.
OPERATION = 5000
#: A product of tiles takes as many elements as multiplications divided by this.
MULTIPLICATIONS = 32


class TooMuchWork(RuntimeError):
    """A launch that would take the interpreter longer than it was given."""


class Work:
    """What a launch of `programs` instances takes, in elements; more than `most` raises `TooMuchWork`."""

    def __init__(self, programs: int, most: float) -> None:
        self.programs = programs
        self.most = most
        self.done = 0

    def add(self, elements: int) -> None:
        self.done += elements
        if self.done > self.most:
            self._refuse()

    def programs_have_ended(self, ended: int) -> None:
        """After `ended` instances: the others take about as much each."""
        if self.done / ended * self.programs > self.most:
            self._refuse()

    def _refuse(self) -> None:
        raise TooMuchWork(f"{self.programs} program instances as long as these are too much for Triton's interpreter")

    def counting(self, made: Callable[[TensorHandle], None]) -> Callable[[TensorHandle], None]:
        """`made`, which is told of each value that an operation makes, with the value counted."""

        def counted(value: Any) -> None:
            made(value)
            self.add(OPERATION + value.data.size)

        return counted

    def add_product(self, left: Any, right: Any) -> None:
        """A product of two tiles, matrices or batches of them, besides its result."""
        self.add(left.size * right.shape[-1] // MULTIPLICATIONS)
