"""Everything about the service that a person can set: three groups of settings, each a frozen model.

`LimitSettings` are what one exploration may use, known to both programs. `WebSettings` and `WorkerSettings` add what
one program alone needs, so that a worker never holds a secret of web's. `Settings` is all of them, for `fusionscope
serve` and for whoever lists them. Names are unique over all groups.

Each setting has a default that suits one person on one machine. A value is taken from the first of these that has one:
the command line, the environment variable `FUSIONSCOPE_` plus the name in capitals, and the file that
`FUSIONSCOPE_SETTINGS` names. `docs/settings.md` lists every setting; a test fails when the two disagree.
"""

from __future__ import annotations

import difflib
import importlib.util
import ipaddress
import os
import re
import tempfile
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Annotated, Any, Literal, Self

from pydantic import AfterValidator, BeforeValidator, Field, SecretStr, ValidationError, model_validator
from pydantic_settings import (
    BaseSettings,
    DotEnvSettingsSource,
    InitSettingsSource,
    NoDecode,
    PydanticBaseSettingsSource,
    SettingsConfigDict,
    SettingsError,
)

from compiler.wording import said_of_fault

ENVIRONMENT_PREFIX = "FUSIONSCOPE_"
FILE_VARIABLE = "FUSIONSCOPE_SETTINGS"
TRUST = "yes-i-trust-every-snippet"
MAX_SOURCE_BYTES = 64 * 1024
"""Largest snippet accepted. Part of the API's contract, so not a setting."""

OTHER_VARIABLES = frozenset(
    {
        FILE_VARIABLE,
        "FUSIONSCOPE_CACHE_DIR",
        "FUSIONSCOPE_CACHE_MIB",
        "FUSIONSCOPE_CHROMIUM",
        "FUSIONSCOPE_COMMIT",
        "FUSIONSCOPE_COMPILE_HELPERS",
        "FUSIONSCOPE_DEVICE_RECORD",
        "FUSIONSCOPE_INSTRUCTION_SET",
        "FUSIONSCOPE_TOKEN",
        "FUSIONSCOPE_URL",
        "FUSIONSCOPE_WITHOUT",
    }
)
"""What the compiler, the clients, the tests and the tools read themselves."""

Origin = Literal["command line", "environment", "file", "default"]


class WrongSettings(Exception):
    """Settings that cannot be used; the message has one sentence for each fault and no value of a secret."""


def _split(value: object) -> object:
    """A list as an environment variable writes it: with commas between, and space where one likes."""
    return tuple(part.strip() for part in value.split(",") if part.strip()) if isinstance(value, str) else value


def _is_origin(text: str) -> str:
    """An origin as browsers send it. What else there is would become part of a header."""
    if text != "*" and not re.fullmatch(r"https?://[a-z0-9.-]+(:\d{1,5})?|https?://\[[0-9a-f:]+\](:\d{1,5})?", text):
        raise ValueError("a site is written as https://name.example, in small letters and without a path")
    return text


def _is_host(text: str) -> str:
    """A name as the Host header has it, without its port: any other one would match nothing."""
    if text != "*" and not re.fullmatch(r"[A-Za-z0-9._-]*[A-Za-z0-9_-]|[0-9A-Fa-f:]+", text):
        raise ValueError("a name is written as fusion.example.org, without https://, port or path")
    return text


def _is_network(text: str) -> str:
    """An address or network, as in 10.0.0.0/8: any other one would match nothing."""
    if text != "*":
        ipaddress.ip_network(text)
    return text


Names = Annotated[tuple[str, ...], NoDecode, BeforeValidator(_split)]
Hosts = Annotated[tuple[Annotated[str, AfterValidator(_is_host)], ...], NoDecode, BeforeValidator(_split)]
Networks = Annotated[tuple[Annotated[str, AfterValidator(_is_network)], ...], NoDecode, BeforeValidator(_split)]
Origins = Annotated[tuple[Annotated[str, AfterValidator(_is_origin)], ...], NoDecode, BeforeValidator(_split)]


