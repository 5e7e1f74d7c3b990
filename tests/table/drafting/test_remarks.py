"""A draft remarks on each oddity of a table, marks it as read, and proposes the line that follows from it."""

from __future__ import annotations

import re

import numpy as np
import pandas as pd
import pytest
import yaml
from drafts import comments, draft_text
from hypothesis import assume, given
from strategies import tables

from privsyn import Categorical, InputError, Numerical, PrivSyn, Schema, Text, Time
from privsyn.errors import ColumnWarning
from privsyn.table.drafting.draft import check_schema, draft_schema
from privsyn.table.drafting.remarks import remarks_on
from privsyn.table.encoding.dtypes import TEXT
from privsyn.table.schema.yaml_file import from_plain, parse

N = 2000
NACE = [
    1071,
    2211,
    2550,
    3011,
    3320,
    4120,
    4321,
    4711,
    5610,
    6201,
    6910,
    7010,
    7311,
    7490,
    8010,
    8121,
    8411,
    9602,
]


def odd(n=N):
    """A table with each of the oddities that a draft remarks on."""
    rng = np.random.default_rng(0)
    start = pd.Timestamp("2022-01-01") + pd.to_timedelta(rng.integers(0, 600, n), "D")
    paid = start + pd.to_timedelta(rng.integers(0, 30, n), "D")
    married = rng.choice(["yes", "no"], n)
    city = rng.choice(["Oslo", "Bergen", "Rome", "Milan"], n)
    age = rng.integers(0, 90, n)
    room, extras = rng.gamma(3, 50, n).round(2), rng.gamma(1, 20, n).round(2)
    pay = rng.integers(10, 90, n) * 100
    pay[:40] += 37
    return pd.DataFrame(
        {
            "patient_id": rng.integers(0, 500, n),
            "visitor": [f"V{k:04d}" for k in rng.integers(0, 500, n)],
            "case": [f"C{k:05d}" for k in range(n)],
            "start": start,
            "paid": paid,
            "closed at": paid + pd.to_timedelta(rng.integers(1, 9, n), "D"),
            "city": city,
            "country": np.where(np.isin(city, ["Oslo", "Bergen"]), "Norway", "Italy"),
            "town": city,
            "married": married,
            "spouse": np.where(married == "yes", rng.choice(["a", "b"], n), None),
            "age": age,
            "job": np.where(age < 15, None, rng.choice(["cook", "baker"], n)),
            "empty": np.full(n, np.nan),
            "grade": rng.choice([1, 2, 3, 5, 6], n),
            "ward": rng.choice(["W01", "W02", "W04"], n),
            "nace": rng.choice([*NACE, 9999, 1500, 1700, 2800], n),
            "kind": rng.choice([*NACE, 9999, 1500, 1700, 2800], n),
            "room": room,
            "extras": extras,
            "bill": (room + extras).round(2),
            "pay": pay,
            "gain": np.where(np.arange(n) < n - 5, rng.normal(3000, 500, n).round(), 1e6),
            "cars": np.where(rng.random(n) < 0.2, -9, rng.poisson(6, n)),
        }
    )


@pytest.fixture(scope="module")
def drafted():
    return draft_text(odd())


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("patient_id", "--unit patient_id: it protects persons, not rows."),
        ("visitor", "READ: REPEATED, 4.1 rows for each value. If it names persons, leave this line out and"),
        (
            "case",
            "READ: UNIQUE, nearly every row has a text of its own. If it names the row: {kind: identifier}.",
        ),
        (
            "empty",
            "READ: EMPTY, no cell is given, so it is left out. If later rows have some: {kind: categorical}.",
        ),
        ("grade", "Codes or classes? Then list them: {kind: categorical, values: [ ]}."),
        ("ward", "READ: gaps, not listed are W03."),
        ("nace", "NAMED LIKE CODES, not amounts?"),
        ("kind", "READ: CODES? 22 different numbers, in which the next one says little."),
        ("pay", "READ: 98 % are multiples of 100. If all should be: {kind: numerical, step: 100}."),
        ("gain", "READ: {low: 1500, high: 4500} cut 0.7% of the numbers, and the mean falls by 45.3%."),
        ("cars", "READ: -9 is the only number below 0. A code for missing? Then add {missing: ['-9',"),
    ],
)
def test_a_draft_remarks_on_each_oddity_of_a_column(drafted, name, words):
    assert words in comments(drafted)[name]


