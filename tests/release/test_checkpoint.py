"""A sample that was broken off goes on to what it would have been, and takes no other for its own."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from privsyn import Categorical, Identifier, InputError, Numerical, PrivSyn, Schema
from privsyn.release import checkpoint as unfinished
from privsyn.release.release import Release
from privsyn.synthesis import synthesise as blocks

N = 9300


@pytest.fixture(scope="module")
def model():
    rng = np.random.default_rng(0)
    table = pd.DataFrame(
        {"x": rng.integers(0, 30, 3000), "y": rng.choice(["p", "q"], 3000), "who": "n1", "z": 1.5}
    )
    schema = Schema(
        {
            "x": Numerical(0, 29, integer=True),
            "y": Categorical(["p", "q"]),
            "who": Identifier("n{}"),
            "z": Numerical(0, 3, decimals=2),
        }
    )
    return PrivSyn(2.0, 1e-9, schema).fit(table).release_


@pytest.fixture(autouse=True)
def _small_blocks(monkeypatch):
    monkeypatch.setattr(blocks, "MOST_ROWS", 1000)
    monkeypatch.setattr(blocks, "LEAST_ROWS", 1000)


@pytest.fixture
def made(monkeypatch):
    """How many rows each block has that is made, and not found."""
    sizes: list[int] = []
    make = Release._records

    def spy(release, tables, n, *rest):
        sizes.append(n)
        return make(release, tables, n, *rest)

    monkeypatch.setattr(Release, "_records", spy)
    return sizes


def break_off(model, path, after, *, seed=None, error=KeyboardInterrupt):
    """Begin, and end after some blocks were decoded."""

    def stop(_stage, done, _total):
        if done == after:
            raise error

    with pytest.raises(error):
        model.sample_to(path, N, seed=seed, resume=True, progress=stop)


def inside(path):
    return sorted(file.name for file in unfinished.folder_of(path).iterdir())


@pytest.mark.slow("each case")
@pytest.mark.parametrize("ending", ["csv", "csv.gz", "parquet"])
def test_it_becomes_what_it_would_have_been(ending, model, tmp_path, made):
    whole, path = tmp_path / f"whole.{ending}", tmp_path / f"t.{ending}"
    assert model.sample_to(whole, N, seed=3) == (N, 4)
    made.clear()
    for after in (1, 0, 5, 8):
        break_off(model, path, after, seed=3)
        assert not path.exists()
        assert not any(name.startswith(".") for name in inside(path))
    assert model.sample_to(path, N, seed=3, resume=True) == (N, 4)
    assert path.read_bytes() == whole.read_bytes()
    assert sum(made) == N  # no block was made twice
    assert sorted(file.name for file in tmp_path.iterdir()) == [f"t.{ending}", f"whole.{ending}"]


@pytest.mark.slow
def test_a_drawn_seed_is_kept(model, tmp_path):
    path = tmp_path / "t.csv"
    break_off(model, path, 2)
    seed = json.loads((unfinished.folder_of(path) / unfinished.NOTES).read_text())["seed"]
    assert seed > 2**64  # less in one of 2^64 runs
    model.sample_to(path, N, resume=True)
    model.sample_to(tmp_path / "whole.csv", N, seed=seed)
    assert path.read_bytes() == (tmp_path / "whole.csv").read_bytes()
    model.sample_to(path, N, resume=True)
    assert path.read_bytes() != (tmp_path / "whole.csv").read_bytes()


def test_without_being_asked_it_keeps_nothing(model, tmp_path):
    def stop(_stage, done, _total):
        if done == 3:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        model.sample_to(tmp_path / "t.csv", N, progress=stop)
    assert list(tmp_path.iterdir()) == []


def damage(file, how):
    whole = bytearray(file.read_bytes())
    if how == "absent":
        file.unlink()
    elif how == "a row less":
        with np.load(file) as columns:
            np.savez(file, *(columns[name][:-1] for name in columns.files))
    elif how == "cut":
        file.write_bytes(whole[: len(whole) // 2])
    elif how == "empty":
        file.write_bytes(b"")
    else:
        whole[len(whole) // 2] ^= 1
        file.write_bytes(whole)


@pytest.mark.slow
@pytest.mark.parametrize("how", ["absent", "a row less", "cut", "empty", "a bit"])
def test_a_damaged_block_is_made_again(how, model, tmp_path, made):
    path = tmp_path / "t.csv"
    model.sample_to(tmp_path / "whole.csv", N, seed=3)
    made.clear()
    break_off(model, path, 4, seed=3)
    damage(unfinished.folder_of(path) / "block-000002.npz", how)
    model.sample_to(path, N, seed=3, resume=True)
    assert path.read_bytes() == (tmp_path / "whole.csv").read_bytes()
    assert N < sum(made) < N + 1100


def test_what_belongs_to_another_run_is_refused_and_left_alone(model, tmp_path, monkeypatch):
    path = tmp_path / "t.csv"
    break_off(model, path, 2, seed=3)
    before = {name: (unfinished.folder_of(path) / name).read_bytes() for name in inside(path)}

    def refused(release, n=N, seed=3):
        with pytest.raises(InputError) as raised:
            release.sample_to(path, n, seed=seed, resume=True)
        text = str(raised.value)
        assert text.startswith(f"{unfinished.folder_of(path)}: belongs to another ")
        return text.removeprefix(f"{unfinished.folder_of(path)}: belongs to another ").split(":")[0]

    other = replace(model, fitted=replace(model.fitted, total=model.fitted.total * (1 + 1e-9)))
    assert refused(other) == "model"
    assert refused(model, n=N - 1) == "number of rows"
    assert refused(model, n=None) == "number of rows"
    assert refused(model, seed=4) == "seed"
    with monkeypatch.context() as patch:
        patch.setattr(unfinished, "version", lambda _: "0.0.0")
        assert refused(model) == "version of privsyn"
    assert {name: (unfinished.folder_of(path) / name).read_bytes() for name in inside(path)} == before
    model.sample_to(path, N, resume=True)  # what is not said of the seed contradicts nothing
    assert inside_or_none(path) is None


def inside_or_none(path):
    return inside(path) if unfinished.folder_of(path).exists() else None


@pytest.mark.parametrize(
    "notes", [None, "", "[]", "{}", '{"version": 1, "model": 1, "rows": 1, "seed": "3"}']
)
def test_a_folder_that_is_not_ours_is_refused_and_left_alone(notes, model, tmp_path):
    path = tmp_path / "t.csv"
    folder = unfinished.folder_of(path)
    folder.mkdir()
    (folder / "mine.txt").write_text("mine")
    if notes is not None:
        (folder / unfinished.NOTES).write_text(notes)
    before = inside(path)
    with pytest.raises(InputError, match="not a folder that privsyn wrote, or damaged: move it away"):
        model.sample_to(path, N, resume=True)
    assert inside(path) == before


def test_a_file_in_the_folders_place_is_one_line(model, tmp_path):
    (tmp_path / "t.csv.unfinished").write_text("mine")
    with pytest.raises(InputError, match=r"t.csv.unfinished: cannot be used \(File exists\)$"):
        model.sample_to(tmp_path / "t.csv", N, resume=True)
    with pytest.raises(InputError, match="the ending is none of"):
        model.sample_to(tmp_path / "t.txt", N, resume=True)
    assert [file.name for file in tmp_path.iterdir()] == ["t.csv.unfinished"]


def test_what_a_killed_run_was_writing_is_cleared_away_and_nothing_else(model, tmp_path):
    path = tmp_path / "t.csv"
    folder = unfinished.folder_of(path)
    folder.mkdir()
    (folder / ".0123abcd-t.csv").write_text("half")  # before there were notes
    break_off(model, path, 2)
    assert ".0123abcd-t.csv" not in inside(path)
    (folder / ".0123abcd-t.csv").write_text("half")
    (folder / "mine.txt").write_text("mine")
    break_off(model, path, 3)
    assert ".0123abcd-t.csv" not in inside(path)
    model.sample_to(path, N, resume=True)
    assert path.exists()
    assert inside(path) == ["mine.txt"]


def test_a_failure_says_that_what_is_done_is_kept(model, tmp_path):
    path = tmp_path / "t.csv"

    def fail(_stage, done, _total):
        if done == 4:
            raise OSError(28, "No space left on device")

    with pytest.raises(InputError) as raised:
        model.sample_to(path, N, resume=True, progress=fail)
    assert str(raised.value) == (
        f"{path}: cannot be written (No space left on device);"
        " finished blocks are kept in t.csv.unfinished: the same call resumes"
    )
    assert len(inside(path)) > 4


def test_few_rows_are_one_block_and_leave_nothing_behind(model, tmp_path):
    for n in (0, 5):
        assert model.sample_to(tmp_path / "t.csv", n, seed=1, resume=True) == (n, 4)
        model.sample_to(tmp_path / "u.csv", n, seed=1)
        assert (tmp_path / "t.csv").read_bytes() == (tmp_path / "u.csv").read_bytes()
    assert sorted(file.name for file in tmp_path.iterdir()) == ["t.csv", "u.csv"]


def test_a_link_is_written_through_and_its_blocks_lie_beside_the_file(model, tmp_path):
    (tmp_path / "far").mkdir()
    (tmp_path / "t.csv").symlink_to(tmp_path / "far" / "real.csv")
    break_off(model, tmp_path / "t.csv", 2)
    assert [file.name for file in (tmp_path / "far").iterdir()] == ["real.csv.unfinished"]
    model.sample_to(tmp_path / "t.csv", N, resume=True)
    assert [file.name for file in (tmp_path / "far").iterdir()] == ["real.csv"]


def test_a_fitted_synthesizer_writes_too(tmp_path):
    model = PrivSyn(1.0, 1e-9, Schema({"a": Categorical(["p", "q"])}), seed=0).fit(pd.DataFrame({"a": ["p"]}))
    assert model.sample_to(tmp_path / "t.csv", 3000, resume=True) == (3000, 1)
    assert pd.read_csv(tmp_path / "t.csv")["a"].tolist() == model.sample(3000)["a"].tolist()


@pytest.mark.slow
@pytest.mark.parametrize("begun", [1, 8])
def test_of_two_runs_at_once_one_ends_in_a_line_and_the_other_in_the_file(begun, model, tmp_path):
    path = tmp_path / "t.csv"

    def another(_stage, done, _total):
        if done == begun:
            assert model.sample_to(path, N, resume=True) == (N, 4)

    with pytest.raises(InputError) as raised:
        model.sample_to(path, N, seed=3, resume=True, progress=another)
    assert "\n" not in str(raised.value)
    model.sample_to(tmp_path / "whole.csv", N, seed=3)
    assert path.read_bytes() == (tmp_path / "whole.csv").read_bytes()
    assert sorted(file.name for file in tmp_path.iterdir()) == ["t.csv", "whole.csv"]


def test_a_failure_before_any_block_leaves_nothing_behind(model, tmp_path):
    def fail(*_):
        raise OSError(28, "No space left on device")

    with pytest.raises(InputError, match=r"\(No space left on device\)$"):
        model.sample_to(tmp_path / "t.csv", 5, resume=True, progress=fail)
    assert not list(tmp_path.iterdir())
