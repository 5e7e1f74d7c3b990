"""Collectors: they hold rows of thousands of contributors in secret shares, and open noisy sums alone.

`PrivSyn.fit` takes a `Collectors` in place of a table. The protocol is in docs/owners.md.
"""

from __future__ import annotations

import platform
from collections.abc import Callable, Iterable, Mapping
from dataclasses import KW_ONLY, dataclass, field
from importlib.metadata import version
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, Self

import numpy as np

from privsyn.abilities import COLLECTORS, check_abilities
from privsyn.arguments import check_whole
from privsyn.collectors.board import Board, PrivateKeys, Study
from privsyn.collectors.coding import coding_digest, empty_head
from privsyn.collectors.collection import Collection, read_shares
from privsyn.collectors.field import PRIME, centred, deal, from_bytes, on_polynomial, to_bytes, value_at
from privsyn.errors import InputError
from privsyn.marginals.counting import CountTables, Tables
from privsyn.marginals.domain import Attributes, Integers, Ints
from privsyn.owners.journal import PART, Journal, digest
from privsyn.private.noise import SharedNoise
from privsyn.private.randomness import Bits, os_entropy
from privsyn.progress import no_progress
from privsyn.table.io.source import A, Question, RawTable
from privsyn.table.schema.yaml_file import to_plain

if TYPE_CHECKING:
    from privsyn.methods.reading import Opened
    from privsyn.methods.run_settings import RunSettings
    from privsyn.table.codec.codec import Codec

PACKAGES = ("privsyn", "numpy", "scipy", "numba", "pandas")
"""Their versions are the same at all collectors, because last digits decide which question comes next."""

FAR = 40.0
"""Standard deviations within which noise of either law is, but for fewer than 10^-24 of all answers."""

OPEN = (
    "rows in shares show no cell: write all values and bounds into the schema, and of each date or time its"
    " unit or step"
)

LARGEST = 2**30
"""Sums are below it, so that no sum wraps around the prime."""


@dataclass(frozen=True, eq=False)
class Collectors:
    """The contributions to a study, as one of its collectors sees them. It takes the place of a table.

    Parameters
    ----------
    folder : path
        The shared folder of the study.
    party : int
        The number of this collector, from 0.
    keys : path
        The file of its keys, for its own eyes only. Beside it is a folder, `keys`.run, with its noise.
    patience : float
        Seconds to wait for another collector.

    Raises
    ------
    InputError
        If there is no such study, or a setting cannot work.

    Examples
    --------
    >>> Collectors("study", party=0, keys="collector-0.key")  # before `privsyn collect --join`
    Traceback (most recent call last):
    privsyn.errors.InputError: study: has no study: each collector first runs `privsyn collect --join`
    """

    kind: ClassVar[str] = COLLECTORS
    folder: str | PathLike[str]
    _: KW_ONLY
    party: int
    keys: str | PathLike[str]
    patience: float = 3600.0

    def __post_init__(self) -> None:
        parties = len(self.study.keys)
        if check_whole("party", self.party) >= parties:
            raise InputError(f"party must be a number from 0 to {parties - 1}; got {self.party}")
        if not Path(self.keys).exists():
            raise InputError(
                f"{self.keys}: there is no such file: give the keys with which collector {self.party} joined"
            )
        if PrivateKeys.of_file(Path(self.keys)).public != self.study.keys[self.party]:
            raise InputError(
                f"{self.keys}: holds other keys than those with which collector {self.party} joined"
            )

    @property
    def study(self) -> Study:
        """What is public of the study."""
        return Study.read(Path(self.folder))

    @property
    def honest(self) -> int:
        """How many collectors together add the whole noise: those that are honest and not lost."""
        study = self.study
        return len(study.keys) - study.threshold - study.promise.lost

    def run(self, settings: RunSettings) -> Collector:
        """Open this collector's side of the run: begin it, or resume it.

        Raises
        ------
        InputError
            If the settings are not those that the study promised its contributors.
        """
        self.study.promise.require_settings(settings)
        keys = PrivateKeys.of_file(Path(self.keys))
        report = settings.progress or no_progress
        journal = Journal.open(Path(f"{self.keys}.run"))
        board = Board(Path(self.folder), self.study, self.party, keys, journal, self.patience, report)
        return Collector(board, self.honest, settings)


