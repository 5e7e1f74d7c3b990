"""Schema: what it accepts, what it refuses, and its file."""

from __future__ import annotations

import copy
import pickle
from datetime import date, datetime
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st
from refusals import refuses
from strategies import names, tables, texts

from privsyn.errors import InputError
from privsyn.table.kinds.csv_format import CsvFormat
from privsyn.table.schema.columns import Categorical, Datetime, Numerical
from privsyn.table.schema.schema import Schema
from privsyn.table.schema.yaml_file import _Loader, as_schema, from_plain, read_schema, to_plain, to_yaml

AWKWARD = [
    "yes",
    "No",
    "on",
    "null",
    "~",
    "",
    " ",
    "true",
    "2015-01-01",
    "12:30",
    "010",
    "1e5",
    "1_000",
    "0x1F",
    ".inf",
]
AWKWARD += [
    "- a",
    "a: b",
    "#",
    "'",
    '"',
    "{",
    "é\u2028",
    "\ufeff",
    "\x85",
    "\x00",
    "<<",
    "=",
    "-1",
    "1.0",
    "\n",
    "?",
    "*a",
]


@pytest.mark.parametrize(
    ("make", "complaint"),
    [
        (lambda: Categorical([]), "the list of values is empty"),
        (lambda: Categorical("abc"), "values are a list in a fixed order, not a str"),
        (lambda: Categorical({"a", "b"}), "not a set"),
        (lambda: Categorical(3), "not a int"),
        (lambda: Categorical(["a", "b", "a"]), "values 1 and 3 are alike"),
        (lambda: Categorical([1, True]), "values 1 and 2 are alike"),
        (lambda: Categorical([1, 1.0]), "values 1 and 2 are alike"),
        (lambda: Categorical(["a", None]), "say nullable=True"),
        (lambda: Categorical(["a", float("nan")]), "say nullable=True"),
        (lambda: Categorical(["a", pd.NA]), "say nullable=True"),
        (lambda: Categorical([pd.NaT]), "say nullable=True"),
        (lambda: Categorical(["a", ["b"]]), "value 2 of the list is not hashable: it is a list"),
        (lambda: Categorical(["a", (1, [2])]), "not hashable"),
        (lambda: Categorical(["a"], nullable=1), "nullable is true or false, not 1"),
        (lambda: Categorical(["a"], missing=3), "missing is a text or a list of texts, not 3"),
        (lambda: Numerical(0, 9, missing=[-9]), "missing lists texts, in quotes such as '-9'; got -9"),
        (lambda: Numerical(1), "give both bounds"),
        (lambda: Numerical(high=1), "give both bounds"),
        (lambda: Numerical(2, 1), "low 2 is above high 1"),
        (lambda: Numerical("1", 2), "a bound is a number, not '1'"),
        (lambda: Numerical(False, 2), "a bound is a number, not False"),
        (lambda: Numerical(0, float("inf")), "a bound is a finite number, not inf"),
        (lambda: Numerical(float("nan"), 1), "a bound is a finite number, not nan"),
        (lambda: Numerical(0, 10**400), "a bound is a finite number, not 1000"),
        (lambda: Numerical(-1e308, 1e308), "lie too far apart"),
        (lambda: Numerical(0, 1, bins=0), "bins is a whole number from 1 to 1048576, not 0"),
        (lambda: Numerical(0, 1, bins=True), "not True"),
        (lambda: Numerical(0, 1, bins=2.0), "not 2.0"),
        (lambda: Numerical(0, 1, decimals=13), "decimals is a whole number from 0 to 12"),
        (lambda: Numerical(0, 1, integer=True, decimals=1), "exclude each other"),
        (lambda: Numerical(0, 1, integer="yes"), "integer is true or false"),
        (lambda: Numerical(0.5, 2, integer=True), "whole numbers are whole numbers, not 0.5"),
        (lambda: Numerical(0, 0.125, decimals=2), "of 2 decimals, not 0.125"),
        (lambda: Datetime("2015-01-01"), "give both bounds"),
        (lambda: Datetime("2016-01-01", "2015-01-01"), "is above"),
        (lambda: Datetime("1.1.2015", "2016-01-01"), "a date such as 2015-01-31, not '1.1.2015'"),
        (lambda: Datetime(2015, 2016), "a bound is a date, not 2015"),
        (lambda: Datetime(pd.NaT, pd.NaT), "a bound is a date, not a NaTType"),
        (lambda: Datetime("2015-01-01T00:00Z", "2016-01-01"), "no time zone"),
        (lambda: Datetime("2015-01-01T00:00:00.5", "2016-01-01"), "whole seconds"),
        (lambda: Datetime("2015-01-01T10:00", "2016-01-01", unit="D"), "without a time of day"),
        (lambda: Datetime("2015-01-01", "2016-01-01", unit="ms"), "unit 'ms'"),
        (lambda: as_schema(Schema({})), "a schema maps names to columns"),
        (lambda: Schema([("a", Categorical(["b"]))]), "a schema maps names to columns"),
        (lambda: Schema({3: Categorical(["b"])}), "the column name 3 is not text"),
        (lambda: Schema({"a": "categorical"}), "column 'a': 'categorical' is not a Categorical"),
        (
            lambda: Schema({"a": Categorical([1, 2])}, missing="1"),
            "column 'a': '1' is both a value and a mark",
        ),
    ],
)
def test_what_cannot_work_is_refused_in_one_line(make, complaint):
    with refuses(complaint):
        make()


