"""A model that learns from synthetic rows keeps scikit-learn's rules, and never sees a private row."""

import warnings

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from refusals import refuses
from scipy.sparse import csr_array
from sklearn.base import BaseEstimator, ClassifierMixin, clone, is_classifier, is_regressor
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.model_selection import GridSearchCV, cross_val_score, cross_validate
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import FunctionTransformer
from sklearn.tree import DecisionTreeRegressor
from sklearn.utils.estimator_checks import check_estimator

from privsyn import Categorical, Distilled, InputError, Ledger, Numerical, PrivSyn, Schema, TrainOnSynthetic
from privsyn.errors import NotFoundWarning

AGE = Numerical(0, 99, integer=True, nullable=False)
SCHEMA = Schema({"age": AGE, "sex": Categorical([0, 1], nullable=False), "sick": Categorical(["no", "yes"])})
PEOPLE = pd.DataFrame({"age": np.arange(400) % 100, "sex": np.arange(400) % 2})
SICK = pd.Series(np.where(PEOPLE["age"] > 49, "yes", "no"), name="sick")


class Recording(ClassifierMixin, BaseEstimator):
    """Keeps what it learns from, and predicts "no"."""

    def fit(self, X, y):
        self.classes_, self.seen_ = np.array(["no", "yes"]), (X, y)
        return self

    def predict(self, X):
        return np.full(len(X), "no")


class Failing(BaseEstimator):
    """Cannot learn from any rows."""

    def fit(self, X, y):
        raise ValueError("too few classes")


def synthesizer(**settings):
    return PrivSyn(5.0, 1e-6, SCHEMA, seed=3, **settings)


def test_the_model_learns_from_a_sample_of_the_release_and_from_nothing_else():
    model = TrainOnSynthetic(Recording(), synthesizer(), n=50, sample_seed=7).fit(PEOPLE, SICK)
    rows, target = model.estimator_.seen_
    sample = model.synthesizer_.release_.sample(50, seed=7).dropna(subset=["sick"])
    pd.testing.assert_frame_equal(rows.assign(sick=target), sample)
    assert not hasattr(model.synthesizer, "release_")
    assert model.feature_names_in_.tolist() == ["age", "sex"]
    assert model.n_features_in_ == 2


@pytest.mark.parametrize("train", [lambda model: TrainOnSynthetic(Recording(), model), lambda model: model])
def test_a_synthesizer_with_another_target_is_refused_before_anything_is_spent(train, monkeypatch):
    """It ran with y in place of the target, without a word."""
    monkeypatch.setattr(PrivSyn, "_open_run", lambda *_: pytest.fail("a run was opened"))
    with refuses("target 'age' is another column than y, which is 'sick': leave out target"):
        train(synthesizer(target="age")).fit(PEOPLE, SICK)


def test_a_synthesizer_may_name_the_column_that_is_passed_as_target():
    model = TrainOnSynthetic(Recording(), synthesizer(target="sick"), n=50, sample_seed=7).fit(PEOPLE, SICK)
    assert model.synthesizer_.release_.table().fitted.target == "sick"


def test_what_was_paid_for_outlives_a_model_that_cannot_learn():
    model = TrainOnSynthetic(Failing(), synthesizer())
    with pytest.raises(ValueError, match="too few classes"):
        model.fit(PEOPLE, SICK)
    assert len(model.synthesizer_.sample(9)) == 9
    with pytest.raises(NotFittedError):
        model.score(PEOPLE, SICK)


def test_it_predicts_as_its_model_does_and_only_what_that_can():
    model = TrainOnSynthetic(LogisticRegression(), synthesizer(), sample_seed=1)
    assert is_classifier(model)
    assert is_regressor(TrainOnSynthetic(LinearRegression(), synthesizer()))
    assert not hasattr(model, "classes_")
    with pytest.raises(NotFittedError):
        model.predict(PEOPLE)
    model.fit(PEOPLE, SICK)
    assert model.classes_.tolist() == ["no", "yes"]
    assert model.score(PEOPLE, SICK) > 0.9  # of 400 rows at epsilon 5; all runs with this seed are alike
    assert (model.predict_proba(PEOPLE).argmax(axis=1) == (model.decision_function(PEOPLE) > 0)).all()
    assert not hasattr(TrainOnSynthetic(LinearRegression(), synthesizer()), "predict_proba")
    with pytest.raises(ValueError, match="feature names"):
        model.predict(PEOPLE.rename(columns={"sex": "gender"}))


