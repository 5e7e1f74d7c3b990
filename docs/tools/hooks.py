"""Pages link to files beside docs/ as a reader of the repository needs it; the site takes those files along.

A link to `../SECURITY.md` becomes one to `SECURITY.md.txt` in the site: as text, for what it links to in turn
is not a page. The page of the command line gets the help of each command, and the gallery the public page of
each published model.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

import privsyn
from privsyn.release.published.models import PUBLISHED

ROOT = Path(__file__).parents[2]
OUTSIDE = re.compile(r"\]\(\.\./([\w./-]+)\)")


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """Show a list of versions if mike builds one of several; a site of one version has none to fetch."""
    if "MIKE_DOCS_VERSION" in os.environ:
        config.extra["version"] = {"provider": "mike"}
    return config


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add what any page links to outside docs/; a link to nothing stays as it is, and fails the build."""
    named = {name for page in files.documentation_pages() for name in OUTSIDE.findall(page.content_string)}
    for name in sorted(named):
        if (ROOT / name).is_file():
            files.append(File.generated(config, _place(name), abs_src_path=str(ROOT / name)))
    for model in PUBLISHED:
        files.append(File.generated(config, f"gallery/{model.name}.html", content=_public_page(model.name)))
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Lead links to where the files are now, and add the help of all commands to the page cli.md."""
    del config

    def moved(link: re.Match) -> str:
        place = _place(link[1])
        return f"]({place})" if files.get_file_from_path(place) else link[0]

    if page.file.src_uri == "cli.md":
        markdown += _commands()
    if page.file.src_uri == "gallery.md":
        for model in PUBLISHED:
            markdown = markdown.replace(
                f"| `privsyn gallery {model.name}` |", f"| [{model.name}.html](gallery/{model.name}.html) |"
            )
    return OUTSIDE.sub(moved, markdown)


def on_post_page(output: str, page: Page, config: MkDocsConfig) -> str:
    """Name the dialog of the search, which the theme leaves without a name for a screen reader."""
    del page, config
    return output.replace('class="md-search" ', 'class="md-search" aria-label="Search" ')


def _commands() -> str:
    """Return the help of all commands as Markdown, without its title."""
    command = [sys.executable, "-m", "typer", "privsyn.cli.main", "utils", "docs", "--name", "privsyn"]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.partition("\n")[2]


def _public_page(name: str) -> str:
    """Return the public page of a published model."""
    with tempfile.TemporaryDirectory() as scratch:
        page = Path(scratch) / f"{name}.html"
        privsyn.report(privsyn.load(name), page)
        return page.read_text(encoding="utf-8")


def _place(name: str) -> str:
    return f"files/{name}" + (".txt" if name.endswith(".md") else "")
