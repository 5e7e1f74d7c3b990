"""ReleasedModel: methods of a fitted model, all of which use only its release."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from os import PathLike
from typing import Concatenate, ParamSpec, TypeVar

from privsyn.errors import InputError
from privsyn.private.ledger import Ledger
from privsyn.progress import Progress
from privsyn.release.accuracy import Accuracy
from privsyn.release.release import Release

P = ParamSpec("P")
R = TypeVar("R")


def _of_release(
    method: Callable[Concatenate[Release, P], R],
) -> Callable[Concatenate[ReleasedModel, P], R]:
    """Return a method of `Release` as one of the model, whose seed and progress are the defaults."""

    @wraps(method)
    def of_model(self: ReleasedModel, /, *args: P.args, **options: P.kwargs) -> R:
        for name in ("seed", "progress"):
            if options.get(name) is None:
                options[name] = getattr(self, name)
        return method(self._fitted, *args, **options)

    return of_model


class ReleasedModel:
    """A model whose `fit` makes a release; base of `PrivSyn`."""

    release_: Release
    seed: int | None
    progress: Progress | None

    sample = _of_release(Release.sample)
    """Return a synthetic table; see `Release.sample`. The seed of the model is the default."""

    sample_blocks = _of_release(Release.sample_blocks)
    """Yield the same table in blocks of rows; see `Release.sample_blocks`."""

    sample_to = _of_release(Release.sample_to)
    """Write the same table to a file; see `Release.sample_to`."""

    draws = _of_release(Release.draws)
    """Return several synthetic tables that carry the noise; see `Release.draws`."""

    def save(self, path: str | PathLike[str]) -> None:
        """Write the release to one file; see `Release.save`."""
        self._fitted.save(path)

    @property
    def ledger_(self) -> Ledger:
        """The ledger: all private queries and their cost."""
        return self._fitted.ledger

    @property
    def accuracy_(self) -> Accuracy:
        """Error bars of the release; see `Accuracy`."""
        return self._fitted.accuracy_

    @property
    def _fitted(self) -> Release:
        if not hasattr(self, "release_"):
            raise InputError("the model is not fitted: call fit(table) first")
        return self.release_
