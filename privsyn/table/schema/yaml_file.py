"""A schema as plain data, and as a YAML file that a person can read, review and write."""

from __future__ import annotations

import re
from collections.abc import Callable, Hashable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import fields
from os import PathLike
from pathlib import Path
from types import MappingProxyType
from typing import Any, TypeGuard, TypeVar

import yaml

from privsyn.arguments import check_path
from privsyn.errors import InputError, about, did_you_mean, printable, replace_errors, safe_repr
from privsyn.files import read_text
from privsyn.table.kinds.column_settings import changed_settings, check_keys, flag, read_typed
from privsyn.table.kinds.csv_format import CsvFormat
from privsyn.table.schema.about import About, read_about
from privsyn.table.schema.columns import COLUMNS, Column
from privsyn.table.schema.constraint import constraint_from_plain, constraint_to_plain
from privsyn.table.schema.schema import Schema

NO_NOTES: Mapping[str, str] = MappingProxyType({})

SETTINGS = ("about", "columns", "missing", "nullable", "csv", "constraints", "important")
"""What a schema of one table may have in YAML."""


def read_schema(path: str | PathLike[str]) -> Schema:
    """Return the schema in a YAML file; an `InputError` of one line says what is wrong with it.

    Text stays text: ``yes``, ``no`` and ``2015-01-01`` do not become booleans and dates.
    """
    return read_yaml(path, from_plain)


def _with_columns(schema: Schema) -> Schema:
    """Refuse a schema that says nothing of the one table that it is about."""
    if schema.says_nothing:
        raise InputError('a schema maps names to columns, as in Schema({"age": Numerical(0, 100)})')
    return schema


R = TypeVar("R")


def read_yaml(path: str | PathLike[str], make: Callable[[Any], R]) -> R:
    """Return what `make` makes of the plain data of a YAML file; its errors name file and line."""
    check_path(path)
    text = read_text(Path(path))
    with replace_errors(lambda error: f"{path}{_located(text, str(error))}", InputError):
        plain = parse(text)
        for table, key in _public_tables(plain):
            table[key] = str(Path(path).parent / table[key])  # an absolute path stays as it is
        return make(plain)


def read_about_file(path: str | PathLike[str]) -> About | None:
    """Return the publisher's words in a YAML file: settings, or settings below ``about:`` as in a schema."""
    return read_yaml(
        path, lambda plain: read_about(plain.get("about", plain) if isinstance(plain, Mapping) else plain)
    )


def declares_tables(plain: object) -> TypeGuard[Mapping[str, Any]]:
    """Return whether plain data declare several tables."""
    return isinstance(plain, Mapping) and "tables" in plain


def lookup_files(path: str | PathLike[str]) -> list[Path]:
    """Return the files of public tables that a readable schema file names, in its folder or elsewhere."""
    plain = parse(read_text(Path(path)))
    return [Path(path).parent / table[key] for table, key in _public_tables(plain)]


def _public_tables(plain: object) -> list[tuple[dict[str, Any], str]]:
    """Return the constraints and the tables that name the file of a public table, and where they name it."""
    if not isinstance(plain, Mapping):
        return []
    listed = plain.get("tables")
    tables = list(listed.values()) if isinstance(listed, Mapping) else []
    entries = [(table, "public") for table in tables]
    for table in (plain, *tables):
        constraints = table.get("constraints") if isinstance(table, Mapping) else None
        listed = constraints if isinstance(constraints, list) else ()
        entries += [(entry, key) for entry in listed for key in ("lookup", "table")]
    return [
        (entry, key) for entry, key in entries if isinstance(entry, dict) and isinstance(entry.get(key), str)
    ]


SchemaOrPath = Schema | str | PathLike[str]
"""A schema, or the path of its YAML file."""


def as_schema(schema: object) -> Schema | None:
    """Return a schema of one table, given as such or as the path of its YAML file."""
    if isinstance(schema, str | PathLike):
        schema = read_schema(schema)
    if schema is None:
        return None
    if isinstance(schema, Schema):
        return _with_columns(schema)
    raise InputError(f"schema must be a Schema or the path of a YAML file; got a {type(schema).__name__}")


