"""`privsyn compile`: compile all loops before the first run, as for an image of a container."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Any

from privsyn.cli.common.terminal import say
from privsyn.errors import plural

if TYPE_CHECKING:
    import pandas as pd

    from privsyn.synthesizer import PrivSyn

ROWS = 500  # of the invented table
ROWS_EACH = 4  # of each of its persons
EPSILON = 50.0  # with which relationships are found, so that the loops for them run


def compile() -> None:  # noqa: A001 - the name of the command
    """Compile all loops for this machine, so that no run waits for it: for an image of a container.

    It fits invented tables, in half a minute. Compiled loops serve one version of privsyn and numba, and one
    processor model: docs/engineer.md says how to make them serve all.
    """
    from privsyn.cli.common.progress_bars import waiting
    from privsyn.marginals._kernels import add_counts

    begin, folder = perf_counter(), Path(add_counts.stats.cache_path)
    root = folder.parents[1] if folder.name == "__pycache__" else folder.parent
    with waiting("compiling"):
        for model, table in models_with_tables():
            model.fit(table).sample()
    loops = {path.name.partition("-")[0] for path in root.rglob("_kernels.*.nbi")}
    say(f"{root}: {plural(len(loops), 'compiled loop')}, in {perf_counter() - begin:.0f} s")


def models_with_tables() -> Iterator[tuple[PrivSyn[Any], pd.DataFrame]]:
    """Yield models and invented tables that use all loops: seeded, for nobody is in them."""
    from privsyn import PrivSyn

    rows = invented_table()
    table = rows.drop(columns="who")
    yield PrivSyn(EPSILON, seed=0, public=table[: ROWS // 2].copy()), table
    yield PrivSyn(EPSILON, seed=0, unit="who", rows_per_unit=ROWS_EACH), rows
    yield PrivSyn(EPSILON, seed=0, unit="who", rows_per_unit=ROWS_EACH, identifiers=True, order="day"), rows
    yield PrivSyn.paper(EPSILON, seed=0), table


def invented_table() -> pd.DataFrame:
    """Return an invented table with columns of each kind, and `ROWS_EACH` rows a person."""
    import numpy as np
    import pandas as pd

    rng = np.random.default_rng(0)
    number = rng.normal(size=ROWS).round(2)
    return pd.DataFrame(
        {
            "who": np.repeat(np.arange(ROWS // ROWS_EACH), ROWS_EACH),
            "number": number,
            "whole": rng.integers(0, 40, ROWS),
            "word": rng.choice(list("abcdefgh"), ROWS),
            "day": pd.Timestamp("2020-01-01") + pd.to_timedelta(rng.integers(0, 500, ROWS), "D"),
            "positive": number > 0,
        }
    )
