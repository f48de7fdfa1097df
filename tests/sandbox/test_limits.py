"""What a job may use is bounded: all of its processes together, and whatever kind of memory they take."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from server.sandbox import MIB

from .harness import LIMITS, ROOT, Box
from .prelude import FOLDER, LIBC, attempt, write

TOO_MUCH = 400
"""MiB, where 192 are allowed. Attacks take it in steps, so that a watch can see them coming."""


def take_private(megabytes: int, **rest: object) -> None:
    held = []
    for _ in range(megabytes // 10):
        held.append(bytearray(b"x") * (10 << 20))
        os.write(1, b"#")


def test_private_memory_of_one_process(box: Box) -> None:
    found = box.run(take_private, megabytes=TOO_MUCH)
    assert found.output.count("#") < 20
    assert found.ending == "memory_limit" or found.exit_code != 0


HELD_ALREADY = """
from server.sandbox.limits import JobLimits, apply
held = bytearray(400 << 20)
apply(JobLimits(
    cpu_seconds=60, memory_bytes=200 << 20, processes=9999, open_files=64, file_bytes=1 << 20, disk_bytes=1 << 20,
    disk_files=9, shared_memory_bytes=1 << 20,
))
taken = bytearray(100 << 20)
try:
    bytearray(150 << 20)
except MemoryError:
    print("refused")
