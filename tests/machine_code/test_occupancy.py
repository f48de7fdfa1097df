"""How many warps a multiprocessor holds: by hand, and as NVIDIA's own header computes it."""

from __future__ import annotations

import shutil
import subprocess
from itertools import product
from pathlib import Path

import pytest

from compiler.machine_code.occupancy import occupancy

#: Threads of a program, registers of a thread, bytes of shared memory; programs and warps at once, and why no more.
BY_HAND = [
    # A warp takes 64 * 32 = 2048 registers; 65536 / 2048 = 32 warps fit, which are 8 programs of 4.
    ("sm_90", 128, 64, 0, 8, 32, ["registers"]),
    # 40 KiB and 1 KiB for the system: 228 / 41 = 5 programs of 8 warps.
    ("sm_90", 256, 32, 40 * 1024, 5, 40, ["shared memory"]),
    # 24 * 32 = 768 registers: 85 warps would fit, and 2048 threads may be there, which are 64 warps; but 32 programs.
    ("sm_80", 32, 24, 0, 32, 32, ["programs"]),
    # 168 * 32 = 5376 registers: 3 warps on each quarter, 12 in all, so 1 program of 8 warps.
    ("sm_80", 256, 168, 0, 1, 8, ["registers"]),
]


@pytest.mark.parametrize(("target", "threads", "registers", "shared", "programs", "warps", "limits"), BY_HAND)
def test_it_is_what_one_computes_by_hand(
    target: str, threads: int, registers: int, shared: int, programs: int, warps: int, limits: list[str]
) -> None:
    found = occupancy(target, threads, registers, shared)
    assert found is not None
    assert (found.programs, found.warps, found.limited_by) == (programs, warps, limits)
    assert found.percent == 100 * warps / 64 and "cuda_occupancy.h" in found.source


def test_a_target_whose_limits_are_not_known_has_none() -> None:
    assert occupancy("gfx942", 256, 32, 0) is None


PROGRAM = r"""
#include <climits>
#include <cstdio>
#include <cstring>
#include "cuda_occupancy.h"
int main() {
    int major, minor, warps, threads, registers;
    long most_shared, shared;
    while (scanf("%d %d %d %ld %d %d %ld", &major, &minor, &warps, &most_shared, &threads, &registers, &shared) == 7) {
        cudaOccDeviceProp device;
        memset(&device, 0, sizeof device);
        device.computeMajor = major, device.computeMinor = minor, device.maxThreadsPerBlock = 1024;
        device.maxThreadsPerMultiprocessor = 32 * warps, device.warpSize = 32, device.numSms = 100;
        device.regsPerBlock = device.regsPerMultiprocessor = 65536, device.sharedMemPerBlock = 48 * 1024;
        device.sharedMemPerMultiprocessor = most_shared, device.reservedSharedMemPerBlock = 1024;
        device.sharedMemPerBlockOptin = most_shared - 1024;
        cudaOccFuncAttributes function;
        memset(&function, 0, sizeof function);
        function.maxThreadsPerBlock = INT_MAX, function.numRegs = registers;
        function.maxDynamicSharedSizeBytes = most_shared - 1024, function.numBlockBarriers = 1;
        function.shmemLimitConfig = FUNC_SHMEM_LIMIT_OPTIN;
        cudaOccDeviceState state;
        memset(&state, 0, sizeof state);
        state.carveoutConfig = SHAREDMEM_CARVEOUT_MAX_SHARED;
        cudaOccResult result;
        cudaOccError error =
            cudaOccMaxActiveBlocksPerMultiprocessor(&result, &device, &function, &state, threads, shared);
        printf("%d\n", error ? -1 : result.activeBlocksPerMultiprocessor);
    }
}
"""
#: Warps and bytes of shared memory of a multiprocessor.
DEVICES = {"8 0": (64, 164), "8 6": (48, 100), "8 9": (48, 100), "9 0": (64, 228), "10 0": (64, 228)}


def test_it_is_what_nvidias_header_computes(tmp_path: Path) -> None:
    import triton

    include = Path(triton.__file__).parent / "backends" / "nvidia" / "include"
    compiler = shutil.which("g++") or shutil.which("c++")
    assert compiler is not None and (include / "cuda_occupancy.h").exists()
    (tmp_path / "program.cpp").write_text(PROGRAM)
    subprocess.run([compiler, f"-I{include}", "program.cpp", "-o", "program"], cwd=tmp_path, check=True)
    cases = list(product(DEVICES, (32, 64, 128, 256, 1024), (16, 25, 40, 64, 96, 128, 168, 255), (0, 8, 5000, 48128)))
    lines = [
        f"{device} {DEVICES[device][0]} {1024 * DEVICES[device][1]} {threads} {registers} {shared}"
        for device, threads, registers, shared in cases
    ]
    told = subprocess.run([tmp_path / "program"], input="\n".join(lines), capture_output=True, text=True, check=True)
    ours = []
    for device, threads, registers, shared in cases:
        found = occupancy(f"sm_{device.replace(' ', '')}", threads, registers, shared)
        assert found is not None
        ours.append(found.programs)
    assert ours == [int(line) for line in told.stdout.split()]
