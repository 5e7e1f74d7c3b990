"""The reconstruction attack of Dinur and Nissim (2003): many subset counts, and a linear programme.

The attacker knows of everybody a place in a grid of two columns, no two people in the same, and wants the
secret 0/1 column. Each query is the number of secrets 1 in a random half of the people, counted in the
synthetic rows. The programme finds secrets between 0 and 1 whose counts lie nearest to all of these answers.
"""

from __future__ import annotations

import numpy as np

from privsyn import reconstruct
from privsyn.studies.reconstruction import MadeDatabase

PEOPLE = 64
NO_NOISE = 1e6  # an epsilon that leaves none


def attack(epsilon: float, rng: np.random.Generator) -> float:
    """Share of the secrets that the attacker gets right from one release; half is the base rate."""
    database = MadeDatabase.of(PEOPLE, rng)
    answers = database.released(epsilon, seed=None)
    return reconstruct(answers, database.queries).right(database.secret)
