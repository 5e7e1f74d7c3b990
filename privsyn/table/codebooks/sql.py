"""SQL: CREATE TABLE with types, keys, CHECK, enums and comments, of a script or a dump. No row is read."""

from __future__ import annotations

import logging
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal

from privsyn.errors import InputError, replace_errors
from privsyn.files import read_text
from privsyn.table.codebooks.codebook import (
    Codebook,
    CodebookColumn,
    CodebookTable,
    ForeignKey,
    Type,
    in_one_line,
)
from privsyn.table.codebooks.plain import included_bound, number_or_none

KIND = "SQL"

_WHOLE = (
    "TINYINT SMALLINT MEDIUMINT INT BIGINT INT128 UTINYINT USMALLINT UMEDIUMINT UINT UBIGINT SERIAL"
    " SMALLSERIAL BIGSERIAL YEAR"
)
TYPES: Mapping[str, Type] = {
    **dict.fromkeys(_WHOLE.split(), "integer"),
    **dict.fromkeys(
        ("DECIMAL", "FLOAT", "DOUBLE", "MONEY", "SMALLMONEY", "UDECIMAL", "BIGDECIMAL"), "number"
    ),
    **dict.fromkeys(("CHAR", "NCHAR", "VARCHAR", "NVARCHAR", "TEXT", "TINYTEXT", "NAME", "BPCHAR"), "text"),
    **dict.fromkeys(("MEDIUMTEXT", "LONGTEXT", "ENUM", "ENUM8", "ENUM16", "UUID"), "text"),
    **dict.fromkeys(("DATE", "DATE32"), "date"),
    **dict.fromkeys(
        ("DATETIME", "DATETIME2", "TIMESTAMP", "TIMESTAMPTZ", "TIMESTAMPLTZ", "SMALLDATETIME"), "datetime"
    ),
    **dict.fromkeys(
        ("TIMESTAMPNTZ", "DATETIME64", "TIMESTAMP_S", "TIMESTAMP_MS", "TIMESTAMP_NS"), "datetime"
    ),
    **dict.fromkeys(("TIME", "TIMETZ"), "time"),
    **dict.fromkeys(
        ("BLOB", "BINARY", "VARBINARY", "JSON", "JSONB", "XML", "ARRAY", "GEOMETRY", "GEOGRAPHY"), "object"
    ),
    **dict.fromkeys(
        ("LONGBLOB", "MEDIUMBLOB", "TINYBLOB", "IMAGE", "MAP", "STRUCT", "HSTORE", "POINT"), "object"
    ),
    "BOOLEAN": "boolean",
    "INTERVAL": "duration",
}
"""The types of SQL, as sqlglot names them. Others say nothing."""

DOMAIN = "DOMAIN"

DIALECTS = ("postgres", "mysql", "sqlite", "tsql", "oracle", "duckdb")
"""Tried in this order."""

STATEMENT = re.compile(
    r"(?is)\s*(create\s+(or\s+replace\s+)?(global\s+|local\s+)?(temp(orary)?\s+)?(table|type|domain)|alter\s+table|comment\s+on)\b"
)
"""How the statements begin that declare something: INSERT has rows, which are not parsed."""

_DOMAIN = re.compile(r"(?is)\s*create\s+domain\s+(?P<name>\S+)\s+(as\s+)?(?P<rest>.*)")

_COMPUTED = re.compile(r"(?i)\)\s+virtual\b")

_COPIED = re.compile(r"(?ims)^copy\b[^;]*\bfrom\s+stdin;.*?^\\\.\s*$")


@dataclass
class _Table:
    """A table while its statements are read."""

    name: str
    columns: dict[str, CodebookColumn] = field(default_factory=dict)
    key: tuple[str, ...] = ()
    links: dict[tuple[str, ...], ForeignKey] = field(default_factory=dict)
    constraints: list[str] = field(default_factory=list)
    remarks: list[str] = field(default_factory=list)
    label: str = ""

    def change(self, name: str, **changes: Any) -> None:
        """Change what is known of a column; names differ in case at most."""
        for column in self.columns:
            if column.lower() == name.lower():
                self.columns[column] = replace(self.columns[column], **changes)


def recognises(head: str) -> bool:
    """Return whether a text has a statement that creates a table."""
    return re.search(r"(?i)\bcreate\s+(\w+\s+){0,3}table\b", head) is not None


