"""A sheet as offices keep them: a title above the header, free notes, an empty column."""

import numpy as np
import pandas as pd
import pytest
from command import run
from openpyxl import Workbook
from screens import press, session_in

from privsyn.app.screens import SCREENS, render
from privsyn.app.session import Session
from privsyn.app.workspace import Workspace
from privsyn.errors import InputError

NAMES = ["Client ID", "Household size", "Town", "Postcode", "Paid", "Empty", "Notes"]


def write_sheet(path, *above):
    """Write 200 clients, below the rows `above`."""
    rng, book = np.random.default_rng(0), Workbook()
    for row in (*above, NAMES):
        book.active.append(row)
    for client in range(200):
        town = int(rng.integers(0, 4))
        paid = f"€ {rng.integers(20, 1500):,}.00"
        note = f"Call back about case {client}" if client % 3 else None
        size = int(rng.integers(1, 7))
        book.active.append([f"C-{client}", size, f"Town {town}", f"0{town}067", paid, None, note])
    book.save(path)


@pytest.fixture
def session(tmp_path):
    workspace = Workspace(tmp_path)
    yield Session(workspace)
    workspace.close()


def test_a_title_above_the_header_is_refused_with_what_to_do(session, tmp_path):
    write_sheet(tmp_path / "clients.xlsx", ["Clients of the house, as of 31.12."], [])
    with pytest.raises(InputError, match="delete the rows above the names in Excel") as refusal:
        session.open(tmp_path / "clients.xlsx")
    assert "house" not in str(refusal.value)  # it may be somebody's row


@pytest.mark.slow
def test_the_draft_of_a_sheet_leaves_out_notes_and_keeps_zeros_of_postcodes(session, tmp_path):
    write_sheet(tmp_path / "clients.xlsx")
    session.open(tmp_path / "clients.xlsx")
    assert session.choices.table.persons == ["Client ID"]  # no size of a household
    press(session, "people", "draft")
    entries = {entry.name: entry for entry in session.choices.table.entries}
    assert {name: entry.kind for name, entry in entries.items()} == {
        "Client ID": "identifier",
        "Household size": "numerical",
        "Town": "categorical",
        "Postcode": "categorical",
        "Paid": "numerical",
        "Empty": "text",
        "Notes": "text",
    }
    assert entries["Notes"].remarks[0].startswith("Nearly every row has a text of its own, so it is left out")
    assert "00067" in entries["Postcode"].values
    assert entries["Notes"].asks  # so it stands before the columns about which there is no question


def test_one_sheet_of_several_is_chosen_and_linked_ones_are_saved_as_files(tmp_path, capsys):
    """The page refused such a workbook, with words about the command line."""
    with pd.ExcelWriter(tmp_path / "school.xlsx") as book:
        for name in ("pupils", "marks"):
            pd.DataFrame({"pupil": range(9), "mark": 1}).to_excel(book, sheet_name=name, index=False)
    with session_in(tmp_path) as session:
        assert press(session, "choose", "choose", file="school.xlsx") == "choose"
        page = render("choose", session, SCREENS["choose"].show(session))
        assert "marks alone" in page
        assert "All together" not in page
        assert "save each sheet as a CSV file there" in page
        with pytest.raises(InputError, match="choose a table that is in the list"):
            press(session, "choose", "table", table="")
        assert press(session, "choose", "table", table="marks") == "people"
        assert session.choices.table.names == ["pupil", "mark"]
    refused = run(capsys, "schema", tmp_path / "school.xlsx")
    assert (refused.code, "save each sheet as a CSV file there" in refused.err) == (2, True)