TABLE = pd.DataFrame({"x": ["secret"]})


@pytest.mark.parametrize(
    "make",
    [
        lambda: Categorical(["a"], nullable=TABLE),
        lambda: Categorical(["a"], missing=TABLE),
        lambda: Categorical([TABLE]),
        lambda: Numerical(TABLE, 1),
        lambda: Numerical(0, 1, bins=TABLE),
        lambda: Numerical(0, 1, integer=TABLE),
        lambda: Datetime(TABLE, "2015-01-01"),
        lambda: Datetime("2015-01-01", "2015-01-02", unit=TABLE),
        lambda: Schema(TABLE),
        lambda: Schema({"a": TABLE}),
        lambda: Schema({("secret",): Categorical(["a"])}),
        lambda: Categorical(["secret", "b", "secret"]),
    ],
)
def test_a_table_among_the_settings_is_not_shown(make):
    with pytest.raises(InputError) as error:
        make()
    assert "secret" not in str(error.value)


def test_columns_take_what_numpy_and_pandas_give():
    assert Categorical(np.array(["a", "b"])).values == ("a", "b")
    assert type(Categorical(pd.Series([1, 2])).values[0]) is int
    assert type(Numerical(np.int64(0), np.float32(1)).high) is float
    column = Numerical(0, 1, bins=np.int64(8), integer=np.bool_(True))
    assert (type(column.bins), type(column.integer)) == (int, bool)
    bounds = [date(2015, 1, 1), datetime(2015, 1, 1), np.datetime64("2015-01-01"), pd.Timestamp("2015-01-01")]
    assert {Datetime(bound, "2016-01-01") for bound in bounds} == {Datetime("2015-01-01", "2016-01-01")}


def test_the_unit_follows_from_the_bounds():
    assert Datetime("2015-01-01", "2015-01-02").unit == "D"
    assert Datetime("2015-01-01", "2015-01-02T10:00").unit == "s"
    assert Datetime("2015-01-01", "2015-01-02", unit="s").unit == "s"
    assert Datetime().unit is None


def test_a_constant_column_is_legal():
    assert Numerical(3, 3).is_public
    assert Datetime("2015-01-01", "2015-01-01").is_public


@pytest.mark.parametrize(
    ("column", "complaint"),
    [
        (Categorical(), r"^column 'city': list its values: Categorical\(\[...\]\); only `fit` finds them"),
        (Numerical(integer=True), r"^column 'city': give its bounds: Numerical\(low, high\)"),
        (Datetime(), r"^column 'city': give its bounds: Datetime\(low, high\)"),
    ],
)
def test_what_is_not_public_is_named(column, complaint):
    schema = Schema({"age": Numerical(0, 1), "city": column})
    with pytest.raises(InputError, match=complaint):
        schema.require_public()


def test_a_schema_cannot_be_changed_but_copied():
    given_columns = {"a": Categorical(["x"])}
    schema = Schema(given_columns, missing="?")
    given_columns["b"] = Categorical(["y"])
    assert list(schema.columns) == ["a"]
    with pytest.raises(TypeError):
        schema.columns["c"] = Categorical(["z"])
    assert copy.deepcopy(schema) == schema == pickle.loads(pickle.dumps(schema))


