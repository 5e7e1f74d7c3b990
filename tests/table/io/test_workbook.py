"""No cell of a workbook decides whether it can be read, and no workbook fills the memory."""

from __future__ import annotations

import tracemalloc
import warnings
import zipfile

import pandas as pd
import pytest

from privsyn import Categorical, Datetime, InputError, Numerical, PrivSyn, Schema
from privsyn.cli.main import main
from privsyn.table.io.read_in_memory import read_in_memory

pytest.importorskip("openpyxl")

SHEET = "xl/worksheets/sheet1.xml"
TEXTS = "xl/sharedStrings.xml"
TYPES = "[Content_Types].xml"
HEAD = '<?xml version="1.0"?><{} xmlns="http://schemas.openxmlformats.org/spreadsheetml/2006/main">'
SCHEMA = Schema(
    {
        "age": Numerical(0, 99),
        "town": Categorical(["Bern", "Oslo"]),
        "day": Datetime("2020-01-01", "2020-12-31"),
    }
)


def workbook(path, rows, texts="<si><t>Bern</t></si><si><t>Oslo</t></si>", members=()):
    """Write a workbook of three columns, with the cells as XML, in styles of which the second is of dates."""
    from openpyxl import Workbook
    from openpyxl.styles import NamedStyle
    from openpyxl.xml.constants import SHARED_STRINGS

    book = Workbook()
    book.add_named_style(NamedStyle("day", number_format="yyyy-mm-dd"))
    book.active["A1"].style = "day"
    book.save(path)
    with zipfile.ZipFile(path) as file:
        plain = {name: file.read(name) for name in file.namelist()}
    head = "".join(f'<c t="inlineStr"><is><t>{name}</t></is></c>' for name in SCHEMA.columns)
    body = "".join(f"<row>{row}</row>" for row in [head, *rows])
    plain[SHEET] = f"{HEAD.format('worksheet')}<sheetData>{body}</sheetData></worksheet>".encode()
    named = f'<Override PartName="/{TEXTS}" ContentType="{SHARED_STRINGS}"/></Types>'
    plain[TYPES] = plain[TYPES].replace(b"</Types>", named.encode())
    plain[TEXTS] = f"{HEAD.format('sst')}{texts}</sst>".encode()
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as file:
        for name, content in (plain | dict(members)).items():
            file.writestr(name, content)
    return path


GOOD = ("<c><v>30</v></c>", '<c t="s"><v>1</v></c>', '<c s="1"><v>43832</v></c>')

BAD = {
    "no number": (0, "<c><v>NaN</v></c>"),
    "a word": (0, "<c><v>abc</v></c>"),
    "an infinite number": (0, "<c><v>1e999</v></c>"),
    "digits without end": (0, f"<c><v>{'9' * 5000}</v></c>"),
    "digits that are none": (0, "<c><v>&#178;</v></c>"),
    "an empty value": (0, "<c><v/></c>"),
    "no truth": (0, '<c t="b"><v>perhaps</v></c>'),
    "a style that is none": (0, '<c s="blue"><v>30</v></c>'),
    "a text that is not there": (1, '<c t="s"><v>99</v></c>'),
    "a text before the first": (1, '<c t="s"><v>-1</v></c>'),
    "a text without a number": (1, '<c t="s"><v>first</v></c>'),
    "a text that is not inside": (1, '<c t="inlineStr"></c>'),
    "a text of other elements": (1, '<c t="inlineStr"><is><v>Bern</v></is></c>'),
    "a date that is none": (2, '<c t="d"><v>2020-13-45</v></c>'),
    "a date of words": (2, '<c t="d"><v>in May</v></c>'),
    "a date of no year": (2, '<c t="d"><v>P99999999999999Y</v></c>'),
    "a day too late": (2, '<c s="1"><v>1e15</v></c>'),
    "a day before all": (2, '<c s="1"><v>-1e15</v></c>'),
    "no day": (2, '<c s="1"><v>NaN</v></c>'),
    "an infinite day": (2, '<c s="1"><v>1e999</v></c>'),
}


@pytest.mark.parametrize("bad", BAD)
def test_a_cell_that_is_not_sound_is_missing_and_nothing_else_changes(bad, tmp_path):
    at, cell = BAD[bad]
    odd = [cell if place == at else sound for place, sound in enumerate(GOOD)]
    path = workbook(tmp_path / "t.xlsx", ["".join(GOOD), "".join(odd), "".join(GOOD)])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        read = read_in_memory(path, SCHEMA).frame
    expected = pd.DataFrame({name: read[name].iloc[[0, 0, 0]].to_numpy() for name in read})
    missing = [[row == 1 and column == at for column in range(3)] for row in range(3)]
    assert read.isna().to_numpy().tolist() == missing
    assert expected.notna().all(axis=None)
    assert [read.iloc[0, 0], read.iloc[0, 1], str(read.iloc[0, 2])[:10]] == [30, "Oslo", "2020-01-02"]


@pytest.mark.parametrize("place", ["", "??", "B", "7", "ABCDEF2", "A-1", "\N{SUPERSCRIPT TWO}"])
def test_a_cell_without_a_place_follows_the_one_before_it(place, tmp_path):
    row = GOOD[0] + GOOD[1].replace("<c", f'<c r="{place}"') + GOOD[2]
    read = read_in_memory(workbook(tmp_path / "t.xlsx", [row]), SCHEMA).frame
    assert read.notna().all(axis=None)


