"""A private table in, a differentially private synthetic table out."""

from importlib import import_module as _import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    __version__: str

    from privsyn import mechanisms
    from privsyn.collectors.collectors import Collectors
    from privsyn.errors import InputError
    from privsyn.evaluation.attacks.attack import attack
    from privsyn.evaluation.attacks.reconstruction import Reconstruction, reconstruct
    from privsyn.evaluation.attacks.risks import Risks
    from privsyn.evaluation.distilled import Distilled
    from privsyn.evaluation.evaluate import evaluate
    from privsyn.evaluation.scores import Scores
    from privsyn.methods.randomise import randomize
    from privsyn.notebook import progress_bar
    from privsyn.owners.owners import Owners
    from privsyn.private.ledger import Ledger
    from privsyn.release.accuracy.accuracy import Accuracy
    from privsyn.release.draws.draws import Draws
    from privsyn.release.draws.pooling import pool, pooled
    from privsyn.release.from_marginals.from_marginals import from_marginals
    from privsyn.release.places import PlaceLevel
    from privsyn.release.questions.answer import Answer
    from privsyn.release.release import Release, load
    from privsyn.studies.dummy import dummy
    from privsyn.studies.planning.plan import Plan
    from privsyn.studies.planning.planner import plan
    from privsyn.studies.publication.catalogues.catalogues import catalogue
    from privsyn.studies.publication.data_sheet import sheet
    from privsyn.studies.publication.public_page import report
    from privsyn.studies.publication.statement import statement
    from privsyn.studies.sweep import sweep
    from privsyn.synthesizer import PrivSyn
    from privsyn.table.codebooks.schema_text import read_codebook
    from privsyn.table.database.database import Database
    from privsyn.table.database.declared import Table
    from privsyn.table.enforcement.allowed import Allowed
    from privsyn.table.enforcement.determined import Determined
    from privsyn.table.enforcement.elapsed import Elapsed
    from privsyn.table.enforcement.equal import Equal
    from privsyn.table.enforcement.forbidden import Forbidden, MissingWhen
    from privsyn.table.enforcement.increasing import Increasing
    from privsyn.table.enforcement.lookup import Lookup
    from privsyn.table.enforcement.total import Total
    from privsyn.table.enforcement.within import Within
    from privsyn.table.kinds.csv_format import CsvFormat
    from privsyn.table.schema.about import About
    from privsyn.table.schema.columns import (
        Categorical,
        Datetime,
        Duration,
        Faker,
        Identifier,
        Numerical,
        Text,
        Time,
        Weight,
    )
    from privsyn.table.schema.schema import Schema
    from privsyn.table.schema.yaml_file import read_schema
    from privsyn.training import TrainOnSynthetic

__all__ = [
    "About",
    "Accuracy",
    "Allowed",
    "Answer",
    "Categorical",
    "Collectors",
    "CsvFormat",
    "Database",
    "Datetime",
    "Determined",
    "Distilled",
    "Draws",
    "Duration",
    "Elapsed",
    "Equal",
    "Faker",
    "Forbidden",
    "Identifier",
    "Increasing",
    "InputError",
    "Ledger",
    "Lookup",
    "MissingWhen",
    "Numerical",
    "Owners",
    "PlaceLevel",
    "Plan",
    "PrivSyn",
    "Reconstruction",
    "Release",
    "Risks",
    "Schema",
    "Scores",
    "Table",
    "Text",
    "Time",
    "Total",
    "TrainOnSynthetic",
    "Weight",
    "Within",
    "attack",
    "catalogue",
    "dummy",
    "evaluate",
    "from_marginals",
    "load",
    "mechanisms",
    "plan",
    "pool",
    "pooled",
    "progress_bar",
    "randomize",
    "read_codebook",
    "read_schema",
    "reconstruct",
    "report",
    "sheet",
    "statement",
    "sweep",
]

# Each name is imported when it is first asked for: `privsyn --help` needs neither numba nor pandas.
_HOMES = {
    "privsyn.collectors.collectors": ("Collectors",),
    "privsyn.errors": ("InputError",),
    "privsyn.evaluation.attacks.attack": ("attack",),
    "privsyn.evaluation.attacks.reconstruction": ("Reconstruction", "reconstruct"),
    "privsyn.evaluation.distilled": ("Distilled",),
    "privsyn.evaluation.evaluate": ("evaluate",),
    "privsyn.evaluation.attacks.risks": ("Risks",),
    "privsyn.evaluation.scores": ("Scores",),
    "privsyn.studies.dummy": ("dummy",),
    "privsyn.studies.planning.plan": ("Plan",),
    "privsyn.studies.planning.planner": ("plan",),
    "privsyn.release.draws.draws": ("Draws",),
    "privsyn.release.draws.pooling": ("pool", "pooled"),
    "privsyn.release.from_marginals.from_marginals": ("from_marginals",),
    "privsyn.methods.randomise": ("randomize",),
    "privsyn.notebook": ("progress_bar",),
    "privsyn.owners.owners": ("Owners",),
    "privsyn.release.places": ("PlaceLevel",),
    "privsyn.release.questions.answer": ("Answer",),
    "privsyn.release.release": ("Release", "load"),
    "privsyn.studies.publication.catalogues.catalogues": ("catalogue",),
    "privsyn.studies.publication.public_page": ("report",),
    "privsyn.studies.publication.statement": ("statement",),
    "privsyn.studies.publication.data_sheet": ("sheet",),
    "privsyn.studies.sweep": ("sweep",),
    "privsyn.synthesizer": ("PrivSyn",),
    "privsyn.private.ledger": ("Ledger",),
    "privsyn.release.accuracy.accuracy": ("Accuracy",),
    "privsyn.table.kinds.csv_format": ("CsvFormat",),
    "privsyn.table.schema.columns": (
        *(
            "Categorical",
            "Datetime",
            "Duration",
            "Faker",
            "Identifier",
            "Numerical",
            "Text",
            "Time",
            "Weight",
        ),
    ),
    "privsyn.table.enforcement.allowed": ("Allowed",),
    "privsyn.table.enforcement.determined": ("Determined",),
    "privsyn.table.enforcement.elapsed": ("Elapsed",),
    "privsyn.table.enforcement.equal": ("Equal",),
    "privsyn.table.enforcement.forbidden": ("Forbidden", "MissingWhen"),
    "privsyn.table.enforcement.increasing": ("Increasing",),
    "privsyn.table.enforcement.lookup": ("Lookup",),
    "privsyn.table.enforcement.total": ("Total",),
    "privsyn.table.enforcement.within": ("Within",),
    "privsyn.table.codebooks.schema_text": ("read_codebook",),
    "privsyn.table.database.database": ("Database",),
    "privsyn.table.database.declared": ("Table",),
    "privsyn.table.schema.about": ("About",),
    "privsyn.table.schema.schema": ("Schema",),
    "privsyn.table.schema.yaml_file": ("read_schema",),
    "privsyn.training": ("TrainOnSynthetic",),
}


def __getattr__(name: str) -> Any:
    if name == "__version__":
        from importlib.metadata import version

        return version("privsyn")
    if name == "mechanisms":
        return _import_module("privsyn.mechanisms")
    for home, names in _HOMES.items():
        if name in names:
            value = globals()[name] = getattr(_import_module(home), name)
            return value
    raise AttributeError(f"module 'privsyn' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__, "__version__"})
