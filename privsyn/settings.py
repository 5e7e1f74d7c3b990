"""Settings: what a run takes besides its table. Each is declared, explained in a line and checked here alone.

The command line makes its options from these fields: so this module imports nothing heavy.
"""

from dataclasses import KW_ONLY, dataclass, field, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from privsyn.abilities import (
    ALONE,
    APART,
    LINKED,
    METHOD,
    NOBODY,
    PERSONS,
    RANDOMISED,
    TOGETHER,
    check_abilities,
)
from privsyn.errors import InputError, safe_repr, spelled
from privsyn.progress import Progress

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from privsyn.methods.methods import Method
    from privsyn.private.noise_laws import Law
    from privsyn.release.acceptance.criteria import Criteria
    from privsyn.table.database.database import Database
    from privsyn.table.database.declared import Table
    from privsyn.table.schema.important import Sets
    from privsyn.table.schema.schema import Schema
    from privsyn.table.schema.yaml_file import SchemaOrPath


def _option(help: str, **more: Any) -> dict[str, Any]:  # noqa: A002
    """Return what the command line needs to know of a field; a field without it is no option.

    This is the help, with more where it is ``optional``; the ``type``, if the field has another; the
    ``least`` number; its ``metavar``; and the ``flag`` that gives the field the value ``means``. Settings
    that are ``agreed`` are the same at all owners.
    """
    return {"help": help} | more


class Declared(NamedTuple):
    """What a schema declares: a database, and the schema of one table, if it declares a column of it.

    The schema and the setting `important` name the sets of columns that matter most.
    """

    database: "Database"
    public: "Schema | None"
    important: "Sets"


