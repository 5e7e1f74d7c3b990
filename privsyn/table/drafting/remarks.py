"""What the rows show about each column, as comments beside it in a draft. Not private."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from datetime import datetime

import numpy as np
import pandas as pd

from privsyn.errors import plural
from privsyn.marginals.domain import Floats
from privsyn.table.database.database import ROWS
from privsyn.table.drafting.candidates import code_for_missing, codes_beside_scale
from privsyn.table.drafting.drafted_table import IN_TIME, DraftedTable
from privsyn.table.drafting.keys import words
from privsyn.table.encoding.dtypes import family
from privsyn.table.encoding.steps import NUMBERS, decimals_of_step
from privsyn.table.encoding.time_format import POINT
from privsyn.table.inferred.columns import UNIQUE
from privsyn.table.inferred.number_bounds import COARSE_RATIO, FEW_NUMBERS, FEW_ROWS, outwards
from privsyn.table.inferred.time_formats import date_formats, mixed_date_formats
from privsyn.table.schema.columns import Categorical, Column, Identifier, Numerical, Ordinal
from privsyn.table.schema.schema import Schema, named_like_codes

LEAST_SAID = 0.001
"""Share that a draft says as a number; of a smaller one it says that it is smaller."""

OUTSIDE_BULK = 0.01
"""Share of the numbers at either end that is not the bulk of a column."""

WIDE_RATIO = 10
"""Bounds this many times as far apart as the ends of the bulk are worth a remark."""

FEWEST_CELLS = 30
"""Cells from which a remark is made: fewer show nothing."""

LEAST_NUMBERED = 500
"""Different whole numbers from which a column may number the rows."""

LEAST_ON_GRID = 0.9
"""Share of the numbers that lie on a grid for a remark about it."""

MOST_GAPS = 10
"""Gaps in a list of codes that are named."""

HOURS = 8
"""Least different hours, and minutes, of whole numbers that look like times of day."""

SPARSE = 0.1
"""Numbers of one length are codes if at most this share of the numbers between their ends occurs."""

MANY_CODES = 50
"""Least different numbers of two lengths that may be codes: as many amounts of groups would be round."""

PERSONS = (1.2, 100.0)
"""Rows for each value of a column that may name persons, on average; fewer if its name says persons."""

MANY_PERSONS = 200
"""Least different codes that may name persons, whatever the column is called."""

PERSON = re.compile(
    r"(?i)person|patient|customer|client|user|member|employee|student|pupil|subject|respondent|citizen|tenant|"
    r"household|insured|guest|rider|driver|passenger|ssn|e-?mail|^[a-z]?id$"
)
"""Names of columns that may name persons."""
WEIGHTS = re.compile(
    r"(?i)(?:^|[^a-z])(?P<survey>[a-z]*wgt|[a-z]*wt|[phr]?weights?\d*|pond[a-z]*|peso|poids|[a-z]*gewicht)"
    r"(?:[^a-z]|$)"
)
"""Names of columns that may have the weights of a survey; `weight` is that of a body, too."""

OF_BODIES = "weight", "weights", "peso", "poids", "gewicht", "wt"
"""Of these names, those of whole numbers are taken for the weights of bodies and goods."""

_COMMAS = r"[-+]?\d{1,3}(?:\.\d{3})*,\d+|[-+]?\d+,\d+"
_NUMBERED = re.compile(r"(\D*)(\d{1,9})")


def remarks_on(name: str, column: Column, cells: pd.Series, *, has_neighbours: bool = True) -> list[str]:
    """Return what the rows show about a column; each remark begins with READ, or was not read.

    >>> remarks_on("n", Categorical([1, 2, 4]), pd.Series([1, 2, 4]))
    ['READ: gaps, not listed are 3. If a codebook has these, list them.']
    >>> print(*remarks_on("met", Categorical(["Yes", "no", "yes"]), pd.Series(["Yes", "no", "yes"])))
    READ: SPELLED IN TWO WAYS, 'Yes' and 'yes'. Each stays a value: if they are one, correct the file.
    """
    present = cells.dropna()
    if isinstance(column, Identifier):
        repeats = not present.astype(str).is_unique  # cells of objects may be lists
        rows = f"{'READ: REPEATED. ' * repeats}If a person may have several rows, leave this line out and add"
        named = repeats or PERSON.search(name)
        persons = [f"{rows} --unit {name}: it protects persons, not rows."] if named else []
        return [*persons, *_of_missing_identifiers(cells)]
    if present.empty:
        return [
            "READ: EMPTY, no cell is given, so it is left out. If later rows have some: {kind: categorical}."
        ]
    of_text = [*_of_text(present)]
    if isinstance(column, Ordinal) and column.missing:
        of_text.append(
            "READ: WORDS, the texts under missing are no numbers or times of this column. Such cells come out"
            " empty. If a word is an answer, put it into a column of its own."
        )
    of_numbers = [*_of_numbers(name, column, present, has_neighbours)]
    codes = any("CODES" in remark for remark in of_numbers)
    dates = any("DATES" in remark for remark in of_text)
    of_names = () if dates else _of_names(name, column, present, remarked=codes)
    of_values = [*_of_lists(column, present), *_of_spellings(column, present)]
    return [*of_numbers, *of_values, *of_names, *of_text]


def _of_numbers(name: str, column: Column, present: pd.Series, has_neighbours: bool) -> Iterator[str]:
    """Yield whether few numbers make the bounds wide, and whether numbers are codes, times or on a grid."""
    if not isinstance(column, Numerical) or column.low is None or column.high is None:
        return
    numbers = np.asarray(present.astype(np.float64), np.float64)
    numbers = numbers[np.isfinite(numbers)]
    first, last = np.quantile(numbers, [OUTSIDE_BULK, 1 - OUTSIDE_BULK])
    if column.high - column.low > WIDE_RATIO * (last - first) > 0:
        low, high = outwards(float(first), float(last))
        yield (
            "WIDE: nearly all numbers lie within a tenth of these bounds, which costs accuracy. Choose"
            " narrower ones that anybody may know; numbers beyond are cut to them. READ: {low:"
            f" {low:g}, high: {high:g}}} {_cut(numbers, low, high)}. Where means or sums matter, leave the"
            " wide ones."
        )
    named = bool(column.integer and named_like_codes(name))
    if named:
        yield (
            "NAMED LIKE CODES, not amounts? Then {kind: categorical} finds the common ones under privacy (in"
            " a CSV, rare ones come out as the word other), and {kind: categorical, values: [ ]} lists"
            " public ones."
        )
    if _are_weights(name, column, smallest := float(numbers.min(initial=np.inf))):
        unit = 10.0 ** math.floor(math.log10(smallest))
        low = column.low if column.low > 0 else math.floor(smallest / unit) * unit
        yield (
            "READ: WEIGHTS? All are above 0. If a row stands for several units of the population:"
            f" {{kind: weight, low: {low:g}, high: {column.high:g}}}, with bounds that anybody may know."
        )
    if len(numbers) < FEWEST_CELLS:
        return
    if (code := code_for_missing(numbers)) is not None:
        marks = f"{{missing: ['{code:.0f}', '{code:.1f}']}}"
        position, end = ("the only number below 0", "raise low")
        if code > 0:
            position, end = "far above all others", "lower high"
        yield (
            f"READ: {code:.0f} is {position}. A code for missing? Then add {marks}, {end}, and draft again:"
            " else numbers between it and the others are drawn, too."
        )
    values = np.unique(numbers)
    is_clock = bool(column.integer) and values[0] >= 0 and values[-1] <= 2400 and (values % 100 < 60).all()
    is_clock = is_clock and min(len(np.unique(values // 100)), len(np.unique(values % 100))) >= HOURS
    if (most_common := _most_common_step(column, numbers)) is not None:
        step, share = most_common
        line = f"{{kind: numerical, step: {step:g}}}"
        yield f"READ: {math.floor(100 * share)} % are multiples of {step:,g}. If all should be: {line}."
    elif not named and is_clock:
        end = POINT if column.format is not None and column.format.endswith(POINT) else ""
        yield (
            "READ: TIMES OF DAY? They look like hours and minutes, such as 1330, and numbers between, such as"
            f' 1375, are drawn, too. Then {{kind: time, unit: m, format: "%-H%M{end}"}}; 2400 is missing'
            " there."
        )
    elif not named and _are_codes(column, values, len(numbers), has_neighbours):
        yield (
            f"READ: CODES? {plural(len(values), 'different number')}, in which the next one says"
            " little. {kind: categorical} treats them as codes."
        )


def _cut(numbers: Floats, low: float, high: float) -> str:
    """Return how many numbers bounds cut, and how far this moves the mean, in per cent, whatever the shares.

    Fewer than `FEW_ROWS` numbers have no figure of the mean: it would tell how large they are.

    >>> _cut(np.array([1.0] * 95 + [50.0] * 5), 0, 9)
    'cut 5.0% of the numbers, and the mean falls by 59.4%'
    >>> _cut(np.array([1.0] * 97 + [50.0] * 3), 0, 9)
    'cut 3.0% of the numbers, and the mean falls'
    """
    is_cut, mean = (numbers < low) | (numbers > high), float(numbers.mean())
    moved = float(numbers.clip(low, high).mean()) - mean
    text = f"cut {_percent(float(is_cut.mean()))} of the numbers"
    if not mean or not moved:
        return text
    text = f"{text}, and the mean {'rises' if moved > 0 else 'falls'}"
    return f"{text} by {_percent(abs(moved / mean))}" if is_cut.sum() >= FEW_ROWS else text


def _of_missing_identifiers(cells: pd.Series) -> Iterator[str]:
    """Yield how many cells are missing, which generated ones fill, and what keeps where they are."""
    if share := float(cells.isna().mean()):
        word = 1 if pd.api.types.is_numeric_dtype(cells.dtype) else "given"
        yield (
            f"READ: MISSING, {_percent(share)} of the cells; in synthetic rows none is. To keep which rows"
            f" have one, and no identifier: {{kind: categorical, values: [{word}], other: {word}}}."
        )


def _percent(share: float) -> str:
    """Return a share in per cent; of few rows, only that it is small."""
    return f"{share:.1%}" if share >= LEAST_SAID else f"less than {LEAST_SAID:.1%}"


def _are_weights(name: str, column: Numerical, smallest: float) -> bool:
    """Return whether a column is named like the weights of a survey, and no number is below or equal to 0.

    >>> [_are_weights(name, Numerical(1, 9, integer=True), 1.0) for name in ("HHWGT", "weight", "height")]
    [True, False, False]
    """
    match = WEIGHTS.search(name)
    if match is None or not 0 < smallest < math.inf:
        return False
    return not (column.integer and match["survey"].lower() in OF_BODIES)


def _are_codes(column: Numerical, values: Floats, rows: int, has_neighbours: bool) -> bool:
    """Return whether whole numbers above 0 look like codes: many of them, with gaps, without a common step.

    They have one length and leave out most of those between; or they explain other columns, but not those of
    rows with the next number, and have few gaps or two lengths.
    """
    between = float(values[-1] - values[0] + 1)
    few = len(values) <= FEW_NUMBERS or len(values) == between
    if not column.integer or values[0] < 1 or column.step is not None or few:
        return False
    shortest, longest = (len(str(int(end))) for end in values[[0, -1]])
    if shortest == longest >= 3 and len(values) <= SPARSE * min(between, rows):
        return True
    two_lengths = longest - shortest == 1 and len(values) >= MANY_CODES
    return not has_neighbours and (two_lengths or len(values) > SPARSE * between)


def _most_common_step(column: Numerical, numbers: Floats) -> tuple[float, float] | None:
    """Return the coarsest step of which nearly all numbers, but not all, are multiples; and their share."""
    used = column.step or (1.0 if column.integer else 10.0 ** -(column.decimals or 12))
    finest = (COARSE_RATIO if column.decimals is None else 1 + 1e-9) * used
    numbers = numbers[numbers != 0]  # a zero lies on every grid
    for lattice in NUMBERS if len(numbers) >= FEWEST_CELLS else ():
        if lattice.offset or lattice.step < finest or decimals_of_step(lattice.step) is None:
            continue
        share = float(lattice.holds(numbers, np.dtype(np.float64)).mean())
        if LEAST_ON_GRID <= share < 1 and np.ptp(numbers) > 10 * lattice.step:
            return lattice.step, share
    return None


def _of_lists(column: Column, present: pd.Series) -> Iterator[str]:
    """Yield how many values are not listed, and gaps in codes, as A3 by A2."""
    if not isinstance(column, Categorical) or column.values is None:
        return
    if unlisted := len(set(present.drop_duplicates().tolist()).difference(column.values)):
        yield (
            f"READ: RARE, {plural(unlisted, 'value')} of fewer than {FEW_ROWS} rows left out; such cells"
            " become missing. List what a codebook has."
        )
    if len(column.values) < 3 or any(isinstance(value, bool | float) for value in column.values):
        return
    texts = [str(value) for value in column.values]
    codes, scale = codes_beside_scale([value for value in column.values if isinstance(value, int)])
    if len(codes) + len(scale) == len(texts):
        kind = f"kind: numerical, low: {scale[0]}, high: {scale[-1]}, integer: true"
        marks = ", ".join(f"'{code}', '{code}.0'" for code in codes)  # beside missing cells it is 99.0
        yield (
            f"READ: {' and '.join(map(str, codes))} beside {scale[0]} to {scale[-1]}. A code for missing, and"
            f" a scale? Then write {{{kind}, missing: [{marks}]}}."
        )
    matches = [match for match in map(_NUMBERED.fullmatch, texts) if match]
    if len(matches) < len(texts) or len({match[1] for match in matches}) > 1:
        return
    numbers = {int(match[2]) for match in matches}
    gaps = [number for number in range(min(numbers), max(numbers)) if number not in numbers]
    if gaps and len(gaps) <= min(MOST_GAPS, len(numbers)) and len(numbers) == len(texts):
        width = len(matches[0][2]) if len({len(text) for text in texts}) == 1 else 0
        named = ", ".join(f"{matches[0][1]}{gap:0{width}d}" for gap in gaps)
        yield f"READ: gaps, not listed are {named}. If a codebook has these, list them."


def _of_spellings(column: Column, present: pd.Series) -> Iterator[str]:
    """Yield which values are spelled in two ways, and how many are.

    Those that are not listed are named only if each has `FEW_ROWS` rows.
    """
    if not isinstance(column, Categorical):
        return
    listed = column.values or ()
    rows = present.value_counts() if _has_texts(present) else pd.Series(dtype=np.int64)
    if len(rows) > UNIQUE * len(present):  # names and codes of rows
        rows = rows[:0]
    common = {*listed, *rows.index[rows >= FEW_ROWS]}
    spellings: dict[str, list[object]] = {}
    for value in dict.fromkeys([*listed, *rows.index.sort_values()]):
        spellings.setdefault(" ".join(str(value).casefold().split()), []).append(value)
    alike = [values for values in spellings.values() if len(values) > 1]
    if not alike:
        return
    named = [" and ".join(map(repr, values)) for values in alike if common.issuperset(values)]
    subject = plural(len(alike), "word") + " of few rows"
    if named:
        subject = named[0] + (f", and {len(alike) - 1} more" if len(alike) > 1 else "")
    in_blanks = any(len({" ".join(str(value).split()) for value in values}) < len(values) for values in alike)
    differ = " Some differ in blanks alone." if in_blanks else ""
    yield (
        f"READ: SPELLED IN TWO WAYS, {subject}.{differ} Each stays a value: if they are one, correct the"
        " file."
    )


def _of_names(name: str, column: Column, present: pd.Series, *, remarked: bool) -> Iterator[str]:
    """Yield whether the cells may name rows or persons, of which whole numbers `remarked` as codes may."""
    named = isinstance(column, Categorical) and column.values is None
    numbered = isinstance(column, Numerical) and column.integer and column.step is None
    if not (named or numbered) or len(present) < FEWEST_CELLS:
        return
    if family(present.dtype) == "object" and not _has_texts(present):
        return  # objects may have no hash
    rows = len(present) / present.nunique()
    is_person = PERSON.search(name) is not None
    coded = (remarked and present.nunique() >= MANY_PERSONS) or is_person
    fewest_rows = 1 / UNIQUE if is_person else PERSONS[0]
    if rows <= 1 / UNIQUE and (named or len(present) >= LEAST_NUMBERED):
        kind = "text of its own" if named else "number of its own"
        yield f"READ: UNIQUE, nearly every row has a {kind}. If it names the row: {{kind: identifier}}."
    elif fewest_rows < rows <= PERSONS[1] and (named or coded) and _short(present):
        yield (
            f"READ: REPEATED, {rows:.1f} rows for each value. If it names persons, leave this line out and"
            f" add --unit {name}."
        )


def remark_on_persons(name: str, column: Column, draft: Schema, frame: pd.DataFrame) -> Iterator[str]:
    """Yield whether whole numbers without a telling name may name persons with several rows, as in a panel.

    Another column tells the rows of each number apart, as a year does.
    """
    is_whole = isinstance(column, Numerical) and column.integer and column.step is None
    if not is_whole or any(map(IN_TIME.fullmatch, words(name))):
        return
    codes, numbers = pd.factorize(frame[name])
    rows = float((codes >= 0).sum() / max(len(numbers), 1))
    if not PERSONS[0] <= rows <= PERSONS[1]:
        return
    table = DraftedTable(ROWS, draft.without([name]), frame.drop(columns=name), {}, {}, codes)
    if (marker := table.telling_apart()) is not None:
        yield (
            f"READ: REPEATED, {rows:.1f} rows for each number, no two of them with the same {marker}. If it"
            f" names persons, leave this line out and add --unit {name}."
        )


def _of_text(present: pd.Series) -> Iterator[str]:
    """Yield whether texts are of a damaged file, numbers with a decimal comma, or dates to be explained."""
    if family(present.dtype) != "text":
        return
    if present.str.contains("\0", regex=False).any():
        yield "READ: NUL, some cell has this character. Is the file damaged?"
    if present.str.fullmatch(_COMMAS).all():
        thousands = " --thousands ." if present.str.contains(".", regex=False).any() else ""
        yield f"READ: NUMBERS WITH A DECIMAL COMMA? Draft again with: --decimal ,{thousands}"
    if len(formats := date_formats(present)) > 1:
        choices = " or ".join(f'{{kind: datetime, format: "{pattern}"}}' for pattern in formats)
        yield f"READ: DATES? It is not clear which number is the day. Write {choices}."
    elif not formats and (mixed := mixed_date_formats(present)):
        day = datetime(2020, 12, 31, 13, 30)
        parts = []
        for patterns, share in mixed:
            days = ["2020-12-31" if pattern is None else day.strftime(pattern) for pattern in patterns]
            parts.append(f"{100 * share:.0f} % {' or '.join(days)}")
        yield (
            f"READ: DATES IN SEVERAL FORMATS: {', '.join(parts)}. A column has one format: write all dates in"
            " it, or the others become missing."
        )


def _has_texts(present: pd.Series) -> bool:
    """Return whether all cells are texts; in pandas 2 these are objects."""
    is_object = family(present.dtype) == "object"
    return (is_object and all(isinstance(cell, str) for cell in present)) or family(present.dtype) == "text"


def _short(present: pd.Series) -> bool:
    """Return whether the cells could be keys: short, and of nearly the same length."""
    lengths = present.astype(str).str.len()
    return bool(lengths.max() <= 40 and lengths.std(ddof=0) <= 2)