def test_an_empty_cell_is_missing_unless_it_is_a_value():
    schema = Schema({"a": Categorical(["", "b"], missing=["-"]), "b": Numerical(0, 1)}, missing="?")
    assert schema.markers("a") == ("?", "-")
    assert schema.markers("b") == ("", "?")


def _typed(schema):
    """A schema with the types of its values, which equality does not tell apart."""
    return {
        name: [(type(v), v) for v in getattr(c, "values", None) or (c.low, c.high)]
        for name, c in schema.columns.items()
    }


@given(tables())
def test_a_schema_is_read_back_as_it_was_written(tmp_path_factory, table):
    schema, _ = table
    path = tmp_path_factory.mktemp("schema") / "schema.yaml"
    path.write_text(to_yaml(schema), encoding="utf-8")
    assert read_schema(path) == schema
    assert _typed(read_schema(path)) == _typed(schema)


@given(
    st.dictionaries(
        names | texts, st.lists(texts | st.sampled_from(AWKWARD), min_size=1, unique=True), min_size=1
    )
)
def test_any_text_is_read_back_and_other_readers_agree(columns):
    schema = Schema({name: Categorical(values) for name, values in columns.items()})
    text = to_yaml(schema)
    assert yaml.safe_load(text) == to_plain(schema)


def test_awkward_text_stays_text(tmp_path):
    schema = Schema({text: Categorical(AWKWARD) for text in AWKWARD}, missing=["n", "NA"])
    (tmp_path / "s.yaml").write_text(to_yaml(schema), encoding="utf-8")
    assert read_schema(tmp_path / "s.yaml") == schema


def test_a_line_of_the_schema_forbids_missing_cells_in_all_columns_that_do_not_allow_them():
    columns = {
        "a": {"kind": "numerical"},
        "b": {"kind": "categorical", "nullable": True},
        "c": {"kind": "text"},
    }
    read = from_plain({"nullable": False, "columns": columns})
    assert [read.columns[name].nullable for name in "ab"] == [False, True]
    assert from_plain(to_plain(read)) == read
    with pytest.raises(InputError, match="nullable is true or false, not 'no'"):
        from_plain({"nullable": "no", "columns": columns})
    with pytest.raises(InputError, match="'nullable:' is about columns that the schema declares"):
        from_plain({"nullable": False, "csv": {"delimiter": ";"}})