def test_parameters_are_nested_and_a_clone_has_them():
    model = TrainOnSynthetic(LogisticRegression(C=2.0), synthesizer(), n=30)
    copy = clone(model).set_params(synthesizer__epsilon=2.0, estimator__C=4.0)
    assert (copy.synthesizer.epsilon, copy.estimator.C, copy.n) == (2.0, 4.0, 30)
    assert (model.synthesizer.epsilon, model.estimator.C) == (5.0, 2.0)
    with pytest.raises(InputError, match="epsilon"):
        copy.set_params(synthesizer__epsilon=-1)
    assert "PrivSyn" in repr(model)
    assert "PrivSyn" in model._repr_html_()


def test_a_model_and_a_synthesizer_in_the_wrong_order_are_refused_before_anything_is_spent():
    with refuses(r"^synthesizer must be a PrivSyn; got LogisticRegression: the model comes first"):
        TrainOnSynthetic(synthesizer(), LogisticRegression()).fit(PEOPLE, SICK)


def test_a_model_that_learns_from_invented_cells_says_so():
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"size": rng.normal(5, 1, 300), "age": rng.normal(40, 9, 300)})
    y = pd.Series(rng.choice(["no", "yes"], 300), name="sick")
    schema = Schema({"size": Numerical(), "age": Numerical(), "sick": Categorical(["no", "yes"])})
    model = TrainOnSynthetic(LogisticRegression(), PrivSyn(0.03, 1e-6, schema, seed=0), n=100)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model.fit(X, y)
    (warned,) = [warning for warning in caught if "invented cells" in str(warning.message)]
    assert str(warned.message) == "2 of 3 columns were not found: this model learns from invented cells"
    assert {warning.filename for warning in caught if warning.category is NotFoundWarning} == {__file__}


def test_folds_and_candidates_each_spend_and_their_ledgers_add_up():
    model = TrainOnSynthetic(LogisticRegression(), PrivSyn(3.0, 1e-6, SCHEMA))
    runs = cross_validate(model, PEOPLE, SICK, cv=2, return_estimator=True)
    assert len(runs["test_score"]) == 2
    ledgers = [fitted.synthesizer_.ledger_ for fitted in runs["estimator"]]
    assert 3.0 < Ledger.compose(ledgers).epsilon <= 6.0
    steps = Pipeline([("same", FunctionTransformer()), ("model", model)])
    assert len(cross_val_score(steps, PEOPLE, SICK, cv=2)) == 2
    grid = GridSearchCV(steps, {"model__synthesizer__epsilon": [4.0]}, cv=2).fit(PEOPLE, SICK)
    assert grid.best_estimator_["model"].synthesizer_.ledger_.promised_epsilon == 4.0


@pytest.mark.parametrize("kind", [pd.DataFrame, pl.DataFrame, pa.Table.from_pandas])
def test_resampled_rows_have_the_type_of_the_table_and_no_missing_target(kind):
    some_missing = SICK.mask(PEOPLE["sex"] == 1)
    rows, target = synthesizer().fit_resample(kind(PEOPLE), some_missing, 100, seed=1)
    assert type(rows) is type(kind(PEOPLE))
    assert 0 < len(rows) == len(target) < 80  # half of the cells are missing; a seed repeats all
    assert set(pa.chunked_array(target.to_arrow() if kind is pl.DataFrame else target).to_pylist()) <= {
        "no",
        "yes",
    }


def test_resampled_arrays_are_arrays():
    schema = Schema({"x0": AGE, "x1": AGE, "target": Numerical(0, 1, nullable=False)})
    rows, target = PrivSyn(5.0, 1e-6, schema, seed=3).fit_resample(PEOPLE.to_numpy(), np.linspace(0, 1, 400))
    assert (type(rows), rows.dtype, rows.shape) == (np.ndarray, np.int64, (len(target), 2))
    assert (type(target), target.dtype) == (np.ndarray, np.float64)


