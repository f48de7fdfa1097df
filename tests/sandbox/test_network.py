"""No network, no socket of others, no kernel interface that is reached through sockets."""

from __future__ import annotations

import os
import socket
import threading

import pytest

from .harness import Box, Outside
from .prelude import attempt, call, ctypes


def connect_everywhere(tcp_port: int, udp_port: int, path: str, abstract: str, **rest: object) -> None:
    import socket

    def connect(
        family: socket.AddressFamily, address: str | tuple[str, int], kind: socket.SocketKind = socket.SOCK_STREAM
    ) -> None:
        opened = socket.socket(family, kind)
        opened.settimeout(2)
        opened.connect(address)
        opened.send(b"x")

    attempt("tcp", lambda: connect(socket.AF_INET, ("127.0.0.1", tcp_port)))
    attempt("udp", lambda: connect(socket.AF_INET, ("127.0.0.1", udp_port), socket.SOCK_DGRAM))
    attempt("tcp6", lambda: connect(socket.AF_INET6, ("::1", tcp_port)))
    attempt("path", lambda: connect(socket.AF_UNIX, path))
    attempt("abstract", lambda: connect(socket.AF_UNIX, "\0" + abstract))
    attempt("outside", lambda: connect(socket.AF_INET, ("192.0.2.1", 53), socket.SOCK_DGRAM))
    attempt("listen", lambda: socket.create_server(("127.0.0.1", 0)))
    attempt("name", lambda: socket.getaddrinfo("example.org", 80))
    for name, family, kind, protocol in (
        *(("vsock", 40, 1, 0), ("netlink", 16, 3, 0), ("audit", 16, 3, 9), ("packet", 17, 3, 768)),
        *(("raw", 2, 3, 255), ("alg", 38, 5, 0), ("bluetooth", 31, 3, 0), ("can", 29, 3, 1), ("unix", 1, 1, 0)),
    ):
        attempt(name, lambda: call("socket", family, kind, protocol))
    attempt("vsock pair", lambda: call("socketpair", 40, 1, 0, ctypes.create_string_buffer(8)))


def test_nothing_is_connected(box: Box, outside: Outside) -> None:
    found = box.run(connect_everywhere, **outside.given)
    assert not outside.was_reached()
    assert not found.did
    assert len(found.refused) == 18


def speak_with_children(**rest: object) -> None:
    import socket
    import subprocess

    ours, theirs = socket.socketpair()
    attempt("pair", lambda: (theirs.send(b"x"), ours.recv(1)))
    attempt("pipe", lambda: subprocess.run(["/bin/echo", "hello"], stdout=subprocess.PIPE, check=True).stdout)
    attempt("memory", lambda: os.memfd_create("x"))


def test_a_job_speaks_with_its_own_children(box: Box) -> None:
    assert not box.run(speak_with_children).refused


def send_descriptors(**rest: object) -> None:
    import array
    import socket

    ours, _theirs = socket.socketpair()
    held = array.array("i", [0] * 253)
    attempt("send", lambda: ours.sendmsg([b"x"], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, held)]))


def test_no_descriptor_is_on_its_way(box: Box) -> None:
    """Those that are count for the user, so that enough of them would keep the zygote from sending any."""
    assert not box.run(send_descriptors).did


def wait_at_a_socket(path: str, **rest: object) -> None:
    import socket

    def of_packets() -> socket.socket:
        return socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)

    own = of_packets()
    attempt("wait", lambda: own.bind("own"), lambda: own.listen())
    attempt("connect", lambda: of_packets().connect(path))
    attempt("send", lambda: of_packets().sendto(b"x", path))
    attempt("message", lambda: of_packets().sendmsg([b"x"], [], 0, path))
    for name, family, kind in (
        *(("stream", 1, 1), ("datagram", 1, 2), ("tcp", 2, 1), ("udp", 2, 2), ("vsock", 40, 1), ("netlink", 16, 3)),
        *(("vsock packets", 40, 5), ("sctp", 2, 5)),
    ):
        attempt(name, lambda: call("socket", family, kind, 0))


@pytest.mark.parametrize("tier", ["A", "B"])
def test_a_job_that_uses_a_gpu_waits_at_a_socket_and_reaches_none(tier: str) -> None:
    """CUDA does not start without; see `syscalls`."""
    reached = threading.Event()

    def accept() -> None:
        listener.accept()
        reached.set()

    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as listener:
        path = f"/tmp/listener-{os.urandom(8).hex()}"
        listener.bind(path)
        os.chmod(path, 0o777)
        listener.listen()
        threading.Thread(target=accept, daemon=True).start()
        box = Box(tier, os.geteuid(), uses_gpu=True)
        try:
            found = box.run(wait_at_a_socket, path=path)
        finally:
            box.close()
            os.unlink(path)
        assert list(found.did) == ["wait"]
        assert len(found.refused) == 11 and not reached.is_set()
