"""The ledger of a run, and what every run takes as public."""

from __future__ import annotations

from importlib.metadata import version
from typing import TYPE_CHECKING

from privsyn.private.ledger import Ledger
from privsyn.private.randomised_response import LocalPromise, local_epsilon
from privsyn.private.spend import Spend

if TYPE_CHECKING:
    from privsyn.private.noise import Noise
    from privsyn.settings import Settings

VERSION = version("privsyn")  # looked up before any run: a paid run must not fail for want of it

# What every run takes as public, in the words of the ledger.
PUBLIC = (
    "the names, the order and the dtypes of the columns, the type of each category column's values,"
    " and which columns Arrow declares not null",
    "all that the schema says, if there is one",
    "the settings",
)

# The bound on each person's rows relies on these facts too.
OF_PERSONS = (
    "that one person has one identifier in {!r}",
    "that two persons never share one in {!r}, where 7 and 007 are two identifiers",
)

BEFORE = (
    "randomised response on the respondents' side; exact counts of the randomised table, no further noise"
)
NOW = "randomised response, exact draws from operating system entropy"

RANDOMISED = "that the respondents randomised {} as the schema says, each cell on its own"
"""The local promise relies on this: no program can see it in a table."""


def ledger_of_run(
    spends: tuple[Spend, ...],
    settings: Settings,
    noise: Noise,
    inputs: tuple[str, ...],
    local: tuple[LocalPromise, ...] = (),
) -> Ledger:
    """Return the ledger of a run that put questions to a private table."""
    epsilon, delta = settings.promise
    unit = settings.unit
    of_persons = () if unit is None else [fact.format(unit) for fact in OF_PERSONS]
    return Ledger(
        spends,
        promised_epsilon=epsilon,
        promised_delta=delta,
        accounting=settings.algorithm.accounting_of(noise.law),
        randomness=noise.name,
        private=noise.private,
        public_inputs=(*PUBLIC, *of_persons, *facts_of(local), *inputs),
        version=VERSION,
        unit=unit,
        rows_per_unit=None if unit is None else settings.most_rows,
        local=local,
    )


def ledger_of_randomised(
    local: tuple[LocalPromise, ...],
    inputs: tuple[str, ...],
    randomness: str = BEFORE,
    unchanged: tuple[str, ...] = (),
) -> Ledger:
    """Return the ledger of randomised columns without any question to a private table.

    It is not private if columns leave `unchanged`.
    """
    return Ledger(
        (),
        promised_epsilon=local_epsilon(local),
        promised_delta=0.0,
        accounting="pure",
        randomness=randomness,
        private=not unchanged,
        public_inputs=(*PUBLIC, "the number of records, and whose they are", *inputs),
        version=VERSION,
        local=local,
        unchanged=unchanged,
    )


def facts_of(local: tuple[LocalPromise, ...]) -> tuple[str, ...]:
    """Return what the local promise relies on."""
    return (RANDOMISED.format(", ".join(repr(each.column) for each in local)),) if local else ()
