"""The screens: three steps with their parts, what each shows, and what its buttons do."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader

from privsyn.app.choices import ABOUT, OUTPUTS, SCHEMA
from privsyn.app.column_entries import Form, field, in_the_form
from privsyn.app.command import Command
from privsyn.app.comparison import COMPARISON, compare, show_compare, stop_comparing
from privsyn.app.linking import draft_links, leave_links, save_links, show_tables
from privsyn.app.people import (
    choose,
    choose_table,
    confirm_all,
    draft,
    draft_rules,
    leave_people,
    reread,
    save_people,
    show_choose,
    show_people,
    show_table,
)
from privsyn.app.quality import quality_of
from privsyn.app.results import ALL, listed, size
from privsyn.app.running import cancel, save_run, show_run, start
from privsyn.app.session import Session
from privsyn.errors import InputError
from privsyn.pages.sections import FOLDER as PAGES
from privsyn.pages.sections import environment
from privsyn.release.release import load
from privsyn.studies.publication.data_sheet import sheet
from privsyn.studies.publication.public_page import report

TEMPLATES = Path(__file__).with_name("templates")


@dataclass(frozen=True)
class Screen:
    """One screen: its name in the address, its title, and what it shows and does.

    Parameters
    ----------
    name, title : str
    question : str
        The one question that it asks.
    show : callable
        Returns what the template shows, by name.
    actions : mapping of a button to a callable
        Each takes the form, and returns the name of the next screen.
    ready : callable
        Whether it can be shown yet.
    part_of : str
        The step that it is a part of. It is no step of its own.
    """

    name: str
    title: str
    question: str
    show: Callable[[Session], dict[str, Any]]
    actions: Mapping[str, Callable[[Session, Form], str]]
    ready: Callable[[Session], bool]
    part_of: str = ""


def show_result(session: Session) -> dict[str, Any]:
    """Show what the run lost, its files, and the synthetic rows of a table beside the release's estimates."""
    choices, job = session.made_from, session.job
    if job is None:
        raise InputError("there is no run yet")
    at = choices.at
    typed = {name: choices.about.get(name, "") for name in ABOUT} | session.refused
    session.refused = {}
    if (job, at) not in session.quality:
        model = session.results / OUTPUTS["--model"]
        session.quality[job, at] = quality_of(model, session.results / choices.out, at)
    quality, warned = session.quality[job, at], {line.strip() for line in job.complaints}
    compared = (session.results / COMPARISON).is_file() and session.comparison is not None
    command = Command(choices)
    return {
        "choices": choices,
        "tables_shown": [*choices.private],
        "warnings": [*map(in_the_form, job.complaints)],
        "about": ABOUT,
        "typed": typed,
        "has_page": (session.results / OUTPUTS["--public-report"]).is_file(),
        "messages": [*map(in_the_form, job.messages)],
        "files": listed(session.results),
        "all": ALL,
        "private": COMPARISON if compared else "",
        "command": command,
        "spent": command.spent()[1],
        **quality,
        "losses": [in_the_form(line) for line in quality["losses"] if line not in warned],
    }


def publish(session: Session, form: Form) -> str:
    """Write who publishes into the page, the data sheet, the schema and the model. It costs no privacy."""
    choices, folder = session.made_from, session.results
    session.refused = {name: field(form, name).strip() for name in ABOUT}
    about = {name: words for name, words in session.refused.items() if words}
    release = load(folder / OUTPUTS["--model"]).with_about(about)
    release.save(folder / OUTPUTS["--model"])
    report(release, folder / OUTPUTS["--public-report"])
    sheet(release, folder / OUTPUTS["--sheet"], data=folder / choices.out)
    choices.about, session.refused = choices.about | about, {}
    if session.choices is not None and session.choices.listed == choices.listed:
        session.choices.about = dict(choices.about)
    (folder / SCHEMA).write_text(choices.schema_text(), encoding="utf-8")
    return "result"


def look_at(session: Session, form: Form) -> str:
    """Show another table."""
    session.made_from.show(field(form, "do").partition(" ")[2])
    return "result"


def forget(session: Session, form: Form) -> str:
    """Remove all files and choices, once the person has said that nothing more is needed."""
    if "sure" not in form:
        raise InputError("say first that you have taken what you need")
    session.forget()
    return "choose"


SCREENS = {
    screen.name: screen
    for screen in (
        Screen(
            "choose",
            "Choose",
            "Which table?",
            show_choose,
            {"choose": choose, "table": choose_table},
            lambda session: True,
            part_of="people",
        ),
        Screen(
            "tables",
            "Tables",
            "How do the tables hang together?",
            show_tables,
            {"reread": reread, "draft": draft_links, "save": save_links, "next": leave_links},
            lambda session: session.choices is not None and session.choices.linked,
            part_of="people",
        ),
        Screen(
            "people",
            "Table and people",
            "Whom does it protect, and what is it for?",
            show_people,
            {
                "reread": reread,
                "draft": draft,
                "rules": draft_rules,
                "save": save_people,
                "show": show_table,
                "confirm": confirm_all,
                "next": leave_people,
            },
            lambda session: session.choices is not None and not session.choices.problem_of_links(),
        ),
        Screen(
            "run",
            "Run",
            "How much may it cost?",
            show_run,
            {"save": save_run, "start": start, "cancel": cancel},
            lambda session: session.choices is not None and session.choices.protects,
        ),
        Screen(
            "result",
            "Result",
            "Is it good enough?",
            show_result,
            {"show": look_at, "about": publish, "forget": forget},
            lambda session: session.made,
        ),
        Screen(
            "compare",
            "Compare",
            "How far is it from the real rows?",
            show_compare,
            {"compare": compare, "stop": stop_comparing},
            lambda session: session.made,
            part_of="result",
        ),
    )
}
"""All screens, in the order of a person's way through them."""


def render(name: str, session: Session, values: dict[str, Any]) -> str:
    """Return a screen as HTML."""
    steps = [(screen, screen.ready(session)) for screen in SCREENS.values() if not screen.part_of]
    problem, session.problem = session.problem, ""
    page = _environment().get_template(f"{name}.html")
    return page.render(values, screen=SCREENS[name], screens=steps, problem=problem)


@cache
def _environment() -> Environment:
    """Return the template environment of the pages, with the templates and filters of the screens."""
    templates = environment().overlay(loader=FileSystemLoader([TEMPLATES, PAGES]))
    templates.filters = templates.filters | {"size": size, "in_the_form": in_the_form}
    return templates
