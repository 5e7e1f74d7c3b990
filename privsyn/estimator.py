"""Estimator: what scikit-learn expects of an estimator, without importing it."""

from __future__ import annotations

from inspect import signature
from typing import Any, Self

from privsyn.errors import InputError, safe_repr
from privsyn.notebook import html

LONGEST = 60
"""Characters of a parameter in the text of an estimator."""


class Estimator:
    """Parameters that are read, set and copied as scikit-learn does; base of `PrivSyn`.

    ``sklearn.base.clone``, ``Pipeline`` and searches over parameters work with such a class.
    The parameters are the arguments of ``__init__``, each kept unchanged as an attribute of its name. Unlike
    scikit-learn's estimators, ``__init__`` refuses a value that cannot work: `fit` may take long.
    """

    __setattr__ = object.__setattr__  # the parameters may be frozen in another base: here they can be set

    def __repr__(self) -> str:
        """Return the call that makes this estimator; parameters at their defaults are left out."""
        defaults = signature(type(self)).parameters
        changed = (
            f"{name}={_short(value)}"
            for name, value in self.get_params().items()
            if value is not defaults[name].default
        )
        return f"{type(self).__name__}({', '.join(changed)})"

    def _repr_html_(self) -> str:
        """Return the call, and what `fit` left, for a notebook."""
        release = getattr(self, "release_", None)
        return html(repr(self), (), *([] if release is None else [release._repr_html_()]))

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Return the parameters by name. `deep` changes nothing: no parameter is an estimator."""
        return {name: getattr(self, name) for name in signature(type(self)).parameters}

    def set_params(self, **params: Any) -> Self:
        """Set parameters by name, all or none; return the estimator.

        Raises
        ------
        InputError
            If there is no such parameter, or the values cannot work together.
        """
        parameters = self.get_params()
        for name in params:
            if name not in parameters:
                raise InputError(
                    f"there is no parameter {safe_repr(name)}: choose from {', '.join(parameters)}"
                )
        type(self)(**{**parameters, **params})
        for name, value in params.items():
            setattr(self, name, value)
        return self

    def __sklearn_is_fitted__(self) -> bool:
        """Return whether `fit` has ended."""
        return hasattr(self, "release_")

    def __sklearn_tags__(self) -> Any:
        """Return scikit-learn's description of what `fit` takes."""
        from sklearn.utils import InputTags, Tags, TargetTags

        takes = InputTags(string=True, categorical=True, allow_nan=True)
        return Tags(estimator_type=None, target_tags=TargetTags(required=False), input_tags=takes)


def _short(value: object) -> str:
    """Return a parameter's text, or its type in angle brackets if the text is long; a function's name."""
    text: str = getattr(value, "__qualname__", repr(value))
    return text if len(text) <= LONGEST else f"<{type(value).__name__}>"
