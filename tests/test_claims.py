"""The table of claims: each number is on its page, each can be measured, and the runner says which hold."""

from __future__ import annotations

import ast
import re
from importlib.util import find_spec
from pathlib import Path

import pytest
import yaml
from scripts import FOLDER, imported, needed

ROOT = Path(__file__).parents[1]

pytestmark = needed


@pytest.fixture(scope="module")
def claims():
    """The runner."""
    with imported("claims") as scripts:
        yield scripts["claims"]


def test_the_words_of_each_claim_are_once_on_its_page(claims):
    for claim in claims.read_table()[1]:
        claims.value(claim.claimed())  # an error names page and words


def test_no_claim_is_listed_twice(claims):
    keys = [claim.key for claim in claims.read_table()[1]]
    assert len(keys) == len(set(keys))


def test_numbers_that_a_page_quotes_are_on_the_other_page_once(claims):
    quoted = [claim for claim in claims.read_table()[1] if claim.check == "pages"]
    assert quoted
    for claim in quoted:
        assert claim.agrees(claims.looked_up(claim, claims.as_they_are())), claim.key


def test_each_check_is_used_and_can_be_started(claims):
    checks, listed = claims.read_table()
    assert {claim.check for claim in listed} == {*checks, "pages", ""}
    tree = ast.parse((FOLDER / "claims_checks.py").read_text(encoding="utf-8"))
    functions = {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}
    for check in checks.values():
        assert check.needs in {"", "PRIVSYN_DATA", "BENCH", "JUDGES"}
        if not check.run:
            assert check.name in functions
        elif check.run.startswith("python -m "):
            assert find_spec(check.run.split()[2]), check.run
        else:
            assert (ROOT / check.run.split()[1]).is_file(), check.run


def test_a_function_names_its_number_and_a_command_does_not(claims):
    checks, listed = claims.read_table()
    for claim in listed:
        assert bool(claim.value) == (claim.check in checks and not checks[claim.check].run), claim.key


def test_targets_of_the_makefile_are_there(claims):
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    targets = {
        word for line in makefile.splitlines() if ":" in line for word in line.partition(":")[0].split()
    }
    assert {check.make.split()[0] for check in claims.read_table()[0].values() if check.make} <= targets
    assert "claims" in targets


def is_claimed_in(text, claim, claims):
    """Return whether the words of a claim are in the text."""
    try:
        claims.number_in(text, claim.words, claim.page)
    except ValueError:
        return False
    return True


def test_each_page_of_evidence_and_each_section_that_a_script_writes_has_a_claim(claims):
    menu = yaml.safe_load((ROOT / "mkdocs.yml").read_text(encoding="utf-8"))["nav"]
    (evidence,) = (part["Evidence"] for part in menu if "Evidence" in part)
    listed = claims.read_table()[1]
    pages = {f"docs/{page}" for entry in evidence for page in entry.values()} - {"docs/claims.md"}
    assert pages <= {claim.page for claim in listed}
    sections = [
        (f"docs/{page.name}", *section)
        for page in ROOT.glob("docs/*.md")
        for section in re.findall(
            r"<!-- (\S+): begin -->\n(.*?)<!-- \1: end -->", page.read_text("utf-8"), re.S
        )
    ]
    assert len(sections) > 10
    unclaimed = [
        name
        for page, name, text in sections
        if not any(is_claimed_in(text, claim, claims) for claim in listed if claim.page == page)
    ]
    assert unclaimed == ["steps"]  # no script keeps its rows


def test_the_quick_half_takes_a_quarter_of_an_hour(claims):
    assert sum(check.minutes for check in claims.read_table()[0].values() if not check.slow) <= 15


@pytest.mark.parametrize(
    "row", [{"page": "README.md", "words": "", "check": "", "tolerance": 1}, {"page": "README.md"}]
)
def test_unknown_and_missing_fields_are_refused(claims, row):
    with pytest.raises(TypeError):
        claims.Claim(**row)


def test_an_unknown_rule_is_refused(claims):
    with pytest.raises(ValueError, match="about"):
        claims.Claim("README.md", "", "", holds="about 3")


