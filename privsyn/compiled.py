"""The options that compiled loops share.

A function whose sums may be reordered (``fastmath`` with ``reassoc``) writes to no array. Where a loop does
both, the compiled code looks at each call how far the arrays lie from each other in memory, and adds up in
one order or another. Equal seeds and equal answers would then give other last digits from time to time.
"""

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
