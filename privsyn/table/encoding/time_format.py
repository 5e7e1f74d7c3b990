"""How dates, times of day and lengths of time are written in text, as patterns with directives.

Dates and times of day have the directives of `datetime.strftime`, and those of `OWN`. Lengths of time have
those of `SpanFormat`.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta, timezone, tzinfo
from functools import cache
from zoneinfo import ZoneInfo

import numpy as np

from privsyn.errors import InputError, safe_repr

OWN = {"%-d": "%d", "%-m": "%m", "%-H": "%H", "%-I": "%I", "%P": "%p", "%:z": "%z", "%L": "%f"}
"""Directives that `strftime` lacks on some platforms, and the standard directives that read them: numbers
without leading zeros, am and pm in small letters, an offset with a colon, and milliseconds."""

POINT = ".0"
"""What programs write behind whole numbers, where a cell of the column is missing."""

VARYING = 99
WIDTHS = {f"%{letter}": 2 for letter in "dmyHIMS"} | {"%Y": 4, "%j": 3, "%L": 3, "%f": VARYING}
WIDTHS |= {f"%-{letter}": VARYING for letter in "dmHI"}
"""The digits that each directive writes."""

WITHOUT_DIGITS = ("%a", "%A", "%b", "%B", "%p", "%P", "%%")
_PARTS, _DIGITS = re.compile(r"%(?:-?[A-Za-z]|:z|%)|.", re.DOTALL), re.compile(r"[0-9]+")
_DIRECTIVE = re.compile(r"%(?:%|-[dmHI]|P|:z|L|Y)")
_OFFSET = re.compile(r"([+-])(\d\d):(\d\d)")


@cache
def standard(pattern: str) -> str:
    """Return the pattern of `strptime` that reads what a pattern writes.

    >>> standard("%-d.%-m.%Y %-H:%M%:z")
    '%d.%m.%Y %H:%M%z'
    """
    return _DIRECTIVE.sub(lambda directive: OWN.get(directive[0], directive[0]), pattern)


def read_time(text: str, pattern: str) -> datetime:
    """Return the time in a text; raise `ValueError` if it is written in another way.

    `strptime` takes one digit in place of two. Where numbers touch, nobody can tell which lacks one.

    >>> read_time("1.2.2020", "%d.%m.%Y").month, read_time("0030", "%H%M").minute
    (2, 30)
    >>> read_time("30", "%H%M")
    Traceback (most recent call last):
    ValueError: the text lacks digits of '%H%M'
    """
    digits = _DIGITS.findall(text)
    for group, width in zip(digits, _widths(pattern), strict=False):
        if width is not None and len(group) != width:
            raise ValueError(f"the text lacks digits of {pattern!r}")
    return datetime.strptime(text.strip(), standard(pattern))


@cache
def _widths(pattern: str) -> tuple[int | None, ...]:
    """Return the number of digits of each group of them; None where it may vary, as of one number alone.

    >>> _widths("%Y%m%d %H:%M"), _widths("%-d%m"), _widths("%b %d")
    ((8, None, None), (None,), (None,))
    """
    widths, run = list[int | None](), list[int]()
    for match in _PARTS.finditer(f"{pattern} "):
        width = WIDTHS.get(match[0], int(match[0].isdigit()))
        if width:
            run.append(width)
            continue
        if run:
            widths.append(sum(run) if len(run) > 1 and VARYING not in run else None)
            run.clear()
        if match[0].startswith("%") and match[0] not in WITHOUT_DIGITS:
            break
    return tuple(widths)


def spell_time(at: date, pattern: str) -> str:
    """Return a time as text; as a number, such as 7.0 for 0:07, if the pattern ends as numbers do.

    >>> spell_time(datetime(2024, 3, 5, 14, 7), "%-m/%-d/%Y %-I:%M%P")
    '3/5/2024 2:07pm'
    >>> spell_time(datetime(2024, 3, 5, 0, 7), "%-H%M.0"), spell_time(datetime(2024, 3, 5, 0, 7), "%-H%M")
    ('7.0', '007')
    >>> spell_time(datetime(2024, 3, 5, 14, 7, tzinfo=zone_of("Asia/Kolkata")), "%H:%M%:z")
    '14:07+05:30'
    >>> spell_time(date(98, 2, 1), "%d.%m.%Y")
    '01.02.0098'
    """

    def spell(match: re.Match[str]) -> str:
        directive = match[0]
        if directive == "%%":
            return directive
        if directive == "%Y":  # `strftime` of Linux writes the year 98 with two digits
            return f"{at.year:04d}"
        text = at.strftime(OWN[directive])
        if directive == "%P":
            return text.lower()
        if directive == "%:z":
            return f"{text[:3]}:{text[3:5]}" if text else ""
        return text[:3] if directive == "%L" else str(int(text))

    text = at.strftime(_DIRECTIVE.sub(spell, pattern))
    digits = text.removesuffix(POINT)
    is_number = pattern.startswith("%-") and pattern.endswith(POINT) and digits.isdigit()
    return f"{int(digits)}{POINT}" if is_number else text


def has_offset(pattern: str | None) -> bool:
    """Return whether a pattern writes the offset of a zone."""
    return pattern is not None and "%z" in standard(pattern).replace("%%", "")


@cache
def is_of_digits(pattern: str | None) -> bool:
    """Return whether a pattern writes dates as digits alone, as 20240131, or as such numbers, as 517.0."""
    return pattern is not None and _digits(pattern).isdigit()


def _digits(pattern: str) -> str:
    """Return an example of what a pattern writes, without the end of a number."""
    return spell_time(datetime(2021, 12, 23, 13, 34, 45), pattern).removesuffix(POINT)


def with_digits(cell: object, pattern: str | None) -> object:
    """Return a date or time that a program took for a number as the digits of a pattern; others as they are.

    A text lacks at most its first zero, and no year begins with one. A text that ends as numbers do may lack
    all zeros, as a number may.

    >>> with_digits(20240131.0, "%Y%m%d"), with_digits(1022024, "%d%m%Y"), with_digits(2.5, "%d.%m.%Y")
    ('20240131', '01022024', 2.5)
    >>> with_digits("10398", "%m%d%y"), with_digits("930", "%H%M"), with_digits(" ", "%H%M")
    ('010398', '0930', '')
    >>> with_digits("30.0", "%H%M"), with_digits("30", "%H%M"), with_digits("517.0", "%-H%M.0")
    ('0030', '30', '0517.0')
    """
    if pattern is None or not is_of_digits(pattern) or isinstance(cell, bool):
        return cell
    digits, end = len(_digits(pattern)), POINT if pattern.endswith(POINT) else ""
    if isinstance(cell, str):
        text = cell.strip().removesuffix(POINT)
        if not (text.isascii() and text.isdigit()):
            return text
        lacks_zero = len(text) == digits - 1 and not pattern.startswith("%Y")
        lacks_zeros = lacks_zero or cell.strip().endswith(POINT)
        return f"{text.zfill(digits) if lacks_zeros else text}{end}"
    if not isinstance(cell, int | float | np.number):
        return cell
    if cell != int(cell):
        raise ValueError
    return f"{int(cell):0{digits}d}{end}"


@cache
def zone_of(name: str) -> tzinfo:
    """Return a time zone by its name or its offset.

    >>> zone_of("+02:00").utcoffset(None), zone_of("Nowhere")
    Traceback (most recent call last):
    privsyn.errors.InputError: zone 'Nowhere' is no time zone: write it such as Europe/Berlin, UTC or +02:00
    """
    if match := _OFFSET.fullmatch(name):
        offset = timedelta(hours=int(match[2]), minutes=int(match[3]))
        if offset < timedelta(days=1):
            return timezone(-offset if match[1] == "-" else offset)
    try:
        return ZoneInfo(name)
    except Exception:  # files of zones may be missing or damaged in many ways
        raise InputError(
            f"zone {safe_repr(name)} is no time zone: write it such as Europe/Berlin, UTC or +02:00"
        ) from None


def on_the_clock(at: datetime, zone: str | None) -> datetime:
    """Return the local time in a zone of a time with an offset; other times as they are."""
    return at if at.tzinfo is None or zone is None else at.astimezone(zone_of(zone)).replace(tzinfo=None)


def in_zone(at: datetime, zone: str | None) -> datetime:
    """Return a local time with its offset; a time that the clock skips in spring is moved forward.

    >>> in_zone(datetime(2024, 3, 31, 2, 30), "Europe/Berlin").isoformat()
    '2024-03-31T03:30:00+02:00'
    """
    if zone is None:
        return at
    there = zone_of(zone)
    return at.replace(tzinfo=there).astimezone(UTC).astimezone(there)


PANDAS_SPAN = "%D days %H:%M:%S"
"""The pattern of pandas."""

ISO_SPAN = "ISO 8601"
"""The pattern of lengths of time such as P1DT2H30M, whose parts are left out if they are 0."""

_PART = re.compile(r"%(D|-?[HMS])")
_SECONDS = {"D": 86_400, "H": 3_600, "M": 60, "S": 1}
_LIMITS = {"H": 86_400, "M": 3_600, "S": 60}  # the seconds in the next larger unit


@dataclass(frozen=True)
class SpanFormat:
    """How a length of time is written: ``%D`` days, ``%H`` hours, ``%M`` minutes, ``%S`` seconds.

    The largest of them has all the time that smaller ones leave. After ``%-`` they have no leading zeros.
    `ISO_SPAN` is a pattern of its own.

    Examples
    --------
    >>> patterns = ("%-H:%M:%S", "%D days %H:%M:%S", "%-Mm %-Ss", "ISO 8601")
    >>> [SpanFormat(pattern).spell(93_784) for pattern in patterns]
    ['26:03:04', '1 days 02:03:04', '1563m 4s', 'P1DT2H3M4S']
    >>> [SpanFormat("%-H:%M").seconds(text) for text in ("26:03", "-0:30", "26:03:04", "26:75")]
    [93780.0, -1800.0, nan, nan]
    """

    pattern: str

    def __post_init__(self) -> None:
        parts = [part.lstrip("-") for part in self._parts]
        ordered = [part for part in _SECONDS if part in parts]
        if not self.is_iso and (not parts or parts != ordered or "%" in _PART.sub("", self.pattern)):
            raise InputError(
                f"format {safe_repr(self.pattern)} shows no length of time: write it such as '%-H:%M:%S' or"
                " '%D days %H:%M:%S'"
            )

    @property
    def is_iso(self) -> bool:
        """Whether parts that are 0 are left out, as in PT5M."""
        return self.pattern == ISO_SPAN

    @property
    def _parts(self) -> list[str]:
        return _PART.findall(self.pattern) if isinstance(self.pattern, str) else []

    @property
    def step(self) -> int:
        """The seconds in the smallest unit that is written."""
        return 1 if self.is_iso else _SECONDS[self._parts[-1].lstrip("-")]

    def seconds(self, text: str) -> float:
        """Return the seconds in a text, without parts of one; NaN if it is written in another way."""
        match = _read_by(self.pattern).fullmatch(text.strip())
        if match is None or not any(match.groupdict().values()):
            return float("nan")
        total, is_largest = 0.0, True
        for part, size in _SECONDS.items():
            number = match.groupdict().get(part)
            if number is None:
                continue
            if not is_largest and not self.is_iso and int(number) * size >= _LIMITS[part]:
                return float("nan")
            total, is_largest = total + int(number) * size, False
        return -total if match["sign"] else total

    def spell(self, seconds: float) -> str:
        """Return a length of time as text."""
        rest, sign = abs(round(seconds)), "-" if round(seconds) < 0 else ""
        if self.is_iso:
            return sign + _iso(rest)
        texts = {}
        for part in self._parts:
            size = _SECONDS[part.lstrip("-")]
            number, rest = divmod(rest, size)
            texts[part] = str(number) if part in ("D", "-H", "-M", "-S") else f"{number:02d}"
        pattern = self.pattern
        if "%D days, " in pattern:  # as Python writes them
            days = {"0": "", "1": "%D day, "}.get(texts["D"], "%D days, ")
            pattern = pattern.replace("%D days, ", days)
        return sign + _PART.sub(lambda part: texts[part[1]], pattern)


@cache
def _read_by(pattern: str) -> re.Pattern[str]:
    """Return the expression that reads a pattern of lengths of time."""
    if pattern == ISO_SPAN:
        parts = r"P(?:(?P<D>\d+)D)?(?:T(?=\d)(?:(?P<H>\d+)H)?(?:(?P<M>\d+)M)?(?:(?P<S>\d+)(?:\.\d+)?S)?)?"
        return re.compile(rf"(?P<sign>-?){parts}")
    texts = _PART.split(pattern)
    read = re.escape(texts[0])
    for part, literal in zip(texts[1::2], texts[2::2], strict=True):
        name = part.lstrip("-")
        fraction = r"(?:\.\d+)?" if name == "S" else ""
        read += rf"(?P<{name}>\d+){fraction}{re.escape(literal).replace('days', 'days?')}"
    if pattern.startswith("%D days, "):  # as Python writes them
        read = read.replace(r"(?P<D>\d+)\ days?,\ ", r"(?:(?P<D>\d+)\ days?,\ )?")
    return re.compile(rf"(?P<sign>-?){read}")


def _iso(seconds: int) -> str:
    """Return seconds as a length of time of ISO 8601, without parts that are 0."""
    days, rest = divmod(seconds, 86_400)
    parts = {"H": rest // 3_600, "M": rest // 60 % 60, "S": rest % 60}
    clock = "".join(f"{number}{unit}" for unit, number in parts.items() if number)
    if not days and not clock:
        return "PT0S"
    return f"P{f'{days}D' if days else ''}{f'T{clock}' if clock else ''}"
