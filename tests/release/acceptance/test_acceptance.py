"""Criteria that a release must meet: what is tested, what it costs, and what is published."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
import yaml
from command import CANARY, run
from refusals import refuses
from replay import Tape
from scipy.stats import binom

from privsyn import Categorical, Increasing, InputError, Numerical, PrivSyn, Schema, load, read_schema, report
from privsyn.cli.survey import SCHEMA as SURVEY
from privsyn.private.measure import PrivateTable
from privsyn.private.noise import SeededGaussian
from privsyn.private.run_ledger import RunLedger
from privsyn.release.acceptance.criteria import read_criteria
from privsyn.release.acceptance.judge import SEED, _sides, _units, judge
from privsyn.release.acceptance.layout import SURE
from privsyn.release.table_model import TableModel
from privsyn.table.codec.codec import Codec

SCHEMA = Schema(
    {
        "sex": Categorical(["F", "M"]),
        "job": Categorical(["a", "b", "c"], nullable=False),
        "age": Numerical(0, 99, integer=True),
        "wide": Numerical(0.0, 1e6),
    }
)
CRITERIA = [
    {"margin": ["sex", "job"], "error": 0.1},
    {"margin": ["age", "sex"], "error": 0.2, "groups": 5},
    {"mean": "age", "within": 3.0},
    {"mean": "age", "within": 9.0, "where": {"sex": "F", "job": ["a", "b"]}},
    {"proportion": {"sex": "M", "age": {"low": 50}}, "within": 0.1},
    {"slope": "age", "against": {"sex": "F"}, "within": 9.0},
]


def people(rows=3000, seed=0):
    rng = np.random.default_rng(seed)
    sex = rng.choice(["F", "M", None], rows, p=[0.5, 0.4, 0.1])
    age = (rng.gamma(4, 10, rows) + 5 * (sex == "F")).astype(int)
    return pd.DataFrame(
        {"sex": sex, "job": rng.choice(["a", "b", "c"], rows), "age": age, "wide": rng.random(rows) * 1e6}
    )


def fitted(accept, epsilon=5.0, table=None, **settings):
    return PrivSyn(epsilon, 1e-6, SCHEMA, accept=accept, allow_weak_privacy=True, **settings).fit(
        people() if table is None else table
    )


def distance(real, synthetic):
    """The total variation distance of two series of hashable values."""
    a, b = (cells.value_counts(normalize=True) for cells in (real, synthetic))
    return a.sub(b, fill_value=0).abs().sum() / 2


def pairs(table):
    return table["sex"].astype(object).fillna("?") + table["job"].astype(object)


def test_what_is_tested_is_the_sample_of_the_stated_seed():
    """With hardly any noise the estimates are the errors of this very table."""
    real = people()
    model = fitted(CRITERIA, epsilon=500.0)
    made = model.sample(seed=SEED)
    estimates = [verdict.estimate for verdict in model.ledger_.acceptance.criteria]
    women = [t[(t["sex"] == "F") & t["job"].isin(["a", "b"])]["age"].mean() for t in (real, made)]
    old = [((t["sex"] == "M").fillna(False) & (t["age"] >= 50)).mean() for t in (real, made)]
    assert estimates[0] == pytest.approx(distance(pairs(real), pairs(made)), abs=1e-3)
    age = real["age"].clip(0, 99)
    assert estimates[2] == pytest.approx(abs(age.mean() - made["age"].mean()), abs=0.1)
    assert estimates[3] == pytest.approx(abs(women[0] - women[1]), abs=0.3)
    assert estimates[4] == pytest.approx(abs(old[0] - old[1]), abs=1e-3)
    assert model.ledger_.acceptance.met


def test_numbers_in_a_margin_are_compared_in_groups_of_equal_size():
    real, model = people(), fitted([CRITERIA[1]], epsilon=500.0)
    made, estimate = model.sample(seed=SEED), model.ledger_.acceptance.criteria[0].estimate
    ends = np.quantile(made["age"].dropna().astype(float), np.linspace(0, 1, 6))[1:-1]

    def cells(table):
        return np.digitize(table["age"].astype(float).clip(0, 99), ends).astype(str) + table["sex"].astype(
            object
        ).fillna("?")

    assert estimate == pytest.approx(distance(cells(real), cells(made)), abs=0.02)


@pytest.mark.slow
def test_a_table_just_above_its_bound_is_hardly_ever_accepted():
    """60 judgements of one release, whose distance from another table is just above what is allowed."""
    model = PrivSyn(5.0, 1e-6, SCHEMA, seed=0).fit(people())
    made, other = model.sample(seed=SEED), people(3000, 5).assign(job="a")
    error = distance(other["job"], made["job"].astype(object)) * 0.999
    criteria = read_criteria([{"margin": ["job"], "error": error}])
    codes, noise = model.release_.codec.encode(other.astype({"sex": "str"})), SeededGaussian(2)
    spent = model.release_.with_ledger(replace(model.ledger_, charges=()))
    verdicts = [judge(spent, criteria, PrivateTable(codes, noise), 0.01) for _ in range(60)]
    accepted = sum(verdict.ledger.acceptance.met for verdict in verdicts)
    assert accepted <= binom.ppf(1 - 1e-7, 60, criteria.risk)


@pytest.mark.parametrize("delta", [1e-6, 0])
def test_the_tests_take_their_share_of_the_budget(delta):
    model = PrivSyn(2.0, delta, SCHEMA, accept={"share": 0.25, "criteria": CRITERIA}).fit(people(500))
    tests = [spend for spend in model.ledger_.spends if spend.what.startswith("acceptance: ")]
    assert len(tests) == len(CRITERIA)
    assert sum(spend.cost for spend in tests) == pytest.approx(0.25 * model.ledger_.budget)
    # With Gaussian noise the sum is rounded: the margin of `accounting` covers the last bits of rho.
    assert 0.97 < model.ledger_.cost / model.ledger_.budget <= (1 + 1e-14 if delta else 1)


@pytest.mark.slow
@pytest.mark.parametrize("most", [3, None])
@pytest.mark.parametrize("delta", [1e-9, 0])
def test_the_rows_of_a_person_move_a_test_together(most, delta):
    """All of them are compared, and not only those within the bound of other questions."""
    table = people(3000).assign(who=np.arange(3000) // 3)
    # Without a seed, one run in 1,000 takes a bound of the number of rows that is not the bound of the test.
    settings = {"accept": [CRITERIA[0]], "unit": "who", "rows_per_unit": most, "seed": 0}
    model = PrivSyn(5.0, delta, SCHEMA, **settings).fit(table)
    (spend,) = (spend for spend in model.ledger_.spends if spend.what.startswith("acceptance: "))
    (rows,) = (spend for spend in model.ledger_.spends if spend.what.startswith("rows of all persons"))
    assert rows.sensitivity >= 3
    assert spend.cost == pytest.approx(0.1 * model.ledger_.budget)
    assert spend.sensitivity == rows.sensitivity * (2**16 + int(0.1 * 2**16))


def test_the_estimate_is_of_the_rows_that_are_counted():
    """At epsilon 40 the release errs by .01. The estimate was .07 when three of ten rows counted as ten."""
    table = people(12_000).assign(who=np.arange(12_000) // 10)
    model = fitted([{"margin": "job", "error": 0.1}], table=table, unit="who", rows_per_unit=3, epsilon=40.0)
    (verdict,) = model.ledger_.acceptance.criteria
    assert verdict.met
    assert verdict.estimate < 0.03
    assert verdict.safe > 0.05


def test_what_persons_with_many_rows_have_is_compared_with_all_their_rows():
    """At epsilon 40 the release errs by .02. Within the bound are two rows of twenty: they differ by .29."""
    numbers = np.repeat([1, 20], 2000)
    table = people(int(numbers.sum())).assign(who=np.repeat(np.arange(4000), numbers))
    table["job"] = np.where(np.repeat(numbers, numbers) > 1, "a", "b")
    model = fitted([{"margin": "job", "error": 0.1}], table=table, unit="who", rows_per_unit=2, epsilon=40.0)
    (verdict,) = model.ledger_.acceptance.criteria
    assert verdict.met
    assert verdict.estimate < 0.05


def test_the_verdict_is_kept_in_the_model_the_ledger_and_the_public_page(tmp_path):
    model = fitted({"risk": 1e-9, "criteria": [CRITERIA[0], {"margin": "job", "error": 1e-4}]})
    assert not model.ledger_.acceptance.met
    model.save(tmp_path / "m.privsyn")
    assert load(tmp_path / "m.privsyn").ledger == model.ledger_
    assert RunLedger.from_json(model.ledger_.to_json()) == model.ledger_
    assert "total variation of job at most 0.0001: NOT MET" in str(model.ledger_)
    report(model.release_, tmp_path / "page.html")
    page = (tmp_path / "page.html").read_text()
    assert "total variation of sex x job at most 0.1" in page
    assert "Not accepted" in page


def test_the_verdict_follows_from_released_answers_alone(tmp_path):
    one, other = people(800, 1), people(900, 2)
    left = []
    tape = Tape()
    for table, door in ((one, tape.record), (other, tape.replay)):
        with door():
            model = fitted(CRITERIA, table=table, seed=4)
        model.save(tmp_path / "m.privsyn")
        left.append((tmp_path / "m.privsyn").read_bytes())
    assert left[0] == left[1]


@pytest.mark.parametrize(
    ("accept", "words"),
    [
        ([{"margin": ["town"], "error": 0.1}], "column 'town' is not one of"),
        ([{"margin": [], "error": 0.1}], "a list of different columns"),
        ([{"margin": ["sex"], "error": 1.5}], "error must be above 0 and below 1"),
        ([{"margin": ["sex"]}], "'error' is missing"),
        ([{"margin": ["sex"], "error": 0.1, "groups": 1}], "groups must be a whole number of at least 2"),
        ([{"margin": ["sex"], "error": 0.1, "bins": 3}], "'bins' is not known: it has margin, error, groups"),
        ([{"margin": ["sex"], "eror": 0.1}], r"'eror' is not known; did you mean 'error'\?"),
        ([{"maen": "age", "within": 1}], r"names exactly one of .*; did you mean 'mean'\?"),
        ([{"mean": "agee", "within": 1}], r"column 'agee' is not one of .*; did you mean 'age'\?"),
        ([{"mean": ["age"], "within": 1}], "mean is the name of one column"),
        ([{"margin": 3, "error": 0.1}], "a list of different columns"),
        ([{"proportion": {"sex": "f"}, "within": 0.1}], r"'f' is not one of its values; did you mean 'F'\?"),
        ([{"proportion": {"age": {"low": 100}}, "within": 0.1}], "no value within its bounds meets"),
        ([{"proportion": {"age": 120}, "within": 0.1}], "no value within its bounds meets"),
        ([{"mean": "sex", "within": 1}], "'sex' is no column of numbers"),
        ([{"mean": "age", "within": 1, "where": {"age": 3}}], "both averaged and in a condition"),
        ([{"mean": "age", "within": 1, "where": {"sex": "X"}}], "'X' is not one of its values"),
        ([{"mean": "age", "within": 1, "where": {"sex": {"low": "F"}}}], "a range is"),
        ([{"mean": "age", "within": 1, "where": "sex"}], "conditions are a mapping"),
        ([{"mean": "wide", "within": 1.0}], "'wide' is counted in cells of up to 3906.25, and within is 1"),
        ([{"proportion": {}, "within": 0.1}], "at least one condition"),
        ([{"mean": "age", "proportion": {"sex": "F"}, "within": 1}], "names exactly one of"),
        (["age"], "is a mapping such as"),
        ("nowhere.yaml", "there is no such file"),
        ({"criteria": CRITERIA, "shares": 1}, "'shares' is not known"),
        ({"criteria": CRITERIA, "share": 1}, "share must be above 0 and below 1"),
        ({"criteria": CRITERIA, "risk": 0.5}, "risk must be above 0 and below 0.5"),
        ({"criteria": []}, "is a list"),
    ],
)
def test_criteria_that_cannot_be_tested_are_refused_before_anything_is_spent(accept, words):
    with refuses(words):
        fitted(accept)


def test_a_column_that_is_computed_or_has_open_values_is_refused_before_anything_is_spent():
    table = pd.DataFrame({"first": [1, 2] * 50, "last": [3, 4] * 50, "town": ["x", "y"] * 50})
    numbers = {name: Numerical(0, 9, integer=True, nullable=False) for name in ("first", "last")}
    schema = Schema({**numbers, "town": Categorical()}, constraints=[Increasing(["first", "last"])])
    for criterion, words in (
        ({"proportion": {"town": "x"}, "within": 0.1}, "a condition needs public values"),
        ({"margin": ["nobody"], "error": 0.1}, "'nobody' is not one of"),
    ):
        with refuses(words):
            PrivSyn(1.0, 1e-9, schema, accept=[criterion])
    twice = {**numbers, "twice": Numerical(0, 18, integer=True, nullable=False)}
    computed = Schema(twice, constraints=["twice == 2 * last"])
    with refuses("'twice' is computed from other columns"):
        accept = [{"mean": "twice", "within": 1}]
        PrivSyn(1.0, 1e-9, computed, accept=accept).fit(table.assign(twice=2 * table["last"])[[*twice]])
    with refuses("accept needs epsilon"):
        PrivSyn(schema=Schema({"a": Categorical(["x"], keep=0.5)}), accept=[{"margin": "a", "error": 0.1}])


def test_what_turns_out_to_be_impossible_later_is_a_verdict_and_no_error(monkeypatch):
    """After the budget is spent nothing may fail: the table is not accepted."""

    def fail(*_):
        raise InputError("no row was found that keeps the constraints")

    monkeypatch.setattr(TableModel, "blocks", fail)
    acceptance = fitted(CRITERIA).ledger_.acceptance
    assert {verdict.problem for verdict in acceptance.criteria} == {
        "no synthetic table can be drawn: no row was found that keeps the constraints"
    }
    assert not acceptance.met


def test_private_rows_of_a_cut_cell_are_taken_to_meet_a_condition_or_not_as_is_worse():
    """Half of the rows lie in one cell of numbers just below or above the end of a range that cuts it."""
    schema = Schema({"pay": Numerical(0.0, 1e6, nullable=False)})
    cells = Codec.for_table(schema, pd.DataFrame({"pay": [0.5]}), fine=True).cells()["pay"]
    low, high = (ends[cells.find(np.array([5e4]))[0]] for ends in (cells.lows, cells.highs))
    for place, at in ((0.3, 0.4), (0.3, 0.6), (0.95, 0.9)):  # of the rows, and where the range begins
        pay = np.append(np.full(1000, low + place * (high - low)), np.linspace(0, 1e6, 1000))
        real = pd.DataFrame({"pay": pay})
        range_ = {"low": float(low + at * (high - low))}
        criteria = [{"proportion": {"pay": range_}, "within": 0.1}]
        model = PrivSyn(500.0, 1e-6, schema, allow_weak_privacy=True, accept=criteria).fit(real)
        shares = [(table["pay"] >= range_["low"]).mean() for table in (real, model.sample(seed=SEED))]
        assert abs(shares[0] - shares[1]) > 0.12
        assert not model.ledger_.acceptance.met


def test_a_row_of_a_cut_cell_adds_as_much_as_if_it_met_the_condition_and_as_if_it_did_not():
    above, below = np.array([-3, 0, 5]), np.array([4, 0, -6])
    sure, possible = (np.array(mask) for mask in ([False, False, True], [False, True, True]))
    layout = SimpleNamespace(met=lambda least: np.tile(sure if least == SURE else possible, (3, 1)))
    for side, added in zip((above, below), _sides(layout, above, below), strict=True):
        outside, cut, inside = added.T
        assert not outside.any()
        assert cut.tolist() == np.maximum(side, 0).tolist()
        assert inside.tolist() == side.tolist()


def test_a_number_counts_as_the_end_of_its_cell_that_is_worse():
    lows, highs, middle, within = [0.0, 1.0, 5.0], [1.0, 5.0, 7.5], Fraction(13, 4), Fraction(1, 3)
    above, below, step = _units(lows, highs, middle, within)
    for low, high, up, down in zip(lows, highs, above.tolist(), below.tolist(), strict=True):
        assert 0 <= up * step - (Fraction(high) - middle - within) < step
        assert 0 <= down * step - (middle - Fraction(low) - within) < step


@pytest.mark.parametrize("delta", [1e-6, 0])
@pytest.mark.parametrize("share", [1e-20, 1 - 1e-16])
def test_a_share_that_leaves_no_budget_for_noise_is_refused_at_once(share, delta):
    with pytest.raises(InputError, match="exceeds every count"):
        PrivSyn(1.0, delta, SCHEMA, accept={"share": share, "criteria": CRITERIA})


def test_criteria_that_the_published_method_cannot_test_are_refused_before_anything_is_spent():
    with refuses("'age' is counted in cells of up to 3, and within is 2: narrow"):
        PrivSyn.paper(1.0, 1e-6, SCHEMA, accept=[{"mean": "age", "within": 2.0}]).fit(people(50))


def test_more_conditions_than_a_table_can_hold_are_refused_before_anything_is_spent():
    names = [f"c{place}" for place in range(34)]
    schema = Schema({name: Categorical(["x", "y"]) for name in names})
    table = pd.DataFrame({name: ["x", "y"] for name in names})
    with refuses("too many conditions"):
        PrivSyn(1.0, 1e-6, schema, accept=[{"proportion": dict.fromkeys(names, "x"), "within": 0.1}]).fit(
            table
        )


def test_a_condition_that_no_synthetic_row_meets_is_not_met():
    nobody = {"mean": "age", "within": 5, "where": {"job": "c", "sex": "F"}}
    table = people().assign(job="a", sex="M")
    (verdict,) = fitted([nobody], epsilon=500.0, table=table).ledger_.acceptance.criteria
    assert (verdict.met, verdict.problem) == (False, "no synthetic row meets its conditions")


def test_the_criteria_of_the_guide_fit_its_schema():
    page = (Path(__file__).parents[3] / "docs" / "publisher.md").read_text()
    criteria = read_criteria(yaml.safe_load(re.search(r"```yaml[^\n]*\n(share.*?)```", page, re.S)[1]))
    criteria.check(read_schema(SURVEY))
    assert len(criteria.criteria) == 4


def test_criteria_come_from_a_file_as_from_plain_data(tmp_path):
    path = tmp_path / "criteria.yaml"
    path.write_text("risk: 0.01\ncriteria:\n  - {margin: [sex, job], error: 0.1}\n")
    assert read_criteria(path) == read_criteria({"risk": 0.01, "criteria": [CRITERIA[0]]})
    assert read_criteria(None) is None


# --- the command -------------------------------------------------------------------------------------------

BUDGET = "data.csv.budget.jsonl"
SYNTH = ("synth", "data.csv", "out.csv", "--epsilon", 5, "--schema", "schema.yaml", "--accept", "c.yaml")
LOOSE = "share: 0.5\ncriteria: [{margin: [job], error: 0.5}]\n"
STRICT = "risk: 1.0e-9\ncriteria: [{margin: [job], error: 0.0001}]\n"  # accepted at most so often


def test_an_accepted_table_is_written_and_is_the_one_that_was_tested(folder, capsys):
    Path("c.yaml").write_text(LOOSE)
    done = run(capsys, *SYNTH, "--model", "m.privsyn")
    assert done.code == 0
    assert "ACCEPTED: " in done.out
    load("m.privsyn").sample_to("again.csv", seed=SEED)
    assert Path("again.csv").read_text() == Path("out.csv").read_text()


def test_a_table_that_is_not_accepted_is_not_written_and_nothing_is_lost(folder, capsys):
    Path("c.yaml").write_text(STRICT)
    files = ("--model", "m.privsyn", "--ledger", "l.json", "--public-report", "p.html", "--report", "r.html")
    before = {path.name for path in folder.iterdir()}
    refused = run(capsys, *SYNTH, *files)
    assert (refused.code, refused.err) == (1, "")
    assert "NOT ACCEPTED: " in refused.out
    assert "out.csv: not written: a criterion is not met" in refused.out
    assert all(f"{path}: " in refused.out for path in ("m.privsyn", "l.json"))
    assert CANARY not in refused.out
    assert {path.name for path in folder.iterdir()} - before == {"m.privsyn", "l.json", BUDGET}
    assert json.loads(Path("l.json").read_text())["acceptance"]["met"] is False
    assert load("m.privsyn").ledger.acceptance is not None
    drawn = run(capsys, "sample", "m.privsyn", "more.csv", "--rows", 5)
    assert drawn.code == 0
    assert "NOT ACCEPTED: " in drawn.out


def test_without_files_a_refusal_leaves_its_words_alone(folder, capsys):
    Path("c.yaml").write_text(STRICT)
    before = {path.name for path in folder.iterdir()}
    assert run(capsys, *SYNTH).code == 1
    assert {path.name for path in folder.iterdir()} == before | {BUDGET}


def test_a_criterion_that_does_not_fit_is_the_users_mistake(folder, capsys):
    Path("c.yaml").write_text("criteria: [{margin: [town], error: 0.1}]\n")
    refused = run(capsys, *SYNTH)
    assert refused.code == 2
    assert "c.yaml" in refused.err or "accept" in refused.err
    assert "'town' is not one of the columns" in refused.err
    assert refused.err.count("\n") == 1
