"""A study with contributors who vanish, come twice or send garbage, and what its sums must be."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np

from privsyn import PrivSyn
from privsyn.collectors.board import Board, PrivateKeys, Study
from privsyn.collectors.coding import codec_of, codes_of, coding_digest
from privsyn.collectors.collectors import CollectedNoise
from privsyn.collectors.contribution_file import one_hot, shares_of, write_contribution
from privsyn.collectors.field import PRIME, centred, from_bytes, random_residues, value_at
from privsyn.collectors.promise import Promise
from privsyn.owners.journal import Journal
from privsyn.owners.party import Alone
from privsyn.table.io.read_in_batches import read_in_batches

VANISH, TWICE, GARBAGE = 0.02, 0.01, 0.01
LATE = 20


def begin(folder: Path, settings: PrivSyn[Any], collectors: int = 3, lost: int | None = None) -> Study:
    """Let all collectors join; their keys are beside the folder of the study."""
    digest, promise = coding_digest(codec_of(settings)), Promise.of(settings, collectors, lost)
    for party in range(collectors):
        keys = PrivateKeys.of_file(folder.with_name(f"{party}.key"))
        Study.join(folder, party, collectors, keys, digest, promise)
    return Study.read(folder)


def garbage(shares: np.ndarray, kind: int) -> np.ndarray:
    """Shares of nothing; 50 votes for one code and -50 for another; or other shares for one collector."""
    shares = shares.copy()
    if kind == 0:
        return random_residues(shares.shape)
    if kind == 1:
        shares[:, 0] = (shares[:, 0] + 50) % PRIME
        shares[:, 1] = (shares[:, 1] - 50) % PRIME
    else:
        shares[1, 0] = (shares[1, 0] + 1) % PRIME
    return shares


def contribute(
    folder: Path, study: Study, settings: PrivSyn[Any], rows: Path, seed: int
) -> tuple[list[int], dict[str, float], Iterator[Path]]:
    """Send all contributions; return the rows that count, the costs, and those that come too late."""
    codec = codec_of(settings)
    vectors = [one_hot(codes, codec.domain) for codes in codes_of(rows, codec)]
    order = np.random.default_rng(seed).permutation(len(vectors)).tolist()
    ends = np.cumsum([round(share * len(order)) for share in (VANISH, TWICE, GARBAGE)])
    _, twice, bad, good = (part.tolist() for part in np.split(np.array(order), ends))
    honest, seconds = [], 0.0
    for row in good:
        begun = time.process_time()
        keys = PrivateKeys.of_file(folder.with_name("contributor.key"))
        file = write_contribution(folder, study, keys, shares_of(vectors[row], study))
        seconds += time.process_time() - begun
        folder.with_name("contributor.key").unlink()
        honest.append(row)
    for row in twice:
        keys, names = _keys(folder), {}
        for sent in (row, order[0]):
            names[write_contribution(folder, study, keys, shares_of(vectors[sent], study)).name] = sent
        honest.append(names[min(names)])
    for index, row in enumerate(bad):
        shares = garbage(shares_of(vectors[row], study), index % 3)
        write_contribution(folder, study, _keys(folder), shares)
    late = (
        write_contribution(folder, study, _keys(folder), shares_of(vectors[0], study)) for _ in range(LATE)
    )
    costs = {"seconds": seconds / len(good), "bytes": file.stat().st_size, "codes": sum(codec.domain.sizes)}
    return sorted(honest), costs, late


def _keys(folder: Path) -> PrivateKeys:
    file = folder.with_name("some.key")
    keys = PrivateKeys.of_file(file)
    file.unlink()
    return keys


def replayed(
    folder: Path, settings: PrivSyn[Any], rows: Path, noises: Mapping[tuple[int, int], np.ndarray]
) -> tuple[PrivSyn[Any], int]:
    """Ask the honest rows in the open, and compare every sum with that which the collectors opened.

    Returns the model of these answers, and how many sums were compared. `noises` are those that the
    collectors drew, by collector and question.
    """
    study, questions = Study.read(folder), 0

    def open_sum(size: int, scale: float, counted: Callable[[], np.ndarray]) -> np.ndarray:
        nonlocal questions
        counts = counted()
        name = f"answers/{questions:06d}"
        dealers = (folder / f"{name}.set").read_bytes()[1:-64]
        total = counts + sum(noises[dealer, questions] for dealer in dealers)
        journal = Journal.open(folder.with_name("0.key.run"))
        board = Board(folder, study, 0, PrivateKeys.of_file(folder.with_name("0.key")), journal, 0, print)
        shares = {i: from_bytes(content, counts.shape) for i, content in board.posts(f"{name}.sum").items()}
        opened = centred(value_at(0, dict(list(shares.items())[: study.threshold + 1])))
        if not np.array_equal(centred(total % PRIME), opened):
            raise SystemExit(f"question {questions}: the sum is not that of the honest rows plus the noise")
        questions += 1
        return opened

    class Replay(Alone):
        def noise(self) -> CollectedNoise:
            return CollectedNoise(len(study.keys), 1, open_sum)

        def generator(self) -> np.random.Generator:
            return np.random.default_rng(int.from_bytes(study.digest, "big"))

    table = replace(read_in_batches(rows, settings.database.schema), once=True)
    with mock.patch.object(PrivSyn, "_party_of", lambda self, table: Replay(table, self)):
        return settings.fit(table), questions
