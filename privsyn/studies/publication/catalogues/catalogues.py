"""Write what catalogues, archives and hubs read beside synthetic tables."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection
from os import PathLike
from pathlib import Path
from typing import Any

from privsyn.arguments import check_path, check_release
from privsyn.errors import InputError, did_you_mean, safe_repr, spelled
from privsyn.files import atomic_path
from privsyn.release.release import Release
from privsyn.studies.publication.catalogues.card import card
from privsyn.studies.publication.catalogues.croissant import croissant
from privsyn.studies.publication.catalogues.datapackage import datapackage
from privsyn.studies.publication.catalogues.dcat import dcat
from privsyn.studies.publication.catalogues.ddi import ddi
from privsyn.studies.publication.catalogues.published_tables import PublishedTables
from privsyn.synthesizer import PrivSyn


def _as_json(make: Callable[[PublishedTables], dict[str, Any]]) -> Callable[[PublishedTables], str]:
    return lambda published: json.dumps(make(published), indent=2, ensure_ascii=False, default=str) + "\n"


ASKED = ("title", "description", "publisher", "contact", "licence", "issued", "keywords", "homepage")
OF_HEALTH = ("access_body",)
"""The publisher's words that catalogues ask for; HealthDCAT-AP asks for more."""

CATALOGUES: dict[str, tuple[str, Callable[[PublishedTables], str]]] = {
    "datapackage": ("datapackage.json", _as_json(datapackage)),
    "croissant": ("croissant.json", _as_json(croissant)),
    "dcat": ("dcat.jsonld", _as_json(dcat)),
    "ddi": ("ddi.xml", ddi),
    "card": ("README.md", card),
}
"""For each catalogue, its file and what makes its text."""


def catalogue(
    release: Release[Any] | PrivSyn,
    data: str | PathLike[str],
    folder: str | PathLike[str] | None = None,
    *,
    only: Collection[str] = (),
) -> list[Path]:
    """Write the files that catalogues, archives and hubs read beside a synthetic table.

    They name the synthetic files without a folder, so keep them in one folder with these. They are made from
    the release, the publisher's words in the schema and the synthetic files. No private row is needed.

    Parameters
    ----------
    release : Release or PrivSyn
        The result of `load`, or a fitted model.
    data : path
        The synthetic table, or the folder of the linked ones. Never give a private table: its number of rows
        and its checksum would be written.
    folder : path, optional
        Where the files are written. Default: beside the synthetic table, or in the folder of the linked ones.
    only : collection of str
        Some of ``datapackage``, ``croissant``, ``dcat``, ``ddi`` and ``card``. Default: all.

    Returns
    -------
    list of Path
        The files, which are overwritten if they exist.

    Raises
    ------
    InputError
        If a file has other columns than the release, is in a database, or cannot be read or written.
    """
    released, source = check_release(release), Path(check_path(data))
    paths = files_of(source, None if folder is None else Path(check_path(folder)), only)
    published = PublishedTables.of(released, source)
    makers = dict(CATALOGUES.values())
    texts = {path: makers[path.name](published) for path in paths}
    for path, text in texts.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        with atomic_path(path) as partial:
            partial.write_text(text, encoding="utf-8")
    return paths


def files_of(data: Path, folder: Path | None, only: Collection[str]) -> list[Path]:
    """Return the files that `catalogue` writes; refuse a name of none.

    >>> files_of(Path("out/rows.csv"), None, ["ddi"])
    [PosixPath('out/ddi.xml')]
    """
    for name in only:
        if name not in CATALOGUES:
            meant = did_you_mean(name, CATALOGUES)
            raise InputError(
                f"{spelled('only')} {safe_repr(name)}: is none of {', '.join(CATALOGUES)}{meant}"
            )
    beside = data if data.is_dir() else data.parent
    files = [file for name, (file, _) in CATALOGUES.items() if not only or name in only]
    return [(beside if folder is None else folder) / file for file in files]


def unsaid(release: Release[Any]) -> list[str]:
    """Return what the publisher has not said and catalogues ask for."""
    words = {} if release.about is None else release.about.to_plain()
    names = ASKED + (OF_HEALTH if "health" in words else ())
    return [name for name in names if name not in words]
