"""Build the images and run the service from `docker-compose.yml`, on a machine that can pull no image.

    python tools/images.py [--port PORT] [--cuda]

What a registry of images would give is made here: a base with Python by debootstrap, under the name of the real one.
A Docker daemon of this script's own builds and runs everything in a temporary folder, so the images, containers and
networks of the machine are not touched. Then a snippet is explored over HTTP: in tier B with Docker's own settings, in
tier A with those of `deploy/tier-a.yml`, with a user for each job, and with PostgreSQL, whose server is killed.
Containers are looked at from inside, those of web and the worker are ended in the middle of a job, and both images are
replaced by those of another build. With `--cuda` the worker's image with torch for CUDA is built too, and explores the
snippet on the CPU. Whatever happens, all of it is removed.

It needs root, about 10 GB of disk (25 with `--cuda`) and a quarter to half an hour, and of Debian: debootstrap,
docker.io, and docker-compose 2.24 or newer, which Debian 13 has.

What differs from a real deployment: the bases are Debian's Python and PostgreSQL in the place of the official images;
the daemon makes no firewall rules, so containers reach nothing outside; and there is no GPU.
"""

from __future__ import annotations

import argparse
import contextlib
import functools
import http.client
import http.server
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
BASE = "python:3.11-slim"
SUITE = "bookworm"
PACKAGES = "python3,python3-dev,python3-pip,python3-venv,ca-certificates"
CERTIFICATES = Path("/etc/ssl/certs/ca-certificates.crt")
DOCKER = "/usr/bin/docker"
"""Debian's, which can build by itself: a newer one may lie on the PATH without its plugin for that."""
COMPOSE = "docker-compose"
PROGRAMS = ("debootstrap", "dockerd", DOCKER, COMPOSE)
PROJECT = "fusionscope-images"
SNIPPET = ROOT / "server" / "examples" / "1_pointwise_chain.py"
POSTGRES = f"""
FROM {BASE}
RUN apt-get update && apt-get install --yes --no-install-recommends postgresql
RUN install --directory --owner=postgres --mode=0700 /var/lib/postgresql/data && ln -s /usr/lib/postgresql/* /postgresql
ENV PATH=/postgresql/bin:$PATH PGDATA=/var/lib/postgresql/data
USER postgres
VOLUME /var/lib/postgresql/data
CMD if [ ! -s $PGDATA/PG_VERSION ]; then \\
        echo "$POSTGRES_PASSWORD" >/tmp/password && initdb --username=$POSTGRES_USER --pwfile=/tmp/password --no-sync \\
        && echo "host all all all scram-sha-256" >>$PGDATA/pg_hba.conf \\
        && echo "create database $POSTGRES_DB" | postgres --single postgres; \\
    fi; exec postgres -c listen_addresses='*'
"""
"""Debian's server under the name of the official image, as far as deploy/postgres.yml uses that."""

INSIDE = """
import json, os, pathlib, socket
texts = [pathlib.Path("/proc", name, "status").read_text() for name in os.listdir("/proc") if name.isdigit()]
processes = [dict(line.split(":\\t", 1) for line in text.splitlines() if ":\\t" in line) for text in texts]
writable = []
for folder, within, _ in os.walk("/"):
    if os.access(folder, os.W_OK):
        writable.append(folder)
        within.clear()
    within[:] = [name for name in within if folder != "/" or name != "proc"]
networks = [name for _, name in socket.if_nameindex()]
print(json.dumps({"processes": processes, "writable": sorted(writable), "networks": networks}))
"""
"""Run in a container as its own user: says what its processes may do, and what may be written."""

ANOTHER_BUILD = """
FROM {image}
USER root
RUN echo "# Another build." >>"$(python -c 'import compiler; print(compiler.__file__)')"
USER {user}
"""

IMAGES = {"web": "fusionscope-web", "worker": "fusionscope-worker:cpu"}
CUDA_IMAGE = "fusionscope-worker:cuda"
USERS = {"web": "10001:10001", "worker": "10002:10001"}
WRITABLE = {"web": ["/data", "/dev/mqueue", "/dev/shm", "/tmp"]}
WRITABLE["worker"] = ["/dev/mqueue", "/dev/shm", "/run/fusionscope", "/tmp"]

