"""Read the sentences of rules of lives, and refuse rules that do not go together."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import combinations
from keyword import iskeyword

from privsyn.errors import InputError, did_you_mean
from privsyn.table.database.lives import Absorbing, AtMost, Distinct, Last, Lasting, LifeRule, Monotone

ENDINGS = ("rises", "falls", "never falls", "never rises", "stays", "lasts", "is unique", "is last")
"""How sentences end, but for a value."""

FORMS = (
    "year rises, rank never falls, married stays yes, outcome == 'dead' is last, region lasts,"
    " (course, term) is unique, at most 2 role == 'head'"
)
"""A sentence of each kind, for messages."""

LINKS = ("implies", "iff")
"""Words between two expressions, which Python does not have."""

_NO_SENTENCE = re.compile(r"at +most\b.*|(?:`[^`]+`|\([^()]+\)|[\w.]+) +(\w+(?: +\w+)?)")
"""What a person may write who means a sentence: a column and one or two words, or a number of rows."""

LIFE_RULES: tuple[type[LifeRule], ...] = (Monotone, Absorbing, Last, Lasting, Distinct, AtMost)
"""The kinds of rules."""


def read_life(text: object) -> LifeRule | None:
    """Return the rule that a sentence declares; None if it is no such sentence.

    Raises
    ------
    InputError
        If it is one, and no rule.

    Examples
    --------
    >>> read_life("never_married stays no"), read_life("age >= 15")
    (Absorbing(column='never_married', value='no'), None)
    """
    if not isinstance(text, str):
        return None
    matches = ((rule, rule.sentence.fullmatch(text.strip())) for rule in LIFE_RULES)
    life = next((rule.of_match(match) for rule, match in matches if match), None)
    if life is None and _is_nearly(text.strip()):
        raise InputError(f"{text[:100]!r} is no rule on the rows of one parent: such are {FORMS}")
    return life


def _is_nearly(text: str) -> bool:
    """Return whether a text is most likely a sentence with a mistake.

    >>> [_is_nearly(text) for text in ("south last", "age climbs", "at most two x == 'a'", "age is missing")]
    [True, True, True, False]
    """
    if (match := _NO_SENTENCE.fullmatch(text)) is None:
        return False
    if match[1] is None:
        return True
    if not any(iskeyword(word) or word in LINKS for word in text.split()):
        return True  # an expression of names alone has such a word
    first_word = match[1].split()[0]
    return first_word in ENDINGS or any(did_you_mean(word, ENDINGS) for word in (match[1], first_word))


def check_lives(rules: Sequence[LifeRule], order: str | None, *, needs_order: bool) -> None:
    """Refuse rules that need an order which the table lacks or contradict it, and two rules on one column.

    A rule that holds at the start of the annealing could else be broken by what another rule changes there.

    Parameters
    ----------
    rules : sequence of LifeRule
        Of one table.
    order : str or None
        The column by which the rows of a parent are in order.
    needs_order : bool
        Whether an order is declared by now, if there is one. For one table of persons, settings name it.
    """
    for rule in rules:
        if needs_order and rule.needs_order and order is None:
            raise InputError(f"{str(rule)!r}: the rows have no order: say with order which column gives it")
        if order is not None and rule.ways.get(order) is False:
            raise InputError(
                f"{str(rule)!r}: rows are put in the order of {order!r}, the least first, so it never goes"
                " down: drop the rule, or order by another column"
            )
    for first, second in combinations(rules, 2):
        shared = {*first.columns} & {*second.columns}
        alike = isinstance(first, AtMost) and isinstance(second, AtMost) and first.value != second.value
        if shared and first != second and not alike:
            column = min(shared)
            raise InputError(
                f"{str(first)!r} and {str(second)!r} are both about {column!r}: drop one of them"
            )
    if len({*map(str, rules)}) < len(rules):
        raise InputError("two constraints are the same: drop one of them")


def check_columns(rules: Sequence[LifeRule], table: str, names: Sequence[str] | None) -> None:
    """Refuse rules about a column that a table has not; `names` is None if its columns are unknown."""
    for rule in rules:
        for column in rule.columns:
            if names is not None and column not in names:
                meant = did_you_mean(column, names)
                raise InputError(f"{str(rule)!r}: {table!r} has no column of data {column!r}{meant}")
