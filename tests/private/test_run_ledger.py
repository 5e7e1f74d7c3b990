"""A ledger says all, keeps its promise, and survives being written down."""

from __future__ import annotations

import json
from dataclasses import FrozenInstanceError, replace
from importlib import resources
from math import exp, fsum, inf, nan, sqrt

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from jsonschema import Draft202012Validator
from scipy.stats import norm

from privsyn.errors import InputError
from privsyn.private.acceptance import Acceptance, Verdict
from privsyn.private.accounting import Accounting, delta_for, epsilon_for, rho_for, sigma_for
from privsyn.private.ledger import Ledger
from privsyn.private.local_privacy import LocalPromise
from privsyn.private.noise import ExactGaussian, SharedNoise
from privsyn.private.noise_laws import GAUSSIAN
from privsyn.private.run_ledger import CURVE, LINES, NOT_PRIVATE, RunLedger
from privsyn.private.spend import ONE_WAYS, PAIRS_DRAWN, Elsewhere, QueryLog, Spend

PROMISE = (1.0, 1e-9)
LEDGER_SCHEMA = json.loads(resources.files("privsyn.private").joinpath("ledger.schema.json").read_text())


def a_ledger(shares: list[float], accounting: Accounting = "gaussian", *, private: bool = True) -> RunLedger:
    """A ledger that spends these shares of its promise."""
    rho = rho_for(*PROMISE, accounting)
    return RunLedger(
        tuple(
            Spend(
                f"question {j}",
                answers=j + 1,
                sensitivity=sqrt(j + 1),
                sigma=sigma_for(share * rho, sqrt(j + 1)),
            )
            for j, share in enumerate(shares)
        ),
        promised_epsilon=PROMISE[0],
        promised_delta=PROMISE[1],
        accounting=accounting,
        randomness="rounded Gaussian, a test",
        private=private,
        public_inputs=("Column names.", "Länge und Breite."),
        version="1.2.3",
    )


splits = st.lists(st.floats(0.01, 1), min_size=1, max_size=12).map(
    lambda parts: [x / sum(parts) for x in parts]
)


@settings(max_examples=30, deadline=None)
@given(splits, st.sampled_from(["gaussian", "zcdp", "classical"]))
def test_a_budget_split_and_spent_is_the_promise(shares: list[float], accounting: Accounting) -> None:
    ledger = a_ledger(shares, accounting)
    assert ledger.rho == pytest.approx(rho_for(*PROMISE, accounting), rel=1e-12)
    assert ledger.rho == fsum(spend.rho for spend in ledger.spends)
    assert ledger.mu == pytest.approx(sqrt(2 * ledger.rho), rel=1e-12)
    assert ledger.epsilon(PROMISE[1]) == pytest.approx(PROMISE[0], rel=1e-6)
    assert ledger.epsilon(1e-5) == pytest.approx(epsilon_for(ledger.rho, 1e-5, accounting), rel=1e-9)


def test_the_gaussian_answer_that_stands_for_a_run_is_no_more_private_than_its_draws():
    """The worst draw of the exponential mechanism with losses in an interval of length e: -e/2 and e/2."""
    rho = rho_for(*PROMISE, "classical")
    draw = Spend(f"{PAIRS_DRAWN}, by a test", 1, 1.0, sigma_for(rho, 1.0))
    ledger = replace(a_ledger([1.0], "classical"), charges=(draw,))
    corner = 1 / (1 + exp(sqrt(8 * draw.rho) / 2))
    assert norm.cdf(norm.isf(corner) - ledger.mu) <= corner < norm.cdf(norm.isf(corner) - ledger.mu / 1.1)


@given(splits)
def test_a_budget_not_all_spent_promises_no_less_epsilon(shares: list[float]) -> None:
    part = a_ledger([share / 2 for share in shares])
    assert part.rho == pytest.approx(part.budget / 2, rel=1e-9)
    assert part.epsilon(1e-5) == pytest.approx(a_ledger(shares).epsilon(1e-5), rel=1e-6)


def with_threshold(epsilon: float, delta: float, reserved: float) -> RunLedger:
    """A ledger that spends all that is left beside a threshold of delta `reserved`."""
    rho = rho_for(epsilon, delta - reserved, "gaussian")
    return replace(
        a_ledger([]),
        charges=(Spend("values", 1, 1.0, sigma_for(rho, 1.0), delta=reserved),),
        promised_epsilon=epsilon,
        promised_delta=delta,
    )