@pytest.mark.parametrize("place", ["x", "-4", "1e9", "99999999999999"])
def test_the_number_of_a_row_decides_nothing(place, tmp_path):
    path = workbook(tmp_path / "t.xlsx", ["".join(GOOD)] * 3)
    with zipfile.ZipFile(path) as file:
        plain = {name: file.read(name) for name in file.namelist()}
    changed = plain[SHEET].replace(b"</row><row>", f'</row><row r="{place}">'.encode())
    read = read_in_memory(workbook(path, [], members={SHEET: changed}), SCHEMA).frame
    assert len(read) == 3


@pytest.mark.parametrize("text", ["<si/>", "<si><b/></si>", "<si><r/></si>", "<si><t>Oslo</t><t/></si>"])
def test_a_shared_text_that_is_not_sound_ends_nothing(text, tmp_path):
    """openpyxl reads all of them before the first row, also those that no cell of the sheet has."""
    path = workbook(tmp_path / "t.xlsx", ["".join(GOOD)], f"<si><t>Bern</t></si><si><t>Oslo</t></si>{text}")
    assert read_in_memory(path, SCHEMA).frame["town"].tolist() == ["Oslo"]


def test_text_is_read_with_its_runs_and_without_its_phonetic_signs(tmp_path):
    runs = "<si><r><t>Os</t></r><r><t>lo</t></r><rPh><t>x</t></rPh></si>"
    path = workbook(tmp_path / "t.xlsx", ["".join(GOOD)], f"<si><t>Bern</t></si>{runs}")
    assert read_in_memory(path, SCHEMA).frame["town"].tolist() == ["Oslo"]


@pytest.mark.slow
def test_a_fit_ends_alike_with_a_cell_that_is_not_sound(tmp_path, recwarn):
    rows = ["".join(GOOD)] * 40
    many_digits = (0, f"<c><v>{'9' * 4000}</v></c>")
    for name, (at, cell) in (BAD | {"many digits": many_digits}).items():
        odd = "".join(cell if place == at else sound for place, sound in enumerate(GOOD))
        path = workbook(tmp_path / f"{name}.xlsx", [*rows, odd])
        model = PrivSyn(5.0, schema=SCHEMA, seed=1).fit(path)
        assert any("sound XML" in fact for fact in model.ledger_.public_inputs)
    assert not [str(warning.message) for warning in recwarn if "Cell" in str(warning.message)]


BOMBS = {
    "shared texts": lambda: {TEXTS: HEAD.format("sst") + "<si><t>ab</t></si>" * 15_000_000 + "</sst>"},
    "one text": lambda: {TEXTS: f"{HEAD.format('sst')}<si><t>{' ' * 300_000_000}</t></si></sst>"},
    "a sheet": lambda: {
        SHEET: f"{HEAD.format('worksheet')}<sheetData>{'<row></row>' * 25_000_000}</sheetData></worksheet>"
    },
    "styles": lambda: {"xl/styles.xml": " " * 300_000_000},
    "a file that no sheet names": lambda: {"xl/more.bin": " " * 300_000_000},
}
"""Made when they are needed: 1.3 GB in each process that collects tests took seconds."""


@pytest.mark.slow
@pytest.mark.parametrize("bomb", BOMBS)
def test_a_workbook_that_would_fill_the_memory_is_refused_before_it_does(bomb, tmp_path, capsys):
    path = workbook(tmp_path / "t.xlsx", ["".join(GOOD)], members=BOMBS[bomb]())
    assert path.stat().st_size < 2**20 * 4
    tracemalloc.start()
    try:
        with pytest.raises(
            InputError, match=r"t\.xlsx: unpacks to more than 67 MB and 100 times its size.*save it as \.csv"
        ):
            read_in_memory(path, SCHEMA)
        assert tracemalloc.get_traced_memory()[1] < 2**24
    finally:
        tracemalloc.stop()
    assert main(["synth", str(path), str(tmp_path / "o.csv"), "--epsilon", "1"]) == 2
    assert capsys.readouterr().err.count("\n") == 1


def test_a_directory_that_lies_unpacks_no_more_than_it_says(tmp_path):
    path = workbook(tmp_path / "t.xlsx", ["".join(GOOD)], members={TEXTS: " " * 200_000_000})
    content = path.read_bytes()
    at = content.rindex(TEXTS.encode()) - 46  # its entry in the directory
    path.write_bytes(content[: at + 24] + (1000).to_bytes(4, "little") + content[at + 28 :])
    tracemalloc.start()
    try:
        with pytest.raises(InputError, match="not an Excel workbook"):
            read_in_memory(path, SCHEMA)
        assert tracemalloc.get_traced_memory()[1] < 2**24
    finally:
        tracemalloc.stop()


def test_a_member_packed_in_another_way_is_refused(tmp_path):
    path = workbook(tmp_path / "t.xlsx", ["".join(GOOD)])
    with zipfile.ZipFile(path, "a", zipfile.ZIP_LZMA) as file:
        file.writestr("more.xml", " " * 1000)
    with pytest.raises(InputError, match="packed in a way that workbooks do not use"):
        read_in_memory(path, SCHEMA)


def test_texts_beyond_the_limit_are_refused(tmp_path, monkeypatch):
    import privsyn.table.io.workbook as limits

    path = workbook(tmp_path / "t.xlsx", ["".join(GOOD)])
    monkeypatch.setattr(limits, "MOST_TEXTS", 10)
    with pytest.raises(InputError, match=r"MB of text.*save the sheet as \.csv"):
        read_in_memory(path, SCHEMA)
