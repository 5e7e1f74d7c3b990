"""What is public besides the domain: for every run, and about the columns of a table."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

from privsyn.inference.binning import Axis
from privsyn.marginals.recoding import Merging
from privsyn.marginals.structural_zeros import NO_ZEROS, StructuralZeros

# What every run takes as public, in the words of the ledger.
PUBLIC = (
    "the names, the order and the dtypes of the columns, the type of each category column's values,"
    " and which columns Arrow declares not null",
    "all that the schema says",
    "the settings",
)

# The bound on each person's rows relies on these facts too.
OF_PERSONS = (
    "that one person has one identifier in {!r}",
    "that two persons never share one in {!r}, where 7 and 007 are two identifiers",
)


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
    """

    target: str | None = None
    axes: Mapping[str, Axis] = field(default_factory=lambda: MappingProxyType({}))
    zeros_after: Callable[[Merging], StructuralZeros] = lambda _: NO_ZEROS
    doubtful: Collection[str] = ()
