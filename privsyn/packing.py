"""A release as one file: a zip of JSON and NumPy arrays. The same release gives the same bytes."""

from __future__ import annotations

import io
import json
import zipfile
from math import isclose
from os import PathLike
from typing import Any, get_args

import numpy as np

from privsyn.answers.arrays import Array
from privsyn.answers.certainty import Certainty
from privsyn.answers.domain import Attributes, Domain
from privsyn.answers.learnt import Learnt, Method
from privsyn.answers.marginal import Marginal, Measurement
from privsyn.answers.merging import Merging
from privsyn.errors import InputError
from privsyn.private.ledger import Ledger
from privsyn.table.codec import Codec
from privsyn.table.form import Form

FORMAT = 2  # raised when an older reader would misread it
SAME_TOTAL = 1e-6  # relative difference between the sums of two tables that agree

Parts = tuple[Codec, Learnt, Ledger, Method, Form]
"""What a release is made of."""


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
    packed = io.BytesIO()
    np.savez_compressed(packed, **arrays)  # type: ignore[arg-type]  # its stub takes them for options
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
        file.writestr(zipfile.ZipInfo("arrays.npz"), packed.getvalue())
    return whole.getvalue()


def read_parts(path: str | PathLike[str]) -> Parts:
    """What a file holds that `pack` made; an `InputError` if it is no such file, or not all of it."""
    try:
        with zipfile.ZipFile(path) as file:
            text = json.loads(file.read("release.json"))
            if text["format"] == FORMAT:
                with np.load(io.BytesIO(file.read("arrays.npz")), allow_pickle=False) as arrays:
                    return _unpacked(text, dict(arrays))
    except FileNotFoundError:
        raise InputError(f"{path}: there is no such file") from None
    except Exception:  # zipfile, json, NumPy and our own constructors: each has its own on a damaged file
        raise InputError(f"{path}: not a saved release, or cut short; save it again") from None
    raise InputError(f"{path}: a release of another version of privsyn; sample it with that one")


def _unpacked(text: dict[str, Any], arrays: dict[str, Array]) -> Parts:
    """The parts; any exception if they do not fit together."""
    _mend_keys(text["codec"]["schema"])
    codec = Codec.from_dict(text["codec"])
    original = codec.domain
    merged = Domain(original.names, tuple(text["merged"]["sizes"]), tuple(text["merged"]["ordered"]))
    places = range(len(original))
    total = float(text["total"])

    def table(attributes: Attributes, key: str) -> Marginal:
        return Marginal(merged.project(attributes), arrays[key])

    if text["method"] not in get_args(Method):
        raise ValueError(f"method {text['method']}")

    merging = Merging(
        original,
        merged,
        tuple(arrays[f"groups_{j}"] for j in places),
        tuple(arrays[f"shares_{j}"] for j in places),
    )
    one_ways = tuple(table((name,), f"one_way_{j}") for j, name in enumerate(original.names))
    marginals = tuple(table(tuple(a), f"marginal_{j}") for j, a in enumerate(text["marginals"]))
    certainties = tuple(
        Certainty(
            Measurement(Marginal(released.domain, arrays[f"heard_{j}"]), arrays[f"noise_{j}"]), float(error)
        )
        for j, (released, error) in enumerate(zip((*one_ways, *marginals), text["errors"], strict=True))
    )
    learnt = Learnt(merging, one_ways, marginals, total, certainties)
    _check_tables(learnt)
    return codec, learnt, Ledger.from_dict(text["ledger"]), text["method"], Form.from_plain(text["form"])


def _check_tables(learnt: Learnt) -> None:
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
