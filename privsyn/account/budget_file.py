"""The budget file beside a table: which runs spent what of it, and who started them when.

Each run adds two lines of JSON: `begins` before its first question, and `ends` with its ledger. A run without
its end, for it was killed or is at work, counts in full. A person may add a third one, `withdraws`, with the
reason: what was published cannot be unseen, so the run counts as before. The file is only ever appended to.
If the runs are kept in another file, the only line here is `kept_in` with its path.

**It shows nothing that a release does not.** A run's first line has settings, names of files, and who started
the run when: all of it is known before a row is read. The second line is the ledger, which may be published.
No line has the time at which a run ended, which would show how long a table is. Totals and refusals follow
from these lines. That a run ended says that no step failed, and no error depends on the value of a cell.
Names may be confidential all the same: only the user who began the file can read it (mode 0600).
"""

from __future__ import annotations

import getpass
import json
import os
import secrets
import socket
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, fields, replace
from datetime import UTC, datetime
from decimal import ROUND_CEILING, ROUND_FLOOR, Context
from functools import lru_cache
from io import FileIO
from math import fsum, isfinite
from pathlib import Path
from typing import Any, BinaryIO

from privsyn.errors import InputError, plural, replace_errors
from privsyn.private.ledger import Ledger
from privsyn.private.run_ledger import VERSION, RunLedger, other_roots_from_plain, protects
from privsyn.table.io.formats import file_of

ENDING = ".budget.jsonl"

SO_FAR = "spent on this table so far"
"""How the line with the total begins."""

KEPT_IN = "kept_in"
"""The key of the only line of a file whose runs are kept elsewhere; its value is a path."""

DIGITS = 4
"""Of a printed epsilon: what is spent is rounded up, and what is left is rounded down."""

DAMAGED = "{}: line {} is damaged: no privsyn wrote it so: restore the file from a copy, or correct that line"
CUT = (
    "{}: line {} was not written to its end: the run was killed, or the disk was full: delete that line. What"
    " began before it counts in full"
)


def now() -> str:
    """Return the time, UTC."""
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def who() -> str:
    """Return who runs this process, as user@host; of a user without a login name the number."""
    try:
        user = getpass.getuser()
    except (ImportError, KeyError, OSError):  # in containers
        user = str(os.getuid())
    return f"{user}@{socket.gethostname()}"


@dataclass(frozen=True)
class Withdrawal:
    """Says that what a run published is withdrawn: why, when, and who decided it."""

    reason: str
    when: str = field(default_factory=now)
    by: str = field(default_factory=who)

    def __post_init__(self) -> None:
        if not all(isinstance(text, str) and text.strip() for text in (self.reason, self.when, self.by)):
            raise ValueError("not a withdrawal")

    def __str__(self) -> str:
        return f"WITHDRAWN {self.when} by {self.by}: {self.reason} (what was spent stays spent)"


