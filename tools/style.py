"""Check the habits that no linter knows; `make lint` runs this.

Functions have at most 60 lines. No module gives a name two values, and no passage of eight lines stands
twice in the package. Names are nouns: none is a word of `FUNCTION_WORDS`, but for `EXCEPTIONS`.
Documentation, docstrings, comments and messages use standard terms: `WORDS` lists home-made ones, each with
a better word. A line that needs one of them ends in the comment ``style: allow``.
"""

from __future__ import annotations

import ast
import io
import re
import sys
import tokenize
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[1]
MOST_FUNCTION_LINES, PASSAGE = 60, 8

EXCEPTIONS = {
    "account/account.py": {"left"},
    "account/policy.py": {"left"},
    "methods/learning.py": {"own"},
    "methods/reading.py": {"given"},
    "owners/journal.py": {"known"},
    "private/acceptance.py": {"of", "what"},
    "private/run_ledger.py": {"kept"},
    "private/spend.py": {"what"},
    "release/accuracy/agreement.py": {"what"},
    "release/draws/frames.py": {"each"},
    "release/conditional/conditions.py": {"given"},
}
"""Names of modules of privsyn/ that are function words: public ones, and others that wait for a noun."""

FUNCTION_WORDS = {
    *("found", "place", "places", "each", "of", "one", "own", "known", "other", "others"),
    *("given", "whole", "most", "kept", "what", "said", "left", "least", "told", "asked"),
}
"""Words that are no names: say what the value is. For two exceptions see `is_allowed`."""

WORDS = {
    r"heard": "measured",
    r"told": "given, reported",
    r"tells? (of|nothing)": "shows",
    r"(said|seen) of": "known about",
    r"made anew": "generated, replaced",
    r"as it came": "unchanged",
    r"what is had": "what is known",
    r"whatever it (be|is)": "any",
    r"in so many words": "(leave out)",
    r"broken off": "interrupted",
    r"(go|goes|going|gone) on with": "resume",
    r"by lot": "at random",
    r"lots": "random draws",
    r"the rim": "table/",
    r"things?": "(name it)",
    r"wants": "needs",
    r"anew": "again",
    r"mend(s|ed|ing)?": "fix",
    r"of itself": "(leave out)",
    r"by itself": "alone, by default",
    r"so many": "n",
    r"for ever": "any time",
}
IGNORED = ("#", "from ", "import ")
HOME_MADE = re.compile("|".join(rf"\b({word})\b" for word in WORDS), re.IGNORECASE)


def main() -> int:
    """Print every breach and return 1, or return 0."""
    modules = sorted((ROOT / "privsyn").rglob("*.py"))
    breaches = [
        *(breach for path in modules for breach in long_functions(path)),
        *(breach for path in modules for breach in assigned_twice(path)),
        *(breach for path in modules for breach in named_by_function_words(path)),
        *repeated(modules),
        *(breach for path in modules for breach in home_made(path, prose_of_code(path))),
        *(breach for path in pages() for breach in home_made(path, prose_of_page(path))),
    ]
    sys.stdout.writelines(f"{breach}\n" for breach in breaches)
    return 1 if breaches else 0


def pages() -> list[Path]:
    """Return the pages that users read; the changelog keeps what was written then."""
    return [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").glob("*.md"))]


def long_functions(path: Path) -> Iterator[str]:
    """Yield a breach for each function with too many lines."""
    text = path.read_text(encoding="utf-8")
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.FunctionDef):
            body = node.body[1:] if ast.get_docstring(node) else node.body
            if body and (length := (node.end_lineno or 0) - body[0].lineno + 1) > MOST_FUNCTION_LINES:
                yield f"{path.relative_to(ROOT)}:{node.lineno}: {node.name} has {length} lines of code"


def assigned_twice(path: Path) -> Iterator[str]:
    """Yield a breach for each name that a module gives two values: the first would be lost."""
    seen: dict[str, int] = {}
    for node in ast.parse(path.read_text(encoding="utf-8")).body:
        targets = node.targets if isinstance(node, ast.Assign) else []
        for name in (part for target in targets for part in ast.walk(target) if isinstance(part, ast.Name)):
            if isinstance(name.ctx, ast.Store) and seen.setdefault(name.id, node.lineno) != node.lineno:
                yield f"{path.relative_to(ROOT)}:{node.lineno}: {name.id} has a value in line {seen[name.id]}"


