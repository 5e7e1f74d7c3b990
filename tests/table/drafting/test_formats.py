"""Texts of dates and numbers are drafted with their format, and written again in it."""

from __future__ import annotations

import re
from datetime import UTC, time, timedelta, timezone

import numpy as np
import pandas as pd
import pytest
from drafts import comments, draft_text
from hypothesis import given
from hypothesis import strategies as st

from privsyn import Categorical, CsvFormat, Numerical, PrivSyn
from privsyn.table.drafting.draft import check_schema, draft_schema
from privsyn.table.encoding import parsing, time_format
from privsyn.table.inferred import time_formats
from privsyn.table.schema.yaml_file import from_plain, parse


@pytest.mark.parametrize("missing", [0.0, 0.1])
def test_whole_numbers_that_pandas_wrote_as_floats_are_drafted_as_whole_and_come_back_as_floats(
    missing, tmp_path
):
    rng = np.random.default_rng(4)
    frame = pd.DataFrame({"flag": rng.integers(0, 2, 600) * 1.0, "kids": rng.integers(0, 6, 600) * 1.0})
    frame = frame.where(rng.random(frame.shape) >= missing)
    path, out = tmp_path / "rows.csv", tmp_path / "out.csv"
    frame.to_csv(path, index=False)
    schema = draft_schema(path)
    flag, kids = schema.columns.values()
    assert (flag.values, kids.low, kids.high, kids.integer, kids.format) == ((0, 1), 0, 5, True, "1234.0")
    assert flag.nullable == kids.nullable == (missing > 0)
    assert "REWRITTEN" not in draft_text(path)
    for known in (schema, None):
        PrivSyn(20.0, 1e-9, known, seed=0).fit(path).sample_to(out, seed=0)
        made = pd.read_csv(out)
        assert made.dtypes.equals(frame.dtypes)
        assert set(made["flag"].dropna()) == {0.0, 1.0}
        assert (made["kids"].dropna() % 1 == 0).all()
        assert set(pd.read_csv(out, dtype=str)["flag"].dropna()) == {"0.0", "1.0"}
        assert (made["flag"].isna().mean() > 0.02) == (missing > 0)


def test_cells_that_come_out_written_in_another_way_are_named_by_their_form(tmp_path):
    rng = np.random.default_rng(4)
    frame = pd.DataFrame(
        {
            "change": [f"{x:+d}" for x in rng.integers(-30, 30, 400)],
            "tiny": [f"{x:.2e}" for x in rng.lognormal(0, 3, 400)],
            "plain": rng.normal(0, 9, 400).round(2),
            "endless": np.where(rng.random(400) < 0.1, "inf", rng.normal(0, 9, 400).round(2).astype(str)),
            "stay": [f"PT{x}M" for x in rng.integers(1, 90, 400)],
            "yes": rng.choice(["TRUE", "FALSE"], 400),
        }
    )
    frame.to_csv(tmp_path / "rows.csv", index=False)
    remarks = comments(draft_text(tmp_path / "rows.csv"))
    assert re.search(r"READ: REWRITTEN, \d+ cells such as '\+9' will come out as '9'\.", remarks["change"])
    assert re.search(r"READ: REWRITTEN, \d+ cells such as '9\.9e[+-]9' will come out as", remarks["tiny"])
    assert re.search(r"READ: REWRITTEN, \d+ cells such as 'PT9M' will come out as 'PT9H", remarks["stay"])
    assert re.search(r"READ: OTHERS, \d+ cells", remarks["endless"])
    assert not any("REWRITTEN" in remarks[name] for name in ("plain", "endless", "yes"))