class LimitSettings(BaseSettings):
    """What one exploration may use, and how both programs log. Sizes are in the unit that the name ends in, times in
    seconds."""

    model_config = SettingsConfigDict(
        env_prefix=ENVIRONMENT_PREFIX,
        frozen=True,
        extra="forbid",
        hide_input_in_errors=True,
        # What is counted in whole units by the kernel has no infinity.
        allow_inf_nan=False,
    )

    wall_seconds: float = Field(default=60.0, gt=0, description="Longest time one exploration may run on a CPU.")
    gpu_wall_seconds: float = Field(default=60.0, gt=0, description="Longest time one exploration may run on a GPU.")
    memory_gib: float = Field(
        default=8.0, gt=0, description="Memory that all processes of one exploration may use together."
    )
    gpu_memory_gib: float = Field(
        default=32.0, gt=0, description="The same on a GPU; CUDA reserves a lot of host memory for itself."
    )
    processes: int = Field(default=256, ge=16, description="Processes and threads that one exploration may have.")
    open_files: int = Field(default=1024, ge=64, description="Files that one process of an exploration may hold open.")
    file_mib: int = Field(default=256, ge=1, description="Largest file that an exploration may write.")
    output_kib: int = Field(
        default=1024,
        ge=1,
        description="Output past the report that stops an exploration. What a snippet writes while it runs is in the "
        "report, up to 64 KiB, and stops nothing.",
    )
    report_mib: int = Field(default=32, ge=1, description="Largest report accepted from a worker.")
    log_format: Literal["auto", "console", "json"] = Field(
        default="auto",
        description="Form of log lines: `console` is coloured text; `auto` is `console` in a terminal and `json` "
        "elsewhere.",
    )

    @classmethod
    def load(cls, **overrides: Any) -> Self:
        """Reads every setting; an override is the command line's word, and one that is None is none.

        Raises `WrongSettings`.
        """
        try:
            return cls(**{name: value for name, value in overrides.items() if value is not None})
        except ValidationError as invalid:
            raise WrongSettings("\n".join(_told(error) for error in invalid.errors())) from None
        except SettingsError as unreadable:
            raise WrongSettings(f"{unreadable}.") from None

    def origin(self, name: str, overridden: frozenset[str] = frozenset()) -> Origin:
        """Where the value of the setting `name` came from; `overridden` names what the command line gave."""
        if name in overridden:
            return "command line"
        if ENVIRONMENT_PREFIX + name.upper() in os.environ:
            return "environment"
        return "file" if name in self.model_fields_set else "default"

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],
        init_settings: PydanticBaseSettingsSource,
        env_settings: PydanticBaseSettingsSource,
        dotenv_settings: PydanticBaseSettingsSource,
        file_secret_settings: PydanticBaseSettingsSource,
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        """The sources, the strongest first. Called by pydantic-settings."""
        named = os.environ.get(FILE_VARIABLE)
        files = (_file(settings_cls, Path(named)),) if named else ()
        return (init_settings, env_settings, *files)


