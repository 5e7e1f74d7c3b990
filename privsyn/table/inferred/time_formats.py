"""The formats in which cells of text are dates, times of day or lengths of time, for a draft. Not private.

What the directives of a format mean is in `encoding/time_format.py`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import datetime
from functools import partial
from zoneinfo import available_timezones

import numpy as np
import numpy.typing as npt
import pandas as pd

from privsyn.marginals.domain import Floats
from privsyn.table.encoding.dtypes import family
from privsyn.table.encoding.parsing import clock_seconds, moments, span_seconds
from privsyn.table.encoding.time_format import ISO_SPAN, SpanFormat, read_time, spell_time, zone_of

ISO = "%Y-%m-%d"

DATES = (
    *("%d.%m.%Y", "%d/%m/%Y", "%m/%d/%Y", "%d-%m-%Y", "%m-%d-%Y", "%Y/%m/%d", "%Y.%m.%d"),
    *("%d.%m.%y", "%d/%m/%y", "%m/%d/%y", "%d-%m-%y", "%m-%d-%y"),
    *("%d %b %Y", "%d-%b-%Y", "%d-%b-%y", "%b %d, %Y", "%d %B %Y", "%B %d, %Y"),
)
"""Formats of dates that are drafted besides ISO 8601, each also with a time of day."""

CLOCKS = ("", " %H:%M", " %H:%M:%S", " %I:%M %p", " %I:%M:%S %p")

DIGITS = ("%Y%m%d", "%d%m%Y", "%m%d%Y", "%Y%m%d%H%M", "%Y%m%d%H%M%S", "%y%m%d", "%d%m%y", "%m%d%y")
"""Formats of dates that are numbers."""

PLAUSIBLE = (1900, 2100)
"""Years between which numbers are taken for dates."""

LEAST_OF_DIGITS, MANY_DIGITS, SHORT_DIGITS = 5, 60, 6
"""Different numbers that must be dates, and how many of up to six digits if no name says so: numbers in a row
of so few digits may all be dates."""

MOST_DENSE = 0.5
"""Largest share of the numbers between the smallest and the largest that dates of up to six digits are, if no
name says so: 22635 to 22818 may all be dates, and are rather numbers of zones."""

NO_DATE = re.compile(r"9999[-./]?12[-./]?31.*|31[-./]?12[-./]?9999.*|12/31/9999.*|[0:./ -]+|[9:./ -]+")
"""Texts and numbers that stand for no date, or for an open end."""

DATED = re.compile(r"(?i)date|datum|day|(?:^|_)dt|dob|birth|tag(?:$|_)|when|time|geb|fecha|jour")
"""Names of columns of dates."""

LARGEST_UNREAD = 0.05
"""Largest share of the texts in a column of dates that a drafted format does not read."""

LEAST_OF_MIXED = 0.01
"""Least share of the texts that a format of several adds."""

FIRST_CELLS = 20

USUAL_ZONES = (
    *(
        "Europe/London",
        "Europe/Berlin",
        "Europe/Athens",
        "America/New_York",
        "America/Chicago",
        "America/Denver",
    ),
    *("America/Los_Angeles", "America/Sao_Paulo", "Australia/Sydney", "Pacific/Auckland"),
)
"""Zones that are tried first, of those with the same offsets."""

LONG = re.compile(
    r"(?i)dura|length|elapsed|lap|runtime|spent|split|pace|delay|wait|took|interval|remaining|dauer|laufzeit|durée"
)
"""Names of columns of lengths of time rather than times of day."""

_LIKE_A_DATE = re.compile(r"(?=.{6}).*(\d\D+\d|\d{6})", re.DOTALL)
"""What every text matches that a drafted format or ISO 8601 reads: two numbers at least, or six digits."""

_WRITTEN_BY_DEFAULT = re.compile(r"\d{4}-\d\d-\d\d( \d\d:\d\d:\d\d)?")
"""Texts that need no format, as they are written so without one."""

_ISO = re.compile(r"\d{4}-\d\d-\d\d([T ]\d\d:\d\d(:\d\d([.,]\d{1,9})?)?)?")
"""Texts that are read without a format."""

_TIMED = re.compile(
    r"(?P<sep>T|,? )\d\d?:\d\d(?::\d\d(?P<fraction>[.,]\d{1,6})?)?(?: ?[AaPp][Mm])?"
    r"(?P<zone> ?(?:Z|[A-Z]{3,4}|[+-]\d\d(?::?\d\d)?))?$"
)
"""The end of a text with a time of day: what comes before it, a part of a second, and a zone."""


def _may_be_dates(cells: Sequence[object]) -> int:
    """Return how many of the cells may be dates: no format need be tried on the others."""
    return sum(not isinstance(cell, str) or bool(_LIKE_A_DATE.match(cell.strip())) for cell in cells)


def date_formats(present: pd.Series) -> list[str | None]:
    """Return the formats that read most cells as dates, and nearly all; None if they need none.

    If it is unclear which number is the day, but one choice makes each date a first of a month, take it.

    >>> date_formats(pd.Series(["31.01.2020"])), date_formats(pd.Series(["01/02/2020"]))
    (['%d.%m.%Y'], ['%d/%m/%Y', '%m/%d/%Y'])
    >>> date_formats(pd.Series(["02/01/2020", "11/01/2020"])), date_formats(pd.Series(["May 7, 2020"]))
    (['%m/%d/%Y'], ['%b %-d, %Y'])
    >>> date_formats(pd.Series(["2024-03-25T12:40:50+02:00"])), date_formats(pd.Series(["3/25/2024 1:07 pm"]))
    (['%Y-%m-%dT%H:%M:%S+02:00'], ['%-m/%d/%Y %-I:%M %P'])
    >>> date_formats(pd.Series([20240131, 20240229, 20231130, 20240507, 20240816]))
    ['%Y%m%d']
    """
    try:
        codes, values = pd.factorize(present)
    except TypeError:
        return []  # cells that are lists
    cells, rows = pd.Index(values).tolist(), np.bincount(codes)
    kind = family(present.dtype)
    if kind in ("integer", "real"):
        return _digit_formats(cells, rows, present.name)
    if cells and not all(isinstance(cell, str) for cell in cells):
        return [] if np.isnat(moments(cells)).any() else [None]
    if 2 * _may_be_dates(cells[:FIRST_CELLS]) < len(cells[:FIRST_CELLS]):
        return []  # most texts are no dates, and the first show it
    if sum(cell.strip().isdigit() for cell in cells[:FIRST_CELLS]) > len(cells[:FIRST_CELLS]) / 2:
        return _digit_formats(cells, rows, present.name)
    by_default = all(map(_WRITTEN_BY_DEFAULT.fullmatch, cells)) and not are_midnights(present)
    if by_default and not np.isnat(moments(cells)).any():
        return [None]
    clocks = [*_clocks(cells)] if kind in ("text", "object") else [""]
    patterns = [day + clock for day in (ISO, *DATES) for clock in clocks]
    chosen = _chosen(_reading(patterns, cells, rows), several=len(cells) > 1)
    if not chosen and all(map(_ISO.fullmatch, cells)) and not np.isnat(moments(cells)).any():
        return [None]  # some with a time or a part of a second, and some without
    some = [cell.strip() for cell in cells[: 50 * FIRST_CELLS]]
    spellings = {"%p": "%P", **{f"%{unit}": f"%-{unit}" for unit in "IHdm"}}
    return [_best_variant(pattern, spellings, some, _is_written_back) for pattern in chosen]


def are_midnights(present: pd.Series) -> bool:
    """Return whether all texts end with the time 00:00:00: dates are written without one by default.

    >>> are_midnights(pd.Series(["2020-01-31 00:00:00"])), are_midnights(pd.Series(["2020-01-31"]))
    (True, False)
    """
    return not present.empty and bool(present.str.endswith(" 00:00:00").all())


def _reading(
    patterns: Sequence[str], cells: Sequence[str], rows: npt.NDArray[np.int64]
) -> dict[str, npt.NDArray[np.datetime64]]:
    """Return the patterns that read most cells, and nearly all, each with what it reads."""
    times: dict[str, npt.NDArray[np.datetime64]] = {}
    unread: dict[str, int] = {}
    for pattern in patterns:
        first = np.isnat(moments(cells[:FIRST_CELLS], pattern))
        if 2 * first.sum() > len(first) or (len(cells) <= FIRST_CELLS and first.any()):
            continue
        read = moments(cells, pattern)
        count = int(rows[np.isnat(read)].sum())
        is_repeated = any(np.array_equal(read, earlier, equal_nan=True) for earlier in times.values())
        if count <= LARGEST_UNREAD * rows.sum() and not is_repeated:
            times[pattern], unread[pattern] = read, count
    return {pattern: read for pattern, read in times.items() if unread[pattern] == min(unread.values())}


def _chosen(times: dict[str, npt.NDArray[np.datetime64]], *, several: bool) -> list[str]:
    """Return the patterns, or the only pattern that makes each of several dates a first of a month."""
    monthly = [
        pattern
        for pattern, read in times.items()
        if several and (read == read.astype("datetime64[M]"))[~np.isnat(read)].all()
    ]
    return monthly if len(monthly) == 1 else list(times)


def _digit_formats(cells: Sequence[object], rows: npt.NDArray[np.int64], name: object) -> list[str | None]:
    """Return the formats in which numbers, or texts of digits, are dates."""
    times = {}
    for pattern in DIGITS:
        length = len(spell_time(datetime(2021, 12, 23), pattern))
        named = length > SHORT_DIGITS or DATED.search(str(name))
        if len(cells) < (LEAST_OF_DIGITS if named else MANY_DIGITS) or not (named or _has_gaps(cells)):
            continue
        for some in (cells[:FIRST_CELLS], cells):  # most numbers are no dates, and the first show it
            read = moments(some, pattern)
            years = read.astype("datetime64[Y]").astype(np.int64) + 1970
            dates = ~np.isnat(read) & (years >= PLAUSIBLE[0]) & (years <= PLAUSIBLE[1])
            dates &= np.array([_has_digits(cell, length, pattern) for cell in some])
            present = np.array([NO_DATE.fullmatch(_digits(cell)) is None for cell in some])
            if rows[: len(some)][dates].sum() < (1 - LARGEST_UNREAD) * rows[: len(some)][present].sum():
                break
        else:
            times[pattern] = read
    return list(_chosen(times, several=True))


def _has_digits(cell: object, length: int, pattern: str) -> bool:
    """Return whether a number or text has the digits of a pattern; of 1022024 the first 0 is not written."""
    digits = len(_digits(cell))
    return digits == length or (not isinstance(cell, str) and digits == length - 1 and pattern[1] != "Y")


def _has_gaps(cells: Sequence[object]) -> bool:
    """Return whether many numbers between the smallest and the largest are missing, as between dates."""
    numbers = [int(digits) for digits in map(_digits, cells) if digits.isdecimal()]
    return not numbers or len(numbers) <= MOST_DENSE * (max(numbers) - min(numbers) + 1)


def _digits(cell: object) -> str:
    """Return a number, or a text of it, as text."""
    return str(cell).strip().removesuffix(".0")


def _clocks(cells: Sequence[str]) -> Iterator[str]:
    """Yield what may follow the date: a time of day, written with the signs and the zone of the cells."""
    ends = [end for end in map(_TIMED.search, map(str.strip, cells)) if end]
    yield ""
    if 2 * len(ends) < len(cells):
        return
    separators = [end["sep"] for end in ends[:FIRST_CELLS]]
    common = max(ends, key=lambda end: separators.count(end["sep"]))
    fraction = common["fraction"] or ""
    digits = "" if not fraction else f"{fraction[0]}{'%L' if len(fraction) == 4 else '%f'}"
    zones = {end["zone"] or "" for end in ends}
    blank = " " if all(zone.startswith(" ") for zone in zones) else ""
    if len(zones) == 1:
        zone = zones.pop()
    else:
        has_colon = any(":" in text or "Z" in text for text in zones)
        zone = f"{blank}{'%:z' if has_colon else '%z'}"
    for clock in CLOCKS[1:]:
        seconds = clock.replace("%S", f"%S{digits}")
        yield f"{common['sep']}{seconds[1:]}{zone}"
        yield f"{common['sep']}{seconds[1:].replace(' %p', '%p')}{zone}"


def _best_variant(
    pattern: str, spellings: Mapping[str, str], texts: Sequence[str], fits: Callable[[str, str], bool]
) -> str:
    """Return the variant of a pattern that most texts fit, with some directives spelled in the other way.

    Parameters
    ----------
    pattern : str
    spellings : mapping of str to str
        The other spelling of a directive, such as without leading zeros.
    texts : sequence of str
    fits : callable
        Says whether a text is written by a pattern.
    """
    variants = [pattern]
    for directive, spelling in spellings.items():
        if directive in pattern:
            variants += [variant.replace(directive, spelling) for variant in variants]
    best, count = pattern, -1
    for variant in variants:
        if count < len(texts) and (fitting := sum(fits(text, variant) for text in texts)) > count:
            best, count = variant, fitting
    return best


def _is_written_back(cell: str, pattern: str) -> bool:
    """Return whether a pattern writes the time that it reads from a text as this text."""
    try:
        at = read_time(cell, pattern)
    except ValueError:
        return False
    return spell_time(at, pattern) == cell


def fitting_zones(present: pd.Series, pattern: str) -> list[str]:
    """Return the zones whose clock has the offset of each cell, the usual ones first.

    >>> cells = pd.Series(["2024-01-31T12:00:00+01:00", "2024-07-31T12:00:00+02:00"])
    >>> fitting_zones(cells, "%Y-%m-%dT%H:%M:%S%:z")[0]
    'Europe/Berlin'
    """
    times = []
    for cell in present.drop_duplicates().tolist():
        try:
            times.append(read_time(cell, pattern))
        except ValueError:
            continue
    names = dict.fromkeys((*USUAL_ZONES, *sorted(available_timezones())))
    return [name for name in names if "/" in name and _fits(times, name)]


def _fits(times: Sequence[datetime], name: str) -> bool:
    """Return whether nearly all times have the offset of a zone."""
    there = zone_of(name)
    missed, bound = 0, LARGEST_UNREAD * len(times)
    for at in times:
        missed += at.astimezone(there).utcoffset() != at.utcoffset()
        if missed > bound:
            return False
    return True


_CLOCK = re.compile(
    r"(?P<hour>\d\d?)(?P<sign>:|(?<=\d\d)[.h])\d\d(?P<second>(?P=sign)\d\d)?(?P<am>(?P<blank> ?)[AaPp][Mm])?"
)


def clock_format_of(present: pd.Series) -> str | None:
    """Return the format in which nearly all texts are times of day; None if there is none.

    Hours and minutes may be a length of time, too: by the name of the column, from 24 hours on, or if there
    are seconds, no zero stands before a short hour, and none is above 12.

    >>> cells = ("08:37", "8:37 AM", "08.37", "1:23:45", "38:30")
    >>> [clock_format_of(pd.Series([cell])) for cell in cells]
    ['%H:%M', '%-I:%M %p', '%H.%M', None, None]
    """
    texts = distinct_texts(present)
    matches = [match for match in map(_CLOCK.fullmatch, texts) if match]
    if not matches or len(matches) < (1 - LARGEST_UNREAD) * len(texts):
        return None
    if not matches[0]["am"] and _is_length(matches, present.name):
        return None
    with_seconds = sum(bool(match["second"]) for match in matches) > len(matches) / 2
    usual = next((match for match in matches if bool(match["second"]) == with_seconds), matches[0])
    short = any(len(match["hour"]) == 1 for match in matches)
    hour = ("%-" if short else "%") + ("I" if usual["am"] else "H")
    am = f"{usual['blank']}{'%P' if usual['am'].islower() else '%p'}" if usual["am"] else ""
    sign = usual["sign"]
    pattern = f"{hour}{sign}%M{f'{sign}%S' if with_seconds else ''}{am}"
    return pattern if _reads_nearly_all(present, partial(clock_seconds, pattern=pattern)) else None


def _reads_nearly_all(present: pd.Series, read: Callable[[list[str]], Floats]) -> bool:
    """Return whether a format reads nearly all texts: it returns NaN for one that it does not read."""
    rows = counts_of_texts(present)
    is_read = ~np.isnan(read(rows.index.tolist()))
    return bool(rows.to_numpy()[is_read].sum() >= (1 - LARGEST_UNREAD) * len(present))


def _is_length(matches: Sequence[re.Match[str]], name: object) -> bool:
    """Return whether hours and minutes are rather a length of time."""
    hours = np.array([int(match["hour"]) for match in matches])
    if LONG.search(str(name)) or (hours > 24).mean() > LARGEST_UNREAD:
        return True
    short = any(len(match["hour"]) == 1 for match in matches)
    return short and all(match["second"] for match in matches) and int(hours.max()) <= 12


def counts_of_texts(present: pd.Series) -> pd.Series:
    """Return the rows of each text, without the blanks around it; the most frequent one is first.

    >>> counts_of_texts(pd.Series(["a", "b", " b", "c"])).to_dict()
    {'b': 2, 'a': 1, 'c': 1}
    """
    cells = present.value_counts(sort=False)
    rows = cells.groupby([cell.strip() for cell in cells.index], sort=False).sum()
    return rows.sort_values(ascending=False, kind="stable")


def distinct_texts(present: pd.Series) -> list[str]:
    """Return the different cells of a column of text, without the blanks; none if it has other cells."""
    if family(present.dtype) not in ("text", "object"):
        return []
    try:
        cells = present.drop_duplicates().tolist()
    except TypeError:
        return []  # cells that are lists
    return [cell.strip() for cell in cells] if all(isinstance(cell, str) for cell in cells) else []


_SPAN = re.compile(r"-?(?:(?P<days>\d+) days?(?P<comma>,?) )?(?P<first>\d+):\d\d(?P<second>:\d\d(?:\.\d+)?)?")
_UNITS = re.compile(r"(?P<number>\d+)(?P<unit> ?(?P<letter>[dhms])[a-z]*\.?)(?P<rest>,? ?)")


def span_format_of(present: pd.Series) -> str | None:
    """Return the format in which nearly all texts are lengths of time; None if there is none.

    >>> [span_format_of(pd.Series([cell])) for cell in ("1:23:45", "3 days 04:00:00", "57h 17m", "PT14M12S")]
    ['%-H:%M:%S', '%D days %H:%M:%S', '%Hh %Mm', 'ISO 8601']
    """
    texts = distinct_texts(present)
    for pattern in dict.fromkeys([*_spans(texts[:FIRST_CELLS]), ISO_SPAN]) if texts else ():
        if _reads_nearly_all(present, partial(span_seconds, form=SpanFormat(pattern))):
            return _best_variant(pattern, {f"%{unit}": f"%-{unit}" for unit in "SMH"}, texts, _is_spelled)
    return None


def _spans(texts: Sequence[str]) -> Iterator[str]:
    """Yield the patterns of some lengths of time."""
    largest = max((int(match["first"]) for match in map(_SPAN.fullmatch, texts) if match), default=0)
    for text in texts:
        if match := _SPAN.fullmatch(text):
            days = "" if match["days"] is None else f"%D days{match['comma']} "
            if match["second"]:
                yield f"{days}%H:%M:%S"
            else:
                yield f"{days}%H:%M" if days or largest <= 48 else "%M:%S"
        parts = list(_UNITS.finditer(text.removeprefix("-")))
        if len(parts) > 1 and "".join(part[0] for part in parts) == text.removeprefix("-"):
            letters = "".join(part["letter"] for part in parts).upper()
            if letters in "DHMS":
                yield "".join(f"%{part['letter'].upper()}{part['unit']}{part['rest']}" for part in parts)


def _is_spelled(text: str, pattern: str) -> bool:
    """Return whether a pattern writes the length that it reads from a text as this text."""
    form = SpanFormat(pattern)
    seconds = form.seconds(text)
    return not np.isnan(seconds) and form.spell(seconds) == text


def mixed_date_formats(present: pd.Series) -> list[tuple[list[str | None], float]]:
    """Return formats that together read nearly all texts as dates, with the share that each adds; or none.

    Formats that add the same texts, as those that begin with the day or the month may do, stand together.

    >>> mixed_date_formats(pd.Series(["31.01.2020", "13.02.2020", "2020-01-31", "02/29/2020"]))
    [(['%d.%m.%Y'], 0.5), ([None], 0.25), (['%m/%d/%Y'], 0.25)]
    >>> mixed_date_formats(pd.Series(["31.01.2020", "in May", "2020-01-31"]))
    []
    """
    counts = present.value_counts(sort=False)
    cells, rows = counts.index.tolist(), counts.to_numpy()
    first = cells[:FIRST_CELLS]
    if 2 * _may_be_dates(first) < len(first):
        return []
    patterns = [None, *(day + clock for day in DATES for clock in CLOCKS)]
    some = {pattern: ~np.isnat(moments(first, pattern)) for pattern in patterns}
    if 2 * np.logical_or.reduce([*some.values()]).sum() < len(first):
        return []  # most texts are no dates, and the first show it
    read = {
        pattern: ~np.isnat(moments(cells, pattern))
        for pattern in patterns
        if some[pattern].any() or len(cells) > FIRST_CELLS
    }
    unread, formats = np.ones(len(cells), np.bool_), []
    while rows[unread].sum() > LARGEST_UNREAD * rows.sum():
        adds = {pattern: int(rows[unread & reads].sum()) for pattern, reads in read.items()}
        added = max(adds.values(), default=0)
        if added < LEAST_OF_MIXED * rows.sum():
            return []
        best = [pattern for pattern, add in adds.items() if add == added]
        best = [pattern for pattern in best if np.array_equal(read[pattern] & unread, read[best[0]] & unread)]
        formats.append((best, added / int(rows.sum())))
        unread &= ~read[best[0]]
    return formats if len(formats) > 1 else []
