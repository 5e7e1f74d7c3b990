"""A draft proposes look-ups and classes of numbers that nearly all rows keep, and no accident."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from command import run
from drafts import draft_text

from privsyn import Categorical, PrivSyn
from privsyn.table.drafting import dependences
from privsyn.table.drafting.draft import check_schema
from privsyn.table.schema.yaml_file import from_plain, parse, read_schema

N = 3000


def proposals(rows):
    """The proposed constraints, and the lines of the draft that have them."""
    lines = [line[1:] for line in draft_text(rows).partition("\nconstraints:\n")[2].splitlines()]
    return parse("\n".join(lines)) or [], "\n".join(lines)


def schema(rows):
    before, mark, after = draft_text(rows).partition("\nconstraints:\n")
    return from_plain(parse(before + mark + after.replace("\n#", "\n").removeprefix("#")))


def shops(wrong=0):
    """A shop of each row, its kind, and its size; some rows have the kind of another shop."""
    rng = np.random.default_rng(0)
    shop = rng.integers(1, 46, N)
    kind = rng.permutation(np.repeat(["A", "B", "C"], 15))[shop - 1]
    kind[:wrong] = np.where(kind[:wrong] == "A", "B", "A")
    return pd.DataFrame({"shop": shop, "kind": kind, "size": rng.integers(20, 900, 45)[shop - 1]})


def test_a_column_of_numbers_determines_classes_and_numbers():
    rows = shops()
    found, said = proposals(rows)
    assert [(each["column"], each["by"]) for each in found] == [("kind", "shop"), ("size", "shop")]
    for each in found:
        assert dict(map(tuple, each["mapping"])) == dict(zip(rows["shop"], rows[each["column"]], strict=True))
    assert said.count("READ: 3,000 rows") == 2
    assert check_schema(rows, schema(rows)) == ["every cell fits", "every row keeps every constraint"]
    made = PrivSyn(3.0, 1e-9, schema(rows), method="published", seed=0).fit(rows).sample(500, seed=0)
    kind = dict(zip(rows["shop"], rows["kind"], strict=True))
    assert made["shop"].map(kind).eq(made["kind"]).all()
    assert set(made["shop"]) <= set(rows["shop"])  # other numbers than the keys do not occur


def test_few_exceptions_are_reported_and_many_are_no_proposal():
    found, said = proposals(shops(wrong=7))
    assert "7 break it" in said
    assert found[0]["mapping"] == proposals(shops())[0][0]["mapping"]
    assert any("7 of 3,000 rows break it" in line for line in check_schema(shops(7), schema(shops(7))))
    assert [each["column"] for each in proposals(shops(wrong=100))[0]] == ["size"]


def test_a_one_to_one_look_up_says_that_it_holds_both_ways():
    rng = np.random.default_rng(1)
    level = rng.integers(0, 5, N)
    names = np.array(["none", "low", "mid", "high", "top"])
    rows = pd.DataFrame({"level": names[level], "points": level * 3})
    [found], said = proposals(rows)
    assert (found["column"], found["by"]) == ("points", "level")
    assert "the reverse holds, too" in said


def test_many_values_that_lie_in_fewer_are_a_hierarchy_and_not_computed():
    """The noise that hides 40 places must not hide their 4 regions."""
    rng = np.random.default_rng(1)
    place = rng.integers(0, 40, N)
    rows = pd.DataFrame(
        {"region": np.array([*"ABCD"])[place // 10], "place": [f"p{code:02}" for code in place]}
    )
    rows.loc[:2, "region"] = np.where(rows["region"][:3] == "A", "B", "A")
    [rule], line = proposals(rows)
    assert rule["within"] == {"place": "region"}
    assert rule["table"] == [[f"p{code:02}", "ABCD"[code // 10]] for code in range(40)]
    assert "READ: 3,000 rows; 3 break it" in line
    assert any("3 of 3,000 rows break it" in line for line in check_schema(rows, schema(rows)))
    few = rows[place % 10 < 4]  # 16 places
    assert proposals(few)[0][0]["kind"] == "determined"


@pytest.mark.parametrize("places", [12, 60])
def test_rows_without_one_of_both_cells_keep_a_rule_in_the_draft_as_in_the_check(places):
    place = np.random.default_rng(1).integers(0, places, N)
    rows = pd.DataFrame({"place": [f"p{code}" for code in place], "region": np.array([*"ABCD"])[place % 4]})
    rows.loc[:5, "region"] = None
    line = proposals(rows)[1]
    assert "READ: 2,994 rows; 6 without one of both cells keep it" in line
    assert "break it" not in line
    assert check_schema(rows, schema(rows)) == ["every cell fits", "every row keeps every constraint"]


def test_a_key_of_few_rows_is_not_shown_but_counted():
    rows = shops()
    rare = pd.DataFrame({"shop": [7777, 8888, 8888], "kind": ["A", "B", "B"], "size": [3333, 4444, 4444]})
    _, said = proposals(pd.concat([rows, rare]))
    assert "3 break it; 3 of these only as their shop is rare, and so not listed" in said
    assert not any(number in said for number in ("7777", "8888", "3333", "4444"))


AGE = np.random.default_rng(2).integers(0, 95, N)


@pytest.mark.parametrize(
    ("numbers", "classes", "expected"),
    [
        (
            AGE,
            np.select([AGE < 18, AGE < 65], ["child", "adult"], "senior"),
            ["group == 'adult' iff x >= 18 and x < 65", "group == 'senior' iff x >= 65"],
        ),
        (AGE, (AGE >= 65).astype(int), ["group == 1 iff x >= 65"]),
        (AGE, (AGE < 18).astype(int), ["group == 1 iff x < 18"]),
        (AGE, np.where(AGE < 18, "no", "yes"), ["group == 'yes' iff x >= 18"]),
        (AGE * 7.31, np.where(AGE * 7.31 < 333.3, "low", "high"), ["group == 'high' iff x >= 330"]),
        (AGE * (AGE > 40), (AGE > 40).astype(int), ["group == 1 iff x > 0"]),
        (
            pd.Timestamp("2022-01-01") + pd.to_timedelta(AGE * 10, "D"),
            np.where(AGE * 10 < 365, "2022", np.where(AGE * 10 < 730, "2023", "2024")),
            [
                "group == '2023' iff x >= '2023-01-01' and x < '2024-01-01'",
                "group == '2024' iff x >= '2024-01-01'",
            ],
        ),
    ],
)
def test_classes_of_numbers_or_dates_are_proposed_with_round_bounds(numbers, classes, expected):
    rows = pd.DataFrame({"x": numbers, "group": classes})
    assert proposals(rows)[0] == expected
    assert check_schema(rows, schema(rows))[-1] == "every row keeps every constraint"


def test_classes_that_few_different_numbers_separate_by_accident_are_not_proposed():
    """One agent with the largest number has a flag of its own: its 60 rows are one piece of evidence."""
    rng = np.random.default_rng(3)
    agent = rng.choice(np.sort(rng.choice(5000, 50, replace=False)) + 0.5, N)
    assert proposals(pd.DataFrame({"agent": agent, "flag": (agent == agent.max()).astype(int)}))[0] == []


@pytest.mark.slow
def test_independent_columns_and_persons_are_not_proposed():
    """A panel of persons, ten rows each: their number determines their sex, but it is no code table."""
    rng = np.random.default_rng(4)
    for n in (200, 500, N):
        rows = {f"n{k}": rng.integers(0, 10 ** (k % 3 + 1), n) for k in range(12)}
        rows |= {f"c{k}": rng.choice([*"abcd"], n, p=[0.97, 0.01, 0.01, 0.01]) for k in range(6)}
        rows |= {f"r{k}": rng.normal(size=n) for k in range(3)}
        assert proposals(pd.DataFrame(rows))[0] == []
    for persons in (100, 300):
        person = np.repeat(np.arange(persons), 10)
        sex = rng.choice(["F", "M"], persons)[person]
        text = draft_text(pd.DataFrame({"nr": person, "sex": sex, "x": rng.normal(size=10 * persons)}))
        assert "constraints:" not in text


@pytest.fixture
def codes(tmp_path):
    """A CSV of 20,000 firms with 400 industry codes, also as text, some rare ones, and two classes."""
    rng = np.random.default_rng(5)
    code = rng.choice(9000, 400, replace=False) + 1000
    code[7] = 9999
    which = rng.integers(0, 400, 20_000)
    section, share = rng.choice([*"ABCDEFGH"], 400), rng.integers(1, 9, 400) * 10
    rows = pd.DataFrame({"nace": code[which], "section": section[which], "share": share[which]})
    rows.loc[:2, "nace"] = 777
    rows["text"] = np.char.add("C", code.astype(str))[which]
    rows.to_csv(tmp_path / "firms.csv", index=False)
    return tmp_path / "firms.csv"


def test_a_table_of_hundreds_of_codes_is_a_look_up_beside_the_draft(codes, capsys):
    assert run(capsys, "schema", codes, "-o", codes.with_name("firms.yaml")).code == 0
    [path] = codes.parent.glob("firms.*.csv")
    text = codes.with_name("firms.yaml").read_text()
    assert (
        "#- within: {text: section}\n#  table: firms.text.csv" in text
    )  # each of many texts lies in one section
    assert "A look-up is published." in text
    table = pd.read_csv(path).set_index("text")
    assert len(table) == 400
    assert {"section", "share"} <= set(table)
    before, mark, after = text.partition("\nconstraints:\n")
    codes.with_name("firms.yaml").write_text(before + mark + after.replace("\n#", "\n").removeprefix("#"))
    checked = run(capsys, "schema", codes, "--check", codes.with_name("firms.yaml"))
    assert "every cell fits" in checked.out
    schema = read_schema(codes.with_name("firms.yaml"))
    made = PrivSyn(3.0, 1e-9, schema, method="published", seed=0).fit(codes).sample(300, seed=0)
    given = made.dropna()
    assert len(given) > 250
    assert given["text"].map(table["section"]).eq(given["section"]).all()


@pytest.mark.slow
def test_rare_keys_of_a_look_up_are_missing_with_it_and_no_key_is_listed_without_it(tmp_path, capsys):
    """The list of a column that cannot be missing would give each rare one the first value."""
    rng = np.random.default_rng(7)
    which = np.append(rng.integers(0, 300, 9000), 300 + np.arange(700) // 2)
    sites = rng.integers(1, 90, 650)[which]
    names = np.char.add("house ", which.astype(str))
    pd.DataFrame({"name": names, "sites": sites, "n": rng.integers(0, 50, 9700)}).to_csv(
        tmp_path / "t.csv", index=False
    )
    assert run(capsys, "schema", tmp_path / "t.csv", "-o", tmp_path / "s.yaml").code == 0
    before, mark, after = (tmp_path / "s.yaml").read_text().partition("\nconstraints:\n")
    assert "lookup: s.name.csv" in after
    (tmp_path / "s.yaml").write_text(before)
    assert read_schema(tmp_path / "s.yaml").columns["name"] == Categorical()
    (tmp_path / "s.yaml").write_text(before + mark + after.replace("\n#", "\n").removeprefix("#"))
    schema = read_schema(tmp_path / "s.yaml")
    made = PrivSyn(3.0, 1e-9, schema, seed=0).fit(tmp_path / "t.csv").sample(9000, seed=0)
    assert abs(made["name"].isna().mean() - 700 / 9700) < 0.01
    assert made["name"].value_counts(normalize=True).max() < 0.01


def test_without_a_file_the_draft_says_how_to_get_the_look_up(codes):
    assert "With -o FILE this look-up is written beside the draft." in draft_text(codes)


def many_kinds(n=4000):
    """A table of 55 columns: codes, classes, look-ups with exceptions, sums, gaps, dates and money."""
    rng = np.random.default_rng(6)
    rows = {"customer_id": np.arange(n)}
    agent, shop, age = rng.integers(0, 80, n), rng.integers(1, 46, n), rng.integers(16, 95, n)
    rows["agent"] = np.sort(rng.choice(np.arange(1, 500), 80, replace=False))[agent]
    rows |= {f"fee{k}": (50 + 9 * rng.normal(size=80)[agent] + rng.normal(size=n)).round(1) for k in range(6)}
    rows["shop"], rows["shop_kind"] = shop, rng.choice([*"ABC"], 45)[shop - 1]
    rows["shop_kind"][:9] = rng.permutation(rows["shop_kind"][:9])
    rows["floor_area"] = (rng.integers(10, 90, 45) * 10)[shop - 1]
    rows |= {"age": age, "age_group": np.select([age < 18, age < 65], ["child", "adult"], "senior")}
    rows |= {"retired": (age >= 65).astype(int), "working_age": ((age >= 18) & (age < 65)).astype(int)}
    day = pd.Series(pd.Timestamp("2021-02-10") + pd.to_timedelta(rng.integers(0, 900, n), "D"))
    left = day + pd.to_timedelta(rng.integers(0, 40, n), "D")
    rows |= {"arrived": day.dt.strftime("%d.%m.%Y"), "left": left.dt.strftime("%d.%m.%Y")}
    rows |= {"year": day.dt.year, "month": day.dt.month}
    rows["seen"] = day.dt.strftime("%d.%m.%Y").where(rng.random(n) < 0.8, day.dt.strftime("%Y-%m-%d"))
    parts = rng.gamma(2, 100, (3, n)).round(2)
    rows |= {f"part{k}": part for k, part in enumerate(parts)} | {"bill": parts.sum(axis=0).round(2)}
    rows["price"] = [f"${x:,.2f}" for x in rng.gamma(2, 900, n)]
    married = rng.choice(["yes", "no"], n)
    rows |= {"married": married, "spouse_age": np.where(married == "yes", age, np.nan)}
    rows |= {f"answer{k}": rng.integers(1, 6, n) for k in range(12)}
    rows |= {f"flag{k}": (rng.random(n) < 0.2).astype(int) for k in range(6)}
    rows |= {f"kind{k}": rng.choice(["x", "y", "z"], n) for k in range(5)}
    rows |= {f"size{k}": rng.normal(170, 10, n).round(1) for k in range(5)}
    return pd.DataFrame(rows)


@pytest.mark.slow
def test_of_a_table_with_55_columns_a_person_changes_two_lines_and_no_proposal_is_a_trap(tmp_path):
    many_kinds().to_csv(tmp_path / "wide.csv", index=False)
    assert many_kinds().shape[1] == 55
    text = draft_text(tmp_path / "wide.csv")
    asked = [line for line in text.splitlines() if "CODES?" in line or "SEVERAL FORMATS" in line]
    assert len(asked) == 2  # agent and seen
    assert not any(word in text for word in ("WIDE", "UNIQUE", "REPEATED", "RARE", "multiples of 1."))
    found = parse("\n".join(line[1:] for line in text.partition("\nconstraints:\n")[2].splitlines()))
    assert [each if isinstance(each, str) else (each["column"], each["by"]) for each in found] == [
        "bill == part0 + part1 + part2",
        ("retired", "age_group"),
        ("working_age", "age_group"),
        ("shop_kind", "shop"),
        ("floor_area", "shop"),
        "age_group == 'adult' iff age >= 18 and age < 65",
        "age_group == 'senior' iff age >= 65",
        "year == 2022 iff arrived >= '2022-01-01' and arrived < '2023-01-01'",
        "year == 2023 iff arrived >= '2023-01-01'",
        "arrived <= left",
        "spouse_age is missing iff married == 'no'",
    ]


def seldom_differing(codes, k):
    """The slow twin: all pairs of neighbouring rows with the same key, for all columns."""
    ordered = codes[:, np.argsort(codes[k], kind="stable")]
    same = np.diff(ordered[k]) == 0
    differ = (np.diff(ordered, axis=1) != 0)[:, same].sum(axis=1)
    varies = (codes != codes[:, :1]).any(axis=1)
    return set(np.flatnonzero((differ <= 0.03 * same.sum() + 4) & varies).tolist()) - {k}


@pytest.mark.parametrize("n", [30, 2000])
@pytest.mark.parametrize("seed", range(3))
def test_the_screen_passes_the_columns_that_all_pairs_of_rows_would_pass(seed, n):
    rng = np.random.default_rng(seed)
    hidden = rng.integers(0, 20, n)
    wrong = rng.random((30, n)) < rng.choice([0.0, 0.005, 0.01, 0.02, 0.3], 30)[:, np.newaxis]
    follows = [rng.integers(0, size, 20)[hidden] for size in rng.integers(1, 8, 30)]
    codes = np.vstack([hidden, np.where(wrong, rng.integers(-1, 8, (30, n)), follows)])
    rows = np.ascontiguousarray(codes.T, np.int32)
    found = [dependences._seldom_differing(rows, k) for k in range(31)]
    assert found == [seldom_differing(codes, k) for k in range(31)]
    assert any(found)


@pytest.mark.parametrize("border", [2323, 2327])
def test_a_bound_of_a_rule_gives_no_number_of_few_rows_away(border):
    """Drafted was "uid > 20082322 implies answer is missing", and one person had the number 20082322."""
    uid, later = 20_080_000 + np.arange(N), np.arange(N) >= border
    answer = np.where(later, np.nan, np.random.default_rng(border).integers(1, 4, N))
    rows = pd.DataFrame({"uid": uid, "answer": answer, "group": np.where(later, "late", "early")})
    text = draft_text(rows.sample(frac=1, random_state=0))
    assert not any(str(uid[border + k]) in text for k in (-1, 0, 1))
    assert "#- answer is missing iff group == 'late'" in text
    repeated = pd.concat([rows[["uid", "answer"]]] * 5)  # five rows have each number
    assert f"#- answer is missing iff uid > {uid[border - 1]}" in draft_text(repeated)


def test_a_date_between_classes_gives_no_time_of_few_rows_away():
    seconds = np.sort(np.random.default_rng(0).integers(0, 86400 * 30, N))
    seen = pd.Timestamp("2024-01-01") + pd.to_timedelta(seconds, "s")
    for border, named in ((N // 2, False), (np.searchsorted(seconds, 86400 * 15), True)):
        rows = pd.DataFrame({"seen": seen, "form": np.where(np.arange(N) < border, "old", "new")})
        text = draft_text(rows)
        assert ("form == 'new' iff seen >= '2024-01-16'" in text) == named
        assert str(seen[border]) not in text
        assert str(seen[border - 1]) not in text


def test_classes_of_numbers_may_be_missing_by_another_column():
    """The main rule of the table stood in no draft: a class was drafted, and its missing cells forgotten."""
    rng = np.random.default_rng(0)
    status = rng.choice(["hurricane", "storm", "low"], N)
    wind = np.where(status == "hurricane", rng.integers(65, 150, N), rng.integers(10, 65, N))
    category = pd.cut(pd.Series(wind), [0, 83, 96, 113, 500], labels=False).where(status == "hurricane")
    rows = pd.DataFrame({"status": status, "wind": wind + 0.5, "category": category})
    constraints, _ = proposals(rows)
    assert "category == 1.0 iff wind >= 84 and wind < 97" in constraints
    assert "category is missing iff status in ['low', 'storm']" in constraints
