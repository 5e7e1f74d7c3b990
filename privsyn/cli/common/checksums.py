"""A list of the SHA-512 of all files of a run that may be published, for `sha512sum --check`; its signature.

A list is as public as the files: whoever has a file can compute its line. What reads the private table again
(`--report`) is not on it, because a line would confirm guesses of a page that nobody may see.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from privsyn.errors import InputError
from privsyn.files import atomic_path, check_file
from privsyn.table.io.formats import file_of, holds_tables

REHEARSAL = b"privsyn tries the key before it reads a table\n"

NAMESPACE = "file"
"""What `ssh-keygen` itself proposes for files: a signature is valid for one purpose alone."""


@dataclass(frozen=True)
class Checksums:
    """Where the list is written, and who signs it.

    Parameters
    ----------
    path : Path, optional
        Without it, no list is written.
    key : Path, optional
        The private SSH key, or the public one if an agent has the private one.
    """

    path: Path | None = None
    key: Path | None = None

    @property
    def outputs(self) -> Mapping[str, Path | None]:
        """The files that `write` writes, by option."""
        signed = None if self.path is None or self.key is None else _signature_of(self.path)
        return {"--checksums": self.path, "the signature": signed}

    def check(self, out: Path, *, seeded: bool) -> None:
        """Refuse what may not be published, and a key that does not sign, before any epsilon is spent.

        An existing database keeps its other tables, which may be private: a line would confirm guesses of
        their rows. The key signs a fixed text now.
        """
        if self.path is None and self.key is not None:
            raise InputError("--sign signs the list of --checksums: give both")
        if self.path is None:
            return
        if seeded:
            raise InputError(
                "--checksums lists what may be published, and a run with --seed is NOT PRIVATE: leave out one"
            )
        if holds_tables(database := file_of(out)) and database.exists():
            raise InputError(
                f"--checksums: {database} exists already, and other tables in it may be private: give OUT a"
                " new database"
            )
        if self.key is not None:
            check_file(self.key)
            self._sign(REHEARSAL)
        elif (old := _signature_of(self.path)).exists():
            raise InputError(f"{old} signs another list: sign the new one with --sign, or remove that file")

    def write(self, files: Iterable[Path], written: list[Path]) -> None:
        """Write the list of these files, then its signature; of a folder, all files in it.

        Parameters
        ----------
        files : iterable of Path
        written : list of Path
            The list and its signature are appended, each as soon as it is there.

        Raises
        ------
        InputError
            If one cannot be written, or the key does not sign any more.
        """
        if self.path is None:
            return
        inside = [each for path in files for each in _files_of(path)]
        content = b"".join(_line(file, self.path.parent) for file in inside)
        signature = _signature_of(self.path)
        if self.key is not None:  # that of an earlier list may not stay beside this one
            signature.unlink(missing_ok=True)
        _write(self.path, content)
        written.append(self.path)
        if self.key is not None:
            _write(signature, self._sign(content))
            written.append(signature)

    def _sign(self, content: bytes) -> bytes:
        """Return the signature of some bytes. A passphrase is asked for on the terminal."""
        if (tool := shutil.which("ssh-keygen")) is None:
            raise InputError("--sign needs ssh-keygen, of OpenSSH: install it, or leave out --sign")
        command = [tool, "-Y", "sign", "-n", NAMESPACE, "-f", os.fspath(self.key or "")]
        done = subprocess.run(command, input=content, capture_output=True, check=False)  # noqa: S603 - no shell
        if done.returncode or not done.stdout.startswith(b"-----BEGIN SSH SIGNATURE-----"):
            lines = [line for line in done.stderr.decode(errors="replace").splitlines() if line.strip()]
            raise InputError(f"--sign {self.key}: ssh-keygen does not sign with it ({'; '.join(lines[-1:])})")
        return done.stdout


def write_beside(
    of: Any, out: Path, outputs: Mapping[str, Path | None], checksums: Checksums, written: list[Path]
) -> None:
    """Write the public page and the data sheet of what is in `out`, then the list of all that is public.

    Parameters
    ----------
    of : Release or PrivSyn
    out : Path
        It was written just now.
    outputs : mapping of an option to a Path
    checksums : Checksums
    written : list of Path
        Each file is appended as soon as it is there. A model that is kept only until all is written is in it,
        and not in `outputs`: it is not on the list.
    """
    import privsyn
    from privsyn.cli.common.console import waiting

    written.append(out)
    if (page := outputs["--public-report"]) is not None:
        with waiting("writing the public page"):
            privsyn.report(of, page)
        written.append(page)
    if (sheet := outputs["--sheet"]) is not None:
        with waiting("writing the data sheet"):
            privsyn.sheet(of, sheet, data=out)
        written.append(sheet)
    checksums.write([path for path in written if path in (out, *outputs.values())], written)


def _signature_of(path: Path) -> Path:
    return path.with_name(f"{path.name}.sig")


def _files_of(path: Path) -> list[Path]:
    """Return the file of a table, or all files in a folder of tables, in the order of their names."""
    file = file_of(path)
    return sorted(each for each in file.rglob("*") if each.is_file()) if file.is_dir() else [file]


def _line(file: Path, folder: Path) -> bytes:
    r"""Return the line of a file, whose name is relative to the folder of the list.

    As `sha512sum` does, a line begins with a backslash if characters of the name are escaped.
    """
    with file.open("rb") as opened:
        digest = hashlib.file_digest(opened, "sha512").hexdigest()
    name = Path(os.path.relpath(file.parent.resolve() / file.name, folder.resolve())).as_posix()
    escaped = name.replace("\\", "\\\\").replace("\n", "\\n").replace("\r", "\\r")
    return os.fsencode(f"{'' if escaped == name else chr(92)}{digest}  {escaped}\n")


def _write(path: Path, content: bytes) -> None:
    """Write a whole file or none."""
    with atomic_path(path) as part:
        part.write_bytes(content)
