"""Scripts that measure: what they put in a stage's place fits there, and few look behind public names."""

from __future__ import annotations

import ast
import re
from importlib import import_module
from inspect import Parameter, signature

import pandas as pd
import pytest
from scripts import FOLDER, NAMES, imported, needed

import privsyn
from privsyn.methods.budget import LEAST_ONE_WAYS, one_way_share

pytestmark = needed

# A script that looks behind the public names, and what for.
INSIDE = {
    "ablations": "stages are replaced",
    "claims_checks": "the survey of the demo, and ledgers that are promises alone",
    "contributors": "contributors in place of people, collectors that are killed, and the noise of each",
    "continual": "how a budget is divided among months",
    "error_bars": "real counts in the codes of a release",
    "forecast": "models are trained, and nothing else is scored",
    "models": "writes the models that the package ships",
    "ordered": "stages are replaced",
    "paper": "stages are replaced",
    "published_schemes": "the program's noise, share by share",
    "randomised": "the tables of a release and their errors",
    "relationships": "real counts in the codes of a release, and the words beside them",
    "robustness": "independent columns with the whole budget",
    "several_owners": "a schema is written to a file",
    "small_claims": "the program's noise at a given sigma, and a file written by a schema",
    "unprepared": "drafts a schema, and which columns of a release are identifiers",
    "runs": "the measures of a sweep, run by run",
    "verdicts": "many verdicts on one release",
}
PARTS = {"codec", "fitted"}  # of a release, that say how it is made


@pytest.fixture(scope="module")
def variants():
    """All variants of these scripts, by the script's name."""
    with imported("ablations", "ordered", "paper") as scripts:
        return {
            "ablations": scripts["ablations"].ABLATIONS,
            "ordered": scripts["ordered"].STEPS,
            "paper": scripts["paper"].STAGES,
        }


def call(of):
    """How a function may be called: all positional arguments by place, then all that can be by name."""
    said = signature(of).parameters.values()
    named = [p.name for p in said if p.kind is Parameter.KEYWORD_ONLY]
    placed = [p.name for p in said if p.kind is Parameter.POSITIONAL_OR_KEYWORD]
    return placed, named


def test_one_ways_get_a_tenth_whatever_the_noise_where_the_variant_says_so(variants, monkeypatch):
    (variant,) = (each for each in variants["ablations"] if each.name == "one-ways always a tenth")
    for name, value in variant.replaced.items():
        monkeypatch.setattr(name, value)
    assert one_way_share(1.0, 1.0) == LEAST_ONE_WAYS


@pytest.mark.parametrize("script", ["ablations", "ordered", "paper"])
def test_a_stand_in_can_be_called_as_what_it_stands_for(variants, script):
    replaced = [item for variant in variants[script] for item in variant.replaced.items()]
    assert replaced
    for name, stand_in in replaced:
        module, _, attribute = name.rpartition(".")
        real = getattr(import_module(module), attribute)
        assert callable(real) == callable(stand_in), name
        if callable(real):
            placed, named = call(real)
            signature(stand_in).bind(*placed, **dict.fromkeys(named))
            signature(stand_in).bind(**dict.fromkeys([*placed, *named]))


ROWS_AND_PAGES = {
    "ablations": ("algorithm.md", "ablations", ["ablations.csv"]),
    "ordered": ("algorithm.md", "ordered", ["ordered.csv"]),
    "error_bars": ("inference.md", "error-bars", ["error_bars.csv"]),
    "draws": ("inference.md", "draws", ["draws.csv"]),
    "weights": ("inference.md", "weights", ["weights.csv"]),
    "forecast": ("engineer.md", "forecast", ["forecast.csv"]),
    "drift": ("engineer.md", "drift", ["drift.csv"]),
    "luck": ("results.md", "luck", ["luck.csv"]),
    "direct": ("results.md", "direct", ["direct.csv"]),
    "linked_scores": ("linked.md", "linked", ["linked_scores.csv"]),
    "growth": ("performance.md", "growth", ["growth.csv"]),
    "verdicts": ("publisher.md", "verdicts", ["verdicts.csv"]),
    "relationships": ("publisher.md", "relationships", ["relationships.csv"]),
    "paper": (
        "paper.md",
        "paper",
        ["paper.csv", "paper_curves.csv", "paper_stages.csv", "paper_selection.csv"],
    ),
}
"""Of a script, the page and the section that it writes, and the rows from which it does."""
VERSION = re.compile(r"privsyn \d+\.\d+\.\d+")


@pytest.mark.parametrize("script", ROWS_AND_PAGES)
def test_a_section_of_a_page_is_what_its_script_makes_of_the_rows(script):
    page, section, files = ROWS_AND_PAGES[script]
    with imported(script) as scripts:
        text = scripts[script].section(*(pd.read_csv(FOLDER / name) for name in files))
    written = (FOLDER.parent / "docs" / page).read_text(encoding="utf-8")
    written = written.split(f"<!-- {section}: begin -->\n")[1].split(f"<!-- {section}: end -->")[0]
    lines, written_lines = (
        [VERSION.sub("", line) for line in part.strip().splitlines() if "python experiments/" not in line]
        for part in (text, written)
    )
    assert lines == written_lines


def looks_inside(tree):
    """Whether a script imports from below `privsyn`, or a name that is not public, or opens a release."""
    for node in ast.walk(tree):
        match node:
            case ast.ImportFrom(module="privsyn", names=names):
                yield not {name.name for name in names} <= set(privsyn.__all__)
            case ast.ImportFrom(module=str(module)):
                yield module.startswith("privsyn.")
            case ast.Import(names=names):
                yield any(name.name.startswith("privsyn.") for name in names)
            case ast.Attribute(attr=attribute):
                yield attribute in PARTS


def test_scripts_use_public_names_alone_but_for_those_that_are_listed():
    inside = {
        name for name in NAMES if any(looks_inside(ast.parse((FOLDER / f"{name}.py").read_text("utf-8"))))
    }
    assert inside == set(INSIDE)
