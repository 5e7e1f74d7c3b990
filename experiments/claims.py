"""Check the numbers that README and docs claim, say which hold, and write docs/claims.md.

    python experiments/claims.py [--slow] [--only WORD] [--page]

experiments/claims.yaml lists each claim: the words of its page around the number, the check that measures
it, and how far the two may differ. The number is read from the page, so claim and page cannot drift apart.
A check is a function in claims_checks.py or a command. Commands run in a copy of docs/ and experiments/
without the rows of earlier runs, so all is measured again and no page changes; the number is then read from
the page that the command wrote, or from what it printed. Measured values go to experiments/claims.csv. The
exit status is 1 if a claim does not hold.
"""

from __future__ import annotations

import argparse
import os
import re
import resource
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import pandas as pd
import yaml
from runs import markdown, today
from tables import NotAtHandError

ROOT = Path(__file__).parents[1]
TABLE, RECORD, PAGE = (
    ROOT / name for name in ("experiments/claims.yaml", "experiments/claims.csv", "docs/claims.md")
)
COPIED = ("benchmarks", "datasets", "docs", "experiments", "tests")
WORDS = [
    "one",
    "two",
    "three",
    "four",
    "five",
    "six",
    "seven",
    "eight",
    "nine",
    "ten",
    "eleven",
    "twelve",
    "thirteen",
    "fourteen",
    "fifteen",
    "sixteen",
]
NUMBER = rf"[-+]?(?:\d{{1,3}}(?:,\d{{3}})+|\d+)(?:\.\d+)?|[-+]?\.\d+|\b(?:{'|'.join(WORDS)})\b"
MARKS = {"<number>": f"({NUMBER})", "<any>": r"[^|\n]*?", "<text>": r"[\s\S]*?"}
RULE = re.compile(r"(rounded)|(within|at most|at least)(?: ([\d.]+)( %)?)?")
HOLDS, FAILS, NOT_RUN = "holds", "does not hold", "not run"


@dataclass(frozen=True)
class Check:
    """How claims are measured.

    Parameters
    ----------
    name : str
        Of a function in claims_checks.py, unless there is a command.
    minutes : float
        Of processor time, about.
    run : str
        A command that begins with ``python``. ``$BENCH`` stands for that variable of the environment.
    needs : str
        The variable that must name a folder of tables, such as PRIVSYN_DATA.
    slow : bool
        Only runs with --slow.
    make : str
        The target of the Makefile that writes the page itself.
    """

    name: str
    minutes: float
    run: str = ""
    needs: str = ""
    slow: bool = False
    make: str = ""

    def __post_init__(self) -> None:
        if self.run and not self.run.startswith("python "):
            raise ValueError(f"{self.name}: a command begins with python")

    @property
    def how(self) -> str:
        """What to type, or the name of the function."""
        return f"`{self.run}`" if self.run else f"`{self.name}` in `claims_checks.py`"


@dataclass(frozen=True)
class Claim:
    """One number of a page.

    Parameters
    ----------
    page : str
    words : str
        Around the number on the page, which is ``<number>``. ``<any>`` is any text in a line or cell,
        ``<text>`` any text at all. White space may differ. They occur once.
    check : str
        The name of a check; "pages" compares two pages as they are, and "" says that no command is kept.
    holds : str
        ``rounded``: the measured number is the same, rounded like the claimed one. ``within``, ``at most`` or
        ``at least``, perhaps with a tolerance: ``within 0.01``, ``at most 20 %`` above the claimed number.
    value : str
        The name of the measured number, of a check that is a function.
    source : str
        The page with the measured number, by default the claim's own; "output" is what a command printed.
    found : str
        The words around it there, by default those of the claim.
    """

    page: str
    words: str
    check: str
    holds: str = "rounded"
    value: str = ""
    source: str = ""
    found: str = ""

    def __post_init__(self) -> None:
        if not RULE.fullmatch(self.holds):
            raise ValueError(f"{self.page}: {self.holds!r} is no rule")

    @property
    def key(self) -> str:
        """What tells a claim from all others."""
        return f"{self.page}: {self.words}"

    def claimed(self) -> str:
        """Return the number as the page has it."""
        return number_in((ROOT / self.page).read_text(encoding="utf-8"), self.words, self.page)

    def agrees(self, measured: float) -> bool:
        """Return whether the claim holds."""
        text = self.claimed()
        claimed, rule = value(text), RULE.fullmatch(self.holds)
        rounded, how, number, percent = rule.groups() if rule else ()
        if rounded:
            return abs(measured - claimed) <= 0.5000001 * 10.0 ** -len(text.partition(".")[2])
        slack = float(number or 0) * (abs(claimed) / 100 if percent else 1) + 1e-9
        below, above = measured <= claimed + slack, measured >= claimed - slack
        return {"within": below and above, "at most": below, "at least": above}[how]


