"""Whoever is not the one browser of the person gets nothing, changes nothing and learns nothing."""

import asyncio
import http.client
import inspect
import re
import socket
import stat
import time
from dataclasses import replace
from hmac import compare_digest
from threading import Event

import pytest

from privsyn.app import guard, server
from privsyn.app.screens import SCREENS
from privsyn.errors import InputError

CANARY = "canary-4711-cell"

CHOOSE = {"do": "choose", "file": "people.csv"}

OURS = {
    "cache-control": "no-store",
    "referrer-policy": "same-origin",
    "x-frame-options": "DENY",
    "x-content-type-options": "nosniff",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "content-security-policy": (
        "default-src 'none'; style-src 'self'; script-src 'self'; img-src 'self'; connect-src 'self';"
        " form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
    ),
}


def refused(answer):
    return answer.status == 403 and answer.body == guard.REFUSED and answer["set-cookie"] is None


def led_on(answer):
    """Whether it has no cookie, and leads to the first screen, which knows the browser or refuses it."""
    return (answer.status, answer.body, answer["set-cookie"]) == (403, guard.ENTRANCE, None)


# The host


def test_it_listens_on_this_machine_alone(shared):
    assert shared.page.socket.getsockname() == ("127.0.0.1", shared.port)
    with pytest.raises(OSError, match="refused"):
        socket.create_connection(("127.0.0.2", shared.port), timeout=5)  # 0.0.0.0 would answer
    with pytest.raises(OSError, match=r"refused|assign|not supported"):
        socket.create_connection(("::1", shared.port), timeout=5)


def test_each_page_has_a_free_port(start, serving):
    with serving(start) as one, serving(start) as other:
        assert one.port != other.port


@pytest.mark.parametrize(
    "host",
    [
        "evil.example",
        "evil.example:{port}",
        "127.0.0.1",
        "localhost",
        "127.0.0.1:1",
        "LOCALHOST:{port}",
        "localhost.:{port}",
        "127.0.0.1.:{port}",
        "[::1]:{port}",
        "0.0.0.0:{port}",
        "127.1:{port}",
        "2130706433:{port}",
        "127.0.0.1:{port}@evil.example",
        "evil.example#127.0.0.1:{port}",
        "127.0.0.1:0{port}",
        "",
    ],
)
def test_other_hosts_are_refused(shared, host):
    """A page of a name that leads to this machine (DNS rebinding) has another host, even with the cookie."""
    assert refused(shared.get(host=host.format(port=shared.port)))


def test_both_names_of_this_machine_work(start, serving):
    for host in ("127.0.0.1", "localhost"):
        with serving(start, enter=False) as site:
            client = site.another()
            client.host = f"{host}:{site.port}"
            client.origin = f"http://{client.host}"
            client.enter(site.entrance)
            assert client.get().status == 200
            assert client.post(form={"do": "no such"}).status == 303


def test_a_host_is_named_once(shared):
    assert refused(shared.get(host=None)) or shared.get(host=None).status == 400
    ours, other = shared.host, "evil.example"
    for first, second in ((ours, other), (other, ours), (ours, ours)):
        target = f"GET {shared.path}/choose HTTP/1.1\r\nHost: {first}\r\nHost: {second}\r\n"
        assert shared.raw(f"{target}Cookie: {shared.cookie}\r\n\r\n".encode()).startswith(b"HTTP/1.1 4")


def test_the_guard_itself_refuses_two_hosts(shared):
    """The server does so before, as long as it reads HTTP with h11."""
    sent = []

    async def send(message):
        sent.append(message)

    names = [(name.encode(), value.encode()) for name, value in shared.headers()]
    for hosts, status in ((1, 200), (2, 403), (0, 403)):
        head = [pair for pair in names if pair[0] != b"host"] + [(b"host", shared.host.encode())] * hosts
        scope = {"type": "http", "method": "GET", "path": f"{shared.path}/app.css", "headers": head}
        asyncio.run(shared.page.guard(scope | {"query_string": b"", "root_path": ""}, None, send))
        assert next(message["status"] for message in sent if "status" in message) == status
        sent.clear()


def test_http_1_0_without_a_host_is_refused(shared):
    request = f"GET {shared.path}/choose HTTP/1.0\r\nCookie: {shared.cookie}\r\n\r\n"
    assert b" 403 " in shared.raw(request.encode()).splitlines()[0]


