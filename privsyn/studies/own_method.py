"""OwnMethod: a function of the user that makes a synthetic table, to be measured in a sweep."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from inspect import getsource, signature
from typing import Any

from privsyn.arguments import imported
from privsyn.errors import InputError, replace_errors, safe_repr

SIGNATURE = "a method takes (table, epsilon, seed) and returns a table"


@dataclass(frozen=True)
class OwnMethod:
    """A function ``(table, epsilon, seed) -> table``.

    Parameters
    ----------
    name : str
        Its name in the results.
    make : callable
        Receives the training rows as a data frame (of linked tables a dict of these), epsilon and the seed.
    """

    name: str
    make: Callable[..., Any]

    def __post_init__(self) -> None:
        if not callable(self.make):
            raise InputError(f"{self}: {SIGNATURE}; got {safe_repr(self.make)}")
        fits = True
        with suppress(ValueError):  # some functions written in C do not say what they take
            try:
                signature(self.make).bind(None, 1.0, 0)
            except TypeError:
                fits = False
        if not fits:
            raise InputError(f"{self}: {SIGNATURE}; it does not take these three arguments")

    def __str__(self) -> str:
        return f"method {safe_repr(self.name)}"

    @property
    def source(self) -> str:
        """A digest of the text of the function, if Python can find it: a changed one is measured again."""
        for code in (self.make, type(self.make)):
            with suppress(OSError, TypeError):
                return hashlib.sha256(getsource(code).encode()).hexdigest()[:12]
        return ""

    def sample(self, table: Any, epsilon: float, seed: int) -> Any:
        """Return the table that the function makes. Its errors are replaced: they may quote a cell."""
        with replace_errors(
            lambda error: f"{self} raised {type(error).__name__}: call it with the table to see why"
        ):
            made: object = self.make(table, epsilon, seed)
        if made is None:
            raise InputError(f"{self} returned None: {SIGNATURE}")
        return made


def own_methods(methods: Mapping[str, Any] | Iterable[str], taken: Iterable[str]) -> tuple[OwnMethod, ...]:
    """Return the methods of the user, each with a name that no preset has.

    Parameters
    ----------
    methods : mapping of a name to a callable, or iterable of "module:callable"
        A value of the mapping may be ``"module:callable"`` too.
    taken : iterable of str
        The names of the presets.
    """
    if isinstance(methods, str) or not isinstance(methods, Mapping | Iterable):
        raise InputError('methods is a mapping, as {"mine": make}, or a list of "module:function"')
    pairs = methods.items() if isinstance(methods, Mapping) else ((None, path) for path in methods)
    by_name: dict[str, OwnMethod] = {}
    for name, make in pairs:
        if name is not None and not isinstance(name, str):
            raise InputError(f"methods: a name is text; got {safe_repr(name)}")
        if name is None and not isinstance(make, str):
            raise InputError('methods: give functions with their names, as {"mine": make}')
        short, make = imported("method", make) if isinstance(make, str) else ("", make)
        method = OwnMethod(short if name is None else name, make)
        if not method.name:
            raise InputError("methods: the name of a method is empty: give it one")
        if method.name in by_name or method.name in taken:
            raise InputError(f"{method}: this name is taken: give it another one")
        by_name[method.name] = method
    return tuple(by_name.values())
