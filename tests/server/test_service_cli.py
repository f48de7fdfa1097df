"""The command line: what it prints, where, and how it exits."""

from __future__ import annotations

import http.client
import http.server
import io
import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import IO

import pytest
from typer.testing import CliRunner

from compiler.report import Report, Stage
from server.cli import app
from server.commands.given import stages_on_stderr
from tests.command_line import run_here
from tests.server import programs
from tests.server.conftest import TWO_KERNELS, eventually

ROOT = Path(__file__).parents[2]
WITH_PROGRAMS = (
    "import sys, tests.server.programs as programs; sys.modules['compiler.pipeline'] = programs; "
    "from server.cli import main; main()"
)


def _run(
    *arguments: str, source: str | None = None, stdout: int | IO[bytes] = subprocess.PIPE
) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", WITH_PROGRAMS, *arguments],
        cwd=ROOT,
        input=source,
        stdout=stdout,
        stderr=subprocess.PIPE,
        text=True,
        check=False,
        env={**os.environ, "COLUMNS": "120", "NO_COLOR": "1"},
    )


def test_json_is_all_that_reaches_stdout() -> None:
    source = "import os\nprint('from Python')\nos.write(1, b'from below')\nverdict = 'json'"
    ended = _run("explore", "-", "--json", "--target", "sm_80", source=source)
    assert ended.returncode == 0, ended.stderr
    report = Report.model_validate(json.loads(ended.stdout))
    assert report.summary.verdict == "json"
    assert report.output == "from Python\n"
    assert "from below" in ended.stderr


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="this system has no file that is always full")
@pytest.mark.parametrize(
    "arguments", [("explore", "-"), ("explore", "-", "--json"), ("check", "-"), ("examples",), ("--version",)]
)
def test_an_output_that_is_full_is_told_in_a_sentence(arguments: tuple[str, ...]) -> None:
    with open("/dev/full", "wb") as full:
        ended = _run(*arguments, source="verdict = 'told'", stdout=full)
    assert (ended.returncode, ended.stderr) == (2, "Standard output cannot be written: No space left on device\n")


@pytest.mark.parametrize("arguments", [("explore", "-"), ("explore", "-", "--json"), ("examples",)])
def test_a_pipe_that_is_closed_ends_a_command_quietly(arguments: tuple[str, ...]) -> None:
    reading, writing = os.pipe()
    os.close(reading)
    with open(writing, "wb") as closed:
        ended = _run(*arguments, source="verdict = 'told'", stdout=closed)
    assert (ended.returncode, ended.stderr) == (1, "")


@pytest.fixture
def with_programs(monkeypatch: pytest.MonkeyPatch) -> None:
    """Programs in the compiler's place in this process."""
    monkeypatch.setitem(sys.modules, "compiler.pipeline", programs)


@pytest.mark.usefixtures("with_programs")
def test_an_exploration_has_a_minute_unless_told_otherwise() -> None:
    source = "verdict = options.max_seconds"
    told = [run_here("explore", "-", "--json", *more, source=source) for more in ((), ("--max-seconds", "7"))]
    verdicts = [json.loads(ended.stdout)["summary"]["verdict"] for ended in told]
    assert verdicts == ["60.0", "7.0"]


@pytest.mark.usefixtures("with_programs")
def test_a_failed_snippet_exits_with_1_and_shows_the_line(tmp_path: Path) -> None:
    file = tmp_path / "snippet.py"
    file.write_text("x = 1\ny = x / 0\n")
    ended = run_here("explore", str(file))
    assert ended.returncode == 1
    assert "ZeroDivisionError at line 2: division by zero" in ended.stdout
    assert "y = x / 0" in ended.stdout


