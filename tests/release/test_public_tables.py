"""Public tables that are linked by keys improve a release of linked tables, each as far as it is near."""

import io
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from refusals import refuses

from privsyn import Categorical, Database, Numerical, PrivSyn, Schema, Table, load
from privsyn.cli.main import main

JOBS, WARDS = ["baker", "clerk", "cook", "smith"], ["a", "b", "c", "d"]
HOSPITAL = Database(
    {
        "persons": Table(
            Schema({"job": Categorical(JOBS, nullable=False), "town": Categorical(JOBS, nullable=False)}),
            key="person",
        ),
        "visits": Table(
            Schema({"ward": Categorical(WARDS, nullable=False), "days": Numerical(0, 9, integer=True)}),
            key="visit",
            parent="persons",
            link="person",
            order="number",
        ),
    }
)


def hospital(persons: int, seed: int, stays: float = 0.9, first: float = 0.4) -> dict[str, pd.DataFrame]:
    """Return persons whose first ward is that of their job, and each further one that before, mostly."""
    rng = np.random.default_rng(seed)

    def mostly(codes, share):
        return np.where(rng.random(len(codes)) < share, codes, rng.integers(0, 4, len(codes)))

    job = np.where(rng.random(persons) < first, 0, rng.integers(0, 4, persons))
    number = 1 + rng.binomial(3, 0.2 + 0.15 * job * (stays > 0.5))
    person = np.repeat(np.arange(persons), number)
    position = np.arange(len(person)) - np.repeat(np.cumsum(number) - number, number)
    ward = job[person]
    for turn in range(4):
        rows = np.flatnonzero(position == turn)
        ward[rows] = mostly(ward[rows - 1] if turn else job[person[rows]], stays)
    names = np.array(JOBS), np.array(WARDS)
    return {
        "persons": pd.DataFrame(
            {"person": np.arange(persons), "job": names[0][job], "town": names[0][mostly(job, stays)]}
        ),
        "visits": pd.DataFrame(
            {
                "visit": np.arange(len(person)),
                "person": person,
                "number": position + 1,
                "ward": names[1][ward],
                "days": mostly(ward, stays) * 2 + rng.integers(0, 2, len(person)),
            }
        ),
    }


PRIVATE, NEAR, FAR = hospital(3000, 0), hospital(3000, 1, first=0.5), hospital(3000, 2, stays=0.0, first=0.9)
OTHER_DAYS = NEAR | {"visits": NEAR["visits"].assign(days=NEAR["visits"]["days"].to_numpy()[::-1])}
"""Near persons, and visits that are far. (The first ward of a person is a column of persons, as it lasts.)"""


def fitted(**settings):
    return PrivSyn(1.0, 1e-9, HOSPITAL, seed=1, **settings).fit(PRIVATE)


@pytest.fixture(scope="module")
def release():
    return fitted().release_


@pytest.fixture(scope="module")
def better(release):
    return release.with_public(NEAR)


def distance(first: pd.DataFrame, second: pd.DataFrame) -> float:
    """Return the total variation between the rows of two tables."""
    shares = first.value_counts(normalize=True), second.value_counts(normalize=True)
    return float(0.5 * shares[0].sub(shares[1], fill_value=0).abs().sum())


def distances(tables: dict[str, pd.DataFrame]) -> dict[str, float]:
    """Return the total variation, to the private tables, of pairs within and across tables."""

    def pairs(tables):
        visits = tables["visits"].merge(tables["persons"], on="person").sort_values(["person", "number"])
        follows = visits["person"] == visits["person"].shift()
        return {
            "within": visits[["ward", "days"]],
            "above": visits[["job", "ward"]],
            "next": pd.DataFrame({"then": visits["ward"].shift()[follows], "now": visits["ward"][follows]}),
            "persons": tables["persons"][["job", "town"]],
            "numbers": visits.groupby("person", as_index=False).agg(
                job=("job", "first"), rows=("ward", "size")
            )[["job", "rows"]],
        }

    private = pairs(PRIVATE)
    return {name: distance(pair, private[name]) for name, pair in pairs(tables).items()}


def test_near_tables_make_rows_within_and_across_tables_better(release, better):
    alone, with_public = (distances(r.sample(seed=0)) for r in (release, better))
    assert all(with_public[name] < 0.8 * alone[name] for name in alone), (alone, with_public)
    persons, visits = better.ledger.public_inputs[-2:]
    assert persons.startswith("the public table 'persons' of 3,000 rows (SHA-256 ")
    assert "of the synthetic rows are rows of it as they are" in persons
    assert visits.startswith(f"the public table 'visits' of {len(NEAR['visits']):,} rows (SHA-256 ")
    assert "in the counts of rows from which synthetic ones are made" in visits


def test_far_tables_change_nothing(release):
    same = release.with_public(FAR)
    assert all(same.tables[name].fitted is model.fitted for name, model in release.tables.items())
    assert same.tables["visits"].links is release.tables["visits"].links
    assert all("it is far from the released answers" in fact for fact in same.ledger.public_inputs[-2:])
    for name, table in same.sample(100, seed=0).items():
        pd.testing.assert_frame_equal(table, release.sample(100, seed=0)[name])


