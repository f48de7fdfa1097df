"""Files outside of a job's folder: not read, not changed, not watched."""

from __future__ import annotations

import ctypes
import os

from .harness import Box, Outside
from .prelude import attempt, call, read, write


def read_everything(file: str, folder: str, **rest: object) -> None:
    import glob

    for path in ("/etc/shadow", "/root/.bashrc", "/etc/hostname", "/proc/1/root/etc/shadow", file):
        attempt(path, lambda: read(path))
    attempt("relative", lambda: read("../" * 20 + file[1:]))
    attempt("through own root", lambda: read("/proc/self/root" + file))
    attempt("listing", lambda: os.listdir(folder))
    attempt("link", lambda: os.symlink(file, "link"), lambda: read("link"))
    attempt("hard link", lambda: os.link(file, "hard"), lambda: read("hard"))
    for path in glob.glob("/proc/[0-9]*/root" + file):
        attempt(path, lambda: read(path))
    attempt("passwd", lambda: read("/etc/passwd"))


def test_nothing_outside_is_read(box: Box, outside: Outside) -> None:
    found = box.run(read_everything, **outside.given)
    assert outside.secret not in found.output
    assert set(found.did) <= {"passwd"}
    # Tier A has a list of users of its own, with the job's alone.
    assert "root" not in found.did.get("passwd", "")
    assert len(found.refused) >= 8


def change_everything(file: str, folder: str, **rest: object) -> None:
    import json as written_over

    libraries = [os.__file__, written_over.__file__]
    for path in (folder + "/new", "/usr/new", "/new", "/var/tmp/new", "/etc/ld.so.preload", file, *libraries):
        attempt("append " + path, lambda: write(path))
    attempt("mkdir", lambda: os.mkdir(folder + "/d"))
    attempt("unlink", lambda: os.unlink(file))
    attempt("rename away", lambda: os.rename(file, folder + "/moved"))
    attempt("rename over", lambda: write("mine"), lambda: os.rename("mine", file))
    attempt("symlink", lambda: os.symlink("/", folder + "/link"))
    attempt("device", lambda: os.mknod("device", 0o60666, os.makedev(254, 0)))
    attempt("truncate", lambda: os.truncate(file, 0))
    attempt("open and truncate", lambda: os.open(file, os.O_RDONLY | os.O_TRUNC))
    attempt("write and truncate", lambda: os.open(file, os.O_WRONLY | os.O_TRUNC))


def test_nothing_outside_is_written(box: Box, outside: Outside) -> None:
    found = box.run(change_everything, **outside.given)
    assert outside.is_file_untouched()
    assert not found.did
    assert len(found.refused) == 17


def change_metadata(file: str, folder: str, **rest: object) -> None:
    attempt("close", lambda: os.chmod(file, 0))
    attempt("open", lambda: os.chmod(folder, 0o777))
    attempt("owner", lambda: os.chown(file, -1, os.getgid()))
    attempt("times", lambda: os.utime(file, (1, 1)))
    attempt("attribute", lambda: os.setxattr(file, "user.x", b"1"))
    attempt("library", lambda: os.fchmod(os.open(os.__file__, os.O_RDONLY), 0o644))
    attempt("raw", lambda: call("fchmodat", -100, file.encode(), 0))


def test_no_mode_owner_or_time_is_changed(box: Box, outside: Outside) -> None:
    found = box.run(change_metadata, **outside.given)
    assert outside.is_file_untouched()
    assert not found.did


def watch_files(file: str, folder: str, **rest: object) -> None:
    for path in (file, folder, os.path.dirname(os.__file__)):
        attempt("inotify " + path, lambda: call("inotify_add_watch", call("inotify_init1", 0), path.encode(), 0xFFF))
    attempt("fanotify", lambda: call("fanotify_init", 0, 0))
    attempt("handle", lambda: call("name_to_handle_at", -100, file.encode(), ctypes.create_string_buffer(200), 0, 0))
    import fcntl

    library = os.open(os.__file__, os.O_RDONLY)
    attempt("lease", lambda: fcntl.fcntl(library, 1024, 1))
    attempt("notify", lambda: fcntl.fcntl(os.open(os.path.dirname(os.__file__), os.O_RDONLY), 1026, 1))


def test_no_file_is_watched_or_leased(box: Box, outside: Outside) -> None:
    assert not box.run(watch_files, **outside.given).did


def use_own_folder(**rest: object) -> None:
    import subprocess
    import tempfile

    attempt("write", lambda: write("file"))
    attempt("temporary", lambda: tempfile.mkstemp())
    attempt("move", lambda: os.mkdir("a"), lambda: os.rename("file", "a/file"))
    attempt("replace", lambda: os.replace("a/file", "b"), lambda: os.unlink("b"))
    attempt("program", lambda: subprocess.run(["/bin/sh", "-c", "echo $HOME > out"], check=True))
    # What is compiled is run from here, so the folder must allow it.
    with open("/bin/true", "rb") as program, os.fdopen(os.open("true", os.O_CREAT | os.O_WRONLY, 0o700), "wb") as own:
        own.write(program.read())
    attempt("own program", lambda: subprocess.run(["./true"], check=True))
    attempt("devices", lambda: write("/dev/null") + len(read("/dev/urandom")))
    attempt("name", lambda: write("/proc/self/comm", b"renamed", "wb"))


def test_the_own_folder_can_be_used(box: Box) -> None:
    found = box.run(use_own_folder)
    assert not found.refused
