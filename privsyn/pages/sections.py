"""Pages: sections of a title and what a template makes of values, over one skeleton and one script."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from privsyn.pages.words import in_markdown, many, number, percent, power, whole

FOLDER = Path(__file__).with_name("templates")


class Section(NamedTuple):
    """A section of a page: the block of the page's template that shows it, its title, and a short title."""

    name: str
    title: str
    short: str = ""


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


def environment() -> Environment:
    """Return the template environment with its filters."""
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
        "count": whole,
        "power": power,
        "many": many,
        "cell": in_markdown,
    }
    return templates
