"""Collectors: sums of thousands of rows in secret shares, whoever vanishes, lies or comes twice."""

from __future__ import annotations

import json
import shutil
from collections import Counter
from contextlib import nullcontext
from dataclasses import replace
from threading import Thread, current_thread

import numpy as np
import pandas as pd
import pytest
from collectors import simulation
from owners.meeting import CrashError
from refusals import refuses
from scipy.stats import chi2

from privsyn import Categorical, InputError, Numerical, PrivSyn, Schema
from privsyn.cli.main import main
from privsyn.collectors.board import CONTRIBUTIONS, KEY, Board, PrivateKeys, Study
from privsyn.collectors.coding import codec_of, contribute_file
from privsyn.collectors.collection import Collection
from privsyn.collectors.collectors import CollectedNoise, Collectors
from privsyn.collectors.contribution_file import (
    CHECKS,
    TAG,
    Contributions,
    one_hot,
    shares_of,
    write_contribution,
)
from privsyn.collectors.field import PRIME, deal, on_polynomial, product, random_residues, value_at
from privsyn.collectors.promise import Promise
from privsyn.marginals.domain import Domain
from privsyn.owners.journal import Journal
from privsyn.progress import no_progress
from privsyn.table.schema.yaml_file import to_yaml

pytest.importorskip("cryptography")

SCHEMA = Schema(
    {
        "sex": Categorical(["F", "M"], nullable=False),
        "age": Numerical(0, 9, integer=True),
        "job": Categorical(list("abc")),
    }
)
PROMISE = Promise(1.0, 1e-9, "gaussian", lost=1)
DOMAIN = Domain(("a", "b"), (3, 4))


def settings(**changed):
    return PrivSyn(**{"epsilon": 1.0, "schema": SCHEMA} | changed)


def table(rows, seed=0):
    rng = np.random.default_rng(seed)
    sex = rng.choice(["F", "M"], rows)
    job = np.where(sex == "F", "a", rng.choice(list("bc"), rows))
    return pd.DataFrame({"job": job, "sex": sex, "age": rng.integers(0, 10, rows)})


@pytest.fixture
def study(tmp_path):
    """A study of three collectors, to which 200 people were asked to contribute."""
    table(200).to_csv(tmp_path / "rows.csv", index=False)
    simulation.begin(tmp_path / "study", settings())
    return tmp_path / "study"


class Run:
    """The collectors in threads. Some crash where they publish a file: (party, name, "before" or "after")."""

    def __init__(self, folder, *crashes):
        self.folder, self.crashes = folder, [*crashes]
        self.drawn, self.noises = Counter(), {}

    def __call__(self, parties=range(3), *, patience=5.0, **changed):
        results = {}

        def life(party):
            keys = self.folder.with_name(f"{party}.key")
            try:
                ours = Collectors(self.folder, party=party, keys=keys, patience=patience)
                results[party] = settings(**changed).fit(ours)
            except Exception as error:
                results[party] = error

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(Board, "post", self._posting(Board.post))
            patch.setattr(CollectedNoise, "draw", self._drawing(CollectedNoise.draw))
            threads = [Thread(target=life, args=(party,), name=str(party)) for party in parties]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join(120)
        return results

    def _posting(self, post):
        def crashes(*moment):
            if moment in self.crashes:
                self.crashes.remove(moment)
                raise CrashError

        def posting(board, name, content):
            crashes(board.party, name, "before")
            post(board, name, content)
            crashes(board.party, name, "after")

        return posting

    def _drawing(self, draw):
        def drawing(noise, scale, size):
            party = int(current_thread().name)
            self.noises[party, self.drawn[party]] = draw(noise, scale, size)
            self.drawn[party] += 1
            return self.noises[party, self.drawn[party] - 1]

        return drawing


def test_two_ways_of_sharing_agree():
    """MPyC opens what we dealt, and we open what MPyC dealt."""
    thresha = pytest.importorskip("mpyc.thresha")
    finfields = pytest.importorskip("mpyc.finfields")
    field = finfields.GF(PRIME)
    secrets = [0, 1, PRIME - 1, 123456789]
    ours = deal(np.array(secrets), parties=5, degree=2)
    points = [(party + 1, [field(int(share)) for share in ours[party]]) for party in (0, 2, 4)]
    assert [int(value) % PRIME for value in thresha.recombine(field, points)] == secrets
    theirs = thresha.random_split(field, [field(secret) for secret in secrets], 2, 5)
    shares = {party: np.array([int(share) for share in theirs[party]]) for party in (1, 2, 3)}
    assert value_at(0, shares).tolist() == secrets


