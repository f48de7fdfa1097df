"""The wide suite: some hundreds of programs of many kinds, so that what is fast is fast for a class and not for a case.

Each file of this folder holds the programs of one kind. What is compiled is checked against float64 as patterns are;
the programs of a process are all compiled first, beside other processes, and then timed while no other process does
anything (`share.py`).
"""

from __future__ import annotations

from importlib import import_module
from pkgutil import iter_modules

from bench.patterns import Case
from bench.wide.declare import PROGRAMS

for _module in iter_modules(__path__):
    import_module(f"{__name__}.{_module.name}")

WIDE: dict[str, Case] = PROGRAMS
