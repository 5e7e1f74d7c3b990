"""Times that are written as text or as numbers: a draft proposes their format, and they are written in it."""

import re

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from privsyn import Categorical, Datetime, Duration, PrivSyn, Schema, Time, load
from privsyn.cli.main import main
from privsyn.errors import InputError
from privsyn.table.io.csv_table import PLAIN
from privsyn.table.schema.yaml_file import from_plain, parse, to_yaml

ROWS = np.random.default_rng(5)
SECONDS = pd.Series(np.datetime64("2024-01-01T00:00:00") + ROWS.integers(0, 300 * 86_400, 400))
BERLIN = SECONDS.dt.tz_localize("UTC").dt.tz_convert("Europe/Berlin")
LENGTHS = ROWS.integers(600, 4 * 3600, 400)
LONG = ROWS.integers(600, 90 * 3600, 400)


def clock(at, *, blank=" ", small=False):
    half = "AM" if at.hour < 12 else "PM"
    return f"{at.hour % 12 or 12}:{at.minute:02d}{blank}{half.lower() if small else half}"


WRITTEN = {
    "one offset": ([f"{at.isoformat()}+02:00" for at in SECONDS], "kind: datetime"),
    "summer and winter": ([at.isoformat() for at in BERLIN], "zone: Europe/Berlin"),
    "offsets without a colon": ([at.strftime("%Y-%m-%d %H:%M%z") for at in BERLIN], "zone: Europe/Berlin"),
    "zulu": (SECONDS.dt.strftime("%Y-%m-%dT%H:%M:%SZ"), "kind: datetime"),
    "named zone": (SECONDS.dt.strftime("%d.%m.%Y %H:%M UTC"), "kind: datetime"),
    "t": (SECONDS.dt.strftime("%Y-%m-%dT%H:%M:%S"), "kind: datetime"),
    "minutes": (SECONDS.dt.strftime("%Y-%m-%d %H:%M"), "kind: datetime"),
    "midnights": (SECONDS.dt.strftime("%Y-%m-%d 00:00:00"), "format: '%Y-%m-%d %H:%M:%S'"),
    "no zeros": ([f"{at.month}/{at.day}/{at.year} {clock(at)}" for at in SECONDS], "kind: datetime"),
    "digits": (SECONDS.dt.strftime("%Y%m%d"), "%Y%m%d"),
    "digits from the day on": (SECONDS.dt.strftime("%d%m%Y"), "%d%m%Y"),
    "digits to the second": (SECONDS.dt.strftime("%Y%m%d%H%M%S"), "%Y%m%d%H%M%S"),
    "clock": (SECONDS.dt.strftime("%H:%M"), "kind: time"),
    "clock to the second": (SECONDS.dt.strftime("%H:%M:%S"), "kind: time"),
    "clock with a point": (SECONDS.dt.strftime("%H.%M"), "kind: time"),
    "clock without zeros": ([f"{at.hour}:{at.minute:02d}" for at in SECONDS], "kind: time"),
    "half days": ([clock(at) for at in SECONDS], "kind: time"),
    "half days in small letters": ([clock(at, blank="", small=True) for at in SECONDS], "kind: time"),
    "hours": ([f"{s // 3600}:{s // 60 % 60:02d}:{s % 60:02d}" for s in LENGTHS], "kind: duration"),
    "many hours": ([f"{s // 3600:02d}:{s // 60 % 60:02d}:{s % 60:02d}" for s in LONG], "kind: duration"),
    "days": ([str(pd.Timedelta(seconds=s)) for s in LONG], "kind: duration"),
    "days of python": ([str(pd.Timedelta(seconds=s).to_pytimedelta()) for s in LONG], "kind: duration"),
    "minutes of a lap": ([f"{s // 60}:{s % 60:02d}" for s in LENGTHS], "kind: duration"),
    "letters": ([f"{s // 3600}h {s // 60 % 60}m" for s in LENGTHS], "kind: duration"),
    "iso": ([f"PT{s // 3600}H{s // 60 % 60}M" for s in LENGTHS], "format: ISO 8601"),
}


