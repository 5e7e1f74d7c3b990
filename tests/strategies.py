"""Hypothesis strategies: domains, coded tables, neighbouring tables, and schemas with tables that match."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import date, datetime, timedelta, tzinfo
from decimal import Decimal
from functools import partial
from itertools import islice, repeat
from typing import ClassVar

import numpy as np
import pandas as pd
import pyarrow as pa
from hypothesis import strategies as st

from privsyn.marginals.domain import Domain, Records
from privsyn.private.find_values import Finder, by_kind
from privsyn.private.noise_laws import GAUSSIAN, Law
from privsyn.table.encoding.dtypes import TEXT, holds_missing
from privsyn.table.encoding.steps import SECONDS
from privsyn.table.schema.columns import Categorical, Datetime, Duration, Numerical, Time
from privsyn.table.schema.schema import Schema

names = st.text(min_size=1, max_size=6)
texts = st.text(max_size=6)
finite = st.floats(allow_nan=False, allow_infinity=False)


@st.composite
def domains(draw, max_attributes=4, max_size=5):
    """A domain; some attributes are ordered, some of these with a last code that is not."""
    attributes = draw(st.lists(names, min_size=1, max_size=max_attributes, unique=True))
    sizes = draw(st.lists(st.integers(1, max_size), min_size=len(attributes), max_size=len(attributes)))
    ordered = tuple(draw(st.sampled_from([0, size - 1, size])) for size in sizes)
    return Domain(tuple(attributes), tuple(sizes), ordered)


@st.composite
def coded_tables(draw, domain=None, max_rows=20):
    """Records over a domain, given or drawn; there may be none."""
    domain = draw(domains()) if domain is None else domain
    row = st.tuples(*(st.integers(0, size - 1) for size in domain.sizes))
    rows = draw(st.lists(row, max_size=max_rows))
    return Records(domain, np.array(rows, dtype=np.int64).reshape(-1, len(domain)))


@st.composite
def neighbours(draw, domain=None, max_rows=20):
    """Two coded tables, the second with one record more than the first, at any place."""
    fewer = draw(coded_tables(domain, max_rows))
    record = [draw(st.integers(0, size - 1)) for size in fewer.domain.sizes]
    codes = np.insert(fewer.codes, draw(st.integers(0, len(fewer))), record, axis=0)
    return fewer, Records(fewer.domain, codes)


@st.composite
def _integers(draw):
    dtype = draw(st.sampled_from(["int64", "int8", "uint8", "Int64", "UInt8", "int16[pyarrow]"]))
    limits = (0, 255) if dtype.lower() == "uint8" else (-128, 127)
    low, high = sorted(draw(st.tuples(st.integers(*limits), st.integers(*limits))))
    column = Numerical(
        low,
        high,
        integer=draw(st.sampled_from([None, True])),
        bins=draw(st.integers(1, 40)),
        nullable=draw(st.booleans()),
    )
    return column, dtype, st.integers(*limits)


@st.composite
def _reals(draw):
    dtype = draw(st.sampled_from(["float64", "float32", "Float64", "object", "double[pyarrow]"]))
    settings = {"bins": draw(st.integers(1, 40)), "nullable": draw(st.booleans())}
    decimals = draw(st.sampled_from([None, 0, 1, 3]))
    if decimals is None:
        bound = finite.filter(lambda x: abs(x) < 1e30)
        low, high = sorted(draw(st.tuples(bound, bound)))
    else:
        low, high = (x / 10**decimals for x in sorted(draw(st.tuples(*[st.integers(-9999, 9999)] * 2))))
    width = 32 if dtype == "float32" else 64
    return Numerical(low, high, decimals=decimals, **settings), dtype, st.floats(width=width)


@st.composite
def _dates(draw):
    dtype = draw(
        st.sampled_from(
            [
                "datetime64[ns]",
                "datetime64[s]",
                "datetime64[us, Etc/GMT-5]",
                TEXT,
                "string",
                "object",
                "date32[day][pyarrow]",
            ]
        )
    )
    if draw(st.booleans()) or dtype == "date32[day][pyarrow]":
        day = st.dates(date(1900, 1, 1), date(2100, 1, 1))
    else:
        day = st.datetimes(datetime(1900, 1, 1), datetime(2100, 1, 1)).map(
            lambda at: at.replace(microsecond=0)
        )
    low, high = sorted(draw(st.tuples(day, day)))
    column = Datetime(low, high, bins=draw(st.integers(1, 40)), nullable=draw(st.booleans()))
    cells = st.datetimes(datetime(1800, 1, 1), datetime(2200, 1, 1)).map(lambda at: at.replace(microsecond=0))
    if dtype in (TEXT, "string"):
        return column, dtype, cells.map(str) | texts
    if "GMT" in str(dtype):
        return column, dtype, cells.map(lambda at: pd.Timestamp(at, tz="UTC") + timedelta(microseconds=7))
    return column, dtype, cells.map(datetime.date) if "date32" in str(dtype) else cells


@st.composite
def _spans(draw):
    unit = draw(st.sampled_from(["s", "m", "h", "D"]))
    step = timedelta(seconds=SECONDS[unit])
    low, high = sorted(draw(st.tuples(st.integers(-99, 99), st.integers(-99, 99))))
    dtype = draw(
        st.sampled_from(
            [
                "timedelta64[s]",
                "timedelta64[ns]",
                "object",
                pd.ArrowDtype(pa.duration("us")),
                "timedelta64[ms]",
            ]
        )
    )
    column = Duration(
        low * step, high * step, unit=unit, bins=draw(st.integers(1, 40)), nullable=draw(st.booleans())
    )
    return column, dtype, st.timedeltas(timedelta(-120), timedelta(120))


@st.composite
def _clocks(draw):
    unit = draw(st.sampled_from(["s", "m", "h"]))
    low, high = sorted(draw(st.tuples(st.integers(0, 23), st.integers(0, 23))))
    column = Time(
        f"{low:02}:00",
        f"{high:02}:00",
        unit=unit,
        bins=draw(st.integers(1, 40)),
        nullable=draw(st.booleans()),
    )
    dtype = draw(st.sampled_from(["object", pd.ArrowDtype(pa.time64("us")), pd.ArrowDtype(pa.time32("s"))]))
    return column, dtype, st.times().map(lambda at: at.replace(microsecond=0))


@st.composite
def _written(draw):
    example, decimals = draw(st.sampled_from([("$1,234.50", 2), ("1.234 kg", 0), ("(1234,5 %)", 1)]))
    low, high = (x / 10**decimals for x in sorted(draw(st.tuples(*[st.integers(-9999, 9999)] * 2))))
    column = Numerical(low, high, format=example, bins=draw(st.integers(1, 40)), nullable=draw(st.booleans()))
    spell = partial(column.form.spell, decimals=decimals)
    cell = st.integers(-99_999, 99_999).map(lambda digits: spell(digits / 10**decimals))
    return column, draw(st.sampled_from([TEXT, "string", "object"])), cell | texts


@st.composite
def _decimals(draw):
    dtype = pd.ArrowDtype(pa.decimal128(8, draw(st.integers(0, 4))))
    scale = dtype.pyarrow_dtype.scale
    low, high = sorted(draw(st.tuples(*[st.integers(-9999, 9999)] * 2)))
    column = Numerical(
        low / 10**scale, high / 10**scale, bins=draw(st.integers(1, 40)), nullable=draw(st.booleans())
    )
    return column, dtype, st.integers(-99999, 99999).map(lambda digits: Decimal(digits).scaleb(-scale))


@st.composite
def _listed(draw):
    value, dtypes = draw(
        st.sampled_from(
            [
                (texts, [TEXT, "string", "object", "category"]),
                (st.booleans(), ["bool", "boolean", "object", "category"]),
                (
                    st.integers(-128, 127),
                    ["int8", "int64", "Int64", "float64", "Float32", "object", "category"],
                ),
                (finite, ["float64", "Float64", "object", "category"]),
                (st.one_of(texts, st.integers(2, 9), st.booleans()), ["object"]),
            ]
        )
    )
    values = draw(st.lists(value, min_size=1, max_size=6, unique=True))
    return Categorical(values, nullable=draw(st.booleans())), draw(st.sampled_from(dtypes)), value


KINDS = (_integers(), _reals(), _written(), _decimals(), _dates(), _clocks(), _spans(), _listed())


@st.composite
def tables(draw, max_columns=4, max_rows=12):
    """A schema and a data frame of matching dtypes, with cells in and out of bounds, and missing ones."""
    columns, cells = {}, {}
    rows = draw(st.integers(0, max_rows))
    for name in draw(st.lists(names, min_size=1, max_size=max_columns, unique=True)):
        columns[name], dtype, cell = draw(st.one_of(KINDS))
        if holds_missing(pd.Series([], dtype=dtype).dtype):
            cell = cell | st.none()
        drawn = draw(st.lists(cell, min_size=rows, max_size=rows))
        cells[name] = pd.Series(drawn, dtype=dtype)
    schema = Schema(dict(draw(st.permutations(list(columns.items())))))
    return schema, pd.DataFrame(cells)


class Grumpy:
    """An object that is no good for anything."""

    def __eq__(self, other):
        raise RuntimeError("compared")

    def __hash__(self):
        raise RuntimeError("hashed")

    def __float__(self):
        raise RuntimeError("made a number")


class GrumpyNumber(float):
    """A number that is no good for anything either."""

    def __float__(self):
        raise RuntimeError("made a number")


class GrumpyText(str):
    """A text of which no part can be had."""

    __slots__ = ()

    def strip(self, *_):
        raise RuntimeError("stripped")


class Incomparable(float):
    """A number that cannot be told from itself, as pandas asks when it looks for missing cells."""

    __hash__ = None

    def __eq__(self, other):
        raise ValueError("compared")

    __ne__ = __eq__


class Nameless:
    """An object that does not even tell its class."""

    @property
    def __class__(self):
        raise RuntimeError("asked for its class")


class Typeless(type):
    """A class that can be neither looked up nor compared."""

    def __eq__(cls, other):
        raise RuntimeError("compared as a class")

    def __hash__(cls):
        raise RuntimeError("hashed as a class")


class OfNoType(metaclass=Typeless):
    """An object of such a class; not `junk`, for Hypothesis itself would fail at one."""


class NoZone(tzinfo):
    """A time zone that knows nothing."""


junk = st.one_of(
    st.none(),
    st.floats(),
    st.integers(),
    st.booleans(),
    st.just(10**400),
    st.just(-(10**400)),
    texts,
    st.just("x" * 10_000),
    st.binary(max_size=3),
    st.decimals(),
    st.complex_numbers(),
    st.fractions(),
    st.dates(),
    st.datetimes(),
    st.timedeltas(),
    st.builds(list),
    st.builds(dict),
    st.builds(set),
    st.builds(Grumpy),
    st.builds(GrumpyNumber),
    st.builds(GrumpyText, st.just("$5")),
    st.builds(Incomparable, st.just(2)),
    st.just(Decimal("sNaN")),
    st.builds(Nameless),
    st.builds(datetime, st.just(2000), st.just(1), st.just(1), tzinfo=st.builds(NoZone)),
    st.just(pd.Timestamp(np.datetime64("12016-01-01", "s"))),
    st.sampled_from(
        [pd.NA, pd.NaT, pd.Timestamp(0), np.datetime64("NaT", "ns"), np.datetime64(5, "ns"), np.array([1])]
    ),
)
"""Cells of an object column that nobody foresaw."""


@dataclass
class StubNoise:
    """Noise that writes down what it was asked for; without `values` it is 0, so exact answers show."""

    values: Iterator[int] = field(default_factory=lambda: repeat(0))
    drawn: list[tuple[float, int]] = field(default_factory=list)
    name: ClassVar[str] = "none: a test"
    private: ClassVar[bool] = False
    law: ClassVar[Law] = GAUSSIAN

    def draw(self, sigma, size):
        self.drawn.append((sigma, size))
        return np.array(list(islice(self.values, size)), np.int64)


def find_values(columns, ask, *, rho, delta, noise, rows_per_unit=1):
    """What the rounds of a search find, and what they cost; `ask` counts the votes for what is not found."""
    finder, found = Finder(noise, rows_per_unit), dict.fromkeys(columns, ())
    for number, share in ((1, 0.2), (2, 0.8)):
        votes = ask(by_kind(found))
        more = finder.values(columns, votes, number=number, rho=share * rho, delta=delta / 2)
        found = {name: values + more[name].values for name, values in found.items()}
    return found, finder.log.spends
