"""Build the images and run the service from `docker-compose.yml`, on a machine that can pull no image.

    sudo python tools/images.py [--wheels FOLDER] [--port PORT] [--without tier-a,postgres]

What a registry of images would give is made here: a base with Python by debootstrap, under the name of the real one.
A Docker daemon of this script's own builds and runs everything in a temporary folder, so the images, containers and
networks of the machine are not touched. Then a snippet is explored over HTTP: in tier B with Docker's own settings, in
tier A with those of `deploy/tier-a.yml`, and after web has started again. Whatever happens, all of it is removed.

It needs root, about 12 GB of disk, and of Debian: debootstrap, docker.io, docker-compose. The differences to a real
deployment: the base is Debian's Python in the place of Docker's official image; the daemon makes no firewall rules, so
containers reach nothing outside; and no GPU.
"""

from __future__ import annotations

import argparse
import contextlib
import functools
import http.server
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
BASE = "python:3.11-slim"
SUITE = "bookworm"
PACKAGES = "python3,python3-dev,python3-pip,python3-venv,ca-certificates"
CERTIFICATES = Path("/etc/ssl/certs/ca-certificates.crt")
PROGRAMS = ("debootstrap", "dockerd", "docker", "docker-compose")
PROJECT = "fusionscope-images"
SNIPPET = "server/examples/1_pointwise_chain.py"
START_SECONDS = 180.0
EXPLORE_SECONDS = 60


class Failed(Exception):
    """Something did not work; the message says what."""


def run(*command: str, **variables: str) -> str:
    """Runs a program of ours, shows what it says where it fails, and returns what it printed."""
    done = subprocess.run(
        command, cwd=ROOT, env=os.environ | variables, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )
    if done.returncode != 0:
        raise Failed(f"{' '.join(command)} ended with {done.returncode}:\n{done.stdout[-4000:]}")
    return done.stdout


@contextlib.contextmanager
def daemon(folder: Path) -> Iterator[None]:
    """A Docker daemon of our own; within, the programs docker and docker-compose speak to it."""
    address = f"unix://{folder}/docker.sock"
    places = ["--data-root", f"{folder}/data", "--exec-root", f"{folder}/exec", "--pidfile", f"{folder}/pid"]
    rules = ["--iptables=false", "--ip6tables=false", "--ip-forward=false", "--ip-masq=false"]
    with open(folder / "daemon.log", "wb") as log:
        process = subprocess.Popen(
            ["dockerd", "--host", address, *places, *rules], stdout=log, stderr=log, start_new_session=True
        )
    os.environ["DOCKER_HOST"] = address
    try:
        wait_until(lambda: process.poll() is None and (folder / "docker.sock").exists(), "the Docker daemon")
        yield
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait(timeout=60)


def make_base(folder: Path) -> None:
    """A Debian with Python, imported under the name of the official image."""
    run("debootstrap", "--variant=minbase", f"--include={PACKAGES}", SUITE, str(folder))
    (folder / "usr/local/bin/python").symlink_to("/usr/bin/python3")
    for marker in (folder / "usr/lib").glob("python3*/EXTERNALLY-MANAGED"):
        marker.unlink()
    shutil.rmtree(folder / "var/cache/apt/archives")
    # Certificates of this machine's own: whoever stands between it and the registries has one.
    shutil.copy(CERTIFICATES, folder / "etc/ssl/certs/ca-certificates.crt")
    archive = folder.with_suffix(".tar")
    run("tar", "-C", str(folder), "-cf", str(archive), ".")
    run("docker", "import", "--change", 'CMD ["python3"]', str(archive), BASE)
    archive.unlink()


@contextlib.contextmanager
def torch_index(wheels: Path) -> Iterator[str]:
    """An index of packages with the builds of torch in `wheels`, on this machine alone; its address."""
    folder = wheels.parent / "index" / "torch"
    folder.mkdir(parents=True)
    for wheel in wheels.glob("torch-*.whl"):
        (folder / wheel.name).symlink_to(wheel.resolve())
    handler = functools.partial(QuietHandler, directory=str(folder.parent))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}/"
        server.shutdown()


class QuietHandler(http.server.SimpleHTTPRequestHandler):
    def log_message(self, format: str, *arguments: Any) -> None:
        """Says nothing."""


def download_torch(folder: Path) -> None:
    """The build of torch for CPUs, by this machine's own pip and whatever index that knows."""
    (torch,) = (line for line in (ROOT / "requirements.lock").read_text().splitlines() if line.startswith("torch=="))
    folder.mkdir()
    run(sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--dest", str(folder), f"{torch}+cpu")


def build(index: str) -> None:
    arguments = {"TORCH_BUILD": "cpu", "TORCH_INDEX": index}
    # pip in the base trusts Debian's certificates by itself; Node has to be told.
    arguments |= {"PIP_CERT": str(CERTIFICATES), "NODE_EXTRA_CA_CERTS": str(CERTIFICATES)}
    options = [option for name, value in arguments.items() for option in ("--build-arg", f"{name}={value}")]
    for target, tag in (("web", "fusionscope-web"), ("worker", "fusionscope-worker:cpu")):
        started = time.monotonic()
        command = ["docker", "build", "--network", "host", "--target", target, "--tag", tag, *options, "."]
        run(*command, DOCKER_BUILDKIT="1")
        size = int(run("docker", "image", "inspect", "--format", "{{.Size}}", tag))
        print(f"built {tag}: {size / 1e6:.0f} MB in {time.monotonic() - started:.0f} s", flush=True)


class Stack:
    """The services of the compose file, as they run here."""

    def __init__(self, port: int, *files: str) -> None:
        self._address = f"http://127.0.0.1:{port}"
        self._variables = {"PORT": str(port), "POSTGRES_PASSWORD": "only-for-this-run"}
        named = [option for name in ("docker-compose.yml", *files) for option in ("--file", name)]
        self._compose = ["docker-compose", "--project-name", PROJECT, *named]

    def compose(self, *arguments: str) -> str:
        return run(*self._compose, *arguments, **self._variables)

    def read(self, path: str, body: dict[str, Any] | None = None, timeout: float = 10.0) -> bytes:
        """What the service answers; raises `OSError` for anything but success."""
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(self._address + path, data, {"Content-Type": "application/json"})
        with urllib.request.urlopen(request, timeout=timeout) as answer:
            found: bytes = answer.read()
            return found

    def is_ready(self) -> bool:
        try:
            return bool(self.read("/readyz"))
        except OSError:
            return False

    def tier(self) -> str:
        (worker,) = json.loads(self.read("/healthz"))["workers"]
        return str(worker["tier"])

    def explore(self, source: str) -> dict[str, Any]:
        """The report of a snippet that is pasted; raises `Failed` where it did not work."""
        path = f"/api/v1/explorations?wait={EXPLORE_SECONDS}"
        report: dict[str, Any] = json.loads(self.read(path, {"source": source}, EXPLORE_SECONDS + 10.0))
        if report["status"] != "complete":
            raise Failed(f"The exploration ended as {report['status']}: {report.get('error')}")
        return report


def wait_until(is_so: Any, what: str) -> None:
    end = time.monotonic() + START_SECONDS
    while not is_so():
        if time.monotonic() > end:
            raise Failed(f"{what} was not there within {START_SECONDS:.0f} seconds.")
        time.sleep(0.5)
