"""What holds of the package as a whole: its folders, its names, its dependencies and its version."""

from __future__ import annotations

import ast
import hashlib
import inspect
import json
import re
import runpy
import subprocess
import sys
import tomllib
import zipfile
from collections.abc import Iterator
from importlib import metadata, resources
from itertools import pairwise
from pathlib import Path

import pytest
import yaml

import privsyn

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "privsyn"
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
SOURCES = sorted(PACKAGE.rglob("*.py"))

IMPORTED_AS = {
    "huggingface-hub": "huggingface_hub",
    "axe-playwright-python": "axe_playwright_python",
    "check-wheel-contents": "check_wheel_contents",
    "dp-accounting": "dp_accounting",
    "ibis-framework": "ibis",
    "ipython": "IPython",
    "pytest-xdist": "xdist",
    "python-multipart": "python_multipart",
    "pyyaml": "yaml",
    "scikit-learn": "sklearn",
}
NEVER_IMPORTED = {  # tools, beside the stubs
    "import-linter",
    "ipykernel",
    "mike",
    "mkdocs-material",
    "mkdocstrings",
    "mypy",
    "nox",
    "psycopg",  # by ibis
    "pytest-cov",
    "ruff",
}


FOR_TYPES = {"typing_extensions"}  # every type checker has it; to be imported for types alone


def requirements(*groups: list[str]) -> set[str]:
    return {re.split(r"[<>=!~\[]", line)[0].lower() for group in groups for line in group}


RUN_TIME = requirements(PROJECT["project"]["dependencies"])
EXTRAS = requirements(*PROJECT["project"]["optional-dependencies"].values())
DEV = requirements(*PROJECT["dependency-groups"].values())


def imported(paths: list[Path]) -> set[str]:
    """The packages that files import, by their import names; the standard library and ourselves left out."""
    names = {name for path in paths for name in _imports(ast.parse(path.read_text()))}
    ours = {path.stem for folder in ("tests", "experiments") for path in ROOT.glob(f"{folder}/**/*.py")} | {
        path.name for path in ROOT.glob("tests/*/")
    }
    return names - sys.stdlib_module_names - {"privsyn"} - ours


