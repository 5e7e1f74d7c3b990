"""An entry for the registry says what its ledger says, marks what no ledger knows, and has its form."""

from __future__ import annotations

import re
from dataclasses import replace
from datetime import date
from functools import cache

import numpy as np
import pandas as pd
import pytest
import yaml
from command import run

from privsyn import Categorical, Database, InputError, Numerical, PrivSyn, Schema, Table, randomize
from privsyn.private.acceptance import Acceptance, Verdict
from privsyn.private.ledger import Ledger
from privsyn.private.noise import SharedNoise
from privsyn.private.spend import Spend
from privsyn.studies.registry_entry import TODO, ledger_in, registry_entry

TEXT, NUMBER = str, float
FORM = {
    "url_slug": TEXT,
    "status": {"Draft"},
    "tier": {1, 2, 3},
    "deployment": {
        "basic": {
            "name": TEXT,
            "data_curators": [TEXT],
            "intended_use": TEXT,
            "data_product_type": {"Synthetic data"},
            "data_product_region": TEXT,
            "description": TEXT,
            "publication_date": date,
            "data_product_sector": {
                "Technology",
                "Healthcare",
                "Education",
                "Government",
                "Energy",
                "Finance",
            },
        },
        "dp_variant": {
            "variant_name": {"Pure DP", "Approximate DP", "Zero-concentrated DP", "Renyi DP", "Custom"},
            "data_domain": TEXT,
            "unprotected_quantities": TEXT,
        },
        "privacy_loss": {
            "privacy_unit": TEXT,
            "privacy_unit_details": TEXT,
            "privacy_parameters": {"epsilon": NUMBER, "delta": NUMBER, "rho": NUMBER},
            "privacy_parameters_details": TEXT,
        },
        "deployment_model": {
            "model_name": {"Local", "Central", "Shuffle", "Federated"},
            "model_name_details": TEXT,
            "actors": TEXT,
            "release_type": {"One release", "Many releases"},
            "release_type_details": TEXT,
            "data_source_type": {"Static", "Dynamic"},
            "data_source_type_details": TEXT,
            "access_type": {"Interactive", "Non-interactive"},
            "access_type_details": TEXT,
        },
        "accounting": {"post_processing": TEXT, "composition": TEXT},
        "implementation": {
            "preprocessing_and_hyperparameter_tuning": TEXT,
            "mechanisms": TEXT,
            "justification": TEXT,
        },
        "administrative": {"sources": TEXT, "notes": TEXT, "registry_authors": [TEXT]},
    },
}
"""The fields of the registry's schema (opendp/deployments-registry-data, commit 3e9c812) and their values."""


def breaches(node, form, place=""):
    """Yield where an entry differs from the form of the registry."""
    if isinstance(form, dict):
        for name, value in node.items():
            yield from breaches(value, form[name], f"{place}/{name}") if name in form else [f"{place}/{name}"]
    elif isinstance(form, list):
        yield from () if node and all(isinstance(each, str) for each in node) else [place]
    elif isinstance(form, set):
        yield from () if node in form else [place]
    elif form is date:
        yield from () if isinstance(node, str) and re.fullmatch(r"\d{4}-\d\d-\d\d", node) else [place]
    elif not isinstance(node, form):
        yield place


UNKNOWN = {
    "/deployment/basic/publication_date",
    "/deployment/basic/data_product_sector",
    "/deployment/deployment_model/data_source_type",
}
"""Where an entry is refused by the registry's check until somebody fills it in."""


def filled(text):
    """The entry as its reader gets it, with the places named that the registry refuses."""
    entry = yaml.safe_load(text)
    return entry, set(breaches(entry, FORM))


RNG = np.random.default_rng(0)
PEOPLE = pd.DataFrame(
    {
        "who": np.arange(90) // 3,
        "smokes": RNG.choice(["no", "yes"], 90),
        "age": RNG.integers(0, 100, 90),
    }
)
SMOKES = Categorical(["no", "yes"], nullable=False)
SCHEMA = Schema({"smokes": SMOKES, "age": Numerical(0, 99, integer=True)})
ROWS = PEOPLE[["smokes", "age"]]


def fitted(table=ROWS, schema=SCHEMA, epsilon=1.5, delta=1e-7, **settings):
    return PrivSyn(epsilon, delta, schema=schema, **settings).fit(table)


def linked():
    homes = pd.DataFrame({"home": range(60), "region": ["n", "s"] * 30})
    trips = pd.DataFrame({"home": range(60), "km": [1, 2, 3] * 20})
    tables = {
        "homes": Table(Schema({"region": Categorical(["n", "s"])}), key="home"),
        "trips": Table(Schema({"km": Numerical(0, 9, integer=True)}), parent="homes", link="home"),
    }
    return PrivSyn(1.5, 1e-7, Database(tables)).fit({"homes": homes, "trips": trips})


