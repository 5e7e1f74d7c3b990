"""The arrays of a saved release: their names, how they are packed, and how they are read without trust."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Mapping
from copy import copy
from dataclasses import dataclass
from functools import lru_cache
from math import prod
from typing import Any

import numpy as np

from privsyn.inference.fitted import Fitted
from privsyn.marginals.domain import Array, Codes, Domain
from privsyn.marginals.marginal import Grouping, Marginal, Measurement

LEAST_MEMORY = 2**26  # bytes that any release may take, even from a small file
LARGEST = 8  # bytes of a number
MOST_RATIO = 100  # most memory for each byte of packed arrays; releases of real tables take 1 to 5


def named_arrays(fitted: Fitted) -> dict[str, Array]:
    """Return the arrays of a model by name: a kind, and the place of the table."""
    arrays: dict[str, Array] = {f"groups_{j}": group for j, group in enumerate(fitted.merging.groups)}
    arrays |= {f"shares_{j}": share for j, share in enumerate(fitted.merging.shares)}
    arrays |= {f"one_way_{j}": table.counts for j, table in enumerate(fitted.one_ways)}
    arrays |= {f"marginal_{j}": table.counts for j, table in enumerate(fitted.marginals)}
    measured = [certainty.measured for certainty in fitted.certainties]
    arrays |= {f"heard_{j}": table.marginal.counts for j, table in enumerate(measured)}
    arrays |= {f"noise_{j}": table.variance for j, table in enumerate(measured)}
    arrays |= {
        f"common_{j}": certainty.common
        for j, certainty in enumerate(fitted.certainties)
        if certainty.common.size
    }
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
    """Return whether the first axis is contiguous and the last is not.

    A loaded array has the same order in memory, because the rounding of sums depends on it.
    """
    return array.flags.f_contiguous and not array.flags.c_contiguous


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


def most_memory(packed: int) -> int:
    """Return the most memory, in bytes, for a release whose arrays take `packed` bytes in the file."""
    return LEAST_MEMORY + MOST_RATIO * packed


def unpacked_size(file: zipfile.ZipFile) -> int:
    """Return the bytes of all members once they are unpacked, headers of arrays included."""
    return sum(member.file_size for member in file.infolist())


class Arrays:
    """The arrays of a file, each of which must be read.

    Parameters
    ----------
    file : ZipFile
    prefix : str
        What the names of these arrays begin with in the file.
    """

    def __init__(self, file: zipfile.ZipFile, prefix: str = "") -> None:
        self._file, self._prefix, self._unread = file, prefix, set(file.namelist())
        if len(self._unread) < len(file.namelist()):
            raise ValueError("two arrays have one name: one of them would not be read")

    def within(self, prefix: str) -> Arrays:
        """Return the arrays whose names begin with a further prefix."""
        arrays = copy(self)
        arrays._prefix += prefix
        return arrays

    def has(self, name: str) -> bool:
        """Return whether there is an array of this name that was not read."""
        return f"{self._prefix}{name}.npy" in self._unread

    def read(self, name: str, shape: tuple[int, ...] | None = None) -> Array:
        """Return an array; raise if it is missing or has another shape (default: any)."""
        member = f"{self._prefix}{name}.npy"
        self._unread.remove(member)
        return array_in(self._file, member, shape)

    def end(self) -> None:
        """Raise a `ValueError` if an array was not read."""
        if self._unread:
            raise ValueError("there are other arrays")


@dataclass(frozen=True)
class JoinedArrays:
    """The arrays of the counts of one table: the cells of all arrays of a kind are one member; see `joined`.

    Parameters
    ----------
    arrays : Arrays
    grouped : set of int
        The places of the marginals that were measured in groups of codes.
    by_columns : set of str
        The arrays whose first axis is contiguous in memory.
    """

    arrays: Arrays
    grouped: frozenset[int]
    by_columns: frozenset[str]

    def read(self, shapes: Mapping[str, tuple[int, ...]]) -> dict[str, Array]:
        """Return the arrays of these shapes, which must be all arrays of their kinds.

        Raises
        ------
        ValueError
            If a kind holds more or fewer cells.
        """
        sizes: dict[str, int] = {}
        for name, shape in shapes.items():
            sizes[kind_of(name)] = sizes.get(kind_of(name), 0) + prod(shape)
        kinds = {kind: self.arrays.read(kind, (size,)) for kind, size in sizes.items()}
        arrays, starts = {}, dict.fromkeys(sizes, 0)
        for name, shape in shapes.items():
            kind = kind_of(name)
            end = starts[kind] + prod(shape)
            cells = kinds[kind][starts[kind] : end]
            arrays[name] = cells.reshape(shape, order="F" if name in self.by_columns else "C")
            starts[kind] = end
        return arrays


def read_arrays(
    reader: JoinedArrays, original: Domain, released: Mapping[str, Domain], common: Mapping[int, int]
) -> dict[str, Array]:
    """Return the arrays of these tables and of the merging; raise if any is missing.

    Parameters
    ----------
    reader : JoinedArrays
    original : Domain
    released : mapping of a name to the domain of a table
    common : mapping of the place of a one-way table to the number of its errors in common
    """
    domains = list(released.values())
    grouped = [j for j in range(len(domains)) if j in reader.grouped]  # coarser than released
    coarse = reader.read(
        {f"heard_groups_{j}_{axis}": (s,) for j in grouped for axis, s in enumerate(domains[j].shape)}
    )
    shapes: dict[str, tuple[int, ...]] = {}
    for j, size in enumerate(original.sizes):
        shapes |= {f"groups_{j}": (size,), f"shares_{j}": (size,)}
    shapes |= {name: domain.shape for name, domain in released.items()}
    for j in grouped:
        sizes = enumerate(domains[j].shape)
        groups = tuple(check_groups(coarse[f"heard_groups_{j}_{axis}"], size) for axis, size in sizes)
        domains[j] = Grouping(groups).domain(domains[j])
    for j, domain in enumerate(domains):
        shapes |= {f"heard_{j}": domain.shape, f"noise_{j}": domain.shape}
    shapes |= {f"common_{j}": (*shapes[f"one_way_{j}"], size) for j, size in common.items()}
    arrays = coarse | reader.read(shapes)
    if not reader.by_columns <= arrays.keys():
        raise ValueError("other arrays are said to be by columns")
    for j, size in enumerate(original.sizes):
        arrays[f"groups_{j}"] = check_groups(arrays[f"groups_{j}"], size)
    return arrays


def measurement_of(arrays: Mapping[str, Array], j: int, domain: Domain) -> Measurement:
    """Return the j-th measurement; `domain` is that of the released table, which may be finer."""
    names = [f"heard_groups_{j}_{axis}" for axis in range(len(domain))]
    grouping = Grouping(tuple(arrays[name] for name in names if name in arrays))
    measured = Marginal(grouping.domain(domain), arrays[f"heard_{j}"])
    return Measurement(measured, arrays[f"noise_{j}"], grouping)


def array_in(file: zipfile.ZipFile, name: str, shape: tuple[int, ...] | None = None) -> Array:
    """Return an array of finite numbers; raise if it is another one.

    Its numbers are not read if it has another shape than `shape` (default: any), or than its size says.
    """
    with file.open(name) as member:
        if np.lib.format.read_magic(member) != (1, 0):
            raise ValueError(f"{name}: not a format that `pack` writes")
        length = member.read(2)
        its_shape, by_columns, dtype = _header(length + member.read(int.from_bytes(length, "little")))
        size = member.tell() + prod(its_shape) * dtype.itemsize
        if shape not in (None, its_shape) or dtype.kind not in "iuf" or dtype.itemsize > LARGEST:
            raise ValueError(f"{name}: {dtype} of shape {its_shape}, where {shape} is expected")
        if size != file.getinfo(name).file_size:
            raise ValueError(f"{name}: of another size than its shape says")
        array = np.frombuffer(member.read(), dtype).reshape(its_shape, order="F" if by_columns else "C")
    if not np.isfinite(array).all():
        raise ValueError(f"{name}: holds what is no finite number")
    return array


def check_groups(groups: Array, size: int) -> Codes:
    """Return the groups of `size` codes; raise if they are not numbered from 0 on, each of some code."""
    if (
        groups.shape != (size,)
        or groups.dtype.kind not in "iu"
        or not (0 <= int(groups.min()) <= int(groups.max()) < size)
    ):
        raise ValueError("groups of other codes")
    if len(np.unique(groups)) <= groups.max():
        raise ValueError("a group of no code")
    return groups.astype(np.int32)


@lru_cache(1024)
def _header(text: bytes) -> tuple[tuple[int, ...], bool, np.dtype[Any]]:
    """Return shape, order and type of an array. Many tables have the same, and parsing takes 0.1 ms."""
    return np.lib.format.read_array_header_1_0(io.BytesIO(text))
