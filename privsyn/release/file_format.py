"""Save a release in one file, a zip of JSON and NumPy arrays. The same release gives the same bytes."""

from __future__ import annotations

import io
import json
import zipfile
from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import lru_cache
from math import isclose, prod
from os import PathLike
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import numpy as np

from privsyn.arguments import check_path
from privsyn.errors import InputError
from privsyn.inference.fitted import NO_COMMON, Certainty, Fitted
from privsyn.marginals.domain import Array, Domain
from privsyn.marginals.marginal import Grouping, Marginal, Measurement
from privsyn.marginals.recoding import Merging
from privsyn.methods.methods import METHODS, Method
from privsyn.private.ledger import Ledger
from privsyn.table.codec.codec import Codec
from privsyn.table.encoding.dtypes import family, parse_dtype
from privsyn.table.io.output_type import OutputType
from privsyn.table.schema.yaml_file import from_plain

FORMAT = 7  # increased when an older reader would misread the file
READABLE = (2, 3, 4, 5, 6, FORMAT)
JOINED = 7  # since this format, all arrays of a kind are one: a wide table has 150,000 arrays
NEW_GAPS = 6  # since this format, gaps are encoded as they are now: older releases with gaps are refused
SAME_TOTAL = 1e-6  # largest relative difference between the totals of consistent tables

ZIP = b"PK"  # the first bytes of any zip file

LEAST_MEMORY = 2**26  # bytes that any release may take, even from a small file
MOST_RATIO = 100  # most memory for each byte of packed arrays; releases of real tables take 1 to 5
A_CODE = 100  # bytes that a codec needs for each code of a number or a time
A_TABLE = 3000  # bytes that a table of several columns takes besides its counts

ALWAYS = {"format", "method", "total", "codec", "form", "merged", "marginals", "errors", "ledger"}
KEYS = ALWAYS | {"total_variance", "common", "grouped", "by_columns"}
"""What `pack` writes besides arrays."""


class Parts(NamedTuple):
    """The fields of a release."""

    codec: Codec
    fitted: Fitted
    ledger: Ledger
    method: Method
    form: OutputType


class TooLargeError(ValueError):
    """The file would take far more memory than a release of its size."""


class OtherVersionError(ValueError):
    """Another version of the package wrote the file."""


OTHER_VERSION = "a release of another version of privsyn; sample it with that one"
R = TypeVar("R")


def pack(parts: Parts) -> bytes:
    """Return the bytes of the file."""
    codec, fitted, ledger, method, form = parts
    _check_tables(fitted)
    arrays = named_arrays(fitted)
    by_columns = [name for name, array in arrays.items() if is_by_columns(array)]
    common = {j: of.common for j, of in enumerate(fitted.certainties) if of.common.size}
    grouped = [j for j, of in enumerate(fitted.certainties) if of.measured.grouping]
    text = {
        "format": FORMAT,
        "method": method.name,
        "total": fitted.total,
        **({"total_variance": fitted.total_variance} if fitted.total_variance else {}),
        **({"common": {j: errors.shape[1] for j, errors in common.items()}} if common else {}),
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
    }
    packed = packed_arrays(joined(arrays), _memory_of(text))
    return zipped({"release.json": json.dumps(text, indent=1), "arrays.npz": packed})


def named_arrays(fitted: Fitted) -> dict[str, Array]:
    """Return the arrays of a model by name: a kind, and the place of the table."""
    arrays: dict[str, Array] = {f"groups_{j}": group for j, group in enumerate(fitted.merging.groups)}
    arrays |= {f"shares_{j}": share for j, share in enumerate(fitted.merging.shares)}
    arrays |= {f"one_way_{j}": table.counts for j, table in enumerate(fitted.one_ways)}
    arrays |= {f"marginal_{j}": table.counts for j, table in enumerate(fitted.marginals)}
    measured = [certainty.measured for certainty in fitted.certainties]
    arrays |= {f"heard_{j}": table.marginal.counts for j, table in enumerate(measured)}
    arrays |= {f"noise_{j}": table.variance for j, table in enumerate(measured)}
    arrays |= {f"common_{j}": of.common for j, of in enumerate(fitted.certainties) if of.common.size}
    for j, table in enumerate(measured):
        arrays |= {f"heard_groups_{j}_{axis}": group for axis, group in enumerate(table.grouping.groups)}
    return arrays


