"""Abilities: which settings and arguments a kind of run does not take, and the sentence that refuses each.

Python, the command line and the page ask this table. `spelled` names settings as the user wrote them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from privsyn.errors import InputError, spelled

LINKED = "linked tables take no {this}"
TOGETHER = "rows that belong together ({identifiers}) take no {this}"
METHOD = "method {algorithm!r} takes no {this}"
RANDOMISED = "columns that the respondents randomised take no {this}"
PURE = "{delta} 0 cannot find the {this}"
OWNERS = "several owners take no {this}"
COLLECTORS = "collectors take no {this}"
CLUSTER = "a cluster takes no {this}"
DRAWS = "{draws} takes no {this}"
POPULATION = "{population} takes no {this}"
CHECK = "{check} takes no {this}"
CODEBOOK = "{from} without DATA takes no {this}"
PERSONS = "{unit} takes no {this}"
APART = "{this} needs {identifiers}: it is about rows that belong together"
PLAN = "a plan takes no {this}"
SWEEP = "a sweep takes no {this}"
NOBODY = "{this} needs {unit}, the column that identifies the person"
ALONE = f"{NOBODY}, and {{identifiers}}"
"""The kinds of run, each as the sentence with which it refuses a setting."""

LEAVE_OUT = "leave it out"


@dataclass(frozen=True)
class Refusal:
    """A setting or an argument that a kind of run does not take.

    Parameters
    ----------
    kind : str
        One of the kinds of run above.
    name : str
        The setting or argument.
    advice : str
        What to do, or why.
    label : str
        What the sentence calls it, where that is not its name.
    """

    kind: str
    name: str
    advice: str = LEAVE_OUT
    label: str = ""

    def sentence(self, **facts: object) -> str:
        """Return what the user reads; `facts` are words that only the caller knows.

        >>> Refusal(LINKED, "balance").sentence()
        'linked tables take no balance: leave it out'
        """
        words = _Words(facts)
        words["this"] = (self.label or f"{{{self.name}}}").format_map(words)
        advice = f": {self.advice}"
        if self.kind in (APART, NOBODY, ALONE):  # which say what to do
            advice = "" if self.advice == LEAVE_OUT else f"; {self.advice}"
        return f"{self.kind}{advice}".format_map(words)


class _Words(dict[str, Any]):
    """Facts, and settings as the user wrote them."""

    def __missing__(self, setting: str) -> str:
        return spelled(setting)


RULES = "a rule on the rows of one person, as the schema has,"
ORDERED = "one that is about rows in an order needs {order} too"

CSV = "say it in the schema, under `csv:` of each table"

ABILITIES = (
    Refusal(LINKED, "unit", "the persons are the rows of the table without a parent"),
    Refusal(LINKED, "identifiers", "keys are made for all tables that have one"),
    Refusal(LINKED, "order", "the schema names the order of each table"),
    Refusal(LINKED, "derive", "the schema has the summaries of each table"),
    Refusal(LINKED, "important", "name the columns in the schema, under `important:` of their table"),
    Refusal(LINKED, "target", "take one table alone"),
    Refusal(LINKED, "y", "take one table alone"),
    Refusal(LINKED, "test", "take one table alone"),
    Refusal(LINKED, "accept"),
    Refusal(LINKED, "totals", "take one table alone"),
    Refusal(LINKED, "method"),
    Refusal(LINKED, "balance"),
    Refusal(LINKED, "population", "draw rows of the table without a parent in proportion to its weights"),
    Refusal(LINKED, "draws", "save the draws one by one: their keys are alike", "{draws} in one file"),
    Refusal(LINKED, "delimiter", CSV),
    Refusal(LINKED, "encoding", CSV),
    Refusal(LINKED, "decimal", CSV),
    Refusal(LINKED, "thousands", CSV),
    Refusal(LINKED, "header", CSV),
    Refusal(TOGETHER, "target"),
    Refusal(TOGETHER, "y"),
    Refusal(TOGETHER, "important"),
    Refusal(TOGETHER, "accept"),
    Refusal(TOGETHER, "totals"),
    Refusal(TOGETHER, "method"),
    Refusal(
        TOGETHER, "weight", "declare it `kind: numerical`, or leave out {identifiers}", "column of weights"
    ),
    Refusal(TOGETHER, "population"),
    Refusal(TOGETHER, "balance"),
    Refusal(TOGETHER, "draws", "save the draws one by one: their keys are alike", "{draws} in one file"),
    Refusal(PERSONS, "totals", "they count all rows, and of a person with many rows a run counts some"),
    Refusal(ALONE, "rules", ORDERED, label=RULES),
    Refusal(ALONE, "order"),
    Refusal(ALONE, "derive"),
    Refusal(APART, "order"),
    Refusal(APART, "derive"),
    Refusal(APART, "rules", ORDERED, label=RULES),
    Refusal(NOBODY, "rules", label=RULES),
    Refusal(NOBODY, "identifiers"),
    Refusal(NOBODY, "rows_per_unit"),
    Refusal(NOBODY, "order"),
    Refusal(METHOD, "target", "leave out {target}, or {method}"),
    Refusal(
        METHOD, "matters_most", "leave out {important}, also in the schema, or {method}", label="{important}"
    ),
    Refusal(
        METHOD, "weight", "declare it `kind: numerical`, or leave out {method}", label="column of weights"
    ),
    Refusal(METHOD, "pure", "give one such as 1e-9", label="{delta} of 0"),
    Refusal(METHOD, "keep", "leave out keep, or {method}", label="randomised columns"),
    Refusal(METHOD, "totals", "leave out {totals}, or {method}"),
    Refusal(METHOD, "parameters", "leave out {parameters}, or add {method}"),
    Refusal(
        RANDOMISED,
        "matters_most",
        "leave out {important}, also in the schema: there is no budget to share out",
        label="{important}",
    ),
    Refusal(RANDOMISED, "since", "their promise does not add up with that of others"),
    Refusal(RANDOMISED, "epsilon", "their counts need no further noise"),
    Refusal(RANDOMISED, "totals", "their counts are those of randomised cells"),
    Refusal(RANDOMISED, "unit", "randomised response protects each record on its own"),
    Refusal(
        PURE,
        "values",
        "list them in the schema, or give one above 0, such as 1e-9",
        label="values of {columns}",
    ),
    Refusal(OWNERS, "tables", "give one table", label="linked tables"),
    Refusal(OWNERS, "identifiers"),
    Refusal(OWNERS, "randomised", "give {epsilon}: they add noise", label="randomised columns alone"),
    Refusal(OWNERS, "accept", "a distance is not a sum over the rows of several owners"),
    Refusal(OWNERS, "public", "improve the model afterwards: load(path).with_public(table)"),
    Refusal(OWNERS, "totals"),
    Refusal(OWNERS, "since", "improve the model afterwards: load(path).with_since(release)"),
    Refusal(OWNERS, "seed", "who knows it could subtract all noise"),
    Refusal(OWNERS, "method", "they cannot compute its scores; take the default"),
    Refusal(OWNERS, "values", "list those of {columns} in the schema", label="values to be found"),
    Refusal(COLLECTORS, "tables", "a contributor sends a row of one table", label="linked tables"),
    Refusal(COLLECTORS, "unit", "a contributor sends one row"),
    Refusal(COLLECTORS, "randomised", "give {epsilon}: they add noise", label="randomised columns alone"),
    Refusal(COLLECTORS, "keep", "rows are sent in shares, which nobody reads", label="randomised columns"),
    Refusal(COLLECTORS, "accept", "a distance is not a sum over rows"),
    Refusal(COLLECTORS, "public", "improve the model afterwards: load(path).with_public(table)"),
    Refusal(COLLECTORS, "totals"),
    Refusal(COLLECTORS, "since", "improve the model afterwards: load(path).with_since(release)"),
    Refusal(COLLECTORS, "seed", "who knows it could subtract all noise"),
    Refusal(COLLECTORS, "method", "they cannot compute its scores; take the default"),
    Refusal(
        COLLECTORS,
        "values",
        "contributors need those of {columns} before they code a row: write them into the schema",
        label="values or bounds to be found",
    ),
    Refusal(CLUSTER, "tables", "give files or frames", label="linked rows"),
    Refusal(DRAWS, "population", "weight the rows of each draw"),
    Refusal(DRAWS, "given"),
    Refusal(DRAWS, "balance"),
    Refusal(CODEBOOK, "check", "give DATA, the table to be compared"),
    Refusal(CODEBOOK, "from_dtypes", "no row is read anyway"),
    Refusal(CODEBOOK, "unit", "give DATA, or leave the column out of the schema"),
    Refusal(CODEBOOK, "order", "give DATA, whose rows are in order"),
    *(
        Refusal(CODEBOOK, name, "no file of rows is read")
        for name in ("delimiter", "encoding", "decimal", "thousands", "header")
    ),
    Refusal(POPULATION, "given", "it is about the rows of the sample"),
    Refusal(POPULATION, "balance", "it is about the rows of the sample"),
    Refusal(PLAN, "method", "it is for the default method"),
    Refusal(PLAN, "parameters", "it is for the default method"),
    Refusal(PLAN, "since", "plan the new rows alone"),
    Refusal(PLAN, "disjoint", "plan the new rows alone"),
    Refusal(SWEEP, "seed", "{seeds} says how many runs, from seed 0 on"),
    Refusal(SWEEP, "parameters", "give them with the preset, as in --preset 'paper(rounds=50)'"),
    Refusal(SWEEP, "public", "its runs are those of the table alone"),
    Refusal(SWEEP, "totals", "its runs are those of the table alone"),
    Refusal(SWEEP, "since", "its runs are those of the table alone"),
    Refusal(SWEEP, "disjoint", "its runs are those of the table alone"),
    Refusal(SWEEP, "accept", "it has the scores of each run"),
    Refusal(CHECK, "out", "it writes no file"),
    Refusal(CHECK, "from", "give the codebook to {check} itself"),
    Refusal(CHECK, "from_dtypes", "it counts in the rows"),
    Refusal(CHECK, "persons", "the schema says whose rows they are"),
    Refusal(CHECK, "public", "the schema says which tables are public"),
    Refusal(CHECK, "also", "the schema says whose rows they are"),
)
"""Every combination that is refused. The first that applies is what the user reads."""


def check_abilities(kinds: Iterable[str], requests: Mapping[str, object], **facts: object) -> None:
    """Refuse the first setting or argument that the kinds of a run do not take.

    Parameters
    ----------
    kinds : iterable of str
    requests : mapping of a setting or argument to its value
        What is None, False or an empty list or mapping is not asked for. Empty text is.
    **facts
        Words of the sentence that only the caller knows.

    Raises
    ------
    InputError
        Before anything is read or spent.

    Examples
    --------
    >>> check_abilities([LINKED], {"unit": None, "target": "ward"})
    Traceback (most recent call last):
    privsyn.errors.InputError: linked tables take no target: take one table alone
    """
    kinds = {*kinds}
    for refusal in ABILITIES:
        if refusal.kind in kinds and _is_given(requests.get(refusal.name)):
            raise InputError(refusal.sentence(**facts))


def refused(kind: str, name: str, **facts: object) -> InputError:
    """Return the error that refuses one setting or argument.

    >>> refused(METHOD, "parameters", algorithm="default")
    InputError("method 'default' takes no parameters: leave out parameters, or add method")
    """
    (refusal,) = (row for row in ABILITIES if (row.kind, row.name) == (kind, name))
    return InputError(refusal.sentence(**facts))


def _is_given(value: object) -> bool:
    """Return whether a setting has a value. A data frame has one, whatever its rows; so has empty text."""
    if value is None or value is False:
        return False
    return not isinstance(value, list | tuple | dict | set | frozenset) or len(value) > 0
