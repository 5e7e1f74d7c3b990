"""The ledger of a run over linked tables: what it promises, to whom, and what it takes as public."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from privsyn import Categorical, Database, PrivSyn, Schema, Table
from privsyn.methods.run_of_tables import Run
from privsyn.private.run_ledger import NOT_PRIVATE

COLOURS = Schema({"colour": Categorical(["blue", "red"])})
ZONES = pd.DataFrame({"zone": ["north", "south", "east"], "area": [1.0, 2.0, 3.0]})


def database(trips=COLOURS):
    return Database(
        {
            "homes": Table(COLOURS, key="home"),
            "rooms": Table(COLOURS, parent="homes", link="home", key="room"),
            "trips": Table(trips, parent="homes", link="home", lookups={"zone": "zones"}),
            "zones": Table(public=ZONES, key="zone"),
        }
    )


def tables(homes=120):
    """Return homes with one room and eight trips each, so that the bounds of the tables differ."""
    rng = np.random.default_rng(0)
    rows = {"homes": np.arange(homes), "rooms": np.arange(homes), "trips": np.repeat(np.arange(homes), 8)}
    found = {
        name: pd.DataFrame({"home": of, "colour": rng.choice(["blue", "red"], len(of))})
        for name, of in rows.items()
    }
    found["rooms"]["room"] = range(homes)
    found["trips"]["zone"] = rng.choice(["north", "south"], len(found["trips"]))
    return found


def learned(settings):
    """Return the contributions of a person to the tables, and the ledger."""
    kept = {}
    learn = Run.learn

    def watched(self, *inquiry):
        levels, ledger = learn(self, *inquiry)
        kept.update({name: level.learned.contribution for name, level in levels.items()})
        return levels, ledger

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Run, "learn", watched)
        model = settings.fit(tables())
    return kept, model


def test_a_bound_that_differs_between_tables_is_stated_as_the_largest():
    contributions, model = learned(PrivSyn(20.0, 1e-6, database(), seed=1))
    bounds = {name: each.limit for name, each in contributions.items()}
    assert bounds["homes"] == 1
    assert bounds["trips"] > bounds["rooms"]
    assert model.ledger_.rows_per_unit == bounds["trips"]
    assert model.ledger_.squares is any(each.squares for each in contributions.values())
    assert model.ledger_.unit == "home"


@pytest.mark.parametrize("epsilon", [5.0, 20.0])
@pytest.mark.parametrize("delta", [0.0, 1e-6])
def test_a_run_with_a_seed_is_not_private_and_says_so(epsilon, delta):
    ledger = PrivSyn(epsilon, delta, database(), seed=1).fit(tables()).ledger_
    assert not ledger.private
    assert ledger.to_dict()["warning"] == NOT_PRIVATE
    assert "seed" in ledger.randomness


def test_a_run_without_a_seed_is_private_and_its_noise_is_of_the_operating_system():
    ledger = PrivSyn(20.0, 1e-6, database()).fit(tables()).ledger_
    assert ledger.private
    assert "warning" not in ledger.to_dict()
    assert "operating system" in ledger.randomness


def test_a_run_over_linked_tables_spends_its_budget_once_and_promises_what_was_asked():
    ledger = PrivSyn(20.0, 1e-6, database(), seed=1).fit(tables()).ledger_
    assert (ledger.promised_epsilon, ledger.promised_delta) == (20.0, 1e-6)
    assert ledger.cost == pytest.approx(ledger.budget, rel=1e-9)
    assert ledger.reserved == 0


def test_tables_that_search_for_values_share_what_is_reserved_of_delta():
    model = PrivSyn(20.0, 1e-4, database(Schema({"colour": Categorical()})), seed=1)
    searching = model.fit(tables()).ledger_
    both = Database(
        {
            "homes": Table(Schema({"colour": Categorical()}), key="home"),
            "rooms": Table(Schema({"colour": Categorical()}), parent="homes", link="home"),
        }
    )
    of_both = PrivSyn(20.0, 1e-4, both, seed=1).fit(
        {name: tables()[name][["home", "colour"]] for name in both.tables}
    )
    assert 0 < of_both.ledger_.reserved <= searching.reserved * (1 + 1e-9)
    assert searching.cost <= searching.budget * (1 + 1e-9)


def test_the_ledger_lists_what_keys_promise_the_tables_looked_up_and_what_was_not_found():
    schema = Schema({"colour": Categorical(["blue", "red"]), "odd": Categorical()})
    given = tables()
    given["trips"]["odd"] = [f"value {place}" for place in range(len(given["trips"]))]
    facts = PrivSyn(20.0, 1e-6, database(schema), seed=1).fit(given).ledger_.public_inputs
    assert sum("'zones'" in fact for fact in facts) == 1
    assert sum("key" in fact and "'homes'" in fact for fact in facts) == 1
    assert any("trips.odd" in fact for fact in facts)


def test_files_of_linked_tables_state_how_each_was_read(tmp_path):
    for name, table in tables().items():
        table.to_csv(tmp_path / f"{name}.csv", index=False)
    facts = PrivSyn(20.0, 1e-6, database(), seed=1).fit(tmp_path).ledger_.public_inputs
    assert any("well-formed CSV" in fact for fact in facts)


def test_columns_that_respondents_randomised_are_listed_with_their_table():
    """Two tables may have a column of one name."""
    sent = Schema({"colour": Categorical(["blue", "red"], keep=0.5)})
    homes = {"homes": Table(sent, key="home"), "trips": Table(sent, parent="homes", link="home")}
    frames = {name: tables()[name][["home", "colour"]] for name in homes}
    ledger = PrivSyn(20.0, 1e-6, Database(homes), seed=1).fit(frames).ledger_
    assert [promise.column for promise in ledger.local] == ["homes.colour", "trips.colour"]
    assert "'homes.colour', 'trips.colour'" in ledger.public_inputs[-1]
