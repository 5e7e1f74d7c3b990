"""A column of times is counted as its date, time of day and day of the week, and comes out as one column."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from privsyn import Categorical, Datetime, Increasing, InputError, Numerical, PrivSyn, Schema
from privsyn.inference.measured_columns import PublicFacts
from privsyn.table.codec.codec import Codec

ROWS = 20_000
AT = Datetime("2015-01-01 00:00", "2017-12-31 23:59:59")
HOURS = np.array([1, 1, 1, 1, 1, 2, 4, 8, 12, 10, 8, 8, 9, 8, 7, 7, 9, 12, 10, 7, 5, 4, 3, 2.0])


def trips(rows=ROWS, seed=0):
    """Minutes with a daily and a weekly rhythm; in the morning most trips lead to work."""
    rng = np.random.default_rng(seed)
    days = np.arange(1096)
    weekly = np.where((days + 3) % 7 < 5, 1.0, 0.4)
    day = rng.choice(days, rows, p=weekly / weekly.sum())
    hour = rng.choice(24, rows, p=HOURS / HOURS.sum())
    at = pd.Timestamp("2015-01-01") + pd.to_timedelta(
        1440 * day + 60 * hour + rng.integers(0, 60, rows), "min"
    )
    to = np.where(rng.random(rows) < np.where((hour >= 7) & (hour < 10), 0.8, 0.3), "work", "home")
    return pd.DataFrame({"at": at, "to": to})


def schema_of(at=AT, **others):
    return Schema({"at": at, "to": Categorical(["work", "home"]), **others})


def fitted(table, schema=None):
    return PrivSyn(epsilon=1.0, delta=1e-9, schema=schema or schema_of(), seed=0).fit(table)


@pytest.fixture(scope="module")
def model():
    return fitted(trips())


def distance(one, other):
    """Total variation."""
    shares = [values.value_counts(normalize=True) for values in (one, other)]
    return 0.5 * shares[0].sub(shares[1], fill_value=0).abs().sum()


def test_hours_and_days_of_the_week_survive(model):
    real, sample = trips(), model.sample(seed=0).dropna()
    assert distance(real["at"].dt.hour, sample["at"].dt.hour) < 0.04
    assert distance(real["at"].dt.day_of_week, sample["at"].dt.day_of_week) < 0.02
    assert (sample["at"].dt.second == 0).all()


def test_dependence_on_the_hour_survives(model):
    sample = model.sample(seed=0).dropna()
    is_morning = sample["at"].dt.hour.between(7, 9)
    to_work = sample["to"] == "work"
    assert to_work[is_morning].mean() > 0.7
    assert to_work[~is_morning].mean() < 0.4


def test_each_row_is_coded_alone():
    codec = Codec.for_table(schema_of(), table := trips(300), fine=True)
    assert codec.domain.names == ("at (date)", "at (time of day)", "at (day of week)", "to")
    whole = codec.encode(table).codes
    for rows in (slice(0, 7), slice(250, 300)):
        assert np.array_equal(codec.encode(table[rows]).codes, whole[rows])


def test_a_time_is_rounded_before_it_is_split():
    schema = schema_of(Datetime("2015-01-01", "2015-12-31", step="1h"))
    table = pd.DataFrame({"at": pd.to_datetime(["2015-03-01 23:50", "2015-03-02 00:10"]), "to": "work"})
    codes = Codec.for_table(schema, table, fine=True).encode(table).codes
    assert np.array_equal(codes[0], codes[1])


@pytest.mark.parametrize(
    ("at", "parts"),
    [
        (AT, 3),
        (Datetime("2015-01-01", "2015-02-01", step="1h"), 2),
        (Datetime("2015-01-01", "2015-02-01", step="1h", cycles=["day", "week"]), 3),
        (Datetime("2015-01-01", "2017-01-01", step="1h", cycles=["day"]), 2),
        (Datetime("2015-01-01", "2017-01-01", step="1h", cycles=[]), 1),
        (Datetime("2015-01-01", "2015-01-05", step="1h"), 1),
        (Datetime("2015-01-01", "2017-01-01"), 1),
        (Datetime("2015-01-01", "2017-01-01", step="1d", unit="s"), 1),
    ],
)
def test_only_long_columns_with_times_have_parts(at, parts):
    codec = Codec.for_table(Schema({"at": at}), pd.DataFrame({"at": pd.to_datetime([])}), fine=True)
    assert len(codec.domain) == parts


def journeys(rows=ROWS):
    """Trips and the way back, which starts after one to 120 minutes."""
    minutes = np.random.default_rng(1).integers(1, 121, rows)
    return trips(rows).assign(back=lambda t: t["at"] + pd.to_timedelta(minutes, "min"))


def ordered(at=AT, *constraints):
    columns = dict(schema_of(at, back=at).columns)
    return Schema(columns, constraints=[Increasing(["at", "back"]), *constraints])


@pytest.fixture(scope="module")
def there_and_back():
    return fitted(journeys(), ordered(Datetime("2015-01-01", "2017-12-31", step="1min", nullable=False)))


def test_hours_survive_where_a_time_increases_to_another(there_and_back):
    """As one attribute the hours were off by .26 and the days of the week by .15."""
    real, sample = journeys(), there_and_back.sample(seed=0)
    assert (sample["at"] <= sample["back"]).all()
    for name in ("at", "back"):
        assert distance(real[name].dt.hour, sample[name].dt.hour) < 0.05
        assert distance(real[name].dt.day_of_week, sample[name].dt.day_of_week) < 0.02
        assert (sample[name].dt.second == 0).all()
    means = [(frame["back"] - frame["at"]).mean() for frame in (real, sample)]
    assert means[1] / means[0] == pytest.approx(1, rel=0.05)


@pytest.mark.slow
@pytest.mark.parametrize(
    "given",
    [
        {"at": "2016-05-05 10:00"},
        {"back": "2016-05-05 10:30"},
        {"at": "2016-05-05 10:00", "back": "2016-05-05 10:30"},
        {"at": ("2016-05-01", "2016-05-05"), "back": "2016-05-05 10:30"},
        {"at": ("2016-05-05 09:00", "2016-05-05 10:00"), "back": "2016-05-05 10:30"},
        {"at": ("2016-05-05 09:00", "2016-05-06 10:00")},
        {"back": ("2016-05-05 09:00", "2016-05-06 10:00")},
    ],
)
def test_given_times_that_increase_are_kept(there_and_back, given):
    sample = there_and_back.sample(100, given=given, seed=0)
    assert (sample["at"] <= sample["back"]).all()
    for name, times in given.items():
        low, high = (times, times) if isinstance(times, str) else (times[0], f"{times[1][:10]} 23:59:59")
        assert sample[name].between(low, high).all()


def test_times_given_in_the_wrong_order_are_refused(there_and_back):
    with pytest.raises(InputError, match="no row was found that keeps the constraints on at, back"):
        there_and_back.sample(5, given={"at": "2016-05-05 11:00", "back": "2016-05-05 10:30"}, seed=0)


def test_a_time_without_the_one_before_keeps_its_share():
    """No row can have the gap to a time that is missing, nor a time alone beside one that is there."""
    table = journeys()
    table.loc[table.index % 4 == 0, "at"] = pd.NaT
    table.loc[table.index % 5 == 0, "back"] = pd.NaT
    model = fitted(table, ordered())
    codec, merging = model.release_.codec, model.release_.fitted.merging
    assert ("at (date)", "back - at") in [domain.names for domain, _ in codec.possible(merging).masks]
    sample = model.sample(seed=0)
    real = table.isna().groupby(["at", "back"]).size() / len(table)
    found = sample.isna().groupby(["at", "back"]).size() / len(sample)
    assert (real - found).abs().max() < 0.02
    both = sample.dropna()
    assert (both["at"] <= both["back"]).all()


def test_a_time_that_another_constraint_names_has_no_parts():
    table = journeys(2000).assign(last=lambda t: t["back"])
    columns = dict(schema_of(back=AT, last=AT).columns)
    schema = Schema(columns, constraints=[Increasing(["at", "back"]), Increasing(["at", "last"])])
    model = fitted(table, schema)
    assert model.release_.codec.split == ()
    sample = model.sample(500, seed=0).dropna()
    assert ((sample["at"] <= sample["back"]) & (sample["at"] <= sample["last"])).all()


def test_a_time_before_a_column_that_is_all_missing_has_no_parts():
    table = journeys(300).assign(back=pd.array([None] * 300, pd.ArrowDtype(pa.null())))
    codec = Codec.for_table(ordered(), table, fine=True)
    assert codec.domain.names == ("at", "to", "back")


def test_a_split_column_and_a_gap_stand_side_by_side():
    """Columns that a constraint names are never split, so no time is encoded twice."""
    table = trips(2000).assign(begin=1.0, end=2.0)
    numbers = {name: Numerical(0, 9) for name in ("begin", "end")}
    schema = Schema(dict(schema_of(**numbers).columns), constraints=[Increasing(["begin", "end"])])
    model = fitted(table, schema)
    codec = model.release_.codec
    parts = ("at (date)", "at (time of day)", "at (day of week)")
    assert codec.domain.names == (*parts, "to", "begin", "end - begin")
    assert [codec.attributes_of(name) for name in ("at", "to", "end")] == [parts, ("to",), ("end - begin",)]
    assert [codec.column_of(name) for name in codec.domain] == ["at", "at", "at", "to", "begin", "end"]
    sample = model.sample(100, given={"at": ("2016-01-01", "2016-01-31"), "end": 2.0}, seed=0)
    assert sample["at"].between("2016-01-01", "2016-01-31 23:59:59").all()
    assert (sample["begin"] <= sample["end"]).all()


def test_a_column_that_is_all_missing_by_its_dtype_has_no_parts():
    table = pd.DataFrame({"at": pd.array([None] * 300, pd.ArrowDtype(pa.null())), "to": "work"})
    schema = schema_of(Datetime("2015-01-01", "2017-12-31", step="1h"))
    assert Codec.for_table(schema, table, fine=True).domain.names == ("at", "to")
    assert fitted(table, schema).sample(20, seed=0)["at"].isna().all()


def test_parts_of_a_column_whose_bounds_were_found_are_doubtful(monkeypatch):
    found = []

    def facts(target, weight, axes, possible, doubtful, *others, **named):
        found.append(doubtful)
        return PublicFacts(target, weight, axes, possible, doubtful, *others, **named)

    monkeypatch.setattr("privsyn.methods.reading.PublicFacts", facts)
    PrivSyn(5.0, 1e-6, schema=schema_of(Datetime(unit="s")), seed=0).fit(trips())
    assert found[-1] == ("at (date)", "at (time of day)", "at (day of week)")


def test_names_of_parts_are_not_taken_from_columns():
    table = trips(300).assign(**{"at (date)": 1})
    codec = Codec.for_table(schema_of(**{"at (date)": Numerical(0, 9)}), table, fine=True)
    assert codec.split == ()


def test_the_parts_of_a_missing_time_are_missing_together():
    table = trips()
    table.loc[table.index % 4 == 0, "at"] = pd.NaT
    sample = fitted(table).sample(seed=0)
    assert abs(sample["at"].isna().mean() - 0.25) < 0.02
    assert distance(table["at"].dropna().dt.hour, sample["at"].dropna().dt.hour) < 0.05


def test_times_stay_within_their_bounds():
    at = Datetime("2015-06-01 08:30", "2015-09-01 17:15", step="15min", nullable=False)
    sample = fitted(trips(), schema_of(at)).sample(seed=0)["at"]
    assert (
        pd.Timestamp("2015-06-01 08:30") <= sample.min() <= sample.max() <= pd.Timestamp("2015-09-01 17:15")
    )
    assert (sample.dt.minute % 15 == 0).all()


def test_a_given_time_and_range_are_kept(model):
    at = pd.Timestamp("2016-02-03 08:05")
    sample = model.sample(200, given={"at": at.isoformat()}, seed=0)
    assert (sample["at"] == at).all()
    assert (sample["to"] == "work").mean() > 0.55
    for low, high in (("2016-02-03 08:05", "2016-02-03 12:00"), ("2016-02-03 20:00", "2016-03-01 04:00")):
        inside = model.sample(200, given={"at": (low, high)}, seed=0)["at"]
        assert inside.between(low, high).all()


def test_a_time_off_the_grid_cannot_be_given(model):
    with pytest.raises(InputError, match="is not one of its numbers"):
        model.sample(5, given={"at": "2016-02-03 08:05:30"}, seed=0)


def test_the_accuracy_names_the_parts(model):
    assert model.accuracy_.counts("at (time of day)")["at (time of day)"].str.contains(":").any()
    assert "Monday" in model.accuracy_.counts("at (day of week)")["at (day of week)"].tolist()


def test_a_target_of_times_is_one_attribute():
    fit = PrivSyn(epsilon=1.0, delta=1e-9, schema=schema_of(), seed=0, target="at").fit(trips(500))
    assert fit.release_.codec.split == ()


@pytest.mark.parametrize("cycles", ["day", ["week"], ["hour"]])
def test_unknown_cycles_are_refused(cycles):
    with pytest.raises(InputError, match=r"cycles are \[day, week\], \[day\] or \[\]"):
        Datetime(cycles=cycles)
