"""What a worker is told: made of the settings, the machine's profile, and the tier that works here."""

from __future__ import annotations

import os
from dataclasses import dataclass, replace
from importlib import util
from pathlib import Path

import structlog

from compiler import pages
from server.sandbox import (
    GIB,
    MIB,
    ControlGroups,
    JobLimits,
    NoSandbox,
    Sandbox,
    SandboxConfig,
    choose_tier,
    code_folders,
)
from server.settings import TRUST, WorkerSettings
from server.wire.messages import Limits, Tier, WorkerIdentity
from server.wire.profile import detected_profile
from server.worker.channel import Program

log = structlog.get_logger(__name__)

_SLOTS_ON_CPU, _SLOTS_ON_GPU = 1, 4
_SPARES_ON_CPU = 4
_FIRST_USER = 61000
_DISK_FILES = 16384


@dataclass(frozen=True)
class Allowance:
    """What one job may use."""

    wall_seconds: float
    output_bytes: int
    report_bytes: int
    limits: JobLimits


@dataclass(frozen=True)
class WorkerConfig:
    """`allowance` is the most that any job may use."""

    socket: Path
    profile: WorkerIdentity
    tier: Tier
    isolation: tuple[str, ...]
    slots: int
    spares: int
    spares_at_once: int
    threads: int
    allowance: Allowance
    sandbox: SandboxConfig
    groups: ControlGroups | None
    program: Program


def worker_config(settings: WorkerSettings, program: Program, folder: Path) -> WorkerConfig:
    """Chooses the tier. `folder` is this worker's alone. Raises `NoSandbox` where no tier works and snippets are not
    trusted."""
    profile = detected_profile()
    uses_gpu = profile.device == "cuda"
    # Jobs may run as another user: they must be able to pass through this folder, not to list it.
    folder.chmod(0o711)
    tier = chosen_tier(settings, uses_gpu, folder)
    threads = settings.threads or len(os.sched_getaffinity(0))
    slots = settings.slots or (_SLOTS_ON_GPU if uses_gpu else _SLOTS_ON_CPU)
    spares = (slots if uses_gpu else _SPARES_ON_CPU) if settings.spares is None else settings.spares
    sandbox = SandboxConfig(
        tier=tier,
        uses_gpu=uses_gpu,
        folder=folder,
        readable=(*code_folders(), *_folders_of_compiler(), *program.readable),
        first_uid=_FIRST_USER if os.geteuid() == 0 else None,
    )
    groups = _control_groups(tier, threads)
    return WorkerConfig(
        socket=settings.socket_path(),
        profile=profile,
        tier=tier,
        isolation=(*Sandbox(sandbox).layers, *(() if groups is None else (groups.layer,))),
        slots=slots,
        spares=spares,
        # To warm up takes a core for seconds; on a GPU's machine the others are idle then.
        spares_at_once=max(1, min(spares, len(os.sched_getaffinity(0)) // 2)) if uses_gpu else 1,
        threads=threads,
        allowance=_allowance(settings, uses_gpu, threads),
        sandbox=sandbox,
        groups=groups,
        program=program,
    )


def smaller(own: Allowance, wanted: Limits, threads: int) -> Allowance:
    """What a job may use: the smaller of what the worker allows and what web asks for."""
    limits = own.limits
    wall_seconds = min(own.wall_seconds, wanted.wall_seconds)
    return replace(
        own,
        wall_seconds=wall_seconds,
        output_bytes=min(own.output_bytes, wanted.output_bytes),
        report_bytes=min(own.report_bytes, wanted.report_bytes),
        limits=limits.model_copy(
            update={
                "cpu_seconds": _cpu_seconds(wall_seconds, threads),
                "memory_bytes": min(limits.memory_bytes, wanted.memory_bytes or limits.memory_bytes),
                "disk_bytes": min(limits.disk_bytes, wanted.disk_bytes or limits.disk_bytes),
            }
        ),
    )


def chosen_tier(settings: WorkerSettings, uses_gpu: bool, folder: Path | None = None) -> Tier:
    """What would confine snippets here; see `choose_tier`. Nothing but the operator's word makes it "trusted". Raises
    `NoSandbox`."""
    is_trusted = settings.trust_snippets == TRUST
    if settings.tier == "trusted" and not is_trusted:
        raise NoSandbox(f"the tier trusted confines nothing: it needs FUSIONSCOPE_TRUST_SNIPPETS={TRUST}.")
    try:
        return choose_tier(settings.tier, uses_gpu, folder)
    except NoSandbox:
        if is_trusted and settings.tier is None:
            return "trusted"
        raise


def _control_groups(tier: Tier, threads: int) -> ControlGroups | None:
    """None where this worker may make none: limits and the watch over each job do without."""
    try:
        return ControlGroups(tier == "A", threads, len(os.sched_getaffinity(0)))
    except OSError as refusal:
        log.info("no_control_groups", because=refusal.strerror or str(refusal))
        return None


def _allowance(settings: WorkerSettings, uses_gpu: bool, threads: int) -> Allowance:
    wall_seconds = settings.gpu_wall_seconds if uses_gpu else settings.wall_seconds
    return Allowance(
        wall_seconds=wall_seconds,
        output_bytes=settings.output_kib * 1024,
        report_bytes=settings.report_mib * MIB,
        limits=JobLimits(
            cpu_seconds=_cpu_seconds(wall_seconds, threads),
            memory_bytes=int((settings.gpu_memory_gib if uses_gpu else settings.memory_gib) * GIB),
            processes=settings.processes,
            open_files=settings.open_files,
            file_bytes=settings.file_mib * MIB,
            disk_bytes=settings.disk_mib * MIB,
            disk_files=_DISK_FILES,
            shared_memory_bytes=settings.shared_memory_mib * MIB,
        ),
    )


def _folders_of_compiler() -> tuple[Path, ...]:
    """Its own, found without importing torch, and that of its pages, which a checkout has elsewhere."""
    spec = util.find_spec("compiler")
    assert spec is not None
    return *(Path(name).resolve() for name in spec.submodule_search_locations or ()), pages.FOLDER.resolve()


def _cpu_seconds(wall_seconds: float, threads: int) -> int:
    """A second line behind the wall clock: a job on every core may use this much in its time."""
    return int(wall_seconds * max(2, threads)) + 1
