"""A release as one file: a zip of JSON and NumPy arrays. The same release gives the same bytes."""

from __future__ import annotations

import io
import json
import zipfile
from collections.abc import Mapping
from math import isclose, prod
from os import PathLike
from typing import Any, get_args

import numpy as np

from privsyn.errors import InputError
from privsyn.inference.error_bars import Certainty
from privsyn.inference.fitted import Fitted, Method
from privsyn.marginals.coarse import joined_domain
from privsyn.marginals.domain import Domain
from privsyn.marginals.marginal import Marginal, Measurement
from privsyn.marginals.recoding import Merging
from privsyn.marginals.types import Array
from privsyn.private.ledger import Ledger
from privsyn.table.encoding.codec import Codec
from privsyn.table.io.frame_type import FrameType

FORMAT = 3  # raised when an older reader would misread it
READABLE = (2, FORMAT)
SAME_TOTAL = 1e-6  # relative difference between the sums of two tables that agree

LEAST_MEMORY = 2**26  # bytes that any release may take, however small its file is
MOST_RATIO = 100  # of memory to packed arrays; releases of real tables take 1 to 5 times as much
A_CODE = 100  # bytes that a codec takes for a code of a number or a time

Parts = tuple[Codec, Fitted, Ledger, Method, FrameType]
"""What a release is made of."""


class TooLargeError(ValueError):
    """A file would take far more memory than a release of its size does."""


def pack(parts: Parts) -> bytes:
    """The file's bytes."""
    codec, learnt, ledger, method, form = parts
    _check_tables(learnt)
    arrays: dict[str, Array] = {f"groups_{j}": group for j, group in enumerate(learnt.merging.groups)}
    arrays |= {f"shares_{j}": share for j, share in enumerate(learnt.merging.shares)}
    arrays |= {f"one_way_{j}": table.counts for j, table in enumerate(learnt.one_ways)}
    arrays |= {f"marginal_{j}": table.counts for j, table in enumerate(learnt.marginals)}
    heard = [certainty.heard for certainty in learnt.certainties]
    arrays |= {f"heard_{j}": table.marginal.counts for j, table in enumerate(heard)}
    arrays |= {f"noise_{j}": table.variance for j, table in enumerate(heard)}
    for j, table in enumerate(heard):
        arrays |= {f"heard_groups_{j}_{axis}": group for axis, group in enumerate(table.groups or ())}
    text = {
        "format": FORMAT,
        "method": method,
        "total": learnt.total,
        "codec": codec.to_dict(),
        "form": form.to_plain(),
        "merged": {
            "sizes": learnt.merging.merged.sizes,
            "ordered": learnt.merging.merged.ordered,
        },
        "marginals": [table.attributes for table in learnt.marginals],
        "errors": [certainty.error for certainty in learnt.certainties],
        "ledger": ledger.to_dict(),
    }
    whole = io.BytesIO()
    with zipfile.ZipFile(whole, "w") as file:
        # Under a fixed date, which is part of the bytes.
        file.writestr(zipfile.ZipInfo("release.json"), json.dumps(text, indent=1))
        file.writestr(zipfile.ZipInfo("arrays.npz"), _packed(arrays, codec))
    return whole.getvalue()


def _packed(arrays: Mapping[str, Array], codec: Codec) -> bytes:
    """The arrays, compressed unless that makes them so small that a reader would suspect them."""
    packed = io.BytesIO()
    np.savez_compressed(packed, **arrays)  # type: ignore[arg-type]  # its stub takes them for options
    if _memory(sum(array.nbytes for array in arrays.values()), codec.to_dict()) > _most(packed.tell()):
        packed = io.BytesIO()
        np.savez(packed, **arrays)  # type: ignore[arg-type]
    return packed.getvalue()


def read_parts(path: str | PathLike[str]) -> Parts:
    """What a file holds that `pack` made; an `InputError` if it is no such file, or not all of it.

    A file may come from anywhere, so nothing is unpacked before its size is known.
    """
    complaint = "not a saved release, or cut short; save it again"
    try:
        with zipfile.ZipFile(path) as file:
            if any(member.compress_type != zipfile.ZIP_STORED for member in file.infolist()):
                raise ValueError("its members are compressed, each many times over perhaps")
            text = json.loads(file.read("release.json"))
            if text["format"] in READABLE:
                if sorted(file.namelist()) != ["arrays.npz", "release.json"]:
                    raise ValueError(f"members {file.namelist()}")
                packed = file.read("arrays.npz")
                with zipfile.ZipFile(io.BytesIO(packed)) as arrays:
                    return _unpacked(text, arrays, most=_most(len(packed)))
            complaint = "a release of another version of privsyn; sample it with that one"
    except FileNotFoundError:
        complaint = "there is no such file"
    except TooLargeError as error:
        complaint = str(error)
    except Exception:  # noqa: S110  # zipfile, json, NumPy and our constructors: each raises its own errors
        pass
    raise InputError(f"{path}: {complaint}")


def _most(packed: int) -> int:
    """The most memory, in bytes, that a release whose arrays are packed in so many bytes may take."""
    return LEAST_MEMORY + MOST_RATIO * packed


def _memory(arrays: int, codec: Mapping[str, Any]) -> int:
    """About how much memory a release takes, in bytes: its arrays, and the codes of its columns."""
    return arrays + A_CODE * Codec.most_codes(codec)