@pytest.mark.slow
def test_dates_that_are_not_iso_are_drafted_with_their_format_and_none_is_lost(tmp_path):
    days = pd.date_range("2019-05-03 10:00", periods=400, freq="D")
    for number, (pattern, offset) in enumerate(
        [
            *(("%d.%m.%Y", 0), ("%d/%m/%Y", 0), ("%m/%d/%Y", 0), ("%Y/%m/%d", 0), ("%d.%m.%Y %H:%M", 3)),
            *(("%m/%d/%y", 0), ("%d %b %Y", 0), ("%B %d, %Y", 0), ("%m/%d/%Y %I:%M %p", 3)),
        ]
    ):
        rows = pd.DataFrame({"start": days, "end": days + pd.Timedelta(days=offset)})
        path = tmp_path / f"{number}.csv"
        rows.apply(lambda cells, pattern=pattern: cells.dt.strftime(pattern)).to_csv(path, index=False)
        schema = draft_schema(path)
        assert [column.format for column in schema.columns.values()] == [pattern, pattern]
        assert schema.columns["end"].low == pd.Timestamp("2019-05-01")
        assert check_schema(path, schema) == ["every cell fits"]
        assert "READ: format, first and last month" in draft_text(path)
        assert ("start < end" in draft_text(path)) == (offset > 0)


ISO = ("%Y-%m-%d", "%Y%m%d", "%Y%m%dT%H%M", "%G-W%V", "%GW%V", "%G-W%V-%u")


@given(
    when=st.datetimes(),
    pattern=st.sampled_from(
        [*ISO, *(day + clock for day in time_formats.DATES for clock in time_formats.CLOCKS)]
    ),
    padded=st.booleans(),
)
def test_no_text_that_a_format_reads_is_left_out_before_formats_are_tried(when, pattern, padded):
    text = when.strftime(pattern)
    text = text if padded or pattern in ISO else re.sub(r"\b0(?=\d)", "", text)
    if not np.isnat(parsing.moments([text], None if pattern in ISO else pattern)[0]):
        assert time_formats._may_be_dates([f" {text} "]) == 1


@pytest.mark.parametrize(
    ("read", "text", "pattern"),
    [(parsing.moments, "31.1.2015", "%-d.%-m.%Y"), (parsing.clock_seconds, "8:30 pm", "%I:%M %p")],
)
def test_a_text_that_recurs_is_parsed_once_and_an_equal_object_on_its_own(read, text, pattern, monkeypatch):
    parsed = []

    def parse_and_note(text, pattern):
        parsed.append(text)
        return time_format.read_time(text, pattern)

    monkeypatch.setattr(parsing, "read_time", parse_and_note)
    assert len({*read([text] * 5, pattern).tolist()}) == 1
    assert len(parsed) == 1
    utc = time(8, tzinfo=UTC)
    moved = time(9, tzinfo=timezone(timedelta(hours=1)))
    assert utc == moved
    assert parsing.clock_seconds([utc, moved], pattern).tolist() == [28800, 32400]


def test_dates_are_rounded_outwards_to_months_half_years_or_years():
    for last, low, high in (
        ("2020-03-28", "2019-10-01", "2020-03-31"),
        ("2021-09-28", "2019-10-01", "2021-09-30"),
        ("2021-10-28", "2019-07-01", "2021-12-31"),
        ("2022-06-30", "2019-07-01", "2022-06-30"),
        ("2030-03-28", "2019-01-01", "2030-12-31"),
    ):
        day = draft_schema(pd.DataFrame({"day": pd.date_range("2019-10-02", last)})).columns["day"]
        assert (day.low, day.high) == (pd.Timestamp(low), pd.Timestamp(high))


def test_dates_written_in_another_way_become_missing_and_the_draft_says_how_many():
    days = pd.date_range("2020-01-01", periods=200)
    cells = days.strftime("%m/%d/%Y").where(days.day != 31, days.strftime("%Y-%m-%d"))
    text = draft_text(pd.DataFrame({"day": cells}))
    assert "READ: OTHERS, 3 cells written in another way. Such cells become missing." in text
    day = from_plain(parse(text)).columns["day"]
    assert (day.format, day.nullable) == ("%m/%d/%Y", True)
    one_word = cells.where(days.day < 25, "none")
    assert draft_schema(pd.DataFrame({"day": one_word})).columns["day"].missing == ("none",)
    mostly_text = cells.where(days.day < 25, [f"note {chr(97 + i % 26)}{i}" for i in range(200)])
    assert isinstance(draft_schema(pd.DataFrame({"day": mostly_text})).columns["day"], Categorical)


