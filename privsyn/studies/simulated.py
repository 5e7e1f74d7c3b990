"""A sweep of a release: how well will a model predict real rows if it learns from synthetic ones?

A posterior draw of the release stands in for the private table. Models learn from this table, from the
released one, and from the table of a simulated run on the stand-in. All are tested on other rows of the draw.
Nothing here reads a private row, so it costs no privacy.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from math import isnan, nan
from typing import Any

import numpy as np

from privsyn.arguments import check_release, check_whole
from privsyn.errors import InputError, nothing_to_warn_of, printable, spelled
from privsyn.evaluation.comparison import LEARNERS, chosen_learners
from privsyn.evaluation.encoding import code_together
from privsyn.private.accounting import epsilon_for
from privsyn.private.noise_laws import LAWS
from privsyn.private.run_ledger import RunLedger
from privsyn.private.spend import ONE_WAYS
from privsyn.progress import Progress, no_progress
from privsyn.release.accuracy.outlook import Outlook
from privsyn.release.draws.frames import FrameDraws
from privsyn.release.release import Release
from privsyn.release.table_model import TableModel
from privsyn.studies.student import Student
from privsyn.synthesizer import PrivSyn
from privsyn.table.io.write import stacked

MOST_ROWS = 10_000
"""Most rows of a simulated table. Its noise is smaller in proportion, so it hides as much."""

TEST_ROWS = 4_000

STEPS = 3
"""Steps of a simulated run: its table is drawn, it is fitted, and models learn."""

GUESSES = {"auc": 0.5, "r2": 0.0}
"""Scores of a prediction that uses no column: a lower score counts as this one."""

NAMES = {"auc": "AUC", "r2": "R2"}

HALF_NOISE = 1.2
"""The strength over the expected error of the strongest relationship of the target, r, at which half of what
a score exceeds a guess by is noise: on real rows the part r^2 / (r^2 + HALF_NOISE^2) of it remains.

