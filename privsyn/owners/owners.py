"""Owners: one owner's table, and how to reach the others. `PrivSyn.fit` takes it in place of a table."""

from __future__ import annotations

import platform
from collections.abc import Callable, Sequence
from dataclasses import KW_ONLY, dataclass
from functools import partial
from hashlib import shake_256
from importlib.metadata import version
from itertools import count
from math import isfinite
from os import PathLike
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np

from privsyn.abilities import OWNERS, check_abilities
from privsyn.arguments import check_whole
from privsyn.errors import InputError, plural, safe_repr
from privsyn.owners.journal import Journal, digest
from privsyn.private.noise import SharedNoise
from privsyn.private.randomness import Bits, Words
from privsyn.private.row_totals import RowTotals
from privsyn.progress import Progress, no_progress
from privsyn.table.schema.yaml_file import to_plain

if TYPE_CHECKING:
    from privsyn.methods.reading import Opened
    from privsyn.methods.run_settings import RunSettings
    from privsyn.owners.sums import SecureSums
    from privsyn.table.discovery.open_schema import OpenSchema

FEWEST_OWNERS, MOST_OWNERS = 3, 63
"""Number of owners. Of two, each could subtract its own counts from the sum and know the noisy counts of the
other: there is no majority to trust. The most keeps all sums far below the size of the field."""

PACKAGES = ("privsyn", "numpy", "scipy", "numba", "pandas", "mpyc")
"""Their versions are the same at all owners, because last digits decide which question comes next."""

GIVEN_UP = "was given up after"


@dataclass(frozen=True, eq=False)
class Owners:
    """A table whose rows are with several owners, as one of them sees it.

    Parameters
    ----------
    table : any table that `PrivSyn.fit` takes
        The rows of this owner.
    party : int
        This owner's place in `peers`, from 0.
    peers : sequence of str
        "host:port" of every owner, in the same order at all of them. At least three.
    honest : int, optional
        How many owners are trusted to add their share of the noise and to keep it secret: any such group
        adds the noise that the promise needs. Default: the smallest majority. With more, the answers have
        less noise, and with all the noise of one table.
    folder : path, optional
        Where this owner keeps its noisy answers, for its own eyes only. The same folder resumes a run.
        Default: "owner-0.run" for party 0, in the working folder.
    tls : path, optional
        A folder with ca.crt, owner.crt and owner.key. Default: no encryption, for a network that all trust.
    patience : float
        Seconds to wait for another owner.
    give_up_after : float, optional
        Seconds after which the run goes on without an owner that is away, if at least `honest` owners remain.
        Its rows are then missing from all later counts, and it cannot come back. The same at all owners.
        Default: nobody is given up.

    Raises
    ------
    InputError
        If a setting cannot work.

    Examples
    --------
    >>> north = Owners("north.csv", party=0, peers=["north.example:7000", "10.0.0.2:7000", "10.0.0.3:7000"])
    >>> north.trusted, north.addresses[0]
    (2, ('north.example', 7000))
    """

    kind: ClassVar[str] = OWNERS
    table: Any
    _: KW_ONLY
    party: int
    peers: Sequence[str]
    honest: int | None = None
    folder: str | PathLike[str] | None = None
    tls: str | PathLike[str] | None = None
    patience: float = 3600.0
    give_up_after: float | None = None

    def __post_init__(self) -> None:
        if isinstance(self.peers, str) or not FEWEST_OWNERS <= len(self.peers) <= MOST_OWNERS:
            raise InputError(
                f"peers must be a list of {FEWEST_OWNERS} to {MOST_OWNERS} addresses, each as host:port"
            )
        if len(set(self.addresses)) < len(self.peers):
            raise InputError("peers must be different addresses, one for each owner")
        if check_whole("party", self.party) >= len(self.peers):
            raise InputError(f"party must be a place in peers, 0 to {len(self.peers) - 1}; got {self.party}")
        majority = len(self.peers) // 2 + 1
        if self.honest is not None and not majority <= check_whole("honest", self.honest) <= len(self.peers):
            raise InputError(
                f"honest must be {majority} to {len(self.peers)} of {len(self.peers)} owners, because a"
                f" majority of owners can read all sums; got {self.honest}"
            )
        if not (isinstance(self.patience, int | float) and isfinite(self.patience) and self.patience > 0):
            raise InputError(f"patience must be a number of seconds; got {safe_repr(self.patience)}")
        seconds = self.give_up_after
        if seconds is None:
            return
        if not (isinstance(seconds, int | float) and 0 < seconds < self.patience):
            raise InputError(
                f"give_up_after must be a number of seconds below the patience of {self.patience:g}; got"
                f" {safe_repr(seconds)}"
            )
        if self.trusted == len(self.peers):
            raise InputError(
                f"give_up_after: none of {len(self.peers)} owners can be given up if all are trusted to add"
                " noise: lower honest, or leave out give_up_after"
            )

    @property
    def trusted(self) -> int:
        """How many owners are trusted: `honest`, or the smallest majority."""
        return len(self.peers) // 2 + 1 if self.honest is None else int(self.honest)

    @property
    def addresses(self) -> list[tuple[str, int]]:
        """Host and port of each owner."""
        addresses = []
        for peer in self.peers:
            host, _, port = peer.rpartition(":") if isinstance(peer, str) else ("", "", "")
            if not (host and port.isascii() and port.isdigit() and 0 < int(port) < 2**16):
                raise InputError(
                    f"peers: an address is host:port, such as north.example:7000; got {safe_repr(peer)}"
                )
            addresses.append((host.strip("[]"), int(port)))
        return addresses

    def run(self) -> Peer:
        """Open this owner's side of the run: begin it, or resume what is in the folder."""
        return Peer(self, Journal.open(Path(self.folder or f"owner-{self.party}.run")))