@given(st.floats(0.1, 8), st.floats(1e-12, 1e-3), st.floats(0.01, 0.99))
def test_the_delta_of_a_threshold_is_set_aside_before_the_rest_is_priced(
    epsilon: float, delta: float, share: float
) -> None:
    ledger = with_threshold(epsilon, delta, share * delta)
    assert ledger.reserved == share * delta
    assert ledger.budget < rho_for(epsilon, delta, "gaussian")
    assert ledger.rho == pytest.approx(ledger.budget, rel=1e-12)
    assert ledger.epsilon(delta) == pytest.approx(epsilon, rel=1e-6)
    assert ledger.epsilon(ledger.reserved) == ledger.epsilon(ledger.reserved / 2) == inf
    with pytest.raises(ValueError, match="spent rho"):
        replace(ledger, charges=(*ledger.spends, replace(ledger.spends[0], delta=0.0)))
    with pytest.raises(ValueError, match="thresholds take"):
        replace(ledger, charges=(replace(ledger.spends[0], delta=delta),))


@pytest.mark.parametrize("reserved", [1e-3, 0.01, 0.04])
def test_a_gaussian_answer_beside_a_threshold_keeps_the_promise_in_both_directions(reserved: float) -> None:
    # One table's answer is N(0, 1); its neighbour's gives itself away with the chance of the threshold and is
    # N(mu, 1) otherwise. The greatest advantage is an integral of positive parts.
    ledger = with_threshold(1.0, 0.05, reserved)
    x = np.linspace(-12, 12, 240_001)
    step = x[1] - x[0]
    one, other = norm.pdf(x), (1 - reserved) * norm.pdf(x, ledger.mu)
    for epsilon in (0.5, 1.0, 2.0):
        promised = reserved + delta_for(ledger.rho, epsilon, "gaussian")
        forth = np.maximum(one - np.exp(epsilon) * other, 0).sum() * step
        back = reserved + np.maximum(other - np.exp(epsilon) * one, 0).sum() * step
        assert max(forth, back) <= promised + 1e-9
        assert back >= promised - reserved  # nor is much given away


def test_a_written_ledger_tells_the_delta_of_thresholds() -> None:
    ledger = with_threshold(1.0, 1e-9, 1e-10)
    assert RunLedger.from_json(ledger.to_json()) == ledger
    fields = json.loads(ledger.to_json())
    assert fields["reserved_delta"] == fields["spends"][0]["delta"] == 1e-10
    assert min(point["delta"] for point in fields["curve"]) == 1e-9  # at 1e-12 no epsilon is kept
    assert "reserved for thresholds: delta 1e-10" in str(ledger)
    assert "thresholds" not in str(a_ledger([1.0]))


def test_a_ledger_that_overspends_cannot_exist() -> None:
    a_ledger([0.5, 0.5])
    with pytest.raises(ValueError, match="spent rho"):
        a_ledger([0.5, 0.5 + 1e-11])
    with pytest.raises(ValueError, match="spent rho"):  # the promise under a weaker accounting allows less
        replace(a_ledger([1.0]), accounting="classical")
    with pytest.raises(InputError, match="epsilon"):
        replace(a_ledger([1.0]), promised_epsilon=-1.0)


@pytest.mark.parametrize("charge", [(Spend("counts", 2, 1.0, 0.5),), "counts", {"what": "counts"}, None])
def test_a_charge_of_an_unknown_kind_is_refused_and_not_left_out(charge) -> None:
    with pytest.raises(ValueError, match="a charge that is neither"):
        RunLedger((charge,), *PROMISE, "gaussian", "operating system", private=True, public_inputs=())


def test_nothing_asked_is_a_ledger_too() -> None:
    ledger = a_ledger([])
    assert ledger.rho == 0
    assert "total" in str(ledger)


@pytest.mark.parametrize(
    ("answers", "sensitivity", "sigma"),
    [(0, 1.0, 1.0), (1, 0.0, 1.0), (1, 1.0, 0.0), (1, nan, 1.0), (1, 1.0, inf), (1, -1.0, 1.0)],
)
def test_a_spend_that_cannot_be_is_refused(answers: int, sensitivity: float, sigma: float) -> None:
    with pytest.raises(ValueError, match="counts"):
        Spend("counts", answers, sensitivity, sigma)