def _imports(tree: ast.Module) -> Iterator[str]:
    nodes = list(ast.walk(tree))
    ifs = [node for node in nodes if isinstance(node, ast.If)]
    types = {id(line) for node in ifs if ast.unparse(node.test) == "TYPE_CHECKING" for line in node.body}
    for node in nodes:
        if isinstance(node, ast.Import):
            yield from (alias.name.split(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module in FOR_TYPES and id(node) in types:
            continue
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield node.module.split(".")[0]
        elif isinstance(node, ast.Call) and getattr(node.func, "attr", "") == "importorskip":
            name = node.args[0]
            names = [name.body, name.orelse] if isinstance(name, ast.IfExp) else [name]
            yield from (ast.literal_eval(package).split(".")[0] for package in names)


def modules(packages: set[str]) -> set[str]:
    return {IMPORTED_AS.get(package, package) for package in packages}


@pytest.mark.slow
def test_the_package_imports_what_it_declares_and_declares_what_it_imports():
    assert imported(SOURCES) - modules(EXTRAS) == modules(RUN_TIME)


@pytest.mark.slow
def test_the_tests_import_only_what_is_declared():
    used = imported(sorted(ROOT.glob("tests/**/*.py")))
    assert used <= modules(RUN_TIME | EXTRAS | DEV)


@pytest.mark.slow
def test_every_dependency_is_used_and_explained():
    page = (ROOT / "docs" / "dependencies.md").read_text()
    named = {
        name.strip() for row in re.findall(r"^\| ([a-z0-9, -]+) \|", page, re.M) for name in row.split(",")
    }
    assert named - {"package"} == RUN_TIME | EXTRAS | DEV
    stubs = {name for name in DEV if name.startswith("types-") or name.endswith("-stubs")}
    used = imported([*SOURCES, *ROOT.glob("tests/**/*.py")])
    assert modules(RUN_TIME | EXTRAS | (DEV - stubs - NEVER_IMPORTED)) <= used


def test_the_version_is_one():
    assert privsyn.__version__ == metadata.version("privsyn") == PROJECT["project"]["version"]
    newest = re.search(r"^## (\S+)", (ROOT / "CHANGELOG.md").read_text(), re.M)
    assert newest[1] == privsyn.__version__


@pytest.mark.parametrize("name", privsyn.__all__)
def test_every_parameter_of_a_public_class_is_documented(name):
    thing = getattr(privsyn, name)
    if not inspect.isclass(thing) or issubclass(thing, Exception):
        return
    for parameter in inspect.signature(thing).parameters:
        assert re.search(rf"^(\w+, )*{parameter}(, \w+)*( : |$)", inspect.getdoc(thing), re.M), parameter


def test_what_is_not_python_is_part_of_the_package():
    assert resources.files("privsyn").joinpath("py.typed").is_file()
    ledger_schema = resources.files("privsyn.private").joinpath("ledger.schema.json")
    assert json.loads(ledger_schema.read_text())["title"] == "Ledger of a privsyn run"
    page = resources.files("privsyn.pages").joinpath("templates")
    assert all(page.joinpath(f"page.{ending}").is_file() for ending in ("html", "css", "js"))
    assert "columns" in yaml.safe_load(resources.files("privsyn.cli").joinpath("happiness.yaml").read_text())


def test_the_command_is_installed():
    (command,) = metadata.entry_points(group="console_scripts", name="privsyn")
    assert callable(command.load())


HEAVY = ("importlib.metadata", "jinja2", "numba", "numpy", "pandas", "pyarrow", "scipy", "sklearn")

# Needed only for a page, a bar on a terminal, several owners, a Parquet file, or a model that predicts.
NOT_FOR_SYNTH = (
    "asyncio",
    "jinja2",
    "pyarrow.dataset",
    "pyarrow.parquet",
    "rich",
    "scipy.stats",
    "sklearn",
    "ssl",
)


@pytest.mark.parametrize("words", ["import privsyn", "from privsyn.cli.main import main; main(['--help'])"])
def test_a_look_at_the_names_or_the_help_imports_nothing_heavy(words):
    code = f"{words}\nimport sys; print('loaded', *sorted({set(HEAVY)} & set(sys.modules)))"
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ran.stdout.splitlines()[-1] == "loaded"


@pytest.mark.slow
def test_synth_from_csv_to_csv_imports_nothing_that_it_does_not_need(tmp_path):
    (tmp_path / "in.csv").write_text("age,sex\n" + "30,Male\n41,Female\n" * 50)
    (tmp_path / "s.yaml").write_text(
        "columns:\n  age: {kind: numerical, low: 0, high: 99, integer: true}\n"
        "  sex: {kind: categorical, values: [Male, Female]}\n"
    )
    code = f"""
import sys
from privsyn.cli.main import main
words = ["synth", "in.csv", "out.csv", "--epsilon", "1", "--schema", "s.yaml", "--model", "m.privsyn"]
assert main(words) == 0
print("loaded", *sorted({set(NOT_FOR_SYNTH)} & set(sys.modules)))
"""
    ran = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=True
    )
    assert ran.stdout.splitlines()[-1] == "loaded"


def test_every_public_name_is_found_when_asked_for_and_no_other():
    assert set(privsyn.__all__) <= set(dir(privsyn))
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        _ = privsyn.nothing


def test_the_package_runs_as_a_module():
    said = subprocess.run([sys.executable, "-m", "privsyn", "--version"], capture_output=True, text=True)
    assert said.stdout == f"privsyn {privsyn.__version__}\n"


def test_the_citation_has_the_version_of_the_package():
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text())
    assert citation["version"] == PROJECT["project"]["version"]


def test_the_recipe_for_conda_says_what_the_package_says():
    project = PROJECT["project"]
    recipe = yaml.safe_load((ROOT / "recipe" / "recipe.yaml").read_text())
    lowest = recipe["context"]["python_min"]
    run = [
        line.replace("${{ python_min }}", lowest).replace(" ", "") for line in recipe["requirements"]["run"]
    ]
    assert run == [f"python{project['requires-python']}", *project["dependencies"]]
    assert recipe["context"]["version"] == project["version"]
    commands = [f"{name} = {function}" for name, function in project["scripts"].items()]
    assert recipe["build"]["python"]["entry_points"] == commands
    about = recipe["about"]
    assert (about["summary"], about["license"]) == (project["description"], project["license"])