def test_one_share_shows_nothing_and_two_show_the_secret():
    """Shares are uniform. By chance this fails in 6 of 10^7 runs: three tests of 2e-7 each."""
    shares = deal(np.full(64_000, 7), parties=3, degree=1)
    for share in shares:
        counts = np.histogram(share / PRIME, bins=64, range=(0, 1))[0]
        statistic = ((counts - 1000) ** 2 / 1000).sum()
        assert 1e-7 < chi2.sf(statistic, 63) < 1 - 1e-7
    assert (value_at(0, {2: shares[2], 0: shares[0]}) == 7).all()


def test_products_are_exact():
    rng = np.random.default_rng(0)
    left, right = rng.integers(PRIME - 9, PRIME, (2, 3000)), rng.integers(0, PRIME, (3000, 3))
    exact = left.astype(object) @ right.astype(object) % PRIME
    assert np.array_equal(product(left, right), exact.astype(np.int64))


def test_a_product_of_shares_is_of_twice_the_degree():
    first, second = deal(np.arange(9), 3, 1), deal(np.arange(9), 3, 1)
    products = dict(enumerate(first * second % PRIME))
    assert (value_at(0, products) == np.arange(9) ** 2).all()
    assert not on_polynomial(1, products).any()


def boards_of(folder):
    study = Study.read(folder)
    return [
        Board(
            folder,
            study,
            party,
            PrivateKeys.of_file(folder.with_name(f"{party}.key")),
            Journal.open(folder.with_name(f"{party}.key.run")),
            20.0,
            no_progress,
        )
        for party in range(len(study.keys))
    ]


