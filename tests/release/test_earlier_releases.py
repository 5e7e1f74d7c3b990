"""A table that grows: a release rests on earlier ones, and its ledger says what all of them promise."""

import json
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from refusals import refuses

from privsyn import Categorical, Ledger, PrivSyn, Schema, load, sheet
from privsyn.cli.main import main
from privsyn.private.composition import compose
from privsyn.private.run_ledger import RunLedger
from privsyn.private.series import MOST_SETS, Series
from privsyn.private.spend import ADD_OR_REMOVE

SCHEMA = Schema({name: Categorical([0, 1, 2], nullable=False) for name in "abcdef"})


def month(seed: int, rows: int = 1500) -> pd.DataFrame:
    """Return columns each of which is mostly the one before."""
    rng = np.random.default_rng(seed)
    columns = [rng.integers(0, 3, rows)]
    for _ in "bcdef":
        columns.append(np.where(rng.random(rows) < 0.8, columns[-1], rng.integers(0, 3, rows)))
    return pd.DataFrame(dict(zip("abcdef", columns, strict=True)))


def fitted(number: int, **settings):
    return PrivSyn(1.0, 1e-9, SCHEMA, **settings).fit(month(number)).release_


@pytest.fixture(scope="module")
def january():
    return fitted(1)


@pytest.fixture(scope="module")
def february(january):
    return fitted(2, since=january, disjoint=True)


def test_the_ledger_says_what_a_chain_promises(january, february):
    march = fitted(3, since=february, disjoint=True)
    assert march.ledger_.over_time.releases == 3
    assert (march.ledger_.over_time.epsilon, march.ledger_.over_time.delta) == (1.0, 1e-9)
    assert march.ledger_.over_time.best.theorem == "parallel"
    assert "with 2 earlier releases: epsilon 1 at delta 1e-09 (parallel: " in str(march.ledger_)
    assert "rows drawn from the earlier release (these have SHA-256 " in march.ledger_.public_inputs[-1]
    promise = march.ledger_.to_dict()["since"]["promise"]
    assert promise == {"epsilon": 1.0, "delta": 1e-9}
    assert RunLedger.from_json(march.ledger_.to_json()) == march.ledger_
    assert january.ledger_.over_time is None


def test_without_the_statement_promises_add_up(january, february):
    march = fitted(3, since=february)
    # Nobody is in January and in February, but March may have persons of either.
    expected = compose([january.ledger_.promise] * 2, ADD_OR_REMOVE)
    joint = march.ledger_.over_time
    assert (joint.epsilon, joint.delta) == (expected.epsilon, expected.delta)
    april = fitted(4, since=march)
    expected = compose([january.ledger_.promise] * 3, ADD_OR_REMOVE)
    assert april.ledger_.over_time.epsilon == expected.epsilon > joint.epsilon > 1.0


def test_the_largest_promise_counts(january):
    other = PrivSyn(0.5, 1e-8, SCHEMA, since=january, disjoint=True).fit(month(2))
    assert (other.ledger_.over_time.epsilon, other.ledger_.over_time.delta) == (1.0, 1e-8)


def test_a_release_counts_once_however_many_rest_on_it(january, february):
    march = fitted(3, since=[january, february], disjoint=True)
    assert march.ledger_.over_time.releases == 3
    ledgers = [release.ledger_ for release in (january, february, march)]
    assert Ledger.compose(ledgers).releases == 3
    assert Ledger.compose(ledgers[2:]).releases == 3
    assert Ledger.compose(ledgers[2:]).epsilon == 1.0
    assert Ledger.compose([ledgers[0]] * 3).releases == 3  # as often as it is given
    with_another = Ledger(1.0)
    assert Ledger.compose([ledgers[1], with_another]).releases == 3


def test_a_saved_model_is_an_earlier_release_and_rests_on_earlier_ones(january, february, tmp_path):
    for name, release in (("january", january), ("february", february)):
        release.save(tmp_path / f"{name}.privsyn")
    again = load(tmp_path / "february.privsyn")
    assert again.ledger_ == february.ledger_
    late = fitted(3).with_since([tmp_path / "january.privsyn", tmp_path / "february.privsyn"], disjoint=True)
    assert late.ledger_.over_time.releases == 3
    assert "rows drawn from 2 earlier releases" in late.ledger_.public_inputs[-1]
    assert "with 2 earlier releases" in repr(late)
    sheet(late, tmp_path / "sheet.md")
    assert "with 2 earlier releases" in (tmp_path / "sheet.md").read_text()
    with refuses("rests on earlier ones already"):
        late.with_since(january)


def test_since_makes_rows_better():
    """Compare the third month alone with the one since two others. Seeded, so always the same."""
    private, alone = month(3), PrivSyn(0.15, 1e-9, SCHEMA, seed=3).fit(month(3)).release_
    earlier = [fitted(number, seed=number) for number in (1, 2)]
    better = PrivSyn(0.15, 1e-9, SCHEMA, seed=3, since=earlier).fit(month(3)).release_
    assert better.fitted.public_rows.share > 0.2
    assert better.ledger_.spends == alone.ledger_.spends
    assert better.ledger_.over_time is None  # a seed promises nothing
    assert "promise" not in better.ledger_.to_dict()["since"]
    shares = [
        table.value_counts(["a", "c", "f"], normalize=True)
        for table in (private, alone.sample(1500, seed=0), better.sample(1500, seed=0))
    ]
    errors = [shares[0].sub(other, fill_value=0).abs().sum() for other in shares[1:]]
    assert errors[1] < 0.8 * errors[0]


