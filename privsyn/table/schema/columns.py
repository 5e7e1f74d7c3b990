"""The kinds of column, each by its name in a schema file."""

from __future__ import annotations

from privsyn.table.encoding.dtypes import Dtype, family
from privsyn.table.kinds.categorical import Categorical
from privsyn.table.kinds.column import COLUMNS, Coded, Column
from privsyn.table.kinds.dates import Datetime
from privsyn.table.kinds.generated import Faker, Generated, Identifier, Text
from privsyn.table.kinds.numerical import Numerical
from privsyn.table.kinds.ordinal import Ordinal
from privsyn.table.kinds.times import Duration, Time
from privsyn.table.kinds.weight import Weight

__all__ = ["COLUMNS", "Categorical", "Coded", "Column", "Datetime", "Duration", "Faker", "Generated"]
__all__ += ["Identifier", "Numerical", "Ordinal", "Text", "Time", "Weight", "column_of"]

Categorical.register_as("categorical")
Numerical.register_as("numerical")
Datetime.register_as("datetime")
Time.register_as("time")
Duration.register_as("duration")
Identifier.register_as("identifier")
Faker.register_as("faker")
Text.register_as("text")
Weight.register_as("weight")


def column_of(dtype: Dtype) -> Column:
    """Return the column type that a dtype implies."""
    match family(dtype):
        case "integer" | "real" | "decimal":
            return Numerical()
        case "datetime":
            return Datetime()
        case "time":
            return Time()
        case "duration":
            return Duration()
        case "binary":
            return Text()
        case _:
            return Categorical()