def checked(folder, study, contributions):
    """What the collectors find valid among contributions, each of which is keys and shares."""
    names = [write_contribution(folder, study, keys, shares).name for keys, shares in contributions]
    boards = boards_of(folder)
    collections = {}
    threads = [
        Thread(target=lambda board=board: collections.update({board.party: Collection(board, DOMAIN)}))
        for board in boards
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    valid = {frozenset(c._files.names[index] for index in c.valid) for c in collections.values()}
    assert len(valid) == 1
    return [name in next(iter(valid)) for name in names], collections


@pytest.fixture(params=[3, 5])
def bare(tmp_path, request):
    """A study of the domain above, and new keys of contributors."""
    folder = tmp_path / "study"
    for party in range(request.param):
        keys = PrivateKeys.of_file(tmp_path / f"{party}.key")
        Study.join(folder, party, request.param, keys, bytes(KEY), PROMISE)
    numbers = iter(range(1000))
    return folder, Study.read(folder), lambda: PrivateKeys.of_file(tmp_path / f"c{next(numbers)}.key")


MALFORMED = {
    "two codes of one column": [1, 1, 0, 1, 0, 0, 0],
    "no code of a column": [0, 0, 0, 1, 0, 0, 0],
    "fifty votes": [50, -49, 0, 1, 0, 0, 0],
    "halves": [PRIME // 2 + 1, PRIME // 2 + 1, 0, 1, 0, 0, 0],
    "a vote against": [-1, 1, 1, 0, 1, 0, 0],
    "a vote of one column in another": [1, 1, 0, 0, 0, 0, 0],
    "nothing": [0] * 7,
}


def test_only_rows_count_and_of_each_contributor_one(bare):
    folder, study, keys = bare
    row = one_hot(np.array([2, 1]), DOMAIN)
    good = [(keys(), shares_of(row, study)) for _ in range(20)]
    bad = [(keys(), shares_of(np.array(vector) % PRIME, study)) for vector in MALFORMED.values()]
    for number in range(len(row) + 2 * CHECKS):  # one number of one collector is another
        shares = shares_of(row, study)
        shares[number % len(shares), number] += 1 if shares[number % len(shares), number] < PRIME - 1 else -1
        bad.append((keys(), shares))
    bad += [(keys(), random_residues(shares_of(row, study).shape)) for _ in range(20)]
    twice = keys()
    again = [(twice, shares_of(row, study)), (twice, shares_of(row, study))]
    again.append((twice, shares_of(np.array(MALFORMED["fifty votes"]) % PRIME, study)))
    valid, collections = checked(folder, study, [*good, *bad, *again])
    assert all(valid[: len(good)])
    assert not any(valid[len(good) : -3])
    assert sum(valid[-3:]) == 1
    assert not valid[-1]
    vectors = {party: c._parts[c.valid, :7].sum(axis=0) % PRIME for party, c in collections.items()}
    assert value_at(0, {0: vectors[0], 2: vectors[2], 1: vectors[1]}).tolist() == (21 * row).tolist()


def test_the_check_of_honest_contributions_shows_random_numbers_and_zero(bare):
    """By chance this fails in about 1 of 10^6 runs: up to six tests of 2e-7 each."""
    folder, study, keys = bare
    row = shares_of(one_hot(np.array([2, 1]), DOMAIN), study)
    assert row.shape == (len(study.keys), 7 + 2 * CHECKS)
    _, collections = checked(
        folder, study, [(keys(), shares_of(one_hot(np.array([0, 0]), DOMAIN), study)) for _ in range(300)]
    )
    published = {party: c._combinations() for party, c in collections.items()}
    of_entries = value_at(0, {party: values[:, :CHECKS] for party, values in published.items()})
    of_squares = value_at(0, {party: values[:, CHECKS:] for party, values in published.items()})
    assert (of_squares == 0).all()
    for numbers in (of_entries, *(values[:, CHECKS:] for values in published.values())):
        counts = np.histogram(numbers / PRIME, bins=10, range=(0, 1))[0]
        assert 1e-7 < chi2.sf(((counts - 60) ** 2 / 60).sum(), 9) < 1 - 1e-7


def test_a_contribution_copied_under_another_key_does_not_count(bare):
    """It would count twice, and so reveal what it says: its parts are sealed for the contributor's key."""
    folder, study, keys = bare
    row = shares_of(one_hot(np.array([2, 1]), DOMAIN), study)
    content = write_contribution(folder, study, keys(), row).read_bytes()
    thief = keys()
    copy = thief.public[1] + content[KEY:-64]
    name = f"{copy[:KEY].hex()}.{copy[KEY : KEY + TAG].hex()}"
    (folder / CONTRIBUTIONS / name).write_bytes(copy + thief.sign(study.digest + copy))
    # Not signed by anybody
    (folder / CONTRIBUTIONS / f"{'0' * 64}.{'0' * 32}").write_bytes(bytes(len(content)))
    (folder / CONTRIBUTIONS / "a note").write_text("hello")
    (folder / CONTRIBUTIONS / f"{'1' * 64}.{'0' * 32}").mkdir()
    (folder / CONTRIBUTIONS / f"{'2' * 64}.{'0' * 32}").symlink_to("nowhere")
    _, collections = checked(folder, study, [])
    assert [len(c.valid) for c in collections.values()] == [1] * len(study.keys)
    assert len(collections[0]._files.names) == 3


def test_a_contribution_that_is_removed_after_the_collection_ended_changes_nothing_else(bare):
    folder, study, keys = bare
    shares = shares_of(one_hot(np.array([2, 1]), DOMAIN), study)
    files = [write_contribution(folder, study, keys(), shares) for _ in range(3)]
    boards_of(folder)[0].decide("contributions.set", lambda: Contributions.listed(folder, study, 7))
    files[0].unlink()
    files[1].write_bytes(files[2].read_bytes())
    _, collections = checked(folder, study, [])
    names = [c._files.names[index] for c in collections.values() for index in c.valid]
    assert names == [files[2].name] * len(study.keys)


def test_a_contribution_to_a_study_does_not_count_in_the_next_one_with_the_same_keys(bare, tmp_path):
    folder, study, keys = bare
    file = write_contribution(folder, study, keys(), shares_of(one_hot(np.array([2, 1]), DOMAIN), study))
    following = tmp_path / "next"
    for party in range(len(study.keys)):
        collector = PrivateKeys.of_file(tmp_path / f"{party}.key")
        Study.join(following, party, len(study.keys), collector, bytes(KEY), PROMISE)
    shutil.copy(file, following / CONTRIBUTIONS)
    vector = one_hot(np.array([0, 0]), DOMAIN)
    new = Study.read(following)
    valid, collections = checked(following, new, [(keys(), shares_of(vector, new))])
    assert valid == [True]
    assert [len(c.valid) for c in collections.values()] == [1] * len(study.keys)


def test_a_file_that_changes_after_the_check_changes_nothing_where_a_collector_restarts(bare):
    folder, study, keys = bare
    shares = shares_of(one_hot(np.array([2, 1]), DOMAIN), study)
    _, before = checked(folder, study, [(keys(), shares), (keys(), shares)])
    gone, changed = (folder / CONTRIBUTIONS / name for name in before[0]._files.names)
    gone.unlink()
    changed.write_bytes(bytes(changed.stat().st_size))
    again = Collection(boards_of(folder)[0], DOMAIN)
    assert again.valid.tolist() == [0, 1]
    assert (again._parts == before[0]._parts).all()


def test_a_row_is_not_sent_to_a_study_with_another_fingerprint(study, tmp_path):
    table(1).to_csv(tmp_path / "row.csv", index=False)
    fingerprint = Study.read(study).fingerprint
    with refuses("another fingerprint than you gave: nothing was sent"):
        contribute_file(tmp_path / "row.csv", settings(), study, tmp_path / "c.key", fingerprint[::-1])
    assert not [*(study / CONTRIBUTIONS).iterdir()]
    contribute_file(tmp_path / "row.csv", settings(), study, tmp_path / "c.key", fingerprint.upper())
    assert [*(study / CONTRIBUTIONS).iterdir()]


def test_without_a_fingerprint_no_row_is_sent(study, tmp_path, monkeypatch, capsys):
    """Somebody who can write to the folder may have put a study with keys of their own there."""
    monkeypatch.chdir(tmp_path)
    table(1).to_csv("row.csv", index=False)
    (tmp_path / "schema.yaml").write_text(to_yaml(SCHEMA))
    arguments = ["contribute", "row.csv", "--schema", "schema.yaml", "--collectors", "study"]
    assert main(arguments) == 2
    assert "from the people who run the study, by another way than the folder" in capsys.readouterr().err
    assert not [*(study / CONTRIBUTIONS).iterdir()]
    assert main([*arguments, "--fingerprint", Study.read(study).fingerprint]) == 0
    assert [*(study / CONTRIBUTIONS).iterdir()]


@pytest.mark.parametrize(
    "changed", [{"epsilon": 2.0}, {"delta": 1e-6}, {"lost": 0}, {"accounting": "zcdp"}], ids=str
)
def test_the_promise_is_part_of_the_fingerprint(study, tmp_path, changed):
    """Collectors who choose another promise when they have the rows would need another study."""
    before = Study.read(study)
    plain = json.loads((study / "study.json").read_bytes())
    (study / "study.json").write_text(json.dumps(plain | {"promise": plain["promise"] | changed}))
    assert Study.read(study).promise == replace(before.promise, **changed)
    assert Study.read(study).fingerprint != before.fingerprint
    table(1).to_csv(tmp_path / "row.csv", index=False)
    with refuses("nothing was sent"):
        contribute_file(tmp_path / "row.csv", settings(), study, tmp_path / "c.key", before.fingerprint)


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"epsilon": 2.0}, "epsilon must be 1.0, which the study promised its contributors; got 2.0"),
        ({"delta": 1e-6}, "delta must be 1e-09"),
        ({"delta": 0.0}, "delta must be 1e-09"),
    ],
)
def test_a_run_with_another_promise_than_that_of_the_study_is_refused(study, changed, message):
    ours = Collectors(study, party=0, keys=study.with_name("0.key"), patience=0.2)
    with refuses(message):
        settings(**changed).fit(ours)
    assert not study.with_name("0.key.run").exists()


