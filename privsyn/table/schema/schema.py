"""Schema: what is public about the columns of a table, each of a kind, and about all of them together."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from types import MappingProxyType
from typing import Any

import pandas as pd

from privsyn.arguments import check_column
from privsyn.errors import InputError, did_you_mean, safe_repr, spelled
from privsyn.notebook import html, html_table
from privsyn.table.encoding.dtypes import Dtype, family, hint_of, its
from privsyn.table.kinds.column import in_words
from privsyn.table.kinds.column_settings import marks
from privsyn.table.kinds.csv_format import CsvFormat
from privsyn.table.kinds.generated import Identifier
from privsyn.table.kinds.ordinal import ordinal_of
from privsyn.table.schema.about import About, read_about
from privsyn.table.schema.columns import Coded, Column, Ordinal, Weight
from privsyn.table.schema.constraint import Constraint, about_constraint, computed_by, in_order
from privsyn.table.schema.expressions import parse_expression
from privsyn.table.schema.important import Sets, read_important


@dataclass(frozen=True)
class Schema:
    """Declare the public facts about a table.

    Parameters
    ----------
    columns : mapping of str to Categorical, Numerical, Datetime, Time, Duration, Weight, Identifier or Text
    missing : str or list of str
        Texts that mean a missing cell in a file, in every column, in addition to the empty cell.
    csv : CsvFormat, optional
        How a CSV file is written. If a schema has nothing else, columns follow from names and dtypes, as
        without a schema.
    constraints : list of str and of Forbidden, Allowed, Determined, Lookup, Increasing, Total, Elapsed, ...
        What holds in every row, and is public; see `privsyn.table.schema.constraint`. Text is an expression
        such as ``"end >= start"``. The schema keeps the constraints that it means.
    important : list of pairs and triples of names
        The columns whose relations matter most: `fit` measures their counts best.
    about : About or mapping, optional
        The publisher's words on the table, for its pages and for catalogues.

    Examples
    --------
    >>> from privsyn import Categorical, Numerical
    >>> schema = Schema({"age": Numerical(17, 90), "job": Categorical(["a", "b"])}, missing="?")
    >>> list(schema.columns), schema.markers("job")
    (['age', 'job'], ('', '?'))
    """

    columns: Mapping[str, Column]
    missing: str | Sequence[str] = field(default=(), kw_only=True)
    csv: CsvFormat = field(default=CsvFormat(), kw_only=True)
    constraints: Sequence[Any] = field(default=(), kw_only=True)  # Constraint; text is replaced
    important: Sets = field(default=(), kw_only=True)
    about: About | None = field(default=None, kw_only=True)

    def __post_init__(self) -> None:
        if not isinstance(self.csv, CsvFormat):
            raise InputError(f"csv is a CsvFormat, not {safe_repr(self.csv)}")
        if not isinstance(self.columns, Mapping):
            raise InputError('a schema maps names to columns, as in Schema({"age": Numerical(0, 100)})')
        object.__setattr__(self, "columns", MappingProxyType(dict(self.columns)))
        object.__setattr__(self, "missing", marks(self.missing))
        for name, column in self.columns.items():
            if not isinstance(name, str):
                raise InputError(f"the column name {safe_repr(name)} is not text: rename the column")
            if not isinstance(column, Column):
                raise InputError(
                    f"column {name!r}: {safe_repr(column)} is not a Categorical, Numerical, Datetime, ..."
                )
            values = column.listed or (() if column.other is None else (column.other,))
            both = {str(value) for value in values} & {*self.missing, *getattr(column, "missing", ())}
            if both:
                raise InputError(
                    f"column {name!r}: {safe_repr(min(both))} is both a value and a mark for missing"
                )
        if len(weights := [name for name, kind in self.columns.items() if isinstance(kind, Weight)]) > 1:
            raise InputError(
                f"columns {weights[0]!r} and {weights[1]!r} are weights: a table has one at most"
            )
        columns, constraints = _derive_columns(self.columns, self.constraints)
        object.__setattr__(self, "columns", MappingProxyType(columns))
        object.__setattr__(self, "constraints", constraints)
        object.__setattr__(self, "important", read_important("important", self.important))
        object.__setattr__(self, "about", read_about(self.about))
        if self.columns:
            self.check_important("important", self.important)

    def __reduce__(self) -> tuple[Callable[..., Schema], tuple[object, ...]]:
        # A read-only mapping cannot be copied or pickled; a plain one can.
        settings = ("missing", "csv", "constraints", "important", "about")
        return partial(Schema, **{name: getattr(self, name) for name in settings}), (dict(self.columns),)

    @property
    def says_nothing(self) -> bool:
        """Whether it has no column, and says neither how a file is written nor what it is about."""
        return not self.columns and self.csv == CsvFormat() and self.about is None

    @property
    def weight(self) -> str | None:
        """The column of weights; None if each row counts once."""
        return next((name for name, column in self.columns.items() if isinstance(column, Weight)), None)

    @property
    def computed(self) -> tuple[str, ...]:
        """The columns that constraints compute from others; they cost no budget."""
        return tuple(computed_by(self.constraints))

    def without_missing(self, names: Collection[str] | None = None) -> Schema:
        """Return the schema in which the columns `names`, by default all, have ``nullable=False``.

        A column that was randomised with missing cells among its values stays nullable, and is refused by
        default: the respondents answered with them.

        Examples
        --------
        >>> from privsyn import Numerical
        >>> Schema({"age": Numerical(17, 90)}).without_missing().columns["age"].nullable
        False
        """
        randomised = [name for name in self.randomised if self.columns[name].nullable]  # type: ignore[attr-defined]
        if randomised and names is None:
            raise InputError(
                f"nullable=False: column {randomised[0]!r} was randomised with missing cells among its"
                " values; say nullable: false of the others in the schema"
            )
        chosen = set(self.coded if names is None else names).difference(randomised).intersection(self.coded)
        changed = {name: replace(self.columns[name], nullable=False) for name in chosen}
        return replace(self, columns={**self.columns, **changed})

    def without(self, names: Collection[str]) -> Schema:
        """Return the schema without some columns, which no constraint names."""
        return replace(self, columns={name: kind for name, kind in self.columns.items() if name not in names})

    def markers(self, name: str) -> tuple[str, ...]:
        """Return the texts that mean a missing cell of this column in a file."""
        column = self.columns[name]
        empty = () if "" in column.listed else ("",)
        return (*empty, *self.missing, *getattr(column, "missing", ()))

    def explain(self) -> str:
        """Return in plain English what each column and each constraint does.

        Examples
        --------
        >>> from privsyn import Identifier, Numerical
        >>> digit = Numerical(0, 9, integer=True)
        >>> columns = {"id": Identifier(), "low": digit, "high": digit}
        >>> print(Schema(columns, constraints=["low <= high"]).explain())
        id: names the row. Its cells are never read; synthetic rows get generated ones; none is missing.
        low: whole numbers from 0 to 9; others are clipped. A cell may be missing.
        high: whole numbers from 0 to 9; others are clipped. A cell may be missing.
        Constraint 1: low <= high. Columns or their gaps are counted, whichever spread less.
        """
        columns = [f"{name}: {self.sentence_on(name)}" for name in self.columns]
        rules = [
            f"Constraint {number}: {constraint.explain()}"
            for number, constraint in enumerate(self.constraints, 1)
        ]
        return "\n".join([*self._first_lines, *columns, *rules])

    def sentence_on(self, name: str) -> str:
        """Return what one column does."""
        computed = " Not counted: it is computed, at no cost." if name in self.computed else ""
        return f"{self.columns[name].sentence}{computed}"

    @property
    def _first_lines(self) -> list[str]:
        line = f"In every column of a file, the empty cell and {in_words(self.missing)} mean a missing cell."
        words = "" if self.about is None else self.about.line
        return [*([words] if words else []), *([line] if self.missing else [])]

    def _repr_html_(self) -> str:
        columns = [(name, self.sentence_on(name)) for name in self.columns]
        rules = [(number, constraint.explain()) for number, constraint in enumerate(self.constraints, 1)]
        tables = [html_table(("column", "what is public about it"), columns)]
        tables += [html_table(("constraint", "what holds in every row"), rules)] if rules else []
        return html("Schema", self._first_lines, *tables)

    @cached_property
    def coded(self) -> Mapping[str, Coded]:
        """The columns that are counted: all but identifiers and free text. Not to be changed."""
        return {name: column for name, column in self.columns.items() if isinstance(column, Coded)}

    def ordinal(self, name: str) -> Ordinal:
        """Return a column of numbers or dates.

        Raises
        ------
        TypeError
            If the column is of another kind: whoever reads a rule has refused it.
        """
        return ordinal_of(self.columns[name])

    def check_coded(self, argument: str, name: object, *, public: bool = False, read: bool = False) -> None:
        """Refuse a name that is no column to be synthesised; see `privsyn.arguments.check_column`."""
        check_column(spelled(argument), name, self.coded, public=public, read=read, left_out=self.columns)

    def check_important(self, subject: str, sets: Sets, *, read: bool = False) -> None:
        """Refuse sets with a column that is not counted; the names are not shown if they were `read`."""
        for name in (name for names in sets for name in names):
            if name in self.columns and name not in self.coded:
                raise InputError(
                    f"{subject} {name!r} is never counted, as an identifier or free text: leave it out"
                )
            check_column(subject, name, self.coded, public=True, read=read)
            if name in self.computed:
                raise InputError(
                    f"{subject} {name!r} is computed from other columns: name one of these instead"
                )

    @property
    def randomised(self) -> dict[str, float]:
        """The columns that the respondents randomised, and the probability that a cell was kept."""
        return {name: column.keep for name, column in self.columns.items() if column.keep is not None}

    @property
    def dropped(self) -> tuple[str, ...]:
        """The columns that the synthetic table lacks: free text."""
        return tuple(name for name, column in self.columns.items() if column.left_out)

    def require_public(self) -> None:
        """Refuse a schema that leaves values or bounds to be found under privacy."""
        for name, column in self.columns.items():
            if isinstance(column, Coded) and not column.is_public:
                raise InputError(
                    f"column {name!r}: {column.public_hint}; only `fit` finds them under privacy"
                )


def declared(schema: Schema | None) -> Schema | None:
    """Return the schema if it declares a column; None if it only has `csv` or `about`, or is None."""
    return schema if schema is not None and schema.columns else None


def _derive_columns(
    columns: Mapping[str, Column], constraints: Sequence[Constraint | str]
) -> tuple[dict[str, Column], tuple[Constraint, ...]]:
    """Return the columns with all values and bounds that the constraints make public.

    An expression is replaced by the constraints that it means. Missing values or bounds are public if a
    constraint lists all that may occur, or if they follow from the parts of a total.

    Raises
    ------
    InputError
        If a constraint contradicts a column, or two constraints compute the same column.
    """
    if isinstance(constraints, Mapping | str) or not isinstance(constraints, Sequence):
        raise InputError('constraints are a list, as in [Increasing(["start", "end"])]')
    constraints, numbers = _read_expressions(columns, constraints)
    for constraint, number in zip(constraints, numbers, strict=True):
        if not isinstance(constraint, Constraint):
            raise InputError(
                f"constraint {number}: {safe_repr(constraint)} is not a constraint such as Forbidden or Total"
            )
        for name in constraint.columns:
            if name not in columns:
                meant = did_you_mean(name, columns)
                raise InputError(f"constraint {number}: the schema has no column {safe_repr(name)}{meant}")
            if not isinstance(columns[name], Coded):
                raise InputError(f"constraint {number}: {name!r} is never counted: leave it out")
            if isinstance(columns[name], Weight):
                raise InputError(f"constraint {number}: {name!r} is the weight of a row: leave it out")
            if columns[name].keep is not None:
                raise InputError(
                    f"constraint {number}: {name!r} is randomised, so its cells keep no rule:"
                    " leave out keep, or the constraint"
                )
    derived: dict[str, Coded] = {name: c for name, c in columns.items() if isinstance(c, Coded)}
    computing = computed_by(constraints)
    first = [constraint for constraint in constraints if not constraint.derives_last]
    last = [computing[name] for name in in_order(computing) if computing[name].derives_last]
    for constraint in [*first, *last]:
        with about_constraint(numbers[constraints.index(constraint)]):
            derived |= constraint.derive(derived)
    return {**columns, **derived}, constraints


def _read_expressions(
    columns: Mapping[str, Column], constraints: Sequence[Constraint | str]
) -> tuple[tuple[Constraint, ...], list[int]]:
    """Return the constraints, expressions parsed, and for each its place in the given list, from 1."""
    coded = {name: column for name, column in columns.items() if isinstance(column, Coded)}
    read: list[Constraint] = []
    numbers: list[int] = []
    for number, constraint in enumerate(constraints, 1):
        with about_constraint(number):
            meant = parse_expression(constraint, coded) if isinstance(constraint, str) else [constraint]
            for part in meant:
                read += part.meant(coded) if isinstance(part, Constraint) else [part]
        numbers += [number] * (len(read) - len(numbers))
    return tuple(read), numbers


_TEXTS = r"(?:^| )(?:uuid|guid|iban|e?mail|passport)(?:$| )"  # no number is one
_NAMES = (
    r"id|uuid|guid|ssn|iban|e?mail|phone|telephone|passport|mrn|imei|isbn",  # a word of the name
    r"(?:account|customer|patient|person|member|employee|invoice|order|serial|record) ?(?:no|nr|number|code)",
)
_CLASS_IDS = re.compile(  # IDs of classes, which many rows share
    r"(?:^| )(?:race|ethnicity|sex|gender|type|kind|class|category|group|status|level|grade|country|county"
    r"|region|province|district|city|language|currency|religion|occupation|industry|sector|species|site|plot"
    r"|store|shop|branch|brand|department|dept|school|course|team|clinic|ward|test|survey|wave|year) ids?$"
)
# Begins the name of a column that describes an identifier, such as "has e-mail", and is none.
_FLAG = re.compile(r"(?:has|had|have|is|was|with|without|any|valid|number of) ")
# Ends the name of a column that describes what an identifier is for, such as "phone service", and is none.
_USE = re.compile(
    r" (?:service|plan|type|kind|status|count|provider|domain|calls?|usage|consent|sent|opened|verified)$"
)
_CODE = re.compile(
    r"(?:zips?|zipcode|postcode|postalcode|postal|plz|pincode|codes?|ids?|key|fips|naics|nace|sic|icd)"
)
_NAMING = re.compile(rf"(?:^| )(?:{'|'.join(_NAMES)})(?:$| )")


def check_column_names(names: Iterable[object], where: str = "") -> None:
    """Refuse names of a table's columns that are not text or not distinct; `where` begins the error.

    The error names them by place: without a header, the first row stands in its place.
    """
    positions: dict[str, int] = {}
    for position, name in enumerate(names, 1):
        if not isinstance(name, str):
            raise InputError(f"{where}the name of column {position} is not text: rename it")
        if name in positions:
            raise InputError(
                f"{where}columns {positions[name]} and {position} have the same name: rename one"
            )
        positions[name] = position


def dtypes_of(schema: Schema, table: pd.DataFrame) -> tuple[str, ...]:
    """Return the dtype of each column as text; refuse a table that does not fit."""
    match_names(tuple(table.columns), schema)
    texts = []
    for name, dtype in table.dtypes.items():
        column = schema.columns[str(name)]
        text = column.kept_dtype(dtype)
        if text is None:
            raise InputError(f"column {name!r}: {its(dtype)}: {hint_of(dtype)}")
        texts.append(text)
    return tuple(texts)


def match_names(names: tuple[object, ...], schema: Schema) -> None:
    """Refuse a table whose columns are not those of the schema.

    Names in the schema are public. Messages give only the place of the table's own names: in a file without
    a header, the first row is read as names.
    """
    check_column_names(names)
    strange = [position for position, name in enumerate(names, 1) if name not in schema.columns]
    absent = [name for name in schema.columns if name not in names]
    complaints = []
    if absent:
        complaints.append(f"the table has no {_some(absent)}")
    if strange:
        complaints.append(f"the schema does not know {_some(strange)} of the table")
    if complaints:
        advice = "change the schema or the table's header"
        if not absent:  # the header is one: a column is left over
            unit = spelled("unit")
            advice += f"; a column that says whose rows they are is named by {unit}, not in the schema"
        raise InputError(f"{' and '.join(complaints)}: {advice}")


def _some(names: Sequence[str | int]) -> str:
    listed = ", ".join(map(repr, names[:5]))
    rest = f" and {len(names) - 5} more" if len(names) > 5 else ""
    return f"column{'s' if len(names) > 1 else ''} {listed}{rest}"


def names_rows(name: str) -> bool:
    """Return whether the name of a column looks like that of an identifier.

    >>> [names_rows(name) for name in ("customer_id", "PatientNumber", "e-mail", "Id")]
    [True, True, True, True]
    >>> [names_rows(name) for name in ("paid", "race_id", "has_email_address", "PhoneService")]
    [False, False, False, False]
    """
    words = _words(name)
    is_other = _CLASS_IDS.search(words) or _FLAG.match(words) or _USE.search(words)
    return bool(_NAMING.search(words)) and not is_other


def holds_identifiers(name: str, dtype: Dtype) -> bool:
    """Return whether the name of a column looks like that of an identifier which its dtype can hold.

    >>> import numpy as np
    >>> [holds_identifiers("e-mail", np.dtype(dtype)) for dtype in ("object", "int64", "bool")]
    [True, False, False]
    >>> holds_identifiers("customer_id", np.dtype("float64"))  # pandas reads whole numbers with gaps so
    True
    """
    kind = family(dtype)
    is_number = kind in ("integer", "real") and not re.search(_TEXTS, _words(name))
    return (is_number or kind in ("text", "object", "binary")) and names_rows(name)


def _words(name: str) -> str:
    """Return the words of a column's name, in lower case."""
    words = re.sub(r"([a-z0-9])([A-Z])", r"\1 \2", name)
    return re.sub(r"[\W_]+", " ", words.replace("e-mail", "email")).lower()


