"""The ledger of a run, and what every run takes as public."""

from __future__ import annotations

from importlib.metadata import version

from privsyn.methods.methods import Method
from privsyn.private.ledger import Ledger
from privsyn.private.local.response import LocalPromise, local_epsilon
from privsyn.private.noise import Noise
from privsyn.private.spend import Spend

# What every run takes as public, in the words of the ledger.
PUBLIC = (
    "the names, the order and the dtypes of the columns, the type of each category column's values,"
    " and which columns Arrow declares not null",
    "all that the schema says",
    "the settings",
)

# The bound on each person's rows relies on these facts too.
OF_PERSONS = (
    "that one person has one identifier in {!r}",
    "that two persons never share one in {!r}, where 7 and 007 are two identifiers",
)

RANDOMISED = "that the respondents randomised {} as the schema says, each cell on its own"
"""The local promise relies on this: no program can see it in a table."""


def ledger_of_run(
    spends: tuple[Spend, ...],
    promise: tuple[float, float],
    noise: Noise,
    method: Method,
    inputs: tuple[str, ...],
    unit: str | None,
    rows_per_unit: int | None,
    local: tuple[LocalPromise, ...] = (),
) -> Ledger:
    """Return the ledger of a run that put questions to a private table."""
    epsilon, delta = promise
    of_persons = () if unit is None else [fact.format(unit) for fact in OF_PERSONS]
    return Ledger(
        spends,
        promised_epsilon=epsilon,
        promised_delta=delta,
        accounting=method.accounting_of(noise.law),
        randomness=noise.name,
        private=noise.private,
        public_inputs=(*PUBLIC, *of_persons, *_facts(local), *inputs),
        version=version("privsyn"),
        unit=unit,
        rows_per_unit=rows_per_unit,
        local=local,
    )


def ledger_of_randomised(local: tuple[LocalPromise, ...], inputs: tuple[str, ...]) -> Ledger:
    """Return the ledger of a table in which the respondents randomised all columns that are released."""
    return Ledger(
        (),
        promised_epsilon=local_epsilon(local),
        promised_delta=0.0,
        accounting="pure",
        randomness="randomised response on the respondents' side; no further noise",
        private=True,
        public_inputs=(*PUBLIC, "the number of records, and whose they are", *_facts(local), *inputs),
        version=version("privsyn"),
        local=local,
    )


def _facts(local: tuple[LocalPromise, ...]) -> tuple[str, ...]:
    return (RANDOMISED.format(", ".join(repr(each.column) for each in local)),) if local else ()
