"""RunLedger: every question of one run to the private table, its cost, and the promise that covers the costs.

The ledger of a run is closed: `privsyn.private.ledger.Ledger` is an open one, to which runs and mechanisms
are charged. A ledger may be published. It contains settings and what follows from noisy answers, and
nothing else depends on a row. The charges are separate from their price (`privsyn.private.accounting`), so
that anybody can compute the price again.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, replace
from fractions import Fraction
from functools import cached_property
from importlib.metadata import version
from math import ceil, fsum, inf, pi, sqrt
from textwrap import shorten
from typing import Any, TypeVar

import numpy as np
from scipy.special import ndtri_exp

from privsyn.arguments import check_whole
from privsyn.errors import InputError, plural, printable, replace_errors
from privsyn.notebook import html, html_table
from privsyn.private.acceptance import Acceptance
from privsyn.private.accounting import Accounting, rho_for
from privsyn.private.composition import Bound, Composition, Promise
from privsyn.private.local_privacy import LocalPromise, Unchanged, local_epsilon
from privsyn.private.noise_laws import SHARED_NOISE, LawName, epsilon_of
from privsyn.private.series import Series
from privsyn.private.spend import (
    ADD_OR_REMOVE,
    ONE_WAYS,
    PAIRS_DRAWN,
    ROWS_PER_PERSON,
    TERMS,
    Elsewhere,
    Spend,
)

T = TypeVar("T")

VERSION = version("privsyn")  # looked up before any run: a paid run must not fail for want of it

PUBLIC = (
    "the names, the order and the dtypes of the columns, the type of each category column's values,"
    " and which columns Arrow declares not null",
    "all that the schema says, if there is one",
    "the settings",
)
"""What every run takes as public, in the words of the ledger."""

NOT_PRIVATE = (
    "NOT PRIVATE: THE NOISE OF THIS RUN CAN BE REPEATED FROM ITS SEED AND SUBTRACTED. DO NOT PUBLISH."
)

UNCHANGED = "NOT PRIVATE: NOT RANDOMISED, EXACT IN THE TABLE: {}. DO NOT PUBLISH."

CURVE = (1e-12, 1e-9, 1e-6, 1e-5, 1e-3)
"""The deltas, besides the promised one, at which a ledger states epsilon."""

NO_LEDGER = "not a ledger that privsyn wrote, or changed since then: save it again"

SLACK = 1e-12
"""Largest excess of the spends over the budget, relative to it, in ledgers of runs without `HEADROOM`. Others
stay below the budget."""

Charge = Spend | LocalPromise | Unchanged | Elsewhere
"""What one line of a ledger charges: a question, a column of the respondents, or nothing of its own."""


LINES = 8
"""Number of spends that are printed one by one. The others are printed as one line."""

WIDTH = 52
"""Printed characters of a question."""


@dataclass(frozen=True)
class RunLedger:
    """All charges of one run and its privacy promise. A ledger that overspends cannot be made.

    Parameters
    ----------
    charges : tuple of Charge
        A `Spend` for each question, in their order. A `LocalPromise` for each column that the respondents
        randomised. Without a `Spend`, the promise is that of randomised response, and the other columns of
        the table are `Unchanged`. `Elsewhere` stands alone: if all counts were measured elsewhere, the ledger
        says nothing of its own about privacy, and its epsilon and delta are 0.
    promised_epsilon, promised_delta : float
        The promise: the run is (epsilon, delta)-differentially private.
    accounting : "gaussian", "zcdp", "classical" or "pure"
        How rho is converted to epsilon and delta; see `privsyn.private.accounting`. With "pure", delta is 0,
        all noise is Laplace, and the costs are epsilons.
    randomness : str
        Distribution and source of the noise.
    private : bool
        False if the noise can be repeated: then the promise does not hold. Also false if columns are
        `Unchanged`: then it holds for the randomised cells alone.
    public_inputs : tuple of str
        What is assumed to be public, in plain sentences.
    version : str
        The version of privsyn that ran.
    unit : str, optional
        The column that identifies the person, if the promise protects all rows of a person. Default: it
        protects one row.
    rows_per_unit : int, optional
        With `unit`, the bound on a person's rows in counts of columns; of linked tables, that of the table
        with the largest one.
    squares : bool
        Whether in tables of several columns it bounds the squares of a person's counts, and not the rows.
    acceptance : Acceptance, optional
        The verdict on the criteria that the release had to meet.
    root : str, optional
        Of linked tables, the one of which `unit` is a column. A person is all its rows with one `unit`, with
        all rows that lead to them; without `unit`, one of its rows. Default: there is one table.
    recorded : bool, optional
        Whether the run is recorded in the budget file of its table. Default: the ledger does not say, as in
        Python, where whoever fits a model adds up the costs.
    run : str, optional
        A random name, by which later releases know the run.
    since : Series, optional
        The earlier releases on which this one rests.
    disjoint : bool
        The publisher's statement that nobody in the table of this run is in that of any of these.
    other_roots : tuple of (table, column)
        Of linked tables, the others whose rows are persons of their own, each with the column that identifies
        them. They are protected in the same way, but what rows of other tables say of them is not.

    Raises
    ------
    ValueError
        If the spends cost more than the promise allows.

    Notes
    -----
    All noise is Gaussian or all is Laplace. The Laplace answers of a run are together as private as the sum
    of their epsilons, for any order and any dependence of later questions on earlier answers, because the
    ratios of the probabilities multiply. This sum is exact, in rational numbers. The rest is about Gaussian
    noise, where a threshold is not a Gaussian mechanism. With probability 1 - delta_t it
    reveals nothing that only one record has, whatever was released before. Let y and x be the probabilities
    of an event on one table and on its neighbour if nothing of that kind could be released: the run is then
    Gaussian, and y <= e^epsilon x + delta_g. The true probability with the record is from (1 - delta_t) x to
    x + delta_t, and y - e^epsilon (1 - delta_t) x = (1 - delta_t) (y - e^epsilon x) + delta_t y <= delta_g +
    delta_t. If delta_t is added to x, the same bound is immediate. So the deltas of thresholds are reserved,
    and the Gaussian part is accounted at the rest of delta. docs/proofs.md has the proof.

    Examples
    --------
    >>> counts = Spend("one-way counts", answers=12, sensitivity=2.0, sigma=8.0)
    >>> ledger = RunLedger((counts,), promised_epsilon=1.0, promised_delta=1e-5, accounting="gaussian",
    ...     randomness="operating system", private=True, public_inputs=(), version="1.0")
    >>> ledger.rho, f"{ledger.budget:.4f}", f"{ledger.epsilon(1e-5):.3f}", f"{ledger.epsilon(1e-9):.3f}"
    (0.03125, '0.0359', '1.000', '1.502')
    """

    charges: tuple[Charge, ...]
    promised_epsilon: float
    promised_delta: float
    accounting: Accounting
    randomness: str
    private: bool
    public_inputs: tuple[str, ...]
    version: str = VERSION
    unit: str | None = None
    rows_per_unit: int | None = None
    squares: bool = False
    acceptance: Acceptance | None = None
    root: str | None = None
    recorded: bool | None = None
    run: str | None = None
    since: Series | None = None
    disjoint: bool = False
    other_roots: tuple[tuple[str, str], ...] = ()

    def __post_init__(self) -> None:
        # Spends first, so that a ledger equals the one that is read from its text.
        charges = sorted(self.charges, key=lambda charge: not isinstance(charge, Spend))
        object.__setattr__(self, "charges", tuple(charges))
        object.__setattr__(self, "public_inputs", tuple(self.public_inputs))
        if not all(isinstance(charge, Charge) for charge in charges):
            raise ValueError("a charge that is neither a Spend nor a LocalPromise, Unchanged or Elsewhere")
        if self.unchanged and (self.private or not self.all_local):
            raise ValueError("only a randomised table has unchanged columns, and it is not private")
        rows = self.rows_per_unit
        if (self.unit is None) != (rows is None) or (rows is not None and rows < 1):
            raise ValueError(
                f"unit {self.unit!r}, rows_per_unit {rows!r}: give both, 1 row or more, or neither"
            )
        if self.other_roots and self.root is None:
            raise ValueError("other tables of persons without a root")
        if self.disjoint and self.since is None:
            raise ValueError("disjoint from no earlier release")
        if self.elsewhere is not None and (charges[1:] or self.promised_epsilon or self.promised_delta):
            raise ValueError("a promise made elsewhere, beside one of this run")
        pure = self.accounting == "pure"
        if any((spend.law == "laplace") is not pure for spend in self.spends):
            raise ValueError(f"{self.accounting} accounting of noise with another law")
        if pure and (self.promised_delta or self.reserved):
            raise ValueError("pure accounting with a delta above 0")
        if 0 < self.promised_delta <= self.reserved:
            raise ValueError(
                f"thresholds take delta {self.reserved:.6g} of {self.promised_delta:.6g} promised"
            )
        if pure and sum(epsilon_of(spend.sigma, spend.sensitivity) for spend in self.spends) > Fraction(
            self.promised_epsilon
        ):
            raise ValueError(f"spent epsilon {self.cost!r} of the {self.promised_epsilon!r} promised")
        if self.all_local and (not pure or self.unit is not None or self.cost > self.promised_epsilon):
            raise ValueError("randomised response does not keep this promise")
        if not pure and self.rho > self.budget * (1 + SLACK):
            raise ValueError(f"spent rho {self.rho:.6g} of the {self.budget:.6g} promised")

    @cached_property
    def spends(self) -> tuple[Spend, ...]:
        """The questions to the private table, in their order."""
        return self._all(Spend)

    @cached_property
    def local(self) -> tuple[LocalPromise, ...]:
        """The columns that the respondents randomised."""
        return self._all(LocalPromise)

    @property
    def unchanged(self) -> tuple[str, ...]:
        """The columns of a randomised table that nobody randomised. Their cells are in it, exact."""
        return tuple(charge.column for charge in self._all(Unchanged))

    @property
    def elsewhere(self) -> str | None:
        """Who promises what, if all counts were measured elsewhere."""
        return next((charge.promise for charge in self._all(Elsewhere)), None)

    def _all(self, kind: type[T]) -> tuple[T, ...]:
        return tuple(charge for charge in self.charges if isinstance(charge, kind))

    @property
    def law(self) -> LawName:
        """The law of the noise."""
        return "laplace" if self.accounting == "pure" else "gaussian"

    @property
    def neighbours(self) -> str:
        """How two tables differ that the promise makes hard to tell apart. No bound is part of it."""
        if self.all_local:
            exact = f"; {not_randomised(self)}" if self.unchanged else ""
            return f"change {randomised_cells(self)}, before randomisation{exact}"
        if self.unit is None and self.root is None:
            return ADD_OR_REMOVE
        return f"add or remove one person: {self.protects}"

    @property
    def protects(self) -> str:
        """Who is protected, in words: releases have a joint promise only if these are the same."""
        return protects(self.unit, self.root, self.other_roots)

    @property
    def counts_all_rows(self) -> bool:
        """Whether all rows of a person are stood for, and not only those that are kept of each.

        Without their numbers of rows, the persons with many cannot be given their weight.
        """
        return self.unit is None or any(spend.what.endswith(ROWS_PER_PERSON) for spend in self.spends)

    @property
    def kept(self) -> str:
        """How many rows of a person are counted. The sensitivity of each spend follows from it."""
        rows = "1 row" if self.rows_per_unit == 1 else f"{self.rows_per_unit} rows"
        text = f"at most {rows} in a column" + ("" if self.root is None else " of any table")
        if self.squares:
            text += (
                "; in tables of several columns, rows whose squared counts sum to at most"
                f" {self.rows_per_unit}^2"
            )
        if self.acceptance is not None:
            text += "; in tests of criteria as many as their sensitivities say"
        return text

    @property
    def warning(self) -> str | None:
        """Why the run is not private; None if it is."""
        if self.private:
            return None
        return UNCHANGED.format(names_of(self.unchanged)) if self.unchanged else NOT_PRIVATE

    @property
    def cost(self) -> float:
        """The cost of all spends together, which is their sum: rho, or epsilon with pure accounting."""
        if self.all_local:
            return self.local_epsilon
        return fsum(spend.cost for spend in self.spends)

    @property
    def all_local(self) -> bool:
        """Whether the respondents randomised all columns, so that no question was put to a private table."""
        return bool(self.local) and not self.spends

    @property
    def shared(self) -> bool:
        """Whether several owners added the noise together, so that none of them saw the rows of another."""
        return self.randomness.startswith(SHARED_NOISE)

    @property
    def local_epsilon(self) -> float:
        """The epsilon of all randomised columns of one `record` together; 0 if there is none."""
        # A person may have a row in each of the linked tables. What respondents sent of these rows was drawn
        # independently, so the ratios of probabilities multiply and the epsilons of all columns of all tables
        # add up. For k rows of a person in a table the epsilons of its columns count k times: whose rows are
        # whose is not said here, and persons have the promise of the questions.
        return local_epsilon(self.local) if self.local else 0.0

    @property
    def record(self) -> str:
        """What `local_epsilon` protects: a record, or one row in each of the linked tables."""
        return "record" if self.root is None else "row in each table"

    @property
    def rho(self) -> float:
        """The cost of all spends together in zCDP: their sum, or epsilon^2 / 2 with pure accounting."""
        return self.cost**2 / 2 if self.accounting == "pure" else self.cost

    @property
    def reserved(self) -> float:
        """The delta of all thresholds together, reserved before the first question."""
        return fsum(spend.delta for spend in self.spends)

    @property
    def budget(self) -> float:
        """The cost that the promise allows, fixed before the first question: rho; epsilon if delta is 0."""
        if self.elsewhere is not None:
            return 0.0
        return rho_for(self.promised_epsilon, self.promised_delta - self.reserved, self.accounting)

    @property
    def mu(self) -> float:
        """The sensitivity over sigma of one Gaussian answer that is as private as the whole budget.

        With pure accounting it is 2 Phi^-1(e^epsilon / (1 + e^epsilon)): between its ends and its corner,
        the trade-off function of randomised response lies above that of this Gaussian answer. Draws of the
        exponential mechanism with losses in an interval of length epsilon cost rho = epsilon^2 / 8, and mu is
        -2 Phi^-1(1 / (1 + e^(epsilon / 2))): at most sqrt(pi / 2) epsilon / 2, the slope at 0, so that mu^2
        is at most pi / 2 times 2 rho.
        """
        if self.accounting == "pure":
            return -2 * float(ndtri_exp(-np.logaddexp(0.0, self.budget)))
        drawn = fsum(spend.rho for spend in self.spends if PAIRS_DRAWN in spend.what)
        return sqrt(2 * (self.budget + (pi / 2 - 1) * drawn))

    def epsilon(self, delta: float | None = None, *, group: int = 1) -> float:
        """Return the epsilon that holds at `delta`, rounded up: the price of the budget, not of the spends.

        How much is spent may depend on noisy answers (a run may find nothing worth asking). The theorem of
        adaptive composition is about a bound that is fixed in advance. It says nothing about a sum that
        turned out smaller. Epsilon is infinite at a delta that thresholds use up, and if the promise was made
        elsewhere.

        Parameters
        ----------
        delta : float, optional
            Default: the promised one.
        group : int
            Number of records that may differ together; of persons, if the promise protects persons.
        """
        if self.elsewhere is not None:
            return inf
        return self.promise.group(check_whole("group", group, minimum=1), delta).epsilon

    def subsampled(self, rate: float, delta: float | None = None) -> Bound:
        """Return the promise to records of a larger table of which this one was a Poisson sample.

        See `Ledger.subsampled`.
        """
        if self.all_local or self.elsewhere is not None:
            raise InputError("amplification is proved for neighbours that add or remove a record")
        return self.promise.subsampled(rate, delta)

    @property
    def promise(self) -> Promise:
        """What the run promises, in numbers."""
        local = self.local_epsilon if self.local else None
        return Promise(
            self.promised_epsilon,
            self.promised_delta,
            self.accounting,
            max(self.cost, self.budget),
            self.reserved,
            local,
        )

    @property
    def alone(self) -> RunLedger:
        """The ledger of this run alone: the account of a table does not count releases of other tables."""
        return replace(self, run=None, since=None, disjoint=False)

    @property
    def series(self) -> Series:
        """The run, and the earlier releases on which it rests."""
        alone = Series.of(self.promise, self.run)
        return alone if self.since is None else Series.join([self.since, alone], disjoint=self.disjoint)

    @property
    def over_time(self) -> Composition | None:
        """What this run and the earlier releases promise together.

        None if it rests on none, or is not private.
        """
        if self.since is None or not self.private:
            return None
        return self.series.together(self.neighbours)

    @property
    def name(self) -> str:
        """What it is, for another ledger."""
        return f"run of {len(self.spends)} questions"

    def to_dict(self) -> dict[str, Any]:
        """Return the ledger as plain data for JSON. If the run is not private, the first entry says so."""
        if self.elsewhere is not None:
            return {
                "elsewhere": self.elsewhere,
                "public_inputs": list(self.public_inputs),
                "version": self.version,
            }
        deltas = {self.promised_delta, *(delta for delta in CURVE if delta > self.reserved)}
        local = {
            "epsilon": self.local_epsilon,
            "columns": [asdict(promise) | {"epsilon": promise.epsilon} for promise in self.local],
            **({"unchanged": list(self.unchanged)} if self.unchanged else {}),
        }
        since: dict[str, Any] = {"disjoint": self.disjoint}
        if (joint := self.over_time) is not None:
            since["promise"] = {"epsilon": joint.epsilon, "delta": joint.delta}
            if (gaussian := self.series.gaussian) is not None:
                since |= {"mu": sqrt(2 * gaussian[0]), "reserved_delta": gaussian[1]}
        return {
            **({} if self.warning is None else {"warning": self.warning}),
            "promise": {"epsilon": self.promised_epsilon, "delta": self.promised_delta},
            "private": self.private,
            "neighbours": self.neighbours,
            "unit": self.unit,
            **({} if self.root is None else {"root": self.root}),
            **({"other_roots": dict(self.other_roots)} if self.other_roots else {}),
            "rows_per_unit": self.rows_per_unit,
            "squares": self.squares,
            "accounting": self.accounting,
            TERMS[self.law][1]: self.cost,
            "budget": self.budget,
            "reserved_delta": self.reserved,
            "mu": self.mu,
            "curve": [{"delta": delta, "epsilon": self.epsilon(delta)} for delta in sorted(deltas)],
            "randomness": self.randomness,
            "public_inputs": list(self.public_inputs),
            "spends": [spend.to_plain() for spend in self.spends],
            "version": self.version,
            **({"local": local} if self.local else {}),
            **({} if self.acceptance is None else {"acceptance": self.acceptance.to_plain()}),
            **({} if self.recorded is None else {"recorded": self.recorded}),
            **({} if self.run is None else {"run": self.run}),
            **({} if self.since is None else {"since": since | self.since.to_plain()}),
        }

    def to_json(self) -> str:
        """Return the ledger as JSON, for people and programs."""
        return json.dumps(self.to_dict(), indent=2, ensure_ascii=False)

    @classmethod
    def measured_elsewhere(
        cls, promise: str, public_inputs: tuple[str, ...], version: str = VERSION
    ) -> RunLedger:
        """Return the ledger of counts that were measured elsewhere; `promise` says who promises what."""
        return cls(
            (Elsewhere(promise),),
            promised_epsilon=0.0,
            promised_delta=0.0,
            accounting="gaussian",
            randomness="measured elsewhere",
            private=True,
            public_inputs=public_inputs,
            version=version,
        )

    @classmethod
    def from_dict(cls, plain: Mapping[str, Any]) -> RunLedger:
        """Return the ledger that `to_dict` wrote. Costs and curve are computed again, not read.

        Raises
        ------
        InputError
            If it is not a ledger, or it spends more than it promises.
        """
        with replace_errors(NO_LEDGER, (ArithmeticError, AttributeError, KeyError, TypeError, ValueError)):
            fields: dict[str, Any] = {
                "public_inputs": [_exactly(str, text) for text in plain["public_inputs"]],
                "version": str(plain["version"]),
            }
            if "elsewhere" in plain:
                return cls.measured_elsewhere(str(plain["elsewhere"]), **fields)
            law: LawName = "laplace" if plain["accounting"] == "pure" else "gaussian"
            local = plain.get("local", {})
            charges: Iterable[Charge] = (
                *(Spend.from_plain(line, law) for line in plain["spends"]),
                *map(LocalPromise.from_plain, local.get("columns", ())),
                *(Unchanged(str(column)) for column in local.get("unchanged", ())),
            )
            for name, kind in (("unit", str), ("rows_per_unit", int)):
                fields[name] = None if plain[name] is None else _exactly(kind, plain[name])
            fields["root"] = None if plain.get("root") is None else _exactly(str, plain["root"])
            fields["other_roots"] = other_roots_from_plain(plain.get("other_roots", {}))
            fields["squares"] = _exactly(bool, plain.get("squares", False))
            if "acceptance" in plain:
                fields["acceptance"] = Acceptance.from_plain(plain["acceptance"])
            if "recorded" in plain:
                fields["recorded"] = _exactly(bool, plain["recorded"])
            if "run" in plain:
                fields["run"] = _exactly(str, plain["run"])
            if "since" in plain:
                fields["since"] = Series.from_plain(plain["since"])
                fields["disjoint"] = _exactly(bool, plain["since"]["disjoint"])
            return cls(
                tuple(charges),
                promised_epsilon=float(plain["promise"]["epsilon"]),
                promised_delta=float(plain["promise"]["delta"]),
                accounting=plain["accounting"],
                randomness=str(plain["randomness"]),
                private=_exactly(bool, plain["private"]),
                **fields,
            )

    @classmethod
    def from_json(cls, text: str) -> RunLedger:
        """Read what `to_json` wrote; an `InputError` as for `from_dict`."""
        with replace_errors(NO_LEDGER, (RecursionError, ValueError)):
            return cls.from_dict(json.loads(text))

    def _repr_html_(self) -> str:
        return to_html(self)

    def __str__(self) -> str:
        lines = to_lines(self)
        return "\n".join(map(printable, lines if self.warning is None else [self.warning, *lines]))


def to_lines(ledger: RunLedger) -> list[str]:
    """Return the lines of a printed ledger."""
    rows = _table(ledger)
    width = max((len(question) for question, *_ in rows), default=0)
    table = [f"{question:<{width}}" + "".join(f"{cell:>12}" for cell in cells) for question, *cells in rows]
    return [*_promise(ledger), *table, *_public(ledger)]


def to_html(ledger: RunLedger) -> str:
    """Return the same for a notebook."""
    warning = [] if ledger.warning is None else [ledger.warning]
    rows = _table(ledger)
    table = [html_table(rows[0], rows[1:])] if rows else []
    return html("Privacy ledger", [*warning, *_promise(ledger), *_public(ledger)], *table)


def _promise(ledger: RunLedger) -> list[str]:
    if ledger.elsewhere is not None:
        return [*map(str, ledger.charges), f"privsyn {ledger.version} read no private row"]
    randomised = list(map(str, ledger.local))
    if randomised:
        epsilon = f"epsilon {ledger.local_epsilon:.4f}"
        randomised.append(f"all randomised cells of a {ledger.record} together: {epsilon}, delta 0")
    return [
        f"epsilon {ledger.promised_epsilon!r}, delta {ledger.promised_delta!r};"
        f" neighbours: {ledger.neighbours}",
        *([] if ledger.unit is None else [f"counted of a person: {ledger.kept}"]),
        f"{ledger.randomness}; {ledger.accounting} accounting; privsyn {ledger.version}",
        *over_time_lines(ledger),
        *randomised,
    ]


RECORDED = {
    True: "recorded in the budget file of the table",
    False: "NOT RECORDED in a budget file: whoever adds up what was spent on the table must add this run",
}
"""What a ledger says of the budget file."""


def recorded_lines(ledger: RunLedger) -> list[str]:
    """Return a line on whether the run is recorded in a budget file; none if the ledger does not say."""
    return [] if ledger.recorded is None else [RECORDED[ledger.recorded]]


def over_time_lines(ledger: RunLedger) -> list[str]:
    """Return a line on what the run promises with the earlier releases; none if it rests on none."""
    if (joint := ledger.over_time) is None:
        return []
    number = plural(joint.releases - 1, "earlier release")
    promise = f"epsilon {ceil(1e4 * joint.epsilon) / 1e4:g} at delta {joint.delta:.4g}"
    return [f"with {number}: {promise} ({joint.best.theorem}: {joint.best.needs})"]


def _public(ledger: RunLedger) -> list[str]:
    return [
        *recorded_lines(ledger),
        *acceptance_lines(ledger),
        *([f"reserved for thresholds: delta {ledger.reserved:.4g}"] if ledger.reserved else []),
        *(f"public: {sentence}" for sentence in ledger.public_inputs),
    ]


def acceptance_lines(ledger: RunLedger) -> list[str]:
    """Return the verdict on all criteria, and on each; no line if there are none."""
    acceptance = ledger.acceptance
    return [] if acceptance is None else [str(acceptance), *map(str, acceptance.criteria)]


def names_of(columns: Iterable[str]) -> str:
    """Return column names, quoted, as a list in a sentence."""
    return ", ".join(map(repr, columns))


def other_roots_from_plain(plain: Mapping[str, str]) -> tuple[tuple[str, str], ...]:
    """Return the other tables of persons that a ledger or a budget file lists, each with its column."""
    return tuple((_exactly(str, table), _exactly(str, column)) for table, column in plain.items())


def protects(unit: str | None, root: str | None = None, other_roots: Iterable[tuple[str, str]] = ()) -> str:
    """Say who is protected: one row, or all that belongs to one person.

    Of several rows of the root with one key, one is counted, with all rows that lead to them. So a part of
    them alone is no person: if it left, another row could take its place. Without a key no row leads to the
    root, and each of its rows is a person.

    >>> protects(None), protects(None, "flights"), protects("who")
    ('one row', "one row of 'flights'", "all rows of one 'who'")
    >>> protects("who", "people")
    "all rows of 'people' with one 'who', and all rows that lead to them"
    >>> protects("who", "people", [("staff", "id")]).partition("; or ")[2]
    "all rows of 'staff' with one 'id', and all rows that lead to them, but not what other rows say of them"
    """
    if root is None:
        return "one row" if unit is None else f"all rows of one {unit!r}"
    with_one_key = f"all rows of {root!r} with one {unit!r}, and all rows that lead to them"
    persons = [f"one row of {root!r}" if unit is None else with_one_key]
    for table, column in other_roots:
        rows = f"all rows of {table!r} with one {column!r}, and all rows that lead to them"
        persons.append(f"{rows}, but not what other rows say of them")
    return "; or ".join(persons)


def randomised_cells(ledger: RunLedger) -> str:
    """Say which cells of a record randomised response protects."""
    return f"the randomised cells of one record ({names_of(promise.column for promise in ledger.local)})"


def not_randomised(ledger: RunLedger) -> str:
    """Say which columns of a randomised table it does not protect."""
    return f"NOT RANDOMISED, exact: {names_of(ledger.unchanged)}"


def _table(ledger: RunLedger) -> list[tuple[str, ...]]:
    """Return the cells to print: a header, the first spends, one row for the others, and the total."""
    if ledger.all_local or ledger.elsewhere is not None:
        return []
    total = ledger.cost
    rows: list[tuple[str, ...]] = [("what", "sensitivity", *TERMS[ledger.law], "share")]
    spends = sorted(ledger.spends, key=_place)
    for spend in spends[:LINES]:
        question = shorten(spend.what, WIDTH, placeholder=" ...")
        share = f"{spend.cost / total:.1%}"
        rows.append((question, f"{spend.sensitivity:.4g}", f"{spend.sigma:.4g}", f"{spend.cost:.4g}", share))
    if rest := spends[LINES:]:
        cost = fsum(spend.cost for spend in rest)
        rows.append((f"and {len(rest)} more, in to_json()", "", "", f"{cost:.4g}", f"{cost / total:.1%}"))
    return [*rows, ("total", "", "", f"{total:.4g}", f"of {ledger.budget:.4g}")]


def _place(spend: Spend) -> tuple[bool, float]:
    """Sort one-ways first, in their order, because all else builds on them; then the most expensive."""
    one_ways = spend.what.startswith(ONE_WAYS)
    return not one_ways, 0.0 if one_ways else -spend.cost


def _exactly(kind: type[T], value: object) -> T:
    """Return `value`, which must be exactly of this type."""
    if type(value) is not kind:
        raise TypeError
    return value
