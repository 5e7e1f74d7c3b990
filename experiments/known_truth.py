"""Tables whose truth is known: drawn from a Bayesian network or a Gaussian copula, beside its exact margins.

For exact tests and for trials: the error of a synthetic table is measured against what the real one was drawn
from, not against the real one's own chance.
"""

from __future__ import annotations

import string
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt
import pandas as pd
from scipy.stats import norm

from privsyn import Categorical, Numerical, Schema

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Network:
    """A Bayesian network of few columns.

    Parameters
    ----------
    columns : mapping of a name to its parents and its table
        Parents stand before their children. The table has the parents' values along its first axes and the
        probabilities of the column's own along the last, which add up to 1.

    Examples
    --------
    >>> Network(chain(3, values=2, stay=0.8)).margin("x0", "x2").tolist()
    [[0.34, 0.16], [0.16, 0.34]]
    """

    columns: Mapping[str, tuple[tuple[str, ...], Floats]]

    @property
    def schema(self) -> Schema:
        """Values are numbers from 0 up."""
        sizes = {name: table.shape[-1] for name, (_, table) in self.columns.items()}
        return Schema({name: Categorical(list(range(size)), nullable=False) for name, size in sizes.items()})

    @cached_property
    def joint(self) -> Floats:
        """The probability of each row: the product of all tables."""
        letter = dict(zip(self.columns, string.ascii_letters, strict=False))
        parts = ["".join(letter[n] for n in (*parents, name)) for name, (parents, _) in self.columns.items()]
        letters = "".join(letter.values())
        return np.einsum(f"{','.join(parts)}->{letters}", *(table for _, table in self.columns.values()))

    def margin(self, *names: str) -> Floats:
        """The exact probabilities of these columns' values, axes in the order of the network."""
        summed = tuple(axis for axis, name in enumerate(self.columns) if name not in names)
        return self.joint.sum(axis=summed)

    def draw(self, rows: int, rng: np.random.Generator) -> pd.DataFrame:
        """So many rows, independent of each other."""
        flat = rng.choice(self.joint.size, size=rows, p=self.joint.ravel())
        return pd.DataFrame(dict(zip(self.columns, np.unravel_index(flat, self.joint.shape), strict=True)))

    def error(self, table: pd.DataFrame, *names: str) -> float:
        """Total variation of a table's shares from the exact ones."""
        order = [name for name in self.columns if name in names]
        exact = self.margin(*order)
        shares = np.zeros(exact.shape)
        np.add.at(shares, tuple(table[name].to_numpy(dtype=np.int64) for name in order), 1 / len(table))
        return float(np.abs(shares - exact).sum() / 2)


def chain(columns: int, *, values: int, stay: float) -> dict[str, tuple[tuple[str, ...], Floats]]:
    """Each column is the one before it with probability `stay`, and else any of the others."""
    step = np.full((values, values), (1 - stay) / (values - 1))
    np.fill_diagonal(step, stay)
    first = {"x0": ((), np.full(values, 1 / values))}
    return first | {f"x{position}": ((f"x{position - 1}",), step) for position in range(1, columns)}


def exclusive_or(others: int) -> dict[str, tuple[tuple[str, ...], Floats]]:
    """Fair coins `a` and `b`, and `a_xor_b`, of which no pair tells anything; beside them other coins."""
    coin = np.array([0.5, 0.5])
    agree = np.array([[[1.0, 0.0], [0.0, 1.0]], [[0.0, 1.0], [1.0, 0.0]]])
    coins = dict.fromkeys(("a", "b", *(f"x{position}" for position in range(others))), ((), coin))
    return coins | {"a_xor_b": (("a", "b"), agree)}


@dataclass(frozen=True, eq=False)
class Copula:
    """Whole numbers from 0 to 99, each as likely as any other, dependent as normal variables are.

    Parameters
    ----------
    names : tuple of str
    correlation : (d, d) array
        Of the normal variables behind the numbers.
    """

    names: tuple[str, ...]
    correlation: Floats

    @property
    def schema(self) -> Schema:
        """The bounds are public."""
        return Schema({name: Numerical(0, 99, integer=True, nullable=False) for name in self.names})

    @property
    def spearman(self) -> Floats:
        """Exact rank correlations: 6 / pi arcsin(r / 2) (Kruskal 1958), before cutting to whole numbers."""
        return 6 / np.pi * np.arcsin(np.asarray(self.correlation) / 2)

    def draw(self, rows: int, rng: np.random.Generator) -> pd.DataFrame:
        """So many rows, independent of each other."""
        normal = rng.multivariate_normal(np.zeros(len(self.names)), self.correlation, size=rows)
        return pd.DataFrame(
            np.floor(100 * norm.cdf(normal)).clip(0, 99).astype(int), columns=list(self.names)
        )
