"""What every request must show before a screen is asked: its host, its session, and where it comes from."""

from __future__ import annotations

import time
from asyncio import CancelledError
from collections.abc import Awaitable, Callable, MutableMapping
from hmac import compare_digest
from secrets import token_hex, token_urlsafe
from typing import Any
from urllib.parse import parse_qs

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
Screens = Callable[[Scope, Receive, Send], Awaitable[None]]

TOKEN_BYTES = 32
"""Bytes of the token: 256 bits."""

CONTENT_SECURITY_POLICY = (
    "default-src 'none'; style-src 'self'; script-src 'self'; img-src 'self'; connect-src 'self';"
    " form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)
"""What a screen may load: files of this server. Another policy may stand in a response that has one."""

HEADERS = {
    "cache-control": "no-store",
    "referrer-policy": "same-origin",
    "x-frame-options": "DENY",
    "x-content-type-options": "nosniff",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
}
"""Sent with every response: browsers keep no copy, name no address to others, and frame nothing.

The referrer policy is not ``no-referrer``: then browsers send ``Origin: null`` with our own forms too. We
would have to accept what a sandboxed frame of any page sends, and rely on ``Sec-Fetch-Site`` alone. With
``same-origin`` no other origin is given a referrer either, and a form must show our origin.
"""

OWN = ("content-security-policy", "cross-origin-opener-policy")
"""The headers of which a response may have another value: a page in a sandbox has."""

ENTRANCE = b"""<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta http-equiv="refresh" content="0; url=choose">
<link rel="icon" href="icon.svg">
<title>privsyn</title>
<main><h1>privsyn</h1><p><a href="choose">Choose a table</a></p></main>
</html>
"""

REFUSED = (
    b"privsyn: refused. Go on in the browser that opened the printed address first; to use another one, end"
    b" privsyn app with Ctrl-C in its terminal, and start it again."
)
"""The text of every refusal. It does not say which check failed."""


class Guard:
    """ASGI middleware that lets the requests of one browser through, and refuses all others.

    - The host must be 127.0.0.1 or localhost with our port. A page elsewhere whose name is rebound to this
      machine has another host.
    - The printed address has a token. The first visit exchanges it for a cookie, and it works no more: one
      browser has the session. The cookie is sent to no script and with no request from another site. Browsers
      do not separate cookies by port, so its path and its name are random: a server of somebody else on this
      machine is asked for other paths and never receives it, and cannot set a second one of that name.
    - A request that changes something must come from our own origin. Any request that says that another
      origin caused it is refused.

    Parameters
    ----------
    screens : ASGI application
    port : int

    Attributes
    ----------
    path : str
        The random first part of all paths.
    token : str
        The token of the printed address; empty once it was exchanged.
    """

    def __init__(self, screens: Screens, port: int) -> None:
        self.screens = screens
        self.path, self.token = f"/{token_hex(TOKEN_BYTES // 2)}", token_urlsafe(TOKEN_BYTES)
        self._hosts = {f"127.0.0.1:{port}", f"localhost:{port}"}
        self._cookie, self._session = f"privsyn-{token_hex(TOKEN_BYTES // 4)}", token_urlsafe(TOKEN_BYTES)
        self._active, self._last = 0, time.monotonic()

    @property
    def entrance(self) -> str:
        """The path with the token, for the printed address."""
        return f"{self.path}/?token={self.token}"

    @property
    def idle(self) -> float:
        """Seconds since the last request that was let through has ended; 0 during one."""
        return 0.0 if self._active else time.monotonic() - self._last

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request, or refuse it. No error reaches the server, whose log could quote a request."""
        if scope["type"] == "lifespan":
            await self.screens(scope, receive, send)
            return
        if scope["type"] != "http":  # no screen uses a web socket
            return
        begun = False

        async def with_headers(message: Message) -> None:
            nonlocal begun
            if message["type"] == "http.response.start":
                begun = True
                message["headers"] = _with_ours(message.get("headers", []))
            await send(message)

        try:
            await self._answer(scope, receive, with_headers)
        except (Exception, CancelledError):  # a text may quote a cell; cancelled when the server stops
            if not begun:
                await _plain(with_headers, 500, b"privsyn: internal error; please report it")

    async def _answer(self, scope: Scope, receive: Receive, send: Send) -> None:
        headers: dict[str, list[str]] = {}
        for name, value in scope["headers"]:
            headers.setdefault(name.decode("latin-1").lower(), []).append(value.decode("latin-1"))
        path = scope["path"]
        hosts = headers.get("host", [])
        if len(hosts) != 1 or hosts[0] not in self._hosts or not path.startswith(f"{self.path}/"):
            await _plain(send, 403, REFUSED)
        elif self._is_ours(scope, headers, f"http://{hosts[0]}") and self._knows(headers):
            self._active += 1
            try:
                await self.screens(scope, receive, send)
            finally:
                self._active, self._last = self._active - 1, time.monotonic()
        elif path == f"{self.path}/" and scope["method"] == "GET" and self._takes_token(scope):
            await self._let_in(send)  # a file that only the owner can read may lead here: another origin
        elif path == f"{self.path}/" and scope["method"] == "GET":
            # A file or another site caused this visit, so no cookie came with it; with the next one it comes.
            await _plain(send, 403, ENTRANCE, b"text/html")
        else:
            await _plain(send, 403, REFUSED)

    def _is_ours(self, scope: Scope, headers: dict[str, list[str]], origin: str) -> bool:
        """Return whether no other origin caused the request."""
        if any(value != origin for value in headers.get("origin", [])):
            return False
        if any(value not in ("same-origin", "none") for value in headers.get("sec-fetch-site", [])):
            return False
        reading = scope["method"] in ("GET", "HEAD")
        return reading or (scope["method"] == "POST" and headers.get("origin") == [origin])

    def _knows(self, headers: dict[str, list[str]]) -> bool:
        """Return whether the request has the cookie of the session, once.

        Only a server that knows its name and path could have set a second one, so two are refused. We read
        the header ourselves: Python's reader stops at a cookie of somebody else that it does not like.
        """
        pairs = [pair.strip() for line in headers.get("cookie", []) for pair in line.split(";")]
        cookies = [
            value for name, _, value in (pair.partition("=") for pair in pairs) if name == self._cookie
        ]
        if self.token or len(cookies) != 1:
            return False
        return compare_digest(cookies[0].encode(), self._session.encode())

    def _takes_token(self, scope: Scope) -> bool:
        token = parse_qs(scope["query_string"].decode("latin-1")).get("token", [""])[0]
        if not self.token or not compare_digest(token.encode(), self.token.encode()):
            return False
        self.token, self._last = "", time.monotonic()
        return True

    async def _let_in(self, send: Send) -> None:
        """Set the cookie, and lead to the first screen by an address without the token.

        A page of ours leads there and no redirect: a redirect would count as caused by who led here, and
        browsers would send no cookie.
        """
        cookie = f"{self._cookie}={self._session}; Path={self.path}/; HttpOnly; SameSite=Strict"
        headers = [(b"content-type", b"text/html; charset=utf-8"), (b"set-cookie", cookie.encode())]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        await send({"type": "http.response.body", "body": ENTRANCE})


def _with_ours(headers: list[tuple[bytes, bytes]]) -> list[tuple[bytes, bytes]]:
    """Add our headers to the headers of a response, which may only set those in `OWN` itself."""
    by_name = {name.lower().decode("latin-1"): value for name, value in headers}
    ours = HEADERS | {"content-security-policy": CONTENT_SECURITY_POLICY}
    ours |= {name: by_name[name].decode("latin-1") for name in OWN if name in by_name}
    rest = [(name, value) for name, value in headers if name.lower().decode("latin-1") not in ours]
    return rest + [(name.encode(), value.encode("latin-1")) for name, value in ours.items()]


async def _plain(send: Send, status: int, text: bytes, media_type: bytes = b"text/plain") -> None:
    headers = [(b"content-type", media_type + b"; charset=utf-8")]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": text})
