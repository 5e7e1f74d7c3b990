"""Everything about real tables: what is public about them, how cells become codes, how files are read.

The kinds of constraint are registered here, each under its name in a schema file.
"""

from privsyn.table.enforcement.allowed import Allowed
from privsyn.table.enforcement.determined import Determined
from privsyn.table.enforcement.elapsed import Elapsed
from privsyn.table.enforcement.equal import Equal
from privsyn.table.enforcement.forbidden import Forbidden, MissingWhen
from privsyn.table.enforcement.increasing import Increasing
from privsyn.table.enforcement.lookup import Lookup
from privsyn.table.enforcement.total import Total
from privsyn.table.enforcement.within import Within
from privsyn.table.schema.constraint import CONSTRAINTS

CONSTRAINTS["forbidden"] = Forbidden
CONSTRAINTS["allowed"] = Allowed
CONSTRAINTS["determined"] = Determined
CONSTRAINTS["lookup"] = Lookup
CONSTRAINTS["within"] = Within
CONSTRAINTS["increasing"] = Increasing
CONSTRAINTS["total"] = Total
CONSTRAINTS["elapsed"] = Elapsed
CONSTRAINTS["equal"] = Equal
CONSTRAINTS["missing"] = MissingWhen