@pytest.mark.parametrize(
    "target",
    [
        "http://127.0.0.1:{port}{path}/choose",
        "http://evil.example{path}/choose",
        "//evil.example{path}/choose",
        "/{path}/choose",
        "{path}",
        "{path}x/choose",
        "/choose",
        "/",
        "*",
        "evil.example:80",
        "/./{path}/choose",
        "/x/..{path}/choose",
    ],
)
def test_other_targets_are_refused(shared, target):
    target = target.format(port=shared.port, path=shared.path)
    assert refused(shared.send("GET", target, shared.headers()))


# The token and the cookie


def test_the_token_and_the_cookie_have_256_bits(start, serving):
    """32 random bytes are 43 signs of 6 bits each; the names and paths differ from page to page."""
    seen = []
    for _ in range(2):
        with serving(start) as site:
            assert all(re.fullmatch(r"[\w-]{43}", secret) for secret in site.secrets)
            assert re.fullmatch(r"/[0-9a-f]{32}", site.path)
            seen += [*site.secrets, site.path, site.cookie.partition("=")[0]]
    assert len(set(seen)) == 8


def test_the_token_gives_a_cookie_for_this_browser_alone(start, serving):
    with serving(start, enter=False) as site:
        answer = site.enter(site.entrance)
        _, *attributes = answer["set-cookie"].split("; ")
        assert attributes == [f"Path={site.path}/", "HttpOnly", "SameSite=Strict"]
        assert not any(secret in answer.text for secret in site.secrets)
        assert "url=choose" in answer.text  # no redirect: it would count as caused by another site


def test_the_token_works_once(shared):
    assert led_on(shared.another().send("GET", shared.entrance, [("host", shared.host)]))
    assert shared.get().status == 200  # and the first browser goes on
    again = shared.send("GET", shared.entrance, shared.headers(sec_fetch_site="none"))
    assert (again.status, again["location"]) == (303, f"{shared.path}/choose")


def test_a_second_visit_leads_to_the_furthest_step(site):
    site.choose("people.csv")
    again = site.send("GET", site.entrance, site.headers(sec_fetch_site="none"))
    assert again["location"] == f"{site.path}/people"


@pytest.mark.slow
def test_a_second_visit_works_in_the_first_browser_and_says_elsewhere_what_to_do(site, chromium, tmp_path):
    address = f"http://{site.host}{site.entrance}"
    link = tmp_path / "link.html"
    link.write_text(f'<a href="{address}">open</a>')
    site.page.guard.token = site.token  # nobody has entered yet
    context = chromium.new_context()
    tab = context.new_page()
    tab.goto(address)
    tab.wait_for_url("**/choose")
    tab.reload()
    assert tab.text_content("h1") == "Which table?"
    tab.goto(address)  # typed: the browser sends the cookie
    tab.wait_for_url("**/choose")
    tab.goto(link.as_uri())
    tab.click("a")  # a file leads there: the browser sends no cookie with this visit
    tab.wait_for_url("**/choose")
    assert tab.text_content("h1") == "Which table?"
    tab.reload()
    assert tab.text_content("h1") == "Which table?"
    other = chromium.new_context().new_page()
    other.goto(address)
    other.wait_for_url("**/choose")
    assert "Go on in the browser that opened" in other.text_content("body")
    other.context.close()
    context.close()


@pytest.mark.parametrize(
    "query",
    ["", "?token=", "?token=x", "?token={token}x", "?Token={token}", "?token=x&token={token}", "?x={token}"],
)
def test_another_token_is_refused(start, serving, query):
    with serving(start, enter=False) as site:
        target = f"{site.path}/{query.format(token=site.token)}"
        assert led_on(site.send("GET", target, [("host", site.host)]))
        assert site.enter(site.entrance).status == 200  # the right one was not used up


@pytest.mark.parametrize("method", ["HEAD", "POST", "PUT", "OPTIONS"])
def test_the_token_is_exchanged_by_a_visit_alone(start, serving, method):
    with serving(start, enter=False) as site:
        assert site.send(method, site.entrance, [("host", site.host)]).status == 403
        assert site.enter(site.entrance).status == 200


def test_the_token_does_not_work_for_another_host_or_screen(start, serving):
    with serving(start, enter=False) as site:
        assert refused(site.send("GET", site.entrance, [("host", f"evil.example:{site.port}")]))
        other = site.entrance.replace("/?", "/choose?")
        assert refused(site.send("GET", other, [("host", site.host)]))
        assert site.enter(site.entrance).status == 200


