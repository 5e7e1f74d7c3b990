"""CSV files with a blank after each delimiter."""

import numpy as np
import pandas as pd
import pytest

from privsyn import CsvFormat, Numerical, PrivSyn, Schema
from privsyn.cli.main import main
from privsyn.table.drafting.draft import draft_schema
from privsyn.table.io.read_in_memory import read_in_memory

ROWS = np.random.default_rng(1)
FRAME = pd.DataFrame(
    {
        "age": ROWS.integers(17, 90, 400),
        "sex": ROWS.choice(["Male", "Female"], 400),
        "gain": ROWS.gamma(2, 30, 400).round(2),
        "day": ROWS.choice(["2024-01-31", "2024-02-03", ""], 400),
    }
)


def spaced(path, *, header=True):
    lines = FRAME.to_csv(index=False).splitlines()
    first = 0 if header else 1
    path.write_text("\n".join([*lines[:first], *(line.replace(",", ", ") for line in lines[first:])]) + "\n")
    return path


@pytest.mark.parametrize("header", [True, False])
def test_a_draft_reads_numbers_after_blanks_and_the_synthetic_file_has_them(header, tmp_path, capsys):
    """Whether or not the header has blanks, too."""
    path = spaced(tmp_path / "a.csv", header=header)
    assert main(["schema", str(path), "-o", str(tmp_path / "s.yaml")]) == 0
    assert "blank: true" in (tmp_path / "s.yaml").read_text()
    schema = draft_schema(path)
    assert [*schema.columns] == [*FRAME]
    assert isinstance(schema.columns["gain"], Numerical)
    assert schema.columns["sex"].values == ("Female", "Male")
    assert main(["schema", str(path), "--check", str(tmp_path / "s.yaml")]) == 0
    assert "every cell fits" in capsys.readouterr().out
    PrivSyn(5.0, 1e-9, tmp_path / "s.yaml", seed=0).fit(path).sample_to(tmp_path / "b.csv", 100, seed=0)
    made = (tmp_path / "b.csv").read_text().splitlines()
    assert made[0] == "age, sex, gain, day"
    assert all(line.count(", ") == 3 == line.count(",") for line in made)
    again = read_in_memory(tmp_path / "b.csv", schema).frame
    assert again["sex"].isin(["Male", "Female"]).all()
    assert again["gain"].between(0, 1000).all()


def test_a_header_with_blanks_says_so_without_a_schema(tmp_path):
    frame = read_in_memory(spaced(tmp_path / "a.csv")).frame
    assert frame["age"].tolist() == FRAME["age"].tolist()
    assert frame["sex"].tolist() == FRAME["sex"].tolist()


def test_blanks_in_cells_are_kept_otherwise(tmp_path):
    """They may tell two values apart."""
    pd.DataFrame({"a": ["x", "y"], "b": [" x", "x"]}).to_csv(tmp_path / "a.csv", index=False)
    assert read_in_memory(tmp_path / "a.csv").frame["b"].tolist() == [" x", "x"]


def test_a_format_with_blanks_is_read_and_written_by_a_schema(tmp_path):
    path = spaced(tmp_path / "a.csv", header=False)
    schema = Schema({}, csv=CsvFormat(blank=True))
    assert read_in_memory(path, schema).frame["gain"].tolist() == FRAME["gain"].tolist()


def test_a_text_in_quotes_after_a_blank_is_what_they_enclose(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text('"n", city, said\n"""1""", "Oslo", "a ""b"""\n2, Rome, c\n')
    frame = read_in_memory(path, None).frame
    assert frame["city"].tolist() == ["Oslo", "Rome"]
    assert frame["said"].tolist() == ['a "b"', "c"]
    assert frame["n"].astype(str).tolist() == ['"1"', "2"]
