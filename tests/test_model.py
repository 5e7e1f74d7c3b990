"""The page of the model names files, functions and numbers that are there, with the values that they have."""

from __future__ import annotations

import ast
import importlib
import re
from fractions import Fraction
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PAGE = (ROOT / "docs" / "model.md").read_text(encoding="utf-8")
FOLDERS = ("inference", "marginals", "methods", "synthesis")
OF_PAPER = "methods/paper/"  # has the paper's parameters
REPLACE_ZERO = "marginals/tolerances.py"


def value_of(text: str) -> tuple[Fraction, ...]:
    """Return the number or numbers that a cell of the page states."""
    return tuple(Fraction(part) for part in text.split(", "))


def constants(file: str) -> dict[str, tuple[float, ...]]:
    """Return the numbers in capitals that a module defines; one that follows from others is left out."""
    module, numbers = importlib.import_module("privsyn." + file[:-3].replace("/", ".")), {}
    for node in ast.parse(Path(module.__file__).read_text(encoding="utf-8")).body:
        if not isinstance(node, ast.Assign | ast.AnnAssign) or node.value is None:
            continue
        if any(isinstance(part, ast.Name | ast.Call) for part in ast.walk(node.value)):
            continue
        targets = node.targets if isinstance(node, ast.Assign) else [node.target]
        for name in (
            part.id for target in targets for part in ast.walk(target) if isinstance(part, ast.Name)
        ):
            value = getattr(module, name)
            values = value if isinstance(value, tuple) else (value,)
            if name.isupper() and all(isinstance(number, int | float) for number in values):
                numbers[name] = values
    return numbers


TABLED = re.findall(r"^\| `(\w+)` in `([\w/]+\.py)` \| ([^|]+) \|", PAGE, re.M)
LISTED = [
    (name, file)
    for file, names in re.findall(r"^- `([\w/]+\.py)`: (.*)$", PAGE, re.M)
    for name in re.findall(r"`(\w+)`", names)
]


@pytest.mark.parametrize(("name", "file", "value"), TABLED)
def test_a_number_has_the_value_that_the_page_states(name, file, value):
    stated = value_of(value.strip())
    assert constants(file)[name] == pytest.approx(tuple(map(float, stated)), rel=1e-12)


def test_the_page_names_every_number_of_the_algorithm_once():
    paths = [path for folder in FOLDERS for path in sorted((ROOT / "privsyn" / folder).rglob("*.py"))]
    files = [path.relative_to(ROOT / "privsyn").as_posix() for path in paths]
    algorithm = (file for file in files if not file.startswith(OF_PAPER) and file != REPLACE_ZERO)
    defined = {(name, file) for file in algorithm for name in constants(file)}
    named = [*((name, file) for name, file, _ in TABLED), *LISTED]
    assert len(named) == len(set(named))
    assert set(named) == defined


@pytest.mark.parametrize("file", sorted(set(re.findall(r"`([\w/]+\.py)`", PAGE))))
def test_a_formula_names_a_file_that_is_there(file):
    assert (ROOT / "privsyn" / file).exists() or (ROOT / file).exists()


@pytest.mark.parametrize(("file", "name"), re.findall(r"`([\w/]+\.py)`, `(\w+)`", PAGE))
def test_a_formula_names_a_function_that_is_there(file, name):
    assert f"def {name}(" in (ROOT / "privsyn" / file).read_text(encoding="utf-8")


def test_each_formula_names_a_constant_of_the_files_beside_it():
    """A word in capitals of a formula is a number of the file that the same paragraph names."""
    for part in re.split(r"\n(?=\*\*)", PAGE.partition("## Fitted numbers")[0])[1:]:
        files = [ROOT / "privsyn" / file for file in re.findall(r"`([\w/]+\.py)`", part)]
        text = "".join(path.read_text(encoding="utf-8") for path in files)
        for name in set(re.findall(r"\b[A-Z]{2,}(?:_[A-Z]+)*\b", part)) - {"EM", "PAIRS"}:
            assert re.search(rf"\b{name}\b", text), (name, files)
