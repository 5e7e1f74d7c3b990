"""The criteria that a release must meet, as a publisher writes them. Read and checked before any question."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from os import PathLike
from pathlib import Path
from typing import Any

from privsyn.arguments import check_between, check_column
from privsyn.errors import InputError, about, did_you_mean, safe_repr, spelled
from privsyn.files import check_file
from privsyn.release.acceptance.criterion import Criterion, Margin, Mean, Proportion
from privsyn.release.acceptance.slope import Slope
from privsyn.table.schema.schema import Schema
from privsyn.table.schema.yaml_file import parse

SHARE, RISK = 0.1, 0.05
"""Part of the budget for the tests, and the error probability, by default."""

KINDS: dict[str, type[Criterion]] = {
    "margin": Margin,
    "mean": Mean,
    "proportion": Proportion,
    "slope": Slope,
}
"""Each kind of criterion by the key that names it."""


@dataclass(frozen=True)
class Criteria:
    """All criteria, the part of the budget for their tests, and the error probability.

    Parameters
    ----------
    criteria : tuple of Margin, Mean, Proportion or Slope
    share : float
        Part of the budget, between 0 and 1.
    risk : float
        The largest probability of accepting a table that breaks a criterion, below 1/2.
    """

    criteria: tuple[Criterion, ...]
    share: float = SHARE
    risk: float = RISK

    def __post_init__(self) -> None:
        object.__setattr__(self, "share", check_between("share", self.share, 1.0))
        object.__setattr__(self, "risk", check_between("risk", self.risk, 0.5))

    def check(self, schema: Schema) -> None:
        """Refuse criteria that do not fit the schema. No row is read."""
        for place, criterion in enumerate(self.criteria, 1):
            with about(f"criterion {place}"):
                for name in criterion.columns:
                    check_column("column", name, schema.coded)
                    if name in schema.randomised:
                        raise InputError(f"{name!r} was randomised by the respondents: it cannot be tested")
                    if name in schema.computed:
                        raise InputError(f"{name!r} is computed from other columns: name these")
                criterion.check(schema)


def check_accept(criteria: Criteria, schema: Schema | None, epsilon: float | None) -> None:
    """Refuse criteria without a budget, or that do not fit the schema, if it is known."""
    if epsilon is None:
        raise InputError(f"{spelled('accept')} needs {spelled('epsilon')}: its tests add noise")
    if schema is not None:
        with about(spelled("accept")):
            criteria.check(schema)


def read_criteria(accept: object) -> Criteria | None:
    """Return criteria, given as such, as plain data or as the path of a YAML file.

    Examples
    --------
    >>> read = read_criteria({"criteria": [{"margin": ["sex", "income"], "error": 0.03}], "risk": 0.01})
    >>> str(read.criteria[0]), read.share, read.risk
    ('total variation of sex x income at most 0.03', 0.1, 0.01)
    """
    if accept is None or isinstance(accept, Criteria):
        return accept
    if not isinstance(accept, str | PathLike):
        with about("accept"):
            return _from_plain(accept)
    check_file(Path(accept))
    try:
        text = Path(accept).read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError):
        raise InputError(f"{accept}: cannot be read: give a YAML file of criteria") from None
    with about(f"{accept}"):
        return _from_plain(parse(text))


def _from_plain(plain: object) -> Criteria:
    settings: dict[str, Any] = dict(plain) if isinstance(plain, Mapping) else {"criteria": plain}
    if unknown := set(settings) - {"criteria", "share", "risk"}:
        raise InputError(f"{safe_repr(min(map(str, unknown)))} is not known: criteria, share and risk are")
    listed = settings.pop("criteria", None)
    if not isinstance(listed, Sequence) or isinstance(listed, str) or not listed:
        raise InputError("'criteria:' is a list, each such as {margin: [sex, income], error: 0.03}")
    return Criteria(tuple(_criterion(place, line) for place, line in enumerate(listed, 1)), **settings)


def _criterion(place: int, line: object) -> Criterion:
    with about(f"criterion {place}"):
        if not isinstance(line, Mapping):
            raise InputError("is a mapping such as {mean: age, within: 0.5}")
        kinds: list[Any] = [class_ for key, class_ in KINDS.items() if key in line]
        if len(kinds) != 1:
            meant = "" if kinds else did_you_mean(next(iter(line), None), KINDS)
            raise InputError(f"names exactly one of {', '.join(KINDS)}{meant}")
        known = [field.name for field in fields(kinds[0])]
        if unknown := [key for key in line if key not in known]:
            meant = did_you_mean(unknown[0], known) or f": it has {', '.join(known)}"
            raise InputError(f"{safe_repr(unknown[0])} is not known{meant}")
        if lacking := [key for key in kinds[0].needed() if key not in line]:
            raise InputError(f"{lacking[0]!r} is missing")
        return kinds[0](**line)