@pytest.mark.parametrize(
    "arguments",
    [
        *(("explore", "no_such_file.py"), ("explore", "-", "--target", "h100"), ("explore",), ("examples", "nothing")),
        ("token", "ada", "--file", "tokens.json", "--days", "99999999"),
        *(("machine-code", "-", "--json"), ("machine-code", "-", "--for", "host")),
    ],
)
@pytest.mark.usefixtures("with_programs")
def test_wrong_use_exits_with_2_and_says_why(arguments: tuple[str, ...]) -> None:
    ended = CliRunner().invoke(app, arguments, input="x = 1")
    assert ended.exit_code == 2
    assert ended.stderr.strip()
    assert "Traceback" not in ended.stderr


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--sweep", "N=256"), "--sweep: it must have at least 2 values, and has 1"),
        (("--sweep", "=8,16"), "--sweep: give a size and numbers"),
        (("--contestant", "a b"), "--contestant: it must match"),
        (("--peer-mode", "fast"), "--peer-mode: it must be 'default', "),
        (("--peer-mode", "default"), "--peer-mode: it needs --peer"),
        (("--max-seconds", "0"), "--max-seconds: it must be greater than 0"),
        (("--rule-off", "nothing"), "--rule-off: there is no rule 'nothing'"),
    ],
)
@pytest.mark.usefixtures("with_programs")
def test_a_wrong_option_is_called_as_it_was_written(arguments: tuple[str, ...], said: str) -> None:
    ended = CliRunner().invoke(app, ("explore", "-", *arguments), input="N = 1")
    assert ended.exit_code == 2 and ended.stderr.startswith(said)


@pytest.mark.usefixtures("with_programs")
def test_an_unknown_contestant_is_told_and_the_command_was_used_wrongly() -> None:
    unknown = run_here("explore", "-", "--contestant", "nobody", "--contestant", "eager", "--json", source="x = 1")
    assert unknown.returncode == 2 and json.loads(unknown.stdout)["error"] is None
    assert unknown.stderr.startswith("--contestant: There is no contestant nobody; there are aot_eager, cudagraphs, ")
    assert len(unknown.stderr.splitlines()) == 1
    failed = run_here("explore", "-", "--contestant", "nobody", source="1 / 0")
    assert failed.returncode == 1


def test_a_backend_of_the_snippet_is_no_unknown_contestant() -> None:
    source = "import torch\ntorch._dynamo.register_backend(lambda graph, inputs: graph.forward, name='own')"
    ended = _run("explore", "-", "--contestant", "own", source=source)
    assert (ended.returncode, ended.stderr) == (0, "")


@pytest.mark.parametrize("content", [b"\xef\xbb\xbfverdict = 'read'\r\n", b"verdict = 'read'\r\n"])
@pytest.mark.usefixtures("with_programs")
def test_a_file_of_windows_is_read(content: bytes, tmp_path: Path) -> None:
    file = tmp_path / "snippet.py"
    file.write_bytes(content)
    ended = run_here("explore", str(file), "--json")
    assert json.loads(ended.stdout)["source"] == "verdict = 'read'\n"
    report = tmp_path / "report.json"
    report.write_bytes(b"\xef\xbb\xbf" + ended.stdout.encode())
    assert run_here("diff", str(report), str(report)).returncode == 0


@pytest.mark.usefixtures("with_programs")
def test_what_is_not_utf_8_is_told_with_what_to_do(tmp_path: Path) -> None:
    file = tmp_path / "snippet.py"
    file.write_text("verdict = 'größe'", encoding="latin-1")
    ended = run_here("explore", str(file))
    assert (ended.returncode, ended.stdout) == (2, "")
    assert "snippet.py cannot be read: its byte 14 is no part of a text in UTF-8. Save it as UTF-8." in ended.stderr
    piped = CliRunner().invoke(app, ["explore", "-"], input=file.read_bytes())
    assert piped.exit_code == 2 and piped.stderr.startswith("Standard input cannot be read: its byte 14 is")