def test_before_the_exchange_nobody_has_the_session(start, serving):
    """A cookie cannot be fixed in advance: not even the right one works before the token was exchanged."""
    with serving(start, enter=False) as site:
        site.cookie = f"{site.page.guard._cookie}={site.page.guard._session}"
        assert refused(site.get())
        site.enter(site.entrance)
        assert site.get().status == 200


def test_a_wrong_or_second_cookie_is_refused(shared):
    name, _, value = shared.cookie.partition("=")
    wrong = [None, "", name, f"{name}=", f"{name}=x", f"{name}={value}x", f"{name}={value[:-1]}", f"{name}=é"]
    wrong += [f"{name}={value.swapcase()}", f"privsyn={value}", f"{name.upper()}={value}"]
    wrong += [f'{name}="{value}"', f"{name}=x; {shared.cookie}", f"{shared.cookie}; {name}=x"]
    wrong += [f"{shared.cookie}; {shared.cookie}"]
    for cookie in wrong:
        assert refused(shared.get(cookie=cookie and cookie.encode("latin-1"))), cookie
    two = [*shared.headers(), ("Cookie", f"{name}=x")]
    assert refused(shared.send("GET", f"{shared.path}/choose", two))


def test_cookies_of_others_on_this_machine_do_no_harm(shared):
    """Browsers do not separate cookies by port. Those of others may be odd, and may have any other name."""
    for other in ("privsyn=x", "a=b", "=", ";;", 'q="', "bad[]=1", "$Version=1", "x=\xe9", "privsyn-=1"):
        for cookie in (f"{other}; {shared.cookie}", f"{shared.cookie}; {other}", f"{other};{shared.cookie}"):
            assert shared.get(cookie=cookie.encode("latin-1")).status == 200, cookie


def test_secrets_are_compared_in_constant_time(site, monkeypatch):
    compared = []

    def seen(one, other):
        compared.append(other.decode())
        return compare_digest(one, other)

    monkeypatch.setattr(guard, "compare_digest", seen)
    site.get()
    site.page.guard.token = site.token
    site.another().send("GET", f"{site.path}/?token=x", [("host", site.host)])
    site.page.guard.token = ""
    assert set(compared) >= set(site.secrets)
    source = inspect.getsource(guard)
    assert not re.search(r"[!=]= *self\.(_session|token)|self\.(_session|token) *[!=]=", source)


def test_the_file_that_leads_the_browser_to_the_token_is_private_and_goes(start, serving, monkeypatch):
    """Other users see the arguments of a browser: they name a file, not the address."""
    opened, seen = [], Event()
    monkeypatch.setattr(server.webbrowser, "open", lambda address: opened.append(address) or seen.wait(20))
    with serving(start, enter=False) as site:
        server.show_in_browser(site.page)  # does not wait for the browser
        place = site.workspace.folder / "open.html"
        end = time.monotonic() + 20
        while not opened and time.monotonic() < end:
            time.sleep(0.01)
        assert opened == [place.as_uri()]
        assert stat.S_IMODE(place.stat().st_mode) == 0o600
        assert f"url=http://{site.host}{site.entrance}" in place.read_text()
        site.enter(site.entrance)
        while place.exists() and time.monotonic() < end:
            time.sleep(0.01)
        assert not place.exists()
        seen.set()


# Requests that other pages cause


@pytest.mark.parametrize(
    "origin",
    [
        None,
        "null",
        "",
        "http://evil.example",
        "https://127.0.0.1:{port}",
        "http://127.0.0.1",
        "http://127.0.0.1:1",
        "http://localhost:{port}",  # the other name is another origin
        "http://127.0.0.1:{port}/",
        "http://127.0.0.1:{port}.evil.example",
        "HTTP://127.0.0.1:{port}",
        "file://",
    ],
)
def test_a_form_of_another_page_is_refused(shared, origin):
    before = shared.session.problem = "unchanged"
    for site_of_it in ("same-origin", None):  # null is refused whatever else the browser says
        given = origin and origin.format(port=shared.port)
        assert refused(shared.post(form=CHOOSE, origin=given, sec_fetch_site=site_of_it))
        assert refused(shared.upload(origin=given, sec_fetch_site=site_of_it))
    assert shared.session.choices is None
    assert shared.session.problem == before