def test_what_was_asked_is_a_text() -> None:
    with pytest.raises(ValueError, match="text"):
        Spend(5, 1, 1.0, 1.0)  # type: ignore[arg-type]


def test_a_ledger_does_not_change() -> None:
    ledger = a_ledger([1.0])
    with pytest.raises(FrozenInstanceError):
        ledger.private = True  # type: ignore[misc]
    spends = [Spend("counts", 1, 1.0, 100.0)]
    copied = replace(ledger, charges=spends)  # type: ignore[arg-type]
    spends.clear()
    assert len(copied.spends) == 1


@settings(max_examples=20, deadline=None)
@given(splits, st.booleans())
def test_writing_and_reading_give_the_same_ledger(shares: list[float], private: bool) -> None:
    ledger = a_ledger(shares, private=private)
    assert RunLedger.from_json(ledger.to_json()) == ledger
    assert RunLedger.from_dict(ledger.to_dict()) == ledger
    assert json.loads(ledger.to_json()) == ledger.to_dict()


def test_a_verdict_and_spends_after_local_promises_are_read_as_they_were_written() -> None:
    ledger = a_ledger([0.5])
    acceptance = Acceptance(0.1, 0.05, (Verdict("mean of age", met=True, bound=1.0),))
    charges = (*ledger.spends, LocalPromise("smokes", 0.5, 2), Spend("acceptance: mean of age", 1, 1.0, 1e3))
    judged = replace(ledger, charges=charges, acceptance=acceptance)
    assert [spend.what for spend in judged.spends] == ["question 0", "acceptance: mean of age"]
    assert RunLedger.from_json(judged.to_json()) == judged


def test_the_written_ledger_says_all() -> None:
    ledger = a_ledger([0.25, 0.75])
    fields = json.loads(ledger.to_json())
    assert "warning" not in fields
    assert fields["promise"] == {"epsilon": 1.0, "delta": 1e-9}
    assert fields["neighbours"] == "add or remove one record"
    assert (fields["rho"], fields["budget"], fields["mu"]) == (ledger.rho, ledger.budget, ledger.mu)
    assert {point["delta"]: point["epsilon"] for point in fields["curve"]} == {
        delta: ledger.epsilon(delta) for delta in CURVE
    }
    assert [spend["rho"] for spend in fields["spends"]] == [spend.rho for spend in ledger.spends]
    assert fields["public_inputs"] == list(ledger.public_inputs)
    assert fields["version"] == "1.2.3"
    assert "Länge" in ledger.to_json()


@pytest.mark.parametrize(
    ("unit", "rows_per_unit", "root", "neighbours"),
    [
        (None, None, None, "add or remove one record"),
        ("person_id", 5, None, "add or remove one person: all rows of one 'person_id'"),
        (
            "person_id",
            5,
            "people",
            "add or remove one person: all rows of 'people' with one 'person_id', and all rows that lead to"
            " them",
        ),
    ],
)
def test_a_ledger_says_who_its_neighbours_are_and_names_no_bound(unit, rows_per_unit, root, neighbours):
    ledger = replace(a_ledger([1.0]), unit=unit, rows_per_unit=rows_per_unit, root=root)
    fields = ledger.to_dict()
    assert Draft202012Validator(LEDGER_SCHEMA).is_valid(fields)
    assert fields["neighbours"] == ledger.neighbours == neighbours
    assert (fields["unit"], fields["rows_per_unit"], fields.get("root")) == (unit, rows_per_unit, root)
    assert RunLedger.from_json(ledger.to_json()) == ledger
    assert f"neighbours: {neighbours}\n" in str(ledger)
    assert ("person_id" in str(ledger)) == (unit is not None)
    assert ("counted of a person: at most 5 rows in a column" in str(ledger)) == (unit is not None)


def test_a_ledger_that_was_saved_before_it_named_the_root_is_read() -> None:
    ledger = replace(a_ledger([1.0]), unit="person_id", rows_per_unit=5)
    before = ledger.to_dict() | {"neighbours": "add or remove all rows of one person (at most 5 rows each)"}
    assert "root" not in before
    assert RunLedger.from_dict(before) == ledger