def beside_randomised():
    sent = randomize(ROWS[["smokes"]], Schema({"smokes": SMOKES}), keep=0.75)
    columns = {**sent.schema.columns, "age": SCHEMA.columns["age"]}
    return fitted(sent.table.assign(age=ROWS["age"]), Schema(columns))


def of_owners():
    """The ledger of owners without their network, which other tests run."""
    noise = SharedNoise(3, 2, lambda size, scale, noisy: noisy())
    spend = Spend("one-way counts of every attribute", 12, 2.0, 80.0)
    facts = ("that at least 2 of the 3 owners follow the protocol and keep their noise secret",)
    return Ledger((spend,), 1.5, 1e-7, "gaussian", noise.name, noise.private, facts)


@cache
def ledger_of(kind):
    return {
        "a row": lambda: fitted().ledger_,
        "a row, open schema": lambda: fitted(schema=None).ledger_,
        "a person": lambda: fitted(PEOPLE, unit="who").ledger_,
        "pure": lambda: fitted(delta=0.0).ledger_,
        "the paper": lambda: PrivSyn.paper(1.5, 1e-7, schema=SCHEMA).fit(ROWS).ledger_,
        "linked": lambda: linked().ledger_,
        "owners": of_owners,
        "randomised": lambda: randomize(ROWS[["smokes"]], Schema({"smokes": SMOKES}), keep=0.75).ledger,
        "beside randomised": lambda: beside_randomised().ledger_,
        "elsewhere": lambda: Ledger.measured_elsewhere("the office promises rho 0.5", ("the counts",)),
    }[kind]()


KINDS = {
    "a row": ("Approximate DP", "one record", "Central", set()),
    "a row, open schema": ("Approximate DP", "one record", "Central", set()),
    "a person": ("Approximate DP", f"all rows of one 'who'. {TODO}: whom", "Central", set()),
    "pure": ("Pure DP", "one record", "Central", set()),
    "the paper": ("Approximate DP", "one record", "Central", set()),
    "linked": (
        "Approximate DP",
        f"all rows of one home of homes. {TODO}: whom",
        "Central",
        set(),
    ),
    "owners": ("Approximate DP", "one record", "Federated", set()),
    "randomised": ("Pure DP", "the randomised cells of one record", "Local", set()),
    "beside randomised": ("Approximate DP", "one record", "Central", set()),
    "elsewhere": (
        f"{TODO}: ",
        f"{TODO}: ",
        f"{TODO}: ",
        {"/deployment/dp_variant/variant_name", "/deployment/deployment_model/model_name"},
    ),
}


@pytest.mark.parametrize("kind", KINDS)
def test_an_entry_says_what_its_ledger_says(kind):
    ledger = ledger_of(kind)
    text = registry_entry(ledger)
    entry, refused = filled(text)
    variant, unit, model, unknown = KINDS[kind]
    assert refused == UNKNOWN | unknown
    entry = entry["deployment"]
    loss, trust, accounting = (entry[name] for name in ("privacy_loss", "deployment_model", "accounting"))
    assert entry["dp_variant"]["variant_name"].startswith(variant)
    assert loss["privacy_unit"].startswith(unit)
    assert trust["model_name"].startswith(model)
    if ledger.elsewhere is None:
        promise = {"epsilon": ledger.promised_epsilon, "delta": ledger.promised_delta}
        assert loss["privacy_parameters"] == {name: value for name, value in promise.items() if value}
        assert ledger.neighbours in " ".join(loss["privacy_unit_details"].split())
        for point in ledger.to_dict()["curve"]:
            line = f"- epsilon {point['epsilon']!r} at delta {point['delta']!r}\n"
            assert line in loss["privacy_parameters_details"]
        cost = f"{ledger.cost!r}" if ledger.all_local else f"{ledger.cost:.6g}"
        assert f"add up to {cost}" in " ".join(accounting["composition"].split())
    else:
        assert loss["privacy_parameters"] == {}
        assert "the office promises rho 0.5" in loss["privacy_parameters_details"]
    if ledger.spends:
        assert f"of {ledger.budget:.6g} fixed" in " ".join(accounting["composition"].split())
        answers = sum(spend.answers for spend in ledger.spends)
        assert f"{answers:,} noisy numbers" in entry["implementation"]["mechanisms"]
    reserved = f"Thresholds reserve delta {ledger.reserved!r}"
    assert (reserved in loss["privacy_parameters_details"]) == bool(ledger.reserved)
    randomised = trust["model_name_details"] + accounting["composition"]
    assert all(f"{column.epsilon:.4f}" in randomised for column in ledger.local)
    mechanisms = " ".join(entry["implementation"]["mechanisms"].split())
    assert f"privsyn {ledger.version}: {ledger.randomness}." in mechanisms
    public = " ".join(entry["dp_variant"]["unprotected_quantities"].split())
    assert all(f"- {fact}" in public for fact in ledger.public_inputs)


