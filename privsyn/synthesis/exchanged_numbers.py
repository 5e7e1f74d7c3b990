"""Parents exchange their numbers of rows, so that rules leave each parent as many rows as it shall have.

The numbers follow from noisy counts, which may give a parent more rows than values are left to it: three
years to a worker who came in the last but one. If its further rows were left out, the table would have fewer
rows than the release says. Another parent can have them, in exchange for its smaller number. So as many
parents have each number of rows as before.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from privsyn.marginals.domain import Floats, Ints, Mask

ROUNDS = 3
"""Times that parents are paired. A pair is undone if a rule on other columns of a parent would break."""


def exchanged_numbers(
    numbers: Ints, largest: Floats, keeps: Callable[[Ints], Mask], rng: np.random.Generator
) -> Ints:
    """Return the numbers of rows of parents, of which those with too many exchange theirs with others.

    Each takes the largest number that is left to it. Parents without rows stay without.

    Parameters
    ----------
    numbers : array of shape (parents,)
    largest : array of shape (parents,)
        How many rows each parent may have at most. It says nothing of parents without rows.
    keeps : callable
        Returns which parents keep all rules with some numbers, in an array of shape (parents,).
    rng : numpy.random.Generator

    Returns
    -------
    array of shape (parents,)
        The same numbers in another order. They are too large only where no parent could take them.

    Examples
    --------
    >>> def keeps(numbers): return np.full(len(numbers), True)
    >>> numbers, largest = np.array([3, 1, 2, 0]), np.array([2.0, 9.0, 9.0, 0.0])
    >>> exchanged_numbers(numbers, largest, keeps, np.random.default_rng(0)).tolist()
    [2, 1, 3, 0]
    """
    numbers = numbers.copy()
    for _ in range(ROUNDS):
        givers, takers = _pairs(numbers, largest, rng)
        if not len(givers):
            break
        before, after = keeps(numbers), numbers.copy()
        after[givers], after[takers] = numbers[takers], numbers[givers]
        broken = before & ~keeps(after)
        stay = broken[givers] | broken[takers]
        ends = np.concatenate([givers[stay], takers[stay]])
        after[ends] = numbers[ends]
        numbers = after
    return numbers


def _pairs(numbers: Ints, largest: Floats, rng: np.random.Generator) -> tuple[Ints, Ints]:
    """Return the parents with too many rows that find another one to exchange numbers with, and these."""
    too_many = np.flatnonzero(numbers > largest)
    free = (numbers > 0) & (numbers <= largest)
    givers, takers = [np.zeros(0, np.int64)], [np.zeros(0, np.int64)]
    # The fewer rows a parent may have, the fewer other parents it can exchange with.
    kinds = np.unique(np.stack([largest[too_many], -numbers[too_many]], axis=1), axis=0)
    for limit, negative in kinds.tolist():
        alike = too_many[(largest[too_many] == limit) & (numbers[too_many] == -negative)]
        candidates = np.flatnonzero(free & (numbers <= limit) & (largest >= -negative))
        order = np.lexsort((rng.random(len(candidates)), -numbers[candidates]))
        chosen = candidates[order][: len(alike)]
        free[chosen] = False
        givers.append(rng.permutation(alike)[: len(chosen)])
        takers.append(chosen)
    return np.concatenate(givers), np.concatenate(takers)
