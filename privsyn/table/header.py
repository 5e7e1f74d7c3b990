"""The first line of a CSV file: whether it holds names, which are public, and not a row, which is not."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from pathlib import Path

from privsyn.errors import InputError
from privsyn.table.csv_format import DELIMITERS

_NUMBER = re.compile(r"\s*[-+]?([0-9]+[.,]?[0-9]*|[.,][0-9]+)([eE][-+]?[0-9]+)?\s*")

_SPELT = {"\t": r"\t"}


def check_header(path: Path, names: Sequence[str], known: Collection[str] = ()) -> None:
    """Refuse a first line that looks like a row, or that is cut at another sign than the file's.

    The names of columns are public: they are printed, and head the synthetic table. So the complaint quotes
    none of them, for they may be somebody's row.

    Parameters
    ----------
    path : path
    names : sequence of str
    known : names that somebody said are names: in a schema, as identifiers

    Examples
    --------
    >>> check_header(Path("people.csv"), ["age", "sex"])
    >>> check_header(Path("years.csv"), ["2019", "2020"], known=["2019", "2020"])
    """
    unknown = [name for name in names if name not in known]
    if len(names) == 1 and unknown and (sign := next((s for s in DELIMITERS if s in names[0]), None)):
        raise InputError(
            f"{path}: is taken for one column, but its first line has another delimiter:"
            f' say csv: {{delimiter: "{_SPELT.get(sign, sign)}"}} in the schema'
        )
    if any(_NUMBER.fullmatch(name) for name in unknown):
        raise InputError(
            f"{path}: its first line looks like a row, not like the names of columns:"
            " add a header, or name the columns in a schema"
        )
    if any(not name.strip() for name in unknown):
        raise InputError(
            f"{path}: its first line leaves a column without a name, or is a row: add the name, or a header"
            " (pandas leaves out its index by to_csv(..., index=False))"
        )
