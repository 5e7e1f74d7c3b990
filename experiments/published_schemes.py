"""Two published ways to add noise together, beside that of several owners: cost, error, and what breaks them.

    python experiments/published_schemes.py [--cells 20] [--bits 2048]

- *one secret owner* (after DstrDP, 2016): each owner encrypts its counts and a whole noise with Paillier's
  cryptosystem. A chooser, who sees encrypted numbers only, adds all counts and the noise of one owner whom it
  draws in secret. The holder of the key decrypts the sum.
- *masked meters* (after DREAM, 2011): each of N meters adds a 1/N part of the noise and masks that cancel in
  the sum of all.
- *several owners*: what `privsyn owner --delta 0` does, without the network.

These are small versions of the ideas, not the authors' code. Needs `phe` and `mpyc`. The figures are in
docs/owners.md.
"""

from __future__ import annotations

import argparse
import secrets
import time
from collections.abc import Callable
from hashlib import shake_256
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.special import gammaln

from privsyn.private.randomness import os_entropy
from privsyn.private.samplers.laplace import discrete_laplace
from privsyn.private.samplers.polya import laplace_share

OWNERS, HONEST = 5, 3
SCALE = 10.0  # of the noise in a count: epsilon 0.1
RUNS = 20_000  # of errors, which need no cryptography
PRIME = 2**61 - 1
Ints = npt.NDArray[np.int64]


class OneSecretOwner:
    """Homomorphic sums of all counts, and of the noise of one owner."""

    def __init__(self, bits: int) -> None:
        from phe import generate_paillier_keypair

        self.public, self.private = generate_paillier_keypair(n_length=bits)
        self.bytes = 2 * bits // 8  # of an encrypted number

    def send(self, counts: Ints) -> tuple[list[Any], list[Any]]:
        """Return what an owner sends: its encrypted counts, and an encrypted noise for each."""
        noise = discrete_laplace(SCALE, len(counts), os_entropy)
        return [[self.public.encrypt(int(x)) for x in numbers] for numbers in (counts, noise)]  # type: ignore[return-value]

    def add(self, messages: list[tuple[list[Any], list[Any]]]) -> tuple[list[Any], int]:
        """Return the encrypted noisy sum, and whose noise is in it, which only the chooser knows."""
        chosen = secrets.randbelow(len(messages))
        columns = zip(*(counts for counts, _ in messages), messages[chosen][1], strict=True)
        return [sum(numbers[1:], numbers[0]) for numbers in columns], chosen

    def open(self, total: list[Any]) -> list[int]:
        """Decrypt the noisy sum."""
        return [self.private.decrypt(number) for number in total]


def masked(counts: Ints, meter: int, keys: dict[int, bytes], noise: Ints) -> Ints:
    """Return what a meter sends: counts, its part of the noise, and a mask for each other meter, mod 2^63."""
    total = (counts + noise).astype(np.uint64)
    for further, key in keys.items():
        mask = np.frombuffer(shake_256(key).digest(8 * len(counts)), np.uint64)
        total = total + mask if further > meter else total - mask
    return total.view(np.int64)


def shared(counts: Ints) -> list[Any]:
    """Return what an owner sends: Shamir shares of its counts and its part of the noise."""
    from mpyc import finfields, thresha

    noisy = counts + laplace_share(SCALE, HONEST, len(counts), os_entropy)
    field = finfields.GF(PRIME)
    return thresha.random_split(field, [field(int(x)) for x in noisy], (OWNERS - 1) // 2, OWNERS)  # type: ignore[no-any-return]


def epsilon_left(r: float, scale: float = SCALE) -> float:
    """Return the epsilon of a count with the difference of two Polya variables of this r as noise."""
    j = np.arange(int(45 * scale))
    masses = np.exp(
        gammaln(r + j) - gammaln(r) - gammaln(j + 1) - j / scale + r * np.log(-np.expm1(-1 / scale))
    )
    shifted = [float(masses[: len(j) - x] @ masses[x:]) for x in range(int(5 * scale))]
    return float(np.abs(np.diff(np.log(shifted))).max())


def seconds(act: Callable[[], object]) -> float:
    """Return the processor seconds of a call."""
    begun = time.process_time()
    act()
    return time.process_time() - begun


def main() -> None:
    """Print the table and the ways to fail."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--cells", type=int, default=20)
    parser.add_argument("--bits", type=int, default=2048)
    settings = parser.parse_args()
    cells = settings.cells
    rng = np.random.default_rng(0)
    counts = [rng.integers(0, 1000, cells) for _ in range(OWNERS)]

    scheme = OneSecretOwner(settings.bits)
    messages: list[Any] = []
    send = seconds(lambda: messages.extend(map(scheme.send, counts))) / OWNERS
    total, _ = scheme.add(messages)
    opened: list[int] = []
    decrypt = seconds(lambda: opened.extend(scheme.open(total)))
    if np.abs(np.array(opened) - sum(counts)).max() > 60 * SCALE:
        raise SystemExit("the sum is wrong")
    keys = {
        (a, b): secrets.token_bytes(32) for a in range(OWNERS) for b in range(a + 1, OWNERS)
    }  # agreed once

    def keys_of(meter: int) -> dict[int, bytes]:
        return {a + b - meter: key for (a, b), key in keys.items() if meter in (a, b)}

    sent: list[Ints] = []
    parts = [laplace_share(SCALE, OWNERS, cells, os_entropy) for _ in range(OWNERS)]
    mask = (
        seconds(lambda: sent.extend(masked(counts[m], m, keys_of(m), parts[m]) for m in range(OWNERS)))
        / OWNERS
    )
    if (np.sum(sent, axis=0) != sum(counts) + sum(parts)).any():
        raise SystemExit("the masks do not cancel")
    share = seconds(lambda: [shared(own) for own in counts]) / OWNERS

    errors = {
        "one secret owner": discrete_laplace(SCALE, RUNS, os_entropy),
        "masked meters": sum(laplace_share(SCALE, OWNERS, RUNS, os_entropy) for _ in range(OWNERS)),
        "several owners": sum(laplace_share(SCALE, HONEST, RUNS, os_entropy) for _ in range(OWNERS)),
    }
    costs = {
        "one secret owner": (1e3 * (send + decrypt / OWNERS) / cells, 2 * scheme.bytes),
        "masked meters": (1e3 * mask / cells, 8),
        "several owners": (1e3 * share / cells, 8 * (OWNERS - 1 + (OWNERS - 1) // 2)),
    }
    for name, noise in errors.items():
        milliseconds, size = costs[name]
        error = float(np.abs(noise).mean())
        print(  # noqa: T201
            f"{name}: {milliseconds:.3f} ms and {size} bytes an owner and cell, mean error {error:.1f}"
        )
    few = OWNERS - HONEST
    share_known = np.mean([scheme.add(messages)[1] < few for _ in range(1000)])
    lines = [
        f"one secret owner: {few} dishonest owners know the noise in {share_known:.0%} of all sums",
        f"masked meters: with {few} of {OWNERS} dishonest, epsilon {epsilon_left(HONEST / OWNERS):.2f}",
        f"several owners: with {few} of {OWNERS} dishonest, epsilon {epsilon_left(1.0):.2f}",
    ]
    lines += [
        f"masked meters: with {missing:.0%} of the noise missing, epsilon {epsilon_left(1 - missing):.2f}"
        for missing in (0.02, 0.1, 0.5)
    ]
    print("\n".join(lines))  # noqa: T201


if __name__ == "__main__":
    main()
