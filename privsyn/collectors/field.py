"""Field: arithmetic on Shamir shares, vectorised by NumPy, modulo the Mersenne prime 2^31 - 1.

A secret s is the value at 0 of a random polynomial of degree t. Party i holds its value at i + 1. Any t + 1
shares determine s, and any t are uniform and independent of s. Sums of shares are shares of the sum. The
products of the shares of two secrets are shares of the product, on a polynomial of degree 2 t.

In a field of 31 bits, sums of 2^32 residues fit in 64 bits. So whatever adds up counts adds up shares too,
without a reduction in between.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from math import prod

import numpy as np
import numpy.typing as npt

from privsyn.marginals.domain import Integers, Ints
from privsyn.owners.lagrange import lagrange_weights

PRIME = 2**31 - 1

HALF = 16
"""Bits of the lower half of a residue. Doubles add up 2^20 products of two halves without rounding."""

ROWS_AT_ONCE = 2**10
"""Rows that are multiplied at once: their halves in doubles stay in the cache. Far below 2^20."""

WIRE = np.dtype("<u4")
"""A residue in a message."""


def random_residues(shape: Sequence[int]) -> Ints:
    """Return independent uniform residues from the operating system's entropy."""
    size = prod(shape)
    residues = np.zeros(0, np.int64)
    while residues.size < size:  # the one word in 2^31 that is no residue is drawn again
        words = np.frombuffer(os.urandom(4 * (size - residues.size)), np.uint32) & PRIME
        residues = np.concatenate([residues, words[words < PRIME].astype(np.int64)])
    return residues.reshape(shape)


def deal(secrets: Ints, parties: int, degree: int) -> Ints:
    """Return the shares of all parties, in the shape of the secrets for each party.

    >>> shares = deal(np.array([5, 0]), parties=3, degree=1)
    >>> value_at(0, {1: shares[1], 2: shares[2]}).tolist()
    [5, 0]
    """
    coefficients = random_residues((degree, *secrets.shape))
    shares = np.zeros((parties, *secrets.shape), np.int64)
    for party in range(parties):
        for coefficient in coefficients:
            shares[party] = (shares[party] + coefficient) * (party + 1) % PRIME
        shares[party] = (shares[party] + secrets) % PRIME
    return shares


def value_at(point: int, shares: Mapping[int, Ints]) -> Ints:
    """Return the value at a point, from the shares of some parties."""
    weights = lagrange_weights(point, [party + 1 for party in shares], PRIME)
    terms = (share * weight % PRIME for share, weight in zip(shares.values(), weights, strict=True))
    total: Ints = sum(terms, np.zeros((), np.int64)) % PRIME
    return total


def on_polynomial(degree: int, shares: Mapping[int, Ints]) -> npt.NDArray[np.bool_]:
    """Return for each entry whether the shares of all these parties lie on a polynomial of this degree."""
    first = {party: shares[party] for party in tuple(shares)[: degree + 1]}
    checks = [value_at(party + 1, first) == share for party, share in shares.items()]
    return np.logical_and.reduce(checks)


def product(first: Integers, second: Integers) -> Ints:
    """Return the product of two matrices of residues, exactly: by halves, in doubles.

    >>> large = np.full((2, 3), PRIME - 1)  # -1
    >>> product(large, large.T).tolist()
    [[3, 3], [3, 3]]
    """
    total = np.zeros((first.shape[0], second.shape[1]), np.int64)
    for start in range(0, first.shape[1], ROWS_AT_ONCE):
        rows = slice(start, start + ROWS_AT_ONCE)
        low, high = _halves(first[:, rows])
        low_second, high_second = _halves(second[rows])
        middle = _reduced(low @ high_second) + _reduced(high @ low_second)
        # 2^32 is 2 modulo the prime.
        parts = _reduced(low @ low_second) + (middle << HALF) + 2 * _reduced(high @ high_second)
        total = (total + parts) % PRIME
    return total


def centred(residues: Ints) -> Ints:
    """Return the whole numbers between -2^30 and 2^30 that residues stand for."""
    return np.where(residues > PRIME // 2, residues - PRIME, residues)


def to_bytes(residues: Ints) -> bytes:
    """Return residues as a message, of four bytes each."""
    return residues.astype(WIRE).tobytes()


def from_bytes(content: bytes, shape: Sequence[int]) -> Ints | None:
    """Return the residues of a message; None if it has another length or a number that is none."""
    if len(content) != WIRE.itemsize * prod(shape):
        return None
    residues = np.frombuffer(content, WIRE).astype(np.int64).reshape(shape)
    return residues if (residues < PRIME).all() else None


def _halves(residues: Integers) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
    return (residues & (2**HALF - 1)).astype(np.float64), (residues >> HALF).astype(np.float64)


def _reduced(sums: npt.NDArray[np.float64]) -> Ints:
    return sums.astype(np.int64) % PRIME