def named_like_codes(name: str) -> bool:
    """Return whether a name implies codes, such as those of places or trades, and not amounts.

    >>> [named_like_codes(name) for name in ("ZipCode", "postal_code2", "naics", "coded", "price")]
    [True, True, True, False, False]
    """
    words = re.findall(r"[^\W\d_]+", re.sub(r"([a-z])([A-Z])", r"\1 \2", name).lower())
    return any(map(_CODE.fullmatch, words))


def with_identifiers(schema: Schema, dtypes: Mapping[str, Dtype]) -> Schema:
    """Return an inferred schema in which columns with names of identifiers are identifiers.

    This uses only names, dtypes and the list of values, as of flags that a CSV writes as TRUE and FALSE. All
    are public, and no cell is used.
    """
    listed = {name for name, column in schema.coded.items() if column.listed}
    names = {name for name, dtype in dtypes.items() if holds_identifiers(name, dtype)} - listed
    columns = {name: Identifier() if name in names else column for name, column in schema.columns.items()}
    return replace(schema, columns=columns)


def called_identifiers(schema: Schema) -> tuple[str, ...]:
    """Return the columns with generated identifiers whose names look like identifiers."""
    return tuple(
        name for name, column in schema.columns.items() if isinstance(column, Identifier) and names_rows(name)
    )