def test_a_person_need_not_know_the_traps_of_yaml(tmp_path):
    path = tmp_path / "s.yaml"
    path.write_text(
        "columns:\n"
        "  answer: {kind: categorical, values: [yes, no, 010, 12:30, 2015-01-01, true, 3, 1.5]}\n"
        "  size: {kind: numerical, low: 1e-3, high: 1e5}\n"
        "  day: {kind: datetime, low: 2015-01-01, high: 2020-12-31, missing: [never]}\n"
        "missing: '?'\n",
        encoding="utf-8-sig",
    )
    expected = Schema(
        {
            "answer": Categorical(["yes", "no", "010", "12:30", "2015-01-01", True, 3, 1.5]),
            "size": Numerical(0.001, 1e5),
            "day": Datetime("2015-01-01", "2020-12-31", missing="never"),
        },
        missing="?",
    )
    assert read_schema(path) == expected
    assert _typed(read_schema(path)) == _typed(expected)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("", "a schema is a mapping that begins with 'columns:'"),
        ("- a", "a schema is a mapping"),
        ("columns: 3", "'columns:' is a mapping"),
        ("columns:", "'columns:' is a mapping"),
        ("columns: {}", "a schema maps names to columns"),
        ("missing: '?'", "'columns' is missing"),
        (
            "columns: {a: {kind: categorical}}\ncolour: red",
            "'colour' is not known here: allowed are about, columns, missing",
        ),
        ("columns: {a: 3}", "column 'a': a column is a mapping such as"),
        ("columns: {a: }", "column 'a': a column is a mapping such as"),
        ("columns: {3: {kind: categorical}}", "the column name 3 is not text: put it in quotes"),
        ("columns: {a: {low: 1}}", "column 'a': 'kind' is missing: one of categorical, numerical, datetime"),
        ("columns: {a: {kind: words}}", "column 'a': the kind 'words' is none of categorical"),
        ("columns: {a: {kind: [text]}}", "column 'a': the kind"),
        (
            "columns: {a: {kind: numerical, lo: 1}}",
            "column 'a': 'lo' is not known here: allowed are low, high, integer",
        ),
        ("columns: {a: {kind: numerical, low: 5, high: 1}}", "column 'a': low 5 is above high 1"),
        ("columns: {a: {kind: numerical, low: a, high: 1}}", "column 'a': a bound is a number, not 'a'"),
        (
            "columns: {a: {kind: categorical, nullable: no}}",
            "column 'a': nullable is true or false, not 'no'",
        ),
        ("columns: {a: {kind: categorical, values: x}}", "column 'a': values are a list"),
        ("columns: {a: {kind: categorical, values: [x, ~]}}", "column 'a': a missing value is not listed"),
        (
            "columns: {a: {kind: categorical, values: [[x]]}}",
            "column 'a': value 1 of the list is not hashable",
        ),
        (
            "columns:\n  a: {kind: categorical}\n  a: {kind: numerical}",
            r"not YAML \(line 3\): the key 'a' comes twice",
        ),
        ("columns: {a: [}", r"not YAML \(line 1\)"),
        ("a: b: c", r"not YAML \(line 1\)"),
        ("columns: {? [a] : b}", "not YAML"),
        ("columns: !!python/object/apply:os.system [ls]", "not YAML"),
        ("columns: *a", "not YAML"),
        ("\x00", "not YAML"),
        ("columns: {a: {kind: text}}\nconstraints: 7", "'constraints:' is a list"),
        ("columns: {a: {kind: text}}\nconstraints: !!set {a <= b}", "'constraints:' is a list"),
        ("[" * 1500, "not YAML"),
        ("columns: {a: {kind: numerical, low: " + "9" * 5000 + ", high: 1}}", "not YAML|finite"),
    ],
)
def test_a_malformed_file_is_one_line(tmp_path, text, complaint):
    path = tmp_path / "schema.yaml"
    path.write_text(text, encoding="utf-8")
    with refuses(complaint) as error:
        read_schema(path)
    assert str(error.value).startswith(f"{path}: ")


CONSTRAINED = """\
columns:
  a: {kind: numerical, low: 0, high: 9}
  b: {kind: numerical, low: 0, high: 9}

constraints:
- a <= b
# Two constraints from one line: the next is the third of all, and the second of the list.
- %s
"""


@pytest.mark.parametrize(
    ("constraint", "where"),
    [
        ("a <= c", "line 8: constraint 2: "),
        ("kind: increasing\n  columns: [a, c]", "line 8: constraint 2: "),
        ("{kind: increase}", "line 8: constraint 2: "),
        ("b >= a and a <= b\n- b <= c", "line 9: constraint 3: "),
    ],
)
def test_an_error_in_a_constraint_names_its_line(tmp_path, constraint, where):
    path = tmp_path / "schema.yaml"
    path.write_text(CONSTRAINED % constraint)
    with pytest.raises(InputError) as error:
        read_schema(path)
    assert str(error.value).startswith(f"{path}, {where}")


@pytest.mark.parametrize("constraints", [5, True, "a <= b", {"kind": "increasing"}])
def test_constraints_of_a_file_are_a_list(constraints):
    with pytest.raises(InputError, match="'constraints:' is a list: begin each with"):
        from_plain({"columns": {"a": {"kind": "text"}}, "constraints": constraints})


def test_a_list_without_its_key_is_said_to_need_it(tmp_path):
    path = tmp_path / "schema.yaml"
    for key, advice in (("#constraints:", "remove the # before it in line 5"), ("# Rules:", "write it")):
        path.write_text((CONSTRAINED % "b <= a").replace("constraints:", key, 1))
        with pytest.raises(InputError) as error:
            read_schema(path)
        assert str(error.value) == (
            f"{path}: not YAML (line 6): this list needs 'constraints:' above it: {advice}"
        )


