"""A value that one person alone holds: how often does it come out, beside the delta of its threshold?

At the delta of a real run never. So the same question is put with a delta large enough to be seen: then the
value must come out as often as the threshold promises, and not less often either, or delta is wasted.
"""

from __future__ import annotations

from functools import partial

import numpy as np
import pandas as pd
from strategies import find_values

from privsyn import PrivSyn
from privsyn.private.find_values import VOTING_ROUNDS, count_votes
from privsyn.private.noise import ExactGaussian

UNIQUE = "Zebulon"
OTHERS = 400
SEEN_DELTA = 0.3  # with which the value comes out often enough to be counted
RHO = 0.01

TABLE = pd.DataFrame(
    {"name": ["Ann", "Bob"] * (OTHERS // 2) + [UNIQUE], "age": [30, 40] * (OTHERS // 2) + [10**9]}
)

# With one in two rounds: it stays unseen in each with 1 - delta / 2.
PROMISED = 1 - (1 - SEEN_DELTA / VOTING_ROUNDS) ** VOTING_ROUNDS


def comes_out(_: object = None) -> bool:
    """Whether the value, or the extreme number, is anywhere in a release; epsilon 5, delta 1e-9."""
    release = PrivSyn(5.0, 1e-9).fit(TABLE).release_
    said = f"{release.codec.to_dict()} {release.sample(50, seed=0).to_csv()}"
    return UNIQUE in said or str(10**9) in said


def passes(_: object = None) -> bool:
    """Whether question 0 finds the value at `SEEN_DELTA`."""
    codes = np.append(np.zeros(OTHERS, np.int64), 1)
    ask = partial(count_votes, {("name", "str"): (["Ann", UNIQUE], codes)})
    found, _ = find_values(["name"], ask, rho=RHO, delta=SEEN_DELTA, noise=ExactGaussian())
    return UNIQUE in found["name"]
