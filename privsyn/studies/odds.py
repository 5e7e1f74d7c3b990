"""The promise of a ledger in plain words: what an attacker can learn at most about one person."""

from __future__ import annotations

from math import exp
from typing import Any

from scipy.special import ndtr, ndtri

from privsyn.private.ledger import Ledger

FALSE_ALARMS = (0.01, 0.05, 0.1)
"""Shares of people outside the table whom an attacker takes to be inside, in the worked examples."""


MOST_EPSILON = 700.0
"""Above it e to the power of epsilon is no double; nothing is promised by then."""


def in_plain_words(ledger: Ledger) -> dict[str, Any] | None:
    """Return the numbers of the promise that a page explains; None if there is no promise of this run.

    With Gaussian noise a whole run is as private as one number with Gaussian noise that a person moves by mu
    standard deviations, plus the delta that thresholds reserve. The bounds for `guess` and `found` are those
    of the best test between the two cases (Dong, Roth and Su, 2019). With a delta of 0 they are those of
    randomised response.

    Returns
    -------
    mapping
        ``guess``: the largest probability of a right guess whether a person is in the table, if half of the
        people asked about are. ``found``: pairs of a rate of false alarms and the largest rate at which
        people in the table are recognised. ``times``: e to the power of epsilon. ``who``: whom the promise
        protects. ``local``: whether the respondents randomised their answers.
    """
    if not ledger.private or ledger.elsewhere is not None:
        return None
    local = ledger.all_local
    return {
        "guess": power(ledger, None),
        "found": [] if local else [(rate, power(ledger, rate)) for rate in FALSE_ALARMS],
        "times": exp(min(ledger.promised_epsilon, MOST_EPSILON)),
        "who": "person" if local or ledger.unit is not None else "record",
        "local": local,
    }


def power(ledger: Ledger, rate: float | None) -> float:
    """Return the largest rate of recognised people at a rate of false alarms, or the best guess.

    >>> ledger = Ledger((), 1.0, 0.0, "pure", "operating system", True, (), "1.0")
    >>> round(power(ledger, None), 3), round(power(ledger, 0.01), 4)
    (0.731, 0.0272)
    """
    if ledger.accounting == "pure":
        odds = exp(min(ledger.promised_epsilon, MOST_EPSILON))
        if rate is None:
            return odds / (1 + odds)
        return min(odds * rate, 1 - (1 - rate) / odds)
    if rate is None:
        return min(float(ndtr(ledger.mu / 2)) + ledger.reserved, 1.0)
    return min(float(ndtr(ndtri(rate) + ledger.mu)) + ledger.reserved, 1.0)
