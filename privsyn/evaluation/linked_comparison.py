"""LinkedComparison: linked tables, real and synthetic, compared in the rows that belong together."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from privsyn.abilities import LINKED, check_abilities
from privsyn.errors import InputError
from privsyn.evaluation.comparison import NOTHING_LEARNT, SEED, Comparison, Learning, Results
from privsyn.evaluation.encoding import Classes, Coded
from privsyn.evaluation.linked_rows import BrokenKeys, Frames, LinkedRows, link
from privsyn.marginals.domain import Floats, Ints
from privsyn.table.database.database import Database


@dataclass(frozen=True, eq=False)
class Side:
    """The rows of all tables that belong to somebody, as they are linked: sorted by parent, and in order.

    Parameters
    ----------
    linked : LinkedRows
    codes : mapping of str to mapping of str to integer array
        For each table and column the class of each row.
    numbers : mapping of str to mapping of str to float array
        For each table and column of numbers or dates the cells; NaN where a cell is missing.
    targets : mapping of str to mapping of str to integer array
        For each table that dealt columns name, and for each column, the class of each row of its frame.
    """

    linked: LinkedRows
    codes: Mapping[str, Mapping[str, Ints]]
    numbers: Mapping[str, Mapping[str, Floats]]
    targets: Mapping[str, Mapping[str, Ints]]

    @classmethod
    def of(
        cls,
        linked: LinkedRows,
        cells: Mapping[str, Coded],
        classes: Mapping[str, Mapping[str, Classes]],
        database: Database,
    ) -> Side:
        """Return the linked rows of tables, given the cells and the classes of each table with columns."""
        codes: dict[str, dict[str, Ints]] = {table: {} for table in database.names}
        numbers: dict[str, dict[str, Floats]] = {table: {} for table in database.names}
        targets: dict[str, dict[str, Ints]] = {table: {} for table in linked.targets}
        for table, coded in cells.items():
            rows = linked.rows[table]
            for axis, (name, column_classes) in enumerate(classes[table].items() if table in targets else ()):
                every = column_classes.code(coded.records.codes[:, axis], coded.numbers.get(name))
                targets[table][name] = every
            numbers[table] = {name: column[rows] for name, column in coded.numbers.items()}
            for axis, (name, column_classes) in enumerate(classes[table].items()):
                codes[table][name] = column_classes.code(
                    coded.records.codes[rows, axis], numbers[table].get(name)
                )
        return cls(linked, codes, numbers, targets)

    def size(self, table: str) -> int:
        """Return the number of rows."""
        return len(self.linked.rows[table])


@dataclass(frozen=True, eq=False)
class LinkedComparison(Results):
    """The tables of a database, real and synthetic: each table compared, and the rows that belong together.

    Parameters
    ----------
    database : Database
    comparisons : mapping of str to Comparison
        Of each table that has columns to compare.
    classes : mapping of str to mapping of str to Classes
        For each table and column.
    truth : Side
        The real rows.
    sides : mapping of str to Side
        "synthetic"; "real": as many real roots drawn again, with all their rows; "independent": the real rows
        of each table, dealt to the parents at random.
    broken : mapping of str to BrokenKeys
        For the real and the synthetic tables.
    frames : mapping of str to mapping of str to DataFrame
        The same tables as they were read.
    """

    database: Database
    comparisons: Mapping[str, Comparison]
    classes: Mapping[str, Mapping[str, Classes]]
    truth: Side
    sides: Mapping[str, Side]
    broken: Mapping[str, BrokenKeys]
    frames: Mapping[str, Frames]

    @classmethod
    def of(
        cls, frames: Mapping[str, Frames], database: Database, learning: Learning = NOTHING_LEARNT
    ) -> LinkedComparison:
        """Compare linked tables, given the "real", the "synthetic" and perhaps the "test" ones.

        See `evaluate`.
        """
        links = {which: link(which, frames[which], database) for which in ("real", "synthetic")}
        names = compared_tables(database, frames["real"])
        if not names:
            raise InputError("no column can be compared: all tables have keys, identifiers or free text only")
        if len(names) > 1:
            check_abilities([LINKED], {"target": learning.target, "test": frames.get("test")})
        (real, broken), (synthetic, broken_synthetic) = links["real"], links["synthetic"]
        comparisons: dict[str, Comparison] = {}
        for name in names:
            table = database.tables[name]
            cells = {which: tables[name].drop(columns=[*table.keys]) for which, tables in frames.items()}
            comparisons[name] = Comparison.of(
                cells["real"],
                cells["synthetic"],
                table.schema,
                test=cells.get("test"),
                learning=learning,
                owners=real.persons(database, name, len(cells["real"])),
            )
        rng = np.random.default_rng(SEED)
        redrawn = real.resample(database, {root: len(synthetic.rows[root]) for root in database.roots}, rng)
        dealt = real.deal(database, rng)
        classes = {
            name: {
                column: Classes.of(comparison.view, comparison.real, column)
                for column in comparison.view.domain
            }
            for name, comparison in comparisons.items()
        }
        real_cells = {name: comparison.real for name, comparison in comparisons.items()}
        synthetic_cells = {name: comparison.synthetic for name, comparison in comparisons.items()}
        for name, comparison in comparisons.items():
            rows = redrawn.rows[name]
            if len(rows):
                comparisons[name] = replace(comparison, resampled=comparison.real.take(rows))
        return cls(
            database,
            comparisons,
            classes,
            Side.of(real, real_cells, classes, database),
            {
                "synthetic": Side.of(synthetic, synthetic_cells, classes, database),
                "real": Side.of(redrawn, real_cells, classes, database),
                "independent": Side.of(dealt, real_cells, classes, database),
            },
            {"real": broken, "synthetic": broken_synthetic},
            frames,
        )

    @property
    def models(self) -> tuple[str, ...]:
        """The models that are trained."""
        return next(iter(self.comparisons.values())).learning.models

    @property
    def children(self) -> tuple[str, ...]:
        """The tables whose rows belong to rows of another one."""
        return self.database.below

    @property
    def dealing(self) -> tuple[str, ...]:
        """The tables with columns that are dealt."""
        return tuple(name for name in self.database.names if self.database.tables[name].dealt)

    def sizes(self, table: str) -> dict[str, int]:
        """Return the number of classes of each column."""
        return {name: len(classes.words) for name, classes in self.classes.get(table, {}).items()}

    def label(self, table: str, text: str) -> str:
        """Return a text with the table that it is about, if there are several."""
        return text if len(self.children) == 1 else f"{table}: {text}"


def compared_tables(database: Database, frames: Frames) -> list[str]:
    """Return the tables with columns to compare: none has a schema that is empty or leaves all out."""
    names = []
    for name in database.names:
        table, schema = database.tables[name], database.tables[name].schema
        has_none = schema is not None and (schema.says_nothing or bool(schema.columns and not schema.coded))
        if not has_none and len(frames[name].columns) > len(table.keys):
            names.append(name)
    return names