START_SECONDS = 180.0


class Failed(Exception):
    """Something did not work; the message says what."""


def run(*command: str, given: str = "", **variables: str) -> str:
    """Runs a program with `given` as its input, and returns what it printed. Raises `Failed` with the end of that."""
    environment = os.environ | variables
    output, errors = subprocess.PIPE, subprocess.STDOUT
    done = subprocess.run(command, cwd=ROOT, env=environment, input=given, text=True, stdout=output, stderr=errors)
    if done.returncode != 0:
        raise Failed(f"{' '.join(command)} ended with {done.returncode}:\n{done.stdout[-4000:]}")
    return done.stdout


@contextlib.contextmanager
def daemon(folder: Path) -> Iterator[None]:
    """A Docker daemon of our own; within, the programs docker and docker-compose speak to it."""
    address = f"unix://{folder}/docker.sock"
    places = ["--data-root", f"{folder}/data", "--exec-root", f"{folder}/exec", "--pidfile", f"{folder}/pid"]
    # No firewall rules, no bridge that outlives it, and addresses that no other daemon of this machine gives out.
    rules = ["--iptables=false", "--ip6tables=false", "--ip-forward=false", "--ip-masq=false", "--bridge=none"]
    rules += ["--default-address-pool", "base=10.213.0.0/16,size=24"]
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
    run(DOCKER, "import", "--change", 'CMD ["python3"]', str(archive), BASE)
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
    for target, tag in IMAGES.items():
        build_image(target, tag, TORCH_BUILD="cpu", TORCH_INDEX=index)


def build_image(target: str, tag: str, **arguments: str) -> None:
    # pip in the base trusts Debian's certificates by itself; Node has to be told.
    arguments |= {"PIP_CERT": str(CERTIFICATES), "NODE_EXTRA_CA_CERTS": str(CERTIFICATES)}
    options = [option for name, value in arguments.items() for option in ("--build-arg", f"{name}={value}")]
    started = time.monotonic()
    command = [DOCKER, "build", "--network", "host", "--target", target, "--tag", tag, *options, "."]
    run(*command, DOCKER_BUILDKIT="1")
    size = int(run(DOCKER, "image", "inspect", "--format", "{{.Size}}", tag))
    print(f"built {tag}: {size / 1e6:.0f} MB in {time.monotonic() - started:.0f} s", flush=True)