@dataclass(frozen=True, eq=False)
class Settings:
    """The settings of a run; `PrivSyn` documents them. All but three are keyword-only.

    Raises
    ------
    InputError
        If a setting cannot work.

    Examples
    --------
    >>> settings = Settings(1.0, unit="who", rows_per_unit=3)
    >>> settings.promise, settings.law.name, settings.most_rows
    ((1.0, 1e-09), 'gaussian', 3)
    """

    epsilon: float | None = field(
        default=None,
        metadata=_option(
            "The privacy budget: smaller is more private.",
            optional=" Needed unless all columns are randomised (`keep`).",
            agreed=True,
        ),
    )
    delta: float = field(
        default=1e-9,
        metadata=_option(
            "The delta of (epsilon, delta)-differential privacy; 0 for pure epsilon.", agreed=True
        ),
    )
    schema: "SchemaOrPath | Table | Database | None" = field(
        default=None,
        metadata=_option(
            "Public facts about the columns, as YAML; `privsyn schema` drafts it.", type=Path | None
        ),
    )
    _: KW_ONLY
    unit: str | None = field(
        default=None,
        metadata=_option("The column that identifies persons. Protects all rows of a person.", agreed=True),
    )
    rows_per_unit: int | None = field(
        default=None,
        metadata=_option(
            "With --unit, the largest bound on a person's rows, which follows from noisy counts. Public.",
            agreed=True,
            least=1,
        ),
    )
    identifiers: bool = field(
        default=False,
        metadata=_option(
            "With --unit, the result has that column, with new identifiers: rows of one person belong"
            " together.",
            flag="--identifiers",
            means=True,
        ),
    )
    order: str | None = field(
        default=None,
        metadata=_option("With --identifiers, the column by which the rows of a person are in order."),
    )
    derive: "Mapping[str, str] | None" = None
    target: str | None = field(
        default=None,
        metadata=_option("A column that models predict; its dependences get more weight.", agreed=True),
    )
    important: "Sequence[Sequence[str]] | None" = field(
        default=None,
        metadata=_option(
            "Two or three columns whose relation matters most: it is measured best. Repeat.",
            type=list[str] | None,
            metavar="COL,COL",
            agreed=True,
        ),
    )
    nullable: bool = field(
        default=True,
        metadata=_option(
            "No synthetic cell is missing; a missing cell counts as the first value or lower bound.",
            flag="--no-missing",
            means=False,
        ),
    )
    seed: int | None = field(
        default=None,
        metadata=_option("Makes the run repeatable, noise included: NOT PRIVATE.", least=0),
    )
    method: str = field(
        default="default",
        metadata=_option("Use the published algorithm, step by step.", flag="--paper", means="published"),
    )
    parameters: "Mapping[str, Any] | Sequence[str] | None" = field(
        default=None,
        metadata=_option(
            "A parameter of the published algorithm, such as rounds=50 (docs/paper.md). Repeat.",
            type=list[str] | None,
            metavar="NAME=VALUE",
        ),
    )
    memory: int | str = field(
        default="2GB",
        metadata=_option("For rows and counts. A table that needs more is read several times.", type=str),
    )
    public: object = field(
        default=None,
        metadata=_option(
            "A table, or a folder of linked ones, that IS PUBLIC, such as last year's. Synthetic rows"
            " may be its rows.",
            type=Path | None,
        ),
    )
    public_rows: bool = field(
        default=True,
        metadata=_option(
            "With --public or --since, no synthetic row is one of those rows: they improve the counts alone.",
            flag="--no-public-rows",
            means=False,
        ),
    )
    totals: object = field(
        default=None,
        metadata=_option(
            "A table of exact counts that ARE PUBLIC, or a folder of such: the rows have them. Repeat.",
            type=list[Path] | None,
            metavar="FILE",
        ),
    )
    since: object = field(
        default=None,
        metadata=_option(
            "A saved model of earlier rows of a table that grows: rows may be drawn from it. Promises add up."
            " Repeat.",
            type=list[Path] | None,
        ),
    )
    disjoint: bool = field(
        default=False,
        metadata=_option(
            "With --since, your statement that nobody here is in an earlier table, or in two of those given:"
            " promises do not add up.",
            flag="--disjoint",
            means=True,
        ),
    )
    accept: object = field(
        default=None,
        metadata=_option(
            "Criteria that the result must meet, as YAML. If not met: exit status 1, no table.",
            type=Path | None,
        ),
    )
    allow_weak_privacy: bool = field(
        default=False,
        metadata=_option(
            "Accept an epsilon above 100 or a delta above 0.001.", flag="--allow-weak-privacy", means=True
        ),
    )
    progress: Progress | None = None

    def __post_init__(self) -> None:
        """Refuse what cannot work, before any row is read. Every rule of the settings is here."""
        from privsyn.arguments import check_bytes, check_finite, check_promise, check_whole
        from privsyn.methods.budget import check_enough
        from privsyn.methods.persons import MOST_TESTED
        from privsyn.private.accounting import rho_for
        from privsyn.release.acceptance.criteria import check_accept
        from privsyn.release.acceptance.layout import check_affordable
        from privsyn.table.kinds.column_settings import flag

        check_finite(spelled("delta"), self.delta)
        declared = self.declared
        public = declared.public
        self._check_abilities(declared)
        self._check_unit(public)
        self._check_since()
        _ = self.database if self.identifiers else None  # refuses a summary that cannot be read
        if self.seed is not None:
            check_whole(spelled("seed"), self.seed)
        check_bytes(spelled("memory"), self.memory)
        if public is not None:
            if self.target is not None:
                public.check_coded("target", self.target, public=True)
            if declared.important:
                public.check_important(spelled("important"), declared.important)
        self._check_epsilon(public)
        if (criteria := self.criteria) is not None:
            check_accept(criteria, public, self.epsilon)
        if self.epsilon is not None:
            check_promise(*self.promise, allowed=flag("allow_weak_privacy", self.allow_weak_privacy))
            cost, share = rho_for(*self.promise, self.algorithm.accounting_of(self.law)), 0.0
            if criteria is not None:
                check_affordable(criteria, self.law, cost, 1 if self.largest_bound == 1 else MOST_TESTED)
                share = criteria.share
            check_enough((1 - share) * cost, self.law, self.epsilon, self.largest_bound)

    def _check_abilities(self, declared: "Declared") -> None:
        """Refuse a method that does not exist, and settings that such a run does not take."""
        from privsyn.methods.methods import METHODS

        if not isinstance(self.method, str) or self.method not in METHODS:
            names = " or ".join(f'"{name}"' for name in METHODS)
            raise InputError(f"method must be {names}; got {safe_repr(self.method)}")
        requests, method = self._requests(declared), self.algorithm
        taken = {
            "pure": method.accounting is None,
            "target": method.takes_target,
            "matters_most": method.takes_important,
            "weight": method.takes_weight,
            "keep": method.takes_randomised,
            "totals": method.takes_totals,
        }
        lacking = {name: requests[name] for name, takes in taken.items() if not takes}
        check_abilities([METHOD], lacking, algorithm=self.method)
        check_abilities(self._kinds(declared), requests)

    def _check_unit(self, public: "Schema | None") -> None:
        """Refuse a unit that is no name or a column of the schema, and a bound that is no number."""
        from privsyn.arguments import check_whole

        if self.unit is not None and not isinstance(self.unit, str):
            raise InputError(f"{spelled('unit')} must be the name of a column; got {safe_repr(self.unit)}")
        if self.rows_per_unit is not None:
            check_whole(spelled("rows_per_unit"), self.rows_per_unit, minimum=1)
        if public is not None and self.unit in public.columns:
            raise InputError(
                f"{spelled('unit')} {self.unit!r} is a column of the schema: remove it there, identifiers are"
                " not synthesised"
            )

    def _check_since(self) -> None:
        """Refuse a public table beside earlier releases, and a statement about none."""
        if self.since is not None and self.public is not None:
            raise InputError(f"{spelled('public')} and {spelled('since')} are two settings: give one of them")
        if self.disjoint and self.since is None:
            raise InputError(f"{spelled('disjoint')} needs {spelled('since')}, the earlier releases")

    def _check_epsilon(self, public: "Schema | None") -> None:
        """Refuse a run without epsilon of columns that are not randomised.

        >>> from privsyn import Categorical, Schema
        >>> Settings(schema=Schema({"sex": Categorical(["F", "M"])}))
        Traceback (most recent call last):
        privsyn.errors.InputError: give epsilon, the privacy budget
        """
        if self.epsilon is not None:
            return
        if public is None:
            raise InputError(f"give {spelled('epsilon')}, the privacy budget")
        if exact := [name for name in public.coded if name not in public.randomised]:
            why = f": column {exact[0]!r} is not randomised" if public.randomised else ""
            raise InputError(f"give {spelled('epsilon')}, the privacy budget{why}")

    @property
    def kinds(self) -> tuple[str, ...]:
        """The kinds of run that these settings ask for, as `abilities` calls them."""
        return self._kinds(self.declared)

    def _kinds(self, declared: "Declared") -> tuple[str, ...]:
        public, linked = declared.public, declared.database.single is None
        coded = () if public is None else public.coded
        applies = {
            LINKED: linked,
            TOGETHER: not linked and self.identifiers and self.unit is not None,
            ALONE: not linked and not self.identifiers and self.unit is None,
            APART: not linked and not self.identifiers,
            NOBODY: not linked and self.unit is None,
            PERSONS: not linked and self.unit is not None,
            RANDOMISED: public is not None and coded and set(coded) <= set(public.randomised),
        }
        return tuple(kind for kind, holds in applies.items() if holds)

    @property
    def requests(self) -> dict[str, object]:
        """What these settings ask for, by the names that `abilities` uses."""
        return self._requests(self.declared)

    def _requests(self, declared: "Declared") -> dict[str, object]:
        return {setting.name: getattr(self, setting.name) for setting in fields(self)} | {
            "matters_most": declared.important,
            "method": self.algorithm.accounting is not None,
            "weight": None if declared.public is None else declared.public.weight,
            "pure": float(self.delta) == 0,
            "keep": declared.public is not None and declared.public.randomised,
            "randomised": self.epsilon is None,
            "rules": declared.database.about_persons,
            "tables": LINKED in self._kinds(declared),
        }

    @property
    def declared(self) -> "Declared":
        """What the schema declares. Its file is read each time."""
        from privsyn.table.database.yaml_form import as_database
        from privsyn.table.kinds.column_settings import flag
        from privsyn.table.schema.important import read_important
        from privsyn.table.schema.schema import declared

        database, argument = as_database(self.schema), spelled("important")
        schema = database.schema
        important = read_important(argument, self.important)
        if schema is not None:
            important = read_important(argument, (*important, *schema.important))
        public = declared(schema)
        if public is not None and not flag("nullable", self.nullable):
            public = public.without_missing()
        return Declared(database, public, important)

    @property
    def matters_most(self) -> "Sets":
        """The sets of columns that matter most, by the setting and by the schema."""
        return self.declared.important

    @property
    def database(self) -> "Database":
        """The tables of the run: all that the schema declares; one; or persons and their rows."""
        from privsyn.table.database.yaml_form import as_database, persons_and_rows

        database = as_database(self.schema)
        if self.unit is None or not self.identifiers:
            return database
        return persons_and_rows(self.unit, database, self.order, self.derive)

    @property
    def criteria(self) -> "Criteria | None":
        """What the release must meet."""
        from privsyn.release.acceptance.criteria import read_criteria

        return read_criteria(self.accept)

    @property
    def algorithm(self) -> "Method":
        """The method that the setting `method` names, with its `parameters`."""
        from privsyn.arguments import read_parameters
        from privsyn.methods.methods import METHODS

        return METHODS[self.method].with_parameters(read_parameters(spelled("parameters"), self.parameters))

    @property
    def law(self) -> "Law":
        """The law of the noise of one owner: discrete Laplace if delta is 0."""
        from privsyn.private.noise_laws import law_of

        return law_of(self.promise[1])

    @property
    def promise(self) -> tuple[float, float]:
        """Epsilon and delta as doubles. Accounting would round other types of number differently."""
        from privsyn.arguments import check_finite

        return check_finite(spelled("epsilon"), self.epsilon), check_finite(spelled("delta"), self.delta)

    @property
    def most_rows(self) -> int:
        """The most rows of one person: 1 if each row is a person, 0 if they are not limited."""
        if NOBODY in self.kinds:
            return 1
        return 0 if self.rows_per_unit is None else int(self.rows_per_unit)

    @property
    def largest_bound(self) -> int:
        """The largest bound on the rows of one person that a run may choose: known before the run."""
        from privsyn.inference.rows_per_person import LARGEST_BOUND

        return min(self.most_rows or LARGEST_BOUND, LARGEST_BOUND)

    @property
    def agreed(self) -> dict[str, Any]:
        """The values of the settings that are the same at all owners."""
        exact: dict[str, Any] = dict(zip(("epsilon", "delta"), self.promise, strict=True))
        exact["important"] = self.matters_most
        return {name: exact.get(name, getattr(self, name)) for name in AGREED}


AGREED = tuple(setting.name for setting in fields(Settings) if "agreed" in setting.metadata)
"""The settings that are the same at all owners."""
