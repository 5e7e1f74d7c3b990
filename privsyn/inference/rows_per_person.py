"""How many rows the persons have, from released counts, and the bounds on a person's rows that follow."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property
from math import ceil, log, log1p, log2, log10, sqrt

import numpy as np

from privsyn.marginals.domain import Floats, Ints

CLEAR = 4.5  # standard deviations by which the last classes stand out of the noise: false in 1 of 1,000 runs
FURTHER = 1.0  # what each decimal digit of the number of rows adds: false classes of many rows cost more
JOINED = 2.0  # the same of joined classes before them
WINDOW = 8  # most classes that are summed to find the last
CELLS = 36  # of a table that stand out of the noise, assumed
FOR_TABLES = 0.75  # share of the budget for tables of two columns, assumed
ALIKE = 0.2  # probability that two rows of a person are in the same cell of a table, assumed
MOST = 16  # largest bound: a person's squares then take 256 rows
GROUPS = 6  # of persons by their number of rows
INSIDE = 1 / 6  # of the width of a class: standard deviation of the mean number of rows in it
HIDDEN = 0.1  # of the persons: more than these should not be beyond the largest number of rows
TINY = 1e-9  # persons
STEEP = 1.5  # least exponent of the power law that bounds the rows beyond the last class
MEANS = 256  # numbers of rows of a person, among which its mean is searched
MISFIT = 0.5  # standard deviation of the true number in a class about the geometric one, over the latter


@dataclass(frozen=True, eq=False)
class RowsOfGroups:
    """Estimated numbers of all rows of the persons in each group of them, and how certain they are.

    Parameters
    ----------
    numbers : array of shape (groups,)
        Rows of all persons of each group.
    covariance : array of shape (groups, groups)
        Of the errors of these numbers.
    spread : array of shape (groups,)
        Sum over the persons of a group of the squared difference of their number of rows from its mean.
    """

    numbers: Floats
    covariance: Floats
    spread: Floats

    @classmethod
    def known(cls, numbers: Floats) -> RowsOfGroups:
        """Return numbers without errors, of persons with equally many rows in each group."""
        return cls(numbers, np.zeros((len(numbers),) * 2), np.zeros(len(numbers)))

    def scaled_to(self, total: float) -> RowsOfGroups:
        """Return numbers with this sum, in the same proportions."""
        factor = total / max(float(self.numbers.sum()), 1.0)
        return RowsOfGroups(factor * self.numbers, factor**2 * self.covariance, factor * self.spread)


@dataclass(frozen=True, eq=False)
class RowsPerPerson:
    """Estimated numbers of persons by their number of rows.

    Parameters
    ----------
    begins : integer array of shape (classes,)
        The first number of rows of each class.
    persons : array of shape (classes,)
        Estimated number of persons in each, at least 0.
    covariance : array of shape (classes, classes), optional
        Of the errors of the number of rows in each. Default: no errors.
    sigma : float
        Standard deviation of the noise in the number of persons of a class.
    geometric : bool
        Whether the noise hides the shape, so that a geometric distribution was taken.
    """

    begins: Ints
    persons: Floats
    covariance: Floats = field(default_factory=lambda: np.zeros(()))
    sigma: float = 0.0
    geometric: bool = False

    @classmethod
    def of(cls, begins: Ints, noisy: Ints, variance: float) -> RowsPerPerson:
        """Return the estimate from noisy counts of the classes.

        In the tail few persons have many rows each, so noise there would change the number of rows most. The
        last class with persons is the last at which a sum of neighbouring classes stands out of the noise.
        From there on, classes are joined until their sum stands out, or the next class alone. The persons of
        joined classes are spread evenly over them.

        Of few persons, the noise hides most classes, and so most persons. Together the classes may still show
        how many persons there are and how many rows they have on average: see `_geometric`.

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
            alone = np.flatnonzero(counts[: end - 1][::-1] > JOINED * sigma)  # these are not spread
            length = min(length, int(alone[0]) + 1) if alone.size else length
            persons[end - length : end] = max(float(sums[length - 1]), 0.0) / length
            end -= length
        rows = cls(begins, persons, sigma=sigma)
        inside, last = INSIDE * (rows.lasts - begins), rows.last
        errors = (sigma * rows.rows) ** 2 + (persons * inside) ** 2
        errors[last] = errors[last : last + 2].sum()  # those who seem to be in the next class are here
        errors[last + 1 :] = 0.0
        rows = replace(rows, covariance=np.diag(errors))
        return _geometric(begins, counts, sigma, rows.last + 1) or rows

    @property
    def lasts(self) -> Ints:
        """The last number of rows of each class."""
        return np.append(self.begins[1:] - 1, self.begins[-1])

    def share_after(self, rows: int) -> float:
        """Return the share of all rows that come after the first `rows` of their person."""
        return float(self.persons @ np.maximum(self.rows - rows, 0.0)) / max(self.total, 1.0)

    @property
    def rows(self) -> Floats:
        """The mean number of rows of a person in each class."""
        return np.sqrt(self.begins * self.lasts)  # persons with fewer rows are more frequent

    @property
    def last(self) -> int:
        """The place of the last class with persons."""
        return int(np.flatnonzero(self.persons > 0).max(initial=0))

    @property
    def largest(self) -> int:
        """The last number of rows of the class after the last with persons: hardly anybody has more.

        Where noise could hide more than `HIDDEN` of the persons, these are taken to be in a tail in which
        their number falls with the square of that of their rows. So a larger number is taken.

        A geometric distribution says how many persons are beyond. A few are accepted, fewer than the standard
        deviation of the noise: a bound for all would add more noise to the number of all rows.
        """
        if self.geometric:
            beyond = np.cumsum(self.persons[::-1])[::-1]
            return self._after(int(np.flatnonzero(beyond >= self.sigma).max(initial=0)))
        last = self._after(self.last)
        unseen = CLEAR * self.sigma
        share = unseen / max(float(self.persons.sum()), unseen, 1.0)
        return int(last * max(sqrt(share / HIDDEN), 1.0))

    def _after(self, index: int) -> int:
        """Return the last number of rows of the class after that at a place."""
        return int(self.lasts[min(index + 1, len(self.begins) - 1)])

    def largest_of(self, parents: float) -> int:
        """Return the largest number of rows of a parent, of several parents to whom all rows belong.

        It is that of a person, if the noise does not hide the shape. Else the numbers of rows of the parents
        are taken to be geometric, as those of the persons are, and fewer parents are beyond than the standard
        deviation of the noise.
        """
        parents = max(parents, float(self.persons.sum()))  # each person with rows has a parent of them
        if not self.geometric or not self.total > 0:
            return self.largest
        beyond = log(max(parents / self.sigma, 1.0)) / log1p(parents / self.total)
        return min(max(ceil(beyond), 1), self.largest)

    def with_total(self, total: float, variance: float) -> RowsPerPerson:
        """Return the estimate given also a noisy number of rows, of which each person has at most `largest`.

        In the histogram, the noise of a class counts once for each row of a person in it. In the total it
        counts `largest` times, and no person is lost who is alone in a class of the tail. The total differs
        from the sum of the classes by the noise of both. It is divided among the classes in proportion to
        their variances, which is the least-squares (Kalman) update.

        The covariance then has no error of persons beyond b = `largest` rows, who are not seen. A bound on
        their rows is added to the standard deviation of the last class, as if the number of persons with more
        than n rows went on as a power of n: N of them have ``N b / (a - 1)`` rows beyond b. N is at most
        `JOINED` standard deviations of the noise of a class, or they would be seen. The exponent a is that
        between b / 4 and b / 2. If it is larger than between b / 8 and b / 4, as in all light tails, it is
        taken to grow on, half as much. It is at least `STEEP`.

        Parameters
        ----------
        total : float
        variance : float
            Of its noise.

        Examples
        --------
        >>> rows = RowsPerPerson.of(np.array([1, 2, 3, 4, 5]), np.array([600, 300, 100, 0, 0]), 10.0**2)
        >>> both = rows.with_total(1580.0, 20.0**2)
        >>> round(rows.total), both.persons.round().tolist(), round(both.total)
        (1500, [602.0, 305.0, 120.0, 0.0, 0.0], 1571)
        """
        seen = np.minimum(self.rows, self.largest) / self.rows
        found = self._given(seen[np.newaxis], np.array([total]), np.array([variance]))
        found.covariance[self.last, self.last] += found._beyond(self.largest) ** 2
        return found

    def with_all(self, total: float, variance: float) -> RowsPerPerson:
        """Return the estimate given also a noisy number of all rows."""
        return self._given(np.ones((1, len(self.begins))), np.array([total]), np.array([variance]))

    def with_persons(self, parts: Floats, persons: Floats, variance: Floats) -> RowsPerPerson:
        """Return the estimate given also noisy numbers of persons in groups of classes.

        In later classes of which a group holds a part, noise hid up to `JOINED` standard deviations.

        Parameters
        ----------
        parts : array of shape (groups, classes), with the share of a class that a group holds
        persons, variance : arrays of shape (groups,)
        """
        after = parts.any(axis=0) & (np.arange(len(self.begins)) > self.last)
        hidden = np.where(after, JOINED * self.sigma * self.rows, 0.0)
        unsure = replace(self, covariance=self.covariance + np.diag(hidden**2))
        return unsure._given(parts / self.rows, persons, variance)

    def with_sum_of_persons(self, persons: float, variance: float) -> RowsPerPerson:
        """Return the estimate given also a noisy number of all persons."""
        return self._given(1 / self.rows[np.newaxis], np.array([persons]), np.array([variance]))

    def _given(self, weights: Floats, sums: Floats, variance: Floats) -> RowsPerPerson:
        """Return the least-squares (Kalman) update with noisy sums of the numbers of rows of the classes.

        Parameters
        ----------
        weights : array of shape (sums, classes)
        sums, variance : arrays of shape (sums,)
        """
        covariance = np.zeros((len(self.begins),) * 2) + self.covariance
        of_sums = covariance @ weights.T
        gain = np.linalg.lstsq(weights @ of_sums + np.diag(variance), of_sums.T)[0].T
        numbers = self.persons * self.rows
        numbers = np.maximum(numbers + gain @ (sums - weights @ numbers), 0.0)
        return replace(self, persons=numbers / self.rows, covariance=covariance - gain @ of_sums.T)

    def _beyond(self, bound: int) -> float:
        """Return a bound on the rows of all persons beyond `bound` of each; see `with_total`."""
        hidden_persons = max(self.sigma / CLEAR, 1.0)  # persons
        eighth, quarter, half = (
            float(self.persons[self.lasts >= bound / n].sum()) + hidden_persons for n in (8, 4, 2)
        )
        before, now = log2(eighth / quarter), log2(quarter / half)
        exponent = max(now * sqrt(max(now / before, 1.0)) if before > 0 else now, STEEP)
        return min(half * 2**-exponent, JOINED * self.sigma) * bound / (exponent - 1)

    @property
    def total(self) -> float:
        """The number of rows of all persons."""
        return float(self.persons @ self.rows)

    @cached_property
    def groups(self) -> Ints:
        """The places of at most `GROUPS` classes at which groups with about equally many rows begin.

        >>> RowsPerPerson(np.array([1, 2, 3, 4, 5]), np.array([600.0, 50.0, 50.0, 25.0, 0.0])).groups.tolist()
        [0, 1, 3]
        """
        of_classes = self.persons * self.rows
        middles = (np.cumsum(of_classes) - of_classes / 2) / max(float(of_classes.sum()), 1.0)
        groups = np.minimum((GROUPS * middles).astype(np.int64), GROUPS - 1)
        groups[of_classes <= 0] = -1
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
        """Return the number of rows in groups of classes that begin at these places."""
        numbers, persons = (
            np.add.reduceat(self.persons * values, groups) for values in (self.rows, np.ones_like(self.rows))
        )
        means = np.repeat(numbers / np.maximum(persons, 1.0), np.diff(groups, append=len(self.begins)))
        widths = self.lasts - self.begins
        squares = (self.rows - means) ** 2 + widths * (widths + 2) / 12  # the second within a class
        covariance = np.zeros((len(self.begins),) * 2) + self.covariance
        sums = np.add.reduceat(np.add.reduceat(covariance, groups, axis=0), groups, axis=1)
        return RowsOfGroups(numbers, sums, np.add.reduceat(self.persons * squares, groups))

    def in_groups(self, rows_of_person: Floats) -> Floats:
        """Return the number of rows in each group, given how many are kept of a person of each class."""
        return np.add.reduceat(self.persons * rows_of_person, self.groups)

    def kept(self, bound: int) -> Floats:
        """Return of each class how many rows of a person are kept if these are at most `bound`."""
        return np.minimum(self.rows, bound)

    def kept_within(self, bound: int, alike: float | None = None) -> Floats:
        """Return the same if rows are kept while the squared counts of a person sum to ``bound**2``.

        Parameters
        ----------
        bound : int
        alike : float, optional
            Probability that two rows of a person are in the same cell. Then j rows have a sum of about
            ``j + j (j - 1) alike``. Default: `ALIKE`.

        Examples
        --------
        >>> rows = RowsPerPerson(np.array([1, 2, 20]), np.array([1.0, 0.0, 9.0]))
        >>> [rows.kept_within(4, alike).round(1).tolist() for alike in (0.0, 0.2, 1.0)]
        [[1.0, 6.2, 16.0], [1.0, 6.2, 7.2], [1.0, 4.0, 4.0]]
        """
        number, alike = float(bound**2), ALIKE if alike is None else alike
        if alike > 0:
            number = (sqrt((1 - alike) ** 2 + 4 * alike * bound**2) - (1 - alike)) / (2 * alike)
        return np.minimum(self.rows, number)


