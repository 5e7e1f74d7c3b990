"""PublicFacts: what a method may know about the columns beyond their domain."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

from privsyn.inference.ordered.binning import Axis
from privsyn.marginals.recoding import Merging
from privsyn.marginals.structural_zeros import NO_ZEROS, StructuralZeros


@dataclass(frozen=True)
class PublicFacts:
    """What is public about the columns: by the schema, by the settings, or by released answers.

    Parameters
    ----------
    target : str, optional
        The attribute to be predicted. Its relations to the others matter most.
    axes : mapping of an attribute to its Axis
        The attributes that are encoded in fine cells.
    zeros_after : function of a Merging
        Return the structural zeros of the merged codes.
    doubtful : collection of attributes
        Attributes whose values or bounds were found under privacy. No row may hold the code that stands for
        all other values, or lie near the bounds.
    kept : mapping of an attribute to a probability
        The attributes that the respondents randomised, and the probability that a cell was kept.
    nullable : collection of attributes
        The attributes whose last code is that of missing cells.
    """

    target: str | None = None
    axes: Mapping[str, Axis] = field(default_factory=lambda: MappingProxyType({}))
    zeros_after: Callable[[Merging], StructuralZeros] = lambda _: NO_ZEROS
    doubtful: Collection[str] = ()
    kept: Mapping[str, float] = field(default_factory=lambda: MappingProxyType({}))
    nullable: Collection[str] = ()
