"""User-facing errors and warnings, and helpers for their text."""

from __future__ import annotations

import inspect
import re
import reprlib
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from contextvars import ContextVar
from difflib import get_close_matches
from math import floor, log10
from numbers import Real
from unicodedata import category

LIKE = 0.65  # least ratio of difflib at which one word may be meant by another
ALMOST = 0.85  # and at which it may be if the word itself may exist

HUGE = 1e15
"""From here on numbers are shown with an exponent: a double has no more digits than these."""

WHOLE, DIGITS = 1000, 3
"""Numbers from here on have the decimals that their interval needs; smaller ones three digits or more."""

LEAST = 1e-300
"""Smaller numbers are shown as 0."""


def warn_caller(text: str, kind: type[Warning]) -> None:
    """Warn at the line that called this package, however many of our own functions lie between."""
    frame, level, outermost = inspect.currentframe(), 1, 1
    while frame is not None:
        if frame.f_globals.get("__name__", "").partition(".")[0] == "privsyn":
            outermost = level
        frame, level = frame.f_back, level + 1
    warnings.warn(text, kind, stacklevel=outermost + 1)


class InputError(ValueError):
    """A mistake in what the caller passed: one line that says what is wrong and what to do.

    The text names columns, settings and files, which are public. It never shows a value of the table.
    """


@contextmanager
def replace_errors(
    message: str | Callable[[Exception], str],
    kinds: type[Exception] | tuple[type[Exception], ...] = Exception,
) -> Iterator[None]:
    """Replace an error by an `InputError` that neither quotes nor remembers it.

    Libraries quote rows in their errors. Python would keep such an error as ``__context__``, even with
    ``from None``, so it is removed here.

    Parameters
    ----------
    message : str or callable
        The text of the `InputError`. A callable returns it for an error.
    kinds : exception type or tuple of these
        The errors to replace; an `InputError` is an `Exception` like others.

    Examples
    --------
    >>> try:
    ...     with replace_errors("ages.csv: not a table"):
    ...         int("a private cell")
    ... except InputError as error:
    ...     print(error, error.__context__)
    ages.csv: not a table None
    """
    try:
        yield
    except kinds as error:
        replacement = InputError(message(error) if callable(message) else message)
    else:
        return
    try:
        raise replacement
    except InputError:
        replacement.__context__ = None
        raise


def unless_own(message: str) -> Callable[[Exception], str]:
    """Return what `replace_errors` says in place of any error but an `InputError`, whose text stays.

    >>> say = unless_own("ages.csv: not a table")
    >>> say(KeyError("a private cell")), say(InputError("ages.csv: has no sheet"))
    ('ages.csv: not a table', 'ages.csv: has no sheet')
    """
    return lambda error: str(error) if isinstance(error, InputError) else message


_SPELLING: ContextVar[Callable[[str], str]] = ContextVar("spelling", default=str)


def spelled(setting: str) -> str:
    """Return the name of a setting as the user wrote it: `unit`, or --unit on the command line."""
    return _SPELLING.get()(setting)


@contextmanager
def spelling(spell: Callable[[str], str]) -> Iterator[None]:
    """Spell the names of settings in messages as `spell` does.

    >>> with spelling("--{}".format):
    ...     spelled("unit")
    '--unit'
    """
    token = _SPELLING.set(spell)
    try:
        yield
    finally:
        _SPELLING.reset(token)


def about(subject: str) -> AbstractContextManager[None]:
    """Begin the message of an `InputError` with what it is about.

    >>> try:
    ...     with about("column 'age'"):
    ...         raise InputError("low is above high")
    ... except InputError as error:
    ...     print(error)
    column 'age': low is above high
    """
    return replace_errors(lambda error: f"{subject}: {error}", InputError)


def printable(text: str) -> str:
    r"""Return the text with each character escaped that a terminal may obey or that cannot be seen.

    These are the control characters (C0 and C1, line ends among them), bidirectional overrides, invisible
    characters and halves of surrogate pairs.

    >>> print(printable("a\x1b[2J\x9b\u202eb\n"), printable("naïve 年齢"))
    a\x1b[2J\x9b\u202eb\n naïve 年齢
    """
    if text.isprintable():
        return text
    return "".join(
        letter
        if letter.isprintable() or category(letter) == "Zs"
        else letter.encode("unicode_escape").decode()
        for letter in text
    )