def wheel_of(folder: Path, name: str, version: str = "1", tag: str = "py3-none-any") -> Path:
    """A wheel with one module."""
    path, info = folder / f"{name}-{version}-{tag}.whl", f"{name}-{version}.dist-info"
    with zipfile.ZipFile(path, "w") as files:
        files.writestr(f"{name}.py", "")
        files.writestr(f"{info}/METADATA", f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n")
        files.writestr(f"{info}/WHEEL", f"Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: {tag}\n")
        files.writestr(f"{info}/RECORD", "")
    return path


WHEELHOUSE = runpy.run_path(str(ROOT / "tools" / "wheelhouse.py"))


def test_a_wheelhouse_lists_each_package_once_with_the_hash_of_every_file(tmp_path):
    two = [wheel_of(tmp_path, "fake_b", tag=tag) for tag in ("cp311-cp311-win_amd64", "py3-none-any")]
    files = [wheel_of(tmp_path, "fake_a"), *two]
    first, *both = (f"--hash=sha256:{hashlib.sha256(path.read_bytes()).hexdigest()}" for path in files)
    lines = WHEELHOUSE["requirements"](tmp_path, {"fake-a": "app,excel"}).replace("\\\n", "").splitlines()
    assert [line.split() for line in lines] == [["fake-a[app,excel]==1", first], ["fake-b==1", *both]]
    wheel_of(tmp_path, "fake_b", "2")
    with pytest.raises(ValueError, match="fake-b has two versions, 1 and 2"):
        WHEELHOUSE["requirements"](tmp_path, {})


@pytest.mark.slow
def test_pip_installs_from_a_wheelhouse_without_an_index_and_refuses_a_changed_file(tmp_path):
    wheel_of(tmp_path, "fake_a")
    listed = tmp_path / WHEELHOUSE["LIST"]
    listed.write_text(WHEELHOUSE["requirements"](tmp_path, {}))
    offline = ["--isolated", "--no-index", "--find-links", tmp_path, "--require-hashes", "-r", listed]
    install = [sys.executable, "-m", "pip", "install", "--target", tmp_path / "site", *offline]
    subprocess.run(install, check=True, capture_output=True)
    assert (tmp_path / "site" / "fake_a.py").is_file()
    with zipfile.ZipFile(tmp_path / "fake_a-1-py3-none-any.whl", "a") as files:
        files.writestr("more.py", "")
    refused = subprocess.run([*install, "--upgrade"], check=False, capture_output=True, text=True)
    assert refused.returncode
    assert "DO NOT MATCH THE HASHES" in refused.stderr


def bill(*packages: tuple[str, str], **changed) -> dict:
    """A bill of materials of these packages, each needed by the one before it."""
    refs = ["root", *(f"{name}=={version}" for name, version in packages)]
    return {
        "bomFormat": "CycloneDX",
        "metadata": {"component": {"bom-ref": "root", "name": "privsyn", "version": "1"}},
        "components": [
            {"bom-ref": ref, "name": name, "version": version, "purl": f"pkg:pypi/{name}@{version}"}
            for ref, (name, version) in zip(refs[1:], packages, strict=True)
        ],
        "dependencies": [{"ref": ref, "dependsOn": [below]} for ref, below in pairwise(refs)],
        **changed,
    }


NEEDED = (("NumPy", "2.1"), ("typing_extensions", "4"))
BILLS = {
    "as it should be": (bill(*NEEDED), []),
    "another version": (
        bill(*NEEDED, metadata={"component": {"bom-ref": "root", "name": "privsyn", "version": "2"}}),
        ["of privsyn 2, and not of this version"],
    ),
    "one is missing": (bill(NEEDED[1]), ["numpy is missing"]),
    "one that is not needed": (
        bill(*NEEDED, dependencies=[{"ref": "root", "dependsOn": ["NumPy==2.1"]}]),
        ["typing-extensions is not needed by privsyn"],
    ),
    "one without a version": (bill(("numpy", "")), ["numpy has no version, or is from no index"]),
    "another one each time": (bill(*NEEDED, serialNumber="urn"), ["not a reproducible CycloneDX file"]),
}


@pytest.mark.parametrize(("found", "complaints"), BILLS.values(), ids=BILLS)
def test_a_bill_of_materials_has_what_is_needed_at_run_time_and_nothing_else(found, complaints):
    sbom = runpy.run_path(str(ROOT / "tools" / "sbom.py"))
    project = {"name": "privsyn", "version": "1", "dependencies": ["numpy>=1.26"]}
    assert list(sbom["complaints"](found, project)) == complaints
