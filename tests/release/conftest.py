"""The releases that several files of tests read. None of them changes one."""

from __future__ import annotations

import pytest
from small_releases import METHODS, SCHEMA, table

from privsyn import PrivSyn


@pytest.fixture(scope="session")
def releases():
    return {
        method: PrivSyn(2.0, 1e-9, SCHEMA, seed=1, method=method).fit(table()).release_ for method in METHODS
    }
