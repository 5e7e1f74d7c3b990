"""A table of persons to which no other table leads needs no key: each of its rows is a person."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from command import visible
from test_neighbours import FORMS, ratios

import privsyn
from privsyn import Categorical, Database, InputError, Numerical, PrivSyn, Schema, Table

DRAWS = np.random.default_rng(3)
CARRIERS = pd.DataFrame({"carrier": ["AA", "DL", "UA", "WN"], "fleet": [4, 3, 2, 1]})
COLUMNS = {
    "carrier": Categorical(nullable=False),
    "delay": Numerical(0, 90, integer=True, nullable=False),
}
DECLARED = Database(
    {"flights": Table(Schema(COLUMNS)), "carriers": Table(public=CARRIERS, key="carrier")},
)


def flights(rows):
    """Return private rows."""
    carriers = DRAWS.choice(["AA", "DL", "UA"], rows, p=[0.5, 0.3, 0.2])
    return pd.DataFrame({"carrier": carriers, "delay": DRAWS.integers(0, 91, rows)})


@pytest.fixture(scope="module")
def fitted():
    """Return private tables and a model of them, of little noise."""
    tables = {"flights": flights(2000)}
    return tables, PrivSyn(epsilon=10, delta=1e-9, schema=DECLARED, seed=0).fit(tables)


def test_every_row_is_counted_once_and_protected_alone(fitted):
    tables, model = fitted
    ledger = model.ledger_
    assert ledger.protects == "one row of 'flights'"
    assert ledger.neighbours == "add or remove one person: one row of 'flights'"
    assert (ledger.unit, ledger.rows_per_unit, ledger.root) == (None, None, "flights")
    assert max(spend.sensitivity for spend in ledger.spends if spend.what.endswith("of carrier")) == 1
    assert abs(model.release_.estimated_rows - 2000) <= 60
    share = model.ask("flights: share of carrier == 'AA'").estimate
    assert abs(share - (tables["flights"]["carrier"] == "AA").mean()) < 0.02
    assert not any("share a key" in fact or "one key" in fact for fact in ledger.public_inputs)


def test_equal_rows_are_persons_apart():
    """Rows without a key could be taken for one person, of whom one row is counted."""
    equal = pd.DataFrame({"carrier": ["AA"] * 1500, "delay": [7] * 1500})
    model = PrivSyn(epsilon=10, delta=1e-9, schema=DECLARED, seed=0).fit({"flights": equal})
    assert abs(model.release_.estimated_rows - 1500) <= 60


@pytest.mark.slow
@pytest.mark.parametrize(("form", "delta"), [("pandas", 1e-6), ("csv", 0), ("sqlite", 1e-6)])
def test_if_a_row_leaves_nothing_moves_further_than_the_ledger_says(form, delta, tmp_path):
    """The row has a carrier that no look-up has, the largest delay, and a town of its own."""
    rows = flights(300).assign(town=np.repeat(["x", "y", "z"], 100))
    rows.loc[7] = ["ZZ", 90, "w"]
    words = np.random.default_rng(8).permutation(len(rows)).astype(np.uint64)
    columns = COLUMNS | {"town": Categorical(None if delta else ["x", "y"])}
    tables = {**DECLARED.tables, "flights": Table(Schema(columns))}

    def remaining(stay):
        """Return how the rows are fitted that stay, and their random words."""

        def fit(folder):
            data = FORMS[form](rows[stay].reset_index(drop=True), folder / "flights")
            return PrivSyn(40.0, delta, Database(tables), seed=1, allow_weak_privacy=True).fit(
                {"flights": data}
            )

        return fit, [words[stay]]

    everybody = np.full(len(rows), True)
    moves = ratios(remaining(everybody), remaining(np.arange(len(rows)) != 7), 1, tmp_path)
    assert moves["flights: one-way counts of carrier"] == pytest.approx(1)


def test_sample_report_evaluate_and_attack_take_such_a_release(fitted, tmp_path):
    tables, model = fitted
    model.save(tmp_path / "flights.privsyn")
    made = privsyn.load(tmp_path / "flights.privsyn").sample(400, seed=0)
    assert list(made["flights"]) == ["carrier", "delay"]
    assert len(made["flights"]) == 400
    assert made["carriers"].equals(CARRIERS)
    privsyn.report(model, tmp_path / "page.html")
    assert "one row of" in (tmp_path / "page.html").read_text()
    assert "All 3 hold" in str(privsyn.evaluate(tables, made, schema=DECLARED))
    held_out = {"flights": flights(400)}
    assert "400 held out" in str(privsyn.attack(tables, made, held_out, schema=DECLARED))


def test_the_public_page_protects_rows_and_no_keys(fitted, tmp_path):
    """Before, one key of flights was protected, which has none; further down everybody with one row was."""
    _, model = fitted
    release = model.release_.with_ledger(replace(model.ledger_, private=True))  # as if not seeded
    privsyn.report(release, tmp_path / "page.html")
    text = visible((tmp_path / "page.html").read_text())
    assert "What is protected is one row of flights" in text
    assert "Every person: one row of flights. Whoever has several rows is protected less." in text
    assert "guesses whether a person is in" in text
    assert "key of flights" not in text
    assert "used: " not in text


def test_a_ledger_of_such_a_run_comes_back_from_its_file(fitted):
    _, model = fitted
    ledger = type(model.ledger_).from_json(model.ledger_.to_json())
    assert ledger == model.ledger_


def test_a_table_below_still_needs_a_key_above():
    below = Table(Schema({"x": Numerical(0, 1)}), parent="flights", link="flight")
    with pytest.raises(InputError, match="its parent 'flights' needs a key"):
        replace(DECLARED, tables={**DECLARED.tables, "meals": below})