def safe_repr(value: object) -> str:
    """Return a number or text as it was given; of anything else the type only, for it may hold the table.

    >>> safe_repr(-1), safe_repr("much"), safe_repr([1, 2])
    ('-1', "'much'", 'a list')
    """
    return reprlib.repr(value) if isinstance(value, Real | str) else f"a {type(value).__name__}"


def did_you_mean(word: object, vocabulary: Iterable[object], *, may_exist: bool = False) -> str:
    """Return a question with the word of a vocabulary that is most like a wrong one, or "".

    >>> did_you_mean("agee", ["sex", "age"]), did_you_mean("f", ["F", "M"]), did_you_mean("town", ["age"])
    ("; did you mean 'age'?", "; did you mean 'F'?", '')

    A word that `may_exist`, such as a rare value that is not listed, is nearly spelled like the one meant.

    >>> did_you_mean("Katrina", ["Maria"], may_exist=True), did_you_mean("Marai", ["Maria"])
    ('', "; did you mean 'Maria'?")

    A value of another type that is spelled like it is meant first.

    >>> did_you_mean(9, ["8", "9"]), did_you_mean("9", [8, 9]), did_you_mean("True", [True, False])
    ("; did you mean '9', in quotes?", '; did you mean 9, no quotes?', '; did you mean True, no quotes?')
    """
    candidates = [*vocabulary]
    for candidate in candidates:
        if isinstance(candidate, str) is not isinstance(word, str) and str(candidate) == str(word):
            quotes = "in quotes" if isinstance(candidate, str) else "no quotes"
            return f"; did you mean {reprlib.repr(candidate)}, {quotes}?"
    words = {candidate.casefold(): candidate for candidate in candidates if isinstance(candidate, str)}
    like = ALMOST if may_exist else LIKE
    matches = get_close_matches(word.casefold(), words, n=1, cutoff=like) if isinstance(word, str) else ()
    return f"; did you mean {reprlib.repr(words[matches[0]])}?" if matches else ""


def short(fact: str) -> str:
    """Return a fact about a public table or totals without its SHA-256, which the ledger has.

    >>> short("the public table of 2 rows (SHA-256 07e5): it is far from the released answers")
    'the public table of 2 rows: it is far from the released answers'
    """
    return re.sub(r" \(SHA-256 [0-9a-f]+\)", "", fact)


def plural(number: float, noun: str) -> str:
    """Return a number with a noun in the singular or plural.

    >>> plural(1, "row"), plural(48_842, "row"), plural(0, "pair")
    ('1 row', '48,842 rows', '0 pairs')
    """
    text = f"{number:,.0f}"
    return f"{text} {noun}" if text == "1" else f"{text} {noun}s"


def in_digits(number: float, decimals: int = 0) -> str:
    """Return a number in words: three digits or more, all before the point, and never 1e+03 for 1,000.

    A number below 1,000 has these decimals unless they are zeros, and one from 1,000 on has exactly these.

    >>> [in_digits(number, 3) for number in (0.31, 47.59312, -122.2, 1971.0, 6e-312)]
    ['0.31', '47.593', '-122.2', '1,971.000', '0']
    >>> [in_digits(number) for number in (999.4, 999.6, -999.96, 1234.5, 0.0123456, 2e15)]
    ['999', '1,000', '-1,000', '1,234', '0.0123', '2e+15']
    """
    number = float(number) if abs(number) > LEAST else 0.0
    if abs(number) >= HUGE:
        return f"{number:.{DIGITS}g}"
    digits = decimals + 1 + floor(log10(abs(number))) if number else 0
    text = f"{number:.{max(digits, DIGITS)}g}"
    return f"{number:,.{decimals}f}" if abs(float(text)) >= WHOLE else text


class AbsentWarning(UserWarning):
    """A sample with classes of equal size lacks a class, for the release counts no row of it."""


