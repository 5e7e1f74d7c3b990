"""The server: one person's page on 127.0.0.1, until it is stopped or nobody uses it."""

from __future__ import annotations

import asyncio
import json
import socket
import time
import webbrowser
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from threading import Lock
from typing import Any
from urllib.parse import parse_qs

import uvicorn
from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import FileResponse, HTMLResponse, RedirectResponse, Response, StreamingResponse
from starlette.routing import Mount, Route

from privsyn.app.guard import Guard
from privsyn.app.look import COMPARISON, COMPARISON_HEADERS
from privsyn.app.pages import FOLDER, render
from privsyn.app.results import file_of
from privsyn.app.screens import SCREENS, open_file
from privsyn.app.session import Session
from privsyn.app.uploads import receive_upload
from privsyn.app.workspace import Workspace
from privsyn.errors import InputError

HOST = "127.0.0.1"

MOST_BYTES = 4_000_000
"""Most bytes of a form that is no upload: values of a thousand columns."""

IDLE_MINUTES = 60.0
"""Default time without a request after which the app stops."""

UPLOAD_GB = 4.0
"""Default limit of an upload."""

CHECKED = 1.0
"""Seconds between two looks at whether the app is still used."""

MEDIA = {".css": "text/css", ".js": "text/javascript", ".svg": "image/svg+xml"}


class App:
    """The page of one person.

    Parameters
    ----------
    workspace : Workspace
    upload_gb : float
        The largest upload, in GB.
    """

    def __init__(self, workspace: Workspace, upload_gb: float = UPLOAD_GB) -> None:
        self.session = Session(workspace)
        self.socket = socket.create_server((HOST, 0))
        self.port: int = self.socket.getsockname()[1]
        self._upload_bytes = round(upload_gb * 1e9)
        self._one_at_a_time = Lock()
        self.guard = Guard(self._unrouted, self.port)
        routes = [
            Route("/", self._to("choose")),
            Route("/upload", self._upload, methods=["POST"]),
            Route("/progress", self._progress),
            Route("/file/{name}", self._file),
            Route("/comparison", self._comparison),
            Route(f"/{COMPARISON}", self._private),
            *(Route(f"/{name}", self._asset) for name in ("app.css", "app.js", "icon.svg")),
            Route("/{screen}", self._screen, methods=["GET", "POST"]),
        ]
        self.guard.screens = Starlette(routes=[Mount(self.guard.path, routes=routes)])

    @property
    def address(self) -> str:
        """The address to open once, with its token."""
        return f"http://{HOST}:{self.port}{self.guard.entrance}"

    def close(self) -> None:
        """End a run; it writes what was paid for."""
        self.session.end()

    @staticmethod
    async def _unrouted(scope: Any, receive: Any, send: Any) -> None:
        raise RuntimeError("no route yet")

    def _to(self, name: str) -> Callable[[Request], Any]:
        async def redirect(request: Request) -> Response:
            return RedirectResponse(f"{self.guard.path}/{name}", 303)

        return redirect

    async def _screen(self, request: Request) -> Response:
        name = request.path_params["screen"]
        if name not in SCREENS:
            return Response("privsyn: there is no such screen", 404)
        if request.method == "POST":
            body = await _body(request)
            if body is None:
                return Response("privsyn: the form is too large", 413)
            form = parse_qs(body, keep_blank_values=True)
            return await run_in_threadpool(self._answer, name, form)
        return await run_in_threadpool(self._show, name)

    def _answer(self, name: str, form: dict[str, list[str]]) -> Response:
        """Do what a button says, and lead to the next screen."""
        with self._one_at_a_time:
            screen, following = SCREENS[name], name
            action = screen.actions.get(form.get("do", [""])[0])
            try:
                if action is None or not screen.ready(self.session):
                    raise InputError("begin with this screen")
                following = action(self.session, form)
            except InputError as error:
                self.session.problem = str(error)
            return RedirectResponse(f"{self.guard.path}/{following}", 303)

    def _show(self, name: str) -> Response:
        with self._one_at_a_time:
            screen = SCREENS[name]
            if not screen.ready(self.session):
                return RedirectResponse(f"{self.guard.path}/{self._furthest(name)}", 303)
            try:
                return HTMLResponse(render(name, self.session, screen.show(self.session)))
            except InputError as error:  # the table was moved, say
                self.session.problem = str(error)
                if name == "choose":
                    raise
                return RedirectResponse(f"{self.guard.path}/choose", 303)

    def _furthest(self, name: str) -> str:
        """Return the last screen before this one that can be shown."""
        names = list(SCREENS)
        before = names[: names.index(name)]
        return next(each for each in reversed(before) if SCREENS[each].ready(self.session))

    async def _upload(self, request: Request) -> Response:
        following = "choose"
        try:
            folder = await run_in_threadpool(self.session.workspace.empty, "uploads")
            place = await receive_upload(request, folder, self._upload_bytes)
            following = await run_in_threadpool(open_file, self.session, place)
        except InputError as error:
            self.session.problem = str(error)
        return RedirectResponse(f"{self.guard.path}/{following}", 303)

    async def _progress(self, request: Request) -> Response:
        """Stream the progress of the run as server-sent events."""

        async def events() -> AsyncIterator[str]:
            job = self.session.working
            while job is not None and job.running:
                step = {"place": job.place, "done": job.done, "total": job.total, "spent": job.spent}
                yield f"data: {json.dumps(step)}\n\n"
                await run_in_threadpool(job.wait, CHECKED)
            yield "event: end\ndata: {}\n\n"

        return StreamingResponse(events(), media_type="text/event-stream")

    async def _file(self, request: Request) -> Response:
        """Send a file of the run."""
        name, place = request.path_params["name"], None
        if self.session.made:
            place = await run_in_threadpool(file_of, self.session.results, name)
        if place is None:
            return Response("privsyn: there is no such file", 404)
        self.session.workspace.taken = True
        return FileResponse(place, filename=name, media_type="application/octet-stream")

    async def _comparison(self, request: Request) -> Response:
        """Show the comparison with the real rows, a page with a style and a script within."""
        place = self.session.results / COMPARISON
        if not place.is_file():
            return Response("privsyn: there is no such file", 404)
        return HTMLResponse(place.read_bytes(), headers=COMPARISON_HEADERS)

    async def _private(self, request: Request) -> Response:
        """Send the same page as a file."""
        place = self.session.results / COMPARISON
        if not place.is_file():
            return Response("privsyn: there is no such file", 404)
        return FileResponse(place, filename=COMPARISON, media_type="application/octet-stream")

    async def _asset(self, request: Request) -> Response:
        name = Path(request.url.path).name
        return FileResponse(FOLDER / name, media_type=MEDIA[Path(name).suffix])


