"""/session: where a person gives the page a token. A form without a script.

The token becomes a cookie that scripts cannot read. Of other sites, browsers send it with links that a person follows,
and with nothing that changes anything.
"""

from __future__ import annotations

import html
import re
from typing import Annotated
from urllib.parse import parse_qs

from fastapi import APIRouter, Query, Request
from fastapi.responses import RedirectResponse, Response

from server.clients import COOKIE, SIGN_IN, Clients
from server.problems import Problem
from server.small_page import small_page

router = APIRouter(include_in_schema=False)

_MOST_FORM_BYTES = 4096
_OWN_PATH = re.compile(r"/(x/[0-9a-f]{1,64})?")
_DAYS_90 = 90 * 24 * 3600

_FORM = """<p>This server needs a token. Its operator makes one with <code>fusionscope token NAME</code>.</p>
<p role="alert">{told}</p>
<form method="post" action="{action}">
<label>Token <input type="password" name="token" autocomplete="current-password" required autofocus></label>
<input type="hidden" name="next" value="{following}">
<button>Sign in</button>
</form>"""


def _form(told: str, following: str, status: int) -> Response:
    text = _FORM.format(action=SIGN_IN, told=html.escape(told), following=html.escape(following))
    return small_page("sign in", text, status, {"Cache-Control": "no-store"})


@router.get(SIGN_IN)
async def sign_in_form(
    request: Request, following: Annotated[str, Query(alias="next", max_length=200)] = "/"
) -> Response:
    """The form, or the page itself where nobody needs a token."""
    clients: Clients = request.app.state.clients
    if not clients.need_tokens:
        return RedirectResponse("/", 303)
    return _form("", following, 200)


@router.post(SIGN_IN)
async def sign_in(request: Request) -> Response:
    """Takes the form. Answers with the page that was asked for at first, or with the form and what was wrong."""
    fields = await _fields(request)
    clients: Clients = request.app.state.clients
    token, following = fields.get("token", ""), fields.get("next", "/")
    if not clients.accepts(token):
        return _form("This token is not accepted: it is unknown, was revoked, or has expired.", following, 401)
    # Only to pages of our own: anything else would make this form a way to send people elsewhere.
    answer = RedirectResponse(following if _OWN_PATH.fullmatch(following) else "/", 303)
    answer.set_cookie(
        COOKIE, token, max_age=_DAYS_90, httponly=True, samesite="lax", secure=request.url.scheme == "https"
    )
    return answer


@router.delete(SIGN_IN)
async def sign_out() -> Response:
    answer = Response(status_code=204)
    answer.delete_cookie(COOKIE, httponly=True, samesite="lax")
    return answer


async def _fields(request: Request) -> dict[str, str]:
    body = b""
    async for chunk in request.stream():
        body += chunk
        if len(body) > _MOST_FORM_BYTES:
            raise Problem(413, f"The form has more than {_MOST_FORM_BYTES} bytes.")
    try:
        fields = parse_qs(body.decode("utf-8", "replace"), max_num_fields=4)
    except ValueError:
        raise Problem(400, f"The form has more than its two fields, token and next. Load {SIGN_IN} again.") from None
    return {name: values[0] for name, values in fields.items()}
