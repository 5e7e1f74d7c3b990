"""A run in a process of its own: what it reports, and how it ends."""

import os
import sys
import textwrap

import pytest

from privsyn.app import job
from privsyn.app.job import STAGES, Job
from privsyn.progress import ESTIMATING, MEASURING, READING


@pytest.fixture
def program(tmp_path, monkeypatch):
    """Replace the program by lines of Python; return what starts it."""

    def start(lines):
        script = tmp_path / "program.py"
        script.write_text("import json, signal, sys, time\n" + textwrap.dedent(lines))
        python = tmp_path / "python"
        python.write_text(f'#!/bin/sh\nexec "{sys.executable}" "{script}" "$@"\n')
        python.chmod(0o700)
        monkeypatch.setattr(job.sys, "executable", str(python))
        return Job(["synth", "people.csv"], tmp_path)

    return start


STEP = """
def step(stage, done=0, total=1):
    print(json.dumps({"stage": stage, "done": done, "total": total}), file=sys.stderr, flush=True)
"""


def until(run, condition):
    while not condition():
        assert run.wait(5.0) or condition()


@pytest.mark.parametrize(("stages", "spent"), [([], False), ([READING], False), ([READING, MEASURING], True)])
def test_stopping_costs_nothing_before_the_first_question(program, stages, spent):
    steps = "\n".join(f"step({stage!r})" for stage in stages)
    run = program(f"{STEP}\nprint('ready', flush=True)\n{steps}\ntime.sleep(600)")
    until(run, lambda: run.messages and run.stage == (stages or [""])[-1])
    run.end()
    run.wait(60)
    assert run.spent is spent
    assert run.cancelled
    assert not run.running


def test_a_run_that_does_not_stop_is_killed(program, monkeypatch):
    monkeypatch.setattr(job, "PATIENCE", 0.2)
    run = program("signal.signal(signal.SIGTERM, signal.SIG_IGN)\nprint('deaf', flush=True)\ntime.sleep(600)")
    until(run, lambda: run.messages)
    run.end()
    until(run, lambda: not run.running)
    with pytest.raises(ProcessLookupError):
        os.kill(run._process.pid, 0)


def test_messages_steps_and_complaints_are_kept_apart(program):
    run = program(
        f"""{STEP}
step("reading"); step("measuring", 2, 4)
print("privsyn: people.csv: no such column", file=sys.stderr)
print("[1, 2]", file=sys.stderr)
print("done \\u00e9")
sys.exit(2)
"""
    )
    until(run, lambda: not run.running)
    assert (run.code, run.stage, run.done, run.total) == (2, "measuring", 2, 4)
    assert run.messages == ["done é"]
    assert run.complaints == ["privsyn: people.csv: no such column", "[1, 2]"]


def test_a_run_without_a_table_says_why(program):
    why = "too little signal: about 1 row, give or take 796: mostly noise. Raise epsilon, or take more rows"
    run = program(f"print('t.csv: not written: {why}'); raise SystemExit(1)")
    until(run, lambda: not run.running)
    assert (run.code, run.no_table) == (1, why)


def test_every_stage_of_a_run_has_words():
    assert {READING, MEASURING, ESTIMATING} <= set(STAGES)
    assert next(iter(STAGES)) == READING