def test_another_column_says_which_number_is_the_day():
    unclear = ["01/02/2020", "03/04/2021", "05/06/2020", "07/08/2020"] * 40
    for clear, pattern in (("31/12/2020", "%d/%m/%Y"), ("12/31/2020", "%m/%d/%Y")):
        schema = draft_schema(pd.DataFrame({"unclear": unclear, "clear": [clear, "01/02/2020"] * 80}))
        assert schema.columns["unclear"].format == pattern
    monthly = draft_schema(pd.DataFrame({"month": [f"{month:02}/01/2020" for month in range(1, 13)] * 9}))
    assert monthly.columns["month"].format == "%m/%d/%Y"


def written(numbers, group, point, decimals, around):
    """Numbers as a clerk writes them."""
    texts = [f"{abs(number):,.{decimals}f}" for number in numbers]
    texts = [text.translate({44: group, 46: point}) for text in texts]
    return [
        ("-" if number < 0 else "") + around.format(text) for number, text in zip(numbers, texts, strict=True)
    ]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("group", "point", "decimals", "around", "example"),
    [
        (",", ".", 2, "${}", "$1,234.50"),
        (".", ",", 2, "{} EUR", "1.234,50 EUR"),
        ("'", ".", 2, "CHF {}", "CHF 1'234.50"),
        (" ", ",", 2, "{} \u20ac", "1 234,50 \u20ac"),
        ("", ".", 1, "{} %", "1234.5 %"),
        ("", ",", 1, "{}%", "1234,5%"),
        (",", ".", 0, "{}", "1,234"),
        (".", ",", 0, "{} kg", "1.234 kg"),
        ("", ",", 2, "{}", "1234,50"),
    ],
)
def test_numbers_in_text_are_drafted_and_written_again_in_their_format(
    tmp_path, group, point, decimals, around, example
):
    rng = np.random.default_rng(0)
    amounts = np.append([-12.0, 4321.0], rng.normal(3000, 900, 600)).round(decimals)
    rows = pd.DataFrame(
        {"amount": written(amounts, group, point, decimals, around), "no": ["A12", "A13"] * 301}
    )
    path = tmp_path / "t.csv"
    rows.to_csv(path, index=False)
    for table in (path, rows):
        schema = draft_schema(table)
        amount = schema.columns["amount"]
        assert (amount.format, amount.fixed_decimals, amount.nullable) == (example, decimals, False)
        assert amount.low <= -12 < 4321 <= amount.high
        assert isinstance(schema.columns["no"], Categorical)
        assert check_schema(table, schema) == ["every cell fits"]
        model = PrivSyn(1.0, 1e-9, schema, seed=0).fit(table)
        model.sample_to(tmp_path / "s.csv", 50, seed=0)
        again = pd.read_csv(tmp_path / "s.csv", dtype=str)
        numbers = amount.form.numbers(again["amount"].tolist())
        assert written(numbers, group, point, decimals, around) == again["amount"].tolist()
    assert model.sample(50, seed=0)["amount"].tolist() == again["amount"].tolist()


def test_codes_names_and_dates_are_no_numbers_in_a_format():
    for cells in (
        ["A12", "B13"],
        ["10.1.2020", "11.1.2020"],
        ["1-2", "2-3"],
        ["007", "012"],
        ["x", "y"],
        ["12"],
    ):
        assert not isinstance(draft_schema(pd.DataFrame({"a": cells * 40})).columns["a"], Numerical)


