"""The options that compiled loops share."""

from __future__ import annotations

from typing import Any

KERNEL: dict[str, Any] = {"cache": True, "nogil": True, "error_model": "numpy", "no_cfunc_wrapper": True}
"""Of loops that Python calls.

Functions of numpy inside of them are compiled once for each set of options: so most loops share this one.
Division by 0 gives infinity instead of an error (`error_model`). Without a check for 0, it is vectorised.
"""

INNER: dict[str, Any] = {
    "nogil": True,
    "error_model": "numpy",
    "no_cpython_wrapper": True,
    "no_cfunc_wrapper": True,
}
"""Of loops that only compiled loops call: without the code for calls from Python and C."""
