"""The questions of methods to the private table. Every answer gets noise and an entry in the `QueryLog`.

Other questions are in `contribution` (numbers of rows per person) and `find_values` (what a schema leaves
open). From the log of all of them the run makes its ledger.

Neighbouring tables differ by adding or removing one record. A record lies in exactly one cell of a table of
counts. Adding it changes that cell by 1 and no other. So a table of counts has L2 sensitivity 1, and m tables
that are asked together have sensitivity sqrt(m).

If a person may have many records, neighbouring tables differ by all records of one person, and a `Bound`
limits what these add to an answer. At most k records are k single additions, one after another, and each
moves an answer by at most its sensitivity. By the triangle inequality, all k together move it by at most k
times the sensitivity. Counts move exactly this far if the k records are equal. Within squares the records of
a person add a vector of L2 norm at most C to a table of counts: so its sensitivity is C.

With a delta of 0 distances are measured in L1. One table of counts then has sensitivity 1, m tables together
have m, and a person with k records k times as much. The cost is an epsilon (`privsyn.private.noise_laws`).
Below, "rho" stands for a cost under either law.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from fractions import Fraction
from itertools import combinations
from math import prod, sqrt
from typing import Literal

import numpy as np

from privsyn.marginals.domain import Attributes, Codes, Domain, Floats, Ints, Records
from privsyn.marginals.marginal import NO_GROUPS, Grouping, Marginal, Measurement
from privsyn.marginals.recoding import Merging
from privsyn.private.acceptance import Excess
from privsyn.private.contribution import ONE_ROW_EACH, Bound, Contribution
from privsyn.private.indif import GRID, INDIF_SENSITIVITY, indif_on_grid
from privsyn.private.noise import SharedNoise, release
from privsyn.private.noise_laws import GAUSSIAN, Law
from privsyn.private.randomness import Noise
from privsyn.private.row_totals import RowTotals, multiplied
from privsyn.private.rows import Rows
from privsyn.private.samplers.exponential import exponential
from privsyn.private.spend import BUT_KNOWN, ONE_WAY, ONE_WAYS, PAIRS_DRAWN, QueryLog, Spend

Asked = Literal["tables", "pairs", "pairs with the target", "sets of columns"]
"""What the tables are whose distance is asked."""


class PrivateTable:
    """The encoded rows, which answer only with noise, and the log of all questions.

    Parameters
    ----------
    rows : Rows or Records
        The private table in codes. Only its domain is public.
    noise : Noise
    contribution : Contribution
        What one person may add to the answers. Each method takes the budget of an answer as that of a record
        in a table, so that the noise of a table does not depend on the bound. The log has the cost for a
        person, which is the bound of tables, squared, times as much.
    log : QueryLog, optional
        Where questions are recorded. Default: a new log.
    """

    def __init__(
        self,
        rows: Rows | Records,
        noise: Noise,
        contribution: Contribution = ONE_ROW_EACH,
        log: QueryLog | None = None,
    ) -> None:
        self._rows = Rows.in_memory(rows) if isinstance(rows, Records) else rows
        self._noise = noise
        self.contribution = contribution
        self._log = QueryLog() if log is None else log

    @property
    def domain(self) -> Domain:
        """Names and sizes of the attributes: public."""
        return self._rows.domain

    @property
    def spends(self) -> tuple[Spend, ...]:
        """What has been asked so far, and its cost."""
        return self._log.spends

    @property
    def rho_of(self) -> Callable[[Floats], Floats] | None:
        """From costs to the rho of Gaussian noise with the same variance; None if costs are rho already.

        The variance is that of counts scaled to the rows that are counted in columns.
        """
        law, part = self.law, self.contribution.of_tables
        if part is None:
            return None if law is GAUSSIAN else law.rho
        return lambda cost: part**2 * law.rho(cost)

    @property
    def sums_only(self) -> bool:
        """Whether the rows are with several owners: only numbers that are sums over rows can be asked for."""
        return isinstance(self._noise, SharedNoise)

    @property
    def law(self) -> Law:
        """The law of the noise: public."""
        return self._noise.law

    def merge(self, merging: Merging) -> PrivateTable:
        """Return the table with its codes merged by released counts.

        Each row is recoded on its own, so neighbours stay neighbours. Both tables contain the same persons,
        so they share one log.
        """
        return PrivateTable(self._rows.merge(merging), self._noise, self.contribution, self._log)

    def extend(self, domain: Domain, groups: Sequence[Codes]) -> PrivateTable:
        """Return the table with more attributes of each row; see `Rows.extend`. Both share one log."""
        return PrivateTable(self._rows.extend(domain, groups), self._noise, self.contribution, self._log)

    def one_ways(
        self, rho: float, shares: Floats | None = None, *, public: Collection[str] = ()
    ) -> tuple[Measurement, ...]:
        """Count the values of every attribute, but for those whose counts are public.

        Each of the d tables that are counted has sensitivity 1, and one more record moves all of them:
        sqrt(d) together, and d in L1. The others are not counted, so no number of the answer depends on them.
        Which they are is public. With shares, each table is a question of its own with sensitivity 1, and
        their costs add up.

        Parameters
        ----------
        rho : float
            Budget of all tables together, in zCDP.
        shares : array of shape (d,), optional
            The share of each table, from released answers only. A table without a share is not counted.
            Default: the same noise in all.
        public : collection of attributes, optional
            Whose counts are known without a question.

        Returns
        -------
        tuple of Measurement, one per table that was counted, in the domain's order
        """
        tables: tuple[Attributes, ...] = tuple((name,) for name in self.domain.names if name not in public)
        if not tables:
            return ()
        bound = self.contribution.columns
        if shares is None:
            exact = list(self._rows.count(tables, bound))
            question = BUT_KNOWN if len(tables) < len(self.domain) else ONE_WAYS
            noisy, scale = self._answer(question, np.concatenate(exact), len(tables), rho, bound)
            parts = np.split(noisy, np.cumsum([len(counts) for counts in exact])[:-1])
            return tuple(
                self._measurement(table, part, scale) for table, part in zip(tables, parts, strict=True)
            )
        costs = {table: rho * share for table, share in zip(tables, shares.tolist(), strict=True) if share}
        return tuple(
            self._measurement(table, *self._answer(f"{ONE_WAY} {table[0]}", counts, 1, costs[table], bound))
            for table, counts in self._counted(list(costs), bound)
        )

    def indifs(self, rho: float) -> dict[Attributes, float]:
        """Return InDif of every pair, in records, as the published method asks. Noise can make it negative.

        `indif_on_grid` has the sensitivity of one pair. The table that attains it moves all m pairs at once:
        sqrt(m) times that together.

        Parameters
        ----------
        rho : float
            Budget of all pairs together, in zCDP.
        """
        self._require_distances()
        pairs = list(combinations(self.domain.names, 2))
        if not pairs:
            return {}
        bound = self.contribution.columns
        exact = np.array([indif_on_grid(counts) for counts in self._rows.count(pairs, bound)], np.int64)
        question = f"dependence (InDif) of every pair, in 1/{GRID} records"
        noisy, _ = self._answer(question, exact, len(pairs), rho, bound, INDIF_SENSITIVITY)
        return dict(zip(pairs, (noisy / GRID).tolist(), strict=True))

    def draw_pairs(
        self,
        penalties: Callable[[tuple[Attributes, ...]], Mapping[Attributes, float]],
        draws: int | None,
        rho: float,
    ) -> tuple[Attributes, ...]:
        """Draw pairs by the exponential mechanism, on exact InDif less a public penalty.

        A draw takes the candidate x with probability proportional to e^(score(x) / s). The candidates are all
        pairs that were not drawn before. Without a number of draws, "no further pair" is another one, whose
        score is 0.

        Sensitivity and cost. The penalties follow from the domain and from earlier draws, so one record moves
        a score by at most Delta, the sensitivity of InDif in `indif_on_grid`. The logarithm of the
        probability of x moves by (its change of score) / s less the change of the logarithm of the sum, which
        is the same for all x. So the privacy losses of a draw lie within an interval of length epsilon = 2
        Delta / s (bounded range). Such a draw is epsilon^2 / 8 = Delta^2 / (2 s^2)-zCDP (Cesar and Rogers,
        2021, Lemma 3.4): it costs what a Gaussian answer with the same sensitivity and with sigma = s costs,
        and is logged as that. The draws are adaptive, and their rhos add up to that of all draws. This
        holds in zCDP and for epsilons that follow from it, and not for the exact profile of Gaussian noise.

        Parameters
        ----------
        penalties : callable
            Return the penalty of each pair, in records, given the pairs drawn so far. Of public facts alone.
        draws : int, optional
            How many pairs. Default: until "no further pair" is drawn, and budgeted for all.
        rho : float
            Budget of all draws together, in zCDP.
        """
        self._require_distances()
        if self.law.name != "gaussian":
            raise ValueError("this cost of a draw is one in zCDP, and pure epsilons have another")
        pairs = tuple(combinations(self.domain.names, 2))
        if not pairs:
            return ()
        bound = self.contribution.columns
        exact = {pair: indif_on_grid(counts) for pair, counts in self._counted(pairs, bound)}
        question = f"{PAIRS_DRAWN}, by InDif in 1/{GRID} records"
        number = len(pairs) if draws is None else min(draws, len(pairs))
        sensitivity = self.law.joint(number) * INDIF_SENSITIVITY * bound.limit
        cost = self.law.of_person(rho, self.contribution.limit)
        scale = Fraction(self._log.charge(question, number, sensitivity, cost, self.law))
        drawn: tuple[Attributes, ...] = ()
        for _ in range(number):
            penalty = penalties(drawn)
            open_pairs = [pair for pair in pairs if pair not in drawn]
            scores = [Fraction(exact[pair] - round(GRID * penalty[pair])) for pair in open_pairs]
            end = [Fraction(0)] if draws is None else []
            position = exponential([*scores, *end], scale, self._noise.bits)
            if position == len(open_pairs):
                break
            drawn += (open_pairs[position],)
        return drawn

    def departures(
        self,
        expected: tuple[Marginal, ...],
        rho: float,
        blocks: Merging | None = None,
        subject: Asked = "tables",
    ) -> tuple[Floats, float]:
        """Return the L1 distance of each table of counts from the counts that released answers predict.

        The expected counts are rounded and fixed before the rows are counted. One more record changes one
        cell of a table by 1, and so its L1 distance by at most 1. The sensitivity is 1 for a table and
        sqrt(m) for m, a quarter of that of InDif. The same holds in blocks: a record lies in one block of
        each table.

        Parameters
        ----------
        expected : tuple of Marginal
            Computed from released answers only.
        rho : float
            Budget of all distances together, in zCDP.
        blocks : Merging, optional
            Computed from released answers only: the codes of `expected`. Default: the codes of this table.
        subject : str, optional
            What the tables are, for the ledger.

        Returns
        -------
        departures : array of shape (m,)
            In records.
        sigma : float
            Standard deviation of the noise in each, in records.
        """
        self._require_distances()
        if blocks is not None and blocks.original != self.domain:  # a record could lie in no block, or in two
            raise ValueError(f"blocks of {blocks.original.shape} for a table of {self.domain.shape}")
        domain = self.domain if blocks is None else blocks.merged
        bound = self.contribution.columns
        gaps = -whole_counts(expected, domain)  # before any row is counted; 64 bits hold counts less 2^53
        sets, starts = [table.attributes for table in expected], first_cells(expected)
        for start, (attributes, counts) in zip(starts.tolist(), self._counted(sets, bound), strict=True):
            joined = counts if blocks is None else blocks.grouping(attributes).join(counts)
            gaps[start : start + joined.size] += joined.ravel()
        distances = np.add.reduceat(np.abs(gaps), starts)
        question = f"distance from expected counts, {subject}"
        noisy, scale = self._answer(question, distances, len(expected), rho, bound)
        return noisy.astype(np.float64), sqrt(self.law.variance(scale))

    def concordances(
        self, pairs: tuple[Attributes, ...], signs: Mapping[str, Ints], rho: float
    ) -> tuple[Floats, float]:
        """Return, for each pair, the sum over the records of the product of both codes' signs.

        One more record adds the product of the signs of its two codes: -1, 0 or 1, whatever the other records
        are. So each sum has sensitivity 1, and m sums sqrt(m) together. The sums of several owners add up, so
        they can be asked too.

        Parameters
        ----------
        pairs : tuple of pairs of str
        signs : mapping from name to array of shape (codes,)
            -1, 0 or 1. Computed from released answers only.
        rho : float
            Budget of all sums together, in zCDP.

        Returns
        -------
        sums : array of shape (pairs,)
            In records.
        variance : float
            Noise variance of each, in records squared.

        Raises
        ------
        ValueError
            If a sign is another number, or their number is not that of the codes.
        """
        for name in {name for pair in pairs for name in pair}:
            check_signs(signs[name], self.domain, name)  # before any row is counted
        bound = self.contribution.columns
        counted = self._counted(pairs, bound)
        exact = np.array([signs[a] @ counts @ signs[b] for (a, b), counts in counted], np.int64)
        noisy, scale = self._answer("concordance of pairs of numbers", exact, len(pairs), rho, bound)
        factor = self._factor
        return factor * noisy.astype(np.float64), factor**2 * self.law.variance(scale)

    def marginals(
        self, tables: tuple[Attributes, ...], rhos: Floats, groupings: Sequence[Grouping] | None = None
    ) -> tuple[Measurement, ...]:
        """Return the counts over each set of attributes, of sensitivity 1.

        So it is in groups of codes: a record lies in one cell, and a cell in one group of cells.

        Parameters
        ----------
        tables : tuple of attributes
        rhos : array of shape (number of tables,)
            The budget of each, in zCDP.
        groupings : sequence of Grouping, optional
            The groups in which each table is counted. Made of released answers alone.
        """
        measured: dict[int, Measurement] = {}
        of_tables = (NO_GROUPS,) * len(tables) if groupings is None else groupings
        bounds = tuple(map(self.contribution.of_table, tables))
        for bound in dict.fromkeys(bounds):
            indices = [index for index in range(len(tables)) if bounds[index] == bound]
            sets = [tables[index] for index in indices]
            exact = self._rows.count(sets, bound, [of_tables[index] for index in indices])
            for index, attributes, counts in zip(indices, sets, exact, strict=True):
                grouping = of_tables[index]
                shape = f", {' x '.join(map(str, counts.shape))} groups" if grouping else ""
                question = f"counts over {', '.join(attributes)}{shape}"
                noisy, scale = self._answer(question, counts, 1, float(rhos[index]), bound)
                domain = grouping.domain(self.domain.project(attributes))
                noisy_table = Marginal(domain, noisy.astype(np.float64))
                measured[index] = self._scaled_to_all_owners(noisy_table, scale, grouping)
        return tuple(measured[index] for index in range(len(tables)))

    def residuals(self, tables: tuple[Attributes, ...], rhos: Floats) -> tuple[Measurement, ...]:
        """Return what counts over some attributes add to those over fewer of them.

        Along an axis of k codes a count becomes k times itself, less the sum over the axis. So a record adds
        the outer product of one vector per axis: k - 1 at its code, -1 at the k - 1 others. The squared norm
        of a vector is (k - 1)^2 + (k - 1) = k (k - 1), and that of the product prod k (k - 1). Its root is
        the L2 sensitivity. Whole numbers are at most their squares, so that in L1 it is at most the product.

        The answer over prod k is the residual, with the noise of independent cells without its margins.

        Parameters
        ----------
        tables : tuple of attributes
            Each attribute has at least two codes: with one, the residual is 0.
        rhos : array of shape (number of tables,)
            The budget of each, in zCDP.

        Returns
        -------
        tuple of Measurement
            With margins of 0, and the variance of the independent cells.
        """
        measured, bound = [], self.contribution.tables
        for rho, (attributes, counts) in zip(rhos.tolist(), self._counted(tables, bound), strict=True):
            exact = counts.astype(np.int64)
            for axis, size in enumerate(counts.shape):
                exact = size * exact - exact.sum(axis=axis, keepdims=True)
            norm = prod(size * (size - 1) for size in counts.shape)  # squared
            noisy, scale = self._answer(f"residual over {', '.join(attributes)}", exact, norm, rho, bound)
            table = Marginal(self.domain.project(attributes), noisy / counts.size)
            residual = Measurement(table.residual, np.array(self.law.variance(scale) / counts.size**2))
            measured.append(multiplied(self._factor, residual))
        return tuple(measured)

    def excesses(self, tests: Sequence[Excess], rho: float) -> tuple[tuple[int, float], ...]:
        """Return by how much the table exceeds what each criterion allows; see `Excess`.

        Each test says its own sensitivity, with a proof. It is fixed before the rows are counted, as are the
        numbers that the table is compared with. Each row is recoded alone (`merge`), and each answer pays its
        own cost.

        Parameters
        ----------
        tests : sequence of Excess
            Made of public facts and released answers only.
        rho : float
            Budget of all tests together, in zCDP, split equally.

        Returns
        -------
        For each test the noisy excess, and the scale of its noise.
        """
        self._require_distances()
        answers, bound = [], self.contribution.columns
        for test in tests:
            rows = self._rows.project(test.merging.original)  # the criteria know no columns of the person
            (counts,) = rows.merge(test.merging).count([test.attributes], bound)
            exact = np.array([test.of(counts)], np.int64)
            noisy, scale = self._answer(test.what, exact, 1, rho / len(tests), bound, test.sensitivity)
            answers.append((int(noisy[0]), scale))
        return tuple(answers)

    def _require_distances(self) -> None:
        """Refuse several owners: the distance of all rows is not the sum of the distances of each owner."""
        if self.sums_only:
            raise ValueError("a distance is not a sum over the rows of several owners")

    def _counted(self, sets: Sequence[Attributes], bound: Bound) -> Iterator[tuple[Attributes, Ints]]:
        """Return each set of attributes with its exact counts. Private."""
        return zip(sets, self._rows.count(sets, bound), strict=True)

    def _answer(
        self, question: str, exact: Ints, parts: int, rho: float, bound: Bound, sensitivity_of_part: int = 1
    ) -> tuple[Ints, float]:
        """Return the exact answer plus noise, and its scale.

        The answer has `parts` numbers or tables, and one record moves each of them by at most
        `sensitivity_of_part`. The
        records of a person, within `bound`, move it by `bound.limit` times as much; see the top of this file.
        The question is logged before any noise is drawn.
        """
        law = self.law
        if bound.by == "squares" and (parts, sensitivity_of_part, law.name) != (1, 1, "gaussian"):
            raise ValueError("squares bound the L2 norm of one table of counts")
        sensitivity = law.joint(parts) * sensitivity_of_part * bound.limit
        cost = law.of_person(rho, self.contribution.limit)
        scale = self._log.charge(question, exact.size, sensitivity, cost, law)
        return release(exact, scale, self._noise), scale

    def _measurement(self, attributes: Attributes, noisy: Ints, scale: float) -> Measurement:
        table = Marginal(self.domain.project(attributes), noisy.astype(np.float64))
        return self._scaled_to_all_owners(table, scale, NO_GROUPS)

    def _scaled_to_all_owners(self, counts: Marginal, scale: float, grouping: Grouping) -> Measurement:
        """Return a table that was just released, scaled to all owners' rows if an owner was lost before."""
        measured = Measurement(counts, np.array(self.law.variance(scale)), grouping)
        totals = self._totals
        return measured if totals is None else totals.scaled(measured)

    @property
    def _factor(self) -> float:
        """All owners' rows, over those in the last answer."""
        return 1.0 if self._totals is None else self._totals.factor

    @property
    def _totals(self) -> RowTotals | None:
        """Numbers of rows with and without lost owners; None if tables count different rows of a person."""
        if isinstance(self._noise, SharedNoise) and self.contribution.of_tables is None:
            return self._noise.totals
        return None