def test_the_commands_state_the_promise_and_keep_it(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "schema.yaml").write_text(to_yaml(SCHEMA))
    table(1).to_csv("row.csv", index=False)

    def collect(party, *options):
        code = main(["collect", "study", "--schema", "schema.yaml", "--party", str(party), *options])
        return code, " ".join("".join(capsys.readouterr()).split())

    code, text = collect(0, "--join", "3")
    assert (code, "--join needs --epsilon" in text) == (2, True)
    code, text = collect(0, "--join", "3", "--epsilon", "2", "--lost", "2")
    assert (code, "--lost must be 0 to 1 of 3 collectors" in text) == (2, True)
    assert not (tmp_path / "collector-0.key").exists()
    for party in (0, 1):
        assert collect(party, "--join", "3", "--epsilon", "2", "--lost", "0")[0] == 0
    code, text = collect(0, "--join", "3", "--epsilon", "3", "--lost", "0")
    assert (code, "joined with another key, schema, epsilon" in text) == (2, True)
    code, text = collect(2, "--join", "3", "--epsilon", "2", "--lost", "0")
    promise = "epsilon 2 at delta 1e-09 (gaussian accounting), also if 0 collectors are lost"
    assert (code, f"it promises each contributor {promise}" in text) == (0, True)
    for option, value, promised in (("--epsilon", "3", 2.0), ("--delta", "0", 1e-9), ("--lost", "1", 0)):
        code, text = collect(0, "--model", "0.privsyn", option, value)
        assert (code, f"{option} must be {promised}, which the study promised" in text) == (2, True)
    fingerprint = Study.read(tmp_path / "study").fingerprint
    contribute = ["contribute", "row.csv", "--schema", "schema.yaml", "--collectors", "study"]
    assert main([*contribute, "--fingerprint", fingerprint]) == 0
    assert f"the study promises you {promise}" in capsys.readouterr().out


