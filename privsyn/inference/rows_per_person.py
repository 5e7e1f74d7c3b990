"""The number of rows per person, estimated from released counts, and the bounds on a person's rows."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from math import ceil, hypot, log, log1p, log2, log10, sqrt

import numpy as np

from privsyn.inference.single_rows import SingleCodes, SingleRows
from privsyn.marginals.domain import Floats, Ints
from privsyn.marginals.tolerances import TINY_COUNT

CLEAR = 4.5  # standard deviations by which the last classes stand out of the noise: false in 1 of 1,000 runs
FURTHER = 1.0  # what each decimal digit of the number of rows adds: false classes of many rows cost more
JOINED = 2.0  # the same of joined classes before them
WINDOW = 8  # most classes that are summed to find the last
CELLS = 36  # of a table that stand out of the noise, assumed
FOR_TABLES = 0.75  # share of the budget for tables of two columns, assumed
ALIKE = 0.2  # probability that two rows of a person are in the same cell of a table, assumed
LARGEST_BOUND = 16  # largest bound: a person's squares then take 256 rows
GROUPS = 6  # of persons by their number of rows
INSIDE = 1 / 6  # of the width of a class: standard deviation of the mean number of rows in it
HIDDEN = 0.1  # of the persons: more than these should not be beyond the largest number of rows
STEEP = 1.5  # least exponent of the power law that bounds the rows beyond the last class
MEANS = 256  # numbers of rows of a person, among which its mean is searched
MISFIT = 0.5  # standard deviation of the true number in a class about the geometric one, over the latter


@dataclass(frozen=True, eq=False)
class RowsOfGroups:
    """Estimated numbers of rows of groups of persons, and how certain they are.

    Parameters
    ----------
    numbers : array of shape (groups,)
        All rows of the persons of each group.
    covariance : array of shape (groups, groups)
        Covariance of the errors of these numbers.
    spread : array of shape (groups,)
        Sum over the persons of a group of the squared difference of their number of rows from its mean.
    single : SingleRows, optional
        What is counted of values that at most one row of a person has. Default: all rows are counted.
    hidden : float
        Standard deviation of the rows of the last group that may be unlike all others.
    """

    numbers: Floats
    covariance: Floats
    spread: Floats
    single: SingleRows | None = None
    hidden: float = 0.0

    @classmethod
    def exact(cls, numbers: Floats) -> RowsOfGroups:
        """Return exact numbers of groups in which all persons have equally many rows."""
        return cls(numbers, np.zeros((len(numbers),) * 2), np.zeros(len(numbers)))

    def scaled_to(self, total: float) -> RowsOfGroups:
        """Return numbers with this sum, in the same proportions."""
        factor = total / max(float(self.numbers.sum()), 1.0)
        single = self.single and self.single.joined(factor * np.eye(len(self.numbers)))
        return RowsOfGroups(
            factor * self.numbers,
            factor**2 * self.covariance,
            factor * self.spread,
            single,
            factor * self.hidden,
        )

    def with_single_codes(self, codes: Mapping[str, SingleCodes]) -> RowsOfGroups:
        """Return the same, given the codes of each column that at most one row of a person has."""
        return replace(self, single=self.single and replace(self.single, codes=codes))

    def joined(self, to_groups: Floats) -> RowsOfGroups:
        """Return the numbers of groups of groups, given an array of shape (new groups, groups) of 0 and 1."""
        return RowsOfGroups(
            to_groups @ self.numbers,
            to_groups @ self.covariance @ to_groups.T,
            to_groups @ self.spread,
            self.single and self.single.joined(to_groups),
            self.hidden,
        )


@dataclass(frozen=True, eq=False)
class RowsPerPerson:
    """Estimated numbers of persons by their number of rows.

    Parameters
    ----------
    begins : integer array of shape (classes,)
        The first number of rows of each class.
    persons : array of shape (classes,)
        Estimated number of persons in each class, at least 0.
    covariance : array of shape (classes, classes), optional
        Covariance of the errors of the number of rows in each class. Default: no errors.
    sigma : float
        Standard deviation of the noise in the number of persons of a class.
    geometric : bool
        Whether the distribution is geometric, because the noise hides its shape.
    hidden : bool
        Whether the noise hides everything: no class stood out, nor did a geometric distribution by `CLEAR`.
    reach : int
        The `largest` number of rows by the histogram: later answers move the numbers of persons, but show no
        person with more rows. Default: it follows from the numbers of persons.
    hidden_rows : float
        Standard deviation of the number of rows of persons with more rows than is seen, whom no light tail
        explains. It is in the covariance too. These rows may be unlike all others.
    """

    begins: Ints
    persons: Floats
    covariance: Floats = field(default_factory=lambda: np.zeros(()))
    sigma: float = 0.0
    geometric: bool = False
    hidden: bool = False
    reach: int = 0
    hidden_rows: float = 0.0

    @classmethod
    def of(cls, begins: Ints, noisy: Ints, variance: float) -> RowsPerPerson:
        """Return the estimate from noisy counts of the classes.

        In the tail few persons have many rows each, so noise there would change the number of rows most. The
        last class with persons is the last at which a sum of neighbouring classes stands out of the noise
        (`_end`). Downwards from this class, classes are joined until their sum exceeds `JOINED` standard
        deviations, or until the next class does so alone. The persons of joined classes are spread evenly.

        If there are few persons, the noise hides most classes. Together the classes may still show the number
        of persons and their mean number of rows: see `_geometric`.

        Examples
        --------
        >>> begins = np.array([1, 2, 3, 4, 5, 7, 9])
        >>> rows = RowsPerPerson.of(begins, np.array([900, 400, 25, 45, 9, -12, 11]), 10.0**2)
        >>> rows.persons.tolist()
        [900.0, 400.0, 25.0, 45.0, 0.0, 0.0, 0.0]
        """
        counts, sigma = noisy.astype(np.float64), sqrt(variance)
        persons, end = np.zeros(len(counts)), _end(begins, counts, sigma)
        while end:
            sums = np.cumsum(counts[:end][::-1])
            clear = sums > JOINED * sigma * np.sqrt(np.arange(1, end + 1))
            length = int(np.argmax(clear)) + 1 if clear.any() else end
            alone = np.flatnonzero(counts[: end - 1][::-1] > JOINED * sigma)  # classes that are not spread
            length = min(length, int(alone[0]) + 1) if alone.size else length
            persons[end - length : end] = max(float(sums[length - 1]), 0.0) / length
            end -= length
        rows = cls(begins, persons, sigma=sigma)
        inside, last = INSIDE * (rows.lasts - begins), rows.last
        errors = (sigma * rows.rows) ** 2 + (persons * inside) ** 2
        errors[last] = errors[last : last + 2].sum()  # persons of the next class may be counted in the last
        errors[last + 1 :] = 0.0
        errors_after = rows._hidden_after()
        rows = replace(
            rows, covariance=np.diag(errors) + errors_after, hidden=not persons.any(), reach=rows.largest
        )
        return _geometric(begins, counts, sigma, rows.last + 1) or rows

    def _hidden_after(self) -> Floats:
        """Return the covariance of the rows of persons whom noise may hide in the classes after the last.

        Up to `largest` they may hold as many persons as the standard deviation of their summed noise, spread
        evenly.
        """
        index = np.arange(len(self.begins))
        after = (index > self.last + 1) & (self.begins <= self.largest)
        persons = self.sigma / np.sqrt(max(int(after.sum()), 1)) * after
        return np.outer(persons * self.rows, persons * self.rows)

    @property
    def lasts(self) -> Ints:
        """The last number of rows of each class."""
        return np.append(self.begins[1:] - 1, self.begins[-1])

    def share_after(self, rows: int) -> float:
        """Return the share of all rows that come after the first `rows` of their person."""
        return float(self.persons @ np.maximum(self.rows - rows, 0.0)) / max(self.total, 1.0)

    def persons_with(self, rows: int) -> float:
        """Return the number of persons with some number of rows, or more.

        >>> RowsPerPerson(np.array([1, 2, 3]), np.array([600.0, 300.0, 100.0])).persons_with(2)
        400.0
        """
        return float(self.persons[self.begins >= rows].sum())

    def clearly_exceeds(self, number: float) -> bool:
        """Return whether persons with more than a number of rows stand out of the noise.

        >>> rows = RowsPerPerson(np.array([1, 2, 3]), np.array([600.0, 300.0, 40.0]), sigma=10.0)
        >>> rows.clearly_exceeds(1), rows.clearly_exceeds(2)
        (True, False)
        """
        return float(self.persons[self.begins > number].sum()) > CLEAR * self.sigma

    @property
    def rows(self) -> Floats:
        """The mean number of rows of a person in each class."""
        return np.sqrt(self.begins * self.lasts)  # persons with fewer rows are more frequent

    @property
    def last(self) -> int:
        """The index of the last class with persons."""
        return int(np.flatnonzero(self.persons > 0).max(initial=0))

    @property
    def largest(self) -> int:
        """The largest number of rows to expect of a person.

        It is the last number b of the class after the last class with persons. Noise may hide up to
        ``CLEAR * sigma`` persons. Let x be their share of all persons. If x exceeds `HIDDEN`, we assume that
        the number of persons with over n rows falls as n^-2. So b grows by the factor sqrt(x / `HIDDEN`).

        For a geometric distribution it is the last number of the class after the last class that sigma
        persons or more reach. A bound for all persons would add more noise to the number of all rows.
        """
        if self.reach:
            return self.reach
        if self.geometric:
            beyond = np.cumsum(self.persons[::-1])[::-1]
            return self._after(int(np.flatnonzero(beyond >= self.sigma).max(initial=0)))
        last = self._after(self.last)
        hidden = CLEAR * self.sigma
        share = hidden / max(float(self.persons.sum()), hidden, 1.0)
        return int(last * max(sqrt(share / HIDDEN), 1.0))

    def _after(self, index: int) -> int:
        """Return the last number of rows of the class after the class with this index."""
        return int(self.lasts[min(index + 1, len(self.begins) - 1)])

    def largest_of(self, parents: float) -> int:
        """Return the largest number of rows to expect of a parent, if all rows belong to `parents` parents.

        It is `largest`, unless the distribution is geometric. Then the numbers of rows of the parents are
        geometric too, and fewer than sigma parents have more rows than the largest number.
        """
        parents = max(parents, float(self.persons.sum()))  # each person with rows has a parent of them
        if not self.geometric or not self.total > 0:
            return self.largest
        beyond = log(max(parents / self.sigma, 1.0)) / log1p(parents / self.total)
        return min(max(ceil(beyond), 1), self.largest)

    def with_total(self, total: float, variance: float) -> RowsPerPerson:
        r"""Return the estimate, updated by a noisy total of which each person has at most `largest` rows.

        In the histogram, the noise of a class counts once for each row of a person in it. In the total it
        counts `largest` times, but the total also counts persons who are alone in a class of the tail. The
        difference of the total from the sum of the classes is divided among the classes in proportion to
        their variances: the least-squares (Kalman) update.

        *The tail.* No answer counts rows beyond b = `largest` of a person. Let S(n) be the number of persons
        with n rows or more, and :math:`a(n) = \log_2 (S(n / 2) / S(n))` its local exponent. Beyond b we
        assume :math:`S(n) = N (n / b)^{-a}`. So there are :math:`N b / (a - 1)` rows beyond b, with

        .. math::
            a &= \max(\mathtt{STEEP}, a(b/2) \sqrt{\max(1, a(b/2) / a(b/4))}) \\
            N &= \min(S(b/2)\, 2^{-a}, \mathtt{JOINED}\, \sigma).

        In a light tail the exponent grows from b / 4 to b / 2, and a goes on growing by half of that, in
        logarithms. S has as many persons more as noise may hide (`_unseen`). More persons than
        ``JOINED * sigma`` would be seen in spite of the noise, if any are. The number of rows is added to the
        standard deviation of the last class.

        Parameters
        ----------
        total : float
        variance : float
            Variance of its noise.

        Examples
        --------
        >>> rows = RowsPerPerson.of(np.array([1, 2, 3, 4, 5]), np.array([600, 300, 100, 0, 0]), 10.0**2)
        >>> both = rows.with_total(1580.0, 20.0**2)
        >>> round(rows.total), both.persons.round().tolist(), round(both.total)
        (1500, [602.0, 305.0, 120.0, 0.0, 0.0], 1571)
        """
        seen = np.minimum(self.rows, self.largest) / self.rows
        updated = self._updated(seen[np.newaxis], np.array([total]), np.array([variance]))
        exponent, persons = updated._tail(self.largest, self._unseen)
        updated.covariance[self.last, self.last] += (persons * self.largest / (exponent - 1)) ** 2
        return updated

    def with_all(self, total: float, variance: float) -> RowsPerPerson:
        """Return the estimate, updated by a noisy number of all rows."""
        return self._updated(np.ones((1, len(self.begins))), np.array([total]), np.array([variance]))

    def with_persons(self, parts: Floats, persons: Floats, variance: Floats) -> RowsPerPerson:
        """Return the estimate, updated by noisy numbers of persons in groups of classes.

        Noise may hide up to `JOINED` standard deviations of persons in each class without any, but no more
        than the groups that hold it have. These are added to the errors of the classes that a group holds. If
        the shape is assumed to be geometric, and the groups differ from it by more than both errors, its
        covariance is multiplied by the mean squared difference, in units of its variance (Birge, Physical
        Review 40, 1932).

        Parameters
        ----------
        parts : array of shape (groups, classes), with the share of a class that a group holds
        persons, variance : arrays of shape (groups,)
        """
        unseen = parts.any(axis=0) & (self.persons <= 0)
        limits = np.maximum(persons, 0.0) + JOINED * np.sqrt(variance)  # of a group
        hidden = np.where(unseen, np.minimum(JOINED * self.sigma, limits @ parts) * self.rows, 0.0)
        covariance, weights = self.covariance + np.diag(hidden**2), parts / self.rows
        away = persons - weights @ (self.persons * self.rows)
        scatter = weights @ covariance @ weights.T + np.diag(variance)
        excess = float(away @ np.linalg.lstsq(scatter, away)[0]) / len(away) if self.geometric else 1.0
        unsure = replace(self, covariance=max(excess, 1.0) * covariance)
        return unsure._updated(weights, persons, variance)

    def at_most(self, rows: int) -> RowsPerPerson:
        """Return the estimate with the persons of more than `rows` rows in the last class up to it.

        Noise put them there: classes that it hides are joined, and their persons spread evenly.

        >>> RowsPerPerson(np.array([1, 2, 3]), np.array([600.0, 300.0, 100.0])).at_most(2).persons.tolist()
        [600.0, 400.0, 0.0]
        """
        inside = self.begins <= rows
        last = int(np.count_nonzero(inside)) - 1
        moved = np.diag(inside.astype(np.float64))
        moved[last, ~inside] = self.rows[last] / self.rows[~inside]  # numbers of rows, as the covariance
        return replace(
            self,
            persons=moved @ (self.persons * self.rows) / self.rows,
            covariance=moved @ (np.zeros((len(inside),) * 2) + self.covariance) @ moved.T,
        )

    def with_sum_of_persons(self, persons: float, variance: float) -> RowsPerPerson:
        """Return the estimate, updated by a noisy number of all persons."""
        return self._updated(1 / self.rows[np.newaxis], np.array([persons]), np.array([variance]))

    def _updated(self, weights: Floats, sums: Floats, variance: Floats) -> RowsPerPerson:
        """Return the least-squares (Kalman) update with noisy sums of the numbers of rows of the classes.

        No number is below 0: a class whose number would be is fixed at 0, and the others follow. The errors
        are those without this limit.

        Parameters
        ----------
        weights : array of shape (sums, classes)
        sums, variance : arrays of shape (sums,)
        """
        covariance = np.zeros((len(self.begins),) * 2) + self.covariance
        before, fixed = self.persons * self.rows, np.zeros(len(self.begins), np.bool_)
        updated, errors = _least_squares(before, covariance, weights, sums, variance)
        numbers = updated
        while (below := (numbers < 0) & ~fixed).any():  # at most once a class
            fixed |= below
            at_zero, nothing = np.eye(len(fixed))[fixed], np.zeros(np.count_nonzero(fixed))
            numbers, _ = _least_squares(updated, errors, at_zero, nothing, nothing)
        return replace(self, persons=np.maximum(numbers, 0.0) / self.rows, covariance=errors)

    @property
    def _unseen(self) -> float:
        """The persons whom noise may hide at any number of rows.

        Where no class stands out of the noise, as many as would; where the shape is assumed, a standard
        deviation.
        """
        if not self.persons.any():
            return CLEAR * self.sigma
        return max(self.sigma if self.geometric else self.sigma / CLEAR, 1.0)

    def with_rows_beyond(self, bound: int, limit: float) -> RowsPerPerson:
        """Return the estimate with the errors of the rows beyond `bound` of a person, which nothing counts.

        A count of persons whose number of rows is cut off at `bound` says how many have as many or more, not
        how many more. Those whom the local exponents do not explain may have a tail with the exponent
        `STEEP`, and their rows may be unlike all others: see `hidden_rows`.

        Parameters
        ----------
        bound : int
        limit : float
            At most this many persons have `bound` rows or more.
        """
        exponent, persons = self._tail(bound, self._unseen)
        estimate = self.with_error(min(persons, limit) * bound / (exponent - 1))
        return estimate.with_hidden_rows(max(limit - persons, 0.0) * bound / (STEEP - 1))

    def with_hidden_rows(self, rows: float) -> RowsPerPerson:
        """Return the estimate with this further standard deviation of `hidden_rows`."""
        return replace(self.with_error(rows), hidden_rows=hypot(self.hidden_rows, rows))

    def with_error(self, error: float) -> RowsPerPerson:
        """Return the estimate with a further standard deviation of the number of rows in the last class."""
        covariance = np.zeros((len(self.begins),) * 2) + self.covariance
        covariance[self.last, self.last] += error**2
        return replace(self, covariance=covariance)

    def _tail(self, bound: int, hidden: float) -> tuple[float, float]:
        """Return the exponent beyond `bound`, and the persons there, if noise hides `hidden` persons.

        See `with_total`.
        """
        eighth, quarter, half = (
            float(self.persons[self.lasts >= bound / n].sum()) + hidden for n in (8, 4, 2)
        )
        before, now = log2(eighth / quarter), log2(quarter / half)
        exponent = max(now * sqrt(max(now / before, 1.0)) if before > 0 else now, STEEP)
        return exponent, min(half * 2**-exponent, max(JOINED * self.sigma, hidden))

    @property
    def total(self) -> float:
        """The number of rows of all persons."""
        return float(self.persons @ self.rows)

    @property
    def variance_of_persons(self) -> float:
        """The variance of the error of the number of all persons.

        >>> RowsPerPerson(np.array([1, 2]), np.array([60.0, 40.0]), np.diag([9.0, 16.0])).variance_of_persons
        13.0
        """
        covariance = np.zeros((len(self.begins),) * 2) + self.covariance
        return max(float(1 / self.rows @ covariance @ (1 / self.rows)), 0.0)

    @cached_property
    def groups(self) -> Ints:
        """The first classes of at most `GROUPS` groups that hold about equally many rows.

        >>> RowsPerPerson(np.array([1, 2, 3, 4, 5]), np.array([600.0, 50.0, 50.0, 25.0, 0.0])).groups.tolist()
        [0, 1, 3]
        """
        numbers = self.persons * self.rows
        middles = (np.cumsum(numbers) - numbers / 2) / max(float(numbers.sum()), 1.0)
        groups = np.minimum((GROUPS * middles).astype(np.int64), GROUPS - 1)
        groups[numbers <= 0] = -1
        begins = [int(np.flatnonzero(groups == group)[0]) for group in np.unique(groups[groups >= 0])] or [0]
        begins[0] = 0
        return np.array(begins)

    @property
    def of_groups(self) -> RowsOfGroups:
        """The number of rows in each group."""
        return self._summed(self.groups)

    @property
    def in_one_group(self) -> RowsOfGroups:
        """The number of all rows."""
        return self._summed(np.zeros(1, np.int64))

    def _summed(self, groups: Ints) -> RowsOfGroups:
        """Return the number of rows in groups of classes that begin at these classes."""
        numbers, persons = (
            np.add.reduceat(self.persons * values, groups) for values in (self.rows, np.ones_like(self.rows))
        )
        means = np.repeat(numbers / np.maximum(persons, 1.0), np.diff(groups, append=len(self.begins)))
        widths = self.lasts - self.begins
        squares = (self.rows - means) ** 2 + widths * (widths + 2) / 12  # the second within a class
        covariance = np.zeros((len(self.begins),) * 2) + self.covariance
        sums = np.add.reduceat(np.add.reduceat(covariance, groups, axis=0), groups, axis=1)
        spread = np.add.reduceat(self.persons * squares, groups)
        return RowsOfGroups(numbers, sums, spread, hidden=self.hidden_rows)

    def single_rows(self, bound: int, groups: Ints) -> SingleRows:
        """Return the persons of groups, and those of whom a random row is among `bound` counted ones.

        Parameters
        ----------
        bound : int
        groups : integer array
            The first class of each group.

        Examples
        --------
        >>> rows = RowsPerPerson(np.array([1, 2, 4]), np.array([600.0, 300.0, 100.0]))
        >>> single = rows.single_rows(1, np.array([0, 1]))
        >>> single.persons.tolist(), single.counted.round().tolist()
        ([600.0, 400.0], [600.0, 147.0])
        """
        counted = self.persons * self.rows_within(bound) / self.rows
        return SingleRows(np.add.reduceat(self.persons, groups), np.add.reduceat(counted, groups))

    def in_groups(self, rows_of_person: Floats) -> Floats:
        """Return the number of rows in each group, if a person of each class has `rows_of_person` rows."""
        return np.add.reduceat(self.persons * rows_of_person, self.groups)

    def rows_within(self, bound: int) -> Floats:
        """Return the number of counted rows of a person of each class, if at most `bound` are counted."""
        return np.minimum(self.rows, bound)

    def rows_within_squares(self, bound: int) -> Floats:
        """Return the same number, if rows are counted while a person's squared counts sum to ``bound**2``.

        The sum of j rows is about ``j + j (j - 1) ALIKE``.

        >>> rows = RowsPerPerson(np.array([1, 2, 20]), np.array([1.0, 0.0, 9.0]))
        >>> rows.rows_within_squares(4).round(1).tolist()
        [1.0, 6.2, 7.2]
        """
        number = (sqrt((1 - ALIKE) ** 2 + 4 * ALIKE * bound**2) - (1 - ALIKE)) / (2 * ALIKE)
        return np.minimum(self.rows, number)


def _least_squares(
    numbers: Floats, covariance: Floats, weights: Floats, sums: Floats, variance: Floats
) -> tuple[Floats, Floats]:
    """Return the Kalman update of numbers, and of the covariance of their errors, with noisy sums of them."""
    with_sums = covariance @ weights.T
    gain = np.linalg.lstsq(weights @ with_sums + np.diag(variance), with_sums.T)[0].T
    return numbers + gain @ (sums - weights @ numbers), covariance - gain @ with_sums.T


def _end(begins: Ints, counts: Floats, sigma: float) -> int:
    """Return the number of classes up to the last that stands out of the noise, alone or with neighbours.

    A class that stands out alone is never left out because of the classes after it:

    >>> _end(np.arange(1, 8), np.array([515.0, 406, 505, -39, -107, -67, -144]), 55.0)
    3
    """
    alone = counts > sigma * (CLEAR + FURTHER * np.log10(begins))
    last = int(np.flatnonzero(alone).max(initial=-1)) + 1
    for end in range(len(counts), 0, -1):
        lengths = np.arange(1, min(WINDOW, end) + 1)
        sums = np.cumsum(counts[end - len(lengths) : end][::-1]) / (sigma * np.sqrt(lengths))
        clear = sums > CLEAR + FURTHER * log10(begins[end - 1])
        if clear.any():
            after = sums[: int(np.argmax(clear))]  # sums of the last classes of the window
            return max(end - int(np.max(np.flatnonzero(after <= JOINED) + 1, initial=0)), last)
    return 0


def _geometric(begins: Ints, counts: Floats, sigma: float, classes: int) -> RowsPerPerson | None:
    """Return a geometric distribution of the numbers of rows, or None if the counts show another shape.

    Its mean and the number of persons are fitted by least squares. They must stand out of the noise, and a
    larger mean by more: see `FURTHER`. The geometric distribution is returned on two conditions. The noise
    could hide more than `HIDDEN` of the persons. And the mean squared difference of counts and fit is at most
    twice the noise variance: then the fit errs less than the counts.

    Its covariance has the errors of mean and number, and `MISFIT` for other shapes. So later answers, such as
    the number of all rows, move the estimate along geometric distributions first.

    Parameters
    ----------
    begins : integer array of shape (classes,)
    counts : array of shape (classes,)
        Noisy counts.
    sigma : float
        Standard deviation of the noise in a count.
    classes : int
        The least number of classes, from the first, that are compared with the fit.
    """
    means = np.geomspace(1.0, begins[-1], MEANS + 1)[1:]
    shares = -np.diff((1 - 1 / means[:, np.newaxis]) ** (begins - 1), axis=1, append=0.0)
    squares = (shares**2).sum(axis=1)
    numbers = np.maximum(shares @ counts, 0.0) / squares
    clear = numbers * np.sqrt(squares) / max(sigma, TINY_COUNT)
    clear[clear < JOINED + FURTHER * np.log10(means)] = 0.0
    index = int(np.argmax(clear))
    persons = numbers[index] * shares[index]
    beyond = np.cumsum(persons[::-1])[::-1]
    compared = slice(max(int(np.count_nonzero(beyond >= sigma)), classes))
    excess = float(np.mean((counts - persons)[compared] ** 2)) / max(sigma, TINY_COUNT) ** 2 - 1
    hidden = CLEAR * sigma > HIDDEN * numbers[index]
    if not clear[index] or not hidden or excess > 1:
        return None
    around = [max(index - 1, 0), min(index + 1, MEANS - 1)]
    slope_of_mean = numbers[index] * np.diff(shares[around], axis=0)[0] / np.diff(np.log(means[around]))
    slopes = np.stack([shares[index], slope_of_mean])
    persons[beyond < 1] = 0.0
    unclear = bool(clear[index] < CLEAR)
    rows = RowsPerPerson(begins, persons, sigma=sigma, geometric=True, hidden=unclear)
    covariance_of_fit = sigma**2 * slopes.T @ np.linalg.pinv(slopes @ slopes.T) @ slopes
    inside = INSIDE * (rows.lasts - begins) / rows.rows
    unsure = (persons * np.hypot(MISFIT, inside)) ** 2
    covariance = (covariance_of_fit + np.diag(unsure)) * np.outer(rows.rows, rows.rows)
    covariance[persons <= 0] = covariance[:, persons <= 0] = 0.0
    return replace(rows, covariance=covariance)


def best_bound(rows: RowsPerPerson, rho: float, pairs: int, limit: int | None = None) -> int:
    """Return the bound on the root of a person's summed squares with the smallest expected error of a table.

    The noise of a cell is in proportion to the bound b. But with a small bound few rows of a group of persons
    are counted. Let r_g be the ratio of all rows to counted rows of group g, and r that of all persons. In a
    column that depends on the number of rows each group is weighted by r_g (see `reweighted`), and its noise
    too. In other columns all rows are weighted by r. The expected squared error takes the geometric mean of
    both, and the error of sampling rows:

        b^2 / (2 rho_of_a_table) * r * sqrt(mean r_g^2) + sum_g R_g max(r_g - 1, 0) / CELLS

    Parameters
    ----------
    rows : RowsPerPerson
    rho : float
        Budget of a person for all questions.
    pairs : int
        Number of tables of two columns, at least 1.
    limit : int, optional
        The largest bound. Default: `LARGEST_BOUND`.

    Examples
    --------
    >>> begins = np.array([1, 2, 40])
    >>> few, many = (RowsPerPerson(begins, np.array(persons)) for persons in ([1e4, 1e4, 0], [1e4, 0, 1e4]))
    >>> best_bound(few, 0.01, 15), best_bound(many, 0.01, 15)
    (2, 10)
    """
    noise, totals = FOR_TABLES * rho / pairs, rows.in_groups(rows.rows)

    def error(bound: int) -> float:
        rows_kept = np.maximum(rows.in_groups(rows.rows_within_squares(bound)), 1.0)
        together, apart = totals.sum() / rows_kept.sum(), sqrt(float(np.mean((totals / rows_kept) ** 2)))
        sampling = float(np.sum(totals * np.maximum(totals / rows_kept - 1, 0.0))) / CELLS
        return bound**2 / (2 * noise) * together * apart + sampling

    largest = int(rows.begins[rows.last])
    return min(range(1, min(LARGEST_BOUND, largest, limit or LARGEST_BOUND) + 1), key=error)
