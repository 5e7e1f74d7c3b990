"""Comparison: the synthetic and the real table in the same codes, with reference tables from the real one."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any, Self, TypeVar

import numpy as np
import pandas as pd

from privsyn.errors import InputError, did_you_mean, plural, safe_repr
from privsyn.evaluation.encoding import Coded, View, code_by_name
from privsyn.marginals.domain import Attributes, Floats, Integers, Mask, Records
from privsyn.table.encoding.dtypes import OBJECT, UNCOUNTED, family
from privsyn.table.io.read_in_memory import read_in_memory
from privsyn.table.kinds.categorical import OTHER
from privsyn.table.schema.columns import Categorical, Column
from privsyn.table.schema.schema import Schema, declared

SEED = 20240607
"""Seed of every sample of rows, marginals and queries: fixed, so that runs can be compared."""

TEST_SHARE = 0.2
"""Share of the real rows that is held out, in sweeps and where the caller has no test table."""

FEW_TEST_ROWS = 30
"""Fewer test rows say little: the standard error of a share is then above 0.09."""

SAME_ROWS = 0.1
"""Share of the test rows, beyond what duplicates in the real table explain, that may be real rows."""

LEARNERS = {
    "boosting": "gradient boosting",
    "linear": "linear model",
    "forest": "random forest",
    "mlp": "neural network",
    "distilled": "gradient boosting that a linear model taught",
}
"""The models that can be trained, and their labels."""

DEFAULT_LEARNERS = ("boosting", "linear")

Result = TypeVar("Result")


@dataclass(frozen=True, eq=False)
class Results:
    """What was computed from a comparison, once for all metrics that share it."""

    _results: dict[Any, Any] = field(default_factory=dict, init=False, repr=False)

    def once(self, compute: Callable[[Self], Result]) -> Result:
        """Return `compute(self)`, computed once: several metrics share it."""
        if compute not in self._results:
            self._results[compute] = compute(self)
        result: Result = self._results[compute]
        return result


@dataclass(frozen=True)
class Learning:
    """What models learn.

    Parameters
    ----------
    target : str or None
        The column that they predict.
    models : tuple of str
        The models that are trained.
    leave_out : tuple of str
        Columns from which they do not learn.
    """

    target: str | None = None
    models: tuple[str, ...] = ()
    leave_out: tuple[str, ...] = ()

    @classmethod
    def of(cls, target: str | None, models: bool | Sequence[str], leave_out: Sequence[str]) -> Learning:
        """Return what models learn by the settings of `evaluate`, some of which are refused."""
        if isinstance(leave_out, str) or not isinstance(leave_out, Collection):
            raise InputError("leave_out is a list of columns")
        if leave_out and target is None:
            raise InputError("leave_out needs a target: models learn from the other columns")
        return cls(target, chosen_learners(models), tuple(dict.fromkeys(leave_out)))

    def check(self, names: Attributes) -> None:
        """Refuse a target or columns to leave out that are not compared, and to leave out all columns."""
        if self.target is not None and self.target not in names:
            meant = did_you_mean(self.target, names)
            raise InputError(f"target {safe_repr(self.target)} is not a compared column{meant}")
        for name in self.leave_out:
            if name not in names:
                meant = did_you_mean(name, names)
                raise InputError(f"leave_out: {safe_repr(name)} is not a compared column{meant}")
            if name == self.target:
                raise InputError(f"leave_out: {safe_repr(name)} is the target")
        if self.leave_out and not {*names} - {self.target, *self.leave_out}:
            raise InputError("leave_out: no column is left to learn from")


NOTHING_LEARNT = Learning()


@dataclass(frozen=True, eq=False)
class Comparison(Results):
    """The tables in the same codes, and reference tables from the real one.

    Parameters
    ----------
    view : View
    real, synthetic : Coded
    train, test : Coded
        Real rows for training, and other real rows for tests.
    resampled, independent : Coded
        As many rows as the synthetic table: real rows sampled with replacement; columns sampled
        independently.
    learning : Learning
    remarks : tuple of str or None
        What is odd about the caller's test rows, a sentence each; None if the caller gave none.
    pooled : mapping of str to array
        For each column with values that the synthetic table pools: the share of the real cells of each value.
    weight : str or None
        The column with the weights of the rows.
    """

    view: View
    real: Coded
    synthetic: Coded
    train: Coded
    test: Coded
    resampled: Coded
    independent: Coded
    learning: Learning = NOTHING_LEARNT
    remarks: tuple[str, ...] | None = None
    pooled: Mapping[str, Floats] = field(default_factory=dict)
    weight: str | None = None

    @classmethod
    def of(
        cls,
        real: Any,
        synthetic: Any,
        schema: Schema | None,
        *,
        test: Any = None,
        learning: Learning = NOTHING_LEARNT,
        owners: Integers | None = None,
    ) -> Comparison:
        """Read and encode the tables; see `evaluate`. The rows of an owner are held out together.

        Refused are a table without a number in a column where the real table has numbers, and tables on which
        no model can be trained or tested.
        """
        sources = {"real": real, "synthetic": synthetic} | ({} if test is None else {"test": test})
        frames, pooled = pool_rare(read_together(sources, schema), schema)
        view, tables = code_by_name(frames, schema)
        learning.check(view.domain.names)
        target = learning.target
        for name, real_numbers in tables["real"].numbers.items():
            for which, table in tables.items():
                no_number = np.isnan(table.numbers[name]).all() and not np.isnan(real_numbers).all()
                if no_number and (which == "test" or frames[which][name].notna().any()):
                    kind = view.kinds[view.domain.names.index(name)]
                    raise InputError(
                        f"column {name!r} of the {which} table has no {kind}, and that of the real one has:"
                        " give rows of the same kind"
                    )
        if learning.models and target is not None:
            for which in tables.keys() & {"real", "test"}:
                if not _given(view, tables[which], target).any():
                    raise InputError(
                        f"target {target!r} has no cell in the {which} table: choose another, or leave it out"
                    )
            if "test" in tables and _unseen(view, tables, target) == 1:
                raise InputError(
                    f"no cell of the target {target!r} in the test table has a value of the real table"
                )
        rng = np.random.default_rng(SEED)
        real_rows, rows = tables["real"], len(tables["synthetic"])
        train, held_out = (real_rows, tables["test"]) if "test" in tables else _split(real_rows, owners, rng)
        return cls(
            view,
            real_rows,
            tables["synthetic"],
            train,
            held_out,
            real_rows.resample(rows, rng),
            real_rows.unlink(rows, rng),
            learning,
            _remarks(view, frames, tables) if "test" in tables else None,
            pooled,
            None if schema is None else schema.weight,
        )

    def sample(self, rows: int) -> Comparison:
        """Return the comparison of at most `rows` random rows of each table, without models."""
        rng = np.random.default_rng(SEED)
        few: dict[str, Any] = {
            name: table.take(rng.permutation(len(table))[:rows])
            for name, table in vars(self).items()
            if isinstance(table, Coded)
        }
        return replace(self, **few, learning=replace(self.learning, models=()))

    def compare(
        self, measure: Callable[[Coded, Mapping[str, Coded]], dict[str, Result]]
    ) -> dict[str, Result]:
        """Return the results of `measure` for the synthetic table and each reference table.

        Held-out rows are compared with the other real rows, not with a table that may contain them.
        """
        references = {"synthetic": self.synthetic, "real": self.resampled, "independent": self.independent}
        return measure(self.real, references) | measure(self.train, {"held_out": self.test})

    def compare_each(self, measure: Callable[[Coded, Coded], Result]) -> dict[str, Result]:
        """Return the same for a measure of the real table and one other."""
        return self.compare(
            lambda real, references: {name: measure(real, t) for name, t in references.items()}
        )

    def compare_records(
        self, measure: Callable[[Records, Mapping[str, Records]], dict[str, Result]]
    ) -> dict[str, Result]:
        """Return the same for a measure of codes."""
        return self.compare(
            lambda real, references: measure(
                real.records, {name: t.records for name, t in references.items()}
            )
        )


def chosen_learners(models: bool | Sequence[str]) -> tuple[str, ...]:
    """Return the names of the models to train.

    >>> chosen_learners(True), chosen_learners(["forest"]), chosen_learners(False)
    (('boosting', 'linear'), ('forest',), ())
    """
    if isinstance(models, bool):
        return DEFAULT_LEARNERS if models else ()
    if isinstance(models, str):
        raise InputError(f"models are True, False or a list of {', '.join(LEARNERS)}")
    for name in models:
        if name not in LEARNERS:
            meant = did_you_mean(name, LEARNERS)
            raise InputError(f"there is no model {safe_repr(name)}: choose from {', '.join(LEARNERS)}{meant}")
    return tuple(dict.fromkeys(models))


def left_out_line(names: Sequence[str]) -> list[str]:
    """Return a line on the columns that were left out, if there are any.

    >>> left_out_line(["customer_id"]), left_out_line([])
    (['left out, because their names look like identifiers: customer_id; a schema can include them'], [])
    """
    text = "left out, because their names look like identifiers: {}; a schema can include them"
    return [text.format(", ".join(names))] if names else []


def read_together(tables: Mapping[str, Any], schema: Schema | None) -> dict[str, pd.DataFrame]:
    """Read the tables. Refuse empty ones, and without a schema tables with different columns."""
    frames = {name: read_in_memory(table, schema).frame for name, table in tables.items()}
    if declared(schema) is None:  # a synthetic table lacks columns of bytes, which cannot be compared anyway
        frames = {
            name: frame.loc[:, ~frame.dtypes.map(family).isin(UNCOUNTED)] for name, frame in frames.items()
        }
    for name, frame in frames.items():
        if not len(frame):
            raise InputError(f"the {name} table has no rows: give a table with rows")
        if declared(schema) is None and (columns_of_one := set(frame.columns) ^ set(frames["real"].columns)):
            column_of_one = min(columns_of_one, key=str)
            verb = "lacks" if column_of_one in frames["real"].columns else "also has"
            raise InputError(
                f"the {name} table has other columns than the real one (it {verb} {column_of_one!r}): give a"
                " schema of the columns to use"
            )
    return frames


def _given(view: View, table: Coded, name: str) -> Mask:
    """Return where cells of a column are not missing."""
    axis = view.domain.names.index(name)
    return np.asarray(table.records.codes[:, axis] != view.missing[axis])


def _unseen(view: View, tables: Mapping[str, Coded], name: str) -> float:
    """Return the share of the test cells of a category whose value the real table does not have."""
    axis = view.domain.names.index(name)
    cells = tables["test"].records.codes[_given(view, tables["test"], name), axis]
    unseen = ~np.isin(cells, tables["real"].records.codes[:, axis])
    return float(unseen.mean()) if view.kinds[axis] == "category" and len(cells) else 0.0


def _remarks(view: View, frames: Mapping[str, pd.DataFrame], tables: Mapping[str, Coded]) -> tuple[str, ...]:
    """Return what is odd about the test rows."""
    refuse_copy(tables, "test", "real", "synthetic")
    test, real = _digests(tables["test"]), _digests(tables["real"])
    remarks = (
        [] if len(test) >= FEW_TEST_ROWS else [f"only {plural(len(test), 'test row')}: scores are chance"]
    )
    twins = pd.Series(real).duplicated(keep=False).mean()
    if (same := np.isin(test, real)).mean() > twins + SAME_ROWS:
        remarks.append(
            f"{same.sum():,} of {len(test):,} test rows are rows of the real table too: models trained on it"
            " know them"
        )
    for name, cells in tables["test"].numbers.items():
        present = frames["test"][name].notna().to_numpy(bool)
        if unread := int((present & np.isnan(cells)).sum()):
            remarks.append(f"column {name!r}: {plural(unread, 'test cell')} cannot be read: missing instead")
    for name in view.domain:
        if (share := _unseen(view, tables, name)) > 0.5:
            remarks.append(f"column {name!r}: {share:.0%} of the test cells have values that no real row has")
    return tuple(remarks)


def refuse_copy(tables: Mapping[str, Coded], which: str, *names: str) -> None:
    """Refuse a table of held-out rows that has the rows of one of the others."""
    rows = np.sort(_digests(tables[which]))
    for name in names:
        if np.array_equal(rows, np.sort(_digests(tables[name]))):
            raise InputError(
                f"the {which} table has the rows of the {name} one: give real rows that no table was made"
                " from"
            )


def _digests(table: Coded) -> Integers:
    """Return a number for each row, equal for equal rows."""
    columns = {name: table.records.codes[:, axis] for axis, name in enumerate(table.records.domain.names)}
    return pd.util.hash_pandas_object(pd.DataFrame(columns | dict(table.numbers)), index=False).to_numpy()


def _split(table: Coded, owners: Integers | None, rng: np.random.Generator) -> tuple[Coded, Coded]:
    """Split rows for training and tests, at least one of each; a single row is used for both.

    With `owners`, the rows of each, or each row of nobody (-1), are on one side: models would know their
    owner.
    """
    order = rng.permutation(len(table))
    cut = max(1, round((1 - TEST_SHARE) * len(table)))
    if owners is not None and len(owners):
        groups = np.where(owners < 0, owners.max() + 1 + np.arange(len(owners)), owners)
        rank_of_owner = rng.permutation(groups.max() + 1)[groups]
        order = np.argsort(rank_of_owner, kind="stable")
        ends = np.flatnonzero(np.diff(rank_of_owner[order])) + 1  # where another owner begins
        cut = int(ends[np.abs(ends - cut).argmin()]) if len(ends) else len(table)
    return table.take(order[:cut]), table.take(order[cut:] if cut < len(table) else order)


MOST_POOLED = 5
"""Number of columns with pooled values that the summary names, if their names are short."""

LINE = 180
"""Characters of a line of the summary that names columns."""


def pool_rare(
    frames: Mapping[str, pd.DataFrame], schema: Schema | None
) -> tuple[dict[str, pd.DataFrame], dict[str, Floats]]:
    """Return the tables with the real values pooled that the synthetic table pools.

    The pooled value of a column stands for other values. The schema names it, or it is ``"(other)"``, as in
    `Categorical`. Which real values of a column are replaced by it:

    =============================================================  =====================================
    the schema                                                     values that are pooled
    =============================================================  =====================================
    lists the values, and names the pooled value                   values outside the list
    lists the values, and names no pooled value                    none
    lists none, and the synthetic column has the pooled value      values that the synthetic column lacks
    lists none, and the synthetic column lacks the pooled value    none
    names no pooled value, and the real column has ``"(other)"``   none: ``"(other)"`` is then a value
    =============================================================  =====================================

    Parameters
    ----------
    frames : mapping of str to pandas.DataFrame
        "real", "synthetic" and perhaps "test".
    schema : Schema, optional

    Returns
    -------
    frames : dict
    pooled : dict of str to array
        For each column with pooled values, the share of the real cells that each of these values has.

    Examples
    --------
    >>> real = pd.DataFrame({"city": ["Rome", "Rome", "Bari", "Lodi"]})
    >>> synthetic = pd.DataFrame({"city": ["Rome", "(other)"]})
    >>> frames, pooled = pool_rare({"real": real, "synthetic": synthetic}, None)
    >>> frames["real"]["city"].tolist(), pooled["city"].tolist()
    (['Rome', 'Rome', '(other)', '(other)'], [0.25, 0.25])
    """
    tables, pooled = dict(frames), {}
    for name in frames["synthetic"].columns if schema is None else schema.coded:
        column = Categorical() if schema is None else schema.columns[name]
        if not column.lists_values or any(name not in frame.columns for frame in frames.values()):
            continue
        with suppress(TypeError):  # cells that cannot be compared: encoding refuses them
            marks = () if schema is None else schema.markers(name)
            if (shares := _pooled(tables, name, column, marks)) is not None:
                pooled[name] = shares
    return tables, pooled


def _pooled(
    tables: dict[str, pd.DataFrame], name: str, column: Column, marks: tuple[str, ...]
) -> Floats | None:
    """Pool the values of one column in the real and the test table; return their real shares, if any."""
    word = OTHER if column.other is None else column.other
    listed, real = column.listed, tables["real"][name]
    if not listed:
        synthetic = set(tables["synthetic"][name].dropna().unique())
        if word not in synthetic or (column.other is None and (real == word).any()):
            return None
        values_kept = synthetic | {word, *marks}
    elif column.other is None:
        return None
    else:
        values_kept = {*listed, *marks}
    columns = {which: tables[which][name] for which in tables.keys() - {"synthetic"}}
    texts = all(isinstance(value, str) for value in values_kept)
    if texts and not any(isinstance(value, str) for value in real.dropna()[:1]):
        # Of a column of whole numbers, the values beside the word may be their texts.
        columns = {which: cells.convert_dtypes().astype("string") for which, cells in columns.items()}
        real = columns["real"]
    lost = real.notna() & ~real.isin(values_kept)
    if not lost.any():
        return None
    shares = real[lost].astype(OBJECT).value_counts() / len(real)
    for which, cells in columns.items():
        rest = cells.astype(OBJECT).where(cells.isna() | cells.isin(values_kept), word)
        tables[which] = tables[which].assign(**{name: rest})
    return np.asarray(shares, np.float64)


def pooled_line(columns: Mapping[str, Mapping[str, float]]) -> list[str]:
    """Return a line on the columns with pooled values, the most pooled first; none if nothing is pooled.

    >>> print(*pooled_line({"a": {"pooled": 0.25, "pooled_values": 2.0}, "b": {"pooled": 0.0}}))
    pooled rare values, which the errors leave out: a 25.0% of the cells (2 values)
    >>> many = {f"column {place}": {"pooled": 0.25, "pooled_values": 2.0} for place in range(9)}
    >>> len(pooled_line(many)[0])
    182
    """
    shares = {name: facts["pooled"] for name, facts in columns.items() if facts["pooled"] > 0}
    ranked = sorted(shares, key=lambda name: -shares[name])
    words = [
        f"{name} {shares[name]:.1%} of the cells ({plural(int(columns[name]['pooled_values']), 'value')})"
        for name in ranked[:MOST_POOLED]
    ]
    text = "pooled rare values, which the errors leave out: "
    while len(words) > 1 and len(text + ", ".join(words)) > LINE:
        words = words[:-1]
    left_out = len(ranked) - len(words)
    words += [plural(left_out, "more column")] if left_out else []
    return [text + ", ".join(words)] if words else []
