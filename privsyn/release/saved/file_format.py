"""Save a release in one file, a zip of JSON and NumPy arrays. The same release gives the same bytes."""

from __future__ import annotations

import io
import json
import zipfile
from collections.abc import Callable, Mapping
from contextlib import suppress
from math import inf, isclose, isfinite
from os import PathLike
from pathlib import Path
from typing import IO, Any, NamedTuple, TypeVar, cast

from privsyn.arguments import check_path
from privsyn.errors import InputError, printable, replace_errors, safe_repr
from privsyn.files import atomic_path
from privsyn.inference.fitted import NO_COMMON, Certainty, Fitted
from privsyn.marginals.domain import Domain
from privsyn.marginals.marginal import Marginal
from privsyn.marginals.recoding import Merging
from privsyn.methods.methods import METHODS, Method
from privsyn.private.ledger import Ledger
from privsyn.release.losses import Loss
from privsyn.release.saved.arrays import (
    EachArray,
    JoinedArrays,
    is_by_columns,
    joined,
    measurement_of,
    most_memory,
    named_arrays,
    packed_arrays,
    read_arrays,
    unpacked_size,
)
from privsyn.table.codec.codec import Codec
from privsyn.table.encoding.dtypes import family, parse_dtype
from privsyn.table.io.output_type import OutputType
from privsyn.table.schema.columns import COLUMNS
from privsyn.table.schema.constraint import CONSTRAINTS
from privsyn.table.schema.yaml_file import from_plain

FORMAT = 9  # increased when an older reader would misread the file
READABLE = (2, 3, 4, 5, 6, 7, 8, FORMAT)
JOINED = 7  # since this format, all arrays of a kind are one: a wide table has 150,000 arrays
NEW_GAPS = 6  # since this format, gaps are encoded as they are now: older releases with gaps are refused
SAME_TOTAL = 1e-6  # largest relative difference between the totals of consistent tables

ZIP = b"PK"  # the first bytes of any zip file

A_CODE = 100  # bytes that a codec needs for each code of a number or a time
A_TABLE = 3000  # bytes that a table of several columns takes besides its counts

ALWAYS = {"format", "method", "total", "codec", "form", "merged", "marginals", "errors", "ledger"}
KEYS = ALWAYS | {"parameters", "total_variance", "common", "grouped", "by_columns", "noted"}
"""What `pack` writes besides arrays."""


class Parts(NamedTuple):
    """The fields of a release."""

    codec: Codec
    fitted: Fitted
    ledger: Ledger
    method: Method
    form: OutputType
    noted: tuple[Loss, ...] = ()


class TooLargeError(ValueError):
    """The file would take far more memory than a release of its size."""


class UnregisteredError(ValueError):
    """The release needs a method or kind from outside the package that is not registered."""


class OtherVersionError(ValueError):
    """Another version of the package wrote the file."""


OTHER_VERSION = "a release of another version of privsyn; sample it with that one"
R = TypeVar("R")


def pack(parts: Parts) -> bytes:
    """Return the bytes of the file."""
    codec, fitted, ledger, method, form, noted = parts
    _check_tables(fitted)
    arrays = named_arrays(fitted)
    by_columns = [name for name, array in arrays.items() if is_by_columns(array)]
    common = {j: of.common.shape[1] for j, of in enumerate(fitted.certainties) if of.common.size}
    grouped = [j for j, of in enumerate(fitted.certainties) if of.measured.grouping]
    text = {
        "format": FORMAT,
        "method": method.name,
        **({"parameters": dict(method.parameters)} if method.parameters else {}),
        "total": fitted.total,
        **({"total_variance": fitted.total_variance} if fitted.total_variance else {}),
        **({"common": common} if common else {}),
        "codec": codec.to_dict(),
        "form": form.to_plain(),
        "merged": {
            "sizes": fitted.merging.merged.sizes,
            "ordered": fitted.merging.merged.ordered,
        },
        "marginals": [table.attributes for table in fitted.marginals],
        **({"grouped": grouped} if grouped else {}),
        **({"by_columns": by_columns} if by_columns else {}),
        "errors": [certainty.error for certainty in fitted.certainties],
        "ledger": ledger.to_dict(),
        **({"noted": [loss.to_plain() for loss in noted]} if noted else {}),
    }
    packed = packed_arrays(joined(arrays), _memory_of(text))
    return zipped({"release.json": json.dumps(text, indent=1), "arrays.npz": packed})


def zipped(members: Mapping[str, str | bytes]) -> bytes:
    """Return the bytes of a zip file, which do not depend on the time."""
    whole = io.BytesIO()
    with zipfile.ZipFile(whole, "w") as file:
        for name, content in members.items():
            file.writestr(zipfile.ZipInfo(name), content)
    return whole.getvalue()


def read_parts(path: str | PathLike[str] | IO[bytes]) -> Parts:
    """Return the parts of a release from a file; raise an `InputError` if `pack` did not write all of it.

    The file may come from anywhere, so nothing is unpacked before its size is known.
    """
    return read_file(path, parts_of)