def warn_absent(name: str, values: Sequence[object]) -> None:
    """Warn the caller of `sample` of classes that are left out. It depends on the release alone."""
    if values:
        warn_caller(about_absent(name, values), AbsentWarning)


def about_absent(name: str, values: Sequence[object]) -> str:
    """Say which values of a column are left out.

    >>> about_absent("job", ["clerk", "cook"])
    "balance 'job': left out, for the release counts no row of them: 'clerk', 'cook'"
    """
    named = ", ".join(map(repr, values[:5])) + (f" and {len(values) - 5} more" if len(values) > 5 else "")
    return f"balance {name!r}: left out, for the release counts no row of them: {named}"


class DisagreementWarning(UserWarning):
    """Synthetic rows differ from their release by more than chance."""


SHOWN = 3  # disagreements in one line


def warn_disagreements(disagreements: Sequence[object]) -> None:
    """Warn the caller of `sample` of where the rows differ. It depends on released answers alone."""
    if disagreements:
        more = f"; and {len(disagreements) - SHOWN} more" if len(disagreements) > SHOWN else ""
        worst = "; ".join(map(str, disagreements[:SHOWN]))
        text = (
            f"the rows differ from the release by more than chance: {worst}{more}. For these, use the"
            " release's estimates (accuracy_, --public-report)"
        )
        warn_caller(printable(text), DisagreementWarning)


@contextmanager
def kept_disagreements() -> Iterator[list[str]]:
    """Yield a list that gets the texts of `DisagreementWarning`, in place of the screen, at the end."""
    texts: list[str] = []
    with warnings.catch_warnings(record=True) as caught:
        yield texts
    texts += [str(warning.message) for warning in caught if warning.category is DisagreementWarning]


@contextmanager
def nothing_to_warn_of() -> Iterator[None]:
    """Fit a table that stands in for the private one: what is lost of it concerns nobody."""
    with warnings.catch_warnings(action="ignore", category=PaidRunWarning):
        yield


class TotalsWarning(UserWarning):
    """Rows of totals are left out of tables of counts; or synthetic rows miss known totals."""


def warn_totals(tables: Sequence[str]) -> None:
    """Warn the caller of `from_marginals` of totals, which follow from the other counts."""
    if tables:
        text = f"rows of totals are left out of the tables {'; '.join(tables)}"
        warn_caller(text, TotalsWarning)


def warn_missed_totals(rows: float) -> None:
    """Warn the caller of `sample` of rows in other cells of known totals. It depends on the release alone."""
    text = (
        f"known totals are missed by {plural(rows, 'row')}: no row was found in their cells that keeps the"
        " constraints"
    )
    warn_caller(text, TotalsWarning)


class CutWarning(UserWarning):
    """A line in the file of a sweep was cut short, so its run is repeated."""


def warn_cut(path: object, lines: int) -> None:
    """Warn the caller of `sweep` of lines that were cut by a full disk or a broken copy."""
    if lines:
        text = f"{path}: {plural(lines, 'line')} cut short: such a run is repeated"
        warn_caller(text, CutWarning)


class ColumnWarning(UserWarning):
    """A column comes out otherwise than the private one: without its order, texts or objects, or not at all.

    It depends on the schema, names and dtypes alone.
    """


def warn_marks(names: Sequence[str]) -> None:
    """Warn the caller of `fit` of columns in which no mark is looked for. It depends on schema and dtypes."""
    if names:
        text = (
            "missing: names texts of a file; this table has numbers, which stay numbers, in"
            f" {_quoted(names)}. If some of them mean a missing cell, make these cells missing first, as"
            " frame.mask(frame == -9) does"
        )
        warn_caller(text, ColumnWarning)


def warn_columns(dropped: Sequence[str], objects: Sequence[str], unordered: Sequence[str]) -> None:
    """Warn the caller of `fit` of columns that come out differently. It depends on schema and dtypes alone.

    Parameters
    ----------
    dropped, objects, unordered : sequence of str
        Columns of free text, of Python objects, and of ordered categories without a list of values.
    """
    if dropped:
        text = f"free text is left out of the synthetic table: {_quoted(dropped)}"
        warn_caller(text, ColumnWarning)
    if objects:
        text = (
            f"columns of Python objects, of which only text, numbers and booleans are synthesised: "
            f"{_quoted(objects)}. Declare others in the schema: Time(), Duration(), "
            "Datetime(objects='date'), Numerical()"
        )
        warn_caller(text, ColumnWarning)
    if unordered:
        text = (
            f"without a list of values the order of categories is left out: {_quoted(unordered)}. "
            "If it is public, list the values in the schema, the lowest first: Categorical([...])"
        )
        warn_caller(text, ColumnWarning)