async def _body(request: Request) -> str | None:
    """Return the text of a form; None if it is too large."""
    parts, size = [], 0
    async for part in request.stream():
        parts.append(part)
        size += len(part)
        if size > MOST_BYTES:
            return None
    return b"".join(parts).decode("utf-8", "replace")


def serve(app: App, *, idle_minutes: float = IDLE_MINUTES, ready: Callable[[], None] | None = None) -> None:
    """Answer requests until the process is stopped, or nobody asked for that long.

    Parameters
    ----------
    app : App
    idle_minutes : float
    ready : callable, optional
        Called when requests are answered.
    """
    config = uvicorn.Config(
        app.guard,
        lifespan="off",
        ws="none",
        log_config=None,
        log_level="critical",
        access_log=False,
        server_header=False,
        proxy_headers=False,
        timeout_graceful_shutdown=2,
    )
    server = uvicorn.Server(config)

    async def until_idle() -> None:
        while not server.should_exit:
            await asyncio.sleep(CHECKED)
            idle = time.monotonic() - app.guard.last > 60 * idle_minutes
            server.should_exit |= idle and app.session.working is None

    @asynccontextmanager
    async def watched() -> AsyncIterator[None]:
        watch = asyncio.create_task(until_idle())
        try:
            yield
        finally:
            watch.cancel()

    async def run() -> None:
        async with watched():
            if ready is not None:
                ready()
            await server.serve(sockets=[app.socket])

    with suppress(KeyboardInterrupt):
        asyncio.run(run())


def show_in_browser(app: App) -> None:
    """Open the page in the browser.

    The address has a token, and arguments of processes can be seen by other users of the machine. So the
    browser is given a file that only the owner can read, which leads there.
    """
    place = app.session.workspace.folder / "open.html"
    place.touch(mode=0o600)
    place.write_text(
        f'<!doctype html><meta http-equiv="refresh" content="0; url={app.address}"><title>privsyn</title>',
        encoding="utf-8",
    )
    webbrowser.open(place.as_uri())