def test_collectors_who_promise_different_things_begin_no_study(tmp_path):
    for party, epsilon in enumerate([1.0, 1.0, 2.0]):
        keys = PrivateKeys.of_file(tmp_path / f"{party}.key")
        with refuses("promise another epsilon") if party == 2 else nullcontext():
            Study.join(tmp_path, party, 3, keys, bytes(KEY), replace(PROMISE, epsilon=epsilon))
    assert not (tmp_path / "study.json").exists()


@pytest.mark.parametrize(
    ("forge", "message"),
    [
        (lambda plain: {"collectors": plain["collectors"][:1], "degree": 0}, "got 1,"),
        (lambda plain: {"collectors": plain["collectors"][:2], "degree": 0}, "got 2,"),
        (lambda plain: {"collectors": plain["collectors"][:1] * 3}, "have the same key"),
        (
            lambda plain: {"collectors": [[key, signing[:-2]] for key, signing in plain["collectors"]]},
            "damaged",
        ),
        (lambda plain: {"degree": 0}, "damaged"),
        (lambda plain: {"more": 1}, "damaged"),
        (lambda plain: {"promise": plain["promise"] | {"lost": 2}}, "lost must be 0 to 1"),
        (lambda plain: {"promise": plain["promise"] | {"epsilon": float("inf")}}, "damaged"),
        (lambda plain: {"promise": plain["promise"] | {"epsilon": "1"}}, "damaged"),
    ],
)
def test_a_study_of_too_few_collectors_or_of_another_degree_is_refused(study, forge, message):
    plain = json.loads((study / "study.json").read_bytes())
    (study / "study.json").write_text(json.dumps(plain | forge(plain)))
    with refuses(message):
        Study.read(study)


@pytest.mark.slow
@pytest.mark.parametrize(
    "crash",
    [
        (2, "answers/000001.sum", "before"),
        (2, "answers/000001.deal", "before"),
        (0, "answers/000001.sum", "after"),
        (1, "answers/000001.deal", "after"),
    ],
)
def test_sums_are_those_of_the_honest_rows_although_a_collector_is_killed_in_round_two(
    study, tmp_path, crash
):
    rows = tmp_path / "rows.csv"
    honest, _, late = simulation.contribute(study, Study.read(study), settings(), rows, seed=1)
    assert len(honest) == 200 - 4 - 2
    run = Run(study, crash)
    first = run()
    list(late)
    assert isinstance(first.pop(crash[0]), CrashError)
    assert len({model.release_.packed() for model in first.values()}) == 1
    table(200).iloc[honest][list(SCHEMA.columns)].to_csv(tmp_path / "honest.csv", index=False)
    again, questions = simulation.replayed(study, settings(), tmp_path / "honest.csv", run.noises)
    ledger = first.popitem()[1].ledger_
    assert len(ledger.spends) == questions  # what was asked is charged once
    assert [spend.cost for spend in again.ledger_.spends] == [spend.cost for spend in ledger.spends]
    sample = again.sample(100, seed=0)
    draws = Counter(run.drawn)
    back = run(parties=[crash[0]])[crash[0]]  # it comes back, and needs nobody
    assert back.sample(100, seed=0).equals(sample)
    assert draws == run.drawn


