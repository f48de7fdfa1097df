"""Settings: where they come from, which wins, and what is said of those that cannot be used."""

from __future__ import annotations

import io
import re
from pathlib import Path

import pytest
from pydantic import Field, SecretStr
from rich.console import Console

from server import doctor
from server.settings import (
    ENVIRONMENT_PREFIX,
    GROUPS,
    OTHER_VARIABLES,
    Settings,
    WebSettings,
    WorkerSettings,
    WrongSettings,
    shown,
    unknown_variables,
)
from tools import settings_tables

ROOT = Path(__file__).parents[2]


@pytest.fixture(autouse=True)
def _no_settings_of_whoever_runs_the_tests(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in (*Settings.model_fields, "settings"):
        monkeypatch.delenv(ENVIRONMENT_PREFIX + name.upper(), raising=False)


def test_every_setting_is_documented_as_it_is() -> None:
    text = settings_tables.DOCUMENT.read_text()
    assert text == settings_tables.with_tables(text), "run: python -m tools.settings_tables"
    assert all(text.count(f"| `{name}` |") == 1 for name in Settings.model_fields)


def test_the_command_line_wins_over_the_environment_and_that_over_a_file(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    file = tmp_path / "fusionscope.toml"
    file.write_text('port = 1\nqueue_limit = 7\nthreads = 3\nallowed_hosts = ["c.org"]\n')
    monkeypatch.setenv("FUSIONSCOPE_SETTINGS", str(file))
    monkeypatch.setenv("FUSIONSCOPE_PORT", "9")
    monkeypatch.setenv("FUSIONSCOPE_HOST", "0.0.0.0")
    settings = Settings.load(host="127.0.0.2", data=None)
    assert (settings.host, settings.port, settings.queue_limit, settings.threads) == ("127.0.0.2", 9, 7, 3)
    assert settings.allowed_hosts == ("c.org",)
    origins = [settings.origin(name, frozenset({"host"})) for name in ("host", "port", "queue_limit", "report_mib")]
    assert origins == ["command line", "environment", "file", "default"]
    assert WebSettings.load().queue_limit == 7, "each program takes its part of a file that both read"
    assert WorkerSettings.load().threads == 3


def test_a_file_may_have_lines_as_the_environment_has_them(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    file = tmp_path / "fusionscope.env"
    file.write_text('# ours\nFUSIONSCOPE_ALLOWED_HOSTS="a.org, b.org"\nFUSIONSCOPE_CACHE_DIR=/tmp/x\nHOME=/root\n')
    monkeypatch.setenv("FUSIONSCOPE_SETTINGS", str(file))
    assert Settings.load().allowed_hosts == ("a.org", "b.org")


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("prot = 1\n", "perhaps port is meant."),
        ('port = "many"\n', "FUSIONSCOPE_PORT"),
        ("port = \n", "cannot be read"),
        ('allowed_hosts = ["https://name.example"]\n', "written as fusion.example.org, without https://, port or path"),
        ('allowed_hosts = ["name.example:8000"]\n', "written as fusion.example.org, without https://, port or path"),
        ('trusted_proxies = ["proxy"]\n', "'proxy' does not appear to be an IPv4 or IPv6 network"),
        (None, "does not exist"),
    ],
)
def test_settings_that_cannot_be_used_are_told_in_a_sentence(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, content: str | None, said: str
) -> None:
    file = tmp_path / "fusionscope.toml"
    if content is not None:
        file.write_text(content)
    monkeypatch.setenv("FUSIONSCOPE_SETTINGS", str(file))
    with pytest.raises(WrongSettings, match=re.escape(said)):
        Settings.load()


@pytest.mark.parametrize("name", ["wall_seconds", "memory_gib", "keep_days"])
def test_no_number_is_infinite(name: str) -> None:
    with pytest.raises(WrongSettings, match=f"{name} .* finite number"):
        Settings.load(**{name: "inf"})


def test_a_file_of_lines_that_is_no_text_is_told_in_a_sentence(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    file = tmp_path / "fusionscope.env"
    file.write_bytes(b"FUSIONSCOPE_PORT=\xff\n")
    monkeypatch.setenv("FUSIONSCOPE_SETTINGS", str(file))
    with pytest.raises(WrongSettings, match=r"fusionscope\.env, which FUSIONSCOPE_SETTINGS names, cannot be read"):
        Settings.load()


def test_a_misspelt_line_of_a_file_is_told(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    file = tmp_path / "fusionscope.env"
    file.write_text("PROT=1\nFUSIONSCOPE_PROT=9000\n")
    monkeypatch.setenv("FUSIONSCOPE_SETTINGS", str(file))
    with pytest.raises(WrongSettings, match="FUSIONSCOPE_PROT, which is no setting; perhaps FUSIONSCOPE_PORT is meant"):
        Settings.load()


def test_every_fault_is_told_and_no_value(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FUSIONSCOPE_PORT", "a-secret-in-the-wrong-place")
    monkeypatch.setenv("FUSIONSCOPE_PROCESSES", "1")
    with pytest.raises(WrongSettings) as raised:
        Settings.load()
    assert "FUSIONSCOPE_PORT" in str(raised.value) and "FUSIONSCOPE_PROCESSES" in str(raised.value)
    assert "a-secret" not in str(raised.value)


def test_doctor_shows_every_setting_and_where_it_came_from(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FUSIONSCOPE_WALL_SECONDS", "12.5")
    monkeypatch.setenv("FUSIONSCOPE_WALL_SECOND", "1")
    out = io.StringIO()
    assert doctor.print_settings(Console(file=out, width=200))
    lines = [line.split() for line in out.getvalue().splitlines()]
    assert ["limits", "wall_seconds", "12.5", "environment"] in lines
    assert {words[1] for words in lines if len(words) > 3 and words[0] in GROUPS} == set(Settings.model_fields)
    assert "did you mean FUSIONSCOPE_WALL_SECONDS?" in out.getvalue()
    monkeypatch.setenv("FUSIONSCOPE_PORT", "many")
    assert not doctor.print_settings(Console(file=out))
    assert "FUSIONSCOPE_PORT" in out.getvalue()


def test_a_database_of_another_kind_is_refused_without_its_password() -> None:
    with pytest.raises(WrongSettings, match="begins with postgresql:// or sqlite:///, not with 'mysql'") as refused:
        Settings.load(database="mysql://me:hunter2@host/name")
    assert "hunter2" not in str(refused.value)


def test_a_secret_is_never_shown() -> None:
    class WithSecret(Settings):
        password: SecretStr | None = Field(default=None, description="x")

    settings = WithSecret(password="hunter2")  # type: ignore[arg-type]
    assert "hunter2" not in shown(settings.password) + repr(settings) + str(settings) + settings.model_dump_json()


def test_no_variable_of_the_compiler_is_taken_for_a_mistake() -> None:
    assert unknown_variables(OTHER_VARIABLES) == {}
    sources = "\n".join(
        path.read_text() for room in ("compiler", "server", "bench", "tools") for path in (ROOT / room).rglob("*.py")
    )
    read = set(re.findall(r"\"(FUSIONSCOPE_[A-Z_]+)\"", sources)) - {ENVIRONMENT_PREFIX}
    assert unknown_variables(read) == {}


def test_a_name_is_suggested_that_is_near_beside_what_all_begin_with() -> None:
    near, far = f"{ENVIRONMENT_PREFIX}SLOT", f"{ENVIRONMENT_PREFIX}XYZZY"
    assert unknown_variables([near, far]) == {near: f"{ENVIRONMENT_PREFIX}SLOTS", far: ""}


def test_a_cluster_finds_its_workers_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    assert Settings().needs_own_worker()
    assert not Settings(workers=("/run/worker.sock",)).needs_own_worker()
    monkeypatch.setattr("importlib.util.find_spec", lambda name: object())
    assert not Settings(executor="ray").needs_own_worker()
    assert not Settings(read_only=True).needs_own_worker()
    with pytest.raises(WrongSettings, match="executor=ray or workers"):
        Settings.load(executor="ray", workers=("/run/worker.sock",))


def test_a_cluster_without_ray_is_told_how_to_get_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(WrongSettings, match=r"pip install '\.\[ray\]'. in the checkout"):
        Settings.load(executor="ray")


def test_the_address_of_a_cluster_is_that_of_its_head() -> None:
    with pytest.raises(WrongSettings, match="host:port"):
        Settings.load(ray_address="ray://head:10001")