def test_a_ledger_names_persons_of_other_tables_and_what_is_not_protected_of_them() -> None:
    ledger = replace(a_ledger([1.0]), unit="person_id", rows_per_unit=5, root="people")
    of_both = replace(ledger, other_roots=(("staff", "nurse"),))
    assert Draft202012Validator(LEDGER_SCHEMA).is_valid(of_both.to_dict())
    assert RunLedger.from_json(of_both.to_json()) == of_both
    staff = "or all rows of 'staff' with one 'nurse', and all rows that lead to them, but not what other rows"
    assert staff in of_both.neighbours
    assert staff in str(of_both)
    with pytest.raises(InputError, match="releases have a joint promise only if they protect the same"):
        Ledger.compose([of_both, ledger])
    with pytest.raises(ValueError, match="without a root"):
        replace(a_ledger([1.0]), other_roots=(("staff", "nurse"),))


def test_without_a_unit_each_row_of_the_root_is_a_person() -> None:
    ledger = replace(a_ledger([1.0]), root="flights")
    assert ledger.neighbours == "add or remove one person: one row of 'flights'"
    assert RunLedger.from_json(ledger.to_json()) == ledger
    schema = Draft202012Validator(LEDGER_SCHEMA)
    assert schema.is_valid(ledger.to_dict())
    assert not schema.is_valid(a_ledger([1.0]).to_dict() | {"other_roots": {"staff": "id"}})


def test_only_linked_tables_have_other_persons() -> None:
    with pytest.raises(ValueError, match="without a root"):
        replace(a_ledger([1.0]), other_roots=(("staff", "id"),))


@pytest.mark.parametrize(("unit", "rows_per_unit"), [("person_id", None), (None, 5), ("person_id", 0)])
def test_a_unit_comes_with_a_bound_on_its_rows(unit, rows_per_unit) -> None:
    with pytest.raises(ValueError, match="rows_per_unit"):
        replace(a_ledger([1.0]), unit=unit, rows_per_unit=rows_per_unit)


def test_the_schema_of_ledgers_is_one_and_refuses_what_is_none() -> None:
    Draft202012Validator.check_schema(LEDGER_SCHEMA)
    validator = Draft202012Validator(LEDGER_SCHEMA)
    fields = a_ledger([0.5, 0.5]).to_dict()
    assert validator.is_valid(fields)
    assert validator.is_valid(a_ledger([], private=False).to_dict())
    for name in fields:
        assert not validator.is_valid({key: value for key, value in fields.items() if key != name}), name
    for wrong in (
        {"more": 1},
        {"private": False},  # without a warning
        {"warning": "beware"},  # of a private run
        {"unit": "person_id"},
        {"rows_per_unit": 5},
        {"unit": "person_id", "rows_per_unit": 0},
        {"budget": 0},
        {"curve": []},
        {"reserved_delta": 1},
        {"accounting": "trust"},
        {"promise": {"epsilon": 1.0, "delta": 1.0}},
        {"spends": [fields["spends"][0] | {"rows": 7}]},
        {"spends": [fields["spends"][0] | {"answers": 1.5}]},
    ):
        assert not validator.is_valid(fields | wrong), wrong


def test_every_part_of_the_schema_is_explained() -> None:
    assert all("description" in part for part in LEDGER_SCHEMA["properties"].values())


def test_a_ledger_that_is_not_private_says_so_first_and_in_capitals() -> None:
    ledger = a_ledger([1.0], private=False)
    assert next(iter(json.loads(ledger.to_json()).items())) == ("warning", NOT_PRIVATE)
    assert str(ledger).startswith(NOT_PRIVATE)
    assert NOT_PRIVATE.upper() == NOT_PRIVATE
    assert NOT_PRIVATE not in str(a_ledger([1.0])) + a_ledger([1.0]).to_json()


def changed(**fields: object) -> str:
    return json.dumps(json.loads(a_ledger([1.0]).to_json()) | fields)


SPEND = {"what": "x", "answers": 1, "sensitivity": 1.0, "sigma": 100.0, "delta": 0.0}


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[]",
        "7",
        "{}",
        "[" * 100_000,
        changed(promise={"epsilon": 1.0}),
        changed(promise={"epsilon": "much", "delta": 1e-9}),
        changed(promise={"epsilon": 0.5, "delta": 1e-9}),
        changed(accounting="trust"),
        changed(private="false"),
        changed(public_inputs=[5]),
        changed(public_inputs=None),
        changed(unit="person_id"),
        changed(unit=7, rows_per_unit=7),
        changed(unit="person_id", rows_per_unit="5"),
        changed(unit="person_id", rows_per_unit=0),
        changed(spends=[SPEND | {"sigma": 1e-200}]),
        changed(spends=[SPEND | {"sigma": nan}]),
        changed(spends=[SPEND | {"what": 5}]),
        changed(spends=[SPEND | {"delta": -1e-10}]),
        changed(spends=[SPEND | {"delta": 1e-9}]),
        changed(spends=[{}]),
        changed(spends=5),
    ],
)
def test_a_text_that_is_no_ledger_is_refused(text: str) -> None:
    with pytest.raises(InputError, match="not a ledger"):
        RunLedger.from_json(text)