def test_an_identifier_that_occurs_twice_is_remarked_on_whatever_its_type():
    for cells in ([[1], [2], [1]], [1, 2, 1], ["a", "b", "a"]):
        said = comments(draft_text(pd.DataFrame({"key_id": cells * 20, "x": range(60)})))
        assert "READ: REPEATED. If a person may have several rows" in said["key_id"]
    assert "REPEATED" not in str(comments(draft_text(pd.DataFrame({"key_id": range(60), "x": range(60)}))))


@pytest.mark.parametrize("cells", [[7, 8, np.nan, np.nan, np.nan], ["k7", "k8", None, None, None]])
@pytest.mark.parametrize("is_file", [False, True])
def test_the_line_drafted_for_missing_identifiers_keeps_which_rows_have_one(tmp_path, cells, is_file):
    table = frame = pd.DataFrame({"key_id": cells * 400, "x": range(2000)})
    if is_file:
        table = tmp_path / "t.csv"
        frame.to_csv(table, index=False)
    text = draft_text(table)
    remark = comments(text)["key_id"]
    assert "READ: MISSING, 60.0% of the cells; in synthetic rows none is." in remark
    line = yaml.safe_load(re.search(r"no identifier: (\{.*?\})", remark)[1])
    plain = parse(text)
    plain["columns"]["key_id"] = line
    sample = PrivSyn(2.0, 1e-9, from_plain(plain), seed=0).fit(table).sample()
    assert sample["key_id"].isna().mean() == pytest.approx(0.6, abs=0.05)
    assert len({*sample["key_id"].dropna()}) == 1
    whole = draft_text(frame.assign(key_id=range(2000)))
    assert "MISSING" not in whole


def test_numbers_that_a_year_tells_apart_may_name_persons_whatever_their_name():
    """Before, `nr` of a panel got no hint: neither its name nor its numbers say that they are codes."""
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(
        {"nr": np.repeat(7 + rng.permutation(900)[:150], 4), "year": np.tile(range(1980, 1984), 150)}
    )
    frame = frame.assign(age=rng.integers(20, 60, 600), wage=rng.integers(100, 900, 600))
    said = comments(draft_text(frame))
    line = "READ: REPEATED, 4.0 rows for each number, no two of them with the same year. If it names persons,"
    assert line in said["nr"]
    assert [name for name in frame if "--unit" in said[name]] == ["nr"]
    again = frame.assign(year=rng.integers(1980, 1984, 600))
    assert "--unit" not in str(comments(draft_text(again)))


def test_of_a_scale_with_codes_for_missing_answers_the_line_is_written():
    answers = np.resize([1, 2, 3, 4, 5], N)
    rows = {"one": np.where(np.arange(N) % 19, answers, 99), "two": np.where(np.arange(N) % 17, answers, 98)}
    rows["two"] = np.where(np.arange(N) % 13, rows["two"], 99)
    rows |= {"list": np.resize([1, 2, 3, 8, 12], N), "long": np.resize(range(10), N)}
    said = comments(draft_text(pd.DataFrame(rows)))
    line = "{kind: numerical, low: 1, high: 5, integer: true, missing: ['99', '99.0']}"
    assert f"READ: 99 beside 1 to 5. A code for missing, and a scale? Then write {line}." in said["one"]
    assert "READ: 98 and 99 beside 1 to 5." in said["two"]
    assert not any("beside" in said.get(name, "") for name in ("list", "long"))


def test_whole_numbers_named_like_codes_are_asked_about():
    rows = {name: np.arange(N) for name in ("zip", "ZipCode", "plz5", "area_code", "post.code")}
    rows |= {name: np.arange(N) for name in ("zipper", "coded", "width", "idle")}
    rows |= {"code_share": np.linspace(0, 1, N)}
    named = {name for name, said in comments(draft_text(pd.DataFrame(rows))).items() if "LIKE CODES" in said}
    assert named == {"zip", "ZipCode", "plz5", "area_code", "post.code"}