def test_intervals_are_those_of_the_noisy_answers(release, better):
    for name, model in release.tables.items():
        assert better.tables[name].fitted.certainties == model.fitted.certainties
    before, after = (r.tables["visits"].links.linking for r in (release, better))
    assert [link.measured for link in before] == [link.measured for link in after]
    assert before[0].table.counts.sum() == pytest.approx(after[0].table.counts.sum())


def test_each_table_is_judged_on_its_own(release, better):
    some = release.with_public(OTHER_DAYS)
    assert some.tables["visits"].links is release.tables["visits"].links
    assert some.tables["persons"].fitted.public_rows is not None
    assert "it is far from the released answers" in some.ledger.public_inputs[-1]
    assert distances(some.sample(seed=0))["persons"] < 0.8 * distances(release.sample(seed=0))["persons"]


def test_a_run_with_public_tables_is_the_run_without_them_and_improved(release, better, tmp_path):
    """The same questions, sensitivities, noise and costs; and the release that is improved afterwards."""
    model = fitted(public=NEAR)
    assert model.release_.packed() == better.packed()
    assert model.ledger_.spends == release.ledger.spends
    assert model.ledger_.epsilon(1e-9) == release.ledger.epsilon(1e-9)


def test_it_comes_back_from_a_file_as_it_was_and_a_saved_release_can_be_improved(release, better, tmp_path):
    file = io.BytesIO()
    better.save(file)
    file.seek(0)
    assert load(file).packed() == better.packed()
    release.save(tmp_path / "model.privsyn")
    assert load(tmp_path / "model.privsyn").with_public(NEAR).packed() == better.packed()


def test_a_table_may_be_lacking(release):
    some = release.with_public({"persons": NEAR["persons"]})
    assert some.tables["visits"].links is release.tables["visits"].links
    assert some.ledger.public_inputs[-1] == (
        "the public tables without 'visits': they lack it or the table above it, so that it follows its own"
        " answers"
    )
    some = release.with_public({"visits": NEAR["visits"]})  # a person for each link
    assert some.ledger.public_inputs[-2].startswith("what is counted once for each person")
    assert distances(some.sample(seed=0))["within"] < distances(release.sample(seed=0))["within"]
    with refuses("public has none of the tables 'persons', 'visits'"):
        release.with_public({})
    with refuses("public: there is no table 'visit' in the database; did you mean 'visits'?"):
        release.with_public({"visit": NEAR["visits"]})


def test_a_table_may_lack_columns_of_data_but_not_those_of_keys_and_order(release):
    alone = distances(release.sample(seed=0))
    for table, column in {"visits": "days", "persons": "job"}.items():
        some = NEAR | {table: NEAR[table].drop(columns=column)}
        assert distances(release.with_public(some).sample(seed=0))["next"] < alone["next"]
    for column, purpose in {
        "person": "which rows belong together",
        "number": "in which order rows are",
    }.items():
        lacking = NEAR | {"visits": NEAR["visits"].drop(columns=column)}
        with refuses(f"it has no column {column!r}, which says {purpose}"):
            release.with_public(lacking)


def test_a_number_within_a_key_may_be_the_order():
    """Rows are then linked and ordered as without that key."""

    def facts(key):
        visits = replace(HOSPITAL.tables["visits"], key=key)
        database = replace(HOSPITAL, tables={**HOSPITAL.tables, "visits": visits})
        private, near = ({**t, "visits": t["visits"].drop(columns="visit")} for t in (PRIVATE, NEAR))
        release = PrivSyn(1.0, 1e-9, database, seed=1).fit(private).release_.with_public(near)
        return release.ledger.public_inputs[-2:]

    assert facts(("person", "number")) == facts(None)


def test_rows_that_lead_to_nobody_or_do_not_fit_are_left_out(release, better):
    """The others are used as if they had never been there."""
    visits = NEAR["visits"]
    stray = visits.iloc[:30].assign(person=10_000, visit=range(10_000, 10_030))
    odd = visits.iloc[:20].assign(ward="none", visit=range(20_000, 20_020))
    more = release.with_public(NEAR | {"visits": pd.concat([visits, stray, odd], ignore_index=True)})
    fact = more.ledger.public_inputs[-1]
    assert fact.endswith(
        "; 20 rows with values that the schema does not have, in 'ward', are left out"
        "; 30 rows that lead to nobody are left out"
    )
    with_stray = release.with_public(NEAR | {"visits": pd.concat([visits, stray], ignore_index=True)})
    persons = with_stray.tables["persons"].fitted.public_rows
    assert np.array_equal(persons.weights, better.tables["persons"].fitted.public_rows.weights)
    assert np.array_equal(persons.records.codes, better.tables["persons"].fitted.public_rows.records.codes)
    assert more.tables["persons"].fitted.public_rows.share > 0.5


def test_a_column_of_other_values_counts_as_lacking(release):
    visits = NEAR["visits"]
    foreign = release.with_public(NEAR | {"visits": visits.assign(ward="none")})
    lacking = release.with_public(NEAR | {"visits": visits.drop(columns="ward")})
    assert "in most rows: 'ward'" in foreign.ledger.public_inputs[-1]
    assert foreign.sample(50, seed=0)["visits"].equals(lacking.sample(50, seed=0)["visits"])


