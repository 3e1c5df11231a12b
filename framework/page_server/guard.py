"""What stands before every request: who may ask (Host, Origin), how much (size), and what a browser may do with it.

A page on the internet can make a browser send requests to this machine, and DNS rebinding can even let it read the
answers. Such requests carry the foreign name in ``Host`` or ``Origin``: names that are not ours are refused.
"""

from __future__ import annotations

import ipaddress
import json
from typing import Any
from urllib.parse import urlsplit

LARGEST_BODY = 16_384
OWN_NAMES = frozenset({"localhost"})
HEADERS = (
    (b"content-security-policy", b"default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; "
     b"connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"),
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"no-referrer"),
    (b"cache-control", b"no-store"),
)  # fmt: skip


class Guard:
    """ASGI middleware."""

    def __init__(self, app: Any, names: frozenset[str] = frozenset(), public: bool = False) -> None:
        self._app, self._names, self._public = app, OWN_NAMES | names, public

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        headers = {key.lower(): value.decode("latin-1") for key, value in scope["headers"]}
        refusal = self._refusal(scope["method"], headers)
        if refusal is not None:
            await _answer(send, *refusal)
            return
        body = await _read(receive)
        if body is None:
            await _answer(send, *_too_large())
            return

        async def replayed() -> Any:
            nonlocal body
            told, body = body, None
            return {"type": "http.request", "body": told} if told is not None else await receive()

        async def headed(message: Any) -> None:
            if message["type"] == "http.response.start":
                message["headers"] = [*message.get("headers", []), *HEADERS]
            await send(message)

        await self._app(scope, replayed, headed)

    def _refusal(self, method: str, headers: dict[bytes, str]) -> tuple[int, str] | None:
        host = headers.get(b"host", "")
        if not self._ours(host):
            return 400, "this page answers only to its own address; type the one that framework.play printed"
        origin = headers.get(b"origin")
        if origin is not None and urlsplit(origin).netloc.lower() != host.lower():
            return 403, "another page sent this request; only the page itself may"
        length = headers.get(b"content-length", "0")
        if not length.isdigit() or int(length) > LARGEST_BODY:
            return _too_large()
        if method == "POST" and headers.get(b"content-type", "").split(";")[0].strip() != "application/json":
            return 415, "a request must be JSON"
        return None

    def _ours(self, host: str) -> bool:
        """A loopback address or a name we were given; any address if we are to be public. Never a foreign name."""
        try:
            name = (urlsplit(f"//{host}").hostname or "").lower()
        except ValueError:
            return False
        if name in self._names:
            return True
        try:
            address = ipaddress.ip_address(name)
        except ValueError:
            return False
        return self._public or address.is_loopback


async def _read(receive: Any) -> bytes | None:
    """The whole body, whatever length was announced; None as soon as it is too large."""
    body: bytes = b""
    while True:
        message = await receive()
        body += bytes(message.get("body", b""))
        if len(body) > LARGEST_BODY:
            return None
        if not message.get("more_body"):
            return body


def _too_large() -> tuple[int, str]:
    return 413, f"the request is too large: at most {LARGEST_BODY:,} bytes"


async def _answer(send: Any, status: int, message: str) -> None:
    body = json.dumps({"error": message}).encode()
    kind = [(b"content-type", b"application/json"), (b"content-length", str(len(body)).encode()), *HEADERS]
    await send({"type": "http.response.start", "status": status, "headers": kind})
    await send({"type": "http.response.body", "body": body})
