"""What page and data sheet say of several tables: numbers of rows, links that are kept, and rules."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from functools import cached_property
from typing import Any

import numpy as np

from privsyn.inference.fitted import Certainty
from privsyn.marginals.domain import Codes, Integers
from privsyn.marginals.marginal import Marginal
from privsyn.pages.diagram import Box
from privsyn.pages.sections import interval, many, rounded
from privsyn.release.accuracy.link_levels import is_of_lasting, name_of_row_before, relationship_of
from privsyn.release.accuracy.verdicts import HOW_KEPT
from privsyn.release.linked_agreement import called
from privsyn.release.release import Release
from privsyn.studies.publication.relationships import most_frequent, relationship
from privsyn.synthesis.chains import NUMBER_OF_ROWS, Context, Previous
from privsyn.table.codec.labels import labels_of
from privsyn.table.database.computed_above import ComputedAbove
from privsyn.table.database.declared import Table
from privsyn.table.database.derived_columns import (
    constants,
    of_lasting,
    rows_of,
    same_in_all_rows,
    sums_above,
)
from privsyn.table.database.opened import ROW
from privsyn.table.database.summaries import Computed
from privsyn.table.kinds.keys import key_in_words

TWO_BEFORE, PLACE = "the second row before", "numbers and places of rows"
"""What else than a table or the row before a row may be linked with."""


def number_of_rows(release: Release, table: str) -> tuple[float, float, float]:
    """Return the estimated number of rows of a table, and the ends of its 95 % interval."""
    model = release.tables[table]
    return model.fitted.total, *model.fitted.interval_of_total(laplace=model.has_laplace_noise)


def rows_each(release: Release, child: str) -> dict[str, Any]:
    """Return how many rows of a child table each row of its parent has on average, with a 95 % interval."""
    parent = release.database.tables[child].parent or ""
    average = release.accuracy_.mean(f"{child}: count")
    numbers = [float(average[part]) for part in ("estimate", "low", "high")]
    words = interval(*numbers)
    text = f"{words[0]} ({words[1]} to {words[2]})"
    return {"table": child, "parent": parent, "column": rows_of(child), "words": words, "text": text}


def boxes(release: Release) -> list[Box]:
    """Return what the diagram says of each table; numbers of rows are the released estimates."""
    drawn = []
    for name, model in release.tables.items():
        table = release.database.tables[name]
        keys = [f"key {key_in_words(table.key)}"] if table.key else []
        counted = f"about {rounded(model.fitted.total)} rows"
        lines = [*keys, counted, many(len(published(release, name)), "column")]
        label = ""
        if table.parent is not None:
            label = f"{key_in_words(table.link)} · rows each {rows_each(release, name)['text']}"
        lookups = release.database.looked_up(name, model.codec.names)
        drawn.append(Box(name, lines, table.parent, label, lookups))
    for name, table in release.database.public.items():
        lines = [f"key {key_in_words(table.key)}", many(len(table.public.frame), "row"), "public, as it is"]
        drawn.append(Box(name, lines, public=True))
    return drawn


def published(release: Release, name: str) -> list[str]:
    """Return the columns of a synthetic table that are no keys."""
    return [column for column in release.tables[name].columns if column not in own_keys(release, name)]


def own_keys(release: Release, name: str) -> tuple[str, ...]:
    """Return the columns of a synthetic table with new keys, and with 1, 2, 3, ..."""
    table, model = release.database.tables[name], release.tables[name]
    columns_of_data = (*model.codec.names, *table.elsewhere)
    return tuple(column for column in model.columns if column not in columns_of_data)


def not_published(release: Release, name: str) -> tuple[str, ...]:
    """Return the counted columns of a table that no synthetic table has: summaries of child rows."""
    database, children = release.database, release.database.children(name)
    lasting = (column for child in children for column in of_lasting(database, child))
    sums = (column for child in children for column in sums_above(database, child).values())
    return (*database.tables[name].derive, *map(rows_of, children), *lasting, *sums, ROW)


def called_elsewhere(release: Release, name: str) -> dict[str, str]:
    """Return what the synthetic tables call the columns that a table counts for others, or computes."""
    database = release.database
    names = {str(summary): column for column, summary in database.tables[name].computed.items()}
    for child in database.children(name):
        for column, original in constants(database, child).items():
            names[original] = f"{column} of {child}, the same in all rows of one of {name}"
    return names


def constant_columns(release: Release) -> dict[str, str]:
    """Return the columns and sums of the one table that somebody gave that were counted once for each person.

    Each has its name among the columns of the persons.
    """
    single = release.database.single
    return {} if single is None else same_in_all_rows(release.database, single)


def rules(release: Release) -> list[tuple[str, str]]:
    """Return the rules that every synthetic row keeps, each with its table, in words."""
    sentences = []
    for name, model in release.tables.items():
        table, codec = release.database.tables[name], model.codec
        lookups = release.database.looked_up(name, codec.names)
        rules_of_table = [
            *(constraint.explain() for constraint in codec.schema.constraints),
            *(f"{rule}, in every row" for rule in table.compared),
            *(f"{rule}, copied from the synthetic row above" for rule in table.copied.values()),
            *(f"{rule}, computed from the synthetic rows" for rule in _computations(table)),
            *(
                f"{Computed((None, column), summary)}, computed from the synthetic rows"
                for column, summary in table.computed.items()
            ),
            *_words_on_links(table),
            *(f"{column} is a key of {lookup}, or missing" for column, lookup in lookups.items()),
        ]
        sentences += [(name, rule) for rule in rules_of_table]
    return sentences


def rules_of_persons(release: Release) -> list[str]:
    """Return the rules on the rows of one person, of the one table that somebody gave, in words.

    Empty where each row is a person, and for tables with names: see `rules`.
    """
    database = release.database
    if database.single is None or not database.is_linked:
        return []
    table = database.tables[database.single]
    return [*map(str, _computations(table)), *_among_siblings(table)]


def _computations(table: Table) -> Iterator[ComputedAbove]:
    """Yield the rules by which columns are computed from rows above, but for those of constant sums."""
    return (rule for rule in table.stated if isinstance(rule, ComputedAbove))


def _words_on_links(table: Table) -> Iterator[str]:
    """Yield what is declared of the links of a table, in words."""
    for column, target in table.dealt.items():
        yield f"{column} is a key of {target}, of a random row: which one says nothing"
    if table.parent is None:
        return
    yield f"{key_in_words(table.link)} is a key of {table.parent}, in every row; all keys are new"
    if table.children is not None:
        fewest, largest = table.children
        numbers = f"{fewest} {'or more' if largest is None else f'to {largest}'}"
        yield f"each row of {table.parent} has {numbers} rows"
    if table.order is not None:
        yield f"the rows of one row of {table.parent} are in the order of {table.order}"
    yield from _among_siblings(table)


def _among_siblings(table: Table) -> Iterator[str]:
    """Yield the rules on the rows of one parent, in words."""
    rows = f"the rows of one row of {table.parent}"
    for column in table.constant:
        yield f"{column} is the same in all {rows.removeprefix('the ')}"
    for total in table.constant_sums:
        yield f"{total.name} is the same in all {rows.removeprefix('the ')}"
    yield from (f"among {rows}: {life}" for life in table.kept_lives)
    for rule in table.one:
        yield f"of {rows}, exactly one{', the first,' * rule.first} has {rule.column} == {rule.value!r}"


class LinksInWords:
    """The tables of counts that link rows of a child table with other rows.

    Parameters
    ----------
    release : Release
    name : str
        A table with a parent.
    """

    def __init__(self, release: Release, name: str) -> None:
        self._release, self._name = release, name
        model = release.tables[name]
        if model.links is None:
            raise ValueError(f"{name}: nothing links its rows")
        self._own, self._links = model, model.links

    @cached_property
    def relationships(self) -> list[dict[str, Any]]:
        """What pages say of each table, the strongest first; see `release_facts.relationships`."""
        rows = []
        context, previous = self._links.context, self._links.previous
        for linking in self._links.linking:
            if not self._lost(table := linking.table):
                certainty = Certainty(linking.measured, linking.error)
                columns = tuple(map(self.called, table.attributes))
                facts = relationship(columns, relationship_of(self._links, linking), certainty.sigma)
                above = {context[name].table for name in table.attributes if name in context}
                lags = {previous[name].lag for name in table.attributes if name in previous}
                before = name_of_row_before(self._links) if lags == {1} else TWO_BEFORE
                partner = before if lags else next(filter(None, above), PLACE)
                rows.append(facts | {"with": partner, "table": (certainty, table)})
        return sorted(rows, key=lambda row: -row["strength"])

    @property
    def pairs_kept(self) -> list[dict[str, Any]]:
        """For each table above and row before: how many pairs are kept how well, and which columns last.

        The numbers are those of the verdict; see `link_levels`. A column that lasts is kept by its first
        value and its changes, whatever its pair with the row before says.
        """
        links, columns = self._links, len(self._columns(self._name))
        possible = Counter(context.table or PLACE for context in links.context.values())
        lags = {previous.lag for previous in links.previous.values()}
        before = name_of_row_before(links)
        possible |= {before: columns} if lags else {}  # each column with each column of the row before
        possible |= {TWO_BEFORE: 1} if lags - {1} else {}  # each column with itself alone
        lines = []
        for partner, number in possible.items():
            rows = [row for row in self.relationships if row["with"] == partner and len(row["columns"]) == 2]
            lasting = self.lasting if partner == before else ()
            counted = [row for row in rows if not is_of_lasting(self._own, row["table"][1].attributes)]
            words = {word: sum(row["kept"] == word for row in counted) for word in HOW_KEPT}
            unmeasured = max(number * columns - len(counted) - len(lasting), 0)
            lines.append({"with": partner, "kept": words, "lasting": lasting, "unmeasured": unmeasured})
        return lines

    @property
    def lasting(self) -> tuple[str, ...]:
        """The columns that last."""
        return self._own.lasting

    def called(self, attribute: str) -> str:
        """Return what pages call an attribute of a row of the table."""
        return called(self._release.database, self._name, self._links, attribute)

    def _lost(self, table: Marginal) -> bool:
        """Return whether nothing was found of a column of a table of counts."""
        return any(
            release.codec.column_of(attribute) in release.accuracy_.not_found
            for release, attribute in map(self._home, table.attributes)
            if release is not None
        )

    def _home(self, name: str) -> tuple[Any, str]:
        """Return the release that has the column of an attribute, or None, and its name there."""
        if (context := self._links.context.get(name)) is not None:
            return (self._release.tables[context.table] if context.table else None), context.attribute
        previous = self._links.previous.get(name)
        return self._own, name if previous is None else previous.column

    def _columns(self, name: str) -> list[str]:
        """Return the counted columns of a table."""
        return [column for column in self._release.tables[name].codec.domain.names if column != ROW]

    def shares(self, row: dict[str, Any]) -> dict[str, Any]:
        """Return the conditional shares of a pair with another row, in per mille, and their 95 % intervals.

        Let the table count N(a, b) rows with value a of the attribute of another row and value b of the own
        column. The share of b given a is N(a, b) / sum_b' N(a, b').

        Shares are shown in place of counts, because bounds removed rows: in N, rows of parents with few rows
        weigh more. Given a, this hardly matters. Of a generated hospital, 92 to 99 % of the intervals of
        shares contained the private share. Of the intervals of counts with columns of rows above, 73 %
        contained the private count.

        Parameters
        ----------
        row : dict
            One of the `relationships`, of two attributes.
        """
        certainty, table = row["table"]
        axis = 0 if table.attributes[0] not in self._own.codec.domain.names else 1
        low, high = certainty.intervals(laplace=self._own.ledger.law == "laplace")
        counts = certainty.measured.grouping.join(table.counts)
        grids = {"estimate": counts, "low": np.minimum(low, counts), "high": np.maximum(high, counts)}
        among = np.maximum(grids["estimate"].sum(axis=1 - axis, keepdims=True), 1.0)
        shares = {part: 1000 * np.minimum(grid / among, 1.0) for part, grid in grids.items()}
        groups = certainty.measured.grouping.groups or tuple(map(np.arange, table.counts.shape))
        words = [
            np.array(self._words(name, group), object)
            for name, group in zip(table.attributes, groups, strict=True)
        ]
        if axis == 1:
            shares = {part: grid.T for part, grid in shares.items()}
            words.reverse()
        columns = tuple(self.called(table.attributes[axis_of_column]) for axis_of_column in (axis, 1 - axis))
        return most_frequent((columns[0], columns[1]), words, shares) | {"share": True}

    def _words(self, name: str, group: Codes) -> list[str]:
        """Return a label for each group of the codes of an attribute."""
        release, attribute = self._home(name)
        source = self._links.context.get(name) or self._links.previous.get(name)
        if isinstance(source, Context) and not source.table:
            return _numbers(group[source.groups], first=source.attribute != NUMBER_OF_ROWS)
        axis = release.codec.domain.names.index(attribute)
        merging, encoder = release.fitted.merging, release.codec.encoders[axis]
        merged = merging.groups[axis]
        codes = group[merged if source is None else source.groups[merged]]
        present, dense = np.unique(codes, return_inverse=True)
        labels = labels_of(encoder, dense, merging.shares[axis])
        words = dict(zip(present.tolist(), labels, strict=True))
        if isinstance(source, Previous):
            last = int(group[source.none])
            words[last] = f"{words[last]}, or no such row" if last in words else "no such row"
        return [words.get(group_code, "") for group_code in range(int(group.max()) + 1)]


def _numbers(groups: Integers, *, first: bool) -> list[str]:
    """Return a label for each group of numbers from 0, or places from the `first`; the last has no end.

    >>> _numbers(np.array([0, 0, 1, 1, 2]), first=False), _numbers(np.array([0, 1, 2]), first=True)
    (['up to 1', '2 to 3', '4 or more'], ['1', '2', '3 or more'])
    """
    words = []
    for group in range(int(groups.max()) + 1):
        numbers = np.flatnonzero(groups == group) + first
        low, high = (int(numbers.min()), int(numbers.max())) if len(numbers) else (0, 0)
        words.append(str(low) if low == high else f"{low} to {high}" if low else f"up to {high}")
    low = int(np.flatnonzero(groups == groups.max()).min()) + first
    return [*words[:-1], f"{low} or more"]
