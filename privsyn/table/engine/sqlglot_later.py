"""The expressions of sqlglot, which is imported when the first one is written: few runs read a database."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from sqlglot import exp as exp
else:

    class _Expressions:
        def __getattr__(self, name: str) -> Any:
            from sqlglot import exp

            return getattr(exp, name)

    exp = _Expressions()