def proposals(text):
    """The proposed constraints, without the # before them."""
    return [line[1:] for line in text.partition("\nconstraints:\n")[2].splitlines()]


def test_a_draft_proposes_the_constraints_that_all_rows_keep(drafted):
    assert "# READ: every row keeps these, unless" in drafted
    assert parse("\n".join(proposals(drafted))) == [
        "town == city",
        "bill == room + extras",
        {
            "kind": "determined",
            "column": "country",
            "by": "city",
            "mapping": {"Bergen": "Norway", "Milan": "Italy", "Oslo": "Norway", "Rome": "Italy"},
        },
        "start <= paid",
        "paid < `closed at`",
        "spouse is missing iff married == 'no'",
        "job is missing iff age < 15",
    ]


def test_a_draft_remarks_nothing_about_columns_without_oddities():
    rng = np.random.default_rng(1)
    plain = pd.DataFrame(
        {
            "a": rng.choice(["x", "y", "z"], N),
            "b": np.where(rng.random(N) < 0.2, None, rng.choice(["u", "v"], N)),
            "c": rng.normal(0, 1, N).round(2),
            "d": rng.integers(0, 500, N),
            "e": pd.Timestamp("2022-01-01") + pd.to_timedelta(rng.integers(0, 600, N), "D"),
            "f": pd.Timestamp("2022-01-01") + pd.to_timedelta(rng.integers(0, 600, N), "D"),
        }
    )
    text = draft_text(plain)
    assert "constraints" not in text
    assert not any(word in text for word in ("CODES", "gaps", "UNIQUE", "REPEATED", "EMPTY", "WIDE", "%"))


def uncommented(text):
    """The draft without the # before its proposals."""
    before, mark, proposed = text.partition("\nconstraints:\n")
    return before + mark + proposed.replace("\n#", "\n").removeprefix("#")


@pytest.mark.slow
@given(tables())
def test_every_table_has_remarks_that_change_nothing_but_the_bounds_of_sums(drawn):
    assume(len(drawn[1]))
    rows = pd.concat([drawn[1]] * 40, ignore_index=True)  # enough of them for remarks
    text = draft_text(rows)
    assert list(from_plain(parse(text)).columns) == list(rows)
    reviewed = uncommented(text)
    from_plain(parse(reviewed))


def test_a_draft_without_rows_makes_no_remark():
    assert draft_text(odd(), read=False) == draft_text(odd().iloc[:0], read=False)
    assert "READ:" not in draft_text(odd(), read=False)


def test_a_draft_of_no_rows_is_refused_and_says_how_to_draft():
    with pytest.raises(InputError, match="no rows to draft from: --from-dtypes"):
        draft_text(odd().iloc[:0])