def test_thresholds_are_among_these_kinds():
    assert ledger_of("a row, open schema").reserved > 0


@pytest.mark.parametrize("kind", KINDS)
def test_the_registry_can_read_an_entry_as_its_check_demands(kind):
    """No folded texts, no backslashes that its page would take for formulas, and every mark is found."""
    text = registry_entry(ledger_of(kind))
    assert (
        text == registry_entry(Ledger.from_json(ledger_of(kind).to_json())) if kind != "elsewhere" else True
    )
    styles = {token.style for token in yaml.scan(text) if isinstance(token, yaml.ScalarToken)}
    assert styles <= {None, "|", "'", '"'}
    assert not re.search(r"\\\\[^()]", text)
    assert text.count(TODO) >= 14
    assert max(map(len, text.splitlines())) < 120


def test_names_of_columns_cannot_leave_their_text():
    ledger = Ledger((), 1.0, 1e-9, "gaussian", "entropy", True, ("of 'a: b\n# c\x1b' it is known",))
    entry, refused = filled(registry_entry(ledger))
    assert refused == UNKNOWN
    assert "a: b" in entry["deployment"]["dp_variant"]["unprotected_quantities"]
    assert "\x1b" not in registry_entry(ledger)


def some_unchanged():
    kept = {"smokes": Categorical(["no", "yes"], nullable=False, keep=0.75)}
    return randomize(ROWS, Schema({**kept, "age": SCHEMA.columns["age"]})).ledger


SOME = {"seed": lambda: fitted(seed=1).ledger_, "unchanged": some_unchanged}


@pytest.mark.parametrize("ledger", SOME.values(), ids=SOME)
def test_what_is_not_private_gets_no_entry(ledger):
    with pytest.raises(InputError, match="no deployment of differential privacy: NOT PRIVATE"):
        registry_entry(ledger())


def test_a_verdict_is_in_the_entry_and_a_table_that_was_refused_has_none():
    met, ledger = Verdict("mean of age within 5", met=True, bound=5.0), ledger_of("a row")
    accepted = replace(ledger, acceptance=Acceptance(0.1, 0.05, (met,)))
    assert str(accepted.acceptance) in registry_entry(accepted)
    refused = replace(ledger, acceptance=Acceptance(0.1, 0.05, (met, replace(met, met=False))))
    with pytest.raises(InputError, match="nothing was published"):
        registry_entry(refused)


def test_the_command_reads_a_ledger_or_a_model(folder, capsys):
    synth = ("synth", "data.csv", "out.csv", "--epsilon", 1, "--schema", "schema.yaml")
    assert run(capsys, *synth, "--model", "m.privsyn", "--ledger", "l.json").code == 0
    printed = run(capsys, "registry-entry", "l.json")
    assert (printed.code, printed.err) == (0, "")
    entry = yaml.safe_load(printed.out)
    assert entry["deployment"]["privacy_loss"]["privacy_parameters"] == {"epsilon": 1.0, "delta": 1e-9}
    assert run(capsys, "registry-entry", "m.privsyn").out == printed.out
    written = run(capsys, "registry-entry", "m.privsyn", "-o", "office.yaml")
    assert written.out == f"office.yaml: a draft: {printed.out.count(TODO)} places say {TODO!r}\n"
    assert (folder / "office.yaml").read_text() == printed.out
    again = run(capsys, "registry-entry", "l.json", "-o", "office.yaml")
    assert (again.code, again.out) == (2, "")
    assert "office.yaml: exists already" in again.err
    assert run(capsys, "registry-entry", "l.json", "-o", "office.yaml", "--force").code == 0


@pytest.mark.parametrize("name", ["data.csv", "none.json", "binary", "cut.privsyn"])
def test_a_file_that_is_neither_is_refused_in_one_line(name, folder, capsys):
    (folder / "binary").write_bytes(b"\xff\x00")
    (folder / "cut.privsyn").write_bytes(b"PK\x03\x04")
    told = run(capsys, "registry-entry", name)
    assert (told.code, told.out) == (2, "")
    assert told.err.startswith(f"privsyn: {name}: ")
    assert told.err.count("\n") == 1


def test_a_saved_ledger_is_the_ledger(tmp_path):
    model = fitted()
    model.save(tmp_path / "m.privsyn")
    (tmp_path / "l.json").write_text(model.ledger_.to_json())
    assert ledger_in(tmp_path / "m.privsyn") == ledger_in(tmp_path / "l.json") == model.ledger_
