"""Runs of several owners: the same answers at each, also if one of them ends at any moment and comes back."""

from __future__ import annotations

import json
import os
import stat
from collections import Counter
from dataclasses import replace
from functools import partial
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from owners.meeting import Meeting, Wire, met, together
from same_model import assert_same_model

from privsyn import Categorical, InputError, Numerical, Owners, PrivSyn, Schema
from privsyn.methods.reading import Opened
from privsyn.owners.journal import PART, SECRET, Journal, digest
from privsyn.owners.network import Connection
from privsyn.owners.sums import SecureSums
from privsyn.private import noise
from privsyn.private.noise_laws import LAPLACE

PEERS = [f"localhost:{port}" for port in (7000, 7001, 7002)]
ROUNDS = 3
MEETING = 3  # sums in which the owners agree on settings, the name of the run, and what they have
SHIFTED = MEETING + 2  # the first sum of answers: after the digest of the question


def answers(drawn, folder, party, settings=b"same", scale=1.0, owners=3, **further):
    """One owner's run of a few questions, each of which follows from the answer before."""
    journal = Journal.open(folder / str(party))
    steps = SecureSums(
        journal,
        party,
        [("localhost", 7000 + place) for place in range(owners)],
        tls=None,
        settings=digest(settings),
        patience=600,
        report=lambda *stage: None,
        **further,
    )
    try:
        steps.begin()
        found = []
        for number in range(ROUNDS):

            def noisy(number=number):
                drawn[party, number] += 1
                return np.random.default_rng().integers(-50, 50, 4)

            found.append(steps.total(4, scale, noisy).tolist())
            scale = 1.0 + abs(found[-1][0])
        steps.end(digest(repr(found).encode()))
        return found
    finally:
        steps.close()


@pytest.mark.slow
@pytest.mark.parametrize("when", ["before", "kept", "alone", "after"])
@pytest.mark.parametrize("party", [0, 1, 2])
def test_an_owner_that_ends_in_any_round_resumes_and_draws_nothing_twice(party, when, tmp_path):
    for place in range(MEETING + 2 * ROUNDS):
        drawn, folder = Counter(), tmp_path / str(place)
        folder.mkdir()
        meeting = Meeting(3, crash=(party, place, when))
        found = together(meeting, partial(answers, drawn, folder))
        is_answer = place >= MEETING and (place - MEETING) % 2
        assert meeting.crash is None or (when == "kept" and not is_answer)
        assert found[0] == found[1] == found[2]
        assert {tuple(total) for _, total in meeting.opened} <= set(map(tuple, found[0]))
        assert len(found[0]) == ROUNDS
        assert set(drawn.values()) == {1}
        assert len(drawn) == 3 * ROUNDS
        sent = [Journal.open(folder / str(owner)).question(0)[1] for owner in range(3)]
        assert found[0][0] == sum(sent).tolist()


GROUPS = [(3, 1, ()), (3, 0, ()), (5, 3, (4,)), (5, 0, (2,))]


