"""A release is saved, loaded, shown and sampled; a save that fails leaves what was there."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from refusals import refuses
from small_releases import SCHEMA, both, table

from privsyn import Categorical, Database, InputError, PrivSyn, Release, Schema, Table, load, sizes
from privsyn.abilities import LINKED, TOGETHER
from privsyn.errors import safe_repr
from privsyn.synthesis.synthesise import ENOUGH

# --- there and back ----------------------------------------------------------------------------------------


def test_a_path_may_be_a_text_and_a_file_be_replaced(releases, tmp_path):
    path = str(tmp_path / "m.privsyn")
    releases["published"].save(path)
    releases["default"].save(path)
    assert load(path).table().method.name == "default"
    assert [file.name for file in tmp_path.iterdir()] == ["m.privsyn"]


def test_words_that_were_forgotten_are_added_and_nothing_else_changes(releases, tmp_path):
    for release in (releases["published"], releases["default"]):
        titled = release.with_about({"title": "Visits", "publisher": "Office"}).with_about({"title": "Stays"})
        titled.save(tmp_path / "m.privsyn")
        again = load(tmp_path / "m.privsyn")
        assert again.about.to_plain() == {"title": "Stays", "publisher": "Office"}
        assert again.with_about(None).packed() == again.packed()
        assert again.ledger == release.ledger
        assert again.sample(9, seed=0).equals(release.sample(9, seed=0))
        assert release.about is None
        with refuses("title is a text"):
            release.with_about({"title": 3})


def test_names_and_values_in_any_letters_come_back(tmp_path):
    schema = Schema({"名前 'a'\n": Categorical(["é", "\U0001f956", 'a "b"', "", "\ud800"])})
    frame = pd.DataFrame({name: ["é"] * 9 for name in schema.columns}, dtype=object)
    model = PrivSyn(1.0, 1e-9, schema).fit(frame)
    model.save(tmp_path / "m.privsyn")
    assert load(tmp_path / "m.privsyn").codec == model.release_.codec


@pytest.mark.slow("each case")
@both
def test_a_few_rows_are_drawn_from_a_table_that_is_large_enough(method, releases):
    """They scatter as six rows do that are drawn at random; made by themselves they would all be typical.

    The variance of 200 draws is off by half with a probability of some 1e-8."""
    release = releases[method]
    assert 100 < release.fitted.total < ENOUGH
    share = release.sample(5000, seed=0)["land"].eq("CH").mean()
    counts = [release.sample(6, seed=seed)["land"].eq("CH").sum() for seed in range(200)]
    assert 0.5 < np.var(counts) / (6 * share * (1 - share)) < 1.5
    assert abs(np.mean(counts) - 6 * share) < 5.5 * np.sqrt(6 * share * (1 - share) / 200)


# --- saving ------------------------------------------------------------------------------------------------


def test_saving_to_a_folder_that_is_not_there_leaves_nothing_behind(releases, tmp_path):
    with refuses("there is no folder"):
        releases["default"].save(tmp_path / "absent" / "m.privsyn")
    assert list(tmp_path.iterdir()) == []


def test_saving_over_a_folder_leaves_it_as_it_was(releases, tmp_path):
    (tmp_path / "m.privsyn").mkdir()
    with pytest.raises(InputError, match="is a folder"):
        releases["default"].save(tmp_path / "m.privsyn")
    assert [path.is_dir() for path in tmp_path.iterdir()] == [True]


def test_a_disk_that_fails_leaves_the_old_file(releases, tmp_path, monkeypatch):
    (tmp_path / "m.privsyn").write_text("old")

    def fail(path, whole):
        path.write_text("half")
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "write_bytes", fail)
    with pytest.raises(InputError, match="No space left"):
        releases["default"].save(tmp_path / "m.privsyn")
    assert [(path.name, path.read_text()) for path in tmp_path.iterdir()] == [("m.privsyn", "old")]


# --- small things ------------------------------------------------------------------------------------------


@both
def test_shown_in_a_session_it_says_little(method, releases):
    """And no counts: a line, with a warning where the run can be repeated."""
    text = repr(releases[method])
    assert "3 columns" in text
    assert "NOT PRIVATE" in text
    assert len(text) < 100
    assert "epsilon 1 at delta 1e-09" in repr(PrivSyn(1.0, 1e-9, SCHEMA, method=method).fit(table()).release_)


def test_what_may_hold_data_is_not_shown():
    assert safe_repr(table()) == "a DataFrame"
    assert safe_repr(table()["city"].to_numpy()) == "a ndarray"
    assert len(safe_repr("x" * 1000)) < 50
    assert "\n" not in safe_repr("a\nb")


@both
def test_what_could_not_be_loaded_is_not_written(method, releases, tmp_path):
    release = releases[method]
    first = release.fitted.one_ways[0]
    halved = replace(first, counts=first.counts / 2)
    fitted = replace(release.fitted, one_ways=(halved, *release.fitted.one_ways[1:]))
    with pytest.raises(ValueError, match=r"another total"):
        Release.of_table(replace(release.table(), fitted=fitted)).save(tmp_path / "m.privsyn")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("values", [["a", "b", "c"], [1, 2, 3]])
def test_categories_of_which_all_values_are_known_gain_none(values):
    rng = np.random.default_rng(0)
    table = pd.DataFrame({"c": pd.Categorical(rng.choice(values, 3000))})
    model = PrivSyn(1.0, seed=0).fit(table)
    for sample in (model.sample(500, seed=0), model.sample(50, given={"c": values[0]}, seed=0)):
        assert set(sample["c"].dtype.categories) == set(values)
        assert sample["c"].dtype.categories.dtype == table["c"].dtype.categories.dtype


def test_one_class_has_one_table_and_several_and_all_that_a_user_calls():
    """A table that was given alone comes back alone, a database as a dict; all tables have one ledger."""
    visits = pd.DataFrame({"who": [1, 1, 2, 3] * 50, "ward": ["a", "b", "a", "b"] * 50})
    wards = Schema({"ward": Categorical(["a", "b"])})
    people = pd.DataFrame({"who": [1, 2, 3] * 50}).drop_duplicates()
    database = Database(
        {"people": Table(Schema({}), key="who"), "visits": Table(wards, parent="people", link="who")}
    )
    alone = PrivSyn(9.0, 1e-6, wards, unit="who", seed=1).fit(visits).release_
    together = PrivSyn(9.0, 1e-6, wards, unit="who", identifiers=True, seed=1).fit(visits).release_
    linked = PrivSyn(9.0, 1e-6, database, seed=1).fit({"people": people, "visits": visits}).release_
    for release, names in ((alone, ["rows"]), (together, ["persons", "rows"]), (linked, [*database.names])):
        assert isinstance(release, Release)
        assert list(release.tables) == names
        assert {id(model.ledger) for model in release.tables.values()} == {id(release.ledger)}
        assert f"about {round(release.fitted.total) if release is alone else ''}" in repr(release)
        assert set(release.outlooks()) == set(release.database.shown)
        assert len(release.draws(2, 5, seed=1)) == 2
    assert list(alone.sample(3)) == ["ward"]
    assert list(together.sample(3)) == ["who", "ward"]
    assert list(linked.sample(3)) == ["people", "visits"]
    assert (alone.kinds, together.kinds, linked.kinds) == ((), (TOGETHER,), (LINKED,))
    for call in (linked.table, lambda: linked.codec, lambda: linked.outlook(), lambda: linked.absent("ward")):
        with pytest.raises(InputError, match="for one table, and the model has several"):
            call()


def test_more_rows_than_memory_holds_are_refused_before_one_is_drawn():
    visits = pd.DataFrame({"who": [1, 1, 2, 3] * 50, "ward": ["a", "b", "a", "b"] * 50})
    wards = Schema({"ward": Categorical(["a", "b"])})
    alone = PrivSyn(9.0, 1e-6, wards, seed=1).fit(visits[["ward"]]).release_
    together = PrivSyn(9.0, 1e-6, wards, unit="who", identifiers=True, seed=1).fit(visits).release_
    for release in (alone, together):
        for draw in (release.sample, release.sample_blocks, lambda n, release=release: release.draws(2, n)):
            with refuses("n must be a whole number of at most 10,000,000,000; got 1,000,000,000,000"):
                next(iter(draw(10**12)))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sizes, "memory_of_machine", lambda: 1e6)
        with refuses(r"n: 200,000 rows do not fit in memory: write them in blocks with sample_to\(path, n\)"):
            alone.sample(200_000)
        with refuses("ask for fewer, and repeat with another seed"):
            alone.sample(200_000, given={"ward": "a"})
        with refuses("with the rows that belong to them: ask for fewer"):
            together.sample(200_000)
        assert len(alone.sample(1000)) == 1000
        assert sum(map(len, alone.sample_blocks(200_000))) == 200_000
