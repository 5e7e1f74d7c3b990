"""The reconstruction attack against noise: a made database, counts of random halves, and the bits inferred.

Nothing here reads a private table. The made database is drawn, and runs on it are seeded.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import ceil, nan, sqrt
from typing import Any

import numpy as np
import pandas as pd

from privsyn.arguments import check_whole
from privsyn.errors import InputError, plural
from privsyn.evaluation.attacks.reconstruction import reconstruct
from privsyn.marginals.domain import Floats, Ints
from privsyn.studies.results import INK
from privsyn.synthesizer import PrivSyn
from privsyn.table.schema.columns import Categorical
from privsyn.table.schema.schema import Schema

QUERIES_PER_PERSON = 4
"""Answers of the attack, as a multiple of the people."""

MANY_PEOPLE = 2048
"""People at most: the linear programme takes minutes above."""

DELTA = 1e-9


@dataclass(frozen=True, eq=False)
class MadeDatabase:
    """People of whom half have a secret, and the random halves of the people that are counted.

    Parameters
    ----------
    secret : array of 0 and 1, shape (n,)
    queries : array of 0 and 1, shape (m, n)
    """

    secret: Ints
    queries: Ints

    @classmethod
    def of(cls, people: int, rng: np.random.Generator, queries: int | None = None) -> MadeDatabase:
        """Draw a database and its queries."""
        size = QUERIES_PER_PERSON * people if queries is None else queries
        secret = rng.permutation(np.arange(people) % 2)
        return cls(secret, rng.integers(0, 2, (size, people)))

    @property
    def counts(self) -> Ints:
        """The exact answers, shape (m,)."""
        return self.queries @ self.secret

    def noisy(self, noise: float, rng: np.random.Generator) -> Floats:
        """Return answers with errors that are uniform between -noise and noise."""
        return self.counts + rng.uniform(-noise, noise, len(self.queries))

    def released(self, epsilon: float, seed: int | None) -> Floats:
        """Return the answers that synthetic rows give, of one release of the whole database.

        Each person has a cell in a square of two public columns, so a subset of the people is a set of
        cells. Without a seed the noise is that of the operating system.
        """
        people = len(self.secret)
        side = ceil(sqrt(people))
        x, y = np.divmod(np.arange(people), side)
        table = pd.DataFrame({"x": x, "y": y, "secret": self.secret})
        sides = (("x", x), ("y", y), ("secret", self.secret))
        schema = Schema({name: Categorical(range(codes.max() + 1), nullable=False) for name, codes in sides})
        model = PrivSyn(epsilon, DELTA, schema, seed=seed, allow_weak_privacy=True).fit(table)
        rows = model.sample(model.release_.estimated_rows)
        secrets = rows[rows["secret"] == 1]
        cells = np.bincount(secrets["x"] * side + secrets["y"], minlength=side**2)[:people]
        return np.asarray(self.queries @ cells, dtype=np.float64)


def usual_noise(people: int) -> tuple[float, ...]:
    """Return errors from nothing to n / 2, across the root of n."""
    root = sqrt(people)
    return tuple(sorted({0.0, root / 4, root / 2, root, 2 * root, people / 4, people / 2}))


def runs(
    people: int,
    noise: Sequence[float] = (),
    epsilons: Sequence[float] = (),
    *,
    queries: int | None = None,
    method: str = "linear",
    seeds: int = 3,
) -> Iterator[dict[str, float]]:
    """Yield the share of bits right of each attack: for each seed, each noise and each epsilon.

    Yields
    ------
    dict
        ``noise`` or ``epsilon`` (the other is NaN), ``seed``, ``error`` (the mean distance of an answer
        from the exact count) and ``right``.

    Raises
    ------
    InputError
        If there are too many people, or a noise is negative.
    """
    check_whole("people", people, minimum=2)
    check_whole("seeds", seeds, minimum=1)
    if people > MANY_PEOPLE:
        raise InputError(f"people must be at most {MANY_PEOPLE}: the attack takes minutes above")
    if any(not amount >= 0 for amount in noise):
        raise InputError("noise must be at least 0: the largest error of an answer, in people")
    for seed in range(seeds):
        rng = np.random.default_rng(seed)
        database = MadeDatabase.of(people, rng, queries)
        answered = [(amount, nan, database.noisy(amount, rng)) for amount in noise]
        answered += [(nan, epsilon, database.released(epsilon, seed)) for epsilon in epsilons]
        for amount, epsilon, answers in answered:
            right = reconstruct(answers, database.queries, method).right(database.secret)
            error = float(np.abs(answers - database.counts).mean())
            yield {"noise": amount, "epsilon": epsilon, "seed": seed, "error": error, "right": right}


def summary(rows: pd.DataFrame, people: int, queries: int | None = None, method: str = "linear") -> str:
    """Return the means over seeds as lines of text.

    Parameters
    ----------
    rows : pandas.DataFrame
        What `runs` yields.
    people, queries, method
        As for `runs`.
    """
    answers = QUERIES_PER_PERSON * people if queries is None else queries
    databases = plural(rows["seed"].nunique(), "database")
    lines = [
        f"{people} people, half of whom have a secret; {answers:,} counts of random halves; {method};"
        f" {databases}; the root of {people} is {sqrt(people):.1f}",
        "",
        f"{'answers':<28}{'mean error':>12}{'bits right':>12}",
    ]
    for column, words in (("noise", "each at most {:.1f} off"), ("epsilon", "PrivSyn, epsilon {:g}")):
        for value, runs_of_value in rows.groupby(column):
            means = runs_of_value[["error", "right"]].mean()
            lines.append(f"{words.format(value):<28}{means['error']:>12.1f}{means['right']:>12.1%}")
    return "\n".join([*lines, "", "A coin gets 50% right."])


def picture(rows: pd.DataFrame, people: int) -> Any:
    """Return a matplotlib figure: bits right against the mean error of a count, made noise as a line."""
    from matplotlib.figure import Figure  # not pyplot: it needs no screen and no global state

    figure = Figure(figsize=(5.4, 3.6), layout="constrained")
    panel = figure.subplots()
    marks = (("noise", "o-", "made noise"), ("epsilon", "s", "synthetic rows of PrivSyn"))
    for (column, mark, label), ink in zip(marks, INK, strict=False):
        means = rows.groupby(column)[["error", "right"]].mean()
        if means.empty:
            continue
        panel.plot(means["error"], means["right"], mark, color=ink, label=label)
        for value, error, right in means.itertuples() if column == "epsilon" else ():
            panel.annotate(f"{value:g}", (error, right), (4, 5), textcoords="offset points", fontsize=8)
    panel.axhline(0.5, ls=":", color="#666666", label="a coin")
    for error, name in ((sqrt(people), "√n"), (people / 4, "n/4")):
        panel.axvline(error, lw=0.8, ls="--", color="#bbbbbb")
        panel.text(error, 1.02, name, ha="center", fontsize=8, color="#666666")
    panel.set_xscale("symlog", linthresh=1)
    panel.xaxis.set_major_formatter("{x:g}")
    panel.set(xlabel=f"mean error of a count, of {people} people", ylabel="bits right", ylim=(0.4, 1.07))
    panel.spines[["top", "right"]].set_visible(False)
    panel.legend(frameon=False, fontsize=8)
    return figure
