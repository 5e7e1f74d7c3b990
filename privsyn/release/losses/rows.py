"""Losses of classes of the target, and of rows: `fit` notes them, because a release does not show them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import numpy as np

from privsyn.errors import plural
from privsyn.private.find_values import VALUES, columns_of, rows_needed
from privsyn.release.losses.kinds import BEYOND_BOUND, SOME, Loss, loss_of, percent

if TYPE_CHECKING:
    from privsyn.inference.fitted import Fitted
    from privsyn.private.contribution import Contribution
    from privsyn.release.fitted_table import FittedTable

UNSURE = 0.2
"""Standard deviation over the number of rows, from which little is known of this number."""

UNCLEAR = 2.0
"""Standard deviations of the noise below which a class of the target may have no row at all."""


def losses_of_target(model: FittedTable, target: str) -> Iterator[Loss]:
    """Yield what the run did to the classes of the target: to be predicted, a column needs two of them.

    A number needs two groups of rows, on either side of a cut.
    """
    column = model.codec.schema.coded.get(target)
    attribute = model.codec.attributes_of(target)[0]
    if column is None or attribute not in model.codec.domain.names:
        return
    counts, values = model.fitted.counts_of(attribute), column.listed
    cells = len(values) or model.codec.domain.ordered[model.codec.domain.names.index(attribute)]
    pool = values.index(column.other) if column.other in values else cells
    clear = max(UNCLEAR * model.fitted.one_way_certainty(attribute).sigma, 1.0)
    if values:
        is_single = sum(counts[index] >= clear for index in range(cells) if index != pool) < 2
    else:  # cells of numbers are narrow: what must stand out are the rows on either side of a cut
        table = model.fitted.one_way(attribute)
        below = np.cumsum(table.counts[: table.domain.ordered[0]])
        sides = np.minimum(below, below[-1:] - below)[:-1]
        summed = 1 + np.arange(len(sides))  # noisy counts below a cut
        is_single = not np.any(sides >= clear * np.sqrt(np.minimum(summed, summed[::-1])))
    group = "class" if values else "group of numbers"
    texts = [f"the target has one {group} that stands out of the noise"] if is_single else []
    share = float(counts[pool] / max(model.fitted.total, 1.0)) if column.other in values else 0.0
    texts += [f"{percent(share)} of the rows are {column.other!r}"] if share else []
    if target in columns_of(model.ledger, VALUES, model.codec.names, model.title):
        rows, _ = rows_needed(model.ledger, model.title) or (0, 0)
        texts.append(
            f"a class that fewer than about {rows:,} rows have is not found, unless the schema lists it"
        )
    if texts:
        yield loss_of(model, target, "target", 1.0 if is_single else share or None, "; ".join(texts))


def losses_of_rows(
    name: str, fitted: Fitted, contribution: Contribution, *, person: str, owner: str, laplace: bool
) -> Iterator[Loss]:
    """Yield the rows beyond the bound, a number of rows of which little is known, and rows of nobody.

    Parameters
    ----------
    name : str
        The table, or the column that identifies the person.
    fitted : Fitted
    contribution : Contribution
    person, owner : str
        What a person is called, and what a row without one lacks.
    laplace : bool
        Whether the noise is discrete Laplace.
    """
    if contribution.of_columns is not None and (share := 1 - min(contribution.of_columns, 1.0)) > SOME:
        bound = "1 row" if contribution.limit == 1 else f"{contribution.limit} rows"
        text = (
            f"about {percent(share)} of the rows are not counted: at most {bound} of one {person} are; the"
            " synthetic rows stand for all of them"
        )
        yield Loss(name, BEYOND_BOUND, share, text)
    if fitted.is_mostly_noise:
        error = fitted.reach_of_noise(laplace=laplace)
        text = f"about {plural(fitted.total, 'row')} are made, give or take {error:,.0f}: mostly noise,"
        yield Loss(name, "number of rows", 1.0, f"{text} so all may be invented")
    elif contribution.of_columns is not None and fitted.error_of_total > UNSURE * fitted.total:
        error = fitted.reach_of_total(laplace=laplace)
        text = (
            f"about {plural(fitted.total, 'row')} are made, give or take {error:,.0f}: the noise hides how"
            " many rows a person has, and far more are missing if few have many"
        )
        yield Loss(name, "number of rows", None, text)
    text = f"rows that lead to no {owner} are left out; their number is private"
    yield Loss(name, "rows without an owner", None, text)


def losses_of_links(name: str, parent: str, lasting: Sequence[str]) -> Iterator[Loss]:
    """Yield that a table was counted without links, as follows from released numbers of rows.

    The columns that last are excepted: they are counted with the rows above.
    """
    alone = f"their numbers and by what lasts ({', '.join(lasting)})" if lasting else "their numbers alone"
    text = (
        f"its rows are dealt to the rows of {parent} at random, by {alone}: the noise would move"
        " as many rows as there are, and hide how a row depends on others; a larger epsilon or more persons"
        " keep that"
    )
    yield Loss(name, "links", None, text)


def one_class_left(model: FittedTable, target: str) -> bool:
    """Return whether the release has one class of a target: then no model learns anything."""
    return any(loss.kind == "target" and loss.share == 1.0 for loss in losses_of_target(model, target))