def joined(arrays: Mapping[str, Array]) -> dict[str, Array]:
    """Return the cells of all arrays of a kind, one array after another.

    >>> arrays = {"groups_0": np.array([0, 1]), "groups_1": np.array([0]), "one_way_0": np.array([2.5])}
    >>> {kind: cells.tolist() for kind, cells in joined(arrays).items()}
    {'groups': [0, 1, 0], 'one_way': [2.5]}
    """
    kinds: dict[str, list[Array]] = {}
    for name, array in arrays.items():
        kinds.setdefault(kind_of(name), []).append(array.ravel("F" if is_by_columns(array) else "C"))
    return {kind: np.concatenate(parts) for kind, parts in kinds.items()}


def kind_of(name: str) -> str:
    """Return the kind of an array: its name without numbers.

    >>> kind_of("heard_groups_12_0"), kind_of("one_way_3")
    ('heard_groups', 'one_way')
    """
    return name.rstrip("_0123456789")


def is_by_columns(array: Array) -> bool:
    """Return whether the first axis is contiguous and the last is not: sums round by the order of cells."""
    return array.flags.f_contiguous and not array.flags.c_contiguous


def zipped(members: Mapping[str, str | bytes]) -> bytes:
    """Return the bytes of a zip file, which do not depend on the time."""
    whole = io.BytesIO()
    with zipfile.ZipFile(whole, "w") as file:
        for name, content in members.items():
            file.writestr(zipfile.ZipInfo(name), content)
    return whole.getvalue()


def packed_arrays(arrays: Mapping[str, Array], more: int = 0) -> bytes:
    """Return the arrays, compressed unless the result is so small that it would be refused when read.

    Parameters
    ----------
    arrays : mapping of a name to an array
    more : int
        Bytes of memory that the reader needs besides the arrays.
    """
    packed = io.BytesIO()
    np.savez_compressed(packed, **arrays)  # type: ignore[arg-type]  # its stub takes them for options
    with zipfile.ZipFile(packed) as file:
        memory = unpacked_size(file) + more
    if memory > most_memory(len(packed.getvalue())):
        packed = io.BytesIO()
        np.savez(packed, **arrays)  # type: ignore[arg-type]
    return packed.getvalue()


def read_parts(path: str | PathLike[str]) -> Parts:
    """Return the parts of a release from a file; raise an `InputError` if `pack` did not write all of it.

    The file may come from anywhere, so nothing is unpacked before its size is known.
    """
    return read_file(path, parts_of)


def read_file(path: str | PathLike[str], read: Callable[[zipfile.ZipFile], R]) -> R:
    """Return what `read` makes of the members of a file; raise an `InputError` if it is no whole model."""
    check_path(path)
    problem = "is no model: give a file that `privsyn synth --model` or `save` wrote"
    try:
        with Path(path).open("rb") as begun:
            if begun.read(2) == ZIP:
                problem = "is no whole model: it was cut short or changed; copy or save it again"
        with zipfile.ZipFile(path) as file:
            if min(member.header_offset for member in file.infolist()):
                raise ValueError("the models of several tables hold whole models: here one of them ends")
            return read(file)
    except FileNotFoundError:
        problem = "there is no such file"
    except (OtherVersionError, TooLargeError) as error:
        problem = str(error)
    except Exception:  # noqa: S110  # zipfile, json, NumPy and our constructors raise many kinds
        pass
    raise InputError(f"{path}: {problem}")