def pattern(words: str) -> re.Pattern[str]:
    """Return the regular expression of words with marks."""
    parts = re.split("(<[a-z]+>)", " ".join(words.split()))
    return re.compile(
        "".join(MARKS[p] if p in MARKS else re.sub(r"(\\ )+", r"\\s+", re.escape(p)) for p in parts)
    )


def number_in(text: str, words: str, where: str) -> str:
    """Return the number in the words, which must occur once."""
    matches = pattern(words).findall(text)
    if len(matches) != 1:
        raise ValueError(f"{where}: {len(matches)} times, not once: {words}")
    return str(matches[0])


def value(text: str) -> float:
    """Return the number that a page writes as text."""
    return 1.0 + WORDS.index(text) if text in WORDS else float(text.replace(",", ""))


@cache
def read_table() -> tuple[dict[str, Check], tuple[Claim, ...]]:
    """Return the checks by name, and all claims; unknown fields are an error."""
    table = yaml.safe_load(TABLE.read_text(encoding="utf-8"))
    checks = {name: Check(name, **about) for name, about in table["checks"].items()}
    return checks, tuple(Claim(**row) for row in table["claims"])


Measured = Mapping[str, float] | Mapping[str, str]


def measure(check: Check) -> Measured:
    """Return numbers by name, or texts of pages by name and the output of the command."""
    if not check.run:
        import claims_checks

        return dict(getattr(claims_checks, check.name)())
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for part in COPIED:
            ignored = shutil.ignore_patterns(
                "*.csv" if part == "experiments" else "", "pictures", "__pycache__"
            )
            shutil.copytree(ROOT / part, folder / part, ignore=ignored)
        environment = dict(os.environ)
        environment["PYTHONPATH"] = os.pathsep.join(
            [str(folder / "tests"), os.environ.get("PYTHONPATH", str(ROOT))]
        )
        typed = [os.path.expandvars(word) for word in check.run.split()[1:]]
        done = subprocess.run(
            [sys.executable, *typed], cwd=folder, env=environment, capture_output=True, text=True, check=False
        )
        if done.returncode:
            printed = done.stderr.strip().splitlines() or [f"exit status {done.returncode}"]
            raise RuntimeError(printed[-1])
        pages = {f"docs/{path.name}": path.read_text(encoding="utf-8") for path in folder.glob("docs/*.md")}
        return pages | {"output": done.stdout}


def as_they_are() -> Measured:
    """Return the texts of the pages of the repository."""
    return {f"docs/{path.name}": path.read_text(encoding="utf-8") for path in ROOT.glob("docs/*.md")}


def looked_up(claim: Claim, measured: Measured) -> float:
    """Return the number that a check found for a claim."""
    if claim.value:
        return float(measured[claim.value])
    where = claim.source or claim.page
    return value(number_in(str(measured[where]), claim.found or claim.words, where))