class Peer:
    """One of several owners in a run. It is a context manager, which closes all connections at the end."""

    def __init__(self, owners: Owners, journal: Journal) -> None:
        self._owners, self._journal = owners, journal
        self._sums: SecureSums | None = None
        self._name, self._pure = b"", False

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._sums is not None:
            self._sums.close()

    @property
    def table(self) -> Any:
        """The rows of this owner."""
        return self._owners.table

    def bits(self) -> Bits:
        """Return random words that decide which rows of a person are kept: the same in a resumed run."""
        return partial(_secret_words, self._journal.secret, count())

    def agree_on(self, opened: Opened) -> None:
        """Connect to all other owners, and agree on everything that is public.

        Parameters
        ----------
        opened : Opened
            Of its rows nothing is read. Sizes and times of its files, which are not sent, show whether they
            changed since the run began.

        Raises
        ------
        InputError
            If several owners cannot do this, another owner has other settings, or the folder belongs to
            another run.
        """
        source, open_schema, settings = opened.source, opened.schema, opened.settings
        _check(open_schema, settings)
        self._pure = settings.promise[1] == 0
        source.require_again("which questions are asked")
        columns = [(name, str(dtype)) for name, dtype in source.head.dtypes.items()]
        public = (
            settings.agreed,
            to_plain(open_schema.schema),
            columns,
            source.public_inputs,
            source.form,
            opened.puts_persons_together,  # other questions are asked of persons whose rows are on a cluster
        )
        self._connect(public, [stamp for _, stamp in source.stamps], settings.progress or no_progress)

    def _connect(self, public: Sequence[object], stamps: Sequence[object], report: Progress) -> None:
        from privsyn.owners.sums import SecureSums

        owners = self._owners
        packages = [(name, version(name)) for name in PACKAGES]
        machine = (platform.machine(), platform.python_version_tuple()[:2])
        several = (owners.trusted, len(owners.peers), owners.tls is None, owners.give_up_after)
        agreed = digest(repr((public, several, packages, machine)).encode())
        digest_of_owner = digest(agreed + repr((owners.party, stamps)).encode())
        if not self._journal.bind("settings", digest_of_owner):
            raise InputError(
                f"{self._journal.folder}: was begun with another table, schema, setting or version of a"
                " package: resume with the same, or give a new folder, which spends epsilon again"
            )
        self._sums = SecureSums(
            self._journal,
            owners.party,
            owners.addresses,
            tls=None if owners.tls is None else Path(owners.tls),
            settings=agreed,
            patience=owners.patience,
            report=report,
            give_up_after=owners.give_up_after,
            fewest=owners.trusted,
        )
        self._name = self._sums.begin()

    def noise(self) -> SharedNoise:
        """Return the noise: a share of each owner, added by a secure sum."""
        owners, totals = self._owners, RowTotals(lambda: self._connected.absent)
        return SharedNoise(len(owners.peers), owners.trusted, self._connected.total, self._pure, totals)

    def generator(self) -> np.random.Generator:
        """Return the generator for computations on answers: public, and the same at all owners."""
        return np.random.default_rng(int.from_bytes(self._name, "big"))

    def public_inputs(self, unit: str | None) -> tuple[str, ...]:
        """Return sentences for the ledger."""
        owners, trusted = len(self._owners.peers), self._owners.trusted
        stay = "" if self._owners.give_up_after is None else ", stay until the end"
        facts = [
            f"that at least {trusted} of the {owners} owners follow the protocol{stay} and keep their noise"
            " secret",
            "when the owners sent messages to each other, and how long these were",
        ]
        lost = {} if self._sums is None else self._sums.lost
        for owner, answers in lost.items():
            facts.append(
                f"that owner {owner} {GIVEN_UP} {plural(answers, 'answer')}: its rows are in these, and in"
                " none of the later ones"
            )
        if lost:
            remaining = owners - len(lost)
            facts.append(
                f"that at most {remaining - trusted} of the {remaining} owners who remained were dishonest:"
                f" later answers need the noise of {trusted} honest ones"
            )
        if self._owners.tls is None:
            facts.append("that nobody read or changed what the owners sent, which was not encrypted")
        if unit is not None:
            rows = f"that all rows with one identifier in {unit!r} are with one owner"
            facts.append(f"{rows}: each owner bounds its own")
        return tuple(facts)

    def compare(self, packed: Callable[[], bytes]) -> None:
        """Compare the model with those of the others, and close the connections."""
        self._connected.end(digest(packed()))

    @property
    def _connected(self) -> SecureSums:
        if self._sums is None:
            raise ValueError("the owners have not agreed on anything yet")
        return self._sums


def _check(open_schema: OpenSchema, settings: RunSettings) -> None:
    """Refuse what several owners cannot do."""
    columns = ", ".join(map(repr, open_schema.values))
    requests = settings.requests | {"values": [*open_schema.values], "method": settings.method != "default"}
    check_abilities([OWNERS], requests, columns=columns)


def _secret_words(secret: bytes, calls: Any, size: int) -> Words:
    stream = shake_256(secret + next(calls).to_bytes(8, "big")).digest(8 * size)
    return np.frombuffer(stream, np.uint64)