@pytest.mark.parametrize("columns", [80, 200])
def test_the_line_of_stages_is_never_wrapped(columns: int, monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = io.StringIO()
    monkeypatch.setattr(terminal, "isatty", lambda: True)
    monkeypatch.setattr(sys, "stderr", terminal)
    monkeypatch.setenv("COLUMNS", str(columns))
    stages = [Stage(name=name, ms=1234.0, status="done") for name in ("capture", "lower", "run") * 5]
    report = Report(source="", stages=stages)
    with stages_on_stderr() as told:
        told(report)
    line = terminal.getvalue().split("\x1b[2K")[1].rstrip("\r")
    assert len(line) < columns and line.endswith("run 1.2 s")


@pytest.mark.usefixtures("with_programs")
def test_an_answer_is_printed_though_its_file_cannot_be_written(tmp_path: Path) -> None:
    nowhere = str(tmp_path / "nowhere" / "exploration.html")
    ended = run_here("explore", "-", "--json", "--html", nowhere, source="verdict = 'kept'")
    assert ended.returncode == 2 and "--html: " in ended.stderr and "cannot be written" in ended.stderr
    assert json.loads(ended.stdout)["summary"]["verdict"] == "kept"


def test_an_invalid_setting_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FUSIONSCOPE_QUEUE_LIMIT", "many")
    ended = run_here("serve")
    assert ended.returncode == 2
    assert "queue_limit" in ended.stderr


@pytest.mark.parametrize("command", ["serve", "web"])
def test_a_port_that_is_taken_is_told_in_a_sentence(command: str, tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        ended = run_here(command, "--port", str(port), "--data", str(tmp_path))
    assert ended.returncode == 2
    (line,) = ended.stderr.splitlines()
    assert f"127.0.0.1:{port}" in line and "another program listens there" in line and "--port" in line
    ended = run_here(command, "--host", "192.0.2.1", "--data", str(tmp_path))
    assert ended.returncode == 2 and "192.0.2.1:8000 cannot be listened at" in ended.stderr


def test_a_crash_of_the_snippet_names_its_line() -> None:
    crash = "import ctypes\nctypes.string_at(0)\n"
    command = [sys.executable, "-m", "server.cli", "explore", "-"]
    ended = subprocess.run(command, cwd=ROOT, input=crash, capture_output=True, text=True)
    assert ended.returncode == -signal.SIGSEGV
    assert 'File "snippet.py", line 2' in ended.stderr


@pytest.mark.parametrize("command", ["explore", "check"])
@pytest.mark.parametrize("code", [0, 3])
def test_a_snippet_that_leaves_the_process_is_told_and_has_failed(command: str, code: int) -> None:
    """With 0 a check would have held, and 3 is the exit code of a wrong result."""
    leaving = f"import os\nif os.fork() == 0:\n    os._exit(0)\nos._exit({code})\n"
    called = [sys.executable, "-m", "server.cli", command, "-"]
    ended = subprocess.run(called, cwd=ROOT, input=leaving, capture_output=True, text=True)
    assert ended.returncode == 1
    assert ended.stderr == f"The snippet ended this process by os._exit({code}) in line 4.\n"


def test_a_database_that_is_not_there_is_told_without_a_stack(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as probe:
        port = probe.getsockname()[1]
    command = [sys.executable, "-m", "server.cli", "web", "--port", str(port), "--data", str(tmp_path)]
    nowhere = {"FUSIONSCOPE_DATABASE": f"postgresql://user:secret@127.0.0.1:{port}/none"}
    ended = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, env={**os.environ, **nowhere})
    assert ended.returncode == 3
    assert "Web does not start without its database" in ended.stderr
    assert "Traceback" not in ended.stderr and "secret" not in ended.stderr
    assert len(ended.stderr.splitlines()) <= 3


@pytest.mark.parametrize(
    ("setting", "value", "said"),
    [
        ("DATA", "/dev/null", "the setting data, cannot be made: File exists"),
        ("PROFILES", "/nowhere/profiles.json", "profiles.json cannot be read: No such file"),
        ("DATABASE", "postgresql://user:secret@127.0.0.1:port/none", "its URL cannot be read"),
    ],
)
def test_what_web_cannot_start_with_is_told_without_a_stack(
    setting: str, value: str, said: str, tmp_path: Path
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as probe:
        port = probe.getsockname()[1]
    command = [sys.executable, "-m", "server.cli", "web", "--port", str(port)]
    given = {"FUSIONSCOPE_DATA": str(tmp_path), f"FUSIONSCOPE_{setting}": value}
    ended = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, env={**os.environ, **given})
    assert ended.returncode == 3 and said in ended.stderr
    assert "Traceback" not in ended.stderr and "secret" not in ended.stderr


@pytest.mark.parametrize("address", ["http://127.0.0.1:port", "http://[nowhere", "http://no where"])
@pytest.mark.usefixtures("with_programs")
def test_an_address_that_is_none_is_told_in_a_sentence(address: str) -> None:
    ended = CliRunner().invoke(app, ["diff", "0" * 20, "-", "--service", address], input="x = 1")
    assert ended.exit_code == 2
    assert f"cannot be read: no service answers at {address}: " in ended.stderr


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        ("application/json", "the service answered with 404 Not Found: It is not here. Post it again."),
        ("text/html", "the service answered with 404 Not Found\n"),
    ],
)
def test_a_refusal_of_the_service_is_told_in_its_words(answer: str, said: str) -> None:
    detail = {"application/json": '{"detail": "It is not here. Post it again."}', "text/html": "<p>Nothing</p>"}

    class Refusing(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(404)
            self.end_headers()
            self.wfile.write(detail[answer].encode())

        def log_message(self, format: str, *arguments: object) -> None:
            pass

    with http.server.HTTPServer(("127.0.0.1", 0), Refusing) as service:
        threading.Thread(target=service.handle_request, daemon=True).start()
        address = f"http://127.0.0.1:{service.server_port}"
        ended = CliRunner().invoke(app, ["diff", "0" * 20, "0" * 20, "--service", address])
    assert ended.exit_code == 2 and f"{'0' * 20} cannot be read: {said}" in ended.stderr


def test_a_service_that_is_not_there_is_told_without_words_of_python(monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.create_server(("127.0.0.1", 0)) as probe:
        address = f"http://127.0.0.1:{probe.getsockname()[1]}"
    asked = ["diff", "0" * 20, "0" * 20, "--service", address]
    ended = CliRunner().invoke(app, asked)
    assert ended.exit_code == 2 and "refused" in ended.stderr and "urlopen" not in ended.stderr
    monkeypatch.setenv("FUSIONSCOPE_TOKEN", "größe")
    ended = CliRunner().invoke(app, asked)
    assert ended.exit_code == 2 and ended.stderr.startswith("FUSIONSCOPE_TOKEN has letters that no token has")


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ('{"version": 5}', "source: it is missing."),
        ('{\n"version":\n', "Invalid JSON: EOF while parsing a value at line 3 column 0."),
    ],
)
def test_what_is_no_report_is_told_with_its_flaw(content: str, said: str, tmp_path: Path) -> None:
    file = tmp_path / "report.json"
    file.write_text(content)
    ended = CliRunner().invoke(app, ["diff", str(file), str(file)])
    assert ended.exit_code == 2 and ended.stderr == f"{file} is no report of this version: {said}\n"


