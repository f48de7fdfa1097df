"""The description of the API at /api/v1/openapi.json: what FastAPI finds in the routes, and what it cannot know.

FastAPI writes the schema of an answer under the media type of the route. Problems have another one, so the routes
refer to their schema (`problems.problem_answers`), and it is defined here.
"""

from __future__ import annotations

from typing import Any

from fastapi import FastAPI
from fastapi.security import HTTPBearer

from server.problems import ProblemBody

PATH = "/api/v1/openapi.json"

DESCRIPTION = """\
Post a snippet of PyTorch code to `/api/v1/explorations`, follow its events, and read its report.

Every error is a problem document (RFC 9457). Every answer has an `X-Request-ID`. If the service has tokens, send one
as `Authorization: Bearer ...`. An answer of 429 has the seconds to wait in `Retry-After`. HEAD is answered as GET,
except for events.
"""

TAGS = [
    {"name": "explorations", "description": "Explore a snippet, follow it, read its report."},
    {
        "name": "catalogue",
        "description": "Data that depends on no snippet: versions, devices, examples, reasons.",
    },
    {"name": "health", "description": "For operators of the service."},
]


TOKEN_SCHEME = HTTPBearer(
    scheme_name="token",
    auto_error=False,
    description="A token from `fusionscope token`. Only a service with tokens requires one.",
)
"""For the description alone: `AdmissionMiddleware` is what looks at tokens."""


class DescribedAPI(FastAPI):
    """FastAPI, with the schema of problems in its description."""

    def openapi(self) -> dict[str, Any]:
        if self.openapi_schema is None:
            description = super().openapi()
            schema = ProblemBody.model_json_schema(ref_template="#/components/schemas/{model}")
            schemas = description.setdefault("components", {}).setdefault("schemas", {})
            schemas.update(schema.pop("$defs", {}))
            schemas["ProblemBody"] = schema
        assert self.openapi_schema is not None
        return self.openapi_schema