@pytest.mark.slow
def test_dates_in_several_formats_are_reported_with_their_shares():
    days = pd.Series(pd.date_range("2020-01-01", periods=400))
    written = [days.dt.strftime(pattern) for pattern in ("%d.%m.%Y", "%Y-%m-%d", "%m/%d/%Y")]
    cells = written[0].where(days.index % 4 > 0, written[1]).where(days.index % 10 > 0, written[2])
    said = "READ: DATES IN SEVERAL FORMATS: 70 % 31.12.2020, 20 % 2020-12-31, 10 % 12/31/2020."
    assert said in remarks(draft_text(pd.DataFrame({"day": cells})))
    for words in (cells.where(days.index % 8 > 0, "in May"), written[0], pd.Series(["1-2", "x", "7"] * 100)):
        assert "SEVERAL" not in draft_text(pd.DataFrame({"day": words}))


def remarks(text):
    """The comments of a draft in one line."""
    return " ".join(line.strip().removeprefix("# ") for line in text.splitlines())


def unprepared():
    """A table as a German program exports it; docs/schema.md shows its draft."""
    rng = np.random.default_rng(0)
    n = 3000
    day = pd.Series(pd.Timestamp("2022-02-10") + pd.to_timedelta(rng.integers(0, 480, n), "D"))
    age, price = rng.integers(16, 95, n), rng.gamma(2, 400, n).round(2)
    comma = str.maketrans(",.", ".,")
    return pd.DataFrame(
        {
            "Kunde": [f"K{k:05d}" for k in range(n)],
            "Alter": age,
            "Gruppe": np.select([age < 30, age < 60], ["jung", "mittel"], "älter"),
            "Note": rng.choice([1, 2, 3, 4, 5, 6], n),
            "Jahr": day.dt.year,
            "Preis": [f"{x:,.2f} EUR".translate(comma) for x in price],
            "Dollar": [f"${x:,.2f}" for x in price[::-1]],
            "Rabatt": [f"{x:.1f} %".translate(comma) for x in rng.integers(0, 60, n) / 2],
            "Gewicht": [f"{x:.2f}".translate(comma) for x in rng.normal(70, 10, n)],
            "Menge": [f"{x},0" for x in rng.integers(1, 30, n)],
            "Bestellt": day.dt.strftime("%d.%m.%Y"),
            "Bezahlt": (day + pd.to_timedelta(rng.integers(0, 30, n), "D")).dt.strftime("%m/%d/%Y"),
            "Geliefert": day.dt.strftime("%d.%m.%Y").where(rng.random(n) < 0.7, day.dt.strftime("%Y-%m-%d")),
            "Abo": rng.choice(["ja", "nein"], n),
            "Farbe": rng.choice(["grün", "other", "weiß"], n),
        }
    )


@pytest.mark.slow
def test_the_draft_of_an_unprepared_file_reads_every_format(tmp_path):
    path = tmp_path / "kunden.csv"
    unprepared().to_csv(path, sep=";", index=False, encoding="latin-1")
    german = CsvFormat(delimiter=";", encoding="latin-1", point=",", thousands=".")
    text = draft_text(path, csv=german)
    schema = from_plain(parse(text))
    formats = {name: getattr(column, "format", None) for name, column in schema.columns.items()}
    assert {name: form for name, form in formats.items() if form} == {
        "Preis": "1.234,50 EUR",
        "Dollar": "$1,234.50",
        "Rabatt": "1234,5 %",
        "Bestellt": "%d.%m.%Y",
        "Bezahlt": "%m/%d/%Y",
        "Menge": "1234,0",
    }
    assert (schema.columns["Menge"].integer, schema.columns["Gewicht"].decimals) == (True, 2)
    assert schema.columns["Farbe"].values == ("grün", "other", "weiß")
    found = text.partition("\nconstraints:\n")[2].replace("#- ", "").splitlines()
    assert [line.partition("  #")[0] for line in found] == [
        "Gruppe == 'mittel' iff Alter >= 30 and Alter < 60",
        "Gruppe == 'älter' iff Alter >= 60",
        "Jahr == 2023 iff Bestellt >= '2023-01-01'",
        "Bestellt <= Bezahlt",
    ]
    assert re.search("SEVERAL FORMATS: [67][0-9] % 31.12.2020, [23][0-9] % 2020-12-31.", remarks(text))
    assert check_schema(path, schema) == ["every cell fits"]
