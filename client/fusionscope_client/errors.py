"""What is raised. A snippet that fails is none of it: its report says what happened and keeps what there is."""

from __future__ import annotations


class FusionscopeError(Exception):
    """Any of the errors below."""


class Unreachable(FusionscopeError):
    """No service answered at the address."""


class NotASource(FusionscopeError):
    """What was given to be explored has no text that can be sent."""


class ServiceProblem(FusionscopeError):
    """The service refused a request. `status` is the HTTP status, `detail` its sentence, `request_id` what its log
    calls the request, `errors` each fault as (where, message)."""

    def __init__(
        self, status: int, detail: str, request_id: str = "", errors: tuple[tuple[str, str], ...] = ()
    ) -> None:
        self.status, self.detail, self.request_id, self.errors = status, detail, request_id, errors
        faults = "".join(f"\n  {where}: {message}" for where, message in errors)
        super().__init__(f"{detail}{faults}")