class Stack:
    """The services of the compose file and of further `files`, as they run here; taken down at the end."""

    def __init__(self, port: int, *files: str) -> None:
        self._address = f"http://127.0.0.1:{port}"
        self._variables = {"PORT": str(port), "POSTGRES_PASSWORD": "only-for-this-run"}
        self._files = [option for name in ("docker-compose.yml", *files) for option in ("--file", name)]

    @contextlib.contextmanager
    def running(self) -> Iterator[Stack]:
        try:
            self.compose("up", "--detach", "--no-build")
            yield self
        except BaseException:
            print(self.compose("logs", "--tail", "40"), file=sys.stderr)
            raise
        finally:
            self.compose("down", "--volumes")

    def compose(self, *arguments: str) -> str:
        command = [COMPOSE, "--project-name", PROJECT, *self._files, *arguments]
        return run(*command, **self._variables)

    def container(self, service: str) -> str:
        return self.compose("ps", "--quiet", service).strip()

    def end(self, service: str, by: signal.Signals) -> None:
        """Sends a signal to a container's first process, past Docker, which therefore starts the container again."""
        process = run(DOCKER, "inspect", "--format", "{{.State.Pid}}", self.container(service))
        os.kill(int(process), by)

    def inside(self, service: str) -> dict[str, Any]:
        """What `INSIDE` says of the container of a service."""
        found: dict[str, Any] = json.loads(run(DOCKER, "exec", self.container(service), "python", "-c", INSIDE))
        return found

    def read(self, path: str, body: dict[str, Any] | None = None, timeout: float = 10.0) -> bytes:
        """What the service answers. Raises `OSError` for anything but success."""
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(self._address + path, data, {"Content-Type": "application/json"})
        with urllib.request.urlopen(request, timeout=timeout) as answer:
            found: bytes = answer.read()
            return found

    def wait_until_ready(self, tier: str) -> None:
        """Raises `Failed` where no worker of that tier is ready in time."""

        def is_ready() -> bool:
            with contextlib.suppress(OSError):
                self.read("/readyz")
                (worker,) = json.loads(self.read("/healthz"))["workers"]
                return bool(worker["tier"] == tier)
            return False

        started = time.monotonic()
        wait_until(is_ready, f"A worker of tier {tier}")
        print(f"tier {tier}: ready after {time.monotonic() - started:.0f} s", flush=True)

    def explore(self, comment: str, meanwhile: Callable[[], None] | None = None) -> str:
        """Pastes the snippet, told apart by a comment; the path of its report. Raises `Failed` where it is wrong.

        What happens `meanwhile` begins when the snippet runs, which then takes some seconds.
        """
        source = f"# {comment}\n{SNIPPET.read_text()}"
        if meanwhile is not None:
            source += "\nimport time\n\ntime.sleep(5)\n"
        promised = json.loads(self.read("/api/v1/explorations", {"source": source}))
        path = f"/api/v1/explorations/{promised['id']}"
        started = time.monotonic()
        if meanwhile is not None:
            wait_until(lambda: self.report(path).get("observed") is not None, "The snippet's process")
            meanwhile()
        wait_until(lambda: self.report(path).get("status", "running") != "running", "The report")
        report = self.report(path)
        if report["status"] != "ok":
            raise Failed(f"The exploration ended as {report['status']}: {report.get('error')}")
        seen = report["observed"]
        if (meanwhile is not None) is not (seen["attempt"] > 1):
            raise Failed(f"{comment}: the exploration took {seen['attempt']} attempts.")
        print(
            f"{comment}: {report['summary']['verdict']} Tier {seen['tier']}, attempt {seen['attempt']},"
            f" {seen['wall_seconds']:.1f} s, answered after {time.monotonic() - started:.1f} s",
            flush=True,
        )
        return path

    def report(self, path: str) -> dict[str, Any]:
        """A report as it stands; without anything in it while nobody answers."""
        with contextlib.suppress(OSError, http.client.HTTPException):
            found: dict[str, Any] = json.loads(self.read(path))
            return found
        return {}


def check_same(stack: Stack, path: str, before: bytes, event: str) -> None:
    if stack.read(path) != before:
        raise Failed(f"A stored report is another one after {event}.")
    print(f"after {event}: the stored report has the same bytes", flush=True)


def check_page(stack: Stack) -> None:
    """The page and each file that it names are there. Raises `OSError` where one is not."""
    files = re.findall(r'(?:src|href)="(/[^"]+)"', stack.read("/").decode())
    read = sum(len(stack.read(name)) for name in files)
    print(f"the page: {len(files)} files, {read / 1e3:.0f} kB", flush=True)


def check_inside(stack: Stack, name: str) -> None:
    """Raises `Failed` where a container of the usual settings may do more than docs/operators.md says."""
    found = stack.inside(name)
    wanted = {"CapEff": 0, "CapPrm": 0, "CapBnd": 0, "NoNewPrivs": 1, "Seccomp": 2}
    for process in found["processes"]:
        users = set(process["Uid"].split())
        has = {field: int(process[field], 16) for field in wanted}
        if users != {USERS[name].split(":")[0]} or has != wanted:
            raise Failed(f"In {name}, {process['Name']} runs as {users} with {has}.")
    networks = {"lo"} if name == "worker" else {"lo", "eth0"}
    if found["writable"] != WRITABLE[name] or set(found["networks"]) != networks:
        raise Failed(f"{name} may write {found['writable']}, and has the networks {found['networks']}.")
    print(
        f"inside {name}: {len(found['processes'])} processes, none of them root or with a capability;"
        f" only {', '.join(found['writable'])} can be written; networks: {', '.join(found['networks'])}",
        flush=True,
    )


def check_upgrade(stack: Stack, path: str) -> None:
    """Both images become those of another build: the report at `path` stays, and the snippet is explored again."""
    before = stack.read(path)
    for name, image in IMAGES.items():
        changed = ANOTHER_BUILD.format(image=image, user=USERS[name])
        run(DOCKER, "build", "--network", "none", "--tag", image, "-", given=changed, DOCKER_BUILDKIT="1")
    stack.compose("up", "--detach", "--no-build")
    stack.wait_until_ready("B")
    check_same(stack, path, before, "an upgrade")
    if stack.explore("Docker's own settings") == path:
        raise Failed("A snippet has the same id in another build.")


