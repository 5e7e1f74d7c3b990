"""How pages are made: templates that escape whatever they are given, and numbers in words."""

from __future__ import annotations

from math import isnan
from pathlib import Path

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from privsyn.evaluation.scores import shown_number

FOLDER = Path(__file__).with_name("templates")


def environment() -> Environment:
    """Where the templates are found, with the filters that they use."""
    found = Environment(
        loader=FileSystemLoader(FOLDER),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    found.filters |= {"percent": percent, "number": shown_number}
    return found


def percent(share: float) -> str:
    """A share in percent, or nothing where there is none.

    >>> percent(0.1234), percent(float("nan"))
    ('12.3%', '')
    """
    return "" if isnan(share) else f"{share:.1%}"