def to_yaml(schema: Schema, notes: Mapping[str, str] = NO_NOTES) -> str:
    """Return the schema in YAML, with a comment above each column that has a note.

    >>> from privsyn import Categorical, Numerical
    >>> print(to_yaml(Schema({"age": Numerical(17, 90, integer=True), "sex": Categorical(["F", "M"])})))
    columns:
      age: {kind: numerical, low: 17, high: 90, integer: true}
      sex:
        kind: categorical
        values: [F, M]
    <BLANKLINE>
    """
    plain = to_plain(schema)
    columns, ends = plain.pop("columns", {}), ("constraints", "important")
    last = {key: plain.pop(key) for key in ends if key in plain}
    lines = [*(dump(plain).splitlines() if plain else ()), *(["columns:"] if columns else [])]
    for name, column in columns.items():
        if name in notes:
            lines += [f"  # {line}" for line in notes[name].split("\n")]
        lines += [f"  {line}" for line in dump({name: column}).splitlines()]
    lines += dump(last).splitlines() if last else []
    # What is escaped stands in double quotes, where YAML has the same escapes.
    return "\n".join(map(printable, lines)) + "\n"


def constraint_lines(constraints: list[Any]) -> list[str]:
    """Return the lines of YAML that list constraints, each an expression or as plain data.

    >>> constraint_lines(["a <= b", {"kind": "missing", "column": "c", "when": {"d": "no"}}])
    ['- a <= b', '- kind: missing', '  column: c', "  when: {d: 'no'}"]
    """
    dumped = (
        dump([constraint], flow=False)
        if isinstance(constraint, str)
        else dump(
            [
                {
                    key: _Rows(setting) if isinstance(setting, list) else setting
                    for key, setting in constraint.items()
                }
            ]
        )
        for constraint in constraints
    )
    return [printable(line) for text in dumped for line in text.splitlines()]


def dump(plain: object, flow: bool | None = None) -> str:
    """Return plain data in YAML that `parse` reads back."""
    return yaml.dump(
        plain, Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=98, default_flow_style=flow
    )


def to_plain(schema: Schema) -> dict[str, Any]:
    """Return the schema as mappings, lists, text and numbers: plain data for YAML and JSON.

    >>> from privsyn import Datetime
    >>> to_plain(Schema({"day": Datetime("2015-01-01", "2015-12-31", nullable=False)}))["columns"]["day"]
    {'kind': 'datetime', 'low': '2015-01-01', 'high': '2015-12-31', 'nullable': False}
    """
    top: dict[str, Any] = {} if schema.about is None else {"about": schema.about.to_plain()}
    if schema.missing:
        top["missing"] = list(schema.missing)
    if spelling := changed_settings("csv", schema.csv):
        top["csv"] = spelling
    top["columns"] = {
        name: {"kind": kind_of(column), **column.to_plain(f"column {name!r}")}
        for name, column in schema.columns.items()
    }
    listed = {name for name, column in schema.columns.items() if column.lists_values}
    constraints = [constraint_to_plain(constraint, listed) for constraint in schema.constraints]
    top |= {"constraints": constraints, "important": list(map(list, schema.important))}
    return {key: value for key, value in top.items() if value}


