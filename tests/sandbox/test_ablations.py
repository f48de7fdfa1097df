"""The attacks see what they are meant to see: with a layer taken away they escape, by the same evidence."""

from __future__ import annotations

import os
import platform
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from .harness import PLAIN_USER, Box, Outside
from .test_files import change_everything, change_metadata, read_everything, watch_files
from .test_kernel_surface import call_as_i386, call_the_kernel, enter_namespaces
from .test_network import connect_everywhere
from .test_processes import signal_others

USER = PLAIN_USER if os.geteuid() == 0 else os.geteuid()


@pytest.fixture(scope="module")
def outside_all() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="outside-") as name:
        yield Path(name)


@pytest.fixture
def outside() -> Iterator[Outside]:
    with tempfile.TemporaryDirectory(prefix="outside-") as name:
        witnesses = Outside(Path(name), USER)
        yield witnesses
        witnesses.close()


@pytest.fixture(scope="module")
def without_landlock() -> Iterator[Box]:
    box = Box("B", USER, ("landlock",))
    yield box
    box.close()


@pytest.fixture(scope="module")
def without_seccomp() -> Iterator[Box]:
    box = Box("B", USER, ("seccomp",))
    yield box
    box.close()


@pytest.fixture(scope="module")
def namespaces_without_seccomp() -> Iterator[Box]:
    box = Box("A", USER, ("seccomp",))
    yield box
    box.close()


def test_reads_escape_without_landlock(without_landlock: Box, outside: Outside) -> None:
    found = without_landlock.run(read_everything, **outside.given)
    assert outside.secret in found.output


def test_writes_escape_without_landlock(without_landlock: Box, outside: Outside) -> None:
    without_landlock.run(change_everything, **outside.given)
    assert not outside.is_file_untouched()


def test_signals_escape_without_landlock(without_landlock: Box, outside: Outside) -> None:
    without_landlock.run(signal_others, targets=[outside.decoy.pid])
    assert not outside.is_decoy_untouched()


def test_modes_escape_without_seccomp(without_seccomp: Box, outside: Outside) -> None:
    without_seccomp.run(change_metadata, **outside.given)
    assert not outside.is_file_untouched()


def test_watching_escapes_without_seccomp(without_seccomp: Box, outside: Outside) -> None:
    assert without_seccomp.run(watch_files, **outside.given).did


def test_limits_of_others_escape_without_seccomp(without_seccomp: Box, outside: Outside) -> None:
    without_seccomp.run(signal_others, targets=[outside.decoy.pid])
    assert not outside.is_decoy_untouched()


def test_the_network_is_reached_without_seccomp(without_seccomp: Box, outside: Outside) -> None:
    without_seccomp.run(connect_everywhere, **outside.given)
    assert outside.was_reached()


def test_sockets_of_the_kernel_are_reached_without_seccomp(namespaces_without_seccomp: Box, outside: Outside) -> None:
    found = namespaces_without_seccomp.run(connect_everywhere, **outside.given)
    assert "netlink" in found.did
    assert not outside.was_reached()


def test_the_kernel_surface_is_reached_without_seccomp(namespaces_without_seccomp: Box, outside: Outside) -> None:
    found = namespaces_without_seccomp.run(call_the_kernel)
    assert {"add_key", "shared memory", "personality"} <= set(found.did)
    assert "unshare user" in namespaces_without_seccomp.run(enter_namespaces, **outside.given).did


@pytest.mark.skipif(platform.machine() != "x86_64", reason="this interface is x86-64's")
def test_another_binary_interface_is_reached_without_seccomp(namespaces_without_seccomp: Box) -> None:
    assert "answered" in namespaces_without_seccomp.run(call_as_i386).output


@pytest.mark.parametrize("version", [1, 4])
def test_older_landlock_is_made_up_for_by_seccomp(outside: Outside, version: int) -> None:
    """Before version 3 it does not cover truncation, before 6 no signals."""
    box = Box("B", USER, landlock=version)
    try:
        assert outside.secret not in box.run(read_everything, **outside.given).output
        assert not box.run(change_everything, **outside.given).did
        assert not [name for name in box.run(signal_others, targets=[outside.decoy.pid]).did if name != "nice user"]
        assert outside.is_file_untouched() and outside.is_decoy_untouched()
    finally:
        box.close()
