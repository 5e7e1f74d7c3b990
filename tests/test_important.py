"""The pairs and triples that matter most are measured best for the same budget. Ledger and page name them."""

from itertools import combinations
from math import fsum

import numpy as np
import pandas as pd
import pytest
from command import run
from refusals import refuses

from privsyn import Categorical, Identifier, InputError, Numerical, PrivSyn, Schema, Text, load, plan, report
from privsyn.inference.selection import (
    BESIDE,
    allocate,
    allocate_first,
    expected_errors,
    near_pairs,
    slopes_of,
)
from privsyn.table.schema.yaml_file import from_plain, to_plain

COLUMNS, VALUES, ROWS = "abcdefgh", 8, 2000
NAMED = [["a", "b"], ["c", "d"]]


def table():
    """A chain of columns: each has the value of the one before it in half of the rows."""
    rng = np.random.default_rng(7)
    columns = [rng.integers(0, VALUES, ROWS)]
    for _ in COLUMNS[1:]:
        columns.append(np.where(rng.random(ROWS) < 0.5, columns[-1], rng.integers(0, VALUES, ROWS)))
    return pd.DataFrame(dict(zip(COLUMNS, columns, strict=True)))


TABLE = table()
SCHEMA = Schema({name: Categorical(list(range(VALUES)), nullable=False) for name in COLUMNS})
PEOPLE = Schema(
    {
        "id": Identifier(),
        "note": Text(),
        "age": Numerical(0, 99, integer=True),
        "sex": Categorical(["F", "M"]),
        "paid": Numerical(0, 99, integer=True),
        "open": Numerical(0, 99, integer=True),
        "bill": Numerical(0, 198, integer=True),
    },
    constraints=["bill == paid + open"],
)


def error_of(counts, names):
    """Total variation of released counts from those of the table."""
    real = np.zeros((VALUES,) * len(names))
    np.add.at(real, tuple(TABLE[name].to_numpy() for name in names), 1)
    return float(np.abs(real / ROWS - counts / counts.sum()).sum() / 2)


def errors(delta, important):
    """Mean errors of the named pairs and of all others, over three seeds, and what each run spent."""
    named, others, spent = [], [], []
    for seed in range(3):
        model = PrivSyn(1.0, delta, SCHEMA, seed=seed, important=important).fit(TABLE)
        sample = model.sample(ROWS, seed=seed)
        for pair in combinations(COLUMNS, 2):
            counts = np.zeros((VALUES, VALUES))
            np.add.at(counts, tuple(sample[name].to_numpy() for name in pair), 1)
            (named if list(pair) in NAMED else others).append(error_of(counts, pair))
        spent.append(fsum(spend.cost for spend in model.ledger_.spends) / model.ledger_.budget)
    return np.mean(named), np.mean(others), spent


@pytest.mark.slow("each case")
@pytest.mark.parametrize("delta", [1e-9, 0.0])
def test_named_pairs_err_less_for_the_same_budget_and_others_hardly_more(delta):
    named, others, spent = errors(delta, NAMED)
    before, others_before, _ = errors(delta, None)
    assert named < 0.9 * before
    assert others < 1.15 * others_before
    assert spent == pytest.approx([1.0] * 3)


@pytest.mark.parametrize("spread", [10.0, 1e3, 1e5])
def test_others_expect_hardly_more_error_whatever_the_noise(spread):
    variances = [spread * np.random.default_rng(k).random((4, 4)) for k in range(12)]
    rho, named, weights = 0.01, np.arange(12) < 2, np.ones(12)
    gains, before = slopes_of(variances, rho), expected_errors(variances)
    fair = allocate(gains, rho)
    first = allocate_first(gains, before, rho, weights, named)
    others, others_before = (expected_errors(variances, rhos)[~named].sum() for rhos in (first, fair))
    assert first[named].sum() > fair[named].sum()
    assert others <= 1.01 * BESIDE * others_before  # slopes are interpolated
    assert first.sum() == pytest.approx(rho)