def _unpacked(text: dict[str, Any], file: zipfile.ZipFile, *, most: int) -> Parts:
    """The parts; any exception if they do not fit together, or take more than `most` bytes of memory."""
    _mend_keys(text["codec"]["schema"])
    memory = _memory(sum(member.file_size for member in file.infolist()), text["codec"])
    if memory > most:
        raise TooLargeError(f"would take {memory / 1e6:,.0f} MB of memory: not a release that privsyn saved")
    codec = Codec.from_dict(text["codec"])
    original = codec.domain
    merged = Domain(original.names, tuple(text["merged"]["sizes"]), tuple(text["merged"]["ordered"]))
    released = {f"one_way_{j}": merged.project((name,)) for j, name in enumerate(merged.names)}
    released |= {f"marginal_{j}": merged.project(tuple(names)) for j, names in enumerate(text["marginals"])}
    arrays = _arrays(file, original, released)
    tables = tuple(Marginal(domain, arrays[name]) for name, domain in released.items())
    certainties = tuple(
        Certainty(_measured(arrays, j, table.domain), float(error))
        for j, (table, error) in enumerate(zip(tables, text["errors"], strict=True))
    )
    groups, shares = (
        tuple(arrays[f"{name}_{j}"] for j in range(len(original))) for name in ("groups", "shares")
    )
    merging = Merging(original, merged, groups, shares)
    one_ways, marginals = tables[: len(original)], tables[len(original) :]
    learnt = Fitted(merging, one_ways, marginals, float(text["total"]), certainties)
    _check_tables(learnt)
    if text["method"] not in get_args(Method):
        raise ValueError(f"method {text['method']}")
    return codec, learnt, Ledger.from_dict(text["ledger"]), text["method"], FrameType.from_plain(text["form"])


def _arrays(file: zipfile.ZipFile, original: Domain, released: Mapping[str, Domain]) -> dict[str, Array]:
    """The arrays of these tables and of the merging, and no others."""
    shapes = {name: domain.shape for name, domain in released.items()}
    coarse: dict[str, Array] = {}
    for j, domain in enumerate(released.values()):
        names = [f"heard_groups_{j}_{axis}" for axis in range(len(domain))]
        measured = domain
        if f"{names[0]}.npy" in file.namelist():  # measured at a coarser resolution than released
            groups = [_array(file, f"{n}.npy", (s,)) for n, s in zip(names, domain.shape, strict=True)]
            coarse |= zip(names, groups, strict=True)
            measured = joined_domain(domain, groups)
        shapes |= {f"heard_{j}": measured.shape, f"noise_{j}": measured.shape}
    for j, size in enumerate(original.sizes):
        shapes |= {f"groups_{j}": (size,), f"shares_{j}": (size,)}
    if sorted(file.namelist()) != sorted(f"{name}.npy" for name in (*shapes, *coarse)):
        raise ValueError("arrays are missing, or there are others")
    return coarse | {name: _array(file, f"{name}.npy", shape) for name, shape in shapes.items()}


def _measured(arrays: Mapping[str, Array], j: int, domain: Domain) -> Measurement:
    """Return the j-th measurement; `domain` is that of the released table, which may be finer."""
    groups = None
    if f"heard_groups_{j}_0" in arrays:
        groups = tuple(arrays[f"heard_groups_{j}_{axis}"] for axis in range(len(domain)))
        domain = joined_domain(domain, groups)
    return Measurement(Marginal(domain, arrays[f"heard_{j}"]), arrays[f"noise_{j}"], groups)


def _array(file: zipfile.ZipFile, name: str, shape: tuple[int, ...]) -> Array:
    """An array of this shape; an exception, before its numbers are read, if it is another."""
    with file.open(name) as member:
        if np.lib.format.read_magic(member) != (1, 0):
            raise ValueError(f"{name}: a format that `pack` does not write")
        found, by_columns, dtype = np.lib.format.read_array_header_1_0(member)
        size = member.tell() + prod(shape) * dtype.itemsize
        if found != shape or dtype.kind not in "iuf" or size != file.getinfo(name).file_size:
            raise ValueError(f"{name}: {dtype} of shape {found}, where {shape} is expected")
        return np.frombuffer(member.read(), dtype).reshape(shape, order="F" if by_columns else "C")


def _check_tables(learnt: Fitted) -> None:
    """Refuse to write, and to read, tables from which no records can be made."""
    for table in (*learnt.one_ways, *learnt.marginals):
        if not ((table.counts >= 0).all() and isclose(table.total, learnt.total, rel_tol=SAME_TOTAL)):
            raise ValueError(f"table {', '.join(table.attributes)} holds negative counts or another total")


def _mend_keys(schema: dict[str, Any]) -> None:
    """Give the keys of a mapping from numbers or booleans their type back.

    Version 0.1.0 wrote them as keys of JSON, which are text.
    """
    for constraint in schema.get("constraints", ()):
        if isinstance(mapping := constraint.get("mapping"), dict):
            values = schema["columns"][constraint["by"]].get("values", ())
            typed = {json.dumps(value): value for value in values if type(value) in (bool, int, float)}
            constraint["mapping"] = [[typed.get(key, key), value] for key, value in mapping.items()]
