"""The released tables of a child table count all rows, also those that bounds leave out."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from privsyn import Categorical, Database, PrivSyn, Schema, Table
from privsyn.methods.run_of_tables import Run

LETTERS = Schema({"letter": Categorical(["a", "b", "c"])})
DATABASE = Database(
    {
        "homes": Table(LETTERS, key="home"),
        "rooms": Table(LETTERS, key="room", parent="homes", link="home", order="n"),
        "beds": Table(LETTERS, parent="rooms", link="room", order="n"),
    }
)


def tables(homes):
    """Return homes, rooms and beds: those with a later letter have more of the next ones."""
    rng = np.random.default_rng(0)
    letter = rng.integers(0, 3, homes)
    home = np.repeat(np.arange(homes), 1 + rng.integers(0, 2, homes) + 2 * letter)
    letter_of_room = np.where(rng.random(len(home)) < 0.5, letter[home], rng.integers(0, 3, len(home)))
    room = np.repeat(np.arange(len(home)), 1 + letter_of_room)
    words = np.array(["a", "b", "c"])
    rooms = pd.DataFrame({"home": home, "room": range(len(home)), "letter": words[letter_of_room]})
    beds = pd.DataFrame({"room": room, "letter": words[rng.integers(0, 3, len(room))]})
    return {
        "homes": pd.DataFrame({"home": range(homes), "letter": words[letter]}),
        "rooms": rooms.assign(n=rooms.groupby("home").cumcount()),
        "beds": beds.assign(n=beds.groupby("room").cumcount()),
    }


@pytest.fixture(scope="module")
def released():
    """Return the private tables, and what was learnt of each at an epsilon of 10, with all bounds low."""
    kept, private, plan = {}, tables(3000), Run.learn

    def watched(self, *inquiry):
        levels, ledger = plan(self, *inquiry)
        kept.update(levels)
        return levels, ledger

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Run, "learn", watched)
        patch.setattr("privsyn.inference.rows_per_person.LARGEST_BOUND", 2)
        PrivSyn(10.0, 1e-9, DATABASE, seed=0).fit(private)
    return private, kept


def shares(levels, table, attribute):
    """Return the shares of the codes of an attribute among all rows of a table, as released."""
    counts = levels[table].learned.fitted.one_way(attribute).counts
    return np.sort(counts / counts.sum())[::-1]  # codes have any order


def test_bounds_leave_out_rows_of_large_families(released):
    private, levels = released
    most = levels["rooms"].learned.contribution.most
    kept = private["rooms"].groupby("home").cumcount() < most
    assert kept.mean() < 0.75


@pytest.mark.parametrize("table", ["rooms", "beds"])
def test_rows_of_each_code_of_a_row_above_are_as_many_as_the_rows_above_say(released, table):
    private, levels = released
    above = private["rooms"].merge(private["homes"], on="home", suffixes=("", "_of_home"))
    rows = above if table == "rooms" else private["beds"].merge(above, on="room", suffixes=("_of_bed", ""))
    truth = rows["letter_of_home"].value_counts(normalize=True).to_numpy()
    assert shares(levels, table, "homes.letter") == pytest.approx(truth, abs=0.03)
    if table == "beds":
        truth = rows["letter"].value_counts(normalize=True).to_numpy()
        assert shares(levels, table, "rooms.letter") == pytest.approx(truth, abs=0.03)


@pytest.mark.parametrize("table", ["rooms", "beds"])
def test_rows_of_each_position_are_as_many_as_the_numbers_of_rows_say(released, table):
    private, levels = released
    truth = private[table]["n"].clip(upper=3).value_counts(normalize=True).to_numpy()
    found = shares(levels, table, "position")
    assert found[0] == pytest.approx(truth[0], abs=0.03)


def test_a_table_with_a_row_above_has_its_rows(released):
    """The tables that link rows are fitted to these numbers too."""
    _, levels = released
    linked = levels["rooms"].learned.fitted
    for table in linked.marginals:
        if "homes.letter" in table.attributes:
            assert table.project(("homes.letter",)).counts == pytest.approx(
                linked.one_way("homes.letter").counts, rel=1e-3
            )
