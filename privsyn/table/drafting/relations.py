"""Constraints that all rows keep, as proposals to the owner: copies, order, sums, look-ups, structural gaps.

Not private: each proposal was read from the rows.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from hashlib import sha256
from itertools import chain, pairwise, product
from typing import Any

import numpy as np
import pandas as pd

from privsyn.errors import InputError
from privsyn.marginals.domain import Floats
from privsyn.table.drafting.candidates import (
    HEAD_ROWS,
    RARE_BY_CHANCE,
    Cells,
    Drivers,
    LookUps,
    Proposal,
    code_for_missing,
    driver,
    extreme_rows,
    possible_sums,
    sum_of_many,
)
from privsyn.table.drafting.dependences import BOTH_WAYS, MOST_KEYS, dependences, in_order, rule_of
from privsyn.table.drafting.keys import words
from privsyn.table.encoding.steps import DAY
from privsyn.table.enforcement.determined import Determined
from privsyn.table.enforcement.repair import check_constraints
from privsyn.table.enforcement.within import Within
from privsyn.table.inferred.number_bounds import FEW_NUMBERS, FEW_ROWS
from privsyn.table.schema.columns import Datetime, Numerical
from privsyn.table.schema.constraint import computed_by, constraint_to_plain
from privsyn.table.schema.rules import ROUNDING
from privsyn.table.schema.schema import Schema
from privsyn.table.schema.yaml_file import constraint_lines

FEWEST_ROWS = 30
"""Rows in which a proposal must hold, and be put to the test: fewer show nothing."""

MOST_BY_CHANCE = 0.95
"""An order that holds for more pairs of rows than this would hold by chance."""

MOST_SUMMED = 200
"""Most columns of numbers among which sums of three and more are looked for."""

NEAR_SUM = 0.01
"""Standard deviations of each column by which cells that are rounded one by one may miss their sum."""


def propose(schema: Schema, frame: pd.DataFrame) -> tuple[Schema, list[Proposal]]:
    """Return constraints that (nearly) all rows keep, with how many, and that do not contradict each other.

    The schema that is returned has no constraints. The bounds of a sum in it follow from those of its parts.

    Examples
    --------
    >>> from privsyn.table.drafting.draft import draft_schema
    >>> start = np.arange(300) % 30
    >>> stays = pd.DataFrame({"start": start, "end": start + np.arange(300) % 7, "again": start})
    >>> [(proposal.plain, proposal.rows) for proposal in propose(draft_schema(stays), stays)[1]]
    [('again == start', 300), ('start <= end', 300)]
    """
    cells = []
    for name, column in schema.coded.items():
        cells_of_column = Cells(name, column, column.as_read(frame[name]))
        with suppress(TypeError, NotImplementedError):  # equal cells cannot be found if they are lists
            if "`" not in name and not cells_of_column.missing.all() and cells_of_column.coded:
                cells.append(cells_of_column)
    copies: dict[str, Any] = dict(_copies(cells))
    rest = [column for column in cells if column.name not in copies]
    sums = dict(_sums(rest)) | {name: Proposal(plain) for name, plain in _dates_from_days(rest)}
    free = [column for column in rest if column.name not in sums]
    looked_up = {name: [proposal] for name, proposal in _look_ups(free)}
    looked_up |= dependences(free, {column.name for column in free} - set(looked_up))
    # What is looked up is missing with its key. Classes of numbers are counted, and may be missing by a rule.
    in_lists = {
        name for name, rules in looked_up.items() if not all(isinstance(rule.plain, str) for rule in rules)
    }
    numbers: Mapping[str, Any] = schema.columns
    open_sums = {name: replace(numbers[name], low=None, high=None) for name in sums}
    proposals = [*map(Proposal, copies.values()), *sums.values()]
    proposals += chain.from_iterable(looked_up.values())
    without_codes = [
        column for column in free if column.numbers is None or code_for_missing(column.numbers) is None
    ]
    proposals += [Proposal(plain) for plain in _orders(without_codes)]
    # A column whose rare values alone are missing, as the draft does not list them, has no gap.
    with_gaps = [column for column in free if column.name not in in_lists and frame[column.name].isna().any()]
    proposals += _gaps(with_gaps, rest)
    open_schema = replace(schema, columns={**schema.columns, **open_sums})
    filled_schema, accepted = _accepted(open_schema, proposals, cells)
    columns: dict[str, Any] = dict(schema.columns)
    columns |= {name: filled_schema.columns[name] for name in sums if filled_schema.columns[name].is_public}
    # A look-up whose keys leave out rare values needs columns that may be missing: they are, in such rows. A
    # column without missing cells would have its first value in their place.
    texts = {column.name: column for column in cells if not column.column.is_public}
    for look_up in (proposal.constraint for proposal in accepted):
        if not isinstance(look_up, Determined | Within) or len(look_up.columns) != 2:
            continue
        keys = {row[0] for row in look_up.rows}
        of_keys = texts.get(look_up.columns[0])
        if of_keys is not None and not keys.issuperset(of_keys.coded[1]):
            columns |= {name: replace(numbers[name], nullable=True) for name in look_up.columns}
    return replace(schema, columns=columns), accepted


def _accepted(schema: Schema, proposals: list[Proposal], cells: list[Cells]) -> tuple[Schema, list[Proposal]]:
    """Return the schema with the proposals that it can have together; and these, with the rows of each."""
    accepted: list[Proposal] = []
    for proposal in proposals:
        rows = proposal.rows
        with suppress(InputError):
            extended = replace(schema, constraints=[*schema.constraints, proposal.constraint])
            # Any row of the table keeps all of them, unless some rows break one.
            row_known = not any(candidate.broken for candidate in (*accepted, proposal))
            check_constraints(extended.coded, extended.constraints, row_known=row_known)
            new = extended.constraints[len(schema.constraints) :]
            names = {name for constraint in new for name in constraint.columns}
            schema = extended
            if rows is None:
                gaps = np.array([column.missing for column in cells if column.name in names])
                rows = int((~gaps).all(axis=0).sum())
            accepted.append(replace(proposal, rows=rows))
    return schema, accepted


def measured(schema: Schema, proposals: Sequence[Proposal]) -> set[str]:
    """Return the columns that are computed, or may be missing and are measured from complete ones."""
    constraints = replace(schema, constraints=[proposal.constraint for proposal in proposals]).constraints
    pairs = [pair[:2] for constraint in constraints for pair in constraint.orders()]
    mixed = [pair for pair in pairs if len({schema.coded[name].nullable for name in pair}) > 1]
    return {*computed_by(constraints), *(n for pair in mixed for n in pair if schema.coded[n].nullable)}


def _copies(cells: list[Cells]) -> Iterator[tuple[str, str]]:
    """Yield each column that is equal to an earlier one of its kind, and the constraint."""
    first: dict[Any, Cells] = {}
    for copy in cells:
        codes, values = copy.coded
        if len(values) < 2:
            continue
        original = first.setdefault(
            (type(copy.column), tuple(values), sha256(codes.tobytes()).digest()), copy
        )
        if original is not copy:
            yield copy.name, f"{copy.quoted} == {original.quoted}"


def _dates_from_days(cells: list[Cells]) -> Iterator[tuple[str, str]]:
    """Yield each date that comes a number of days after another one in all rows, and the constraint.

    Of three dates in a row, no one follows from one that follows itself.
    """
    dates = [column for column in cells if isinstance(column.column, Datetime) and column.column.unit == "D"]
    numbers = [column for column in cells if isinstance(column.column, Numerical) and column.column.integer]
    made: set[str] = set()
    for start, end, days in product(dates, dates, numbers):
        starts, ends, number = start.numbers, end.numbers, days.numbers
        if start is end or made & {start.name, end.name, days.name}:
            continue
        if starts is None or ends is None or number is None:
            continue
        follows = all(
            np.array_equal((ends[rows] - starts[rows]) / DAY, number[rows], equal_nan=True)
            for rows in (slice(HEAD_ROWS), slice(None))
        )
        present = number[np.isfinite(number)]
        if follows and len(present) >= FEWEST_ROWS and (present != present[0]).any():
            made |= {end.name, days.name}
            yield end.name, f"{end.quoted} == {start.quoted} + {days.quoted}"


def _orders(cells: list[Cells]) -> Iterator[str]:
    """Yield chains of columns of dates, or of numbers, that increase in every row.

    Numbers are compared if both are amounts, or share a scale or a word of their names: the code of a job may
    be below that of a person in every row, and means nothing.
    """
    for kind in (Datetime, Numerical):
        ordered = [column for column in cells if type(column.column) is kind]
        ordered.sort(key=lambda column: float(np.nanmean(column.numbers)))  # type: ignore[arg-type]
        below: dict[tuple[str, str], str] = {}
        numbers = [column.numbers for column in ordered if column.numbers is not None]
        heads: Floats = np.array([of_column[:HEAD_ROWS] for of_column in numbers])
        lows, highs = np.array(list(map(np.nanmin, numbers))), np.array(list(map(np.nanmax, numbers)))
        # Either may be the lower one, whatever their means: those are of other rows, if cells are missing. It
        # is not above the other one in the first rows, and the ranges overlap.
        for k, low in enumerate(ordered):
            above = (heads[k] > heads).any(axis=1) | (highs[k] <= lows)
            above[k] = True
            for high in (ordered[upper] for upper in np.flatnonzero(~above)):
                if sign := sign_between(low.numbers, high.numbers):
                    below[low.name, high.name] = sign
        if kind is Numerical:
            scales = {column.name: scale_of_codes(column.numbers) for column in ordered}
            below = {
                (low, high): sign
                for (low, high), sign in below.items()
                if scales[low] == scales[high] or not {*words(low)}.isdisjoint(words(high))
            }
        names = {column.name: column.quoted for column in ordered}
        used: set[tuple[str, str]] = set()
        for first, second in below:
            between = any((first, name) in below and (name, second) in below for name in names)
            if between or (first, second) in used:
                continue
            chain, sign = [first, second], below[first, second]
            while True:
                following = [b for a, b in below if a == chain[-1] and below[a, b] == sign]
                if not following:
                    break
                chain.append(following[0])
            used |= set(pairwise(chain))
            yield f" {sign} ".join(names[name] for name in chain)


def scale_of_codes(numbers: Floats | None) -> tuple[float, float] | None:
    """Return the ends of a scale of a few whole numbers, which may be codes or classes; None of amounts.

    >>> scale_of_codes(np.array([1.0, 4.0, np.nan])), scale_of_codes(np.array([1.0, 40.0]))
    ((1.0, 4.0), None)
    """
    if numbers is None or not np.isfinite(numbers).any():
        return None
    low, high = float(np.nanmin(numbers)), float(np.nanmax(numbers))
    return (low, high) if high - low < FEW_NUMBERS and not (numbers % 1 > 0).any() else None


def sign_between(low: Floats | None, high: Floats | None) -> str:
    """Return the sign if numbers are below others in every row, not by chance; else an empty text.

    Rows with the least of the lower numbers put nothing to the test: of most amounts, nothing is returned.

    >>> bought = np.arange(2000) % 50 + 1.0
    >>> sign_between(np.where(np.arange(2000) % 10, 0.0, bought), bought)
    '<='
    >>> sign_between(np.where(np.arange(2000) % 100, 0.0, bought), bought)  # 20 rows with more than 0
    ''
    """
    if low is None or high is None or (low > high).any():
        return ""
    complete = np.isfinite(low) & np.isfinite(high)
    low, high = low[complete], high[complete]
    if len(low) < FEWEST_ROWS or (low == high).all():
        return ""
    tested = low[low > low.min()]
    if len(tested) < FEWEST_ROWS:
        return ""
    by_chance = 1 - np.searchsorted(np.sort(high), tested).mean() / len(high)
    if by_chance > MOST_BY_CHANCE or by_chance ** len(tested) > RARE_BY_CHANCE:
        return ""
    return "<" if (low < high).all() else "<="


def _sums(cells: list[Cells]) -> Iterator[tuple[str, Proposal]]:
    """Yield each column of numbers that is the sum of others, and the constraint; sums of two come first."""
    listed = [column for column in cells if isinstance(column.column, Numerical) and len(column.coded[1]) > 2]
    if len(listed) < 3 or len(listed[0].raw) < FEWEST_ROWS:
        return
    numbers: Floats = np.array([column.numbers for column in listed])
    totals: set[int] = set()
    parts: set[int] = set()
    for i, j, k in possible_sums(numbers, ROUNDING):
        if k in totals | parts or {i, j} & totals:
            continue
        if (proposal := _sum_of(listed, k, (i, j))) is not None:
            totals.add(k)
            parts |= {i, j}
            yield listed[k].name, proposal
    # A part of a sum may be the sum of other columns, but no total is.
    extremes = extreme_rows(numbers)
    for k in range(len(listed) if len(listed) <= MOST_SUMMED else 0):
        terms = () if k in totals else sum_of_many(numbers, k, sorted(totals), extremes)
        if terms and (proposal := _sum_of(listed, k, terms)) is not None:
            totals.add(k)
            parts |= {*terms}
            yield listed[k].name, proposal


def _sum_of(listed: list[Cells], total: int, parts: Sequence[int]) -> Proposal | None:
    """Return the constraint that parts add up to a total, if they do up to rounding, and each of them varies.

    Some rows may miss it by far less than each column varies: their cells are rounded one by one.
    """
    numbers: Floats = np.array([listed[index].numbers for index in (*parts, total)])
    gone = np.isnan(numbers)
    numbers = numbers[:, ~gone.any(axis=0)]
    if numbers.shape[1] < FEWEST_ROWS or (gone != gone[0]).any():
        return None
    error = np.abs(numbers[:-1].sum(axis=0) - numbers[-1])
    if any(len(np.unique(row)) <= 2 for row in numbers) or error.max() > NEAR_SUM * numbers.std(axis=1).min():
        return None
    off = int((error > ROUNDING * np.abs(numbers[:-1]).sum(axis=0)).sum())  # as `Total.tolerance`
    terms = " + ".join(listed[part].quoted for part in parts)
    note = f"by at most {error.max():.2g}" if off else ""
    return Proposal(f"{listed[total].quoted} == {terms}", broken=off, note=note)


def _look_ups(cells: list[Cells]) -> Iterator[tuple[str, Proposal]]:
    """Yield each listed column that another listed column determines, and the constraint."""
    listed = [column for column in cells if column.column.listed]
    listed = [column for column in listed if 2 <= len(column.coded[1]) <= MOST_KEYS]
    order = sorted(listed, key=lambda column: len(column.coded[1]))
    sizes = np.array([len(column.coded[1]) for column in order])
    look_ups = LookUps([column.coded[0] for column in order])
    for index, value_column in enumerate(order):
        codes, values = value_column.coded
        ones = look_ups.deciding(index)
        twins = ones[(sizes[ones] == sizes[index]) & (ones < index)]  # of two twins, one is computed
        for key_column in (order[k] for k in [*ones[sizes[ones] > sizes[index]], *twins]):
            keys, names = key_column.coded
            if len(keys) < FEWEST_ROWS * len(names) / 5:
                continue
            code_of_key = np.zeros(len(names) + 1, np.int64)  # the last is that of -1: of missing cells
            code_of_key[keys] = codes
            if np.array_equal(code_of_key[keys], codes):  # each key has one value
                rows = [(name, values[code_of_key[k]]) for k, name in enumerate(names)]
                with suppress(InputError):
                    look_up = rule_of(key_column, value_column, in_order(rows))
                    plain = constraint_to_plain(look_up, (key_column.name, value_column.name))
                    yield (
                        value_column.name,
                        Proposal(plain, note=BOTH_WAYS if len(names) == len(values) else ""),
                    )
                    break


def _gaps(cells: list[Cells], drivers: list[Cells]) -> Iterator[Proposal]:
    """Yield when each column is missing, as far as another column says so, and in how many rows."""
    patterns: dict[bytes, Cells] = {}
    sparse = [column for column in cells if column.missing.any() and len(column.missing) >= FEWEST_ROWS]
    may_decide = [d for d in drivers if sparse and (isinstance(d.column, Numerical) or d.column.listed)]
    deciding = Drivers([(d.quoted, d.coded, d.numbers) for d in may_decide])
    for column in sparse:
        says, rows = driver(column.missing, deciding.candidates_for(column.missing)) or ("", 0)
        word, _, condition = says.partition(" ")
        pattern = np.packbits(column.missing).tobytes()
        if word == "iff":
            yield Proposal(f"{column.quoted} is missing iff {condition}", rows)
        elif pattern in patterns and column.missing.sum() >= FEW_ROWS:
            text = f"{column.quoted} is missing iff {patterns[pattern].quoted} is missing"
            yield Proposal(text, int(column.missing.sum()))
        elif word == "if" and rows >= FEWEST_ROWS:
            yield Proposal(f"{condition} implies {column.quoted} is missing", rows)
        patterns.setdefault(pattern, column)


def proposal_lines(proposals: Sequence[Proposal], stem: str | None) -> tuple[str, dict[str, str]]:
    """Return the lines of proposals in a draft, each behind a #, and the text of each file of a look-up.

    Look-ups of many keys are files, whose names begin with `stem`; without one, none is written.
    """
    lines, files = "", dict[str, str]()
    long: dict[str, list[tuple[Proposal, Determined | Within]]] = {}
    for proposal in proposals:
        if look_up := long_look_up(proposal):
            long.setdefault(look_up.columns[0], []).append((proposal, look_up))
            continue
        # A text may be wrapped: the remarks stand behind its last line.
        lines_of_proposal = constraint_lines([proposal.plain])
        last = -1 if isinstance(proposal.plain, str) else 0
        lines_of_proposal[last] += f"  # READ: {'; '.join(proposal.remarks)}"
        lines += "".join(f"#{line}\n" for line in lines_of_proposal)
    for by, look_ups in long.items():
        rules = [rule for _, rule in look_ups]
        mappings = {rule.columns[1]: dict(rule.rows) for rule in rules}
        summary = f"{', '.join(mappings)} from {len(rules[0].rows):,} values of {by}"
        if stem is None:
            lines += f"## READ: {summary}. With -o FILE this look-up is written beside the draft.\n"
            continue
        name = f"{stem}.{re.sub(r'[^A-Za-z0-9_-]', '_', by)}.csv"
        remarks = dict.fromkeys(remark for proposal, _ in look_ups for remark in proposal.remarks)
        lines += (
            "## A look-up is published. Take the official table; none if its keys are persons or firms.\n"
            f"## READ: {summary}; {'; '.join(remarks)}\n"
        )
        outer = [rule.columns[1] for rule in rules if isinstance(rule, Within)]
        plain: list[Any] = [{"within": {by: column}, "table": name} for column in outer]
        if gives := [column for column in mappings if column not in outer]:
            plain.append({"lookup": name, "by": [by], "gives": gives})
        lines += "".join(f"#{line}\n" for line in constraint_lines(plain))
        # The keys that all columns have.
        files[name] = pd.DataFrame(mappings).dropna().rename_axis(by).to_csv(lineterminator="\n")
    return lines, files


def long_look_up(proposal: Proposal) -> Determined | Within | None:
    """Return the rule of a proposal if its rows are too many for the draft."""
    rule = proposal.constraint
    return rule if isinstance(rule, Determined | Within) and len(rule.rows) > MOST_KEYS else None
