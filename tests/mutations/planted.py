"""The planted bugs: where, what is written there, what is written instead, and which tests should notice."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Edit:
    """One exact text of one file, found there once, and what takes its place."""

    file: str
    old: str
    new: str


@dataclass(frozen=True)
class Bug:
    """A privacy bug.

    Parameters
    ----------
    name : str
    edits : tuple of Edit
    tests : tuple of str
        Files of tests, at least one of which must fail.
    """

    name: str
    edits: tuple[Edit, ...]
    tests: tuple[str, ...]


BUGS = (
    Bug(
        "sigma too small by a factor of sqrt 2",
        (
            Edit(
                "privsyn/private/measure.py",
                "return release(exact, sigma, self._noise), sigma",
                "return release(exact, sigma / sqrt(2), self._noise), sigma",
            ),
        ),
        ("tests/test_measure.py", "tests/audit"),
    ),
    Bug(
        "the sensitivity of one row for a person of k rows",
        (
            Edit(
                "privsyn/private/measure.py",
                "        sensitivity *= self._rows_per_unit\n",
                "",
            ),
        ),
        ("tests/test_measure.py", "tests/audit"),
    ),
    Bug(
        "the rows of a person bounded after they were counted",
        (
            Edit(
                "privsyn/synthesizer.py",
                "        rows = self._bounded(source)\n",
                "        rows = source.bounded(self.unit, lambda who: who >= -1) if self.unit else source\n",
            ),
            Edit(
                "privsyn/synthesizer.py",
                "        self.release_ = Release(",
                "        self._bounded(source)\n        self.release_ = Release(",
            ),
        ),
        ("tests/test_synthesizer.py", "tests/audit"),
    ),
    Bug(
        "the rows of a person chosen, and others counted",
        (
            Edit(
                "privsyn/table/persons.py",
                "        if start != self.rows or mark.digest() != self.mark:\n",
                "        if start != self.rows:\n",
            ),
        ),
        ("tests/test_persons.py", "tests/test_unit.py"),
    ),
    Bug(
        "a whole vote for each value that a row holds",
        (
            Edit(
                "privsyn/private/discovery.py",
                "    weights = _votes(list(left.values()))\n",
                "    weights = np.full(len(next(iter(left.values()), ())), VOTE)\n",
            ),
        ),
        ("tests/test_discovery.py",),
    ),
    Bug(
        "the exact number of rows used",
        (
            Edit(
                "privsyn/methods/default.py",
                "    total = estimate_total(one_ways)\n    margins",
                "    exact = next(private._rows.count([private.domain.names[:1]]))\n"
                "    total = max(1.0, float(exact.sum()))\n    margins",
            ),
        ),
        ("tests/test_synthesizer.py",),
    ),
    Bug(
        "domain from the data",
        (
            Edit(
                "privsyn/synthesizer.py",
                "        codec = Codec.for_table(opening.schema, rows.head, fine=",
                "        from privsyn.table.kinds import Categorical as C\n\n"
                "        seen_only = {\n"
                "            name: C(seen, nullable=column.nullable)\n"
                "            if isinstance(column, C) and name in rows.head\n"
                "            and (seen := [v for v in column.values\n"
                "                          if any((f[name] == v).any() for f in rows.frames())])\n"
                "            else column\n"
                "            for name, column in unknown.schema.columns.items()\n"
                "        }\n"
                "        codec = Codec.for_table(Schema(seen_only), rows.head, fine=",
            ),
        ),
        ("tests/test_leaks.py",),
    ),
    Bug(
        "selection without noise",
        (
            Edit(
                "privsyn/private/measure.py",
                "return noisy.astype(np.float64), sigma",
                "return np.array(distances, np.float64), sigma",
            ),
        ),
        ("tests/test_measure.py",),
    ),
    Bug(
        "the user's seed, or a fixed one, for the noise of a private run",
        (
            Edit(
                "privsyn/private/noise.py",
                "return rounded_gaussian(sigma, size, os_entropy)",
                "return rounded_gaussian(sigma, size, seeded_bits(np.random.default_rng(0)))",
            ),
        ),
        ("tests/test_synthesizer.py", "tests/test_noise.py", "tests/audit"),
    ),
    Bug(
        "the table kept, and measured again in sample",
        (
            Edit(
                "privsyn/synthesizer.py",
                "        return self._fitted.sample(\n",
                "        if seed is None and hasattr(self, '_table'):\n            self.fit(self._table)\n"
                "        return self._fitted.sample(\n",
            ),
            Edit(
                "privsyn/synthesizer.py",
                "        source = open_table(table, self.schema, unit=self.unit)\n",
                "        self._table = table\n"
                "        source = open_table(table, self.schema, unit=self.unit)\n",
            ),
        ),
        ("tests/test_synthesizer.py", "tests/test_leaks.py"),
    ),
    Bug(
        "the delta of a threshold forgotten",
        (
            Edit(
                "privsyn/private/ledger.py",
                "return rho_for(self.promised_epsilon, self.promised_delta - self.reserved, self.accounting)",
                "return rho_for(self.promised_epsilon, self.promised_delta, self.accounting)",
            ),
        ),
        ("tests/test_accounting.py", "tests/test_ledger.py"),
    ),
    Bug(
        "a threshold that lets through what one person alone holds",
        (
            Edit(
                "privsyn/private/discovery.py",
                "return rows_per_unit * VOTE + margin",
                "return rows_per_unit * VOTE + margin // 2",
            ),
        ),
        ("tests/test_discovery.py", "tests/audit"),
    ),
    Bug(
        "question 0 with the sensitivity of one row for a person of k rows",
        (
            Edit(
                "privsyn/private/discovery.py",
                "sigma = sigma_for(share * rho, float(rows_per_unit * VOTE))",
                "sigma = sigma_for(share * rho, float(VOTE))",
            ),
        ),
        ("tests/test_discovery.py",),
    ),
    Bug(
        "bounds from exact counts",
        (
            Edit(
                "privsyn/private/discovery.py",
                "return {name: (release(exact, sigma, noise), sigma) for",
                "return {name: (exact, sigma) for",
            ),
        ),
        ("tests/test_discovery.py", "tests/audit"),
    ),
    Bug(
        "part of the budget spent twice, and written down once",
        (
            Edit(
                "privsyn/private/measure.py",
                "        self._spends.append(Spend(look, exact.size, sensitivity, sigma))\n",
                "        if not asked:\n"
                "            self._spends.append(Spend(look, exact.size, sensitivity, sigma))\n",
            ),
        ),
        ("tests/test_measure.py", "tests/test_synthesizer.py"),
    ),
    Bug(
        "floating-point noise",
        (
            Edit(
                "privsyn/private/noise.py",
                "return exact + noise.draw(sigma, exact.size).reshape(exact.shape)",
                "return exact + np.random.default_rng().normal(0, sigma, exact.shape)",
            ),
        ),
        ("tests/test_noise.py", "tests/test_measure.py"),
    ),
    Bug(
        "an error message with a value",
        (
            Edit(
                "privsyn/table/codec.py",
                "        with suppress(Exception):  # no row should raise",
                "        for name, coder in zip(self.names, self._coders, strict=True):\n"
                "            if len(strange := table[name][~coder.fits(table[name])].dropna()):\n"
                "                raise InputError(f'column {name!r}: {strange.iloc[0]!r} is strange')\n"
                "        with suppress(Exception):  # no row should raise",
            ),
        ),
        ("tests/test_leaks.py",),
    ),
)
