"""Collect the wheels of privsyn and of all that it needs, with their hashes: for rooms without internet.

tools/wheelhouse.py FOLDER WHEEL [EXTRAS] [-- OPTIONS OF pip download]

FOLDER then has the wheels and `requirements.txt`, in which each package has its version and the SHA-256 of
its file. At last pip tries, without the index, whether the folder is complete and every file has its hash.
The folder is made for the Python and the system that run this, or for those that the options name:
`--platform manylinux_2_28_aarch64 --python-version 3.13`.
"""

from __future__ import annotations

import hashlib
import re
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

LIST = "requirements.txt"
"""The file that names the wheels, in the folder with them."""


def main(folder: Path, wheel: Path, extras: str, options: Sequence[str]) -> None:
    """Fill a new folder; a step that fails ends the program."""
    if folder.exists() and any(folder.iterdir()):
        sys.exit(f"{folder}: is not empty: the wheels of two days do not fit each other; remove it first")
    wanted = f"{wheel}[{extras}]" if extras else str(wheel)
    only_wheels = ("--only-binary", ":all:")
    _pip("download", "--quiet", "--dest", folder, *only_wheels, *options, wanted)
    try:
        text = requirements(folder, {name_of(wheel): extras})
    except ValueError as error:
        sys.exit(str(error))
    (folder / LIST).write_text(text, encoding="utf-8")
    with tempfile.TemporaryDirectory() as nowhere:  # pip asks for it if the wheels are for another machine
        offline = ("--no-index", "--find-links", folder, "--require-hashes", "--requirement", folder / LIST)
        _pip("install", "--quiet", "--dry-run", "--target", nowhere, *only_wheels, *options, *offline)
    files = list(folder.glob("*.whl"))
    megabytes = sum(path.stat().st_size for path in files) / 1e6
    sys.stdout.write(f"{folder}: {len(files)} wheels, {megabytes:.0f} MB. Where there is no internet:\n")
    sys.stdout.write(f"pip install --no-index --find-links {folder} --require-hashes -r {folder / LIST}\n")


def requirements(folder: Path, extras: dict[str, str]) -> str:
    """Return the lines of `requirements.txt` for the wheels of a folder.

    Parameters
    ----------
    folder : Path
    extras : dict
        The extras to install of a package, by its name; "" for none.

    Raises
    ------
    ValueError
        If a package has two versions, of which pip would install one, or none has a wheel.
    """
    hashes: dict[str, list[str]] = {}
    versions: dict[str, str] = {}
    for path in sorted(folder.glob("*.whl")):
        name, version = name_of(path), path.name.split("-")[1]
        if versions.setdefault(name, version) != version:
            raise ValueError(f"{folder}: {name} has two versions, {versions[name]} and {version}")
        with path.open("rb") as file:
            digest = hashlib.file_digest(file, "sha256").hexdigest()
        hashes.setdefault(name, []).append(f"--hash=sha256:{digest}")
    if not hashes:
        raise ValueError(f"{folder}: has no wheel")
    lines = []
    for name, version in versions.items():
        chosen = f"[{extras[name]}]" if extras.get(name) else ""
        lines.append(" \\\n    ".join([f"{name}{chosen}=={version}", *hashes[name]]))
    return "\n".join(lines) + "\n"


def name_of(wheel: Path) -> str:
    """Return the name of the package that a wheel has.

    >>> name_of(Path("dist/Typing_Extensions-4.1-py3-none-any.whl"))
    'typing-extensions'
    """
    return re.sub(r"[-_.]+", "-", wheel.name.split("-")[0]).lower()


def _pip(*arguments: str | Path) -> None:
    ran = subprocess.run([sys.executable, "-m", "pip", *arguments], check=False)
    if ran.returncode:
        sys.exit(ran.returncode)


if __name__ == "__main__":
    words = sys.argv[1:]
    end = words.index("--") if "--" in words else len(words)
    if end not in (2, 3):
        sys.exit(__doc__)
    main(Path(words[0]), Path(words[1]), "".join(words[2:end]), words[end + 1 :])