The rows of a release, and of draws from it, have its noise as if it were structure, so models predict the
target on them better than on real rows: the score of lending_club at epsilon 0.5 was 0.93 there and 0.50 on
real rows. By least squares over the runs of experiments/forecast.py."""

SCORE_ERRORS = {"AUC": ((-0.10, 0.06), (-0.18, 0.20)), "R2": ((-0.10, 0.15), (-0.31, 0.34))}
"""The 3 and 97 % quantiles of found score - expected score over the runs of experiments/forecast.py: where
the verdict on a model of the target is Yes, and where it is Roughly. Where it is No, no interval is given.
Chosen on half of the tables, they held for 89 to 90 % of the runs with the others, means of 20 halves."""

DROP_ERRORS = {"AUC": ((-0.09, 0.05), (-0.11, 0.15)), "R2": ((-0.21, 0.10), (-0.20, 0.50))}
"""The same quantiles of found drop - expected drop, which held for 89 to 91 %."""

REAL_SCORE_ERRORS = {"AUC": ((-0.18, 0.06), (-0.21, 0.20)), "R2": ((-0.22, 0.20), (-0.30, 0.45))}
"""The same for models that learn from real rows, made wider by hand: on the other half of the tables those
quantiles held for 83 to 91 % only."""

NO_MODEL = 2
"""The level of the verdict No on a model of the target: no score can be foreseen."""

CHANCE = 0.02
"""An expected score that exceeds a guess by no more is that of a guess: by chance alone, scores of the 4,000
rows of a test differ by about as much."""

LINKED = (
    "a sweep of a release simulates private rows from the model, which lacks the links that noise hid:"
    " it would promise too much for linked tables; `plan` says what another epsilon or more rows would keep"
)
"""Why linked tables are refused."""


@dataclass(frozen=True)
class SimulatedScore:
    """What a model is expected to reach on real rows, if it learns from the synthetic table.

    Parameters
    ----------
    target : str
    measure : "AUC" or "R2"
        AUC for classes, the mean over classes of each against the rest; R2 for numbers.
    learner : str
        The model that learns.
    score : float
        Expected score on real rows, learnt from synthetic rows.
    drop : float
        By how much this is expected to be below the score of a model that learns from the real rows: what
        the noise costs. Structure of the real table that the release does not show costs more.
    guess : float
        The score of a prediction that uses no column.
    level : int
        The verdict of the release on a model of the target: 0 for Yes, 1 for Roughly, 2 for No.
    """  # style: allow

    target: str
    measure: str
    learner: str
    score: float
    drop: float
    guess: float
    level: int = 0

    @property
    def drop_low(self) -> float:
        """The lower end of the 90 % interval of the drop, from drops that were found in tests."""
        return max(self.drop + DROP_ERRORS[self.measure][self.level][0], 0.0)

    @property
    def drop_high(self) -> float:
        """The upper end of the drop, which includes structure that a release usually does not show."""
        return min(self.drop + DROP_ERRORS[self.measure][self.level][1], 1 - self.score)

    @property
    def score_low(self) -> float:
        """The lower end of the 90 % interval of the score, from scores that were found in tests.

        A score below that of a guess counts as a guess.
        """
        return max(self.score + SCORE_ERRORS[self.measure][self.level][0], self.guess)

    @property
    def score_high(self) -> float:
        """The upper end of the score."""
        return min(self.score + SCORE_ERRORS[self.measure][self.level][1], 1.0)

    @property
    def real(self) -> float:
        """The expected score of a model that learns from real rows."""
        return self.score + self.drop

    @property
    def real_low(self) -> float:
        """The lower end of the 90 % interval of `real`, from scores that were found in tests."""
        return max(self.real + REAL_SCORE_ERRORS[self.measure][self.level][0], self.guess)

    @property
    def real_high(self) -> float:
        """The upper end of `real`. How well real rows can be predicted at all no release can show."""
        return min(self.real + REAL_SCORE_ERRORS[self.measure][self.level][1], 1.0)

    @property
    def useless(self) -> bool:
        """Whether noise hides what predicts the target, or nothing does: then the drop cannot be known.

        An interval that reaches a guess is no such case, as for each R2 up to 0.31 where the verdict on a
        model is Roughly: of 84 such forecasts, 4 were of models no better than a guess.
        """
        return self.level == NO_MODEL or self.score - self.guess <= CHANCE

    @property
    def row(self) -> dict[str, object]:
        """The values of `COLUMNS`; if the table is useless, nothing but the expected score is known."""
        unknown = UNKNOWN_IF_USELESS if self.useless else ()
        named = {"model": self.learner} | dict.fromkeys(unknown, nan)
        return {name: named[name] if name in named else getattr(self, name) for name in COLUMNS}

    def __str__(self) -> str:
        task = (
            f"to predict {self.target} on real rows, a model ({LEARNERS[self.learner]}) that learns"
            " from synthetic rows"
        )
        if self.useless:
            return printable(
                f"{task} may be no better than {self._guess_in_words}: the noise hides what predicts the"
                " target, or nothing does. No score can be foreseen: do not train on this table"
            )
        score = (
            f"{task} is expected to reach an {self.measure} of {self.score:.2f}"
            f" (90 % interval: {self.score_low:.2f} to {self.score_high:.2f})"
        )
        if self.score_low <= self.guess:
            score += f"; the interval reaches {self._guess_in_words}, so test the model on real rows"
        drop = (
            f"a model that learns from real rows is expected to reach {self.real:.2f} (90 % interval:"
            f" {self.real_low:.2f} to {self.real_high:.2f}), for the noise costs {self.drop:.2f} (90 %"
            f" interval: {self.drop_low:.2f} to {self.drop_high:.2f})"
        )
        return "\n".join(map(printable, [score, drop]))

    @property
    def _guess_in_words(self) -> str:
        return f"a guess (an {self.measure} of {self.guess:g})"


UNKNOWN_IF_USELESS = (
    *("score_low", "score_high"),
    *("real", "real_low", "real_high", "drop", "drop_low", "drop_high"),
)
"""The columns that are NaN in the row of a useless table."""

COLUMNS = ("target", "model", "measure", "score", *UNKNOWN_IF_USELESS, "guess", "useless")
"""What the row of a score holds."""


def simulated_scores(
    release: Release[Any] | PrivSyn[Any],
    target: str | None,
    models: bool | Sequence[str],
    runs: int | None,
    progress: Progress | None,
    table_settings: Mapping[str, object],
) -> tuple[SimulatedScore, ...]:
    """Return what models that learn from a release are expected to reach on real rows.

    For each run it simulates a private table of at most 10,000 rows, and a release of it with noise that
    hides as much as that of the release. It cannot see structure that the release lacks, such as interactions
    of columns that were only counted in pairs: see docs/engineer.md for how far drops were off.

    Parameters
    ----------
    release : Release or PrivSyn
    target, models, progress
        As for `sweep`. The simulated runs name the target, too.
    runs : int, optional
        Number of simulated private tables, at least 1 (the default). The time is proportional to it.
    table_settings : mapping of a setting to its value
        Those of a sweep of a table, which are refused.

    Raises
    ------
    InputError
        If the target is no counted column or has one value only, the counts were measured elsewhere or
        randomised by the respondents, or rows or tables are linked.
    """
    for name, value in table_settings.items():
        if value is not None and value is not False and value != ():
            raise InputError(f"leave out {spelled(name)}: a release is swept with the settings of its run")
    model: TableModel | None = check_release(release).single
    if model is None:
        raise InputError(LINKED)
    if target is None:
        raise InputError(f"a sweep of a release is about predictions: give {spelled('target')}")
    model.codec.schema.check_coded("target", target)
    learners = chosen_learners(models)
    if not learners:
        raise InputError("a sweep of a release is about models: name at least one")
    simulation = _Simulation(
        model, target, learners, check_whole("seeds", 1 if runs is None else runs, minimum=1)
    )
    by_run = list(simulation.scores(progress or no_progress))
    measure = simulation.measure
    guess, name, outlook = GUESSES[measure], NAMES[measure], Outlook.of(model, target)
    clear = (outlook.of_target or 0.0) ** 2
    remaining = clear / (clear + HALF_NOISE**2)
    expected = []
    for index, learner in enumerate(learners):
        scores = [run[index] for run in by_run if not any(map(isnan, run[index]))]
        if not scores:
            raise InputError(f"target {target!r}: the release has one value only, so nothing can be learnt")
        alike, released, again = np.maximum(scores, guess).mean(axis=0).tolist()
        simulated = (released + again) / 2
        score = guess + remaining * (simulated - guess)
        drop = remaining * max(alike - simulated, 0.0)
        expected.append(SimulatedScore(target, name, learner, score, drop, guess, outlook.level_of_target))
    return tuple(expected)


def student_of(release: Release[Any]) -> Student:
    """Return the model to train on rows of a release, by the epsilon of one row."""
    return Student.for_epsilon(release.ledger.promised_epsilon / (release.ledger.rows_per_unit or 1))


class _Simulation:
    """Stand-ins for the private table, and simulated releases of them."""

    def __init__(self, release: TableModel, target: str, learners: tuple[str, ...], draws: int) -> None:
        schema, method = release.codec.schema, release.method.name
        self._schema = replace(schema, columns=schema.coded)
        seeds = np.random.SeedSequence(0).generate_state(draws + 1)  # nothing private depends on them
        self._target, self._learners, self._seeds = target, learners, seeds.tolist()
        total = max(round(release.fitted.total), 1)
        self._rows = min(total, MOST_ROWS)
        named: dict[str, Any] = {"target": target} if method == "default" else {}
        epsilon, delta = epsilon_of_row(release.ledger, self._rows / total)
        self._run: Callable[..., PrivSyn[Any]] = partial(
            PrivSyn[Any], epsilon, delta, self._schema, method=method, **named
        )
        test_rows = min(self._rows, TEST_ROWS)
        self._draws = FrameDraws(release, max(draws, 2), self._rows + test_rows, self._seeds[-1])
        self._released = stacked(release.blocks(self._rows, self._seeds[-1], None))
        self.measure = "auc"

    def scores(self, report: Progress) -> Iterator[list[tuple[float, ...]]]:
        """Yield three scores of each learner for each draw, all on test rows of the draw.

        The models learn from its other rows, from the released table, and from a simulated release of it.
        """
        from privsyn.evaluation.models import Task, learning

        *seeds, _ = self._seeds
        stage, steps = "simulating runs", STEPS * len(seeds)
        for k, seed in enumerate(seeds):
            report(stage, STEPS * k, steps)
            mixed = self._draws.frame(k)[list(self._schema.columns)].sample(frac=1, random_state=seed)
            alike, test = mixed.iloc[: self._rows], mixed.iloc[self._rows :]
            report(stage, STEPS * k + 1, steps)
            with nothing_to_warn_of():
                run = self._run(seed=seed, progress=report).fit(alike)
            again = stacked(run.release_.table().blocks(self._rows, seed, None))
            view, (tested, *learnt) = code_together([test, alike, self._released, again], self._schema)
            report(stage, STEPS * k + 2, steps)
            task = Task.of(view, learnt[0], self._target)
            self.measure = "r2" if task.classes is None else "auc"
            by_table = [learning(view, task, table, tested, self._learners) for table in learnt]
            keys = [f"{learner}_{self.measure}" for learner in self._learners]
            yield [tuple(table[key].value if key in table else nan for table in by_table) for key in keys]
        report(stage, steps, steps)


def epsilon_of_row(ledger: RunLedger, part: float = 1.0) -> tuple[float, float]:
    """Return the epsilon and delta of a run on single rows with the noise of this one's counts.

    A run on a part of the rows has noise that is smaller in proportion. If persons have many rows, the noise
    is that of the bound of the run. What the numbers of rows per person cost is left out, as is what finding
    values and bounds cost, and the tests of criteria. That counts of kept rows were multiplied, to stand for
    all rows, is not simulated: the noise hides more than the scores say.

    >>> from privsyn.private.spend import Spend
    >>> counts = Spend(ONE_WAYS, answers=12, sensitivity=6.0, sigma=8.0)
    >>> of_persons = RunLedger((counts,), promised_epsilon=4.0, promised_delta=1e-5, accounting="gaussian",
    ...     randomness="operating system", private=True, public_inputs=(), version="1.0", unit="id",
    ...     rows_per_unit=3)
    >>> epsilon, delta = epsilon_of_row(of_persons)
    >>> f"{epsilon:.3f}", delta
    ('0.926', 1e-05)
    """
    if ledger.elsewhere is not None or ledger.local:
        raise InputError("a sweep of a release simulates the run: it needs noise of privsyn's own")
    law = LAWS[ledger.law]
    one_way_places = [index for index, spend in enumerate(ledger.spends) if spend.what.startswith(ONE_WAYS)]
    if not one_way_places:
        # The questions to linked tables begin with the name of a table.
        if any(ONE_WAYS in spend.what for spend in ledger.spends):
            raise InputError("a sweep of a release simulates independent rows: this model has linked ones")
        raise InputError("a sweep of a release simulates the counts of columns: here all are known totals")
    cost = sum(spend.cost for spend in ledger.spends[one_way_places[0] :])
    if ledger.acceptance is not None:
        cost -= ledger.acceptance.share * ledger.budget
    row = law.of_row(cost, part * (ledger.rows_per_unit or 1))
    return epsilon_for(row, ledger.promised_delta, ledger.accounting), ledger.promised_delta