def shape(text):
    """Return a text with a sign for each number."""
    return re.sub(r"\d+", "#", text)


@pytest.mark.parametrize(("name", "drafted"), [("zone", "kind: numerical"), ("date", "kind: datetime")])
def test_numbers_in_a_row_are_dates_only_if_their_name_says_so(name, drafted, tmp_path):
    pd.DataFrame({name: [*range(22635, 22819)] * 5}).to_csv(tmp_path / "t.csv", index=False)
    main(["schema", str(tmp_path / "t.csv"), "-o", str(tmp_path / "t.yaml")])
    assert drafted in (tmp_path / "t.yaml").read_text()


def test_times_of_which_some_have_parts_of_a_second_are_drafted_as_times(tmp_path, capsys):
    """With 10 % of them, as the time of a query in place of an end that is yet to come, it was text."""
    texts = SECONDS.dt.strftime("%Y-%m-%d 00:00:00")
    texts = texts.where(SECONDS.index % 10 > 0, "2024-10-01 22:20:10.165196")
    pd.DataFrame({"end": texts, "n": range(400)}).to_csv(tmp_path / "a.csv", index=False)
    assert main(["schema", str(tmp_path / "a.csv"), "-o", str(tmp_path / "s.yaml")]) == 0
    draft = (tmp_path / "s.yaml").read_text()
    assert "end: {kind: datetime, low: '2024-01-01', high: '2024-10-31 23:59:59', nullable: false}" in draft
    assert main(["schema", str(tmp_path / "a.csv"), "--check", str(tmp_path / "s.yaml")]) == 0
    assert "every cell fits" in capsys.readouterr().out


@pytest.mark.slow("each case")
@pytest.mark.parametrize("name", WRITTEN)
def test_times_are_drafted_and_written_as_the_real_ones_are(name, tmp_path, capsys):
    cells, words = WRITTEN[name]
    pd.DataFrame({"lap" if "lap" in name else "at": cells}).to_csv(tmp_path / "a.csv", index=False)
    assert main(["schema", str(tmp_path / "a.csv"), "-o", str(tmp_path / "s.yaml")]) == 0
    draft = (tmp_path / "s.yaml").read_text()
    assert words in draft
    assert main(["schema", str(tmp_path / "a.csv"), "--check", str(tmp_path / "s.yaml")]) == 0
    assert "every cell fits" in capsys.readouterr().out
    model = PrivSyn(5.0, 1e-9, tmp_path / "s.yaml", seed=0).fit(tmp_path / "a.csv")
    model.save(tmp_path / "m.privsyn")
    load(tmp_path / "m.privsyn").sample_to(tmp_path / "b.csv", 400, seed=1)
    made = pd.read_csv(tmp_path / "b.csv", dtype=str).iloc[:, 0]
    assert made.notna().all()
    if name == "iso":  # parts that are 0 are left out
        assert made.str.fullmatch(r"PT([0-9]+H)?([0-9]+M)?([0-9]+S)?").all()
        return
    assert set(map(shape, made)) <= set(map(shape, cells))
    lengths = list(map(len, cells))
    assert made.str.len().between(min(lengths), max(lengths)).all()


YEAR = "2020-01-01", "2020-12-31"