def test_a_connection_stays_open_for_longer_than_clients_keep_theirs(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as probe:
        port = probe.getsockname()[1]
    command = [sys.executable, "-m", "server.cli", "web", "--port", str(port), "--data", str(tmp_path)]
    web = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        assert eventually(lambda: not socket.socket().connect_ex(("127.0.0.1", port)))
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=300)
        connection.connect()
        kept = connection.sock
        for pause in (0, 7):
            time.sleep(pause)  # what httpx keeps an unused connection for is 5 s
            connection.request("GET", "/healthz")
            answer = connection.getresponse()
            assert answer.status == 200 and answer.read()
            assert connection.sock is kept
    finally:
        web.kill()
        web.wait()


def test_the_package_is_run_as_the_command() -> None:
    command = [sys.executable, "-m", "fusionscope", "examples", "graph_break"]
    ended = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert ended.returncode == 0 and ended.stdout.startswith("import torch"), ended.stderr


def test_examples_are_listed_and_printed() -> None:
    listed = CliRunner().invoke(app, ["examples"])
    assert listed.exit_code == 0
    assert "graph_break" in listed.stdout
    printed = CliRunner().invoke(app, ["examples", "graph_break"])
    assert printed.stdout.startswith("import torch")


@pytest.mark.parametrize("command", ["serve", "explore", "worker", "doctor", "examples"])
def test_help_is_there_for_every_command(command: str) -> None:
    ended = CliRunner().invoke(app, [command, "--help"])
    assert ended.exit_code == 0
    assert len(ended.stdout) > 100


