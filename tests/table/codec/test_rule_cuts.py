"""Groups of numbers are cut at the constants of rules: what a rule decides lies in its interval."""

from __future__ import annotations

import warnings

import numpy as np
import pandas as pd
import pytest

from privsyn import Categorical, Forbidden, Numerical, PrivSyn, Schema
from privsyn.table.codec.codec import Codec

RUNS = 20


def customers(seed: int, rows: int = 4000) -> pd.DataFrame:
    """Bills that are missing in the first month, as in the table of a telephone company."""
    rng = np.random.default_rng(seed)
    months = np.maximum(np.round(72 * rng.beta(0.5, 0.6, rows)), 1)
    months[:10] = 0
    bill = np.where(months == 0, np.nan, np.round(months * rng.uniform(20, 110, rows), 2))
    leaves = np.where(rng.random(rows) < 1 / (2 + months / 10), "yes", "no")
    return pd.DataFrame({"months": months.astype(int), "bill": bill, "leaves": leaves})


SCHEMA = Schema(
    {
        "months": Numerical(0, 72, integer=True),
        "bill": Numerical(0, 9000, decimals=2),
        "leaves": Categorical(["no", "yes"]),
    },
    constraints=["bill is missing iff months < 1"],
)


def test_rows_have_what_a_rule_decides_in_its_interval():
    """Months 0 and 1 had one group: of ten missing bills rows made some 200, in 3 of 20 runs."""
    for seed in range(RUNS):
        table = customers(seed)
        model = PrivSyn(epsilon=1.0, delta=1e-9, schema=SCHEMA, seed=seed).fit(table)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            rows = model.sample(seed=seed)
        assert (rows["bill"].isna() == (rows["months"] < 1)).all()
        share, months = (model.accuracy_.share(text) for text in ("bill is missing", "months < 1"))
        assert share["low"] <= rows["bill"].isna().mean() <= min(share["high"], months["high"])
        assert months["high"] < 0.05


@pytest.mark.parametrize(
    ("column", "rule", "starts"),
    [
        (Numerical(0, 72, integer=True), "bill is missing iff x < 1", [1]),
        (Numerical(0, 72, integer=True), "x in [3, 7] implies bill == 0", [3, 4, 7, 8]),
        (Numerical(0, 90_000, integer=True), "x >= 1234 and x <= 4321 implies bill == 0", [1234, 4322]),
        (Numerical(0, 90_000), "x < 1234.5 implies bill == 0", [1234.5]),
        (Numerical(0, 90_000), "x <= 1234.5 implies bill == 0", [1234.5]),
        (Numerical(0, 90_000, decimals=2), Forbidden({"x": {"high": 5.25}, "bill": 0}), [5.26]),
    ],
)
def test_a_group_begins_at_each_constant_of_a_rule(column, rule, starts):
    schema = Schema({"x": column, "bill": Numerical(0, 9000, decimals=2)}, constraints=[rule])
    table = pd.DataFrame({"x": [1.0], "bill": [2.0]}).astype({"x": "int64" if column.integer else "float64"})
    codec = Codec.for_table(schema, table, fine=True)
    axis, (lows, _) = codec.axes["x"], codec.encoder_of["x"].extents
    assert lows[axis.starts] == pytest.approx(starts, abs=1e-6)


def test_columns_that_no_rule_compares_keep_their_cells():
    plain = Schema({"x": Numerical(0, 90_000), "bill": Numerical(0, 9000)}, constraints=[])
    ordered = Schema({"x": Numerical(0, 90_000), "bill": Numerical(0, 9000)}, constraints=["x == bill"])
    for schema in (plain, ordered):
        codec = Codec.for_table(schema, pd.DataFrame({"x": [1.0], "bill": [2.0]}), fine=True)
        assert not any(len(axis.starts) for axis in codec.axes.values())


ROWS, SHARE = 4000, 0.4

POINT_RULES = [
    (0, 1, (0, 1000), ["has == 1 iff amount > 0", "has == 0 implies amount == 0"]),
    (0, 1, (0, 1000), ["amount > 0 implies has == 1", "has == 0 implies amount <= 0"]),
    (5.1, 1, (5.1, 1000), ["has == 1 iff amount != 5.1", "has == 0 implies amount <= 5.1"]),
    (1000, -1, (0, 1000), ["has == 1 iff amount < 1000", "has == 0 implies amount >= 1000"]),
    (0, 1, (-1000, 1000), ["has == 1 iff amount > 0"]),
    (0.3, 1, (0, 1000), ["has == 1 iff amount != 0.3", "has == 0 implies amount == 0.3"]),
]


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize(
    ("point", "sign", "bounds", "rule"),
    [(point, sign, bounds, rule) for point, sign, bounds, rules in POINT_RULES for rule in rules],
)
def test_a_constant_of_a_rule_is_a_value_of_its_own(point, sign, bounds, rule, dtype):
    """Of reals, a rule made the bound impossible: "has == 1" was certain, and true of all rows."""
    rng = np.random.default_rng(0)
    has = np.arange(ROWS) < SHARE * ROWS
    distance = rng.gamma(3, 50, ROWS).clip(0.01, 900)
    amount = np.where(has, point + sign * distance, point).astype(dtype)
    table = pd.DataFrame({"has": has.astype(int), "amount": amount})
    columns = {"has": Categorical([0, 1], nullable=False), "amount": Numerical(*bounds, nullable=False)}
    model = PrivSyn(epsilon=5.0, delta=1e-9, schema=Schema(columns, constraints=[rule]), seed=0).fit(table)
    answer, rows = model.ask("share of has == 1"), model.sample(ROWS, seed=0)
    assert answer.high - answer.low < 0.02  # of noise, .004; before, all rows were certain to have it
    assert answer.low - 0.01 <= SHARE <= answer.high + 0.01
    assert rows["has"].mean() == pytest.approx(SHARE, abs=0.02)
    assert (rows["amount"] == amount[-1]).mean() == pytest.approx(1 - SHARE, abs=0.02)
    assert ((rows["amount"] == amount[-1]) == (rows["has"] == 0)).mean() > 0.99