def _end(begins: Ints, counts: Floats, sigma: float) -> int:
    """Return how many classes there are up to the last that stands out of the noise, alone or with others."""
    for end in range(len(counts), 0, -1):
        lengths = np.arange(1, min(WINDOW, end) + 1)
        sums = np.cumsum(counts[end - len(lengths) : end][::-1]) / (sigma * np.sqrt(lengths))
        clear = sums > CLEAR + FURTHER * log10(begins[end - 1])
        if clear.any():
            after = sums[: int(np.argmax(clear))]  # sums of the last classes of the window
            return end - int(np.max(np.flatnonzero(after <= JOINED) + 1, initial=0))
    return 0


def _geometric(begins: Ints, counts: Floats, sigma: float, classes: int) -> RowsPerPerson | None:
    """Return a geometric distribution of the numbers of rows if the noise hides their own one, or None.

    Its mean and the number of persons are those of the least squares, and must stand out of the noise, a mean
    of many rows by more: see `FURTHER`. The noise hides the shape if it could hide more than `HIDDEN` of the
    persons, and if the squared differences from the counts exceed those by noise alone by less than these:
    then the geometric distribution errs less.

    Its errors are those of mean and number, and what it may miss itself: see `MISFIT`. So more answers, such
    as the number of all rows, move it along geometric distributions first.

    Parameters
    ----------
    begins : integer array of shape (classes,)
    counts : array of shape (classes,)
        Noisy.
    sigma : float
        Standard deviation of their noise.
    classes : int
        How many of the first classes are compared at least.
    """
    means = np.geomspace(1.0, begins[-1], MEANS + 1)[1:]
    shares = -np.diff((1 - 1 / means[:, np.newaxis]) ** (begins - 1), axis=1, append=0.0)
    squares = (shares**2).sum(axis=1)
    numbers = np.maximum(shares @ counts, 0.0) / squares
    clear = numbers * np.sqrt(squares) / max(sigma, TINY)
    clear[clear < JOINED + FURTHER * np.log10(means)] = 0.0
    index = int(np.argmax(clear))
    persons = numbers[index] * shares[index]
    beyond = np.cumsum(persons[::-1])[::-1]
    compared = slice(max(int(np.count_nonzero(beyond >= sigma)), classes))
    excess = float(np.mean((counts - persons)[compared] ** 2)) / max(sigma, TINY) ** 2 - 1
    hidden = CLEAR * sigma > HIDDEN * numbers[index]
    if not clear[index] or not hidden or excess > 1:
        return None
    around = [max(index - 1, 0), min(index + 1, MEANS - 1)]
    by_mean = numbers[index] * np.diff(shares[around], axis=0)[0] / np.diff(np.log(means[around]))
    slopes = np.stack([shares[index], by_mean])
    persons[beyond < 1] = 0.0
    rows = RowsPerPerson(begins, persons, sigma=sigma, geometric=True)
    of_both = sigma**2 * slopes.T @ np.linalg.pinv(slopes @ slopes.T) @ slopes
    inside = INSIDE * (rows.lasts - begins) / rows.rows
    unsure = (persons * np.hypot(MISFIT, inside)) ** 2
    covariance = (of_both + np.diag(unsure)) * np.outer(rows.rows, rows.rows)
    covariance[persons <= 0] = covariance[:, persons <= 0] = 0.0
    return replace(rows, covariance=covariance)