def test_a_column_without_a_cell_is_drafted_so_that_its_values_cost_nothing(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("a,empty\n" + "x,\ny,\n" * 20)
    for table in (path, pd.DataFrame({"a": ["x", "y"] * 20, "empty": np.nan})):
        schema = from_plain(parse(draft_text(table)))
        assert schema.columns["empty"] == Text()
        with pytest.warns(ColumnWarning, match="'empty'"):  # pure epsilon takes no open values
            assert list(PrivSyn(1.0, 0.0, schema, seed=0).fit(table).sample(3, seed=0)) == ["a"]


def test_texts_with_a_decimal_comma_or_a_nul_are_remarked():
    remark = "READ: NUMBERS WITH A DECIMAL COMMA? Draft again with: --decimal ,"
    found = {
        "1,5": [remark],
        "-1.234,50": [f"{remark} --thousands ."],
        "1,2,3": [],
        "1.2,3": [],
        "x\0": ["READ: NUL, some cell has this character. Is the file damaged?"],
    }
    for cell, said in found.items():
        assert remarks_on("a", Categorical(), pd.Series([cell], dtype=TEXT)) == said


def test_proposed_constraints_hold_when_only_their_own_sign_is_removed():
    text = draft_text(pd.DataFrame({"a": np.arange(900) % 41, "b": np.arange(900) % 41 + np.arange(900) % 3}))
    assert not from_plain(parse(text)).constraints
    assert from_plain(parse(text.replace("\n#- a <= b", "\n- a <= b"))).constraints


@pytest.mark.parametrize(
    ("low", "high", "most", "is_proposed"),
    [
        ("pemploy", "ptype", 9, False),  # two scales of codes that have nothing in common
        ("pemploy", "ptype", 5, True),  # one scale
        ("rank_first", "rank_last", 9, True),  # named alike
        ("paid", "loan", 90, False),  # a code beside amounts
    ],
)
def test_scales_of_codes_are_ordered_only_if_they_share_ends_or_a_name(low, high, most, is_proposed):
    rng = np.random.default_rng(0)
    codes = rng.integers(1, 6, N)
    above = np.minimum(codes + rng.integers(0, most, N), max(most, 5))
    assert (f"{low} <= {high}" in draft_text(pd.DataFrame({low: codes, high: above}))) == is_proposed


def test_a_structural_gap_that_is_no_rule_in_both_directions_is_an_implication():
    rng = np.random.default_rng(2)
    kind, size = rng.choice(["a", "b"], N), rng.integers(0, 50, N)
    rows = pd.DataFrame(
        {
            "kind": kind,
            "size": size,
            "x": np.where((kind == "a") | (rng.random(N) < 0.1), None, "x"),
            "y": np.where((size > 40) | (rng.random(N) < 0.1), None, "y"),
            "z": np.where(rng.random(N) < 0.5, None, "z"),
        }
    ).assign(z_too=lambda rows: rows["z"])
    rows["z_too"] = rows["z_too"].replace({"z": "other"})
    assert parse("\n".join(proposals(draft_text(rows)))) == [
        "kind == 'a' implies x is missing",
        "size > 40 implies y is missing",
        "z_too is missing iff z is missing",
    ]


@pytest.mark.parametrize(("rows_of_a", "is_proposed"), [(18, False), (40, True)])
def test_an_implication_needs_thirty_rows(rows_of_a, is_proposed):
    rng = np.random.default_rng(2)
    kind = np.where(np.arange(N) < rows_of_a, "a", np.where(rng.random(N) < 0.5, "b", "c"))
    x = np.where((kind == "a") | (rng.random(N) < 0.1), None, rng.choice(["x", "y"], N))
    text = draft_text(pd.DataFrame({"kind": kind, "x": x}))
    assert ("kind == 'a' implies x is missing" in text) is is_proposed


@pytest.mark.parametrize(
    ("job_too", "expected"),
    [
        ("none", "job is missing iff work == 'never'"),
        ("all", "job is missing iff work == 'never' or work is missing"),
        ("half", "work == 'never' implies job is missing"),
    ],
)
def test_rows_in_which_the_deciding_cell_is_missing_count_like_all_others(job_too, expected):
    rng = np.random.default_rng(3)
    work = pd.Series(rng.choice(["never", "state", "firm"], N)).where(rng.random(N) > 0.1)
    unknown = work.isna() & {"none": False, "all": True, "half": rng.random(N) < 0.5}[job_too]
    job = pd.Series(rng.choice(["clerk", "cook"], N)).mask((work == "never") | unknown)
    table = pd.DataFrame({"work": work, "job": job})
    assert parse("\n".join(proposals(draft_text(table)))) == [expected]


def test_rare_values_that_the_list_leaves_out_are_no_structural_gap():
    rows = np.arange(1000)
    kind = np.where(rows > 995, np.char.add("rare", rows.astype(str)), np.where(rows % 2, "x", "y"))
    draft = draft_text(pd.DataFrame({"kind": kind, "area": rows}))
    assert "RARE, 4 values" in draft
    assert "is missing" not in draft


@pytest.mark.slow
def test_of_a_table_with_46_columns_a_person_writes_no_line():
    """They remove the # before what anybody may know; the result fits all rows, and can be fitted."""
    rng = np.random.default_rng(3)
    ill = rng.choice(["no", "yes"], N)
    wide = odd().drop(columns=["case", "visitor", "gain", "nace", "kind", "cars"])
    region = wide["country"].map({"Norway": "North", "Italy": "South"})
    wide = wide.assign(
        **{f"q{k}": rng.integers(1, 6, N) for k in range(12)},
        **{f"amount{k}": rng.gamma(2, 300, N).round(2) for k in range(4)},
        **{f"flag{k}": rng.random(N) < 0.3 for k in range(4)},
        ill=ill,
        **{f"ill{k}": np.where(ill == "yes", rng.choice(["x", "y"], N), None) for k in range(4)},
        region=region,
        weight=rng.normal(70, 10, N).round(1),
        height=rng.normal(170, 10, N).round(),
    )
    assert wide.shape[1] == 46
    text = draft_text(wide)
    reviewed = uncommented(text)
    schema = from_plain(parse(reviewed))
    assert len(parse(reviewed)["constraints"]) == 12
    assert check_schema(wide, schema) == [
        "column 'empty': free text, left out of the synthetic table",
        "every cell fits",
        "every row keeps every constraint",
    ]
    with pytest.warns(ColumnWarning, match="'empty'"):
        made = PrivSyn(1.0, 1e-9, schema, method="published", seed=0).fit(wide).sample(300, seed=0)
    assert (made["start"] <= made["paid"]).all()
    assert (made["ill3"].isna() == (made["ill"] == "no")).all()
    assert made["town"].equals(made["city"])


def test_a_sum_of_three_and_more_is_proposed_also_of_sums():
    parts = np.random.default_rng(5).gamma(2, 100, (5, N)).round(2)
    rows = pd.DataFrame({f"p{k}": part for k, part in enumerate(parts)})
    rows = rows.assign(three=parts[:3].sum(axis=0).round(2), all=parts.sum(axis=0).round(2))
    text = draft_text(rows)
    assert parse("\n".join(proposals(text))) == ["three == p0 + p1 + p2", "all == p0 + p1 + p2 + p3 + p4"]
    assert check_schema(rows, from_plain(parse(uncommented(text)))) == [
        "every cell fits",
        "every row keeps every constraint",
    ]
    off = rows.assign(three=rows["three"] + 9 * (np.arange(N) == 7))
    assert "three ==" not in draft_text(off)


def test_a_sum_of_cells_that_are_rounded_one_by_one_is_proposed_with_the_rows_that_miss_it():
    """A part that is zero in nearly all rows has no weight in the first ones."""
    rng = np.random.default_rng(5)
    exact = rng.gamma(2, 100, (3, N)).round(3)
    exact[2, np.arange(N) % 50 > 0] = 0.0
    rows = pd.DataFrame({f"p{k}": part.round(2) for k, part in enumerate(exact)})
    rows["paid"] = exact.sum(axis=0).round(2)
    parts = rows[["p0", "p1", "p2"]].sum(axis=1)
    (line,) = proposals(draft_text(rows))
    broken = int(((rows["paid"] - parts).abs() > 1e-6 * parts).sum())
    assert line == f"- paid == p0 + p1 + p2  # READ: 2,000 rows; {broken:,} break it; by at most 0.01"


def test_equal_gaps_are_proposed_before_implications_and_each_says_its_rows():
    rng = np.random.default_rng(6)
    kind = np.repeat(["a", "b"], [600, N - 600])
    gone = (kind == "a") | (np.arange(N) >= N - 100)
    one, other = (np.where(gone, None, rng.choice(values, N)) for values in (["x", "y"], ["u", "v"]))
    lines = proposals(draft_text(pd.DataFrame({"kind": kind, "one": one, "other": other})))
    assert lines == [
        "- kind == 'a' implies one is missing  # READ: 600 rows",
        "- other is missing iff one is missing  # READ: 700 rows",
    ]


def test_a_bound_that_happens_to_separate_few_different_numbers_is_not_proposed():
    """Many rows of one agent are alike: that those of four agents have no firm shows nothing of a bound."""
    rng = np.random.default_rng(7)
    agent = rng.integers(1, 60, N)
    # All of the agents 1 to 4, by accident
    gone = np.append([True] * 5 + [False], rng.random(54) < 0.5)[agent]
    text = draft_text(pd.DataFrame({"agent": agent, "firm": np.where(gone, None, rng.choice(["x", "y"], N))}))
    assert "agent <" not in text


@pytest.mark.parametrize("step", [25_000, 2500, 250, 25, 2.5, 0.25, 50, 5])
def test_the_true_grid_is_drafted(step):
    numbers = np.random.default_rng(8).integers(1, 300, N) * step
    text = draft_text(pd.DataFrame({"a": numbers}))
    assert from_plain(parse(text)).columns["a"].step == step


def test_numbers_that_explain_other_columns_but_not_those_beside_them_may_be_codes():
    """Agents with gaps and postcodes of two lengths; not ages, days, years or amounts that rise and fall."""
    rng = np.random.default_rng(9)
    which, day = rng.integers(0, 60, 2 * N), rng.integers(1, 32, 2 * N)
    age, hours = rng.integers(18, 90, 2 * N), rng.integers(1, 400, 2 * N)
    numbers = {
        "agent": np.sort(rng.choice(np.arange(1, 400), 60, replace=False))[which],
        "area": np.sort(rng.choice(np.arange(500, 4000), 60, replace=False))[which],
        "age": age,
        "day": day,
        "year": 1980 + day,
        "hours": np.where(rng.random(2 * N) < 0.4, 40 * (hours // 40 + 1), hours),
    }
    rows = pd.DataFrame(numbers)
    noise = rng.normal(size=(6, 2 * N))
    rows[[f"by_agent{k}" for k in range(6)]] = (noise + rng.normal(size=(6, 60))[:, which]).T
    rows[[f"by_age{k}" for k in range(6)]] = (noise + abs(age - 50) / 20).T
    rows[[f"by_hours{k}" for k in range(6)]] = (noise + np.sin(hours / 60)).T
    asked = {name for name, said in comments(draft_text(rows)).items() if "CODES?" in said}
    assert asked == {"agent", "area"}


def test_dates_are_in_order_whatever_their_means_and_codes_for_missing_decide_nothing():
    """Open orders are late and not sent, so the mean date of orders is later than that of sending."""
    rng = np.random.default_rng(11)
    ordered = pd.Timestamp("2022-01-01") + pd.to_timedelta(np.sort(rng.integers(0, 600, N)), "D")
    sent = pd.Series(ordered + pd.to_timedelta(rng.integers(0, 3, N), "D")).where(np.arange(N) < N - 200)
    since = np.where(rng.random(N) < 0.2, -9, rng.integers(1950, 2020, N))
    until = np.where(since < 0, 1990, since) + rng.integers(0, 50, N)
    rows = pd.DataFrame({"ordered": ordered, "sent": sent, "since": since, "until": until})
    assert rows["ordered"].mean() > rows["sent"].mean()
    lines = proposals(draft_text(rows))
    assert any("ordered <= sent" in line for line in lines)
    assert not any("since" in line for line in lines)


def test_a_date_that_comes_some_days_after_another_is_proposed_and_the_days_keep_their_bounds():
    rng = np.random.default_rng(12)
    came = pd.Timestamp("2022-01-01") + pd.to_timedelta(rng.integers(0, 600, N), "D")
    nights = pd.Series(1 + rng.poisson(3, N).clip(0, 12), dtype="Int64").mask(np.arange(N) % 7 == 0)
    rows = pd.DataFrame({"came": came, "went": came + pd.to_timedelta(nights, "D"), "nights": nights})
    text = draft_text(rows)
    assert "went == came + nights" in parse("\n".join(proposals(text)))
    schema = from_plain(parse(uncommented(text)))
    assert schema.columns["nights"].bounds[1] <= 15
    assert check_schema(rows, schema)[0] == "every cell fits"
    off = rows.assign(nights=nights.where(np.arange(N) != 8, 1 + nights))
    assert "came + nights" not in draft_text(off)


@pytest.mark.parametrize(("name", "said"), [("uid", True), ("price", False)])
def test_numbers_of_little_more_than_a_row_may_name_persons_if_their_name_says_so(name, said):
    """Of 29,209 numbers in 33,830 rows nothing was said."""
    numbers = np.random.default_rng(0).permutation(90_000)[:2600] + 10_000
    table = pd.DataFrame({name: np.append(numbers, numbers[:400]), "grade": np.arange(3000) % 5})
    remarks = comments(draft_text(table))
    assert (f"add --unit {name}." in remarks.get(name, "")) == said


@pytest.mark.parametrize("name", ["student_no", "matrikelnr"])
def test_repeated_numbers_that_look_like_codes_may_name_persons_whatever_they_are_called(name):
    rng = np.random.default_rng(0)
    numbers = rng.choice(np.arange(30_000, 70_000), 250, replace=False)
    table = pd.DataFrame({name: numbers[rng.integers(0, 250, 3000)], "grade": rng.integers(1, 6, 3000)})
    of = comments(draft_text(table))
    assert f"add --unit {name}." in of[name]
    assert "--unit" not in of["grade"]


@pytest.mark.parametrize(
    ("key", "link", "kept"),
    [
        ("nr", "boss", True),
        ("employee_id", "manager_id", True),
        ("code", "fits_into", True),  # not by chance: keys with gaps
        ("nr", "age", False),
        ("customer_id", "spouse_age", False),
        ("nr", "referred_by", True),
    ],
)
def test_a_column_that_leads_to_another_row_is_left_out_and_said_to(key, link, kept):
    keys = np.arange(300) if link != "fits_into" else np.arange(300) * 977 + 13
    cells = keys[np.random.default_rng(1).integers(20, 60, 300)]
    text = draft_text(pd.DataFrame({key: keys, link: cells, "grade": np.arange(300) % 4}))
    assert ("SELF-REFERENCE" in text) == kept
    assert (f"{link}: {{kind: text}}" in text) == kept
    assert (f"{key}: {{kind: identifier}}" in text) or not kept


def test_a_code_of_nines_far_above_all_others_is_asked_about():
    rng = np.random.default_rng(3)
    ages = rng.integers(18, 90, 2000)
    frame = pd.DataFrame({"age": np.where(rng.random(2000) < 0.1, 999, ages), "size": ages * 10 + 99})
    text = draft_text(frame)
    assert "READ: 999 is far above all others. A code for missing? Then add" in " ".join(text.split())
    assert text.count("far above all others") == 1


def test_numbers_with_blanks_around_them_are_numbers():
    numbers = np.random.default_rng(3).integers(0, 500, 600)
    column = draft_schema(pd.DataFrame({"x": [f" {number} " for number in numbers]}, dtype=TEXT)).columns["x"]
    assert (column.low, column.high, column.integer, column.format) == (0, 500, True, "1234")


def test_hours_and_minutes_in_whole_numbers_are_named_and_none_are_drawn_that_the_clock_lacks():
    rng = np.random.default_rng(3)
    minutes = rng.integers(5 * 60, 1440, 2000)
    frame = pd.DataFrame({"dep": minutes // 60 * 100 + minutes % 60, "n": rng.integers(1, 1900, 2000)})
    text = draft_text(frame)
    assert text.count("READ: TIMES OF DAY?") == 1
    assert text.index("READ: TIMES OF DAY?") < text.index("  dep:") < text.index("  n:")
    times = Schema({"dep": Time(unit="m", format="%-H%M"), "n": Numerical(1, 1900, integer=True)})
    made = PrivSyn(1.0, 1e-9, times, seed=0).fit(frame).sample(500, seed=0)
    assert (made["dep"].dropna() % 100 < 60).all()


def test_a_draft_says_how_few_numbers_a_column_of_decimals_has():
    """Speeds in knots, written in miles: 36 numbers came out as 24,879, and no line said so."""
    rng = np.random.default_rng(0)
    knots = rng.integers(0, 30, 3000)
    frame = pd.DataFrame({"speed": knots * 1.15078, "log": np.log(knots + 1), "size": rng.normal(size=3000)})
    draft = draft_text(frame)
    assert "only 30 different numbers: rows get others too, unless `step: 1.15078` is given" in draft
    assert "only 30 different numbers: rows get others too, unless a `step` is given" in draft
    assert draft.count("different numbers") == 2


def test_a_draft_names_no_step_that_single_rows_show():
    amounts = np.append(np.zeros(6000), 27.1828 * np.arange(1, 14))
    draft = draft_text(pd.DataFrame({"amount": amounts, "with noise": np.arange(6013) % 7}))
    assert "unless a `step` is given" in draft
    assert "27.1" not in draft
