"""The reconstruction attack of Dinur and Nissim (2003): many subset counts, and a linear programme.

The attacker knows of everybody a place in a grid of two columns, no two people in the same, and wants the
secret 0/1 column. Each query is the number of secrets 1 in a random half of the people, counted in the
synthetic rows. The programme finds secrets between 0 and 1 whose counts lie nearest to all of these answers.
"""

from __future__ import annotations

import numpy as np
import pandas as pd
from scipy.optimize import linprog

from privsyn import Categorical, PrivSyn, Schema

SIDE = 8  # of the grid
PEOPLE = SIDE**2
QUERIES = 4 * PEOPLE
DELTA = 1e-9
NO_NOISE = 1e6  # an epsilon that leaves none

SCHEMA = Schema(
    {
        "x": Categorical(range(SIDE), nullable=False),
        "y": Categorical(range(SIDE), nullable=False),
        "secret": Categorical([0, 1], nullable=False),
    }
)


def attack(epsilon: float, rng: np.random.Generator) -> float:
    """Share of the secrets that the attacker gets right from one release; half is the base rate."""
    secrets = rng.permutation(np.arange(PEOPLE) % 2)
    x, y = np.divmod(np.arange(PEOPLE), SIDE)
    table = pd.DataFrame({"x": x, "y": y, "secret": secrets})
    model = PrivSyn(epsilon, DELTA, SCHEMA, allow_weak_privacy=True).fit(table)
    released = model.sample(model.release_.estimated_rows)
    ones = released[released["secret"] == 1]
    counts = np.bincount(ones["x"] * SIDE + ones["y"], minlength=PEOPLE)
    queries = rng.integers(0, 2, (QUERIES, PEOPLE))
    return float(np.mean((reconstruct(queries, queries @ counts) > 0.5) == secrets))


def reconstruct(queries: np.ndarray, answers: np.ndarray) -> np.ndarray:
    """Secrets in [0, 1] with the least sum of distances to the answers.

    >>> reconstruct(np.array([[1, 1, 0], [0, 1, 1], [1, 0, 1]]), np.array([1, 2, 1])).round(6).tolist()
    [0.0, 1.0, 1.0]
    """
    m, n = queries.shape
    # Unknowns: the n secrets, then a bound on each of the m distances; the sum of these is to be least.
    cost = np.r_[np.zeros(n), np.ones(m)]
    above, below = np.hstack([queries, -np.eye(m)]), np.hstack([-queries, -np.eye(m)])
    found = linprog(
        cost,
        A_ub=np.vstack([above, below]),
        b_ub=np.r_[answers, -answers],
        bounds=[(0, 1)] * n + [(0, None)] * m,
        method="highs",
    )
    return found.x[:n]
