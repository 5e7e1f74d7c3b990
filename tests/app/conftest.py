"""A running page, and a client that sends any header, as a browser of somebody else might."""

import re
import socket
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from http.client import HTTPConnection
from threading import Condition, Event, Thread
from time import monotonic
from urllib.parse import urlencode

import pytest

from privsyn.app import server
from privsyn.app.job import Job
from privsyn.app.workspace import Workspace

SECONDS = 20
"""Longest wait for an answer: only a fault takes so long."""

PATIENCE = 240_000
"""Milliseconds for a run or a comparison on a busy machine."""


@dataclass
class Answer:
    status: int
    headers: list[tuple[str, str]]
    body: bytes

    def __getitem__(self, name):
        """Return the header of this name; None if there is none. Two are a fault."""
        found = [value for each, value in self.headers if each.lower() == name]
        assert len(found) < 2, f"{name} is sent twice"
        return found[0] if found else None

    @property
    def text(self):
        return self.body.decode()


@dataclass
class Client:
    """One browser: it sends what a browser sends, unless a test says otherwise."""

    port: int
    path: str
    cookie: str = ""
    host: str = ""
    origin: str = field(init=False)

    def __post_init__(self):
        self.host = self.host or f"127.0.0.1:{self.port}"
        self.origin = f"http://{self.host}"

    def send(self, method, target, headers=(), body=b""):
        """Send these headers and no others."""
        connection = HTTPConnection("127.0.0.1", self.port, timeout=SECONDS)
        try:
            connection.putrequest(method, target, skip_host=True, skip_accept_encoding=True)
            for name, value in headers:
                connection.putheader(name, value)
            connection.endheaders(body or None)
            response = connection.getresponse()
            return Answer(response.status, response.getheaders(), response.read())
        finally:
            connection.close()

    def raw(self, data):
        """Send bytes and return all that comes until the server closes the connection."""
        received = b""
        connection = socket.create_connection(("127.0.0.1", self.port), timeout=SECONDS)
        with connection, suppress(ConnectionError):  # it may close before it has read all
            connection.sendall(data)
            while part := connection.recv(65536):
                received += part
        return received

    def head(self, method, name, **changed):
        """Return the head of a request, to be sent by `raw` or slowly."""
        lines = [f"{name}: {value}\r\n" for name, value in self.headers(connection="close", **changed)]
        return f"{method} {self.path}/{name} HTTP/1.1\r\n{''.join(lines)}\r\n".encode()

    def headers(self, **changed):
        """Return the headers of a browser; ``sec_fetch_site=None`` leaves one out."""
        usual = {"host": self.host, "cookie": self.cookie, "sec-fetch-site": "same-origin"}
        usual |= {name.replace("_", "-"): value for name, value in changed.items()}
        return [(name, value) for name, value in usual.items() if value is not None]

    def get(self, name="choose", method="GET", **changed):
        return self.send(method, f"{self.path}/{name}", self.headers(**changed))

    def post(self, name="choose", form=(), body=None, **changed):
        body = urlencode(form, doseq=True).encode() if body is None else body
        changed = {"content-type": "application/x-www-form-urlencoded", "origin": self.origin} | changed
        return self.send(
            "POST", f"{self.path}/{name}", self.headers(content_length=str(len(body)), **changed), body
        )

    def upload(self, name="table.csv", data=b"a,b\n1,2\n", **changed):
        """Send a file as a form does."""
        kind, body = multipart([("file", name, data), ("do", None, b"upload")])
        return self.post("upload", body=body, **{"content-type": kind} | changed)

    def enter(self, target):
        """Exchange the token of the printed address for the cookie."""
        answer = self.send("GET", target, [("host", self.host)])
        assert answer.status == 200, answer
        self.cookie = answer["set-cookie"].split(";")[0]
        return answer


def multipart(parts, boundary=b"-----------------------------5a1e"):
    """Return the type and the body of a form with files: (field, file name or None, bytes)."""
    body = b""
    for name, file, data in parts:
        named = f'; filename="{file}"' if file is not None else ""
        body += b"--%s\r\nContent-Disposition: form-data; " % boundary
        body += f'name="{name}"{named}\r\n\r\n'.encode() + data + b"\r\n"
    return f"multipart/form-data; boundary={boundary.decode()}", body + b"--%s--\r\n" % boundary