@pytest.mark.parametrize(
    ("table", "y", "complaint"),
    [
        (PEOPLE, None, "requires y"),
        (PEOPLE, SICK.rename("age"), "already a column"),
        (csr_array(np.eye(3)), np.zeros(3), "a sparse matrix is no table"),
        (csr_array(np.eye(3)), None, "requires y"),
    ],
)
def test_what_it_cannot_learn_from_is_refused_before_anything_is_spent(table, y, complaint):
    with refuses(complaint):
        TrainOnSynthetic(LogisticRegression(), PrivSyn(1.0)).fit(table, y)


OUR_TABLES = {
    "check_classifier_data_not_an_array": "a table is one of pandas, polars, Arrow or NumPy",
    "check_classifiers_classes": "objects have no public type",
    "check_classifiers_train": "a list has no public type",
    "check_complex_data": "refused in other words",
    "check_dtype_object": "the columns are text, which the model here does not take",
    "check_estimators_nan_inf": "missing cells are taken: the model decides",
    "check_supervised_y_2d": "refused in other words",
}


@pytest.mark.slow
def test_scikit_learns_checks_hold_but_for_those_of_types_that_privsyn_does_not_take():
    model = TrainOnSynthetic(LogisticRegression(), PrivSyn(50.0, 1e-6, seed=0), n=300, sample_seed=0)
    check_estimator(model, expected_failed_checks=OUR_TABLES, on_skip=None)


class Weighing(ClassifierMixin, BaseEstimator):
    """Keeps the rows, classes and weights that it learns from."""

    def fit(self, X, y, sample_weight):
        self.classes_, self.seen_ = np.unique(y), (X, y, sample_weight)
        return self

    def predict(self, X):
        return np.full(len(X), self.classes_[0])


@pytest.mark.parametrize("kind", [pd.DataFrame, pl.DataFrame, pd.DataFrame.to_numpy])
@pytest.mark.parametrize("steps", [True, False])
def test_a_distilled_model_learns_each_class_of_each_row_by_the_probability_of_its_teacher(kind, steps):
    rows = pd.DataFrame({"a": [0.0, 1, 2, 3, 4, 5]})
    learner = Pipeline([("same", FunctionTransformer()), ("last", Weighing())]) if steps else Weighing()
    model = Distilled(learner, LogisticRegression()).fit(kind(rows), ["no", "yes", "no", "no", "yes", "yes"])
    X, y, weights = (model.estimator_["last"] if steps else model.estimator_).seen_
    assert np.asarray(X).ravel().tolist() == [*rows["a"]] * 2
    assert list(y) == ["no"] * 6 + ["yes"] * 6
    assert weights.tolist() == model.teacher_.predict_proba(kind(rows)).T.ravel().tolist()
    assert not hasattr(learner, "classes_")
    assert is_classifier(model)


def test_a_distilled_regressor_learns_what_its_teacher_predicts():
    X, y = np.arange(6.0)[:, None], np.array([0.0, 9, 2, 3, 4, 5])
    model = Distilled(DecisionTreeRegressor(), LinearRegression()).fit(X, y)
    assert np.allclose(model.predict(X), LinearRegression().fit(X, y).predict(X))
    assert is_regressor(model)
    with pytest.raises(NotFittedError):
        Distilled(DecisionTreeRegressor(), LinearRegression()).predict(X)


def test_a_distilled_model_learns_from_synthetic_rows_and_has_nested_parameters():
    model = TrainOnSynthetic(
        Distilled(LogisticRegression(), LogisticRegression()), synthesizer(), sample_seed=1
    )
    assert model.fit(PEOPLE, SICK).score(PEOPLE, SICK) > 0.9
    assert clone(model).set_params(estimator__teacher__C=4.0).estimator.teacher.C == 4.0


@pytest.mark.slow
def test_scikit_learns_checks_hold_of_a_distilled_model():
    check_estimator(Distilled(LogisticRegression(), LogisticRegression()), on_skip=None)


@pytest.mark.parametrize("n", [-1, "a", 10**12])
def test_a_number_of_rows_that_cannot_be_is_refused_before_the_fit(n):
    frame = pd.DataFrame({"a": ["x", "y"] * 50})
    model = PrivSyn(1.0, 1e-9)
    with pytest.raises(InputError, match="n must be a whole number"):
        model.fit_resample(frame, pd.Series(["u", "v"] * 50, name="b"), n=n)
    assert not hasattr(model, "release_")