@dataclass(frozen=True)
class Run:
    """What a budget file says of one run.

    Parameters
    ----------
    epsilon, delta : float
        What the run promises.
    unit : str, optional
        The column of persons all of whose rows are protected. Default: one row is.
    seeded : bool
        Whether its noise can be repeated: NOT PRIVATE.
    data, out : str
        Names of the private table and of the synthetic one.
    policy : mapping, optional
        Its limits and the name of its file, if there was one.
    id, when, by, version : str
        When it was started (UTC, before a row is read), and who started it, as user@host.
    ledger : RunLedger, optional
        None as long as the run has not ended.
    withdrawal : Withdrawal, optional
        None as long as what the run published stands. It changes no cost.
    root : str, optional
        Of linked tables, the one of which `unit` is a column.
    other_roots : mapping of a table to a column
        Of linked tables, the others whose rows are persons of their own, and the column that identifies them.
    """

    epsilon: float
    delta: float
    unit: str | None
    seeded: bool
    data: str
    out: str
    policy: Mapping[str, Any] | None = None
    id: str = field(default_factory=lambda: secrets.token_hex(8))
    when: str = field(default_factory=now)
    by: str = field(default_factory=who)
    version: str = VERSION
    ledger: RunLedger | None = None
    withdrawal: Withdrawal | None = None
    root: str | None = None
    other_roots: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def from_plain(cls, plain: dict[str, Any]) -> Run:
        """Return the run that `to_plain` wrote, not ended."""
        run = cls(id=plain.pop("begins"), **plain)
        if run.to_plain().keys() - {"begins"} != plain.keys():  # what is missing has no default
            raise ValueError("not a run")
        in_range = isfinite(run.epsilon) and run.epsilon > 0 and 0 <= run.delta < 1
        texts = (run.data, run.out, run.id, run.when, run.by, run.version, run.unit or "", run.root or "")
        other_roots_from_plain(run.other_roots)  # raises if they are no texts
        if not (in_range and all(isinstance(text, str) for text in texts) and isinstance(run.seeded, bool)):
            raise ValueError("not a run")
        return run

    def to_plain(self) -> dict[str, Any]:
        """Return the line that the run begins with."""
        unset = (name for name in ("root", "other_roots") if not getattr(self, name))
        later = ("ledger", "withdrawal", *unset)
        names = [item.name for item in fields(self) if item.name not in later]
        plain = {name: getattr(self, name) for name in names}
        return {"begins": plain.pop("id"), **plain}

    def ended(self, ledger: RunLedger) -> Run:
        """Return the run with its ledger, which must be of this run."""
        promised = (ledger.promised_epsilon, ledger.promised_delta, ledger.unit, ledger.protects)
        begun = (self.epsilon, self.delta, self.unit, self.protects)
        if self.ledger is not None or promised != begun or ledger.private is self.seeded:
            raise ValueError("the ledger of another run")
        return replace(self, ledger=ledger)

    def withdrawn(self, plain: Mapping[str, Any]) -> Run:
        """Return the run with its withdrawal. What is withdrawn cannot be withdrawn again."""
        if self.withdrawal is not None or plain.keys() != {"reason", "when", "by"}:
            raise ValueError("not a withdrawal")
        return replace(self, withdrawal=Withdrawal(**plain))

    @property
    def protects(self) -> str:
        """What is protected, in words."""
        return protects(self.unit, self.root, self.other_roots.items())

    def __str__(self) -> str:
        cost = f"epsilon {rounded_up(self.epsilon)} at delta {rounded_up(self.delta)} for {self.protects}"
        remarks = "; NOT PRIVATE: the run had a seed" * self.seeded
        remarks += "; it did not end, or is at work: counts in full" * (self.ledger is None)
        remarks += "" if self.withdrawal is None else f"; {self.withdrawal}"
        return f"{self.id} {self.when} {self.by}: {cost}: {self.data} to {self.out}{remarks}"


@dataclass(frozen=True)
class Spent:
    """What the private runs that protect one unit promise together.

    Parameters
    ----------
    releases : int
    epsilon, delta : float
        By `Ledger.compose`, if each run has its ledger; else the sums of what they promise.
    seeded : int
        Number of further runs that are NOT PRIVATE. They have no promise to be added.
    unended : int
        Number of these releases whose runs did not end. If there is one, the promises are added.
    """

    releases: int
    epsilon: float
    delta: float
    seeded: int
    unended: int = 0

    @classmethod
    def of(cls, runs: Iterable[Run]) -> Spent:
        """Return what these runs spent, which protect the same unit."""
        listed = list(runs)
        private = [run for run in listed if not run.seeded]
        epsilon, delta = _together(private)
        unended = sum(run.ledger is None for run in private)
        return cls(len(private), epsilon, delta, len(listed) - len(private), unended)

    def __str__(self) -> str:
        cost = f"epsilon {rounded_up(self.epsilon)} at delta {rounded_up(self.delta)}"
        seeded = f"; NOT PRIVATE: {plural(self.seeded, 'run')} with a seed" if self.seeded else ""
        stopped = f", {self.unended} of them without an end, counted in full" if self.unended else ""
        return f"{cost}, {plural(self.releases, 'release')}{stopped}{seeded}"


def _together(runs: Sequence[Run]) -> tuple[float, float]:
    """Return the epsilon of several runs, and the delta at which it holds."""
    ledgers = [run.ledger for run in runs if run.ledger is not None]
    if runs and len(ledgers) == len(runs):
        with suppress(InputError):  # some ledgers have no joint promise but the sum
            joint = Ledger.compose([ledger.alone for ledger in ledgers])
            return joint.epsilon, joint.delta
    return fsum(run.epsilon for run in runs), fsum(run.delta for run in runs)


def rounded_up(number: float) -> str:
    """Return a number in few digits, rounded up.

    >>> rounded_up(1.10610001), rounded_up(0.1 + 0.2), rounded_down(0.99999)
    ('1.107', '0.3', '0.9999')
    """
    return _rounded(number, ROUND_CEILING)


def rounded_down(number: float) -> str:
    """Return the same, rounded down."""
    return _rounded(number, ROUND_FLOOR)


def _rounded(number: float, way: str) -> str:
    exact = Context(prec=12).create_decimal(repr(number))  # without the rounding errors of sums
    return f"{float(Context(prec=DIGITS, rounding=way).plus(exact)):g}"


def beside(data: Path) -> Path:
    """Return the default place of the budget file of a table, a database or a folder: beside it.

    All tables and queries of a database have one file, because they may be about the same people.

    >>> beside(Path("shop.duckdb::orders")).name
    'shop.duckdb.budget.jsonl'
    """
    real = file = file_of(data)
    with suppress(OSError, ValueError):  # a text that cannot be a path
        real = Path(os.path.realpath(file)) if file.is_symlink() or file.name in ("", "..") else file
    return real.parent / f"{real.name}{ENDING}"


