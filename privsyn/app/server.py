"""The server: one person's page on 127.0.0.1, until it is stopped or nobody uses it."""

from __future__ import annotations

import asyncio
import json
import socket
import webbrowser
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from shutil import rmtree
from threading import Lock, Thread
from typing import Any
from urllib.parse import parse_qs

import uvicorn
from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import FileResponse, HTMLResponse, RedirectResponse, Response, StreamingResponse
from starlette.routing import Mount, Route
from uvicorn.protocols.http.h11_impl import H11Protocol

from privsyn.app.choices import OUTPUTS
from privsyn.app.comparison import COMPARISON, COMPARISON_HEADERS
from privsyn.app.guard import CONTENT_SECURITY_POLICY, HEADERS, Guard
from privsyn.app.people import open_file
from privsyn.app.results import ALL, file_of
from privsyn.app.screens import SCREENS, TEMPLATES, render
from privsyn.app.session import Session
from privsyn.app.uploads import receive_upload
from privsyn.app.workspace import Workspace
from privsyn.errors import InputError

HOST = "127.0.0.1"

MOST_BYTES = 4_000_000
"""Most bytes of a form that is no upload: values of a thousand columns."""

MOST_FIELDS = 50_000
"""Most fields of a form; a column has up to ten."""

IDLE_MINUTES = 60.0
"""Default time without a request after which the app stops."""

UPLOAD_GB = 4.0
"""Default limit of an upload."""

CHECK_SECONDS = 1.0
"""Seconds between two looks at whether the app is still used."""

PAGES = {"comparison": COMPARISON, "page": OUTPUTS["--public-report"]}
"""Pages of a run that are shown: the comparison with the real rows, and the public page."""

ENTRANCE_FILE = "open.html"
"""The file that leads the browser to the printed address."""

GRACE_SECONDS = 2
"""Seconds for requests to end when the app stops."""

MEDIA_TYPES = {".css": "text/css", ".js": "text/javascript", ".svg": "image/svg+xml"}


class App:
    """The page of one person.

    Parameters
    ----------
    workspace : Workspace
    upload_gb : float
        The largest upload, in GB.

    Attributes
    ----------
    closed : bool
        Whether `close` was called.
    uploading : bool
        Whether an upload is under way.
    """

    def __init__(self, workspace: Workspace, upload_gb: float = UPLOAD_GB) -> None:
        self.session = Session(workspace)
        self.socket = socket.create_server((HOST, 0))
        self.port: int = self.socket.getsockname()[1]
        self._upload_bytes = round(upload_gb * 1e9)
        self.closed, self.uploading, self._one_at_a_time = False, False, Lock()
        self.guard = Guard(self._unrouted, self.port)
        routes = [
            Route("/", self._return),
            Route("/upload", self._upload, methods=["POST"]),
            Route("/progress", self._progress),
            Route("/file/{name}", self._file),
            *(Route(f"/{name}", self._page) for name in PAGES),
            Route(f"/{COMPARISON}", self._comparison_file),
            *(Route(f"/{name}", self._asset) for name in ("app.css", "app.js", "icon.svg")),
            Route("/{screen}", self._screen, methods=["GET", "POST"]),
        ]
        self.guard.screens = Starlette(routes=[Mount(self.guard.path, routes=routes)])

    @property
    def address(self) -> str:
        """The address to open once, with its token."""
        return f"http://{HOST}:{self.port}{self.guard.entrance}"

    def close(self) -> None:
        """End the server and a run, which writes what was paid for. No button does anything from now on."""
        self.closed = True
        # It is never released: a late click must not start a run.
        self._one_at_a_time.acquire(timeout=GRACE_SECONDS)
        self.session.end()

    @staticmethod
    async def _unrouted(scope: Any, receive: Any, send: Any) -> None:
        raise RuntimeError("no route yet")

    async def _return(self, request: Request) -> Response:
        """Lead a second visit of the printed address to the furthest step."""
        steps = [name for name, screen in SCREENS.items() if not screen.part_of or name == "choose"]
        furthest = [name for name in steps if SCREENS[name].ready(self.session)][-1]
        return RedirectResponse(f"{self.guard.path}/{furthest}", 303)

    async def _screen(self, request: Request) -> Response:
        name = request.path_params["screen"]
        if name not in SCREENS:
            return Response("privsyn: there is no such screen", 404)
        if request.method == "POST":
            form = await _form(request)
            if form is None:
                return Response("privsyn: the form is too large", 413)
            return await run_in_threadpool(self._answer, name, form)
        return await run_in_threadpool(self._show, name)

    def _answer(self, name: str, form: dict[str, list[str]]) -> Response:
        """Do what a button says, and lead to the next screen."""
        with self._one_at_a_time:
            screen, following = SCREENS[name], name
            action = screen.actions.get(form.get("do", [""])[0].partition(" ")[0])
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
                names = list(SCREENS)
                before = reversed(names[: names.index(name)])
                furthest = next(screen for screen in before if SCREENS[screen].ready(self.session))
                return RedirectResponse(f"{self.guard.path}/{furthest}", 303)
            try:
                return HTMLResponse(render(name, self.session, screen.show(self.session)))
            except InputError as error:  # the table was moved, say
                self.session.problem = str(error)
                if name == "choose" and self.session.database is None:
                    raise
                self.session.database = None
                return RedirectResponse(f"{self.guard.path}/choose", 303)

    async def _upload(self, request: Request) -> Response:
        following, session = "choose", self.session
        if self.uploading:  # together they could be larger than the limit
            session.problem = "another upload is under way: wait for its end"
            return RedirectResponse(f"{self.guard.path}/{following}", 303)
        self.uploading = True
        try:
            folder = await run_in_threadpool(session.workspace.new, "uploads")
            path = await receive_upload(request, folder, self._upload_bytes)
            following = await run_in_threadpool(self._open_upload, path)
        except InputError as error:
            session.problem = str(error)
        finally:
            self.uploading = False
        return RedirectResponse(f"{self.guard.path}/{following}", 303)

    def _open_upload(self, path: Path) -> str:
        """Begin with an upload, and remove uploads that are not used any more."""
        session = self.session
        with self._one_at_a_time:
            try:
                return open_file(session, path)
            finally:
                used = {session.database and session.database.parent}
                used |= {session.choices.path.parent} if session.choices is not None else set()
                for upload in (session.workspace.folder / "uploads").glob("*"):
                    if upload not in used:
                        rmtree(upload, ignore_errors=True)

    async def _progress(self, request: Request) -> Response:
        """Stream the progress of the run as server-sent events."""

        async def events() -> AsyncIterator[str]:
            job = self.session.working
            while job is not None and job.running:
                step = {"stage": job.stage_index, "done": job.done, "total": job.total, "spent": job.spent}
                yield f"data: {json.dumps(step)}\n\n"
                await run_in_threadpool(job.wait, CHECK_SECONDS)
            yield "event: end\ndata: {}\n\n"

        return StreamingResponse(events(), media_type="text/event-stream")

    async def _file(self, request: Request) -> Response:
        """Send a file of the run. Of a model that was taken, no copy needs to be kept at the end."""
        name = request.path_params["name"]
        path = await run_in_threadpool(self._result, name)
        if path is None:
            return Response("privsyn: there is no such file", 404)
        is_whole = request.method == "GET" and "range" not in request.headers
        self.session.workspace.taken |= is_whole and name in (OUTPUTS["--model"], ALL)
        return FileResponse(path, filename=name, media_type="application/octet-stream")

    async def _page(self, request: Request) -> Response:
        """Show a page of the run, which has a style and a script within."""
        path = self.session.results / PAGES[Path(request.url.path).name]
        if not path.is_file():
            return Response("privsyn: there is no such file", 404)
        return HTMLResponse(path.read_bytes(), headers=COMPARISON_HEADERS)

    async def _comparison_file(self, request: Request) -> Response:
        """Send the same page as a file."""
        path = self.session.results / COMPARISON
        if not path.is_file():
            return Response("privsyn: there is no such file", 404)
        return FileResponse(path, filename=COMPARISON, media_type="application/octet-stream")

    def _result(self, name: str) -> Path | None:
        with self._one_at_a_time, suppress(InputError):
            return file_of(self.session.results, name) if self.session.made else None
        return None

    async def _asset(self, request: Request) -> Response:
        name = Path(request.url.path).name
        return FileResponse(TEMPLATES / name, media_type=MEDIA_TYPES[Path(name).suffix])