def test_linked_tables_grow_since_an_earlier_release(release, tmp_path):
    last_year = PrivSyn(1.0, 1e-9, HOSPITAL, seed=5).fit(NEAR).release_
    last_year.save(tmp_path / "last.privsyn")
    drawn = release.with_since(last_year)
    begin = "rows drawn from the earlier release (these have SHA-256 "
    assert drawn.ledger.public_inputs[-2].startswith(begin)
    with refuses("linked tables take one earlier release: give the last one"):
        release.with_since([last_year, last_year])
    with refuses("is a release, whose promise adds up: give it as since"):
        release.with_public(last_year)
    saved = release.with_since(tmp_path / "last.privsyn")
    assert saved.sample(50, seed=0)["visits"].equals(drawn.sample(50, seed=0)["visits"])


@pytest.mark.slow
def test_an_earlier_release_of_near_tables_makes_a_release_better():
    """Mean over six pairs of fits, as the noise of one makes a fifth of the pairs of rows worse. The mean of
    the ratios is 0.77, and its standard error 0.04."""
    ratios = []
    for seed in range(6):
        first = PrivSyn(1.0, 1e-9, HOSPITAL, seed=seed).fit(PRIVATE).release_
        grown = first.with_since(PrivSyn(1.0, 1e-9, HOSPITAL, seed=seed + 100).fit(NEAR).release_)
        after, before = (sum(distances(r.sample(seed=0)).values()) for r in (grown, first))
        ratios.append(after / before)
    assert 0.5 < np.mean(ratios) < 0.97, ratios


def test_the_private_tables_are_no_public_ones(tmp_path):
    with refuses("public is the private table itself"):
        PrivSyn(1.0, 1e-9, HOSPITAL, public={"visits": PRIVATE["visits"]}).fit(PRIVATE)
    write(PRIVATE, tmp_path)
    with refuses("public is the private table itself"):
        PrivSyn(1.0, 1e-9, HOSPITAL, public=tmp_path).fit(
            {name: str(tmp_path / f"{name}.csv") for name in PRIVATE}
        )
    with refuses("public is the private table itself"):
        PrivSyn(1.0, 1e-9, HOSPITAL, public={"visits": tmp_path / "visits.csv"}).fit(tmp_path)
    public = tmp_path / "public"
    public.mkdir()
    write(NEAR, public)  # within the private folder, and not one of its tables
    assert PrivSyn(1.0, 1e-9, HOSPITAL, public=public).fit(tmp_path).ledger_.private


@pytest.mark.parametrize(
    "public",
    [
        NEAR | {"visits": NEAR["visits"].assign(days="x")},
        {"visits": NEAR["visits"].drop(columns="person")},
        {"persons": NEAR["persons"][["person"]]},
        "none",
    ],
)
def test_tables_that_cannot_be_used_are_refused_before_any_question(public):
    def watch(stage, done, total):
        assert stage != "measuring"

    with refuses("public|folder"):
        fitted(public=public, progress=watch)


def write(tables: dict[str, pd.DataFrame], folder) -> None:
    folder.mkdir(exist_ok=True)
    for name, table in tables.items():
        table.to_csv(folder / f"{name}.csv", index=False)


def test_the_command_betters_a_saved_model_by_a_folder(release, tmp_path, capsys):
    release.save(tmp_path / "model.privsyn")
    write(NEAR, tmp_path / "last")
    files = [str(tmp_path / name) for name in ("model.privsyn", "out")]
    assert main(["sample", *files, "--rows", "50", "--seed", "0", "--public", str(tmp_path / "last")]) == 0
    rows = release.with_public(tmp_path / "last").sample(50, seed=0)
    assert pd.read_csv(tmp_path / "out" / "visits.csv")["ward"].tolist() == rows["visits"]["ward"].tolist()
    facts = [line for line in capsys.readouterr().out.splitlines() if line.startswith("the public table")]
    assert len(facts) == 2
    assert not any("SHA-256" in fact for fact in facts)


TOGETHER = {"unit": "person", "identifiers": True, "order": "number", "derive": {"longest": "max(days)"}}


def test_one_table_whose_rows_belong_to_persons_is_improved_by_one():
    schema = HOSPITAL.tables["visits"].schema
    private, near = PRIVATE["visits"].drop(columns="visit"), NEAR["visits"].drop(columns="visit")
    release = PrivSyn(1.0, 1e-9, schema, seed=1, **TOGETHER).fit(private).release_
    improved = release.with_public(near)
    assert improved.ledger.public_inputs[-2].startswith("what is counted once for each person")

    pair = ["ward", "days"]  # the ward of the visit before is nearly right without public tables: it lasts
    alone, with_public = (distance(r.sample(seed=0)[pair], private[pair]) for r in (release, improved))
    assert with_public < 0.8 * alone
    with refuses("it has no column 'person', which says which rows belong together"):
        release.with_public(near.drop(columns="person"))