@pytest.mark.parametrize(
    ("holds", "claimed", "right", "wrong"),
    [
        ("rounded", ".024", [0.0243, 0.0235], [0.0246, 0.0234]),
        ("rounded", "17,137", [17137], [17138, 17136]),
        ("rounded", "ten", [10], [9]),
        ("within 0.5", "3", [2.5, 3.5], [2.4, 3.6]),
        ("within 10 %", "-20", [-22, -18], [-23, -17]),
        ("at most", "54", [53, 54], [54.1]),
        ("at most 50 %", "2", [0, 3], [3.1]),
        ("at least", "170", [170, 216], [169]),
    ],
)
def test_rules(claims, tmp_path, monkeypatch, holds, claimed, right, wrong):
    monkeypatch.setattr(claims, "ROOT", tmp_path)
    (tmp_path / "page.md").write_text(f"about\n  {claimed} of\nthem")
    claim = claims.Claim("page.md", "about <number> of them", "", holds)
    assert all(claim.agrees(number) for number in right)
    assert not any(claim.agrees(number) for number in wrong)


def test_words_must_be_there_and_be_clear(claims):
    text = "| a | 1 | 2 |\n| b | 3 | 4 |\n"
    assert claims.number_in(text, "| b | <any> | <number> |", "page") == "4"
    assert claims.number_in(text, "a <text> b | <number> |", "page") == "3"
    for words in ("| c | <number> |", "| <any> | <number> |"):
        with pytest.raises(ValueError, match="not once"):
            claims.number_in(text, words, "page")


def test_the_runner_says_what_holds_and_what_was_not_run(claims, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(claims, "ROOT", tmp_path)
    monkeypatch.delenv("BENCH", raising=False)
    (tmp_path / "page.md").write_text("54 guesses, 73 pure, 5 seconds, 2 rows, 1 hour, 4 bugs")
    checks = {
        "quick": claims.Check("quick", 1),
        "bench": claims.Check("bench", 1, needs="BENCH"),
        "slow": claims.Check("slow", 60, slow=True),
        "broken": claims.Check("broken", 1, run="python experiments/broken.py"),
    }
    rows = [
        ("54 guesses", "quick"),
        ("73 pure", "quick"),
        ("5 seconds", "bench"),
        ("2 rows", "slow"),
        ("1 hour", ""),
    ]
    listed = [
        claims.Claim(
            "page.md", words.replace(words.split()[0], "<number>"), check, "at most", words if check else ""
        )
        for words, check in [*rows, ("4 bugs", "broken")]
    ]

    def measure(check):
        if check.name == "broken":
            raise RuntimeError("no such file")
        return {"54 guesses": 53.6, "73 pure": 74}

    monkeypatch.setattr(claims, "measure", measure)
    states = {row["claim"]: row["state"] for rows in claims.run(checks, listed, slow=False) for row in rows}
    assert list(states.values()) == [
        "holds",
        "does not hold",
        "not run",
        "not run",
        "does not hold",
        "not run",
    ]
    said = capsys.readouterr().out
    assert "needs BENCH=folder" in said
    assert "SLOW=1" in said
    assert "no such file" in said


def test_a_command_runs_in_a_copy_and_its_page_is_read(claims, tmp_path, monkeypatch):
    for part in claims.COPIED:
        (tmp_path / part).mkdir()
    (tmp_path / "docs" / "page.md").write_text("7 rows")
    (tmp_path / "experiments" / "kept.csv").write_text("old rows")
    script = tmp_path / "experiments" / "write.py"
    script.write_text(
        "from pathlib import Path\n"
        "here = Path(__file__).parent\n"
        "(here.parent / 'docs' / 'page.md').write_text(f\"{len([*here.glob('*.csv')])} rows\")\n"
        "print('done: 8')\n"
    )
    monkeypatch.setattr(claims, "ROOT", tmp_path)
    measured = claims.measure(claims.Check("write", 1, run="python experiments/write.py"))
    assert claims.looked_up(claims.Claim("docs/page.md", "<number> rows", "write"), measured) == 0
    other = claims.Claim("docs/page.md", "<number> rows", "write", source="output", found="done: <number>")
    assert claims.looked_up(other, measured) == 8
    assert (tmp_path / "docs" / "page.md").read_text() == "7 rows"


def test_a_command_that_fails_without_a_message_is_named_by_its_exit_status(claims):
    with pytest.raises(RuntimeError, match="exit status 3"):
        claims.measure(claims.Check("silent", 1, run="python -c exit(3)"))
