"""An upload reaches the disk whole or not at all, whatever a request says about itself."""

import os
import re
import socket
import stat
import time
import tracemalloc
from functools import partial

import pytest

from privsyn.app import server, uploads
from privsyn.app.command import Command
from privsyn.app.uploads import safe_name
from privsyn.errors import InputError

DATA = b"age,sex\n31,F\n45,M\n"


def left(site):
    """What is in the folder of uploads."""
    return sorted(str(file.relative_to(site.workspace.folder / "uploads")) for file in files(site))


def files(site):
    return [file for file in (site.workspace.folder / "uploads").rglob("*") if not file.is_dir()]


def arrives(site, answer):
    return (answer.status, answer["location"]) == (303, f"{site.path}/people")


def refused(site, answer, words):
    """Return whether an upload was refused with this message, and nothing is left of it."""
    before = (answer.status, answer["location"]) == (303, f"{site.path}/choose")
    return before and words in (site.problem or "") and not left(site)


def send_slowly(site, body, kind, size):
    """Begin an upload; return its connection."""
    connection = socket.create_connection(("127.0.0.1", site.port), timeout=20)
    head = site.head("POST", "upload", origin=site.origin, content_type=kind, content_length=str(size))
    connection.sendall(head + body)
    return connection


def until(condition):
    """Wait until something holds that another thread does."""
    end = time.monotonic() + 20
    while not condition() and time.monotonic() < end:
        time.sleep(0.01)
    return condition()


def test_an_upload_is_kept_for_its_owner_alone(site):
    before = os.umask(0)  # whatever the umask
    try:
        assert arrives(site, site.upload("my people.csv", DATA))
    finally:
        os.umask(before)
    file = site.session.choices.path
    assert (file.name, file.read_bytes()) == ("my people.csv", DATA)
    assert file.is_relative_to(site.workspace.folder)
    for place, mode in ((file, 0o600), *((folder, 0o700) for folder in file.parents[:3])):
        assert stat.S_IMODE(place.stat().st_mode) == mode, place
    assert site.session.choices.table.names == ["age", "sex"]


def test_an_upload_is_streamed_to_the_disk(site, form_with_files):
    """64 MB pass through less than 16 MB of memory, of this client and of the server together."""
    kind, body = form_with_files([("file", "large.csv", b"")])
    before, after = body[: body.index(b"\r\n\r\n") + 4], body[body.index(b"\r\n\r\n") + 4 :]
    part, parts = b"a,b\n" * 2**18, 64
    size = len(before) + parts * len(part) + len(after)
    tracemalloc.start()
    try:
        with send_slowly(site, before, kind, size) as connection:
            for _ in range(parts):
                connection.sendall(part)
            connection.sendall(after)
            assert connection.recv(12) == b"HTTP/1.1 303"
        assert tracemalloc.get_traced_memory()[1] < 16e6
    finally:
        tracemalloc.stop()
    assert site.session.choices.path.stat().st_size == parts * len(part)


def test_an_upload_over_the_limit_leaves_nothing(start, serving):
    with serving(start, upload_gb=1e-4) as site:  # 100 kB
        assert arrives(site, site.upload("small.csv", b"a,b\n" + b"1,2\n" * 10_000))
        site.session.forget()
        assert refused(site, site.upload("large.csv", b"a,b\n" + b"1,2\n" * 25_000), "larger than 0.0001 GB")
        assert site.session.choices is None


@pytest.mark.parametrize(
    ("given", "kept"),
    [
        ("../../people.csv", "people.csv"),
        ("/etc/passwd.csv", "passwd.csv"),
        (r"C:\data\people.csv", "people.csv"),
        ("..csv.csv", "csv.csv"),
        (".hidden.csv", "hidden.csv"),
        ("a::b.csv", "a__b.csv"),
        ("a\u202ecsv.csv", "a_csv.csv"),
        ("$(id).csv", "_(id).csv"),
        ("a\x01\x7f;|&*?.CSV", "a_______.CSV"),
        ("名前" * 100 + ".csv", ("名前" * 100)[-56:] + ".csv"),
        ("\U00020000" * 100 + ".csv", "\U00020000" * 56 + ".csv"),  # four bytes each
        ("%2e%2e%2fpeople.csv", "_2e_2e_2fpeople.csv"),
    ],
    ids=range(12),
)
def test_a_file_name_cannot_lead_anywhere(site, given, kept):
    assert safe_name(given) == kept
    assert arrives(site, site.upload(given, DATA))
    assert [re.sub("^[0-9a-f]{16}/", "", name) for name in left(site)] == [kept]
    assert len(kept.encode()) <= 255


