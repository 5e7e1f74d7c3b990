"""Thousands of contributors, three collectors: are all sums right, and what does a contribution cost? Adult.

    PRIVSYN_DATA=folder python experiments/contributors.py [--rows 10000] [--epsilon 1]

Of the contributors 2 % never come, 1 % come twice with two rows, 1 % send garbage of three kinds, and some
come after the collection has ended. Each collector is a process. Collector 2 is killed in the second
question, after it dealt its noise, and does not come back. All collectors write down their noise. So each sum
that was opened can be compared with the counts of the honest rows plus this noise, and the model with that of
the same answers. The numbers are in docs/owners.md.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import pandas as pd
from tables import add_data_argument, read

from privsyn import PrivSyn, evaluate, load, read_schema
from privsyn.cli.main import main as command
from privsyn.collectors.board import Board, PrivateKeys, Study
from privsyn.collectors.coding import codec_of, codes_of, coding_digest
from privsyn.collectors.collectors import CollectedNoise
from privsyn.collectors.contribution_file import one_hot, shares_of, write_contribution
from privsyn.collectors.field import PRIME, from_bytes, random_residues, signed, value_at
from privsyn.owners.party import Alone
from privsyn.table.io.read_in_batches import read_in_batches
from privsyn.table.schema.yaml_file import to_yaml

VANISH, TWICE, GARBAGE = 0.02, 0.01, 0.01
LATE = 20
KILLED_AT = "answers/000001.sum"  # the second question: its noise is dealt, the sum is not opened


def begin(folder: Path, settings: PrivSyn[Any], collectors: int = 3) -> Study:
    """Let all collectors join; their keys are beside the folder of the study."""
    digest = coding_digest(codec_of(settings))
    for party in range(collectors):
        keys = PrivateKeys.of_file(folder.with_name(f"{party}.key"))
        Study.join(folder, party, collectors, keys, digest)
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
        board = Board(folder, study, 0, PrivateKeys.of_file(folder.with_name("0.key")), 0, print)
        shares = {i: from_bytes(content, counts.shape) for i, content in board.posts(f"{name}.sum").items()}
        opened = signed(value_at(0, dict(list(shares.items())[: study.threshold + 1])))
        if not np.array_equal(signed(total % PRIME), opened):
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


def collector(party: int, noises: Path, killed: bool, arguments: list[str]) -> int:
    """Run `privsyn collect` in this process, write down the noise, and end hard where it is to be killed."""
    draw, post, drawn = CollectedNoise.draw, Board.post, {}

    def drawing(self: CollectedNoise, scale: float, size: int) -> np.ndarray:
        drawn[f"{party}.{len(drawn)}"] = draw(self, scale, size)
        np.savez(noises, **drawn)
        return list(drawn.values())[-1]

    def posting(self: Board, name: str, content: bytes) -> None:
        if killed and name == KILLED_AT:
            os._exit(9)
        post(self, name, content)

    with mock.patch.object(CollectedNoise, "draw", drawing), mock.patch.object(Board, "post", posting):
        return command(arguments)


def run_collectors(
    folder: Path, schema: Path, epsilon: float, late: Iterator[Path], *, killed: bool, lost: int = 1
) -> list[float]:
    """Run all collectors, one of whom may be killed; return their processor seconds."""
    home, processes = folder.parent, []
    for party in range(3):
        arguments = [
            *("collect", str(folder), "--party", str(party), "--schema", str(schema)),
            *("--epsilon", str(epsilon), "--model", str(home / f"{party}.privsyn"), "--force"),
            *("--keys", str(home / f"{party}.key"), "--patience", "60", "--lost", str(lost)),
        ]
        words = [str(party), str(home / f"noise.{party}.npz"), str(int(killed and party == 2))]
        processes.append(
            subprocess.Popen(
                [sys.executable, __file__, "--collector", *words, *arguments],
                stdout=subprocess.DEVNULL,
                stderr=subprocess.PIPE,
                text=True,
            )
        )
    while not (folder / "contributions.set").exists():
        time.sleep(0.1)
    list(late)
    seconds = []
    for party, process in enumerate(processes):
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        message = process.communicate()[1]
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        seconds.append(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
        if process.returncode != (9 if killed and party == 2 else 0):
            raise SystemExit(f"collector {party}: {message}")
    return seconds


def main() -> None:
    """Print what was compared, the costs, and the errors of pairs."""
    if sys.argv[1:2] == ["--collector"]:
        party, noises, killed, *arguments = sys.argv[2:]
        sys.exit(collector(int(party), Path(noises), bool(int(killed)), arguments))
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    add_data_argument(parser)
    parser.add_argument("--rows", type=int, default=10_000)
    parser.add_argument("--epsilon", type=float, default=1.0)
    options = parser.parse_args()
    _, frame, schema, _ = read(options.folder, "adult")
    frame = frame.sample(options.rows, random_state=0, ignore_index=True)
    with tempfile.TemporaryDirectory() as name:
        home, folder = Path(name), Path(name) / "study"
        (home / "schema.yaml").write_text(to_yaml(schema))
        frame.to_csv(home / "rows.csv", index=False)
        settings: PrivSyn[Any] = PrivSyn(options.epsilon, schema=read_schema(home / "schema.yaml"))
        study = begin(folder, settings)
        honest, costs, late = contribute(folder, study, settings, home / "rows.csv", seed=0)
        print(json.dumps({"contributor": costs, "rows that count": len(honest)}), flush=True)  # noqa: T201
        before = folder.with_name("again")
        subprocess.run(["cp", "-r", folder, before], check=True)  # noqa: S607
        begun = time.monotonic()
        seconds = run_collectors(folder, home / "schema.yaml", options.epsilon, late, killed=True)
        sent = [sum(f.stat().st_size for f in folder.rglob(f"*.{party}")) for party in range(3)]
        print(json.dumps({"collectors' seconds": seconds, "bytes": sent, "wall": time.monotonic() - begun}))  # noqa: T201
        if (home / "0.privsyn").read_bytes() != (home / "1.privsyn").read_bytes():
            raise SystemExit("the models differ")
        noises = {
            tuple(map(int, key.split("."))): array
            for party in range(3)
            for key, array in np.load(home / f"noise.{party}.npz").items()
        }
        rows = frame.iloc[honest].reset_index(drop=True)
        rows.to_csv(home / "honest.csv", index=False)
        again, questions = replayed(folder, settings, home / "honest.csv", noises)
        model = load(home / "0.privsyn")
        same = model.sample(1000, seed=0).equals(again.sample(1000, seed=0))
        print(json.dumps({"sums compared": questions, "the same model from the rows": same}), flush=True)  # noqa: T201
        central = PrivSyn(options.epsilon, schema=schema).fit(rows)
        run_collectors(before, home / "schema.yaml", options.epsilon, iter(()), killed=False, lost=0)
        for title, release in (
            ("one table", central.release_),
            ("3 collectors, 1 may be lost", model),
            ("3 collectors, none may be lost", load(home / "0.privsyn")),
        ):
            scores = evaluate(rows, release.sample(len(rows), seed=0), schema=schema, models=False)
            print(json.dumps({"run": title, "pair error": scores.pair_mean.synthetic}), flush=True)  # noqa: T201


if __name__ == "__main__":
    pd.set_option("display.width", 200)
    main()
