"""Numbers that replace a 0 that would stop a computation. They are no choices of the algorithm."""

from __future__ import annotations

import numpy as np

TINY_COUNT = 1e-9
"""Records: replaces a count of 0 by which something is divided."""

TINY_SHARE = 1e-12
"""Replaces a share of 0 by which something is divided, or whose logarithm or normal score is needed."""

TINY_VARIANCE = 1e-30
"""Records squared: replaces the variance 0 of an exact count, so that its precision stays finite."""

TINY_BUDGET = 1e-9
"""Share of a budget: replaced by 0, because it is left by rounding."""

SMALLEST = float(np.finfo(np.float64).tiny)
"""The smallest normal double, 2.2e-308: replaces a weight or a likelihood of 0 where all may be 0."""
