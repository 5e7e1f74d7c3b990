"""The public report: what a release says of itself, as one web page. It reads no row and costs no privacy."""

from __future__ import annotations

from os import PathLike
from typing import TYPE_CHECKING, Any

from privsyn.evaluation.report.svg import whiskers
from privsyn.evaluation.report.template import environment
from privsyn.files import atomic_path
from privsyn.release.accuracy import Accuracy
from privsyn.release.release import Release

if TYPE_CHECKING:
    import pandas as pd

MOST_VALUES = 32
"""Of a column that has an order all are shown; of another the most frequent, so many."""

MOST_TABLES = 12
"""That are shown at once, those most in error; the rest on demand."""


def report(release: Release, path: str | PathLike[str]) -> None:
    """Write what was released, how sure it is and what it cost to a web page, in one file.

    It is made of the release alone: it may be published wherever the release may.

    Parameters
    ----------
    release : Release
        As `load` reads it, or ``model.release_``.
    path : path

    Raises
    ------
    InputError
        If the file cannot be written.
    """
    page = render(release)
    with atomic_path(path) as place:
        place.write_text(page, encoding="utf-8")


def render(release: Release) -> str:
    """The page as text."""
    accuracy = release.accuracy
    tables = accuracy.tables
    bigger = tables[tables["order"] > 1].sort_values("expected_error", ascending=False, kind="stable")
    return (
        environment()
        .get_template("release.html")
        .render(
            ledger=release.ledger.to_dict(),
            rows=release.learnt.total,
            columns=[_column(release, accuracy, name) for name in release.codec.domain],
            tables=bigger.to_dict("records"),
            most=MOST_TABLES,
        )
    )


def _column(release: Release, accuracy: Accuracy, name: str) -> dict[str, Any]:
    """One column's counts in a picture."""
    counts: pd.DataFrame = accuracy.counts(name)
    place = release.codec.domain.names.index(name)
    if not release.learnt.merging.merged.ordered[place]:
        counts = counts.sort_values("estimate", ascending=False, kind="stable").head(MOST_VALUES)
    return {
        "name": name,
        "error": release.learnt.certainties[place].error,
        "more": release.learnt.merging.merged.sizes[place] - len(counts),
        "picture": whiskers(
            counts[name].tolist(), *(counts[part].to_numpy() for part in ("estimate", "low", "high"))
        ),
    }
