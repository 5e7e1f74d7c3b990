"""Tables that the respondents randomised: learnt without further noise, alone and beside other columns."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import numpy as np
import pandas as pd
import pytest
from refusals import refuses

from privsyn import Categorical, Forbidden, Identifier, Numerical, PrivSyn, Schema, load, plan, randomize
from privsyn.errors import InputError
from privsyn.methods import randomise
from privsyn.private.measure import PrivateTable
from privsyn.private.randomness import seeded_bits
from privsyn.private.run_ledger import PUBLIC
from privsyn.table.schema.yaml_file import from_plain, to_plain

ROWS = 40_000
LISTS = {"a": list("xyz"), "b": list("uvw"), "c": ["no", "yes"]}
SCHEMA = Schema({name: Categorical(values, nullable=False, keep=0.5) for name, values in LISTS.items()})
MIXED = Schema(
    {
        "a": SCHEMA.columns["a"],
        "b": Categorical(LISTS["b"], nullable=False),
        "n": Numerical(0, 9, integer=True, nullable=False),
    }
)


def table(rows=ROWS, seed=0):
    """A table in which a and b depend on each other."""
    rng = np.random.default_rng(seed)
    a = rng.choice(3, rows, p=[0.7, 0.3, 0.0])
    b = np.where(rng.random(rows) < 0.8, a, rng.integers(0, 3, rows))
    frame = {"a": a, "b": b, "c": rng.integers(0, 2, rows)}
    return pd.DataFrame({name: np.array(LISTS[name])[codes] for name, codes in frame.items()})


def fixed(frame, schema, keep=None, seed=0):
    """The table as respondents with a seed would send it, so that no test fails by chance."""
    bits = seeded_bits(np.random.default_rng(seed))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(randomise, "randomised", partial(randomise.randomised, bits=bits))
        return randomize(frame, schema, keep)


@pytest.fixture(scope="module")
def sent():
    return fixed(table(), SCHEMA)


@pytest.fixture(scope="module")
def model(sent):
    return PrivSyn(schema=sent.schema, seed=0).fit(sent.table)


@pytest.fixture(scope="module")
def mixed():
    """One randomised column, one that depends on it, and a number that depends on it."""
    rng = np.random.default_rng(1)
    frame = table()[["a", "b"]]
    frame["n"] = np.where(frame["a"] == "x", rng.integers(0, 4, ROWS), rng.integers(5, 10, ROWS))
    hidden = fixed(frame, MIXED)
    return frame, hidden, PrivSyn(epsilon=1.0, schema=MIXED, seed=0).fit(hidden.table)


def test_a_randomised_table_has_the_same_form_and_other_cells(sent):
    before = table()
    assert sent.table.shape == before.shape
    assert (sent.table.dtypes == before.dtypes).all()
    shares = (sent.table == before).mean()
    assert np.allclose(shares, [0.5 + 0.5 / 3, 0.5 + 0.5 / 3, 0.75], atol=0.014)  # 5 standard errors


def test_each_column_is_kept_as_often_as_its_own_promise_says():
    """Not as often as the column that is kept most, and not as `keep` says of columns without their own."""
    columns = {name: SCHEMA.columns[name] for name in "ab"} | {
        "c": Categorical(["no", "yes"], nullable=False)
    }
    columns["b"] = replace(columns["b"], keep=0.05)
    hidden = fixed(table(), Schema(columns), keep=0.95)
    shares = [each.keep + (1 - each.keep) / each.values for each in hidden.ledger.local]
    assert [each.keep for each in hidden.ledger.local] == [0.5, 0.05, 0.95]
    assert (hidden.table == table()).mean().tolist() == pytest.approx(shares, abs=0.014)


def test_the_estimates_are_of_the_table_before_randomisation(model):
    """Each count within 5.1 standard deviations: wrong by chance with probability below 1e-5 in all."""
    for column in "abc":
        counts = model.accuracy_.counts(column).set_index(column)
        real = table()[column].value_counts().reindex(counts.index, fill_value=0)
        sigma = model.accuracy_.tables.set_index("columns")["sigma"][(column,)]
        assert (np.abs(counts["estimate"] - real) < 5.1 * sigma).all()
    pair = pd.crosstab(table()["a"], table()["b"], normalize=True)
    drawn = model.sample(ROWS, seed=0)
    found = pd.crosstab(drawn["a"], drawn["b"], normalize=True).reindex_like(pair).fillna(0)
    assert 0.5 * np.abs(pair - found).to_numpy().sum() < 0.03
    assert 0.5 * np.abs(pair - np.outer(pair.sum(axis=1), pair.sum())).to_numpy().sum() > 0.1


@pytest.mark.slow
def test_the_intervals_cover_the_counts_before_randomisation():
    """95 % of 240 counts: fewer than 0.9 or more than 0.99 with probability below 1e-6 if all were apart."""
    inside = []
    for seed in range(10):
        frame = table(2000, seed)
        frame = pd.concat(
            [frame] + [frame.sample(frac=1, random_state=k).add_suffix(k) for k in range(2)], axis=1
        )
        frame.columns = [*"abcdefghi"]
        columns = {name: Categorical(LISTS["abc"[i % 3]], nullable=False) for i, name in enumerate(frame)}
        sent = fixed(frame.reset_index(drop=True), Schema(columns), 0.5, seed)
        accuracy = PrivSyn(schema=sent.schema, seed=0).fit(sent.table).accuracy_
        for column in columns:
            counts = accuracy.counts(column).set_index(column)
            real = frame[column].value_counts().reindex(counts.index, fill_value=0)
            inside += ((counts["low"] <= real) & (real <= counts["high"])).tolist()
    assert len(inside) == 240
    assert 0.88 < np.mean(inside) < 0.995


def test_the_counts_get_no_noise_and_the_ledger_says_why(sent, model):
    measured = model.release_.fitted.certainties[0].measured
    seen = sent.table["a"].value_counts().reindex(LISTS["a"])
    assert np.allclose(measured.marginal.counts, (seen - ROWS / 6) / 0.5)
    assert model.release_.fitted.total == pytest.approx(ROWS)
    ledger = model.ledger_
    assert (ledger.spends, ledger.promised_delta, ledger.private) == ((), 0.0, True)
    assert ledger.promised_epsilon == sent.ledger.promised_epsilon
    assert [(p.column, p.keep, p.values) for p in ledger.local] == [
        ("a", 0.5, 3),
        ("b", 0.5, 3),
        ("c", 0.5, 2),
    ]
    facts = [fact for fact in ledger.public_inputs if fact not in PUBLIC]
    assert facts == [
        "the number of records, and whose they are",
        "that the respondents randomised 'a', 'b', 'c' as the schema says, each cell on its own",
    ]


def test_a_saved_model_keeps_the_local_promise(model, tmp_path):
    model.save(tmp_path / "m.privsyn")
    loaded = load(tmp_path / "m.privsyn")
    assert loaded.ledger == model.ledger_
    assert loaded.codec.schema == SCHEMA
    assert loaded.sample(50, seed=1).equals(model.sample(50, seed=1))
    assert (loaded.accuracy_.tables == model.accuracy_.tables).all(axis=None)


def test_missing_cells_are_one_more_value():
    frame = table(6000).assign(c=lambda t: t["c"].where(t["a"] == "x"))
    schema = Schema({name: Categorical(values) for name, values in LISTS.items()})
    sent = fixed(frame, schema, 0.75)
    assert {promise.values for promise in sent.ledger.local} == {4, 3}
    assert sent.table.isna().any().all()
    drawn = PrivSyn(schema=sent.schema, seed=0).fit(sent.table).sample(6000, seed=0)
    assert abs(drawn["c"].isna().mean() - 0.3) < 0.06
    assert drawn["a"].isna().mean() < 0.04


def test_beside_other_columns_every_count_gets_noise_and_the_promise_is_the_usual_one(mixed):
    _, hidden, model = mixed
    ledger = model.ledger_
    assert ledger.neighbours == "add or remove one record"
    assert (ledger.promised_epsilon, ledger.promised_delta, ledger.accounting) == (1.0, 1e-9, "gaussian")
    assert 0.999 < ledger.rho / ledger.budget <= 1
    assert [promise.column for promise in ledger.local] == ["a"]
    assert (hidden.ledger.unchanged, hidden.ledger.private) == (("b", "n"), False)
    assert hidden.table[["b", "n"]].equals(mixed[0][["b", "n"]])


def test_beside_other_columns_the_estimates_are_of_the_table_before_randomisation(mixed):
    frame, _, model = mixed
    drawn = model.sample(ROWS, seed=0)
    for other in "bn":
        real = pd.crosstab(frame["a"], frame[other], normalize=True)
        found = pd.crosstab(drawn["a"], drawn[other], normalize=True).reindex_like(real).fillna(0)
        assert 0.5 * np.abs(real - found).to_numpy().sum() < 0.04
    sigma = model.accuracy_.tables.set_index("columns")["sigma"]
    assert sigma[("a",)] > 100 > 60 > sigma[("b",)]


def test_the_private_side_is_asked_the_same_with_and_without_keep(mixed, monkeypatch):
    """The inverse is applied to noisy answers: the questions are those of columns that nobody randomised."""
    asked = []
    answer = PrivateTable._answer

    def record(self, what, exact, *rest):
        asked.append((what, int(exact.sum())))
        return answer(self, what, exact, *rest)

    monkeypatch.setattr(PrivateTable, "_answer", record)
    plain = Schema(
        {
            name: column if name != "a" else Categorical(LISTS["a"], nullable=False)
            for name, column in MIXED.columns.items()
        }
    )
    firsts = []
    for schema in (MIXED, plain):
        asked.clear()
        PrivSyn(epsilon=1.0, schema=schema, seed=0).fit(mixed[1].table)
        firsts.append(asked[0])
    assert firsts[0] == firsts[1] == ("one-way counts of every attribute", 3 * ROWS)


def test_a_seed_does_not_repeat_the_respondents_draws():
    frame, made = table(300), []
    for _ in range(2):
        np.random.seed(0)  # noqa: NPY002 (draws from it would be the same)
        made.append(randomize(frame, SCHEMA).table)
    assert not made[0].equals(made[1])


def test_a_schema_with_keep_comes_back_from_its_file():
    assert to_plain(SCHEMA)["columns"]["a"] == {
        "kind": "categorical",
        "values": ["x", "y", "z"],
        "nullable": False,
        "keep": 0.5,
    }
    assert from_plain(to_plain(SCHEMA)) == SCHEMA


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: PrivSyn(), "give epsilon, the privacy budget"),
        (
            lambda: PrivSyn(schema=MIXED),
            "give epsilon, the privacy budget: column 'b' is not randomised",
        ),
        (lambda: Categorical(["a"], keep=1.0), "keep is a probability above 0 and below 1"),
        (lambda: Categorical(["a"], keep=0), "keep is a probability above 0 and below 1"),
        (lambda: Categorical(["a"], keep=1e-16), "keep is a probability above 0 and below 1"),
        (lambda: Categorical(["a"], keep="often"), "keep must be a finite number"),
        (lambda: Categorical(keep=0.5), "keep needs the list of values"),
        (
            lambda: Schema(SCHEMA.columns, constraints=[Forbidden({"a": "x", "b": "u"})]),
            "'a' is randomised",
        ),
        (lambda: randomize(table(5), None), "give a schema"),
        (lambda: randomize(table(5), MIXED, keep=0.5), "column 'n': has no list of values"),
        (lambda: randomize(table(5), Schema({"id": Identifier()}), keep=0.5), "column 'id': has no list"),
        (lambda: randomize(table(5), Schema({"a": Categorical()}), keep=0.5), "column 'a': has no list"),
        (lambda: randomize(table(5), Schema({"a": Categorical(["x"])})), "no column is to be randomised"),
        (lambda: randomize(table(5), Schema({"a": SCHEMA.columns["a"]})), "column"),
    ],
)
def test_what_cannot_be_randomised_is_refused_in_one_line(make, message):
    with refuses(message):
        make()


@pytest.mark.parametrize("epsilon", [None, 1.0])
def test_the_number_of_values_follows_from_the_schema_and_not_from_a_dtype(epsilon):
    """A column of int64 cannot hold missing cells; with others its respondents would differ in epsilon."""
    columns = {"a": Categorical([0, 1], keep=0.5)}
    if epsilon:
        columns["b"] = Categorical([0, 1])
    frame, schema = pd.DataFrame({name: [0, 1, 1] for name in columns}), Schema(columns)
    for use in (lambda: randomize(frame, schema), lambda: PrivSyn(epsilon, schema=schema).fit(frame)):
        with pytest.raises(InputError, match="column 'a': its dtype cannot hold all"):
            use()
    assert randomize(frame.astype("Int64"), schema).ledger.local[0].values == 3


def test_a_plan_says_that_randomised_columns_have_larger_errors():
    assert "randomised by the respondents, so their errors are larger than planned: a" in str(
        plan(MIXED, 1.0, rows=1000)
    )