def members_of(file: zipfile.ZipFile) -> dict[str, bytes]:
    """Return the members of a file; refuse compressed ones, which `pack` never writes."""
    if any(member.compress_type != zipfile.ZIP_STORED for member in file.infolist()):
        raise ValueError("its members are compressed, which `pack` never does")
    members = {name: file.read(name) for name in file.namelist()}
    if len(members) < len(file.namelist()):
        raise ValueError("two members have one name: one of them would not be read")
    return members


def parts_of(file: zipfile.ZipFile) -> Parts:
    """Return the parts of a release from an open file; raise if `pack` did not write it."""
    members = members_of(file)
    text = json.loads(members["release.json"])
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


def parts_in(packed: bytes) -> Parts:
    """Return the parts of a release from the bytes of `pack`."""
    with zipfile.ZipFile(io.BytesIO(packed)) as file:
        return parts_of(file)


def most_memory(packed: int) -> int:
    """Return the most memory, in bytes, for a release whose arrays take `packed` bytes in the file."""
    return LEAST_MEMORY + MOST_RATIO * packed


def unpacked_size(file: zipfile.ZipFile) -> int:
    """Return the bytes of all members once they are unpacked, headers of arrays included."""
    return sum(member.file_size for member in file.infolist())


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
    reader = _EachArray(file)
    if text["format"] >= JOINED:
        grouped = text.get("grouped", [])
        if not text.keys() <= KEYS or grouped != [j for j in range(len(released)) if j in set(grouped)]:
            raise ValueError("it says what `pack` never writes")
        reader = _JoinedArrays(file, set(grouped), set(text.get("by_columns", ())))
    arrays = _arrays(reader, original, released, common)
    tables = tuple(Marginal(domain, arrays[name]) for name, domain in released.items())
    certainties = tuple(
        Certainty(_measured(arrays, j, table.domain), float(error), arrays.get(f"common_{j}", NO_COMMON))
        for j, (table, error) in enumerate(zip(tables, text["errors"], strict=True))
    )
    groups, shares = (
        tuple(arrays[f"{name}_{j}"] for j in range(len(original))) for name in ("groups", "shares")
    )
    merging = Merging(original, merged, groups, shares)
    one_ways, marginals = tables[: len(original)], tables[len(original) :]
    total, variance = float(text["total"]), float(text.get("total_variance", 0.0))
    fitted = Fitted(merging, one_ways, marginals, total, certainties, variance)
    _check_tables(fitted)
    ledger, form = Ledger.from_dict(text["ledger"]), OutputType.from_plain(text["form"])
    return Parts(codec, fitted, ledger, METHODS[text["method"]], form)


class _EachArray:
    """The arrays of a file of an older format: each is a member."""

    def __init__(self, file: zipfile.ZipFile) -> None:
        self._file, self._there = file, set(file.namelist())
        if len(self._there) < len(file.namelist()):
            raise ValueError("two arrays have one name: one of them would not be read")

    def is_grouped(self, j: int) -> bool:
        """Return whether the j-th table was measured in groups of codes."""
        return f"heard_groups_{j}_0.npy" in self._there

    def read(self, shapes: Mapping[str, tuple[int, ...]]) -> dict[str, Array]:
        """Return the arrays of these shapes; raise if one is missing or has another shape."""
        self._there.difference_update(f"{name}.npy" for name in shapes)
        return {name: _array(self._file, f"{name}.npy", shape) for name, shape in shapes.items()}

    def end(self) -> None:
        """Raise if an array was not read."""
        if self._there:
            raise ValueError("there are other arrays")