def from_plain(plain: object) -> Schema:
    """Return the schema that `to_plain` or a person wrote."""
    if not isinstance(plain, Mapping):
        raise InputError("a schema is a mapping that begins with 'columns:'")
    needed = () if "csv" in plain or "about" in plain else ("columns",)
    if declares_tables(plain):
        raise InputError(
            "declares several tables, and this takes one: leave it out, or give a schema of the one table"
        )
    check_keys(plain, (*SETTINGS, "tables"), needed=needed)
    if not isinstance(plain.get("columns", {}), Mapping):
        raise InputError("'columns:' is a mapping of names to columns")
    nullable = flag("nullable", plain.get("nullable", True))
    if not (nullable or plain.get("columns")):
        raise InputError(
            "'nullable:' is about columns that the schema declares: without any, use nullable=False"
            " (--no-missing)"
        )
    columns = {
        name: _column(name, settings, nullable=nullable)
        for name, settings in plain.get("columns", {}).items()
    }
    settings = plain.get("constraints") or ()
    if not isinstance(settings, Sequence) or isinstance(settings, str):
        raise InputError("'constraints:' is a list: begin each with '- ', as in - start <= end")
    constraints: list[Any] = [
        constraint if isinstance(constraint, str) else constraint_from_plain(number, constraint)
        for number, constraint in enumerate(settings, 1)
    ]
    csv, important = _csv(plain.get("csv", {})), plain.get("important") or ()
    marks = plain.get("missing", ())
    schema = Schema(
        columns,
        missing=marks,
        csv=csv,
        constraints=constraints,
        important=important,
        about=read_about(plain.get("about")),
    )
    return _with_columns(schema)


def _csv(settings: object) -> CsvFormat:
    with about("csv"):
        if not isinstance(settings, Mapping):
            raise InputError("is a mapping such as {delimiter: ;, point: ','}")
        check_keys(settings, [field.name for field in fields(CsvFormat)])
        return CsvFormat(**settings)


def _column(name: object, plain: object, *, nullable: bool) -> Column:
    if not isinstance(name, str):
        raise InputError(f"the column name {safe_repr(name)} is not text: put it in quotes")
    with about(f"column {name!r}"):
        if not isinstance(plain, Mapping):
            raise InputError("a column is a mapping such as {kind: categorical, values: [a, b]}")
        if "kind" not in plain:
            raise InputError(f"'kind' is missing: one of {', '.join(COLUMNS)}")
        kind = plain["kind"]
        if not isinstance(kind, str) or kind not in COLUMNS:
            meant = did_you_mean(kind, COLUMNS)
            raise InputError(f"the kind {safe_repr(kind)} is none of {', '.join(COLUMNS)}{meant}")
        settings = {key: value for key, value in plain.items() if key != "kind"}
        class_: Any = COLUMNS[kind]
        names = [field.name for field in fields(class_)]
        check_keys(settings, names)
        if not nullable and "nullable" in names:
            settings = {"nullable": False, **settings}
        return class_(**{key: _read_setting(key, value) for key, value in settings.items()})


def kind_of(column: Column) -> str:
    """Return the name of the kind of a column in a schema file."""
    return next(kind for kind, class_ in COLUMNS.items() if type(column) is class_)


def _read_setting(key: str, value: Any) -> Any:
    match key, value:
        case "values", list():
            return [read_typed(listed) for listed in value]
        case "other", _:
            return read_typed(value)
        case _:
            return value


def parse(text: str) -> object:
    """Return YAML as plain data; an `InputError` of one line says what is wrong with it."""
    try:
        return _Loader(text).get_single_data()
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        if (problem_of_list := _without_dash(text)) is not None:
            raise InputError(problem_of_list) from None
        where = f" (line {mark.line + 1})" if mark is not None else ""
        problem = getattr(error, "problem", None) or "it cannot be parsed"
        if mark is not None and problem.startswith("expected <block end>, but found '-'"):
            above = text.splitlines()[: mark.line]
            hidden = [number for number, line in enumerate(above, 1) if re.match(r"#\s*constraints:", line)]
            advice = f"remove the # before it in line {hidden[-1]}" if hidden else "write it"
            problem = f"this list needs 'constraints:' above it: {advice}"
        raise InputError(f"not YAML{where}: {problem}") from None
    except (ValueError, TypeError, RecursionError):
        raise InputError("not YAML that can be read") from None


def _without_dash(text: str) -> str | None:
    """Return what is wrong with the first constraint that does not begin with "- "; None if all do."""
    lines = text.splitlines()
    first = next(
        (number for number, line in enumerate(lines, 1) if re.match(r"constraints:\s*$", line)), None
    )
    for number, line in enumerate(lines[first:] if first else [], (first or 0) + 1):
        if re.match(r" {0,2}-[^\s-]", line):
            return f"not YAML (line {number}): a space is missing after the '-'"
        if re.match(r"[^\s#-]", line) and not re.match(r"\w+:(\s|$)", line):
            return f"not YAML (line {number}): a constraint begins with '- '"
    return None


