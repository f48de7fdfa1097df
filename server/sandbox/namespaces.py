"""Tier A: namespaces, below a read-only root that holds what jobs need and nothing else.

    keeper   a root is built on a tmpfs out of bind mounts, and becomes the root (`pivot_root`). Then new namespaces:
             user, mounts, processes, network, System V, host name, control groups. Root becomes another user before.
      first    process 1 of them, which only waits: see `_leave_first_number`
      zygote   process 2, with a /proc of its own
        guard    namespaces once more, for the job alone; /job and /dev/shm are new tmpfs of the job's size, /proc is
                 the job's own. Last comes a user namespace: nobody in the job owns any mount.
          job      no capabilities, Landlock, seccomp

The order is forced. A fresh /proc must be mounted before the inner user namespace, which does not own the process
namespace; and it is refused where the container covers parts of /proc, in which case tier A does not work. The
snippet is never process 1 of its namespace: such a process ignores the signals that it raises itself, so that an
abort would look like something else.
"""

from __future__ import annotations

import os
import signal
import socket
from pathlib import Path

from server.sandbox import allowance, kernel, landlock, processes, syscalls
from server.sandbox.config import FIRST_JOB_USER, SandboxConfig
from server.sandbox.descriptors import keep_only
from server.sandbox.isolation import Place, apply_limits, give_up_privileges, is_on, load_filters
from server.sandbox.limits import MIB, JobLimits

JOB_FOLDER = Path("/job")
_SHARED_MEMORY = Path("/dev/shm")
_USER_INSIDE = 1000
_IMPORT_BYTES = 64 * MIB

_OF_ZYGOTE = (
    kernel.CLONE_NEWUSER
    | kernel.CLONE_NEWNS
    | kernel.CLONE_NEWPID
    | kernel.CLONE_NEWNET
    | kernel.CLONE_NEWIPC
    | kernel.CLONE_NEWUTS
    | kernel.CLONE_NEWCGROUP
)
_OF_JOB = kernel.CLONE_NEWNS | kernel.CLONE_NEWNET | kernel.CLONE_NEWIPC | kernel.CLONE_NEWUTS | kernel.CLONE_NEWCGROUP
_CLOSED = kernel.MS_NOSUID | kernel.MS_NODEV


class Namespaces:
    layers: tuple[str, ...] = (
        "own user, process, mount, network, IPC, host name and cgroup namespaces",
        "read-only root with system folders and the interpreter",
        "job folder and /dev/shm in memory, of limited size",
        "Landlock",
        "seccomp",
        "no capabilities",
        "no new privileges",
        "resource limits",
    )

    def __init__(self, config: SandboxConfig) -> None:
        self._config = config
        needed = config.uses_gpu
        self._programs = syscalls.programs(syscalls.Rules(allows_memory_placement=needed, allows_listening=needed))
        self._own_processes = -1

    def enter(self) -> None:
        user, group = os.geteuid(), os.getegid()
        if user == 0:
            # Root's own right to mount: so folders that are closed to others can be shown, each by itself.
            user = group = self._config.first_uid or FIRST_JOB_USER
            kernel.unshare(kernel.CLONE_NEWNS)
            _build_root(self._config)
            os.setgroups([])
            os.setresgid(group, group, group)
            os.setresuid(user, user, user)
            _unshare_with_user(_OF_ZYGOTE, user, group)
        else:
            _unshare_with_user(_OF_ZYGOTE, user, group)
            _build_root(self._config)

    def settle(self) -> Path:
        _leave_first_number()
        kernel.mount(Path("proc"), Path("/proc"), _CLOSED | kernel.MS_NOEXEC, kind="proc")
        socket.sethostname("sandbox")
        _mount_memory(JOB_FOLDER, _IMPORT_BYTES, 8192)
        _mount_memory(_SHARED_MEMORY, _IMPORT_BYTES, 8192)
        self._own_processes = os.open("/proc/self/ns/pid", os.O_RDONLY | os.O_CLOEXEC)
        os.chdir(JOB_FOLDER)
        return JOB_FOLDER

    def make_place(self) -> Place:
        return Place(JOB_FOLDER)

    def fork(self) -> int:
        # The namespace is for the next child alone; this process itself stays in its own.
        kernel.unshare(kernel.CLONE_NEWPID)
        process = os.fork()
        if process != 0:
            kernel.setns(self._own_processes, kernel.CLONE_NEWPID)
        return process

    def surround(self, place: Place, limits: JobLimits) -> None:
        os.close(self._own_processes)
        kernel.unshare(_OF_JOB)
        kernel.mount(None, Path("/"), kernel.MS_REC | kernel.MS_PRIVATE)
        _mount_memory(JOB_FOLDER, limits.disk_bytes, limits.disk_files)
        _mount_memory(_SHARED_MEMORY, limits.shared_memory_bytes, limits.disk_files)
        kernel.mount(Path("proc"), Path("/proc"), _CLOSED | kernel.MS_NOEXEC, kind="proc")
        _unshare_with_user(kernel.CLONE_NEWUSER, _USER_INSIDE, _USER_INSIDE)

    def confine(self, place: Place, limits: JobLimits) -> None:
        # The kernel counts the processes of a user namespace by themselves.
        apply_limits(limits, is_counted_alone=True)
        give_up_privileges()
        if is_on("landlock"):
            landlock.confine(
                read=(Path("/"),),
                write=(JOB_FOLDER, _SHARED_MEMORY),
                devices=allowance.devices(self._config.uses_gpu),
                own=(Path("/proc"),),
            )
        load_filters(self._programs)

    def clean(self, place: Place) -> None:
        """Nothing outlasts the namespaces."""


