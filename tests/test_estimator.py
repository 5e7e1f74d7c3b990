"""A model keeps scikit-learn's rules: parameters, clones, pipelines, tables with a target beside them."""

import inspect
import pickle
from functools import partial

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from refusals import refuses
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import FunctionTransformer
from sklearn.utils.estimator_checks import check_get_params_invariance, check_parameters_default_constructible
from sklearn.utils.validation import check_is_fitted

from privsyn import Categorical, Determined, InputError, Numerical, PrivSyn, Schema
from privsyn.table.io.read_in_memory import as_frame, with_target
from privsyn.table.schema.yaml_file import to_yaml

SCHEMA = Schema({"age": Numerical(0, 99, integer=True), "sex": Categorical(["f", "m"])})
WITH_TARGET = Schema({**SCHEMA.columns, "sick": Categorical([0, 1])})
PEOPLE = pd.DataFrame({"age": np.arange(200) % 100, "sex": ["f", "m"] * 100})
SICK = pd.Series(np.arange(200) // 100, name="sick", index=np.arange(200)[::-1])


def test_parameters_are_those_of_init():
    model = PrivSyn(1.0, 1e-6, SCHEMA, seed=3)
    names = list(inspect.signature(PrivSyn.__init__).parameters)[1:]
    assert list(model.get_params()) == names
    assert model.get_params(deep=False) == model.get_params(deep=True)
    check_get_params_invariance("PrivSyn", model)


def test_a_clone_has_the_parameters_and_nothing_learnt():
    model = PrivSyn(1.0, 1e-6, SCHEMA, seed=3).fit(PEOPLE)
    copy = clone(model)
    assert copy.get_params()["seed"] == 3
    check_is_fitted(model)
    with pytest.raises(NotFittedError):
        check_is_fitted(copy)
    assert copy.fit(PEOPLE).sample(50).equals(model.sample(50))


def test_parameters_are_set_all_or_none():
    model = PrivSyn(1.0, seed=3)
    assert model.set_params(epsilon=2.0, seed=None) is model
    assert (model.epsilon, model.seed) == (2.0, None)
    with pytest.raises(InputError, match="no parameter 'budget'"):
        model.set_params(epsilon=3.0, budget=1)
    with pytest.raises(InputError, match="epsilon"):
        model.set_params(seed=4, epsilon=-1)
    assert (model.epsilon, model.seed) == (2.0, None)


def test_it_is_the_last_step_of_a_pipeline():
    steps = Pipeline([("same", FunctionTransformer()), ("model", PrivSyn(1.0, 1e-6, SCHEMA, seed=3))])
    steps.set_params(model__schema=WITH_TARGET).fit(PEOPLE, SICK)
    assert steps["model"].sample(5).columns.tolist() == ["age", "sex", "sick"]


def test_fit_does_not_change_the_parameters():
    model = PrivSyn(1.0, 1e-6, WITH_TARGET, seed=3)
    before = model.get_params()
    model.fit(PEOPLE, SICK)
    assert model.get_params() == before


def test_columns_are_named_as_scikit_learn_does():
    model = PrivSyn(1.0, 1e-6, WITH_TARGET, seed=3).fit(PEOPLE, SICK)
    assert model.feature_names_in_.tolist() == ["age", "sex"]
    assert model.n_features_in_ == 2


@pytest.mark.slow
@pytest.mark.parametrize("kind", [pd.DataFrame, pa.Table.from_pandas, pl.DataFrame])
def test_a_target_beside_the_table_is_the_same_as_a_column_and_its_name(kind):
    beside = PrivSyn(1.0, 1e-6, WITH_TARGET, seed=3).fit(kind(PEOPLE), SICK)
    within = PrivSyn(1.0, 1e-6, WITH_TARGET, seed=3, target="sick").fit(
        kind(PEOPLE.assign(sick=SICK.to_numpy()))
    )
    assert type(beside.sample(2)) is type(within.sample(2))
    assert beside.sample(80).equals(within.sample(80))


def test_a_target_without_a_name_is_called_target():
    model = PrivSyn(1.0, 1e-6, seed=3).fit(np.eye(2)[[0, 1] * 20].astype(int), np.array([0, 1] * 20))
    assert model.sample(3).columns.tolist() == ["x0", "x1", "target"]


SECRET = 8731


@pytest.mark.parametrize(
    ("table", "y"),
    [
        (PEOPLE, [0, 1] * 100),
        (PEOPLE, np.array([SECRET, "x"] * 100, dtype=object)),
        (PEOPLE, np.array([SECRET])),
        (PEOPLE, SECRET),
        (PEOPLE, PEOPLE),
        (PEOPLE, pd.Series(PEOPLE["age"])),
        (PEOPLE, SICK.rename(SECRET)),
        (pa.Table.from_pandas(PEOPLE), [SECRET, "x"] * 100),
        (pl.DataFrame(PEOPLE), [SECRET, "x"] * 100),
        ("people.csv", SICK),
        (np.zeros((2, 2, 2)), None),
    ],
    ids=range(11),
)
def test_a_target_that_does_not_fit_is_refused_without_a_value(table, y):
    with refuses() as refused:
        PrivSyn(1.0).fit(table, y)
    text = str(refused.value)
    assert "\n" not in text
    assert str(SECRET) not in text.replace(f"got {SECRET}", "")


def test_a_schema_may_be_the_path_of_its_file(tmp_path):
    (tmp_path / "people.yaml").write_text(to_yaml(SCHEMA))
    for path in (tmp_path / "people.yaml", str(tmp_path / "people.yaml")):
        model = PrivSyn(1.0, 1e-6, path, seed=3)
        assert clone(model).schema == path
        assert model.fit(PEOPLE).sample(9).equals(PrivSyn(1.0, 1e-6, SCHEMA, seed=3).fit(PEOPLE).sample(9))


def test_scikit_learns_check_of_init_holds():
    class OfOne(PrivSyn):
        """With a default for epsilon, which the check cannot choose."""

        def __init__(self, epsilon=1.0):
            super().__init__(epsilon)

    check_parameters_default_constructible("PrivSyn", OfOne())


@pytest.mark.parametrize("odd", [None, "x", 2.5, 2**70])
def test_no_cell_decides_the_dtype_of_a_target_or_a_matrix(odd):
    """A list, or an array of objects, has no type of its values: one row would decide it."""
    for kind in (pd.DataFrame, pa.Table.from_pandas, pl.DataFrame):
        for target in ([0, 1] * 100, [0, odd] * 100):
            for form in (list, lambda cells: np.array(cells, dtype=object)):
                with pytest.raises(InputError, match="no public type"):
                    PrivSyn(1.0, 1e-6, WITH_TARGET).fit(kind(PEOPLE), form(target))
    for cells in (["a", "b"] * 100, ["a", odd] * 100):  # a Series of objects stays one
        joined, name = with_target(PEOPLE, pd.Series(cells, dtype=object))
        assert joined[name].dtype == object
    matrix = np.array([["a", "b"]] * 9, dtype=object)
    matrix[0, 0] = odd
    assert {str(dtype) for dtype in as_frame(matrix).dtypes} == {"object"}


TABLES = (PEOPLE[:2], pa.Table.from_pandas(PEOPLE[:2]), pl.DataFrame(PEOPLE[:2]))


def test_the_longest_text_of_an_array_decides_no_dtype():
    short, long = (np.array([["a"], [text]]) for text in ("b", "a longer text"))
    assert as_frame(short).dtypes.tolist() == as_frame(long).dtypes.tolist()
    for table in TABLES:
        one, other = (pa.table(with_target(table, cells[:, 0])[0]).schema for cells in (short, long))
        assert one.types == other.types


@pytest.mark.parametrize(
    "target",
    [pa.array([1, 0]), pa.chunked_array([[1], [0]]), pl.Series([1, 0]), pd.Index([1, 0]), pd.Series([1, 0])],
    ids=lambda target: type(target).__module__ + type(target).__name__,
)
def test_a_target_with_a_type_of_its_own_joins_any_table(target):
    for table in TABLES:
        joined, name = with_target(table, target)
        assert pa.table(joined)[name].to_pylist() == [1, 0]


RUNS = pa.RunEndEncodedArray.from_arrays([1, 2], pa.array([1, None]))


@pytest.mark.parametrize(
    "target", [RUNS, pd.Series(RUNS, dtype=pd.ArrowDtype(RUNS.type))], ids=["Arrow", "pandas"]
)
def test_a_target_that_arrow_encodes_joins_any_table_as_its_values(target):
    for table in TABLES:
        joined, name = with_target(table, target)
        cells = pa.table(joined)[name]
        assert (cells.type, cells.to_pylist()) == (pa.int64(), [1, None])


ODD_TARGETS = {
    "the Arrow type month_day_nano_interval is not supported": pa.nulls(2, pa.month_day_nano_interval()),
    "the polars type Int128 is not supported": pl.Series("target", [1, None], dtype=pl.Int128),
    "its dtype is float128: convert it to float64": np.ones(2, np.longdouble),
}


@pytest.mark.parametrize("complaint", ODD_TARGETS)
def test_a_target_of_a_type_that_is_not_supported_is_refused_by_name(complaint):
    if "float128" in complaint and np.dtype(np.longdouble).itemsize == 8:
        pytest.skip("longdouble is float64 here")
    for table in TABLES:
        with pytest.raises(InputError, match=f"^column 'target': {complaint}"):
            PrivSyn(1.0, 1e-6).fit(table, ODD_TARGETS[complaint])


def test_a_target_that_is_computed_is_the_column_that_it_is_computed_from():
    rng = np.random.default_rng(0)
    status = rng.choice(["paid", "open", "late"], 500)
    table = pd.DataFrame({"status": status, "sum": rng.integers(0, 9, 500), "due": status != "paid"})
    columns = {
        "status": Categorical(["paid", "open", "late"], nullable=False),
        "sum": Numerical(0, 8, integer=True, nullable=False),
        "due": Categorical([False, True], nullable=False),
    }
    due = Determined("due", by="status", mapping={"paid": False, "open": True, "late": True})
    spends = {
        target: PrivSyn(1.0, 1e-6, Schema(columns, constraints=[due]), seed=3, target=target)
        .fit(table)
        .ledger_.spends
        for target in ("due", "status", None)
    }
    assert spends["due"] == spends["status"] != spends[None]


@pytest.mark.parametrize("make", [PrivSyn, PrivSyn.paper, partial(PrivSyn.paper, rounds=3)])
def test_a_fitted_model_and_its_release_can_be_pickled(make):
    model = make(1.0, 1e-9, Schema({"n": Numerical(0, 9, integer=True)}), seed=1)
    model.fit(pd.DataFrame({"n": [1, 2, 3] * 50}))
    for kept in (model, model.release_):
        assert pickle.loads(pickle.dumps(kept)).sample(9, seed=2).equals(kept.sample(9, seed=2))