def read(path: Path) -> Codebook:
    """Return what a script says of the tables that it creates."""
    with replace_errors('needs sqlglot: run pip install "privsyn[codebooks]"', ImportError):
        import sqlglot
    text = _COPIED.sub("", read_text(path).removeprefix("\ufeff"))
    text = _COMPUTED.sub(") STORED", text)  # sqlglot does not know the operand word in all dialects
    first = ["mysql"] if "`" in text else ["tsql"] if re.search(r"\[\w+\]", text) else []
    problem, logger = "", logging.getLogger("sqlglot")
    was_disabled, logger.disabled = logger.disabled, True  # it would print statements
    try:
        for dialect in dict.fromkeys((*first, *DIALECTS)):
            try:
                return _read(sqlglot, text, dialect)
            except sqlglot.errors.SqlglotError as error:
                line = re.search(r"[Ll]ine (\d+)", str(error))
                problem = problem or (
                    f"not SQL that can be read (line {line[1]})" if line else "not SQL that can be read"
                )
            except RecursionError:
                problem = "not SQL that can be read"
    finally:
        logger.disabled = was_disabled
    raise InputError(problem)


def _read(sqlglot: Any, text: str, dialect: str) -> Codebook:
    exp, tables, declared_types = sqlglot.exp, dict[str, _Table](), dict[str, CodebookColumn]()
    for statement in _statements(sqlglot, text, dialect):
        match statement:
            case exp.Create(kind="TABLE" | "DOMAIN") if isinstance(statement.this, exp.Schema):
                table = _created(exp, statement.this, declared_types)
                if statement.args["kind"] == DOMAIN:
                    declared_types[table.name.lower()] = next(iter(table.columns.values()))
                else:
                    tables.setdefault(table.name.lower(), table)
            case exp.Create(kind="TYPE") if isinstance(statement.expression, exp.DataType):
                values = tuple((part.name, "") for part in statement.expression.expressions)
                declared_types[statement.this.name.lower()] = CodebookColumn(
                    name="", type="text", values=values
                )
            case exp.Alter() if statement.this.name.lower() in tables:
                table = tables[statement.this.name.lower()]
                for action in statement.args.get("actions") or ():
                    for added in action.expressions if isinstance(action, exp.AddConstraint) else ():
                        _rule_of_table(exp, table, added)
            case exp.Comment():
                _comment(tables, statement)
            case exp.Command() if str(statement.this).upper() == "CREATE":
                raise sqlglot.errors.ParseError("a table that cannot be read")
    if not tables:
        raise InputError("it creates no table")

    def spelled(link: ForeignKey) -> ForeignKey:
        target = tables.get(link.table.lower())
        return link if target is None else replace(link, table=target.name, key=_spelled_in(target, link.key))

    return Codebook.of(
        KIND,
        [
            CodebookTable(
                name=table.name,
                columns=tuple(
                    replace(
                        column,
                        unique=column.unique or table.key == (column.name,),
                        required=column.required or column.name in table.key,
                    )
                    for column in table.columns.values()
                ),
                label=table.label,
                key=table.key,
                links=tuple(map(spelled, table.links.values())),
                constraints=tuple(table.constraints),
                remarks=tuple(table.remarks),
            )
            for table in tables.values()
        ],
    )


def _statements(sqlglot: Any, text: str, dialect: str) -> Iterator[Any]:
    """Yield the statements that declare tables, types and comments."""
    begins = 0
    for token in (*sqlglot.tokenize(text, read=dialect), None):
        if token is not None and token.token_type != sqlglot.TokenType.SEMICOLON:
            continue
        statement = text[begins : len(text) if token is None else token.start]
        begins = len(text) if token is None else token.end + 1
        code = re.sub(r"(?s)/\*(?!!).*?\*/|--[^\n]*|^\s*GO\s*$", "", statement)
        if (
            domain := _DOMAIN.match(code)
        ) is not None:  # a column, as far as its type and rules are concerned
            code = f"CREATE TABLE {domain['name']} (VALUE {domain['rest']})"
            created = sqlglot.parse_one(code, read=dialect)
            created.set("kind", DOMAIN)
            yield created
        elif STATEMENT.match(code):
            yield sqlglot.parse_one(code, read=dialect)


def _comment(tables: Mapping[str, _Table], statement: Any) -> None:
    """Take the comment on a table or a column."""
    text = in_one_line(getattr(statement.expression, "name", ""))
    if statement.args.get("kind") == "TABLE" and statement.this.name.lower() in tables:
        tables[statement.this.name.lower()].label = text
    elif statement.args.get("kind") == "COLUMN" and statement.this.table.lower() in tables:
        tables[statement.this.table.lower()].change(statement.this.name, label=text)


