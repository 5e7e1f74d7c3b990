"""Where the error of a synthetic table comes from: noise, what was not asked, consistency, synthesis.

It compares what a release holds, and what was made of it, with the real table: NOT PRIVATE.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import combinations
from typing import TYPE_CHECKING

import numpy as np

from privsyn.evaluation.scores import Origin
from privsyn.inference.consistency import norm_sub
from privsyn.marginals.counting import count
from privsyn.marginals.domain import Attributes, Records
from privsyn.marginals.statistics import total_variation
from privsyn.marginals.types import Floats
from privsyn.release.release import Release

if TYPE_CHECKING:
    import pandas as pd


def trace(release: Release, real: pd.DataFrame, synthetic: pd.DataFrame) -> tuple[Origin, ...]:
    """The mean error of pairs after each stage, of those that were asked and of the others.

    Parameters
    ----------
    release : Release
    real : pandas.DataFrame
        What it was learnt from.
    synthetic : pandas.DataFrame
        What was sampled from it.

    Returns
    -------
    tuple of Origin
        Errors are total variation, in the values and bins as they were counted. Empty where there are no
        pairs.
    """
    merging = release.learnt.merging
    codec = release.codec
    synthetic = synthetic.reindex(columns=codec.names)  # it lacks free text, which is not looked at
    tables = [merging.merge(codec.encode(frame)) for frame in (real, synthetic)]
    pairs = list(combinations(merging.merged.names, 2))
    asked = dict(_asked(release, pairs))
    errors: dict[str, list[float]] = {
        "asked: as answered, noise and all": [],
        "asked: made consistent": [],
        "asked: in the synthetic table": [],
        "not asked: in the synthetic table": [],
    }
    heard, consistent, made, others = errors.values()
    for pair in pairs:
        true, drawn = (_shares(records, pair) for records in tables)
        if pair in asked:
            for found, answer in zip((heard, consistent), asked[pair], strict=True):
                found.append(total_variation(answer, true))
        (made if pair in asked else others).append(total_variation(drawn, true))
    return tuple(Origin(title, len(found), float(np.mean(found))) for title, found in errors.items() if found)


def _asked(
    release: Release, pairs: Iterable[Attributes]
) -> Iterator[tuple[Attributes, tuple[Floats, Floats]]]:
    """For each pair that lies in a measured table: its shares as heard, and as released."""
    learnt = release.learnt
    measured = list(zip(learnt.certainties[len(learnt.one_ways) :], learnt.marginals, strict=True))
    for pair in pairs:
        for certainty, table in measured:
            if set(pair) <= set(table.attributes) and certainty.heard.groups is None:
                noisy = certainty.heard.marginal.project(pair).counts
                heard = norm_sub(noisy.ravel(), learnt.total).reshape(noisy.shape)
                yield pair, (heard / learnt.total, table.project(pair).counts / learnt.total)
                break


def _shares(records: Records, pair: Attributes) -> Floats:
    return count(records, pair) / max(len(records), 1)