def test_a_person_can_read_it() -> None:
    text = str(a_ledger([0.1, 0.2, 0.7]))
    assert "epsilon 1.0, delta 1e-09" in text
    assert "question 1" in text
    assert "20.0%" in text
    assert "public: Column names." in text


def test_it_shows_the_one_ways_and_then_what_cost_most_and_is_written_in_the_order_of_asking() -> None:
    ledger = a_ledger([0.01, 0.02, 0.05, 0.06, 0.07, 0.08, 0.09, 0.1, 0.12, 0.4])
    named = {1: ONE_WAYS, 3: f"{ONE_WAYS} (look 2)"}
    spends = [replace(spend, what=named.get(j, spend.what)) for j, spend in enumerate(ledger.spends)]
    ledger = replace(ledger, charges=tuple(spends))
    lines = [line for line in str(ledger).splitlines() if line.startswith(("one-way", "question"))]
    order = (1, 3, 9, 8, 7, 6, 5, 4)
    assert [line.split("  ")[0] for line in lines] == [spends[j].what for j in order]
    rest = next(line for line in str(ledger).splitlines() if line.startswith("and 2 more"))
    assert rest.endswith(" 6.0%")
    assert RunLedger.from_json(ledger.to_json()).spends == tuple(spends)


def test_a_long_ledger_is_read_as_easily() -> None:
    text = str(a_ledger([1 / 500] * 500))
    assert text.count("question") == LINES
    assert f"and {500 - LINES} more" in text
    assert f"{(500 - LINES) / 500:.1%}" in text
    assert len(text.splitlines()) < 20


def test_a_promise_made_elsewhere_stands_alone() -> None:
    one, fields = Spend("a count", 1, 1.0, 10.0), ("gaussian", "a test", True, (), "1.0")
    for spends, epsilon, delta in (((one,), 0.0, 0.0), ((), 1.0, 0.0), ((), 0.0, 1e-9)):
        with pytest.raises(ValueError, match="elsewhere"):
            RunLedger((*spends, Elsewhere("a census office promises it")), epsilon, delta, *fields)


def test_a_ledger_of_counts_from_elsewhere_is_written_and_read_and_says_who_promises() -> None:
    promise, inputs = Elsewhere("a census office promises it"), ("The columns.",)
    ledger = RunLedger((promise,), 0.0, 0.0, "gaussian", "measured elsewhere", True, inputs, "1.0")
    assert RunLedger.from_json(ledger.to_json()) == ledger
    for text in (str(ledger), ledger._repr_html_()):
        assert "the counts were measured elsewhere: a census office promises it" in text
        assert "The columns." in text


def test_the_questions_to_several_tables_are_in_one_log_and_name_the_table():
    log = QueryLog()
    for table in ("visits", "visits", "drugs"):
        log.about(table).charge("rows", 1, 1.0, cost=0.5, law=GAUSSIAN)
    assert [spend.what for spend in log.spends] == ["visits: rows", "visits: rows (look 2)", "drugs: rows"]


def test_a_ledger_says_whether_several_owners_added_the_noise():
    ledger = a_ledger([0.5])
    shared = SharedNoise(3, 2, lambda size, scale, noisy: noisy())
    assert not ledger.shared
    assert not replace(ledger, randomness=ExactGaussian().name).shared
    assert replace(ledger, randomness=shared.name).shared


def test_groups_and_samples_have_a_promise_where_the_run_makes_one() -> None:
    ledger = a_ledger([0.5])
    assert ledger.epsilon(group=2) > ledger.epsilon()
    assert ledger.subsampled(0.1).epsilon < ledger.epsilon()
    elsewhere = RunLedger((Elsewhere("an office"),), 0.0, 0.0, "gaussian", "elsewhere", True, (), "1.0")
    assert elsewhere.epsilon(group=2) == inf
    with pytest.raises(InputError, match="add or remove a record"):
        elsewhere.subsampled(0.1)
