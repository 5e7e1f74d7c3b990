"""Screens as HTML: the templates and their filters."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from jinja2 import FileSystemLoader

from privsyn.app.screens import SCREENS
from privsyn.app.session import Session
from privsyn.pages.sections import FOLDER as TEMPLATES
from privsyn.pages.sections import environment

FOLDER = Path(__file__).with_name("templates")


def render(name: str, session: Session, values: dict[str, Any]) -> str:
    """Return a screen as text."""
    templates = environment()
    templates.loader = FileSystemLoader([FOLDER, TEMPLATES])
    templates.filters["size"] = size
    screens = [(each, each.ready(session)) for each in SCREENS.values() if not each.tab_of]
    problem, session.problem = session.problem, ""
    page = templates.get_template(f"{name}.html")
    return page.render(values, screen=SCREENS[name], screens=screens, problem=problem)


def size(count: int) -> str:
    """Return the size of a file.

    >>> size(512), size(20_000), size(3_500_000)
    ('1 kB', '20 kB', '3.5 MB')
    """
    return f"{max(count / 1e3, 1):.0f} kB" if count < 1e6 else f"{count / 1e6:.1f} MB"
