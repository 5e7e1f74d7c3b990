"""Ledger: an open account of a private table, to which mechanisms and runs are charged before they answer."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from math import fsum, inf
from threading import Lock
from typing import Literal, NoReturn, Protocol, get_args, runtime_checkable

from privsyn.arguments import check_whole
from privsyn.errors import InputError, printable, safe_repr
from privsyn.notebook import html, html_table
from privsyn.private.accounting import Accounting, rho_for
from privsyn.private.composition import Bound, Composition, PerQuery, Promise, compose, per_query
from privsyn.private.local_privacy import LocalPromise
from privsyn.private.run_ledger import NOT_PRIVATE, RunLedger
from privsyn.private.series import Series
from privsyn.private.spend import ADD_OR_REMOVE, CHANGE, Spend

LedgerAccounting = Literal["sequential", "zcdp", "gaussian"]


@runtime_checkable
class Chargeable(Protocol):
    """A mechanism, or the ledger of a run: its promise, and whose."""

    @property
    def promise(self) -> Promise:
        """What it promises, in numbers."""
        ...

    @property
    def name(self) -> str:
        """What it is, for the ledger."""
        ...

    @property
    def private(self) -> bool:
        """False if its noise can be repeated from a seed."""
        ...

    @property
    def neighbours(self) -> str | None:
        """The neighbours of its promise. None: those for which its sensitivity was computed."""
        ...


@dataclass(frozen=True)
class Charged:
    """One charge of a ledger: a mechanism or a run, and its promise.

    Parameters
    ----------
    question : str
    promise : Promise
    private : bool
    spend : Spend or LocalPromise, optional
        Of a mechanism. A run has a ledger of its own.
    """

    question: str
    promise: Promise
    private: bool
    spend: Spend | LocalPromise | None = None


class Ledger:
    """An account of one private table: a promise, and all that was charged to it.

    Whatever is charged together keeps the promise, even if later mechanisms and their epsilons were chosen
    after seeing earlier answers. A charge that would break it is refused, and nothing is drawn.

    Parameters
    ----------
    epsilon, delta : float
        The promise: all answers together are (epsilon, delta)-differentially private.
    accounting : "sequential", "zcdp" or "gaussian"
        How charges add up, fixed before the first one. "sequential": epsilons and deltas are added. "zcdp":
        rhos are added; a pure epsilon costs epsilon^2 / 2, a selection by the exponential mechanism epsilon^2
        / 8. "gaussian": squares of mu are added, which is exact for Gaussian noise. The last two need a
        delta, and take no mechanism with a delta of its own.
    neighbours : str
        How two tables differ that the promise makes hard to tell apart: "add or remove one record", "change
        one record", or the `neighbours` of a run's ledger.

    Raises
    ------
    InputError
        If epsilon or delta is no promise.

    Notes
    -----
    Limits on sums stay valid if the costs were chosen after seeing earlier answers (Rogers, Roth, Ullman and
    Vadhan, 2016, for epsilons; Feldman and Zrnic, 2021, for rhos; Smith and Thakurta, 2022, for squares of
    mu). The best of several theorems is no such limit: `composition` says what it would be if all costs had
    been fixed beforehand. A ledger cannot be copied or pickled, because each copy could be spent.

    Examples
    --------
    >>> from privsyn.mechanisms import Laplace
    >>> ledger = Ledger(epsilon=1)
    >>> ledger.charge(Laplace(epsilon=0.5, sensitivity=1))
    >>> f"{ledger.cost:.4f}", f"{ledger.remaining:.4f}", ledger.budget
    ('0.5000', '0.5000', 1.0)
    >>> ledger.charge(Laplace(epsilon=0.7, sensitivity=1))
    Traceback (most recent call last):
    privsyn.errors.InputError: the ledger has epsilon 0.5 left, and this needs epsilon 0.7: Laplace mechanism
    """

    def __init__(
        self,
        epsilon: float,
        delta: float = 0.0,
        *,
        accounting: LedgerAccounting = "sequential",
        neighbours: str = ADD_OR_REMOVE,
    ) -> None:
        if accounting not in get_args(LedgerAccounting):
            raise InputError(
                f"accounting must be one of {', '.join(get_args(LedgerAccounting))};"
                f" got {safe_repr(accounting)}"
            )
        if delta == 0 and accounting != "sequential":
            raise InputError(f'{accounting} accounting needs a delta above 0: use accounting="sequential"')
        limit = rho_for(
            epsilon, delta, "pure" if delta == 0 else "gaussian" if accounting == "gaussian" else "zcdp"
        )
        self.promised_epsilon, self.promised_delta = float(epsilon), float(delta)
        self.accounting: LedgerAccounting = accounting
        self.neighbours = neighbours
        self.budget = float(epsilon) if accounting == "sequential" else limit
        self._charges: list[Charged] = []
        self._lock, self._process = Lock(), os.getpid()

    def __reduce__(self) -> NoReturn:
        raise InputError("a ledger cannot be copied or pickled: each copy could be spent")

    @property
    def charges(self) -> tuple[Charged, ...]:
        """All that was charged, in order."""
        return tuple(self._charges)

    @property
    def spends(self) -> tuple[Spend | LocalPromise, ...]:
        """The spends of all mechanisms, in order."""
        return tuple(charged.spend for charged in self._charges if charged.spend is not None)

    @property
    def private(self) -> bool:
        """False if the noise of a charge can be repeated from a seed."""
        return all(charged.private for charged in self._charges)

    @property
    def cost(self) -> float:
        """The cost of all charges together: epsilon, or rho with zCDP and Gaussian accounting."""
        return fsum(self._cost(charged.promise) for charged in self._charges)

    @property
    def remaining(self) -> float:
        """What is left for further charges, as `cost` counts: epsilon or rho."""
        return self.budget - self.cost

    @property
    def delta_spent(self) -> float:
        """The deltas of all charges together, with sequential accounting."""
        return fsum(charged.promise.delta for charged in self._charges) if self._sequential else 0.0

    @property
    def promise(self) -> Promise:
        """What the ledger promises, in numbers: of the budget, not of what was spent."""
        if self._sequential:
            return Promise.pure(self.promised_epsilon, self.promised_delta)
        accounting: Accounting = "zcdp" if self.accounting == "zcdp" else "gaussian"
        return Promise(self.promised_epsilon, self.promised_delta, accounting, self.budget)

    @property
    def composition(self) -> Composition:
        """What all charges together promise by each theorem, if their costs were fixed beforehand."""
        return self.composition_at(self.promised_delta)

    def composition_at(self, delta: float) -> Composition:
        """Return the same at another delta."""
        promises = [charged.promise for charged in self._charges]
        if not promises:
            raise InputError("nothing was charged to the ledger")
        return compose(promises, self.neighbours, delta)

    @property
    def _cost_name(self) -> str:
        """What costs are: epsilon or rho."""
        return "epsilon" if self._sequential else "rho"

    @property
    def _sequential(self) -> bool:
        return self.accounting == "sequential"

    def _cost(self, promise: Promise) -> float:
        if self._sequential:
            return promise.epsilon
        return promise.rho if self.accounting == "zcdp" else promise.gaussian_rho

    def charge(self, *mechanisms: Chargeable, question: str | None = None, disjoint: bool = False) -> None:
        """Charge mechanisms or runs, before they answer; all of them or none.

        Parameters
        ----------
        *mechanisms : mechanisms, or ledgers of runs
        question : str, optional
            In words that may be published. Default: the name of the mechanism.
        disjoint : bool
            Your statement that no record is in the parts of the table that two of these mechanisms read
            (parallel composition). Then the largest cost is charged. It cannot be checked. Only where
            records are added or removed: a changed one can leave one part and enter another.

        Raises
        ------
        InputError
            If the ledger has not enough left, or the mechanism protects other neighbours.
        """
        if not mechanisms or not all(isinstance(mechanism, Chargeable) for mechanism in mechanisms):
            raise InputError("charge one or more mechanisms, or ledgers of runs")
        charges = [self._charged(mechanism, question) for mechanism in mechanisms]
        if disjoint:
            _check_disjoint(self.neighbours)
            charges = [self._largest(charges)]
        if os.getpid() != self._process:  # a fork has a copy
            raise InputError("a ledger is charged in the process that opened it, and not in another one")
        with self._lock:  # two threads must not both find enough left
            trial = [*self._charges, *charges]
            if not self._holds([charged.promise for charged in trial]):
                raise InputError(self._refusal(charges))
            self._charges = trial

    def _charged(self, mechanism: Chargeable, question: str | None) -> Charged:
        neighbours = mechanism.neighbours
        if neighbours is not None and neighbours != self.neighbours:
            raise InputError(
                f"the ledger protects neighbours that {self.neighbours}, the {mechanism.name} neighbours that"
                f" {neighbours}: open a ledger for these"
            )
        promise = mechanism.promise
        if isinstance(mechanism, RunLedger):
            if mechanism.elsewhere is not None:
                raise InputError("counts measured elsewhere have no promise of ours to charge")
            if mechanism.local and not mechanism.all_local:
                raise InputError(
                    "columns that the respondents randomised have no cost in this ledger: Ledger.compose adds"
                    " up what they promise"
                )
        if not self._sequential and (promise.reserved or self._cost(promise) == inf):
            raise InputError(
                f"{self.accounting} accounting has no cost for this: {mechanism.name}. Open a ledger with"
                " another accounting"
            )
        return Charged(
            mechanism.name if question is None else question,
            promise,
            mechanism.private,
            getattr(mechanism, "spend", None),
        )

    def _largest(self, charges: Sequence[Charged]) -> Charged:
        """Return the charge of mechanisms that read disjoint parts: a record changes the answer of one."""
        promises = [charged.promise for charged in charges]
        epsilon = max(promise.epsilon for promise in promises)
        delta = max(promise.delta for promise in promises)
        promise = Promise.pure(epsilon, delta)
        if not self._sequential and any(promise.accounting != "pure" for promise in promises):
            cost = max(map(self._cost, promises))
            promise = replace(self.promise, epsilon=epsilon, delta=delta, budget=cost)
        question = f"in parallel: {', '.join(dict.fromkeys(charged.question for charged in charges))}"
        return Charged(question, promise, all(charged.private for charged in charges))

    def _holds(self, promises: Sequence[Promise]) -> bool:
        """Return whether a limit that was fixed beforehand is kept, in exact numbers."""
        # Pure epsilons that add up to epsilon are no exception from a limit in rho: `promise` says this rho.
        costs = [self._cost(promise) for promise in promises]  # infinite where only a rho is known
        holds = inf not in costs and sum(map(Fraction, costs)) <= Fraction(self.budget)
        if self._sequential:
            return holds and sum(Fraction(p.delta) for p in promises) <= Fraction(self.promised_delta)
        return holds

    def _refusal(self, charges: Sequence[Charged]) -> str:
        """Say what is left, and what was needed."""
        cost = fsum(self._cost(charged.promise) for charged in charges)
        question = charges[0].question if len(charges) == 1 else f"{len(charges)} mechanisms"
        rest, needed = f"{self._cost_name} {self.remaining:.4g}", f"{self._cost_name} {cost:.4g}"
        delta = fsum(charged.promise.delta for charged in charges)
        if self._sequential and (self.promised_delta or delta):
            rest += f" and delta {max(0.0, self.promised_delta - self.delta_spent):.4g}"
            needed += f" and delta {delta:.4g}"
        return f"the ledger has {rest} left, and this needs {needed}: {question}"

    def epsilon(self, delta: float | None = None, *, group: int = 1) -> float:
        """Return the epsilon that the ledger promises at a delta, to each record or to a group of them.

        Parameters
        ----------
        delta : float, optional
            Default: the promised one. With sequential accounting, that of the group.
        group : int
            Number of records that may differ together.
        """
        check_whole("group", group, minimum=1)
        return self.promise.group(group, delta).epsilon

    def subsampled(self, rate: float, delta: float | None = None) -> Bound:
        """Return the promise to the records of a larger table of which this one is a Poisson sample.

        Each record of the larger table is in this one with probability `rate`, independently of the others,
        and nobody knows which. See `Promise.subsampled`.
        """
        if not 0 < rate <= 1:
            raise InputError(f"the rate must be above 0 and at most 1; got {safe_repr(rate)}")
        if self.neighbours == CHANGE:
            raise InputError("amplification is proved for neighbours that add or remove a record")
        return self.promise.subsampled(rate, delta)

    def per_query(self, queries: int) -> PerQuery:
        """Return the epsilon that each of `queries` pure mechanisms may have, by each theorem."""
        return per_query(
            check_whole("queries", queries, minimum=1), self.promised_epsilon, self.promised_delta
        )

    def explain(self) -> str:
        """Return each theorem with its formula and its epsilon, if all costs were fixed beforehand."""
        bounds = self.composition.bounds
        lines = [f"{bound.theorem}: epsilon {bound.epsilon:.4g}; {bound.formula}" for bound in bounds]
        return "\n".join([str(self), *lines])

    def __repr__(self) -> str:
        rows = self._rows()
        widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
        table = ["  ".join([row[0].ljust(widths[0]), *map(str.rjust, row[1:], widths[1:])]) for row in rows]
        return "\n".join(map(printable, [*self._lines(), *table]))

    def _repr_html_(self) -> str:
        header, *rows = self._rows()
        return html("Privacy ledger", self._lines(), html_table(header, rows))

    def _lines(self) -> list[str]:
        """Return the promise, below a warning if there is one."""
        promise = (
            f"epsilon {self.promised_epsilon!r}, delta {self.promised_delta!r};"
            f" neighbours: {self.neighbours}; {self.accounting} accounting"
        )
        return [promise] if self.private else [NOT_PRIVATE, promise]

    def _rows(self) -> list[tuple[str, ...]]:
        """Return a header, a row for each charge, and the total; deltas only if they add up."""
        rows: list[tuple[str, ...]] = [("what", self._cost_name, "delta")]
        for line in self._charges:
            rows.append((line.question, f"{self._cost(line.promise):.4g}", f"{line.promise.delta:.3g}"))
        total = f"{self.cost:.4g} of {self.budget:.4g}"
        rows.append(("total", total, f"{self.delta_spent:.3g} of {self.promised_delta:g}"))
        return rows if self._sequential else [row[:2] for row in rows]

    @staticmethod
    def compose(
        ledgers: Iterable[RunLedger | Ledger], delta: float | None = None, *, disjoint: bool = False
    ) -> Composition:
        """Return what several releases from one table promise together, by several theorems.

        Parameters
        ----------
        ledgers : iterable of ledgers of runs, `ledger_`, and of Ledger
            All protect the same: a row, or persons that the same column identifies, of the same root if
            tables are linked. Bounds on the rows of a person may differ. A ledger counts as often as it is
            given. The earlier releases on which a run rests (`since`) count too, each once.
        delta : float, optional
            The delta of the joint promise. Default: the sum of all deltas. A larger one lowers epsilon.
        disjoint : bool
            Your statement that no person's row is in the tables of two releases (disjoint filters). It cannot
            be checked.

        Raises
        ------
        InputError
            If a ledger is not private or is of a randomised table, or ledgers protect different units.

        Examples
        --------
        >>> def release(epsilon):
        ...     return RunLedger((), epsilon, 1e-9, "gaussian", "operating system", True, (), "1.0")
        >>> joint = Ledger.compose([release(1.0), release(0.5)])
        >>> joint.best.theorem, f"{joint.epsilon:.3f}", joint.delta
        ('exact', '1.106', 2e-09)
        """
        if isinstance(ledgers, RunLedger | Ledger):
            raise InputError("compose takes a list of ledgers, [first, second]; got one ledger")
        runs = list(ledgers)
        _check_joint(runs)
        if disjoint:
            _check_disjoint(runs[0].neighbours)
        series, names = list[Series](), set[str]()
        for run in runs:
            if isinstance(run, Ledger):
                series.append(Series.of(run.promise, None))
                continue
            # Given twice, it is meant as two runs: without its name it counts again.
            series.append((replace(run, run=None) if run.run in names else run).series)
            names.add(run.run or "")
        return Series.join(series, disjoint=disjoint).together(runs[0].neighbours, delta)


def _check_disjoint(neighbours: str) -> None:
    """Refuse parallel composition where one change can touch two parts."""
    if neighbours == CHANGE:
        raise InputError(
            "parts are not disjoint for neighbours that change one record: it can leave one part and enter"
            " another. Charge all mechanisms"
        )


def _check_joint(runs: Sequence[RunLedger | Ledger]) -> None:
    """Refuse ledgers that have no joint promise."""
    if not runs:
        raise InputError("there is no ledger to compose: give at least one")
    for number, run in enumerate(runs, start=1):
        if not isinstance(run, RunLedger | Ledger):
            raise InputError(f"compose takes ledgers, such as model.ledger_; got {safe_repr(run)}")
        if run.neighbours != runs[0].neighbours and Ledger in map(type, runs):
            raise InputError(
                f"ledger {number} protects neighbours that {run.neighbours}, ledger 1 neighbours that"
                f" {runs[0].neighbours}: compose them apart"
            )
        if isinstance(run, Ledger):
            if not run.private:
                raise InputError(f"ledger {number} is NOT PRIVATE: the noise can be repeated")
            continue
        if run.elsewhere is not None:
            raise InputError("counts measured elsewhere have no promise of ours to add up")
        if run.unchanged:
            raise InputError(f"ledger {number} is NOT PRIVATE: it is of a table with unchanged columns")
        if not run.private:
            raise InputError(f"ledger {number} is NOT PRIVATE: the noise can be repeated")
        if run.all_local:
            raise InputError(
                f"ledger {number} is of a randomised table: leave it out only if all other releases are made"
                " from that randomised table; otherwise epsilons add, also those of two randomisations of"
                " the same answers"
            )
        if isinstance(runs[0], RunLedger) and run.protects != runs[0].protects:
            raise InputError(
                f"ledger {number} protects {run.protects}, ledger 1"
                f" {runs[0].protects}: releases have a joint promise only if they protect"
                " the same: compose them apart"
            )
