"""Paths stay in the start folder, results in the private one, and nothing is left but what was paid for."""

import fcntl
import os
import sqlite3
import stat
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from privsyn.app import workspace as module
from privsyn.app.guard import ENTRANCE, REFUSED
from privsyn.app.session import Session
from privsyn.app.workspace import Workspace
from privsyn.errors import InputError

AS_ROOT = pytest.mark.skipif(os.getuid() != 0, reason="only root can be another user")


@pytest.fixture
def work(start):
    workspace = Workspace(start)
    yield workspace
    workspace.close()


@pytest.fixture(scope="module")
def outside(tmp_path_factory):
    """Files of the same person outside of the start folder."""
    folder = tmp_path_factory.mktemp("base") / "outside"
    folder.mkdir()
    (folder / "secret.csv").write_text("canary\n4711\n")
    with sqlite3.connect(folder / "secret.sqlite") as base:
        base.execute("CREATE TABLE secret (canary)")
    base.close()
    return folder


def private(start):
    return sorted(start.glob(".privsyn*"))


# What can be chosen


def test_tables_in_the_start_folder_and_one_deeper_are_listed_and_chosen(work, start):
    (start / "sub").mkdir()
    (start / "sub" / "more.CSV").write_text("a\n1\n")
    (start / "notes.txt").write_text("")
    assert work.listed() == ["people.csv", "sub/more.CSV"]
    assert [work.inside(name) for name in work.listed()] == [start / "people.csv", start / "sub" / "more.CSV"]


@pytest.mark.parametrize("inside", ["sub", "sub/deeper", "secret.sqlite::sub"])
def test_no_folder_with_a_link_in_it_can_be_chosen(work, start, outside, inside):
    (start / "more.csv").write_text("a\n1\n")
    assert work.inside(".") == start
    (start / inside).mkdir(parents=True)
    (start / inside / "part.parquet").symlink_to(outside / "secret.csv")
    with pytest.raises(InputError, match="link"):
        work.inside(".")


@pytest.fixture(scope="module")
def trapped(serving, outside):
    """A page whose start folder has hidden files, links that lead out, and names that readers split."""
    start = outside.parent / "start"
    for folder in ("sub", ".hidden", "folder.csv", "secret.sqlite::sub"):
        (start / folder).mkdir(parents=True)
    for file in (".hidden.csv", ".hidden/people.csv", "notes.txt", "passwd", "people.csv"):
        (start / file).write_text("canary\n4711\n")
    for file in ("secret.sqlite::x.xlsx", "secret.sqlite::sub/x.xlsx"):
        (start / file).write_text("")
    (start / "link.csv").symlink_to(outside / "secret.csv")
    (start / "broken.csv").symlink_to(outside / "none.csv")
    (start / "loop.csv").symlink_to(start / "loop.csv")
    (start / "secret.sqlite").symlink_to(outside / "secret.sqlite")
    (start / "linked").symlink_to(outside)
    (start / "here").symlink_to(start)
    os.mkfifo(start / "pipe.csv")
    with serving(start) as site:
        yield site


@pytest.mark.parametrize(
    "name",
    [
        "",
        ".",
        "..",
        "/",
        "../outside/secret.csv",
        "sub/../../outside/secret.csv",
        "sub/../people.csv",
        "./../outside/secret.csv",
        "{outside}/secret.csv",
        "{start}/people.csv",
        "//etc/passwd",
        "~/people.csv",
        "file://{outside}/secret.csv",
        "people.csv\x00",
        "people.csv\x00.csv",
        "..\\outside\\secret.csv",
        "%2e%2e/outside/secret.csv",
        "..%2foutside%2fsecret.csv",
        "%2e%2e%2foutside%2fsecret.csv",
        "link.csv",
        "loop.csv",
        "broken.csv",
        "linked/secret.csv",
        "linked/../people.csv",
        "here/people.csv",
        "secret.sqlite",
        "secret.sqlite::secret",
        "secret.sqlite::x.xlsx",
        "secret.sqlite::sub/x.xlsx",
        ".hidden.csv",
        ".hidden/people.csv",
        "notes.txt",
        "passwd",
        "folder.csv",
        "pipe.csv",
        "sub",
        "people.csv/x.csv",
        "x" * 5000 + ".csv",
        "*.csv",
        "people.csv::",
    ],
)
def test_no_other_path_can_be_chosen(trapped, outside, name):
    """Folders above, absolute paths, links, hidden files, other endings, and names that readers split."""
    name = name.format(outside=outside, start=trapped.workspace.start)
    with pytest.raises(InputError, match="in the list"):
        trapped.workspace.inside(name)
    assert trapped.choose(name)["location"] == f"{trapped.path}/choose"
    assert trapped.problem == "choose a table that is in the list"
    assert trapped.session.choices is None
    assert trapped.session.database is None


