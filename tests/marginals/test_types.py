"""Value objects keep copies of their arrays, to which nobody can write, and refuse what does not fit."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest

from privsyn.evaluation.encoding import Levels
from privsyn.inference.measured_columns import Estimate
from privsyn.inference.ordered.binning import Axis
from privsyn.marginals.domain import Domain, Floats, Records, keep
from privsyn.marginals.marginal import Marginal
from privsyn.marginals.structural_zeros import StructuralZeros
from privsyn.table.enforcement.determined import MappingOf
from privsyn.table.schema.box import Span
from privsyn.table.schema.draws import Cells

SQUARE = Domain(("a", "b"), (2, 2))
TABLE = Marginal(SQUARE, np.ones((2, 2)))


@dataclass(frozen=True, eq=False)
class Value:
    one: Floats
    many: tuple[Floats, ...]

    def __post_init__(self):
        keep(self, "one", "many", dtype=np.float64)


def test_what_is_kept_follows_no_change_of_what_was_given_and_cannot_be_changed():
    given = np.arange(3)
    value = Value(given, (given, given[::-1]))
    given[:] = 7
    assert value.one.tolist() == value.many[0].tolist() == [0.0, 1.0, 2.0]
    assert value.many[1].tolist() == [2.0, 1.0, 0.0]
    for array in (value.one, *value.many):
        assert array.dtype == np.float64
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 1.0


GIVEN = {
    "Axis": lambda array: (Axis(array, 1), "widths"),
    "Possible": lambda array: (StructuralZeros(((SQUARE.project(("a",)), array > 0),)), "masks"),
    "evidence": lambda array: (Estimate(TABLE, np.resize(array, 36)), "evidence"),
    "posterior_variance": lambda array: (
        Estimate(TABLE, posterior_variance=np.resize(array, (2, 2))),
        "posterior_variance",
    ),
    "Marginal": lambda array: (Marginal(SQUARE, np.resize(array, (2, 2))), "counts"),
    "Records": lambda array: (Records(SQUARE, np.resize(array.astype(int) % 2, (2, 2))), "codes"),
    "Span": lambda array: (Span(array, array, missing=False), "lows"),
    "Levels": lambda array: (Levels(("x", "y"), array.astype(int) % 2), "of_code"),
}


@pytest.mark.parametrize("kind", GIVEN)
def test_so_each_value_object_does(kind):
    value, field = GIVEN[kind](np.array([1.0, 2.0]))
    kept = getattr(value, field)
    array = kept[0][1] if kind == "Possible" else kept[0] if isinstance(kept, tuple) else kept
    with pytest.raises(ValueError, match="read-only"):
        array[0] = 1


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: Axis(np.array([1.0, 0.0]), 1), "not above 0"),
        (lambda: Axis(np.ones(2), 0), "0 groups"),
        (lambda: StructuralZeros(((SQUARE, np.ones(4, np.bool_)),)), "over a domain of"),
        (lambda: Estimate(TABLE, np.zeros(3)), "evidence of shape"),
        (lambda: Estimate(TABLE, dispersion=-1.0), "dispersion -1.0"),
        (lambda: Span(np.zeros(2), np.zeros(1), missing=False), "low ends"),
        (lambda: Cells(np.zeros(2), np.zeros(2), None, np.zeros(3, int), np.ones(2)), "one entry for each"),
        (lambda: MappingOf("c", ("a", "b"), np.zeros((3, 1)), np.zeros(3)), "keys .* for 3 values"),
        (lambda: Levels(("x",), np.array([0, 1])), "has no label"),
    ],
)
def test_what_does_not_fit_together_is_refused_when_it_is_made(make, words):
    with pytest.raises(ValueError, match=words):
        make()
