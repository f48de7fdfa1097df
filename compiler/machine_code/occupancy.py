"""How many warps of a kernel a multiprocessor holds at once, by NVIDIA's rules.

The limits are those of the table "Technical Specifications per Compute Capability" of the CUDA C++ Programming Guide.
How registers and shared memory are handed out in pieces is in `cuda_occupancy.h`, which comes with the CUDA Toolkit:
registers to whole warps, 256 at a time, from the quarter of the multiprocessor that the warp runs on; shared memory
to whole programs, 128 bytes at a time (256 before compute capability 8.0), with 1 KiB for the system in front of each
since then.
"""

from __future__ import annotations

from dataclasses import dataclass

from compiler.report import Occupancy, OccupancyLimit

SOURCE = (
    'CUDA C++ Programming Guide, "Technical Specifications per Compute Capability", and cuda_occupancy.h: computed, '
    "not measured"
)
_WARP = 32
_QUARTERS = 4
_REGISTERS_AT_A_TIME = 256


@dataclass(frozen=True)
class Multiprocessor:
    """What one holds at most; shared memory in bytes, of all its programs together."""

    warps: int
    programs: int
    shared_bytes: int
    registers: int = 65536
    shared_for_system: int = 1024
    shared_at_a_time: int = 128


_KIB = 1024
_BY_TARGET = {
    "sm_75": Multiprocessor(32, 16, 64 * _KIB, shared_for_system=0, shared_at_a_time=256),
    "sm_80": Multiprocessor(64, 32, 164 * _KIB),
    "sm_86": Multiprocessor(48, 16, 100 * _KIB),
    "sm_87": Multiprocessor(48, 16, 164 * _KIB),
    "sm_89": Multiprocessor(48, 24, 100 * _KIB),
    "sm_90": Multiprocessor(64, 32, 228 * _KIB),
    "sm_100": Multiprocessor(64, 32, 228 * _KIB),
    "sm_120": Multiprocessor(48, 24, 100 * _KIB),
}


def occupancy(target: str, threads: int, registers: int, shared_bytes: int) -> Occupancy | None:
    """Of programs with so many threads, registers of each thread, and bytes of shared memory; None for a target whose
    limits are not known here."""
    found = _BY_TARGET.get(target)
    if found is None:
        return None
    warps = -(-threads // _WARP)
    limits = [
        OccupancyLimit(by="warps", programs=found.warps // warps),
        OccupancyLimit(by="programs", programs=found.programs),
    ]
    if registers:
        of_warp = _up(registers * _WARP, _REGISTERS_AT_A_TIME)
        at_once = found.registers // _QUARTERS // of_warp * _QUARTERS
        # Whether a program can be launched at all is looked at as if each quarter had as many of its warps.
        is_too_large = of_warp * _up(warps, _QUARTERS) > found.registers
        limits.append(OccupancyLimit(by="registers", programs=0 if is_too_large else at_once // warps))
    shared = _up(shared_bytes + found.shared_for_system, found.shared_at_a_time)
    if shared:
        limits.append(OccupancyLimit(by="shared memory", programs=found.shared_bytes // shared))
    programs = min(limit.programs for limit in limits)
    held = programs * warps
    return Occupancy(
        warps=held,
        most_warps=found.warps,
        percent=round(100 * held / found.warps, 1),
        programs=programs,
        limits=limits,
        limited_by=[limit.by for limit in limits if limit.programs == programs],
        source=SOURCE,
    )


def _up(number: int, unit: int) -> int:
    return -(-number // unit) * unit
