"""What the worker sees of its GPU, from a management library like NVIDIA's, and from that where there is one."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from compiler.report import Observed
from server.executors.protocol import WorkerDevice
from server.metrics import Metrics
from server.observed import observed, observed_sentences
from server.wire.messages import Ended, GpuHealth, WorkerIdentity
from server.worker.gpu import Gpu

POWER_CAP, IDLE, HOT = 0x4, 0x1, 0x40
GPU = WorkerIdentity(device="cuda", device_name="NVIDIA H200")


class NVMLError(Exception):
    def __init__(self, value: int = 3) -> None:
        super().__init__("Not Supported" if value == 3 else "GPU is lost")
        self.value = value


class Library:
    """Like pynvml, of one GPU that is as `now` says. What is not in there is not supported."""

    NVMLError = NVMLError
    NVML_ERROR_GPU_IS_LOST = 15
    NVML_TEMPERATURE_GPU, NVML_CLOCK_SM, NVML_MEMORY_ERROR_TYPE_UNCORRECTED, NVML_VOLATILE_ECC = range(4)

    def __init__(self, **now: Any) -> None:
        self.now = now

    def nvmlDeviceGetHandleByIndex(self, number: int) -> str:
        return f"GPU {number}"

    def nvmlDeviceGetHandleByUUID(self, name: str) -> str:
        return name

    def __getattr__(self, name: str) -> Any:
        def ask(handle: str, *details: int) -> Any:
            answer = self.now.get(name.removeprefix("nvmlDeviceGet"), NVMLError())
            if isinstance(answer, Exception):
                raise answer
            return answer

        return ask


def clocks(mhz: int, reasons: int, heat: int = 60) -> dict[str, int]:
    return {"ClockInfo": mhz, "MaxClockInfo": 1980, "CurrentClocksThrottleReasons": reasons, "Temperature": heat}


def test_health_has_what_this_gpu_can_tell() -> None:
    library = Library(
        MemoryInfo=SimpleNamespace(used=3, total=8), PowerUsage=412_500, UtilizationRates=SimpleNamespace(gpu=25)
    )
    assert Gpu(library).health() == GpuHealth(memory_used_bytes=3, memory_total_bytes=8, power_w=412.5, busy_share=0.25)


@pytest.mark.parametrize(("error", "said"), [(15, "the GPU is lost"), (999, "does not answer")])
def test_a_gpu_that_cannot_be_reached_is_a_problem(error: int, said: str) -> None:
    assert said in (Gpu(Library(MemoryInfo=NVMLError(error))).health().problem or "")


def test_what_slowed_a_timed_run_is_kept_and_told() -> None:
    library = Library(**clocks(1980, IDLE))
    gpu = Gpu(library)
    seen = gpu.look(None)
    assert seen is not None and seen.slowed_by == ()
    for mhz, reasons, heat in ((1200, HOT | POWER_CAP, 84), (1900, 0, 70)):
        library.now = clocks(mhz, reasons, heat)
        seen = gpu.look(seen)
    assert seen is not None
    assert (seen.looks, seen.sm_mhz_least, seen.sm_mhz_possible, seen.temperature_c_most) == (3, 1200, 1980, 84)
    ended = Ended(job="one", ending="exited", exit_code=0, gpu_while_timed=seen)
    told = observed(ended, GPU, 1, 30.0, [])
    assert told.gpu_while_timed is not None and told.gpu_while_timed.slowed_by == [
        "power cap",
        "hardware thermal slowdown",
    ]
    (sentence,) = [one for one in observed_sentences(told) if "slowed" in one]
    assert "power cap, hardware thermal slowdown" in sentence and "1200 of 1980 MHz, at up to 84 °C" in sentence
    metrics = Metrics()
    metrics.observe_end("cuda", ended)
    assert 'fusionscope_gpu_slowed_total{by="power cap"} 1.0' in metrics.text().decode()


def test_a_gpu_that_says_nothing_of_its_clocks_leaves_nothing() -> None:
    assert Gpu(Library()).look(None) is None
    assert not [one for one in observed_sentences(Observed(exit_code=0)) if "GPU" in one]


def test_a_device_has_figures_of_its_own() -> None:
    health = GpuHealth(temperature_c=61, uncorrected_errors=0)
    device = WorkerDevice("worker", GPU, 4, 4, True, None, "A", (), (), 0, health)
    metrics = Metrics()
    metrics.observe_devices([device])
    labels = '{device="cuda",device_name="NVIDIA H200",worker="worker"}'
    text = metrics.text().decode()
    assert f"fusionscope_gpu_temperature_c{labels} 61.0" in text and "fusionscope_gpu_power_w{" not in text
    metrics.observe_devices([])
    assert "fusionscope_gpu_temperature_c{" not in metrics.text().decode()


@pytest.mark.gpu
def test_the_driver_answers() -> None:
    gpu = Gpu.found()
    assert gpu is not None, "needs the package nvidia-ml-py"
    health = gpu.health()
    assert health.problem is None and health.memory_total_bytes and health.temperature_c
    seen = gpu.look(gpu.look(None))
    assert seen is not None and seen.looks == 2 and 0 < seen.sm_mhz_least <= (seen.sm_mhz_possible or 0)
