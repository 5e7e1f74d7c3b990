"""Real processes: how they end, what they leave, what other users see of them, and where they connect to."""

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from privsyn.app.workspace import Workspace

CANARY = "canary4711"

TABLE = (
    "age,sex,note\n"
    + "".join(f"{30 + row % 9},{'FM'[row % 2]},a\n" for row in range(60))
    + f"30,F,{CANARY}\n"
)

FORKS = """
import json, os, signal, sys, time
from privsyn.app import server  # once for all: this takes most of the time of a start
from privsyn.cli.main import main
for kind in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
    signal.signal(kind, signal.SIG_DFL)  # nohup ignores one, and children inherit it
signal.signal(signal.SIGINT, signal.default_int_handler)
for line in sys.stdin:
    what, value = json.loads(line)
    if what == "wait":
        end, (ended, status) = time.monotonic() + 60, os.waitpid(value, os.WNOHANG)
        while not ended:
            if time.monotonic() > end:
                os.kill(value, signal.SIGKILL)  # or the tests would never end
            time.sleep(0.02)
            ended, status = os.waitpid(value, os.WNOHANG)
        print(os.waitstatus_to_exitcode(status), flush=True)
    elif child := os.fork():
        print(child, flush=True)
    else:
        os.setsid()
        output = os.open(value + ".out", os.O_CREAT | os.O_RDWR)
        for stream in (0, 1, 2):
            os.dup2(output, stream)
        os._exit(main(["app", value, "--no-browser"]))
"""