def _quoted(names: Sequence[str]) -> str:
    return ", ".join(map(repr, names))


class RefitWarning(UserWarning):
    """A table, or one with the same columns, was fitted before in this process.

    If both are about the same people, what the runs spend adds up. It comes once for each table.
    """


def warn_refit() -> None:
    """Warn the caller of `fit`, before anything is spent. It depends on paths, objects and names alone."""
    text = (
        "this table, or one with the same columns, was fitted before in this process. If both are about the"
        " same people, the epsilons add up: Ledger.compose([first.ledger_, second.ledger_]) says to how much."
        " If they are about different people, they do not. To draw again costs nothing: sample()"
    )
    warn_caller(text, RefitWarning)


class PaidRunWarning(UserWarning):
    """What a run did to its result. It depends on released answers and public facts alone."""

    @classmethod
    def warn(cls, text: str | None) -> None:
        """Warn the caller of `fit`, unless there is nothing to say.

        The run is paid: also where warnings are errors, it ends well.
        """
        if text:
            with suppress(cls):
                warn_caller(text, cls)


class NoSignalWarning(PaidRunWarning):
    """The estimated number of rows is mostly noise: `sample` makes no table unless `n` is given."""


class LossWarning(PaidRunWarning):
    """Many cells of some columns may not be what they were in the private table."""


class NotFoundWarning(PaidRunWarning):
    """Too few rows for this noise: nothing was found of a column that the schema leaves open."""


class NoiseWarning(UserWarning):
    """The settings allow no more than noise, unless the table is very large."""


def warn_noise(epsilon: object, noise: float) -> None:
    """Warn the caller of `PrivSyn`, before anything is spent. It depends on the settings alone."""
    text = (
        f"epsilon {safe_repr(epsilon)}: each count has noise of {noise:,.0f} records or more. "
        "A table of fewer rows comes out as noise: raise epsilon"
    )
    warn_caller(text, NoiseWarning)


LOST = "many cells of these columns may be lost; compare them with the private table (losses_ has all):"

NOT_FOUND = "no values or bounds were found for: "


def about_losses(lines: Sequence[str]) -> str | None:
    """Say what the run did to columns, in one line for each of them; None if there is none."""
    return "\n  ".join([LOST, *map(printable, lines)]) if lines else None


def about_not_found(names: Sequence[str]) -> str:
    """Say of which columns no value and no bound was found.

    >>> about_not_found(["age", "job"])  # doctest: +ELLIPSIS
    'no values or bounds were found for: age, job; unless empty, their cells are invented: give them ...'
    """
    return (
        f"{NOT_FOUND}{', '.join(names)}; "
        "unless empty, their cells are invented: give them in a schema (`privsyn schema` drafts it, with"
        " formats of dates and amounts), or raise epsilon, which does not help with Python objects such as"
        " date or Decimal"
    )


def not_found_in(facts: Iterable[str], names: Iterable[str], table: str = "") -> tuple[str, ...]:
    """Return which columns the line of a ledger names of which nothing was found.

    Of linked tables the line has the name of the `table` before each column.

    >>> not_found_in(["the settings", about_not_found(["age", "job"])], ["sex", "age", "job"])
    ('age', 'job')
    >>> not_found_in([about_not_found(["visits.ward", "drugs.name"])], ["ward", "name"], "visits")
    ('ward',)
    """
    before = f"{table}." if table else ""
    lines = (fact.removeprefix(NOT_FOUND).rpartition("; ")[0] for fact in facts if fact.startswith(NOT_FOUND))
    listed = "".join(f", {line}, " for line in lines)
    return tuple(name for name in names if f", {before}{name}, " in listed)
