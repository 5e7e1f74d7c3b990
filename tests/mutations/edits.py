"""Small edits of a function's syntax tree: a pattern is found there, and another takes its place.

A pattern is Python in which a capital letter stands for any expression, and for an equal one where it stands
again. ``*R`` at the end of arguments or elements stands for all further ones, ``**K`` for further named
arguments, and a body of ``...`` for any body. So names of local variables do not matter, nor how lines are
broken.

>>> edited("def low(a, b):\\n    return max(a - 1, b)", "low", "max(A, B)", "A")
'def low(a, b):\\n    return a - 1'
>>> edited("def f(x):\\n    log(x)\\n    return x", "f", "log(*R)", "")
'def f(x):\\n    return x'
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from copy import deepcopy
from typing import Any, NamedTuple

BODY = "..."
Bindings = dict[str, Any]
"""What stands where a pattern has a letter: an expression, or a list for ``*R``, ``**K`` and ``...``."""


class Place(NamedTuple):
    """Where a pattern is found: some children of a node, from `start` to `end` if they are a list."""

    parent: ast.AST
    field: str
    start: int
    end: int
    bindings: Bindings


def edited(source: str, name: str, old: str, new: str) -> str:
    """Return a module's source with one edit; a ``LookupError`` if its place is not there exactly once.

    Parameters
    ----------
    name : str
        Qualified name of a function or class in the module, or "" for the module itself.
    old, new : str
        Patterns: two expressions, or statements. Nothing takes the place of statements if `new` is empty.
    """
    tree = ast.parse(source)
    pattern, replacement = ast.parse(old).body, ast.parse(new).body
    whole = all(len(body) == 1 and isinstance(body[0], ast.Expr) for body in (pattern, replacement))
    wanted = [pattern[0].value] if whole else pattern  # type: ignore[attr-defined]
    places = list(_places(_scope(tree, name), wanted))
    if len(places) != 1:
        raise LookupError(f"found {len(places)} times in {name or 'the module'}: {old!r}")
    parent, field, start, end, bindings = places[0]
    made = [_Filled(bindings).visit(deepcopy(node)) for node in replacement]
    made = [node for nodes in made for node in (nodes if isinstance(nodes, list) else [nodes])]
    children = getattr(parent, field)
    if not isinstance(children, list):
        setattr(parent, field, made[0].value)
    elif whole:
        children[start:end] = [made[0].value]
    else:
        children[start:end] = made if made or len(children) > end - start else [ast.Pass()]
    return _text(source, ast.fix_missing_locations(tree), name.partition(".")[0])


def _text(source: str, tree: ast.Module, name: str) -> str:
    """Return the edited source: all of it is only written again if the edit is in no function or class."""
    if not name:
        return ast.unparse(tree)
    node = next(node for node in tree.body if getattr(node, "name", None) == name)
    start = min([node.lineno, *(decorator.lineno for decorator in getattr(node, "decorator_list", ()))])
    lines = source.splitlines()
    return "\n".join([*lines[: start - 1], ast.unparse(node), *lines[node.end_lineno :]])


def _scope(tree: ast.Module, name: str) -> ast.AST:
    scope: ast.AST = tree
    for part in filter(None, name.split(".")):
        definitions = (ast.FunctionDef, ast.ClassDef, ast.AsyncFunctionDef)
        nodes = [
            n for n in ast.walk(scope) if isinstance(n, definitions) and n.name == part and n is not scope
        ]
        nodes = [n for n in nodes if not any(map(_is_overload, n.decorator_list))]
        if not nodes:
            raise LookupError(f"there is no {part!r} of {name!r}")
        scope = nodes[0]
    return scope


def _is_overload(decorator: ast.expr) -> bool:
    return isinstance(decorator, ast.Name) and decorator.id == "overload"


def _places(scope: ast.AST, wanted: list[Any]) -> Iterator[Place]:
    for parent in ast.walk(scope):
        for field, value in ast.iter_fields(parent):
            children = value if isinstance(value, list) else [value]
            for start in range(len(children) - len(wanted) + 1):
                end, bindings = start + len(wanted), Bindings()
                if all(_matches(p, c, bindings) for p, c in zip(wanted, children[start:end], strict=True)):
                    yield Place(parent, field, start, end, bindings)


def _matches(pattern: Any, node: Any, bindings: Bindings) -> bool:
    """Return whether a node has the shape of a pattern; `bindings` takes what its letters stand for."""
    if letter := _letter(pattern):
        return isinstance(node, ast.expr) and _binds(letter, node, bindings)
    if isinstance(pattern, list):
        return isinstance(node, list) and _all_match(pattern, node, bindings)
    if not isinstance(pattern, ast.AST) or type(pattern) is not type(node):
        return type(pattern) is type(node) and pattern == node
    fields = [name for name in pattern._fields if name not in ("ctx", "kind", "type_comment")]
    return all(_matches(getattr(pattern, name, None), getattr(node, name, None), bindings) for name in fields)


def _all_match(patterns: list[Any], nodes: list[Any], bindings: Bindings) -> bool:
    last = patterns[-1] if patterns else None
    if _is_body(patterns):
        return _binds(BODY, nodes, bindings)
    if isinstance(last, ast.keyword):  # in any order
        by_name = {node.arg: node for node in nodes}
        further = _letter(last.value) if last.arg is None else ""
        named = patterns[:-1] if further else patterns
        rest = [node for node in nodes if node.arg not in {pattern.arg for pattern in named}]
        all_named = all(_matches(pattern, by_name.get(pattern.arg), bindings) for pattern in named)
        return all_named and (_binds(further, rest, bindings) if further else not rest)
    if isinstance(last, ast.Starred) and (letter := _letter(last.value)):
        size = len(patterns) - 1
        if not _binds(letter, nodes[size:], bindings) or len(nodes) < size:
            return False
        patterns, nodes = patterns[:size], nodes[:size]
    return len(patterns) == len(nodes) and all(
        _matches(pattern, node, bindings) for pattern, node in zip(patterns, nodes, strict=True)
    )


def _binds(letter: str, node: Any, bindings: Bindings) -> bool:
    return _plain(bindings.setdefault(letter, node)) == _plain(node)


def _plain(node: Any) -> str:
    """The text of a node, whether it is stored or loaded."""
    return "\n".join(map(ast.unparse, node)) if isinstance(node, list) else ast.unparse(node)


def _letter(node: Any) -> str:
    name = node.id if isinstance(node, ast.Name) else ""
    return name if len(name) == 1 and name.isupper() else ""


def _is_body(nodes: Any) -> bool:
    return len(nodes) == 1 and isinstance(nodes[0], ast.Expr) and _plain(nodes[0]) == BODY


class _Filled(ast.NodeTransformer):
    """Put in what the letters of a pattern stand for."""

    def __init__(self, bindings: Bindings) -> None:
        self.bindings = bindings

    def visit_Name(self, node: ast.Name) -> Any:
        return deepcopy(self.bindings[letter]) if (letter := _letter(node)) else node

    def visit_Starred(self, node: ast.Starred) -> Any:
        stands_for = self.bindings.get(_letter(node.value))
        return deepcopy(stands_for) if isinstance(stands_for, list) else self.generic_visit(node)

    def visit_keyword(self, node: ast.keyword) -> Any:
        stands_for = self.bindings.get(_letter(node.value)) if node.arg is None else None
        return deepcopy(stands_for) if isinstance(stands_for, list) else self.generic_visit(node)

    def visit_Expr(self, node: ast.Expr) -> Any:
        return deepcopy(self.bindings[BODY]) if _plain(node) == BODY else self.generic_visit(node)
