"""A draft of numbers or times with a few words, open ends, or other signs for no date among them."""

import numpy as np
import pandas as pd
import pytest

from privsyn import Categorical, Datetime, Duration, Numerical, PrivSyn, Schema, Time
from privsyn.cli.main import main
from privsyn.table.drafting.draft import draft_schema

ROWS = np.random.default_rng(3)
N = 600
DAYS = np.datetime64("2015-01-01") + ROWS.integers(0, 2000, N)
SOME = ROWS.random(N) < 0.2


def drafted(cells, folder, capsys):
    """Return the drafted column of a CSV file; `--check` must find nothing that does not fit."""
    pd.DataFrame({"at": cells}).to_csv(folder / "a.csv", index=False)
    assert main(["schema", str(folder / "a.csv"), "-o", str(folder / "s.yaml"), "--force"]) == 0
    assert main(["schema", str(folder / "a.csv"), "--check", str(folder / "s.yaml")]) == 0
    assert "every cell fits" in capsys.readouterr().out
    return draft_schema(folder / "a.csv").columns["at"]


@pytest.mark.parametrize("word", ["unknown", "-", "N.A.", "<5", ".", "refused", "keine Angabe", "free"])
def test_a_word_among_numbers_is_proposed_as_missing(word, tmp_path, capsys):
    column = drafted(np.where(SOME, word, ROWS.integers(0, 400, N).astype(str)), tmp_path, capsys)
    assert column == Numerical(0, 400, integer=True, missing=[word])
    assert "WORDS" in (tmp_path / "s.yaml").read_text()


@pytest.mark.parametrize(
    ("cells", "kind"),
    [
        (ROWS.gamma(2, 30, N).round(2).astype(str), Numerical),
        ([f"${amount:,.2f}" for amount in ROWS.gamma(2, 900, N)], Numerical),
        ([f"{share}%" for share in ROWS.integers(0, 100, N)], Numerical),
        (pd.Series(DAYS).dt.strftime("%d.%m.%Y"), Datetime),
        (DAYS.astype(str), Datetime),
        (pd.Series(DAYS).dt.strftime("%Y%m%d"), Datetime),
        ([f"{minute // 60:02d}:{minute % 60:02d}" for minute in ROWS.integers(0, 1440, N)], Time),
        ([f"{s // 60} min {s % 60} s" for s in ROWS.integers(0, 5000, N)], Duration),
    ],
    ids=["reals", "money", "per cent", "dates", "iso dates", "digits", "clock", "lengths"],
)
def test_a_word_stands_among_all_kinds_of_numbers_and_times(cells, kind, tmp_path, capsys):
    column = drafted(np.where(SOME, "never", np.asarray(cells, dtype=object)), tmp_path, capsys)
    assert isinstance(column, kind)
    assert column.missing == ("never",)


def test_few_numbers_with_words_that_are_answers_stay_a_list(tmp_path, capsys):
    column = drafted(ROWS.choice(["1", "2", "3", "A", "B"], N), tmp_path, capsys)
    assert column.values == ("1", "2", "3", "A", "B")
    column = drafted(ROWS.choice(["1", "2", "3", "4", "5", "unknown"], N), tmp_path, capsys)
    assert column == Numerical(1, 5, integer=True, missing=["unknown"])
    assert drafted(ROWS.choice(["9", "10", "11", "other"], N), tmp_path, capsys).values == (
        "9",
        "10",
        "11",
        "other",
    )


def test_open_ends_beside_few_numbers_are_classes(tmp_path, capsys):
    """Before, <5 came out missing, and 10+ too: it was of too few rows to count as a word."""
    hours = ROWS.choice(["<5", "5", "6", "7", "8", "9", "10+"], N, p=[0.1, 0.1, 0.2, 0.37, 0.1, 0.1, 0.03])
    assert drafted(hours, tmp_path, capsys).values == ("<5", "5", "6", "7", "8", "9", "10+")


def test_a_word_of_fewer_than_five_rows_is_not_shown(tmp_path):
    cells = ROWS.integers(0, 400, N).astype(str).astype(object)
    cells[:3], cells[3:20] = "secret", "unknown"
    column = draft_schema(pd.DataFrame({"at": pd.Series(cells, dtype="str")})).columns["at"]
    assert column.missing == ("unknown",)
    assert column.format == "1234"  # a column of text needs one


def test_many_words_are_not_taken_for_missing_cells():
    words = [f"word {chr(97 + i % 26)}" for i in range(N)]
    cells = np.where(SOME, words, ROWS.integers(0, 400, N).astype(str))
    frame = pd.DataFrame({"at": pd.Series(cells, dtype="str")})
    assert isinstance(draft_schema(frame).columns["at"], Categorical)


OPEN_ENDS = {
    "iso": (DAYS.astype(str), "9999-12-31"),
    "times": (pd.Series(DAYS).dt.strftime("%Y-%m-%d 08:15:20"), "9999-12-31 00:00:00"),
    "with a format": (pd.Series(DAYS).dt.strftime("%d.%m.%Y"), "31.12.9999"),
    "digits": (pd.Series(DAYS).dt.strftime("%Y%m%d"), "99991231"),
    "no date": (pd.Series(DAYS).dt.strftime("%Y%m%d"), "0"),
    "nought": (DAYS.astype(str), "0000-00-00"),
    "first day": (DAYS.astype(str), "0001-01-01"),
}


@pytest.mark.parametrize("name", OPEN_ENDS)
def test_dates_that_stand_for_none_are_proposed_as_missing(name, tmp_path, capsys):
    cells, mark = OPEN_ENDS[name]
    column = drafted(np.where(SOME, mark, np.asarray(cells, dtype=object)), tmp_path, capsys)
    assert isinstance(column, Datetime)
    assert (column.low.year, column.high.year, column.nullable) == (2015, 2020, True)
    assert column.missing in ((mark,), (mark.removesuffix(" 00:00:00"),))


def test_midnight_is_a_time_of_day_and_no_mark_of_a_missing_one(tmp_path, capsys):
    """Before, cells of 00:00 were proposed as missing, and -5 cells were said to be unread."""
    clock = [f"{minute // 60:02d}:{minute % 60:02d}" for minute in ROWS.integers(0, 1440, N)]
    column = drafted(np.where(SOME, "00:00", clock), tmp_path, capsys)
    assert (type(column), column.missing, column.nullable) == (Time, (), False)
    assert drafted(np.where(SOME, "99:99", clock), tmp_path, capsys).missing == ("99:99",)


def test_dates_that_are_all_far_away_are_drafted(tmp_path, capsys):
    column = drafted(np.where(SOME, "9999-12-30", "9999-12-31"), tmp_path, capsys)
    assert column.high.year == 9999
    assert drafted([f"15{i % 90 + 10}-05-01" for i in range(N)], tmp_path, capsys).low.year < 1520


@pytest.mark.parametrize("dtype", ["datetime64[s]", "object"])
def test_open_ends_of_a_frame_are_missing_cells_too(dtype):
    cells = np.where(SOME, np.datetime64("9999-12-31"), DAYS).astype("datetime64[s]")
    frame = pd.DataFrame({"at": pd.Series(cells).astype(dtype)})
    column = draft_schema(frame).columns["at"]
    assert column.missing == ("9999-12-31",)
    column = Datetime(column.low, column.high, missing=column.missing, objects="datetime")
    made = PrivSyn(20.0, 1e-9, Schema({"at": column}), seed=0).fit(frame).sample(N, seed=0)["at"]
    assert abs(made.isna().mean() - SOME.mean()) < 0.1