class WebSettings(LimitSettings):
    """What the program web needs."""

    host: str = Field(default="127.0.0.1", description="Address to listen on.")
    port: int = Field(default=8000, ge=0, le=65535, description="Port to listen on; 0 lets the system choose one.")
    data: Path | None = Field(
        default=None,
        description="Folder of the store. By default `~/.local/share/fusionscope`, or a temporary folder where the "
        "home folder cannot be written.",
    )
    static: Path | None = Field(
        default=None, description="Folder of the built page. By default `server/static`, where `npm run build` puts it."
    )
    allowed_hosts: Hosts = Field(
        default=(),
        description="Names that browsers may call this server by, separated by commas, such as `fusion.example.org`. "
        "`localhost`, IP addresses and `host` are always accepted. `*` accepts every name, and with it every web site "
        "that points its own name at this machine.",
    )
    cors_origins: Origins = Field(
        default=(),
        description="Other sites whose scripts may use the API, separated by commas, such as "
        "`https://notes.example.org`. `*` allows all of them, and is refused with tokens.",
    )
    frame_ancestors: Origins = Field(
        default=(),
        description="Other sites that may show `/embed/{id}` in a frame, separated by commas, such as "
        "`https://wiki.example.org`. Nothing else of this server is ever shown in a frame.",
    )
    tokens: Path | None = Field(
        default=None,
        description="File of tokens, which `fusionscope token` writes. With it every request needs a token, except for "
        "health, the place to sign in, and the files of the page and of the documentation. Without it none does, which "
        "suits a service that only its own machine can reach.",
    )
    public_reads: bool = Field(
        default=False,
        description="Whether explorations and the page can be read without a token although there are tokens.",
    )
    read_only: bool = Field(
        default=False, description="Whether nothing new is explored. Stored explorations are still served."
    )
    requests_per_minute: int = Field(
        default=600,
        ge=0,
        description="Requests a minute of one address without a token; 0 for any number. This machine's own are not "
        "counted. A token has a quota of its own.",
    )
    explorations_per_hour: int = Field(default=120, ge=0, description="The same for new explorations an hour.")
    jobs_at_once: int = Field(
        default=8, ge=0, description="The same for explorations that wait or run at the same time."
    )
    connections_at_once: int = Field(
        default=256,
        ge=0,
        description="Connections that one address may have open; 0 for any number. Those of this machine and of "
        "`trusted_proxies` are not counted.",
    )
    trusted_proxies: Networks = Field(
        default=("127.0.0.1",),
        description="Addresses of proxies, separated by commas, whose headers `X-Forwarded-For` and "
        "`X-Forwarded-Proto` are believed.",
    )
    log_requests: bool = Field(default=False, description="Whether each request is logged, not only failures.")
    database: SecretStr | None = Field(
        default=None,
        description="URL of a database that several webs may share, such as `postgresql://user:password@host/name`. By "
        "default a file of SQLite in `data`.",
    )
    database_busy_seconds: float = Field(
        default=5.0, gt=0, description="How long a request waits for a database that is locked or gone."
    )
    workers: Names = Field(
        default=(),
        description="Paths of the Unix sockets of workers, separated by commas. `fusionscope serve` starts its own "
        "worker if none is named.",
    )
    executor: Literal["local", "ray"] = Field(
        default="local",
        description="Where explorations run: `local`, on the workers of this machine, or `ray`, on those of a Ray "
        "cluster, which needs the extra `fusionscope[ray]` (see [many machines](service.md#many-machines)).",
    )
    ray_address: str = Field(
        default="auto",
        description="Address of the head of the Ray cluster, as `host:port`. By default the cluster that this machine "
        "is a node of.",
    )
    ray_token: Path | None = Field(
        default=None,
        description="File of the Ray cluster's token. By default Ray's own place for it, `~/.ray/auth_token`.",
    )
    profiles: Path | None = Field(
        default=None,
        description="JSON file of the profiles of the workers' devices, as `fusionscope worker --write-profile` writes "
        "it. By default the profile of this machine.",
    )
    queue_limit: int = Field(default=32, ge=1, description="Explorations that may wait; the next one is answered 429.")
    client_queue_limit: int = Field(
        default=16, ge=1, description="Explorations that one client may have waiting, so others find room."
    )
    unwanted_seconds: float = Field(
        default=600.0, gt=0, description="A waiting exploration is dropped when nobody has asked for it for this long."
    )
    lease_seconds: float = Field(
        default=15.0,
        ge=1,
        description="A running exploration is run again by another web when its own web is silent for this long.",
    )
    attempts: int = Field(default=3, ge=1, description="Attempts for one exploration, if its worker is lost.")
    keep_days: float = Field(default=0.0, ge=0, description="Days that finished explorations are kept; 0 keeps them.")
    keep_mib: int = Field(
        default=4096, ge=0, description="Disk space of stored explorations; the oldest go first. 0 sets no limit."
    )
    answers_mib: int = Field(default=128, ge=0, description="Memory for stored explorations that are read often.")

    @model_validator(mode="after")
    def _tokens_are_not_for_every_site(self) -> Self:
        if self.tokens is not None and "*" in self.cors_origins:
            raise ValueError("with tokens, name the sites that may use them in cors_origins instead of *")
        return self

    @model_validator(mode="after")
    def _database_is_of_a_known_kind(self) -> Self:
        # Its name alone is repeated: the rest holds a password.
        kind = "sqlite" if self.database is None else self.database.get_secret_value().partition(":")[0]
        if kind.partition("+")[0] not in ("sqlite", "postgresql"):
            raise ValueError(f"database is a URL that begins with postgresql:// or sqlite:///, not with {kind[:20]!r}")
        return self

    @model_validator(mode="after")
    def _executor_can_be_had(self) -> Self:
        if self.executor == "ray" and self.workers:
            raise ValueError("the workers of a Ray cluster are found automatically: set either executor=ray or workers")
        if self.executor == "ray" and importlib.util.find_spec("ray") is None:
            raise ValueError("executor=ray needs Ray: install it with `pip install '.[ray]'` in the checkout")
        if self.ray_address.startswith("ray://"):
            raise ValueError(
                "ray_address is the address of the cluster's head, host:port, and not of a Ray Client server"
            )
        return self

    def needs_own_worker(self) -> bool:
        """Whether no worker is named that could run anything, and there may be something to run."""
        return self.executor == "local" and not self.workers and not self.read_only

    def warnings(self) -> list[str]:
        """What whoever runs the service should know about these settings, a sentence each."""
        found = []
        if not _is_loopback(self.host) and self.tokens is None:
            found.append(
                f"The service listens on {self.host} without tokens: whoever reaches it can run code in its sandbox. "
                "Make tokens with `fusionscope token NAME` and name their file in FUSIONSCOPE_TOKENS."
            )
        if "*" in self.allowed_hosts:
            found.append(
                "FUSIONSCOPE_ALLOWED_HOSTS is *: any web site can make its visitors' browsers use the service."
            )
        if "*" in self.cors_origins:
            found.append("FUSIONSCOPE_CORS_ORIGINS is *: any web site can use the service from its visitors' browsers.")
        return found

    def data_folder(self) -> Path:
        """The folder of the store, made when missing. Only a folder that was not named falls back to another. Raises
        `WrongSettings`."""
        if self.data is not None:
            try:
                self.data.mkdir(parents=True, exist_ok=True)
            except OSError as failure:
                raise WrongSettings(
                    f"The folder {self.data}, the setting data, cannot be made: {failure.strerror}."
                ) from None
            return self.data
        try:
            folder = Path.home() / ".local" / "share" / "fusionscope"
            folder.mkdir(parents=True, exist_ok=True)
            if os.access(folder, os.W_OK):
                return folder
        except (OSError, RuntimeError):
            pass
        return Path(tempfile.mkdtemp(prefix="fusionscope-data-"))

    def static_folder(self) -> Path:
        return self.static if self.static is not None else Path(__file__).parent / "static"

    def host_names(self) -> frozenset[str]:
        """The names that the Host header may carry besides localhost and IP addresses; `*` among them allows all."""
        return frozenset(name.lower() for name in (*self.allowed_hosts, self.host))