def test_two_origins_are_refused(shared):
    for second in (shared.origin, "http://evil.example"):
        headers = [*shared.headers(content_length="0"), ("Origin", shared.origin), ("Origin", second)]
        assert refused(shared.send("POST", f"{shared.path}/choose", headers))


@pytest.mark.parametrize("where", ["cross-site", "same-site", "", "x", "Same-Origin"])
def test_a_request_of_another_site_is_refused(shared, where):
    """Another port of this machine is the same site, but another origin."""
    assert refused(shared.get(sec_fetch_site=where))
    assert refused(shared.get("app.css", sec_fetch_site=where))
    assert refused(shared.post(form=CHOOSE, sec_fetch_site=where))
    assert shared.session.choices is None


def test_a_read_that_another_origin_caused_is_refused(shared):
    assert refused(shared.get(origin="http://evil.example"))
    assert refused(shared.get(origin="null"))


def test_own_forms_work(site):
    assert site.post(form=CHOOSE).status == 303
    assert site.session.choices.name == "people.csv"
    assert site.get("people", sec_fetch_site="none").status == 200  # a bookmark
    assert site.get("people", sec_fetch_site=None).status == 200  # an old browser


@pytest.mark.parametrize("method", ["PUT", "DELETE", "PATCH", "OPTIONS", "TRACE", "CONNECT", "get"])
def test_other_methods_are_refused(shared, method):
    answer = shared.get(method=method, origin=shared.origin)
    assert refused(answer)
    assert answer["access-control-allow-origin"] is None
    assert answer["allow"] is None


def test_a_head_is_a_read_without_a_body(shared):
    answer = shared.get(method="HEAD")
    assert (answer.status, answer.body) == (200, b"")


def test_there_are_no_web_sockets(shared, caplog):
    upgrade = {"connection": "Upgrade", "upgrade": "websocket", "sec-websocket-version": "13"}
    upgrade |= {"sec-websocket-key": "dGhlIHNhbXBsZSBub25jZQ=="}
    assert shared.get(**upgrade).status == 200  # an ordinary answer, not 101
    assert refused(shared.another().get(**upgrade))
    assert caplog.records == []


# What is sent


def test_every_answer_has_the_headers(shared, monkeypatch):
    monkeypatch.setattr(server, "MOST_BYTES", 10)
    shared.session.results.mkdir(exist_ok=True)
    (shared.session.results / "ledger.json").write_text("{}")
    monkeypatch.setattr(type(shared.session), "made", True)
    answers = {
        "screen": (shared.get(), 200),
        "style": (shared.get("app.css"), 200),
        "script": (shared.get("app.js"), 200),
        "icon": (shared.get("icon.svg"), 200),
        "redirect": (shared.post(form={"do": "x"}), 303),
        "not ready": (shared.get("people"), 303),
        "download": (shared.get("file/ledger.json"), 200),
        "part": (shared.get("file/ledger.json", range="bytes=0-0"), 206),
        "no range": (shared.get("file/ledger.json", range="bytes=9-"), 416),
        "no file": (shared.get("file/none"), 404),
        "no screen": (shared.get("none"), 404),
        "comparison": (shared.get("comparison"), 404),
        "no route": (shared.get("a/b/c"), 404),
        "method": (shared.post("progress"), 404),
        "too large": (shared.post(body=b"x" * 11), 413),
        "refused": (shared.get(host="evil.example"), 403),
        "no cookie": (shared.another().get(), 403),
        "progress": (shared.get("progress"), 200),
        "head": (shared.get(method="HEAD"), 200),
        "folder": (shared.get(""), 303),
    }

    def broken(session):
        raise ValueError(CANARY)

    monkeypatch.setitem(SCREENS, "choose", replace(SCREENS["choose"], show=broken))
    answers["error"] = shared.get(), 500
    for what, (answer, status) in answers.items():
        assert answer.status == status, what
        assert {name: answer[name] for name in OURS} == OURS, what
        assert answer["server"] is None
        assert not any(secret in answer.text + str(answer.headers) for secret in shared.secrets), what


