"""The policy file: its limits, what they refuse and what the refusal says."""

from __future__ import annotations

from pathlib import Path

import pytest
from account.test_budget_file import recorded, run
from refusals import refuses

from privsyn import InputError
from privsyn.account.account import Account, left, summary
from privsyn.account.policy import Policy, policy_of


@pytest.fixture
def path(tmp_path):
    return tmp_path / "people.csv.budget.jsonl"


def policy(**changed):
    return Policy(Path("p.yaml"), **{"epsilon": 2.0, "delta": 1e-8, **changed})


def refusal(path, policy, of):
    with refuses() as error:
        Account(path, of, policy).check()
    return str(error.value)


def test_runs_may_spend_what_the_policy_allows_and_no_more(path):
    limits = policy(epsilon=0.3, delta=3e-9)
    recorded(path, run(0.1), policy=limits)
    Account(path, run(0.2), limits).begin()  # a run without its end: promises add up
    assert left(path, limits)[0] == 0
    assert refusal(path, limits, run(1e-6)) == (
        "p.yaml: allows epsilon 0.3 in all, and 0 is left: this run asks for 1e-06: no more can be released"
    )


def test_what_is_left_follows_from_the_ledgers(path):
    recorded(path, run(1.0), run(0.5))
    epsilon, delta = left(path, policy())
    assert epsilon == pytest.approx(0.894, abs=1e-3)
    assert delta == pytest.approx(8e-9)
    assert refusal(path, policy(), run(0.9)) == (
        "p.yaml: allows epsilon 2 in all, and 0.8937 is left: this run asks for 0.9: give epsilon 0.8937 or"
        " less"
    )
    Account(path, run(0.8937), policy()).begin()
    assert summary(path, policy(contact="Anna"))[-2:] == [
        "p.yaml allows epsilon 2 at delta 1e-08 in all: epsilon 0 at delta 7e-09 is left",
        "for more, ask Anna",
    ]


REFUSED = {
    "a release": ({"epsilon_of_a_release": 0.5}, run(), "allows epsilon 0.5 for a release: .* epsilon 0.5"),
    "delta": ({}, run(delta=1e-6), "allows delta 1e-08 in all, and 1e-08 is left: .*give delta 1e-08 or"),
    "pure alone": ({"delta": 0}, run(), "allows delta 0 in all, and 0 is left: .* give delta 0, for pure"),
    "a seed": ({}, run(seeded=True), "a run with a seed is not private: leave out seed"),
    "rows": ({"unit": "who"}, run(), "all rows of one 'who' must be protected: give unit who"),
    "contact": ({"contact": "a@b.org"}, run(3.0), "give epsilon 2 or less; or ask a@b.org"),
}


@pytest.mark.parametrize(("limits", "of", "words"), REFUSED.values(), ids=REFUSED)
def test_a_run_that_the_policy_does_not_allow_is_refused(limits, of, words, path):
    with pytest.raises(InputError, match=words):
        Account(path, of, policy(**limits)).check()
    assert not path.exists()


def test_what_is_allowed_passes(path):
    for limits, of in (
        ({"unit": "who"}, run(unit="who")),
        ({"delta": 0}, run(delta=0.0)),
        ({"epsilon_of_a_release": 1.0}, run(1.0)),
        ({"epsilon": 1, "delta": 1e-9}, run(1.0)),
    ):
        Account(path, of, policy(**limits)).check()


def test_runs_that_protect_different_units_have_no_total_and_seeded_ones_no_promise(path):
    recorded(path, run(0.5, unit="who"), run(0.5, seeded=True))
    said = refusal(path, policy(), run(0.5))
    words = "a run before protects all rows of one 'who', and this one protects one row: protect the same"
    assert words in said
    Account(path, run(0.5, unit="who"), policy()).check()