def about_file(path: object) -> AbstractContextManager[None]:
    """Begin the message about a constraint with the file and the line of it, if the schema has a file."""
    if not isinstance(path, str | PathLike) or not Path(path).is_file():
        return nullcontext()

    def located(error: Exception) -> str:
        message = str(error)
        is_of_constraint = re.match(r"constraint [0-9]+", message)
        return f"{path}{_located(read_text(Path(path)), message)}" if is_of_constraint else message

    return replace_errors(located, InputError)


def _located(text: str, message: str) -> str:
    """Return a message behind the line of the constraint that it is about, such as ", line 83: ..."."""
    if (match := re.match(r"constraint ([0-9]+)", message)) is None:
        return f": {message}"
    root: Any = _Loader(text).get_single_node()
    listed = next(value for key, value in root.value if key.value == "constraints")
    line = listed.value[int(match[1]) - 1].start_mark.line + 1
    below = [*text.splitlines(), ""][line]
    commented = message.endswith("is missing") and re.match("# +[a-z]+:", below)
    advice = f"; remove the # before line {line + 1} too" if commented else ""
    return f", line {line}: {message}{advice}"


class _Dumper(yaml.SafeDumper):
    """Write YAML that all versions read alike: text that one of them takes for another type is quoted."""


class _Rows(list[Any]):
    """A list that is written in few lines."""


_Dumper.add_representer(
    _Rows, lambda dumper, rows: dumper.represent_sequence("tag:yaml.org,2002:seq", rows, flow_style=True)
)


class _Loader(yaml.SafeLoader):
    """Read safe YAML: only ``true`` and ``false`` are booleans, nothing is a date, and keys are unique.

    YAML 1.1 makes ``no`` false, ``2015-01-01`` a date, ``010`` eight and ``12:30`` 750. Each of these is text
    in somebody's table.
    """

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        seen: set[Hashable] = set()
        for key_node, _ in node.value:
            key = self.construct_object(key_node, deep=True)
            if not isinstance(key, Hashable):  # refused below
                continue
            if key in seen:
                raise yaml.constructor.ConstructorError(
                    None, None, f"the key {key!r} comes twice", key_node.start_mark
                )
            seen.add(key)
        return super().construct_mapping(node, deep)


def _write_text(dumper: _Dumper, text: str) -> yaml.ScalarNode:
    style = None if text.isprintable() else '"'  # elsewhere PyYAML folds some kinds of line break into blanks
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style)


_Dumper.add_representer(str, _write_text)

_FLOAT = re.compile(
    r"^[-+]?(?:(?:[0-9]+\.[0-9]*|\.[0-9]+)(?:[eE][-+]?[0-9]+)?|[0-9]+[eE][-+]?[0-9]+|\.(?:inf|Inf|INF))$|^\.(?:nan|NaN|NAN)$"
)
_Loader.yaml_implicit_resolvers = {}
for _tag, _pattern, _first in (
    ("null", re.compile(r"^(?:~|null|Null|NULL|)$"), ["~", "n", "N", ""]),
    ("bool", re.compile(r"^(?:true|True|TRUE|false|False|FALSE)$"), list("tTfF")),
    ("int", re.compile(r"^[-+]?(?:0|[1-9][0-9]*)$"), list("-+0123456789")),
    ("float", _FLOAT, list("-+.0123456789")),
):
    _Loader.add_implicit_resolver(f"tag:yaml.org,2002:{_tag}", _pattern, _first)
_Dumper.add_implicit_resolver("tag:yaml.org,2002:float", _FLOAT, list("-+.0123456789"))
_INTEGER_OF_1_2 = re.compile(r"^(?:[-+]?[0-9]+|0o[0-7]+)$")  # 0999 is text in YAML 1.1 and a number in 1.2
_Dumper.add_implicit_resolver("tag:yaml.org,2002:int", _INTEGER_OF_1_2, list("-+0123456789"))