def processor_minutes() -> float:
    """Return the processor time of this process and its children."""
    used = (resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return sum(u.ru_utime + u.ru_stime for u in used) / 60


def why_not(check: Check, slow: bool) -> str:
    """Return why a check is not run, or nothing."""
    if check.slow and not slow:
        return "slow: make claims SLOW=1"
    if check.needs and check.needs not in os.environ:
        return f"needs {check.needs}=folder"
    return ""


def run(
    checks: Mapping[str, Check], claims: Iterable[Claim], *, slow: bool
) -> Iterator[list[dict[str, Any]]]:
    """Run each check once; print a line for each of its claims, and yield what was measured for them."""
    grouped = {name: [claim for claim in claims if claim.check == name] for name in ("pages", *checks, "")}
    for name, group in grouped.items():
        state, reason, measured = NOT_RUN, "no command is kept" if not name else "", {}
        if group and name in checks:
            reason = why_not(checks[name], slow)
        if group and not reason:
            try:
                measured = measure(checks[name]) if name in checks else as_they_are()
            except NotAtHandError as problem:
                reason = str(problem)
            except RuntimeError as problem:
                state, reason = FAILS, f"the command failed: {problem}"
        rows: list[dict[str, Any]] = []
        for claim in group:
            rows.append({"claim": claim.key, "state": state, "reason": reason})
            if not reason:
                number = looked_up(claim, measured)
                rows[-1] |= {"state": HOLDS if claim.agrees(number) else FAILS, "measured": number}
            say(claim, rows[-1])
        if rows and name in checks and not reason:
            print(f"{'':14}{name}: {processor_minutes():.1f} processor minutes so far", flush=True)  # noqa: T201
        yield rows


def say(claim: Claim, row: Mapping[str, Any]) -> None:
    """Print the line of a claim."""
    measured = f"measured {row['measured']:.5g} ({claim.holds})" if "measured" in row else row["reason"]
    print(f"{row['state']:14}{claim.page}: {shown(claim)}: {measured}", flush=True)  # noqa: T201


def shown(claim: Claim) -> str:
    """Return the words of a claim with its number, without what separates cells."""
    words = re.sub(r"\[([^]]+)\]\([^)]*\)", r"\1", claim.words)  # links
    words = re.sub(r"<any>|<text>", "…", re.sub(r"[|*`#]", " ", words))
    words = re.sub(r"(… )+", "… ", " ".join(words.split()))
    return words.replace("<number>", f"**{claim.claimed()}**")


def record(rows: Iterable[Mapping[str, Any]]) -> None:
    """Keep what was measured, beside what earlier runs measured."""
    about = today()
    new = pd.DataFrame(
        [{"claim": row["claim"], "measured": row["measured"]} | about for row in rows if "measured" in row],
        columns=["claim", "measured", "date", "commit"],
    )
    recorded_rows = recorded()
    keys = {claim.key for claim in read_table()[1]} - set(new["claim"])
    both = [part for part in (recorded_rows[recorded_rows["claim"].isin(keys)], new) if len(part)]
    pd.concat(both or [new]).sort_values("claim").to_csv(RECORD, index=False, float_format="%.6g")


def recorded() -> pd.DataFrame:
    """Return what is kept of earlier runs."""
    columns = ["claim", "measured", "date", "commit"]
    return pd.read_csv(RECORD) if RECORD.exists() else pd.DataFrame(columns=columns)


HEAD = """# What is claimed, and how to check it

For reviewers who take no number on trust.

`make claims` measures the quick half of the numbers that README and docs claim, in at most 15 minutes of
processor time. It prints which claims hold. `make claims SLOW=1` runs all. Tables come from packages, or from
folders ([where to get them](../datasets/README.md)): `make claims PRIVSYN_DATA=folder BENCH=folder`. What
needs a folder that is not named is not run.

`experiments/claims.yaml` has the words of each claim, and a test finds them on their pages. Definitions and
worked examples are not listed: [the tests](../CONTRIBUTING.md) run the examples of all pages. Of pages that
an experiment writes, some numbers stand for all. A number holds if it is the same when it is *rounded* like
the claimed one, or *within*, *at most* or *at least* a tolerance from it. Runs without a seed give other
numbers each time, and times differ between machines.

`experiments/claims.py` writes this page. Commands run in a copy of the folders `docs` and `experiments`,
without the rows of earlier runs, so every number is measured again.

Measurements are sections of the pages that they belong to:

- [what each stage](algorithm.md#what-each-stage-is-worth) and
  [each step for numbers](algorithm.md#what-each-step-for-numbers-is-worth) is worth
- [do the error bars hold](inference.md#do-the-error-bars-hold), and
  [the intervals from draws](inference.md#do-the-intervals-from-draws-hold)
- [do forecasts of models hold](engineer.md#forecasts-measured)
- [how often verdicts](publisher.md#how-often-verdicts-were-wrong) and
  [words beside relationships](publisher.md#how-often-these-words-are-wrong) are wrong
- [linked tables beside other programs](linked.md#linked-tables-beside-other-programs)
- [what constraints do](constraints.md#measured)
- [how time and memory grow](performance.md#how-time-and-memory-grow)
- [other programs](results.md), and [what packages of others say](results.md#what-packages-of-others-say)
- [the published algorithm](paper.md#measured)
- [tables of every kind](robustness.md), and [the privacy audit](audit.md)

## Claims

"""


def write_page() -> None:
    """Write docs/claims.md from the table and from what is recorded."""
    checks, claims = read_table()
    recorded_rows = recorded().set_index("claim")
    lines = []
    for claim in sorted(claims, key=lambda claim: (claim.page != "README.md", claim.page)):
        link = (
            f"[{Path(claim.page).stem}]({'../' if claim.page == 'README.md' else ''}{Path(claim.page).name})"
        )
        state, measured, when = NOT_RUN, "", ""
        if claim.key in recorded_rows.index:
            row = recorded_rows.loc[claim.key]
            state = HOLDS if claim.agrees(row["measured"]) else FAILS
            measured, when = f"{row['measured']:.5g}", f"{row['date']}, {row['commit']}"
        how = claim.check or "no command is kept"
        lines.append([link, shown(claim), how, claim.holds if claim.check else "", measured, state, when])
    heads = ("page", "claim", "check", "holds if", "measured", "", "when, commit")
    text = HEAD + markdown(heads, lines) + "\n## Checks\n\n"
    text += "`pages` compares two pages as they are. Minutes are processor time.\n\n"
    rows = [
        [
            c.name,
            c.how,
            "slow" if c.slow else "quick",
            f"{c.minutes:g}",
            c.needs,
            f"`make {c.make}`" if c.make else "",
        ]
        for c in checks.values()
    ]
    text += markdown(("check", "command", "half", "minutes", "needs", "writes the page"), rows)
    PAGE.write_text(text, encoding="utf-8")


def main() -> int:
    """Run the checks that are asked for."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--slow", action="store_true", help="run the slow half too")
    parser.add_argument("--only", help="run one check")
    parser.add_argument(
        "--page", action="store_true", help="run nothing, write docs/claims.md from what is recorded"
    )
    settings = parser.parse_args()
    checks, claims = read_table()
    rows: list[dict[str, Any]] = []
    if not settings.page:
        chosen = [claim for claim in claims if settings.only in (None, claim.check)]
        for measured in run(checks, chosen, slow=settings.slow):
            rows += measured
            record(measured)
        number = {state: sum(row["state"] == state for row in rows) for state in (HOLDS, FAILS, NOT_RUN)}
        print(  # noqa: T201
            f"{number[HOLDS]} of {len(rows)} claims hold, {number[FAILS]} do not, {number[NOT_RUN]} were not "
            f"run; {processor_minutes():.1f} minutes of processor time."
        )
    write_page()
    return int(any(row["state"] == FAILS for row in rows))


if __name__ == "__main__":
    sys.exit(main())