@pytest.mark.parametrize(
    ("lines", "advice"),
    [
        (["-a <= b"], "not YAML (line 5): a space is missing after the '-'"),
        (["- a <= b", "-b <= a"], "not YAML (line 6): a space is missing after the '-'"),
        (["a <= b"], "not YAML (line 5): a constraint begins with '- '"),
        (["- a <= b", "#- b <= a", "b <= a"], "not YAML (line 7): a constraint begins with '- '"),
        (["  a <= b"], "'constraints:' is a list: begin each with '- ', as in - start <= end"),
        (
            ["- kind: determined", "#  column: a", "#  by: b"],
            ", line 5: constraint 1: 'column' is missing; remove the # before line 6 too",
        ),
    ],
)
def test_a_constraint_that_was_uncommented_wrongly_is_named_by_line_and_what_to_do(tmp_path, lines, advice):
    path = tmp_path / "s.yaml"
    known = ["columns:", "  a: {kind: numerical}", "  b: {kind: numerical}", "constraints:"]
    path.write_text("\n".join([*known, *lines, ""]))
    with pytest.raises(InputError) as caught:
        read_schema(path)
    assert str(caught.value).removeprefix(str(path)).removeprefix(": ") == advice


def test_a_schema_may_say_only_how_files_are_written(tmp_path):
    path = tmp_path / "schema.yaml"
    path.write_text("csv: {delimiter: ;, encoding: windows-1252}")
    schema = read_schema(path)
    assert schema == Schema({}, csv=CsvFormat(delimiter=";", encoding="cp1252"))
    assert to_yaml(schema) == "csv: {delimiter: ;, encoding: cp1252}\n"
    with pytest.raises(InputError, match="a schema maps names to columns"):
        as_schema(Schema({}))


def test_the_work_on_the_keys_of_a_file_grows_with_their_number():
    """Each key was compared with all before it: 18 million comparisons of 6,000 columns."""
    compared = []

    class Key(str):
        __slots__ = ()
        __hash__ = str.__hash__

        def __eq__(self, other):
            compared.append(other)
            return str.__eq__(self, other)

    class Loader(_Loader):
        pass

    Loader.add_constructor("!key", lambda loader, node: Key(loader.construct_scalar(node)))
    plain = Loader("".join(f"!key k{place}: 1\n" for place in range(1000))).get_single_data()
    assert len(plain) == 1000
    assert len(compared) <= 10 * len(plain)


def test_what_is_no_file_is_one_line(tmp_path):
    with pytest.raises(InputError, match="cannot be read"):
        read_schema(tmp_path)
    with pytest.raises(InputError, match="cannot be read"):
        read_schema(tmp_path / "none.yaml")
    (tmp_path / "binary.yaml").write_bytes(b"\xff\xfe\x00\x80")
    with pytest.raises(InputError, match="not a text file in UTF-8"):
        read_schema(tmp_path / "binary.yaml")


def test_values_without_a_text_are_not_written():
    with pytest.raises(InputError, match="column 'a': a complex cannot be written"):
        to_yaml(Schema({"a": Categorical([1j])}))


@given(tables())
def test_plain_data_says_it_all(table):
    assert from_plain(to_plain(table[0])) == table[0]


def test_the_schema_of_adult_is_public():
    path = Path(__file__).parents[3] / "datasets" / "adult" / "schema.yaml"
    schema = read_schema(path)
    schema.require_public()
    assert len(schema.columns) == 15
    assert [len(c.values) for c in schema.columns.values() if isinstance(c, Categorical)] == [
        8,
        16,
        7,
        14,
        6,
        5,
        2,
        41,
        2,
    ]


def test_an_error_of_a_schema_names_its_place_and_remembers_no_other_error(tmp_path):
    path = tmp_path / "s.yaml"
    path.write_text("columns:\n  age: {kind: numerical, low: 9, high: 1}\n")
    with refuses() as refused:
        read_schema(path)
    assert str(refused.value).startswith(f"{path}: column 'age': ")


def test_texts_of_digits_are_quoted_for_readers_of_all_versions_of_yaml():
    """0999 is text in YAML 1.1 and a number in 1.2; 0101 is a number in both."""
    codes = ["0101", "0999", "+08", "0o17", "12"]
    text = to_yaml(Schema({"code": Categorical(codes), "number": Categorical([8, 9])}))
    assert all(f"'{code}'" in text for code in codes)
    assert "[8, 9]" in text