class Site(Client):
    """A running page and its first browser, which has entered."""

    def __init__(self, page, host=""):
        super().__init__(page.port, page.guard.path, host=host)
        self.page, self.session, self.workspace = page, page.session, page.session.workspace
        self.entrance, self.token = page.guard.entrance, page.guard.token

    @property
    def secrets(self):
        return [self.token, self.cookie.partition("=")[2]]

    def another(self):
        """Return another browser, without a cookie."""
        return Client(self.port, self.path)

    def choose(self, name):
        """Choose a file of the start folder."""
        return self.post("choose", {"do": "choose", "file": name})

    @property
    def problem(self):
        """The message on the screen."""
        found = re.search(r'<p class="problem" role="alert">(.*?)</p>', self.get("choose").text)
        return found and found[1]


@contextmanager
def running(start, *, enter=True, host="", idle_minutes=60.0, job=None, **options):
    workspace, ready = Workspace(start), Event()
    page = server.App(workspace, **options)
    page.session.job = job
    serve = partial(server.serve, page, idle_minutes=idle_minutes, ready=ready.set)
    thread = Thread(target=serve)
    thread.start()
    try:
        assert ready.wait(SECONDS)
        site = Site(page, host)
        site.thread = thread
        if enter:
            site.enter(site.entrance)
        yield site
    finally:
        page.close()
        thread.join(SECONDS)
        workspace.close()
        assert not thread.is_alive()
        page.socket.close()
    assert not workspace.folder.exists()


@pytest.fixture(scope="module", autouse=True)
def _ends_soon():
    """Let a server see at once that it shall stop, and not wait long for requests to end."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(server, "CHECK_SECONDS", 0.02)
        patch.setattr(server, "GRACE_SECONDS", 0.3)
        yield


@pytest.fixture(scope="session")
def serving():
    """How a test starts a page of its own: a context manager."""
    return running


@pytest.fixture
def start(tmp_path):
    """A start folder with a table."""
    folder = tmp_path / "start"
    folder.mkdir()
    (folder / "people.csv").write_text("age,sex\n31,F\n45,M\n")
    return folder


@pytest.fixture
def site(start):
    """A running page whose browser has entered."""
    with running(start) as site:
        yield site


@pytest.fixture(scope="module")
def shared(tmp_path_factory):
    """A running page for all tests of a file that do not change it."""
    with running(tmp_path_factory.mktemp("start")) as site:
        yield site


class Endless(Job):
    """A run without a process, which nothing ends."""

    def __init__(self):
        self.stage, self.done, self.total = "reading", 0, 0
        self.messages, self.complaints, self.cancelled, self.code = [], [], False, None
        self._changed = Condition()

    def cancel(self):
        """Go on."""

    def end(self):
        """Go on."""


@pytest.fixture
def endless():
    """A run that goes on."""
    return Endless()


@pytest.fixture
def client():
    """The class of clients: of a port and a path."""
    return Client


@pytest.fixture
def form_with_files():
    return multipart


@pytest.fixture
def looked_at():
    """How a screen is checked: it fits at both widths, one in each scheme, and axe finds nothing."""
    axe = pytest.importorskip("axe_playwright_python.sync_playwright").Axe()

    def look(tab):
        for width, scheme in ((390, "dark"), (1280, "light")):
            tab.emulate_media(color_scheme=scheme)
            tab.set_viewport_size({"width": width, "height": 900})
            # A busy browser resizes later than it answers, so look until it fits. From here, because the
            # page's own policy forbids what `wait_for_function` evaluates again inside it after a first no.
            fits = f"innerWidth == {width} && document.documentElement.scrollWidth <= {width}"
            end = monotonic() + PATIENCE / 1000
            while not tab.evaluate(fits) and monotonic() < end:
                tab.wait_for_timeout(50)
            assert tab.evaluate(fits), (tab.url, width)
            found = axe.run(tab)
            assert found.violations_count == 0, found.generate_report()

    return look


@pytest.fixture
def tab(chromium):
    """A tab that makes requests to one host alone, and raises no error."""
    context = chromium.new_context(viewport={"width": 1280, "height": 900})
    tab, complaints, hosts = context.new_page(), [], set()
    context.on("console", lambda message: complaints.append(message.text))
    context.on("weberror", lambda error: complaints.append(str(error.error)))
    context.on("request", lambda request: hosts.add(request.url.split("/")[2].split(":")[0]))
    tab.set_default_timeout(PATIENCE)
    yield tab
    assert complaints == []
    assert hosts == {"127.0.0.1"}
    context.close()


@pytest.fixture
def tab_to(tab):
    """How one goes to an element by the keyboard."""

    def press(selector):
        for _ in range(400):
            tab.keyboard.press("Tab")
            if tab.evaluate("(it) => document.activeElement.matches(it)", selector):
                return
        raise AssertionError(selector)

    return press
