"""One commit, one result: what the operating system draws in tests has a seed, the name of the test.

A test that fails by chance says nothing of the commit. Every test has draws of its own. With ``--entropy``
each run has other ones, which looks for failures that a seed hides. Processes that a test starts are free.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from random import Random
from types import SimpleNamespace

import pytest
from numpy.random import bit_generator

from privsyn.collectors import field
from privsyn.private import randomness


class Repeatable:
    """A plugin of pytest. A fixture is seeded by its own name, since several tests share what it makes."""

    def __init__(self) -> None:
        self.bits = Random(0)  # noqa: S311 - nothing here is secret

    @contextmanager
    def seed(self, name: str) -> Iterator[None]:
        """Draw from the seed of a name, and go on with the draws before afterwards."""
        before, self.bits = self.bits, Random(zlib.crc32(name.encode()))  # noqa: S311
        try:
            yield
        finally:
            self.bits = before

    @pytest.hookimpl(wrapper=True)
    def pytest_runtestloop(self):
        """Replace `os.urandom`, and the bits with which NumPy seeds its generators."""
        system = SimpleNamespace(urandom=lambda size: self.bits.randbytes(size))
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(randomness, "os", system)
            patch.setattr(field, "os", system)
            patch.setattr(bit_generator, "randbits", lambda size: self.bits.getrandbits(size))
            return (yield)

    @pytest.hookimpl(wrapper=True)
    def pytest_fixture_setup(self, fixturedef, request):
        """Seed a fixture by its name and parameter."""
        with self.seed(f"{fixturedef.baseid} {fixturedef.argname} {request.param_index}"):
            return (yield)

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_call(self, item):
        """Seed a test by its name."""
        with self.seed(item.nodeid):
            return (yield)