@pytest.mark.slow
def test_three_of_five_collectors_go_on_without_the_others(tmp_path):
    study = tmp_path / "study"
    table(200)[list(SCHEMA.columns)].to_csv(tmp_path / "rows.csv", index=False)
    simulation.begin(study, settings(), collectors=5)
    honest, _, late = simulation.contribute(
        study, Study.read(study), settings(), tmp_path / "rows.csv", seed=1
    )
    run = Run(study, (0, "answers/000001.deal", "before"), (4, "answers/000002.sum", "before"))
    results = run(range(5))
    list(late)
    assert isinstance(results.pop(0), CrashError)
    assert isinstance(results.pop(4), CrashError)
    assert len({model.release_.packed() for model in results.values()}) == 1
    assert "2.236 times" in results[1].ledger_.randomness
    table(200).iloc[honest][list(SCHEMA.columns)].to_csv(tmp_path / "honest.csv", index=False)
    again, _ = simulation.replayed(study, settings(), tmp_path / "honest.csv", run.noises)
    assert again.sample(100, seed=0).equals(results[1].sample(100, seed=0))


def test_a_collection_that_has_ended_takes_no_more_rows_and_repeats_the_same_answers(study, tmp_path):
    fingerprint = Study.read(study).fingerprint
    for row, codes in enumerate(table(30).itertuples(index=False)):
        (tmp_path / "row.csv").write_text(f"job,sex,age\n{codes.job},{codes.sex},{codes.age}\n")
        keys = tmp_path / f"{row}.contributor"
        contribute_file(tmp_path / "row.csv", settings(), study, keys, fingerprint)
    run = Run(study)
    first = run(patience=60)
    assert len({model.release_.packed() for model in first.values()}) == 1
    assert first[0].ledger_.private
    assert "any 1 of them add the sigma" in first[0].ledger_.randomness
    assert any("at least 2 of the 3 collectors" in fact for fact in first[0].ledger_.public_inputs)
    contribute_file(tmp_path / "row.csv", settings(), study, tmp_path / "late.contributor", fingerprint)
    drawn = Counter(run.drawn)
    (again,) = run(parties=[1]).values()
    assert again.release_.packed() == first[0].release_.packed()
    assert run.drawn == drawn
    others = run(epsilon=2.0)
    assert all(isinstance(error, InputError) for error in others.values())
    assert run.drawn == drawn


def test_an_older_copy_of_the_folder_gets_the_same_noise_and_no_other_check(study, tmp_path):
    """Somebody who has the folder could have each question answered again, and each row checked again."""
    simulation.contribute(study, Study.read(study), settings(), tmp_path / "rows.csv", seed=1)
    shutil.copytree(study, tmp_path / "before")
    run = Run(study)
    first = run(patience=60)
    drawn = Counter(run.drawn)
    for file in study.glob("answers/*"):
        file.unlink()
    again = run(patience=60)
    assert run.drawn == drawn
    assert {model.release_.packed() for model in again.values()} == {first[0].release_.packed()}
    for file in study.glob("answers/*.sum.*"):
        file.unlink()
    (study / "answers" / "000001.set").unlink()
    board = boards_of(study)[0]
    board.decide("answers/000002.set", lambda: b"")  # as it was
    with refuses("is an older copy"):
        board.decide("answers/000001.set", lambda: bytes([0, 1]))
    shutil.rmtree(study)
    shutil.copytree(tmp_path / "before", study)
    refused = run(patience=5)
    assert all("is an older copy" in str(error) for error in refused.values())
    assert run.drawn == drawn
    assert not list(study.glob("check.*"))


def test_with_a_delta_of_0_the_noise_is_laplace(tmp_path):
    study = tmp_path / "study"
    table(200).to_csv(tmp_path / "rows.csv", index=False)
    simulation.begin(study, settings(delta=0.0))
    simulation.contribute(study, Study.read(study), settings(), tmp_path / "rows.csv", seed=1)
    models = Run(study)(patience=60, delta=0.0)
    assert len({model.release_.packed() for model in models.values()}) == 1
    assert "discrete Laplace noise from each of 3 collectors" in models[0].ledger_.randomness
    assert models[0].ledger_.epsilon(0) == 1.0


