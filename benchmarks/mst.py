"""MST of the package `dpmm` on a coded table, for `python -m benchmarks against`.

It prints its seconds, and writes its table in place of the given one.

Run by a Python of its own, for dpmm wants older NumPy and pandas than we do:
python -m venv peer && peer/bin/pip install dpmm
"""

import sys
import time
import warnings

warnings.simplefilter("ignore")

import numpy as np  # noqa: E402
import pandas as pd  # noqa: E402
from dpmm.models.mst import MSTGM  # noqa: E402

coded = np.load(sys.argv[1])
table = pd.DataFrame(coded["codes"], columns=[f"c{j}" for j in range(coded["codes"].shape[1])])
domain = {name: int(size) for name, size in zip(table.columns, coded["sizes"], strict=True)}
begun = time.perf_counter()
model = MSTGM(epsilon=1.0, delta=1e-9, domain=domain)
model.set_domain(domain)
model.fit(table)
made = model.generate(len(table))
print(time.perf_counter() - begun)  # noqa: T201
np.savez(sys.argv[1], codes=np.asarray(made[list(table.columns)], np.int64))