@pytest.mark.parametrize(
    "name",
    [
        "people",
        "people.exe",
        ".csv",
        "..csv",
        "/.csv",
        "people.csv/",
        "people.csv/..",
        "a.csv\x00.exe",
        "csv",
    ],
)
def test_what_is_not_named_like_a_table_is_refused(shared, name):
    with pytest.raises(InputError, match="upload a table"):
        safe_name(name)
    assert refused(shared, shared.upload(name.replace("\x00", "_"), DATA), "upload a table")


@pytest.mark.parametrize(
    ("parts", "words"),
    [
        ([("file", None, DATA)], "choose a file to upload"),
        ([("file", "", b"")], "choose a file to upload"),
        ([], "choose a file to upload"),
        ([("file", "a.csv", DATA), ("file", "a.csv", DATA)], "two of the files have one name"),
        ([("file", "a.csv", DATA), ("file", "b.txt", DATA)], "upload a table"),
        ([("x", None, b"")] * uploads.MOST_PARTS + [("file", "a.csv", DATA)], "choose a file to upload"),
        ([("x" * uploads.MOST_HEADER_BYTES, "a.csv", DATA)], "choose a file to upload"),
    ],
)
def test_a_form_has_files_of_different_names(shared, form_with_files, parts, words):
    kind, body = form_with_files(parts)
    assert refused(shared, shared.post("upload", body=body, content_type=kind), words)


def test_several_files_are_linked_tables_in_a_folder_named_after_them(site, form_with_files):
    """The same tables have the same name again, and so the same budget file."""
    for names in (["b.csv", "a.csv"], ["a.csv", "b.csv"]):
        kind, body = form_with_files([("file", name, DATA) for name in names])
        answer = site.post("upload", body=body, content_type=kind)
        assert (answer.status, answer["location"]) == (303, f"{site.path}/tables")
        folder = site.session.choices.path
        assert folder.name == "a+b"
        assert stat.S_IMODE(folder.stat().st_mode) == 0o700
        assert [*site.session.choices.tables] == ["a", "b"]
        assert [re.sub("^[0-9a-f]{16}/", "", name) for name in left(site)] == ["a+b/a.csv", "a+b/b.csv"]
        assert Command(site.session.choices).files.path == site.workspace.start / "a+b.budget.jsonl"


@pytest.mark.parametrize(
    ("kind", "words"),
    [
        ("application/x-www-form-urlencoded", "choose a file"),
        ("text/plain", "choose a file"),
        ("multipart/form-data", "choose a file"),
        ("multipart/form-data; boundary=", "choose a file"),
        ("multipart/form-data; boundary=other", "not complete"),
        (f"multipart/form-data; boundary={'x' * 1000}", "not complete"),
        (None, "choose a file"),
    ],
)
def test_another_type_of_body_is_refused(shared, form_with_files, kind, words):
    _, body = form_with_files([("file", "a.csv", DATA)])
    assert refused(shared, shared.post("upload", body=body, content_type=kind), words)


def test_many_headers_of_a_part_are_refused(shared, form_with_files):
    kind, body = form_with_files([("file", "a.csv", DATA)])
    many = b"".join(b"X-%d: y\r\n" % number for number in range(1000))
    body = body.replace(b"Content-Disposition", many + b"Content-Disposition", 1)
    assert refused(shared, shared.post("upload", body=body, content_type=kind), "not complete")


@pytest.mark.parametrize("cut", [1, 30, 60, 90, 130])
def test_an_upload_that_stops_leaves_nothing(shared, form_with_files, cut):
    """The browser goes away, wherever that is in the form."""
    kind, body = form_with_files([("file", "a.csv", DATA)])
    with send_slowly(shared, body[:-cut], kind, len(body)):
        assert until(lambda: shared.page.uploading)  # or it would begin during the next test
    assert until(lambda: not shared.page.uploading)
    assert not left(shared)
    assert shared.session.choices is None


def test_a_form_without_its_end_is_refused(shared, form_with_files):
    kind, body = form_with_files([("file", "a.csv", DATA)])
    for cut in (3, 4, 5, 30, 60, 90):  # the line end after the last boundary is optional
        assert refused(shared, shared.post("upload", body=body[:-cut], content_type=kind), "choose a file")