def _created(exp: Any, schema: Any, declared_types: Mapping[str, CodebookColumn]) -> _Table:
    """Return the table that a statement creates."""
    table, rules = _Table(schema.this.name), []
    for part in schema.expressions:
        if isinstance(part, exp.ColumnDef):
            table.columns[part.name] = _column(part, declared_types)
            rules += [(part.name, constraint.kind) for constraint in part.constraints]
    for name, rule in rules:
        _rule_of_column(exp, table, name, rule)
    for part in schema.expressions:
        if not isinstance(part, exp.ColumnDef):
            _rule_of_table(exp, table, part)
    return table


def _column(definition: Any, declared_types: Mapping[str, CodebookColumn]) -> CodebookColumn:
    """Return what the type of a column says."""
    data_type = definition.args.get("kind")
    name_of_type = "" if data_type is None else str(getattr(data_type.this, "name", data_type.this) or "")
    parameters = [] if data_type is None else [part.name for part in data_type.expressions]
    kind, values, decimals = TYPES.get(name_of_type.upper(), ""), tuple[tuple[Any, str], ...](), None
    if name_of_type.upper().startswith("ENUM"):
        values = tuple((value, "") for value in parameters)
    if name_of_type.upper() == "USERDEFINED":
        named = data_type.args.get("kind")
        name_of_own = str(getattr(named, "name", named or "")).rpartition(".")[2].strip('"').lower()
        if name_of_own in declared_types:
            return replace(declared_types[name_of_own], name=definition.name)
    if kind == "number" and name_of_type.upper() == "DECIMAL" and parameters:
        decimals = int(parameters[1]) if len(parameters) > 1 and parameters[1].isdigit() else 0
        kind = "integer" if decimals == 0 else "number"
    if name_of_type.upper() == "TINYINT" and parameters == ["1"]:  # MySQL has no operand truth values
        kind, values = "integer", ((0, ""), (1, ""))
    is_uuid = name_of_type.upper() in ("UUID", "UNIQUEIDENTIFIER")
    return CodebookColumn(
        name=definition.name,
        type=kind,
        values=values,
        decimals=decimals if decimals and decimals <= 12 else None,
        role="identifier" if is_uuid else "",
    )


def _rule_of_column(exp: Any, table: _Table, name: str, rule: Any) -> None:
    """Take a rule that stands behind a column."""
    match rule:
        case exp.NotNullColumnConstraint() if not rule.args.get("allow_null"):
            table.change(name, required=True)
        case exp.PrimaryKeyColumnConstraint():
            table.key = (name,)
        case exp.UniqueColumnConstraint():
            table.change(name, unique=True)
        case exp.CommentColumnConstraint():
            table.change(name, label=in_one_line(rule.this.name))
        case exp.CheckColumnConstraint():
            _check(exp, table, rule.this)
        case exp.Reference():
            table.links[name,] = _link(exp, (name,), rule)


def _rule_of_table(exp: Any, table: _Table, rule: Any) -> None:
    """Take a rule that stands on its declared_types, behind its name if it has one."""
    match rule:
        case exp.Constraint():
            for part in rule.expressions:
                _rule_of_table(exp, table, part)
        case exp.PrimaryKey():
            table.key = _columns(table, rule.expressions)
        case exp.ForeignKey() if rule.args.get("reference") is not None:
            columns = _columns(table, rule.expressions)
            table.links[columns] = _link(exp, columns, rule.args["reference"])
        case exp.UniqueColumnConstraint() if isinstance(rule.this, exp.Schema):
            if len(rule.this.expressions) == 1:
                table.change(rule.this.expressions[0].name, unique=True)
        case exp.CheckColumnConstraint():
            _check(exp, table, rule.this)


def _columns(table: _Table, expressions: list[Any]) -> tuple[str, ...]:
    return _spelled_in(table, [getattr(part.this, "name", "") or part.name for part in expressions])


def _spelled_in(table: _Table, names: Sequence[str]) -> tuple[str, ...]:
    """Return names of columns as the table spells them: SQL does not tell capitals from small letters."""
    spelled = {name.lower(): name for name in table.columns}
    return tuple(spelled.get(name.lower(), name) for name in names)