def read_file(path: str | PathLike[str] | IO[bytes], read: Callable[[zipfile.ZipFile], R]) -> R:
    """Return what `read` makes of the members of a file; raise an `InputError` if it is no whole model."""
    opened = _opened(path)
    problem = "is no model: give a file that `privsyn synth --model` or `save` wrote"
    try:
        with opened() as begun:
            if begun.read(2) == ZIP:
                problem = "is no whole model: it was cut short or changed; copy or save it again"
        with opened() as whole, zipfile.ZipFile(whole) as file:
            if min(member.header_offset for member in file.infolist()):
                raise ValueError("the models of several tables hold whole models: here one of them ends")
            return read(file)
    except FileNotFoundError:
        problem = "there is no such file"
    except (OtherVersionError, TooLargeError, UnregisteredError) as error:
        problem = str(error)
    except Exception:  # noqa: S110  # zipfile, json, NumPy and our constructors raise many kinds
        pass
    raise InputError(f"{path if isinstance(path, str | PathLike) else 'the open file'}: {problem}")


def _opened(path: str | PathLike[str] | IO[bytes]) -> Callable[[], IO[bytes]]:
    """Return a function that opens a file from its start, also one that the caller has opened."""
    if not callable(getattr(path, "read", None)):
        check_path(path)
        place = Path(cast(str, path))
        return lambda: place.open("rb")
    content: object = cast(IO[bytes], path).read()
    if not isinstance(content, bytes):
        raise InputError('the open file has text: open it with mode "rb"')
    return lambda: io.BytesIO(content)


def members_of(file: zipfile.ZipFile) -> dict[str, bytes]:
    """Return the members of a file; refuse compressed ones, which `pack` never writes."""
    if any(member.compress_type != zipfile.ZIP_STORED for member in file.infolist()):
        raise ValueError("its members are compressed, which `pack` never does")
    if sum(member.file_size for member in file.infolist()) > file.start_dir:
        raise ValueError("its members lie upon each other: they would take more memory than the file")
    members = {name: file.read(name) for name in file.namelist()}
    if len(members) < len(file.namelist()):
        raise ValueError("two members have one name: one of them would not be read")
    return members


def parts_of(file: zipfile.ZipFile) -> Parts:
    """Return the parts of a release from an open file; raise if `pack` did not write it."""
    members = members_of(file)
    text = parsed(members["release.json"])
    if text["format"] not in READABLE:
        raise OtherVersionError(OTHER_VERSION)
    if sorted(members) != ["arrays.npz", "release.json"]:
        raise ValueError(f"members {sorted(members)}")
    packed = members["arrays.npz"]
    with zipfile.ZipFile(io.BytesIO(packed)) as arrays:
        parts = _unpacked(text, arrays, most=most_memory(len(packed)))
    if parts.codec.gaps and text["format"] < NEW_GAPS:
        raise OtherVersionError(OTHER_VERSION)
    return parts


def parsed(text: bytes) -> Any:
    """Return plain data from JSON; raise at NaN, which no release has."""

    def constant(name: str) -> float:
        if name == "NaN":
            raise ValueError("NaN")
        return float(name)

    return json.loads(text, parse_constant=constant)


def parts_in(packed: bytes) -> Parts:
    """Return the parts of a release from the bytes of `pack`."""
    with zipfile.ZipFile(io.BytesIO(packed)) as file:
        return parts_of(file)


def _memory_of(text: Mapping[str, Any]) -> int:
    """Return about how many bytes of memory a release takes besides its arrays."""
    return A_CODE * _most_codes(text["codec"]) + A_TABLE * len(text["marginals"])


def _most_codes(codec: Mapping[str, Any]) -> int:
    """Return the largest number of codes of numbers and times, without making them.

    Bins of equal width are not counted: no list is made of them.
    """
    schema, codes = from_plain(codec["schema"]), 0
    for name, column in schema.coded.items():
        dtype = parse_dtype(codec["dtypes"][name])
        if codec["fine"] and name not in schema.computed and family(dtype) != "nothing":
            codes += column.most_codes(dtype)
    return codes


