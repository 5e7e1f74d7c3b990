"""The rows that bounds keep stand for all rows."""

import numpy as np
import pandas as pd
import pytest

from privsyn import Categorical, PrivSyn, Schema

SCHEMA = Schema({"kind": Categorical(["x", "y", "z"]), "late": Categorical([0, 1])})
NUMBERS = {"alike": np.full(3000, 10), "skewed": 1 + np.random.default_rng(1).geometric(0.3, 6000)}


def visits(numbers):
    """A table of persons with these numbers of rows; those with many have other rows than those with few."""
    rng, who = np.random.default_rng(0), np.repeat(np.arange(len(numbers)), numbers)
    kind = (rng.random(len(who)) * np.minimum(numbers[who], 3)).astype(int)
    late = rng.integers(0, 2, len(who))
    return pd.DataFrame({"who": who, "kind": np.array(["x", "y", "z"])[kind], "late": late})


@pytest.mark.parametrize("numbers", NUMBERS.values(), ids=NUMBERS)
@pytest.mark.parametrize("settings", [{}, {"method": "published"}, {"delta": 0}], ids=str)
def test_the_sample_has_as_many_rows_as_the_table_and_not_as_were_kept(settings, numbers):
    table = visits(numbers)
    model = PrivSyn(**{"epsilon": 5.0, "schema": SCHEMA, "unit": "who", "seed": 0} | settings).fit(table)
    kept = np.minimum(numbers, model.ledger_.rows_per_unit).sum() / len(table)
    assert kept < 0.95
    assert model.counted_ == pytest.approx(kept, abs=0.02)
    assert len(model.sample()) == pytest.approx(len(table), rel=0.02)
    of_columns = model.release_.fitted.one_ways[0]
    assert of_columns.total == pytest.approx(model.release_.fitted.total)