class CollectedNoise(SharedNoise):
    """The noise of `SharedNoise`, dealt in secret shares and added to counts in secret shares.

    Here `total` gets what this collector holds of the counts, and deals the noise itself.
    """

    members: ClassVar[str] = "collectors"

    def answer(self, exact: Integers, scale: float) -> Ints:
        """Return the counts of all contributions plus the noise of the collectors, rounded."""

        def shares() -> Ints:
            return self.unit * (exact.ravel().astype(np.int64) % PRIME) % PRIME

        return self.rounded(self.total(exact.size, scale, shares)).reshape(exact.shape)


class Collector:
    """One of the collectors in a run. All that it sends is on the board, so a restart sends nothing twice."""

    def __init__(self, board: Board, honest: int, settings: RunSettings) -> None:
        self._board, self._honest = board, honest
        self.table = Contributed(empty_head(settings.database.schema), once=True, counter_of=self._counter)
        self._contributions, self._agreed, self._pure = 0, b"", settings.promise[1] == 0
        self._next, self._earlier = 0, b""  # the number of the next question, a digest of all sums before it
        self._dealers = tuple(board.parties)  # of the noise of the question before

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None: ...

    def bits(self) -> Bits:
        """Return random words: no person has several rows, so nobody needs them."""
        return os_entropy

    def agree_on(self, opened: Opened) -> None:
        """Agree with all other collectors on everything that is public, and end the collection."""
        settings, board = opened.settings, self._board
        requests = settings.requests | {
            "values": [*opened.schema.open],
            "method": settings.method != "default",
        }
        check_abilities([COLLECTORS], requests, columns=", ".join(map(repr, opened.schema.open)))
        packages = [(name, version(name)) for name in PACKAGES]
        machine = (platform.machine(), platform.python_version_tuple()[:2])
        public = (settings.agreed, to_plain(opened.schema.schema), self._honest, packages, machine)
        self._agreed = digest(repr(public).encode())
        name = f"settings-{self._agreed.hex()}"
        same = {f"{name}.{party}" for party in board.parties}
        if differing := {file.name for file in board.folder.glob("settings-*")} - same:
            collectors = sorted({file.rpartition(".")[2] for file in differing})
            raise InputError(
                f"collector {', '.join(collectors)}: began with another setting, schema, or version of a"
                " package"
            )
        board.bind("settings", self._agreed)
        board.post(name, b"")
        board.wait_for_all(name)

    def _counter(self, codec: Codec) -> CountTables:
        """Check all contributions, count all pairs of the valid ones; return what adds up the shares."""
        if coding_digest(codec) != self._board.study.schema:
            raise InputError(
                "these settings code rows in another way than the contributors did: leave out target and"
                " important, and take the schema and the version of privsyn of the study"
            )
        collection = Collection(self._board, codec.domain)
        self._contributions = len(collection.valid)
        counts = collection.counts()

        def count(tables: Tables) -> list[Ints]:
            """Return the shares of the counts over each set of one or two attributes."""
            return [_joined(tables, attributes, counts) for attributes in tables.sets]

        return count

    def noise(self) -> CollectedNoise:
        """Return the noise: dealt by each collector, opened with the counts."""
        return CollectedNoise(len(self._board.parties), self._honest, self._open_sum, self._pure)

    def generator(self) -> np.random.Generator:
        """Return the generator for computations on answers: public, and the same at all collectors."""
        return np.random.default_rng(int.from_bytes(self._board.study.digest, "big"))

    def public_inputs(self, unit: str | None) -> tuple[str, ...]:
        """Return sentences for the ledger."""
        parties, threshold = len(self._board.parties), self._board.study.threshold
        return (
            f"that at least {parties - threshold} of the {parties} collectors follow the protocol and keep"
            " their shares and their noise secret",
            "that each contributor has one key: contributions of one key count once",
            "who contributed, to the collectors alone: against them the promise is for what a row says, and"
            " changing it is removing one row and adding another",
        )

    def compare(self, packed: Callable[[], bytes]) -> None:
        """Compare the model with those of the collectors that have one."""
        model = digest(packed())
        self._board.post("model", model)
        differing = [str(i) for i, content in self._board.posts("model").items() if content != model]
        if differing:
            raise InputError(
                f"collector {', '.join(differing)} has another model: are the versions of all packages the"
                " same?"
            )

    def _open_sum(self, size: int, scale: float, counts: Callable[[], Ints]) -> Ints:
        """Return the sum of counts in shares and of the noise of all collectors who deal theirs in time.

        A collector draws its noise once for each question, and writes it down before it deals it. Only the
        sum with one decided set of dealers is opened. So no question is answered twice with other noise,
        whoever is restarted.
        """
        board, noise, name = self._board, self.noise(), f"answers/{self._next:06d}"
        if noise.unit * (FAR * noise.law.variance(scale) ** 0.5 + self._contributions) >= LARGEST:
            raise InputError(
                "epsilon is too small for collectors: the noise could exceed their field: raise it"
            )
        question = digest(self._agreed + self._earlier + f"{size} {scale!r}".encode())
        if not (board.has(f"{name}.deal", board.party) or board.is_decided(f"{name}.set")):
            drawn = board.journal.noisy(self._next, question, lambda: noise.draw(scale, size))
            shares = deal(drawn % PRIME, len(board.parties), board.study.threshold)
            sealed = board.seal_to_all(f"{name}.deal", [to_bytes(share) for share in shares])
            board.post(f"{name}.deal", question + sealed)
        board.wait(f"{name}.deal", self._dealers, also=lambda: board.is_decided(f"{name}.set"))
        self._dealers = self._enough(board.decide(f"{name}.set", lambda: self._proposal(f"{name}.deal")))
        total = counts()
        for dealer in self._dealers:
            content = board.read(f"{name}.deal", dealer)
            dealt = from_bytes(board.unseal(f"{name}.deal", dealer, content[PART:]), (size,))
            if content[:PART] != question or dealt is None:
                raise InputError(f"collector {dealer} has another question, or another earlier sum")
            total = (total + dealt) % PRIME
        board.post(f"{name}.sum", to_bytes(total))
        opened = self._opened(f"{name}.sum", size)
        self._earlier = digest(self._earlier + bytes(self._dealers) + opened.tobytes())
        self._next += 1
        return opened

    def _proposal(self, name: str) -> bytes:
        """Return the collectors that have dealt noise, if these are enough."""
        dealers = (party for party in self._board.parties if self._board.has(name, party))
        return bytes(self._enough(dealers))

    def _enough(self, dealers: Iterable[int]) -> tuple[int, ...]:
        """Return the dealers of noise, if they add enough without any t of them, who may not be honest."""
        chosen = tuple(sorted({*dealers}.intersection(self._board.parties)))
        needed = self._honest + self._board.study.threshold
        if len(chosen) < needed:
            raise InputError(
                f"only {len(chosen)} of the {needed} collectors that are needed answered in"
                f" {self._board.patience:g} s: start the others, and run this again to resume"
            )
        return chosen

    def _opened(self, name: str, size: int) -> Ints:
        """Return the sum, from the shares of the first t + 1 collectors that publish theirs."""
        board, degree = self._board, self._board.study.threshold
        enough = lambda: sum(board.has(name, party) for party in board.parties) > degree  # noqa: E731
        if not board.wait(name, board.parties, also=enough):
            raise InputError(
                f"nobody else opened the sum in {board.patience:g} s: start the others, and run this again to"
                " resume"
            )
        shares = read_shares(board, name, (size,))
        if not on_polynomial(degree, shares).all():
            raise InputError("a collector published a false share of a sum: the run cannot go on")
        return centred(value_at(0, dict(list(shares.items())[: degree + 1])))


@dataclass(frozen=True, eq=False)
class Contributed(RawTable):
    """The table of all contributions: nobody has its rows, only shares of their counts.

    Parameters
    ----------
    counter_of : callable
        Returns what counts the rows that a codec encoded.
    """

    counter_of: Callable[[Codec], CountTables] = field(kw_only=True, repr=False)

    def counter(self, codec: Codec) -> CountTables:
        """Return what counts the rows, which their contributors encoded."""
        return self.counter_of(codec)

    def results(self, question: Question[A]) -> list[A]:
        """Refuse the question: there are no cells."""
        raise InputError(OPEN)

    def ask(self, question: Question[A], add: Callable[[A, A], A]) -> A:
        """Refuse the question: there are no cells."""
        raise InputError(OPEN)


def _joined(tables: Tables, attributes: Attributes, counts: Mapping[tuple[int, ...], Ints]) -> Ints:
    """Return the shares of a table in groups of the codes."""
    axes = tables.domain.axes(attributes)
    if len(axes) > 2:
        raise ValueError("collectors count columns and pairs of columns, no larger sets")
    ordered = tuple(sorted(axes))
    joined = tables.grouping.project(ordered).join(counts[ordered]) % PRIME
    return joined if axes == ordered else joined.T
