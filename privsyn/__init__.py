"""privsyn: a private table in, a differentially private synthetic table out."""

from importlib.metadata import version as _version

from privsyn.errors import InputError
from privsyn.release import Release, load
from privsyn.synthesizer import PrivSyn
from privsyn.table.schema import Categorical, Datetime, Numerical, Schema
from privsyn.table.schema_file import read_schema

__version__ = _version("privsyn")
__all__ = [
    "Categorical",
    "Datetime",
    "InputError",
    "Numerical",
    "PrivSyn",
    "Release",
    "Schema",
    "load",
    "read_schema",
]