def test_a_release_without_a_promise_to_add_is_refused_before_any_question(january, tmp_path):
    def watch(stage, done, total):
        assert stage != "measuring"

    seeded = fitted(1, seed=0)
    randomised = replace(SCHEMA, columns={"a": Categorical([0, 1, 2], nullable=False, keep=0.5)})
    respondents = PrivSyn(schema=randomised).fit(month(0)[["a"]]).release_
    persons = PrivSyn(1.0, 1e-9, SCHEMA, unit="who").fit(month(0).assign(who=range(1500))).release_
    elsewhere = january.with_ledger(RunLedger.measured_elsewhere("the office promises", ()))
    for since, message in [
        (seeded, "is NOT PRIVATE, because it has a seed"),
        (respondents, "respondents randomised its table"),
        (persons, "protects all rows of one 'who', and this run one row"),
        (elsewhere, "measured elsewhere"),
        ([], "an empty list"),
        (month(0), "takes a release"),
        (tmp_path / "no.privsyn", "there is no such file"),
    ]:
        with refuses(message):
            PrivSyn(1.0, 1e-9, SCHEMA, since=since, progress=watch).fit(month(2))
    with refuses("disjoint needs since"):
        PrivSyn(1.0, 1e-9, SCHEMA, disjoint=True)
    with refuses("public and since"):
        PrivSyn(1.0, 1e-9, SCHEMA, since=january, public=month(0))
    with refuses("is a release, whose promise adds up: give it as since"):
        PrivSyn(1.0, 1e-9, SCHEMA, public=january).fit(month(2))
    both = PrivSyn(1.0, 1e-9, SCHEMA, unit="who", identifiers=True).fit(
        month(0).assign(who=np.arange(1500) // 2)
    )
    with refuses("keeps the rows of a person together: give identifiers for this run too"):
        PrivSyn(1.0, 1e-9, SCHEMA, unit="who", since=both).fit(month(2).assign(who=range(1500)))


def test_a_release_whose_own_promise_is_not_known_rests_on_none(january):
    """The joint promise would be that of the earlier releases alone."""
    elsewhere = january.with_ledger(RunLedger.measured_elsewhere("the office promises", ()))
    with refuses("this release: its counts were measured elsewhere"):
        elsewhere.with_since(january)
    randomised = replace(SCHEMA, columns={"a": Categorical([0, 1, 2], nullable=False, keep=0.5)})
    with refuses("this release: respondents randomised its table"):
        PrivSyn(schema=randomised).fit(month(0)[["a"]]).release_.with_since(january)


def test_deltas_that_leave_no_promise_are_refused_before_any_question(january):
    """A joint promise is computed again whenever the ledger is written: the paid run could not be saved."""

    def watch(stage, done, total):
        assert stage != "measuring"

    promised = replace(january.ledger_, charges=(), promised_delta=0.6)
    weak = january.with_ledger(promised)
    settings = {"allow_weak_privacy": True, "progress": watch}
    with refuses("the deltas of this run and of the earlier releases are 1.2 together"):
        PrivSyn(1.0, 0.6, SCHEMA, since=weak, **settings).fit(month(2))
    with refuses("are 1.2 together"):
        weak.with_since(january.with_ledger(replace(promised, run="another")))
    assert january.with_since(weak).ledger_.over_time.delta == pytest.approx(0.6)


@pytest.mark.slow
def test_the_commands_publish_month_after_month(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "schema.yaml").write_text(
        "columns:\n"
        + "".join(
            f"  {name}: {{kind: categorical, values: [0, 1, 2], nullable: false}}\n" for name in "abcdef"
        )
    )
    since = []
    for number in (1, 2, 3):
        month(number).to_csv(f"{number}.csv", index=False)
        arguments = [
            "synth",
            f"{number}.csv",
            f"out{number}.csv",
            "--epsilon",
            "1",
            "--schema",
            "schema.yaml",
        ]
        arguments += ["--model", f"{number}.privsyn", "--ledger", f"{number}.json", *since]
        assert main(arguments) == 0
        since = ["--since", f"{number}.privsyn", "--disjoint"]
    shown = capsys.readouterr().out
    assert "with 2 earlier releases: epsilon 1 at delta 1e-09 (parallel" in shown
    assert "rows drawn from the earlier release '2.privsyn'" in shown
    assert json.loads((tmp_path / "3.json").read_text())["since"]["promise"]["epsilon"] == 1.0
    again = ["sample", "1.privsyn", "late.csv", "--since", "3.privsyn", "--target", "d"]
    assert main(again) == 0
    assert "with 2 earlier releases" in capsys.readouterr().out
    assert main(["sample", "1.privsyn", "l.csv", "--disjoint"]) == 2
    assert main(["sample", "1.privsyn", "l.csv", "--since", "3.privsyn", "--public", "1.csv"]) == 2


def test_a_set_of_all_releases_replaces_a_family_that_is_too_large():
    promise = fitted_promise()
    chains = [
        Series.join([Series.of(promise, f"{chain} {n}") for n in range(12)], disjoint=True)
        for chain in range(3)
    ]
    joined = Series.join(chains, disjoint=False)
    assert len(joined.releases) == 36
    assert len(joined.sets) <= MOST_SETS
    assert (
        joined.together(ADD_OR_REMOVE).epsilon
        >= Series.join(chains[:2], disjoint=False).together(ADD_OR_REMOVE).epsilon
    )


def fitted_promise():
    return RunLedger((), 1.0, 1e-9, "gaussian", "operating system", True, (), "1.0").promise