def test_what_cannot_be_chosen_is_not_listed(trapped):
    assert trapped.workspace.listed() == ["people.csv"]
    assert "canary" not in trapped.get("choose").text


def test_a_file_that_became_a_link_before_it_is_read_is_refused_at_the_next_look(work, start, outside):
    """What is not covered: an exchange between the check and the read, by somebody who may write here."""
    assert work.inside("people.csv")
    (start / "people.csv").unlink()
    (start / "people.csv").symlink_to(outside / "secret.csv")
    with pytest.raises(InputError, match="in the list"):
        work.inside("people.csv")


def test_the_list_has_an_end(work, start, monkeypatch):
    monkeypatch.setattr(module, "MOST_LISTED", 3)
    for number in range(5):
        (start / f"{number}.csv").write_text("a\n")
    assert len(work.listed()) == 3


def test_a_database_that_is_gone_does_not_block_the_first_screen(site, start):
    with sqlite3.connect(start / "two.sqlite") as base:
        base.execute("CREATE TABLE one (a)")
        base.execute("CREATE TABLE two (b)")
    base.close()
    site.choose("two.sqlite")
    assert "Tables in two.sqlite" in site.get().text
    (start / "two.sqlite").unlink()
    assert site.get().status == 303
    assert site.get().status == 200


@pytest.mark.parametrize("place", ["none", "people.csv"])
def test_a_start_folder_must_be_one(start, place):
    with pytest.raises(InputError, match="no such folder"):
        Workspace(start / place)


def test_a_start_folder_that_readers_would_split_is_refused(tmp_path):
    (tmp_path / "a.sqlite::b").mkdir()
    with pytest.raises(InputError, match="use another folder"):
        Workspace(tmp_path / "a.sqlite::b")
    assert not private(tmp_path / "a.sqlite::b")


# Results


@pytest.fixture(scope="module")
def made(serving, tmp_path_factory):
    """A page whose run has ended, with files in its folder that may not be taken."""
    with pytest.MonkeyPatch.context() as patch, serving(tmp_path_factory.mktemp("start")) as site:
        patch.setattr(Session, "made", True)
        site.session.results.mkdir()
        for name in ("synthetic.csv", "model.privsyn", "ledger.json", ".part-synthetic.csv", "private.html"):
            (site.session.results / name).write_text(name)
        yield site


def test_results_can_be_taken(made):
    answer = made.get("file/ledger.json")
    assert (answer.status, answer.text) == (200, "ledger.json")
    assert answer["content-type"] == "application/octet-stream"  # no page of ours, whatever is in it
    assert answer["content-disposition"] == 'attachment; filename="ledger.json"'


@pytest.mark.parametrize(
    "name",
    [
        "..",
        ".",
        "%2e%2e",
        "../lock",
        "..%2flock",
        "%2e%2e%2flock",
        "%2e%2e/lock",
        "x/../ledger.json",
        "x%2f..%2fledger.json",
        "..%5clock",
        "%252e%252e%252flock",
        "ledger.json/",
        "ledger.json%00",
        "ledger.json%00.csv",
        "%00",
        "/etc/passwd",
        "%2fetc%2fpasswd",
        "//etc/passwd",
        "{start}/people.csv",
        ".part-synthetic.csv",
        "private.html",
        "",
        "ledger.jsoN",
        "x" * 5000,
    ],
)
def test_no_other_file_can_be_taken(made, name):
    answer = made.get(f"file/{name.format(start=made.workspace.start)}")
    if answer.status == 307:  # a slash too many
        assert answer["location"] == f"{made.origin}{made.path}/file/{name}".rstrip("/")
    else:
        assert answer.status == 404
        assert answer.text in ("Not Found", "privsyn: there is no such file")


