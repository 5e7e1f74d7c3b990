"""The kinds of column, each by its name in a schema file."""

from __future__ import annotations

from privsyn.table.schema.categorical import Categorical
from privsyn.table.schema.column_base import COLUMNS, Coded, Column, Ordinal
from privsyn.table.schema.dates import Datetime
from privsyn.table.schema.generated import Faker, Generated, Identifier, Text
from privsyn.table.schema.numerical import Numerical
from privsyn.table.schema.time_columns import Duration, Time

__all__ = [
    "COLUMNS",
    "Categorical",
    "Coded",
    "Column",
    "Datetime",
    "Duration",
    "Faker",
    "Generated",
    "Identifier",
    "Numerical",
    "Ordinal",
    "Text",
    "Time",
]

Categorical.register_as("categorical")
Numerical.register_as("numerical")
Datetime.register_as("datetime")
Time.register_as("time")
Duration.register_as("duration")
Identifier.register_as("identifier")
Faker.register_as("faker")
Text.register_as("text")
