"""The full audit: ``python -m audit [REPORT]`` plays every game longer, and exits 1 where a claim is refuted.

It takes one to three hours on two cores, most of it for the default method, a run of which takes 20 ms, or
60 with question 0. What is finished is kept in `RECORD`, and is not played again after an interruption.
Once the report is written, the record is removed.
"""

from __future__ import annotations

import json
import platform
import sys
import time
from collections.abc import Callable
from datetime import UTC, datetime
from functools import partial
from multiprocessing import Pool
from pathlib import Path
from typing import Any

import numpy as np
from scipy.special import ndtr
from scipy.stats import binomtest

import privsyn
from audit import unique
from audit.distinguishing import lower_bound, play, rows_bound, sample
from audit.games import DELTA, GAMES, MU, Game
from audit.reconstruction import NO_NOISE, attack

ERROR = 1e-3  # of one bound
ANSWERS, ROWS, ATTACKS = 20_000, 2_000, 200  # runs
OPEN = 4  # where question 0 is asked too, rows are drawn so many times less often: a run takes long
FITS, TRIES = 2_000, 20_000  # in which a unique value might come out; of the threshold alone
USED = 0.9  # of what a pair moves: at least so much of it must be seen
RECORD = Path(__file__).parents[2] / "experiments" / "audit.json"
"""What an interrupted audit has finished, by its name. Delete it to play all again."""

PAGE = """\
# The privacy audit

For auditors, and for everybody who relies on the promise.

What an attacker who knows everything but one person's presence gets out of real runs, beside what is claimed.
Written by `make audit`; what the games are stands in `tests/audit/`, in words and in code.

privsyn {version}, {date}, Python {python}, {minutes:.0f} minutes on two processes. There are no seeds: the
noise is that of the operating system, and a second audit gives slightly other numbers.

## The distinguishing game

Is the person in the table? Every run claims to be mu-Gaussian private with mu = {mu} (at delta {delta:g}), so
that no attacker guesses right with a probability above Phi(mu / 2) = {guess:.1%}. *Moved* is how far the
person moves the exact answers together, in standard deviations of the noise, in the run that moved them most:
in no run may it exceed the claim. *Answers* and *rows* are lower bounds on the true mu, by
the number of right guesses, each with {sure:.1%} confidence. They must not exceed the claim; and those from
the answers must reach *at least*, {used:.0%} of what the pair is made to move, or budget is wasted. Where
values or bounds are to be found too, a quarter as many runs go to the end, to their rows.

| question | method | claimed | moved | at least | answers of {answers:,} runs | rows of {rows:,} runs |
|---|---|---|---|---|---|---|
{games}

## What one person alone holds

In how many of {fits:,} releases (epsilon 5, delta 1e-9, no schema) was the name that one person alone has, or
a number a million times as large as all others? In {seen}. With a delta of {large} for the threshold the name
should come out in {promised:.2%} of {tries:,} runs, and came out in {passed:.2%}.

## The reconstruction attack

Dinur and Nissim's linear programme, on {attacks} releases of a table of 64 people, half of whom have a
secret. Share of the people of whom it tells rightly whether they have:

| noise | right |
|---|---|
| none (epsilon {none:g}) | {without:.1%} |
| epsilon 1 | {noisy:.1%} |

Verdict: {verdict}
"""


def main() -> int:
    """Play, print, write the report if asked for, and judge."""
    with Pool(2) as pool:
        lines, fine = zip(*(_kept(game.name, partial(_judge, pool, game)) for game in GAMES), strict=True)
        without = _kept("without noise", lambda: float(np.mean(pool.map(_attack, [NO_NOISE] * ATTACKS))))
        noisy = _kept("with noise", lambda: float(np.mean(pool.map(_attack, [1.0] * ATTACKS))))
        seen = _kept("comes out", lambda: int(sum(pool.map(unique.comes_out, range(FITS), chunksize=50))))
        found = _kept("passes", lambda: int(sum(pool.map(unique.passes, range(TRIES), chunksize=500))))
    minutes = sum(of["minutes"] for of in json.loads(RECORD.read_text()).values())
    agrees = binomtest(found, TRIES, unique.PROMISED).pvalue > ERROR
    passed = all(fine) and without > 0.9 and noisy < 0.55 and not seen and agrees
    report = PAGE.format(
        version=privsyn.__version__,
        date=datetime.now(UTC).date(),
        python=platform.python_version(),
        minutes=minutes,
        mu=MU,
        delta=DELTA,
        guess=ndtr(MU / 2),
        sure=1 - ERROR,
        used=USED,
        answers=ANSWERS,
        rows=ROWS,
        games="\n".join(lines),
        fits=FITS,
        seen=seen or "none",
        large=unique.SEEN_DELTA,
        promised=unique.PROMISED,
        tries=TRIES,
        passed=found / TRIES,
        attacks=ATTACKS,
        none=NO_NOISE,
        without=without,
        noisy=noisy,
        verdict="no claim is refuted, and none is idle." if passed else "FAILED.",
    )
    sys.stdout.write(report)
    if len(sys.argv) > 1:
        Path(sys.argv[1]).write_text(report, encoding="utf-8")
        RECORD.unlink()
    return 0 if passed else 1


def _kept(name: str, play: Callable[[], Any]) -> Any:
    """The result that is recorded under this name, or that of playing, which is then recorded."""
    known = json.loads(RECORD.read_text()) if RECORD.exists() else {}
    if name not in known:
        started = time.monotonic()
        known[name] = {"result": play(), "minutes": round((time.monotonic() - started) / 60, 1)}
        RECORD.write_text(json.dumps(known, indent=1) + "\n")
    return known[name]["result"]


def _judge(pool: Any, game: Game) -> tuple[str, bool]:
    """A line of the table, and whether the game went as it should."""
    part = 1 if game.settings else OPEN
    rounds = _runs(pool, play, game, ANSWERS)
    moved = max(played.moved for played in rounds)
    answers = lower_bound(sum(played.right for played in rounds), len(rounds), error=ERROR)
    rows = rows_bound(_runs(pool, sample, game, ROWS // part), error=ERROR)
    least = USED * game.moves * game.mu
    numbers = " | ".join(f"{mu:.3f}" for mu in (game.mu, moved, least, answers, rows))
    fine = moved <= game.mu * (1 + 1e-9) and least <= answers <= game.mu and rows <= game.mu
    sys.stderr.write(f"{game.name}: claimed, moved, at least, answers, rows: {numbers}\n")
    return f"| {game.name} | {game.method} | {numbers} |", bool(fine)


def _runs(pool: Any, run: Callable[[Game], Any], game: Game, runs: int) -> list[Any]:
    return pool.map(run, [game] * runs, chunksize=100)


def _attack(epsilon: float) -> float:
    return attack(epsilon, np.random.default_rng())


if __name__ == "__main__":
    sys.exit(main())