def kept_in(path: Path) -> Path:
    """Return the file that a budget file names as the place of the runs; by default the file itself.

    Only the first line is read, without waiting for a run at work. Who reads the runs refuses a damaged file.

    Raises
    ------
    InputError
        If the place that it names is not there.
    """
    content = b""
    with suppress(OSError), path.open("rb") as file:
        content = file.readline()
    if (named := named_in(content)) is None:
        return path
    if not exists(Path(named)):
        raise InputError(f"{path}: the runs are kept in {named}, which is not there: restore it")
    return Path(named)


def named_in(content: bytes) -> str | None:
    """Return the place that the content of a budget file names; None if the runs are in the file itself."""
    with suppress(ValueError, AttributeError):
        path = json.loads(content.partition(b"\n")[0]).get(KEPT_IN)
        return path if isinstance(path, str) else None
    return None


def exists(path: Path) -> bool:
    """Return whether there is such a file. A text that cannot be a path is none."""
    with suppress(OSError, ValueError):
        return path.exists()
    return False


def name_of(path: Path) -> str:
    """Return the name of a table without its folder, and of what is within its file.

    >>> name_of(Path("data/shop.duckdb::orders")), name_of(Path("data/people.csv"))
    ('shop.duckdb::orders', 'people.csv')
    """
    file = file_of(path)
    inside = "" if file == path else str(path)[len(str(file)) :]
    return f"{file.name or file.resolve().name}{inside}"


def runs_in(path: Path) -> tuple[Run, ...]:
    """Return all runs in a budget file, in the order in which they began; none if there is no file.

    Raises
    ------
    InputError
        If the file cannot be read, or a line is damaged.
    """
    if exists(path) and not path.is_file():
        raise InputError(f"{path}: is a folder or device, not a file")
    try:
        with path.open("rb") as file:
            lock(file, shared=True)  # no run is at work on a line
            content = file.read()
    except FileNotFoundError:
        return ()
    except OSError as error:
        raise InputError(f"{path}: cannot be read ({error.strerror})") from None
    return parsed(path, content)


def parsed(path: Path, content: bytes) -> tuple[Run, ...]:
    """Return the runs in the content of a file."""
    *lines, rest = content.split(b"\n")
    if rest:
        raise InputError(CUT.format(path, len(lines) + 1))
    runs: dict[str, Run] = {}
    for number, line in enumerate(lines, 1):
        with replace_errors(DAMAGED.format(path, number)):
            plain = json.loads(line)
            if KEPT_IN in plain:
                if len(lines) > 1 or not isinstance(plain[KEPT_IN], str):
                    raise ValueError("not the only line")
                continue
            if "begins" in plain:
                run = Run.from_plain(plain)
                if run.id in runs:
                    raise ValueError("a run that began before")
            elif "withdraws" in plain:
                run = runs[plain.pop("withdraws")].withdrawn(plain)
            else:
                run = runs[plain["ends"]].ended(_ledger_in(line))
            runs[run.id] = run
    return tuple(runs.values())


@lru_cache(maxsize=1024)  # `fit` reads the file four times, and computes the cost of each ledger
def _ledger_in(line: bytes) -> RunLedger:
    """Return the ledger in the line with which a run ends."""
    return RunLedger.from_dict(json.loads(line)["ledger"])


def spent(path: Path) -> dict[str, Spent]:
    """Return what the runs in a budget file spent, by what they protect, in words."""
    return by_what_they_protect(runs_in(path))


def by_what_they_protect(runs: Iterable[Run]) -> dict[str, Spent]:
    """Return what runs spent, by what they protect, in words. Costs of different units do not add up."""
    listed = list(runs)
    kinds = dict.fromkeys(run.protects for run in listed)
    return {kind: Spent.of(run for run in listed if run.protects == kind) for kind in kinds}


def total_of(runs: Iterable[Run]) -> str:
    """Return what runs spent in one line."""
    sums = by_what_they_protect(runs)
    if set(sums) <= {protects(None)}:
        return next(map(str, sums.values()), "nothing")
    return "; ".join(f"for {kind}: {together}" for kind, together in sums.items())


def lock(file: FileIO | BinaryIO, *, shared: bool) -> None:
    """Wait for other processes, and keep them out until the file is closed, also if this one is killed.

    Raises
    ------
    InputError
        If this system has no such locks: two runs at once could then spend the same budget.
    """
    with replace_errors("budget files need the locks of Linux or macOS (on Windows: WSL)", ImportError):
        import fcntl

    fcntl.flock(file, fcntl.LOCK_SH if shared else fcntl.LOCK_EX)
