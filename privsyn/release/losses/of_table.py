"""The losses of one table: all that its model shows, and all that `fit` noted in it."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from itertools import chain
from typing import TYPE_CHECKING, ParamSpec

from privsyn.release.losses import bounds, cells, facts
from privsyn.release.losses.kinds import KINDS, NOT_COMPUTED, Loss, full_name, in_order

if TYPE_CHECKING:
    from privsyn.release.fitted_table import FittedTable

P = ParamSpec("P")

FINDERS: tuple[Callable[[FittedTable], Iterable[Loss]], ...] = (
    cells.invented_cells,
    bounds.cells_at_bounds,
    bounds.cells_in_one_range,
    bounds.spread_values,
    partial(cells.missing_cells, is_listed=True),
    partial(cells.missing_cells, is_listed=False),
    cells.missing_without_rows,
    cells.first_values,
    cells.no_missing_cells,
    cells.pooled_cells,
    cells.found_without_rows,
    facts.dropped_columns,
    facts.generated_columns,
    facts.times_of_day,
    facts.parts_of_seconds,
    facts.rounded_numbers,
    facts.words_for_missing,
    facts.amounts,
    facts.hidden_places,
)
"""Functions that find losses in a model: they read released answers and public facts alone.

What no released count shows, but a public fact implies for a whole column, is found too, in the codec, the
schema or the types.
"""


def losses_of(model: FittedTable) -> tuple[Loss, ...]:
    """Return all losses of a table: those with the largest shares first, then the facts without a share."""
    computed = [computed_losses(model.name, find, model) for find in FINDERS]
    return in_order([*model.noted, *chain.from_iterable(computed)])


def computed_losses(
    name: str, find: Callable[P, Iterable[Loss]], *args: P.args, **options: P.kwargs
) -> tuple[Loss, ...]:
    """Return the losses that a function finds. If it fails, return one loss that says so.

    The run is paid when its losses are computed. A defect here must not end it, and must not be silent.

    Parameters
    ----------
    name : str
        The table; an empty text if there is only one.
    find : callable
        It is called with `args` and `options`.

    Examples
    --------
    >>> print(*computed_losses("visits", lambda: [1 / 0]))
    visits: some losses could not be computed (ZeroDivisionError): please report this defect of privsyn
    """
    try:
        return tuple(find(*args, **options))
    except Exception as error:
        defect = type(error).__name__
        text = f"some losses could not be computed ({defect}): please report this defect of privsyn"
        return (Loss(name or "all columns", NOT_COMPUTED, None, text),)


def spoiled(model: FittedTable) -> dict[str, float]:
    """Return the columns that may not be called usable, each with the largest share of its cells lost.

    Those in doubt are not among them: their cells may be true.
    """
    return _spoiled(model, losses_of(model), may_be_true=False)


def in_doubt(model: FittedTable) -> tuple[str, ...]:
    """Return the other columns of which most cells are alike: the owner knows whether the schema fits."""
    losses = losses_of(model)
    surely = _spoiled(model, losses, may_be_true=False)
    return tuple(name for name in _spoiled(model, losses, may_be_true=True) if name not in surely)


def _spoiled(model: FittedTable, losses: Iterable[Loss], *, may_be_true: bool) -> dict[str, float]:
    """Return the columns that a loss of these kinds spoils, each with its largest share of lost cells."""
    shares: dict[str, float] = {}
    for loss in losses:
        if loss.spoils and loss.share is not None and KINDS[loss.kind].may_be_true == may_be_true:
            shares.setdefault(loss.column, loss.share)
    full_names = {name: full_name(model, name) for name in model.codec.names}
    return {name: shares[full_name] for name, full_name in full_names.items() if full_name in shares}