class WorkerSettings(LimitSettings):
    """What the program worker needs."""

    socket: Path | None = Field(
        default=None,
        description="Unix socket that the worker listens at. By default `fusionscope/worker.sock` in "
        "`$XDG_RUNTIME_DIR`, or in a folder of the user's own below the one for temporary files. "
        "The worker of `fusionscope serve` has a new one each time, whatever is set here.",
    )
    slots: int = Field(
        default=0, ge=0, le=1024, description="Explorations that run at the same time; 0 means 1 on a CPU, 4 on a GPU."
    )
    spares: int | None = Field(
        default=None,
        ge=0,
        le=64,
        description="Processes that wait, warm and confined, for the next exploration. By default 4 on a CPU, and on a "
        "GPU as many as `slots`.",
    )
    tier: Literal["A", "B", "trusted"] | None = Field(
        default=None,
        description="How snippets are confined: `A` (namespaces) or `B` (Landlock and seccomp). By default the first "
        "of the two that works here. If neither does, the worker refuses to start. `trusted` confines nothing and "
        "needs `trust_snippets`.",
    )
    trust_snippets: Literal["yes-i-trust-every-snippet"] | None = Field(
        default=None,
        description="The operator's consent, `yes-i-trust-every-snippet`, to run snippets with all the rights of the "
        "worker if no tier works.",
    )
    disk_mib: int = Field(default=1024, ge=16, description="Disk space of all files of one exploration.")
    shared_memory_mib: int = Field(
        default=256, ge=1, description="Space of one exploration in `/dev/shm`; it counts as memory."
    )
    threads: int = Field(
        default=0, ge=0, description="Threads of torch and of generated kernels on a CPU; 0 means one for each core."
    )

    def socket_path(self) -> Path:
        """Where the worker listens, if it was not told to listen elsewhere."""
        if self.socket is not None:
            return self.socket
        runtime = os.environ.get("XDG_RUNTIME_DIR")
        below = Path(runtime) / "fusionscope" if runtime else Path(tempfile.gettempdir()) / f"fusionscope-{os.getuid()}"
        return below / "worker.sock"