"""


def test_what_a_process_had_before_is_not_counted() -> None:
    """Libraries built for CUDA map 0.6 GiB for writing before a job has asked for anything."""
    done = subprocess.run([sys.executable, "-c", HELD_ALREADY], cwd=ROOT, capture_output=True, text=True)
    assert (done.stdout, done.stderr) == ("refused\n", "")


def take_private_by_three(megabytes: int, **rest: object) -> None:
    import time

    def take(share: int) -> None:
        held = []
        for _ in range(share // 10):
            held.append(bytearray(b"x") * (10 << 20))
            time.sleep(0.05)
        os.write(1, b"whole")
        time.sleep(60)

    for _ in range(3):
        if os.fork() == 0:
            take(megabytes // 3)
            os._exit(0)
    time.sleep(60)


def take_shared_mappings(megabytes: int, **rest: object) -> None:
    import mmap
    import time

    held = []
    for _ in range(megabytes // 10):
        memory = mmap.mmap(-1, 10 << 20)
        for place in range(0, 10 << 20, 4096):
            memory[place] = 1
        held.append(memory)
        time.sleep(0.02)
    os.write(1, b"whole")
    time.sleep(60)


def take_shared_by_three(megabytes: int, **rest: object) -> None:
    import mmap
    import time

    parts = [mmap.mmap(-1, 10 << 20) for _ in range(megabytes // 10)]
    for number in range(3):
        if os.fork() == 0:
            for memory in parts[number::3]:
                for place in range(0, 10 << 20, 4096):
                    memory[place] = 1
                time.sleep(0.02)
            os._exit(0)
    for _ in range(3):
        os.wait()
    os.write(1, b"whole")
    time.sleep(60)


def take_memfd(megabytes: int, **rest: object) -> None:
    import time

    held = []
    for _ in range(megabytes // 10):
        held.append(os.memfd_create("x"))
        for _ in range(10):
            os.write(held[-1], b"x" * (1 << 20))
        time.sleep(0.02)
    os.write(1, b"whole")
    time.sleep(60)


def take_closed_memfd(megabytes: int, **rest: object) -> None:
    import mmap
    import time

    held = []
    for _ in range(megabytes // 10):
        descriptor = os.memfd_create("x")
        for _ in range(10):
            os.write(descriptor, b"x" * (1 << 20))
        held.append(mmap.mmap(descriptor, 10 << 20))
        os.close(descriptor)
        time.sleep(0.02)
    os.write(1, b"whole")
    time.sleep(60)


@pytest.mark.parametrize(
    "attack",
    [take_private_by_three, take_shared_mappings, take_shared_by_three, take_memfd, take_closed_memfd],
)
def test_memory_of_every_kind_and_of_all_processes(box: Box, attack: Callable[..., None]) -> None:
    limits = LIMITS.model_copy(update={"memory_bytes": 192 * MIB, "open_files": 256})
    found = box.run(attack, limits, megabytes=TOO_MUCH)
    assert found.ending == "memory_limit"
    assert found.peak is not None and found.peak["memory_bytes"] > 192 * MIB


def take_memfd_in_a_program_that_nobody_may_read(megabytes: int, **rest: object) -> None:
    # The kernel closes the entries in /proc of such a process to all but root.
    import sys

    program = os.open("program", os.O_CREAT | os.O_WRONLY, 0o111)
    with open(os.path.realpath(sys.executable), "rb") as original:
        os.write(program, original.read())
    os.close(program)
    code = (
        "import os, time\n"
        "held = []\n"
        f"for _ in range({megabytes} // 10):\n"
        "    held.append(os.memfd_create('x'))\n"
        "    for _ in range(10): os.write(held[-1], b'x' * (1 << 20))\n"
        "    time.sleep(0.02)\n"
        "os.write(1, b'whole')\n"
        "time.sleep(60)\n"
    )
    os.execve("program", ["program", "-S", "-c", code], {"PYTHONHOME": sys.base_prefix})


def test_memory_that_cannot_be_counted_ends_the_job(box: Box) -> None:
    limits = LIMITS.model_copy(update={"memory_bytes": 192 * MIB, "open_files": 256})
    found = box.run(take_memfd_in_a_program_that_nobody_may_read, limits, megabytes=TOO_MUCH)
    assert found.ending == "memory_limit", found.output


def share_pages(**rest: object) -> None:
    import time

    held = bytearray(b"x") * (100 << 20)
    for _ in range(4):
        if os.fork() == 0:
            time.sleep(2)  # long enough to be seen, also where the worker waits for a processor
            os._exit(held[5] & 0)
    for _ in range(4):
        os.wait()
    os.write(1, b"done")


def test_pages_that_processes_share_are_counted_once(box: Box) -> None:
    found = box.run(share_pages)
    assert (found.output, found.ending) == ("done", "exited")
    # The cheap bound is far above the limit, and is not believed.
    assert found.peak is not None and found.peak["memory_bytes"] > 400 * MIB


def fill_disk(**rest: object) -> None:
    import time

    def fill(folder: str) -> None:
        for number in range(40):
            with open(f"{folder}/{number}", "wb") as file:
                for _ in range(8):
                    file.write(b"x" * (1 << 20))
            time.sleep(0.02)
        time.sleep(60)  # who watches the disk may be late

    for folder in ("/dev/shm", "/tmp", "."):
        attempt(folder, lambda: fill(folder))


def test_the_disk_is_not_filled(box: Box) -> None:
    before = os.statvfs("/dev/shm").f_bfree
    found = box.run(fill_disk)
    assert not found.did
    if box.tier == "A":
        assert "No space left" in found.refused["."] and "No space left" in found.refused["/dev/shm"]
    else:
        assert found.ending in ("disk_limit", "memory_limit")
    assert before - os.statvfs("/dev/shm").f_bfree < 1000


def make_files(nested: bool, **rest: object) -> None:
    made = 0
    try:
        while made < 20000:
            if nested:
                os.mkdir("d")
                os.chdir("d")
            write(str(made), b"")
            made += 1
    except OSError as failure:
        os.write(1, str(failure).encode())
        os._exit(0)
    import time

    time.sleep(60)


@pytest.mark.parametrize("nested", [False, True])
def test_files_without_number(box: Box, nested: bool) -> None:
    found = box.run(make_files, nested=nested)
    if box.tier == "A":
        assert "No space left" in found.output
    else:
        assert found.ending == "disk_limit"
    assert box.tier == "A" or not [path for path in box.folder.iterdir() if path.name != "job-import"][1:]


def hold_deleted_files(**rest: object) -> None:
    import time

    for number in range(20):
        descriptor = os.open(str(number), os.O_CREAT | os.O_WRONLY, 0o600)
        os.unlink(str(number))
        for _ in range(10):
            os.write(descriptor, b"x" * (1 << 20))
        time.sleep(0.02)
    os.write(1, b"whole")
    time.sleep(60)


def test_deleted_files_count(box: Box) -> None:
    found = box.run(hold_deleted_files)
    assert "No space left" in found.output if box.tier == "A" else found.ending == "disk_limit"


def hide_folder(**rest: object) -> None:
    import time

    os.mkdir("hidden", 0o300)
    for number in range(20):
        with open(f"hidden/{number}", "wb") as file:
            for _ in range(10):
                file.write(b"x" * (1 << 20))
        time.sleep(0.02)
    os.write(1, b"whole")
    time.sleep(60)


def test_folders_that_cannot_be_listed_count(box: Box) -> None:
    found = box.run(hide_folder)
    assert "No space left" in found.output if box.tier == "A" else found.ending == "disk_limit"


def compute(how: str, **rest: object) -> None:
    import re
    import signal

    signal.signal(signal.SIGXCPU, signal.SIG_IGN)
    if how == "expression":
        re.match(r"(a+)+$", "a" * 64 + "b")
    while True:
        pass


def test_processor_time_is_bounded_whatever_is_caught(box: Box) -> None:
    limits = LIMITS.model_copy(update={"cpu_seconds": 1})
    found = box.run(compute, limits, how="loop")
    assert (found.signal, found.ending) == (9, "exited")


def test_an_endless_computation_ends_at_its_time(box: Box) -> None:
    jobs = [box.start(compute, wall=0.5, how=how) for how in ("loop", "expression")]
    assert [box.result(job).ending for job in jobs] == ["time_limit", "time_limit"]


def flood(**rest: object) -> None:
    while True:
        os.write(1, b"y" * 65536)


def test_a_flood_of_output_ends_the_job(box: Box) -> None:
    assert box.run(flood).ending == "output_limit"


def open_many(**rest: object) -> None:
    opened = 0
    try:
        while True:
            os.dup(1)
            opened += 1
    except OSError:
        os.write(1, f"{opened}".encode())


def test_descriptors_are_bounded_and_none_is_inherited(box: Box) -> None:
    found = box.run(open_many)
    assert int(found.output) == LIMITS.open_files - 3


def write_large(**rest: object) -> None:
    import signal

    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    attempt("large", lambda: os.truncate(os.open("large", os.O_CREAT | os.O_RDWR, 0o600), 100 << 20))
    attempt("raise", lambda: __import__("resource").setrlimit(__import__("resource").RLIMIT_FSIZE, (-1, -1)))


def test_files_are_bounded_and_no_limit_is_raised(box: Box) -> None:
    assert not box.run(write_large).did


def leave_everything(name: str, **rest: object) -> None:
    os.mkdir("closed")
    write("closed/file", b"x" * 1000)
    for _ in range(40):
        os.mkdir("deep")
        os.chdir("deep")
    os.chdir(FOLDER)
    os.symlink("/etc", "link")
    os.mkfifo("fifo")
    attempt("shared", lambda: write(f"/dev/shm/{name}", b"x" * 1000))
    attempt("shared folder", lambda: os.mkdir(f"/dev/shm/{name}-folder"), lambda: write(f"/dev/shm/{name}-folder/x"))
    for path in ("closed", f"/dev/shm/{name}-folder"):
        LIBC.chmod(path.encode(), 0)
    os.mkdir("never open", 0)


def test_no_file_is_left(box: Box) -> None:
    name = f"left-{os.urandom(4).hex()}"
    found = box.run(leave_everything, name=name)
    assert found.exit_code == 0, found.output
    assert not [path for path in Path("/dev/shm").iterdir() if name in path.name]
    if box.tier == "B":
        left = {path.name for path in box.folder.iterdir()} - {"job-import"}
        # The sibling's, which has not ended.
        assert len(left) == 1


def test_many_processes_are_watched_together(box: Box) -> None:
    found = box.run("import os, time\nfor _ in range(40):\n    os.fork() or time.sleep(60)\ntime.sleep(60)", wall=6.0)
    assert found.ending == "time_limit"
    assert found.peak is not None and found.peak["processes"] > 30