@pytest.mark.parametrize(
    "data", [b"\x16\x03\x01\x02\x00\r\n\r\n", b"GET /\r\n\r\n", b"GET / HTTP/1.1\r\nA B: 1\r\n\r\n"]
)
def test_what_is_no_request_gets_the_headers_and_nothing_else(shared, data, caplog):
    head, _, body = shared.raw(data).decode().partition("\r\n\r\n")
    lines = dict(line.split(": ", 1) for line in head.split("\r\n")[1:])
    assert head.startswith("HTTP/1.1 400 ")
    assert lines | OURS == lines
    assert body == ""
    assert caplog.records == []


def test_an_oversized_head_is_refused(shared):
    assert shared.raw(b"GET /%s HTTP/1.1\r\n" % (b"x" * 200_000)).startswith(b"HTTP/1.1 400")
    assert shared.get(f"choose?{'a=' * 20_000}").status == 200  # no screen reads a query
    assert shared.get().status == 200


def test_no_address_of_the_page_has_more_than_names_of_screens(site):
    """No value, token or file of the person stands in an address or a title."""
    site.choose("people.csv")
    for screen in SCREENS:
        text = site.get(screen).text
        addresses = re.findall(r'(?:href|src|action)="([^"]*)"', text)
        assert all(re.fullmatch(r"#main|[a-z]+(\.css|\.js|\.svg)?", address) for address in addresses)
        assert not re.search(r"<title>(?!(Choose|Table and people|Run) · privsyn<)", text)


def test_a_browser_does_not_store_what_is_typed(site):
    """Browsers keep what is typed into a form, for the next form and for a crash, unless it says no."""
    site.choose("people.csv")
    for screen in SCREENS:
        for form in re.findall(r"<form.*?</form>", site.get(screen).text, re.DOTALL):
            kinds = ("checkbox", "radio", "hidden", "file", "range", "search", "number")
            inputs = re.findall(r"<(?:input|textarea)[^>]*>", form)
            typed = [each for each in inputs if not any(f'type="{kind}"' in each for kind in kinds)]
            off = 'autocomplete="off"'
            assert off in form.partition(">")[0] or all(off in each for each in typed), typed


def test_only_two_headers_may_differ(shared, monkeypatch):
    """The comparison with the real rows is in a sandbox. It cannot be cached or framed either."""

    async def answer(scope, receive, send):
        own = [(name.encode(), b"other") for name in OURS]
        await send({"type": "http.response.start", "status": 200, "headers": own})
        await send({"type": "http.response.body", "body": b""})

    monkeypatch.setattr(shared.page.guard, "screens", answer)
    changed = {name for name in OURS if shared.get()[name] == "other"}
    assert changed == {"content-security-policy", "cross-origin-opener-policy"}


# Errors


@pytest.mark.parametrize("error", [ValueError, KeyError, InputError, OSError, SystemExit])
def test_no_error_shows_a_cell(shared, monkeypatch, capfd, error):
    """Screens and buttons that fail while they read the rows: the text of their error may quote a cell."""

    def broken(*_):
        raise error(CANARY)

    screen = SCREENS["choose"]
    changed = replace(screen, show=broken, actions={"choose": broken})
    with monkeypatch.context() as patch:
        patch.setitem(SCREENS, "choose", changed)
        for answer in (shared.get(), shared.post(form={"do": "choose"}), shared.get()):
            assert CANARY not in answer.text + str(answer.headers)
            assert answer.status == (303 if error is InputError and answer["location"] else 500)
    shared.session.problem = ""
    assert shared.get().status == 200
    assert capfd.readouterr() == ("", "")


def test_an_error_of_the_program_itself_shows_no_cell(shared, monkeypatch, capfd):
    async def broken(scope, receive, send):
        raise ValueError(CANARY)

    monkeypatch.setattr(shared.page.guard, "screens", broken)
    answer = shared.get()
    assert (answer.status, answer.text) == (500, "privsyn: internal error; please report it")
    assert answer["cache-control"] == "no-store"
    assert capfd.readouterr() == ("", "")


def test_an_error_in_the_middle_of_an_answer_shows_nothing(site, monkeypatch, capfd, endless):
    def broken(seconds):
        raise ValueError(CANARY)

    monkeypatch.setattr(endless, "wait", broken)
    site.session.job = endless
    with pytest.raises(http.client.IncompleteRead) as caught:
        site.get("progress")
    assert b'data: {"stage"' in caught.value.partial
    assert CANARY.encode() not in caught.value.partial
    site.session.job = None
    assert capfd.readouterr() == ("", "")


