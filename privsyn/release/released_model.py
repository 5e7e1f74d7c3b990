"""ReleasedModel: a model whose `fit` makes a release."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from os import PathLike
from typing import IO, Any, Concatenate, Generic, ParamSpec, TypeVar, overload

from privsyn.errors import InputError
from privsyn.private.run_ledger import RunLedger
from privsyn.progress import Progress
from privsyn.release.accuracy.accuracy import Accuracy
from privsyn.release.losses.kinds import Loss
from privsyn.release.places import PlaceLevel
from privsyn.release.questions.answer import Answer
from privsyn.release.release import Release, TableT

P = ParamSpec("P")
R = TypeVar("R")


def _method_of_release(
    method: Callable[Concatenate[Release[TableT], P], R],
) -> Callable[Concatenate[ReleasedModel[TableT], P], R]:
    """Return a method of `Release` as one of the model, whose seed and progress are the defaults."""

    @wraps(method)
    def of_model(self: ReleasedModel[TableT], /, *args: P.args, **options: P.kwargs) -> R:
        for name in ("seed", "progress"):
            if options.get(name) is None:
                options[name] = getattr(self, name)
        return getattr(self._fitted, method.__name__)(*args, **options)

    return of_model


class ReleasedModel(Generic[TableT]):
    """A model whose `fit` makes a release; base of `PrivSyn`."""

    release_: Release[TableT]
    seed: int | None
    progress: Progress | None

    sample = _method_of_release(Release.sample)
    """Return a synthetic table; see `Release.sample`. The seed of the model is the default."""

    sample_blocks = _method_of_release(Release.sample_blocks)
    """Yield the same table in blocks of rows; see `Release.sample_blocks`."""

    sample_to = _method_of_release(Release.sample_to)
    """Write the same table to a file; see `Release.sample_to`."""

    draws = _method_of_release(Release.draws)
    """Return several synthetic tables that carry the noise; see `Release.draws`."""

    def with_public(self, tables: Any, *, rows: bool = True, target: str | None = None) -> Release[TableT]:
        """Return the release, improved by public tables; see `Release.with_public`."""
        release: Release[TableT] = self._fitted.with_public(tables, rows=rows, target=target)
        return release

    def save(self, path: str | PathLike[str] | IO[bytes]) -> None:
        """Write the release to one file; see `Release.save`."""
        self._fitted.save(path)

    @overload
    def ask(self, question: str, *, by: None = None) -> Answer: ...
    @overload
    def ask(self, question: str, *, by: str) -> tuple[Answer, ...]: ...
    def ask(self, question: str, *, by: str | None = None) -> Answer | tuple[Answer, ...]:
        """Answer a question in words, with a verdict; see `Release.ask`."""
        answer: Answer | tuple[Answer, ...] = self._fitted.ask(question, by=by)
        return answer

    def place_levels(self) -> tuple[PlaceLevel, ...]:
        """Say at which level of a hierarchy of places each column differs; see `Release.place_levels`."""
        levels: tuple[PlaceLevel, ...] = self._fitted.place_levels()
        return levels

    @property
    def ledger_(self) -> RunLedger:
        """The ledger: all private queries and their cost."""
        ledger: RunLedger = self._fitted.ledger
        return ledger

    @property
    def losses_(self) -> tuple[Loss, ...]:
        """What the run did to each column, the largest share of lost cells first; see `Release.losses`."""
        losses: tuple[Loss, ...] = self._fitted.losses
        return losses

    @property
    def accuracy_(self) -> Accuracy:
        """Error bars of the release."""
        accuracy: Accuracy = self._fitted.accuracy_
        return accuracy

    @property
    def _fitted(self) -> Any:
        if not hasattr(self, "release_"):
            raise InputError("the model is not fitted: call fit(table) first")
        return self.release_