def best_bound(rows: RowsPerPerson, rho: float, pairs: int, limit: int | None = None) -> int:
    """Return the bound on the root of a person's summed squares with the smallest expected error of a table.

    The noise of a cell is in proportion to the bound. A small bound leaves out rows: the others are a random
    sample, and those of persons with many rows are too few. Where a column depends on the number of rows,
    each group of persons is weighted with all rows over kept rows (see `reweighted`), and so are its noise
    and its sampling error. Elsewhere all rows over kept rows count, of all groups together. The geometric
    mean of both is taken.

    Parameters
    ----------
    rows : RowsPerPerson
    rho : float
        Budget of a person for all questions.
    pairs : int
        Number of tables of two columns, at least 1.
    limit : int, optional
        The largest bound. Default: `MOST`.

    Examples
    --------
    >>> begins = np.array([1, 2, 40])
    >>> few, many = (RowsPerPerson(begins, np.array(persons)) for persons in ([1e4, 1e4, 0], [1e4, 0, 1e4]))
    >>> best_bound(few, 0.01, 15), best_bound(many, 0.01, 15)
    (2, 10)
    """
    noise, totals = FOR_TABLES * rho / pairs, rows.in_groups(rows.rows)

    def error(bound: int) -> float:
        rows_kept = np.maximum(rows.in_groups(rows.kept_within(bound)), 1.0)
        together, apart = totals.sum() / rows_kept.sum(), sqrt(float(np.mean((totals / rows_kept) ** 2)))
        sampling = float(np.sum(totals * np.maximum(totals / rows_kept - 1, 0.0))) / CELLS
        return bound**2 / (2 * noise) * together * apart + sampling

    largest = int(rows.begins[rows.last])
    return min(range(1, min(MOST, largest, limit or MOST) + 1), key=error)