def _leave_first_number() -> None:
    """Returns in a child of this process, which is process 1 and ends with that child, and all others with it.

    A guard is process 1 of its own namespace. Were the zygote process 1 too, libraries that know a copy of a process by
    its number would not see that the guard is one: filelock then forbids it to fork, from Python 3.12 on.
    """
    zygote = os.fork()
    if zygote == 0:
        processes.die_with_parent(os.getppid(), signal.SIGKILL)
        return
    keep_only({2: 2})
    while True:
        process, status = os.waitpid(-1, 0)
        if process == zygote:
            os._exit(os.WEXITSTATUS(status) if os.WIFEXITED(status) else 128 + os.WTERMSIG(status))


def _unshare_with_user(flags: int, user: int, group: int) -> None:
    """Moves to a new user namespace, and others of `flags`, in which `user` is the one that there is."""
    # What belongs to a process that is not dumpable belongs to root: its maps could not be written.
    kernel.prctl(kernel.PR_SET_DUMPABLE, 1)
    kernel.unshare(flags | kernel.CLONE_NEWUSER)
    Path("/proc/self/setgroups").write_text("deny")
    Path("/proc/self/uid_map").write_text(f"{_USER_INSIDE} {user} 1")
    Path("/proc/self/gid_map").write_text(f"{_USER_INSIDE} {group} 1")


def _mount_memory(folder: Path, size: int, files: int) -> None:
    # Compiled kernels are loaded from the job's folder, so programs may be run from it.
    options = f"size={size},nr_inodes={files},mode=700"
    kernel.mount(Path("tmpfs"), folder, _CLOSED, kind="tmpfs", data=options)


def _build_root(config: SandboxConfig) -> None:
    """Makes a new root, moves to it, and lets go of the old one."""
    kernel.mount(None, Path("/"), kernel.MS_REC | kernel.MS_PRIVATE)
    root = config.folder
    kernel.mount(Path("tmpfs"), root, _CLOSED, kind="tmpfs", data="size=8m,nr_inodes=8192,mode=755")
    for name in ("proc", "sys", "dev", "dev/shm", "etc", "job"):
        (root / name).mkdir(mode=0o755)
    # The old /proc stays below the new one: without a whole one in sight the kernel refuses to mount another.
    kernel.mount(Path("/proc"), root / "proc", kernel.MS_BIND | kernel.MS_REC)
    for path in allowance.readable(config):
        _show(path, root, kernel.MS_RDONLY | _CLOSED)
    for path in allowance.devices(config.uses_gpu):
        _show(path, root, kernel.MS_NOSUID)
    _write_small_files(root)
    _remount(root, kernel.MS_RDONLY | _CLOSED)
    os.chdir(root)
    kernel.pivot_root(".", ".")
    kernel.umount(Path("."), kernel.MNT_DETACH)
    os.chdir("/")


def _write_small_files(root: Path) -> None:
    name = f"sandbox:x:{_USER_INSIDE}:"
    (root / "etc/passwd").write_text(f"{name}{_USER_INSIDE}::{JOB_FOLDER}:/bin/false\n")
    (root / "etc/group").write_text(f"{name}\n")
    (root / "etc/hosts").write_text("127.0.0.1 localhost\n")
    if not (root / "tmp").exists():
        # What insists on /tmp finds the job's folder there.
        (root / "tmp").symlink_to(JOB_FOLDER)
    for link, target in (("fd", "/proc/self/fd"), ("stdin", "fd/0"), ("stdout", "fd/1"), ("stderr", "fd/2")):
        (root / "dev" / link).symlink_to(target)


def _show(path: Path, root: Path, flags: int) -> None:
    """Makes `path` appear below `root`, with all that is mounted in it."""
    place = root / path.relative_to("/")
    if place.is_relative_to(root / "proc") or os.path.lexists(place):
        return
    place.parent.mkdir(parents=True, exist_ok=True)
    if path.is_symlink():
        place.symlink_to(os.readlink(path))
        return
    if path.is_dir():
        place.mkdir()
    else:
        place.touch()
    kernel.mount(path, place, kernel.MS_BIND | kernel.MS_REC)
    for mounted in _mounts_below(place):
        _remount(mounted, flags)


def _mounts_below(place: Path) -> list[Path]:
    """The mount points at and below `place`; each has flags of its own."""
    found = []
    for line in Path("/proc/self/mountinfo").read_text().splitlines():
        # Blanks in names are written in octal.
        name = line.split(" ")[4].encode().decode("unicode_escape")
        if (path := Path(name)).is_relative_to(place):
            found.append(path)
    return found


def _remount(place: Path, flags: int) -> None:
    """Adds `flags` to those of a mount. What it already has must be repeated: a user namespace may not take it away."""
    present = os.statvfs(place).f_flag
    kept = {
        os.ST_NOSUID: kernel.MS_NOSUID,
        os.ST_NODEV: kernel.MS_NODEV,
        os.ST_NOEXEC: kernel.MS_NOEXEC,
        os.ST_RDONLY: kernel.MS_RDONLY,
        os.ST_NOATIME: kernel.MS_NOATIME,
        os.ST_NODIRATIME: kernel.MS_NODIRATIME,
        os.ST_RELATIME: kernel.MS_RELATIME,
    }
    flags |= sum(flag for found, flag in kept.items() if present & found)
    kernel.mount(None, place, kernel.MS_BIND | kernel.MS_REMOUNT | flags)
