"""Collection: which contributions count, and the shares of the counts of all pairs of columns."""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import sha256, shake_256
from itertools import combinations

import numpy as np

from privsyn.collectors.board import Board
from privsyn.collectors.contribution_file import CHECKS, Contributions, numbers
from privsyn.collectors.field import (
    PRIME,
    ROWS_AT_ONCE,
    deal,
    from_bytes,
    on_polynomial,
    product,
    to_bytes,
    value_at,
)
from privsyn.errors import InputError
from privsyn.marginals.domain import Domain, Integers, Ints, Mask
from privsyn.private.randomness import os_entropy

MOST_CODES = 8192
"""Sum of the numbers of codes of all columns: all pairs of codes are counted in shares, of 4 bytes each."""

COIN = 32  # random bytes of each collector


class Collection:
    """The contributions to a study, in the shares of one collector, and the checks of all."""

    def __init__(self, board: Board, domain: Domain) -> None:
        width = sum(domain.sizes)
        if width > MOST_CODES:
            raise InputError(
                f"the columns have {width} codes together, and collectors count at most {MOST_CODES}: give"
                " fewer values, or wider steps"
            )
        self._board, self._domain, self._width = board, domain, width
        listed = board.decide(
            "contributions.set", lambda: Contributions.listed(board.folder, board.study, width)
        )
        self._files = Contributions.of_list(board.folder, board.study, width, listed)
        if not board.has("coin", board.party):  # after the list is fixed: no contributor can know it before
            board.post("coin", os_entropy(COIN // 8).tobytes())
        coins = board.wait_for_all("coin")
        self._coin = sha256(listed + b"".join(coins.values())).digest()
        board.bind("coins", self._coin)  # two checks of one row would show more of it than one does
        # Read once: a contributor who changes a file after the check must not change what is counted of it.
        read = board.journal.array("parts", self._read).astype(np.uint32)
        self._parts, self._is_read = read[:, 1:], read[:, 0] == 1
        self.valid = self._valid()

    def _read(self) -> Integers:
        """Return this collector's parts of all contributions, each after 1 if it can be read."""
        read = np.zeros((len(self._files.names), 1 + numbers(self._width)), np.uint32)
        for index in range(len(read)):
            part = self._files.part(index, self._board.party, self._board.keys)
            if part is not None:
                read[index, 0], read[index, 1:] = 1, part
        return read

    def _valid(self) -> Ints:
        """Return the indices of the contributions that count: valid, and the first of their key.

        Published are, of each contribution, shares of two random combinations, twice. One is of all its
        numbers and of a random number of its own: its shares must lie on a polynomial of degree t. The other
        must be 0. It is of x (x - 1) for each entry x and of the sum of each one-hot vector less 1, plus a
        random polynomial of degree 2 t that is 0 at 0. So an honest contribution shows random numbers and 0.
        """
        board, degree = self._board, self._board.study.threshold
        if not board.has("check", board.party):
            board.post("check", to_bytes(np.column_stack([self._is_read, self._combinations()])))
        board.wait_for_all("check")
        checks = read_shares(board, "check", (len(self._parts), 1 + 2 * CHECKS))
        is_valid = np.logical_and.reduce([check[:, 0] == 1 for check in checks.values()])
        linear = {party: check[:, 1 : 1 + CHECKS] for party, check in checks.items()}
        squares = {party: check[:, 1 + CHECKS :] for party, check in checks.items()}
        is_valid &= on_polynomial(degree, linear).all(axis=1)
        is_valid &= on_polynomial(2 * degree, squares).all(axis=1)
        is_valid &= (value_at(0, squares) == 0).all(axis=1)
        return _firsts_of_keys(is_valid, self._files.contributors)

    def _combinations(self) -> Ints:
        """Return this collector's shares of the combinations, of shape (contributions, 2 CHECKS)."""
        width, columns = self._width, len(self._domain.sizes)
        starts = np.cumsum([0, *self._domain.sizes[:-1]])
        shape = (2 * width + columns, CHECKS)
        words = np.frombuffer(shake_256(self._coin).digest(8 * shape[0] * shape[1]), "<u8")
        weights = (words % PRIME).astype(np.int64).reshape(shape)
        of_entries, of_squares, of_sums = np.split(weights, [width, 2 * width])
        results = np.zeros((len(self._parts), 2 * CHECKS), np.int64)
        for start in range(0, len(self._parts), ROWS_AT_ONCE):
            rows = slice(start, start + ROWS_AT_ONCE)
            part = self._parts[rows].astype(np.int64)
            vector, masks, zeros = np.split(part, [width, width + CHECKS], axis=1)
            sums = (np.add.reduceat(vector, starts, axis=1) - 1) % PRIME
            results[rows, :CHECKS] = (product(vector, of_entries) + masks) % PRIME
            squares = product(vector * (vector - 1) % PRIME, of_squares)  # -1 less 1 in 62 bits
            results[rows, CHECKS:] = (squares + product(sums, of_sums) + zeros) % PRIME
        return results

    def counts(self) -> dict[tuple[int, ...], Ints]:
        """Return this collector's shares of the counts of each attribute, and of each pair of attributes.

        A count of a pair is the sum over the rows of a product of two entries. The sum of the products of
        this collector's shares lies on a polynomial of degree 2 t. Each collector deals its sum in fresh
        shares of degree t, and the weights that give the value at 0 are applied to those (Ben-Or, Goldwasser
        and Wigderson 1988).
        """
        board, sizes = self._board, self._domain.sizes
        vectors = self._parts[self.valid, : self._width]
        spans = [slice(end - size, end) for size, end in zip(sizes, np.cumsum(sizes).tolist(), strict=True)]
        pairs = list(combinations(range(len(sizes)), 2))
        shapes = [(sizes[first], sizes[second]) for first, second in pairs]
        cells = sum(rows * columns for rows, columns in shapes)
        if not board.has("pairs", board.party):
            squares = product(vectors.T, vectors)
            blocks = [squares[spans[first], spans[second]].ravel() for first, second in pairs]
            shares = deal(
                np.concatenate(blocks or [np.zeros(0, np.int64)]), len(board.parties), board.study.threshold
            )
            board.post("pairs", board.seal_to_all("pairs", [to_bytes(share) for share in shares]))
        dealt = {}
        for party, content in board.wait_for_all("pairs").items():
            share = from_bytes(board.unseal("pairs", party, content), (cells,))
            if share is None:
                raise InputError(f"collector {party} counted other contributions")
            dealt[party] = share
        ends = np.cumsum([rows * columns for rows, columns in shapes])[:-1]
        of_pairs = np.split(value_at(0, dealt), ends) if pairs else []
        tables: dict[tuple[int, ...], Ints] = {
            pair: counts.reshape(shape) for pair, counts, shape in zip(pairs, of_pairs, shapes, strict=True)
        }
        sums = vectors.sum(axis=0, dtype=np.int64) % PRIME
        return tables | {(axis,): sums[span] for axis, span in enumerate(spans)}


def _firsts_of_keys(is_valid: Mask, contributors: Sequence[str]) -> Ints:
    """Return the indices of valid contributions, the first of each contributor.

    >>> _firsts_of_keys(np.array([False, True, True, True]), ["a", "a", "a", "b"]).tolist()
    [1, 3]
    """
    first: dict[str, int] = {}
    for index in np.flatnonzero(is_valid).tolist():
        first.setdefault(contributors[index], index)
    return np.array([*first.values()], np.int64)


def read_shares(board: Board, name: str, shape: Sequence[int]) -> dict[int, Ints]:
    """Return the residues that collectors published under a name."""
    shares = {}
    for party, content in board.posts(name).items():
        share = from_bytes(content, shape)
        if share is None:
            raise InputError(f"collector {party} published {name} of another size")
        shares[party] = share
    return shares
