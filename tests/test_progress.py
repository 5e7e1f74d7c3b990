"""What a run reports of its progress, and that nothing is asked before it says that it measures."""

from __future__ import annotations

from functools import partial
from itertools import pairwise

import numpy as np
import pandas as pd
import pytest
from owners.meeting import Meeting, together
from owners.test_rounds import PEERS

from privsyn import Categorical, Database, Numerical, Owners, PrivSyn, Schema, Table
from privsyn.private.contribution import NumbersInMemory
from privsyn.private.rows import Rows
from privsyn.private.spend import QueryLog
from privsyn.progress import one_of, one_step
from privsyn.table.io.source import RawTable

SEX, AGE = Categorical(["F", "M"]), Numerical(0, 99, integer=True)
KNOWN, OPEN = Schema({"sex": SEX, "age": AGE}), Schema({"sex": Categorical(), "age": Numerical()})


def rows(number=400, seed=5):
    rng = np.random.default_rng(seed)
    sexes = rng.choice(["F", "M"], number)
    return pd.DataFrame({"who": np.arange(number) // 3, "sex": sexes, "age": rng.integers(0, 99, number)})


def database(child):
    people = Table(Schema({"sex": SEX}), key="who")
    return Database({"people": people, "visits": Table(child, parent="people", link="who")})


def linked(number=400):
    visits = rows(number)
    return {"people": visits[["who", "sex"]].drop_duplicates("who"), "visits": visits.drop(columns="sex")}


RUNS = {
    "one table": (rows().drop(columns="who"), {"schema": KNOWN}),
    "open schema": (rows().drop(columns="who"), {"schema": OPEN}),
    "published": (rows().drop(columns="who"), {"schema": KNOWN, "method": "published"}),
    "one column": (rows()[["sex"]], {"schema": Schema({"sex": SEX})}),
    "persons": (rows(), {"schema": KNOWN, "unit": "who"}),
    "one row a person": (rows(), {"schema": OPEN, "unit": "who", "rows_per_unit": 1}),
    "persons whose rows are linked": (rows(), {"schema": KNOWN, "unit": "who", "identifiers": True}),
    "linked": (linked(), {"schema": database(Schema({"age": AGE}))}),
    "linked, open": (linked(), {"schema": database(Schema({"age": Numerical()}))}),
}
"""A table and the settings of a run."""

each_run = pytest.mark.parametrize(("table", "settings"), RUNS.values(), ids=RUNS)


@pytest.fixture
def events(monkeypatch):
    """The stages that are reported, and "asked" wherever rows are counted or a question is charged."""
    seen: list[str] = []

    def asked(owner, name):
        original = getattr(owner, name)

        def noted(*arguments, **options):
            seen.append("asked")
            return original(*arguments, **options)

        monkeypatch.setattr(owner, name, noted)

    for owner, name in (
        (QueryLog, "charge"),
        (Rows, "count"),
        (RawTable, "ask"),
        (NumbersInMemory, "in_classes"),
    ):
        asked(owner, name)
    return seen


class StopError(Exception):
    """What a program raises to stop a run."""


def stop(stage, done, total):
    if stage == "measuring":
        assert (done, total >= 1) == (0, True)
        raise StopError


@pytest.mark.slow
@each_run
def test_measuring_is_reported_before_the_first_question(table, settings, events):
    PrivSyn(1.0, 1e-6, progress=lambda stage, *_: events.append(stage), **settings).fit(table)
    assert "asked" in events
    assert events[: events.index("asked")] in (
        ["reading", "reading", "measuring"],
        ["reading", "reading", "measuring", "finding values and bounds"],
    )


@each_run
def test_an_exception_at_measuring_stops_the_run_with_nothing_asked(table, settings, events):
    with pytest.raises(StopError):
        PrivSyn(1.0, 1e-6, progress=stop, **settings).fit(table)
    assert events == []


@pytest.mark.parametrize("unit", [{}, {"unit": "who", "rows_per_unit": 2}], ids=["rows", "persons"])
def test_an_owner_who_stops_at_measuring_has_answered_nothing(unit, events, tmp_path):
    """The others have no answer of this owner, so nobody has a sum."""
    own = rows() if unit else rows().drop(columns="who")

    def fit(party):
        owners = Owners(own, party=party, peers=PEERS, folder=tmp_path / str(party))
        with pytest.raises(StopError):
            PrivSyn(1.0, 1e-9, KNOWN, progress=stop, **unit).fit(owners)

    errors = together(Meeting(3), fit)
    assert errors == [None] * 3
    assert events == []
    assert not list(tmp_path.glob("*/*.noisy"))


@pytest.mark.slow
@each_run
def test_each_stage_grows_to_its_total_and_no_step_depends_on_a_row(table, settings):
    def steps_of(table):
        steps = []
        PrivSyn(1.0, 1e-6, seed=3, progress=lambda *step: steps.append(step), **settings).fit(table)
        return steps

    steps = steps_of(table)
    stages = dict.fromkeys(stage for stage, _, _ in steps)
    assert stages.keys() - {"finding values and bounds"} == {"reading", "measuring", "estimating"}
    for stage in stages.keys() - {"finding values and bounds"}:  # which each linked table begins again
        done = [step for step in steps if step[0] == stage]
        assert done[0][1] == 0
        assert all(before[1] <= after[1] and before[2] == after[2] for before, after in pairwise(done))
        assert done[-1][1] == done[-1][2]
    changed = linked(380) if isinstance(table, dict) else table[:380]
    assert steps_of(changed) == steps


def test_parts_follow_each_other_and_a_step_that_fails_has_no_end():
    steps = []
    for place in range(2):
        with one_step(one_of(lambda *step: steps.append(step), place, 2), "estimating"):
            pass
    assert steps == [("estimating", done, 2) for done in (0, 1, 1, 2)]
    report = partial(lambda *step: steps.append(step))
    steps.clear()
    with pytest.raises(StopError), one_step(report, "reading"):
        raise StopError
    assert steps == [("reading", 0, 1)]