FRAMES = [
    ("20240131 as int64", SECONDS.dt.strftime("%Y%m%d").astype("int64"), Datetime(format="%Y%m%d")),
    ("20240131 as Int32", SECONDS.dt.strftime("%Y%m%d").astype("Int32"), Datetime(format="%Y%m%d")),
    ("20240131 as float64", SECONDS.dt.strftime("%Y%m%d").astype(float), Datetime(format="%Y%m%d")),
    ("31012024 as int64", SECONDS.dt.strftime("%d%m%Y").astype("int64"), Datetime(format="%d%m%Y")),
    ("0837 as int16", SECONDS.dt.strftime("%H%M").astype("int16"), Time(format="%H%M", unit="m")),
    ("08:37", SECONDS.dt.strftime("%H:%M").astype("str"), Time(format="%H:%M", unit="m")),
    (
        "offsets",
        pd.Series([at.isoformat() for at in BERLIN], dtype="str"),
        Datetime(format="%Y-%m-%dT%H:%M:%S%:z", zone="Europe/Berlin"),
    ),
    ("lengths", pd.Series(WRITTEN["hours"][0], dtype="str"), Duration(format="%-H:%M:%S")),
    ("lengths of pandas", pd.Series(WRITTEN["days"][0], dtype="str"), Duration()),
]


@pytest.mark.slow
@pytest.mark.parametrize(("cells", "column"), [row[1:] for row in FRAMES], ids=[row[0] for row in FRAMES])
def test_a_frame_keeps_its_dtype_and_every_cell_is_a_time(cells, column):
    """With bounds that are found, so that reading, counting and writing all know the format."""
    frame = pd.DataFrame({"at": cells, "g": ["a", "b"] * 200})
    model = PrivSyn(20.0, 1e-9, Schema({"at": column, "g": Categorical(["a", "b"])}), seed=0).fit(frame)
    made = model.sample(400, seed=0)
    assert made["at"].dtype == cells.dtype
    real, synthetic = (column.measured(table["at"]) for table in (frame, made))
    assert not np.isnan(synthetic).any()
    assert abs(np.median(real) - np.median(synthetic)) < 0.2 * np.ptp(real)


@pytest.mark.parametrize("pattern", ["%m%d%y", "%d%m%Y"])
def test_a_first_zero_that_a_program_left_out_is_put_back_in_text(pattern):
    texts = SECONDS.dt.strftime(pattern)
    column = Datetime("2020-01-01", "2020-12-31", format=pattern)
    cut = pa.chunked_array([texts.str.removeprefix("0").tolist()])
    whole = pa.chunked_array([texts.tolist()])
    assert column.read_cells(cut, PLAIN).tolist() == column.read_cells(whole, PLAIN).tolist()


@pytest.mark.parametrize(
    ("column", "texts"),
    [
        (Time(format="%H%M"), ["", " ", ".0", "0", "-930", "30", "5", "09300"]),
        (
            Datetime("2020-01-01", "2020-12-31", format="%Y%m%d"),
            ["", " ", "0", "990101", "2020011", "202011"],
        ),
        (Datetime("2020-01-01", "2020-12-31", format="%d%m%y"), ["", " ", "0", "-1012", "1120"]),
        (Datetime("2020-01-01", "2020-12-31", format="%d.%m.%Y %H%M"), ["01.02.2020 30", "1.2.2020 930"]),
    ],
)
def test_no_text_is_a_time_because_zeros_were_put_before_it(column, texts):
    assert column.read_cells(pa.chunked_array([texts]), PLAIN).isna().all()
    assert np.isnan(column.measured(pd.Series(texts, dtype="str"))).all()