def _link(exp: Any, columns: tuple[str, ...], reference: Any) -> ForeignKey:
    target = reference.this
    key = tuple(part.name for part in target.expressions) if isinstance(target, exp.Schema) else ()
    return ForeignKey(columns, target.this.name if isinstance(target, exp.Schema) else target.name, key)


def _check(exp: Any, table: _Table, rule: Any) -> None:
    """Take a CHECK: values and bounds of one column, or an order of two. A remark has any operand."""
    rule = rule.unnest()
    if isinstance(rule, exp.And):
        _check(exp, table, rule.left)
        _check(exp, table, rule.right)
        return
    if isinstance(rule, exp.Or):  # a missing cell keeps every CHECK
        parts = [
            part
            for part in rule.flatten()
            if not (isinstance(part, exp.Is) and isinstance(part.expression, exp.Null))
        ]
        if len(parts) == 1:
            _check(exp, table, parts[0])
            return
        names = {
            part.this.name for part in parts if isinstance(part, exp.EQ) and isinstance(part.this, exp.Column)
        }
        listed = [_value(exp, part.expression) for part in parts if isinstance(part, exp.EQ)]
        if len(names) == 1 and len(listed) == len(parts) and None not in listed:
            table.change(names.pop(), values=tuple((value, "") for value in listed))
            return
    if not _bounded(exp, table, rule):
        table.remarks.append(
            f"NOT DECLARED: CHECK ({in_one_line(rule.sql())}). Write it under constraints if it is one."
        )


def _bounded(exp: Any, table: _Table, rule: Any) -> bool:
    """Take values or bounds of one column, or an order of two; return whether it is that."""
    names = {name.lower(): name for name in table.columns}
    flipped = {exp.LTE: exp.GTE, exp.LT: exp.GT, exp.GTE: exp.LTE, exp.GT: exp.LT}
    side, operand, kind = rule.this, rule.args.get("expression"), type(rule)
    if kind in flipped and isinstance(operand, exp.Column) and not isinstance(side, exp.Column):
        side, operand, kind = operand, side, flipped[kind]
    side = side.this if isinstance(side, exp.Cast) else side
    if not isinstance(side, exp.Column) or side.name.lower() not in names:
        return False
    name = names[side.name.lower()]
    column = table.columns[name]
    if kind in flipped and isinstance(operand, exp.Column) and operand.name.lower() in names:
        sign = {exp.LTE: "<=", exp.LT: "<", exp.GTE: ">=", exp.GT: ">"}[kind]
        table.constraints.append(f"{_spelled(name)} {sign} {_spelled(names[operand.name.lower()])}")
        return True
    if kind is exp.EQ and isinstance(operand, exp.Any):  # how PostgreSQL dumps IN
        array = operand.this.unnest()
        array = array.this if isinstance(array, exp.Cast) else array
        listed = [_value(exp, part) for part in array.unnest().expressions]
    elif kind is exp.In:
        listed = [_value(exp, part) for part in rule.expressions]
    elif kind is exp.EQ:
        listed = [_value(exp, operand)]
    else:
        listed = []
    if listed and None not in listed:
        table.change(name, values=tuple((value, "") for value in listed))
        return True
    if kind is exp.Between:
        low, high = _value(exp, rule.args["low"]), _value(exp, rule.args["high"])
        if None in (low, high):
            return False
        table.change(name, low=low, high=high)
        return True
    bound = None if kind not in flipped else _value(exp, operand)
    if bound is None:
        return False
    end: Literal["low", "high"] = "low" if kind in (exp.GTE, exp.GT) else "high"
    if kind in (exp.LT, exp.GT):
        bound, remarks = included_bound(end, bound, column.type)
        table.change(name, remarks=(*column.remarks, *remarks))
    table.change(name, **{end: bound})
    return True


def _value(exp: Any, part: Any) -> Any:
    """Return a literal, also behind a cast or a sign; None if it is none."""
    if part is None:
        return None
    part = part.unnest()
    while isinstance(part, exp.Cast):
        part = part.this.unnest()
    if isinstance(part, exp.Neg):
        value = _value(exp, part.this)
        return -value if isinstance(value, int | float) else None
    if isinstance(part, exp.Boolean):
        return bool(part.this)
    if isinstance(part, exp.Literal):
        return part.name if part.is_string else number_or_none(part.name)
    return None


def _spelled(name: str) -> str:
    """Return a name as an expression of a schema has it."""
    return name if name.isidentifier() else f"`{name}`"