def _unpacked(text: dict[str, Any], file: zipfile.ZipFile, *, most: int) -> Parts:
    """Return the parts; raise if they are inconsistent, or take more than `most` bytes of memory."""
    _check_registered(text)
    _restore_key_types(text["codec"]["schema"])
    for constraint in text["codec"]["schema"].get("constraints", ()):
        if isinstance(constraint, Mapping) and "lookup" in (constraint.get("kind"), *constraint):
            raise ValueError("`pack` writes what a look-up means: a model names no other file to be read")
    memory = unpacked_size(file) + _memory_of(text)
    if memory > most:
        raise TooLargeError(f"needs {memory / 1e6:,.0f} MB of memory: not a release that privsyn saved")
    codec = Codec.from_dict(text["codec"])
    original = codec.domain
    merged = Domain(original.names, tuple(text["merged"]["sizes"]), tuple(text["merged"]["ordered"]))
    released = {f"one_way_{j}": merged.project((name,)) for j, name in enumerate(merged.names)}
    released |= {f"marginal_{j}": merged.project(tuple(names)) for j, names in enumerate(text["marginals"])}
    if not all(map(len, text["marginals"])):
        raise ValueError("a table of no column")
    common = {int(j): int(size) for j, size in text.get("common", {}).items()}
    reader = EachArray(file)
    if text["format"] >= JOINED:
        grouped = text.get("grouped", [])
        if not text.keys() <= KEYS or grouped != [j for j in range(len(released)) if j in set(grouped)]:
            raise ValueError("it says what `pack` never writes")
        reader = JoinedArrays(file, set(grouped), set(text.get("by_columns", ())))
    arrays = read_arrays(reader, original, released, common)
    tables = tuple(Marginal(domain, arrays[name]) for name, domain in released.items())
    certainties = tuple(
        Certainty(measurement_of(arrays, j, table.domain), float(error), arrays.get(f"common_{j}", NO_COMMON))
        for j, (table, error) in enumerate(zip(tables, text["errors"], strict=True))
    )
    groups, shares = (
        tuple(arrays[f"{name}_{j}"] for j in range(len(original))) for name in ("groups", "shares")
    )
    merging = Merging(original, merged, groups, shares)
    one_ways, marginals = tables[: len(original)], tables[len(original) :]
    total, variance = float(text["total"]), float(text.get("total_variance", 0.0))
    if not (isfinite(total) and 0 <= variance < inf):
        raise ValueError("a total that is no number of rows")
    fitted = Fitted(merging, one_ways, marginals, total, certainties, variance)
    _check_tables(fitted)
    ledger, form = Ledger.from_dict(text["ledger"]), OutputType.from_plain(text["form"])
    noted = tuple(map(Loss.from_plain, text.get("noted", ())))
    method = METHODS[text["method"]].with_parameters(text.get("parameters", {}))
    return Parts(codec, fitted, ledger, method, form, noted)


def write_model(
    packed: bytes, path: str | PathLike[str] | IO[bytes], read: Callable[[Any], object] | None = None
) -> None:
    """Write a model to a file, whole or not at all, if `read`, by default `read_parts`, reads it back.

    Parameters
    ----------
    packed : bytes
    path : path, or file that is open for writing bytes
    read : callable, optional

    Raises
    ------
    InputError
        If the file cannot be written or read back.
    """
    if callable(write := getattr(path, "write", None)):
        check_loads(io.BytesIO(packed), "the open file", read)
        with replace_errors('the open file has text: open it with mode "wb"', TypeError):
            write(packed)
        return
    check_path(path)
    place = cast(str, path)
    with atomic_path(place) as part:
        part.write_bytes(packed)
        check_loads(part, place, read)


def _check_registered(text: Mapping[str, Any]) -> None:
    """Raise an `UnregisteredError` that names what is missing, if the release was made with an extension."""
    schema = text["codec"]["schema"]
    needed: list[tuple[str, Any, Mapping[str, object]]] = [("method", text["method"], METHODS)]
    needed += [("column kind", column["kind"], COLUMNS) for column in schema.get("columns", {}).values()]
    needed += [
        ("constraint kind", each["kind"], CONSTRAINTS)
        for each in schema.get("constraints", ())
        if isinstance(each, Mapping) and "kind" in each
    ]
    for noun, name, registry in needed:
        if isinstance(name, str) and name not in registry:
            raise UnregisteredError(
                f"needs the {noun} {printable(safe_repr(name))}, which is not registered: import the module"
                " that registers it first (docs/extending.md), or install the version that saved it"
            )


def check_loads(
    part: str | PathLike[str] | IO[bytes],
    path: str | PathLike[str],
    read: Callable[[Any], object] | None = None,
) -> None:
    """Refuse to keep a file `part`, meant for `path`, that `read`, by default `read_parts`, would refuse."""
    with suppress(InputError):
        (read or read_parts)(part)
        return
    raise InputError(
        f"{path}: the model was not saved, because it could not be read back: please report this"
    )


def _check_tables(fitted: Fitted) -> None:
    """Raise if tables have negative counts or different totals: no records can be made from them."""
    for table in (*fitted.one_ways, *fitted.marginals):
        if not ((table.counts >= 0).all() and isclose(table.total, fitted.total, rel_tol=SAME_TOTAL)):
            raise ValueError(f"table {', '.join(table.attributes)} holds negative counts or another total")


def _restore_key_types(schema: dict[str, Any]) -> None:
    """Restore the types of mapping keys that are numbers or booleans.

    Version 0.1.0 wrote them as JSON keys, which are text.
    """
    for constraint in schema.get("constraints", ()):
        if isinstance(mapping := constraint.get("mapping"), dict):
            values = schema["columns"][constraint["by"]].get("values", ())
            typed = {json.dumps(value): value for value in values if type(value) in (bool, int, float)}
            constraint["mapping"] = [[typed.get(key, key), value] for key, value in mapping.items()]