def test_a_paragraph_of_help_is_wrapped_at_the_width_of_the_terminal() -> None:
    lines = run_here("explore", "--help", columns=80).stdout.splitlines()
    start = next(place for place, line in enumerate(lines) if line.startswith(" Exits with 0"))
    end = next(place for place in range(start, len(lines)) if not lines[place].strip())
    assert all(len(line.rstrip()) > 60 for line in lines[start : end - 1]), lines[start:end]


def test_why_prints_the_answer_for_two_nodes(tmp_path: Path) -> None:
    file = tmp_path / "reversed.py"
    file.write_text((ROOT / "tests" / "snippets" / "18_reverse_read.py").read_text())
    ended = run_here("explore", str(file), "--device", "cpu", "--why", "sum_1,mul", columns=200)
    assert ended.returncode == 0, ended.stderr
    assert "index.reversed" in ended.stdout and "It would fuse if `mul` read `sum_1` forwards" in ended.stdout
    assert run_here("explore", str(file), "--device", "cpu", "--why", "sum_1").returncode == 2
    unknown = run_here("explore", str(file), "--device", "cpu", "--why", "sum_1,nothing", "--json", columns=200)
    assert unknown.returncode == 2 and "no node named 'nothing'" in unknown.stderr and unknown.stdout == ""


def test_why_goes_with_a_file_and_exits_as_without(tmp_path: Path) -> None:
    page = tmp_path / "answer.html"
    source = "import torch\ndef f(x):\n    return x.exp() + 1\nf(torch.randn(8))\n"
    written = run_here("explore", "-", "--why", "exp,add", "--html", str(page), source=source)
    assert written.returncode == 0 and "fused.vertical" in written.stdout
    assert "fused_exp_add" in page.read_text(encoding="utf-8")
    failed = run_here("explore", "-", "--why", "exp,add", "--json", source=source + "1 / 0\n")
    assert (failed.returncode, failed.stdout) == (1, "")
    assert "ZeroDivisionError at line 5" in failed.stderr and "no node named 'exp'" in failed.stderr


def test_what_if_is_printed_beside_what_it_was(tmp_path: Path) -> None:
    file = tmp_path / "snippet.py"
    file.write_text(TWO_KERNELS)
    options = ["--forbid", "relu,sum_1", "--force", "sum_1,mul", "--rule-off", "batch", "--largest-group", "8"]
    ended = run_here("explore", str(file), "--device", "cpu", *options, columns=200)
    assert ended.returncode == 0, ended.stderr
    assert "what if force sum_1 and mul: refused; " in ended.stdout and "backwards" in ended.stdout
    assert "what if forbid relu and sum_1: done" in ended.stdout
    assert "predicted for NVIDIA H200" in ended.stdout and "generated kernels became" in ended.stdout


SIZES = "import torch\nN = 8\ndef f(x):\n    return x.exp().sum(-1)\nf(torch.randn(4, N))\n"


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        ("M=8,16", "The snippet names no size 'M'. Its sizes are N (8, line 2)."),
        ("N", "give a size and numbers, as in --sweep N=256,1024,4096, not 'N', which has no ="),
        ("8", "give a size and numbers, as in --sweep N=256,1024,4096, not '8', which has no ="),
        ("N=8,many", "give a size and numbers, as in --sweep N=256,1024,4096, not 'N=8,many'"),
        ("N=8,8", "each size may stand in a sweep once"),
        ("N=8", "at least 2"),
    ],
)
@pytest.mark.usefixtures("with_programs")
def test_a_sweep_that_cannot_be_made_is_refused_before_the_snippet_runs(asked: str, said: str) -> None:
    ended = CliRunner().invoke(app, ["explore", "-", "--sweep", asked], input=SIZES)
    assert ended.exit_code == 2 and ended.stdout == ""
    assert said in ended.stderr and ended.stderr.startswith("--sweep")


def test_without_a_name_machine_code_lists_the_kernels() -> None:
    source = "import torch\n\n\ndef f(x):\n    return torch.relu(x + 1)\n\n\nf(torch.randn(8))\n"
    ended = run_here("machine-code", "-", source=source)
    assert (ended.returncode, ended.stdout) == (0, "fused_add_relu\n"), ended.stderr
    other = run_here("machine-code", "-", "absent", source=source)
    assert other.returncode == 2 and "There are: fused_add_relu." in other.stderr