def named_by_function_words(path: Path) -> Iterator[str]:
    """Yield a breach for each variable, parameter, field and function that is called by a function word."""
    text = path.read_text(encoding="utf-8")
    lines, exceptions = text.splitlines(), EXCEPTIONS.get(path.relative_to(ROOT / "privsyn").as_posix(), ())
    for node, function in named(ast.parse(text), ""):
        match node:
            case ast.Name(id=name, ctx=ast.Store()) | ast.arg(arg=name):
                pass
            case ast.FunctionDef(name=name) | ast.ExceptHandler(name=name) | ast.MatchAs(name=name):
                pass
            case _:
                continue
        allowed = is_allowed(name, node, function) or "style: allow" in lines[node.lineno - 1]
        if name in FUNCTION_WORDS and name not in exceptions and not allowed:
            yield f"{path.relative_to(ROOT)}:{node.lineno}: {name!r} is no noun: say what it is"


def is_allowed(name: str, node: ast.AST, function: str) -> bool:
    """Return whether a constructor is called `of`, or a public function takes the condition `given`.

    The settings `other` of `Categorical`, `of` of `Total` and `one` of `Table` are public, too.
    """
    if name in ("of", "one", "other") and isinstance(node, ast.Name) and not function:
        return True
    if name == "of":
        return isinstance(node, ast.FunctionDef) and any(
            ast.unparse(d) == "classmethod" for d in node.decorator_list
        )
    return name == "given" and isinstance(node, ast.arg) and function[:1] not in ("", "_")


def named(node: ast.AST, function: str) -> Iterator[tuple[ast.AST, str]]:
    """Yield each node below a node, with the name of the innermost function around it."""
    for child in ast.iter_child_nodes(node):
        yield child, function
        yield from named(child, child.name if isinstance(child, ast.FunctionDef) else function)


def repeated(modules: list[Path]) -> Iterator[str]:
    """Yield a breach for each passage that stands in two places."""
    places: dict[tuple[str, ...], tuple[Path, int]] = {}
    for path in modules:
        numbered = [(number, line.strip()) for number, line in enumerate(path.read_text().splitlines(), 1)]
        code = [
            (n, line)
            for n, line in numbered
            if len(line) > 3 and not line.startswith(("#", "from ", "import "))
        ]
        last = 0
        for start in range(len(code) - PASSAGE + 1):
            passage = tuple(line for _, line in code[start : start + PASSAGE])
            number = code[start][0]
            other, there = places.setdefault(passage, (path, number))
            if (other, there) != (path, number) and number > last:
                yield f"{path.relative_to(ROOT)}:{number}: as {other.relative_to(ROOT)}:{there}"
                last = code[start + PASSAGE - 1][0]


def prose_of_code(path: Path) -> Iterator[tuple[int, str]]:
    """Yield the comments and the texts of a module, with their lines; no code."""
    tokens = list(tokenize.generate_tokens(io.StringIO(path.read_text(encoding="utf-8")).readline))
    for token in tokens:
        if token.type in (tokenize.COMMENT, tokenize.STRING):
            for offset, line in enumerate(token.string.splitlines()):
                if ">>>" not in line and "style: allow" not in token.line:
                    yield token.start[0] + offset, line


def prose_of_page(path: Path) -> Iterator[tuple[int, str]]:
    """Yield the lines of a page outside its code blocks."""
    is_code = False
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        if line.lstrip().startswith("```"):
            is_code = not is_code
        elif not is_code and "style: allow" not in line:
            yield number, re.sub(r"`[^`]*`", "", line)


def home_made(path: Path, prose: Iterator[tuple[int, str]]) -> Iterator[str]:
    """Yield a breach for each word of `WORDS`."""
    for number, line in prose:
        for match in HOME_MADE.finditer(line):
            better = next(word for pattern, word in WORDS.items() if re.fullmatch(pattern, match[0], re.I))
            yield f"{path.relative_to(ROOT)}:{number}: {match[0]!r}: {better}"


if __name__ == "__main__":
    sys.exit(main())
