r"""How far a mean from the draws may be from the private one because draws are shrunk.

Draws of a weakly measured table stay near the released estimate, and their rows cannot follow all tables at
once. Both pull the means of groups towards each other, and no draw shows by how much. The noisy counts do:
they are unbiased. Let N be the measured counts of a table, M those of the draws, w the share of each cell's
drawn rows that are in the group, y the mean number of these, and q and n the mean and the number of rows of
the group. To first order, rows with the measured counts have a mean that is higher by

.. math:: \Delta = \sum w (y - q) (N - M) / n

This has the variance V of the noise in N. It estimates the bias, so the variance of the mean gets
:math:`(\lambda \Delta)^2` more, where :math:`\lambda = \tau^2 / (\tau^2 + V)` and :math:`\tau` is 0.7
standard deviations of the numbers. The smaller the noise, the closer is this to the squared bias. Where noise
exceeds all plausible biases, it adds little, and the interval rests on the draws.

The margins of N are known far better from elsewhere. So the weights :math:`w (y - q)` are centred in each
direction: what N - M says about the margins does not count.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from math import inf

import numpy as np
import pandas as pd

from privsyn.inference.fitted import Certainty, Fitted
from privsyn.marginals.domain import Floats, Integers, Mask
from privsyn.marginals.marginal import Measurement
from privsyn.table.codec.codec import Codec
from privsyn.table.schema.draws import Cells

PRIOR = 0.7
"""Prior standard deviation of a bias, in standard deviations of the numbers.

Chosen on three tables of docs/inference.md. With 0.5 and 1, the share of intervals that hold differs by less
than a percentage point."""


class Bias:
    """The bias of means from draws, by the measured tables.

    Parameters
    ----------
    codec : Codec
    fitted : Fitted
    certainties : sequence of Certainty
        The tables that may be used.
    """

    def __init__(self, codec: Codec, fitted: Fitted, certainties: Sequence[Certainty]) -> None:
        self._codec, self._merging = codec, fitted.merging
        columns = set(codec.domain) & set(codec.names)
        tables = [
            certainty.measured
            for certainty in certainties
            if len(certainty.attributes) > 1 and columns >= set(certainty.attributes)
        ]
        self._tables = sorted(tables, key=lambda table: len(table.attributes))

    def variance(
        self, frames: Sequence[pd.DataFrame], columns: frozenset[str], numbers: Floats, met: Mask
    ) -> float:
        """Return what is added to the variance of a mean; 0 if no table holds all columns.

        It is infinite if the noise exceeds what the prior allows: then the group is too small for the release
        to know its mean, and the draws show the mean of similar rows.

        Parameters
        ----------
        frames : sequence of DataFrame
            All draws, of the columns of a measured table.
        columns : set of str
            Those of the condition, and the averaged one.
        numbers : array of shape (rows of all draws,)
            The averaged column; NaN where it is missing.
        met : bool array of the same shape
            Which rows meet the condition and have a number.
        """
        drawn = set(frames[0].columns)
        table = next((t for t in self._tables if columns <= set(t.attributes) <= drawn), None)
        spread = float(np.nanvar(numbers))
        if table is None or not spread > 0:
            return 0.0
        moved, noise = self._moved(table, self._places(table, frames), numbers, met, len(frames))
        prior = PRIOR**2 * spread
        return inf if noise > prior else (prior / (prior + noise) * moved) ** 2

    @cached_property
    def _cells(self) -> Mapping[str, Cells]:
        return self._codec.cells(self._merging)

    def _places(self, table: Measurement, frames: Sequence[pd.DataFrame]) -> Integers:
        """Return the cell of a table in which each row of the draws lies."""
        codes = []
        for axis, name in enumerate(table.attributes):
            encoder, cells = self._codec.encoder_of[name], self._cells[name]
            codes_of_column = np.concatenate(
                [cells.groups[cells.find(encoder.read(frame[name]))] for frame in frames]
            )
            codes.append(table.grouping.groups[axis][codes_of_column] if table.grouping else codes_of_column)
        return np.ravel_multi_index(tuple(codes), table.marginal.domain.shape)

    @staticmethod
    def _moved(
        table: Measurement, cells: Integers, numbers: Floats, met: Mask, draws: int
    ) -> tuple[float, float]:
        """Return by how much the measured counts move a mean, and the noise variance of that."""
        shape = table.marginal.domain.shape
        rows, inside, sums = (
            np.bincount(at, weights, minlength=np.prod(shape)).reshape(shape) / draws
            for at, weights in ((cells, None), (cells[met], None), (cells[met], numbers[met]))
        )
        weight = np.divide(sums - inside * numbers[met].mean(), rows, out=np.zeros(shape), where=rows > 0)
        weight = _centred(weight) / inside.sum()
        difference = table.marginal.counts - rows
        return float((weight * difference).sum()), float((weight**2 * table.variance).sum())


def _centred(weight: Floats) -> Floats:
    """Return weights without the effects of single axes.

    >>> _centred(np.array([[1.0, 2.0], [3.0, 8.0]]))
    array([[ 1., -1.],
           [-1.,  1.]])
    """
    axes = range(weight.ndim)
    alone = [
        weight.mean(axis=tuple(axis_out for axis_out in axes if axis_out != axis), keepdims=True)
        for axis in axes
    ]
    return np.asarray(weight - sum(alone) + (weight.ndim - 1) * weight.mean())
