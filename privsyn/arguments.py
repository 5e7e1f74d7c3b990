"""Check arguments: return the value in its standard type, or raise an `InputError` of one line."""

from __future__ import annotations

import ast
import re
from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from math import inf, isfinite, nan
from numbers import Real
from os import PathLike
from typing import Any

import numpy as np

from privsyn.errors import InputError, did_you_mean, replace_errors, safe_repr, spelled
from privsyn.sizes import MOST_ROWS

_UNITS = {"B": 1, "KB": 10**3, "MB": 10**6, "GB": 10**9, "TB": 10**12}
_MEMORY = re.compile(r"([0-9]+(?:\.[0-9]+)?) *([kKmMgGtT]?[bB])")

MUCH_EPSILON, MUCH_DELTA = 100.0, 1e-3
"""Above either, the guarantee is practically meaningless."""

BETTER = "take an epsilon of 10 at most, and a delta far below one in the number of people"


def is_weak(epsilon: float, delta: float) -> bool:
    """Return whether a promise is next to none.

    >>> is_weak(100.0, 1e-3), is_weak(101.0, 1e-9), is_weak(1.0, 0.5)
    (False, True, True)
    """
    return epsilon > MUCH_EPSILON or MUCH_DELTA < delta < 1


def check_promise(epsilon: float, delta: float, *, allowed: bool) -> None:
    """Refuse a promise of next to nothing before anything is spent, unless the caller insists."""
    if is_weak(epsilon, delta) and not allowed:
        name, value = ("epsilon", epsilon) if epsilon > MUCH_EPSILON else ("delta", delta)
        raise InputError(
            f"{name} {value:g} promises next to nothing: {BETTER}, or insist with"
            f" {spelled('allow_weak_privacy')}"
        )


def check_whole(name: str, value: object, *, minimum: int = 0) -> int:
    """Return `value` as an int of at least `minimum`.

    >>> check_whole("n", np.uint8(3))
    3
    """
    if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < minimum:
        raise InputError(f"{name} must be a whole number of at least {minimum}; got {safe_repr(value)}")
    return int(value)


def check_rows(n: object, *, minimum: int = 0) -> int:
    """Return a number of rows as an int.

    >>> check_rows(10**12)
    Traceback (most recent call last):
    privsyn.errors.InputError: n must be a whole number of at most 10,000,000,000; got 1,000,000,000,000
    """
    rows = check_whole("n", n, minimum=minimum)
    if rows > MOST_ROWS:
        raise InputError(f"n must be a whole number of at most {MOST_ROWS:,}; got {rows:,}")
    return rows


def check_bytes(name: str, value: object) -> int:
    """Return an amount of memory in bytes, from a number of bytes or from text with a unit.

    >>> check_bytes("memory", "1.5 GB"), check_bytes("memory", 64 * 2**20)
    (1500000000, 67108864)
    """
    if isinstance(value, str) and (match := _MEMORY.fullmatch(value.strip())):
        size, unit = match.groups()
        return int(float(size) * _UNITS[unit.upper()])
    if isinstance(value, str):
        raise InputError(f'{name} must be a number of bytes, or text such as "4GB"; got {safe_repr(value)}')
    return check_whole(name, value)


def check_finite(name: str, value: object) -> float:
    """Return the double nearest to a finite number of any type.

    >>> check_finite("delta", np.float32(0.5))
    0.5
    """
    try:
        double = float(value) if isinstance(value, Real) and not isinstance(value, bool) else nan
    except OverflowError:
        double = inf
    if not isfinite(double):
        raise InputError(f"{name} must be a finite number; got {safe_repr(value)}")
    return double


def check_between(name: str, value: object, high: float = inf) -> float:
    """Return a number above 0 and below `high`."""
    number = check_finite(name, value)
    if not 0 < number < high:
        below = "" if high == inf else f" and below {high:g}"
        raise InputError(f"{name} must be above 0{below}; got {safe_repr(value)}")
    return number


