"""The links of all pages lead somewhere, and the site builds. test_every_page_runs.py has their examples."""

from __future__ import annotations

import html
import inspect
import re
import warnings
from pathlib import Path

import pytest
import typer
from fences import FENCE, blocks_of
from mkdocs.commands.build import build
from mkdocs.config import load_config

import privsyn
from privsyn.cli.main import app

ROOT = Path(__file__).parents[1]
PAGES = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/*.md"), *ROOT.glob("datasets/*.md")])


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_and_pictures_lead_somewhere(page):
    text = re.sub(FENCE, "", page.read_text(encoding="utf-8"))
    for link in re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", text):
        assert (page.parent / link).exists(), link


@pytest.mark.parametrize("page", sorted(ROOT.glob("docs/*.md")), ids=lambda page: page.name)
def test_the_first_line_of_a_page_says_for_whom_it_is(page):
    title, blank, first, *_ = page.read_text(encoding="utf-8").splitlines()
    assert title.startswith("# ")
    assert not blank
    assert first.startswith("For ")


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """The folder of the site, built as `make docs` does, but with empty public pages in the gallery.

    test_published.py and the page gallery.md have those of the published models.
    """
    folder = tmp_path_factory.mktemp("site")
    config = load_config(str(ROOT / "mkdocs.yml"), strict=True, site_dir=str(folder))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(privsyn, "report", lambda release, path: path.write_text(""))
        with warnings.catch_warnings(
            action="ignore", category=DeprecationWarning
        ):  # of MkDocs and its plugins
            build(config)  # strict: it raises where it would warn
    return folder


@pytest.mark.slow
def test_the_site_has_every_page_and_asks_nothing_of_the_network(site):
    pages = list(site.glob("*.html"))
    assert {page.stem for page in ROOT.glob("docs/*.md")} <= {page.stem for page in pages}
    for page in pages:
        fetched = re.findall(r"<(?:script|link|img)[^>]+(?:src|href)=\"?(https?:[^\" >]+)", page.read_text())
        assert fetched == [], page.name


@pytest.mark.slow
def test_the_reference_has_every_public_name_and_what_the_pages_ask_of_a_model(site):
    page = (ROOT / "docs" / "api.md").read_text()
    assert set(privsyn.__all__) == set(re.findall(r"^::: privsyn\.(\w+)$", page, re.M))
    listed = {
        f"privsyn.{name}.{member}"
        for name, members in re.findall(r"^::: privsyn\.(\S+)(?:\n +.*)*?\n +members: \[(.*)\]$", page, re.M)
        for member in members.split(", ")
    }
    shown = set(re.findall(r"id=\"?(privsyn\.[\w.]+)", (site / "api.html").read_text()))
    blocks = [block for page in PAGES for block in blocks_of(page)]
    code = "".join(block.text for block in blocks if block.language == "python" and block.text[:3] != ">>>")
    learnt = re.findall(r"^(\w+_) : ", inspect.getdoc(privsyn.PrivSyn), re.M)  # in the class's text
    asked = {f"privsyn.PrivSyn.{name}" for name in re.findall(r"\bmodel\.(\w+)", code) if name not in learnt}
    assert asked
    assert {f"privsyn.{name}" for name in privsyn.__all__} | listed | asked <= shown


@pytest.mark.slow
def test_the_page_of_the_command_line_has_every_command_argument_and_option(site):
    page = html.unescape((site / "cli.html").read_text())
    for name, command in typer.main.get_command(app).commands.items():
        part = re.search(rf'<h2 id="?privsyn-{name}\b.*?(?=<h2|</article)', page, re.S)[0]
        for parameter in command.params:
            is_argument = parameter.param_type_name == "argument"
            assert (parameter.metavar if is_argument else parameter.opts[0]) in part, (name, parameter.name)


def test_pictures_are_small():
    pictures = list((ROOT / "docs" / "pictures").iterdir())
    assert pictures
    most = {".webp": 300_000}  # bytes; a film has several pictures
    assert all(picture.stat().st_size < most.get(picture.suffix, 200_000) for picture in pictures)
    pages = "".join(page.read_text(encoding="utf-8") for page in PAGES)
    assert all(f"pictures/{picture.name}" in pages for picture in pictures)
