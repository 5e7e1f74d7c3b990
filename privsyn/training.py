"""TrainOnSynthetic: a model of scikit-learn that learns from synthetic rows in place of private ones."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

from sklearn.base import clone
from sklearn.utils import get_tags
from sklearn.utils.validation import validate_data

from privsyn.errors import InputError, NotFoundWarning, plural
from privsyn.evaluation.delegate import Delegate

if TYPE_CHECKING:
    from privsyn.synthesizer import PrivSyn


class TrainOnSynthetic(Delegate):
    """Fit a synthesizer on private rows, and a model on its synthetic rows.

    The model sees no private row: it may be published, for it costs no privacy beyond that of the
    synthesizer. Steps that learn, such as a scaler or an encoder, belong into `estimator`. Before this step
    of a pipeline they would read private rows.

    Each `fit` spends the epsilon of the synthesizer. Cross-validation and searches over parameters fit once
    a fold and candidate, and these epsilons add up. Their scores are computed from real rows: NOT PRIVATE.

    Parameters
    ----------
    estimator : classifier, regressor or Pipeline of scikit-learn
    synthesizer : PrivSyn
        Its `target` is `y`, so it has none of its own.
    n : int, optional
        Number of synthetic rows. Default: the private estimate of the table's row count.
    sample_seed : int, optional
        Makes the sample repeatable. Sampling adds no noise, so privacy is the same.

    Attributes
    ----------
    synthesizer_ : PrivSyn
        The fitted synthesizer. All of it may be published: `synthesizer_.ledger_` is what was spent.
    estimator_ : estimator
        The model that learnt from synthetic rows.
    classes_ : array of the classes that synthetic rows have
        Of a classifier alone. Classes so rare that noise hides them are not among them.
    feature_names_in_, n_features_in_ : array of str, int
        The columns of X, and their number.

    Examples
    --------
    >>> import pandas as pd
    >>> from privsyn import Categorical, Numerical, PrivSyn, Schema, TrainOnSynthetic
    >>> from sklearn.linear_model import LogisticRegression
    >>> X = pd.DataFrame({"age": [30, 40, 60, 70] * 100})
    >>> y = pd.Series([0, 0, 1, 1] * 100, name="sick")
    >>> schema = Schema({
    ...     "age": Numerical(0, 99, integer=True, nullable=False), "sick": Categorical([0, 1], nullable=False)
    ... })
    >>> model = TrainOnSynthetic(LogisticRegression(), PrivSyn(epsilon=5.0, delta=1e-6, schema=schema))
    >>> model.fit(X, y).predict(pd.DataFrame({"age": [20, 80]})).tolist()
    [0, 1]
    >>> model.synthesizer_.ledger_.promised_epsilon
    5.0
    """

    _required_parameters = ("estimator", "synthesizer")

    def __init__(
        self,
        estimator: Any,
        synthesizer: PrivSyn[Any],
        *,
        n: int | None = None,
        sample_seed: int | None = None,
    ) -> None:
        self.estimator = estimator
        self.synthesizer = synthesizer
        self.n = n
        self.sample_seed = sample_seed

    def fit(self, X: Any, y: Any) -> Self:
        """Fit a copy of the synthesizer on the private rows, and a copy of the model on its sample.

        If the model cannot learn from the synthetic rows, `synthesizer_` keeps what was paid for. A
        `NotFoundWarning` says of how many columns the cells are invented.

        Parameters
        ----------
        X : pandas or polars DataFrame, pyarrow Table, or NumPy matrix
        y : sequence
            The column to be predicted: see `PrivSyn.fit`.
        """
        if not hasattr(self.synthesizer, "fit_resample"):
            kind = type(self.synthesizer).__name__
            raise InputError(
                f"synthesizer must be a PrivSyn; got {kind}: the model comes first, as in"
                " TrainOnSynthetic(LogisticRegression(), PrivSyn(1.0))"
            )
        validate_data(self, X, skip_check_array=True)  # takes names and number of columns, and reads no cell
        self.synthesizer_ = clone(self.synthesizer)
        synthetic, target = self.synthesizer_.fit_resample(X, y, self.n, seed=self.sample_seed)
        if lost := len(self.synthesizer_.not_found_):
            of_all = plural(len(self.synthesizer_.feature_names_in_) + 1, "column")
            NotFoundWarning.warn(f"{lost} of {of_all} were not found: this model learns from invented cells")
        self.estimator_ = clone(self.estimator).fit(synthetic, target)
        return self

    def __sklearn_tags__(self) -> Any:
        """Return the description of the model: a classifier stays one, for splits and scores."""
        tags = get_tags(self.estimator)
        tags.target_tags.required, tags.target_tags.multi_output = True, False
        tags.input_tags.sparse, tags.non_deterministic = False, True
        return tags