def test_a_named_triple_gets_more_of_the_budget():
    rng = np.random.default_rng(8)
    x, y = rng.integers(0, VALUES, (2, 4 * ROWS))
    sums = np.where(rng.random(4 * ROWS) < 0.8, (x + y) % VALUES, rng.integers(0, VALUES, 4 * ROWS))
    more = pd.concat([TABLE] * 4, ignore_index=True).assign(a=x, d=y, h=sums)

    def spent(important):
        model = PrivSyn(1.0, 1e-9, SCHEMA, seed=0, important=important).fit(more)
        return fsum(spend.cost for spend in model.ledger_.spends if "over a, d, h" in spend.what)

    assert spent([["h", "a", "d"]]) > 1.5 * spent(None)


def test_ledger_page_and_saved_release_name_them(tmp_path):
    model = PrivSyn(1.0, 1e-9, SCHEMA, seed=0, important=NAMED).fit(TABLE)
    report(model, tmp_path / "page.html")
    model.save(tmp_path / "model.privsyn")
    assert any("a x b, c x d" in line for line in model.ledger_.public_inputs)
    assert "a x b, c x d" in (tmp_path / "page.html").read_text("utf-8")
    assert load(tmp_path / "model.privsyn").codec.schema.important == (("a", "b"), ("c", "d"))


def test_the_schema_names_them_too_and_each_counts_once():
    schema = from_plain(to_plain(SCHEMA) | {"important": [["b", "a"]]})
    assert from_plain(to_plain(schema)).important == (("b", "a"),)
    assert PrivSyn(1.0, schema=schema, important=["a,b", "c,d"]).matters_most == (("a", "b"), ("c", "d"))


@pytest.mark.parametrize(
    ("important", "words"),
    [
        ("age,sex", "lists pairs of columns"),
        ([["age"]], "must name two or three different columns"),
        ([["age", "age"]], "must name two or three different columns"),
        ([["age", "sex", "paid", "open"]], "must name two or three different columns"),
        ([["age", 3]], "not a pair or a triple of columns' names"),
        ([["age", "sxe"]], "important 'sxe' is not one of the columns .* did you mean 'sex'"),
        ([["age", "id"]], "important 'id' is never counted"),
        ([["age", "note"]], "important 'note' is never counted"),
        ([["age", "bill"]], "important 'bill' is computed from other columns"),
        ([["age", f"c{k}"] for k in range(21)], "lists 21 sets of columns: give at most 20"),
    ],
)
def test_what_cannot_be_measured_is_refused_in_one_line(important, words):
    for make in (
        lambda: PrivSyn(1.0, schema=PEOPLE, important=important),
        lambda: from_plain(to_plain(PEOPLE) | {"important": important}),
    ):
        with refuses(words):
            make()


def test_without_a_schema_a_strange_name_is_refused_before_any_row_is_counted():
    with pytest.raises(InputError, match=r"important 'x' is not one of the columns to be synthesised$"):
        PrivSyn(1.0, important=[["a", "x"]]).fit(TABLE)


def test_far_pairs_are_candidates_if_they_are_named():
    names = tuple("abcdef")
    assert set(near_pairs(names, 5, None, (("a", "d", "f"),))) == {
        *near_pairs(names, 5),
        ("a", "d"),
        ("a", "f"),
        ("d", "f"),
    }


@pytest.mark.slow
def test_the_command_line_repeats_it_and_a_plan_shows_the_expected_error(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    TABLE.to_csv("t.csv", index=False)
    options = ["--epsilon=1", "--important=a,b", "--important=c,d"]
    said = run(capsys, "plan", "t.csv", *options, "--rows=2000")
    assert (said.code, "error of a x b, expected" in said.out) == (0, True)
    said = run(capsys, "synth", "t.csv", "o.csv", "--seed=1", "--ledger=l.json", *options)
    assert said.code == 0
    assert "a x b, c x d" in (tmp_path / "l.json").read_text("utf-8")
    said = run(capsys, "synth", "t.csv", "p.csv", "--epsilon=1", "--important=a")
    assert (said.code, "--important" in said.err, "Traceback" in said.err) == (2, True, False)


def test_a_plan_expects_less_error_of_a_named_pair():
    named, others = (plan(SCHEMA, 1.0, rows=ROWS, important=given).expectations[0] for given in (NAMED, None))
    assert named.root.important["a x b"] < others.pair_error < named.pair_error * 1.2