@pytest.mark.slow
def test_none_may_be_lost_if_less_noise_is_chosen(tmp_path):
    study = tmp_path / "study"
    table(200).to_csv(tmp_path / "rows.csv", index=False)
    simulation.begin(study, settings(), lost=0)
    simulation.contribute(study, Study.read(study), settings(), tmp_path / "rows.csv", seed=1)
    run = Run(study, (2, "answers/000001.deal", "before"))
    stopped = run()
    assert all("that are needed answered in" in str(stopped[party]) for party in (0, 1))
    drawn = Counter(run.drawn)
    resumed = run(patience=60)
    assert len({model.release_.packed() for model in resumed.values()}) == 1
    assert "any 2 of them add the sigma" in resumed[0].ledger_.randomness
    assert run.drawn[2] > drawn[2]


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"seed": 1}, "seed"),
        ({"unit": "job"}, "unit"),
        ({"schema": None}, "schema"),
        (
            {
                "schema": Schema(
                    {"sex": Categorical(["F", "M"]), "age": Numerical(), "job": Categorical(["a"])}
                )
            },
            "bounds",
        ),
        (
            {"schema": replace(SCHEMA, columns={**SCHEMA.columns, "age": Numerical(0, 8, integer=True)})},
            "code",
        ),
    ],
)
def test_what_collectors_cannot_do_is_refused(study, changed, message):
    ours = [
        Collectors(study, party=party, keys=study.with_name(f"{party}.key"), patience=0.2)
        for party in range(3)
    ]
    if message == "code":
        results = Run(study)(**changed, patience=20)
        assert all("another way" in str(error) for error in results.values())
    else:
        with refuses(message):
            settings(**changed).fit(ours[0])
    assert not (study / "answers").exists()


def test_a_collector_needs_its_own_keys_and_a_number(study):
    with refuses("other keys"):
        Collectors(study, party=1, keys=study.with_name("0.key"))
    with refuses("no such file"):
        Collectors(study, party=1, keys=study.with_name("none.key"))
    assert not study.with_name("none.key").exists()
    with refuses("party must be"):
        Collectors(study, party=3, keys=study.with_name("0.key"))
    with refuses("lost must be 0 to 1 of 3 collectors"):
        Promise.of(settings(), 3, lost=2)
    with refuses("joined with another key"):
        Study.join(study, 0, 3, PrivateKeys.of_file(study.with_name("1.key")), bytes(KEY), PROMISE)


def test_a_file_that_somebody_else_wrote_is_refused(study):
    board = boards_of(study)
    board[0].post("coin", b"mine")
    board[0].post("coin", b"another")
    assert board[1].read("coin", 0) == b"mine"
    shutil.copy(study / "coin.0", study / "coin.1")
    shutil.copy(study / "coin.0", study / "model.0")
    for name, party in (("coin", 1), ("model", 0)):
        with refuses("was not signed by collector"):
            board[2].read(name, party)


def test_the_commands_refuse_a_file_of_many_rows(study, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "schema.yaml").write_text(to_yaml(SCHEMA))
    fingerprint = ["--fingerprint", Study.read(study).fingerprint]
    assert (
        main(["contribute", "rows.csv", "--schema", "schema.yaml", "--collectors", "study", *fingerprint])
        == 2
    )
    assert "a contribution is one row" in capsys.readouterr().err
    assert main(["collect", "study", "--party", "0", "--schema", "schema.yaml"]) == 2
    assert "--model" in capsys.readouterr().err


def test_codes_follow_from_the_schema_alone():
    codec = codec_of(settings())
    assert codec.domain.names == ("sex", "age", "job")


def test_a_contributor_reads_who_can_read_the_row_and_what_unknown_cells_become(
    study, tmp_path, monkeypatch, capsys
):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "schema.yaml").write_text(to_yaml(SCHEMA))
    table(1).to_csv(tmp_path / "row.csv", index=False)
    arguments = ["contribute", "row.csv", "--schema", "schema.yaml", "--collectors", str(study)]
    assert main([*arguments, "--fingerprint", Study.read(study).fingerprint]) == 0
    told = capsys.readouterr().out
    assert "1 of them cannot read the row, and 2 who work together can" in told
    assert "a cell that the schema does not have counts as its first value" in told


def test_a_collector_with_a_wrong_number_gets_no_keys(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "schema.yaml").write_text(to_yaml(SCHEMA))
    assert main(["collect", "s", "--party", "5", "--join", "3", "--schema", "schema.yaml"]) == 2
    assert [file.name for file in tmp_path.iterdir()] == ["schema.yaml"]
