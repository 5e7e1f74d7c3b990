"""Pages link to files beside docs/ as a reader of the repository needs it; the site takes those files along.

A link to `../SECURITY.md` becomes one to `SECURITY.md.txt` in the site: as text, for what it links to in turn
is not a page.
"""

from __future__ import annotations

import re
from pathlib import Path

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

ROOT = Path(__file__).parents[2]
OUTSIDE = re.compile(r"\]\(\.\./([\w./-]+)\)")


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add what any page links to outside docs/; a link to nothing stays as it is, and fails the build."""
    named = {name for page in files.documentation_pages() for name in OUTSIDE.findall(page.content_string)}
    for name in sorted(named):
        if (ROOT / name).is_file():
            files.append(File.generated(config, _place(name), abs_src_path=str(ROOT / name)))
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Lead links to where the files are now."""
    del page, config

    def moved(link: re.Match) -> str:
        place = _place(link[1])
        return f"]({place})" if files.get_file_from_path(place) else link[0]

    return OUTSIDE.sub(moved, markdown)


def _place(name: str) -> str:
    return f"files/{name}" + (".txt" if name.endswith(".md") else "")
