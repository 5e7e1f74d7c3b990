"""A forecast is made of the release alone, follows the noise, and refuses what it cannot simulate."""

import numpy as np
import pandas as pd
import pytest
from command import run

from privsyn import (
    Categorical,
    Forecast,
    InputError,
    Numerical,
    PrivSyn,
    Schema,
    forecast,
    from_marginals,
    load,
)
from privsyn.methods.persons import FOR_ROWS
from privsyn.private.accounting import rho_for
from privsyn.studies.forecast import epsilon_of_row

SCHEMA = Schema(
    {
        "ill": Categorical(["no", "yes"], nullable=False),
        "dose": Numerical(0, 100, integer=True, nullable=False),
        "ward": Categorical(["a", "b", "c"], nullable=False),
    }
)


def patients(rows=1500):
    rng = np.random.default_rng(0)
    dose, ward = rng.integers(0, 101, rows), rng.choice(["a", "b", "c"], rows)
    ill = rng.random(rows) < np.where(dose > 50, 0.85, 0.1)
    return pd.DataFrame({"ill": np.where(ill, "yes", "no"), "dose": dose, "ward": ward})


def fitted(epsilon, **settings):
    return PrivSyn(epsilon, 1e-6, SCHEMA, target="ill", seed=0, **settings).fit(patients()).release_


@pytest.fixture(scope="module")
def release():
    return fitted(3.0)


@pytest.fixture(scope="module")
def found(release):
    return forecast(release, "ill", model="linear", draws=2, seed=0)


@pytest.mark.slow
def test_a_forecast_needs_the_saved_release_alone_and_can_be_repeated(release, found, tmp_path):
    release.save(tmp_path / "m.privsyn")
    assert forecast(load(tmp_path / "m.privsyn"), "ill", model="linear", draws=2, seed=0) == found


@pytest.mark.slow
def test_a_fitted_model_is_forecast_as_its_release(found):
    model = PrivSyn(3.0, 1e-6, SCHEMA, target="ill", seed=0)
    with pytest.raises(InputError, match=r"or a fitted model; got a PrivSyn"):
        forecast(model, "ill")
    assert forecast(model.fit(patients()), "ill", model="linear", draws=2, seed=0) == found


@pytest.mark.slow
def test_with_little_noise_the_drop_is_small_and_with_much_the_table_is_useless(found):
    assert found.measure == "AUC"
    assert found.score > 0.8
    assert found.drop < 0.05
    assert not found.useless
    noisy = forecast(fitted(0.01), "ill", model="linear", draws=2, seed=0)
    assert noisy.score < found.score
    assert noisy.useless
    assert "do not train" in str(noisy)


def test_numbers_have_an_r2_of_at_least_that_of_a_guess(release):
    found = forecast(release, "dose", model="linear", draws=2, seed=0)
    assert found.measure == "R2"
    assert 0 <= found.score < 1
    assert found.low <= found.drop <= found.high


@pytest.mark.parametrize("persons", [1, 4])
def test_the_simulated_budget_is_that_of_the_counts_for_a_row(persons):
    rows = patients().assign(id=np.arange(1500) // persons)
    model = PrivSyn(2.0, 1e-6, SCHEMA, unit="id", rows_per_unit=persons, seed=0).fit(rows)
    epsilon, delta = epsilon_of_row(model.ledger_)
    simulated = rho_for(epsilon, delta, "gaussian")
    of_counts = 1 if persons == 1 else 1 - FOR_ROWS
    bound = model.ledger_.rows_per_unit
    assert simulated == pytest.approx(of_counts * model.ledger_.rho / bound**2, rel=1e-4)


def test_a_part_of_the_rows_has_noise_that_is_smaller_in_proportion(release):
    whole, part = (rho_for(*epsilon_of_row(release.ledger, share), "gaussian") for share in (1.0, 0.1))
    assert part == pytest.approx(100 * whole, rel=1e-4)


def test_a_large_table_is_simulated_with_fewer_rows_and_reports_its_steps(release, found, monkeypatch):
    monkeypatch.setattr("privsyn.studies.forecast.MOST_ROWS", 750)
    said = []
    settings = {"model": "linear", "draws": 2, "seed": 0}
    fewer = forecast(release, "ill", **settings, progress=lambda *step: said.append(step))
    assert fewer != found
    assert fewer.score == pytest.approx(found.score, abs=0.1)
    assert [step for step in said if step[0] == "simulating runs"] == [
        ("simulating runs", done, 6) for done in range(7)
    ]


def test_what_finding_values_costs_is_not_simulated():
    model = PrivSyn(2.0, 1e-6, Schema({**SCHEMA.columns, "ward": Categorical()}), seed=0).fit(patients())
    epsilon, delta = epsilon_of_row(model.ledger_)
    assert rho_for(epsilon, delta, "gaussian") < 0.95 * model.ledger_.rho


def test_counts_that_were_measured_elsewhere_are_refused():
    given = from_marginals(Schema({"ill": SCHEMA.columns["ill"]}), {"ill": ([5.0, 5.0], 1.0)}, "x")
    with pytest.raises(InputError, match="of privsyn's own"):
        forecast(given, "ill")


def test_linked_rows_are_refused():
    rows = pd.DataFrame({"who": np.arange(60) // 3, "ill": ["no", "yes"] * 30})
    schema = Schema({"ill": SCHEMA.columns["ill"]})
    model = PrivSyn(5.0, 1e-9, schema, unit="who", identifiers=True, seed=0).fit(rows)
    for linked in (model, model.release_):
        with pytest.raises(InputError, match="this model has linked ones"):
            forecast(linked, "ill")


@pytest.mark.parametrize(
    ("wrong", "text"),
    [({"target": "none"}, "none"), ({"model": "tree"}, "none of boosting"), ({"draws": 0}, "at least 1")],
)
def test_wrong_settings_are_refused(release, wrong, text):
    with pytest.raises(InputError, match=text):
        forecast(release, **({"target": "ill"} | wrong))


def test_the_command_prints_the_forecast(release, found, tmp_path, capsys):
    release.save(tmp_path / "m.privsyn")
    model = tmp_path / "m.privsyn"
    settings = ("--model", "linear", "--draws", 2, "--seed", 0)
    done = run(capsys, "forecast", model, "--target", "ill", *settings)
    assert done.code == 0
    *said, privacy = done.out.splitlines()
    assert said == str(found).splitlines()
    assert privacy.startswith("NOT PRIVATE")  # the model has a seed


def test_no_score_of_real_rows_is_promised_that_the_release_cannot_know():
    """On Adult .99 was promised in words, and real rows reach .917."""
    found = Forecast("y", "AUC", "boosting", 0.908, 0.018, 0.5)
    assert found.real_low < 0.917 < found.real_high < 0.99
    assert f"{found.real_low:.2f} to {found.real_high:.2f}" in str(found)
    best = Forecast("y", "AUC", "boosting", 0.99, 0.01, 0.5)
    assert best.real_high == 1.0


def test_the_interval_is_not_below_no_drop():
    found = Forecast("y", "AUC", "boosting", 0.9, 0.01, 0.5)
    assert found.low == 0
    assert found.high > found.drop