def test_names_of_columns_are_text_not_markup(site):
    (site.workspace.start / "odd.csv").write_text('"<script>alert(1)</script>","x"" onload=""a"\n1,2\n')
    site.choose("odd.csv")
    text = site.get("people").text
    assert "&lt;script&gt;alert(1)" in text
    assert "<script>alert" not in text
    assert 'x" onload="a' not in text


# Forms


def test_a_form_over_the_limit_is_refused(shared, monkeypatch):
    monkeypatch.setattr(server, "MOST_BYTES", 1000)
    assert shared.post(body=b"a=" + b"x" * 998).status == 303
    assert shared.post(body=b"a=" + b"x" * 999).status == 413
    chunks = b"3e8\r\n" + b"x" * 1000 + b"\r\n"
    head = shared.head("POST", "choose", origin=shared.origin, transfer_encoding="chunked")
    assert shared.raw(head + chunks + b"0\r\n\r\n").startswith(b"HTTP/1.1 303")
    assert shared.raw(head + 2 * chunks).startswith(b"HTTP/1.1 413")  # not waiting for the end


def test_a_form_of_too_many_fields_is_refused(shared):
    assert shared.post(body=b"&".join([b"a=1"] * server.MOST_FIELDS)).status == 303
    assert shared.post(body=b"&".join([b"a=1"] * (server.MOST_FIELDS + 1))).status == 413


@pytest.mark.parametrize(
    "body", [b"", b"\xff\xfe\x00", b'{"do": "choose", "file": "people.csv"}', b"do=&do=choose"]
)
def test_what_is_no_form_does_nothing(shared, body):
    answer = shared.post(body=body, content_type="application/json")
    assert (answer.status, answer["location"]) == (303, f"{shared.path}/choose")
    assert shared.session.choices is None


def test_a_slow_form_holds_up_nobody(shared):
    with socket.create_connection(("127.0.0.1", shared.port), timeout=20) as slow:
        slow.sendall(shared.head("POST", "choose", origin=shared.origin, content_length="9") + b"12")
        assert shared.get().status == 200


# The end


def test_it_stops_if_nobody_uses_it(start, serving):
    with serving(start, idle_minutes=0.2 / 60) as site:
        site.thread.join(20)
        assert not site.thread.is_alive()
        with pytest.raises(OSError, match="refused"):
            site.get()


def test_it_does_not_stop_during_a_run_or_a_request(start, serving, endless):
    with serving(start, idle_minutes=0.1 / 60, job=endless) as site:
        time.sleep(0.5)
        assert site.thread.is_alive()
        with socket.create_connection(("127.0.0.1", site.port), timeout=20) as slow:
            slow.sendall(site.head("POST", "choose", origin=site.origin, content_length="3") + b"a")
            end = time.monotonic() + 20
            while site.page.guard.idle and time.monotonic() < end:  # until the request has begun
                time.sleep(0.01)
            site.session.job = None
            time.sleep(1.2)  # it would have ended by now
            slow.sendall(b"=1")
            assert slow.recv(12) == b"HTTP/1.1 303"


def test_refused_requests_do_not_keep_it_running(start, serving):
    with serving(start, idle_minutes=0.3 / 60) as site:
        begun = time.monotonic()
        while site.thread.is_alive() and time.monotonic() < begun + 20:
            try:
                assert refused(site.another().get())
                assert refused(site.get(host="evil.example"))
            except OSError:
                break
        assert time.monotonic() < begun + 20
        site.thread.join(20)
        assert not site.thread.is_alive()


def test_an_open_stream_of_progress_does_not_hold_up_the_end(start, serving, endless):
    with serving(start) as site:
        site.session.job = endless
        with socket.create_connection(("127.0.0.1", site.port), timeout=20) as stream:
            stream.sendall(site.head("GET", "progress"))
            received = b""
            while b"data:" not in received:
                received += (part := stream.recv(4096))
                assert part, received
            begun = time.monotonic()
            site.page.close()
            site.thread.join(20)
            assert not site.thread.is_alive()
            assert time.monotonic() - begun < 15


def test_no_button_starts_anything_after_the_end(site, monkeypatch):
    site.page.close()
    started = []
    screen = SCREENS["choose"]
    late = {"choose": lambda session, form: started.append(1) or "choose"}
    monkeypatch.setitem(SCREENS, "choose", replace(screen, actions=late))
    assert not site.page._one_at_a_time.acquire(timeout=0.1)
    assert started == []