async def _form(request: Request) -> dict[str, list[str]] | None:
    """Return the fields of a form; None if it is too large."""
    parts, size = [], 0
    async for part in request.stream():
        parts.append(part)
        size += len(part)
        if size > MOST_BYTES:
            return None
    body = b"".join(parts).decode("utf-8", "replace")
    with suppress(ValueError):  # too many fields
        return parse_qs(body, keep_blank_values=True, max_num_fields=MOST_FIELDS)
    return None


class Protocol(H11Protocol):
    """HTTP as uvicorn reads it with h11, whatever else is installed. Its own answer has our headers too."""

    def send_400_response(self, msg: str) -> None:
        """Answer what is no HTTP request, unless an answer has begun, and close the connection."""
        if self.cycle is None or self.cycle.response_complete:
            ours = HEADERS | {"content-security-policy": CONTENT_SECURITY_POLICY}
            ours |= {"connection": "close", "content-length": "0"}
            lines = "".join(f"{name}: {value}\r\n" for name, value in ours.items())
            self.transport.write(f"HTTP/1.1 400 Bad Request\r\n{lines}\r\n".encode())
        self.transport.close()


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
        http=Protocol,
        lifespan="off",
        ws="none",
        log_config=None,
        log_level="critical",
        access_log=False,
        server_header=False,
        proxy_headers=False,
        timeout_graceful_shutdown=GRACE_SECONDS,
    )
    server = uvicorn.Server(config)

    async def until_idle() -> None:
        while not server.should_exit:
            await asyncio.sleep(CHECK_SECONDS)
            if not app.guard.token:
                (app.session.workspace.folder / ENTRANCE_FILE).unlink(missing_ok=True)
            idle = app.guard.idle > 60 * idle_minutes and app.session.working is None
            server.should_exit |= idle or app.closed

    @asynccontextmanager
    async def watched() -> AsyncIterator[None]:
        watch = asyncio.create_task(until_idle())
        try:
            yield
        finally:
            watch.cancel()

    async def run() -> None:
        # By default asyncio prints errors that nobody awaited: their texts may quote a cell.
        asyncio.get_running_loop().set_exception_handler(lambda loop, context: None)
        async with watched():
            if ready is not None:
                ready()
            await server.serve(sockets=[app.socket])

    with suppress(KeyboardInterrupt):
        asyncio.run(run())


def show_in_browser(app: App) -> None:
    """Open the page in the browser.

    The address has a token, and arguments of processes can be seen by other users of the machine. So the
    browser is given a file that only the owner can read, which leads there. The app removes it once the token
    was exchanged.
    """
    path = app.session.workspace.folder / ENTRANCE_FILE
    path.touch(mode=0o600)
    path.write_text(
        f'<!doctype html><meta http-equiv="refresh" content="0; url={app.address}"><title>privsyn</title>',
        encoding="utf-8",
    )
    # In a thread: a browser in the terminal would keep the server waiting.
    Thread(target=webbrowser.open, args=(path.as_uri(),), daemon=True).start()
