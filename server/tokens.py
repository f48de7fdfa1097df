"""The file of tokens: who may use the service, and how much.

A token is 32 random bytes, so nobody finds it by trying, and one round of SHA-256 is enough to keep it: slow hashes are
for passwords that people choose. The file has only the hashes. It is written by `fusionscope token` and read again when
it has changed, so a token that was revoked there is refused within seconds, without a restart.
"""

from __future__ import annotations

import hashlib
import hmac
import os
import secrets
import tempfile
import time
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import structlog
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from compiler.wording import counted, said_of_fault

PREFIX = "fusionscope_"
"""By which a person, and whatever looks for secrets in files, knows a token."""

_CHECK_SECONDS = 1.0

log = structlog.get_logger(__name__)


class WrongTokens(Exception):
    """The file of tokens cannot be used; the message says why."""


class Quota(BaseModel):
    """How much a client may ask for; 0 is as much as it likes."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    requests_per_minute: int = Field(default=0, ge=0, description="Requests of any kind within 60 seconds.")
    explorations_per_hour: int = Field(default=0, ge=0, description="New explorations within 3600 seconds.")
    jobs_at_once: int = Field(default=0, ge=0, description="Explorations that wait or run at the same time.")

    def quota_in_words(self) -> str:
        bounds = (
            (self.requests_per_minute, "request", "a minute"),
            (self.explorations_per_hour, "exploration", "an hour"),
            (self.jobs_at_once, "job", "at once"),
        )
        return ", ".join(
            f"{counted(amount, what) if amount else f'any number of {what}s'} {when}" for amount, what, when in bounds
        )


class Token(Quota):
    """One line of the file: a token's name, hash and quota."""

    name: str = Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]{0,39}$", description="Whose it is; logs name it.")
    sha256: str = Field(pattern=r"^[0-9a-f]{64}$", description="Of the token's text.")
    created: datetime = Field(description="When it was made.")
    expires: datetime | None = Field(default=None, description="When it ends to be accepted; null for never.")


class _File(BaseModel):
    model_config = ConfigDict(extra="forbid")

    tokens: list[Token] = []


class TokenFile:
    """The tokens in the file at `path`."""

    def __init__(self, path: Path) -> None:
        """Reads the file. Raises `WrongTokens`."""
        self._path = path
        self._tokens: tuple[Token, ...] = tuple(_read(path))
        self._changed_at = _change_of(path)
        self._checked_at = time.monotonic()

    def holder(self, presented: str) -> Token | None:
        """The token whose text was presented, unless it has expired.

        How long it takes says nothing of what is right about a wrong one: hashes are compared, all of them, whole.
        """
        self._refresh()
        presented_hash = _hash(presented)
        found = None
        for token in self._tokens:
            if hmac.compare_digest(token.sha256, presented_hash):
                found = token
        return None if found is None or _is_over(found) else found

    def _refresh(self) -> None:
        """Reads a file that has changed. One that has become unreadable changes nothing, and is told in the log."""
        now = time.monotonic()
        if now - self._checked_at < _CHECK_SECONDS:
            return
        self._checked_at = now
        changed_at = _change_of(self._path)
        if changed_at == self._changed_at:
            return
        self._changed_at = changed_at
        try:
            self._tokens = tuple(_read(self._path))
        except WrongTokens as wrong:
            log.error("tokens_unreadable", reason=str(wrong), kept=len(self._tokens))


def make(path: Path, name: str, quota: Quota, expires: datetime | None = None) -> str:
    """Adds a token to the file, which is made where it is missing, and returns its text, which nothing keeps.

    Raises `WrongTokens`, also where the name is taken.
    """
    tokens = _read(path) if path.exists() else []
    if any(token.name == name for token in tokens):
        raise WrongTokens(f"There is a token called {name} already; revoke it first, or choose another name.")
    text = PREFIX + secrets.token_urlsafe(32)
    try:
        token = Token(name=name, sha256=_hash(text), created=_now(), expires=expires, **quota.model_dump())
    except ValidationError as invalid:
        error = invalid.errors(include_url=False)[0]
        raise WrongTokens(f"The token's {error['loc'][0]} is not valid: {_said_of(error)}.") from None
    _write(path, [*tokens, token])
    return text


def revoke(path: Path, name: str) -> None:
    """Takes a token out of the file. Raises `WrongTokens`."""
    tokens = _read(path)
    left = [token for token in tokens if token.name != name]
    if len(left) == len(tokens):
        names = ", ".join(token.name for token in tokens) or "none"
        raise WrongTokens(f"There is no token called {name}. There are: {names}.")
    _write(path, left)


def listed(path: Path) -> list[Token]:
    """All tokens of the file. Raises `WrongTokens`."""
    return _read(path)


def _read(path: Path) -> list[Token]:
    try:
        return _File.model_validate_json(path.read_bytes()).tokens
    except OSError as failure:
        raise WrongTokens(f"The file of tokens {path} cannot be read: {failure.strerror}.") from None
    except ValidationError as invalid:
        error = invalid.errors(include_url=False, include_input=False)[0]
        where = ".".join(str(part) for part in error["loc"])
        raise WrongTokens(
            f"The file of tokens {path} is not valid at {where or 'its top'}: {_said_of(error)}."
        ) from None


def _write(path: Path, tokens: list[Token]) -> None:
    """Replaces the file in one step, readable by its owner alone. Raises `WrongTokens`."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=path.name)
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            file.write(_File(tokens=tokens).model_dump_json(indent=2) + "\n")
            file.flush()
            os.fsync(file.fileno())
        if path.exists():
            # Whoever runs the service may have given the file to the user that web runs as.
            before = path.stat()
            os.chmod(temporary, before.st_mode & 0o777)
            if (before.st_uid, before.st_gid) != (os.geteuid(), os.getegid()):
                os.chown(temporary, before.st_uid, before.st_gid)
        os.replace(temporary, path)
    except OSError as failure:
        raise WrongTokens(f"The file of tokens {path} cannot be written: {failure.strerror}.") from None


def _hash(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def _now() -> datetime:
    return datetime.now(UTC).replace(microsecond=0)


def _is_over(token: Token) -> bool:
    if token.expires is None:
        return False
    ends = token.expires if token.expires.tzinfo is not None else token.expires.replace(tzinfo=UTC)
    return ends <= datetime.now(UTC)


def _change_of(path: Path) -> tuple[int, int, int] | None:
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_ino, found.st_mtime_ns, found.st_size


def _said_of(error: Mapping[str, Any]) -> str:
    if error["type"] == "string_pattern_mismatch" and error["loc"][-1] == "name":
        return "it has up to 40 letters, digits, dots, dashes and underscores, and begins with a letter or a digit"
    return said_of_fault(error)