def check_tiers(port: int) -> None:
    with Stack(port).running() as stack:
        stack.wait_until_ready("B")
        check_page(stack)
        path = stack.explore("Docker's own settings")
        before = stack.read(path)
        for name in IMAGES:
            check_inside(stack, name)
            for by in (signal.SIGTERM, signal.SIGKILL):
                stack.explore(f"{by.name} of {name}", meanwhile=functools.partial(stack.end, name, by))
        stack.wait_until_ready("B")
        check_same(stack, path, before, "kills of web and worker")
        check_upgrade(stack, path)
    with Stack(port, "deploy/tier-a.yml").running() as stack:
        stack.wait_until_ready("A")
        stack.explore("deploy/tier-a.yml")


def check_job_users(port: int) -> None:
    with Stack(port, "deploy/job-users.yml").running() as stack:
        stack.wait_until_ready("B")
        path = stack.explore("deploy/job-users.yml")
        layers = stack.report(path)["observed"]["isolation"]
        print(f"deploy/job-users.yml: {', '.join(layers)}", flush=True)
        if "a user of its own" not in layers:
            raise Failed("Jobs have no user of their own.")


def check_postgres(port: int) -> None:
    run(DOCKER, "build", "--network", "host", "--tag", "postgres:17", "-", given=POSTGRES, DOCKER_BUILDKIT="1")
    with Stack(port, "deploy/postgres.yml").running() as stack:
        stack.wait_until_ready("B")
        path = stack.explore("deploy/postgres.yml")
        before = stack.read(path)
        stack.compose("kill", "postgres")
        stack.compose("up", "--detach", "--no-build")
        stack.wait_until_ready("B")
        check_same(stack, path, before, "a kill of the database server")


def check_cuda(port: int, folder: Path) -> None:
    """`deploy/gpu.yml` as it stands, but for the GPU that it asks for, without which no such container starts."""
    build_image("worker", CUDA_IMAGE, TORCH_BUILD="")
    without = folder / "without-gpu.yml"
    without.write_text("services:" + "".join(f"\n  {name}:\n    deploy: !reset null" for name in ("declare", "worker")))
    with Stack(port, "deploy/gpu.yml", str(without)).running() as stack:
        stack.wait_until_ready("B")
        stack.explore("deploy/gpu.yml")
        torch = run(
            DOCKER, "exec", stack.container("worker"), "python", "-c", "import torch; print(torch.version.cuda)"
        )
        print(f"{CUDA_IMAGE}: torch for CUDA {torch.strip()}", flush=True)


def wait_until(is_so: Callable[[], bool], what: str) -> None:
    """Raises `Failed` where it is not so in time."""
    end = time.monotonic() + START_SECONDS
    while not is_so():
        if time.monotonic() > end:
            raise Failed(f"{what} was not there within {START_SECONDS:.0f} seconds.")
        time.sleep(0.5)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--port", type=int, default=18000, help="Port of 127.0.0.1 that the service gets.")
    parser.add_argument("--cuda", action="store_true", help="Build and run the image with torch for CUDA too.")
    arguments = parser.parse_args()
    port = arguments.port
    missing = [program for program in PROGRAMS if shutil.which(program) is None]
    if os.geteuid() != 0 or missing:
        print(f"This needs root and these programs: {', '.join(missing or PROGRAMS)}.", file=sys.stderr)
        return 2
    folder = Path(tempfile.mkdtemp(prefix="fusionscope-images-"))
    try:
        with daemon(folder):
            make_base(folder / "base")
            download_torch(folder / "wheels")
            with torch_index(folder / "wheels") as index:
                build(index)
            if arguments.cuda:  # before the images become those of another build
                check_cuda(port, folder)
            check_tiers(port)
            check_job_users(port)
            check_postgres(port)
    except Failed as failure:
        print(failure, file=sys.stderr)
        return 1
    finally:
        shutil.rmtree(folder)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