@pytest.mark.parametrize("name", ["../app.css", "app.css/..", "../guard.py", "base.html", "%2e%2e/base.html"])
def test_no_other_file_of_the_program_is_sent(shared, name):
    assert shared.get(name).status == 404


# The private folder


def test_the_private_folder_is_for_its_owner_alone(start):
    before = os.umask(0)
    try:
        work = Workspace(start)
        places = [work.folder, work.empty("run"), work.new("uploads"), work.folder / "uploads"]
        assert [stat.S_IMODE(place.stat().st_mode) for place in places] == [0o700] * 4
        assert stat.S_IMODE((work.folder / "lock").stat().st_mode) == 0o600
    finally:
        os.umask(before)
        work.close()
    assert private(start) == []


@AS_ROOT
def test_another_user_sees_nothing(serving):
    """Anybody may enter the start folder: the mode of the private one must do."""
    with TemporaryDirectory() as base, serving(Path(base)) as site:
        start = Path(base)
        start.chmod(0o755)
        site.upload("people.csv", b"canary\n4711\n")
        (site.workspace.empty("run") / "synthetic.csv").write_text("canary")
        upload = site.session.choices.path
        for file in (upload, *site.workspace.folder.rglob("*")):
            file.chmod(0o755)  # only the outermost folder protects
        seen = other_user(
            f"""
def refused(act, *given):
    try:
        act(*given)
    except PermissionError:
        return True
    return False
folder = {str(site.workspace.folder)!r}
assert os.getuid() == 65534 and os.listdir({str(start)!r})
assert refused(os.listdir, folder)
for file in ({str(upload)!r}, folder + "/run/synthetic.csv", folder + "/lock", folder + "/open.html"):
    assert refused(open, file) and refused(os.stat, file) and refused(os.remove, file), file
assert refused(open, folder + "/new", "w") and refused(os.rename, folder, folder + "x")
connection = http.client.HTTPConnection("127.0.0.1", {site.port})
for path in ("/", {site.path!r} + "/", {site.path!r} + "/choose", {site.entrance!r}):
    connection.request("GET", path)
    answer = connection.getresponse()
    assert answer.status == 403
    assert answer.read() in {(REFUSED, ENTRANCE)!r}  # the entrance leads to the first screen, which refuses
print("nothing")
"""
        )
    assert seen == "nothing\n"


def other_user(code):
    """Run Python as nobody, whom the folder of Python itself may be closed to."""
    become = "import encodings.idna, http.client, os; os.chdir('/'); os.setgroups([]); os.setgid(65534)"
    run = subprocess.run(
        [sys.executable, "-I", "-S", "-c", f"{become}; os.setuid(65534)\n{code}"],
        capture_output=True,
        text=True,
    )
    assert run.stderr == ""
    return run.stdout


def test_a_folder_in_use_is_left_alone(work, start):
    (work.empty("run") / "model.privsyn").write_text("model")
    other = Workspace(start)
    assert sorted([work.folder, other.folder]) == private(start)
    other.close()
    assert private(start) == [work.folder]
    assert (work.folder / "run" / "model.privsyn").exists()


def test_a_new_folder_is_locked_before_it_can_be_taken_for_abandoned(start, monkeypatch):
    """Another start may look at any moment: also between the folder and its lock."""
    seen = []

    def look(*given):
        if not seen:
            seen.append(1)
            Workspace(start).close()
        return flock(*given)

    flock = fcntl.flock
    monkeypatch.setattr(fcntl, "flock", look)
    work = Workspace(start)
    assert seen
    assert (work.folder / "lock").exists()
    work.close()
    assert private(start) == []