@pytest.fixture(scope="module")
def forks():
    """A process that has the app imported, and forks into running ones."""
    with subprocess.Popen(
        [sys.executable, "-c", FORKS], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:

        def ask(*what):
            process.stdin.write(f"{json.dumps(what)}\n")
            process.stdin.flush()
            return int(process.stdout.readline())

        yield ask
        process.stdin.close()
        assert process.wait(20) == 0


class Process:
    """`privsyn app` in a process of its own."""

    def __init__(self, forks, start):
        self.forks, self.start, self.output = forks, start, start.parent / f"{start.name}.out"
        self.output.unlink(missing_ok=True)
        self.pid = forks("start", str(start))
        found = until(lambda: re.search(r"http://127\.0\.0\.1:(\d+)(/\w+)/\?token=([\w-]+)", self.said))
        self.address, self.port, self.path, self.token = found[0], int(found[1]), found[2], found[3]

    @property
    def said(self):
        return self.output.read_text() if self.output.exists() else ""

    def end(self, kind):
        """Send a signal; return the exit code."""
        os.kill(self.pid, kind)
        return self.forks("wait", self.pid)


@pytest.fixture
def running(forks, start, client):
    """How a test starts a process, and a browser that has entered."""
    (start / "people.csv").write_text(TABLE)
    begun = []

    def begin():
        process = Process(forks, start)
        begun.append(process)
        process.browser = client(process.port, process.path)
        process.browser.enter(f"{process.path}/?token={process.token}")
        return process

    yield begin
    for process in begun:
        if alive(process.pid):
            process.end(signal.SIGKILL)


def alive(pid):
    try:
        return "\nState:\tZ" not in Path(f"/proc/{pid}/status").read_text()
    except OSError:
        return False


def until(condition, seconds=60):
    """Wait for another process; return what it did."""
    end = time.monotonic() + seconds
    while not (found := condition()) and time.monotonic() < end:
        time.sleep(0.02)
    assert found
    return found


def private(start):
    return list(start.glob(".privsyn*"))


def runs_in(folder):
    """Return the processes whose working folder it is."""
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            if str((process / "cwd").readlink()).startswith(str(folder)):
                found.append(int(process.name))
        except OSError:
            continue
    return found


@pytest.mark.slow("each case")
@pytest.mark.parametrize("kind", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_it_ends_in_order_and_removes_its_folder(running, start, kind):
    process = running()
    assert process.browser.upload("more.csv", TABLE.encode()).status == 303
    assert len(list(private(start)[0].rglob("more.csv"))) == 1
    assert process.end(kind) == 0
    assert private(start) == []
    assert [file.name for file in start.iterdir()] == ["people.csv"]
    assert len(process.said.splitlines()) == 5  # the address, and what is around it
    assert not any(word in process.said for word in (CANARY, "Traceback", process.browser.cookie))


def test_what_a_killed_process_left_is_removed_at_the_next_start(running, start):
    process = running()
    process.browser.upload("more.csv", TABLE.encode())
    left = private(start)
    (left[0] / "run").mkdir(exist_ok=True)
    (left[0] / "run" / "model.privsyn").write_text("paid for")
    assert process.end(signal.SIGKILL) == -signal.SIGKILL
    assert private(start) == left
    other = running()
    assert len(private(start)) == 1
    assert private(start) != left
    assert (start / "model.kept.privsyn").read_text() == "paid for"
    assert other.end(signal.SIGTERM) == 0


def begin_run(process, start):
    """Start a run; return its process."""
    browser = process.browser
    browser.post(form={"do": "choose", "file": "people.csv"})
    form = {"do": "next", "table": str((start / "people.csv").resolve()), "protects": "row"}
    assert browser.post("people", form)["location"].endswith("/run")
    assert browser.post("run", {"do": "start", "ending": ".csv", "rows": ""}).status == 303
    return until(lambda: runs_in(start))[0]


def test_a_run_ends_with_the_page(running, start):
    process = running()
    begin_run(process, start)
    assert process.end(signal.SIGTERM) == 0
    assert runs_in(start) == []
    assert private(start) == []


def test_a_run_whose_page_was_killed_keeps_its_folder(running, start):
    """It may still write a model that was paid for. It has the lock of the folder, which ends with it."""
    process = running()
    run = begin_run(process, start)
    os.kill(run, signal.SIGSTOP)  # or it would end too soon, because nobody reads its progress
    left = private(start)
    process.end(signal.SIGKILL)
    Workspace(start).close()
    assert private(start) == left
    os.kill(run, signal.SIGKILL)
    until(lambda: not runs_in(start))
    Workspace(start).close()
    assert private(start) == []


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/cmdline").exists(), reason="needs /proc")
def test_no_argument_and_no_environment_holds_a_secret(running, start):
    """Other users see the arguments of a process. Only the terminal is given the address."""
    process = running()
    secrets = [process.token, process.path[1:], *process.browser.cookie.split("=")[1:]]
    for name in ("cmdline", "environ"):
        text = Path(f"/proc/{process.pid}/{name}").read_text()
        assert not any(secret in text for secret in secrets)
    assert process.said.count(process.token) == 1
    assert process.browser.cookie not in process.said
    files = [file for file in start.rglob("*") if file.is_file()]
    assert not any(secret.encode() in file.read_bytes() for secret in secrets for file in files)


SPY = """
import os, sys
def write(line):
    with open(os.environ["SPY"], "a") as file:
        file.write(f"{line}\\n")
def hook(event, given):
    if event in ("socket.connect", "socket.sendto", "socket.sendmsg"):
        write(f"{event} {given[1]!r}")
    elif event in ("socket.getaddrinfo", "socket.gethostbyname"):
        write(f"{event} {given[0]!r}")
write(f"process {sys.argv[:1]}")
sys.addaudithook(hook)
"""
"""Runs at the start of each process of Python: it notes each address that is connected to or looked up."""

WHOLE_WAY = """
import fcntl, socket, struct, sys
from pathlib import Path
if sys.argv[4] == "alone":  # a new network has no loopback yet: SIOCSIFFLAGS, IFF_UP
    with socket.socket() as any_socket:
        fcntl.ioctl(any_socket, 0x8914, struct.pack("16sh14x", b"lo", 1))
sys.path.insert(0, sys.argv[1])
from conftest import running
pages = []
with running(Path(sys.argv[2])) as site:
    def see(answer, status=200):
        assert answer.status == status, answer
        pages.append(answer.text + str(answer.headers))
        return answer.text
    see(site.get())
    see(site.choose("people.csv"), 303)
    see(site.get("people"))
    form = {"do": "next", "table": site.session.choices.table.data, "protects": "row"}
    see(site.post("people", form), 303)
    see(site.get("run"))
    site.session.choices.seed = 1
    see(site.post("run", {"do": "start", "ending": ".csv", "rows": ""}), 303)
    see(site.get("progress"))
    assert "Done" in see(site.get("run")), pages[-1]
    see(site.get("result"))
    for name in ("synthetic.csv", "synthetic.parquet", "ledger.json", "public.html"):
        assert site.get(f"file/{name}").status == 200, name
    see(site.post("result", {"do": "forget", "sure": "on"}), 303)
    see(site.get())
    assert not any(word in page for page in pages for word in [sys.argv[3], *site.secrets])
print("done")
"""


@pytest.mark.slow
def test_the_whole_way_needs_no_network_and_shows_no_cell(start, tmp_path):
    """A table of 61 rows, of which one has a value of its own, in a network that has loopback alone."""
    (start / "people.csv").write_text(TABLE)
    (tmp_path / "spy").mkdir()
    (tmp_path / "spy" / "sitecustomize.py").write_text(SPY)
    paths = [str(tmp_path / "spy"), *filter(None, [os.environ.get("PYTHONPATH")])]
    environment = os.environ | {"SPY": str(tmp_path / "seen"), "PYTHONPATH": os.pathsep.join(paths)}
    here, alone = str(Path(__file__).parent), without_network()
    run = subprocess.run(
        [*alone, sys.executable, "-c", WHOLE_WAY, here, str(start), CANARY, "alone" if alone else ""],
        env=environment,
        capture_output=True,
        text=True,
        timeout=280,
    )
    assert (run.stdout, run.stderr) == ("done\n", "")
    seen = (tmp_path / "seen").read_text().splitlines()
    assert sum(line.startswith("process") for line in seen) == 2  # the page and the run were both watched
    reached = {line for line in seen if not line.startswith("process")}
    assert reached
    assert all(
        re.fullmatch(r"socket\.\w+ (\('127\.0\.0\.1', \d+\)|'127\.0\.0\.1')", line) for line in reached
    )


def without_network():
    """Return what runs a command in a network of its own, or nothing where that is not permitted."""
    for command in (["unshare", "-n"], ["unshare", "-rn"]):
        if (
            shutil.which("unshare")
            and subprocess.run([*command, "true"], capture_output=True).returncode == 0
        ):
            return command
    return []
