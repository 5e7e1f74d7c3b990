"""Sets that link rows to the rows above them, and the groups in which columns of other rows are counted."""

import numpy as np
import pandas as pd
import pytest

from privsyn import Categorical, Database, PrivSyn, Schema, Table
from privsyn.inference.higher_order import MOST_CELLS
from privsyn.inference.measured_columns import PublicFacts
from privsyn.inference.rows_per_person import RowsPerPerson
from privsyn.marginals.domain import Domain
from privsyn.marginals.marginal import Marginal
from privsyn.methods import previous_siblings
from privsyn.methods.previous_siblings import MOST_VALUES, groups_at_level, linking_sets
from privsyn.synthesis.chains import NUMBER_OF_ROWS, POSITION, SIBLINGS


def sets_of(own, above, *of_rows):
    """Return the sets for own columns and columns above, given as mappings of a name to a size."""
    given = [*above, *of_rows]
    domain = Domain((*own, *given), (*own.values(), *above.values(), *[4] * len(of_rows)))
    return linking_sets(domain, PublicFacts(context_weights=dict.fromkeys(given, 1.0)))


def test_sets_have_an_own_column_one_above_and_the_position():
    found = sets_of({"a": 3, "b": 2}, {"homes.c": 2}, NUMBER_OF_ROWS, SIBLINGS, POSITION)
    assert found == (("b", "homes.c", POSITION), ("a", "homes.c", POSITION))
    assert sets_of({"a": 3}, {"homes.c": 2}, NUMBER_OF_ROWS, SIBLINGS) == ()


