"""A small table with cells that its schema does not know, and the methods whose releases are tested."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from privsyn import Categorical, Numerical, Schema

METHODS = ["default", "published"]
both = pytest.mark.parametrize("method", METHODS)
CANARY = "kanarie7391"
CANARY_NUMBER = 918273645

SCHEMA = Schema(
    {
        "Länge": Numerical(0, 99, integer=True),
        "city": Categorical(["Bern", "Köln", "Ulm"]),
        "land": Categorical(["CH", "DE"], nullable=False),
    }
)


def table():
    """The city decides the land; here and there a cell is one that the schema does not know."""
    rng = np.random.default_rng(0)
    city = rng.choice(["Bern", "Köln", "Ulm", CANARY], 400, p=[0.4, 0.3, 0.25, 0.05])
    length = rng.integers(0, 100, 400)
    length[:7] = CANARY_NUMBER
    land = np.where(city == "Bern", "CH", "DE")
    frame = pd.DataFrame({"city": pd.Categorical(city), "Länge": length, "land": land})
    frame.index = pd.Index([f"{CANARY}{row}" for row in range(400)])
    return frame
