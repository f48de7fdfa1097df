"""The warm parent: imports torch once, then forks a fresh child for every job, one at a time.

It obeys the rules without which a forked child hangs or cannot use the GPU: no parallel operation ever runs here
(`torch.set_num_threads(1)` first of all), CUDA is never touched (torch asks the driver's management library instead,
`PYTORCH_NVML_BASED_CUDA_CHECK`), and no snippet's code, nor what a snippet wrote, is ever interpreted here.
"""

from __future__ import annotations

import contextlib
import ctypes
import dataclasses
import gc
import importlib
import os
import platform
import shutil
import signal
import sys
import tempfile
import traceback
from pathlib import Path
from typing import Any

from compiler.options import Options
from server.identity import WorkerIdentity
from server.sandbox import processes
from server.sandbox.code_access import open_code_to_jobs
from server.sandbox.confine import Limits, job_user
from server.worker import child
from server.worker.job import Channel, JobProcess
from server.worker.messages import DeviceFacts, Ended, Failed, Hello, Run, WorkerConfig


def main() -> int:
    """Serves jobs until the service closes our stdin."""
    channel = _take_over_standard_streams()
    processes.adopt_orphans()
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    line = channel.read_line()
    if line is None:
        return 0
    config = WorkerConfig.model_validate_json(line)
    try:
        if os.geteuid() == 0:
            open_code_to_jobs(Path(config.folder))
        explore = _warm_up(config)
        identity = _describe(config)
        layers = _try_confinement(config)
    except Exception as failure:  # noqa: BLE001 - the service must learn why its worker does not start
        channel.send(Failed(message=f"{type(failure).__name__}: {failure}"))
        traceback.print_exc()
        return 1
    channel.send(Hello(identity=identity, isolation=tuple(layers), devices=_known_devices()))
    while (message := channel.next_message()) is not None:
        # A Cancel that finds no job running came too late: that job is already over.
        if isinstance(message, Run):
            channel.send(_run(message, config, explore, channel, identity))
    return 0


def _take_over_standard_streams() -> Channel:
    """Keeps stdin and stdout for messages alone: whatever prints by accident goes to stderr."""
    incoming, outgoing = os.dup(0), os.dup(1)
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.dup2(2, 1)
    os.close(nothing)
    return Channel(incoming, outgoing)


def _warm_up(config: WorkerConfig) -> child.Explore:
    modules = list(config.imports)
    if "torch" in modules:
        torch: Any = importlib.import_module("torch")
        torch.set_num_threads(1)
    for name in modules:
        importlib.import_module(name)
    module, _, function = config.target.partition(":")
    explore: child.Explore = getattr(importlib.import_module(module), function)
    # Objects made so far live as long as we do; unless the collector forgets them, its first run in each child
    # would touch, hence copy, all of their memory.
    gc.collect()
    gc.freeze()
    return explore


def _describe(config: WorkerConfig) -> WorkerIdentity:
    torch: Any = sys.modules.get("torch")
    if torch is None:
        return WorkerIdentity(python=platform.python_version(), device_name=_processor_name())
    try:
        triton: str | None = importlib.import_module("triton").__version__
    except ImportError:
        triton = None
    has_gpu = bool(torch.cuda.is_available())
    return WorkerIdentity(
        python=platform.python_version(),
        torch=str(torch.__version__),
        triton=triton,
        device="cuda" if has_gpu else "cpu",
        device_name=_gpu_name() if has_gpu else _processor_name(),
    )


def _known_devices() -> tuple[DeviceFacts, ...]:
    """The compiler's records of devices, where the compiler is what we run."""
    known: Any = sys.modules.get("compiler.devices")
    if known is None:
        return ()
    found = []
    for device in (known.cpu_device(), *known.GPUS):
        facts = dataclasses.asdict(device)
        name, kind, target = (str(facts.pop(field)) for field in ("name", "kind", "target"))
        found.append(DeviceFacts(name=name, kind=kind, target=target, facts=facts))
    return tuple(found)


