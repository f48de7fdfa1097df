"""All programs of the suite, by name."""

from __future__ import annotations

from bench.fusion import layouts, pointwise, recipes, reductions
from bench.fusion.program import Program

PROGRAMS: dict[str, Program] = {
    program.name: program
    for program in (*pointwise.PROGRAMS, *reductions.PROGRAMS, *layouts.PROGRAMS, *recipes.PROGRAMS)
}