@pytest.mark.slow
@pytest.mark.parametrize("when", ["before", "kept", "alone", "after"])
@pytest.mark.parametrize(("owners", "party", "silent"), GROUPS)
def test_a_run_goes_on_without_lost_owners_and_opens_the_answers_to_a_question_for_one_set_only(
    owners, party, silent, when, tmp_path
):
    """An owner ends in any round and does not come back; with it another one may be lost.

    "alone": it got to know the sum, and nobody else did. Would the others sum the question without it, the
    difference of both sums were the noisy vectors of all who are lost.
    """
    for place in range(MEETING - 1, MEETING + 2 * ROUNDS):
        drawn, folder = Counter(), tmp_path / str(place)
        folder.mkdir()
        meeting = Meeting(owners, (party, place, when), leaves=True, silent=silent)
        run = partial(answers, drawn, folder, owners=owners, give_up_after=0.1, fewest=owners // 2 + 1)
        found = together(meeting, run)
        remain = [owner for owner in range(owners) if owner not in meeting.gone]
        first, *others = [found[owner] for owner in remain]
        assert isinstance(first, list), first
        assert len(first) == ROUNDS
        assert all(answer == first for answer in others)
        assert {tuple(total) for _, total in meeting.opened} <= set(map(tuple, first))
        assert set(drawn.values()) == {1}
        losses = [Journal.open(folder / str(owner)).lost() for owner in remain]
        assert losses[0].keys() == meeting.gone
        assert all(loss == losses[0] for loss in losses)
        for number, total in enumerate(first):
            present = [owner for owner in range(owners) if losses[0].get(owner, ROUNDS) > number]
            sent = [Journal.open(folder / str(owner)).question(number)[1] for owner in present]
            assert total == sum(sent).tolist()


def test_nobody_is_given_up_if_too_few_would_remain_or_the_run_has_not_begun(tmp_path):
    for place, fewest in ((MEETING + 3, 3), (0, 2)):
        drawn, folder = Counter(), tmp_path / str(place)
        folder.mkdir()
        meeting = Meeting(3, (1, place, "before"), leaves=True)
        found = together(meeting, partial(answers, drawn, folder, give_up_after=0.1, fewest=fewest))
        for party in (0, 2):
            assert "owner 1 at localhost:7001: not reached" in str(found[party])
            assert not Journal.open(folder / str(party)).lost()


@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # of MPyC, when it is imported
def test_those_who_remain_share_as_secretly_as_all_did():
    """Of two who remain of three, neither can read the vector of the other."""
    pytest.importorskip("mpyc")
    for present in ([0, 1, 2], [0, 2]):
        wire = Connection(2, [("localhost", 7000 + place) for place in range(3)], None, present)
        assert wire._mpc.threshold == 1
        wire.close()


def test_owners_who_were_given_up_at_different_questions_end_the_run(tmp_path):
    journal = Journal.open(tmp_path / "run")
    journal.give_up(2, 5)
    journal.give_up(2, 5)
    assert journal.lost() == {2: 5}
    with pytest.raises(InputError, match="at different questions"):
        journal.give_up(2, 6)


@pytest.mark.slow
def test_the_ledger_says_which_answers_have_the_rows_of_a_lost_owner(tmp_path):
    meeting = Meeting(3, (1, MEETING + 3, "kept"), leaves=True)
    owner = {"give_up_after": 0.5}
    models = together(meeting, partial(fitted, tmp_path, owner=owner))
    assert models[1] is None
    assert models[0].release_.packed() == models[2].release_.packed()
    facts = models[0].ledger_.public_inputs
    assert any("owner 1 was given up after 2 answers" in fact for fact in facts)
    assert any("at most 0 of the 2 owners who remained were dishonest" in fact for fact in facts)
    assert any("at least 2 of the 3 owners follow the protocol, stay until the end" in fact for fact in facts)
    before = [spend.what for spend in models[0].ledger_.spends]
    assert len(before) == len(list((tmp_path / "0").glob("*.total")))  # each question is charged once
    again = together_one(Meeting(3), lambda party: fitted(tmp_path, 2, owner=owner))
    assert again.release_.packed() == models[2].release_.packed()


@pytest.mark.parametrize(
    ("lost", "dishonest"), [({}, None), ({4: 7}, "1 of the 4"), ({4: 7, 0: 9}, "0 of the 3")]
)
def test_the_ledger_says_how_many_dishonest_owners_are_tolerated_after_a_loss(tmp_path, lost, dishonest):
    owners = Owners(
        "rows.csv", party=1, peers=[f"a:{i}" for i in range(1, 6)], folder=tmp_path, give_up_after=9
    )
    peer = owners.run()
    peer._sums = SimpleNamespace(lost=lost)
    facts = [fact for fact in peer.public_inputs(None) if "dishonest" in fact]
    assert [f"at most {dishonest} owners who remained were dishonest" in fact for fact in facts] == [
        True
    ] * bool(lost)


def test_what_was_sent_is_sent_again_to_whoever_forgot_the_sums(tmp_path):
    drawn = Counter()
    before = together(Meeting(3), partial(answers, drawn, tmp_path))
    for place in tmp_path.glob("*/*.total"):
        place.unlink()
    assert together(Meeting(3), partial(answers, drawn, tmp_path)) == before
    assert set(drawn.values()) == {1}


def test_a_run_whose_sums_are_known_needs_nobody(tmp_path):
    drawn = Counter()
    before = together(Meeting(3), partial(answers, drawn, tmp_path))
    after = together_one(Meeting(3), partial(answers, drawn, tmp_path))
    assert after == before[1]


def together_one(meeting, owner):
    with met(meeting):
        return owner(1)


def test_other_settings_are_refused_before_anything_is_counted(tmp_path):
    drawn = Counter()

    def owner(party):
        return answers(drawn, tmp_path, party, settings=b"other" if party == 2 else b"same")

    found = together(Meeting(3), owner)
    assert all(isinstance(error, InputError) and "settings" in str(error) for error in found)
    assert "owner 2" in str(found[0])
    assert not drawn


def test_an_owner_who_lost_the_folder_ends_the_run(tmp_path):
    drawn = Counter()
    together(Meeting(3), partial(answers, drawn, tmp_path))
    for place in (tmp_path / "1").iterdir():
        place.unlink()
    for place in tmp_path.glob("*/000002.total"):
        place.unlink()
    found = together(Meeting(3), partial(answers, drawn, tmp_path))
    for party in (0, 2):  # they send nothing: not even what they had sent before
        assert isinstance(found[party], InputError)
        assert "lost the folder" in str(found[party])
    assert {drawn[party, number] for party in (0, 2) for number in range(ROUNDS)} == {1}
    assert not list(tmp_path.glob("*/000002.total"))


@pytest.mark.parametrize("kept", [0, 2])
def test_an_older_copy_of_the_folder_is_refused_before_anything_is_drawn(kept, tmp_path):
    drawn = Counter()
    before = together(Meeting(3), partial(answers, drawn, tmp_path))
    for number in range(kept, ROUNDS):
        for kind in ("noisy", "total"):
            (tmp_path / "1" / f"{number:06d}.{kind}").unlink()
    (tmp_path / "2" / "000002.total").unlink()  # one owner knows it: enough
    found = together(Meeting(3), partial(answers, drawn, tmp_path))
    assert isinstance(found[1], InputError)
    assert "older copy" in str(found[1])
    assert found[0] == before[0]
    assert set(drawn.values()) == {1}
    assert not (tmp_path / "1" / f"{kept:06d}.noisy").exists()
    assert not (tmp_path / "2" / "000002.total").exists()


def test_a_sum_that_differs_from_the_one_before_is_refused(tmp_path):
    journal = Journal.open(tmp_path / "run")
    for _ in range(2):
        journal.keep_total(0, np.arange(3))
    with pytest.raises(InputError, match="answered twice"):
        journal.keep_total(0, np.arange(3) + 1)
    assert journal.total(0).tolist() == [0, 1, 2]


def test_names_of_files_are_on_the_disk_before_anything_is_sent(tmp_path, monkeypatch):
    """The folder is written to the disk after each new name, and so is the folder that holds it."""
    synced, fsync = {}, os.fsync

    def names_now(inode):
        (folder,) = (place for place in (tmp_path, tmp_path / "run") if place.stat().st_ino == inode)
        return {place.name for place in folder.iterdir()}

    def recorded(handle):
        if stat.S_ISDIR(os.fstat(handle).st_mode):
            synced.setdefault(os.fstat(handle).st_ino, set()).update(names_now(os.fstat(handle).st_ino))
        fsync(handle)

    monkeypatch.setattr(os, "fsync", recorded)
    journal = Journal.open(tmp_path / "run")
    assert "run" in synced[tmp_path.stat().st_ino]
    for name, keep in (
        ("run", lambda: journal.bind("run", b"name")),
        ("000000.noisy", lambda: journal.noisy(0, digest(b"a"), lambda: np.arange(3))),
        ("000000.total", lambda: journal.keep_total(0, np.arange(3))),
    ):
        assert name not in synced[journal.folder.stat().st_ino]
        keep()
        assert name in synced[journal.folder.stat().st_ino]


@pytest.mark.parametrize("wrong", [0, 1, 2])
def test_owners_who_got_different_sums_ask_no_further_question(wrong, tmp_path, monkeypatch):
    add = Wire.sum

    def shifted(self, numbers, keep=None):
        total = add(self, numbers, keep)
        if self.party == wrong and self.step == SHIFTED:
            total[-1] += 1  # does not change the next scale
        return total

    monkeypatch.setattr(Wire, "sum", shifted)
    drawn = Counter()
    found = together(Meeting(3), partial(answers, drawn, tmp_path))
    assert all(isinstance(error, InputError) and "earlier sum" in str(error) for error in found)
    assert not list(tmp_path.glob("*/000001.total"))


def test_the_digest_of_the_others_is_compared_with_ones_own(tmp_path, monkeypatch):
    """Not with what comes back from the network in its place."""
    monkeypatch.setattr(Wire, "sum", lambda self, numbers, keep=None: np.tile([0, 1, 2, 3], 3))
    found = together(Meeting(3), partial(answers, Counter(), tmp_path))
    assert all("owner 0, 1, 2 has another settings" in str(error) for error in found)


def test_another_question_under_the_same_number_is_refused(tmp_path):
    journal = Journal.open(tmp_path / "run")
    first = journal.noisy(0, digest(b"a"), lambda: np.arange(3))
    assert journal.noisy(0, digest(b"a"), lambda: np.arange(3) + 1).tolist() == first.tolist()
    with pytest.raises(InputError, match="question 1 differs"):
        journal.noisy(0, digest(b"b"), lambda: np.arange(3))


def test_a_question_with_another_scale_is_another_question(tmp_path):
    """The answer on the disk has the noise of the first: with the second, the ledger would be wrong."""
    drawn = Counter()
    together(Meeting(3), partial(answers, drawn, tmp_path))
    found = together(Meeting(3), partial(answers, drawn, tmp_path, scale=2.0))
    assert all(isinstance(error, InputError) and "question 1 differs" in str(error) for error in found)
    assert set(drawn.values()) == {1}


def test_which_rows_of_a_person_are_kept_follows_from_what_only_the_owner_knows(tmp_path):
    """The part of the run's name, which all owners get, changes nothing; the secret changes all words."""

    def words(**changed):
        place = tmp_path / "run" / "run.json"
        if changed:
            place.write_text(json.dumps(json.loads(place.read_text()) | changed))
        return Owners(None, party=0, peers=PEERS, folder=tmp_path / "run").run().bits()(100)

    first = words()
    assert (words(part="00" * PART) == first).all()
    assert (words(secret="00" * SECRET) != first).all()
    assert len(set(first.tolist())) == 100


def test_only_the_owner_can_read_its_noisy_answers(tmp_path):
    together(Meeting(3), partial(answers, Counter(), tmp_path))
    files = list((tmp_path / "0").iterdir())
    assert len(files) == 2 + 3 * ROUNDS
    assert {stat.S_IMODE(file.stat().st_mode) for file in files} == {0o600}
    assert stat.S_IMODE((tmp_path / "0").stat().st_mode) == 0o700


SCHEMA = Schema(
    {"sex": Categorical(["F", "M"]), "age": Numerical(0, 9, integer=True), "job": Categorical(list("abc"))}
)


def table(seed, rows):
    rng = np.random.default_rng(seed)
    sex = rng.choice(["F", "M"], rows)
    return pd.DataFrame(
        {
            "sex": sex,
            "age": rng.integers(0, 10, rows),
            "job": np.where(sex == "F", "a", rng.choice(list("bc"), rows)),
            "who": rng.integers(0, rows // 2, rows),
        }
    )


def fitted(folder, party, *, unit=None, owner=(), **settings):
    own = table(party, 300 + 200 * party)
    own = own if unit else own.drop(columns="who")
    owners = Owners(own, party=party, peers=PEERS, folder=folder / str(party), **dict(owner))
    model = PrivSyn(**{"epsilon": 1.0, "delta": 1e-9, "schema": SCHEMA} | settings, unit=unit)
    return model.fit(owners)


@pytest.mark.slow
@pytest.mark.parametrize("crash", [None, (1, 7, "after")])
@pytest.mark.parametrize("unit", [{}, {"unit": "who", "rows_per_unit": 2}])
def test_all_owners_have_the_same_bytes(unit, crash, tmp_path):
    models = together(Meeting(3, crash), partial(fitted, tmp_path, **unit))
    assert not [model for model in models if isinstance(model, Exception)]
    assert len({model.release_.packed() for model in models}) == 1
    ledger = models[0].ledger_
    assert ledger.private
    assert "any 2 of them add the sigma" in ledger.randomness
    assert "1.225 times" in ledger.randomness
    assert any("at least 2 of the 3 owners" in fact for fact in ledger.public_inputs)
    assert any("which was not encrypted" in fact for fact in ledger.public_inputs)
    assert any("are with one owner" in fact for fact in ledger.public_inputs) is bool(unit)
    again = together_one(Meeting(3), lambda party: fitted(tmp_path, party, **unit))
    assert_same_model(models[1].release_.packed(), again.release_.packed())


def test_owners_at_a_delta_of_0_have_the_same_model_and_a_pure_ledger(tmp_path):
    models = together(Meeting(3), partial(fitted, tmp_path, epsilon=3.0, delta=0))
    assert not [model for model in models if isinstance(model, Exception)]
    assert len({model.release_.packed() for model in models}) == 1
    ledger = models[0].ledger_
    assert (ledger.accounting, ledger.promised_delta, ledger.private) == ("pure", 0, True)
    assert ledger.shared
    assert "a share of discrete Laplace noise from each of 3 owners" in ledger.randomness
    assert "1.225 times its standard deviation" in ledger.randomness
    assert 0.999 * 3.0 < ledger.cost <= 3.0
    (measured, *_) = models[0].release_.fitted.certainties
    stated = LAPLACE.variance(min(spend.sigma for spend in ledger.spends))
    assert (np.asarray(measured.measured.variance) >= 1.5 * stated * (1 - 1e-9)).all()


AGREED = (
    {"owner": {"honest": 3}},
    {"owner": {"tls": "."}},
    {"owner": {"give_up_after": 60.0}},
    {"epsilon": 2.0},
    {"delta": 1e-8},
    {"rows_per_unit": 3},
    {"target": "sex"},
    {"schema": Schema(dict(SCHEMA.columns) | {"job": Categorical(list("acb"))})},
)


@pytest.mark.parametrize("other", AGREED, ids=lambda other: "-".join(other.get("owner", other)))
def test_nothing_is_counted_before_all_owners_agree_on_each_setting(other, tmp_path):
    def owner(party):
        return fitted(tmp_path, party, **{"unit": "who", "rows_per_unit": 2} | (other if party == 2 else {}))

    found = together(Meeting(3), owner)
    assert all(isinstance(error, InputError) and "another settings" in str(error) for error in found)
    assert not list(tmp_path.glob("*/*.noisy"))


def test_an_owner_with_a_cluster_and_one_without_do_not_count_persons_together(tmp_path, monkeypatch):
    """They would ask different questions: rows of a person that are on several machines have no classes."""
    opened_of, last = Opened.of, 300 + 200 * 2

    def of(own, *settings):
        opened = opened_of(own, *settings)
        return replace(opened, persons=replace(opened.persons, puts_together=len(own) < last))

    monkeypatch.setattr(Opened, "of", of)
    found = together(Meeting(3), partial(fitted, tmp_path, unit="who"))
    assert all(isinstance(error, InputError) and "another settings" in str(error) for error in found)
    assert not list(tmp_path.glob("*/*.noisy"))


def test_a_table_that_changed_is_not_taken_for_that_of_the_interrupted_run(tmp_path):
    """Some questions would be answered by the old rows and some by the new ones."""
    file = tmp_path / "own.csv"
    owners = Owners(file, party=0, peers=PEERS, folder=tmp_path / "run", patience=1)
    model = PrivSyn(epsilon=1.0, delta=1e-9, schema=SCHEMA)
    for rows, message in ((50, "not reached in 1 s"), (51, "was begun with another table")):
        table(0, rows).drop(columns="who").to_csv(file, index=False)
        with met(Meeting(3)), pytest.raises(InputError, match=message):
            model.fit(owners)


def test_without_noise_several_owners_release_the_counts_of_all_rows(tmp_path, monkeypatch):
    monkeypatch.setattr(noise, "rounded_gaussian", lambda sigma, size, bits: np.zeros(size, np.int64))
    model = together(Meeting(3), partial(fitted, tmp_path))[0]
    rows = pd.concat([table(party, 300 + 200 * party) for party in range(3)], ignore_index=True)
    found = {
        m.marginal.attributes: m.marginal.counts
        for m in (c.measured for c in model.release_.fitted.certainties)
    }
    assert found["sex",][:2] == pytest.approx(rows["sex"].value_counts()[["F", "M"]])
    pair = pd.crosstab(rows["sex"], rows["job"])
    assert np.allclose(found["sex", "job"][:2, :3], pair.to_numpy())


def test_every_question_to_several_owners_is_a_sum_over_rows(tmp_path):
    """The distance of all rows from expected counts is not the sum of the owners' distances."""
    model = together(Meeting(3), partial(fitted, tmp_path))[0]
    asked = [spend.what for spend in model.ledger_.spends]
    assert any(" over " in what for what in asked)
    assert not any("distance" in what or "dependence" in what for what in asked)
    assert model.ledger_.rho > 0.999 * model.ledger_.budget


def test_with_certificates_the_ledger_assumes_nothing_about_the_network(tmp_path):
    owners = Owners(table(0, 9), party=0, peers=PEERS, folder=tmp_path / "run", tls=tmp_path)
    assert not any("encrypted" in fact for fact in owners.run().public_inputs(None))


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"peers": PEERS[:2]}, "list of 3 to 63"),
        ({"peers": "localhost:7000"}, "list of 3 to 63"),
        ({"peers": [*PEERS[:2], PEERS[0]]}, "different addresses"),
        ({"peers": [*PEERS[:2], "localhost"]}, "host:port"),
        ({"party": 3}, "0 to 2"),
        ({"honest": 1}, "2 to 3"),
        ({"honest": 4}, "2 to 3"),
        ({"patience": 0}, "patience"),
        ({"give_up_after": 0}, "below the patience of 3600"),
        ({"give_up_after": 60, "patience": 30.0}, "below the patience of 30"),
        ({"give_up_after": 60, "honest": 3}, "lower honest"),
    ],
)
def test_wrong_settings_are_refused_in_one_line(settings, message):
    with pytest.raises(InputError, match=message):
        Owners("north.csv", **{"party": 0, "peers": PEERS} | settings)