class _JoinedArrays(_EachArray):
    """The arrays of a file: the cells of all arrays of a kind are a member."""

    def __init__(self, file: zipfile.ZipFile, grouped: set[int], by_columns: set[str]) -> None:
        super().__init__(file)
        self._grouped, self._by_columns, self._unread = grouped, by_columns, set(by_columns)

    def is_grouped(self, j: int) -> bool:
        """Return whether the j-th table was measured in groups of codes."""
        return j in self._grouped

    def read(self, shapes: Mapping[str, tuple[int, ...]]) -> dict[str, Array]:
        """Return the arrays of these shapes, which are all of their kinds; raise if there are others."""
        sizes: dict[str, int] = {}
        for name, shape in shapes.items():
            sizes[kind_of(name)] = sizes.get(kind_of(name), 0) + prod(shape)
        kinds = super().read({kind: (size,) for kind, size in sizes.items()})
        found, starts = {}, dict.fromkeys(sizes, 0)
        for name, shape in shapes.items():
            kind = kind_of(name)
            end = starts[kind] + prod(shape)
            cells = kinds[kind][starts[kind] : end]
            found[name] = cells.reshape(shape, order="F" if name in self._by_columns else "C")
            starts[kind] = end
        self._unread.difference_update(found)
        return found

    def end(self) -> None:
        """Raise if an array was not read, or if there is none that is said to be by columns."""
        super().end()
        if self._unread:
            raise ValueError("other arrays are said to be by columns")


def _arrays(
    file: _EachArray, original: Domain, released: Mapping[str, Domain], common: Mapping[int, int]
) -> dict[str, Array]:
    """Return the arrays of these tables and of the merging; raise if any is missing or there are others.

    Parameters
    ----------
    file : _EachArray
    original : Domain
    released : mapping of a name to the domain of a table
    common : mapping of the place of a one-way table to the number of its errors in common
    """
    domains = list(released.values())
    grouped = [j for j in range(len(domains)) if file.is_grouped(j)]  # coarser than released
    coarse = file.read(
        {f"heard_groups_{j}_{axis}": (s,) for j in grouped for axis, s in enumerate(domains[j].shape)}
    )
    shapes: dict[str, tuple[int, ...]] = {}
    for j, size in enumerate(original.sizes):
        shapes |= {f"groups_{j}": (size,), f"shares_{j}": (size,)}
    shapes |= {name: domain.shape for name, domain in released.items()}
    for j in grouped:
        groups = tuple(coarse[f"heard_groups_{j}_{axis}"] for axis in range(len(domains[j])))
        domains[j] = Grouping(groups).domain(domains[j])
    for j, domain in enumerate(domains):
        shapes |= {f"heard_{j}": domain.shape, f"noise_{j}": domain.shape}
    shapes |= {f"common_{j}": (*shapes[f"one_way_{j}"], size) for j, size in common.items()}
    arrays = coarse | file.read(shapes)
    file.end()
    return arrays


def _measured(arrays: Mapping[str, Array], j: int, domain: Domain) -> Measurement:
    """Return the j-th measurement; `domain` is that of the released table, which may be finer."""
    names = [f"heard_groups_{j}_{axis}" for axis in range(len(domain))]
    grouping = Grouping(tuple(arrays[name] for name in names if name in arrays))
    measured = Marginal(grouping.domain(domain), arrays[f"heard_{j}"])
    return Measurement(measured, arrays[f"noise_{j}"], grouping)


def _array(file: zipfile.ZipFile, name: str, shape: tuple[int, ...]) -> Array:
    """Return an array of this shape; raise before its numbers are read if it has another shape."""
    with file.open(name) as member:
        if np.lib.format.read_magic(member) != (1, 0):
            raise ValueError(f"{name}: not a format that `pack` writes")
        length = member.read(2)
        found, by_columns, dtype = _header(length + member.read(int.from_bytes(length, "little")))
        size = member.tell() + prod(shape) * dtype.itemsize
        if found != shape or dtype.kind not in "iuf" or size != file.getinfo(name).file_size:
            raise ValueError(f"{name}: {dtype} of shape {found}, where {shape} is expected")
        return np.frombuffer(member.read(), dtype).reshape(shape, order="F" if by_columns else "C")


@lru_cache(1024)
def _header(text: bytes) -> tuple[tuple[int, ...], bool, np.dtype[Any]]:
    """Return shape, order and type of an array. Many tables have the same, and parsing takes 0.1 ms."""
    return np.lib.format.read_array_header_1_0(io.BytesIO(text))


def check_loads(
    part: str | PathLike[str], path: str | PathLike[str], read: Callable[[Any], object] | None = None
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