def test_sets_have_few_cells_and_are_few(monkeypatch):
    assert sets_of({"a": MOST_CELLS // 4}, {"c": 2}, POSITION) == ()
    monkeypatch.setattr(previous_siblings, "MOST_SETS", 2)
    assert [own for own, _, _ in sets_of({"a": 5, "b": 2, "d": 3}, {"c": 2}, POSITION)] == ["b", "d"]


def test_codes_with_an_order_are_joined_and_the_rarest_of_others():
    size = MOST_VALUES + 3
    counts = np.arange(size, 0, -1.0)
    ordered = groups_at_level(Marginal(Domain(("a",), (size,), (size,)), counts), 8)
    assert len(np.unique(ordered)) == 8
    assert (np.diff(ordered) >= 0).all()
    others = groups_at_level(Marginal(Domain(("a",), (size,)), counts), 8)
    assert others.tolist() == [*range(MOST_VALUES), *[MOST_VALUES] * 3]


@pytest.fixture(scope="module")
def homes_and_members():
    """The first member of a home has its kind; that of the others is of two equally likely values."""
    rng = np.random.default_rng(0)
    homes = pd.DataFrame({"home": range(3000), "kind": rng.choice(["a", "b"], 3000)})
    members = pd.DataFrame({"home": np.repeat(homes["home"], 3), "nth": [1, 2, 3] * 3000})
    other = rng.choice(["a", "b"], len(members))
    members["like"] = np.where(members["nth"] == 1, np.repeat(homes["kind"], 3), other)
    return {"homes": homes, "members": members.reset_index(drop=True)}


def test_only_the_first_row_depends_on_the_row_above(homes_and_members):
    """By pairs alone, each row would have the kind of its home two times in three."""
    kinds = Categorical(["a", "b"], nullable=False)
    database = Database(
        {
            "homes": Table(Schema({"kind": kinds}), key="home"),
            "members": Table(Schema({"like": kinds}), parent="homes", link="home", order="nth"),
        }
    )
    made = PrivSyn(20.0, 1e-9, database, seed=0).fit(homes_and_members).sample(seed=0)
    both = made["members"].merge(made["homes"], on="home")
    alike = (both["kind"] == both["like"]).groupby(both["nth"]).mean()
    assert alike[1] > 0.9
    assert alike[2] < 0.6


def test_without_an_order_a_row_depends_on_all_others_of_its_parent():
    """The three members of a home are alike, although only neighbours are counted together.

    Two members share their value in 4 of 5 homes. If the third followed from the second alone, it would share
    that of the first in .68. Found were .78, and .68 before. A share of 4,000 homes has a standard deviation
    of at most .0075. The limit is 6 of these away from both: a probability below 1e-8. The seed is fixed.
    """
    rng = np.random.default_rng(0)
    homes = pd.DataFrame({"home": range(4000)})
    members = pd.DataFrame({"home": np.repeat(homes["home"], 3)})
    kind = np.repeat(rng.random(4000) < 0.5, 3)
    members["like"] = np.where(kind ^ (rng.random(12_000) < 0.113), "a", "b")
    schema = Schema({"like": Categorical(["a", "b"], nullable=False)})
    of_home = Table(schema, parent="homes", link="home")
    database = Database({"homes": Table(Schema({}), key="home"), "members": of_home})
    model = PrivSyn(20.0, 1e-9, database, seed=0).fit({"homes": homes, "members": members})
    made = model.sample(seed=0)["members"]
    home, like = made["home"].to_numpy(), made["like"].to_numpy()
    assert np.mean((like[2:] == like[:-2])[home[2:] == home[:-2]]) > 0.73


def test_of_three_tables_the_last_knows_how_many_rows_it_has_by_the_column_of_the_second(monkeypatch):
    """Without the column of the second table, noise hides numbers of rows that few persons share."""
    seen = []
    update = RowsPerPerson.with_all
    monkeypatch.setattr(
        RowsPerPerson, "with_all", lambda rows, *total: seen.append(total) or update(rows, *total)
    )
    homes = pd.DataFrame({"home": range(300), "size": ["small", "large"] * 150})
    people = pd.DataFrame({"person": range(600), "home": np.repeat(range(300), 2)})
    trips = pd.DataFrame({"person": np.repeat(range(600), 3), "far": ["yes", "no", "no"] * 600})
    schema = Database(
        {
            "homes": Table(Schema({"size": Categorical(["small", "large"])}), key="home"),
            "people": Table(Schema({}), key="person", parent="homes", link="home"),
            "trips": Table(Schema({"far": Categorical(["yes", "no"])}), parent="people", link="person"),
        }
    )
    PrivSyn(50, 1e-9, schema, seed=0).fit({"homes": homes, "people": people, "trips": trips})
    ((total, variance),) = seen
    assert total == pytest.approx(1800, rel=0.1)
    assert variance > 0


def test_the_last_of_three_tables_has_the_rows_of_those_whom_bounds_leave_out_of_the_second(monkeypatch):
    """Customers with many orders have more lines in each: the counted orders have too few lines.

    A normal number is off by five of its standard deviations with probability below 1e-6. The number of lines
    that the counted orders alone show was off by 34.
    """
    seen, update = [], RowsPerPerson.with_all
    monkeypatch.setattr(
        RowsPerPerson, "with_all", lambda rows, *total: seen.append(total) or update(rows, *total)
    )
    rng = np.random.default_rng(0)
    is_business = rng.random(1500) < 0.15
    customers = pd.DataFrame({"customer": range(1500)})
    orders = pd.DataFrame({"customer": np.repeat(range(1500), np.where(is_business, 8, 2))})
    orders["order"] = range(len(orders))
    of_business = is_business[orders["customer"]]
    lines = pd.DataFrame({"order": np.repeat(orders["order"], np.where(of_business, 3, 1))})
    chance = np.where(is_business[orders["customer"].to_numpy()[lines["order"]]], 0.6, 0.1)
    lines["goods"] = np.where(rng.random(len(lines)) < chance, "tools", "books")
    schema = Database(
        {
            "customers": Table(Schema({}), key="customer"),
            "orders": Table(Schema({}), key="order", parent="customers", link="customer"),
            "lines": Table(Schema({"goods": Categorical(["books", "tools"])}), parent="orders", link="order"),
        }
    )
    tables = {"customers": customers, "orders": orders, "lines": lines}
    model = PrivSyn(40, 1e-9, schema, seed=0, rows_per_unit=2).fit(tables)
    ((total, variance),) = seen
    assert abs(total - len(lines)) < 5 * variance**0.5
    assert variance**0.5 < 0.1 * len(lines)
    answer = model.ask("lines: share of goods == 'tools'")
    assert answer.low <= (lines["goods"] == "tools").mean() <= answer.high
