"""Pages: sections of a title and what a template makes of values, over one skeleton and one script."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import cache
from math import ceil, floor, inf, isnan, log10
from pathlib import Path
from typing import Any, NamedTuple

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from privsyn.errors import HUGE, printable

MOST_DECIMALS = 8
"""Most decimals of an interval."""

YEARS = (1500, 2200)
"""An interval inside these is taken for one of years: they have no thousands separator."""

HIDDEN_BLANKS = re.compile(r"^ +| +$|(?<= ) +| +(?= )")
"""Blanks that a page in HTML does not show: those at either end, and all of several beside each other."""

MARKS = {"&": "&amp;", "<": "&lt;", ">": "&gt;"} | {mark: f"&#{ord(mark)};" for mark in "|[]*_`\\!"}
"""Signs that HTML or Markdown would obey, and what stands for them."""

OBEYED = re.compile(r"[&<>|\[\]*`\\!]|(?<!\w)_+|_+(?!\w)")
"""Where it would obey them. An underscore inside a word is plain text."""


def percent(share: float) -> str:
    """Return a share in percent, with two decimals below 1 %, or an empty text for NaN.

    >>> percent(0.1234), percent(0.00123), percent(5.5e-20), percent(0.0), percent(1.0), percent(float("nan"))
    ('12.3%', '0.12%', '<0.01%', '0%', '100%', '')
    """
    if isnan(share):
        return ""
    if share in (0, 1):
        return f"{share:.0%}"
    return "<0.01%" if 0 < share < 0.00005 else f"{share:.{2 if share < 0.00995 else 1}%}"


def number(value: float) -> str:
    """Return a number with three digits or its whole integer part, and without an exponent below 1e15.

    >>> number(1.41421), number(25.333), number(12345.6), number(0.01234), number(2.0), number(1e-9)
    ('1.41', '25.3', '12,346', '0.0123', '2', '<0.0001')
    >>> number(-1.6e308), number(float("inf"))
    ('-1.6e+308', 'inf')
    """
    if isnan(value):
        return ""
    size = abs(value)
    if size >= HUGE:
        return f"{value:.3g}"
    if 0 < size < 0.00005:
        return "<0.0001" if value > 0 else ">-0.0001"
    decimals = min(max(2 - floor(log10(size)), 0), 4) if size > 0 else 0
    text = f"{value:,.{decimals}f}"
    return text.rstrip("0").rstrip(".") if decimals else text


def interval(estimate: float, low: float, high: float) -> tuple[str, str, str]:
    """Return an estimate and the ends of its interval, rounded to two digits of the interval's width.

    >>> interval(-122.2134, -122.2191, -122.2072), interval(1970.75, 1969.91, 1971.43)
    (('-122.213', '-122.219', '-122.207'), ('1970.8', '1969.9', '1971.4'))
    >>> interval(540123.4, 537604.0, 542571.0), interval(28.0, 27.0, 29.0), interval(2.0, 2.0, 2.0)
    (('540,100', '537,600', '542,600'), ('28', '27', '29'), ('2', '2', '2'))
    """
    numbers, width = (estimate, low, high), high - low
    if not 0 < width < inf or max(map(abs, numbers)) >= HUGE:
        return number(estimate), number(low), number(high)
    digits = min(1 - floor(log10(width)), MOST_DECIMALS)
    mark = "" if YEARS[0] <= low and high <= YEARS[1] else ","
    rounded = [round(float(value), digits) + 0.0 for value in numbers]  # + 0.0: no minus before a zero
    decimals = max(digits, 0)
    while decimals and all(round(value, decimals - 1) == value for value in rounded):
        decimals -= 1
    first, second, third = (f"{value:{mark}.{decimals}f}" for value in rounded)
    return first, second, third


def at_most(value: float) -> str:
    """Return a number that is rounded up to two digits.

    >>> at_most(31934.0), at_most(0.016004), at_most(249.0), at_most(1.5), at_most(0.0)
    ('32,000', '0.017', '250', '1.5', '0')
    """
    if not 0 < value < HUGE:
        return number(value)
    digits = min(1 - floor(log10(value)), MOST_DECIMALS)
    return f"{ceil(value * 10.0**digits) / 10.0**digits:,.{max(digits, 0)}f}"


def rounded(value: float) -> str:
    """Return a count.

    >>> rounded(1234.4), rounded(-0.2)
    ('1,234', '0')
    """
    return f"{round(value):,}"


def many(value: int, word: str) -> str:
    """Return a count of what the word says.

    >>> many(1, "pair"), many(1200, "pair")
    ('1 pair', '1,200 pairs')
    """
    return f"{rounded(value)} {word}{'s' * (value != 1)}"


def visible(value: object) -> str:
    """Return a value as text in which readers see each blank that HTML would hide.

    >>> visible("x "), visible("New  York"), visible("New York"), visible(3)
    ('x␣', 'New␣␣York', 'New York', '3')
    """
    return HIDDEN_BLANKS.sub(lambda match: "␣" * len(match[0]), str(value))


def power(value: float) -> Markup:
    """Return a small number as a power of ten, and others as they are.

    >>> str(power(1e-09)), str(power(2.5e-6)), str(power(0.01)), str(power(0.0))
    ('10<sup>−9</sup>', '2.5 × 10<sup>−6</sup>', '0.01', '0')
    """
    if not 0 < value < 0.001:
        return Markup("{}").format(f"{value:g}")
    digits, _, exponent = f"{value:.3e}".partition("e")
    front = "" if float(digits) == 1 else f"{float(digits):g} × "
    return Markup("{}10<sup>−{}</sup>").format(front, -int(exponent))


def in_markdown(text: object) -> Markup:
    """Return a text with all signs escaped that HTML or Markdown would obey.

    >>> str(in_markdown("a|b <i> *c*"))
    'a&#124;b &lt;i&gt; &#42;c&#42;'
    >>> str(in_markdown("a_b _c_"))
    'a_b &#95;c&#95;'
    """
    plain = OBEYED.sub(lambda match: "".join(map(MARKS.__getitem__, match[0])), printable(str(text)))
    return Markup(plain)  # noqa: S704


FOLDER = Path(__file__).with_name("templates")


class Section(NamedTuple):
    """A section of a page: the block of the page's template that shows it, its title, and a short title.

    A folded section comes after all others, and shows its title alone until the reader opens it.
    """

    name: str
    title: str
    short: str = ""
    folded: bool = False


def render(template: str, values: Mapping[str, Any], sections: Sequence[Section] = ()) -> str:
    """Return a page as text: those of its sections that have something to show, in this order.

    Parameters
    ----------
    template : str
        A file of `templates`, with a block for each section.
    values : mapping
        What the blocks show. A section is left out if there is a value of its name, and it is empty.
    sections : sequence of Section
    """
    shown = [section for section in sections if values.get(section.name, True)]
    return environment().get_template(template).render(values, sections=shown)


@cache
def environment() -> Environment:
    """Return the template environment with its filters. It compiles each template once."""
    templates = Environment(
        loader=FileSystemLoader(FOLDER),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    templates.policies["json.dumps_kwargs"] = {"ensure_ascii": False, "separators": (",", ":")}
    templates.filters |= {
        "percent": percent,
        "number": number,
        "count": rounded,
        "power": power,
        "many": many,
        "cell": in_markdown,
    }
    return templates
