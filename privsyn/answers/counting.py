"""Counting records: exact, and so for released or synthetic records only, or with noise to follow."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from privsyn.answers.domain import Attributes, Records


def count(records: Records, attributes: Attributes) -> npt.NDArray[np.int64]:
    """Counts over `attributes`, in the shape of their domain.

    Examples
    --------
    >>> from privsyn.answers.domain import Domain
    >>> rows = Records(Domain(("a", "b"), (2, 2)), np.array([[0, 1], [1, 1], [0, 1]]))
    >>> count(rows, ("a", "b")).tolist()
    [[0, 2], [0, 1]]
    """
    domain = records.domain.project(attributes)
    cells = np.zeros(len(records), np.int64)
    for axis, stride in zip(records.domain.axes(attributes), domain.strides, strict=True):
        cells += records.codes[:, axis].astype(np.int64) * stride
    return np.bincount(cells, minlength=domain.cells).reshape(domain.shape)
