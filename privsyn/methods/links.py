"""The previous row of the same person: its columns as further attributes of each row."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from privsyn.inference.all_rows import scaled_to
from privsyn.inference.ordered.tails import Tails
from privsyn.inference.problem import Problem, PublicFacts
from privsyn.marginals.domain import Codes, Domain, Floats
from privsyn.marginals.marginal import Marginal, groups_at
from privsyn.marginals.recoding import Merging
from privsyn.private.measure import PrivateTable

PREVIOUS = 8  # groups of a number in the previous row
MOST_VALUES = 40  # values of a column without order; with more, the rarest are one group
OF_PREVIOUS = "previous "
"""How the name of an attribute of the previous row begins."""


def measure_previous(
    private: PrivateTable, problem: Problem, rho: float, facts: PublicFacts
) -> tuple[PrivateTable, Problem]:
    """Return the table and the problem with the attributes of the previous row, whose counts are measured.

    They are counted in few groups of the codes of the row's own attributes. One code more stands for rows
    without a previous row.

    Parameters
    ----------
    private : PrivateTable
    problem : Problem
    rho : float
        Budget of the counts of all attributes of the previous row.
    facts : PublicFacts
    """
    own, groups = problem.domain, []
    for name in facts.linked:
        place = own.names.index(name)
        coarse = groups_of(problem.alone[place])
        groups.append(coarse)
    added = Domain(
        tuple(OF_PREVIOUS + name for name in facts.linked),
        tuple(int(group.max()) + 2 for group in groups),
        tuple(
            _ordered(own.project((name,)), group) for name, group in zip(facts.linked, groups, strict=True)
        ),
    )
    merging = extended(problem.merging, facts, added, groups)
    private = private.extend(merging.merged, merging.groups[len(own) :])
    tables = tuple((name,) for name in added.names)
    measured = private.marginals(tables, np.full(len(tables), rho / len(tables)))
    total = problem.margins(problem.one_ways)[0]
    one_ways = (*problem.one_ways, *scaled_to(total, measured, private.contribution.of_tables))
    axes = {} if problem.tails is None else problem.tails.axes
    tails = Tails(merging, axes, () if problem.tails is None else problem.tails.ended)
    return private, replace(problem, merging=merging, tails=tails, one_ways=one_ways)


def groups_of(one_way: Marginal) -> Codes:
    """Return the group of each code: of about equal mass if they have an order, else the frequent codes."""
    if one_way.domain.ordered[0]:
        return groups_at(one_way, PREVIOUS)
    rank = np.argsort(np.argsort(-one_way.counts, kind="stable"), kind="stable")
    return np.minimum(rank, MOST_VALUES).astype(np.int32)


def _ordered(of: Domain, group: Codes) -> int:
    ordered = of.ordered[0]
    return int(group[ordered - 1]) + 1 if ordered else 0


def extended(merging: Merging, facts: PublicFacts, added: Domain, groups: list[Codes]) -> Merging:
    """Return the merging with the added attributes; their original codes are those of the row before."""
    whole, shares, sizes = [], [], []
    for name, group in zip(facts.linked, groups, strict=True):
        place = merging.original.names.index(name)
        own = merging.groups[place]
        of = np.append(group[own], group.max() + 1).astype(
            np.int32
        )  # the last is for rows without a previous
        share: Floats = np.append(merging.shares[place], 1.0)
        share = np.maximum(share, np.finfo(float).tiny)
        shares.append(share / np.bincount(of, share)[of])
        whole.append(of)
        sizes.append(len(of))
    original = Domain(
        (*merging.original.names, *added.names),
        (*merging.original.sizes, *sizes),
        (
            *merging.original.ordered,
            *(merging.original.ordered[merging.original.names.index(n)] for n in facts.linked),
        ),
    )
    merged = Domain(
        (*merging.merged.names, *added.names),
        (*merging.merged.sizes, *added.sizes),
        (*merging.merged.ordered, *added.ordered),
    )
    return Merging(original, merged, (*merging.groups, *whole), (*merging.shares, *shares))