def check_column(
    argument: str,
    name: object,
    names: Collection[str],
    *,
    public: bool = False,
    read: bool = False,
    left_out: Collection[str] = (),
) -> None:
    """Refuse a name that is not one of the columns to be synthesised; list these if they are `public`.

    None is quoted if they were `read` from the table: without a header they are the cells of its first row.
    `left_out` are all declared columns, free text too.

    >>> check_column("target", "income", ("age", "sex"))
    Traceback (most recent call last):
    privsyn.errors.InputError: target 'income' is not one of the columns to be synthesised
    >>> check_column("target", "notes", ("age", "note"), left_out=("notes",))  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    privsyn.errors.InputError: target 'notes' is free text or generated, so nothing is learnt of it: ...
    """
    if not isinstance(name, str):
        raise InputError(f"{argument} must be the name of one column; got {safe_repr(name)}")
    if name in names:
        return
    if name in left_out:
        raise InputError(
            f"{argument} {safe_repr(name)} is free text or generated, so nothing is learnt of it: choose"
            " another column, or declare another kind in the schema"
        )
    listed = f": {', '.join(map(safe_repr, list(names)[:10]))}{', ...' * (len(names) > 10)}" if public else ""
    meant = "" if read else did_you_mean(name, names) or listed
    raise InputError(f"{argument} {safe_repr(name)} is not one of the columns to be synthesised{meant}")


def check_release(release: object) -> Any:
    """Return a release, or the release of a fitted model. Refuse anything else, such as a table or a path.

    >>> check_release("people.privsyn")
    Traceback (most recent call last):
    privsyn.errors.InputError: give a release, load(path), or a fitted model; got 'people.privsyn'
    """
    fitted = getattr(release, "release_", release)
    if not hasattr(fitted, "ledger") or not hasattr(fitted, "database"):
        raise InputError(f"give a release, load(path), or a fitted model; got {safe_repr(release)}")
    return fitted


def check_path(path: object) -> str | PathLike[str]:
    """Return the path; refuse what is none. A message never shows it: it may be a table.

    >>> check_path(["a private cell"])
    Traceback (most recent call last):
    privsyn.errors.InputError: give the path of a file; got a list
    """
    if not isinstance(path, str | PathLike):
        raise InputError(f"give the path of a file; got {safe_repr(path)}")
    return path


def imported(kind: str, path: str, group: str | None = None) -> tuple[str, Any]:
    """Return the name and the object that ``module:name`` leads to, or an entry point of a group.

    >>> imported("method", "math:sqrt")
    ('sqrt', <built-in function sqrt>)
    >>> imported("method", "math:root")
    Traceback (most recent call last):
    privsyn.errors.InputError: method 'math:root': it cannot be imported (AttributeError)
    """
    from importlib import import_module  # here: most commands need neither
    from importlib.metadata import entry_points

    subject, (module, _, name) = f"{kind} {safe_repr(path)}", path.partition(":")
    points = () if group is None or name else entry_points(group=group, name=path)
    if not (module and name) and not points:
        alternative = "" if group is None else ", or the name of an entry point"
        raise InputError(f"{subject}: write module:function{alternative}")
    with replace_errors(lambda error: f"{subject}: it cannot be imported ({type(error).__name__})"):
        return (name, getattr(import_module(module), name)) if name else (path, next(iter(points)).load())


def values_by_name(text: str) -> dict[str, Any]:
    """Return the values in text such as ``rounds=50, duplication=(0.5, 1)``, by name.

    A value is a number, text in quotes, or a list of these.

    Raises
    ------
    ValueError
        If the text is anything else, or gives a name twice.

    Examples
    --------
    >>> values_by_name("rounds=50, duplication=(0.5, 1)")
    {'rounds': 50, 'duplication': (0.5, 1)}
    """
    try:
        call = ast.parse(f"call({text})", mode="eval").body
        if not isinstance(call, ast.Call) or not isinstance(call.func, ast.Name) or call.args:
            raise ValueError(text)
        values = {keyword.arg: ast.literal_eval(keyword.value) for keyword in call.keywords if keyword.arg}
    except (SyntaxError, TypeError, MemoryError, RecursionError) as error:
        raise ValueError(text) from error
    if len(values) < len(call.keywords):
        raise ValueError(text)
    return values


def read_parameters(argument: str, parameters: object) -> dict[str, Any]:
    """Return the parameters of a method by name, from a mapping or from texts, as on the command line.

    >>> read_parameters("parameters", ["rounds=50", "gamma=1000"]), read_parameters("parameters", None)
    ({'rounds': 50, 'gamma': 1000}, {})
    """
    if parameters is None:
        return {}
    if isinstance(parameters, Mapping) and all(isinstance(name, str) for name in parameters):
        return dict(parameters)
    if isinstance(parameters, Sequence) and all(isinstance(text, str) for text in parameters):
        parameters = parameters if isinstance(parameters, str) else ", ".join(parameters)
        with suppress(ValueError):
            return values_by_name(parameters)
    raise InputError(f"{argument} are names and values, such as rounds=50; got {safe_repr(parameters)}")