def test_times_of_day_that_are_written_as_numbers_with_a_point_come_out_so(tmp_path):
    """A third of them were missing cells, for 30.0 lacks two zeros, and the others were written as 0517."""
    minutes = np.random.default_rng(0).integers(0, 180, 2000)
    table = pd.DataFrame({"dep": (minutes // 60 * 100 + minutes % 60).astype(float)})
    table.to_csv(tmp_path / "t.csv", index=False)
    (tmp_path / "s.yaml").write_text('columns:\n  dep: {kind: time, unit: m, format: "%-H%M.0"}\n')
    options = ["--schema", str(tmp_path / "s.yaml"), "--epsilon", "9", "--seed", "0"]
    assert main(["synth", str(tmp_path / "t.csv"), str(tmp_path / "o.csv"), *options]) == 0
    real, made = (pd.read_csv(tmp_path / name, dtype=str)["dep"].dropna() for name in ("t.csv", "o.csv"))
    assert len(made) > 1900
    assert made.isin(real).mean() > 0.95
    column = Time(unit="m", format="%-H%M.0")
    assert (column.measured(table["dep"]) == minutes).all()
    assert (
        str(PrivSyn(9.0, 1e-9, Schema({"dep": column}), seed=0).fit(table).sample(9)["dep"].dtype)
        == "float64"
    )


def test_a_number_alone_may_lack_its_zero():
    """Where numbers touch, nobody can tell which one does: 30 was 3 o'clock, not half past midnight."""
    column = Datetime("2020-01-01", "2020-12-31", format="%d.%m.%Y %H%M")
    cells = column.read_cells(pa.chunked_array([["1.2.2020 0030", "01.02.2020 0030"]]), PLAIN)
    assert np.isfinite(column.measured(cells)).all()


def test_a_time_that_the_clock_skips_is_moved_forward():
    frame = pd.DataFrame(
        {"at": pd.Series(["2024-03-31T01:59:00+01:00", "2024-03-31T03:01:00+02:00"] * 50, dtype="str")}
    )
    column = Datetime(
        "2024-03-31 01:00",
        "2024-03-31 04:00",
        step="1min",
        format="%Y-%m-%dT%H:%M:%S%:z",
        zone="Europe/Berlin",
    )
    made = PrivSyn(1.0, 1e-9, Schema({"at": column}), seed=0).fit(frame).sample(300, seed=0)["at"].dropna()
    hours = made.str[11:13]
    assert not (hours == "02").any()
    assert (made.str[-6:] == np.where(hours < "02", "+01:00", "+02:00")).all()


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: Datetime(format="%Y-%m-%d %H:%M%z"), "need both"),
        (lambda: Datetime(zone="Europe/Berlin"), "need both"),
        (lambda: Datetime(format="%Y-%m-%d %H:%M%z", zone="Berlin"), "no time zone"),
        (lambda: Time(format="%M:%S"), "shows no hour"),
        (lambda: Duration(format="%M:%H"), "shows no length"),
        (lambda: Duration(format="lengthy"), "shows no length"),
        (lambda: Duration(format="%H:%M"), "leaves out units"),
        (
            lambda: Datetime("2020-01-01", "2020-12-31", format="%Y%m%d").encoder(np.dtype("int16")),
            "too small",
        ),
        (
            lambda: Datetime("2020-01-01", "2020-12-31", format="%d.%m.%Y").encoder(np.dtype("int64")),
            "not dates",
        ),
    ],
)
def test_formats_that_cannot_be_read_back_are_refused(make, words):
    with pytest.raises(InputError, match=words):
        make()


@pytest.mark.parametrize(
    "numbers",
    [
        [100_000 + i for i in range(40)],
        [101, 102, 103, 110, 115] * 20,
        [20_241_301, 20_241_402, 20_249_903, 20_240_041, 20_240_051] * 20,
        ROWS.integers(10_000_000, 99_999_999, 200).tolist(),
    ],
    ids=["six digits in a row", "few short numbers", "no such days", "any numbers"],
)
def test_numbers_that_are_no_dates_are_not_drafted_as_dates(numbers, tmp_path):
    pd.DataFrame({"number": numbers}).to_csv(tmp_path / "a.csv", index=False)
    assert main(["schema", str(tmp_path / "a.csv"), "-o", str(tmp_path / "s.yaml")]) == 0
    assert "kind: datetime" not in (tmp_path / "s.yaml").read_text()


def test_formats_are_kept_in_a_schema_file():
    columns = {
        "at": Datetime(format="%Y-%m-%dT%H:%M%:z", zone="+05:30"),
        "opens": Time(unit="m", format="%-I:%M %p"),
        "lap": Duration(format="%-M:%S"),
    }
    schema = Schema(columns)
    assert from_plain(parse(to_yaml(schema))) == schema