def _processor_name() -> str:
    with contextlib.suppress(OSError):
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.machine()


def _gpu_name() -> str:
    """Asks the driver's management library, because asking CUDA would initialise it here."""
    with contextlib.suppress(OSError, AttributeError):
        library = ctypes.CDLL("libnvidia-ml.so.1")
        library.nvmlInit_v2()
        handle, name = ctypes.c_void_p(), ctypes.create_string_buffer(96)
        first = os.environ.get("CUDA_VISIBLE_DEVICES", "0").split(",")[0]
        library.nvmlDeviceGetHandleByIndex_v2(int(first) if first.isdigit() else 0, ctypes.byref(handle))
        library.nvmlDeviceGetName(handle, name, len(name))
        # torch has initialised it too, and never ends it. Left so, it fails in children, whose copies of its
        # descriptors are closed; each start is counted, so it is ended until it says that it has not been started.
        for _ in range(16):
            if library.nvmlShutdown() != 0:
                break
        return name.value.decode()
    return "NVIDIA GPU"


def _try_confinement(config: WorkerConfig) -> list[str]:
    """Confines a child that does nothing, to learn which layers this machine allows."""
    read, write = os.pipe()
    folder = _make_folder(config)
    process = os.fork()
    if process == 0:
        try:
            layers = child.isolate(folder, config.cpu_limits, write, write)
            os.write(child.REPORTS, "\n".join(layers).encode())
        finally:
            os._exit(0)
    os.close(write)
    with os.fdopen(read, "rb") as file:
        text = file.read().decode(errors="replace")
    os.waitpid(process, 0)
    shutil.rmtree(folder, ignore_errors=True)
    return text.splitlines()


def _make_folder(config: WorkerConfig) -> Path:
    folder = Path(tempfile.mkdtemp(prefix="job-", dir=config.folder))
    user = job_user()
    if user != os.geteuid():
        os.chown(folder, user, user)
    return folder


def _limits(config: WorkerConfig, options: Options, identity: WorkerIdentity, wall_seconds: float) -> Limits:
    uses_gpu = identity.device == "cuda" and options.device != "cpu"
    limits = config.gpu_limits if uses_gpu else config.cpu_limits
    # Processor time is a second line behind the wall clock: a job on every core may use this much in its time.
    return limits.model_copy(update={"cpu_seconds": int(wall_seconds * max(2, config.threads)) + 1})


def _run(
    message: Run, config: WorkerConfig, explore: child.Explore, channel: Channel, identity: WorkerIdentity
) -> Ended:
    folder = _make_folder(config)
    reports_read, reports_write = os.pipe()
    output_read, output_write = os.pipe()
    process = os.fork()
    if process == 0:
        _become_child(message, config, explore, identity, folder, reports_write, output_write)
    os.close(reports_write)
    os.close(output_write)
    job = JobProcess(message.job, process, reports_read, output_read, config.output_bytes, config.report_bytes)
    try:
        return job.watch(channel, message.wall_seconds)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


#: The part of its time in which a job is to end by itself, with all that it found, before it is stopped.
_SHARE_FOR_JOB = 0.9


def _in_time(options: Options, wall_seconds: float) -> Options:
    most = _SHARE_FOR_JOB * wall_seconds
    wanted = options.max_seconds
    return options.model_copy(update={"max_seconds": most if wanted is None else min(wanted, most)})


def _become_child(
    message: Run,
    config: WorkerConfig,
    explore: child.Explore,
    identity: WorkerIdentity,
    folder: Path,
    reports: int,
    output: int,
) -> None:
    try:
        child.isolate(folder, _limits(config, message.options, identity, message.wall_seconds), reports, output)
        child.run(explore, message.source, _in_time(message.options, message.wall_seconds), config.threads)
        sys.stdout.flush()
        sys.stderr.flush()
    except BaseException:  # noqa: BLE001 - a child must never return into the parent's loop
        traceback.print_exc()
        child.leave(1)
    child.leave(0)
