"""The public page: a release as one web page. It reads no row and costs no privacy."""

from __future__ import annotations

from os import PathLike

from privsyn.arguments import check_release
from privsyn.files import atomic_path
from privsyn.release.release import Release
from privsyn.studies.publication.linked_page import render_linked
from privsyn.studies.publication.tiles import render_table
from privsyn.synthesizer import PrivSyn


def report(release: Release | PrivSyn, path: str | PathLike[str]) -> None:
    """Write the released counts, their error bars and the privacy cost to a web page, in one file.

    It uses only the release, so it may be published wherever the release may. The page of several tables also
    shows how they are linked.

    Parameters
    ----------
    release : Release or PrivSyn
        The result of `load`, or a fitted model.
    path : path

    Raises
    ------
    InputError
        If the file cannot be written.
    """
    page = render(check_release(release))
    with atomic_path(path) as partial:
        partial.write_text(page, encoding="utf-8")


def render(release: Release) -> str:
    """Return the page of one table, or of several, as text."""
    return render_linked(release) if release.single is None else render_table(release.single)
