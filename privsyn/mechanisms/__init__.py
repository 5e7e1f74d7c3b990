"""The mechanisms of differential privacy, each of which releases one answer: noise, selection, local
responses.

A mechanism has its cost (`spend`), gives a private answer (`release`), and says how far it may be off
(`interval`).

Examples
--------
>>> from privsyn import Ledger, mechanisms
>>> ledger = Ledger(epsilon=1)
>>> f"{mechanisms.mean([31, 44, 50] * 400, low=18, high=90, epsilon=0.5, ledger=ledger, seed=7):.0f}"
'42'
>>> f"{ledger.cost:.1f}"
'0.5'
"""

from privsyn.mechanisms.additive import DiscreteGaussian, DiscreteLaplace, Gaussian, Laplace
from privsyn.mechanisms.columns import count, mean, median, sum, variance  # noqa: A004
from privsyn.mechanisms.randomized_response import RandomizedResponse
from privsyn.mechanisms.selection import Exponential

__all__ = [
    "DiscreteGaussian",
    "DiscreteLaplace",
    "Exponential",
    "Gaussian",
    "Laplace",
    "RandomizedResponse",
    "count",
    "mean",
    "median",
    "sum",
    "variance",
]
