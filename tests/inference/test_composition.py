"""What is unknown of all rows: persons with few rows or with many, and rows that nothing counts."""

import numpy as np
import pandas as pd
import pytest

from privsyn import Categorical, Database, PrivSyn, Schema, Table
from privsyn.inference.composition import Composition


@pytest.mark.parametrize("seed", range(20))
def test_no_rows_that_are_hidden_lead_out_of_the_extremes(seed):
    """Persons of four classes have any share of a value, and hidden persons another: 100 of each."""
    rng = np.random.default_rng(seed)
    counted, all_rows = rng.dirichlet(np.ones(4)), rng.dirichlet(np.ones(4))
    hidden = rng.uniform(0, 0.5)
    composition = Composition(counted, all_rows, frozenset({"a"}), hidden=hidden)
    for _ in range(100):
        shares, share_of_hidden, part = rng.beta(0.3, 0.3, 4), rng.beta(0.3, 0.3), rng.uniform(0, hidden)
        share = np.array([counted @ shares])
        total = (1 - part) * (all_rows @ shares) + part * share_of_hidden
        assert composition.least_share(share)[0] - 1e-9 <= total <= composition.largest_share(share)[0] + 1e-9
        assert composition.share_counted(np.array([total]))[0] <= share[0] + 1e-9
        # Of a measured column the share of all rows that are seen is known.
        seen = np.array([all_rows @ shares])
        known = composition.of_measured
        assert known.least_share(seen)[0] - 1e-9 <= total <= known.largest_share(seen)[0] + 1e-9
    assert Composition(counted, all_rows).of_measured is None


@pytest.mark.parametrize("hidden", [-0.1, 1.0, np.nan])
def test_a_hidden_share_is_a_part_of_all_rows(hidden):
    with pytest.raises(ValueError, match="hidden share"):
        Composition(np.ones(1), np.ones(1), hidden=hidden)


def test_few_persons_with_very_many_rows_are_never_confidently_left_out():
    """Of 2,000 patients 20 have 30 to 90 stays, most of them day cases, and the noise hides how many.

    Their share of day cases is .42, and .22 without these patients. The interval of the first release
    ended at .25 before, with the verdict keep.
    """
    rng = np.random.default_rng(0)
    numbers = rng.poisson(1.2, 2000)
    numbers[:20] = rng.integers(30, 90, 20)
    person = np.repeat(np.arange(2000), numbers)
    is_day = rng.random(len(person)) < np.where(person < 20, 0.9, 0.2)
    stays = pd.DataFrame({"patient": person, "kind": np.where(is_day, "day", "night")})
    bills = pd.DataFrame({"stay": np.repeat(np.arange(len(stays)), 2)})
    bills["paid"] = np.where(is_day[bills["stay"]], "no", "yes")
    stays["stay"] = np.arange(len(stays))
    kind, paid = (
        Schema({name: Categorical(values)})
        for name, values in (("kind", ["day", "night"]), ("paid", ["no", "yes"]))
    )
    schema = Database(
        {
            "patients": Table(Schema({}), key="patient"),
            "stays": Table(kind, key="stay", parent="patients", link="patient"),
            "bills": Table(paid, parent="stays", link="stay"),
        }
    )
    tables = {"patients": pd.DataFrame({"patient": range(2000)}), "stays": stays, "bills": bills}
    for seed in range(4):
        model = PrivSyn(5.0, 1e-9, schema, seed=seed).fit(tables)
        for question in (
            "stays: share of kind == 'day'",
            "bills: share of paid == 'no'",
            "stays: mean of count",
        ):
            assert model.ask(question).verdict == "not decided"
