"""privsyn: a private table in, a differentially private synthetic table out."""

from importlib import import_module as _import_module
from importlib.metadata import version as _version
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from privsyn.errors import InputError
    from privsyn.evaluation.attacks import attack
    from privsyn.evaluation.metrics import evaluate
    from privsyn.evaluation.risks import Risks
    from privsyn.evaluation.scores import Scores
    from privsyn.release import Release, load
    from privsyn.studies.planning import Plan, plan
    from privsyn.studies.reporting import report
    from privsyn.studies.sweeping import sweep
    from privsyn.synthesizer import PrivSyn
    from privsyn.table.accuracy import Accuracy
    from privsyn.table.constraints import Allowed, Determined, Forbidden, Increasing, MissingWhen, Total
    from privsyn.table.csv_format import CsvFormat
    from privsyn.table.kinds import Categorical, Identifier, Numerical, Text
    from privsyn.table.schema import Schema
    from privsyn.table.schema_file import read_schema
    from privsyn.table.times import Datetime, Duration, Time

__version__ = _version("privsyn")
__all__ = [
    "Accuracy",
    "Allowed",
    "Categorical",
    "CsvFormat",
    "Datetime",
    "Determined",
    "Duration",
    "Forbidden",
    "Identifier",
    "Increasing",
    "InputError",
    "MissingWhen",
    "Numerical",
    "Plan",
    "PrivSyn",
    "Release",
    "Risks",
    "Schema",
    "Scores",
    "Text",
    "Time",
    "Total",
    "attack",
    "evaluate",
    "load",
    "plan",
    "read_schema",
    "report",
    "sweep",
]

# Each name is imported when it is first asked for: `privsyn --help` needs neither numba nor pandas.
_HOMES = {
    "privsyn.errors": ("InputError",),
    "privsyn.evaluation.attacks": ("attack",),
    "privsyn.evaluation.metrics": ("evaluate",),
    "privsyn.evaluation.risks": ("Risks",),
    "privsyn.evaluation.scores": ("Scores",),
    "privsyn.studies.planning": ("Plan", "plan"),
    "privsyn.release": ("Release", "load"),
    "privsyn.studies.reporting": ("report",),
    "privsyn.studies.sweeping": ("sweep",),
    "privsyn.synthesizer": ("PrivSyn",),
    "privsyn.table.accuracy": ("Accuracy",),
    "privsyn.table.csv_format": ("CsvFormat",),
    "privsyn.table.kinds": ("Categorical", "Identifier", "Numerical", "Text"),
    "privsyn.table.constraints": (
        "Allowed",
        "Determined",
        "Forbidden",
        "Increasing",
        "MissingWhen",
        "Total",
    ),
    "privsyn.table.schema": ("Schema",),
    "privsyn.table.schema_file": ("read_schema",),
    "privsyn.table.times": ("Datetime", "Duration", "Time"),
}


def __getattr__(name: str) -> Any:
    for home, names in _HOMES.items():
        if name in names:
            thing = globals()[name] = getattr(_import_module(home), name)
            return thing
    raise AttributeError(f"module 'privsyn' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
