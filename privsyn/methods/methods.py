"""The methods by name: how each one learns from a private table and makes records."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Protocol

import numpy as np

from privsyn.abilities import METHOD, refused
from privsyn.inference.fitted import Fitted
from privsyn.inference.measured_columns import PublicFacts
from privsyn.marginals.domain import Records
from privsyn.methods import default
from privsyn.methods.paper import learn as paper
from privsyn.methods.paper.gum import synthesise_as_published
from privsyn.methods.paper.parameters import Parameters
from privsyn.private.accounting import Accounting
from privsyn.private.measure import PrivateTable
from privsyn.private.noise_laws import Law
from privsyn.progress import Progress
from privsyn.synthesis.synthesise import synthesise
from privsyn.synthesis.targets import Targets


class Learn(Protocol):
    """Put questions to the private table and make the answers consistent.

    `rho` is the budget for one row, and all of it is spent. `rng` serves computations on released answers. It
    draws no noise.
    """

    def __call__(  # noqa: D102
        self,
        private: PrivateTable,
        rho: float,
        rng: np.random.Generator,
        report: Progress,
        facts: PublicFacts,
    ) -> Fitted: ...


class Synthesise(Protocol):
    """Make `n` records whose counts are as close as possible to the targets."""

    def __call__(  # noqa: D102
        self,
        targets: Targets,
        n: int,
        rng: np.random.Generator,
        *,
        progress: Progress | None,
    ) -> Records: ...


@dataclass(frozen=True)
class Method:
    """An algorithm from private rows to records.

    Parameters
    ----------
    name : str
        Its key in `METHODS` and its name in saved models.
    learn : Learn
    synthesise : Synthesise
    accounting : "gaussian", "zcdp" or "classical", optional
        How the budget is accounted. Default: the tightest accounting that holds for the noise.
    fine_cells : bool
        Whether numbers and times are encoded in fine cells, which `learn` joins to groups.
    takes_target : bool
        Whether `learn` can favour the tables that contain a column to be predicted.
    takes_important : bool
        Whether `learn` can favour the sets of columns that matter most.
    takes_weight : bool
        Whether `learn` counts each column with the weights of rows.
    takes_randomised : bool
        Whether `learn` makes the counts of randomised columns unbiased.
    takes_totals : bool
        Whether `learn` and `synthesise` meet known totals.
    stages : int
        Of questions: the steps of "measuring". `fit` reports the beginning, `learn` the end of each.
    configure : callable, optional
        Return the method with the parameters of a mapping. Default: it has no parameters.
    parameters : mapping of str
        Those that are not the defaults, as plain data: models and ledgers name them.
    """

    name: str
    learn: Learn
    synthesise: Synthesise
    accounting: Accounting | None = None
    fine_cells: bool = True
    takes_target: bool = True
    takes_important: bool = True
    takes_weight: bool = True
    takes_randomised: bool = False
    takes_totals: bool = False
    stages: int = 1
    configure: Callable[[Mapping[str, Any]], Method] | None = None
    parameters: Mapping[str, Any] = field(default_factory=dict)

    def with_parameters(self, changed: Mapping[str, Any]) -> Method:
        """Return the method with these parameters; raise an `InputError` if one cannot work."""
        if not changed:
            return self
        if self.configure is None:
            raise refused(METHOD, "parameters", algorithm=self.name)
        return self.configure(changed)

    @property
    def parameters_in_words(self) -> str:
        """The parameters that are not the defaults, for people; "" if there is none."""
        return ", ".join(f"{name} {value}" for name, value in self.parameters.items())

    def accounting_of(self, law: Law) -> Accounting:
        """Return how a run with this law of noise is accounted."""
        return self.accounting or law.accounting


def published(changed: Mapping[str, Any]) -> Method:
    """Return the published method with other parameters than the paper's."""
    parameters = Parameters.of(changed)
    return replace(
        PUBLISHED,
        learn=partial(paper.learn, parameters=parameters),
        synthesise=partial(synthesise_as_published, parameters=parameters),
        parameters=parameters.changed,
    )


DEFAULT = Method(
    "default", default.learn, synthesise, takes_randomised=True, takes_totals=True, stages=default.STAGES
)
PUBLISHED = Method(
    "published",
    paper.learn,
    synthesise_as_published,
    accounting="classical",
    fine_cells=False,
    takes_target=False,
    takes_important=False,
    takes_weight=False,
    stages=paper.STAGES,
    configure=published,
)
METHODS: dict[str, Method] = {method.name: method for method in (DEFAULT, PUBLISHED)}
"""The methods that `PrivSyn(method=...)` knows; docs/extending.md adds one."""
