"""Write a software bill of materials (CycloneDX) of what privsyn needs at run time: tools/sbom.py FOLDER.

The packages are those that pip chooses today for the dependencies in pyproject.toml, without extras, in an
environment of their own in which nothing else is. The same versions give the same bytes. cyclonedx-py, which
reads them, has an environment of its own too, so that it is none of them.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tempfile
import tomllib
import venv
from collections.abc import Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
TOOL = "cyclonedx-bom==7.5.0"


def main(folder: Path) -> int:
    """Write the file into a folder, or print why it would not be true."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    with tempfile.TemporaryDirectory() as place:
        needed, tool = (_environment(Path(place, name)) for name in ("needed", "tool"))
        _install(needed, *project["dependencies"])
        _install(tool, TOOL)
        options = ("--pyproject", ROOT / "pyproject.toml", "--mc-type", "library", "--output-reproducible")
        command = [tool, "-m", "cyclonedx_py", "environment", *options, "-o", "-", needed]
        timeless = {name: value for name, value in os.environ.items() if name != "SOURCE_DATE_EPOCH"}
        text = subprocess.run(command, check=True, capture_output=True, text=True, env=timeless).stdout
    found = list(complaints(json.loads(text), project))
    sys.stderr.writelines(f"{complaint}\n" for complaint in found)
    if not found:
        folder.mkdir(exist_ok=True)
        file = folder / f"{project['name']}-{project['version']}.cdx.json"
        file.write_text(text, encoding="utf-8")
        sys.stdout.write(f"{file}\n")
    return bool(found)


def complaints(bill: dict[str, Any], project: dict[str, Any]) -> Iterator[str]:
    """Yield why a bill is not that of the project: what is missing, too much, or has no version."""
    root = bill.get("metadata", {}).get("component", {})
    if bill.get("bomFormat") != "CycloneDX" or "serialNumber" in bill:
        yield "not a reproducible CycloneDX file"
    if (root.get("name"), root.get("version")) != (project["name"], project["version"]):
        yield f"of {root.get('name')} {root.get('version')}, and not of this version"
    packages = {normal(each["name"]): each for each in bill.get("components", ())}
    needed = {normal(re.split(r"[<>=!~\[; ]", line)[0]) for line in project["dependencies"]}
    yield from (f"{name} is missing" for name in sorted(needed - packages.keys()))
    graph = {each["ref"]: each.get("dependsOn", ()) for each in bill.get("dependencies", ())}
    reached, waiting = set(), [root.get("bom-ref")]
    while waiting:
        if (here := waiting.pop()) not in reached:
            reached.add(here)
            waiting += graph.get(here, ())
    for name, each in sorted(packages.items()):
        if each["bom-ref"] not in reached:
            yield f"{name} is not needed by {project['name']}"
        if not each.get("version") or not each.get("purl", "").startswith("pkg:pypi/"):
            yield f"{name} has no version, or is from no index"


def normal(name: str) -> str:
    """Return the name of a package as indexes compare names.

    >>> normal("Typing_Extensions")
    'typing-extensions'
    """
    return re.sub(r"[-_.]+", "-", name).lower()


def _environment(place: Path) -> Path:
    """Return the Python of a new environment, without pip."""
    venv.create(place, with_pip=False, symlinks=os.name == "posix")
    return place / ("bin" if os.name == "posix" else "Scripts") / "python"


def _install(python: Path, *requirements: str) -> None:
    command = [sys.executable, "-m", "pip", "--python", python, "install", "--quiet", *requirements]
    subprocess.run(command, check=True)


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    sys.exit(main(Path(sys.argv[1])))