def test_a_length_that_lies_gains_nothing(shared, form_with_files):
    kind, body = form_with_files([("file", "a.csv", DATA)])
    head = partial(shared.head, "POST", "upload", origin=shared.origin, content_type=kind)
    answer = shared.raw(head(content_length=str(len(body) - 40)) + body)  # the rest is no request
    assert answer.startswith(b"HTTP/1.1 303")
    assert answer.count(b"HTTP/1.1") == 1
    assert not left(shared)
    for wrong in ("-1", "x", "1e3", "5, 6", "99999999999999999999999"):
        assert shared.raw(head(content_length=wrong) + body).startswith(b"HTTP/1.1 400")
    both = head(content_length="3", transfer_encoding="chunked") + b"0\r\n\r\n" + body
    assert not shared.raw(both).count(b"/people")
    assert shared.session.choices is None


def test_a_failed_upload_leaves_the_table_of_before(site):
    assert arrives(site, site.upload("a.csv", DATA))
    choices = site.session.choices
    site.upload("b.exe", DATA)
    site.upload("c.parquet", DATA)  # no Parquet
    assert "c.parquet" in site.problem
    assert site.session.choices is choices
    assert choices.path.read_bytes() == DATA
    assert len(left(site)) == 1
    assert arrives(site, site.upload("d.csv", DATA))
    assert [name.partition("/")[2] for name in left(site)] == ["d.csv"]  # the last is no longer used


def test_one_upload_at_a_time(site, form_with_files):
    """Two at once could fill the disk with twice the limit."""
    kind, body = form_with_files([("file", "slow.csv", DATA)])
    with send_slowly(site, body[:-9], kind, len(body)) as slow:
        assert until(lambda: site.page.uploading)
        assert site.upload("b.csv", DATA)["location"] == f"{site.path}/choose"
        assert "another upload" in site.problem
        slow.sendall(body[-9:])
        assert slow.recv(12) == b"HTTP/1.1 303"
    assert site.session.choices.path.name == "slow.csv"
    assert arrives(site, site.upload("b.csv", DATA))


def test_the_table_of_a_run_cannot_be_replaced(site, endless):
    """Another table would leave the run without its file, and nobody to end it."""

    site.upload("a.csv", DATA)
    choices, site.session.job = site.session.choices, endless
    site.upload("b.csv", DATA)
    assert "a run is under way" in site.problem
    site.choose("people.csv")
    assert "a run is under way" in site.problem
    assert site.session.choices is choices
    assert choices.path.read_bytes() == DATA
    assert site.session.job.running


def test_a_database_that_is_uploaded_is_kept_until_a_table_is_chosen(site, tmp_path):
    import sqlite3

    place = tmp_path / "two.sqlite"
    with sqlite3.connect(place) as base:
        base.execute("CREATE TABLE one (a)")
        base.execute("CREATE TABLE two (b)")
    base.close()
    answer = site.upload("two.sqlite", place.read_bytes())
    assert answer["location"] == f"{site.path}/choose"
    assert arrives(site, site.post(form={"do": "table", "table": "two"}))
    assert site.session.choices.path.is_file()


def test_an_uploaded_database_reads_no_other_file(site, start, tmp_path):
    """A view in a database of somebody else may name any file of this machine."""
    duckdb = pytest.importorskip("duckdb")
    secret, place = tmp_path / "secret.csv", tmp_path / "shop.duckdb"
    secret.write_text("canary\n4711\n")
    with duckdb.connect(str(place)) as base:
        base.execute(f"CREATE VIEW visits AS SELECT * FROM read_csv('{secret}')")  # noqa: S608
    answer = site.upload("shop.duckdb", place.read_bytes())
    assert answer["location"] == f"{site.path}/choose"
    assert "canary" not in site.get("choose").text
    assert site.session.choices is None


def test_forgetting_removes_uploads(site):
    site.upload("a.csv", DATA)
    site.session.forget()
    assert not left(site)


def test_a_full_disk_leaves_nothing(shared, monkeypatch):
    def full(self, data, start, end):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(uploads._Upload, "_write", full)
    assert refused(shared, shared.upload("a.csv", DATA), "not complete")


def test_an_upload_needs_the_session(shared):
    assert shared.another().upload("a.csv", DATA).status == 403
    assert shared.upload("a.csv", DATA, origin=None).status == 403
    assert not left(shared)
    assert server.UPLOAD_GB == 4