LARGEST = 2.0**53
"""Largest expected count, in records: up to it doubles hold every integer, and sums stay in 64 bits."""

SIGNS = (-1, 0, 1)
"""What a code may add to a concordance. Larger numbers would break its sensitivity."""


def whole_counts(expected: Sequence[Marginal], domain: Domain) -> Ints:
    """Round the expected counts of tables to integers. Return their cells, one table after another.

    Counts without an integer in 64 bits are refused: one that wraps is far from its value. So is a table with
    other cells, because one record could count several times along them. The sensitivity would not hold for
    either. Both raise ``ValueError``, as does no table at all.
    """
    for table in expected:
        if table.domain.shape != domain.project(table.attributes).shape:
            raise ValueError(f"expected counts {table.domain.shape} over a domain of {domain.shape}")
    cells = np.concatenate([table.counts.ravel() for table in expected])
    sums = np.add.reduceat(np.abs(cells), first_cells(expected))
    if not (sums <= LARGEST).all():  # also refuses NaN
        raise ValueError("expected counts are finite, and at most 2^53 together")
    return np.rint(cells).astype(np.int64)


def first_cells(tables: Sequence[Marginal]) -> Ints:
    """Return where the cells of each table begin, if they stand one table after another."""
    return np.cumsum([0, *(table.counts.size for table in tables[:-1])])


def check_signs(signs: Ints, domain: Domain, name: str) -> None:
    """Refuse other signs than -1, 0 and 1 for each code of an attribute, with a ``ValueError``.

    The sensitivity of a concordance would not hold.
    """
    if signs.shape != domain.project((name,)).shape or not np.isin(signs, SIGNS).all():
        raise ValueError(f"the signs of {name!r} must be -1, 0 or 1, one for each code")