def test_an_abandoned_folder_is_removed_and_its_model_kept(start):
    for number in range(2):
        folder = start / f".privsyn-app-{number}"
        (folder / "uploads" / "x").mkdir(parents=True)
        (folder / "uploads" / "x" / "people.csv").write_text("canary")
        (folder / "run").mkdir()
        (folder / "run" / "model.privsyn").write_text(f"model {number}")
        (folder / "run" / "synthetic.csv").write_text("rows")
    work = Workspace(start)
    assert private(start) == [work.folder]
    assert sorted(model.read_text() for model in start.glob("*.kept.privsyn")) == ["model 0", "model 1"]
    assert len(work.kept) == 2
    work.close()


def test_what_only_looks_abandoned_is_left(start, outside, tmp_path):
    """A link, a file, and a folder of somebody else."""
    elsewhere = tmp_path / "elsewhere"
    (elsewhere / "run").mkdir(parents=True)
    (elsewhere / "run" / "model.privsyn").write_text("model")
    (start / ".privsyn-app-link").symlink_to(elsewhere)
    (start / ".privsyn-app-file").write_text("text")
    (start / ".privsyn-app-other").mkdir()
    left = [".privsyn-app-file", ".privsyn-app-link"]
    if os.getuid() == 0:
        os.chown(start / ".privsyn-app-other", 65534, 65534)
        left.append(".privsyn-app-other")
    Workspace(start).close()
    assert [place.name for place in private(start)] == left
    assert (elsewhere / "run" / "model.privsyn").read_text() == "model"


def test_a_run_keeps_the_folder_in_use_after_its_server_was_killed(start):
    """The process of the run inherits the lock: nobody removes what it will write."""
    work = Workspace(start)
    (work.empty("run") / "model.privsyn").write_text("model")
    run = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE, pass_fds=(work.lock,))
    os.close(work.lock)  # as if the server had been killed
    other = Workspace(start)
    assert work.folder.exists()
    run.communicate(b"\n")
    other._remove_abandoned()
    assert private(start) == [other.folder]
    assert [model.read_text() for model in other.kept] == ["model"]
    other.close()


# What is kept


@pytest.mark.parametrize(
    ("taken", "kept"),
    [
        ([], True),
        (["ledger.json", "synthetic.csv"], True),  # the model is what was paid for
        (["model.privsyn"], False),
        (["everything.zip"], False),
    ],
)
def test_a_model_that_was_paid_for_is_kept_unless_it_was_taken(start, serving, monkeypatch, taken, kept):
    monkeypatch.setattr(Session, "made", True)
    with serving(start) as site:
        site.workspace.taken = False
        for name in ("model.privsyn", "ledger.json", "synthetic.csv"):
            (site.workspace.folder / "run").mkdir(exist_ok=True)
            (site.session.results / name).write_text("paid for")
        for name in taken:
            assert site.get(f"file/{name}", method="HEAD").status == 200
            assert site.get(f"file/{name}", range="bytes=0-0").status == 206
        assert not site.workspace.taken
        for name in taken:
            assert site.get(f"file/{name}").status == 200
    assert [model.read_text() for model in start.glob("*.kept.privsyn")] == ["paid for"] * kept
    assert private(start) == []


def test_nothing_is_kept_if_the_person_asks_to_forget(start, serving, monkeypatch):
    with serving(start) as site:
        site.workspace.taken = False
        (site.workspace.empty("run") / "model.privsyn").write_text("paid for")
        site.session.forget()
        assert not any((site.workspace.folder / "run").iterdir())
    assert sorted(place.name for place in start.iterdir()) == ["people.csv"]


def test_a_kept_model_replaces_none(start):
    for text in ("first", "second"):
        work = Workspace(start)
        work.taken = False
        (work.empty("run") / "model.privsyn").write_text(text)
        work.close()
    assert sorted(model.read_text() for model in start.glob("*.kept.privsyn")) == ["first", "second"]