WRONG = {
    "epsilonn: 2\ndelta: 0": r"'epsilonn' is not known here; did you mean 'epsilon'\?",
    "epsilon: 2\ndelta: 0\n1: 2": "'1' is not known here: allowed are epsilon, delta,",
    "epsilon: 2": "'delta' is missing",
    "epsilon: two\ndelta: 0": "epsilon must be a finite number; got 'two'",
    "epsilon: 0\ndelta: 0": "epsilon must be above 0",
    "epsilon: true\ndelta: 0": "epsilon must be a finite number",
    "epsilon: 2\ndelta: 1": "delta must be at least 0 and below 1",
    "epsilon: 2\ndelta: 0\nepsilon_of_a_release: -1": "epsilon_of_a_release must be above 0",
    "epsilon: 2\ndelta: 0\nunit: 3": "unit must be text: put it in quotes",
    "- epsilon: 2": "a policy is a mapping",
    "epsilon: [": "not YAML",
}


@pytest.mark.parametrize(("text", "words"), WRONG.items(), ids=WRONG)
def test_a_wrong_policy_is_refused_in_one_line(text, words, tmp_path):
    (tmp_path / "privsyn.policy.yaml").write_text(text)
    with refuses(rf"privsyn\.policy\.yaml: {words}"):
        policy_of(tmp_path / "people.csv")


def test_a_policy_is_beside_the_table_or_in_its_folder_or_given_and_there_is_one(tmp_path):
    assert policy_of(tmp_path / "people.csv") is None
    (tmp_path / "tables").mkdir()
    (inside := tmp_path / "tables" / "privsyn.policy.yaml").write_text("epsilon: 2\ndelta: 1e-8\nunit: who")
    assert policy_of(tmp_path / "tables") == Policy(inside, 2, 1e-8, None, "who")
    assert policy_of(tmp_path / "tables" / "shop.duckdb::orders").file == inside
    assert policy_of(tmp_path / "people.csv") is None
    assert policy_of(tmp_path / "people.csv", inside).file == inside
    (tmp_path / "privsyn.policy.yaml").write_text("epsilon: 9\ndelta: 1e-8")
    assert policy_of(tmp_path / "people.csv").epsilon == 9
    for data, given in (("tables", None), ("people.csv", inside)):
        with pytest.raises(InputError, match=r"both are policies of .*: keep one of them"):
            policy_of(tmp_path / data, given)
    with pytest.raises(InputError, match=r"none\.yaml: there is no such file"):
        policy_of(Path("elsewhere/people.csv"), tmp_path / "none.yaml")


def test_delta_is_limited_by_what_is_left_of_it_as_epsilon_is(path):
    limits = policy(epsilon=100.0, delta=2.5e-9)
    recorded(path, run(0.1), run(0.1), policy=limits)
    assert left(path, limits)[1] == pytest.approx(0.5e-9)
    assert refusal(path, limits, run(0.1)) == (
        "p.yaml: allows delta 2.5e-09 in all, and 5e-10 is left: this run asks for 1e-09: give delta 5e-10 or"
        " less"
    )
    with pytest.raises(InputError, match="5e-10 is left"):
        Account(path, run(0.1), limits).begin()
    recorded(path, run(0.1, delta=5e-10), policy=limits)
    assert "give delta 0, for pure epsilon" in refusal(path, limits, run(0.1, delta=1e-12))
    recorded(path, run(0.1, delta=0.0), policy=limits)


def test_a_run_without_its_end_uses_up_its_delta(path):
    limits = policy(epsilon=100.0, delta=2e-9)
    Account(path, run(0.1), limits).begin()
    Account(path, run(0.1), limits).begin()
    assert left(path, limits) == (pytest.approx(99.8), 0.0)
    assert "and 0 is left" in refusal(path, limits, run(0.1))


def test_one_release_is_limited_also_if_it_would_take_all_that_is_left(path):
    limits = policy(epsilon=2.0, epsilon_of_a_release=0.5)
    assert "allows epsilon 0.5 for a release" in refusal(path, limits, run(2.0))
    recorded(path, run(0.5), policy=limits)
    rest = left(path, limits)[0]
    assert rest > 0.5
    assert "allows epsilon 0.5 for a release" in refusal(path, limits, run(rest))