class Settings(WebSettings, WorkerSettings):
    """All settings: of `fusionscope serve`, which is both programs."""


GROUPS: Mapping[str, type[LimitSettings]] = {"limits": LimitSettings, "web": WebSettings, "worker": WorkerSettings}


def group(name: str) -> str:
    """The group that the setting `name` belongs to: "limits", "web" or "worker"."""
    return next(title for title, model in GROUPS.items() if name in model.model_fields)


def shown(value: object) -> str:
    """A setting's value for people, in the form that an environment variable takes; a secret is not shown."""
    if value is None or value == ():
        return "none"
    if isinstance(value, SecretStr):
        return "set, and secret"
    return ", ".join(map(str, value)) if isinstance(value, tuple) else str(value)


def unknown_variables(environment: Iterable[str]) -> dict[str, str]:
    """Names in `environment` that look like settings and are none, each with the nearest one that is, or ""."""
    known = OTHER_VARIABLES | {ENVIRONMENT_PREFIX + name.upper() for name in Settings.model_fields}
    # What all of them begin with makes no two of them alike.
    own = [name.removeprefix(ENVIRONMENT_PREFIX) for name in known if name.startswith(ENVIRONMENT_PREFIX)]
    found = (name for name in environment if name.startswith(ENVIRONMENT_PREFIX) and name not in known)
    nearest = {name: difflib.get_close_matches(name.removeprefix(ENVIRONMENT_PREFIX), own, 1) for name in sorted(found)}
    return {name: ENVIRONMENT_PREFIX + near[0] if near else "" for name, near in nearest.items()}


def _file(settings_cls: type[BaseSettings], path: Path) -> PydanticBaseSettingsSource:
    """The values in a file of settings: TOML by their names, or lines as those of the environment. Both programs may
    be given the same file, so what only the other one knows is passed over. Raises `SettingsError`."""
    if not path.is_file():
        raise SettingsError(f"The file {path}, which {FILE_VARIABLE} names, does not exist")
    if path.suffix != ".toml":
        try:
            lines = DotEnvSettingsSource(settings_cls, env_file=path, dotenv_filtering="only_existing")
        except (OSError, ValueError) as failure:
            raise _unreadable(path, failure) from None
        for name, near in unknown_variables(map(str.upper, lines.env_vars)).items():
            raise _no_setting(path, name, near)
        return lines
    values = _toml(path)
    return InitSettingsSource(settings_cls, {k: v for k, v in values.items() if k in settings_cls.model_fields})


def _unreadable(path: Path, failure: Exception) -> SettingsError:
    return SettingsError(f"The file {path}, which {FILE_VARIABLE} names, cannot be read: {failure}")


def _toml(path: Path) -> dict[str, Any]:
    import tomllib

    try:
        values = tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as failure:
        raise _unreadable(path, failure) from None
    for name in values:
        if name not in Settings.model_fields:
            raise _no_setting(path, name, *difflib.get_close_matches(name, Settings.model_fields, 1))
    return values


def _no_setting(path: Path, name: str, near: str = "") -> SettingsError:
    hint = f"; perhaps {near} is meant" if near else ", see docs/settings.md"
    return SettingsError(f"The file {path} sets {name}, which is no setting{hint}")


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def _told(error: Mapping[str, Any]) -> str:
    said = said_of_fault(error)
    if not error["loc"]:
        return f"The settings do not go together: {said}."
    name = str(error["loc"][0])
    return f"The setting {name} ({ENVIRONMENT_PREFIX}{name.upper()}) is not valid: {said}."
